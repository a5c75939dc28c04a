"""A part of a large file on which the noise is searched: whole blocks, so that targets have the rivals that they have.

A search masks and attacks some fifty draws. Of 2,000,000 records that is minutes for a single intruder, and those who
find most would be left out. Intruders compare records within blocks, so that in whole blocks, drawn at random, they
find what they find in the file. The release itself is attacked as a whole afterwards, and its noise raised where the
part was too kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..attacks import Fingerprint
from ..attacks.joint_codes import block_codes
from ..attacks.protocol import Attack

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..table import Table

ENOUGH = 40_000  # records: the rate among 2,000 of their targets scatters more than the choice of blocks does
LEAST_BLOCKS = 20  # fewer may be no picture of the others
FEW = 0.5  # of the file: above, a part saves little


def search_part(table: Table, attacks: Mapping[str, Attack], card: NoiseCard) -> Table | None:
    """Return the records of whole blocks of a large file; nothing where it is small or has too few blocks."""
    columns = _common_blocks(table, attacks, card)
    if FEW * len(table) <= ENOUGH or not columns:
        return None
    codes, _ = block_codes(table, table, columns)
    sizes = np.bincount(codes)
    order = np.random.default_rng(0).permutation(np.flatnonzero(sizes))  # of blocks, the same in every run
    count = int(np.searchsorted(np.cumsum(sizes[order]), ENOUGH)) + 1
    chosen = np.zeros(len(sizes), bool)
    chosen[order[:count]] = True
    records = np.flatnonzero(chosen[codes])
    if count < LEAST_BLOCKS or len(records) > FEW * len(table):
        return None
    return table.take(records)


def _common_blocks(table: Table, attacks: Mapping[str, Attack], card: NoiseCard) -> tuple[str, ...]:
    """Return the columns in clear on which every intruder relies who compares records."""
    schema, masked = table.schema, set(card.masked)
    common: set[str] | None = None
    for plan in attacks.values():
        if isinstance(plan, Fingerprint):
            continue
        own = {name for name in plan.match_columns(schema) if name in schema and not schema[name].drop}
        common = own - masked if common is None else common & own
    return tuple(name for name in schema.names if name in (common or ()))
