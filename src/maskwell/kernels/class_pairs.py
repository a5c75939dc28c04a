"""Pairs of consecutive records of one class, and in how many of them the released residues agree.

For each class c of `classes` (rows of `keys`, NONE where it has fewer columns) and each column r of z:

    pairs[c] = number of (i, i') with equal keys and none such between,   same[c, r] = those with z_ir = z_i'r

A record's code is that of its keys, to the base `base`; `last` has the record before with the same code. One pass, no
sort. Records are numbered on from class to class, `used` says how far, so that a number from an earlier class is no
record of this one and `last` is never cleared between classes. Own derivation: consecutive pairs share no more than one
record each, so that with noise as the card says the agreements are nearly binomial. For
`checks/quantile_residuals/residue_matches`, which tries thousands of classes.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

NONE = -1  # no column, no code, no record
CLOSED = 2**16 - 1  # a key that a record does not have: no residue is as large
LARGEST_NUMBER = 2**31 - 1  # of a record, as `last` holds it: beyond it `last` is cleared

Ints = npt.NDArray[np.int64]
Places = npt.NDArray[np.int32]
Residues = npt.NDArray[np.uint16]


@njit(cache=True, nogil=True)
def _codes(keys: Residues, columns: Ints, base: int, codes: Places) -> None:
    """Put the code of each record into `codes`, NONE where a key is closed."""
    first = keys[columns[0]]
    for i in range(len(codes)):
        codes[i] = NONE if first[i] == CLOSED else first[i]
    for column in columns[1:]:
        if column == NONE:
            continue
        own = keys[column]
        for i in range(len(codes)):
            code = codes[i] * base + own[i]
            codes[i] = NONE if codes[i] == NONE or own[i] == CLOSED else code


@njit(cache=True, nogil=True)
def agreements(
    keys: Residues, classes: Ints, base: int, z: Residues, last: Places, used: Ints, pairs: Ints, same: Ints
) -> None:
    """Count pairs of each class, and of these the ones that agree in each column of z (records x columns).

    `last` begins with NONE everywhere and `used`, of one element, with 0; both go on into the next call.
    """
    count, width = keys.shape[1], z.shape[1]
    codes = np.empty(count, np.int32)
    for c in range(len(classes)):
        if used[0] > LARGEST_NUMBER - count:
            last[:] = NONE
            used[0] = 0
        start = np.int32(used[0])
        used[0] += count
        _codes(keys, classes[c], base, codes)
        for i in range(count):
            if codes[i] == NONE:
                continue
            before = last[codes[i]] - start
            last[codes[i]] = start + i
            if before >= 0:
                pairs[c] += 1
                for r in range(width):
                    same[c, r] += z[i, r] == z[before, r]
