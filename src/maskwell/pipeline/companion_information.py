"""What released columns that no intruder compares tell of companions: bits that a pair of one group has in common.

Noise is drawn for each record by itself, so that given all true records the rows of a release are independent, and
likeness in columns which an intruder compares, or relies on, adds nothing to what the ceiling finds: who knows a whole
group is no stronger. It is otherwise with columns that nobody outside is taken to know (role `sensitive`, `not_known`,
or no field of an intruder). Members whose values there are alike point to one another, and who knows a whole group
looks for rows that fit its members and one another. A pair of members has in common

    I = sum over categories of their mutual information - 1/2 sum_k log2(1 - r_k^2),

r_k the correlations of two members along the discriminants of the numbers, as normal scores (Fisher 1936; mutual
information of normal values: Gelfand and Yaglom 1957), less what as many records put together at random have. They may
be below 0: what one of a couple has of a sum the other has not. With m
companions on average, each of whom he finds at the rate p, he is told about p m I bits more on a record.

The limit is measured: 4,580 persons in 1,000 households (`testdata` of sdcMicro) with noise on age and expenditure by
which 2.5%, 5.7% and 12.1% were found one at a time, beside one or three columns that he does not know, and an intruder
who weighs whole households (belief propagation). Up to p m I = 0.16 he found at most a tenth more, from 0.25 to 0.35
between nothing and two thirds more, at 0.6 a fifth to three quarters more, at 1.2 twice as many. The nearest companion
was right in 1.9% of the guesses where he found half as many again: far below the third from which on records count as
told together in `group_links`, which looks at what can be told of groups without knowing any of their members.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from .group_links import group_covariances

Codes = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST_TOLD = 0.15  # bits more on a record, see above
NEGLIGIBLE = 0.02  # correlation of members below which a direction tells nothing and only adds up to chance
LEAST_WITHIN = 1e-8  # of a direction's variance: below it members are the same, but for rounding
MOST_GAPS = 0.5  # share of a column's values: of more missing ones nothing is learned


@dataclass(frozen=True, slots=True)
class CompanionInformation:
    """How much columns which no intruder compares tell of who belongs together."""

    column: str
    columns: tuple[str, ...]
    bits: float
    companions: float
    rate: float

    @property
    def expected(self) -> float:
        """The bits that who knows a whole group is told on a record beyond what is compared."""
        return self.rate * self.companions * self.bits

    @property
    def is_judged(self) -> bool:
        """Whether rates of one record at a time stand for those of who knows whole groups."""
        return self.expected <= MOST_TOLD

    @property
    def said(self) -> str:
        """Why figures about one record at a time do not judge the release, and what to do."""
        return (
            f"{self.column} is dropped, but its members are alike in {', '.join(self.columns)}, which no intruder "
            f"compares, or have there what the others have not ({self.bits:.1f} bits a pair, {self.companions:.1f} "
            "companions a record): who knows a whole group finds more than these rates say; drop them, give them "
            "more noise, or let the intruders know them"
        )


def companion_information(
    column: str, numbers: Mapping[str, Floats], categories: Mapping[str, Codes], group: Codes, rate: float
) -> CompanionInformation:
    """Measure what numbers (NaN where missing) and categories tell of companions, less what chance does."""
    sizes = np.bincount(group)
    several = sizes[group] >= 2
    companions = float((sizes[group[several]] - 1).mean()) if several.any() else 0.0
    known = {name: x for name, x in numbers.items() if np.isnan(x).mean() < MOST_GAPS and np.nanvar(x) > 0}
    shuffled = np.random.default_rng(0).permutation(group)  # as many groups of the same sizes, at random
    bits = 0.0
    if several.any():
        bits += max(_of_numbers(known, group) - _of_numbers(known, shuffled), 0.0)
        bits += sum(max(_of_pairs(one, group) - _of_pairs(one, shuffled), 0.0) for one in categories.values())
    return CompanionInformation(column, (*known, *categories), bits, companions, rate)


def _of_numbers(numbers: Mapping[str, Floats], group: Codes) -> float:
    """Return the bits that the normal scores of two members have in common."""
    from scipy.linalg import eigh

    if not numbers:
        return 0.0
    scores = [_normal_scores(x) for x in numbers.values()]
    within, total = group_covariances(scores, group, np.bincount(group)[group] >= 2)
    most = 1 - LEAST_WITHIN
    correlations = np.clip(1 - eigh(within, total, eigvals_only=True), -most, most)
    return float(-0.5 * np.log2(1 - correlations[np.abs(correlations) > NEGLIGIBLE] ** 2).sum())


def _normal_scores(x: Floats) -> Floats:
    from scipy.special import ndtri
    from scipy.stats import rankdata

    out, known = np.zeros(len(x)), ~np.isnan(x)
    out[known] = ndtri(rankdata(x[known]) / (np.count_nonzero(known) + 1))
    return out


def _of_pairs(codes: Codes, group: Codes) -> float:
    """Return the mutual information of the categories of two members, by the table of all ordered pairs.

    Groups weigh by their records, not by their pairs: each record looks for its companions.
    """
    groups, levels = int(group.max()) + 1, int(codes.max()) + 1
    counts = np.zeros((groups, levels))
    np.add.at(counts, (group, codes), 1.0)
    sizes = counts.sum(axis=1)
    counts, sizes = counts[sizes >= 2], sizes[sizes >= 2]
    weighted = counts / (sizes - 1)[:, None]
    joint = weighted.T @ counts - np.diag(weighted.sum(axis=0))
    joint /= joint.sum()
    free = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    some = joint > 0
    return float((joint[some] * np.log2(joint[some] / free[some])).sum())
