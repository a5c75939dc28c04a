"""Agreement along the noise: Moore's fine sweep, and what it shows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maskwell.attacks import Linkage
from maskwell.calibration import FINE_R0, agreement_curve
from maskwell.errors import BadPlan


def test_the_fine_sweep_is_moores(amounts):
    curve = agreement_curve(amounts(), attack=Linkage(fields=("A",)))
    np.testing.assert_allclose([point.r0 for point in curve.points], np.arange(999, 974, -1) / 1000)
    assert FINE_R0[0] == 0.999
    assert FINE_R0[-1] == 0.975
    agreeing = [point.agreeing for point in curve.points]
    assert agreeing == sorted(agreeing, reverse=True)
    assert agreeing[-1] > curve.floor.agreeing


def test_sizes_may_be_said_either_way(amounts):
    by_r0 = agreement_curve(amounts(), r0=[0.9])
    by_ratio = agreement_curve(amounts(), sd_ratios=[(0.1 / 0.9) ** 0.5])
    assert by_r0.points[0].agreeing == pytest.approx(by_ratio.points[0].agreeing)
    assert by_ratio.points[0].r0 == pytest.approx(0.9)


def test_it_is_written_and_shown(amounts):
    curve = agreement_curve(amounts(), sd_ratios=[0.1, 0.5])
    data = curve.to_dict()
    json.dumps(data, allow_nan=False)
    assert data["targets"] == 300
    assert curve.table.column_names[:3] == ["sd_ratio", "r0", "agreeing"]
    assert curve.table.num_rows == 2
    shown = repr(curve)
    assert "agreement on all 3 fields" in shown
    assert "no limit" in shown
    assert len(shown.splitlines()) == 5


def test_a_field_may_disagree(amounts):
    curve = agreement_curve(amounts(), sd_ratios=[0.3], disagreeing=1)
    assert curve.points[0].agreeing > agreement_curve(amounts(), sd_ratios=[0.3]).points[0].agreeing
    assert curve.points[0].correct is None
    assert "agreement on 2 of 3 fields" in repr(curve)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sd_ratios": [0.1], "r0": [0.9]}, "not both"),
        ({"r0": [1.0]}, "between 0 and 1"),
        ({"sd_ratios": [0.0]}, "positive numbers"),
        ({"sd_ratios": []}, "at least one"),
        ({"disagreeing": 3}, "from 0 to 2"),
        ({"disagreeing": -1}, "from 0 to 2"),
        ({"disagreeing": 0.5}, "whole number"),
        ({"disagreeing": True}, "whole number"),
        ({"sd_ratios": "a"}, "at least one number"),
        ({"r0": "a"}, "r0 must be at least one number"),
        ({"r0": [0.9, None]}, "r0 must be at least one number"),
    ],
)
def test_bad_sizes_are_refused(amounts, options, words):
    with pytest.raises(BadPlan, match=words):
        agreement_curve(amounts(), **options)
