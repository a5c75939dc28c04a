"""Means of sub-domains: the levels of grouping columns, with the overlap of the intervals before and after.

Overlap of two 95% intervals: the mean over both of the share of each that lies in the other (Karr, Kohnen, Oganian,
Reiter and Sanil 2006). Made by `comparison` for the schema's groups or blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import BadPlan, raise_all
from ..notes import Note
from ..table import Floats
from .figures import overlaps
from .pairs import TruthAndRelease
from .results import GroupUtility

FEWEST = 10  # records of a sub-domain whose mean has an interval worth the name
LISTED = 1_000  # sub-domains that are listed; the figures are over all
POOR = 0.5  # an overlap below this: the released mean is off by two standard errors and more


@dataclass(frozen=True, slots=True)
class Domains:
    """The sub-domains of a comparison and how far their intervals overlap."""

    groups: tuple[GroupUtility, ...] = ()
    count: int = 0
    overlap: float = float("nan")
    poor: float = float("nan")
    notes: tuple[Note, ...] = ()


def domain_means(sides: TruthAndRelease, given: Sequence[str] | None) -> Domains:
    """Compare the means of the touched numbers in every level of the grouping columns."""
    chosen = _grouping_columns(sides, given)
    numbers = [name for name in sides.numbers if name in sides.touched or sides.subsampled]
    found, notes, small = list[GroupUtility](), list[Note](), dict[str, int]()
    for candidates in chosen:
        for group in candidates:
            some, few = _levels(sides, group, numbers)
            found += some
            small |= {group: few} if few else {}
        if found:
            break
    if small:
        figures = {"levels": sum(small.values()), "columns": tuple(small), "least": FEWEST}
        notes.append(Note("utility.small_levels", figures))
    if not found:
        return Domains(notes=tuple(notes))
    apart = np.array([level.overlap for level in found])
    if len(found) > LISTED:
        notes.append(Note("utility.listed_means", {"count": len(found), "listed": LISTED}))
        found = [found[i] for i in np.argsort(apart, kind="stable")[:LISTED]]
    poor = float((apart < POOR).mean())
    return Domains(tuple(found), len(apart), float(np.nanmean(apart)), poor, tuple(notes))


def _grouping_columns(sides: TruthAndRelease, given: Sequence[str] | None) -> list[tuple[str, ...]]:
    """Return the grouping columns: those given, else those of role group, and where these are too fine the blocks."""
    schema = sides.masked.schema
    if given is not None:
        if isinstance(given, str):
            raise BadPlan(f"groups are a list of columns: write [{given!r}]")
        raise_all(schema.missing_columns(given), BadPlan)
        raise_all([p for name in given for p in _grouping_problems(sides, name)], BadPlan)
        return [tuple(given)]
    roles = [schema.with_role("group"), schema.with_role("block")]
    return [tuple(n for n in names if not _grouping_problems(sides, n)) for names in roles if names]


def _grouping_problems(sides: TruthAndRelease, name: str) -> list[str]:
    """Return why a column cannot group records."""
    before, after = sides.truth.schema[name], sides.masked.schema[name]
    if after.drop or "id" in after.roles:
        return [f"column {name!r} cannot group records: it is an id or is not released"]
    if "continuous" in (before.kind, after.kind):
        return [
            f"column {name!r} cannot group records: it is an amount; take a category, or put it in classes"
        ]
    return []


def _levels(sides: TruthAndRelease, group: str, numbers: Sequence[str]) -> tuple[list[GroupUtility], int]:
    """Compare means in every level of one grouping column that has enough records; count those that have not."""
    before, after, levels = sides.labels(group)
    found, small, count = list[GroupUtility](), 0, len(levels)
    for name in (name for name in numbers if name != group):
        first = _sums(sides.before(name), sides.weights, before, count)
        second = _sums(sides.after(name), sides.weights_after, after, count)
        enough = (first.records >= FEWEST) & (second.records >= FEWEST)
        small = max(small, int((~enough).sum()))
        share = overlaps(first.means, first.errors, second.means, second.errors)
        found += [
            GroupUtility(
                group=group,
                level=levels[i],
                column=name,
                records=int(first.records[i]),
                mean=float(first.means[i]),
                mean_after=float(second.means[i]),
                error=float(first.errors[i]),
                error_after=float(second.errors[i]),
                overlap=float(share[i]),
            )
            for i in np.flatnonzero(enough)
        ]
    return found, small


@dataclass(frozen=True, slots=True)
class _Sums:
    records: Floats
    means: Floats
    errors: Floats


def _sums(values: Floats, weights: Floats | None, level: Any, count: int) -> _Sums:
    """Return records, mean and its standard error of every level."""
    here = ~np.isnan(values) & (level >= 0)
    x, at = values[here], level[here]
    w = np.ones(len(x)) if weights is None else weights[here]
    records = np.bincount(at, minlength=count).astype(np.float64)
    total = np.bincount(at, w, count)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.bincount(at, w * x, count) / total
        apart = w * (x - means[at])
        free = records / (records - 1)
        errors = np.sqrt(np.bincount(at, apart**2, count) * free) / total
    return _Sums(records, means, errors)
