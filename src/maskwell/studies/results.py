"""What a study gives back: published figures beside ours, as text and as plain data.

Published figures are in the study's `expected.toml` and nowhere else. There a table has a `title`, and where needed a
`source`, a `unit`, the `digits` to print, a `note`, and `compare`, which says when ours agrees with what was published:

- `"band"`: the published figure lies within the band of our replicates;
- `{ points = 3 }`: ours, the mean of the replicates, is at most so far from it, in the table's unit;
- `{ exact = 4 }`: they are the same to so many decimals;
- `"shape"`: the levels are not compared.

`[tables.NAME.cells]` gives each cell its published figure, or `{ published = 5, compare = "band" }` where a cell is
compared in another way. A cell is named `row` or `row | column`; cells that are not listed have nothing published.

From 20 replicates on the band is that of the quantiles 0.05 and 0.95 ("5-95%"). Fewer have no such quantiles: there it
goes from the smallest replicate to the largest ("range"), and one replicate has none.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from textwrap import wrap
from typing import Any

from ..errors import BadPlan

BETWEEN = " | "  # separates the row from the column in the name of a cell
LOW, HIGH = 0.05, 0.95
ENOUGH = 20  # replicates from which on these quantiles lie between the second smallest and the second largest
BAND, RANGE = "5-95%", "range"
BY_RANGE = f"Compared with the range of the replicates: fewer than {ENOUGH} have no 5-95% band."
WIDTH = 110

Comparison = str | Mapping[str, float]
Draws = Mapping[str, Sequence[float]]  # for each cell a figure from every replicate


@dataclass(frozen=True, slots=True)
class TableCell:
    """One figure: published (None: nowhere), ours, its band over replicates, and whether the two agree.

    `is_range`: the replicates were few, so that `low` and `high` are the smallest and the largest of them.
    """

    cell: str
    published: float | None
    ours: float
    low: float | None = None
    high: float | None = None
    within: bool | None = None
    is_range: bool = False

    @property
    def row(self) -> str:
        """The row of the table that the cell stands in."""
        return self.cell.partition(BETWEEN)[0]

    @property
    def column(self) -> str:
        """The column of the table that the cell stands in; none where the table has one only."""
        return self.cell.partition(BETWEEN)[2]

    def to_dict(self) -> dict[str, Any]:
        """Return the cell as plain data."""
        names = ("cell", "published", "ours", "low", "high", "within")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class StudyTable:
    """A table of a study. `note` is what a reader must know about it; `unit` and `digits` are for printing."""

    name: str
    cells: tuple[TableCell, ...]
    note: str = ""
    title: str = ""
    source: str = ""
    unit: str = ""
    digits: int = 1

    def __getitem__(self, cell: str) -> TableCell:
        return next(one for one in self.cells if one.cell == cell)

    @property
    def rows(self) -> tuple[str, ...]:
        """The rows, in order."""
        return tuple(dict.fromkeys(one.row for one in self.cells))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns, in order."""
        return tuple(dict.fromkeys(one.column for one in self.cells))

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain data."""
        return {"name": self.name, "cells": [one.to_dict() for one in self.cells]}

    def lines(self) -> list[str]:
        """Return the table as text: published beside ours, laid out by rows and columns."""
        said = [self.title, *([self.unit] if self.unit else []), *([self.source] if self.source else [])]
        blocks = _side_by_side(_labels(self), [_block(self, column) for column in self.columns])
        note = _wrap_lines(self.note, "  ")
        return [*_wrap_lines(f"table {self.name}: {'; '.join(said)}", ""), *blocks, *note]


@dataclass(frozen=True, slots=True)
class Study:
    """What a run of a study gave."""

    study: str
    tables: tuple[StudyTable, ...]
    notes: tuple[str, ...] = ()
    title: str = ""

    def __getitem__(self, table: str) -> StudyTable:
        return next(one for one in self.tables if one.name == table)

    def __contains__(self, table: str) -> bool:
        return any(one.name == table for one in self.tables)

    def to_dict(self) -> dict[str, Any]:
        """Return the study as plain data; what the tables say of themselves stands among the notes."""
        said = [f"table {one.name}: {text}" for one in self.tables for text in _table_notes(one)]
        return {
            "study": self.study,
            "tables": [one.to_dict() for one in self.tables],
            "notes": [*said, *self.notes],
        }

    def text(self) -> str:
        """Return the study as a page of text."""
        parts = [[self.title or self.study], *(one.lines() for one in self.tables)]
        notes = [line for note in self.notes for line in _wrap_lines(note, "- ")]
        return "\n\n".join("\n".join(part) for part in [*parts, notes] if part)

    def __repr__(self) -> str:
        return self.text()


def _table_notes(table: StudyTable) -> list[str]:
    unit = f"in {table.unit}" if table.unit else ""
    title = "; ".join(part for part in (table.title, unit) if part)
    ends = (
        "low and high are the smallest and the largest replicate" if band_name(table.cells) == RANGE else ""
    )
    return [text for text in (title, table.note, ends) if text]


def band_name(cells: Iterable[TableCell | None]) -> str:
    """Return what the bands of some cells are; nothing where there are none."""
    kinds = {one.is_range for one in cells if one is not None and one.low is not None}
    return RANGE if True in kinds else BAND if kinds else ""


# Text.


def _wrap_lines(text: str, first: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False)


def _labels(table: StudyTable) -> list[str]:
    lines = ["", "", *table.rows] if table.columns != ("",) else ["", *table.rows]
    width = max(map(len, lines))
    return ["  " + line.ljust(width) for line in lines]


def _block(table: StudyTable, column: str) -> list[str]:
    """Return one column of the table as lines: published, ours, the band, and whether they agree."""
    by_row = {one.row: one for one in table.cells if one.column == column}
    cells = [by_row.get(row) for row in table.rows]
    digits = 0 if all(map(_is_count, cells)) else table.digits
    parts = [_figures(name, cells, digits) for name in ("published", "ours")]
    parts += [_bands(cells, digits), _marks(cells)]
    shown = [part for part in parts if any(part[1:])]
    lines = ["  ".join(pieces) for pieces in zip(*map(_right, shown), strict=True)]
    if table.columns == ("",):
        return lines
    width = max(len(column), *map(len, lines))
    return [column.center(width), *(line.rjust(width) for line in lines)]


def _is_count(cell: TableCell | None) -> bool:
    """Return whether a cell holds a whole number that no replicate can change."""
    return cell is None or (cell.low is None and abs(cell.ours) >= 1 and float(cell.ours).is_integer())


def _right(part: Sequence[str]) -> list[str]:
    width = max(map(len, part))
    return [text.rjust(width) for text in part]


def _figures(name: str, cells: Sequence[TableCell | None], digits: int) -> list[str]:
    values = [None if one is None else getattr(one, name) for one in cells]
    written = ["" if v is None else f"{v:,g}" if name == "published" else f"{v:,.{digits}f}" for v in values]
    return [name, *written]


def _bands(cells: Sequence[TableCell | None], digits: int) -> list[str]:
    written = [
        "" if one is None or one.low is None else f"{one.low:,.{digits}f} to {one.high:,.{digits}f}"
        for one in cells
    ]
    return [band_name(cells), *written]


def _marks(cells: Sequence[TableCell | None]) -> list[str]:
    words = {True: "yes", False: "NO", None: ""}
    return ["agree", *(words[None if one is None else one.within] for one in cells)]


def _side_by_side(labels: list[str], blocks: list[list[str]]) -> list[str]:
    """Put blocks beside the labels, as many as fit; the others go below, with the labels again."""
    out: list[str] = []
    lines = labels
    for block in blocks:
        wider = [f"{line}    {more}" for line, more in zip(lines, block, strict=True)]
        if lines is not labels and len(wider[0]) > WIDTH:
            out += [*lines, ""]
            wider = [f"{line}    {more}" for line, more in zip(labels, block, strict=True)]
        lines = wider
    return [line.rstrip() for line in [*out, *lines]]


# What was published.


@dataclass(frozen=True, slots=True)
class ExpectedTable:
    """What was published in one table, and by what ours is compared with it."""

    name: str
    title: str
    source: str = ""
    unit: str = ""
    digits: int = 1
    compare: Comparison = "shape"
    note: str = ""
    cells: Mapping[str, Any] = field(default_factory=dict)

    def published(self, cell: str) -> float | None:
        """Return the published figure of a cell, if there is one."""
        given = self.cells.get(cell)
        return given["published"] if isinstance(given, Mapping) else given

    def comparison(self, cell: str) -> Comparison:
        """Return by what a cell is compared."""
        given = self.cells.get(cell)
        compare: Comparison = (
            given.get("compare", self.compare) if isinstance(given, Mapping) else self.compare
        )
        return compare

    def table(self, draws: Draws, note: str = "") -> StudyTable:
        """Put our figures, one for each replicate of each cell, beside the published ones.

        `note` is what the run has to say, after what expected.toml says about the table.
        """
        absent = [cell for cell in self.cells if cell not in draws]
        if absent:
            raise BadPlan(
                f"table {self.name} of expected.toml names cells that the study has not: {', '.join(absent)}"
            )
        cells = tuple(self._cell(cell, list(map(float, values))) for cell, values in draws.items())
        by_range = any(one.is_range and self._is_by_band(one.cell) for one in cells)
        said = " ".join(text for text in (self.note, note, BY_RANGE if by_range else "") if text)
        return StudyTable(self.name, cells, said, self.title, self.source, self.unit, self.digits)

    def _is_by_band(self, cell: str) -> bool:
        return self.published(cell) is not None and self.comparison(cell) == "band"

    def _cell(self, name: str, values: list[float]) -> TableCell:
        ours = math.fsum(values) / len(values)
        low, high = band(values)
        published = self.published(name)
        within = None if published is None else agree(self.comparison(name), published, ours, low, high)
        return TableCell(name, published, ours, low, high, within, is_range=1 < len(values) < ENOUGH)


@dataclass(frozen=True, slots=True)
class ExpectedStudy:
    """Everything that a study's expected.toml says."""

    paper: str
    tables: Mapping[str, ExpectedTable]

    def __getitem__(self, table: str) -> ExpectedTable:
        return self.tables[table]


@cache
def read_expected(study: str) -> ExpectedStudy:
    """Read what was published, from the study's own folder."""
    text = files(__package__).joinpath(study, "expected.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    tables = {name: ExpectedTable(name, **given) for name, given in data["tables"].items()}
    return ExpectedStudy(data["paper"], tables)


def agree(
    compare: Comparison, published: float, ours: float, low: float | None, high: float | None
) -> bool | None:
    """Return whether ours agrees with what was published; None where that is not asked or cannot be said."""
    if compare == "shape":
        return None
    if compare == "band":
        return None if low is None or high is None else low <= published <= high
    if isinstance(compare, Mapping) and len(compare) == 1:
        (kind, size), apart = next(iter(compare.items())), abs(ours - published)
        if kind == "points":
            return apart <= size
        if kind == "exact":
            return bool(apart <= 0.5 * 10.0**-size * (1 + 1e-9))
    raise BadPlan(f"expected.toml compares by band, points, exact or shape, not by {compare!r}")


def band(values: Sequence[float]) -> tuple[float, float] | tuple[None, None]:
    """Return between which figures replicates lie: 5-95% of them, or all where they are few; one has no band."""
    if len(values) < 2:
        return None, None
    if len(values) < ENOUGH:
        return min(values), max(values)
    return quantile(values, LOW), quantile(values, HIGH)


def quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile, linear between the ordered values."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = min(math.floor(place), len(ordered) - 2)
    return ordered[below] + (place - below) * (ordered[below + 1] - ordered[below])
