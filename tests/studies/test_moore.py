"""Moore's study: exact where the paper can be held to its figures, shape where its file is not to be had."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from statistics import fmean, stdev

import pytest

from maskwell.calibration import FINE_R0, agreement_curve
from maskwell.studies import draw_study, run_study, table_names
from maskwell.studies.moore import critical, matching, statements
from maskwell.studies.moore.matching import published_rows, published_shape, rows_of_table_4
from maskwell.studies.moore.simulation import WINKLER, MooreSimulation
from maskwell.studies.moore.study import TABLES
from maskwell.studies.moore.study import run as run_tables
from maskwell.studies.results import Study

TOLD: dict[tuple[str, ...], list[tuple[int, int]]] = {}  # what a run of tables told on the way


@cache
def ran(*tables: str, replicates: int = 1) -> Study:
    told = TOLD[tables] = []
    return run_tables(tables, replicates=replicates, seed=2003, progress=lambda *step: told.append(step))


def drawn_anew(tables: tuple[str, ...], replicates: int, seed: int) -> Study:
    return run_tables(tables, replicates=replicates, seed=seed, progress=lambda done, total: None)


def wrong(study: Study, table: str) -> list[str]:
    return [one.cell for one in study[table].cells if one.within is False]


# What is exact.


def test_every_table_is_run_and_named_in_the_readme():
    assert set(table_names("moore")) == set(TABLES)
    readme = files("maskwell.studies").joinpath("moore", "README.md").read_text(encoding="utf-8")
    assert [name for name in TABLES if f"`{name}`" not in readme] == []


def test_table_1_is_the_survey_s():
    table = ran("1")["1"]
    assert [table[f"{row} | open values"].ours for row in table.rows] == [35717, 31394, 15908, 18374, 30671]
    assert all(one.within for one in table.cells)


def test_table_3_has_the_published_pairs_and_correlations():
    table = ran("3")["3"]
    assert len(table.rows) == 10
    exact = [one for one in table.cells if one.column != "after the noise"]
    assert len(exact) == 20
    assert all(one.within for one in exact)
    assert table["HOME_VAL, TAXES | both open"].ours == 29871


def test_table_5_is_exact_to_four_decimals_and_called_an_artefact():
    study = run_study("moore", table="5")
    found = [round(study["5"][f"{row} | c"].ours, 4) for row in study["5"].rows]
    assert found == [0.2064, 0.1504, 0.1447, 0.3165, 0.1395]
    assert all(one.within for one in study["5"].cells)
    assert any("0.7697" in note for note in study.notes)


def test_one_row_of_table_4_has_a_misprinted_c():
    study = ran("factors")
    assert wrong(study, "factors") == ["R0 0.590, c 0.4830"]
    assert len(study["factors"].cells) == 22
    (note,) = [note for note in study.notes if "misprint" in note]
    assert "c = 0.4830, which belongs to R0 = 0.811" in note


def test_the_examples_hold_but_for_two_misprints():
    study = ran("examples")
    share, printed = wrong(study, "examples")
    assert study["examples"][share].ours == pytest.approx(115.65)
    assert study["examples"][share].published == 117
    assert "SMP_PROB" in printed
    assert study["examples"]["section XII, criterion 2: swaps"].ours == 3
    assert study["examples"]["section XII, criterion 1: swaps"].ours == 0


def test_the_published_counts_of_a_row_are_those_of_the_targets():
    assert {sum(row.values()) for row in published_rows().values()} == {771}


# The noise.


def test_the_noise_has_the_sds_of_table_2():
    table = ran("2", replicates=4)["2"]
    assert all(table[f"{row} | sd"].within for row in table.rows)
    assert all(abs(table[f"{row} | mean"].ours) < 0.1 * table[f"{row} | sd"].ours for row in table.rows)


def test_variances_grow_by_the_claim_only_without_clamp():
    table = ran("moments")["moments"]
    plain = [table[f"{row} | without clamp and unit"].ours for row in table.rows]
    released = [table[f"{row} | as released"].ours for row in table.rows]
    assert max(abs(one - 1) for one in plain) < 0.03
    assert min(released) < 0.97


def test_the_seed_decides_the_noise_and_nothing_else():
    first, again, other = (drawn_anew(("3",), 1, seed)["3"] for seed in (5, 5, 6))
    assert first == again != other
    changed = {one.column for one, two in zip(first.cells, other.cells, strict=True) if one != two}
    assert changed == {"after the noise"}


# Table 4.


def test_table_4_has_all_rows_published_beside_ours():
    table = ran("4", "shape")["4"]
    assert table.rows == tuple(rows_of_table_4())
    assert len(table.rows) == 22
    published = [table[f"{table.rows[0]} | {name}"].published for name in matching.CLASSES]
    assert published == [126, 52, 469, 124]
    assert {one.within for one in table.cells} == {None}
    for row in table.rows:
        ours = {name: table[f"{row} | {name}"].ours for name in table.columns}
        assert sum(ours[name] for name in matching.CLASSES) == pytest.approx(771)
        assert ours["questionable, yet right"] <= ours["questionable"]
        assert ours["false, yet right"] <= ours["false"]
        assert ours["right in all"] > ours["correct"]


def test_the_misprint_of_table_4_is_told_once():
    assert sum("belongs to R0 = 0.811" in note for note in ran("4", "shape").notes) == 1


def test_the_shape_of_table_4_holds():
    study = ran("4", "shape")
    statements = [note for note in study.notes if note.startswith("the paper: ")]
    assert len(statements) == 4  # correct, incorrect, questionable, the floor
    assert all("It holds here" in note for note in statements)


def test_published_figures_of_the_shape_come_from_table_4():
    figures = list(published_shape().cells.values())
    assert figures[:3] == [
        pytest.approx(100 * 44 / 126, abs=0.05),
        pytest.approx(100 * 27 / 44, abs=0.05),
        62.9,
    ]


def test_simulated_correct_links_are_those_predicted():
    simulation = MooreSimulation(8, 11)
    sizes = [0.1005, 3.0]
    points = agreement_curve(simulation.survey, attack=WINKLER, sd_ratios=sizes).points
    for c, point in zip(sizes, points, strict=True):
        correct = [one.correct for one in simulation.links(c)]
        assert abs(fmean(correct) - point.correct) <= 4 * stdev(correct) / len(correct) ** 0.5 + 0.1


def test_progress_ends_where_it_said():
    assert ran("1", "swapping")
    told = TOLD["1", "swapping"]
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[-1] == (len(told), len(told))


# How much noise is enough.


def test_critical_c_leaves_the_share_to_gain_that_was_asked_for(monkeypatch):
    monkeypatch.setattr(critical, "EPSILONS", (0.05,))
    simulation = MooreSimulation(1, 1)
    draws = critical.critical(simulation)
    assert draws["exact, all agree, 5% | to gain"] == [pytest.approx(0.05, abs=1e-3)]
    assert draws["exact, one may disagree, 5% | to gain, one may disagree"] == [pytest.approx(0.05, abs=1e-3)]
    his = [draws[f"Moore, {row} | c"][0] for row in ("smallest", "most open values", "largest")]
    assert [round(c, 4) for c in his] == [0.1395, 0.2064, 0.3165]


def test_the_sweep_goes_in_steps_of_a_thousandth(monkeypatch):
    assert [round(1000 * r0) for r0 in FINE_R0] == list(range(999, 974, -1))
    monkeypatch.setattr(critical, "FINE_R0", (0.999, 0.975))
    draws = critical.sweep(MooreSimulation(1, 1))
    first, last = ([draws[f"{row} | {name}"][0] for name in COLUMNS] for row in SWEPT)
    assert all(a > b for a, b in zip(first, last, strict=True))
    assert first[2] > first[1]


SWEPT = ("R0 0.999, c 0.0316", "R0 0.975, c 0.1601")
COLUMNS = ("correct", "correct, predicted", "true record agrees")


def test_without_codes_fewer_are_found(monkeypatch):
    monkeypatch.setattr(matching, "C_UNCODED", (0.1759,))
    draws = matching.uncoded_draws(MooreSimulation(1, 1))
    assert draws["c 0.1759 | correct"][0] < draws["c 0.1759 | correct, with codes"][0]
    assert sum(draws[f"c 0.1759 | {name}"][0] for name in matching.CLASSES) == pytest.approx(771)


def test_the_present_code_gives_the_survey_s_own_figures(monkeypatch):
    monkeypatch.setattr(critical, "RELAXED", ("HOME_VAL",))
    simulation = MooreSimulation(1, 1)
    draws = critical.relaxed_code_draws(simulation)
    (point,) = agreement_curve(simulation.survey, attack=WINKLER, sd_ratios=[critical.C_RELAXED]).points
    assert draws["HOME_VAL, code 350,000 | true record agrees"] == [pytest.approx(point.agreeing, abs=0.01)]
    assert draws["HOME_VAL, code 350,000 | correct, predicted"] == [pytest.approx(point.correct, abs=0.01)]
    assert draws["HOME_VAL, no code | coded records"] == [0]
    assert sum("(formula)" in cell for cell in draws) == 3


# Swapping, output.


def test_swaps_meet_the_tolerances():
    table = ran("1", "swapping")["swapping"]
    rate, ratio, everything = (
        {name: table[f"{row} | {name}"].ours for name in table.columns} for row in table.rows
    )
    assert rate["correct after"] <= 0.15 * 771
    assert ratio["correct after"] <= 2 * ratio["incorrect after"] + 1e-9
    assert everything["swaps made"] > ratio["swaps made"]
    assert everything["correct after"] < 0.1 * everything["correct before"]
    assert {one["met, % of runs"] for one in (rate, ratio)} == {100}


def test_json_has_the_agreed_shape(run):
    answer = run("study", "moore", "--table", "5", "--json")
    assert (answer.code, answer.err) == (0, "")
    data = json.loads(answer.out)
    assert list(data) == ["study", "tables", "notes"]
    (table,) = data["tables"]
    assert table["name"] == "5"
    assert set(table["cells"][0]) == {"cell", "published", "ours", "low", "high", "within"}


def test_pictures_are_drawn_for_the_tables_there_are(tmp_path, monkeypatch):
    monkeypatch.setattr(critical, "FINE_R0", (0.999, 0.985, 0.975))
    drawn = draw_study(ran("4", "shape"), tmp_path)
    drawn += draw_study(ran("1", "swapping"), tmp_path)
    drawn += draw_study(drawn_anew(("sweep",), 1, 1), tmp_path)
    assert [path.name for path in drawn] == ["table_4.png", "swapping.png", "sweep.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    assert draw_study(ran("1"), tmp_path) == []


@pytest.mark.parametrize("name", ["1", "3", "5"])
def test_tables_that_agree_by_construction_say_so(name):
    study = ran(name)
    sentence = "by construction: the survey is made to have these figures"
    assert sentence in " ".join(study.text().split())
    assert any(note.startswith(f"table {name}: ") and sentence in note for note in study.to_dict()["notes"])


@pytest.mark.parametrize("replicates", [1, 2, 4, 5])
def test_scatter_is_told_of_five_draws_or_more(replicates):
    rows = list(rows_of_table_4())
    draws = {f"{row} | correct": [100.0 - i + r for r in range(replicates)] for i, row in enumerate(rows)}
    (note,) = statements._rises(draws)
    assert ("scatters by 1.6 there" in note) is (replicates >= 5)
    assert ("noise of their own" in note) is (replicates >= 5)
