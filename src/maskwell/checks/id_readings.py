"""How released codes are read: without what all of them begin and end with, as numbers, and as ranks.

Where codes have nothing to do with the records, each order of the codes is as probable as any other. A relation that
leads from each record to one code at most, and that may depend on r reference records, then holds for c others or more
with a probability of at most 1 / c!, so that any of k relations does with at most k / c! (`shuffles.least_hits`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Numbers = list[int | None]

NEARLY = 0.9  # of the codes must be different ones
FEWEST = 20  # records below which codes say nothing
DIGITS, SMALL, CAPITALS = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ALPHABETS = {  # of codes whose letters are not those of hexadecimal numbers
    "base 62": DIGITS + CAPITALS + SMALL,
    "base 62, small letters first": DIGITS + SMALL + CAPITALS,
    "letters and digits": SMALL + CAPITALS + DIGITS,
    "base 64": CAPITALS + SMALL + DIGITS + "+/",
    "base 64 of addresses": CAPITALS + SMALL + DIGITS + "-_",
    "base 58": "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz",
    "base 32": CAPITALS + "234567",
    "base 32, small letters": SMALL + "234567",
    "letters first": CAPITALS + DIGITS,
    "small letters first": SMALL + DIGITS,
}
BASES = ((16, "(0x)?[0-9a-f]{1,40}", "[a-f]"), (36, "[0-9a-z]{1,40}", "[g-z]"))


@dataclass(frozen=True, slots=True)
class Relation:
    """How codes come from records, and of which share of them."""

    how: str
    share: float


def without_frame(codes: list[str]) -> list[str]:
    """Take away what all codes begin and end with."""
    begin = _common(codes)
    end = _common([code[begin:][::-1] for code in codes if code])
    return [code[begin : len(code) - end] for code in codes]


def _common(texts: list[str]) -> int:
    """Return how many signs all texts begin with: those of the first and the last by the alphabet."""
    there = [text for text in texts if text] or [""]
    return sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(min(there), max(there), strict=False)))


def readings(codes: Sequence[str]) -> Iterator[tuple[str, Numbers]]:
    """Read codes as numbers: by all of their digits, and to the bases 16 and 36."""
    numbers = numbers_of(codes)
    if numbers is not None:
        yield "", numbers
    plain = [code.lower().replace("-", "") for code in codes]
    for base, pattern, letters in BASES:
        fits = [bool(re.fullmatch(pattern, code)) for code in plain]
        if sum(fits) > NEARLY * len(plain) and any(re.search(letters, code) for code in plain):
            yield (
                f" (to the base {base})",
                [int(code, base) if fit else None for code, fit in zip(plain, fits, strict=True)],
            )
    yield from _alphabet_readings(codes)


def _alphabet_readings(codes: Sequence[str]) -> Iterator[tuple[str, Numbers]]:
    """Read codes as numbers whose digits are letters too, where capitals and small ones may differ."""
    if not any(re.search("[g-zG-Z]", code) for code in codes):
        return
    there = set[str]().union(*codes)
    for how, signs in ALPHABETS.items():
        if there <= set(signs):
            values = {sign: value for value, sign in enumerate(signs)}
            yield f" ({how})", [_number(code, values) for code in codes]


def _number(code: str, values: dict[str, int]) -> int | None:
    number = 0
    for sign in code:
        number = number * len(values) + values[sign]
    return number if code else None


def numbers_of(texts: Sequence[str]) -> Numbers | None:
    """Return the numbers that the digits of texts make; nothing where they do not tell the texts apart."""
    digits = [re.sub(r"\D", "", text.removesuffix(".0")) for text in texts]
    numbers = [int(one) if one and len(one) < 40 else None for one in digits]
    return numbers if len(set(numbers) - {None}) > NEARLY * len(texts) else None


def rank_readings(codes: Sequence[str]) -> list[Integers]:
    """Return the ranks of codes by the alphabet, and by the numbers they are read as where these give other ones."""
    found = [ranks(list(codes))]
    for _, numbers in readings(codes):
        known = [number for number in numbers if number is not None]
        if len(known) == len(codes):
            ranking = ranks(known)
            if not any(np.array_equal(ranking, other) for other in found):
                found.append(ranking)
    return found


def ranks(keys: Sequence[str] | Sequence[bytes] | Sequence[int]) -> Integers:
    """Return the rank of each key, from 0 on; of equal ones the first comes first."""
    out = np.empty(len(keys), np.int64)
    out[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return out
