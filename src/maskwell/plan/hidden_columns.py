"""Which columns to hide so that what leaves in clear tells few enough apart: by dropping them, or by random changes.

Dropped columns tell nothing, nor do their gaps. A category that PRAM changes still tells something to who knows the
chances: of the records alike in all else he takes the one with the largest likelihood,

    prod over columns of   stay               where the released category is the target's,
                           (1 - stay)/(k - 1) else,

and is right with 1 / ties where his own is among the likeliest. That share is found by drawing the changes a few times,
for a sample of targets; amounts are taken as drowned in noise, so that no noise brings the risk below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..errors import BadInput
from .sections import FIFTEEN_PERCENT

if TYPE_CHECKING:
    from ..attacks.contract import Ints
    from .deciding import Decided

ROOM = (
    FIFTEEN_PERCENT.max_rate / 2
)  # found by guessing alone: as much again is left for what noise does not hide
STAYS = (0.8, 0.65, 0.5)  # chances to stay that are offered, the largest that is enough
DRAWS, TARGETS = (
    4,
    500,
)  # of the changes, and records that are looked for: an error of 0.6% at most near the limit
SEED = 20_240_611  # any would do: these draws are no release


@dataclass(frozen=True, slots=True)
class RandomChange:
    """Categories to be changed at random, each with the same chance to stay."""

    columns: tuple[str, ...]
    stay: float


def columns_to_drop(decided: Decided, first: Sequence[str], allowed: float) -> list[str]:
    """Return columns without which few enough are alone and guessing finds little; none where that cannot be had.

    The fewest of two ways: categories that tell most `first`, or columns as the floor takes them away one after the
    other, among these amounts whose gaps and codes tell records apart; then weights, and what has gaps.
    """
    floor = getattr(decided.floor, "floor", None)
    steps = [] if floor is None else [step["column"] for step in floor.steps.to_pylist()]
    patterns = [] if floor is None else list(floor.patterns)
    weights = [name for name in decided.blocks if name not in decided.categories]
    ways = [(*first, *weights, *patterns), (*steps, *first, *weights, *patterns)]
    found = [_fewest(decided, list(dict.fromkeys(way)), allowed) for way in ways]
    return min((one for one in found if one), key=len, default=[])


def _fewest(decided: Decided, order: list[str], allowed: float) -> list[str]:
    """Return as many columns of an order as are enough, by halving; none where all are not, or no amount is left."""
    able = [name for name in order if name in (*decided.blocks, *decided.amounts)]
    few, enough = 1, len(able)
    if not able or not is_enough(decided, able, allowed):
        return []
    while few < enough:
        middle = (few + enough) // 2
        few, enough = (few, middle) if is_enough(decided, able[:middle], allowed) else (middle + 1, enough)
    return able[:enough] if {*decided.amounts} - {*able[:enough]} else []


def is_enough(decided: Decided, dropped: Sequence[str], allowed: float) -> bool:
    """Whether without some columns few enough are alone, and guessing among those alike finds few enough."""
    from ..attacks import Fingerprint, attack

    if _guessing(decided, dropped) > ROOM:
        return False
    table, schema = decided.table, decided.schema
    fewer = schema.changed({name: replace(schema[name], drop=True) for name in dropped})
    masked = (*decided.amounts, *(total for total, _ in decided.sums), *decided.changed)
    kept = tuple(name for name in masked if name not in dropped)
    try:
        return float(attack(Fingerprint(masked=kept), replace(table, schema=fewer)).rate) <= allowed
    except BadInput:  # nothing is left that could make a fingerprint
        return True


def _guessing(decided: Decided, hidden: Sequence[str]) -> float:
    codes = _clear_codes(decided, hidden)
    return (int(codes.max(initial=-1)) + 1) / max(len(decided.table), 1)


def _clear_codes(decided: Decided, hidden: Sequence[str]) -> Ints:
    """Number the combinations of what leaves in clear beside some columns: values, and where amounts have none."""
    from ..attacks.search import joint_codes

    names = [name for name in decided.blocks if name not in hidden]
    parts = [(decided.codes(name), int(decided.codes(name).max(initial=0)) + 1) for name in names]
    amounts = [name for name in decided.amounts if name not in hidden]
    gaps = np.isnan(decided.table.values(amounts)) if amounts else np.empty((len(decided.table), 0), bool)
    parts += [(gap.astype(np.int64), 2) for gap in gaps.T if gap.any()]
    return joint_codes(parts, len(decided.table))


def random_change(decided: Decided, columns: Sequence[str]) -> RandomChange | None:
    """Return the smallest change of some categories by which guessing finds few enough; none where none does."""
    able = [name for name in columns if name in decided.categories]
    if not able or len(able) < len(columns):
        return None
    for stay in STAYS:
        if found_by_likelihood(decided, able, stay) <= ROOM:
            return RandomChange(tuple(able), stay)
    return None


def found_by_likelihood(decided: Decided, columns: Sequence[str], stay: float) -> float:
    """Return the share of targets that who knows the chances finds by categories alone, amounts being drowned."""
    rng = np.random.default_rng(SEED)
    rest = _clear_codes(decided, columns)
    codes = np.column_stack([decided.codes(name) for name in columns])
    counts = np.array([max(len(decided.schema[name].categories), 2) for name in columns])
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
