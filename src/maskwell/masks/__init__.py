"""The masks: frozen plans that hold no data and resolve to a noise card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from ..errors import BadPlan, nearest
from ..laws.spread import Power, Step
from .additive import CorrelatedNoise, IndependentNoise
from .bias import BiasNoise
from .category import CodeNoise, Grouping, Pram
from .chain import Chain, Recompute
from .coding import Coding
from .exchange import RankSwap, Subsample
from .mixture import MixtureNoise

MASKS: dict[str, Any] = {
    "IndependentNoise": IndependentNoise,
    "CorrelatedNoise": CorrelatedNoise,
    "MixtureNoise": MixtureNoise,
    "BiasNoise": BiasNoise,
    "CodeNoise": CodeNoise,
    "Pram": Pram,
    "Grouping": Grouping,
    "Coding": Coding,
    "RankSwap": RankSwap,
    "Subsample": Subsample,
    "Recompute": Recompute,
    "Chain": Chain,
}


def mask_to_dict(mask: Any) -> dict[str, Any]:
    """Return a mask as plain data, defaults left out."""
    out: dict[str, Any] = {"mask": type(mask).__name__}
    for item in fields(mask):
        value = getattr(mask, item.name)
        if item.default is MISSING or value != item.default:
            out[item.name] = _plain(value)
    return out


def _plain(value: Any) -> Any:
    if isinstance(value, Step | Power):
        return value.to_dict()
    if type(value).__name__ in MASKS:
        return mask_to_dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def mask_from_dict(data: Mapping[str, Any]) -> Any:
    """Build a mask from plain data."""
    given = dict(data)
    name = given.pop("mask", None)
    if name not in MASKS:
        raise BadPlan(f"there is no mask {name!r}{nearest(str(name), MASKS)}; there are {', '.join(MASKS)}")
    return MASKS[name](**{key: _rebuilt(key, value) for key, value in given.items()})


def _rebuilt(key: str, value: Any) -> Any:
    if key == "spread" and isinstance(value, Mapping):
        from ..laws.spread import spread_from_dict

        return spread_from_dict(value)
    if key == "masks":
        return tuple(mask_from_dict(item) for item in value)
    return _frozen(value)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
