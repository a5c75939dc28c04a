"""What each unit would take next, averaged over matchings that were drawn: smoother than counting what it had."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

Floats = npt.NDArray[np.float64]


@njit(cache=True, nogil=True)
def _heat(logs: Floats, unit: int, owner: npt.NDArray[np.int64], slots: float, room: Floats) -> float:
    """Put the weights of what nobody else has into `room`, none last; return their sum."""
    released = logs.shape[1]
    top = np.log(slots) if slots > 0 else -np.inf
    for i in range(released):
        if owner[i] < 0 or owner[i] == unit:
            top = max(top, logs[unit, i])
    total: float = 0.0
    for i in range(released):
        free = owner[i] < 0 or owner[i] == unit
        room[i] = np.exp(logs[unit, i] - top) if free else 0.0
        total += room[i]
    room[released] = slots * np.exp(-top) if slots > 0 else 0.0
    return float(total + room[released])


@njit(cache=True, nogil=True)
def smooth(logs: Floats, matches: npt.NDArray[np.int32], outside: int, out: Floats) -> None:
    """Add up, over matchings (draws x units, -1: none), the chances of each unit's next record (units x records, none).

    The step is a mixture that leaves the law of matchings as it is: for records that nobody else has, and none, the
    heat bath; for each record of another unit an exchange with it, accepted by Metropolis' rule. Averages of what a
    step leads to have the same expectation as averages of what is there.
    """
    known, released = logs.shape
    owner, room = np.empty(released, np.int64), np.empty(released + 1)
    for draw in range(len(matches)):
        match = matches[draw]
        owner[:] = -1
        matched = 0
        for unit in range(known):
            if match[unit] >= 0:
                owner[match[unit]] = unit
                matched += 1
        for unit in range(known):
            own = match[unit]
            others = matched - (1 if own >= 0 else 0)
            slots = float(max(outside + others + 1, 0))
            share = (released - others) / released
            total = _heat(logs, unit, owner, slots, room)
            moved = share
            for i in range(released + 1):
                out[unit, i] += share * room[i] / total
            if own >= 0:
                for i in range(released):
                    other = owner[i]
                    if other >= 0 and other != unit:
                        ratio = logs[unit, i] + logs[other, own] - logs[unit, own] - logs[other, i]
                        chance = (1.0 if ratio >= 0 else np.exp(ratio)) / released
                        out[unit, i] += chance
                        moved += chance
            out[unit, own if own >= 0 else released] += 1.0 - moved
