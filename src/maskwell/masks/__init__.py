"""The masks: frozen plans that hold no data and resolve to a noise card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import BadPlan, nearest
from ..laws.spread import spread_from_dict
from ..masking.protocol import Mask
from .additive import CorrelatedNoise, IndependentNoise
from .bias import BiasNoise
from .category import CodeNoise, Grouping, Pram
from .chain import Chain, Recompute
from .exchange import RankSwap, Subsample
from .mixture import MixtureNoise
from .top_codes import Coding

__all__ = [
    "MASKS",
    "BiasNoise",
    "Chain",
    "CodeNoise",
    "Coding",
    "CorrelatedNoise",
    "Grouping",
    "IndependentNoise",
    "MixtureNoise",
    "Pram",
    "RankSwap",
    "Recompute",
    "Subsample",
    "mask_from_dict",
]

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


def mask_from_dict(data: Mapping[str, Any]) -> Mask:
    """Build a mask from plain data."""
    given = dict(data)
    name = given.pop("mask", None)
    if name not in MASKS:
        raise BadPlan(f"there is no mask {name!r}{nearest(str(name), MASKS)}; there are {', '.join(MASKS)}")
    mask: Mask = MASKS[name](**{key: _rebuilt(key, value) for key, value in given.items()})
    return mask


def _rebuilt(key: str, value: Any) -> Any:
    if key == "spread" and isinstance(value, Mapping):
        return spread_from_dict(value)
    if key == "masks":
        return tuple(mask_from_dict(item) for item in value)
    return _frozen(value)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
