"""What a mask does at the edges of a column: spikes at a limit, zeros that stay zero, signs that stay.

Tests of residuals do not see these: a pile of a few records moves no sum of scores, and zeros and signs that a law
keeps by its nature (noise in proportion to the value) are sound by that law. A pile counts beyond BEYOND_CHANCE
standard errors of a difference of two shares, one of them of values drawn again by the card's law (own derivation).
Called by `file_checks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from ..keys import Key, Stream, ids_from_numbers
from ..laws import Additive, SkewedBias
from ..laws.chain import combined_of
from ..table import Floats
from .evidence import Evidence
from .protocol import CheckFigure

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]

LEAST = 20  # zeros, or values of the rarer sign, from which on a share says something
LEAST_SPIKE = 5  # records on one value
SEEN = 0.001  # of the values: a smaller pile, which the card explains, is not worth a word
BEYOND_CHANCE = 4.0  # standard errors
OUTER = 0.1  # of the values on either side, among which a pile is looked for
NO_ACCIDENT = 1e-6  # probability that one of thousands of values is as frequent by chance
DRAWN = 20_000  # values that are drawn again, at least
SPARED = 0.05  # of the noise of a typical value: with less than that a zero has next to none
REDRAWN = Key.from_seed(72_057)  # of noise that the card's law would draw, to compare with: any would do


def redrawn(evidence: Evidence, name: str) -> Floats | None:
    """Return values of a column as the card's law would draw them again, for some records (`_sampled_places`).

    Nothing where no law speaks of it. This is what a check may expect: only what goes beyond it is news.
    """
    kept: dict[str, Any] = evidence.once("redrawn", dict)
    if name not in kept:
        card = evidence.masking.card
        law, parts = card.law_of(name), dict(card.recomputed).get(name)
        if law is not None:
            kept |= _redraw_columns(evidence, law)
        elif parts is not None:
            kept[name] = _redrawn_sum(evidence, parts)
        else:
            kept[name] = None
    found: Floats | None = kept[name]
    return found


def _redraw_columns(evidence: Evidence, law: Any) -> dict[str, Floats]:
    rows = evidence.rows[_sampled_places(evidence)]
    truth = evidence.masking.truth
    x = np.asfortranarray(np.column_stack([truth.floats(name)[rows] for name in law.columns]))
    z = law.draw(x, Stream(REDRAWN, "audit", "redrawn", ids_from_numbers(len(rows))))
    combined = combined_of(law)
    for j in range(len(law.columns) if isinstance(combined, Additive | SkewedBias) else 0):
        bottom, top = combined.outlets[j].codes
        for code, side in ((bottom, -1), (top, 1)):
            if code is not None:
                z[:, j] = np.where(side * (z[:, j] - code) >= 0, np.nan, z[:, j])
    return {name: z[:, j] for j, name in enumerate(law.columns)}


def _redrawn_sum(evidence: Evidence, parts: tuple[tuple[str, float], ...]) -> Floats:
    total: Any = 0.0
    for name, coefficient in parts:
        part = redrawn(evidence, name)
        total = total + coefficient * (
            evidence.true(name)[_sampled_places(evidence)] if part is None else part
        )
    return np.asarray(total)


def _sampled_places(evidence: Evidence) -> Integers:
    """Return places among the released records, those of small files several times: chance then plays less part."""
    places = evidence.sample(purpose=(1,))
    return np.tile(places, max(1, DRAWN // max(len(places), 1)))


def spikes(evidence: Evidence) -> CheckFigure:
    """Measure the mass on one boundary value beyond what the truth has there and the card's law puts there."""
    excess, raw = dict[str, float](), dict[str, float]()
    for name in evidence.numbers:
        excess[name], raw[name] = _spike(evidence, name)
    if not excess:
        return CheckFigure(float("nan"), "no masked column is a number, so that none has an edge")
    worst = max(excess, key=lambda name: (excess[name], raw[name]))
    if excess[worst] > 0:
        said = (
            f"{excess[worst]:.2%} of the values of {worst} lie on one value at its edge where neither the truth nor "
            "the card's law has them: who lies there was cut off, and is known to lie beyond"
        )
    elif raw[worst] > SEEN:
        said = (
            f"a limit on the card gathers {raw[worst]:.2%} of the values of {worst} at its edge, as its law says: "
            "whoever reads the card knows that they lie at it or beyond"
        )
    else:
        said = "no masked column has more values on its edge than the truth or the value beside it"
    at_limits = {f"{name}, by the card's limit": share for name, share in raw.items() if share > SEEN}
    return CheckFigure(excess[worst], said, worst if excess[worst] > 0 else "", excess | at_limits)


def _spike(evidence: Evidence, name: str) -> tuple[float, float]:
    """Return the largest mass on an end of a column beyond what is expected there, and beyond the truth alone."""
    z, x, again = evidence.released(name), evidence.true(name), redrawn(evidence, name)
    z, x = z[~np.isnan(z)], x[~np.isnan(x)]
    again = None if again is None or np.isnan(again).all() else again[~np.isnan(again)]
    if len(z) < LEAST or not len(x):
        return 0.0, 0.0
    worst, largest = 0.0, 0.0
    for end, inner in _ends(z):
        here = float((z == end).mean())
        own, neighbour = float((x == end).mean()), float((z == inner).mean())
        law = 0.0 if again is None else float((again == end).mean())
        largest = max(largest, here - max(own, neighbour))
        worst = max(
            worst, _excess(here, max(own, neighbour, law), len(z), len(x if again is None else again))
        )
    return max(worst, *(_pile(z, x, again, side) for side in (-1, 1))), max(largest, 0.0)


def _excess(here: float, expected: float, count: int, other: int) -> float:
    """Return a share beyond the expected one, 0 where chance explains it or few records lie there."""
    sure = here - expected > BEYOND_CHANCE * _chance(expected, count, other)
    return here - expected if sure and here * count >= LEAST_SPIKE else 0.0


def _pile(z: Floats, x: Floats, again: Floats | None, side: int) -> float:
    """Return the mass on one value of the outer tenth beyond the truth, the law and every other value out there.

    A clamp that a few records escaped leaves its pile beside the end. Of many values some are frequent by chance, and
    so the pile must be one that no chance gives.
    """
    from scipy.special import pdtrc

    values, counts = np.unique(z, return_counts=True)
    shares = counts / len(z)
    by_truth = _shares_at(values, x)
    by_law = np.zeros(len(values)) if again is None else _shares_at(values, again)
    beyond = shares - np.maximum(by_truth, by_law)
    edge, centre = np.quantile(z, [0.5 + side * (0.5 - OUTER), 0.5])
    outer = np.flatnonzero((side * (values - edge) >= 0) & (side * (values - centre) > 0))
    if not len(outer):
        return 0.0
    order = outer[np.argsort(-beyond[outer], kind="stable")]
    top = int(order[0])
    beside = [i for i in (top - 1, top + 1, *order[1:2].tolist()) if 0 <= i < len(values)]
    expected = float(max(by_truth[top], by_law[top], *shares[beside])) if beside else 1.0
    if pdtrc(counts[top] - 1, expected * len(z)) > NO_ACCIDENT:
        return 0.0
    return _excess(float(shares[top]), expected, len(z), len(x if again is None else again))


def _shares_at(values: Floats, others: Floats) -> Floats:
    """Return the share that each of some sorted values has among others."""
    there, counts = np.unique(others, return_counts=True)
    places = np.minimum(np.searchsorted(there, values), len(there) - 1)
    return np.where(there[places] == values, counts[places] / len(others), 0.0)


def _chance(share: float, count: int, other: int) -> float:
    """Return the standard error of the difference of two shares that are the same, not quite 0 where none is seen."""
    return float(np.sqrt((share * (1 - share) + 1 / max(count, 1)) * (1 / max(count, 1) + 1 / max(other, 1))))


def _ends(values: Floats) -> list[tuple[float, float]]:
    """Return the smallest and the largest value, each with the one next to it."""
    low, high = float(values.min()), float(values.max())
    above, below = values[values > low], values[values < high]
    if not len(above):
        return []
    return [(low, float(above.min())), (high, float(below.max()))]


def zeros_kept(evidence: Evidence) -> CheckFigure:
    """Measure how many zeros stay zero, and can be told by it, beyond what noise like the card's would leave."""
    shares = _kept_shares(evidence, _zero, _zero)
    if not shares:
        return CheckFigure(
            float("nan"), f"no masked column has {LEAST} zeros or more, so that none can be recognised"
        )
    worst = max(shares, key=shares.__getitem__)
    said = (
        f"{shares[worst]:.0%} of the zeros of {worst} stay zero and can be told by it, beyond what noise of a size of "
        "its own would leave: whoever has none of it is known"
        if shares[worst] > 0
        else f"in {len(shares)} masked column{'s' if len(shares) > 1 else ''} with zeros no more of them stay zero "
        "than the noise leaves by chance"
    )
    return CheckFigure(shares[worst], said, worst if shares[worst] > 0 else "", shares)


def signs_kept(evidence: Evidence) -> CheckFigure:
    """Measure how many values of the rarer sign keep it, beyond what noise like the card's would leave."""
    shares = _kept_shares(evidence, _rarer_sign, None)
    if not shares:
        return CheckFigure(float("nan"), f"no masked column has {LEAST} values or more of either sign")
    worst = max(shares, key=shares.__getitem__)
    said = (
        f"of the rarer sign of {worst} {shares[worst]:.0%} more values keep it than noise of a size of its own would "
        "leave: who made a loss, or a gain, is known"
        if shares[worst] > 0
        else f"in {len(shares)} masked column{'s' if len(shares) > 1 else ''} with both signs no more of them stay "
        "than the noise leaves by chance"
    )
    return CheckFigure(shares[worst], said, worst if shares[worst] > 0 else "", shares)


Marking = Callable[[Floats], Bools]


def _zero(values: Floats) -> Bools:
    return np.asarray(values == 0)


def _rarer_sign(values: Floats) -> Bools:
    below = values < 0
    return np.asarray(below if below.sum() <= (values > 0).sum() else values > 0)


def _kept_shares(evidence: Evidence, marked: Marking, seen: Marking | None) -> dict[str, float]:
    """Return for each column what of the marked values is recognised in the release, beyond what is expected."""
    shares = {}
    for name in evidence.numbers:
        both = evidence.open_both(name)
        x, z = evidence.true(name)[both], evidence.released(name)[both]
        mine = marked(x)
        if mine.sum() < LEAST or (~mine & (x != 0)).sum() < LEAST:
            continue
        shows = seen or (_below if bool((x[mine] < 0).any()) else _above)
        found, expected = (
            recall_times_precision(mine, shows(z)),
            _expected_recall_precision(evidence, name, both, mine, shows),
        )
        error = _chance(expected, int(mine.sum()), min(int(mine.sum()), evidence.largest))
        shares[name] = found - expected if found - expected > BEYOND_CHANCE * error else 0.0
    return shares


def _below(values: Floats) -> Bools:
    return np.asarray(values < 0)


def _above(values: Floats) -> Bools:
    return np.asarray(values > 0)


def recall_times_precision(mine: Bools, shown: Bools) -> float:
    """Return the share of marked records that still show it, times that of those who show it and are marked."""
    both = float((mine & shown).sum())
    return both * both / (float(mine.sum()) * float(shown.sum())) if both else 0.0


def _expected_recall_precision(
    evidence: Evidence, name: str, both: Bools, mine: Bools, shows: Marking
) -> float:
    """Return what the law would leave; where it spares zeros, or none is known, noise of other values."""
    again = redrawn(evidence, name)
    if again is not None and not _spares_zero(evidence, name):
        places = _sampled_places(evidence)
        kept = both[places] & ~np.isnan(again)
        ours = np.zeros(len(both), bool)
        ours[both] = mine
        return recall_times_precision(ours[places][kept], shows(again[kept]))
    x, z = evidence.true(name)[both], evidence.released(name)[both]
    rng = np.random.default_rng([evidence.seed, 2])
    return recall_times_precision(mine, shows(x + rng.choice((z - x)[~mine], len(x))))


def _spares_zero(evidence: Evidence, name: str) -> bool:
    """Whether the card's law gives zeros next to no noise, so that they or all signs stay."""
    law = combined_of(evidence.masking.card.law_of(name))
    if not isinstance(law, Additive | SkewedBias):
        return False
    place, values = law.columns.index(name), evidence.true(name)
    others = np.abs(values[~np.isnan(values) & (values != 0)])
    if not len(others):
        return False
    typical = float(np.median(others))
    if isinstance(law, SkewedBias):
        return law.sds[place] < SPARED * law.bias_sd * typical
    spread = law.spreads[place] if law.spreads else None
    if spread is None:
        return False
    at_zero, beside = spread.factor(np.array([0.0, typical]))
    return bool(at_zero < SPARED * beside)
