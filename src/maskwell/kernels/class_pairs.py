"""Pairs of consecutive records of one class, and in how many of them the released residues agree.

For each class of `classes` (rows of `keys`, NONE where it has fewer columns) a record's code is that of its keys, to
the base `base`; `last` has the record before with the same code (NONE before and after). One pass, no sort.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

NONE = -1
CLOSED = 2**16 - 1  # a key that a record does not have: no residue is as large

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Residues = npt.NDArray[np.uint16]


@njit(cache=True, nogil=True)
def _codes(keys: Residues, columns: Ints, base: int, codes: Ints) -> None:
    """Put the code of each record into `codes`, NONE where a key is closed."""
    for i in range(keys.shape[1]):
        code = 0
        for column in columns:
            if column != NONE:
                key = keys[column, i]
                code = NONE if key == CLOSED or code == NONE else code * base + key
        codes[i] = code


@njit(cache=True, nogil=True)
def agreements(
    keys: Residues, classes: Ints, base: int, z: Residues, last: Places, pairs: Ints, same: Ints
) -> None:
    """Count pairs of each class, and of these the ones that agree in each column of z (records x columns)."""
    codes = np.empty(keys.shape[1], np.int64)
    for c in range(len(classes)):
        _codes(keys, classes[c], base, codes)
        for i in range(len(codes)):
            if codes[i] == NONE:
                continue
            before = last[codes[i]]
            last[codes[i]] = i
            if before != NONE:
                pairs[c] += 1
                for r in range(z.shape[1]):
                    same[c, r] += z[i, r] == z[before, r]
        for i in range(len(codes)):
            if codes[i] != NONE:
                last[codes[i]] = NONE
