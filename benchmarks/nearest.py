"""Nearest records and the h-index: exact h, and Pr(h < 3) by capped neighbours, against comparing all pairs.

Data as in Goldstein and Shlomo: standard normal fields with correlations of 0.25, independent noise of variance 0.1;
all records are targets, in one block. A target's h is the number of true records closer to it than the true record
behind its nearest released one: a search among the released records (with ties and the second nearest), and a count
among the true ones; for Pr(h < 3) the count stops at three.

Rivals: `numba loop` compares all pairs in compiled loops as one writes them down (nearest alone, no ties, no second;
the count stops at three as well); `brute` is our own way without trees, side by side and sifted in single precision;
`cKDTree` is scipy's tree: `query`, then `query_ball_point(return_length=True)` for exact h, or `query` of the three
nearest for Pr(h < 3). Where a rival is too slow it has fewer targets (`rival_targets`) and its seconds are extrapolated
to all (`extrapolated`). The benchmark stops when an h differs from ours.

`growth` is the exponent between one size and the one before it. Seconds are processor seconds of all threads, figures
by way and number of fields are against `brute`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _harness import arguments, peak_mb, report
from numba import njit
from scipy.spatial import cKDTree

from maskwell.attacks.nearest.search import closer, nearest

HERE = Path(__file__).parent
CORRELATION, NOISE_VARIANCE, BELOW = 0.25, 0.1, 3
FEW = 10  # targets that show what a rival does once
WAYS = ("tree", "matrix", "brute", None)


class File(NamedTuple):
    """True records, released ones in random order, and the true record behind each of those."""

    true: Any
    released: Any
    behind: Any


def file_of(count: int, fields: int = 5) -> File:
    """Draw a file and its release."""
    rng = np.random.default_rng(1)
    shared, own = rng.normal(size=(count, 1)), rng.normal(size=(count, fields))
    true = np.sqrt(CORRELATION) * shared + np.sqrt(1 - CORRELATION) * own
    behind = rng.permutation(count)
    noise = np.sqrt(NOISE_VARIANCE) * rng.normal(size=(count, fields))
    return File(true, (true + noise)[behind], behind)


def apart(ours: Any, theirs: Any) -> Any:
    """Return the squared distances of pairs, summed in order of the fields."""
    total = np.zeros(len(ours))
    for k in range(ours.shape[1]):
        total += (theirs[:, k] - ours[:, k]) ** 2
    return total


def ours(file: File, targets: Any, most: int | None, how: str | None = None) -> Any:
    """Return the h of some targets, at most `most`."""
    known = file.true if len(targets) == len(file.true) else file.true[targets]
    blocks = np.zeros(len(known), np.int64), np.zeros(len(file.true), np.int64)
    link = file.behind[nearest(known, file.released, blocks, how=how).place]
    return closer(known, file.true, blocks, apart(known, file.true[link]), most=most, how=how)


# Rivals.


@njit
def _loop(true: Any, released: Any, behind: Any, targets: Any, most: int) -> Any:
    out = np.zeros(len(targets), np.int64)
    for n in range(len(targets)):
        i, least, found = targets[n], np.inf, 0
        for j in range(len(released)):
            total = 0.0
            for k in range(true.shape[1]):
                total += (released[j, k] - true[i, k]) ** 2
            if total < least:
                least, found = total, behind[j]
        radius = 0.0
        for k in range(true.shape[1]):
            radius += (true[found, k] - true[i, k]) ** 2
        for j in range(len(true)):
            total = 0.0
            for k in range(true.shape[1]):
                total += (true[j, k] - true[i, k]) ** 2
            if total < radius:
                out[n] += 1
                if out[n] == most:
                    break
    return out


def by_loop(file: File, targets: Any, most: int | None) -> Any:
    """Compare all pairs in compiled loops."""
    return _loop(*file, targets, -1 if most is None else most)


def by_brute(file: File, targets: Any, most: int | None) -> Any:
    """Compare all pairs our own way."""
    return ours(file, targets, most, "brute")


def by_scipy(file: File, targets: Any, most: int | None) -> Any:
    """Search scipy's trees, as its manual says."""
    known = file.true[targets]
    link = file.behind[cKDTree(file.released).query(known)[1]]
    radius, tree = np.sqrt(apart(known, file.true[link])), cKDTree(file.true)
    if most is None:
        inside = np.nextafter(radius * (1 - 1e-12), 0)  # a ball of scipy's holds its surface
        return np.where(radius > 0, tree.query_ball_point(known, inside, return_length=True), 0)
    return (tree.query(known, k=most)[0] < (radius * (1 - 1e-12))[:, None]).sum(axis=1)


RIVALS: dict[str, Callable[[File, Any, int | None], Any]] = {
    "numba loop": by_loop,
    "brute": by_brute,
    "cKDTree": by_scipy,
}


# Sizes.


def timed(work: Callable[..., Any], *given: Any, repeats: int = 1) -> tuple[float, float, Any]:
    """Return the least processor and wall seconds of several runs, and what the work returns."""
    times = []
    for _ in range(repeats):
        wall, start = time.perf_counter(), time.process_time()
        found = work(*given)
        times.append((time.process_time() - start, time.perf_counter() - wall))
    return min(each[0] for each in times), min(each[1] for each in times), found


def rivalled(file: File, most: int | None, expected: Any, name: str, targets: int) -> dict[str, Any]:
    """Time a rival on some targets, check what it finds, and extrapolate to all where they are fewer.

    What it does once, such as growing trees, is not multiplied: very few targets are timed as well.
    """
    count, rival = len(file.true), RIVALS[name]
    some = np.sort(np.random.default_rng(2).permutation(count)[:targets])
    rival(file_of(50), np.arange(50), most)
    seconds, _, found = timed(rival, file, some, most)
    if not np.array_equal(found, expected[some]):
        raise RuntimeError(
            f"{name} finds another h for {np.mean(found != expected[some]):.2%} of its targets"
        )
    if targets < count:
        once, _, _ = timed(rival, file, some[:FEW], most)
        seconds += (seconds - once) / (targets - FEW) * (count - targets)
    return {
        "rival": name,
        "rival_seconds": seconds,
        "rival_targets": targets,
        "extrapolated": targets < count,
    }


def searches(kind: str, most: int | None, sizes: dict[int, dict[str, int]]) -> Iterator[dict[str, Any]]:
    """Time one kind of search at every size against every rival."""
    earlier = None
    for count, targets in sizes.items():
        file = file_of(count)
        ours(file_of(50), np.arange(50), most)
        seconds, wall, found = timed(ours, file, np.arange(count), most, repeats=3 if count < 10**6 else 1)
        row = {"job": f"{kind}: {count:,} targets x {count:,}", "fields": 5, "seconds": seconds}
        row |= {"wall_seconds": wall, "microseconds_per_target": 1e6 * seconds / count}
        if earlier:
            row["growth"] = math.log(seconds / earlier[1]) / math.log(count / earlier[0])
        earlier = count, seconds
        for name, some in targets.items():
            rival = rivalled(file, most, found, name, min(some, count))
            yield row | rival | {"ratio": rival["rival_seconds"] / seconds}


def both(file: File) -> dict[str, Callable[[str | None], Any]]:
    """Return the two searches: the nearest released record, and how many are closer than one's own released one."""
    blocks = np.zeros(len(file.true), np.int64), np.zeros(len(file.true), np.int64)
    radius = apart(file.true, file.released[np.argsort(file.behind)])
    return {
        "nearest": lambda how: nearest(file.true, file.released, blocks, how=how).place,
        "closer": lambda how: closer(file.true, file.true, blocks, radius, how=how),
    }


def ways(count: int) -> Iterator[dict[str, Any]]:
    """Time all ways of both searches where there are more fields, and the one that is taken by itself."""
    for fields in (5, 10, 20, 40):
        for kind, work in both(file_of(count, fields)).items():
            took = {how: timed(work, how, repeats=3) for how in WAYS}
            if any(not np.array_equal(each[2], took["brute"][2]) for each in took.values()):
                raise RuntimeError(f"the ways of {kind} differ with {fields} fields")
            for how in WAYS:
                job = f"{kind}, {how or 'by itself'}: {count:,} x {count:,}"
                row = {"job": job, "fields": fields, "seconds": took[how][0], "wall_seconds": took[how][1]}
                row |= {"rival": "brute", "rival_seconds": took["brute"][0], "rival_targets": count}
                yield row | {"extrapolated": False, "ratio": took["brute"][0] / took[how][0]}


MEMORY = """
import sys
sys.path.insert(0, {folder!r})
import numpy as np
from nearest import file_of, ours
def prepare():
    ours(file_of(2000, {fields}), np.arange(2000), {most})
    return file_of({count}, {fields})
def work(prepared):
    return ours(prepared, np.arange({count}), {most})
"""


def memory(large: int, wide: int) -> Iterator[dict[str, Any]]:
    """Measure what the searches add to a process that holds the records: by trees, and by products of 20 fields."""
    for kind, most, count, fields in (
        (f"Pr(h < {BELOW})", BELOW, large, 5),
        ("exact h", None, large // 10, 5),
        ("exact h", None, wide, 20),
    ):
        code = MEMORY.format(folder=str(HERE), count=count, fields=fields, most=most)
        job = f"memory of {kind}: {count:,} targets x {count:,}"
        yield {"job": job, "fields": fields, "peak_mb": peak_mb(code), "records_mb": 16e-6 * count * fields}


def main() -> None:
    """Run the benchmark."""
    chosen = arguments(__doc__ or "")
    sizes = {
        1_000: {"numba loop": 1_000, "brute": 1_000, "cKDTree": 1_000},
        10_000: {"numba loop": 10_000, "brute": 10_000, "cKDTree": 10_000},
        100_000: {"numba loop": 1_000, "brute": 4_000, "cKDTree": 10_000},
        1_000_000: {"numba loop": 200, "brute": 800, "cKDTree": 10_000},
    }
    largest = 100_000 if chosen.quick else 1_000_000
    sizes = {count: targets for count, targets in sizes.items() if count <= largest}
    rows = [*searches(f"Pr(h < {BELOW})", BELOW, sizes), *searches("exact h", None, sizes)]
    rows += [*ways(4_000 if chosen.quick else 10_000), *memory(largest, 5_000 if chosen.quick else 20_000)]
    report("nearest", rows, as_json=chosen.json)


if __name__ == "__main__":
    main()
