"""The published figures, Moore's Tables 1 and 3, and the shares by which closed values are split."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

SIZE = 64_998
TARGETS = 771
LARGEST_TARGET_CELL = 7


@dataclass(frozen=True, slots=True)
class Amount:
    """A field of Table 1, in whole dollars above the bottom code 0.

    The shares are invented: they split those closed values that can hold a code; the rest is at the top code.
    """

    name: str
    description: str
    open_count: int
    top: int
    mean: float
    sd: float
    missing_share: float
    bottom_share: float


AMOUNTS = (
    Amount("INCOME", "annual household income", 35_717, 100_000, 11_369, 13_986, 0.35, 0.40),
    Amount("HOME_VAL", "market value of the home", 31_394, 350_000, 97_698, 67_184, 0.50, 0.05),
    Amount("MORTGAGE", "monthly mortgage payment", 15_908, 1_800, 607, 359, 0.25, 0.65),
    Amount("MAINTAIN", "annual cost of maintenance", 18_374, 9_000, 571, 821, 0.30, 0.65),
    Amount("TAXES", "monthly property taxes", 30_671, 62, 19.83, 12.83, 0.45, 0.15),
)
INCOME, HOME_VAL, _, MAINTAIN, _ = range(len(AMOUNTS))

# Table 3: the records on which both fields of a pair are open, and the correlation over them.
PAIRS = tuple(combinations(range(len(AMOUNTS)), 2))
PAIR_COUNTS = (24_495, 12_002, 14_763, 23_996, 15_511, 17_735, 29_871, 10_869, 15_323, 17_487)
PAIR_CORRELATIONS = (0.1410, 0.0265, 0.0427, 0.0910, 0.6077, 0.2022, 0.5763, 0.1657, 0.5116, 0.1667)
