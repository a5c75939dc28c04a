"""Can a logistic model tell the released records from the true ones? The propensity score and its pMSE.

Both files are stacked and a logistic model of "is a released record" is fitted: all columns, squares and products of
the numbers, indicators of closed values and of categories. The mean squared difference of its chances from the share c
of released records is the pMSE (Woo, Reiter, Oganian and Karr 2009). Where the released records are drawn from a law
that was fitted to the true ones, it has the mean (k - 1)(1 - c)^2 c / N and the sd sqrt(2 (k - 1)) (1 - c)^2 c / N, k
the parameters and N all records (Snoke, Raab, Nowok, Dibben and Slavkovic 2018): only the released ones vary there. Two
independent samples of one law have 1 / (1 - c) times as much, which is 2 where both have the same size. Masked records
are the same people as the true ones, so that differences cancel which those of other people would have: without any
mask the ratio is 0, not 1, and a ratio below 1 / (1 - c) says that the mask moves less than taking other people would.
Called by `comparison`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from ..masking.results import Integers
from ..table import Floats
from .pairs import TruthAndRelease
from .results import Propensity

# Records of each file: the ratio grows with the records, so that large files are made comparable
LARGEST = 20_000
MOST_PRODUCTS, MOST_LEVELS = 60, 30  # products of numbers; levels of a category that have an indicator
# Of reweighted least squares; change that ends them; a trace, so that separation ends too
STEPS, SETTLED, RIDGE = 30, 1e-8, 1e-8
FLAT = 1e-9  # eigenvalues of the design's correlations below this are no parameter


def propensity(sides: TruthAndRelease, seed: int = 0) -> Propensity:
    """Fit the model and return its pMSE beside that of records drawn from a law fitted to the true ones."""
    first, second = _sampled_records(sides, seed)
    design = _design(sides, first, second)
    released = np.append(np.zeros(len(first)), np.ones(len(second)))
    whole = len(sides.truth)
    sampled = len(first) if len(first) < whole else None
    if design.shape[1] == 0 or not len(second):
        return Propensity(0.0, 0.0, 0.0, 1, len(released), sampled)
    basis = _basis(design)
    chances = _logistic(basis, released)
    share, count = float(released.mean()), len(released)
    parameters = basis.shape[1] + 1
    unit = (1 - share) ** 2 * share / count
    return Propensity(
        pmse=float(((chances - share) ** 2).mean()),
        expected=(parameters - 1) * unit,
        sd=sqrt(2 * (parameters - 1)) * unit,
        parameters=parameters,
        records=count,
        sampled=sampled,
        two_samples=1 / (1 - share),
    )


def _sampled_records(sides: TruthAndRelease, seed: int) -> tuple[Integers, Integers]:
    """Return which true and which released records the model sees: the same people where all are released."""
    whole, leaving = len(sides.truth), len(sides.after(sides.columns[0].name)) if sides.columns else 0
    rng = np.random.default_rng([seed, 20180331])
    if whole <= LARGEST:
        return np.arange(whole), np.arange(leaving)
    first = np.sort(rng.choice(whole, LARGEST, replace=False))
    if not sides.subsampled:
        return first, first
    if leaving <= LARGEST:
        return first, np.arange(leaving)
    return first, np.sort(rng.choice(leaving, LARGEST, replace=False))


def _design(sides: TruthAndRelease, first: Integers, second: Integers) -> Floats:
    """Return the columns of the model for both files, one below the other, in sds about the true means."""
    numbers = [c.name for c in sides.columns if c.is_number]
    parts, amounts = list[Floats](), list[Floats]()
    for name in numbers:
        x, z = sides.before(name)[first], sides.after(name)[second]
        stacked = np.append(x, z)
        closed = np.isnan(stacked)
        sd = float(np.nanstd(x)) if (~np.isnan(x)).any() else 0.0
        centre = float(np.nanmean(x)) if sd > 0 else 0.0
        amount = np.where(closed, 0.0, (stacked - centre) / (sd or 1.0))
        amounts.append(amount)
        if (
            name in sides.touched or sides.subsampled
        ):  # else the same in both files: only its products can tell
            parts += [amount, amount**2, closed.astype(np.float64)]
    parts += _products(sides, numbers, amounts, len(first))
    for column in sides.columns:
        if not column.is_number:
            parts += _indicators(sides, column.name, first, second)
    return np.column_stack(parts) if parts else np.zeros((len(first) + len(second), 0))


def _products(
    sides: TruthAndRelease, numbers: Sequence[str], amounts: Sequence[Floats], count: int
) -> list[Floats]:
    """Return products of pairs with a touched column; of many, those that hang together most in the truth."""
    pairs = [
        (i, j)
        for i in range(len(numbers))
        for j in range(i)
        if numbers[i] in sides.touched or numbers[j] in sides.touched
    ]
    if len(pairs) > MOST_PRODUCTS:
        strength = [abs(float(amounts[i][:count] @ amounts[j][:count])) for i, j in pairs]
        pairs = [pairs[at] for at in np.argsort(strength)[::-1][:MOST_PRODUCTS]]
    return [amounts[i] * amounts[j] for i, j in pairs]


def _indicators(sides: TruthAndRelease, name: str, first: Integers, second: Integers) -> list[Floats]:
    """Return indicators of the levels of a category; one whose levels were renamed has nothing to compare."""
    before, after = sides.truth.schema[name], sides.masked.schema[name]
    if name not in sides.touched and not sides.subsampled:
        return []  # the same in both files, and in no product: nothing to tell them apart by
    if before.kind != "category" or not set(after.categories) & set(before.categories):
        return []
    places = [
        before.categories.index(label) if label in before.categories else -1 for label in after.categories
    ]
    z = sides.after(name)[second]
    turned = np.where(np.isnan(z), np.nan, np.array(places, np.float64)[np.nan_to_num(z).astype(np.int64)])
    stacked = np.append(sides.before(name)[first], turned)
    levels, counts = np.unique(stacked[~np.isnan(stacked)], return_counts=True)
    kept = levels[np.argsort(counts)[::-1][:MOST_LEVELS]]
    return [(stacked == level).astype(np.float64) for level in kept]


def _basis(design: Floats) -> Floats:
    """Return uncorrelated columns that span the design without its mean: no parameter is counted twice."""
    design = design - design.mean(axis=0)
    sds = design.std(axis=0)
    design = design[:, sds > 0] / sds[sds > 0]
    values, vectors = np.linalg.eigh(design.T @ design / len(design))
    kept = values > FLAT * max(float(values[-1]), 1e-300) if len(values) else np.zeros(0, bool)
    return np.asarray(design @ (vectors[:, kept] / np.sqrt(values[kept])))


def _logistic(basis: Floats, y: npt.NDArray[np.float64]) -> Floats:
    """Return the fitted chances by iteratively reweighted least squares; a trace of a ridge holds separated columns."""
    x: Any = np.column_stack([np.ones(len(y)), basis])
    beta = np.zeros(x.shape[1])
    share = float(y.mean())
    beta[0] = np.log(share / (1 - share))
    ridge = RIDGE * len(y) * np.eye(x.shape[1])
    ridge[0, 0] = 0.0
    height = -np.inf
    chances = np.full(len(y), share)
    for _ in range(STEPS):
        weights = np.maximum(chances * (1 - chances), 1e-10)
        score = x.T @ (y - chances) - ridge @ beta
        step = np.linalg.solve(x.T @ (x * weights[:, None]) + ridge, score)
        for _ in range(20):
            eta = x @ (beta + step)
            reached = float(
                y @ eta - np.logaddexp(0.0, eta).sum() - (beta + step) @ ridge @ (beta + step) / 2
            )
            if reached >= height - 1e-9 * abs(height):
                break
            step = step / 2
        beta = beta + step
        chances = np.asarray(0.5 * (1.0 + np.tanh(eta / 2)))
        if reached - height < SETTLED * abs(reached):
            break
        height = reached
    return chances
