"""A tolerance holds only against intruders who were tried; of a sample the unsafe end of the interval must meet it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwell as mw
from maskwell.attacks import NearestRecord, Risks, Sample
from maskwell.attacks.bayes.matching_posterior.ceiling_bound import Ceiling
from maskwell.attacks.risk import wilson
from maskwell.attacks.targets import Quantiles
from maskwell.errors import BadPlan
from maskwell.pipeline import release
from maskwell.pipeline.tolerance_checks import Judge
from maskwell.report.first_screen import first_screen
from maskwell.report.summary import release_summary
from maskwell.tolerances import ExpectedH, MaxRate, ProbH, Ratio

from .homes import KEY, NOISE, folder, homes, plan_in, short_audit

__all__ = ["folder", "short_audit"]

pytestmark = pytest.mark.usefixtures("short_audit")

RANKS = {"mask": "RankSwap", "columns": ["X", "Y"], "window_ratio": 0.6}
BOTH = [
    {"name": "nearest", "attack": "NearestRecord"},
    {"name": "law", "attack": "BayesIntruder"},
]


@pytest.fixture(scope="module")
def masking() -> mw.Masking:
    return mw.apply(mw.CorrelatedNoise(("X", "Y"), r0=0.5), homes(), key=KEY)


def judge(tolerance: object) -> Judge:
    return Judge(tolerance, ("nearest",), "all", homes())


def test_of_a_sample_the_upper_end_of_the_interval_is_judged(masking: mw.Masking) -> None:
    risk = mw.attack(NearestRecord(targets=Sample(100)), masking)
    assert risk.interval == wilson(risk.rate, 100)
    high = risk.interval[1]
    assert risk.rate < high
    (met,) = judge(MaxRate(high + 1e-6)).standings(Risks({"nearest": risk}))
    (unmet,) = judge(MaxRate(high - 1e-6)).standings(Risks({"nearest": risk}))
    assert met.met
    assert not unmet.met
    assert unmet.figure == risk.rate
    assert unmet.end == pytest.approx(high)
    assert f"of all it may be as much as {high:.2%} (95%)" in unmet.said


def test_of_all_targets_the_rate_itself_is_judged(masking: mw.Masking) -> None:
    risk = mw.attack(NearestRecord(), masking)
    (standing,) = judge(MaxRate(risk.rate)).standings(Risks({"nearest": risk}))
    assert standing.met
    assert standing.end is None
    assert "may be" not in standing.said


def test_a_bound_on_the_ceiling_is_judged_by_its_upper_end(masking: mw.Masking) -> None:
    bound = Ceiling(0.4, 0.38, 0.42, 32, 1_000, 192, 32, True)
    risk = replace(mw.attack(NearestRecord(), masking), ceiling=bound)
    assert risk.rate < 0.4
    (met,) = judge(MaxRate(0.42)).standings(Risks({"nearest": risk}))
    (unmet,) = judge(MaxRate(0.41)).standings(Risks({"nearest": risk}))
    assert met.met
    assert not unmet.met
    assert unmet.end == pytest.approx(0.42)
    assert "with all that can be known it may be as much as 42.00% (95%)" in unmet.said
    (ratio,) = judge(Ratio(0.42 / 0.58 - 1e-6)).standings(Risks({"nearest": risk}))
    assert ratio.end == pytest.approx(0.42 / 0.58)
    assert not ratio.met


def test_other_tolerances_are_judged_by_their_unsafe_end_too(masking: mw.Masking) -> None:
    risks = Risks({"nearest": mw.attack(NearestRecord(targets=Sample(100)), masking)})
    for tolerance in (Ratio(0.5), ProbH(below=3, at_most=0.4)):
        (standing,) = judge(tolerance).standings(risks)
        assert standing.end is not None
        assert standing.end > standing.figure
    (standing,) = judge(ExpectedH(3)).standings(risks)
    assert standing.end is not None
    assert standing.end < standing.figure
    assert "may be as little as" in standing.said


def test_chosen_records_say_nothing_of_the_others(masking: mw.Masking) -> None:
    risks = Risks({"nearest": mw.attack(NearestRecord(targets=Quantiles((0.1, 0.5, 0.9))), masking)})
    (said,) = judge(MaxRate(0.9)).not_judged(risks)
    assert "3 chosen records alone" in said


def test_who_is_held_and_cannot_be_tried_leaves_it_not_judged(folder: Path) -> None:
    outcome = release(plan_in(folder, RANKS, intruders=BOTH, tolerance={"max_rate": 0.9}), key=KEY)
    assert outcome.verdict == "not judged"
    assert outcome.reasons == ()
    (said,) = outcome.not_judged
    assert said.startswith("law is held to the tolerance and cannot be tried: ")
    assert outcome.masking is None
    assert any("[tolerance.not_held]" in one.change for one in outcome.advice)
    assert release_summary(outcome).splitlines()[1].startswith("NOT JUDGED")
    assert not (folder / "out").exists()


def test_who_is_not_held_goes_on_record_with_the_reason(folder: Path) -> None:
    limits = {
        "limits": {"informed links": {"warn": 0.9, "fail": 0.95}, "outer links": {"warn": 0.9, "fail": 0.95}}
    }
    held = {"max_rate": 0.9, "not_held": {"law": "rank swapping has no law to know"}}
    plan = plan_in(folder, RANKS, intruders=BOTH, tolerance=held, audit=limits)
    assert plan.held(dict(plan.intruders)) == ("nearest",)
    outcome = release(plan, key=KEY, despite="for its figures")
    assert outcome.not_judged == ()
    assert json.loads(json.dumps(outcome.to_dict()))["not_held"] == held["not_held"]
    said = "not held to the tolerance by the plan: law (rank swapping has no law to know)"
    assert said in release_summary(outcome)
    assert "rank swapping has no law to know" in str(first_screen(outcome))
    assert "rank swapping has no law to know" in repr(outcome)
    public = b"".join(path.read_bytes() for path in (folder / "out").iterdir())
    assert b"no law to know" not in public


def test_a_reason_why_somebody_is_not_held_is_asked_for(folder: Path) -> None:
    with pytest.raises(BadPlan, match="needs a reason, which goes on record"):
        plan_in(folder, tolerance={"not_held": {"nearest": " "}})
    with pytest.raises(BadPlan, match=r"\[tolerance.not_held\]: there is no intruder 'nearst'"):
        plan_in(folder, tolerance={"not_held": {"nearst": "why"}})
    with pytest.raises(BadPlan, match="take him out of one"):
        plan_in(folder, tolerance={"intruders": ["nearest"], "not_held": {"nearest": "why"}})
    with pytest.raises(BadPlan, match="not_held must be a table of reasons"):
        plan_in(folder, tolerance={"not_held": ["nearest"]})


def test_a_bound_on_the_ceiling_judges_rates_of_all_targets_alone(masking: mw.Masking) -> None:
    from dataclasses import replace

    from maskwell.attacks.bayes.matching_posterior.ceiling_bound import Ceiling
    from maskwell.report.words import sampled_words

    bound = Ceiling(0.2, 0.15, 0.25, cells=32, targets=300, told=192, sampled=4, converged=True)
    risk = replace(mw.attack(NearestRecord(), masking), ceiling=bound)
    risks = Risks({"nearest": risk})
    assert risk.rate < 0.25
    (met,) = judge(MaxRate(0.2501)).standings(risks)
    (unmet,) = judge(MaxRate(0.2499)).standings(risks)
    assert (met.met, unmet.met) == (True, False)
    assert judge(MaxRate(0.3)).not_judged(risks) == []
    assert "bounded for all targets" in judge(Ratio(2.0)).not_judged(risks)[0]
    assert sampled_words(risk) == "bounded: at most 25.0%"


def test_who_exceeds_the_tolerance_and_is_not_held_without_a_word_leaves_it_not_judged(folder: Path) -> None:
    limits = {
        "limits": {"informed links": {"warn": 0.9, "fail": 0.95}, "outer links": {"warn": 0.9, "fail": 0.95}}
    }
    rates = release(plan_in(folder, tolerance={"max_rate": 0.9}, audit=limits), key=KEY).after
    between = (rates["nearest"].rate + rates["informed"].rate) / 2
    assert rates["nearest"].rate < between < rates["informed"].rate
    named = {"max_rate": between, "intruders": ["nearest"]}
    elsewhere = {"release": "out-1", "private": "inside-1"}
    plan = plan_in(folder, tolerance=named, audit=limits, output=elsewhere)
    outcome = release(plan, key=KEY, advise=False)
    assert outcome.verdict == "not judged"
    (said,) = outcome.not_judged
    assert said.startswith("informed: rate of correct links")
    assert said.endswith("say why he does not count under [tolerance.not_held]")
    excused = {"max_rate": between, "not_held": {"informed": "the card stays inside"}}
    plan = plan_in(folder, tolerance=excused, audit=limits, output={"release": "out2", "private": "inside2"})
    outcome = release(plan, key=KEY)
    assert outcome.passed
    found = outcome.audit["informed links"].said
    said = (
        f"by the audit {found}: more than the {100 * between:.4g}% tolerated, which is not held against him"
    )
    assert outcome.to_dict()["beyond_tolerance"] == said
    assert "but by the audit an intruder" in release_summary(outcome)
    assert "tolerated, which is not held against him" in str(first_screen(outcome))
    given = outcome.to_dict()["laxer_limits"]
    assert [one.split(" (")[0] for one in given] == ["informed links", "outer links"]
    assert "fails above 0.95; by the audit's own limits warns above 0.1, fails above 0.15" in given[0]
    for shown in (release_summary(outcome), repr(outcome), str(first_screen(outcome))):
        assert "informed links (warns above 0.9" in " ".join(shown.split())
    public = b"".join(path.read_bytes() for path in (folder / "out2").iterdir())
    assert b"laxer" not in public


def test_who_knows_the_law_and_does_not_use_it_well_is_no_strong_one(folder: Path) -> None:
    """The forward kernel leaves f(z) out: the audit tries who does not, and his rate is held against the tolerance."""
    limits = {"limits": {name: {"warn": 0.9, "fail": 0.95} for name in ("informed links", "outer links")}}
    weak = [{"name": "forward", "attack": "BayesIntruder", "kernel": "forward"}]
    free = {"tolerance": {"max_rate": 0.9}, "audit": limits}
    first = release(plan_in(folder, intruders=weak, **free), key=KEY)
    (found,) = [one for one in first.audit.findings if one.check == "informed links"]
    forward = first.after["forward"].rate
    assert found.figure > forward
    named = {"tolerance": {"max_rate": (forward + found.figure) / 2}, "audit": limits, "intruders": weak}
    named["output"] = {"release": "out-1", "private": "inside-1"}
    outcome = release(plan_in(folder, **named), key=KEY, advise=False)
    assert outcome.verdict == "not judged"
    assert any("nobody held to the tolerance was as strong" in one for one in outcome.not_judged)


def test_records_outside_the_targets_are_looked_for_too(folder: Path) -> None:
    """Targets in one half of the file, where the others are found more often: the audit looks for all."""
    table = homes()
    south = np.asarray(table.array("REGION")) == "south"
    few = int(min(south.sum(), (~south).sum()))
    limits = {"limits": {name: {"warn": 0.9, "fail": 0.95} for name in ("informed links", "outer links")}}
    some = {"targets": {"largest_target_block": few, "target_blocks": ["REGION"]}, "intruders": BOTH[1:]}
    outcome = release(plan_in(folder, tolerance={"max_rate": 0.9}, audit=limits, **some), key=KEY)
    assert outcome.after["law"].targets == few
    (found,) = [one for one in outcome.audit.findings if one.check == "informed links"]
    whole = mw.attack(mw.BayesIntruder(), outcome.masking)
    assert found.figure == max(whole.rate, outcome.after["law"].rate)


def of_a_sample(folder: Path, limit: float, **targets: str) -> Any:
    """Release half of the homes with light noise, to who knows the law."""
    masks = NOISE | {"r0": 0.7}, {"mask": "Subsample", "fraction": 0.5}
    limits = {"limits": {name: {"warn": 0.95, "fail": 0.99} for name in ("informed links", "outer links")}}
    named = {"tolerance": {"max_rate": limit}, "audit": limits, "intruders": BOTH[1:], "targets": targets}
    own = f"{len(targets)}-{limit:.3f}"
    named["output"] = {"release": f"out-{own}", "private": f"inside-{own}"}
    return release(plan_in(folder, *masks, **named), key=KEY, advise=False)


def test_of_a_sample_the_rate_among_the_released_is_held_against_the_tolerance(folder: Path) -> None:
    loose = of_a_sample(folder, 0.99).after["law"]
    assert loose.rate == loose.rate_of_released > 1.5 * loose.rate_of_all
    between = (loose.rate_of_released + loose.rate_of_all) / 2
    strict = of_a_sample(folder, between)
    assert strict.verdict == "refused"
    assert any(f"of {loose.targets} targets in the release" in one for one in strict.reasons)
    reason = "drawn inside, told to nobody"
    waived = of_a_sample(folder, between, presence_not_known=reason)
    assert waived.after["law"].rate == waived.after["law"].rate_of_all
    assert waived.passed
    assert waived.to_dict()["presence_not_known"] == reason
    for text in (repr(waived), release_summary(waived), str(first_screen(waived))):
        assert reason in " ".join(text.split())
    assert "Of the targets in the release" in str(first_screen(waived))


def test_who_does_not_know_that_his_target_is_in_it_needs_a_reason(folder: Path) -> None:
    unaware = [{"name": "law", "attack": "BayesIntruder", "response_knowledge": False}]
    with pytest.raises(BadPlan, match="response_knowledge = false needs a reason on record"):
        plan_in(folder, intruders=unaware)
    with pytest.raises(BadPlan, match="presence_not_known needs a reason"):
        plan_in(folder, targets={"presence_not_known": " "})
    assert plan_in(folder, intruders=unaware, targets={"presence_not_known": "secret"})


@pytest.mark.parametrize("weak", [{"attack": "Linkage"}, {"attack": "NearestRecord", "fields": ["X"]}])
def test_weak_intruders_alone_do_not_meet_a_tolerance_that_the_audit_exceeds(
    weak: dict[str, Any], folder: Path
) -> None:
    noise = NOISE | {"r0": 0.3}
    named = {"intruders": [{"name": "weak"} | weak], "tolerance": {"max_rate": 0.05}}
    outcome = release(plan_in(folder, noise, **named), key=KEY, advise=False)
    (found,) = [one for one in outcome.audit.findings if one.check == "informed links"]
    assert 0.05 < found.figure < 0.15
    assert outcome.verdict == "not judged"
    assert any("nobody held to the tolerance was as strong" in one for one in outcome.not_judged)
    named["tolerance"] = {"max_rate": 0.05, "not_held": {"knows the law": "the card stays inside"}}
    assert release(plan_in(folder, noise, **named), key=KEY, advise=False).not_judged == ()


def test_where_the_file_is_too_large_for_the_audits_best_intruder_weak_ones_judge_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwell.checks.links.MANY_PAIRS", 0)
    limits = {"limits": {name: {"warn": 0.9, "fail": 0.95} for name in ("informed links", "outer links")}}
    own = {"tolerance": {"max_rate": 0.9}, "audit": limits, "intruders": BOTH[:1]}
    outcome = release(plan_in(folder, **own), key=KEY, advise=False)
    assert outcome.verdict == "not judged"
    assert any("nobody who weighs records by the law was tried" in one for one in outcome.not_judged)
    own["tolerance"] |= {"not_held": {"knows the law": "the card stays inside"}}
    assert release(plan_in(folder, **own), key=KEY, advise=False).passed
