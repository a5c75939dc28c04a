"""The law of true values that an outsider gets from a release and its card: what was released with the noise taken out.

Amounts are normal on the scale where noise is added, with covariance cov(z) - noise, in no direction less than a little
(the moments of Fuller 1987, section 1.2). Categories have the shares that make the release likeliest, by EM (Dempster,
Laird and Rubin 1977), apart from the amounts, as in the f(z) of `released_density`. Chosen by
`own_error/density_prior` for an intruder with errors who holds marginal="gaussian".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....card import NoiseCard
from ....laws import Additive, Outlet
from ....schema import OPEN
from ....table import Floats, Table
from ...candidate_scores import members
from ...joint_codes import joint_codes
from ...pair_density import laws_on
from ...protocol import Ints
from .released_density import Amounts

LEAST = 1e-3  # what is left of the variance of a direction in which the release varies no more than the noise
STEPS = 500  # of finding the shares of categories
LOG_2_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, slots=True)
class TrueValueLaw:
    """Normal amounts, with how they enter the scale where noise is added, and shares of some categories."""

    names: tuple[str, ...]
    outlets: tuple[Outlet, ...]
    mean: Floats
    covariance: Floats
    log_shares: Mapping[str, Floats]

    @classmethod
    def of(
        cls, released: Table, fields: Sequence[str], card: NoiseCard, categories: Sequence[str]
    ) -> TrueValueLaw:
        """Take the noise of a card out of the moments of a release, and out of the shares of some categories."""
        laws = laws_on(card, fields)
        amounts = Amounts.of(laws, released)
        shares = {name: _log_shares(laws_on(card, [name])[0], name, released) for name in categories}
        if not amounts.names:
            return cls((), (), np.zeros(0), np.zeros((0, 0)), shares)
        mean, covariance = amounts.moments()
        slopes, offsets = _ways_in(laws, amounts.names)
        left = _denoised_covariance(covariance, amounts.noise) / np.outer(slopes, slopes)
        return cls(amounts.names, amounts.outlets, (mean - offsets) / slopes, left, shares)

    def entered(self, table: Table) -> Floats:
        """Return the amounts of true records on the scale where noise is added, NaN unless they are open."""
        values = table.values(self.names)
        with np.errstate(divide="ignore", invalid="ignore"):
            for j, outlet in enumerate(self.outlets):
                values[:, j] = outlet.enter(values[:, j])
        return values

    def patterns(self, values: Floats) -> list[tuple[Ints, Ints]]:
        """Return records that are alike in which amounts are open, and these."""
        is_open = ~np.isnan(values)
        codes = joint_codes([(column.astype(np.int64), 2) for column in is_open.T], len(values))
        groups = members(codes, np.arange(len(codes))).values()
        return [(records, np.flatnonzero(is_open[records[0]])) for records in groups]

    def __call__(self, table: Table) -> Floats:
        """Return the log density of true records, minus infinity where an amount cannot be."""
        logs, values = np.zeros(len(table)), self.entered(table)
        impossible = (np.isnan(values) & table.is_open(self.names)) | np.isinf(values)
        for records, chosen in self.patterns(values):
            if len(chosen):
                at = np.where(
                    np.isfinite(values[np.ix_(records, chosen)]), values[np.ix_(records, chosen)], 0.0
                )
                logs[records] = _log_normal(at - self.mean[chosen], self.covariance[np.ix_(chosen, chosen)])
        for j, (name, outlet) in enumerate(zip(self.names, self.outlets, strict=True)):
            if outlet.log_shift is not None:
                logs -= np.where(np.isfinite(values[:, j]), values[:, j], 0.0)
            impossible[:, j] &= table.status(name) == OPEN
        for name, shares in self.log_shares.items():
            is_open, codes = table.status(name) == OPEN, table.floats(name)
            logs[is_open] += shares[codes[is_open].astype(np.int64)]
        return np.where(impossible.any(axis=1), -np.inf, logs)


def _log_normal(residual: Floats, covariance: Floats) -> Floats:
    root = np.linalg.cholesky(covariance)
    scaled = np.linalg.solve(root, residual.T)
    return np.asarray(
        -0.5 * (scaled**2).sum(axis=0) - np.log(np.diag(root)).sum() - 0.5 * len(root) * LOG_2_PI
    )


def _ways_in(laws: Sequence[Any], names: Sequence[str]) -> tuple[Floats, Floats]:
    """Return by what true amounts are stretched and moved before noise is added."""
    slopes, offsets = np.ones(len(names)), np.zeros(len(names))
    for law in laws:
        if isinstance(law, Additive):
            for j, name in enumerate(law.columns):
                if name in names:
                    one = np.ones((1, len(law.columns)))
                    centre = law.place(one, np.zeros_like(one))[0, j]
                    slopes[names.index(name)] = law.slope
                    offsets[names.index(name)] = centre - law.slope * law.outlets[j].enter(np.ones(1))[0]
    return slopes, offsets


def _denoised_covariance(covariance: Floats, noise: Floats) -> Floats:
    """Return a covariance without that of the noise, in no direction less than a little of what it was."""
    scale = np.sqrt(np.diag(covariance))
    both = np.outer(scale, scale)
    values, axes = np.linalg.eigh((covariance - noise) / both)
    return np.asarray((axes * np.maximum(values, LEAST)) @ axes.T * both)


def _log_shares(law: Any, name: str, released: Table) -> Floats:
    """Return the log shares of true categories that make what was released likeliest."""
    status = released.status(name)
    values, count = np.unique(released.floats(name)[status == OPEN], return_counts=True)
    size = len(law.categories[0]) if isinstance(law, Additive) else len(law.true)
    z, x = np.divmod(np.arange(len(values) * size), size)
    chance = np.exp(law.logpdf(values[z][:, None], x.astype(np.float64)[:, None])).reshape(len(values), size)
    shares = np.full(size, 1.0 / size)
    for _ in range(STEPS if count.sum() else 0):
        both = chance * shares
        total = both.sum(axis=1, keepdims=True)
        shares = (count[:, None] * both / np.where(total > 0, total, 1.0)).sum(axis=0) / count.sum()
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares))
