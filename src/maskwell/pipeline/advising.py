"""What would make a refused plan pass: each change is tried on this key's own noise, not guessed."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import BayesIntruder, Risk, Risks
from ..attacks.fingerprint import floor_of
from ..attacks.floor import HIDDEN, remedy
from ..attacks.surviving import PATTERN
from ..calibration.scaling import has_scale, scale_words
from ..errors import BadPlan, MaskwellError, MaskwellWarning, NoLaw
from ..laws.chained import combined_of
from ..masking import Masking
from ..table import Table
from ..tolerances import MaxRate, Ratio
from .classes import Coded
from .meeting import Met, Situation, most_dangerous, swap_to
from .outcome import Advice
from .stages import Stages
from .verdict import Verdict, judged

if TYPE_CHECKING:
    from ..checks.findings import Finding

INFORMED, OUTER = "informed links", "outer links"  # checks of the audit
PATTERN_ALONE = ("fingerprint alone",)
SKEWED = 2.0
LARGEST_FACTOR = 16.0
HALVINGS = 3
MOST_COLUMNS = 4


def advised(case: Situation, found: Met, verdict: Verdict, floor: Risk) -> tuple[Advice, ...]:
    """Return changes to the plan, with what each would come to."""
    with case.stages.stage("advise", 4) as step, warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        case = replace(case, stages=Stages())  # its own stages are no stages of the release
        advice: list[Advice] = []
        if not case.judge.met(found.after):
            advice += more_noise(case, found, floor)
            step(1)
            advice += other_columns(case, found, floor)
            step(2)
            advice += more_swaps(case, found)
        step(3)
        advice += [_remedied(case, found, one) for one in verdict.audit.failures]
    return tuple(advice)


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
    elif failure.check == OUTER and (skewed := _skewed(case, found)):
        listed = ", ".join(f"{name} ({figure:.1f})" for name, figure in skewed.items())
        change = (
            f'noise on the log scale (transform = "log") or a top code for the most skewed columns: {listed}'
        )
        figures["skewness"] = skewed
    return Advice(f"{failure.check}: {change}", figures)


def _skewed(case: Situation, found: Met) -> dict[str, float]:
    """Return the masked amounts whose noise is on their own scale and that have long tails, with their skewness."""
    measured = {}
    for law in map(combined_of, found.masking.card.laws):
        for j, name in enumerate(law.columns):
            outlets = getattr(law, "outlets", ())
            if not outlets or outlets[j].log_shift is not None or not case.table.schema[name].is_number:
                continue
            values = case.table.floats(name)
            values = values[~np.isnan(values)]
            if len(values) > 2 and values.std() > 0:
                measured[name] = float(((values - values.mean()) ** 3).mean() / values.std() ** 3)
    tails = sorted(
        ((name, figure) for name, figure in measured.items() if abs(figure) > SKEWED), key=lambda x: -x[1]
    )
    return dict(tails[:MOST_COLUMNS])


def _number(figure: float) -> float | None:
    return figure if figure == figure else None  # not a number is nothing in JSON


def _passes(case: Situation, masking: Masking, risks: Risks) -> bool:
    return case.judge.met(risks) and judged(case, masking, risks).passed


def more_noise(case: Situation, found: Met, floor: Risk) -> list[Advice]:
    """Search the scale at which the tolerance would hold, with the same draws made larger."""
    if not has_scale(found.mask):
        return []
    if case.judge.hopeless(case.intruders, floor.rate):
        hopeless = {"floor": floor.rate, "factor": None}
        return [
            Advice(
                f"more noise alone does not help: {floor.rate:.1%} are found without looking at it",
                hopeless,
                False,
            )
        ]
    factor, tried = _weakest(case, found)
    if factor is None or tried is None:
        largest = {"factor": LARGEST_FACTOR, "rate": _largest(tried)}
        return [
            Advice(f"no scale up to {LARGEST_FACTOR:g} times this one meets the tolerance", largest, False)
        ]
    masking, risks = tried
    words = scale_words(case.at(found.mask, factor))
    worst = case.judge.worst(risks)
    figures: dict[str, Any] = {
        "factor": factor,
        "rate": None if worst is None else risks[worst.name].rate,
        "scale": words,
    }
    change = f"noise of {factor:.3g} times the scale ({words})"
    return [Advice(change, figures, _passes(case, masking, risks))]


def _largest(tried: tuple[Masking, Risks] | None) -> float | None:
    return None if tried is None else max((risk.rate for risk in tried[1].values()), default=None)


def _weakest(case: Situation, found: Met) -> tuple[float | None, tuple[Masking, Risks] | None]:
    """Double the scale until the tolerance holds, then halve the way back a few times; few attacks in all."""
    low, high, best, last = 1.0, 2.0, None, None
    while high <= LARGEST_FACTOR:
        last = _tried(case, found, high)
        if last is None:
            return None, None
        if case.judge.met(last[1]):
            best = last
            break
        low, high = high, 2 * high
    if best is None:
        return None, last
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        trial = _tried(case, found, middle)
        if trial is not None and case.judge.met(trial[1]):
            high, best = middle, trial
        else:
            low = middle
    return high, best


def _tried(case: Situation, found: Met, factor: float) -> tuple[Masking, Risks] | None:
    try:
        masking = case.drawn(case.at(found.mask, factor))
    except BadPlan:
        return None
    return masking, _attacked(case, masking)


def _attacked(case: Situation, masking: Masking) -> Risks:
    """Attack by those whom the tolerance is about alone, the quick ones first, until one of them finds too much."""
    found: dict[str, Risk] = {}
    refused: dict[str, str] = {}
    for name in sorted(case.judge.held, key=lambda name: isinstance(case.intruders[name], BayesIntruder)):
        try:
            risks = case.attacked(masking, "advise", (name,))
        except NoLaw as why:
            refused[name] = str(why)
            continue
        found |= dict(risks)
        if not case.judge.met(risks):
            break
    return Risks(found, refused)


def other_columns(case: Situation, found: Met, floor: Risk) -> list[Advice]:
    """Take away, one after the other, the clear columns that single most targets out, and attack what is left."""
    steps = [one for one in floor.floor.steps.to_pylist() if one["part"] not in (PATTERN, HIDDEN)]
    alone = [one for one in floor.floor.without.to_pylist() if one["part"] not in (PATTERN, HIDDEN)]
    advice = [
        Advice(
            f"{remedy(one['column'], one['part'])}, or group it: {one['remaining']:,} of {floor.floor.unique:,} "
            "fingerprints remain",
            {
                "column": one["column"],
                "remaining": one["remaining"],
                "floor": one["remaining"] / floor.targets,
            },
        )
        for one in alone[:MOST_COLUMNS]
        if one["remaining"] < floor.floor.unique
    ]
    columns: list[str] = []
    for one in steps:
        columns.append(one["column"])
        if case.judge.hopeless(case.intruders, one["remaining"] / floor.targets):
            continue
        return advice + _without(case, found, columns)
    return advice


def _without(case: Situation, found: Met, columns: list[str]) -> list[Advice]:
    """Try the plan on the table without some columns."""
    table = dropped(case.table, columns)
    try:
        coded = Coded.of(table, found.mask)
        judge = replace(case.judge, truth=coded.table)
        key = case.key if case.earlier is None else case.earlier.key
        other = replace(case, table=table, coded=coded, judge=judge, key=key, earlier=None)
        masking = other.drawn(found.mask)
        risks = _attacked(other, masking)
        floor = floor_of(coded.mask, coded.table, next(iter(coded.attacks(case.intruders).values())))
    except MaskwellError:
        return []
    worst = judge.worst(risks)
    figures: dict[str, Any] = {
        "columns": ", ".join(columns),
        "floor": floor.rate,
        "rate": None if worst is None else risks[worst.name].rate,
    }
    said = f"leave out {', '.join(columns)}, or group them: the floor falls to {floor.rate:.1%}"
    said += "" if worst is None else f", the worst rate to {figures['rate']:.1%}"
    alone = Advice(said, figures, _passes(other, masking, risks))
    return [alone] if alone.passes else [alone, *_without_and_noise(other, found, columns)]


def _without_and_noise(case: Situation, found: Met, columns: list[str]) -> list[Advice]:
    """Search the noise that is enough without these columns, by the quick intruders: with others it would take long."""
    quick = tuple(name for name in case.judge.held if not isinstance(case.intruders[name], BayesIntruder))
    if not quick or not has_scale(found.mask):
        return []
    eased = replace(case, judge=replace(case.judge, held=quick))
    factor, tried = _weakest(eased, found)
    figures: dict[str, Any] = {"columns": ", ".join(columns), "rate": _largest(tried)}
    if factor is None or tried is None:
        figures["factor"] = LARGEST_FACTOR
        change = f"leave out {', '.join(columns)}, and noise of up to {LARGEST_FACTOR:g} times the scale"
        return [Advice(change, figures, False)]
    words = scale_words(case.at(found.mask, factor))
    change = f"leave out {', '.join(columns)}, and noise of {factor:.3g} times the scale ({words})"
    figures |= {"factor": factor, "scale": words}
    if quick == case.judge.held:
        return [Advice(change, figures, _passes(case, *tried))]
    slow = len(case.judge.held) - len(quick)
    return [Advice(f"{change}; {slow} slow intruders were not tried on it, the others find no more", figures)]


def dropped(table: Table, columns: list[str]) -> Table:
    """Return a table some columns of which will not leave."""
    changed = {name: replace(table.schema[name], drop=True) for name in columns}
    return replace(table, schema=table.schema.changed(changed))


def more_swaps(case: Situation, found: Met) -> list[Advice]:
    """Count the swaps that would meet the tolerance, where the plan makes none."""
    if case.plan.swap is not None or not isinstance(case.judge.tolerance, MaxRate | Ratio):
        return []
    against = most_dangerous(case, found.after)
    swapped = None if against is None else swap_to(case, found.masking, against, case.judge.tolerance)
    if swapped is None or swapped.swapping is None:
        return []
    risks = _attacked(case, swapped)
    worst, made = case.judge.worst(risks), swapped.swapping.swaps
    rate = None if worst is None else risks[worst.name].rate
    change = f"swap {made:,} pairs of records against {against!r}"
    if not swapped.swapping.met:
        change += ", all that can be"
    return [Advice(change, {"swaps": made, "rate": rate}, _passes(case, swapped, risks))]
