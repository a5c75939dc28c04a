"""The words of audits."""

from __future__ import annotations

from maskwell.notes import Note


def test_one_check_is_one() -> None:
    figures = {"looked_at": 1000, "records": 5000}
    assert str(Note("checks.sampled", {"checks": 1} | figures)).startswith("1 check looked at 1,000 of 5,000")
    assert str(Note("checks.sampled", {"checks": 2} | figures)).startswith("2 checks looked at")


def test_what_would_have_been_seen_is_said_where_anything_would() -> None:
    small = str(Note("checks.power", {"tests": 70, "records": None, "seen": ()}))
    assert small == "residuals: 70 tests against the card, figures are p-values (1 is no sign)"
    seen = ({"records": 30, "sd_ratio": 0.284, "mean_over_sd": 1.25},)
    assert str(Note("checks.power", {"tests": 70, "records": 900, "seen": seen})) == (
        "residuals: 70 tests against the card in 900 of the records, figures are p-values (1 is no sign); what would "
        "have been seen: in a class of 30 records noise of 0.28 times its sd, or off centre by 1.2 of them"
    )


def test_columns_that_were_not_tested_are_named() -> None:
    reasons = {"A": Note("checks.classes_without_chance"), "B": Note("checks.no_density", {"form": "swap"})}
    said = Note("checks.untested", {"columns": reasons})
    assert str(said) == "residuals not tested: A (classes are not random); B (a swap has no density)"
    assert said.to_dict()["figures"]["columns"]["B"]["figures"] == {"form": "swap"}
