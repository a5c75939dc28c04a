"""Masked categories on the recipients' page: by which table they changed, and their shares, corrected by the card."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from .elements import Html, data_table
from .words import percent

if TYPE_CHECKING:
    from ..laws import Transition
    from ..utility.results import ColumnUtility

MOST_CATEGORIES = 15  # of a column whose probabilities, or whose shares, stand on the page
ALIKE = 1e-9  # probabilities that differ by no more are one


def changes_of(laws: Iterable[Transition]) -> list[Html]:
    """Return the laws of categories in words, and as a table of probabilities where words are not enough."""
    words = {law.columns[0]: (law, change_words(law)) for law in laws}
    if not words:
        return []
    rows = [(name, said) for name, (_, said) in words.items()]
    tables = [
        data_table(
            f"{name}: probability of each released category, in %, by the true one",
            ("true category", *law.released_as),
            [
                (true, *(f"{100 * p:.3g}" for p in row))
                for true, row in zip(law.true, law.matrix, strict=True)
            ],
        )
        for name, (law, said) in words.items()
        if said in (BY_TABLE, PUT_TOGETHER) and len(law.released_as) <= MOST_CATEGORIES
    ]
    return [data_table("How categories changed", ("column", "what the law does"), rows), *tables]


BY_TABLE = "Each category is replaced by one drawn by a table of probabilities, which the card has."
PUT_TOGETHER = "Each category is released as the one that the card's table has for it; nothing is random."


def change_words(law: Transition) -> str:
    """Say by which table a category changes.

    A table p I + 1 c', whose figures outside the diagonal are alike in each column, keeps a category with probability
    p, else replaces it by one drawn with the probabilities c / (1 - p), whatever it was.
    """
    matrix = np.array(law.matrix)
    count = len(law.true)
    if law.is_sure:
        return PUT_TOGETHER
    if law.true != law.released_as or count < 2:
        return BY_TABLE
    others = np.array([np.delete(matrix[:, j], j) for j in range(count)])
    if np.ptp(others) <= ALIKE:
        by = "the other" if count == 2 else f"one of the other {count - 1}, all equally likely"
        return f"Each category is kept with probability {matrix[0, 0]:.3g}, else replaced by {by}."
    drawn = others.mean(axis=1)
    kept = 1 - float(drawn.sum())
    if np.ptp(others, axis=1).max() > ALIKE or kept < 0 or count > MOST_CATEGORIES:
        return BY_TABLE
    shares = ", ".join(f"{name} {p / (1 - kept):.1%}" for name, p in zip(law.true, drawn, strict=True))
    return (
        f"Each category is kept with probability {kept:.3g}, else replaced by one drawn from all ({shares}), which may "
        "be the same."
    )


def shares_of(found: Iterable[ColumnUtility], masked: set[str], is_open: bool) -> Html | None:
    """Return the shares of masked categories in the release, and corrected by the card where it is open."""
    rows = [
        (
            f"{one.name}: {category}",
            percent(one.shares_after.get(category, 0.0)),
            *([percent(one.shares_corrected.get(category))] if is_open else []),
        )
        for one in found
        if not one.is_number and one.name in masked
        for category in _categories(one)
    ]
    heads = ("category", "share as released", *(["share corrected"] if is_open else []))
    return data_table("Masked categories in this release", heads, rows) if rows else None


def _categories(one: ColumnUtility) -> list[str]:
    names = list(dict.fromkeys([*one.shares_corrected, *one.shares_after]))
    return names if len(names) <= MOST_CATEGORIES else []
