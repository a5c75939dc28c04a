"""Scores of a nested release given the earlier one: z2 = z1 + an independent increment, through limits and units.

With z1 in the cell (a1, b1) of the earlier law, whose noise is G1, and the increment G2,

    F(z2 | z1, x) = sum over i of w_i G2((edge - c_i) / k),    c_i = c + k G1^-1(G1(a1) + t_i (G1(b1) - G1(a1))),

over 32 Gauss-Legendre nodes t_i on (0, 1). z2 - z1 alone would have an sd 4.8% too large where the unit is 1.25 sds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...laws import Additive, Normal
from ...laws.chained import combined_of, stages_of
from ...laws.unknowns import of_columns
from ...masking import Masking
from ...masking.history import Pairing
from ...table import Floats
from ..evidence import Evidence
from .cells import Cells, Integers, examined, jitter
from .marginals import Marginal, NormalMarginal, bounded, normal_score

NODES = 32
HALVINGS = 60  # of the bracket of an inverse distribution function: to the last digit of a double


def scores_given_earlier(evidence: Evidence) -> dict[str, Floats]:
    """Return the scores of each column whose noise continues that of the release before this one."""
    earlier = next((one for one in evidence.earlier if _continues(evidence.masking, one)), None)
    if earlier is None:
        return {}
    found = dict[str, Floats]()
    before = Evidence(earlier, seed=evidence.seed)
    pairing = Pairing.of(earlier.truth, evidence.masking.truth)
    for law in evidence.masking.card.laws:
        old = next((one for one in earlier.card.laws if one.columns == law.columns), None)
        extra = None if old is None else _increment(old, law)
        if extra is None:
            continue
        for j, name in enumerate(law.columns):
            scores = _scores(evidence, before, pairing, name, of_columns(extra, [j]))
            if scores is not None:
                found[name] = scores
    return found


def _continues(masking: Masking, earlier: Masking) -> bool:
    same_key = masking.key is not None and masking.key == earlier.key
    ids = masking.truth.ids is not None and earlier.truth.ids is not None
    return same_key and ids and earlier.number == masking.number - 1 and earlier.swapping is None


def _increment(old: Any, law: Any) -> Any:
    """Return the last stage of a law whose stages before it are those of the earlier law."""
    stages = stages_of(law)
    if len(stages) < 2 or len(stages) != len(stages_of(old)) + 1:
        return None
    extra, combined = stages[-1][1], combined_of(law)
    is_amount = isinstance(extra, Additive) and isinstance(extra.noise, Normal) and not any(combined.spreads)
    return extra if is_amount else None


def _scores(
    evidence: Evidence, before: Evidence, pairing: Pairing, name: str, extra: Additive
) -> Floats | None:
    """Score z2 given z1 and x where the cell kept its noise."""
    sd = float(np.sqrt(extra.noise.covariance[0, 0]))
    old, new = examined(before, name).cells, examined(evidence, name).cells
    if old is None or new is None or sd == 0:
        return None
    place = np.full(len(before.masking.truth), -1)
    place[old.at] = np.arange(len(old.at))
    where = np.where(pairing.known, pairing.where, 0)[new.at]
    at_old = np.where(pairing.known[new.at], place[where], -1)
    kept = (at_old >= 0) & _same_noise(evidence.masking, before.masking, name, new.at, where)
    kept[kept] &= old.x[at_old[kept]] == new.x[kept]
    if not kept.any():
        return None
    first = _reordered(old, at_old[kept])
    values = _conditional(new.only(kept), first, sd, jitter(evidence, f"{name} given earlier"))
    out = np.full(len(evidence.masking.truth), np.nan)
    out[new.at[kept]] = values
    return out


def _same_noise(masking: Masking, earlier: Masking, name: str, at: Integers, where: Integers) -> Any:
    """Whether a cell's noise is drawn from the same tag in both releases."""
    nothing = np.zeros(2, np.uint64)
    now = masking.revisions[name][at] if name in masking.revisions else nothing
    then = earlier.revisions[name][where] if name in earlier.revisions else nothing
    return np.broadcast_to((now == then).all(axis=-1), at.shape).copy()


def _reordered(cells: Cells, places: Integers) -> Cells:
    arrays = {
        name: getattr(cells, name)[places]
        for name in ("at", "x", "z", "centre", "scale", "lower", "upper", "local_sd")
    }
    return Cells(cells.name, outlet=cells.outlet, marginal=cells.marginal, **arrays)


def _conditional(new: Cells, first: Cells, sd: float, uniform: Floats) -> Floats:
    """Average the increment's distribution function over where the earlier noise may have been."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low, high = first.tails(first.lower)
    low_end, high_end = first.tails(first.upper)
    increment = NormalMarginal(sd)
    sums = np.zeros((4, len(new.at)))
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        below, above = low + t * (low_end - low), high_end + (1 - t) * (high - high_end)
        noise = _inverse(first.marginal, below, above)
        for i, edge in enumerate((new.lower, new.upper)):
            tails = increment.tails((edge - new.centre) / new.scale - noise)
            sums[2 * i] += weight * tails[0]
            sums[2 * i + 1] += weight * tails[1]
    v = uniform[new.at]
    return bounded(normal_score(sums[0] + v * (sums[2] - sums[0]), sums[3] + (1 - v) * (sums[1] - sums[3])))


def _inverse(marginal: Marginal, below: Floats, above: Floats) -> Floats:
    """Return where a law has so much below and above."""
    score = bounded(normal_score(below, above))
    if isinstance(marginal, NormalMarginal):
        return marginal.sd * score
    low, high = np.full(len(below), -40.0 * marginal.sd), np.full(len(below), 40.0 * marginal.sd)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_below = bounded(normal_score(*marginal.tails(middle))) < score
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return np.asarray((low + high) / 2)
