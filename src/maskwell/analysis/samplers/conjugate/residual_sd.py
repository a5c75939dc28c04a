"""The residual sd of the model of interest drawn anew, given all else: where noise leaves little of it.

The total residual variance t^2 of the last column of the reduced form is s^2, that of the truth, and what the noise
adds. The closed form has a density that falls with s near 0, priors of sds have not, so that their ratio has no
bound and chains stand still at small sds. Given all else t^2 is inverse gamma, and s can be drawn by a law near to
its own conditional posterior; the ratio then hardly varies.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...system import Floats
from .reduced_form import ReducedData, ReducedDraws

CELLS = 48  # of a histogram of the sd
REACH = 7.0  # sds of log t^2 that it covers


@dataclass(frozen=True, slots=True)
class Rest:
    """All but the residual sd of some draws: the inverse gamma law of t^2, and what the noise adds to s^2."""

    shape: float
    rate: Floats = field(repr=False)
    added: Floats = field(repr=False)
    total: Floats = field(repr=False)

    def log_density(self, total: Floats) -> Floats:
        """Return the log density of t^2 above what the noise adds."""
        from scipy.special import gammainc, gammaln

        with np.errstate(divide="ignore"):
            above = np.log(gammainc(self.shape, self.rate / self.added))
        logs = self.shape * np.log(self.rate) - gammaln(self.shape) - (self.shape + 1.0) * np.log(total)
        return np.asarray(logs - self.rate / total - above)


def rest_of(reduced: ReducedData, noise: Floats, found: ReducedDraws) -> Rest:
    """Take the residual sd out of draws."""
    r, d = reduced.coefficients.shape
    totals = found.roots @ found.roots.transpose(0, 2, 1) + noise
    slopes = np.linalg.solve(totals[:, :-1, :-1], totals[:, :-1, -1:])[:, :, 0] if d > 1 else totals[:, 0, :0]
    total = totals[:, -1, -1] - np.einsum("ij,ij->i", slopes, totals[:, :-1, -1])
    own = found.coefficients[:, :, -1] - np.einsum("irk,ik->ir", found.coefficients[:, :, :-1], slopes)
    triangle = np.block(
        [[reduced.clean, reduced.clean @ reduced.coefficients], [np.zeros((d, r)), reduced.residual]]
    )
    left = triangle @ np.hstack([-own, -slopes, np.ones((len(own), 1))]).T
    added = np.maximum(total - found.roots[:, -1, -1] ** 2, 0.0)
    return Rest(0.5 * (reduced.df + r + d - 1.0), 0.5 * (left**2).sum(axis=0), added, total)


def redrawn(
    reduced: ReducedData, noise: Floats, found: ReducedDraws, rng: np.random.Generator
) -> tuple[ReducedDraws, Floats]:
    """Return draws with the residual sd drawn from a histogram, and what that adds to their log weights."""
    rest = rest_of(reduced, noise, found)
    wide = REACH / np.sqrt(rest.shape)
    low = np.sqrt(np.maximum(rest.rate / rest.shape * np.exp(-wide) - rest.added, 0.0))
    high = np.sqrt(np.maximum(rest.rate / rest.shape * np.exp(wide) - rest.added, 0.0))
    high = np.maximum(high, found.roots[:, -1, -1])  # of few records: as far as the draw itself
    width = (high - low) / CELLS
    middles = low[:, None] + width[:, None] * (np.arange(CELLS) + 0.5)
    total = middles**2 + rest.added[:, None]
    logs = -rest.shape * np.log(total) - rest.rate[:, None] / total
    shares = np.exp(logs - logs.max(axis=1, keepdims=True)) + 1e-6
    shares /= shares.sum(axis=1, keepdims=True)
    cell = (shares.cumsum(axis=1) < rng.random((len(shares), 1))).sum(axis=1).clip(max=CELLS - 1)
    sd = low + width * (cell + rng.random(len(cell)))
    roots = found.roots.copy()
    roots[:, -1, -1] = sd
    total = sd**2 + rest.added
    change = np.log(total) - np.log(rest.total)
    histogram = np.log(shares[np.arange(len(cell)), cell] / width) - np.log(2.0 * sd)  # as a density of t^2
    return found._replace(roots=roots, log_det=found.log_det + change), rest.log_density(total) - histogram
