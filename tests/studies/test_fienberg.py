"""Fienberg's study on a synthetic file: shape only, but the answers are those of a plain numpy recipe."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
import pytest

from maskwell.studies import draw_study, table_names
from maskwell.studies.fienberg import file
from maskwell.studies.fienberg.file import FIELDS, RECORDS, interviews
from maskwell.studies.fienberg.simulation import (
    BIAS_SD,
    GAMMA,
    SAMPLED,
    SCENARIOS,
    Job,
    answered,
    masked,
    simulate,
)
from maskwell.studies.fienberg.statements import notes
from maskwell.studies.fienberg.study import run
from maskwell.studies.fienberg.tables import INSIDE, OUT, ROWS, TABLES
from maskwell.studies.results import Study, expected

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
    masking = masked([Job(scenario)], 5, 0)[scenario, 1.0]
    x, z = (table.values(FIELDS) for table in (masking.truth, masking.masked))
    bias, noise = SCENARIOS[scenario]
    sds = np.hypot(bias * BIAS_SD * x, noise * np.ptp(x, axis=0) / 6)
    scaled = (z - x) / sds
    assert scaled.std() == pytest.approx(1, abs=4 / np.sqrt(2 * scaled.size))
    assert abs(scaled.mean()) < 4 / np.sqrt(scaled.size)


# The intruder.


@pytest.mark.parametrize("scenario", list(SCENARIOS)[1:])
def test_told_he_weighs_records_as_the_slides_say(scenario):
    masking = masked([Job(scenario)], 6, 0)[scenario, 1.0]
    x, z = (table.values(FIELDS) for table in (masking.truth, masking.masked))
    bias, noise = SCENARIOS[scenario]
    variances = (noise * np.ptp(x, axis=0) / 6) ** 2 + (bias * BIAS_SD * z) ** 2
    logs = -0.5 * ((x[:, None, :] - z) ** 2 / variances + np.log(variances)).sum(axis=2)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    chances = weights / weights.sum(axis=1, keepdims=True)
    places = (chances > chances.diagonal()[:, None]).sum(axis=1)
    answer = answered(Job(scenario, prior=None), masking)
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
    job = Job("bias only", kernel, None, SAMPLED)
    found = simulate({job: 4}, 8, nothing)[job]
    gaps = np.array([one.out - one.inside for one in found])
    assert gaps.mean() > 4 * gaps.std(ddof=1) / 2 > 0
    assert all(one.places.sum() < SMALL for one in found)


def test_a_whole_release_has_no_such_outcome():
    job = Job("bias only", prior=None)
    (one,) = simulate({job: 1}, 8, nothing)[job]
    assert (one.out, one.inside, one.places.sum()) == (0.0, 0.0, SMALL)


# Tables and words.


def test_all_is_shape_only():
    assert {*table_names("fienberg")} == {*TABLES}
    for name, table in expected("fienberg").tables.items():
        assert table.compare == "shape", name
        assert "shape only" in table.note
    assert {one.within for table in small().tables for one in table.cells} == {None}


def test_what_the_slides_tell_is_there():
    cells = expected("fienberg")["ranks"].cells
    assert [cells[f"1st | {name}"] for name in SCENARIOS] == [319, 42, 295, 43]
    assert [cells[f"beyond | {name}"] for name in SCENARIOS] == [0, 448, 19, 451]


def test_the_slides_contradict_themselves_and_we_say_so():
    (said,) = [note for note in small().notes if "top five" in note]
    assert "The slides contradict themselves" in said
    assert round(100 * (1 - 451 / 662)) == 32
    assert "32%" in said


def test_a_table_is_the_same_alone_and_among_others():
    alone = run(("ranks",), replicates=6, seed=3, progress=nothing)
    assert alone["ranks"] == small()["ranks"]


def test_slow_tables_take_a_third_of_the_files():
    assert {name: plan().files(6) for name, plan in TABLES.items()} == {
        "ranks": 6,
        "probability": 6,
        "telling": 2,
        "sampled": 2,
    }


def made(name: str) -> dict[str, list[float]]:
    """Return figures of a table without simulating anything."""
    from maskwell.studies.fienberg.simulation import Answer

    answer = Answer(np.full(11, 2.0), 0.3, 0.2, 0.4, 0.6, 0.5)
    plan = TABLES[name]()
    return dict(plan.cells({job: [answer] * 6 for job in plan.jobs}))


def test_statements_about_telling_and_sampling_have_the_figures():
    telling, sampled = made("telling"), made("sampled")
    assert telling["bias only, told | coherent"] == [2.0] * 6
    assert sampled[f"noise only, told, fms | {OUT}"] == [60.0] * 6
    assert sampled[f"noise only, told, fms | {INSIDE}"] == [50.0] * 6
    said = notes({"telling": telling, "sampled": sampled})
    assert any("noise only: told 2, 2, 2; not told 2, 2, 2" in note for note in said)
    assert any("by 10.0" in note and "points told" in note for note in said)


@pytest.mark.parametrize(("name", "picture"), [("ranks", "ranks.png"), ("telling", "telling.png")])
def test_every_picture_is_drawn_from_its_table(tmp_path, name, picture):
    table = expected("fienberg")[name].table(made(name))
    (drawn,) = draw_study(Study("fienberg", (table,)), tmp_path)
    assert drawn.name == picture
    assert drawn.stat().st_size > 10_000


def test_the_readme_has_no_figures_of_ours():
    text = files("maskwell.studies.fienberg").joinpath("README.md").read_text(encoding="utf-8")
    assert "maskwell study fienberg" in text
    assert "Shape only" in text
    assert "%" not in text
