"""What Goldstein and Shlomo's study concludes, on figures made up: holds, does not, or too few files to say."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from maskwell.studies.conclusions import (
    FAILS,
    FEWEST,
    HOLDS,
    UNDECIDED,
    StudyEstimate,
    estimate,
    judge_margin,
)
from maskwell.studies.goldstein import agreement, statements
from maskwell.studies.goldstein.chances import detectable_gap, errors, z_score, z_scores
from maskwell.studies.results import read_expected


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
    inside, outside, across = (StudyEstimate(mean, 0.1, 1000) for mean in (0.0, 2.0, 1.0))
    assert judge_margin([inside, inside], -1, 1) == HOLDS
    assert judge_margin([inside, outside, across], -1, 1) == FAILS
    assert judge_margin([inside, across], -1, 1) == UNDECIDED
    barely = StudyEstimate(1.21, 0.1, 1000)  # outside by one interval of 95%, not by the one of several
    assert judge_margin([barely], -1, 1) == FAILS
    assert judge_margin([barely, *[inside] * 9], -1, 1) == UNDECIDED


def test_the_smallest_gap_that_is_noticed_has_the_chance_that_is_told():
    rng, runs, targets = np.random.default_rng(4), 4000, 770
    for surely, chance in ((False, 0.5), (True, 0.9)):
        gap = detectable_gap(targets, surely=surely)
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
    return {one for check in statements.STATEMENTS[table] for note in check(given) for one in outcome(note)}


def outcome(note: str) -> list[str]:
    return [word for word in (HOLDS, FAILS, UNDECIDED) if f". {word}: " in note]


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
    return [word for note in told for word in outcome(note)]


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
    table = read_expected("goldstein")["2"]
    made = {cell: shares(table.published(cell), count) for cell in table.cells}
    lone = f"{agreement.LONE} | covariance 0.2"
    return made | {
        agreement.MISPRINTED: shares(other.get("misprinted", 0.10), count),
        lone: shares(other.get("lone", 0.48), count),
    }


@pytest.mark.parametrize(
    ("count", "ours", "word"),
    [
        (1000, 0.10, "a misprint, 0.01 should be 0.10"),
        (1000, 0.30, "neither 0.01 nor 0.10 fits"),
        (1000, 0.01, "no misprint, 0.01 fits"),
        (10, 0.10, "Too few files to say whether 0.01 should be 0.10"),
    ],
)
def test_a_misprint_is_concluded_from_the_figures(count, ours, word):
    (note,) = agreement.misprint(table_2(count, misprinted=ours))
    assert word in note


def test_one_file_shows_neither_a_misprint_nor_a_gap():
    one_file = {cell: values[None, :] for cell, values in table_2(1000, lone=0.3).items()}
    assert "Too few files to say" in agreement.misprint(one_file)[0]
    assert "too few files to say" in agreement.lone_cell(one_file)[0]


@pytest.mark.parametrize(
    ("ours", "word"),
    [
        (0.48, "is reproduced (z +0.0)"),
        (0.43, "too few simulations, theirs and ours, to say"),
        (0.38, "is not reproduced"),
    ],
)
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
