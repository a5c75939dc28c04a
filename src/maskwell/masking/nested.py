"""Releasing the same records again: new noise is the earlier noise plus an independent increment.

Fresh noise at each release would average out, and the same noise at two scales would cancel. With z2 = z1 + extra
the second release tells nothing that the first did not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..card import NoiseCard
from ..engines import Part
from ..errors import BadPlan, raise_all
from ..keystream import Stream
from ..laws import Additive, Law, Mixture, Normal, Transition
from ..laws.chained import Chained, combined_of, stages_of, widened
from ..laws.convolution import normal_from_covariance
from ..table import Floats, Table

if TYPE_CHECKING:
    from .results import Masking

Revisions = npt.NDArray[np.int32]


@dataclass(frozen=True)
class History:
    """Which release this is, and for each record in which release its noise was last drawn anew (0: never)."""

    number: int
    revisions: Revisions
    notes: tuple[str, ...] = field(default=())

    @classmethod
    def first(cls, count: int) -> History:
        """Return the history of a first release."""
        return cls(1, np.zeros(count, np.int32))

    def draw(self, law: Any, x: Floats, stream: Stream, part: Part) -> Floats:
        """Draw each record under the stage of its last revision."""
        revisions = self.revisions[part]
        if not revisions.any():
            return _draw(law, x, stream, "")
        out = np.empty(x.shape, order="F")
        for revision in np.unique(revisions):
            here = np.flatnonzero(revisions == revision)
            out[here] = _draw(law, x[here], stream.at(here), f"@{revision}" if revision else "")
        return out


def _draw(law: Any, x: Floats, stream: Stream, suffix: str) -> Floats:
    stage = suffix if isinstance(law, Chained) else f"0{suffix}"
    drawn: Floats = law.draw(x, stream.staged(stage))
    return drawn


def nest(earlier: Masking, table: Table, card: NoiseCard) -> tuple[NoiseCard, History]:
    """Nest the laws of a new release in those of an earlier one, and compare the records."""
    _comparable(earlier, table)
    number = earlier.number + 1
    gone = [name for name in earlier.card.columns if name in table.schema and name not in card.columns]
    problems = [
        f"column {name!r} was masked in the earlier release and would now leave in clear" for name in gone
    ]
    laws = []
    for law in card.laws:
        try:
            laws.append(_nested_law(earlier.card, law, number))
        except BadPlan as refusal:
            problems += refusal.problems
    if earlier.card.subsampled is not None and (card.subsampled or 1.0) > earlier.card.subsampled:
        problems.append(
            "the earlier release was a smaller sample: the records it left out would now be known"
        )
    raise_all(problems, BadPlan)
    return replace(card, laws=tuple(laws)), _history(earlier, table, number)


def _comparable(earlier: Masking, table: Table) -> None:
    if table.ids is None or earlier.truth.ids is None:
        raise BadPlan("releases can be nested only where an id column says which record is which")
    if table.schema.series != earlier.truth.schema.series:
        raise BadPlan(
            f"the earlier release belongs to series {earlier.truth.schema.series!r}, this file to "
            f"{table.schema.series!r}; nested releases share a series"
        )


def _nested_law(earlier: NoiseCard, law: Any, number: int) -> Law:
    before = [old for old in earlier.laws if set(old.columns) & set(law.columns)]
    if not before:
        return law  # type: ignore[no-any-return]
    if len(before) > 1 or not set(before[0].columns) <= set(law.columns):
        raise BadPlan(
            f"columns {', '.join(law.columns)} were masked in other groups in the earlier release; keep its groups"
        )
    old, new = combined_of(before[0]), combined_of(law)
    if old == new and not isinstance(law, Chained):
        return before[0]
    stages = stages_of(before[0])
    extra: Additive | Transition | None
    if isinstance(old, Additive) and isinstance(new, Additive):
        stages = tuple((label, _fitted(stage, new)) for label, stage in stages)
        extra = _increment(_fitted(old, new), new)
    else:
        extra = _further(old, new)
    added = () if extra is None else ((f"nested {number} ", extra),)
    return Chained((*stages, *added), new)


def _fitted(law: Any, new: Additive) -> Additive:
    fitted = widened(law, new.columns) if isinstance(law, Additive) else None
    if fitted is None or fitted.columns != new.columns:
        raise _refused(new)
    return fitted


def _refused(law: Any) -> BadPlan:
    names = ", ".join(law.columns)
    return BadPlan(
        f"the noise of {names} is of another kind than in the earlier release, so it cannot be that noise plus more"
    )


def _increment(old: Additive, new: Additive) -> Additive | None:
    """Return the independent noise that turns the earlier law into the new one."""
    shapes = [(a.slope, a.offsets, a.spreads, a.mean_corrected, _transforms(a)) for a in (old, new)]
    if shapes[0] != shapes[1]:
        raise _refused(new)
    if old.noise == new.noise:
        return None
    return replace(new, noise=_extra_noise(old.noise, new.noise, new), offsets=(), outlets=new.outlets)


def _transforms(law: Additive) -> tuple[float | None, ...]:
    return tuple(outlet.log_shift for outlet in law.outlets)


def _extra_noise(old: Any, new: Any, law: Additive) -> Normal:
    if isinstance(old, Normal) and isinstance(new, Normal):
        return normal_from_covariance(_positive(new.covariance - old.covariance, law))
    if (
        isinstance(old, Mixture)
        and isinstance(new, Mixture)
        and (old.weights, old.means) == (new.weights, new.means)
    ):
        difference = np.square(new.sds) - np.square(old.sds)
        if np.ptp(difference, axis=1).max() <= 1e-9 * np.abs(difference).max():
            return normal_from_covariance(_positive(np.diag(difference[:, 0]), law))
    raise _refused(law)


def _positive(increment: Floats, law: Additive) -> Floats:
    eigenvalues, vectors = np.linalg.eigh(increment)
    if eigenvalues[0] < -1e-9 * np.trace(combined_of(law).noise.covariance):
        raise BadPlan(
            f"the new noise of {', '.join(law.columns)} is smaller than the earlier one in some direction: joined, "
            "the two releases would tell more than either; raise the noise, or keep the earlier plan"
        )
    clipped = (vectors * np.clip(eigenvalues, 0.0, None)) @ vectors.T
    return np.asarray((clipped + clipped.T) / 2)


def _further(old: Any, new: Any) -> Transition | None:
    """Return the table that, after the earlier one, gives the new one."""
    if old == new:
        return None
    if not (isinstance(old, Transition) and isinstance(new, Transition) and old.true == new.true):
        raise _refused(new)
    before, after = np.array(old.matrix), np.array(new.matrix)
    if before.shape != after.shape or np.linalg.cond(before) > 1e8:
        raise _refused(new)
    step = np.linalg.solve(before, after)
    if step.min() < -1e-9:
        raise BadPlan(
            f"the new change of {new.columns[0]!r} is smaller than the earlier one for some category: "
            "raise it, or keep the earlier plan"
        )
    step = np.clip(step, 0.0, None)
    matrix = tuple(map(tuple, (step / step.sum(axis=1, keepdims=True)).tolist()))
    return Transition(new.columns, old.released_as, new.released_as, matrix)


def _history(earlier: Masking, table: Table, number: int) -> History:
    """Compare records by id: unchanged ones keep their noise, changed ones get fresh noise, and it is said."""
    import pyarrow.compute as pc

    ids: Any = table.ids
    earlier_ids: Any = earlier.truth.ids
    found = pc.index_in(ids, value_set=earlier_ids)
    known = ~np.asarray(found.is_null())
    where = np.asarray(found.fill_null(0).to_numpy(), dtype=np.int64)
    columns = [name for name in earlier.card.columns if name in table.schema]
    changed = known & _differs(earlier.truth, where, table, columns)
    before = np.zeros(len(earlier.truth), np.int32) if earlier.revisions is None else earlier.revisions
    revisions = np.where(known, before[where], 0).astype(np.int32)
    revisions[changed] = number
    withdrawn = len(earlier.truth) - len(np.unique(where[known]))
    counts = (
        int(np.count_nonzero(known & ~changed)),
        int(changed.sum()),
        int(np.count_nonzero(~known)),
        withdrawn,
    )
    return History(number, revisions, _spoken(number, *counts))


def _differs(
    old: Table, where: npt.NDArray[np.int64], new: Table, columns: list[str]
) -> npt.NDArray[np.bool_]:
    """Tell which records have another value or status in some column that was masked."""
    differs = np.zeros(len(new), bool)
    for name in columns:
        before, after = old.values([name])[where, 0], new.values([name])[:, 0]
        same = (before == after) | (np.isnan(before) & np.isnan(after))
        differs |= ~same | (old.status(name)[where] != new.status(name))
    return differs


def _spoken(number: int, kept: int, changed: int, new: int, withdrawn: int) -> tuple[str, ...]:
    notes = [f"release {number} of the series: {kept:,} records keep their earlier noise"]
    if changed:
        notes.append(
            f"{changed:,} records have changed values and get fresh noise (the same noise would show the change "
            "exactly); whoever holds both releases sees these records twice"
        )
    if new:
        notes.append(f"{new:,} records are new")
    if withdrawn:
        notes.append(f"{withdrawn:,} records were withdrawn; they remain in copies of the earlier release")
    return tuple(notes)
