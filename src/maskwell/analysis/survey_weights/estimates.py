"""Estimates of one resample after the other: in closed form, at the mode, or by short chains that start warm.

An estimate is the posterior mean (the mode of the marginal posterior, where the resamples are recentred
anyway). What a resample leaves open within itself does not count: the resamples differ by the sampling
variance already (see `bootstrap`, after Goldstein, Carpenter and Kenward 2018). Estimates come in two halves, whose
difference tells the error of their draws. The way is that of `samplers.choice`, with short Gibbs chains where it gives
none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ..priors import Priors
from ..results.draws import Draws
from ..samplers.chains import ChainSettings, run_gibbs
from ..system import Floats, Ints, System
from .resamples import ResampledUnits, drawn_system, taken_arrays

ROUNDINGS = 8  # of the weighted sample, where weights are no whole counts
CLOSED_DRAWS, CLOSED_CENTRE, MARGINAL_CENTRE = 100, 4000, 500
COLD = ChainSettings(chains=1, draws=400, warmup=300, cores=1, keep_effects=False)
PILOT, CENTRE_DRAWS = 500, 1500
LEAST_DRAWS, LONGEST_TIME = 40, 40.0  # of a short chain; steps until draws are as good as independent


class Estimator(Protocol):
    """How resamples of one system are fitted."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of the model of interest."""

    @property
    def nuisance_names(self) -> tuple[str, ...]:
        """The parameters of the covariate model."""

    @property
    def priors(self) -> Priors:
        """The priors of a fit."""

    @property
    def words(self) -> str:
        """How each resample is fitted."""

    @property
    def resamples(self) -> int:
        """How many are made unless something else is asked for."""

    def prepare(self, rng: np.random.Generator) -> None:
        """Do what all fits need."""

    def centre(self, units: ResampledUnits, rng: np.random.Generator, share: int) -> Floats:
        """Estimate, in halves, from the weighted sample itself: one of `share` roundings of its weights."""

    def estimate(self, units: ResampledUnits, rng: np.random.Generator) -> Floats:
        """Estimate from a resample: 2 halves x (parameters of interest, then of the covariate model)."""


def estimator_of(system: System, priors: Priors, sampler: str, warmup: int) -> Estimator:
    """Return the fastest way to estimate that holds for a system, or that of a name."""
    from ..samplers import conjugate, marginal
    from ..samplers.choice import chosen_sampler

    chosen_sampler(system, sampler)  # refuses what does not hold
    rng = np.random.default_rng(0)  # only to see whether it works
    if sampler in ("auto", "closed") and conjugate.applies(system) is None:
        found = conjugate.sample(system, priors, 1, CLOSED_DRAWS, rng)
        if found is not None:
            return ClosedFormMeans(system, priors, found.names, found.nuisance_names)
    if sampler in ("auto", "marginal") and marginal.applies(system) is None:
        found = marginal.sample(system, priors, 1, MARGINAL_CENTRE, rng, cores=1)
        if found is not None:
            return MarginalEstimate(system, priors, found.names, found.nuisance_names)
    return ShortChains(system, priors, warmup)


@dataclass(frozen=True, slots=True)
class ClosedFormMeans:
    """Posterior means from independent draws in closed form."""

    system: System = field(repr=False)
    priors: Priors
    names: tuple[str, ...]
    nuisance_names: tuple[str, ...]
    words: str = "each fitted in closed form"
    resamples: int = 1000

    def prepare(self, rng: np.random.Generator) -> None:
        """Nothing is needed."""

    def centre(self, units: ResampledUnits, rng: np.random.Generator, share: int) -> Floats:
        """Return the posterior mean of a rounding."""
        system = drawn_system(self.system, units.rounded(rng))
        return self._means(system, max(CLOSED_CENTRE // share, CLOSED_DRAWS), rng)

    def estimate(self, units: ResampledUnits, rng: np.random.Generator) -> Floats:
        """Return the posterior mean of a resample."""
        return self._means(drawn_system(self.system, units.draw(rng)), CLOSED_DRAWS, rng)

    def _means(self, system: System, draws: int, rng: np.random.Generator) -> Floats:
        from ..samplers import conjugate

        found = conjugate.sample(system, self.priors, 1, draws, rng)
        return _cold(self, system, rng) if found is None else _halves(found, self)


@dataclass(frozen=True, slots=True)
class MarginalEstimate:
    """Modes of the marginal posterior."""

    system: System = field(repr=False)
    priors: Priors
    names: tuple[str, ...]
    nuisance_names: tuple[str, ...]
    words: str = "each fitted at the mode of the marginal posterior"
    resamples: int = 1000

    def prepare(self, rng: np.random.Generator) -> None:
        """Nothing is needed."""

    def centre(self, units: ResampledUnits, rng: np.random.Generator, share: int) -> Floats:
        """Return the posterior mean of a rounding."""
        from ..samplers import marginal

        system = drawn_system(self.system, units.rounded(rng))
        found = marginal.sample(system, self.priors, 1, MARGINAL_CENTRE, rng, cores=1)
        return _cold(self, system, rng) if found is None else _halves(found, self)

    def estimate(self, units: ResampledUnits, rng: np.random.Generator) -> Floats:
        """Return the mode of a resample."""
        from ..samplers.marginal.design import problem_of, resolved_priors
        from ..samplers.marginal.mode import fit
        from ..samplers.marginal.posterior import MarginalPosterior
        from ..samplers.marginal.sampler import named_draws

        system = drawn_system(self.system, units.draw(rng))
        posterior = MarginalPosterior(problem_of(system), resolved_priors(system, self.priors))
        found = fit(posterior)
        if found is None:
            return _cold(self, system, rng)
        twice = np.stack([found.mode, found.mode])[None]
        return _halves(named_draws(system, posterior, twice, {}), self)


def _cold(by: Estimator, system: System, rng: np.random.Generator) -> Floats:
    """Fit one resample by Gibbs, where a faster way fails on it."""
    seed = np.random.SeedSequence(int(rng.integers(2**63)))
    return _halves(run_gibbs(system, by.priors, COLD, seed), by)


def _halves(found: Draws, by: Estimator) -> Floats:
    """Return means of the first and the second half of the draws, parameters in the estimator's order."""
    nuisance = np.empty((*found.values.shape[:2], 0)) if found.nuisance is None else found.nuisance
    whole = np.concatenate([found.values, nuisance], axis=2).reshape(-1, len(found.names) + nuisance.shape[2])
    places = {name: k for k, name in enumerate((*found.names, *found.nuisance_names))}
    whole = whole[:, [places[name] for name in (*by.names, *by.nuisance_names)]]
    half = len(whole) // 2
    return np.stack([whole[:half].mean(axis=0), whole[half:].mean(axis=0)])


class ShortChains:
    """Posterior means from short chains that start where a long one has been."""

    resamples = 600

    def __init__(self, system: System, priors: Priors, warmup: int) -> None:
        from ..samplers.gibbs.chain_record import names_of, nuisance_names
        from ..samplers.gibbs.sweeps import plan_of

        self.system, self.priors, self.warmup = system, priors, warmup
        self.plan = plan_of(system, priors)
        parts = self.plan.laid_out.parts
        self.names, self.nuisance_names = names_of(system, parts[-1]), nuisance_names(system, parts)
        self.pilot: Any = None
        self.burn, self.draws = 0, LEAST_DRAWS

    @property
    def words(self) -> str:
        """How each is fitted."""
        return f"each fitted by {self.draws} Gibbs draws after {self.burn} from a warm start"

    def prepare(self, rng: np.random.Generator) -> None:
        """Run one chain on the records as they are: where to start, and how long a chain must be."""
        from ..samplers.gibbs.sweeps import start, step

        self.pilot = start(self.plan, rng)
        for _ in range(self.warmup):
            step(self.pilot)
        values = np.empty((PILOT, len(self.names)))
        for t in range(PILOT):
            step(self.pilot)
            values[t] = _parameters(self.pilot)[: len(self.names)]
        time = min(_correlation_time(values), LONGEST_TIME)
        self.burn, self.draws = int(3 * time) + 10, 2 * int(max(LEAST_DRAWS / 2, 5 * time))

    def centre(self, units: ResampledUnits, rng: np.random.Generator, share: int) -> Floats:
        """Return the posterior mean of a rounding; the weights may move it far, so the chain warms up longer."""
        drawn = units.rounded(rng)
        return self._run(drawn, (4 * self.burn, max(self.draws, CENTRE_DRAWS // share)), rng)

    def estimate(self, units: ResampledUnits, rng: np.random.Generator) -> Floats:
        """Return the posterior mean of a resample."""
        return self._run(units.draw(rng), (self.burn, self.draws), rng)

    def _run(
        self, drawn: tuple[Ints, tuple[Ints, ...]], length: tuple[int, int], rng: np.random.Generator
    ) -> Floats:
        from ..samplers.gibbs.sweeps import plan_of, start, step

        chain = start(plan_of(drawn_system(self.system, drawn), self.priors), rng)
        self._warm(chain, drawn[0])
        for _ in range(length[0]):
            step(chain)
        values = np.empty((length[1], len(self.names) + len(self.nuisance_names)))
        for t in range(length[1]):
            step(chain)
            values[t] = _parameters(chain)
        half = length[1] // 2
        return np.stack([values[:half].mean(axis=0), values[half:].mean(axis=0)])

    def _warm(self, chain: Any, records: Ints) -> None:
        """Give a chain the parameters of the pilot, and its true values of the records drawn."""
        chain.state[:] = self.pilot.state[records]
        if self.system.noise is not None and not self.system.noise.plain:
            chain.noise = taken_arrays(self.pilot.noise, records)
        for name in ("coefficients", "precision", "cuts", "shape"):
            getattr(chain.values, name)[:] = getattr(self.pilot.values, name)
        for own, pilot in zip(chain.covariances, self.pilot.covariances, strict=True):
            own[:] = [covariance.copy() for covariance in pilot]


def _parameters(chain: Any) -> Floats:
    from ..samplers.gibbs.chain_record import values_of

    parts = chain.plan.laid_out.parts
    return np.concatenate([values_of(chain, part) for part in (parts[-1], *parts[:-1])])


def _correlation_time(values: Floats) -> float:
    """Return how many steps the worst parameter needs for one independent draw."""
    from arviz_stats.base import array_stats  # type: ignore[attr-defined]

    stats: Any = array_stats
    with np.errstate(all="ignore"):
        ess = np.asarray(stats.ess(values[None], chain_axis=0, draw_axis=1), np.float64)
    known = ess[np.isfinite(ess)]
    return float(len(values) / max(known.min(), 1.0)) if len(known) else 1.0
