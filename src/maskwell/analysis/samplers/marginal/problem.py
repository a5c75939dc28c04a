"""A model whose unknown numbers are normal given what was released: its records as the marginal sampler needs them.

Column k of the model of interest is c_k + sum_s e_s D_s[k] x: clean parts, and multipliers e_s times constant slopes of
the unknown numbers x. The covariate model has x ~ Normal(A' w, S), what was released is u = x + noise. Then x given u
is normal with mean m = (I - H) A' w + H u and variance V = (I - H) S, H = S (S + N)^-1 (Anderson 2003, section 2.5),
and the linear predictor is normal with mean sum_k b_k c_k + sum_s e_s b_s' m, b_s = D_s' b, and variance sum_st e_s e_t
b_s' V b_t: both are products of columns that never change with coefficients that do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

HALF_T_DF = 2.0  # of every standard deviation, as in `gibbs`

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


class NormalKind(NamedTuple):
    """Records `start` to `stop`, alike in which unknown numbers were released and in the covariance of their noise.

    Noise on the response has, given that of the predictors, mean `lean`' (u - x) and variance `extra`.
    """

    start: int
    stop: int
    seen: Bools
    noise: Floats
    lean: Floats
    extra: float


class Covariate(NamedTuple):
    """The equation of one unknown number: with coefficients k, it has mean (`clean` k + `shift`)' w + (`before` k)' x.

    `clean` is r x K, `before` q x K and empty but for the numbers before this one.
    """

    clean: Floats
    shift: Floats
    before: Floats


@dataclass(frozen=True, slots=True)
class MarginalProblem:
    """The records, sorted by kind; see the module for the letters. `fixed` is an offset of the linear predictor.

    `covariates` are the equations of the unknown numbers, in their order; x is less `centre`, and `order` says which
    record of the file each one is.
    """

    family: int
    response: Floats = field(repr=False)
    columns: Floats = field(repr=False)  # c: n x K
    multipliers: Floats = field(repr=False)  # e: n x S, the first of them 1
    slopes: Floats = field(repr=False)  # D: S x K x q
    released: Floats = field(repr=False)  # u: n x q, 0 where not seen
    clean: Floats = field(repr=False)  # w: n x r
    kinds: tuple[NormalKind, ...] = field(repr=False)
    covariates: tuple[Covariate, ...] = field(repr=False)
    fixed: Floats | None = field(default=None, repr=False)
    centre: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    order: Ints = field(default_factory=lambda: np.empty(0, np.int64), repr=False)

    def __len__(self) -> int:
        return len(self.response)


class NormalMoments(NamedTuple):
    """Cross products of a kind's records: u'u, w'u, w'w, and how many they are."""

    released: Floats
    mixed: Floats
    clean: Floats
    records: int


class Features(NamedTuple):
    """Columns whose products with coefficients are the means and variances of linear predictors.

    `means` are the distinct ones among c, e_s w, e_s u; `chosen` says which of these each one is. `pairs` are the
    e_s e_t, None where the only multiplier is 1.
    """

    means: Floats
    chosen: Ints
    pairs: Floats | None


def features_of(problem: MarginalProblem) -> Features:
    """Return the columns that means and variances are made of, each once."""
    multipliers = problem.multipliers
    blocks = [problem.columns]
    for s in range(multipliers.shape[1]):
        blocks.append(multipliers[:, s, None] * problem.clean)
        blocks.append(multipliers[:, s, None] * problem.released)
    every = np.hstack(blocks)
    chosen = np.empty(every.shape[1], np.int64)
    distinct: list[int] = []
    for j in range(every.shape[1]):
        same = [k for k, other in enumerate(distinct) if np.array_equal(every[:, j], every[:, other])]
        chosen[j] = same[0] if same else len(distinct)
        if not same:
            distinct.append(j)
    means = np.asfortranarray(every[:, distinct])  # products with vectors are quicker by columns
    if multipliers.shape[1] == 1:
        return Features(means, chosen, None)
    pairs = (multipliers[:, :, None] * multipliers[:, None, :]).reshape(len(problem), -1)
    return Features(means, chosen, np.asfortranarray(pairs))


def moments_of(problem: MarginalProblem) -> tuple[NormalMoments, ...]:
    """Return the cross products of every kind."""
    found = []
    for kind in problem.kinds:
        u, w = problem.released[kind.start : kind.stop], problem.clean[kind.start : kind.stop]
        found.append(NormalMoments(u.T @ u, w.T @ u, w.T @ w, kind.stop - kind.start))
    return tuple(found)


class Filter(NamedTuple):
    """Of a kind: the precision T of what was released, H = S T, V = (I - H) S, and log det of the released block."""

    precision: Floats
    gain: Floats
    left: Floats
    log_det: float


def filter_of(kind: NormalKind, covariance: Floats) -> Filter:
    """Return how what was released tells of the unknown numbers of a kind's records."""
    q, seen = len(covariance), np.flatnonzero(kind.seen)
    precision = np.zeros((q, q))
    block = (covariance + kind.noise)[np.ix_(seen, seen)]
    root = np.linalg.cholesky(block)
    inverse = np.linalg.inv(root)
    precision[np.ix_(seen, seen)] = inverse.T @ inverse
    gain = covariance @ precision
    return Filter(precision, gain, covariance - gain @ covariance, 2.0 * float(np.log(np.diag(root)).sum()))


def half_t(log_sds: Floats, scales: Floats) -> tuple[Floats, Floats]:
    """Return the log densities of the logs of half-t sds, and their slopes."""
    ratio = np.exp(2.0 * (log_sds - np.log(scales))) / HALF_T_DF
    log_density = log_sds - 0.5 * (HALF_T_DF + 1.0) * np.log1p(ratio)
    return log_density, 1.0 - (HALF_T_DF + 1.0) * ratio / (1.0 + ratio)
