"""The h-index of Goldstein and Shlomo: how far from the target the record lies that an intruder takes for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .contract import Ints

if TYPE_CHECKING:
    import pyarrow as pa

UNKNOWN = -1


@dataclass(frozen=True)
class HIndex:
    """The h of every link: how many true records lie strictly closer to the target than the one he took for it.

    h = 0 is the target itself, or a record that cannot be told from it. `values` has one h for each record that
    searched (-1 where it has none: no link, or a target that is not in the truth), `true_ranks` the rank of the right
    candidate among all by the intruder's distance (1: the nearest; 0 where there is none), `outlyingness` how far the
    target lies from the centre. `ranked_by` says by which distance true records are ranked. `deciles` has a row for
    each tenth of the targets by outlyingness, the most outlying first.
    """

    values: Ints = field(repr=False)
    true_ranks: Ints = field(repr=False)
    ranked_by: str
    deciles: pa.Table = field(repr=False)
    outer_rate: float = 0.0

    @property
    def known(self) -> Ints:
        """The h of the records that have one."""
        return np.asarray(self.values[self.values >= 0])

    @property
    def at_zero(self) -> float:
        """Pr(h = 0): the share of targets whose own record (or one just like it) was taken."""
        return self.below(1)

    @property
    def expected(self) -> float:
        """E(h); never to be read without `at_zero`."""
        known = self.known
        return float(known.mean()) if len(known) else float("nan")

    def below(self, count: int) -> float:
        """Pr(h < count)."""
        known = self.known
        return float((known < count).mean()) if len(known) else float("nan")

    def to_dict(self) -> Mapping[str, Any]:
        """Return figures only: no record."""
        raise NotImplementedError
