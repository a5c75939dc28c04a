"""What a Bayesian intruder believes about the truth, and whether the probabilities it gives come true.

The figures of one attack: the rank of the true record among the candidates, the posterior of the truth and of the best
link, and for each threshold t the links claimed (posterior above t) and those correct (assumption A4 of Trottini,
Fienberg, Makov and Meyer 2003; mean and sd as in the cells of their tables 2 and 3). Made for every `BayesIntruder`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrow_buffers import from_numpy
from ...errors import BadPlan
from ...masking.results import labels_of
from ...table import Floats
from ...tolerances import is_real
from ..protocol import Bools, Ints, MarkedGuess
from ..risk import tenths
from .reliability import Reliability, format_probability, reliability_of

if TYPE_CHECKING:
    import pyarrow as pa

# Of the curve of links claimed and correct
THRESHOLDS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
SHOWN = (0.0, 0.5, 0.9, 0.99)  # the thresholds that `lines` shows beside the plan's own
NAMED = 10  # places that are counted one by one


@dataclass(frozen=True, slots=True)
class BeliefStanding:
    """Where the true record stands among the candidates of each row.

    `better` counts those weighed higher (-1: the truth is not among the candidates), `ties` those weighed as high,
    itself included (0: he holds the truth for impossible); `probability` is his posterior of the truth (NaN: none).
    From 10 on `better` need not be exact: all that lies there is beyond the places that are counted.
    """

    better: Ints
    ties: Ints
    probability: Floats

    @classmethod
    def of(cls, marked: MarkedGuess) -> BeliefStanding:
        """Ask an answer how the true counterparts of its rows stand."""
        guess, marks = marked.guess, marked.marks
        rows = np.flatnonzero(marks.counterpart >= 0)
        found: BeliefStanding = guess.figures["standing"](rows, marks.counterpart[rows])
        better, ties = np.full(len(guess), -1, np.int64), np.zeros(len(guess), np.int64)
        better[rows], ties[rows] = found.better, found.ties
        probability = np.full(len(guess), np.nan)
        probability[rows] = found.probability
        excluded = marks.findable & (better < 0)  # a candidate that what left in clear rules out
        better[excluded], probability[excluded] = 0, 0.0
        return cls(better, ties, np.where(better < 0, np.nan, probability))


@dataclass(frozen=True, slots=True)
class TrueRanks:
    """How many targets have their own record first, second to fifth, sixth to tenth, and beyond, ties shared."""

    first: float
    to_5: float
    to_10: float
    beyond: float

    @property
    def top_5(self) -> float:
        """How many have it among the first five."""
        return self.first + self.to_5

    @property
    def top_10(self) -> float:
        """How many have it among the first ten."""
        return self.top_5 + self.to_10

    @property
    def targets(self) -> float:
        """How many have it among their candidates at all."""
        return self.top_10 + self.beyond

    def to_dict(self) -> dict[str, float]:
        """Return the counts."""
        names = ("first", "to_5", "to_10", "beyond", "top_5", "top_10", "targets")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class LinkChances:
    """How probabilities are spread: mean, sd, and the quantiles 5, 25, 50, 75 and 95%; NaN where there are too few."""

    count: float
    mean: float
    sd: float
    low: float
    lower: float
    median: float
    upper: float
    high: float

    @classmethod
    def of(cls, values: Floats, weights: Floats | None = None) -> LinkChances:
        """Sum probabilities up, each counted as often as its weight says."""
        weights = np.ones(len(values)) if weights is None else weights
        values, weights = values[weights > 0], weights[weights > 0]
        count = float(weights.sum())
        if not len(values):
            return cls(0.0, *[np.nan] * 7)
        mean = float(np.average(values, weights=weights))
        squares = float((weights * (values - mean) ** 2).sum())
        sd = float(np.sqrt(squares / (count - 1))) if count > 1 else np.nan
        return cls(count, mean, sd, *_quantiles(values, weights, (0.05, 0.25, 0.5, 0.75, 0.95)))

    def said(self) -> str:
        """Say mean, median and the 5% and 95% quantiles."""
        if not self.count:
            return "none"
        ends = f"5-95%: {format_probability(self.low)} to {format_probability(self.high)}"
        return f"mean {format_probability(self.mean)}, median {format_probability(self.median)}, {ends}"

    def to_dict(self) -> dict[str, float | None]:
        """Return the figures; None where there is none."""
        names = ("count", "mean", "sd", "low", "lower", "median", "upper", "high")
        return {name: _plain(getattr(self, name)) for name in names}


def _quantiles(values: Floats, weights: Floats, shares: Sequence[float]) -> list[float]:
    """Return the smallest values that have so large a share of the weight at or below them."""
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(weights[order])
    places = np.searchsorted(summed, np.asarray(shares) * summed[-1] * (1 - 1e-12))
    return [float(value) for value in values[order[np.minimum(places, len(order) - 1)]]]


@dataclass(frozen=True, repr=False)
class Belief:
    """What an intruder believes about each target: figures about this release, exact but for his own arithmetic.

    `standing` is where the true records stand, `probability` what he gives his best link (NaN: he has none), `share`
    how right that link is, ties shared; he claims it where its probability is above `threshold`. `labels` are the
    ids of the targets: only `worst` shows them, to the steward. `not_released` has the probability he gives to each
    target's not being in the release, where that can be, and `ties` how many candidates are as good as the best link.
    """

    standing: BeliefStanding
    probability: Floats
    share: Floats
    threshold: float = 0.0
    labels: pa.Array[Any] | None = None
    not_released: Floats | None = None
    ties: Ints | None = None

    @classmethod
    def of_answer(cls, marked: MarkedGuess, threshold: float) -> Belief:
        """Sum up what a marked answer says of its own links and of the true ones."""
        guess = marked.guess
        near = marked.known if guess.to_masked else marked.masking.release.table
        return cls(
            BeliefStanding.of(marked),
            np.where(guess.found >= 0, guess.columns["probability"], np.nan),
            marked.marks.share,
            threshold,
            labels_of(near, guess.searcher),
            guess.columns.get("not_released"),
            guess.ties,
        )

    @property
    def targets(self) -> int:
        """How many records search."""
        return len(self.probability)

    @property
    def links(self) -> int:
        """How many have a best link, claimed or not."""
        return len(self._links[0])

    @property
    def findable(self) -> int:
        """How many have their own record among their candidates."""
        return int(self._findable.sum())

    @cached_property
    def _links(self) -> tuple[Floats, Floats, Ints]:
        """What he gives to each best link, ascending, how right it is, and its ties.

        Sums do not depend on the file's order.
        """
        linked = ~np.isnan(self.probability)
        ties = np.ones(len(linked), np.int64) if self.ties is None else self.ties
        parts = self.probability[linked], self.share[linked], ties[linked]
        order = np.lexsort((parts[2], parts[1], parts[0]))
        return parts[0][order], parts[1][order], parts[2][order]

    @property
    def _findable(self) -> Bools:
        return np.asarray(self.standing.better >= 0)

    def curve(self, thresholds: Sequence[float] | None = None) -> pa.Table:
        """Return links, correct ones (ties shared), precision and recall where he claims above each threshold.

        Precision is the correct share of the links (null where there are none), recall the share found of those that
        have their own record among their candidates.
        """
        import pyarrow as pa

        asked = sorted({*THRESHOLDS, self.threshold}) if thresholds is None else list(thresholds)
        for t in asked:
            if not (is_real(t) and 0 <= t <= 1):
                raise BadPlan(f"a threshold is a probability between 0 and 1, not {t!r}")
        probability, share, _ = self._links
        below = [np.searchsorted(probability, t, side="right") if t > 0 else 0 for t in asked]
        links = len(probability) - np.array(below, np.int64)
        correct = np.append(0.0, np.cumsum(share[::-1]))[links]
        columns: dict[str, Any] = {
            "threshold": pa.array(map(float, asked), pa.float64()),
            "links": from_numpy(links),
            "correct": from_numpy(correct),
            "precision": _ratio(correct, links),
            "recall": _ratio(correct, np.full(len(asked), self.findable)),
        }
        return pa.table(columns)

    @cached_property
    def places(self) -> Floats:
        """How many true records stand at the places 1 to 10, and beyond: those that tie share their places."""
        here = self._findable
        pairs = np.stack([self.standing.better[here], self.standing.ties[here]], axis=1)
        (better, ties), times = (part.T for part in np.unique(pairs, axis=0, return_counts=True))
        place = np.arange(NAMED)[:, None]
        taken = (better <= place) & (place < better + ties)
        counts = (taken * times / np.maximum(ties, 1)).sum(axis=1)
        return np.append(counts, max(times.sum() - counts.sum(), 0.0))

    @property
    def ranks(self) -> TrueRanks:
        """How many true records are ranked first, to fifth, to tenth, and beyond."""
        counts = self.places
        return TrueRanks(*(float(part.sum()) for part in np.split(counts, [1, 5, NAMED])))

    @property
    def truth_probability(self) -> LinkChances:
        """The probability he gives to the true record, over targets that have it among their candidates."""
        return LinkChances.of(np.sort(self.standing.probability[self._findable]))

    @property
    def first_probability(self) -> LinkChances:
        """The probability he gives to his best link."""
        return LinkChances.of(self._links[0])

    @property
    def correct_probability(self) -> LinkChances:
        """The probability of the best links that are correct: the mean and sd in the cells of Trottini's tables."""
        return LinkChances.of(*self._links[:2])

    @cached_property
    def calibration(self) -> Reliability:
        """Whether the probability he gives his best links is the share of them that are right."""
        return reliability_of(*self._links)

    def worst(self, n: int = 10) -> pa.Table:
        """Return the targets whose own record gets the largest probability: for the steward's eyes alone.

        A record that he holds for impossible has no rank.
        """
        import pyarrow as pa

        if not isinstance(n, Integral) or isinstance(n, bool) or n < 0:
            raise BadPlan(f"worst takes a whole number of targets from 0 on, not {n!r}")
        here = np.flatnonzero(self._findable)
        rows = here[np.argsort(-self.standing.probability[here], kind="stable")][:n]
        numbers: Any = pa.array([str(row + 1) for row in rows.tolist()], pa.string())
        labels = numbers if self.labels is None else self.labels.take(from_numpy(rows))
        first = self.probability[rows]
        columns: dict[str, Any] = {
            "target_id": labels,
            "probability_of_truth": from_numpy(self.standing.probability[rows]),
            "rank": from_numpy(self.standing.better[rows] + 1, self.standing.ties[rows] == 0),
            "ties": from_numpy(self.standing.ties[rows]),
            "probability_of_first": from_numpy(first, np.isnan(first)),
        }
        return pa.table(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record."""
        return {
            "threshold": self.threshold,
            "targets": self.targets,
            "links": self.links,
            "findable": self.findable,
            "curve": self.curve().to_pylist(),
            "ranks": self.ranks.to_dict(),
            "places": self.places.tolist(),
            "truth_probability": self.truth_probability.to_dict(),
            "first_probability": self.first_probability.to_dict(),
            "correct_probability": self.correct_probability.to_dict(),
            "calibration": self.calibration.to_dict(),
            "not_released": None if self.not_released is None else self._absence(self.not_released),
        }

    def _absence(self, chances: Floats) -> dict[str, float]:
        """Return how many targets he expects not to be in the release, and how many are not among the candidates."""
        return {"expected": float(np.sort(chances).sum()), "found": float(self.targets - self.findable)}

    def plot(self, path: str | Path) -> Path:
        """Write the picture of his thresholds and of whether his probabilities hold to a file (PNG, SVG or PDF)."""
        from .pictures import draw_belief

        return draw_belief(self, path)

    def __repr__(self) -> str:
        return "\n".join(self.lines()[1:])

    def lines(self) -> list[str]:
        """Return what a `Risk` prints of it."""
        if not self.links:
            return ["", "  he has no candidate for anybody, and so believes nothing"]
        first = [*self._rank_lines(), *self._chance_lines(), *self._absence_lines()]
        return ["", *first, *self._curve_lines(), *self.calibration.lines()]

    def _absence_lines(self) -> list[str]:
        if self.not_released is None:
            return []
        expected, found = self._absence(self.not_released).values()
        counts = f"he expects {expected:,.1f} of {self.targets:,} not to be in the release"
        claimed = (self.probability > self.threshold) | ((self.threshold == 0) & (self.probability >= 0))
        doubted = int((claimed & (self.not_released > np.nan_to_num(self.probability))).sum())
        links = f"  {doubted:,} of the links claimed are of targets that he holds for likelier absent"
        return [f"  {counts}, and {found:,.0f} are not", *([links] if doubted else [])]

    def _rank_lines(self) -> list[str]:
        if not self.findable:
            return ["  no target has its own record among its candidates"]
        ranks, count = self.ranks, self.findable
        shares = [ranks.first / count, ranks.to_5 / count, ranks.to_10 / count, ranks.beyond / count]
        words = ("first", "2nd to 5th", "6th to 10th", "beyond")
        said = ", ".join(f"{word} {share:.1%}" for word, share in zip(words, shares, strict=True))
        return [f"  rank of the true record: {said} (of {count:,})"]

    def _chance_lines(self) -> list[str]:
        """Say what he gives to the truth, to his best links, and to those of them that are correct."""
        truth, first, correct = self.truth_probability, self.first_probability, self.correct_probability
        sd = "" if np.isnan(correct.sd) else f", sd {format_probability(correct.sd)}"
        return [
            *([f"  probability of the truth: {truth.said()}"] if truth.count else []),
            f"  probability of his best link: {first.said()}",
            *(
                [f"  probability of his correct links: mean {format_probability(correct.mean)}{sd}"]
                if correct.count
                else []
            ),
        ]

    def _curve_lines(self) -> list[str]:
        rows = self.curve(sorted({*SHOWN, self.threshold})).to_pylist()
        lines = [f"  {'claims above':>14}{'links':>9}{'correct':>11}{'precision':>11}{'recall':>9}"]
        for row in rows:
            shares = (
                "-" if row[name] is None else format(row[name], ".1%") for name in ("precision", "recall")
            )
            precision, recall = shares
            counts = f"{row['links']:>9,}{tenths(row['correct']):>11}{precision:>11}{recall:>9}"
            lines.append(f"  {row['threshold']:>14.4g}{counts}")
        return lines


def _ratio(parts: Floats, wholes: Ints) -> Any:
    return from_numpy(parts / np.maximum(wholes, 1), wholes == 0)


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
