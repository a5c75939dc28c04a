"""A drafted plan: cautious answers to what a file leaves open, told, and ready to be run."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from maskwell.cli.new_command import new
from maskwell.errors import BadInput, CannotWrite
from maskwell.masking import apply
from maskwell.pipeline import read_input
from maskwell.plan import DEFAULT_INTRUDERS, ReleasePlan
from maskwell.plan.draft import COMPARE_CATEGORIES
from maskwell.schema import Column, Schema

APP = typer.Typer()
APP.command()(new)
N = 400


def columns(**more: Any) -> dict[str, Any]:
    """A small survey: an id, two categories and two skewed amounts."""
    rng = np.random.default_rng(1)
    return {
        "ID": np.arange(N) + 100_001,
        "REGION": rng.integers(1, 4, N),
        "INCOME": np.round(rng.lognormal(10, 1, N)).astype(int),
        "TAXES": np.round(rng.lognormal(6, 1, N)).astype(int),
        **more,
    }


def drafted(folder: Path, data: dict[str, Any], *options: str) -> tuple[ReleasePlan, Schema, str]:
    """Write a CSV file, draft a plan for it beside it, and read both files and what was said."""
    rows = zip(*(map(str, values) for values in data.values()), strict=True)
    lines = [",".join(data), *(",".join(row) for row in rows)]
    (folder / "my.csv").write_text("\n".join(lines).replace("nan", "") + "\n", encoding="utf-8")
    said = CliRunner().invoke(
        APP, [str(folder / "my.csv"), "-o", str(folder / "plan.toml"), *options], catch_exceptions=False
    )
    assert said.exit_code == 0
    plan = ReleasePlan.read(folder / "plan.toml")
    assert plan.input.schema is not None
    return plan, Schema.read(plan.input.schema), " ".join(said.output.split())


def test_a_plain_file_needs_no_decision(tmp_path: Path) -> None:
    plan, schema, said = drafted(tmp_path, columns())
    assert (schema.with_role("id"), schema.with_role("block")) == (("ID",), ("REGION",))
    assert plan.tolerance.intruders == ()  # all but the ceiling
    assert plan.tolerance.to_dict()["max_rate"] == 0.10
    assert plan.calibrate is not None
    assert plan.swap is None
    assert (plan.intruders, plan.card.leaves) == ((), "open")
    assert "decide" not in said
    assert "masked INCOME TAXES" in said
    assert plan.input.schema == tmp_path / "my.schema.toml"


def test_the_plan_masks_as_it_stands(tmp_path: Path) -> None:
    total = columns()["INCOME"] + columns()["TAXES"]
    plan, _, _ = drafted(tmp_path, columns(TOTAL=total))
    table = read_input(plan)
    released = apply(plan.mask(table.schema), table, seed=1).masked
    values = released.values(["INCOME", "TAXES", "TOTAL"])
    assert np.array_equal(values[:, 0] + values[:, 1], values[:, 2])
    assert not np.array_equal(values, table.values(["INCOME", "TAXES", "TOTAL"]))


def test_a_sum_is_recomputed_and_is_no_key(tmp_path: Path) -> None:
    _, schema, said = drafted(tmp_path, columns(TOTAL=columns()["INCOME"] + columns()["TAXES"]))
    assert "recomputed TOTAL" in said
    assert schema["TOTAL"].roles == frozenset()
    assert schema.with_role("key") == ("INCOME", "TAXES")


def test_functions_of_a_column_are_dropped(tmp_path: Path) -> None:
    income = columns()["INCOME"]
    plan, schema, said = drafted(tmp_path, columns(LOG=np.log(income), SQUARE=income**2, COPY=income))
    assert [c.name for c in schema.columns if c.drop] == ["LOG", "SQUARE", "COPY"]
    assert "LOG: a function of INCOME (its logarithm): dropped" in said
    assert "SQUARE: a function of INCOME (its square): dropped" in said
    assert "COPY: a function of INCOME (on the same scale or another): dropped" in said
    assert plan.masked(schema) == {"INCOME", "TAXES"}


def test_a_column_that_is_only_alike_is_kept(tmp_path: Path) -> None:
    noise = np.random.default_rng(2).integers(-200, 201, N)
    _, schema, _ = drafted(tmp_path, columns(NEAR=columns()["TAXES"] + noise))
    assert "NEAR" in schema.with_role("key")


def test_a_column_that_others_nearly_determine_is_dropped(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    age, school = rng.integers(20, 65, N), rng.integers(6, 19, N)
    data = columns(AGE=age, SCHOOL=school, WORKED=age - school - 6 - (np.arange(N) == 7))
    _, schema, said = drafted(tmp_path, data)
    assert [c.name for c in schema.columns if c.drop] == ["WORKED"]
    left = "least squares on them leaves under 0.1% of its variance"
    assert f"WORKED: nearly determined by AGE, SCHOOL ({left}): dropped" in said


def test_codes_are_taken_for_codes_and_asked(tmp_path: Path) -> None:
    income = np.where(np.arange(N) % 10 == 0, -9, columns()["INCOME"])
    _, schema, said = drafted(tmp_path, columns(INCOME=income))
    assert schema["INCOME"].missing == (-9,)
    assert "INCOME: 10.0% are -9, apart from the rest: taken for codes for no value" in said
    assert "Amounts? Then take missing = [-9] out of the schema." in said


def test_a_weight_that_identifies_is_dropped_and_asked(tmp_path: Path) -> None:
    weights = np.random.default_rng(3).uniform(1, 9, N).round(4)
    plan, schema, said = drafted(tmp_path, columns(WEIGHT=weights))
    assert schema["WEIGHT"].drop
    assert plan.masked(schema) == {"INCOME", "TAXES"}
    said_so = "WEIGHT: named like a survey weight. A survey weight gets no noise, and so it is dropped"
    assert f"{said_so}; by itself it identifies 100% of the records." in said


def test_a_weight_by_which_a_few_records_are_alone_is_dropped(tmp_path: Path) -> None:
    weights = np.arange(N) % 4 + 1.5
    weights[7] = 9.5
    _, schema, said = drafted(tmp_path, columns(WEIGHT=weights))
    assert schema["WEIGHT"].drop
    assert "and so it is dropped; by itself it identifies under 1% of the records." in said


def test_a_weight_of_few_values_is_not_called_an_amount_too(tmp_path: Path) -> None:
    _, schema, said = drafted(tmp_path, columns(WEIGHT=np.arange(N) % 3 / 2 + 0.5))
    assert schema.with_role("weight") == ("WEIGHT",)
    assert "WEIGHT: named like a survey weight: taken for one, to leave as it is." in said
    assert "taken for an amount" not in said


def test_words_and_strays_among_numbers_are_asked_about(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    age, rent = rng.integers(18, 90, N).astype(object), np.round(rng.gamma(5, 200, N), 2).astype(object)
    age[[5, 9]], rent[[10, 300]] = "unbekannt", ["ca. 2000", "24O0"]
    _, schema, said = drafted(tmp_path, columns(age=age, rent=rent))
    assert schema["age"].missing == ("unbekannt",)
    assert 'age: "unbekannt" (2 records, first 6): a word among numbers, taken as missing' in said
    assert schema["rent"].drop
    assert "rent: 2 of 400 records hold no number (records 11, 301), all others do: dropped." in said
    assert "24O0" not in said


def test_counts_may_be_masked_in_place_of_dropped(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    children, rooms = rng.poisson(1.5, N).clip(0, 5), rng.poisson(4, N).clip(1, 9)
    data = columns(children=children, rooms=rooms, REGION=rng.choice([*"ab"], N))
    _, schema, said = drafted(tmp_path, data)
    offered = '(kind = "integer", roles = ["key"], without categories), to which noise is added'
    assert f"drop rooms in the schema, or make it, if it is a count, an amount {offered}" in said
    asked = Schema((*(Column(c.name, "integer", frozenset({"key"})) if c.name in ("children", "rooms") else c
                      for c in schema.columns),))  # fmt: skip
    (tmp_path / "masked.toml").write_text(asked.to_toml(), encoding="utf-8")
    (tmp_path / "again").mkdir()
    plan, _, _ = drafted(tmp_path / "again", data, "--schema", str(tmp_path / "masked.toml"))
    assert plan.masked(asked) == {"INCOME", "TAXES", "children", "rooms"}


def test_a_row_of_totals_and_an_empty_column_are_told(tmp_path: Path) -> None:
    data = columns(note=[""] * N)
    total = {"ID": "Total", "REGION": "", "note": ""} | {
        name: data[name].sum() for name in ("INCOME", "TAXES")
    }
    _, _, said = drafted(tmp_path, {name: [*values, total[name]] for name, values in data.items()})
    assert (
        "the last record (401) has the word of a total in ID and the sums of INCOME, TAXES: taken for a"
        in said
    )
    assert "A row of totals? Then take it out of the file" in said
    assert "dropped ID note (empty)" in said
    (tmp_path / "no").mkdir()
    total |= {"INCOME": 9, "TAXES": 9}
    _, _, said = drafted(tmp_path / "no", {name: [*values, total[name]] for name, values in data.items()})
    assert "the word of a total" not in said


def test_how_a_file_was_read_is_told_where_it_is_unusual(tmp_path: Path) -> None:
    _, _, said = drafted(tmp_path, columns())
    assert "read as" not in said
    text = (tmp_path / "my.csv").read_text(encoding="utf-8").replace(",", ";").replace("REGION", "GRÖSSE")
    (tmp_path / "other.csv").write_text(text, encoding="latin-1")
    done = CliRunner().invoke(
        APP, [str(tmp_path / "other.csv"), "-o", str(tmp_path / "other.toml"), "--encoding", "latin-1"]
    )
    assert "400 records\n  read as semicolon-separated, decimal point\n  read from iso8859-1" in done.output


def test_what_few_persons_share_over_records_is_dropped(tmp_path: Path) -> None:
    """Three quarters of the records are of persons that came once: noise on each of the others would average out."""
    of = np.r_[np.arange(300), np.arange(50), np.arange(50)]
    rng = np.random.default_rng(8)
    of, age = rng.permutation(of), np.round(rng.normal(40, 9, 300), 1)
    _, schema, said = drafted(tmp_path, columns(person_id=of + 1000, age=age[of]) | {"ID": range(N)})
    assert schema["age"].drop
    assert not schema["INCOME"].drop
    assert (
        "age: the same for all records with one person_id (150 of 400 records share one with others)" in said
    )


def test_what_a_household_shares_is_dropped_and_asked_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    of = np.sort(rng.integers(0, 150, N))
    shared = {"lnexp": rng.normal(10, 1, 150)[of].round(4), "premium": rng.gamma(2, 50, 150)[of].round(2)}
    plan, schema, said = drafted(tmp_path, columns(**shared))
    assert plan.masked(schema) == {"INCOME", "TAXES"}
    share = np.mean(of[1:] == of[:-1])
    assert f"- lnexp ({share:.1%}, by chance" in said
    assert f", premium ({share:.1%}, by chance" in said
    assert said.count("equal to the record above") == 1
    assert 'roles = ["group"] and drop = true' in said


def test_a_class_that_tells_an_amount_beside_more_noise_is_asked(tmp_path: Path) -> None:
    """Children are of 0 to 17 years: 40% of the file, and with much noise it is that which tells their age."""
    rng = np.random.default_rng(8)
    n = 2_000
    child = rng.random(n) < 0.4
    age = np.where(child, rng.uniform(0, 17.9, n), rng.uniform(18, 64, n)).round(2)
    _, schema, said = drafted(tmp_path, {"age": age, "child": np.where(child, "yes", "no")})
    assert schema.with_role("key") == ("age",)
    assert f"child: tells age ({child.mean():.1%} of its records) better than noise of 3 sds" in said


def test_a_weight_of_few_values_stays_one_and_is_asked(tmp_path: Path) -> None:
    plan, schema, said = drafted(tmp_path, columns(WEIGHT=np.arange(N) % 4 + 1.5))
    assert schema.with_role("weight") == ("WEIGHT",)
    assert "WEIGHT" not in plan.masked(schema)
    assert "WEIGHT: named like a survey weight: taken for one, to leave as it is." in said


@pytest.mark.parametrize("least", [0.0, -3.0])
def test_a_weight_that_is_not_positive_is_dropped_and_asked(tmp_path: Path, least: float) -> None:
    weights = np.random.default_rng(3).uniform(1, 9, N).round(4)
    weights[::10] = np.linspace(least, least / 2, N // 10)
    plan, schema, told = drafted(tmp_path, columns(WEIGHT=weights))
    assert schema["WEIGHT"].drop
    assert "WEIGHT" not in plan.masked(schema)
    assert "WEIGHT: named like a survey weight, but missing or not positive in places: dropped" in told
    assert "A weight? Then give every record a positive one in the file" in told


def test_an_id_by_its_values_alone_is_asked_about(tmp_path: Path) -> None:
    data = {("V1" if name == "ID" else name): values for name, values in columns().items()}
    _, schema, said = drafted(tmp_path, data)
    assert schema.id_column == "V1"
    assert "V1: every record has its own value: taken for the id, which is replaced by new ones." in said


def test_the_id_is_told(tmp_path: Path) -> None:
    assert "id ID (new ones leave)" in drafted(tmp_path, columns())[2]


def test_the_title_does_not_name_the_file(tmp_path: Path) -> None:
    plan, _, _ = drafted(tmp_path, columns())
    assert plan.report.title == "Masked microdata"


def test_whole_numbers_with_decimals_and_gaps_are_categories(tmp_path: Path) -> None:
    union = np.where(np.arange(N) % 7 == 0, np.nan, np.arange(N) % 2)
    _, schema, _ = drafted(tmp_path, columns(UNION=union))
    assert (schema["UNION"].kind, schema["UNION"].categories) == ("category", ("0.0", "1.0"))


def test_what_no_noise_protects_is_asked_with_a_mask_to_switch_on(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    plan, _, said = drafted(tmp_path, columns(TRAIT0=rng.integers(0, 16, N)))
    assert "guessing among those alike in REGION, TRAIT0 finds" in said
    text = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    offered = text[text.index("#[[masks]]") :].split("#stay")[0].replace("#", "")
    switched = tomllib.loads(f"{offered}stay = 0.8\n")
    assert switched["masks"][0]["columns"]
    assert "or switch on the mask Pram for" in said
    assert len(plan.masks) == 1


def test_no_mask_is_offered_for_categories_that_it_does_not_hide(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    more = {f"TRAIT{i}": rng.integers(0, 5, N) for i in range(6)}
    _, _, said = drafted(tmp_path, columns(**more))
    assert "Decide: drop TRAIT" in said
    assert "Pram" not in said
    assert '"Pram"' not in (tmp_path / "plan.toml").read_text(encoding="utf-8")


def test_all_that_leaves_unmasked_is_named_the_weight_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    income = np.where(np.arange(N) % 50 == 0, np.nan, columns()["INCOME"])
    more = {"TRAIT": rng.integers(0, 9, N), "WEIGHT": rng.integers(1, 16, N) + 0.5, "INCOME": income}
    _, schema, said = drafted(tmp_path, columns(**more))
    assert schema.with_role("weight") == ("WEIGHT",)
    named = "REGION, TRAIT, WEIGHT, and what is missing or coded in INCOME"
    assert f"what leaves unmasked ({named}) tells" in said
    assert "give WEIGHT fewer different values in the file" in said
    remarks = (tmp_path / "plan.toml").read_text(encoding="utf-8").replace("\n# ", " ")
    assert f"These leave as they are: {named}." in remarks


def test_every_commented_section_can_be_switched_on(tmp_path: Path) -> None:
    drafted(tmp_path, columns())
    text = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    lines = [line[1:] if line.startswith("#") and line[1:2].strip() else line for line in text.splitlines()]
    lines = [line for line in lines if not line.startswith(("recipients", "earlier"))]  # of other choices
    plan = ReleasePlan.from_dict(tomllib.loads("\n".join(lines)), tmp_path)
    assert plan.intruders[0][0] == "nearest, informed"
    assert plan.models[0].formula == "INCOME ~ TAXES + REGION"
    assert {type(mask).__name__ for mask in plan.masks} == {"CorrelatedNoise", "Pram"}


def test_a_file_of_categories_alone_is_changed_at_random(tmp_path: Path) -> None:
    data = {name: values for name, values in columns().items() if name in ("ID", "REGION")}
    plan, schema, said = drafted(tmp_path, data | {"TYPE": np.arange(N) % 5})
    assert plan.mask(schema).to_dict()["mask"] == "Pram"
    assert plan.tolerance.intruders == ()
    assert plan.calibrate is None
    assert "masked REGION TYPE" in said
    assert (plan.targets.fields, plan.targets.match_blocks) == (("REGION", "TYPE"), None)
    assert [name for name, _ in plan.intruders] == list(COMPARE_CATEGORIES)


def household_answers(homes: int = 200) -> dict[str, Any]:
    """Persons one to four to a household, whose place and roof they share, and some answers of their own."""
    rng = np.random.default_rng(12)
    home = np.repeat(np.arange(homes), rng.integers(1, 5, homes))
    place, roof = rng.integers(0, 30, homes), rng.integers(0, 4, homes)
    said = np.where(rng.random(len(home)) < 0.3, "", "yes")
    return {
        "hid": home + 5001,
        "PLACE": np.char.add("p", place[home].astype(str)),
        "ROOF": np.char.add("r", roof[home].astype(str)),
        "SEX": rng.choice(["f", "m"], len(home)),
        "SAID": said,
    }


def test_the_runs_of_such_a_draft_rely_on_what_leaves_in_clear(tmp_path: Path) -> None:
    """SAID has one value and gaps: nobody changes it, so that everybody can rely on which are missing."""
    from maskwell.pipeline import release

    plan, _, said = drafted(tmp_path, household_answers())
    assert "in clear SAID" in said
    outcome = release(plan, seed=3, study=True, advise=False)
    assert not [one for one in outcome.not_judged if "did not rely" in one]
    for name, risk in outcome.after.items():
        assert risk.guessing == pytest.approx(2 / risk.targets), name


def test_groups_are_counted_after_the_changes_at_random(tmp_path: Path) -> None:
    """As many as in the worst of the draws by hand, and by far not as many as by true values."""
    from maskwell.keys import Key
    from maskwell.masks import Pram
    from maskwell.pipeline.reassembly import reassembly, sure_reassemblies
    from maskwell.plan.draft_decisions import CHANGES, SEED

    plan, schema, said = drafted(tmp_path, household_answers())
    table = read_input(plan)
    (mask,) = plan.masks
    assert isinstance(mask, Pram)
    drawn = [reassembly(apply(mask, table, key=Key.from_seed(SEED + i)), "hid") for i in range(CHANGES)]
    worst = max(drawn, key=lambda one: one.share)
    (true,) = sure_reassemblies(table, [c.name for c in schema.columns if c.kind == "category"])
    assert worst.together < true.together / 2
    assert f"put {worst.together} of {worst.groups} groups by hid together again" in said
    assert f"after changes at random with stay = {mask.stay:g}, in the worst of {CHANGES} draws" in said
    assert "or give a smaller stay" in said


def test_those_who_compare_categories_can_be_tried(tmp_path: Path) -> None:
    from maskwell.pipeline.intruders import intruders_of
    from maskwell.pipeline.preconditions import not_possible

    data = {name: values for name, values in columns().items() if name in ("ID", "REGION")}
    plan, _, _ = drafted(tmp_path, data | {"TYPE": np.arange(N) % 5})
    table = read_input(plan)
    card = plan.mask(table.schema).card(table)
    assert not not_possible(intruders_of(plan, table, card), table, card)


def test_a_column_of_few_values_is_no_function_of_codes(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    n = 20 * N
    code = rng.choice(np.arange(1000, 1060), n)
    size = rng.choice(np.round(np.linspace(1, 90, 60), 1), n)
    _, schema, said = drafted(tmp_path, {"V1": code, "V2": size, "INCOME": rng.integers(0, 90_000, n)})
    assert "a function of" not in said
    assert schema.with_role("key") == ("V1", "V2", "INCOME")


def employees() -> dict[str, Any]:
    """Employees of employers, as a survey of earnings has them: one after the other."""
    rng = np.random.default_rng(7)
    sizes = rng.integers(5, 30, 120)
    unit = np.repeat(np.arange(120), sizes)
    n = len(unit)
    stratum = rng.choice([1.25, 2.1, 3.7, 5.5], 120)[unit]
    earnings = rng.lognormal(3, 0.4, n).round(2)
    mean = (np.bincount(unit, earnings) / sizes).round(3)[unit]
    return {
        "unit": rng.permutation(np.arange(1000, 9000))[:120][unit],
        "age": rng.integers(17, 65, n),
        "occupation": rng.choice([11, 12, *range(21, 35), *range(41, 53), *range(71, 94)], n),
        "earnings": earnings,
        "overtime": np.where(rng.random(n) < 0.6, 0.0, rng.gamma(2, 60, n)).round(2),
        "meanEarnings": mean,
        "weightsEmployers": stratum,
        "weightsEmployees": (stratum * rng.choice([1, 1.1, 1.3, 1.6], n)).round(3),
    }


def test_employees_of_employers(tmp_path: Path) -> None:
    plan, schema, said = drafted(tmp_path, employees())
    assert (schema["unit"].roles, schema["unit"].drop) == ({"group"}, True)
    assert (
        "unit: equal values stand in runs, with values that repeat: taken for a group, and dropped." in said
    )
    assert plan.masked(schema) == {"age", "earnings", "overtime"}
    assert schema["occupation"].kind == "category"
    assert schema.with_role("weight") == ("weightsEmployers",)
    assert "weightsEmployees: named like a survey weight, beside weightsEmployers: dropped" in said
    assert "meanEarnings: the same for all records with one unit: dropped" in said
    assert "a function of" not in said
    assert "overtime: many records have 0: real zeros?" in said
    assert "bottom code" not in said


def test_what_categories_determine_together_is_dropped(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    region, year = rng.integers(1, 6, N), rng.integers(1, 4, N)
    rate = rng.uniform(3, 12, (6, 4)).round(2)[region, year]
    _, schema, said = drafted(tmp_path, columns(REGION=region, YEAR=year, RATE=rate))
    assert schema["RATE"].drop
    assert "RATE: the same for all records alike in REGION, YEAR: dropped" in said


def test_the_summary_names_every_column(tmp_path: Path) -> None:
    data = employees() | {"constant": np.ones(len(employees()["unit"]), int)}
    _, _, said = drafted(tmp_path, data)
    head = said.split("of the records are alone")[0].split()
    assert sorted(name for name in data if name in head) == sorted(data)
    assert all(head.count(name) == 1 for name in data)


def test_the_model_has_no_id_in_it(tmp_path: Path) -> None:
    drafted(tmp_path, employees() | {"store_id": np.arange(len(employees()["unit"])) % 5})
    formula = next(
        line
        for line in (tmp_path / "plan.toml").read_text(encoding="utf-8").splitlines()
        if "formula" in line
    )
    assert formula.endswith('"age ~ earnings + overtime"')


def test_what_puts_a_group_together_again_is_asked(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    household = np.repeat(np.arange(150), rng.integers(1, 6, 150))
    more = {f"HOME{i}": rng.integers(1, 5, 150)[household] for i in range(3)}
    data = {"hid": household, **more, "INCOME": rng.integers(0, 90_000, len(household))}
    _, schema, said = drafted(tmp_path, data)
    assert schema["hid"].drop
    assert "HOME0, HOME1, HOME2: put" in said


def test_dropped_blocks_do_not_count(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    more = {f"TRAIT{i}": rng.integers(0, 5, N) for i in range(4)}
    drafted(tmp_path, columns(**more))
    text = (tmp_path / "my.schema.toml").read_text(encoding="utf-8")
    for i in range(3):
        text = text.replace(f"[columns.TRAIT{i}]\n", f"[columns.TRAIT{i}]\ndrop = true\n")
    (tmp_path / "own.toml").write_text(text, encoding="utf-8")
    (tmp_path / "plan.toml").unlink()
    _, schema, said = drafted(tmp_path, columns(**more), "--schema", str(tmp_path / "own.toml"))
    assert schema.with_role("block") == ("REGION", "TRAIT3")
    assert schema.with_role("block", dropped=True) == ("REGION", "TRAIT0", "TRAIT1", "TRAIT2", "TRAIT3")
    assert "guessing among those alike in it finds 3.8%" in " ".join(said.split())  # 15 blocks of 400 records
    assert "tolerated" not in said
    plan = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    named = [line for line in plan.splitlines() if line.startswith(("#not_known", "#groups"))]
    assert named
    assert not any(f"TRAIT{i}" in line for line in named for i in range(3))


def test_a_swap_is_offered_only_where_something_stays_in_the_row(tmp_path: Path) -> None:
    plan, _, _ = drafted(tmp_path, columns())
    assert plan.swap is None
    text = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    assert "[swap]" not in text
    assert "No swap is proposed." in text
    (tmp_path / "plan.toml").unlink()
    drafted(tmp_path, columns(WEIGHT=np.arange(N) % 4 + 1.5))
    text = (tmp_path / "plan.toml").read_text(encoding="utf-8")
    assert "\n#[swap]\n" in text
    assert "what stays in the row (WEIGHT)" in text.replace("\n# ", " ")
    switched = text.replace("#[swap]", "[swap]").replace("#exempt_values", "exempt_values")
    plan = ReleasePlan.from_dict(tomllib.loads(switched), tmp_path)
    assert plan.swap is not None
    assert plan.swap.exempt_values == "..."


def test_log_noise_is_named_with_the_shift_that_zeros_need(tmp_path: Path) -> None:
    taxes = np.where(np.arange(N) % 3 == 0, 0, columns()["TAXES"])
    drafted(tmp_path, columns(TAXES=taxes))
    text = (tmp_path / "plan.toml").read_text(encoding="utf-8").replace("\n# ", " ")
    assert "Strongly skewed and positive: INCOME." in text
    assert "Strongly skewed, with zeros: TAXES." in text
    assert 'transform = "log" and shift = 10.' in text


def test_amounts_without_a_common_covariance_get_masks_of_their_own(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    x = rng.normal(size=(900, 3)).cumsum(axis=1).round(3)
    third = np.arange(900) // 300
    y = np.array([x[:, 0], x[:, 0] + 0.1 * x[:, 1], -x[:, 0]]).T.round(3)
    for j in range(3):
        y[third == j, j] = np.nan  # each pair is seen together in a third of the records
    y[third == 2, 1] = -y[third == 2, 0]
    y[third == 1, 2] = y[third == 1, 0]
    y[third == 0, 2] = y[third == 0, 1]
    plan, _, _ = drafted(tmp_path, {"A": y[:, 0], "B": y[:, 1], "C": y[:, 2]})
    table = read_input(plan)
    assert apply(plan.mask(table.schema), table, seed=1).masked is not None


def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    drafted(tmp_path, columns())
    said = CliRunner().invoke(APP, ["my.csv"], catch_exceptions=False)
    assert "my-2.schema.toml and plan-2.toml" in said.output
    assert ReleasePlan.read("plan-2.toml").input.schema == Path("my-2.schema.toml")
    with pytest.raises(CannotWrite, match="already there"):
        CliRunner().invoke(APP, ["my.csv", "-o", "plan.toml"], catch_exceptions=False)


def test_a_schema_that_is_decided_is_kept(tmp_path: Path) -> None:
    drafted(tmp_path, columns(TOTAL=columns()["INCOME"] + columns()["TAXES"]))
    text = (tmp_path / "my.schema.toml").read_text(encoding="utf-8")
    own = text.replace("[columns.TOTAL]\n", '[columns.TOTAL]\nroles = ["key"]\n')
    (tmp_path / "own.toml").write_text(own, encoding="utf-8")
    (tmp_path / "plan.toml").unlink()
    options = ("--schema", str(tmp_path / "own.toml"))
    plan, schema, _ = drafted(tmp_path, columns(TOTAL=columns()["INCOME"] + columns()["TAXES"]), *options)
    assert schema.with_role("key") == ("INCOME", "TAXES", "TOTAL")
    assert plan.masks[0].columns == plan.targets.fields == ("INCOME", "TAXES")  # type: ignore[attr-defined]
    assert not (tmp_path / "my-2.schema.toml").exists()


def test_a_file_that_cannot_be_masked_is_refused(tmp_path: Path) -> None:
    names = {"NAME": [f"person {chr(97 + i % 26)}{i}" for i in range(50)]}
    with pytest.raises(BadInput, match="neither an amount nor a category"):
        drafted(tmp_path, names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.csv"]


def test_the_intruders_named_are_those_who_attack() -> None:
    from maskwell.pipeline.intruders import default_intruders

    assert tuple(default_intruders({})) == DEFAULT_INTRUDERS


def test_what_most_records_compute_from_others_is_dropped(tmp_path: Path) -> None:
    rng = np.random.default_rng(12)
    earned, hours = rng.integers(100, 900, N), rng.integers(5, 60, N)
    other = rng.lognormal(7, 1, N).round().astype(int)
    total = earned + other + np.where(np.arange(N) % 50, 0, 7777)
    more = {
        "EARNED": earned,
        "HOURS": hours,
        "OTHER": other,
        "TOTAL": total,
        "HOURLY": (earned / hours).round(4),
    }
    _, schema, said = drafted(tmp_path, columns(**more))
    assert schema["TOTAL"].drop
    assert schema["HOURLY"].drop
    counted = "in 400 of 400 records where all are known and HOURS is not 0"
    assert f"HOURLY: EARNED over HOURS, but for rounding, {counted}: dropped" in " ".join(said.split())
    assert "TOTAL: a sum or difference of" in said


def test_columns_that_are_the_same_for_all_are_named_among_those_in_clear(tmp_path: Path) -> None:
    drafted(tmp_path, columns(ROUND=np.full(N, 7)))
    text = " ".join((tmp_path / "plan.toml").read_text(encoding="utf-8").replace("\n# ", " ").split())
    assert "(and ROUND, the same for all records)" in text


def test_lags_of_a_dropped_group_are_dropped_and_told(tmp_path: Path) -> None:
    rng, who = np.random.default_rng(4), np.repeat(np.arange(100) + 5001, 4)
    sales = np.round(rng.lognormal(8, 1, N), 2)
    before = np.where(np.arange(N) % 4 == 0, np.nan, np.roll(sales, 1))
    _, schema, said = drafted(
        tmp_path, {"firm": who, "sales": sales, "salesbefore": before, "x": rng.normal(size=N)}
    )
    assert schema["salesbefore"].drop
    assert not schema["sales"].drop
    counted = "in 300 of 300 records where both are known"
    assert f"salesbefore: sales of the record before with the same firm, {counted}: dropped" in said


def test_an_amount_that_another_gives_is_dropped(tmp_path: Path) -> None:
    rng, place = np.random.default_rng(9), np.random.default_rng(2).integers(0, 45, N)
    price = np.round(rng.uniform(90, 150, 45), 2)
    tax = rng.permutation(np.repeat(np.round(rng.uniform(2, 40, 23), 1), 2)[:45])
    _, schema, said = drafted(tmp_path, columns(price=price[place], tax=tax[place]))
    assert schema["tax"].drop
    assert not schema["price"].drop
    assert "tax: the same for all records with one price: dropped" in said


def test_years_of_a_life_are_masked_however_few_values_they_have(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    more = {"age": rng.integers(28, 39, N), "educ": rng.integers(9, 19, N), "agegroup": rng.integers(1, 5, N)}
    more |= {"agesq": more["age"] ** 2, "month": rng.integers(1, 13, N)}
    _, schema, said = drafted(tmp_path, columns(**more))
    assert schema["agesq"].drop  # a function of age, and not in clear
    assert {"age", "educ"} <= set(schema.with_role("key"))
    assert {"agegroup", "month"} <= set(schema.with_role("block"))
    assert "masked INCOME TAXES age educ" in said


def test_classes_of_amounts_that_end_in_more_are_asked_about(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    classes = np.array([*(np.arange(25) + 0.5), 32.5])
    income = classes[np.minimum(rng.integers(0, 29, N), 25)]
    _, _, said = drafted(tmp_path, columns(faminc=income))
    assert "faminc: many records have the largest value" in said


def test_no_remark_speaks_of_an_identity_with_a_dropped_column(tmp_path: Path) -> None:
    grams = columns()["INCOME"] * 16
    drafted(tmp_path, columns(GRAMS=grams))
    text = (tmp_path / "my.schema.toml").read_text()
    assert "GRAMS: " not in text.split("[columns.GRAMS]")[0].replace("# ", "")
    assert "which one is recomputed" not in text


def test_draft_and_release_count_groups_that_stand_together_alike(tmp_path: Path) -> None:
    """One pupil in forty has another gender of school by fault: both count a school by nearly all its pupils."""
    from maskwell.pipeline.reassembly import sure_reassemblies

    rng, school = np.random.default_rng(3), np.repeat(np.arange(25), 16) + 501
    kind = np.array([1, 2, 3, 4])[np.minimum((school - 501) // 8, 3)]
    kind[rng.permutation(N)[:10]] = 1
    data = columns(school=school, kind=kind)
    plan, _, said = drafted(tmp_path, data)
    (found,) = sure_reassemblies(read_input(plan), ["REGION", "kind"])
    assert found.together > 0
    assert f"put {found.together} of 25 groups by school together again although it is dropped" in said


def test_a_code_for_no_group_is_asked_about_and_is_no_group(tmp_path: Path) -> None:
    firms = np.array([f"firm {i:03d}" for i in range(N // 8)])
    company = np.r_[np.repeat(firms, 4), np.repeat("not applicable", N - 4 * len(firms))]
    plan, _, said = drafted(tmp_path, columns(company=company))
    assert "company" in [c.name for c in read_input(plan).schema.columns if "group" in c.roles]
    assert (
        "company: one value holds 50.0% of the records: taken for a code for none, and not for a group"
        in said
    )


def test_lags_of_categories_and_dummies_of_the_year_are_dropped(tmp_path: Path) -> None:
    rng, who = np.random.default_rng(4), np.repeat(np.arange(100) + 5001, 4)
    wave = np.arange(N) % 4
    grant = rng.integers(0, 2, N)
    frame = {
        "firm": who,
        "year": 1987 + wave,
        "sales": np.round(rng.lognormal(8, 1, N), 2),
        "grant": grant,
        "grant_1": np.where(wave == 0, 0, np.roll(grant, 1)),
        "d88": (wave == 1).astype(int),
    }
    _, schema, said = drafted(tmp_path, frame)
    assert {name for name in frame if schema[name].drop} == {"firm", "grant_1", "d88"}
    assert "grant_1: grant of the record before with the same firm, in 300 of 300 records" in said
    assert "d88: the same for all records with one year: dropped" in said


def test_gaps_of_columns_in_clear_are_named_with_those_of_amounts(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    income = np.round(rng.lognormal(8, 1, N), 2)
    frame = {
        "income": np.where(np.arange(N) < 40, np.nan, income),
        "job": ["" if i < 40 else "ab"[i % 2] for i in range(N)],
        "sex": ["" if i % 50 == 7 else "mf"[i % 2] for i in range(N)],
        "x": rng.normal(size=N),
    }
    _, _, said = drafted(tmp_path, frame)
    assert "income, job (in clear): no value, or a code, in the same 40 records" in said
    assert "sex (in clear, 8): records without a value" in said
    assert "For income, which is masked, values for these records in the file do as well." in said
    assert (
        said.count("these records in the file do as well") == 1
    )  # a category tells them apart with any value
    assert "without this column" in said
    assert "fill their gaps" not in said


def test_values_far_out_that_nobody_would_write_as_codes_are_amounts(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    people = rng.integers(100_000, 900_000, N)
    people[:40], people[40:80] = 9388957, 12699119
    _, schema, said = drafted(tmp_path, columns(people=rng.permutation(people)))
    assert not schema["people"].missing
    assert schema["people"].top is None
    assert "taken for codes" not in said


def test_gaps_of_an_amount_that_tell_another_are_dropped_with_it(tmp_path: Path) -> None:
    """Who has no wage works 0 hours: where the wage is missing leaves in clear, and would tell the hours."""
    rng = np.random.default_rng(12)
    works = rng.random(600) < 0.6
    data = {
        "wage": np.where(works, rng.gamma(4, 300, 600).round(2), np.nan),
        "hours": np.where(works, rng.normal(35, 8, 600).round(1), 0.0),
        "rent": rng.gamma(5, 200, 600).round(2),
    }
    _, schema, said = drafted(tmp_path, data)
    assert [one.name for one in schema.columns if one.drop] == ["wage"]
    assert (
        "wage: where it is missing or a code, records often have the same hours. Their mean would show it, so wage is "
        "dropped."
    ) in said


def test_classes_that_tell_an_amount_are_dropped_and_asked(tmp_path: Path) -> None:
    """Who is a pupil is 6 to 14 years old, whatever noise the age gets; apprentices are few, and asked about."""
    rng = np.random.default_rng(13)
    status = rng.choice(["pupil", "apprentice", "other", "more"], 900, p=[0.25, 0.06, 0.35, 0.34])
    age = rng.uniform(16, 90, 900)
    age = np.where(status == "pupil", rng.uniform(6, 14, 900), age)
    age = np.where(status == "apprentice", rng.uniform(16, 18, 900), age)
    data = {"age": age.round(1), "rent": rng.gamma(5, 200, 900).round(2), "status": status}
    _, schema, said = drafted(tmp_path, data)
    assert schema["status"].drop
    share = np.isin(status, ["pupil", "apprentice"]).mean()
    assert f"status: its classes and gaps tell age ({share:.1%} of its records) better than noise" in said
    others = {name: values[status != "pupil"] for name, values in data.items()}
    (tmp_path / "others").mkdir()
    _, schema, said = drafted(tmp_path / "others", others)
    assert not schema["status"].drop
    share = np.mean(others["status"] == "apprentice")
    assert f"status: tells age ({share:.1%} of its records) better than noise" in said


def test_parts_of_a_date_get_no_noise_and_are_asked_about(tmp_path: Path) -> None:
    rng = np.random.default_rng(9)
    parts = {
        "hour": rng.integers(0, 24, N),
        "day": rng.integers(1, 32, N),
        "birth_month": rng.integers(1, 13, N),
    }
    amounts = {
        "hours": rng.integers(0, 25, N),
        "days_off": rng.integers(1, 32, N),
        "minute": rng.integers(0, 300, N),
    }
    _, schema, said = drafted(tmp_path, columns(**parts, **amounts))
    assert {schema[name].kind for name in parts} == {"category"}
    assert {schema[name].kind for name in amounts} == {"integer"}
    assert "hour: by its name and values hours of a day: taken for a category" in said
    assert "days of a month" in said
    assert set(amounts) <= {*schema.with_role("key")}


def test_hours_and_minutes_of_a_time_are_told_as_its_parts(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    hour, minute = rng.integers(0, 24, N), rng.integers(0, 60, N)
    data = columns(departure=100 * hour + minute, hour=hour, minute=minute)
    _, schema, said = drafted(tmp_path, data)
    assert [one.name for one in schema.columns if one.drop] == ["hour", "minute"]
    assert "hour: departure divided by 100, rounded down" in said
    assert "minute: the remainder of departure divided by 100" in said
    assert "departure: nearly determined" not in said


def test_weights_far_from_the_rest_are_no_codes(tmp_path: Path) -> None:
    """Weights of a household are 100 over its size: most are small, and 100 is far out."""
    size = np.random.default_rng(11).permutation([1] * 12 + [2 + i % 11 for i in range(N - 12)])
    drafted(tmp_path, columns(household_weights=100 / size))
    text = (tmp_path / "my.schema.toml").read_text(encoding="utf-8")
    assert "no value?" not in text


def test_a_text_of_every_record_is_no_amount(tmp_path: Path) -> None:
    names = [f"Leia {chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)} Organa" for i in range(N)]
    _, schema, said = drafted(tmp_path, columns(name=names))
    assert schema["name"].drop
    asked = said.split("- name: ")[1].split(" - ")[0]
    assert "An amount?" not in asked
    assert "The id of each record?" in asked


def panel(persons: int = 150, waves: int = 3) -> tuple[np.ndarray, dict[str, Any]]:
    """Return who, and a panel with an amount of each record."""
    rng = np.random.default_rng(31)
    who = np.repeat(np.arange(persons), waves)
    return who, {
        "persid": rng.permutation(persons)[who] + 5000,
        "wage": np.round(rng.lognormal(3, 0.6, len(who)), 2),
    }


def test_an_amount_that_nearly_all_persons_keep_is_dropped(tmp_path: Path) -> None:
    who, data = panel()
    rng = np.random.default_rng(32)
    kept = np.round(rng.normal(12, 2.5, 150), 1)[who]
    kept[:30:3] += 1.5  # ten of 150 corrected it
    _, schema, said = drafted(tmp_path, data | {"schooling": kept})
    assert schema["schooling"].drop
    assert "schooling: the same for all records with one persid in 93.3% of the 150 groups of several" in said
    assert schema["wage"].roles == {"key"}


def test_an_amount_that_a_third_of_the_persons_change_is_masked(tmp_path: Path) -> None:
    who, data = panel()
    moved = np.round(np.random.default_rng(33).normal(12, 2.5, 150), 1)[who]
    moved[:150:3] += 1.5
    _, schema, _ = drafted(tmp_path, data | {"hours": moved})
    assert schema["hours"].roles == {"key"}


def test_a_weight_that_tells_one_person_is_dropped(tmp_path: Path) -> None:
    who, data = panel()
    coarse = np.round(1 + who % 25 / 10, 1)  # each value six persons
    _, schema, said = drafted(tmp_path, data | {"wt": coarse})
    assert (schema["wt"].roles, schema["wt"].drop) == ({"weight"}, False)
    (tmp_path / "second").mkdir()
    coarse[:3] = 4.5
    _, schema, said = drafted(tmp_path / "second", data | {"wt": coarse})
    assert schema["wt"].drop
    assert "1 of its 26 values belongs to one persid alone" in said
    assert "a mean over records with one persid would undo noise on each" in said


def test_a_class_says_from_what_it_is_computed_only_while_that_leaves(tmp_path: Path) -> None:
    from maskwell.plan.questions import Question, told_of_dropped

    asked = [Question("spring", "the same", "Analysts can compute it from term; to keep it, drop term")]
    assert told_of_dropped(asked, {"spring": "term"}, set()) == asked
    told = told_of_dropped(asked, {"spring": "term"}, {"term"})
    assert told[0].otherwise.startswith("term is dropped too")


def test_a_sum_with_a_number_that_was_dropped_is_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(34)
    place = np.repeat(np.arange(130), rng.integers(1, 6, 130))
    before = np.round(rng.lognormal(2, 0.7, 130), 2)[place]
    change = np.round(rng.normal(0, 2, len(place)), 2)
    data = {"tuition": before, "change": change, "after": np.round(before + change, 2)}
    _, schema, said = drafted(tmp_path, data)
    assert schema["tuition"].drop
    assert f"after = tuition + change exactly, in all {len(place)} records in which they are known" in said
    assert "Should tuition leave after all? Then drop after or change in the schema" in said


def test_a_class_that_persons_share_says_so_where_it_is_dropped(tmp_path: Path) -> None:
    rng, persons = np.random.default_rng(35), 100
    who = np.repeat(np.arange(persons), 10)
    weight = np.round(rng.normal(75, 12, persons), 1)[who]
    weight[: len(who) // 5 : 10] += 1.5  # a fifth of the persons changed
    data = {"SUBJID": who + 1, "STATURE": rng.integers(60, 75, persons)[who]}
    data |= {"RACE": rng.integers(1, 16, persons)[who], "WEIGH": weight}
    data["CONC"] = np.round(rng.lognormal(1, 0.6, len(who)), 2)
    _, schema, said = drafted(tmp_path, data)
    assert schema["RACE"].drop
    assert "RACE: the same for all records with one SUBJID; records alike in it and in STATURE" in said
