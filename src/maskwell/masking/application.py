"""`apply`: resolve the plan, check it against the data, draw the noise once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..card.validation import card_problems
from ..engines import Engine, Part
from ..engines.local import Local
from ..errors import BadPlan, MaskwellWarning, raise_all
from ..keys import Key, Stream, uniforms
from ..laws import Additive, Law, Normal, Outlet, SkewedBias
from ..laws.chain import combined_of, stages_of
from ..laws.transform import beyond, on_unit
from ..notes import Note
from ..schema import BOTTOM_CODED, OPEN, TOP_CODED, Column
from ..table import Floats, Statuses, Table, coded_values
from .history import History
from .nesting import nest
from .protocol import Mask, Setting
from .results import Integers, Masking, record_blocks
from .totals import check_identities, coded_statuses, recompute_totals

Progress = Callable[[int, int], None]
Changed = dict[str, tuple[Column, Floats, Statuses]]


def apply(
    mask: Mask,
    table: Table,
    *,
    key: Key | None = None,
    seed: int | None = None,
    earlier: Masking | None = None,
    exact: bool = False,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Masking:
    """Mask a table. Only `.release` of the result may leave the steward.

    The key comes from the operating system unless given; `seed` makes a reproducible study whose card
    says "not for release". `exact` keeps full precision in the law (studies). `progress` is called with cells
    done and all.

    Never use a key twice for the same records, except through `earlier`. The same key draws the same noise for
    the same ids, so that two releases at different scales, or of changed values, would cancel it; a fresh key draws
    fresh noise, which averages out. `earlier` is the latest release of the same records: the noise is nested in its
    noise and, for columns that it left out, in that of the last release before it that had them (see `masking.nesting`
    for what that promises, and where clamps and units weaken it). The same table and `earlier` give the same bytes.
    """
    if not isinstance(table, Table):
        raise BadPlan(
            f"apply masks a Table, not a {type(table).__name__}: make one with Table.from_frame(...) or read(...)"
        )
    key = _key(key, seed, earlier)
    setting = Setting(engine or Local(), exact)
    stream = Stream(key, table.schema.series, "", record_blocks(table))
    card, history = _resolve(mask, table, setting, earlier, stream)
    _check_card(card)
    check_identities(table, card)
    card = replace(_on_units(card, table), numbered=table.ids is None, seeded=key.seeded)
    changed = _draw_all(card, table, stream, history, setting, progress)
    masked = recompute_totals(replace(table, source=_source(table, changed)).with_columns(changed), card)
    kept = _subsample_records(card, stream)
    notes = (*table.notes, *card.notes, *history.notes, *_steward_notes(table, masked, card, kept))
    state = (history.number, history.revisions, history.past)
    return Masking(table, masked, card, mask, key, *state, kept=kept, notes=notes)


def _key(key: Key | None, seed: int | None, earlier: Masking | None) -> Key:
    if key is not None and seed is not None:
        raise BadPlan("give a key or a seed, not both")
    if not isinstance(key, Key | None) or not isinstance(seed, int | None):
        raise BadPlan("a key is a Key (Key.from_os()), a seed a whole number")
    given = Key.from_seed(seed) if seed is not None else key
    if earlier is None:
        return given or Key.from_os()
    if earlier.key is None:
        raise BadPlan("the earlier masking was made elsewhere and has no key, so nothing can be nested in it")
    if given is not None and given != earlier.key:
        raise BadPlan("a nested release uses the key of the earlier one: leave key and seed out")
    return earlier.key


def _resolve(
    mask: Mask, table: Table, setting: Setting, earlier: Masking | None, stream: Stream
) -> tuple[NoiseCard, History]:
    if earlier is None:
        return mask.card(table, setting), History()
    return nest(earlier, mask, table, setting, stream)


def _check_card(card: NoiseCard) -> None:
    """Refuse noise of which a card would be written that its own readers refuse."""
    found = card_problems(card.public().to_dict())
    raise_all((f"noise of such a size cannot be told on a card ({said})" for said in found), BadPlan)


def _on_units(card: NoiseCard, table: Table) -> NoiseCard:
    """Put values off their declared unit on it where no mask does, by a law without noise: readers must know."""
    touched = {*card.columns, *dict(card.recomputed)}
    off = [
        column
        for column in table.schema.columns
        if column.name not in touched and not column.drop and not column.roles & {"id", "group", "weight"}
        if column.is_number and column.unit is not None and _off_unit(column, table)
    ]
    if not off:
        return card
    laws = tuple(Additive((column.name,), Normal((0.0,)), (_way_out(column),)) for column in off)
    note = Note("masking.rounded", {"columns": tuple(column.name for column in off)})
    return replace(card, laws=(*card.laws, *laws), notes=(*card.notes, note))


def _off_unit(column: Column, table: Table) -> bool:
    values = table.values([column.name])[:, 0]
    assert column.step is not None
    return not np.array_equal(on_unit(values, column.step), values, equal_nan=True)


def _way_out(column: Column) -> Outlet:
    """Return the way out of a column without noise: on its unit, inside its codes and off its missing codes."""
    unit = column.step
    assert unit is not None
    codes = [float(code) for code in column.missing if not isinstance(code, str)]
    avoid = tuple(code for code in codes if (Fraction(repr(code)) / unit).denominator == 1)
    low = None if column.bottom is None else beyond(column.bottom, 1, unit, avoid)
    high = None if column.top is None else beyond(column.top, -1, unit, avoid)
    return Outlet(unit, low, high, avoid=avoid)


def _draw_all(
    card: NoiseCard,
    table: Table,
    stream: Stream,
    history: History,
    setting: Setting,
    progress: Progress | None,
) -> Changed:
    changed: Changed = {}
    total, done = len(table) * len(card.laws), 0
    for law in card.laws:

        def tell(records: int) -> None:
            nonlocal done
            done += records
            if progress is not None:
                progress(done, total)

        changed |= _draw(law, table, stream, history, setting, tell)
    return changed


def _draw(
    law: Any, table: Table, stream: Stream, history: History, setting: Setting, tell: Callable[[int], None]
) -> Changed:
    opened = {name: _values_for_law(law, table, name) for name in law.columns}

    def work(part: Part) -> Floats:
        x = np.array([opened[name][0][part] for name in law.columns]).T
        drawn = history.draw(law, x, stream.at(part), part)
        tell(len(drawn))
        return drawn

    whole = slice(0, len(table))
    z = work(whole) if law.whole_file else setting.engine.per_record(work, len(table), len(law.columns))
    return {
        name: _released_column(law, table.schema[name], z[:, j], opened[name][1])
        for j, name in enumerate(law.columns)
    }


def _values_for_law(law: Law, table: Table, name: str) -> tuple[Floats, Statuses]:
    """Return values and statuses; coded values have their code where the law speaks of them too (classes)."""
    values, status = table.floats(name), table.status(name)
    if not law.opens_codes:
        return values, status
    values, status = values.copy(), status.copy()
    for code, literal in coded_values(table.schema[name]).items():
        if code in (TOP_CODED, BOTTOM_CODED):
            here = status == code
            values[here], status[here] = float(literal), OPEN
    return values, status


def _released_column(
    law: Any, column: Column, z: Floats, status: Statuses
) -> tuple[Column, Floats, Statuses]:
    """Describe the released column; values that the mask itself coded get the status of the code."""
    combined = combined_of(law)
    if isinstance(combined, Additive | SkewedBias):
        outlet = combined.outlets[combined.columns.index(column.name)]
        status = coded_statuses(z, status, *outlet.codes)
    elif law.whole_file and column.unit is not None:
        z = _way_out(column).leave(z.copy(), z)
    return law.released(column), z, status


def _source(table: Table, changed: Changed) -> Any:
    """Forget the original type of columns that leave as another kind."""
    other = {name for name, (column, _, _) in changed.items() if column.kind != table.schema[name].kind}
    types = {name: kind for name, kind in table.source.types.items() if name not in other}
    return replace(table.source, types=types)


def _subsample_records(card: NoiseCard, stream: Stream) -> Integers | None:
    if card.subsampled is None:
        return None
    kept = np.flatnonzero(uniforms(stream.staged("0").words("", "sample")[:, 0]) < card.subsampled)
    if not len(kept):
        raise BadPlan("the subsample would release no record; raise the fraction")
    return kept


def _steward_notes(table: Table, masked: Table, card: NoiseCard, kept: Integers | None) -> list[Note]:
    """Say what a steward should know: what leaves unmasked, and blocks of one record."""
    notes = []
    touched = {*card.masked, *(total for total, _ in card.recomputed)}
    clear = [
        c.name
        for c in table.schema.columns
        if not c.drop and c.name not in touched and not c.roles & {"id", "group"}
    ]
    if clear:
        notes.append(Note("masking.unmasked", {"columns": tuple(clear)}))
    if any(len(stages_of(law)) > 1 for law in card.laws):
        notes.append(Note("masking.several_stages"))
    if card.numbered:
        notes.append(Note("masking.no_id"))
    blocks = [name for name in table.schema.with_role("block") if name in clear]
    alone = _alone(masked, blocks, kept) if blocks else 0
    if alone:
        note = Note("masking.alone_in_block", {"count": alone, "blocks": tuple(blocks)})
        warnings.warn(str(note), MaskwellWarning, stacklevel=4)
        notes.append(note)
    return notes


def _alone(table: Table, blocks: list[str], kept: Integers | None) -> int:
    import pyarrow as pa

    keyed = pa.table({name: table.written(name) for name in blocks})
    keyed = keyed if kept is None else keyed.take(kept)
    counts = keyed.group_by(blocks).aggregate([([], "count_all")])["count_all"]
    return int(np.count_nonzero(np.asarray(counts) == 1))
