"""Sums of many columns' noises, and directions of them, that tell of the truth."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from maskwell.checks.quantile_residuals.families import Score
from maskwell.checks.quantile_residuals.joint_turns import _explained_squares, _signs, joint_turns
from maskwell.checks.quantile_residuals.ledger import Ledger
from maskwell.checks.quantile_residuals.truths import TrueColumn
from maskwell.table import Floats

RECORDS, COLUMNS = 900, 6


def truth(seed: int = 1) -> list[TrueColumn]:
    rng = np.random.default_rng([seed, 471])
    values = np.exp(9 + 0.7 * rng.standard_normal((RECORDS, COLUMNS))).round()
    return [
        TrueColumn(f"x{j}", x, np.unique(x, return_inverse=True)[1].ravel()) for j, x in enumerate(values.T)
    ]


def noise(seed: int = 1) -> Floats:
    return np.random.default_rng([seed, 472]).standard_normal((RECORDS, COLUMNS))


def ledger_of(scores: Floats, seed: int = 1) -> Ledger:
    ledger = Ledger()
    joint_turns(ledger, [Score(f"x{j}", y, f"x{j}") for j, y in enumerate(scores.T)], truth(seed), seed=9)
    return ledger


def _sum_to(scores: Floats, columns: int, target: Floats) -> Floats:
    u = ndtr(scores)
    u[:, 0] = (target - u[:, 1:columns].sum(axis=1)) % 1
    return np.asarray(ndtri(np.clip(u, 1e-9, 1 - 1e-9)))


@pytest.mark.parametrize(
    "leak", ["sum to nothing", "sum to a rank", "sum of some less others", "a direction", "a slow direction"]
)
def test_what_many_noises_tell_together_is_found(leak: str) -> None:
    y, column = noise(), truth()[3]
    assert column.numbers is not None
    if leak == "sum to nothing":
        y = _sum_to(y, 5, np.zeros(RECORDS))
    elif leak == "sum to a rank":
        y = _sum_to(y, 6, 3 * column.shares)
    elif leak == "sum of some less others":
        y[:, 1:3] *= -1
        y = _sum_to(y, 5, np.zeros(RECORDS))
        y[:, 1:3] *= -1
    else:
        turns = column.numbers / 61.7 if leak == "a direction" else 2 * column.shares
        w = np.array([1, -1, 1, 1, -1, 1]) / 6**0.5
        y += np.outer(ndtri(np.clip(turns % 1, 1e-4, 1 - 1e-4)) - y @ w, w)
    ledger = ledger_of(y)
    assert min(ledger.adjusted(line) for line in ledger.lines if line.fails) < 1e-5


def test_p_values_of_clean_noise_are_bounds() -> None:
    p = list[float]()
    for seed in range(40):
        with patch.object(Ledger, "add", autospec=True) as add:
            ledger_of(noise(seed + 50), seed)
        p += [float(call.args[4]) for call in add.call_args_list]
    for level in (0.2, 0.05):
        assert np.mean(np.array(p) <= level) < level + 4 * (level * (1 - level) / len(p)) ** 0.5


def test_squares_explained_are_those_of_least_squares() -> None:
    rng = np.random.default_rng(5)
    y, axis = rng.standard_normal((300, 2)), rng.integers(0, 4096, 300) / 4096
    found = _explained_squares(y, axis)
    for k in (1, 7, 512, 1000):
        waves = np.column_stack([np.cos(2 * np.pi * k * axis), np.sin(2 * np.pi * k * axis)])
        fitted = waves @ np.linalg.lstsq(waves, y, rcond=None)[0]
        assert found[k - 1] == pytest.approx((fitted**2).sum(), rel=1e-9)


def test_a_wave_of_which_only_the_cosine_is_there_is_passed_over() -> None:
    axis = np.tile([0.0, 0.5], 50)
    assert (_explained_squares(np.random.default_rng(6).standard_normal((100, 2)), axis) == 0).all()


def test_every_sum_of_four_and_more_is_made_once() -> None:
    signs = _signs(5)
    assert len(signs) == (5 * 2**4 + 2**5) / 2
    assert len({tuple(np.abs(one)) for one in signs}) == 6
