"""Kim and Winkler in one call: noise as tolerable or useful, then as few swaps as are needed."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import maskwell as mw
from maskwell.errors import BadPlan

WINKLER = mw.Linkage(largest_target_block=7, match_blocks=("BEDROOMS", "BATHS", "YR_BLT"))
AMOUNTS = ("INCOME", "HOME_VAL", "MORTGAGE", "MAINTAIN", "TAXES")


@pytest.fixture(scope="module")
def survey() -> Any:
    return mw.datasets.housing(5000)


def kim_winkler(survey: Any, tolerance: Any, **options: Any) -> mw.Masking:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.protect.kim_winkler(
            survey, WINKLER, tolerance, seed=1, exempt_values="REGION is what he is after", **options
        )


def test_noise_is_what_is_tolerable_where_that_is_less(survey: Any) -> None:
    masking = kim_winkler(survey, mw.MaxRate(0.2), r0=0.99)
    assert masking.mask.noise_sd_ratio == pytest.approx((0.01 / 0.99) ** 0.5)
    assert masking.card.columns == AMOUNTS
    assert any("as much as is tolerable" in str(note) for note in masking.notes)


def test_noise_is_what_is_useful_where_that_is_less(survey: Any) -> None:
    masking = kim_winkler(survey, mw.MaxRate(0.2), r0=0.1, epsilon=0.02)
    useful = mw.calibration.critical_noise(survey, attack=WINKLER, epsilon=0.02).critical_sd_ratio
    assert masking.mask.sd_ratio == pytest.approx(useful, rel=0.005)
    assert any("would save at most 2.0%" in str(note) for note in masking.notes)


def test_the_tolerance_holds_afterwards_and_one_swap_less_would_not_do(survey: Any) -> None:
    masking = kim_winkler(survey, mw.MaxRate(0.15), r0=0.97, epsilon=None)
    assert mw.attack(WINKLER, masking).rate <= 0.15
    assert masking.swapping.swaps > 0
    tried = {one.swaps: one.met for one in masking.swapping.trace}
    assert tried[masking.swapping.swaps]
    assert not tried[masking.swapping.swaps - 1]


def test_what_is_useful_is_that_of_the_columns_noised(survey: Any) -> None:
    masking = kim_winkler(survey, mw.MaxRate(0.9), epsilon=0.02, columns=("INCOME",))
    mask = mw.CorrelatedNoise(("INCOME",), sd_ratio=1.0)
    alone = mw.calibration.critical_noise(survey, attack=WINKLER, mask=mask, epsilon=0.02).critical_sd_ratio
    whole = mw.calibration.critical_noise(survey, attack=WINKLER, epsilon=0.02).critical_sd_ratio
    assert masking.mask.sd_ratio == pytest.approx(alone, rel=0.005)
    assert alone != pytest.approx(whole, rel=0.05)


def test_how_much_noise_must_be_said(survey: Any) -> None:
    with pytest.raises(BadPlan, match="say how much noise"):
        kim_winkler(survey, mw.MaxRate(0.15), epsilon=None)


def test_other_columns_may_be_noised_too(survey: Any) -> None:
    masking = kim_winkler(survey, mw.MaxRate(0.5), r0=0.97, epsilon=None, columns=("INCOME", "TAXES"))
    assert masking.card.columns == ("INCOME", "TAXES")


def test_one_column_may_be_named_alone(survey: Any) -> None:
    alone, listed = (
        kim_winkler(survey, mw.MaxRate(0.9), r0=0.97, epsilon=None, columns=columns)
        for columns in ("INCOME", ("INCOME",))
    )
    assert alone.card == listed.card
    assert alone.card.columns == ("INCOME",)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"r0": "a"}, "r0 is the lowest tolerable"),
        ({"r0": True}, "r0 is the lowest tolerable"),
        ({"r0": 1.2}, "r0 is the lowest tolerable"),
        ({"epsilon": "a"}, "epsilon is a share"),
        ({"columns": 3}, "columns are names"),
        ({"columns": ()}, "columns are names"),
        ({"columns": ("INCOME", 3)}, "columns are names"),
    ],
    ids=repr,
)
def test_wrong_types_are_refused_in_one_sentence(survey: Any, options: Any, said: str) -> None:
    with pytest.raises(BadPlan, match=said):
        kim_winkler(survey, mw.MaxRate(0.15), **options)
