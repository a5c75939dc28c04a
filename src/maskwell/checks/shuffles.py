"""Orders that a common seed or a hash of the id gives: of shuffles by common programs only the last places are drawn.

All of them are the shuffle of Fisher and Yates: for i = n - 1, n - 2, ... the value at i changes places with that at j,
drawn from 0, ..., i. After k steps the last k places are final, so that k draws tell them, whatever n is. A seed of
which some of these agree makes the whole order, which is compared record by record. Programs differ in how they draw j:
numpy by the low bits of 32 (RandomState is that of pandas and scikit-learn), Python by the high ones (random.sample is
its shuffle read backwards), R by chunks of 16 bits. (Knuth 1998, section 3.4.2, algorithm P.) Called by `relations` and
`computed_ids`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np
import numpy.typing as npt

from .guessed_seeds import HASHES
from .seeds import common_seeds, legacy_words, numpy_words, python_words, r_uniforms

Integers = npt.NDArray[np.int64]

LAST = 12  # places of a shuffle that are drawn for each seed
ALIKE = 3  # of these that agree, from which on the whole order is drawn
DRAWN_WORDS = 4 * LAST  # of 32 bits: half of them may be out of range
RARE = 1e-6  # chance of a finding in a sound file, over all that is tried
WAYS = 4  # in which an order is read: forwards, backwards, and where each record went


@dataclass(frozen=True, slots=True)
class KnownOrder:
    """Who orders records so, and the share of the records that stand where it puts them."""

    how: str
    share: float


def least_hits(tries: float) -> int:
    """Return how many records must agree that chance gives it in less than one of a million files.

    A random order puts c given records right with probability (n - c)! / n!, so that c or more are right in any of so
    many tries with a probability of at most tries / c!.
    """
    return next(c for c in range(1, 100) if tries / factorial(c) < RARE)


def seeded_order(places: Integers) -> KnownOrder | None:
    """Return the common seed whose shuffle gives an order: places in the file for the records as they leave."""
    count, seeds = len(places), common_seeds()
    needed = max(least_hits(tries_of_seeds()), count / 2)
    if count < max(needed, LAST):
        return None
    went = np.empty_like(places)
    went[places] = np.arange(count)
    ways = [order for one in (places, went) for order in (one, one[::-1])]
    for how, draw in SHUFFLES.items():
        last = _last_places_by_seed(draw, count)
        for order in ways:
            agree = (last == order[::-1][:LAST]).sum(axis=1)
            for seed in seeds[agree >= ALIKE].tolist():
                hits = int((whole_order(draw, seed, count) == order).sum())
                if hits >= needed:
                    return KnownOrder(f"{how} from the seed {seed}", hits / count)
    return None


@lru_cache(maxsize=8)  # 350 KB each: the shuffles of two files, as draws of one plan are all of one file
def _last_places_by_seed(draw: Callable[[Integers, int], Integers], count: int) -> Integers:
    """Return the last places of so many records that each common seed gives."""
    last = last_places(draw(common_seeds(), count), count)
    last.setflags(write=False)
    return last


def tries_of_seeds() -> int:
    """Return how many orders are tried."""
    return len(SHUFFLES) * WAYS * len(common_seeds())


def numpy_draws(seeds: Integers, count: int) -> Integers:
    """Return the first j of default_rng(seed).permutation(count): seeds x draws."""
    return _words_in_range(numpy_words(seeds, DRAWN_WORDS), count, _low_bits)


def legacy_draws(seeds: Integers, count: int) -> Integers:
    """Return the first j of RandomState(seed).permutation(count)."""
    return _words_in_range(legacy_words(seeds, DRAWN_WORDS), count, _low_bits)


def python_draws(seeds: Integers, count: int) -> Integers:
    """Return the first j of random.seed(seed) and random.shuffle of so many."""
    words = python_words(seeds, DRAWN_WORDS)
    return _words_in_range(words, count, lambda word, top: word >> (32 - int(top).bit_length()))


def r_draws(seeds: Integers, count: int) -> Integers:
    """Return the first j of R's set.seed(seed) and sample(count), from version 3.6 on."""
    bits = int(count - 1).bit_length()
    chunks = bits // 16 + 1
    parts = np.floor((r_uniforms(seeds, DRAWN_WORDS * chunks) + 0.5) * 65536).astype(np.int64)
    words = parts[:, ::chunks]
    for k in range(1, chunks):
        words = 65536 * words + parts[:, k::chunks]
    return _words_in_range(words, count, _low_bits)


SHUFFLES: dict[str, Callable[[Integers, int], Integers]] = {
    "numpy's default_rng, permutation": numpy_draws,
    "numpy's RandomState or pandas' sample": legacy_draws,
    "Python's random.shuffle": python_draws,
    "R's sample": r_draws,
}


def _tops(count: int) -> Integers:
    """Return how many values each of the first draws may take."""
    return np.arange(count, count - LAST, -1)


def _low_bits(words: Integers, top: int) -> Integers:
    """Return the bits of words that numbers below a top have."""
    return words & ((1 << int(top - 1).bit_length()) - 1)


def _words_in_range(words: Integers, count: int, value: Callable[[Integers, int], Integers]) -> Integers:
    """Take from each row of words, one after the other, those whose value is in range; -1 where they run out."""
    out = np.full((len(words), LAST), -1)
    at = np.zeros(len(words), np.int64)
    rows = np.arange(len(words))
    for k, top in enumerate(_tops(count).tolist()):
        waiting = np.ones(len(words), bool)
        while waiting.any():
            waiting &= at < words.shape[1]
            here = rows[waiting]
            drawn = value(words[here, at[here]], top)
            at[here] += 1
            fits = drawn < top
            out[here[fits], k] = drawn[fits]
            waiting[here[fits]] = False
    return out


def last_places(draws: Integers, count: int) -> Integers:
    """Return what stands in the last places, from the last one on: seeds x places."""
    out = np.empty_like(draws)
    changed, values = np.full(draws.shape, -1), np.full(draws.shape, -1)
    for k in range(LAST):
        j, last = draws[:, k], np.full(len(draws), count - 1 - k)
        at_j, at_last = (_occupants(where, changed[:, :k], values[:, :k]) for where in (j, last))
        out[:, k] = at_j
        changed[:, k], values[:, k] = j, at_last
    return out


def _occupants(where: Integers, changed: Integers, values: Integers) -> Integers:
    """Return what stands in a place of each row: itself, or what came there last."""
    found = where.copy()
    for k in range(changed.shape[1]):
        found = np.where(changed[:, k] == where, values[:, k], found)
    return found


def whole_order(draw: Callable[[Integers, int], Integers], seed: int, count: int) -> Integers:
    """Return the whole order that a seed gives."""
    if draw is numpy_draws:
        return np.random.default_rng(seed).permutation(count)
    if draw is legacy_draws:
        return np.random.RandomState(seed).permutation(count)
    if draw is python_draws:
        order = list(range(count))
        random.Random(seed).shuffle(order)  # noqa: S311 (what others did is made again)
        return np.array(order)
    return _r_sample(seed, count)


def _r_sample(seed: int, count: int) -> Integers:
    """Return R's sample(count), read backwards, from 0 on."""
    order, out, at = np.arange(count), np.empty(count, np.int64), 0
    most = 3 * count * (count.bit_length() // 16 + 1) + 624  # half of the numbers may be out of range
    words = np.floor((r_uniforms(np.array([seed]), most)[0] + 0.5) * 65536).astype(np.int64).tolist()
    for left in range(count, 0, -1):
        bits, j = (left - 1).bit_length(), left
        while j >= left:
            j = 0
            for _ in range(bits // 16 + 1):
                j, at = 65536 * j + words[at], at + 1
            j &= (1 << bits) - 1
        out[left - 1], order[j] = order[j], order[left - 1]
    return out


def hash_keys(texts: Sequence[str]) -> Iterator[tuple[str, Integers]]:
    """Return what programs sort by to hide an order: digests of texts, and the texts read backwards, as ranks."""
    yield "the id", _ranks(list(texts))
    yield "the id read backwards", _ranks([text[::-1] for text in texts])
    for label, digest in HASHES.items():
        yield f"{label} of the id", _ranks([digest(text.encode()) for text in texts])


def _ranks(keys: Sequence[str] | Sequence[bytes]) -> Integers:
    ranks = np.empty(len(keys), np.int64)
    ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return ranks
