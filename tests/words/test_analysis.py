"""Sentences of fits and forecasts whose form depends on their figures."""

from __future__ import annotations

import pytest

from maskwell.notes import Note
from maskwell.words.analysis import figure_above


@pytest.mark.parametrize(
    ("value", "text"), [(1.2, "1.200"), (1.0104, "1.0104"), (1.01003, "1.01003"), (1.01, "just over 1.01")]
)
def test_an_excess_is_written_with_the_digits_that_show_it(value: float, text: str) -> None:
    assert figure_above(value, 1.01) == text


@pytest.mark.parametrize(
    ("names", "counts", "text"),
    [
        ((), False, "columns of the model together separate the responses"),
        (("a",), True, "a separates the zeros from other counts"),
        (("a", "b"), False, "a and b together separate the responses"),
    ],
)
def test_separation_says_by_what(names: tuple[str, ...], counts: bool, text: str) -> None:
    rest = (
        "its coefficient rests on its prior" if len(names) == 1 else "their coefficients rest on their priors"
    )
    note = Note("analysis.joint_separation", {"names": names, "counts": counts})
    assert str(note) == f"{text} (no overlap, as released): {rest}"


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "1 record without a response informs"), (5, "5 records without a response inform")],
)
def test_records_without_a_response_are_counted(count: int, text: str) -> None:
    assert str(Note("analysis.unanswered_records", {"count": count})) == f"{text} the covariate model alone"


def test_swapped_columns_are_named() -> None:
    assert str(Note("analysis.clear_swaps", {"columns": ("a", "b"), "share": 0.05})) == (
        "the values of 'a', 'b' were exchanged in a share of 0.05 of the records and carry no noise; they are taken "
        "as released"
    )


@pytest.mark.parametrize("fit_uses_more", [False, True])
def test_a_forecast_by_moments_says_where_a_fit_does_better(fit_uses_more: bool) -> None:
    more = "; fit(...) uses more than moments here and may do a little better" if fit_uses_more else ""
    note = Note("analysis.forecast_asymptotic", {"fit_uses_more": fit_uses_more})
    assert str(note) == f"by the asymptotic covariance of the moment-corrected estimate{more}"


def test_a_subsample_widens_by_its_root() -> None:
    text = "of which a subsample of 25% of the records alone makes 100%"
    assert str(Note("analysis.subsample_widening", {"share": 0.25})) == text


def test_json_has_code_severity_figures_and_text() -> None:
    note = Note("analysis.single_groups", {"factor": "school", "single": 1, "groups": 9})
    assert note.to_dict() == {
        "code": "analysis.single_groups",
        "severity": "info",
        "figures": {"factor": "school", "single": 1, "groups": 9},
        "text": "1 of 9 groups of school has one record: it tells little about differences between groups",
    }
