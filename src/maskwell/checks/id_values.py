"""Released codes that follow the values of their records, beyond what leaves beside them.

A code is read as a text, as a number, and by the signs at every few places from either end. With w the rank of such a
reading, x that of a true column (dropped ones too, and shares of large categories) and R the projection orthogonal to
what leaves of the same records (ranks, their squares, categories), the partial rank correlation

    r = (R w)'(R x) / (|R w| |R x|),      r sqrt(df) about standard normal where codes have nothing to do with x

(Frisch and Waugh 1933, of ranks), is held against six standard errors; signs without an order by the F test of their
levels, at the same probability. An id with the code of a region, or by the order of released values, tells nothing that
is not there beside it: R takes it away, and what is found is confirmed inside the cells of what leaves (categories, and
parts of numbers) with which the reading goes. Called by `clear_records` for ids of files masked elsewhere and columns
that the truth has not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..table import Floats
from .clear_columns import MOST_CROSSED, cells_of
from .computed_ids import code_texts
from .evidence import Evidence
from .id_readings import FEWEST, Integers, readings, without_frame
from .relations import shared_ranks

MOST = 3_000  # records that are looked at: six standard errors are then a correlation of 0.11
SURE, BY_CHANCE = 6.0, 2e-9  # standard errors, of some thousand readings and columns, and their probability
LEAST = 0.1  # of a correlation, from which on a code tells anything worth a word
LEAST_FREE = 30  # records beyond the columns that leave, below which nothing can be told
PLACES, LONGEST = 12, 4  # of signs that are read from either end, and how many together
MOST_COLUMNS, AT_ONCE = 0.1, 200  # of the records, and in all: numbers, then categories, that are taken away
MOST_LEVELS, IN_LEVEL = 30, 10  # of a released category, and the records of each
LARGE, LARGE_CODES, FEW = (
    0.2,
    0.05,
    50,
)  # shares of true and of code levels, and records: tables are then not sparse
MOST_CELLS = 0.3  # of the records: cells inside which what is found is confirmed
NOTHING_LEFT = 1e-6  # of a variance: what leaves tells the column

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FollowedValue:
    """A true column that a code follows, by which reading, and how closely (a correlation)."""

    column: str
    reading: str
    size: float

    def __str__(self) -> str:
        """Say it without a value."""
        return (
            f"{self.reading} it goes with the true {self.column} beyond what leaves beside it (correlation "
            f"{self.size:.2f})"
        )


def followed_values(evidence: Evidence) -> dict[str, FollowedValue]:
    """Return the released codes that follow a true value of their records, each with what it follows most."""
    names = _code_columns(evidence)
    picked = evidence.sample(purpose=(10,), most=MOST)
    if not names or len(picked) < FEWEST:
        return {}
    where = np.argsort(evidence.masking.order)[picked]
    labels, values = _true_values(evidence, picked)
    leaving = _leaving_columns(evidence, picked, names)
    found = dict[str, FollowedValue]()
    for name in names if labels else ():
        codes = code_texts(evidence.masking.release.table, name, where)
        one = followed_value(codes, labels, values, leaving.beside(_parts_of_number(evidence, name, picked)))
        found |= {} if one is None else {name: one}
    return found


def _code_columns(evidence: Evidence) -> list[str]:
    """Return the id of a file masked elsewhere, and new numbers and texts that are no classes."""
    masking, table = evidence.masking, evidence.masking.release.table
    if masking.given is None:
        return []
    new = [c for c in table.schema.columns if c.name not in masking.truth.schema or "id" in c.roles]
    return [
        c.name
        for c in new
        if "group" not in c.roles
        and ("id" in c.roles or (c.kind != "category" and not table.has_classes(c.name)))
    ]


@dataclass(frozen=True, slots=True)
class LeavingColumns:
    """What leaves of some records: ranks, squares and indicators, and the classes of each column."""

    design: Floats
    classes: tuple[Integers, ...]

    def beside(self, columns: Floats) -> LeavingColumns:
        """Return the same with some columns more."""
        return LeavingColumns(np.column_stack([self.design, columns]), self.classes)

    def basis(self, cells: Integers | None = None) -> Floats:
        """Return an orthonormal basis of the columns, inside cells where these are given."""
        design = self.design if cells is None else _inside(self.design, cells)
        if not design.shape[1]:
            return design
        vectors, sizes, _ = np.linalg.svd(design, full_matrices=False)
        return np.asarray(vectors[:, sizes > 1e-9 * max(float(sizes[0]), 1e-300)])


def _leaving_columns(evidence: Evidence, picked: Integers, codes: Sequence[str]) -> LeavingColumns:
    table = evidence.masking.release.table
    numbers, parts, classes = [np.ones((len(picked), 1))], list[Floats](), list[Integers]()
    for column in table.schema.columns:
        if column.name in codes or column.roles & {"id", "group"}:
            continue
        if not column.is_number and not table.has_classes(column.name):
            continue
        values = evidence.released(column.name)[picked]
        if column.is_number:
            numbers.append(_scores(values))
            classes.append(_parts(values))
            continue
        levels, own, counts = np.unique(values, return_inverse=True, return_counts=True)
        if len(levels) > 1:
            classes.append(own.ravel().astype(np.int64))
        large = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
        large = large[counts[large] >= IN_LEVEL]
        parts.append((own.ravel()[:, None] == large).astype(np.float64))
    most = min(max(1, int(MOST_COLUMNS * len(picked))), AT_ONCE)
    return LeavingColumns(np.column_stack([*numbers, *parts])[:, :most], tuple(classes))


def _parts_of_number(evidence: Evidence, name: str, picked: Integers) -> Floats:
    """Return parts of about equal counts of a new number: what its size tells is for checks of clear columns."""
    if (
        not evidence.masking.masked.schema[name].is_number
        or "id" in evidence.masking.masked.schema[name].roles
    ):
        return np.zeros((len(picked), 0))
    values = evidence.released(name)[picked]
    places = _parts(values)
    return np.column_stack([(places[:, None] == np.unique(places)).astype(np.float64), _scores(values)])


def _parts(values: Floats) -> Integers:
    """Number parts of about equal counts of a number, and where there is none."""
    parts = int(np.clip(len(values) // FEW, 2, MOST_LEVELS))
    places = np.floor((_ranks(values) + 1) / 2 * parts).astype(np.int64)
    return np.where(np.isnan(values), parts, places)


def _scores(values: Floats) -> Floats:
    """Return the ranks of a number between -1 and 1, their squares, the number, and where there is none."""
    known = ~np.isnan(values)
    ranks = _ranks(values)
    spread = float(values[known].std()) if known.any() else 0.0
    scaled = np.where(known, values - values[known].mean(), 0.0) / spread if spread > 0 else ranks
    return np.column_stack([ranks, ranks**2, scaled, (~known).astype(np.float64)])


def _ranks(values: Floats) -> Floats:
    """Return ranks between -1 and 1; 0 where there is no value."""
    known, out = ~np.isnan(values), np.zeros(len(values))
    if known.any():
        out[known] = 2 * shared_ranks(values[known]) / (known.sum() + 1) - 1
    return out


def _true_values(evidence: Evidence, picked: Integers) -> tuple[list[str], Floats]:
    """Return the ranks of true columns that do not leave as they are, and where large classes of them lie."""
    truth, labels, columns = evidence.masking.truth, list[str](), list[Floats]()
    for column in truth.schema.columns:
        if "id" in column.roles or column.name in evidence.clear:
            continue
        values = evidence.true(column.name)[picked]
        labels.append(column.name)
        columns.append(_ranks(values))
        if not column.is_number:
            levels, counts = np.unique(values[~np.isnan(values)], return_counts=True)
            for level in levels[counts >= LARGE * len(values)]:
                labels.append(column.name)
                columns.append((values == level).astype(np.float64))
    return labels, np.column_stack([np.zeros((len(picked), 0)), *columns])


def followed_value(
    codes: Sequence[str], labels: Sequence[str], values: Floats, leaving: LeavingColumns
) -> FollowedValue | None:
    """Return which of some columns codes follow most closely; nothing where chance, or what leaves, explains it."""
    best: FollowedValue | None = None
    basis = leaving.basis()
    targets = _residuals(values, basis)
    for reading, numbers, is_ordered in code_readings(codes):
        tried = [_ranks(numbers)[:, None]] if is_ordered else []
        tried += [levels] if (levels := _levels(numbers)).shape[1] else []
        for columns in tried:
            sizes = _correlations(columns, targets, basis)
            place = int(np.argmax(sizes))
            if sizes[place] <= max(LEAST, best.size if best else 0.0):
                continue
            inside = _correlation_inside(numbers, columns, values[:, place], leaving)
            if inside > LEAST:
                best = FollowedValue(labels[place], reading, float(sizes[place]))
    return best


def _residuals(columns: Floats, basis: Floats) -> Floats:
    """Return what is left of columns beside others, NaN where next to nothing is."""
    centred = columns - columns.mean(axis=0)
    left = centred - basis @ (basis.T @ centred)
    whole = (centred**2).sum(axis=0)
    return np.where((left**2).sum(axis=0) > NOTHING_LEFT * np.maximum(whole, 1e-300), left, np.nan)


def _correlations(columns: Floats, targets: Floats, basis: Floats, cells: int = 0) -> Floats:
    """Return the multiple correlation of columns with each target beside others (in cells); 0 where by chance."""
    from scipy.special import fdtrc, ndtr

    left = _residuals(columns, basis)
    left = left[:, ~np.isnan(left).any(axis=0)]
    free = len(columns) - basis.shape[1] - left.shape[1] - cells - 1
    if not left.shape[1] or free < LEAST_FREE:
        return np.zeros(targets.shape[1])
    own = np.linalg.qr(left)[0]
    with np.errstate(invalid="ignore"):
        shares = ((own.T @ targets) ** 2).sum(axis=0) / (targets**2).sum(axis=0)
    shares = np.clip(np.nan_to_num(shares), 0.0, 1.0)
    if left.shape[1] == 1:
        chance = 2 * ndtr(-np.sqrt(shares * free))
    else:
        ratio = shares / left.shape[1] / np.maximum((1 - shares) / free, 1e-300)
        chance = fdtrc(left.shape[1], free, ratio)
    return np.where(chance < BY_CHANCE, np.sqrt(shares), 0.0)


def _levels(numbers: Floats) -> Floats:
    """Return the indicators of the large levels of a reading but one; none where fewer than two are large."""
    levels, counts = np.unique(numbers, return_counts=True)
    large = levels[counts >= max(LARGE_CODES * len(numbers), FEW)]
    if len(large) == len(levels):
        large = large[1:]
    return np.asarray((numbers[:, None] == large).astype(np.float64), dtype=np.float64)


def _correlation_inside(numbers: Floats, columns: Floats, target: Floats, leaving: LeavingColumns) -> float:
    """Return the correlation inside cells of what leaves, of those columns with which a reading goes."""
    cells = _cells_of_reading(_ranks(numbers), leaving.classes)
    if not cells.any():
        return 1.0
    basis = leaving.basis(cells)
    targets = _residuals(_inside(target[:, None], cells), basis)
    return float(_correlations(_inside(columns, cells), targets, basis, int(cells.max()))[0])


def _cells_of_reading(ranks: Floats, classes: Sequence[Integers]) -> Integers:
    """Number the cells of those classes that part a reading beyond chance, one after the other, the best first."""
    cells = np.zeros(len(ranks), np.int64)
    left, able = _within(ranks, cells), sorted(classes, key=lambda one: _within(ranks, one))[:MOST_CROSSED]
    while able and left > 0:
        finer = [np.unique(cells_of([cells, one]), return_inverse=True)[1].ravel() for one in able]
        sums = [_within(ranks, one) if one.max() < MOST_CELLS * len(ranks) else left for one in finer]
        best = int(np.argmin(sums))
        if left - sums[best] <= SURE**2 * (finer[best].max() - cells.max()) / len(ranks) * left:
            break
        cells, left = finer[best], sums[best]
        able.pop(best)
    return cells


def _within(values: Floats, cells: Integers) -> float:
    """Return the sum of squares inside cells."""
    return float((_inside(values[:, None], cells) ** 2).sum())


def _inside(columns: Floats, cells: Integers) -> Floats:
    """Return columns less their means in each cell."""
    counts = np.bincount(cells)
    means = np.column_stack([np.bincount(cells, one) / counts for one in columns.T])
    return np.asarray(columns - means[cells])


def code_readings(codes: Sequence[str]) -> Iterator[tuple[str, Floats, bool]]:
    """Read codes as numbers in all ways that are tried, each once, and say whether the numbers have an order."""
    seen = set[bytes]()
    for how, numbers in _all_readings([*codes]):
        key = np.unique(numbers, return_inverse=True)[1].tobytes()
        if key not in seen and len(np.unique(numbers)) > 1:
            seen.add(key)
            yield how, numbers, True


def _all_readings(codes: list[str]) -> Iterator[tuple[str, Floats]]:
    yield "by the alphabet", _alphabetical(codes)
    numbers = [re.sub(r"[^\d.]", "", code) for code in codes]
    if all(re.fullmatch(r"\d{1,40}(\.\d*)?", one) for one in numbers):
        yield "as a number", np.array([float(one) for one in numbers])
    for how, read in readings(codes):
        if how and None not in read:
            yield f"as a number{how}", np.array(read, np.float64)
    yield "read backwards", _alphabetical([code[::-1] for code in codes])
    cores = without_frame(codes)
    longest = max(map(len, cores))
    for size in range(1, LONGEST + 1):
        for start in range(min(PLACES, longest)):
            part = f"signs {start + 1} to {start + size}" if size > 1 else f"sign {start + 1}"
            yield f"by {part} from the left", _alphabetical([one[start : start + size] for one in cores])
            yield f"by {part} from the right", _alphabetical([_from_right(one, start, size) for one in cores])


def _from_right(core: str, start: int, size: int) -> str:
    end = len(core) - start
    return core[max(end - size, 0) : max(end, 0)]


def _alphabetical(texts: Sequence[str]) -> Floats:
    places = {text: float(place) for place, text in enumerate(sorted(set(texts)))}
    return np.array([places[text] for text in texts])
