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
from maskwell.studies.goldstein import binary, farms
from maskwell.studies.goldstein.analyses import ANALYSES
from maskwell.studies.goldstein.chances import band, errors, table_of, z_score, z_scores
from maskwell.studies.goldstein.simulation import (
    DECILES,
    EUCLID,
    FIFTH,
    LOWEST,
    MEDIAN,
    GoldsteinJob,
    NormalFile,
    independent,
    simulate,
)
from maskwell.studies.goldstein.study import run
from maskwell.studies.goldstein.tables import SCORES, TABLES, normal
from maskwell.studies.results import Study, read_expected

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
    tables = read_expected("goldstein")
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
    figures = {cell: np.repeat([1.0, 0.0], [30, 70]) for cell in read_expected("goldstein")["sizes"].cells}
    table, scores = table_of("sizes", figures), z_scores("sizes", figures)
    assert {one.within for one in table.cells} == {True, False}
    for one in table.cells:
        assert one.within is (abs(scores[one.cell]) <= 3.5)
        assert one.low < one.ours < one.high


# The simulations.


def test_simulated_identifiers_have_the_covariance_asked_for():
    data = NormalFile(20_000, 4, 0.3)
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
    data = NormalFile(300, 3, 0.25)
    table = data.table(np.random.default_rng(3))
    masking = apply(independent(data, 0.1), table, seed=3, exact=True)
    found = GoldsteinJob(data, independent(data, 0.1)).found(masking)
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
    table = read_expected("goldstein")["2"]
    cell = "pr(h = 0), N 1,000, noise 0.4 | covariance 0.3"
    job = normal(NormalFile(covariance=0.3), 0.4, at=LOWEST)
    found = simulate({job: 25}, 8, lambda: None)[job]
    values = TABLES["2"]().cells(defaultdict(lambda: found))[cell]
    assert table.published(cell) == 0.01
    assert z_score(0.01, values) > 3.5
    assert abs(z_score(0.10, values)) <= 3.5


def test_the_5th_percentile_is_not_reproduced():
    """The published figure is held against ours with the error of ours alone: it is no chance of theirs either."""
    job = normal(NormalFile(covariance=0.1), at=FIFTH)
    values = simulate({job: 60}, 8, lambda: None)[job].ravel() == 0
    published = read_expected("goldstein")["covariance"].published("covariance 0.1 | pr(h = 0)")
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


# Section 5.


def test_section_5_exactly():
    assert list(binary.exact().values()) == pytest.approx([0.19, 0.006859, 0.001, 1000 / 6859], rel=1e-12)
    table = ran("binary", replicates=20)["binary"]
    exact = [one for one in table.cells if one.column == "exact"]
    assert [one.published for one in exact] == [0.19, 0.007, 0.001, 0.15]
    assert all(one.within for one in exact)


def test_section_5_on_masked_files():
    found = simulate({binary.FavourableRecords(): 4}, 5, lambda: None)[binary.FavourableRecords()]
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
    share = binary.FavourableRecords(binary.Binaries(2000)).found(masking)[-1]
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
    masking = apply(farms.shlomo_noise(noise), table, seed=7, exact=True)
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
    study = drawn(tuple(name for name in TABLES if name not in {"2", "2-z", *ANALYSES}), 1)
    text = json.dumps(study.to_dict(), allow_nan=False)
    assert set(SCORES) <= {one["name"] for one in json.loads(text)["tables"]} | {"2-z"}


def test_progress_is_told_to_the_end():
    told: list[tuple[int, int]] = []
    run(("3", "weighted"), replicates=4, seed=1, progress=lambda done, total: told.append((done, total)))
    assert told == [(i, 4 + 3 * 2) for i in range(1, 11)]


def test_plans_are_the_papers():
    job = normal()
    assert (job.data, job.mask.variance, job.intruder) == (NormalFile(1000, 5, 0.25), 0.1, EUCLID)
    assert job.plan == NearestRecord(fields=job.data.fields, match_blocks=(), targets=job.plan.targets)
    assert job.plan.targets.of == "row sum"
    assert farms.shlomo_noise(0.05).keep == "moments"


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
