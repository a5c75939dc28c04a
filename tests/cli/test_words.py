"""What the library says in Python's words, said with options."""

from __future__ import annotations

import pytest

from maskwell.cli.words import in_options


@pytest.mark.parametrize(
    ("said", "in_words"),
    [
        ("give its card, or take NearestRecord", "give its card, or take --intruder nearest"),
        ("or take distance='euclid'", "or take --distance euclid"),
        ("leave it out of fields, or", "leave it out of --fields, or"),
        ("kernel='paper' is not: kernel='coherent' works", "--kernel paper is not: --kernel coherent works"),
        ("helpers=2,000 are more than there are", "--helpers 2,000 are more than there are"),
        ("mean_over_sd is a number", "--mean-over-sd is a number"),
        ("add a matching block, or use assignment='best'", "add a matching block, or leave --one-to-one out"),
        ("leave the one-to-one assignment out", "leave --one-to-one out"),
        ("prior from: give one ({'sd:A': ...}), or leave the column", "prior from: leave the column"),
        ("for an outsider take marginal='gaussian'", "for an outsider take --marginal gaussian"),
        ("NearestRecord: 3 targets, 4 links claimed", "NearestRecord: 3 targets, 4 links claimed"),
        ("the distance is far and the helpers are none", "the distance is far and the helpers are none"),
    ],
)
def test_options_stand_for_what_python_calls_otherwise(said: str, in_words: str) -> None:
    assert in_options(said) == in_words
