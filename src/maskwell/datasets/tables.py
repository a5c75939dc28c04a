"""The survey as a table with its schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .arrays import Floats
from .homes import CLASS_LABELS, CLASSES
from .published_figures import AMOUNTS, SIZE, Amount
from .survey import housing_arrays

if TYPE_CHECKING:
    from ..schema import Column
    from ..table import Table


def housing(n: int = SIZE, seed: int = 1993, *, codes: bool = True) -> Table:
    """Draw the synthetic housing survey as a table.

    The amounts are keys; REGION, BEDROOMS, BATHS and YR_BLT are the blocks. All four together make the small
    cells that hold the 771 targets; an intruder's matching drops REGION. Without `codes` the same records have open
    amounts where they are else top- or bottom-coded: amounts beyond the top code, and zeros.
    """
    import pyarrow as pa

    from ..schema import Schema
    from ..table import Table, to_arrow

    arrays, columns = housing_arrays(n, seed, codes=codes), _columns(codes)
    statuses = {a.name: _status(arrays[a.name], a.top if codes else None) for a in AMOUNTS}
    class_codes = {name: np.searchsorted(CLASSES[name], arrays[name]).astype(np.float64) for name in CLASSES}
    data: dict[str, Any] = {"IDNUM": pa.array(arrays["IDNUM"], pa.string())}
    for column in columns[1:]:
        values = class_codes.get(column.name, arrays[column.name])
        data[column.name] = to_arrow(column, values, statuses.get(column.name, np.zeros(n, np.uint8)))
    closed = {name: status for name, status in statuses.items() if status.any()}
    return Table(Schema(columns, series="housing"), pa.table(data), closed)


def _status(amounts: Floats, top: int | None) -> NDArray[np.uint8]:
    from ..schema import BOTTOM_CODED, MISSING, OPEN, TOP_CODED

    out = np.where(np.isnan(amounts), MISSING, OPEN).astype(np.uint8)
    if top is not None:
        out[amounts == top] = TOP_CODED
        out[amounts == 0] = BOTTOM_CODED
    return out


def _columns(codes: bool) -> tuple[Column, ...]:
    from ..schema import Column

    identifier = Column("IDNUM", "text", frozenset({"id"}), description="identifying number of 12 digits")
    return identifier, *map(_class_column, CLASSES), *(_amount_column(amount, codes) for amount in AMOUNTS)


def _amount_column(amount: Amount, codes: bool) -> Column:
    from ..schema import Column

    top, bottom = (amount.top, 0) if codes else (None, None)
    return Column(amount.name, "integer", frozenset({"key"}), 1, top, bottom, description=amount.description)


def _class_column(name: str) -> Column:
    from ..schema import Column

    roles = frozenset({"block"})
    labels = tuple((str(value), label) for value, label in CLASS_LABELS[name].items())
    return Column(name, "category", roles, categories=tuple(map(str, CLASSES[name])), labels=labels)
