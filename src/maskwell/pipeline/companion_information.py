"""What who knows a whole group finds by released columns that no intruder compares: a forecast, by bits in common.

Noise is drawn for each record by itself, so that given all true records the rows of a release are independent, and
likeness in columns which an intruder compares, or relies on, adds nothing to what the ceiling finds: who knows a whole
group is no stronger. It is otherwise with columns u that nobody outside is taken to know (role `sensitive`,
`not_known`, or no field of an intruder). With x what is compared (all of it known, of all m companions of a record):

    I_x = I(u_i; x of companions | x_i)    what he knows of companions tells of u_i: at once, without finding anyone,
    I_u = I(u_i; u_c | x)                  rows of companions point to one another: where he finds them, at the rate p.

Both are given x, as likeness that x explains (pupils of one intake) is no news to him, and likeness that x hides (one
parent old, one child young) is. Numbers are taken as normal scores: -1/2 sum_k log2(1 - r_k^2) with r_k the
correlations of two members along their discriminants (Fisher 1936; Gelfand and Yaglom 1957), which may be below 0:
what one of a couple has of a sum the other has not. Categories by the divergence of the table of pairs from the one
that x makes expected. Both are less what as many records put together at random have. By n = p m companions found he
is told I_n = n I_u up to one; beyond, the effect that a group has in common is known better and better and no more,

    r_n^2 = n r^2 / (1 + (n - 1) r)        (Spearman and Brown 1910),

so that 60 pupils do not tell 60 times what one does. A row's odds are multiplied by a factor with variance
v = 2 ln 2 (I_x + I_n) while that is small, and the best of several candidates gains by its sd; by much in common pairs
are told as such. The forecast takes the larger and multiplies the odds,

    g = max(0.9 sqrt(v), 4^I_x - 1 + q (2^(I_n / q) - 1)),  q = min(n, 1);   p' = p (1 + g) / (1 + p g),

where in the last term bits of numbers count 1.4 times (the mean of a normal factor is 4^I, mostly by values far out).
It is twice g where no noise parts the candidates (numbers that are compared have none). Judged is a release where p'
meets the tolerance, or is at most a tenth above p.

Measured in 60 settings of files that others made, 400 to 1,500 records of each in whole groups: pupils in schools
(`Exam`, `Hsb82`, `Chem97`, `ScotsSec`, `Gcsemv`, `star` of mlmRev, `bdf` of nlme, `nlschools` of MASS), couples
(`mroz`), families (`GaltonFamilies`), persons in households (`testdata` of sdcMicro), and persons, firms, districts,
counties, states and routes over time (`wagepan`, `Wages`, `EmplUK`, `jtrain`, `eia`, `mathpnl`, `crime4`, `Guns`,
`driving`, `airfare`), with noise by which 4% to 18% were found one at a time. Our own intruder knew all compared values
of a group and the laws of the others as fitted to the truth, and weighed whole groups by an effect that they share, or
by belief propagation, whichever found more. He found between nothing and 162% more (`GaltonFamilies`: the number of a
child, by the heights of all), and beyond the forecast in 10 settings by 0.9 standard errors at most; the constants 0.9
and 2 were chosen on them, 1.4 on couples with normal values. A limit on p m I without x, 0.15 bits, had passed 19 of
the first 36, and in 12 of these he found over a tenth more (`testdata` with unknown ages: 0.007 bits a pair, given
roles in the household 0.26; 17% to 19% more). The forecast is too high over time, where companions are alike in x too:
wrong candidates then come in whole groups as well (`mathpnl` 202% for 6%). It was above a tenth in 18 settings in which
he found less; who learns the effects of all groups at once found 19% on one of these files (`airfare`, forecast 66%).

Over time the place in the file counts too: a change of a known number since the record before, or to the next, may give
a category (growth in ten classes beside the level: `mathpnl`, 19.5% under a forecast of 3.0% without this), and one of
this year may be another's of last year (17% to 18% for 13.7%). Levels that follow one another along a change, and the
table of any two categories of neighbours, are in both terms; the forecasts there, 90% and 38%, are far too high.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from ..notes import Note
from .companion_laws import (
    LEAST_WITHIN,
    CompanionColumns,
    KnownDesign,
    UnknownValues,
    is_usable,
    known_numbers,
    linear_expectation,
    neighbours,
)

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SPREAD = 0.9  # of the sd of a row's factor is gained, see above
TAIL = 1.4  # times the bits of numbers for pairs: their factor has a long tail, see above
TIED = 2.0  # times as much where candidates are alike to him
MATERIAL = 0.1  # of a rate: less is within what the trials' own errors leave open
MOST_FITTED = 10_000  # records, in whole groups, for laws: a correlation is then known to 0.01
ARRANGEMENTS = 8  # of records at random: what they tell is what chance does
HALVINGS = 30  # of the way to a rate: it is then known to a billionth
CHANCE_SDS = 2.0  # beyond its mean, taken for chance too: 1 of 160 files without likeness was above a tenth


@dataclass(frozen=True, slots=True)
class Likeness:
    """The correlations of two members along numbers and along categories, and those that arrangements at random have.

    They are of the file and not of the noise on what is compared: by them the forecast is known at every rate.
    """

    shared: tuple[Floats, Floats]
    random: tuple[tuple[Floats, Floats], ...]

    def bits(self, companions: float, tail: float = 1.0) -> float:
        """Return what so many companions tell beyond chance; bits of numbers times a factor."""
        by_chance = [_bits(*one, companions, tail) for one in self.random]
        return _beyond_chance(_bits(*self.shared, companions, tail), by_chance)


@dataclass(frozen=True, slots=True)
class CompanionInformation:
    """How much columns which no intruder compares tell of who belongs together.

    `known_bits` are those that companions' compared values tell of a record's unknown ones, `pair_bits` those that two
    members have in common beyond, `found_bits` what the companions that are found tell of them, `heavy_bits` these with
    those of numbers times 1.4.
    """

    column: str
    columns: tuple[str, ...]
    known_bits: float
    pair_bits: float
    found_bits: float
    heavy_bits: float
    companions: float
    rate: float
    tied: bool = False
    likeness: Likeness | None = field(default=None, repr=False, compare=False)

    def at(self, rate: float) -> CompanionInformation:
        """Return the same where one record at a time finds another rate: by more or less noise on what is compared."""
        if self.likeness is None:
            return replace(self, rate=rate)
        found, heavy = (self.likeness.bits(rate * self.companions, tail) for tail in (1.0, TAIL))
        return replace(self, rate=rate, found_bits=found, heavy_bits=heavy)

    def tolerated(self, max_rate: float) -> float:
        """Return the largest rate of one record at a time at which who knows whole groups is within the tolerance.

        The forecast grows with the rate, so that halving the way finds it.
        """
        low, high = 0.0, max_rate
        if self.at(high).is_judged(max_rate):
            return max_rate
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.at(middle).is_judged(max_rate) else (low, middle)
        return low

    @property
    def forecast(self) -> float:
        """The rate that who knows whole groups is expected to reach at most."""
        part = min(self.rate * self.companions, 1.0)
        pairs = part * (2 ** (self.heavy_bits / part) - 1) if part else 0.0
        spread = float(np.sqrt(2 * np.log(2) * (self.known_bits + self.found_bits)))
        factor = max(SPREAD * spread, 4**self.known_bits - 1 + pairs) * (TIED if self.tied else 1.0)
        return self.rate * (1 + factor) / (1 + self.rate * factor)

    @property
    def gain(self) -> float:
        """The share of his rate that who knows a whole group finds more."""
        return self.forecast / self.rate - 1 if self.rate else 0.0

    def is_judged(self, max_rate: float = 0.0) -> bool:
        """Whether rates of one record at a time stand for those of who knows whole groups, or his are tolerated too."""
        return self.gain <= MATERIAL or self.forecast <= max_rate

    @property
    def note(self) -> Note:
        """What who knows a whole group is expected to find."""
        names = ("column", "forecast", "rate", "columns")
        return Note("pipeline.whole_groups", {name: getattr(self, name) for name in names})

    def said(self, max_rate: float = 0.0) -> str:
        """Why figures about one record at a time do not judge the release, and what to do."""
        more = "more noise"
        if max_rate:
            more = f"more noise until one record at a time finds {_below(self.tolerated(max_rate))}"
        return (
            f"{self.column} is dropped, but its members are alike in {', '.join(self.columns)}, which no intruder "
            f"compares, or have there what the others have not ({self.pair_bits:.2g} bits a pair, "
            f"{self.companions:.1f} companions a record): who knows a whole group may find up to "
            f"{self.forecast:.1%} and not {self.rate:.1%}; drop them, give {more}, or let the intruders know them"
        )


def companion_information(
    column: str,
    unknown: CompanionColumns,
    group: Codes,
    rate: float,
    known: CompanionColumns | None = None,
    tied: bool = False,
    place: Codes | None = None,
) -> CompanionInformation:
    """Measure what unknown columns tell of companions to who knows others, less what chance does.

    A few thousand records in whole groups (`whole_groups`) say enough. `tied` says that no noise parts his candidates.
    `place` is that in the file: records of a group that follow one another are years of a firm, waves of a person.
    """
    usable = {name: x for name, x in unknown.numbers.items() if is_usable(x)}
    names = (*usable, *unknown.categories)
    sizes = np.bincount(group)
    several = sizes[group] >= 2
    companions = float((sizes[group[several]] - 1).mean()) if several.any() else 0.0
    if not names or not several.any():
        return CompanionInformation(column, names, 0.0, 0.0, 0.0, 0.0, companions, rate, tied)
    member = np.unique(group[several], return_inverse=True)[1]
    values = UnknownValues.of(CompanionColumns(usable, unknown.categories), several)
    design = KnownDesign.of(known or CompanionColumns(), several)
    rng = np.random.default_rng(0)
    alone, beside = (linear_expectation(values.table, one) for one in (design.own, design.beside(member)))
    others = [design.exchanged(member, rng) for _ in range(ARRANGEMENTS)]
    by_chance = [values.told(alone, linear_expectation(values.table, one)) for one in others]
    told = _beyond_chance(values.told(alone, beside), by_chance)
    shared = values.correlations(beside, member)
    if place is not None:
        inside = place[several]
        told = max(
            told, values.change_bits(known_numbers(known or CompanionColumns(), several), member, inside)
        )
        after = np.array([values.next_correlation(beside, *neighbours(member, inside))])
        shared = (shared[0], max(shared[1], after, key=_category_bits))
    random = [values.correlations(beside, rng.permutation(member)) for _ in range(ARRANGEMENTS)]
    likeness = Likeness(shared, tuple(random))
    one = CompanionInformation(
        column, names, told, likeness.bits(1.0), 0.0, 0.0, companions, rate, tied, likeness
    )
    return one.at(rate)


def _below(rate: float) -> str:
    """Write a rate that is not to be exceeded, rounded down to a tenth of a percent."""
    return f"{np.floor(1000 * rate) / 1000:.1%}"


def _category_bits(correlations: Floats) -> float:
    return float(-0.5 * np.log2(1 - np.minimum(correlations**2, 1 - LEAST_WITHIN)).sum())


def _beyond_chance(bits: float, by_chance: list[float]) -> float:
    """Return the bits beyond those that arrangements at random have, and some sds of these."""
    return max(bits - float(np.mean(by_chance)) - CHANCE_SDS * float(np.std(by_chance, ddof=1)), 0.0)


def whole_groups(group: Codes) -> Codes:
    """Return the records of groups of two and more, of some evenly spread groups where they are many."""
    several = np.bincount(group)[group] >= 2
    numbers = np.unique(group[several])
    some = numbers[:: max(1, -(-int(several.sum()) // MOST_FITTED))]
    return np.flatnonzero(np.isin(group, some))


def _bits(numbers: Floats, categories: Floats, companions: float, tail: float) -> float:
    """Return what so many companions tell, by the correlations of two; those of numbers times a factor."""
    several = max(companions, 1.0)

    def of(r: Floats) -> float:
        explained = several * r**2 / np.maximum(1 + (several - 1) * r, LEAST_WITHIN)
        return float(-0.5 * np.log2(1 - np.minimum(explained, 1 - LEAST_WITHIN)).sum())

    return min(companions, 1.0) * (tail * of(numbers) + of(categories))
