"""Who holds the earlier releases of a growing file sees which rows are new, and so knows when each record entered.

A row whose noise goes on from an earlier one stands in both files, one that stands in none of them entered since. So
the earlier releases in which a record was are a class that leaves in clear, as a year of entry would: the intruder who
knows when his target entered (a diagnosis, a first interview) looks among those of that class alone. Rows are taken to
be told apart where an amount that both releases have keeps its draw for most records. Called by `verdict`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..attacks.attack_run import attack_by
from ..attacks.risk import Risk
from ..errors import MaskwellWarning
from ..masking.results import Masking, Release
from ..schema import OPEN, Column
from ..table import Table, to_arrow
from .joined_cells import Cell, Integers, places_in

if TYPE_CHECKING:
    from ..attacks import BayesIntruder

ENTRY = "time of entry"
MOSTLY = 0.5  # of the records of both releases: so many keep the draw of an amount


def entry_risk(plan: BayesIntruder, masking: Masking, releases: Sequence[Masking]) -> Risk | None:
    """Return what the intruder finds who knows in which releases each record was; nothing where that tells nothing."""
    rows = np.arange(len(masking.truth))
    seen = [places_in(past, masking.truth, rows) >= 0 for past in releases if _is_visible(masking, past)]
    if not seen or all(one.all() or not one.any() for one in seen):
        return None
    _, codes = np.unique(np.column_stack(seen), axis=0, return_inverse=True)
    entered = _with_entry(masking, codes.ravel().astype(np.int64))
    columns = plan.match_columns(masking.release.table.schema)
    name = entered.truth.schema.names[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return attack_by(replace(plan, match_blocks=(*columns, name)), entered)[0]


def _is_visible(masking: Masking, past: Masking) -> bool:
    """Whether rows of both releases are told by an amount whose noise goes on for most records."""
    rows = np.arange(len(masking.truth))
    where = places_in(past, masking.truth, rows)
    rows, where = rows[where >= 0], where[where >= 0]
    if not len(rows):
        return False
    both = [
        one.name
        for one in masking.release.table.schema.columns
        if one.is_number and one.name in masking.card.masked and one.name in past.card.masked
    ]
    cells = (Cell.of(name, masking, past, rows, where) for name in both)
    return any(float((~cell.tells | cell.repeats).mean()) >= MOSTLY for cell in cells)


def _with_entry(masking: Masking, codes: Integers) -> Masking:
    """Put the class of entry beside the other columns, in clear."""
    name = ENTRY
    while name in masking.truth.schema:
        name = f"{name}'"
    labels = tuple(str(one) for one in range(int(codes.max()) + 1))
    column = Column(name, "category", frozenset({"block"}), categories=labels)
    truth, masked = (_with_class(table, column, codes) for table in (masking.truth, masking.masked))
    released = _with_class(masking.release.table, column, codes[masking.order])
    given = Release(released, masking.release.card), masking.order
    return replace(masking, truth=truth, masked=masked, given=given)


def _with_class(table: Table, column: Column, codes: Integers) -> Table:
    array = to_arrow(column, codes.astype(np.float64), np.full(len(codes), OPEN, np.uint8))
    schema = replace(table.schema, columns=(*table.schema.columns, column))
    return replace(table, schema=schema, data=table.data.append_column(column.name, array))
