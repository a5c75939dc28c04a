"""Bethe's approximation where the parameters of the noise were drawn: averaged over values that stand for all draws.

P(pair) = mean over VALUES draws of the parameters of the chances by `belief_propagation` at each (Rao-Blackwell,
Gelfand and Smith 1990, with approximate chances). Chosen by `unknown_noise` beside its chains.
"""

from __future__ import annotations

import numpy as np

from ....table import Floats
from .belief_propagation import message_chances
from .chain_state import MatchingProblem
from .mcmc import log_factors
from .parameter_chains import Round

VALUES = 16  # of the parameters, spread evenly over all draws in the order of the first of them


def bethe_marginals(problem: MatchingProblem, done: Round) -> list[Floats]:
    """Return for each block the approximate probability of each pair, none last."""
    values = _spread(done.traces[:, :, : len(problem.beliefs)].reshape(-1, len(problem.beliefs)))
    blocks = zip(*(ratios_at(problem, logs) for logs in values), strict=True)
    return [
        _mean_pair_chances(ratios, int(units)) for ratios, units in zip(blocks, problem.units, strict=True)
    ]


def _spread(draws: Floats) -> Floats:
    """Return some draws, evenly spread in the order of the first parameter."""
    order = np.argsort(draws[:, 0], kind="stable")
    return draws[order[(len(order) * (np.arange(VALUES) + 0.5) / VALUES).astype(np.int64)]]


def ratios_at(problem: MatchingProblem, logs: Floats) -> list[Floats]:
    """Return for each block the log weights of pairs beside those of a free record and a unit without one."""
    flat, free = problem.model.pair_logs(logs), problem.free(logs)
    begin, ends = problem.known.side.ends, problem.known.released.ends
    return [
        block - free[ends[b] : ends[b + 1]] - problem.unreleased[begin[b] : begin[b + 1], None]
        for b, block in enumerate(problem.known.matrices(flat))
    ]


def _mean_pair_chances(ratios: tuple[Floats, ...], units: int) -> Floats:
    """Average over values of the parameters, each from where the messages of the last ended."""
    known, released = ratios[0].shape
    if not released:
        return np.ones((known, 1))
    factors = log_factors(ratios[len(ratios) // 2], units)
    start, total = None, np.zeros((known, released + 1))
    for logs in ratios:
        found, start = message_chances(logs, units, factors, start)
        total += found
    return total / len(ratios)
