"""What single commands read of a plan: a whole one, or the sections that they need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from maskwell.errors import BadPlan
from maskwell.plan import AttackPlan, CalibratePlan, CalibrationPlan, ReleasePlan, TolerancePlan

MASKS: dict[str, Any] = {
    "input": {"file": "a.csv"},
    "masks": [{"mask": "CorrelatedNoise", "columns": ["A"], "sd_ratio": 0.3}],
}
OUTPUT: dict[str, Any] = {"output": {"release": "out", "private": "inside"}}
SECTIONS: dict[str, Any] = {
    "tolerance": {"max_ratio": 2.0, "intruders": ["near"]},
    "calibrate": {"replicates": 5},
    "targets": {"match_blocks": ["R"]},
    "intruders": [{"name": "near", "attack": "NearestRecord"}],
    "swap": {"columns": ["A"]},
    "models": [{"formula": "A ~ B", "at_most_wider": 0.3}],
    "report": {"title": "People"},
}
WHOLE = MASKS | OUTPUT | SECTIONS


def test_a_whole_plan_serves_every_command() -> None:
    whole = ReleasePlan.from_dict(WHOLE)
    calibrated, attacked = CalibrationPlan.from_dict(WHOLE), AttackPlan.from_dict(WHOLE)
    for name in ("tolerance", "intruders", "targets"):
        assert getattr(calibrated, name) == getattr(attacked, name) == getattr(whole, name)
    assert (calibrated.masks, calibrated.calibrate, calibrated.models) == (
        whole.masks,
        whole.calibrate,
        whole.models,
    )
    assert (attacked.output, attacked.swap) == (whole.output, whole.swap)


def test_what_a_command_does_not_need_may_be_left_out() -> None:
    calibrated = CalibrationPlan.from_dict(MASKS)
    assert (calibrated.tolerance, calibrated.calibrate) == (TolerancePlan(), CalibratePlan())
    attacked = AttackPlan.from_dict({})
    assert (attacked.output, attacked.tolerance, attacked.intruders) == (None, None, ())


def test_paths_are_relative_to_the_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text('[output]\nrelease = "out"\nprivate = "inside"\n', encoding="utf-8")
    output = AttackPlan.read(tmp_path / "plan.toml").output
    assert output is not None
    assert (output.release, output.private) == (tmp_path / "out", tmp_path / "inside")


@pytest.mark.parametrize("kind", [CalibrationPlan, AttackPlan])
def test_all_problems_are_listed(kind: Any) -> None:
    wrong = WHOLE | {"tolerance": {"max_rat": 1}, "targts": {}, "calibrate": {"replicates": "x"}}
    with pytest.raises(BadPlan) as refusal:
        kind.from_dict(wrong)
    said = "\n".join(refusal.value.problems)
    for words in ("did you mean 'max_rate'?", "did you mean 'targets'?", "replicates must be a whole number"):
        assert words in said
