"""Systems of linear equations with noise, made by hand: what the samplers without unknown numbers are tested on."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import numpy as np

from maskwell.analysis.expressions import ONE, Binary, Node, Ref
from maskwell.analysis.system import GAUSSIAN, Equation, System, Variable


def times(left: Node, right: Node) -> Node:
    return Binary("mul", left, right)


def normal_noise(
    released: np.ndarray,
    covariances: Sequence[np.ndarray],
    columns: Sequence[int],
    *,
    pattern: np.ndarray | None = None,
    is_open: np.ndarray | None = None,
    slope: np.ndarray | None = None,
    offset: np.ndarray | None = None,
) -> SimpleNamespace:
    """Plain normal noise of one covariance for each pattern of open columns, as `noise.lowered` gives it."""
    n, q = released.shape
    is_open = np.ones((len(covariances), q), bool) if is_open is None else is_open
    turn = np.zeros((len(covariances), q, q))
    for m, covariance in enumerate(covariances):
        here = np.flatnonzero(is_open[m])
        if len(here):
            turn[m][np.ix_(here, here)] = np.linalg.inv(np.linalg.cholesky(covariance[np.ix_(here, here)]))
    arrays = SimpleNamespace(
        u=released,
        shift=np.zeros((n, q)),
        weight=np.ones((n, q)),
        slope=np.ones((n, q)) * (1.0 if slope is None else slope),
        offset=np.zeros(q) if offset is None else offset,
        turn=turn,
        pattern=np.zeros(n, np.int64) if pattern is None else pattern,
        is_open=is_open,
    )
    return SimpleNamespace(columns=np.array(columns), arrays=arrays, plain=True)


def system_of(
    clean: np.ndarray,
    numbers: np.ndarray,
    response: np.ndarray,
    covariance: np.ndarray,
    columns: dict[str, Node] | None = None,
    **more: object,
) -> System:
    """Return y ~ clean columns w1.. and noised numbers x1..; with one row more in `covariance` y is noised too."""
    p, r = numbers.shape[1], clean.shape[1]
    names = [f"w{k + 1}" for k in range(r)] + [f"x{k + 1}" for k in range(p)] + ["y"]
    variables = tuple(Variable(name) for name in names)
    hidden = p + 1 if len(covariance) > p else p
    state = np.ascontiguousarray(np.column_stack([clean, numbers, response]))
    unknown = np.zeros(state.shape, bool)
    unknown[:, r : r + hidden] = True
    equations = []
    for k in range(p):
        before = names[: r + k]
        nodes = (ONE, *(Ref(name) for name in before))
        equations.append(Equation(r + k, GAUSSIAN, ("Intercept", *before), nodes))
    chosen = columns or {"Intercept": ONE} | {name: Ref(name) for name in names[:-1]}
    family = int(more.pop("family", GAUSSIAN))  # type: ignore[call-overload]
    interest = Equation(r + p, family, tuple(chosen), tuple(chosen.values()))
    noise = normal_noise(state[:, r : r + hidden].copy(), [covariance], range(r, r + hidden), **more)  # type: ignore[arg-type]
    return System(variables, state, unknown, (*equations, interest), noise=noise)
