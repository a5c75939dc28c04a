"""Plain normal noise of unknown size as a factor of pairs: where values are open, only a distance matters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....laws import Normal
from ....table import Floats
from ...pair_density import LawTerm, LoweredLaw
from ...protocol import Bools, Ints
from .prior_average import AveragedNoise


@dataclass(frozen=True, slots=True)
class DistanceFactor:
    """The factor of columns whose released and true values are points, in sds of a size of 1.

    `factor` has what belongs to a released record alone; `rest` speaks of the pairs that are not ordinary.
    """

    z: Floats
    x: Floats
    factor: Floats
    ordinary_z: Bools
    ordinary_x: Bools
    noise: AveragedNoise
    rest: LoweredLaw

    @classmethod
    def of(cls, term: LawTerm) -> LawTerm:
        """Return the quick factor, or the same where there is none."""
        if not isinstance(term, LoweredLaw):
            return term
        noise = term.law.noise
        if not (isinstance(noise, AveragedNoise) and isinstance(noise.noise, Normal) and noise.is_regular):
            return term
        ordinary_z = term.is_point.all(axis=1) & term.fits.opened.all(axis=1)
        ordinary_x = np.asarray(term.fits.is_open[term.fits.x].all(axis=1))
        if not (ordinary_z.any() and ordinary_x.any()):
            return term
        origin = term.centre[ordinary_x].mean(axis=0)  # digits are for what is different
        released = np.where(ordinary_z[:, None], term.lower - origin, 0.0)
        true = np.where(ordinary_x[:, None], term.centre - origin, 0.0)
        sides = noise.whitened(released), noise.whitened(true)
        factor = term.factor.sum(axis=1) - noise.log_volume
        return cls(*sides, factor, ordinary_z, ordinary_x, noise, term)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the factor for pairs."""
        ordinary = self.ordinary_z[z] & self.ordinary_x[x]
        if ordinary.all():
            return self._quick(z, x)
        out, here, there = np.empty(len(z)), np.flatnonzero(ordinary), np.flatnonzero(~ordinary)
        out[here], out[there] = self._quick(z[here], x[here]), self.rest.logs(z[there], x[there])
        return out

    def _quick(self, z: Ints, x: Ints) -> Floats:
        away = self.z[:, 0][z] - self.x[:, 0][x]
        if self.noise.width > 1:
            square = away * away
            for j in range(1, self.noise.width):
                away = self.z[:, j][z] - self.x[:, j][x]
                square += away * away
            away = np.sqrt(square)
        return np.asarray(self.noise.at_distances(away) + self.factor[z])
