"""The fingerprint floor: how many records no noise protects, where they are, and what would remove them.

floor = targets alone with their fingerprint / targets. What remains without a column is counted by 64-bit sums
(exclusive or) of random words, one for each value of each column: taking a column away takes its word away (Zobrist
1970), and two fingerprints collide with a chance of 2^-63. Made by `fingerprint` and for a sample by
`sampled_uniqueness`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..table import Table
from .protocol import Bools, Ints
from .unmasked_values import PATTERN, SPARED, VALUES, Codes, Trait

if TYPE_CHECKING:
    import pyarrow as pa

BLOCKS_SHOWN, REMEDIES_SHOWN, STEPS_SHOWN = 20, 4, 5
HIDDEN = "values, pattern left"
SEED = 20240611  # of the numbers that stand for values: any would do

Words = npt.NDArray[np.uint64]
Removed = tuple[str, str, float]  # a column, the part of it that no longer shows, and how many are then alone


@dataclass(frozen=True)
class Floor:
    """Records that are alone with their fingerprint, on both sides: noise of any size leaves them to be found.

    `values` are the columns whose values count, `patterns` those of which only what is missing or coded does, and
    `spared` those that have noise and yet leave some values as they are, zeros for example.
    `blocks` has the values of the blocks with most of them (at most 20 of `block_count`), with their numbers.
    `without` says how many remain when one column alone no longer shows: left out ("values", "spared values"), hidden
    by noise while missing and coded cells still show ("values, pattern left"), or those imputed or recoded ("pattern").
    Coarser classes of a column remove at most as many as leaving it out. `steps` takes columns away one after the
    other, always the one that leaves fewest, until none remains.
    With a `released_share` a mask releases so many of the records: `unique`, `targets` and what remains are then
    expected numbers of those in the release (see `sampled_uniqueness`), while `blocks` are of the whole file.
    """

    unique: float
    targets: float
    values: tuple[str, ...]
    patterns: tuple[str, ...]
    spared: tuple[str, ...]
    block_columns: tuple[str, ...]
    block_count: int
    blocks: pa.Table = field(repr=False, compare=False)
    without: pa.Table = field(repr=False, compare=False)
    steps: pa.Table = field(repr=False, compare=False)
    released_share: float | None = None

    @property
    def rate(self) -> float:
        """The share of the targets that are alone with their fingerprint."""
        return self.unique / self.targets

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no value of a block."""
        return {
            "unique": self.unique,
            "rate": self.rate,
            **({} if self.released_share is None else {"released_share": self.released_share}),
            "values": list(self.values),
            "patterns": list(self.patterns),
            "spared": list(self.spared),
            "blocks": {"columns": list(self.block_columns), "with_unique": self.block_count},
            "without": self.without.to_pylist(),
            "steps": self.steps.to_pylist(),
        }

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return what fits on one screen; the values of blocks are in `blocks` alone."""
        expected = (
            ""
            if self.released_share is None
            else f", as expected where {self.released_share:.4g} are released"
        )
        whom = f"{self.targets:,.0f} targets{expected}"
        said = [
            f"no noise protects {self.unique:,.0f} of {whom} ({self.rate:.1%}): {self._by()}"
            if self.unique
            else f"none of {whom} is {self._by()}: noise can protect them all"
            if self.values or self.patterns or self.spared
            else f"{self._by()}: noise can protect all {whom}"
        ]
        if self.unique:
            where = f"they are in {self.block_count:,} blocks of {', '.join(self.block_columns)} (see blocks)"
            said += [where] if self.block_columns else []
            said += self._remedies() + self._sequence()
        return [
            "",
            *(
                line
                for text in said
                for line in wrap(text, 100, initial_indent="  ", subsequent_indent="    ")
            ),
        ]

    def _by(self) -> str:
        by = [", ".join(self.values)] if self.values else []
        by += [f"what is missing or coded in {', '.join(self.patterns)}"] if self.patterns else []
        by += [f"the values without noise in {', '.join(self.spared)}"] if self.spared else []
        return f"unique by {' and by '.join(by)}" if by else "nothing that leaves tells records apart"

    def _remedies(self) -> list[str]:
        helping = [one for one in self.without.to_pylist() if one["remaining"] < self.unique]
        return [
            f"{remedy(one['column'], one['part'])}: {one['remaining']:,.0f} of {self.unique:,.0f} remain"
            for one in helping[:REMEDIES_SHOWN]
        ]

    def _sequence(self) -> list[str]:
        steps = self.steps.to_pylist()
        if not steps or round(steps[-1]["remaining"]):
            return ["nothing removes them: there is nobody else to be taken for"]
        if len(steps) == 1:
            return []
        shown = [
            f"{remedy(one['column'], one['part'])} ({one['remaining']:,.0f} remain)"
            for one in steps[:STEPS_SHOWN]
        ]
        more = ", and so on (see steps)" if len(steps) > len(shown) else ""
        return [f"in turn: {', '.join(shown)}{more}"]


def remedy(column: str, part: str) -> str:
    """Say in words what hides a column, or a part of it."""
    if part == PATTERN:
        return f"impute or recode what is missing or coded in {column}"
    if part in (VALUES, SPARED):
        return f"leave out {column}"
    return f"mask every value of {column} (missing and coded cells still show)"


@dataclass(frozen=True, slots=True)
class Prints:
    """The fingerprints of the intruder's and of the released records: their traits, and one number for each.

    `pairs` are the records of both sides that are alone with theirs, `blocks` the number of each record's block.
    """

    traits: tuple[Trait, ...]
    numbers: tuple[Ints, Ints]
    pairs: tuple[Ints, Ints]
    block_columns: tuple[str, ...]
    blocks: tuple[Ints, Ints]


def floor(prints: Prints, released: Table, targets: int) -> Floor:
    """Say who is alone, where, and what would change it."""
    speaking = [trait for trait in prints.traits if trait.count > 1]
    without, steps = _removals(prints, speaking)
    blocks, count = _blocks(prints, released)
    return Floor(
        unique=len(prints.pairs[0]),
        targets=targets,
        values=tuple(trait.column for trait in speaking if trait.what == VALUES),
        patterns=tuple(trait.column for trait in speaking if trait.what == PATTERN),
        spared=tuple(trait.column for trait in speaking if trait.what == SPARED),
        block_columns=prints.block_columns,
        block_count=count,
        blocks=blocks,
        without=without,
        steps=steps,
    )


def _blocks(prints: Prints, released: Table) -> tuple[Any, int]:
    """Return the blocks with most records that are alone, their values as they are written, and how many there are."""
    import pyarrow as pa

    alone, block = prints.pairs[1], prints.blocks[1]
    numbers, first, counts = np.unique(block[alone], return_index=True, return_counts=True)
    some = released.select(list(prints.block_columns)).take(alone[first])
    columns: dict[str, Any] = {name: some.written(name).cast(pa.string()) for name in prints.block_columns}
    columns["unique"] = counts
    columns["records"] = np.bincount(block)[numbers]
    order: Any = [("unique", "descending"), *((name, "ascending") for name in prints.block_columns)]
    return pa.table(columns).sort_by(order).slice(0, BLOCKS_SHOWN), len(numbers)


@dataclass(slots=True)
class _Crowd:
    """Who stands for whom: one element for each pair that is alone, one for every other fingerprint.

    A fingerprint is known by the sum (exclusive or) of random numbers, one for each value of each trait. Two
    that differ have the same sum with a chance of 2^-63: at a million records one count in 10 million is off.
    `identifies` marks traits that no two elements share.
    """

    traits: list[Words]
    identifies: list[bool]
    whole: Words
    alone: Bools

    @classmethod
    def of(cls, prints: Prints, traits: Sequence[Trait]) -> tuple[_Crowd, list[Words | None]]:
        """Gather the elements, and for columns whose pattern would still show the numbers of that."""
        pairs, others = prints.pairs[0], _others(prints)
        rng = np.random.default_rng(SEED)
        codes = [_subset_codes((trait.known, trait.released), pairs, others) for trait in traits]
        numbers = [random_words(rng, some, trait.count) for some, trait in zip(codes, traits, strict=True)]
        identifies = [bool(np.bincount(some).max(initial=0) <= 1) for some in codes]
        hidden = [
            None
            if trait.pattern is None
            else random_words(rng, _subset_codes(trait.pattern, pairs, others), trait.count)
            for trait in traits
        ]
        size = len(pairs) + len(others)
        whole = np.bitwise_xor.reduce(numbers) if numbers else np.zeros(size, np.uint64)
        return cls(numbers, identifies, whole, np.arange(size) < len(pairs)), hidden

    def without(self, place: int) -> int:
        """Count the pairs that are alone without a trait."""
        if sum(self.identifies) - self.identifies[place] > 0:
            return int(np.count_nonzero(self.alone))
        return self.remaining(self.whole ^ self.traits[place])

    def remaining(self, whole: Words) -> int:
        """Count the pairs that are alone by these sums."""
        sums = np.sort((whole & ~np.uint64(1)) | ~self.alone)
        apart = np.diff(sums >> np.uint64(1)) != 0
        single = np.concatenate([[True], apart]) & np.concatenate([apart, [True]])
        return int(np.count_nonzero(single & (sums & np.uint64(1) == 0)))

    def drop(self, place: int, *, merge: bool) -> None:
        """Take a trait away; elements that are now the same become one that is not alone (`merge`: there are such)."""
        self.whole = self.whole ^ self.traits.pop(place)
        self.identifies.pop(place)
        if merge:
            _, first, counts = np.unique(self.whole >> np.uint64(1), return_index=True, return_counts=True)
            self.whole, self.alone = self.whole[first], self.alone[first] & (counts == 1)
            self.traits = [numbers[first] for numbers in self.traits]


def _others(prints: Prints) -> Ints:
    """Return a record (of both sides, one after the other) for each fingerprint that is not that of a pair alone."""
    ours, theirs = prints.numbers
    place = np.full(int(max(ours.max(), theirs.max())) + 1, -1, np.int64)
    place[ours] = np.arange(len(ours))
    place[theirs] = len(ours) + np.arange(len(theirs))
    place[ours[prints.pairs[0]]] = -1
    return np.asarray(place[place >= 0])


def _subset_codes(codes: tuple[Codes, Codes], pairs: Ints, others: Ints) -> Codes:
    """Return the codes of pairs and of other records, from both sides."""
    ours, theirs = others[others < len(codes[0])], others[others >= len(codes[0])] - len(codes[0])
    return np.concatenate([codes[0][pairs], codes[0][ours], codes[1][theirs]])


def random_words(rng: np.random.Generator, codes: Codes, count: int) -> Words:
    """Return a random number for each code."""
    drawn = rng.integers(0, 2**64 - 1, size=count, dtype=np.uint64, endpoint=True)
    return np.asarray(drawn[codes])


def _removals(prints: Prints, traits: list[Trait]) -> tuple[Any, Any]:
    """Return how many pairs remain without each trait alone, and without one after the other."""
    crowd, hidden = _Crowd.of(prints, traits)
    remaining, left = len(prints.pairs[0]), list(traits)
    alone, steps = list[Removed](), list[Removed]()
    while remaining and left:
        counts = [crowd.without(place) for place in range(len(left))]
        if not steps:
            alone = [(t.column, t.what, count) for t, count in zip(left, counts, strict=True)]
            alone += _hidden_value_removals(crowd, left, hidden)
        best = min(range(len(left)), key=lambda i: (counts[i], -left[i].count))
        crowd.drop(best, merge=counts[best] < remaining)
        remaining = counts[best]
        steps.append((left[best].column, left[best].what, remaining))
        del left[best]
    return removals_table(sorted(alone, key=lambda one: one[2])), removals_table(steps)


def _hidden_value_removals(crowd: _Crowd, traits: list[Trait], hidden: list[Words | None]) -> list[Removed]:
    """Count who remains where noise hides values and the pattern still shows."""
    return [
        (trait.column, HIDDEN, crowd.remaining(crowd.whole ^ numbers ^ pattern))
        for trait, numbers, pattern in zip(traits, crowd.traits, hidden, strict=True)
        if pattern is not None
    ]


def removals_table(found: Sequence[Removed], *, whole: bool = True) -> Any:
    """Return columns, parts and what remains without them, as whole numbers or as expected ones."""
    import pyarrow as pa

    return pa.table(
        {
            "column": pa.array([one[0] for one in found], pa.string()),
            "part": pa.array([one[1] for one in found], pa.string()),
            "remaining": pa.array([one[2] for one in found], pa.int64() if whole else pa.float64()),
        }
    )
