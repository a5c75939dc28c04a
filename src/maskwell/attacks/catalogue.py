"""The intruders by their names, and plans read back from plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from ..errors import BadPlan, nearest, raise_all
from .agreement import rule_from_dict
from .bayes import BayesIntruder
from .fingerprint import Fingerprint
from .linkage.em import WEIGHTS
from .linkage.plan import Linkage
from .nearest.plan import NearestRecord
from .protocol import Attack
from .targets import choice_from_dict

ATTACKS: dict[str, Any] = {
    "Linkage": Linkage,
    "NearestRecord": NearestRecord,
    "BayesIntruder": BayesIntruder,
    "Fingerprint": Fingerprint,
}


def _prior(data: Mapping[str, Any]) -> Any:
    from .bayes.unknown_noise.priors import prior_from_dict

    return prior_from_dict(data)


def _error(data: Mapping[str, Any]) -> Any:
    from .bayes.own_error.error_law import error_from_dict

    return error_from_dict(data)


def _read_sampling(data: Mapping[str, Any]) -> Any:
    from .bayes.matching_posterior.matchings import sampling_from_dict

    return sampling_from_dict(data)


_PARTS = {"targets": choice_from_dict, "prior": _prior, "error": _error, "sampling": _read_sampling}


def attack_from_dict(data: Mapping[str, Any]) -> Attack:
    """Build an attack from plain data."""
    given = dict(data)
    name = given.pop("attack", None)
    if name not in ATTACKS:
        raise BadPlan(
            f"there is no attack {name!r}{nearest(str(name), ATTACKS)}; there are {', '.join(ATTACKS)}"
        )
    options = [item.name for item in fields(ATTACKS[name])]
    strange = [f"{name} has no option {key!r}{nearest(key, options)}" for key in given if key not in options]
    raise_all(strange, BadPlan)
    plan: Attack = ATTACKS[name](**{key: _option(key, value) for key, value in given.items()})
    return plan


def _option(name: str, value: Any) -> Any:
    if isinstance(value, Mapping) and name in _PARTS:
        return _PARTS[name](value)
    return _rebuilt(value)


def _rebuilt(value: Any) -> Any:
    """Build rules and weights from plain data, wherever they stand; lists become tuples."""
    if isinstance(value, Mapping):
        if isinstance(value.get("rule"), str):
            return rule_from_dict(value)
        if isinstance(value.get("weights"), str):
            return _weights(value)
        return {key: _rebuilt(item) for key, item in value.items()}
    return tuple(_rebuilt(item) for item in value) if isinstance(value, list) else value


def _weights(value: Mapping[str, Any]) -> Any:
    given = {key: _rebuilt(item) for key, item in value.items() if key != "weights"}
    if value["weights"] not in WEIGHTS:
        raise BadPlan(f"there are no weights {value['weights']!r}; there are {', '.join(WEIGHTS)}")
    return WEIGHTS[value["weights"]](**given)
