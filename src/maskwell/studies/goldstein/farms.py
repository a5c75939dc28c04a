"""The sugar farms of section 8: a file made to resemble one that is not to be had, and Shlomo's noise on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ...masks import CorrelatedNoise, IndependentNoise
from ...table import Floats, Table
from .models import GoldsteinModel, Parameter
from .simulation import GoldsteinJob, keys_of

QUANTILES = (0.05, 0.10, 0.50, 0.90, 0.95)
AROUND = (-0.006, -0.003, 0.0, 0.003, 0.006)  # two farms on either side of a quantile are looked for too
NOISES = (0.05, 0.17)  # of the variances
BETA = (-7.89, 11.35, 0.022, 0.00013)  # of table 6: constant, region, harvest, cost
RESIDUAL_VARIANCE = 146.2
RECEIPTS_VARIANCE = 2418.0  # 17% of it are 411, the text says


@dataclass(frozen=True, slots=True)
class Farms:
    """So many farms: half in the North, lognormal harvests (tonnes) and costs (dollars), receipts by equation (8).

    The moments of harvest and cost are those that the standard errors of table 6 imply; both have the same CV.
    """

    records: int = 333

    fields: ClassVar[tuple[str, ...]] = ("receipts", "region", "harvest", "cost")
    model: ClassVar[GoldsteinModel] = GoldsteinModel(
        "receipts ~ region + harvest + cost",
        "receipts",
        ("region", "harvest", "cost"),
        (
            Parameter("beta_0", "Intercept"),
            Parameter("beta_1", "region"),
            Parameter("beta_2 x 1,000", "harvest", times=1e3),
            Parameter("beta_3 x 100,000", "cost", times=1e5),
            Parameter("sigma^2", "sigma", power=2),
        ),
    )
    north: ClassVar[float] = 0.5
    means: ClassVar[tuple[float, float]] = (4085.0, 71_500.0)
    cv: ClassVar[float] = 0.482
    correlation: ClassVar[float] = 0.877

    def table(self, rng: np.random.Generator) -> Table:
        """Draw a file."""
        region = (rng.random(self.records) < self.north).astype(np.float64)
        harvest, cost = self._amounts(rng.standard_normal((2, self.records)))
        noise = np.sqrt(RESIDUAL_VARIANCE) * rng.standard_normal(self.records)
        receipts = BETA[0] + BETA[1] * region + BETA[2] * harvest + BETA[3] * cost + noise
        return keys_of(self.fields, np.array([receipts, region, harvest, cost]))

    def _amounts(self, standard: Floats) -> Floats:
        """Return correlated lognormal amounts of the means, the CV and the correlation."""
        variance = np.log1p(self.cv**2)
        rho = np.log1p(self.correlation * self.cv**2) / variance
        second = rho * standard[0] + np.sqrt(1 - rho**2) * standard[1]
        logs = np.sqrt(variance) * np.array([standard[0], second]) - variance / 2
        return np.asarray(np.array(self.means)[:, None] * np.exp(logs))


def shlomo_noise(noise: float) -> CorrelatedNoise:
    """Return Shlomo's noise: a share of each variance is noise, and means and covariances stay."""
    return CorrelatedNoise(Farms.fields, r0=1 - noise, keep="moments")


def by_itself(noise: float) -> IndependentNoise:
    """Return independent noise of a share of each variance."""
    return IndependentNoise(Farms.fields, variance_ratio=noise)


def job(mask: CorrelatedNoise | IndependentNoise, intruder: str) -> GoldsteinJob:
    """Return the h of the farms around the quantiles of the distance from the centre, quantile by quantile."""
    at = tuple(round(share + step, 3) for share in QUANTILES for step in AROUND)
    return GoldsteinJob(Farms(), mask, intruder, at, "distance")


def at_quantile(h: Floats, place: int) -> Floats:
    """Return the h of the farms around one of the quantiles."""
    return h[:, place * len(AROUND) : (place + 1) * len(AROUND)].ravel()
