"""Leave records out in which a column of the model is missing or coded, as ordinary fits do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import BadPlan
from ..masking import Release
from ..notes import Note
from ..schema import BOTTOM_CODED, TOP_CODED, Column
from ..table import Table
from .noise.card_columns import law_of


def complete(release: Release, columns: Sequence[str]) -> tuple[Release, tuple[Note, ...]]:
    """Return the records in which all columns are open, and what there is to say of the others.

    The model is then about values that were not coded, as an ordinary fit to the open records of the original is. That
    each of them lies below its code tells nothing more, and to take it for news would bias the answer: the records
    that lie beyond, and would balance it, are gone. So the ends at which records are left out are forgotten.
    """
    table = release.table
    open_in_all = np.asarray(table.is_open(columns).all(axis=1))
    count = int(len(open_in_all) - open_in_all.sum())
    if not count:
        return release, ()
    if count == len(open_in_all):
        raise BadPlan(
            "no record has values in every column of the model: leave a column out, or missing='draw'"
        )
    kept = without_ends(table.take(np.flatnonzero(open_in_all)), table, columns)
    said = Note("analysis.records_left_out", {"count": count})
    return replace(release, table=kept), (said, *_chosen_by_noise(release, columns))


def without_ends(kept: Table, table: Table, columns: Sequence[str]) -> Table:
    """Return some records of a table, its columns without the codes at which others were left out."""
    changed = {name: _without_ends(kept, table, name) for name in columns}
    return replace(kept, schema=kept.schema.changed(changed))


def _without_ends(kept: Table, table: Table, name: str) -> Column:
    column, left, all_ = table.schema[name], kept.status(name), table.status(name)
    gone = [bool((all_ == code).any()) and not (left == code).any() for code in (BOTTOM_CODED, TOP_CODED)]
    return replace(column, bottom=None if gone[0] else column.bottom, top=None if gone[1] else column.top)


def _chosen_by_noise(release: Release, columns: Sequence[str]) -> tuple[Note, ...]:
    """Say where values were coded after noise was added, so that noise decided which records are left out."""
    named = []
    for name in columns:
        law = law_of(release.card, name)
        if law is None or not law.outlets:
            continue
        ends = zip(law.outlets[law.columns.index(name)].codes, (BOTTOM_CODED, TOP_CODED), strict=True)
        status = release.table.status(name)
        if any(end is not None and bool((status == code).any()) for end, code in ends):
            named.append(name)
    return (Note("analysis.coded_by_noise", {"columns": tuple(named)}),) if named else ()
