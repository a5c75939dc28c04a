"""Trottini's study: the answers are those of a plain numpy recipe, the means those of a recomputation."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import gammaln, ndtr

from maskwell.studies import draw_study, run_study, table_names
from maskwell.studies.results import Cell, Study, StudyTable, expected
from maskwell.studies.trottini import simulation, tables
from maskwell.studies.trottini.simulation import (
    BIAS_SDS,
    CASES,
    FIELD,
    LEVELS,
    MOMENTS,
    RECORDS,
    SD_RATIOS,
    THRESHOLDS,
    TIGHT,
    WIDE,
    Answer,
    Job,
    Scenario,
    intruder,
    masked,
    simulate,
)
from maskwell.studies.trottini.statements import RECOMPUTED, errors_off, notes
from maskwell.studies.trottini.study import run
from maskwell.studies.trottini.tables import HELPERS, KNOWING, TABLES, equal

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
    masking = masked([scenario], 7, 0)[scenario]
    x, z = values(masking)
    logs = {"paper": paper_logs, "forward": forward_logs}[kernel]
    if case == "d.1":
        pairs = logs(z, x[:, None], BIAS_SDS[bias], SD_RATIOS[noise] * x.std(ddof=1))
    else:
        pairs = integrated(logs, z, x[:, None])
    right, truth = found(pairs)
    answer = Job(scenario, intruder(kernel, CASES[case])).answer(masking)
    assert answer.correct == right.sum()
    assert answer.truth == pytest.approx(truth.mean(), rel=1e-6)
    assert np.nan_to_num(answer.probability) * right.sum() == pytest.approx(truth[right].sum(), rel=1e-6)


@cache
def least(case: str, kernel: str, data: str) -> np.ndarray:
    job = Job(equal(LEAST, data), intruder(kernel, CASES[case]))
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
    pairs = [values(masked([scenario], 3, replicate)[scenario]) for replicate in range(20)]
    x, z = np.concatenate(pairs, axis=1)
    mean, sd = MOMENTS[data]
    error = 4 / np.sqrt(len(x))
    assert x.mean() == pytest.approx(mean, abs=error * sd)
    assert x.std() == pytest.approx(sd, rel=error)
    assert np.std((z - x) / np.hypot(sd, BIAS_SDS["medium"] * x)) == pytest.approx(1, abs=2 * error)


# What was published.


def test_what_was_published_is_all_there():
    tables_ = expected("trottini").tables
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
        cells, counts = expected("trottini")[f"{name}-probability"].cells, expected("trottini")[name].cells
        means = {cell.removesuffix(", mean") for cell in cells if cell.endswith("mean")}
        assert means == {cell for cell, count in counts.items() if count > 0}


def test_the_probabilities_of_table_3_are_not_compared():
    table = ran("3-probability")["3-probability"]
    assert {one.within for one in table.cells} == {None}
    assert table.note.startswith("not reproduced")


def test_table_1_shows_the_first_records():
    table = ran("1")["1"]
    scenario = equal(LEAST, "DATA1")
    x, z = values(masked([scenario], 2003, 0)[scenario])
    assert [table[f"record {i} | DATA1 original"].ours for i in range(1, 6)] == list(x[:5])
    assert [table[f"record {i} | DATA1 minimum"].ours for i in range(1, 6)] == list(z[:5])
    assert {one.within for one in table.cells} == {None}


# Statements.


def counted(inside: int) -> list[StudyTable]:
    cells = [Cell(f"cell {i} | DATA1", 1.0, 1.0, 0.0, 2.0, i < inside) for i in range(36)]
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


def test_what_is_not_the_recomputation_is_said():
    cells = {
        f"{data}, {case}, {level} | {kernel}": [10.0, 12.0, 11.0]
        for data in MOMENTS
        for case in CASES
        for level in LEVELS
        for kernel in tables.KERNELS
    }
    assert any("They are NOT the same" in note for note in notes({"kernels": cells}, []))


@cache
def small() -> Study:
    """Return tables 2 and 3 and those beside them for two files."""
    names = ("2", "2-probability", "3", "3-probability", "threshold")
    return run(names, replicates=2, seed=5, progress=nothing)


@pytest.mark.parametrize(
    "statement",
    [
        "lowers the number of links significantly",
        "is ineffective where noise [bias] is already large",
        "more variable data raise the risk",
        "lowers the number of correct links with minimum bias and noise",
        "elsewhere the number stays almost constant",
    ],
)
def test_two_files_decide_nothing(statement):
    assert any(statement in note and "Too few files to say" in note for note in small().notes)


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
    empty = Answer(0.0, np.nan, np.nan, 0.0, np.zeros(len(THRESHOLDS)), np.zeros(len(THRESHOLDS)))
    some = Answer(1.0, 0.5, np.nan, 0.1, np.full(len(THRESHOLDS), 4.0), np.full(len(THRESHOLDS), 1.0))
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
    masking = masked([scenario], 4, 0)[scenario]

    def truth(prior, helpers):
        return Job(scenario, intruder(prior=prior, helpers=helpers)).answer(masking).truth

    assert truth(None, 11) > truth(WIDE, 11) > 2 * truth(WIDE, 0)
    assert truth(TIGHT, 11) < 2 * truth(TIGHT, 0)


def helped() -> StudyTable:
    draws = {
        f"L {count} | {name}, {kind}": [float(count), float(count) / 2]
        for count in HELPERS
        for name in KNOWING
        for kind in ("truth", "correct")
    }
    assert any("who knows everybody (L = 99)" in note for note in notes({"helpers": draws}, []))
    return expected("trottini")["helpers"].table(draws)


def test_what_did_not_converge_is_said():
    from maskwell.studies.trottini.study import _said

    at = np.zeros(len(THRESHOLDS))
    answers = [Answer(1.0, 0.5, 0.1, 0.1, at, at, converged) for converged in (True, False)]
    assert _said({"job": answers}) == "[2 files of 100 records; 1 of 2 attacks did not converge]"
    assert _said({"job": answers[:1]}) == "[1 file of 100 records]"


def test_helpers_are_few_files_and_all_records_are_in_groups():
    assert TABLES["helpers"]().files(200) == 2
    assert all(RECORDS % (count + 1) == 0 for count in HELPERS)


# Pictures and words.


PICTURES = {
    "counts.png": ("2", "3"),
    "kernels.png": ("kernels",),
    "threshold.png": ("threshold",),
    "helpers.png": ("helpers",),
}


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_is_drawn_from_its_tables(tmp_path, name):
    kernels = expected("trottini")["kernels"].table({cell: [3.0, 5.0] for cell in _kernel_cells()})
    made = {one.name: one for one in (*small().tables, kernels, helped())}
    (drawn,) = draw_study(Study("trottini", tuple(made[table] for table in PICTURES[name])), tmp_path)
    assert drawn.name == name
    assert drawn.stat().st_size > 10_000


def test_tables_without_a_picture_draw_none(tmp_path):
    assert draw_study(Study("trottini", (small()["2"], small()["3-probability"])), tmp_path) == []


def _kernel_cells() -> list[str]:
    rows = [f"{data}, {case}, {level}" for data in MOMENTS for case in CASES for level in LEVELS]
    return [f"{row} | {kernel}" for row in rows for kernel in tables.KERNELS]


def test_the_readme_has_no_figures_of_ours():
    text = files("maskwell.studies.trottini").joinpath("README.md").read_text(encoding="utf-8")
    assert "maskwell study trottini" in text
    assert "%" not in text
