"""Sampling with the unknown numbers integrated out, where they are normal given what was released.

The linear predictor of a record is then normal too, so the likelihood of its response is closed (gaussian, probit) or
an integral over one dimension, and the posterior has as many dimensions as the equations have parameters. It is
sampled by independence chains (Tierney 1994); where these do not mix, because the noise hardly leaves a signal, `draw`
returns None and the Gibbs sampler, which sees every unknown number, takes over. Chosen by `choice` second, after the
closed form.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ...priors import Priors
from ...results.draws import Draws
from ...system import FAMILIES, GAUSSIAN, Floats, System
from ..chains import ChainSettings, Progress
from ..joint_draws import draw_at_once
from .design import problem_of, resolved_priors, why_not
from .families import INTEGRATED, has_extra
from .independence_chain import run, tune
from .mode import fit
from .posterior import MarginalPosterior

LONGEST = 0.02  # of the draws of a chain that it may stand still


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

    def whole(rng: np.random.Generator) -> Draws | None:
        return sample(system, priors, running.chains, running.draws, rng, cores=running.cores)

    return draw_at_once(whole, system, running, seed, progress)


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
    posterior = MarginalPosterior(problem_of(system), resolved_priors(system, priors))
    found = fit(posterior)
    tuned = None if found is None else tune(posterior, found, rng)
    if found is None or tuned is None:
        return None
    proposal, efficiency = tuned
    with ThreadPoolExecutor(min(chains, cores or os.cpu_count() or 1)) as pool:
        ran = list(pool.map(lambda own: run(posterior, proposal, draws, own), rng.spawn(chains)))
    if max(chain.longest for chain in ran) > max(LONGEST * draws, 25.0):
        return None
    info = {
        "acceptance": [chain.acceptance for chain in ran],
        "effective share of proposals": efficiency,
        "nodes": 2 * posterior.family.pairs if system.interest.family in INTEGRATED else 0,
        "error of the log likelihood": found.error,
    }
    return named_draws(system, posterior, np.stack([chain.thetas for chain in ran]), info)


def named_draws(
    system: System, posterior: MarginalPosterior, thetas: Floats, info: dict[str, object]
) -> Draws:
    """Give the parameters their names; logs of sds and of the shape become these."""
    family, interest, ends = system.interest.family, system.interest, posterior.ends
    first = thetas[:, :, : ends[1]].copy()
    names = interest.names
    if has_extra(family):
        first[:, :, -1] = np.exp(first[:, :, -1])
        names = (*names, "sigma" if family == GAUSSIAN else "shape")
    nuisance_names, nuisance = [], []
    for j, equation in enumerate(system.equations[:-1]):
        name = system.variables[equation.response].name
        nuisance_names += [f"{name} ~ {own}" for own in (*equation.names, "sigma")]
        nuisance += [thetas[:, :, ends[j + 1] : ends[j + 2]], np.exp(thetas[:, :, ends[-2] + j, None])]
    return Draws(
        names=names,
        values=first,
        nuisance_names=tuple(nuisance_names),
        nuisance=np.concatenate(nuisance, axis=2),
        sampler=f"independence chains on the marginal posterior ({FAMILIES[family]}), unknown numbers integrated out",
        info=info,
    )
