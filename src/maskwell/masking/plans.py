"""What a mask is, and the setting in which it meets the data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from ..card import NoiseCard
from ..engines import Engine
from ..engines.local import Local
from ..table import Table


@dataclass(frozen=True, slots=True)
class Setting:
    """How plans are resolved: the engine that sums, and whether the law keeps full precision (studies only)."""

    engine: Engine = field(default_factory=Local)
    exact: bool = False


class Mask(Protocol):
    """A frozen plan that holds no data and resolves to a card."""

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to absolute noise, in the units of the data."""
