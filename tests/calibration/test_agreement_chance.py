"""Chances of agreement against the law's own draws, products where noise is independent, and a published figure."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwell.attacks import Absolute, Exact, Relative
from maskwell.calibration.agreement_chance import (
    SHIFTS,
    Sum,
    box_chances,
    chances_of_most,
    noise_boxes,
    noised_ends,
    points_each,
    restrict_law,
)
from maskwell.errors import BadPlan
from maskwell.kernels.normal_box import normal_rectangle
from maskwell.keys import Key, Stream, ids_from_numbers
from maskwell.laws import Additive, Laplace, Normal, Outlet, Power

DRAWS = 40_000
CORRELATIONS = ((1.0, 0.6077, 0.5763), (0.6077, 1.0, 0.5116), (0.5763, 0.5116, 1.0))


def drawn(law, record, count=DRAWS):
    """Draw one record's released values many times."""
    stream = Stream(Key.from_seed(8), "test", "", ids_from_numbers(count))
    return law.draw(np.tile(record, (count, 1)), stream)


def test_a_product_over_fields_is_wrong():
    """A record at the means of three fields of Moore's Table 1, at his c = .1759 and q = .10: .244 for .313."""
    means, sds = np.array([97_698, 607, 19.83]), np.array([67_184, 359, 12.83])
    law = Additive(("A", "B", "C"), Normal(tuple(0.1759 * sds), CORRELATIONS), (Outlet(),) * 3)
    boxes = noise_boxes(law, 0.9 * means[None], 1.1 * means[None], means[None])
    alone = [
        box_chances(restrict_law(law, (name,)), (boxes[0][:, [j]].copy(), boxes[1][:, [j]].copy()), 2)
        for j, name in enumerate("ABC")
    ]
    assert np.prod([one.mean() for one in alone]) == pytest.approx(0.244, abs=5e-4)
    exact, _ = normal_rectangle(*boxes, np.array(CORRELATIONS), tolerance=1e-7)
    assert np.exp(exact[0]) == pytest.approx(0.3134, abs=5e-5)
    assert box_chances(law, boxes, 1024).mean() == pytest.approx(np.exp(exact[0]), abs=1e-6)


OUTLETS = {
    "plain": Outlet(),
    "unit": Outlet(Fraction(5)),
    "clamped": Outlet(Fraction(1), 60.0, 105.0),
    "codes beside": Outlet(Fraction(1), 60.0, None, avoid=(95.0, 96.0, 110.0)),
    "decimal unit": Outlet(Fraction(1, 10), None, 104.9),
}
RULES = [Relative(0.1), Relative(0.1, base="larger"), Absolute(6), Absolute(0), Exact()]


@pytest.mark.parametrize("outlet", OUTLETS.values(), ids=OUTLETS)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_chances_are_those_of_the_laws_own_draws(outlet, rule):
    law = Additive(("A", "B"), Normal((7.0, 9.0), ((1.0, 0.7), (0.7, 1.0))), (outlet, outlet))
    x = np.array([[100.0, 95.0]])
    low, high = (side[None] for side in rule.bounds(x[0]))
    chance = Sum.of(box_chances(law, noise_boxes(law, low, high, x), 256))
    z = drawn(law, x[0])
    agree = ((z >= low) & (z <= high)).all(axis=1)
    error = (chance.value * (1 - chance.value) / DRAWS) ** 0.5
    assert abs(agree.mean() - chance.value) <= 4 * error + chance.error


LAWS = {
    "laplace": Additive(("A",), Laplace((8.0,)), (Outlet(Fraction(1), None, 104.0),)),
    "log": Additive(("A",), Normal((0.2,)), (Outlet(Fraction(1), log_shift=3.0),), mean_corrected=True),
    "log, clamped low": Additive(("A",), Normal((0.9,)), (Outlet(Fraction(1), 0.0, None, log_shift=3.0),)),
    "spread": Additive(("A",), Normal((0.1,)), (Outlet(Fraction(1)),), spreads=(Power(1.0),)),
    "shrunk": Additive(("A",), Normal((8.0,)), (Outlet(Fraction(1)),), slope=0.8, offsets=(15.0,)),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("value", [2.0, 97.0])
def test_every_kind_of_noise_has_its_chances(law, value):
    x = np.array([[value]])
    low, high = np.array([[value - 9.0]]), np.array([[value + 9.0]])
    chance = box_chances(law, noise_boxes(law, low, high, x), 2).mean()
    z = drawn(law, x[0])
    agree = (z >= low) & (z <= high)
    assert abs(agree.mean() - chance) <= 4 * (chance * (1 - chance) / DRAWS) ** 0.5


@given(
    x=st.integers(-30, 30),
    low=st.floats(-40, 40),
    width=st.floats(0, 30),
    limits=st.sampled_from([(None, None), (-20.0, 20.0), (None, 8.0), (-3.0, None)]),
    avoid=st.sampled_from([(), (5.0,), (-1.0, 0.0, 1.0), (3.0, 6.0, 7.0)]),
)
def test_noised_ends_are_where_values_leave_between_the_bounds(x, low, width, limits, avoid):
    outlet = Outlet(Fraction(1), *limits, avoid=tuple(a for a in avoid if a not in limits))
    true, high = np.array([float(x)]), low + width
    lower, upper = noised_ends(outlet, np.array([low]), np.array([high]), true)
    noised = np.arange(-60.3, 60, 0.2)
    z = outlet.leave(noised.copy(), np.full(len(noised), float(x)))
    np.testing.assert_array_equal((noised > lower) & (noised < upper), (z >= low) & (z <= high))


def test_a_closed_value_agrees_whatever_the_noise():
    law = Additive(("A", "B"), Normal((1.0, 1.0), ((1.0, 0.5), (0.5, 1.0))), (Outlet(), Outlet()))
    x = np.array([[np.nan, 3.0], [np.nan, np.nan]])
    lower, upper = noise_boxes(law, x - 1, x + 1, x)
    np.testing.assert_allclose(lower, [[-np.inf, -1], [-np.inf, -np.inf]])
    np.testing.assert_allclose(upper, [[np.inf, 1], [np.inf, np.inf]])


def test_at_most_k_disagreements_of_independent_fields_is_a_sum_over_outcomes():
    law = Additive(tuple("ABCD"), Normal((1.0,) * 4), (Outlet(),) * 4)
    x = np.array([[0.0, 0.0, 0.0, 0.0], [0.0, np.nan, 0.0, 0.0]])
    half = np.array([0.5, 1.0, 0.3, 2.0])
    boxes = noise_boxes(law, x - half, x + half, x)
    single = np.where(
        np.isnan(x),
        1.0,
        [
            [
                box_chances(
                    restrict_law(law, (n,)), (boxes[0][:1, [j]].copy(), boxes[1][:1, [j]].copy()), 2
                ).mean()
                for j, n in enumerate("ABCD")
            ]
        ],
    )
    for k in range(5):
        found = chances_of_most(law, boxes, ~np.isnan(x), np.array([k, k])).mean(axis=1)
        for t, p in enumerate(single):
            expected = sum(
                np.prod(np.where(outcome, p, 1 - p))
                for outcome in product((0, 1), repeat=4)
                if 4 - sum(outcome) <= k
            )
            assert found[t] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 2])
def test_at_most_k_disagreements_of_correlated_fields_is_what_draws_show(k):
    law = Additive(("A", "B", "C"), Normal((9.0, 8.0, 7.0), CORRELATIONS), (Outlet(Fraction(1)),) * 3)
    x = np.array([[100.0, 95.0, 60.0]])
    low, high = (side[None] for side in Relative(0.1).bounds(x[0]))
    found = chances_of_most(law, noise_boxes(law, low, high, x), ~np.isnan(x), np.array([k]))
    z = drawn(law, x[0])
    agree = ((z < low) | (z > high)).sum(axis=1) <= k
    assert abs(agree.mean() - found.mean()) < 4 * agree.std() / DRAWS**0.5


def test_a_record_that_disagrees_already_has_no_chance():
    law = Additive(("A",), Normal((1.0,)), (Outlet(),))
    x = np.array([[0.0]])
    boxes = noise_boxes(law, x - 1, x + 1, x)
    np.testing.assert_array_equal(
        chances_of_most(law, boxes, ~np.isnan(x), np.array([-1])), np.zeros((1, SHIFTS))
    )


def test_too_many_subsets_are_refused():
    names = tuple(f"c{i}" for i in range(20))
    law = Additive(names, Normal((1.0,) * 20), (Outlet(),) * 20)
    x = np.zeros((1, 20))
    with pytest.raises(BadPlan, match="10 of 20 fields may disagree in"):
        chances_of_most(law, noise_boxes(law, x - 1, x + 1, x), ~np.isnan(x), np.array([10]))


def test_many_boxes_get_fewer_points():
    assert [points_each(n) for n in (1, 771, 10**7)] == [128, 32, 8]
