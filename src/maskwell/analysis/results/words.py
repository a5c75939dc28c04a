"""What a fit says of itself in words, and how its figures are written."""

from __future__ import annotations

from math import ceil, floor, isfinite, isinf, isnan, log10
from textwrap import wrap
from typing import TYPE_CHECKING

from ...notes import Note

if TYPE_CHECKING:
    from .draws import Draws
    from .summary import Diagnostics

WIDTH = 100
NICE = (1, 2, 5, 10)  # draws are asked for in such round numbers
MOST_DRAWS = 1_000_000
FAR_APART = 1.05  # R-hat from which on the figures of a fit mean nothing
HARDLY_APART = 1.015  # R-hat up to which they differ in digits that no one reads


def decimals_for(sd: float) -> int:
    """Return after how many decimals figures of this sd say nothing: three digits of the sd are written."""
    if not isfinite(sd) or sd <= 0:
        return 4
    return min(max(0, 2 - floor(log10(sd))), 12)


def figure(value: float, decimals: int) -> str:
    """Write a figure; a dash where it is not known, `inf` where it has no end."""
    if isnan(value):
        return "-"
    if isinf(value):
        return "inf" if value > 0 else "-inf"
    return f"{round(value, decimals) + 0.0:,.{decimals}f}" if abs(value) < 1e12 else f"{value:.3e}"


def percent(share: float) -> str:
    """Write a share with its sign, in percent."""
    return "-" if isnan(share) else f"{round(share, 2) + 0.0:+.0%}"


def wrapped_note(text: str, mark: str = "- ") -> list[str]:
    """Break a sentence into lines below a mark."""
    return wrap(text, WIDTH, initial_indent=f"  {mark}", subsequent_indent="    ")


def trouble(draws: Draws, found: Diagnostics) -> Note | None:
    """Say which parameter the chains know least and what helps; nothing where they have converged."""
    from .draws import FASTER, MAX_R_HAT, MIN_ESS

    if not found.failing:
        return None
    worst, now = found.failing[0], int(draws.values.shape[1])
    name, r_hat = draws.names[worst], float(found.r_hat[worst])
    others = len(found.failing) - 1
    if isinf(r_hat) and _moves(draws, worst):
        return Note("analysis.short_chains", {"draws": now})
    if isinf(r_hat):
        return Note("analysis.stillness", {"name": name, "others": others})
    figures = {
        "name": name,
        "ess": float(min(found.ess[worst], found.ess_tail[worst])),
        "others": others,
        "draws": now,
        "enough": _sufficient_draws(now, found),
        "faster": draws.info.get(FASTER, ""),
    }
    if r_hat < MAX_R_HAT:
        return Note("analysis.few_effective_draws", {**figures, "least": MIN_ESS})
    return Note(_disagreement(r_hat, found), {**figures, "r_hat": r_hat, "most": MAX_R_HAT})


def _disagreement(r_hat: float, found: Diagnostics) -> str:
    """Return the code of chains that differ, by how much that matters."""
    if r_hat < HARDLY_APART and not found.short:
        return "analysis.near_agreement"
    return "analysis.disagreement" if r_hat >= FAR_APART else "analysis.rough_agreement"


def _sufficient_draws(now: int, found: Diagnostics) -> int:
    """Return how many draws should do for every parameter that fails and moves."""
    each = [(float(found.r_hat[k]), float(min(found.ess[k], found.ess_tail[k]))) for k in found.failing]
    return max(draws_needed(now, r_hat, ess) for r_hat, ess in each if isfinite(r_hat))


def _moves(draws: Draws, k: int) -> bool:
    """Whether every chain has numbers for a parameter, and not one number alone."""
    values = draws.values[:, :, k]
    return all(isfinite(chain.sum()) and chain.min() < chain.max() for chain in values)


def draws_needed(now: int, r_hat: float, ess: float) -> int:
    """Return a round number of draws that should do, by the effective ones so far; where chains differ up to four times
    as many, because R-hat falls towards 1 as one over the draws.
    """
    from .draws import MAX_R_HAT, MIN_ESS

    apart = min(1.25 * (r_hat - 1.0) / (MAX_R_HAT - 1.0), 4.0) if r_hat >= MAX_R_HAT else 1.0
    times = max(1.25 * MIN_ESS / max(ess, 1.0), apart)
    wanted = min(max(times * now, now + 1.0), MOST_DRAWS)
    power = 10 ** floor(log10(wanted))
    return next(int(nice * power) for nice in NICE if nice * power >= ceil(wanted))
