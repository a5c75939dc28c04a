"""What columns that no intruder compares tell of companions, against closed forms, and the verdict that follows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.pipeline.companion_information import MOST_TOLD, companion_information
from maskwell.pipeline.reassembly import unknown_companions
from maskwell.plan import ReleasePlan
from maskwell.releasing import release
from maskwell.schema import Column, Schema
from maskwell.table import Table

GROUPS, MEMBERS = 1_000, 4
GROUP = np.repeat(np.arange(GROUPS), MEMBERS)


@pytest.mark.parametrize(("alike", "columns"), [(0.3, 1), (0.8, 1), (0.5, 3)])
def test_numbers_have_in_common_what_normal_values_have(alike: float, columns: int) -> None:
    rng = np.random.default_rng(1)
    shared = rng.standard_normal((GROUPS, columns))[GROUP]
    x = np.sqrt(alike) * shared + np.sqrt(1 - alike) * rng.standard_normal((len(GROUP), columns))
    found = companion_information("home", {f"x{k}": np.exp(x[:, k]) for k in range(columns)}, {}, GROUP, 0.1)
    expected = -0.5 * columns * np.log2(1 - alike**2)
    spread = np.sqrt(2 / (MEMBERS * (MEMBERS - 1) * GROUPS)) * (1 - alike) * (1 + (MEMBERS - 1) * alike)
    error = (
        np.sqrt(columns) * spread * alike / ((1 - alike**2) * np.log(2))
    )  # of the intraclass correlation (Fisher)
    assert found.bits == pytest.approx(expected, abs=5 * error)
    assert found.companions == MEMBERS - 1
    assert found.expected == pytest.approx(0.1 * 3 * found.bits)


def test_what_one_of_a_couple_has_of_a_sum_tells_of_the_other() -> None:
    rng = np.random.default_rng(5)
    couples, noise = 2_000, 0.2
    share = rng.standard_normal(couples)
    x = np.column_stack([share, -share]).ravel() + noise * rng.standard_normal(2 * couples)
    found = companion_information("home", {"share": x}, {}, np.repeat(np.arange(couples), 2), 0.1)
    r = 1 / (1 + noise**2)
    error = (1 - r**2) / np.sqrt(couples) * r / ((1 - r**2) * np.log(2))
    assert found.bits == pytest.approx(-0.5 * np.log2(1 - r**2), abs=5 * error)
    assert not found.is_judged


def test_a_category_that_members_share_has_its_entropy_in_common() -> None:
    levels = np.random.default_rng(2).integers(0, 8, GROUPS)
    found = companion_information("home", {}, {"faith": levels[GROUP]}, GROUP, 0.05)
    assert found.bits == pytest.approx(
        3.0, abs=0.03
    )  # levels are even but for chance: 7 / (2 x 1,000 ln 2) bits
    assert not found.is_judged
    assert "its members are alike in faith, which no intruder compares" in found.said


@pytest.mark.parametrize("seed", range(5))
def test_chance_tells_nothing_however_many_columns_there_are(seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = {f"x{k}": rng.standard_normal(200) for k in range(15)}
    categories = {f"c{k}": rng.integers(0, 6, 200) for k in range(5)}
    found = companion_information("home", numbers, categories, np.repeat(np.arange(100), 2), 0.1)
    assert found.is_judged


def test_who_knows_couples_finds_more_by_a_column_that_he_does_not_know() -> None:
    """Brute force over both members: with many bits in common he finds many more, within the limit hardly any."""
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(200), 2)
    x = rng.standard_normal(400)
    z = x + 0.02 * rng.standard_normal(400)
    weight = np.exp(-0.5 * ((x[:, None] - z[None]) / 0.02) ** 2)
    chance = weight / weight.sum(axis=0)
    alone = (chance.argmax(axis=1) == np.arange(400)).mean()

    def together(levels: int) -> tuple[float, float]:
        faith = rng.integers(0, levels, 200)[group]
        right, same = 0, faith[:, None] == faith[None]
        for i in range(400):
            fits = np.outer(chance[i], chance[i ^ 1]) * np.where(same, levels, 0.0)
            right += fits.sum(axis=1).argmax() == i
        return right / 400, companion_information("h", {}, {"faith": faith}, group, float(alone)).expected

    many, bits = together(200)
    assert bits > MOST_TOLD
    error = np.sqrt(alone * (1 - alone) / 400)
    assert many > alone + 4 * error
    none, bits = together(1)
    assert bits <= MOST_TOLD
    assert none == pytest.approx(alone, abs=1e-9)


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


def test_a_release_is_not_judged_where_members_share_what_nobody_compares(tmp_path: Path) -> None:
    table = persons()
    mw.write(table, tmp_path / "persons.csv")
    (tmp_path / "persons.toml").write_text(table.schema.to_toml())
    (tmp_path / "plan.toml").write_text(
        '[input]\nfile = "persons.csv"\nschema = "persons.toml"\n'
        '[[masks]]\nmask = "IndependentNoise"\ncolumns = ["age"]\nvariance_ratio = 0.001\n'
        '[[intruders]]\nname = "informed"\nattack = "NearestRecord"\ndistance = "posterior"\n'
        '[tolerance]\nmax_rate = 0.5\n[output]\nrelease = "out"\nprivate = "inside"\n'
    )
    outcome = release(ReleasePlan.read(tmp_path / "plan.toml"), seed=1, study=True, advise=False)
    assert any("alike in faith, which no intruder compares" in one for one in outcome.not_judged)
    assert not outcome.passed
