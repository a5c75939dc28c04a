"""log p(z | what the intruder knows) by quadrature: the law averaged over the true values that may be behind it.

    p(z | y) = integral of p(z | x) N(x; y, sd^2) dx for an amount, the sum over categories for a category.

Where the law is smooth, Gauss-Hermite nodes at the mode of the product (9, then 17: they must agree; Liu and Pierce
1994), else Gauss-Legendre panels cut where the integrand bends. Own derivation of the cuts. Chosen by `error_law` for
columns whose error does not simply add to the noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.polynomial.hermite import hermgauss
from numpy.polynomial.legendre import leggauss

from ....card import RecordPair
from ....kernels.log_sums import log_sum
from ....laws import Additive, Classes, Multiplicative, Normal, Outlet, Power, SkewedBias, Step
from ....laws.transform import FINE
from ....schema import OPEN
from ....table import Floats, Table
from ...protocol import Bools, Ints

NODES_AT_ONCE = 200_000  # pairs x nodes held in one go
LOG_ROOT_2_PI = 0.5 * float(np.log(2.0 * np.pi))
# Panels are cut at so many sds from the known value, and from the true value that best explains z and the known one.
# Eight nodes to a panel then leave 1e-8 of the integral (1e-5 close to where a log scale ends).
CUTS = np.array([-8.0, -5.0, -2.5, 0.0, 2.5, 5.0, 8.0])
NODES, WEIGHTS = leggauss(8)  # of each panel between cuts
MEETINGS = 8  # steps by which that value is found
# Where nothing bends, so many Gauss-Hermite nodes around that value do for most pairs: where both counts agree.
FEW, MORE = 9, 17
AGREED = 1e-4  # the error of the larger count is then below 5e-6
FAR_LOG = -60.0  # against the peak: what lies below is only probed


class QuadratureRule(Protocol):
    """Which true values a known one may stand for."""

    def nodes(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return pairs x nodes of true values and their log weights, for released and known values."""


Average = Callable[[QuadratureRule, Ints, Ints], Floats]


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
class ErrorPanels:
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
    def of(cls, law: Any, column: int, sd: float, released: Floats) -> ErrorPanels:
        """Look at the law of a column for where it bends, and at its unit against the noise of released values."""
        outlet: Outlet = law.outlets[column]
        least = -np.inf if outlet.log_shift is None else -outlet.log_shift
        half = float(outlet.unit or 0) / 2
        true = _undone(law, column, released[np.isfinite(released)])
        coarse = bool((2 * half > FINE * noise_sds(law, column, true)).any())
        return cls(sd, law, column, least, half if coarse else 0.0)

    @property
    def spread(self) -> Any:
        """The spread of the column, if it has one."""
        return self.law.spreads[self.column] if isinstance(self.law, Additive) and self.law.spreads else None

    def _breaks(self) -> tuple[float, ...]:
        if isinstance(self.spread, Step):
            return self.spread.breaks
        return (-self.spread.floor, 0.0, self.spread.floor) if isinstance(self.spread, Power) else ()

    @property
    def is_smooth(self) -> bool:
        """Whether the law bends nowhere but at limits and at the ends of coarse units."""
        normal = isinstance(self.law, SkewedBias) or isinstance(self.law.noise, Normal)
        return normal and not isinstance(self.spread, Step)

    def is_simple(self, z: Floats, x: Floats) -> Bools:
        """Return the pairs whose released value is open and between the limits, far from where the law bends."""
        outlet = self.law.outlets[self.column]
        simple = (z > (-np.inf if outlet.low is None else outlet.low)) & np.isfinite(z)
        simple &= z < (np.inf if outlet.high is None else outlet.high)
        at, reach = self.undone(z, x), CUTS[-1] * self.sd
        for bend in self._breaks():
            simple &= (bend < np.minimum(x, at) - reach) | (bend > np.maximum(x, at) + reach)
        return simple

    @property
    def is_bias(self) -> bool:
        """Whether values between the limits are points with the closed density of bias and noise."""
        outlet, normal = self.law.outlets[self.column], isinstance(self.spread, Multiplicative)
        fine = self.half_unit == 0 and not outlet.avoid and outlet.log_shift is None
        return normal and fine and len(self.law.columns) == 1 and self.law.slope == 1 and not self.law.offsets

    def nodes(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return nodes of each pair; panels without width have no weight."""
        edges = np.sort(np.maximum(np.column_stack(self._edges(z, x)), self.least), axis=1)
        middle, half = (edges[:, 1:] + edges[:, :-1]) / 2, np.diff(edges, axis=1) / 2
        nodes = (middle[:, :, None] + half[:, :, None] * NODES).reshape(len(x), -1)
        with np.errstate(divide="ignore"):
            weights = (np.log(half)[:, :, None] + np.log(WEIGHTS)).reshape(len(x), -1)
        return self.weighed(nodes, weights, x)

    def weighed(self, nodes: Floats, weights: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return nodes where true values can be, with the density of the error in their log weights."""
        from scipy.special import log_ndtr

        logs = weights - 0.5 * ((nodes - x[:, None]) / self.sd) ** 2 - np.log(self.sd) - LOG_ROOT_2_PI
        if np.isfinite(self.least):
            logs -= log_ndtr((x - self.least) / self.sd)[:, None]
            logs[nodes <= self.least] = -np.inf
            nodes = np.where(nodes > self.least, nodes, self.least + self.sd)
        return nodes, logs

    def _edges(self, z: Floats, x: Floats) -> list[Floats]:
        edges = [x + self.sd * cut for cut in CUTS]
        edges += [np.full(len(x), at) for at in self._breaks()]
        for shift in {-self.half_unit, self.half_unit}:
            at = self.undone(z + shift, x)
            edges.append(at)
            for centre, width, _ in self._meetings(at, x):
                edges += [centre + width * cut for cut in CUTS]
        return edges

    def undone(self, z: Floats, x: Floats) -> Floats:
        """Return the true values that lead to released ones without noise, the known ones where there are none."""
        at = _undone(self.law, self.column, z)
        return np.where(np.isfinite(at), at, x)

    def meeting(self, z: Floats, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return where the law and the error meet, how wide their product is there, and the sd of their sum."""
        at = self.undone(z, x)
        found = next(self._meetings(at, x))
        if not self.half_unit:
            return found
        rounding = self.half_unit / 3**0.5
        return self._between(at, x, np.sqrt(found[2] ** 2 - self.sd**2 + rounding**2))

    def _meetings(self, at: Floats, x: Floats) -> Iterator[tuple[Floats, Floats, Floats]]:
        """Yield where they meet; once for each step of the noise."""
        if isinstance(self.spread, Step):
            own = float(np.sqrt(self.law.noise.covariance[self.column, self.column]))
            for ratio in self.spread.ratios:
                yield self._between(at, x, np.full(len(x), own * ratio / self.law.slope))
            return
        centre = at
        for _ in range(MEETINGS):
            sds = noise_sds(self.law, self.column, np.maximum(centre, self.least))
            centre = (centre + self._between(at, x, sds)[0]) / 2
        _, width, total = self._between(at, x, sds)
        yield centre, width, total

    def _between(self, at: Floats, x: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
        total = np.hypot(self.sd, noise)
        return x + (at - x) * (self.sd / total) ** 2, self.sd * noise / total, total


@dataclass(frozen=True, slots=True)
class Hermite:
    """The same amount by a few Gauss-Hermite nodes where the law and the error meet."""

    panels: ErrorPanels
    count: int

    def nodes(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return nodes of each pair."""
        at, weights = hermgauss(self.count)
        centre, width, _ = self.panels.meeting(z, x)
        scale = 2**0.5 * width[:, None]
        with np.errstate(divide="ignore"):
            logs = np.log(weights) + at**2 + np.log(scale)
        return self.panels.weighed(centre[:, None] + scale * at, logs, x)


@dataclass(frozen=True, slots=True)
class Probe:
    """Where the integrand can be large: at the known value, at what leads to z, and between them."""

    panels: ErrorPanels

    def nodes(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return nodes of each pair, each standing for the width of the product where both meet."""
        centre, width, _ = self.panels.meeting(z, x)
        at = self.panels.undone(z, x)
        nodes = np.column_stack([x, (x + centre) / 2, centre, (centre + at) / 2, at])
        with np.errstate(divide="ignore"):
            logs = np.log(width) + LOG_ROOT_2_PI
        return self.panels.weighed(nodes, np.repeat(logs[:, None], nodes.shape[1], axis=1), x)


def _undone(law: Any, column: int, z: Floats) -> Floats:
    """Return the true values that lead to released ones without noise."""
    if isinstance(law, SkewedBias):
        return z
    shift, offset = law.outlets[column].log_shift, law.offsets[column] if law.offsets else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        at = (law.outlets[column].enter(z) - offset) / law.slope
    return np.asarray(at if shift is None else np.exp(at) - shift)


def noise_sds(law: Any, column: int, x: Floats) -> Floats:
    """Return the sd of the noise of true values, in their own units."""
    if isinstance(law, SkewedBias):
        return np.asarray(np.hypot(law.sds[column], law.bias_sd * x))
    shift, spread = law.outlets[column].log_shift, law.spreads[column] if law.spreads else None
    sds = np.full(len(x), np.sqrt(law.noise.covariance[column, column]) / law.slope)
    if spread is not None:
        sds *= spread.factor(x)
    return sds if shift is None else sds * (x + shift)


@dataclass(frozen=True, slots=True)
class ErrorAveragedLaw:
    """A law of which one column is known with an error: pairs in which that value is closed are asked as they are."""

    sides: RecordPair
    column: int
    rule: QuadratureRule
    is_open: Bools

    @classmethod
    def of(cls, law: Any, name: str, z: Table, x: Table, rule: QuadratureRule) -> ErrorAveragedLaw:
        """Prepare a law for pairs of records of two tables."""
        return cls(RecordPair.of(law, z, x), law.columns.index(name), rule, x.status(name) == OPEN)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the average of the law over true values, for pairs of record numbers."""
        out, is_open, is_simple = np.empty(len(z)), self.is_open[x], np.zeros(len(z), bool)
        out[~is_open] = self.sides.logpdf(z[~is_open], x[~is_open])[0]
        if isinstance(self.rule, ErrorPanels) and self.rule.is_smooth:
            is_simple = is_open & self.rule.is_simple(*self._values(z, x))
            out[is_simple] = self._quick(self.rule, z[is_simple], x[is_simple])
        left = is_open & ~is_simple
        out[left] = self._by(self.rule, z[left], x[left], self._averaged)
        return out

    def _quick(self, panels: ErrorPanels, z: Ints, x: Ints) -> Floats:
        """Average by few nodes, and by panels where they are too few."""
        total = panels.meeting(*self._values(z, x))[2]
        by = self._by_bias if panels.is_bias else self._averaged
        out = self._by(Probe(panels), z, x, by)
        near = np.flatnonzero(~(out + np.log(total) < FAR_LOG))
        few, more = (self._by(Hermite(panels, count), z[near], x[near], by) for count in (FEW, MORE))
        with np.errstate(invalid="ignore"):
            left = near[~(np.abs(few - more) <= AGREED)]
        out[near] = more
        out[left] = self._by(panels, z[left], x[left], by)
        return out

    def _by(self, rule: QuadratureRule, z: Ints, x: Ints, average: Average) -> Floats:
        """Average over the nodes of a rule, not too many pairs at once."""
        out = np.empty(len(z))
        if len(z):
            width = rule.nodes(*self._values(z[:1], x[:1]))[0].shape[1]
            for run in np.array_split(np.arange(len(z)), -(-len(z) * width // NODES_AT_ONCE)):
                out[run] = average(rule, z[run], x[run])
        return out

    def _values(self, z: Ints, x: Ints) -> tuple[Floats, Floats]:
        return self.sides.released[z, self.column], self.sides.true[x, self.column]

    def _by_bias(self, rule: QuadratureRule, z: Ints, x: Ints) -> Floats:
        from ....kernels.bias_density import FORWARD, bias_log

        nodes, weights = rule.nodes(*self._values(z, x))
        released = np.repeat(self.sides.released[z, self.column], nodes.shape[1])
        spread, sd = self.sides.law.spreads[0], float(np.sqrt(self.sides.law.noise.covariance[0, 0]))
        logs = bias_log(released, nodes.ravel(), sd * spread.bias_sd, sd * spread.sd, FORWARD)
        return np.asarray(log_sum(logs.reshape(nodes.shape) + weights, axis=1))

    def _averaged(self, rule: QuadratureRule, z: Ints, x: Ints) -> Floats:
        nodes, weights = rule.nodes(*self._values(z, x))
        z, x = (np.repeat(side, nodes.shape[1]) for side in (z, x))
        true = self.sides.true[x]
        true[:, self.column] = nodes.ravel()
        taken = self.sides.released[z], true, self.sides.status_z[z], self.sides.status_x[x]
        every = np.arange(len(z))
        logs, _ = RecordPair(self.sides.law, *taken).logpdf(every, every)
        return np.asarray(log_sum(logs.reshape(nodes.shape) + weights, axis=1))


@dataclass(frozen=True, slots=True)
class ClassProbability:
    """Classes of an amount that is known with an error: the probability that the true one lies in the class."""

    sides: RecordPair
    sd: float
    is_open: Bools

    @classmethod
    def of(cls, law: Classes, z: Table, x: Table, sd: float) -> ClassProbability:
        """Prepare a law for pairs of records of two tables."""
        return cls(RecordPair.of(law, z, x), sd, x.status(law.columns[0]) == OPEN)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log probability of the class, for pairs of record numbers."""
        from ....kernels.densities import normal_log_interval

        out = self.sides.logpdf(z, x)[0]
        here = np.flatnonzero(self.is_open[x] & (self.sides.status_z[z, 0] == OPEN))
        ends = np.array([-np.inf, *self.sides.law.breaks, np.inf])
        place, known = self.sides.released[z[here], 0].astype(np.int64), self.sides.true[x[here], 0]
        lower, upper = ends[place] - known, ends[place + 1] - known
        out[here] = normal_log_interval(lower, upper, np.full(len(here), self.sd))
        return out
