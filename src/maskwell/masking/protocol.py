"""What a mask is, and the setting in which it meets the data."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..engines import Engine
    from ..table import Table


def _local() -> Engine:
    from ..engines.local import Local

    return Local()


@dataclass(frozen=True, slots=True)
class Setting:
    """How plans are resolved: the engine that sums, and whether the law keeps full precision (studies only)."""

    engine: Engine = field(default_factory=_local)
    exact: bool = False


class Mask(Protocol):
    """A frozen plan that holds no data and resolves to a card."""

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to absolute noise, in the units of the data."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""


class WrittenPlan:
    """A frozen dataclass that can be written as plain data: its name and what differs from the defaults.

    `word` says what the plan is: the key under which its name is written.
    """

    __slots__ = ()
    word: ClassVar[str] = "mask"

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, defaults left out."""
        out: dict[str, Any] = {self.word: type(self).__name__}
        for item in fields(self):  # type: ignore[arg-type]
            value = getattr(self, item.name)
            if item.default is MISSING or value != item.default:
                out[item.name] = _plain(value)
        return out


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def plan_data(mask: Any) -> dict[str, Any]:
    """Return a plan as plain data, whether it is still a plan or was read back as data."""
    return mask if isinstance(mask, dict) else dict(mask.to_dict())
