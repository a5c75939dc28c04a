"""Maskings and releases on disk: what goes into the public and the private half, and how they are read back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..errors import BadBundle, BadPlan
from ..io import FORMATS, read, write
from ..io.bundle import private_half, verify_bundle, write_bundle, write_halves
from ..keystream import Key
from ..schema import Schema
from ..table import Source, Table
from .codebook import codebook
from .plans import plan_data
from .results import Masking, Release, pair_by_id

CARD, SCHEMA, CODEBOOK = "card.json", "schema.toml", "codebook.md"
ENDINGS = {"csv": "csv", "parquet": "parquet", "arrow": "arrow", "sav": "sav", "dta": "dta", "xpt": "xpt"}

Writer = Callable[[Path], None]


def data_name(release: Release, format: str | None) -> str:
    """Return the name of the data file: in the source's format (Parquet for frames) or the chosen one."""
    kind = format or ENDINGS.get(release.table.source.kind, "parquet")
    if kind.lower() not in FORMATS:
        raise BadPlan(f"the format {kind!r} is not one of {', '.join(sorted(ENDINGS))}")
    return f"data.{kind.lower()}"


def public_files(release: Release, format: str | None) -> dict[str, Writer]:
    """Return the writers of the public half; the card is written last because it carries the data's hash."""
    data = data_name(release, format)

    def write_card(path: Path) -> None:
        digest = hashlib.sha256((path.parent / data).read_bytes()).hexdigest()
        path.write_text(replace(release.card.public(), data_sha256=digest).to_json(), encoding="utf-8")

    return {
        data: lambda path: write(release.table, path),
        SCHEMA: lambda path: _text(path, release.table.schema.to_toml()),
        CODEBOOK: lambda path: _text(path, codebook(release)),
        CARD: write_card,
    }


def _text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def write_release(release: Release, path: Path, format: str | None) -> str:
    """Write the public half alone."""
    return write_bundle(path, public_files(release, format), extra={"half": "public"})


def write_masking(masking: Masking, public: Path, private: Path, format: str | None) -> str:
    """Write both halves: private first, then the public one by one atomic exchange."""
    if masking.key is None:
        raise BadPlan("this masking was made elsewhere: only its Release can be written")
    return write_halves(
        public,
        private,
        public_files(masking.release, format),
        private_files(masking),
        extra={"half": "public"},
    )


def private_files(masking: Masking) -> dict[str, Writer]:
    """Return the writers of the private half: everything needed to open the masking again."""
    assert masking.key is not None
    key = masking.key
    state = {
        "number": masking.number,
        "seeded": key.seeded,
        "mask": plan_data(masking.mask),
        "notes": list(masking.notes),
        "revisions": [] if masking.revisions is None else _sparse(masking.revisions),
        "kept": None if masking.kept is None else masking.kept.tolist(),
    }
    return {
        "key.hex": lambda path: _text(path, key.secret.hex() + "\n"),
        "links.csv": lambda path: _write_links(masking, path),
        "truth.parquet": lambda path: write(masking.truth, path),
        "truth.schema.toml": lambda path: _text(path, masking.truth.schema.to_toml()),
        "masked.parquet": lambda path: write(masking.masked, path),
        "masked.schema.toml": lambda path: _text(path, masking.masked.schema.to_toml()),
        "card.json": lambda path: _text(path, masking.card.to_json()),
        "state.json": lambda path: _text(path, json.dumps(state, indent=1)),
    }


def _sparse(revisions: Any) -> list[list[int]]:
    return [[int(i), int(revisions[i])] for i in np.flatnonzero(revisions)]


def _write_links(masking: Masking, path: Path) -> None:
    import pyarrow.csv as csv

    csv.write_csv(masking.links, path)


def read_release(path: str | Path, *, card: NoiseCard | str | Path | None = None) -> Release:
    """Read a public bundle, refusing damaged, foreign and newer ones with the reason."""
    folder = Path(path)
    manifest = verify_bundle(folder)
    if manifest.extra.get("half") == "private":
        raise BadBundle(f"{str(folder)!r} is the private half of a release, not the release")
    data = [name for name in manifest.files if name.startswith("data.")]
    if len(data) != 1:
        raise BadBundle(f"{str(folder)!r} has no data file")
    given = card if isinstance(card, NoiseCard) else NoiseCard.read(card or folder / CARD)
    if given.data_sha256 and given.data_sha256 != manifest.files[data[0]]["sha256"]:
        raise BadBundle("the card belongs to another release: its hash is not that of the data file")
    table = read(folder / data[0], Schema.read(folder / SCHEMA))
    return Release(table, given)


def read_masking(public: Path, private: Path) -> Masking:
    """Open a masking from both halves."""
    release = read_release(public)
    folder = private_half(private, verify_bundle(public).bundle)
    state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
    truth, masked = (_stored(folder, name) for name in ("truth", "masked"))
    revisions = np.zeros(len(truth), np.int32)
    for record, revision in state["revisions"]:
        revisions[record] = revision
    kept = None if state["kept"] is None else np.array(state["kept"], np.int64)
    key = Key(bytes.fromhex((folder / "key.hex").read_text(encoding="ascii")), seeded=state["seeded"])
    order = _order(folder, truth, release.table)
    return Masking(
        truth,
        masked,
        NoiseCard.read(folder / "card.json"),
        mask=state["mask"],
        key=key,
        number=state["number"],
        revisions=revisions,
        kept=kept,
        notes=tuple(state["notes"]),
        given=(release, order),
    )


def _stored(folder: Path, name: str) -> Table:
    table = read(folder / f"{name}.parquet", Schema.read(folder / f"{name}.schema.toml"))
    return replace(table, source=Source("parquet", table.source.types))


def _order(folder: Path, truth: Table, released: Table) -> Any:
    """Read the links back: for each released record its number in the truth."""
    import pyarrow as pa

    links = read(folder / "links.csv", Schema.from_dict(_LINKS))
    if truth.ids is not None:
        return pair_by_id(links.array("truth_id"), truth.ids, "truth_id")
    return links.array("truth_id").cast(pa.int64()).to_numpy() - 1


_LINKS = {"columns": {"truth_id": {"kind": "text"}, "released_id": {"kind": "text"}}}
