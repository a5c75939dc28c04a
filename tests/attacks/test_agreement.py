"""Rules of agreement: what they say of two values is what their bounds say, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.attacks.agreement import Absolute, Exact, Relative, rule_from_dict
from maskwell.errors import BadPlan

RULES = [
    Relative(0.1),
    Relative(0.4, base="larger"),
    Relative(1 / 3),
    Relative(0.0),
    Relative(1.5),
    Absolute(0.5),
    Absolute(2 / 3),
    Absolute(0.0),
    Exact(),
]
values = st.floats(-1e9, 1e9, allow_nan=False).filter(lambda x: x == 0 or abs(x) > 1e-6)


@pytest.mark.parametrize("rule", RULES, ids=str)
@settings(max_examples=150, deadline=None)
@given(value=values, found=values)
def test_a_value_agrees_when_it_lies_between_the_bounds(rule, value, found):
    searching = np.array([value])
    low, high = (bound[0] for bound in rule.bounds(searching))
    tried = [value, found, -value, 0.0]
    if getattr(rule, "base", "target") == "target":  # where the base varies too, rounding blurs the very edge
        tried += [low, high, *(np.nextafter(x, way) for x in (low, high) for way in (-np.inf, np.inf))]
    tried = np.array(tried)
    agrees = rule.agrees(np.full(len(tried), value), tried)
    np.testing.assert_array_equal(agrees, (tried >= low) & (tried <= high))


def test_the_base_is_the_searching_value_or_the_larger():
    assert Relative(0.1).agrees(np.array([100.0, 90.0]), np.array([90.0, 100.0])).tolist() == [True, False]
    larger = Relative(0.1, base="larger")
    assert larger.agrees(np.array([100.0, 90.0]), np.array([90.0, 100.0])).tolist() == [True, True]


def test_opposite_signs_never_agree_with_the_larger_as_base():
    rule = Relative(0.99, base="larger")
    assert not rule.agrees(np.array([1e-9]), np.array([-5.0]))[0]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_rules_can_be_written_and_read(rule):
    assert rule_from_dict(rule.to_dict()) == rule


@pytest.mark.parametrize(
    "make",
    [
        lambda: Relative(-0.1),
        lambda: Relative(1.0, base="larger"),
        lambda: Relative(0.1, base="mean"),
        lambda: Absolute(-1),
        lambda: Absolute(float("nan")),
        lambda: rule_from_dict({"rule": "Close"}),
    ],
)
def test_rules_that_make_no_sense_are_refused(make):
    with pytest.raises(BadPlan):
        make()
