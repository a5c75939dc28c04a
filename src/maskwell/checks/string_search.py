"""Searching bytes for many strings at once: by the last eight letters of each, hashed, and then letter by letter."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

TAIL = 8  # letters by which strings are looked up; shorter ones are not searched for
PART = 1 << 23  # bytes at a time
MOST_LENGTHS = 40
ENOUGH = 10_000  # strings found: more would say no more

_BITS = 22
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads nearby strings

Words = npt.NDArray[np.uint64]


def found_in(data: bytes, wanted: Iterable[bytes], *, alone: bool = False) -> Counter[bytes]:
    """Count how often strings (of eight letters or more) occur in some bytes; those that do not are left out.

    A string of digits counts where no further digit stands beside it: longer numbers hold shorter ones by chance. With
    `alone` all count only where no letter or digit does.
    """
    by_length: dict[int, set[bytes]] = defaultdict(set)
    for one in wanted:
        if len(one) >= TAIL:
            by_length[len(one)].add(one)
    found: Counter[bytes] = Counter()
    lengths = sorted(by_length, key=lambda size: -len(by_length[size]))[:MOST_LENGTHS]
    for size in lengths:
        tails = np.unique(_words(b"".join(one[-TAIL:] for one in by_length[size]))[::TAIL])
        for place in _places(data, tails):
            start = place + TAIL - size
            text = data[start : start + size] if start >= 0 else b""
            if text in by_length[size] and not _is_part(data, start, size, text.isdigit(), alone):
                found[text] += 1
                if len(found) >= ENOUGH:
                    return found
    return found


def _words(data: bytes) -> Words:
    """Return the eight bytes from every place on, as numbers, without a copy."""
    return np.ndarray(max(len(data) - TAIL + 1, 0), "<u8", data, 0, (1,))


def _places(data: bytes, tails: Words) -> Iterator[int]:
    """Return where one of some eight letters stands."""
    table = np.zeros(1 << _BITS, bool)
    table[_hash_words(tails)] = True
    for start in range(0, len(data), PART):
        words = _words(data[start : start + PART + TAIL - 1])
        near = np.flatnonzero(table[_hash_words(words)])
        at = np.searchsorted(tails, words[near])
        sure = near[tails[np.minimum(at, len(tails) - 1)] == words[near]]
        yield from (sure + start).tolist()


def _hash_words(words: Words) -> npt.NDArray[np.int64]:
    return ((words * _ODD) >> np.uint64(64 - _BITS)).astype(np.int64)


def _is_part(data: bytes, start: int, size: int, of_number: bool, of_word: bool) -> bool:
    """Whether a string is part of a longer number, or of a longer word."""
    beside = data[max(start - 1, 0) : start] + data[start + size : start + size + 1]
    return (of_number and any(letter in b"0123456789." for letter in beside)) or (
        of_word and any(bytes([letter]).isalnum() for letter in beside)
    )
