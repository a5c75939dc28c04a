"""Codes that arithmetic makes of numbers: of true ids, of numbers of records, or of the code of the record before.

Constant differences, sums, exclusive ors and ratios for some records are counted. b = (c a + d) mod m, with c, d and m
unknown, is found of a few reference records: of differences A, B from one of them all A_i B_j - A_j B_i are multiples
of m, and their greatest common divisor is m (any m above the spread of the codes; 0 for a line without a modulus).
Linear maps of bits (any order of them, exclusive or, shifts, Gray codes, CRCs of ids of one length) are found by
elimination. Both are then fixed, and verified on all other records.

Signs of a code may each be one sign of the true id, in any order, as it is or under a substitution: all such maps of
q signs from p, of at most s different ones, are (p s^s)^q, of which one holds for c records by chance with at most
that many over c!.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from math import gcd, lgamma, log
from typing import Any

import numpy as np

from .id_readings import FEWEST, Integers, Numbers, Relation, numbers_of, readings, without_frame
from .shuffles import RARE, least_hits

REFERENCES, ATTEMPTS = 8, 6  # records that give a modulus; choices of them
MAP_TRIES = 10_000  # sources, readings and choices of references, at most
MOST_BITS = 512  # of an id, taken for a row of bits
WIDEST = 24  # signs of a code or an id
SURE_SHARE = 0.05  # of the records that a relation by references must give

Pairs = list[tuple[int, int]]


def constants(codes: Sequence[str], cores: list[str], texts: list[str]) -> Iterator[tuple[str, int]]:
    """Count the codes that one difference, sum, exclusive or, or ratio leads to from the numbers of their records."""
    a = numbers_of(texts)
    if a is None:
        return
    for reading, b in (*readings(codes), *readings(cores)):
        known = _pairs(a, b)
        yield f"the id plus a constant{reading}", most_common(y - x for x, y in known)
        yield f"a constant minus the id{reading}", most_common(y + x for x, y in known)
        yield f"the id, exclusive or a constant{reading}", most_common(y ^ x for x, y in known)
        yield f"the id times a constant{reading}", most_common(y / x for x, y in known if x and y)


def _pairs(a: Sequence[int | None], b: Sequence[int | None]) -> Pairs:
    return [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]


def most_common(values: Iterator[Any]) -> int:
    """Return how often the most common value occurs."""
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return max(counts.values(), default=0)


def maps_of_numbers(codes: Sequence[str], texts: list[str]) -> Iterator[Relation]:
    """Yield the affine maps with a modulus, and the linear maps of bits, that lead from ids to codes."""
    a, cores = numbers_of(texts), without_frame([code.lower() for code in codes])
    for reading, b in _all_readings(codes, cores):
        known = [] if a is None else _pairs(a, b)
        yield from _affine(known, f"the id times a constant{{}}{reading}")
        yield from _linear(known, f"a linear map of the bits of the id{reading}")
        spelled = [
            (int.from_bytes(text.encode()[-MOST_BITS // 8 :]), y) for text, y in zip(texts, b, strict=True)
        ]
        known = [(x, y) for x, y in spelled if y is not None]
        yield from _linear(known, f"a linear map of the bits of the id's signs{reading}")


def steps_with_modulus(following: Sequence[str]) -> Iterator[Relation]:
    """Yield the congruential generator that leads from the code of each record to that of the next in the file."""
    for reading, b in readings(following):
        known = [(x, y) for x, y in pairwise(b) if x is not None and y is not None]
        yield from _affine(known, f"the code of the record before, times a constant{{}}{reading}")


def _all_readings(codes: Sequence[str], cores: list[str]) -> list[tuple[str, Numbers]]:
    found: list[tuple[str, Numbers]] = []
    for reading, numbers in (*readings(codes), *readings(cores)):
        if all(numbers != other for _, other in found):
            found.append((reading, numbers))
    return found


def _affine(known: Pairs, how: str) -> Iterator[Relation]:
    known = _without_common_factor(known)
    rng = random.Random(1)  # noqa: S311 (which records are the references)
    spread = max((y for _, y in known), default=0) - min((y for _, y in known), default=0)
    for _ in range(ATTEMPTS if len(known) >= FEWEST else 0):
        (x0, y0), *others = rng.sample(known, REFERENCES)
        found = affine_map([(x - x0, y - y0) for x, y in others], spread)
        if found is not None:
            divisor, factor, modulus = found
            off = ((divisor * (y - y0) - factor * (x - x0), modulus) for x, y in known)
            hits = sum(not (one % m if m else one) for one, m in off)
            if is_beyond_chance(hits - REFERENCES, len(known)):
                told = f", modulo {modulus}" if modulus else " plus another"
                yield Relation(how.format(told), hits / len(known))
                return


def _without_common_factor(known: Pairs) -> Pairs:
    """Divide the differences of ids, and of codes, by what divides all of them: it would divide any modulus too."""
    if not known:
        return known
    (x0, y0), *_ = known
    in_x, in_y = gcd(*(x - x0 for x, _ in known)) or 1, gcd(*(y - y0 for _, y in known)) or 1
    return [((x - x0) // in_x, (y - y0) // in_y) for x, y in known]


def affine_map(differences: Pairs, spread: int) -> tuple[int, int, int] | None:
    """Return g, c and m with g y = c x mod m for all differences x, y; m is 0 where it holds without a modulus."""
    modulus = 0
    for (x1, y1), (x2, y2) in combinations(differences, 2):
        modulus = gcd(modulus, x1 * y2 - x2 * y1)
    divisor, factor = 0, 0
    for x, y in differences:
        divisor, factor = _euclid(divisor, factor, x, y)
    if divisor == 0:
        return None
    if modulus and gcd(divisor, modulus) != 1:  # it would leave several codes for one id
        return None
    return (divisor, factor, modulus) if modulus == 0 or modulus > spread else None


def _euclid(x: int, y: int, other_x: int, other_y: int) -> tuple[int, int]:
    """Return the greatest common divisor of x and another, and the same combination of y and its other."""
    while other_x:
        times = x // other_x
        x, y, other_x, other_y = other_x, other_y, x - times * other_x, y - times * other_y
    return (x, y) if x >= 0 else (-x, -y)


def is_beyond_chance(hits: int, records: int) -> bool:
    """Whether a relation by a few reference records holds for more of the others than chance gives."""
    return hits >= max(least_hits(MAP_TRIES), SURE_SHARE * records)


def _linear(known: Pairs, how: str) -> Iterator[Relation]:
    """Eliminate: what a record is the exclusive or of others in, its code must be of theirs."""
    rng = random.Random(2)  # noqa: S311 (the order of the records)
    for _ in range(2 if len(known) >= FEWEST else 0):
        hits, checked = _hits_by_elimination(rng.sample(known, len(known)))
        if is_beyond_chance(hits, checked):
            yield Relation(how, hits / max(checked, 1))
            return


def _hits_by_elimination(known: Pairs) -> tuple[int, int]:
    """Return how many codes follow from those of records before them, and how many could."""
    basis: dict[int, tuple[int, int]] = {}  # reduced rows and their codes, by the highest bit
    hits = 0
    for x, y in known:
        row, code = x << 1 | 1, y
        while row:
            pivot = basis.get(row.bit_length())
            if pivot is None:
                basis[row.bit_length()] = (row, code)
                break
            row, code = row ^ pivot[0], code ^ pivot[1]
        else:
            hits += code == 0
    return hits, len(known) - len(basis)


def places_of_signs(codes: Sequence[str], texts: Sequence[str]) -> Iterator[Relation]:
    """Yield the map of signs, each of a code from one of the true id, as it is or under a substitution."""
    numbers = numbers_of(codes)
    width = len(str(max((one for one in numbers or () if one is not None), default=0)))
    padded = [code.zfill(width) for code in codes] if all(code.isdigit() for code in codes) else list(codes)
    to, of = _signs(padded), _signs(texts)
    if to is None or of is None or len(codes) < FEWEST:
        return
    for how, substituted in (("", False), (", under a substitution", True)):
        hits = _hits_of_places(to, of, substituted)
        tries = to.shape[1] * _log_maps(to, of, substituted)
        if lgamma(hits + 1) > tries - log(RARE) + log(MAP_TRIES) and hits > SURE_SHARE * len(codes):
            yield Relation(f"signs of the id in another order{how}", hits / len(codes))
            return


def _signs(texts: Sequence[str]) -> Integers | None:
    """Return the signs of texts by place from the right, those that vary: records x places."""
    width = max(map(len, texts), default=0)
    if not 0 < width <= WIDEST:
        return None
    cells = np.array([[ord(sign) for sign in text.rjust(width)] for text in texts], np.int64)
    cells = cells[:, (cells != cells[0]).any(axis=0)]
    return cells if cells.size else None


def _log_maps(to: Integers, of: Integers, substituted: bool) -> float:
    """Return the logarithm of how many maps there are to one place."""
    sizes = max(len(np.unique(of[:, k])) for k in range(of.shape[1]))
    signs = max(len(np.unique(to[:, k])) for k in range(to.shape[1]))
    return log(of.shape[1]) + (sizes * log(signs) if substituted else 0.0)


def _hits_of_places(to: Integers, of: Integers, substituted: bool) -> int:
    """Count the records all of whose signs are what the best place for each gives."""
    right = np.ones(len(to), bool)
    for column in to.T:
        agree = [_agree(column, one, substituted) for one in of.T]
        right &= max(agree, key=lambda one: int(one.sum()))
    return int(right.sum())


def _agree(column: Integers, one: Integers, substituted: bool) -> Any:
    """Return where a sign is that of another place, or the one that most often goes with it."""
    if not substituted:
        return column == one
    values, inverse = np.unique(column, return_inverse=True)
    signs, of = np.unique(one, return_inverse=True)
    counts = np.bincount(of * len(values) + inverse, minlength=len(signs) * len(values))
    return counts.reshape(len(signs), -1).argmax(axis=1)[of] == inverse
