"""Noise as it was added: each noised column on the scale of its law, beside what the law says of it.

error = (g(z) - offset) / slope - g(x) with g the scale of the law. Correlations of pairs that do not fit together are
drawn towards the nearest that do (Higham 2002). Read by most checks of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..laws import Additive, SkewedBias
from ..laws.chain import combined_of
from ..laws.unknowns import of_columns
from ..table import Floats
from .evidence import Evidence

ENOUGH = 200_000  # values that a law is drawn for, at least, where its expectation has no closed form


@dataclass(frozen=True, slots=True)
class NoisedColumn:
    """A noised column on the scale on which its noise is added (logarithms, if the law says so).

    `error` is what the noise did to each value, in units of x: z = slope (x + error) + offset. `size` is by how much
    the law multiplies the noise of each value, and `is_log` whether the scale is that of logarithms.
    NaN where the value is not open on both sides.
    """

    x: Floats
    z: Floats
    error: Floats
    size: Floats | None = None
    is_log: bool = False


def noised_columns(evidence: Evidence) -> tuple[str, ...]:
    """Return the numbers that carry noise; not those that are coded or put on a unit and no more."""
    return evidence.once("noised columns", lambda: _noised_columns(evidence))


def _noised_columns(evidence: Evidence) -> tuple[str, ...]:
    sums = dict(evidence.masking.card.recomputed)
    carry = {name for name in evidence.numbers if name not in sums and _has_noise(evidence, name)}
    for _ in sums:  # a sum may be a part of another
        carry |= {total for total, parts in sums.items() if carry & {name for name, _ in parts}}
    return tuple(name for name in evidence.numbers if name in carry)


def law_of(evidence: Evidence, name: str) -> Any:
    """Return the law of one column alone, as readers see it, or nothing where the card has none."""
    law = combined_of(evidence.masking.card.law_of(name))
    if isinstance(law, Additive | SkewedBias):
        return of_columns(law, [law.columns.index(name)])
    return law


def is_of_whole_file(evidence: Evidence, name: str) -> bool:
    """Whether what a record gets of a column depends on the others: a rank swap."""
    law = law_of(evidence, name)
    return law is not None and bool(law.whole_file)


def _has_noise(evidence: Evidence, name: str) -> bool:
    law = law_of(evidence, name)
    return not isinstance(law, Additive) or bool(law.noise.covariance.any())


def column_on_scale(evidence: Evidence, name: str) -> NoisedColumn:
    """Return a noised column on the scale of its law (as it is, where the card has no law for it)."""
    return evidence.lately(f"on its scale {name}", lambda: _put_on_scale(evidence, name))


def _put_on_scale(evidence: Evidence, name: str) -> NoisedColumn:
    x, z, law = evidence.true(name), evidence.noised(name), law_of(evidence, name)
    both = np.isnan(x) | np.isnan(z)
    x, z = np.where(both, np.nan, x), np.where(both, np.nan, z)
    if not isinstance(law, Additive):
        return NoisedColumn(x, z, z - x)
    outlet = law.outlets[0]
    centre = law.place(x[:, None], np.zeros((len(x), 1), order="F"))[:, 0]
    size = law.spreads[0].factor(x) if any(law.spreads) and law.spreads[0] is not None else None
    if outlet.log_shift is None:
        return NoisedColumn(x, z, (z - centre) / law.slope, size)
    least = 1e-9 if outlet.unit is None else float(outlet.unit) / 4  # rounding can bring a value to zero
    logs = np.log(np.maximum(z + outlet.log_shift, least))
    return NoisedColumn(np.asarray(outlet.enter(x)), logs, (logs - centre) / law.slope, size, True)


def drawn_again(evidence: Evidence, name: str, times: int, part: Any = slice(None)) -> Floats | None:
    """Draw released values of some records by the card's law, with keys of our own: times x records; NaN for codes."""
    from ..keys import Key, Stream, ids_from_numbers

    law = law_of(evidence, name)
    if (
        law is None or not law.has_density
    ):  # ranks exchanged over the whole file cannot be drawn record by record
        return None
    x = evidence.true(name)[part]
    blocks = ids_from_numbers(len(x))
    streams = (Stream(Key.from_seed(evidence.seed + k), "audit", "0", blocks) for k in range(times))
    drawn = np.array([law.draw(x[:, None].copy(order="F"), stream)[:, 0] for stream in streams])
    if isinstance(law, Additive | SkewedBias):
        bottom, top = law.outlets[0].codes
        with np.errstate(invalid="ignore"):
            drawn[drawn >= (np.inf if top is None else top)] = np.nan
            drawn[drawn <= (-np.inf if bottom is None else bottom)] = np.nan
    return drawn


def expected_release(evidence: Evidence, name: str) -> Floats:
    """Return what the law leads one to expect of each released value; the true value where it should be kept.

    Noise on the log scale should keep the true value in the mean, corrected for its bias or not; limits shift it by
    design.
    """
    return evidence.lately(f"expected {name}", lambda: _expectation_by_law(evidence, name))


def _expectation_by_law(evidence: Evidence, name: str) -> Floats:
    x, law = evidence.true(name), law_of(evidence, name)
    if not isinstance(law, Additive):
        return x
    logged, free = law.outlets[0].log_shift is not None, law.outlets[0].low is law.outlets[0].high is None
    if logged and (free or not law.mean_corrected):
        return x
    if free:
        return np.asarray(law.place(x[:, None], np.zeros((len(x), 1), order="F"))[:, 0])
    times = int(np.clip(ENOUGH // max(len(x), 1), 2, 20))
    drawn = drawn_again(evidence, name, times)
    if drawn is None:
        return x
    counts = (~np.isnan(drawn)).sum(axis=0)
    return np.where(counts > 0, np.nansum(drawn, axis=0) / np.maximum(counts, 1), np.nan)


def errors(evidence: Evidence, names: tuple[str, ...], part: Any = slice(None)) -> tuple[Floats, Floats]:
    """Return true values and errors of some records, both on the scale of the noise: records x columns."""
    columns = [column_on_scale(evidence, name) for name in names]
    shape = (len(evidence.rows[part]), len(names))
    x, e = np.empty(shape), np.empty(shape)
    for j, column in enumerate(columns):
        x[:, j], e[:, j] = column.x[part], column.error[part]
    return x, e


def pair_correlations(centred: Floats, known: npt.NDArray[np.bool_]) -> Floats:
    """Return correlations, each over the records where both columns are open; `centred` is 0 where one is not.

    0 for a column that does not vary there; its own variance, 0 or 1, on the diagonal.
    """
    is_open = known.astype(np.float64)
    n = np.maximum(is_open.T @ is_open, 1.0)
    means = centred.T @ is_open / n  # of the row's column over the records of both
    variances = np.maximum((centred**2).T @ is_open / n - means**2, 0.0)
    products = centred.T @ centred / n - means * means.T
    size = np.sqrt(variances * variances.T)
    varies = size > 1e-12  # of values in sds: rounding
    return np.asarray(np.where(varies, products / np.where(varies, size, 1.0), 0.0))


def covariance(values: Floats) -> Floats:
    """Return the covariance of records x columns: their own sds, and correlations over the records where both are open.

    Means and sds of a correlation are those of the same records: of two columns whose top codes fall on different
    records both would be off. Correlations of pairs that do not fit together are drawn towards the nearest that do.
    """
    known = ~np.isnan(values)
    counts = np.maximum(known.sum(axis=0), 1)
    centred = np.where(known, values - np.where(known, values, 0.0).sum(axis=0) / counts, 0.0)
    scale = np.sqrt((centred**2).sum(axis=0) / np.maximum(counts - 1, 1))
    scale = np.where(scale > 0, scale, 1.0)
    raw = pair_correlations(centred / scale, known) * np.outer(scale, scale)
    eigenvalues, vectors = np.linalg.eigh(raw / np.outer(scale, scale))
    if eigenvalues[0] >= -1e-9:
        return np.asarray(raw)
    fitting = (vectors * np.clip(eigenvalues, 0.0, None)) @ vectors.T
    diagonal = np.sqrt(np.where(np.diag(fitting) > 0, np.diag(fitting), 1.0))
    return np.asarray(fitting / np.outer(diagonal, diagonal) * np.outer(scale, scale))
