"""Numbers of few values that are a household's as others beside them are: dropped with these, for the same reason.

Few values stand beside their like by chance too often to tell a household. But where other numbers repeat the record
above as what a household shares does (`row_repeats`), the runs of records alike in all of these are households, as far
as the file tells them, and what nearly all of them have in common is theirs too (`constant_columns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .column_drafts import Draft
from .column_profile import Facts
from .constant_columns import Codes, GroupedRecords
from .row_repeats import FEWEST_VALUES, neighbours


def with_companions(drafts: Sequence[Draft], otherwise: str) -> list[Draft]:
    """Drop numbers of few values that nearly all such households share, and ask `otherwise`."""
    repeats = [draft.facts for draft in drafts if any(one.kind == "repeats" for one in draft.findings)]
    if not repeats:
        return list(drafts)
    households = GroupedRecords.of(runs_of_all(repeats))
    return [_with_households(draft, households, otherwise) for draft in drafts]


def runs_of_all(columns: Sequence[Facts]) -> Codes:
    """Number the runs of records that are alike in all of some columns."""
    codes = np.stack([one.category_codes for one in columns])
    return np.cumsum(np.r_[True, (np.diff(codes, axis=1) != 0).any(axis=0)]) - 1


def _with_households(draft: Draft, households: GroupedRecords, otherwise: str) -> Draft:
    column = draft.column
    is_open = column.is_number and not (column.drop or column.roles)
    if (
        not is_open
        or draft.facts.distinct >= FEWEST_VALUES
        or any(one.kind == "id" for one in draft.findings)
    ):
        return draft
    found, told = neighbours(draft.facts), households.constancy(draft.facts.category_codes)
    if found is None or told is None or not told.is_nearly_all:
        return draft
    text = f"{found}, as it is with what records that belong together share: dropped"
    return replace(draft, findings=()).asked("repeats", text, otherwise=otherwise, drop=True)
