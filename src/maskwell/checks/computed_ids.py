"""Released ids that are computed from true ones, or from the place in the file.

Codes are held against texts f(t) of the true id (or number) t of their record: spellings, encodings, uuids of names and
digests, whole or in part, whatever stands before or behind them in every code; and against numbers a: one difference,
sum, exclusive or, or ratio for many records, one step from each record to the next, or a rank correlation.

Where codes have nothing to do with the records, a relation that leads from each record to one code at most and back
holds for c given records with a probability of at most 1 / (m)_c, so that any of the relations a + d, over all d
together, holds for c records or more with a probability of at most m / c!, and any of k texts with k / c!. Own
derivation, by the union bound. Called by `clear_records`.
"""

from __future__ import annotations

import base64
import hashlib
import re
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any

import numpy as np

from ..arrow_buffers import from_numpy, take_texts
from .evidence import Evidence
from .relations import correlation, shared_ranks
from .shuffles import least_hits

MOST = 3_000  # records that are looked at: of a relation in 1% of them thirty show
NEARLY = 0.9  # of the codes must be different ones
FEWEST = 20  # records below which codes say nothing
SHARE, LEAST = 0.01, 10  # of the records that a relation must give, and how many at least
SHORTEST = 6  # signs of a part of a digest: one in 17 million is there by chance
CHANCE_TRIES = 500  # relations and readings of all columns, at most
SURE = 6.0  # standard errors of a rank correlation, of some dozen that are tried: 1e-7 by chance

DIGESTS = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "sha3_256", "blake2b", "blake2s")
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


@dataclass(frozen=True, slots=True)
class Relation:
    """How codes come from records, and of which share of them."""

    how: str
    share: float


def computed_columns(evidence: Evidence) -> dict[str, Relation]:
    """Return the released columns that are computed from the true ids or from places in the file."""
    picked = evidence.sample(purpose=(9,), most=MOST)
    if len(picked) < FEWEST:
        return {}
    by_file = np.argsort(evidence.masking.order)  # places in the release, in the order of the file
    where, run = by_file[picked], by_file[picked[0] : picked[0] + MOST]
    sources = _sources(evidence, evidence.masking.order[where])
    table, found = evidence.masking.release.table, dict[str, Relation]()
    for name in _coded_columns(evidence):
        codes, following = _texts(table, name, where), _texts(table, name, run)
        if len(set(codes) - {""}) > NEARLY * len(codes):
            is_id = "id" in table.schema[name].roles
            relation = computed_from(codes, sources, following, in_order=is_id)
            found |= {} if relation is None else {name: relation}
    return found


def _sources(evidence: Evidence, rows: Any) -> dict[str, list[str]]:
    """Return what codes may be computed from: the true id, and the number of the record."""
    truth = evidence.masking.truth
    sources = {"number in the file": [str(row) for row in rows.tolist()]}
    sources["number in the file, from 1 on"] = [str(row + 1) for row in rows.tolist()]
    if truth.ids is not None:
        sources["id"] = [str(text) for text in take_texts(truth.ids, rows).to_pylist()]
    return sources


def _coded_columns(evidence: Evidence) -> list[str]:
    """Return the released id, texts, and numbers that the truth does not have: what a program may have computed.

    The ids that a release of our own has come from its key.
    """
    masking = evidence.masking
    truth, released = masking.truth.schema, masking.release.table
    return [
        column.name
        for column in released.schema.columns
        if column.name in released.names
        and ("id" not in column.roles or masking.given is not None)
        and "group" not in column.roles
        and (column.kind == "text" or "id" in column.roles or (column.is_number and column.name not in truth))
    ]


def _texts(table: Any, name: str, at: Any) -> list[str]:
    return [_text(value) for value in table.array(name).take(from_numpy(at)).to_pylist()]


def _text(value: Any) -> str:
    if value is None:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def computed_from(
    codes: Sequence[str],
    sources: dict[str, list[str]],
    following: Sequence[str] = (),
    *,
    in_order: bool = True,
) -> Relation | None:
    """Return how codes come from the records; nothing where chance explains them.

    `following` are codes of records that follow one another in the file. A rank correlation counts `in_order` alone:
    ids have none, whatever the file is sorted by.
    """
    needed = max(SHARE * len(codes), LEAST, least_hits(CHANCE_TRIES * len(codes)))
    cores = _without_frame([code.lower() for code in codes])
    hits = [
        (count, how.replace("the id", f"the {what}"))
        for what, texts in sources.items()
        for how, count in (*_by_text(cores, texts), *_by_number(codes, cores, texts))
    ]
    shares = [(count / len(codes), how) for count, how in hits if count >= needed]
    for reading, numbers in _readings(following):
        count = _most(
            after - before for before, after in pairwise(numbers) if before is not None and after is not None
        )
        if count >= max(SHARE * len(following), needed):
            shares.append((count / len(following), f"one step from each record to the next{reading}"))
    if shares:
        share, how = max(shares, key=lambda one: one[0])
        return Relation(how, share)
    return _in_order(codes, sources) if in_order else None


def _without_frame(codes: list[str]) -> list[str]:
    """Take away what all codes begin and end with."""
    begin = _common(codes)
    end = _common([code[begin:][::-1] for code in codes if code])
    return [code[begin : len(code) - end] for code in codes]


def _common(texts: list[str]) -> int:
    """Return how many signs all texts begin with: those of the first and the last by the alphabet."""
    there = [text for text in texts if text] or [""]
    return sum(1 for _ in takewhile(lambda two: two[0] == two[1], zip(min(there), max(there), strict=False)))


def _by_text(cores: list[str], texts: list[str]) -> Iterator[tuple[str, int]]:
    """Count the codes that are a text of their record, but for what all codes or all texts begin and end with."""
    for how, spelling in SPELLINGS.items():
        made = [spelling(text).lower() for text in texts]
        each = zip(cores, made, _without_frame(made), strict=True)
        yield how, sum(_agrees(core, text) or (core == part != "") for core, text, part in each)
    for label in DIGESTS:
        for variant, end in (("", ""), (" and a line's end", "\n")):
            digests = (_digest(label, text + end) for text in texts)
            hits = sum(_is_part(core, digest) for core, digest in zip(cores, digests, strict=True))
            yield f"{label} of the id{variant}", hits


def _agrees(core: str, text: str) -> bool:
    """Whether a code is a text, or long parts of them are, but for what all codes have in common."""
    core = core.replace("-", "").rstrip("=")
    is_long = min(len(core), len(text)) >= max(SHORTEST, len(text) // 2)
    return bool(core) and (core == text or (is_long and (core in text or text in core)))


def _digest(label: str, text: str) -> bytes:
    return hashlib.new(label, text.encode(), usedforsecurity=False).digest()


def _is_part(core: str, digest: bytes) -> bool:
    """Whether a code is a part of a digest: in hexadecimal, in base64 or in digits."""
    core = core.replace("-", "").rstrip("=")
    if len(core) < SHORTEST:
        return False
    spelled = digest.hex()
    if core in spelled or core in base64.b64encode(digest).decode().lower():
        return True
    if not core.isdigit():
        return False
    whole = (int(spelled, 16), int(spelled[:16], 16), int(spelled[:8], 16))
    return any(str(number).endswith(core) or str(number).startswith(core) for number in whole)


def _by_number(codes: Sequence[str], cores: list[str], texts: list[str]) -> Iterator[tuple[str, int]]:
    """Count the codes that one difference, sum, exclusive or, or ratio leads to from the numbers of their records."""
    a = _numbers(texts)
    if a is None:
        return
    for reading, b in (*_readings(codes), *_readings(cores)):
        known = [(x, y) for x, y in zip(a, b, strict=True) if x is not None and y is not None]
        yield f"the id plus a constant{reading}", _most(y - x for x, y in known)
        yield f"a constant minus the id{reading}", _most(y + x for x, y in known)
        yield f"the id, exclusive or a constant{reading}", _most(y ^ x for x, y in known)
        yield f"the id times a constant{reading}", _most(y / x for x, y in known if x and y)


def _readings(codes: Sequence[str]) -> Iterator[tuple[str, list[int | None]]]:
    """Read codes as numbers: by all of their digits, and to the bases 16 and 36."""
    numbers = _numbers(codes)
    if numbers is not None:
        yield "", numbers
    plain = [code.lower().replace("-", "") for code in codes]
    for base, pattern, letters in ((16, "(0x)?[0-9a-f]{1,40}", "[a-f]"), (36, "[0-9a-z]{1,40}", "[g-z]")):
        fits = [bool(re.fullmatch(pattern, code)) for code in plain]
        if sum(fits) > NEARLY * len(plain) and any(re.search(letters, code) for code in plain):
            yield (
                f" (to the base {base})",
                [int(code, base) if fit else None for code, fit in zip(plain, fits, strict=True)],
            )


def _numbers(texts: Sequence[str]) -> list[int | None] | None:
    """Return the numbers that the digits of texts make; nothing where they do not tell the texts apart."""
    digits = [re.sub(r"\D", "", text.removesuffix(".0")) for text in texts]
    numbers = [int(one) if one and len(one) < 40 else None for one in digits]
    return numbers if len(set(numbers) - {None}) > NEARLY * len(texts) else None


def _most(values: Iterator[Any]) -> int:
    """Return how often the most common value occurs."""
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return max(counts.values(), default=0)


def _in_order(codes: Sequence[str], sources: dict[str, list[str]]) -> Relation | None:
    """Return along what of the records codes rise or fall, beyond chance."""
    best = Relation("", 0.0)
    for what, texts in sources.items():
        a = _numbers(texts)
        for _, b in () if a is None else _readings(codes):
            pairs = [(x, y) for x, y in zip(a or (), b, strict=True) if x is not None and y is not None]
            if len(pairs) >= FEWEST:
                size = abs(correlation(*map(shared_ranks, np.array(pairs, np.float64).T)))
                if size > max(best.share, 0.1, SURE / (len(pairs) - 1) ** 0.5):
                    best = Relation(f"in the order of the {what}", size)
    return best if best.share else None
