"""What leaves as classes is no secret to whoever knows the value: intruders code their records as the release does.

An attack on a release with groups would leave the grouped columns out of its blocks, because they are masked. A real
intruder groups his own records in the same way and relies on the classes as on any clear column. `Coded` is the truth
as he then has it; attacks on `seen(masking)` are attacks by him. Nothing else changes: the same records, order and
noise on everything else.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..card import NoiseCard
from ..errors import MaskwellWarning
from ..keystream import Key
from ..masking import Mask, Masking, Release, apply
from ..masking.swapping import exchange
from ..masks import Chain, Grouping
from ..table import Table

AS_IT_WAS = "{} (as it was)"


@dataclass(frozen=True)
class Coded:
    """A table with the columns that leave as classes coded already, and the masks that are left for the others.

    The columns as they were stay beside it, dropped, so that targets are chosen by the blocks that they really have.
    """

    table: Table
    mask: Mask
    groupings: tuple[Grouping, ...] = ()
    columns: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, mask: Mask) -> Coded:
        """Code the columns that are grouped and not masked otherwise."""
        stages = _stages(mask)
        named = [name for one in stages for name in getattr(one, "columns", ())]
        groupings = tuple(
            one
            for one in stages
            if isinstance(one, Grouping) and all(named.count(name) == 1 for name in one.columns)
        )
        rest = tuple(one for one in stages if one not in groupings)
        if not groupings or not rest:
            return cls(table, mask)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MaskwellWarning)
            coded = apply(Chain(groupings), table, key=Key.from_seed(0)).masked  # nothing is drawn
        columns = tuple(name for one in groupings for name in one.columns)
        blocks = tuple(table.schema.with_role("block"))
        return cls(_beside(table, coded, columns), _chained(rest), groupings, columns, blocks)

    def whole(self, mask: Any) -> Any:
        """Return the masks of a plan with those of the other columns changed."""
        return _chained((*self.groupings, *_stages(mask))) if self.groupings else mask

    def seen(self, masking: Masking) -> Masking:
        """Return a masking as an intruder sees it who codes his records as the release does."""
        if not self.columns:
            return masking
        card, release = self._card(masking.card), masking.release
        given = Release(release.table, self._card(release.card)), masking.order
        return replace(masking, truth=self.table, card=card, given=given)

    def _card(self, card: NoiseCard) -> NoiseCard:
        laws = tuple(law for law in card.laws if set(law.columns).isdisjoint(self.columns))
        return replace(card, laws=laws)

    def attacks(self, plans: Mapping[str, Any]) -> dict[str, Any]:
        """Return attacks that choose their targets by the columns as they were."""
        return {name: self._attack(plan) for name, plan in plans.items()}

    def _attack(self, plan: Any) -> Any:
        if not self.columns or getattr(plan, "largest_target_block", None) is None:
            return plan
        named = self.blocks if plan.target_blocks is None else plan.target_blocks
        renamed = [AS_IT_WAS.format(name) if name in self.columns else name for name in named]
        return replace(plan, target_blocks=tuple(renamed))

    def carried(self, masking: Masking, swapped: Masking, plan: Any) -> Masking:
        """Return a masking with the exchange that was found on what the intruder sees of it."""
        swapping = swapped.swapping
        assert swapping is not None
        swapping = replace(swapping, attack=plan.to_dict())
        if not swapping.swaps:
            return masking
        said = swapped.notes[len(masking.notes) :]
        return replace(
            masking,
            masked=exchange(masking.masked, swapping.columns, swapping.pairs),
            card=replace(masking.card, swapped=swapped.card.swapped, data_sha256=""),
            swapping=swapping,
            notes=(*masking.notes, *said),
        )


def _stages(mask: Any) -> tuple[Any, ...]:
    if isinstance(mask, Chain):
        return tuple(one for stage in mask.masks for one in _stages(stage))
    return (mask,)


def _chained(masks: tuple[Any, ...]) -> Any:
    return masks[0] if len(masks) == 1 else Chain(masks)


def _beside(table: Table, coded: Table, columns: tuple[str, ...]) -> Table:
    """Return the coded table with the columns as they were at its end, described as dropped."""
    data, closed, described = coded.data, dict(coded.closed), list(coded.schema.columns)
    for name in columns:
        hidden = AS_IT_WAS.format(name)
        described.append(replace(table.schema[name], name=hidden, roles=frozenset(), drop=True))
        data = data.append_column(hidden, table.data.column(name))
        if name in table.closed:
            closed[hidden] = table.closed[name]
    return replace(coded, schema=replace(coded.schema, columns=tuple(described)), data=data, closed=closed)
