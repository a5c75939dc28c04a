"""Cheap cross-checks of a fit, and what noise costs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cross_checks import moment_correction, regression_calibration, simex
    from .efficiency_index import Efficiency, efficiency
    from .interval_forecast import Forecast, forecast
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
    "Efficiency": "efficiency_index",
    "Forecast": "interval_forecast",
    "efficiency": "efficiency_index",
    "forecast": "interval_forecast",
    "moment_correction": "cross_checks",
    "regression_calibration": "cross_checks",
    "simex": "cross_checks",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
