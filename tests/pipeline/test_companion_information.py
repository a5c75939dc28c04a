"""What columns that no intruder compares tell of companions, against closed forms, and the verdict that follows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.notes import has_code
from maskwell.pipeline.companion_information import (
    MATERIAL,
    MOST_FITTED,
    companion_information,
    whole_groups,
)
from maskwell.pipeline.companion_laws import Codes, CompanionColumns, Floats
from maskwell.pipeline.reassembly import unknown_companions
from maskwell.plan import ReleasePlan
from maskwell.release_job import release
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .homes import KEY, plan_in

GROUPS, MEMBERS = 1_000, 4
GROUP = np.repeat(np.arange(GROUPS), MEMBERS)


def members_alike(alike: float, columns: int, seed: int) -> Floats:
    """Return normal values with this correlation of two members."""
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((GROUPS, columns))[GROUP]
    return np.asarray(
        np.sqrt(alike) * shared + np.sqrt(1 - alike) * rng.standard_normal((len(GROUP), columns))
    )


@pytest.mark.parametrize(("alike", "columns"), [(0.3, 1), (0.8, 1), (0.5, 3)])
def test_numbers_have_in_common_what_normal_values_have(alike: float, columns: int) -> None:
    x = np.exp(members_alike(alike, columns, seed=1))
    found = companion_information(
        "home", CompanionColumns({f"x{k}": x[:, k] for k in range(columns)}), GROUP, 0.1
    )
    expected = -0.5 * columns * np.log2(1 - alike**2)
    spread = np.sqrt(2 / (MEMBERS * (MEMBERS - 1) * GROUPS)) * (1 - alike) * (1 + (MEMBERS - 1) * alike)
    error = (
        np.sqrt(columns) * spread * alike / ((1 - alike**2) * np.log(2))
    )  # of the intraclass correlation (Fisher)
    assert found.pair_bits == pytest.approx(expected, abs=5 * error)
    assert found.companions == MEMBERS - 1
    assert found.found_bits == pytest.approx(0.1 * 3 * found.pair_bits, abs=1e-3)


def test_many_companions_tell_the_effect_of_their_group_and_no_more() -> None:
    """Of 60 pupils with r = 0.1 the school's effect is told, -1/2 log2(1 - 0.1) bits at most, and not 60 pairs."""
    rng, group = np.random.default_rng(7), np.repeat(np.arange(100), 60)
    x = np.sqrt(0.1) * rng.standard_normal(100)[group] + np.sqrt(0.9) * rng.standard_normal(6_000)
    found = companion_information("school", CompanionColumns({"exam": x}), group, 0.5)
    n, r = 0.5 * 59, 0.1
    error = np.sqrt(2 / 100) * r  # of the variance between schools, in bits at most as much
    assert found.found_bits == pytest.approx(-0.5 * np.log2(1 - n * r**2 / (1 + (n - 1) * r)), abs=4 * error)
    assert found.found_bits < 0.5 * n * found.pair_bits


def test_what_one_of_a_couple_has_of_a_sum_tells_of_the_other() -> None:
    rng = np.random.default_rng(5)
    couples, noise = 2_000, 0.2
    share = rng.standard_normal(couples)
    x = np.column_stack([share, -share]).ravel() + noise * rng.standard_normal(2 * couples)
    found = companion_information(
        "home", CompanionColumns({"share": x}), np.repeat(np.arange(couples), 2), 0.1
    )
    r = 1 / (1 + noise**2)
    error = (1 - r**2) / np.sqrt(couples) * r / ((1 - r**2) * np.log(2))
    assert found.pair_bits == pytest.approx(-0.5 * np.log2(1 - r**2), abs=5 * error)
    assert not found.is_judged()


def test_a_category_that_members_share_has_its_entropy_in_common() -> None:
    levels = np.random.default_rng(2).integers(0, 8, GROUPS)
    found = companion_information("home", CompanionColumns({}, {"faith": levels[GROUP]}), GROUP, 0.05)
    assert found.pair_bits == pytest.approx(
        3.0, abs=0.03
    )  # levels are even but for chance: 7 / (2 x 1,000 ln 2) bits
    assert not found.is_judged(0.05)
    assert "its members are alike in faith, which no intruder compares" in found.said(0.05)


def test_likeness_that_known_columns_explain_is_no_news() -> None:
    """Pupils of one intake have marks alike; given the intake, which he knows, they have nothing in common."""
    rng = np.random.default_rng(8)
    intake = members_alike(0.5, 1, seed=8)[:, 0]
    mark = intake + 0.5 * rng.standard_normal(len(GROUP))
    unknown = CompanionColumns({"mark": mark})
    assert companion_information("school", unknown, GROUP, 0.1).gain > MATERIAL
    found = companion_information("school", unknown, GROUP, 0.1, CompanionColumns({"intake": intake}))
    assert found.gain < MATERIAL


def test_likeness_that_known_columns_hide_is_found() -> None:
    """Parents are old and children young, those of old parents less so: over all pairs nothing is seen of it."""
    rng = np.random.default_rng(9)
    role = np.tile([0, 0, 1, 1], GROUPS)
    shared = rng.standard_normal(GROUPS)[GROUP]
    age = np.where(role == 0, 45.0, 14.0) + 6 * shared + 2 * rng.standard_normal(len(GROUP))
    unknown = CompanionColumns({"age": age})
    told = companion_information("home", unknown, GROUP, 0.1, CompanionColumns({}, {"role": role}))
    assert told.pair_bits > 5 * companion_information("home", unknown, GROUP, 0.1).pair_bits
    assert told.gain > MATERIAL


def test_what_is_known_of_companions_tells_without_finding_them() -> None:
    """Rent is the household's: who knows all earnings of a home knows it for the child that earns nothing."""
    rng = np.random.default_rng(10)
    earns = np.where(np.tile([1, 0, 0, 0], GROUPS) == 1, rng.standard_normal(len(GROUP)), 0.0)
    rent = np.bincount(GROUP, earns)[GROUP] + rng.standard_normal(len(GROUP))
    found = companion_information(
        "home", CompanionColumns({"rent": rent}), GROUP, 0.001, CompanionColumns({"earns": earns})
    )
    assert found.known_bits > 0.1
    assert found.found_bits < 0.01
    assert found.gain > MATERIAL


def test_a_place_among_companions_is_told_by_what_is_known_of_them() -> None:
    """Children are numbered by height: who knows all heights of a family knows the numbers."""
    height = np.random.default_rng(11).standard_normal(len(GROUP))
    number = np.argsort(np.argsort(height.reshape(-1, MEMBERS), axis=1), axis=1).ravel().astype(float)
    unknown, known = CompanionColumns({"number": number}), CompanionColumns({"height": height})
    found = companion_information("family", unknown, GROUP, 0.05, known)
    assert found.known_bits > 1.0
    assert not found.is_judged(0.1)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tied", [False, True])
def test_chance_tells_nothing_however_many_columns_there_are(seed: int, tied: bool) -> None:
    rng = np.random.default_rng(seed)
    numbers = {f"x{k}": rng.standard_normal(200) for k in range(15)}
    categories = {f"c{k}": rng.integers(0, 6, 200) for k in range(5)}
    known = CompanionColumns({"k": rng.standard_normal(200)}, {"b": rng.integers(0, 3, 200)})
    group = np.repeat(np.arange(100), 2)
    found = companion_information("home", CompanionColumns(numbers, categories), group, 0.1, known, tied)
    assert found.gain < MATERIAL * (
        1.5 + tied
    )  # 100 couples and 45 columns: chance itself tells nearly as much
    assert found.is_judged(0.12 + 0.02 * tied)


def test_a_tolerance_that_whole_groups_meet_is_judged() -> None:
    x = members_alike(0.5, 1, seed=3)[:, 0]
    found = companion_information("home", CompanionColumns({"x": x}), GROUP, 0.05)
    assert found.gain > MATERIAL
    assert not found.is_judged(0.05)
    assert found.is_judged(found.forecast)
    assert f"until one record at a time finds {0.05 / (1 + found.gain):.1%}" in found.said(0.05)
    assert f"may find up to {found.forecast:.1%}" in str(found.note)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize(("levels", "members"), [(2, 2), (2, 4), (8, 2), (8, 4)])
def test_who_knows_whole_groups_finds_what_is_forecast(levels: int, members: int, tied: bool) -> None:
    """Brute force by Bayes over whole groups that share a class, which he does not know: close to it, or below.

    In the plane, with noise of variance 1 around the true row and others spread evenly, half the squared distances of
    others are a Poisson process with the rate 1 / p - 1 where he finds p alone; tied, there are 1 / p rows for each.
    """
    rng, rate, groups = np.random.default_rng(levels * members), 0.1, 1_500
    found = np.array([knows_group(rng, rate, levels, members, tied) for _ in range(groups)]).mean(axis=0)
    alone, together = found
    error = np.sqrt(together * (1 - together) / (groups * members))
    assert alone == pytest.approx(rate, abs=5 * error)
    classes = rng.integers(0, levels, GROUPS)[np.repeat(np.arange(GROUPS), members)]
    group = np.repeat(np.arange(GROUPS), members)
    forecast = companion_information(
        "g", CompanionColumns({}, {"faith": classes}), group, rate, None, tied
    ).forecast
    assert together - 4 * error < 1.15 * forecast
    assert forecast < 1.6 * together


def knows_group(
    rng: np.random.Generator, rate: float, levels: int, members: int, tied: bool
) -> tuple[float, float]:
    """Return the shares that who looks for one group finds, one record at a time and all together."""
    weights, classes = [], []
    for _ in range(members):
        others = round(1 / rate) - 1 if tied else rng.poisson(9 * (1 / rate - 1))
        energy = np.zeros(others + 1) if tied else np.r_[rng.exponential(), 9 * rng.random(others)]
        weight = np.exp(-energy) * (1 + 1e-9 * rng.random(others + 1))
        weights.append(weight / weight.sum())
        classes.append(np.r_[0, rng.integers(0, levels, others)])  # the true row is the first
    by_class = [np.bincount(c, w, minlength=levels) + 1e-12 for w, c in zip(weights, classes, strict=True)]
    logs = np.log(by_class)
    of_others = np.exp(logs.sum(axis=0) - logs)
    together = [(w * o[c]).argmax() == 0 for w, c, o in zip(weights, classes, of_others, strict=True)]
    return float(np.mean([w.argmax() == 0 for w in weights])), float(np.mean(together))


@pytest.mark.parametrize(("alike", "columns"), [(0.6, 1), (0.95, 1), (0.8, 3), (0.95, 3)])
def test_who_knows_couples_finds_what_is_forecast_by_numbers(alike: float, columns: int) -> None:
    """Brute force by Bayes over all pairs of candidates of couples, as above, with values alike in normal columns."""
    rng, rate, couples = np.random.default_rng(int(100 * alike) + columns), 0.1, 1_500
    together = np.mean([knows_couple(rng, rate, alike, columns) for _ in range(couples)])
    group = np.repeat(np.arange(4 * GROUPS), 2)
    shared = np.sqrt(alike) * rng.standard_normal((4 * GROUPS, columns))[group]
    x = shared + np.sqrt(1 - alike) * rng.standard_normal((len(group), columns))
    unknown = CompanionColumns({f"x{k}": x[:, k] for k in range(columns)})
    forecast = companion_information("couple", unknown, group, rate).forecast
    error = np.sqrt(together * (1 - together) / (2 * couples))
    assert together - 4 * error < forecast
    assert forecast < 2 * (together + 4 * error)  # with many bits in common it is too high


def knows_couple(rng: np.random.Generator, rate: float, alike: float, columns: int) -> float:
    """Return the share of a couple that who looks for both finds."""
    weights, values = [], []
    effect = np.sqrt(alike) * rng.standard_normal(columns)
    for _ in range(2):
        others = rng.poisson(9 * (1 / rate - 1))
        weights.append(np.exp(-np.r_[rng.exponential(), 9 * rng.random(others)]))
        x = rng.standard_normal((others + 1, columns))
        x[0] = effect + np.sqrt(1 - alike) * x[0]  # the true row is the first
        values.append(x)
    (first, second), (x, y) = weights, values
    squares = (x**2).sum(axis=1)[:, None] + (y**2).sum(axis=1)[None]
    fits = np.exp((alike * x @ y.T - 0.5 * alike**2 * squares) / (1 - alike**2))
    found = (first * (fits @ second)).argmax() == 0, (second * (first @ fits)).argmax() == 0
    return float(np.mean(found))


def persons() -> Table:
    """Persons in households with an age, and a faith that all members share."""
    rng = np.random.default_rng(6)
    home = np.repeat(np.arange(100), 4)
    faiths = tuple(f"f{k}" for k in range(6))
    columns = {
        "home": [f"h{i}" for i in home],
        "age": rng.integers(0, 90, 400).astype(float),
        "faith": [faiths[k] for k in rng.integers(0, 6, 100)[home]],
    }
    schema = Schema(
        (
            Column("home", "text", frozenset({"group"}), drop=True),
            Column("age", "continuous", frozenset({"key"}), unit=1),
            Column("faith", "category", frozenset({"sensitive"}), categories=faiths),
        )
    )
    return Table.from_frame(pa.table(columns), schema)


def test_columns_that_are_compared_need_no_word() -> None:
    masking = mw.apply(mw.IndependentNoise(("age",), variance_ratio=1.0), persons(), seed=1)
    assert unknown_companions(masking, {"age", "faith"}, 0.1) == ()
    (found,) = unknown_companions(masking, {"age"}, 0.1)
    assert (found.column, found.columns) == ("home", ("faith",))
    kept = persons().schema.changed({"home": replace(persons().schema["home"], drop=False)})
    leaves = mw.apply(
        mw.IndependentNoise(("age",), variance_ratio=1.0), replace(persons(), schema=kept), seed=1
    )
    assert unknown_companions(leaves, {"age"}, 0.1) == ()  # the group leaves: that is said elsewhere


def test_answers_that_whole_groups_refuse_tell_of_companions() -> None:
    """Whole homes do not say what they earn; among those who do, earnings have nothing in common."""
    rng, table = np.random.default_rng(12), persons()
    refuses = (rng.random(100) < 0.4)[np.repeat(np.arange(100), 4)]
    earns = pa.array(rng.standard_normal(400), mask=refuses)
    schema = Schema(
        (table.schema["home"], table.schema["age"], Column("earns", "continuous", frozenset({"sensitive"})))
    )
    data = pa.table({"home": table.array("home"), "age": table.array("age"), "earns": earns})
    masking = mw.apply(
        mw.IndependentNoise(("age",), variance_ratio=1.0), Table.from_frame(data, schema), seed=1
    )
    (found,) = unknown_companions(masking, {"age"}, 0.1)
    assert found.pair_bits == pytest.approx(0.97, abs=0.1)  # the entropy of 0.4, and its error in 100 homes
    assert "whether earns is missing" in found.columns


def test_groups_of_one_record_have_no_companions() -> None:
    table = persons()
    homes = [f"h{i}" for i in range(len(table))]
    alone = pa.table({"home": homes, "age": table.array("age"), "faith": table.array("faith")})
    masking = mw.apply(
        mw.IndependentNoise(("age",), variance_ratio=1.0), Table.from_frame(alone, table.schema), seed=1
    )
    assert unknown_companions(masking, {"age"}, 0.1) == ()


def test_laws_are_fitted_to_some_whole_groups() -> None:
    group = np.repeat(np.arange(20_000), 3)
    at = whole_groups(group)
    assert 0.5 * MOST_FITTED < len(at) < 1.01 * MOST_FITTED
    assert set(np.bincount(group[at])) == {0, 3}


@pytest.mark.parametrize(("max_rate", "judged"), [(0.15, False), (0.5, True)])
def test_a_release_is_not_judged_where_who_knows_whole_groups_passes_the_tolerance(
    tmp_path: Path, max_rate: float, judged: bool
) -> None:
    """One at a time 10% are found, by an attack of our own on whole homes 22% (both over ten such files)."""
    table = persons()
    mw.write(table, tmp_path / "persons.csv")
    (tmp_path / "persons.toml").write_text(table.schema.to_toml())
    (tmp_path / "plan.toml").write_text(
        '[input]\nfile = "persons.csv"\nschema = "persons.toml"\n'
        '[[masks]]\nmask = "IndependentNoise"\ncolumns = ["age"]\nvariance_ratio = 0.001\n'
        '[[intruders]]\nname = "informed"\nattack = "NearestRecord"\ndistance = "posterior"\n'
        f'[tolerance]\nmax_rate = {max_rate}\n[output]\nrelease = "out"\nprivate = "inside"\n'
    )
    outcome = release(ReleasePlan.read(tmp_path / "plan.toml"), seed=1, study=True, advise=False)
    assert outcome.after["informed"].rate < 0.15
    said = any("alike in faith, which no intruder compares" in one for one in outcome.not_judged)
    noted = has_code(outcome.notes, "pipeline.whole_groups")
    assert (said, noted) == (not judged, judged)
    assert outcome.passed <= judged


def panel(seed: int = 4) -> tuple[Codes, Floats, Codes, Codes]:
    """300 firms over 5 years: a level, the class of its growth, and that of the year before."""
    rng = np.random.default_rng(seed)
    growth = rng.standard_normal((300, 6))
    level = rng.normal(0, 3, (300, 1)) + growth[:, 1:].cumsum(axis=1)
    classes = np.digitize(growth, [-1, -0.5, 0, 0.5, 1])
    return np.repeat(np.arange(300), 5), level.ravel(), classes[:, 1:].ravel(), classes[:, :-1].ravel()


def test_a_change_of_what_is_known_tells_its_class():
    group, level, growth, _ = panel()
    known, place = CompanionColumns({"level": level}), np.arange(len(group))
    told = companion_information(
        "firm", CompanionColumns({}, {"growth": growth}), group, 0.02, known, place=place
    )
    assert told.known_bits > 1.5  # of 2.5 bits, for four years of five
    noise = np.random.default_rng(1).permutation(growth)
    by_chance = companion_information(
        "firm", CompanionColumns({}, {"growth": noise}), group, 0.02, known, place=place
    )
    assert by_chance.known_bits < 0.05


def test_the_class_of_last_year_points_to_the_row_before():
    group, _, growth, last = panel()
    unknown, place = CompanionColumns({}, {"growth": growth, "last": last}), np.arange(len(group))
    assert companion_information("firm", unknown, group, 0.1, place=place).pair_bits > 2
    assert companion_information("firm", unknown, group, 0.1).pair_bits < 1
    shuffled = np.random.default_rng(2).permutation(len(group))
    others = CompanionColumns({}, {"growth": growth[shuffled], "last": last[shuffled]})
    assert companion_information("firm", others, group, 0.1, place=place).pair_bits < 0.05


@pytest.mark.parametrize(("alike", "max_rate"), [(0.5, 0.1), (0.8, 0.1), (0.8, 0.3)])
def test_the_rate_that_settles_groups_is_where_the_forecast_meets_the_tolerance(
    alike: float, max_rate: float
) -> None:
    unknown = CompanionColumns({"x": members_alike(alike, 1, seed=2)[:, 0]})
    found = companion_information("home", unknown, GROUP, 0.2)
    rate = found.tolerated(max_rate)
    assert 0 < rate < max_rate
    assert not found.at(max_rate).is_judged(max_rate)
    assert found.at(rate).is_judged(max_rate)
    assert not found.at(rate + 1e-6).is_judged(max_rate)
    assert found.at(rate) == companion_information("home", unknown, GROUP, rate)
    assert f"until one record at a time finds {np.floor(1000 * rate) / 10:.1f}%" in found.said(max_rate)


def test_likeness_that_is_none_asks_for_no_less() -> None:
    unknown = CompanionColumns({"x": np.random.default_rng(4).standard_normal(len(GROUP))})
    assert companion_information("home", unknown, GROUP, 0.2).tolerated(0.1) == 0.1


def test_noise_is_searched_for_who_knows_whole_groups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without that the noise which holds for one record at a time leaves the verdict open."""
    rng, home = np.random.default_rng(3), np.repeat(np.arange(150), 3)
    columns = {
        "home": [f"h{i}" for i in home],
        "x": rng.normal(500, 100, 450).round(),
        "y": rng.normal(900, 200, 450).round(),
        "faith": [f"f{k}" for k in rng.integers(0, 8, 150)[home]],
    }
    group = Column("home", "text", frozenset({"group"}), drop=True)
    keys = [Column(name, "continuous", frozenset({"key"}), unit=1) for name in ("x", "y")]
    faith = Column("faith", "category", frozenset({"sensitive"}), categories=tuple(f"f{k}" for k in range(8)))
    table = Table.from_frame(pa.table(columns), Schema((group, *keys, faith), series="faiths"))
    mw.write(table, tmp_path / "homes.csv")
    (tmp_path / "homes.toml").write_text(table.schema.to_toml())
    masks = {"mask": "IndependentNoise", "columns": ["x", "y"], "variance_ratio": 0.05}
    law = [{"name": "law", "attack": "BayesIntruder"}]
    draws = {"replicates": 4, "confirmations": 6}
    plan = plan_in(tmp_path, masks, intruders=law, calibrate=draws, tolerance={"max_rate": 0.15})
    aimed = release(plan, key=KEY, advise=False)
    monkeypatch.setattr("maskwell.pipeline.run.group_rate_of", lambda case: None)
    plain = release(plan, key=KEY, advise=False)
    assert any("who knows a whole group" in one for one in plain.not_judged)
    assert not any("who knows a whole group" in one for one in aimed.not_judged)
    assert has_code(aimed.notes, "pipeline.aim_for_groups")
    assert aimed.after["law"].rate < plain.after["law"].rate <= 0.15
