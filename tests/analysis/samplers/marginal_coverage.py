"""How often intervals of the closed form and of the marginal sampler hold the truth, over simulated files.

Too slow for every run of the tests; `make calibration` may call `coverage`. Posterior intervals cover on average over
the prior; at a fixed truth and with weak priors they should very nearly do so too.
"""

from __future__ import annotations

import numpy as np

from maskwell.analysis.priors import Priors
from maskwell.analysis.samplers import conjugate, marginal
from maskwell.analysis.system import GAUSSIAN, NEGATIVE_BINOMIAL, POISSON

from .test_marginal import COEFFICIENTS, make

LEVELS = (0.5, 0.8, 0.95)


def coverage(
    family: int, files: int, records: int, *, by_closed_form: bool = False, seed: int = 1000
) -> dict[str, object]:
    """Return the share of files whose intervals hold each coefficient, by level, and how many were given up."""
    sampler, interaction = (conjugate, False) if by_closed_form else (marginal, True)
    truth = COEFFICIENTS * (0.6 if family in (POISSON, NEGATIVE_BINOMIAL) else 1.0)
    truth, given_up = truth[: 5 if interaction else 4], 0
    inside: dict[float, list[np.ndarray]] = {level: [] for level in LEVELS}
    for k in range(files):
        system = make(family, records, seed + k, noised_response=family == GAUSSIAN, interaction=interaction)
        draws = sampler.sample(system, Priors(), 2, 500, np.random.default_rng(k))
        if draws is None:
            given_up += 1
            continue
        values = draws.values.reshape(1000, -1)[:, : len(truth)]
        for level in LEVELS:
            low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
            inside[level].append((low < truth) & (truth < high))
    shares = {level: np.mean(held, axis=0).round(3).tolist() for level, held in inside.items()}
    return {"files": files, "given up": given_up, "coverage": shares}
