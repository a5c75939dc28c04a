"""Correct what is still re-identifiable: `swap` records until a tolerance holds; `kim_winkler` adds noise first."""

from __future__ import annotations

from .directed_swaps import swap
from .strategy import kim_winkler

__all__ = ["kim_winkler", "swap"]
