"""One-to-one assignment on large blocks: the totals of scipy's matrix, whatever way pairs are listed."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linear_sum_assignment

import maskwell as mw
from maskwell.attacks import one_to_one
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.bayes.pruned_sums import scores as scaled
from maskwell.attacks.one_to_one import Digests, NearPairs, best_of_matrix, dense, matrix, optimal
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

NAMES = ("A", "B", "C")


def points(rows, columns, sd, seed, skewed=False):
    """Return true and released points where the noise has variance 1, and offsets; some released ones are nobody's."""
    rng = np.random.default_rng(seed)
    true = rng.normal(size=(max(rows, columns), 3))
    true = np.exp(2 * true) if skewed else true
    released = (true + sd * rng.normal(size=true.shape)) / sd
    return true[rng.permutation(len(true))[:rows]] / sd, released[:columns], rng.normal(size=columns)


def total(scores, column):
    has = np.flatnonzero(column >= 0)
    assert len(np.unique(column[has])) == len(has)
    return len(has), scores[has, column[has]].sum()


@pytest.mark.parametrize("skewed", [False, True], ids=["normal", "skewed"])
@pytest.mark.parametrize("sd", [0.1, 1.0])
@pytest.mark.parametrize("sides", [(150, 150), (150, 152), (100, 300)], ids=str)
def test_listed_pairs_give_the_best_total_of_all(sides, sd, skewed):
    near = NearPairs.of(*points(*sides, sd, seed=4, skewed=skewed))
    scores = near.matrix()
    best = total(scores, dense(scores).column)
    for block in (near, matrix(scores)):
        found = optimal(block)
        count, sum_of = total(scores, found.column)
        assert count == best[0]
        assert sum_of == pytest.approx(best[1], rel=1e-9, abs=1e-9)
        assert best[1] - sum_of <= found.gap <= 1e-6 * max(abs(best[1]), 1.0)


@pytest.mark.parametrize("seed", range(12))
def test_as_many_pairs_as_can_be_come_before_the_total(seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(5, 60, 2)
    scores = np.where(
        rng.random((rows, columns)) < rng.uniform(0.01, 0.2), 100 * rng.normal(size=(rows, columns)), -np.inf
    )
    wide = scores if rows <= columns else scores.T
    assert total(wide, optimal(matrix(np.ascontiguousarray(wide))).column) == pytest.approx(
        total(wide, dense(wide).column)
    )


def test_equal_scores_are_no_trouble():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 3, (120, 120)).astype(float)
    assert total(scores, optimal(matrix(scores)).column) == total(scores, dense(scores).column)


def test_the_gap_bounds_what_is_missing_where_rounds_end_early(monkeypatch):
    """With one round and few pairs listed the assignment is not the best, and the gap says by how much at most."""
    for few in ("FIRST", "MORE", "BACK"):
        monkeypatch.setattr(one_to_one, few, 2)
    for most in ("MOST_AUCTIONS", "MOST_ROUNDS"):
        monkeypatch.setattr(one_to_one, most, 1)
    near = NearPairs.of(*points(300, 300, 1.0, seed=2))
    scores, found = near.matrix(), optimal(near)
    missing = total(scores, dense(scores).column)[1] - total(scores, found.column)[1]
    assert missing > 1.0
    assert found.gap >= missing


def test_a_large_matrix_goes_by_listed_pairs_either_way_round(monkeypatch):
    monkeypatch.setattr(one_to_one, "DENSE_CELLS", 100)
    scores = NearPairs.of(*points(60, 80, 0.5, seed=3)).matrix()
    for one in (scores, np.ascontiguousarray(scores.T)):
        assert total(one, best_of_matrix(one).column) == pytest.approx(total(one, dense(one).column))


def test_digests_tell_columns_apart_chunk_by_chunk():
    scores = np.random.default_rng(1).integers(0, 2, (40, 30)).astype(float)
    scores[:, 7] = scores[:, 3]
    digests, every = Digests.of(30), np.arange(30)
    for begin in range(0, 40, 7):
        rows = np.arange(begin, min(begin + 7, 40))
        digests.add(rows, every, scores[rows])
    assert digests.alike(every).tolist() == [3 if place == 7 else place for place in range(30)]


# In the intruders.


def masking_of(mask, count=160, gaps=0.1, seed=1):
    rng = np.random.default_rng(seed)
    values = np.exp(rng.normal(size=(count, 3))) * [1.0, 50.0, 2000.0]
    values[rng.random(values.shape) < gaps] = np.nan
    values[np.isnan(values).all(axis=1), 0] = 1.0
    columns = {name: pa.array(column, from_pandas=True) for name, column in zip(NAMES, values.T, strict=True)}
    groups = pa.array(rng.integers(0, 2, count).astype(str))
    described = [Column(name, "continuous", frozenset({"key"})) for name in NAMES]
    schema = Schema((*described, Column("G", "category", frozenset({"block"}), categories=("0", "1"))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, Table.from_frame(pa.table(columns | {"G": groups}), schema), seed=5)


NOISE = mw.IndependentNoise(NAMES, variance_ratio=0.2)
THINNED = mw.Chain((mw.Subsample(fraction=0.7), NOISE))
ONE = {"assignment": "one-to-one"}


def linked(plan, masking):
    """Return the links, their total score, and the gap."""
    risk, guess, _, _ = attack_by(plan, masking)
    return guess.found.tolist(), guess.score[guess.found >= 0].sum(), risk.gap


@pytest.mark.parametrize("options", [{}, {"direction": "to_original"}], ids=["to masked", "to original"])
@pytest.mark.parametrize(
    "mask", [NOISE, THINNED, mw.CorrelatedNoise(NAMES, sd_ratio=0.5)], ids=["all", "some", "corr"]
)
def test_trees_streams_and_matrices_give_one_assignment(mask, options, monkeypatch):
    masking, plan = masking_of(mask), mw.BayesIntruder(**ONE, **options)
    whole = linked(plan, masking)
    assert whole[2] == 0.0
    monkeypatch.setattr(one_to_one, "DENSE_CELLS", 50)
    listed = linked(plan, masking)
    monkeypatch.setattr("maskwell.attacks.candidate_scores.MOST_CELLS", 50)
    rounded = linked(plan, masking)
    monkeypatch.setattr("maskwell.attacks.candidate_scores.ROUNDED_CELLS", 50)
    streamed = linked(plan, masking)
    monkeypatch.setattr(scaled, "LEAST_PAIRS", 0)
    monkeypatch.setattr("maskwell.attacks.bayes.pruned_sums.assignment.DENSE_CELLS", 50)
    by_trees = linked(plan, masking)
    for other, rounding in (
        (listed, 1e-9),
        (rounded, 1e-9),
        (streamed, 1e-9),
        (by_trees, 1e-6),
    ):  # scores of trees are within eps
        assert other[0] == whole[0]
        assert other[1] == pytest.approx(whole[1], rel=rounding)
        assert 0 <= other[2] < 1e-6


def test_a_matcher_assigns_blocks_that_are_not_held(monkeypatch):
    masking, plan = masking_of(NOISE), mw.Linkage(**ONE, weights=mw.attacks.Fixed())
    whole = linked(plan, masking)
    monkeypatch.setattr(one_to_one, "DENSE_CELLS", 50)
    monkeypatch.setattr("maskwell.attacks.linkage.assignment.MOST_CELLS", 50)
    listed = linked(plan, masking)
    assert listed[1] == pytest.approx(whole[1], rel=1e-9)
    assert 0 <= listed[2] < 1e-6


def test_the_gap_is_a_figure_and_a_note():
    risk = mw.attack(mw.BayesIntruder(**ONE), masking_of(NOISE))
    assert risk.to_dict()["gap"] == risk.gap == 0.0
    assert has_code(risk.notes, "attacks.one_to_one_score", "attacks.one_to_one_distance")
    assert "gap" not in mw.attack(mw.BayesIntruder(), masking_of(NOISE)).to_dict()


def test_blocks_and_patterns_of_statuses_are_assigned_by_themselves(monkeypatch):
    """Large blocks, split by what is missing, against scipy on each component's matrix of squared distances."""
    masking = masking_of(mw.Chain([mw.IndependentNoise((name,), variance_ratio=0.1) for name in NAMES]), 900)
    monkeypatch.setattr(one_to_one, "DENSE_CELLS", 50)
    risk = mw.attack(mw.BayesIntruder(**ONE), masking)
    truth, release, sds = (
        masking.truth,
        masking.release.table,
        [law.noise.sds[0] for law in masking.card.laws],
    )
    sides = [
        np.column_stack([side.floats("G"), *(side.status(name) for name in NAMES)])
        for side in (truth, release)
    ]
    links = np.full(len(truth), -1)
    for kind in np.unique(sides[0], axis=0):
        i, j = (np.flatnonzero((side == kind).all(axis=1)) for side in sides)
        cost = np.zeros((len(i), len(j)))
        for name, status, sd in zip(NAMES, kind[1:], sds, strict=True):
            if status == 0:
                cost += ((truth.floats(name)[i][:, None] - release.floats(name)[j][None, :]) / sd) ** 2
        rows, columns = linear_sum_assignment(cost)
        links[i[rows]] = masking.order[j[columns]]
    assert np.unique(sides[0], axis=0, return_counts=True)[1].max() > 250
    assert risk.gap < 1e-6
    assert risk.rate == pytest.approx((links == np.arange(len(truth))).mean(), abs=1e-9)
