"""The fingerprint floor of a release that has each record with a chance f, expected over the samples.

A target who was released and whose fingerprint t records of the file have is alone with it among those released with
the chance

    (1 - f)^(t - 1),

as none of the t - 1 others was. With k targets of such a fingerprint f k of them are released, so that

    unique = sum of f k (1 - f)^(t - 1) over the fingerprints,   targets = f times those of the file,

and unique / targets is the share of those who left, which a tolerance is held against (`response_knowledge`). Who does
not know who was released takes a fingerprint for his target's only where k = 1: the sum is over these, and all targets
of the file count.
Guessing within a block of n records of the file finds a target who was released among 1 + Binomial(n - 1, f), with

    E 1 / (1 + Binomial(n - 1, f)) = (1 - (1 - f)^n) / (f n).

Chosen for `floor_of` where a mask subsamples. Every figure of the floor is counted so, those of its remedies too: a
column that keeps few alone in the file may keep many alone in a sample of it. Own derivation: records are sampled
independently of each other, each with the same chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from .uniqueness import HIDDEN, SEED, Floor, Prints, Removed, Words, random_words, removals_table
from .unmasked_values import Trait

Floats = npt.NDArray[np.float64]

NOBODY_LEFT = 0.5  # expected records: fewer round to none


@dataclass(frozen=True, slots=True)
class SampledBlocks:
    """A chance with which each record is released, and whether the intruder knows whose records were."""

    share: float
    is_known: bool

    def alone(self, targets: Floats, records: Floats) -> float:
        """Return how many targets are expected to be released and alone, by the counts of each fingerprint."""
        able = targets if self.is_known else targets == 1
        return float(self.share * (able * (1 - self.share) ** (records - 1)).sum())

    def guessing(self, block: npt.NDArray[Any]) -> Floats:
        """Return with which chance a target is guessed right in a block of so many records of the file."""
        chance = (1 - (1 - self.share) ** block) / (self.share * block)
        return np.asarray(chance if self.is_known else self.share * chance, np.float64)

    def targets(self, count: float) -> float:
        """Return how many targets the rate is of: those expected in the release, or all."""
        return self.share * count if self.is_known else count


@dataclass(frozen=True, slots=True)
class _Crowd:
    """Fingerprints as sums (exclusive or) of random words, with how many targets and records have each."""

    traits: list[Words]
    whole: Words
    targets: Floats
    records: Floats

    def merged(self, whole: Words) -> _Crowd:
        """Return the fingerprints that are left where some have become the same."""
        sums, first, place = np.unique(whole, return_index=True, return_inverse=True)
        place = place.ravel()
        return _Crowd(
            [words[first] for words in self.traits],
            sums,
            np.asarray(np.bincount(place, self.targets), np.float64),
            np.asarray(np.bincount(place, self.records), np.float64),
        )

    def alone(self, whole: Words, sampling: SampledBlocks) -> float:
        """Return how many targets are alone by these sums."""
        merged = replace(self, traits=[]).merged(whole)
        return sampling.alone(merged.targets, merged.records)


def sampled_floor(found: Floor, prints: Prints, sampling: SampledBlocks) -> Floor:
    """Return a floor that was counted on the whole file as it is expected in a sample of it."""
    speaking = [trait for trait in prints.traits if trait.count > 1]
    alone, steps = _removals(prints, speaking, sampling)
    return replace(
        found,
        unique=_expected_unique(prints, sampling),
        targets=sampling.targets(found.targets),
        released_share=sampling.share,
        without=removals_table(sorted(alone, key=lambda one: one[2]), whole=False),
        steps=removals_table(steps, whole=False),
    )


def _expected_unique(prints: Prints, sampling: SampledBlocks) -> float:
    count = 1 + int(max(side.max() for side in prints.numbers))
    targets, records = (np.bincount(side, minlength=count).astype(np.float64) for side in prints.numbers)
    there = records > 0
    return sampling.alone(targets[there], records[there])


def _removals(
    prints: Prints, traits: Sequence[Trait], sampling: SampledBlocks
) -> tuple[list[Removed], list[Removed]]:
    """Return how many are alone without each trait alone, and without one after the other."""
    crowd, hidden = _crowd(prints, traits)
    left, remaining = list(traits), _expected_unique(prints, sampling)
    alone, steps = list[Removed](), list[Removed]()
    while remaining >= NOBODY_LEFT and left:
        counts = [crowd.alone(crowd.whole ^ words, sampling) for words in crowd.traits]
        if not steps:
            alone = [(one.column, one.what, count) for one, count in zip(left, counts, strict=True)]
            alone += [
                (one.column, HIDDEN, crowd.alone(crowd.whole ^ words ^ pattern, sampling))
                for one, words, pattern in zip(left, crowd.traits, hidden, strict=True)
                if pattern is not None
            ]
        best = min(range(len(left)), key=lambda i: (counts[i], -left[i].count))
        removed, remaining = left.pop(best), counts[best]
        others = [words for place, words in enumerate(crowd.traits) if place != best]
        crowd = replace(crowd, traits=others).merged(crowd.whole ^ crowd.traits[best])
        steps.append((removed.column, removed.what, remaining))
    return alone, steps


def _crowd(prints: Prints, traits: Sequence[Trait]) -> tuple[_Crowd, list[Words | None]]:
    """Gather the fingerprints of the file, and for columns whose pattern would still show the words of that."""
    ours, theirs = prints.numbers
    numbers, first, records = np.unique(theirs, return_index=True, return_counts=True)
    targets = np.bincount(ours, minlength=int(numbers.max()) + 1)[numbers]
    rng = np.random.default_rng(SEED)
    words = [random_words(rng, trait.released[first], trait.count) for trait in traits]
    hidden = [
        None if trait.pattern is None else random_words(rng, trait.pattern[1][first], trait.count)
        for trait in traits
    ]
    whole = np.bitwise_xor.reduce(words) if words else np.zeros(len(first), np.uint64)
    return _Crowd(words, whole, targets.astype(np.float64), records.astype(np.float64)), hidden
