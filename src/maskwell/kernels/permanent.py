"""Sums over all matchings, by subsets of the smaller side: exact, and on the log scale throughout.

    sum over matchings of (product of their pairs' weights) x (weight of the number of pairs), and each pair's share

The units of the smaller side (few) are bits; those of the other side (many) are met one after the other, each with one
of the few or with none: 2^few x few x many steps, the order of Ryser's formula (1963) for a permanent, without its
differences, so that no digits are lost. Chosen by `attacks/bayes/matching_posterior/components` where the smaller side
of a component is short; longer ones are sampled (`matching_mcmc`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce
from .densities import log_total

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def bits_of(few: int) -> Ints:
    """Return the size of each subset."""
    out = np.zeros(1 << few, np.int64)
    for subset in range(1, 1 << few):
        out[subset] = out[subset >> 1] + (subset & 1)
    return out


@njit(cache=True, nogil=True)
def _before(logs: Floats, many: int, subset: int, last: Floats) -> float:
    """Return the log sum over matchings of one subset when one more of the many has been met."""
    top = float(last[subset])
    for one in range(logs.shape[0]):
        if subset >> one & 1:
            top = max(top, last[subset ^ (1 << one)] + logs[one, many])
    if top == -np.inf:
        return top
    total = np.exp(last[subset] - top)
    for one in range(logs.shape[0]):
        if subset >> one & 1:
            total += np.exp(last[subset ^ (1 << one)] + logs[one, many] - top)
    return top + float(np.log(total))


@njit(cache=True, nogil=True)
def _after(logs: Floats, many: int, subset: int, last: Floats) -> float:
    """Return the log sum over what can follow a subset when one more of the many is still to be met."""
    top = float(last[subset])
    for one in range(logs.shape[0]):
        if not subset >> one & 1:
            top = max(top, last[subset | (1 << one)] + logs[one, many])
    if top == -np.inf:
        return top
    total = np.exp(last[subset] - top)
    for one in range(logs.shape[0]):
        if not subset >> one & 1:
            total += np.exp(last[subset | (1 << one)] + logs[one, many] - top)
    return top + float(np.log(total))


@njit(cache=True, nogil=True)
def forward(logs: Floats, least: int) -> Floats:
    """Return the log sums of all subsets after each of the many; those that cannot reach `least` pairs are left out."""
    few, many = logs.shape
    size, out = bits_of(few), np.full((many + 1, 1 << few), -np.inf)
    out[0, 0] = 0.0
    for met in range(many):
        for subset in range(1 << few):
            if size[subset] <= met + 1 and size[subset] + many - met - 1 >= least:
                out[met + 1, subset] = _before(logs, met, subset, out[met])
    return out


@njit(cache=True, nogil=True)
def log_sizes(logs: Floats) -> Floats:
    """Return for each number of pairs the log of the summed weights of all matchings with so many."""
    few, many = logs.shape
    last, size = forward(logs, 0)[many], bits_of(few)
    top, total = np.full(few + 1, -np.inf), np.zeros(few + 1)
    for subset in range(1 << few):
        top[size[subset]] = max(top[size[subset]], last[subset])
    for subset in range(1 << few):
        if last[subset] > -np.inf:
            total[size[subset]] += np.exp(last[subset] - top[size[subset]])
    return np.asarray(top + np.log(total + (top == -np.inf)))


@njit(cache=True, nogil=True)
def pair_chances(logs: Floats, log_weights: Floats) -> Floats:
    """Return the share of all matchings' weight that has each pair; `log_weights` are those of the sizes, 0 to few.

    NaN if no matching is possible.
    """
    few, many = logs.shape
    least = 0
    while least < few and log_weights[least] == -np.inf:
        least += 1
    size, ahead, out = bits_of(few), forward(logs, least), np.zeros((few, many))
    behind, new = log_weights[size], np.empty(1 << few)
    whole = log_total(ahead[many] + behind)
    for met in range(many - 1, -1, -1):
        for subset in range(1 << few):
            here, new[subset] = ahead[met, subset], -np.inf
            if here > -np.inf:
                new[subset] = _after(logs, met, subset, behind)
                for one in range(few):
                    if not subset >> one & 1:
                        out[one, met] += np.exp(here + logs[one, met] + behind[subset | (1 << one)] - whole)
        behind, new = new, behind
    return out
