"""What a fit says of itself in words, and how its figures are written."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, isfinite, isinf, isnan, log10
from textwrap import wrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .draws import Draws
    from .summary import Diagnostics

WIDTH = 100
NICE = (1, 2, 5, 10)  # draws are asked for in such round numbers
MOST_DRAWS = 1_000_000
FAR_APART = 1.05  # R-hat from which on the figures of a fit mean nothing
HARDLY_APART = 1.015  # R-hat up to which they differ in digits that no one reads
UNCONVERGED = "the chains have not converged: "


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


def text_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align a table: the first column left, the others right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  " + "  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return lines


def wrapped_note(text: str, mark: str = "- ") -> list[str]:
    """Break a sentence into lines below a mark."""
    return wrap(text, WIDTH, initial_indent=f"  {mark}", subsequent_indent="    ")


def name_list(names: Sequence[str]) -> str:
    """Write names as one reads them aloud: a, b and c."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def count_phrase(count: int, what: str) -> str:
    """Write a count with its noun."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def trouble(draws: Draws, found: Diagnostics) -> str | None:
    """Say which parameter the chains know least and what helps; nothing where they have converged."""
    from .draws import MAX_R_HAT, MIN_ESS

    if not found.failing:
        return None
    worst = found.failing[0]
    name, r_hat = draws.names[worst], float(found.r_hat[worst])
    ess = float(min(found.ess[worst], found.ess_tail[worst]))
    others = _others(len(found.failing) - 1)
    if isinf(r_hat) and _moves(draws, worst):
        held = count_phrase(int(draws.values.shape[1]), "draw")
        return f"the chains are too short to be judged, with {held} each: take 1,000"
    if isinf(r_hat):
        return (
            f"{UNCONVERGED}{name} did not move{others}; use no figure of this fit, and look for "
            "a column that the others determine or a response that they predict without error"
        )
    now = int(draws.values.shape[1])
    remedy = f"take {_sufficient_draws(now, found):,} draws in place of {now:,} for each chain"
    if "remedy" in draws.info:
        remedy = f"{draws.info['remedy']}, or {remedy}"
    if r_hat >= MAX_R_HAT:
        harm = "use no figure of this fit, and" if r_hat >= FAR_APART else "its figures are rough, so"
        if r_hat < HARDLY_APART and not found.short:
            harm = "that is little, and the figures can be used; to be sure"
        return (
            f"{UNCONVERGED}R-hat of {name} is {_above(r_hat, MAX_R_HAT)} where {MAX_R_HAT:g} is the most, with "
            f"{count_phrase(round(ess), 'effective draw')}{others}; {harm} {remedy}"
        )
    return (
        f"the chains are too short: {name} has {count_phrase(round(ess), 'effective draw')} where {MIN_ESS:,.0f} are "
        f"needed{others}; the ends of intervals are rough, so {remedy}"
    )


def _above(value: float, limit: float) -> str:
    """Write a figure with as many digits as show that it is above a limit."""
    return next((text for k in (3, 4, 5) if float(text := f"{value:.{k}f}") > limit), f"just over {limit:g}")


def _sufficient_draws(now: int, found: Diagnostics) -> int:
    """Return how many draws should do for every parameter that fails and moves."""
    each = [(float(found.r_hat[k]), float(min(found.ess[k], found.ess_tail[k]))) for k in found.failing]
    return max(draws_needed(now, r_hat, ess) for r_hat, ess in each if isfinite(r_hat))


def _moves(draws: Draws, k: int) -> bool:
    """Whether every chain has numbers for a parameter, and not one number alone."""
    values = draws.values[:, :, k]
    return all(isfinite(chain.sum()) and chain.min() < chain.max() for chain in values)


def _others(count: int) -> str:
    if not count:
        return ""
    return " (another parameter fails too)" if count == 1 else f" ({count:,} other parameters fail too)"


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
