"""Three walks through the house: `python tools/walks.py [--write]` runs them on small files and lists the modules.

A walk is one call of the public face, on a made-up file: an intruder's attack, an analyst's fit, a whole release.
Listed is every module of which a function runs, in the order in which it is entered first; what is only imported does
not count (the call is made twice and the second traced), nor do `__init__` modules and loops that numba has compiled.
`--write` puts the lists on the page of the design.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import maskwell as mw

ROOT = Path(__file__).parents[1]
PACKAGE, PAGE = ROOT / "src" / "maskwell", ROOT / "docs" / "design.md"
MARKS = "<!-- walks -->", "<!-- end of walks -->"
RECORDS = 300
PLAN = """
[input]
file = "data.csv"
schema = "schema.toml"
[[masks]]
mask = "CorrelatedNoise"
columns = "role: key"
sd_ratio = 3.0
[[intruders]]
attack = "BayesIntruder"
[tolerance]
max_rate = 0.5
[output]
release = "out"
private = "inside"
"""


def visited(call: Callable[[], Any]) -> list[str]:
    """Return the modules of the package of which a function runs during a call, in order."""
    files: dict[str, None] = {}

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_flags & CO_OPTIMIZED:  # a function, no module or class
            files.setdefault(frame.f_code.co_filename)

    call()
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    places = (Path(name) for name in files)
    ours = (place.relative_to(PACKAGE) for place in places if place.is_relative_to(PACKAGE))
    return [place.with_suffix("").as_posix() for place in ours if place.name != "__init__.py"]


def made_up() -> mw.Table:
    """Return amounts and regions of three hundred persons."""
    import pyarrow as pa

    rng = np.random.default_rng(1)
    income = np.round(rng.lognormal(10, 0.5, RECORDS), 2)
    savings = np.round(0.3 * income + rng.normal(0, 5000, RECORDS), 2)
    region = rng.choice(["north", "south"], RECORDS)
    frame = pa.table({"income": income, "savings": savings, "region": region})
    columns = (
        mw.Column("income", "continuous", frozenset({"key"}), unit=0.01),
        mw.Column("savings", "continuous", frozenset({"key"}), unit=0.01),
        mw.Column("region", "category", frozenset({"block"}), categories=("north", "south")),
    )
    return mw.Table.from_frame(frame, mw.Schema(columns, series="walk"))


def walks() -> dict[str, list[str]]:
    """Return the modules of each walk, by the call that it is."""
    table = made_up()
    masking = mw.apply(mw.CorrelatedNoise(("income", "savings"), sd_ratio=0.5), table, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        mw.write(table, place / "data.csv")
        (place / "schema.toml").write_text(table.schema.to_toml())
        (place / "plan.toml").write_text(PLAN)
        calls: dict[str, Callable[[], Any]] = {
            "attack(BayesIntruder(), masking)": lambda: mw.attack(mw.BayesIntruder(), masking),
            'fit("savings ~ income", release)': lambda: mw.fit("savings ~ income", masking.release, seed=1),
            'release("plan.toml", seed=1, study=True)': lambda: _release(place),
        }
        return {name: visited(call) for name, call in calls.items()}


def _release(place: Path) -> None:
    """Make the release anew, without reports, by a seed: what is walked depends on no chance."""
    for folder in ("out-study", "inside-study"):
        shutil.rmtree(place / folder, ignore_errors=True)
    mw.release(place / "plan.toml", seed=1, study=True, advise=False)


def as_text(found: dict[str, list[str]]) -> str:
    """Write the walks for the page: a table of counts, and the modules of each in order."""
    rows = [
        f"| `{name}` | {len(modules)} | {sum(one.startswith(_home(name)) for one in modules)} |"
        for name, modules in found.items()
    ]
    table = "\n".join(["| walk | modules | of them in its own room |", "|---|---|---|", *rows])
    lists = "\n\n".join(f"`{name}`: {', '.join(modules)}." for name, modules in found.items())
    return f"{table}\n\n{lists}"


def _home(name: str) -> str:
    return {"attack": "attacks/", "fit": "analysis/", "release": "pipeline/"}[name.partition("(")[0]]


def main() -> None:
    """Print the walks, or write them on the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put them on docs/design.md")
    warnings.simplefilter("ignore")
    text, writes = as_text(walks()), parser.parse_args().write
    if not writes:
        print(text)
        return
    page, between = PAGE.read_text(encoding="utf-8"), re.compile(f"({MARKS[0]}\n).*({MARKS[1]})", re.DOTALL)
    PAGE.write_text(between.sub(lambda found: f"{found[1]}{text}\n{found[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
