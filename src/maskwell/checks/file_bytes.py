"""What is left in the bytes of the public files: labels that nobody has any more, and strings known to be secret.

Strings are found by a hash of their last eight bytes and compared in full (Karp and Rabin 1987). Called by
`file_checks`.
"""

from __future__ import annotations

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import MaskwellError
from ..io import FORMATS, load
from ..laws import Additive, Classes, Transition
from ..laws.chain import combined_of
from ..schema import Column
from ..table import Table, coded_values
from .evidence import Evidence
from .protocol import CheckFigure
from .short_strings import StringPartition, found_words, words_of

LONG_TEXT, LONG_NUMBER = 8, 10  # letters, or digits, from which on a string is not found by chance
IN_NEW_IDS = 0.01  # of the ids of a release, up to which strings inside them are there by chance
OWN_TEXTS = 0.5  # of the records: a dropped column with more different texts names people

KEY, IDS, GROUPS, DROPPED, LABELS = (
    "spellings of the key",
    "ids",
    "group labels",
    "dropped texts",
    "suppressed labels",
)
NAMING = (IDS, GROUPS, DROPPED)


def known_strings(evidence: Evidence) -> CheckFigure:
    """Count ids, group labels, dropped texts and keys of the truth that stand in a public file."""
    wanted, short, found = _forbidden_strings(evidence), _short(evidence), _found_by_kind(evidence)
    words, passed_over = _found_words(evidence)
    counts = {kind: float(len(found[kind]) + len(words.get(kind, ()))) for kind in (KEY, *NAMING)}
    searched = {
        kind: len(wanted[kind]) + len(short[kind].words) if kind in short else len(wanted[kind])
        for kind in counts
    }
    total, looked = sum(counts.values()), {kind: count for kind, count in searched.items() if count}
    unsearched = [said for kind in NAMING for said in short[kind].said(kind)]
    if passed_over:
        unsearched.append(
            f"{passed_over:,} short ones are words that chance gives as often, and were passed over"
        )
    if total:
        named = ", ".join(
            f"{int(count):,} of {searched[kind]:,} {kind}" for kind, count in counts.items() if count
        )
        said = f"the public files hold {named}: whoever knows one of them has the record"
    elif looked:
        named = ", ".join(f"{count:,} {kind}" for kind, count in looked.items())
        said = f"none of {named} stands in the bytes of a public file"
        if any(short[kind].words for kind in NAMING):
            said += f" (below {LONG_TEXT} letters, {LONG_NUMBER} digits: as a word of texts, categories and documents)"
    else:
        said = "there is no id, group label or key that can be told from chance in the files"
    where = ", ".join(kind for kind, count in counts.items() if count)
    figure = total if looked else float("nan")
    return CheckFigure(figure, "; ".join([said, *unsearched]), where, counts)


def labels_left(evidence: Evidence) -> CheckFigure:
    """Count categories and labels in the release that no released record has and no law speaks of."""
    table, card = evidence.masking.release.table, evidence.masking.release.card
    unused = {
        column.name: float(count)
        for column in table.schema.columns
        if (count := len(_unused_categories(column, table, card.law_of(column.name))))
    }
    in_bytes = len(_found_by_kind(evidence)[LABELS])
    if in_bytes:
        unused["bytes of the files"] = float(in_bytes)
    total, listed = sum(unused.values()), ", ".join(unused)
    said = (
        f"{int(total):,} labels of categories that no released record has are still in the release ({listed}): they "
        "tell what was suppressed"
        if unused
        else "every category and label in the release belongs to some released record, or to a law on the card"
    )
    return CheckFigure(total, said, listed, unused)


def _unused_categories(column: Column, table: Table, law: Any) -> set[str]:
    """Return the categories and labels of a column that do not occur and that no law needs."""
    import pyarrow.compute as pc

    if not column.categories and not column.labels:
        return set()
    status, values = table.status(column.name), pc.unique(table.array(column.name)).to_pylist()
    coded = {str(code) for mark, code in coded_values(column).items() if np.any(status == mark)}
    occurring = {str(value) for value in values if value is not None} | _spoken_of(law, column.name)
    named = {*column.categories, *(code for code, _ in column.labels)} - coded
    return {
        code for code in named if code not in occurring and _plain(code) not in map(_plain, occurring | coded)
    }


def _plain(code: str) -> float | str:
    try:
        return float(code)
    except ValueError:
        return code


def _spoken_of(law: Any, name: str) -> set[str]:
    law = combined_of(law)
    if isinstance(law, Transition):
        return {*law.true, *law.released_as}
    if isinstance(law, Additive) and law.categories:
        return set(law.categories[law.columns.index(name)])
    return set(law.labels) if isinstance(law, Classes) else set()


def _found_by_kind(evidence: Evidence) -> dict[str, set[bytes]]:
    """Return what of the wanted strings stands in the files, searched once for all checks of an audit."""
    return evidence.once("searched", lambda: _search(evidence))


def _search(evidence: Evidence) -> dict[str, set[bytes]]:
    wanted = _forbidden_strings(evidence)
    every = set().union(*wanted.values())
    with _public_folder(evidence) as folder:
        found = _strings_in_folder(folder, every, evidence.masking.release.table)
        if any(short.words for short in _short(evidence).values()):
            evidence.once("words", lambda: words_of(evidence.masking.release.table, folder))
    return {kind: strings & found for kind, strings in wanted.items()}


def _found_words(evidence: Evidence) -> tuple[dict[str, set[str]], int]:
    """Return the short strings that stand among the words of the release, and how many of them are left to chance."""
    _found_by_kind(evidence)
    words = evidence.once("words", set[str])
    each = {kind: found_words(short.words, words) for kind, short in _short(evidence).items()}
    return {kind: found for kind, (found, _) in each.items()}, sum(count for _, count in each.values())


@contextmanager
def _public_folder(evidence: Evidence) -> Iterator[Path]:
    """Give the folder of the public half, written for the time being where it is not yet."""
    if evidence.folder is not None:
        yield evidence.folder
        return
    with TemporaryDirectory() as folder:
        place = Path(folder) / "release"
        evidence.masking.release.write(place)
        yield place


def _strings_in_folder(folder: Path, wanted: set[bytes], released: Table) -> set[bytes]:
    """Return the strings that stand in a file more often than inside longer ids made for the release.

    New ids are drawn by the key: among millions of them some hold ten digits that are an id of the truth by chance.
    """
    found: set[bytes] = set()
    for data in _contents(folder):
        times = found_in(data, wanted - found)
        alone = set(found_in(data, times, alone=True)) if times else set()
        inside = _inside_new_ids(set(times) - alone, released)
        found |= {text for text, count in times.items() if text in alone or count > inside.get(text, 0)}
    return found


def _inside_new_ids(texts: set[bytes], released: Table) -> Mapping[bytes, int]:
    """Count how often texts stand inside longer ids of a release, as far as chance may have it; not as whole ids."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not texts or released.ids is None:
        return {}
    ids, listed = pc.cast(released.ids, pa.binary()).drop_null(), sorted(texts)
    whole = pc.is_in(pa.array(listed, pa.binary()), value_set=ids).to_pylist()
    parts = [text for text, is_whole in zip(listed, whole, strict=True) if not is_whole]
    inside = found_in(b"\n".join(one for one in ids.to_pylist() if one is not None), parts)
    return inside if inside.total() <= IN_NEW_IDS * len(ids) else {}


def _contents(folder: Path) -> Iterator[bytes]:
    """Return the bytes of all public files, and the texts inside those that pack or compress them."""
    for path in sorted(file for file in folder.rglob("*") if file.is_file()):
        yield path.read_bytes()
        kind = FORMATS.get(path.suffix.lower().removeprefix("."))
        if kind not in (None, "csv"):
            yield _texts_of(path, str(kind))


def _texts_of(path: Path, kind: str) -> bytes:
    """Return the texts inside a file that packs them; of one that is no such file after all, nothing."""
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    try:
        if kind == "parquet":
            return _texts(pq.read_table(path))
        if kind == "arrow":  # as it is: our own reader drops values of a dictionary that no record has
            return _texts(feather.read_table(path, memory_map=False))
        raw = load(path)
    except (MaskwellError, pa.ArrowException):
        return b""
    labels = [text for hint in raw.hints.values() for pair in hint.labels.items() for text in pair]
    labels += [hint.description for hint in raw.hints.values()]
    return _texts(raw.data) + "\n".join(labels).encode()


def _texts(table: Any) -> bytes:
    """Return the names, metadata and different values of a table, one a line."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.types as types

    lines: list[str] = list(table.column_names)
    metadata = b"\n".join(part for pair in (table.schema.metadata or {}).items() for part in pair)
    for column in table.columns:
        if types.is_dictionary(column.type):  # with values that no record has
            lines += [str(text) for chunk in column.chunks for text in chunk.dictionary.to_pylist()]
        elif not types.is_floating(column.type) and not types.is_nested(column.type):
            texts: Any = pc.unique(column.cast(pa.string())).drop_null()
            lines += texts.to_pylist()
    return metadata + "\n".join(["", *lines, ""]).encode()


def _forbidden_strings(evidence: Evidence) -> dict[str, set[bytes]]:
    """Return the strings that must not be found, by kind, as far as they are long enough not to be there by chance."""
    return evidence.once("wanted strings", lambda: _collect_forbidden(evidence))


def _collect_forbidden(evidence: Evidence) -> dict[str, set[bytes]]:
    truth, released = evidence.masking.truth, evidence.masking.release.table
    suppressed = set(_suppressed_labels(truth, released, evidence)) - _legitimate(released)
    naming = {
        kind: _encode_texts(filter(_is_long, texts)) for kind, texts in _identifying_strings(evidence).items()
    }
    return {KEY: _keys(evidence), **naming, LABELS: _encode_texts(filter(_is_long, suppressed))}


def _short(evidence: Evidence) -> dict[str, StringPartition]:
    """Return the strings that are too short to be searched for in the bytes, by kind."""

    def made() -> dict[str, StringPartition]:
        return {
            kind: StringPartition.of({text for text in texts if not _is_long(text)})
            for kind, texts in _identifying_strings(evidence).items()
        }

    return evidence.once("short strings", made)


def _identifying_strings(evidence: Evidence) -> dict[str, set[str]]:
    """Return the ids, group labels and dropped texts of the truth, each string once."""
    return evidence.once(
        "naming strings", lambda: _collect_identifying(evidence.masking.truth, evidence.masking.release.table)
    )


def _collect_identifying(truth: Table, released: Table) -> dict[str, set[str]]:
    ids = set() if truth.ids is None else _distinct_texts(truth.ids.to_pylist())
    groups = [_values(truth, name) for name in truth.schema.with_role("group", dropped=True)]
    dropped = [_values(truth, c.name) for c in truth.schema.columns if c.drop and _names_people(c, truth)]
    others = [_distinct_texts(text for texts in some for text in texts) for some in (groups, dropped)]
    rest = [texts - _legitimate(released) - ids for texts in others]
    return dict(zip(NAMING, (ids, *rest), strict=True))


def _values(table: Table, name: str) -> list[Any]:
    import pyarrow.compute as pc

    values: list[Any] = pc.unique(table.array(name)).to_pylist()
    return values


def _names_people(column: Column, truth: Table) -> bool:
    return column.kind == "text" and len(_values(truth, column.name)) > OWN_TEXTS * len(truth)


def _distinct_texts(values: Iterable[Any]) -> set[str]:
    return {str(value) for value in values if value is not None}


def _is_long(text: str) -> bool:
    """Whether a text is not found by chance; digits must be more of them, because files are full of digits."""
    return len(text) >= (LONG_NUMBER if text.isdigit() else LONG_TEXT)


def _encode_texts(texts: Iterable[str]) -> set[bytes]:
    return {text.encode() for text in texts}


def _keys(evidence: Evidence) -> set[bytes]:
    if evidence.masking.key is None:
        return set()
    secret = evidence.masking.key.secret
    return {secret, secret.hex().encode(), secret.hex().upper().encode(), base64.b64encode(secret)}


def _legitimate(released: Table) -> set[str]:
    """Return what the release may say: names, descriptions, categories and labels, and texts of columns in clear."""
    said: set[str] = set(released.names)
    for column in released.schema.columns:
        said |= {column.description, *column.categories, *(label for _, label in column.labels)}
        if column.kind == "text" and not column.roles & {"id", "group"}:
            said |= {str(value) for value in _values(released, column.name) if value is not None}
    return said


def _suppressed_labels(truth: Table, released: Table, evidence: Evidence) -> Iterator[str]:
    """Return categories and labels of the truth that no released record has and that no law speaks of."""
    card = evidence.masking.release.card
    for column in truth.schema.columns:
        if column.roles & {"id", "group"}:
            continue
        if column.name not in released.schema:
            yield from (*column.categories, *(label for _, label in column.labels))
            continue
        now, law = released.schema[column.name], card.law_of(column.name)
        gone = _unused_categories(column, released, law) if now.kind == column.kind else set()
        gone -= _spoken_of(law, column.name)
        yield from (code for code in gone if code in column.categories)
        yield from (label for code, label in column.labels if code in gone)


# Searching bytes for many strings at once: by the last eight letters of each, hashed, and then letter by letter.


TAIL = 8  # letters by which strings are looked up; shorter ones are not searched for
PART = 1 << 23  # bytes at a time
MOST_LENGTHS = 40  # of strings that are compared in full, those of most strings
ENOUGH = 10_000  # strings found: more would say no more

_BITS = 22  # of the table of hashes: 4 MB, near the processor
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads nearby strings

Words = npt.NDArray[np.uint64]


def found_in(data: bytes, wanted: Iterable[bytes], *, alone: bool = False) -> Counter[bytes]:
    """Count how often strings (of eight letters or more) occur in some bytes; those that do not are left out.

    A string of digits counts where no further digit stands beside it: longer numbers hold shorter ones by chance. With
    `alone` all count only where no letter or digit does.
    """
    by_length: dict[int, set[bytes]] = defaultdict(set)
    for one in wanted:
        if len(one) >= TAIL:
            by_length[len(one)].add(one)
    found: Counter[bytes] = Counter()
    lengths = sorted(by_length, key=lambda size: -len(by_length[size]))[:MOST_LENGTHS]
    for size in lengths:
        tails = np.unique(_words(b"".join(one[-TAIL:] for one in by_length[size]))[::TAIL])
        for place in _places(data, tails):
            start = place + TAIL - size
            text = data[start : start + size] if start >= 0 else b""
            if text in by_length[size] and not _is_part(data, start, size, text.isdigit(), alone):
                found[text] += 1
                if len(found) >= ENOUGH:
                    return found
    return found


def _words(data: bytes) -> Words:
    """Return the eight bytes from every place on, as numbers, without a copy."""
    return np.ndarray(max(len(data) - TAIL + 1, 0), "<u8", data, 0, (1,))


def _places(data: bytes, tails: Words) -> Iterator[int]:
    """Return where one of some eight letters stands."""
    table = np.zeros(1 << _BITS, bool)
    table[_hash_words(tails)] = True
    for start in range(0, len(data), PART):
        words = _words(data[start : start + PART + TAIL - 1])
        near = np.flatnonzero(table[_hash_words(words)])
        at = np.searchsorted(tails, words[near])
        sure = near[tails[np.minimum(at, len(tails) - 1)] == words[near]]
        yield from (sure + start).tolist()


def _hash_words(words: Words) -> npt.NDArray[np.int64]:
    return ((words * _ODD) >> np.uint64(64 - _BITS)).astype(np.int64)


def _is_part(data: bytes, start: int, size: int, of_number: bool, of_word: bool) -> bool:
    """Whether a string is part of a longer number, or of a longer word."""
    beside = data[max(start - 1, 0) : start] + data[start + size : start + size + 1]
    return (of_number and any(letter in b"0123456789." for letter in beside)) or (
        of_word and any(bytes([letter]).isalnum() for letter in beside)
    )
