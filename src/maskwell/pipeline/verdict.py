"""The verdict on a masking: whether the tolerance, the bounds on models and the audit all let it leave."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

from ..attacks import BayesIntruder, Fingerprint, Risks
from ..attacks.risk import Risk, wilson
from ..calibration.measures import ALL
from ..checks.evidence import Evidence
from ..checks.links import ALL_RECORDS, is_informed, is_quick, weighs_by_law
from ..checks.rank_windows import with_windows
from ..errors import MaskwellError, MaskwellWarning
from ..masking.hidden_cards import is_withheld
from ..notes import Note
from ..tolerances import MaxRate
from ..words.pipeline import earlier_release_phrase, entry_phrase, predicted_columns_phrase
from .companion_information import MATERIAL, CompanionInformation
from .entry_times import entry_risk
from .joined_audit import joined_failures
from .joined_releases import Joined, earlier_rate, joined_releases, joined_risk
from .known_columns import unrelied_reasons
from .predicted_columns import predicting_risk, unknown_columns, variates
from .reassembly import group_reasons, unknown_companions

LAW = "knows the law"

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..checks import Audit, Finding
    from ..masking import Masking
    from ..plan import ModelPlan, ReleasePlan
    from ..utility import ModelUtility, Utility
    from .meet_tolerance import MaskingSetting
    from .progress import StageStep

INTERCEPT, SIGMA = "Intercept", "sigma"
SLIGHT = 0.02  # share of records that were exchanged up to which a forecast leaves it out of account


@dataclass(frozen=True)
class ReleaseVerdict:
    """Why a masking may not leave, and what could not be judged: nothing said of either is yes."""

    reasons: tuple[str, ...]
    audit: Audit
    not_judged: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    aim: float | None = None  # the rate of one record at a time that would settle what who knows groups finds
    companions: tuple[str, ...] = ()  # the columns by which he finds it
    tells_stronger: bool = False  # whether `not_judged` has what the audit's own intruder finds

    @property
    def passed(self) -> bool:
        """Whether nothing stands against it."""
        return not self.reasons and not self.not_judged


def judge_masking(
    case: MaskingSetting,
    masking: Masking,
    risks: Risks,
    utility: Utility | None = None,
    left_out: Collection[str] = (),
) -> ReleaseVerdict:
    """Judge a masking by everything that the plan asks; where intervals cannot be forecast, by those compared."""
    with case.stages.stage("audit") as step:
        found = audit_masking(case, masking, risks, left_out, step)
    measured = () if utility is None else utility.models
    wider = [said for model in case.plan.models if (said := too_wide(model, masking, measured))]
    unfit = [said for model in case.plan.models if (said := unfit_reason(model, masking, measured))]
    failed = [f"the audit fails by {one.check}: {one.said}" for one in found.failures]
    stronger, tells_stronger = _stronger(case, masking, risks, found)
    groups, most = _companions(case, masking, risks), tolerated_rate(case)
    not_judged = (
        *case.judge.not_judged(risks),
        *group_reasons(masking),
        *(one.said(most) for one in groups if not one.is_judged(most)),
        *stronger,
        *unrelied_reasons(
            case.plan, masking, {name: risks[name] for name in case.judge.held if name in risks}
        ),
    )
    notes = tuple(one.note for one in groups if one.is_judged(most) and one.gain > MATERIAL)
    further = [judge(case, masking, risks) for judge in (_expects, _joins, _enters)]
    beyond = [reason for one in further for reason in one.reasons]
    reasons = (*case.judge.reasons(risks), *beyond, *unfit, *wider, *failed)
    told = (name for one in groups if not one.is_judged(most) for name in one.columns)
    companions = tuple(dict.fromkeys(name for name in told if name in masking.release.table.schema))
    notes = (*notes, *(note for one in further for note in one.notes))
    return ReleaseVerdict(
        reasons,
        found,
        (*not_judged, *(reason for one in further for reason in one.not_judged)),
        notes,
        _aim(groups, most),
        companions,
        tells_stronger,
    )


def group_rate(case: MaskingSetting, masking: Masking, risks: Risks) -> float:
    """Return the largest rate of one record at a time at which who knows whole groups is within the tolerance.

    That is the tolerance itself where groups tell no more, and 0 where no rate is small enough.
    """
    return _group_rate(_companions(case, masking, risks), tolerated_rate(case))


def _group_rate(groups: Sequence[CompanionInformation], max_rate: float) -> float:
    return min((one.tolerated(max_rate) for one in groups), default=max_rate)


def _aim(groups: Sequence[CompanionInformation], max_rate: float) -> float | None:
    aim = _group_rate(groups, max_rate)
    return aim if 0 < aim < max_rate else None


def _companions(case: MaskingSetting, masking: Masking, risks: Risks) -> tuple[CompanionInformation, ...]:
    """Measure what columns that no intruder held to the tolerance compares tell of members of a dropped group."""
    held = [risks[name] for name in case.judge.held if name in risks]
    if not held or is_withheld(masking.card):
        return ()
    schema = masking.release.table.schema
    compared = {name for risk in held for name in (*risk.fields, *risk.attack.match_columns(schema))}
    return unknown_companions(masking, sorted(compared), max(risk.rate for risk in held))


@dataclass(frozen=True)
class _Further:
    """What stands against a release by columns beyond those that intruders compare in it, or is to be known of them."""

    reasons: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    not_judged: tuple[str, ...] = ()


def _joins(case: MaskingSetting, masking: Masking, risks: Risks) -> _Further:
    """Let who knows the law attack this release and the earlier ones together, where these tell more."""
    if case.earlier is None or not case.judge.met(risks):
        return _Further()
    joined = joined_releases(masking, case.earlier, case.plan.targets.not_known, case.before)
    untried = tuple(f"joined with the earlier release, not tried: {one}" for one in joined.untried)
    if not joined.added():
        return _Further(not_judged=untried)
    columns = ", ".join(joined.added())
    name = _plain_law(case, risks)
    if name is None:
        nobody = (
            f"the earlier release tells {columns} beside, and nobody who weighs records by the law was tried"
        )
        return _Further(not_judged=(f"{nobody}: leave [[intruders]] out of the plan", *untried))
    risk = joined_risk(case.intruders[name], joined, risks[name])
    whom = earlier_release_phrase(name, joined.added(), 1 + len(case.before))
    beyond = replace(case.judge, held=(whom,)).reasons(Risks({whom: risk}, {}))
    figures = {
        "intruder": name,
        "columns": tuple(joined.added()),
        "releases": 1 + len(case.before),
        "rate": risk.rate,
        "base": risks[name].rate,
    }
    note = Note("pipeline.earlier_release", figures)
    if beyond:
        alone = earlier_rate(case.intruders[name], case.earlier, case.plan.targets.not_known)
        if risk.rate <= alone * (1 + MATERIAL):  # what is out already is not undone by keeping this one back
            beyond, note = [], Note("pipeline.earlier_release_alone", figures | {"alone": alone})
    if not beyond and (leaks := _joined_leaks(case, joined, risk)):
        return _Further(reasons=leaks, notes=(note,), not_judged=untried)
    if beyond and name in case.judge.held:
        advice = "leave these columns as they were in it, or take out what this release adds"
        return _Further(reasons=tuple(f"{one}: {advice}" for one in beyond), not_judged=untried)
    if beyond and name not in case.plan.tolerance.not_held:
        excuse = (
            f"he is not held to it: say why under [tolerance.not_held], or leave out what {columns} add to"
        )
        return _Further(not_judged=(*(f"{one}; {excuse}" for one in beyond), *untried))
    return _Further(notes=(note,), not_judged=untried)


def _enters(case: MaskingSetting, masking: Masking, risks: Risks) -> _Further:
    """Let who knows the law, and when each record entered the series, attack where the earlier files show which did."""
    if case.earlier is None or case.plan.targets.presence_not_known or not case.judge.met(risks):
        return _Further()
    name = _plain_law(case, risks)
    plan = BayesIntruder() if name is None else case.intruders[name]
    whom = entry_phrase(LAW if name is None else name)
    try:
        risk = entry_risk(plan, masking, (case.earlier, *case.before))
    except MaskwellError as error:
        return _Further(not_judged=(f"not tried: {whom} ({error.problems[0]})",))
    if risk is None:
        return _Further()
    beyond = replace(case.judge, held=(whom,)).reasons(Risks({whom: risk}, {}))
    if not beyond or law_is_excused(case):
        note = Note("pipeline.entry_time", {"intruder": name or LAW, "rate": risk.rate})
        return _Further(notes=(note,))
    advice = "give more noise, release new records by themselves or in larger numbers, or leave columns out"
    said = tuple(f"{one}: {advice}" for one in beyond)
    return _Further(reasons=said) if name in case.judge.held else _Further(not_judged=said)


def _joined_leaks(case: MaskingSetting, joined: Joined, risk: Risk) -> tuple[str, ...]:
    """Say what the rows of both releases give away that neither does alone."""
    assert case.earlier is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        limits, not_known = case.plan.audit.limits, case.plan.targets.not_known
        found = joined_failures(joined, case.earlier, risk, limits, not_known)
    return tuple(
        f"joined with the earlier release, the audit's check {one.check!r} fails: {one.said}; leave out columns that "
        f"this release adds, or leave those as they were that it had"
        for one in found
    )


def _plain_law(case: MaskingSetting, risks: Risks) -> str | None:
    """Return who weighs single records by the law, one who is held to the tolerance before others."""
    names = [name for name in (*case.judge.held, *risks) if name in risks and name in case.intruders]
    return next((name for name in names if is_plain_law(case.intruders[name])), None)


def _expects(case: MaskingSetting, masking: Masking, risks: Risks) -> _Further:
    """Let who knows the law, and how unknown columns go with what he knows, attack where all others are held off."""
    name = _plain_law(case, risks)
    if not case.judge.met(risks) or is_withheld(masking.card):
        return _Further()
    if name is None or name not in case.judge.held:
        return _expects_unheld(case, masking, risks)
    plan, base = case.intruders[name], risks[name]
    compared = sorted({*base.fields, *plan.match_columns(masking.release.table.schema)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        risk = predicting_risk(plan, masking, tuple(base.fields), compared)
    if risk is None or risk.rate <= base.rate:
        return _Further()
    columns = tuple(unknown_columns(masking, compared))
    whom = predicted_columns_phrase(name, columns)
    said = replace(case.judge, held=(whom,)).reasons(Risks({whom: risk}, {}))
    if said:
        return _Further(
            tuple(f"{one}: drop or coarsen some of these columns, or give more noise" for one in said)
        )
    if risk.rate <= base.rate * (1 + MATERIAL):
        return _Further()
    figures = {"intruder": name, "columns": columns, "rate": risk.rate, "base": base.rate}
    return _Further(notes=(Note("pipeline.predicted_columns", figures),))


def _expects_unheld(case: MaskingSetting, masking: Masking, risks: Risks) -> _Further:
    """Let him attack where nobody who weighs records by the law is held to the tolerance, or say he is not tried.

    Rank swaps are windows of ranks to him. What he finds beyond the tolerance is not judged, as of other intruders who
    were not held to it, unless the plan says why who knows the law does not count.
    """
    released = masking.release.table
    tried = [risks[name] for name in case.judge.held if name in risks]
    tried = [one for one in tried if not isinstance(one.attack, Fingerprint) and one.fields]
    if not tried:
        return _Further()
    base = max(tried, key=lambda one: len(one.fields))
    compared = sorted({*base.fields, *base.attack.match_columns(released.schema)})
    unknown = unknown_columns(masking, compared)
    known = [name for name in compared if name in masking.truth.schema]
    if not unknown or not variates(masking, unknown, known).names:
        return _Further()
    whom = predicted_columns_phrase(LAW, unknown)
    risk, why = _expecting_risk(case, masking, base, compared)
    if risk is None:
        note = Note(
            "pipeline.predicted_columns_untried",
            {"intruder": LAW, "columns": tuple(unknown), "reason": why},
        )
        return _Further(notes=(note,))
    beyond = replace(case.judge, held=(whom,)).reasons(Risks({whom: risk}, {}))
    if not beyond or law_is_excused(case):
        note = Note(
            "pipeline.predicted_columns_unheld",
            {"intruder": LAW, "columns": tuple(unknown), "rate": risk.rate},
        )
        return _Further(notes=(note,))
    advice = (
        "nobody held to the tolerance weighs by that: leave [[intruders]] out of the plan, drop or coarsen some of "
        f'these columns, or say under [tolerance.not_held] why "{LAW}" does not count'
    )
    return _Further(not_judged=tuple(f"{one}; {advice}" for one in beyond))


def _expecting_risk(
    case: MaskingSetting, masking: Masking, base: Risk, compared: Collection[str]
) -> tuple[Risk | None, str]:
    """Return what he finds of the targets of another attack, or why he was not tried."""
    seen = with_windows(masking)
    evidence = Evidence(masking, Risks({}, {}), not_known=case.plan.targets.not_known)
    if not is_quick(evidence, given=True):
        return None, "this file has too many pairs for him"
    plan = BayesIntruder(
        match_blocks=base.attack.match_columns(masking.release.table.schema),
        largest_target_block=base.attack.largest_target_block,
        target_blocks=base.attack.target_blocks,
        targets=base.attack.targets,
        response_knowledge=base.attack.response_knowledge,
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MaskwellWarning)
            return predicting_risk(plan, seen, tuple(base.fields), compared), "he expects nothing"
    except MaskwellError as error:
        return None, error.problems[0]


def law_is_excused(case: MaskingSetting) -> bool:
    """Whether the plan says why intruders who know the law do not count."""
    excused = case.plan.tolerance.not_held
    return LAW in excused or any(
        is_informed(case.intruders[name]) for name in excused if name in case.intruders
    )


def is_plain_law(plan: object) -> bool:
    """Whether an intruder weighs single records by the law on the card."""
    if not isinstance(plan, BayesIntruder) or plan.prior is not None:
        return False
    return not plan.helpers and plan.assignment == "best"


def tolerated_rate(case: MaskingSetting) -> float:
    """Return the rate of all targets that is tolerated, 0 where the tolerance is about something else."""
    tolerance = case.judge.tolerance
    return tolerance.max_rate if isinstance(tolerance, MaxRate) and case.judge.over == ALL else 0.0


def _stronger(case: MaskingSetting, masking: Masking, risks: Risks, found: Audit) -> tuple[list[str], bool]:
    """Say where the audit's own intruder, who has all true values and the law, finds more than is tolerated.

    A plan may name weaker intruders alone, or let them compare a part of what is masked: then nothing is known of the
    strong ones but this, and of a sample the upper end of the interval counts. Of an attack of the plan's own it is the
    lower end: those who are held have an interval too, which was judged.
    """
    tolerance = case.judge.tolerance
    if not isinstance(tolerance, MaxRate) or case.judge.over != ALL:
        return [], False
    if case.judge.reasons(risks) or case.judge.not_judged(risks):  # of him enough is said
        return [], False
    if law_is_excused(case):
        return [], False
    laws = masking.card.laws
    has_law = bool(laws) and all(law.has_density for law in laws)
    is_untried = has_law and not any(weighs_by_law(risk.attack) for risk in risks.values())
    for one in found.findings:
        if one.check == "informed links" and isfinite(one.figure):
            if is_untried and not {*one.figures} & {LAW, ALL_RECORDS.format(LAW)}:
                return [
                    "nobody who weighs records by the law was tried, and for the audit this file has too many pairs: "
                    f'leave [[intruders]] out of the plan, or say under [tolerance.not_held] why "{LAW}" does not count'
                ], False
            ends = wilson(min(one.figure, 1.0), one.sampled) if one.sampled else (one.figure, one.figure)
            if ends[0 if _is_judged_already(one, risks) else 1] > tolerance.max_rate:
                return [
                    f"by the audit {one.said}: more than the {tolerance.max_rate:.0%} tolerated, and nobody held to "
                    "the tolerance was as strong: leave [[intruders]] and fields out of the plan, or say under "
                    f'[tolerance.not_held] why "{LAW}" does not count'
                ], True
    return [], False


def _is_judged_already(one: Finding, risks: Risks) -> bool:
    """Whether a figure of the audit is that of an attack of the plan, whose own interval is judged."""
    return any(risk.rate == one.figure and risk.targets == one.sampled for risk in risks.values())


def audit_masking(
    case: MaskingSetting,
    masking: Masking,
    risks: Risks,
    left_out: Collection[str] = (),
    progress: StageStep | None = None,
) -> Audit:
    """Audit a masking as the plan says, but for checks that are left out."""
    from ..checks import audit

    own = case.plan.audit
    earlier = () if case.earlier is None else (case.earlier,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return audit(
            masking,
            limits=own.limits,
            risks=risks,
            earlier=earlier,
            largest=own.largest,
            left_out=left_out,
            progress=progress,
            not_known=case.plan.targets.not_known,
        )


def unfit_reason(model: ModelPlan, masking: Masking, measured: Sequence[ModelUtility] = ()) -> str:
    """Say why a model of the plan cannot be fitted to the release by whoever has the card; nothing where it can.

    Refused before any draw, or drawn for the comparison by chains that did not agree.
    """
    from ..analysis.model_fit import DRAW, DROP, fit_refusal

    tries = (
        fit_refusal(model.formula, masking.release, family=model.family, missing=missing)
        for missing in (DRAW, DROP)
    )
    first = next(tries)
    why = (
        first if first and next(tries) else next((one.refused for one in measured if _is_of(one, model)), "")
    )
    return f"{model.formula}: cannot be fitted to the release: {why}" if why else ""


def too_wide(model: ModelPlan, masking: Masking, measured: Sequence[ModelUtility] = ()) -> str:
    """Say where the intervals of a model widen by more than the plan allows: by forecast, else as measured."""
    if model.at_most_wider is None:
        return ""
    wider = largest_widening(model, masking) or next(
        (_widest(one) for one in measured if _is_of(one, model)), None
    )
    if wider is None:
        return f"{model.formula}: by how much its intervals widen cannot be forecast, so the bound is not known to hold"
    name, share = wider
    if share <= model.at_most_wider * (1 + 1e-9):
        return ""
    much = f"by {share:.0%}" if isfinite(share) else "beyond all measure"
    return (
        f"{model.formula}: the interval of {name} widens {much}, allowed is {model.at_most_wider:.0%}: less noise, or "
        "a wider bound"
    )


def largest_widening(model: ModelPlan, masking: Masking) -> tuple[str, float] | None:
    """Return the coefficient whose interval widens most, and by which share; nothing where it cannot be forecast."""
    from ..analysis import forecast

    try:
        found = forecast(model.formula, masking.truth, _card_without_swaps(masking.card), family=model.family)
    except MaskwellError:
        return None
    return _largest(found.widening)


def _card_without_swaps(card: NoiseCard) -> NoiseCard:
    """Return a card as if nothing had been exchanged, where that is so little that intervals do not show it."""
    swapped = card.swapped
    return card if swapped is None or swapped.share > SLIGHT else replace(card, swapped=None)


def _is_of(found: ModelUtility, model: ModelPlan) -> bool:
    return (found.formula, found.family) == (model.formula, model.family)


def _widest(found: ModelUtility) -> tuple[str, float] | None:
    """Return the coefficient whose interval came out widest beside the original's, in this draw of the noise."""
    pairs = zip(found.names, found.widening, strict=False)
    return _largest({name: share for name, share in pairs if name != SIGMA and isfinite(share)})


def _largest(shares: Mapping[str, float]) -> tuple[str, float] | None:
    slopes = {name: share for name, share in shares.items() if name != INTERCEPT} or dict(shares)
    return max(slopes.items(), key=lambda one: one[1]) if slopes else None


def compare_with_truth(plan: ReleasePlan, masking: Masking) -> Any:
    """Compare a masking with its truth as the plan says."""
    from ..utility import Model, compare

    models = tuple(Model(one.formula, one.family, one.at_most_wider) for one in plan.models)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return compare(masking, models=models, groups=plan.utility.groups)
