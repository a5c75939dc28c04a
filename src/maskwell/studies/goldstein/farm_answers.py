"""What the paper says of its farms, noise on predictors and on the response too, held against our fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..conclusions import StudyEstimate, judge_margin, listing, together, verdict
from ..plans import cell_name
from ..results import read_expected
from .analyses import ERROR
from .chances import Figures
from .farms import NOISES, Farms
from .margins import TENTH, mean_of
from .models import ORIGINAL

SAME, LARGER = 0.5, 0.25  # of an error: what we call no bias; of a figure: what we call much larger
SLOPES = Farms.model.rows[1:-1]
CORRELATED, INDEPENDENT = "correlated", "independent"


def _columns(kind: str) -> list[str]:
    return [f"{kind} {noise:.0%}" for noise in NOISES]


def _ratios(figures: Figures, rows: Sequence[str], columns: Sequence[str]) -> list[StudyEstimate]:
    """Return columns over the original, row by row and file by file, on average of the rows."""
    return [
        mean_of(
            np.mean([figures[cell_name(row, c)] / figures[cell_name(row, ORIGINAL)] for row in rows], axis=0)
        )
        for c in columns
    ]


def _off(figures: Figures, columns: Sequence[str]) -> list[StudyEstimate]:
    """Return columns less the original in errors of the column's own fits, for all slopes."""
    return [
        mean_of(
            (figures[cell_name(row, column)] - figures[cell_name(row, ORIGINAL)])
            / figures[cell_name(f"{ERROR}{row}", column)].mean()
        )
        for column in columns
        for row in SLOPES
    ]


def _some_correlated(figures: Figures) -> list[str]:
    columns = _columns(CORRELATED)
    errors = _ratios(figures, [f"{ERROR}{row}" for row in SLOPES], columns)
    variances = _ratios(figures, ["sigma^2"], columns)
    harvest = _ratios(figures, [SLOPES[1]], columns)
    return [
        verdict(
            "correlated noise on predictors only, taken as it is, gives biased estimates with very large standard "
            f"errors (our margins: errors and residual variance up by {LARGER:.0%}, the slope of the harvest down)",
            together((judge_margin([*errors, *variances], low=1 + LARGER), judge_margin(harvest, high=1))),
            f"with {_noises()} noise errors of the slopes are {listing(errors)} and residual variances "
            f"{listing(variances)} times the original, the slope of the harvest {listing(harvest)} times (in theory "
            f"{', '.join(f'{np.sqrt(1 - noise):.2f}' for noise in NOISES)})",
        )
    ]


def _all_correlated(figures: Figures) -> list[str]:
    columns = _columns(CORRELATED)
    off = _off(figures, columns)
    errors = _ratios(figures, [f"{ERROR}{row}" for row in SLOPES], columns)
    return [
        verdict(
            "with correlated noise on all variables estimates and standard errors are similar to the original (our "
            f"margins: {SAME:g} of an error; errors within {LARGER:.0%})",
            together((judge_margin(off, -SAME, SAME), judge_margin(errors, 1 - LARGER, 1 + LARGER))),
            f"slopes are off by {listing(off, 2, '+')} errors, errors are {listing(errors)} times the original, with "
            f"{_noises()} noise",
        )
    ]


def _noises() -> str:
    return " and ".join(f"{noise:.0%}" for noise in NOISES)


def _bias_verdicts(figures: Figures) -> list[str]:
    off = {column: _off(figures, [column]) for column in _columns(INDEPENDENT)}
    return [
        verdict(
            f"adjusted fits to {column.replace(' ', ' noise of ')} of the variances are unbiased (our margin: {SAME:g} "
            "of an error)",
            judge_margin(found, -SAME, SAME),
            f"slopes are off by {listing(found, 2, '+')} of their errors, region, harvest and cost",
        )
        for column, found in off.items()
    ]


def _more_noise(figures: Figures) -> list[str]:
    few, many = _ratios(figures, [f"{ERROR}{row}" for row in SLOPES], _columns(INDEPENDENT))
    rows = [f"{ERROR}{row}" for row in SLOPES]
    more = [
        mean_of(
            figures[cell_name(row, _columns(INDEPENDENT)[1])]
            / figures[cell_name(row, _columns(INDEPENDENT)[0])]
        )
        for row in rows
    ]
    return [
        verdict(
            "standard errors grow with the noise, and already with the smaller one",
            together((judge_margin([few], low=1), judge_margin(more, low=1))),
            f"on average of the slopes they are {listing((few, many))} times the original with {_noises()} noise",
        )
    ]


def _hardly_larger(figures: Figures) -> list[str]:
    column, rows = _columns(INDEPENDENT)[0], [f"{ERROR}{row}" for row in SLOPES]
    ratios = [mean_of(figures[cell_name(row, column)] / figures[cell_name(row, ORIGINAL)]) for row in rows]
    published = [read_expected("goldstein")["6a"].published(cell_name(row, column)) for row in rows]
    return [
        verdict(
            f"with {NOISES[0]:.0%} of independent noise on predictors only, standard errors are those of the original "
            f"(table 6a prints {', '.join(f'{one:g}' for one in published)}; our margin: {TENTH:.0%})",
            judge_margin(ratios, 1 - TENTH, 1 + TENTH),
            f"they are {listing(ratios)} times the original, for region, harvest and cost",
        )
    ]


def of_both(figures: Mapping[str, Figures]) -> list[str]:
    """Judge what noise on the response does, on the same farms."""
    if not {"6a", "6b"} <= figures.keys():
        return []
    rows = [f"{ERROR}{row}" for row in SLOPES]
    more = {
        column: mean_of(
            np.mean(
                [
                    figures["6b"][cell_name(row, column)] / figures["6a"][cell_name(row, column)]
                    for row in rows
                ],
                axis=0,
            )
        )
        for column in _columns(INDEPENDENT)
    }
    return [
        verdict(
            "noise on the response governs the size of the standard errors",
            judge_margin(more.values(), low=1),
            f"with it they are {listing(more.values())} times those without, with {_noises()} noise",
        )
    ]


FARM_ANSWERS: dict[str, tuple[Callable[[Figures], list[str]], ...]] = {
    "6a": (_some_correlated, _bias_verdicts, _more_noise, _hardly_larger),
    "6b": (_all_correlated, _bias_verdicts, _more_noise),
}
