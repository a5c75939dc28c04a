"""What results say beside their figures, as data: a code, figures, and from the table of words its severity and text.

A result carries `Note("attacks.no_candidate", {"count": 5})`. Its sentence is made where it is read (`str(note)`), by
the words of its room in `maskwell.words`, and JSON has the code and the figures beside it. Whoever needs to know what
was said asks for codes, never for words: a text cannot be looked for in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from math import isfinite
from typing import Any, Literal, NamedTuple

# How much a reader must mind: nothing to do, something to look at, figures that must not be used as they stand.
Severity = Literal["info", "caution", "failure"]


class Wording(NamedTuple):
    """The words of one code: a text with the figures' places, or a function of them; its severity; when it is said."""

    text: str | Callable[..., str]
    severity: Severity
    meaning: str


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that a result says: the code names it, `figures` are what its sentence is made of."""

    code: str
    figures: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        text = self.wording.text
        return text.format(**self.figures) if isinstance(text, str) else text(**self.figures)

    def __hash__(self) -> int:
        return hash((self.code, repr(sorted(self.figures.items()))))

    @property
    def wording(self) -> Wording:
        """The words of the code, by the table of its room."""
        return words_of(self.code.partition(".")[0])[self.code]

    @property
    def severity(self) -> Severity:
        """How much a reader must mind."""
        return self.wording.severity

    def to_dict(self) -> dict[str, Any]:
        """Return code, severity and figures as plain data, with the sentence."""
        figures = {name: _plain(value) for name, value in self.figures.items()}
        return {"code": self.code, "severity": self.severity, "figures": figures, "text": str(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Note:
        """Build it from plain data: severity and sentence follow from the code and its figures."""
        return cls(data["code"], {name: _figure_of(value) for name, value in data["figures"].items()})


def words_of(room: str) -> Mapping[str, Wording]:
    """Return the table of words of a room."""
    table: Mapping[str, Wording] = import_module(f".words.{room}", __package__).WORDS
    return table


def _figure_of(value: Any) -> Any:
    """Return a figure as a note holds it: lists are tuples, notes among the figures are notes."""
    if isinstance(value, dict):
        is_note = {"code", "figures"} <= value.keys()
        return Note.from_dict(value) if is_note else {name: _figure_of(one) for name, one in value.items()}
    return tuple(map(_figure_of, value)) if isinstance(value, list) else value


def has_code(notes: Iterable[Note], *codes: str) -> bool:
    """Whether one of these was said."""
    return any(note.code in codes for note in notes)


def texts(notes: Iterable[Note]) -> tuple[str, ...]:
    """Return the sentences."""
    return tuple(map(str, notes))


def _plain(value: Any) -> Any:
    """Return a figure as JSON can hold it: nothing where a number has no end or is not known."""
    if isinstance(value, Note):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    import numpy as np  # not above: notes are known to the command line, whose help loads nothing heavy

    value = value.item() if isinstance(value, np.generic) else value
    return None if isinstance(value, float) and not isfinite(value) else value
