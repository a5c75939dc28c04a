"""Cells that a spreadsheet would run are told of, and come back as they were written."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.errors import MaskwellWarning
from maskwell.io.spreadsheets import formula_columns, formula_warning
from maskwell.masking.codebook import codebook
from maskwell.schema import Column, Schema
from maskwell.table import Table

HOSTILE = ("=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\tx", "\rx", "- none")
HARMLESS = ("-1", "+2", "-3.5e2", "-,5", "a=b", "-", "north", "", "1-2", "−2")


def table_of(texts: tuple[str, ...], name: str = "answer") -> Table:
    data = pa.table({name: list(texts), "x": np.linspace(-5.0, 5.0, len(texts))})
    schema = Schema((Column(name, "text"), Column("x", "continuous")))
    return Table.from_frame(data, schema)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_text_that_a_spreadsheet_would_run_is_found(text: str) -> None:
    assert formula_columns(table_of((text, "well"))) == ("answer",)


def test_numbers_and_other_texts_are_left_alone() -> None:
    assert formula_columns(table_of(HARMLESS)) == ()
    assert formula_warning(table_of(HARMLESS)) is None


def test_names_of_columns_and_codes_count_too() -> None:
    assert formula_columns(table_of(("a", "b"), name="=A1")) == ("=A1",)
    coded = Schema((Column("x", "continuous", missing=("=NA()",)),))
    data = pa.table({"x": ["1", "=NA()", "3"]})
    assert formula_columns(Table.from_frame(data, coded)) == ("x",)


def test_such_texts_are_written_as_they_are_with_a_warning(tmp_path: Path) -> None:
    table = table_of((*HOSTILE, *HARMLESS))
    with pytest.warns(MaskwellWarning, match="column 'answer' has texts that begin with"):
        mw.write(table, tmp_path / "a.csv")
    back = mw.read(tmp_path / "a.csv", table.schema)
    assert back.array("answer").fill_null("").to_pylist() == table.array("answer").fill_null("").to_pylist()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.write(table, tmp_path / "a.parquet")


def test_the_codebook_tells_of_them_and_runs_nothing_itself() -> None:
    name = "<img src=x onerror=alert(1)>"
    table = table_of(("=1", "b", "c"), name=name)
    schema = table.schema.changed(
        {
            name: Column(name, "text", description="[me](javascript:alert(1))\n# a `head` | <b>"),
            "x": table.schema["x"],
        }
    )
    text = codebook(mw.Release(Table.from_frame(table.to_frame(), schema), mw.NoiseCard()))
    assert "## In a spreadsheet" in text
    assert "<" not in text
    assert "\n# a" not in text
    assert "\\[me](javascript" in text
    assert "\\`head\\` \\|" in text
