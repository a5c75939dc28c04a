"""Signs and sizes of noises against bits of the truth, up to three of each together.

With s = 1 or -1 a bit of the noise (its sign; whether it is larger than its median) or the product of the signs of two
or three columns, and b = 1 or -1 a bit of the truth (parity, above the median) or a product of two or three of them,

    sum of s b / sqrt(n) ~ N(0, 1)

whatever the true values are: the Walsh functions of all bits. An "exclusive or" of bits is such a product, and shows in
no trend, no class and no pair of columns. Own derivation; Walsh (1923). Called by `battery`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from .families import TREND, Score, normal_p
from .ledger import Ledger
from .truths import FEWEST, TrueColumn

Bits = npt.NDArray[np.float32]

MOST_BITS = 24  # of the truth: 2,324 products of up to three
MOST_NOISES = 24  # bits of the noise and products of them
MOST_RECORDS = 20_000  # drawn at random: they show a tenth of the effect that fails
MEDIAN = 0.6744897501960817  # of the size of a normal score


def truth_bits(columns: Sequence[TrueColumn], first: Sequence[str]) -> tuple[tuple[str, ...], Bits]:
    """Return parities of every column, and who is above the median, as 1 and -1 (0 where a value is not open).

    Those of some columns come first: where there are too many, they are the ones that are kept.
    """
    named, later = list[tuple[str, Bits]](), list[tuple[str, Bits]]()
    for column in sorted(columns, key=lambda one: one.name not in first):
        if column.distinct < 2:
            continue
        steps = column.codes if column.steps is None else column.steps
        named.append((f"the parity of {column.name}", _bit(steps % 2 == 1, column.codes >= 0)))
        if column.numbers is not None and column.distinct > 2:
            above = (f"{column.name} above its median", _bit(column.shares > 0.5, column.codes >= 0))
            (named if column.name in first else later).append(above)
    kept = (*named, *later)[:MOST_BITS]
    count = len(columns[0].codes)
    matrix = np.column_stack([bit for _, bit in kept]) if kept else np.empty((count, 0), np.float32)
    return tuple(name for name, _ in kept), matrix


def _bit(is_one: npt.NDArray[np.bool_], is_open: npt.NDArray[np.bool_]) -> Bits:
    return np.where(is_open, np.where(is_one, 1, -1), 0).astype(np.float32)


def _noise_bits(scores: Sequence[Score]) -> list[tuple[str, str, Bits]]:
    """Return signs and sizes of each column, and products of the signs of two and three: column, name and bits."""
    known = [~np.isnan(score.values) for score in scores]
    signs = [_bit(score.values > 0, own) for score, own in zip(scores, known, strict=True)]
    found = [(one.label, f"the sign of {one.label}", bit) for one, bit in zip(scores, signs, strict=True)]
    for score, own in zip(scores, known, strict=True):
        found.append((score.label, f"the size of {score.label}", _bit(np.abs(score.values) > MEDIAN, own)))
    places = range(len(scores))
    for some in (*combinations(places, 2), *combinations(places, 3)):
        if len(found) >= MOST_NOISES:
            break
        names = " and ".join(scores[i].label for i in some)
        bits = np.prod([signs[i] for i in some], axis=0, dtype=np.float32)
        found.append((scores[some[0]].label, f"the signs of {names}", bits))
    return found[:MOST_NOISES]


def signs(ledger: Ledger, scores: Sequence[Score], names: Sequence[str], truth: Bits, seed: int) -> None:
    """Test bits of independent scores against all products of up to three bits of the truth."""
    count, width = truth.shape
    if not scores or not width:
        return
    chosen = np.arange(count)
    if count > MOST_RECORDS:
        chosen = np.sort(np.random.default_rng([seed, 19]).permutation(count)[:MOST_RECORDS])
    noises = _noise_bits(scores)
    # Bit 0 is 1: a product with it has one bit less. Products i < j <= k, and i = j = 0, are all that there are.
    bits = np.column_stack([np.ones(len(chosen), np.float32), truth[chosen]])
    first, second = np.triu_indices(width + 1, 1)
    pairs = bits[:, first] * bits[:, second]
    noise = np.column_stack([bit[chosen] for _, _, bit in noises])
    rows = (noise[:, :, None] * bits[:, None, :]).reshape(len(chosen), -1)
    sums = (rows.T @ pairs).reshape(len(noises), width + 1, -1)
    sums[:, np.arange(width + 1)[:, None] > first[None, :]] = 0.0
    for (label, what, bit), own in zip(noises, sums, strict=True):
        n = int(np.count_nonzero(bit[chosen]))
        if n < FEWEST:
            continue
        at, pair = np.unravel_index(int(np.abs(own).argmax()), own.shape)
        top, tests = float(abs(own[at, pair])), width + width * (width - 1) // 2 + width**3 // 6
        p = min(1.0, tests * float(normal_p(top / n**0.5)))
        bits_said = " and ".join(names[k - 1] for k in (int(at), int(first[pair]), int(second[pair])) if k)
        ledger.add("signs", label, TREND, p, top / n, n, f"{what} by {bits_said}")
