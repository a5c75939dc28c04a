"""What the intruder believes: thresholds, ranks and probabilities by hand, and how it is said and drawn."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwell as mw
from maskwell.attacks.bayes.belief import THRESHOLDS, Belief, BeliefStanding, LinkChances
from maskwell.attacks.bayes.pictures import belief_picture, draw_belief
from maskwell.errors import BadPlan, CannotWrite

from .test_reliability import draws

NAN = np.nan


def believed(better, ties, truth, probability, share, threshold=0.0, labels=None):
    standing = BeliefStanding(np.array(better), np.array(ties), np.array(truth, float))
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
        Belief(BeliefStanding(better[o], ties[o], truth[o]), said[o], right[o] / 3, 0.0, None, truth[o])
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
    belief = Belief(BeliefStanding(np.array(better, int), np.array(ties, int), blank), blank, blank)
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
    chances = LinkChances.of(values, weights)
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


def test_the_worst_come_first_and_by_id(six):
    worst = six.worst(3)
    assert worst["target_id"].to_pylist() == ["anna", "bert", "carl"]
    assert worst["probability_of_truth"].to_pylist() == [0.9, 0.4, 0.3]
    assert worst["rank"].to_pylist() == [1, 1, 2]
    assert six.worst(100).num_rows == 4
    assert six.worst(100)["rank"].to_pylist()[-1] is None  # held for impossible: no rank
    for bad in (-1, 2.5, True, "3"):
        with pytest.raises(BadPlan, match="whole number of targets from 0 on"):
            six.worst(bad)
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
    assert repr(six).split("\n") == lines[1:]
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
    assert six.plot(tmp_path / "d.png").read_bytes() == first
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
        mw.attack(mw.BayesIntruder(direction="to_original", targets=mw.attacks.Sample(20)), masking),
    )
    ids = everybody.table["target_id"].to_pylist()
    rows = [ids.index(one) for one in some.table["target_id"].to_pylist()]
    assert len(rows) == 20
    for name in ("better", "ties", "probability"):
        whole = getattr(everybody.belief.standing, name)
        np.testing.assert_allclose(getattr(some.belief.standing, name), whole[rows], rtol=1e-12)


def test_targets_that_are_not_in_the_release(make_amounts):
    """He is asked about all units, half of which were released, and does not know which."""
    mask = mw.Chain((mw.IndependentNoise(("A", "B"), variance_ratio=0.1), mw.Subsample(0.5)))
    masking = mw.apply(mask, make_amounts(80, seed=4), seed=4)
    plan = mw.BayesIntruder(response_knowledge=False)
    belief, released = mw.attack(plan, masking).belief, len(masking.order)
    assert (belief.targets, belief.findable) == (80, released)
    assert np.isnan(belief.standing.probability[belief.standing.better < 0]).all()
    counts, chances = belief.to_dict()["not_released"], belief.not_released
    assert counts["found"] == 80 - released > 0
    assert abs(counts["expected"] - counts["found"]) < 4 * np.sqrt((chances * (1 - chances)).sum())
    said = f"he expects {counts['expected']:,.1f} of 80 not to be in the release, and {80 - released} are not"
    assert said in "\n".join(belief.lines())
