"""Test the audit's tests of residuals: clean releases of every mask must not fail.

    python calibration/residuals.py [--seeds 200] [--records 2000] [--masks NAME ...] [--turns]

For each mask and seed a file is drawn (skewed and symmetric amounts, zeros, missing values, codes, categories, groups),
masked with a key of its own and audited by its residuals. Printed are, for each mask, how many releases fail, warn, and
have an adjusted p-value below 5%, and the least p-value of all. Exits with 1 where a clean release fails. With --turns
that family alone is tested, in a seventh of the time: its figures stand beside those of the run before it was there,
whose p-values it only raises (by one family more).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import maskwell as mw
from maskwell.checks.evidence import Evidence
from maskwell.checks.quantile_residuals import joint_turns, turns
from maskwell.checks.quantile_residuals.battery import ScoredColumns, TestGround, battery
from maskwell.checks.quantile_residuals.findings import CHECKS, FAIL_P, WARN_P
from maskwell.checks.quantile_residuals.ledger import Ledger
from maskwell.keys import Key
from maskwell.laws import Power, Step
from maskwell.masking import Masking, apply
from maskwell.schema import Column, Schema
from maskwell.table import Table

AMOUNTS = ("income", "wealth", "hours")
RESULTS = Path(__file__).parent / "residuals.json"


def file(records: int, seed: int) -> Table:
    """Draw a file: amounts with zeros, gaps and codes, categories, groups, columns that are dropped."""
    rng = np.random.default_rng([seed, 20])
    base = (
        rng.standard_normal((records, 3))
        @ np.linalg.cholesky([[1, 0.5, 0.3], [0.5, 1, 0.2], [0.3, 0.2, 1]]).T
    )
    hours = np.clip(np.rint(38 + 9 * base[:, 2]), 0, 80)
    hours[rng.random(records) < 0.1] = 0
    data: dict[str, Any] = {
        "id": [f"u{i:06d}" for i in range(records)],
        "region": rng.choice(list("abcdef"), records),
        "job": rng.choice(["none", "part", "full"], records, p=[0.2, 0.3, 0.5]),
        "household": np.arange(records) // 3,
        "age": rng.integers(18, 90, records),
        "income": np.rint(np.exp(10 + 0.6 * base[:, 0])).astype(np.int64),
        "wealth": pa.array(np.rint(50_000 + 12_000 * base[:, 1]), mask=rng.random(records) < 0.05),
        "hours": hours,
        "inside": np.round(rng.gamma(2, 50, records), 2),
    }
    key = frozenset({"key"})
    columns = (
        Column("id", "text", frozenset({"id"})),
        Column("region", "category", frozenset({"block"}), categories=tuple("abcdef")),
        Column("job", "category", key, categories=("none", "part", "full")),
        Column("household", "integer", frozenset({"group"}), drop=True),
        Column("age", "integer", key),
        Column("income", "integer", key),
        Column("wealth", "continuous", key, unit=1, missing=(99_999.0,)),
        Column("hours", "continuous", key, unit=1),
        Column("inside", "continuous", drop=True),
    )
    return Table.from_frame(pa.table(data), Schema(columns))


def _plain(mask: Any) -> Callable[[Table, Key], Masking]:
    return lambda table, key: apply(mask, table, key=key)


def _nested(table: Table, key: Key) -> Masking:
    first = apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), table, key=key)
    return apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.6), table, earlier=first)


def _swapped(table: Table, key: Key) -> Masking:
    masking = apply(mw.IndependentNoise(AMOUNTS, variance_ratio=0.3), table, key=key)
    plan = mw.NearestRecord(fields=("income", "wealth"), match_blocks=("region",))
    return mw.swap(masking, plan, mw.tolerances.SwapShare(0.1))


TWO = ("income", "wealth")
MASKS: dict[str, Callable[[Table, Key], Masking]] = {
    "independent": _plain(mw.IndependentNoise(AMOUNTS, variance_ratio=0.3)),
    "little noise": _plain(mw.IndependentNoise(TWO, variance_ratio=0.001)),
    "unit as large as the sd": _plain(mw.IndependentNoise(("hours",), variance=1.0)),
    "Laplace": _plain(mw.IndependentNoise(TWO, variance_ratio=0.3, shape="laplace")),
    "correlated": _plain(mw.CorrelatedNoise(TWO, sd_ratio=0.5)),
    "correlated, three columns": _plain(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.8)),
    "moments kept": _plain(mw.CorrelatedNoise(TWO, r0=0.8, keep="moments")),
    "mixture": _plain(mw.MixtureNoise(TWO, variance_ratio=0.5, within_variance_ratio=0.1)),
    "joint mixture": _plain(
        mw.MixtureNoise(TWO, 0.5, 0.1, components=3, correlated=True, construction="components")
    ),
    "rotated mixture": _plain(mw.MixtureNoise(TWO, 0.5, 0.1, correlated=True, construction="rotation")),
    "bias": _plain(mw.BiasNoise(TWO, bias_sd=0.1, sd_ratio=0.1)),
    "lognormal bias": _plain(mw.BiasNoise(("income",), bias_sd=0.3, sd_ratio=0.05, shape="lognormal")),
    "log": _plain(mw.IndependentNoise(("income",), variance_ratio=0.5, transform="log")),
    "log with zeros": _plain(
        mw.IndependentNoise(("hours",), variance_ratio=0.5, transform="log", shift=10.0)
    ),
    "log, correlated": _plain(mw.CorrelatedNoise(TWO, sd_ratio=0.5, transform="log", shift=20_000.0)),
    "power": _plain(mw.IndependentNoise(("income",), variance_ratio=0.3, spread=Power(0.8))),
    "steps": _plain(
        mw.IndependentNoise(("income",), variance=9e6, spread=Step((20_000.0, 40_000.0), (0.5, 1.0, 2.0)))
    ),
    "limits": _plain(
        mw.IndependentNoise(AMOUNTS, variance_ratio=0.3, limits=(("hours", 0, 60), ("income", 0, None)))
    ),
    "limits, correlated": _plain(
        mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.5, limits=(("hours", 0, 60), ("income", 10_000, 60_000)))
    ),
    "coded after noise": _plain(
        mw.Chain((mw.IndependentNoise(("income",), variance_ratio=0.3), mw.Coding(("income",), top=60_000)))
    ),
    "code noise": _plain(mw.CodeNoise(("job",), variance=0.3)),
    "code noise, rounded": _plain(mw.CodeNoise(("job",), variance=(0.2, 0.5, 0.4), rounded=True)),
    "random change": _plain(mw.Pram(("job", "region"), stay=0.8)),
    "subsample": _plain(mw.Chain((mw.IndependentNoise(TWO, variance_ratio=0.3), mw.Subsample(0.5)))),
    "two noises": _plain(
        mw.Chain((mw.IndependentNoise(TWO, variance_ratio=0.2), mw.IndependentNoise(TWO, variance_ratio=0.1)))
    ),
    "nested": _nested,
    "swapped": _swapped,
}


def evidence_of(name: str, seed: int, records: int) -> Evidence:
    """Return a clean release."""
    key = Key(np.random.default_rng([seed, 21]).bytes(32))
    table = file(records, seed)
    masking = MASKS[name](table, key)
    earlier = (apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), table, key=key),) if name == "nested" else ()
    return Evidence(masking, earlier=earlier)


def least(name: str, seed: int, records: int) -> tuple[float, list[str], list[str]]:
    """Return the least adjusted p-value of one clean release, with its checks that fail and warn."""
    evidence = evidence_of(name, seed, records)
    made = [check.made(evidence) for check in CHECKS]
    ledger = battery(evidence).ledger
    p = min((ledger.adjusted(line) for line in ledger.lines), default=1.0)
    fails, warns = (
        [f"{one.check}: {one.said}" for one in made if one.verdict == verdict] for verdict in ("fail", "warn")
    )
    return p, fails, warns


def least_of_turns(name: str, seed: int, records: int) -> tuple[float, list[str], list[str]]:
    """Return the same of one family of tests alone."""
    evidence, ledger = evidence_of(name, seed, records), Ledger()
    ground = TestGround.of(evidence)
    columns = (*ground.columns, *ground.places)
    scores = ScoredColumns.of(evidence).independent
    turns.turns(ledger, scores, columns, ground.places, evidence.seed)
    joint_turns.joint_turns(ledger, scores, columns, evidence.seed)
    p = {f"{line.column}, {line.where}": ledger.adjusted(line) for line in ledger.lines}
    sure = {f"{line.column}, {line.where}" for line in ledger.lines if line.fails}
    fails = [where for where, one in p.items() if one < FAIL_P and where in sure]
    warns = [where for where, one in p.items() if one < WARN_P and where not in fails]
    return min(p.values(), default=1.0), fails, warns


def tests_made(records: int) -> int:
    """Return how many tests one release gets: figures of other tests do not go together with these."""
    key = Key(np.random.default_rng(22).bytes(32))
    made = battery(Evidence(MASKS["correlated, three columns"](file(records, 0), key)))
    return made.ledger.tests


def main() -> int:
    """Run all masks and print a line for each."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--seeds", type=int, default=200)
    asked.add_argument("--records", type=int, default=2_000)
    asked.add_argument("--masks", nargs="+", choices=MASKS)
    asked.add_argument("--turns", action="store_true")
    given = asked.parse_args()
    warnings.simplefilter("ignore")
    found, failed = dict[str, dict[str, Any]](), 0
    size = {"seeds": given.seeds, "records": given.records}
    size |= {} if given.turns else {"tests": tests_made(given.records)}
    of_one = least_of_turns if given.turns else least
    print(f"{'mask':<28}{'fail':>6}{'warn':>6}{'p < .05':>9}{'least p':>10}{'seconds':>9}")
    for name in given.masks or MASKS:
        start = time.process_time()
        results = [of_one(name, seed, given.records) for seed in range(given.seeds)]
        row = {
            "fail": sum(bool(fails) for _, fails, _ in results),
            "warn": sum(bool(warns) for _, _, warns in results),
            "below 5%": sum(p < 0.05 for p, _, _ in results) / given.seeds,
            "least p": min(p for p, _, _ in results),
        }
        failed, found[name] = failed + row["fail"], row
        figures = f"{row['fail']:>6}{row['warn']:>6}{row['below 5%']:>9.1%}{row['least p']:>10.1g}"
        print(f"{name:<28}{figures}{time.process_time() - start:>9.0f}", flush=True)
        for said in sorted({text for _, *both in results for texts in both for text in texts})[:5]:
            print(f"    {said}", flush=True)
        _write("turns" if given.turns else "all families", size, found)
    return 1 if failed else 0


def _write(what: str, size: dict[str, int], found: dict[str, dict[str, Any]]) -> None:
    """Put the figures of masks beside those of others that were run with as many seeds, records and tests."""
    kept = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    before = kept.get(what, {})
    rows = {**before["masks"], **found} if before.get("size") == size else found
    kept[what] = {"size": size, "masks": {name: rows[name] for name in MASKS if name in rows}}
    RESULTS.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
