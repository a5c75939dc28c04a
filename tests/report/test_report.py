"""The page a steward sees after masking."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest

import maskwell as mw
from maskwell.report import masking_summary, short, text_table
from maskwell.report.words import and_list, whole_lines
from maskwell.table import Table

OUT, INSIDE = Path("out"), Path("inside")


def without_total(table: Table) -> Table:
    return table.select([name for name in table.names if name != "TOTAL"])


def page(mask: Any, table: Table) -> str:
    return masking_summary(mw.apply(mask, table, seed=7), OUT, INSIDE)


def figures(text: str, column: str) -> list[str]:
    """The cells of a column's line in the table of figures."""
    found = re.search(rf"^  {column}  +(.*)$", text, re.MULTILINE)
    assert found is not None
    return found[1].split()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (11369.4, "11,369"),
        (-11369.4, "-11,369"),
        (607.04, "607.0"),
        (19.8312, "19.83"),
        (0.5, "0.5000"),
        (0.0012345, "0.001234"),
        (1e-4, "0.0001000"),
        (9.99e-5, "9.990e-05"),
        (1e15, "1.000e+15"),
        (math.nan, "-"),
    ],
)
def test_figures_have_four_digits(value: float, text: str) -> None:
    assert short(value) == text


def test_tables_are_aligned() -> None:
    assert text_table([("", "mean"), ("A", "1.5"), ("LONG", "12.25")]) == [
        "         mean",
        "  A       1.5",
        "  LONG  12.25",
    ]


def test_summary_says_what_was_done_and_where_it_lies(people: Table) -> None:
    text = page(mw.CorrelatedNoise(("INCOME", "TAX"), r0=0.9), people)
    assert text.startswith(
        "240 records masked\n\nwhat was done\n  INCOME, TAX: normal noise, correlated like the data\n"
    )
    open_values = int((people.status("TAX") == 0).sum())
    assert figures(text, "TAX")[0] == str(open_values)
    assert "The noise comes from a small seed: for studies, not for release." in text
    assert text.endswith(
        "may leave:     out/ (data, card, schema, codebook, manifest)\n"
        "stays inside:  inside/ (key, links, truth; readable by you alone)"
    )


def test_a_real_key_is_not_called_a_seed(people: Table) -> None:
    masking = mw.apply(mw.IndependentNoise("TAX", variance_ratio=0.1), people)
    assert "seed" not in masking_summary(masking, OUT, INSIDE)


def test_figures_are_those_of_the_released_records(people: Table) -> None:
    masking = mw.apply(
        mw.Chain((mw.IndependentNoise("TAX", variance_ratio=0.1), mw.Subsample(0.5))), people, seed=7
    )
    text = masking_summary(masking, OUT, INSIDE)
    assert text.startswith(f"{len(masking.release)} of 240 records released")
    assert "each record released with probability 0.5" in text
    released = [value for value in masking.release.to_frame()["TAX"].to_pylist() if value is not None]
    count, _, after = figures(text, "TAX")[:3]
    assert int(count) == len(released)
    assert after == short(sum(released) / len(released))


def test_the_size_of_the_noise_is_said_only_where_there_is_one_size(people: Table) -> None:
    chain = mw.Chain(
        (
            mw.IndependentNoise("INCOME", variance=100.0, clamp=True),
            mw.BiasNoise("TAX", bias_sd=0.1, sd=1.0),
            mw.RankSwap("AGE", window_ratio=0.1),
            mw.IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.1),
            mw.Recompute("TOTAL", ("WAGE", "OTHER")),  # type: ignore[arg-type]
        )
    )
    text = page(chain, people)
    assert figures(text, "INCOME")[5] == "10"
    assert figures(text, "TAX")[5] == "varies"
    assert figures(text, "AGE")[5] == "none"
    assert figures(text, "TOTAL")[5:7] == ["of", "parts"]
    assert "  TOTAL: recomputed from WAGE, OTHER" in text


def test_clamped_and_negative_values_are_pointed_out(people: Table) -> None:
    text = page(mw.IndependentNoise(("AGE", "WAGE"), variance_ratio=2.0), without_total(people))
    assert "clamped: carried by noise to a limit or a code" in text
    assert float(figures(text, "AGE")[6].rstrip("%")) > 0
    assert "now below zero in places where nothing was: WAGE; limits in the plan prevent it" in text


def test_a_summary_without_numbers_has_no_table(people: Table) -> None:
    text = page(mw.Pram("SEX", stay=0.9), people)
    assert "  SEX: changed at random (stays with probability 0.90 on average)" in text
    assert "open values" not in text


def test_figures_that_do_not_exist_are_dashes(people: Table) -> None:
    """Every value of a column becomes the top code, so nothing is left to take a mean of."""
    text = page(mw.Coding("WAGE", top=-1.0), without_total(people))
    cells = figures(text, "WAGE")
    assert (cells[2], cells[4]) == ("-", "-")
    assert cells[6] == "100.0%"


def test_lines_wrapped_for_a_terminal_are_whole_on_a_page() -> None:
    assert whole_lines(["a: one", "  goes on", "b: two"]) == ["a: one goes on", "b: two"]
    assert [and_list(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
