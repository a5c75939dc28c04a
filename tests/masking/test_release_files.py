"""Maskings and releases on disk: both halves, read back as they were, whole at any moment, closed to others."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.card import NoiseCard
from maskwell.errors import BadBundle, BadPlan, CannotWrite, MaskwellWarning
from maskwell.io import read
from maskwell.io.bundle import FAILPOINTS, verify_bundle
from maskwell.io.dialect import Dialect
from maskwell.keys import Key
from maskwell.masking import Masking, apply, read_release, release_files
from maskwell.masks import Chain, CodeNoise, CorrelatedNoise, Grouping, IndependentNoise, Recompute, Subsample
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

PROGRAM = Path(__file__).with_name("crash_masking.py")
PLAN = Chain(
    (CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3), CodeNoise("SEX", variance=0.5), Subsample(0.7))
)
FORMATS = ("csv", "tsv", "parquet", "arrow", "sav", "dta", "xpt")
MakePeople = Callable[..., Table]


@pytest.fixture
def masking(people: Table, study_key: Key) -> Masking:
    return apply(PLAN, people, key=study_key)


def written(masking: Masking, root: Path, **options: Any) -> Masking:
    masking.write(release=root / "release", private=root / "private", **options)
    return Masking.read(release=root / "release", private=root / "private")


def private_folder(root: Path) -> Path:
    (folder,) = (root / "private").iterdir()
    return folder


# --- the public half


def test_a_release_is_data_card_schema_codebook_and_manifest(masking: Masking, tmp_path: Path):
    bundle = masking.release.write(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "card.json", "codebook.md", "data.parquet", "manifest.json", "schema.toml",
    }  # fmt: skip
    assert verify_bundle(tmp_path / "out").bundle == bundle
    card = NoiseCard.read(tmp_path / "out" / "card.json")
    assert card.data_sha256 == hashlib.sha256((tmp_path / "out" / "data.parquet").read_bytes()).hexdigest()
    assert replace(card, data_sha256="") == masking.release.card


@pytest.mark.parametrize("format", FORMATS)
def test_a_release_reads_back_in_every_format(masking: Masking, tmp_path: Path, format: str):
    masking.release.write(tmp_path / "out", format=format)
    again = read_release(tmp_path / "out")
    expected = masking.release.table
    assert again.table.names == expected.names
    for name in expected.names:
        assert np.array_equal(again.table.status(name), expected.status(name)), name
        assert again.table.array(name).equals(expected.array(name)), name
    assert [(c.name, c.kind, c.categories) for c in again.table.schema.columns] == [
        (c.name, c.kind, c.categories) for c in expected.schema.columns
    ]


@pytest.mark.parametrize(
    ("source", "expected"), [("csv", "data.csv"), ("dta", "data.dta"), ("pandas", "data.parquet")]
)
def test_data_leave_in_the_format_they_came_in(masking: Masking, source: str, expected: str):
    table = masking.release.table
    release = replace(masking.release, table=replace(table, source=replace(table.source, kind=source)))
    assert release_files.data_name(release, None) == expected


def test_an_unknown_format_is_refused_before_anything_is_written(masking: Masking, tmp_path: Path):
    with pytest.raises(BadPlan, match="the format 'xlsx' is not one of"):
        masking.write(release=tmp_path / "release", private=tmp_path / "private", format="xlsx")
    assert list(tmp_path.iterdir()) == []


# --- both halves


def test_a_masking_reads_back_as_it_was(masking: Masking, tmp_path: Path):
    again = written(masking, tmp_path)
    for name in ("truth", "masked", "card", "key", "number", "notes"):
        assert getattr(again, name) == getattr(masking, name), name
    assert np.array_equal(again.kept, masking.kept)
    assert np.array_equal(again.order, masking.order)
    assert again.links.equals(masking.links)
    assert again.release.table == masking.release.table
    assert replace(again.release.card, data_sha256="") == masking.release.card
    assert again.mask == masking.mask.to_dict()
    assert again.to_dict() == masking.to_dict()


def test_a_masking_without_ids_reads_back(masking: Masking, people: Table, study_key: Key, tmp_path: Path):
    numbered = apply(PLAN, people.select([name for name in people.names if name != "ID"]), key=study_key)
    again = written(numbered, tmp_path)
    assert np.array_equal(again.order, numbered.order)
    assert again.links.equals(numbered.links)


def test_awkward_ids_and_text_codes_read_back(tmp_path: Path, study_key: Key):
    """Ids with quotes, line ends and delimiters; codes in a column of numbers that no number can hold."""
    ids = ['a "quoted" one', "two\nlines", "semi;colon", "comma, too", " spaces ", "NA", "é", "00017"]
    columns = (Column("ID", "text", frozenset({"id"})), Column("A", "continuous", missing=(".a", -9)))
    status = np.array([0, 0, 4, 5, 1, 0, 0, 0], np.uint8)
    amounts = pa.array(np.arange(8.0), mask=status != 0)
    table = Table(Schema(columns), pa.table({"ID": ids, "A": amounts}), {"A": status})
    masking = apply(CorrelatedNoise("A", sd_ratio=0.5), table, key=study_key)
    with pytest.warns(MaskwellWarning, match="become plain missing values"):
        again = written(masking, tmp_path)
    assert again.truth == table
    assert again.masked == masking.masked
    assert np.array_equal(again.order, masking.order)


def test_a_release_is_nested_in_one_that_was_read_back(
    make_people: MakePeople, study_key: Key, tmp_path: Path
):
    """With changed, withdrawn and returned records: every bit is that of maskings kept in memory."""
    plan = CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3)
    more = CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.5)
    whole = make_people()
    tax = whole.values(["TAX"])[:, 0]
    tax[[10, 20]] += 777.0
    moved = whole.with_columns({"TAX": (whole.schema["TAX"], tax, whole.status("TAX"))})
    steps = [(plan, whole), (plan, moved.take(np.arange(30, 240))), (more, moved), (more, whole)]
    kept = stored_one = None
    for i, (mask, table) in enumerate(steps):
        given = {"key": study_key} if i == 0 else {}
        kept = apply(mask, table, earlier=kept, **given)
        stored_one = apply(mask, table, earlier=stored_one, **given)
        (tmp_path / str(i)).mkdir()
        stored_one = written(stored_one, tmp_path / str(i))
        assert stored_one.masked == kept.masked
        assert stored_one.card == kept.card
        assert stored_one.notes == kept.notes
        assert stored_one.past == kept.past
        assert stored_one.revisions.keys() == kept.revisions.keys()
        for name, tags in kept.revisions.items():
            assert np.array_equal(stored_one.revisions[name], tags)
    assert has_code(apply(more, moved, earlier=read_at(tmp_path, 1)).notes, "masking.series_returned")


def test_laws_of_columns_left_out_are_read_back(make_people: MakePeople, study_key: Key, tmp_path: Path):
    """A column that skipped a release is refused in clear, or with less noise, by a masking from disk too."""
    income, tax = (IndependentNoise(name, variance=200.0) for name in ("INCOME", "TAX"))
    whole = make_people()
    parts = IndependentNoise(("WAGE", "OTHER"), variance=100.0)
    plan = Chain((income, tax, parts, Recompute("TOTAL", ("WAGE", "OTHER"))))
    first = apply(plan, whole, key=study_key)
    left = apply(income, whole.select(["ID", "INCOME", "AGE"]), earlier=first)
    again = written(left, tmp_path)
    assert again.past == left.past
    assert [law.columns for law in again.past.card.laws] == [("TAX",), ("WAGE", "OTHER")]
    assert [total for total, _ in again.past.card.recomputed] == ["TOTAL"]
    assert "AGE" in again.past.clear
    for other, reason in (
        (income, "'TAX' was masked"),
        (Chain((income, replace(tax, variance=180.0))), "the new noise of TAX is smaller"),
    ):
        with pytest.raises(BadPlan, match=reason):
            apply(other, whole, earlier=again)
    assert apply(plan, whole, earlier=again).masked == first.masked


def read_at(root: Path, step: int) -> Masking:
    return Masking.read(release=root / str(step) / "release", private=root / str(step) / "private")


def test_the_same_masking_gives_the_same_bytes(
    masking: Masking, people: Table, study_key: Key, tmp_path: Path
):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        again = apply(PLAN, people, key=study_key)
        again.write(release=tmp_path / name / "release", private=tmp_path / name / "private")
    files = sorted(
        path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file()
    )
    assert len(files) > 12
    for file in files:
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes(), file


# --- who may read what


def test_the_private_half_is_closed_to_others_and_refused_when_open(masking: Masking, tmp_path: Path):
    written(masking, tmp_path)
    folder = private_folder(tmp_path)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert set(modes.values()) == {0o600}
    assert {
        "key.hex",
        "links.csv",
        "truth.parquet",
        "masked.parquet",
        "past.parquet",
        "past.card.json",
        "originals.parquet",
        "revisions.parquet",
        "state.json",
    } <= modes.keys()
    assert stat.S_IMODE(folder.stat().st_mode) == stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    (folder / "key.hex").chmod(0o640)
    with pytest.raises(BadBundle, match="open to others"):
        Masking.read(release=tmp_path / "release", private=tmp_path / "private")


def test_the_private_half_may_not_lie_in_the_public_one(masking: Masking, tmp_path: Path):
    with pytest.raises(CannotWrite, match="lies in the public"):
        masking.write(release=tmp_path / "release", private=tmp_path / "release" / "private")


def test_the_halves_of_two_releases_do_not_fit_together(masking: Masking, people: Table, tmp_path: Path):
    for name, seed in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        written(apply(PLAN, people, seed=seed), tmp_path / name)
    with pytest.raises(BadBundle, match="is not in"):
        Masking.read(release=tmp_path / "one" / "release", private=tmp_path / "two" / "private")
    with pytest.raises(BadBundle, match="private half of a release"):
        read_release(private_folder(tmp_path / "one"))


def test_links_of_other_ids_are_refused(masking: Masking, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    other = replace(masking, number=2)  # the same records under other ids
    monkeypatch.setattr(release_files, "_write_links", lambda _, path: write_links(other, path))
    with pytest.raises(BadBundle, match="links belong to another release"):
        written(masking, tmp_path)


def write_links(masking: Masking, path: Path) -> None:
    import pyarrow.csv as csv

    csv.write_csv(masking.links, path)


def test_a_card_of_another_release_is_refused(masking: Masking, people: Table, tmp_path: Path):
    masking.release.write(tmp_path / "one")
    apply(PLAN, people, seed=5).release.write(tmp_path / "two")
    with pytest.raises(BadBundle, match="the card belongs to another release"):
        read_release(tmp_path / "one", card=tmp_path / "two" / "card.json")
    given = NoiseCard.read(tmp_path / "one" / "card.json")
    assert read_release(tmp_path / "one", card=given).card == given


def test_a_damaged_release_is_refused(masking: Masking, tmp_path: Path):
    masking.release.write(tmp_path / "out", format="csv")
    with (tmp_path / "out" / "data.csv").open("a") as file:
        file.write("\n")
    with pytest.raises(BadBundle, match=r"data\.csv is damaged or was changed"):
        read_release(tmp_path / "out")


def test_a_masking_made_elsewhere_cannot_be_written_but_its_release_can(masking: Masking, tmp_path: Path):
    elsewhere = replace(masking, key=None, given=(masking.release, masking.order))
    with pytest.raises(BadPlan, match="made elsewhere"):
        elsewhere.write(release=tmp_path / "release", private=tmp_path / "private")
    elsewhere.release.write(tmp_path / "out")
    assert read_release(tmp_path / "out").table == masking.release.table


def test_no_key_or_true_id_in_the_state(masking: Masking, tmp_path: Path):
    written(masking, tmp_path)
    state = json.loads((private_folder(tmp_path) / "state.json").read_text())
    assert set(state) == {"number", "seeded", "mask", "notes", "clear", "kept"}
    assert state["seeded"] is True


def test_a_csv_release_is_read_as_it_was_written_not_as_it_looks(tmp_path: Path):
    """One column of decimal commas under a semicolon dialect has no semicolon to be found by."""
    (tmp_path / "one.csv").write_text("V\n" + "".join(f"{i},5\n" for i in range(60)), encoding="utf-8")
    schema = Schema((Column("V", "continuous", unit=0.1),))
    table = read(tmp_path / "one.csv", schema, dialect=Dialect(";", ","))
    release = apply(IndependentNoise("V", variance_ratio=0.1), table, seed=1).release
    release.write(tmp_path / "out")
    assert np.array_equal(read_release(tmp_path / "out").table.values(["V"]), release.table.values(["V"]))
    manifest = tmp_path / "out" / "manifest.json"
    manifest.write_text(
        manifest.read_text(encoding="utf-8").replace('"delimiter"', '"delimited"'), encoding="utf-8"
    )
    with pytest.raises(
        BadBundle, match="the manifest is damaged: it does not say how the CSV file is written"
    ):
        read_release(tmp_path / "out")


# --- whole at any moment


@pytest.mark.parametrize(
    ("breaks", "seeds"), [((40, 50), (1, 1)), ((40, 40), (1, 2))], ids=["schema", "seed"]
)
def test_a_reader_never_sees_half_of_an_exchange(
    people: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: Any, seeds: Any
):
    """A new release takes the place of the old one while the old one's data are being read."""
    target = tmp_path / "out"
    plans = [Chain((Grouping("AGE", breaks=(age,)), Subsample(0.5))) for age in breaks]
    old, new = (apply(plan, people, seed=seed).release for plan, seed in zip(plans, seeds, strict=True))
    old.write(target)
    genuine, exchanged = release_files.read, list[str]()

    def slow(*given: Any, **more: Any) -> Any:
        if not exchanged:
            exchanged.append(new.write(target))
        return genuine(*given, **more)

    monkeypatch.setattr(release_files, "read", slow)
    found = read_release(target)
    assert replace(found.card, data_sha256="") == new.card
    assert found.table == new.table
    assert found.card.data_sha256 == hashlib.sha256((target / "data.parquet").read_bytes()).hexdigest()


def load_program() -> Any:
    spec = spec_from_file_location("crash_masking", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_and_die(root: Path, seed: int, failpoint: str) -> int:
    environment = {**os.environ, "MASKWELL_FAILPOINT": failpoint}
    return subprocess.run([sys.executable, str(PROGRAM), str(root), str(seed)], env=environment).returncode


@pytest.mark.parametrize("failpoint", FAILPOINTS)
def test_kill_9_leaves_data_card_and_private_half_of_one_release(tmp_path: Path, failpoint: str):
    program = load_program()
    earlier, new = program.masked(1), program.masked(2)
    earlier.write(release=tmp_path / "release", private=tmp_path / "private", format="csv")
    assert write_and_die(tmp_path, 2, failpoint) == -signal.SIGKILL
    exchanged = FAILPOINTS.index(failpoint) >= FAILPOINTS.index("after exchange")
    expected = new if exchanged else earlier
    found = Masking.read(release=tmp_path / "release", private=tmp_path / "private")
    assert found.release.table == expected.release.table
    data = (tmp_path / "release" / "data.csv").read_bytes()
    assert found.release.card.data_sha256 == hashlib.sha256(data).hexdigest()
    assert found.key == expected.key
    assert found.links.equals(expected.links)
