"""Adaptive quadrature over the whole line for many integrands at once, in logs.

Panels between given breaks, and two tails mapped to (0, 1), are halved until each is exact to a small share of the
whole: Gauss-Legendre sums with null rules for the error (Berntsen and Espelid 1991), as in `kernels.densities`. Used by
`absent_records`, whose integrands have several peaks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np

from ....table import Floats
from ...protocol import Bools, Ints

PANEL_TOLERANCE = 1e-11  # of a panel, against the whole integral
ROUNDS = 60  # of halving
NOTHING = -1e300  # a log that can still be subtracted

LogOf = Callable[[Floats, Ints], Floats]  # log-integrand at points, each with the number of its integral


@dataclass(frozen=True, slots=True)
class WholeLine:
    """Where the integrands are cut, integrals x breaks in rising order, and the scale of their tails."""

    breaks: Floats
    reach: Floats


@dataclass(frozen=True, slots=True)
class LinePanels:
    """Stretches of the line of several integrals; those of `tail` -1 and 1 are of (0, 1) and reach to infinity.

    Each holds exp(top) times `value`, with a guess of its `error`.
    """

    owner: Ints
    tail: Ints
    start: Floats
    end: Floats
    top: Floats
    value: Floats
    error: Floats

    @classmethod
    def of(
        cls, log_of: LogOf, line: WholeLine, owner: Ints, tail: Ints, start: Floats, end: Floats
    ) -> LinePanels:
        """Sum over the nodes of each panel; its error is guessed as in `kernels.densities`."""
        from ....kernels.densities import NODES, NULL_RULES, WEIGHTS

        half = 0.5 * (end - start)[:, None]
        z, log_lengths = _points(line, owner, tail, 0.5 * (start + end)[:, None] + half * NODES)
        logs = log_of(z.ravel(), np.repeat(owner, len(NODES))).reshape(z.shape) + log_lengths + np.log(half)
        top = np.maximum(logs.max(axis=1, initial=-np.inf), NOTHING)
        parts = np.exp(logs - top[:, None])
        value, null = parts @ WEIGHTS, np.abs(parts @ NULL_RULES.T).max(axis=1, initial=0.0)
        error = null * np.sqrt(np.minimum(null / np.where(value > 0, value, 1.0), 1.0))
        return cls(owner, tail, start, end, top, value, error)

    def only(self, wanted: Bools) -> LinePanels:
        """Return some of the panels."""
        return LinePanels(*(getattr(self, field.name)[wanted] for field in fields(self)))

    def joined(self, other: LinePanels) -> LinePanels:
        """Return these panels and others."""
        both = ([getattr(side, field.name) for side in (self, other)] for field in fields(self))
        return LinePanels(*map(np.concatenate, both))

    def halved(self, log_of: LogOf, line: WholeLine) -> LinePanels:
        """Return both halves of each panel."""
        middle = 0.5 * (self.start + self.end)
        start, end = np.concatenate([self.start, middle]), np.concatenate([middle, self.end])
        return LinePanels.of(log_of, line, np.tile(self.owner, 2), np.tile(self.tail, 2), start, end)

    def log_totals(self, count: int) -> Floats:
        """Return the log of each integral."""
        top = np.full(count, NOTHING)
        np.maximum.at(top, self.owner, self.top)
        total = np.bincount(self.owner, self.value * np.exp(self.top - top[self.owner]), count)
        with np.errstate(divide="ignore"):
            return np.asarray(np.where(total > 0, np.log(total) + top, -np.inf))

    def relative_errors(self, log_totals: Floats) -> Floats:
        """Return the error of each panel relative to its integral."""
        return np.asarray(self.error * np.exp(self.top - np.maximum(log_totals, NOTHING)[self.owner]))


def log_integrals(log_of: LogOf, line: WholeLine) -> tuple[Floats, float]:
    """Return the logs of the integrals of exp(log_of) over the line and the largest relative error."""
    count, panels = len(line.breaks), _first(log_of, line)
    for _ in range(ROUNDS):
        coarse = panels.relative_errors(panels.log_totals(count)) > PANEL_TOLERANCE
        if not coarse.any():
            break
        panels = panels.only(~coarse).joined(panels.only(coarse).halved(log_of, line))
    totals = panels.log_totals(count)
    errors = np.bincount(panels.owner, panels.relative_errors(totals), count)
    return totals, float(errors.max(initial=0.0))


def _first(log_of: LogOf, line: WholeLine) -> LinePanels:
    """Return the panels between the breaks, and the tails."""
    count, width = line.breaks.shape
    owner, zero, one = np.arange(count), np.zeros(count), np.ones(count)
    start = np.concatenate([line.breaks[:, :-1].ravel(), zero, zero])
    end = np.concatenate([line.breaks[:, 1:].ravel(), one, one])
    owners = np.concatenate([np.repeat(owner, width - 1), owner, owner])
    tail = np.concatenate([np.zeros(count * (width - 1)), -one, one]).astype(np.int64)
    real = start < end
    return LinePanels.of(log_of, line, owners[real], tail[real], start[real], end[real])


def _points(line: WholeLine, owner: Ints, tail: Ints, at: Floats) -> tuple[Floats, Floats]:
    """Return points of panels on the line, and the logs of how much they are stretched there."""
    is_tail, reach = (tail != 0)[:, None], line.reach[owner][:, None]
    rest = np.where(is_tail, 1.0 - at, 1.0)
    edge = np.where(tail > 0, line.breaks[owner, -1], line.breaks[owner, 0])[:, None]
    z = np.where(is_tail, edge + tail[:, None] * reach * (at / rest), at)
    return z, np.where(is_tail, np.log(reach) - 2.0 * np.log(rest), 0.0)
