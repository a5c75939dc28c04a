"""Trottini's study: the answers are those of a plain numpy recipe, the means those of a recomputation."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import gammaln, ndtr

from maskwell.studies import draw_study, run_study, table_names
from maskwell.studies.conclusions import FAILS, FEWEST, HOLDS, UNDECIDED
from maskwell.studies.results import Study, StudyTable, TableCell, read_expected
from maskwell.studies.trottini import simulation, study, tables
from maskwell.studies.trottini.further import RECOMPUTED, errors_off
from maskwell.studies.trottini.simulation import (
    BIAS_SDS,
    CASES,
    FIELD,
    LEVELS,
    MOMENTS,
    RECORDS,
    SD_RATIOS,
    SOUGHT,
    THRESHOLDS,
    TIGHT,
    WIDE,
    Scenario,
    TrottiniAnswer,
    TrottiniJob,
    helped_intruder,
    intruder,
    mask_scenario,
    simulate,
)
from maskwell.studies.trottini.statements import notes
from maskwell.studies.trottini.study import run
from maskwell.studies.trottini.tables import BANDS, HELPERS, KNOWING, LINKED, TABLES, equal

LEAST = LEVELS[0]
FILES = 10


def nothing(*_: object) -> None:
    """Tell nobody."""


@cache
def ran(table: str, replicates: int = 1) -> Study:
    return run_study("trottini", table=table, replicates=replicates)


# The recipe in plain numpy: the paper's kernel in closed form, its prior by Gauss-Hermite quadrature.


def paper_logs(z, x, phi, sigma):
    """Return log of N(z; x, V) E|theta|, theta given z and x normal."""
    variance = sigma**2 + phi**2 * x**2
    mean, sd = (sigma**2 + phi**2 * x * z) / variance, phi * sigma / np.sqrt(variance)
    ratio = mean / sd
    folded = sd * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + mean * (1 - 2 * ndtr(-ratio))
    return -0.5 * np.log(variance) - (z - x) ** 2 / (2 * variance) + np.log(folded)


def forward_logs(z, x, phi, sigma):
    variance = sigma**2 + phi**2 * x**2
    return -0.5 * np.log(variance) - (z - x) ** 2 / (2 * variance)


def nodes(shape, scale, count=15):
    """Return values of an inverse gamma variable and their log weights."""
    t, weights = hermegauss(count)
    logs = np.log(scale / shape) + t / np.sqrt(shape)
    density = shape * np.log(scale) - gammaln(shape) - shape * logs - scale * np.exp(-logs)
    return np.exp(logs), np.log(weights) + t**2 / 2 - np.log(shape) / 2 + density


def integrated(kernel, z, x):
    phis, biases = nodes(402, 33)
    sigmas, noises = nodes(402, 401 * np.ptp(z) / 6)
    parts = [
        kernel(z, x, phi, sigma) + a + b
        for phi, a in zip(phis, biases, strict=True)
        for sigma, b in zip(sigmas, noises, strict=True)
    ]
    return np.logaddexp.reduce(parts, axis=0)


def values(masking):
    """Return true and released values in the same order."""
    return tuple(table.values((FIELD,))[:, 0] for table in (masking.truth, masking.masked))


def found(logs):
    """Return which targets are found, and what their own records get."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    chances = weights / weights.sum(axis=1, keepdims=True)
    return chances.argmax(axis=1) == np.arange(len(chances)), chances.diagonal()


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("kernel", ["paper", "forward"])
@pytest.mark.parametrize(
    ("data", "bias", "noise"),
    [("DATA2", LEAST, LEAST), ("DATA1", "medium", "minimum"), ("DATA2", "maximum", "medium")],
)
def test_answers_are_those_of_the_recipe(case, kernel, data, bias, noise):
    scenario = Scenario(data, bias, noise)
    masking = mask_scenario(scenario, 7, 0)
    x, z = values(masking)
    logs = {"paper": paper_logs, "forward": forward_logs}[kernel]
    if case == "d.1":
        pairs = logs(z, x[:, None], BIAS_SDS[bias], SD_RATIOS[noise] * x.std(ddof=1))
    else:
        pairs = integrated(logs, z, x[:, None])
    right, truth = found(pairs)
    answer = TrottiniJob(scenario, intruder(kernel, CASES[case])).answer(masking)
    assert answer.correct == right.sum()
    assert answer.truth == pytest.approx(truth.mean(), rel=1e-6)
    assert np.nan_to_num(answer.probability) * right.sum() == pytest.approx(truth[right].sum(), rel=1e-6)


@cache
def least(case: str, kernel: str, data: str) -> np.ndarray:
    job = TrottiniJob(equal(LEAST, data), intruder(kernel, CASES[case]))
    return np.array([one.correct for one in simulate({job: FILES}, 11, nothing)[job]])


@pytest.mark.parametrize(("case", "kernel"), RECOMPUTED)
@pytest.mark.parametrize("data", MOMENTS)
def test_means_with_minimum_bias_and_noise_are_those_of_a_recomputation(case, kernel, data):
    figure = RECOMPUTED[case, kernel][list(MOMENTS).index(data)]
    assert errors_off(least(case, kernel, data), figure, 0.5) < 4


@pytest.mark.parametrize("data", MOMENTS)
def test_the_nearest_value_needs_no_parameters_and_the_papers_kernel_does(data):
    told, secret = least("d.1", "forward", data), least("d.2", "forward", data)
    np.testing.assert_array_equal(told, secret)
    lost = least("d.1", "paper", data) - least("d.2", "paper", data)
    assert lost.mean() > 4 * lost.std(ddof=1) / np.sqrt(FILES)


def test_a_prior_that_is_sure_and_wrong_misleads_the_coherent_intruder():
    lost = least("d.1", "coherent", "DATA2") - least("d.2", "coherent", "DATA2")
    assert lost.min() > 30


def test_the_prior_is_the_printed_one():
    low, high = TIGHT.theta_range
    assert (high - low) / 6 == pytest.approx(33 / 401)
    assert (TIGHT.family, TIGHT.mean_over_sd, WIDE.mean_over_sd) == ("inverse gamma", 20.0, 1.0)


@pytest.mark.parametrize("data", MOMENTS)
def test_files_have_the_moments_and_the_noise_that_they_should(data):
    scenario = Scenario(data, "medium", "maximum")
    pairs = [values(mask_scenario(scenario, 3, replicate)) for replicate in range(20)]
    x, z = np.concatenate(pairs, axis=1)
    mean, sd = MOMENTS[data]
    error = 4 / np.sqrt(len(x))
    assert x.mean() == pytest.approx(mean, abs=error * sd)
    assert x.std() == pytest.approx(sd, rel=error)
    assert np.std((z - x) / np.hypot(sd, BIAS_SDS["medium"] * x)) == pytest.approx(1, abs=2 * error)


# What was published.


def test_what_was_published_is_all_there():
    tables_ = read_expected("trottini").tables
    counts = {name: [tables_[name].published(cell) for cell in tables_[name].cells] for name in ("2", "3")}
    assert {name: (len(cells), sum(cells)) for name, cells in counts.items()} == {
        "2": (18, 165),
        "3": (18, 101),
    }
    assert len(tables_["1"].cells) == 40
    assert [len(tables_[name].cells) for name in ("2-probability", "3-probability")] == [30, 28]
    assert {*table_names("trottini")} == {"1", *TABLES}


def test_a_probability_is_published_only_where_there_are_links():
    for name in ("2", "3"):
        cells, counts = (
            read_expected("trottini")[f"{name}-probability"].cells,
            read_expected("trottini")[name].cells,
        )
        means = {cell.removesuffix(", mean") for cell in cells if cell.endswith("mean")}
        assert means == {cell for cell, count in counts.items() if count > 0}


def test_the_probabilities_of_table_3_are_not_compared():
    table = ran("3-probability")["3-probability"]
    assert {one.within for one in table.cells} == {None}
    assert table.note.startswith("not reproduced")


def test_table_1_shows_the_first_records():
    table = ran("1")["1"]
    scenario = equal(LEAST, "DATA1")
    x, z = values(mask_scenario(scenario, 2003, 0))
    assert [table[f"record {i} | DATA1 original"].ours for i in range(1, 6)] == list(x[:5])
    assert [table[f"record {i} | DATA1 minimum"].ours for i in range(1, 6)] == list(z[:5])
    assert {one.within for one in table.cells} == {None}


# Statements.


def counted(inside: int) -> list[StudyTable]:
    cells = [TableCell(f"cell {i} | DATA1", 1.0, 1.0, 0.0, 2.0, i < inside) for i in range(36)]
    return [StudyTable("2", tuple(cells[:18])), StudyTable("3", tuple(cells[18:]))]


@pytest.mark.parametrize(
    ("inside", "word"), [(36, "are reproduced"), (30, "are reproduced"), (29, "are NOT reproduced")]
)
def test_from_thirty_counts_on_the_tables_are_called_reproduced(inside, word):
    (said,) = notes({}, counted(inside))
    assert said.startswith(f"{inside} of 36 published counts")
    assert word in said
    assert ("table 3, cell 35, DATA1" in said) is (inside < 36)


def test_one_table_alone_says_nothing_of_the_36():
    assert notes({}, counted(36)[:1]) == []


def test_bands_of_few_files_are_no_verdict():
    said = [note for note in small().notes if note.startswith(UNDECIDED)]
    assert [note.split("whether ")[1].split(" are")[0] for note in said] == [
        "tables 2 and 3",
        "the probabilities of table 2",
    ]
    assert all(f"from {BANDS} files on" in note for note in said)
    assert not any("reproduced (from" in note for note in small().notes)
    assert {one.within for table in small().tables for one in table.cells} == {None}


def test_from_how_many_files_on_bands_are_compared():
    def outside(files: int) -> float:
        """Return the chance that one further file lies outside the 5-95% band of so many."""
        return 2 * (1 + 0.05 * (files - 1)) / (files + 1)

    assert outside(20) > 0.18
    assert 0.1 < outside(BANDS) < 0.12
    few, enough = (study._expected_table("2", files) for files in (BANDS - 1, BANDS))
    assert (few.compare, enough.compare) == ("shape", "band")
    assert f"Not compared: from {BANDS} files on" in few.note
    assert "Not compared" not in enough.note


@pytest.mark.parametrize(
    ("figures", "figure", "off"),
    [
        ([1, 2, 3], 2.0, 0.0),
        ([1, 2, 3], 2.05, 0.0),
        ([1, 2, 3], 3.05, np.sqrt(3)),
        ([2, 2], 3.0, np.inf),
        ([5], 1.0, 0.0),
    ],
)
def test_means_are_held_against_figures_by_their_errors(figures, figure, off):
    assert errors_off(np.array(figures, float), figure, 0.05) == pytest.approx(off)


@pytest.mark.parametrize(("files", "word"), [(2, UNDECIDED), (FEWEST, "They are NOT the same")])
def test_what_is_not_the_recomputation_is_said(files, word):
    said = notes({"kernels": made("kernels", {}, files)}, [])
    (note,) = [note for note in said if "recomputation" in note]
    assert word in note


@cache
def small() -> Study:
    """Return tables 2 and 3 and those beside them for two files."""
    names = ("2", "2-probability", "3", "3-probability", "threshold")
    return run(names, replicates=2, seed=5, progress=nothing)


ALL = 10.0  # every figure of a made table, but for those that a statement is about


def made(table: str, figures: dict[str, float], files: int = 8) -> dict[str, list[float]]:
    """Return a table of which the cells that contain a text have a figure, and all others the same."""
    at = np.ones(len(THRESHOLDS))
    answers = [TrottiniAnswer(ALL, ALL, ALL, ALL / 100, at, at)] * files
    plan = TABLES[table]()
    wiggle = 0.01 * (-1.0) ** np.arange(files)
    return {
        cell: list(next((figure for text, figure in figures.items() if text in cell), ALL) + wiggle)
        for cell in plan.cells(dict.fromkeys(plan.jobs, answers))
    }


LITTLE, LESS = "minimum bias, minimum noise", "medium bias, minimum noise"
RISING = {f"L {count} | wide": float(count) for count in HELPERS}
STATEMENTS = [  # the statement, and figures with which it holds and does not
    ("lowers the number of links significantly", {"2": {LITTLE: 30.0}}, {"2": {LITTLE: 15.0}}),
    ("is ineffective where", {"2": {}}, {"2": {"maximum bias, medium noise": 13.0}}),
    (
        "more variable data raise the risk",
        {"2": {f"{LITTLE} | DATA2": 60.0}, "3": {f"{LITTLE} | DATA2": 60.0}},
        {"2": {f"{LITTLE} | DATA2": 60.0}, "3": {}},
    ),
    (
        "lowers the number of correct links with minimum",
        {"2": {}, "3": {LITTLE: 2.0}},
        {"2": {}, "3": {}},
    ),
    ("elsewhere the number stays almost constant", {"2": {}, "3": {}}, {"2": {}, "3": {LESS: 8.0}}),
    (
        "stays almost constant where he was not",
        {"2-probability": {LITTLE: 10.5}, "3-probability": {}},
        {"2-probability": {LITTLE: 10.5}, "3-probability": {LESS: 10.5}},
    ),
    (
        "finds as many not told as told",
        {"kernels": {"d.2, minimum | paper": 2.0}},
        {"kernels": {"d.2, minimum | forward": 5.0}},
    ),
    ("misleads the coherent kernel", {"kernels": {"d.2, minimum | coherent": 2.0}}, {"kernels": {}}),
    (
        "told, the coherent kernel finds more",
        {"kernels": {"d.1, minimum | coherent": 12.0, "d.1, maximum | coherent": 12.0}},
        {"kernels": {"d.1, minimum | coherent": 11.0, "d.1, maximum | coherent": 6.0}},
    ),
    (
        "is right in more than 90%",
        {"threshold": {"DATA1 links": 10.0}},
        {"threshold": {"d.1, t 0.9 | DATA2 correct": 8.0}},
    ),
    (
        "makes fewer links above",
        {"threshold": {"d.2, t 0.05": 2.0}},
        {"threshold": {"d.2, t 0.05 | DATA1 links": 20.0}},
    ),
    (
        "every further unit that he knows",
        {"helpers": RISING},
        {"helpers": RISING | {"L 49 | wide": 90.0, "L 99 | wide": 80.0}},
    ),
    ("ends where he is who was told", {"helpers": {}}, {"helpers": {"L 99 | told": 13.0}}),
    ("he learns nothing", {"helpers": {}}, {"helpers": {"L 99 | tight": 13.0}}),
    (
        "knowing everybody still helps",
        {"helpers": {"L 99 | told": 15.0}},
        {"helpers": {"L 99 | told": 8.0}},
    ),
]


@pytest.mark.parametrize(("statement", "holding", "failing"), STATEMENTS)
@pytest.mark.parametrize("word", [HOLDS, FAILS, UNDECIDED])
def test_every_statement_can_hold_and_fail_and_be_left_open(statement, holding, failing, word):
    figures = failing if word == FAILS else holding
    files = 2 if word == UNDECIDED else 8
    said = notes({table: made(table, some, files) for table, some in figures.items()}, [])
    (note,) = [note for note in said if statement in note]
    assert word in note


def test_every_statement_of_a_run_has_a_verdict():
    words = (HOLDS, FAILS, UNDECIDED, "reproduced", "the same within")
    first, *said = [note for note in small().notes if not note.startswith("±")]
    assert first.startswith("ours: the mean over")
    assert len(said) > 5
    for note in said:
        assert any(word in note for word in words), note


def test_more_links_are_made_at_lower_thresholds_and_all_at_none():
    table = small()["threshold"]
    for data in MOMENTS:
        for case, at in tables.SHOWN_AT.items():
            links, right = (
                [table[f"{case}, t {t:g} | {data} {what}"].ours for t in at] for what in ("links", "correct")
            )
            assert links[0] == RECORDS
            assert links == sorted(links, reverse=True)
            assert right == sorted(right, reverse=True)
            assert all(b <= a for a, b in zip(links, right, strict=True))


def test_the_share_that_is_right_is_that_of_all_links_and_absent_without_links():
    empty = TrottiniAnswer(0.0, np.nan, np.nan, 0.0, np.zeros(len(THRESHOLDS)), np.zeros(len(THRESHOLDS)))
    some = TrottiniAnswer(1.0, 0.5, np.nan, 0.1, np.full(len(THRESHOLDS), 4.0), np.full(len(THRESHOLDS), 1.0))
    assert tables._at([empty, some], 3)["% right"] == [25.0]
    assert tables._at([empty, empty], 3)["% right"] == []
    names = {one.cell for one in small()["threshold"].cells}
    assert "d.2, t 0.2 | DATA1 links" in names
    assert "d.2, t 0.2 | DATA1 % right" not in names


def test_a_table_is_the_same_alone_and_among_others():
    alone = run(("3",), replicates=2, seed=5, progress=nothing)
    assert alone["3"] == small()["3"]


def test_the_seed_decides():
    one, other = (run(("1",), replicates=1, seed=seed, progress=nothing)["1"] for seed in (1, 2))
    assert one == run(("1",), replicates=1, seed=1, progress=nothing)["1"]
    assert one.cells != other.cells


# Helpers.


def test_known_units_teach_him_unless_his_prior_is_sure(monkeypatch):
    monkeypatch.setattr(simulation, "RECORDS", 12)
    scenario = equal(LEAST, "DATA2")
    masking = mask_scenario(scenario, 4, 0)

    def truth(prior, helpers):
        return TrottiniJob(scenario, helped_intruder(prior, helpers)).answer(masking).truth

    assert truth(None, 11) > truth(WIDE, 11) > 2 * truth(WIDE, 0)
    assert truth(TIGHT, 11) < 2 * truth(TIGHT, 0)


def test_one_sample_of_targets_serves_all_that_he_may_know():
    scenario = equal(LEAST, "DATA2")
    masking = mask_scenario(scenario, 4, 0)
    answers = [TrottiniJob(scenario, helped_intruder(None, count)).answer(masking) for count in (0, 1)]
    assert [one.links[0] for one in answers] == [SOUGHT, SOUGHT]
    assert answers[0].truth == pytest.approx(answers[1].truth, abs=0.02)
    everybody = TrottiniJob(scenario, intruder()).answer(masking)
    assert everybody.links[0] == RECORDS


def test_what_did_not_converge_is_said():
    from maskwell.studies.trottini.study import _attack_note

    at = np.zeros(len(THRESHOLDS))
    answers = [TrottiniAnswer(1.0, 0.5, 0.1, 0.1, at, at, converged) for converged in (True, False)]
    assert _attack_note({"job": answers}) == "[2 files of 100 records; 1 of 2 attacks did not converge]"
    assert _attack_note({"job": answers[:1]}) == "[1 file of 100 records]"


def test_helpers_are_files_enough_for_a_verdict():
    assert FEWEST <= TABLES["helpers"]().files(study.REPLICATES) <= 10
    assert (HELPERS[0], HELPERS[-1]) == (0, RECORDS - 1)
    cells = made("helpers", {})
    assert {cell.split(" | ")[1] for cell in cells} == {*KNOWING, LINKED}


# Pictures and words.


PICTURES = {
    "counts.png": ("2", "3"),
    "kernels.png": ("kernels",),
    "threshold.png": ("threshold",),
    "helpers.png": ("helpers",),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_drawn_from_its_tables(tmp_path, name):
    some = [read_expected("trottini")[table].table(made(table, {})) for table in PICTURES[name]]
    (drawn,) = draw_study(Study("trottini", tuple(some)), tmp_path)
    assert drawn.name == name
    assert drawn.stat().st_size > 10_000


def test_tables_without_a_picture_draw_none(tmp_path):
    assert draw_study(Study("trottini", (small()["2"], small()["3-probability"])), tmp_path) == []


def test_the_readme_has_no_figures_of_ours():
    text = files("maskwell.studies.trottini").joinpath("README.md").read_text(encoding="utf-8")
    assert "maskwell study trottini" in text
    assert "%" not in text
