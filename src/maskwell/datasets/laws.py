"""Which fields are open, how each amount is spread, and how the amounts go together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from .arrays import Floats, Integers, read_only
from .published_figures import AMOUNTS, PAIR_CORRELATIONS, PAIR_COUNTS, PAIRS, SIZE, Amount

_HERMITE_TERMS = 16


@cache
def pattern_counts() -> Integers:
    """Return how many of 64,998 records have each of the 2^5 open patterns (axis: field, index 1: open).

    This is the law of maximum entropy with the published counts, made whole: for every set of fields the
    number of records on which they are all open is rounded (for one or two fields it is whole already), and
    these numbers are turned back into counts of patterns by differences.
    """
    table = np.full((2,) * len(AMOUNTS), SIZE / 2 ** len(AMOUNTS))
    for _ in range(300):
        for pair, both in zip(PAIRS, PAIR_COUNTS, strict=True):
            table = _fitted_to_pair(table, pair, both)
    return read_only(_add_open(np.rint(_add_open(table, 1)), -1).astype(np.int64))


def _fitted_to_pair(table: Floats, pair: tuple[int, int], both: int) -> Floats:
    """Scale a table of counts to the two-way margin of a pair of fields."""
    first, second = (AMOUNTS[field].open_count for field in pair)
    wanted = np.array([[SIZE - first - second + both, second - both], [first - both, both]])
    others = tuple(field for field in range(len(AMOUNTS)) if field not in pair)
    return np.asarray(table * np.expand_dims(wanted / table.sum(axis=others), others))


def _add_open(table: Floats, sign: int) -> Floats:
    """Make index 0 mean "open or not" (sign 1), or undo that (sign -1)."""
    table = table.copy()
    for field in range(table.ndim):
        by_field = np.moveaxis(table, field, 0)
        by_field[0] += sign * by_field[1]
    return table


@dataclass(frozen=True, slots=True)
class WholeLognormal:
    """A lognormal kept between 1/2 and `top` - 1/2 and rounded: whole numbers strictly inside the codes."""

    log_mean: float
    log_sd: float
    top: int

    def values(self, uniforms: Floats) -> Floats:
        """Return the quantiles of the law at probabilities strictly between 0 and 1."""
        from scipy.special import ndtri

        low, high = self._normal_cdf(np.array([0.5, self.top - 0.5]))
        amounts = np.exp(self.log_mean + self.log_sd * ndtri(low + uniforms * (high - low)))
        return np.asarray(np.clip(np.rint(amounts), 1, self.top - 1))

    def values_beyond(self, uniforms: Floats) -> Floats:
        """Return what the law would give from the top code on, were it not cut off there.

        The probabilities, above 0 and at most 1, are those of a larger value.
        """
        from scipy.special import ndtri

        beyond = 1 - self._normal_cdf(np.array([self.top - 0.5]))
        amounts = np.exp(self.log_mean - self.log_sd * ndtri(beyond * uniforms))
        return np.asarray(np.maximum(np.rint(amounts), self.top))

    def moments(self) -> tuple[float, float]:
        """Return the mean and the sd."""
        cdf = self._normal_cdf(np.arange(0.5, self.top))
        shares, amounts = np.diff(cdf) / (cdf[-1] - cdf[0]), np.arange(1, self.top)
        mean = float(shares @ amounts)
        return mean, float(np.sqrt(shares @ (amounts - mean) ** 2))

    def _normal_cdf(self, amounts: Floats) -> Floats:
        from scipy.special import ndtr

        return np.asarray(ndtr((np.log(amounts) - self.log_mean) / self.log_sd))


@cache
def amount_laws() -> tuple[WholeLognormal, ...]:
    """Return the law of each amount's open values: the one with the published mean and sd."""
    return tuple(_fitted_law(amount) for amount in AMOUNTS)


def _fitted_law(amount: Amount) -> WholeLognormal:
    from scipy.optimize import root

    sd = amount.sd * np.sqrt(1 - 1 / amount.open_count)  # published with divisor n - 1

    def misses(guess: Floats) -> list[float]:
        found_mean, found_sd = WholeLognormal(guess[0], np.exp(guess[1]), amount.top).moments()
        return [found_mean / amount.mean - 1, found_sd / sd - 1]

    log_variance = np.log1p((sd / amount.mean) ** 2)
    untruncated = [np.log(amount.mean) - log_variance / 2, np.log(log_variance) / 2]
    log_mean, log_of_log_sd = root(misses, untruncated, tol=1e-10).x
    return WholeLognormal(float(log_mean), float(np.exp(log_of_log_sd)), amount.top)


@cache
def latent_correlations() -> Floats:
    """Return the correlations of the normals under the amounts that give the published ones above.

    Functions of two normals that correlate by r have the covariance sum_k a_k b_k r^k, where a and b are
    their coefficients in normalised Hermite polynomials (Mehler).
    """
    from scipy.optimize import brentq

    coefficients = _hermite_coefficients()
    out = np.eye(len(AMOUNTS))
    for (i, j), wanted in zip(PAIRS, PAIR_CORRELATIONS, strict=True):
        series = np.polynomial.Polynomial(np.append(-wanted, coefficients[i] * coefficients[j]))
        out[i, j] = out[j, i] = brentq(series, -0.99, 0.99, xtol=1e-12)
    return read_only(out)


def _hermite_coefficients() -> Floats:
    """Return amounts x terms 1, 2, ...: coefficients of each amount, in units of its sd."""
    from scipy.special import factorial, ndtr

    normals = np.linspace(-8, 8, 40_001)
    weights = np.exp(-(normals**2) / 2)
    weights /= weights.sum()
    polynomials = np.polynomial.hermite_e.hermevander(normals, _HERMITE_TERMS)
    polynomials /= np.sqrt(factorial(np.arange(_HERMITE_TERMS + 1)))
    uniforms = ndtr(normals)
    sds = np.array([law.moments()[1] for law in amount_laws()])
    amounts = np.array([law.values(uniforms) for law in amount_laws()])
    return np.asarray(((amounts * weights) @ polynomials)[:, 1:] / sds[:, None])
