"""The intruders: frozen plans that answer without links, and `attack`, which marks their answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import BadPlan, nearest
from .agreement import Absolute, Exact, Relative, rule_from_dict
from .bayes import BayesIntruder
from .latent import EM, WEIGHTS, Fixed
from .linkage import Linkage
from .nearest import NearestRecord
from .risk import Risk, Risks
from .running import attack
from .supervised import supervised_weights
from .targets import Quantiles, Sample, choice_from_dict

__all__ = [
    "ATTACKS",
    "EM",
    "Absolute",
    "BayesIntruder",
    "Exact",
    "Fixed",
    "Linkage",
    "NearestRecord",
    "Quantiles",
    "Relative",
    "Risk",
    "Risks",
    "Sample",
    "attack",
    "attack_from_dict",
    "supervised_weights",
]

ATTACKS: dict[str, Any] = {"Linkage": Linkage, "NearestRecord": NearestRecord, "BayesIntruder": BayesIntruder}


def attack_from_dict(data: Mapping[str, Any]) -> Any:
    """Build an attack from plain data."""
    given = dict(data)
    name = given.pop("attack", None)
    if name not in ATTACKS:
        raise BadPlan(
            f"there is no attack {name!r}{nearest(str(name), ATTACKS)}; there are {', '.join(ATTACKS)}"
        )
    return ATTACKS[name](**{key: _rebuilt(value) for key, value in given.items()})


def _rebuilt(value: Any) -> Any:
    if isinstance(value, Mapping):
        if "rule" in value:
            return rule_from_dict(value)
        if "at" in value or "sample" in value:
            return choice_from_dict(value)
        if "weights" in value:
            given = {key: _rebuilt(item) for key, item in value.items() if key != "weights"}
            return WEIGHTS[value["weights"]](**given)
    return tuple(_rebuilt(item) for item in value) if isinstance(value, list) else value
