"""Small phrases that the tables of words share: lists of names, counts with their nouns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def comma_list(names: Iterable[object]) -> str:
    """Write names one after another, with commas."""
    return ", ".join(map(str, names))


def count_phrase(count: int, what: str) -> str:
    """Write a number of things: one is one."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def text_of_names(text: str) -> Callable[..., str]:
    """Return a text among whose figures are names: they are written with commas."""

    def words(**figures: Any) -> str:
        return text.format(
            **{
                name: comma_list(value) if isinstance(value, list | tuple) else value
                for name, value in figures.items()
            }
        )

    return words
