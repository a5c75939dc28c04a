"""Figures and bytes that must not change while the house is rebuilt.

`figures/` has every number of the JSON of each command in `jobs.py`, by its path, with the command that made it;
`paths.toml` has where paths went that were renamed. `record.py` writes them anew, for figures that must change.
"""

from __future__ import annotations

import hashlib
import json
import math
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maskwell.masking import apply
from maskwell.table import Table

from ..test_contracts import EXAMPLES
from .jobs import FIGURES, JOBS, PLANS, PREPARED, Figure, figures, words

HERE = Path(__file__).parent
MOVED: dict[str, str] = tomllib.loads((HERE / "paths.toml").read_text(encoding="utf-8"))
BYTES: dict[str, str] = json.loads((HERE / "bytes.json").read_text(encoding="utf-8"))
ROUNDING = 1e-5  # relative: sums in another order, on another machine, through an optimiser
SPREAD = 0.4  # of an sd: six Monte Carlo errors of a mean of 250 independent draws
ESTIMATES = ("estimate", "low", "high")  # figures of chains, compared in sds


def new_path(path: str) -> str:
    """Return where a figure stands today."""
    old = max((one for one in MOVED if path.startswith(one)), key=len, default="")
    return MOVED.get(old, "") + path[len(old) :]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("golden")


@pytest.fixture
def prepared(folder: Path, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    if not list(folder.iterdir()):
        for file, text in PLANS.items():
            Path(file).write_text(text, encoding="utf-8")
        assert [run(*words(job)).code for job in PREPARED] == [0] * len(PREPARED)


@pytest.mark.usefixtures("prepared")
@pytest.mark.parametrize("name", JOBS)
def test_figures_are_as_they_were(name: str, run: Callable[..., Any]) -> None:
    kept = json.loads((FIGURES / f"{name}.json").read_text(encoding="utf-8"))
    found = dict(figures(json.loads(run(*words(JOBS[name])).out)))
    expected = {new_path(path): value for path, value in kept["figures"].items()}
    assert kept["command"] == JOBS[name]
    assert set(expected) - set(found) == set(), "figures that are gone: if renamed, say so in paths.toml"
    is_like = is_like_chain if name == "fit" else is_like_figure
    changed = {
        path: (value, found[path]) for path, value in expected.items() if not is_like(path, expected, found)
    }
    assert changed == {}


def is_like_figure(path: str, expected: dict[str, Figure], found: dict[str, Figure]) -> bool:
    """Whether a figure is what it was, but for rounding."""
    old, new = expected[path], found[path]
    if old is None or new is None or isinstance(old, bool):
        return old is new
    return math.isclose(old, new, rel_tol=ROUNDING, abs_tol=1e-12)


def is_like_chain(path: str, expected: dict[str, Figure], found: dict[str, Figure]) -> bool:
    """Whether an estimate by chains is what it was, but for Monte Carlo error; their diagnostics are free."""
    parameter, _, what = path.rpartition("/")
    if not path.startswith("/parameters/"):
        return is_like_figure(path, expected, found)
    if what not in ESTIMATES:
        return True
    sd = expected[f"{parameter}/sd"]
    return abs(float(expected[path]) - float(found[path])) < SPREAD * sd * (1 if what == "estimate" else 2)


BYTES_OF = {f"{name}-{i}": mask for name, masks in EXAMPLES.items() for i, mask in enumerate(masks)}


@pytest.mark.parametrize("name", BYTES_OF)
def test_the_bytes_of_a_seeded_release_never_change(name: str, people: Table, tmp_path: Path) -> None:
    apply(BYTES_OF[name], people, seed=7).release.write(tmp_path, format="csv")
    assert hashlib.sha256((tmp_path / "data.csv").read_bytes()).hexdigest() == BYTES[name]
