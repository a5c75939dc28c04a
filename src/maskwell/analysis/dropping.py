"""Leave records out in which a column of the model is missing or coded, as ordinary fits do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..errors import BadPlan
from ..masking import Release
from ..schema import BOTTOM_CODED, TOP_CODED, Column
from ..table import Table
from .noise.reading import law_of


def complete(release: Release, columns: Sequence[str]) -> tuple[Release, tuple[str, ...]]:
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
    kept = table.take(np.flatnonzero(open_in_all))
    schema = table.schema.changed({name: _without_ends(table, name) for name in columns})
    said = f"{count:,} records are left out, because a value in them is missing or coded"
    left = replace(release, table=replace(kept, schema=schema))
    return left, (said, *_chosen_by_noise(release, columns))


def _without_ends(table: Table, name: str) -> Column:
    """Return a column without the codes that some of its records have."""
    column, status = table.schema[name], table.status(name)
    bottom = None if (status == BOTTOM_CODED).any() else column.bottom
    top = None if (status == TOP_CODED).any() else column.top
    return replace(column, bottom=bottom, top=top)


def _chosen_by_noise(release: Release, columns: Sequence[str]) -> tuple[str, ...]:
    """Say where values were coded after noise was added, so that noise decided which records are left out."""
    named = []
    for name in columns:
        law = law_of(release.card, name)
        if not hasattr(law, "outlets"):
            continue
        ends = zip(law.outlets[law.columns.index(name)].codes, (BOTTOM_CODED, TOP_CODED), strict=True)
        status = release.table.status(name)
        if any(end is not None and bool((status == code).any()) for end, code in ends):
            named.append(repr(name))
    if not named:
        return ()
    return (
        f"noise decided which records are coded in {', '.join(named)}, so that leaving them out selects by noise and "
        "biases the answer; missing='draw' takes them in",
    )
