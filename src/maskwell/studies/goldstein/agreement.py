"""How well the published figures of a table agree with ours, what a cell could show, and cells that stand out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import sqrt

import numpy as np

from ...table import Floats
from ..conclusions import FEWEST
from ..results import BETWEEN, read_expected
from .chances import NORMAL_975, Figures, detectable_gap, errors, whole_of, z_score, z_scores

MISPRINTED, MEANT = "pr(h = 0), N 1,000, noise 0.4 | covariance 0.3", 0.10
LONE = "pr(h > 5), N 5,000, noise 0.1"


def agreement(name: str) -> Callable[[Figures], list[str]]:
    """Return what tells of the z of a table."""

    def told(figures: Figures) -> list[str]:
        scores = {cell: z for cell, z in z_scores(name, figures).items() if _can_differ(name, cell, figures)}
        if not scores:
            return []
        most = max(scores, key=lambda cell: abs(scores[cell]))
        largest = errors().largest_z
        near = sum(abs(z) <= largest for z in scores.values())
        spread = f"{_root_mean_square(scores.values()):.2f}{_without_misprint(scores, figures)}"
        return [
            f"table {name}: {near} of {len(scores)} cells have |z| of at most {largest:g}; the largest is "
            f"{scores[most]:+.1f} ({_words(most)}); the root mean square of all is {spread}, where chance gives about "
            f"1. {_power(figures[most].size)}"
        ]

    return told


def _words(cell: str) -> str:
    return cell.replace(BETWEEN, ", ")


def _can_differ(name: str, cell: str, figures: Figures) -> bool:
    """Whether a figure can differ at all: those of the last row of table 1 are 100 by definition."""
    return read_expected("goldstein")[name].published(cell) != whole_of(name) or bool(
        (figures[cell] == 0).any()
    )


def _root_mean_square(scores: Iterable[float]) -> float:
    return sqrt(float(np.mean(np.square(list(scores)))))


def _without_misprint(scores: dict[str, float], figures: Figures) -> str:
    if MISPRINTED not in scores:
        return ""
    meant = scores | {MISPRINTED: z_score(MEANT, figures[MISPRINTED])}
    return f" ({_root_mean_square(meant.values()):.2f} with the misprinted cell read as {MEANT:.2f})"


def _power(targets: int) -> str:
    """Say how large a gap must be to be seen: agreement in a table of few simulations is no great thing."""
    even, nearly = 100 * detectable_gap(targets), 100 * detectable_gap(targets, surely=True)
    return (
        f"Near a half, a cell ({targets:,} targets of ours, {errors().simulations:,} of theirs) that is {even:.0f} "
        f"points off is noticed every second time, one that is {nearly:.0f} off nine times in ten"
    )


def misprint(figures: Figures) -> list[str]:
    """Tell whether a cell of table 2 is misprinted."""
    values = figures[MISPRINTED]
    printed = read_expected("goldstein")["2"].published(MISPRINTED) or 0.0
    as_printed, as_meant = z_score(printed, values), z_score(MEANT, values)
    return [
        f"table 2, {_words(MISPRINTED)}: {_which(values, printed)}: ours is {np.mean(values):.3f}, z "
        f"{as_printed:+.1f} as printed and {as_meant:+.1f} for {MEANT:.2f}"
    ]


def _which(values: Floats, printed: float) -> str:
    fits = [len(values) < FEWEST or abs(z_score(p, values)) <= errors().largest_z for p in (printed, MEANT)]
    words = {
        (False, True): f"a misprint, {printed:g} should be {MEANT:.2f}",
        (True, False): f"no misprint, {printed:g} fits and {MEANT:.2f} does not",
        (False, False): f"neither {printed:g} nor {MEANT:.2f} fits",
        (True, True): f"a misprint? Too few files to say whether {printed:g} should be {MEANT:.2f}",
    }
    return words[fits[0], fits[1]]


def lone_cell(figures: Figures) -> list[str]:
    """Tell of the cell of table 2 that stands out of its row."""
    rows = {rho: figures[f"{LONE}{BETWEEN}covariance {rho:g}"] for rho in (0.1, 0.2, 0.3)}
    table = read_expected("goldstein")["2"]
    printed = [table.published(f"{LONE}{BETWEEN}covariance {rho:g}") or 0.0 for rho in rows]
    return [
        f"table 2, N 5,000, noise 0.1: at covariances 0.1, 0.2, 0.3 the paper prints {_shares(printed)}, we find "
        f"{_shares(float(np.mean(v)) for v in rows.values())}. The second, looked at because it is out of line, is "
        f"{reproduction_sentence([z_score(printed[1], rows[0.2])], rows[0.2])}"
    ]


def _shares(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.2f}" for value in values)


def reproduction_sentence(scores: Iterable[float], values: Floats) -> str:
    """Say what z allow: beyond our rule, between chance and it, or nothing that so many could show."""
    several = list(scores)
    told = ", ".join(f"{z:+.1f}" for z in several)
    largest = max(map(abs, several))
    if len(values) < FEWEST:
        return f"not to be judged (z {told}): too few files to say"
    if largest > errors().largest_z:
        return f"not reproduced (z {told})"
    if largest > NORMAL_975:
        return f"between chance and our rule (z {told}): too few simulations, theirs and ours, to say"
    return f"reproduced (z {told}), as far as a gap below {100 * detectable_gap(values.size):.0f} points is not noticed"
