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
    "Key": "keys",
    "NoiseCard": "card",
    "apply": "masking",
    "Masking": "masking",
    "Release": "masking",
    "read_release": "masking",
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
    "Linkage": "attacks",
    "NearestRecord": "attacks",
    "BayesIntruder": "attacks",
    "Fingerprint": "attacks",
    "Risk": "attacks",
    "Risks": "attacks",
    "MaxRate": "tolerances",
    "Ratio": "tolerances",
    "ExpectedH": "tolerances",
    "ProbH": "tolerances",
    "swap": "protect",
    "calibrate": "calibration",
    "frontier": "calibration",
    "Posterior": "analysis",
    "fit": "analysis",
    "compare": "utility",
    "Utility": "utility",
    "audit": "checks",
    "Audit": "checks",
    "ReleasePlan": "plan",
    "release": "release_job",
    "Outcome": "pipeline",
    "seal": "sealing",
    "unseal": "sealing",
    "MaskwellError": "errors",
    "MaskwellWarning": "errors",
}
_MODULES = (
    "analysis",
    "attacks",
    "calibration",
    "checks",
    "datasets",
    "errors",
    "io",
    "laws",
    "masking",
    "masks",
    "protect",
    "report",
    "schema",
    "table",
    "tolerances",
    "utility",
)

__all__ = [
    "Audit",
    "BayesIntruder",
    "BiasNoise",
    "Chain",
    "CodeNoise",
    "Coding",
    "Column",
    "CorrelatedNoise",
    "ExpectedH",
    "Fingerprint",
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
    "Outcome",
    "Posterior",
    "Pram",
    "ProbH",
    "RankSwap",
    "Ratio",
    "Recompute",
    "Release",
    "ReleasePlan",
    "Risk",
    "Risks",
    "Schema",
    "Subsample",
    "Table",
    "Utility",
    "__version__",
    "analysis",
    "apply",
    "attack",
    "attacks",
    "audit",
    "calibrate",
    "calibration",
    "checks",
    "compare",
    "datasets",
    "errors",
    "fit",
    "frontier",
    "io",
    "laws",
    "masking",
    "masks",
    "protect",
    "read",
    "read_release",
    "release",
    "report",
    "schema",
    "seal",
    "swap",
    "table",
    "tolerances",
    "unseal",
    "utility",
    "write",
]

if TYPE_CHECKING:
    from . import (
        analysis,
        attacks,
        calibration,
        checks,
        datasets,
        errors,
        io,
        laws,
        masking,
        masks,
        protect,
        report,
        schema,
        table,
        tolerances,
        utility,
    )
    from .analysis import (
        Posterior,
        fit,
    )
    from .attacks import (
        BayesIntruder,
        Fingerprint,
        Linkage,
        NearestRecord,
        Risk,
        Risks,
        attack,
    )
    from .calibration import (
        calibrate,
        frontier,
    )
    from .card import NoiseCard
    from .checks import Audit, audit
    from .errors import MaskwellError, MaskwellWarning
    from .io import read, write
    from .keys import Key
    from .masking import Masking, Release, apply, read_release
    from .masks import (
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
    from .pipeline import Outcome
    from .plan import ReleasePlan
    from .protect import swap
    from .release_job import release
    from .schema import Column, Schema
    from .sealing import seal, unseal
    from .table import Table
    from .tolerances import ExpectedH, MaxRate, ProbH, Ratio
    from .utility import Utility, compare


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module 'maskwell' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
