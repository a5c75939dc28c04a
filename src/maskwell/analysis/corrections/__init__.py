"""Cheap cross-checks of a fit, and what noise costs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .correcting import moment_correction, regression_calibration, simex
    from .costs import Efficiency, efficiency
    from .forecasting import Forecast, forecast
    from .result import Corrected

__all__ = [
    "Corrected",
    "Efficiency",
    "Forecast",
    "efficiency",
    "forecast",
    "moment_correction",
    "regression_calibration",
    "simex",
]

_WHERE = {
    "Corrected": "result",
    "Efficiency": "costs",
    "Forecast": "forecasting",
    "efficiency": "costs",
    "forecast": "forecasting",
    "moment_correction": "correcting",
    "regression_calibration": "correcting",
    "simex": "correcting",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
