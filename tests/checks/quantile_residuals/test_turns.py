"""Noise that runs through its range many times along other noises and the truth."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr, ndtri

from maskwell.checks.quantile_residuals.families import Score
from maskwell.checks.quantile_residuals.ledger import Ledger
from maskwell.checks.quantile_residuals.truths import TrueColumn, position
from maskwell.checks.quantile_residuals.turns import _edges, turns
from maskwell.table import Floats

RECORDS = 1_200
NAMES = ("income", "wealth", "debt")


def truth(seed: int = 1) -> list[TrueColumn]:
    """Three skewed amounts that go together, one with ties and one with gaps."""
    rng = np.random.default_rng([seed, 371])
    base = (
        rng.standard_normal((RECORDS, 3))
        @ np.linalg.cholesky([[1, 0.6, 0.3], [0.6, 1, 0.2], [0.3, 0.2, 1]]).T
    )
    amounts = [np.exp(10 + 0.7 * base[:, 0]), np.rint(np.exp(4 + base[:, 1])), 100 * base[:, 2]]
    amounts[2][rng.random(RECORDS) < 0.1] = np.nan
    return [_column(name, values) for name, values in zip(NAMES, amounts, strict=True)]


def _column(name: str, values: Floats) -> TrueColumn:
    known = ~np.isnan(values)
    codes = np.full(len(values), -1)
    codes[known] = np.unique(values[known], return_inverse=True)[1]
    return TrueColumn(name, values, codes)


def noise(seed: int = 1) -> Floats:
    return np.random.default_rng([seed, 372]).standard_normal((RECORDS, 3))


def ledger_of(scores: Floats, seed: int = 1) -> Ledger:
    ledger = Ledger()
    columns = truth(seed)
    place = [position("original position", np.arange(RECORDS, dtype=np.float64))]
    turns(ledger, [Score(name, scores[:, j], name) for j, name in enumerate(NAMES)], columns, place, seed=9)
    return ledger


Curve = Callable[[Floats, list[Floats], list[Floats]], Floats]
CURVES: dict[str, Curve] = {
    "a line in two noises": lambda u, r, s: 19 * u[:, 0] + 23 * u[:, 1],
    "a product of two noises": lambda u, r, s: 300 * u[:, 0] * u[:, 1],
    "a product of two ranks": lambda u, r, s: 500 * r[0] * r[1],
    "a square and a noise": lambda u, r, s: 60 * r[1] ** 2 + 11 * u[:, 0],
    "a wave of a value and a line": lambda u, r, s: 30 * np.sin(3 * s[0]) + 25 * s[1],
    "a logarithm and a noise": lambda u, r, s: 33 * np.log(s[0] + 9) + 47 * u[:, 0],
    "a root of a rank": lambda u, r, s: 200 * np.sqrt(r[0]),
    "a line in three": lambda u, r, s: 8 * r[0] + 8 * r[1] + 8 * u[:, 1],
    "a product in sds": lambda u, r, s: 40 * ndtri(u[:, 0]) * ndtri(u[:, 1]),
    "the noise of the record before": lambda u, r, s: 29 * np.roll(u[:, 0], 1),
    "a slow surface": lambda u, r, s: (
        2 * np.sin(7 * u[:, 0] * u[:, 1]) + 2 * np.cos(5 * u[:, 0] - 3 * u[:, 1])
    ),
}


@pytest.mark.parametrize("curve", CURVES)
def test_noise_that_runs_along_others_is_found(curve: str) -> None:
    e, columns = noise(), truth()
    shares = [column.shares for column in columns]
    values = [
        (x - np.nanmean(x)) / np.nanstd(x) for x in (column.numbers for column in columns) if x is not None
    ]
    e[:, 2] = ndtri(np.clip(CURVES[curve](ndtr(e), shares, values) % 1, 1e-7, 1 - 1e-7))
    ledger = ledger_of(e)
    assert min(ledger.adjusted(line) for line in ledger.lines if line.fails) < 1e-5


def test_a_sign_that_follows_a_wave_of_two_ranks_is_found() -> None:
    e, (income, wealth, _) = noise(), truth()
    wave = np.cos(2 * np.pi * (40 * income.shares + 30 * wealth.shares))
    e[:, 0] = np.abs(e[:, 0]) * np.sign(wave)
    ledger = ledger_of(e)
    assert min(ledger.adjusted(line) for line in ledger.lines if line.fails) < 1e-5


def test_p_values_of_clean_noise_are_bounds() -> None:
    p = list[float]()
    for seed in range(5):
        with patch.object(Ledger, "add", autospec=True) as add:
            ledger_of(noise(seed + 50), seed)
        p += [one for call in add.call_args_list for one in np.atleast_1d(call.args[4]).tolist()]
    for level in (0.2, 0.05, 0.01):  # tests of one file go together: as if each ten of them were one
        assert np.mean(np.array(p) <= level) < level + 4 * (level * (1 - level) / (len(p) / 10)) ** 0.5


@pytest.mark.parametrize("points", [np.zeros((50, 2)), np.repeat(np.arange(30.0), 4).reshape(-1, 2)])
def test_nearest_records_make_no_ring_where_they_tie(points: Floats) -> None:
    edges = _edges(points + 1e-9 * np.random.default_rng(3).random(points.shape))
    graph = coo_array((np.ones(len(edges)), edges.T), shape=(len(points), len(points)))
    trees = connected_components(graph, directed=False)[0]
    assert len(edges) == len(points) - trees  # a forest
