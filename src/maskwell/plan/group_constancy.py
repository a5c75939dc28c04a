"""What the records of a group share, in the words of a draft: of nearly all groups, and values of one group alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..io.constant_columns import GroupedRecords, value_codes
from .column_numbers import group_codes
from .dependence import Ints, sharing_records

if TYPE_CHECKING:
    from ..table import Floats, Table


def own_value_words(table: Table, name: str, group: str) -> str:
    """Say of how many values of a column all records are of one group, which they identify."""
    pairs = np.unique(np.stack([value_codes(table.floats(name)), group_codes(table, group)]), axis=1)
    pairs = pairs[:, pairs.min(axis=0) >= 0]
    different, groups = np.unique(pairs[0], return_counts=True)
    alone = int(np.count_nonzero(groups == 1))
    if not alone or len(different) < 2:
        return ""
    verb = "belongs" if alone == 1 else "belong"
    return f"{alone:,} of its {len(different):,} values {verb} to one {group} alone"


def is_nearly_shared(table: Table, name: str, group: str) -> bool:
    """Whether nearly all groups of several records have one value of a column, and not by chance."""
    found = GroupedRecords.of(group_codes(table, group)).constancy(value_codes(table.floats(name)))
    return found is not None and found.is_nearly_all


def sharing_share_words(who: str, grouping: GroupedRecords, values: Floats) -> str:
    """Say of how many groups of several all records have one value, where these are nearly all and not by chance."""
    found = grouping.constancy(value_codes(values))
    if found is None or not found.is_nearly_all:
        return ""
    chance = f"{found.chance:.1%}" if found.chance >= 0.001 else "under 0.1%"
    return (
        f"the same for all records {who} in {found.share:.1%} of the {found.groups:,} groups of several records, where "
        f"chance gives {chance}"
    )


def few_sharing_words(who: str, numbers: Ints, values: Floats) -> str:
    """Name a group that few records share, with their number."""
    together = sharing_records(numbers, ~np.isnan(values))
    return f"{who} ({together:,} of {len(values):,} records share one with others)"
