"""One-to-one assignment of large blocks, certified by prices, against scipy's solver on the matrix of all pairs.

Every record is a target and a candidate, in one block of four fields, with noise of sd 0.3 or 1 of the field's, on
normal values and on skewed ones (exponentials of 1.5 times a normal: the tail has pairs thousands of noise sds apart).
The work is `optimal(Near.of(...))`: listed pairs, auctions, paths, and the proof over all pairs. The rival is
`scipy.optimize.linear_sum_assignment`; the matrix itself is not counted. The benchmark stops where the totals differ by
more than 1e-9 of them. Seconds are processor seconds of all threads; beyond 5,000 records the rival would need
gigabytes, and is left out.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from _harness import arguments, report
from scipy.optimize import linear_sum_assignment

from maskwell.attacks.one_to_one import Near, optimal

FIELDS, SKEW = 4, 1.5
MOST_DENSE = 5_000  # records of a block whose matrix the rival gets
SAME = 1e-9
FULL = (
    (2_000, 0.3, False),
    (2_000, 1.0, False),
    (3_000, 0.3, False),
    (3_000, 0.3, True),
)  # of a size that the rival solves in seconds: its time grows by the cube


def block_of(count: int, sd: float, skewed: bool) -> Near:
    """Draw true and released records of a block, where the noise has variance 1."""
    rng = np.random.default_rng(1)
    true = rng.normal(size=(count, FIELDS))
    true = np.exp(SKEW * true) if skewed else true
    released = (true + sd * rng.normal(size=true.shape)) / sd
    return Near.of(true / sd, released[rng.permutation(count)], np.zeros(count))


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
        return row
    costs = -block.matrix()
    rival, (_, columns) = timed(linear_sum_assignment, costs)
    ours, theirs = costs[rows, found.column].sum(), costs[rows, columns].sum()
    if abs(ours - theirs) > SAME * max(abs(theirs), 1.0):
        raise RuntimeError(f"the totals differ: {ours} and {theirs}")
    return row | {"rival_seconds": rival, "ratio": rival / seconds}


def main() -> None:
    """Measure and print."""
    given = arguments("one-to-one assignment of large blocks against scipy's matrix")
    optimal(block_of(100, 0.3, False))  # compiled before any clock runs
    jobs = FULL[:1] if given.quick else FULL
    report("assignment", [row_of(*job) for job in jobs], as_json=given.json)


if __name__ == "__main__":
    main()
