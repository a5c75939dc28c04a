"""What would make a refused plan pass: changes that can be made on this file, each rehearsed on other noise.

Every change is screened first: the weakest noise is searched at which the quick intruders, and the checks of the audit
that were failed, let two draws pass. Where all that would need more noise than there is signal, changes that leave out
more columns are screened too. Those that a screen lets pass are rehearsed (see `rehearsal`), the ones that lose least
first (see `information_loss`), and made a little louder where they fail. All draws together are as many as the plan's
budget says (`Budget.rehearsals`), counted and by no clock. Nothing here looks at the noise of the release.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..attacks.uniqueness import HIDDEN, remedy
from ..attacks.unmasked_values import PATTERN
from ..calibration.measures import measure_of
from ..errors import MaskwellError, MaskwellWarning
from .candidates import Candidate, Trouble, bases, candidates, leaner, masks_of, without
from .high_floor import lowers_the_count
from .information_loss import change_losses, drowned_words, loss, noise_dominated_columns, noise_ratios
from .meet_tolerance import MaskingSetting, ToleranceResult
from .noise_screen import LARGEST_FACTOR, Purse, ScreenedChange, screen
from .noise_search import kept_trials
from .outcome import Advice, Outcome
from .progress import Stages, StageStep
from .reassembly import reassemblies, telling_columns
from .rehearsal import (
    DRAWS,
    ENOUGH,
    Draw,
    Rehearsal,
    can_be_nested,
    first_draw,
    left_out,
    on_part,
    rehearse_plan,
    situation_of,
)
from .release_key import keep_key

if TYPE_CHECKING:
    from ..attacks import Risk
    from ..checks.findings import Finding
    from .verdict import ReleaseVerdict

INFORMED, OUTER = "informed links", "outer links"  # checks of the audit
PATTERN_ALONE = ("fingerprint alone",)
LEAST_FACTOR = 0.25  # of the scale at which a search for the noise was to start
FEWER_START = 0.5  # of the scale that was found, for changes that leave columns out: they may need less noise
MOST_SCREENED = 12  # draws of one change's screens that are told: seven scales, and two of them twice or more
MOST_ROUNDS = 4  # in which one change is made louder after a rehearsal that failed
MOST_ADVICE = 2  # changes that pass, after which no other is tried
MOST_COLUMNS = 4
# What noise grows by: nearly enough, far too little, refused by the audit
NEAR, FAR, AUDIT = 1.12, 1.35, 1.25
MOSTLY_LOST = 0.9  # of a category by changes at random: it then tells next to nothing
SPARE = 1.06  # beyond the weakest noise that two draws of a screen let pass: other draws scatter about it
MORE_NOISE_ALONE, NOISE = "more noise alone", "noise"  # in words, and in figures
AS_IT_IS = "the plan as it is"
STOPPED = f"stopped before its {DRAWS} draws were made"
CLOSE = 0.1  # of the limit: by so much more a change "comes close"


def plan_advice(
    case: MaskingSetting, found: ToleranceResult, verdict: ReleaseVerdict, floor: Risk
) -> tuple[Advice, ...]:
    """Return changes to the plan, with what each came to on other noise."""
    groups = tuple(one.column for one in reassemblies(found.masking) if one.leaves and not one.is_judged)
    first, instead = bases(Candidate((), masks_of(case, found)), groups, verdict.audit)
    case = on_part(replace(_with_kept(case), aim=verdict.aim))
    with case.stages.stage("advise"), warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        told = telling_columns(found.masking)
        trouble = Trouble(found.after, verdict.audit, floor, verdict.companions, told)
        advice = _hopeless(case, floor)
        least = NEAR if not first.said else 1.0  # the same plan draws the same noise again
        tried = every_tried(case, candidates(case, first, trouble, instead), trouble.failed, least, told)
        advice += [*tried, *fingerprints(case, found, floor)]
        leaks = [
            one
            for one in verdict.audit.failures
            if one.check != INFORMED or not _is_refuted(case, found, tried)
        ]
        advice += [_leak_remedy(case, found, one) for one in leaks]
    return tuple(sorted(advice, key=lambda one: one.passes is not True))


def advised_at_once(case: MaskingSetting, refused: Outcome) -> tuple[Advice, ...]:
    """Return what was said of a plan that is refused before any noise is drawn, after what such changes came to."""
    columns = tuple(
        dict.fromkeys(name for one in refused.advice for name in one.drops if name in case.table.schema)
    )
    if not columns:
        return refused.advice
    case = on_part(_with_kept(case))
    with case.stages.stage("advise"), warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        first = without(Candidate((), case.plan.masks), columns)
        if case.budget is not None and case.budget.rehearsals < DRAWS:
            return (_not_tried(case, first), *refused.advice)
        least = 1.0 if case.plan.calibrate is None else LEAST_FACTOR
        try:
            own = situation_of(case, first.plan(case.plan), first.table(case.table))
            risks, audit = first_draw(own)
        except MaskwellError:
            return refused.advice
        first, instead = bases(Candidate((), case.plan.masks), columns, audit)
        trouble = Trouble(risks, audit, None)
        tried = every_tried(case, candidates(own, first, trouble, instead), trouble.failed, least)
    return (*sorted(tried, key=lambda one: one.passes is not True), *refused.advice)


def _with_kept(case: MaskingSetting) -> MaskingSetting:
    """Have the draws of rehearsals kept, and the key that they follow from where it is the run's own."""
    if case.keeps_key and case.key is not None:
        keep_key(case.plan.output.private, case.key)
    return replace(case, kept=kept_trials(case))


def every_tried(
    case: MaskingSetting,
    options: list[Candidate],
    failed: Collection[str],
    least: float,
    told: Sequence[str] = (),
) -> list[Advice]:
    """Screen all changes, then rehearse those that may pass, the most promising first, as long as the budget lasts.

    `told` are columns that put groups together: changes that leave out more leave these out too.
    """
    draws = DRAWS if case.budget is None else case.budget.rehearsals
    if draws < DRAWS:
        return [_not_tried(case, one) for one in options]
    purse, suspects = Purse.of(draws), set(failed)
    waiting: list[ScreenedChange] = []  # looked at, and not yet rehearsed
    try:
        _screen_all(case, options, suspects, least, purse, waiting)
        if not any(_is_worthwhile(case, one) for one in waiting) and options:
            _screen_all(case, leaner(case, options[0], told), suspects, least, purse, waiting)
        waiting.sort(key=lambda one: _merit(case, one))
        return _all_tried(case, waiting, suspects, purse)
    except KeyboardInterrupt:
        for one in waiting:
            if one.factor is not None:
                case.stages.tell_tried(_looked_at(case, one))
        raise


def _all_tried(
    case: MaskingSetting, waiting: list[ScreenedChange], suspects: set[str], purse: Purse
) -> list[Advice]:
    """Rehearse changes in order until enough of them pass; each is told as soon as it is known."""
    advice, count = list[Advice](), len(waiting)
    for number in range(1, count + 1):
        one = waiting[0]
        most = MOST_ADVICE if one.candidate.swap is None and purse.has_another else 1
        if sum(said.passed >= ENOUGH for said in advice) >= most:
            break
        waiting.pop(0)
        place = f"advise, candidate {number} of {count}, draw"
        found = rehearse_change(case, one, suspects, purse, place, _most(one.candidate, advice))
        for said in found:
            case.stages.tell_tried(said)
        advice += found
    return advice


def _screen_all(
    case: MaskingSetting,
    options: list[Candidate],
    suspects: set[str],
    least: float,
    purse: Purse,
    screened: list[ScreenedChange],
) -> None:
    """Add the first looks at some changes."""
    each = MOST_SCREENED  # draws of one change that are told one by one
    with case.stages.stage(
        f"advise, first looks at {len(options)} change{'s' * (len(options) != 1)}", each * len(options)
    ) as step:
        for number, candidate in enumerate(options):
            tell = partial(_tell_draw, step, number * each)
            screened.append(screen(case, candidate, suspects, _start(case, candidate, least), purse, tell))
            step((number + 1) * each)


def _tell_draw(step: Callable[[int], None], before: int, draws: int) -> None:
    """Tell how many draws of all screens are done, as far as their number was foreseen."""
    step(before + min(draws, MOST_SCREENED - 1))


def _ratios(case: MaskingSetting, one: ScreenedChange) -> dict[str, float]:
    """Return the noise of a change in sds of its columns, at the scale that its screens let pass."""
    own = one.candidate.at(one.factor or LARGEST_FACTOR, case.table)
    return noise_ratios(own.masks, own.table(case.table))


def _change_losses(case: MaskingSetting, one: ScreenedChange) -> dict[str, float]:
    """Return what changes at random lose of categories, at the scale that its screens let pass."""
    own = one.candidate.at(one.factor or LARGEST_FACTOR, case.table)
    return change_losses(own.masks, own.table(case.table))


def _is_worthwhile(case: MaskingSetting, one: ScreenedChange) -> bool:
    """Whether a change may pass, swaps apart, with values that are more signal than noise."""
    if one.factor is None or one.candidate.swap is not None:
        return False
    drowned = max(_change_losses(case, one).values(), default=0.0) > MOSTLY_LOST
    return not drowned and not noise_dominated_columns(_ratios(case, one))


def _merit(case: MaskingSetting, one: ScreenedChange) -> tuple[bool, bool, float]:
    """Order changes: those that a screen let pass, swaps last (no screen tells what they come to), the least loss."""
    lost = loss(_ratios(case, one), len(one.candidate.dropped), _change_losses(case, one))
    return one.factor is None, one.candidate.swap is not None, lost


def _start(case: MaskingSetting, candidate: Candidate, least: float) -> float:
    """Return the scale at which looks at a change begin: less where fewer columns leave and a search found it."""
    if not candidate.said or least < 1:
        return least
    return FEWER_START if candidate.dropped and case.plan.calibrate is not None else 1.0


def _not_tried(case: MaskingSetting, candidate: Candidate) -> Advice:
    """Tell a change as what it is: one that nobody tried."""
    words = ", and ".join(candidate.said) or f"more noise than {candidate.scale}"
    why = (
        f"its draws, of {len(case.table):,} records each, are above the budget, and more minutes in [budget] would "
        "allow them"
    )
    return Advice(words, {}, None, why=why, plan="", schema=candidate.schema_text())


def _looked_at(case: MaskingSetting, screened: ScreenedChange) -> Advice:
    """Tell a change whose first looks were good when the search was stopped."""
    factor = screened.factor or 1.0
    own = screened.candidate.at(factor, case.table)
    why = "stopped before it was rehearsed; in two draws quick intruders and the checks that had failed let it pass"
    return Advice(", and ".join(_change(own, factor)) or AS_IT_IS, {}, None, why=why)


def _hopeless(case: MaskingSetting, floor: Risk) -> list[Advice]:
    """Say that no noise helps where the fingerprint alone exceeds the tolerance."""
    if not case.judge.hopeless(case.intruders, floor.rate):
        return []
    said = f"more noise alone does not help: {floor.rate:.1%} are found without looking at it"
    return [Advice(said, {"floor": floor.rate, "factor": None}, False)]


@dataclass(frozen=True)
class _Trial:
    """A candidate at one scale, and how its rehearsal went."""

    candidate: Candidate
    factor: float
    case: MaskingSetting
    rehearsal: Rehearsal

    @property
    def rank(self) -> tuple[bool, float, float]:
        """What is better comes later: passing, more draws that pass, less excess."""
        share = self.rehearsal.passed / len(self.rehearsal.draws)
        excess = self.rehearsal.worst.excess
        return self.rehearsal.passes, share, -excess if excess == excess else float("-inf")


def _most(candidate: Candidate, advice: list[Advice]) -> float:
    """Return up to which scale a change is tried: swaps are for less noise than is enough without them."""
    enough = [float(one.figures.get("factor") or LARGEST_FACTOR) for one in advice if one.passes]
    return min(enough, default=LARGEST_FACTOR) / NEAR if candidate.swap is not None else LARGEST_FACTOR


def rehearse_change(
    case: MaskingSetting,
    screened: ScreenedChange,
    suspects: set[str],
    purse: Purse,
    place: str = "advise",
    most: float = LARGEST_FACTOR,
) -> list[Advice]:
    """Rehearse a change at the weakest noise that its screens let pass, then louder, until it passes or is given up."""
    if screened.factor is None:
        return _vain(case, screened)
    best: _Trial | None = None
    quiet, running = replace(case, stages=Stages()), list[_Trial]()
    with case.stages.stage(place, DRAWS) as step:
        try:
            for trial in _louder(quiet, screened, suspects, purse, partial(_tell_trial, step, running), most):
                best = trial if best is None or trial.rank > best.rank else best
                running.clear()
                if trial.rehearsal.is_sure or trial.rehearsal.is_impossible:
                    break
        except MaskwellError:  # a scale that the masks or the file do not allow ends the search
            pass
        except KeyboardInterrupt:
            if best is not None:
                case.stages.tell_tried(_advice(case, best))
            for last in running:
                case.stages.tell_tried(replace(_advice(case, last), passes=None, why=STOPPED))
            raise
    if best is None:
        return [] if purse.has_rehearsal else [_not_tried(case, screened.candidate)]
    return [] if best.rehearsal.is_impossible else [_advice(case, best)]


def _tell_trial(step: StageStep, running: list[_Trial], trial: _Trial) -> None:
    """Tell another draw of a trial, and note how far it is."""
    running[:] = [trial]
    step(len(trial.rehearsal.draws))


def _tell_draws(tell: Callable[[_Trial], None], begun: _Trial, draws: tuple[Draw, ...]) -> None:
    """Tell the draws that a trial has made."""
    tell(replace(begun, rehearsal=Rehearsal(draws)))


def _vain(case: MaskingSetting, screened: ScreenedChange) -> list[Advice]:
    """Say of a change that no noise was enough in its screens."""
    candidate = screened.candidate
    if screened.is_cut:
        return [_not_tried(case, candidate)]
    if not screened.draws:
        return []
    words = ", and ".join(candidate.said) or MORE_NOISE_ALONE
    most, twice = (candidate.at(factor, case.table) for factor in (LARGEST_FACTOR, 2 * LARGEST_FACTOR))
    reach = f"with noise of up to {LARGEST_FACTOR:g} times the scale"
    if candidate.has_scale and most.masks == twice.masks:
        reach = f"up to {most.scale}, where what is released tells least"
    why = f"not enough {reach}"
    figures: dict[str, Any] = {"factor": None, "scale": candidate.scale}
    figures |= {} if candidate.said else {"change": NOISE}
    return [
        Advice(words, figures, False, draws=screened.draws, why=why if candidate.has_scale else "not enough")
    ]


def _louder(
    case: MaskingSetting,
    screened: ScreenedChange,
    suspects: set[str],
    purse: Purse,
    tell: Callable[[_Trial], None],
    most: float,
) -> Iterator[_Trial]:
    """Rehearse at one scale after the other, each louder by what the last one lacked, screened by what it failed."""
    candidate, factor = screened.candidate, _with_spare(screened.factor)
    for _ in range(MOST_ROUNDS):
        if factor is None or factor > most or not purse.has_rehearsal:
            return
        own = candidate.at(factor, case.table)
        situation = situation_of(case, own.plan(case.plan), own.table(case.table))
        begun = _Trial(own, factor, situation, Rehearsal(()))
        rehearsal = rehearse_plan(situation, tell=partial(_tell_draws, tell, begun))
        purse.spend(len(rehearsal.draws))
        yield replace(begun, rehearsal=rehearsal)
        if not candidate.has_scale:
            return
        suspects |= rehearsal.failed
        case = case if rehearsal.aim is None else replace(case, aim=rehearsal.aim)
        louder = factor * _growth(situation, rehearsal)
        again = screen(case, candidate, suspects, louder, purse)
        enough = louder if again.is_cut else again.factor
        is_close = enough == louder and _is_vague(situation, rehearsal.worst)
        factor = enough if is_close else _with_spare(enough)


def _with_spare(factor: float | None) -> float | None:
    """Return a little more than the weakest noise that a screen lets pass; the plan's own noise as it is."""
    return factor if factor is None or factor == 1.0 else factor * SPARE


def _is_vague(case: MaskingSetting, draw: Draw) -> bool:
    """Whether a draw met the tolerance but for what a sample of the targets leaves open: little more noise is asked."""
    measure = measure_of(case.judge.tolerance)
    is_beyond = draw.figure < measure.limit if measure.at_least else draw.figure > measure.limit
    return draw.end is not None and not is_beyond


def _growth(case: MaskingSetting, rehearsal: Rehearsal) -> float:
    worst = rehearsal.worst
    if rehearsal.passed:
        return NEAR
    if worst.excess == worst.excess and worst.excess > 0:
        return FAR if _relative(case, worst) > 2 * CLOSE else NEAR
    return AUDIT


def _relative(case: MaskingSetting, draw: Draw) -> float:
    """Return by which share of the limit a figure misses it, or the unsafe end of its interval."""
    limit = measure_of(case.judge.tolerance).limit
    return abs(draw.judged - limit) / limit if limit else float("inf")


def _advice(case: MaskingSetting, trial: _Trial) -> Advice:
    """Put what was tried into words and figures."""
    candidate, rehearsal = trial.candidate, trial.rehearsal
    caveat = _caveat(case, trial)
    figures: dict[str, Any] = {"rate": _number(rehearsal.figure)}
    if candidate.dropped:
        figures["columns"] = ", ".join(candidate.dropped)
    if candidate.has_scale:
        figures |= {"factor": trial.factor, "scale": candidate.scale}
        figures |= {} if candidate.said else {"change": NOISE}
    ratios = noise_ratios(candidate.masks, candidate.table(case.table))
    figures["loss"] = loss(
        ratios, len(candidate.dropped), change_losses(candidate.masks, candidate.table(case.table))
    )
    too_loud = drowned_words(ratios)
    said = ", and ".join(_change(candidate, trial.factor)) or AS_IT_IS
    return Advice(
        f"{said}; {too_loud}" if too_loud else said,
        figures,
        None if caveat and rehearsal.passes else rehearsal.passes,
        draws=len(rehearsal.draws),
        passed=rehearsal.passed,
        why=caveat if rehearsal.passes else _why_not(trial),
        plan=candidate.text(case.plan),
        schema=candidate.schema_text(),
        without=candidate.gone(case.plan),
    )


def _change(candidate: Candidate, factor: float) -> list[str]:
    """Say what changes, the noise last."""
    louder = candidate.has_scale and factor != 1.0
    return [
        *candidate.said,
        *([f"noise of {factor:.3g} times the scale ({candidate.scale})"] if louder else []),
    ]


def _caveat(case: MaskingSetting, trial: _Trial) -> str:
    """Say what keeps a change that passed all draws from being said to pass."""
    slow = left_out(case, trial.case)
    if case.part_of is not None:
        few = f"tried on {len(case.table):,} of {case.part_of:,} records, whole blocks drawn at random"
        return f"{few}: draws of all are above the budget ([budget])"
    if slow:
        return f"not tried on these draws: {', '.join(slow)}"
    if case.earlier is None or can_be_nested(case):
        return ""
    return "tried as a first release: one that is nested in several, or in exchanged records, cannot be drawn again"


def _why_not(trial: _Trial) -> str:
    """Say how far a change comes: the figure beside the limit, or what else refuses it."""
    worst, measure = trial.rehearsal.worst, measure_of(trial.case.judge.tolerance)
    if worst.excess == worst.excess and worst.excess > 0:
        far = "comes close" if _relative(trial.case, worst) <= CLOSE else "not enough"
        of_sample = (
            "" if worst.end is None else f" (in a sample; of all it may be {measure.shown(worst.end)})"
        )
        return (
            f"{far}: {worst.worst} {measure.shown(worst.figure)} of {measure.shown(measure.limit)}{of_sample}"
        )
    if worst.failed:
        return f"not enough: the audit fails by {', '.join(dict.fromkeys(worst.failed))}"
    return f"not enough: {worst.reasons[0]}" if worst.reasons else "not enough"


def fingerprints(case: MaskingSetting, found: ToleranceResult, floor: Risk) -> list[Advice]:
    """Say which clear columns single most targets out, where the tolerance does not hold: facts, and nothing tried."""
    if case.judge.met(found.after):
        return []
    alone = [one for one in floor.sure_floor.without.to_pylist() if one["part"] not in (PATTERN, HIDDEN)]
    return [
        Advice(
            f"{remedy(one['column'], one['part'])}{_or_group(case, one['column'])}: {one['remaining']:,.0f} of "
            f"{floor.sure_floor.unique:,.0f} fingerprints remain",
            {
                "column": one["column"],
                "remaining": one["remaining"],
                "floor": one["remaining"] / floor.targets,
            },
        )
        for one in alone[:MOST_COLUMNS]
        if lowers_the_count(one["remaining"], floor.sure_floor.unique)
    ]


def _or_group(case: MaskingSetting, name: str) -> str:
    """Speak of coarser classes where a column has more than two."""
    column = case.table.schema[name]
    return ", or group its categories" if column.kind == "category" and len(column.categories) > 2 else ""


def _is_refuted(case: MaskingSetting, found: ToleranceResult, tried: Sequence[Advice]) -> bool:
    """Whether more noise is no remedy for links: that alone was tried and is not enough, or another change passes.

    Where the tolerance holds the remedy is another one, a smaller tolerance.
    """
    if case.judge.met(found.after):
        return False
    return any(one.passes for one in tried) or any(
        one.passes is False and one.figures.get("change") == NOISE for one in tried
    )


def _leak_remedy(case: MaskingSetting, found: ToleranceResult, failure: Finding) -> Advice:
    """Say what helps against a leak that the audit found, with names and figures of this file where there are any."""
    figures: dict[str, Any] = {"figure": _number(failure.figure), "fails_from": failure.limits.fail}
    change = failure.remedy.rstrip(".")
    limit = 1.0 if failure.limits.fail is None else failure.limits.fail
    too_much = {name: risk.rate for name, risk in found.after.items() if risk.rate >= limit}
    if failure.check == INFORMED and too_much and case.judge.met(found.after):
        change = f"a tolerance below {limit:.0%}, from which on the audit fails"
        if others := [name for name in too_much if name not in case.judge.held]:
            who = max(others, key=lambda name: (name == failure.where, too_much[name]))
            held = ", ".join(f'"{name}"' for name in (*case.judge.held, who) if name not in PATTERN_ALONE)
            change = (
                f"hold the tolerance against {who!r} too, who finds {too_much[who]:.1%}: intruders = [{held}]"
            )
    return Advice(f"{failure.check}: {change}", figures)


def _number(figure: float) -> float | None:
    return figure if figure == figure else None  # not a number is nothing in JSON
