"""Whether each record has an id of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..arrow_buffers import of_one_length, to_numpy
from .numbers import Array

Letters = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]

_CHUNK = 16_384  # ids that stay near the processor
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads nearby ids


def duplicate_id_problems(name: str, ids: Array) -> list[str]:
    """Return what is wrong with a column of ids: nothing, or the records whose ids are not their own."""
    if _surely_distinct(ids):
        return []
    codes = _codes(ids)
    counts = np.bincount(codes[codes >= 0], minlength=1)
    if counts.max() < 2:
        return []
    records = np.flatnonzero((codes >= 0) & (counts[codes] > 1)) + 1
    first = ", ".join(map(str, records[:5].tolist()))
    more = f" and {len(records) - 5:,} more" if len(records) > 5 else ""
    return [
        f"column {name!r}: ids that occur more than once, at records {first}{more}: give each record its own"
    ]


def _surely_distinct(ids: Array) -> bool:
    """Return whether ids of one length have distinct hashes: then no two are the same, and nothing need be counted."""
    letters = of_one_length(ids)
    if letters is None:
        return False
    if all(_rises(letters[i : i + _CHUNK + 1]) for i in range(0, len(letters), _CHUNK)):
        return True
    hashed = np.concatenate([_letter_hashes(letters[i : i + _CHUNK]) for i in range(0, len(letters), _CHUNK)])
    hashed.sort()
    return not bool((hashed[1:] == hashed[:-1]).any())


def _rises(letters: Letters) -> bool:
    """Return whether each id comes after the one before it: ids of a sorted file are surely distinct."""
    after = np.zeros(len(letters) - 1, bool)
    for word in reversed(_words(letters)):
        after = (word[1:] > word[:-1]) | ((word[1:] == word[:-1]) & after)
    return bool(after.all())


def _letter_hashes(letters: Letters) -> Words:
    hashed = np.zeros(len(letters), np.uint64)
    for word in _words(letters):
        hashed = (hashed ^ word) * _ODD
        hashed ^= hashed >> np.uint64(29)
    return hashed


def _words(letters: Letters) -> list[Words]:
    """Return ids as numbers of up to eight letters, in the order of the letters; the last two may overlap."""
    width = letters.shape[1]
    size = min(8, 1 << (width.bit_length() - 1))
    starts = [*range(0, width - size, size), width - size]
    return [
        np.ndarray(len(letters), f">u{size}", letters, start, (width,)).astype(np.uint64) for start in starts
    ]


def _codes(texts: Array) -> np.ndarray[Any, np.dtype[np.int64]]:
    indices = texts.dictionary_encode().indices.fill_null(-1)
    return np.asarray(to_numpy(indices), dtype=np.int64)
