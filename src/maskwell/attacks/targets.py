"""Which true records an intruder holds: all of them, some drawn by the key, or those at given quantiles.

The record of quantile p is that of rank ceil(p n): of the distance from the centre, or of the signed sum of
standardised values, which is what the deciles of table 1 of Goldstein and Shlomo are of. `Sample` draws without
replacement by the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any

import numpy as np

from ..errors import BadPlan, nearest, raise_all
from ..schema import OPEN
from ..table import Floats, Table
from ..tolerances import is_real
from .cluster_sample import ClusterSample
from .protocol import Ints

DISTANCE, ROW_SUM = "distance", "row sum"


@dataclass(frozen=True, slots=True)
class Sample:
    """So many records, drawn without replacement by the key: the rate then has an interval.

    Where there are no more records than that, all of them are taken.
    """

    sample: int

    def __post_init__(self) -> None:
        if not isinstance(self.sample, Integral) or isinstance(self.sample, bool) or self.sample < 1:
            raise BadPlan(f"Sample takes a whole number of at least 1, not {self.sample!r}")

    def records(self, truth: Table, order: Ints) -> Ints:
        """Return the first so many in a keyed order, sorted."""
        return np.sort(order[: self.sample])

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        return {"sample": int(self.sample)}


def sample_size(chosen: object) -> int | None:
    """Return how many targets a choice asks for where they are drawn at random; else nothing."""
    if isinstance(chosen, ClusterSample):
        return int(chosen.targets)
    return int(chosen.sample) if isinstance(chosen, Sample) else None


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The records at given quantiles: of the distance from the centre, of the row sum, or of a column.

    `at` are shares between 0 and 1; the record of quantile p is the one of rank ceil(p n) from below. `of` is
    "distance" (Euclidean, in sds, over `columns`), "row sum" (of standardised `columns` with their signs, so that units
    do not matter) or a column's name. `columns` are the key columns that are numbers. Categories count by their codes.
    Records with a value that is not open there have no place among the quantiles.
    """

    at: tuple[float, ...]
    of: str = DISTANCE
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        given: Any = self.at
        listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
        object.__setattr__(self, "at", tuple(given) if listed else (given,))
        wrong = [p for p in self.at if not (is_real(p) and 0 < p <= 1)]
        problems = [f"a quantile is a share above 0 and up to 1, not {p!r}" for p in wrong]
        if not self.at:
            problems.append("name at least one quantile")
        elif not wrong:
            object.__setattr__(self, "at", tuple(map(float, self.at)))
            problems += [f"quantile {p:g} is named twice" for p in sorted(_twice(self.at))]
        raise_all(problems + self._column_problems(), BadPlan)

    def _column_problems(self) -> list[str]:
        problems: list[str] = []
        if not isinstance(self.of, str):
            problems.append(f"of is {DISTANCE!r}, {ROW_SUM!r} or a column's name, not {self.of!r}")
        given: Any = self.columns
        if given is None:
            return problems
        listed = (given,) if isinstance(given, str) else given
        if not isinstance(listed, Sequence) or not all(isinstance(name, str) for name in listed):
            return [*problems, f"columns must be names of columns, not {type(given).__name__}"]
        object.__setattr__(self, "columns", tuple(listed))
        problems += [f"column {name!r} is named twice" for name in sorted(_twice(listed))]
        if not listed:
            problems.append("name at least one column, or leave columns out")
        if self.of not in (DISTANCE, ROW_SUM):
            problems.append(
                f"columns are for quantiles of the {DISTANCE} or of the {ROW_SUM}: leave them out"
            )
        return problems

    def records(self, truth: Table, order: Ints) -> Ints:
        """Return the records, one for each quantile, in the order of `at`; equal values go by the keyed order."""
        values = self.measured(truth)
        ranked = order[np.argsort(values[order], kind="stable")]
        ranked = ranked[~np.isnan(values[ranked])]
        if not len(ranked):
            raise BadPlan("no record is open in all columns of the quantiles, so that none has a rank")
        places = [max(int(np.ceil(p * len(ranked) - 1e-9)) - 1, 0) for p in self.at]
        if _twice(places):
            raise BadPlan(
                f"two of the quantiles are the same of {len(ranked):,} records: name fewer, further apart"
            )
        return np.asarray(ranked[places])

    def measured(self, truth: Table) -> Floats:
        """Return what the quantiles are of, NaN where a value is not open."""
        if self.of not in (DISTANCE, ROW_SUM):
            raise_all(truth.schema.missing_columns([self.of]), BadPlan)
            return np.where(truth.status(self.of) == OPEN, truth.floats(self.of), np.nan)
        columns = self.columns if self.columns is not None else number_keys(truth)
        raise_all(truth.schema.missing_columns(columns), BadPlan)
        if not columns:
            raise BadPlan("no key column is a number: name the columns of the quantiles")
        z = standardised_values(truth.values(columns))
        return np.asarray(np.sqrt((z**2).sum(axis=1)) if self.of == DISTANCE else z.sum(axis=1))

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        out: dict[str, Any] = {"at": list(self.at)}
        if self.of != DISTANCE:
            out["of"] = self.of
        return out if self.columns is None else out | {"columns": list(self.columns)}


@dataclass(frozen=True, slots=True)
class RecordSet:
    """Given records of the truth, by their numbers from 0: for a steward who asks about some of them."""

    numbers: tuple[int, ...]

    def records(self, truth: Table, order: Ints) -> Ints:
        """Return the numbers."""
        return np.array(self.numbers, np.int64)

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as plain data."""
        return {"numbers": list(self.numbers)}


Choice = Sample | ClusterSample | Quantiles | RecordSet


def choice_from_dict(data: Mapping[str, Any]) -> Choice:
    """Build a choice of targets from plain data."""
    names = {"sample": Sample, "targets": ClusterSample, "numbers": RecordSet}
    kind: Any = next((kind for name, kind in names.items() if name in data), Quantiles)
    allowed = [item.name for item in fields(kind)]
    strange = [f"targets have no option {n!r}{nearest(n, allowed)}" for n in data if n not in allowed]
    raise_all(strange, BadPlan)
    choice: Choice = kind(**data)
    return choice


def number_keys(truth: Table) -> tuple[str, ...]:
    """Return the key columns that are numbers."""
    return tuple(c.name for c in truth.schema.columns if "key" in c.roles and c.is_number)


def standardised_values(values: Floats) -> Floats:
    """Return values less their means, in sds; a column without spread becomes zero where it is open."""
    is_open = ~np.isnan(values)
    filled = np.where(is_open, values, 0.0)
    size = np.abs(filled).max(axis=0, initial=0.0)
    filled = filled / np.where(size > 0, size, 1.0)  # so that no square overflows
    counts = is_open.sum(axis=0)
    centred = np.where(is_open, filled - filled.sum(axis=0) / np.maximum(counts, 1), 0.0)
    sds = np.sqrt((centred**2).sum(axis=0) / np.maximum(counts - 1, 1))
    spread = sds > 1e-14  # of the largest value: less is what rounding leaves of a constant
    return np.where(is_open, centred / np.where(spread, sds, np.inf), np.nan)


def _twice(items: Sequence[Any]) -> set[Any]:
    """Return what is named more than once."""
    return {item for item in items if items.count(item) > 1}
