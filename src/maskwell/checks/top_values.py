"""What the largest values of a column tell without any link: whoever is known to be the largest is read off.

Both ends are looked at: of a column with values below 0 the largest losses are read off as the largest incomes are.

For each of the k largest true values x of an amount the law gives P(|z - x| <= x / 10): with noised values y = c(x) +
s(x) e on the scale of the noise, z lies in [0.9 x, 1.1 x] where y lies between the ends a and b that the outlet (unit,
limits, codes, logarithm) leads there, so that it is F((b - c) / s) - F((a - c) / s) for the noise's distribution
function F. No draw is made. A value counts that stands out: it is twice the column's median or more (of a height or a
grade 10% is no secret), by the law it more probably than not stays above the k + 1st released value, and the largest
released values are mostly of the largest true ones down to it (the oldest of many old people are others after noise).
How many of the k largest are is shown beside the figure and is no limit: on a long tail noise of one sd leaves nearly
all of them, which alone tells no value. Own derivation. Called by `value_checks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..laws import Additive, SkewedBias
from ..laws.transform import Outlet, inside
from ..masking.results import Integers
from ..table import Floats
from .evidence import Evidence
from .protocol import CheckFigure
from .residuals import FEWEST, NOTHING
from .scales import law_of, noised_columns

LARGEST_VALUES = 11  # values that are looked at; of fewer than 110 records a tenth
CLOSE = 0.1  # of the value: who has that error has the figure
LARGE = 2.0  # times the median of what is not 0
STAYS = 0.5  # probability: from here on a value is expected among the largest released ones
UPPER, LOWER = 1, -1  # ends of a column: the largest amounts, the largest losses
MOSTLY = 0.5  # of the largest released values: fewer that are of the largest true ones name nobody


@dataclass(frozen=True, slots=True)
class Top:
    """The k largest of a column: how probably each leaves within a tenth of itself, and whether it stands out there."""

    probabilities: Floats
    stands_out: Any
    overlap: int
    by_law: bool

    @property
    def largest(self) -> float:
        """The probability of the value that is read off most surely; 0 where none stands out."""
        return float(self.probabilities[self.stands_out].max(initial=0.0))


def top_values(evidence: Evidence) -> CheckFigure:
    """Measure how probably one of the largest true amounts, or losses, leaves within a tenth of itself."""
    ends = [(name, side) for name in noised_columns(evidence) for side in (UPPER, LOWER)]
    found = {end: top for end in ends if (top := _top(evidence, *end)) is not None}
    if not found:
        return CheckFigure(
            NOTHING, "no noised number has enough open values other than 0 to have a largest one"
        )
    figures = {
        name if side == UPPER else f"{name}, below 0": top.largest for (name, side), top in found.items()
    }
    by_column = dict[str, float]()
    for (name, _), top in found.items():
        by_column[name] = max(top.largest, by_column.get(name, 0.0))
    worst = max(found, key=lambda end: found[end].largest)
    said = _top_sentence(*worst, found[worst])
    return CheckFigure(found[worst].largest, said, worst[0], figures, by_column=by_column)


def _top_sentence(name: str, side: int, top: Top) -> str:
    count, most, known_as = (
        len(top.probabilities),
        *(("largest", "large") if side == UPPER else ("most negative", "low")),
    )
    source = "by the law" if top.by_law else "in this release (the card has no law for it)"
    if not top.stands_out.any():
        return (
            f"of the {count} {most} values of {name} none stands out: {top.probabilities.mean():.0%} leave within "
            f"{CLOSE:.0%} of themselves on average, {source}, but they are not far from the others or do not stay in "
            "their places"
        )
    return (
        f"of the {count} {most} values of {name} one leaves within {CLOSE:.0%} of itself with probability "
        f"{top.largest:.2f} and {top.probabilities.mean():.0%} do on average, {source}, so that who is known to be "
        f"{known_as} is read off without a link; {top.overlap} of the {count} {most} released values are of the "
        f"{most} true ones"
    )


def _top(evidence: Evidence, name: str, side: int = UPPER) -> Top | None:
    """Look at the open values farthest above 0, or below; nothing where there are too few on that side."""
    x, z = evidence.true(name), evidence.noised(name)
    known, left = np.flatnonzero(~np.isnan(x)), np.flatnonzero(~np.isnan(z))
    count = min(LARGEST_VALUES, max(1, len(known) // 10), int(np.count_nonzero(side * x[known] > 0)))
    if len(known) < FEWEST or count < 1:
        return None
    rows = _farthest(x, known, side, count)
    sizes = np.abs(x[known])
    is_large = side * x[rows] >= LARGE * np.median(sizes[sizes > 0])
    order = _farthest(z, left, side, count + 1)
    beside = float(z[order[count]]) if len(order) > count else -side * np.inf
    law = law_of(evidence, name)
    by_law = isinstance(law, Additive | SkewedBias)
    if by_law:
        close, stays = close_probability(law, x[rows]), stay_probability(law, x[rows], beside, side)
    else:
        with np.errstate(invalid="ignore"):
            close = (np.abs(z[rows] - x[rows]) <= CLOSE * np.abs(x[rows])).astype(np.float64)
            stays = (side * z[rows] > side * beside).astype(np.float64)
    kept = _kept_shares(rows, order[:count])
    stands_out = is_large & (stays >= STAYS) & (kept >= MOSTLY)
    return Top(close, stands_out, int(np.isin(order[:count], rows).sum()), by_law)


def _farthest(values: Floats, known: Integers, side: int, count: int) -> Integers:
    """Return the places of the values farthest on one side, the first of them first; ties as they stand."""
    sizes = side * values[known]
    if len(known) > count:
        known = known[sizes >= np.partition(sizes, -count)[-count]]
    return known[np.argsort(-side * values[known], kind="stable")][:count]


def _kept_shares(true: Integers, released: Integers) -> Floats:
    """Return for each rank the best share, at it or below, of the j largest released among the j largest true."""
    ranks = range(1, len(true) + 1)
    shares = np.array([np.isin(released[:j], true[:j]).mean() if len(released) else 0.0 for j in ranks])
    return np.asarray(np.maximum.accumulate(shares[::-1])[::-1])


def stay_probability(law: Additive | SkewedBias, x: Floats, beside: float, side: int = UPPER) -> Floats:
    """Return for each true value the probability that it leaves open and beyond a released value."""
    unit = law.outlets[0].unit
    apart = 1e-9 * max(abs(beside), 1.0) if unit is None else float(unit)
    nearest, endless = np.full(len(x), beside + side * apart), np.full(len(x), side * np.inf)
    return interval_probability(law, x, *((nearest, endless) if side == UPPER else (endless, nearest)))


def close_probability(law: Additive | SkewedBias, x: Floats, share: float = CLOSE) -> Floats:
    """Return for each true value the probability that it leaves open and within a share of itself."""
    return interval_probability(law, x, x - share * np.abs(x), x + share * np.abs(x))


def interval_probability(law: Additive | SkewedBias, x: Floats, low: Floats, high: Floats) -> Floats:
    """Return P(low <= z <= high and z open) for a law of one column, given true values."""
    lower, upper, possible = _ends(law.outlets[0], low, high)
    if isinstance(law, SkewedBias):
        from ..kernels.densities import bias_lognormal_log_interval

        logs = bias_lognormal_log_interval(lower, upper, x, law.bias_sd, np.full(len(x), law.sds[0]))
        return np.where(possible, np.exp(logs), 0.0)
    centre = law.place(x[:, None], np.zeros((len(x), 1), order="F"))[:, 0]
    spread = law.spreads[0] if law.spreads else None
    scale = np.ones(len(x)) if spread is None else spread.factor(x)
    silent = scale * float(np.sqrt(law.noise.covariance[0, 0])) == 0
    units = np.where(silent, 1.0, scale)
    a, b = (lower - centre) / units, (upper - centre) / units
    logs, _ = law.noise.log_box(a[:, None], np.maximum(a, b)[:, None], (False,))
    close = np.where(silent, (a <= 0) & (b >= 0), np.exp(logs))
    return np.where(possible, np.clip(close, 0.0, 1.0), 0.0)


def _ends(outlet: Outlet, low: Floats, high: Floats) -> tuple[Floats, Floats, Any]:
    """Return between which noised values z is open and between two values, and whether there are any."""
    if outlet.unit is not None:
        unit = float(outlet.unit)
        low, high = np.ceil(low / unit - 1e-9) * unit, np.floor(high / unit + 1e-9) * unit
    least, most = outlet.low, outlet.high
    possible = low <= high
    if most is not None:
        possible &= low < most if outlet.high_coded else low <= most
    if least is not None:
        possible &= high > least if outlet.low_coded else high >= least
    half = 0.0 if outlet.unit is None else float(outlet.unit) / 2
    lower, upper = low - half, high + half
    if most is not None:  # what a clamp holds back is at the limit; what a code takes is open no more
        edge = _code_edge(outlet, most, 1) if outlet.high_coded else np.inf
        upper = np.where(high >= most, edge, upper)
    if least is not None:
        edge = _code_edge(outlet, least, -1) if outlet.low_coded else -np.inf
        lower = np.where(low <= least, edge, lower)
    if outlet.log_shift is not None:
        with np.errstate(divide="ignore"):
            lower, upper = (np.log(np.maximum(end + outlet.log_shift, 0.0)) for end in (lower, upper))
    return lower, upper, possible


def _code_edge(outlet: Outlet, code: float, direction: int) -> float:
    """Return the noised value from which on a code is given."""
    if outlet.unit is None:
        return code
    return inside(code, direction, outlet.unit) - direction * float(outlet.unit) / 2
