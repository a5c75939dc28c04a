"""What leaves as classes, coded before any noise: a search for the weakest noise then knows one scale alone.

Intruders code their own records as a release does (see `attacks.class_codes`). `CodedTable` is a table on which that
is done already, with the masks that are left for the other columns: on it attacks find what they find on the whole
masking.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..attacks.protocol import Attack
from ..errors import MaskwellWarning
from ..keys import Key
from ..masking import Mask, apply
from ..masks import Chain, Grouping
from ..table import Table

AS_IT_WAS = "{} (as it was)"


@dataclass(frozen=True)
class CodedTable:
    """A table with the columns that leave as classes coded already, and the masks that are left for the others.

    The columns as they were stay beside it, dropped, so that targets are chosen by the blocks that they really have.
    """

    table: Table
    mask: Mask
    groupings: tuple[Grouping, ...] = ()
    columns: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()

    @classmethod
    def of(cls, table: Table, mask: Mask) -> CodedTable:
        """Code the columns that are grouped and not masked otherwise."""
        stages = _stages(mask)
        named = [name for one in stages for name in one.columns]
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
        return cls(_beside(table, coded, columns), _chain_of_masks(rest), groupings, columns, blocks)

    def whole(self, mask: Any) -> Any:
        """Return the masks of a plan with those of the other columns changed."""
        return _chain_of_masks((*self.groupings, *_stages(mask))) if self.groupings else mask

    def attacks(self, plans: Mapping[str, Attack]) -> dict[str, Any]:
        """Return attacks that choose their targets by the columns as they were."""
        return {name: self._attack(plan) for name, plan in plans.items()}

    def _attack(self, plan: Any) -> Any:
        if not self.columns or plan.largest_target_block is None:
            return plan
        named = self.blocks if plan.target_blocks is None else plan.target_blocks
        renamed = [AS_IT_WAS.format(name) if name in self.columns else name for name in named]
        return replace(plan, target_blocks=tuple(renamed))


def _stages(mask: Any) -> tuple[Any, ...]:
    if isinstance(mask, Chain):
        return tuple(one for stage in mask.masks for one in _stages(stage))
    return (mask,)


def _chain_of_masks(masks: tuple[Any, ...]) -> Any:
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
