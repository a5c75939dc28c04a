"""Resamples of the records of a system whose counts carry survey weights.

A weighted estimate solves sum w s = 0, s a record's score, and its variance is that of sum w s: the middle of
the sandwich is sum w^2 s s' (Binder 1983; Pfeffermann 1993). Resampling with chances proportional to weight,
as Goldstein, Carpenter and Kenward (2018) do, gives sum w s s' instead (weights of mean 1): the estimate is
right, its variance too small by about the design effect 1 + cv(w)^2. Here the count of a record has a mean
proportional to its weight and an sd equal to that mean, which gives the sandwich: Poisson counts (the usual
bootstrap) at a mean of 1, geometric ones (the Bayesian bootstrap) for large weights.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import BadPlan
from ..noise.arrays import Arrays, NoiseArrays
from ..system import Factor, Floats, Ints, System

BY_RECORD = (
    "u",
    "shift",
    "weight",
    "slope",
    "component",
    "swapped",
    "pattern",
    "cell_lower",
    "cell_upper",
    "interval",
    "busy",
    "spread_reference",
)
SCALES = (
    1.0,
    1.5,
    2.0,
    3.0,
    4.0,
)  # mean counts to choose from: the larger, the better small weights are carried
# Times the mean counts are rounded for the weighted sample itself: the larger, the less by chance
ROUNDED = 3.0
MOST_EXCESS = 0.03  # of the variance, by counts below 1/2 that cannot have so small an sd as they should


def resampled_system(system: System, records: Ints) -> System:
    """Return a system of some of its records, in that order; one named twice is two, with true values of their own."""
    factors = tuple(replace(factor, codes=factor.codes[records]) for factor in system.factors)
    return replace(
        system,
        state=np.ascontiguousarray(system.state[records]),
        unknown=np.ascontiguousarray(system.unknown[records]),
        factors=factors,
        noise=_noise(system.noise, records),
        tables={j: np.ascontiguousarray(table[records]) for j, table in system.tables.items()},
        lower=None if system.lower is None else np.ascontiguousarray(system.lower[records]),
        upper=None if system.upper is None else np.ascontiguousarray(system.upper[records]),
        counts=None if system.counts is None else system.counts.taken(records),
        counted=None if system.counted is None else system.counted[records],
    )


def _noise(noise: NoiseArrays | None, records: Ints) -> NoiseArrays | None:
    return None if noise is None else replace(noise, arrays=taken_arrays(noise.arrays, records))


def taken_arrays(arrays: Arrays, records: Ints) -> Arrays:
    """Return the noise of some records, all of it copied."""
    own: dict[str, Any] = {name: np.ascontiguousarray(getattr(arrays, name)[records]) for name in BY_RECORD}
    return arrays._replace(**own, far=arrays.far._replace(group=arrays.far.group[records]))


@dataclass(frozen=True, slots=True)
class ResampledUnits:
    """What is resampled: records, or the groups of the coarsest factor, each group with its records.

    `means` are the mean counts of the units; `members` and `sizes` their records. `within` are the mean
    counts of records in a group that was drawn, None where all are 1.
    """

    means: Floats = field(repr=False)
    members: Ints = field(repr=False)
    sizes: Ints = field(repr=False)
    within: Floats | None = field(repr=False)
    factors: tuple[Factor, ...] = field(repr=False)
    words: str = "records"

    @classmethod
    def of(cls, system: System, weights: Floats) -> ResampledUnits:
        """Decide what is resampled: groups where the model has any, else records."""
        count = len(weights)
        if not system.factors:
            return cls(_mean_counts(weights), np.arange(count), np.ones(count, np.int64), None, ())
        factor = system.factors[_coarsest(system.factors)]
        _, unit, sizes = np.unique(factor.codes, return_inverse=True, return_counts=True)
        own = np.bincount(unit, weights) / sizes
        within = weights / own[unit]
        even = bool(np.allclose(within, 1.0, rtol=1e-9))
        order = np.argsort(unit, kind="stable")
        words = f"the groups of {factor.name}"
        return cls(_mean_counts(own), order, sizes, None if even else within, system.factors, words)

    @property
    def is_certain(self) -> bool:
        """Whether the weights are whole mean counts, so that the records can carry them as they are."""
        return self.within is None and bool(np.allclose(self.means, np.rint(self.means), rtol=1e-9))

    def draw(self, rng: np.random.Generator) -> tuple[Ints, tuple[Ints, ...]]:
        """Resample: return records and, for each factor, their groups; copies of a group are groups of their own."""
        return self._records(drawn_counts(self.means, rng), rng)

    def rounded(self, rng: np.random.Generator) -> tuple[Ints, tuple[Ints, ...]]:
        """Return the weighted sample itself: records whose counts are multiples of the mean counts, rounded."""
        times = 1.0 if self.is_certain else ROUNDED
        return self._records(rounded_counts(times * self.means, rng), rng)

    def _records(self, counts: Ints, rng: np.random.Generator) -> tuple[Ints, tuple[Ints, ...]]:
        units = np.repeat(np.arange(len(counts)), counts)
        sizes = self.sizes[units]
        copy = np.repeat(np.arange(len(units)), sizes)
        ends = np.cumsum(self.sizes)
        inside = np.arange(len(copy)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        records = self.members[(ends - self.sizes)[units][copy] + inside]
        if self.within is not None:
            order = np.lexsort((rng.random(len(copy)), copy))
            records, copy = records[order], copy[order]
            again = _systematic(self.within[records], rng)
            records, copy = np.repeat(records, again), np.repeat(copy, again)
        return records, tuple(_renumber_groups(factor.codes[records], copy) for factor in self.factors)


def drawn_system(system: System, drawn: tuple[Ints, tuple[Ints, ...]]) -> System:
    """Return the system of a resample."""
    records, codes = drawn
    found = resampled_system(system, records)
    factors = tuple(
        replace(factor, codes=own, labels=tuple(map(str, range(int(own.max(initial=-1)) + 1))))
        for factor, own in zip(found.factors, codes, strict=True)
    )
    return replace(found, factors=factors)


def drawn_counts(means: Floats, rng: np.random.Generator) -> Ints:
    """Draw counts of given means with sds equal to them, as far as whole numbers can have them (means from 1/2 on).

    From 1 on negative binomial: variance m + m^2 / r with r = m / (m - 1); below a mixture of Poisson and of
    0 or 1, with the share 2 - 1 / m of the former.
    """
    high = means > 1.0 + 1e-9
    size = np.where(high, means / np.where(high, means - 1.0, 1.0), 1.0)
    rates = np.where(high, means * rng.standard_gamma(size) / size, means)
    poisson = rng.poisson(rates)
    once = rng.random(len(means)) < means
    mixed = rng.random(len(means)) < 2.0 - 1.0 / means
    return np.where(high | mixed, poisson, once).astype(np.int64)


def rounded_counts(means: Floats, rng: np.random.Generator) -> Ints:
    """Round mean counts up or down so that each is right on average and their sum is right within 1."""
    order = rng.permutation(len(means))
    out = np.empty(len(means), np.int64)
    out[order] = _systematic(means[order], rng)
    return out


def _systematic(means: Floats, rng: np.random.Generator) -> Ints:
    """Return whole numbers next to the means: points one apart from a random start, counted along their sum."""
    ends = np.cumsum(means)
    near = np.rint(ends)
    ends = np.where(np.abs(ends - near) < 1e-9 * np.maximum(near, 1.0), near, ends)  # whole sums stay whole
    passed = np.floor(ends + rng.random()).astype(np.int64)
    return np.diff(passed, prepend=0)


def _mean_counts(weights: Floats) -> Floats:
    """Return mean counts: weights of the least mean at which the counts' variances are right but for a little."""
    whole = weights / weights.mean()
    for scale in SCALES:
        means = scale * whole
        excess = np.maximum(means - 2.0 * means**2, 0.0).sum()
        if excess <= MOST_EXCESS * (means**2).sum():
            break
    return np.asarray(means)


def _coarsest(factors: tuple[Factor, ...]) -> int:
    """Return the factor in whose groups those of all others lie.

    No resampling of crossed groups has the right variance (McCullagh, Bernoulli 6, 2000): groups of one factor alone
    leave out what the other adds, groups of both count what differs between records three times (Owen 2007).
    """
    order = sorted(range(len(factors)), key=lambda k: len(np.unique(factors[k].codes)))
    first = factors[order[0]]
    for k in order[1:]:
        both = np.unique(np.column_stack([factors[k].codes, first.codes]), axis=0)
        if len(both) > len(np.unique(factors[k].codes)):
            raise BadPlan(
                f"with weights whole groups are resampled, but those of {factors[k].name!r} do not lie within those of "
                f"{first.name!r}; take the factor with fewer groups as a category ('+ {first.name}' in place of "
                f"'(1|{first.name})'), or leave out the weights"
            )
    return order[0]


def _renumber_groups(codes: Ints, copy: Ints) -> Ints:
    """Number groups anew, so that those of two copies differ."""
    both = copy * (int(codes.max(initial=0)) + 1) + codes
    return np.asarray(np.unique(both, return_inverse=True)[1].ravel(), np.int64)
