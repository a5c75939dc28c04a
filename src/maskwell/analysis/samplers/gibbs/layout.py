"""From a system of equations to the flat arrays that the compiled loops work on.

It decides how each unknown is drawn: numbers in which every equation is linear and gaussian (or augmented: Albert and
Chib 1993; Polson, Scott and Windle 2013) together from a normal law, up to JOINT_SLICES others together on an
elliptical slice, more of them one by one; categories by enumeration. Made once for `sweeps`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...expressions import ONE, Binary, Node, Number
from ...system import GAUSSIAN, LOGIT, ORDERED, PROBIT, Equation, System

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

AUGMENTED = (PROBIT, LOGIT, ORDERED)
JOINT_SLICES = 3  # more numbers than this follow a slice one by one


@dataclass(frozen=True, slots=True)
class EffectsPlace:
    """Where the effects of one factor of an equation lie: groups x columns from `begin` on."""

    factor: int
    begin: int
    groups: int
    width: int

    @property
    def stop(self) -> int:
        """Where they end."""
        return self.begin + self.groups * self.width


@dataclass(frozen=True, slots=True)
class LayoutPart:
    """Where the parameters of one equation lie."""

    number: int
    equation: Equation
    begin: int
    stop: int
    effects: tuple[EffectsPlace, ...]

    @property
    def augmented(self) -> bool:
        """Whether utilities or Polya-Gamma weights make it gaussian."""
        return self.equation.family in AUGMENTED


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A system in flat arrays: layout, parts, blocks of numbers, categories with the equations they occur in.

    `early` blocks see the model of interest by its likelihood and are drawn before utilities; `late` ones after them.
    A noised count that is the response is drawn by its `counts`, or given the noise of all numbers (`shares_count`).
    """

    system: System
    layout: Any = field(repr=False)
    parts: tuple[LayoutPart, ...]
    early: tuple[Any, ...] = field(repr=False)
    late: tuple[Any, ...] = field(repr=False)
    categories: tuple[tuple[int, Floats, Ints], ...] = field(repr=False)
    limits: Any = field(repr=False)
    numbers: Ints = field(repr=False)
    counts: Any = field(default=None, repr=False)
    shares_count: bool = False
    effects_size: int = 0
    columns: tuple[tuple[Node, ...], ...] = field(default=(), repr=False)

    @property
    def hidden(self) -> tuple[int, Any, Any]:
        """What the loops need of noised counts: the response, which cells are unknown, and their chances."""
        return self.system.interest.response, self.limits.unknown, self.counts


def unknown_variables(system: System) -> tuple[int, ...]:
    """Return the variables that have unknown cells."""
    return tuple(int(j) for j in np.flatnonzero(system.unknown.any(axis=0)))


def unknown_numbers(system: System) -> Ints:
    """Return the unknown variables that are numbers, without a count whose noise is its own."""
    own = system.interest.response if system.counts is not None else -1
    found = [j for j in unknown_variables(system) if not system.variables[j].is_category and j != own]
    return np.array(found, np.int64)


def lay_out(system: System) -> LaidOut:
    """Lower a system to flat arrays."""
    from ....kernels.gibbs_records import DrawLimits

    columns = tuple(tuple(_nodes(system, equation)) for equation in system.equations)
    layout, parts, size = _layout(system, columns)
    numbers = unknown_numbers(system)
    blocks = list(_blocks(system, columns, numbers))
    last = len(system.equations) - 1
    early = tuple(block for block in blocks if last in block.other)
    late = tuple(block for block in blocks if last not in block.other)
    empty = np.empty((0, 0))
    lower = empty if system.lower is None else np.ascontiguousarray(system.lower)
    upper = empty if system.upper is None else np.ascontiguousarray(system.upper)
    limits = DrawLimits(np.ascontiguousarray(system.unknown), lower, upper)
    categories = tuple(_categories(system, columns))
    shares_count = system.is_count_unknown and system.counts is None
    counted = system.counts, shares_count
    return LaidOut(system, layout, parts, early, late, categories, limits, numbers, *counted, size, columns)


def _nodes(system: System, equation: Equation) -> Iterator[Node]:
    """Return the columns of an equation on the scale of the state: fixed ones, then those of group effects."""
    from ...formulas.expression_trees import on_state

    for k, node in enumerate(equation.columns):
        state = on_state(node, system.variables)
        yield Binary("sub", state, Number(equation.centres[k])) if equation.centres else state
    for effects in equation.effects:
        yield from (on_state(node, system.variables) for node in effects.columns)


def _layout(system: System, columns: Sequence[Sequence[Node]]) -> tuple[Any, tuple[LayoutPart, ...], int]:
    from ....kernels.equations import Layout
    from ...formulas.expression_trees import split
    from ...formulas.programs import programs_of

    names = [variable.name for variable in system.variables]
    unknown = {names[j] for j in unknown_variables(system)}
    pieces = [split(node, unknown) for nodes in columns for node in nodes]
    clean, source = _clean(system, [known for known, _ in pieces])
    programs = programs_of([latent for _, latent in pieces], {name: j for j, name in enumerate(names)})
    parts, places, size = _parts(system)
    begin = np.concatenate([[0], np.cumsum([len(nodes) for nodes in columns])]).astype(np.int64)
    codes = [factor.codes for factor in system.factors] or [np.zeros(len(system), np.int64)]
    counted = np.ones(len(system), bool) if system.counted is None else system.counted
    equations = system.equations
    layout = Layout(
        clean=clean,
        codes=np.ascontiguousarray(np.stack(codes, axis=1), dtype=np.int64),
        programs=programs,
        begin=begin,
        source=source,
        factor=places[:, 0].copy(),
        place=places[:, 1].copy(),
        stride=places[:, 2].copy(),
        response=np.array([equation.response for equation in equations]),
        family=np.array([equation.family for equation in equations]),
        stick=np.array([-1 if equation.stick is None else equation.stick for equation in equations]),
        offset=_offset(system),
        counted=counted,
    )
    return layout, parts, size


def _clean(system: System, nodes: Sequence[Node]) -> tuple[Floats, Ints]:
    """Return the known factors of all columns, each once, and which one each column has."""
    from ...formulas.expression_trees import evaluate

    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    distinct = list(dict.fromkeys([ONE, *nodes]))
    out = np.empty((len(system), len(distinct)))
    for k, node in enumerate(distinct):
        out[:, k] = evaluate(node, values)
    return out, np.array([distinct.index(node) for node in nodes], np.int64)


def _parts(system: System) -> tuple[tuple[LayoutPart, ...], Ints, int]:
    """Give every coefficient and every group effect its place."""
    parts, places, fixed, effects = [], [], 0, 0
    for number, equation in enumerate(system.equations):
        begin = fixed
        places += [(-1, fixed + c, 0) for c in range(len(equation.columns))]
        fixed += len(equation.columns)
        mine = []
        for block in equation.effects:
            width, groups = len(block.columns), len(system.factors[block.factor].labels)
            places += [(block.factor, effects + c, width) for c in range(width)]
            mine.append(EffectsPlace(block.factor, effects, groups, width))
            effects += groups * width
        parts.append(LayoutPart(number, equation, begin, fixed, tuple(mine)))
    return tuple(parts), np.array(places, np.int64), effects


def _offset(system: System) -> Floats:
    from ...formulas.expression_trees import evaluate

    node = system.interest.offset
    if node is None:
        return np.empty(0)
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    return np.ascontiguousarray(np.broadcast_to(evaluate(node, values), len(system)), dtype=np.float64)


def _categories(system: System, columns: Sequence[Sequence[Node]]) -> Iterator[tuple[int, Floats, Ints]]:
    """Return each unknown category with its table and the equations that speak of it."""
    from ...formulas.expression_trees import refs

    for j in unknown_variables(system):
        variable = system.variables[j]
        if not variable.is_category:
            continue
        table = system.tables.get(j)
        if table is None:
            table = np.zeros((len(system), len(variable.levels)))
        equations = [
            e
            for e, equation in enumerate(system.equations)
            if equation.response == j or any(variable.name in refs(node) for node in columns[e])
        ]
        yield j, np.ascontiguousarray(table), np.array(equations, np.int64)


def _blocks(system: System, columns: Sequence[Sequence[Node]], numbers: Ints) -> Iterator[Any]:
    """Group the unknown numbers: those in which everything is linear together, others by slices."""
    count = system.interest.response if system.is_count_unknown else -1
    drawn = [int(j) for j in numbers if j != count]
    sliced = [j for j in drawn if _is_curved(system, columns, j)]
    straight: list[list[int]] = []
    for j in drawn:
        if j in sliced:
            continue
        home = next((block for block in straight if _are_affine(system, columns, [*block, j])), None)
        if home is None:
            straight.append([j])
        else:
            home.append(j)
    groups = [sliced] if len(sliced) <= JOINT_SLICES else [[j] for j in sliced]
    for members in [*groups, *straight]:
        if members:
            yield _block(system, columns, numbers, members)


def _is_curved(system: System, columns: Sequence[Sequence[Node]], j: int) -> bool:
    """Whether some equation is not linear and gaussian in a number, or its noise depends on its value."""
    if _spreads(system, [j]):
        return True
    for e, equation in enumerate(system.equations):
        if _touches(system, columns[e], equation, [j]) and not _is_exact(system, columns[e], equation, [j]):
            return True
    return False


def _are_affine(system: System, columns: Sequence[Sequence[Node]], members: list[int]) -> bool:
    return all(
        _is_exact(system, columns[e], equation, members)
        for e, equation in enumerate(system.equations)
        if _touches(system, columns[e], equation, members)
    )


def _touches(system: System, nodes: Sequence[Node], equation: Equation, members: Sequence[int]) -> bool:
    from ...formulas.expression_trees import refs

    names = {system.variables[j].name for j in members}
    return equation.response in members or any(names & refs(node) for node in nodes)


def _is_exact(system: System, nodes: Sequence[Node], equation: Equation, members: Sequence[int]) -> bool:
    """Whether an equation gives a normal conditional of some numbers together, each column affine in one of them."""
    from ...formulas.expression_trees import degree, refs

    names = {system.variables[j].name for j in members}
    if equation.family != GAUSSIAN and equation.family not in AUGMENTED:
        return False
    return all(degree(node, names) <= 1 and len(names & refs(node)) <= 1 for node in nodes)


def _spreads(system: System, members: Sequence[int]) -> bool:
    """Whether the noise of some number depends on its value."""
    if system.noise is None:
        return False
    gaussian = dict(zip(system.noise.columns.tolist(), system.noise.gaussian.tolist(), strict=True))
    return not all(gaussian.get(j, True) for j in members)


def _block(system: System, columns: Sequence[Sequence[Node]], numbers: Ints, members: list[int]) -> Any:
    from ....kernels.gibbs_records import ResponseBlock
    from ...formulas.expression_trees import refs

    names = {system.variables[j].name: j for j in members}
    inside = np.full(len(system.variables), -1, np.int64)
    inside[members] = np.arange(len(members))
    number = []
    for nodes in columns:
        for node in nodes:
            within = [names[name] for name in refs(node) if name in names]
            number.append(within[0] if len(within) == 1 else -1)
    touched = [
        e for e, equation in enumerate(system.equations) if _touches(system, columns[e], equation, members)
    ]
    exact = [e for e in touched if _is_exact(system, columns[e], system.equations[e], members)]
    other = [e for e in touched if e not in exact]
    among = np.array([int(np.flatnonzero(numbers == j)[0]) for j in members], np.int64)
    whole = np.array(number, np.int64)
    spread = _spreads(system, members)
    chosen = np.array(exact, np.int64), np.array(other, np.int64)
    return ResponseBlock(np.array(members, np.int64), inside, whole, *chosen, among, numbers.copy(), spread)
