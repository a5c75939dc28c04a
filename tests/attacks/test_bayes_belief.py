"""What the intruder believes: thresholds, ranks and probabilities by hand, his own sureness by simulation."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import maskwell as mw
from maskwell.attacks.bayes.belief import THRESHOLDS, Belief, Chances, Standing
from maskwell.attacks.bayes.pictures import belief_picture, draw_belief
from maskwell.attacks.bayes.reliability import EDGES, reliability_of
from maskwell.errors import BadPlan, CannotWrite

NAN = np.nan


def believed(better, ties, truth, probability, share, threshold=0.0, labels=None):
    standing = Standing(np.array(better), np.array(ties), np.array(truth, float))
    return Belief(standing, np.array(probability, float), np.array(share, float), threshold, labels)


@pytest.fixture(scope="module")
def six():
    """Six targets: found; found by one of two ties; second; not in the release; impossible; without candidates."""
    return believed(
        better=[0, 0, 1, -1, 2, -1],
        ties=[1, 2, 1, 0, 0, 0],
        truth=[0.9, 0.4, 0.3, NAN, 0.0, NAN],
        probability=[0.9, 0.4, 0.5, 0.7, 0.6, NAN],
        share=[1.0, 0.5, 0.0, 0.0, 0.0, 0.0],
        threshold=0.45,
        labels=pa.array(["anna", "bert", "carl", "dora", "emil", "fred"]),
    )


@pytest.fixture(scope="module")
def nothing():
    return believed([-1, -1], [0, 0], [NAN, NAN], [NAN, NAN], [0, 0])


def test_the_curve_by_hand(six):
    curve = six.curve([0.0, 0.4, 0.5, 0.9])
    assert curve["links"].to_pylist() == [5, 4, 3, 0]
    assert curve["correct"].to_pylist() == [1.5, 1.0, 1.0, 0.0]
    assert curve["precision"].to_pylist() == [0.3, 0.25, pytest.approx(1 / 3), None]
    assert curve["recall"].to_pylist() == [1.5 / 4, 0.25, 0.25, 0.0]
    assert (six.targets, six.links, six.findable) == (6, 5, 4)


def test_the_curve_has_his_own_threshold_too(six):
    assert six.curve()["threshold"].to_pylist() == sorted([*THRESHOLDS, 0.45])
    assert six.curve().num_columns == 5


def test_a_link_is_claimed_above_the_threshold_and_always_at_zero():
    belief = believed([0] * 4, [1] * 4, [0.1] * 4, [0.0, 0.5, 0.7, NAN], [1, 1, 1, 0])
    assert belief.curve([0.0, 0.5, 1.0])["links"].to_pylist() == [3, 1, 0]
    assert belief.curve([0.0, 0.5, 1.0])["correct"].to_pylist() == [3.0, 1.0, 0.0]


def test_the_order_of_the_file_changes_no_bit():
    rng = np.random.default_rng(6)
    said, right = draws(3, 999)
    truth, ties, better = rng.random(999), rng.integers(0, 9, 999), rng.integers(-1, 12, 999)
    one, other = (
        Belief(Standing(better[o], ties[o], truth[o]), said[o], right[o] / 3, 0.0, None, truth[o])
        for o in (np.arange(999), rng.permutation(999))
    )
    assert one.to_dict() == other.to_dict()


@pytest.mark.parametrize("bad", [-0.1, 1.1, NAN, "half", True, None])
def test_what_is_no_probability_is_no_threshold(six, bad):
    with pytest.raises(BadPlan, match="between 0 and 1"):
        six.curve([0.5, bad])


def test_ranks_by_hand():
    """At 5th to 7th place one third is among the first five; at 10th to 13th one quarter is among the first ten."""
    belief = believed([0, 0, 4, 9, 50, 3, -1], [1, 2, 3, 4, 1, 0, 0], [0.1] * 6 + [NAN], [0.1] * 7, [0] * 7)
    ranks = belief.ranks
    assert ranks.first == 1.5
    assert ranks.to_5 == pytest.approx(0.5 + 1 / 3)
    assert ranks.to_10 == pytest.approx(2 / 3 + 1 / 4)
    assert ranks.beyond == pytest.approx(3 / 4 + 2)
    assert (ranks.top_5, ranks.targets) == (pytest.approx(1.5 + 0.5 + 1 / 3), pytest.approx(6))


@given(st.lists(st.tuples(st.integers(-1, 14), st.integers(0, 15)), max_size=12))
def test_places_are_the_mean_over_orders_of_ties(standings):
    expected = np.zeros(11)
    for better, ties in standings:
        for place in range(better, better + ties) if better >= 0 else []:
            expected[min(place, 10)] += 1 / ties
        expected[10] += better >= 0 and ties == 0
    better, ties = [b for b, _ in standings], [t for _, t in standings]
    blank = np.full(len(standings), NAN)
    belief = Belief(Standing(np.array(better, int), np.array(ties, int), blank), blank, blank)
    np.testing.assert_allclose(belief.places, expected, atol=1e-12)
    np.testing.assert_allclose(belief.ranks.targets, sum(b >= 0 for b in better), atol=1e-12)


def test_probabilities_of_truth_first_and_correct(six):
    assert six.truth_probability.mean == pytest.approx(1.6 / 4)
    assert six.truth_probability.count == 4
    assert six.first_probability.mean == pytest.approx(3.1 / 5)
    assert six.first_probability.median == 0.6
    assert six.correct_probability.mean == pytest.approx((0.9 + 0.5 * 0.4) / 1.5)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3)), max_size=20))
def test_weighted_figures_are_those_of_repeated_values(pairs):
    values, weights = np.array([v for v, _ in pairs]), np.array([w for _, w in pairs], float)
    chances = Chances.of(values, weights)
    repeated = np.repeat(values, weights.astype(int))
    assert chances.count == len(repeated)
    if len(repeated):
        quantiles = np.quantile(repeated, [0.05, 0.25, 0.5, 0.75, 0.95], method="inverted_cdf")
        assert [chances.low, chances.lower, chances.median, chances.upper, chances.high] == list(quantiles)
        assert chances.mean == pytest.approx(repeated.mean(), abs=1e-12)
    if len(repeated) > 1:
        assert chances.sd == pytest.approx(repeated.std(ddof=1), abs=1e-9)
    else:
        assert np.isnan(chances.sd)


def test_bins_by_hand():
    """Two links at 0.72 and 0.78 of which one is right, and one at the upper end."""
    found = reliability_of(np.array([0.72, 0.78, 1.0]), np.array([1.0, 0.0, 1.0]))
    low, high = found.bins
    assert (low.low, low.high, low.links, low.right) == (0.7, 0.8, 2, 0.5)
    assert low.said == pytest.approx(0.75)
    assert low.gap.errors == pytest.approx((1 - 1.5) / np.sqrt(0.72 * 0.28 + 0.78 * 0.22))
    # Wilson's interval of 1 in 2, from his formula: (1 + z^2/2 +- z sqrt(1/2 + z^2/4)) / (2 + z^2), z = 1.96
    assert low.interval == pytest.approx((0.09453, 0.90547), abs=1e-5)
    assert (high.low, high.high, high.right, high.z) == (0.99, 1.0, 1.0, 0.0)
    assert (found.expected, found.found, found.links) == (pytest.approx(2.5), 2.0, 3)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30))
def test_bins_hold_every_link_once(pairs):
    said, right = np.array(pairs).T
    for bins in (reliability_of(said, right).bins, reliability_of(said, right).coarse):
        assert sum(one.links for one in bins) == len(pairs)
        assert sum(one.links * one.said for one in bins) == pytest.approx(said.sum(), abs=1e-9)
        assert sum(one.links * one.right for one in bins) == pytest.approx(right.sum(), abs=1e-9)
        assert all(one.low - 1e-12 <= one.said <= one.high + 1e-12 for one in bins)


def draws(seed, links=2000):
    """Probabilities of all sizes, and links that are right as often as they say."""
    rng = np.random.default_rng(seed)
    said = rng.beta(0.5, 0.7, links)
    return said, (rng.random(links) < said).astype(float)


def test_gaps_of_who_is_right_about_himself_are_standard():
    """Their mean is 0 and their mean square 1, each within 4 standard errors, whole and in the bins."""
    found = [reliability_of(*draws(seed, 600)) for seed in range(200)]
    bins = [one.gap.errors for each in found for one in each.bins if one.links >= 30]
    for gaps in (np.array([each.gap.errors for each in found]), np.array(bins)):
        assert abs(gaps.mean()) < 4 * gaps.std() / np.sqrt(len(gaps))
        assert abs((gaps**2).mean() - 1) < 4 * (gaps**2).std() / np.sqrt(len(gaps))


def test_gaps_where_links_are_shared_among_ties_are_standard_too():
    """Each of k tied records is right with probability p, and the link then counts 1/k: variance p/k - p^2."""

    def shared(seed, links=400):
        rng = np.random.default_rng(seed)
        ties = rng.choice([1, 2, 5, 20], links)
        among = rng.beta(1.0, 0.5, links)
        return among / ties, (rng.random(links) < among) / ties, ties

    gaps = np.array([reliability_of(*shared(seed)).gap.errors for seed in range(400)])
    assert abs(gaps.mean()) < 4 * gaps.std() / 20
    assert abs((gaps**2).mean() - 1) < 4 * (gaps**2).std() / 20
    blind = np.array([reliability_of(*shared(seed)[:2]).gap.errors for seed in range(400)])
    assert (blind**2).mean() < 0.7  # what p (1 - p) makes of the same links


def test_few_links_are_not_judged():
    few = reliability_of(np.array([0.3, 0.5, 0.6]), np.zeros(3))
    assert few.is_fair
    assert few.sentence == "too few to judge him: he expects 1.4 right of 3, and 0 are"
    sure = reliability_of(np.full(1000, 0.999), np.ones(1000))
    assert sure.sentence == "too few doubts to judge him: he expects 1 wrong of 1,000, and 0 are"
    surer = reliability_of(np.full(1080, 1 - 4e-8), np.ones(1080))
    assert surer.sentence.endswith("he expects 4e-05 wrong of 1,080, and 0 are")
    assert not any("(z" in line for found in (few, sure, surer) for line in found.lines())
    wrong = reliability_of(np.full(1000, 0.9999), (np.arange(1000) >= 9).astype(float))
    assert wrong.sentence == "too sure: says 100.0%, right in 99%"


def tied(seed, links):
    """Links that stand for 1 to 20 candidates each, and are right as often as they say."""
    rng = np.random.default_rng(seed)
    ties = rng.choice([1, 2, 5, 20], links)
    among = rng.beta(1.0, 0.5, links)
    return among / ties, (rng.random(links) < among) / ties, ties


AGAINST = ("too sure", "not sure enough")


def is_against(found):
    return found.sentence.startswith(AGAINST) or ", but where" in found.sentence


@pytest.mark.parametrize("draw", [draws, tied])
def test_who_is_right_about_himself_is_hardly_ever_accused(draw):
    """In less than 1% of 900 answers: 3 are expected at most, 0.1% each for the whole and the bins, and 9 are 1%."""
    accused = sum(is_against(reliability_of(*draw(seed, n))) for n in (3, 20, 400) for seed in range(300))
    assert accused < 9


@pytest.mark.parametrize("links", [1, 2, 5, 20, 200, 5000])
def test_the_verdict_is_that_of_the_figure_beside_it(links):
    for seed in range(40):
        said, right = draws(seed, links)
        for power in (0.3, 1.0, 3.0):
            found = reliability_of(said**power, right)
            line = found.lines()[0]
            judged = found.gap.is_enough or found.gap.is_far()
            whole = not found.gap.is_far() and found.worst is not None
            assert whole or ("(z" in line) == judged
            assert line.strip().startswith(AGAINST) == (abs(found.z) > 3.2905)
            assert not line.strip().startswith(("as sure", "right on")) or abs(found.z) <= 2
            assert not line.strip().startswith("perhaps") or 2 < abs(found.z) <= 3.2905


def test_the_bound_on_chance_is_the_chance_at_the_ends_and_bounds_it_between():
    """Of ten links at 0.3: all right, none right, and at least 7, by the binomial law; shared among ties alike."""
    said = np.full(10, 0.3)
    law = binom(10, 0.3)
    for count, chance in ((10, law.pmf(10)), (0, law.pmf(0))):
        tail = reliability_of(said, (np.arange(10) < count).astype(float)).gap.tail
        assert np.exp(-(tail**2) / 2) == pytest.approx(chance, rel=1e-6)
    seven = reliability_of(said, (np.arange(10) < 7).astype(float)).gap.tail
    assert law.sf(6) < np.exp(-(seven**2) / 2) == pytest.approx((0.3 / 0.7) ** 7 * (0.7 / 0.3) ** 3)
    among = reliability_of(said / 4, (np.arange(10) < 7) / 4, np.full(10, 4)).gap.tail
    assert among == pytest.approx(seven)


def test_clear_faults_are_named():
    """At the sizes a user met: 39% said and 56% right; small files; one bin of many."""
    for links, word in ((200, "not sure enough"), (100, "not sure enough")):
        found = reliability_of(np.full(links, 0.39), (np.arange(links) < 0.57 * links).astype(float))
        assert found.sentence.startswith(word)
    named = [
        reliability_of(said, (np.random.default_rng(seed).random(400) < said**2).astype(float)).sentence
        for seed in range(50)
        for said in [draws(seed, 400)[0]]
    ]
    assert all(sentence.startswith("too sure") for sentence in named)


def test_what_he_says_and_what_comes_true_are_never_written_alike():
    close = reliability_of(np.full(65_000, 0.5843), (np.arange(65_000) < 37_667).astype(float))
    assert close.sentence == "perhaps too sure, or by chance: says 58.4%, right in 57.9%"
    closer = reliability_of(np.full(10**6, 1 - 1e-6), (np.arange(10**6) >= 24).astype(float))
    assert closer.sentence == "too sure: expects 1.00 wrong of 1,000,000, and 24.00 are"


def test_no_infinite_or_senseless_z_is_printed():
    for said in (1.0, 1 - 1e-12):
        found = reliability_of(np.full(3, said), np.array([1.0, 1.0, 0.0]))
        assert "inf" not in "\n".join(found.lines())
        assert "e+" not in "\n".join(found.lines())
        assert found.sentence.replace(".0%", "%") == "too sure: says 100%, right in 67%"
    part = reliability_of(np.array([1.0, 1.0, *[0.5] * 100]), np.array([1.0, 0.0, *[0.0, 1.0] * 50]))
    assert part.sentence == "right on the whole, but where he says certain he is right in 50% of 2"


def test_the_sentence_says_whether_to_believe_him():
    said, right = draws(1)
    fair = reliability_of(said, right)
    assert fair.is_fair
    assert fair.sentence.startswith("as sure as he should be: says 4")
    assert f"(z {fair.z:+.1f})" in fair.lines()[0]
    rng = np.random.default_rng(2)
    sure = reliability_of(said, (rng.random(2000) < 0.4 * said).astype(float))
    assert sure.sentence.startswith("too sure: says 4")
    humble = reliability_of(said, (rng.random(2000) < np.sqrt(said)).astype(float))
    assert humble.sentence.startswith("not sure enough: says 4")
    halves = np.where(np.arange(2000) < 1000, 0.2, 0.8)
    mixed = reliability_of(halves, np.arange(2000) % 2 * 1.0)
    assert mixed.sentence.startswith("right on the whole, but where he says 0.")
    assert not any(one.is_fair for one in (sure, humble, mixed))


def test_who_was_certain_and_wrong_is_told_so():
    found = reliability_of(np.ones(3), np.array([1.0, 1.0, 0.0]))
    assert found.z == -np.inf
    assert found.sentence == "too sure: says 100%, right in 67%"
    assert found.to_dict()["z"] is None
    assert reliability_of(np.ones(3), np.ones(3)).z == 0.0


def test_edges_cover_all_probabilities():
    assert (EDGES[0], EDGES[-1]) == (0.0, 1.0)
    assert list(EDGES) == sorted(set(EDGES))


def test_the_worst_come_first_and_by_id(six):
    worst = six.worst(3)
    assert worst["target_id"].to_pylist() == ["anna", "bert", "carl"]
    assert worst["probability_of_truth"].to_pylist() == [0.9, 0.4, 0.3]
    assert worst["rank"].to_pylist() == [1, 1, 2]
    assert six.worst(100).num_rows == 4
    assert six.worst(100)["rank"].to_pylist()[-1] is None  # held for impossible: no rank
    unnamed = believed([0, 0], [1, 1], [0.1, 0.2], [0.1, NAN], [1, 0]).worst()
    assert unnamed["target_id"].to_pylist() == ["2", "1"]
    assert unnamed["probability_of_first"].to_pylist() == [None, 0.1]


def test_figures_are_plain_data_without_any_record(six, nothing):
    for belief in (six, nothing):
        written = json.dumps(belief.to_dict(), allow_nan=False)
        shown = "\n".join([written, repr(belief), *belief.lines()])
        assert not any(name in shown for name in ("anna", "bert", "carl", "dora", "emil", "fred"))
    figures = six.to_dict()
    assert figures["calibration"]["links"] == 5
    assert figures["truth_probability"]["median"] == 0.3
    assert nothing.to_dict()["truth_probability"]["mean"] is None


def test_one_screen(six, nothing):
    lines = six.lines()
    assert len(lines) <= 16
    assert max(map(len, lines)) <= 120
    said = "\n".join(lines)
    assert (
        "rank of the true record: first 37.5%, 2nd to 5th 37.5%, 6th to 10th 0.0%, beyond 25.0% (of 4)"
        in said
    )
    assert "0.45        4        1.0      25.0%    25.0%" in said
    assert nothing.lines()[-1] == "  he has no candidate for anybody, and so believes nothing"
    lost = believed([-1], [0], [NAN], [0.5], [0])
    assert "no target has its own record among its candidates" in lost.lines()[1]


def test_a_file_of_nobody_is_summed_up_too():
    empty = believed([], [], [], [], [])
    assert empty.curve()["recall"].null_count == len(THRESHOLDS)
    assert empty.ranks.targets == 0
    assert empty.worst().num_rows == 0


def test_the_picture_shows_the_curve_and_the_bins(six):
    left, right = belief_picture(six).axes
    links, correct = left.lines[:2]
    at = np.asarray(links.get_xdata())
    curve = six.curve(at.tolist())
    np.testing.assert_array_equal(links.get_ydata(), np.asarray(curve["links"]))
    np.testing.assert_array_equal(correct.get_ydata(), np.asarray(curve["correct"]))
    points = [line for line in right.lines if line.get_marker() == "o"]
    assert [line.get_xdata()[0] for line in points] == [one.said for one in six.calibration.bins]
    assert [line.get_ydata()[0] for line in points] == [one.right for one in six.calibration.bins]


def test_pictures_are_written_the_same_every_time(six, nothing, tmp_path):
    first, again = (draw_belief(six, tmp_path / name).read_bytes() for name in ("a.png", "b.png"))
    assert first == again
    assert draw_belief(nothing, tmp_path / "c.svg").stat().st_size > 1000
    with pytest.raises(CannotWrite):
        draw_belief(six, tmp_path / "nowhere" / "a.png")
    with pytest.raises(BadPlan):
        draw_belief(six, tmp_path / "a.txt")


@pytest.fixture(scope="module")
def masking(make_amounts):
    return mw.apply(mw.IndependentNoise(("A", "B"), variance_ratio=0.2), make_amounts(90, seed=8), seed=8)


def log_law(masking):
    """Known x released: log p(z | x) by the card, from two tables with every pair laid side by side."""
    truth, released = masking.truth, masking.release.table
    x, z = np.divmod(np.arange(len(truth) * len(released)), len(released))
    return masking.card.logpdf(released.take(z), truth.take(x)).reshape(len(truth), len(released))


def test_an_attack_says_how_the_truth_stands(masking):
    """Against the forward kernel's posterior over all pairs, in plain numpy."""
    logs = log_law(masking)
    place = np.argsort(masking.order)
    posterior = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    true = posterior[np.arange(90), place]
    belief = mw.attack(mw.BayesIntruder(kernel="forward", threshold=0.25), masking).belief
    np.testing.assert_allclose(belief.standing.probability, true, rtol=1e-9)
    np.testing.assert_array_equal(belief.standing.better, (posterior > true[:, None]).sum(axis=1))
    assert (belief.standing.ties == 1).all()
    np.testing.assert_allclose(belief.probability, posterior.max(axis=1), rtol=1e-9)
    np.testing.assert_array_equal(belief.share, posterior.argmax(axis=1) == place)
    assert belief.threshold == 0.25
    ids = masking.truth.ids.to_pylist()
    assert belief.worst(1)["target_id"].to_pylist() == [ids[int(true.argmax())]]


def test_claims_are_those_of_the_curve(masking):
    risk = mw.attack(mw.BayesIntruder(threshold=0.25), masking)
    row = risk.belief.curve([0.25]).to_pylist()[0]
    assert (risk.claims, risk.expected_correct) == (row["links"], pytest.approx(row["correct"]))
    assert 0 < risk.claims < 90
    assert risk.to_dict()["belief"]["threshold"] == 0.25
    assert "rank of the true record" in repr(risk)


def test_some_targets_stand_as_among_all(masking):
    """The answers for chosen targets are those for everybody, released records searching."""
    plan = mw.BayesIntruder(direction="to_original")
    everybody, some = (
        mw.attack(plan, masking),
        mw.attack(mw.BayesIntruder(direction="to_original", targets=mw.Sample(20)), masking),
    )
    ids = everybody.table["target_id"].to_pylist()
    rows = [ids.index(one) for one in some.table["target_id"].to_pylist()]
    assert len(rows) == 20
    for name in ("better", "ties", "probability"):
        whole = getattr(everybody.belief.standing, name)
        np.testing.assert_allclose(getattr(some.belief.standing, name), whole[rows], rtol=1e-12)


def test_targets_that_are_not_in_the_release(make_amounts):
    """He is asked about all units, half of which were released."""
    mask = mw.Chain((mw.IndependentNoise(("A", "B"), variance_ratio=0.1), mw.Subsample(0.5)))
    masking = mw.apply(mask, make_amounts(80, seed=4), seed=4)
    belief, released = mw.attack(mw.BayesIntruder(), masking).belief, len(masking.order)
    assert (belief.targets, belief.findable) == (80, released)
    assert np.isnan(belief.standing.probability[belief.standing.better < 0]).all()
    counts, chances = belief.to_dict()["not_released"], belief.not_released
    assert counts["found"] == 80 - released > 0
    assert abs(counts["expected"] - counts["found"]) < 4 * np.sqrt((chances * (1 - chances)).sum())
    said = f"he expects {counts['expected']:,.1f} of 80 not to be in the release, and {80 - released} are not"
    assert said in "\n".join(belief.lines())
