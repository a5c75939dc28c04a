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
    "Step": "laws",
    "Power": "laws",
    "MaskwellError": "errors",
    "MaskwellWarning": "errors",
}
_MODULES = ("attacks", "datasets", "errors", "io", "laws", "masks", "schema", "table", "tolerances")

__all__ = [
    "ATTACKS",
    "EM",
    "MASKS",
    "Absolute",
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
    "Table",
    "__version__",
    "apply",
    "attack",
    "attacks",
    "datasets",
    "errors",
    "io",
    "laws",
    "masks",
    "read",
    "read_release",
    "schema",
    "table",
    "tolerances",
    "write",
]

if TYPE_CHECKING:
    from . import attacks, datasets, errors, io, laws, masks, schema, table, tolerances
    from .attacks import ATTACKS, EM, Absolute, Exact, Fixed, Linkage, Relative, Risk, Risks, attack
    from .card import NoiseCard
    from .errors import MaskwellError, MaskwellWarning
    from .io import read, write
    from .keystream import Key
    from .laws import Power, Step
    from .masking import Masking, Release, apply, read_release
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
