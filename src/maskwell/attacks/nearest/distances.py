"""The distances of the nearest-record intruder, resolved from a release: its table and, for some, its card.

Every distance but Gower's (1971) is Euclidean after a linear map of each side. In units of the release's sds let u be
where the noise centres a true value and w the released one: w = u + noise, with covariances R of w and M of the noise.
With M = L L' and L^-1 R L'^-1 = V diag(1 + s) V' (s below 0 is taken for 0), the coordinates V' L^-1 u have variances
s and noise of variance 1, so that E(u|w) shrinks each of them by s / (1 + s) and leaves it with variance s / (1 + s).
E(u|w) is (3) of Goldstein and Shlomo, section 2, which prints it transposed; whitened by the posterior covariance, its
nearest record is that of the Gaussian coherent intruder (own derivation). Chosen by `NearestRecord(distance=...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ...engines.local import Local
from ...errors import BadPlan, raise_all
from ...laws.noise import combine
from ...masking import Release
from ...notes import Note
from ...table import Floats, Table
from .card_noise import card_noise

Chosen = tuple[int, ...]

TINY = 1e-10  # the share of a field's variance that stands for noise where the card has none
NULL = 1e-9  # directions with less than this share of the largest variance are taken to have none
# A unit whose rounding has less than this share of a field's variance is a matter of rounding alone
FINE = 0.01
MOST_NAMES = 1000  # of a field of Gower's distance: each two make an axis

# A direction of the release with less than so many times the variance of rounding holds rounding alone.
BEYOND_ROUNDING = 2.0
# A signal not above the first, and the second as a share of the largest signal, is taken for none.
SIGNAL, LOST_DIGITS = 1e-6, 1e-14

SAID = {
    "euclid": "Euclidean distance in sds of the release",
    "noise": "distance whitened by the noise on the card",
    "release": "distance whitened by the release's own covariance",
    "posterior": "distance from E(y|z), whitened by the posterior covariance",
    "gower": "Gower's distance",
}
SHRUNK = {"matrix": "from E(y|z)", "per_variable": "from E(y|z) of each field by itself"}


class Metric(Protocol):
    """A distance between true and released values: that of points, Euclidean (`norm` 2) or city-block (1)."""

    @property
    def said(self) -> str:
        """What the distance is, in words."""

    @property
    def norm(self) -> int:
        """2 or 1."""

    @property
    def notes(self) -> tuple[Note, ...]:
        """What a steward should know of it."""

    def points(self, values: Floats, chosen: Chosen, *, released: bool) -> Floats:
        """Return the points of values (records x all fields), by those fields that are chosen."""


@dataclass(frozen=True, slots=True)
class Maps:
    """The linear maps of both sides to points, over some fields."""

    known: Floats
    released: Floats


@dataclass(frozen=True, slots=True)
class Linear:
    """A Euclidean distance after linear maps: each side is put in units of sds, then mapped.

    `factors` and `shifts` (known, released) lead from values to units; a field without spread has factor 0.
    `maps_of` gives the maps for a choice of fields.
    """

    said: str
    factors: tuple[Floats, Floats]
    shifts: tuple[Floats, Floats]
    maps_of: Callable[[Chosen], Maps | None]
    entered: Callable[[Floats, Chosen], Floats]
    notes: tuple[Note, ...] = ()
    norm: int = 2
    found: dict[Chosen, Maps | None] = field(default_factory=dict, repr=False, compare=False)

    def points(self, values: Floats, chosen: Chosen, *, released: bool) -> Floats:
        """Return the points of values by the chosen fields; without any all lie at the origin."""
        used = tuple(j for j in chosen if self.factors[0][j] > 0)
        if not used:
            return np.zeros((len(values), 1))
        at = list(used)
        units = self.entered(values[:, at], used) * self.factors[released][at] + self.shifts[released][at]
        if used not in self.found:
            self.found[used] = self.maps_of(used)
        maps = self.found[used]
        if maps is None:
            return np.asfortranarray(units)
        matrix = maps.released if released else maps.known
        return combine(units, matrix) if len(matrix) else np.zeros((len(values), 1))


@dataclass(frozen=True, slots=True)
class Gower:
    """City-block distance: numbers by their range in the release, names as the same or not; weights sum to 1.

    `levels` is the number of names of a field, 0 for numbers; `factors` has what a unit, or a difference of names,
    counts. Two names lie 1 apart whether they are the two halves of an axis or halves of two axes.
    """

    factors: Floats
    levels: tuple[int, ...]
    said: str = SAID["gower"]
    notes: tuple[Note, ...] = ()
    norm: int = 1

    def points(self, values: Floats, chosen: Chosen, *, released: bool) -> Floats:
        """Return numbers divided by their range, and names two to an axis, a half on either side of its origin."""
        columns = []
        for j in chosen:
            if self.levels[j]:
                halves = np.where(values[:, j] % 2 == 0, 0.5, -0.5) * self.factors[j]
                pairs = range((self.levels[j] + 1) // 2)
                columns += [np.where(values[:, j] // 2 == pair, halves, 0.0) for pair in pairs]
            elif self.factors[j] > 0:
                columns.append(values[:, j] * self.factors[j])
        return np.asfortranarray(np.column_stack(columns)) if columns else np.zeros((len(values), 1))


@dataclass(frozen=True, slots=True)
class KnownRecords:
    """What a release shows of some fields: means, sds (0: no spread), correlations, and between what they lie."""

    means: Floats
    sds: Floats
    correlations: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, values: Floats) -> KnownRecords:
        """Compute the moments of released values, NaN unless open; the order of records changes no bit."""
        moments = Local().moments(values)
        sds = np.where(moments.high > moments.low, moments.sds, 0.0)
        correlations = np.nan_to_num(moments.correlations, nan=0.0)
        return cls(moments.means, sds, correlations, moments.low, moments.high)

    @property
    def factors(self) -> Floats:
        """One over the sds, 0 where there is no spread."""
        return np.divide(1.0, self.sds, out=np.zeros(len(self.sds)), where=self.sds > 0)


def euclid(fields: Sequence[str], released: Table, weights: Any = None) -> Linear:
    """Return the Euclidean distance in sds of the release, differences weighted by a matrix W where one is given."""
    seen = KnownRecords.of(released.values(fields))
    weighted = None if weights is None else np.asarray(weights)
    said = SAID["euclid"] + ("" if weights is None else ", weighted")
    nothing = np.zeros(len(fields))

    def maps_of(chosen: Chosen) -> Maps | None:
        if weighted is None:
            return None
        root = _root(weighted[np.ix_(chosen, chosen)])
        return Maps(root, root)

    return Linear(said, (seen.factors, seen.factors), (nothing, nothing), maps_of, _as_they_are)


def whitened_by_release(fields: Sequence[str], released: Table) -> Linear:
    """Return the distance whitened by the release's own covariance; no card is needed.

    Directions in which the release has no spread, or none but that of rounding, are left out.
    """
    seen = KnownRecords.of(released.values(fields))
    steps = [released.schema[name].step for name in fields]
    rounding = np.array([0.0 if step is None else float(step) ** 2 / 12 for step in steps]) * seen.factors**2
    shift = -seen.means * seen.factors

    def maps_of(chosen: Chosen) -> Maps:
        variances, basis = spread(seen.correlations[np.ix_(chosen, chosen)], rounding[list(chosen)])
        rows = (basis / np.sqrt(variances)).T
        return Maps(rows, rows)

    return Linear(SAID["release"], (seen.factors, seen.factors), (shift, shift), maps_of, _as_they_are)


def spread(total: Floats, rounding: Floats) -> tuple[Floats, Floats]:
    """Return the variances and directions (columns) of released values, without those that hold rounding alone."""
    variances, vectors = np.linalg.eigh(total)
    least = BEYOND_ROUNDING * (vectors**2).T @ np.where(rounding < FINE, rounding, 0.0)
    kept = variances > np.maximum(least, NULL * variances[-1])
    return variances[kept], vectors[:, kept]


def card_distance(
    distance: str, shrink: str | None, fields: Sequence[str], release: Release, weights: Any = None
) -> Linear:
    """Return a distance that works by the card: one that is whitened by the noise or from the posterior, or shrunk."""
    noise = card_noise(release.card, fields, release.table)
    everything = tuple(range(len(fields)))
    seen = KnownRecords.of(noise.entered(release.table.values(fields), everything))
    unit = seen.factors
    shift = -seen.means * unit
    covariance, rounding = np.outer(unit, unit) * noise.covariance, noise.rounding * unit**2
    floored = covariance + np.diag(rounding + TINY)
    shape = _Shape(distance, shrink, seen.correlations, floored, rounding, noise.slope, weights)
    return Linear(
        _distance_label(distance, shrink, weights),
        (noise.slope * unit, unit),
        (noise.offset * unit + shift, shift),
        shape.maps,
        noise.entered,
        (*noise.notes, *_on_floor(covariance, rounding, seen, fields)),
    )


def _distance_label(distance: str, shrink: str | None, weights: Any) -> str:
    said = SAID[distance] + ("" if weights is None else ", weighted")
    if distance == "posterior":
        return said if shrink != "per_variable" else f"{said} of each field by itself"
    return said if shrink is None else f"{said}, {SHRUNK[shrink]}"


def among_true(metric: Metric, distance: str, weights: Any = None) -> Metric:
    """Return a distance as it is between true records, which nothing shrinks: of the known side on both."""
    if not isinstance(metric, Linear):
        return metric
    said = (
        "distance whitened by the posterior covariance"
        if distance == "posterior"
        else _distance_label(distance, None, weights)
    )
    return replace(metric, said=said)


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the maps of an informed distance are made of, for all fields: R, M with its floor, rounding, slopes, W."""

    distance: str
    shrink: str | None
    total: Floats
    noise: Floats
    rounding: Floats
    slope: Floats
    weights: Any

    def maps(self, chosen: Chosen) -> Maps:
        """Return the maps over some fields, in the directions in which the release has spread."""
        some, at = np.ix_(chosen, chosen), list(chosen)
        total, noise = self.total[some], self.noise[some]
        variances, basis = spread(total, self.rounding[at])
        if self.shrink == "per_variable":
            spectrum = Spectrum.of(np.diag(np.diag(total)), np.diag(np.diag(noise)))
        else:
            spectrum = Spectrum.of(np.diag(variances), basis.T @ noise @ basis).turned(basis)
        if self.distance == "posterior":
            return spectrum.posterior()
        if self.distance == "noise":
            known = covariance_whitener(basis.T @ noise @ basis) @ basis.T
        elif self.distance == "release":
            known = (basis / np.sqrt(variances)).T
        else:
            known = self._weighing(at)
        return Maps(known, known if self.shrink is None else known @ spectrum.shrinking())

    def _weighing(self, at: list[int]) -> Floats:
        scale = np.diag(1.0 / self.slope[at])
        return scale if self.weights is None else _root(np.asarray(self.weights)[np.ix_(at, at)]) @ scale


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Coordinates in which noise has variance 1 and true values have variances `signal`, all uncorrelated.

    `coordinates` maps values to them, `back` leads back from them.
    """

    coordinates: Floats
    signal: Floats
    back: Floats

    @classmethod
    def of(cls, total: Floats, noise: Floats) -> Spectrum:
        """Diagonalise the covariances of released values and of noise."""
        rows = covariance_whitener(noise)
        whole, vectors = np.linalg.eigh(rows @ total @ rows.T)
        coordinates = vectors.T @ rows
        return cls(coordinates, np.maximum(whole - 1.0, 0.0), noise @ coordinates.T)

    def turned(self, basis: Floats) -> Spectrum:
        """Return the same for values of which these are the parts in some directions."""
        return Spectrum(self.coordinates @ basis.T, self.signal, basis @ self.back)

    def shrinking(self) -> Floats:
        """Return the matrix of E(u|w) = G w."""
        return np.asarray(self.back @ (self._shares[:, None] * self.coordinates))

    def posterior(self) -> Maps:
        """Return the maps of the distance between u and E(u|w), whitened by the posterior covariance."""
        kept = self.signal > SIGNAL + LOST_DIGITS * self.signal.max(initial=0.0)
        root = np.sqrt(self._shares[kept])[:, None]
        return Maps(self.coordinates[kept] / root, self.coordinates[kept] * root)

    @property
    def _shares(self) -> Floats:
        return np.asarray(self.signal / (1.0 + self.signal))


def covariance_whitener(covariance: Floats) -> Floats:
    """Return rows that map noise of a covariance (positive definite by its floor) to variance 1."""
    variances, vectors = np.linalg.eigh(covariance)
    kept = variances > 0
    return np.asarray((vectors[:, kept] / np.sqrt(variances[kept])).T)


def _root(weights: Floats) -> Floats:
    """Return rows B with B'B = W; directions that W does not weigh are left out."""
    if not np.count_nonzero(weights - np.diag(np.diag(weights))):
        return np.diag(np.sqrt(np.diag(weights)))
    values, vectors = np.linalg.eigh(weights)
    kept = values > NULL * max(values[-1], 0.0)
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])).T)


def _as_they_are(values: Floats, chosen: Chosen) -> Floats:
    return values


def _on_floor(covariance: Floats, rounding: Floats, seen: KnownRecords, fields: Sequence[str]) -> list[Note]:
    """Say where the data have spread and the card has no noise."""
    used = np.flatnonzero(seen.sds > 0).tolist()
    if not used:
        return []
    some = np.ix_(used, used)
    _, basis = spread(seen.correlations[some], rounding[used])
    count = int((np.linalg.eigvalsh(basis.T @ covariance[some] @ basis) <= TINY).sum())
    if not count:
        return []
    bare = tuple(fields[j] for j in used if covariance[j, j] <= TINY)
    named = bare if len(bare) == count else ()
    return [Note("attacks.without_noise", {"columns": named, "directions": count, "least": TINY})]


def gower(fields: Sequence[str], released: Table, levels: Sequence[int], weights: Floats) -> Gower:
    """Return Gower's distance; `levels` counts the names of each field, 0 for numbers."""
    raise_all(
        [
            f"column {name!r} has {count:,} different names: make it a matching block, or leave it out of fields"
            for name, count in zip(fields, levels, strict=True)
            if count > MOST_NAMES
        ],
        BadPlan,
    )
    numbers = [j for j in range(len(fields)) if not levels[j]]
    seen = KnownRecords.of(released.values([fields[j] for j in numbers]))
    spans = np.ones(len(fields))
    spans[numbers] = seen.high - seen.low
    shares = weights / weights.sum()
    factors = np.divide(shares, spans, out=np.zeros(len(fields)), where=spans > 0)
    return Gower(factors, tuple(levels))
