"""log p(z | x) of many pairs of a released and a true record, without making tables of pairs.

log p(z | x) = sum over laws of the log density, or log probability of the cell, of z given x, by the order of
operations in docs/design.md. Own derivation of what is shared: statuses, where the law centres its noise, and which
noised values lead to a released one depend on one record alone and are computed once. Pairs whose statuses the masks
cannot have produced are never evaluated. Normal cells in many columns go one by one to
`kernels.normal_box_conditional` (Mendell and Elston 1974). Used by every reading of the laws in `bayes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..card import NoiseCard, RecordPair
from ..errors import BadInput, NoLaw, raise_all
from ..laws import Additive, Classes, Normal, Outlet, Transition
from ..laws.chain import combined_of
from ..laws.noise import Noise, box_nearly, sds_and_correlations, weight_box
from ..laws.unknowns import of_columns
from ..schema import BOTTOM_CODED, OPEN, TOP_CODED
from ..table import Floats, Statuses, Table
from .joint_codes import block_codes
from .protocol import Bools, Ints

PAIRS_AT_ONCE = 200_000  # pairs held in one go
MANY_KINDS = 64  # of released records, by what of them is a point: above, pairs are computed one by one
# Of a record: up to here an integral takes microseconds, or some hundred of them
MOST_BOXES, MOST_ENDLESS = 6, 4
LEAST_EIGENVALUE = 1e-9  # of correlations: thinner noise is left to the law itself


class LawTerm(Protocol):
    """One factor of p(z | x)."""

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the factor for pairs of record numbers."""


@runtime_checkable
class MatrixTerm(LawTerm, Protocol):
    """One factor that knows a quicker way for all pairs of some records."""

    def matrix(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the factor for all pairs (x records x z records)."""


def pair_logs(card: NoiseCard, z: Table, x: Table, z_records: Ints, x_records: Ints) -> Floats:
    """Return log p(z | x) of listed pairs under the laws of a card, as `card.logpdf` has it before any swapping."""
    terms = law_terms([combined_of(law) for law in card.laws], z, x)
    return summed_logs(terms, np.asarray(z_records), np.asarray(x_records))


def summed_logs(terms: Sequence[LawTerm], z: Ints, x: Ints) -> Floats:
    """Add the terms of pairs up; a pair that one term excludes is not shown to the next."""
    total = np.zeros(len(z))
    for begin in range(0, len(z), PAIRS_AT_ONCE):
        run = slice(begin, begin + PAIRS_AT_ONCE)
        total[run] = _run_logs(terms, z[run], x[run])
    return total


def _run_logs(terms: Sequence[LawTerm], z: Ints, x: Ints) -> Floats:
    total = np.zeros(len(z))
    possible = np.arange(len(z))
    for term in terms:
        logs = term.logs(z[possible], x[possible])
        total[possible] += logs
        if np.isneginf(logs).any():
            possible = possible[~np.isneginf(logs)]
    return total


def laws_on(card: NoiseCard, columns: Iterable[str]) -> list[Any]:
    """Return the laws of some columns as an intruder needs them, each without the columns he does not look at."""
    wanted, laws = set(columns), []
    for law in map(combined_of, card.laws):
        chosen = [j for j, name in enumerate(law.columns) if name in wanted]
        if chosen and not law.has_density:
            names = ", ".join(map(repr, law.columns))
            raise NoLaw(
                f"{law.form} of {names} has no law p(z | x): name fields that have one, or take the "
                "nearest-record intruder"
            )
        if chosen:
            laws.append(of_columns(law, chosen))
    return laws


def law_terms(laws: Sequence[Any], z: Table, x: Table) -> list[LawTerm]:
    """Prepare laws for pairs of records of two tables, the cheap and selective ones first."""
    raise_all([p for law in laws for p in _problems(law, z, x)], BadInput)
    terms: list[tuple[int, LawTerm]] = []
    for law in laws:
        if not law.has_density:
            names = ", ".join(map(repr, law.columns))
            raise NoLaw(f"{law.form} of {names} has no law p(z | x): name fields that have one")
        if is_lowered(law):
            terms.append((2, LoweredLaw.of(law, z, x)))
        else:
            terms.append(
                (int(not isinstance(law, Transition | Classes)), PlainNoise(RecordPair.of(law, z, x)))
            )
    return [term for _, term in sorted(terms, key=lambda item: item[0])]


def _problems(law: Any, z: Table, x: Table) -> list[str]:
    """Say which categories are not those that the card speaks of."""
    if not isinstance(law, Transition | Classes):
        return []
    name = law.columns[0]
    leaving = law.released_as if isinstance(law, Transition) else law.labels
    same = z.schema[name].categories == leaving
    if isinstance(law, Transition):
        same &= len(x.schema[name].categories) == len(law.true)
    return [] if same else [f"column {name!r} has other categories than its card: give both the same schema"]


@dataclass(frozen=True, slots=True)
class Same:
    """Columns that left as they were: the factor is 1 where they are the same, else 0."""

    z: Ints
    x: Ints

    @classmethod
    def of(cls, columns: Sequence[str], z: Table, x: Table) -> Same:
        """Number the values of both tables alike."""
        ours, theirs = block_codes(x, z, columns)
        return cls(theirs, ours)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return 0 or minus infinity."""
        return np.where(self.z[z] == self.x[x], 0.0, -np.inf)


@dataclass(frozen=True, slots=True)
class Fits:
    """Which statuses of a released record can come from which of a true one: records by the kind of their statuses."""

    z: Ints
    x: Ints
    table: Bools
    is_open: Bools
    statuses_z: Statuses
    statuses_x: Statuses
    opened: Bools

    @classmethod
    def of(cls, status_z: Statuses, status_x: Statuses, openable: Bools, is_point: Bools) -> Fits:
        """Number the kinds of both sides; released records differ in kind also by what enters as a point.

        An open true value needs a released one that is open or coded by the mask itself (`openable`), a closed one
        needs its own status.
        """
        kinds_z, z = _distinct_rows(np.concatenate([status_z, openable, is_point], axis=1))
        kinds_x, x = _distinct_rows(status_x)
        width = status_x.shape[1]
        may_open = kinds_z[:, None, width : 2 * width] == 1
        same = kinds_z[:, None, :width] == kinds_x
        fits = np.where(kinds_x == OPEN, may_open, same).all(axis=2)
        return cls(z, x, fits, kinds_x == OPEN, status_z, status_x, openable)

    def possible(self, z: Ints, x: Ints) -> Ints:
        """Return the places of the listed pairs that can be."""
        if self.table.all():
            return np.arange(len(z))
        return np.flatnonzero(self.table[self.z[z], self.x[x]])


def _distinct_rows(rows: Any) -> tuple[Any, Ints]:
    """Return the different rows and the number of each one's."""
    number = np.zeros(len(rows), np.int64)
    first = np.zeros(min(len(rows), 1), np.int64)
    for column in rows.T.astype(np.int64):
        _, first, number = np.unique(number * 256 + column, return_index=True, return_inverse=True)
    return rows[first], number


@dataclass(frozen=True, slots=True)
class PlainNoise:
    """A law asked for each pair as it stands."""

    sides: RecordPair

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the law's log density of each pair."""
        return self.sides.logpdf(z, x)[0]


def is_lowered(law: Any) -> bool:
    """Whether the values that lead to a released one depend on nothing but it."""
    if not isinstance(law, Additive) or any(law.spreads):
        return False
    noisy = bool((np.diag(law.noise.covariance) > 0).all())
    return noisy and not any(_looks_at_truth(outlet) for outlet in law.outlets)


def _looks_at_truth(outlet: Outlet) -> bool:
    """Whether a value is moved off a code, to the side on which the true one lies."""
    low = -np.inf if outlet.low is None else outlet.low
    high = np.inf if outlet.high is None else outlet.high
    return outlet.unit is not None and any(low < code < high for code in outlet.avoid)


def all_logs(terms: Sequence[LawTerm], z: Ints, x: Ints) -> Floats:
    """Return the sums of terms of all pairs (x records x z records)."""
    total = np.zeros((len(x), len(z)))
    for term in terms:
        if isinstance(term, MatrixTerm):
            total += term.matrix(z, x)
        else:
            listed = term.logs(np.tile(z, len(x)), np.repeat(x, len(z)))
            total += listed.reshape(total.shape)
    return total


@dataclass(frozen=True, slots=True)
class LoweredLaw:
    """Additive noise that is the same for every true value: cells of released values, centres of true ones.

    Where values of many correlated columns come near their units, hardly two released records have the same columns as
    points, or many are boxes: `is_motley` then has pairs computed one by one, boxes to a hundredth or so (see
    `kernels.normal_box_conditional`).
    """

    law: Additive
    lower: Floats
    upper: Floats
    factor: Floats
    is_point: Bools
    centre: Floats
    fits: Fits
    is_motley: bool = False

    @classmethod
    def of(cls, law: Additive, z: Table, x: Table) -> LoweredLaw:
        """Compute the cells and the centres."""
        sides = RecordPair.of(law, z, x)
        centre = law.place(sides.true, np.zeros(sides.true.shape, order="F"))
        released, openable = _at_limits(law, sides)
        nothing, resolution = np.zeros(len(z)), law.noise.resolution
        cells = [
            outlet.cell(released[:, j], nothing, np.full(len(z), resolution[j]))
            for j, outlet in enumerate(law.outlets)
        ]
        lower, upper, factor, point = (
            np.asfortranarray(np.column_stack([getattr(cell, name) for cell in cells]))
            for name in ("lower", "upper", "log_factor", "is_point")
        )
        fits = Fits.of(sides.status_z, sides.status_x, openable & (lower < np.inf), point)
        correlated = isinstance(law.noise, Normal) and bool(law.noise.correlations) and is_thick(law.noise)
        motley = correlated and (len(fits.table) > MANY_KINDS or _has_large_boxes(lower, upper, point))
        return cls(law, lower, upper, factor, point, centre, fits, motley)

    @property
    def most_boxes(self) -> int:
        """How many values of a released record are boxes at most: at limits, or near their units."""
        return int(((self.lower < np.inf) & ~self.is_point).sum(axis=1).max(initial=0))

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the law's log density of each pair; pairs of the same kinds are asked for together."""
        out = np.full(len(z), -np.inf)
        here = self.fits.possible(z, x)
        if self.is_motley:
            out[here] = self._one_by_one(z[here], x[here])
            return out
        for group in _pair_groups(self.fits.z[z[here]], self.fits.x[x[here]], self.fits.table.shape[1]):
            pairs = here[group]
            out[pairs] = self._alike(z[pairs], x[pairs])
        return out

    def matrix(self, z: Ints, x: Ints) -> Floats:
        """Return the log density of all pairs (x records x z records), by distances where noise is normal."""
        if self.is_motley:
            return self.logs(np.tile(z, len(x)), np.repeat(x, len(z))).reshape(len(x), len(z))
        out = np.full((len(x), len(z)), -np.inf)
        columns = _by_kind(self.fits.z[z])
        for kind_x, rows in _by_kind(self.fits.x[x]):
            for kind_z, places in columns:
                if self.fits.table[kind_z, kind_x]:
                    out[np.ix_(rows, places)] = self._block(z[places], x[rows])
        return out

    def _block(self, z: Ints, x: Ints) -> Floats:
        """Return the log density of all pairs of records of the same kinds."""
        from ..kernels.distances import log_kernel

        chosen = np.flatnonzero(self.fits.is_open[self.fits.x[x[0]]])
        if not len(chosen):
            return np.zeros((len(x), len(z)))
        normal = isinstance(self.law.noise, Normal) and is_thick(self.law.noise)
        if not normal or not self.is_point[z[0], chosen].all():
            return self._alike(np.tile(z, len(x)), np.repeat(x, len(z))).reshape(len(x), len(z))
        noise, out = self.law.noise.only(chosen.tolist()), np.empty((len(x), len(z)))
        inverse = cholesky_whitener(noise)
        nothing = np.zeros((1, len(chosen)))
        above = self.factor[np.ix_(z, chosen)].sum(axis=1)
        above += noise.log_box(nothing, nothing, (True,) * len(chosen))[0][0]
        points = np.ascontiguousarray((self.lower[np.ix_(z, chosen)] @ inverse.T).T)
        log_kernel(np.ascontiguousarray(self.centre[np.ix_(x, chosen)] @ inverse.T), points, above, out)
        return out

    def _one_by_one(self, z: Ints, x: Ints) -> Floats:
        """Return the log density of pairs of any kinds, coordinate by coordinate."""
        assert isinstance(self.law.noise, Normal)
        out = np.empty(len(z))
        for begin in range(0, len(z), PAIRS_AT_ONCE):
            run = slice(begin, begin + PAIRS_AT_ONCE)
            ours, centre = z[run], self.centre[x[run]]
            is_open = self.fits.is_open[self.fits.x[x[run]]]
            lower, upper = _apart(self.lower[ours], centre), _apart(self.upper[ours], centre)
            never = _without_density(lower, self.is_point[ours] & is_open)
            out[run] = box_nearly(self.law.noise, lower, upper, self.is_point[ours], is_open)
            out[run][never] = -np.inf
            out[run] += np.where(is_open, self.factor[ours], 0.0).sum(axis=1)
        return out

    def _alike(self, z: Ints, x: Ints) -> Floats:
        chosen = np.flatnonzero(self.fits.is_open[self.fits.x[x[0]]]).tolist()
        if not chosen:
            return np.zeros(len(z))
        points = tuple(bool(self.is_point[z[0], j]) for j in chosen)
        lower, upper = (np.empty((len(z), len(chosen)), order="F") for _ in range(2))
        factor = np.zeros(len(z))
        for i, j in enumerate(chosen):
            centre = self.centre[:, j][x]
            lower[:, i] = _apart(self.lower[:, j][z], centre)
            upper[:, i] = lower[:, i] if points[i] else _apart(self.upper[:, j][z], centre)
            factor += self.factor[:, j][z]
        never = _without_density(lower, np.array(points))
        upper[never] = lower[never]
        logs = weight_box(self.law.noise.only(chosen), lower, upper, points)[0]
        return np.where(never, -np.inf, factor + logs)


def _apart(ends: Floats, centre: Floats) -> Floats:
    """Return how far the ends of cells lie from the centres of the noise.

    On the log scale 0 lies at minus infinity, where noise leaves it: so a cell without an end below holds it.
    """
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(ends), -np.inf, ends - centre)


def _without_density(lower: Floats, is_point: Bools) -> Bools:
    """Tell pairs of a point and a centre at infinity, which noise never brings together, and put them at 0."""
    never = np.asarray((is_point & np.isinf(lower)).any(axis=1))
    lower[never] = 0.0
    return never


def _has_large_boxes(lower: Floats, upper: Floats, is_point: Bools) -> bool:
    """Whether records have so many boxes, or so many without an end, that an integral for each pair is too much."""
    possible = lower < np.inf
    boxes = (possible & ~is_point).sum(axis=1)
    endless = (possible & (np.isneginf(lower) | np.isposinf(upper)) & ~is_point).sum(axis=1)
    return bool((boxes > MOST_BOXES).any() or (endless > MOST_ENDLESS).any())


def is_thick(noise: Noise) -> bool:
    """Whether normal noise is thin in no direction."""
    return bool(np.linalg.eigvalsh(sds_and_correlations(noise.covariance)[1])[0] > LEAST_EIGENVALUE)


def cholesky_whitener(noise: Noise) -> Floats:
    """Return W with W Sigma W' = 1, by columns of their own size so that units do not matter."""
    sds, correlations = sds_and_correlations(noise.covariance)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(correlations)) / sds)


def _by_kind(kinds: Ints) -> list[tuple[int, Ints]]:
    """Return the places of each kind."""
    order = np.argsort(kinds, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(kinds[order])) + 1) if len(kinds) else []
    return [(int(kinds[part[0]]), part) for part in parts]


def _at_limits(law: Additive, sides: RecordPair) -> tuple[Floats, Bools]:
    """Return released values, codes of the mask itself at their limit, and which of them an open value can become."""
    released, openable = sides.released.copy(), sides.status_z == OPEN
    for j, outlet in enumerate(law.outlets):
        for code, limit in zip((BOTTOM_CODED, TOP_CODED), outlet.codes, strict=True):
            if limit is not None:
                here = sides.status_z[:, j] == code
                released[here, j], openable[here, j] = limit, True
    return released, openable


def _pair_groups(z: Ints, x: Ints, count: int) -> list[Ints]:
    """Return the places of pairs whose records are of the same kinds."""
    if not len(z):
        return []
    codes = z * count + x
    if (codes == codes[0]).all():
        return [np.arange(len(codes))]
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)
