"""All tests of a release's residuals: which scores meet which classes, orders, groups and digits.

The scores are randomised quantile residuals (Dunn and Smyth 1996, `cells`): by the card independent N(0, 1) whatever
the true values are, so that every statistic made with the truth alone has an exact law. Called once by `findings` for
all its checks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...laws.chain import combined_of
from ...notes import Note
from ..evidence import Evidence
from . import (
    coincidences,
    congruences,
    digit_families,
    families,
    fine_phases,
    joint_turns,
    noise_matches,
    own_values,
    products,
    residue_families,
    residue_matches,
    signs,
    spectra,
    turns,
)
from .cells import ScoredCells, inclusion_scores, jitter, score_column, wrong_totals
from .digits import MODULI, digit_scores
from .families import Score
from .joint import is_joint, record_size, whitened_scores
from .lags import Lags, lagged_trends
from .large_files import within_bounds
from .ledger import Ledger
from .nesting import ContinuedColumns, given_earlier
from .products import NormalRanks
from .truths import (
    FEWEST,
    ORIGINAL,
    RecordClasses,
    TrueColumn,
    crossed_classes,
    ends_of,
    groupings,
    is_moved,
    original_places,
    position,
    released_position,
    true_columns,
)
from .views import PARTS, circle_views, fine_view, size_view

MOST_PAIRS = 45  # of released columns whose noises are compared class by class: all of ten columns


@dataclass(frozen=True)
class Battery:
    """What was tested and found: the ledger, impossible values by column, and what could not be tested and why.

    `chosen` has the number of cells of columns of which some were drawn, `not_continued` the columns that were not
    tested given the earlier release, and why, `residues` how many records were looked at modulo many numbers, and
    `matched` how many for residues that agree.
    """

    ledger: Ledger
    impossible: dict[str, dict[str, int]]
    untested: dict[str, Note]
    marginals_only: dict[tuple[str, ...], Note]
    scored: dict[str, int]
    records: int
    is_part: bool = False
    chosen: dict[str, int] = field(default_factory=dict)
    not_continued: dict[str, Note] = field(default_factory=dict)
    residues: congruences.CongruenceCounts | None = None
    matched: int = 0


@dataclass
class TestGround:
    """What all scores are sorted by, made once."""

    evidence: Evidence
    columns: tuple[TrueColumn, ...]
    original: TrueColumn
    cross: tuple[RecordClasses, ...]
    ranks: NormalRanks
    bits: tuple[tuple[str, ...], signs.Bits]
    is_part: bool = False
    released: dict[str, TrueColumn] = field(default_factory=dict)
    lagged: dict[int, Lags] = field(default_factory=dict)

    @classmethod
    def of(cls, evidence: Evidence, is_part: bool = False) -> TestGround:
        """Read the truth file."""
        columns = true_columns(evidence)
        original = position(ORIGINAL, original_places(evidence))
        ranks = NormalRanks.of((*columns, original))
        bits = signs.truth_bits((*columns, original), evidence.masked_columns)
        return cls(evidence, columns, original, tuple(crossed_classes(columns)), ranks, bits, is_part)

    def placed(self, column: str) -> TrueColumn:
        """Return where the values of a column leave."""
        label = column if is_moved(self.evidence, column) else ""
        if label not in self.released:
            self.released[label] = released_position(self.evidence, label)
        return self.released[label]

    @property
    def places(self) -> tuple[TrueColumn, TrueColumn]:
        """Where records stood and where they leave."""
        return self.original, self.placed("")

    def positions(self, score: Score) -> tuple[TrueColumn, ...]:
        """Return where the records of a score stood, and where its values leave."""
        return (self.original, self.placed(score.column)) if score.is_placed else (self.original,)

    def lags(self, by: TrueColumn) -> Lags:
        """Return ranks and bits of the true columns in the order of a position."""
        if id(by) not in self.lagged:
            names = (*self.ranks.names, *self.bits[0])
            self.lagged[id(by)] = Lags.of(by, names, np.hstack([self.ranks.matrix, self.bits[1]]))
        return self.lagged[id(by)]

    def own(self, column: str) -> TrueColumn | None:
        """Return the true values of a column, where they are numbers."""
        found = next((one for one in self.columns if one.name == column), None)
        return found if found is not None and found.numbers is not None and found.distinct > 1 else None


def battery(evidence: Evidence, step: Callable[[], None] = lambda: None) -> Battery:
    """Test the residuals of a release, once for all checks; `step` is called as often as `steps_of` says."""
    return evidence.once("residuals", lambda: _battery(evidence, step))


def steps_of(evidence: Evidence) -> int:
    """Return how many steps the tests of residuals have: each column by itself, then with the others."""
    return 2 * len(_masked_names(evidence))


def _battery(whole: Evidence, step: Callable[[], None]) -> Battery:
    ledger, evidence = Ledger(), within_bounds(whole)
    impossible, is_part = _wrong_totals(whole), evidence is not whole
    if is_part:
        _pass_over_all(whole, ledger, impossible)
    ground = TestGround.of(evidence, is_part)
    of = ScoredColumns.of(evidence, step)
    if not is_part:
        impossible |= of.impossible
    for cells in of.cells.values():
        _digit_tests(ledger, ground, cells)
    continued = given_earlier(evidence)
    for name, count in continued.impossible.items():
        impossible.setdefault(name, {})["other than in the earlier release, though with the same noise"] = (
            count
        )
    further = _further(evidence, of.scores, of.independent, continued)
    for i, score in enumerate((*of.scores, *further)):
        _score_tests(ledger, ground, score)
        if i < len(of.scores):
            step()
    for _ in _masked_names(evidence)[len(of.scores) :]:  # columns without scores are done as well
        step()
    drawn, matched = _joint_tests(ledger, ground, of)
    scored = {score.label: len(score.known) for score in (*of.scores, *further)}
    unlike = (of.chosen, continued.untested, drawn, matched)
    seen = (of.untested, of.marginals_only, scored, evidence.records, is_part)
    return Battery(ledger, impossible, *seen, *unlike)


@dataclass(frozen=True)
class ScoredColumns:
    """The scores of all masked columns, and those that are independent within records; what has none, and why."""

    scores: list[Score]
    independent: list[Score]
    cells: dict[str, ScoredCells]
    impossible: dict[str, dict[str, int]]
    untested: dict[str, Note]
    marginals_only: dict[tuple[str, ...], Note]
    chosen: dict[str, int]

    @classmethod
    def of(cls, evidence: Evidence, step: Callable[[], None] = lambda: None) -> ScoredColumns:
        """Score every masked cell by the law on the card."""
        scores, cells = list[Score](), dict[str, ScoredCells]()
        impossible, untested, chosen = dict[str, dict[str, int]](), dict[str, Note](), dict[str, int]()
        for name in _masked_names(evidence):
            one = score_column(evidence, name)
            step()
            if one.impossible:
                impossible[name] = one.impossible
            if one.scores is None:
                # One that is only put on its unit leaves in clear.
                if name in evidence.masked_columns and one.untested is not None:
                    untested[name] = one.untested
                continue
            scores.append(Score(name, one.scores, name))
            chosen |= {} if one.of_cells is None else {name: one.of_cells}
            if one.cells is not None:
                cells[name] = one.cells
        independent, marginals_only = _independent(evidence, scores, cells)
        return cls(scores, independent, cells, impossible, untested, marginals_only, chosen)


def _joint_tests(
    ledger: Ledger, ground: TestGround, of: ScoredColumns
) -> tuple[congruences.CongruenceCounts | None, int]:
    """Make the tests that take several columns at once; returns what was looked at for residues."""
    seed, left = ground.evidence.seed, _conditional_sd_shares(ground.evidence)
    for score in of.scores:
        coincidences.noise_from_truth(ledger, score, ground.columns, of.cells.get(score.column))
    _pair_sizes(ledger, of.independent)
    _between_tests(ledger, ground, of.scores, of.independent)
    signs.signs(ledger, of.independent, *ground.bits, seed)
    coincidences.noise_of_columns(ledger, of.independent, of.cells)
    columns = (*ground.columns, *ground.places)
    noise_matches.noise_matches(ledger, of.scores, columns, seed)
    fine_phases.fine_phases(ledger, of.scores, columns, ground.bits, seed)
    fine_phases.phases_of_two(ledger, of.independent, columns, seed)
    turns.turns(ledger, of.independent, columns, ground.places, seed)
    joint_turns.joint_turns(ledger, of.independent, columns, seed)
    drawn = congruences.congruences(ledger, of.cells, columns, left, seed)
    return drawn, residue_matches.residue_matches(ledger, of.cells, columns, left, seed)


def _wrong_totals(evidence: Evidence) -> dict[str, dict[str, int]]:
    return {
        total: {"other than the sum of its released parts": count}
        for total, count in wrong_totals(evidence).items()
    }


def _pass_over_all(evidence: Evidence, ledger: Ledger, impossible: dict[str, dict[str, int]]) -> None:
    """Ask of all records of a large file, column by column, what needs no classes of other columns."""
    for name in _masked_names(evidence):
        one = score_column(evidence, name)
        if one.impossible:
            impossible[name] = one.impossible
        if one.scores is None:
            continue
        score = Score(name, one.scores, name)
        if len(score.known) >= FEWEST:
            _shape_tests(ledger, score)
        if one.cells is not None:
            digit_families.left_true(ledger, one.cells)
            families.selections(ledger, score, ends_of(name, one.cells))


def _masked_names(evidence: Evidence) -> list[str]:
    """Return the columns that a law speaks of, those that it only rounds too, and other masked ones."""
    schema = evidence.masking.masked.schema
    spoken = {*evidence.masked_columns, *evidence.masking.card.columns}
    return [column.name for column in schema.columns if column.name in spoken and not column.drop]


def _independent(
    evidence: Evidence, scores: list[Score], cells: dict[str, ScoredCells]
) -> tuple[list[Score], dict[tuple[str, ...], Note]]:
    """Return scores that are independent within records too: those of correlated noise given the columns before."""
    by_name = {score.column: score for score in scores}
    said = dict[tuple[str, ...], Note]()
    for law in map(combined_of, evidence.masking.card.laws):
        names = [name for name in law.columns if name in by_name]
        if not is_joint(law) or len(names) < 2:
            continue
        found, why = whitened_scores(evidence, law, {name: cells[name] for name in names if name in cells})
        if why is not None:
            said[tuple(names)] = why
        for name in names:
            if name in found:
                by_name[name] = Score(f"{name} given the columns before", found[name], name)
            else:
                del by_name[name]
    return list(by_name.values()), said


def _conditional_sd_shares(evidence: Evidence) -> dict[str, float]:
    """Return the share of each column's sd that is left given the noises of the others, of correlated laws."""
    found = dict[str, float]()
    for law in map(combined_of, evidence.masking.card.laws):
        if is_joint(law):
            sds = np.sqrt(np.diag(law.noise.covariance))
            found |= dict(
                zip(law.columns, (law.noise.resolution / np.where(sds > 0, sds, 1.0)).tolist(), strict=True)
            )
    return found


def _further(
    evidence: Evidence, scores: list[Score], independent: list[Score], continued: ContinuedColumns
) -> list[Score]:
    """Return the scores beside those of single columns: whitened ones, sizes, inclusion, given an earlier release."""
    plain = {id(score) for score in scores}
    further = [score for score in independent if id(score) not in plain]
    size = record_size([score.values for score in independent]) if len(independent) > 1 else None
    if size is not None and np.count_nonzero(~np.isnan(size)) >= FEWEST:
        further.append(Score("whole records", size, is_size=True))
    inclusion = inclusion_scores(evidence)
    if inclusion is not None:
        further.append(Score("inclusion in the sample", inclusion, is_placed=False))
    for name, values in continued.scores.items():
        further.append(Score(f"{name} given the earlier release", values, name))
    return further


def _pair_sizes(ledger: Ledger, independent: list[Score]) -> None:
    """Count records whose noise is too small in two columns at once: of ten columns the others would hide them."""
    pairs = [(one, other) for i, one in enumerate(independent) for other in independent[i + 1 :]]
    for one, other in (
        pairs[:MOST_PAIRS] if len(independent) > 2 else []
    ):  # of two columns it is the whole record
        size = record_size([one.values, other.values])
        both = Score(f"{one.label} and {other.label} together", size, is_size=True)
        if len(both.known) >= FEWEST:
            families.tails(ledger, both)


def _score_tests(ledger: Ledger, ground: TestGround, score: Score) -> None:
    """Make all tests of one column of scores."""
    if len(score.known) < FEWEST:
        return
    if not (ground.is_part and score.label == score.column):  # that of a column was made of all records
        _shape_tests(ledger, score)
    families.repeats(ledger, score)
    positions = ground.positions(score)
    columns = (*ground.columns, *positions)
    _class_tests(ledger, score, columns)
    for classes in ground.cross:
        families.classes(ledger, score, classes)
    for column in columns:
        families.trends(ledger, score, column)
        products.waves(ledger, score, column)
    _view_tests(ledger, ground, score, positions)
    _order_tests(ledger, ground, score, positions)
    for label, codes in groupings(ground.columns, positions):
        families.groups(ledger, score, label, codes)


def _order_tests(ledger: Ledger, ground: TestGround, score: Score, positions: tuple[TrueColumn, ...]) -> None:
    """Compare neighbours by position and by every true column; at all distances where the order is its own."""
    own = ground.own(score.column)
    ordered = [one for one in ground.columns if one.numbers is not None and one.distinct > 1]
    orders = [*positions, *([own] if own is not None else []), *(ordered if score.is_size else [])]
    for order in orders:
        families.neighbours(ledger, score, order)
        spectra.succession(ledger, score, order)
    others = [one for one in ordered if one is not own and not score.is_size]
    for one in (score, size_view(score)):
        for order in others:
            families.neighbours(ledger, one, order, lags=False)


def _shape_tests(ledger: Ledger, score: Score) -> None:
    """Test size, shape and tails of all scores of a column."""
    families.whole(ledger, score)
    families.bins(ledger, score)
    families.tails(ledger, score)


def _view_tests(ledger: Ledger, ground: TestGround, score: Score, positions: tuple[TrueColumn, ...]) -> None:
    """Test a score and its size along products and inside classes, and its size and fine structure by class."""
    size = size_view(score)
    for one in (score, size):
        products.product_trends(ledger, one, ground.ranks)
        products.class_trends(ledger, one, ground.ranks)
    for one in (size, *(fine_view(score, parts) for parts in PARTS)):
        families.bins(ledger, one)
        _classes_and_trends(ledger, one, (*ground.columns, *positions))
    own = ground.own(score.column)
    if own is not None:
        own_values.own_values(ledger, (score, size), own)
    residue_families.residues(ledger, (score, size), ground.columns, score.column)
    for order in positions:
        families.neighbours(ledger, size, order)
        for one in (score, size):
            lagged_trends(ledger, one, ground.lags(order))
        for one in (score, size):
            residue_families.every_so_many(ledger, one, order)
    for label, codes in groupings(ground.columns, positions):
        families.groups(ledger, size, label, codes)


def _classes_and_trends(ledger: Ledger, score: Score, columns: tuple[TrueColumn, ...]) -> None:
    _class_tests(ledger, score, columns)
    for column in columns:
        families.trends(ledger, score, column)


def _class_tests(ledger: Ledger, score: Score, columns: tuple[TrueColumn, ...]) -> None:
    """Test a score by the values or tenths of every column, by both ends of it and by its last digits."""
    for column in columns:
        if column.classes is not None:
            families.classes(ledger, score, column.classes)
        families.selections(ledger, score, column.ends)
        for modulus in (2, 10):
            residues = column.residues(modulus)
            if residues is not None:
                labels = tuple(f"{column.name} modulo {modulus} is {i}" for i in range(modulus))
                families.classes(ledger, score, RecordClasses(residues, labels))


def _digit_tests(ledger: Ledger, ground: TestGround, cells: ScoredCells) -> None:
    """Make the tests of released values and their digits, one modulus at a time."""
    if not ground.is_part:
        digit_families.left_true(ledger, cells)
    columns = (*ground.columns, ground.original, ground.placed(cells.name))
    count, ends = len(ground.original.codes), (cells.tails(cells.lower), cells.tails(cells.upper))
    for modulus in MODULI:
        uniform = jitter(ground.evidence, f"{cells.name} modulo {modulus}")[cells.at]
        found, usable = digit_scores(cells, ends, modulus, uniform)
        if np.count_nonzero(usable) < FEWEST:
            continue
        values = np.full(count, np.nan)
        values[cells.at[usable]] = found[usable]
        score = Score(f"{cells.name} modulo {modulus}", values, cells.name, is_digit=True)
        _shape_tests(ledger, score)
        _class_tests(ledger, score, columns)
        for column in columns:
            digit_families.digits(ledger, score, modulus, column)
        if modulus == digit_families.DECIMAL:
            own = sorted(columns, key=lambda one: one.name != cells.name)  # its own digits first
            digit_families.digit_characters(ledger, score, own)
            for column in columns:
                digit_families.digits_by_place(ledger, score, column)
    digit_families.steps(ledger, cells)


def _between_tests(ledger: Ledger, ground: TestGround, scores: list[Score], independent: list[Score]) -> None:
    """Compare columns within records, and each with the next record of the others in every order."""
    families.between(ledger, independent, "of one record")
    families.repeats_of_columns(ledger, independent)
    spectra.together(ledger, independent)
    sizes = [size_view(one) for one in independent]
    families.between(ledger, sizes, "of one record")
    columns = (*ground.columns, ground.original)
    pairs = [(one, other) for i, one in enumerate(independent) for other in independent[i + 1 :]]
    for one, other in pairs[:MOST_PAIRS]:
        for word, sign in (("plus", 1.0), ("minus", -1.0)):
            both = Score(f"{one.label} {word} {other.label}", (one.values + sign * other.values) * 0.5**0.5)
            if len(both.known) >= FEWEST:
                _class_tests(ledger, both, columns)
        for both in circle_views(one, other):
            if len(both.known) >= FEWEST:
                families.bins(ledger, both)
                _classes_and_trends(ledger, both, columns)
    for order in (ground.original, ground.placed("")):
        families.between(ledger, scores, f"of the next record by {order.name}", order.order)
    for score in scores:
        own = ground.own(score.column)
        if own is not None:
            families.between(ledger, scores, f"of the next record by {own.name}", own.order)
