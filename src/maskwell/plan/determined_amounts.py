"""Amounts that a few other columns determine, and which of them a draft leaves out.

Noise with the covariance of the data leaves an exact tie between columns as it is, and who knows the tie averages the
noise out: one member of each has to stay inside. Looked for are, in this order: exact ratios and products, and numbers
for each class (`exact_ratios`); y nearly linear in a few others (`dependence`); a sum that most records obey, ratios or
products (`near_identities`); and the ratio of a sum.

Each column is compared with those that are open where it is (a change since last year has no value in the first year),
and among these are the dropped copies of columns that leave: log y = log y1 + change is a tie of y, whose logarithm
was dropped as its function. Columns are looked at from the first to the last, each beside those that leave before it,
and then once more beside those after it. In the end each tie is told by columns that leave; what no longer has one, as
a member was dropped for another tie, leaves after all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .dependence import FEWEST_VALUES, UNEXPLAINED, nearly_linear
from .exact_ratios import exact_ratio, ratio_of_sum, scaled_by_class
from .near_identities import NearIdentity, mode, near_product, near_ratio, near_sum

Floats = npt.NDArray[np.float64]
Look = Callable[[Floats, int, Sequence[int], Sequence[str]], NearIdentity | None]

# Columns that each is compared with, but for least squares: of more, half by place, half by likeness
MOST_COMPARED = 60
# Records that refute a tie of many columns, and those that tell among them
REFUTING, FEWEST_TELLING = 1_200, 150
LIKENESS_RECORDS = 500  # by which likeness is told
FEWEST_RECORDS = 2 * FEWEST_VALUES  # in which all columns of a tie are open: ten for each of four columns
OPEN_TOGETHER = (0.95, 0.5)  # share of the records of a column in which others must be open to take part


@dataclass(frozen=True)
class Candidates:
    """Columns among which ties are looked for: amounts first, then codes, then copies of amounts, then classes.

    `values` is records x columns, NaN unless open; `copies` has for the place of each copy that of its amount;
    `classes` are the places of columns that number the classes of a category, a missing one too.
    """

    values: Floats
    names: tuple[str, ...]
    amounts: int
    copies: Mapping[int, int]
    classes: tuple[int, ...] = ()

    def tie(self, place: int, kept: Sequence[int]) -> str:
        """Say by which of the columns that leave an amount is determined; nothing where it is not."""
        own = self.values[~np.isnan(self.values[:, place])]
        others = self._others(place, kept)
        step = len(own) // REFUTING
        is_long = len(others) > MOST_COMPARED and step > 1 and _varies(own[::step, place])
        if is_long and not self._first_tie(own[::step], place, others):
            return ""
        return self._first_tie(own, place, others)

    def _first_tie(self, own: Floats, place: int, others: Sequence[int]) -> str:
        """Say by which of the columns that are open almost always, else often, an amount is determined."""
        shares = np.mean(~np.isnan(own[:, others]), axis=0) if len(own) else np.zeros(len(others))
        tried = list[int]()
        for least in OPEN_TOGETHER:
            usable = [j for j, share in zip(others, shares, strict=True) if share >= least]
            if usable != tried and (said := self._tie(own, place, usable)):
                return said
            tried = usable
        return ""

    def _tie(self, own: Floats, place: int, usable: list[int]) -> str:
        """Look for a tie where all that may take part is open; it counts where its own members are open."""
        complete = _complete(own, usable)
        if not usable or len(complete) < FEWEST_RECORDS:
            return ""
        if said := self._exact_tie(own, complete, place, usable):
            return said
        if by := nearly_linear(complete, place, usable):
            return self._linear_words(self._needed(own, place, by))
        numbers = self._likely(complete, place, [j for j in usable if j < self.amounts or j in self.copies])
        amounts = [j for j in numbers if j < self.amounts]
        looks = (near_sum, numbers), (near_ratio, amounts), (near_product, amounts), (ratio_of_sum, amounts)
        told = (self._told(look, own, complete, place, able) for look, able in looks)
        return next((words for words in told if words), "")

    def _likely(self, complete: Floats, place: int, able: Sequence[int]) -> list[int]:
        """Return the columns that stand near one in the file or go with it most, where there are many."""
        if len(able) <= MOST_COMPARED:
            return list(able)
        near = sorted(able, key=lambda j: abs(j - place))[: MOST_COMPARED // 2]
        some = complete[:: max(1, len(complete) // LIKENESS_RECORDS)]
        x, y = (some[:, columns] - some[:, columns].mean(axis=0) for columns in (able, [place]))
        sizes = np.linalg.norm(x, axis=0)
        likeness = np.abs(y[:, 0] @ x) / np.where(sizes > 0, sizes, np.inf)
        rest = [able[i] for i in np.argsort(-likeness, kind="stable").tolist() if able[i] not in near]
        chosen = {*near, *rest[: MOST_COMPARED - len(near)]}
        return [j for j in able if j in chosen]

    def _told(self, look: Look, own: Floats, complete: Floats, place: int, able: Sequence[int]) -> str:
        """Say which relation some columns obey, counted wherever its own members are open: fewer are so more often."""
        words = [self._word(j) for j in range(len(self.names))]
        found, members = look(complete, place, able, words), list[int]()
        while found is not None and set(found.parts) != set(members):
            members = list(found.parts)
            found = look(_complete(own, members), place, members, words)
        return "" if found is None else str(found)

    def _needed(self, own: Floats, place: int, by: list[int]) -> list[int]:
        """Return those of some columns that explain one wherever they are open; fewer are open in more records."""
        holds = nearly_linear(_complete(own, by), place, by)
        return holds if not holds or sorted(holds) == sorted(by) else self._needed(own, place, holds)

    def _linear_words(self, by: Sequence[int]) -> str:
        words = ", ".join(self._word(j) for j in by)
        left = f"least squares on {'it' if len(by) == 1 else 'them'} leaves under {UNEXPLAINED:.1%} of its variance"
        return f"nearly determined by {words} ({left})" if by else ""

    def _exact_tie(self, own: Floats, complete: Floats, place: int, usable: list[int]) -> str:
        """Look for a ratio, a product, or a number for each class that gives a column in nearly all records."""
        likely = self._likely(complete, place, usable)
        amounts = [j for j in likely if j < self.amounts]
        said = self._told(exact_ratio, own, complete, place, likely)
        return said or self._told(self._scaled, own, complete, place, [*amounts, *self.classes])

    def _scaled(
        self, values: Floats, place: int, able: Sequence[int], names: Sequence[str]
    ) -> NearIdentity | None:
        """Return an amount that gives a column by a number for each class of a category among the able."""
        amounts = [j for j in able if j < self.amounts]
        classes = {j: values[:, j].astype(np.int64) for j in self.classes if j in able}
        return scaled_by_class(values, place, amounts, classes, names)

    def _others(self, place: int, kept: Sequence[int]) -> list[int]:
        """Return what leaves beside a column, with the copies of that."""
        copies = [copy for copy, of in self.copies.items() if of in kept and of != place]
        return [j for j in kept if j != place] + copies

    def _word(self, place: int) -> str:
        """Name a column that leaves; of a copy what gives it, as which."""
        name = self.names[place]
        return f"{self.names[self.copies[place]]} (as {name})" if place in self.copies else name


def _varies(y: Floats) -> bool:
    """Whether so many values differ from the most frequent one that a relation shows in these records."""
    return int(np.count_nonzero(y != mode(y))) >= FEWEST_TELLING


def _complete(values: Floats, columns: Sequence[int]) -> Floats:
    """Return the records in which some columns are open."""
    return values[~np.isnan(values[:, list(columns)]).any(axis=1)]


def ties_of(columns: Candidates, fixed: Sequence[str]) -> dict[str, str]:
    """Return the amounts to leave out, each with its tie to columns that leave; `fixed` ones stay."""
    free = [j for j in range(columns.amounts) if columns.names[j] not in fixed]
    others = {*columns.copies, *columns.classes, *free}
    kept = [j for j in range(len(columns.names)) if j not in others]
    said = dict[int, str]()
    for place in free:
        if tie := columns.tie(place, kept):
            said[place] = tie
        else:
            kept.append(place)
    late = _tied_to_later(columns, kept, free)
    said |= late
    for place in list(said) if late else ():  # what told it may have been dropped
        said[place] = columns.tie(place, kept)
        if not said[place]:
            del said[place]
            kept.append(place)
    return {columns.names[place]: said[place] for place in sorted(said)}


def _tied_to_later(columns: Candidates, kept: list[int], free: Sequence[int]) -> dict[int, str]:
    """Take out the amounts that columns after them determine: a tie by a product is found from one side alone."""
    said = dict[int, str]()
    for place in [j for j in reversed(free) if j in kept]:
        if tie := columns.tie(place, kept):
            kept.remove(place)
            said[place] = tie
    return said
