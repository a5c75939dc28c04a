"""Keys and keyed draws: the noise of a record depends on the key, its id, its column and its stage alone.

A 256-bit key gives one subkey for each series, purpose, stage and column (HKDF-SHA256). AES-256 of a record's
128-bit id under the subkey gives two 64-bit words, and an inverse distribution function turns a word into
a draw. Nothing depends on the order of records, on chunks, or on what else is drawn.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .arrow_buffers import letters_of
from .errors import BadInput, BadPlan

if TYPE_CHECKING:
    import pyarrow as pa

VERSION = "1"
PURPOSES = (
    "noise",
    "component",
    "shuffle",
    "ids",
    "sample",
    "swap",
    "ties",
    "calibration",
    "history",
    "error",
)

Blocks = npt.NDArray[np.uint8]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

_SHORT_ID, _LONG_ID, _NUMBERED = 15, 0xFF, 0xFE


@dataclass(frozen=True, slots=True)
class Key:
    """A 256-bit secret. `seeded` keys come from a small number and are for studies only."""

    secret: bytes = field(repr=False)
    seeded: bool = False

    def __post_init__(self) -> None:
        if len(self.secret) != 32:
            raise BadPlan("a key has 256 bits (32 bytes); take one with Key.from_os()")

    @classmethod
    def from_os(cls) -> Key:
        """Take 256 bits from the operating system: the key of a real release."""
        return cls(os.urandom(32))

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """Make a key that anyone can make again: for studies, never for a release."""
        return cls(hashlib.sha256(b"maskwell study seed" + str(int(seed)).encode()).digest(), seeded=True)

    def subkey(self, *, series: str, purpose: str, stage: str, column: str) -> bytes:
        """Return the 256-bit subkey for one use (HKDF-SHA256, every field length-prefixed)."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        if purpose not in PURPOSES:
            raise ValueError(f"no such purpose: {purpose}")
        info = b"".join(
            _length_prefixed_bytes(part) for part in ("maskwell", VERSION, series, purpose, stage, column)
        )
        return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(self.secret)

    def fingerprint(self) -> str:
        """Return 16 hex digits that tell whether two keys are the same and nothing else."""
        return hmac.new(self.secret, b"maskwell key fingerprint", hashlib.sha256).hexdigest()[:16]


def _length_prefixed_bytes(text: str) -> bytes:
    encoded = text.encode("utf-8")
    return len(encoded).to_bytes(4, "big") + encoded


def words(subkey: bytes, blocks: Blocks) -> Words:
    """Return two 64-bit words for each record: AES-256 of its 128-bit id."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    out = np.empty((len(blocks) + 1, 2), "<u8")  # the cipher asks for room beyond what it writes
    if len(blocks):
        encryptor = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()  # noqa: S305 (a keyed permutation)
        encryptor.update_into(np.ascontiguousarray(blocks).data.cast("B"), out.data.cast("B"))
    return out[:-1]


def uniforms(word: Words) -> Floats:
    """Turn words into numbers strictly between 0 and 1: the middle of one of 2^52 equal steps, which a double holds."""
    out = (word >> np.uint64(12)).astype(np.float64)
    out += 0.5
    out *= 2.0**-52
    return out


def normals(word: Words) -> Floats:
    """Turn words into standard normal draws by the inverse distribution function."""
    from scipy.special import ndtri

    uniform = uniforms(word)
    return np.asarray(ndtri(uniform, out=uniform))


@dataclass(frozen=True, slots=True)
class Stream:
    """Keyed draws for some records: everything a law needs to draw, and nothing that depends on order.

    `own` has the columns that draw from other blocks than those of the records.
    """

    key: Key = field(repr=False)
    series: str
    stage: str
    blocks: Blocks = field(repr=False)
    own: Mapping[str, Blocks] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.blocks)

    def at(self, part: slice | npt.NDArray[np.int64]) -> Stream:
        """Return the stream of some of the records."""
        own = {column: blocks[part] for column, blocks in self.own.items()}
        return replace(self, blocks=self.blocks[part], own=own)

    def staged(self, stage: str) -> Stream:
        """Return the stream of another stage, which shares no word with this one."""
        return replace(self, stage=stage)

    def words(self, column: str, purpose: str = "noise") -> Words:
        """Return the two words of each record for a column and purpose."""
        subkey = self.key.subkey(series=self.series, purpose=purpose, stage=self.stage, column=column)
        return words(subkey, self.own.get(column, self.blocks))

    def normals(self, column: str) -> Floats:
        """Return one standard normal draw for each record."""
        return normals(self.words(column)[:, 0])

    def uniforms(self, column: str, purpose: str = "noise") -> Floats:
        """Return one uniform draw for each record."""
        return uniforms(self.words(column, purpose)[:, 0])

    def order(self, column: str, purpose: str) -> npt.NDArray[np.int64]:
        """Return a keyed permutation of the records, the same whatever order they come in.

        Two records with one id would have the same noise, and the same words here: they are refused.
        """
        drawn = self.words(column, purpose)
        found, tied = _order(drawn[:, 0])
        if tied:
            found = np.lexsort((drawn[:, 1], drawn[:, 0]))
            if np.any((drawn[found[1:]] == drawn[found[:-1]]).all(axis=1)):
                raise BadInput(
                    "two records have the same id, so they would get the same noise: give each its own"
                )
        return found

    def tags(self, column: str, values: Floats | None = None) -> Words:
        """Return 128 bits for each record that stand for it, or for it and its values, to holders of the key alone.

        One step of AES for the record and one for each value (CBC-MAC; `column` must tell how many they are).
        """
        purpose = "history"
        if values is None:
            return self.staged("record").words(column, purpose)
        tags = self.staged("value").words(column, purpose)
        subkey = self.key.subkey(series=self.series, purpose=purpose, stage="value", column=column)
        for value in np.atleast_2d(np.asarray(values, dtype=np.float64).T):
            tags[:, 0] ^= np.where(np.isnan(value), np.nan, value + 0.0).view(np.uint64)
            tags = words(subkey, tags.view(np.uint8))
        return tags


def _order(word: Words) -> tuple[npt.NDArray[np.int64], bool]:
    """Return the places of words in their order, and whether two words are the same.

    Words are sorted with their places in their lower bits, which is faster than sorting places by words. The few whose
    upper bits agree are then put in order among themselves.
    """
    bits = np.uint64(max(len(word) - 1, 0).bit_length())
    carried = word >> bits << bits
    carried |= np.arange(len(word), dtype=np.uint64)
    carried.sort()
    places = (carried & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int64)
    carried >>= bits
    alike = np.flatnonzero(carried[1:] == carried[:-1])
    at = np.union1d(alike, alike + 1)
    places[at] = places[at][np.argsort(word[places[at]])]
    ranked = word[places[at]]
    return places, bool(np.any(ranked[1:] == ranked[:-1]))


def in_sixteens(tags: Words) -> list[bytes]:
    """Return tags as bytes, to be looked up."""
    whole = tags.tobytes()
    return [whole[i : i + 16] for i in range(0, len(whole), 16)]


def ids_from_numbers(count: int, start: int = 0) -> Blocks:
    """Return the 128-bit ids of records that have no id of their own: their numbers."""
    blocks = np.zeros((count, 16), np.uint8)
    blocks[:, :8] = np.arange(start, start + count, dtype="<u8").view(np.uint8).reshape(count, 8)
    blocks[:, 15] = _NUMBERED
    return blocks


def ids_from_texts(ids: pa.Array[Any]) -> Blocks:
    """Return the 128-bit form of text ids: the bytes themselves up to 15, a hash of longer ones."""
    if ids.null_count:
        raise BadInput("a record has no id: give each record one of its own")
    offsets, letters = letters_of(ids)
    lengths = np.diff(offsets)
    longest = int(lengths.max(initial=0))
    if 0 < longest <= _SHORT_ID and longest == int(lengths.min()):
        blocks = in_blocks(letters[offsets[0] : offsets[-1]].reshape(-1, longest))
    else:
        blocks = np.zeros((len(ids), 16), np.uint8)
        for position in range(min(longest, _SHORT_ID)):
            here = np.flatnonzero((lengths > position) & (lengths <= _SHORT_ID))
            blocks[here, position] = letters[offsets[here] + position]
    blocks[:, 15] = np.minimum(lengths, _SHORT_ID)
    for i in np.flatnonzero(lengths > _SHORT_ID):
        blocks[i, :15] = np.frombuffer(_hash_id(letters[offsets[i] : offsets[i + 1]].tobytes()), np.uint8)
        blocks[i, 15] = _LONG_ID
    return blocks


def in_blocks(letters: npt.NDArray[np.uint8]) -> Blocks:
    """Return records x at most 16 letters as 128 bits for each record, zeros after the letters."""
    return letters.view(f"S{letters.shape[1]}").astype("S16").view(np.uint8)


def _hash_id(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=15, person=b"maskwell id").digest()
