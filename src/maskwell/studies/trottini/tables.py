"""The tables: which intruders each needs on how many files, and its cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from ..plans import Found, StudyPlan, cell_name
from ..results import Draws
from .simulation import (
    CASES,
    FIELD,
    LEVELS,
    MOMENTS,
    RECORDS,
    SOUGHT,
    THRESHOLDS,
    TIGHT,
    WIDE,
    Scenario,
    TrottiniAnswer,
    TrottiniJob,
    finite_values,
    helped_intruder,
    intruder,
    mask_scenario,
)

KERNELS = ("paper", "forward", "fms", "coherent")
HELPERS = (0, 1, 9, 24, 49, RECORDS - 1)
KNOWING = {"tight prior": TIGHT, "wide prior": WIDE, "told": None}
HELPED = "DATA2"  # the file of `helpers`
LINKED = "told, linked right"
SHOWN = 5  # records of table 1
SHOWN_AT = {  # the thresholds that differ: not told, he is sure of nothing
    "d.1": (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99),
    "d.2": (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2),
}
QUARTER = 0.25  # the share of the replicates on which `kernels` is run
PERCENT = 100.0
BANDS = 100  # files from which on the ends of a 5-95% band are firm enough to compare published figures with
FEW = 0.04  # the share of the replicates on which the chains of `helpers` are run


def amounts(bias: str, noise: str) -> str:
    """Name the row of an amount of bias and noise."""
    return f"{bias} bias, {noise} noise"


def equal(level: str, data: str) -> Scenario:
    """Return the scenario with bias and noise of the same level."""
    return Scenario(data, level, level)


# Table 1.


def first_records(seed: int) -> Draws:
    """Return the first five records of the first file, as they are and as they leave."""
    cells: dict[str, list[float]] = {}
    for data, level in product(MOMENTS, LEVELS):
        masking = mask_scenario(equal(level, data), seed, 0)
        for column, table in (("original", masking.truth), (level, masking.masked)):
            for number, value in enumerate(table.values((FIELD,))[:SHOWN, 0], 1):
                cells[cell_name(f"record {number}", f"{data} {column}")] = [float(value)]
    return cells


# Tables 2 and 3.


def _of_case(case: str) -> dict[str, TrottiniJob]:
    """Return the eighteen scenarios of a table by cell."""
    plan = intruder(prior=CASES[case])
    return {
        cell_name(amounts(bias, noise), data): TrottiniJob(Scenario(data, bias, noise), plan)
        for data, bias, noise in product(MOMENTS, LEVELS, LEVELS)
    }


def _counts(case: str) -> StudyPlan:
    jobs = _of_case(case)

    def cells(found: Found) -> Draws:
        return {cell: [one.correct for one in found[job]] for cell, job in jobs.items()}

    return StudyPlan(tuple(jobs.values()), cells)


def _probabilities(case: str) -> StudyPlan:
    jobs = _of_case(case)

    def cells(found: Found) -> Draws:
        figures: dict[str, list[float]] = {}
        for cell, job in jobs.items():
            figures[f"{cell}, mean"] = finite_values([one.probability for one in found[job]])
            figures[f"{cell}, sd"] = finite_values([one.sd for one in found[job]])
        return figures

    return StudyPlan(tuple(jobs.values()), cells)


# The kernels and the thresholds.


def _kernels() -> StudyPlan:
    jobs = {
        cell_name(f"{data}, {case}, {level}", kernel): TrottiniJob(
            equal(level, data), intruder(kernel, prior)
        )
        for data, (case, prior), level, kernel in product(MOMENTS, CASES.items(), LEVELS, KERNELS)
    }

    def cells(found: Found) -> Draws:
        return {cell: [one.correct for one in found[job]] for cell, job in jobs.items()}

    return StudyPlan(tuple(jobs.values()), cells, QUARTER)


def _threshold() -> StudyPlan:
    least = LEVELS[0]
    jobs = {
        (case, data): TrottiniJob(equal(least, data), intruder(prior=prior))
        for (case, prior), data in product(CASES.items(), MOMENTS)
    }

    def cells(found: Found) -> Draws:
        figures: dict[str, list[float]] = {}
        for (case, data), job in jobs.items():
            for threshold in SHOWN_AT[case]:
                at = _at(found[job], THRESHOLDS.index(threshold))
                figures |= {cell_name(f"{case}, t {threshold:g}", f"{data} {name}"): at[name] for name in at}
        return figures

    return StudyPlan(tuple(jobs.values()), cells)


def _at(answers: Sequence[TrottiniAnswer], place: int) -> dict[str, list[float]]:
    """Return links and correct ones at a threshold by file, and how precise those of all files are together."""
    links = [float(one.links[place]) for one in answers]
    right = [float(one.right[place]) for one in answers]
    precise = [PERCENT * np.sum(right) / np.sum(links)] if np.sum(links) else []
    return {"links": links, "correct": right, "% right": precise}


# The helpers.


def _helpers() -> StudyPlan:
    scenario = equal(LEVELS[0], HELPED)
    jobs = {
        cell_name(f"L {helpers}", name): TrottiniJob(scenario, helped_intruder(prior, helpers))
        for helpers, (name, prior) in product(HELPERS, KNOWING.items())
    }

    def cells(found: Found) -> Draws:
        figures = {cell: [PERCENT * one.truth for one in found[job]] for cell, job in jobs.items()}
        for helpers in HELPERS:
            answers = found[jobs[cell_name(f"L {helpers}", "told")]]
            links = [PERCENT * one.correct / SOUGHT for one in answers]
            figures[cell_name(f"L {helpers}", LINKED)] = links
        return figures

    return StudyPlan(tuple(jobs.values()), cells, FEW)


TABLES: dict[str, Callable[[], StudyPlan]] = {
    "2": lambda: _counts("d.1"),
    "2-probability": lambda: _probabilities("d.1"),
    "3": lambda: _counts("d.2"),
    "3-probability": lambda: _probabilities("d.2"),
    "kernels": _kernels,
    "threshold": _threshold,
    "helpers": _helpers,
}
