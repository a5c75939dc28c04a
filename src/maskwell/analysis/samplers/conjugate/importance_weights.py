"""From draws under a conjugate prior to draws under another: an independence chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...priors import Priors
from ...system import Floats, Ints, System
from .equation_order import Form
from .reduced_form import ReducedDraws


class PickedDraws(NamedTuple):
    """Which draw each step of the chains is at, chain after chain, and the share of proposals accepted."""

    chosen: Ints
    acceptance: float


def log_weights(system: System, form: Form, priors: Priors, found: ReducedDraws) -> Floats:
    """Return the log of the ratio of the priors' density to that of `Conjugate()`, 1 / det T.

    Both as densities of the reduced form: with residual sds s_1..s_d of its columns given those before, the volume of
    its covariance is the product of 2 s_j^(2 (d - j) + 1) times that of sds and coefficients.
    """
    from ..marginal.design import resolved_priors  # which builds on this room
    from ..marginal.posterior import half_t

    d = found.roots.shape[1]
    total = found.log_det.copy()
    for k, prior in enumerate(resolved_priors(system, priors)):
        away = (form.coefficients(k, found) - prior.mean) / prior.sd
        logs = np.log(found.roots[:, k, k])
        total -= 0.5 * (away**2).sum(axis=1) + 2.0 * (d - k) * logs
        total += half_t(logs, np.full(1, prior.residual_scale))[0]
    return total


def pick(logs: Floats, chains: int, rng: np.random.Generator) -> PickedDraws:
    """Run chains over independent proposals: accept by the ratio of weights, else stay."""
    steps = logs.reshape(chains, -1)
    levels = np.log(1.0 - rng.random(steps.shape))
    chosen, taken = np.empty(steps.shape, np.int64), 0
    chances = np.exp(logs - logs.max())
    starts = rng.choice(len(logs), chains, p=chances / chances.sum())
    for c in range(chains):
        now = int(starts[c])
        for k in range(steps.shape[1]):
            if levels[c, k] < steps[c, k] - logs[now]:
                now, taken = c * steps.shape[1] + k, taken + 1
            chosen[c, k] = now
    return PickedDraws(chosen.ravel(), taken / len(logs))


def effective_share(chosen: Ints, chains: int) -> float:
    """Return which share of the steps counts, by how long chains stand still: (sum of stays)^2 / sum of squares."""
    steps = chosen.reshape(chains, -1)
    begins = np.ones(steps.shape, bool)
    begins[:, 1:] = steps[:, 1:] != steps[:, :-1]
    stays = np.diff(np.append(np.flatnonzero(begins.ravel()), steps.size)).astype(np.float64)
    return float(steps.size / (stays**2).sum())
