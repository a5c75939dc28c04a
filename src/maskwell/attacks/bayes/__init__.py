"""The Bayesian intruder: what he believes about each record, by the law and by what he knows of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .belief import Belief
    from .matching_posterior.matchings import Sampling
    from .own_error.error_law import OwnError
    from .plan import BayesIntruder
    from .unknown_noise.priors import Prior
    from .value_of_card import CardValue, card_value

__all__ = ["BayesIntruder", "Belief", "CardValue", "OwnError", "Prior", "Sampling", "card_value"]

_WHERE = {
    "BayesIntruder": "plan",
    "Belief": "belief",
    "OwnError": "own_error.error_law",
    "Prior": "unknown_noise.priors",
    "Sampling": "matching_posterior.matchings",
    "CardValue": "value_of_card",
    "card_value": "value_of_card",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
