"""Noise along the true values of other records: so many places before or after, in the order of the file.

With r the normal ranks, or a bit, of a true column in an order of the records and y the scores,

    sum over t of r_(t - l) y_t / sqrt(sum of r^2) ~ N(0, 1)

at every distance l, whatever the true values are; all distances at once by Fourier transforms. A generator seeded by
the record before, or a buffer that is read one record late, shows here and not along the record's own values. Own
derivation; cross-correlations by the fast Fourier transform (Cooley and Tukey 1965). Called by `battery`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...table import Floats
from .cells import Integers
from .families import TREND, Score
from .ledger import Ledger
from .truths import FEWEST, TrueColumn


@dataclass(frozen=True)
class Lags:
    """True columns in an order of the records, as Fourier transforms; `lengths` are the roots of sums of squares."""

    order: Integers
    by: str
    names: tuple[str, ...]
    width: int
    spectra: npt.NDArray[np.complex128]
    lengths: Floats

    @classmethod
    def of(cls, by: TrueColumn, names: Sequence[str], matrix: Floats) -> Lags:
        """Transform columns (records x columns, 0 where a value is not open) in an order."""
        from scipy.fft import next_fast_len, rfft

        width = next_fast_len(len(by.order), real=True)
        rows = np.ascontiguousarray(matrix[by.order].T)
        lengths = np.sqrt((rows**2).sum(axis=1))
        return cls(by.order, by.name, tuple(names), width, rfft(rows, width, axis=1).conj(), lengths)


def lagged_trends(ledger: Ledger, score: Score, lags: Lags) -> None:
    """Correlate scores with the true columns of records at every distance."""
    from scipy.fft import irfft, rfft
    from scipy.special import ndtr

    y = score.values[lags.order]
    known = ~np.isnan(y)
    n = int(known.sum())
    if n < 2 * FEWEST or not len(lags.names):
        return
    sums = np.abs(irfft(rfft(np.where(known, y, 0.0), lags.width) * lags.spectra, lags.width, axis=1))
    usable = lags.lengths > 0
    deviates = sums / np.where(usable, lags.lengths, np.inf)[:, None]
    column, lag = np.unravel_index(int(deviates.argmax()), deviates.shape)
    top = float(deviates[column, lag])
    p = min(1.0, 2 * deviates.size * float(ndtr(-top)))
    places = int(lag) if 2 * lag <= lags.width else int(lag) - lags.width
    where = f"along {lags.names[column]} {abs(places):,} records {'before' if places >= 0 else 'after'} by {lags.by}"
    ledger.add("lags", score.label, TREND, p, top / n**0.5, n, where)
