"""Exchanges between records of near rank: rank swapping (Moore 1996, Controlled data-swapping techniques).

A record exchanges its value with a free one at most `window` ranks above. The law of `masks/exchange` draws by it
(`laws/discrete`), and `checks/rank_windows` runs it on ranks to see what window a release was made with.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)


@njit(cache=True, nogil=True)
def exchange_within(uniform: npt.NDArray[np.float64], window: int) -> npt.NDArray[np.int64]:
    """Return each ranked record's partner: a free one at most `window` ranks above, chosen by its uniform.

    A record whose chosen partner is taken takes the nearest free one below it in the window, then above it;
    a record with no free partner keeps its own value.
    """
    count = len(uniform)
    partner = np.full(count, -1)
    for i in range(count):
        if partner[i] >= 0:
            continue
        last = min(i + window, count - 1)
        chosen = i + 1 + int(uniform[i] * (last - i))
        chosen = min(chosen, last)
        found = -1
        for j in range(chosen, i, -1):
            if partner[j] < 0:
                found = j
                break
        if found < 0:
            for j in range(chosen + 1, last + 1):
                if partner[j] < 0:
                    found = j
                    break
        if found < 0:
            partner[i] = i
        else:
            partner[i], partner[found] = found, i
    return partner
