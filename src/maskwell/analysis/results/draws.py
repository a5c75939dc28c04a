"""What a sampler returns: draws of the parameters, by chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_R_HAT, MIN_ESS = 1.01, 400.0  # Vehtari et al. 2021, Bayesian Analysis 16:667

FASTER = "faster sampler"  # the info that names another sampler which holds

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Draws:
    """Draws of a model's parameters: chains x draws x parameters.

    `names` are those of the model of interest: coefficients first, then `sigma`, `sd(Intercept|school)`,
    `cor(Intercept,x|school)`, `cut[1]`, `shape`. `nuisance` has the covariate model's. `effects` has, for each set of
    group effects, chains x draws x groups x columns; `truths`, on request, draws of the unknown values in the data's
    units: chains x kept draws x records x variables, of draws evenly spaced from the first one on.
    """

    names: tuple[str, ...]
    values: Floats = field(repr=False)
    nuisance_names: tuple[str, ...] = ()
    nuisance: Floats | None = field(default=None, repr=False)
    effects: tuple[npt.NDArray[np.floating[Any]], ...] = field(default=(), repr=False)
    truths: npt.NDArray[np.float32] | None = field(default=None, repr=False)
    truth_names: tuple[str, ...] = ()
    sampler: str = ""
    info: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def with_truths_only(self) -> Draws:
        """Return those draws alone for which true values were kept, in step with them."""
        if self.truths is None:
            return self
        kept = self.truths.shape[1]
        at = np.arange(kept) * max(self.values.shape[1] // kept, 1)
        nuisance = None if self.nuisance is None else self.nuisance[:, at]
        effects = tuple(drawn[:, at] for drawn in self.effects)
        return replace(self, values=self.values[:, at], nuisance=nuisance, effects=effects)
