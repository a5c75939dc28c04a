"""`apply`: resolve the plan, check it against the data, draw the noise once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..engines import Engine, Part
from ..engines.local import Local
from ..errors import BadPlan, MaskwellWarning, raise_all
from ..keystream import Key, Stream, uniforms
from ..laws import Additive, Law
from ..laws.chained import Chained, combined_of
from ..laws.outlet import on_unit
from ..schema import BOTTOM_CODED, MISSING, OPEN, TOP_CODED, Column
from ..table import Floats, Statuses, Table, coded_values
from .nested import History, nest
from .plans import Mask, Setting, plan_data
from .results import Integers, Masking, record_blocks

Progress = Callable[[int, int], None]
FEW = 20_000  # records that show whether an identity is worth a search of the whole file
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
    says "not for release". `earlier` nests the noise in that of an earlier release of the same
    records. `exact` keeps full precision in the law (studies). `progress` is called with records done and all.
    """
    key = _key(key, seed, earlier)
    setting = Setting(engine or Local(), exact)
    card, history = _resolve(mask, table, setting, earlier)
    _check_identities(table, card)
    card = replace(card, numbered=table.ids is None, seeded=key.seeded)
    stream = Stream(key, table.schema.series, "", record_blocks(table))
    changed = _draw_all(card, table, stream, history, setting, progress)
    masked = _recomputed(replace(table, source=_source(table, changed)).with_columns(changed), card)
    notes = (*table.notes, *card.notes, *history.notes, *_said(table, masked, card))
    kept = _kept(card, stream)
    return Masking(table, masked, card, mask, key, history.number, history.revisions, kept, notes)


def _key(key: Key | None, seed: int | None, earlier: Masking | None) -> Key:
    if key is not None and seed is not None:
        raise BadPlan("give a key or a seed, not both")
    given = Key.from_seed(seed) if seed is not None else key
    if earlier is None:
        return given or Key.from_os()
    if earlier.key is None:
        raise BadPlan("the earlier masking was made elsewhere and has no key, so nothing can be nested in it")
    if given is not None and given != earlier.key:
        raise BadPlan("a nested release uses the key of the earlier one: leave key and seed out")
    return earlier.key


def _resolve(
    mask: Mask, table: Table, setting: Setting, earlier: Masking | None
) -> tuple[NoiseCard, History]:
    if earlier is None:
        return mask.card(table, setting), History.first(len(table))
    if plan_data(mask) == plan_data(earlier.mask):
        kept = replace(
            earlier.card, notes=("the plan is that of the earlier release, so its noise law is kept",)
        )
        return nest(earlier, table, kept)
    return nest(earlier, table, mask.card(table, setting))


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
    x, statuses = table.values(law.columns), {}
    for j, name in enumerate(law.columns):
        statuses[name] = _opened(table.schema[name], x[:, j], table.status(name), law)

    def work(part: Part) -> Floats:
        drawn = history.draw(law, x[part], stream.at(part), part)
        tell(len(drawn))
        return drawn

    whole = slice(0, len(table))
    z = work(whole) if law.whole_file else setting.engine.per_record(work, len(table), len(law.columns))
    return {
        name: _released(law, table.schema[name], z[:, j], statuses[name])
        for j, name in enumerate(law.columns)
    }


def _opened(column: Column, values: Floats, status: Statuses, law: Law) -> Statuses:
    """Give coded values their code where the law speaks of them too (classes)."""
    if not law.opens_codes:
        return status
    status = status.copy()
    for code, literal in coded_values(column).items():
        if code in (TOP_CODED, BOTTOM_CODED):
            here = status == code
            values[here], status[here] = float(literal), OPEN
    return status


def _released(law: Any, column: Column, z: Floats, status: Statuses) -> tuple[Column, Floats, Statuses]:
    """Describe the released column; values that the mask itself coded get the status of the code."""
    combined = combined_of(law)
    if isinstance(combined, Additive):
        outlet = combined.outlets[combined.columns.index(column.name)]
        if outlet.coded:
            status = _coded(z, status, outlet.low, outlet.high)
    return law.released(column), z, status


def _coded(z: Floats, status: Statuses, low: float | None, high: float | None) -> Statuses:
    status = status.copy()
    with np.errstate(invalid="ignore"):
        if high is not None:
            status[(status == OPEN) & (z >= high)] = TOP_CODED
        if low is not None:
            status[(status == OPEN) & (z <= low)] = BOTTOM_CODED
    return status


def _source(table: Table, changed: Changed) -> Any:
    """Forget the original type of columns that leave as another kind."""
    other = {name for name, (column, _, _) in changed.items() if column.kind != table.schema[name].kind}
    types = {name: kind for name, kind in table.source.types.items() if name not in other}
    return replace(table.source, types=types)


def _recomputed(masked: Table, card: NoiseCard) -> Table:
    """Compute totals anew from released parts; a total with a part that is not open becomes missing."""
    for total, parts in card.recomputed:
        column = masked.schema[total]
        names = [name for name, _ in parts]
        values, is_open = masked.values(names), masked.is_open(names).all(axis=1)
        z = np.zeros(len(masked))
        for j, (_, coefficient) in enumerate(parts):
            z += coefficient * values[:, j]
        if column.step is not None:
            z = on_unit(z, column.step)
        status = np.where(is_open, masked.status(total), MISSING).astype(np.uint8)
        status = np.where((masked.status(total) != OPEN) & is_open, masked.status(total), status)
        status = _coded(z, status.astype(np.uint8), column.bottom, column.top)
        masked = masked.with_columns({total: (column, z, status)})
    return masked


def _kept(card: NoiseCard, stream: Stream) -> Integers | None:
    if card.subsampled is None:
        return None
    kept = np.flatnonzero(uniforms(stream.staged("0").words("", "sample")[:, 0]) < card.subsampled)
    if not len(kept):
        raise BadPlan("the subsample would release no record; raise the fraction")
    return kept


def _check_identities(table: Table, card: NoiseCard) -> None:
    """Refuse noises that would contradict an exact identity, or a total in clear beside noised parts."""
    noised = {
        n for law in card.laws if law.form in ("additive", "lognormal bias", "chained") for n in law.columns
    }
    names = [c.name for c in table.schema.columns if c.is_number and not c.drop and "weight" not in c.roles]
    noised &= set(names)
    if not noised or len(names) < 3:
        return
    settled = {total for total, _ in card.recomputed}
    problems = []
    for identity in _identities(table, names):
        members = (identity.total, *(part for part, _ in identity.parts))
        if (
            noised.intersection(members)
            and not settled.intersection(members)
            and not _coherent(card, identity)
        ):
            problems.append(_identity_problem(identity.total, identity.parts))
    raise_all(problems, BadPlan)


def _identities(table: Table, names: list[str]) -> Any:
    """Find exact identities; a long file without gaps is searched whole only where a part of it has one."""
    from ..io.identities import find_identities

    stride = len(table) // FEW
    if stride > 1 and not table.closed.keys() & set(names):
        thinned = np.column_stack([np.asarray(table.array(name))[::stride] for name in names])
        if not find_identities(thinned.astype(np.float64), names):
            return ()
    return find_identities(table.values(names), names)


def _identity_problem(total: str, parts: tuple[tuple[str, float], ...]) -> str:
    said = " + ".join(part if coefficient == 1 else f"{coefficient:g} {part}" for part, coefficient in parts)
    return (
        f"{total} = {said} exactly, so separate noises would contradict each other or give the noise away; "
        f"mask the parts and add Recompute({total!r}, ...) to the chain, or drop one of the columns"
    )


def _coherent(card: NoiseCard, identity: Any) -> bool:
    """Whether one correlated noise keeps the identity by itself (a singular covariance kept exactly)."""
    law = combined_of(card.law_of(identity.total)) if card.law_of(identity.total) is not None else None
    if not isinstance(law, Additive) or any(part not in law.columns for part, _ in identity.parts):
        return False
    direction = np.zeros(len(law.columns))
    direction[law.columns.index(identity.total)] = 1.0
    for part, coefficient in identity.parts:
        direction[law.columns.index(part)] -= coefficient
    covariance = law.noise.covariance
    return bool(direction @ covariance @ direction <= 1e-9 * np.trace(covariance))


def _said(table: Table, masked: Table, card: NoiseCard) -> list[str]:
    """Say what a steward should know: what leaves unmasked, and blocks of one record."""
    notes = []
    touched = {*card.columns, *(total for total, _ in card.recomputed)}
    clear = [
        c.name
        for c in table.schema.columns
        if not c.drop and c.name not in touched and not c.roles & {"id", "group"}
    ]
    if clear:
        notes.append(f"released unmasked: {', '.join(clear)}")
    if any(isinstance(law, Chained) for law in card.laws):
        notes.append("some columns carry noise of several stages; the card shows the law of their sum")
    if card.numbered:
        notes.append("no column identifies the records, so later releases cannot be nested in this one")
    blocks = [name for name in table.schema.with_role("block") if not table.schema[name].drop]
    alone = _alone(masked, blocks) if blocks else 0
    if alone:
        text = f"{alone:,} records are alone in their block ({', '.join(blocks)}): no noise hides them"
        warnings.warn(text, MaskwellWarning, stacklevel=4)
        notes.append(text)
    return notes


def _alone(table: Table, blocks: list[str]) -> int:
    import pyarrow as pa

    keyed = pa.table({name: table.written(name) for name in blocks})
    counts = keyed.group_by(blocks).aggregate([([], "count_all")])["count_all"]
    return int(np.count_nonzero(np.asarray(counts) == 1))
