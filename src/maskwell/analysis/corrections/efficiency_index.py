"""What the noise of a release costs a linear model: the paper's index, and the true inflation of standard errors.

Goldstein and Shlomo's |X'X| / |X'X + N Omega| (section 6), and beside it the ratio of sandwich standard errors with and
without noise (`interval_inflation`), since the index is not the efficiency of the estimates: it looks at the predictors
alone. Called by the analyst (`mw.analysis.efficiency`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from ...masking import Release
from ...notes import Note
from ...words.phrases import text_table
from .cross_checks import LINEAR
from .design_arrays import CorrectionRequest, read_problem
from .fuller_moments import corrected_moments, solve_moments
from .glm import check_linear
from .interval_inflation import widened_by_release
from .result import figure


@dataclass(frozen=True, slots=True)
class Efficiency:
    """How much of a model's precision the noise leaves.

    `index` is Goldstein and Shlomo's ``|X'X| / |X'X + N Omega|`` (section 6), which looks at the predictors alone.
    `relative` is the efficiency of the estimates themselves: the ratio of the determinants of their covariances without
    and with noise. `inflation` has, for each coefficient, how many times larger its standard error is than the truth
    would have given. All are estimated from the release.
    """

    names: tuple[str, ...]
    index: float
    relative: float
    inflation: Mapping[str, float]
    standard_errors: tuple[float, ...]
    ordinary_errors: tuple[float, ...]
    records: int
    notes: tuple[Note, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return {
            "names": list(self.names),
            "index": self.index,
            "relative": self.relative,
            "inflation": dict(self.inflation),
            "standard_errors": list(self.standard_errors),
            "ordinary_errors": list(self.ordinary_errors),
            "records": self.records,
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        rows = [("", "se without noise", "se with noise", "times")]
        for name, before, after in zip(self.names, self.ordinary_errors, self.standard_errors, strict=True):
            rows.append((name, figure(before), figure(after), f"{self.inflation[name]:.2f}"))
        said = [line for note in self.notes for line in wrap(str(note), 100, subsequent_indent="  ")]
        return "\n".join(
            [
                f"loss of efficiency by noise, {self.records:,} records",
                f"  efficiency of the estimates {self.relative:.2f}; determinantal index {self.index:.2f}",
                *text_table(rows),
                *said,
            ]
        )


def efficiency(
    formula: str,
    release: Release,
    *,
    family: str = "gaussian",
    measurement_error: Mapping[str, float] | None = None,
    weights: str | None = None,
) -> Efficiency:
    """Return what the noise of a release costs a linear model; refuses what `moment_correction` refuses.

    No `family` but gaussian is taken: for others compare the sds of `fit(...)` with those of the unadjusted fit.
    """
    check_linear(family, "efficiency", "the summary of fit(...) says how much wider its intervals are")
    read = read_problem(CorrectionRequest(formula, LINEAR, measurement_error, weights), release)
    problem, data = read.problem, read.problem.data
    solved = solve_moments(problem)
    raw = data.design.T @ (data.design * data.weights[:, None]) / float(data.weights.sum())
    index = _determinants(corrected_moments(problem)[1:, 1:], raw)
    widened = widened_by_release(problem, solved)
    errors = [tuple(map(float, np.sqrt(np.diag(matrix)))) for matrix in (widened.noised, widened.ordinary)]
    return Efficiency(
        names=problem.names,
        index=index,
        relative=_determinants(widened.ordinary, widened.noised),
        inflation=dict(zip(problem.names, map(float, widened.ratios), strict=True)),
        standard_errors=errors[0],
        ordinary_errors=errors[1],
        records=len(problem),
        notes=problem.notes,
    )


def _determinants(above: Any, below: Any) -> float:
    return float(np.exp(np.linalg.slogdet(above)[1] - np.linalg.slogdet(below)[1]))
