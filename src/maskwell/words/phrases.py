"""Small phrases that sentences are made of: counts with their nouns, lists of names, shares; and tables of text.

They are here, on the lowest floor, so that every room writes them alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

PLAIN_BELOW = 16  # digits: a number of fewer is written without an exponent


def comma_list(names: Iterable[object]) -> str:
    """Write names one after another."""
    return ", ".join(map(str, names))


def plural(count: int, one: str, more: str) -> str:
    """Choose the words for one or for several."""
    return one if count == 1 else more


def number_text(number: float, decimal: str = ".") -> str:
    """Write one number as files have it: whole numbers without a point, others as short as they stay exact."""
    if isinstance(number, int) or (number.is_integer() and abs(number) < 10.0**PLAIN_BELOW):
        return str(int(number))
    shortest = Decimal(repr(number))
    text = format(shortest, "f") if abs(shortest.adjusted()) < PLAIN_BELOW else repr(number)
    return text.replace(".", decimal)


def count_phrase(count: int, what: str) -> str:
    """Write a count with its noun."""
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def name_list(names: Sequence[str]) -> str:
    """Write names as one reads them aloud: a, b and c."""
    return " and ".join([*([", ".join(names[:-1])] if len(names) > 1 else []), *names[-1:]])


def quoted_list(names: Sequence[str]) -> str:
    """Write names in quotes, with commas."""
    return ", ".join(map(repr, names))


def share_phrase(share: float) -> str:
    """Write a share in percent, one that is not nothing as such."""
    return f"{share:.0%}" if share >= 0.01 else "less than 1%"


def text_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align a table: the first column left, the others right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  " + "  ".join([first.ljust(widths[0]), *cells]).rstrip())
    return lines


def percent_phrase(share: float) -> str:
    """Write a share that was asked for, without figures that nobody asked for: 30%."""
    return f"{100 * share:.4g}%"


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
