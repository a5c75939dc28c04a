"""Small parts of sentences that the tables of words share: counts, lists, shares, numbers as a file writes them."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

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
