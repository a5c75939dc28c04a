"""`calibrate`: the weakest noise that meets a tolerance, confirmed on fresh terms.

min scale with E(figure) <= limit over possible noise (Moore 1996, section XI, conjectures 5 and 6 for the limits). The
scale found by `search` flatters, since it was chosen for coming out well: it is put to fresh draws, at level
alpha / (k (k + 1)) in attempt k, which sum to alpha (own derivation). Called by the release job and the command.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from typing import TYPE_CHECKING, Any

from ..attacks.targets import sample_size
from ..errors import BadPlan
from ..keys import Key
from ..masks import Chain
from ..notes import Note
from ..table import Table
from ..tolerances import MaxRate
from .bounded_noise import HeldBack, TradeOff, held_back_notes, trade_off_notes
from .bounds import Bounds, IntervalWidening
from .columns import ColumnScales, Pieces, spread_over_columns
from .losses import TOTAL_VARIANCE, loss_of
from .measures import measure_of
from .result import Calibration, level_of
from .scale import check_scale, largest_factor, scale_mask, writable
from .search import Scales, SearchResult, find_weakest
from .search_plan import REFUSE, Search, check_search
from .trial_store import KeptTrials
from .trials import (
    Allows,
    Bench,
    Progress,
    Trial,
    check_key,
    check_plans,
    check_table,
)
from .uniqueness import check_floor, fingerprint_floor, floor_notes, is_certain

if TYPE_CHECKING:
    from ..attacks.protocol import Attacks
    from ..masking import Mask
    from ..tolerances import Tolerance

RAISED = 0.05  # by which share the scale is raised where it is not confirmed; twice that the second time, and so on
MOST_ATTEMPTS = 12  # at confirming a scale
SEARCH = Search()
FIFTEEN_PERCENT = MaxRate(0.15)  # Moore's conjecture 5


@dataclass(frozen=True, slots=True)
class TrialDraws:
    """Where the draws of a search come from, and what is known of them.

    `progress` is told each trial. Trials that are `kept` from a run of the same plan, data and key are looked up in
    place of being drawn again. Scales whose law `allows` refuses are not tried.
    """

    key: Key = field(repr=False)
    progress: Progress | None = None
    kept: KeptTrials | None = field(default=None, repr=False)
    allows: Allows | None = None


def calibrate(
    mask: Mask,
    table: Table,
    attack: Attacks | None = None,
    tolerance: Tolerance = FIFTEEN_PERCENT,
    *,
    search: Search = SEARCH,
    key: Key | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Search the weakest scale of a mask at which the expected risk meets a tolerance.

    The risk is that of `attack` (one plan or several: the worst in each draw counts; by default the nearest-record
    intruder, plain and informed), over all targets or over the tenth of them that lies farthest out, on average over
    possible noise. The scale of `mask` is where the search starts. Each scale is judged on the same draws; the one
    found is put to fresh draws and raised by 5% (then 10% more, and so on) until the mean and its Monte Carlo error lie
    within the tolerance. `search` says on how many draws, over whom, with a scale for each column or one for all, and
    within which bounds on utility: where one scale for all breaks them, columns that the models use get less noise and
    the others more; where no noise meets both, the result is not met, and its `trade_off` says what is to be had.

    TrialDraws come from subkeys of the key that no release uses: release with `apply(found.mask, table, key=key)`.
    """
    return weakest_noise(mask, table, attack, tolerance, search, TrialDraws(check_key(key, seed), progress))


def weakest_noise(
    mask: Mask, table: Table, attack: Attacks | None, tolerance: Tolerance, search: Search, draws: TrialDraws
) -> Calibration:
    """Do what `calibrate` does, on draws of which some may be known."""
    terms = Terms.of(check_search(search))
    trace: list[Trial] = []
    bench = Bench(
        table=check_table(table, "calibrate"),
        plans=check_plans(attack),
        key=draws.key,
        measure=measure_of(tolerance),
        over=search.over,
        loss=loss_of(search.objective or TOTAL_VARIANCE) if search.per_column else None,
        exact=search.exact,
        progress=_trial_logger(trace, draws.progress),
        kept=draws.kept,
        allows=draws.allows,
    )
    share = _floor(bench, mask, tolerance, search.floor)
    within = Bounds.of(search.bounds, bench, mask)
    outcome = _search(bench, terms, mask, Pieces.of(mask, table) if search.per_column else None, within)
    confirmed = _confirm(bench, terms, outcome)
    return _calibration_result(bench, terms, mask, tolerance, share, trace, outcome, confirmed)


def _calibration_result(
    bench: Bench,
    terms: Terms,
    mask: Any,
    tolerance: Any,
    floor: float,
    trace: list[Trial],
    outcome: _Outcome,
    confirmed: _Confirmation,
) -> Calibration:
    """Put together what is told."""
    nearest = min(trace, key=lambda trial: float(trial.excess.mean()))
    first, held, trade_off = trace[0], outcome.held, None
    if held is not None and outcome.found.trial is None:
        trade_off = held.trade_off()
        nearest = trade_off.at_bounds or trade_off.at_tolerance
    notes = _notes(first, outcome, confirmed, trade_off)
    return Calibration(
        mask=confirmed.mask,
        given=mask,
        tolerance=tolerance,
        over=bench.over,
        measure=bench.measure,
        confirmation=confirmed.trial,
        searched=outcome.found.trial,
        closest=nearest if confirmed.mask is None else None,
        floor=floor,
        attempts=confirmed.attempts,
        level=terms.level,
        precision=terms.precision,
        is_monotone=outcome.found.is_monotone,
        trace=tuple(trace),
        columns=outcome.columns,
        widening=outcome.widening(confirmed.trial, trade_off),
        trade_off=trade_off,
        notes=(*floor_notes(tolerance, floor), *notes),
        sampled=_are_sampled(bench),
    )


def _are_sampled(bench: Bench) -> bool:
    """Whether some intruder is after fewer targets than there are, drawn at random."""
    plans = bench.plans.values() if isinstance(bench.plans, dict) else bench.plans
    sizes = [(plan, sample_size(plan.targets)) for plan in plans]
    return any(size is not None and size < len(plan.eligible_records(bench.table)) for plan, size in sizes)


def _floor(bench: Bench, mask: Any, tolerance: Any, floor: str) -> float:
    """Look at the plan and at what no noise of it protects, before any noise is drawn."""
    check_scale(mask)
    bench.resolved(writable(mask))  # what is wrong with the plan is said in its own words
    share = fingerprint_floor(bench, mask)
    if floor == REFUSE:
        check_floor(tolerance, share, certain=is_certain(mask, bench.table))
    return share


def _trial_logger(trace: list[Trial], progress: Progress | None) -> Progress:
    def told(trial: Trial) -> None:
        trace.append(trial)
        if progress is not None:
            progress(trial)

    return told


@dataclass(frozen=True)
class Terms:
    """How many draws a search and a confirmation take, the level that attempts share, the precision of the scale."""

    search: int
    confirmation: int
    level: float
    precision: float

    @classmethod
    def of(cls, search: Search) -> Terms:
        """Return the terms of a search."""
        return cls(search.draws(), search.confirmations, search.level, search.precision)

    def is_met(self, trial: Trial) -> bool:
        """Whether a scale would be confirmed at the first attempt if fresh draws came out as those of the search."""
        return trial.bound(level_of(1, self.level), self.confirmation) <= 0


@dataclass(frozen=True)
class _Outcome:
    """What the search found, and the plan at each factor for confirmation to raise.

    `held` is there where there are bounds and one scale for all meets the tolerance; `is_held` where that one breaks
    the bounds.
    """

    found: SearchResult
    scales: Scales
    mask_at: Callable[[float], Any]
    largest: float
    columns: ColumnScales | None = None
    held: HeldBack | None = None
    is_held: bool = False

    def widening(self, last: Trial | None, trade_off: TradeOff | None) -> tuple[IntervalWidening, ...]:
        """Return what the noise last tried does to each bound's model, or what the tolerance asks where none was."""
        if trade_off is not None:
            return trade_off.widening
        return () if self.held is None or last is None else self.held.bounds.widening(last.mask)

    def held_back_at(self, last: Trial | None) -> float | None:
        """Return the factor at which one scale for all breaks the bounds that the noise last tried keeps."""
        if self.held is None or last is None:
            return None
        if self.is_held:
            return self.held.common.factor
        return last.factor if self.columns is None and last.mask == self.held.raised_to(last.factor) else None


def _search(bench: Bench, terms: Terms, mask: Any, pieces: Pieces | None, bounds: Bounds) -> _Outcome:
    def mask_at(factor: float) -> Any:
        return writable(scale_mask(mask, factor, bench.table)) if pieces is None else pieces.at(factor)

    largest = largest_factor(mask, bench.table)
    scales = Scales(bench, mask_at, terms.search, terms.is_met, largest=largest, allows=bench.is_allowed)
    found = find_weakest(scales, terms.precision)
    common = _Outcome(found, scales, lambda factor: writable(scale_mask(mask, factor, bench.table)), largest)
    if bounds and found.trial is not None:
        held = HeldBack(scales, bounds, mask, found.trial)
        if not bounds.hold(found.trial.mask):
            within = held.weakest(terms.precision)
            spared = () if pieces is None else (Note("calibration.bounds_not_objective"),)
            notes = (*found.notes, *within.notes, *spared)
            is_monotone = found.is_monotone and within.is_monotone
            within = SearchResult(within.trial, is_monotone, tuple(dict.fromkeys(notes)))
            return replace(common, found=within, mask_at=held.at, largest=inf, held=held, is_held=True)
        common = replace(common, mask_at=_within(held, common.mask_at, held.at), held=held)
    if pieces is None or found.trial is None:
        return common
    return _spread(common, pieces, terms)


def _spread(common: _Outcome, pieces: Pieces, terms: Terms) -> _Outcome:
    """Give each column a scale of its own, from the common one on, while no bound breaks."""
    scales, found, held = common.scales, common.found, common.held
    assert found.trial is not None
    if held is not None:
        is_met, bounds = scales.is_met, held.bounds
        scales = replace(scales, is_met=lambda trial: is_met(trial) and bounds.hold(trial.mask))
    best, columns = spread_over_columns(scales, found.trial, pieces, terms.precision)
    if columns.gain <= 2 * terms.precision:
        kept = replace(found, notes=(*found.notes, Note("calibration.little_gain")))
        return replace(common, found=kept, columns=columns)
    mask_at = best.pieces.at if held is None else _within(held, best.pieces.at, held.at)
    found = replace(found, trial=best.trial)
    return replace(common, found=found, mask_at=mask_at, largest=inf, columns=columns)


def _within(
    held: HeldBack, mask_at: Callable[[float], Any], instead: Callable[[float], Any]
) -> Callable[[float], Any]:
    """Return the plan at a factor, or where that breaks a bound the one that is held back."""

    def within(factor: float) -> Any:
        mask = mask_at(factor)
        return mask if held.bounds.hold(mask) else instead(factor)

    return within


@dataclass(frozen=True)
class _Confirmation:
    mask: Any
    trial: Trial | None
    attempts: int
    notes: tuple[Note, ...] = ()


def _confirm(bench: Bench, terms: Terms, outcome: _Outcome) -> _Confirmation:
    """Put the scale to fresh draws, raising it where it fails."""
    if outcome.found.trial is None:
        return _Confirmation(None, None, 0, () if outcome.is_held else (_out_of_reach(outcome),))
    factor = outcome.found.trial.factor
    mask = outcome.mask_at(factor)
    for attempt in range(1, MOST_ATTEMPTS + 1):
        trial = bench.run(mask, factor, f"confirmation {attempt}", terms.confirmation)
        if trial.bound(level_of(attempt, terms.level)) <= 0:
            figures = {"times": attempt - 1, "share": RAISED}
            raised = () if attempt == 1 else (Note("calibration.raised_scale", figures),)
            return _Confirmation(mask, trial, attempt, raised)
        following = min(factor * (1 + RAISED * attempt), outcome.largest)
        try:
            raised_mask = outcome.mask_at(following)
            bench.resolved(raised_mask)
        except BadPlan:
            break
        if following == factor or raised_mask == mask:
            break
        mask, factor = raised_mask, following
    return _Confirmation(None, trial, attempt, (Note("calibration.no_confirmation"),))


def _out_of_reach(outcome: _Outcome) -> Note:
    """Say how far it was looked, and whether more noise or more draws would help."""
    trials = outcome.scales.trials
    factor = trials[-1].factor
    if any(trial.excess.mean() <= 0 for trial in trials):
        code = "calibration.too_few_draws"
    elif factor >= outcome.largest:
        code = "calibration.largest_scale"
    elif not outcome.scales.has_fallen():
        code = "calibration.no_effect"
    elif outcome.scales.still_falls():
        code = "calibration.falling_risk"
    else:
        code = "calibration.constant_risk"
    return Note(code, {"factor": factor})


def _notes(
    first: Trial, outcome: _Outcome, confirmed: _Confirmation, trade_off: TradeOff | None
) -> list[Note]:
    """Say who took no part, how the scale was found and confirmed, and what to think of it."""
    refused = first.refused.items()
    left_out = [Note("calibration.idle_intruder", {"name": name, "reason": why}) for name, why in refused]
    said = [*left_out, *outcome.found.notes, *confirmed.notes, *_remarks(confirmed, outcome)]
    if outcome.held is None:
        return said
    if trade_off is not None:
        return [*said, *trade_off_notes(outcome.held, trade_off)]
    raised_to = outcome.held_back_at(confirmed.trial)
    said += () if raised_to is None else held_back_notes(outcome.held, raised_to)
    return said if confirmed.mask is not None else [*said, Note("calibration.no_confirmation_in_bounds")]


def _remarks(confirmed: _Confirmation, outcome: _Outcome) -> list[Note]:
    """Say what a mean h hides, where there is no ratio, and where scales for each column did not keep their promise."""
    trial, columns, said = confirmed.trial, outcome.columns, list[Note]()
    if trial is not None and not (trial.numerators.any() or trial.denominators.any()):
        said.append(Note("calibration.no_claims"))
    if trial is not None and trial.at_zero is not None and trial.measure.at_least:
        said.append(Note("calibration.mean_h", {"at_zero": trial.at_zero}))
    if columns is None or trial is None or trial.loss is None:
        return said
    if columns.gain > 0 and trial.loss >= columns.before and isinstance(trial.mask, Chain):
        said.append(Note("calibration.no_gain_on_fresh_draws"))
    return said
