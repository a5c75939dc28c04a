"""What is tolerated, and how many swaps that asks for."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.errors import BadPlan
from maskwell.tolerances import (
    TOLERANCES,
    ExpectedH,
    MaxRate,
    ProbH,
    Ratio,
    SwapShare,
    tolerance_from_dict,
)


def test_moores_examples():
    """Section XII: 115 correct and 54 incorrect links of 771 targets (0.15 x 771 is 115.65, printed as 117)."""
    assert MaxRate(0.15).met(115, 54, 771)
    assert MaxRate(0.15).needed(115, 54, 771) == 0
    assert not Ratio(2.0).met(115, 54, 771)
    assert Ratio(2.0).needed(115, 54, 771) == 3


@pytest.mark.parametrize(("correct", "needed"), [(115, 0), (115.65, 0), (115.66, 1), (116, 1), (200, 85)])
def test_a_rate_asks_for_whole_swaps(correct, needed):
    assert MaxRate(0.15).needed(correct, 0, 771) == needed
    assert MaxRate(0.15).met(correct, 0, 771) == (needed == 0)
    assert MaxRate(0.15).met(correct - needed, needed, 771)


@pytest.mark.parametrize("ratio", [0.5, 1.0, 2.0, 3.5])
@pytest.mark.parametrize("correct", [0, 7, 60, 61.4, 115])
def test_a_ratio_is_met_by_what_it_needs_and_by_no_less(ratio, correct):
    tolerance, incorrect = Ratio(ratio), 54.0
    needed = tolerance.needed(correct, incorrect, 771)
    assert tolerance.met(correct - needed, incorrect + needed, 771)
    assert needed == 0 or not tolerance.met(correct - needed + 1, incorrect + needed - 1, 771)


def test_a_share_is_of_the_records_at_risk():
    assert [SwapShare(share).swaps(109) for share in (0, 0.1, 0.5, 1)] == [0, 11, 55, 109]
    assert SwapShare(0.1).swaps(110) == 11


@pytest.mark.parametrize(
    "tolerance", [MaxRate(0.15), Ratio(2.0), SwapShare(0.1), ExpectedH(3), ProbH(3, 0.1)], ids=str
)
def test_tolerances_come_back_from_plain_data(tolerance):
    assert tolerance_from_dict(tolerance.to_dict()) == tolerance
    assert type(tolerance) in TOLERANCES.values()


@pytest.mark.parametrize(
    "make", [lambda: MaxRate(1.5), lambda: Ratio(-1), lambda: Ratio(float("inf")), lambda: SwapShare(-0.1)]
)
def test_what_is_no_share_is_refused(make):
    with pytest.raises(BadPlan, match=r"takes a (share|number)"):
        make()


@pytest.mark.parametrize("name", ["max_rate", "max_ratio", "swap_share", "expected_h"])
@pytest.mark.parametrize("value", ["0.1", None, True, [0.1], 0.1j, float("nan")], ids=repr)
def test_what_is_no_number_is_refused_in_one_sentence(name, value):
    with pytest.raises(BadPlan, match=rf"^{name} takes a (share|number) .*, not "):
        TOLERANCES[name](value)


def test_numbers_of_numpy_are_numbers():
    assert MaxRate(np.float64(0.15)) == MaxRate(0.15)
    assert Ratio(np.int64(2)) == Ratio(2)


@pytest.mark.parametrize(
    ("below", "at_most"), [(0, 0.1), (2.5, 0.1), (True, 0.1), (3, 1.5), (3, "0.1"), (3, None)]
)
def test_a_chance_of_h_needs_a_count_and_a_share(below, at_most):
    with pytest.raises(BadPlan, match=r"^prob_h takes a (whole number|share) "):
        ProbH(below, at_most)
