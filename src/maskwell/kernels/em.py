"""EM for two latent classes of agreement patterns: matches (share p) and non-matches.

    P(pattern g) = p prod m_f^g_f (1 - m_f)^(1 - g_f) + (1 - p) prod u_f^g_f (1 - u_f)^(1 - g_f)

Fields agree independently within a class (Fellegi and Sunter 1969). The E step gives each pattern its chance of the
first class, the M step sets p, m and u to weighted shares (Dempster, Laird and Rubin 1977; Winkler 1988). The steps run
over the 2^k counts of patterns, not over pairs. For `attacks/linkage/em`, which chooses the starts and judges the end.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from . import announce

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@njit(cache=True, nogil=True)
def climb(
    patterns: Ints,
    pairs: Floats,
    m: Floats,
    u: Floats,
    p: float,
    most_steps: int,
    tolerance: float,
    smallest: float,
) -> tuple[float, int, bool]:
    """Run EM in place on m and u from a start; return p, the steps taken, and whether it came to rest.

    At rest no parameter moves by more than `tolerance` in a step; probabilities stay `smallest` away from 0 and 1.
    """
    fields = len(m)
    total = pairs.sum()
    agree_first, agree_second = np.empty(fields), np.empty(fields)
    for step in range(1, most_steps + 1):
        first_pairs = 0.0
        agree_first[:] = 0.0
        agree_second[:] = 0.0
        for i in range(len(patterns)):
            first, second = p, 1.0 - p
            for f in range(fields):
                if patterns[i] >> f & 1:
                    first *= m[f]
                    second *= u[f]
                else:
                    first *= 1.0 - m[f]
                    second *= 1.0 - u[f]
            mine = pairs[i] * (first / (first + second))
            first_pairs += mine
            for f in range(fields):
                if patterns[i] >> f & 1:
                    agree_first[f] += mine
                    agree_second[f] += pairs[i] - mine
        new_p = min(max(first_pairs / total, smallest), 1.0 - smallest)
        moved = abs(new_p - p)
        p = new_p
        for f in range(fields):
            new_m = agree_first[f] / first_pairs if first_pairs > 0.0 else 0.5
            new_u = agree_second[f] / (total - first_pairs) if total > first_pairs else 0.5
            new_m = min(max(new_m, smallest), 1.0 - smallest)
            new_u = min(max(new_u, smallest), 1.0 - smallest)
            moved = max(moved, abs(new_m - m[f]), abs(new_u - u[f]))
            m[f], u[f] = new_m, new_u
        if moved <= tolerance:
            return p, step, True
    return p, most_steps, False
