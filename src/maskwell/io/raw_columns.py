"""A file or frame as it came: columns before any schema, and what the file itself says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..notes import Note
from ..table import Source

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Hint:
    """What a statistics file says of a column.

    `missing` lists its codes for "no value". A code that no number can hold (Stata's .a to .z) has in `cells`
    the records where it stands; the column itself is null there.
    """

    description: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[float | str, ...] = ()
    cells: Mapping[str, npt.NDArray[np.bool_]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """Columns as text (CSV) or in the types of the file, ready to be conformed to a schema."""

    data: pa.Table
    source: Source
    decimal: str = "."
    notes: tuple[Note, ...] = ()
    hints: Mapping[str, Hint] = field(default_factory=dict)
