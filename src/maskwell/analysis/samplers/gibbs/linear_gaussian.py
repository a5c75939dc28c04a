"""Sweeps of linear gaussian systems in one compiled loop: which systems these are, and how their chains are carried.

Every number equation is gaussian; numbers enter alone, with slopes that all records share; all of them are unknown in
every record under plain normal noise; at most one category is unknown; at most one factor groups the records, by
intercepts. Then a sweep draws the category with the numbers integrated out in one pass over the records, and of the
numbers only the sums of products that the parameters need (see `kernels.gibbs_linear_sums`; a collapsed Gibbs sampler,
Liu 1994). Chosen by `chains` where `applies`, in place of `sweeps`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...expressions import ONE, Level, Node, Ref
from ...system import GAUSSIAN, Equation, System
from .layout import unknown_variables
from .sweeps import GibbsChain, SweepPlan

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEW_PATTERNS = 0.25  # of the records: more patterns of known columns than this are not worth counting by
# Draws of values and gaussian equations in a sweep, with a category; without, when they need no pass over records.
REPEATS, REPEATS_OF_SUMS = 2, 4
MOST_AHEAD, VALUES_AHEAD = 16, 100_000  # sweeps at once, and records that these pass over
NO_SPREAD = 1e-12  # of a column's size: less than this within groups is rounding
# Of the sum of squares that residuals must keep, so that sums of products keep their digits
SMALLEST_SHARE = 1e-9


def applies(plan: SweepPlan) -> bool:
    """Whether a system can be swept in one loop."""
    system = plan.system
    return (
        system.lower is None
        and system.counted is None
        and system.interest.offset is None
        and len(system.factors) <= 1
        and _values_apply(plan)
        and all(_equation_applies(plan, e) for e in range(len(system.equations)))
    )


def _values_apply(plan: SweepPlan) -> bool:
    system, unknown = plan.system, unknown_variables(plan.system)
    if not unknown or not system.unknown[:, list(unknown)].all():
        return False
    if system.noise is not None and (
        not system.noise.plain or int(system.noise.arrays.pattern.max(initial=0)) > 0
    ):
        return False
    categories = [j for j in unknown if system.variables[j].is_category]
    return len(categories) <= 1 and all(j != system.interest.response for j in categories)


def _equation_applies(plan: SweepPlan, e: int) -> bool:
    """Whether an equation is gaussian in single numbers and levels, or a stick of known columns."""
    system, equation = plan.system, plan.system.equations[e]
    nodes = plan.laid_out.columns[e][: len(equation.columns)]
    grouped = [block.columns for block in equation.effects]
    if any(columns != (ONE,) for columns in grouped) or len(grouped) != len(system.factors):
        return False
    if equation.stick is not None:
        return all(not _unknown_in(system, node) for node in nodes)
    if equation.family != GAUSSIAN:
        return False
    return all(isinstance(node, Ref | Level) or not _unknown_in(system, node) for node in nodes)


def _unknown_in(system: System, node: Node) -> bool:
    from ...formulas.expression_trees import refs

    names = {system.variables[j].name for j in unknown_variables(system)}
    return bool(refs(node) & names)


@dataclass(slots=True)
class LinearGaussianChain:
    """A chain in the arrays of the one loop; `step` moves it and tells the chain its parameters.

    The loop makes some sweeps at once, because handing it the arrays takes as long as a sweep of a small system: the
    chain that moves (`moving`) may be ahead of what was `told`. A sweep begins with all unknown values, given the
    parameters, so that to tell of values is to draw them anew.
    """

    chain: GibbsChain
    records: Any
    shape: Any
    priors: Any
    moving: Any
    told: Any
    room: Any
    gaussian: tuple[int, ...]
    stick: tuple[int, ...]
    order: Ints  # the records of the system in the order of the one loop
    kept: Floats
    rng: np.random.Generator  # for values that are told: the chain's own gives the same draws without
    next: int = 0

    def step(self) -> None:
        """Move the chain by one sweep."""
        from ....kernels.gibbs_linear import sweep

        if self.next % len(self.kept) == 0:
            sweep(self.records, self.shape, self.priors, self.moving, self.room, self.kept, self.chain.rng)
        self.told.flat[:] = self.kept[self.next % len(self.kept)]
        self.next += 1
        self._tell()

    def _tell(self) -> None:
        """Copy the parameters to where the chain has them."""
        values, parts = self.chain.values, self.chain.plan.laid_out.parts
        parameters, sticks = self.told.parameters, self.told.sticks
        for k, e in enumerate(self.gaussian):
            part = parts[e]
            values.coefficients[part.begin : part.stop] = parameters.coefficients[k, : part.stop - part.begin]
            values.precision[e] = parameters.precision[k]
            for place in part.effects:
                values.effects[place.begin : place.stop] = parameters.effects[k]
                self.chain.covariances[e][0][0, 0] = parameters.variance[k]
        for k, e in enumerate(self.stick):
            part = parts[e]
            values.coefficients[part.begin : part.stop] = sticks.coefficients[k]
            for place in part.effects:
                values.effects[place.begin : place.stop] = sticks.effects[k]
                self.chain.covariances[e][0][0, 0] = sticks.variance[k]

    def tell_state(self) -> None:
        """Draw the unknown values given the parameters that were told, and put them where the chain has them."""
        from ....kernels.gibbs_linear import draw_values

        system, laid_out = self.chain.plan.system, self.chain.plan.laid_out
        numbers = np.zeros((len(system), len(laid_out.numbers)))
        draw_values(self.records, self.shape, self.told, self.room, numbers, self.rng)
        for a, j in enumerate(laid_out.numbers):
            self.chain.state[self.order, j] = numbers[:, a]
        for j in unknown_variables(system):
            if system.variables[j].is_category:
                self.chain.state[self.order, j] = self.records.code


def linear_gaussian_chain(chain: GibbsChain) -> LinearGaussianChain | None:
    """Carry a chain into the one loop, or return nothing where its system or its scales do not allow it."""
    from ....kernels.gibbs_linear_levels import room_of

    plan = chain.plan
    if not applies(plan):
        return None
    gaussian = tuple(e for e, equation in enumerate(plan.system.equations) if equation.stick is None)
    stick = tuple(e for e, equation in enumerate(plan.system.equations) if equation.stick is not None)
    basis = _Basis(plan)
    for e in gaussian:
        basis.add_equation(e)
    if not basis.keeps_digits(gaussian):
        return None
    patterns = _patterns(plan, stick)
    if patterns is None:
        return None
    columns, group, pattern = patterns
    order = np.argsort(pattern, kind="stable")
    shape = basis.shape(gaussian)
    values = basis.values(chain.state)[order]
    records = _records(chain, shape, values, (pattern, order))
    moving, told = (_chain(chain, (gaussian, stick), columns, group) for _ in range(2))
    ahead = max(1, min(MOST_AHEAD, VALUES_AHEAD // len(plan.system))) if stick else MOST_AHEAD
    return LinearGaussianChain(
        chain,
        records,
        shape,
        _priors(plan, gaussian),
        moving,
        told,
        room_of(records, shape, values, max(shape.columns.shape[1], columns.shape[1])),
        gaussian,
        stick,
        order,
        np.zeros((ahead, len(moving.flat))),
        chain.rng.spawn(1)[0],
    )


class _Basis:
    """The distinct columns and responses of the gaussian equations: 1, known ones, numbers, levels."""

    def __init__(self, plan: SweepPlan) -> None:
        self.plan, self.system = plan, plan.system
        self.nodes: list[Node] = [ONE]
        self.columns: dict[int, list[int]] = {}
        self.response: dict[int, int] = {}

    def add_equation(self, e: int) -> None:
        equation: Equation = self.system.equations[e]
        nodes = self.plan.laid_out.columns[e][: len(equation.columns)]
        self.columns[e] = [self._place(node) for node in nodes]
        self.response[e] = self._place(Ref(self.system.variables[equation.response].name))

    def _place(self, node: Node) -> int:
        if node not in self.nodes:
            self.nodes.append(node)
        return self.nodes.index(node)

    def values(self, state: Floats) -> Floats:
        from ...formulas.expression_trees import evaluate

        values = {variable.name: state[:, j] for j, variable in enumerate(self.system.variables)}
        return np.ascontiguousarray(np.stack([evaluate(node, values) for node in self.nodes], axis=1))

    def keeps_digits(self, gaussian: tuple[int, ...]) -> bool:
        """Whether no response is so far from 0 that sums of squares would lose the residuals."""
        values = self.values(self.system.state)
        for e in gaussian:
            y = values[:, self.response[e]]
            if float(y.var()) < SMALLEST_SHARE * float((y**2).mean()):
                return False
        return True

    def shape(self, gaussian: tuple[int, ...]) -> Any:
        from ....kernels.gibbs_linear_levels import LinearShape

        system = self.system
        names = [system.variables[j].name for j in self.plan.laid_out.numbers]
        number = [self.nodes.index(Ref(name)) for name in names]
        category = [system.variables[j] for j in unknown_variables(system) if system.variables[j].is_category]
        level = [-1]
        if category:
            wanted = [Level(category[0].name, k) for k in range(len(category[0].levels))]
            level = [self.nodes.index(node) if node in self.nodes else -1 for node in wanted]
        known = [b for b in range(1, len(self.nodes)) if b not in number and b not in level]
        width = [len(self.columns[e]) for e in gaussian]
        columns = np.zeros((len(gaussian), max(width)), np.int64)
        for k, e in enumerate(gaussian):
            columns[k, : width[k]] = self.columns[e]
        answers = np.array([self.response[e] for e in gaussian], np.int64)
        return LinearShape(
            np.array(number, np.int64),
            np.array(level, np.int64),
            np.array(known, np.int64),
            answers,
            np.array(width, np.int64),
            columns,
            bool(system.factors),
            REPEATS if category else REPEATS_OF_SUMS,
        )


def _records(chain: GibbsChain, shape: Any, values: Floats, by: tuple[Ints, Ints]) -> Any:
    """Lay out the records: their pattern, and their order by it; `values` of the basis are in order."""
    from ....kernels.gibbs_linear_levels import LinearRecords

    system, (pattern, order) = chain.plan.system, by
    code, table = np.zeros(len(system), np.int64), np.zeros((len(system), 1))
    for j, found, _ in chain.plan.laid_out.categories:
        code, table = chain.state[order, j].astype(np.int64), found[order]
        table = table[:, 1:] - table[:, :1] if table.shape[1] == 2 else table
    linear, precision = np.zeros((len(system), 0)), np.zeros((0, 0))
    if len(chain.plan.laid_out.numbers):
        linear, precision = chain.plain.linear[order], chain.plain.precision[0]
    group = _group(system)[order]
    fixed, centre = _group_centred_columns(
        np.hstack([values[:, shape.known], linear]), group, _groups(system)
    )
    begin = np.concatenate([[0], np.cumsum(np.bincount(pattern))])
    table = np.ascontiguousarray(table)
    return LinearRecords(fixed, code, group, begin, table, centre, fixed.T @ fixed, precision)


def _group_centred_columns(values: Floats, group: Ints, groups: int) -> tuple[Floats, Floats]:
    """Return columns less their means in the groups, and these."""
    centre = np.zeros((groups, values.shape[1]))
    np.add.at(centre, group, values)
    centre /= np.maximum(np.bincount(group, minlength=groups), 1)[:, None]
    left = values - centre[group]
    largest = np.abs(values).max(axis=0, initial=0.0)
    left[:, np.abs(left).max(axis=0, initial=0.0) <= NO_SPREAD * largest] = 0.0
    return np.ascontiguousarray(left), centre


def _group(system: System) -> Ints:
    return system.factors[0].codes if system.factors else np.zeros(len(system), np.int64)


def _groups(system: System) -> int:
    return len(system.factors[0].labels) if system.factors else 1


def _patterns(plan: SweepPlan, stick: tuple[int, ...]) -> tuple[Floats, Ints, Ints] | None:
    """Number the distinct rows of the sticks' columns within groups; nothing where there are too many."""
    from ...formulas.expression_trees import evaluate

    system = plan.system
    if not stick:
        return np.zeros((1, 0)), np.zeros(1, np.int64), np.zeros(len(system), np.int64)
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    nodes = plan.laid_out.columns[stick[0]][: len(system.equations[stick[0]].columns)]
    rows = np.stack([*(evaluate(node, values) for node in nodes), _group(system).astype(np.float64)], axis=1)
    distinct, pattern = np.unique(rows, axis=0, return_inverse=True)
    if len(distinct) > FEW_PATTERNS * len(system):
        return None
    columns = np.ascontiguousarray(distinct[:, :-1])
    return columns, distinct[:, -1].astype(np.int64), pattern.ravel().astype(np.int64)


def _priors(plan: SweepPlan, gaussian: tuple[int, ...]) -> Any:
    from ....kernels.gibbs_linear import LinearPriors

    chosen = [plan.priors[e] for e in gaussian]
    width = max(len(prior.sd) for prior in chosen)
    precision, linear = np.zeros((len(chosen), width)), np.zeros((len(chosen), width))
    for k, prior in enumerate(chosen):
        precision[k, : len(prior.sd)] = prior.sd**-2.0
        linear[k, : len(prior.sd)] = prior.mean * prior.sd**-2.0
    residual = np.array([prior.residual_scale for prior in chosen])
    return LinearPriors(precision, linear, residual, np.array([_scale(prior) for prior in chosen]))


def _scale(prior: Any) -> float:
    return float(prior.effect_scales[0][0]) if prior.effect_scales else 1.0


def _chain(chain: GibbsChain, equations: tuple[tuple[int, ...], ...], columns: Floats, group: Ints) -> Any:
    """Copy the parameters of a chain to one array, of which those of the gaussian equations and sticks are views."""
    from ....kernels import gibbs_linear
    from ....kernels.gibbs_linear_levels import LinearParameters

    gaussian, stick = equations
    found = [*_values(chain, gaussian), chain.values.precision[list(gaussian)], *_values(chain, stick)]
    flat = np.concatenate([one.ravel() for one in found])
    ends = np.cumsum([one.size for one in found])
    views = [flat[end - one.size : end].reshape(one.shape) for one, end in zip(found, ends, strict=True)]
    coefficients, effects, variance, precision = views[:4]
    parameters = LinearParameters(coefficients, precision, effects, variance)
    return gibbs_linear.LinearChain(parameters, _sticks(chain, stick, (columns, group), views[4:]), flat)


def _values(chain: GibbsChain, equations: tuple[int, ...]) -> list[Floats]:
    """Return the coefficients of some equations, their groups' effects, and the variance of these."""
    parts = [chain.plan.laid_out.parts[e] for e in equations]
    width = max((part.stop - part.begin for part in parts), default=0)
    coefficients, variance = np.zeros((len(parts), width)), np.ones(len(parts))
    effects = np.zeros((len(parts), _groups(chain.plan.system) if chain.plan.system.factors else 0))
    for k, part in enumerate(parts):
        coefficients[k, : part.stop - part.begin] = chain.values.coefficients[part.begin : part.stop]
        for place in part.effects:
            effects[k] = chain.values.effects[place.begin : place.stop]
            variance[k] = chain.covariances[part.number][0][0, 0]
    return [coefficients, effects, variance]


def _sticks(chain: GibbsChain, stick: tuple[int, ...], by: tuple[Floats, Ints], views: list[Floats]) -> Any:
    from ....kernels.gibbs_linear import Sticks
    from ....kernels.stick_breaking_probit import ROWS

    chosen, (columns, group) = [chain.plan.priors[e] for e in stick], by
    precision = np.array([prior.sd**-2.0 for prior in chosen]).reshape(len(stick), columns.shape[1])
    linear = np.array([prior.mean * prior.sd**-2.0 for prior in chosen]).reshape(precision.shape)
    scales = np.array([_scale(prior) for prior in chosen])
    room = np.zeros((ROWS, len(columns)))
    aside = np.zeros((2, columns.shape[1])), np.zeros((2, views[1].shape[1]))
    coefficients, effects, variance = views
    own = coefficients, effects, variance, room
    return Sticks(columns, group, precision, linear, scales, *own, *aside)
