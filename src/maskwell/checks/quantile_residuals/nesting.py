"""Scores of a nested release given the earlier one: z2 = z1 + an independent increment, through limits and units.

With z1 in the cell (a1, b1) of the earlier law, whose noise is G1, and the increment G2,

    F(z2 | z1, x) = sum over i of w_i G2((edge - c_i) / k),    c_i = c + k G1^-1(G1(a1) + t_i (G1(b1) - G1(a1))),

over 32 Gauss-Legendre nodes t_i on (0, 1). z2 - z1 alone would have an sd 4.8% too large where the unit is 1.25 sds.
Increments of amounts are normal whatever G1 is: nothing else can be nested. A category that changes further does so by
the row of its earlier value in the added table. Where nothing was added, both values must come from one noise. Own
derivation. Called by `battery` where an earlier release is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...laws import Additive, Normal, Transition
from ...laws.chain import combined_of, stages_of
from ...masking import Masking
from ...masking.history import RecordPairing
from ...notes import Note
from ...table import Floats
from ..evidence import Evidence
from .cells import Integers, ScoredCells, as_named, jitter, score_column, table_scores
from .marginals import NoiseMarginal, NormalMarginal, clip_scores, normal_score

NODES = 32  # of Gauss and Legendre over the cell of the earlier value
HALVINGS = 60  # of the bracket of an inverse distribution function: to the last digit of a double


@dataclass(frozen=True)
class ContinuedColumns:
    """Columns of a release that continues an earlier one.

    `scores` by column given the earlier value, `impossible` how many values are others though nothing was added to
    their noise, `untested` why a column that was masked then as well has neither.
    """

    scores: dict[str, Floats] = field(default_factory=dict)
    impossible: dict[str, int] = field(default_factory=dict)
    untested: dict[str, Note] = field(default_factory=dict)


def given_earlier(evidence: Evidence) -> ContinuedColumns:
    """Judge each column whose noise continues that of the release before this one."""
    found = ContinuedColumns()
    earlier = next((one for one in evidence.earlier if _continues(evidence.masking, one)), None)
    if earlier is None:
        return found
    before = Evidence(earlier, seed=evidence.seed)
    pairing = RecordPairing.of(earlier.truth, evidence.masking.truth)
    for law in evidence.masking.card.laws:
        for name in law.columns:
            old = earlier.card.law_of(name)
            if old is not None and name in evidence.masking.masked.schema:
                _judge(found, NestedColumn(evidence, before, pairing, name, old, law))
    return found


@dataclass(frozen=True, slots=True)
class NestedColumn:
    """A column of two releases with its law in each."""

    evidence: Evidence
    before: Evidence
    pairing: RecordPairing
    name: str
    old: Any
    new: Any

    def paired(self, new: Integers, old: Integers) -> tuple[Integers, Integers]:
        """Return the places, among records of the new and of the old truth, of cells that kept their noise."""
        place = np.full(len(self.before.masking.truth), -1)
        place[old] = np.arange(len(old))
        where = np.where(self.pairing.known, self.pairing.where, 0)[new]
        at_old = np.where(self.pairing.known[new], place[where], -1)
        kept = (at_old >= 0) & _same_noise(self.evidence.masking, self.before.masking, self.name, new, where)
        return np.flatnonzero(kept), at_old[kept]


def _continues(masking: Masking, earlier: Masking) -> bool:
    same_key = masking.key is not None and masking.key == earlier.key
    ids = masking.truth.ids is not None and earlier.truth.ids is not None
    return same_key and ids and earlier.number == masking.number - 1 and earlier.swapping is None


def _judge(found: ContinuedColumns, column: NestedColumn) -> None:
    """Score what was added, or compare values to which nothing was."""
    stages, before = stages_of(column.new), stages_of(column.old)
    extra = stages[-1][1] if len(stages) == len(before) + 1 else None
    if isinstance(combined_of(column.new), Transition):
        _judge_table(found, column, extra if isinstance(extra, Transition) else None)
        return
    new, old = score_column(column.evidence, column.name), score_column(column.before, column.name)
    if new.cells is None or old.cells is None:
        why = new.untested or old.untested
        found.untested.update({} if why is None else {column.name: why})
    elif extra is None and len(stages) == len(before):
        _judge_same(found, column, new.cells, old.cells)
    elif isinstance(extra, Additive) and isinstance(extra.noise, Normal) and not any(extra.spreads):
        at = extra.columns.index(column.name)
        _judge_more(found, column, new.cells, old.cells, float(np.sqrt(extra.noise.covariance[at, at])))
    else:
        found.untested[column.name] = Note("checks.other_noise_added")


def _judge_more(
    found: ContinuedColumns, column: NestedColumn, new: ScoredCells, old: ScoredCells, sd: float
) -> None:
    """Score z2 given z1 and x where the cell kept its noise."""
    if sd == 0:
        _judge_same(found, column, new, old)
        return
    kept, at_old = column.paired(new.at, old.at)
    same = old.x[at_old] == new.x[kept]
    kept, at_old = kept[same], at_old[same]
    if len(kept):
        chosen = _take_cells(new, kept)
        uniform = jitter(column.evidence, f"{column.name} given earlier")
        values = np.full(len(column.evidence.masking.truth), np.nan)
        values[chosen.at] = _conditional(chosen, _take_cells(old, at_old), sd, uniform)
        found.scores[column.name] = values


def _judge_same(found: ContinuedColumns, column: NestedColumn, new: ScoredCells, old: ScoredCells) -> None:
    """Count values whose noise cannot be the one that they left with before."""
    kept, at_old = column.paired(new.at, old.at)
    same = old.x[at_old] == new.x[kept]
    first, second = _take_cells(old, at_old[same]), _take_cells(new, kept[same])
    (low, high), (low_then, high_then) = (
        ((one.lower - one.centre) / one.scale, (one.upper - one.centre) / one.scale)
        for one in (second, first)
    )
    slack = 1e-9 * (1.0 + np.abs(second.centre) / second.scale)
    other = (low > high_then + slack) | (low_then > high + slack)
    if count := int(np.count_nonzero(other)):
        found.impossible[column.name] = count


def _judge_table(found: ContinuedColumns, column: NestedColumn, extra: Transition | None) -> None:
    """Score a category that changed further by the row of its earlier value, or compare where nothing was added."""
    new, old = (_categories(one, column.name) for one in (column.evidence, column.before))
    kept, at_old = column.paired(new[0], old[0])
    at, left, then = new[0][kept], new[1][kept], old[1][at_old]
    if extra is None:
        names = [
            one.masking.masked.schema[column.name].categories for one in (column.evidence, column.before)
        ]
        if names[0] != names[1]:
            found.untested[column.name] = Note("checks.other_categories_before")
        elif count := int(np.count_nonzero(left != then)):
            found.impossible[column.name] = count
        return
    schemas = [one.masking.masked.schema[column.name].categories for one in (column.before, column.evidence)]
    rows, columns = as_named(schemas[0], extra.true), as_named(schemas[1], extra.released_as)
    if rows is None or columns is None:
        found.untested[column.name] = Note("checks.other_categories")
        return
    uniform = jitter(column.evidence, f"{column.name} given earlier")[at]
    scores, possible = table_scores(np.array(extra.matrix), rows[then], columns[left], uniform)
    if count := int(np.count_nonzero(~possible)):
        found.impossible[column.name] = count
    random = possible & (np.array(extra.matrix).max(axis=1)[rows[then]] < 1)
    values = np.full(len(column.evidence.masking.truth), np.nan)
    values[at[random]] = scores[random]
    found.scores[column.name] = values


def _categories(evidence: Evidence, name: str) -> tuple[Integers, Integers]:
    """Return the places in the truth of open released categories, and these."""
    z = evidence.noised(name)
    known = ~np.isnan(z)
    return evidence.rows[known], z[known].astype(np.int64)


def _same_noise(masking: Masking, earlier: Masking, name: str, at: Integers, where: Integers) -> Any:
    """Whether a cell's noise is drawn from the same tag in both releases."""
    nothing = np.zeros(2, np.uint64)
    now = masking.revisions[name][at] if name in masking.revisions else nothing
    then = earlier.revisions[name][where] if name in earlier.revisions else nothing
    return np.broadcast_to((now == then).all(axis=-1), at.shape).copy()


def _take_cells(cells: ScoredCells, places: Integers) -> ScoredCells:
    arrays = {
        name: getattr(cells, name)[places]
        for name in ("at", "x", "z", "centre", "scale", "lower", "upper", "local_sd")
    }
    return ScoredCells(cells.name, outlet=cells.outlet, marginal=cells.marginal, **arrays)


def _conditional(new: ScoredCells, first: ScoredCells, sd: float, uniform: Floats) -> Floats:
    """Average the increment's distribution function over where the earlier noise may have been."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low, high = first.tails(first.lower)
    low_end, high_end = first.tails(first.upper)
    increment = NormalMarginal(sd)
    sums = np.zeros((4, len(new.at)))
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        below, above = low + t * (low_end - low), high_end + (1 - t) * (high - high_end)
        noise = _inverse(first.marginal, below, above)
        for i, edge in enumerate((new.lower, new.upper)):
            tails = increment.tails((edge - new.centre) / new.scale - noise)
            sums[2 * i] += weight * tails[0]
            sums[2 * i + 1] += weight * tails[1]
    v = uniform[new.at]
    return clip_scores(
        normal_score(sums[0] + v * (sums[2] - sums[0]), sums[3] + (1 - v) * (sums[1] - sums[3]))
    )


def _inverse(marginal: NoiseMarginal, below: Floats, above: Floats) -> Floats:
    """Return where a law has so much below and above."""
    score = clip_scores(normal_score(below, above))
    if isinstance(marginal, NormalMarginal):
        return marginal.sd * score
    low, high = np.full(len(below), -40.0 * marginal.sd), np.full(len(below), 40.0 * marginal.sd)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_below = clip_scores(normal_score(*marginal.tails(middle))) < score
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray((low + high) / 2)
