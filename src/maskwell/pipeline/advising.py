"""What would make a refused plan pass: changes that can be made on this file, each rehearsed on other noise.

The weakest noise of a change is searched by the quick intruders on two draws; then the whole plan is rehearsed (see
`rehearsal`), and made a little louder where it fails. Nothing here looks at the noise of the release.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..attacks.floor import HIDDEN, remedy
from ..attacks.surviving import PATTERN
from ..calibration.judging import measure_of
from ..errors import MaskwellError, MaskwellWarning
from .candidates import Candidate, candidates
from .meeting import Met, Situation
from .outcome import Advice
from .rehearsal import Draw, Rehearsal, is_quickly_met, left_out, rehearsed, situation_of
from .stages import Stages

if TYPE_CHECKING:
    from ..attacks import Risk
    from ..checks.findings import Finding
    from .stages import Step
    from .verdict import Verdict

INFORMED, OUTER = "informed links", "outer links"  # checks of the audit
PATTERN_ALONE = ("fingerprint alone",)
LARGEST_FACTOR = 16.0  # on the scale: beyond it a release tells next to nothing
HALVINGS, SEARCH_DRAWS = 3, 2  # of the search by quick intruders
MOST_DRAWS = 40  # of whole plans, for one change: a full rehearsal and some that are given up
MOST_IN_ALL = 60  # after so many draws no further change is tried
MOST_ADVICE = 2  # changes that pass, after which no other is tried
MOST_COLUMNS = 4
NEAR, FAR, AUDIT = 1.12, 1.35, 1.4  # what noise grows by: nearly enough, far too little, refused by the audit
CLOSE = 0.1  # of the limit: by so much more a change "comes close"


def advised(case: Situation, found: Met, verdict: Verdict, floor: Risk) -> tuple[Advice, ...]:
    """Return changes to the plan, with what each came to on other noise."""
    with case.stages.stage("advise") as step, warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        advice = _hopeless(case, floor)
        counter = _Counter(step)
        for candidate in candidates(case, found, verdict, floor):
            if counter.done < MOST_IN_ALL and sum(one.passes is True for one in advice) < MOST_ADVICE:
                advice += tried(replace(case, stages=Stages()), candidate, counter, _most(candidate, advice))
        advice += fingerprints(case, found, floor)
        advice += [_remedied(case, found, one) for one in verdict.audit.failures]
    return tuple(sorted(advice, key=lambda one: one.passes is not True))


@dataclass
class _Counter:
    """Counts the draws, and tells them."""

    step: Step
    done: int = field(default=0)

    def __call__(self) -> None:
        self.done += 1
        self.step(self.done)


def _hopeless(case: Situation, floor: Risk) -> list[Advice]:
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
    case: Situation
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


def tried(
    case: Situation, candidate: Candidate, tell: Callable[[], None], most: float = LARGEST_FACTOR
) -> list[Advice]:
    """Rehearse a change at the weakest noise that may do, then louder, until it passes or the draws are spent."""
    best: _Trial | None = None
    try:
        for trial in _louder(case, candidate, tell, most):
            best = trial if best is None or trial.rank > best.rank else best
            if trial.rehearsal.passes or trial.rehearsal.is_impossible:
                break
    except MaskwellError:  # a scale that the masks or the file do not allow ends the search
        pass
    return [] if best is None or best.rehearsal.is_impossible else [_advice(case, best)]


def _louder(case: Situation, candidate: Candidate, tell: Callable[[], None], most: float) -> Iterator[_Trial]:
    """Rehearse at one scale after the other, each louder by what the last one lacked."""
    factor = _weakest(case, candidate, tell) if candidate.has_scale else 1.0
    spent = 0
    while spent < MOST_DRAWS and factor <= most:
        own = candidate.at(factor)
        situation = _situation(case, own)
        rehearsal = rehearsed(situation, tell=tell)
        spent += len(rehearsal.draws)
        yield _Trial(own, factor, situation, rehearsal)
        if not candidate.has_scale:
            return
        factor *= _growth(situation, rehearsal)


def _growth(case: Situation, rehearsal: Rehearsal) -> float:
    worst = rehearsal.worst
    if rehearsal.passed:
        return NEAR
    if worst.excess == worst.excess and worst.excess > 0:
        return FAR if _relative(case, worst) > 2 * CLOSE else NEAR
    return AUDIT


def _relative(case: Situation, draw: Draw) -> float:
    """Return by which share of the limit a figure misses it."""
    limit = measure_of(case.judge.tolerance).limit
    return abs(draw.figure - limit) / limit if limit else float("inf")


def _situation(case: Situation, candidate: Candidate) -> Situation:
    return situation_of(case, candidate.plan(case.plan), candidate.table(case.table))


def _weakest(case: Situation, candidate: Candidate, tell: Callable[[], None]) -> float:
    """Double the scale until the quick intruders find little enough on two draws, then halve the way back."""
    low, high = 0.5, 1.0
    while high <= LARGEST_FACTOR and not _is_enough(case, candidate, high, tell):
        low, high = high, 2 * high
    for _ in range(HALVINGS if 1.0 < high <= LARGEST_FACTOR else 0):
        middle = (low * high) ** 0.5
        low, high = (low, middle) if _is_enough(case, candidate, middle, tell) else (middle, high)
    return min(high, LARGEST_FACTOR)


def _is_enough(case: Situation, candidate: Candidate, factor: float, tell: Callable[[], None]) -> bool:
    """Whether the quick intruders find no more than is tolerated, on a few draws of calibration."""
    own = _situation(case, candidate.at(factor))
    for number in range(SEARCH_DRAWS):
        tell()
        if not is_quickly_met(own, number):
            return False
    return True


def _advice(case: Situation, trial: _Trial) -> Advice:
    """Put what was tried into words and figures."""
    candidate, rehearsal = trial.candidate, trial.rehearsal
    change, caveat = list(candidate.words), _caveat(case, trial)
    figures: dict[str, Any] = {"rate": _number(rehearsal.figure)}
    if candidate.dropped:
        figures["columns"] = ", ".join(candidate.dropped)
    if candidate.has_scale:
        figures |= {"factor": trial.factor, "scale": candidate.scale}
        if trial.factor != 1.0:
            change.append(f"noise of {trial.factor:.3g} times the scale ({candidate.scale})")
    return Advice(
        ", and ".join(change) or "the plan with other noise",
        figures,
        None if caveat and rehearsal.passes else rehearsal.passes,
        draws=len(rehearsal.draws),
        passed=rehearsal.passed,
        why=caveat if rehearsal.passes else _why_not(trial),
        plan=candidate.text(case.plan),
        schema=candidate.schema_text(),
    )


def _caveat(case: Situation, trial: _Trial) -> str:
    """Say what keeps a change that passed all draws from being said to pass."""
    slow = left_out(case, trial.case)
    if slow:
        return f"not tried on these draws: {', '.join(slow)}"
    return "" if case.earlier is None else "tried as a first release, without the earlier one"


def _why_not(trial: _Trial) -> str:
    """Say how far a change comes: the figure beside the limit, or what else refuses it."""
    worst, measure = trial.rehearsal.worst, measure_of(trial.case.judge.tolerance)
    if worst.excess == worst.excess and worst.excess > 0:
        far = "comes close" if _relative(trial.case, worst) <= CLOSE else "not enough"
        return f"{far}: {worst.worst} {measure.shown(worst.figure)} of {measure.shown(measure.limit)}"
    return f"not enough: {worst.reasons[0]}" if worst.reasons else "not enough"


def fingerprints(case: Situation, found: Met, floor: Risk) -> list[Advice]:
    """Say which clear columns single most targets out, where the tolerance does not hold: facts, and nothing tried."""
    if case.judge.met(found.after):
        return []
    alone = [one for one in floor.floor.without.to_pylist() if one["part"] not in (PATTERN, HIDDEN)]
    return [
        Advice(
            f"{remedy(one['column'], one['part'])}{_or_group(case, one['column'])}: {one['remaining']:,} of "
            f"{floor.floor.unique:,} fingerprints remain",
            {
                "column": one["column"],
                "remaining": one["remaining"],
                "floor": one["remaining"] / floor.targets,
            },
        )
        for one in alone[:MOST_COLUMNS]
        if one["remaining"] < floor.floor.unique
    ]


def _or_group(case: Situation, name: str) -> str:
    """Speak of coarser classes where a column has more than two."""
    column = case.table.schema[name]
    return ", or group its categories" if column.kind == "category" and len(column.categories) > 2 else ""


def _remedied(case: Situation, found: Met, failure: Finding) -> Advice:
    """Say what helps against a leak that the audit found, with names and figures of this file where there are any."""
    figures: dict[str, Any] = {"figure": _number(failure.figure), "fails_from": failure.limits.fail}
    change = failure.remedy.rstrip(".")
    if failure.check == INFORMED and failure.where in case.intruders and case.judge.met(found.after):
        held = [*case.judge.held, *({failure.where} - {*case.judge.held})]
        named = ", ".join(f'"{name}"' for name in held if name not in PATTERN_ALONE)
        who = f"{failure.where!r} too, who finds {failure.figure:.1%}"
        change = f"hold the tolerance against {who}: intruders = [{named}]"
        if failure.where in case.judge.held:
            change = f"a tolerance below {failure.limits.fail:.0%}, from which on the audit fails"
    return Advice(f"{failure.check}: {change}", figures)


def _number(figure: float) -> float | None:
    return figure if figure == figure else None  # not a number is nothing in JSON
