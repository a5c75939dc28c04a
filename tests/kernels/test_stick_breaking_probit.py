"""Draws of a stick's parameters leave their joint distribution with the counts alone."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from numba import njit
from scipy import stats

from maskwell.kernels.densities import log_normal_cdf
from maskwell.kernels.gibbs_intercepts import joint_of
from maskwell.kernels.stick_breaking_probit import (
    ROWS,
    TAKEN,
    TRIED,
    Stick,
    draw_stick,
    log_chances,
    stretch_stick,
)

TOURS, SCALE, MEAN, SD = 4000, 0.7, 0.2, 0.8


@njit
def move(stick, variance, scale, rng):
    draw_stick(stick, variance, rng)
    if len(stick.effects) > 0:
        return stretch_stick(stick, variance, scale, rng)
    return variance


@njit
def chances(eta):
    return log_chances(eta)


def stick_of(columns, group, groups):
    size, patterns = columns.shape[1], len(columns)
    return Stick(
        columns,
        group,
        np.full(size, SD**-2.0),
        np.full(size, MEAN * SD**-2.0),
        np.zeros(size),
        np.zeros(groups),
        np.zeros((ROWS, patterns)),
        np.zeros((2, size)),
        np.zeros((2, groups)),
        joint_of(size, groups),
    )


def statistics(stick, variance):
    own, effects, taken = stick.coefficients, stick.effects, stick.room[TAKEN]
    found = [*own, *(own * own), own.prod(), *(own * taken.sum()), *(own * taken[2])]
    if len(effects):
        size = np.tanh(log(variance))
        found += [size, size * size, size * own[0], size * np.tanh(effects @ effects), *np.tanh(effects)]
        found += [*np.tanh(effects) ** 2, *(np.tanh(effects) * taken[: len(effects)])]
    return np.array(found)


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("most", [1, 40])
def test_draws_leave_the_joint_distribution_alone(grouped: bool, most: int):
    """Parameters from the prior, counts given these, then a draw given the counts: moments stay as they were.

    Some patterns have nothing tried, and some all or nothing taken.
    """
    rng = np.random.default_rng([most, grouped])
    columns = np.stack([np.ones(8), rng.standard_normal(8)], axis=1)
    group = np.arange(8) % 4
    stick, moved = stick_of(columns, group, 4 if grouped else 0), []
    stick.room[TRIED] = np.array([0, 1, most, most, 1, 2 * most, most, 0])
    for _ in range(TOURS):
        variance = (SCALE * rng.standard_t(2)) ** 2
        stick.coefficients[:] = MEAN + SD * rng.standard_normal(2)
        stick.effects[:] = variance**0.5 * rng.standard_normal(len(stick.effects))
        eta = columns @ stick.coefficients + (stick.effects[group] if grouped else 0.0)
        stick.room[TAKEN] = rng.binomial(stick.room[TRIED].astype(int), stats.norm.cdf(eta))
        before = statistics(stick, variance)
        moved.append(statistics(stick, move(stick, variance, SCALE, rng)) - before)
    off = np.array(moved)
    assert (off.std(axis=0) > 0).sum() >= 8
    z = np.sqrt(TOURS) * off.mean(axis=0) / np.where(off.std(axis=0) > 0, off.std(axis=0), 1.0)
    assert np.abs(z).max() < stats.norm.isf(0.0005 / len(z)), z


@pytest.mark.parametrize("eta", [-50.0, -38.0, -5.0, -0.3, 0.0, 0.3, 5.0, 38.0, 50.0])
def test_log_chances_have_all_their_digits(eta: float):
    np.testing.assert_allclose(chances(eta), (log_normal_cdf(eta), log_normal_cdf(-eta)), rtol=1e-12)
