"""What an analyst corrects by the card: means, sds and correlations with the known moments of the noise taken off.

Noise that is added and not cut off has a known mean and covariance: both are taken off the released moments (Kim 1986;
Fuller 1987), exactly but for chance. Noise that was clamped, is on the log scale or depends on the value has no such
moments: there the distribution of the true values is estimated by the EM algorithm from that of the released ones and
the law (`deconvolution`). Covariances of the true values are those of the released ones less what the noise that two
columns share adds to them (`shared_noise`), over how much of each column its released values keep. Called by
`comparison`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import isfinite
from typing import Any

import numpy as np

from ..analysis.corrections.noise_moments import MomentPart, noise_mean, noised_columns, rank_reason
from ..card import NoiseCard
from ..errors import NoMoments
from ..laws import Additive, RankSwapped
from ..laws.chain import combined_of
from ..notes import Note
from ..schema import OPEN
from ..table import Floats, Table
from .deconvolution import DeconvolvedMoments, unmix
from .moments import PairwiseMoments, correlations
from .noise_covariance import SharedNoise, mean_factor, shared_noise, totals_turn
from .pairs import TruthAndRelease

EXACT, ESTIMATED, NOTHING = "moments", "estimated distribution", "nothing to correct"
SLIGHT = 0.01  # noise below this share of the variance: what limits cut off of it does not show
NO_CARD = "the card does not say how it was changed"


@dataclass(frozen=True, slots=True)
class ColumnCorrection:
    """How one column is corrected: true = (released - offset) / slope, less noise; `keeps` is the attenuation.

    `keeps` is cov(released, true) / variance of the true values where the distribution is estimated: a known factor
    where no limit cut the noise off. `variance` is that of the noise on the true scale, `bias_sd` its growth with the
    value, `at_limit` the share of released values that stand at a limit and that the correction leans on.
    """

    by: str
    slope: float = 1.0
    offset: float = 0.0
    variance: float = 0.0
    bias_sd: float = 0.0
    keeps: float = 1.0
    at_limit: float = 0.0
    estimated: DeconvolvedMoments | None = None
    why_not: str = ""

    def moments(self, mean: float, variance: float) -> tuple[float, float]:
        """Return the corrected mean and variance of a column from the released ones."""
        if self.why_not:
            return float("nan"), float("nan")
        if self.estimated is not None:
            return self.estimated.mean, self.estimated.variance
        mean = (mean - self.offset) / self.slope
        variance = variance / self.slope**2
        return mean, variance - self.noise(mean, variance)

    def noise(self, mean: float, variance: float) -> float:
        """Return the mean variance of the noise, from the mean and variance of the values with slope undone."""
        square = mean * mean + variance
        return (self.variance + self.bias_sd**2 * square) / (1 + self.bias_sd**2)


def undoings(sides: TruthAndRelease) -> dict[str, ColumnCorrection]:
    """Return how each number of a release is corrected by its card, or why it is not."""
    card, table = sides.masking.card, sides.released
    unswapped = replace(card, swapped=None)  # an exchange leaves every column's own distribution alone
    totals = dict(card.recomputed)
    found: dict[str, ColumnCorrection] = {}
    for name in sides.numbers:
        if name not in totals:
            found[name] = _column_correction(name, unswapped, table, sides)
    for name in totals:
        if name in sides.numbers:
            found[name] = _total(totals[name], found)
    noise = _plain_covariances(sides, found)
    for i, name in enumerate(sides.numbers):
        if name in totals and found[name].by == EXACT:
            found[name] = replace(found[name], variance=float(noise[i, i]))
    return {name: found[name] for name in sides.numbers}


def _column_correction(name: str, card: NoiseCard, table: Table, sides: TruthAndRelease) -> ColumnCorrection:
    law = combined_of(card.law_of(name))
    if law is None:
        return (
            ColumnCorrection("", why_not=NO_CARD)
            if _differs_without_law(name, sides)
            else ColumnCorrection(NOTHING)
        )
    if isinstance(law, RankSwapped):
        return ColumnCorrection("", why_not=rank_reason(name))
    try:
        noised = noised_columns(card, table, [name], None)
    except NoMoments as refusal:  # without its remedy: here it is the figure that is missing, not a fit
        return _estimated_correction(name, law, sides, refusal.refusals[0].reason)
    if not noised.parts:
        return ColumnCorrection(NOTHING)
    part: MomentPart = noised.parts[0]
    bias = float(part.biases[0])
    return ColumnCorrection(EXACT, part.slope, float(part.offsets[0]), float(part.covariance[0, 0]), bias)


def _differs_without_law(name: str, sides: TruthAndRelease) -> bool:
    """Whether a column without a law differs by more than an exchange of its values."""
    swapped = sides.masking.card.swapped
    exchanged = swapped is not None and name in swapped.columns
    return name in sides.touched and not exchanged


def _estimated_correction(name: str, law: Any, sides: TruthAndRelease, why: str) -> ColumnCorrection:
    """Correct by the estimated distribution of the true values, where the law has a density and opens no code."""
    coded = isinstance(law, Additive) and bool(law.categories)
    if not law.has_density or not law.outlets or coded:
        return ColumnCorrection("", why_not=why)
    j = law.columns.index(name)
    outlet = law.outlets[j]
    if outlet.low_coded or outlet.high_coded:
        return ColumnCorrection("", why_not=f"{why}; values that the noise carried over a code are closed")
    values, weights = sides.after(name), sides.weights_after
    is_open = sides.released.status(name) == OPEN
    found = unmix(law, j, values[is_open], None if weights is None else weights[is_open])
    if found is None:
        return _slight(law, j, values, why)
    at_limit = _at_limit(outlet, values[is_open])
    factor = mean_factor(law, j) if isinstance(law, Additive) and not at_limit else float("nan")
    keeps = factor if isfinite(factor) else found.keeps
    return ColumnCorrection(ESTIMATED, keeps=keeps, at_limit=at_limit, estimated=found)


def _at_limit(outlet: Any, values: Floats) -> float:
    """Return the share of released values that stand at a limit of their noise."""
    limits = [limit for limit in (outlet.low, outlet.high) if limit is not None]
    return float(np.isin(values, limits).mean()) if limits and len(values) else 0.0


def _slight(law: Any, j: int, values: Floats, why: str) -> ColumnCorrection:
    """Correct noise that is too small for a grid as if no limit had cut it off: it hardly moves anything."""
    if not isinstance(law, Additive) or law.outlets[j].log_shift is not None or any(law.spreads):
        return ColumnCorrection("", why_not=why)
    noise, variance = float(law.noise.covariance[j, j]) / law.slope**2, float(np.nanvar(values))
    if not noise < SLIGHT * variance:
        return ColumnCorrection("", why_not=why)
    offset = (law.offsets[j] if law.offsets else 0.0) + float(noise_mean(law.noise)[j])
    return ColumnCorrection(f"{EXACT}, limits ignored", law.slope, offset, noise)


def _total(parts: Sequence[tuple[str, float]], known: Mapping[str, ColumnCorrection]) -> ColumnCorrection:
    """Correct a total by the noise of its parts; their slopes must be the same for that."""
    used = [(known.get(name, ColumnCorrection(NOTHING)), coefficient) for name, coefficient in parts]
    if any(undoing.by not in (EXACT, NOTHING) for undoing, _ in used):
        return ColumnCorrection("", why_not="a part of the total cannot be corrected by moments")
    if len({undoing.slope for undoing, _ in used}) > 1 or any(undoing.bias_sd for undoing, _ in used):
        return ColumnCorrection("", why_not="the parts of the total have noise of different kinds")
    if all(undoing.by == NOTHING for undoing, _ in used):
        return ColumnCorrection(NOTHING)
    offset = sum(coefficient * undoing.offset for undoing, coefficient in used)
    return ColumnCorrection(
        EXACT, used[0][0].slope, offset
    )  # its variance follows from the covariances of the parts


def _plain_covariances(sides: TruthAndRelease, known: Mapping[str, ColumnCorrection]) -> Floats:
    """Return the covariances of noise that moments correct, on the scale of the true values, of totals too."""
    names = sides.numbers
    place = {name: i for i, name in enumerate(names) if known[name].by == EXACT}
    base = np.diag([known[name].variance if name in place else 0.0 for name in names])
    for law in map(combined_of, sides.masking.card.laws):
        here = [j for j, name in enumerate(law.columns) if name in place]
        for a, b in permutations(here if isinstance(law, Additive) else (), 2):
            at = place[law.columns[a]], place[law.columns[b]]
            base[at] = law.noise.covariance[a, b] / law.slope**2
    turn = totals_turn(sides, names)
    return np.asarray(turn @ base @ turn.T)


@dataclass(frozen=True, slots=True)
class CorrectedFigures:
    """Correlations with the noise taken out, not a number for pairs that the card does not allow it for, and why."""

    correlations: Floats
    notes: tuple[Note, ...] = ()


def corrected_correlations(
    sides: TruthAndRelease,
    known: Mapping[str, ColumnCorrection],
    moments: PairwiseMoments,
    names: Sequence[str],
) -> CorrectedFigures:
    """Return correlations with the noise taken out: that of each column, and what two columns share of it."""
    shared = _shared_noise_covariance(sides, known, moments, names)
    keeps = np.array([known[name].slope * known[name].keeps for name in names])
    covariances = (moments.covariances - shared.covariances) / np.outer(keeps, keeps)
    variances = np.array(
        [
            [_true_variance(known[name], moments, i, j) for j in range(len(names))]
            for i, name in enumerate(names)
        ]
    ).reshape(len(names), len(names))
    np.fill_diagonal(covariances, np.diag(variances))
    found = correlations(covariances, variances)
    found[_moved_apart(sides, names)] = np.nan
    found = np.asarray(np.where(np.abs(found) > 1.5, np.nan, np.clip(found, -1.0, 1.0)))
    reasons = {name: known[name].why_not for name in names if known[name].why_not}
    notes = [
        Note("utility.uncorrected_column", {"name": name, "reason": reason})
        for name, reason in reasons.items()
    ]
    notes += [
        Note(code, {"first": first, "second": second})
        for (first, second), code in shared.why_not.items()
        if first not in reasons and second not in reasons
    ]
    return CorrectedFigures(found, tuple(notes))


def _shared_noise_covariance(
    sides: TruthAndRelease,
    known: Mapping[str, ColumnCorrection],
    moments: PairwiseMoments,
    names: Sequence[str],
) -> SharedNoise:
    """Return what the noise adds to the released covariances; totals have their own variance from their parts."""
    at_limit = {name: known[name].at_limit for name in names}
    plain = [known[name] if known[name].by == EXACT else ColumnCorrection(NOTHING) for name in names]
    totals = dict(sides.masking.card.recomputed)
    own = [
        0.0 if name in totals else one.variance * one.slope**2 for name, one in zip(names, plain, strict=True)
    ]
    return shared_noise(sides, at_limit, np.array(own), moments, names)


def _true_variance(undoing: ColumnCorrection, moments: PairwiseMoments, i: int, j: int) -> float:
    """Return the variance of the true values of column i over the records where column j is open too."""
    if undoing.why_not:
        return float("nan")
    here = float(moments.variances[i, j])
    if undoing.estimated is not None:
        # As much of the variance is the noise's as over all open records.
        return here * undoing.estimated.variance / float(moments.variances[i, i])
    mean = (float(moments.means[i, j]) - undoing.offset) / undoing.slope
    here = here / undoing.slope**2
    return here - undoing.noise(mean, here)


def _moved_apart(sides: TruthAndRelease, names: Sequence[str]) -> Any:
    """Return the pairs of columns of which one was exchanged between records and the other was not."""
    swapped = sides.masking.card.swapped
    moved = np.array([swapped is not None and name in swapped.columns for name in names], bool)
    if swapped is None or swapped.share == 0:
        moved[:] = False
    return moved[:, None] != moved[None, :]
