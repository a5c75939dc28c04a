"""Noise held back where bounds ask for it: less in the columns that their models use, more in the others.

Masks come apart into pieces with a scale each. The scales of those whose columns a bound's model uses end where the
bounds do (no attack is needed to know: widening is forecast); the others go on growing. So there is one curve again,
along which the risk falls and no bound breaks, and the weakest noise on it is searched as for one scale.

How pieces that models use share what the bounds allow is chosen by what the release tells of a record were data and
noise normal, half log det(1 + data / noise) (the Gaussian channel: Cover and Thomas 2006, chapter 9), which falls as
the informed intruder's risk does. It only chooses where to look: the risk is that of the attacks. Own derivation.
Chosen by `calibrate(bounds=...)` where one scale for all breaks a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, sqrt
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..errors import BadPlan
from ..laws import Additive
from ..masks import CorrelatedNoise
from ..notes import Note
from ..table import Floats, Table
from .bounds import Bounds, IntervalWidening
from .columns import Pieces
from .scale import groups_apart, has_scale, largest_factor, scale_mask, writable
from .search import Scales, SearchResult, bisect, bracket, find_weakest
from .trials import Trial

ROUND = "bounds"
MOST_TIMES = 8.0  # how far a column's scale grows at most beyond one for all
MOVES = (2.0, 1.4)  # by how much the share of one piece is moved: coarse first
PASSES = 2  # over all shares with each factor
LEAST_GAIN = 0.002  # nats
FINE, COARSE = 0.005, 0.03  # precision of a scale at which bounds end: for good, and to compare shares
MOST_TRIED = 24  # scales of a search for the end of the bounds
WIDER_PRECISION = 0.05  # of the scale that the trade-off is told at


@dataclass(frozen=True)
class TradeOff:
    """What is to be had where no noise meets both: the risk that the bounds leave, or the widening that the risk asks.

    `at_tolerance` is the trial that meets the risk tolerance with the smallest widening found, `widening` that;
    `at_bounds` the least risky trial under which all bounds hold (nothing where the plan allows no noise that small).
    Both are of the draws of the search: confirm what is chosen.
    """

    at_tolerance: Trial
    widening: tuple[IntervalWidening, ...]
    at_bounds: Trial | None

    def to_dict(self) -> dict[str, Any]:
        """Return figures only, and the two plans."""
        return {
            "at_tolerance": self.at_tolerance.to_dict() | {"mask": self.at_tolerance.mask.to_dict()},
            "widening": [one.to_dict() for one in self.widening],
            "at_bounds": None
            if self.at_bounds is None
            else self.at_bounds.to_dict() | {"mask": self.at_bounds.mask.to_dict()},
        }


@dataclass(frozen=True)
class HeldBack:
    """A mask whose scales end where bounds do, from one scale for all that meets the tolerance on."""

    scales: Scales
    bounds: Bounds
    mask: Any
    common: Trial

    @cached_property
    def whole(self) -> Pieces:
        """The mask in pieces with a scale each; none grows beyond some times the common scale."""
        table = self.bounds.bench.table
        pieces = groups_apart(self.mask, table, lambda name: self.bounds.users((name,)))
        most = MOST_TIMES * self.common.factor
        limits = (min(largest_factor(one, table), most) if has_scale(one) else 1.0 for one in pieces)
        return Pieces(pieces, (1.0,) * len(pieces), tuple(limits))

    @cached_property
    def used(self) -> list[int]:
        """The places of the pieces whose columns a bound's model uses."""
        return [i for i in self.whole.free if self.bounds.users(self.whole.masks[i].columns)]

    @property
    def others(self) -> list[int]:
        """The places of the pieces that no bound speaks of."""
        return [i for i in self.whole.free if i not in self.used]

    @cached_property
    def shaped(self) -> tuple[Pieces, float] | None:
        """The pieces with their shares, and the factor at which the bounds end; nothing where no noise is so small."""
        end = self._end(self.whole, self.common.factor, COARSE)
        if end is None:
            return None
        pieces = self._shared(end) if len(self.used) > 1 and self.bounds.is_closed_form else self.whole
        fine = self._end(pieces, end, FINE)
        return None if fine is None else (pieces, fine)

    @cached_property
    def capped(self) -> Pieces | None:
        """The pieces, of which those that models use reach what bounds allow at the common scale, and stay there."""
        if self.shaped is None:
            return None
        pieces, end = self.shaped
        shape, limits = list(pieces.shape), list(pieces.limits)
        for i in self.used:
            limits[i] = min(limits[i], shape[i] * end)
            shape[i] = limits[i] / self.common.factor
        return replace(pieces, shape=tuple(shape), limits=tuple(limits))

    @property
    def largest(self) -> float:
        """The factor beyond which nothing grows."""
        assert self.capped is not None
        return max(self.capped.limits[i] / self.capped.shape[i] for i in self.capped.free)

    def at(self, factor: float) -> Any:
        """Return the plan at a factor, under which all bounds hold; a plan that allows none is refused."""
        if self.capped is None:
            raise BadPlan("no noise that the plan allows is small enough for the bounds")
        return self.capped.at(factor)

    def raised_to(self, factor: float) -> Any:
        """Return the plan that is held back at a factor where one scale for all breaks the bounds, else nothing."""
        return (
            None
            if self.bounds.hold(writable(scale_mask(self.mask, factor, self.bounds.bench.table)))
            else self.at(factor)
        )

    def weakest(self, precision: float) -> SearchResult:
        """Search the weakest noise that meets the tolerance and all bounds."""
        if self.capped is None:
            return SearchResult(None, True)
        return find_weakest(self._along(self.at, self.largest), precision, self.common.factor)

    def trade_off(self) -> TradeOff:
        """Return the best on both sides: where the tolerance is met, and where the bounds hold."""
        at_bounds = None
        if self.capped is not None:
            along = self._along(self.at, self.largest)
            at_bounds = along.at(self.largest)
        met = [trial for trial in (self.common, self._opened()) if trial is not None]
        best = min(met, key=lambda trial: self.bounds.share(trial.mask))
        return TradeOff(best, self.bounds.widening(best.mask), at_bounds)

    def _opened(self) -> Trial | None:
        """Return the least noise of the used pieces that meets the tolerance while the others have the most."""
        if self.shaped is None or len(self.whole.free) < 2:
            return None  # one piece: the curve of one scale for all
        pieces, end = self.shaped
        most = max(pieces.limits[i] / pieces.shape[i] for i in self.used)
        shape = tuple(inf if i in self.others else share for i, share in enumerate(pieces.shape))
        along = self._along(replace(pieces, shape=shape).at, most)
        fails, meets = bracket(along, end)
        if meets is None or fails is None:
            return None if meets is None else along.at(meets)
        return along.at(bisect(along, fails, meets, WIDER_PRECISION))

    def _along(self, mask_at: Callable[[float], Any], largest: float) -> Scales:
        return replace(self.scales, mask_at=mask_at, round=ROUND, largest=largest, tried={})

    def _shared(self, end: float) -> Pieces:
        """Move the shares of single pieces while the release tells less of a record where the bounds end."""
        best, table = self.whole, self.bounds.bench.table
        told = _information(self._card(best.at(end)), table)
        ways = [way for by in MOVES for _ in range(PASSES) for way in (by, 1 / by)]
        moves = [(place, way) for way in ways for place in self.used]
        for place, way in moves if told is not None else ():
            moved = best.moved(place, way)
            following = self._end(moved, end, COARSE)
            less = None if following is None else _information(self._card(moved.at(following)), table)
            if following is not None and less is not None and told is not None and less < told - LEAST_GAIN:
                best, told, end = moved, less, following
        return best

    def _card(self, mask: Any) -> NoiseCard:
        return self.bounds.bench.resolved(mask).resolved

    def _end(self, pieces: Pieces, start: float, precision: float) -> float | None:
        """Return the largest factor, nearly, at which all bounds hold."""
        highest = max((pieces.limits[i] / pieces.shape[i] for i in self.used), default=inf)

        def share_at(factor: float) -> float:
            try:
                return self.bounds.share(pieces.at(factor))
            except BadPlan:  # more than the plan allows, or lost in a unit
                return inf

        return largest_within(share_at, start, highest, precision)


def held_back_notes(held: HeldBack, factor: float) -> tuple[Note, ...]:
    """Say what one scale for all would have cost, and which columns were held back for that."""
    worst = _worst(held.bounds.widening(writable(scale_mask(held.mask, factor, held.bounds.bench.table))))
    limits = held.whole.limits if held.capped is None else held.capped.limits
    less, more = _names(held, [i for i in held.used if limits[i] < factor]), _names(held, held.others)
    figures = {"factor": factor, **_widening_figures(worst), "less": less, "more": more}
    return (Note("calibration.bounded_noise", figures), *_apart_notes(held))


def trade_off_notes(held: HeldBack, found: TradeOff) -> tuple[Note, ...]:
    """Say that no noise meets both, and what is to be had on either side."""
    worst, at_bounds = _worst(found.widening), found.at_bounds
    figures = {
        **_widening_figures(worst),
        "at_most": worst.at_most,
        "at_bounds": None if at_bounds is None else at_bounds.estimate_figures,
        "times": MOST_TIMES,
        "others": _names(held, held.others),
    }
    both = Note("calibration.trade_off", figures)
    return (both, *_apart_notes(held), Note("calibration.trade_off_advice"))


def _widening_figures(worst: IntervalWidening) -> dict[str, str | float | None]:
    return {"formula": worst.formula, "coefficient": worst.coefficient, "wider": worst.finite}


def _worst(widening: tuple[IntervalWidening, ...]) -> IntervalWidening:
    return max(widening, key=lambda one: one.share)


def _names(held: HeldBack, places: list[int]) -> tuple[str, ...]:
    return tuple(name for place in places for name in held.whole.masks[place].columns)


def _apart_notes(held: HeldBack) -> tuple[Note, ...]:
    """Say where correlated noise came apart."""
    groups = [one for one in held.whole.masks if isinstance(one, CorrelatedNoise)]
    return (Note("calibration.independent_groups"),) if len(groups) > 1 else ()


def largest_within(
    share_at: Callable[[float], float], start: float, highest: float, precision: float
) -> float | None:
    """Return the largest factor up to `highest`, nearly, at which a share that grows about as its square is at most 1.

    Nothing where none is found.
    """
    holds, breaks, factor = 0.0, inf, min(start, highest)
    for number in range(MOST_TRIED):
        share = share_at(factor)
        if share <= 1 and factor >= highest:
            return highest
        holds, breaks = (factor, breaks) if share <= 1 else (holds, factor)
        if breaks <= holds * (1 + precision):
            break
        factor = min(_next_factor(factor, share, (holds, breaks), precision, halve=number % 3 == 2), highest)
    return holds or None


def _next_factor(
    factor: float, share: float, ends: tuple[float, float], precision: float, *, halve: bool
) -> float:
    """Aim a little beyond where the share is 1 by its square, within what is known; else halve what is left."""
    holds, breaks = ends
    beyond = (1 + 0.45 * precision) if share <= 1 else 1 / (1 + 0.45 * precision)
    reach = MOST_TIMES if not holds or breaks == inf else inf
    aimed = float(np.clip(beyond / sqrt(max(share, 1e-12)), 1 / reach, reach)) * factor
    if holds < aimed < breaks and not (halve and holds and breaks < inf):
        return aimed
    return sqrt(holds * breaks) if holds and breaks < inf else aimed


def _information(card: NoiseCard, table: Table) -> float | None:
    """Return what a release tells of a record, in nats, were data and noise normal; nothing for other laws."""
    laws = [law for law in card.laws if isinstance(law, Additive)]
    if not laws or len(laws) < len(card.laws) or any(law.spreads for law in laws):
        return None
    names = [name for law in laws for name in law.columns]
    if any(table.schema[name].kind not in ("integer", "continuous") for name in names):
        return None
    noise, place = np.zeros((len(names), len(names))), 0
    for law in laws:
        here = slice(place, place := place + len(law.columns))
        noise[here, here] = law.noise.covariance
    data, sds = _correlations(table, names)
    noise = noise / np.outer(sds, sds) + 1e-9 * np.eye(len(names))
    return float(np.linalg.slogdet(data + noise)[1] - np.linalg.slogdet(noise)[1]) / 2


def _correlations(table: Table, names: list[str]) -> tuple[Floats, Floats]:
    """Return correlations and sds with what is missing at its mean: near enough to choose where to look."""
    values = np.column_stack([table.floats(name) for name in names])
    centred = np.nan_to_num(values - np.nanmean(values, axis=0))
    sds = np.where((sd := centred.std(axis=0)) > 0, sd, 1.0)
    return np.asarray((centred / sds).T @ (centred / sds) / len(values)), sds
