"""Sampling with the unknown categories summed over, where nothing else is unknown.

A record's likelihood is then a sum over the levels its categories may have, and the posterior has as many dimensions as
the equations have parameters. It is sampled by independence chains (Tierney 1994), whose proposals know every mode;
where these do not mix, because it is skewed, by Hamiltonian ones (Neal 2011). Where these do not mix either `draw`
returns None and the Gibbs sampler, which sees every category, takes over. Chosen by `choice` third, after the closed
form and the marginal sampler.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from ...priors import Priors
from ...results.draws import Draws
from ...system import FAMILIES, GAUSSIAN, NEGATIVE_BINOMIAL, ORDERED, Floats, System
from ..chains import MOST_TRUTHS, ChainSettings, Progress
from ..gibbs.chain_record import names_of, nuisance_names
from ..gibbs.layout import LayoutPart
from ..joint_draws import tell_end
from ..marginal.independence_chain import run, tune_all
from ..marginal.sampler import LONGEST
from .design import problem_of, resolved_priors, why_not
from .hmc import run_trajectories
from .mode import modes_of
from .posterior import EnumeratedPosterior, cuts_of

FEWEST = 50  # draws of half a chain, to compare chains by
DISAGREEING = 0.1  # variance between chains, of that within: an R-hat of 1.05


def applies(system: System) -> str | None:
    """Say why this sampler does not apply to a system; None if it does."""
    return why_not(system)


def draw(
    system: System,
    priors: Priors,
    running: ChainSettings,
    seed: np.random.SeedSequence,
    progress: Progress | None = None,
) -> Draws | None:
    """Draw from the posterior of a system that `applies`, as long as asked; None where the chains do not mix."""
    from .true_categories import with_truths

    rng = np.random.Generator(np.random.SFC64(seed))
    posterior = EnumeratedPosterior(problem_of(system), resolved_priors(system, priors))
    found = chains_of(posterior, running, rng)
    tell_end(running, progress)
    if found is None:
        return None
    draws = named_draws(posterior, found)
    return with_truths(posterior, draws, found.thetas, MOST_TRUTHS, rng) if running.keep_truths else draws


def sample(
    system: System,
    priors: Priors,
    chains: int,
    draws: int,
    rng: np.random.Generator,
    *,
    cores: int | None = None,
) -> Draws | None:
    """Draw from the posterior of a system that `applies`; None where the chains do not mix."""
    posterior = EnumeratedPosterior(problem_of(system), resolved_priors(system, priors))
    found = chains_of(posterior, ChainSettings(chains, draws, cores=cores), rng)
    return None if found is None else named_draws(posterior, found)


class SampledParameters(NamedTuple):
    """Vectors of parameters, chains x draws; how they were drawn, in words; and how well they mixed."""

    thetas: Floats
    way: str
    info: dict[str, object]


def chains_of(
    posterior: EnumeratedPosterior, running: ChainSettings, rng: np.random.Generator
) -> SampledParameters | None:
    """Draw vectors of parameters, by independence chains or, where these stand still, Hamiltonian ones.

    None where there is no proper mode, and where chains do not agree.
    """
    modes = modes_of(posterior)
    if not modes:
        return None
    tuned, rngs, ran = tune_all(posterior, modes, rng), rng.spawn(running.chains), None
    with ThreadPoolExecutor(min(running.chains, running.cores or os.cpu_count() or 1)) as pool:
        if tuned is not None:
            ran = list(pool.map(lambda own: run(posterior, tuned[0], running.draws, own), rngs))
            way, info = "independence", {"effective share of proposals": tuned[1], "modes": len(modes)}
        if ran is None or max(chain.longest for chain in ran) > max(LONGEST * running.draws, 25.0):
            if len(modes) > 1:  # no path leads from one to the other
                return None
            ran = run_trajectories(posterior, modes[0], running.draws, rngs, pool)
            way, info = "Hamiltonian", {}
    if ran is None:
        return None
    thetas = np.stack([chain.thetas for chain in ran])
    if way == "Hamiltonian" and not _agree(thetas):
        return None
    counts = {"combinations": len(posterior.problem.shape.variant)}
    return SampledParameters(
        thetas, way, {"acceptance": [chain.acceptance for chain in ran], **info, **counts}
    )


def _agree(thetas: Floats) -> bool:
    """Whether halves of chains have means alike, as far as few draws can tell (split R-hat)."""
    half = thetas.shape[1] // 2
    if half < FEWEST:
        return True
    halves = np.concatenate([thetas[:, :half], thetas[:, -half:]])
    between, inside = halves.mean(axis=1).var(axis=0, ddof=1), halves.var(axis=1, ddof=1).mean(axis=0)
    return bool(np.all(between < DISAGREEING * inside))


def named_draws(posterior: EnumeratedPosterior, sampled: SampledParameters) -> Draws:
    """Give the parameters the names they have in the Gibbs sampler; logs of sigma and of the shape become these."""
    system, thetas = posterior.problem.system, sampled.thetas
    interest, first = system.interest, len(system.interest.names)
    parts = tuple(LayoutPart(k, equation, 0, 0, ()) for k, equation in enumerate(system.equations))
    coefficients, extra = thetas[:, :, :first], thetas[:, :, posterior.extra]
    if interest.family in (GAUSSIAN, NEGATIVE_BINOMIAL):
        extra = np.exp(extra)
    elif interest.family == ORDERED:
        extra = cuts_of(extra.reshape(-1, extra.shape[2])).reshape(extra.shape)
        if interest.centres:
            extra = extra + (coefficients @ np.array(interest.centres))[:, :, None]
    way = f"{sampled.way} chains on the marginal posterior ({FAMILIES[interest.family]})"
    modes = sampled.info.get("modes", 1)
    others = (
        ""
        if modes == 1
        else f"; {modes} modes, between which levels change places: the noise hardly tells them"
    )
    return Draws(
        names=names_of(system, parts[-1]),
        values=np.concatenate([coefficients, extra], axis=2),
        nuisance_names=nuisance_names(system, parts),
        nuisance=thetas[:, :, first + len(posterior.extra) :].copy(),
        sampler=f"{way}, unknown categories summed over{others}",
        info=sampled.info,
    )
