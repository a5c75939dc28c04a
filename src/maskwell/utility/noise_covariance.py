"""The covariance that noise of one law gives two released columns by itself, on the scale of the released values.

With K(s, t) = log E exp(s e1 + t e2) and y = z + shift for a column on the log scale, E cov(z1, z2 | x) is

- cov(e1, e2) where both columns have plain noise;
- E(y1 y2) (1 - exp(K(0, 1) + K(1, 0) - K(1, 1))) where both are on the log scale, since E(y1 y2 | x) is E(y1 | x)
  E(y2 | x) exp(K(1, 1) - K(1, 0) - K(0, 1)): for normal noise the last factor is exp(cov(e1, e2));
- E(y1) (K_t(1, 0) - K_t(0, 0)) where only the first is: for normal noise E(y1) cov(e1, e2).

All three hold with and without mean correction. Where limits cut the noise off, or its size depends on the value, that
covariance is a function C(x) of the true values. The law itself is drawn from then: with T h(x) = E(h(z) | x), the mean
of C over the true values is that of T^-1 C over the released ones, and T^-1 = I - (T - I) + (T - I)^2 - ... is taken up
to its third term, and on from there where the terms fall by a steady factor. A pair whose third term still matters is
not corrected. Own derivation; the series is Neumann's for the inverse of T. Chosen by `correction` for pairs that share
a law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, expm1, isfinite
from typing import Any

import numpy as np

from ..keys import Key, Stream, ids_from_numbers
from ..laws import Additive, Mixture, Normal
from ..laws.chain import combined_of
from ..laws.mixture import JointMixture, RotatedMixture
from ..laws.noise import scaled_root
from ..laws.unknowns import is_independent, spread_of
from ..table import Floats
from .moments import PairwiseMoments
from .pairs import TruthAndRelease

# Records that are drawn from at most; draws for each state, over all repeats
RECORDS, CELLS = 50_000, 200_000
MOST_REPEATS = 40  # draws of the noise of each record
FALLING = 0.7  # terms that fall more slowly tell nothing of the rest of the series
SETTLED = 0.02  # a third term beyond this share of the sds of both columns: the series has not settled
# Why there is no covariance: codes of notes
UNSETTLED = "utility.unsettled_noise"
ON_LOGS = "utility.noise_on_logs"
NO_MEAN = "utility.noise_without_mean"
OF_PART = "utility.noise_of_part"


@dataclass(frozen=True)
class SharedNoise:
    """The covariance of the noise of each pair, not a number where it cannot be told, and why: the code of a note."""

    covariances: Floats
    why_not: dict[tuple[str, str], str] = field(default_factory=dict)


def shared_noise(
    sides: TruthAndRelease,
    at_limit: Mapping[str, float],
    own: Floats,
    moments: PairwiseMoments,
    names: Sequence[str],
) -> SharedNoise:
    """Return what the noise adds to the covariance of each pair of released columns.

    `at_limit` are the shares of values that limits cut off, `own` the variances of plain noise: totals have these of
    their parts.
    """
    place = {name: i for i, name in enumerate(names)}
    found = SharedNoise(np.diag(own).astype(np.float64))
    for law in map(combined_of, sides.masking.card.laws):
        if isinstance(law, Additive) and not law.categories and not are_apart(law.noise):
            _add(found, _SharedNoiseLaw(law, sides, at_limit), moments, place)
    return _with_totals(found, sides, names)


def are_apart(noise: Any) -> bool:
    """Whether the noises of different columns are independent."""
    return noise.width == 1 or isinstance(noise, Mixture) or is_independent(noise)


@dataclass
class _SharedNoiseLaw:
    """One law whose columns share their noise."""

    law: Additive
    sides: TruthAndRelease
    at_limit: Mapping[str, float]
    drawn: tuple[Floats, Floats] | None = None

    def is_closed(self, j: int) -> bool:
        """Whether a column's noise was not cut off and is the same for every value."""
        return spread_of(self.law, j) is None and not self.at_limit.get(self.law.columns[j], 0.0)

    def is_spread_on_logs(self, j: int) -> bool:
        """Whether a column's noise is on the log scale and grows with the value: no series settles there."""
        return spread_of(self.law, j) is not None and self.law.outlets[j].log_shift is not None

    def simulated(self, i: int, j: int) -> tuple[float, float]:
        """Return the estimated covariance of a pair and the last term of its series."""
        if self.drawn is None:
            self.drawn = simulated_covariances(self.law, self.sides)
        return float(self.drawn[0][i, j]), float(self.drawn[1][i, j])


def _add(
    found: SharedNoise, shared: _SharedNoiseLaw, moments: PairwiseMoments, place: Mapping[str, int]
) -> None:
    columns = shared.law.columns
    for i, first in enumerate(columns):
        for j, second in enumerate(columns[:i]):
            if first in place and second in place:
                a, b = place[first], place[second]
                value, why = _of_pair(shared, i, j, moments, (a, b))
                found.covariances[a, b] = found.covariances[b, a] = value
                if why:
                    found.why_not[second, first] = why


def _of_pair(
    shared: _SharedNoiseLaw, i: int, j: int, moments: PairwiseMoments, at: tuple[int, int]
) -> tuple[float, str]:
    """Return the covariance of the noise of two columns of a law, or the code of the reason why there is none."""
    if shared.is_closed(i) and shared.is_closed(j):
        value = closed_form(shared.law, (i, j), moments, at)
        return (value, "") if isfinite(value) else (float("nan"), NO_MEAN)
    if shared.is_spread_on_logs(i) or shared.is_spread_on_logs(j):
        return float("nan"), ON_LOGS
    value, last = shared.simulated(i, j)
    a, b = at
    sizes = float(np.sqrt(moments.variances[a, b] * moments.variances[b, a]))
    if not abs(last) <= SETTLED * sizes:
        return float("nan"), UNSETTLED
    return value, ""


def closed_form(law: Additive, pair: tuple[int, int], moments: PairwiseMoments, at: tuple[int, int]) -> float:
    """Return E cov(z1, z2 | x) by the formulas above, from the moments of the released values."""
    shifts = [law.outlets[j].log_shift for j in pair]
    noise, (a, b) = _Pair(law.noise, pair), at
    if shifts[0] is None and shifts[1] is None:
        return float(law.noise.covariance[pair])
    if shifts[0] is None or shifts[1] is None:
        first = shifts[0] is not None
        mean = float(moments.means[a, b] + shifts[0] if first else moments.means[b, a] + shifts[1])
        return mean * noise.tilt(first=first)
    means = (moments.means[a, b] + shifts[0]) * (moments.means[b, a] + shifts[1])
    product = float(moments.covariances[a, b] + means)
    return -product * expm1(noise(1.0, 0.0) + noise(0.0, 1.0) - noise(1.0, 1.0))


@dataclass(frozen=True)
class _Pair:
    """K(s, t) of two columns of a noise."""

    noise: Any
    pair: tuple[int, int]

    def __call__(self, s: float, t: float) -> float:
        scales = np.zeros(self.noise.width)
        scales[list(self.pair)] = s, t
        return log_mean_exp(self.noise, scales)

    def tilt(self, *, first: bool) -> float:
        """Return by how much exp(e) of the one column moves the mean of the other's noise."""
        if isinstance(self.noise, Normal):
            return float(self.noise.covariance[self.pair])
        sd = float(np.sqrt(self.noise.covariance[self.pair[first], self.pair[first]]))
        step = 1e-4 / sd if sd > 0 else 1.0
        slopes = []
        for at in (1.0, 0.0):
            ends = [self(at, h) if first else self(h, at) for h in (step, -step)]
            slopes.append((ends[0] - ends[1]) / (2 * step))
        return slopes[0] - slopes[1]


def log_mean_exp(noise: Any, scales: Floats) -> float:
    """Return log E exp(scales . noise), for the noise of all columns together."""
    if isinstance(noise, Normal):
        return float(scales @ noise.covariance @ scales) / 2
    if isinstance(noise, JointMixture):
        within = float(scales @ noise.within_covariance @ scales) / 2
        return within + float(np.log(np.exp(noise.means @ scales) @ np.array(noise.weights)))
    if isinstance(noise, RotatedMixture):
        root = scaled_root(noise.sds, noise.correlations)[list(noise.chosen or range(len(noise.sds)))]
        unit = Mixture(noise.weights, (noise.unit_means,), (noise.unit_sds,))
        return float(unit.log_mean_exp(0, root.T @ scales).sum())
    return float(sum(noise.log_mean_exp(j, scales[j : j + 1])[0] for j in range(noise.width)))


def mean_factor(law: Additive, j: int) -> float:
    """Return g with E(z | x) = g x + constant where no limit cuts the noise off; not a number where none is."""
    spread, outlet = spread_of(law, j), law.outlets[j]
    if outlet.log_shift is None:
        return law.slope
    if law.slope != 1.0 or (spread is not None and not law.mean_corrected):
        return float("nan")
    offset = law.offsets[j] if law.offsets else 0.0
    bias = 0.0 if law.mean_corrected else float(law.noise.log_mean_exp(j, np.ones(1))[0])
    return exp(offset + bias) if isfinite(offset + bias) else float("nan")


def simulated_covariances(law: Additive, sides: TruthAndRelease) -> tuple[Floats, Floats]:
    """Return the mean over the true values of the noise's covariance, by the series above, and its third term."""
    values, weights = _some(law, sides)
    repeats = int(np.clip(CELLS // max(len(values), 1), 1, MOST_REPEATS))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [_states(law, values, weights, repeat) for repeat in range(repeats)]
    first, second, third = np.mean(found, axis=0)
    step, last = first - second, first - 2 * second + third
    return np.asarray(first + step + last + _rest(step, last)), np.asarray(last)


def _rest(step: Floats, last: Floats) -> Floats:
    """Return the rest of a series whose terms fall by one factor; nothing where they change sign or hardly fall."""
    with np.errstate(divide="ignore", invalid="ignore"):
        factor = last / step
        rest = last * factor / (1 - np.minimum(factor, FALLING))
    return np.where((factor > 0) & (factor < FALLING), rest, 0.0)


def _states(law: Additive, values: Floats, weights: Floats, repeat: int) -> list[Floats]:
    """Return the covariance of the noise of released values, of these masked again, and of these once more."""
    found = []
    for state in range(3):
        if state:
            values = law.draw(values, _stream(len(values), f"state {state} {repeat}"))
        found.append(_drawn_covariance(law, values, weights, repeat))
    return found


def _some(law: Additive, sides: TruthAndRelease) -> tuple[Floats, Floats]:
    """Return released values of the columns of a law, of all records or of so many of them, and their weights."""
    count = len(sides.released)
    few = np.arange(count)
    if count > RECORDS:
        few = np.sort(np.random.default_rng(count).choice(count, RECORDS, replace=False))
    values = np.full((len(few), len(law.columns)), np.nan, order="F")
    for j, name in enumerate(law.columns):
        if name in sides.numbers:
            values[:, j] = sides.after(name)[few]
    weights = sides.weights_after
    return values, np.ones(len(few)) if weights is None else weights[few]


def _stream(count: int, label: str) -> Stream:
    return Stream(Key.from_seed(0), "utility", label, ids_from_numbers(count))


def _drawn_covariance(law: Additive, x: Floats, weights: Floats, repeat: int) -> Floats:
    """Return the mean covariance of two draws given x. All states use the same noise: it cancels between them."""
    draws = [law.draw(x, _stream(len(x), f"{side} {repeat}")) for side in ("one", "other")]
    apart = draws[0] - draws[1]
    is_open = np.isfinite(apart)
    apart[~is_open] = 0.0
    weighted = weights[:, None] * is_open
    return np.asarray((weighted * apart).T @ apart / 2 / (weighted.T @ is_open.astype(np.float64)))


def totals_turn(sides: TruthAndRelease, names: Sequence[str]) -> Floats:
    """Return the matrix that puts the sum of its parts in the place of each recomputed total."""
    place, turn = {name: i for i, name in enumerate(names)}, np.eye(len(names))
    for total, parts in sides.masking.card.recomputed:
        if total in place and all(name in place for name, _ in parts):
            turn[place[total]] = sum(c * turn[place[name]] for name, c in parts)
    return turn


def _with_totals(found: SharedNoise, sides: TruthAndRelease, names: Sequence[str]) -> SharedNoise:
    """Return the covariances of the noise of totals too, each the sum of those of its parts."""
    turn, unknown = totals_turn(sides, names), np.isnan(found.covariances)
    turned = turn @ np.where(unknown, 0.0, found.covariances) @ turn.T
    lost = (np.abs(turn) @ unknown @ np.abs(turn).T) > 0
    why = dict(found.why_not)
    for i, j in zip(*np.nonzero(np.tril(lost, -1)), strict=True):
        if (names[i], names[j]) not in why:
            why.setdefault((names[j], names[i]), OF_PART)
    return SharedNoise(np.where(lost, np.nan, turned), why)
