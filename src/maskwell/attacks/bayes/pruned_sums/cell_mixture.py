"""Cells of units that are coarse beside normal noise, as mixtures of normal densities.

A cell of width u, split into k parts of width w = u / k, has the density

    P(cell) / u  =  1/k sum_i phi(z + (i - (k - 1) / 2) w - x; S_i),   S_i = S + w^2 / 12,

each part by Sheppard's correction (1898, see `scores`). Several coarse columns give a grid of shifts. So f(z) is a sum
that trees make, of as many searchers as there are shifts, and a pair costs a square for each of them, where nodes in
boxes of several columns are hundreds (see `kernels.normal_box_small`). Taken by `posterior` where many pairs have units
beyond what trees can take whole, and few enough parts do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from itertools import product
from math import ceil, log, pi, prod
from typing import Any

import numpy as np

from ....laws import Additive
from ....laws.transform import FINE, Outlet
from ....notes import Note
from ....schema import OPEN
from ....table import Floats, Table
from ...pair_density import LawTerm, LoweredLaw, cholesky_whitener
from ...protocol import IntruderKnowledge, Ints
from ..candidates import CandidateBlocks
from ..posterior_odds import Odds
from .posterior_sums import log_sums_by
from .scores import COARSE, LEAST_CELLS, LEAST_PAIRS, SEVERAL, is_plain, rounding_error, without_units
from .trees import Points, Trees

MOST_PARTS = 64  # of a cell: two in each of six columns, or four in each of three
MATRIX_CELLS = 1_000_000  # pairs that are weighed at once


def part_counts(law: Any) -> dict[int, int]:
    """Return in how many parts the cells of coarse columns are split (1 where they need not be), by column."""
    resolution, out = law.noise.resolution, dict[int, int]()
    for j, outlet in enumerate(law.outlets):
        if outlet.unit is not None:
            out[j] = max(ceil(float(outlet.unit) / (COARSE * float(resolution[j])) - 1e-9), 1)
    return out


def parts_of(laws: Sequence[Any]) -> int:
    """Return how many parts a cell of all columns has; 0 where the laws do not allow it."""
    if not laws or not all(_is_splittable(law) for law in laws):
        return 0
    parts = prod(count for law in laws for count in part_counts(law).values())
    return parts if parts <= MOST_PARTS else 0


def least_split_pairs(laws: Sequence[Any]) -> int:
    """Return from how many pairs on cells are split: where several columns of a law are coarse, a pair is dear."""
    return LEAST_CELLS if max(map(_coarse_count, laws), default=0) >= SEVERAL else LEAST_PAIRS


def _coarse_count(law: Any) -> int:
    """Return how many units are too coarse for points."""
    units = [0.0 if outlet.unit is None else float(outlet.unit) for outlet in law.outlets]
    return int((np.array(units) > FINE * law.noise.resolution).sum())


def _is_splittable(law: Any) -> bool:
    """Whether noise is plain, and units are the same for every value, without limits or codes."""
    return is_plain(law) and all(outlet == Outlet(unit=outlet.unit) for outlet in law.outlets)


@dataclass(frozen=True, slots=True)
class CellMixture:
    """The factor of all columns: records where the noise of a part has variance 1, and the shifts of the parts.

    Records are of kinds, by which columns are open: `shifts` are parts x kinds x columns. Pairs are of one kind, as in
    a block of `CandidateBlocks`.
    """

    released: Floats
    true: Floats
    kind: Ints  # of the released records
    shifts: Floats
    constants: Floats  # of the kinds

    @classmethod
    def of(cls, laws: Sequence[Additive], z: Table, x: Table) -> CellMixture:
        """Split the cells of the laws."""
        names = [name for law in laws for name in law.columns]
        open_z, open_x = (np.column_stack([side.status(name) == OPEN for name in names]) for side in (z, x))
        kinds, of_all = np.unique(np.concatenate([open_z, open_x]), axis=0, return_inverse=True)
        kind_z, kind_x = np.split(of_all.ravel(), [len(z)])
        sides = [_Side.of(law, z, x) for law in laws]
        released, true = np.zeros(open_z.shape), np.zeros(open_x.shape)
        shifts = np.zeros((prod(len(side.shifts) for side in sides), *kinds.shape))
        constants, begin = np.full(len(kinds), -log(len(shifts))), 0
        grid = np.array(list(product(*(range(len(side.shifts)) for side in sides))))
        for place, side in enumerate(sides):
            own = slice(begin, begin + len(side.law.columns))
            for number, kind in enumerate(kinds):
                chosen, rows = np.flatnonzero(kind[own]), (kind_z == number, kind_x == number)
                at, white = chosen + begin, side.white(chosen)
                released[np.ix_(rows[0], at)] = side.lower[np.ix_(rows[0], chosen)] @ white.T
                true[np.ix_(rows[1], at)] = side.centre[np.ix_(rows[1], chosen)] @ white.T
                shifts[:, number, at] = (side.shifts[:, chosen] @ white.T)[grid[:, place]]
                constants[number] += np.log(np.abs(np.diag(white))).sum() - len(chosen) * log(2 * pi) / 2
            begin = own.stop
        return cls(released, true, kind_z, shifts, constants)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log density of each pair."""
        apart, kind = self.released[z] - self.true[x], self.kind[z]
        logs = (-0.5 * ((apart + shift[kind]) ** 2).sum(axis=1) for shift in self.shifts)
        return np.asarray(reduce(np.logaddexp, logs) + self.constants[kind])

    def matrix(self, z: Ints, x: Ints) -> Floats:
        """Return the log density of all pairs (x records x z records)."""
        from ....kernels.distances import log_kernel

        out, kind = np.empty((len(x), len(z))), self.kind[z]
        step = max(MATRIX_CELLS // max(len(z), 1), 1)
        for begin in range(0, len(x), step):
            rows, true = out[begin : begin + step], self.true[x[begin : begin + step]]
            one = np.empty_like(rows)
            for number, shift in enumerate(self.shifts):
                points = np.ascontiguousarray((self.released[z] + shift[kind]).T)
                log_kernel(true, points, self.constants[kind], one if number else rows)
                if number:
                    np.logaddexp(rows, one, out=rows)
        return out

    def log_sums(self, codes: tuple[Ints, Ints], wanted: Ints, eps: float) -> tuple[Floats, float]:
        """Return the log of the sums over the true records of each block of some released ones, and what they lack."""
        trees = Trees.of(Points(self.true, codes[0]), np.zeros(len(self.true)))
        kind, total, lacking = self.kind[wanted], np.full(len(wanted), -np.inf), 0.0
        for shift in self.shifts:
            searchers = Points(self.released[wanted] + shift[kind], codes[1][wanted])
            found, lost = log_sums_by(trees, searchers, eps)
            total, lacking = np.logaddexp(total, found), max(lacking, lost)
        return total + self.constants[kind], lacking


@dataclass(frozen=True, slots=True)
class _Side:
    """One law with the units of parts as part of the noise: what leads to released values, and the shifts of parts."""

    law: Additive
    lower: Floats
    centre: Floats
    shifts: Floats

    @classmethod
    def of(cls, law: Additive, z: Table, x: Table) -> _Side:
        """Split the cells of a law."""
        counts = part_counts(law)
        along = [_shifts(outlet, counts.get(j, 1)) for j, outlet in enumerate(law.outlets)]
        narrow = without_units(with_parts(law))
        one = LoweredLaw.of(narrow, z, x)
        return cls(narrow, one.lower, one.centre, np.array(list(product(*along))))

    def white(self, chosen: Ints) -> Floats:
        """Return what brings the noise of some columns to variance 1."""
        return cholesky_whitener(self.law.noise.only(chosen.tolist())) if len(chosen) else np.empty((0, 0))


def _shifts(outlet: Outlet, count: int) -> list[float]:
    """Return how far the middles of the parts lie from that of the cell."""
    unit = 0.0 if outlet.unit is None else float(outlet.unit)
    return [((i + 0.5) / count - 0.5) * unit for i in range(count)]


def mixture_terms(laws: Sequence[Any], z: Table, x: Table) -> list[LawTerm]:
    """Prepare laws for pairs of records of two tables, cells as mixtures."""
    return [CellMixture.of(laws, z, x)] if laws else []


def split_odds(
    known: IntruderKnowledge,
    release: Any,
    fields: Sequence[str],
    ground: CandidateBlocks,
    laws: Sequence[Any],
    eps: float,
) -> tuple[Odds, list[Note]]:
    """Prepare scores against the true records, f(z) by trees."""
    own = replace(known, shared={})
    odds = Odds.by_truth(ground, own, release, fields, (mixture_terms, mixture_terms))
    assert odds.truth is not None
    mixture, blocks = odds.truth.kept[0], ground.blocks
    assert isinstance(mixture, CellMixture)
    wanted = np.flatnonzero(np.isin(blocks.released, blocks.known))
    sums, lacking = mixture.log_sums((ground.true, blocks.released), wanted, eps)
    odds.log_f[wanted] = sums - np.log(np.maximum(ground.units[wanted], 1))
    rounding = sum(rounding_error(with_parts(law)) for law in laws)
    return replace(odds, is_f_known=True), [
        Note("attacks.unseen_candidates", {"share": 1.05 * lacking}),
        Note("attacks.units_as_noise_in_parts", {"parts": len(mixture.shifts), "error": rounding}),
    ]


def with_parts(law: Additive) -> Additive:
    """Return a law with the units of the parts of its cells."""
    counts = part_counts(law)
    outlets = tuple(
        replace(outlet, unit=None if outlet.unit is None else Fraction(outlet.unit) / counts[j])
        for j, outlet in enumerate(law.outlets)
    )
    return replace(law, outlets=outlets)
