"""Published figures beside ours: how they are compared, and how they are shown."""

from __future__ import annotations

import json
import tomllib
from importlib.resources import files

import numpy as np
import pytest

from maskwell.errors import BadPlan
from maskwell.studies import STUDIES, table_names
from maskwell.studies.results import (
    BY_RANGE,
    WIDTH,
    ExpectedTable,
    Study,
    StudyTable,
    TableCell,
    agree,
    quantile,
    read_expected,
)


@pytest.mark.parametrize(
    ("compare", "published", "within"),
    [
        ("shape", 7.0, None),
        ("band", 4.0, True),
        ("band", 6.0, True),
        ("band", 6.1, False),
        ({"points": 3}, 8.0, True),
        ({"points": 3}, 1.9, False),
        ({"exact": 2}, 5.004, True),
        ({"exact": 2}, 5.006, False),
    ],
)
def test_figures_are_compared_as_the_table_says(compare, published, within):
    assert agree(compare, published, 5.0, 4.0, 6.0) is within


def test_a_band_needs_replicates():
    assert agree("band", 5.0, 5.0, None, None) is None


@pytest.mark.parametrize("compare", ["bands", {"point": 3}, {"points": 3, "exact": 1}])
def test_an_unknown_comparison_is_refused(compare):
    with pytest.raises(BadPlan, match="band, points, exact or shape"):
        agree(compare, 5.0, 5.0, 4.0, 6.0)


@pytest.mark.parametrize("count", [2, 3, 20, 21, 100])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.95, 1.0])
def test_quantiles_are_those_of_numpy(count, share):
    values = np.random.default_rng(count).normal(size=count)
    assert quantile(list(values), share) == pytest.approx(np.quantile(values, share), rel=1e-12)


PUBLISHED = ExpectedTable(
    "4", "a table", compare={"points": 1}, cells={"a | x": 5, "b | x": {"published": 1, "compare": "band"}}
)


def test_our_figure_is_the_mean_and_its_band_that_of_the_replicates():
    table = PUBLISHED.table({"a | x": [5.0, 7.0, 9.0], "b | x": [1.0, 2.0], "b | y": [3.0]})
    assert table["a | x"] == TableCell("a | x", 5, 7.0, 5.0, 9.0, False, is_range=True)
    assert table["b | x"].within is True
    assert table["b | y"] == TableCell("b | y", None, 3.0, None, None, None)
    assert (table.rows, table.columns) == (("a", "b"), ("x", "y"))


@pytest.mark.parametrize("count", [2, 6, 19, 20, 21, 100])
def test_a_band_of_few_replicates_is_their_range(count):
    values = list(np.random.default_rng(count).normal(size=count))
    (cell,) = ExpectedTable("4", "a table").table({"a": values}).cells
    few = count < 20
    ends = (min(values), max(values)) if few else np.quantile(values, [0.05, 0.95])
    assert (cell.low, cell.high) == pytest.approx(tuple(ends), rel=1e-12)
    assert cell.is_range is few
    shown = StudyTable("4", (cell,)).lines()[1].split()
    assert shown == ["ours", "range" if few else "5-95%"]


@pytest.mark.parametrize(("count", "within"), [(19, True), (20, False)])
def test_a_published_figure_at_the_end_of_the_range_is_within_it_but_not_within_the_band(count, within):
    published = ExpectedTable("4", "a table", compare="band", cells={"a": 1})
    table = published.table({"a": [float(i) for i in range(1, count + 1)]})
    assert table["a"].within is within
    assert ("Compared with the range of the replicates" in table.note) is within
    free = ExpectedTable("4", "a table", compare={"points": 1}, cells={"a": 1}).table({"a": [1.0, 2.0]})
    assert free.note == ""


def test_columns_are_headed_by_what_their_own_bands_are():
    draws = {"a | x": [1.0, 2.0], "a | y": list(map(float, range(20))), "a | z": [1.5]}
    heads = ExpectedTable("4", "a table").table(draws).lines()[2].split()
    assert heads == ["ours", "range", "ours", "5-95%", "ours"]


def test_a_published_cell_that_the_study_has_not_is_a_fault():
    with pytest.raises(BadPlan, match=r"cells that the study has not: b \| x"):
        PUBLISHED.table({"a | x": [5.0]})


def test_notes_of_the_run_follow_those_of_the_table():
    table = ExpectedTable("4", "a table", note="first.").table({"a": [1.0]}, "second.")
    assert table.note == "first. second."


def study() -> Study:
    one = ExpectedTable(
        "1", "the first", unit="%", compare={"points": 3}, cells={"a": 1}, note="mind the gap"
    )
    two = PUBLISHED.table({"a | x": [5.0, 6.0], "b | x": [1.0, 2.0], "a | y": [1234.5, 1234.5]})
    return Study("made", (one.table({"a": [2.0, 4.0], "b": [7.0, 8.0]}), two), ("a note",), "A Paper")


def test_the_dictionary_has_the_agreed_shape():
    data = study().to_dict()
    assert list(data) == ["study", "tables", "notes"]
    assert all(list(table) == ["name", "cells"] for table in data["tables"])
    names = ["cell", "published", "ours", "low", "high", "within"]
    assert all(list(cell) == names for table in data["tables"] for cell in table["cells"])
    assert data["notes"] == [
        "table 1: the first; in %",
        "table 1: mind the gap",
        "table 1: low and high are the smallest and the largest replicate",
        "table 4: a table",
        f"table 4: {BY_RANGE}",
        "table 4: low and high are the smallest and the largest replicate",
        "a note",
    ]
    assert json.loads(json.dumps(data)) == data


def test_the_text_shows_published_beside_ours():
    assert study().text() == (
        "A Paper\n\n"
        "table 1: the first; %\n"
        "       published  ours       range  agree\n"
        "  a            1   3.0  2.0 to 4.0    yes\n"
        "  b                7.5  7.0 to 8.0\n"
        "  mind the gap\n\n"
        "table 4: a table\n"
        "                       x                                  y\n"
        "       published  ours       range  agree       ours               range\n"
        "  a            5   5.5  5.0 to 6.0    yes    1,234.5  1,234.5 to 1,234.5\n"
        "  b            1   1.5  1.0 to 2.0    yes\n"
        "  Compared with the range of the replicates: fewer than 20 have no 5-95% band.\n\n"
        "- a note"
    )


def test_wide_tables_go_on_below():
    names = [f"column {i}" for i in range(9)]
    cells = tuple(TableCell(f"row {r} | {n}", 1.0, 2.0, 1.0, 3.0) for r in range(2) for n in names)
    lines = StudyTable("wide", cells).lines()
    assert max(map(len, lines)) <= WIDTH
    assert sum(line.count("column") for line in lines) == 9
    assert sum(line.startswith("  row 0") for line in lines) > 1


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_says_what_was_published_and_how_it_is_compared(name):
    published = read_expected(name)
    assert published.paper
    assert tuple(published.tables) == table_names(name)
    for table in published.tables.values():
        assert table.title
        assert table.source or not table.cells
        for cell in table.cells:
            figure = table.published(cell)
            assert agree(table.comparison(cell), figure, figure, figure, figure) in (None, True)


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_is_packaged_whole(name):
    folder = files("maskwell.studies").joinpath(name)
    assert tomllib.loads(folder.joinpath("expected.toml").read_text(encoding="utf-8"))
    assert folder.joinpath("README.md").read_text(encoding="utf-8").startswith("# ")
