"""What the paper states of its tables, held against ours and their Monte Carlo errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product

import numpy as np

from ..conclusions import (
    EXPLAINED,
    UNDECIDED,
    StudyEstimate,
    apart,
    estimate,
    judge_margin,
    listing,
    together,
    verdict,
)
from ..plans import cell_name
from ..results import Draws, StudyTable, TableCell
from .further import FURTHER
from .simulation import LEVELS, MOMENTS, RECORDS
from .tables import BANDS, amounts

MATERIAL = 1.0  # links: what blind guessing finds
ALMOST = 0.02  # up to where we call probabilities almost constant
ENOUGH = 30 / 36  # of the published figures, to call a table reproduced
LEAST, MEDIUM, MOST = LEVELS
WITHIN = f"our margin: {MATERIAL:g} link of {RECORDS}, what blind guessing finds"
COUNTS = {"2": "d.1", "3": "d.2"}

Check = Callable[[Mapping[str, Draws]], list[str]]


def notes(draws: Mapping[str, Draws], tables: Sequence[StudyTable]) -> list[str]:
    """Return the statements that can be checked with the tables that were run."""
    told = [
        text for needs, check in STATEMENTS if all(name in draws for name in needs) for text in check(draws)
    ]
    return [*_in_band(tables), *_probable(tables), *([EXPLAINED, *told] if told else [])]


# What lies in the bands.


def _published_cells(tables: Sequence[StudyTable], names: Iterable[str]) -> list[tuple[str, TableCell]]:
    """Return the published figures of some tables beside ours, each with its name."""
    wanted = set(names)
    return [
        (f"table {table.name}, {one.cell.replace(' | ', ', ')}", one)
        for table in tables
        if table.name in wanted
        for one in table.cells
        if one.published is not None
    ]


def _few(what: str) -> str:
    """Say that the bands are of too few files for a verdict."""
    return (
        f"{UNDECIDED} whether {what} are reproduced: from {BANDS} files on we compare them with the 5-95% band. With "
        "20 files nearly one figure in five would lie outside it by chance alone, with 2 two in three"
    )


def _in_band(tables: Sequence[StudyTable]) -> list[str]:
    """Say how many counts of tables 2 and 3 lie in the band of our files, and which do not."""
    cells = _published_cells(tables, COUNTS)
    if len(cells) < len(COUNTS) * len(MOMENTS) * len(LEVELS) ** 2:
        return []
    if any(one.within is None for _, one in cells):
        return [_few("tables 2 and 3")]
    outside = [name for name, one in cells if not one.within]
    inside, enough = len(cells) - len(outside), round(ENOUGH * len(cells))
    return [
        f"{inside} of {len(cells)} published counts lie in the band of our files: tables 2 and 3 are "
        f"{'reproduced' if inside >= enough else 'NOT reproduced'} (from {enough} on we say so). Outside: "
        f"{'; '.join(outside) or 'none'}. Each published count is of one file, so that chance alone puts up to one in "
        "ten outside; this alone does not tell the kernels apart"
    ]


def _probable(tables: Sequence[StudyTable]) -> list[str]:
    """Say how many probabilities of table 2 lie in the band of our files."""
    cells = _published_cells(tables, ("2-probability",))
    compared = [(name, one) for name, one in cells if one.within is not None]
    if not cells or not compared:
        return [_few("the probabilities of table 2")] if cells else []
    inside, enough = sum(bool(one.within) for _, one in compared), round(ENOUGH * len(compared))
    means = [one for _, one in cells if one.column == "DATA2, mean"]
    lower = sum(float(one.published or 0) < one.ours for one in means)
    return [
        f"{inside} of {len(compared)} published probabilities of table 2 lie in the band of our files: they are "
        f"{'reproduced' if inside >= enough else 'NOT reproduced'} (from {enough} on we say so). {lower} of "
        f"{len(means)} published means of DATA2 are below ours; they come of one file, and are high or low together"
    ]


# Tables 2 and 3.


def _cell(draws: Draws, bias: str, noise: str, data: str) -> np.ndarray:
    return np.asarray(draws[cell_name(amounts(bias, noise), data)], np.float64)


def _less(draws: Draws, one: tuple[str, str, str], other: tuple[str, str, str]) -> StudyEstimate:
    """Return one cell less another, on the same files."""
    return estimate(_cell(draws, *one) - _cell(draws, *other))


def _first_steps(draws: Mapping[str, Draws]) -> list[str]:
    table = draws["2"]
    pairs = [
        ((LEAST, LEAST, data), more)
        for data in MOMENTS
        for more in ((LEAST, MEDIUM, data), (MEDIUM, LEAST, data))
    ]
    drops = [_less(table, *pair) for pair in pairs]
    beyond_half = [estimate(_cell(table, *few) / 2 - _cell(table, *more)) for few, more in pairs]
    return [
        verdict(
            "told (d.1), with little bias [noise] more noise [bias] lowers the number of links significantly (our "
            "margin: by half)",
            judge_margin(beyond_half, low=0),
            f"from minimum to medium noise, then bias, the links drop by {listing(drops, 1)} in DATA1 and DATA2, which "
            f"is {listing(beyond_half, 1, '+')} beyond half of them",
        )
    ]


def _last_steps(draws: Mapping[str, Draws]) -> list[str]:
    lines = [
        [(MOST, level, data) if by_noise else (level, MOST, data) for level in LEVELS]
        for data in MOMENTS
        for by_noise in (True, False)
    ]
    steps = [_less(draws["2"], one, more) for line in lines for one, more in pairwise(line)]
    return [
        verdict(
            f"told (d.1), more bias [noise] is ineffective where noise [bias] is already large ({WITHIN})",
            judge_margin(steps, -MATERIAL, MATERIAL),
            "with maximum bias and more noise, then maximum noise and more bias, the links drop by "
            f"{listing(steps[:4], 1)} in DATA1 and {listing(steps[4:], 1)} in DATA2",
        )
    ]


def _variability(draws: Mapping[str, Draws]) -> list[str]:
    gains = [
        _less(draws[name], (level, level, "DATA2"), (level, level, "DATA1"))
        for name in COUNTS
        for level in (LEAST, MOST)
    ]
    small, large = gains[::2], gains[1::2]
    outcomes = judge_margin(small, low=MATERIAL), judge_margin(large, -MATERIAL, MATERIAL)
    return [
        verdict(
            f"more variable data raise the risk where bias and noise are small, hardly where they are large ({WITHIN})",
            together(outcomes),
            f"DATA2 less DATA1 is {listing(small, 1)} links with minimum bias and noise, told and not told, "
            f"{listing(large, 1)} with maximum",
        )
    ]


def _secrecy(draws: Mapping[str, Draws]) -> list[str]:
    """Judge section 6: where not telling the parameters lowers the number of correct links."""
    drops = {
        (data, bias, noise): estimate(
            _cell(draws["2"], bias, noise, data) - _cell(draws["3"], bias, noise, data)
        )
        for data, bias, noise in product(MOMENTS, LEVELS, LEVELS)
    }
    least = [drops.pop((data, LEAST, LEAST)) for data in MOMENTS]
    largest = max(drops, key=lambda key: abs(drops[key].mean))
    data, bias, noise = largest
    return [
        verdict(
            "not telling the parameters (d.2) lowers the number of correct links with minimum bias and noise "
            f"({WITHIN})",
            judge_margin(least, low=MATERIAL),
            f"told less not told is {listing(least, 1)} links in DATA1 and DATA2",
        ),
        verdict(
            f"and elsewhere the number stays almost constant ({WITHIN})",
            judge_margin(drops.values(), -MATERIAL, MATERIAL),
            f"of the other {len(drops)} scenarios it changes most in {data} with {amounts(bias, noise)}, where told "
            f"less not told is {drops[largest].text(1)} links",
        ),
    ]


def _constant(draws: Mapping[str, Draws]) -> list[str]:
    """Judge how much the mean probability of the correct links changes with bias and noise."""
    told, secret = (_from_least(draws[f"{name}-probability"]) for name in COUNTS)
    most = max(secret, key=lambda one: abs(one.mean))
    smallest = min(told, key=lambda one: one.mean)
    return [
        verdict(
            "the probability of the correct links falls with the perturbation where he was told, and stays almost "
            f"constant where he was not (our margin: {ALMOST:g})",
            together((judge_margin(told, low=ALMOST), judge_margin(secret, -ALMOST, ALMOST))),
            f"from minimum bias and noise to more it falls by at least {smallest.text(3)} told, and changes by up to "
            f"{most.text(3)} not told",
        )
    ]


def _from_least(draws: Draws) -> list[StudyEstimate]:
    """Return by how much the probability is higher with minimum bias and noise than in the other scenarios."""
    return [
        apart(_cell(draws, LEAST, LEAST, f"{data}, mean"), values)
        for data, bias, noise in product(MOMENTS, LEVELS, LEVELS)
        if (bias, noise) != (LEAST, LEAST) and len(values := _cell(draws, bias, noise, f"{data}, mean"))
    ]


STATEMENTS: tuple[tuple[tuple[str, ...], Check], ...] = (
    (("2",), _first_steps),
    (("2",), _last_steps),
    (("2", "3"), _variability),
    (("2", "3"), _secrecy),
    (("2-probability", "3-probability"), _constant),
    *FURTHER,
)
