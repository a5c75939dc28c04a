"""True counts behind noised ones: drawn among the whole numbers, by what the model and the release say of each.

P(y | rest) is proportional to c(y) P(y | eta), P Poisson or negative binomial and c(y) the chance of the release. The
walk goes outwards from the mode by the ratios P(y + 1) / P(y) = mean / (y + 1), or odds (y + size) / (y + 1), until the
mass that is left is negligible: an exact draw by inversion (Devroye 1986, section III.2). Where the model is far from
all that may have given the release, by logarithms; where too many counts are possible to list them, Metropolis steps.
Used by `analysis/samplers/gibbs/sweeps` for a count response with noise.
"""

from __future__ import annotations

from math import exp, floor, lgamma, log, log1p, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from . import announce
from .equations import POISSON
from .gibbs_noise import PLAIN, noise_log, reference
from .gibbs_records import DrawLimits
from .programs import inner, lean

announce(__file__)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
# The response, which cells are unknown, and `analysis.noise.counts.Chances`.
Hidden = tuple[int, Bools, Any]

NEGLIGIBLE = 1e-18  # of the mass found so far: where a walk away from the mode of the counts ends
LARGEST = 25.0  # beyond it a mean exp(eta) is no count of this world
REACH = 9.0  # sds of the noise to both sides that are listed
STEPS = 4  # of a Metropolis chain, where too many counts are possible to list them


@lean
def draw_counts(
    family: int,
    size: float,
    etas: Floats,
    state: Floats,
    hidden: Hidden,
    rng: np.random.Generator,
) -> None:
    """Draw the true count of every record where its noise is its own, given its linear predictor."""
    j, unknown, chances = hidden
    for i in range(len(state)):
        k = chances.which[i]
        if k < 0 or not unknown[i, j]:
            continue
        given = chances.chance[chances.begin[k] : chances.begin[k + 1]]
        first, endless = chances.first[k], chances.endless[k]
        drawn = _draw_by_ratios(family, etas[i], size, first, given, endless, rng)
        if drawn < 0:
            drawn = _draw_by_logs(family, etas[i], size, first, given, rng)
        if drawn >= 0:
            state[i, j] = drawn


@inner
def count_log(family: int, eta: float, size: float, y: float) -> float:
    """Return the log probability of a count, as `equations` does among all families."""
    if family == POISSON:
        return y * eta - exp(eta) - lgamma(y + 1.0) if eta < 700.0 else -np.inf
    less = eta - log(size)
    above = less + log1p(exp(-less)) if less > 0.0 else log1p(exp(less))
    return y * (less - above) - size * above + lgamma(y + size) - lgamma(size) - lgamma(y + 1.0)


@inner
def _draw_by_ratios(
    family: int, eta: float, size: float, first: int, given: Floats, endless: bool, rng: np.random.Generator
) -> int:
    """Draw a count by ratios of neighbouring probabilities, outwards from the mode; -1 where all are too small."""
    total, _, _, span = walked_mass(family, eta, size, first, given, endless)
    if not (total > 0.0 and total < np.inf):
        return -1
    return _count_at_mass(rng.random() * total, _ratio(family, eta, size), span, first, given)


@inner
def _ratio(family: int, eta: float, size: float) -> tuple[float, float]:
    """Return what the ratio P(y + 1) / P(y) is made of: odds / (y + 1), times y + size where that is above 0."""
    mean = exp(min(eta, LARGEST))
    return (mean, -1.0) if family == POISSON else (mean / (mean + size), size)


@inner
def walked_mass(
    family: int, eta: float, size: float, first: int, given: Floats, endless: bool
) -> tuple[float, float, float, tuple[int, int, int]]:
    """Return the sum of chances times probabilities over that of the count where it starts, and two moments about it.

    Last are the counts where it starts, the mode or next to it, and ends above and below. Counts beyond the last that
    `given` lists are as likely to give the release as that one, if it is `endless`.
    """
    mean, last = exp(min(eta, LARGEST)), first + len(given) - 1
    odds, plus = _ratio(family, eta, size)
    mode = floor(mean) if family == POISSON else floor(max(mean * (size - 1.0) / size, 0.0))
    start = int(max(mode, float(first)))
    if not endless and start > last:
        start = last
    total, one, two = given[min(start, last) - first], 0.0, 0.0
    weight, top = 1.0, start
    while (endless or top < last) and weight > NEGLIGIBLE * total and weight > 0.0:
        weight *= odds / (top + 1.0) * (top + plus if plus > 0.0 else 1.0)
        top += 1
        share, off = weight * given[min(top, last) - first], float(top - start)
        total, one, two = total + share, one + share * off, two + share * off * off
    weight, bottom = 1.0, start
    while bottom > first and weight > NEGLIGIBLE * total and weight > 0.0:
        weight /= odds / bottom * (bottom - 1.0 + plus if plus > 0.0 else 1.0)
        bottom -= 1
        share, off = weight * given[min(bottom, last) - first], float(bottom - start)
        total, one, two = total + share, one + share * off, two + share * off * off
    return total, one, two, (start, top, bottom)


@inner
def _count_at_mass(
    left: float, ratio: tuple[float, float], span: tuple[int, int, int], first: int, given: Floats
) -> int:
    """Walk the same way again, until the mass `left` is used up."""
    odds, plus = ratio
    start, top, bottom = span
    last, found, weight = first + len(given) - 1, -1, 1.0
    for y in range(start, top + 1):
        share = weight * given[min(y, last) - first]
        left -= share
        if share > 0.0:
            found = y
            if left < 0.0:
                return found
        weight *= odds / (y + 1.0) * (y + plus if plus > 0.0 else 1.0)
    weight = 1.0
    for y in range(start, bottom, -1):
        weight /= odds / y * (y - 1.0 + plus if plus > 0.0 else 1.0)
        share = weight * given[min(y - 1, last) - first]
        left -= share
        if share > 0.0:
            found = y - 1
            if left < 0.0:
                return found
    return found


@inner
def _draw_by_logs(
    family: int, eta: float, size: float, first: int, given: Floats, rng: np.random.Generator
) -> int:
    """Draw a count by logarithms: the model is far from all that may have given the release; -1 if nothing may."""
    top, total = -np.inf, 0.0
    for k in range(len(given)):
        if given[k] > 0.0:
            top = max(top, log(given[k]) + count_log(family, eta, size, float(first + k)))
    if not top > -np.inf:
        return -1
    for k in range(len(given)):
        if given[k] > 0.0:
            total += given[k] * exp(count_log(family, eta, size, float(first + k)) - top)
    left, found = rng.random() * total, -1
    for k in range(len(given)):
        if given[k] > 0.0:
            share = given[k] * exp(count_log(family, eta, size, float(first + k)) - top)
            left -= share
            if share > 0.0:
                found = first + k
                if left < 0.0:
                    break
    return found


# --- noise that is shared with other columns ---------------------------------------------------------------


@lean
def draw_counts_given_noise(
    family: int,
    size: float,
    etas: Floats,
    state: Floats,
    limits: DrawLimits,
    noise: Any,
    columns: Ints,
    room: tuple[Floats, Floats, Floats],
    rng: np.random.Generator,
) -> None:
    """Draw the true count of every record given the noise of all numbers: the others' tells of its own.

    All counts within reach are listed; where they are too many for the room, some Metropolis steps are made.
    """
    place, plain = len(columns) - 1, True  # the response is the last of the numbers
    j = columns[place]
    for k in range(len(columns)):
        plain = plain and noise.sizes.spread_kind[k] == PLAIN
    precision, linear, given = room
    for i in range(len(state)):
        if not limits.unknown[i, j]:
            continue
        row, eta = state[i], etas[i]
        least, most = _ends(limits, i, j)
        reference(noise, i, precision, linear)
        own, pull = precision[place, place], linear[place]
        for k in range(len(columns)):
            if k != place:
                pull -= precision[place, k] * row[columns[k]]
        if own <= 0.0 and most == np.inf:  # only known to be at or above its code
            given[0] = 1.0
            row[j] = _draw_by_ratios(family, eta, size, int(least), given[:1], True, rng)
            continue
        middle = min(max(pull / own, least), most) if own > 0.0 else least
        reach = REACH / sqrt(own) if own > 0.0 else most - least
        low = max(floor(middle - reach), least)
        count = int(max(min(floor(middle + reach) + 1.0, most), low) - low) + 1
        if count > len(given):
            _make_metropolis_steps((family, size, eta), row, (i, j), (least, most), noise, columns, own, rng)
            continue
        told = given[:count]
        _tell(row, (i, j), low, (own, pull / own if own > 0.0 else 0.0, plain), noise, columns, told)
        drawn = _draw_by_ratios(family, eta, size, int(low), told, False, rng)
        if drawn < 0:
            drawn = _draw_by_logs(family, eta, size, int(low), told, rng)
        row[j] = max(drawn, 0)


@inner
def _tell(
    row: Floats,
    where: tuple[int, int],
    low: float,
    normal: tuple[float, float, bool],
    noise: Any,
    columns: Ints,
    told: Floats,
) -> None:
    """Fill in how likely each count from `low` on makes the noise, over the likeliest of them.

    Where no size of the noise depends on a value, that is a normal in the count: its precision and mean.
    """
    (i, j), (own, middle, plain), top = where, normal, -np.inf
    for k in range(len(told)):
        row[j] = low + k
        if plain:
            told[k] = -0.5 * own * (row[j] - middle) * (row[j] - middle)
        else:
            told[k] = noise_log(noise, columns, i, row)
        top = max(top, told[k])
    for k in range(len(told)):
        told[k] = exp(told[k] - top)


@inner
def _ends(limits: DrawLimits, i: int, j: int) -> tuple[float, float]:
    """Return the least and the largest count that the limits of a record allow."""
    if len(limits.lower) == 0:
        return 0.0, np.inf
    least, most = limits.lower[i, j], limits.upper[i, j]
    least = -floor(-least) if least > 0.0 else 0.0
    return least, floor(most) if most < np.inf else most


@inner
def _make_metropolis_steps(
    model: tuple[int, float, float],
    row: Floats,
    where: tuple[int, int],
    ends: tuple[float, float],
    noise: Any,
    columns: Ints,
    own: float,
    rng: np.random.Generator,
) -> None:
    """Make some Metropolis steps of whole numbers, of about the size of what is left open."""
    (family, size, eta), (i, j), (least, most) = model, where, ends
    mean = exp(min(eta, LARGEST))
    spread = mean if family == POISSON else mean + mean * mean / size
    scale = 2.4 / sqrt(own + 1.0 / max(spread, 1.0))
    now = row[j]
    height = count_log(family, eta, size, now) + noise_log(noise, columns, i, row)
    for _ in range(STEPS):
        row[j] = now + np.rint(scale * rng.standard_normal())
        if least <= row[j] <= most:
            other = count_log(family, eta, size, row[j]) + noise_log(noise, columns, i, row)
            if log(rng.random()) < other - height or height == -np.inf:
                now, height = row[j], other
        row[j] = now
