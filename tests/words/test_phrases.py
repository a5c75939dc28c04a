"""Small phrases that sentences are made of."""

from __future__ import annotations

from maskwell.words.phrases import (
    count_phrase,
    name_list,
    percent_phrase,
    quoted_list,
    share_phrase,
    text_table,
)


def test_names_are_listed_as_one_reads_them() -> None:
    assert [name_list(names) for names in ((), ("a",), ("a", "b"), ("a", "b", "c"))] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert quoted_list(("a", "b")) == "'a', 'b'"


def test_counts_have_their_noun() -> None:
    assert (count_phrase(1, "draw"), count_phrase(2000, "draw")) == ("1 draw", "2,000 draws")


def test_shares_that_are_not_nothing_do_not_read_so() -> None:
    assert [share_phrase(share) for share in (0.5, 0.01, 0.004)] == ["50%", "1%", "less than 1%"]
    assert [percent_phrase(share) for share in (0.3, 0.125, 0.0001)] == ["30%", "12.5%", "0.01%"]


def test_tables_are_aligned() -> None:
    assert text_table([("", "mean"), ("A", "1.5"), ("LONG", "12.25")]) == [
        "         mean",
        "  A       1.5",
        "  LONG  12.25",
    ]
