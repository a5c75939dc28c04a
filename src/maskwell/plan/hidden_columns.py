"""Which columns to hide so that what leaves in clear tells few enough apart: by dropping them, or by random changes.

What leaves in clear are values that nothing masks, and which values of masked columns are missing or coded, be they
amounts with noise or categories that are changed at random. Who guesses among the records alike in all of that finds
(number of different combinations) / n. Dropped columns tell nothing, nor do their gaps; of columns with gaps in the
same records all must go, or none need.

A category that PRAM changes still tells something to who knows the chances: of the records alike in all else he takes
the one with the largest likelihood,

    prod over columns of   stay               where the released category is the target's,
                           (1 - stay)/(k - 1) else,

and is right with 1 / ties where his own is among the likeliest. Where a category is missing it stays so. That share is
found by drawing the changes a few times, for a sample of targets; amounts are taken as drowned in noise, so that no
noise brings the risk below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BadInput

if TYPE_CHECKING:
    from ..attacks import Risk
    from ..attacks.protocol import Ints
    from ..table import Table

# Of what is tolerated: found by guessing alone; as much as is left is for what noise does not hide
ROOM = 0.75
STAYS = (0.8, 0.65, 0.5)  # chances to stay that are offered, the largest that is enough
STAY = STAYS[0]  # the chance with which a draft begins
# Of the changes, and records that are looked for: an error of 0.6% at most near the limit
DRAWS, TARGETS = 4, 500
SEED = 20_240_611  # any would do: these draws are no release


@dataclass(frozen=True, slots=True)
class RandomChange:
    """Categories to be changed at random, each with the same chance to stay."""

    columns: tuple[str, ...]
    stay: float


@dataclass(frozen=True)
class Clear:
    """What of a table leaves in clear: `blocks` with their values, of `drawn` what is missing or coded in them.

    `drawn` are the columns that a mask draws anew, amounts and categories; `masked` has the totals that are recomputed
    too; `floor` is what an intruder finds by all of it.
    """

    table: Table
    drawn: tuple[str, ...]
    masked: tuple[str, ...]
    blocks: tuple[str, ...]
    floor: Risk
    known: dict[str, Ints] = field(default_factory=dict, compare=False, repr=False)

    @property
    def categories(self) -> tuple[str, ...]:
        """The blocks that are categories: others are weights and numbers that nothing masks."""
        return tuple(name for name in self.blocks if self.table.schema[name].kind == "category")

    def codes(self, name: str) -> Ints:
        """Return the values of a column as numbers from 0 on; a missing value is one too."""
        from ..attacks.joint_codes import block_codes

        if name not in self.known:
            self.known[name] = block_codes(self.table, self.table, (name,))[0]
        return self.known[name]

    def alike(self, hidden: Sequence[str], drawn: Sequence[str] = ()) -> Ints:
        """Number the combinations of all that leaves in clear beside some columns; of `drawn` ones the gaps show."""
        from ..attacks.joint_codes import joint_codes

        numbers = [self.codes(name) for name in self.blocks if name not in (*hidden, *drawn)]
        numbers += [
            self.table.status(name).astype(np.int64)
            for name in (*self.drawn, *drawn)
            if name not in hidden and name in self.table.closed
        ]
        return joint_codes(((one, int(one.max(initial=0)) + 1) for one in numbers), len(self.table))

    def guessing(self, hidden: Sequence[str] = ()) -> float:
        """Return the share of records that guessing finds among those alike, some columns being hidden."""
        return (int(self.alike(hidden).max(initial=-1)) + 1) / max(len(self.table), 1)

    def alone(self, dropped: Sequence[str]) -> float:
        """Return the share of records that are alone with what leaves in clear, some columns being dropped."""
        from ..attacks import Fingerprint, attack

        schema = self.table.schema
        fewer = schema.changed({name: replace(schema[name], drop=True) for name in dropped})
        kept = tuple(name for name in self.masked if name not in dropped)
        try:
            return float(attack(Fingerprint(masked=kept), replace(self.table, schema=fewer)).rate)
        except BadInput:  # nothing is left that could make a fingerprint
            return 0.0

    def with_gaps(self) -> dict[str, tuple[str, ...]]:
        """Return the masked columns that have gaps or codes, each with all that have the same in the same records."""
        return self._same_status([name for name in self.drawn if name in self.table.closed])

    def gap_bundles(self) -> list[tuple[str, ...]]:
        """Return all columns that have gaps or codes, those that leave in clear too, by the records that have them."""
        able = {*self.drawn, *self.blocks}
        names = [name for name in self.table.schema.names if name in able and name in self.table.closed]
        return list(dict.fromkeys(self._same_status(names).values()))

    def _same_status(self, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return for each of some columns those that have the same gaps and codes in the same records."""
        patterns = {name: self.table.status(name).tobytes() for name in names}
        return {name: tuple(n for n in names if patterns[n] == patterns[name]) for name in names}


def columns_to_drop(clear: Clear, alone: float, guessed: float) -> list[str]:
    """Return columns without which at most these shares are alone and guessed; none where that cannot be had.

    The fewest of two ways: categories that tell most first, or columns as the floor takes them away one after the
    other, among these masked columns whose gaps and codes tell records apart; then weights, and what has gaps.
    """
    floor, first = clear.floor.sure_floor, coarsest_first(clear)
    steps = [step["column"] for step in floor.steps.to_pylist()]
    weights = [name for name in clear.blocks if name not in clear.categories]
    ways = [(*first, *weights, *floor.patterns), (*steps, *first, *weights, *floor.patterns)]
    found = [_fewest(clear, list(dict.fromkeys(way)), alone, guessed) for way in ways]
    return min((one for one in found if one), key=len, default=[])


def coarsest_first(clear: Clear) -> list[str]:
    """Return the categories: as the floor takes them away, then each time that without which guessing finds least."""
    steps = [step["column"] for step in clear.floor.sure_floor.steps.to_pylist()]
    order = list(dict.fromkeys(name for name in steps if name in clear.categories))
    while rest := [name for name in clear.categories if name not in order]:
        found = {name: clear.guessing([*order, name]) for name in rest}
        order.append(min(rest, key=lambda name: found[name]))
    return order


def _fewest(clear: Clear, order: list[str], alone: float, guessed: float) -> list[str]:
    """Return as many columns of an order as are enough, by halving; none where all are not, or nothing masked is left.

    Masked columns with gaps in the same records are one step, for one of them still shows what all do.
    """
    gaps = clear.with_gaps()
    able = [gaps.get(name, (name,)) for name in order if name in (*clear.blocks, *clear.drawn)]
    steps = list(dict.fromkeys(able))

    def chosen(count: int) -> list[str]:
        return [name for step in steps[:count] for name in step]

    few, enough = 1, len(steps)
    if not steps or not is_enough(clear, chosen(enough), alone, guessed):
        return []
    while few < enough:
        middle = (few + enough) // 2
        few, enough = (
            (few, middle) if is_enough(clear, chosen(middle), alone, guessed) else (middle + 1, enough)
        )
    return chosen(enough) if {*clear.drawn} - {*chosen(enough)} else []


def is_enough(clear: Clear, dropped: Sequence[str], alone: float, guessed: float) -> bool:
    """Whether without some columns few enough are alone, and guessing among those alike finds few enough."""
    return clear.guessing(dropped) <= guessed and clear.alone(dropped) <= alone


def random_change(clear: Clear, columns: Sequence[str], guessed: float) -> RandomChange | None:
    """Return the smallest change of some categories by which guessing finds few enough; none where none does."""
    able = [name for name in columns if name in clear.categories]
    if not able or len(able) < len(columns):
        return None
    for stay in STAYS:
        if found_by_likelihood(clear, able, stay) <= guessed:
            return RandomChange(tuple(able), stay)
    return None


def found_by_likelihood(clear: Clear, columns: Sequence[str], stay: float) -> float:
    """Return the share of targets that who knows the chances finds by categories alone, amounts being drowned."""
    rng = np.random.default_rng(SEED)
    rest = clear.alike((), columns)
    codes = np.column_stack([clear.codes(name) for name in columns])
    counts = np.array([max(len(clear.table.schema[name].categories), 2) for name in columns])
    weights = np.log(stay * (counts - 1) / (1 - stay))
    order = np.argsort(rest, kind="stable")
    starts = np.searchsorted(rest[order], np.arange(int(rest.max(initial=-1)) + 2))
    targets = rng.permutation(len(rest))[:TARGETS]
    found = 0.0
    for _ in range(DRAWS):
        moves = np.where(rng.random(codes.shape) < stay, 0, rng.integers(1, counts, codes.shape))
        released = (codes + moves) % counts
        for target in targets:
            alike = order[starts[rest[target]] : starts[rest[target] + 1]]
            scores = (released[alike] == codes[target]) @ weights
            best = scores >= scores.max() - 1e-9
            found += float(best[alike == target].sum()) / best.sum()
    return found / (DRAWS * max(len(targets), 1))
