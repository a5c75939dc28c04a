"""Cells of an earlier release beside those of this one: where they tell more, and which say the same twice.

A cell left with a draw of noise that its record's tag names. Two cells of one value and one draw differ by what was
added to the later one, so the earlier one alone counts; another value, or another draw, tells more. Called by
`joined_releases`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..keys import Words
from ..masking.history import RecordPairing
from ..masking.results import Masking, Release
from ..schema import MISSING, Column
from ..table import Table, to_arrow

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def without_cells(joined: Masking, cells: Mapping[str, Bools]) -> Masking:
    """Close cells of some columns on both sides: they tell nothing beside the earlier ones."""
    sides = joined.truth, joined.masked
    for name, closed in cells.items():
        sides = _close_cells(sides, name, closed)
    release = Release(sides[1], joined.card)
    return replace(joined, truth=sides[0], masked=sides[1], given=(release, joined.order))


def texts_as_categories(releases: Sequence[Masking]) -> list[Masking]:
    """Return releases with texts, but for ids, as categories of the same labels: rows are paired by them too."""
    schemas = [one.release.table.schema for one in releases]
    names = {c.name for one in schemas for c in one.columns if c.kind == "text" and "id" not in c.roles}
    for name in sorted(names):
        tables = [one.truth for one in releases if name in one.truth.schema]
        if any(one.schema[name].kind == "text" for one in tables):
            labels = sorted({label for one in tables for label in _labels(one, name)})
            releases = [_with_category(one, name, tuple(labels)) for one in releases]
    return list(releases)


def _labels(table: Table, name: str) -> Iterator[str]:
    import pyarrow as pa

    return (one for one in table.array(name).cast(pa.string()).unique().to_pylist() if one is not None)


def _with_category(masking: Masking, name: str, labels: tuple[str, ...]) -> Masking:
    def changed(table: Table) -> Table:
        import pyarrow as pa

        if name not in table.schema:
            return table
        column = replace(table.schema[name], kind="category", categories=labels)
        data = table.data.set_column(
            table.data.schema.get_field_index(name), name, table.array(name).cast(pa.string())
        )
        return replace(table, schema=table.schema.changed({name: column}), data=data)

    release = Release(changed(masking.release.table), masking.release.card)
    return replace(
        masking,
        truth=changed(masking.truth),
        masked=changed(masking.masked),
        given=(release, masking.order),
    )


@dataclass(frozen=True)
class Cell:
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
    def of(cls, name: str, masking: Masking, past: Masking, rows: Integers, where: Integers) -> Cell:
        """Compare the cells of a column of an earlier release with this one's; places below 0 are not in it."""
        before = (past.truth, past.unswapped)
        values = tuple(table.floats(name)[where] for table in before)
        status = tuple(table.status(name)[where] for table in before)
        tells, repeats = np.ones(len(rows), bool), np.zeros(len(rows), bool)
        if name in masking.release.table.schema:
            same = [
                same_values(table.floats(name)[rows], table.status(name)[rows], value, closed)
                for table, value, closed in zip(
                    (masking.truth, masking.unswapped), values, status, strict=True
                )
            ]
            is_masked = name in masking.card.masked
            tells = ~same[1] if is_masked else ~same[0]
            repeats = same[0] & ~same[1] & is_masked & _same_draws(name, masking, past, rows, where)
        columns = (past.truth.schema[name], past.masked.schema[name])
        left = where >= 0
        return cls(
            name, columns, (values[0], values[1]), (status[0], status[1]), tells & left, repeats & left
        )

    def untold(self, done: Sequence[Masking], truth: Table, past: Masking, rows: Integers) -> Cell:
        """Return the cell without what releases before this one have told: the same value by the same draw, or more."""
        tells, here = self.tells, places_in(past, truth, rows)
        for other in done:
            there = places_in(other, truth, rows)
            if self.name not in other.release.table.schema:
                continue
            values, status = other.truth.floats(self.name)[there], other.truth.status(self.name)[there]
            told = same_values(self.values[0], self.status[0], values, status) & (there >= 0)
            if self.name in other.card.masked:
                told &= self.name in past.card.masked
                told &= (_tags(self.name, other, there) == _tags(self.name, past, here)).all(axis=1)
            tells = tells & ~told
        return replace(self, tells=tells)


def places_in(past: Masking, truth: Table, rows: Integers) -> Integers:
    """Return where some records stand in the truth of an earlier release, -1 where they are not in it."""
    pairing = RecordPairing.of(past.truth, truth)
    left = np.zeros(len(past.truth), bool)
    left[past.order] = True
    return np.where(pairing.known[rows] & left[pairing.where[rows]], pairing.where[rows], -1)


def _same_draws(name: str, masking: Masking, past: Masking, rows: Integers, where: Integers) -> Bools:
    """Return where the noise of a cell goes on from the earlier one: other draws have nothing in common with it."""
    return np.asarray((_tags(name, masking, rows) == _tags(name, past, where)).all(axis=1))


def _tags(name: str, masking: Masking, rows: Integers) -> Words:
    """Return what the noise of cells is drawn from."""
    return masking.revisions.get(name, np.zeros((len(masking.truth), 2), np.uint64))[rows]


def same_values(values: Floats, status: Any, other: Floats, closed: Any) -> Bools:
    """Return where two columns have the same value, or the same code."""
    return np.asarray((status == closed) & ((values == other) | (np.isnan(values) & np.isnan(other))))


def with_cells(sides: tuple[Table, Table], cell: Cell, name: str) -> tuple[Table, Table]:
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
