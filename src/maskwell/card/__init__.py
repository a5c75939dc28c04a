"""The noise card, and the density of a release that it gives."""

from __future__ import annotations

from .background import Sides, block_numbers, joint_codes, log_background, pair_logpdf
from .noise_card import FORMAT, VERSION, NoiseCard, Swapped

__all__ = [
    "FORMAT",
    "VERSION",
    "NoiseCard",
    "Sides",
    "Swapped",
    "block_numbers",
    "joint_codes",
    "log_background",
    "pair_logpdf",
]
