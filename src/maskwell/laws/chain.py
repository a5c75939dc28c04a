"""Noise added in stages: each stage draws its own words, and readers see the one law of their sum.

e = e1 + e2 has the convolution of both laws (`convolution`); codes after noise become codes of the outlet; a table
after a table is their product. A chain whose law has none of these closed forms is refused. Made by `masks.Chain`. Own
derivation: the stages are independent given the true value, since they share no random words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..keys import Stream
from ..schema import Column
from .additive import Additive, SkewedBias
from .convolution import extend_noise
from .discrete import Transition
from .noise import Floats, Normal
from .transform import Outlet, beyond


@dataclass(frozen=True, slots=True)
class ChainedLaw:
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
    def from_dict(cls, data: Mapping[str, Any]) -> ChainedLaw:
        """Build the law from plain data."""
        kinds: dict[str, Any] = {"additive": Additive, "transition": Transition}
        stages = tuple(
            (stage["label"], kinds[stage["law"]["form"]].from_dict(stage["law"])) for stage in data["stages"]
        )
        return cls(stages, kinds[data["combined"]["form"]].from_dict(data["combined"]))


def stages_of(law: Any) -> tuple[tuple[str, Additive | Transition], ...]:
    """Return the stages of a law: its own, or itself as the first."""
    return law.stages if isinstance(law, ChainedLaw) else (("0", law),)


def combined_of(law: Any) -> Any:
    """Return the law that readers see."""
    return law.combined if isinstance(law, ChainedLaw) else law


def follow(first: Any, later: Any) -> Any:
    """Return the law of one mask followed by another, or nothing where it has no closed form."""
    before = combined_of(first)
    if isinstance(later, Additive) and _is_silent(later):
        return _recode_law(first, later) if isinstance(before, Additive | SkewedBias) else None
    if isinstance(before, Additive) and isinstance(later, Additive):
        return _add_noises(first, later)
    if isinstance(before, Transition) and isinstance(later, Transition):
        combined = before.then(later)
        stages = stages_of(first)
        return None if combined is None else ChainedLaw((*stages, (str(len(stages)), later)), combined)
    return None


def only_rounds(law: Any) -> bool:
    """Whether a law has neither noise nor codes: it puts values on their unit and no more."""
    seen = combined_of(law)
    if not isinstance(seen, Additive) or not _is_silent(seen):
        return False
    return not any(outlet.low_coded or outlet.high_coded for outlet in seen.outlets)


def _is_silent(law: Additive) -> bool:
    return isinstance(law.noise, Normal) and not any(law.noise.sds)


def _recode_law(first: Any, later: Additive) -> Any | None:
    """Put the codes of a mask without noise on a law that has noise."""
    before = combined_of(first)
    if not set(later.columns) <= set(before.columns):
        return None
    outlets = list(before.outlets)
    for name, outlet in zip(later.columns, later.outlets, strict=True):
        j = before.columns.index(name)
        outlets[j] = _code_outlet(outlets[j], *outlet.codes)
    combined = replace(before, outlets=tuple(outlets))
    return replace(first, combined=combined) if isinstance(first, ChainedLaw) else combined


def _code_outlet(outlet: Outlet, bottom: float | None, top: float | None) -> Outlet:
    """Code what the noise carries over an edge. A clamp just inside gives way; one further inside remains."""
    if top is not None and (outlet.high is None or outlet.high >= _last_before(top, -1, outlet)):
        outlet = replace(outlet, high=top, high_coded=True)
    if bottom is not None and (outlet.low is None or outlet.low <= _last_before(bottom, 1, outlet)):
        outlet = replace(outlet, low=bottom, low_coded=True)
    return outlet


def _last_before(code: float, direction: int, outlet: Outlet) -> float:
    return code if outlet.unit is None else beyond(code, direction, outlet.unit, outlet.avoid)


def _add_noises(first: Any, later: Additive) -> ChainedLaw | None:
    """Add the noises of two laws, on the columns of both."""
    before: Additive = combined_of(first)
    columns = (*before.columns, *(name for name in later.columns if name not in before.columns))
    ways_out = dict(zip(before.columns, before.outlets, strict=True))
    for name, outlet in zip(later.columns, later.outlets, strict=True):
        if name in ways_out and ways_out[name].log_shift != outlet.log_shift:
            return None
        ways_out[name] = outlet
    stages: list[tuple[str, Any]] = [*stages_of(first), (str(len(stages_of(first))), later)]
    stages = [(label, widen_law(law, columns)) for label, law in stages]
    whole = widen_law(before, columns)
    if whole is None or any(law is None for _, law in stages):
        return None
    combined = whole.then(stages[-1][1])
    if combined is None:
        return None
    return ChainedLaw(tuple(stages), replace(combined, outlets=tuple(ways_out[name] for name in columns)))


def widen_law(law: Additive, columns: tuple[str, ...]) -> Additive | None:
    """Put a law's columns in another order among further ones, which it leaves alone, where its noise allows it."""
    if law.columns == columns:
        return law
    extra = [name for name in columns if name not in law.columns]
    noise = extend_noise(law.noise, len(extra))
    if noise is None or law.categories:
        return None
    order = [(*law.columns, *extra).index(name) for name in columns]
    outlets = (*law.outlets, *(Outlet() for _ in extra))
    offsets = (*law.offsets, *(0.0 for _ in extra))
    spreads = (*law.spreads, *(None for _ in extra))
    return replace(
        law,
        columns=columns,
        noise=noise.only(order),
        outlets=tuple(outlets[i] for i in order),
        offsets=tuple(offsets[i] for i in order) if law.offsets else (),
        spreads=tuple(spreads[i] for i in order) if law.spreads else (),
    )
