from __future__ import annotations

import numpy as np
import pytest

from maskwell.laws import Additive, Multiplicative, SkewedBias, Step
from maskwell.masking import apply
from maskwell.masks import BiasNoise

from .conftest import EXACT, numbers, plain, within_four

COLUMNS = ("A", "C")


@pytest.mark.parametrize("shape", ["normal", "lognormal"])
def test_means_stay_and_variances_grow_with_the_square_of_the_value(table, shape):
    mask = BiasNoise(COLUMNS, bias_sd=0.1, sd_ratio=0.3, shape=shape)
    z, x = apply(mask, table, seed=1, exact=True).masked.values(COLUMNS), table.values(COLUMNS)
    noise = z - x
    expected = 0.09 * x.var(axis=0, ddof=1) + 0.01 * x**2
    assert within_four(noise)
    assert within_four(noise**2 - expected)
    assert within_four(noise[:, 0] * noise[:, 1])


def test_the_bias_is_drawn_for_each_cell():
    table = plain(np.tile([[50.0, 50.0, 50.0]], (5000, 1)) + np.arange(5000)[:, None] * 1e-3)
    z = apply(BiasNoise(("A", "B", "C"), bias_sd=0.2, sd=0.0), table, seed=1, exact=True).masked.values(
        [*"ABC"]
    )
    theta = z / table.values([*"ABC"])
    correlations = np.corrcoef(theta.T)[np.triu_indices(3, 1)]
    assert np.abs(correlations).max() < 4 / np.sqrt(5000)


def test_the_skewed_bias_is_skewed_and_keeps_signs():
    table = plain(np.linspace(40, 60, 20_000)[:, None])
    released = {
        shape: apply(BiasNoise("A", bias_sd=0.5, sd=0.0, shape=shape), table, seed=1).masked.values("A")
        for shape in ("normal", "lognormal")
    }
    theta = {shape: z / table.values("A") for shape, z in released.items()}
    assert released["lognormal"].min() > 0
    assert released["normal"].min() < 0
    cubes = ((theta["lognormal"] - 1) / 0.5) ** 3
    skewness = 0.5 * (0.5**2 + 3)  # (exp(s^2) + 2) sqrt(exp(s^2) - 1) with exp(s^2) = 1 + 0.5^2
    assert within_four(cubes, skewness)


def test_the_card_names_bias_and_noise(table):
    law = BiasNoise(COLUMNS, bias_sd=0.1, sd_ratio=0.3).card(table).laws[0]
    assert isinstance(law, Additive)
    sds = tuple(float(f"{0.3 * sd:.1e}") for sd in table.values(COLUMNS).std(axis=0, ddof=1))
    assert law.spreads == tuple(Multiplicative(0.1, sd) for sd in sds)
    skewed = BiasNoise(COLUMNS, bias_sd=0.1, sd=(1.23, 4.56), shape="lognormal").card(table).laws[0]
    assert isinstance(skewed, SkewedBias)
    assert (skewed.bias_sd, skewed.sds) == (0.1, (1.23, 4.56))


def test_constant_columns_take_noise_of_a_given_size():
    table = plain(np.column_stack([np.full(50, 3.0), numbers(50)[:, 0]]))
    assert BiasNoise("A", bias_sd=0.1, sd=1.0).card(table).columns == ("A",)
    kept = BiasNoise(("A", "B"), bias_sd=0.1, sd=(1.0, 2.0), skip_constant=True).card(table).laws[0]
    assert (kept.columns, kept.spreads) == (("B",), (Multiplicative(0.1, 2.0),))


def test_stretching_a_column_stretches_the_additive_noise_alone(table):
    wide = plain(table.values([*"ABC"]) * 7)
    for shape in ("normal", "lognormal"):
        mask = BiasNoise("A", bias_sd=0.1, sd_ratio=0.3, shape=shape)
        before, after = mask.card(table, EXACT).laws[0], mask.card(wide, EXACT).laws[0]
        sizes = [law.sds[0] if shape == "lognormal" else law.spreads[0].sd for law in (before, after)]
        assert sizes[1] == pytest.approx(7 * sizes[0], rel=1e-12)


def test_a_plan_says_everything_that_is_wrong_with_it(messages):
    wrong = {"sd": (1.0, -1.0), "sd_ratio": 0.1, "shape": "uniform", "transform": "log"}
    assert messages(lambda: BiasNoise("A", bias_sd=-0.1, **wrong)) == (
        "BiasNoise: give exactly one of sd_ratio and sd",
        "bias_sd must not be negative",
        "sd has 2 figures for 1 columns",
        "sd must not be negative",
        "shape must be 'normal' or 'lognormal', not 'uniform'",
        "BiasNoise has a spread of its own: leave transform and spread out",
    )
    assert messages(lambda: BiasNoise("A", bias_sd=0, sd=0)) == (
        "bias_sd and the additive noise are both zero: nothing would be masked",
    )
    spread = Step((1.0,), (1.0, 2.0))
    assert len(messages(lambda: BiasNoise("A", bias_sd=0.1, sd=1.0, spread=spread))) == 1
