"""The columns of a release as a model sees them: true scale, first guesses, and which cells are unknown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..errors import BadPlan
from ..laws import Additive, Classes, Transition
from ..schema import BOTTOM_CODED, OPEN, TOP_CODED
from ..table import Table
from .system import Bools, Floats, Ints, Variable

BETWEEN = "\x1f"  # the parts of a group's label, where several columns make it
INSIDE = 0.5  # of the sd: how far beyond a code the first guess of a coded value lies


@dataclass(frozen=True, slots=True)
class SeenColumn:
    """One column: its variable, a first guess of every state, and which cells carry noise, are coded, are missing."""

    variable: Variable
    guess: Floats = field(repr=False)
    noised: Bools = field(repr=False)
    coded: Bools = field(repr=False)
    missing: Bools = field(repr=False)

    @property
    def unknown(self) -> Bools:
        """Which cells are to be drawn."""
        return self.noised | self.coded | self.missing

    @property
    def released(self) -> Floats:
        """The guesses in the data's units: what an unadjusted fit takes for true."""
        shift = self.variable.log_shift
        return self.guess if shift is None else np.exp(self.guess) - shift


def see(card: NoiseCard, table: Table, name: str, erring: Collection[str] = ()) -> SeenColumn:
    """Read one column of a release; those in `erring` were measured with a known error."""
    from .noise.card_columns import law_of, levels_of, state_scale

    column, law = table.schema[name], law_of(card, name)
    if column.kind == "text":
        raise BadPlan(f"column {name!r} is text: it can group records, (1|{name}), but not enter a model")
    levels = levels_of(card, table.schema, name)
    status = table.status(name)
    missing = (status != OPEN) & (status != TOP_CODED) & (status != BOTTOM_CODED)
    if levels:
        return _category(Variable(name, levels), law, table, missing)
    return _number(Variable(name, (), state_scale(card, name)), law, table, missing, name in erring)


def _category(variable: Variable, law: Any, table: Table, missing: Bools) -> SeenColumn:
    """Guess the nearest code; PRAM's released categories are found among the true ones by name."""
    z = table.floats(variable.name)
    noised = np.zeros(len(table), bool) if law is None or _is_sure(law) else ~missing
    if isinstance(law, Transition) and not law.is_sure:
        likeliest = np.argmax(np.array(law.matrix), axis=0).astype(np.float64)
        codes = np.where(missing, np.nan, likeliest[np.where(missing, 0, z).astype(np.int64)])
    else:
        codes = np.clip(np.rint(z), 0, len(variable.levels) - 1)
    known = codes[~missing]
    usual = float(np.bincount(known.astype(np.int64)).argmax()) if len(known) else 0.0
    nothing = np.zeros(len(table), bool)
    seen = SeenColumn(variable, np.where(missing, usual, codes), noised, nothing, missing)
    return seen if noised.any() else present_levels(seen)


def present_levels(seen: SeenColumn) -> SeenColumn:
    """Leave levels out that no record has: nothing can be said about them."""
    used = np.unique(seen.guess[~seen.missing]).astype(np.int64)
    if len(used) in (0, len(seen.variable.levels)):
        return seen
    codes: Floats = np.searchsorted(used, seen.guess).astype(np.float64)
    levels = tuple(seen.variable.levels[k] for k in used)
    return replace(seen, variable=Variable(seen.variable.name, levels), guess=codes)


def _is_sure(law: Any) -> bool:
    """Whether a law leaves a category as it was."""
    if isinstance(law, Transition):
        return law.is_sure  # its levels are the released ones
    return isinstance(law, Additive) and not np.diag(law.noise.covariance).any()


def _number(variable: Variable, law: Any, table: Table, missing: Bools, erring: bool) -> SeenColumn:
    from .noise.card_columns import is_noisy
    from .noise.cells import bounds

    name, shift = variable.name, variable.log_shift
    z, noised = _values(law, table, name), np.zeros(len(table), bool)
    if (
        law is not None and not isinstance(law, Classes) and is_noisy(law)[law.columns.index(name)]
    ) or erring:
        noised = ~missing
    coded = np.zeros(len(table), bool)
    limits = bounds(NoiseCard(() if law is None else (law,)), table, [variable])
    if limits is not None:
        coded = np.isfinite(limits[0][:, 0]) | np.isfinite(limits[1][:, 0])
    state = _model_scale_values(z, shift)
    if isinstance(law, Additive):
        j = law.columns.index(name)
        state = (state - (law.offsets[j] if law.offsets else 0.0)) / law.slope
    seen = state[np.isfinite(state) & ~coded]
    middle, size = (float(np.median(seen)), float(seen.std())) if len(seen) else (0.0, 1.0)
    state = np.where(np.isfinite(state), state, middle)
    if limits is not None:
        state = _between(state, limits[0][:, 0], limits[1][:, 0], coded, size)
    return SeenColumn(variable, state, noised, coded & ~missing, missing)


def _values(law: Any, table: Table, name: str) -> Floats:
    """Return released numbers (NaN unless open, codes of the mask itself at their limits); classes give none."""
    from .noise.cells import released_values

    if isinstance(law, Classes):
        return np.full(len(table), np.nan)
    if law is not None and law.outlets:
        return released_values(law.outlets[law.columns.index(name)], table, name)[0]
    return np.array(table.floats(name))


def _model_scale_values(z: Floats, shift: float | None) -> Floats:
    if shift is None:
        return z
    above = z + shift
    least = float(np.nanmin(np.where(above > 0, above, np.nan))) if np.any(above > 0) else 1.0
    with np.errstate(invalid="ignore"):
        return np.asarray(np.log(np.where(above > 0, above, least / 2)))


def _between(state: Floats, lower: Floats, upper: Floats, coded: Bools, size: float) -> Floats:
    """Move first guesses inside their limits."""
    both = np.isfinite(lower) & np.isfinite(upper)
    with np.errstate(invalid="ignore"):
        inner = np.where(
            both,
            (lower + upper) / 2,
            np.where(np.isfinite(lower), lower + INSIDE * size, upper - INSIDE * size),
        )
    outside = coded & ~((state > lower) & (state < upper))
    return np.where(outside, inner, state)


def group_codes(table: Table, names: tuple[str, ...], card: NoiseCard) -> tuple[Ints, tuple[str, ...]]:
    """Number the groups that some columns make together, and name them; a missing value is a group of its own."""
    from .noise.card_columns import law_of

    for name in names:
        law = law_of(card, name)
        if law is not None and name in card.masked:
            raise BadPlan(
                f"column {name!r} carries noise, so it cannot group records; use a column without noise"
            )
    whole, labels, first = np.zeros(len(table), np.int64), [""], True
    for name in names:
        codes, own = _codes(table, name)
        both = whole * len(own) + codes
        present, whole = np.unique(both, return_inverse=True)
        labels = [
            own[k] if first else f"{labels[k // len(own)]}{BETWEEN}{own[k % len(own)]}"
            for k in present.tolist()
        ]
        first = False
    return whole.astype(np.int64), tuple(labels)


def _codes(table: Table, name: str) -> tuple[Ints, list[str]]:
    import pyarrow as pa

    if name not in table.schema:
        _ = table.schema[name]  # says which name is near
    column: Any = table.array(name).cast(pa.string()).dictionary_encode()
    codes = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    labels = [str(value) for value in column.dictionary.to_pylist()]
    if (codes < 0).any():
        codes, labels = np.where(codes < 0, len(labels), codes), [*labels, "missing"]
    order = np.argsort(np.array(labels, dtype=object), kind="stable")
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return back[codes], [labels[k] for k in order]
