"""States of the Mersenne Twister after `init_by_array` with a key of one word, for many seeds.

With s the state that seeding by a number gives, for steps t = 0, 1, .. 623 and then 623 more, at the places
i = 1, 2, .. 623, 1, 2, ..,

    s_i = (s_i xor (s_{i-1} xor (s_{i-1} >> 30)) 1664525) + key,         then
    s_i = (s_i xor (s_{i-1} xor (s_{i-1} >> 30)) 1566083941) - i         (Matsumoto and Nishimura 2002, mt19937ar.c).

Each step needs the one before, so that arrays help over seeds alone, and over a hundred of them hardly.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

Words = npt.NDArray[np.uint32]

LENGTH = 624  # words of a state
TOGETHER = 32  # keys whose steps are made side by side: each waits for its own step before


@njit(cache=True, nogil=True)
def init_by_word(start: Words, keys: Words, out: Words) -> None:
    """Put the state of each key into `out`, words x keys, from the state that every key starts with."""
    state = np.empty((LENGTH, TOGETHER), np.uint32)
    for first in range(0, len(keys), TOGETHER):
        some = keys[first : first + TOGETHER]
        for i in range(LENGTH):
            state[i] = start[i]
        place = 1
        for step in range(2 * LENGTH - 1):
            before, own = state[place - 1], state[place]
            factor = np.uint32(1664525) if step < LENGTH else np.uint32(1566083941)
            for k in range(len(some)):
                added = some[k] if step < LENGTH else np.uint32(-place)
                own[k] = (own[k] ^ np.uint32((before[k] ^ (before[k] >> np.uint32(30))) * factor)) + added
            place += 1
            if place == LENGTH:
                state[0] = state[LENGTH - 1]
                place = 1
        state[0] = np.uint32(0x80000000)
        out[:, first : first + TOGETHER] = state[:, : len(some)]
