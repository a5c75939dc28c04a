"""The tables of sections 7 and 8: which files are fitted in which ways, and the cells that come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...masking import Masking
from ...masks import IndependentNoise
from ...table import Floats
from ..plans import Found, StudyPlan, cell_name
from .chances import Figures
from .farms import NOISES, Farms
from .files import VARIANCE, Exam, MixedPredictors, Outcomes, Pair, by_itself, code_noise, keeping_moments
from .models import ADJUSTED, FLAT, HASTINGS, NAIVE, ORIGINAL, PRINTED, Analysis

# On which share of the replicates a table is run: of 700 they are 100 files, as in the paper, 20 files, 20 draws of
# noise, 70 and 50 files.
SIMULATIONS, PROPOSALS, PUPILS, FARMS, OUTCOMES = 1 / 7, 1 / 35, 1 / 35, 0.1, 1 / 14
NORMAL_95 = 1.96
PERCENT = 100.0
TRUTH = 1.0  # all parameters of section 7
ERROR = "se of "

# Table 4.

MIXED = Analysis(MixedPredictors(), code_noise("x1", "x2"), (ORIGINAL, NAIVE, ADJUSTED))
PROPOSED = Analysis(MIXED.data, MIXED.mask, (HASTINGS, PRINTED))


def _estimates(job: Analysis, found: Found, ways: tuple[str, ...]) -> dict[str, Floats]:
    return {
        cell_name(row, way): job.of(found[job], way, row)[0] for row in job.data.model.rows for way in ways
    }


def _table_4() -> StudyPlan:
    return StudyPlan((MIXED,), lambda found: _estimates(MIXED, found, MIXED.ways), SIMULATIONS)


def _paired_difference_plan() -> StudyPlan:
    def figures(found: Found) -> Figures:
        plain = _estimates(MIXED, found, MIXED.ways)
        return {
            cell_name(row, way): plain[cell_name(row, way)] - plain[cell_name(row, ORIGINAL)]
            for row in MIXED.data.model.rows
            for way in MIXED.ways[1:]
        }

    return StudyPlan((MIXED,), figures, SIMULATIONS)


def _intervals() -> StudyPlan:
    def figures(found: Found) -> Figures:
        out: dict[str, Floats] = {}
        for row in MIXED.data.model.rows:
            for way in MIXED.ways:
                estimates, errors = MIXED.of(found[MIXED], way, row)
                inside = np.abs(estimates - TRUTH) <= NORMAL_95 * errors
                out[cell_name(row, way)] = PERCENT * inside.astype(np.float64)
        return out

    return StudyPlan((MIXED,), figures, SIMULATIONS)


def _hastings() -> StudyPlan:
    def figures(found: Found) -> Figures:
        cells = _estimates(MIXED, found, (ADJUSTED,)) | _estimates(PROPOSED, found, PROPOSED.ways)
        columns = (ADJUSTED, *PROPOSED.ways)
        return {
            cell: cells[cell]
            for row in MIXED.data.model.rows
            for cell in (cell_name(row, c) for c in columns)
        }

    return StudyPlan((MIXED, PROPOSED), figures, PROPOSALS)


# Table 5.

EXAM = Analysis(Exam(), code_noise("standLRT", "sex"), (ORIGINAL, NAIVE, ADJUSTED, FLAT))


def _with_errors(job: Analysis, found: Floats, columns: Mapping[str, str]) -> dict[str, Floats]:
    """Return estimates and, where a fit has them, errors; `columns` name the ways."""
    out: dict[str, Floats] = {}
    for row in job.data.model.rows:
        for way, column in columns.items():
            estimates, errors = job.of(found, way, row)
            out[cell_name(row, column)] = estimates
            if np.isfinite(errors).all():
                out[cell_name(f"{ERROR}{row}", column)] = errors
    return out


def _table_5() -> StudyPlan:
    columns = {way: way for way in EXAM.ways}
    return StudyPlan((EXAM,), lambda found: _with_errors(EXAM, found[EXAM], columns), PUPILS)


# Tables 6a and 6b.

Jobs = Mapping[str, Analysis]  # by column


def farm_jobs(columns: tuple[str, ...]) -> dict[str, Analysis]:
    """Return the fits to farms with noise on some columns: correlated and taken as it is, independent and adjusted."""
    jobs: dict[str, Analysis] = {}
    for noise in NOISES:
        correlated, independent = keeping_moments(columns, noise), by_itself(columns, noise)
        jobs[f"correlated {noise:.0%}"] = Analysis(Farms(), correlated, (ORIGINAL, NAIVE))
        jobs[f"independent {noise:.0%}"] = Analysis(Farms(), independent, (ORIGINAL, ADJUSTED))
    return jobs


PREDICTORS, ALL = farm_jobs(Farms.model.predictors), farm_jobs(Farms.fields)


def _table_6(jobs: Jobs) -> StudyPlan:
    first = next(iter(jobs.values()))

    def figures(found: Found) -> Figures:
        columns = [_with_errors(first, found[first], {ORIGINAL: ORIGINAL})]
        columns += [_with_errors(job, found[job], {job.ways[-1]: column}) for column, job in jobs.items()]
        rows = [row for name in Farms.model.rows for row in (name, f"{ERROR}{name}")]
        cells = {cell: values for column in columns for cell, values in column.items()}
        return {cell: cells[cell] for row in rows for cell in (cell_name(row, c) for c in (ORIGINAL, *jobs))}

    return StudyPlan(tuple(jobs.values()), figures, FARMS)


# A logistic model, where the covariances are not all that matters.

SHARE = 0.3  # of the variances is noise
SKEWS = {"normal predictors": False, "skewed predictors": True}
ON_PREDICTORS, ON_ALL = "noise on predictors", "noise on all"
OUTCOME_JOBS: dict[str, tuple[Analysis, Analysis]] = {
    kind: (
        Analysis(
            Outcomes(skewed), keeping_moments(Outcomes.model.predictors, SHARE), (ORIGINAL, NAIVE, ADJUSTED)
        ),
        Analysis(Outcomes(skewed), keeping_moments(Outcomes.fields, SHARE), (NAIVE,)),
    )
    for kind, skewed in SKEWS.items()
}


def _logistic() -> StudyPlan:
    def figures(found: Found) -> Figures:
        out: dict[str, Floats] = {}
        for kind, (some, every) in OUTCOME_JOBS.items():
            for row in Outcomes.model.rows:
                name = f"{kind}, {row}"
                out[cell_name(name, ORIGINAL)] = some.of(found[some], ORIGINAL, row)[0]
                out[cell_name(name, ON_PREDICTORS)] = some.of(found[some], NAIVE, row)[0]
                out[cell_name(name, ADJUSTED)] = some.of(found[some], ADJUSTED, row)[0]
                out[cell_name(name, ON_ALL)] = every.of(found[every], NAIVE, row)[0]
        return out

    jobs = tuple(job for several in OUTCOME_JOBS.values() for job in several)
    return StudyPlan(jobs, figures, OUTCOMES)


# What the noise costs.

INDEX, DETERMINANTS, FORECAST, FITTED = "index", "of estimates", "se, forecast", "se, fits"
PAIR = "two normal predictors, noise 0.2"
PAIRS = Analysis(Pair(), IndependentNoise(Pair.model.predictors, variance=VARIANCE), (ORIGINAL, ADJUSTED))
COSTS = {PAIR: (PAIRS, "beta_1")} | {
    f"farms, noise on {where}, {noise:.0%}": (jobs[f"independent {noise:.0%}"], Farms.model.rows[2])
    for where, jobs in (("predictors", PREDICTORS), ("all", ALL))
    for noise in NOISES
}


@dataclass(frozen=True, slots=True)
class Cost:
    """What the noise costs a linear model by what the library says of a release, and before it of the true file."""

    data: Any
    mask: Any
    row: str

    def found(self, masking: Masking) -> Floats:
        """Return the paper's index, the efficiency of the estimates, and by how much a slope's error grows."""
        from ...analysis.corrections import efficiency, forecast

        model = self.data.model
        slope = model.parameters[model.rows.index(self.row)].draws
        with np.errstate(invalid="ignore"):  # errors that cannot be told from so few records
            told = efficiency(model.formula, masking.release)
        wider = forecast(model.formula, masking.truth, masking.release.card).widening[slope]
        return np.array([told.index, told.relative, 1 + wider])


def _efficiency() -> StudyPlan:
    costs = {name: Cost(job.data, job.mask, row) for name, (job, row) in COSTS.items()}

    def figures(found: Found) -> Figures:
        out: dict[str, Floats] = {}
        for name, (job, row) in COSTS.items():
            told = zip((INDEX, DETERMINANTS, FORECAST), found[costs[name]].T, strict=True)
            out |= {cell_name(name, column): values for column, values in told}
            errors = [job.of(found[job], way, row)[1] for way in (ADJUSTED, ORIGINAL)]
            out[cell_name(name, FITTED)] = errors[0] / errors[1]
        return out

    return StudyPlan((*(job for job, _ in COSTS.values()), *costs.values()), figures, FARMS)


ANALYSES: dict[str, Callable[[], StudyPlan]] = {
    "4": _table_4,
    "4-paired": _paired_difference_plan,
    "4-intervals": _intervals,
    "4-hastings": _hastings,
    "5": _table_5,
    "6a": lambda: _table_6(PREDICTORS),
    "6b": lambda: _table_6(ALL),
    "efficiency": _efficiency,
    "logistic": _logistic,
}
