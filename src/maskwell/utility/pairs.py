"""Truth and release side by side: the values, the weights and which columns were touched, each read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ..masking import Masking
from ..masking.results import Integers
from ..schema import Column
from ..table import Floats, Table

NOT_COMPARED = frozenset({"id", "weight", "group"})  # roles of columns that no figure is about


@dataclass(frozen=True)
class TruthAndRelease:
    """The truth (all its records) and what was released of it (`kept` records), in the truth's order.

    A subsample is compared with the whole truth: what an analyst of the release would have wanted to know.
    """

    masking: Masking
    _read: dict[tuple[bool, str], Floats] = field(default_factory=dict, repr=False)

    @property
    def truth(self) -> Table:
        """The true records."""
        return self.masking.truth

    @property
    def masked(self) -> Table:
        """The masked records, in the order of the truth; not all of them leave where there is a subsample."""
        return self.masking.masked

    @cached_property
    def rows(self) -> Integers | slice:
        """Which masked records leave."""
        kept = self.masking.kept
        return slice(None) if kept is None else np.sort(kept)

    @cached_property
    def released(self) -> Table:
        """The masked records that leave, in the order of the truth."""
        return self.masked if isinstance(self.rows, slice) else self.masked.take(self.rows)

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns of the release that figures are about: no ids, no texts, no weights, none that is dropped."""
        return tuple(
            column
            for column in self.masked.schema.columns
            if column.kind != "text"
            and not column.drop
            and not column.roles & NOT_COMPARED
            and self.truth.schema[column.name].kind != "text"
        )

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        """The columns that leave as numbers; noised codes of categories among them."""
        return tuple(column.name for column in self.columns if column.is_number)

    @cached_property
    def touched(self) -> frozenset[str]:
        """The columns whose values differ between the two, whatever the card says of them."""
        return frozenset(column.name for column in self.columns if self._differs(column.name))

    def _differs(self, name: str) -> bool:
        before, after = self.truth.array(name), self.masked.array(name)
        return before is not after and not before.equals(after)

    @property
    def subsampled(self) -> bool:
        """Whether only some records leave."""
        return self.masking.kept is not None

    def before(self, name: str) -> Floats:
        """Return the true values of a column, not a number where they are not open."""
        return self._values(False, name)

    def after(self, name: str) -> Floats:
        """Return the released values of a column, in the order of the truth."""
        if name not in self.touched and not self.subsampled:
            return self.before(name)
        return self._values(True, name)

    def _values(self, released: bool, name: str) -> Floats:
        if (found := self._read.get((released, name))) is None:
            table = self.masked if released else self.truth
            found = table.floats(name)[self.rows] if released else table.floats(name)
            self._read[released, name] = found
        return found

    @cached_property
    def weights(self) -> Floats | None:
        """The true weights of the records, if the schema has a column of them."""
        return self._weights(self.truth)

    @cached_property
    def weights_after(self) -> Floats | None:
        """The weights as released."""
        weights = self._weights(self.masked)
        return None if weights is None else weights[self.rows]

    def _weights(self, table: Table) -> Floats | None:
        name = next(iter(self.truth.schema.with_role("weight")), None)
        if name is None or not table.schema[name].is_number:
            return None
        weights = np.maximum(np.nan_to_num(table.floats(name), nan=0.0), 0.0)
        return weights if weights.any() else None

    def labels(self, name: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[str]]:
        """Return for the truth and for the release which level each record has (-1: none), and the levels."""
        import pyarrow as pa
        import pyarrow.compute as pc

        before, after = (table.array(name).cast(pa.string()) for table in (self.truth, self.masked))
        levels = pc.drop_null(pc.unique(before))
        found = []
        for array in (before, after):
            places = pc.index_in(array, value_set=levels).fill_null(-1)
            found.append(np.asarray(places, dtype=np.int64))
        return found[0], found[1][self.rows], [str(level) for level in levels.to_pylist()]
