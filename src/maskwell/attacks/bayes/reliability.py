"""Whether a probability of 0.7 is right in 70%: what an intruder says of his links against what comes true."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...table import Floats

EDGES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
COARSE = (0.0, 0.1, 0.5, 0.9, 1.0)  # the bins that fit on a line
FAR = 4.0  # standard errors beyond which a gap is no accident
NEAR = 2.0  # standard errors up to which a gap is not worth a word
ENOUGH = 5.0  # links that he must expect right, and wrong, before chance is told from fault
UNSPEAKABLE = 99.0  # more standard errors than this are not counted


@dataclass(frozen=True, slots=True)
class Gap:
    """How far what comes true lies from what he says, as if links were independent and he were right about himself.

    `z` counts standard errors. A link that ties with others counts its share 1/k where the right one is among the k:
    with probability p for each of them that has the mean p and the variance p/k - p^2. `hits` and `misses` are how
    often he expects the right one to be among them, and not; `tail` is z once more, by Chernoff's bound on the rarer
    of the two, which no small number deceives.
    """

    z: float
    hits: float
    misses: float
    tail: float

    @classmethod
    def of(cls, probability: Floats, right: Floats, ties: Floats) -> Gap:
        """Compare probabilities of links with how right each is; `ties` counts the candidates that each stands for."""
        among = np.minimum(ties * probability, 1.0)
        hits, misses = float(among.sum()), float((1.0 - among).sum())
        found = float((ties * right).sum())
        rare = (misses, len(ties) - found) if misses < hits else (hits, found)
        return cls(_errors(probability, right, ties), hits, misses, _by_chernoff(*rare))

    @property
    def is_far(self) -> bool:
        """Whether it is further off than chance explains."""
        return abs(self.z) > FAR and self.tail > FAR

    @property
    def is_enough(self) -> bool:
        """Whether so many are expected right, and wrong, that agreement means something."""
        return min(self.hits, self.misses) >= ENOUGH


def _errors(probability: Floats, right: Floats, ties: Floats) -> float:
    """Return how many standard errors more links are right than he says; infinite where he was certain."""
    gap = float((right - probability).sum())
    error = float(np.sqrt((probability * (1.0 / ties - probability)).clip(min=0.0).sum()))
    if abs(gap) <= 1e-9 * max(len(probability), 1):
        return 0.0
    return gap / error if error > 0 else float(np.copysign(np.inf, gap))


def _by_chernoff(expected: float, found: float) -> float:
    """Return z with exp(-z^2 / 2) a bound on the chance of so many independent events, or so few."""
    if expected <= 0:
        return np.inf if found > 1e-9 else 0.0
    logs = found * np.log(found / expected) if found > 0 else 0.0
    return float(np.sqrt(2.0 * max(logs - found + expected, 0.0)))


@dataclass(frozen=True, slots=True)
class Bin:
    """Links whose probability lies between two edges: what he says on average, and in what share he is right.

    `interval` is Wilson's, at 95%, as if links were independent and nobody tied; `z` the gap in standard errors, from
    what he says.
    """

    low: float
    high: float
    links: int
    said: float
    right: float
    interval: tuple[float, float]
    gap: Gap

    @property
    def z(self) -> float:
        """The gap in standard errors."""
        return self.gap.z

    def to_dict(self) -> dict[str, Any]:
        """Return the figures."""
        names = ("low", "high", "links", "said", "right")
        figures = {name: getattr(self, name) for name in names}
        return {**figures, "interval": list(self.interval), "z": _finite(self.z)}


@dataclass(frozen=True, slots=True)
class Reliability:
    """What he says of his best links against what comes true: by bins of what he says, and on the whole.

    `expected` is the sum of his probabilities, `found` how many links are right, ties shared; `gap` says how far they
    are apart.
    """

    bins: tuple[Bin, ...]
    coarse: tuple[Bin, ...]
    links: int
    expected: float
    found: float
    gap: Gap

    @property
    def z(self) -> float:
        """The gap in standard errors."""
        return self.gap.z

    @property
    def is_fair(self) -> bool:
        """Whether neither the whole nor any bin is further off than chance explains."""
        return not self.gap.is_far and not any(one.gap.is_far for one in self.bins)

    @property
    def sentence(self) -> str:
        """Say in a sentence whether he is as sure as he should be, or that there is too little to say it by."""
        if not self.links:
            return "he has no links to be sure of"
        if self.gap.is_far:
            return f"{_word(self.z)}: {self._said()}"
        if not self.is_fair:
            return f"right on the whole, but {_where(max(self.bins, key=_distance))}"
        if not self.gap.is_enough:
            few = "right" if self.gap.hits < self.gap.misses else "wrong"
            count = min(self.gap.hits, self.gap.misses)
            return f"too few to judge him: he expects {count:.2g} {few}"
        if abs(self.z) > NEAR:
            return f"perhaps {_word(self.z)}, or by chance: {self._said()}"
        clear = [one for one in self.bins if one.gap.is_enough and abs(one.z) <= NEAR]
        example = f": {_where(max(clear, key=_weight))}" if clear else ""
        return f"as sure as he should be{example}"

    def _said(self) -> str:
        """Say what he says and what comes true: in shares, or in counts where the shares look the same."""
        shares = self.expected / self.links, self.found / self.links
        for write in (_percent, "{:.1%}".format, "{:.2%}".format):
            said, right = map(write, shares)
            if said != right:
                return f"says {said}, right in {right}"
        expected, found = (f"{self.links - count:,.2f}" for count in (self.expected, self.found))
        return f"expects {expected} wrong of {self.links:,}, and {found} are"

    def lines(self) -> list[str]:
        """Return the sentence, the sums and the coarse bins."""
        if not self.links:
            return []
        parts = [f"{shown(one.said, 2)}: {_percent(one.right)} of {one.links:,}" for one in self.coarse]
        counts = f"he expects {self.expected:,.1f} right of {self.links:,}, and {self.found:,.1f} are"
        return [
            f"  {self.sentence}",
            f"  {counts} ({self._how_far()})",
            f"  right by what he says: {'; '.join(parts)}",
        ]

    def _how_far(self) -> str:
        """Say z in words where its figure means nothing."""
        if abs(self.z) <= UNSPEAKABLE:
            return f"z {self.z:+.1f}"
        return "he was certain" if np.isinf(self.z) else "which no chance explains"

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


def reliability_of(probability: Floats, right: Floats, ties: Any = None) -> Reliability:
    """Compare probabilities of links with how right each is: 0, 1, or a share among its `ties` (1 each by default)."""
    ties = np.ones(len(probability)) if ties is None else np.maximum(np.asarray(ties, float), 1.0)
    expected, found = float(probability.sum()), float(right.sum())
    bins, coarse = (_bins(probability, right, ties, edges) for edges in (EDGES, COARSE))
    return Reliability(bins, coarse, len(probability), expected, found, Gap.of(probability, right, ties))


def _bins(probability: Floats, right: Floats, ties: Floats, edges: tuple[float, ...]) -> tuple[Bin, ...]:
    """Return the bins that have links; each includes its lower edge, the last both."""
    from ..risk import wilson

    place = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, len(edges) - 2)
    out = []
    for i in np.unique(place).tolist():
        said, came, tied = (part[place == i] for part in (probability, right, ties))
        share, gap = float(came.mean()), Gap.of(said, came, tied)
        out.append(
            Bin(edges[i], edges[i + 1], len(said), float(said.mean()), share, wilson(share, len(said)), gap)
        )
    return tuple(out)


def _distance(one: Bin) -> float:
    """Return how far off a bin is, where that is no accident."""
    return abs(one.z) if one.gap.is_far else 0.0


def _weight(one: Bin) -> float:
    """Return how much a bin tells: many links of uncertain probability."""
    return one.links * (one.said * (1.0 - one.said) + 1e-6)


def _word(z: float) -> str:
    return "too sure" if z < 0 else "not sure enough"


def _where(one: Bin) -> str:
    said = "certain" if one.said == 1.0 else shown(one.said, 2)
    return f"where he says {said} he is right in {_percent(one.right)} of {one.links:,}"


def shown(chance: float, places: int = 3) -> str:
    """Write a probability: small ones with two figures, wherever they stand."""
    return f"{chance:.{places}f}" if chance >= 0.1 else f"{chance:.2g}"


def _percent(share: float) -> str:
    return f"{share:.1%}" if 0 < share < 0.1 or 0.995 < share < 1 else f"{share:.0%}"


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
