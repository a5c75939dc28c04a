"""The checks of an audit that the tests of residuals make: each the least adjusted p-value of some families.

A check's figure is the least p-value, adjusted for all tests, among those whose effect is large enough to warn. It
fails where a test whose effect is large enough to fail has so small a p-value too (`surely`). Adjusted p by Bonferroni
in `ledger`. Chosen by `catalogue`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...notes import Note
from ..evidence import Evidence
from ..findings import Limits
from ..protocol import Check, CheckFigure
from .battery import Battery, battery
from .digit_families import STEPS
from .families import TEN
from .ledger import FAMILIES, Ledger, LedgerLine
from .residue_matches import LARGEST, LARGEST_OF_THREE, LARGEST_OF_TWO

NOTHING = float("nan")
FAIL_P, WARN_P = 1e-5, 1e-3  # adjusted for all tests of a release
MOST_SHOWN = 8
SIZES = (30, 300, 3_000)  # of classes for which is said what would have been seen
REASON = (
    "1e-5 for a whole release over all tests: one in a hundred thousand clean ones fails, and an effect that helps "
    "nobody does not"
)
NEARLY_TRUE = (
    0.001,
    0.02,
)  # of the noise's sd: what is left of it in records of which is said how many would be seen
FORMATS = {
    "mean": "the noise is off centre by {:.2g} of its sds",
    "sd ratio": "the noise has {:.2f} times the sd that the card says",
    "largest score": "one value lies {:.1f} sds out",
    "correlation": "the correlation is {:.2f}",
    "sd ratio of halves off by": "the noise of one half is {:.0%} larger than that of the other",
    "intraclass correlation": "the intraclass correlation of the noise is {:.2f}",
    "misfit of the shape": "its shape misfits by {:.2f}",
    "misfit of the digits": "its last digits go with those of the truth (misfit {:.2f})",
    "share of the noise missing from sums": "{:.0%} of the noise is missing from sums",
    "share of the records in step": "{:.0%} of the records are in step",
    "share of cells beyond what the law explains": "{:.1%} of the cells more than the law explains",
    "share of records beyond what the law explains": "{:.1%} of the records more than the law explains",
    "times the expected count": "{:.1f} times off",
    "times the expected pairs": "{:.3g} times as many",
}


def impossible_values(evidence: Evidence) -> CheckFigure:
    """Count released values that the law on the card cannot give, or that do not fit together."""
    made = battery(evidence)
    counts = {
        (name, reason): float(count)
        for name, reasons in made.impossible.items()
        for reason, count in reasons.items()
    }
    if not counts and not made.scored:
        return CheckFigure(NOTHING, _no_law(made))
    if not counts:
        return CheckFigure(0.0, "every released value is one that the law on the card can give")
    worst = max(counts, key=lambda pair: counts[pair])
    name, reason = worst
    said = f"{int(counts[worst]):,} released values of {name} are {reason}: the card does not describe this release"
    return CheckFigure(counts[worst], said, name, {": ".join(pair): count for pair, count in counts.items()})


def residual_check(
    families: tuple[str, ...], what: str, digits: bool | None = None
) -> Callable[[Evidence], CheckFigure]:
    """Return the function that makes a check of some families."""

    def measure(evidence: Evidence) -> CheckFigure:
        return _family_figure(battery(evidence), families, what, digits)

    return measure


def _family_figure(made: Battery, families: tuple[str, ...], what: str, digits: bool | None) -> CheckFigure:
    ledger = made.ledger
    tests = sum(ledger.counts[family] for family in families)
    if not made.scored or not tests:
        return CheckFigure(NOTHING, _no_law(made))
    lines = list(ledger.of(families, digits))
    if not lines:
        return CheckFigure(1.0, f"no sign of {what} in {tests:,} tests", surely=1.0)
    surely = min((ledger.adjusted(line) for line in lines if line.fails), default=1.0)
    # Lines that fail come first; where none of them is sure enough, the least p-value of all is what warns.
    worst = lines[0] if surely < FAIL_P else min(lines, key=ledger.adjusted)
    p = min(ledger.adjusted(line) for line in lines)
    figures = {_label(line): ledger.adjusted(line) for line in lines[:MOST_SHOWN]}
    if p >= WARN_P:
        said = f"no sign of {what} in {tests:,} tests: the least p-value is {p:.2g}, adjusted for all of them"
        return CheckFigure(p, said, "", figures, surely=surely)
    return CheckFigure(p, _ledger_sentence(ledger, worst, what), worst.column, figures, surely=surely)


def _ledger_sentence(ledger: Ledger, line: LedgerLine, what: str) -> str:
    adjusted = ledger.adjusted(line)
    chance = "below 1e-300" if adjusted < 1e-300 else f"{adjusted:.1g}"
    where = f" ({line.where}, {line.records:,} records)" if line.where else f" ({line.records:,} records)"
    effect = FORMATS[line.measure].format(line.shown)
    return f"{what} in {line.column}{where}: {effect}; by the card that has a chance of {chance}"


def _label(line: LedgerLine) -> str:
    return f"{line.column}, {line.where}: {line.measure} {line.shown:.3g}"


def _no_law(made: Battery) -> str:
    if made.scored:
        return "no masked column is a number on a unit whose values this could be seen in"
    if not made.untested:
        return "no column carries noise: there are no residuals to test"
    return "no masked column has a law on the card that residuals could be tested against"


def residual_notes(evidence: Evidence) -> tuple[Note, ...]:
    """Say what the tests of residuals could have seen, and which columns they did not look at."""
    made = battery(evidence)
    notes = []
    if made.scored and made.ledger.tests:
        notes += [_power(made), *_few_records(made), *_residues(made), Note("checks.not_seen")]
    if made.untested:
        notes.append(Note("checks.untested", {"columns": made.untested}))
    notes += [
        Note("checks.tested_one_by_one", {"columns": names, "why": why})
        for names, why in made.marginals_only.items()
    ]
    notes += [
        Note("checks.cells_drawn", {"column": name, "drawn": made.scored[name], "cells": cells})
        for name, cells in made.chosen.items()
    ]
    notes += [
        Note("checks.not_continued", {"column": name, "why": why}) for name, why in made.not_continued.items()
    ]
    return tuple(notes)


def _power(made: Battery) -> Note:
    """Say which sd ratios and means would have failed in so many records."""
    from scipy.special import gammaincinv, ndtri

    chance = FAIL_P / (max(made.ledger.counts["classes"], 1) * len(FAMILIES))
    seen = tuple(
        {
            "records": size,
            "sd_ratio": float((2 * gammaincinv(size / 2, chance / 2) / size) ** 0.5),
            "mean_over_sd": float(-ndtri(chance / 2)) / size**0.5,
        }
        for size in SIZES
        if size <= made.records
    )
    part = made.records if made.is_part else None
    return Note("checks.power", {"tests": made.ledger.tests, "records": part, "seen": seen})


def _few_records(made: Battery) -> tuple[Note, ...]:
    """Say how many records with hardly any noise would have failed in one column, whoever they are.

    With a share t of the noise, 68% of them lie within t sds of the truth, and of n records 0.8 t n do by chance.
    """
    from scipy.special import pdtrc

    if not made.ledger.counts["left true"]:
        return ()
    chance = FAIL_P / (made.ledger.counts["left true"] * len(FAMILIES))
    seen = []
    for share in NEARLY_TRUE:
        mean, near = made.records * (2 * share) * (2 * math.pi) ** -0.5, 0.68
        further = next(k for k in range(TEN, made.records + TEN) if pdtrc(mean + k - 1, mean) < chance)
        seen.append({"records": math.ceil(further / near), "share": share})
    return (Note("checks.few_records", {"seen": tuple(seen)}),)


def _residues(made: Battery) -> tuple[Note, ...]:
    """Say in how many records residues modulo many numbers were looked at, and which share would have failed."""
    drawn = made.residues
    if drawn is None:
        return ()
    tests = made.ledger.counts["congruences"] * drawn.sums * len(FAMILIES)
    share = min(1.0, (math.log(tests / FAIL_P) / drawn.records) ** 0.5)
    kept = {"moduli": drawn.moduli, "records": drawn.records, "share": max(share, STEPS.fail)}
    largest = {"one": LARGEST, "two": LARGEST_OF_TWO, "three": LARGEST_OF_THREE}
    return (
        Note("checks.residues", kept),
        Note("checks.residue_functions", {"records": made.matched} | largest),
    )


def _check(name: str, families: tuple[str, ...], what: str, remedy: str, digits: bool | None = None) -> Check:
    limits = Limits(WARN_P, FAIL_P, below=True, reason=REASON)
    return Check(name, limits, remedy, residual_check(families, what, digits))


AGAIN = "Mask again with maskwell's own draw, and release with the card that was drawn from"

CHECKS: tuple[Check, ...] = (
    Check(
        "impossible values",
        Limits(fail=0.0, reason="a single value that the law cannot give shows that the card does not hold"),
        f"{AGAIN}.",
        impossible_values,
    ),
    _check(
        "noise against the card",
        ("whole", "bins", "tails"),
        "noise of another size or shape than the card says",
        f"{AGAIN}; a card of other noise misleads every analyst, and less noise than it says hides nobody.",
        digits=False,
    ),
    _check(
        "nearly true values",
        ("left true",),
        "values left as they were, or nearly so,",
        "Give noise to every cell of a column or to none; check that the mask reached every record.",
    ),
    _check(
        "noise by class",
        (
            "own values",
            "classes",
            "residues",
            "trends",
            "trends in classes",
            "lags",
            "signs",
            "noise matches",
            "fine digits",
            "turns",
            "products",
            "coincidences",
        ),
        "noise that depends on who the record is",
        f"{AGAIN}: noise that is smaller, or of one sign, in a part of the file gives that part away.",
        digits=False,
    ),
    _check(
        "noise shared",
        ("repeats", "neighbours", "groups", "between", "spectra"),
        "noise that several records or columns share",
        f"{AGAIN}: who knows one true value of those that share a noise has the others.",
    ),
    _check(
        "digits",
        ("whole", "bins", "tails", "classes", "digits", "steps", "congruences", "matches"),
        "last digits that are not those of the noise",
        "Round released values after the noise, and let nothing of a true value or a record number into them, nor into "
        "the order in which records leave.",
        digits=True,
    ),
)
