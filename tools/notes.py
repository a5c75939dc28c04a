"""The page of all notes: `python tools/notes.py` prints docs/notes.md by the tables of words, `--write` writes it.

Each code stands with its severity, its sentence (the figures by their names) and when it is said. Where a sentence
depends on its figures, it is the one that follows from several things, each more than none.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from string import Formatter
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "notes.md"
HEAD = """\
# Notes

What results say beside their figures are notes: each has a code, a severity, the figures of its sentence, and the
sentence, which is made of them where it is read. `str(note)` is the sentence, and in JSON every note has all four:

```python
>>> from maskwell.notes import Note
>>> note = Note("masking.alone_in_block", {"count": 3, "blocks": ("region", "sex")})
>>> print(note)
3 records are alone in their block (region, sex): no noise hides them
>>> note.to_dict()["code"], note.severity
('masking.alone_in_block', 'caution')
```

Programs ask for codes (`maskwell.notes.has_code`), never for words, which may change. Severity is *info* (nothing to
do), *caution* (something to look at) or *failure* (figures that must not be used as they stand). The names of figures
stand in the sentences below in italics; a sentence that depends on its figures is shown in one of its forms.

This page is made by `python tools/notes.py --write` from the tables in `src/maskwell/words/`.
"""


class Figure(str):
    """Stands for any figure: written it is its name, and one of several things, each more than none."""

    __slots__ = ()

    def __new__(cls, name: str) -> Figure:
        """Return the figure of a name."""
        return super().__new__(cls, f"*{name}*")

    def __repr__(self) -> str:
        return str.__str__(self)

    def __format__(self, spec: str) -> str:
        return str.__str__(self)

    def __iter__(self) -> Iterator[Figure]:
        return iter((self,))

    def __len__(self) -> int:
        return 2

    def _same(self, *_: Any) -> Figure:
        return self

    def _true(self, *_: Any) -> bool:
        return True

    def _false(self, *_: Any) -> bool:
        return False

    def items(self) -> list[tuple[Figure, Figure]]:
        """Return itself as the names and the values of a mapping."""
        return [(self, self)]

    def values(self) -> list[Figure]:
        """Return itself as the values of a mapping."""
        return [self]

    __hash__ = str.__hash__
    __gt__ = __ge__ = _true  # type: ignore[assignment]
    __lt__ = __le__ = _false  # type: ignore[assignment]
    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same  # type: ignore[assignment]
    __truediv__ = __rtruediv__ = __neg__ = __abs__ = _same


def tables() -> dict[str, Any]:
    """Return the table of words of every room that has one."""
    package = import_module("maskwell.words")
    modules = {
        one.name: import_module(f"maskwell.words.{one.name}") for one in iter_modules(package.__path__)
    }
    return {name: module.WORDS for name, module in sorted(modules.items()) if hasattr(module, "WORDS")}


def sentence(text: Any) -> str:
    """Return a sentence with the names of its figures; where it cannot be made so, the names alone."""
    template = text if isinstance(text, str) else inspect.getclosurevars(text).nonlocals.get("text")
    if isinstance(template, str):
        names = [name for _, name, _, _ in Formatter().parse(template) if name]
        return template.format(**{name: Figure(name) for name in names})
    names = [*inspect.signature(text).parameters]
    try:
        return str(text(**{name: Figure(name) for name in names}))
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError):
        return f"a sentence of {', '.join(f'*{name}*' for name in names)}"


def cell(text: str) -> str:
    """Return text as it can stand in a table."""
    return " ".join(text.split()).replace("|", "\\|")


def page() -> str:
    """Return the whole page."""
    parts = [HEAD]
    for room, words in tables().items():
        lines = [f"## {room}", "", "| code | severity | sentence | said of |", "|---|---|---|---|"]
        for code, one in sorted(words.items()):
            lines.append(f"| `{code}` | {one.severity} | {cell(sentence(one.text))} | {cell(one.meaning)} |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="write docs/notes.md")
    if parser.parse_args().write:
        PAGE.write_text(page(), encoding="utf-8")
    else:
        print(page())


if __name__ == "__main__":
    main()
