"""The names of the columns: none blank, none twice, in one Unicode form."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Sequence

from ..errors import BadInput, MaskwellWarning, raise_all
from ..notes import Note

NUMBER = re.compile(r"\s*[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?\s*")
_ALPHABETS = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "CHEROKEE")


def clean_names(names: Sequence[str]) -> tuple[list[str], list[Note]]:
    """Return the names in NFC and notes on what was changed or looks odd; warn of the same.

    Raises `BadInput` that lists every blank and every doubled name.
    """
    raise_all(_without_header(names) or _blank(names) + _duplicate_name_problems(names), BadInput)
    clean = [unicodedata.normalize("NFC", name) for name in names]
    raise_all(_duplicate_name_problems(clean, ", which differ only in how accents are encoded"), BadInput)
    notes = _normal_form_notes(names, clean) + _lookalikes(clean)
    for note in notes:
        warnings.warn(str(note), MaskwellWarning, stacklevel=4)
    return clean, notes


def _without_header(names: Sequence[str]) -> list[str]:
    if names and all(NUMBER.fullmatch(name) for name in names):
        return ["the first line holds numbers, not names: put a line with the names of the columns above it"]
    return []


def _blank(names: Sequence[str]) -> list[str]:
    return [f"column {i} has no name: name it" for i, name in enumerate(names, 1) if not name.strip()]


def _duplicate_name_problems(names: Sequence[str], how: str = "") -> list[str]:
    places: dict[str, list[int]] = {}
    for i, name in enumerate(names, 1):
        if name.strip():
            places.setdefault(name, []).append(i)
    return [
        f"columns {', '.join(map(str, at))} share the name {name!r}{how}: give each a name of its own"
        for name, at in places.items()
        if len(at) > 1
    ]


def _normal_form_notes(names: Sequence[str], clean: Sequence[str]) -> list[Note]:
    return [
        Note("io.name_normalized", {"place": i, "name": new})
        for i, (old, new) in enumerate(zip(names, clean, strict=True), 1)
        if old != new
    ]


def _lookalikes(names: Sequence[str]) -> list[Note]:
    return [
        Note("io.name_of_several_alphabets", {"place": i, "name": name, "alphabets": tuple(found)})
        for i, name in enumerate(names, 1)
        if len(found := _alphabets(name)) > 1
    ]


def _alphabets(name: str) -> list[str]:
    scripts = {unicodedata.name(letter, "").split(" ")[0] for letter in name if letter.isalpha()}
    return [script.capitalize() for script in _ALPHABETS if script in scripts]
