"""Chances of pairs by belief propagation, and how far draws are to be believed beside them.

The chances are Bethe's approximation (`kernels.belief_propagation`). What chains found is shrunk towards it, for each
unit by itself: weight of the draws = 1 - 1 / r, r the squared distance of both in squared errors of the draws (James
and Stein 1961), and 0 where r may be chance. Chosen by `matchings` and `unknown_noise` for every block that is sampled,
and by `parameter_nodes` to find where the posterior of the parameters lies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....table import Floats
from ...protocol import Bools, Ints

ROUNDS, ENOUGH = 60, 1e-5  # of messages, and the change of a chance that ends them
SURE = 2.0  # standard errors between the first and the second that decide a link
LUCK = 3.0  # standard deviations of the squared distance of draws from the approximation that may be luck
# Records between which a unit chooses: where there are fewer, messages are too sure, and draws stand
FLAT = 5.0


def message_chances(
    logs: Floats, units: int, factors: Floats, start: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return Bethe's approximation of the probability of each pair, none last, and the messages to begin others with.

    `factors` are logs of factors on the weights of all records, and last of none, that bring sums of chances near 1.
    """
    from ....kernels.belief_propagation import Wishes, pass_messages

    known, released = logs.shape
    every = np.column_stack([logs, np.zeros(known)]) + factors
    if units <= released:
        every[:, -1] = -np.inf
    top = every.max(axis=1, keepdims=True)
    weights = np.exp(every - np.where(np.isneginf(top), 0.0, top))
    other = np.exp(factors - factors.max())
    if start is None:
        start = np.vstack([weights, other])
    out, wishes = np.empty((known, released + 1)), Wishes(weights, other, *_spare(units, known, released))
    pass_messages(wishes, start, ROUNDS, ENOUGH, out)
    return out, start


def _spare(units: int, known: int, released: int) -> tuple[float, float]:
    return float(units - released), float(units - known)


@dataclass(frozen=True, slots=True)
class PairWeights:
    """Probabilities of pairs, none last, and which units' likeliest record the draws decide."""

    chances: Floats
    decided: Bools


def shrinkage_estimate(drawn: Floats, guessed: Floats) -> PairWeights:
    """Weigh what chains found (chains x units x records, none last) and an approximation, for each unit by itself.

    Draws that are no farther from the approximation than their own error, which the differences of chains show, cannot
    tell records apart: the approximation stands, so that links are nobody's luck. Else James and Stein's rule: draws
    count the more, the farther they are. Flat posteriors are of the first kind, where the approximation is good. Of two
    units that may have exchanged their records it says that they have not: where few records are possible draws stand.
    """
    mean = drawn.mean(axis=0)
    noise = (drawn.var(axis=0, ddof=1) / len(drawn)).sum(axis=1)
    ratio = ((mean - guessed) ** 2).sum(axis=1) / np.maximum(noise, 1e-300)
    records, drawn_records = (1.0 / np.maximum((one**2).sum(axis=1), 1e-300) for one in (guessed, mean))
    chance = 1.0 + LUCK * np.sqrt(2.0 / records * (1.0 + 1.0 / (len(drawn) - 1)))
    weight = np.where(ratio > chance, 1.0 - 1.0 / np.maximum(ratio, 1.0), 0.0)
    weight = np.where(np.minimum(records, drawn_records) < FLAT, 1.0, weight)[:, None]
    chances = weight * mean + (1.0 - weight) * guessed
    return PairWeights(chances, _significant_leads(chances, mean, noise))


def _significant_leads(chances: Floats, mean: Floats, noise: Floats) -> Bools:
    """Whether the first record is ahead of the second by more than draws could have it by luck."""
    each = noise / np.maximum((mean * (1.0 - mean)).sum(axis=1), 1e-300)
    if chances.shape[1] < 3:
        return np.ones(len(chances), bool)
    two = np.partition(chances[:, :-1], -2, axis=1)[:, -2:]
    return np.asarray(two[:, 1] - two[:, 0] >= SURE * np.sqrt(each * two.sum(axis=1)))


def choices_of(chances: Floats, near: Bools, least: float) -> tuple[Ints, Ints]:
    """Return the records that matter for each unit, one after the other, and where each unit's begin.

    They are those of some chance, and those that are `near`: an exchange away.
    """
    pairs = chances[:, :-1]
    chosen = (pairs > least * pairs.max(axis=1, keepdims=True)) | near
    return np.ascontiguousarray(np.nonzero(chosen)[1]), np.concatenate([[0], np.cumsum(chosen.sum(axis=1))])


def an_exchange_away(logs: Floats, match: Ints, least: float) -> Bools:
    """Return which records units could have by an exchange with their owners, or as free ones (units x records)."""
    known, released = logs.shape
    owner, has = np.full(released, -1), np.flatnonzero(match >= 0)
    owner[match[has]] = has
    every = np.column_stack([logs, np.zeros(known)])
    own = every[np.arange(known), np.where(match < 0, released, match)]
    with np.errstate(invalid="ignore"):
        gain = logs - own[:, None]
        owned = np.flatnonzero(owner >= 0)
        back = every[owner[owned]][:, np.where(match < 0, released, match)].T - own[owner[owned]]
        gain[:, owned] += back
        return np.asarray(gain > np.log(least))
