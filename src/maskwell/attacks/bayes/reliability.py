"""Whether a probability of 0.7 is right in 70%: what an intruder says of its links against what comes true.

Gap in standard errors z = (sum of right - sum of p) / sqrt(sum of p (1/k - p)), k the number of tied candidates; beside
it Chernoff's bound (1952) on the chance of such a sum, as exp(-r^2 / 2), which holds for few links too: the smaller of
both counts. Bins have Wilson's interval (1927). Made for every `BayesIntruder` by `belief`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from ...table import Floats

# Of bins of probabilities, finer where most links lie
EDGES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
COARSE = (0.0, 0.1, 0.5, 0.9, 1.0)  # the bins that fit on a line
LEVEL = 0.001  # how often he may be called too sure, or not sure enough, who is neither: on the whole, and by bins
NEAR = 2.0  # standard errors up to which a gap is not worth a word
ENOUGH = 5.0  # links that he must expect right, and wrong, before agreement means something
UNSPEAKABLE = 99.0  # more standard errors than this are not counted


@dataclass(frozen=True, slots=True)
class Gap:
    """How far what comes true lies from what he says, as if links were independent and he were right about himself.

    `errors` counts standard errors. A link that ties with others counts its share 1/k where the right one is among the
    k: with probability p for each of them that has the mean p and the variance p/k - p^2. `tail` is the same by
    Chernoff's bound on the chance of such a sum, which no small number deceives. `hits` and `misses` are how often he
    expects the right one to be among them, and not.
    """

    errors: float
    tail: float
    hits: float
    misses: float

    @classmethod
    def of(cls, probability: Floats, right: Floats, ties: Floats) -> Gap:
        """Compare probabilities of links with how right each is; `ties` counts the candidates that each stands for."""
        among = np.minimum(ties * probability, 1.0)
        errors = _errors(probability, right, ties)
        tail = _by_chernoff(among, ties, float(right.sum())) if errors else 0.0
        return cls(errors, tail, float(among.sum()), float((1.0 - among).sum()))

    @property
    def z(self) -> float:
        """The one figure by which he is judged: standard errors, as few as either count has."""
        return float(np.copysign(min(abs(self.errors), self.tail), self.errors)) if self.errors else 0.0

    def is_far(self, among: int = 1) -> bool:
        """Whether it is further off than chance explains, where so many gaps are looked at."""
        return abs(self.z) > -NormalDist().inv_cdf(LEVEL / (2 * among))

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


def _by_chernoff(among: Floats, ties: Floats, found: float) -> float:
    """Return r with exp(-r^2 / 2) the least bound of Chernoff's kind on the chance of so large a sum, or so small.

    Each term of the sum is 1/k with probability `among` and else 0. Where all that can be right is, or nothing is that
    can be wrong, the bound is the chance itself.
    """
    from scipy.special import expit, logit

    open_ = (among > 0) & (among < 1)
    share, least = among[open_], 1.0 / ties[open_]
    rest = found - float((1.0 / ties[among >= 1]).sum())
    most, tiny = float(least.sum()), 1e-9 * max(len(among), 1)
    if rest < -tiny or rest > most + tiny:
        return np.inf
    if rest <= tiny or rest >= most - tiny:
        logs = np.log1p(-share) if rest <= tiny else np.log(share)
        return float(np.sqrt(-2.0 * logs.sum()))
    start = logit(share)
    at = _tilt(lambda t: float((least * expit(start + t * least)).sum()) - rest)
    grown = np.logaddexp(np.log1p(-share), np.log(share) + at * least).sum()
    return float(np.sqrt(2.0 * max(at * rest - float(grown), 0.0)))


def _tilt(excess: Callable[[float], float]) -> float:
    """Return where a growing function is zero."""
    from scipy.optimize import brentq

    low, high = -1.0, 1.0
    while excess(low) > 0:
        low *= 2.0
    while excess(high) < 0:
        high *= 2.0
    return float(brentq(excess, low, high, xtol=1e-9, rtol=1e-9))


@dataclass(frozen=True, slots=True)
class Bin:
    """Links whose probability lies between two edges: what he says on average, and in what share he is right.

    `interval` is Wilson's, at 95%, as if links were independent and nobody tied; `z` the gap in standard errors, from
    what he says (`Gap`).
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
        return not self.gap.is_far() and self.worst is None

    @property
    def worst(self) -> Bin | None:
        """The bin that is furthest off, where that is no accident among so many bins."""
        far = [one for one in self.bins if one.gap.is_far(len(self.bins))]
        return max(far, key=lambda one: abs(one.z), default=None)

    @property
    def sentence(self) -> str:
        """Say in a sentence whether he is as sure as he should be, or that there is too little to say it by."""
        if not self.links:
            return "he has no links to be sure of"
        if self.gap.is_far():
            return f"{_word(self.z)}: {self._said()}"
        if self.worst is not None:
            return f"{self._on_the_whole()}, but {_where(self.worst)}"
        if not self.gap.is_enough:
            return self._too_few()
        if abs(self.z) > NEAR:
            return f"perhaps {_word(self.z)}, or by chance: {self._said()}"
        return f"as sure as he should be: {self._said(apart=False)}"

    def _on_the_whole(self) -> str:
        if not self.gap.is_enough:
            return "too few to judge him on the whole"
        return f"perhaps {_word(self.z)} on the whole" if abs(self.z) > NEAR else "right on the whole"

    def _too_few(self) -> str:
        """Say what he expects and what is, of right links or of wrong ones, whichever are fewer."""
        if self.gap.hits < self.gap.misses:
            what, word, counts = "too few to judge him", "right", (self.expected, self.found)
        else:
            what, word = "too few doubts to judge him", "wrong"
            counts = self.links - self.expected, self.links - self.found
        expected, found = (_format_count(abs(count)) for count in counts)
        return f"{what}: he expects {expected} {word} of {self.links:,}, and {found} are"

    def _said(self, *, apart: bool = True) -> str:
        """Say what he says and what comes true: in shares, or in counts where the shares look the same."""
        shares = self._shares(apart=apart)
        if shares is not None:
            return f"says {shares[0]}, right in {shares[1]}"
        expected, found = (f"{self.links - count:,.2f}" for count in (self.expected, self.found))
        return f"expects {expected} wrong of {self.links:,}, and {found} are"

    def _shares(self, *, apart: bool) -> tuple[str, str] | None:
        """Write the shares that he says and that are right; nothing where they are to differ and look the same."""
        for write in (_percent, "{:.1%}".format, "{:.2%}".format):
            said, right = (write(count / self.links) for count in (self.expected, self.found))
            if said != right or not apart:
                return said, right
        return None

    def _sentence_has_count(self) -> bool:
        """Whether the sentence, where no bin is the worst, says of how many links it is."""
        if self.gap.is_far() or (self.gap.is_enough and abs(self.z) > NEAR):
            return self._shares(apart=True) is None
        return not self.gap.is_enough

    def lines(self) -> list[str]:
        """Return the sentence with the figure it rests on, and the coarse bins."""
        if not self.links:
            return []
        parts = [
            f"{format_probability(one.said, 2)}: {_percent(one.right)} of {one.links:,}"
            for one in self.coarse
        ]
        return [*self._verdict_lines(), f"  right by what he says: {'; '.join(parts)}"]

    def _verdict_lines(self) -> list[str]:
        judged = self.gap.is_far() or self.gap.is_enough
        how_far = f" ({_how_far(self.z)})" if judged else ""
        if self.worst is not None and not self.gap.is_far():
            whole = f"on the whole he {self._said(apart=False)} of {self.links:,}"
            return [f"  {self.sentence} ({_how_far(self.worst.z)})", f"  {whole}{how_far}"]
        of = "" if self._sentence_has_count() else f" of {self.links:,}"
        return [f"  {self.sentence}{of}{how_far}"]

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


def _word(z: float) -> str:
    return "too sure" if z < 0 else "not sure enough"


def _where(one: Bin) -> str:
    said = "certain" if one.said == 1.0 else format_probability(one.said, 2)
    return f"where he says {said} he is right in {_percent(one.right)} of {one.links:,}"


def _how_far(z: float) -> str:
    """Say z in words where its figure means nothing."""
    if abs(z) <= UNSPEAKABLE:
        return f"z {z:+.1f}"
    return "he was certain" if np.isinf(z) else "which no chance explains"


def _format_count(count: float) -> str:
    """Write a count that need not be whole."""
    if abs(count - round(count)) < 1e-9:
        return f"{count:,.0f}"
    return f"{count:,.1f}" if count >= 0.95 else f"{count:.1g}"


def format_probability(chance: float, places: int = 3) -> str:
    """Write a probability: small ones with two figures, wherever they stand."""
    return f"{chance:.{places}f}" if chance >= 0.1 else f"{chance:.2g}"


def _percent(share: float) -> str:
    return f"{share:.1%}" if 0 < share < 0.1 or 0.995 < share < 1 else f"{share:.0%}"


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
