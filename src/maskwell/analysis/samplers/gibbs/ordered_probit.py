"""The cuts of an ordered probit model, drawn with the utilities integrated out.

Each cut by a slice (Neal 2003) under sum of log [Phi(cut_k - eta) - Phi(cut_(k-1) - eta)], then all together by a
common shift: cuts given utilities hardly move (Cowles 1996). Called by `sweeps` in every step of an ordered model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .layout import LayoutPart
from .slice_sampler import slice_draw

if TYPE_CHECKING:
    from .sweeps import GibbsChain

CUT_SD = 10.0  # the cuts are normal around 0 with this sd, in their order


def draw_cuts(chain: GibbsChain, part: LayoutPart) -> None:
    """Draw each cut between its neighbours, then shift all of them together."""
    from ....kernels.equations import predictors
    from ....kernels.working_response import beside_cut

    layout, values, state = chain.plan.laid_out.layout, chain.values, chain.state
    etas, cuts = np.empty(len(state)), values.cuts
    predictors(layout, values, part.number, state, etas)
    counted = layout.counted
    codes, etas = state[counted, part.equation.response], etas[counted]
    records = max(len(state), 1)
    for k in range(len(cuts)):
        low = cuts[k - 1] if k else -np.inf
        high = cuts[k + 1] if k + 1 < len(cuts) else np.inf

        def log_density(value: float, k: int = k) -> float:
            kept = cuts[k]
            cuts[k] = value
            found = beside_cut(cuts, k, codes, etas)
            cuts[k] = kept
            return float(found) - 0.5 * (value / CUT_SD) ** 2

        cuts[k] = slice_draw(chain.rng, log_density, float(cuts[k]), 4.0 / np.sqrt(records), (low, high))

    def shifted(by: float) -> float:
        kept = cuts.copy()
        cuts[:] = kept + by
        found = beside_cut(cuts, -1, codes, etas) - 0.5 * float(((cuts / CUT_SD) ** 2).sum())
        cuts[:] = kept
        return float(found)

    cuts += slice_draw(chain.rng, shifted, 0.0, 4.0 / np.sqrt(records))
