"""Moore's study: his tables on the built-in survey, his examples of swapping, and his open questions answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...calibration import FINE_R0
from ..plans import Progress, StudySteps
from ..results import ExpectedTable, Study, read_expected
from .critical import EPSILONS, RELAXED, critical, relaxed_code_draws, sweep, table_5
from .matching import C_UNCODED, factors, published_shape, rows_of_table_4, shape, table_4, uncoded_draws
from .moments import moments, table_1, table_2, table_3
from .simulation import Draws, MooreSimulation
from .statements import notes
from .swaps import TOLERANCES, examples, swapping_draws

REPLICATES = 6


@dataclass(frozen=True, slots=True)
class MoorePlan:
    """How a table is computed, and the attacks it takes: for each replicate, and once."""

    cells: Callable[[MooreSimulation], Draws]
    each: int = 0
    once: int = 0

    def steps(self, replicates: int) -> int:
        """Return how many steps the table takes; 1 for being written down."""
        return 1 + self.each * replicates + self.once


ROWS = len(rows_of_table_4())
TABLES = {
    "1": MoorePlan(table_1),
    "2": MoorePlan(table_2),
    "3": MoorePlan(table_3),
    "moments": MoorePlan(moments),
    "4": MoorePlan(table_4, each=ROWS),
    "shape": MoorePlan(shape, each=ROWS),
    "factors": MoorePlan(factors),
    "5": MoorePlan(table_5),
    "critical": MoorePlan(critical, each=4 + 2 * len(EPSILONS), once=2 * len(EPSILONS)),
    "sweep": MoorePlan(sweep, each=len(FINE_R0)),
    "uncoded": MoorePlan(uncoded_draws, each=2 * len(C_UNCODED)),
    "relaxed": MoorePlan(relaxed_code_draws, once=len(RELAXED)),
    "examples": MoorePlan(examples),
    "swapping": MoorePlan(swapping_draws, each=len(TOLERANCES)),
}
EXACT = {"1", "factors", "5", "relaxed", "examples"}


def run(tables: Sequence[str], *, replicates: int, seed: int, progress: Progress) -> Study:
    """Run some tables; a table's figures do not depend on which others are run."""
    steps = StudySteps(sum(TABLES[name].steps(replicates) for name in tables), progress)
    simulation = MooreSimulation(replicates, seed, steps)
    draws = {}
    for name in tables:
        draws[name] = TABLES[name].cells(simulation)
        steps()
    written = tuple(_published_table(name).table(values) for name, values in draws.items())
    return Study(
        "moore", written, (_draws_note(tables, replicates, seed), *notes(draws)), read_expected("moore").paper
    )


def _draws_note(tables: Sequence[str], replicates: int, seed: int) -> str:
    if set(tables) <= EXACT:
        return "ours: computed; nothing is drawn at random"
    drawn = f"{replicates} draw{'s' if replicates > 1 else ''} of the noise, from seed {seed}"
    return f"ours: the mean over {drawn}; the survey is always the same"


def _published_table(name: str) -> ExpectedTable:
    return published_shape() if name == "shape" else read_expected("moore")[name]
