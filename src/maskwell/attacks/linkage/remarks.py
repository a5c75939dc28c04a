"""What a steward should know about a linkage before believing its figures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ...errors import MaskwellWarning
from ...table import Floats, Table
from ..agreement import CLOSED, ComparedField
from ..protocol import Ints
from .em import pattern_bits
from .sorted_pairs import BlockSortedRecords

OTHER_UNITS = 8.0  # typical sizes that differ by this factor are hardly in one unit


def remarks(compared: ComparedField, arranged: BlockSortedRecords, counts: Ints) -> list[str]:
    """Return one sentence for each thing that makes fields or blocks say less than they seem to."""
    return [*_on_blocks(arranged), *_on_agreement(compared.fields, counts), *_on_values(compared)]


def _on_blocks(arranged: BlockSortedRecords) -> list[str]:
    said = []
    without = int(np.count_nonzero(arranged.candidates == 0))
    if without:
        said.append(f"{without:,} searching records have no candidate in their block")
    alone = int(np.count_nonzero(arranged.candidates == 1))
    if alone:
        said.append(
            f"{alone:,} searching records have a single candidate in their block: it is linked whatever it holds"
        )
    return said


def _on_agreement(fields: Sequence[str], counts: Ints) -> list[str]:
    pairs = int(counts.sum())
    agree = counts @ pattern_bits(len(fields)) if pairs else np.zeros(len(fields))
    always = [name for name, count in zip(fields, agree, strict=True) if pairs and count == pairs]
    never = [name for name, count in zip(fields, agree, strict=True) if pairs and count == 0]
    said = [f"{name} agrees in every pair, so it tells nobody apart (is it constant?)" for name in always]
    return said + [f"{name} agrees in no pair at all: is it coded alike on both sides?" for name in never]


def _on_values(compared: ComparedField) -> list[str]:
    said = []
    for name, known, released in zip(compared.fields, compared.known, compared.released, strict=True):
        sides = {"intruder's records": known, "release": released}
        empty = [side for side, values in sides.items() if not (values < CLOSED).any()]
        said += [f"{name} has no open value in the {' and the '.join(empty)}"] if empty else []
    return said


def other_units(targets: Table, truth: Table) -> list[str]:
    """Ask about units where the typical size of a column in the target file is far from that in the truth."""
    said = []
    for column in truth.schema.columns:
        name = column.name
        if not column.is_number or name not in targets.schema or not targets.schema[name].is_number:
            continue
        ours, theirs = _typical(targets.floats(name)), _typical(truth.floats(name))
        if ours and theirs and not 1 / OTHER_UNITS < ours / theirs < OTHER_UNITS:
            factor = f"{ours / theirs:,.4g} times" if ours > theirs else f"1/{theirs / ours:,.4g} of"
            said.append(
                f"the typical {name} of the target file is {factor} that of the truth: is it in other units?"
            )
    for text in said:
        warnings.warn(text, MaskwellWarning, stacklevel=4)
    return said


def _typical(values: Floats) -> float:
    sizes = np.abs(values)
    sizes = sizes[sizes > 0]
    return float(np.median(sizes)) if len(sizes) else 0.0
