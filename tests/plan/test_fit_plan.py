"""The options of a fit in a file: the names, defaults and refusals are those of `fit`."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

from maskwell.analysis import FitOptions, fit
from maskwell.errors import BadPlan
from maskwell.plan import FitPlan
from maskwell.plan.fit_plan import OF_RESULTS

NOT_IN_FILES = {"formula", "release", "options", "given", "keep_truths", "progress"}


def test_its_keys_are_the_arguments_of_fit() -> None:
    arguments = {*signature(fit).parameters, *(item.name for item in fields(FitOptions))} - NOT_IN_FILES
    assert {item.name for item in fields(FitPlan)} - set(OF_RESULTS) == arguments


def test_its_defaults_are_those_of_fit() -> None:
    plan, options = FitPlan(), FitOptions()
    shared = [item.name for item in fields(FitOptions) if item.name not in NOT_IN_FILES]
    assert {name: getattr(plan, name) for name in shared} == {name: getattr(options, name) for name in shared}
    assert plan.arguments == {"family": "gaussian"}
    assert FitPlan.from_dict({"chains": 4, "draws": 9}).arguments == {"family": "gaussian", "draws": 9}


def test_a_file_for_true_values_keeps_their_draws(tmp_path: Path) -> None:
    (tmp_path / "fit.toml").write_text('truths = "t.csv"\n', encoding="utf-8")
    plan = FitPlan.read(tmp_path / "fit.toml", {"seed": 1})
    assert (plan.truths, plan.arguments["keep_truths"], plan.seed) == (tmp_path / "t.csv", True, 1)


def test_problems_of_values_are_listed_together() -> None:
    with pytest.raises(BadPlan) as refusal:
        FitPlan.from_dict({"family": "magic", "level": 2.0, "measurement_error": {"A": -1.0}, "chains": 0})
    assert len(refusal.value.problems) == 4
