"""The h-index of Goldstein and Shlomo: how far from the target the record lies that an intruder takes for it.

h = (rank of the linked record's own true values by their distance from the target's) - 1: section 2, below their (1);
Pr(h < p) is their (2). Equal records share a rank, and E(h) never stands without Pr(h = 0), since it can be large where
half of the targets are linked rightly. Measured by `NearestRecord.assessed` after every attack.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...arrow_buffers import from_numpy
from ...table import Floats
from ..protocol import Ints, MarkedGuess
from .distances import Metric
from .status_search import StatusRecords, StatusSearch

if TYPE_CHECKING:
    import pyarrow as pa

UNKNOWN = -1  # no h: no link, or nobody to be linked with
LAST = 20  # from here on the paper's tables, and ours, count all h together
OUTER_SHARE = 0.05  # of the targets, those farthest out
SAME = 1e-9  # targets whose outlyingness differs by less are equally outlying
NOTABLE = 0.01  # from this share of twins on a word explains why Pr(h=0) lies above the rate


@dataclass(frozen=True, eq=False)
class HIndex:
    """The h of every link: how many true records lie strictly closer to the target than the one he took for it.

    h = 0 is the target itself, or a record that cannot be told from it. `values` has one h for each record that
    searched (-1 where it has none: no link, or nobody in the other file whom it could be linked to rightly),
    `true_ranks` the rank of the right candidate among all by the intruder's distance (1: the nearest; 0 where there is
    none), `outlyingness` how far the target lies from the centre of the true records, in sds (over its open fields, as
    though the others were like them). `searched_by` says by which distance he searched, `ranked_by` by which true
    records are ranked. `deciles` has a row for each tenth of the targets by outlyingness, the most outlying first;
    `outer_rate` is the share linked correctly among the 5% that lie farthest out. Targets that lie equally far out
    and straddle the edge of a tenth count in part on either side, all alike. `unplaced` counts targets with an h that
    have no place there: no amount of theirs is open. `twins` is the share of targets with h = 0 whose link is another
    record that cannot be told from them: a duplicate, or one with all fields coded alike. Where `largest` is given, h
    and ranks less 1 were counted up to it.
    """

    values: Ints = field(repr=False)
    true_ranks: Ints = field(repr=False)
    ranked_by: str
    deciles: pa.Table = field(repr=False)
    outer_rate: float = float("nan")
    outlyingness: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    searched_by: str = ""
    twins: float = 0.0
    largest: int | None = None

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
        """E(h); never to be read without `at_zero`. NaN where some h was not counted to its end."""
        known = self.known
        return float(known.mean()) if len(known) and not self.is_cut(known) else float("nan")

    def is_cut(self, values: Ints) -> bool:
        """Whether counting stopped before the end of some h."""
        return self.largest is not None and bool((values >= self.largest).any())

    @property
    def unplaced(self) -> int:
        """How many targets have an h and no outlyingness."""
        return int(np.isnan(self.outlyingness[self.values >= 0]).sum()) if len(self.outlyingness) else 0

    def below(self, count: int) -> float:
        """Pr(h < count); NaN where h was not counted so far."""
        known = self.known
        if self.largest is not None and count > self.largest and self.is_cut(known):
            return float("nan")
        return float((known < count).mean()) if len(known) else float("nan")

    @property
    def cumulative(self) -> tuple[float, ...]:
        """Pr(h <= 0), Pr(h <= 1) ... Pr(h <= 19), and 1 for "20 and more": a column of the paper's tables."""
        return (*(self.below(count) for count in range(1, LAST + 1)), 1.0)

    @property
    def ranks(self) -> Ints:
        """The ranks of the right candidates, where there is one."""
        return np.asarray(self.true_ranks[self.true_ranks > 0])

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record."""
        ranks = self.ranks
        return {
            "targets": len(self.known),
            "at_zero": _plain(self.at_zero),
            "below_3": _plain(self.below(3)),
            "twins": _plain(self.twins),
            "expected": _plain(self.expected),
            "cumulative": [_plain(share) for share in self.cumulative],
            "true_rank": {
                "nearest": _plain(float((ranks == 1).mean()) if len(ranks) else np.nan),
                "median": _plain(_quantile(ranks, 0.5)),
                "percentile_95": _plain(_quantile(ranks, 0.95)),
            },
            "outer_rate": _plain(self.outer_rate),
            "unplaced": self.unplaced,
            "searched_by": self.searched_by,
            "ranked_by": self.ranked_by,
            "deciles": self.deciles.to_pylist(),
        }

    def lines(self) -> list[str]:
        """Return what a `Risk` prints of it."""
        if not len(self.known):
            return []
        ranks = self.ranks
        lines = [
            "",
            f"  nearest by {self.searched_by}",
            f"  h by {self.ranked_by}:",
            f"  Pr(h=0) {self.at_zero:.1%}, Pr(h<3) {_format_figure(self.below(3), '.1%')}, E(h) "
            f"{_format_figure(self.expected, ',.1f')}",
        ]
        if self.twins >= NOTABLE:
            lines.append(
                f"  Pr(h=0) has {self.twins:.1%} in it that are linked to another record just like them"
            )
        if len(ranks):
            lines.append(
                f"  the right record is nearest for {(ranks == 1).mean():.1%}, its rank is "
                f"{_quantile(ranks, 0.5):,.0f} at the median and {_quantile(ranks, 0.95):,.0f} at the 95th percentile"
            )
        return lines + self._decile_lines()

    def _decile_lines(self) -> list[str]:
        rows = self.deciles.to_pylist()
        if not rows:
            return []
        heads = f"{'targets':>8}{'Pr(h=0)':>9}{'linked':>9}{'E(h)':>9}{'median rank':>13}"
        lines = ["", f"  {'tenth by outlyingness':<22}{heads}"]
        for row in rows:
            rank = "-" if row["median_true_rank"] is None else f"{row['median_true_rank']:,.0f}"
            mean = "-" if row["expected_h"] is None else f"{row['expected_h']:,.1f}"
            figures = f"{row['targets']:>8,}{row['at_zero']:>9.1%}{row['rate']:>9.1%}{mean:>9}"
            name = {1: "innermost", len(rows): "outermost"}.get(row["decile"], "")
            lines.append(f"  {row['decile']:>4} {name:<17}{figures}{rank:>13}")
        lines.append(f"  of the {OUTER_SHARE:.0%} farthest out {self.outer_rate:.1%} are linked correctly")
        if self.unplaced:
            lines.append(
                f"  {self.unplaced:,} more targets have no place in these tenths: no amount of theirs is open"
            )
        return lines

    def on_table(self, table: pa.Table) -> pa.Table:
        """Add h, the rank of the right candidate and outlyingness to a table of links."""
        columns: dict[str, Any] = {
            "h": from_numpy(self.values, self.values < 0),
            "true_rank": from_numpy(self.true_ranks, self.true_ranks < 1),
            "outlyingness": from_numpy(self.outlyingness, np.isnan(self.outlyingness)),
        }
        for name, values in columns.items():
            table = table.append_column(name, values)
        return table


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _format_figure(value: float, form: str) -> str:
    return "not counted" if np.isnan(value) else format(value, form)


def _quantile(values: Ints, share: float) -> float:
    return float(np.quantile(values, share, method="inverted_cdf")) if len(values) else float("nan")


def measured_h(
    marked: MarkedGuess,
    compared: Sequence[Floats],
    metric: Metric,
    amounts: Sequence[str],
    largest: int | None = None,
) -> HIndex:
    """Measure h of a marked answer: `compared` are the intruder's and the true records, `metric` ranks the latter."""
    search: StatusSearch = marked.guess.figures["measured"]
    values, ranks = (
        _count_closer_records(marked, compared, metric, largest),
        _true_ranks(marked, search, largest),
    )
    outlying = _outlyingness(marked, amounts)
    claimed = marked.marks.share * marked.guess.claimed
    known = values >= 0
    placed = Outermost.of(np.where(known, outlying, np.nan))
    outer = placed.weights(0, int(np.ceil(OUTER_SHARE * len(placed))))
    twins = (values == 0) & ~marked.marks.correct
    return HIndex(
        values,
        ranks,
        metric.said,
        _deciles(placed, values, ranks, claimed, largest),
        float(np.average(claimed, weights=outer)) if len(placed) else float("nan"),
        outlying,
        search.metric.said,
        float(twins[known].mean()) if known.any() else float("nan"),
        largest,
    )


def _count_closer_records(
    marked: MarkedGuess, compared: Sequence[Floats], metric: Metric, most: int | None
) -> Ints:
    """Count the true records in the release that lie closer to each target than the one behind its link."""
    guess, marks, blocks = marked.guess, marked.marks, marked.guess.figures["blocks"]
    order = marked.masking.order
    everybody = StatusRecords.of(compared[1], np.zeros(compared[1].shape[1], np.int64), np.empty(0, np.int64))
    points = everybody.take(order, blocks.released)
    held = StatusRecords.of(compared[0], blocks.known, np.arange(len(blocks.known)))
    ranked = StatusSearch(held if guess.to_masked else points, points, metric, (False, False))
    links = ranked if guess.to_masked else StatusSearch(points, held, metric, (False, False))
    rows = np.flatnonzero((guess.found >= 0) & (marks.counterpart >= 0))
    differing, distance = links.pairs(guess.searcher[rows], guess.found[rows])
    h = np.full(len(guess), UNKNOWN, np.int64)
    h[rows] = ranked.closer(guess.searcher[rows], differing, distance, most)
    if (
        guess.to_masked
    ):  # a target whose own record fell into another block lies closest to itself all the same
        h[rows] += ~marks.findable[rows] & ((differing > 0) | (distance > 0))
    return h if most is None else np.minimum(h, most)


def _true_ranks(marked: MarkedGuess, search: StatusSearch, most: int | None) -> Ints:
    """Return 1 + how many candidates lie closer to each searcher than the right one, by the intruder's own distance."""
    guess, marks = marked.guess, marked.marks
    rows = np.flatnonzero(marks.findable)
    near = search.pairs(guess.searcher[rows], marks.counterpart[rows])
    ranks = np.zeros(len(guess), np.int64)
    ranks[rows] = 1 + search.closer(guess.searcher[rows], *near, most)
    return ranks


def _outlyingness(marked: MarkedGuess, amounts: Sequence[str]) -> Floats:
    """Return how far each target lies from the centre of the true records, in sds, NaN where no amount is open."""
    from ...engines.local import Local

    truth = marked.masking.truth.values(amounts)
    targets = marked.known.values(amounts) if marked.guess.to_masked else truth[marked.masking.order]
    moments = Local().moments(truth)
    sds = np.where(moments.high > moments.low, moments.sds, np.inf)
    squares = ((targets[marked.guess.searcher] - moments.means) / sds) ** 2
    counts = (~np.isnan(squares)).sum(axis=1)
    share = np.divide(len(amounts), counts, out=np.full(len(counts), np.nan), where=counts > 0)
    return np.asarray(np.sqrt(np.nansum(squares, axis=1) * share))


@dataclass(frozen=True, slots=True)
class Outermost:
    """Targets in order of their outlyingness, the most outlying first; equal ones share their places.

    `first` and `last` have for each target the places from and before which those as outlying as it lie; both are 0
    for targets without a place.
    """

    first: Ints
    last: Ints

    @classmethod
    def of(cls, outlying: Floats) -> Outermost:
        """Place targets; NaN has no place."""
        first, last = np.zeros(len(outlying), np.int64), np.zeros(len(outlying), np.int64)
        order = np.argsort(-outlying, kind="stable")
        order = order[: len(order) - int(np.isnan(outlying).sum())]
        edges = np.flatnonzero(np.diff(-outlying[order], prepend=-np.inf) > SAME)
        sizes = np.diff(edges, append=len(order))
        first[order] = np.repeat(edges, sizes)
        last[order] = np.repeat(edges + sizes, sizes)
        return cls(first, last)

    def __len__(self) -> int:
        return int(self.last.max(initial=0))

    def weights(self, start: int, stop: int) -> Floats:
        """Return how much of each target lies from one place up to before another, ties in equal parts."""
        inside = np.minimum(self.last, stop) - np.maximum(self.first, start)
        return np.asarray(np.maximum(inside, 0) / np.maximum(self.last - self.first, 1))


def _deciles(placed: Outermost, values: Ints, ranks: Ints, share: Floats, largest: int | None) -> Any:
    """Return a row for each tenth of the targets, the outermost first; no mean of h that was not counted to its end."""
    import pyarrow as pa

    count = min(10, len(placed))
    sizes = [len(tenth) for tenth in np.array_split(np.arange(len(placed)), count)] if count else []
    stops = np.cumsum(sizes).tolist()
    weights = [placed.weights(stop - size, stop) for size, stop in zip(sizes, stops, strict=True)]

    def means(figures: Any) -> Any:
        return pa.array([float(np.average(figures, weights=one)) for one in weights], pa.float64())

    columns: dict[str, Any] = {
        "decile": pa.array(range(count, 0, -1), pa.int64()),
        "targets": pa.array(sizes, pa.int64()),
        "at_zero": means(values == 0),
        "rate": means(share),
        "expected_h": means(values) if largest is None else pa.nulls(count, pa.float64()),
        "median_true_rank": pa.array([_median(ranks, one) for one in weights], pa.float64()),
    }
    return pa.table(columns)


def _median(ranks: Ints, weights: Floats) -> float | None:
    """Return the weighted median of the ranks there are."""
    here = np.flatnonzero((ranks > 0) & (weights > 0))
    if not len(here):
        return None
    here = here[np.argsort(ranks[here], kind="stable")]
    summed = np.cumsum(weights[here])
    return float(ranks[here[np.searchsorted(summed, summed[-1] / 2 * (1 - SAME))]])
