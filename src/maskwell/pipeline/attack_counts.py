"""What an attack has to look at: targets, records and fields by block, and records whose pairs are integrals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from ..attacks import Linkage
from ..attacks.bayes.pruned_sums.cell_mixture import least_split_pairs, parts_of
from ..attacks.bayes.pruned_sums.scores import is_plain, is_searched_by_trees, least_pairs
from ..attacks.class_codes import sure_columns
from ..attacks.joint_codes import block_codes
from ..laws import Additive, Transition
from ..laws.transform import FINE
from .coded_columns import AS_IT_WAS
from .costs import NODE, RECTANGLE, AttackCounts

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..table import Floats, Table

# Values of a record at limits from which on a pair of correlated noise is an integral by itself
RECTANGLES = 3
LEAST_SIZE = 0.5  # of the noise: smaller ones have next to no weight for who has seen many records
WIDE = 3  # so much longer takes a node where one column is wide: an interval in a closed form
SAME_SHARE = 0.002  # of the records: more of them as integrals cost as much as all other pairs do


def costs_alike(table: Table, one: NoiseCard, other: NoiseCard) -> bool:
    """Whether attacks cost the same by two cards of the same columns: by the same means of search."""
    kinds = [
        [(is_plain(law), is_searched_by_trees(law, table), _parts(law), _nodes(law)) for law in card.laws]
        for card in (one, other)
    ]
    integrals = [float(at_several_limits(table, card.laws).mean()) for card in (one, other)]
    return kinds[0] == kinds[1] and abs(integrals[1] - integrals[0]) <= SAME_SHARE


def counts_of(plan: Any, table: Table, card: NoiseCard) -> AttackCounts:
    """Count the targets and records of each block in which an intruder searches, and his fields."""
    schema = table.schema
    columns = plan.match_columns(schema)
    masked = set(card.masked)
    blocks = [name for name in columns if name in schema and not schema[name].drop]
    clear = [name for name in blocks if name not in masked or AS_IT_WAS.format(name) in schema]
    keys = {name for name in schema.with_role("key") if not schema[name].drop and name not in clear}
    own = plan.fields
    fields = len(own) if own else len(keys if isinstance(plan, Linkage) else keys | masked)
    codes, _ = block_codes(table, table, clear)
    targets = plan.eligible_records(table)
    size = int(codes.max(initial=0)) + 1
    every = np.bincount(codes[targets], minlength=size), np.bincount(codes, minlength=size)
    sure = set(sure_columns(card, schema, card.masked))
    laws = [law for law in card.laws if not set(law.columns) <= sure]
    normal, by_trees = all(map(is_plain, laws)), all(is_searched_by_trees(law, table) for law in laws)
    held = None if by_trees else np.bincount(codes, at_several_limits(table, laws), minlength=size)
    parts = 0 if by_trees else parts_of(laws)
    near = any(_is_near_units(law) for law in laws)
    return AttackCounts(
        *every,
        max(fields, 1),
        normal,
        by_trees,
        at_limits=held,
        near_units=near,
        nodes=max(map(_nodes, laws), default=0.0),
        parts=parts,
        has_units=any(_has_cells(law, LEAST_SIZE) for law in laws),
        unit_width=max(map(_third_width, laws), default=0.0),
        least_pairs=least_split_pairs(laws) if parts else least_pairs(laws),
        by_tables=sum(isinstance(law, Transition) and (not own or law.columns[0] in own) for law in laws),
    )


def at_several_limits(table: Table, laws: Sequence[Any]) -> Floats:
    """Return for each record how likely three or more values leave at codes or limits of correlated noise, or as 0.

    Counted as if they did so together: by the third likeliest of them.
    """
    most = np.zeros(len(table))
    for law in laws:
        if isinstance(law, Additive) and len(law.columns) >= RECTANGLES and np.any(_off_diagonal(law)):
            chances = np.column_stack([_chance_at_ends(table, law, j) for j in range(len(law.columns))])
            most = np.maximum(most, np.sort(chances, axis=1)[:, -RECTANGLES])
    return most


def _chance_at_ends(table: Table, law: Additive, j: int) -> Floats:
    """Return how likely each value of a column leaves at one of its limits, or on the log scale as 0 units."""
    outlet, values = law.outlets[j], table.floats(law.columns[j])
    if outlet.low is None and outlet.high is None and (outlet.log_shift is None or outlet.unit is None):
        return np.zeros(len(table))
    sd = float(np.sqrt(law.noise.covariance[j, j]))
    centre = law.centre(values, j)
    ends = [
        end if end is None else float(outlet.enter(np.array([end]))[0]) for end in (outlet.low, outlet.high)
    ]
    if outlet.low is None and outlet.log_shift is not None and outlet.unit is not None:
        ends[0] = float(np.log(float(outlet.unit) / 2))
    below, above = (
        np.zeros(len(table)) if end is None else ndtr(side * (end - centre) / sd)
        for end, side in zip(ends, (1.0, -1.0), strict=True)
    )
    return np.nan_to_num(below + above)


def _is_near_units(law: Any) -> bool:
    """Whether correlated noise on the log scale may bring three values of a record near the units they leave in."""
    if not isinstance(law, Additive) or not np.any(_off_diagonal(law)):
        return False
    return sum(one.log_shift is not None and one.unit is not None for one in law.outlets) >= RECTANGLES


def _has_cells(law: Any, part: float = 1.0) -> bool:
    """Whether three units and more are coarse beside correlated noise, or a part of it."""
    return len(_cell_widths(law, part)) >= RECTANGLES


def _third_width(law: Any) -> float:
    """Return how wide three units at least are, in sds of correlated noise given the other columns."""
    widths = np.sort(_cell_widths(law))
    return float(widths[-RECTANGLES]) if len(widths) >= RECTANGLES else 0.0


def _cell_widths(law: Any, part: float = 1.0) -> Floats:
    """Return the units, in sds of correlated noise given the other columns or a part of it, that are cells."""
    if not isinstance(law, Additive) or not np.any(_off_diagonal(law)):
        return np.empty(0)
    units = [0.0 if outlet.unit is None else float(outlet.unit) for outlet in law.outlets]
    plain = np.array([outlet.log_shift is None for outlet in law.outlets])
    widths = np.array(units) / (part * law.noise.resolution)
    return np.asarray(widths[plain & (widths > FINE)])


def _nodes(law: Any) -> float:
    """Return how many nodes the rules for a pair of cells have: more, the coarser the units are beside the noise.

    Where cells are wide along several columns a pair is an integral by a lattice, as at limits.
    """
    from ..kernels.normal_box_small import MOST_WEIGHT_POINTS, WEIGHT_NODES

    widths = np.sort(_cell_widths(law))
    if len(widths) < RECTANGLES:
        return 0.0
    for shorter, size in ((0, len(widths)), (1, len(widths) - 1)):
        count = next((count for most, count in WEIGHT_NODES if widths[-1 - shorter] <= most), 0)
        if count and count**size <= MOST_WEIGHT_POINTS:
            return float(count**size + (count - 1) ** size) * (1 + WIDE * shorter)
    return RECTANGLE / NODE


def _parts(law: Any) -> int:
    return parts_of([law])


def _off_diagonal(law: Additive) -> Floats:
    covariance = law.noise.covariance
    return np.asarray(covariance - np.diag(np.diag(covariance)))
