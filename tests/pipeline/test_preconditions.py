"""What is known from plan, schema and counts is said before the first long step."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks.fingerprint import floor_of
from maskwell.errors import BadPlan
from maskwell.pipeline import release
from maskwell.pipeline.high_floor import coarser, high_floor, high_guessing, without
from maskwell.pipeline.preconditions import not_possible, refused_at_once
from maskwell.pipeline.progress import Stages
from maskwell.pipeline.run import _situation
from maskwell.report.summary import release_summary
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .homes import INTRUDERS, KEY, NOISE, folder, homes, plan_in, short_audit

__all__ = ["folder", "short_audit"]

pytestmark = pytest.mark.usefixtures("short_audit")


def test_what_an_intruder_refuses_is_said_before_any_noise(folder: Path) -> None:
    told: list[str] = []
    wrong = [*INTRUDERS, {"name": "matcher", "attack": "Linkage", "fields": ["X", "KIND"]}]
    with pytest.raises(BadPlan, match="matcher: 'KIND' is both a field and a matching block"):
        release(
            plan_in(folder, intruders=wrong, calibrate={}),
            key=KEY,
            progress=lambda *step: told.append(step[0]),
        )
    assert set(told) == {"read", "check"}


def test_who_works_is_possible_and_who_has_no_law_is_not() -> None:
    table = homes()
    plans = {"law": mw.BayesIntruder(), "all": mw.BayesIntruder(helpers=300), "nearest": mw.NearestRecord()}
    assert not_possible(plans, table, mw.CorrelatedNoise(("X", "Y"), r0=0.5).card(table)) == {}
    ranks = mw.RankSwap(("X", "Y"), window_ratio=0.2).card(table)
    found = not_possible({"law": mw.BayesIntruder(), "nearest": mw.NearestRecord()}, table, ranks)
    assert list(found) == ["law"]
    assert "has no law" in found["law"]


def test_a_sum_under_separate_noises_is_a_fault_of_the_masks_and_of_no_intruder() -> None:
    table = homes()
    columns = {name: table.floats(name) for name in ("X", "Y")}
    schema = Schema(tuple(Column(name, "continuous", frozenset({"key"})) for name in ("X", "Y", "SUM")))
    data = pa.table(columns | {"SUM": columns["X"] + columns["Y"]})
    table = Table.from_frame(data, schema)
    card = mw.IndependentNoise(("X", "Y", "SUM"), variance_ratio=0.5).card(table)
    with pytest.raises(BadPlan, match=r"^SUM = X [+] Y exactly"):
        not_possible({"Winkler's matcher": mw.NearestRecord()}, table, card)


def test_small_blocks_of_the_whole_file_are_targets_though_few_records_are_tried(folder: Path) -> None:
    small = [{"name": "nearest", "attack": "NearestRecord", "largest_target_block": 60}]
    assert release(plan_in(folder, NOISE, intruders=small), key=KEY).masking is not None


def test_a_swap_may_still_bring_down_a_floor_of_what_it_moves(folder: Path) -> None:
    """Missing values in masked columns move with a swap: such a floor is not refused at once."""
    data = mw.read(folder / "homes.csv", folder / "homes.toml").to_arrow()
    gaps = pa.array([None if i < 3 else v for i, v in enumerate(data["X"].to_pylist())], pa.float64())
    data = data.set_column(data.column_names.index("X"), "X", gaps)
    mw.write(Table.from_frame(data, homes().schema), folder / "homes.csv")
    tight = {"limits": {"fingerprint floor": {"warn": 0.0001, "fail": 0.001}}}
    stopped = release(plan_in(folder, audit=tight), key=KEY)
    assert stopped.masking is None
    assert stopped.reasons[0].endswith("; the audit fails from 0.10% on")
    loose = {"limits": {"fingerprint floor": {"warn": 0.0001, "fail": 0.005}}}
    alone = [{"name": "fingerprint alone", "attack": "Fingerprint"}]
    stopped = release(
        plan_in(folder, audit=loose, intruders=alone, tolerance={"max_rate": 0.001}), key=KEY, advise=False
    )
    assert stopped.reasons[0].endswith("; tolerated is at most 0.1%"), "the limit that binds, and no other"
    case, _ = _situation(plan_in(folder, audit=tight, swap={}), KEY, Stages())
    assert high_floor(case, stopped.floor) is None


def with_columns(folder: Path, values: dict[Column, list[str]], without: tuple[str, ...]) -> None:
    """Write the homes with further columns, and some of their own dropped."""
    whole = homes()
    data, others = whole.to_arrow(), (replace(c, drop=c.name in without) for c in whole.schema.columns)
    for column, cells in values.items():
        data = data.append_column(column.name, pa.array(cells))
    schema = Schema((*others, *values), series="homes")
    mw.write(Table.from_frame(data, schema), folder / "homes.csv")
    (folder / "homes.toml").write_text(schema.to_toml())


def test_guessing_above_the_tolerance_is_refused_at_once(folder: Path) -> None:
    """Forty areas of ten records: who guesses finds 10% of all targets, whatever the noise."""
    areas = tuple(f"a{i:02d}" for i in range(40))
    area = Column("AREA", "category", frozenset({"block"}), categories=areas)
    with_columns(folder, {area: [areas[i % 40] for i in range(400)]}, without=("REGION", "KIND"))
    refused = release(plan_in(folder, tolerance={"max_rate": 0.02}, calibrate={}), key=KEY)
    assert refused.masking is None
    (reason,) = refused.reasons
    assert "guessing within the blocks finds 10.0% of 400 targets whatever the noise" in reason
    *tried, fact = refused.advice
    assert fact.figures == {"columns": "AREA", "floor": 0.0, "guessing": 1 / 400}
    assert (fact.passes, fact.draws) == (None, 0)
    best = tried[0]
    assert (best.passes, best.draws) == (True, 20)
    assert tomllib.loads(best.schema) == {"columns": {"AREA": {"drop": True}}}
    assert best.without == ("calibrate",)
    case, _ = _situation(plan_in(folder, tolerance={"max_rate": 0.08}), KEY, Stages())
    assert high_guessing(case) is None  # a lucky draw of the noise may lie within


@pytest.mark.parametrize("is_known", [True, False])
def test_guessing_in_a_sample_is_counted_among_those_who_left(folder: Path, is_known: bool) -> None:
    """Ten alike in the file are about five in a half of it: 20% of those who left are guessed, 10% of all."""
    areas = tuple(f"a{i:02d}" for i in range(40))
    area = Column("AREA", "category", frozenset({"block"}), categories=areas)
    with_columns(folder, {area: [areas[i % 40] for i in range(400)]}, without=("REGION", "KIND"))
    said = {} if is_known else {"targets": {"presence_not_known": "nobody is told who was drawn"}}
    half = {"mask": "Subsample", "fraction": 0.5}
    case, _ = _situation(plan_in(folder, NOISE, half, tolerance={"max_rate": 0.03}, **said), KEY, Stages())
    (high,) = high_guessing(case).reasons
    chance = (1 - 0.5**10) / (0.5 * 10)  # the mean of 1 / (1 + Binomial(9, 1/2))
    drawn = np.random.default_rng(1).binomial(9, 0.5, 10**6)
    assert np.mean(1 / (1 + drawn)) == pytest.approx(chance, abs=0.001)
    whom = "200 targets in the release" if is_known else "400 targets, released or not"
    assert f"guessing within the blocks finds {chance if is_known else chance / 2:.1%} of {whom}" in high


def test_groups_that_clear_columns_put_together_are_refused_at_once(folder: Path) -> None:
    """A hundred households of four under sixty roofs: a roof tells the household up to one other."""
    roofs = tuple(f"r{i:02d}" for i in range(60))
    home, roof = (
        Column("HOME", "text", frozenset({"group"}), drop=True),
        Column("ROOF", "category", categories=roofs),
    )
    values = {home: [f"h{i // 4}" for i in range(400)], roof: [roofs[i // 4 % 60] for i in range(400)]}
    with_columns(folder, values, without=("REGION", "KIND", "SAID"))
    refused = release(plan_in(folder, tolerance={"max_rate": 0.3}, calibrate={}), key=KEY)
    assert refused.masking is None
    (reason,) = refused.not_judged
    assert "HOME is dropped, but ROOF put 100 of 100 groups" in reason
    assert refused.advice[-1].figures == {"columns": "ROOF", "together": 0.0}
    assert all(one.draws for one in refused.advice[:-1])  # what stands before it was tried
    assert refused.advice[0].change in release_summary(refused).replace("\n    ", " ")


@pytest.mark.parametrize("finest", ["ROOF", "STREET"])
def test_a_second_remedy_is_computed_from_what_the_first_leaves(folder: Path, finest: str) -> None:
    """Where roofs go for the households they tell nobody apart any more; streets still do."""
    roofs, streets = tuple(f"r{i:02d}" for i in range(100)), tuple(f"s{i:03d}" for i in range(200))
    home, roof = (
        Column("HOME", "text", frozenset({"group"}), drop=True),
        Column("ROOF", "category", frozenset({"block"}), categories=roofs),
    )
    values = {home: [f"h{i // 4}" for i in range(400)], roof: [roofs[i // 4] for i in range(400)]}
    if finest == "STREET":  # no column of a household: each of its members has another one
        street = Column("STREET", "category", frozenset({"block"}), categories=streets)
        values[street] = [streets[(i % 4 * 50 + i // 8) % 200] for i in range(400)]
    with_columns(folder, values, without=("REGION", "SAID"))
    case, _ = _situation(plan_in(folder, tolerance={"max_rate": 0.2}), KEY, Stages())
    first = next(iter(case.coded.attacks(case.intruders).values()))
    refused = refused_at_once(case, floor_of(case.coded.mask, case.coded.table, first))
    assert refused is not None
    assert any("fingerprint" in one or "guessing" in one for one in refused.reasons)
    first_advice, *others = [one for one in refused.advice if one.drops]
    assert first_advice.drops == ("ROOF",)
    if finest == "ROOF":
        assert others == []
    else:
        (second,) = others
        assert second.drops == ("STREET",)
        assert second.change.startswith("with ROOF dropped: drop STREET in the schema")


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"models": [{"formula": "Q ~ X"}]}, "Q ~ X: there is no column 'Q'"),
        ({"models": [{"formula": "X ~ GONE"}]}, "column 'GONE' is dropped by the schema and does not leave"),
        ({"models": [{"formula": "ID ~ X"}]}, "column 'ID' is the id, which leaves renumbered"),
        ({"models": [{"formula": "X ~ Y**2"}]}, r"X ~ Y\*\*2: A power of a column goes inside I"),
        ({"utility": {"groups": ["AREA"]}}, r"\[utility\] groups: there is no column 'AREA'"),
        ({"audit": {"limits": {"outer link": {"fail": 0.2}}}}, "no check 'outer link'"),
    ],
)
def test_models_groups_and_limits_are_checked_before_any_noise(
    folder: Path, section: dict[str, Any], said: str
) -> None:
    whole = homes()
    data = whole.to_arrow().append_column("GONE", pa.array([f"{i % 7}" for i in range(400)]))
    gone = Column("GONE", "category", categories=tuple("0123456"), drop=True)
    schema = Schema((*whole.schema.columns, gone), series="homes")
    mw.write(Table.from_frame(data, schema), folder / "homes.csv")
    (folder / "homes.toml").write_text(schema.to_toml())
    told: list[str] = []
    with pytest.raises(BadPlan, match=said):
        release(plan_in(folder, **section), key=KEY, progress=lambda *step: told.append(step[0]))
    assert set(told) <= {"read", "check"}


def test_a_model_that_nobody_can_fit_is_refused_before_any_noise(folder: Path) -> None:
    refused = release(plan_in(folder, models=[{"formula": "KIND ~ X"}], calibrate={}), key=KEY)
    assert refused.masking is None
    assert "cannot be fitted to the release: the response 'KIND' is a category" in refused.reasons[0]


def test_a_refused_screen_shows_every_reason_in_full(folder: Path) -> None:
    """The floor and guessing are two reasons, and neither is cut."""
    whole, areas = homes(), tuple(f"a{i:03d}" for i in range(200))
    data = whole.to_arrow().append_column("AREA", pa.array([areas[i % 200] for i in range(400)]))
    area = Column("AREA", "category", frozenset({"block"}), categories=areas)
    schema = Schema((*whole.schema.columns, area), series="homes")
    mw.write(Table.from_frame(data, schema), folder / "homes.csv")
    (folder / "homes.toml").write_text(schema.to_toml())
    refused = release(plan_in(folder, tolerance={"max_rate": 0.02}), key=KEY, advise=False)
    words = " ".join(release_summary(refused).split())
    assert any("fingerprint of their own" in reason for reason in refused.reasons)
    assert any("guessing within the blocks" in reason for reason in refused.reasons)
    assert all(reason in words for reason in refused.reasons)


def test_draft_reason_and_table_count_guessing_alike(tmp_path: Path) -> None:
    """Gaps of eight amounts leave as they are: the draft, the reason of the refusal and the table say the same."""
    from maskwell.attacks.fingerprint import floor_of
    from maskwell.cli.new_command import _input_decisions
    from maskwell.pipeline.preconditions import refused_at_once
    from maskwell.plan import InputPlan, ReleasePlan
    from maskwell.plan.draft import Places, draft_plan, draft_schema

    rng, n = np.random.default_rng(2), 300
    amounts = np.exp(rng.normal(3, 1, (n, 8))).round(2)
    amounts[rng.random((n, 8)) < 0.3] = np.nan
    data = {"region": rng.integers(1, 4, n)} | {f"x{j}": amounts[:, j] for j in range(8)}
    lines = [",".join(data), *(",".join(map(str, row)) for row in zip(*data.values(), strict=True))]
    (tmp_path / "my.csv").write_text("\n".join(lines).replace("nan", "") + "\n")
    decided, _ = _input_decisions(InputPlan(file=tmp_path / "my.csv"))
    (tmp_path / "my.toml").write_text(draft_schema(decided))
    places = Places("plan.toml", "my.csv", "my.toml", "out", "private")
    (tmp_path / "plan.toml").write_text(draft_plan(decided, places, {}))
    case, _ = _situation(ReleasePlan.read(tmp_path / "plan.toml"), KEY, Stages())
    refused = refused_at_once(case, floor_of(case.coded.mask, case.coded.table))
    assert refused is not None
    (reason,) = [one for one in refused.reasons if "guessing" in one]
    by_hand = len({tuple(row) for row in np.column_stack([data["region"], np.isnan(amounts)]).tolist()}) / n
    assert decided.clear.guessing() == pytest.approx(by_hand)
    assert f"finds {by_hand:.1%} of 300 targets" in reason
    (risk,) = refused.after.values()
    assert risk.guessing == pytest.approx(by_hand)
    assert f"{by_hand:.1%}\n" in release_summary(refused)


def test_one_column_to_drop_is_told_in_the_singular() -> None:
    assert (coarser(["chapter"]), without(["chapter"])) == ("make its classes coarser", "without it")
    assert (coarser(["a", "b"]), without(["a", "b"])) == ("make their classes coarser", "without them")
