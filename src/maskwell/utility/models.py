"""Models that a steward names: fitted to the truth, to the release as it is, and adjusted for the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..errors import BadPlan
from ..notes import Note
from ..table import Floats
from ..tolerances import is_real
from .figures import overlaps

NONE = float("nan")


@dataclass(frozen=True, slots=True)
class Model:
    """A model whose answers matter: a formula, its family, and by how much noise may widen its intervals.

    `at_most_wider` is 0.3 where no interval may be more than 30% wider than one from the truth.
    """

    formula: str
    family: str = "gaussian"
    at_most_wider: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.formula, str) or "~" not in self.formula:
            raise BadPlan("a model is a formula such as 'y ~ x1 + x2'")
        if self.at_most_wider is not None and not (is_real(self.at_most_wider) and self.at_most_wider >= 0):
            raise BadPlan("at_most_wider is a share from 0 on, such as 0.3 for 30%")

    @classmethod
    def of(cls, given: Any) -> Model:
        """Take a model, a formula, or anything that has the fields of one."""
        if isinstance(given, cls):
            return given
        if isinstance(given, str):
            return cls(given)
        if isinstance(given, Mapping):
            unknown = sorted(set(given) - {"formula", "family", "at_most_wider"})
            if unknown or "formula" not in given:
                raise BadPlan(
                    f"a model has formula, family and at_most_wider, not {', '.join(map(str, given))}"
                )
            return cls(**given)
        if hasattr(given, "formula"):
            return cls(
                given.formula, getattr(given, "family", "gaussian"), getattr(given, "at_most_wider", None)
            )
        raise BadPlan(f"a model is a formula or a Model, not a {type(given).__name__}")

    def to_dict(self) -> dict[str, Any]:
        """Return the model as plain data."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ModelUtility:
    """The coefficients of a model from the truth, from the release taken at its word, and adjusted for its noise.

    Estimates are not a number, with the reason in `notes`, where a fit was refused (`refused` for the adjusted one).
    `overlap` is that of the adjusted 95% intervals with the original ones, `overlap_naive` that of the naive.
    `records` are those of the original fit; `adjusted_records` fewer where the adjusted fit saw a sample.
    """

    formula: str
    family: str
    names: tuple[str, ...] = ()
    original: tuple[float, ...] = ()
    original_errors: tuple[float, ...] = ()
    naive: tuple[float, ...] = ()
    naive_errors: tuple[float, ...] = ()
    adjusted: tuple[float, ...] = ()
    adjusted_errors: tuple[float, ...] = ()
    adjusted_by: str = ""
    records: int = 0
    adjusted_records: int = 0
    at_most_wider: float | None = None
    refused: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def overlap(self) -> tuple[float, ...]:
        """How far each adjusted interval overlaps the original one."""
        return self._overlap(self.adjusted, self.adjusted_errors)

    @property
    def overlap_naive(self) -> tuple[float, ...]:
        """How far each naive interval overlaps the original one."""
        return self._overlap(self.naive, self.naive_errors)

    def _overlap(self, estimates: Sequence[float], errors: Sequence[float]) -> tuple[float, ...]:
        if not estimates or not self.original:
            return ()
        found = overlaps(*map(np.array, (self.original, self.original_errors, estimates, errors)))
        return tuple(map(float, found))

    @property
    def off_naive(self) -> tuple[float, ...]:
        """By how many of its own standard errors each naive estimate lies off the original."""
        return _off(self.naive, self.naive_errors, self.original)

    @property
    def off_adjusted(self) -> tuple[float, ...]:
        """By how many of its own standard errors each adjusted estimate lies off the original."""
        return _off(self.adjusted, self.adjusted_errors, self.original)

    @property
    def widening(self) -> tuple[float, ...]:
        """By which share the adjusted standard errors are larger than the original ones, of as many records."""
        if not self.adjusted_errors or not self.original_errors or not self.adjusted_records:
            return ()
        scale = (self.adjusted_records / self.records) ** 0.5
        pairs = zip(self.adjusted_errors, self.original_errors, strict=True)
        return tuple(scale * after / before - 1 if before > 0 else NONE for after, before in pairs)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        from .figures import plain

        derived = ("overlap", "overlap_naive", "off_naive", "off_adjusted", "widening", "notes")
        return dict(plain(asdict(self) | {name: getattr(self, name) for name in derived}))


def _off(estimates: Sequence[float], errors: Sequence[float], original: Sequence[float]) -> tuple[float, ...]:
    triples = zip(estimates, errors, original, strict=True) if estimates and original else ()
    return tuple((value - true) / error if error > 0 else NONE for value, error, true in triples)


def floats(values: Floats | Sequence[float]) -> tuple[float, ...]:
    """Return numbers as plain ones."""
    return tuple(map(float, values))
