"""The noise of a release as a sampler needs it: from the laws on the card to arrays and tables."""

from __future__ import annotations

from .arrays import Arrays, NoiseArrays
from .card_arrays import noise_arrays
from .card_columns import check_fit, levels_of, recomputed_totals, state_scale
from .category_tables import tables
from .cells import bounds
from .counts import CountChances, count_chances, is_shared
from .unknown_cells import unknown_cells

__all__ = [
    "Arrays",
    "CountChances",
    "NoiseArrays",
    "bounds",
    "check_fit",
    "count_chances",
    "is_shared",
    "levels_of",
    "noise_arrays",
    "recomputed_totals",
    "state_scale",
    "tables",
    "unknown_cells",
]
