"""Nodes of a lattice that is shaped like a posterior, found by walking out from its tops.

Steps are along a root of the covariance at the largest top, minus the inverse of the second derivatives; the walk goes
on from every node that is at most CUT below the largest log density: the exploration of Rue, Martino and Chopin (2009,
section 3.1), in all directions and from several tops. Equal weights then integrate a smooth density nearly exactly (the
trapezoid rule: Trefethen and Weideman 2014). Used by `enumeration`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....table import Floats

CUT = 10.0  # the walk goes on from nodes that are at most so far below the largest, in the log
TRIES = 200  # values asked for on the way to a top
WIDEST = 10.0  # of the posterior, in units of the prior's spread
BRACKETS = 15  # tries to find how wide a top is
WANTED_DROP = (0.2, 2.0)  # of the log density at the ends of a step that measures its curvature
STARTS = (0.0, -1.5, 1.5)  # where tops are sought, in units of the prior's spread

Ask = Callable[[Floats], float]
LOWEST = -1e10  # stands for minus infinity where a top is sought


@dataclass(frozen=True, slots=True)
class LatticeShape:
    """The tops of a posterior, the largest first, and a root of its covariance there."""

    tops: tuple[Floats, ...]
    root: Floats

    @classmethod
    def of(cls, ask: Ask, centre: Floats, spread: Floats, reach: Floats) -> LatticeShape | None:
        """Find the tops of a log density, and how wide it is around the largest; nothing where it has none."""

        def scaled(t: Floats) -> float:
            return max(ask(centre + spread * t), LOWEST)

        tops = sorted((_top(scaled, np.full(len(centre), at), reach / spread) for at in STARTS), key=scaled)
        best = tops[-1]
        if scaled(best) <= LOWEST:
            return None
        root = np.linalg.cholesky(_covariance(scaled, best))
        high = [top for top in reversed(tops) if scaled(top) > scaled(best) - 2 * CUT]
        return cls(tuple(centre + spread * top for top in high), spread[:, None] * root)

    def walk(self, ask: Ask, pace: float, shift: float, most: int) -> int | None:
        """Ask at the nodes of a lattice until all neighbours are low; return how many, nothing where they are too many.

        `ask` returns how far below the largest so far a node is, in the log. `shift` moves the lattice, in steps.
        """
        step = pace * self.root
        seeds = [np.linalg.solve(step, top - self.tops[0]) - shift for top in self.tops]
        queue = list(dict.fromkeys(tuple(np.rint(seed).astype(int).tolist()) for seed in seeds))
        seen = set(queue)
        while queue:
            node = queue.pop(0)
            if ask(self.tops[0] + step @ (np.array(node) + shift)) > -CUT:
                new = [one for one in _neighbours(node) if one not in seen]
                seen.update(new)
                queue += new
            if len(seen) > most:
                return None
        return len(seen)


def _neighbours(node: tuple[int, ...]) -> list[tuple[int, ...]]:
    return [(*node[:d], node[d] + way, *node[d + 1 :]) for d in range(len(node)) for way in (-1, 1)]


def _top(ask: Ask, start: Floats, reach: Floats) -> Floats:
    """Return where a log density is largest, by steepest ascent within bounds."""
    from scipy.optimize import fmin_l_bfgs_b

    climb: Any = fmin_l_bfgs_b
    bounds = [(-wide, wide) for wide in reach.tolist()]
    return np.asarray(
        climb(lambda t: -ask(t), start, approx_grad=True, bounds=bounds, epsilon=1e-4, maxfun=TRIES)[0]
    )


def _covariance(ask: Ask, top: Floats) -> Floats:
    """Return the inverse of minus the second derivatives, by differences over steps that matter."""
    here, steps = ask(top), np.array([_step(ask, top, d) for d in range(len(top))])
    bend = np.empty((len(top), len(top)))
    every = np.diag(steps)
    for d, one in enumerate(every):
        bend[d, d] = (2 * here - ask(top + one) - ask(top - one)) / steps[d] ** 2
        for e, two in enumerate(every[:d]):
            same, opposite = (ask(top + one + way * two) + ask(top - one - way * two) for way in (1.0, -1.0))
            bend[d, e] = bend[e, d] = (opposite - same) / (4 * steps[d] * steps[e])
    values, vectors = np.linalg.eigh(bend)
    return np.asarray((vectors / np.maximum(values, WIDEST**-2)) @ vectors.T)


def _step(ask: Ask, top: Floats, d: int) -> float:
    """Return a step along one axis over which the log density falls by about 1."""
    here, step = ask(top), 0.5
    for _ in range(BRACKETS):
        ahead = np.where(np.arange(len(top)) == d, step, 0.0)
        drop = here - (ask(top + ahead) + ask(top - ahead)) / 2
        if WANTED_DROP[0] <= drop <= WANTED_DROP[1]:
            break
        step *= min(max((1.0 / max(drop, 1e-3)) ** 0.5, 0.1), 3.0)
        if step > WIDEST:
            break
    return float(min(step, WIDEST))


def average_of(values: Sequence[float]) -> float:
    """Return the mean of log weights, minus infinity if one is."""
    return float(np.mean(values)) if np.isfinite(values).all() else -np.inf
