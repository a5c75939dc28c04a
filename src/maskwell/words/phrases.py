"""Small phrases that sentences are made of: counts with their nouns, lists of names, shares; and tables of text.

They are here, on the lowest floor, so that every room writes them alike.
"""

from __future__ import annotations

from collections.abc import Sequence


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
