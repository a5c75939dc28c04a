"""Systems with unknown categories, made by hand: what the enumerated sampler is tested on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.special import expit

from maskwell.analysis.expressions import ONE, Binary, Level, Ref
from maskwell.analysis.formulas.expression_trees import evaluate
from maskwell.analysis.priors import ResolvedPriors
from maskwell.analysis.system import (
    GAUSSIAN,
    LOGIT,
    NEGATIVE_BINOMIAL,
    ORDERED,
    PROBIT,
    Equation,
    System,
    Variable,
)

COLUMNS = {
    "Intercept": ONE,
    "w": Ref("w"),
    "a[1]": Level("a", 1),
    "a[2]": Level("a", 2),
    "b": Ref("b"),
    "w:a[1]": Binary("mul", Ref("w"), Level("a", 1)),
}
COEFFICIENTS = np.array([0.3, 0.5, 0.8, -0.6, 0.5, -0.4])


def responses(family: int, eta: np.ndarray, rng) -> np.ndarray:
    n = len(eta)
    if family == GAUSSIAN:
        return eta + 0.8 * rng.normal(size=n)
    if family == PROBIT:
        return (eta + rng.normal(size=n) > 0).astype(float)
    if family == LOGIT:
        return (rng.random(n) < expit(eta)).astype(float)
    if family == ORDERED:
        return np.digitize(eta + rng.normal(size=n), [-0.5, 0.4, 1.2]).astype(float)
    more = rng.gamma(2.0, 0.5, size=n) if family == NEGATIVE_BINOMIAL else 1.0
    return rng.poisson(np.exp(np.minimum(eta, 4.0)) * more).astype(float)


def pram(codes: np.ndarray, levels: int, kept: float, rng) -> tuple[np.ndarray, np.ndarray]:
    """Return codes of which a share was replaced by another one, and the log table of what was released."""
    matrix = np.full((levels, levels), (1 - kept) / (levels - 1))
    np.fill_diagonal(matrix, kept)
    moved = (codes + rng.integers(1, levels, len(codes))) % levels
    out = np.where(rng.random(len(codes)) < kept, codes, moved).astype(int)
    return out, np.log(matrix[:, out]).T


def sticks(variables: tuple[Variable, ...], j: int, columns: dict) -> list[Equation]:
    count = len(variables[j].levels) - 1
    return [Equation(j, PROBIT, tuple(columns), tuple(columns.values()), stick=s) for s in range(count)]


def make(family: int, n: int, seed: int, *, kept: float = 0.85, discrete: bool = False) -> System:
    """Return y ~ w + a + b + w:a[1] with noise on a (3 levels) and a whole number b (4 or 5), some cells missing."""
    rng = np.random.default_rng(seed)
    w = rng.integers(-1, 2, n).astype(float) if discrete else rng.normal(size=n)
    a = np.digitize(0.5 * w + rng.normal(size=n), [-0.5, 0.6])
    b = (0.3 * w - 0.5 * (a == 1) + rng.normal(size=n) > 0).astype(int)
    values = {"w": w, "a": a.astype(float), "b": b + 4.0}
    eta = np.stack([evaluate(node, values) for node in COLUMNS.values()], axis=1) @ COEFFICIENTS - 2.0
    y = responses(family, eta, rng)
    (a, first), (b, second) = pram(a, 3, kept, rng), pram(b, 2, kept, rng)
    first[::9] = 0.0
    answers = tuple("0123") if family == ORDERED else ()
    variables = (Variable("w"), Variable("a", tuple("xyz")), Variable("b", ("4", "5"), base=4.0))
    variables = (*variables, Variable("y", answers))
    unknown = np.zeros((n, 4), bool)
    unknown[:, 1:3] = True
    unknown[1::9, 1] = False
    columns = {"Intercept": ONE, "w": Ref("w")}
    more = {"a[y]": Level("a", 1), "a[z]": Level("a", 2)}
    equations = [*sticks(variables, 1, columns), *sticks(variables, 2, columns | more)]
    chosen = {name: node for name, node in COLUMNS.items() if family != ORDERED or node != ONE}
    state = np.column_stack([w, a, b, y]).astype(float)
    interest = Equation(3, family, tuple(chosen), tuple(chosen.values()))
    if family == ORDERED:
        interest = replace(interest, centres=(0.1, 0.3, 0.2, 4.5, 0.0))
    counted = np.arange(n) % 11 > 0
    return System(
        variables, state, unknown, (*equations, interest), tables={1: first, 2: second}, counted=counted
    )


def misclassified(family: int, n: int, seed: int) -> System:
    """Return it with noise on a binary response too."""
    system = make(family, n, seed)
    y, table = pram(system.state[:, 3].astype(int), 2, 0.9, np.random.default_rng(seed))
    state, unknown = system.state.copy(), system.unknown.copy()
    state[:, 3], unknown[:, 3] = y, system.counted
    variables = (*system.variables[:3], Variable("y", ("no", "yes")))
    tables = {**system.tables, 3: table}
    return replace(system, state=state, unknown=unknown, variables=variables, tables=tables)


def with_b_known(system: System) -> System:
    """Return it with the released `b` taken for true: fewer parameters, so that Gibbs needs less time."""
    unknown = system.unknown.copy()
    unknown[:, 2] = False
    equations = tuple(equation for equation in system.equations if equation.response != 2)
    tables = {j: table for j, table in system.tables.items() if j != 2}
    return replace(system, unknown=unknown, equations=equations, tables=tables)


def drawn_from_the_prior(n: int, rng) -> tuple[System, tuple[ResolvedPriors, ...], np.ndarray]:
    """Return a file of the model y ~ w + a under normal and half-t priors, its priors, and the parameters it has."""
    sds = (0.6, 0.6, 1.0)
    sizes = (2, 2, 4)
    priors = tuple(
        ResolvedPriors(np.zeros(size), np.full(size, sd), 1.0, ())
        for size, sd in zip(sizes, sds, strict=True)
    )
    parts = [rng.normal(0, sd, size) for size, sd in zip(sizes, sds, strict=True)]
    sigma = abs(rng.standard_t(2))
    w = rng.normal(size=n)
    known = np.column_stack([np.ones(n), w])
    one, two = (known @ part + rng.normal(size=n) > 0 for part in parts[:2])
    a = np.where(one, 0, np.where(two, 1, 2))
    y = np.column_stack([known, a == 1, a == 2]) @ parts[2] + sigma * rng.normal(size=n)
    a, table = pram(a, 3, 0.9, rng)
    variables = (Variable("w"), Variable("a", tuple("xyz")), Variable("y"))
    columns = {"Intercept": ONE, "w": Ref("w")}
    more = columns | {"a[y]": Level("a", 1), "a[z]": Level("a", 2)}
    interest = Equation(2, GAUSSIAN, tuple(more), tuple(more.values()))
    unknown = np.tile([False, True, False], (n, 1))
    state = np.column_stack([w, a, y]).astype(float)
    system = System(variables, state, unknown, (*sticks(variables, 1, columns), interest), tables={1: table})
    return system, priors, np.concatenate([parts[2], [np.log(sigma)], *parts[:2]])
