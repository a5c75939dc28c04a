"""What a fit says of itself."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import numpy as np
import pytest

from maskwell.analysis.results.words import decimals_for, draws_needed, figure, percent
from maskwell.words.analysis import figure_above


@pytest.mark.parametrize(
    ("sd", "decimals"), [(0.0123, 4), (1.0, 2), (9.99, 2), (12.0, 1), (1e5, 0), (0.0, 4), (nan, 4)]
)
def test_three_digits_of_an_sd_are_written(sd: float, decimals: int) -> None:
    assert decimals_for(sd) == decimals


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (1234.5678, 2, "1,234.57"),
        (-0.004, 1, "0.0"),
        (nan, 2, "-"),
        (inf, 2, "inf"),
        (-inf, 2, "-inf"),
        (3e15, 0, "3.000e+15"),
    ],
)
def test_figures(value: float, decimals: int, text: str) -> None:
    assert figure(value, decimals) == text


def test_shares() -> None:
    assert [percent(share) for share in (0.384, -0.2, -0.001, nan)] == ["+38%", "-20%", "+0%", "-"]


@pytest.mark.parametrize(
    ("now", "r_hat", "ess", "wanted"),
    [
        (1000, 1.0, 100, 5000),
        (1000, 1.05, 1000, 5000),
        (1000, 1.0104, 1000, 2000),
        (100, 1.0104, 2000, 200),
        (1000, 1.0, 400, 2000),
        (1, 1.0, 0, 500),
        (10, 2.0, 0, 5000),
    ],
)
def test_draws_asked_for_are_round_and_enough(now: int, r_hat: float, ess: float, wanted: int) -> None:
    assert draws_needed(now, r_hat, ess) == wanted


def test_chains_that_agree_need_no_words(make_posterior: Any) -> None:
    posterior = make_posterior()
    assert posterior.converged
    assert posterior.warning is None
    assert "NOT CONVERGED" not in repr(posterior)


def apart(values: Any) -> Any:
    values[0, :, 1] += 0.2
    return values


def short(values: Any) -> Any:
    values[:, :, 3] = np.repeat(values[:, ::50, 3][:, :20], 50, axis=1)
    return values


def still(values: Any) -> Any:
    values[:, :, 4] = 0.3
    return values


def test_chains_apart_are_said_with_the_worst_parameter_and_the_remedy(make_posterior: Any) -> None:
    posterior = make_posterior(apart)
    assert not posterior.converged
    said = str(posterior.warning)
    assert (posterior.warning.code, posterior.warning.severity) == ("analysis.disagreement", "failure")
    assert said.startswith("the chains have not converged: R-hat of x1 is 1.5")
    assert "use no figure of this fit" in said
    assert said.endswith("draws in place of 1,000 for each chain")
    assert "NOT CONVERGED: R-hat of x1" in repr(posterior)


def test_chains_a_little_apart_give_rough_figures(make_posterior: Any) -> None:
    def shifted(values: Any) -> Any:
        values[0, :, 1] += 0.02
        return values

    posterior = make_posterior(shifted)
    assert 1.01 < posterior.summary()["x1"].r_hat < 1.05
    assert "its figures are rough, so take 5,000 draws" in str(posterior.warning)


def hardly(values: Any) -> Any:
    values[0, :, 1] += 0.016
    return values


def test_a_trivial_excess_is_written_out_and_costs_few_draws(make_posterior: Any) -> None:
    posterior = make_posterior(hardly)
    r_hat = posterior.summary()["x1"].r_hat
    assert 1.01 < r_hat < 1.015
    assert f"R-hat of x1 is {figure_above(r_hat, 1.01)} where 1.01 is the most" in str(posterior.warning)
    assert str(posterior.warning).endswith("to be sure take 2,000 draws in place of 1,000 for each chain")
    few = make_posterior(lambda values: short(hardly(values)))
    assert "can be used" not in str(few.warning)


def test_short_chains_are_said(make_posterior: Any) -> None:
    half = np.linspace(-1.0, 1.0, 30)  # the same in every half of a chain: nothing is apart
    mixed = np.random.default_rng(3).permuted(np.tile(half, (8, 5, 1)), axis=2)
    posterior = make_posterior(lambda _: mixed.transpose(0, 2, 1).reshape(4, 60, 5))
    assert not posterior.converged
    assert "effective draws where 400 are needed" in str(posterior.warning)
    assert str(posterior.warning).endswith("draws in place of 60 for each chain")


def test_what_does_not_move_is_said(make_posterior: Any) -> None:
    assert "sd(Intercept|school) did not move;" in str(make_posterior(still).warning)


def test_others_that_fail_are_counted(make_posterior: Any) -> None:
    two = make_posterior(lambda values: still(apart(values)))
    assert "(another parameter fails too)" in str(two.warning)
    three = make_posterior(lambda values: still(apart(short(values))))
    assert "(2 other parameters fail too)" in str(three.warning)
