"""What the paper states in words, held against our figures and their Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise

import numpy as np

from ...table import Floats
from ..conclusions import (
    EXPLAINED,
    FAILS,
    HOLDS,
    StudyEstimate,
    estimate,
    judge_margin,
    listing,
    verdict,
)
from ..results import BETWEEN, read_expected
from .agreement import agreement, lone_cell, misprint, reproduction_sentence
from .answers import ANSWERS
from .binary import exact
from .chances import Figures, z_scores
from .farm_answers import of_both
from .farms import NOISES, QUANTILES
from .simulation import EUCLID, EXPECTED, INVERSE, OMEGA, POSTERIOR

ENOUGH_H, SMALL_SHARE = 3.0, 0.1  # section 2: E(h) of about 3, or pr(h < 3) below 0.1
PERCENT = 100.0
MATERIAL = 5.0  # points: from where on we call a difference material
SMALL = 0.15  # up to where we call a difference of probabilities small: the paper does so up to 0.11, in its table 2
WITHIN_POINTS, WITHIN_SHARES = f"our margin: {MATERIAL:g} points", f"our margin: {SMALL:g}"


def notes(figures: Mapping[str, Figures], files: Mapping[str, int]) -> list[str]:
    """Return the statements that can be checked with the tables that were run, on so many files each."""
    by_file = {name: _by_file(given, files[name]) for name, given in figures.items()}
    told = [
        text
        for name, checks in STATEMENTS.items()
        if name in by_file
        for check in checks
        for text in check(by_file[name])
    ]
    return [EXPLAINED, *dict.fromkeys([*told, *of_both(by_file), *_of_both(by_file)])]


def _by_file(figures: Figures, count: int) -> Figures:
    """Return files x targets of every cell that is simulated."""
    return {cell: v.reshape(count, -1) for cell, v in figures.items() if v.size >= count}


def _column(figures: Figures, column: str) -> dict[str, Floats]:
    """Return the values of a column by row."""
    parts = {cell.partition(BETWEEN)[::2]: values for cell, values in figures.items()}
    return {row: values for (row, name), values in parts.items() if name == column}


def _apart(figures: Figures, one: str, other: str, rows: str = "", whole: float = PERCENT) -> StudyEstimate:
    """Return the mean of one column less another over the rows that end so, on the same files."""
    ours, theirs = _column(figures, one), _column(figures, other)
    return estimate(np.mean([ours[row] - theirs[row] for row in ours if row.endswith(rows)], axis=0), whole)


# Tables 1 and 3.


def _not_found(figures: Figures) -> list[str]:
    found = {cell: v for cell, v in figures.items() if cell.startswith(f"h 0{BETWEEN}")}
    wrong = [estimate(PERCENT - values, PERCENT) for values in found.values()]
    return [
        verdict(
            "in more than 40% of the cases the nearest record is not the true one",
            judge_margin(wrong, low=40),
            f"{listing(wrong, 1)}% by decile",
        )
    ]


def _weights(figures: Figures) -> list[str]:
    at_zero, near = (_apart(figures, OMEGA, EUCLID, rows) for rows in ("h 0", "h 5"))
    inverse = _apart(figures, INVERSE, EUCLID, "h 0")
    return [
        verdict(
            f"W = Omega gives essentially similar results ({WITHIN_POINTS})",
            judge_margin([at_zero, near], -MATERIAL, MATERIAL),
            f"W = Omega less Euclid is {at_zero.text(1, '+')} points at h = 0, {near.text(1, '+')} at h <= 5, on "
            f"average of the deciles; the inverse of Omega less Euclid {inverse.text(1, '+')} at h = 0",
        )
    ]


def _small_increase(figures: Figures) -> list[str]:
    found, near = (_apart(figures, EXPECTED, EUCLID, rows) for rows in ("h 0", "h 5"))
    informed = _apart(figures, POSTERIOR, EUCLID, "h 0")
    return [
        verdict(
            f"knowing the noise gives generally small increases ({WITHIN_POINTS})",
            judge_margin([found, near], high=MATERIAL),
            f"E(y|z) less Euclid is {found.text(1, '+')} points at h = 0, {near.text(1, '+')} at h <= 5, posterior "
            f"less Euclid {informed.text(1, '+')} at h = 0, for five weakly correlated identifiers",
        )
    ]


def _knowledge(figures: Figures) -> list[str]:
    plain, informed = _column(figures, EUCLID), _column(figures, POSTERIOR)
    gains = {row: estimate(informed[row] - plain[row], PERCENT) for row in plain}
    row = max(gains, key=lambda one: gains[one].mean)
    return [
        verdict(
            "access to the noise parameters does not materially improve the probability of disclosure (section 9; "
            f"{WITHIN_POINTS})",
            judge_margin(gains.values(), high=MATERIAL),
            f"with {row} the informed intruder finds {np.mean(informed[row]):.0f}% where Euclid finds "
            f"{np.mean(plain[row]):.0f}%; the gains are {listing(gains.values(), 1)} points in the order of the table",
        )
    ]


# The statements of section 4.


def _larger(figures: Figures) -> list[str]:
    rows = [f"N {count}, decile 10" for count in ("1,000", "5,000", "10,000")]
    found = [figures[f"{row}{BETWEEN}pr(h = 0)"] for row in rows]
    less = [estimate(larger - smaller) for smaller, larger in pairwise(found)]
    return [
        verdict(
            "protection increases with the size of the file",
            judge_margin(less, high=0),
            f"pr(h = 0) is {listing(map(estimate, found))} for 1,000, 5,000 and 10,000 records",
        )
    ]


def _identifiers(figures: Figures) -> list[str]:
    five, ten = (_column(figures, name) for name in dict.fromkeys(c.partition(BETWEEN)[2] for c in figures))
    gaps = {row: estimate(ten[row] - five[row], PERCENT) for row in five}
    return [
        verdict(
            f"10 identifiers with noise 0.34 have about the distribution of h of 5 with noise 0.1 ({WITHIN_POINTS})",
            judge_margin(gaps.values(), -MATERIAL, MATERIAL),
            f"ten less five are {listing(gaps.values(), 1)} points at {', '.join(gaps)}; {_where_alike(gaps)}",
        )
    ]


def _where_alike(gaps: Mapping[str, StudyEstimate]) -> str:
    """Name the rows where two columns are alike, where they are not, and where there are too few files to say."""
    outcomes = {row: judge_margin([gap], -MATERIAL, MATERIAL) for row, gap in gaps.items()}
    words = {HOLDS: "alike", FAILS: "not alike"}
    kinds = {
        word: [row for row in gaps if outcomes[row] == word] for word in dict.fromkeys(outcomes.values())
    }
    told = [f"{words.get(word, 'too few files to say')} at {', '.join(rows)}" for word, rows in kinds.items()]
    return "row by row: " + "; ".join(told)


def _covariance(figures: Figures) -> list[str]:
    found, far = (_column(figures, name) for name in ("pr(h = 0)", "pr(h > 5)"))
    first, *_, last = found.values()
    gap, small = estimate(first - last), f"smaller ones with a slightly higher risk ({WITHIN_SHARES})"
    return [
        verdict(
            f"covariances from 0.1 to 0.5 have only a small effect, {small}",
            judge_margin([gap], 0, SMALL),
            f"pr(h = 0) is {listing(map(estimate, found.values()))} at the 5th percentile, the first less the last "
            f"{gap.text()}; pr(h > 5) is {listing(map(estimate, far.values()))}",
        ),
        f"pr(h = 0) at the 5th percentile for covariances 0.1 and 0.5: the paper has {_extremes('covariance')} (and "
        f"at the 10th, in table 2, {_extremes('2', 'pr(h = 0), N 1,000, noise 0.1')}), we find {np.mean(first):.2f}, "
        f"{np.mean(last):.2f}: {reproduction_sentence(z_scores('covariance', figures).values(), first)}",
    ]


def _extremes(name: str, row: str = "") -> str:
    """Return the published figures for the smallest and the largest covariance."""
    table = read_expected("goldstein")[name]
    cells = [cell for cell in table.cells if cell.startswith(row)]
    return ", ".join(f"{table.published(cell):.2f}" for cell in (cells[0], cells[-1]))


def _expectation(figures: Figures) -> list[str]:
    mean, found, near = (
        {row: estimate(values) for row, values in _column(figures, name).items()}
        for name in ("E(h)", "pr(h = 0)", "pr(h < 3)")
    )
    enough = {row: judge_margin([one], low=ENOUGH_H) for row, one in mean.items()}
    small = {row: judge_margin([one], high=SMALL_SHARE) for row, one in near.items()}
    return [
        f"section 2 suggests E(h) of 3 as enough: {_from_where(enough, mean)}. pr(h = 0) is "
        f"{listing(found.values())} at {', '.join(found)}",
        f"section 2's alternative, pr(h < 3) below 0.1: {_from_where(small, near)}",
    ]


def _from_where(outcomes: Mapping[str, str], figures: Mapping[str, StudyEstimate]) -> str:
    """Name the noise from which on something holds, and those where there are too few files to say."""
    rows = list(outcomes)
    start = max((i + 1 for i, row in enumerate(rows) if outcomes[row] != HOLDS), default=0)
    first = f"it holds from {rows[start]} on ({figures[rows[start]].text()})" if start < len(rows) else ""
    open_rows = [f"{row} ({figures[row].text()})" for row in rows if outcomes[row] not in (HOLDS, FAILS)]
    unsure = f"too few files to say at {', '.join(open_rows)}" if open_rows else ""
    return "; ".join(filter(None, (first or "it is seen to hold at none of those tried", unsure)))


# Section 5 and the farms.


def _binary(figures: Figures) -> list[str]:
    correct = list(exact().values())[-1]
    return [
        f"of those identified {correct:.4f} are correct, exactly (0.1/0.19)^3: the share that is really like the "
        "target of those who look like it. The person himself is one of them only where he is in the file"
    ]


ROWS = tuple(f"quantile {share * 100:.0f}" for share in QUANTILES)
AT = ", ".join(f"{share * 100:.0f}" for share in QUANTILES)


def _of_both(figures: Mapping[str, Figures]) -> list[str]:
    """Compare correlated and independent noise on the farms."""
    if not {"7a", "7b"} <= figures.keys():
        return []
    h, zero = (_less(figures, name) for name in ("h", "pr(h = 0)"))
    overall = {noise: estimate(np.mean(gaps, axis=0)) for noise, gaps in h.items()}
    each = {noise: [estimate(gap) for gap in gaps] for noise, gaps in zero.items()}
    return [
        verdict(
            "h tends to be greater for correlated noise",
            judge_margin(overall.values(), low=0),
            "correlated less independent is "
            + "; ".join(f"{one.text(1, '+')} at {noise:.0%} noise" for noise, one in overall.items())
            + ", on average of the quantiles",
        ),
        verdict(
            f"pr(h = 0) is quite similar for correlated and independent noise ({WITHIN_SHARES})",
            judge_margin([one for several in each.values() for one in several], -SMALL, SMALL),
            "correlated less independent is "
            + "; ".join(f"{listing(several, 2, '+')} at {noise:.0%} noise" for noise, several in each.items())
            + f", at quantiles {AT}",
        ),
    ]


def _less(figures: Mapping[str, Figures], name: str) -> dict[float, list[Floats]]:
    """Return correlated less independent by noise and quantile, on the same farms."""
    return {
        noise: [figures["7a"][cell] - figures["7b"][cell] for cell in cells]
        for noise in NOISES
        for cells in [[f"{row}{BETWEEN}{name}, {noise:.0%} noise" for row in ROWS]]
    }


def _tail(figures: Figures) -> list[str]:
    cells = [f"{row}{BETWEEN}pr(h = 0), 17% noise" for row in ROWS]
    *others, last = (figures[cell] for cell in cells)
    return [
        verdict(
            "records are protected except in the far right tail",
            judge_margin([estimate(last - other) for other in others], low=0),
            f"pr(h = 0) at 17% noise is {listing(estimate(figures[cell]) for cell in cells)} at quantiles {AT}; the "
            f"paper has {read_expected('goldstein')['7a'].published(cells[-1]):.2f} at the last",
        )
    ]


def _farms_informed(figures: Figures) -> list[str]:
    gaps = {
        noise: _apart(figures, f"correlated {noise:.0%}", f"independent {noise:.0%}", whole=1.0)
        for noise in NOISES
    }
    return [
        verdict(
            "against an intruder who knows the noise, correlated noise protects less than independent noise",
            judge_margin(gaps.values(), low=0),
            "the share that he finds under correlated less that under independent noise is "
            + "; ".join(f"{gap.text(2, '+')} at {noise:.0%} noise" for noise, gap in gaps.items())
            + ", on average of the quantiles",
            who="ours",
        )
    ]


STATEMENTS: dict[str, tuple[Callable[[Figures], list[str]], ...]] = {
    "1": (agreement("1"), _not_found),
    "1-z": (agreement("1"),),
    "weighted": (_weights,),
    "sizes": (_larger,),
    "2": (agreement("2"), misprint, lone_cell),
    "2-z": (agreement("2"), misprint, lone_cell),
    "3": (agreement("3"),),
    "3-z": (agreement("3"),),
    "informed": (_small_increase,),
    "knowledge": (_knowledge,),
    "identifiers": (_identifiers,),
    "covariance": (_covariance,),
    "expectation": (_expectation,),
    "binary": (_binary,),
    **ANSWERS,
    "7a": (_tail,),
    "7-informed": (_farms_informed,),
}
