"""What a steward should know about a linkage before believing its figures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ...errors import MaskwellWarning
from ...notes import Note
from ...table import Floats, Table
from ..agreement import CLOSED, ComparedField
from ..protocol import Ints
from .em import pattern_bits
from .sorted_pairs import BlockSortedRecords

OTHER_UNITS = 8.0  # typical sizes that differ by this factor are hardly in one unit


def remarks(compared: ComparedField, arranged: BlockSortedRecords, counts: Ints) -> list[Note]:
    """Return one note for each thing that makes fields or blocks say less than they seem to."""
    return [*_on_blocks(arranged), *_on_agreement(compared.fields, counts), *_on_values(compared)]


def _on_blocks(arranged: BlockSortedRecords) -> list[Note]:
    said = []
    without = int(np.count_nonzero(arranged.candidates == 0))
    if without:
        said.append(Note("attacks.no_candidate", {"count": without}))
    alone = int(np.count_nonzero(arranged.candidates == 1))
    if alone:
        said.append(Note("attacks.single_candidate", {"count": alone}))
    return said


def _on_agreement(fields: Sequence[str], counts: Ints) -> list[Note]:
    pairs = int(counts.sum())
    agree = counts @ pattern_bits(len(fields)) if pairs else np.zeros(len(fields))
    always = [name for name, count in zip(fields, agree, strict=True) if pairs and count == pairs]
    never = [name for name, count in zip(fields, agree, strict=True) if pairs and count == 0]
    said = [Note("attacks.agrees_always", {"column": name}) for name in always]
    return said + [Note("attacks.agrees_never", {"column": name}) for name in never]


def _on_values(compared: ComparedField) -> list[Note]:
    said = []
    for name, known, released in zip(compared.fields, compared.known, compared.released, strict=True):
        sides = {"known": known, "released": released}
        empty = tuple(side for side, values in sides.items() if not (values < CLOSED).any())
        said += [Note("attacks.no_open_value", {"column": name, "sides": empty})] if empty else []
    return said


def other_units(targets: Table, truth: Table) -> list[Note]:
    """Ask about units where the typical size of a column in the target file is far from that in the truth."""
    said = []
    for column in truth.schema.columns:
        name = column.name
        if not column.is_number or name not in targets.schema or not targets.schema[name].is_number:
            continue
        ours, theirs = _typical(targets.floats(name)), _typical(truth.floats(name))
        if ours and theirs and not 1 / OTHER_UNITS < ours / theirs < OTHER_UNITS:
            said.append(Note("attacks.other_units", {"column": name, "ratio": ours / theirs}))
    for note in said:
        warnings.warn(str(note), MaskwellWarning, stacklevel=4)
    return said


def _typical(values: Floats) -> float:
    sizes = np.abs(values)
    sizes = sizes[sizes > 0]
    return float(np.median(sizes)) if len(sizes) else 0.0
