"""Which sampler a system gets: the fastest that is valid for it.

In the order of FASTEST: `conjugate` (linear, plain normal noise), `marginal` (unknown numbers integrated out),
`enumeration` (unknown categories summed over); each may give way while it runs. Gibbs (`chains`) takes all the rest.
`fit(..., sampler=...)` names one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from ...errors import BadPlan
from ..priors import Priors
from ..results.draws import Draws
from ..system import System
from .chains import ChainSettings, Progress, run_gibbs

FASTEST = ("closed", "marginal", "enumerated")
Run = Callable[[System, Priors, ChainSettings, np.random.SeedSequence, Progress | None], Draws]


class Sampler(Protocol):
    """A way to draw from the posterior of a system: a module with these two functions, or an object."""

    def applies(self, system: System) -> str | None:
        """Say why it does not hold for a system; nothing if it does."""

    def draw(
        self,
        system: System,
        priors: Priors,
        running: ChainSettings,
        seed: np.random.SeedSequence,
        progress: Progress | None = None,
    ) -> Draws | None:
        """Draw from the posterior of a system it holds for, as long as asked; nothing where it has to give way."""


def chosen_sampler(system: System, name: str) -> Run:
    """Return the sampler of a name, refusing one that does not hold; `auto` takes the fastest that does."""
    if name == "gibbs":
        return run_gibbs
    if name == "auto":
        return _falling_back([each for each in FASTEST if _module(each).applies(system) is None])
    why_not = _module(name).applies(system)
    if why_not is not None:
        raise BadPlan(f"sampler {name!r} does not hold here: {why_not}; take 'auto'")
    return _direct(name)


def _module(name: str) -> Sampler:
    from . import conjugate, enumeration, marginal
    from .goldstein import sampler

    samplers: dict[str, Sampler] = {
        "closed": conjugate,
        "marginal": marginal,
        "enumerated": enumeration,
        "paper": sampler,
    }
    return samplers[name]


def _direct(name: str) -> Run:
    def run(
        system: System,
        priors: Priors,
        running: ChainSettings,
        seed: np.random.SeedSequence,
        progress: Progress | None = None,
    ) -> Draws:
        found = _module(name).draw(system, priors, running, seed, progress)
        if found is None:
            raise BadPlan(
                f"sampler {name!r} does not hold here: the noise leaves too little signal, or the priors are too "
                "strong; take 'auto'"
            )
        return found

    return run


def _falling_back(names: Sequence[str]) -> Run:
    """Return what tries one sampler after the other, and the Gibbs sampler where each of them gives way."""

    def run(
        system: System,
        priors: Priors,
        running: ChainSettings,
        seed: np.random.SeedSequence,
        progress: Progress | None = None,
    ) -> Draws:
        for name in names:
            found = _module(name).draw(system, priors, running, seed, progress)
            if found is not None:
                return found
        return run_gibbs(system, priors, running, seed, progress)

    return run
