"""Cholesky roots of small matrices, in place: A = L L', and solutions of A x = b and L' x = b.

Golub and Van Loan (2013), section 4.2. Chosen by the Gibbs kernels, whose matrices have a few rows for each record:
a call of LAPACK costs more than the arithmetic there.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
import numpy.typing as npt

from . import announce
from .programs import inline_lean

announce(__file__)

Floats = npt.NDArray[np.float64]


@inline_lean
def factorise(matrix: Floats, size: int) -> None:
    """Replace the lower triangle of a positive definite matrix by its Cholesky root."""
    for a in range(size):
        for b in range(a + 1):
            total = matrix[a, b]
            for k in range(b):
                total -= matrix[a, k] * matrix[b, k]
            if a == b:
                matrix[a, a] = sqrt(total)
            else:
                matrix[a, b] = total / matrix[b, b]


@inline_lean
def solve(root: Floats, vector: Floats, size: int) -> None:
    """Solve root root' x = vector in place."""
    for a in range(size):
        total = vector[a]
        for k in range(a):
            total -= root[a, k] * vector[k]
        vector[a] = total / root[a, a]
    back(root, vector, size)


@inline_lean
def back(root: Floats, vector: Floats, size: int) -> None:
    """Solve root' x = vector in place."""
    for a in range(size - 1, -1, -1):
        total = vector[a]
        for k in range(a + 1, size):
            total -= root[k, a] * vector[k]
        vector[a] = total / root[a, a]
