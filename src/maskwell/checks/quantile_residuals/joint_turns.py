"""What the noises of many columns together tell of the truth: sums of four and more, and any direction.

With u uniforms and y normal scores of p columns that are independent within records, and a a share or value of a true
column on its range,

    S = sum of exp(2 pi i (s_1 u_1 + .. + s_p u_p - k a)),      |S|^2 / n ~ Exp(1),

for signs s = -1, 0, 1 of which four and more are not 0. The squares of all y regressed on the cosine and the sine of 2
pi k a add up to a chi^2 of 2 p degrees of freedom, exactly, for every k. A sum of uniforms hides what it tells from
every smaller set of columns. A direction w'y of seven columns leaves a seventh of its square in each, and all of it in
their sum. Own derivation. Called by `battery`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from ...table import Floats
from .cells import Integers
from .families import TREND, Score
from .ledger import Ledger
from .spectra import IN_STEP
from .truths import FEWEST, TrueColumn
from .turns import FAMILY, MANY_VALUES, MOST_BESIDE, MOST_RECORDS, ONE, on_range

FEWEST_TOGETHER, MOST_TOGETHER = 4, 8  # columns of a sum: three are looked at in `turns`; 2,894 sums of eight
MOST_TURNS = 10  # of a true rank in a sum
AT_ONCE = 512  # sums
NEARLY_ALL = 0.9  # of the records in step at twice the frequency: cosine and sine are then one


def joint_turns(ledger: Ledger, scores: Sequence[Score], columns: Sequence[TrueColumn], seed: int) -> None:
    """Test the scores of all columns together along true columns; scores are independent."""
    if len(scores) < 2:
        return
    chosen = np.sort(np.random.default_rng([seed, 25]).permutation(len(columns[0].codes))[:MOST_RECORDS])
    values = np.column_stack([score.values[chosen] for score in scores])
    known = ~np.isnan(values).any(axis=1)
    if np.count_nonzero(known) < FEWEST:
        return
    released = {score.column for score in scores}
    able = [one for one in columns if one.numbers is not None and one.distinct > MANY_VALUES]
    able = sorted(able, key=lambda one: one.name not in released)[:MOST_BESIDE]
    label = " and ".join(score.label for score in scores[:2]) + (" and others" if len(scores) > 2 else "")
    _directions(ledger, label, values[known], able, chosen[known])
    if len(scores) >= FEWEST_TOGETHER:
        _sums(ledger, label, values[known, :MOST_TOGETHER], able, chosen[known])


def _signs(columns: int) -> Floats:
    """Return the signs of all sums of enough columns, the first of them plus."""
    every = (one for one in product((0, 1, -1), repeat=columns) if np.count_nonzero(one) >= FEWEST_TOGETHER)
    return np.array([one for one in every if next(filter(None, one)) > 0], dtype=np.float64)


def _sums(
    ledger: Ledger, label: str, scores: Floats, columns: Sequence[TrueColumn], chosen: Integers
) -> None:
    """Enter the largest of the sums of phases, alone and against true ranks."""
    from scipy.special import ndtr

    uniform, signs = np.asarray(ndtr(scores)).T, _signs(scores.shape[1])
    names, turned = ["no column"], [np.ones(len(chosen), np.complex64)]
    for column in columns:
        share = column.shares[chosen]
        for k in (k for k in range(-MOST_TURNS, MOST_TURNS + 1) if k):
            phase = np.exp(-2j * np.pi * k * np.nan_to_num(share))
            turned.append(np.where(np.isnan(share), 0.0, phase).astype(np.complex64))
            names.append(f"{k} of the rank of {column.name}")
    truth = np.column_stack(turned)
    counts = np.count_nonzero(truth, axis=0)
    top, where, records, sums = 0.0, "", len(chosen), len(signs) * len(names)
    for i in range(0, len(signs), AT_ONCE):
        phases = np.exp(2j * np.pi * (signs[i : i + AT_ONCE] @ uniform)).astype(np.complex64)
        power = np.abs(phases @ truth) ** 2 / np.maximum(counts, 1)
        power[:, counts < FEWEST] = 0.0
        at, place = map(int, np.unravel_index(int(power.argmax()), power.shape))
        if power[at, place] > top:
            top, records = float(power[at, place]), int(counts[place])
            where = f"the sum of {np.count_nonzero(signs[i + at])} noises and {names[place]}"
    p = min(1.0, sums * float(np.exp(-top)))
    ledger.add(FAMILY, label, IN_STEP, p, (top / max(records, 1)) ** 0.5, records, where)


def _directions(
    ledger: Ledger, label: str, scores: Floats, columns: Sequence[TrueColumn], chosen: Integers
) -> None:
    """Regress all scores on waves along true ranks and values."""
    from scipy.special import chdtrc

    for name, axis in _axes(columns, chosen):
        known = ~np.isnan(axis)
        n = int(np.count_nonzero(known))
        if n < FEWEST:
            continue
        chi2 = _explained_squares(scores[known], axis[known])
        k = int(chi2.argmax())
        freedom = 2 * scores.shape[1]
        p = min(1.0, len(chi2) * float(chdtrc(freedom, chi2[k])))
        size = max(float(chi2[k]) - freedom, 0.0) / n
        ledger.add(
            FAMILY, label, TREND, p, size**0.5, n, f"all columns together, {k + 1} turns of the {name}"
        )


def _axes(columns: Sequence[TrueColumn], chosen: Integers) -> Iterator[tuple[str, Floats]]:
    for column in columns:
        assert column.numbers is not None
        yield f"rank of {column.name}", column.shares[chosen]
        yield f"value of {column.name}", on_range(column.numbers[chosen])


def _explained_squares(scores: Floats, axis: Floats) -> Floats:
    """Return for each number of turns the sum over columns of the squares that its cosine and sine explain."""
    from scipy.fft import fft

    bins, most = ONE
    place = np.minimum(((axis - np.floor(axis)) * bins).astype(np.int64), bins - 1)
    tables = np.array([np.bincount(place, one, bins) for one in (*scores.T, np.ones(len(place)))])
    waves = np.asarray(fft(tables, axis=1))
    k = np.arange(1, most + 1)
    n, twice = len(place), waves[-1, 2 * k]
    cosine, sine, both = (n + twice.real) / 2, (n - twice.real) / 2, -twice.imag / 2
    is_able = np.abs(twice) < NEARLY_ALL * n
    along, across = waves[:-1, k].real, -waves[:-1, k].imag
    found = along**2 * sine - 2 * along * across * both + across**2 * cosine
    area = np.where(is_able, cosine * sine - both**2, np.inf)
    return np.asarray((found / area).sum(axis=0))
