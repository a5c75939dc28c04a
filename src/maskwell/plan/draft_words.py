"""How a drafted plan writes names, lists and remarks."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import Any

WIDTH = 100


def toml_string(text: str) -> str:
    """Return a text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_list(names: Iterable[str]) -> str:
    """Return a TOML list of texts."""
    return "[" + ", ".join(map(toml_string, names)) + "]"


def plain(name: str) -> str:
    """Return a name as it can stand in a remark."""
    return name if name.isprintable() else repr(name)


def names_of(names: Sequence[str]) -> str:
    """Return names for a remark."""
    return ", ".join(map(plain, names))


def count_phrase(names: Sequence[Any], what: str) -> str:
    """Say how many of something there are."""
    return f"{len(names)} {what}{'s' if len(names) != 1 else ''}"


def comment(text: str, first: str = "# ", rest: str = "# ") -> list[str]:
    """Return a remark, wrapped, each line with its sign."""
    return wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def is_word(name: str) -> bool:
    """Whether a name can stand in a formula as it is."""
    return re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) is not None


def sentences(*texts: str) -> str:
    """Join remarks as sentences: a full stop after each but a question."""
    return " ".join(text if text.endswith(("?", ".")) else f"{text}." for text in texts if text)
