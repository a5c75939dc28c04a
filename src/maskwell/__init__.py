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
    "Fingerprint": "attacks",
    "Sample": "attacks",
    "Quantiles": "attacks",
    "EM": "attacks",
    "Fixed": "attacks",
    "Relative": "attacks",
    "Absolute": "attacks",
    "Exact": "attacks",
    "Risk": "attacks",
    "Risks": "attacks",
    "HIndex": "attacks",
    "MaxRate": "tolerances",
    "Ratio": "tolerances",
    "ExpectedH": "tolerances",
    "ProbH": "tolerances",
    "SwapShare": "tolerances",
    "swap": "protect",
    "kim_winkler": "protect",
    "supervised_weights": "attacks",
    "calibrate": "calibration",
    "expected_risk": "calibration",
    "frontier": "calibration",
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
    "ExpectedH",
    "Fingerprint",
    "Fixed",
    "Grouping",
    "HIndex",
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
    "ProbH",
    "Quantiles",
    "RankSwap",
    "Ratio",
    "Recompute",
    "Relative",
    "Release",
    "Risk",
    "Risks",
    "Sample",
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
    "calibrate",
    "calibration",
    "critical_noise",
    "datasets",
    "errors",
    "expected_risk",
    "frontier",
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
        Fingerprint,
        Fixed,
        HIndex,
        Linkage,
        NearestRecord,
        Quantiles,
        Relative,
        Risk,
        Risks,
        Sample,
        attack,
        supervised_weights,
    )
    from .calibration import (
        agreement_curve,
        calibrate,
        critical_noise,
        expected_risk,
        frontier,
        relaxed_code,
    )
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
    from .tolerances import ExpectedH, MaxRate, ProbH, Ratio, SwapShare


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'maskwell' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
