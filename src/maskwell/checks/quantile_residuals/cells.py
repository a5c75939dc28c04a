"""Masked cells and their normal scores: y = Phi^-1(u), u uniform in the cell's interval of its own law.

With a and b the ends of the cell in units of the noise and v a keyed uniform,

    u = G(a) + v (G(b) - G(a)),      1 - u = S(b) + (1 - v) (S(a) - S(b)),

and y comes from the smaller of the two (Dunn and Smyth 1996). By the card y is N(0, 1) and independent from cell to
cell whatever the true values are. Cells that the law cannot give are counted, and have no score.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...keys import Key, Stream, ids_from_numbers
from ...laws import Additive, Classes, Outlet, SkewedBias, Transition
from ...laws.transform import on_unit
from ...notes import Note
from ...schema import BOTTOM_CODED, OPEN, TOP_CODED
from ...table import Floats, Statuses, Table
from ..evidence import Evidence
from ..scales import law_of
from .marginals import BiasMarginal, NoiseMarginal, Tails, log_roughness, marginal_of, normal_score

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LEAST_MASS = 1e-300  # of a cell: what is less likely than the smallest double does not happen
SHARED = 0.9  # of the groups: where so many have one released value, their noise was drawn once
LEAST_GROUPS = 20  # with fewer it cannot be told that noise was drawn once for a group
MOST_INTEGRALS = 20_000  # cells of a column whose law is an integral, chosen at random: about half a minute


@dataclass(frozen=True, slots=True)
class ScoredCells:
    """The cells of one column that carry noise, in the truth's order; `at` are their places in the truth.

    `lower` and `upper` are the ends of each cell on the scale of the noise, `centre` and `scale` where its noise is
    centred and by how much it is multiplied, `local_sd` its sd on the scale of the released values.
    """

    name: str
    at: Integers
    x: Floats
    z: Floats
    outlet: Outlet
    marginal: NoiseMarginal
    centre: Floats
    scale: Floats
    lower: Floats
    upper: Floats
    local_sd: Floats

    @property
    def unit(self) -> float:
        """The unit of released values; 0 without one."""
        return 0.0 if self.outlet.unit is None else float(self.outlet.unit)

    @property
    def is_clamped(self) -> Bools:
        """Whether a cell is at a limit."""
        return np.isinf(self.lower) | np.isinf(self.upper)

    @property
    def roughness(self) -> float:
        """The roughness of the released values: noise on the log scale leaves as a skewed law."""
        own = self.marginal.roughness
        if self.outlet.log_shift is None or not len(self.scale):
            return own
        return max(own, log_roughness(float(self.marginal.sd * self.scale.max())))

    def tails(self, edges: Floats) -> Tails:
        """Return the probabilities below and above some value of each cell, on the scale of the noise."""
        return self.marginal.tails((edges - self.centre) / self.scale)

    def entered(self, values: Floats) -> Floats:
        """Transform released values to the scale of the noise; minus infinity below where the logarithm ends."""
        shift = self.outlet.log_shift
        if shift is None:
            return values
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(np.maximum(values + shift, 0.0)))

    def only(self, chosen: Bools) -> ScoredCells:
        """Return some of the cells."""
        if chosen.all():
            return self
        arrays = {
            name: getattr(self, name)[chosen]
            for name in ("at", "x", "z", "centre", "scale", "lower", "upper", "local_sd")
        }
        marginal = self.marginal
        if isinstance(marginal, BiasMarginal):
            marginal = BiasMarginal(marginal.x[chosen], marginal.bias_sd, marginal.noise_sd)
        return ScoredCells(self.name, outlet=self.outlet, marginal=marginal, **arrays)


@dataclass(frozen=True)
class ColumnScores:
    """One masked column: its cells and scores (over all records of the truth, NaN without one).

    `impossible` counts what the law cannot give, by reason; `untested` says why there are no scores, `of_cells` how
    many cells there were where some were chosen at random.
    """

    name: str
    cells: ScoredCells | None = None
    scores: Floats | None = None
    impossible: dict[str, int] = field(default_factory=dict)
    untested: Note | None = None
    of_cells: int | None = None


def jitter(evidence: Evidence, label: str) -> Floats:
    """Return a uniform draw for each record of the truth, by the audit's own key."""
    blocks = evidence.once("jitter", lambda: ids_from_numbers(len(evidence.masking.truth)))
    return Stream(Key.from_seed(evidence.seed), "audit", "quantile residuals", blocks).uniforms(label)


def unswapped_table(evidence: Evidence) -> Table:
    """Return the masked values with every exchange undone: a moved cell is judged by its donor's truth."""
    return evidence.once("unswapped", lambda: evidence.masking.unswapped)


def score_column(evidence: Evidence, name: str) -> ColumnScores:
    """Return the cells and scores of one masked column."""
    card, truth = evidence.masking.card, evidence.masking.truth
    if name in dict(card.recomputed):
        return ColumnScores(name, untested=Note("checks.is_total"))
    law = law_of(evidence, name)
    if law is None or name not in truth.schema:
        return ColumnScores(name, untested=Note("checks.no_law"))
    if isinstance(law, Transition):
        return _table_scores(evidence, name, law)
    if isinstance(law, Classes):
        return _classes(evidence, name, law)
    if isinstance(law, Additive | SkewedBias):
        return _amounts(evidence, name, law)
    return ColumnScores(name, untested=Note("checks.no_density", {"form": law.form}))


def _statuses(evidence: Evidence, name: str) -> tuple[Statuses, Statuses]:
    """Return the statuses of the released records in the truth and as masked, in the truth's order."""
    rows = evidence.rows
    return evidence.masking.truth.status(name)[rows], unswapped_table(evidence).status(name)[rows]


def _amounts(evidence: Evidence, name: str, law: Any) -> ColumnScores:
    """Score amounts and noised codes of categories."""
    before, after = _statuses(evidence, name)
    outlet, impossible = law.outlets[0], dict[str, int]()
    x, z, after = evidence.true(name), evidence.noised(name).copy(), after.copy()
    for status, code in ((BOTTOM_CODED, outlet.codes[0]), (TOP_CODED, outlet.codes[1])):
        if code is not None:
            here = (after == status) & (before == OPEN)
            z[here], after[here] = code, OPEN
    _count(impossible, "closed otherwise than in the truth", before != after)
    open_both = (before == OPEN) & (after == OPEN) & ~np.isnan(x) & ~np.isnan(z)
    _count(impossible, "off the unit", open_both & _off_unit(z, outlet))
    places = np.flatnonzero(open_both & ~_off_unit(z, outlet))
    of_cells = None
    if isinstance(law, SkewedBias) and len(places) > MOST_INTEGRALS:
        of_cells = len(places)
        drawn = jitter(evidence, f"{name} chosen")[evidence.rows[places]]
        places = places[drawn < MOST_INTEGRALS / len(places)]
    cells = _cells(name, law, evidence.rows[places], x[places], z[places])
    if cells is None:
        return ColumnScores(name, impossible=impossible, untested=Note("checks.no_distribution"))
    silent = cells.scale * cells.marginal.sd == 0
    if silent.any():
        still = cells.only(silent)
        _count(impossible, "changed without noise", outlet.leave(still.centre.copy(), still.x) != still.z)
        cells = cells.only(~silent)
    cells, disagreeing = _one_of_each_group(evidence, cells)
    _count(impossible, "different within groups that share their noise", disagreeing)
    if not len(cells.at):
        return ColumnScores(name, impossible=impossible, untested=Note("checks.no_noise"))
    scores, possible = _scores(cells, jitter(evidence, name)[cells.at])
    _count(impossible, "with a probability of 0", ~possible)
    cells = cells.only(possible)
    out = np.full(len(evidence.masking.truth), np.nan)
    out[cells.at] = scores[possible]
    return ColumnScores(name, cells, out, impossible, of_cells=of_cells)


def _cells(name: str, law: Any, at: Integers, x: Floats, z: Floats) -> ScoredCells | None:
    """Return where each cell begins and ends, and the noise that leads there."""
    outlet = law.outlets[0]
    cell = outlet.cell(z, x, np.zeros(len(z)))
    ends = (cell.lower, np.where(cell.is_point, cell.lower, cell.upper))
    if isinstance(law, SkewedBias):
        bias = BiasMarginal(x, law.bias_sd, law.sds[0])
        sizes = np.hypot(law.sds[0], law.bias_sd * x)
        return ScoredCells(
            name, at, x, z, outlet, bias, np.zeros(len(x)), np.where(sizes > 0, 1.0, 0.0), *ends, sizes
        )
    marginal = marginal_of(law.noise, 0)
    if marginal is None:
        return None
    centre = law.place(x[:, None], np.zeros((len(x), 1), order="F"))[:, 0]
    spread = law.spreads[0] if law.spreads else None
    scale = np.ones(len(x)) if spread is None else spread.factor(x)
    local = marginal.sd * scale
    if outlet.log_shift is not None:
        local = local * np.abs(x + outlet.log_shift)
    return ScoredCells(name, at, x, z, outlet, marginal, centre, scale, *ends, local)


def _scores(cells: ScoredCells, uniform: Floats) -> tuple[Floats, Bools]:
    """Return the normal score of each cell, and whether its law can give it at all."""
    (low, high), (low_end, high_end) = cells.tails(cells.lower), cells.tails(cells.upper)
    below = low + uniform * (low_end - low)
    above = high_end + (1.0 - uniform) * (high - high_end)
    mass = np.where(low_end < 0.5, low_end - low, high - high_end)
    is_point = cells.lower == cells.upper
    possible = (mass > LEAST_MASS) | (is_point & (below > 0) & (above > 0))
    possible &= cells.lower < np.inf  # where the outlet says that nothing leads to a value
    return normal_score(below, above), possible


def _off_unit(z: Floats, outlet: Outlet) -> Bools:
    if outlet.unit is None:
        return np.zeros(len(z), bool)
    codes = [code for code in outlet.codes if code is not None]  # a code may lie anywhere
    near = np.maximum(np.abs(z), float(outlet.unit)) * 1e-12
    with np.errstate(invalid="ignore"):
        return np.asarray((np.abs(on_unit(z, outlet.unit) - z) > near) & ~np.isin(z, codes))


def _count(into: dict[str, int], reason: str, where: Bools) -> None:
    count = int(np.count_nonzero(where))
    if count:
        into[reason] = into.get(reason, 0) + count


def _one_of_each_group(evidence: Evidence, cells: ScoredCells) -> tuple[ScoredCells, Bools]:
    """Keep one record of each group where a value of the whole group was noised once, and tell who disagrees.

    That is seen where the true value is one in every group and so is the released one in nine of ten of them, which
    noise of each record's own does not give.
    """
    truth = evidence.masking.truth
    nobody = np.zeros(0, bool)
    for name in [
        column.name for column in truth.schema.columns if "group" in column.roles
    ]:  # dropped ones too
        groups = codes_of(truth, name)[cells.at]
        order = np.argsort(groups, kind="stable")
        first = np.r_[True, np.diff(groups[order]) != 0]
        starts = np.flatnonzero(first)
        many = np.diff(np.r_[starts, len(order)]) > 1
        if not len(starts) or groups.min() < 0 or many.sum() < LEAST_GROUPS:
            continue
        spans = [
            np.maximum.reduceat(v[order], starts) - np.minimum.reduceat(v[order], starts)
            for v in (cells.x, cells.z)
        ]
        agree = spans[1] <= cells.unit * (1 + 1e-9)
        if (spans[0][many] > 0).any() or agree[many].mean() < SHARED:
            continue
        kept = np.zeros(len(cells.at), bool)
        kept[order[starts]] = True
        return cells.only(kept), ~agree
    return cells, nobody


def codes_of(table: Table, name: str) -> Integers:
    """Return the values of any column as whole numbers from 0 on in the order of first sight, -1 where it is null."""
    import pyarrow.compute as pc

    encoded: Any = pc.dictionary_encode(table.array(name))
    return np.asarray(encoded.indices.fill_null(-1), dtype=np.int64)


def _table_scores(evidence: Evidence, name: str, law: Transition) -> ColumnScores:
    """Score a category that changes by a table: G is the cumulated row of the true category."""
    before, after = _statuses(evidence, name)
    impossible = dict[str, int]()
    _count(impossible, "closed otherwise than in the truth", before != after)
    true = as_named(evidence.masking.truth.schema[name].categories, law.true)
    left = as_named(evidence.masking.masked.schema[name].categories, law.released_as)
    if true is None or left is None:
        return ColumnScores(name, impossible=impossible, untested=Note("checks.other_categories"))
    places = np.flatnonzero((before == OPEN) & (after == OPEN))
    x = true[evidence.true(name)[places].astype(np.int64)]
    z = left[evidence.noised(name)[places].astype(np.int64)]
    matrix, uniform = np.array(law.matrix), jitter(evidence, name)[evidence.rows[places]]
    scores, possible = table_scores(matrix, x, z, uniform)
    _count(impossible, "with a probability of 0", ~possible)
    random = possible & (matrix.max(axis=1)[x] < 1)
    if not random.any():
        return ColumnScores(name, impossible=impossible, untested=Note("checks.table_without_chance"))
    out = np.full(len(evidence.masking.truth), np.nan)
    out[evidence.rows[places[random]]] = scores[random]
    return ColumnScores(name, scores=out, impossible=impossible)


def table_scores(matrix: Floats, x: Integers, z: Integers, uniform: Floats) -> tuple[Floats, Bools]:
    """Return the normal score of each change by a table, and whether the table can give it."""
    nothing = np.zeros((len(matrix), 1))
    sums = np.cumsum(np.hstack([nothing, matrix]), axis=1)
    rest = np.cumsum(np.hstack([nothing, matrix[:, ::-1]]), axis=1)[:, ::-1]
    below = sums[x, z] + uniform * (sums[x, z + 1] - sums[x, z])
    above = rest[x, z + 1] + (1 - uniform) * (rest[x, z] - rest[x, z + 1])
    return normal_score(below, above), matrix[x, z] > 0


def as_named(categories: tuple[str, ...], law: tuple[str, ...]) -> Integers | None:
    """Return the place in the law of each category of a column; by number where the card hides the names."""
    if set(categories) <= set(law):
        return np.array([law.index(one) for one in categories], np.int64)
    return np.arange(len(categories)) if len(categories) == len(law) else None


def _classes(evidence: Evidence, name: str, law: Classes) -> ColumnScores:
    """A class is that of the value: there is nothing random in it, so it is right or impossible."""
    before, after = _statuses(evidence, name)
    both, impossible = (before == OPEN) & (after == OPEN), dict[str, int]()
    x, z = evidence.true(name)[both], evidence.noised(name)[both]
    own = np.searchsorted(np.array(law.breaks), x, side="right")
    _count(impossible, "in another class than their own", own != z)
    _count(impossible, "closed though open in the truth", (before == OPEN) & (after != OPEN))
    return ColumnScores(name, impossible=impossible, untested=Note("checks.classes_without_chance"))


def wrong_totals(evidence: Evidence) -> dict[str, int]:
    """Count the released totals that are not the sum of their released parts."""
    from ...masking.totals import recompute_totals

    masking = evidence.masking
    totals = [total for total, _ in masking.card.recomputed if total in masking.masked.schema]
    if not totals:
        return {}
    again = recompute_totals(masking.masked, masking.card)
    wrong = dict[str, int]()
    for total in totals:
        z, right = (table.floats(total)[evidence.rows] for table in (masking.masked, again))
        known = ~(np.isnan(z) & np.isnan(right))
        if count := int(np.count_nonzero(known & (z != right))):
            wrong[total] = count
    return wrong


def inclusion_scores(evidence: Evidence) -> Floats | None:
    """Score who was drawn into a subsample: u below 1 - f where a record was left out, above where it was not."""
    share = evidence.masking.card.subsampled
    if share is None or share >= 1:
        return None
    uniform = jitter(evidence, "inclusion")
    left_out = np.ones(len(uniform), bool)
    left_out[evidence.rows] = False
    below = np.where(left_out, (1 - share) * uniform, 1 - share + share * uniform)
    above = np.where(left_out, share + (1 - share) * (1 - uniform), share * (1 - uniform))
    return normal_score(below, above)
