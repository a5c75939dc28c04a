"""Whether a probability of 0.7 is right in 70%: what an intruder says of his links against what comes true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...table import Floats

EDGES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
COARSE = (0.0, 0.1, 0.5, 0.9, 1.0)  # the bins that fit on a line
FAR = 4.0  # standard errors beyond which a gap is no accident


@dataclass(frozen=True, slots=True)
class Bin:
    """Links whose probability lies between two edges: what he says on average, and in what share he is right.

    `interval` is Wilson's, at 95%, as if links were independent; `z` the gap in standard errors, from what he says.
    """

    low: float
    high: float
    links: int
    said: float
    right: float
    interval: tuple[float, float]
    z: float

    def to_dict(self) -> dict[str, Any]:
        """Return the figures."""
        names = ("low", "high", "links", "said", "right")
        figures = {name: getattr(self, name) for name in names}
        return {**figures, "interval": list(self.interval), "z": _finite(self.z)}


@dataclass(frozen=True, slots=True)
class Reliability:
    """What he says of his best links against what comes true: by bins of what he says, and on the whole.

    `expected` is the sum of his probabilities, `found` how many links are right, ties shared; `z` is the gap in
    standard errors, as if links were independent and he were right about himself.
    """

    bins: tuple[Bin, ...]
    coarse: tuple[Bin, ...]
    links: int
    expected: float
    found: float
    z: float

    @property
    def is_fair(self) -> bool:
        """Whether neither the whole nor any bin is further off than chance explains."""
        return abs(self.z) <= FAR and all(abs(one.z) <= FAR for one in self.bins)

    @property
    def sentence(self) -> str:
        """Say in a sentence whether he is as sure as he should be."""
        if not self.links:
            return "he has no links to be sure of"
        if abs(self.z) > FAR:
            word = "too sure" if self.z < 0 else "not sure enough"
            return f"{word}: says {_percent(self.expected / self.links)}, right in {_percent(self.found / self.links)}"
        if not self.is_fair:
            return f"right on the whole, but {_where(max(self.bins, key=lambda one: abs(one.z)))}"
        return f"as sure as he should be: {_where(max(self.bins, key=_weight))}"

    def lines(self) -> list[str]:
        """Return the sentence, the sums and the coarse bins."""
        if not self.links:
            return []
        parts = [f"{shown(one.said, 2)}: {_percent(one.right)} of {one.links:,}" for one in self.coarse]
        return [
            f"  {self.sentence}",
            f"  he expects {self.expected:,.1f} right of {self.links:,}, and {self.found:,.1f} are (z {self.z:+.1f})",
            f"  right by what he says: {'; '.join(parts)}",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the figures."""
        return {
            "sentence": self.sentence,
            "links": self.links,
            "expected": self.expected,
            "found": self.found,
            "z": _finite(self.z),
            "bins": [one.to_dict() for one in self.bins],
        }


def reliability_of(probability: Floats, right: Floats) -> Reliability:
    """Compare probabilities of links with how right each is: 0, 1, or a share among ties."""
    expected, found = float(probability.sum()), float(right.sum())
    z = _gap(probability, right)
    bins, coarse = (_bins(probability, right, edges) for edges in (EDGES, COARSE))
    return Reliability(bins, coarse, len(probability), expected, found, z)


def _bins(probability: Floats, right: Floats, edges: tuple[float, ...]) -> tuple[Bin, ...]:
    """Return the bins that have links; each includes its lower edge, the last both."""
    from ..risk import wilson

    place = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, len(edges) - 2)
    out = []
    for i in np.unique(place).tolist():
        said, came = probability[place == i], right[place == i]
        share, z = float(came.mean()), _gap(said, came)
        out.append(
            Bin(edges[i], edges[i + 1], len(said), float(said.mean()), share, wilson(share, len(said)), z)
        )
    return tuple(out)


def _gap(probability: Floats, right: Floats) -> float:
    """Return how many standard errors more links are right than he says; infinite where he was certain."""
    gap = float((right - probability).sum())
    error = float(np.sqrt((probability * (1.0 - probability)).clip(min=0.0).sum()))
    if abs(gap) <= 1e-9 * max(len(probability), 1):
        return 0.0
    return gap / error if error > 0 else float(np.copysign(np.inf, gap))


def _weight(one: Bin) -> float:
    """Return how much a bin tells: many links of uncertain probability."""
    return one.links * (one.said * (1.0 - one.said) + 1e-6)


def _where(one: Bin) -> str:
    return f"where he says {shown(one.said, 2)} he is right in {_percent(one.right)} of {one.links:,}"


def shown(chance: float, places: int = 3) -> str:
    """Write a probability: small ones with two figures, wherever they stand."""
    return f"{chance:.{places}f}" if chance >= 0.1 else f"{chance:.2g}"


def _percent(share: float) -> str:
    return f"{share:.1%}" if 0 < share < 0.1 or 0.995 < share < 1 else f"{share:.0%}"


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
