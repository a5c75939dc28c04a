"""Which sizes of noise a card may show: the fewer records they were computed from, the fewer sizes there are.

Who knows all records but one solves sd(x_1 .. x_n) = s for the last: with m and SS of the others

    (x_n - m)^2 = n / (n - 1) ((n - 1) s^2 - SS),

so that a size known to lie in (a, b) leaves an interval of |x_n - m|. Its width grows like the root of n (b - a) / a:
rounding to r of itself hides the last record to about .24 sqrt(n r) / c sds of noise that is c times the data's sd
(root mean square over the interval, a typical record of normal data). Two digits (r = .04) leave .4 at n = 20, 1.4 at
200 and 3 at 1,000 with c = .5; a record's own released value leaves 1. The sizes below leave 2 or more for any n.
Correlations of the noise are data too: to who knows another column of the last record, at u_j sds from its mean, a step
of them leaves n step / u_j data sds, so that n step is 20 or more below 5,000 records, and 50 or more above. Of a long
tail the farthest record counts: at u sds the size leaves n r / u and a step n step / u data sds, and u may come to
sqrt(n). With noise of one data sd and r, step >= .7 / sqrt(n) the error left is sqrt(n) r / sqrt(12) >= .2 sds of the
noise whatever the column: .022 at 1,000 records, and 1% (two digits) from 5,000 on. Own derivation. Chosen by `resolve`
for every size that is computed from the data.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ..table import Floats

# Records: 7 sds of the noise are left of a typical record, .2 of any that there may be
TWO_DIGITS_FROM = 5_000
THIRTY_FIVE = (  # steps of 4% to 10%, so that no size is changed by more than two digits would change it
    *(one / 10 for one in range(10, 20)),
    *(one / 10 for one in range(20, 50, 2)),
    *(one / 10 for one in range(50, 100, 5)),
)
TWELVE = (1.0, 1.2, 1.5, 1.8, 2.2, 2.7, 3.3, 3.9, 4.7, 5.6, 6.8, 8.2)  # preferred numbers: steps of 21%
SIX = (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)  # steps of 47%
THREE = (1.0, 2.0, 5.0)  # steps of 115%
SERIES = ((1_000, THIRTY_FIVE), (200, TWELVE), (50, SIX), (0, THREE))  # from so many records on
FINEST_STEP = 0.01  # of correlations
OPEN_STEP = 20.0  # records x step of their correlations: what is left is 6 data sds at u_j = 1, 2 at 3
TAIL_STEP = 0.7  # root of the records x step: .2 data sds are left where u_j is the largest there can be


def size_on_grid(value: float, records: int) -> float:
    """Round a size computed from so many records to the nearest (by ratio) that a card may show."""
    series = _series(records)
    if series is None:
        return float(f"{value:.1e}")
    return min(_near(value, series), key=lambda size: abs(np.log(value / size))) if value > 0 else value


def size_interval(size: float, records: int, digits: int = 2) -> tuple[float, float]:
    """Return between which sizes one lay that a card shows, computed from so many records.

    A size that is not among those that such a card may show (an exact one, one of another program) was rounded to
    its own `digits`, at least two.
    """
    series = _series(records)
    if series is not None:
        near = _near(size, series)
        at = int(np.argmin([abs(np.log(size / one)) for one in near]))
        if abs(near[at] - size) <= 1e-9 * size:
            return float(np.sqrt(near[at - 1] * size)), float(np.sqrt(near[at + 1] * size))
    decade = 10.0 ** np.floor(np.log10(size) + 1e-12)
    step = decade * 10.0 ** (1 - max(digits, 2))
    below = step / 10 if abs(size - decade) <= 1e-9 * size else step  # nines come before a power of ten
    return size - below / 2, size + step / 2


def correlation_step(records: int) -> float:
    """Return the step of the correlations that a card may show, computed from so many records."""
    if records >= TWO_DIGITS_FROM:
        return FINEST_STEP
    count = max(records, 1)
    return min(1.0, float(step_from(max(OPEN_STEP / count, TAIL_STEP / np.sqrt(count)))))


def step_from(least: float) -> Fraction:
    """Return the smallest of 1, 2, 5, 10, 20, 50, ... (and 0.5, 0.2, 0.1, ...) that is at least so large."""
    decade = Fraction(10) ** int(np.floor(np.log10(least)))
    return next(digit * decade for digit in (1, 2, 5, 10, 20) if float(digit * decade) >= least * (1 - 1e-12))


def _series(records: int) -> tuple[float, ...] | None:
    if records >= TWO_DIGITS_FROM:
        return None
    return next(series for least, series in SERIES if records >= least)


def _near(value: float, series: tuple[float, ...]) -> list[float]:
    """Return the sizes of a series around a value, each the decimal number itself."""
    decade = int(np.floor(np.log10(value)))
    return [float(f"{one}e{decade + k}") for k in (-1, 0, 1) for one in series]


def sizes_on_grid(values: Floats, counts: Floats) -> tuple[float, ...]:
    """Round sizes, each computed from so many records."""
    return tuple(size_on_grid(float(v), int(n)) for v, n in zip(values, counts, strict=True))
