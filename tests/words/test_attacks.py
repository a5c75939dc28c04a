"""The words of attacks: clauses that depend on figures, and what is said more briefly in lists."""

from __future__ import annotations

import json
from math import inf, nan

import pytest

from maskwell.attacks.bayes.value_of_card_notes import DOUBTFUL, FAILED, USUAL
from maskwell.attacks.risk import LIMITS
from maskwell.notes import Note
from maskwell.words.attacks import BRIEF, WORDS, brief


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (
            Note("attacks.other_units", {"column": "PAY", "ratio": 1000.0}),
            "the typical PAY of the target file is 1,000 times that of the truth: is it in other units?",
        ),
        (
            Note("attacks.other_units", {"column": "PAY", "ratio": 0.01}),
            "the typical PAY of the target file is 1/100 of that of the truth: is it in other units?",
        ),
        (
            Note("attacks.no_open_value", {"column": "A", "sides": ("known", "released")}),
            "A has no open value in the intruder's records and the release",
        ),
        (
            Note(
                "attacks.em_unlike_matches",
                {"pairs": 12.4, "matches": 300, "against": ("A",), "off_truth": ("A", "B")},
            ),
            "the class that EM found does not look like matches: it holds 12 pairs where 300 are matches; agreement on "
            "A counts against it; its m is more than 0.1 off the true agreement on A, B",
        ),
        (
            Note("attacks.masked_as_planned", {"columns": ()}),
            "no noise yet: taken as masked are nothing (no key is a number); masked=... says otherwise",
        ),
        (
            Note("attacks.masked_without_card", {"columns": ()}),
            "the release has no card: taken as masked are no columns",
        ),
        (
            Note("attacks.spared_values", {"columns": {"A": 0.25}, "strays": 0.6, "counted": False}),
            "values that leave as they are, without noise (A 25.0%): not counted; of the others 60% and more come to "
            "lie among them",
        ),
        (
            Note("attacks.without_noise", {"columns": (), "directions": 2, "least": 1e-10}),
            "the card has no noise on 2 combinations of the fields: there he takes the rounding to the unit and 1e-10 "
            "of the variance for it",
        ),
        (
            Note("attacks.chains_not_converged", {"failed": 2, "groups": 9, "rhat": 1.3}),
            "NOT CONVERGED: 2 of 9 groups (R-hat up to 1.30): give more draws in Sampling",
        ),
        (
            Note("attacks.unknown_parameters", {"sd": ("A", "B"), "scale": ("C",)}),
            "unknown: the sd of the noise of A, B and one factor (scale) on the sds of C (all else, correlations and "
            "sd ratios, is taken from the card)",
        ),
        (Note("attacks.helpers", {"helpers": 1}), "1 helper"),
        (Note("attacks.helpers", {"helpers": 1000}), "1,000 helpers"),
    ],
)
def test_clauses_depend_on_figures(note: Note, said: str) -> None:
    assert str(note) == said


def test_lists_of_intruders_say_less() -> None:
    unused = Note("attacks.not_used", {"columns": ("AGE", "SEX")})
    assert brief(unused) == "left in clear and NOT USED: AGE, SEX"
    assert str(unused).startswith(f"{brief(unused)} (who knows them finds more")
    assert brief(Note("attacks.upper_bound")) == str(Note("attacks.upper_bound"))


def test_codes_that_are_asked_for_are_in_the_table() -> None:
    assert {*LIMITS, *DOUBTFUL, *USUAL, *BRIEF} <= set(WORDS)


def test_failures_are_those_that_did_not_come_to_an_end() -> None:
    assert {code for code, one in WORDS.items() if one.severity == "failure"} == {
        *FAILED,
        "attacks.wrong_links",
    }


def test_json_has_figures_and_text_and_no_number_that_json_lacks() -> None:
    figures = {"draws": 5, "rhat": inf, "ess": nan}
    written = Note("attacks.chains_sampled", figures).to_dict()
    assert written["figures"] == {"draws": 5, "rhat": None, "ess": None}
    assert (written["code"], written["severity"]) == ("attacks.chains_sampled", "info")
    assert "R-hat up to inf" in json.loads(json.dumps(written, allow_nan=False))["text"]
