"""Scores of correlated noise, column by column given those before it, and the size of whole records.

Correlated normals, correlations R = LL': w_j is the score of cell j under N(sum over i < j of L_ji w_i, L_jj^2), so
that the sum of w_j^2 is e'V^-1 e. Mixtures: the same inside each component, whose weights are updated column by column.
A record is used up to its first cell at a limit, that one included, and the rest is filled with keyed N(0, 1): leaving
out whoever reached a limit would bias the others. What stands for a cell in the condition is a point of it, so units
must be small beside what the other columns leave of the noise; else only marginals are tested.

Size: the normal score of chi^2_p(sum of w_j^2), which finds leaks that strike whole records. Conditional normal laws by
Anderson (2003, section 2.5). Chosen by `battery` for laws whose columns share noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...laws import Additive, JointMixture, Normal, RotatedMixture
from ...laws.noise import scaled_root
from ...notes import Note
from ...table import Floats
from ..evidence import Evidence
from .cells import Bools, Integers, ScoredCells, jitter
from .marginals import clip_scores, normal_score

FINE = 0.05  # of the sd that is left given the other columns: units above it make the condition inexact
MOST_COMPONENTS = 256  # of a mixture, kept for each record of a part
PART = 50_000  # records at a time
FULL_RANK = 1e-8  # smallest eigenvalue of correlations that leave noise in every direction


@dataclass(frozen=True, slots=True)
class Components:
    """A mixture of multivariate normals in units of each column's sd: weights, means, and a root of each covariance."""

    weights: Floats
    means: Floats
    covariances: Floats

    def only(self, chosen: Sequence[int]) -> Components:
        """Return the components of some columns."""
        both = np.ix_(range(len(self.weights)), chosen, chosen)
        return Components(self.weights, self.means[:, chosen], self.covariances[both])


def is_joint(law: Any) -> bool:
    """Whether the columns of a law share noise."""
    if not isinstance(law, Additive) or len(law.columns) < 2:
        return False
    noise = law.noise
    return isinstance(noise, JointMixture | RotatedMixture) or (
        isinstance(noise, Normal) and bool(noise.correlations)
    )


def whitened_scores(
    evidence: Evidence, law: Additive, cells: Mapping[str, ScoredCells]
) -> tuple[dict[str, Floats], Note | None]:
    """Return the scores of the columns of a law given those before them, and why some have none.

    One column on a coarse unit may come last: nothing is conditioned on it.
    """
    left = dict(zip(law.columns, law.noise.resolution, strict=True))
    able = [name for name in law.columns if name in cells]
    fine = [name for name in able if cells[name].unit <= FINE * left[name] * _typical(cells[name])]
    coarse = [name for name in able if name not in fine]
    said = Note("checks.coarse_units", {"columns": tuple(coarse[1:])}) if coarse[1:] else None
    names = [*fine, *coarse[:1]]
    if len(names) < 2:
        return {}, said
    places = [law.columns.index(name) for name in names]
    parts = _components(law, places)
    if parts is None or min(np.linalg.eigvalsh(one)[0] for one in parts.covariances) < FULL_RANK:
        return {}, Note("checks.no_full_rank")
    return _whiten_by_pattern(evidence, names, cells, parts), said


def _typical(cells: ScoredCells) -> float:
    """Return the smallest tenth of the noise's sizes on the released scale, over its own sd."""
    return float(np.quantile(cells.local_sd, 0.1)) / cells.marginal.sd


def _components(law: Additive, places: list[int]) -> Components | None:
    """List the components of a noise, its columns divided by their sds."""
    noise: Any = law.noise
    sds = np.sqrt(np.diag(noise.covariance))
    if isinstance(noise, Normal):
        listed = [(1.0, np.zeros(len(sds)), noise.covariance)]
    elif isinstance(noise, JointMixture):
        listed = [
            (w, m, noise.within_covariance) for w, m in zip(noise.weights, noise.means, strict=True) if w > 0
        ]
    else:
        if len(noise.weights) ** len(noise.sds) > MOST_COMPONENTS:
            return None
        root = scaled_root(noise.sds, noise.correlations)
        listed = [(w, root @ m, (root * s) @ (root * s).T) for w, m, s in noise._components()]
    if len(listed) > MOST_COMPONENTS:
        return None
    weights = np.array([one[0] for one in listed])
    means = np.array([one[1] / sds for one in listed])
    covariances = np.array([one[2] / np.outer(sds, sds) for one in listed])
    return Components(weights / weights.sum(), means, covariances).only(places)


def _whiten_by_pattern(
    evidence: Evidence, names: list[str], cells: Mapping[str, ScoredCells], parts: Components
) -> dict[str, Floats]:
    """Go through the records by the columns that have a cell there."""
    count = len(evidence.masking.truth)
    ends = np.full((2, count, len(names)), np.nan)
    for j, name in enumerate(names):
        own = cells[name]
        size = own.scale * own.marginal.sd
        ends[0, own.at, j] = (own.lower - own.centre) / size
        ends[1, own.at, j] = (own.upper - own.centre) / size
    uniform = np.column_stack([jitter(evidence, f"{name} whitened") for name in names])
    out = np.full((count, len(names)), np.nan)
    has_cell = ~np.isnan(ends[0])
    codes = has_cell @ (1 << np.arange(len(names), dtype=np.int64))
    for code in np.unique(codes[codes > 0]).tolist():
        records = np.flatnonzero(codes == code)
        chosen = [j for j in range(len(names)) if code >> j & 1]
        for start in range(0, len(records), PART):
            some = np.ix_(records[start : start + PART], np.array(chosen))
            out[some] = _conditional(ends[0][some], ends[1][some], uniform[some], parts.only(chosen))
    return {name: out[:, j] for j, name in enumerate(names)}


def _conditional(lower: Floats, upper: Floats, uniform: Floats, parts: Components) -> Floats:
    """Return the score of each column given those before it, for records with the same columns."""
    from scipy.special import ndtr, ndtri

    roots = np.linalg.cholesky(parts.covariances)
    records, width = lower.shape
    scores, done = np.empty((records, width)), np.zeros(records, bool)
    # What is known of each component so far: its log weight, and the innovations of the columns before.
    logs = np.repeat(np.log(parts.weights)[None, :], records, axis=0)
    before = np.zeros((width, records, len(parts.weights)))
    for j in range(width):
        mean = parts.means[:, j] + np.einsum("irk,ki->rk", before[:j], roots[:, j, :j])
        root = roots[:, j, j]
        weights = np.exp(logs - logs.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        a, b = ((end[:, j][:, None] - mean) / root for end in (lower, upper))
        low, high = (weights * ndtr(a)).sum(axis=1), (weights * ndtr(-a)).sum(axis=1)
        low_end, high_end = (weights * ndtr(b)).sum(axis=1), (weights * ndtr(-b)).sum(axis=1)
        v = uniform[:, j]
        drawn = normal_score(low + v * (low_end - low), high_end + (1 - v) * (high - high_end))
        scores[:, j] = np.where(done, ndtri(v), clip_scores(drawn))
        clamped = np.isinf(lower[:, j]) | np.isinf(upper[:, j])
        start, end = (np.where(clamped, 0.0, side[:, j]) for side in (lower, upper))
        point = start + v * (end - start)
        before[j] = (point[:, None] - mean) / root
        logs = logs - 0.5 * before[j] ** 2 - np.log(root)
        done |= clamped
    return scores


def record_size(scores: Sequence[Floats]) -> Floats:
    """Return the normal score of the sum of squares of each record's independent scores, two of them at least."""
    from scipy.special import chdtr, chdtrc

    total, count = np.zeros(len(scores[0])), np.zeros(len(scores[0]))
    for one in scores:
        known: Bools = ~np.isnan(one)
        total[known] += one[known] ** 2
        count += known
    usable: Integers = np.flatnonzero(count >= 2)
    out = np.full(len(total), np.nan)
    tails = chdtr(count[usable], total[usable]), chdtrc(count[usable], total[usable])
    out[usable] = clip_scores(normal_score(*tails))
    return out
