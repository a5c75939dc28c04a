"""Several uniforms together: S_k = sum over records of exp(2 pi i (k_1 u_1 + k_2 u_2 + ..)) for whole numbers k.

By the card |S_k|^2 / n is Exp(1) for every k but 0: the phases are independent and uniform. It is n where the u of
every record satisfy k_1 u_1 + k_2 u_2 + .. = constant modulo 1, as those of a linear congruential generator do (the
spectral test, Coveyou and MacPherson 1967), or as two noises do that only together tell what was hidden in them.
All k up to a size are read off the Fourier transform of a table of counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...table import Floats
from .families import Score
from .ledger import Effect, Ledger
from .truths import FEWEST, TrueColumn

IN_STEP = Effect("share of the records in step", 0.1, 0.05)
# Bins of each axis and the largest k that is looked at, by the number of axes: k of a coarse table would be blurred.
TABLES = {2: (256, 100), 3: (32, 10)}
MOST_IN_TWOS, MOST_IN_THREES = 45, 20  # pairs and triples of columns: all of ten, and of six


def together(ledger: Ledger, scores: Sequence[Score]) -> None:
    """Look at the scores of two and of three columns of one record."""
    twos = [(one, other) for i, one in enumerate(scores) for other in scores[i + 1 :]]
    for pair in twos[:MOST_IN_TWOS]:
        _enter(ledger, pair, [one.values for one in pair], "of one record")
    threes = [
        (one, other, third)
        for i, one in enumerate(scores)
        for j, other in enumerate(scores[i + 1 :], i + 1)
        for third in scores[j + 1 :]
    ]
    for triple in threes[:MOST_IN_THREES]:
        _enter(ledger, triple, [one.values for one in triple], "of one record")


def succession(ledger: Ledger, score: Score, by: TrueColumn) -> None:
    """Look at the scores of two and of three neighbours in an order: the lattice of a weak generator."""
    y = score.values[by.order]
    y = y[~np.isnan(y)]
    if len(y) >= 2 * FEWEST:
        _enter(ledger, [score], [y[:-1], y[1:]], f"of 2 neighbours by {by.name}")
        _enter(ledger, [score], [y[:-2], y[1:-1], y[2:]], f"of 3 neighbours by {by.name}")


def _enter(ledger: Ledger, scores: Sequence[Score], values: Sequence[Floats], where: str) -> None:
    """Count records in a table of bins and test all k."""
    from scipy.fft import rfftn
    from scipy.special import ndtr

    known = ~np.isnan(np.sum(values, axis=0))
    count = int(known.sum())
    if count < FEWEST:
        return
    bins, most = TABLES[len(values)]
    place = np.zeros(count, np.int64)
    for one in values:
        place = place * bins + np.minimum((ndtr(one[known]) * bins).astype(np.int64), bins - 1)
    table = (
        np.bincount(place, minlength=bins ** len(values)).astype(np.float32).reshape((bins,) * len(values))
    )
    power = np.abs(rfftn(table)) ** 2 / count
    for axis in range(len(values)):
        chosen = np.arange(most + 1) if axis == len(values) - 1 else np.r_[0 : most + 1, bins - most : bins]
        power = power.take(chosen, axis=axis)
    power.ravel()[0] = 0.0
    top = float(power.max())
    factors = np.unravel_index(int(power.argmax()), power.shape)
    signed = [int(k) if k <= most else int(k) - 2 * most - 1 for k in factors]
    p = min(1.0, power.size * float(np.exp(-top)))
    names = " and ".join(one.label for one in scores)
    said = f"{names} {where}, factors {', '.join(map(str, signed))}"
    ledger.add("spectra", scores[0].label, IN_STEP, p, (top / count) ** 0.5, count, said)
