"""The Bayesian intruder: what he believes about each record, by the law and by what he knows of it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .advice import Telling, telling
    from .belief import Belief
    from .helped.matchings import Sampling
    from .plan import BayesIntruder
    from .roughly.erring import OwnError
    from .untold.priors import Prior

__all__ = ["BayesIntruder", "Belief", "OwnError", "Prior", "Sampling", "Telling", "telling"]

_WHERE = {
    "BayesIntruder": "plan",
    "Belief": "belief",
    "OwnError": "roughly.erring",
    "Prior": "untold.priors",
    "Sampling": "helped.matchings",
    "Telling": "advice",
    "telling": "advice",
}


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(import_module(f".{_WHERE[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
