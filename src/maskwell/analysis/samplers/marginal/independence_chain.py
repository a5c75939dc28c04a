"""Chains on a marginal posterior by proposals that do not depend on where the chain is.

A proposal is multivariate t around the mode, on the scale of the curvature there and wider where the posterior is; else
with the moments of weighted draws. It is accepted with chance min(1, w(new) / w(old)), w = posterior density / proposal
density: Hastings' ratio (Tierney 1994, independence chains). For several modes it is a mixture of such laws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from ...system import Bools, Floats, Ints
from .mode import ModeFit

PILOT = 400  # draws that the proposal is judged by and improved with
ROUNDS = 4  # in which the proposal is fitted to weighted draws
GOOD = 0.7  # share of effective draws at which a proposal is not improved further
POOR = 0.3  # below: no proposal to sample with
BATCH = 128  # proposals whose densities are computed at once
REACHES = (1.0, 2.0, 3.0, 4.5)  # standard deviations from the mode at which the posterior is looked at
NARROWEST, WIDEST = 0.8, 3.0  # factors on an axis of the proposal
LEAST_SHARE = 0.02  # of the proposals that go to a mode, however little the posterior has there


class Target(Protocol):
    """What is sampled: the log density of vectors of parameters, constants apart."""

    @property
    def axes(self) -> Ints:
        """The parameters in the order of the proposal's axes, those whose posterior is skewed first."""

    def log_densities(self, thetas: Floats) -> Floats:
        """Return the log density of each row, minus infinity where it has none."""


@dataclass(frozen=True, slots=True)
class ChainProposal:
    """A multivariate t law, each of whose axes (columns of `root`) is stretched by its own factor on either side."""

    centre: Floats
    root: Floats
    df: float
    ahead: Floats
    behind: Floats

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return draws and their log densities, constants apart."""
        round_ = rng.standard_normal((count, len(self.centre)))
        round_ *= np.sqrt(self.df / rng.chisquare(self.df, count))[:, None]
        stretch = np.where(round_ > 0.0, self.ahead, self.behind)
        return self.centre + (stretch * round_) @ self.root.T, self._logs(round_, stretch)

    def log_densities(self, thetas: Floats) -> Floats:
        """Return the log density of each row, but for what laws of as many dimensions and the same df share."""
        away = np.linalg.solve(self.root, (thetas - self.centre).T).T
        stretch = np.where(away > 0.0, self.ahead, self.behind)
        return self._logs(away / stretch, stretch) - float(np.linalg.slogdet(self.root)[1])

    def _logs(self, round_: Floats, stretch: Floats) -> Floats:
        logs = -0.5 * (self.df + len(self.centre)) * np.log1p((round_**2).sum(axis=1) / self.df)
        return np.asarray(logs - np.log(stretch).sum(axis=1))


@dataclass(frozen=True, slots=True)
class ProposalMixture:
    """Several proposals, one for each mode, drawn from by their shares: chains then go from mode to mode."""

    parts: tuple[ChainProposal, ...]
    shares: Floats

    def draw(self, count: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return draws and their log densities, constants apart."""
        counts = rng.multinomial(count, self.shares)
        drawn = [part.draw(int(own), rng)[0] for part, own in zip(self.parts, counts, strict=True)]
        thetas = rng.permutation(np.concatenate(drawn))
        return thetas, self.log_densities(thetas)

    def log_densities(self, thetas: Floats) -> Floats:
        """Return the log density of each row, constants apart."""
        logs = np.stack([part.log_densities(thetas) for part in self.parts])
        return np.asarray(np.logaddexp.reduce(logs + np.log(self.shares)[:, None], axis=0))


class ChainDraws(NamedTuple):
    """A chain's draws, the share of proposals it accepted and the longest it stood still."""

    thetas: Floats
    acceptance: float
    longest: int


def tune(posterior: Target, fit: ModeFit, rng: np.random.Generator) -> tuple[ChainProposal, float] | None:
    """Fit a proposal around the mode, or to weighted draws, and say what share of its draws is effective.

    None where that share stays poor.
    """
    size = len(fit.mode)
    best = trial = _split(posterior, fit)
    highest = 0.0
    for _ in range(ROUNDS):
        thetas, logs = trial.draw(PILOT, rng)
        weights = _weights(posterior.log_densities(thetas) - logs)
        efficiency = float(1.0 / (len(weights) * (weights**2).sum()))
        if efficiency > highest:
            best, highest = trial, efficiency
        if efficiency > GOOD or efficiency * PILOT < 4.0 * size:
            break
        trial = _refitted_proposal(trial, thetas, weights)
    return None if highest < POOR else (best, highest)


def tune_all(
    posterior: Target, fits: Sequence[ModeFit], rng: np.random.Generator
) -> tuple[ChainProposal | ProposalMixture, float] | None:
    """Fit a proposal to each mode, in shares of what the posterior has there; None where one of them is poor."""
    tuned = [tune(posterior, fit, rng) for fit in fits]
    found = [one for one in tuned if one is not None]
    if len(found) < len(tuned) or len(found) < 2:
        return found[0] if found and len(found) == len(tuned) else None
    parts, masses = tuple(proposal for proposal, _ in found), []
    for part in parts:
        thetas, _ = part.draw(PILOT, rng)
        masses.append(np.logaddexp.reduce(posterior.log_densities(thetas) - part.log_densities(thetas)))
    mixture = ProposalMixture(parts, np.maximum(_weights(np.array(masses)), LEAST_SHARE))
    mixture = ProposalMixture(parts, mixture.shares / mixture.shares.sum())
    thetas, logs = mixture.draw(PILOT, rng)
    weights = _weights(posterior.log_densities(thetas) - logs)
    efficiency = float(1.0 / (len(weights) * (weights**2).sum()))
    return None if efficiency < POOR else (mixture, efficiency)


def _split(posterior: Target, fit: ModeFit) -> ChainProposal:
    """Stretch each axis so that the proposal falls no faster than the posterior on either side (Geweke 1989).

    The first axes follow the sds and what else is skewed, with the other parameters where these then lie.
    """
    size = len(fit.mode)
    order, root = posterior.axes, np.empty((size, size))
    root[order] = np.linalg.cholesky((fit.root @ fit.root.T)[np.ix_(order, order)])
    far = np.array(REACHES)
    steps = (far[:, None, None] * root.T).reshape(-1, size)
    top = float(posterior.log_densities(fit.mode[None])[0])
    factors = []
    for side in (1.0, -1.0):
        drop = top - posterior.log_densities(fit.mode + side * steps).reshape(len(far), size)
        ratio = far[:, None] / np.sqrt(2.0 * np.maximum(drop, 1e-3))
        factors.append(np.clip(ratio.max(axis=0), NARROWEST, WIDEST))
    return ChainProposal(fit.mode, root, 8.0 + size, factors[0], factors[1])


def _weights(logs: Floats) -> Floats:
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _refitted_proposal(proposal: ChainProposal, thetas: Floats, weights: Floats) -> ChainProposal:
    """Return a t law with the weighted mean and covariance of draws, drawn a little towards what it was."""
    centre = weights @ thetas
    away = thetas - centre
    covariance = (weights[:, None] * away).T @ away
    old = proposal.root @ proposal.root.T
    shrink = len(centre) / (len(centre) + 1.0 / (weights**2).sum())
    root = np.linalg.cholesky((1.0 - shrink) * covariance * (proposal.df - 2.0) / proposal.df + shrink * old)
    even = np.ones(len(centre))
    return ChainProposal(centre, root, proposal.df, even, even)


def run(
    posterior: Target, proposal: ChainProposal | ProposalMixture, draws: int, rng: np.random.Generator
) -> ChainDraws:
    """Return a chain's draws; it starts at a draw picked by its weight among a pilot's."""
    thetas, logs = proposal.draw(BATCH, rng)
    weights = posterior.log_densities(thetas) - logs
    start = int(rng.choice(BATCH, p=_weights(weights)))
    now, weight = thetas[start], float(weights[start])
    out, moved = np.empty((draws, len(now))), np.zeros(draws, bool)
    for begin in range(0, draws, BATCH):
        count = min(BATCH, draws - begin)
        thetas, logs = proposal.draw(count, rng)
        weights = posterior.log_densities(thetas) - logs
        levels = np.log(1.0 - rng.random(count))
        for k in range(count):
            moved[begin + k] = levels[k] < weights[k] - weight
            if moved[begin + k]:
                now, weight = thetas[k], float(weights[k])
            out[begin + k] = now
    return ChainDraws(out, float(moved.mean()), longest_stay(moved))


def longest_stay(moved: Bools) -> int:
    """Return how many steps in a row a chain stood still, at most."""
    stops = np.flatnonzero(np.concatenate([[True], moved, [True]]))
    return int(np.diff(stops).max())
