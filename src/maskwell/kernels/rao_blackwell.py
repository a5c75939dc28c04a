"""What each unit would take next, averaged over matchings that were drawn: smoother than counting what it had.

Chance of a pair = mean over draws of P(one more step gives the pair | draw), a step that leaves the law of matchings as
it is: the same expectation as the share of draws that have the pair, with less variance (Gelfand and Smith 1990).
Used by `attacks/bayes/matching_posterior/matchings` on the draws of `matching_mcmc`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def _add_open(logs: Floats, unit: int, choice: Ints, owner: Ints, slots: float, out: Floats) -> float:
    """Add the chances of a draw among the records of the choice that nobody else has, and none.

    Return how likely such a draw is: the share of these records in the choice.
    """
    top, count = math.log(slots) if slots > 0 else -math.inf, 0
    for i in choice:
        if owner[i] < 0 or owner[i] == unit:
            count += 1
            top = max(top, logs[unit, i])
    if count == 0 or top == -math.inf:
        return 0.0
    none = slots * math.exp(-top) if slots > 0 else 0.0
    total, share = none, count / len(choice)
    for i in choice:
        if owner[i] < 0 or owner[i] == unit:
            total += math.exp(logs[unit, i] - top)
    for i in choice:
        if owner[i] < 0 or owner[i] == unit:
            out[unit, i] += share * math.exp(logs[unit, i] - top) / total
    out[unit, -1] += share * none / total
    return share


@njit(cache=True, nogil=True)
def _add_exchanges(logs: Floats, unit: int, own: int, choice: Ints, owner: Ints, out: Floats) -> float:
    """Add the chances of an exchange with another owner of a record of the choice; return their sum."""
    moved = 0.0
    for i in choice:
        other = owner[i]
        if other >= 0 and other != unit:
            ratio = logs[unit, i] + logs[other, own] - logs[unit, own] - logs[other, i]
            chance = (1.0 if ratio >= 0 else math.exp(ratio)) / len(choice)
            out[unit, i] += chance
            moved += chance
    return moved


@njit(cache=True, nogil=True)
def smooth(
    logs: Floats,
    matches: npt.NDArray[np.int32],
    outside: int,
    choices: tuple[Ints, Ints],
    out: Floats,
) -> None:
    """Add up, over matchings (draws x units, -1: none), the chances of each unit's next record (units x records, none).

    A unit's step begins at a record of its choice (`choices`: records unit after unit, and where each unit begins), any
    as likely, and leaves the law of matchings as it is: if nobody else has that record, the unit draws anew among all
    those of its choice that nobody else has, and none; else it tries an exchange with the owner, by Metropolis' rule.
    Who has a record that is not of his choice stays, because no step leads back. Averages of what a step leads to have
    the same expectation as averages of what is there.
    """
    known, released = logs.shape
    owner, chosen = np.empty(released, np.int64), np.zeros(released, np.int64)
    for draw in range(len(matches)):
        match = matches[draw]
        owner[:], chosen[:] = -1, 0
        matched = 0
        for unit in range(known):
            if match[unit] >= 0:
                owner[match[unit]] = unit
                matched += 1
        for unit in range(known):
            own, choice = match[unit], choices[0][choices[1][unit] : choices[1][unit + 1]]
            for i in choice:
                chosen[i] = unit + 1
            moved = 0.0
            if own < 0 or chosen[own] == unit + 1:
                slots = float(max(outside + matched - (1 if own >= 0 else 0) + 1, 0))
                moved = _add_open(logs, unit, choice, owner, slots, out)
                if own >= 0:
                    moved += _add_exchanges(logs, unit, own, choice, owner, out)
            out[unit, own if own >= 0 else released] += 1.0 - moved
