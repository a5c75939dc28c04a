"""Plan files: what to read, how to mask it, where to write; every error is listed at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..errors import BadPlan, nearest, raise_all
from ..io import FORMATS
from ..io.dialect import Dialect
from ..laws.spread import Power, Step
from ..masks import MASKS, Chain, Recompute
from ..toml_files import check_depth, toml_of
from .parser import build_dataclass, section_of, unknown

if TYPE_CHECKING:
    from ..masking import Mask
    from ..schema import Schema

KEYS = "role: key"  # as the only column of a mask: every number that has this role
OF_RELEASES = (
    *("tolerance", "calibrate", "swap", "intruders", "targets", "budget", "models"),
    *("utility", "audit", "card", "report"),
)  # sections that only `maskwell release` reads
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
    """Where to write: the public folder, the private folder, and the earlier release to nest in.

    `earlier_private` are the folders with the private halves of the earlier release and of those before it, where they
    are not in this plan's own.
    """

    release: Path
    private: Path
    format: str | None = None
    earlier: Path | None = None
    earlier_private: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        problems = _format_problems(self.format, [name for name in FORMATS if name != "sas7bdat"])
        if self.earlier_private and self.earlier is None:
            problems.append("earlier_private needs earlier too: the folder of the release it belongs to")
        raise_all(problems, BadPlan)


def _format_problems(format: str | None, known: Iterable[str]) -> list[str]:
    if format is None or format.lower() in known:
        return []
    return [f"the format {format!r} is not one of {', '.join(known)}{nearest(format, known)}"]


@dataclass(frozen=True, slots=True)
class NoisePlan:
    """What to read and how to mask it: the part of a plan that comes before any writing."""

    sections: ClassVar[tuple[str, ...]] = ("input", "output", "masks")

    input: InputPlan
    masks: tuple[Mask, ...]

    def mask(self, schema: Schema) -> Mask:
        """Return the masks as one, for a file of this schema."""
        masks = tuple(_mask_on_key_columns(mask, schema) for mask in self.masks)
        return masks[0] if len(masks) == 1 else Chain(masks)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the masks name."""
        named = [name for mask in self.masks for name in mask.columns]
        return tuple(name for name in dict.fromkeys(named) if name != KEYS)

    def masked(self, schema: Schema) -> frozenset[str]:
        """Return the columns that the masks change in a file of this schema."""
        masks = [mask for mask in self.masks if mask.columns == (KEYS,)]
        computed = [mask.column for mask in self.masks if isinstance(mask, Recompute)]
        return frozenset([*self.columns, *computed, *(_keys(schema) if masks else ())])

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a plan from a TOML file, listing every problem at once."""
        data = toml_of(path, f"the plan {str(path)!r}")
        return cls.from_dict(data, Path(path).parent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: Path = Path()) -> Self:
        """Build a plan from plain data."""
        check_depth(data, "the plan")
        problems = [strange_section(name, cls.sections) for name in data if name not in cls.sections]
        parts = cls._parts(data, folder, problems)
        raise_all(problems, BadPlan)
        return cls(**parts)

    @classmethod
    def _parts(cls, data: Mapping[str, Any], folder: Path, problems: list[str]) -> dict[str, Any]:
        source = section_of(InputPlan, data.get("input"), "[input]", folder, problems)
        return {"input": source, "masks": tuple(masks_of(data.get("masks"), problems))}


@dataclass(frozen=True, slots=True)
class MaskPlan(NoisePlan):
    """A whole plan for `maskwell mask`: also where to write."""

    output: OutputPlan

    @classmethod
    def _parts(cls, data: Mapping[str, Any], folder: Path, problems: list[str]) -> dict[str, Any]:
        source = section_of(InputPlan, data.get("input"), "[input]", folder, problems)
        target = section_of(OutputPlan, data.get("output"), "[output]", folder, problems)
        return {"input": source, "output": target, "masks": tuple(masks_of(data.get("masks"), problems))}


def strange_section(name: str, known: Iterable[str]) -> str:
    """Say what a section is that is not read here."""
    if name in OF_RELEASES:
        return f"section [{name}] is for maskwell release: run that, or leave the section out here"
    return f"unknown section [{name}]{nearest(name, known)}"


def _mask_on_key_columns(mask: Any, schema: Schema) -> Any:
    """Give a mask of all key columns their names."""
    if mask.columns != (KEYS,):
        return mask
    chosen = _keys(schema)
    if not chosen:
        raise BadPlan("no number has the role key: name the columns to mask, or give the schema roles")
    return replace(mask, columns=chosen)


def _keys(schema: Schema) -> tuple[str, ...]:
    """Return the numbers with the role key that leave: noise on what is dropped has no meaning."""
    return tuple(name for name in schema.with_role("key") if schema[name].is_number and not schema[name].drop)


def masks_of(given: Any, problems: list[str]) -> list[Any]:
    """Build the masks of a plan, at least one."""
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
    given = {
        key: _parameter_value(key, value, where, problems) for key, value in item.items() if key != "mask"
    }
    return build_dataclass(MASKS[name], given, where, problems)


def _parameter_value(key: str, value: Any, where: str, problems: list[str]) -> Any:
    """Allow the shapes that read well in TOML: one name for columns; tables for parts, groups, limits, spread."""
    if key == "columns" and isinstance(value, str):
        return (value,)
    if key == "parts" and isinstance(value, list):
        return tuple((part, 1.0) if isinstance(part, str) else _frozen_value(part) for part in value)
    if key == "spread" and isinstance(value, Mapping):
        return _spread(value, f"{where}: spread", problems)
    if key == "limits" and isinstance(value, Mapping):
        return tuple(_limit(name, ends, f"{where}: limits", problems) for name, ends in value.items())
    return _frozen_value(value)


def _frozen_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((name, _frozen_value(item)) for name, item in value.items())
    return tuple(map(_frozen_value, value)) if isinstance(value, list | tuple) else value


def _spread(given: Mapping[str, Any], where: str, problems: list[str]) -> Any:
    form = given.get("form")
    if not isinstance(form, str) or form not in _SPREADS:
        problems.append(
            f"{where} needs form = one of {', '.join(map(repr, _SPREADS))}{nearest(str(form), _SPREADS)}"
        )
        return None
    values = {key: _frozen_value(value) for key, value in given.items() if key != "form"}
    return build_dataclass(_SPREADS[form], values, where, problems)


def _limit(name: str, ends: Any, where: str, problems: list[str]) -> tuple[Any, ...]:
    if not isinstance(ends, Mapping):
        problems.append(f"{where} of {name!r} must be a table such as {{ low = 0, high = 90 }}")
        return (name, None, None)
    problems += unknown(ends, ("low", "high"), f"{where} of {name!r}")
    return (name, ends.get("low"), ends.get("high"))
