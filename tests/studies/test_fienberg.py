"""Fienberg's study on a synthetic file: shape only, but the answers are those of a plain numpy recipe."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
import pytest

from maskwell.studies import draw_study, table_names
from maskwell.studies.conclusions import FAILS, FEWEST, HOLDS, UNDECIDED
from maskwell.studies.fienberg import file, study
from maskwell.studies.fienberg.file import FIELDS, RECORDS, interviews
from maskwell.studies.fienberg.simulation import (
    BIAS_SD,
    GAMMA,
    SAMPLED,
    SCENARIOS,
    FienbergAnswer,
    FienbergJob,
    attack_records,
    mask_interviews,
    simulate,
)
from maskwell.studies.fienberg.statements import notes
from maskwell.studies.fienberg.study import run
from maskwell.studies.fienberg.tables import INSIDE, MASKED, ROWS, TABLES
from maskwell.studies.results import Study, read_expected

SMALL = 60  # records of the files of most tests


def nothing(*_: object) -> None:
    """Tell nobody."""


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(file, "RECORDS", SMALL)


@cache
def small() -> Study:
    return run(("ranks", "probability"), replicates=6, seed=3, progress=nothing)


# The file.


def test_the_file_looks_like_the_interviews(monkeypatch):
    monkeypatch.setattr(file, "RECORDS", RECORDS)
    civil, can_us, age, income = interviews(np.random.default_rng(1)).values(FIELDS).T
    assert (len(civil), RECORDS) == (662, 662)
    noise = 4.5 * np.sqrt(0.5)
    assert 6 - noise < civil.min() < civil.max() < 22 + noise
    assert 2 - noise < can_us.min() < can_us.max() < 18 + noise
    assert 18 - 9 < age.min() < age.max() < 80 + 9
    assert 0 < income.min() < 10_000
    assert income.max() > 80_000
    assert 0 < np.mean(income > 80_000) < 0.1


def test_every_file_is_another_and_the_generator_decides():
    one, again, other = (interviews(np.random.default_rng(seed)).values(FIELDS) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, again)
    assert not np.isclose(one, other).any()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_bias_and_noise_are_sixths_of_ranges(scenario):
    masking = mask_interviews(scenario, 1.0, 5, 0)
    x, z = (table.values(FIELDS) for table in (masking.truth, masking.masked))
    bias, noise = SCENARIOS[scenario]
    sds = np.hypot(bias * BIAS_SD * x, noise * np.ptp(x, axis=0) / 6)
    scaled = (z - x) / sds
    assert scaled.std() == pytest.approx(1, abs=4 / np.sqrt(2 * scaled.size))
    assert abs(scaled.mean()) < 4 / np.sqrt(scaled.size)


# The intruder.


@pytest.mark.parametrize("scenario", list(SCENARIOS)[1:])
def test_told_he_weighs_records_as_the_slides_say(scenario):
    masking = mask_interviews(scenario, 1.0, 6, 0)
    x, z = (table.values(FIELDS) for table in (masking.truth, masking.masked))
    bias, noise = SCENARIOS[scenario]
    variances = (noise * np.ptp(x, axis=0) / 6) ** 2 + (bias * BIAS_SD * z) ** 2
    logs = -0.5 * ((x[:, None, :] - z) ** 2 / variances + np.log(variances)).sum(axis=2)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    chances = weights / weights.sum(axis=1, keepdims=True)
    places = (chances > chances.diagonal()[:, None]).sum(axis=1)
    answer = attack_records(FienbergJob(scenario, prior=None), masking)
    assert answer.truth == pytest.approx(chances.diagonal().mean(), rel=1e-6)
    assert answer.first == pytest.approx(chances.max(axis=1).mean(), rel=1e-6)
    np.testing.assert_allclose(answer.places, np.bincount(np.minimum(places, 10), minlength=11))


def test_the_prior_is_gamma_on_the_variances():
    assert (GAMMA.family, GAMMA.theta_range, BIAS_SD) == ("gamma", (0.75, 1.25), pytest.approx(1 / 12))


def test_where_nothing_is_masked_the_true_record_is_first():
    table = small()["ranks"]
    assert table["1st | no bias or noise"].ours == SMALL
    assert table["beyond | no bias or noise"].ours == 0


def test_everybody_has_a_rank():
    table = small()["ranks"]
    for name in SCENARIOS:
        assert sum(table[f"{row} | {name}"].ours for row in ROWS) == pytest.approx(SMALL)


def test_noise_protects_and_bias_hardly_does():
    table = small()["ranks"]
    first = {name: table[f"1st | {name}"] for name in SCENARIOS}
    assert first["bias only"].low > first["noise only"].high
    assert first["bias only"].low > first["bias and noise"].high


def test_nobody_is_found_with_high_probability():
    table = small()["probability"]
    assert table["the true record | bias and noise"].ours < table["the true record | bias only"].ours < 0.5
    for name in SCENARIOS:
        assert table[f"the true record | {name}"].ours <= table[f"his first | {name}"].ours


# Half of the file.


@pytest.mark.parametrize("kernel", ["fms", "coherent"])
def test_who_was_not_released_is_told_apart_where_bias_is_told(kernel):
    job = FienbergJob("bias only", kernel, None, SAMPLED)
    found = simulate({job: 4}, 8, nothing)[job]
    gaps = np.array([one.out - one.inside for one in found])
    assert gaps.mean() > 4 * gaps.std(ddof=1) / 2 > 0
    assert all(one.places.sum() < SMALL for one in found)


def test_a_whole_release_has_no_such_outcome():
    job = FienbergJob("bias only", prior=None)
    (one,) = simulate({job: 1}, 8, nothing)[job]
    assert (one.out, one.inside, one.places.sum()) == (0.0, 0.0, SMALL)


# Tables and words.


def test_all_is_shape_only():
    assert {*table_names("fienberg")} == {*TABLES}
    for name, table in read_expected("fienberg").tables.items():
        assert table.compare == "shape", name
        assert "shape only" in table.note
    assert {one.within for table in small().tables for one in table.cells} == {None}


def test_what_the_slides_tell_is_there():
    cells = read_expected("fienberg")["ranks"].cells
    assert [cells[f"1st | {name}"] for name in SCENARIOS] == [319, 42, 295, 43]
    assert [cells[f"beyond | {name}"] for name in SCENARIOS] == [0, 448, 19, 451]


def test_the_slides_contradict_themselves_and_we_say_so():
    (said,) = [note for note in small().notes if "top five" in note]
    assert "The slides contradict themselves" in said
    assert round(100 * (1 - 451 / 662)) == 32
    assert "32%" in said


def test_a_table_is_the_same_alone_and_among_others():
    alone, among = (
        run(tables, replicates=1, seed=3, progress=nothing)
        for tables in (("ranks",), ("probability", "ranks"))
    )
    assert alone["ranks"] == among["ranks"]


def test_every_table_has_files_enough_for_a_verdict():
    assert {plan().files(study.REPLICATES) for plan in TABLES.values()} == {study.REPLICATES}
    assert study.REPLICATES >= FEWEST


def made(name: str, figures: dict[str, float], files: int = 6) -> dict[str, list[float]]:
    """Return a table of which the cells that contain a text have a figure, and all others the same."""
    answer = FienbergAnswer(np.full(11, 2.0), 0.3, 0.2, 0.4, 0.6, 0.5)
    plan = TABLES[name]()
    wiggle = 0.01 * (-1.0) ** np.arange(files)
    return {
        cell: [next((v for text, v in figures.items() if text in cell), values[0]) + more for more in wiggle]
        for cell, values in plan.cells({job: [answer] for job in plan.jobs}).items()
    }


RELEASED = f"told, fms | {INSIDE}"
STATEMENTS = [  # the statement, and figures with which it holds and does not
    ("noise hinders far more than bias", "ranks", {"1st | bias only": 300.0}, {}),
    ("the true record is first for 319", "ranks", {}, {"1st | no bias": 600.0}),
    ("in the top five around 40%", "ranks", {"1st | bias and noise": 250.0}, {}),
    ("with high probability", "probability", {"his first": 0.05}, {"his first | bias only": 0.2}),
    (
        "protects hardly anybody",
        "telling",
        {"bias only, told | fms": 50.0},
        {"bias only, told | fms": 50.0, "noise only, told | fms": 20.0},
    ),
    (
        "told, the coherent kernel ranks more first",
        "telling",
        {f"{name}, told | coherent": 9.0 for name in MASKED},
        {"noise only, told | coherent": 1.0},
    ),
    ("half of the file released, told", "sampled", {}, {f"bias only, {RELEASED}": 70.0}),
    ("half of the file released, not told", "sampled", {}, {f"noise only, not {RELEASED}": 70.0}),
]


@pytest.mark.parametrize(("statement", "table", "holding", "failing"), STATEMENTS)
@pytest.mark.parametrize("word", [HOLDS, FAILS, UNDECIDED])
def test_every_statement_can_hold_and_fail_and_be_left_open(statement, table, holding, failing, word):
    figures = failing if word == FAILS else holding
    said = notes({table: made(table, figures, 1 if word == UNDECIDED else 6)})
    (note,) = [note for note in said if statement in note]
    assert word in note


@pytest.mark.parametrize(
    ("taken", "files", "word"),
    [(0.0, 6, HOLDS), (13.0, 6, UNDECIDED), (40.0, 6, FAILS), (40.0, 1, UNDECIDED)],
)
def test_what_bias_adds_to_noise_is_held_against_a_tenth(taken, files, word):
    draws = made("ranks", {}, files)
    draws["1st | noise only"] = list(taken + 100.0 + (-1.0) ** np.arange(files))
    draws["1st | bias and noise"] = [100.0] * files
    (note,) = [note for note in notes({"ranks": draws}) if "bias adds little to noise" in note]
    assert word in note


def test_every_statement_of_a_run_has_a_verdict():
    first, explained, *said = small().notes
    assert (first[:5], explained[0]) == ("ours:", "±")
    for note in said:
        assert any(word in note for word in (HOLDS, FAILS, UNDECIDED)), note


@pytest.mark.parametrize(
    ("name", "picture"), [("ranks", "ranks.png"), ("telling", "telling.png"), ("sampled", "sampled.png")]
)
def test_every_picture_is_drawn_from_its_table(tmp_path, name, picture):
    table = read_expected("fienberg")[name].table(made(name, {}))
    (drawn,) = draw_study(Study("fienberg", (table,)), tmp_path)
    assert drawn.name == picture
    assert drawn.stat().st_size > 10_000


def test_the_readme_has_no_figures_of_ours():
    text = files("maskwell.studies.fienberg").joinpath("README.md").read_text(encoding="utf-8")
    assert "maskwell study fienberg" in text
    assert "Shape only" in text
    assert "%" not in text
