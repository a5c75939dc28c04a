"""Log densities and log interval masses of the noise laws, compiled.

Normal, Laplace, mixtures of normals, and lognormal bias with normal noise. A density is log p(z - x); a mass, of a
clamped or rounded value, is log P(lower <= z <= upper | x). For lognormal bias, z = theta x + e with log theta ~
N(-s^2/2, s^2), s^2 = log(1 + phi^2), it is an integral over log theta: adaptive Gauss-Legendre panels from the one or
two peaks on, their error by null rules (Berntsen and Espelid 1991). Far tails use exp(t^2) erfc(t) by its asymptotic
series (Abramowitz and Stegun 1964, 7.1.23). Scalar functions, for laws, record pairs and Gibbs samplers alike; below
each law its driver over 1-D arrays. All keep their digits in the tails: they work with logarithms and scaled
complementary error functions throughout. A zero sd is a point mass: the log density is then 0 at the point and minus
infinity elsewhere.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.polynomial.legendre import leggauss, legvander
from numpy.typing import NDArray

from . import announce

announce(__file__)

Floats = NDArray[np.float64]
Law = tuple[float, float, float, float, float, float, float]
ROOT_HALF = math.sqrt(0.5)
LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)
NARROW_NODES, NARROW_WEIGHTS = leggauss(8)  # for intervals within about a sd, where 8 nodes give all digits
NODES, WEIGHTS = leggauss(15)  # of a panel: exact to degree 29, with room for three null rules
NULL_RULES = WEIGHTS * legvander(NODES, 14)[:, 12:].T  # zero where a polynomial of degree 11 would do
QUADRATURE_TOLERANCE = 1e-10  # of a panel, against the whole integral
NEGLIGIBLE_LOG = 34.0  # what lies this far below the peak of a log-integrand is left out


# --- normal ------------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def log_normal(residual: float, sd: float) -> float:
    """Return the log density of N(0, sd^2) at `residual`."""
    if sd == 0.0:
        return 0.0 if residual == 0.0 else -math.inf
    standardised = residual / sd
    return -0.5 * standardised * standardised - math.log(sd) - LOG_ROOT_2_PI


@njit(cache=True, nogil=True)
def log_normal_interval(lower: float, upper: float, sd: float) -> float:
    """Return log P(lower <= N(0, sd^2) <= upper); the ends may be infinite."""
    return _log_normal_mass(lower, upper, upper - lower, sd)


@njit(cache=True, nogil=True)
def _log_normal_mass(lower: float, upper: float, width: float, sd: float) -> float:
    """`log_normal_interval` with the width given apart, since a shift of both ends would cost its digits."""
    if sd == 0.0:
        return 0.0 if lower <= 0.0 <= upper else -math.inf
    if width <= 0.0 or lower == math.inf or upper == -math.inf:
        return -math.inf
    half, middle = 0.5 * width / sd, 0.5 * abs(lower + upper) / sd
    if half * (middle + half) <= 1.0:
        return _log_narrow_mass(middle, half)
    a, b = ROOT_HALF * lower / sd, ROOT_HALF * upper / sd
    if a <= 0.0 <= b:
        outside = 0.5 * (math.erfc(-a) + math.erfc(b))
        return math.log1p(-outside) if outside < 0.5 else math.log(0.5 * (math.erf(b) - math.erf(a)))
    near, far = min(abs(a), abs(b)), max(abs(a), abs(b))
    fall = math.exp(-ROOT_HALF * width / sd * (near + far))
    return -near * near + math.log(0.5 * (_erfcx(near) - fall * _erfcx(far)))


@njit(cache=True, nogil=True)
def _log_narrow_mass(middle: float, half: float) -> float:
    """Return the log mass of N(0, 1) within `half` of `middle`, by Gauss-Legendre."""
    total = 0.0
    for i in range(len(NARROW_NODES)):
        step = half * NARROW_NODES[i]
        total += NARROW_WEIGHTS[i] * math.exp(-step * (middle + 0.5 * step))
    return -0.5 * middle * middle - LOG_ROOT_2_PI + math.log(half) + math.log(total)


@njit(cache=True, nogil=True)
def _erfcx(t: float) -> float:
    """Return exp(t^2) erfc(t) for t >= 0; by its asymptotic series where erfc comes near underflow."""
    if t < 25.0:
        return math.exp(t * t) * math.erfc(t)
    ratio, term, total = 0.5 / t / t, 1.0, 1.0
    for k in range(1, 8):
        term *= -(2 * k - 1) * ratio
        total += term
    return total / (t * math.sqrt(math.pi))


@njit(cache=True, nogil=True)
def normal_logpdf(residual: Floats, sd: Floats) -> Floats:
    """`log_normal` of each record."""
    out = np.empty(len(residual))
    for i in range(len(residual)):
        out[i] = log_normal(residual[i], sd[i])
    return out


@njit(cache=True, nogil=True)
def normal_log_interval(lower: Floats, upper: Floats, sd: Floats) -> Floats:
    """`log_normal_interval` of each record."""
    out = np.empty(len(lower))
    for i in range(len(lower)):
        out[i] = log_normal_interval(lower[i], upper[i], sd[i])
    return out


# --- Laplace -----------------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def log_laplace(residual: float, scale: float) -> float:
    """Return the log density of the Laplace law (sd = scale * sqrt(2)) at `residual`."""
    if scale == 0.0:
        return 0.0 if residual == 0.0 else -math.inf
    return -abs(residual) / scale - math.log(2.0 * scale)


@njit(cache=True, nogil=True)
def log_laplace_interval(lower: float, upper: float, scale: float) -> float:
    """Return log P(lower <= Laplace(scale) <= upper); the ends may be infinite."""
    if scale == 0.0:
        return 0.0 if lower <= 0.0 <= upper else -math.inf
    if lower >= upper:
        return -math.inf
    a, b = lower / scale, upper / scale
    if a <= 0.0 <= b:
        outside = 0.5 * (math.exp(a) + math.exp(-b))
        return math.log1p(-outside) if outside < 0.5 else math.log(-0.5 * (math.expm1(a) + math.expm1(-b)))
    return math.log(-0.5 * math.expm1(-(upper - lower) / scale)) - min(abs(a), abs(b))


@njit(cache=True, nogil=True)
def laplace_logpdf(residual: Floats, scale: Floats) -> Floats:
    """`log_laplace` of each record."""
    out = np.empty(len(residual))
    for i in range(len(residual)):
        out[i] = log_laplace(residual[i], scale[i])
    return out


@njit(cache=True, nogil=True)
def laplace_log_interval(lower: Floats, upper: Floats, scale: Floats) -> Floats:
    """`log_laplace_interval` of each record."""
    out = np.empty(len(lower))
    for i in range(len(lower)):
        out[i] = log_laplace_interval(lower[i], upper[i], scale[i])
    return out


# --- sums of densities ---------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def log_add(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b))."""
    if a == -math.inf or b == -math.inf:
        return max(a, b)
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@njit(cache=True, nogil=True)
def log_total(logs: Floats) -> float:
    """Return the log of the sum of all exponentials; not a number where there is nothing to add."""
    top = logs.max()
    return top + np.log(np.exp(logs - top).sum()) if top > -np.inf else np.nan


# --- normal mixture ----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def log_mixture(residual: float, weights: Floats, means: Floats, sds: Floats) -> float:
    """Return the log density at `residual` of a mixture of normals whose sds are all positive, or all zero."""
    total = -math.inf
    for k in range(len(weights)):
        if weights[k] > 0.0:
            total = log_add(total, math.log(weights[k]) + log_normal(residual - means[k], sds[k]))
    return total


@njit(cache=True, nogil=True)
def log_mixture_interval(lower: float, upper: float, weights: Floats, means: Floats, sds: Floats) -> float:
    """Return log P(lower <= mixture of normals <= upper); any sd may be zero, the ends may be infinite."""
    total = -math.inf
    for k in range(len(weights)):
        if weights[k] > 0.0:
            mass = _log_normal_mass(lower - means[k], upper - means[k], upper - lower, sds[k])
            total = log_add(total, math.log(weights[k]) + mass)
    return min(total, 0.0)


@njit(cache=True, nogil=True)
def mixture_logpdf(residual: Floats, weights: Floats, means: Floats, sds: Floats) -> Floats:
    """`log_mixture` of each record, all under the same mixture."""
    out = np.empty(len(residual))
    for i in range(len(residual)):
        out[i] = log_mixture(residual[i], weights, means, sds)
    return out


@njit(cache=True, nogil=True)
def mixture_log_interval(lower: Floats, upper: Floats, weights: Floats, means: Floats, sds: Floats) -> Floats:
    """`log_mixture_interval` of each record, all under the same mixture."""
    out = np.empty(len(lower))
    for i in range(len(lower)):
        out[i] = log_mixture_interval(lower[i], upper[i], weights, means, sds)
    return out


# --- lognormal bias plus normal noise ----------------------------------------------------------------------
# z = theta x + e with theta = exp(s n - s^2 / 2), n standard normal, s^2 = log(1 + phi^2), e normal: an integral
# over n. Its log-integrand has one or two peaks; quadrature starts from these, whatever the ratio of scales.


@njit(cache=True, nogil=True)
def log_bias_lognormal(z: float, x: float, phi: float, sd: float) -> float:
    """Return the log density at `z` of theta * x + N(0, sd^2), theta lognormal with mean 1 and sd `phi`."""
    if x < 0.0:
        z, x = -z, -x
    if x == 0.0 or phi == 0.0:
        return log_normal(z - x, sd)
    s = math.sqrt(math.log1p(phi * phi))
    if sd != 0.0:
        return _log_convolved(z, z, x, s, sd)
    return log_normal(_latent(z, x, s), 1.0) - math.log(s * z) if z > 0.0 else -math.inf


@njit(cache=True, nogil=True)
def log_bias_lognormal_interval(lower: float, upper: float, x: float, phi: float, sd: float) -> float:
    """Return log P(lower <= theta * x + N(0, sd^2) <= upper), theta lognormal with mean 1 and sd `phi`."""
    if x < 0.0:
        lower, upper, x = -upper, -lower, -x
    if x == 0.0 or phi == 0.0:
        return _log_normal_mass(lower - x, upper - x, upper - lower, sd)
    if lower >= upper:
        return -math.inf
    s = math.sqrt(math.log1p(phi * phi))
    if sd != 0.0:
        return min(_log_convolved(lower, upper, x, s, sd), 0.0)
    if upper <= 0.0:
        return -math.inf
    width = math.log1p((upper - lower) / lower) / s if lower > 0.0 else math.inf
    return _log_normal_mass(_latent(lower, x, s), _latent(upper, x, s), width, 1.0)


@njit(cache=True, nogil=True)
def _latent(value: float, x: float, s: float) -> float:
    """Return the n at which theta x equals `value`."""
    if value <= 0.0:
        return -math.inf
    relative = (value - x) / x
    return (math.log1p(relative) if abs(relative) < 0.5 else math.log(value / x)) / s + 0.5 * s


@njit(cache=True, nogil=True)
def _log_convolved(lower: float, upper: float, x: float, s: float, sd: float) -> float:
    """Return the log mass of [lower, upper], or the log density where the two are equal."""
    if lower == math.inf or upper == -math.inf:
        return -math.inf
    left, right = _peaks(min(max(x * math.exp(-0.5 * s * s), lower), upper), x, s, sd)
    law = _at(left, lower, upper, x, s, sd)
    if _log_joint(right - left, law) > _log_joint(0.0, law):
        law = _at(right, lower, upper, x, s, sd)
    left, right, peak = left - law[0], right - law[0], _log_joint(0.0, law)
    if peak == -math.inf:
        return peak
    low = _reach(left if _log_joint(left, law) > peak - NEGLIGIBLE_LOG else 0.0, -1.0, peak, law)
    high = _reach(right if _log_joint(right, law) > peak - NEGLIGIBLE_LOG else 0.0, 1.0, peak, law)
    edges = (_latent(lower, x, s) - law[0], _latent(upper, x, s) - law[0]) if lower < upper else (left, right)
    return peak - LOG_ROOT_2_PI + math.log(_integral(low, high, (left, right) + edges, peak, law))


@njit(cache=True, nogil=True)
def _at(centre: float, lower: float, upper: float, x: float, s: float, sd: float) -> Law:
    """Return (centre, theta x there, gaps to both ends, width, s, sd): the law seen from n = centre."""
    exponent = s * centre - 0.5 * s * s
    value = x * math.exp(exponent)
    if exponent < -0.5:
        return centre, value, lower - value, upper - value, upper - lower, s, sd
    change = x * math.expm1(exponent)
    return centre, value, (lower - x) - change, (upper - x) - change, upper - lower, s, sd


@njit(cache=True, nogil=True)
def _log_joint(step: float, law: Law) -> float:
    """Return the log-integrand at n = centre + step, short of the constant of the latent density."""
    centre, value, lower, upper, width, s, sd = law
    shift = min(value * math.expm1(s * step), 1e300)
    prior = -0.5 * (centre + step) * (centre + step)
    if width == 0.0:
        return prior + log_normal(lower - shift, sd)
    return prior + _log_normal_mass(lower - shift, upper - shift, width, sd)


@njit(cache=True, nogil=True)
def _peaks(z: float, x: float, s: float, sd: float) -> tuple[float, float]:
    """Return the leftmost and rightmost n at which the log density of (n, z) peaks; mostly they coincide.

    They solve n = pull(n) = s u (z - u) / sd^2 with u = theta x. For z below the median of u, pull falls where it
    matters: one peak. Above, pull has slope 1 nowhere (one peak) or at two points, outside which the peaks lie.
    """
    zero, end = _pull(0.0, z, x, s, sd), _latent(z, x, s)
    low, high = (max(end, zero, -1e9), 0.0) if zero <= 0.0 else (0.0, end)
    if zero <= 0.0 or s * z * ROOT_HALF <= 2.0 * sd:
        root = _root(low, high, z, x, s, sd)
        return root, root
    turn = 0.25 * z * (1.0 + math.sqrt(1.0 - 8.0 * (sd / (s * z)) ** 2))
    early, late = _latent(0.5 * (sd / s) ** 2 / turn, x, s), max(_latent(turn, x, s), 0.0)
    right = (
        _root(late, end, z, x, s, sd) if late < _pull(late, z, x, s, sd) else _root(0.0, early, z, x, s, sd)
    )
    left = _root(0.0, early, z, x, s, sd) if early > _pull(early, z, x, s, sd) else right
    return left, right


@njit(cache=True, nogil=True)
def _pull(n: float, z: float, x: float, s: float, sd: float) -> float:
    u = x * math.exp(s * n - 0.5 * s * s)
    return s * (u / sd) * ((z - u) / sd)


@njit(cache=True, nogil=True)
def _root(low: float, high: float, z: float, x: float, s: float, sd: float) -> float:
    """Bisect n = pull(n) to within a small part of the peak's width."""
    for _ in range(100):
        middle = 0.5 * (low + high)
        if middle > _pull(middle, z, x, s, sd):
            high = middle
        else:
            low = middle
        if high - low < 1e-2 / (1.0 + s * x / sd * math.exp(s * high - 0.5 * s * s)):
            break
    return 0.5 * (low + high)


@njit(cache=True, nogil=True)
def _reach(start: float, sign: float, peak: float, law: Law) -> float:
    """Return a step from the centre, outwards of `start`, beyond which the integrand is negligible."""
    step = 3.0 * sign * _peak_width(start, law)
    while _log_joint(start + step, law) > peak - NEGLIGIBLE_LOG:
        step *= 1.3
    return start + step


@njit(cache=True, nogil=True)
def _peak_width(step: float, law: Law) -> float:
    """Return about the sd of a peak, or the blur of an interval's edge, that lies `step` from the centre."""
    _, value, _, _, _, s, sd = law
    return 1.0 / (1.0 + min(s * value / sd * math.exp(s * step), 1e100))


@njit(cache=True, nogil=True)
def _integral(low: float, high: float, features: tuple[float, ...], peak: float, law: Law) -> float:
    """Integrate exp(log joint - peak) from `low` to `high`, in stretches cut around each feature."""
    total, start = 0.0, low
    while start < high:
        end = high
        for feature in features:
            margin = 6.5 * _peak_width(min(feature, high), law)
            for cut in (feature - margin, feature, feature + margin):
                end = cut if start < cut < end else end
        total += _stretch(start, end, peak, law)
        start = end
    return total


@njit(cache=True, nogil=True)
def _stretch(low: float, high: float, peak: float, law: Law) -> float:
    """Integrate between two cuts in panels as long as their error allows."""
    least = _peak_width(0.0, law)  # the whole integral is about the peak's width, or more
    total, start, length = 0.0, low, high - low
    while start < high:
        value, error = _panel(start, start + length, peak, law)
        if error > QUADRATURE_TOLERANCE * max(value, least) and length > 1e-4 * (high - low):
            length *= 0.5
        else:
            total, start = total + value, start + length
            length = min(2.0 * length, high - start)
    return total


@njit(cache=True, nogil=True)
def _panel(start: float, end: float, peak: float, law: Law) -> tuple[float, float]:
    """Return the Gauss-Legendre sum over one panel and a cautious guess of its error."""
    half, middle = 0.5 * (end - start), 0.5 * (start + end)
    total = first = second = third = 0.0
    for i in range(len(NODES)):
        value = half * math.exp(_log_joint(middle + half * NODES[i], law) - peak)
        total += WEIGHTS[i] * value
        first += NULL_RULES[0, i] * value
        second += NULL_RULES[1, i] * value
        third += NULL_RULES[2, i] * value
    null = max(abs(first), abs(second), abs(third))
    return total, null * math.sqrt(min(null / total, 1.0)) if total > 0.0 else 0.0


@njit(cache=True, nogil=True)
def bias_lognormal_logpdf(z: Floats, x: Floats, phi: float, sd: Floats) -> Floats:
    """`log_bias_lognormal` of each record."""
    out = np.empty(len(z))
    for i in range(len(z)):
        out[i] = log_bias_lognormal(z[i], x[i], phi, sd[i])
    return out


@njit(cache=True, nogil=True)
def bias_lognormal_log_interval(lower: Floats, upper: Floats, x: Floats, phi: float, sd: Floats) -> Floats:
    """`log_bias_lognormal_interval` of each record."""
    out = np.empty(len(lower))
    for i in range(len(lower)):
        out[i] = log_bias_lognormal_interval(lower[i], upper[i], x[i], phi, sd[i])
    return out


@njit(cache=True, nogil=True)
def log_normal_cdf(x: float) -> float:
    """Return log P(N(0, 1) <= x), with all its digits in both tails."""
    if x > -1.0:
        return math.log1p(-0.5 * math.erfc(x * ROOT_HALF))
    return float(log_normal_interval(-math.inf, x, 1.0))
