"""New covariates for a prediction: numbers, codes of categories and labels of groups, from any kind of table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import BadPlan, nearest, raise_all
from ...table import Table
from .draws import Floats

Labels = npt.NDArray[np.object_]
MOST_NAMED = 20  # levels in one sentence
UNGROUPED = "missing"  # the label of records whose group is not known


@dataclass(frozen=True, slots=True)
class Covariates:
    """Columns of records: `values` numbers or codes 0..K-1, `groups` the labels of what groups the records.

    `drawn` has columns that are known by draws only: chains x draws x records.
    """

    values: Mapping[str, Floats] = field(repr=False)
    groups: Mapping[str, Labels] = field(repr=False)
    drawn: Mapping[str, npt.NDArray[Any]] = field(default_factory=dict, repr=False)

    def part(self, start: int, stop: int) -> Covariates:
        """Return some of the records."""
        values = {name: column[start:stop] for name, column in self.values.items()}
        groups = {name: column[start:stop] for name, column in self.groups.items()}
        return Covariates(
            values, groups, {name: drawn[..., start:stop] for name, drawn in self.drawn.items()}
        )

    def by_draw(self, draws: int) -> Mapping[str, Floats]:
        """Return the values of all records for each draw, one draw after the other; as they are where none is drawn."""
        if not self.drawn:
            return self.values
        known = {name: np.tile(column, draws) for name, column in self.values.items()}
        return known | {name: np.asarray(own, np.float64).reshape(-1) for name, own in self.drawn.items()}

    def __len__(self) -> int:
        held = (*self.values.values(), *self.groups.values(), *self.drawn.values())
        return max((column.shape[-1] for column in held), default=0)


def read_covariates(new: Any, levels: Mapping[str, tuple[str, ...]], groups: Sequence[str]) -> Covariates:
    """Read the columns a model needs; all problems are said at once.

    `levels` has the categories of each column, none of a number. A single value of a mapping stands for all records.
    """
    wanted = list(dict.fromkeys([*levels, *groups]))
    held = _covariate_columns(new)
    raise_all([_absent(name, held) for name in wanted if name not in held], BadPlan)
    columns = _spread({name: held[name] for name in wanted})
    problems: list[str] = []
    values = {name: _numbers(name, columns[name], levels[name], problems) for name in levels}
    labels = {name: _group_labels(columns[name]) for name in groups}
    raise_all(problems, BadPlan)
    return Covariates(values, labels)


def label_of(value: Any) -> str:
    """Return the label of a group or category: whole numbers are written without a point."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _covariate_columns(new: Any) -> Mapping[str, Any]:
    """Return the columns of a Table, a mapping or a dataframe."""
    if isinstance(new, Table):
        return {name: new.array(name).to_pylist() for name in new.names}
    if isinstance(new, Mapping):
        return new
    import narwhals as nw

    try:
        frame = nw.from_native(new, eager_only=True)
    except TypeError:
        raise BadPlan(
            f"new covariates are a Table, a dataframe or a mapping of columns, not a {type(new).__name__}"
        ) from None
    return {name: frame[name].to_list() for name in frame.columns}


def _absent(name: str, held: Mapping[str, Any]) -> str:
    return f"the model needs the column {name!r}, which the new records do not have{nearest(name, held)}"


def _spread(columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return columns of one length; a single value is repeated."""
    listed = {name: _list(column) for name, column in columns.items()}
    lengths = {len(column) for column in listed.values() if column is not None}
    if len(lengths) > 1:
        raise BadPlan(f"the columns of the new records are of different lengths: {sorted(lengths)}")
    count = lengths.pop() if lengths else 1
    return {name: [columns[name]] * count if column is None else column for name, column in listed.items()}


def _list(column: Any) -> list[Any] | None:
    """Return a column as a list, or nothing where it is a single value."""
    if isinstance(column, str | bytes | int | float | np.generic) or column is None:
        return None
    found = np.asarray(column).tolist() if isinstance(column, np.ndarray) else list(column)
    return found if isinstance(found, list) else None


def _is_missing(value: Any) -> bool:
    return value is None or value != value


def _numbers(name: str, column: list[Any], levels: tuple[str, ...], problems: list[str]) -> Floats:
    """Return numbers, or the codes of categories."""
    missing = sum(map(_is_missing, column))
    if missing:
        problems.append(f"column {name!r} misses {missing:,} of its values: a prediction needs them all")
        return np.zeros(len(column))
    if levels:
        codes = {label: float(code) for code, label in enumerate(levels)}
        found = [codes.get(label_of(value), np.nan) for value in column]
        if any(map(_is_missing, found)):
            known = ", ".join(levels[:MOST_NAMED]) + (", ..." if len(levels) > MOST_NAMED else "")
            problems.append(
                f"column {name!r} has values that are none of the model's categories; the model knows {known}"
            )
        return np.array(found, dtype=np.float64)
    try:
        return np.array([float(value) for value in column], dtype=np.float64)
    except (TypeError, ValueError):
        problems.append(f"column {name!r} must hold numbers")
        return np.zeros(len(column))


def _group_labels(column: list[Any]) -> Labels:
    """Return the labels of groups; records without one are a group of their own, as in the fit."""
    out = np.empty(len(column), dtype=object)
    out[:] = [UNGROUPED if _is_missing(value) else label_of(value) for value in column]
    return out
