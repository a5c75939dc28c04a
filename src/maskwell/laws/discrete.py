"""Laws of categories and classes, and of exchanges that have no density.

`Transition`: P(released j | true i) = M[i, j] (post-randomisation, Gouweleeuw, Kooiman, Willenborg and de Wolf 1998).
`Classes`: 1 for the class a number lies in. `RankSwapped`: values move by at most a window of ranks (Moore 1996,
Controlled data-swapping techniques); there is no p(z | x). Made by `masks.category` and `masks.exchange`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..keys import Stream, uniforms
from ..schema import Column
from .noise import Floats, Matrix
from .transform import Outlet


@dataclass(frozen=True, slots=True)
class Transition:
    """A category changes by a table: `matrix[i][j]` is the probability that true i is released as j."""

    form: ClassVar[str] = "transition"
    has_density: ClassVar[bool] = True
    whole_file: ClassVar[bool] = False
    opens_codes: ClassVar[bool] = False
    outlets: ClassVar[tuple[Outlet, ...]] = ()
    columns: tuple[str, ...]
    true: tuple[str, ...]
    released_as: tuple[str, ...]
    matrix: Matrix

    def draw(self, x: Floats, stream: Stream) -> Floats:
        """Draw released codes for true ones (NaN stays NaN)."""
        edges = np.cumsum(np.array(self.matrix), axis=1)[:, :-1]
        uniform = stream.uniforms(self.columns[0])
        codes = np.where(np.isnan(x[:, 0]), 0, x[:, 0]).astype(np.int64)
        drawn = np.zeros(len(x))
        for edge in edges.T:
            drawn += uniform >= edge[codes]
        return np.where(np.isnan(x[:, 0]), np.nan, drawn)[:, None]

    def logpdf(self, z: Floats, x: Floats) -> Floats:
        """Return the log probability of each released code (0 where the true one is closed)."""
        known = ~np.isnan(x[:, 0])
        out = np.zeros(len(x))
        with np.errstate(divide="ignore"):
            logs = np.log(np.array(self.matrix))
        out[known] = logs[x[known, 0].astype(np.int64), z[known, 0].astype(np.int64)]
        return out

    def logpdf_with_error(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the exact log probability."""
        return self.logpdf(z, x), np.zeros(len(z))

    @property
    def is_sure(self) -> bool:
        """Whether nothing is random in the table: every category has one released one."""
        return all(max(row) == 1.0 for row in self.matrix)

    def likeliest(self, codes: Floats) -> Floats:
        """Return the likeliest released code of each true one (NaN stays NaN)."""
        best = np.argmax(np.array(self.matrix), axis=1)
        known = ~np.isnan(codes)
        out = np.full(len(codes), np.nan)
        out[known] = best[codes[known].astype(np.int64)]
        return out

    def released(self, column: Column) -> Column:
        """Describe the released column: only labels of categories that can occur."""
        labels = tuple(pair for pair in column.labels if pair[0] in self.released_as)
        return replace(column, categories=self.released_as, labels=labels)

    def then(self, later: Transition) -> Transition | None:
        """Return the law of this table followed by another."""
        if self.released_as != later.true:
            return None
        matrix = np.array(self.matrix) @ np.array(later.matrix)
        return Transition(self.columns, self.true, later.released_as, tuple(map(tuple, matrix.tolist())))

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain data."""
        return {
            "form": self.form,
            "columns": list(self.columns),
            "true": list(self.true),
            "released_as": list(self.released_as),
            "matrix": [list(row) for row in self.matrix],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Transition:
        """Build the law from plain data."""
        matrix = tuple(tuple(row) for row in data["matrix"])
        return cls(tuple(data["columns"]), tuple(data["true"]), tuple(data["released_as"]), matrix)


@dataclass(frozen=True, slots=True)
class Classes:
    """A number is released as the class it lies in; coded values lie in the end classes."""

    form: ClassVar[str] = "classes"
    has_density: ClassVar[bool] = True
    whole_file: ClassVar[bool] = False
    opens_codes: ClassVar[bool] = True
    outlets: ClassVar[tuple[Outlet, ...]] = ()
    columns: tuple[str, ...]
    breaks: tuple[float, ...]
    labels: tuple[str, ...]

    def draw(self, x: Floats, stream: Stream) -> Floats:
        """Return the class of each value (NaN stays NaN); there is nothing random in it."""
        classes = np.searchsorted(np.array(self.breaks), x[:, 0], side="right").astype(np.float64)
        return np.where(np.isnan(x[:, 0]), np.nan, classes)[:, None]

    def logpdf(self, z: Floats, x: Floats) -> Floats:
        """Return 0 where the class is the value's own, else minus infinity."""
        classes = np.searchsorted(np.array(self.breaks), x[:, 0], side="right")
        return np.where(np.isnan(x[:, 0]) | (classes == z[:, 0]), 0.0, -np.inf)

    def logpdf_with_error(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the exact log probability."""
        return self.logpdf(z, x), np.zeros(len(z))

    def released(self, column: Column) -> Column:
        """Describe the released column: a category of class labels."""
        kept = replace(column, kind="category", categories=self.labels, unit=None, top=None, bottom=None)
        return replace(kept, labels=(), missing=tuple(str(code) for code in column.missing))

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain data."""
        columns, breaks = list(self.columns), list(self.breaks)
        return {"form": self.form, "columns": columns, "breaks": breaks, "labels": list(self.labels)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Classes:
        """Build the law from plain data."""
        return cls(tuple(data["columns"]), tuple(data["breaks"]), tuple(data["labels"]))


@dataclass(frozen=True, slots=True)
class RankSwapped:
    """Values exchanged between records of near rank: there is no law p(z | x) to compute with."""

    form: ClassVar[str] = "rank swap"
    has_density: ClassVar[bool] = False
    whole_file: ClassVar[bool] = True
    opens_codes: ClassVar[bool] = False
    outlets: ClassVar[tuple[Outlet, ...]] = ()
    columns: tuple[str, ...]
    window_ratio: float

    def draw(self, x: Floats, stream: Stream) -> Floats:
        """Exchange the open values of the whole file; ties in rank are broken by the key."""
        from ..kernels.rank_exchange import exchange_within

        out = x.copy()
        for j, name in enumerate(self.columns):
            words = stream.words(name, "swap")
            here = np.flatnonzero(~np.isnan(x[:, j]))
            ranked = here[np.lexsort((words[here, 1], x[here, j]))]
            window = max(1, int(self.window_ratio * len(ranked)))
            partner = exchange_within(uniforms(words[ranked, 0]), window)
            out[ranked, j] = x[ranked[partner], j]
        return out

    def released(self, column: Column) -> Column:
        """Describe the released column: as it was."""
        return column

    def to_dict(self) -> dict[str, Any]:
        """Return what was done as plain data."""
        return {"form": self.form, "columns": list(self.columns), "window_ratio": self.window_ratio}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RankSwapped:
        """Build it from plain data."""
        return cls(tuple(data["columns"]), data["window_ratio"])
