"""Goldstein and Shlomo's study: the machinery of z, section 5 exactly, and what few files can show."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import cache
from importlib.resources import files
from math import sqrt

import numpy as np
import pytest

from maskwell.attacks import NearestRecord, attack
from maskwell.masking import apply
from maskwell.studies import draw_study, table_names
from maskwell.studies.goldstein import agreement, binary, farms, statements
from maskwell.studies.goldstein.chances import band, errors, noticed, table_of, z_score, z_scores
from maskwell.studies.goldstein.conclusions import FAILS, FEWEST, HOLDS, UNDECIDED, Estimate, estimate, judged
from maskwell.studies.goldstein.simulation import (
    DECILES,
    EUCLID,
    FIFTH,
    LOWEST,
    MEDIAN,
    Job,
    Normals,
    independent,
    simulate,
)
from maskwell.studies.goldstein.study import run
from maskwell.studies.goldstein.tables import SCORES, TABLES, normal
from maskwell.studies.results import Study, expected

FEW = 20  # replicates: one file for tables of 22 records
# Pr(h = 0) at deciles 10 to 90 in per cent by a program of another hand; we grant it the error of 1,000 simulations.
ORACLE = (53.5, 46.3, 42.8, 41.5, 41.2, 40.6, 42.4, 45.9, 53.7)


def drawn(tables: tuple[str, ...], replicates: int, seed: int = 2003) -> Study:
    return run(tables, replicates=replicates, seed=seed, progress=lambda done, total: None)


@cache
def ran(*tables: str, replicates: int = FEW) -> Study:
    return drawn(tables, replicates)


# What was published.


def test_every_table_is_run_and_named_in_the_readme():
    assert set(table_names("goldstein")) == set(TABLES)
    readme = files("maskwell.studies").joinpath("goldstein", "README.md").read_text(encoding="utf-8")
    assert [name for name in TABLES if f"`{name}`" not in readme] == []
    assert "%" not in readme


def test_all_published_cells_are_there():
    tables = expected("goldstein")
    counts = {name: len(tables[name].cells) for name in ("1", "2", "3", "7a", "7b")}
    assert counts == {"1": 21 * 9, "2": 60, "3": 30, "7a": 20, "7b": 20}
    columns = [[tables["1"].published(f"h {h} | decile {d}") for h in range(20)] for d in range(10, 100, 10)]
    assert all(column == sorted(column) for column in columns)  # as printed it is cumulative
    assert columns[0][:4] == [52.2, 62.9, 70.0, 74.7]
    assert columns[8][-1] == 96.6
    assert set(errors().compared) <= set(TABLES)


# The machinery of z.


def test_z_has_both_binomial_errors():
    values = np.array([1.0] * 60 + [0.0] * 140)
    pooled = (60 + 400) / 1200
    error = sqrt(pooled * (1 - pooled) * (1 / 200 + 1 / 1000))
    assert z_score(0.4, values) == pytest.approx((0.3 - 0.4) / error)
    assert z_score(40.0, 100 * values, 100.0) == pytest.approx(z_score(0.4, values))
    assert z_score(1.0, np.ones(50)) == 0.0


def test_z_of_simulations_that_are_alike_is_standard_normal():
    rng = np.random.default_rng(1)
    draws, simulations, chance = 300, errors().simulations, 0.3
    published = rng.binomial(simulations, chance, 2000) / simulations
    scores = np.array([z_score(p, (rng.random(draws) < chance).astype(float)) for p in published])
    assert abs(scores.mean()) < 4 / sqrt(2000)
    assert scores.std() == pytest.approx(1.0, abs=4 / sqrt(2 * 2000))


def test_the_band_is_where_the_papers_simulations_lie():
    rng = np.random.default_rng(2)
    draws, simulations, chance, runs = 400, errors().simulations, 0.3, 2000
    inside = 0
    for _ in range(runs):
        low, high = band((rng.random(draws) < chance).astype(float))
        inside += low <= rng.binomial(simulations, chance) / simulations <= high
    assert inside / runs == pytest.approx(
        0.9, abs=4 * sqrt(0.09 / runs) + 0.01
    )  # a share is in steps of 0.001
    assert band(np.ones(1)) == (None, None)
    assert band(np.ones(9)) == (1.0, 1.0)


def test_a_cell_agrees_up_to_the_largest_z_and_not_beyond():
    figures = {cell: np.repeat([1.0, 0.0], [30, 70]) for cell in expected("goldstein")["sizes"].cells}
    table, scores = table_of("sizes", figures), z_scores("sizes", figures)
    assert {one.within for one in table.cells} == {True, False}
    for one in table.cells:
        assert one.within is (abs(scores[one.cell]) <= 3.5)
        assert one.low < one.ours < one.high


# The simulations.


def test_simulated_identifiers_have_the_covariance_asked_for():
    data = Normals(20_000, 4, 0.3)
    values = data.table(np.random.default_rng(1)).values(data.fields)
    error = 4 * np.sqrt((1 + data.omega**2) / 20_000)  # of a covariance of normal variables with variance 1
    assert (np.abs(np.cov(values.T) - data.omega) < error).all()
    np.testing.assert_allclose(data.omega @ data.inverse, np.eye(4), atol=1e-12)


def test_targets_are_symmetric_around_the_quantiles_that_they_stand_for():
    assert len(LOWEST) == len(FIFTH) == 22
    for shares, middle in ((LOWEST, 0.1), (FIFTH, 0.05)):
        assert np.mean(shares[:11]) == pytest.approx(middle)
        assert np.mean(shares[11:]) == pytest.approx(1 - middle)
    assert np.mean(MEDIAN) == pytest.approx(0.5)


def test_h_is_what_its_definition_says():
    """The h of a job against equation (1) written out: ranks of the distances, nothing standardised."""
    data = Normals(300, 3, 0.25)
    table = data.table(np.random.default_rng(3))
    masking = apply(independent(data, 0.1), table, seed=3, exact=True)
    found = Job(data, independent(data, 0.1)).found(masking)
    y, z, order = table.values(data.fields), masking.release.table.values(data.fields), masking.order
    sds = z.std(axis=0, ddof=1)
    sums = ((y - y.mean(axis=0)) / y.std(axis=0, ddof=1)).sum(axis=1)
    targets = np.argsort(sums)[[int(300 * share + 1e-9) - 1 for share in DECILES]]
    for target, h in zip(targets, found, strict=True):
        nearest = order[(((z - y[target]) / sds) ** 2).sum(axis=1).argmin()]
        distances = (((y - y[target]) / sds) ** 2).sum(axis=1)
        assert h == (distances < distances[nearest]).sum()


def test_table_1_has_the_chance_of_h_0_that_many_simulations_gave():
    found = simulate({normal(): 60}, 7, lambda: None)[normal()]
    for share, column in zip(ORACLE, found.T, strict=True):
        error = 4 * sqrt(share * (100 - share)) * sqrt(1 / 60 + 1 / 1000)
        assert 100 * (column == 0).mean() == pytest.approx(share, abs=error)


def test_few_simulations_are_not_far_from_the_published_and_their_z_are_shown():
    study = ran("1", "1-z", "3", "3-z")
    for name in ("1", "3"):
        cells, scores = study[name].cells, study[f"{name}-z"].cells
        assert [one.within for one in cells] == [abs(one.ours) <= 3.5 for one in scores]
        assert max(abs(one.ours) for one in scores) < 5
    assert study["1"]["h 20+ | decile 50"].ours == 100
    assert study["1-z"]["h 0 | 10"].published is None
    assert [note.split(":")[0] for note in study.notes if "root mean square" in note] == [
        "table 1",
        "table 3",
    ]


def test_table_2_has_a_misprint():
    table = expected("goldstein")["2"]
    cell = "pr(h = 0), N 1,000, noise 0.4 | covariance 0.3"
    job = normal(Normals(covariance=0.3), 0.4, at=LOWEST)
    found = simulate({job: 25}, 8, lambda: None)[job]
    values = TABLES["2"]().figures(defaultdict(lambda: found))[cell]
    assert table.published(cell) == 0.01
    assert z_score(0.01, values) > 3.5
    assert abs(z_score(0.10, values)) <= 3.5


def test_the_5th_percentile_is_not_reproduced():
    """The published figure is held against ours with the error of ours alone: it is no chance of theirs either."""
    job = normal(Normals(covariance=0.1), at=FIFTH)
    values = simulate({job: 60}, 8, lambda: None)[job].ravel() == 0
    published = expected("goldstein")["covariance"].published("covariance 0.1 | pr(h = 0)")
    assert values.mean() - published > 4 * sqrt(0.25 / len(values))


def test_table_2_is_written_whole():
    study = ran("2")
    assert len(study["2"].cells) == 60
    assert {one.within for one in study["2"].cells} <= {True, False}
    assert any("Too few files to say whether 0.01 should be 0.10" in note for note in study.notes)
    assert any("looked at because it is out of line" in note for note in study.notes)


def test_a_large_mean_of_h_does_not_mean_that_few_are_found():
    table = ran("expectation", replicates=100)["expectation"]
    assert table["noise 0.2 | E(h)"].ours > 3
    assert table["noise 0.2 | pr(h = 0)"].ours > 0.1
    assert table["noise 0.05 | pr(h < 3)"].ours > table["noise 1 | pr(h < 3)"].ours


def test_the_informed_intruder_finds_more_where_noise_is_correlated():
    table = ran("knowledge")["knowledge"]
    row = "10 identifiers, covariance 0.8, Kim's noise 0.34"
    found = {name: table[f"{row} | {name}"].ours for name in table.columns}
    error = 4 * sqrt(2 * 50 * 50 / 1000)
    assert found["posterior"] > found["E(y|z)"] + error
    assert max(found["Euclid"], found["E(y|z) by variable"]) < found["posterior"] - error


# Conclusions.


def test_an_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(3)
    files, targets, runs = 30, 8, 1000
    shared = rng.normal(
        size=(runs, files, 1)
    )  # targets of one file are alike: the spread between files shows it
    estimates = [estimate(values) for values in 2 + shared + rng.normal(size=(runs, files, targets))]
    held = np.mean([one.low() < 2 < one.high() for one in estimates])
    assert held == pytest.approx(0.95, abs=4 * sqrt(0.05 * 0.95 / runs))


def test_targets_that_are_all_alike_leave_an_error_and_few_files_leave_no_interval():
    assert estimate(np.zeros(100)).half() == pytest.approx(
        -np.log(0.025) / 100
    )  # the rule of three, two-sided
    assert estimate(np.zeros((20, 5)), 100.0).half() == pytest.approx(-np.log(0.025))
    assert estimate(np.zeros(FEWEST - 1)).half() == np.inf
    assert estimate(np.ones(1)).text(1) == "1.0"
    assert 2 / 2**FEWEST < 0.05 < 2 / 2 ** (FEWEST - 1)  # unanimous files, by the sign test


def test_a_judgement_needs_all_within_or_one_outside():
    inside, outside, across = (Estimate(mean, 0.1, 1000) for mean in (0.0, 2.0, 1.0))
    assert judged([inside, inside], -1, 1) == HOLDS
    assert judged([inside, outside, across], -1, 1) == FAILS
    assert judged([inside, across], -1, 1) == UNDECIDED
    barely = Estimate(1.21, 0.1, 1000)  # outside by one interval of 95%, not by the one of several
    assert judged([barely], -1, 1) == FAILS
    assert judged([barely, *[inside] * 9], -1, 1) == UNDECIDED


def test_the_smallest_gap_that_is_noticed_has_the_chance_that_is_told():
    rng, runs, targets = np.random.default_rng(4), 4000, 770
    for surely, chance in ((False, 0.5), (True, 0.9)):
        gap = noticed(targets, surely=surely)
        theirs = rng.binomial(errors().simulations, 0.5 - gap / 2, runs) / errors().simulations
        ours = rng.binomial(targets, 0.5 + gap / 2, runs)
        scores = [
            z_score(p, np.repeat([1.0, 0.0], [n, targets - n])) for p, n in zip(theirs, ours, strict=True)
        ]
        share = np.mean(np.array(scores) > errors().largest_z)
        assert share == pytest.approx(
            chance, abs=4 * sqrt(chance * (1 - chance) / runs) + 0.02
        )  # nearly normal


# Statements, on figures made up so that they hold, do not hold, or are too few.


def figures(columns: dict[str, dict[str, float]], count: int = 4000) -> dict[str, np.ndarray]:
    """Return cells by column and row, of so many files that give 0 or 1 (or 0 or 100) with these means.

    The files that give something are drawn anew for every cell, so that differences have an error.
    """
    rng = np.random.default_rng(5)
    cells = ((row, column, value) for column, rows in columns.items() for row, value in rows.items())
    return {f"{row} | {column}": rng.permutation(shares(value, count)) for row, column, value in cells}


def shares(value: float, count: int = 100) -> np.ndarray:
    """Return so many values with this mean, which is in hundredths or in per cent."""
    whole = 100 if value > 1 else 1
    ones = round(count * value / whole)
    return np.repeat([whole, 0], [ones, count - ones]).astype(float)


def rows(names: list[str], *values: float) -> dict[str, float]:
    return dict(zip(names, values, strict=True))


INTRUDERS = ("Euclid", "E(y|z) by variable", "E(y|z)", "posterior")
SIZES = [f"N {count}, decile 10" for count in ("1,000", "5,000", "10,000")]
RHOS = [f"covariance {rho}" for rho in ("0.1", "0.3", "0.5")]
FARM_ROWS = ["quantile 5", "quantile 10", "quantile 50", "quantile 90", "quantile 95"]
KINDS = ("correlated 5%", "correlated 17%", "independent 5%", "independent 17%")


def weighted(omega: float) -> dict[str, dict[str, float]]:
    both = {"Euclid": 50.0, "W = Omega": omega, "W = inverse of Omega": 48.0}
    return {name: {"d, h 0": value, "d, h 5": 80.0} for name, value in both.items()}


def intruders(last: float, *names: str) -> dict[str, dict[str, float]]:
    return {name: {"d, h 0": last if name in names else 50.0, "d, h 5": 80.0} for name in INTRUDERS}


def by_covariance(*found: float) -> dict[str, dict[str, float]]:
    return {"pr(h = 0)": rows(RHOS, *found), "pr(h > 5)": rows(RHOS, 0.1, 0.1, 0.1)}


def informed_farms(correlated: float, independent: float) -> dict[str, dict[str, float]]:
    return {kind: rows(FARM_ROWS, *[correlated if kind[0] == "c" else independent] * 5) for kind in KINDS}


BOTH_WAYS = [  # a table, figures by which its last statement holds, and figures by which it does not
    ("1", {"decile 10": {"h 0": 50}, "decile 20": {"h 0": 55}}, {"decile 10": {"h 0": 50}, "decile 20": {"h 0": 65}}),
    ("weighted", weighted(51), weighted(30)),
    ("informed", intruders(51, "E(y|z)"), intruders(60, "E(y|z)")),
    ("knowledge", intruders(51, "posterior"), intruders(60, "posterior")),
    ("sizes", {"pr(h = 0)": rows(SIZES, 0.5, 0.3, 0.2)}, {"pr(h = 0)": rows(SIZES, 0.5, 0.3, 0.4)}),
    ("identifiers", {"5": {"h 0": 50, "h 5": 80}, "10": {"h 0": 51, "h 5": 79}},
     {"5": {"h 0": 50, "h 5": 80}, "10": {"h 0": 51, "h 5": 70}}),
    ("covariance", by_covariance(0.55, 0.5, 0.48), by_covariance(0.48, 0.5, 0.55)),
    ("covariance", by_covariance(0.55, 0.5, 0.48), by_covariance(0.75, 0.5, 0.45)),
    ("7a", {"pr(h = 0), 17% noise": rows(FARM_ROWS, 0.1, 0.1, 0.1, 0.1, 0.3)},
     {"pr(h = 0), 17% noise": rows(FARM_ROWS, 0.1, 0.5, 0.1, 0.1, 0.3)}),
    ("7-informed", informed_farms(0.6, 0.4), informed_farms(0.4, 0.6)),
]  # fmt: skip


def outcomes(table: str, given: dict[str, np.ndarray]) -> set[str]:
    told = [note for check in statements.STATEMENTS[table] for note in check(given) if note.count(" here: ")
            or UNDECIDED in note]  # fmt: skip
    return {word for note in told for word in (HOLDS, FAILS, UNDECIDED) if f". {word}: " in note}


@pytest.mark.parametrize(("table", "good", "bad"), BOTH_WAYS)
def test_a_statement_is_judged_by_the_figures_and_their_errors(table, good, bad):
    assert outcomes(table, figures(good)) == {HOLDS}
    assert outcomes(table, figures(bad)) == {FAILS}
    assert outcomes(table, figures(good, 10)) == {UNDECIDED}
    for given in (good, bad):
        assert outcomes(table, figures(given, FEWEST - 1)) == {UNDECIDED}


def farm_tables(h: tuple[float, float], zero: tuple[float, float], count: int = 4000) -> list[str]:
    """Return the outcomes for figures of correlated and of independent noise."""
    made = {
        name: figures(
            {f"{kind}, {noise} noise": rows(FARM_ROWS, *[value] * 5)
             for noise in ("5%", "17%") for kind, value in (("h", mean), ("pr(h = 0)", share))},
            count,
        )
        for name, mean, share in zip(("7a", "7b"), h, zero, strict=True)
    }  # fmt: skip
    told = statements.notes(made, {"7a": count, "7b": count})[-2:]
    return [word for note in told for word in (HOLDS, FAILS, UNDECIDED) if f". {word}: " in note]


def test_correlated_and_independent_noise_are_compared_by_the_figures():
    assert farm_tables((60.0, 40.0), (0.3, 0.3)) == [HOLDS, HOLDS]
    assert farm_tables((40.0, 60.0), (0.6, 0.3)) == [FAILS, FAILS]
    assert farm_tables((50.0, 50.0), (0.3, 0.3), 20) == [UNDECIDED, UNDECIDED]


def test_rows_that_are_alike_are_named_by_the_figures():
    alike = figures({"5": {"h 0": 50, "h 5": 80}, "10": {"h 0": 50, "h 5": 60}})
    (note,) = statements.STATEMENTS["identifiers"][0](alike)
    assert note.endswith("row by row: alike at h 0; not alike at h 5.")
    (note,) = statements.STATEMENTS["identifiers"][0]({cell: values[:20] for cell, values in alike.items()})
    assert note.endswith("row by row: too few files to say at h 0, h 5.")


def test_the_noise_at_which_a_mean_of_3_is_reached_is_told_with_who_is_found_there():
    cells = {"noise 0.1": (2.0, 0.8, 0.9), "noise 0.2": (4.0, 0.45, 0.6), "noise 1": (90.0, 0.02, 0.05)}
    made = {
        f"{row} | {column}": np.tile([value - 1, value + 1], 500) if column == "E(h)" else shares(value, 1000)
        for row, values in cells.items()
        for column, value in zip(("E(h)", "pr(h = 0)", "pr(h < 3)"), values, strict=True)
    }
    first, second = statements.STATEMENTS["expectation"][0](made)
    assert "it holds from noise 0.2 on (4.00 ± 0.06). pr(h = 0) is 0.80 ± 0.02, 0.45 ± 0.03" in first
    assert second.endswith("it holds from noise 1 on (0.05 ± 0.01)")
    few = {cell: values[:3] for cell, values in made.items()}
    assert "it is seen to hold at none of those tried; too few files to say at noise 0.1" in "".join(
        statements.STATEMENTS["expectation"][0](few)
    )


# Agreement with table 2, on figures made up.


def table_2(count: int, **other: float) -> dict[str, np.ndarray]:
    """Return what the paper printed as if it were ours, but for the misprinted and the lone cell."""
    table = expected("goldstein")["2"]
    made = {cell: shares(table.published(cell), count) for cell in table.cells}
    lone = f"{agreement.LONE} | covariance 0.2"
    return made | {
        agreement.MISPRINTED: shares(other.get("misprinted", 0.10), count),
        lone: shares(other.get("lone", 0.48), count),
    }


@pytest.mark.parametrize(
    ("count", "ours", "word"),
    [(1000, 0.10, "a misprint, 0.01 should be 0.10"), (1000, 0.30, "neither 0.01 nor 0.10 fits"),
     (1000, 0.01, "Too few files to say"), (20, 0.10, "Too few files to say")],
)  # fmt: skip
def test_a_misprint_is_concluded_from_the_figures(count, ours, word):
    (note,) = agreement.misprint(table_2(count, misprinted=ours))
    assert word in note


@pytest.mark.parametrize(
    ("ours", "word"),
    [(0.48, "is reproduced (z +0.0)"), (0.43, "too few simulations, theirs and ours, to say"), (0.38, "is not reproduced")],
)  # fmt: skip
def test_a_cell_that_stands_out_is_judged_by_its_z(ours, word):
    assert word in agreement.lone_cell(table_2(1000, lone=ours))[0]


def test_the_root_mean_square_is_of_all_cells_and_the_power_is_told():
    made = table_2(770)
    scores = z_scores("2", made)
    assert abs(scores[agreement.MISPRINTED]) > 3.5
    (note,) = agreement.agreement("2")(made)
    assert f"of all is {sqrt(np.mean(np.square(list(scores.values())))):.2f} (0.0" in note
    assert "59 of 60 cells" in note
    assert "8 points off is noticed every second time, one that is 11 off nine times in ten" in note


# Section 5.


def test_section_5_exactly():
    assert list(binary.exact().values()) == pytest.approx([0.19, 0.006859, 0.001, 1000 / 6859], rel=1e-12)
    table = ran("binary", replicates=20)["binary"]
    exact = [one for one in table.cells if one.column == "exact"]
    assert [one.published for one in exact] == [0.19, 0.007, 0.001, 0.15]
    assert all(one.within for one in exact)


def test_section_5_on_masked_files():
    found = simulate({binary.Identified(): 4}, 5, lambda: None)[binary.Identified()]
    truth = np.array(list(binary.exact().values()))
    records = binary.Binaries().records
    counts = np.array([3 * records, records, records, records * truth[1]])
    error = 4 * np.sqrt(truth * (1 - truth) / (len(found) * counts))
    assert (np.abs(found.mean(axis=0) - truth) < error).all()


def test_those_identified_are_correct_where_the_true_record_is_all_ones():
    table = binary.Binaries(2000).table(np.random.default_rng(4))
    masking = apply(binary.MASK, table, seed=4, exact=True)
    truth, released = (
        one.values(binary.FIELDS).all(axis=1) for one in (masking.truth, masking.release.table)
    )
    share = binary.Identified(binary.Binaries(2000)).found(masking)[-1]
    assert share == truth[masking.order][released].mean()
    assert 0 < share < 1


# The farms.


def test_the_farms_have_the_moments_that_the_papers_regression_implies():
    data = farms.Farms(200_000)
    values = data.table(np.random.default_rng(6)).values(data.fields)
    assert values[:, 0].var() == pytest.approx(farms.RECEIPTS_VARIANCE, rel=0.03)
    design = np.column_stack([np.ones(len(values)), values[:, 1:]])
    beta, rest = np.linalg.lstsq(design, values[:, 0], rcond=None)[:2]
    per_farm = rest[0] / len(values) * np.linalg.inv(design.T @ design / len(values)) / 333
    np.testing.assert_allclose(np.sqrt(np.diag(per_farm)), [1.70, 1.37, 0.0007, 0.00004], rtol=0.05)
    np.testing.assert_allclose(beta, farms.BETA, rtol=0.1)


@pytest.mark.parametrize("noise", farms.NOISES)
def test_shlomos_noise_keeps_the_moments_and_kims_share_is_the_papers(noise):
    table = farms.Farms(50_000).table(np.random.default_rng(7))
    x = table.values(farms.Farms.fields)
    masking = apply(farms.correlated(noise), table, seed=7, exact=True)
    z = masking.masked.values(farms.Farms.fields)
    np.testing.assert_allclose(np.cov(z.T), np.cov(x.T), atol=0.02 * np.outer(x.std(0), x.std(0)).max())
    slope = [np.cov(x[:, j], z[:, j])[0, 1] / x[:, j].var() for j in range(4)]
    np.testing.assert_allclose(slope, np.sqrt(1 - noise), rtol=0.01)


def test_farms_are_shape_only_and_the_outermost_are_found_most():
    study = ran("7a", "7b", replicates=150)
    for name in ("7a", "7b"):
        table = study[name]
        assert {one.within for one in table.cells} == {None}
        found = [table[f"{row} | pr(h = 0), 5% noise"].ours for row in table.rows]
        assert max(found) == found[-1]
        assert table["quantile 5 | h, 17% noise"].ours > table["quantile 95 | h, 17% noise"].ours
    told = [note for note in study.notes if "correlated less independent" in note]
    assert len(told) == 2
    assert not any("does not hold" in note.partition("here:")[0] for note in told)


# Running.


def test_a_table_is_the_same_alone_and_among_others():
    together = drawn(("identifiers", "3", "informed"), 6)
    alone = [drawn((name,), 6)[name] for name in ("identifiers", "3", "informed")]
    assert list(together.tables) == alone


def test_the_seed_decides():
    one, other = (drawn(("3",), 4, seed) for seed in (1, 2))
    assert one == drawn(("3",), 4, 1)
    assert one["3"].cells != other["3"].cells


def test_one_replicate_runs_and_is_json():
    study = drawn(tuple(name for name in TABLES if name not in {"2", "2-z"}), 1)
    text = json.dumps(study.to_dict(), allow_nan=False)
    assert set(SCORES) <= {one["name"] for one in json.loads(text)["tables"]} | {"2-z"}


def test_progress_is_told_to_the_end():
    told: list[tuple[int, int]] = []
    run(("3", "weighted"), replicates=4, seed=1, progress=lambda done, total: told.append((done, total)))
    assert told == [(i, 4 + 3 * 2) for i in range(1, 11)]


def test_plans_are_the_papers():
    job = normal()
    assert (job.data, job.mask.variance, job.intruder) == (Normals(1000, 5, 0.25), 0.1, EUCLID)
    assert job.plan == NearestRecord(fields=job.data.fields, match_blocks=(), targets=job.plan.targets)
    assert job.plan.targets.of == "row sum"
    assert farms.correlated(0.05).keep == "moments"


def test_every_picture_is_drawn(tmp_path):
    names = ("1", "2", "informed", "knowledge", "7a", "7b", "7-informed")
    tables = [ran(name)[name] for name in names if name not in ("7a", "7b")]
    tables += [ran("7a", "7b", replicates=150)[name] for name in ("7a", "7b")]
    paths = draw_study(Study("goldstein", tuple(tables)), tmp_path)
    assert [path.name for path in paths] == ["h_by_decile.png", "table_2.png", "informed.png", "farms.png"]
    assert all(path.stat().st_size > 10_000 for path in paths)
    assert draw_study(Study("goldstein", ()), tmp_path) == []


def test_attack_is_the_librarys():
    """The study has no score of its own: a job's h is that of the Risk."""
    job = normal()
    masking = apply(job.mask, job.data.table(np.random.default_rng(9)), seed=9, exact=True)
    np.testing.assert_array_equal(job.found(masking), attack(job.plan, masking).h.values)
