"""The intruders: frozen plans that answer without links, and `attack`, which marks their answers."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agreement import Absolute, Exact, Relative
    from .attack_run import attack
    from .bayes import BayesIntruder, Belief, CardValue, OwnError, Prior, Sampling, card_value
    from .catalogue import ATTACKS, attack_from_dict
    from .fingerprint import Fingerprint, floor_of
    from .linkage.em import EM, Fixed
    from .linkage.plan import Linkage
    from .linkage.supervised_weights import supervised_weights
    from .nearest.h_index import HIndex
    from .nearest.plan import NearestRecord
    from .risk import Risk, Risks
    from .targets import Quantiles, Sample

__all__ = [
    "ATTACKS",
    "EM",
    "Absolute",
    "BayesIntruder",
    "Belief",
    "CardValue",
    "Exact",
    "Fingerprint",
    "Fixed",
    "HIndex",
    "Linkage",
    "NearestRecord",
    "OwnError",
    "Prior",
    "Quantiles",
    "Relative",
    "Risk",
    "Risks",
    "Sample",
    "Sampling",
    "attack",
    "attack_from_dict",
    "card_value",
    "floor_of",
    "supervised_weights",
]

_WHERE = {
    "ATTACKS": "catalogue",
    "EM": "linkage.em",
    "Absolute": "agreement",
    "BayesIntruder": "bayes",
    "Belief": "bayes",
    "OwnError": "bayes",
    "Prior": "bayes",
    "Sampling": "bayes",
    "CardValue": "bayes",
    "card_value": "bayes",
    "Exact": "agreement",
    "Fingerprint": "fingerprint",
    "Fixed": "linkage.em",
    "HIndex": "nearest.h_index",
    "Linkage": "linkage.plan",
    "NearestRecord": "nearest.plan",
    "Quantiles": "targets",
    "Relative": "agreement",
    "Risk": "risk",
    "Risks": "risk",
    "Sample": "targets",
    "attack": "attack_run",
    "attack_from_dict": "catalogue",
    "floor_of": "fingerprint",
    "supervised_weights": "linkage.supervised_weights",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
