"""What single commands read of a plan: `calibrate` all but its output, `attack` and its kin all but masks and input.

A whole plan for `maskwell release` serves each of them as it is. So does one with the sections that they need: every
other may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..errors import BadPlan, raise_all
from ..toml_files import check_depth, toml_of
from .mask_plan import NoisePlan, OutputPlan, strange_section
from .parser import section_of
from .release_plan import ReleasePlan, release_sections
from .sections import CalibratePlan, ModelPlan, SwapPlan, TargetsPlan, TolerancePlan

if TYPE_CHECKING:
    from ..attacks.protocol import Attack


@dataclass(frozen=True, slots=True)
class CalibrationPlan(NoisePlan):
    """A plan for `maskwell calibrate`: what is masked, what is tolerated by whom, how noise is searched."""

    sections: ClassVar[tuple[str, ...]] = ReleasePlan.sections

    tolerance: TolerancePlan = field(default_factory=TolerancePlan)
    calibrate: CalibratePlan = field(default_factory=CalibratePlan)
    intruders: tuple[tuple[str, Attack], ...] = ()
    targets: TargetsPlan = field(default_factory=TargetsPlan)
    models: tuple[ModelPlan, ...] = ()

    @classmethod
    def _parts(cls, data: Mapping[str, Any], folder: Path, problems: list[str]) -> dict[str, Any]:
        sections = release_sections(data, folder, problems)
        return NoisePlan._parts(data, folder, problems) | _fields_of(cls, sections)


@dataclass(frozen=True, slots=True)
class AttackPlan:
    """A plan for `maskwell attack`, `swap` and `card-value`: a written release, who attacks it, what is tolerated.

    `output` are the folders of the release, and the tolerance is that of the plan; nothing where it has none.
    """

    sections: ClassVar[tuple[str, ...]] = ReleasePlan.sections

    output: OutputPlan | None = None
    tolerance: TolerancePlan | None = None
    swap: SwapPlan = field(default_factory=SwapPlan)
    intruders: tuple[tuple[str, Attack], ...] = ()
    targets: TargetsPlan = field(default_factory=TargetsPlan)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read a plan from a TOML file, listing every problem at once."""
        return cls.from_dict(toml_of(path, f"the plan {str(path)!r}"), Path(path).parent)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], folder: Path = Path()) -> Self:
        """Build a plan from plain data."""
        check_depth(data, "the plan")
        problems = [strange_section(name, cls.sections) for name in data if name not in cls.sections]
        parts = _fields_of(cls, release_sections(data, folder, problems))
        if "tolerance" not in data:
            del parts["tolerance"]
        if "output" in data:
            parts["output"] = section_of(OutputPlan, data["output"], "[output]", folder, problems)
        raise_all(problems, BadPlan)
        return cls(**parts)


def _fields_of(kind: Any, sections: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections that a plan keeps."""
    names = {item.name for item in fields(kind)}
    return {name: section for name, section in sections.items() if name in names}
