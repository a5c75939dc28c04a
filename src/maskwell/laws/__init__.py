"""The law p(z | x) of a released value given the true one: written once, drawn, inverted and conditioned on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from ..keys import Stream
from ..schema import Column
from .additive import Additive, SkewedBias
from .chain import ChainedLaw
from .discrete import Classes, RankSwapped, Transition
from .mixture import JointMixture, Mixture, RotatedMixture
from .noise import Floats, Laplace, Noise, Normal
from .spread import Multiplicative, Power, Spread, Step
from .transform import Outlet

__all__ = [
    "LAWS",
    "Additive",
    "ChainedLaw",
    "Classes",
    "JointMixture",
    "Laplace",
    "Law",
    "Mixture",
    "Multiplicative",
    "Noise",
    "Normal",
    "Outlet",
    "Power",
    "RankSwapped",
    "RotatedMixture",
    "SkewedBias",
    "Spread",
    "Step",
    "Transition",
    "law_from_dict",
]


class Law(Protocol):
    """What every entry of `LAWS` offers, and all that is asked of one before it is known which it is.

    `form` is its name. `has_density`: it has `logpdf(z, x)` and `logpdf_with_error(z, x)` beside `draw`, without
    which nobody inverts it or conditions on it. `whole_file`: what a record gets depends on the other records.
    `opens_codes`: values that were coded leave as others do.
    """

    form: ClassVar[str]
    has_density: ClassVar[bool]
    whole_file: ClassVar[bool]
    opens_codes: ClassVar[bool]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns the law speaks of."""

    @property
    def outlets(self) -> tuple[Outlet, ...]:
        """How the noised numbers of each column leave; none where no number is noised."""

    def draw(self, x: Floats, stream: Stream) -> Floats:
        """Draw released values for true ones."""

    def released(self, column: Column) -> Column:
        """Describe a column as it leaves."""

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain data."""


LAWS: dict[str, Any] = {
    law.form: law for law in (Additive, SkewedBias, Transition, Classes, RankSwapped, ChainedLaw)
}


def law_from_dict(data: Mapping[str, Any]) -> Law:
    """Build a law from plain data."""
    law: Law = LAWS[data["form"]].from_dict(data)
    return law
