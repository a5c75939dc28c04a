"""Short ids in texts: whole words of the release's text and category columns and of the documents beside it.

Bytes are full of short strings, so that these are looked for as words alone, never among numbers, and count where
chance would not give as many: words of a shape (five digits, say) are ids as often as ids fill that shape. Chance is
taken for the maker of hits where (ids of a shape) / (strings of that shape) x (words of the shape) explains them (own
derivation). Called by `file_bytes`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..table import Table

SHORTEST = 5  # characters from which on a word is looked for
LONGEST_CODE = 6  # digits of codes that many columns have: of places, jobs and trades
ROUND = 2  # leading digits of numbers that people choose, as 12000
BY_CHANCE = 0.01  # probability from which on as many hits are taken for chance
NO_DOCUMENTS = ("manifest.json", "card.json")  # numbers and sums of bytes
DOCUMENTS = (".md", ".txt", ".toml", ".json", ".html", ".htm", ".xml", ".yaml", ".yml")

_WORD = re.compile(r"(?<![^\W_])(?<!\d[.])[^\W_]+(?![^\W_]|[.]\d)")  # not the halves of a decimal number
_BETWEEN = re.compile(r"[\s,;|\"'()\[\]{}<>=]+")


@dataclass(frozen=True, slots=True)
class StringPartition:
    """Strings of one kind by how they are looked for: as `words`, or not at all: too short, or letters alone."""

    words: frozenset[str]
    too_short: frozenset[str]
    letters: frozenset[str]

    @classmethod
    def of(cls, texts: Collection[str]) -> StringPartition:
        """Divide strings that are too short to be searched for in the bytes."""
        short = frozenset(text for text in texts if len(text) < SHORTEST)
        letters = frozenset(text for text in texts if not any(map(str.isdigit, text))) - short
        return cls(frozenset(texts) - short - letters, short, letters)

    def said(self, kind: str) -> Iterator[str]:
        """Say what is not searched for, and why."""
        if self.too_short:
            yield f"{kind} of {_sizes(self.too_short)} are too short to be searched for"
        if self.letters:
            yield f"{kind} of {_sizes(self.letters)} without a digit may be any word and are not searched for"


def found_words(wanted: frozenset[str], words: Collection[str]) -> tuple[set[str], int]:
    """Return the strings that stand among some words, and how many more do as often as chance would have it."""
    from scipy.special import pdtrc

    filled, seen = Counter(map(_shape, wanted)), Counter(map(_shape, words))
    hits: dict[str, set[str]] = {}
    for word in wanted.intersection(words):
        if not _is_round(word):
            hits.setdefault(_shape(word), set()).add(word)
    found, passed_over = set[str](), 0
    for shape, own in hits.items():
        expected = seen[shape] * min(1.0, filled[shape] / _possible(shape))
        if pdtrc(len(own) - 1, expected) < BY_CHANCE:
            found |= own
        else:
            passed_over += len(own)
    return found, passed_over


def words_of(table: Table, folder: Path) -> set[str]:
    """Return the words of the texts and categories of a release and of the documents beside it, codes aside."""
    words, codes = set[str](), set[str]()
    for column in table.schema.columns:
        if column.kind in ("text", "category") and not column.roles & {"id", "group"}:
            texts = _texts(table, column.name)
            if _are_codes(texts):
                codes.update(texts)
            else:
                words |= _words(texts)
    return words | (_words(_documents(folder)) - codes)


def _texts(table: Table, name: str) -> list[str]:
    import pyarrow.compute as pc

    return [str(value) for value in pc.unique(table.array(name)).to_pylist() if value is not None]


def _documents(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in DOCUMENTS and path.name not in NO_DOCUMENTS and path.is_file():
            yield path.read_text(encoding="utf-8", errors="replace")


def _words(texts: Iterable[str]) -> set[str]:
    """Return words between any signs, and those between blanks and brackets, which may have a sign inside."""
    words: set[str] = set()
    for text in texts:
        words.update(_WORD.findall(text))
        words.update(part.strip(".:!?") for part in _BETWEEN.split(text))
    return {word for word in words if len(word) >= SHORTEST}


def _are_codes(texts: list[str]) -> bool:
    """Whether most values of a column are nothing but a few digits: codes, which are numbers by another name."""
    return sum(text.isdigit() and len(text) <= LONGEST_CODE for text in texts) > len(texts) / 2


def _shape(text: str) -> str:
    """Write every digit as 9 and every letter as a."""
    return "".join("9" if sign.isdigit() else "a" if sign.isalpha() else sign for sign in text)


def _possible(shape: str) -> float:
    """Return how many strings have a shape; numbers do not begin with zero."""
    digits, letters = shape.count("9"), shape.count("a")
    return 9 * 10.0 ** (digits - 1) if digits == len(shape) else 10.0**digits * 26.0**letters


def _is_round(text: str) -> bool:
    return text.isdigit() and len(text.rstrip("0")) <= ROUND


def _sizes(texts: Collection[str]) -> str:
    sizes = sorted({len(text) for text in texts})
    span = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return f"{span} character{'' if sizes == [1] else 's'}"
