"""Plan files: what to read, how to mask it, where to write; every error is listed at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args, get_type_hints

from .errors import BadPlan, MaskwellError, nearest, raise_all
from .io import FORMATS
from .io.dialect import Dialect
from .laws.spread import Power, Step
from .masks import MASKS, Chain

if TYPE_CHECKING:
    from pydantic import TypeAdapter

    from .masking import Mask
    from .schema import Schema

KEYS = "role: key"  # as the only column of a mask: every number that has this role
_SECTIONS = ("input", "output", "masks")
_NAMES = [name for name in MASKS if name != "Chain"]
_SPREADS = {kind.form: kind for kind in (Step, Power)}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPlan:
    """What to read. Without a schema one is proposed from the data; paths are relative to the plan."""

    file: Path
    schema: Path | None = None
    format: str | None = None
    encoding: str = "utf-8"
    delimiter: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        problems = _format_problems(self.format, FORMATS)
        if self.decimal is not None and self.delimiter is None:
            problems.append("a decimal sign needs a delimiter too (a semicolon, say)")
        raise_all(problems, BadPlan)
        _ = self.dialect

    @property
    def dialect(self) -> Dialect | None:
        """How a CSV file is written, where the plan says it; otherwise it is found."""
        if self.delimiter is None:
            return None
        return Dialect(self.delimiter, self.decimal or ".", encoding=self.encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPlan:
    """Where to write: the public folder, the private folder, and the earlier release to nest in."""

    release: Path
    private: Path
    format: str | None = None
    earlier: Path | None = None
    earlier_private: Path | None = None

    def __post_init__(self) -> None:
        problems = _format_problems(self.format, [name for name in FORMATS if name != "sas7bdat"])
        if self.earlier_private is not None and self.earlier is None:
            problems.append("earlier_private needs earlier too: the folder of the release it belongs to")
        raise_all(problems, BadPlan)


def _format_problems(format: str | None, known: Iterable[str]) -> list[str]:
    if format is None or format.lower() in known:
        return []
    return [f"the format {format!r} is not one of {', '.join(known)}{nearest(format, known)}"]


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """What to read and how to mask it: the part of a plan that comes before any writing."""

    input: InputPlan
    masks: tuple[Mask, ...]

    def mask(self, schema: Schema) -> Mask:
        """Return the masks as one, for a file of this schema."""
        masks = tuple(_bound(mask, schema) for mask in self.masks)
        return masks[0] if len(masks) == 1 else Chain(masks)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the masks name."""
        named = [name for mask in self.masks for name in getattr(mask, "columns", ())]
        return tuple(name for name in dict.fromkeys(named) if name != KEYS)

    def masked(self, schema: Schema) -> frozenset[str]:
        """Return the columns that the masks change in a file of this schema."""
        masks = [mask for mask in self.masks if getattr(mask, "columns", ()) == (KEYS,)]
        computed = [mask.column for mask in self.masks if hasattr(mask, "column")]
        return frozenset([*self.columns, *computed, *(_keys(schema) if masks else ())])

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a plan from a TOML file, listing every problem at once."""
        file = Path(path)
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise BadPlan(f"the plan {str(path)!r} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise BadPlan(f"the plan {str(path)!r} is not UTF-8 text; save it as UTF-8") from None
        except tomllib.TOMLDecodeError as error:
            raise BadPlan(f"the plan {str(path)!r} is not valid TOML: {error}") from None
        return cls.from_dict(data, file.parent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: Path = Path()) -> Self:
        """Build a plan from plain data."""
        problems = [
            f"unknown section [{name}]{nearest(name, _SECTIONS)}" for name in data if name not in _SECTIONS
        ]
        parts = cls._parts(data, folder, problems)
        raise_all(problems, BadPlan)
        return cls(**parts)

    @classmethod
    def _parts(cls, data: Mapping[str, Any], folder: Path, problems: list[str]) -> dict[str, Any]:
        source = _section(InputPlan, data.get("input"), "[input]", folder, problems)
        return {"input": source, "masks": tuple(_masks(data.get("masks"), problems))}


@dataclass(frozen=True, slots=True)
class MaskPlan(NoisePlan):
    """A whole plan for `maskwell mask`: also where to write."""

    output: OutputPlan

    @classmethod
    def _parts(cls, data: Mapping[str, Any], folder: Path, problems: list[str]) -> dict[str, Any]:
        source = _section(InputPlan, data.get("input"), "[input]", folder, problems)
        target = _section(OutputPlan, data.get("output"), "[output]", folder, problems)
        return {"input": source, "output": target, "masks": tuple(_masks(data.get("masks"), problems))}


def _bound(mask: Any, schema: Schema) -> Any:
    """Give a mask of all key columns their names."""
    if getattr(mask, "columns", ()) != (KEYS,):
        return mask
    chosen = _keys(schema)
    if not chosen:
        raise BadPlan("no number has the role key: name the columns to mask, or give the schema roles")
    return replace(mask, columns=chosen)


def _keys(schema: Schema) -> tuple[str, ...]:
    return tuple(name for name in schema.with_role("key") if schema[name].is_number)


def _section(kind: Any, given: Any, where: str, folder: Path, problems: list[str]) -> Any:
    """Build a section; relative paths are read from where the plan lies."""
    if given is None:
        problems.append(f"the plan has no section {where}")
        return None
    if not isinstance(given, Mapping):
        problems.append(f"{where} must be a section: write {where} on a line of its own, its keys below")
        return None
    hints = get_type_hints(kind)
    placed = {
        key: folder / value
        if isinstance(value, str | Path) and value and Path in _kinds(hints.get(key))
        else value
        for key, value in given.items()
    }
    return _built(kind, placed, where, problems)


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) or (hint,)


def _masks(given: Any, problems: list[str]) -> list[Any]:
    if isinstance(given, Mapping):
        problems.append("masks are a list: write [[masks]], in double brackets, above each")
        return []
    if not isinstance(given, list) or not given:
        problems.append("the plan has no masks: write one [[masks]] section for each, with mask = its name")
        return []
    return [_mask(item, f"mask {number}", problems) for number, item in enumerate(given, 1)]


def _mask(item: Any, where: str, problems: list[str]) -> Any:
    name = item.get("mask") if isinstance(item, Mapping) else None
    if not isinstance(name, str):
        problems.append(f"{where} does not say which it is: write mask = one of {', '.join(_NAMES)}")
        return None
    if name not in _NAMES:
        hint = nearest(name, _NAMES) or f"; one of {', '.join(_NAMES)}"
        problems.append(f"{where}: there is no mask {name!r}{hint}")
        return None
    where = f"{where} ({name})"
    given = {key: _shaped(key, value, where, problems) for key, value in item.items() if key != "mask"}
    return _built(MASKS[name], given, where, problems)


def _shaped(key: str, value: Any, where: str, problems: list[str]) -> Any:
    """Allow the shapes that read well in TOML: one name for columns; tables for parts, groups, limits, spread."""
    if key == "columns" and isinstance(value, str):
        return (value,)
    if key == "parts" and isinstance(value, list):
        return tuple((part, 1.0) if isinstance(part, str) else _frozen(part) for part in value)
    if key == "spread" and isinstance(value, Mapping):
        return _spread(value, f"{where}: spread", problems)
    if key == "limits" and isinstance(value, Mapping):
        return tuple(_limit(name, ends, f"{where}: limits", problems) for name, ends in value.items())
    return _frozen(value)


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((name, _frozen(item)) for name, item in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _spread(given: Mapping[str, Any], where: str, problems: list[str]) -> Any:
    form = given.get("form")
    if not isinstance(form, str) or form not in _SPREADS:
        problems.append(
            f"{where} needs form = one of {', '.join(map(repr, _SPREADS))}{nearest(str(form), _SPREADS)}"
        )
        return None
    values = {key: _frozen(value) for key, value in given.items() if key != "form"}
    return _built(_SPREADS[form], values, where, problems)


def _limit(name: str, ends: Any, where: str, problems: list[str]) -> tuple[Any, ...]:
    if not isinstance(ends, Mapping):
        problems.append(f"{where} of {name!r} must be a table such as {{ low = 0, high = 90 }}")
        return (name, None, None)
    problems += _unknown(ends, ("low", "high"), f"{where} of {name!r}")
    return (name, ends.get("low"), ends.get("high"))


def _unknown(given: Mapping[str, Any], known: Any, where: str) -> list[str]:
    return [f"{where}: unknown key {key!r}{nearest(key, known)}" for key in given if key not in known]


def _built(kind: Any, given: Mapping[str, Any], where: str, problems: list[str]) -> Any:
    """Build a frozen dataclass of plain data after checking its names and types; nothing when one is wrong."""
    types = get_type_hints(kind)
    hints = {item.name: types[item.name] for item in fields(kind)}
    needed = [
        item.name for item in fields(kind) if item.default is MISSING and item.default_factory is MISSING
    ]
    found = [f"{where}: {name} is needed" for name in needed if name not in given]
    found += _unknown(given, list(hints), where)
    values = {key: _checked(hints[key], value) for key, value in given.items() if key in hints}
    found += [
        f"{where}: {key} must be {wanted(hints[key])}" for key, value in values.items() if value is MISSING
    ]
    problems += found
    try:
        return None if found else kind(**values)
    except MaskwellError as error:
        problems += [f"{where}: {problem}" for problem in error.problems]
    return None


def _checked(hint: Any, value: Any) -> Any:
    """Return a value of a type, a whole number as a float where one is wanted; `MISSING` when it does not fit."""
    from pydantic import ValidationError

    try:
        return _adapter(hint).validate_python(value)
    except ValidationError:
        return MISSING


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    from pydantic import ConfigDict, TypeAdapter

    return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))


_WORDS: dict[Any, str] = {
    Path: "a path",
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    tuple[str, ...]: "a list of column names",
    tuple[float, ...]: "a list of numbers",
    float | tuple[float, ...]: "a number or a list of numbers",
    tuple[tuple[float, ...], ...]: "a list of lists of numbers",
    tuple[tuple[str, float], ...]: "a list of column names, or a table of column = coefficient",
    tuple[tuple[str, tuple[str, ...]], ...]: 'a table such as { young = ["1", "2"], old = ["3"] }',
    tuple[
        tuple[str, float | None, float | None], ...
    ]: "a table such as { INCOME = { low = 0, high = 90000 } }",
    Step | Power: 'a table such as { form = "power", exponent = 1.0 }',
}


def wanted(hint: Any) -> str:
    """Say in a steward's words what a parameter of this type must be."""
    for known, words in _WORDS.items():
        if hint in (known, known | None):
            return words
    return "something else"
