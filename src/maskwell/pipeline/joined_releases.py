"""Who holds an earlier release of the same records too: the rows of both joined, and attacked as one.

Noise is nested, so a column that both releases have tells no more twice than once, and a release that only adds noise
tells nothing beside the earlier one. But a release with other columns, or with values that changed since, adds to the
row of the first: rows are paired by what both show alike (a value whose noise was not drawn anew leaves twice), and a
pair of rows is weighed by

    f(z1, z2 | x) / f(z1, z2),      f(z1, z2 | x) = f(z2 | x) f(those cells of z1 that z2 does not repeat | x),

over the blocks of all columns that are in clear in either. So the earlier columns are put beside the present ones, with
their laws, and the intruder who knows the law attacks by the same code. Left out are earlier cells that stand in this
release as they were; present cells whose earlier ones had less noise (z2 = z1 + extra) count by the earlier ones; where
noise was drawn anew (a value changed, or one whose noise is drawn with it) both count, as these draws have nothing in
common. Where a column has cells of both kinds, who has one draw is counted by an attack in which all have one, who has
two by one in which all have two: each knows of his target which it is, as he knows both true values.

Rows are paired by the cells that both releases show alike. Where several rows are, all pairs of them are weighed (see
`row_pairs`), and the row counts that is found oftener, this release's or the earlier one's. Where noise was added to a
record's value between the releases nothing agrees to the digit, and its rows are taken to be paired: then the rate is
an upper bound. It is one too where records were exchanged, as the rows are joined as they were before, and where more
rows are alike than can be weighed. Releases before the earlier one: their noise on columns that it left out is drawn
again by its key, columns that they showed in clear count as such. What joined rows give away without a link (sums whose
parts left in different releases, outer records) the audit's own checks see, which are made of the joined rows too.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from ..arrow_buffers import from_numpy
from ..attacks.attack_run import attack_by
from ..attacks.pair_density import laws_on
from ..attacks.risk import Risk
from ..card import NoiseCard
from ..errors import MaskwellError, MaskwellWarning
from ..laws import Law
from ..laws.chain import combined_of
from ..laws.unknowns import of_columns
from ..masking import apply
from ..masking.history import RecordPairing
from ..masking.results import Masking, Release, labels_of
from ..schema import MISSING, Column
from ..table import Table, to_arrow
from .row_pairs import ReleaseRows, can_be_weighed, pair_shares

if TYPE_CHECKING:
    from ..attacks import BayesIntruder

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

EARLIER = "{} (earlier)"  # a column of the earlier release beside those of this one
MOST_PATTERNS = 64  # of columns that agree: the rows of records with a rarer one are taken to be paired


@dataclass(frozen=True)
class Joined:
    """The rows of two releases as one masking, the columns that the earlier one adds, and what could not be joined.

    `alike` numbers the classes of records whose rows look alike in what both releases show, `patterns` what that is
    for each record (-1: rows that are taken to be paired); `records` are their numbers in the truth. Where noise was
    added to some columns, `one_draw` is a masking in which these have the earlier draw alone, and `redrawn` marks the
    records that have two; `told_once` has the earlier draw alone wherever noise was added to it.
    """

    masking: Masking
    fields: tuple[str, ...]
    clear: tuple[str, ...]
    alike: Integers
    patterns: Integers
    records: Integers
    untried: tuple[str, ...] = ()
    one_draw: Masking | None = None
    redrawn: Bools | None = None
    told_once: Masking | None = None

    @property
    def paired(self) -> Floats:
        """The chance that two rows of a record are put together by who picks one of the alike rows blindly."""
        return np.asarray(1 / np.bincount(self.alike)[self.alike], dtype=np.float64)

    def added(self) -> tuple[str, ...]:
        """Return the names of the earlier columns that tell more."""
        return tuple(name.removesuffix(EARLIER.format("")) for name in (*self.fields, *self.clear))


def joined_releases(masking: Masking, earlier: Masking, not_known: Collection[str] = ()) -> Joined:
    """Put what an earlier release tells beyond this one beside it, for the records that both have."""
    rows, where = _both_released(masking, earlier)
    truth, shown = masking.truth.take(rows), _released_rows(masking, rows)
    releases, untried = _releases(masking, earlier)
    if not _tells_more(masking, earlier, rows, where, not_known):
        releases, untried = [], ()
    card: NoiseCard = replace(masking.card, swapped=None, subsampled=None, records=len(rows))
    alike = patterns = np.zeros(len(rows), np.int64)
    sides, fields, clear = (truth, shown), list[str](), list[str]()
    nested, redrawn = dict[str, Bools](), np.zeros(len(rows), bool)
    for number, past in enumerate(releases):
        for group in _groups(past, not_known):
            cells = [_Cell.of(name, masking, past, rows, where) for name in group]
            names = [_free_name(name, sides[0]) for name in group]
            if not any(cell.tells.any() for cell in cells):
                continue
            law = past.card.law_of(group[0])
            if law is not None and not law.has_density:
                untried += (f"{', '.join(group)}: {law.form} has no density",)
                continue
            for cell, name in zip(cells, names, strict=True):
                sides = _with_cells(sides, cell, name)
                if cell.repeats.any() and card.law_of(cell.name) is not None:
                    nested[cell.name] = nested.get(cell.name, np.zeros(len(rows), bool)) | cell.repeats
                    redrawn |= cell.tells & ~cell.repeats
                (fields if cell.name in past.card.masked else clear).append(name)
            if law is not None:
                own = _rename_columns(_of_group(law, group), dict(zip(group, names, strict=True)))
                card = replace(card, laws=(*card.laws, own))
        if number == 0:
            alike, patterns = _alike_rows(masking, past, rows, where)
    order = np.arange(len(rows))
    release = Release(sides[1], card)
    whole = Masking(sides[0], sides[1], card, key=masking.key, given=(release, order))
    joined = Joined(whole, tuple(fields), tuple(clear), alike, patterns, rows, tuple(untried))
    if not nested:
        return joined
    single = _without_cells(whole, dict.fromkeys(nested, np.ones(len(rows), bool)))
    if not redrawn.any():
        return replace(joined, masking=single)
    return replace(joined, one_draw=single, redrawn=redrawn, told_once=_without_cells(whole, nested))


def _without_cells(joined: Masking, cells: Mapping[str, Bools]) -> Masking:
    """Close cells of some columns on both sides: they tell nothing beside the earlier ones."""
    sides = joined.truth, joined.masked
    for name, closed in cells.items():
        sides = _close_cells(sides, name, closed)
    release = Release(sides[1], joined.card)
    return replace(joined, truth=sides[0], masked=sides[1], given=(release, joined.order))


def joined_risk(plan: BayesIntruder, joined: Joined, base: Risk) -> Risk:
    """Let who knows the law attack the joined rows, pair by pair where several rows look alike."""
    risk, number = _joined_attack(plan, joined, joined.masking, base)
    found = np.asarray(risk.table["expected_correct"]).copy()
    if joined.one_draw is not None and joined.redrawn is not None:
        single, other = _joined_attack(plan, joined, joined.one_draw, base)
        shares = np.full(len(joined.records), np.nan)
        shares[other] = np.asarray(single.table["expected_correct"])
        found = np.where(joined.redrawn[number], found, shares[number])
    for pattern in np.unique(joined.patterns):
        records = np.flatnonzero(joined.patterns == pattern)
        if can_be_weighed(joined.alike[records]):
            shares = np.full(len(joined.records), np.nan)
            shares[records] = pair_shares(
                *_sides(plan, joined, base), joined.alike[records], records
            ).larger()
            found = np.where(np.isnan(shares[number]), found, shares[number])
    at = risk.table.schema.get_field_index("expected_correct")
    table = risk.table.set_column(at, "expected_correct", from_numpy(found))
    return replace(risk, table=table, expected_correct=float(found.sum()), correct=round(float(found.sum())))


def _sides(plan: BayesIntruder, joined: Joined, base: Risk) -> tuple[ReleaseRows, ReleaseRows]:
    """Return what the earlier release adds, and what this one tells."""
    whole, released = joined.masking, joined.masking.release.table
    earlier, fields = {*joined.fields, *joined.clear}, (*base.fields, *joined.fields)
    laws = laws_on(whole.card, fields)
    clear = {name for name in fields if whole.card.law_of(name) is None}
    clear |= {*plan.match_columns(released.schema), *joined.clear} & set(released.names)
    first, second = (
        ReleaseRows(
            [law for law in laws if (law.columns[0] in earlier) == is_earlier],
            sorted(name for name in clear if (name in earlier) == is_earlier),
            whole.truth,
            released,
        )
        for is_earlier in (True, False)
    )
    return first, second


def _joined_attack(
    plan: BayesIntruder, joined: Joined, masking: Masking, base: Risk
) -> tuple[Risk, Integers]:
    """Attack joined rows by all columns of both releases; return also the numbers of the targets."""
    import pyarrow.compute as pc

    blocks = (*plan.match_columns(masking.release.table.schema), *joined.clear)
    known = tuple(name for name in dict.fromkeys(blocks) if name in masking.release.table.schema)
    own = replace(plan, fields=(*base.fields, *joined.fields), match_blocks=known)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        risk = attack_by(own, masking)[0]
    labels = labels_of(masking.truth, np.arange(len(masking.truth)))
    number = pc.index_in(risk.table["target_id"].combine_chunks(), value_set=labels)
    return risk, np.asarray(number, dtype=np.int64)


def earlier_rate(plan: BayesIntruder, earlier: Masking, not_known: Collection[str] = ()) -> float:
    """Return what the intruder finds in the earlier release alone, by all columns that somebody may know."""
    names = [name for group in _groups(earlier, not_known) for name in group]
    masked = tuple(name for name in names if name in earlier.card.masked)
    own = replace(plan, fields=masked, match_blocks=tuple(name for name in names if name not in masked))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return attack_by(own, earlier)[0].rate


def _both_released(masking: Masking, earlier: Masking) -> tuple[Integers, Integers]:
    """Return the records of this truth that both releases have, and where they stand in the earlier truth."""
    pairing = RecordPairing.of(earlier.truth, masking.truth)
    before = np.zeros(len(earlier.truth), bool)
    before[earlier.order] = True
    now = np.zeros(len(masking.truth), bool)
    now[masking.order] = True
    rows = np.flatnonzero(pairing.known & now & before[pairing.where])
    return rows, pairing.where[rows]


def _released_rows(masking: Masking, rows: Integers) -> Table:
    """Return what leaves of some records, in their order, as it was before any exchange."""
    released = masking.release.table
    if masking.exchange is not None:
        names = [name for name in released.names if name in masking.unswapped.schema]
        return masking.unswapped.select(names).take(rows)
    place = np.full(len(masking.truth), -1, np.int64)
    place[masking.order] = np.arange(len(masking.order))
    return released.take(place[rows])


def _tells_more(
    masking: Masking, earlier: Masking, rows: Integers, where: Integers, not_known: Collection[str]
) -> bool:
    """Whether this release shows what the earlier one does not: further columns, or values that changed.

    One that only adds noise tells nothing beside it, however much more the earlier one told.
    """
    for column in masking.release.table.schema.columns:
        if not column.may_be_known or column.name in not_known:
            continue
        if not _is_compared(column, masking.release.table):
            continue
        if column.name not in earlier.release.table.schema:
            return True
        cell = _Cell.of(column.name, masking, earlier, rows, where)
        if bool((cell.tells & ~cell.repeats).any()):
            return True
    return False


def _releases(masking: Masking, earlier: Masking) -> tuple[list[Masking], tuple[str, ...]]:
    """Return the earlier release, and what those before it showed and it did not, drawn again by its key."""
    from ..calibration.trials import ResolvedTrial

    past, untried = earlier.past, tuple[str, ...]()
    found = [earlier]
    gone = [law for law in past.card.laws if not {*law.columns} & {*earlier.card.columns}]
    here = [law for law in gone if all(name in earlier.truth.schema for name in law.columns)]
    untried += tuple(
        f"{', '.join(law.columns)}: left by an earlier release, and not in the file any more"
        for law in gone
        if law not in here
    )
    clear = [
        name for name in past.clear if name not in earlier.masked.schema or earlier.masked.schema[name].drop
    ]
    clear = [name for name in clear if name not in masking.release.table.schema]
    untried += tuple(
        f"{name}: left in clear before, and not in the file any more"
        for name in clear
        if name not in earlier.truth.schema
    )
    if here and earlier.key is not None:
        card = NoiseCard(laws=tuple(here), records=len(earlier.truth))
        try:
            found.append(
                apply(ResolvedTrial(card), _with_leaving(earlier.truth, card.columns), key=earlier.key)
            )
        except MaskwellError:
            untried += (f"{', '.join(card.columns)}: left before, and cannot be drawn again",)
    shown = [name for name in clear if name in earlier.truth.schema]
    if shown:
        open_table = _with_leaving(earlier.truth, shown)
        bare = NoiseCard(records=len(open_table))
        everybody = np.arange(len(open_table))
        only = Release(open_table.select(shown), bare)
        found.append(Masking(earlier.truth, open_table, bare, given=(only, everybody)))
    return found, untried


def _with_leaving(table: Table, names: Collection[str]) -> Table:
    """Return a table in which some columns leave and all others but the id stay inside."""
    id_column = table.schema.id_column
    columns = {
        one.name: replace(one, drop=one.name not in names and one.name != id_column)
        for one in table.schema.columns
    }
    return replace(table, schema=table.schema.changed(columns))


def _groups(past: Masking, not_known: Collection[str]) -> Iterator[tuple[str, ...]]:
    """Return the released columns that an intruder uses, those under one law together.

    Columns with noise all are, as in the attack on one release; of those in clear what somebody outside may know.
    """
    schema = past.release.table.schema
    totals = {total for total, _ in past.card.recomputed}

    def counts(column: Column) -> bool:
        if column.name in totals or column.drop or column.roles & {"id", "group"}:
            return False
        if not _is_compared(column, past.release.table):
            return False
        return column.name in past.card.masked or (column.may_be_known and column.name not in not_known)

    left = [one.name for one in schema.columns if counts(one)]
    for law in past.card.laws:
        if group := tuple(name for name in law.columns if name in left):
            yield group
    spoken = {name for law in past.card.laws for name in law.columns}
    yield from ((name,) for name in left if name not in spoken)


def _of_group(law: Law, group: tuple[str, ...]) -> Law:
    """Return the law of some of its columns alone; what was not released is not compared."""
    if group == tuple(law.columns):
        return law
    whole: Law = combined_of(law)
    return cast(Law, of_columns(whole, [whole.columns.index(name) for name in group]))


@dataclass(frozen=True)
class _Cell:
    """One column of an earlier release: its cells, and where they tell what this release does not.

    `repeats` are cells of this release that tell nothing beside the earlier ones: the same value with more noise.
    """

    name: str
    columns: tuple[Column, Column]
    values: tuple[Floats, Floats]
    status: tuple[Any, Any]
    tells: Bools
    repeats: Bools

    @classmethod
    def of(cls, name: str, masking: Masking, past: Masking, rows: Integers, where: Integers) -> _Cell:
        before, now = (past.truth, past.unswapped), (masking.truth, masking.unswapped)
        is_released = name in masking.release.table.schema
        columns = (past.truth.schema[name], past.masked.schema[name])
        columns, every = _common_codes(name, columns, (*before, *(now if is_released else ())))
        values = tuple(one[where] for one in every[:2])
        status = tuple(table.status(name)[where] for table in before)
        tells, repeats = np.ones(len(rows), bool), np.zeros(len(rows), bool)
        if is_released:
            same = [
                _same(own[rows], table.status(name)[rows], value, closed)
                for own, table, value, closed in zip(every[2:], now, values, status, strict=True)
            ]
            is_masked = name in masking.card.masked
            tells = ~same[1] if is_masked else ~same[0]
            repeats = same[0] & ~same[1] & is_masked & _same_draws(name, masking, past, rows, where)
        return cls(name, columns, (values[0], values[1]), (status[0], status[1]), tells, repeats)


def _is_compared(column: Column, table: Table) -> bool:
    """Whether a column's cells are held against others: numbers, categories, and texts whose values repeat."""
    return column.is_number or table.has_classes(column.name)


def _common_codes(
    name: str, columns: tuple[Column, Column], tables: Sequence[Table]
) -> tuple[tuple[Column, Column], list[Floats]]:
    """Return a column's values in some tables; of a text its codes as a category of all of them."""
    if all(table.schema[name].kind != "text" for table in tables):
        return columns, [table.floats(name) for table in tables]
    import pyarrow as pa

    arrays = [table.array(name).cast(pa.string()) for table in tables]
    texts = sorted(map(str, pa.concat_arrays(arrays).unique().drop_null().to_pylist()))
    whole = replace(columns[0], kind="category", categories=tuple(texts))
    coded = [replace(table, schema=table.schema.changed({name: whole})).floats(name) for table in tables]
    return (whole, whole), coded


def _same_draws(name: str, masking: Masking, past: Masking, rows: Integers, where: Integers) -> Bools:
    """Return where the noise of a cell goes on from the earlier one: other draws have nothing in common with it."""
    now, before = (
        revisions.get(name, np.zeros((len(table), 2), np.uint64))[at]
        for revisions, table, at in (
            (masking.revisions, masking.truth, rows),
            (past.revisions, past.truth, where),
        )
    )
    return np.asarray((now == before).all(axis=1))


def _same(values: Floats, status: Any, other: Floats, closed: Any) -> Bools:
    return np.asarray((status == closed) & ((values == other) | (np.isnan(values) & np.isnan(other))))


def _with_cells(sides: tuple[Table, Table], cell: _Cell, name: str) -> tuple[Table, Table]:
    """Put a column of the earlier release beside the present ones, missing where it tells nothing more."""
    roles = frozenset({"key"})
    out = []
    for table, column, values, status in zip(sides, cell.columns, cell.values, cell.status, strict=True):
        closed = np.where(cell.tells, status, MISSING).astype(np.uint8)
        out.append(_append_column(table, replace(column, name=name, roles=roles, drop=False), values, closed))
    return out[0], out[1]


def _append_column(table: Table, column: Column, values: Floats, status: npt.NDArray[np.uint8]) -> Table:
    data = table.data.append_column(
        column.name, to_arrow(column, np.where(status > 0, np.nan, values), status)
    )
    closed = {**table.closed, column.name: status} if status.any() else table.closed
    schema = replace(table.schema, columns=(*table.schema.columns, column))
    return replace(table, schema=schema, data=data, closed=closed)


def _close_cells(sides: tuple[Table, Table], name: str, closed: Bools) -> tuple[Table, Table]:
    known, shown = (
        table.with_columns(
            {
                name: (
                    table.schema[name],
                    np.where(closed, np.nan, table.floats(name)),
                    np.where(closed, MISSING, table.status(name)).astype(np.uint8),
                )
            }
        )
        for table in sides
    )
    return known, shown


def _free_name(name: str, table: Table) -> str:
    found = EARLIER.format(name)
    while found in table.schema:
        found = EARLIER.format(found)
    return found


def _rename_columns(law: Any, names: dict[str, str]) -> Any:
    """Return a law that speaks of columns by other names."""
    from ..laws import law_from_dict

    def changed(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: changed(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [names.get(one, one) if key == "columns" else changed(one) for one in value]
        return value

    return law_from_dict(changed(law.to_dict()))


def _alike_rows(
    masking: Masking, earlier: Masking, rows: Integers, where: Integers
) -> tuple[Integers, Integers]:
    """Number the records whose rows look alike in what both releases show of them, and what that is for each.

    A record with noise that was added between the releases, or with a rare pattern of columns, is in a class alone.
    """
    now, before = masking.release.table, earlier.release.table
    both = [
        name
        for name in now.names
        if name in before.schema
        and not now.schema[name].roles & {"id", "group"}
        and _is_compared(now.schema[name], now)
    ]
    agrees, is_nested = np.zeros((len(rows), len(both)), bool), np.zeros(len(rows), bool)
    shown = np.zeros((len(rows), len(both)), np.int64)
    for j, name in enumerate(both):
        cell = _Cell.of(name, masking, earlier, rows, where)
        values, status = masking.unswapped.class_codes(name)[rows], masking.unswapped.status(name)[rows]
        agrees[:, j] = _same(values, status, cell.values[1], cell.status[1])
        is_nested |= cell.repeats & (name in earlier.card.masked)
        looks = np.column_stack([np.nan_to_num(values, nan=0.0), status.astype(np.float64)])
        shown[:, j] = np.unique(looks, axis=0, return_inverse=True)[1].ravel()
    patterns, which, count = np.unique(agrees, axis=0, return_inverse=True, return_counts=True)
    which = which.ravel()
    rare = np.ones(len(patterns), bool)
    rare[np.argsort(-count, kind="stable")[:MOST_PATTERNS]] = False
    alone = np.where(is_nested | rare[which], 1 + np.arange(len(rows)), 0)
    looks = np.column_stack([alone, which, np.where(agrees, shown, -1)])
    _, alike = np.unique(looks, axis=0, return_inverse=True)
    return alike.ravel(), np.where(alone > 0, -1, which)
