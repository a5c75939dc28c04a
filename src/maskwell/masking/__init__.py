"""Mask a table: `apply` gives a `Masking` that stays inside; only its `.release` may leave."""

from __future__ import annotations

from .applying import apply
from .plans import Mask, Plan, Setting
from .results import Masking, Release
from .stored import read_release
from .swapping import Swapping

__all__ = ["Mask", "Masking", "Plan", "Release", "Setting", "Swapping", "apply", "read_release"]
