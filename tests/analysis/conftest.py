"""Draws without a sampler: what results are tested on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from maskwell.analysis.results.draws import Draws
from maskwell.analysis.results.posterior import Posterior
from maskwell.notes import Note

NAMES = ("Intercept", "x1", "sex[m]", "sigma", "sd(Intercept|school)")
MEANS, SDS = np.array([12.0, 1.0, -0.4, 2.0, 0.3]), np.array([0.5, 0.05, 0.2, 0.03, 0.05])
MakePosterior = Callable[..., Posterior]


def normal_draws(means: Any, sds: Any, names: tuple[str, ...], seed: int, **more: Any) -> Draws:
    """Independent normal draws: 4 chains of 1,000."""
    values = means + sds * np.random.default_rng(seed).standard_normal((4, 1000, len(names)))
    return Draws(names, values, **more)


@pytest.fixture(scope="session")
def make_posterior() -> MakePosterior:
    """Return a function that makes a posterior of known moments; the naive x1 is 20% too small."""

    def make(change: Callable[[Any], Any] = lambda values: values, **more: Any) -> Posterior:
        naive = normal_draws(MEANS * [1, 0.8, 1, 1, 1], SDS / 1.25, NAMES, 2)
        first = normal_draws(MEANS, SDS, NAMES, 1)
        held = {name: more.pop(name) for name in tuple(more) if name in Draws.__dataclass_fields__}
        draws = Draws(NAMES, change(first.values.copy()), sampler="exact Gibbs", **held)
        given = {"naive": naive, "formula": "y ~ x1 + sex + (1|school)", "family": "gaussian"}
        given |= {
            "records": 4059,
            "noised": ("x1",),
            "notes": (Note("analysis.true_counts", {"name": "x1"}),),
        }
        return Posterior(draws, **(given | more))

    return make
