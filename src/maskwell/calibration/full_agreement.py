"""Who else would agree: the chance that other records agree fully with a target, and the share that leaves of it.

    E 1 / (1 + K + certain) = integral over s from 0 to 1 of s^certain prod (1 - p_i + p_i s) ds

K the number of others that agree, each by itself with chance p_i: own derivation, from 1 / (1 + k) = integral of s^k
and the generating function of K. Gauss-Legendre in panels that halve towards 1. Used by `agreement_curves` for the
correct links of an intruder who shares ties.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.polynomial.legendre import leggauss

from ..attacks.agreement import CLOSED
from ..laws.noise import sds_and_correlations
from ..table import Floats
from .agreement_chance import SHIFTS, Bools, Boxes, Ints, box_chances, noise_boxes, points_each

if TYPE_CHECKING:
    from ..laws import Additive
    from .comparison_setting import ComparisonSetting

MOST_PAIRS = 200_000  # some seconds for each size of the noise
PAIRS_AT_ONCE = 200_000  # boxes held in one go
NODES, PANELS = 8, 16  # of Gauss and Legendre in each panel; panels, halved towards 1
# A chance of ties enters the sums multiplied by that of the true record
POINTS_IN_ALL, FEWEST_POINTS = 2**14, 4
NEGLIGIBLE = 1e-7  # pairs that cannot have a larger chance are left out


@dataclass(frozen=True, slots=True)
class AgreeingPairs:
    """Targets and other records of their blocks with the same closed fields, in order of the targets.

    The pairs of target t stand from `start[t]` to `start[t + 1]`; `certain[t]` further records have no value that
    noise could change and agree always.
    """

    target: Ints
    record: Ints
    start: Ints
    certain: Ints


def find_pairs(situation: ComparisonSetting) -> AgreeingPairs | None:
    """Return the pairs that noise can make agree, or nothing where they are too many."""
    mine, theirs = _groups(situation)
    order = np.argsort(theirs, kind="stable")
    sizes = np.bincount(theirs, minlength=int(max(mine.max(), theirs.max())) + 1)
    silent = (situation.known >= CLOSED).all(axis=0)
    counts = np.where(silent, 0, sizes[mine])
    if counts.sum() > MOST_PAIRS:
        return None
    target = np.repeat(np.arange(len(mine)), counts)
    within = np.arange(len(target)) - np.repeat(np.cumsum(counts) - counts, counts)
    record = order[(np.cumsum(sizes) - sizes)[mine][target] + within]
    keep = (record != situation.targets[target]) & _agree_unmasked(situation, target, record)
    target, record = target[keep], record[keep]
    fixed = np.asarray(~situation.is_open.any(axis=1))
    certain = np.where(silent, sizes[mine] - 1, np.bincount(target[fixed[target]], minlength=len(mine)))
    target, record = target[~fixed[target]], record[~fixed[target]]
    start = np.concatenate([[0], np.cumsum(np.bincount(target, minlength=len(mine)))])
    return AgreeingPairs(target, record, start, certain)


def _groups(situation: ComparisonSetting) -> tuple[Ints, Ints]:
    """Number the combinations of block and closed fields, of targets and of all records alike."""
    sides = zip(situation.blocks, (situation.known, situation.released), strict=True)
    rows = [np.column_stack([block, np.where(values >= CLOSED, values, 0.0).T]) for block, values in sides]
    _, member = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    return member.ravel()[: len(rows[0])], member.ravel()[len(rows[0]) :]


def _agree_unmasked(situation: ComparisonSetting, target: Ints, record: Ints) -> Bools:
    """Return whether pairs agree on every field that no noise touches."""
    agree = np.ones(len(target), bool)
    for f in range(len(situation.fields)):
        if f not in situation.places:
            found = situation.released[f, record]
            agree &= (found >= situation.low[target, f]) & (found <= situation.high[target, f])
    return agree


def tie_shares(situation: ComparisonSetting, pairs: AgreeingPairs, sd_ratio: float) -> Floats:
    """Return for each target E 1 / (1 + others that agree fully with it), targets x shifts."""
    from ..kernels.normal_box_lattice import shared_chances

    own = np.ones((len(pairs.certain), SHIFTS))
    start, chances = pairs.start, np.empty((0, SHIFTS))
    if len(pairs.target):
        kept, chances = _likely(situation, pairs, situation.law(sd_ratio))
        start = np.searchsorted(pairs.target[kept], np.arange(len(pairs.certain) + 1))
    nodes, weights = quadrature()
    shared_chances(chances, start, pairs.certain, nodes, weights, own)
    return own


def _likely(situation: ComparisonSetting, pairs: AgreeingPairs, law: Additive) -> tuple[Ints, Floats]:
    """Return the pairs with more than a negligible chance, and their chances."""
    kept, boxes = [], []
    for begin in range(0, len(pairs.target), PAIRS_AT_ONCE):
        part = slice(begin, begin + PAIRS_AT_ONCE)
        lower, upper = _boxes(situation, pairs, law, part)
        likely = np.flatnonzero(_largest_chance(law, lower, upper) > NEGLIGIBLE)
        kept.append(begin + likely)
        boxes.append((lower[likely], upper[likely]))
    whole = np.concatenate([b[0] for b in boxes]), np.concatenate([b[1] for b in boxes])
    return np.concatenate(kept), box_chances(
        law, whole, points_each(len(whole[0]), POINTS_IN_ALL, FEWEST_POINTS)
    )


def _boxes(situation: ComparisonSetting, pairs: AgreeingPairs, law: Additive, part: slice) -> Boxes:
    target, places = pairs.target[part], situation.places
    bounds = situation.low[target][:, places], situation.high[target][:, places]
    return noise_boxes(law, *bounds, situation.truth[pairs.record[part]])


def _largest_chance(law: Additive, lower: Floats, upper: Floats) -> Floats:
    """Return bounds on the chances of boxes: their narrowest side, and their volume times the largest density.

    The determinant of any m correlations is at least the m-th power of the smallest eigenvalue of all.
    """
    from scipy.special import ndtr

    flip = np.abs(lower) < np.abs(upper)
    ends = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    side = (ndtr(ends[1]) - ndtr(ends[0])).min(axis=1)
    smallest = float(np.linalg.eigvalsh(sds_and_correlations(law.noise.covariance)[1])[0])
    if smallest <= 0:
        return np.asarray(side)
    widths = (upper - lower) / np.sqrt(2 * np.pi * smallest)
    return np.asarray(np.minimum(side, np.clip(widths, 0.0, 1.0).prod(axis=1)))


@cache
def quadrature() -> tuple[Floats, Floats]:
    """Return nodes and weights from 0 to 1, in panels that halve towards 1, where products of many chances stand."""
    places, weights = leggauss(NODES)
    edges = np.append(1.0 - 0.5 ** np.arange(PANELS), 1.0)
    starts, widths = edges[:-1, None], np.diff(edges)[:, None]
    return (starts + widths * (places + 1) / 2).ravel(), (widths * weights / 2).ravel()
