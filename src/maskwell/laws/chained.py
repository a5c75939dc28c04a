"""Noise added in stages: each stage draws its own words, and readers see the one law of their sum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..keystream import Stream
from ..schema import Column
from .additive import Additive
from .discrete import Transition
from .noise import Floats, Normal
from .outlet import Outlet


@dataclass(frozen=True, slots=True)
class Chained:
    """Stages drawn one after the other under labels of their own; `combined` is the law of the result."""

    form: ClassVar[str] = "chained"
    has_density: ClassVar[bool] = True
    whole_file: ClassVar[bool] = False
    opens_codes: ClassVar[bool] = False
    stages: tuple[tuple[str, Additive | Transition], ...]
    combined: Additive | Transition

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the law speaks of."""
        return self.combined.columns

    def draw(self, x: Floats, stream: Stream) -> Floats:
        """Draw every stage; amounts are clamped and rounded once, at the end."""
        if isinstance(self.combined, Transition):
            z = x
            for label, law in self.stages:
                z = law.draw(z, stream.staged(label + stream.stage))
            return z
        noise = np.zeros(x.shape, order="F")
        for label, law in self.stages:
            assert isinstance(law, Additive)
            noise += law.scaled_noise(x, stream.staged(label + stream.stage))
        return self.combined.leave(self.combined.place(x, noise), x)

    def logpdf(self, z: Floats, x: Floats) -> Floats:
        """Return the log density under the combined law."""
        return self.combined.logpdf(z, x)

    def logpdf_with_error(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density under the combined law and the error of its rectangle."""
        return self.combined.logpdf_with_error(z, x)

    def released(self, column: Column) -> Column:
        """Describe the released column."""
        return self.combined.released(column)

    @property
    def outlets(self) -> tuple[Outlet, ...]:
        """How the columns leave, at the end of the chain."""
        assert isinstance(self.combined, Additive)
        return self.combined.outlets

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain data."""
        stages = [{"label": label, "law": law.to_dict()} for label, law in self.stages]
        return {
            "form": self.form,
            "columns": list(self.columns),
            "combined": self.combined.to_dict(),
            "stages": stages,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chained:
        """Build the law from plain data."""
        kinds: dict[str, Any] = {"additive": Additive, "transition": Transition}
        stages = tuple(
            (stage["label"], kinds[stage["law"]["form"]].from_dict(stage["law"])) for stage in data["stages"]
        )
        return cls(stages, kinds[data["combined"]["form"]].from_dict(data["combined"]))


def stages_of(law: Any) -> tuple[tuple[str, Additive | Transition], ...]:
    """Return the stages of a law: its own, or itself as the first."""
    return law.stages if isinstance(law, Chained) else (("0", law),)


def combined_of(law: Any) -> Any:
    """Return the law that readers see."""
    return law.combined if isinstance(law, Chained) else law


def follow(first: Any, later: Any) -> Any:
    """Return the law of one mask followed by another, or nothing where it has no closed form."""
    before = combined_of(first)
    if isinstance(before, Additive) and isinstance(later, Additive):
        if _is_silent(later):
            return _recoded(first, later)
        before, later = widened(before, later.columns), widened(later, before.columns)
    if not isinstance(before, Additive | Transition) or type(before) is not type(later):
        return None
    combined: Additive | Transition | None = before.then(later)
    if combined is None:
        return None
    stages = tuple((label, _widened_stage(law, combined)) for label, law in stages_of(first))
    return Chained((*stages, (str(len(stages)), later)), combined)


def _is_silent(law: Additive) -> bool:
    return isinstance(law.noise, Normal) and not any(law.noise.sds)


def _recoded(first: Any, later: Additive) -> Any | None:
    """Put the codes of a mask without noise on a law that has noise."""
    before = combined_of(first)
    if not set(later.columns) <= set(before.columns):
        return None
    outlets = list(before.outlets)
    for name, outlet in zip(later.columns, later.outlets, strict=True):
        j = before.columns.index(name)
        outlets[j] = replace(outlet, unit=outlets[j].unit, log_shift=outlets[j].log_shift)
    combined = replace(before, outlets=tuple(outlets))
    return replace(first, combined=combined) if isinstance(first, Chained) else combined


def widened(law: Additive, columns: tuple[str, ...]) -> Additive | None:
    """Extend a law to further columns, which it leaves alone; only normal noise can be extended."""
    extra = tuple(name for name in columns if name not in law.columns)
    ordered = tuple(sorted((*law.columns, *extra)))
    if not extra and law.columns == columns:
        return law
    if not isinstance(law.noise, Normal) or any(law.spreads) or law.categories:
        return None
    position = {name: i for i, name in enumerate((*law.columns, *extra))}
    covariance = np.zeros((len(ordered), len(ordered)))
    covariance[: len(law.columns), : len(law.columns)] = law.noise.covariance
    order = [position[name] for name in ordered]
    from .convolution import normal_from_covariance

    outlets = (*law.outlets, *(Outlet() for _ in extra))
    offsets = (*(law.offsets or (0.0,) * len(law.columns)), *(0.0 for _ in extra))
    return replace(
        law,
        columns=ordered,
        noise=normal_from_covariance(covariance[np.ix_(order, order)]),
        outlets=tuple(outlets[i] for i in order),
        offsets=tuple(offsets[i] for i in order) if law.offsets else (),
    )


def _widened_stage(law: Additive | Transition, combined: Additive | Transition) -> Additive | Transition:
    if isinstance(law, Additive) and law.columns != combined.columns:
        wide = widened(law, combined.columns)
        assert wide is not None
        return wide
    return law
