"""What a fitted system offers for prediction: its columns made of new covariates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..errors import BadPlan, raise_all
from .columns import BETWEEN
from .expressions import Node
from .results.draws import Draws
from .system import FAMILIES, Effects, Factor, Floats, Ints, System

Labels = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class SystemPredictor:
    """The model of interest; of its records the known covariates, where nothing is unknown or true values were kept.

    `hidden` has the columns needed that are unknown, and what is added to their draws: those of a noised whole number
    are codes from its base on. `unanswered` are the records without a response; `coded` has the values of numbers that
    the formula takes for categories.
    """

    family: str
    levels: Mapping[str, tuple[str, ...]]
    groups: tuple[str, ...]
    categories: tuple[str, ...]
    names: tuple[str, ...] = field(repr=False)
    nodes: tuple[Node, ...] = field(repr=False)
    offset_node: Node | None = field(repr=False)
    blocks: tuple[Effects, ...] = field(repr=False)
    factors: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = field(repr=False)
    records: tuple[Mapping[str, Floats], Mapping[str, Labels]] | None = field(default=None, repr=False)
    coded: Mapping[str, tuple[float, ...]] = field(default_factory=dict, repr=False)
    hidden: Mapping[str, float] = field(default_factory=dict)
    unanswered: Ints = field(default_factory=lambda: np.zeros(0, np.int64), repr=False)

    @classmethod
    def of(
        cls, system: System, draws: Draws, coded: Mapping[str, tuple[float, ...]] | None = None
    ) -> SystemPredictor:
        """Take what prediction needs from a system."""
        from .formulas.expression_trees import refs

        interest = system.interest
        response = system.variables[interest.response]
        nodes = [*interest.columns, *(node for block in interest.effects for node in block.columns)]
        nodes += [] if interest.offset is None else [interest.offset]
        needed = set().union(*(refs(node) for node in nodes)) if nodes else set()
        levels = {v.name: v.levels if v.base is None else () for v in system.variables if v.name in needed}
        hidden = {
            v.name: v.base or 0.0
            for j, v in enumerate(system.variables)
            if v.name in needed and system.unknown[:, j].any()
        }
        names = tuple(dict.fromkeys(part for factor in system.factors for part in factor.columns))
        return cls(
            FAMILIES[interest.family],
            levels,
            names,
            response.levels if FAMILIES[interest.family] == "ordered" else (),
            interest.names,
            interest.columns,
            interest.offset,
            interest.effects,
            tuple((factor.columns, factor.labels) for factor in system.factors),
            None if hidden and draws.truths is None else _known_covariates(system, needed - set(hidden)),
            dict(coded or {}),
            hidden,
            np.flatnonzero([] if draws.truths is None or system.counted is None else ~system.counted),
        )

    def columns(self, values: Mapping[str, Floats]) -> Floats:
        """Return records x coefficients."""
        self._check_values(values)
        return _prediction_design(self.names, self.nodes, values)

    def offset(self, values: Mapping[str, Floats]) -> Floats | None:
        """Return what is added to the linear predictor, if anything."""
        if self.offset_node is None:
            return None
        return _prediction_design(("offset",), (self.offset_node,), values)[:, 0]

    def _check_values(self, values: Mapping[str, Floats]) -> None:
        """Refuse values of C(n) that no fitted record had: they would be taken for its reference."""
        raise_all(
            [
                f"column {name!r} is taken for a category and has values that no fitted record had; the model knows "
                f"{', '.join(f'{value:g}' for value in known)}"
                for name, known in self.coded.items()
                if not np.isin(values[name], known).all()
            ],
            BadPlan,
        )

    def effects(
        self, values: Mapping[str, Floats], groups: Mapping[str, Labels]
    ) -> list[tuple[Ints, Floats]]:
        """Return, for each set of group effects, the group of each record (-1: not known) and records x columns.

        Values of the same records many times over, one draw after the other, give as many columns.
        """
        found = []
        for block in self.blocks:
            columns, labels = self.factors[block.factor]
            places = {label: k for k, label in enumerate(labels)}
            parts = [groups[part] for part in columns]
            joined = [BETWEEN.join(map(str, row)) for row in zip(*parts, strict=True)]
            codes = np.array([places.get(label, -1) for label in joined], np.int64)
            rows = max((len(column) for column in values.values()), default=len(codes))
            found.append((codes, _prediction_design(block.names, block.columns, values, rows)))
        return found

    def fitted(self) -> tuple[Mapping[str, Floats], Mapping[str, Labels]] | None:
        """Return the covariates of the records fitted, but for those hidden; None if not kept."""
        return self.records


def _prediction_design(
    names: tuple[str, ...], nodes: tuple[Node, ...], values: Mapping[str, Floats], count: int | None = None
) -> Floats:
    """Return records x columns; a logarithm of what has none is refused by name."""
    from .formulas.expression_trees import evaluate, refs

    length = count if count is not None else max((len(column) for column in values.values()), default=1)
    out = np.empty((length, len(nodes)))
    for k, node in enumerate(nodes):
        out[:, k] = evaluate(node, values)
    problems = [
        f"{name} is not a finite number for some of the records to predict; check their values of "
        f"{', '.join(map(repr, sorted(refs(node))))}"
        for name, node, column in zip(names, nodes, out.T, strict=True)
        if not np.isfinite(column).all()
    ]
    raise_all(problems, BadPlan)
    return out


def _known_covariates(system: System, names: set[str]) -> tuple[Mapping[str, Floats], Mapping[str, Labels]]:
    """Return covariates of all records in the data's units, and the labels of their groups."""
    values: dict[str, Floats] = {}
    for j, variable in enumerate(system.variables):
        if variable.name in names:
            state, shift = system.state[:, j], variable.log_shift
            values[variable.name] = state if shift is None else np.exp(state) - shift
    return values, {part: labels for factor in system.factors for part, labels in _labels(factor)}


def _labels(factor: Factor) -> list[tuple[str, Labels]]:
    whole = np.array([label.split(BETWEEN) for label in factor.labels], dtype=object)
    parts = factor.columns
    if whole.ndim != 2 or whole.shape[1] != len(parts):
        return []
    return [(part, whole[factor.codes, k]) for k, part in enumerate(parts)]
