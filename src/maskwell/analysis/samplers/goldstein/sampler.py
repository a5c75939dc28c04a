"""The paper's own sampler (A3) for a system, by name: `fit(..., sampler="paper")`.

Goldstein and Shlomo, appendix (A1)-(A3), with the Hastings ratio that (A3) lacks (`metropolis` has the details).
Never chosen by itself: it serves the study of the paper.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...expressions import Level, Node, Ref
from ...priors import Priors
from ...results.draws import Draws
from ...system import GAUSSIAN, System
from ..chains import ChainSettings, Progress
from ..gibbs.layout import unknown_variables

Floats = npt.NDArray[np.float64]
SAID = "the paper's Metropolis sampler (A3) with the Hastings ratio, flat priors"


def applies(system: System) -> str | None:
    """Return why the paper's sampler does not hold for a system; nothing where it does."""
    interest, unknown = system.interest, unknown_variables(system)
    noise, names = system.noise, {system.variables[j].name for j in unknown}
    if interest.family != GAUSSIAN or interest.effects or interest.offset is not None:
        return "it is for linear models of one level"
    if not unknown or interest.response in unknown or not system.unknown[:, list(unknown)].all():
        return "it needs noise on every record of some predictors, and none on the response"
    if system.lower is not None or (noise is not None and not _is_independent(system)):
        return "it needs independent normal noise without limits"
    from ...formulas.expression_trees import refs

    if any(refs(node) & names and not isinstance(node, Ref | Level) for node in interest.columns):
        return "noised columns must enter alone, without transforms or interactions"
    wanted = [node for node in _order(system) if node not in interest.columns]
    return "every level of a noised category but its first must be in the model" if wanted else None


def _is_independent(system: System) -> bool:
    """Whether the noise is plain, one for each number."""
    arrays = system.noise.arrays
    crossed = arrays.turn - np.array([np.diag(np.diag(turn)) for turn in arrays.turn])
    return bool(system.noise.plain and not crossed.any() and len(arrays.turn) == 1)


def _order(system: System) -> list[Node]:
    """Return the noised columns in the sampler's order: numbers, then the levels of each category but its first."""
    unknown = [system.variables[j] for j in unknown_variables(system)]
    numbers: list[Node] = [Ref(variable.name) for variable in unknown if not variable.is_category]
    levels = [
        Level(variable.name, k)
        for variable in unknown
        if variable.is_category
        for k in range(1, len(variable.levels))
    ]
    return numbers + levels


def draw(
    system: System,
    priors: Priors,
    running: ChainSettings,
    seed: np.random.SeedSequence,
    progress: Progress | None = None,
) -> Draws:
    """Run the paper's sampler; its priors are flat, whatever `priors` says."""
    from ...formulas.expression_trees import evaluate
    from .metropolis import NoisedData, paper_draws

    interest, noised = system.interest, _order(system)
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    known = [node for node in interest.columns if node not in noised]
    clean = np.stack([evaluate(node, values) for node in known], axis=1)
    numbers, sds = _released_numbers(system)
    tables = tuple(
        np.ascontiguousarray(system.tables[j])
        for j in unknown_variables(system)
        if system.variables[j].is_category
    )
    response = np.ascontiguousarray(system.state[:, interest.response])
    data = NoisedData(response, np.ascontiguousarray(clean), numbers, sds, tables)
    found = paper_draws(data, chains=running.chains, warmup=running.warmup, draws=running.draws, seed=seed)
    places = [(known + noised).index(node) for node in interest.columns]
    drawn = found.values[:, :, [*places, -1]]
    accepted = {"accepted": np.mean(found.accepted, axis=0).ravel().tolist()}
    return Draws((*interest.names, "sigma"), drawn, sampler=SAID, info=accepted)


def _released_numbers(system: System) -> tuple[Floats, Floats]:
    """Return released numbers on the scale of the state, and the sds of their noise there."""
    if system.noise is None:
        return np.empty((len(system), 0)), np.empty((len(system), 0))
    arrays = system.noise.arrays
    slope = np.asarray(arrays.slope)
    numbers = (arrays.u - arrays.offset - arrays.shift) / slope
    precision = np.diag(arrays.turn[0]) ** 2 * arrays.weight
    return np.ascontiguousarray(numbers), np.ascontiguousarray(1.0 / np.sqrt(precision) / np.abs(slope))
