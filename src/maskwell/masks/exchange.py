"""Masks that move or leave out records: rank swapping and subsampling.

Rank swapping exchanges values at most a window of ranks apart (Moore 1996, Controlled data-swapping techniques);
subsampling keeps each record with one chance. Named in plans as RankSwap, Subsample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import RankSwapped
from ..masking import Setting, WrittenPlan
from ..table import Table
from .resolve import check_names, in_range, names, require_columns


@dataclass(frozen=True)
class RankSwap(WrittenPlan):
    """Exchange each value with one whose rank is at most `window_ratio` of the records away.

    A whole-file step. Marginals stay exactly; there is no law p(z | x), so neither the Bayesian intruder nor
    the measurement-error models can be run on such columns. The audit's own intruder takes the window for a law.
    """

    columns: tuple[str, ...]
    window_ratio: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", names(self.columns))
        raise_all(check_names(self.columns) + in_range("window_ratio", self.window_ratio, 0, 1), BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Say what will be exchanged; there is no law."""
        require_columns(table, self.columns, ("continuous", "integer"))
        counts = table.is_open(self.columns).sum(axis=0)
        few = [name for name, count in zip(self.columns, counts, strict=True) if count < 2]
        raise_all([f"column {name!r} has fewer than two open values to exchange" for name in few], BadPlan)
        return NoiseCard((RankSwapped(self.columns, self.window_ratio),))


@dataclass(frozen=True)
class Subsample(WrittenPlan):
    """Release each record with probability `fraction`; the key decides, the same in every release."""

    columns: ClassVar[tuple[str, ...]] = ()

    fraction: float

    def __post_init__(self) -> None:
        problems = in_range("fraction", self.fraction, 0, 1)
        if self.fraction == 1:
            problems.append("fraction = 1 releases every record: leave Subsample out")
        raise_all(problems, BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Put the fraction on the card."""
        return NoiseCard(subsampled=self.fraction)
