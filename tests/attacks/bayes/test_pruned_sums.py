"""The search that leaves pairs out finds what comparing all pairs finds, and says what it leaves out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from maskwell.attacks.bayes.posterior_odds import SURE, against_others
from maskwell.attacks.bayes.pruned_sums import trees
from maskwell.attacks.bayes.pruned_sums.posterior_sums import PrunedSearch
from maskwell.attacks.bayes.pruned_sums.trees import Points, Trees
from maskwell.attacks.candidate_scores import SAME_SCORE, BestCandidates
from maskwell.errors import BadInput, BadPlan
from maskwell.kernels.log_sums import log_sum

EPS = (1e-1, 1e-2, 1e-3, 1e-6, 1e-9)


def halves(here, there):
    """Return minus half the squared distances of all pairs, summed in order of the coordinates."""
    total = np.zeros((len(here), len(there)))
    for k in range(here.shape[1]):
        apart = there[:, k] - here[:, k][:, None]
        total += apart * apart
    return -0.5 * total


@dataclass
class Compared:
    """All pairs: scores (minus infinity across blocks), the best links, log f(z), and the largest weights' rest."""

    scores: np.ndarray
    best: BestCandidates
    log_f: np.ndarray
    rest: np.ndarray


def compared(known, released, log_f, units=None):
    """Score all pairs; with units, weights leave the known record out."""
    same = known.blocks[:, None] == released.blocks
    possible = same & np.isfinite(log_f)
    scores = np.where(
        possible, halves(known.values, released.values) - np.where(np.isfinite(log_f), log_f, 0.0), -np.inf
    )
    best, rows = BestCandidates.nothing(len(known.values)), np.arange(len(known.values))
    with np.errstate(all="ignore"):
        weights = scores if units is None else against_others(scores, units)
        shares = 0.0 if units is None else np.exp((scores - np.log(units)).max(axis=1))
    best.add(rows, np.arange(len(released.values)), scores, weights)
    best.ties[np.isneginf(best.score)] = 0
    best.place[np.isneginf(best.score)] = -1
    best.second[np.isneginf(best.second_score)] = -1
    rest = np.broadcast_to(np.maximum(1 - np.minimum(shares, 1.0), SURE), rows.shape)
    return Compared(scores, best, log_f, rest)


def by_truth(known, true, released, units, *, averaged=True):
    """Score all pairs against the true records."""
    logs = np.where(true.blocks[:, None] == released.blocks, halves(true.values, released.values), -np.inf)
    log_f = log_sum(logs, axis=0) - np.log(np.maximum(units, 1))
    return compared(known, released, log_f, units if averaged else None)


def check_same(found, whole, eps):
    """The same links, ties and seconds; sums within what is said to be neglected, rounding aside."""
    for name in ("place", "ties", "second"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole.best, name), err_msg=name)
    linked = whole.best.place >= 0
    assert (found.neglected <= eps).all()
    assert np.isneginf(found.log_total[~linked]).all()
    total, rest = whole.best.log_total[linked], whole.rest[linked]
    size = 1 + np.abs(whole.log_f[np.isfinite(whole.log_f)]).max(initial=0.0)
    allowed = np.log1p(found.neglected[linked]) + 1e-14 * np.abs(total) + 1e-14 * size / rest
    assert (np.abs(found.log_total[linked] - total) <= allowed + 1e-12).all()
    np.testing.assert_allclose(found.score[linked], whole.best.score[linked], atol=eps, rtol=1e-12)


def check_standing(pruning, whole, rng, most):
    """The same numbers of higher and of equal scores, up to the most."""
    rows, places = (rng.integers(0, count, 25) for count in whole.scores.shape)
    own = whole.scores[rows, places]
    rows, places, own = (side[np.isfinite(own)] for side in (rows, places, own))
    margin = (SAME_SCORE * np.maximum(np.abs(own), 1.0))[:, None]
    above = (whole.scores[rows] > own[:, None] + margin).sum(axis=1)
    below = (whole.scores[rows] < own[:, None] - margin).sum(axis=1)
    better, ties = pruning.standing(rows, places, most=most)
    np.testing.assert_array_equal(better, np.minimum(above, most))
    counted = above < most
    np.testing.assert_array_equal(ties[counted], (whole.scores.shape[1] - above - below)[counted])


def file_of(kind, rng):
    """Draw true and released records of some kind, in blocks; the released ones in random order."""
    count, fields = int(rng.choice([1, 2, 3, 5, 20, 60, 300])), int(rng.choice([1, 2, 3, 4, 5, 9]))
    true = rng.normal(size=(count, fields)) * float(rng.choice([0.1, 1, 3, 10, 100]))
    if kind == "heavy tails":
        true = rng.standard_t(1, size=(count, fields)) * float(rng.choice([0.1, 1, 10]))
    if kind == "grid":
        true = np.round(true)
    if kind == "crowds":
        true = true[rng.integers(0, max(count // 3, 1), count)]
    released = true + rng.normal(size=true.shape)
    blocks, order = rng.integers(0, int(rng.choice([1, 1, 2, 7])), count), rng.permutation(count)
    if kind == "lattice":
        true, released = np.round(true / 2) * 2, np.round(released)
    if kind == "crowds":
        order = rng.integers(0, max(count // 2, 1), count)
    if kind == "half alike":
        order[: count // 2] = order[0]
    order = order[: int(rng.integers(1, count + 1))]
    return Points(true, blocks), Points(released[order], blocks[order])


KINDS = ("normal", "heavy tails", "grid", "crowds", "lattice", "half alike")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [1, 2])
def test_links_are_those_of_all_pairs(kind, seed):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    for _ in range(150):
        true, released = file_of(kind, rng)
        units, eps = np.bincount(true.blocks, minlength=7)[released.blocks], float(rng.choice(EPS))
        some = np.sort(rng.permutation(len(true.values))[: int(rng.integers(1, len(true.values) + 1))])
        known = true if rng.random() < 0.5 else true.take(some)
        pruning = PrunedSearch.coherent(known, true, released, units, eps)
        whole = by_truth(known, true, released, units)
        check_same(pruning.best(), whole, eps)
        check_standing(pruning, whole, rng, int(rng.choice([1, 3, 10])))


@pytest.mark.parametrize("kind", KINDS)
def test_records_that_are_only_nearly_known_weigh_by_their_scores(kind):
    rng = np.random.default_rng([3, KINDS.index(kind)])
    for _ in range(100):
        true, released = file_of(kind, rng)
        known = Points(true.values + 0.3 * rng.normal(size=true.values.shape), true.blocks)
        units, eps = np.bincount(true.blocks, minlength=7)[released.blocks], float(rng.choice(EPS))
        pruning = PrunedSearch.coherent(known, true, released, units, eps, averaged=False)
        whole = by_truth(known, true, released, units, averaged=False)
        check_same(pruning.best(), whole, eps)
        check_standing(pruning, whole, rng, 3)


@pytest.mark.parametrize("kind", KINDS)
def test_given_offsets_serve_other_marginals_and_the_other_direction(kind):
    rng = np.random.default_rng([4, KINDS.index(kind)])
    for _ in range(100):
        true, released = file_of(kind, rng)
        offset, eps = np.round(3 * rng.normal(size=len(released.values)), 1), float(rng.choice(EPS))
        offset[rng.random(len(offset)) < 0.1] = -np.inf
        pruning, whole = PrunedSearch.given(true, released, offset, eps), compared(true, released, -offset)
        check_same(pruning.best(), whole, eps)
        check_standing(pruning, whole, rng, 10)
        back = PrunedSearch.given(released, true, np.zeros(len(true.values)), eps)
        check_same(back.best(), compared(released, true, np.zeros(len(true.values))), eps)


def large(count=3000, fields=3, ratio=0.1, seed=5):
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(count, fields)) / np.sqrt(ratio)
    released = (true + rng.normal(size=true.shape))[rng.permutation(count)]
    blocks = np.zeros(count, np.int64)
    return Points(true, blocks), Points(released, blocks), np.full(count, count)


@pytest.mark.parametrize("ratio", [0.001, 0.01, 0.1, 1.0])
@pytest.mark.parametrize("eps", [1e-1, 1e-3, 1e-6])
def test_every_posterior_is_right_within_what_is_said_to_be_neglected(ratio, eps):
    true, released, units = large(1200, ratio=ratio)
    found = PrunedSearch.coherent(true, true, released, units, eps).best()
    whole = by_truth(true, true, released, units)
    check_same(found, whole, eps)
    own = np.exp(found.log_weight - found.log_total)
    exact = np.exp(against_others(whole.best.score, units) - whole.best.log_total)
    rounding = exact * (1 - exact) * 1e-13 / whole.rest + exact * 1e-15 / whole.rest
    assert (np.abs(own - exact) <= found.neglected * np.maximum(own, exact) + rounding + 1e-12).all()
    assert found.neglected.max() > eps / 100 or ratio == 1.0  # something was left out, and it was said


def test_close_calls_are_made_whole_and_only_these():
    true, released, units = large()
    pruning = PrunedSearch.coherent(true, true, released, units, 0.1)
    before = pruning.offset.copy()
    pruning.best()
    exact = -by_truth(true, true, released, units).log_f
    changed = pruning.offset != before
    assert 0 < changed.mean() < 0.9
    np.testing.assert_allclose(pruning.offset[changed], exact[changed], atol=1e-12)
    assert (before >= exact - 1e-12).all()
    assert (before <= exact + np.log1p(pruning.unsure) + 1e-12).all()
    np.testing.assert_array_equal(pruning.log_f, -pruning.offset)


def test_pairs_have_the_scores_of_the_links():
    true, released, units = large(500)
    pruning = PrunedSearch.coherent(true, true, released, units, 1e-3)
    found, rows = pruning.best(), np.arange(500)
    np.testing.assert_array_equal(pruning.pairs(rows, found.place), found.score)
    np.testing.assert_array_equal(pruning.pairs(rows, found.second), found.second_score)


def test_turns_order_and_names_of_blocks_change_no_link(monkeypatch):
    rng = np.random.default_rng(6)
    true, released, _ = large(900)
    blocks = rng.integers(0, 3, 900)
    true, released = Points(true.values, blocks), Points(released.values, rng.integers(0, 3, 900))
    units = np.bincount(blocks)[released.blocks]
    one = PrunedSearch.coherent(true, true, released, units, 1e-3).best()
    monkeypatch.setattr(trees, "AT_ONCE", 7)
    order = rng.permutation(900)
    renamed = Points(true.values[order], 9 - 4 * true.blocks[order])
    there = Points(released.values, 9 - 4 * released.blocks)
    two = PrunedSearch.coherent(renamed, renamed, there, units, 1e-3).best()
    for name in ("place", "second", "ties"):
        np.testing.assert_array_equal(getattr(one, name)[order], getattr(two, name))
    np.testing.assert_allclose(one.log_total[order], two.log_total, atol=2e-3)
    np.testing.assert_allclose(one.score[order], two.score, atol=2e-3)


def test_memory_grows_as_the_records_do():
    def held(count):
        true, _, _ = large(count)
        grove = Trees.of(true, np.zeros(count)).grove
        return sum(part.nbytes for part in grove)

    assert held(20_000) <= 11 * held(2_000)
    assert held(20_000) <= 40 * 20_000 * 3 * 8


def test_nobody_to_find_and_nobody_who_searches():
    true, released, units = large(20)
    elsewhere = Points(released.values, released.blocks + 1)
    found = PrunedSearch.coherent(true, true, elsewhere, units, 1e-3).best()
    assert (found.place == -1).all()
    assert (found.second == -1).all()
    assert (found.ties == 0).all()
    assert np.isneginf(found.score).all()
    assert np.isneginf(found.log_total).all()
    nobody = np.empty(0, np.int64)
    assert PrunedSearch.given(true.take(nobody), released, np.zeros(20), 1e-3).best().place.shape == (0,)
    empty = PrunedSearch.given(true, released.take(nobody), np.zeros(0), 1e-3).best()
    assert (empty.place == -1).all()
    alone = PrunedSearch.coherent(true.take(nobody + 0), true, released, units, 1e-3)
    assert alone.best().place.shape == (0,)


@pytest.mark.parametrize("eps", [0.0, -1e-3, 0.2, np.nan])
def test_bad_shares_are_refused(eps):
    true, released, units = large(5)
    with pytest.raises(BadPlan, match="eps"):
        PrunedSearch.coherent(true, true, released, units, eps)
    with pytest.raises(BadPlan, match="eps"):
        PrunedSearch.given(true, released, np.zeros(5), eps)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_bad_coordinates_are_refused_without_their_values(value):
    with pytest.raises(BadInput, match="finite coordinates") as caught:
        Points(np.full((2, 2), value), np.zeros(2, np.int64))
    assert "200" not in str(caught.value)
