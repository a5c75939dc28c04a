"""The analyst's side: models fitted to a noisy release that give the answers of the original."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .corrections import (
        Corrected,
        Efficiency,
        Forecast,
        efficiency,
        forecast,
        moment_correction,
        regression_calibration,
        simex,
    )
    from .model_fit import FitOptions, fit
    from .priors import Priors
    from .results.posterior import Posterior

__all__ = [
    "Corrected",
    "Efficiency",
    "FitOptions",
    "Forecast",
    "Posterior",
    "Priors",
    "efficiency",
    "fit",
    "forecast",
    "moment_correction",
    "regression_calibration",
    "simex",
]

_WHERE = {"FitOptions": "model_fit", "Posterior": "results.posterior", "Priors": "priors", "fit": "model_fit"}


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f".{_WHERE.get(name, 'corrections')}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
