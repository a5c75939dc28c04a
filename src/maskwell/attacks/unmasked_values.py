"""What of a record is sure to leave as it is: values that no noise touches, and which cells are missing or coded.

A `Fate` says of a column what its law leaves for certain; `deterministic_table` sends records through the laws that
draw nothing. What depends on the noise is left out: a code that the mask itself gives, a category that may become
another. Values that the noise of a column spares are nearly sure (see `unchanged_values`). Own derivation. Read by
`fingerprint`, `uniqueness` and `blind_guess`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrow_buffers import to_numpy
from ..card import NoiseCard
from ..laws import Additive, Classes, SkewedBias, Transition
from ..laws.chain import combined_of
from ..laws.transform import on_unit
from ..masking.totals import coded_statuses, in_order, recompute_totals
from ..schema import BOTTOM_CODED, MISSING, OPEN, TOP_CODED, Column, Schema
from ..table import Floats, Statuses, Table, coded_values
from .agreement import coded_alike, numbered_alike
from .protocol import Ints
from .unchanged_values import SparedValues, draws_nothing, without_noise

Codes = npt.NDArray[np.int32]

VALUES, PATTERN, SPARED = "values", "pattern", "spared values"
CODED = (MISSING, TOP_CODED, BOTTOM_CODED)


@dataclass(frozen=True)
class Fate:
    """What leaves of a column for certain: its values or not, and `unsure` statuses, which may become each other.

    `groups` has for each released category the number of the group that no change leads into or out of, `spared` what
    leaves as it is of a column that else has noise.
    """

    values: bool = True
    unsure: tuple[int, ...] = ()
    groups: tuple[int, ...] | None = None
    spared: SparedValues | None = None


CLEAR, NOISY = Fate(), Fate(values=False)


def fates(schema: Schema, card: NoiseCard, masked: Collection[str] = ()) -> dict[str, Fate]:
    """Return the fate of every column that leaves; `masked` are those that some noise will touch, whatever its law."""
    leaving = [column for column in schema.columns if not column.drop and "id" not in column.roles]
    found = {c.name: NOISY if c.name in masked else _fate(c, card.law_of(c.name)) for c in leaving}
    for total, parts in in_order(card.recomputed):
        if total in found:
            found[total] = _sum_fate(schema[total], [found.get(name, CLEAR) for name, _ in parts])
    return found


def comparable(name: str, fate: Fate, known: Schema, card: NoiseCard) -> Fate | None:
    """Return what an intruder can compare of a column, as he has it: all, its pattern, or nothing."""
    if name not in known:
        return None
    parts = dict(card.recomputed).get(name)
    if parts is not None and not all(part in known and known[part].is_number for part, _ in parts):
        return None
    if fate.spared is not None and not known[name].is_number:
        return replace(fate, spared=None)
    law = combined_of(card.law_of(name))
    return fate if law is None or not fate.values or _fits(law, known[name]) else NOISY


def _fate(column: Column, law: Any) -> Fate:
    law = combined_of(law)
    if "group" in column.roles:  # made anew; a group known by a code alone leaves as missing
        return Fate(values=False, unsure=CODED)
    if law is None or isinstance(law, Classes):
        return CLEAR
    if isinstance(law, Transition):
        groups = _groups(np.array(law.matrix) > 0)
        return Fate(groups=tuple(groups.tolist())) if groups.max() > 0 else NOISY
    if not isinstance(law, Additive | SkewedBias):
        return NOISY
    place = law.columns.index(column.name)
    if draws_nothing(law, place):
        return CLEAR
    codes = zip(law.outlets[place].codes, (BOTTOM_CODED, TOP_CODED), strict=True)
    given = [status for code, status in codes if code is not None]
    unsure = (OPEN, *given) if given else ()
    return Fate(values=False, unsure=unsure, spared=SparedValues.by(law, column.name))


def _groups(may_become: Any) -> Ints:
    """Number the groups of released categories that have no true category in common."""
    size, width = may_become.shape
    true, released = np.arange(size), np.full(width, size)
    for _ in range(size):
        released = np.where(may_become, true[:, None], size).min(axis=0)
        lower = np.where(may_become, released, size).min(axis=1)
        if np.array_equal(lower, true):
            break
        true = lower
    return np.asarray(np.unique(released, return_inverse=True)[1])


def _sum_fate(column: Column, parts: Sequence[Fate]) -> Fate:
    """A total is as sure as its parts; its codes follow from the released sum, a part that is not open closes it."""
    if all(part.values for part in parts):
        return CLEAR
    if any(OPEN in part.unsure for part in parts):
        return Fate(values=False, unsure=(OPEN, *CODED))
    ends = [column.bottom is not None, column.top is not None]
    given = [status for end, status in zip(ends, (BOTTOM_CODED, TOP_CODED), strict=True) if end]
    return Fate(values=False, unsure=(OPEN, *given) if given else ())


def deterministic_table(table: Table, card: NoiseCard, units: Mapping[str, Fraction]) -> Table:
    """Return records as they are sure to leave: grouped, coded, on their units, totals anew.

    Columns with noise keep their true values (spared ones as they leave), and those that change at random get their
    likeliest category: of these only what a `Fate` calls sure may be read. `units` are those of columns without
    any law.
    """
    changes = {}
    for law in card.laws:
        for name in law.columns:
            if name in table.schema and _fits(combined_of(law), table.schema[name]):
                changes[name] = deterministic_column(combined_of(law), table, name)
            elif (
                name in table.schema
                and (spared := SparedValues.by(law, name))
                and table.schema[name].is_number
            ):
                changes[name] = table.schema[name], spared.sent(table.floats(name)), table.status(name)
    for name, unit in units.items():
        if name in table.schema and table.schema[name].is_number:
            values = on_unit(table.floats(name), unit)
            changes[name] = table.schema[name], values, table.status(name)
    numbers = {column.name for column in table.schema.columns if column.is_number}
    sums = tuple(one for one in card.recomputed if {one[0], *dict(one[1])} <= numbers)
    return recompute_totals(table.with_columns(changes), replace(card, recomputed=sums))


def _fits(law: Any, column: Column) -> bool:
    """Whether a law without noise can be applied to a column, as the intruder has it."""
    if isinstance(law, Transition):
        return column.kind == "category" and len(column.categories) == len(law.true)
    if isinstance(law, Classes):
        return column.is_number
    return column.is_number and draws_nothing(law, law.columns.index(column.name))


def deterministic_column(law: Any, table: Table, name: str) -> tuple[Column, Floats, Statuses]:
    """Return a column as a law leaves it that draws nothing there; of one that does, its likeliest category."""
    column, values, status = table.schema[name], table.floats(name), table.status(name)
    if isinstance(law, Transition):
        return law.released(column), law.likeliest(values), status
    if isinstance(law, Classes):
        values, status = _open_coded_values(column, values, status)
        return law.released(column), law.draw(values[:, None], None)[:, 0], status  # type: ignore[arg-type]
    place = law.columns.index(name)
    z = without_noise(law, place, values)
    return law.released(column), z, coded_statuses(z, status, *law.outlets[place].codes)


def _open_coded_values(column: Column, values: Floats, status: Statuses) -> tuple[Floats, Statuses]:
    """Give coded values their code as value: classes speak of them too."""
    values, status = values.copy(), status.copy()
    for code, literal in coded_values(column).items():
        if code in (TOP_CODED, BOTTOM_CODED):
            values[status == code], status[status == code] = float(literal), OPEN
    return values, status


def units_of(released: Table, card: NoiseCard, *, planned: bool) -> dict[str, Fraction]:
    """Return the units on which columns without any law leave, or (`planned`) will: weights are never rounded."""
    touched = {*card.columns, *dict(card.recomputed)}
    steps = {
        c.name: c.step for c in released.schema.columns if c.name not in touched and _has_unit(c, planned)
    }
    return {name: step for name, step in steps.items() if step and (planned or _is_on(released, name, step))}


def _has_unit(column: Column, planned: bool) -> bool:
    return column.is_number and not (planned and (column.unit is None or "weight" in column.roles))


def _is_on(table: Table, name: str, step: Fraction) -> bool:
    values = table.floats(name)
    return np.array_equal(on_unit(values, step), values, equal_nan=True)


@dataclass(frozen=True, slots=True)
class Trait:
    """One column of a fingerprint: what it shows for sure, numbered alike for the intruder's and the released records.

    `pattern` numbers what would still show if noise hid the values of a column with cells that are not open, or that
    are spared; of a trait of spared values all others have one number.
    """

    column: str
    what: str
    known: Codes
    released: Codes
    count: int
    pattern: tuple[Codes, Codes] | None = None


def trait_of(name: str, fate: Fate, known: Table, released: Table) -> Trait:
    """Number what a column shows for sure; `known` are settled records, and may be the released ones themselves."""
    sides = [known] if known is released else [known, released]
    status = _statuses(name, sides)
    if fate.unsure:
        status = np.where(np.isin(status, fate.unsure), fate.unsure[0], status)
    present = np.flatnonzero(np.bincount(status, minlength=256))
    pattern = np.searchsorted(present, np.arange(256)).astype(np.int32)[status]
    shown = _cut(pattern, len(known))
    if fate.spared is not None:
        codes, count = _spared_value_codes(name, fate.spared, sides)
        if count > 1:
            codes = np.where(status == OPEN, codes, count + pattern)
            return Trait(name, SPARED, *_cut(codes, len(known)), count + len(present), shown)
    if not fate.values:
        return Trait(name, PATTERN, *shown, len(present))
    codes, count = _values(name, fate, sides)
    if len(present) == 1:
        return Trait(name, VALUES, *_cut(np.where(status == OPEN, codes, 0), len(known)), max(count, 1))
    codes = np.where(status == OPEN, codes, count + pattern)
    return Trait(name, VALUES, *_cut(codes, len(known)), count + len(present), shown)


def _cut(codes: Codes, cut: int) -> tuple[Codes, Codes]:
    """Part the codes of both sides; those of one stand for both."""
    return (codes, codes) if len(codes) == cut else (codes[:cut], codes[cut:])


def _statuses(name: str, sides: Sequence[Table]) -> Statuses:
    """Return the statuses of all sides, those of the intruder's records as the release writes them."""
    known, released = sides[0], sides[-1]
    ours, theirs, status = known.schema[name], released.schema[name], known.status(name)
    if ours.is_number and theirs.is_number and (ours.top, ours.bottom) != (theirs.top, theirs.bottom):
        status = coded_alike(ours, theirs, known.floats(name), status)
    status = numbered_alike(ours, theirs, status)
    return np.concatenate([status, *(side.status(name) for side in sides[1:])])


def _spared_value_codes(name: str, spared: SparedValues, sides: Sequence[Table]) -> tuple[Codes, int]:
    """Number the spared values that the intruder's records have from 1 on; 0 are all others."""
    known = spared.known(sides[0].floats(name))
    values = np.concatenate([side.floats(name) for side in sides])
    here = np.isin(values, known)
    return np.where(here, np.searchsorted(known, values) + 1, 0).astype(np.int32), len(known) + 1


def _values(name: str, fate: Fate, sides: Sequence[Table]) -> tuple[Codes, int]:
    import pyarrow as pa

    if fate.groups is not None:
        codes = np.concatenate([side.floats(name) for side in sides])
        groups = np.array(fate.groups, np.int32)
        return groups[np.nan_to_num(codes).astype(np.int64)], int(groups.max()) + 1
    arrays = [side.array(name) for side in sides]
    if any(array.type != pa.int64() for array in arrays):
        numbers = all(side.schema[name].is_number for side in sides)
        arrays = [_plain(array, numbers) for array in arrays]
    encoded = pa.concat_arrays(arrays).dictionary_encode()
    return np.asarray(to_numpy(encoded.indices.fill_null(0)), np.int32), len(encoded.dictionary)


def _plain(array: Any, numbers: bool) -> Any:
    """Return an array as floats with one zero, or as text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.add(array.cast(pa.float64(), safe=False), 0.0) if numbers else array.cast(pa.string())
