"""What a steward should know about a linkage before believing its figures."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from ..errors import MaskwellWarning
from .agreement import CLOSED, Compared, Exact
from .arranging import Arranged
from .contract import Ints
from .latent import pattern_bits

OTHER_UNITS = 8.0  # typical sizes that differ by this factor are hardly in one unit


def remarks(compared: Compared, arranged: Arranged, counts: Ints) -> list[str]:
    """Return one sentence for each thing that makes fields or blocks say less than they seem to."""
    return [*_on_blocks(arranged), *_on_agreement(compared.fields, counts), *_on_values(compared)]


def _on_blocks(arranged: Arranged) -> list[str]:
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


def _on_values(compared: Compared) -> list[str]:
    said = []
    for f, (name, rule) in enumerate(zip(compared.fields, compared.rules, strict=True)):
        sides = {"intruder's records": compared.known[f], "release": compared.released[f]}
        empty = [side for side, values in sides.items() if not (values < CLOSED).any()]
        if empty:
            said.append(f"{name} has no open value in the {' and the '.join(empty)}")
        elif not isinstance(rule, Exact):
            said += _other_units(name, *(_typical(values) for values in sides.values()))
    return said


def _typical(values: np.typing.NDArray[np.float64]) -> float:
    sizes = np.abs(values[values < CLOSED])
    sizes = sizes[sizes > 0]
    return float(np.median(sizes)) if len(sizes) else 0.0


def _other_units(name: str, ours: float, theirs: float) -> list[str]:
    """Ask about units where the typical sizes of the two sides are far apart."""
    if not ours or not theirs or 1 / OTHER_UNITS < ours / theirs < OTHER_UNITS:
        return []
    factor = f"{ours / theirs:,.4g} times" if ours > theirs else f"1/{theirs / ours:,.4g} of"
    text = (
        f"the typical {name} of the intruder's records is {factor} that of the release: is it in other units?"
    )
    warnings.warn(text, MaskwellWarning, stacklevel=2)
    return [text]
