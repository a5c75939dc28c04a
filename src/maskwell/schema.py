"""What each column of a file is: its kind, its roles, its codes, the unit it is released in."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import inf, isfinite
from pathlib import Path
from typing import Any

from .errors import BadPlan, nearest, raise_all
from .toml_files import toml_data, toml_of

ROLES = ("id", "block", "key", "sensitive", "weight", "group")
KINDS = ("continuous", "integer", "category", "text")

LARGEST = 1e150  # its square is still a number
STEPS = 2**53  # beyond so many units from 0, floating point cannot tell a code from its neighbours
OPEN, MISSING, TOP_CODED, BOTTOM_CODED, FIRST_MISSING_CODE = 0, 1, 2, 3, 4

_FIELDS = ("kind", "roles", "unit", "top", "bottom", "missing", "categories", "labels", "description", "drop")


@dataclass(frozen=True, slots=True)
class Column:
    """One column: what it holds and how it may leave.

    `unit` is the step of the released values (1, 0.01, 50). `top` and `bottom` are codes: a value equal to
    one of them is top- or bottom-coded, not open. `missing` lists further codes that mean "no value";
    `categories` the values of a category column in the order of their codes 0..K-1. A dropped column is
    read but never released.
    """

    name: str
    kind: str
    roles: frozenset[str] = frozenset()
    unit: float | None = None
    top: float | None = None
    bottom: float | None = None
    missing: tuple[float | str, ...] = ()
    categories: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    description: str = ""
    drop: bool = False

    @property
    def is_number(self) -> bool:
        """Whether the column holds amounts (continuous or integer)."""
        return self.kind in ("continuous", "integer")

    @property
    def may_be_known(self) -> bool:
        """Whether somebody outside may know its values: what is sensitive, and neither block nor key, nobody does."""
        return not self.roles & {"id", "group"} and (
            "sensitive" not in self.roles or bool(self.roles & {"block", "key"})
        )

    @property
    def step(self) -> Fraction | None:
        """The released unit as an exact fraction; integers have unit 1 unless told otherwise."""
        if self.unit is None:
            return Fraction(1) if self.kind == "integer" else None
        return Fraction(repr(float(self.unit)) if isinstance(self.unit, float) else str(self.unit))

    def problems(self) -> list[str]:
        """Return what is wrong with this description, one sentence each."""
        found = [
            f"column {self.name!r}: role {role!r} is not one of {', '.join(ROLES)}{nearest(role, ROLES)}"
            for role in sorted(self.roles - set(ROLES))
        ]
        if self.kind not in KINDS:
            hint = nearest(self.kind, KINDS)
            return [
                *found,
                f"column {self.name!r}: kind {self.kind!r} is not one of {', '.join(KINDS)}{hint}",
            ]
        return found + self._number_problems() + self._category_problems()

    def _number_problems(self) -> list[str]:
        found = []
        if not self.is_number:
            given = [name for name in ("unit", "top", "bottom") if getattr(self, name) is not None]
            found += [
                f"column {self.name!r}: {name} is for numbers, not for kind {self.kind!r}" for name in given
            ]
            if "weight" in self.roles:
                found.append(f"column {self.name!r}: a weight must be a number, not kind {self.kind!r}")
            return found
        infinite = [name for name in ("unit", "top", "bottom") if not isfinite(getattr(self, name) or 0)]
        if infinite:
            return [f"column {self.name!r}: {name} must be a finite number" for name in infinite]
        if self.unit is not None and not self.unit > 0:
            found.append(f"column {self.name!r}: the unit must be positive")
        elif self.kind == "integer" and self.step is not None and self.step.denominator != 1:
            found.append(f"column {self.name!r}: an integer column needs a whole unit (1, 10, 1000)")
        if self.top is not None and self.bottom is not None and self.top <= self.bottom:
            found.append(f"column {self.name!r}: the top code must lie above the bottom code")
        return found or self._step_problems()

    def _step_problems(self) -> list[str]:
        """Say where a code lies so many units from 0 that floating point does not have its neighbours."""
        codes = [code for code in (self.top, self.bottom, *self.missing) if isinstance(code, int | float)]
        if self.step is None or all(abs(code) <= STEPS * self.step for code in codes):
            return []
        return [f"column {self.name!r}: its codes must lie within {STEPS:,} units of 0: take a larger unit"]

    def _category_problems(self) -> list[str]:
        found = []
        if self.kind != "category" and self.categories:
            found.append(f"column {self.name!r}: categories are for kind 'category', not {self.kind!r}")
        labelled = tuple(code for code, _ in self.labels)
        listed = (("category", self.categories), ("missing code", self.missing), ("label", labelled))
        for what, items in listed:
            if len(set(map(str, items))) < len(items):
                found.append(f"column {self.name!r}: a {what} is listed twice")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the description as plain data, defaults left out."""
        out: dict[str, Any] = {"kind": self.kind}
        if self.roles:
            out["roles"] = sorted(self.roles)
        for name in ("unit", "top", "bottom", "description", "drop"):
            value = getattr(self, name)
            if value is not None and value is not False and value != "":
                out[name] = value
        for name in ("missing", "categories"):
            if getattr(self, name):
                out[name] = list(getattr(self, name))
        if self.labels:
            out["labels"] = dict(self.labels)
        return out

    @classmethod
    def from_dict(cls, name: str, data: Mapping[str, Any]) -> Column:
        """Build a column from plain data; the names were checked by `Schema.from_dict`."""
        return cls(
            name=name,
            kind=data["kind"],
            roles=frozenset(data.get("roles", ())),
            unit=data.get("unit"),
            top=data.get("top"),
            bottom=data.get("bottom"),
            missing=tuple(data.get("missing", ())),
            categories=tuple(str(item) for item in data.get("categories", ())),
            labels=tuple((str(code), str(label)) for code, label in dict(data.get("labels", {})).items()),
            description=data.get("description", ""),
            drop=bool(data.get("drop", False)),
        )


def _with_text_id(column: Column) -> Column:
    """Return a column as it is, but an id as a text: it is read, compared and given anew as such, numbers or not."""
    if not column.is_number or "id" not in column.roles or "weight" in column.roles:
        return column
    return replace(column, kind="text", unit=None)


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a file, in order; `series` names the survey whose releases share a key."""

    columns: tuple[Column, ...]
    series: str = "default"
    _index: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(_with_text_id(one) for one in self.columns))
        object.__setattr__(self, "_index", {column.name: i for i, column in enumerate(self.columns)})
        raise_all(self._problems(), BadPlan)

    def _problems(self) -> list[str]:
        found = [problem for column in self.columns for problem in column.problems()]
        names = [unicodedata.normalize("NFC", name) for name in self.names]
        found += [
            f"column {name!r} is described twice" for name in sorted({n for n in names if names.count(n) > 1})
        ]
        for role in ("id", "weight"):
            holders = [column.name for column in self.columns if role in column.roles]
            if len(holders) > 1:
                found.append(
                    f"only one column may have the role {role!r}, not {', '.join(map(repr, holders))}"
                )
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in order."""
        return tuple(column.name for column in self.columns)

    @property
    def id_column(self) -> str | None:
        """The name of the id column, if there is one."""
        return next(iter(self.with_role("id", dropped=True)), None)

    def __contains__(self, name: object) -> bool:
        return name in self._index

    def __getitem__(self, name: str) -> Column:
        if name not in self._index:
            raise BadPlan(f"there is no column {name!r}{nearest(name, self.names)}")
        return self.columns[self._index[name]]

    def with_role(self, role: str, *, dropped: bool = False) -> tuple[str, ...]:
        """Return the names of the columns that have a role and leave; with `dropped` of those that stay inside too."""
        return tuple(c.name for c in self.columns if role in c.roles and (dropped or not c.drop))

    def changed(self, changes: Mapping[str, Column]) -> Schema:
        """Return the schema with some columns described anew."""
        return replace(self, columns=tuple(changes.get(column.name, column) for column in self.columns))

    def without(self, names: Iterable[str]) -> Schema:
        """Return the schema without some columns."""
        gone = set(names)
        return replace(self, columns=tuple(column for column in self.columns if column.name not in gone))

    def missing_columns(self, names: Iterable[str]) -> list[str]:
        """Return one sentence for each name that is not a column, with the nearest right name."""
        return [f"there is no column {n!r}{nearest(n, self.names)}" for n in names if n not in self._index]

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as plain data."""
        return {"series": self.series, "columns": {column.name: column.to_dict() for column in self.columns}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Build a schema from plain data, listing every problem at once."""
        raise_all(_shape_problems(data), BadPlan)
        columns = tuple(Column.from_dict(name, described) for name, described in data["columns"].items())
        return cls(columns, series=data.get("series", "default"))

    def to_toml(self, comments: Mapping[str, Iterable[str]] | None = None) -> str:
        """Write the schema as TOML, with comment lines above the columns they speak of."""
        lines = [f"series = {toml_value(self.series)}"]
        for column in self.columns:
            lines += ["", *(f"# {text}" for text in (comments or {}).get(column.name, ()))]
            lines.append(f"[columns.{toml_key(column.name)}]")
            lines += [f"{name} = {toml_value(value)}" for name, value in column.to_dict().items()]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read a schema from TOML text."""
        return cls.from_dict(toml_data(text, "the schema"))

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a schema from a TOML file."""
        return cls.from_dict(toml_of(path, f"the schema file {str(path)!r}"))


def _shape_problems(data: Mapping[str, Any]) -> list[str]:
    found = [
        f"unknown key {name!r} in the schema{nearest(name, ('series', 'columns'))}"
        for name in data
        if name not in ("series", "columns")
    ]
    if not isinstance(data.get("series", ""), str):
        found.append("series must be text")
    columns = data.get("columns")
    if not isinstance(columns, Mapping) or not columns:
        return [*found, "the schema has no columns: write one [columns.NAME] table for each"]
    for name, described in columns.items():
        if not isinstance(described, Mapping):
            found.append(f"column {name!r} must be a table: [columns.{name}]")
        else:
            found += _column_shape_problems(name, described)
    return found


def _is_number(value: Any) -> bool:
    """Whether a value is a number that can be squared; whole ones as long as a double has all their digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= STEPS
    return isinstance(value, float) and not LARGEST < abs(value) < inf  # what is not finite is said elsewhere


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_list(value: Any, *checks: Callable[[Any], bool]) -> bool:
    return isinstance(value, list | tuple) and all(any(check(one) for check in checks) for one in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_labels(value: Any) -> bool:
    return isinstance(value, Mapping) and _is_list([*value.values()], _is_text, _is_number, _is_flag)


_NUMBER = (_is_number, f"a number of at most {LARGEST:g}")
_WANTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "kind": (_is_text, "text"),
    "roles": (lambda value: _is_list(value, _is_text), "a list of texts"),
    "unit": _NUMBER,
    "top": _NUMBER,
    "bottom": _NUMBER,
    "missing": (lambda value: _is_list(value, _is_text, _is_number), "a list of numbers and texts"),
    "categories": (lambda value: _is_list(value, _is_text, _is_number, _is_flag), "a list of texts"),
    "labels": (_is_labels, "a table of code = label"),
    "description": (_is_text, "text"),
    "drop": (_is_flag, "true or false"),
}


def _column_shape_problems(name: str, described: Mapping[str, Any]) -> list[str]:
    found = [
        f"column {name!r}: unknown key {key!r}{nearest(key, _FIELDS)}"
        for key in described
        if key not in _WANTED
    ]
    if "kind" not in described:
        found.append(f"column {name!r} has no kind: one of {', '.join(KINDS)}")
    found += [
        f"column {name!r}: {key} must be {words}"
        for key, (check, words) in _WANTED.items()
        if key in described and not check(described[key])
    ]
    return found


def toml_key(name: str) -> str:
    """Return a name as TOML writes it before an equals sign."""
    plain = name.isascii() and name.replace("_", "a").replace("-", "a").isalnum()
    return name if plain else toml_value(name)


def toml_value(value: Any) -> str:
    """Return plain data as TOML writes it after an equals sign."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + "".join(_escape_character(character) for character in value) + '"'
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_value(str(k))} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(float(value) if isinstance(value, float) else int(value))


def _escape_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    return character if character.isprintable() else f"\\U{ord(character):08x}"
