"""One-to-one assignment of large blocks, certified by prices, against scipy's solvers.

Every record is a target and a candidate, in one block of four fields, with noise of sd 0.3 or 1 of the field's, on
normal values and on skewed ones (exponentials of 1.5 times a normal: the tail has pairs thousands of noise sds apart).
The work is `optimal(Near.of(...))`: listed pairs, auctions, paths, and the proof over all pairs. The rival is
`scipy.optimize.linear_sum_assignment`; the matrix itself is not counted. The benchmark stops where the totals differ by
more than 1e-9 of them. Beyond 5,000 records that rival would need gigabytes: there it is
`scipy.sparse.csgraph.min_weight_full_bipartite_matching` on the 50 nearest of each record on both sides, with our own
links added so that every record can have one. That answers another question, the best of some pairs without a proof
for all: its total may be worse, and the benchmark stops where it is better than ours by more than the gap. The search
for the nearest is not counted. Seconds are processor seconds of all threads.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _harness import arguments, report
from scipy.optimize import linear_sum_assignment
from scipy.sparse import csr_array
from scipy.sparse.csgraph import min_weight_full_bipartite_matching
from scipy.spatial import cKDTree

from maskwell.attacks.one_to_one import NearPairs, optimal

FIELDS, SKEW = 4, 1.5
MOST_DENSE = 5_000  # records of a block whose matrix the rival gets
NEAREST = 50  # pairs of each record that the sparse rival gets
SAME = 1e-9
FULL = (
    (2_000, 0.3, False),
    (2_000, 1.0, False),
    (3_000, 0.3, False),
    (3_000, 0.3, True),
    (20_000, 0.3, False),
    (20_000, 1.0, False),
)  # the first of a size that the rival solves in seconds: its time grows by the cube


def block_of(count: int, sd: float, skewed: bool) -> NearPairs:
    """Draw true and released records of a block, where the noise has variance 1."""
    rng = np.random.default_rng(1)
    true = rng.normal(size=(count, FIELDS))
    true = np.exp(SKEW * true) if skewed else true
    released = (true + sd * rng.normal(size=true.shape)) / sd
    return NearPairs.of(true / sd, released[rng.permutation(count)], np.zeros(count))


def timed(work: Any, *given: Any) -> tuple[float, Any]:
    """Return the processor seconds of a run, and what the work returns."""
    start = time.process_time()
    found = work(*given)
    return time.process_time() - start, found


def row_of(count: int, sd: float, skewed: bool) -> dict[str, Any]:
    """Time one block, against the rival where its matrix fits."""
    block = block_of(count, sd, skewed)
    seconds, found = timed(optimal, block)
    rows = np.arange(count)
    kind = "skewed" if skewed else "normal"
    row: dict[str, Any] = {"job": f"{kind}, noise sd {sd:g}: {count:,} x {count:,}", "seconds": seconds}
    row |= {"rival": "scipy", "rival_seconds": None, "ratio": None, "gap": found.gap}
    if count > MOST_DENSE:
        return row | against_sparse(block, found, seconds)
    costs = -block.matrix()
    rival, (_, columns) = timed(linear_sum_assignment, costs)
    ours, theirs = costs[rows, found.column].sum(), costs[rows, columns].sum()
    if abs(ours - theirs) > SAME * max(abs(theirs), 1.0):
        raise RuntimeError(f"the totals differ: {ours} and {theirs}")
    return row | {"rival_seconds": rival, "ratio": rival / seconds}


def against_sparse(block: NearPairs, found: Any, seconds: float) -> dict[str, Any]:
    """Time the sparse rival on the nearest pairs of both sides, and compare its total with ours."""
    count = len(found.column)
    ours, theirs = block.rows, block.columns
    pairs = [np.column_stack([np.arange(count), found.column])]
    for one, other, side in ((ours, theirs, 1), (theirs, ours, -1)):
        near = cKDTree(other).query(one, k=NEAREST)[1]
        pairs.append(np.column_stack([np.repeat(np.arange(count), NEAREST), near.ravel()])[:, ::side])
    listed = np.unique(np.concatenate(pairs), axis=0)
    costs = 0.5 * ((ours[listed[:, 0]] - theirs[listed[:, 1]]) ** 2).sum(axis=1)
    graph = csr_array((costs + 1.0, (listed[:, 0], listed[:, 1])), shape=(count, count))  # 0 would be no pair
    rival, (rows, columns) = timed(min_weight_full_bipartite_matching, graph)
    best = 0.5 * ((ours - theirs[found.column]) ** 2).sum()
    total = 0.5 * ((ours[rows] - theirs[columns]) ** 2).sum()
    if total < best - found.gap - SAME * best:
        raise RuntimeError(f"the rival's total is better: {total} and {best}")
    return {"rival": "scipy, sparse", "rival_seconds": rival, "ratio": rival / seconds}


def main() -> None:
    """Measure and print."""
    given = arguments("one-to-one assignment of large blocks against scipy's matrix")
    optimal(block_of(100, 0.3, False))  # compiled before any clock runs
    jobs = FULL[:1] if given.quick else FULL
    report("assignment", [row_of(*job) for job in jobs], as_json=given.json)


if __name__ == "__main__":
    main()
