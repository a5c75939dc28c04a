"""The table of a fit."""

from __future__ import annotations

import json
from math import inf, isnan
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm, rankdata

from maskwell.analysis.results.draws import Draws
from maskwell.analysis.results.summary import Diagnostics, Summary
from maskwell.errors import BadPlan

DRAWS = 4000
QUANTILE = 1.959964


def test_a_row_has_the_moments_of_the_draws(make_posterior: Any) -> None:
    row = make_posterior().summary()["x1"]
    assert abs(row.estimate - 1.0) < 4 * 0.05 / np.sqrt(DRAWS)
    assert abs(row.sd - 0.05) < 4 * 0.05 / np.sqrt(2 * DRAWS)
    end = (
        4 * 0.05 * np.sqrt(0.025 * 0.975 / DRAWS) / 0.0584
    )  # the density of a standard normal at its 2.5% point
    assert abs(row.low - (1 - QUANTILE * 0.05)) < end
    assert abs(row.high - (1 + QUANTILE * 0.05)) < end


def test_the_naive_fit_stands_beside(make_posterior: Any) -> None:
    row = make_posterior().summary()["x1"]
    assert row.bias == row.naive - row.estimate
    assert row.bias_sds == pytest.approx(row.bias / row.sd)
    assert abs(row.bias + 0.2) < 4 * np.hypot(0.05, 0.04) / np.sqrt(DRAWS)
    assert abs(row.widening - 1.25) < 4 * 1.25 / np.sqrt(DRAWS)


def test_without_a_naive_fit_nothing_stands_beside(make_posterior: Any) -> None:
    summary = make_posterior(naive=None).summary()
    assert isnan(summary["x1"].naive)
    assert summary["x1"].to_dict()["bias"] is None
    assert "unadjusted" not in repr(summary)


def test_a_parameter_that_the_naive_fit_lacks_has_a_dash(make_posterior: Any) -> None:
    naive = Draws(("x1",), np.random.default_rng(1).standard_normal((4, 1000, 1)))
    summary = make_posterior(naive=naive).summary()
    assert isnan(summary["sigma"].naive)
    assert not isnan(summary["x1"].naive)
    line = next(line for line in summary.lines() if "sigma" in line)
    assert line.split()[-3:] == ["-", "-", "-"]


def split_r_hat(series: Any) -> float:
    """R-hat of split chains after ranks became normal scores (Vehtari et al. 2021, equation 4)."""
    scores = norm.ppf((rankdata(series).reshape(series.shape) - 0.375) / (series.size + 0.25))
    halves = scores.reshape(2 * len(scores), -1)
    within, count = halves.var(axis=1, ddof=1).mean(), halves.shape[1]
    return float(np.sqrt((within * (count - 1) / count + halves.mean(axis=1).var(ddof=1)) / within))


def test_r_hat_is_that_of_ranks_in_split_chains(make_posterior: Any) -> None:
    posterior = make_posterior()
    for name in posterior.names:
        series = posterior.draws_of(name)
        folded = np.abs(series - np.median(series))
        expected = max(split_r_hat(series), split_r_hat(folded))
        assert posterior.summary()[name].r_hat == pytest.approx(expected, abs=1e-9)


def test_independent_draws_are_all_effective_and_repeated_ones_are_not(make_posterior: Any) -> None:
    whole = make_posterior().summary()
    assert all(0.8 * DRAWS < row.ess < 1.2 * DRAWS for row in whole)
    assert all(0.8 * DRAWS < row.ess_tail < 1.2 * DRAWS for row in whole)
    tenth = make_posterior(lambda values: np.repeat(values[:, ::10], 10, axis=1)).summary()
    assert all(0.05 * DRAWS < row.ess < 0.15 * DRAWS for row in tenth)


def test_summary_is_plain_data(make_posterior: Any) -> None:
    summary = make_posterior(naive=None).summary(0.5)
    said = json.loads(json.dumps(summary.to_dict(), allow_nan=False))
    assert said["level"] == 0.5
    assert list(said["parameters"]) == [row.name for row in summary]
    assert summary.table.num_rows == len(summary) == 5
    assert summary.table["estimate"].to_pylist() == [row.estimate for row in summary]
    assert summary.table["naive"].null_count == 5


def test_an_unknown_parameter_is_refused_with_the_nearest(make_posterior: Any) -> None:
    with pytest.raises(BadPlan, match=r"there is no parameter 'sigm'.*did you mean 'sigma'"):
        make_posterior().summary()["sigm"]


@pytest.mark.parametrize("level", [0, 1, 95, -0.1, "0.95", True])
def test_what_is_no_level_is_refused(make_posterior: Any, level: Any) -> None:
    with pytest.raises(BadPlan, match="between 0 and 1"):
        make_posterior().summary(level)


def test_chains_that_stay_where_they_are_have_no_effective_draw() -> None:
    values = np.zeros((4, 100, 2)) + np.arange(4)[:, None, None]
    values[:, :, 1] = 1.0
    found = Diagnostics.of(Draws(("a", "b"), values))
    assert found.r_hat.tolist() == [inf, inf]
    assert found.ess.tolist() == found.ess_tail.tolist() == [0, 0]
    assert set(found.failing) == {0, 1}


def test_what_the_sampler_holds_fixed_is_not_judged() -> None:
    values = np.random.default_rng(1).standard_normal((4, 1000, 2))
    values[:, :, 0] = 0.0
    draws = Draws(("cut[1]", "x"), values, info={"fixed": ("cut[1]",)})
    found = Diagnostics.of(draws)
    assert found.failing == ()
    assert np.isnan(found.r_hat[0])
    assert "cut[1]" in repr(Summary.of(draws, None, found))


def test_the_worst_comes_first() -> None:
    values = np.random.default_rng(1).standard_normal((4, 1000, 4))
    values[:, :, 0] = np.repeat(values[:, ::10, 0], 10, axis=1)  # about 400 of 4,000 count
    values[0, :, 2] += 1.0
    values[0, :, 3] += 5.0
    found = Diagnostics.of(Draws(("slow", "fine", "apart", "far apart"), values))
    assert found.failing[:2] == (3, 2)
    assert 1 not in found.failing


def test_one_draw_has_no_sd() -> None:
    draws = Draws(("x",), np.ones((1, 1, 1)))
    summary = Summary.of(draws, None, Diagnostics.of(draws))
    assert isnan(summary["x"].sd)
    assert "-" in repr(summary)


def test_many_parameters_are_cut(make_posterior: Any) -> None:
    assert make_posterior().summary().lines(2)[-1] == "  and 3 more parameters: see .summary()"
