"""Columns in clear that are said to be known to nobody, and that a known value tells all the same.

A sensitive class that is nearly a function of what the intruder knows (a household is poor where its income is below a
line) parts the file as any known column does, however much noise the income has. How much a column S is told by the
known numbers X is measured by its information, in shares of its own entropy,

    I(S; b(X)) / H(S),   with b(X) each known number, or their best linear predictor of S, in classes of equal size,

less the bias of counts, (rows - 1)(classes - 1) / 2n nats (Miller 1955). From half on the intruder is taken to know S.
Functions of several numbers that no linear predictor tells are not looked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..schema import OPEN

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..table import Floats, Table

    Codes = npt.NDArray[np.int64]

TOLD = 0.5  # of the entropy, from which on a column is known with the numbers that tell it
CLASSES, LEAST_IN_CLASS = 50, 20  # of a known number, and records in each
MOST_VALUES = 10  # of a column; of more its tenths are looked at
MOST_RECORDS = 50_000  # evenly spread: a share is then known to 0.01


def predicted_columns(table: Table, columns: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Return those of some columns that known numbers tell, each with the number that tells it most."""
    rows = np.arange(0, len(table), max(1, -(-len(table) // MOST_RECORDS)))
    numbers = {name: _impute_mean(table, name)[rows] for name in known if table.schema[name].is_number}
    found: dict[str, str] = {}
    for name in columns if numbers and len(rows) > 2 * LEAST_IN_CLASS else ():
        if not (table.schema[name].is_number or table.has_classes(name)):
            continue
        codes = _codes(table, name)[rows]
        shares = {by: told_share(codes, x) for by, x in (*numbers.items(), *_together(codes, numbers))}
        best = max(shares, key=lambda by: shares[by])
        if shares[best] >= TOLD:
            found[name] = best
    return found


def _together(codes: Codes, numbers: dict[str, Floats]) -> Iterator[tuple[str, Floats]]:
    """Give the linear predictor of each of some classes from all numbers and their ranks."""
    if len(numbers) < 2:
        return
    ranks = [np.argsort(np.argsort(x)) / len(x) for x in numbers.values()]
    spread = [(x - x.mean()) / (x.std() or 1.0) for x in numbers.values()]
    design = np.column_stack([np.ones(len(codes)), *spread, *ranks])
    for value in np.unique(codes)[1:]:
        fitted = design @ np.linalg.lstsq(design, (codes >= value).astype(float), rcond=None)[0]
        yield ", ".join(numbers), fitted


def told_share(codes: Codes, x: Floats) -> float:
    """Return the share of the entropy of some codes that classes of a number tell."""
    count = max(min(CLASSES, len(x) // LEAST_IN_CLASS), 2)
    edges = np.unique(np.quantile(x, np.linspace(0, 1, count + 1)[1:-1]))
    place = np.searchsorted(edges, x, side="right")
    table = np.zeros((int(place.max()) + 1, int(codes.max()) + 1))
    np.add.at(table, (place, codes), 1.0)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    whole = _entropy(table.sum(axis=0))
    if whole <= 0:
        return 0.0
    told = whole + _entropy(table.sum(axis=1)) - _entropy(table.ravel())
    bias = (table.shape[0] - 1) * (table.shape[1] - 1) / (2 * len(x))
    return float((told - bias) / whole)


def _entropy(counts: Floats) -> float:
    share = counts[counts > 0] / counts.sum()
    return float(-(share * np.log(share)).sum())


def _impute_mean(table: Table, name: str) -> Floats:
    """Return a number with its mean where it is not open."""
    values, is_open = table.floats(name), table.status(name) == OPEN
    is_open &= ~np.isnan(values)
    return np.where(is_open, values, values[is_open].mean() if is_open.any() else 0.0)


def _codes(table: Table, name: str) -> Codes:
    """Number the values of a column, in tenths where there are many; what is not open is a value of its own."""
    values, status = table.class_codes(name), table.status(name)
    is_open = (status == OPEN) & ~np.isnan(values)
    codes = np.zeros(len(values), np.int64)
    if is_open.any():
        different, place = np.unique(values[is_open], return_inverse=True)
        if len(different) > MOST_VALUES and table.schema[name].is_number:
            edges = np.unique(np.quantile(values[is_open], np.linspace(0.1, 0.9, 9)))
            place = np.searchsorted(edges, values[is_open], side="right")
        codes[is_open] = place + 1
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)
