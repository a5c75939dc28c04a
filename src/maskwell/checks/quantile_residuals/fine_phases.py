"""Fine digits of the noise along ranks and bits of the truth.

With u uniform and y normal scores of one released column, r the share of records below in a true column, and b a bit of
the truth, 1 or -1,

    S_f = sum of exp(2 pi i f u) c,     c = 1, exp(2 pi i r), exp(-2 pi i r), b,      f = 1, 2, .. 1000, u or y,

has |S_f|^2 / n ~ Exp(1), in the tail at most, whatever the truth is (for y, whose characteristic function is 3e-9 from
f = 1 on). Noise whose third digit is a true rank has its size and shape as the card says, in every class, and shows
here alone. Sums f u + k w of small multiples of two columns' noises have the same law where these are independent.
Chosen as the twin of `congruences` for what is no whole number of units. Own derivation, from characters of the circle
(Coveyou and MacPherson 1967).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ...table import Floats
from .cells import Integers
from .digit_families import STEPS
from .families import Score
from .ledger import Ledger
from .signs import Bits
from .truths import FEWEST, TrueColumn

Phases = npt.NDArray[np.complex64]

HIGHEST = 1_000  # frequency: three digits of the noise, in its sds and in its distribution
MOST_RECORDS = 1_500  # drawn at random: a sixth of them in step would be seen
MOST_TOGETHER, MULTIPLE = 6, 16  # columns whose noises are added by twos, and the largest multiple of each
FACTORS = [(f, k) for f in range(1, MULTIPLE + 1) for k in range(-MULTIPLE, MULTIPLE + 1) if k]
MOST_RANKS, MOST_BITS = 14, 12  # true columns, those that are released first


def fine_phases(
    ledger: Ledger,
    scores: Sequence[Score],
    columns: Sequence[TrueColumn],
    bits: tuple[tuple[str, ...], Bits],
    seed: int,
) -> None:
    """Test the fine digits of scores along true columns."""
    if not scores:
        return
    count = len(columns[0].codes)
    chosen = np.sort(np.random.default_rng([seed, 21]).permutation(count)[:MOST_RECORDS])
    first = [score.column for score in scores]
    names, truth = _truth_phases(sorted(columns, key=lambda one: one.name not in first), bits, chosen)
    for score in scores:
        values = score.values[chosen]
        known = np.flatnonzero(~np.isnan(values))
        if len(known) >= FEWEST:
            for what, own in (
                ("distribution", _uniform(values[known])),
                ("sds", values[known]),
            ):
                _enter(ledger, score, own, what, names, truth[known])


def _uniform(scores: Floats) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr(scores))


def _truth_phases(
    columns: Sequence[TrueColumn], bits: tuple[tuple[str, ...], Bits], chosen: Integers
) -> tuple[tuple[str, ...], Phases]:
    """Return what the phases of the noise are multiplied with: records x columns, 0 where a value is not open."""
    ranked = [one for one in columns if one.numbers is not None and one.distinct > 2][:MOST_RANKS]
    names, found = ["no column"], [np.ones(len(chosen), np.complex64)]
    for column in ranked:
        share = column.shares[chosen]
        turn = np.where(np.isnan(share), 0.0, np.exp(2j * np.pi * np.nan_to_num(share)))
        found += [turn.astype(np.complex64), turn.conj().astype(np.complex64)]
        names += [f"the rank of {column.name}"] * 2
    found += [*bits[1][chosen, :MOST_BITS].T.astype(np.complex64)]
    return (*names, *bits[0][:MOST_BITS]), np.column_stack(found)


def phases_of_two(ledger: Ledger, scores: Sequence[Score], columns: Sequence[TrueColumn], seed: int) -> None:
    """Test sums of multiples of two noises, in their distributions, along true ranks; scores are independent."""
    count = len(columns[0].codes)
    chosen = np.sort(np.random.default_rng([seed, 23]).permutation(count)[:MOST_RECORDS])
    first = [score.column for score in scores]
    none = ((), np.empty((count, 0), np.float32))
    names, truth = _truth_phases(sorted(columns, key=lambda one: one.name not in first), none, chosen)
    own = [(score, score.values[chosen]) for score in scores[:MOST_TOGETHER]]
    for (one, y), (other, w) in combinations(own, 2):
        known = np.flatnonzero(~np.isnan(y) & ~np.isnan(w))
        if len(known) >= FEWEST:
            f, k = np.array(FACTORS).T
            turns = np.outer(f, _uniform(y[known])) + np.outer(k, _uniform(w[known]))
            said = [f"{f} times it and {k} times that of {other.label}" for f, k in FACTORS]
            _enter_largest(ledger, one, turns, said, names, truth[known])


def _enter(
    ledger: Ledger, score: Score, values: Floats, what: str, names: Sequence[str], truth: Phases
) -> None:
    """Enter the largest sum of all frequencies and columns."""
    frequency = range(1, HIGHEST + 1)
    said = [f"each 1/{one:,} of its {what}" for one in frequency]
    _enter_largest(ledger, score, np.outer(frequency, values), said, names, truth)


def _enter_largest(
    ledger: Ledger, score: Score, turns: Floats, said: Sequence[str], names: Sequence[str], truth: Phases
) -> None:
    """Enter the largest of the sums of phases, turns x columns of the truth."""
    angle = (2 * np.pi * (turns - np.rint(turns))).astype(np.float32)
    phases = np.empty(angle.shape, np.complex64)
    np.cos(angle, out=phases.real)
    np.sin(angle, out=phases.imag)
    counts = np.count_nonzero(truth, axis=0)
    power = np.abs(phases @ truth) ** 2 / np.maximum(counts, 1)
    power[:, counts < FEWEST] = 0.0
    at, column = map(int, np.unravel_index(int(power.argmax()), power.shape))
    top, count = float(power[at, column]), int(counts[column])
    p = min(1.0, power.size * float(np.exp(-top)))
    where = f"{names[column]} in {said[at]}"
    ledger.add("fine digits", score.label, STEPS, p, (top / max(count, 1)) ** 0.5, count, where)
