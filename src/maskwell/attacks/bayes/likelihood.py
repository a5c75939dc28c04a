"""log p(z | x) of pairs as the intruder reads the laws, with exchanged values.

    p(z | x) = kept [(1 - share) moved + share f(moved)]

where `moved` are the factors of columns whose values a share of the records exchanged within its block, and f(moved)
their density over the block: own derivation, for exchanges at random. Factors come from `attacks.pair_density`, or from
another reading of the laws (`law_kernels`). Used by `posterior_odds` for every pair that is scored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...card import NoiseCard
from ...table import Floats, Table
from ..pair_density import LawTerm, LoweredLaw, Same, all_logs, law_terms, laws_on, summed_logs
from ..protocol import NOBODY, Bools, Ints
from .unknown_noise.normal_boxes import EXACT
from .unknown_noise.prior_average import AveragedNoise

Read = Callable[[Sequence[Any], Table, Table], list[LawTerm]]  # laws and two tables to factors of p(z | x)

FEW = 0.5  # of the released records: above, a part of them saves nothing


@dataclass(frozen=True, slots=True)
class PairLikelihood:
    """log p(z | x) of pairs within blocks of what left in clear.

    A share of the records carries the values of another of its block in the swapped columns: `moved` are the factors
    that speak of these, `kept` the others, and p(z|x) = kept [(1 - share) moved + share f(moved)]. Factors may be of
    a part of the released records alone: `place` then tells where each stands in it.
    """

    kept: list[LawTerm]
    moved: list[LawTerm]
    share: float
    place: Ints | None = None

    @classmethod
    def of(
        cls, card: NoiseCard, fields: Sequence[str], z: Table, x: Table, read: Read = law_terms
    ) -> PairLikelihood:
        """Prepare a card for pairs of records of two tables; `read` makes factors of its laws."""
        swapped = swapped_columns(card)
        clear = [name for name in fields if name in swapped and card.law_of(name) is None]
        same: list[LawTerm] = [Same.of(clear, z, x)] if clear else []
        laws = laws_on(card, fields)
        kept = [law for law in laws if swapped.isdisjoint(law.columns)]
        moved = [law for law in laws if not swapped.isdisjoint(law.columns)]
        share = card.swapped.share if card.swapped is not None and (same or moved) else 0.0
        return cls(read(kept, z, x), same + read(moved, z, x), share)

    @classmethod
    def of_part(
        cls, card: NoiseCard, fields: Sequence[str], z: Table, x: Table, read: Read, wanted: Bools
    ) -> PairLikelihood:
        """Prepare a card for pairs of wanted released records: where these are few, the others are never read."""
        if wanted.mean() > FEW:
            return cls.of(card, fields, z, x, read)
        place = np.full(len(z), NOBODY, np.int64)
        place[wanted] = np.arange(int(wanted.sum()))
        return replace(cls.of(card, fields, z.take(np.flatnonzero(wanted)), x, read), place=place)

    def with_terms(self, terms: list[LawTerm]) -> PairLikelihood:
        """Return the same with further factors, which are of all released records."""
        if terms and self.place is not None:
            raise ValueError("factors of all released records do not go with those of a part")
        return replace(self, kept=[*self.kept, *terms]) if terms else self

    def logs(self, z: Ints, x: Ints, log_moved: Floats) -> Floats:
        """Return log p(z | x) of listed pairs; `log_moved` has the block's density f(moved) of each z."""
        at = self._places(z)
        return self._mixed(summed_logs(self.kept, at, x), summed_logs(self.moved, at, x), log_moved[z])

    def matrix(self, z: Ints, x: Ints, log_moved: Floats) -> Floats:
        """Return the same of all pairs (x records x z records)."""
        at = self._places(z)
        return self._mixed(all_logs(self.kept, at, x), all_logs(self.moved, at, x), log_moved[z])

    @property
    def is_rough(self) -> bool:
        """Whether boxes of many columns are weighed to a hundredth or so."""
        return any(isinstance(term, LoweredLaw) and _is_rough(term) for term in (*self.kept, *self.moved))

    def _places(self, z: Ints) -> Ints:
        return z if self.place is None else self.place[z]

    def _mixed(self, kept: Floats, moved: Floats, foreign: Floats) -> Floats:
        """Mix what a record has from its own with what a swapped one carries."""
        if not self.share:
            return np.asarray(kept + moved)
        with np.errstate(divide="ignore"):
            own, other = np.log1p(-self.share) + moved, np.log(self.share) + foreign
        return np.asarray(kept + np.logaddexp(own, other))


def _is_rough(term: LoweredLaw) -> bool:
    is_averaged = isinstance(term.law.noise, AveragedNoise) and term.law.noise.is_regular
    return term.is_motley or (is_averaged and term.most_boxes > EXACT)


def swapped_columns(card: NoiseCard) -> set[str]:
    """Return the columns whose values some records exchanged."""
    return set(card.swapped.columns) if card.swapped is not None and card.swapped.share > 0 else set()
