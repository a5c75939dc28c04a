"""Which columns the Bayesian intruder compares, and what he cannot compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...card import NoiseCard
from ...errors import BadInput, NoLaw, raise_all
from ...masking import Release
from ...notes import Note
from ...schema import BOTTOM_CODED, OPEN, TOP_CODED
from ...table import Table
from ..agreement import is_comparable
from ..blocks import check_fields
from ..candidate_scores import check_fields_named
from ..protocol import IntruderKnowledge


def compared_fields(
    given: tuple[str, ...] | None, blocks: Sequence[str], known: IntruderKnowledge, release: Release
) -> tuple[tuple[str, ...], list[Note]]:
    """Return the fields and what to say of them, refusing what has no law or was made anew in the release."""
    card, targets, released = release.card, known.targets, release.table
    _check_card(card, released)
    notes: list[Note] = []
    fields = given
    if fields is None:
        clear = [name for name in _in_clear(card, released) if name not in blocks]
        left = [n for n in clear if n in targets.schema and not _comparable(targets, released, n)]
        notes = [Note("attacks.released_as_groups", {"column": name}) for name in left]
        fields = (*card.columns, *(name for name in clear if name not in left))
    check_fields_named(fields, "name columns with a law in fields")
    check_fields(fields, targets, released)
    known = replace(known, targets=recode_as_truth(targets, known.population, fields))
    raise_all(_problems(fields, known, release), BadInput)
    return fields, notes


def recode_as_truth(targets: Table, truth: Table, fields: Sequence[str]) -> Table:
    """Return the intruder's records with amounts that he collected himself coded as those of the truth are."""
    changed = {}
    for name in fields:
        ours, true = targets.schema[name], truth.schema[name]
        codes = [(c.top, c.bottom) for c in (ours, true)]
        if not (ours.is_number and true.is_number) or codes[0] == codes[1] or codes[0] != (None, None):
            continue
        values, status = targets.floats(name).copy(), targets.status(name).copy()
        for limit, code, sign in ((true.top, TOP_CODED, 1.0), (true.bottom, BOTTOM_CODED, -1.0)):
            if limit is not None:
                status[(status == OPEN) & (sign * values >= sign * float(limit))] = code
        values[status != OPEN] = np.nan
        changed[name] = (replace(ours, top=true.top, bottom=true.bottom), values, status)
    return targets.with_columns(changed) if changed else targets


def _check_card(card: NoiseCard, released: Table) -> None:
    """Refuse a release without a law, and a card that cannot be this release's."""
    if not card.laws:
        raise NoLaw(
            "the release has no noise law, which this intruder works by: give its card, or take the "
            "nearest-record intruder"
        )
    if card.records is not None and card.records != len(released):
        raise BadInput(
            f"the card speaks of {card.records:,} records and the release has {len(released):,}: "
            "give the card of this release"
        )


def _in_clear(card: NoiseCard, released: Table) -> list[str]:
    """Return the key columns that left as they were."""
    made = {*card.columns, *(total for total, _ in card.recomputed)}
    keys = [column for column in released.schema.columns if "key" in column.roles]
    return [c.name for c in keys if c.name not in made and not c.roles & {"id", "group"}]


def _comparable(known: Table, released: Table, name: str) -> bool:
    return is_comparable(known.schema[name], released.schema[name])


def _problems(fields: Sequence[str], known: IntruderKnowledge, release: Release) -> list[str]:
    """Say which fields cannot be compared by a law or by equality."""
    sums = {total for total, _ in release.card.recomputed}
    found = [f"column {n!r} is a sum of others in the release: name its parts" for n in fields if n in sums]
    for name in fields:
        ours, true = known.targets.schema[name], known.population.schema[name]
        if release.table.schema[name].roles & {"id", "group"}:
            found.append(f"column {name!r} is numbered anew in the release: leave it out of fields")
        shapes = [(c.is_number or c.kind, c.categories, c.missing, c.top, c.bottom) for c in (ours, true)]
        if shapes[0] != shapes[1]:
            found.append(
                f"the intruder's column {name!r} is described otherwise than the truth's: give his file its schema"
            )
    return found
