"""What a mask is, and the setting in which it meets the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeGuard, runtime_checkable

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


@runtime_checkable
class Mask(Protocol):
    """A frozen plan that holds no data and resolves to a card."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns whose values it changes, as the plan names them; none where it names none (a chain, a sample)."""

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to absolute noise, in the units of the data."""

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data."""


def is_mask(plan: object) -> TypeGuard[Mask]:
    """Return whether something is a plan of a mask (and neither its class nor what has a card already)."""
    return not isinstance(plan, type) and isinstance(plan, Mask) and callable(plan.card)


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


@runtime_checkable
class Written(Protocol):
    """What of a plan knows itself how it is written."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return it as plain data."""


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value.to_dict() if isinstance(value, Written) else value


def plan_data(mask: Any) -> dict[str, Any]:
    """Return a plan as plain data, whether it is still a plan or was read back as data."""
    return mask if isinstance(mask, dict) else dict(mask.to_dict())
