"""What an intruder holds, what he answers, and how the answer is marked.

A plan's `guess(known, release, order_of)` answers without any link; `mark` compares the answer with the links
afterwards. Permuting the links therefore changes what is correct and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ..table import Floats, Table

if TYPE_CHECKING:
    from ..masking import Masking, Release

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

OrderOf = Callable[..., Ints]

MOVED = "moved"  # of what intruders share: the law of what exchanged rows carry
NOBODY = -1  # the number of no record


@dataclass(frozen=True, slots=True)
class IntruderKnowledge:
    """What the intruder holds: the true records of his targets.

    `population` is the steward's whole truth. Only plans that say so read it, and only as the distribution of true
    values: they then give an upper bound on what an outsider can do. `numbers` say which of its records the
    intruder's are (-1: none), so that they can be left out of it, and with `as_true` his values are theirs; `sought`
    lists those of his records that he is after (None: all), the others only help him. `shared` is where intruders of
    one attack put what the others need not compute again.
    """

    targets: Table
    population: Table
    numbers: Ints | None = None
    sought: Ints | None = None
    as_true: bool = False
    shared: dict[Any, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Guess:
    """An intruder's answer: one row for each record that searches, all arrays of one length.

    `to_masked`: an intruder's record searches among the released ones, else a released record among the intruder's.
    `searcher` and `found` are record numbers on those sides (`found` and `second` are -1 where nobody is a candidate);
    `ties` counts the candidates that are as good as the one found, `candidates` all of them; `claimed` marks the links
    the intruder stands by, `kind` the class of each row (an index into `kinds`).

    `is_tied(rows, found)` tells whether candidates are among the best of their rows, `in_block(rows, found)` whether
    they were candidates at all. `partners(known)` lists released records in the block of one of the intruder's that he
    would not claim for it, most similar first: for swapping.
    `figures` are the attack's own, by the names that `Risk` gives them.
    """

    searcher: Ints
    found: Ints
    score: Floats
    ties: Ints
    candidates: Ints
    claimed: Bools
    kind: Ints
    kinds: tuple[str, ...]
    is_tied: Callable[[Ints, Ints], Bools]
    in_block: Callable[[Ints, Ints], Bools]
    partners: Callable[[int], Ints]
    to_masked: bool = True
    second: Ints | None = None
    second_score: Floats | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.searcher)

    def only(self, rows: Bools) -> Guess:
        """Return the answer for some of the records that searched."""
        at = np.flatnonzero(rows)
        arrays = (
            "searcher",
            "found",
            "score",
            "ties",
            "candidates",
            "claimed",
            "kind",
            "second",
            "second_score",
        )
        some = {name: value[at] for name in arrays if (value := getattr(self, name)) is not None}
        return replace(
            self,
            **some,
            is_tied=lambda rows, found: self.is_tied(at[rows], found),
            in_block=lambda rows, found: self.in_block(at[rows], found),
            columns={name: values[at] for name, values in self.columns.items()},
            figures={**self.figures, **_rows_of(self.figures, at)},
        )


def _rows_of(figures: Mapping[str, Any], at: Ints) -> dict[str, Any]:
    """Return what looks pairs up by row, for some of the rows."""
    by_row = {name: figures[name] for name in ("patterns_of", "standing") if name in figures}
    return {name: _subset_lookup(look_up, at) for name, look_up in by_row.items()}


def _subset_lookup(look_up: Callable[[Ints, Ints], Any], at: Ints) -> Callable[[Ints, Ints], Any]:
    return lambda rows, found: look_up(at[rows], found)


@dataclass(frozen=True, slots=True)
class Marks:
    """A marked answer: the true counterpart of each searcher (-1: none), and how right the row is.

    `correct` is about the link drawn among ties, `share` its expectation over them; `findable` marks the rows whose
    counterpart was among their candidates.
    """

    counterpart: Ints
    findable: Bools
    correct: Bools
    share: Floats


@dataclass(frozen=True, slots=True)
class MarkedGuess:
    """A marked answer with all that the steward holds, for plans that measure more than who was found.

    `known` are the intruder's records, `numbers` their numbers in the truth (-1: not in it).
    """

    guess: Guess
    marks: Marks
    known: Table
    numbers: Ints
    masking: Masking


class Attack(Protocol):
    """A frozen plan of an intruder.

    A plan may also have `assessed(risk, marked)`, which adds to the `Risk` what only this attack measures, and
    `on_tables = True` where it makes sense on a table before any noise. Its records come with the block columns coded
    as the release is, unless it `codes_itself`; one that `needs_law` to compare by has its own say where that is all.
    """

    def guess(self, known: IntruderKnowledge, release: Release, order_of: OrderOf) -> Guess:
        """Answer who is who, without links; `order_of(table, side)` is a keyed order of records, for ties."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""


def mark(guess: Guess, numbers: Ints, order: Ints) -> Marks:
    """Mark an answer: `numbers` has the record number in the truth of each of the intruder's records (-1: not in
    it), `order` that of each released record.
    """
    count = int(max(numbers.max(initial=NOBODY), order.max(initial=NOBODY))) + 1
    near, far = (numbers, order) if guess.to_masked else (order, numbers)
    place = np.full(count + 1, NOBODY, np.int64)
    place[far[far >= 0]] = np.flatnonzero(far >= 0)
    place[count] = NOBODY
    counterpart = place[near[guess.searcher]]
    correct = (guess.found >= 0) & (guess.found == counterpart)
    share, findable = np.zeros(len(guess)), np.zeros(len(guess), bool)
    there = np.flatnonzero(counterpart >= 0)
    findable[there] = guess.in_block(there, counterpart[there])
    rows = np.flatnonzero(findable & (guess.found >= 0))
    tied = guess.is_tied(rows, counterpart[rows])
    share[rows[tied]] = 1.0 / guess.ties[rows[tied]]
    return Marks(counterpart, findable, correct, share)
