"""The noise inside a sampler leaves the joint law of true and released values as it is.

True values are drawn, released by the law's own `draw`, and then redrawn given what was released: alternately all that
`refresh` draws given the true values, and the true values given that. What comes out must have the same law as what
went in, whatever the mask; a component with a wrong weight, a wrong cell or a wrong density moves it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba import njit

from maskwell.analysis.noise import noise_arrays
from maskwell.analysis.system import Variable
from maskwell.card import NoiseCard, SwapParameters
from maskwell.kernels.gibbs_noise import noise_log, reference, refresh
from maskwell.kernels.random import root_of
from maskwell.keys import Key, Stream, ids_from_numbers
from maskwell.laws import (
    Additive,
    JointMixture,
    Laplace,
    Mixture,
    Multiplicative,
    Normal,
    Outlet,
    Power,
    RotatedMixture,
    SkewedBias,
    Step,
)
from maskwell.schema import Column, Schema
from maskwell.table import Table

CENT, HALF, TWO = Fraction(1, 100), Fraction(1, 2), Fraction(2)
CORRELATIONS = ((1.0, 0.6), (0.6, 1.0))
WEIGHTS = (0.2, 0.5, 0.3)


def fine(count: int = 1) -> tuple[Outlet, ...]:
    return (Outlet(CENT),) * count


def spanning(width: int) -> tuple[tuple[float, ...], ...]:
    """Unit means with mean 0 and covariance I under WEIGHTS."""
    root = np.sqrt(np.array(WEIGHTS))
    basis = np.linalg.qr(np.column_stack([root, np.eye(3)[:, :2]]))[0][:, 1:]
    return tuple(map(tuple, (basis / root[:, None])[:, :width].tolist()))


def one(noise: Any, outlet: Outlet | None = None, **options: Any) -> Additive:
    return Additive(("a",), noise, (outlet or Outlet(CENT),), **options)


def two(noise: Any, outlets: tuple[Outlet, ...] = (), **options: Any) -> Additive:
    return Additive(("a", "b"), noise, outlets or fine(2), **options)


UNIT = (-1.2, 0.1, 0.9)
LAWS: dict[str, Any] = {
    "normal": one(Normal((1.5,))),
    "normal, shrunk": one(Normal((1.5,)), slope=0.8, offsets=(2.0,)),
    "normal, clamped": one(Normal((1.5,)), Outlet(CENT, 8.0, 12.0)),
    "normal, coarse": one(Normal((1.5,)), Outlet(TWO)),
    "normal, coded": one(Normal((1.5,)), Outlet(CENT, None, 11.0, high_coded=True)),
    "normal, beside codes": one(Normal((1.5,)), Outlet(HALF, avoid=(30.0,))),
    "correlated": two(Normal((1.5, 1.0), CORRELATIONS)),
    "correlated, clamped": two(
        Normal((1.5, 1.0), CORRELATIONS), (Outlet(CENT, 9.0, 12.0), Outlet(TWO, None, 12.0))
    ),
    "mixture": one(Mixture(WEIGHTS, (UNIT,), ((0.3, 0.8, 0.5),))),
    "mixture of two": two(Mixture(WEIGHTS, (UNIT, UNIT), ((0.3, 0.8, 0.5), (0.6,) * 3))),
    "mixture, clamped": one(Mixture(WEIGHTS, (UNIT,), ((0.6, 0.8, 0.5),)), Outlet(HALF, 8.0, 12.0)),
    "joint mixture": two(JointMixture(WEIGHTS, spanning(2), 0.4, (1.5, 1.0), CORRELATIONS)),
    "joint mixture, clamped": two(
        JointMixture(WEIGHTS, spanning(2), 0.4, (1.5, 1.0), CORRELATIONS), (Outlet(CENT, 9.0), Outlet(TWO))
    ),
    "rotated mixture": two(RotatedMixture(WEIGHTS, UNIT, (0.6,) * 3, (1.5, 1.0), CORRELATIONS)),
    "rotated, one of two": two(RotatedMixture(WEIGHTS, UNIT, (0.6,) * 3, (1.5, 1.0), CORRELATIONS)),
    "turned": two(RotatedMixture(WEIGHTS, UNIT, (0.8, 0.6, 0.5), (1.5, 1.0), CORRELATIONS)),
    "laplace": one(Laplace((1.5,))),
    "laplace, clamped": one(Laplace((1.5,)), Outlet(HALF, 8.0, 12.0)),
    "step": one(Normal((1.5,)), spreads=(Step((9.0, 11.0), (0.5, 1.0, 1.5)),)),
    "power": one(Normal((0.02,)), spreads=(Power(1.7, 2.0),)),
    "bias": one(Normal((1.0,)), Outlet(CENT, 7.0, 13.0), spreads=(Multiplicative(0.12, 0.9),)),
    "laplace, step": one(Laplace((1.5,)), spreads=(Step((10.0,), (0.5, 1.2)),)),
    "correlated, step": two(Normal((1.5, 1.0), CORRELATIONS), spreads=(Step((10.0,), (0.6, 1.2)), None)),
    "log": one(Normal((0.2,)), Outlet(CENT, log_shift=1.0), mean_corrected=True),
    "log, clamped": one(Normal((0.2,)), Outlet(TWO, 8.0, 12.0, log_shift=1.0), mean_corrected=True),
    "log, mixture, step": one(
        Mixture(WEIGHTS, ((-0.3, 0.0, 0.2),), ((0.1, 0.15, 0.1),)),
        Outlet(CENT, log_shift=0.0),
        mean_corrected=True,
        spreads=(Step((10.0,), (0.6, 1.2)),),
    ),
    "log, laplace, step": one(
        Laplace((0.2,)),
        Outlet(CENT, log_shift=0.0),
        mean_corrected=True,
        spreads=(Step((10.0,), (0.6, 1.2)),),
    ),
    "lognormal bias, drawn": SkewedBias(("a",), 0.15, (1.2,), (Outlet(CENT, 7.0, 13.0),)),
    "lognormal bias, integrated": SkewedBias(("a",), 0.15, (0.2,), (Outlet(CENT, 7.0, 13.0),)),
    "lognormal bias alone": SkewedBias(("a",), 0.15, (0.0,), (Outlet(CENT, 7.0, 13.0),)),
}
MODELS = {"rotated, one of two": ("a",)}


def table_of(law: Any, z: np.ndarray) -> Table:
    """Return released values as a table, NaN as missing and the mask's own codes as codes."""
    columns, data = [], {}
    for j, name in enumerate(law.columns):
        outlet = law.outlets[j]
        bottom, top = outlet.codes
        columns.append(Column(name, "continuous", unit=float(outlet.unit), top=top, bottom=bottom))
        data[name] = pa.array(z[:, j], mask=np.isnan(z[:, j]))
    return Table.from_frame(pa.table(data), Schema(tuple(columns)))


def truth_of(law: Any, records: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw states from a normal law; return them, its mean and its precision."""
    width = len(law.columns)
    logs = [outlet.log_shift for outlet in law.outlets]
    mean = np.array([10.0 if log is None else np.log(10.0 + log) for log in logs])
    sds = np.array([1.5 if log is None else 0.15 for log in logs])
    covariance = np.outer(sds, sds) * (0.5 + 0.5 * np.eye(width))
    states = mean + rng.standard_normal((records, width)) @ np.linalg.cholesky(covariance).T
    return states, mean, np.linalg.inv(covariance)


def opened(law: Any, states: np.ndarray) -> np.ndarray:
    """Return true values from states."""
    logs = [outlet.log_shift for outlet in law.outlets]
    return np.column_stack(
        [states[:, j] if log is None else np.exp(states[:, j]) - log for j, log in enumerate(logs)]
    )


@njit  # not kept: what it calls may have changed
def redraw(arrays, state, columns, mean, precision, rng):
    """Draw the states given everything else, by a proposal from the reference law and its exact acceptance."""
    q, accepted = len(columns), 0
    noise, linear, centre, drawn = np.zeros((q, q)), np.zeros(q), np.zeros(q), np.zeros(q)
    for i in range(len(state)):
        reference(arrays, i, noise, linear)
        root = root_of(noise + precision)
        for j in range(q):  # root y = linear + precision mean, then root' (t - ...) = y + normal
            centre[j] = linear[j]
            for k in range(q):
                centre[j] += precision[j, k] * mean[k]
            for k in range(j):
                centre[j] -= root[j, k] * centre[k]
            centre[j] /= root[j, j]
        for j in range(q - 1, -1, -1):
            drawn[j] = centre[j] + rng.standard_normal()
            for k in range(j + 1, q):
                drawn[j] -= root[k, j] * drawn[k]
            drawn[j] /= root[j, j]
        odds = noise_log(arrays, columns, i, drawn) - noise_log(arrays, columns, i, state[i])
        for j in range(q):
            odds -= linear[j] * (drawn[j] - state[i, j])
            for k in range(q):
                odds += 0.5 * noise[j, k] * (drawn[j] * drawn[k] - state[i, j] * state[i, k])
        if np.log(rng.random()) < odds + 1e-9:
            accepted += 1
            for j in range(q):
                state[i, j] = drawn[j]
    return accepted / len(state)


def statistics(states: np.ndarray, z: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return records x statistics of true and released values."""
    centred = states - 10.0 if np.mean(states) > 5 else 5 * (states - 2.35)
    near = np.where(missing, 0.0, z - 10.0)
    parts = [centred, centred**2, centred * near, centred**2 * near, np.tanh(centred - near), centred**3]
    parts += [centred[:, :1] * centred[:, -1:], centred[:, :1] * near[:, -1:], np.cos(3 * centred)]
    parts += [np.exp(-np.abs(centred - near)), np.abs(centred - near) ** 3]
    return np.concatenate(parts, axis=1)


def z_scores(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    moved = after - before
    spread = moved.std(axis=0)
    return np.abs(moved.mean(axis=0)) / np.where(spread > 0, spread / np.sqrt(len(moved)), 1.0)


def alternate(
    card: NoiseCard, table: Table, names: tuple[str, ...], states: np.ndarray, law_of_states: Any
) -> Any:
    """Redraw states given a release: first what the noise needs given the truth, then both in turn."""
    variables = tuple(
        Variable(name, log_shift=card.law_of(name).outlets[j].log_shift)
        for j, name in enumerate(names)  # type: ignore[union-attr]
    )
    low = noise_arrays(card, table, variables, range(len(names)))
    rng = np.random.default_rng(7)
    arrays, state = low.start(rng), states[:, : len(names)].copy()
    for _ in range(15):
        refresh(arrays, state, low.columns, rng)
    rates = []
    for _ in range(6):
        rates.append(redraw(arrays, state, low.columns, *law_of_states, rng))
        refresh(arrays, state, low.columns, rng)
    return low, state, float(np.mean(rates))


CASES = [(name, False) for name in LAWS] + [
    (name, True) for name, law in LAWS.items() if len(law.columns) > 1
]


@pytest.mark.parametrize(("name", "missing"), CASES)
def test_the_joint_law_of_truth_and_release_stays(name: str, missing: bool) -> None:
    law, records = LAWS[name], 4000
    rng = np.random.default_rng(11)
    states, mean, precision = truth_of(law, records, rng)
    x = opened(law, states)
    if missing:
        x[::3, 1] = np.nan
        x[1::3, 0] = np.nan
    z = law.draw(x, Stream(Key.from_seed(5), "tests", "0", ids_from_numbers(records)))
    names = MODELS.get(name, law.columns)
    chosen = [law.columns.index(column) for column in names]
    covariance = np.linalg.inv(precision)[np.ix_(chosen, chosen)]
    table = table_of(law, z)
    low, after, rate = alternate(
        NoiseCard((law,)), table, names, states[:, chosen], (mean[chosen], np.linalg.inv(covariance))
    )
    gone = np.isnan(x[:, chosen])
    scores = z_scores(
        statistics(states[:, chosen], z[:, chosen], gone), statistics(after, z[:, chosen], gone)
    )
    assert scores.max() < 4.0, scores.round(1)
    assert rate > 0.3
    assert (rate == 1.0) == bool(low.gaussian.all())
    assert np.mean(after != states[:, chosen]) > 0.9


FAULTS: dict[str, Any] = {  # what a card says wrongly: the law that made the values, the law that is fitted
    "sd 10% off": (LAWS["normal"], one(Normal((1.65,)))),
    "correlation": (LAWS["correlated"], two(Normal((1.5, 1.0), ((1.0, 0.3), (0.3, 1.0))))),
    "weights": (LAWS["mixture"], one(Mixture((0.3, 0.5, 0.2), (UNIT,), ((0.3, 0.8, 0.5),)))),
    "limits": (LAWS["normal, clamped"], one(Normal((1.5,)))),
    "form": (LAWS["laplace"], one(Normal((1.5,)))),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_wrong_law_is_noticed(name: str) -> None:
    made, fitted = FAULTS[name]
    states, mean, precision = truth_of(made, 20_000, np.random.default_rng(17))
    z = made.draw(states, Stream(Key.from_seed(8), "tests", "0", ids_from_numbers(len(states))))
    gone = np.isnan(z)
    _, after, _ = alternate(
        NoiseCard((fitted,)), table_of(fitted, z), fitted.columns, states, (mean, precision)
    )
    assert z_scores(statistics(states, z, gone), statistics(after, z, gone)).max() > 5.0


SWAPPED: dict[str, Any] = {
    "normal": ("correlated", False),
    "clamped": ("correlated, clamped", False),
    "with missing cells": ("correlated, clamped", True),
    "joint mixture": ("joint mixture", False),
    "mixture of two": ("mixture of two", False),
    "laplace": ("laplace", False),
    "bias": ("bias", False),
    "lognormal bias, drawn": ("lognormal bias, drawn", False),
    "lognormal bias, integrated": ("lognormal bias, integrated", False),
}


@pytest.mark.parametrize("name", SWAPPED)
def test_swapped_records_are_told_from_others_by_their_law(name: str) -> None:
    """Some records carry the values of others; these are normal, or nearly so, as the law of swapped values says."""
    law, missing = LAWS[SWAPPED[name][0]], SWAPPED[name][1]
    records, share = 4000, 0.2
    rng = np.random.default_rng(13)
    states, mean, precision = truth_of(law, records, rng)
    x = opened(law, states)
    if missing:
        x[::3, 1] = np.nan
    z = law.draw(x, Stream(Key.from_seed(6), "tests", "0", ids_from_numbers(records)))
    low = noise_arrays(
        NoiseCard((law,)), table_of(law, z), tuple(map(Variable, law.columns)), range(len(law.columns))
    )
    exchanged = rng.random(records) < share
    z[exchanged] = _carried(law, low, exchanged, rng)
    card = NoiseCard((law,), swapped=SwapParameters(share, law.columns))
    low, after, _ = alternate(card, table_of(law, z), law.columns, states, (mean, precision))
    gone = np.isnan(z)
    scores = z_scores(statistics(states, z, gone), statistics(after, z, gone))
    assert scores.max() < 4.0, scores.round(1)


def _carried(law: Any, low: Any, exchanged: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw what exchanged records carry from normals like the released values, out through the outlets."""
    arrays, is_open = low.arrays, low.arrays.is_open[low.arrays.pattern]
    whole = is_open.all(axis=1)
    centre, covariance = arrays.u[whole].mean(axis=0), np.atleast_2d(np.cov(arrays.u[whole], rowvar=False))
    drawn = rng.multivariate_normal(centre, covariance, int(exchanged.sum()))
    out = law.leave(np.asfortranarray(drawn), drawn) if isinstance(law, Additive) else drawn.copy()
    if not isinstance(law, Additive):
        out[:, 0] = law.outlets[0].leave(drawn[:, 0].copy(), drawn[:, 0])
    return np.where(is_open[exchanged], out, np.nan)
