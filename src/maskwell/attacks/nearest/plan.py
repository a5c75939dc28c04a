"""The intruder by distance: it links a record to the one that lies nearest.

argmin over candidates of |A y - B z|, A and B by the plan's distance (`distances`); Goldstein and Shlomo, section 2,
(1) and (3). Searched by `status_search`, measured by `h_index`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np

from ...errors import BadPlan, raise_all
from ...masking import Release
from ...notes import Note
from ...schema import Column
from ...table import Floats, Table
from ..agreement import is_comparable, is_number
from ..blocks import RecordSearch, check_fields
from ..candidate_scores import (
    Batch,
    BestCandidates,
    Blocks,
    assign_candidates,
    check_fields_named,
    guess_from_links,
    option_problems,
)
from ..one_to_one import DENSE_CELLS, proved_gap
from ..protocol import Bools, Guess, IntruderKnowledge, Ints, MarkedGuess, OrderOf
from ..risk import Risk
from .assignment import block_links
from .distances import SAID, Metric, among_true, card_distance, euclid, gower, whitened_by_release
from .h_index import measured_h
from .status_search import ComparedRecords, NearestFound, StatusRecords, StatusSearch, as_near

SCALE = 2.0**100  # lifts squared distances, exactly, to where ties are told by their digits alone
SHRINKS = (None, "matrix", "per_variable")
RANKINGS = ("euclid", "same")
# By field, as pairs or a mapping, or a matrix by its rows.
FieldWeights = Mapping[str, float] | Sequence[tuple[str, float]] | Sequence[Sequence[float]] | Floats
WEIGHTS = "weights is {field: weight} or a symmetric positive semi-definite matrix in the order of fields"


@dataclass(frozen=True, kw_only=True)
class NearestRecord(RecordSearch):
    """Link every record to the nearest in its block, and measure h: how far from the target the linked record lies.

    `fields` are amounts (the schema's key columns that are numbers). `distance` is one of

    - "euclid": each field in sds of its open values in the release, which is all that an outsider sees; a field
      without spread there does not count. `weights` weighs the differences: a figure for some fields (others count
      1), or a symmetric positive semi-definite matrix in the order of `fields` (the paper's W);
    - "noise": whitened by the covariance of the noise on the card;
    - "release": whitened by the release's own covariance, for which no card is needed;
    - "posterior": between y and E(y|z), whitened by the posterior covariance, both by the card and the release's
      covariance. For his record among the released ones this is what the intruder links who knows the noise and takes
      everything for normal; a released record that searches for its owner is found by "noise" instead;
    - "gower": city-block, numbers by their range and names as the same or not, each field by its weight. Category
      codes with noise are numbers.

    `shrink="matrix"` compares y with E(y|z) = mu + cov(y) cov(z)^-1 (z - mu), cov(y) = cov(z) - noise (Goldstein and
    Shlomo's (3), transposed), "per_variable" with that of each field by itself. The distances that know the card work
    on the scale on which the noise was added.

    Values that are not open have no distance: statuses must agree before amounts count. The nearest record is the one
    with the fewest fields whose statuses differ (missing against open, a code against another), and among those the
    one at the smallest distance over the fields that are open on both sides.

    `assignment="best"` links every record to its nearest, "one-to-one" lets each candidate be linked once, with the
    smallest sum of squared distances in each block (again after the number of differing statuses). He stands by
    every link. In the table `score` is minus the distance, `mismatches` the number of statuses that differ.

    h counts the true records of the block, of those in the release, that lie strictly closer to the target than the
    true record behind the link: by Euclidean distance in sds of the release, or with `ranked_by="same"` by the
    distance of the search without its shrinking (always so for "gower"). `largest_h` stops counting there, for h and
    for the rank of the right record: on a million records Pr(h < 3) takes a tenth of the time of E(h), which is then
    not known.
    """

    fields: tuple[str, ...] | None = field(default=None, kw_only=False)
    assignment: str = "best"
    distance: str = "euclid"
    shrink: str | None = None
    weights: FieldWeights | None = None
    ranked_by: str = "euclid"
    largest_h: int | None = None

    def __post_init__(self) -> None:
        problems = self.search_problems() + option_problems(self) + _distance_problems(self)
        raise_all(problems + _frozen_weights(self), BadPlan)

    def guess(self, known: IntruderKnowledge, release: Release, order_of: OrderOf) -> Guess:
        """Link the intruder's records with the released ones, without any link."""
        fields, notes = self._fields(known.targets, release.table)
        orders = order_of(known.targets, "known"), order_of(release.table, "released")
        blocks = Blocks(*self.blocks_of(known.targets, release.table), orders)
        compared = ComparedRecords.of((known.targets,), release.table, fields)
        metric = self._metric(fields, compared.levels, release)
        sides = (
            StatusRecords.of(compared.known[0], blocks.known, orders[0]),
            StatusRecords.of(compared.released, blocks.released, orders[1]),
        )
        at = (0, 1) if self.to_masked else (1, 0)
        measured = StatusSearch(sides[at[0]], sides[at[1]], metric, (at[0] == 1, at[1] == 1))
        found, is_tied, gap = _link_searchers(measured, blocks, self)
        guess = guess_from_links(
            self,
            blocks,
            _best(found),
            is_tied,
            _partners(measured, blocks, found, to_masked=self.to_masked),
            scores=(
                _distance_scores(found.distance, metric),
                _distance_scores(found.second_distance, metric),
            ),
            columns={"mismatches": np.where(found.place >= 0, found.differing, 0)},
            fields=fields,
            notes=[
                *notes,
                *metric.notes,
                *([] if gap is None else [Note("attacks.one_to_one_distance", {"gap": proved_gap(gap)})]),
            ],
        )
        figures = {**guess.figures, "measured": measured, "blocks": blocks, "gap": gap}
        return replace(guess, figures=figures)

    def assessed(self, risk: Risk, marked: MarkedGuess) -> Risk:
        """Add h, the rank of the right candidate and how outlying each target is to what was found."""
        fields, release = risk.fields, marked.masking.release
        compared = ComparedRecords.of((marked.known, marked.masking.truth), release.table, fields)
        h = measured_h(
            marked,
            compared.known,
            self._ranking(fields, compared.levels, marked),
            [name for name, count in zip(fields, compared.levels, strict=True) if not count],
            self.largest_h,
        )
        return replace(risk, h=h, table=h.on_table(risk.table), records=len(marked.masking.truth))

    def _ranking(self, fields: tuple[str, ...], levels: tuple[int, ...], marked: MarkedGuess) -> Metric:
        """Return the distance by which true records are ranked."""
        if self.distance == "gower":
            return self._metric(fields, levels, marked.masking.release)
        if self.ranked_by == "same":
            return among_true(marked.guess.figures["measured"].metric, self.distance, self.weights)
        return euclid(fields, marked.masking.release.table)

    def _metric(self, fields: tuple[str, ...], levels: tuple[int, ...], release: Release) -> Metric:
        """Resolve the distance from the release alone."""
        if self.distance == "gower":
            return gower(fields, release.table, levels, np.diag(self._weighing(fields)))
        weights = None if self.weights is None else self._weighing(fields)
        if self.distance in ("noise", "posterior") or self.shrink is not None:
            return card_distance(self.distance, self.shrink, fields, release, weights)
        if self.distance == "release":
            return whitened_by_release(fields, release.table)
        return euclid(fields, release.table, weights)

    def _weighing(self, fields: tuple[str, ...]) -> Floats:
        """Return W for these fields."""
        if self.weights is None:
            return np.eye(len(fields))
        frozen: Any = self.weights  # a tuple of pairs or of rows: see `_frozen_weights`
        if not isinstance(frozen[0][0], str):
            if len(frozen) != len(fields):
                raise BadPlan(
                    f"weights is a matrix of {len(frozen)} rows for {len(fields)} fields: name fields to fit it"
                )
            return np.array(frozen)
        given = dict(frozen)
        problems = [
            f"weights name {name!r}, which is not among the fields" for name in given if name not in fields
        ]
        figures = [float(given.get(name, 1.0)) for name in fields]
        raise_all(problems or ([] if any(figures) else ["no field has a weight above 0"]), BadPlan)
        return np.diag(figures)

    def _takes_names(self, known: Table, released: Column) -> bool:
        """Whether names can be compared: not a number with the group it fell in."""
        if self.distance != "gower":
            return False
        return released.name not in known.schema or is_comparable(known.schema[released.name], released)

    def _on_left_out(self, columns: tuple[str, ...]) -> list[Note]:
        """Say which key columns are not compared."""
        if not columns:
            return []
        if self.distance == "gower":
            return [Note("attacks.no_distance_on_groups", {"columns": columns})]
        return [Note("attacks.no_distance_on_names", {"columns": columns})]

    def _fields(self, known: Table, released: Table) -> tuple[tuple[str, ...], list[Note]]:
        notes: list[Note] = []
        fields = self.fields
        if fields is None:
            blocks = self.match_columns(released.schema)
            keys = [c for c in released.schema.columns if "key" in c.roles and c.name not in blocks]
            fields = tuple(c.name for c in keys if c.is_number or self._takes_names(known, c))
            notes = self._on_left_out(tuple(c.name for c in keys if c.name not in fields))
        check_fields_named(fields, "name amounts in fields")
        check_fields(fields, known, released)
        if self.distance != "gower":
            names = [name for name in fields if not _is_amount(known, released, name)]
            raise_all(
                [f"column {name!r} holds names, not amounts: make it a matching block" for name in names],
                BadPlan,
            )
        return fields, notes


def _is_amount(known: Table, released: Table, name: str) -> bool:
    """Whether a distance makes sense: released numbers of amounts or of category codes."""
    ours, theirs = known.schema[name], released.schema[name]
    return theirs.is_number and ours.kind != "text" and is_comparable(ours, theirs)


def _distance_problems(plan: NearestRecord) -> list[str]:
    """List what is wrong with the distance, its shrinking and the ranking of true records."""
    problems = []
    if plan.distance not in tuple(SAID):
        problems.append(f"distance must be one of {', '.join(map(repr, SAID))}, not {plan.distance!r}")
    if plan.shrink not in SHRINKS:
        problems.append(f"shrink must be 'matrix', 'per_variable' or left out, not {plan.shrink!r}")
    elif plan.shrink is not None and plan.distance == "gower":
        problems.append("distance 'gower' takes no shrink: leave it out, or take distance 'euclid'")
    most = plan.largest_h
    if most is not None and (not isinstance(most, Integral) or isinstance(most, bool) or most < 1):
        problems.append(f"largest_h must be a whole number of at least 1, not {most!r}")
    if plan.ranked_by not in RANKINGS:
        problems.append(f"ranked_by must be 'euclid' or 'same', not {plan.ranked_by!r}")
    if plan.weights is not None and plan.distance not in ("euclid", "gower"):
        problems.append(f"weights are for distance 'euclid' or 'gower', not for {plan.distance!r}")
    return problems


def _frozen_weights(plan: NearestRecord) -> list[str]:
    """Make weights a tuple of pairs (field, weight) or of the rows of a matrix; return what is wrong with them."""
    given: Any = plan.weights
    if given is None:
        return []
    rows = given.items() if isinstance(given, Mapping) else given
    if not isinstance(rows, Iterable) or any(not isinstance(row, Sequence | np.ndarray) for row in rows):
        return [WEIGHTS]
    pairs = tuple(map(tuple, rows))
    if pairs and all(len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
        return _weight_problems(plan, dict(pairs))
    if plan.distance == "gower":
        return ["weights of distance 'gower' are figures for fields: {field: weight}"]
    return _matrix_problems(plan, pairs)


def _weight_problems(plan: NearestRecord, weights: Mapping[str, Any]) -> list[str]:
    wrong = [name for name, w in weights.items() if not (is_number(w) and 0 <= w < np.inf)]
    if wrong:
        return [f"the weight of {name!r} must be a number from 0 on" for name in wrong]
    object.__setattr__(plan, "weights", tuple((name, float(w)) for name, w in weights.items()))
    return []


def _matrix_problems(plan: NearestRecord, rows: tuple[Any, ...]) -> list[str]:
    if not rows or any(len(row) != len(rows) or not all(map(is_number, row)) for row in rows):
        return [WEIGHTS]
    matrix = np.array(rows, dtype=np.float64)
    object.__setattr__(plan, "weights", tuple(map(tuple, matrix.tolist())))
    if not np.isfinite(matrix).all() or not np.array_equal(matrix, matrix.T):
        return [WEIGHTS]
    values = np.linalg.eigvalsh(matrix)
    return [] if values[-1] > 0 and values[0] >= -1e-9 * values[-1] else [WEIGHTS]


def _distance_scores(distance: Floats, metric: Metric) -> Floats:
    """Return minus the distance, as a table shows it."""
    return -np.sqrt(distance) if metric.norm == 2 else -distance


def _best(found: NearestFound) -> BestCandidates:
    """Return links in the form that all intruders answer by."""
    nothing = np.zeros(len(found.place))
    return BestCandidates(
        -found.distance, found.ties, found.place, -found.second_distance, found.second, nothing
    )


def _link_searchers(
    measured: StatusSearch, blocks: Blocks, plan: NearestRecord
) -> tuple[NearestFound, Callable[[Ints, Ints], Bools], float | None]:
    """Link every searcher; return the links, a function that tells whether candidates tie with them, and the gap."""
    if plan.assignment == "one-to-one":
        return _one_to_one(measured, blocks, to_masked=plan.to_masked)
    found = measured.nearest()

    def is_tied(rows: Ints, places: Ints) -> Bools:
        same = measured.searchers.blocks[rows] == measured.candidates.blocks[places]
        tied = np.zeros(len(rows), bool)
        near = measured.pairs(rows[same], places[same])
        tied[same] = _not_farther(near, (found.differing[rows[same]], found.distance[rows[same]]))
        return tied

    return found, is_tied, None


def _one_to_one(
    measured: StatusSearch, blocks: Blocks, *, to_masked: bool
) -> tuple[NearestFound, Callable[[Ints, Ints], Bools], float]:
    counts = len(blocks.known), len(blocks.released)
    links = assign_candidates(_batches(measured, blocks, to_masked=to_masked), counts, to_masked)
    gap = links.gap / SCALE
    for known, released in _large(blocks):
        near, far = (known, released) if to_masked else (released, known)
        block = block_links(measured, near, far)
        rows = np.flatnonzero(block.place >= 0)
        links.alike[far] = far[block.alike]
        links.best.place[near[rows]] = far[block.place[rows]]
        links.best.ties[near[rows]] = np.bincount(block.alike)[block.alike[block.place[rows]]]
        gap += block.gap
    place = links.best.place
    found = replace(NearestFound.nothing(len(place)), place=place, ties=links.best.ties)
    rows = np.flatnonzero(place >= 0)
    found.differing[rows], found.distance[rows] = measured.pairs(rows, place[rows])
    return found, links.is_tied, gap


def _large(blocks: Blocks) -> list[tuple[Ints, Ints]]:
    """Return both sides of the blocks whose pairs are too many for scipy's matrix."""
    return [(known, released) for _, known, released in blocks if len(known) * len(released) > DENSE_CELLS]


def _batches(measured: StatusSearch, blocks: Blocks, *, to_masked: bool) -> Iterator[Batch]:
    """Score the pairs of each small block: minus the squared distance, differing statuses first.

    A differing status adds more to a squared distance than all open fields of a pair together.
    """
    for _, known, released in blocks:
        if len(known) * len(released) > DENSE_CELLS:
            continue
        differing, distance = measured.table(*((known, released) if to_masked else (released, known)))
        cost = distance if measured.metric.norm == 2 else distance**2
        scores = -SCALE * (differing * (cost.max() + 1.0) + cost)
        yield Batch(known, released, scores if to_masked else np.ascontiguousarray(scores.T))


def _not_farther(near: tuple[Ints, Floats], other: tuple[Ints, Floats]) -> Bools:
    """Whether pairs lie as near as others or nearer: fewer differing statuses, or as many and no larger distance."""
    return np.asarray((near[0] < other[0]) | ((near[0] == other[0]) & as_near(near[1], other[1])))


def _partners(
    measured: StatusSearch, blocks: Blocks, found: NearestFound, *, to_masked: bool
) -> Callable[[int], Ints]:
    """Return a function that lists the released records an intruder would not claim for one of his, nearest first."""

    def partners(known: int) -> Ints:
        released = blocks.released_with(known)
        if not len(released):
            return released
        both = np.full(len(released), known), released
        near = measured.pairs(*(both if to_masked else both[::-1]))
        order = np.lexsort((near[1], near[0]))
        if to_masked:
            least = near[0][order[:1]], near[1][order[:1]]
            claimed = (released == found.place[known]) | _not_farther(near, least)
        else:
            theirs = found.differing[released], found.distance[released]
            claimed = (found.place[released] == known) | _not_farther(near, theirs) & (
                found.place[released] >= 0
            )
        return np.asarray(released[order[~claimed[order]]])

    return partners
