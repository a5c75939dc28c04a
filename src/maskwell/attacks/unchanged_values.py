"""Values that the noise of their column spares: how to tell them, how sure they are, and what left unchanged else.

Multiplicative noise leaves zeros as they are, a step without noise all values in it. Who finds such a value in the
release can be nearly sure of it: another comes there by its noise, by rounding or at a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..laws import Additive, SkewedBias, Step
from ..laws.chain import combined_of
from ..masking import Masking
from ..notes import Note
from ..table import Floats
from .protocol import Bools

MOST_STRAYS = 0.5  # of the values with noise: if more come to lie among the spared ones, these say too little
NOTABLE = 0.1  # from this share of unchanged values on a note says so


@dataclass(frozen=True, slots=True)
class SparedValues:
    """The values of a column that its law gives no noise; `inner`: without those at a limit, where noise is clamped."""

    law: Additive | SkewedBias
    place: int
    inner: bool = False

    @classmethod
    def by(cls, law: Any, name: str) -> SparedValues | None:
        """Return what a law spares of a column, where it spares anything and not all."""
        law = combined_of(law)
        if not isinstance(law, Additive | SkewedBias) or name not in law.columns:
            return None
        place = law.columns.index(name)
        if isinstance(law, SkewedBias):
            return cls(law, place) if law.sds[place] == 0 else None
        spread = law.spreads[place] if law.spreads else None
        if spread is None or draws_nothing(law, place):
            return None
        some = (isinstance(spread, Step) and 0 in spread.ratios) or spread.factor(np.zeros(1))[0] == 0
        return cls(law, place) if some else None

    def marks(self, values: Floats) -> Bools:
        """Mark values that are spared, and no code that the law gives."""
        if isinstance(self.law, SkewedBias):
            spared = values == 0
        else:
            spread = self.law.spreads[self.place]
            assert spread is not None
            spared = spread.factor(values) == 0
        outlet = self.law.outlets[self.place]
        ends = (outlet.low, outlet.high) if self.inner else outlet.codes
        return np.asarray(spared & ~np.isin(values, [end for end in ends if end is not None]))

    def known(self, values: Floats) -> Floats:
        """Return the different spared values among some: where a release has another, noise has made it."""
        return np.unique(values[self.marks(values)])

    def sent(self, values: Floats) -> Floats:
        """Return values of which the spared ones are as they leave."""
        return np.where(self.marks(values), without_noise(self.law, self.place, values), values)

    def straying(self, true: Floats, released: Floats) -> tuple[float, float]:
        """Return the share of true values that are spared, and that of the others which came to lie among them."""
        true = self.sent(true)
        known = self.known(true)
        kept, out = (
            float(np.isin(side, known).sum() / max(int((~np.isnan(side)).sum()), 1))
            for side in (true, released)
        )
        return kept, max(out - kept, 0.0) / (1 - kept) if kept < 1 else 0.0


def draws_nothing(law: Any, place: int) -> bool:
    """Whether a column has a law without any noise."""
    return isinstance(law, Additive) and float(law.noise.covariance[place, place]) == 0


def without_noise(law: Additive | SkewedBias, place: int, values: Floats) -> Floats:
    """Return how values of a column would leave without any noise."""
    if isinstance(law, SkewedBias):
        return law.outlets[place].leave(values.copy(), values)
    x = np.full((len(values), len(law.columns)), np.nan, order="F")
    x[:, place] = values
    return np.asarray(law.leave(law.place(x, np.zeros(x.shape, order="F")), x)[:, place])


def unchanged_shares(masking: Masking) -> dict[str, float]:
    """Return for columns with noise the share of values, but for spared ones, that left as without it."""
    shares, truth, release = {}, masking.truth, masking.release
    for law in map(combined_of, release.card.laws):
        for place, name in enumerate(law.columns if isinstance(law, Additive | SkewedBias) else ()):
            numbers = all(name in t.schema and t.schema[name].is_number for t in (truth, release.table))
            if not numbers or draws_nothing(law, place):
                continue
            x, z = truth.floats(name)[masking.order], release.table.floats(name)
            both, spared = ~np.isnan(x) & ~np.isnan(z), SparedValues.by(law, name)
            both &= True if spared is None else ~spared.marks(x)
            same = without_noise(law, place, x[both]) == z[both]
            shares[name] = float(same.mean()) if both.any() else 0.0
    return shares


def on_spared(found: Sequence[tuple[str, float, float]]) -> list[Note]:
    """Say of which columns how many values leave without noise, and whether they count."""
    said = []
    for counts in (True, False):
        some = [one for one in found if (one[2] <= MOST_STRAYS) == counts]
        if some:
            strays = [share for _, _, share in some]
            figures = {
                "columns": {name: true for name, true, _ in some},
                "strays": max(strays) if counts else min(strays),
                "counted": counts,
            }
            said.append(Note("attacks.spared_values", figures))
    return said


def on_unchanged(masking: Masking) -> list[Note]:
    """Say which columns with noise left many values just as without: their unit is coarse."""
    if masking.masked is masking.truth:
        return []
    listed = {name: share for name, share in unchanged_shares(masking).items() if share >= NOTABLE}
    return [Note("attacks.unchanged_values", {"columns": listed})] if listed else []
