"""The propensity score: its model against statsmodels, its mean under no difference against theory."""

import numpy as np
import pyarrow as pa
import pytest

from maskwell.masking import apply
from maskwell.masks import IndependentNoise, Subsample
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.utility import compare
from maskwell.utility import propensity as room
from maskwell.utility.pairs import TruthAndRelease
from maskwell.utility.propensity import propensity

NAMES = ("x", "y")


def table_of(count, seed=0):
    values = np.random.default_rng(seed).normal(10, 2, (count, 2))
    columns = tuple(Column(name, "continuous", frozenset({"key"})) for name in NAMES)
    return Table.from_frame(pa.table(dict(zip(NAMES, values.T, strict=True))), Schema(columns))


def test_the_logistic_fit_is_that_of_statsmodels():
    import statsmodels.api as sm

    rng = np.random.default_rng(1)
    x = rng.normal(size=(800, 3))
    y = (rng.random(800) < 1 / (1 + np.exp(-x @ [1.0, -0.5, 0.2]))).astype(float)
    expected = sm.Logit(y, sm.add_constant(x)).fit(disp=0).predict()
    np.testing.assert_allclose(room._logistic(room._basis(x), y), expected, atol=1e-5)


def test_columns_that_determine_each_other_are_one_parameter():
    x = np.random.default_rng(2).normal(size=(500, 2))
    assert room._basis(np.column_stack([x, x @ [1.0, 2.0], np.ones(500)])).shape[1] == 2


def test_two_samples_drawn_apart_have_twice_the_expected_pmse():
    """Only the released records vary in the expected value: with c = 1/2 two samples have twice as much."""
    rng, found = np.random.default_rng(3), []
    for _ in range(60):
        x = rng.normal(size=(800, 4))
        chances = room._logistic(room._basis(x), np.repeat([0.0, 1.0], 400))
        found.append(((chances - 0.5) ** 2).mean() / (4 * 0.5**3 / 800))
    error = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - 2) < 4 * error + 0.05


def test_the_verdict_says_what_two_samples_would_give():
    """That two samples have 1 / (1 - c) times the expected pMSE is tested above."""
    whole = compare(apply(IndependentNoise(NAMES, variance_ratio=0.3), table_of(600), seed=1))
    (told,) = [one for one in whole.judgements if one.figure == "propensity score"]
    assert "records drawn from a law fitted to the true ones" in told.said
    assert "two independent samples of one law give about 2.0" in told.said
    assert "fresh" not in told.sentence
    part = propensity(TruthAndRelease(apply(Subsample(fraction=0.25), table_of(4_000), seed=1)))
    share = 1 - 4_000 / part.records
    assert part.two_samples == pytest.approx(1 / (1 - share))


def test_little_noise_is_less_than_fresh_records_and_much_noise_is_more():
    table = table_of(3_000)
    little = propensity(TruthAndRelease(apply(IndependentNoise(NAMES, variance_ratio=0.01), table, seed=1)))
    much = propensity(TruthAndRelease(apply(IndependentNoise(NAMES, variance_ratio=0.5), table, seed=1)))
    assert little.ratio < 1 < 10 < much.ratio
    assert little.standardised < 0 < much.standardised
    assert little.expected == pytest.approx(5 * 0.5**3 / 6_000)  # two columns, two squares, one product


def test_a_subsample_has_its_own_share_and_looks_like_the_rest():
    found = propensity(TruthAndRelease(apply(Subsample(fraction=0.25), table_of(4_000), seed=1)))
    share = 1 - 4_000 / found.records
    assert found.expected == pytest.approx((found.parameters - 1) * (1 - share) ** 2 * share / found.records)
    assert found.ratio < 3


def test_large_files_are_sampled_by_the_seed(monkeypatch):
    monkeypatch.setattr(room, "LARGEST", 500)
    sides = TruthAndRelease(apply(IndependentNoise(NAMES, variance_ratio=0.3), table_of(2_000), seed=1))
    first, again, other = (propensity(sides, seed) for seed in (1, 1, 2))
    assert first.sampled == 500
    assert first.records == 1_000
    assert first == again != other
