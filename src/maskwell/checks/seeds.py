"""Seeds that people take and the random numbers that common programs make of them, for many seeds at once.

Each generator gives, for seeds x count, what the program named prints first after it was seeded: numpy's Generator
(PCG64) and its legacy RandomState, Python's `random.gauss` and `random.random`, R's `rnorm` and `runif`. Uniforms are
centred at zero. R and Python share the Mersenne Twister (Matsumoto and Nishimura 1998) and differ in how they seed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from ..table import Floats

Words = npt.NDArray[np.uint32]

_OTHERS = (
    *(1234, 12345, 123456, 1234567, 12345678, 123456789, 1234567890, 54321, 654321, 987654321, 4321),
    *(3141, 31415, 314159, 3141592, 31415926, 2718, 27182, 271828, 1618, 16180, 161803, 1337, 31337),
    *(4242, 424242, 2222, 3333, 4444, 5555, 6666, 7777, 8888, 9999, 10000, 99999, 100000, 999999, 1000000),
    *(8675309, 20000, 2**31 - 1, 2**32 - 1, 5489, 19937, 19650218, 11111, 22222, 77777, 123123, 101010),
)


def common_seeds() -> npt.NDArray[np.int64]:
    """Return the seeds that are tried: 0 to 2030 (years among them), well-known numbers, and dates."""
    days = [date(2024, 1, 1) + timedelta(days=i) for i in range(3 * 365 + 1)]
    firsts = [date(year, month, 1) for year in range(2000, 2031) for month in range(1, 13)]
    dates = {10_000 * day.year + 100 * day.month + day.day for day in (*days, *firsts)}
    return np.array(sorted({*range(2031), *_OTHERS, *dates}), dtype=np.int64)


def numpy_normals(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return default_rng(seed).standard_normal(count)."""
    out = np.empty((len(seeds), count))
    for row, generator in zip(out, generators(seeds), strict=True):
        generator.standard_normal(out=row)
    return out


def numpy_uniforms(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return default_rng(seed).random(count), centred."""
    out = np.empty((len(seeds), count))
    for row, generator in zip(out, generators(seeds), strict=True):
        generator.random(out=row)
    return out - 0.5


def legacy_normals(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return what numpy.random.seed(seed) and numpy.random.standard_normal(count) give."""
    out, state = np.empty((len(seeds), count)), np.random.RandomState(0)
    for row, seed in zip(out, seeds.tolist(), strict=True):
        state.seed(seed)
        row[:] = state.standard_normal(count)
    return out


def legacy_uniforms(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return what numpy.random.seed(seed) and numpy.random.random(count) give, centred."""
    out, state = np.empty((len(seeds), count)), np.random.RandomState(0)
    for row, seed in zip(out, seeds.tolist(), strict=True):
        state.seed(seed)
        row[:] = state.random_sample(count)
    return out - 0.5


def python_uniforms(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return what random.seed(seed) and random.random() give, centred."""
    return _python(seeds, count) - 0.5


def python_normals(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return what random.seed(seed) and random.gauss() give: pairs by Box and Muller's transform."""
    uniforms = _python(seeds, count + count % 2)
    angle, radius = 2 * np.pi * uniforms[:, ::2], np.sqrt(-2 * np.log1p(-uniforms[:, 1::2]))
    out = np.empty_like(uniforms)
    out[:, ::2], out[:, 1::2] = np.cos(angle) * radius, np.sin(angle) * radius
    return out[:, :count]


def r_uniforms(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return what R's set.seed(seed) and runif(count) give, centred."""
    return _r(seeds, count) - 0.5


def r_normals(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return what R's set.seed(seed) and rnorm(count) give: inversion of 27 + 32 bits."""
    from scipy.special import ndtri

    uniforms, big = _r(seeds, 2 * count), 2.0**27
    return np.asarray(ndtri((np.floor(big * uniforms[:, ::2]) + uniforms[:, 1::2]) / big))


GENERATORS: dict[str, Callable[[npt.NDArray[np.int64], int], Floats]] = {
    "numpy's default_rng, normals": numpy_normals,
    "numpy's default_rng, uniforms": numpy_uniforms,
    "numpy.random.seed, normals": legacy_normals,
    "numpy.random.seed, uniforms": legacy_uniforms,
    "Python's random.gauss": python_normals,
    "Python's random.random": python_uniforms,
    "R's rnorm": r_normals,
    "R's runif": r_uniforms,
}
# Numpy fills its arrays record by record, and so does a loop in Python; R goes column by column. So many columns are
# tried in that way: a record of more takes long to draw.
BY_RECORD = dict.fromkeys(tuple(GENERATORS)[:4], 16) | dict.fromkeys(tuple(GENERATORS)[4:6], 8)


def numpy_words(seeds: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the first words of 32 bits of default_rng(seed): seeds x count."""
    words = [generator.integers(0, 2**32, count, dtype=np.uint32) for generator in generators(seeds)]
    return np.array(words, np.int64)


def legacy_words(seeds: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the first words of 32 bits of RandomState(seed): seeds x count."""
    words = np.empty((len(seeds), count), np.int64)
    state = np.random.RandomState(0)
    for row, seed in zip(words, seeds.tolist(), strict=True):
        state.seed(seed)
        row[:] = state.randint(0, 2**32, count, dtype=np.uint32)
    return words


def r_words(seeds: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the first words of 32 bits of R's set.seed(seed), as unif_rand() shows them: seeds x count."""
    return np.rint((r_uniforms(seeds, count) + 0.5) * 2**32).astype(np.int64)


def generators(seeds: npt.NDArray[np.int64]) -> Iterator[np.random.Generator]:
    """Set one PCG64 to the state that each seed gives; making a new one for each takes four times as long."""
    bits = np.random.PCG64(0)
    generator, whole = np.random.Generator(bits), (1 << 128) - 1
    for first, second, third, fourth in _seed_sequences(seeds).tolist():
        increment = (((third << 64 | fourth) << 1) | 1) & whole
        state = (
            (increment + (first << 64 | second)) * 0x2360ED051FC65DA44385DF649FCCF645 + increment
        ) & whole
        bits.state = {
            "bit_generator": "PCG64",
            "state": {"state": state, "inc": increment},
            "has_uint32": 0,
            "uinteger": 0,
        }
        yield generator


def _seed_sequences(seeds: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return numpy's SeedSequence(seed).generate_state(4, uint64) for seeds below 2^32 (O'Neill's seed_seq_fe)."""
    constant = 0x43B0D7E5

    def hashed(value: Words, multiplier: int) -> Words:
        nonlocal constant
        value = value ^ np.uint32(constant)
        constant = constant * multiplier & 0xFFFFFFFF
        value = value * np.uint32(constant)
        return value ^ (value >> np.uint32(16))

    nothing = np.zeros(len(seeds), np.uint32)
    pool = [hashed(word, 0x931E8875) for word in (seeds.astype(np.uint32), nothing, nothing, nothing)]
    for source in range(4):
        for target in range(4):
            if source != target:
                other = hashed(pool[source], 0x931E8875)
                mixed = pool[target] * np.uint32(0xCA01F9DD) - other * np.uint32(0x4973F715)
                pool[target] = mixed ^ (mixed >> np.uint32(16))
    constant = 0x8B51F9DD
    state = np.column_stack([hashed(pool[i % 4], 0x58F38DED) for i in range(8)]).astype(np.uint64)
    return np.asarray(state[:, ::2] | state[:, 1::2] << np.uint64(32))


def _python(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return random.random() of each seed: 53 bits of two words."""
    words = _words(_python_states(seeds), 2 * count)
    return np.asarray(((words[::2] >> 5) * 67108864.0 + (words[1::2] >> 6)).T / 9007199254740992.0)


def python_words(seeds: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    """Return the first words of 32 bits of random.seed(seed): seeds x count."""
    return np.ascontiguousarray(_words(_python_states(seeds), count).T.astype(np.int64))


def _python_states(seeds: npt.NDArray[np.int64]) -> Words:
    """Return the states that init_by_array makes of one word: words x seeds."""
    from ..kernels.mersenne_twister import LENGTH, init_by_word

    start: Any = np.random.RandomState(19650218).get_state()  # what init_by_array begins with, for any key
    state = np.empty((LENGTH, len(seeds)), np.uint32)
    init_by_word(start[1].astype(np.uint32), seeds.astype(np.uint32), state)
    return state


def _r(seeds: npt.NDArray[np.int64], count: int) -> Floats:
    """Return unif_rand() of each seed: a congruential generator fills the state after 50 steps in vain."""
    multiplier, power, added, powers, sums = 69069, 1, 0, [], []
    for step in range(50 + 1 + 624):
        power, added = power * multiplier & 0xFFFFFFFF, (added * multiplier + 1) & 0xFFFFFFFF
        if step > 50:  # the first word is a counter, which is set to 624
            powers.append(power)
            sums.append(added)
    state = np.multiply.outer(np.array(powers, np.uint32), seeds.astype(np.uint32))
    state += np.array(sums, np.uint32)[:, None]
    return np.asarray(np.clip(_words(state, count).T * 2.3283064365386963e-10, 2.4e-10, 1 - 2.4e-10))


def _words(state: Words, count: int) -> Words:
    """Return the first words of the Mersenne Twister from full states, words x seeds."""
    blocks: list[Words] = []
    while 624 * len(blocks) < count:
        state = state.copy()
        last = count - 624 * len(blocks)
        for start, end in ((0, 227), (227, 454), (454, 623), (623, 624)):
            if start < last:
                _twist(state, start, end)
        blocks.append(_temper_words(state[: min(last, 624)]))
    return np.concatenate(blocks)


def _twist(state: Words, start: int, end: int) -> None:
    """Renew a run of words none of which needs a renewed one of the same run."""
    following = state[[0]] if end == 624 else state[start + 1 : end + 1]
    mixed = (state[start:end] & np.uint32(0x80000000)) | (following & np.uint32(0x7FFFFFFF))
    odd = (mixed & np.uint32(1)) * np.uint32(0x9908B0DF)
    far = start + 397 if start < 227 else start - 227
    state[start:end] = state[far : far + end - start] ^ (mixed >> np.uint32(1)) ^ odd


def _temper_words(words: Words) -> Words:
    words = words ^ (words >> np.uint32(11))
    words ^= (words << np.uint32(7)) & np.uint32(0x9D2C5680)
    words ^= (words << np.uint32(15)) & np.uint32(0xEFC60000)
    return words ^ (words >> np.uint32(18))
