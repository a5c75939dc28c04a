from __future__ import annotations

import numpy as np
import pytest

from maskwell.errors import BadPlan
from maskwell.laws import Multiplicative, Power, Step
from maskwell.laws.spread import SPREADS, spread_from_dict


def test_a_value_on_a_break_belongs_above_it():
    step = Step((0.0, 10.0), (1.0, 2.0, 0.0))
    assert step.factor(np.array([-1.0, 0.0, 9.9, 10.0, 11.0])).tolist() == [1, 2, 2, 0, 0]


def test_a_power_of_the_size_not_of_the_sign():
    assert Power(0.5, floor=4.0).factor(np.array([-9.0, 1.0, 16.0])).tolist() == [3, 2, 4]
    assert Power(1.0).factor(np.array([0.0])).tolist() == [0]


def test_bias_and_noise_add_their_variances():
    assert Multiplicative(0.3, 0.4).factor(np.array([-1.0, 0.0, 10.0])) == pytest.approx(
        [
            0.5,
            0.4,
            3.02655,
        ],
        abs=1e-5,
    )


@pytest.mark.parametrize("spread", [Step((1.0,), (0.5, 2.0)), Power(0.7, 1.0), Multiplicative(0.1, 2.0)])
def test_closed_values_have_no_size_and_data_give_the_spread_back(spread):
    assert np.isnan(spread.factor(np.array([np.nan]))).all()
    assert spread_from_dict(spread.to_dict()) == spread
    assert spread.form in SPREADS


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: Step((1.0,), (1.0,)), "one more ratio than breaks"),
        (lambda: Step((2.0, 1.0), (1.0, 1.0, 1.0)), "must rise"),
        (lambda: Step((1.0,), (-1.0, 1.0)), "must not be negative"),
        (lambda: Step((1.0,), (0.0, 0.0)), "nor all zero"),
        (lambda: Power(0.0), "above 0"),
        (lambda: Power(5.0), "at most at 4"),
        (lambda: Power(1.0, floor=-1.0), "must not be negative"),
    ],
)
def test_impossible_spreads_are_refused(wrong, said):
    with pytest.raises(BadPlan, match=said):
        wrong()
