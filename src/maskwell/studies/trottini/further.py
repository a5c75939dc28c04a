"""What is known of the paper's figures, and what it does not show: kernels, thresholds and known units."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import sqrt

import numpy as np

from ..conclusions import FEWEST, UNDECIDED, StudyEstimate, estimate, judge_margin, listing, together, verdict
from ..plans import cell_name
from ..results import Draws
from .simulation import LEVELS, MOMENTS, SOUGHT
from .tables import HELPERS, amounts

LEAST, MOST = LEVELS[0], LEVELS[-1]
NOBODY, EVERYBODY = HELPERS[0], HELPERS[-1]
OURS = "ours"
ERRORS = 3.0  # standard errors within which two means are the same
BLIND = 1.0  # links of 100: what blind guessing finds
NEAR = 1.0  # points: up to where we call two probabilities the same, what blind guessing gives
SURE, PRUDENT, SECRET = 90.0, "0.9", "0.05"  # % right; the thresholds of `_prudent`, told and not told

# What a recomputation outside this program found with minimum bias and noise, printed to a tenth; by case and kernel.
RECOMPUTED = {
    ("d.1", "paper"): (30.4, 64.6),
    ("d.2", "paper"): (2.6, 32.8),
    ("d.2", "forward"): (30.0, 64.0),
}
PRINTED = {("d.2", "forward"): 0.5}  # printed as whole numbers: half of one may be lost
TENTH = 0.05


# The kernels.


def _recomputation_notes(draws: Mapping[str, Draws]) -> list[str]:
    """Hold the means with minimum bias and noise against a recomputation: the counts alone cannot tell the kernels."""
    told, off, files = [], [], []
    for (case, kernel), figures in RECOMPUTED.items():
        for data, figure in zip(MOMENTS, figures, strict=True):
            values = _with_least(draws, case, kernel, data)
            off.append(errors_off(values, figure, PRINTED.get((case, kernel), TENTH)))
            files.append(len(values))
            told.append(f"{case} {kernel} {data} {values.mean():.1f} ({figure:g})")
    first = f"means with minimum bias and noise beside those of a recomputation outside this program: {', '.join(told)}"
    if min(files) < FEWEST:
        return [f"{first}. {UNDECIDED} whether they are the same: from {FEWEST} files on"]
    return [
        f"{first}. They are {'the same' if max(off) <= ERRORS else 'NOT the same'} within {ERRORS:g} of our standard "
        f"errors and the rounding (the largest is {max(off):.1f})"
    ]


def _with_least(draws: Mapping[str, Draws], case: str, kernel: str, data: str) -> np.ndarray:
    """Return the correct links with minimum bias and noise, from the table that has the most files."""
    table = {"d.1": "2", "d.2": "3"}[case]
    if kernel == "paper" and table in draws:
        return np.asarray(draws[table][cell_name(amounts(LEAST, LEAST), data)], np.float64)
    return _kernel_counts(draws, data, case, LEAST, kernel)


def errors_off(values: np.ndarray, figure: float, rounding: float) -> float:
    """Return by how many standard errors a mean is off a figure that was rounded."""
    if len(values) < 2:
        return 0.0
    away = max(abs(float(values.mean()) - figure) - rounding, 0.0)
    error = float(values.std(ddof=1)) / sqrt(len(values))
    return away / error if error > 0 else (0.0 if away == 0 else float("inf"))


def _kernel_counts(draws: Mapping[str, Draws], data: str, case: str, level: str, kernel: str) -> np.ndarray:
    return np.asarray(draws["kernels"][cell_name(f"{data}, {case}, {level}", kernel)], np.float64)


Who = tuple[str, str]  # a case and a kernel


def _ahead(draws: Mapping[str, Draws], one: Who, other: Who, level: str = LEAST) -> list[np.ndarray]:
    """Return by how many links one is ahead of another on each file, by data set."""
    return [
        _kernel_counts(draws, data, one[0], level, one[1])
        - _kernel_counts(draws, data, other[0], level, other[1])
        for data in MOMENTS
    ]


def _nearest(draws: Mapping[str, Draws]) -> list[str]:
    """Judge what secrecy is worth against the nearest released value."""
    lost = [*map(estimate, _ahead(draws, ("d.1", "forward"), ("d.2", "forward")))]
    ahead = [*map(estimate, _ahead(draws, ("d.2", "forward"), ("d.2", "paper")))]
    return [
        verdict(
            "what secrecy protects from is the kernel: with minimum bias and noise the nearest released value "
            "(forward) finds as many not told as told, and not told more than the paper's kernel (our margin: "
            f"{BLIND:g} link, what blind guessing finds)",
            together((judge_margin(lost, -BLIND, BLIND), judge_margin(ahead, low=BLIND))),
            f"told less not told is {listing(lost, 1)} links in DATA1 and DATA2, forward less paper not told "
            f"{listing(ahead, 1)}",
            OURS,
        )
    ]


def _coherent(draws: Mapping[str, Draws]) -> list[str]:
    """Judge the coherent kernel, with a wrong prior and told."""
    misled = [*map(estimate, _ahead(draws, ("d.2", "forward"), ("d.2", "coherent")))]
    gains = [
        values
        for level in (LEAST, MOST)
        for values in _ahead(draws, ("d.1", "coherent"), ("d.1", "paper"), level)
    ]
    each = [*map(estimate, gains)]
    return [
        verdict(
            "a prior sure of noise that is not there misleads the coherent kernel, which takes it at its word: not "
            "told, with minimum bias and noise, it finds fewer than the nearest released value",
            judge_margin(misled, low=BLIND),
            f"fewer by {listing(misled, 1)} links in DATA1 and DATA2",
            OURS,
        ),
        verdict(
            "told, the coherent kernel finds more than the paper's in both data sets, with minimum and with maximum "
            "bias and noise",
            judge_margin(each, low=0),
            f"it is ahead by {listing(each[:2], 1)} links in DATA1 and DATA2 with minimum bias and noise, by "
            f"{listing(each[2:], 1)} with maximum",
            OURS,
        ),
    ]


# Thresholds.


def _prudent(draws: Mapping[str, Draws]) -> list[str]:
    def at(case: str, t: str, what: str, data: str) -> np.ndarray:
        return np.asarray(draws["threshold"][cell_name(f"{case}, t {t}", f"{data} {what}")], np.float64)

    links = [at("d.1", PRUDENT, "links", data) for data in MOMENTS]
    beyond = [
        estimate(at("d.1", PRUDENT, "correct", data) - SURE / 100 * made)
        for data, made in zip(MOMENTS, links, strict=True)
    ]
    fewer = [
        estimate(made - at("d.2", SECRET, "links", data)) for data, made in zip(MOMENTS, links, strict=True)
    ]
    right = [at("d.1", PRUDENT, "% right", data) for data in MOMENTS]
    return [
        verdict(
            f"told, a prudent intruder (t = {PRUDENT}) is right in more than {SURE:g}% of his links",
            judge_margin(beyond, low=0),
            f"he makes {listing(map(estimate, links), 1)} links in DATA1 and DATA2, of which "
            f"{' and '.join(f'{one.mean():.0f}%' if len(one) else 'none' for one in right)} are right: "
            f"{listing(beyond, 1, '+')} links for each file beyond {SURE:g}%",
            OURS,
        ),
        verdict(
            f"not told, he makes fewer links above t = {SECRET} than told above {PRUDENT}",
            judge_margin(fewer, low=0),
            f"fewer by {listing(fewer, 1)} in DATA1 and DATA2",
            OURS,
        ),
    ]


# Helpers.


def _truth(draws: Mapping[str, Draws], name: str, helpers: int) -> np.ndarray:
    return np.asarray(draws["helpers"][cell_name(f"L {helpers}", name)], np.float64)


def _mean(values: np.ndarray) -> StudyEstimate:
    """Estimate a mean of probabilities: unlike links they are never all alike, so that their spread is error enough."""
    return estimate(values, 0.0)


def _helper_verdicts(draws: Mapping[str, Draws]) -> list[str]:
    """Judge what known units teach: by the probability of the truth, which sampling measures well."""
    wide = [_truth(draws, "wide prior", count) for count in HELPERS]
    steps = [_mean(more - few) for few, more in pairwise(wide)]
    ends = _mean(_truth(draws, "told", EVERYBODY) - wide[-1])
    return [
        verdict(
            "with a wide prior every further unit that he knows teaches him",
            judge_margin(steps, low=0),
            f"with L = {', '.join(map(str, HELPERS))} the true record gets {listing(map(_mean, wide), 1)}% on "
            f"average over {SOUGHT} targets of each file, from one to the next {listing(steps, 1, '+')} points",
            OURS,
        ),
        verdict(
            f"and who knows everybody (L = {EVERYBODY}) ends where he is who was told (our margin: {NEAR:g} point)",
            judge_margin([ends], -NEAR, NEAR),
            f"told less wide is {ends.text(1)} points",
            OURS,
        ),
    ]


def _ceiling_verdicts(draws: Mapping[str, Draws]) -> list[str]:
    """Judge what known units add to a sure prior, and to parameters that are told."""
    tight, told = (
        _mean(_truth(draws, name, EVERYBODY) - _truth(draws, name, NOBODY))
        for name in ("tight prior", "told")
    )
    return [
        verdict(
            "with the paper's tight prior, sure of more noise than there is, he learns nothing, whoever he knows (our "
            f"margin: {NEAR:g} point)",
            judge_margin([tight], -NEAR, NEAR),
            f"from L = {NOBODY} to {EVERYBODY} the true record gains {tight.text(1, '+')} points",
            OURS,
        ),
        verdict(
            "told, knowing everybody still helps, because each record belongs to one unit: the ceiling",
            judge_margin([told], low=0),
            f"from L = {NOBODY} to {EVERYBODY} the true record gains {told.text(1, '+')} points",
            OURS,
        ),
    ]


FURTHER: tuple[tuple[tuple[str, ...], Callable[[Mapping[str, Draws]], list[str]]], ...] = (
    (("kernels",), _recomputation_notes),
    (("kernels",), _nearest),
    (("kernels",), _coherent),
    (("threshold",), _prudent),
    (("helpers",), _helper_verdicts),
    (("helpers",), _ceiling_verdicts),
)
