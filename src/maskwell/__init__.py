"""maskwell: release confidential microdata by noise, and analyse what was released."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

_WHERE = {
    "Schema": "schema",
    "Column": "schema",
    "Table": "table",
    "read": "io",
    "write": "io",
    "Key": "keystream",
    "NoiseCard": "card",
    "apply": "masking",
    "Masking": "masking",
    "Release": "masking",
    "read_release": "masking",
    "MASKS": "masks",
    "IndependentNoise": "masks",
    "CorrelatedNoise": "masks",
    "MixtureNoise": "masks",
    "BiasNoise": "masks",
    "CodeNoise": "masks",
    "Pram": "masks",
    "Grouping": "masks",
    "Coding": "masks",
    "RankSwap": "masks",
    "Subsample": "masks",
    "Recompute": "masks",
    "Chain": "masks",
    "attack": "attacks",
    "ATTACKS": "attacks",
    "Linkage": "attacks",
    "NearestRecord": "attacks",
    "BayesIntruder": "attacks",
    "EM": "attacks",
    "Fixed": "attacks",
    "Relative": "attacks",
    "Absolute": "attacks",
    "Exact": "attacks",
    "Risk": "attacks",
    "Risks": "attacks",
    "MaxRate": "tolerances",
    "Ratio": "tolerances",
    "SwapShare": "tolerances",
    "swap": "protect",
    "kim_winkler": "protect",
    "supervised_weights": "attacks",
    "critical_noise": "calibration",
    "agreement_curve": "calibration",
    "relaxed_code": "calibration",
    "Swapping": "masking",
    "Step": "laws",
    "Power": "laws",
    "MaskwellError": "errors",
    "MaskwellWarning": "errors",
}
_MODULES = (
    "attacks",
    "calibration",
    "datasets",
    "errors",
    "io",
    "laws",
    "masks",
    "schema",
    "table",
    "tolerances",
)

__all__ = [
    "ATTACKS",
    "EM",
    "MASKS",
    "Absolute",
    "BayesIntruder",
    "BiasNoise",
    "Chain",
    "CodeNoise",
    "Coding",
    "Column",
    "CorrelatedNoise",
    "Exact",
    "Fixed",
    "Grouping",
    "IndependentNoise",
    "Key",
    "Linkage",
    "Masking",
    "MaskwellError",
    "MaskwellWarning",
    "MaxRate",
    "MixtureNoise",
    "NearestRecord",
    "NoiseCard",
    "Power",
    "Pram",
    "RankSwap",
    "Ratio",
    "Recompute",
    "Relative",
    "Release",
    "Risk",
    "Risks",
    "Schema",
    "Step",
    "Subsample",
    "SwapShare",
    "Swapping",
    "Table",
    "__version__",
    "agreement_curve",
    "apply",
    "attack",
    "attacks",
    "calibration",
    "critical_noise",
    "datasets",
    "errors",
    "io",
    "kim_winkler",
    "laws",
    "masks",
    "read",
    "read_release",
    "relaxed_code",
    "schema",
    "supervised_weights",
    "swap",
    "table",
    "tolerances",
    "write",
]

if TYPE_CHECKING:
    from . import attacks, calibration, datasets, errors, io, laws, masks, schema, table, tolerances
    from .attacks import (
        ATTACKS,
        EM,
        Absolute,
        BayesIntruder,
        Exact,
        Fixed,
        Linkage,
        NearestRecord,
        Relative,
        Risk,
        Risks,
        attack,
        supervised_weights,
    )
    from .calibration import agreement_curve, critical_noise, relaxed_code
    from .card import NoiseCard
    from .errors import MaskwellError, MaskwellWarning
    from .io import read, write
    from .keystream import Key
    from .laws import Power, Step
    from .masking import Masking, Release, Swapping, apply, read_release
    from .masks import (
        MASKS,
        BiasNoise,
        Chain,
        CodeNoise,
        Coding,
        CorrelatedNoise,
        Grouping,
        IndependentNoise,
        MixtureNoise,
        Pram,
        RankSwap,
        Recompute,
        Subsample,
    )
    from .protect import kim_winkler, swap
    from .schema import Column, Schema
    from .table import Table
    from .tolerances import MaxRate, Ratio, SwapShare


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'maskwell' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
