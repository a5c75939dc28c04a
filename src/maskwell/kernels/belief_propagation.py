"""Chances of pairs by belief propagation: an approximation of the marginals of a random matching.

N units fill N places: K known units and N - K others that weigh 1 with everything, n records and N - n places of units
that were not released. With weights w of units a and places i, messages are passed until the chances rest:

    s_ai = w_ai / (sum of o_aj, j not i),   o_ai = w_ai / (sum of s_bi, b not a),   odds of (a, i) = o_ai s_ai / w_ai

A fixed point is a stationary point of Bethe's free energy (Huang and Jebara 2009; Vontobel 2013, The Bethe permanent).
The error is not bounded. It is small where many records are possible for a unit, and there sampling is slow.
Used by `attacks/bayes/matching_posterior/belief_propagation`, beside chains whose draws cannot tell records apart.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from . import announce

announce(__file__)

Floats = NDArray[np.float64]
LEAST = 1e-14  # of a sum is left when one part is taken out of it
SMALL = 1e-290  # a divisor that is never 0


class Wishes(NamedTuple):
    """Weights of known units with records (last: a place without), the same of one other unit, and how many there are.

    `places` is how many places without a record there are, `others` how many units that are not known.
    """

    weights: Floats
    other: Floats
    places: float
    others: float


@njit(cache=True, nogil=True)
def _rest(total: float, part: float) -> float:
    return max(total - part, LEAST * total, SMALL)


@njit(cache=True, nogil=True)
def _from_row(weights: Floats, offers: Floats, places: float, wishes: Floats) -> None:
    """Turn what places offer one unit into what it wishes of each."""
    last = len(weights) - 1
    total = places * offers[last]
    for i in range(last):
        total += offers[i]
    for i in range(last + 1):
        wishes[i] = weights[i] / _rest(total, offers[i])


@njit(cache=True, nogil=True)
def _pass(wishes: Wishes, offers: Floats, sent: Floats) -> float:
    """Pass all messages there and back; return by how much a chance changed most. The last row is that of one other."""
    known, wide = wishes.weights.shape
    sums = np.zeros(wide)
    for a in range(known):
        _from_row(wishes.weights[a], offers[a], wishes.places, sent[a])
        for i in range(wide):
            sums[i] += sent[a, i]
    if wishes.others > 0:
        _from_row(wishes.other, offers[known], wishes.places, sent[known])
        for i in range(wide):
            sums[i] += wishes.others * sent[known, i]
    most = 0.0
    for a in range(known + 1 if wishes.others > 0 else known):
        for i in range(wide):
            weight = wishes.weights[a, i] if a < known else wishes.other[i]
            if weight > 0.0:
                new = weight / _rest(sums[i], sent[a, i])
                wish = sent[a, i] / weight
                before, after = offers[a, i] * wish, new * wish
                most = max(most, abs(after / (1.0 + after) - before / (1.0 + before)))
                offers[a, i] = new
    return most


@njit(cache=True, nogil=True)
def pass_messages(wishes: Wishes, offers: Floats, rounds: int, enough: float, out: Floats) -> float:
    """Pass messages until chances hardly change and put them into `out`, each row summing to 1; return the change.

    `offers` has where to begin (K + 1 rows, the last that of one other unit), and afterwards where it ended.
    """
    known, wide = wishes.weights.shape
    sent = np.zeros((known + 1, wide))
    change = np.inf
    for _ in range(rounds):
        change = _pass(wishes, offers, sent)
        if change < enough:
            break
    for a in range(known):
        total = 0.0
        for i in range(wide):
            weight = wishes.weights[a, i]
            odds = offers[a, i] * sent[a, i] / weight if weight > 0.0 else 0.0
            out[a, i] = odds / (1.0 + odds) * (wishes.places if i == wide - 1 else 1.0)
            total += out[a, i]
        for i in range(wide):
            out[a, i] /= max(total, SMALL)
    return change
