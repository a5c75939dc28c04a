"""Which fields a matcher compares where there are more than patterns can be counted of: those that tell most.

A field that agrees with probability m in a match and u in any other pair tells, in a match, on average

    m log2(m / u) + (1 - m) log2((1 - m) / (1 - u))   bits

(Kullback and Leibler 1951; Winkler's weights, weighed by how often each occurs). The intruder learns m and u by EM as
he does for all fields, on some of his records and on a part of the fields at a time. Chosen where fields are more than
20: the counts of 2^20 patterns are the most that are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...table import Floats, Table
from .em import EM, SMALLEST
from .sorted_pairs import arrange, count_pairs

if TYPE_CHECKING:
    from ..agreement import ComparedField
    from .plan import Linkage

MOST_FIELDS = 20  # 2^20 counts of patterns are the most that are kept
SEARCHERS, FEW_SEARCHERS = 400, 50  # of his records
MOST_PAIRS = 20_000_000  # compared to put fields in an order
LOOK = EM(iterations=500, tolerance=1e-6)  # enough to put fields in an order


def most_telling(plan: Linkage, compared: ComparedField, known: Table, released: Table) -> tuple[str, ...]:
    """Return the fields that tell most, in the order in which they were given."""
    names = compared.fields
    bits = information(plan, compared, known, released)
    chosen = set(np.argsort(-bits, kind="stable")[:MOST_FIELDS].tolist())
    return tuple(name for place, name in enumerate(names) if place in chosen)


def information(plan: Linkage, compared: ComparedField, known: Table, released: Table) -> Floats:
    """Return how many bits each field tells in a match, by EM on some of the intruder's records."""
    blocks = plan.blocks_of(known, released)
    typical = float(np.bincount(blocks[1])[blocks[0][np.isin(blocks[0], blocks[1])]].mean())
    count = int(np.clip(MOST_PAIRS / max(typical, 1.0), FEW_SEARCHERS, SEARCHERS))
    rows = np.unique(np.linspace(0, len(known) - 1, min(count, len(known))).astype(np.int64))
    names, parts = compared.fields, -(-len(compared.fields) // MOST_FIELDS)
    bits = np.zeros(len(names))
    for part in range(parts):
        places = np.arange(part, len(names), parts)
        bits[places] = _bits(compared, places, rows, (blocks[0][rows], blocks[1]))
    return bits


def _bits(compared: ComparedField, places: Any, rows: Any, blocks: tuple[Any, Any]) -> Floats:
    """Return the bits of some of the fields."""
    some = compared.only(places)
    orders = np.arange(len(rows)), np.arange(len(blocks[1]))
    arranged = arrange(some.bounds(some.known[:, rows]), some.released, blocks, orders)
    counts, _ = count_pairs(arranged, marked=False)
    matches = min(int(np.count_nonzero(arranged.candidates)), len(arranged.places))
    fit = LOOK.fit(counts, matches)
    m, u = (np.clip(share, SMALLEST, 1 - SMALLEST) for share in (fit.m, fit.u))
    return np.asarray(m * np.log2(m / u) + (1 - m) * np.log2((1 - m) / (1 - u)))
