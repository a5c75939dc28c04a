from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.special import gammaln, log_ndtr, ndtr

from maskwell.kernels.enumerated_gradient import draw_combinations, slopes
from maskwell.kernels.enumerated_likelihood import (
    BLOCK,
    GAUSSIAN,
    LOGIT,
    NEGATIVE_BINOMIAL,
    ORDERED,
    POISSON,
    PROBIT,
    CategoryRecords,
    EnumerationShape,
    room_for,
    totals,
)
from maskwell.kernels.normal_tails import normal_tail, quick_exp, scaled_tail, softplus

FAMILIES = (GAUSSIAN, PROBIT, LOGIT, ORDERED, POISSON, NEGATIVE_BINOMIAL)
LEVELS = (3, 2)
CUTS = np.array([-1e4, -0.6, 0.4, 1e4])


@njit
def every(function, x):
    return np.array([function(each) for each in x])


def test_exponentials_and_chances_keep_twelve_digits():
    x = np.concatenate([np.linspace(-700, 700, 4001), np.linspace(-1, 1, 4001)])
    assert np.abs(every(quick_exp, x) / np.exp(x) - 1).max() < 1e-12
    u = np.concatenate([np.linspace(0, 37, 4001), np.linspace(0, 3, 4001)])
    assert np.abs(every(normal_tail, u) / ndtr(-u) - 1).max() < 1e-12
    assert np.abs(every(scaled_tail, u) / np.exp(log_ndtr(-u) + u**2 / 2) - 1).max() < 1e-11
    x = np.concatenate([np.linspace(-600, 600, 4001), np.linspace(-3, 3, 4001)])
    assert np.abs(every(softplus, x) / np.logaddexp(0, x) - 1).max() < 1e-12


def test_far_out_they_neither_overflow_nor_vanish():
    assert every(quick_exp, np.array([-1e9, 1e9])) == pytest.approx(np.exp([-708.0, 708.0]))
    assert every(normal_tail, np.array([1e9])) == pytest.approx(ndtr(-37.5))
    assert np.all(every(normal_tail, np.array([38.0, 100.0])) > 0)


def make(family: int, n: int, seed: int, *, counts: bool = False) -> tuple[CategoryRecords, EnumerationShape]:
    """Return two unknown categories of 3 and 2 levels: the second and the response depend on levels, and on w with it.

    Some cells are known, some responses missing.
    """
    rng = np.random.default_rng(seed)
    w = rng.normal(size=(2, n))
    weight = rng.random((5, n))
    weight[:, rng.random(n) < 0.1] = 1.0
    weight[:3, : n // 5] = np.eye(3)[rng.integers(0, 3, n // 5)].T
    if family in (PROBIT, LOGIT):
        response = rng.random((2, n))
        response[:, : n // 2] = np.eye(2)[rng.integers(0, 2, n // 2)].T
        response[:, ::7] = 1.0
    else:
        own = rng.normal(size=n) if family == GAUSSIAN else rng.integers(0, 3 if family == ORDERED else 9, n)
        response = np.stack([own, (np.arange(n) % 7 > 0)]).astype(float)
    known = np.ascontiguousarray(np.vstack([np.ones(n), w]))
    # two sticks with (1, w1), one with (1, w1) and a difference by the first category, interest with (1, w1, w2)
    # and differences in 1 and w2, the same for two of the six combinations
    begin = np.array([0, 2, 4, 6, 9])
    source = np.array([0, 1, 0, 1, 0, 1, 0, 1, 2])
    shift, turn, move = np.array([9, 9, 9, 12]), np.array([0, 0, 0, 1, 3]), np.array([0, 0, 2])
    variant = np.array([0, 1, 2, 3, 4, 4])
    many = rng.integers(1, 5, n).astype(float) if counts else np.empty(0)
    return CategoryRecords(known, weight, response, many), EnumerationShape(
        np.array(LEVELS), begin, source, shift, turn, move, variant, family
    )


def extra_of(family: int) -> np.ndarray:
    return CUTS if family == ORDERED else np.array([0.3])


def plain_logs(
    records: CategoryRecords, shape: EnumerationShape, linear: np.ndarray, extra: np.ndarray
) -> np.ndarray:
    """The log of every combination's term, combinations x records, written out."""
    _, w1, w2 = records.known
    sticks = [linear[2 * s] + linear[2 * s + 1] * w1 for s in range(3)]
    out = []
    for first in range(3):
        chance = [log_ndtr(sticks[0]), log_ndtr(-sticks[0]) + log_ndtr(sticks[1])]
        chance += [log_ndtr(-sticks[0]) + log_ndtr(-sticks[1])]
        for second in range(2):
            v = shape.variant[2 * first + second]
            eta = linear[6] + linear[7] * w1 + linear[8] * w2
            eta = eta + linear[12 + 2 * v] + linear[13 + 2 * v] * w2
            own = sticks[2] + linear[9 + first]
            with np.errstate(divide="ignore"):
                weights = np.log(records.weight[first]) + np.log(records.weight[3 + second])
            log = chance[first] + log_ndtr(own if second == 0 else -own) + weights
            out.append(log + response_logs(records, shape.family, eta, extra))
    return np.array(out)


def response_logs(records: CategoryRecords, family: int, eta: np.ndarray, extra: np.ndarray) -> np.ndarray:
    first, second = records.response
    if family in (PROBIT, LOGIT):
        log = log_ndtr if family == PROBIT else lambda x: -np.logaddexp(0, -x)
        return np.log(first * np.exp(log(-eta)) + second * np.exp(log(eta)))
    if family == GAUSSIAN:
        return second * (stats.norm.logpdf(first, eta, np.exp(extra[0])) + extra[0] + 0.5 * np.log(2 * np.pi))
    if family == ORDERED:
        codes = first.astype(int)
        return second * np.log(ndtr(extra[codes + 1] - eta) - ndtr(extra[codes] - eta))
    if family == POISSON:
        return second * (stats.poisson.logpmf(first, np.exp(eta)) + gammaln(first + 1))
    k = np.exp(extra[0])
    constant = gammaln(first + k) - gammaln(k) - gammaln(first + 1)
    return second * (stats.nbinom.logpmf(first, k, k / (k + np.exp(eta))) - constant)


def plain_total(
    records: CategoryRecords, shape: EnumerationShape, linear: np.ndarray, extra: np.ndarray
) -> float:
    each = np.logaddexp.reduce(plain_logs(records, shape, linear, extra), axis=0)
    return float(each @ records.counts if len(records.counts) else each.sum())


def total(records: CategoryRecords, shape: EnumerationShape, linear: np.ndarray, extra: np.ndarray) -> float:
    out = np.empty(1)
    totals(records, shape, linear[None], extra[None], room_for(shape), out)
    return float(out[0])


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_totals_are_sums_over_all_combinations(family, counts):
    records, shape = make(family, 2 * BLOCK + 37, family, counts=counts)
    rng = np.random.default_rng(1)
    linear, extra = 0.7 * rng.normal(size=(4, 22)), np.tile(extra_of(family), (4, 1))
    out = np.empty(4)
    totals(records, shape, linear, extra, room_for(shape), out)
    for own, found in zip(linear, out, strict=True):
        assert found == pytest.approx(plain_total(records, shape, own, extra[0]), rel=1e-11)


@pytest.mark.parametrize("counts", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_slopes_are_differences(family, counts):
    records, shape = make(family, BLOCK + 20, 10 + family, counts=counts)
    linear, extra = 0.6 * np.random.default_rng(2).normal(size=22), extra_of(family)
    by = np.empty(22), np.empty(len(extra))
    found = slopes(records, shape, linear, extra, room_for(shape), by)
    assert found == pytest.approx(total(records, shape, linear, extra), rel=1e-13)
    for k in range(22):
        step = 1e-5 * np.eye(22)[k]
        ahead, behind = (total(records, shape, linear + s * step, extra) for s in (1, -1))
        assert by[0][k] == pytest.approx((ahead - behind) / 2e-5, rel=1e-6, abs=1e-5)
    for k in range(len(extra)):
        if abs(extra[k]) < 1e3:
            step = 1e-5 * np.eye(len(extra))[k]
            ahead, behind = (total(records, shape, linear, extra + s * step) for s in (1, -1))
            assert by[1][k] == pytest.approx((ahead - behind) / 2e-5, rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("family", [GAUSSIAN, POISSON, NEGATIVE_BINOMIAL])
def test_a_response_far_from_every_prediction_keeps_its_likelihood(family):
    records, shape = make(family, 50, 30)
    records.response[:, 3] = 500.0, 1.0
    linear, extra = np.zeros(22), np.array([-1.0])
    linear[12::2] = [-1.0, 0.0, 1.0, 2.0, 3.0]
    assert total(records, shape, linear, extra) == pytest.approx(
        plain_total(records, shape, linear, extra), rel=1e-11
    )


def test_what_has_hardly_a_likelihood_has_none():
    records, shape = make(PROBIT, 50, 31)
    records.response[:, 3] = 0.0, 1.0
    linear = np.zeros(22)
    linear[6] = -40.0
    assert total(records, shape, linear, np.zeros(1)) == -np.inf
    by = np.empty(22), np.empty(1)
    assert slopes(records, shape, linear, np.zeros(1), room_for(shape), by) == -np.inf
    linear[6] = np.nan
    assert not np.isfinite(total(records, shape, linear, np.zeros(1)))


def test_combinations_are_drawn_by_their_chances():
    records, shape = make(LOGIT, 40, 40)
    linear, extra = 0.7 * np.random.default_rng(3).normal(size=22), np.zeros(1)
    logs = plain_logs(records, shape, linear, extra)
    chances = np.exp(logs - np.logaddexp.reduce(logs, axis=0))
    times, rng, out = 2000, np.random.default_rng(4), np.empty(40)
    found = np.zeros((6, 40))
    for _ in range(times):
        draw_combinations(records, shape, (linear, extra), room_for(shape), rng.random(40), out)
        found[out.astype(int), np.arange(40)] += 1
    error = np.sqrt(chances * (1 - chances) / times)
    assert np.all(np.abs(found / times - chances) <= 4.8 * error + 1e-12)
