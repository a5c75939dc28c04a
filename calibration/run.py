"""Calibrate the samplers: Geweke's test of all kernels x laws, simulation-based calibration of all families x laws.

    python calibration/run.py [--quick] [--part geweke|ranks] [--json] [--again]

Results are kept in `results.json` after every product, so that a run can be broken off and carried on; `--again` begins
anew. Figures are drawn at the end. Exits with 1 where something is not calibrated.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from products import CODES, FAMILIES, KERNELS, NUMBERS, World, differences, limit, scores, settings_of
from ranks import INTERVALS, binomial_limits, judged, ranks_of
from scipy import stats

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
SIZES = {"quick": {"tours": 60, "files": 32}, "full": {"tours": 400, "files": 160}}
SECONDS = {"tours": 0.012, "files": 0.25}  # of one core, for each: measured, an estimate
LEVEL = 0.001


def main() -> int:
    """Run what is asked for and is not there yet; print and draw what was found."""
    asked = _asked()
    size = SIZES["quick" if asked.quick else "full"]
    kept: dict[str, Any] = {} if asked.again or not RESULTS.exists() else json.loads(RESULTS.read_text())
    if kept.get("size") != size:
        kept = {"size": size, "geweke": {}, "ranks": {}, "seconds": 0.0}
    jobs = [
        job for job in _jobs() if asked.part in (None, job[0]) and f"{job[1]} x {job[2]}" not in kept[job[0]]
    ]
    left = sum(SECONDS["tours" if job[0] == "geweke" else "files"] * _times(job, size) for job in jobs)
    print(f"{len(jobs)} products to do, about {left / 60:.0f} minutes of one core", file=sys.stderr)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        running = {pool.submit(_do, job, size): job for job in jobs}
        for number, done in enumerate(as_completed(running)):
            _keep(running[done], *done.result(), kept)
            name = " x ".join(running[done][1:])
            print(f"\r{number + 1} of {len(jobs)}: {name:50s}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    failures = verdict(kept)
    _write(kept)
    if asked.json:
        print(json.dumps(kept["verdict"], indent=1))
    else:
        print(_words(kept["verdict"]))
    from figures import draw_all

    draw_all(kept, HERE)
    return 1 if failures else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="fewer tours and files: about 20 minutes of one core"
    )
    parser.add_argument("--part", choices=("geweke", "ranks"), help="one of the two only")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    parser.add_argument("--again", action="store_true", help="forget what is there and begin anew")
    return parser.parse_args()


def _jobs() -> list[tuple[str, str, str]]:
    laws = (*NUMBERS, *CODES)
    found = [("geweke", kernel, law) for kernel in KERNELS for law in laws if settings_of(kernel, law)]
    return found + [("ranks", family, law) for family in FAMILIES for law in laws]


def _times(job: tuple[str, str, str], size: dict[str, int]) -> int:
    return size["tours" if job[0] == "geweke" else "files"]


def _do(job: tuple[str, str, str], size: dict[str, int]) -> tuple[dict[str, Any], float]:
    """Run one product; return what it gave, and the processor seconds it took."""
    from maskwell.analysis.samplers.gibbs import ordered_probit

    ordered_probit.CUT_SD = 1.0  # a size that few records speak of
    part, first, law = job
    # each product has files of its own, so that their verdicts can be counted together
    first_number = [*(KERNELS if part == "geweke" else FAMILIES)].index(first)
    begun, seed = time.process_time(), 1000 + 100 * first_number + [*NUMBERS, *CODES].index(law)
    if part == "geweke":
        setting = settings_of(first, law)
        assert setting is not None
        found = scores(differences(World(setting, seed), size["tours"]))
        result: dict[str, Any] = {"worst": round(float(np.abs(found).max()), 3), "statistics": len(found)}
    else:
        names, ranks, apart = ranks_of(first, law, size["files"], seed)
        result = {"names": list(names), "sweeps between draws": round(apart, 1), **judged(ranks)}
    return result, time.process_time() - begun


def _keep(job: tuple[str, str, str], result: dict[str, Any], seconds: float, kept: dict[str, Any]) -> None:
    kept["seconds"] = round(kept["seconds"] + seconds, 1)
    kept[job[0]][f"{job[1]} x {job[2]}"] = result
    _write(kept)


def _write(kept: dict[str, Any]) -> None:
    beside = RESULTS.with_suffix(".part")
    beside.write_text(json.dumps(kept, indent=1) + "\n")
    os.replace(beside, RESULTS)


def verdict(kept: dict[str, Any]) -> list[str]:
    """Judge all products together, Bonferroni over every one of them; return what failed."""
    tours = kept["size"]["tours"]
    count = sum(found["statistics"] for found in kept["geweke"].values())
    bound = limit(max(count, 1), tours, LEVEL)
    failures = [f"Geweke: {name}" for name, found in kept["geweke"].items() if found["worst"] > bound]
    tests = max(sum(len(found["p"]) for found in kept["ranks"].values()), 1)
    least = min((p for found in kept["ranks"].values() for p in found["p"]), default=1.0)
    for name, found in kept["ranks"].items():
        if min(found["p"]) < LEVEL / tests:
            failures.append(f"ranks: {name}")
        for level in INTERVALS:
            low, high = binomial_limits(level, found["files"], tests * len(INTERVALS), LEVEL)
            if any(not low <= held <= high for held in found["held"][str(level)]):
                failures.append(f"coverage of {level:.0%} intervals: {name}")
    held = {str(level): _coverage(kept, level) for level in INTERVALS}
    for level, (share, away) in held.items():
        if abs(away) > stats.norm.isf(LEVEL / 2 / len(INTERVALS)):
            failures.append(f"coverage of {float(level):.0%} intervals over all products: {share:.2%}")
    kept["verdict"] = {
        "geweke": {"products": len(kept["geweke"]), "statistics": count, "limit": round(bound, 2)},
        "worst score": max((found["worst"] for found in kept["geweke"].values()), default=0.0),
        "ranks": {"products": len(kept["ranks"]), "tests": tests, "least p": least, "limit": LEVEL / tests},
        "coverage over all": held,
        "failures": failures,
        "machine": f"{platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}",
    }
    return failures


def _coverage(kept: dict[str, Any], level: float) -> tuple[float, float]:
    """Return the share of all intervals of a level that hold the truth, and how many standard errors it is off.

    Parameters of one file go together, so that the error is that of the files' shares.
    """
    found = [own["files' shares"][str(level)] for own in kept["ranks"].values()]
    files = sum(own["files"] for own in kept["ranks"].values())
    away, squares = sum(own[0] for own in found), sum(own[1] for own in found)
    return (round(level + away / files, 4), round(away / squares**0.5, 2)) if files else (float("nan"), 0.0)


def _words(found: dict[str, Any]) -> str:
    geweke, ranks = found["geweke"], found["ranks"]
    lines = [
        f"Geweke: {geweke['products']} products, {geweke['statistics']} statistics, worst score "
        f"{found['worst score']:.2f} (limit {geweke['limit']:.2f})",
        f"Ranks: {ranks['products']} products, {ranks['tests']} parameters, least p {ranks['least p']:.2g} "
        f"(limit {ranks['limit']:.2g})",
        "Coverage: "
        + ", ".join(
            f"{float(level):.0%}: {share:.1%} (z {away:.1f})"
            for level, (share, away) in found["coverage over all"].items()
        ),
        *(f"NOT CALIBRATED: {failure}" for failure in found["failures"]),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
