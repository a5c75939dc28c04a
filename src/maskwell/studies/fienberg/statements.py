"""What the slides state in words, held against our figures and their Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from ..conclusions import EXPLAINED, Estimate, estimate, judged, listed, verdict
from ..plans import named
from ..results import Draws
from ..trottini.statements import together
from .file import RECORDS
from .simulation import KERNELS, SCENARIOS
from .tables import INSIDE, MASKED, OUT, ROWS

NONE, NOISE, BIAS, BOTH = SCENARIOS
ALIKE = 0.1 * RECORDS  # records: up to where we call counts alike
SLIDES = "the slides"
TOP_FIVE = 40.0
IN_ORDER = ", ".join(SCENARIOS)


def notes(draws: Mapping[str, Draws]) -> list[str]:
    """Return the statements that can be checked with the tables that were run."""
    told = [
        text
        for name, checks in STATEMENTS.items()
        if name in draws
        for check in checks
        for text in check(draws[name])
    ]
    return [EXPLAINED, *told] if told else []


def _values(draws: Draws, row: str, column: str) -> np.ndarray:
    return np.asarray(draws[named(row, column)], np.float64)


def _order(draws: Draws) -> list[str]:
    first = {name: _values(draws, ROWS[0], name) for name in SCENARIOS}
    apart = estimate(first[BIAS] - first[NOISE])
    alike = estimate(first[NOISE] - first[BOTH])
    outcomes = [judged([apart], low=ALIKE), judged([alike], -ALIKE, ALIKE)]
    return [
        verdict(
            "noise hinders far more than bias, and bias adds little to noise (319, 42, 295 and 43 first)",
            together(outcomes),
            f"first are {listed((estimate(v) for v in first.values()), 0)} with {IN_ORDER}",
            SLIDES,
        )
    ]


def _unmasked(draws: Draws) -> list[str]:
    first = estimate(_values(draws, ROWS[0], NONE))
    return [
        f"with no bias or noise the slides have the true record first for 319 of {RECORDS}; by quadrature it is first "
        f"for {first.text(0)}. Averages over simulated parameters, as in the slides, rank near ties by chance: the "
        "likely reason"
    ]


def _top_five(draws: Draws) -> list[str]:
    def share(rows: Iterable[str]) -> Estimate:
        return estimate(
            100 / RECORDS * np.sum([_values(draws, row, BOTH) for row in rows], axis=0), 100 / RECORDS
        )

    five, ten = share(ROWS[:5]), share(ROWS[:10])
    return [
        verdict(
            "with bias and noise the true record is in the top five around 40% of the time (our margin: 10 points)",
            judged([five], TOP_FIVE - 10, TOP_FIVE + 10),
            f"it is for {five.text(1)}%, and in the top ten for {ten.text(1)}%. The slides contradict themselves: 451 "
            "of 662 not in the top ten leave 32% for the top ten",
            SLIDES,
        )
    ]


def _small(draws: Draws) -> list[str]:
    first = {name: estimate(_values(draws, "his first", name), 1 / RECORDS) for name in SCENARIOS}
    return [
        verdict(
            "he does not achieve true matches with high probability (our margin: 0.1 on average)",
            judged(first.values(), high=0.1),
            f"his first has {listed(first.values(), 3)} on average, with {IN_ORDER}",
            SLIDES,
        )
    ]


def _told(draws: Draws) -> list[str]:
    texts = []
    for name in MASKED:
        told, not_told = (
            ", ".join(f"{_values(draws, f'{name}, {case}', kernel).mean():.0f}" for kernel in KERNELS)
            for case in ("told", "not told")
        )
        texts.append(f"{name}: told {told}; not told {not_told}")
    return [f"first of {RECORDS} by kernel ({', '.join(KERNELS)}): " + ". ".join(texts)]


def _absent(draws: Draws) -> list[str]:
    def gap(name: str, case: str) -> Estimate:
        row = f"{name}, {case}, fms"
        return estimate(_values(draws, row, OUT) - _values(draws, row, INSIDE), 100 / RECORDS)

    told = listed((gap(name, "told") for name in MASKED), 1)
    not_told = listed((gap(name, "not told") for name in MASKED), 1)
    return [
        'half of the file released: he gives "not released" more to those who were not than to those who were, by '
        f"{told} points told and {not_told} not told, with {', '.join(MASKED)} (kernel fms)"
    ]


STATEMENTS: dict[str, tuple[Callable[[Draws], list[str]], ...]] = {
    "ranks": (_order, _unmasked, _top_five),
    "probability": (_small,),
    "telling": (_told,),
    "sampled": (_absent,),
}
