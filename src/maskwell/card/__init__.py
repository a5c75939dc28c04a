"""The noise card, and the density of a release that it gives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .noise_card import FORMAT, INCREMENT, VERSION, NoiseCard, SwapParameters, sure_digits
    from .release_density import RecordPair, block_numbers, joint_codes, log_background, pair_logpdf

__all__ = [
    "FORMAT",
    "INCREMENT",
    "VERSION",
    "NoiseCard",
    "RecordPair",
    "SwapParameters",
    "block_numbers",
    "joint_codes",
    "log_background",
    "pair_logpdf",
    "sure_digits",
]

_ON_THE_CARD = ("FORMAT", "INCREMENT", "VERSION", "NoiseCard", "SwapParameters", "sure_digits")


def __getattr__(name: str) -> Any:
    if name in __all__:
        where = "noise_card" if name in _ON_THE_CARD else "release_density"
        return getattr(import_module(f".{where}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
