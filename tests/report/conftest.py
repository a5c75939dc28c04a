"""An outcome of a whole release, from real parts on a small sample of the built-in survey."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwell as mw
from maskwell.attacks import attack
from maskwell.calibration.measures import rate_measure
from maskwell.calibration.result import Calibration
from maskwell.calibration.trials import Trial
from maskwell.checks.findings import Audit, Finding, Limits
from maskwell.keys import Key
from maskwell.pipeline import Advice, Attempt, Outcome
from maskwell.plan import ReleasePlan
from maskwell.report import external_report, internal_report
from maskwell.utility import compare

TARGETS: dict[str, Any] = {"match_blocks": ("BEDROOMS", "BATHS")}
PLAN: dict[str, Any] = {
    "input": {"file": "housing.csv"},
    "masks": [{"mask": "CorrelatedNoise", "columns": "role: key", "r0": 0.97}],
    "tolerance": {"max_rate": 0.15},
    "calibrate": {"replicates": 20},
    "swap": {},
    "targets": {**TARGETS, "match_blocks": list(TARGETS["match_blocks"])},
    "models": [{"formula": "HOME_VAL ~ INCOME + TAXES", "at_most_wider": 0.3}],
    "report": {
        "title": "Housing survey 1993",
        "organisation": "Office of Figures",
        "contact": "data@office.example",
    },
    "output": {"release": "out/release", "private": "out/private"},
}
INTRUDERS = {
    "Winkler's matcher": mw.Linkage(**TARGETS),
    "nearest record": mw.NearestRecord(**TARGETS),
    "fingerprint alone": mw.Fingerprint(**TARGETS),
}


def plan_of(**changes: Any) -> ReleasePlan:
    """The plan of the outcome, sections changed."""
    return ReleasePlan.from_dict({**PLAN, **changes}, Path())


def trials(mask: Any) -> tuple[Trial, ...]:
    """Trials of a search and one on fresh draws, with rates that fall with the scale."""
    from maskwell.calibration.scale import scale_mask

    rng, out = np.random.default_rng(4), []
    for factor, round_ in (
        (1.0, "search"),
        (2.0, "search"),
        (1.4, "search"),
        (1.6, "search"),
        (1.6, "confirmation 1"),
    ):
        rates = np.clip(0.28 / factor + rng.normal(0, 0.01, (6, 1)), 0, 1)
        figures: dict[str, Any] = {"numerators": rates, "denominators": np.ones_like(rates)}
        figures |= {"zeros": np.full_like(rates, np.nan), "judged": np.full_like(rates, 200.0)}
        made = scale_mask(mask, factor)
        out.append(Trial(made, factor, round_, rate_measure(0.15), ("nearest record",), **figures))
    return tuple(out)


def calibration_of(mask: Any) -> Calibration:
    """A calibration as `calibrate` gives it, of trials that cost nothing."""
    made = trials(mask)
    last = made[-1]
    return Calibration(
        last.mask,
        mask,
        mw.MaxRate(0.15),
        "all",
        rate_measure(0.15),
        last,
        made[3],
        None,
        0.02,
        1,
        0.05,
        0.02,
        True,
        made,
    )


def audit_of() -> Audit:
    """An audit with a finding of every verdict."""
    limits = Limits(0.1, 0.15, reason="Moore's conjecture 5")
    return Audit(
        (
            Finding(
                "cells left true", 0.002, "pass", Limits(0.01, 0.05), "INCOME", "0.2% of the cells are true"
            ),
            Finding(
                "links in the outer 5%",
                0.12,
                "warn",
                limits,
                "INCOME",
                "of the records farthest out 12% are linked",
                "top-code the amounts or swap the outer records",
                {"INCOME": 0.12, "TAXES": 0.04},
            ),
            Finding(
                "earlier release", float("nan"), "not checked", Limits(), said="no earlier release was named"
            ),
            Finding("order", 0.01, "pass", Limits(0.05, 0.1), said="the order tells nothing", sampled=500),
        )
    )


@cache
def parts() -> dict[str, Any]:
    """Mask, swap and attack a small sample of the built-in survey once for all tests."""
    table = mw.datasets.housing(300)
    plan = plan_of()
    mask = plan.mask(table.schema)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of so few records some are alone in their block
        key = replace(Key.from_seed(5), seeded=False)  # as if from the operating system
        masking = mw.apply(mask, table, key=key)
        before = attack(INTRUDERS, masking)
        final = mw.swap(
            masking, INTRUDERS["nearest record"], mw.MaxRate(0.3), exempt_values="he knows the amounts"
        )
        after = attack(INTRUDERS, final)
    return {
        "masking": final,
        "before": before,
        "after": after,
        "swapping": final.swapping,
        "floor": after["fingerprint alone"],
        "calibration": calibration_of(mask),
        "utility": compare(final, models=["HOME_VAL ~ INCOME"]),
    }


def outcome_of(passed: bool = True, despite: str | None = None, **changes: Any) -> Outcome:
    """An outcome of these parts, some of them changed."""
    attempts = (
        Attempt(1.6, "calibrated", "nearest record", 0.32, 0.32, False),
        Attempt(1.6, "swapped", "nearest record", 0.14, 0.14, True, 40),
    )
    refused: dict[str, Any] = {
        "reasons": ("nearest record finds 32% of the targets, tolerated are 15%",),
        "advice": (Advice("more noise: r0 = 0.9", {"rate": 0.12, "il1s": None}, True), Advice("drop TAXES")),
    }
    left = passed or despite is not None
    given: dict[str, Any] = {
        **parts(),
        "plan": plan_of(),
        "passed": passed,
        "reasons": (),
        "despite": despite,
        "audit": audit_of(),
        "attempts": attempts,
        "card_risk": {"open": 0.14, "sealed": 0.09, "kept": 0.09},
        "held": ("Winkler's matcher", "nearest record"),
        "release": Path("out/release") if left else None,
        "private": Path("out/private") if left else None,
        **({} if passed else refused),
        **changes,
    }
    return Outcome(**given)


@pytest.fixture(scope="session")
def outcome() -> Outcome:
    """What passed."""
    return outcome_of()


@pytest.fixture(scope="session")
def seeded(outcome: Outcome) -> Outcome:
    """What passed, its noise from a small seed."""
    masking = outcome.masking
    return replace(outcome, masking=replace(masking, card=replace(masking.card, seeded=True)))


@pytest.fixture(scope="session")
def build() -> Callable[..., Outcome]:
    """Make an outcome, some of its parts changed; report, card, models and tolerance are sections of its plan."""

    def made(**changes: Any) -> Outcome:
        sections = {
            name: changes.pop(name) for name in ("report", "card", "models", "tolerance") if name in changes
        }
        return outcome_of(**({"plan": plan_of(**sections)} if sections else {}), **changes)

    return made


@pytest.fixture(scope="session")
def internal(outcome: Outcome) -> str:
    """The internal report of what passed."""
    return internal_report(outcome)


@pytest.fixture(scope="session")
def external(outcome: Outcome) -> str:
    """The external report of what passed, its card in the open."""
    return external_report(outcome)
