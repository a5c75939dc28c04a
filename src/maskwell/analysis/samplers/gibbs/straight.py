"""Sweeps of linear gaussian systems in one compiled loop: which systems these are, and how their chains are carried.

Every number equation is gaussian; numbers enter alone, with slopes that all records share; all of them are unknown in
every record under plain normal noise; at most one category is unknown; at most one factor groups the records, by
intercepts. Then a sweep draws the category with the numbers integrated out and needs one pass over the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...expressions import ONE, Level, Node, Ref
from ...system import GAUSSIAN, Equation, System
from .laid_out import unknown_variables
from .sweeps import Chain, Plan

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FEW_PATTERNS = 0.25  # of the records: more patterns of known columns than this are not worth counting by
SMALLEST_SHARE = (
    1e-9  # of the sum of squares that residuals must keep, so that sums of products keep their digits
)


def applies(plan: Plan) -> bool:
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


def _values_apply(plan: Plan) -> bool:
    system, unknown = plan.system, unknown_variables(plan.system)
    if not unknown or not system.unknown[:, list(unknown)].all():
        return False
    if system.noise is not None and (
        not system.noise.plain or int(system.noise.arrays.pattern.max(initial=0)) > 0
    ):
        return False
    categories = [j for j in unknown if system.variables[j].is_category]
    return len(categories) <= 1 and all(j != system.interest.response for j in categories)


def _equation_applies(plan: Plan, e: int) -> bool:
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
    from ...formulas.trees import refs

    names = {system.variables[j].name for j in unknown_variables(system)}
    return bool(refs(node) & names)


@dataclass(slots=True)
class Swept:
    """A chain in the arrays of the one loop; `step` moves it and tells the chain its parameters."""

    chain: Chain
    records: Any
    shape: Any
    priors: Any
    parameters: Any
    sticks: Any
    room: Any
    gaussian: tuple[int, ...]
    stick: tuple[int, ...]

    def step(self) -> None:
        """Move the chain by one sweep."""
        from ....kernels.straight import sweep

        sweep(self.records, self.shape, self.priors, self.parameters, self.sticks, self.room, self.chain.rng)
        self._tell()

    def _tell(self) -> None:
        """Copy the parameters to where the chain has them."""
        values, parts = self.chain.values, self.chain.plan.laid_out.parts
        for k, e in enumerate(self.gaussian):
            part = parts[e]
            values.coefficients[part.begin : part.stop] = self.parameters.coefficients[
                k, : part.stop - part.begin
            ]
            values.precision[e] = self.parameters.precision[k]
            for place in part.effects:
                values.effects[place.begin : place.stop] = self.parameters.effects[k]
                self.chain.covariances[e][0][0, 0] = self.parameters.variance[k]
        for k, e in enumerate(self.stick):
            part = parts[e]
            values.coefficients[part.begin : part.stop] = self.sticks.coefficients[k]
            for place in part.effects:
                values.effects[place.begin : place.stop] = self.sticks.effects[k]
                self.chain.covariances[e][0][0, 0] = self.sticks.variance[k]

    def tell_state(self) -> None:
        """Copy the unknown values to where the chain has them."""
        system = self.chain.plan.system
        for a, j in enumerate(self.chain.plan.laid_out.numbers):
            self.chain.state[:, j] = self.records.basis[:, self.shape.number[a]]
        for j in unknown_variables(system):
            if system.variables[j].is_category:
                self.chain.state[:, j] = self.records.code


def swept(chain: Chain) -> Swept | None:
    """Carry a chain into the one loop, or return nothing where its system or its scales do not allow it."""
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
    records = _records(chain, basis, pattern)
    shape = basis.shape(gaussian)
    room = _room(len(gaussian), shape, records, columns)
    return Swept(
        chain,
        records,
        shape,
        _priors(plan, gaussian),
        _parameters(chain, gaussian),
        _sticks(chain, stick, columns, group),
        room,
        gaussian,
        stick,
    )


class _Basis:
    """The distinct columns and responses of the gaussian equations: 1, known ones, numbers, levels."""

    def __init__(self, plan: Plan) -> None:
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
        from ...formulas.trees import evaluate

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
        from ....kernels.straight import Shape

        system = self.system
        names = [system.variables[j].name for j in self.plan.laid_out.numbers]
        number = [self.nodes.index(Ref(name)) for name in names]
        category = [system.variables[j] for j in unknown_variables(system) if system.variables[j].is_category]
        level = [-1]
        if category:
            wanted = [Level(category[0].name, k) for k in range(len(category[0].levels))]
            level = [self.nodes.index(node) if node in self.nodes else -1 for node in wanted]
        known = [b for b in range(len(self.nodes)) if b not in number and b not in level]
        width = [len(self.columns[e]) for e in gaussian]
        columns = np.zeros((len(gaussian), max(width)), np.int64)
        for k, e in enumerate(gaussian):
            columns[k, : width[k]] = self.columns[e]
        answers = np.array([self.response[e] for e in gaussian], np.int64)
        return Shape(
            np.array(number, np.int64),
            np.array(level, np.int64),
            np.array(known, np.int64),
            answers,
            np.array(width, np.int64),
            columns,
            bool(system.factors),
        )


def _records(chain: Chain, basis: _Basis, pattern: Ints) -> Any:
    from ....kernels.straight import Records

    system = chain.plan.system
    code, table = np.zeros(len(system), np.int64), np.zeros((len(system), 1))
    for j, found, _ in chain.plan.laid_out.categories:
        code, table = chain.state[:, j].astype(np.int64), found
    group = system.factors[0].codes if system.factors else np.zeros(len(system), np.int64)
    linear, precision = np.zeros((len(system), 0)), np.zeros((0, 0))
    if len(chain.plan.laid_out.numbers):
        linear, precision = chain.plain.linear, chain.plain.precision[0]
    values = basis.values(chain.state)
    return Records(values, code, np.ascontiguousarray(group), pattern, linear, precision, table)


def _patterns(plan: Plan, stick: tuple[int, ...]) -> tuple[Floats, Ints, Ints] | None:
    """Number the distinct rows of the sticks' columns within groups; nothing where there are too many."""
    from ...formulas.trees import evaluate

    system = plan.system
    group = system.factors[0].codes if system.factors else np.zeros(len(system), np.int64)
    if not stick:
        return np.zeros((1, 0)), np.zeros(1, np.int64), np.zeros(len(system), np.int64)
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    nodes = plan.laid_out.columns[stick[0]][: len(system.equations[stick[0]].columns)]
    rows = np.stack([*(evaluate(node, values) for node in nodes), group.astype(np.float64)], axis=1)
    distinct, pattern = np.unique(rows, axis=0, return_inverse=True)
    if len(distinct) > FEW_PATTERNS * len(system):
        return None
    columns = np.ascontiguousarray(distinct[:, :-1])
    return columns, distinct[:, -1].astype(np.int64), pattern.ravel().astype(np.int64)


def _priors(plan: Plan, gaussian: tuple[int, ...]) -> Any:
    from ....kernels.straight import Priors

    chosen = [plan.priors[e] for e in gaussian]
    width = max(len(prior.sd) for prior in chosen)
    precision, linear = np.zeros((len(chosen), width)), np.zeros((len(chosen), width))
    for k, prior in enumerate(chosen):
        precision[k, : len(prior.sd)] = prior.sd**-2.0
        linear[k, : len(prior.sd)] = prior.mean * prior.sd**-2.0
    residual = np.array([prior.residual_scale for prior in chosen])
    return Priors(precision, linear, residual, np.array([_scale(prior) for prior in chosen]))


def _scale(prior: Any) -> float:
    return float(prior.effect_scales[0][0]) if prior.effect_scales else 1.0


def _parameters(chain: Chain, gaussian: tuple[int, ...]) -> Any:
    from ....kernels.straight import Parameters

    parts = [chain.plan.laid_out.parts[e] for e in gaussian]
    groups = len(chain.plan.system.factors[0].labels) if chain.plan.system.factors else 1
    coefficients = np.zeros((len(parts), max(part.stop - part.begin for part in parts)))
    effects, variance = np.zeros((len(parts), groups)), np.ones(len(parts))
    for k, part in enumerate(parts):
        coefficients[k, : part.stop - part.begin] = chain.values.coefficients[part.begin : part.stop]
        for place in part.effects:
            effects[k] = chain.values.effects[place.begin : place.stop]
            variance[k] = chain.covariances[part.number][0][0, 0]
    return Parameters(coefficients, chain.values.precision[list(gaussian)].copy(), effects, variance)


def _sticks(chain: Chain, stick: tuple[int, ...], columns: Floats, group: Ints) -> Any:
    from ....kernels.straight import Sticks

    parts = [chain.plan.laid_out.parts[e] for e in stick]
    chosen = [chain.plan.priors[e] for e in stick]
    groups = len(chain.plan.system.factors[0].labels) if chain.plan.system.factors else 1
    precision = np.array([prior.sd**-2.0 for prior in chosen]).reshape(len(stick), columns.shape[1])
    linear = np.array([prior.mean * prior.sd**-2.0 for prior in chosen]).reshape(precision.shape)
    coefficients, effects, variance = (
        np.zeros(precision.shape),
        np.zeros((len(stick), groups)),
        np.ones(len(stick)),
    )
    for k, part in enumerate(parts):
        coefficients[k] = chain.values.coefficients[part.begin : part.stop]
        for place in part.effects:
            effects[k] = chain.values.effects[place.begin : place.stop]
            variance[k] = chain.covariances[part.number][0][0, 0]
    scales = np.array([_scale(prior) for prior in chosen])
    mode = np.zeros((len(stick), len(columns)))
    return Sticks(columns, group, precision, linear, scales, coefficients, effects, variance, mode)


def _room(equations: int, shape: Any, records: Any, columns: Floats) -> Any:
    from ....kernels.straight import Sweep

    places, numbers, levels = records.basis.shape[1], len(shape.number), records.table.shape[1]
    groups = int(records.group.max(initial=0)) + 1
    return Sweep(
        np.zeros((equations, places)),
        np.zeros((numbers, numbers)),
        np.zeros((len(columns), levels)),
        np.zeros((groups, places, places)),
        np.zeros((len(columns), levels)),
        np.zeros(equations),
        np.zeros((levels, numbers)),
        np.zeros(levels),
        np.zeros(places),
    )
