"""The reduced form of a linear system: a multivariate normal regression, drawn from in closed form.

Released numbers Y (records x d) given clean columns W are normal with mean W B and covariance T = S + N: that of the
true values plus the known one of the noise. Under a conjugate prior of (B, T), limited to T - N positive definite,
draws are independent: T from an inverse Wishart law, B given T from a matrix normal one (Zellner 1971, chapter 8), kept
where T - N is a covariance. Everything comes from the triangle R of [W Y] = Q R, which is made in one pass. Used by
`sampler`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

LEAST_ACCEPTANCE = 0.01  # below: noise as large as the signal, and rejection is no way to sample
PROPOSALS = 4096  # drawn together
TRIED = 4 * PROPOSALS  # before the acceptance is judged


@dataclass(frozen=True, slots=True)
class Conjugate:
    """A prior of the reduced form: T ~ inverse Wishart(`df`, `scale`), B given T matrix normal.

    The columns of B have mean `mean` and precision `precision` (times the covariance T between columns). The default
    (None: 1 - d degrees of freedom, scale and precision 0) has density 1 / det T: with no noise the posterior of
    the last column given the others is then that of ordinary least squares, n - k degrees of freedom and all.
    """

    df: float | None = None
    scale: Floats | None = field(default=None, repr=False)
    precision: Floats | None = field(default=None, repr=False)
    mean: Floats | None = field(default=None, repr=False)


class ReducedData(NamedTuple):
    """What is left of the data: triangles of W and of Y given W, coefficients, degrees of freedom."""

    clean: Floats
    coefficients: Floats
    residual: Floats
    df: float


class ReducedDraws(NamedTuple):
    """Draws x (clean columns x d) of B, draws x (d x d) lower roots of S, log det T, the share of proposals kept."""

    coefficients: Floats
    roots: Floats
    log_det: Floats
    acceptance: float

    def at(self, chosen: Ints) -> ReducedDraws:
        """Return some of the draws."""
        return self._replace(
            coefficients=self.coefficients[chosen], roots=self.roots[chosen], log_det=self.log_det[chosen]
        )


def triangle_of(matrix: Floats) -> Floats:
    """Return R of a QR decomposition."""
    found: Any = np.linalg.qr(matrix, mode="r")
    return np.asarray(found, np.float64)


def triangle(blocks: Iterable[Floats]) -> Floats:
    """Return R of the QR decomposition of blocks of records, one under the other, holding one block at a time."""
    found: Floats | None = None
    for block in blocks:
        found = triangle_of(block if found is None else np.vstack([found, block]))
    if found is None:
        raise ValueError("no records")
    return found


def reduce(clean: Floats, released: Floats, records: int, prior: Conjugate) -> ReducedData:
    """Add the prior to the data: to W and Y, or to the columns of any R with the same products."""
    r, d = clean.shape[1], released.shape[1]
    rows, df = [np.hstack([clean, released])], float(records - r)
    df += 1 - d if prior.df is None else prior.df
    if prior.precision is not None:
        root = np.linalg.cholesky(prior.precision).T
        centre = np.zeros((r, d)) if prior.mean is None else prior.mean
        rows.append(np.hstack([root, root @ centre]))
        df += r
    if prior.scale is not None:
        rows.append(np.hstack([np.zeros((d, r)), np.linalg.cholesky(prior.scale).T]))
    rows.append(np.zeros((r + d, r + d)))  # so that the triangle is square whatever the rows
    whole = triangle([np.vstack(rows)])
    left = whole[:r, :r]
    middle = np.asarray(np.linalg.solve(left, whole[:r, r:]), np.float64)
    return ReducedData(left, middle, whole[r:, r:], df)


def draw_reduced(
    reduced: ReducedData, noise: Floats, size: int, rng: np.random.Generator
) -> ReducedDraws | None:
    """Draw `size` times from the posterior; None where less than 1% of the proposals leave a covariance."""
    kept: list[tuple[Floats, Floats, Floats]] = []
    have = tried = 0
    while have < size:
        count = min(PROPOSALS, max(64, size - have))
        coefficients, totals, logs = _propose(reduced, count, rng)
        roots, good = lower_roots(totals - noise)
        kept.append((coefficients[good], roots[good], logs[good]))
        have, tried = have + int(good.sum()), tried + count
        if tried >= TRIED and have < LEAST_ACCEPTANCE * tried:
            return None
    found = [np.concatenate([part[which] for part in kept])[:size] for which in (0, 1, 2)]
    return ReducedDraws(found[0], found[1], found[2], have / tried)


def _propose(reduced: ReducedData, count: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    """Draw B, T and log det T: T^-1 is Wishart by Bartlett's decomposition, B given T has rows of covariance T."""
    r, d = reduced.coefficients.shape
    bartlett = np.zeros((count, d, d))
    below = np.tril_indices(d, -1)
    bartlett[:, below[0], below[1]] = rng.standard_normal((count, len(below[0])))
    diagonal = np.arange(d)
    bartlett[:, diagonal, diagonal] = np.sqrt(rng.chisquare(reduced.df - diagonal, (count, d)))
    roots = np.linalg.solve(bartlett, np.broadcast_to(reduced.residual, (count, d, d)))
    spread = np.linalg.solve(reduced.clean, rng.standard_normal((count, r, d)) @ roots)
    logs = np.log(np.abs(np.diag(reduced.residual))).sum() - np.log(bartlett[:, diagonal, diagonal]).sum(
        axis=1
    )
    return reduced.coefficients + spread, roots.transpose(0, 2, 1) @ roots, 2.0 * logs


def lower_roots(matrices: Floats) -> tuple[Floats, Bools]:
    """Return lower Cholesky roots of many symmetric matrices, and which of them are positive definite."""
    count, d, _ = matrices.shape
    roots, good = np.zeros((count, d, d)), np.ones(count, bool)
    for j in range(d):
        done = roots[:, j, :j]
        pivot = matrices[:, j, j] - np.einsum("ij,ij->i", done, done)
        good &= pivot > 1e-12 * np.abs(matrices[:, j, j])
        roots[:, j, j] = np.sqrt(np.where(good, pivot, 1.0))
        rest = matrices[:, j + 1 :, j] - np.einsum("ikl,il->ik", roots[:, j + 1 :, :j], done)
        roots[:, j + 1 :, j] = rest / roots[:, j, j, None]
    return roots, good


def regressions(roots: Floats, j: int) -> Floats:
    """Return, for many lower roots of S, the coefficients of column j of Y on the columns before it."""
    before = roots[:, :j, :j].transpose(0, 2, 1)
    return np.asarray(np.linalg.solve(before, roots[:, j, :j, None])[:, :, 0], np.float64)
