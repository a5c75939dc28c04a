"""What the paper states, and what is misprinted in it, held against our figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import sqrt
from statistics import fmean, stdev

from ...calibration import uniform_agreement
from ..results import BETWEEN, read_expected
from .critical import BY_FORMULA, EPSILONS, LOST, ONE_MAY, RELAXED
from .matching import C_KNEE, c_of, published_rows, r0_of, rows_of_table_4, shape_figures
from .moments import C_MOMENTS, C_NOISE
from .simulation import FIELDS, Draws
from .swaps import TOLERANCES

RECORDS = 64_998  # for which the paper drew noise
HALF_DIGIT = 0.05  # table 2 prints one decimal
CONSTANT = 0.1  # a count that swings by less than this share of its mean is called constant
SCATTER = 5  # draws that it takes to say how far a count scatters
LEAST = 0.01  # links: less is numerical error


def notes(draws: Mapping[str, Draws]) -> list[str]:
    """Return the statements that can be checked with the tables that were run."""
    told = [text for name, values in draws.items() if name in STATEMENTS for text in STATEMENTS[name](values)]
    return list(dict.fromkeys(told))


def _mean(draws: Draws, row: str, column: str) -> float:
    return fmean(draws[f"{row}{BETWEEN}{column}"])


def _verdict(statement: str, holds: bool, found: str) -> str:
    return f"the paper: {statement}. {'It holds' if holds else 'It does not hold'} here: {found}."


# Tables 2 and 3, and the moments.


def _noise(draws: Draws) -> list[str]:
    printed = {name: float(read_expected("moore")["2"].published(f"{name} | sd") or 0) for name in FIELDS}
    off = {name: _standard_errors(sd, name) for name, sd in printed.items()}
    name = max(off, key=lambda one: abs(off[one]))
    return [
        f"table 2: the printed sd of the noise of {name} is {printed[name]:,.1f}, where c times the field's sd is "
        f"{C_NOISE * _published_sd(name):,.1f}: {off[name]:+.1f} standard errors, most of the five. Perhaps two digits "
        "were exchanged"
    ]


def _published_sd(name: str) -> float:
    return float(read_expected("moore")["1"].published(f"{name} | sd") or 0)


def _standard_errors(sd: float, name: str) -> float:
    """Return how far a printed sd of the noise is off, at least."""
    wanted = C_NOISE * _published_sd(name)
    off = max(abs(sd - wanted) - HALF_DIGIT, 0.0) / wanted * sqrt(2 * RECORDS)
    return off if sd > wanted else -off


def _growth(draws: Draws) -> list[str]:
    c = max(C_MOMENTS)
    least = {
        column: min((_mean(draws, f"{name}, c {c:g}", column), name) for name in FIELDS)
        for column in ("as released", "without clamp and unit")
    }
    (clamped, field), (plain, _) = least.values()
    return [
        f"the paper: variances grow by 1 + c^2. This holds for noise that is not clamped: at c = {c:g} the least of "
        f"the five is {plain:.3f} of it; as released {field} has {clamped:.3f} of it"
    ]


# Table 4.


def _misprint(draws: Draws) -> list[str]:
    wrong = [(r0, c) for r0, c in rows_of_table_4().values() if abs(c_of(r0) - c) > 1e-4]
    return [
        f"misprint in table 4: the row R0 = {r0:.3f} prints c = {c:.4f}, which belongs to R0 = {r0_of(c):.3f}; to "
        f"R0 = {r0:.3f} belongs c = {c_of(r0):.4f}. We run c = {c:.4f}, the one that the text gives too"
        for r0, c in wrong
    ]


def _table_4(draws: Draws) -> list[str]:
    return [*_misprint(draws), *_best_links(draws), *_rises(draws)]


def _best_links(draws: Draws) -> list[str]:
    rows = [row for row, (_, c) in rows_of_table_4().items() if c in (min(_cs()), C_KNEE, max(_cs()))]
    told = [
        f"{_mean(draws, row, 'right in all'):.0f} for {_mean(draws, row, 'correct'):.0f} at {row}"
        for row in rows
    ]
    return [f"best links that are right, for those counted as correct by the paper's rule: {'; '.join(told)}"]


def _rises(draws: Draws) -> list[str]:
    """Tell how far correct links rise between neighbouring rows where they should fall."""
    published, rows = [row["correct"] for row in published_rows().values()], list(rows_of_table_4())
    where = rows[max(range(1, len(rows)), key=lambda i: published[i] - published[i - 1])]
    runs = zip(*(draws[f"{row}{BETWEEN}correct"] for row in rows), strict=True)
    ours, here = fmean(_largest_rise(run) for run in runs), draws[f"{where}{BETWEEN}correct"]
    why = ""
    if len(here) >= SCATTER:
        why = f": his had probably noise of their own, which scatters by {stdev(here):.1f} there"
    return [
        f"the paper is surprised that correct re-identifications rise by {_largest_rise(published):g} at {where}. Our "
        f"rows share their draws of the noise, and the largest such rise is {ours:.1f} on average{why}"
    ]


def _largest_rise(counts: Sequence[float]) -> float:
    return max(0.0, *(after - before for before, after in pairwise(counts)))


def _cs() -> list[float]:
    return [c for _, c in rows_of_table_4().values()]


def _shape(draws: Draws) -> list[str]:
    names = list(draws)
    ours = [fmean(values) for values in draws.values()]
    published = list(shape_figures(published_rows()).values())
    fall, early, questionable, _, swing, level, floor, _ = range(len(names))

    def told(i: int, unit: str = "%") -> str:
        return f"{ours[i]:.0f}{unit} (published {published[i]:.0f}{unit})"

    return [
        _verdict(
            "correct re-identifications fall, quickly at first and hardly from c = 0.1759 on",
            ours[fall] > 0 and ours[early] > 50,
            f"they fall by {told(fall)}, {told(early)} of it before c = {C_KNEE:g}",
        ),
        _verdict(
            "incorrect re-identifications do not depend on c",
            ours[swing] < CONSTANT * ours[level],
            f"largest less smallest is {told(swing, '')} around {told(level, '')}",
        ),
        _verdict(
            "questionable links decrease as c grows",
            ours[questionable] > 0,
            f"they fall by {told(questionable)}",
        ),
        _verdict(
            "however large the noise, some records stay re-identified",
            ours[floor] > 0,
            f"{told(floor)} of the targets at the largest c",
        ),
    ]


# Table 5, the critical c, the sweep.


def _artefact(draws: Draws) -> list[str]:
    return [
        "the formula of table 5 comes of a Taylor series cut after two terms, and is no critical value: at its c a "
        f"field uniform between 0 and its top code still agrees with probability {uniform_agreement():.4f}, whatever "
        "the tolerance, the range and the sd"
    ]


def _critical(draws: Draws) -> list[str]:
    rows = ("Moore, smallest", "Moore, most open values", "Moore, largest")
    his = ", ".join(f"{_mean(draws, row, 'c'):.4f}" for row in rows)
    left = [", ".join(f"{_mean(draws, row, LOST + rule):.1%}" for row in rows) for rule in ("", ONE_MAY)]
    shares = ", ".join(f"{epsilon:.0%}" for epsilon in EPSILONS)
    exact = [
        ", ".join(f"{_mean(draws, f'exact, {words}, {epsilon:.0%}', 'c'):.2f}" for epsilon in EPSILONS)
        for words in ("all agree", "one may disagree")
    ]
    return [
        f"the paper: above its c noise gains little. Beyond {his} larger noise still takes away {left[0]} of the "
        f"targets in the simulation, and {left[1]} where one field may disagree",
        f"exactly, no more than {shares} is to gain from c = {exact[0]} on, and from c = {exact[1]} where one field "
        "may disagree",
    ]


def _sweep(draws: Draws) -> list[str]:
    rows = [cell.partition(BETWEEN)[0] for cell in draws if cell.endswith("true record agrees")]
    falls = [a - b for a, b in pairwise(_mean(draws, row, "true record agrees") for row in rows)]
    steps = f"{falls[0]:.1f} at first and {falls[-1]:.1f} at the end"
    shrink = all(after <= before for before, after in pairwise(falls))
    kink = "each less than the one before" if shrink else "not always less than the one before"
    return [
        f"simulated less predicted correct links: {_off(draws, rows)} on average over the sweep",
        f"by steps of 0.001 of R0 the targets that agree fall by {steps}, {kink}: a field that stopped to mask at a "
        "c of its own would show as a kink",
    ]


def _off(draws: Draws, rows: Sequence[str]) -> str:
    """Return by how much the prediction is off, with its standard error over draws of the noise."""
    runs = list(zip(*(draws[f"{row}{BETWEEN}correct"] for row in rows), strict=True))
    predicted = [_mean(draws, row, "correct, predicted") for row in rows]
    off = [fmean(a - b for a, b in zip(run, predicted, strict=True)) for run in runs]
    error = f", standard error {stdev(off) / sqrt(len(off)):.1f}" if len(off) > 1 else ""
    return f"{fmean(off):+.1f}{error}"


# Codes and swapping.


def _uncoded_sentences(draws: Draws) -> list[str]:
    rows = list(dict.fromkeys(cell.partition(BETWEEN)[0] for cell in draws))
    told = [
        f"{_mean(draws, row, 'correct'):.0f} for {_mean(draws, row, 'correct, with codes'):.0f} at {row}"
        for row in (rows[0], rows[-1])
    ]
    return [f"without codes, correct links are {' and '.join(told)}"]


def _examples(draws: Draws) -> list[str]:
    table, rows = read_expected("moore")["examples"], list(draws)
    share, printed = rows[0], rows[7]
    return [
        f"misprint in section XII: 0.15 x 771 is {fmean(draws[share]):.2f}, not {table.published(share):g}; the "
        "answer, no swap, is the same",
        f"appendix B's SMP_PROB = 0.67 r_c / (match pairs) is inverted: it turns {fmean(draws[printed]):.2f} links "
        f"where {table.published(printed):g} are needed; r_c / (0.67 match pairs), about r_c / correct, turns them",
    ]


def _swapping_sentences(draws: Draws) -> list[str]:
    before, made, after = (
        _mean(draws, list(TOLERANCES)[-1], column)
        for column in ("correct before", "swaps made", "correct after")
    )
    found = f"{made:.0f} swaps, all that can be made, leave {after:.1f} of {before:.1f} correct links"
    values = _mean(draws, list(TOLERANCES)[-1], "values found after")
    return [
        _verdict("p = 1 masks all re-identifications", after == 0, found),
        "correct links are counted as Moore and Winkler do: the record is what was not exchanged (REGION, and all else "
        f"that a survey holds). The rows that carry the exchanged values of a target are still found {values:.1f} "
        f"times of {before:.1f}, however many are exchanged: an intruder learns nothing from them only where he knew "
        "every one of these values",
    ]


def _relaxed_sentences(draws: Draws) -> list[str]:
    return [_relaxed_field(draws, name) for name in RELAXED]


def _relaxed_field(draws: Draws, name: str) -> str:
    rows = [
        row for row in dict.fromkeys(cell.partition(BETWEEN)[0] for cell in draws) if row.startswith(name)
    ]
    correct = {row: _mean(draws, row, "correct, predicted") for row in rows}
    now, by_formula = rows[0], next(row for row in rows if row.endswith(BY_FORMULA))
    safe = [row for row in rows if row != by_formula and correct[row] <= correct[now] + LEAST][-1]
    return (
        f"{now}: {correct[now]:.1f} correct links expected. The most relaxed with no more is {safe} "
        f"({correct[safe]:.1f}); Moore's formula turned round gives {by_formula.removesuffix(BY_FORMULA)}"
        f"({correct[by_formula]:.1f})"
    )


STATEMENTS: dict[str, Callable[[Draws], list[str]]] = {
    "2": _noise,
    "moments": _growth,
    "4": _table_4,
    "shape": _shape,
    "factors": _misprint,
    "5": _artefact,
    "critical": _critical,
    "sweep": _sweep,
    "uncoded": _uncoded_sentences,
    "relaxed": _relaxed_sentences,
    "examples": _examples,
    "swapping": _swapping_sentences,
}
