"""Codes, numbers and sums of the one loop have the law that each record has by itself, from its equations alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import stats

from maskwell.kernels.gibbs_linear_levels import (
    LinearParameters,
    LinearRecords,
    LinearShape,
    draw_codes,
    fill_weights,
    prepare,
    room_of,
)
from maskwell.kernels.gibbs_linear_sums import draw_sums, put_numbers

ONE, W, Y, TWICE, SHARED, FIRST, SECOND, LEVEL = range(8)  # places of the basis; levels 1, 2 .. follow
DRAWS = 6000


@njit
def many_sums(records, shape, parameters, room, firsts, seconds, rng):
    prepare(records, shape, parameters, room)
    for t in range(len(firsts)):
        draw_sums(records, shape, room, rng)
        firsts[t] = room.first
        seconds[t] = room.second


@njit
def many_codes(records, shape, parameters, room, patterns, found, rng):
    prepare(records, shape, parameters, room)
    for _ in range(DRAWS):
        draw_codes(records, patterns, room, rng)
        for i in range(len(found)):
            found[i, records.code[i]] += 1.0 / DRAWS


@njit
def all_weights(records, shape, parameters, room, patterns):
    prepare(records, shape, parameters, room)
    fill_weights(records, patterns, room)


@njit
def many_numbers(records, shape, parameters, room, found, rng):
    prepare(records, shape, parameters, room)
    for t in range(len(found)):
        put_numbers(records, shape, room, found[t], rng)


@dataclass
class Setting:
    """Records of a few groups, and three equations: two unknown numbers, then a known response."""

    values: Any  # of the basis, with what is unknown 0
    linear: Any
    table: Any
    records: Any
    shape: Any
    parameters: Any
    room: Any

    def oracle(self, code: Any) -> tuple[Any, Any, Any]:
        """Return the numbers' means and precision given codes, and the log weights of these codes."""
        shape, parameters = self.shape, self.parameters
        basis, slopes = self.values.copy(), np.zeros((len(shape.response), self.values.shape[1]))
        for e, answer in enumerate(shape.response):
            slopes[e, answer] = 1.0
            slopes[e, shape.columns[e, : shape.width[e]]] -= parameters.coefficients[e, : shape.width[e]]
        for k in range(1, len(shape.level)):
            basis[:, shape.level[k]] = code == k
        off = basis @ slopes.T - (parameters.effects[:, self.records.group].T if shape.grouped else 0.0)
        own = slopes[:, shape.number]
        precision = self.records.noise_precision + own.T @ (parameters.precision[:, None] * own)
        linear = self.linear - (off * parameters.precision) @ own
        means = np.linalg.solve(precision, linear.T).T
        fit = self.table[np.arange(len(code)), code] + self.room.chance[0, code]
        fit = fit - 0.5 * (off**2 @ parameters.precision) + 0.5 * (linear * means).sum(axis=1)
        return means, precision, fit


def setting(sizes: tuple[int, ...], levels: int, grouped: bool = True, singular: bool = False) -> Setting:
    rng = np.random.default_rng([*sizes, levels])
    group = np.repeat(np.arange(len(sizes)), sizes)
    count = len(group)
    code = np.sort(rng.integers(0, levels, count)) if levels > 1 else np.zeros(count, np.int64)
    values = np.zeros((count, LEVEL + levels - 1))
    values[:, ONE], values[:, W], values[:, Y] = 1.0, rng.normal(1.0, 1.0, count), rng.normal(3.0, 1.0, count)
    values[:, TWICE] = 2.0 * values[:, W] if singular else rng.standard_normal(count)
    values[:, SHARED] = group if singular else rng.standard_normal(count)
    level = np.array([-1, *range(LEVEL, LEVEL + levels - 1)])
    columns = [[ONE, W, SHARED], [ONE, FIRST, TWICE], [ONE, W, FIRST, SECOND]]
    columns = [[*places, *level[1 + e % 2 :]] for e, places in enumerate(columns)]
    width = np.array([len(places) for places in columns])
    padded = np.zeros((3, max(width)), np.int64)
    for e, places in enumerate(columns):
        padded[e, : width[e]] = places
    known = np.array([W, Y, TWICE, SHARED])
    shape = LinearShape(
        np.array([FIRST, SECOND]), level, known, np.array([FIRST, SECOND, Y]), width, padded, grouped, 1
    )
    linear = rng.standard_normal((count, 2))
    fixed = np.hstack([values[:, known], linear])
    centre = np.array([fixed[group == g].mean(axis=0) for g in range(len(sizes))])
    left = np.where(np.abs(fixed - centre[group]) > 1e-12, fixed - centre[group], 0.0)
    table = np.log(rng.dirichlet(np.ones(levels), count))
    odds = table[:, 1:] - table[:, :1] if levels == 2 else table
    begin = np.concatenate([[0], np.cumsum(sizes)])
    noise = np.array([[1.0, 0.3], [0.3, 0.8]])
    records = LinearRecords(left, code, group, begin, odds.copy(), centre, left.T @ left, noise)
    parameters = LinearParameters(
        0.5 * rng.standard_normal(padded.shape),
        np.array([1.0, 2.0, 1.5]),
        0.5 * rng.standard_normal((3, len(sizes))),
        np.ones(3),
    )
    room = room_of(records, shape, values, int(max(width)))
    room.chance[:] = np.log(rng.dirichlet(np.ones(levels)))
    return Setting(values, linear, table, records, shape, parameters, room)


def together(one: Any, other: Any) -> None:
    """Assert that two samples have the same means and products, within their errors and Bonferroni's limit."""
    middle, spread = other.mean(axis=0), other.std(axis=0)
    one, other = (one - middle) / spread, (other - middle) / spread
    rows, columns = np.tril_indices(one.shape[1])
    pairs = [np.hstack([x, x[:, rows] * x[:, columns]]) for x in (one, other)]
    error = np.hypot(*(x.std(axis=0) / np.sqrt(len(x)) for x in pairs))
    z = (pairs[0].mean(axis=0) - pairs[1].mean(axis=0)) / error
    assert np.abs(z).max() < stats.norm.isf(0.0005 / len(z)), np.abs(z).max()


SETTINGS = {
    "small cells, some empty": ((1, 2, 3, 12), 3, True, False),
    "large cells": ((60, 80), 2, True, False),
    "no category": ((2, 30, 9), 1, True, False),
    "no groups": ((50,), 2, False, False),
    "fixed values that others tell": ((3, 20, 15), 2, True, True),
    "fewer records than fixed values": ((2, 1, 2), 1, True, False),
    "nothing left within cells": ((1, 1, 1), 2, True, False),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_sums_have_the_law_of_sums_over_records(name: str):
    """Means and products of all sums by group and of all sums of products that involve numbers."""
    given, rng = setting(*SETTINGS[name]), np.random.default_rng(1)
    places, groups = given.values.shape[1], len(given.records.centre)
    given.room.first[:, FIRST:], given.room.second[FIRST:] = 7.0, 7.0  # of codes and numbers before
    first, second = np.zeros((DRAWS, groups, places)), np.zeros((DRAWS, places, places))
    many_sums(given.records, given.shape, given.parameters, given.room, first, second, rng)

    means, precision, _ = given.oracle(given.records.code)
    noise = rng.standard_normal((DRAWS, *means.shape)) @ np.linalg.cholesky(np.linalg.inv(precision)).T
    basis = np.broadcast_to(given.values, (DRAWS, *given.values.shape)).copy()
    basis[:, :, given.shape.number] = means + noise
    for k in range(1, len(given.shape.level)):
        basis[:, :, given.shape.level[k]] = given.records.code == k
    of_group = (given.records.group == np.arange(groups)[:, None]).astype(float)
    rows, columns = np.tril_indices(places)
    products = (np.swapaxes(basis, 1, 2) @ basis)[:, rows, columns]
    true = np.hstack([(of_group @ basis).reshape(DRAWS, -1), products])
    found = np.hstack([first.reshape(DRAWS, -1), second[:, rows, columns]])
    moves = true.std(axis=0) > 1e-9
    np.testing.assert_allclose(found[:, ~moves], true[:, ~moves], atol=1e-8)
    assert moves.sum() >= 2 * groups
    together(found[:, moves], true[:, moves])


@pytest.mark.parametrize("name", [name for name, given in SETTINGS.items() if given[1] > 1])
def test_codes_have_the_chances_with_the_numbers_integrated_out(name: str):
    """And counts and sums stay those of the codes."""
    given = setting(*SETTINGS[name])
    levels, count = SETTINGS[name][1], len(given.values)
    found = np.zeros((count, levels))
    patterns = np.arange(len(given.records.centre))
    many_codes(
        given.records, given.shape, given.parameters, given.room, patterns, found, np.random.default_rng(2)
    )
    logs = np.stack([given.oracle(np.full(count, k))[2] for k in range(levels)], axis=1)
    chance = np.exp(logs - logs.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    z = (found - chance) / np.sqrt(chance * (1 - chance) / DRAWS + 1e-9)
    assert np.abs(z).max() < stats.norm.isf(0.0005 / z.size)
    all_weights(given.records, given.shape, given.parameters, given.room, patterns)
    weight = np.exp(logs - given.room.chance[0])
    weight /= weight.max(axis=1, keepdims=True)
    np.testing.assert_allclose(given.room.weight, weight, rtol=1e-8)
    again = room_of(given.records, given.shape, given.values, given.shape.columns.shape[1])
    for name_of in ("counts", "size", "sums"):
        np.testing.assert_allclose(getattr(given.room, name_of), getattr(again, name_of), atol=1e-10)


def test_numbers_have_their_means_and_covariance():
    given = setting((3, 4, 5), 3)
    numbers = np.zeros((DRAWS, len(given.values), 2))
    many_numbers(given.records, given.shape, given.parameters, given.room, numbers, np.random.default_rng(3))
    means, precision, _ = given.oracle(given.records.code)
    root = np.linalg.cholesky(precision)
    standard = ((numbers - means) @ root).reshape(-1, 2)
    together(standard, np.random.default_rng(4).standard_normal(standard.shape))
    off = ((numbers - means) @ root).mean(axis=0) * np.sqrt(DRAWS)
    assert np.abs(off).max() < stats.norm.isf(0.0005 / off.size)
