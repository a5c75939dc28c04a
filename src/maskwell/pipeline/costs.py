"""What an attack costs, by counts: seconds = targets x candidates x fields x a figure of the table below.

The figures are seconds of one core for one pair of records and one field, measured by `benchmarks/costs.py` and rounded
up. They decide how many targets are looked for (see `budget`), never how long a run may take: a clock would make the
bytes of a release depend on what else the machine does. A faster machine is told by a larger `minutes` in `[budget]`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..attacks import BayesIntruder, Linkage, NearestRecord
from ..attacks.bayes.matching_posterior.matchings import MATCHED_CELLS
from ..attacks.bayes.pruned_sums.scores import LEAST_PAIRS
from ..attacks.linkage.em import EM
from ..attacks.linkage.field_choice import MOST_FIELDS
from ..attacks.protocol import Ints
from ..table import Floats

LINKED, NEAREST = 1e-8, 2.5e-8  # two passes over the pairs for record linkage
WEIGHED, CROSSED = 3e-8, 4.5e-9  # the density of a law: a field, and a field with another (correlated noise)
BY_TREES = 1.5e-8  # normal noise, on pairs enough for trees
# Without the card: over the nodes of a quadrature; for laws with more unknowns
UNTOLD, UNTOLD_MIXED = 1.5e-7, 3e-6
# Where strong noise on the log scale brings values of three columns and more near their units
UNTOLD_CELLS = 1e-5
# Where three units and more are coarse beside small sizes of the noise: boxes at every node; more of them where units
# are wide beside the noise itself
UNTOLD_UNITS, UNTOLD_WIDE_UNITS = 3e-6, 6e-6
UNTOLD_COLUMN = 5e-7  # the columns of a record, read once
# A pair of which three values and more are cells of coarse units under correlated noise, and each of its nodes
CELLS, NODE = 3e-6, 2.4e-8
PART = 4e-8  # a pair and one of the parts into which such cells are split where units are coarser than trees take
PRUNED = 0.05  # of the pairs that trees weigh in large blocks with few fields: the others weigh nothing (see `eps`)
LARGE_BLOCK, FEW_FIELDS = 1_000, 8
# One-to-one in a block: by trees or a matrix, or weighed in each round
ASSIGNED_PAIR, WEIGHED_AGAIN = 1.3e-7, 4e-7
ASSIGNED_LARGE, IN_MATRIX = 7e-8, 1_000  # by trees in large blocks; records of a block whose pairs are kept
ASSIGNED_TIES = 6e-7  # where units are coarse: many pairs have one score, and prices settle slowly
MANY_TIES, WIDE_UNIT = 1.0, 1.5  # unit widths from which on these costs were measured (`benchmarks/costs.py`)
# A pair with three or more values at codes or limits of correlated noise: an integral by itself
RECTANGLE = 3e-4
COMPANY_PAIR = 2e-5  # the ceiling in a block: chains of matchings
BOUNDED = 30.0  # the ceiling of blocks too large for that, in all: so many neighbourhoods, a second each
EM_CELL = 2e-9  # a pattern and a field in one step of EM
RECORD_COLUMN = 3.5e-7  # masking, shuffling and new ids
START = 0.05  # an attack on anything
RECORD = 1.5e-6  # an attack on a file: codes of its blocks, ties by the key
MASK_START = 0.01
AUDITED_CELL = 5e-6  # the audit but for tests of laws: a record, a column, and each column held against it
AUDIT_START = 0.8  # the audit of anything, who knows the law and the outer links among it


@dataclass(frozen=True, slots=True)
class AttackCounts:
    """How many targets and released records each block has, and how many fields are compared.

    `normal` says that all their noise is normal, `by_trees` that its laws allow trees. Samples may be of
    `whole_blocks`. `at_limits` counts the records of each block that three or more codes or
    limits of correlated noise hold; `near_units` says that such noise on the log scale may bring three values near
    their units, where each pair is an integral; `nodes` how many a pair takes where three units are coarse beside it,
    `parts` into how many their cells can be split (0: they cannot). `has_units` says that they are coarse beside a
    small part of it, as who does not know its size has to weigh. Trees are taken from `least_pairs` on.
    """

    targets: Ints
    records: Ints
    fields: int
    normal: bool = False
    by_trees: bool = False
    whole_blocks: bool = False
    at_limits: Ints | None = None
    near_units: bool = False
    nodes: float = 0.0
    parts: int = 0
    has_units: bool = False
    unit_width: float = 0.0
    least_pairs: int = LEAST_PAIRS
    by_tables: int = 0  # of the fields those that a table of chances changes, each by itself

    @property
    def total(self) -> int:
        """How many targets there are."""
        return int(self.targets.sum())

    def seen(self, sample: int | None) -> Floats:
        """Return the chance of each block that one of a sample of the targets is in it."""
        share = self.targets / max(self.total, 1)
        if sample is None or sample >= self.total:
            return np.asarray(self.targets > 0, dtype=np.float64)
        if self.whole_blocks:
            return np.where(self.targets > 0, sample / self.total, 0.0)
        return np.asarray(1.0 - (1.0 - share) ** sample)

    def pairs(self, sample: int | None) -> float:
        """Return how many pairs of a target and a record of its block there are."""
        part = 1.0 if sample is None else min(sample / max(self.total, 1), 1.0)
        return part * float((self.targets.astype(np.float64) * self.records).sum())

    def squares(self, sample: int | None) -> float:
        """Return how many pairs of records there are in the blocks of the targets, but for those that are pruned."""
        squares = self.records.astype(np.float64) ** 2
        if (self.by_trees or self.parts) and self.fields <= FEW_FIELDS:
            all_weighed = np.minimum(squares, float(LARGE_BLOCK) ** 2)
            squares = all_weighed + PRUNED * (squares - all_weighed)
        return float((self.seen(sample) * squares).sum())

    def whole_squares(self, sample: int | None) -> float:
        """Return how many pairs of records there are in the blocks of the targets."""
        return float((self.seen(sample) * self.records.astype(np.float64) ** 2).sum())

    def rectangle_seconds(self, sample: int | None) -> float:
        """Return what the records at several limits cost in the blocks of the targets: each with all true ones."""
        if self.at_limits is None:
            return 0.0
        return RECTANGLE * float((self.seen(sample) * self.at_limits * self.records).sum())

    def assignment_seconds(self, sample: int | None) -> float:
        """Return what one-to-one links cost in the blocks of the targets beside the weights of pairs."""
        small, large = (ASSIGNED_PAIR, ASSIGNED_LARGE) if self.by_trees else (ASSIGNED_PAIR, WEIGHED_AGAIN)
        large = ASSIGNED_TIES if self.unit_width >= MANY_TIES else large
        squares = self.records.astype(np.float64) ** 2
        each = np.where(self.records > (LARGE_BLOCK if self.by_trees else IN_MATRIX), large, small)
        return float((self.seen(sample) * squares * each).sum())


def attack_seconds(plan: Any, counts: AttackCounts, sample: int | None) -> float:
    """Return what an attack by a plan costs on a sample of its targets, or on all."""
    read, cells = START + RECORD * float(counts.records.sum()), counts.pairs(sample) * counts.fields
    if isinstance(plan, Linkage):
        used = min(counts.fields, MOST_FIELDS)
        return read + counts.pairs(sample) * used * LINKED + em_seconds(plan, counts, sample)
    if isinstance(plan, NearestRecord):
        return read + cells * NEAREST
    if not isinstance(plan, BayesIntruder):
        return read
    if plan.prior is not None:
        columns = float(counts.records.sum()) * counts.fields
        return read + columns * UNTOLD_COLUMN + cells * _untold_seconds(counts)
    return read + _weighed_seconds(plan, counts, sample)


def _untold_seconds(counts: AttackCounts) -> float:
    """Return what a pair and a field cost who does not know the card."""
    if counts.near_units:
        return UNTOLD_CELLS
    if not counts.normal:
        return UNTOLD_MIXED
    if counts.unit_width >= WIDE_UNIT:
        return UNTOLD_WIDE_UNITS
    return UNTOLD_UNITS if counts.has_units else UNTOLD


def _weighed_seconds(plan: BayesIntruder, counts: AttackCounts, sample: int | None) -> float:
    """Return what who knows the law computes: densities of the pairs that he looks at, and of all for f(z)."""
    competing = bool(plan.helpers) or plan.assignment == "one-to-one"  # then whole blocks are looked at
    squares = counts.squares(sample)
    sought = squares if competing else counts.pairs(sample)
    is_large = counts.whole_squares(sample) >= counts.least_pairs
    if is_large and counts.parts and not plan.helpers:
        return _split_seconds(counts, sample, competing)
    by_trees = is_large and counts.by_trees
    if not by_trees:
        squares = counts.whole_squares(sample)
        sought = squares if competing else sought
    crossed = max(counts.fields - counts.by_tables, 0) ** 2
    each = counts.fields * BY_TREES if by_trees else counts.fields * WEIGHED + crossed * CROSSED
    each += CELLS + NODE * counts.nodes if counts.nodes and not by_trees else 0.0
    weighed = (squares + sought) * each + counts.rectangle_seconds(sample)
    if plan.helpers:
        return weighed + _company_seconds(counts, sample)
    return weighed + (counts.assignment_seconds(sample) if competing else 0.0)


def _split_seconds(counts: AttackCounts, sample: int | None, competing: bool) -> float:
    """Return what cells in parts cost: f(z) by trees, and the pairs that are looked at one by one."""
    sought = counts.whole_squares(sample) if competing else counts.pairs(sample)
    weighed = counts.parts * (counts.squares(sample) * counts.fields * BY_TREES + sought * PART)
    return weighed + (counts.assignment_seconds(sample) if competing else 0.0)


def _company_seconds(counts: AttackCounts, sample: int | None) -> float:
    """Return what the ceiling costs beside the weights of pairs: of blocks with too many in all it is bounded."""
    pairs = counts.whole_squares(sample)
    return BOUNDED if pairs > MATCHED_CELLS else pairs * COMPANY_PAIR


def em_seconds(plan: Linkage, counts: AttackCounts, sample: int | None) -> float:
    """Return what EM costs at most: every step from every start goes over all patterns that occur."""
    if not isinstance(plan.weights, EM):
        return 0.0
    return plan.weights.iterations * step_seconds(plan.weights, counts, sample)


def step_seconds(weights: EM, counts: AttackCounts, sample: int | None) -> float:
    """Return what a step of EM costs from all starts."""
    used = min(counts.fields, MOST_FIELDS)
    patterns = min(2.0**used, counts.pairs(sample))
    return weights.starts * patterns * used * EM_CELL


def mask_seconds(records: int, columns: int) -> float:
    """Return what one masking costs."""
    return MASK_START + records * max(columns, 1) * RECORD_COLUMN


def audit_seconds(records: int, columns: int) -> float:
    """Return what one audit costs beside the attacks that were made already: columns are tested against each other."""
    return AUDIT_START + records * float(columns) ** 2 * AUDITED_CELL
