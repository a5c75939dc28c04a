"""What the slides state in words, held against our figures and their Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from ..conclusions import EXPLAINED, StudyEstimate, estimate, judge_margin, listing, together, verdict
from ..plans import cell_name
from ..results import Draws
from .file import RECORDS
from .simulation import SCENARIOS
from .tables import INSIDE, MASKED, OUT, ROWS

NONE, NOISE, BIAS, BOTH = SCENARIOS
HUNDREDTH = 0.01 * RECORDS  # records: up to where we call counts the same
SLIDES, OURS = "the slides", "ours"
TOP_FIVE = 40.0
IN_ORDER = ", ".join(SCENARIOS)
IN_MASKED = ", ".join(MASKED)


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
    return np.asarray(draws[cell_name(row, column)], np.float64)


def _top(draws: Draws, count: int, name: str) -> np.ndarray:
    """Return how many true records are among the first so many."""
    return np.asarray(np.sum([_values(draws, row, name) for row in ROWS[:count]], axis=0))


def _order(draws: Draws) -> list[str]:
    first = {name: _top(draws, 1, name) for name in SCENARIOS}
    ten = {name: _top(draws, 10, name) for name in (NOISE, BOTH)}
    left = estimate(first[BIAS] / 2 - first[NOISE])
    lost, tenth = estimate(ten[NOISE] - ten[BOTH]), 0.1 * float(ten[NOISE].mean())
    return [
        verdict(
            "noise hinders far more than bias (319, 42, 295 and 43 are first; our margin: it leaves less than half as "
            "many)",
            judge_margin([left], low=0),
            f"first are {listing((estimate(v) for v in first.values()), 0)} with {IN_ORDER}",
            SLIDES,
        ),
        verdict(
            "bias adds little to noise (214 and 211 are in the top ten; our margin: a tenth of these)",
            judge_margin([lost], -tenth, tenth),
            f"in the top ten are {estimate(ten[NOISE]).text(0)} with noise, and bias takes {lost.text(1)} of them",
            SLIDES,
        ),
    ]


def _unmasked_verdicts(draws: Draws) -> list[str]:
    first = estimate(_top(draws, 1, NONE))
    return [
        verdict(
            f"with no bias or noise the true record is first for 319 of {RECORDS}, less than half",
            judge_margin([first], high=RECORDS / 2),
            f"by quadrature it is first for {first.text(0)}. Averages over simulated parameters, as in the slides, "
            "rank near ties by chance: the likely reason",
            SLIDES,
        )
    ]


def _top_five(draws: Draws) -> list[str]:
    five, ten = (estimate(100 / RECORDS * _top(draws, count, BOTH), 100 / RECORDS) for count in (5, 10))
    return [
        verdict(
            "with bias and noise the true record is in the top five around 40% of the time (our margin: 10 points)",
            judge_margin([five], TOP_FIVE - 10, TOP_FIVE + 10),
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
            judge_margin(first.values(), high=0.1),
            f"his first has {listing(first.values(), 3)} on average, with {IN_ORDER}",
            SLIDES,
        )
    ]


def _telling_verdicts(draws: Draws) -> list[str]:
    def lost(kernel: str) -> list[StudyEstimate]:
        """Return how many fewer are first where he was not told, by scenario."""
        return [
            estimate(_values(draws, f"{name}, told", kernel) - _values(draws, f"{name}, not told", kernel))
            for name in MASKED
        ]

    slides, full = lost("fms"), lost("coherent")
    by_scenario = dict(zip(MASKED, slides, strict=True))
    ahead = [
        estimate(_values(draws, f"{name}, told", "coherent") - _values(draws, f"{name}, told", "fms"))
        for name in MASKED
    ]
    return [
        verdict(
            "where there is noise, not telling the parameters protects hardly anybody from the slides' kernel (our "
            f"margin: a hundredth of {RECORDS}), but where there is bias only it does",
            together(
                (
                    judge_margin([by_scenario[NOISE], by_scenario[BOTH]], -HUNDREDTH, HUNDREDTH),
                    judge_margin([by_scenario[BIAS]], low=HUNDREDTH),
                )
            ),
            f"told less not told is {listing(slides, 1)} first, with {IN_MASKED}",
            OURS,
        ),
        verdict(
            "told, the coherent kernel ranks more first than the slides' kernel, and it loses where he is not told",
            together((judge_margin(ahead, low=0), judge_margin(full, low=0))),
            f"it is ahead by {listing(ahead, 1)} with {IN_MASKED}, and not told it loses {listing(full, 1)}",
            OURS,
        ),
    ]


def _absent(draws: Draws) -> list[str]:
    """Judge whether those who were not released are told apart from those who were."""
    texts = []
    for case in ("told", "not told"):
        gaps = [
            estimate(_values(draws, row, OUT) - _values(draws, row, INSIDE), 100 / RECORDS)
            for row in (f"{name}, {case}, fms" for name in MASKED)
        ]
        texts.append(
            verdict(
                f'half of the file released, {case}: he gives "not released" more to those who were not than to those '
                "who were",
                judge_margin(gaps, low=0),
                f"by {listing(gaps, 1)} points with {IN_MASKED} (kernel fms)",
                OURS,
            )
        )
    return texts


STATEMENTS: dict[str, tuple[Callable[[Draws], list[str]], ...]] = {
    "ranks": (_order, _unmasked_verdicts, _top_five),
    "probability": (_small,),
    "telling": (_telling_verdicts,),
    "sampled": (_absent,),
}
