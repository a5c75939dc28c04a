"""What every correction works on: a response, its design, and how both move with the noise of some variables.

For a contrast k of (response, design) with loadings L and noise covariance C the noise of k has covariance L C L'k with
all of them (Fuller 1987, section 2.2); `noise_moments` sums L C L' over the records. Made by `design_arrays`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ...notes import Note
from ..system import Floats
from .glm import Data

Draw = Callable[[int], Floats]


@dataclass(frozen=True, slots=True)
class CorrectionProblem:
    """Released records as arrays, slopes and offsets of the noise undone.

    Response and design are linear in the noised variables: `loadings` (records x (1 + columns) x variables) says how
    the response (first) and each column of the design move with each variable. A clean column has loadings of 0, a
    noised one of 1, its interaction with a clean column the values of that. `covariance` is that of the noise, either
    variables x variables or, where it varies, records x variables x variables. `draw(number)` draws fresh noise of
    all records, the same for the same number; it is None where noise cannot be drawn without the true values.
    """

    names: tuple[str, ...]
    data: Data
    loadings: Floats = field(repr=False)
    variables: tuple[str, ...] = ()
    values: Floats = field(repr=False, default_factory=lambda: np.zeros((0, 0)))
    covariance: Floats = field(repr=False, default_factory=lambda: np.zeros((0, 0)))
    draw: Draw | None = field(repr=False, default=None)
    notes: tuple[Note, ...] = ()

    def __len__(self) -> int:
        return len(self.data.y)

    @property
    def is_constant(self) -> bool:
        """Whether every record has the same covariance of its noise."""
        return self.covariance.ndim == 2

    def noise_along(self, contrast: Floats) -> Floats:
        """Return for each record the covariance of its (response, design) noise with that of a contrast of them."""
        along = np.einsum("nkq,k->nq", self.loadings, contrast)
        spread = along @ self.covariance if self.is_constant else _times(self.covariance, along)
        return np.asarray(np.einsum("nkq,nq->nk", self.loadings, spread))

    def noise_moments(self) -> Floats:
        """Return the weighted sum over the records of the covariance of the noise of response and design."""
        width, weights = self.loadings.shape[1], self.data.weights
        columns = [self.noise_along(unit) for unit in np.eye(width)]
        return np.array([weights @ column for column in columns])


def _times(matrices: Floats, vectors: Floats) -> Floats:
    return np.asarray(np.einsum("nqr,nr->nq", matrices, vectors))


def contrast_of(beta: Floats) -> Floats:
    """Return (1, -beta): the contrast of response and design that is the residual."""
    return np.append(1.0, -beta)
