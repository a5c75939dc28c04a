"""Sentences of calibrations whose form depends on their figures."""

from __future__ import annotations

from typing import Any

import pytest

from maskwell.notes import Note

WIDENING = {"formula": "Y ~ X", "coefficient": "X", "wider": 0.421}
LEFT = {"measure": "rate of correct links", "mean": 0.2, "se": 0.01, "is_share": True, "at_zero": None}


@pytest.mark.parametrize(
    ("figures", "text"),
    [
        ({"times": 1}, "raised by 5%, and confirmed on others"),
        ({"times": 3}, "raised 3 times, by 5% first and more each time, and confirmed on others"),
    ],
)
def test_a_raised_scale_says_how_often(figures: dict[str, Any], text: str) -> None:
    first = "the scale that the search found was not confirmed on fresh draws: "
    assert str(Note("calibration.raised_scale", {**figures, "share": 0.05})) == first + text


@pytest.mark.parametrize(
    ("kind", "least", "text"),
    [
        ("rate", 0.2, "no rate below 0.2"),
        ("ratio", 0.25, "no ratio below 0.25"),
        ("ratio", None, "no link to be wrong"),
    ],
)
def test_a_floor_says_what_it_allows(kind: str, least: float | None, text: str) -> None:
    note = Note("calibration.floor", {"floor": 0.2, "kind": kind, "least": least})
    assert str(note) == (
        "judged by the given attacks alone: whoever looks at all that leaves unmasked finds 20.00% of the records "
        f"judged whatever the noise, which allows {text}"
    )


@pytest.mark.parametrize(("more", "text"), [((), ""), (("K1", "K2"), ", more in K1, K2")])
def test_bounded_noise_says_which_columns_pay(more: tuple[str, ...], text: str) -> None:
    figures = {**WIDENING, "factor": 1.23456, "less": ("X1", "X2"), "more": more}
    assert str(Note("calibration.bounded_noise", figures)) == (
        "one scale for all, 1.23 times the given one, meets the tolerance as well, but leaves X wider by 42.1% in "
        f"Y ~ X: less noise in X1, X2{text}"
    )


def test_a_trade_off_says_both_sides() -> None:
    figures = {**WIDENING, "at_most": 0.3, "at_bounds": LEFT, "times": 8.0, "others": ("K",)}
    assert str(Note("calibration.trade_off", figures)) == (
        "no noise was found that meets both: at the risk tolerance the least widening found is X wider by 42.1% in "
        "Y ~ X (at most 30% was asked); the noise that the bounds allow leaves a rate of correct links of 20.00% ± "
        "1.00%, with 8 times the sd of one scale for all in K, which no bound names"
    )
    nothing = figures | {"wider": None, "at_bounds": None, "others": ()}
    assert str(Note("calibration.trade_off", nothing)).endswith(
        "is X is lost in Y ~ X (at most 30% was asked); no noise that the plan allows keeps the bounds"
    )


def test_a_risk_that_rises_says_where() -> None:
    figures = {"means": (0.1, 0.2), "factors": (1.0, 4.0), "is_share": True, "scales": 12}
    assert str(Note("calibration.rising_risk", figures)) == (
        "the risk does not fall throughout as the scale grows (10.00% at 1 times the given scale, 20.00% at 4): "
        "searched by a grid of 12 scales for the weakest from which on all larger ones meet the tolerance"
    )
