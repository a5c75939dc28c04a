"""What the paper states in words, and what we know of its figures, held against ours and their Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from math import sqrt

import numpy as np

from ..conclusions import EXPLAINED, FAILS, HOLDS, Estimate, estimate, judged, listed, verdict
from ..plans import named
from ..results import Draws, StudyTable
from .simulation import CASES, LEVELS, MOMENTS, RECORDS
from .tables import HELPERS, amounts

MATERIAL = 3.0  # links of 100: from where on we call a difference material
ALMOST = 0.02  # up to where we call probabilities almost constant
ENOUGH = 30  # of the 36 counts, to call the tables reproduced
ERRORS = 3.0  # standard errors within which two means are the same
LEAST, MEDIUM, MOST = LEVELS
WITHIN = f"our margin: {MATERIAL:g} links of {RECORDS}"

# What a recomputation outside this program found with minimum bias and noise, printed to a tenth; by case and kernel.
RECOMPUTED = {
    ("d.1", "paper"): (30.4, 64.6),
    ("d.2", "paper"): (2.6, 32.8),
    ("d.2", "forward"): (30.0, 64.0),
}
PRINTED = {("d.2", "forward"): 0.5}  # printed as whole numbers: half of one may be lost
TENTH = 0.05

Check = Callable[[Mapping[str, Draws]], list[str]]


def notes(draws: Mapping[str, Draws], tables: Sequence[StudyTable]) -> list[str]:
    """Return the statements that can be checked with the tables that were run."""
    told = [
        text for needs, check in STATEMENTS if all(name in draws for name in needs) for text in check(draws)
    ]
    return [*_in_band(tables), *_probable(tables), *([EXPLAINED, *told] if told else [])]


def _in_band(tables: Sequence[StudyTable]) -> list[str]:
    """Say how many counts of tables 2 and 3 lie in the band of our files, and which do not."""
    cells = [
        (t.name, one) for t in tables if t.name in ("2", "3") for one in t.cells if one.within is not None
    ]
    outside = [f"table {name}, {one.cell.replace(' | ', ', ')}" for name, one in cells if not one.within]
    if len(cells) < 2 * len(MOMENTS) * len(LEVELS) ** 2:
        return []
    inside = len(cells) - len(outside)
    return [
        f"{inside} of {len(cells)} published counts lie in the band of our files: tables 2 and 3 are "
        f"{'reproduced' if inside >= ENOUGH else 'NOT reproduced'} (from {ENOUGH} on we say so). Outside: "
        f"{'; '.join(outside) or 'none'}. Each published count is of one file, so that chance alone puts up to one in "
        "ten outside; this alone does not tell the kernels apart"
    ]


def _probable(tables: Sequence[StudyTable]) -> list[str]:
    """Say how many probabilities of table 2 lie in the band of our files."""
    cells = [one for t in tables if t.name == "2-probability" for one in t.cells if one.within is not None]
    if not cells:
        return []
    kinds = {
        kind: [bool(one.within) for one in cells if one.column.endswith(kind)] for kind in ("mean", "sd")
    }
    told = ", ".join(f"{sum(found)} of {len(found)} {kind}s" for kind, found in kinds.items())
    means = [one for one in cells if one.column == "DATA2, mean"]
    lower = sum(float(one.published or 0) < one.ours for one in means)
    return [
        f"of the probabilities of table 2, {told} lie in the band of our files; {lower} of {len(means)} published "
        "means of DATA2 are below ours. The likely reason: its file has fewer outlying records, which are easily found"
    ]


def _cell(draws: Draws, bias: str, noise: str, data: str) -> np.ndarray:
    return np.asarray(draws[named(amounts(bias, noise), data)], np.float64)


def _less(draws: Draws, one: tuple[str, str, str], other: tuple[str, str, str]) -> Estimate:
    """Return one cell less another, on the same files."""
    return estimate(_cell(draws, *one) - _cell(draws, *other))


# Tables 2 and 3.


def _first_steps(draws: Mapping[str, Draws]) -> list[str]:
    table = draws["2"]
    start = [(data, (LEAST, LEAST, data)) for data in MOMENTS]
    drops = [
        _less(table, cell, more)
        for data, cell in start
        for more in ((LEAST, MEDIUM, data), (MEDIUM, LEAST, data))
    ]
    return [
        verdict(
            "told (d.1), with little bias [noise] more noise [bias] lowers the number of links significantly",
            judged(drops, low=MATERIAL),
            f"from minimum to medium noise, then bias, the links drop by {listed(drops, 1)} in DATA1 and DATA2",
        )
    ]


def _last_steps(draws: Mapping[str, Draws]) -> list[str]:
    steps = [
        _less(draws["2"], one, next_one)
        for data in MOMENTS
        for line in (
            [(MOST, noise, data) for noise in LEVELS],
            [(bias, MOST, data) for bias in LEVELS],
        )
        for one, next_one in pairwise(line)
    ]
    return [
        verdict(
            f"told (d.1), more bias [noise] is ineffective where noise [bias] is already large ({WITHIN})",
            judged(steps, -MATERIAL, MATERIAL),
            f"the steps along the last rows and columns are {listed(steps, 1)}",
        )
    ]


def _variability(draws: Mapping[str, Draws]) -> list[str]:
    gains = [
        _less(draws[name], (level, level, "DATA2"), (level, level, "DATA1"))
        for name in ("2", "3")
        for level in (LEAST, MOST)
    ]
    small, large = [gains[0], gains[2]], [gains[1], gains[3]]
    outcomes = {judged(small, low=MATERIAL), judged(large, -MATERIAL, MATERIAL)}
    return [
        verdict(
            f"more variable data raise the risk where bias and noise are small, hardly where they are large ({WITHIN})",
            together(outcomes),
            f"DATA2 less DATA1 is {listed(small, 1)} links with minimum bias and noise, told and not told, "
            f"{listed(large, 1)} with maximum",
        )
    ]


def together(outcomes: Iterable[str]) -> str:
    """Return the outcome of several statements together."""
    several = set(outcomes)
    if several == {HOLDS}:
        return HOLDS
    return FAILS if FAILS in several else (several - {HOLDS}).pop()


def _secrecy(draws: Mapping[str, Draws]) -> list[str]:
    """Judge section 6: where not telling the parameters lowers the number of correct links."""
    drops = {
        (data, bias, noise): estimate(
            _cell(draws["2"], bias, noise, data) - _cell(draws["3"], bias, noise, data)
        )
        for data, bias, noise in product(MOMENTS, LEVELS, LEVELS)
    }
    least = [one for (_, bias, noise), one in drops.items() if bias == noise == LEAST]
    others = {key: one for key, one in drops.items() if one not in least}
    largest = max(others, key=lambda key: others[key].mean)
    data, bias, noise = largest
    return [
        verdict(
            "not telling the parameters (d.2) lowers the number of correct links with minimum bias and noise",
            judged(least, low=MATERIAL),
            f"told less not told is {listed(least, 1)} links in DATA1 and DATA2",
        ),
        verdict(
            f"and elsewhere the number stays almost constant ({WITHIN})",
            judged(others.values(), -MATERIAL, MATERIAL),
            f"the largest drop of the other 16 scenarios is {others[largest].text(1)} links, in {data} with "
            f"{amounts(bias, noise)}",
        ),
    ]


def _constant(draws: Mapping[str, Draws]) -> list[str]:
    """Judge how much the mean probability of the correct links changes with bias and noise."""
    spans = {}
    for name, case in (("2-probability", "d.1"), ("3-probability", "d.2")):
        for data in MOMENTS:
            means = [
                np.mean(v) for cell, v in draws[name].items() if cell.endswith(f"{data}, mean") and len(v)
            ]
            spans[case, data] = float(max(means) - min(means))
    told, not_told = ([spans[case, data] for data in MOMENTS] for case in CASES)
    outcome = HOLDS if max(not_told) <= ALMOST < min(told) else FAILS
    return [
        verdict(
            "the probability of the correct links falls with the perturbation where he was told, and stays almost "
            f"constant where he was not (our margin: {ALMOST:g}; means over all files, without intervals)",
            outcome,
            f"it differs between scenarios by up to {_row(told)} told, {_row(not_told)} not told, in DATA1 and DATA2",
        )
    ]


def _row(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)


# The kernels.


def _recomputed(draws: Mapping[str, Draws]) -> list[str]:
    """Hold the means with minimum bias and noise against a recomputation: the counts alone cannot tell the kernels."""
    told, most = [], 0.0
    for (case, kernel), figures in RECOMPUTED.items():
        for data, figure in zip(MOMENTS, figures, strict=True):
            values = _with_least(draws, case, kernel, data)
            z = errors_off(values, figure, PRINTED.get((case, kernel), TENTH))
            most = max(most, z)
            told.append(f"{case} {kernel} {data} {values.mean():.1f} ({figure:g})")
    if len(values) < 2:
        return []
    word = "the same" if most <= ERRORS else "NOT the same"
    return [
        f"means with minimum bias and noise beside those of a recomputation outside this program: {', '.join(told)}. "
        f"They are {word} within {ERRORS:g} of our standard errors and the rounding (the largest is {most:.1f})"
    ]


def _with_least(draws: Mapping[str, Draws], case: str, kernel: str, data: str) -> np.ndarray:
    """Return the correct links with minimum bias and noise, from the table that has the most files."""
    table = {"d.1": "2", "d.2": "3"}[case]
    if kernel == "paper" and table in draws:
        return _cell(draws[table], LEAST, LEAST, data)
    return np.asarray(draws["kernels"][named(f"{data}, {case}, {LEAST}", kernel)], np.float64)


def errors_off(values: np.ndarray, figure: float, rounding: float) -> float:
    """Return by how many standard errors a mean is off a figure that was rounded."""
    if len(values) < 2:
        return 0.0
    apart = max(abs(float(values.mean()) - figure) - rounding, 0.0)
    error = float(values.std(ddof=1)) / sqrt(len(values))
    return apart / error if error > 0 else (0.0 if apart == 0 else float("inf"))


def _kernel_matters(draws: Mapping[str, Draws]) -> list[str]:
    def mean(data: str, case: str, level: str, kernel: str) -> Estimate:
        return estimate(np.asarray(draws["kernels"][named(f"{data}, {case}, {level}", kernel)]))

    def both(case: str, level: str, kernel: str) -> str:
        return " and ".join(mean(data, case, level, kernel).text(1) for data in MOMENTS)

    return [
        "what not telling protects from is the kernel: with minimum bias and noise and not told, the paper's kernel "
        f"finds {both('d.2', LEAST, 'paper')} in DATA1 and DATA2, the nearest released value (forward) "
        f"{both('d.2', LEAST, 'forward')}, as many as where he was told. The coherent kernel, which takes the prior at "
        f"its word, finds {both('d.2', LEAST, 'coherent')}: a prior sure of noise that is not there misleads it",
        f"told, the coherent kernel finds {both('d.1', LEAST, 'coherent')} with minimum bias and noise and the paper's "
        f"{both('d.1', LEAST, 'paper')}, with maximum {both('d.1', MOST, 'coherent')} and {both('d.1', MOST, 'paper')}",
    ]


# Thresholds and helpers.


def _prudent(draws: Mapping[str, Draws]) -> list[str]:
    table = draws["threshold"]

    def at(case: str, t: str, what: str, data: str) -> float:
        values = table[named(f"{case}, t {t}", f"{data} {what}")]
        return float(np.mean(values)) if len(values) else 0.0

    told = " and ".join(
        f"{at('d.1', '0.9', 'links', data):.1f} links in {data}, {at('d.1', '0.9', '% right', data):.0f}% of them right"
        for data in MOMENTS
    )
    secret = " and ".join(f"{at('d.2', '0.05', 'links', data):.1f}" for data in MOMENTS)
    return [
        f"a prudent intruder (t = 0.9) who was told makes {told}; one who was not told makes {secret} links even above "
        "t = 0.05"
    ]


def _learning(draws: Mapping[str, Draws]) -> list[str]:
    """Say what known units teach: by the probability of the truth, which sampling measures well."""

    def course(name: str) -> str:
        return ", ".join(f"{_mean(draws, count, name):.1f}" for count in HELPERS)

    last = HELPERS[-1]
    told, wide, tight = (_mean(draws, last, name) for name in ("told", "wide prior", "tight prior"))
    return [
        f"the true record gets, in % on average, for L = {', '.join(map(str, HELPERS))}: {course('tight prior')} with "
        f"the paper's tight prior, {course('wide prior')} with a wide one, {course('told')} told",
        f"who knows everybody (L = {last}) gives the true record {wide:.0f}% where his prior was wide, {told:.0f}% "
        f"where he was told (the ceiling), and {tight:.0f}% with the tight prior, sure of more noise than there is",
    ]


def _mean(draws: Mapping[str, Draws], helpers: int, name: str) -> float:
    return float(np.mean(draws["helpers"][named(f"L {helpers}", f"{name}, truth")]))


STATEMENTS: tuple[tuple[tuple[str, ...], Check], ...] = (
    (("2",), _first_steps),
    (("2",), _last_steps),
    (("2", "3"), _variability),
    (("2", "3"), _secrecy),
    (("2-probability", "3-probability"), _constant),
    (("kernels",), _recomputed),
    (("kernels",), _kernel_matters),
    (("threshold",), _prudent),
    (("helpers",), _learning),
)
