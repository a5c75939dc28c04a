"""What is kept of a chain: the parameters of every equation by name, group effects, true values on request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...results.draws import Draws
from ...system import GAUSSIAN, NEGATIVE_BINOMIAL, ORDERED, System
from .layout import LayoutPart, unknown_variables
from .sweeps import GibbsChain, SweepPlan

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class Record:
    """The kept draws of one chain."""

    values: Floats
    nuisance: Floats
    effects: tuple[npt.NDArray[np.float32], ...]
    truths: npt.NDArray[np.float32] | None
    every: int

    @classmethod
    def of(cls, plan: SweepPlan, draws: int, truths: int, *, effects: bool) -> Record:
        """Make room for so many draws, and for so many draws of the true values."""
        parts, system = plan.laid_out.parts, plan.system
        interest = parts[-1]
        mine = sum(len(names_of(system, part)) for part in parts[:-1])
        groups = tuple(
            np.zeros((draws, place.groups, place.width), np.float32) for place in interest.effects if effects
        )
        unknown = unknown_variables(system)
        kept = np.zeros((truths, len(system), len(unknown)), np.float32) if truths and unknown else None
        return cls(
            np.zeros((draws, len(names_of(system, interest)))),
            np.zeros((draws, mine)),
            groups,
            kept,
            max(draws // truths, 1) if truths else 0,
        )

    def keep(self, chain: GibbsChain, t: int) -> None:
        """Keep draw t of a chain."""
        parts = chain.plan.laid_out.parts
        self.values[t] = values_of(chain, parts[-1])
        if len(parts) > 1:
            self.nuisance[t] = np.concatenate([values_of(chain, part) for part in parts[:-1]])
        for room, place in zip(self.effects, parts[-1].effects, strict=False):
            room[t] = chain.values.effects[place.begin : place.stop].reshape(place.groups, place.width)
        if self.truths is not None and t % self.every == 0 and t // self.every < len(self.truths):
            self.truths[t // self.every] = true_values(chain)


def names_of(system: System, part: LayoutPart) -> tuple[str, ...]:
    """Name the parameters of an equation: coefficients, then spreads, cuts, shape."""
    equation = part.equation
    names = list(equation.names)
    if equation.family == GAUSSIAN:
        names.append("sigma" if "sigma" not in names else "sigma (residual)")
    for block in equation.effects:
        group = system.factors[block.factor].name
        names += [f"sd({name}|{group})" for name in block.names]
        names += [
            f"cor({block.names[a]},{block.names[b]}|{group})"
            for b in range(len(block.names))
            for a in range(b)
        ]
    if equation.family == ORDERED:
        names += [f"cut[{k + 1}]" for k in range(len(system.variables[equation.response].levels) - 1)]
    if equation.family == NEGATIVE_BINOMIAL:
        names.append("shape")
    return tuple(names)


def nuisance_names(system: System, parts: tuple[LayoutPart, ...]) -> tuple[str, ...]:
    """Name the parameters of the covariate model."""
    found = []
    for part in parts[:-1]:
        variable, stick = system.variables[part.equation.response], part.equation.stick
        label = variable.name if stick is None else f"{variable.name}[{variable.levels[stick]}]"
        found += [f"{label} ~ {name}" for name in names_of(system, part)]
    return tuple(found)


def values_of(chain: GibbsChain, part: LayoutPart) -> Floats:
    """Return the parameters of an equation in the order of their names."""
    equation, values = part.equation, chain.values
    found: list[Any] = [values.coefficients[part.begin : part.stop]]
    if equation.family == GAUSSIAN:
        found.append([values.precision[part.number] ** -0.5])
    for covariance in chain.covariances[part.number]:
        sds = np.sqrt(np.diag(covariance))
        found.append(sds)
        found.append([covariance[a, b] / (sds[a] * sds[b]) for b in range(len(sds)) for a in range(b)])
    if equation.family == ORDERED:
        shift = (
            np.dot(values.coefficients[part.begin : part.stop], equation.centres) if equation.centres else 0.0
        )
        found.append(values.cuts + shift)
    if equation.family == NEGATIVE_BINOMIAL:
        found.append(values.shape)
    return np.concatenate(found)


def true_values(chain: GibbsChain) -> Floats:
    """Return the true values of unknown variables, in the data's units."""
    system = chain.plan.system
    unknown = unknown_variables(system)
    found = chain.state[:, unknown].copy()
    for k, j in enumerate(unknown):
        shift = system.variables[j].log_shift
        if shift is not None:
            found[:, k] = np.exp(found[:, k]) - shift
    return found


def combine_chains(plan: SweepPlan, records: list[Record], sampler: str, info: dict[str, Any]) -> Draws:
    """Put the draws of all chains together."""
    system, parts = plan.system, plan.laid_out.parts
    truths = [record.truths for record in records if record.truths is not None]
    names = tuple(system.variables[j].name for j in unknown_variables(system))
    return Draws(
        names_of(system, parts[-1]),
        np.stack([record.values for record in records]),
        nuisance_names(system, parts),
        np.stack([record.nuisance for record in records]),
        tuple(np.stack([record.effects[k] for record in records]) for k in range(len(records[0].effects))),
        np.stack(truths) if truths else None,
        names if truths else (),
        sampler,
        info,
    )
