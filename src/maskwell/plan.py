"""Plan files: what to read, how to mask it, where to write; every error is listed at once."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadPlan, MaskwellError, nearest, raise_all
from .laws.spread import SPREADS, spread_from_dict
from .masks import MASKS, Chain

if TYPE_CHECKING:
    from .masking import Mask
    from .schema import Schema

_SECTIONS = ("input", "output", "masks")


@dataclass(frozen=True, slots=True, kw_only=True)
class InputPlan:
    """What to read. Without a schema one is proposed from the data; paths are relative to the plan."""

    file: Path
    schema: Path | None = None
    format: str | None = None
    encoding: str = "utf-8"
    delimiter: str | None = None
    decimal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPlan:
    """Where to write: the public folder, the private folder, and the earlier release to nest in."""

    release: Path
    private: Path
    format: str | None = None
    earlier: Path | None = None
    earlier_private: Path | None = None


@dataclass(frozen=True, slots=True)
class MaskPlan:
    """A whole plan for `maskwell mask`."""

    input: InputPlan
    output: OutputPlan
    masks: tuple[Mask, ...]

    @property
    def mask(self) -> Mask:
        """The masks as one."""
        return self.masks[0] if len(self.masks) == 1 else Chain(self.masks)

    @classmethod
    def read(cls, path: str | Path) -> MaskPlan:
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
    def from_dict(cls, data: Mapping[str, Any], folder: Path = Path()) -> MaskPlan:
        """Build a plan from plain data."""
        problems = [
            f"unknown section [{name}]{nearest(name, _SECTIONS)}" for name in data if name not in _SECTIONS
        ]
        sections = {
            name: _section(kind, data.get(name), f"[{name}]", problems)
            for name, kind in (("input", InputPlan), ("output", OutputPlan))
        }
        masks = _masks(data.get("masks"), problems)
        raise_all(problems, BadPlan)
        return cls(_placed(sections["input"], folder), _placed(sections["output"], folder), tuple(masks))


def _placed(section: Any, folder: Path) -> Any:
    """Read relative paths from where the plan lies."""
    values = {item.name: getattr(section, item.name) for item in fields(section)}
    return type(section)(**{k: folder / v if isinstance(v, Path) else v for k, v in values.items()})


def _section(kind: Any, given: Any, where: str, problems: list[str]) -> Any:
    if given is None:
        problems.append(f"the plan has no section {where}")
        return None
    return _validated(kind, given, where, problems)


def _masks(given: Any, problems: list[str]) -> list[Any]:
    if not isinstance(given, list) or not given:
        problems.append("the plan has no masks: write one [[masks]] section for each, with mask = its name")
        return []
    masks = []
    for number, item in enumerate(given, 1):
        where = f"mask {number}"
        if not isinstance(item, Mapping) or item.get("mask") not in MASKS or item.get("mask") == "Chain":
            name = item.get("mask") if isinstance(item, Mapping) else None
            known = [mask for mask in MASKS if mask != "Chain"]
            problems.append(
                f"{where}: there is no mask {name!r}{nearest(str(name), known)}; one of {', '.join(known)}"
            )
            continue
        name = item["mask"]
        rest = {key: _shaped(key, value) for key, value in item.items() if key != "mask"}
        masks.append(_validated(MASKS[name], rest, f"{where} ({name})", problems))
    return masks


def _shaped(key: str, value: Any) -> Any:
    """Allow the shapes that read well in TOML: tables for parts, groups and limits, one name for columns."""
    if key == "spread" and isinstance(value, Mapping) and value.get("form") in SPREADS:
        with suppress(KeyError, TypeError):
            return spread_from_dict(value)
    if key == "columns" and isinstance(value, str):
        return [value]
    if key == "parts" and isinstance(value, list):
        return [(part, 1.0) if isinstance(part, str) else part for part in value]
    if key in ("parts", "groups") and isinstance(value, Mapping):
        return list(value.items())
    if key == "limits" and isinstance(value, Mapping):
        return [(name, ends.get("low"), ends.get("high")) for name, ends in value.items() if isinstance(ends, Mapping)]
    return value


def _validated(kind: Any, given: Any, where: str, problems: list[str]) -> Any:
    """Check types and names of one section by pydantic, saying what is wrong in our words."""
    from pydantic import TypeAdapter, ValidationError

    known = [item.name for item in fields(kind)]
    if not isinstance(given, Mapping):
        problems.append(f"{where} must be a section")
        return None
    unknown = [f"{where}: unknown key {key!r}{nearest(key, known)}" for key in given if key not in known]
    problems += unknown
    try:
        return TypeAdapter(kind).validate_python({key: value for key, value in given.items() if key in known})
    except ValidationError as error:
        problems += _spoken(error, where)
    except MaskwellError as error:
        problems += [f"{where}: {problem}" for problem in error.problems]
    return None


def _spoken(error: Any, where: str) -> Iterator[str]:
    seen = set()
    for item in error.errors(include_url=False, include_input=False):
        name = str(item["loc"][0]) if item["loc"] else ""
        said = f"{where}: {name} {_words(item)}" if name else f"{where}: {item['msg']}"
        if name not in seen or not name:
            seen.add(name)
            yield said


_WORDS = {
    "missing": "is needed",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "path_type": "must be a path",
    "tuple_type": "must be a list",
}


def _words(item: Mapping[str, Any]) -> str:
    if len(item["loc"]) > 1 and item["type"] == "string_type":
        return "must be a list of column names"
    return _WORDS.get(item["type"], f"is wrong: {item['msg']}")


def check_columns(masks: tuple[Mask, ...], schema: Schema) -> None:
    """Refuse a plan that names columns the file does not have, all of them at once."""
    named = [name for mask in masks for name in _named(mask)]
    raise_all(schema.missing_columns(dict.fromkeys(named)), BadPlan)


def _named(mask: Any) -> Iterator[str]:
    yield from getattr(mask, "columns", ())
    yield from (name for name, _, _ in getattr(mask, "limits", ()))
    if hasattr(mask, "parts"):
        yield mask.column
        yield from (name for name, _ in mask.parts)
    for inner in getattr(mask, "masks", ()):
        yield from _named(inner)
