"""The covariate model of a forecast: kinds given clean columns, numbers given both, fitted to the true records.

A kind is a combination of noised categories: P(kind | clean) is a multinomial logit, fitted by Newton's steps with a
little ridge (McCullagh and Nelder 1989, chapter 5); numbers given clean columns and kind are normal, by least squares.
Its parameters are unknown in `information`, which simulates from it. Made by `interval_forecast` where no closed form
holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...errors import BadPlan
from ..system import Floats, Ints
from .design_arrays import FormulaColumns, expression_values, loadings
from .glm import Family, OrdinaryFit
from .information import RECORDS, SimulatedModel, chances

# Combinations of categories; records that the logits are fitted to; Newton's steps
MOST_KINDS, MOST_FITTED, STEPS = 40, 50_000, 50
RIDGE = 1e-6  # of the records: holds the logits of kinds that clean columns tell for sure


@dataclass(frozen=True, slots=True)
class Kinds:
    """The combinations of noised categories that occur: codes (kinds x categories) and the kind of each record."""

    names: tuple[str, ...]
    codes: Floats
    member: Ints = field(repr=False)

    @classmethod
    def of(cls, values: Mapping[str, Floats], names: Sequence[str], count: int) -> Kinds:
        """List the combinations in a file."""
        if not names:
            return cls((), np.zeros((1, 0)), np.zeros(count, np.int64))
        found, member = np.unique(
            np.column_stack([values[name] for name in names]), axis=0, return_inverse=True
        )
        if len(found) > MOST_KINDS:
            raise BadPlan(
                f"the noised categories {', '.join(names)} have {len(found)} combinations, which are too many"
            )
        return cls(tuple(names), found, np.asarray(member).ravel().astype(np.int64))


def covariate_model(
    named: FormulaColumns,
    noised: tuple[Sequence[str], Sequence[str]],
    fitted: OrdinaryFit,
    family: Family,
    seed: int,
) -> tuple[SimulatedModel, Kinds]:
    """Fit the covariate model to complete true records; `noised` are the numbers and the categories."""
    numbers, categories = noised
    values = _complete(named, seed)
    count = len(next(iter(values.values())))
    kinds = Kinds.of(values, categories, count)
    clean = clean_columns(named.parsed, values, (*numbers, *categories))
    logits = fit_logits(clean, kinds.member, len(kinds.codes))
    indicators = kinds.member[:, None] == np.arange(1, len(kinds.codes))
    regressors = np.column_stack([clean, indicators])
    x = np.column_stack([values[name] for name in numbers]) if numbers else np.zeros((count, 0))
    coefficients = np.linalg.lstsq(regressors, x, rcond=None)[0]
    left = x - regressors @ coefficients
    at = np.random.default_rng([seed, 1]).integers(0, count, RECORDS)
    some = {name: column[at] for name, column in values.items()}
    bases, moves = _designs(named.parsed, some, kinds, numbers)
    spread = left.T @ left / count
    offset = 0.0 if named.parsed.offset is None else expression_values(named.parsed.offset, some, RECORDS)
    held = fitted.coefficients, fitted.variance, np.zeros(RECORDS) + offset
    return SimulatedModel(family, *held, clean[at], bases, moves, logits, coefficients, spread), kinds


def _complete(named: FormulaColumns, seed: int) -> dict[str, Floats]:
    """Return the columns of the model on complete records, on some of them where they are many."""
    values = {name: named.values[name] for name in named.columns}
    kept = np.flatnonzero(np.isfinite(np.column_stack(list(values.values()))).all(axis=1))
    if len(kept) > MOST_FITTED:
        kept = np.random.default_rng(seed).choice(kept, MOST_FITTED, replace=False)
    return {name: column[kept] for name, column in values.items()}


def _designs(
    parsed: Any, values: Mapping[str, Floats], kinds: Kinds, numbers: Sequence[str]
) -> tuple[Floats, Floats]:
    """Evaluate the design at every kind: with noised numbers at 0, and how it moves with them."""
    count = len(next(iter(values.values())))
    bases, moves = [], []
    for codes in kinds.codes:
        fixed = dict(zip(kinds.names, (np.full(count, code) for code in codes), strict=True))
        silent = {**values, **fixed, **{name: np.zeros(count) for name in numbers}}
        bases.append(np.column_stack([expression_values(node, silent, count) for node in parsed.columns]))
        moves.append(loadings(parsed.columns, silent, numbers))
    return np.array(bases), np.array(moves)


def clean_columns(parsed: Any, values: Mapping[str, Floats], noised: Sequence[str]) -> Floats:
    """Return the constant and the columns without noise, and what noised ones are multiplied by, none twice."""
    from scipy.linalg import qr

    from ..formulas.expression_trees import refs, split

    count = len(next(iter(values.values())))
    nodes = [node if not refs(node) & set(noised) else split(node, noised)[0] for node in parsed.columns]
    columns = [
        np.ones(count),
        *(expression_values(node, values, count) for node in nodes if not refs(node) & set(noised)),
    ]
    if parsed.offset is not None:
        columns.append(expression_values(parsed.offset, values, count))
    clean = np.column_stack(columns)
    sizes = np.sqrt((clean**2).mean(axis=0))
    clean = clean[:, sizes > 0] / sizes[sizes > 0]
    clean[:, 1:] *= 0.5  # so that the pivots begin with the constant
    triangle, order = qr(clean, mode="r", pivoting=True)
    kept = np.abs(np.diag(triangle)) > 1e-9 * abs(triangle[0, 0])
    return np.asarray(clean[:, np.sort(order[: len(kept)][kept])])


def fit_logits(clean: Floats, member: Ints, kinds: int) -> Floats:
    """Fit a multinomial logit model by Newton's steps, with a little ridge."""
    logits = np.zeros((kinds - 1, clean.shape[1]))
    if kinds == 1:
        return logits
    observed = (member[:, None] == np.arange(1, kinds)).astype(np.float64)
    ridge = RIDGE * len(clean)
    for _ in range(STEPS):
        shares = chances(clean, logits)[:, 1:]
        score = (observed - shares).T @ clean - ridge * logits
        step = np.linalg.solve(_curvature(clean, shares) + ridge * np.eye(logits.size), score.ravel())
        logits = logits + step.reshape(logits.shape) * min(1.0, 2.0 / max(float(np.abs(step).max()), 1e-12))
        if float(np.abs(step).max()) < 1e-8:
            break
    return logits


def _curvature(clean: Floats, shares: Floats) -> Floats:
    width, size = clean.shape[1], shares.shape[1] * clean.shape[1]
    out = np.empty((size, size))
    for j in range(shares.shape[1]):
        for k in range(shares.shape[1]):
            weights = shares[:, j] * ((j == k) - shares[:, k])
            block = clean.T @ (clean * weights[:, None])
            out[j * width : (j + 1) * width, k * width : (k + 1) * width] = block
    return out
