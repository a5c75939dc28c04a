"""The tables: which intruders each needs on how many files, and its cells."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import isfinite

from ..plans import Found, StudyPlan, cell_name
from ..results import Draws
from .simulation import GAMMA, KERNELS, SAMPLED, SCENARIOS, FienbergJob

ROWS = ("1st", "2nd", "3rd", *(f"{i}th" for i in range(4, 11)), "beyond")
MASKED = tuple(SCENARIOS)[1:]
FIRST, OUT, INSIDE = "first", "P(out), those out", "P(out), those in"
PERCENT = 100.0
CASES = {"told": None, "not told": GAMMA}


SLIDES = {name: FienbergJob(name) for name in SCENARIOS}


def _ranks() -> StudyPlan:
    def cells(found: Found) -> Draws:
        return {
            cell_name(row, name): [float(one.places[i]) for one in found[job]]
            for i, row in enumerate(ROWS)
            for name, job in SLIDES.items()
        }

    return StudyPlan(tuple(SLIDES.values()), cells)


def _probability() -> StudyPlan:
    words = {"his first": "first", "the true record": "truth", "his correct links": "correct"}

    def cells(found: Found) -> Draws:
        return {
            cell_name(row, name): [getattr(one, field) for one in found[job] if isfinite(getattr(one, field))]
            for row, field in words.items()
            for name, job in SLIDES.items()
        }

    return StudyPlan(tuple(SLIDES.values()), cells)


def _telling_plan() -> StudyPlan:
    jobs = {
        cell_name(f"{name}, {case}", kernel): FienbergJob(name, kernel, prior)
        for name, (case, prior), kernel in product(MASKED, CASES.items(), KERNELS)
    }

    def cells(found: Found) -> Draws:
        return {cell: [float(one.places[0]) for one in found[job]] for cell, job in jobs.items()}

    return StudyPlan(tuple(jobs.values()), cells)


def _sampling_plan() -> StudyPlan:
    cases = [(name, "not told", GAMMA) for name in SCENARIOS] + [(name, "told", None) for name in MASKED]
    jobs = {
        f"{name}, {case}, {kernel}": FienbergJob(name, kernel, prior, SAMPLED)
        for (name, case, prior), kernel in product(cases, ("fms", "coherent"))
    }

    def cells(found: Found) -> Draws:
        figures: dict[str, list[float]] = {}
        for row, job in jobs.items():
            figures[cell_name(row, FIRST)] = [
                PERCENT * one.places[0] / one.places.sum() for one in found[job]
            ]
            figures[cell_name(row, OUT)] = [PERCENT * one.out for one in found[job]]
            figures[cell_name(row, INSIDE)] = [PERCENT * one.inside for one in found[job]]
        return figures

    return StudyPlan(tuple(jobs.values()), cells)


TABLES: dict[str, Callable[[], StudyPlan]] = {
    "ranks": _ranks,
    "probability": _probability,
    "telling": _telling_plan,
    "sampled": _sampling_plan,
}
