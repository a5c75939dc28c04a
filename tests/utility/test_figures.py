"""Distances, quantiles and overlaps against closed forms and another program."""

from math import sqrt
from statistics import NormalDist

import numpy as np
import pytest

from maskwell.utility.figures import (
    PROBABILITIES,
    ColumnSpread,
    EmpiricalDistribution,
    between_shares,
    kolmogorov_smirnov,
    overlap,
)
from maskwell.utility.hellinger import hellinger
from maskwell.utility.moments import pairwise_moments
from maskwell.utility.verdicts import RULES


def test_the_largest_difference_of_two_distribution_functions_is_that_of_scipy():
    from scipy.stats import ks_2samp

    rng = np.random.default_rng(1)
    x, z = np.rint(rng.normal(0, 3, 500)), np.rint(rng.normal(0.4, 4, 300))
    found = kolmogorov_smirnov(EmpiricalDistribution.of(x, None), EmpiricalDistribution.of(z, None))
    assert found == pytest.approx(ks_2samp(x, z).statistic, abs=1e-12)


def test_a_weight_counts_a_record_so_many_times():
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=300), rng.integers(0, 5, 300).astype(float)
    x[::7] = np.nan
    repeated = np.repeat(x, w.astype(int))
    weighted, plain = EmpiricalDistribution.of(x, w), EmpiricalDistribution.of(repeated, None)
    assert weighted.quantiles() == plain.quantiles()
    assert kolmogorov_smirnov(weighted, plain) < 1e-12
    assert ColumnSpread.of(x, w).mean == pytest.approx(np.nanmean(repeated))


def test_quantiles_are_the_inverse_of_the_distribution_function():
    x = np.random.default_rng(3).normal(size=997)
    expected = np.quantile(x, PROBABILITIES, method="inverted_cdf")
    assert EmpiricalDistribution.of(x, None).quantiles() == tuple(expected)


def test_the_limits_of_both_distances_are_reached_where_a_normal_variance_grows_by_half():
    before, after = NormalDist(), NormalDist(0, sqrt(1.5))
    share = (np.arange(200_000) + 0.5) / 200_000
    x = np.array([before.inv_cdf(p) for p in share])
    first, second = EmpiricalDistribution.of(x, None), EmpiricalDistribution.of(x * after.stdev, None)
    assert kolmogorov_smirnov(first, second) == pytest.approx(RULES["KS"].good, abs=0.002)
    assert hellinger(x, x * after.stdev).value == pytest.approx(RULES["Hellinger"].good, abs=0.005)


def test_shares_with_nothing_in_common_are_one_apart():
    assert between_shares(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1
    assert between_shares(np.array([0.3, 0.7]), np.array([0.3, 0.7])) == pytest.approx(0, abs=1e-7)


def test_intervals_overlap_as_karr_and_others_define_it():
    assert overlap((5, 1), (5, 1)) == pytest.approx(1)
    assert overlap((5, 1), (6, 1)) == pytest.approx(1 - 1 / (2 * 1.959964))
    assert overlap((5, 1), (5, 2)) == pytest.approx((1 + 0.5) / 2)
    assert overlap((5, 1), (50, 1)) == 0
    assert overlap((5, 0), (5, 0)) == 1
    assert np.isnan(overlap((5, 1), (float("nan"), 1)))


def test_correlations_are_of_the_records_where_both_are_open():
    rng = np.random.default_rng(5)
    x = rng.normal(size=(70_000, 3)) @ rng.normal(size=(3, 3)) + 1e6
    x[rng.random(x.shape) < 0.2] = np.nan
    w = rng.uniform(0.5, 2, len(x))
    columns = dict(zip("abc", x.T, strict=True))
    found = pairwise_moments("abc", columns.__getitem__, w, np.full(3, 1e6)).correlations
    for i in range(3):
        for j in range(i):
            both = ~np.isnan(x[:, i] + x[:, j])
            expected = np.cov(x[both, i], x[both, j], aweights=w[both])
            assert found[i, j] == pytest.approx(expected[0, 1] / sqrt(expected[0, 0] * expected[1, 1]))
