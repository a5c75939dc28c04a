"""What a release still tells: its figures beside those of the truth, raw and corrected by the card, in words too."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .comparison import compare
    from .models import Model, ModelUtility
    from .results import (
        AssociationUtility,
        ColumnUtility,
        CorrelationUtility,
        GroupUtility,
        Propensity,
        Utility,
    )
    from .verdicts import Judgement

__all__ = [
    "AssociationUtility",
    "ColumnUtility",
    "CorrelationUtility",
    "GroupUtility",
    "Judgement",
    "Model",
    "ModelUtility",
    "Propensity",
    "Utility",
    "compare",
]

_WHERE = {"Judgement": "verdicts", "Model": "models", "ModelUtility": "models", "compare": "comparison"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f".{_WHERE.get(name, 'results')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
