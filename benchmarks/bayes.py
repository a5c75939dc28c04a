"""The Bayesian intruder on large files: posteriors of all records against comparing all pairs in numpy.

Standard normal fields with correlations of 0.25, independent noise with an sd of 1/100 (light), 1/6 (medium) and 1
(heavy) of theirs, which are the three of Trottini and others, and of 1/10; every record is a target and a candidate, in
one block. The work is `Pruning.coherent(...).best()`: f(z) of each released record from all true ones, then for each
target its best candidate, the second, ties and the sum of all posterior weights, of which at most a share `eps` is left
out.

The rival has the whole arrays of squared distances by one matrix product, a stretch of records at a time, and takes
exponentials and sums with numpy: f(z), then links and sums of weights. It is run for some of the records (of both
steps) and extrapolated to all (`rival_records`). The benchmark stops when a link differs, or when a probability does by
more than the bound that was stated. Seconds are processor seconds of all threads, the least of several runs; `growth`
is the exponent between one size and the one before it.

A million records with medium or heavy noise would take hours: there ours is run for some of the records too
(`our_records`), with trees over all of them and f(z) by its formula in the second step, and extrapolated likewise.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _harness import arguments, peak_mb, report

from maskwell.attacks.bayes.pruned_sums.posterior_sums import PrunedSearch
from maskwell.attacks.bayes.pruned_sums.trees import Points

HERE = Path(__file__).parent
MASKINGS = {"light": 0.01**2, "sd 1/10": 0.1**2, "medium": 1 / 36, "heavy": 1.0}  # variances
CORRELATION = 0.25
STRETCH = 4_000_000  # pairs that the rival has at once
ROUNDING = 1e-5  # of the rival: distances by a product, and then nearly all is taken away from 1


class File(NamedTuple):
    """True and released records where the noise has variance 1, and the true record behind each released one."""

    true: Any
    released: Any
    behind: Any


def file_of(count: int, fields: int, variance: float) -> File:
    """Draw a file and its release."""
    rng = np.random.default_rng(1)
    shared, own = rng.normal(size=(count, 1)), rng.normal(size=(count, fields))
    true = (np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own) / np.sqrt(variance)
    behind = rng.permutation(count)
    return File(true, (true + rng.normal(size=true.shape))[behind], behind)


def ours(file: File, eps: float) -> Any:
    """Return the best links with their sums."""
    count = len(file.true)
    true, released = (Points(values, np.zeros(count, np.int64)) for values in (file.true, file.released))
    pruning = PrunedSearch.coherent(true, true, released, np.full(count, count), eps)
    return pruning, pruning.best()


# The rival.


def squared(near: Any, far: Any) -> Any:
    """Return all squared distances by a matrix product."""
    return np.maximum((near**2).sum(axis=1)[:, None] + (far**2).sum(axis=1) - 2 * near @ far.T, 0.0)


def stretches(records: Any, others: int) -> Iterator[Any]:
    """Cut records into stretches that make so many pairs with all others."""
    length = max(STRETCH // others, 1)
    return (records[begin : begin + length] for begin in range(0, len(records), length))


def log_sum(logs: Any) -> Any:
    """Return the log of summed exponentials of each row."""
    top = logs.max(axis=1, keepdims=True)
    return np.log(np.exp(logs - top).sum(axis=1)) + top[:, 0]


def rival_f(file: File, records: Any) -> Any:
    """Return log f(z) of some released records, without the constant."""
    parts = [
        log_sum(-squared(file.released[some], file.true) / 2) for some in stretches(records, len(file.true))
    ]
    return np.concatenate(parts) - np.log(len(file.true))


def rival_links(file: File, log_f: Any, records: Any) -> tuple[Any, Any]:
    """Return the best link of some targets, and its posterior probability."""
    links, chances, count = [], [], len(file.true)
    for some in stretches(records, count):
        scores = -squared(file.true[some], file.released) / 2 - log_f
        rest = np.maximum(1 - np.minimum(np.exp(scores - np.log(count)), 1), 1e-9)
        weights = scores - np.log(rest)
        best = scores.argmax(axis=1)
        links.append(best)
        chances.append(np.exp(weights[np.arange(len(some)), best] - log_sum(weights)))
    return np.concatenate(links), np.concatenate(chances)


# Sizes.


def timed(work: Any, *given: Any, repeats: int = 1) -> tuple[float, Any]:
    """Return the least processor seconds of several runs, and what the work returns."""
    seconds = []
    for _ in range(repeats):
        start = time.process_time()
        found = work(*given)
        seconds.append(time.process_time() - start)
    return min(seconds), found


def checked(file: File, pruning: Any, best: Any, links: Any, chances: Any, records: Any) -> float:
    """Stop where a link or a probability is not what the rival has; return how far probabilities are off."""
    if not np.array_equal(best.place[records], links):
        raise RuntimeError(f"{np.mean(best.place[records] != links):.2%} of the links differ")
    count = len(file.true)
    share = np.minimum(np.exp(best.score[records] - np.log(count)), 1)
    own = best.score[records] - np.log(np.maximum(1 - share, 1e-9)) + np.log((count - 1) / count)
    off = np.abs(np.exp(own - best.log_total[records]) - chances)
    if (off > best.neglected[records] * chances + ROUNDING).any():
        raise RuntimeError(f"a probability is off by {off.max():.1e}")
    return float(off.max())


def search(count: int, fields: int, kind: str, eps: float, some: int) -> dict[str, Any]:
    """Time one search against the rival, who does some of the records."""
    file = file_of(count, fields, MASKINGS[kind])
    ours(file_of(100, fields, MASKINGS[kind]), eps)
    seconds, (pruning, best) = timed(
        ours, file, eps, repeats=3 if count <= 100_000 and kind != "heavy" else 1
    )
    records = np.sort(np.random.default_rng(2).permutation(count)[:some])
    first, log_f = timed(rival_f, file, records)
    if np.abs(log_f - pruning.log_f[records]).max() > eps + ROUNDING:
        raise RuntimeError("f(z) is not what the rival has")
    whole = log_f if some == count else pruning.log_f
    second, (links, chances) = timed(rival_links, file, whole, records)
    off = checked(file, pruning, best, links, chances, records)
    rival = (first + second) * count / some
    row = {"job": f"{kind}: {count:,} x {count:,}", "fields": fields, "eps": eps, "seconds": seconds}
    row |= {"rival": "numpy", "rival_seconds": rival, "rival_records": some, "ratio": rival / seconds}
    return row | {"neglected": float(best.neglected.max()), "off": off}


def normal_log_f(file: File, variance: float) -> Any:
    """Return log f(z) of each released record under the law of the file, without the constant of the noise."""
    fields = file.true.shape[1]
    covariance = (np.eye(fields) * (1 - CORRELATION) + CORRELATION) / variance + np.eye(fields)
    square = (file.released @ np.linalg.inv(covariance) * file.released).sum(axis=1)
    return -square / 2 - np.linalg.slogdet(covariance)[1] / 2


def sampled(count: int, fields: int, kind: str, eps: float, our_some: int, some: int) -> dict[str, Any]:
    """Time both steps for some of the records."""
    from maskwell.attacks.bayes.pruned_sums.trees import Trees
    from maskwell.kernels.gaussian_leaves import Rules

    file, nobody = file_of(count, fields, MASKINGS[kind]), np.zeros(count, np.int64)
    ours(file_of(100, fields, MASKINGS[kind]), eps)
    all_records = np.random.default_rng(2).permutation(count)
    mine, records = np.sort(all_records[:our_some]), np.sort(all_records[:some])
    true, released = Points(file.true, nobody), Points(file.released, nobody)
    grow, trees = timed(Trees.of, true, np.zeros(count))
    rules = Rules(eps, True, False, False, 0.0)
    sums, found = timed(trees.weigh, released.take(mine), rules)
    log_f = normal_log_f(file, MASKINGS[kind])
    again, pruning = timed(PrunedSearch.given, true.take(mine), released, -log_f, eps)
    links, best = timed(pruning.best)
    first, exact = timed(rival_f, file, records)
    where = np.searchsorted(mine, records)
    if np.abs(exact + np.log(count) - found.log_sum[where]).max() > eps + ROUNDING:
        raise RuntimeError("f(z) is not what the rival has")
    second, (theirs, _) = timed(rival_links, file, log_f, records)
    if not np.array_equal(best.place[where], theirs):
        raise RuntimeError(f"{np.mean(best.place[where] != theirs):.2%} of the links differ")
    seconds, rival = grow + again + (sums + links) * count / our_some, (first + second) * count / some
    row = {"job": f"{kind}: {count:,} x {count:,}", "fields": fields, "eps": eps, "seconds": seconds}
    row |= {"our_records": our_some, "rival": "numpy", "rival_seconds": rival, "rival_records": some}
    return row | {"ratio": rival / seconds, "neglected": float(best.neglected.max())}


def searches(sizes: dict[int, int], fields: int, eps: float) -> Iterator[dict[str, Any]]:
    """Time all maskings at every size."""
    for kind in MASKINGS:
        earlier = None
        for count, some in sizes.items():
            row = search(count, fields, kind, eps, some)
            if earlier:
                row["growth"] = math.log(row["seconds"] / earlier[1]) / math.log(count / earlier[0])
            earlier = count, row["seconds"]
            yield row


MEMORY = """
import sys
sys.path.insert(0, {folder!r})
from bayes import file_of, ours
def prepare():
    ours(file_of(2000, 4, {variance}), 1e-3)
    return file_of({count}, 4, {variance})
def work(prepared):
    return ours(prepared, 1e-3)
"""


def memory(counts: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Measure what a search adds to a process that holds the records."""
    for count in counts:
        code = MEMORY.format(folder=str(HERE), count=count, variance=MASKINGS["light"])
        job = f"memory of light: {count:,} x {count:,}"
        yield {"job": job, "fields": 4, "peak_mb": peak_mb(code), "records_mb": 64e-6 * count}


def main() -> None:
    """Run the benchmark."""
    chosen = arguments(__doc__ or "")
    sizes = {1_000: 1_000, 10_000: 2_000} if chosen.quick else {1_000: 1_000, 10_000: 10_000, 100_000: 1_000}
    rows = [row for eps in (1e-3, 1e-6) for row in searches(sizes, 4, eps)]
    if not chosen.quick:
        rows.append(search(1_000_000, 4, "light", 1e-3, 200))
        rows += [sampled(1_000_000, 4, kind, 1e-3, 5_000, 200) for kind in ("sd 1/10", "medium", "heavy")]
        rows += [search(100_000, fields, kind, 1e-3, 500) for fields in (2, 8) for kind in MASKINGS]
    rows += [*memory((10_000,) if chosen.quick else (100_000, 1_000_000))]
    report("bayes", rows, as_json=chosen.json)


if __name__ == "__main__":
    main()
