"""Nothing confidential in the bytes of a release: sentinels are planted wherever a file can hide something.

Random texts stand as ids, as labels of unused and of grouped categories, in dropped columns, under nulls, in metadata
and in the path of the input; numbers with random digits stand in masked cells and under nulls. Then every byte that
leaves is searched: each format, with compressed parts decompressed, and the pickles of the release and its frame.
"""

from __future__ import annotations

import pickle
import random
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maskwell.io import read
from maskwell.keys import Key
from maskwell.masking import Release, apply
from maskwell.masks import Chain, CorrelatedNoise, Grouping, Pram, Subsample
from maskwell.schema import Column, Schema
from maskwell.table import Table

RECORDS = 60
FORMATS = ("csv", "tsv", "parquet", "arrow", "sav", "zsav", "dta", "xpt")
KEY = Key(random.Random(99).randbytes(32))  # a real key is not seeded, and the card must not say so


# --- sentinels


@dataclass
class Sentinels:
    """Secrets by where they were planted: texts, numbers and bytes."""

    seed: int
    texts: dict[str, str] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    raw: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)

    def text(self, where: str) -> str:
        """Return 16 random bytes as hexadecimal text."""
        self.texts[where] = self.random.randbytes(16).hex()
        return self.texts[where]

    def number(self, where: str, low: float = 1000.0, high: float = 9000.0) -> float:
        """Return an amount with 53 random binary digits."""
        self.numbers[where] = self.random.uniform(low, high)
        return self.numbers[where]

    def needles(self) -> Iterator[tuple[str, bytes]]:
        """Yield the byte patterns that must be nowhere, each in the forms a file could hold it in."""
        for where, text in self.texts.items():
            yield where, text[:16].encode()  # half is too much already
            yield where, text[16:].encode()
            yield f"{where} (UTF-16)", text[:16].encode("utf-16-le")
            yield f"{where} (bytes)", bytes.fromhex(text)
        for where, number in self.numbers.items():
            yield f"{where} (double)", struct.pack("<d", number)
            yield f"{where} (double, turned)", struct.pack(">d", number)
            yield f"{where} (SAS)", ibm_double(number)
            yield f"{where} (digits)", repr(number)[:12].encode()
        yield from self.raw.items()


def ibm_double(number: float) -> bytes:
    """Return a positive number as SAS transport files hold it: base 16, 56 binary digits of fraction."""
    exponent, fraction = 0, number
    while fraction >= 1:
        fraction, exponent = fraction / 16, exponent + 1
    return bytes([64 + exponent]) + int(fraction * 2**56).to_bytes(7, "big")


# --- where to look


def decompressed(content: bytes) -> Iterator[bytes]:
    """Yield every zstd, lz4 and zlib stream that begins anywhere in some bytes."""
    for magic, codec in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\x04\x22\x4d\x18", "lz4")):
        start = content.find(magic)
        while start >= 0:
            yield from stream(content[start:], codec)
            start = content.find(magic, start + 1)
    for start in (
        i for i in range(len(content) - 1) if content[i] == 0x78 and content[i + 1] in (1, 0x5E, 0x9C, 0xDA)
    ):
        with suppress(zlib.error):
            yield zlib.decompressobj().decompress(content[start:])


def stream(content: bytes, codec: str) -> Iterator[bytes]:
    """Yield what a stream holds until it ends; what follows it is no part of it."""
    found = b""
    with pa.CompressedInputStream(pa.BufferReader(content), codec) as opened, suppress(OSError):
        while piece := opened.read(64):
            found += piece
    yield found


def places(release: Release, folder: Path, format: str) -> Iterator[tuple[str, bytes]]:
    """Yield every file of a written release, as it is and decompressed."""
    release.write(folder, format=format)
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        yield path.name, content
        for i, inner in enumerate(decompressed(content)):
            yield f"{path.name}, stream {i}", inner


def pickles(release: Release) -> Iterator[tuple[str, bytes]]:
    for protocol in (2, 5):
        yield f"pickle {protocol}", pickle.dumps(release, protocol)
    yield "pickled frame", pickle.dumps(release.to_frame())
    yield "repr", (repr(release) + repr(release.card)).encode()


def leaks(sentinels: Sentinels, where: Iterator[tuple[str, bytes]]) -> list[str]:
    needles = list(sentinels.needles())
    return [
        f"{secret} in {place}" for place, content in where for secret, needle in needles if needle in content
    ]


# --- a table with secrets everywhere


def described(secrets: Sentinels, unused: str, rare: str) -> Schema:
    """Describe the columns; labels and descriptions hold secrets too."""
    cities = (("Aa", "first"), (unused, secrets.text("label of an unused category")))
    jobs = ((rare, secrets.text("label of a grouped category")), ("cook", "cooks"))
    return Schema(
        (
            Column("ID", "text", frozenset({"id"})),
            Column("INCOME", "continuous", frozenset({"key"}), missing=(-9,)),
            Column("TAX", "continuous", frozenset({"key"})),
            Column("CITY", "category", categories=("Aa", "Bb", unused), labels=cities),
            Column("JOB", "category", categories=("cook", rare, "smith"), labels=jobs),
            Column("SEX", "category", categories=("1", "2")),
            Column("PLAIN", "continuous"),
            Column("HH", "text", frozenset({"group"})),
            Column("GONE", "text", drop=True, description=secrets.text("description of a dropped column")),
            Column("GONE2", "continuous", drop=True),
        )
    )


def planted(seed: int = 1) -> tuple[dict[str, Any], Schema, Sentinels, Any]:
    """Return columns, schema, the sentinels in them, and a plan that suppresses one category."""
    secrets = Sentinels(seed)
    rng = np.random.default_rng(seed)
    unused, rare = secrets.text("unused category"), secrets.text("grouped category")
    columns = {
        "ID": [secrets.text(f"id {i}") for i in range(RECORDS)],
        "INCOME": np.array([secrets.number(f"income {i}") for i in range(RECORDS)]),
        "TAX": np.array([secrets.number(f"tax {i}") for i in range(RECORDS)]),
        "CITY": rng.choice(["Aa", "Bb"], RECORDS).tolist(),
        "JOB": [*rng.choice(["cook", "smith"], RECORDS - 1).tolist(), rare],
        "SEX": rng.choice(["1", "2"], RECORDS).tolist(),
        "PLAIN": np.arange(RECORDS) / 4,
        "HH": [secrets.text(f"household {i}") for i in range(RECORDS // 2)] * 2,
        "GONE": [secrets.text(f"dropped text {i}") for i in range(RECORDS)],
        "GONE2": np.array([secrets.number(f"dropped number {i}") for i in range(RECORDS)]),
    }
    secrets.raw |= {"key": KEY.secret, "key (hex)": KEY.secret.hex().encode(), "key (half)": KEY.secret[:12]}
    grouped = Grouping("JOB", groups=(("cook", ("cook",)), ("other", ("smith", rare))))
    plan = Chain((CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.2), grouped, Pram("SEX", stay=0.9)))
    return columns, described(secrets, unused, rare), secrets, plan


def hollow(values: Any, closed: Any) -> pa.Array:
    """Return an Arrow array that is null in places but still holds values there."""
    bitmap = pa.py_buffer(np.packbits(~closed, bitorder="little").tobytes())
    whole = pa.array(values)
    array = pa.Array.from_buffers(whole.type, len(whole), [bitmap, *whole.buffers()[1:]])
    assert array.null_count == closed.sum()
    return array


def with_gaps(columns: dict[str, Any], secrets: Sentinels) -> dict[str, Any]:
    """Close some cells that still hold a secret in their buffers."""
    closed = np.arange(RECORDS) % 5 == 2
    plain = columns["PLAIN"].copy()
    plain[closed] = [secrets.number(f"under a null {i}") for i in np.flatnonzero(closed)]
    city = list(columns["CITY"])
    for i in np.flatnonzero(closed):
        city[i] = secrets.text(f"text under a null {i}")
    return {
        **columns,
        "INCOME": hollow(columns["INCOME"], closed),
        "PLAIN": hollow(plain, closed),
        "CITY": hollow(city, closed),
    }


def from_arrow(folder: Path) -> tuple[Table, Sentinels, Any]:
    """An Arrow table with values under nulls, unused dictionary labels and metadata."""
    columns, schema, secrets, plan = planted(1)
    columns = with_gaps(columns, secrets)
    labels = pa.array(["1", "2", secrets.text("unused label of a dictionary")])
    codes = pa.array([int(code) - 1 for code in columns["SEX"]], pa.int8())
    columns["SEX"] = pa.DictionaryArray.from_arrays(codes, labels)
    frame = pa.table(columns).replace_schema_metadata({"note": secrets.text("metadata of the table")})
    noted = frame.schema.field("TAX").with_metadata({"note": secrets.text("metadata of a column")})
    frame = frame.cast(frame.schema.set(frame.schema.get_field_index("TAX"), noted))
    return Table.from_frame(frame, schema), secrets, plan


def from_pandas(folder: Path) -> tuple[Table, Sentinels, Any]:
    """A pandas frame: unused categories, values under masks, an index and attributes."""
    columns, schema, secrets, plan = planted(2)
    gaps = with_gaps(columns, secrets)
    closed = np.asarray(gaps["PLAIN"].is_null())
    under = np.array([secrets.number(f"under a mask {i}") for i in range(RECORDS)])
    frame = pd.DataFrame({
        **columns,
        "INCOME": pd.arrays.FloatingArray(np.where(closed, under, columns["INCOME"]), closed),
        "PLAIN": pd.Series(pd.array(gaps["PLAIN"], dtype=pd.ArrowDtype(pa.float64()))),
        "SEX": pd.Categorical(columns["SEX"], categories=["1", "2", secrets.text("unused pandas category")]),
    })  # fmt: skip
    frame.index = pd.Index([secrets.text(f"index {i}") for i in range(RECORDS)])
    frame.attrs["note"] = secrets.text("attributes of the frame")
    return Table.from_frame(frame, schema), secrets, plan


def from_polars(folder: Path) -> tuple[Table, Sentinels, Any]:
    """A polars frame with an Enum that has unused categories, and a slice of a longer frame."""
    columns, schema, secrets, plan = planted(3)
    frame = pl.DataFrame(columns)
    kinds = pl.Enum(["1", "2", secrets.text("unused polars category")])
    longer = pl.concat([frame, frame.with_columns(ID=pl.lit(secrets.text("id beyond the slice")))])
    return (
        Table.from_frame(longer.head(RECORDS).with_columns(SEX=pl.col("SEX").cast(kinds)), schema),
        secrets,
        plan,
    )


def from_csv(folder: Path) -> tuple[Table, Sentinels, Any]:
    """A CSV file in a folder whose name is a secret."""
    columns, schema, secrets, plan = planted(4)
    place = folder / secrets.text("name of the folder")
    place.mkdir()
    path = place / f"{secrets.text('name of the file')}.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    return read(path, schema), secrets, plan


def from_parquet(folder: Path) -> tuple[Table, Sentinels, Any]:
    """A Parquet file with statistics, metadata and dictionary pages that hold secrets."""
    columns, schema, secrets, plan = planted(5)
    path = folder / f"{secrets.text('name of the file')}.parquet"
    frame = pa.table(with_gaps(columns, secrets))
    pq.write_table(frame.replace_schema_metadata({"note": secrets.text("metadata of the file")}), path)
    return read(path, schema), secrets, plan


def stat_file(
    folder: Path, seed: int, ending: str, code: type, **options: str
) -> tuple[Table, Sentinels, Any]:
    """A statistics file with a label, value labels of unused codes and whatever else the format has room for."""
    import pyreadstat

    columns, schema, secrets, plan = planted(seed)
    path = folder / f"{secrets.text('name of the file')}.{ending}"
    frame = pd.DataFrame({**columns, "SEX": [code(value) for value in columns["SEX"]]})
    labels = {code(1): "male", code(2): "female", code(3): secrets.text("label of an unused code")}
    getattr(pyreadstat, f"write_{ending}")(
        frame,
        str(path),
        file_label=secrets.text("label of the file"),
        column_labels={"GONE": secrets.text("label of a dropped column")},
        variable_value_labels={"SEX": labels},
        **{option: secrets.text(where) for option, where in options.items()},
    )
    return read(path, schema), secrets, plan


def from_spss(folder: Path) -> tuple[Table, Sentinels, Any]:
    return stat_file(folder, 6, "sav", float, note="note of the file")


def from_stata(folder: Path) -> tuple[Table, Sentinels, Any]:
    return stat_file(folder, 7, "dta", int)


SOURCES = (from_arrow, from_pandas, from_polars, from_csv, from_parquet, from_spss, from_stata)
Sourced = Callable[[Path], tuple[Table, Sentinels, Any]]
every_source = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__)


@pytest.fixture(scope="module")
def masked(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sourced], tuple[Release, Sentinels]]:
    """Return a function that reads, masks and releases a source once."""
    known: dict[str, tuple[Release, Sentinels]] = {}

    def make(source: Sourced) -> tuple[Release, Sentinels]:
        if source.__name__ not in known:
            table, secrets, plan = source(tmp_path_factory.mktemp(source.__name__))
            known[source.__name__] = apply(plan, table, key=KEY).release, secrets
        return known[source.__name__]

    return make


# --- the search


@every_source
@pytest.mark.parametrize("format", FORMATS)
def test_no_secret_is_in_any_file(masked: Any, source: Sourced, format: str, tmp_path: Path):
    release, secrets = masked(source)
    assert leaks(secrets, places(release, tmp_path / "out", format)) == []


@every_source
def test_no_secret_is_in_a_pickle(masked: Any, source: Sourced):
    release, secrets = masked(source)
    assert leaks(secrets, pickles(release)) == []


@every_source
def test_what_should_leave_has_left(masked: Any, source: Sourced):
    """The search above is about a release that holds everything it should."""
    release, _ = masked(source)
    assert release.table.names == ("ID", "INCOME", "TAX", "CITY", "JOB", "SEX", "PLAIN", "HH")
    assert len(release) == RECORDS
    assert set(release.table.array("JOB").to_pylist()) == {"cook", "other"}
    assert release.table.schema["CITY"].categories == ("Aa", "Bb")
    assert release.table.schema["CITY"].labels == (("Aa", "first"),)


def test_records_left_out_by_a_sample_do_not_leave(tmp_path: Path):
    columns, schema, secrets, plan = planted(11)
    columns["PLAIN"] = np.array([secrets.number(f"clear {i}") for i in range(RECORDS)])
    masking = apply(
        Chain((*plan.masks, Subsample(0.3))), Table.from_frame(pa.table(columns), schema), key=KEY
    )
    assert 0 < len(masking.release) < RECORDS / 2
    told = leaks(secrets, places(masking.release, tmp_path / "out", "parquet")) + leaks(
        secrets, pickles(masking.release)
    )
    assert {int(line.split()[1]) for line in told if line.startswith("clear")} == set(masking.kept.tolist())
    assert [line for line in told if not line.startswith("clear")] == []


# --- the search itself


@pytest.mark.parametrize("format", FORMATS)
def test_a_leak_would_be_found_in_every_format(tmp_path: Path, format: str):
    """The same table with a text and a number in clear: both are found, in compressed files too."""
    columns, schema, *_ = planted(8)
    found = Sentinels(0)
    found.texts = {"clear text": columns["GONE"][7]}
    found.numbers = {"clear number": float(columns["GONE2"][7])}
    clear = schema.changed(
        {name: replace(schema[name], drop=False, description="") for name in ("GONE", "GONE2")}
    )
    release = apply(Pram("SEX", stay=0.9), Table.from_frame(pa.table(columns), clear), key=KEY).release
    told = leaks(found, places(release, tmp_path / "out", format))
    assert any(line.startswith("clear text in data") for line in told)
    assert any(line.startswith("clear number") for line in told)


def test_a_leak_would_be_found_in_a_pickle():
    columns, schema, secrets, _ = planted(9)
    table = Table.from_frame(pa.table(columns), schema)
    assert any(
        "id 5 in pickle 5" in line for line in leaks(secrets, iter([("pickle 5", pickle.dumps(table, 5))]))
    )


def test_values_under_nulls_are_really_there():
    """Else the test above would search for nothing."""
    columns, _, secrets, _ = planted(10)
    gaps = with_gaps(columns, secrets)
    held = gaps["PLAIN"].buffers()[1].to_pybytes() + gaps["CITY"].buffers()[2].to_pybytes()
    under = [name for name in (*secrets.numbers, *secrets.texts) if "under a null" in name]
    found = leaks(secrets, iter([("buffers", held)]))
    assert len(under) == 24
    assert all(any(line.startswith(name) for line in found) for name in under)


def test_numbers_of_sas_are_recognised():
    """From SAS's description of transport files: 1 is 4110000000000000 in base 16."""
    assert ibm_double(1.0).hex() == "4110000000000000"
    assert ibm_double(118.625).hex() == "4276a00000000000"
