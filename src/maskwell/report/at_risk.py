"""Who could still be found: the share of the targets found, by the size of their block and by decile.

Everything here is counts of targets; no record and no id comes out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadPlan
from ..table import Floats

if TYPE_CHECKING:
    from ..attacks.risk import Risk
    from ..masking import Masking

EDGES = (1, 2, 3, 6, 11, 21, 51, 101, 501, 1001)  # where the classes of block sizes begin
FEWEST = 5  # targets, below which a share is left out: it would speak of single records
MOST_AMOUNTS = 12
UNKNOWN = "none"  # the class of targets that have no open value to be ranked by


@dataclass(frozen=True, slots=True)
class Share:
    """How many targets there are in a class, and the share of them that is found, ties shared."""

    label: str
    targets: int
    found: float

    @property
    def rate(self) -> float | None:
        """The share that is found, nothing where too few targets make it."""
        return self.found / self.targets if self.targets >= FEWEST else None


def by_block(risk: Risk) -> list[Share]:
    """Return the shares by how many records the intruder had to choose among."""
    sizes = _column(risk, "candidates").astype(np.int64)
    found = _correct_link_chances(risk)
    shares = []
    for start, after in zip(EDGES, (*EDGES[1:], None), strict=True):
        here = (sizes >= start) & (sizes < after if after is not None else True)
        if here.any():
            shares.append(Share(_span(start, after), int(here.sum()), float(found[here].sum())))
    return shares


def by_outlyingness(risk: Risk, masking: Masking) -> list[Share]:
    """Return the shares by decile of how far out a target lies; nothing where that is not known."""
    from ..calibration.outlier_share import outlyingness_of

    try:
        return _deciles(outlyingness_of(risk, masking.truth), _correct_link_chances(risk))
    except BadPlan:
        return []


def by_amount(risk: Risk, masking: Masking) -> dict[str, list[Share]]:
    """Return for each masked amount the shares by decile of its true value among the targets."""
    if not risk.attack.to_masked:
        return {}
    import pyarrow.compute as pc

    from ..arrow_buffers import to_numpy
    from ..masking.results import labels_of

    truth, found = masking.truth, _correct_link_chances(risk)
    ids = risk.table["target_id"].combine_chunks()
    places: Any = pc.index_in(ids, value_set=labels_of(truth).cast(ids.type))
    at = np.asarray(to_numpy(places.fill_null(-1)))
    if (at < 0).any():
        return {}
    return {name: shares for name in _amounts(masking) if (shares := _deciles(truth.floats(name)[at], found))}


def _amounts(masking: Masking) -> Sequence[str]:
    card, schema = masking.card, masking.truth.schema
    touched = {*card.masked, *(total for total, _ in card.recomputed)}
    return [name for name in schema.names if name in touched and schema[name].is_number][:MOST_AMOUNTS]


def _deciles(values: Floats, found: Floats) -> list[Share]:
    """Cut the targets into tenths by rank; equal values share a tenth, those without a value have their own class."""
    known = ~np.isnan(values)
    count = int(known.sum())
    if count < 10 * FEWEST:
        return []
    _, member, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    tenth = np.minimum((10 * (middle - 0.5) / count).astype(np.int64), 9)[member.ravel()]
    hits = found[known]
    shares = [Share(str(t + 1), int((tenth == t).sum()), float(hits[tenth == t].sum())) for t in range(10)]
    left = len(values) - count
    return [*shares, Share(UNKNOWN, left, float(found[~known].sum()))] if left else shares


def _correct_link_chances(risk: Risk) -> Floats:
    """Return for each link the chance that it is claimed and right."""
    return _column(risk, "expected_correct") * _column(risk, "claimed")


def _column(risk: Risk, name: str) -> Floats:
    from ..arrow_buffers import to_numpy

    return np.asarray(to_numpy(risk.table[name].combine_chunks()), dtype=np.float64)


def _span(start: int, after: int | None) -> str:
    if after is None:
        return f"{start:,} or more"
    return f"{start:,}" if after == start + 1 else f"{start:,}–{after - 1:,}"
