"""Whole jobs: the same as the library's verbs by hand, in an order that fails early."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import maskwell as mw
from maskwell.errors import BadInput, BadPlan, CannotWrite
from maskwell.masking import Masking
from maskwell.notes import texts
from maskwell.pipeline import (
    check_folders,
    inspect_file,
    mask_by_plan,
    unrelated_releases,
)
from maskwell.plan import InputPlan, MaskPlan
from maskwell.table import Table

NOISE = mw.CorrelatedNoise(("INCOME", "TAX"), r0=0.9)


@pytest.fixture
def folder(tmp_path: Path, people: Table) -> Path:
    """A folder with the people as a CSV file and their schema."""
    mw.write(people, tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(people.schema.to_toml())
    return tmp_path


def plan_in(folder: Path, masks: list[dict[str, Any]] | None = None, **more: dict[str, str]) -> MaskPlan:
    sections: dict[str, Any] = {
        "input": {"file": "people.csv", "schema": "people.toml"} | more.get("input", {}),
        "output": {"release": "out", "private": "inside"} | more.get("output", {}),
    }
    return MaskPlan.from_dict(sections | {"masks": masks or [NOISE.to_dict()]}, folder)


def test_a_plan_does_what_the_verbs_do(folder: Path) -> None:
    by_hand = mw.apply(NOISE, mw.read(folder / "people.csv", folder / "people.toml"), seed=5)
    planned = mask_by_plan(plan_in(folder), seed=5)
    assert planned.release.table.to_arrow().equals(by_hand.release.table.to_arrow())
    assert planned.card == by_hand.card


def test_progress_ends_at_the_whole(folder: Path) -> None:
    told: list[tuple[int, int]] = []
    mask_by_plan(plan_in(folder), seed=5, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (240, 240)


def test_without_a_schema_one_is_proposed_and_it_is_said(folder: Path) -> None:
    source = InputPlan(file=folder / "people.csv")
    proposal, notes = inspect_file(source)
    assert "read as comma-separated, decimal point" in texts(notes)
    plan = MaskPlan(source, (mw.IndependentNoise("TAX", variance_ratio=0.1),), plan_in(folder).output)
    masking = mask_by_plan(plan, seed=5)
    assert texts(masking.notes[:2]) == (
        "read as comma-separated, decimal point",
        "no schema was given: one was proposed from the data",
    )
    assert masking.truth.schema.id_column == proposal.schema.id_column == "ID"


def test_columns_that_the_proposal_drops_are_asked_about(folder: Path) -> None:
    source = InputPlan(file=folder / "people.csv")
    noise = mw.IndependentNoise(("TAX", "SECRET", "INCOM"), variance_ratio=0.1)
    with pytest.raises(BadPlan) as refusal:
        mask_by_plan(MaskPlan(source, (noise,), plan_in(folder).output))
    assert refusal.value.problems == (
        "there is no column 'INCOM' (did you mean 'INCOME'?)",
        "column 'SECRET' cannot be masked as it is (every record has its own value, as an id has: dropped, as "
        "proposed?): decide it in a schema, which maskwell inspect proposes",
    )


def test_the_dialect_of_the_plan_is_used(folder: Path) -> None:
    text = (folder / "people.csv").read_text()
    (folder / "people.csv").write_text(text.replace(",", "|"))
    masking = mask_by_plan(plan_in(folder, input={"delimiter": "|"}), seed=5)
    assert "read as separated by '|', decimal point, as asked" in texts(masking.notes)


def test_the_schema_is_read_before_the_data(folder: Path) -> None:
    (folder / "people.toml").write_text("columns = 3")
    (folder / "people.csv").unlink()
    with pytest.raises(BadPlan, match="the schema has no columns"):
        mask_by_plan(plan_in(folder))
    (folder / "people.toml").unlink()
    with pytest.raises(BadPlan, match=r"the schema file '.*people.toml' cannot be read: No such file"):
        mask_by_plan(plan_in(folder))


def test_the_earlier_release_is_opened_before_the_data_is_read(folder: Path) -> None:
    (folder / "people.csv").write_bytes(b"")
    with pytest.raises(mw.MaskwellError, match="is no folder to be read; give one that maskwell wrote"):
        mask_by_plan(plan_in(folder, output={"earlier": "first"}))
    with pytest.raises(BadInput, match="the file is empty"):
        mask_by_plan(plan_in(folder))


def test_a_release_is_nested_in_an_earlier_one(folder: Path) -> None:
    first = mask_by_plan(plan_in(folder), seed=5)
    first.write(release=folder / "first", private=folder / "elsewhere")
    where = {"earlier": "first", "earlier_private": "elsewhere"}
    louder = NOISE.to_dict() | {"r0": 0.8}
    second = mask_by_plan(plan_in(folder, [louder], output=where))
    assert (second.number, second.key) == (2, first.key)
    with pytest.raises(BadPlan, match="is smaller than the earlier one"):
        mask_by_plan(plan_in(folder, [NOISE.to_dict() | {"r0": 0.95}], output=where))


def test_folders_are_checked_against_the_input_and_its_schema(folder: Path) -> None:
    check_folders(plan_in(folder))
    for name in ("people.csv", "people.toml"):
        inner = folder / f"with {name}"
        inner.mkdir()
        (folder / name).rename(inner / name)
        section = {"file" if name == "people.csv" else "schema": f"{inner.name}/{name}"}
        with pytest.raises(CannotWrite, match=f"would overwrite the input .*{name}"):
            check_folders(plan_in(folder, input=section, output={"release": inner.name}))
        (inner / name).rename(folder / name)
    with pytest.raises(CannotWrite, match="lies in the public one"):
        check_folders(plan_in(folder, output={"private": "out/inside"}))


def test_plans_of_the_documentation_are_plans() -> None:
    """The plan in docs/commands.md is a plan (its commands are run elsewhere)."""
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text(encoding="utf-8")
    texts = [block.split("```")[0] for block in page.split("```toml\n")[1:]]
    plans = [MaskPlan.from_dict(tomllib.loads(text)) for text in texts if "[[masks]]" in text]
    assert plans


def test_independent_noise_beside_earlier_releases_is_said(folder):
    plan = plan_in(folder)
    assert unrelated_releases(plan) == []
    first = mask_by_plan(plan)
    first.write(release=plan.output.release, private=plan.output.private)
    (said,) = unrelated_releases(plan)
    assert str(said).startswith(
        "the private folder holds 1 earlier release: if of the same records, name the last"
    )
    assert unrelated_releases(plan_in(folder, output={"earlier": str(plan.output.release)})) == []


def coded_file(folder: Path, **columns: Any) -> InputPlan:
    """A file with given columns beside an amount, for plans without a schema."""
    rng = np.random.default_rng(4)
    table = pa.table({"X": rng.integers(0, 9000, 300), **columns})
    pq.write_table(table, folder / "coded.parquet")
    return InputPlan(file=folder / "coded.parquet")


def masked_without_schema(folder: Path, source: InputPlan, *columns: str) -> Masking:
    noise = mw.IndependentNoise(columns, variance_ratio=0.1)
    return mask_by_plan(MaskPlan(source, (noise,), plan_in(folder).output), seed=5)


def test_codes_and_identifiers_are_never_guessed(folder: Path) -> None:
    rng = np.random.default_rng(5)
    income = rng.integers(100, 9000, 300)
    income[::20] = -9
    source = coded_file(folder, INCOME=income, MRN=rng.permutation(9 * 10**6)[:300] + 10**6)
    for columns in (("INCOME",), ("role: key",)):
        with pytest.raises(BadPlan) as refusal:
            masked_without_schema(folder, source, *columns)
        decide = "decide it in a schema, which maskwell inspect proposes"
        assert refusal.value.problems == (
            f"column 'INCOME' holds what may be codes for no value, which noise would hide: {decide}",
            f"column 'MRN' looks like an identifier and would leave in clear: {decide}",
        )
    masking = masked_without_schema(folder, source, "X", "MRN")
    assert "released unmasked: INCOME" in texts(masking.notes)
    assert "column 'INCOME' is undecided: codes for no value among its values?" in texts(masking.notes)


def test_a_schema_decides_what_would_be_refused_without(folder: Path) -> None:
    rng = np.random.default_rng(5)
    source = coded_file(folder, MRN=rng.permutation(9 * 10**6)[:300] + 10**6)
    proposal, _ = inspect_file(source)
    (folder / "decided.toml").write_text(proposal.to_toml())
    decided = InputPlan(file=source.file, schema=folder / "decided.toml")
    assert "released unmasked: MRN" in texts(masked_without_schema(folder, decided, "X").notes)


def test_pile_ups_of_masked_columns_are_noted(folder: Path) -> None:
    amounts = np.minimum(np.random.default_rng(6).lognormal(10, 1, 300).astype(int), 50_000)
    masking = masked_without_schema(folder, coded_file(folder, PAY=amounts), "PAY")
    assert "column 'PAY' is undecided: a top code?" in texts(masking.notes)
    assert "column 'PAY' is undecided: a top code?" in texts(mw.read(folder / "coded.parquet").notes)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("ID|INCOME|TAX", "with the one column 'ID|INCOME|TAX': if another sign separates them, give it as delimiter"),
        ("ID, INCOME , TAX", "with the columns 'ID', ' INCOME ', ' TAX'"),
        ("a1,b2,c3,d4,e5,f6,g7", "with the columns 'a1', 'b2', 'c3', 'd4', 'e5' and 2 more"),
        ("smith,731640259,9", ": check that its first line holds the names of the columns"),
    ],
)  # fmt: skip
def test_a_column_that_is_not_there_is_told_with_how_the_file_was_read(
    folder: Path, header: str, words: str
) -> None:
    sign = "|" if "|" in header else ","
    records = [sign.join([f"p{i}", *(["5"] * header.count(sign))]) for i in range(30)]
    (folder / "other.csv").write_text("\n".join([header, *records]) + "\n")
    with pytest.raises(BadPlan) as refusal:
        masked_without_schema(folder, InputPlan(file=folder / "other.csv"), "INCOME")
    said = str(refusal.value)
    assert said.startswith("there is no column 'INCOME'")
    assert said.endswith(words)
    assert "; the file was read as comma-separated, decimal point" in said
    assert "731640259" not in said
