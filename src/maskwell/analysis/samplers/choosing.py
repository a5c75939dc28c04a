"""Which sampler a system gets: the fastest that is valid for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import BadPlan
from ..priors import Priors
from ..results.draws import Draws
from ..system import System
from .chains import Progress, Running, run_gibbs

Run = Callable[[System, Priors, Running, np.random.SeedSequence, Progress | None], Draws]


def chosen_sampler(system: System, name: str) -> Run:
    """Return the sampler of a name, refusing one that does not hold; `auto` takes the fastest that does."""
    if name == "gibbs":
        return run_gibbs
    for candidate in ("closed", "marginal", "enumerated", "paper"):
        if name != candidate and (name != "auto" or candidate == "paper"):
            continue
        why_not = _module(candidate).applies(system)
        if why_not is None:
            return _falling_back(candidate) if name == "auto" else _direct(candidate)
        if name == candidate:
            raise BadPlan(f"sampler {name!r} does not hold here: {why_not}; take 'auto'")
    return run_gibbs


def _module(name: str) -> Any:
    from . import closed, enumerated, marginal
    from .proposals import paper

    return {"closed": closed, "marginal": marginal, "enumerated": enumerated, "paper": paper}[name]


def _direct(name: str) -> Run:
    def run(
        system: System,
        priors: Priors,
        running: Running,
        seed: np.random.SeedSequence,
        progress: Progress | None = None,
    ) -> Draws:
        found: Draws | None = _module(name).draw(system, priors, running, seed, progress)
        if found is None:
            raise BadPlan(
                f"sampler {name!r} does not hold here: the noise leaves too little signal; take 'gibbs'"
            )
        return found

    return run


def _falling_back(name: str) -> Run:
    def run(
        system: System,
        priors: Priors,
        running: Running,
        seed: np.random.SeedSequence,
        progress: Progress | None = None,
    ) -> Draws:
        found: Draws | None = _module(name).draw(system, priors, running, seed, progress)
        return run_gibbs(system, priors, running, seed, progress) if found is None else found

    return run
