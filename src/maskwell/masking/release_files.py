"""Maskings and releases on disk: what goes into the public and the private half, and how they are read back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..card.mismatches import misfits
from ..errors import BadBundle, BadPlan, MaskwellError, raise_all
from ..io import FORMATS, read, write
from ..io.bundle import Manifest, private_bundles, private_half, verify_bundle, write_bundle, write_halves
from ..io.csv import dialect_of
from ..io.dialect import Dialect
from ..io.memory import FileCounts
from ..keys import Key, in_sixteens
from ..notes import Note
from ..schema import Schema
from ..sealing import is_sealed, sealed_by_passphrase
from ..table import Source, Table
from .card_delivery import CARD, CODEBOOK, OPEN, SCHEMA, SEALED_CARD, CardAccess, CardDelivery, Writer
from .codebook import codebook
from .hidden_cards import (
    KEPT,
    SEALED_BY_PASSPHRASE,
    SEALED_FOR_RECIPIENTS,
    closed_codebook,
    is_withheld,
    withheld_card,
)
from .lineage import Past, Revisions
from .protocol import plan_data
from .results import Masking, Release, pair_by_id
from .swap_record import Swapping

RECORDS = "records"  # in the public manifest
KEY = "key.hex"
RELEASE_CARD = "release.card.json"  # in the private half: the card as it could leave, where it did not
SWAPPING = "swapping.json"
ENDINGS = {"csv": "csv", "parquet": "parquet", "arrow": "arrow", "sav": "sav", "dta": "dta", "xpt": "xpt"}


def data_name(release: Release, format: str | None) -> str:
    """Return the name of the data file: in the source's format (Parquet for frames) or the chosen one."""
    kind = format or ENDINGS.get(release.table.source.kind, "parquet")
    if kind.lower() not in FORMATS:
        raise BadPlan(f"the format {kind!r} is not one of {', '.join(sorted(ENDINGS))}")
    return f"data.{kind.lower()}"


def public_files(release: Release, format: str | None, leaving: CardDelivery = OPEN) -> dict[str, Writer]:
    """Return the writers of the public half; the card is written after the data because it carries their hash."""
    data = data_name(release, format)
    files: dict[str, Writer] = {
        data: lambda path: write(release.table, path),
        SCHEMA: lambda path: _text(path, release.table.schema.to_toml()),
        CODEBOOK: lambda path: _text(path, _codebook(release, leaving)),
    }
    if leaving.card == "open":
        files[CARD] = lambda path: _text(path, _bound_card(release, _digest(path.parent / data)))
    if leaving.card == "sealed":
        files[SEALED_CARD] = lambda path: _write_sealed(
            path, _bound_card(release, _digest(path.parent / data)), leaving
        )
    return files | dict(leaving.public)


def _codebook(release: Release, leaving: CardDelivery) -> str:
    return codebook(release) if leaving.is_open else closed_codebook(release, sealed=leaving.card == "sealed")


def _bound_card(release: Release, digest: str) -> str:
    """Return the card as it leaves: bound to its data by the hash of the file."""
    return replace(release.card.public(), data_sha256=digest).to_json()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_sealed(path: Path, card: str, leaving: CardDelivery) -> None:
    assert leaving.sealing is not None
    sealed = leaving.sealing(card.encode("utf-8"))
    if not isinstance(sealed, bytes) or not is_sealed(sealed):
        raise BadPlan("sealing must return an age file, as seal(card, to=['age1...']) does")
    path.write_bytes(sealed)


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def write_release(release: Release, path: Path, format: str | None) -> str:
    """Write the public half alone."""
    return write_bundle(path, public_files(release, format), extra=_manifest_details(release, format))


def _manifest_details(release: Release, format: str | None) -> dict[str, object]:
    """Return what the public manifest says beside the files: which half it is, how long, how a CSV is written."""
    ending = data_name(release, format).removeprefix("data.")
    if FORMATS[ending] != "csv":
        return {"half": "public", RECORDS: len(release)}
    dialect = dialect_of(release.table, "\t" if ending == "tsv" else None)
    return {"half": "public", RECORDS: len(release), "dialect": asdict(dialect)}


def write_masking(
    masking: Masking, public: Path, private: Path, format: str | None, leaving: CardDelivery = OPEN
) -> str:
    """Write both halves: private first, then the public one by one atomic exchange."""
    if masking.key is None:
        raise BadPlan("this masking was made elsewhere: only its Release can be written")
    release, data = masking.release, data_name(masking.release, format)
    outside, inside = public_files(release, format, leaving), private_files(masking)
    written: dict[
        str, str
    ] = {}  # the hash of the data, which the private half needs after the public one is built

    def write_data(path: Path) -> None:
        write(release.table, path)
        written[data] = _digest(path)

    if not leaving.is_open:
        outside[data] = write_data
        inside[RELEASE_CARD] = lambda path: _text(path, _bound_card(release, written[data]))
    if taken := sorted(inside.keys() & leaving.inside.keys()):
        raise BadPlan(f"the further file {taken[0]!r} has the name of a private file: choose another")
    inside |= dict(leaving.inside)
    return write_halves(public, private, outside, inside, extra=_manifest_details(release, format))


def private_files(masking: Masking) -> dict[str, Writer]:
    """Return the writers of the private half: everything needed to open the masking again."""
    assert masking.key is not None
    key = masking.key
    state = {
        "number": masking.number,
        "seeded": key.seeded,
        "mask": plan_data(masking.mask),
        "notes": [note.to_dict() for note in masking.notes],
        "clear": list(masking.past.clear),
        "kept": None if masking.kept is None else masking.kept.tolist(),
    }
    swapping = masking.swapping
    exchanged: dict[str, Writer] = (
        {} if swapping is None else {SWAPPING: lambda path: _text(path, swapping.to_json())}
    )
    return {
        KEY: lambda path: _text(path, key.secret.hex() + "\n"),
        "links.csv": lambda path: _write_links(masking, path),
        **_table_files("truth", masking.truth),
        **_table_files("masked", masking.masked),
        "revisions.parquet": lambda path: _write_revisions(masking, path),
        "past.parquet": lambda path: _write_past(masking, path),
        "originals.parquet": lambda path: _write_originals(masking, path),
        "past.card.json": lambda path: _text(path, masking.past.card.to_json()),
        "card.json": lambda path: _text(path, masking.card.to_json()),
        "state.json": lambda path: _text(path, json.dumps(state, indent=1)),
        **exchanged,
    }


def _table_files(name: str, table: Table) -> dict[str, Writer]:
    """Return the writers of a table as it is held: open values, statuses and schema, each in a file of its own."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    statuses = pa.table({column: pa.array(status) for column, status in table.closed.items()})
    return {
        f"{name}.parquet": lambda path: pq.write_table(table.data, path, compression="zstd"),
        f"{name}.status.parquet": lambda path: pq.write_table(statuses, path, compression="zstd"),
        f"{name}.schema.toml": lambda path: _text(path, table.schema.to_toml()),
    }


def _write_links(masking: Masking, path: Path) -> None:
    import pyarrow.csv as csv

    csv.write_csv(masking.links, path)


def _write_revisions(masking: Masking, path: Path) -> None:
    """Write the tags that cells draw their noise from, where they do not draw it from their record."""
    rows: list[tuple[str, int, bytes]] = []
    for column, tags in masking.revisions.items():
        here = np.flatnonzero(tags.any(axis=1))
        rows += zip([column] * len(here), here.tolist(), in_sixteens(tags[here]), strict=True)
    _write_rows(path, ("column", "record", "noise"), rows)


def _write_past(masking: Masking, path: Path) -> None:
    """Write the cells of earlier releases that are not in this one: tags, no ids and no values."""
    cells = masking.past.cells.items()
    rows = [(column, record, *cell) for column, known in cells for record, cell in known.items()]
    _write_rows(path, ("column", "record", "value", "noise"), rows)


def _write_originals(masking: Masking, path: Path) -> None:
    """Write the values that the first noise of revised cells belongs to, as tags."""
    originals = masking.past.originals.items()
    rows = [(column, record, value) for column, known in originals for record, value in known.items()]
    _write_rows(path, ("column", "record", "value"), rows)


def _write_rows(path: Path, names: tuple[str, ...], rows: list[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbered = bool(rows) and isinstance(rows[0][1], int)
    kinds: list[Any] = [
        pa.string(),
        pa.int64() if numbered else pa.binary(16),
        *[pa.binary(16)] * (len(names) - 2),
    ]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    pq.write_table(pa.table(dict(zip(names, arrays, strict=True))), path, compression="zstd")


def read_release(
    path: str | Path,
    *,
    card: NoiseCard | str | Path | None = None,
    identity: str | Path | None = None,
    passphrase: str | None = None,
) -> Release:
    """Read a public bundle, refusing damaged, foreign and newer ones with the reason.

    A sealed card is opened by an identity file or its passphrase; a card that came by another way (a file, open or
    sealed) is given as `card`. Without it a release whose card is sealed or kept can be read, and fit refuses it.
    """
    return _steady_release(Path(path), CardAccess(card, identity, passphrase))[0]


def _steady_release(folder: Path, opening: CardAccess) -> tuple[Release, Manifest]:
    """Read a release and its manifest; again where another took its place meanwhile."""
    while True:
        manifest = verify_bundle(folder)
        try:
            release = _read_release(folder, manifest, opening)
        except MaskwellError:
            if verify_bundle(folder) == manifest:
                raise
        else:
            if verify_bundle(folder) == manifest:
                return release, manifest


def _read_release(folder: Path, manifest: Manifest, opening: CardAccess) -> Release:
    if manifest.extra.get("half") == "private":
        raise BadBundle(f"{str(folder)!r} is the private half of a release, not the release")
    data = [name for name in manifest.files if name.startswith("data.")]
    if len(data) != 1:
        raise BadBundle(f"{str(folder)!r} has no data file")
    card = _card_of(folder, manifest, opening)
    if card.data_sha256 and card.data_sha256 != manifest.files[data[0]]["sha256"]:
        raise BadBundle("the card belongs to another release: its hash is not that of the data file")
    schema, dialect = Schema.read(folder / SCHEMA), _dialect(manifest)
    raise_all(() if is_withheld(card) else misfits(card, schema), BadBundle)
    expected = FileCounts(card.records, len(schema.columns))
    if card.records is None:
        expected = FileCounts(_records(manifest), len(schema.columns), "the manifest")
    return Release(read(folder / data[0], schema, dialect=dialect, expected=expected), card)


def read_files(folder: Path, own: Release) -> Release:
    """Read what was written of a release in a folder that has no manifest yet: data, schema and, where it is, the card.

    `own` is the release that was written there: it says how, and has the card that is not there in the open.
    """
    data = next(path for path in sorted(folder.iterdir()) if path.name.startswith("data."))
    card = NoiseCard.read(folder / CARD) if (folder / CARD).exists() else own.card.public()
    ending = data.name.removeprefix("data.")
    dialect = dialect_of(own.table, "\t" if ending == "tsv" else None) if FORMATS[ending] == "csv" else None
    schema = Schema.read(folder / SCHEMA)
    raise_all(misfits(card, schema), BadBundle)
    expected = FileCounts(len(own), len(schema.columns))
    return Release(read(data, schema, dialect=dialect, expected=expected), card)


def _card_of(folder: Path, manifest: Manifest, opening: CardAccess) -> NoiseCard:
    """Return the card that was brought, else the bundle's own; one that says why where that is not to be had."""
    if isinstance(opening.card, NoiseCard):
        return opening.card
    if opening.card is not None:
        card = opening.read(opening.card)
        if not card.data_sha256:
            raise BadBundle(
                f"the card {str(opening.card)!r} does not say which data it belongs to; ask for the release's"
            )
        return card
    if CARD in manifest.files:
        return NoiseCard.read(folder / CARD)
    if SEALED_CARD not in manifest.files:
        return withheld_card(KEPT)
    if opening.opens:
        return opening.read(folder / SEALED_CARD)
    by_passphrase = sealed_by_passphrase(folder / SEALED_CARD)
    return withheld_card(SEALED_BY_PASSPHRASE if by_passphrase else SEALED_FOR_RECIPIENTS)


def _records(manifest: Manifest) -> int | None:
    """Return how many records the manifest speaks of: of a sealed or kept card nobody knows it before the data."""
    told: Any = manifest.extra.get(RECORDS)
    if told is None or (type(told) is int and told >= 0):
        return told
    raise BadBundle("the manifest is damaged: the number of records is none")


def _dialect(manifest: Manifest) -> Dialect | None:
    written: Any = manifest.extra.get("dialect")
    try:
        return None if written is None else Dialect(**written)
    except (TypeError, MaskwellError):
        raise BadBundle("the manifest is damaged: it does not say how the CSV file is written") from None


def read_masking(public: Path, private: Sequence[Path]) -> Masking:
    """Open a masking from both halves; the private one lies in one of some folders."""
    release, manifest = _steady_release(public, CardAccess())
    holding = (one for one in private if manifest.bundle in private_bundles(one))
    folder = private_half(next(holding, private[0]), manifest.bundle)
    if CARD not in manifest.files:
        release = replace(release, card=NoiseCard.read(folder / RELEASE_CARD))
    masking = _inner_masking(folder)
    return replace(masking, given=(release, _order(folder, masking.truth, release.table)))


def series_before(last: Masking, private: Iterable[Path]) -> tuple[Masking, ...]:
    """Open the releases of a series before its last one, by the private halves in some folders; the latest first.

    All releases of a series have one key. What left is made again from it, so that the public halves are not needed.
    """
    if last.key is None or last.number == 1:
        return ()
    folders = dict.fromkeys(path.resolve() for path in private)
    halves = {bundle: folder for folder in folders for bundle in private_bundles(folder)}
    found = [
        _inner_masking(private_half(folder, bundle))
        for bundle, folder in halves.items()
        if _key_text(folder / bundle / KEY) == last.key.secret.hex()
    ]
    series = last.truth.schema.series
    before = [one for one in found if one.number < last.number and one.truth.schema.series == series]
    return tuple(sorted(before, key=lambda one: -one.number))


def _key_text(path: Path) -> str:
    return path.read_text(encoding="ascii").strip() if path.exists() else ""


def _inner_masking(folder: Path) -> Masking:
    """Open a masking from its private half; what left of it is made again from the key."""
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    truth, masked = (_stored_table(folder, name) for name in ("truth", "masked"))
    swapping = _read_swapping(folder / SWAPPING)
    return Masking(
        truth,
        masked,
        NoiseCard.read(folder / "card.json"),
        mask=state["mask"],
        key=Key(bytes.fromhex((folder / KEY).read_text(encoding="ascii")), seeded=state["seeded"]),
        number=state["number"],
        revisions=_read_revisions(folder, len(truth)),
        past=_read_past(folder, state),
        kept=None if state["kept"] is None else np.array(state["kept"], np.int64),
        notes=tuple(map(Note.from_dict, state["notes"])),
        swapping=swapping,
        exchange=None if swapping is None else swapping.exchange,
    )


def _read_swapping(path: Path) -> Swapping | None:
    return Swapping.from_json(path.read_text(encoding="utf-8")) if path.exists() else None


def _stored_table(folder: Path, name: str) -> Table:
    import pyarrow.parquet as pq

    data = pq.read_table(folder / f"{name}.parquet")
    statuses = pq.read_table(folder / f"{name}.status.parquet")
    closed = {column: np.array(statuses.column(column), np.uint8) for column in statuses.column_names}
    return Table(Schema.read(folder / f"{name}.schema.toml"), data, closed, Source("parquet"))


def _read_revisions(folder: Path, count: int) -> Revisions:
    revisions: dict[str, Any] = {}
    for column, record, noise in _rows(folder / "revisions.parquet"):
        tags = revisions.setdefault(column, np.zeros((count, 2), np.uint64))
        tags[record] = np.frombuffer(noise, np.uint64)
    return revisions


def _read_past(folder: Path, state: Any) -> Past:
    cells: dict[str, dict[bytes, tuple[bytes, bytes]]] = {}
    for column, record, value, noise in _rows(folder / "past.parquet"):
        cells.setdefault(column, {})[record] = (value, noise)
    originals: dict[str, dict[bytes, bytes]] = {}
    for column, record, value in _rows(folder / "originals.parquet"):
        originals.setdefault(column, {})[record] = value
    return Past(cells, originals, NoiseCard.read(folder / "past.card.json"), tuple(state["clear"]))


def _rows(path: Path) -> Iterator[tuple[Any, ...]]:
    import pyarrow.parquet as pq

    return zip(*(column.to_pylist() for column in pq.read_table(path).columns), strict=True)


def _order(folder: Path, truth: Table, released: Table) -> Any:
    """Read the links back: for each released record its number in the truth."""
    import pyarrow as pa
    import pyarrow.csv as csv

    text = {name: pa.string() for name in ("truth_id", "released_id")}
    links = csv.read_csv(
        folder / "links.csv",
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(column_types=text, strings_can_be_null=False),
    )
    if released.ids is not None and not links.column("released_id").combine_chunks().equals(released.ids):
        raise BadBundle("the links belong to another release: its ids are not those of the data file")
    there = links.column("truth_id").combine_chunks()
    if truth.ids is not None:
        return pair_by_id(there, truth.ids, "truth_id")
    return there.cast(pa.int64()).to_numpy() - 1
