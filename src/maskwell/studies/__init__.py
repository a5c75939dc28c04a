"""Published studies run again: thin over the library, they define no noise and no score.

A study is a folder with `study.py` (a function `run` and the number of `REPLICATES` it takes by itself), `pictures.py`
(a function `draw`), `expected.toml` (the published figures) and a `README.md`.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BadPlan, nearest

if TYPE_CHECKING:
    from .results import Study

__all__ = ["SEED", "STUDIES", "draw_study", "run_study", "table_names"]

Progress = Callable[[int, int], None]

SEED = 2003  # studies are reproducible: this one unless another is asked for

STUDIES = {
    "fienberg": "Fienberg, Makov and Sanil, the optimal intruder who was not told the noise (shape only)",
    "goldstein": "Goldstein and Shlomo, the h-index, what knowing the noise is worth, and models fitted to noisy files",
    "hawala": "Hawala, masking with mixtures of normals, and what its matcher misses",
    "moore": "Moore, Kim's noise and Winkler's matching and swapping, and how much noise is enough",
    "trottini": "Trottini and others, bias and noise against a Bayesian intruder, and what telling them is worth",
}


def table_names(name: str) -> tuple[str, ...]:
    """Return the tables of a study."""
    from .results import read_expected

    return tuple(read_expected(_study_name(name)).tables)


def chosen_tables(name: str, table: str | None) -> tuple[str, ...]:
    """Return the tables to run: the one asked for, or all of the study; what is not there is refused."""
    names = table_names(name)
    if table is not None and table not in names:
        raise BadPlan(
            f"the study {name!r} has no table {table!r}{nearest(table, names)}; it has {', '.join(names)}"
        )
    return names if table is None else (table,)


def run_study(
    name: str,
    *,
    table: str | None = None,
    replicates: int | None = None,
    seed: int = SEED,
    progress: Progress | None = None,
) -> Study:
    """Run a study, or one table of it.

    `replicates` says how often data and noise are drawn anew; `progress` is called with steps done and all.
    """
    chosen = chosen_tables(name, table)
    if replicates is not None and replicates < 1:
        raise BadPlan(f"a study needs at least one replicate, not {replicates}")
    if not isinstance(seed, int) or seed < 0:
        raise BadPlan(f"the seed of a study is a whole number from 0 on, not {seed!r}")
    module = import_module(f".{name}.study", __name__)
    result: Study = module.run(
        chosen, replicates=replicates or module.REPLICATES, seed=seed, progress=progress or _silent
    )
    return result


def draw_study(study: Study, folder: Path) -> list[Path]:
    """Draw the pictures for which the study has the tables, and return their files."""
    check_pictures()
    drawn: list[Path] = import_module(f".{study.study}.pictures", __name__).draw(study, folder)
    return drawn


def check_pictures() -> None:
    """Refuse, before any work, to draw without matplotlib."""
    if find_spec("matplotlib") is None:
        raise BadPlan("pictures need matplotlib, which is not installed: pip install 'maskwell[plot]'")


def _study_name(name: str) -> str:
    if name not in STUDIES:
        raise BadPlan(f"there is no study {name!r}{nearest(name, STUDIES)}; there are {', '.join(STUDIES)}")
    return name


def _silent(done: int, total: int) -> None:
    """Tell nobody."""
