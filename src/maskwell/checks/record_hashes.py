"""Noise that is a hash of the record: uniforms made of digests of its id or of a true value, as programs write them.

With h = md5, sha1, sha256 or crc32 of a text, u = (first or last 32 bits of h) / 2^32 or (h mod 10^6) / 10^6, and
noise Phi^-1(u): who knows the text has the noise. Texts are an id or a whole number, alone and joined with the name of
the noised column. The same 32 bits may seed a generator for each record. A secret in the text (a keyed hash) makes it
sound, and nobody can see the difference.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..table import Floats, Table

Integers = npt.NDArray[np.int64]

HASHES: dict[str, Callable[[bytes], bytes]] = {
    "md5": lambda text: hashlib.md5(text, usedforsecurity=False).digest(),
    "sha1": lambda text: hashlib.sha1(text, usedforsecurity=False).digest(),
    "sha256": lambda text: hashlib.sha256(text).digest(),
    "crc32": lambda text: zlib.crc32(text).to_bytes(4, "big"),
}
JOINED = ("{text}{name}", "{text}_{name}", "{text}:{name}", "{name}{text}", "{name}_{text}", "{name}:{text}")
WORD, MILLION = 2**32, 10**6


def record_texts(truth: Table, rows: Integers, most: int) -> Iterator[tuple[str, list[str]]]:
    """Return what a program may hash for each record: its number, its id, texts and whole numbers of the truth."""
    yield "its number", [str(row) for row in rows.tolist()]
    for column in truth.schema.columns[:most]:
        if column.is_number:
            values = truth.floats(column.name)[rows]
            whole = not (np.nan_to_num(values) % 1).any()
            texts = [str(int(one)) if whole and one == one else str(one) for one in values.tolist()]
        else:
            texts = [str(one) for one in truth.array(column.name).take(rows).to_pylist()]
        if len(set(texts)) > len(texts) // 4:
            yield column.name, texts


def hash_normals(texts: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, Floats]]:
    """Return normal numbers by the digests of texts, alone and joined with column names: draws x records."""
    from scipy.special import ndtri

    forms = ["{text}", *(form.replace("{name}", name) for form in JOINED for name in names)]
    for label, digest in HASHES.items():
        rows = list[Integers]()
        for form in forms:
            found = [digest(form.replace("{text}", text).encode()) for text in texts]
            rows += [_words(found, slice(None, 4)), _words(found, slice(-4, None))]
            rows.append(np.array([int.from_bytes(one, "big") % MILLION * WORD // MILLION for one in found]))
        yield label, np.asarray(ndtri((np.array(rows) + 0.5) / WORD))


def hash_seeds(texts: Sequence[str]) -> Iterator[tuple[str, Integers]]:
    """Return the 32 bits of digests of texts that programs seed generators with."""
    for label, digest in HASHES.items():
        found = [digest(text.encode()) for text in texts]
        yield f"the first bits of {label}", _words(found, slice(None, 4))
        if label != "crc32":  # it has no others
            yield f"the last bits of {label}", _words(found, slice(-4, None))


def _words(digests: Sequence[bytes], part: slice) -> Integers:
    return np.array([int.from_bytes(one[part], "big") for one in digests], np.int64)
