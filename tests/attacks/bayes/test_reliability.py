"""Whether the intruder is as sure as he should be: by hand, and by simulation of who is and of who is not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from maskwell.attacks.bayes.reliability import EDGES, reliability_of


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
