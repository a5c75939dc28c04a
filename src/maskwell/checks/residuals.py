"""Checks of single columns: cells left true, values off the unit, noise that an affine fit undoes.

Shares of cells with z = x less what the law predicts, in standard errors of a binomial share; sd of what a
least-squares fit of z on x leaves, over the sd of x (own derivation). Called by `noise_checks`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..laws import Additive, Classes
from ..laws.chain import combined_of
from ..laws.transform import on_unit
from ..table import Floats
from .evidence import Evidence
from .protocol import CheckFigure
from .scales import drawn_again, errors, is_of_whole_file, law_of, noised_columns

FEWEST = 20  # records below which a figure would say nothing
NOTHING = float("nan")
SURE = 4.0  # standard errors from which on a difference is no accident


def cells_left_true(evidence: Evidence) -> CheckFigure:
    """Measure the share of masked cells that left with their true value, beyond what the card's law predicts.

    Beside the residuals' own count (nearly true values): one test a column, so that 4 standard errors are enough on a
    coarse unit; a law that spares some values, which is sound against itself; categories, and columns without a law.
    """
    excess: dict[str, float] = {}
    shares: dict[str, float] = {}
    sample = evidence.sample(purpose=(1,))
    for name in evidence.masked_columns:
        if name in dict(evidence.masking.card.recomputed) or not _comparable(evidence, name):
            continue
        seen = _left_true(evidence, name, sample)
        if seen is not None:
            excess[name], shares[name] = seen
    if not excess:
        return CheckFigure(
            NOTHING, "no masked column can be compared value by value: nothing was said of cells left true"
        )
    worst = max(excess, key=lambda name: (excess[name], shares[name]))
    said = (
        f"{shares[worst]:.2%} of the open cells of {worst} left with their true value, "
        f"{excess[worst]:.2%} more than the noise on the card explains"
        if excess[worst] > 0
        else f"no column has more true values left than its noise explains (most: {worst}, {shares[worst]:.2%})"
    )
    return CheckFigure(excess[worst], said, worst, excess, evidence.looked_at(sample))


def _comparable(evidence: Evidence, name: str) -> bool:
    law = combined_of(evidence.masking.card.law_of(name))
    if name not in evidence.masking.truth.schema or isinstance(law, Classes):
        return False
    if law is None and not evidence.masking.truth.schema[name].is_number:
        return False  # how many categories a random change leaves, only its law can say
    silent = isinstance(law, Additive) and not law_of(evidence, name).noise.covariance.any()
    return not silent and evidence.masking.masked.schema[name].kind != "text"


def _left_true(evidence: Evidence, name: str, sample: Any) -> tuple[float, float] | None:
    """Return the excess of one column over what its law predicts (0 within the sampling error), and its share."""
    whole = is_of_whole_file(evidence, name)
    part = slice(None) if whole else sample
    x, z = _as_true(evidence, name, evidence.true(name)[part]), evidence.noised(name)[part]
    known = ~(np.isnan(x) | np.isnan(z))
    count = int(known.sum())
    if count < FEWEST:
        return None
    share = float((x[known] == z[known]).mean())
    times = 1 if whole else int(np.clip(20_000 // count, 1, 10))
    drawn = drawn_again(evidence, name, times, part)
    by_law = _without_law(x[known], z[known]) if drawn is None else _by_law(evidence, name, drawn, x, part)
    error = np.sqrt(max(by_law * (1 - by_law), 1 / count) / count * (1 + 1 / times))
    return (share - by_law if share - by_law > SURE * error else 0.0), share


def _as_true(evidence: Evidence, name: str, codes: Floats) -> Floats:
    """Write true category codes as those that the release has for the same categories, where it has other ones."""
    before, after = evidence.masking.truth.schema[name], evidence.masking.masked.schema[name]
    if before.kind != "category" or after.kind != "category" or before.categories == after.categories:
        return codes
    place = {label: float(i) for i, label in enumerate(after.categories)}
    table = np.array([*(place.get(label, -1.0) for label in before.categories), np.nan])
    return np.asarray(table[np.where(np.isnan(codes), -1, codes).astype(np.int64)])


def _by_law(evidence: Evidence, name: str, drawn: Floats, x: Floats, part: Any) -> float:
    """Return the share of cells that the law leaves true; a number that it gives no noise at all is no excuse."""
    law, known = law_of(evidence, name), ~np.isnan(x)
    left, same = ~np.isnan(drawn[:, known]), drawn[:, known] == x[known]
    spread = law.spreads[0] if isinstance(law, Additive) and law.spreads else None
    if spread is not None and not law.categories:
        same &= spread.factor(evidence.true(name)[part][known]) > 0
    return float(same.sum() / max(left.sum(), 1))


def _without_law(x: Floats, z: Floats) -> float:
    """Return the share that normal noise of the size of the others would leave true by rounding."""
    from math import erf

    from ..io.identities import decimal_unit

    moved = (z - x)[z != x]
    unit = decimal_unit(z)
    if unit is None or not len(moved):
        return 0.0
    spread = float(np.sqrt(np.mean(moved**2)))
    return erf(unit / 2 / spread / 2**0.5)


def off_the_unit(evidence: Evidence) -> CheckFigure:
    """Count released values that do not lie on the declared unit; all, where the truth has one and they have none.

    Residuals know the law's unit alone: a law without one, on a truth that has one, is sound against itself.
    """
    counts: dict[str, float] = {}
    for name in evidence.masked_columns:
        z = evidence.released(name) if evidence.masking.masked.schema[name].is_number else np.empty(0)
        z = z[~np.isnan(z)]
        if not len(z):
            continue
        if (unit := _unit(evidence, name)) is not None:
            near = np.maximum(np.abs(z), float(unit)) * 1e-12
            counts[name] = float(np.count_nonzero(np.abs(on_unit(z, unit) - z) > near))
        elif name in evidence.masking.truth.schema and _has_unit(evidence.true(name)):
            counts[name] = 0.0 if _has_unit(z) else float(len(z))
    if not counts:
        return CheckFigure(
            NOTHING, "no masked number has a unit, declared or seen: give it one in the schema"
        )
    worst = max(counts, key=lambda name: counts[name])
    said = (
        f"{int(counts[worst]):,} released values of {worst} lie off its unit: their further digits tell of the "
        "true values and the noise"
        if counts[worst]
        else f"every released value of {len(counts)} masked columns lies on its unit"
    )
    return CheckFigure(counts[worst], said, worst if counts[worst] else "", counts)


def _unit(evidence: Evidence, name: str) -> Any:
    """Return the unit that the release declares, that of the law, or that of the truth."""
    law, truth = law_of(evidence, name), evidence.masking.truth.schema
    unit = evidence.masking.masked.schema[name].step
    if unit is None and isinstance(law, Additive):
        unit = law.outlets[0].unit
    return truth[name].step if unit is None and name in truth and truth[name].is_number else unit


def _has_unit(values: Floats) -> bool:
    """Whether values are decimal numbers of a few digits, as written by people."""
    from ..io.identities import decimal_unit

    return decimal_unit(values) is not None


def affine_noise(evidence: Evidence) -> CheckFigure:
    """Measure what is left of each released column after the best affine function of the true masked columns.

    Residuals cannot say it: a card of hardly any noise describes a release that has hardly any.
    """
    names, sample = noised_columns(evidence), evidence.sample(purpose=(2,))
    x, e = errors(evidence, names, sample)
    left = {name: _left_after_fit(x, e, j) for j, name in enumerate(names)}
    left = {name: value for name, value in left.items() if not np.isnan(value)}
    if not left:
        return CheckFigure(NOTHING, "no masked number has enough open values for a fit")
    worst = min(left, key=lambda name: left[name])
    said = (
        f"after an affine fit to the true values {left[worst]:.1%} of the sd of {worst} is left: who knows a few true "
        "values undoes everything but that"
    )
    return CheckFigure(left[worst], said, worst, left, evidence.looked_at(sample))


def _left_after_fit(x: Floats, e: Floats, j: int) -> float:
    """Return the sd of z left after a fit on x (its own, or all columns where more is undone), over the sd of x."""
    z = x[:, j] + e[:, j]
    own, every = [j], list(range(x.shape[1]))
    found = []
    for columns in (own, every):
        known = ~np.isnan(z) & ~np.isnan(x[:, columns]).any(axis=1)
        if known.sum() < FEWEST + 10 * len(columns) or np.ptp(x[known, j]) == 0:
            continue
        inside = x[known][:, columns]
        scale = inside.std(axis=0)
        design = np.column_stack(
            [np.ones(len(inside)), (inside - inside.mean(axis=0)) / np.where(scale, scale, 1)]
        )
        rest = z[known] - design @ np.linalg.lstsq(design, z[known], rcond=None)[0]
        found.append(float(np.sqrt(rest @ rest / (len(rest) - design.shape[1])) / x[known, j].std()))
    return min(found, default=NOTHING)
