"""Samplers that draw everything at once, the unknown numbers integrated out: what their `draw` have in common."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..results.draws import Draws
from ..system import System
from .chains import MOST_TRUTHS, ChainSettings, Progress

Sample = Callable[[np.random.Generator], Draws | None]


def draw_at_once(
    sample: Sample,
    system: System,
    running: ChainSettings,
    seed: np.random.SeedSequence,
    progress: Progress | None,
) -> Draws | None:
    """Draw by `sample`, then the true values where they are asked for; None where `sample` gives up."""
    from .marginal.true_values import with_truths

    rng = np.random.Generator(np.random.SFC64(seed))
    found = sample(rng)
    if found is not None and running.keep_truths:
        found = with_truths(system, found, MOST_TRUTHS, rng)
    tell_end(running, progress)
    return found


def tell_end(running: ChainSettings, progress: Progress | None) -> None:
    """Tell that all steps are done."""
    if progress is not None:
        total = running.chains * (running.warmup + running.draws)
        progress(total, total)
