"""Logarithms of columns whose noise was added on the scale of log(x + shift): which one a formula can have.

The shift is there because true values can be 0 or below. Of these log(x) is no number, whatever the noise, while
log(x + shift) is the very scale of the noise: the model of it is exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..card import NoiseCard
from .noise.card_columns import state_scale
from .system import Variable

_LOGARITHM = re.compile(r"\b(log|log1p|log2|log10)\(\s*(`[^`]+`|[A-Za-z][A-Za-z0-9_.]*)\s*\)")


def written_log(name: str, shift: float) -> str:
    """Return the logarithm on whose scale a column's noise was added, as a formula writes it."""
    quoted = name if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.]*", name) else f"`{name}`"
    amount = f"{abs(shift):.10f}".rstrip("0").rstrip(".")
    return f"log({quoted})" if not shift else f"log({quoted} {'+' if shift > 0 else '-'} {amount})"


def log_remedy(variables: Iterable[Variable]) -> str:
    """Say which logarithm to write of columns with noise on another one; nothing where there is none."""
    shifted = [written_log(one.name, one.log_shift) for one in variables if one.log_shift]
    if not shifted:
        return ""
    return f"write {', '.join(shifted)}, to which the noise was added because true values can be too small for log(x)"


def on_noise_scale(formula: str, card: NoiseCard) -> str:
    """Return a formula with the logarithms of noised columns on the scale of their noise."""

    def rewritten(found: re.Match[str]) -> str:
        name = found[2].strip("`")
        shift = state_scale(card, name)
        return found[0] if not shift else written_log(name, shift)

    return _LOGARITHM.sub(rewritten, formula)
