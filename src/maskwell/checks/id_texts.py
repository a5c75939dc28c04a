"""Codes that are texts of true ids or of numbers of records: spellings, encodings, and digests of many forms.

Forms are the text as it is, filled up with zeros, and behind or before common words. Of each form, digests (one of
another too), checksums and uuids are held against codes: as a part of their hexadecimal, base 32, 36, 58, 62 or 64
digits or decimals, as their remainder for any number (the greatest common divisor of a few differences), and by rank,
which sees what rises with them. The plain text, and digests of it with and without a line's end, are compared in
all records, other forms in 64 at first: of what holds for fewer than a tenth of the records they may see nothing.
"""

from __future__ import annotations

import base64
import hashlib
import random
import re
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import gcd

import numpy as np

from .id_arithmetic import is_beyond_chance
from .id_readings import Integers, Relation, rank_readings, readings, without_frame
from .shuffles import least_hits

SHORTEST = 6  # signs of a part of a digest: one in 17 million is there by chance
FIRST, FEW_HITS = 64, 2  # records in which all forms are tried, and hits from which on all records are
REFERENCES = 6  # records that give the number by which a remainder is taken
SURE, LEAST_CORRELATION = 7.0, 0.4  # standard errors of a rank correlation, of some thousand that are tried
TRIES = 20_000  # forms, digests, sources and readings, at most
SURE_PART = 0.01  # of the records that are a part of a digest, at least
PARTS = slice(None), slice(None, 8), slice(None, 4), slice(-8, None)  # that are taken for numbers
WIDTHS = (*range(4, 13), 16)  # with zeros

DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")
TWICE = (
    ("md5", "md5"),
    ("sha1", "sha1"),
    ("sha256", "sha256"),
    ("sha1", "md5"),
    ("md5", "sha1"),
    ("sha256", "md5"),
)
FORMS = (
    *("{}\n", "{}\r\n", "{} ", " {}", "{}.0", '"{}"', "'{}'", "b'{}'"),
    *(word + sign + "{}" for word in ("ID", "id", "Id", "") for sign in ("", "_", "-", ":") if word + sign),
    *("{}_", "{}-", "{}_id", "{}ID", "{}salt", "salt{}", "record{}", "R{}", "P{}", "#{}"),
)
NAMESPACES = {
    "": uuid.NAMESPACE_DNS,
    " (URL)": uuid.NAMESPACE_URL,
    " (OID)": uuid.NAMESPACE_OID,
    " (X500)": uuid.NAMESPACE_X500,
}


def _digest(label: str, text: bytes) -> bytes:
    return hashlib.new(label, text, usedforsecurity=False).digest()


def _digest_twice(outer: str, inner: str, text: bytes) -> bytes:
    return _digest(outer, _digest(inner, text).hex().encode())


def _fnv(bits: int, start: int, prime: int, xor_first: bool, text: bytes) -> bytes:
    value = start
    for byte in text:
        value = (value ^ byte) * prime if xor_first else value * prime ^ byte
        value &= (1 << bits) - 1
    return value.to_bytes(bits // 8)


def _polynomial(factor: int, start: int, text: bytes) -> bytes:
    """Return Bernstein's hash (factor 33) or Java's (31), of 32 bits."""
    value = start
    for byte in text:
        value = (value * factor + byte) & 0xFFFFFFFF
    return value.to_bytes(4)


Hash = Callable[[bytes], bytes]
CHECKSUMS: dict[str, Hash] = {
    "crc32": lambda text: zlib.crc32(text).to_bytes(4),
    "adler32": lambda text: zlib.adler32(text).to_bytes(4),
    "fnv1a (32 bits)": partial(_fnv, 32, 0x811C9DC5, 0x01000193, True),
    "fnv1a (64 bits)": partial(_fnv, 64, 0xCBF29CE484222325, 0x100000001B3, True),
    "fnv1 (32 bits)": partial(_fnv, 32, 0x811C9DC5, 0x01000193, False),
    "djb2": partial(_polynomial, 33, 5381),
    "Java's hashCode": partial(_polynomial, 31, 0),
}
HASHES: dict[str, Hash] = {
    **{label: partial(_digest, label) for label in DIGESTS},
    **{f"{outer} of {inner}": partial(_digest_twice, outer, inner) for outer, inner in TWICE},
    "sha256 of sha256's bytes": lambda text: _digest("sha256", _digest("sha256", text)),
    **CHECKSUMS,
    **{
        f"a uuid{label}": lambda text, space=space: uuid.uuid5(space, text.decode()).bytes  # type: ignore[misc]
        for label, space in NAMESPACES.items()
    },
    **{
        f"a uuid (md5{label})": lambda text, space=space: uuid.uuid3(space, text.decode()).bytes  # type: ignore[misc]
        for label, space in NAMESPACES.items()
    },
}
SPELLINGS: dict[str, Callable[[str], str]] = {
    "the id itself": str,
    "the id read backwards": lambda text: text[::-1],
    "base64 of the id": lambda text: base64.b64encode(text.encode()).decode().rstrip("="),
    "base32 of the id": lambda text: base64.b32encode(text.encode()).decode().rstrip("="),
    "the id in hexadecimal bytes": lambda text: text.encode().hex(),
    "a uuid of the id": lambda text: uuid.uuid5(uuid.NAMESPACE_DNS, text).hex,
    "a uuid of the id (URL)": lambda text: uuid.uuid5(uuid.NAMESPACE_URL, text).hex,
    "a uuid of the id (OID)": lambda text: uuid.uuid5(uuid.NAMESPACE_OID, text).hex,
    "a uuid of the id (md5)": lambda text: uuid.uuid3(uuid.NAMESPACE_DNS, text).hex,
    "crc32 of the id": lambda text: f"{zlib.crc32(text.encode()):08x}",
    "crc32 of the id, in digits": lambda text: str(zlib.crc32(text.encode())),
    "adler32 of the id": lambda text: f"{zlib.adler32(text.encode()):08x}",
}


def plain_texts(cores: list[str], texts: list[str]) -> Iterator[tuple[str, int]]:
    """Count the codes that are a text of their record, but for what all codes or all texts begin and end with."""
    for how, spelling in SPELLINGS.items():
        made = [spelling(text).lower() for text in texts]
        each = zip(cores, made, without_frame(made), strict=True)
        yield how, sum(_agrees(core, text) or (core == part != "") for core, text, part in each)
    encodings = encodings_of(cores)
    lines = [f"{text}\n" for text in texts]
    for label in DIGESTS if encodings else ():
        yield f"{label} of the id", _parts(cores, texts, HASHES[label], encodings)
        yield f"{label} of the id and a line's end", _parts(cores, lines, HASHES[label], encodings)


def _agrees(core: str, text: str) -> bool:
    """Whether a code is a text, or long parts of them are, but for what all codes have in common."""
    core = core.replace("-", "").rstrip("=")
    is_long = min(len(core), len(text)) >= max(SHORTEST, len(text) // 2)
    return bool(core) and (core == text or (is_long and (core in text or text in core)))


Encoding = Callable[[bytes], tuple[str, ...]]


def encodings_of(cores: Sequence[str]) -> tuple[Encoding, ...]:
    """Return the encodings of digests whose parts codes may be, by their signs."""
    long = [core for core in map(_bare, cores) if len(core) >= SHORTEST]
    is_hexadecimal = [bool(re.fullmatch("[0-9a-f]+", core)) for core in long]
    found: list[Encoding] = [_hexadecimal] if any(is_hexadecimal) else []
    if not all(is_hexadecimal):
        found.append(_letters)
    if any(core.isdigit() for core in long):
        found.append(_decimals)
    return tuple(found)


def _bare(core: str) -> str:
    return core.replace("-", "").rstrip("=")


def _hexadecimal(digest: bytes) -> tuple[str, ...]:
    return (digest.hex(),)


def _letters(digest: bytes) -> tuple[str, ...]:
    """Return a digest in base 64 and 32; of bases that are no powers of 2 see remainders and ranks."""
    spelled = base64.b64encode(digest).decode().lower()
    return spelled, spelled.replace("+", "").replace("/", "_"), base64.b32encode(digest).decode().lower()


def _decimals(digest: bytes) -> tuple[str, ...]:
    """Return a digest as numbers, of which codes may be the beginning."""
    return tuple(str(int.from_bytes(part)) for part in (digest, digest[:8], digest[:4]))


def _parts(cores: Sequence[str], texts: Sequence[str], digest: Hash, encodings: Sequence[Encoding]) -> int:
    """Count the codes that are a part of the digest of their record, in some encoding."""
    pairs = zip(map(_bare, cores), texts, strict=True)
    return sum(is_part(core, digest(text.encode()), encodings) for core, text in pairs)


def is_part(core: str, digest: bytes, encodings: Sequence[Encoding]) -> bool:
    """Whether a code is a part of a digest, in some encoding; of decimals the beginning or the end."""
    if len(core) < SHORTEST:
        return False
    for encoding in encodings:
        for spelled in encoding(digest):
            if core in spelled and (
                encoding is not _decimals or spelled.startswith(core) or spelled.endswith(core)
            ):
                return True
    return False


def forms_of(texts: Sequence[str]) -> dict[str, Callable[[str], str]]:
    """Return the forms in which a program may hash a text."""
    longest = max(map(len, texts), default=0)
    forms: dict[str, Callable[[str], str]] = {"the id": str}
    if all(text.isdigit() for text in texts):
        for width in WIDTHS:
            if width > min(map(len, texts), default=0) and width <= longest + 12:
                forms[f"the id with zeros to {width} signs"] = partial(_with_zeros, width)
        forms["the id without zeros"] = lambda text: text.lstrip("0")
    else:
        forms["the id in small letters"], forms["the id in capitals"] = str.lower, str.upper
        forms["the digits of the id"] = lambda text: re.sub(r"\D", "", text)
    forms["the id read backwards"] = lambda text: text[::-1]
    return forms | {f"the id as {form!r}": form.format for form in FORMS}


def _with_zeros(width: int, text: str) -> str:
    return text.zfill(width)


def digests_of_forms(codes: Sequence[str], cores: list[str], texts: list[str]) -> Iterator[Relation]:
    """Yield the digests of forms of the id that codes are a part or a remainder of, or rise with."""
    count = len(codes)
    picked = random.Random(4).sample(range(count), min(FIRST, count))  # noqa: S311
    few, some = [_bare(cores[i]) for i in picked], [texts[i] for i in picked]
    encodings, labels, words = encodings_of(few), list[str](), list[list[bytes]]()
    numbers = [[one[i] for i in picked] for _, one in readings(codes)]
    for form, spelled in forms_of(texts).items():
        made = [spelled(text).encode() for text in some]
        for label, digest in HASHES.items():
            found = [digest(text) for text in made]
            how = f"{label} of {form}"
            if label not in CHECKSUMS:  # some of which rise with the id
                labels.append(how)
                words.append([one[:8] for one in found])
            if sum(is_part(*pair, encodings) for pair in zip(few, found, strict=True)) >= FEW_HITS:
                hits = _parts(cores, [spelled(text) for text in texts], digest, encodings)
                if hits >= max(least_hits(TRIES * count), SURE_PART * count):
                    yield Relation(how, hits / count)
            yield from _remainders(how, found, numbers)
    yield from _rises(labels, words, rank_readings([codes[i] for i in picked]))


def _remainders(
    how: str, digests: Sequence[bytes], numbers: Sequence[Sequence[int | None]]
) -> Iterator[Relation]:
    """Yield the number by which the remainder of digests gives codes; 0 where they are the codes."""
    for part in PARTS:
        for codes in numbers:
            modulus = gcd(*_off(digests[:REFERENCES], codes[:REFERENCES], part))
            if modulus == 0 or modulus > max(code or 0 for code in codes):
                off = _off(digests, codes, part)
                hits = sum(not (one % modulus if modulus else one) for one in off)
                if is_beyond_chance(hits - REFERENCES, len(codes)):
                    yield Relation(
                        f"{how}, modulo {modulus}" if modulus else f"{how}, as a number", hits / len(codes)
                    )


def _off(digests: Sequence[bytes], codes: Sequence[int | None], part: slice) -> list[int]:
    pairs = zip(digests, codes, strict=False)
    return [int.from_bytes(digest[part]) - code for digest, code in pairs if code is not None]


def _rises(labels: list[str], words: list[list[bytes]], rankings: Sequence[Integers]) -> Iterator[Relation]:
    """Yield that codes rise with digests: by equal ranks, or a rank correlation beyond chance."""
    numbers = np.array([[int.from_bytes(one) for one in row] for row in words], np.uint64)
    own = np.argsort(np.argsort(numbers, axis=1, kind="stable"), axis=1)
    for ranking in rankings:
        hits = (own == ranking).sum(axis=1)
        sizes = (
            (own - own.mean(axis=1, keepdims=True))
            @ (ranking - ranking.mean())
            / (len(ranking) * ranking.var())
        )
        beyond = (hits >= least_hits(TRIES)) | (
            sizes > max(LEAST_CORRELATION, SURE / np.sqrt(len(ranking) - 1))
        )
        for i in np.flatnonzero(beyond).tolist():
            yield Relation(f"the rank of {labels[i]}", max(float(sizes[i]), int(hits[i]) / len(ranking)))
