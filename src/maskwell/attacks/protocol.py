"""What an intruder holds, what he answers, and how the answer is marked.

A plan's `guess(known, release, order_of)` answers without any link; `mark` compares the answer with the links
afterwards. Permuting the links therefore changes what is correct and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from ..errors import BadPlan
from ..notes import Note
from ..table import Floats, Table

if TYPE_CHECKING:
    from ..masking import Masking, Release
    from ..schema import Schema
    from .bayes.own_error.error_law import OwnError
    from .bayes.unknown_noise.priors import Prior
    from .risk import Risk
    from .targets import Choice

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
    notes: tuple[Note, ...] = ()

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


@runtime_checkable
class Attack(Protocol):
    """A frozen plan of an intruder, and everything that is asked of one.

    A plan is a frozen dataclass that subclasses this or, with the options of who searches, `RecordSearch`; it has to
    say how he guesses and how it is written. All else has a default, which holds where a plan does not state its own.
    An option of a plan (a field) or a class attribute of the same name takes the place of a property here. A release
    or a budget sets targets and blocks: for these the plan needs the fields of `RecordSearch`.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def guess(self, known: IntruderKnowledge, release: Release, order_of: OrderOf) -> Guess:
        """Answer who is who, without links; `order_of(table, side)` is a keyed order of records, for ties."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""

    def assessed(self, risk: Risk, marked: MarkedGuess) -> Risk:
        """Add to what was found what only this attack measures; here the links are known."""
        return risk

    # Whom he is after.

    @property
    def targets(self) -> Choice | None:
        """Which of the eligible records are targets (nothing: all)."""
        return None

    @property
    def largest_target_block(self) -> int | None:
        """Eligible are the records in blocks of at most so many (nothing: all)."""
        return None

    @property
    def target_blocks(self) -> tuple[str, ...] | None:
        """The columns that make those blocks (nothing: the schema's block columns)."""
        return None

    @property
    def response_knowledge(self) -> bool:
        """Whether he knows that his target is in the release, where that is a sample of the records."""
        return True

    def eligible_records(self, truth: Table) -> Ints:
        """Return the numbers of the records among which targets are chosen."""
        return np.arange(len(truth))

    def target_records(
        self, truth: Table, order: Callable[[Table], Ints] | None = None, among: Ints | None = None
    ) -> Ints:
        """Return the numbers of the targets; a sample goes by a keyed order, `among` given records."""
        return self.eligible_records(truth) if among is None else among

    # Where he searches.

    @property
    def to_masked(self) -> bool:
        """Whether his records search among the released ones; else a released record searches among his."""
        return True

    @property
    def match_blocks(self) -> tuple[str, ...] | None:
        """The columns on which he relies without doubt, as the plan names them (nothing: the schema's blocks)."""
        return ()

    def match_columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns within which he compares records; none: he compares all with all."""
        return ()

    @property
    def codes_itself(self) -> bool:
        """Whether he codes his records as the release is; else they come to him with the block columns coded."""
        return False

    @property
    def on_tables(self) -> bool:
        """Whether the attack makes sense on a plain table, before any noise."""
        return False

    @property
    def answers_by_block(self) -> bool:
        """Whether his answer on a target depends on the records of its blocks alone, where nothing was exchanged."""
        return False

    # What he compares, and how.

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The columns that he compares, as the plan names them (nothing: the attack chooses, or has no such thing)."""
        return None

    @property
    def named_columns(self) -> tuple[str, ...] | None:
        """All columns that he needs beside his blocks, as the plan names them (nothing: by the schema)."""
        return self.fields

    @property
    def assignment(self) -> str:
        """How links are made: "best" for each searching record, or "one-to-one"."""
        return "best"

    @property
    def threshold(self) -> float:
        """The probability above which he stands by a link."""
        return 0.0

    @property
    def largest_h(self) -> int | None:
        """Where counting h stops (nothing: nowhere)."""
        return None

    # What he knows beside his records.

    @property
    def needs_law(self) -> bool:
        """Whether he compares by the laws of the card: where blocks alone have one, these stay as they are."""
        return False

    @property
    def prior(self) -> Prior | None:
        """What he believes of the parameters of the noise (nothing: he holds the card, or goes by none)."""
        return None

    @property
    def error(self) -> OwnError | None:
        """How far his own values are off (nothing: they are the true ones)."""
        return None

    @property
    def helpers(self) -> int | str:
        """How many other units he knows as well; "all" of them make him the ceiling."""
        return 0

    def company(self, truth: Table, targets: Ints) -> Ints:
        """Return the targets with all whose records can help to find them, or compete with theirs."""
        return np.arange(len(truth))

    @property
    def swapped(self) -> bool:
        """Whether he relies on columns that were exchanged between some records."""
        return True

    def with_nothing_masked(self) -> Self:
        """Return the plan for a release whose card has no law: nothing there is masked."""
        return self


Attacks = Attack | Sequence[Attack] | Mapping[str, Attack]  # one intruder, or several with or without names


def check_attack(plan: object) -> Attack:
    """Return a plan of an attack; refuse what is none."""
    if isinstance(plan, type) or not isinstance(plan, Attack):
        raise BadPlan(
            f"a {type(plan).__name__} is no attack: take one of maskwell.attacks, such as Linkage()"
        )
    return plan


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
