"""log p(z | what the intruder knows) by quadrature: the law averaged over the true values that his may stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.polynomial.legendre import leggauss

from ...card import Sides
from ...laws import Additive, Classes, Outlet, Power, SkewedBias, Step
from ...laws.outlet import FINE
from ...schema import OPEN
from ...table import Floats, Table
from ..contract import Bools, Ints
from ..ranking import log_sum

NODES_AT_ONCE = 200_000
LOG_ROOT_2_PI = 0.5 * float(np.log(2.0 * np.pi))
# Panels are cut at so many sds from the known value, and from the true value that best explains z and the known one.
# Eight nodes to a panel then leave 1e-8 of the integral (1e-5 close to where a log scale ends).
CUTS = np.array([-8.0, -5.0, -2.5, 0.0, 2.5, 5.0, 8.0])
NODES, WEIGHTS = leggauss(8)
MEETINGS = 4  # steps by which that value is found


class Rule(Protocol):
    """Which true values a known one may stand for."""

    def nodes(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return pairs x nodes of true values and their log weights, for released and known values."""


@dataclass(frozen=True, slots=True)
class Codes:
    """A category: the known code is right but for a share `wrong`, in which all others are as likely."""

    count: int
    wrong: float

    def nodes(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return all codes for every pair."""
        codes = np.tile(np.arange(self.count, dtype=np.float64), (len(x), 1))
        other = self.wrong / max(self.count - 1, 1)
        right = 1.0 - self.wrong if self.count > 1 else 1.0
        return codes, np.asarray(np.log(np.where(codes == x[:, None], right, other)))


@dataclass(frozen=True, slots=True)
class Panels:
    """An amount: the true one is normal around the known one, above `least`; Gauss-Legendre nodes on panels.

    Panels are cut where the integrand bends: where the law itself does, around the known value, and around the true
    value at which the law of one `column` and the error meet for a released z.
    """

    sd: float
    law: Any
    column: int
    least: float
    half_unit: float

    @classmethod
    def of(cls, law: Any, column: int, sd: float, released: Floats) -> Panels:
        """Look at the law of a column for where it bends, and at its unit against the noise of released values."""
        outlet: Outlet = law.outlets[column]
        least = -np.inf if outlet.log_shift is None else -outlet.log_shift
        half = float(outlet.unit or 0) / 2
        true = _undone(law, column, released[np.isfinite(released)])
        coarse = bool((2 * half > FINE * _noise_sds(law, column, true)).any())
        return cls(sd, law, column, least, half if coarse else 0.0)

    @property
    def spread(self) -> Any:
        """The spread of the column, if it has one."""
        return self.law.spreads[self.column] if isinstance(self.law, Additive) and self.law.spreads else None

    def _breaks(self) -> tuple[float, ...]:
        if isinstance(self.spread, Step):
            return self.spread.breaks
        return (-self.spread.floor, 0.0, self.spread.floor) if isinstance(self.spread, Power) else ()

    def nodes(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return nodes of each pair; panels without width have no weight."""
        from scipy.special import log_ndtr

        edges = np.sort(np.maximum(np.column_stack(self._edges(z, x)), self.least), axis=1)
        middle, half = (edges[:, 1:] + edges[:, :-1]) / 2, np.diff(edges, axis=1) / 2
        nodes = middle[:, :, None] + half[:, :, None] * NODES
        if np.isfinite(self.least):
            nodes = np.where(half[:, :, None] > 0, nodes, self.least + self.sd)
        with np.errstate(divide="ignore"):
            weights = np.log(half)[:, :, None] + np.log(WEIGHTS)
        logs = -0.5 * ((nodes - x[:, None, None]) / self.sd) ** 2 - np.log(self.sd) - LOG_ROOT_2_PI
        logs -= log_ndtr((x - self.least) / self.sd)[:, None, None]
        return nodes.reshape(len(x), -1), (logs + weights).reshape(len(x), -1)

    def _edges(self, z: Floats, x: Floats) -> list[Floats]:
        edges = [x + self.sd * cut for cut in CUTS]
        edges += [np.full(len(x), at) for at in self._breaks()]
        for shift in {-self.half_unit, self.half_unit}:
            at = _undone(self.law, self.column, z + shift)
            at = np.where(np.isfinite(at), at, x)
            edges.append(at)
            for centre, width in self._meetings(at, x):
                edges += [centre + width * cut for cut in CUTS]
        return edges

    def _meetings(self, at: Floats, x: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield where the law and the error meet, and how wide their product is there; once for each step."""
        if isinstance(self.spread, Step):
            own = float(np.sqrt(self.law.noise.covariance[self.column, self.column]))
            for ratio in self.spread.ratios:
                yield self._between(at, x, np.full(len(x), own * ratio / self.law.slope))
            return
        centre = at
        for _ in range(MEETINGS):
            sds = _noise_sds(self.law, self.column, np.maximum(centre, self.least))
            centre, width = self._between(at, x, sds)
        yield centre, width

    def _between(self, at: Floats, x: Floats, noise: Floats) -> tuple[Floats, Floats]:
        total = np.hypot(self.sd, noise)
        return x + (at - x) * (self.sd / total) ** 2, self.sd * noise / total


def _undone(law: Any, column: int, z: Floats) -> Floats:
    """Return the true values that lead to released ones without noise."""
    if isinstance(law, SkewedBias):
        return z
    shift, offset = law.outlets[column].log_shift, law.offsets[column] if law.offsets else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (law.outlets[column].enter(z) - offset) / law.slope
    return np.asarray(at if shift is None else np.exp(at) - shift)


def _noise_sds(law: Any, column: int, x: Floats) -> Floats:
    """Return the sd of the noise of true values, in their own units."""
    if isinstance(law, SkewedBias):
        return np.asarray(np.hypot(law.sds[column], law.bias_sd * x))
    shift, spread = law.outlets[column].log_shift, law.spreads[column] if law.spreads else None
    sds = np.full(len(x), np.sqrt(law.noise.covariance[column, column]) / law.slope)
    if spread is not None:
        sds *= spread.factor(x)
    return sds if shift is None else sds * (x + shift)


@dataclass(frozen=True, slots=True)
class Smeared:
    """A law of which one column is known with an error: pairs in which that value is closed are asked as they are."""

    sides: Sides
    column: int
    rule: Rule
    is_open: Bools

    @classmethod
    def of(cls, law: Any, name: str, z: Table, x: Table, rule: Rule) -> Smeared:
        """Prepare a law for pairs of records of two tables."""
        return cls(Sides.of(law, z, x), law.columns.index(name), rule, x.status(name) == OPEN)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the average of the law over true values, for pairs of record numbers."""
        out = np.full(len(z), -np.inf)
        closed = np.flatnonzero(~self.is_open[x])
        out[closed] = self.sides.logpdf(z[closed], x[closed])[0]
        pairs = np.flatnonzero(self.is_open[x])
        for run in self._runs(pairs, z, x):
            out[run] = self._averaged(z[run], x[run])
        return out

    def _runs(self, pairs: Ints, z: Ints, x: Ints) -> Sequence[Ints]:
        if not len(pairs):
            return []
        first = pairs[:1]
        width = self._nodes(z[first], x[first])[0].shape[1]
        return np.array_split(pairs, -(-len(pairs) * width // NODES_AT_ONCE))

    def _nodes(self, z: Ints, x: Ints) -> tuple[Floats, Floats]:
        return self.rule.nodes(self.sides.released[z, self.column], self.sides.true[x, self.column])

    def _averaged(self, z: Ints, x: Ints) -> Floats:
        nodes, weights = self._nodes(z, x)
        z, x = (np.repeat(side, nodes.shape[1]) for side in (z, x))
        true = self.sides.true[x]
        true[:, self.column] = nodes.ravel()
        taken = self.sides.released[z], true, self.sides.status_z[z], self.sides.status_x[x]
        every = np.arange(len(z))
        logs, _ = Sides(self.sides.law, *taken).logpdf(every, every)
        return np.asarray(log_sum(logs.reshape(nodes.shape) + weights, axis=1))


@dataclass(frozen=True, slots=True)
class Classed:
    """Classes of an amount that is known with an error: the probability that the true one lies in the class."""

    sides: Sides
    sd: float
    is_open: Bools

    @classmethod
    def of(cls, law: Classes, z: Table, x: Table, sd: float) -> Classed:
        """Prepare a law for pairs of records of two tables."""
        return cls(Sides.of(law, z, x), sd, x.status(law.columns[0]) == OPEN)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log probability of the class, for pairs of record numbers."""
        from ...kernels.densities import normal_log_interval

        out = self.sides.logpdf(z, x)[0]
        here = np.flatnonzero(self.is_open[x] & (self.sides.status_z[z, 0] == OPEN))
        ends = np.array([-np.inf, *self.sides.law.breaks, np.inf])
        place, known = self.sides.released[z[here], 0].astype(np.int64), self.sides.true[x[here], 0]
        lower, upper = ends[place] - known, ends[place + 1] - known
        out[here] = normal_log_interval(lower, upper, np.full(len(here), self.sd))
        return out
