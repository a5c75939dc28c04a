"""What the card tells of one record to who knows all others: figures of the noise that were computed from the data.

A size s of the card lay between a and b before it was rounded (`masks.size_grid`). With mean m and sum of squares SS of
the other n - 1 values, (x - m)^2 = n / (n - 1) ((n - 1) s^2 - SS), so that |x - m| lies between the roots at a and b.
A correlation of the noise, known to a step, tells to who also knows another column of that record, at u_j sds from its
mean, the value u_i of this one: dr / du_i = (u_j - r u_i) / n, so that u_i lies within n step / |u_j - r u_i|.

Where that interval of |x - m| begins at 0 the record lies near the mean, on either side of it: its width is then twice
as large. An interval of width w leaves an error of w / sqrt(12) (root mean square, all of it alike); the record's own
released value leaves one sd of the noise. The figure is that error in sds of the record's noise, of the record about
which most is told. An interval in which half of all records lie anyway is no news and does not count. Own derivation.
Called by `value_checks`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..laws import Additive, SkewedBias
from ..laws.chain import combined_of, stages_of
from ..laws.spread import Multiplicative
from ..masks.size_grid import correlation_step, size_interval
from ..table import Floats, Table
from .card_digits import exact_cards, significant
from .evidence import Evidence
from .findings import PASS
from .protocol import CheckFigure
from .residuals import NOTHING

Ways = tuple[tuple[float, ...], ...]  # sizes of a column's noise: as a whole, and of its stages

NEWS = 0.5  # of the records: an interval that holds more of them tells less than one bit
ROOT_12 = float(np.sqrt(12))  # width of an interval over the sd of a uniform law on it
DIGITS = 2  # of a size on a card of many records
FEW = 3  # open values below which a mean and an sd of the others say nothing


@dataclass(frozen=True, slots=True)
class LastRecordError:
    """What a card tells of each record of a column: the error left, in sds of its noise, and whether it is news."""

    error: Floats
    is_news: Any

    @property
    def least(self) -> float:
        """The error left of the record about which most is told; infinite where nothing is news."""
        return float(self.error[self.is_news].min(initial=np.inf))


@dataclass(frozen=True, slots=True)
class NoiseSizes:
    """The sizes on a card that set a column's noise, each with what it was before it was rounded."""

    law: Additive | SkewedBias
    at: int
    shown: tuple[float, ...]
    exact: tuple[float, ...]

    @property
    def name(self) -> str:
        """The column."""
        return self.law.columns[self.at]


def last_record(evidence: Evidence) -> CheckFigure:
    """Measure to how many sds of its noise the card tells a record's distance from the mean, all others known."""
    truth = evidence.masking.truth
    columns = [
        one for one in _sizes(evidence) if one.name in truth.schema and truth.schema[one.name].is_number
    ]
    if not columns:
        return CheckFigure(
            NOTHING, "no size on the card was computed from the records: it tells nothing of any of them"
        )
    told = {one.name: found for one in columns if (found := _last_record_error(one, truth)) is not None}
    if not told:
        return CheckFigure(NOTHING, f"fewer than {FEW} open values: no mean of the others can be told")
    typical = {name: float(np.median(one.error)) for name, one in told.items()}
    least = {name: one.least for name, one in told.items()}
    for name, one in _by_correlations(evidence, set(told)):
        least[name] = min(least[name], one.least)
    figures = {name: typical[name] if np.isinf(least[name]) else least[name] for name in told}
    worst = min(figures, key=lambda name: (np.isinf(least[name]), figures[name]))
    said = (
        f"who knows all other records can compute the last one's {worst} from the size of the noise on the card, to "
        f"± {figures[worst]:.2g} sds of the noise at worst, {typical[worst]:.2g} typically (its released value alone: "
        "± 1)"
    )
    verdict = PASS if np.isinf(least[worst]) else None
    return CheckFigure(figures[worst], said, worst, figures, verdict=verdict, by_column=figures)


def _sizes(evidence: Evidence) -> list[NoiseSizes]:
    """Pair the sizes on the card with those it would show in full; without those that the plan itself gives."""
    card = evidence.masking.card
    exact, half = exact_cards(evidence)
    found = []
    for law in card.laws:
        seen = combined_of(law)
        if not isinstance(seen, Additive | SkewedBias):
            continue
        for at, name in enumerate(seen.columns):
            pairs = _told_pairs(
                *(() if one is None else _of_column(one, name) for one in (card, exact, half))
            )
            if pairs:
                shown, full = (tuple(side) for side in zip(*pairs, strict=True))
                found.append(NoiseSizes(seen, at, shown, full))
    return found


def _told_pairs(shown: Ways, exact: Ways, half: Ways) -> list[tuple[float, float]]:
    """Return the sizes that were computed from the records, each with what it was in full (itself, where unknown).

    Noise of several stages is on a card as their sum and as stages. What is left between two releases, or the sum of
    two rounded variances, has digits of its own that tell nothing new: those with more digits are left out where
    others are there.
    """
    pairs = []
    for i, way in enumerate(shown):
        full = exact[i] if i < len(exact) and len(exact[i]) == len(way) else way
        other = half[i] if i < len(half) and len(half[i]) == len(full) else ()
        pairs += [
            (size, whole)
            for k, (size, whole) in enumerate(zip(way, full, strict=True))
            if not other or other[k] != whole
        ]
    fewest = min((significant(size) for size, _ in pairs), default=0)
    return [pair for pair in pairs if significant(pair[0]) <= max(fewest, DIGITS)]


def _of_column(card: NoiseCard, name: str) -> Ways:
    """Return the sizes above 0 of a column's noise: of the whole, and of its stages where it has several."""
    law = card.law_of(name)
    stages = [one for _, one in stages_of(law)]
    ways = [[combined_of(law)], *([stages] if len(stages) > 1 else [])]
    return tuple(tuple(size for one in way for size in _of_law(one, name) if size > 0) for way in ways)


def _of_law(law: Any, name: str) -> Iterator[float]:
    if not isinstance(law, Additive | SkewedBias) or name not in law.columns:
        return
    at = law.columns.index(name)
    if isinstance(law, SkewedBias):
        yield law.sds[at]
        return
    spread, noise = (law.spreads[at] if law.spreads else None), law.noise
    if isinstance(spread, Multiplicative):
        yield spread.sd
    elif noise.form == "mixture":
        within = float(noise.sds[at][0])  # type: ignore[attr-defined]
        yield within
        yield float(np.sqrt(max(noise.covariance[at, at] - within**2, 0.0)))
    else:
        yield float(noise.sds[at])  # type: ignore[attr-defined]


def _last_record_error(one: NoiseSizes, truth: Table) -> LastRecordError | None:
    """Return what the sizes of one column tell of each of its records."""
    outlet = one.law.outlets[one.at]
    raw = truth.floats(one.name)
    raw = raw[~np.isnan(raw)]
    x = outlet.enter(raw)
    n = len(x)
    if n < FEW or not np.isfinite(x).all() or x.min() == x.max():
        return None
    sd = float(x.std(ddof=1))
    ends = [_before_rounding(shown, full, sd, n) for shown, full in zip(one.shown, one.exact, strict=True)]
    low, high = max(a for a, _ in ends), min(b for _, b in ends)
    distance = np.abs(x - x.mean()) * n / (n - 1)
    rest = (n - 1) * sd**2 - (n - 1) / n * distance**2
    nearest, farthest = (
        np.sqrt(np.clip(n / (n - 1) * ((n - 1) * end**2 - rest), 0.0, None)) for end in (low, high)
    )
    ordered = np.sort(distance)
    inside = np.searchsorted(ordered, farthest, "right") - np.searchsorted(ordered, nearest, "left")
    width = np.where(
        nearest > 0, farthest - nearest, 2 * farthest
    )  # near the mean nobody knows on which side
    return LastRecordError(width / ROOT_12 / _noise_sds(one.law, one.at, raw), inside < NEWS * n)


def _before_rounding(shown: float, full: float, sd: float, records: int) -> tuple[float, float]:
    """Return between which sds of the data one lies, by a size on the card that is a fixed ratio of it.

    Where the size in full does not lie where the card says (masks in a chain see values already masked), the ratio is
    taken as if nothing had been rounded.
    """
    low, high = size_interval(shown, records, significant(shown))
    ratio = (full if low <= full <= high else shown) / sd
    return low / ratio, high / ratio


def _noise_sds(law: Additive | SkewedBias, at: int, x: Floats) -> Floats:
    """Return the sd of the noise of each value, on the scale on which it is added."""
    if isinstance(law, SkewedBias):
        return np.hypot(law.sds[at], law.bias_sd * x)
    spread = law.spreads[at] if law.spreads else None
    sd = float(np.sqrt(law.noise.covariance[at, at]))
    return sd * (np.ones(len(x)) if spread is None else np.maximum(spread.factor(x), 1e-300))


def _by_correlations(evidence: Evidence, names: set[str]) -> Iterator[tuple[str, LastRecordError]]:
    """Return what the correlations of the noise tell of each record that is open in all columns of a law."""
    for law in evidence.masking.card.laws:
        for _, stage in stages_of(law):
            if not isinstance(stage, Additive) or not set(stage.columns) <= names:
                continue
            correlations = np.array(stage.noise.correlations)
            if correlations.size > 1:
                records = len(evidence.masking.truth)
                if evidence.masking.number > 1 and not _is_on_steps(correlations, correlation_step(records)):
                    continue  # what is left between two releases: a difference of rounded figures tells nothing new
                yield from _of_pairs(evidence, stage, correlations)


def _of_pairs(
    evidence: Evidence, law: Additive, correlations: Floats
) -> Iterator[tuple[str, LastRecordError]]:
    raw = evidence.masking.truth.values(law.columns)
    raw = raw[~np.isnan(raw).any(axis=1)]
    n = len(raw)
    x = np.column_stack([outlet.enter(raw[:, j]) for j, outlet in enumerate(law.outlets)])
    if n < FEW or not np.isfinite(x).all() or (x.min(axis=0) == x.max(axis=0)).any():
        return
    sds = x.std(axis=0, ddof=1)
    u = (x - x.mean(axis=0)) / sds
    step = _step(correlations, n)
    for i, name in enumerate(law.columns):
        others = [j for j in range(len(law.columns)) if j != i]
        slope = np.max([np.abs(u[:, j] - correlations[i, j] * u[:, i]) for j in others], axis=0)
        width = n * step / np.maximum(slope, 1e-12)
        ordered = np.sort(u[:, i])
        ends = u[:, i] - width / 2, u[:, i] + width / 2
        inside = np.searchsorted(ordered, ends[1], "right") - np.searchsorted(ordered, ends[0], "left")
        error = np.full(len(raw), np.inf) if not others else width * sds[i] / ROOT_12
        yield name, LastRecordError(error / _noise_sds(law, i, raw[:, i]), inside < NEWS * n)


def _step(correlations: Floats, records: int) -> float:
    """Return the step of the correlations on a card: that of this program, or finer where they lie between."""
    step = correlation_step(records)
    if _is_on_steps(correlations, step):
        return step
    digits = max(significant(float(one)) for one in correlations.ravel())
    return min(step, 10.0**-digits)


def _is_on_steps(correlations: Floats, step: float) -> bool:
    off = correlations / step
    return bool(np.abs(off - np.round(off)).max() <= 1e-9)
