"""What is left in the file: ids in disguise, unused labels, secret strings, digits on the card, uniques unswapped."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from maskwell.attacks import NearestRecord
from maskwell.checks.card_digits import significant
from maskwell.checks.evidence import Evidence
from maskwell.checks.file_bytes import found_in
from maskwell.checks.file_checks import CHECKS
from maskwell.checks.findings import Finding
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.masking.results import Release
from maskwell.masks import CorrelatedNoise, IndependentNoise, MixtureNoise, Pram
from maskwell.protect import swap
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.tolerances import MaxRate

KEY = Key(np.random.default_rng(11).bytes(32))
RECORDS = 400
NOISE = CorrelatedNoise(("A", "B"), sd_ratio=0.5)


def made(name: str, masking: Masking, folder: Path | None = None) -> Finding:
    check = next(check for check in CHECKS if check.name == name)
    return check.made(Evidence(masking, folder=folder))


def role(*names: str) -> frozenset[str]:
    return frozenset(names)


SCHEMA = Schema(
    (
        Column("ID", "text", role("id")),
        Column("HH", "text", role("group")),
        Column("AREA", "category", role("block"), categories=("north", "south", "Lost Hollow")),
        Column("A", "continuous", role("key"), unit=0.01),
        Column("B", "continuous", role("key"), unit=0.01),
        Column("SERIAL", "integer", drop=True),
        Column("NAME", "text", drop=True),
    )
)


def frame(records: int = RECORDS) -> pa.Table:
    rng = np.random.default_rng(1)
    a = rng.standard_normal(records)
    return pa.table(
        {
            "ID": [f"person {i:06d}" for i in rng.permutation(records)],
            "HH": [f"household-{i // 2:05d}" for i in range(records)],
            "AREA": rng.choice(["north", "south"], records),
            "A": np.round(50 + 10 * a, 2),
            "B": np.round(20 + 5 * a + 5 * rng.standard_normal(records), 2),
            "SERIAL": 100_000 + rng.permutation(records),
            "NAME": [f"Smith the {i}th" for i in rng.permutation(records)],
        }
    )


def truth(**changes: Column) -> Table:
    return Table.from_frame(frame(), SCHEMA.changed(changes))


def clean() -> Masking:
    return apply(NOISE, truth(), key=KEY)


@pytest.mark.parametrize("name", ["id-like columns", "labels", "known strings", "card digits"])
def test_a_clean_release_passes(name: str) -> None:
    found = made(name, clean())
    assert found.verdict == "pass", found


def test_a_serial_number_in_clear_is_an_id() -> None:
    masking = apply(NOISE, truth(SERIAL=Column("SERIAL", "integer")), key=KEY)
    found = made("id-like columns", masking)
    assert found.verdict == "fail"
    assert found.where == "SERIAL"


def test_old_ids_in_a_release_made_elsewhere_are_found() -> None:
    masking = clean()
    table = masking.release.table
    old = masking.truth.ids.take(pa.array(masking.order))  # type: ignore[union-attr,arg-type]
    kept = replace(table, data=table.data.set_column(0, "ID", old))
    given = replace(masking, given=(Release(kept, masking.release.card), masking.order))
    assert made("id-like columns", given).verdict == "fail"
    found = made("known strings", given)
    assert found.verdict == "fail"
    assert found.figures["ids"] == RECORDS


def test_a_category_that_no_record_has_is_an_unused_label() -> None:
    masking = clean()
    release = masking.release
    assert "Lost Hollow" not in release.table.schema["AREA"].categories
    column = replace(release.table.schema["AREA"], categories=("north", "south", "Lost Hollow"))
    table = replace(release.table, schema=release.table.schema.changed({"AREA": column}))
    found = made("labels", replace(masking, given=(Release(table, release.card), masking.order)))
    assert found.verdict == "fail"
    assert found.where == "AREA"


def test_a_suppressed_label_in_the_bytes_is_found(tmp_path: Path) -> None:
    masking = clean()
    masking.release.write(tmp_path / "out", format="csv")
    assert made("labels", masking, tmp_path / "out").verdict == "pass"
    with (tmp_path / "out" / "codebook.md").open("a") as file:
        file.write("3: Lost Hollow\n")
    assert made("labels", masking, tmp_path / "out").verdict == "fail"


def test_categories_that_a_law_speaks_of_may_stay() -> None:
    changes = {"AREA": Column("AREA", "category", categories=("north", "south", "Lost Hollow"))}
    masking = apply(Pram(("AREA",), stay=0.9), truth(**changes), key=KEY)
    assert made("labels", masking).verdict == "pass"


def leaks() -> dict[str, Callable[[Masking], bytes]]:
    secret = KEY.secret
    return {
        "an id": lambda masking: masking.truth.array("ID")[7].as_py().encode(),
        "a group": lambda masking: masking.truth.array("HH")[9].as_py().encode(),
        "a name": lambda masking: masking.truth.array("NAME")[9].as_py().encode(),
        "the key": lambda _: secret.hex().encode(),
        "the key in base64": lambda _: base64.b64encode(secret),
        "the key itself": lambda _: secret,
    }


@pytest.mark.parametrize("leak", leaks())
@pytest.mark.parametrize("file", ["codebook.md", "data.csv"])
def test_a_string_of_the_truth_in_the_bytes_is_found(leak: str, file: str, tmp_path: Path) -> None:
    masking = clean()
    masking.release.write(tmp_path / "out", format="csv")
    assert made("known strings", masking, tmp_path / "out").figure == 0
    with (tmp_path / "out" / file).open("ab") as opened:
        opened.write(b"..." + leaks()[leak](masking) + b"...")
    found = made("known strings", masking, tmp_path / "out")
    assert found.verdict == "fail"
    assert found.figure == 1


@pytest.mark.parametrize("format", ["csv", "parquet", "arrow", "sav", "dta", "xpt"])
def test_old_ids_are_found_in_every_format(format: str, tmp_path: Path) -> None:
    masking = clean()
    table = masking.release.table
    old = masking.truth.ids.take(pa.array(masking.order))  # type: ignore[union-attr,arg-type]
    kept = replace(table, data=table.data.set_column(0, "ID", old))
    for name, release in (("new", masking.release), ("old", Release(kept, masking.release.card))):
        release.write(tmp_path / name, format=format)
    assert made("known strings", masking, tmp_path / "new").figure == 0
    assert made("known strings", masking, tmp_path / "old").figures["ids"] == RECORDS


def test_old_ids_inside_new_ones_are_chance_where_they_are_rare(tmp_path: Path) -> None:
    masking = clean()
    table, old = masking.release.table, masking.truth.ids.to_pylist()  # type: ignore[union-attr]
    new = table.ids.to_pylist()  # type: ignore[union-attr]
    for name, count, found in (("rare", 1, 0), ("all", RECORDS, RECORDS)):
        ids = [f"x{text}" for text in old[:count]] + new[count:]
        kept = replace(table, data=table.data.set_column(0, "ID", pa.array(ids)))
        given = replace(masking, given=(Release(kept, masking.release.card), masking.order))
        assert made("known strings", given).figures["ids"] == found, name
        given.release.write(tmp_path / name, format="csv")
        with (tmp_path / name / "codebook.md").open("a") as opened:
            opened.write(f"as {old[0]} told us")
        assert made("known strings", given, tmp_path / name).figures["ids"] == max(found, 1), name


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_strings_inside_packed_files_are_found(format: str, tmp_path: Path) -> None:
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    masking = clean()
    ids = masking.truth.array("ID").dictionary_encode()  # the dictionary has all, the column only two of them
    table = pa.table({"X": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), ids.dictionary)})
    path = tmp_path / f"data.{format}"
    if format == "parquet":
        pq.write_table(table, path, compression="zstd")
    else:
        feather.write_feather(table, path, compression="zstd")
    assert made("known strings", masking, tmp_path).verdict == "fail"


def test_short_numbers_are_not_searched_for() -> None:
    table = Table.from_frame(
        pa.table(
            {"ID": [str(i) for i in range(RECORDS)], "A": np.arange(RECORDS) * 1.0, "B": np.ones(RECORDS)}
        ),
        Schema((Column("ID", "text", role("id")), Column("A", "continuous"), Column("B", "continuous"))),
    )
    masking = apply(IndependentNoise(("A",), variance_ratio=0.5), table, key=KEY)
    found = made("known strings", masking)
    assert found.figures["ids"] == 0
    assert "ids of 1 to 3 characters are too short to be searched for" in found.said


def noted(ids: list[str], notes: list[str], codes: list[str] | None = None) -> Masking:
    """A release with a text and a category in clear."""
    records = len(ids)
    codes = ["north"] * records if codes is None else codes
    columns = (
        Column("ID", "text", role("id")),
        Column("NOTE", "text"),
        Column("CODE", "category", categories=tuple(sorted(set(codes)))),
        Column("A", "continuous", role("key"), unit=1),
    )
    rng = np.random.default_rng(3)
    amount = np.rint(50_000 + 9_000 * rng.standard_normal(records))
    frame_of = pa.table({"ID": ids, "NOTE": notes, "CODE": codes, "A": amount})
    return apply(
        IndependentNoise(("A",), variance_ratio=0.5), Table.from_frame(frame_of, Schema(columns)), key=KEY
    )


SHORT_IDS = {
    "nine digits": [f"{100_000_000 + 7 * i}" for i in range(RECORDS)],
    "drawn digits": [f"{i}" for i in np.random.default_rng(8).permutation(900_000)[:RECORDS] + 100_000],
    "a letter": [f"K{i:05d}" for i in range(RECORDS)],
    "a sign": [f"{i:03d}-{i % 7}b" for i in range(RECORDS)],
}


@pytest.mark.parametrize("kind", SHORT_IDS)
def test_short_ids_inside_a_text_are_found(kind: str) -> None:
    ids = SHORT_IDS[kind]
    notes = ["nothing to say of 1234567 and 765432.25"] * RECORDS
    assert made("known strings", noted(ids, notes)).verdict == "pass"
    notes[3], notes[9] = f"see also {ids[17]}.", f"brother of id_{ids[25]}, moved"
    if kind == "a sign":
        notes[9] = f"brother of ({ids[25]})"
    found = made("known strings", noted(ids, notes))
    assert (found.verdict, found.figure) == ("fail", 2)
    assert found.figures["ids"] == 2


def test_a_short_id_in_the_codebook_is_found(tmp_path: Path) -> None:
    ids = SHORT_IDS["nine digits"]
    masking = noted(ids, ["nothing"] * RECORDS)
    masking.release.write(tmp_path / "out", format="csv")
    assert made("known strings", masking, tmp_path / "out").figure == 0
    with (tmp_path / "out" / "codebook.md").open("a") as file:
        file.write(f"Checked with {ids[5]} by telephone.\n")
    assert made("known strings", masking, tmp_path / "out").figure == 1


def test_short_ids_that_numbers_and_codes_repeat_by_chance_are_no_finding() -> None:
    rng = np.random.default_rng(9)
    ids = [
        str(i) for i in range(40_000, 40_000 + 50 * RECORDS, 50)
    ]  # amounts, codes and limits are like them
    codes = [str(code) for code in rng.integers(400, 600, RECORDS) * 100]
    notes = [f"room {number}" for number in rng.integers(10_000, 99_999, RECORDS)]
    found = made("known strings", noted(ids, notes, codes))
    assert found.verdict == "pass"
    assert "passed over" in found.said


def test_short_ids_of_letters_alone_are_not_searched_for_and_it_is_said() -> None:
    letters = "abcdefghij"
    ids = [f"{letters[i // 100]}{letters[i // 10 % 10]}{letters[i % 10]}xx" for i in range(RECORDS)]
    found = made("known strings", noted(ids, ["nothing"] * RECORDS))
    assert "ids of 5 characters without a digit" in found.said


def test_many_strings_are_searched_at_once() -> None:
    rng = np.random.default_rng(2)
    wanted = [f"{i:012d}".encode() for i in rng.integers(10**11, 10**12, 3_000)]
    data = bytes(rng.integers(0, 256, 200_000, dtype=np.uint8)) + wanted[5] + b"\n" + b"x" + wanted[6] + b"9,"
    assert set(found_in(data + wanted[7], wanted)) == {wanted[5], wanted[7]}  # another digit beside the sixth
    assert not found_in(b"", wanted)
    assert not found_in(b"short", [b"short"])
    assert found_in(b"ab" + b"longer text", [b"longer text", b"zzzzzzzz longer text"]) == {b"longer text": 1}


@pytest.mark.parametrize(
    ("value", "digits"), [(0.0, 0), (0.5, 1), (120.0, 2), (0.0123, 3), (1 / 3, 12), (-0.97, 2), (8e-7, 1)]
)
def test_digits_are_counted(value: float, digits: int) -> None:
    assert significant(value) == digits


@pytest.mark.parametrize(
    "mask",
    [
        NOISE,
        CorrelatedNoise(("A", "B"), sd_ratio=0.5, keep="moments"),
        MixtureNoise(("A", "B"), variance_ratio=0.5, within_variance_ratio=0.1),
    ],
)
def test_an_exact_card_fails_and_a_rounded_one_does_not(mask: CorrelatedNoise) -> None:
    assert made("card digits", apply(mask, truth(), key=KEY)).figure <= 2
    found = made("card digits", apply(mask, truth(), key=KEY, exact=True))
    assert found.verdict == "fail"
    assert found.figure > 10


def test_noise_nested_in_that_of_an_earlier_release_has_no_more_digits() -> None:
    first = apply(NOISE, truth(), key=KEY)
    later = apply(CorrelatedNoise(("A", "B"), sd_ratio=0.8), truth(), earlier=first)
    assert made("card digits", later).figure <= 2


def test_three_digits_warn() -> None:
    masking = apply(NOISE, truth(), key=KEY, exact=True)
    law = masking.card.laws[0]
    noise = replace(law.noise, sds=(5.12, 3.4), correlations=((1.0, 0.7), (0.7, 1.0)))  # type: ignore[attr-defined]
    card = replace(masking.card, laws=(replace(law, noise=noise),))
    assert made("card digits", replace(masking, card=card)).verdict == "warn"


def test_sizes_that_the_plan_gives_may_have_any_digits() -> None:
    masking = apply(IndependentNoise(("A", "B"), variance=(3.0, 7.0)), truth(), key=KEY)
    assert made("card digits", masking).figure == 0


def test_uniques_left_unswapped_are_told_and_never_fail() -> None:
    masking = apply(CorrelatedNoise(("A", "B"), sd_ratio=0.2), truth(), key=KEY)
    assert made("uniques left unswapped", masking).verdict == "not checked"
    swapped = swap(masking, NearestRecord(distance="noise"), MaxRate(0.05), exempt_values="A and B are known")
    found = made("uniques left unswapped", swapped)
    assert found.verdict == "pass"
    assert 0 <= found.figure <= 1
