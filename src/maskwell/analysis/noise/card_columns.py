"""What a card says about the columns of a model: the scale of their noise, their true levels, and whether it fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...card import NoiseCard
from ...errors import BadPlan, NoLaw, raise_all
from ...laws import Additive, Classes, RankSwapped, SkewedBias, Step, Transition
from ...laws.chain import combined_of
from ...schema import Schema
from ...table import Table
from ..system import Bools, Floats

ON_UNIT = 1e-6  # of a unit: what writing and reading decimals may leave


def law_of(card: NoiseCard, name: str) -> Any:
    """Return the law of a column as its readers see it, or nothing."""
    return combined_of(card.law_of(name))


def state_scale(card: NoiseCard, name: str) -> float | None:
    """Return the shift of the logarithm on whose scale a column's noise was added, or nothing."""
    law = law_of(card, name)
    if isinstance(law, Additive):
        return law.outlets[law.columns.index(name)].log_shift
    return None


def levels_of(card: NoiseCard, schema: Schema, name: str) -> tuple[str, ...]:
    """Return the true categories of a column; none where its truth is a number.

    A category with noise on its code is released as a number, and a number may be released as a class: what counts
    is what the column was before. Only where categories were put together for sure the groups count: nothing tells
    what is inside them.
    """
    law = law_of(card, name)
    if isinstance(law, Additive) and law.categories:
        return law.categories[law.columns.index(name)]
    if isinstance(law, Transition):
        return law.released_as if law.is_sure else law.true
    return () if isinstance(law, Classes) else schema[name].categories


def recomputed_totals(card: NoiseCard) -> dict[str, tuple[tuple[str, float], ...]]:
    """Return, for each total released as a sum of masked parts, the parts that carry laws and their coefficients.

    In a model such a total is that sum of true values; a total of totals is written out.
    """
    totals: dict[str, tuple[tuple[str, float], ...]] = {}
    for total, parts in card.recomputed:
        sums: dict[str, float] = {}
        for name, coefficient in parts:
            for part, factor in totals.get(name, ((name, 1.0),)):
                sums[part] = sums.get(part, 0.0) + coefficient * factor
        totals[total] = tuple(sums.items())
    return totals


def is_noisy(law: Any) -> Bools:
    """Return for each column of a law whether it carries noise (not only limits, units or classes)."""
    if isinstance(law, SkewedBias):
        return np.array([law.bias_sd > 0 or sd > 0 for sd in law.sds])
    if isinstance(law, Additive):
        return np.asarray(np.diag(law.noise.covariance) > 0)
    return np.zeros(len(law.columns), bool)


def check_fit(card: NoiseCard, table: Table, names: Sequence[str]) -> None:
    """Refuse columns without a law, and a card that cannot belong to the table; only columns of the model count."""
    swaps = [name for name in names if isinstance(law_of(card, name), RankSwapped)]
    raise_all([_no_law(name) for name in swaps], NoLaw)
    named = [name for name in names if card.law_of(name) is not None]
    absent = [name for name in named if name not in table.schema]
    raise_all([_misfit(name, "the table has no such column") for name in absent], BadPlan)
    raise_all([found for name in named for found in _problems(law_of(card, name), table, name)], BadPlan)


def _no_law(name: str) -> str:
    return f"column {name!r} was rank swapped, which has no law p(z | x) to fit with; leave the column out of the model"


def _misfit(name: str, why: str) -> str:
    return f"column {name!r} of the card does not fit the table: {why}"


def _problems(law: Any, table: Table, name: str) -> list[str]:
    """Return why the law of one column cannot be that of the released one."""
    column = table.schema[name]
    if column.kind == "text":
        return [_misfit(name, "it is text there")]
    if isinstance(law, Transition | Classes):
        expected = law.released_as if isinstance(law, Transition) else law.labels
        return [] if column.categories == expected else [_misfit(name, "it has other categories there")]
    if not isinstance(law, Additive | SkewedBias):
        return []
    j = law.columns.index(name)
    outlet, z = law.outlets[j], table.floats(name)
    if isinstance(law, Additive) and law.categories:
        if column.kind == "category" and column.categories != law.categories[j]:
            return [_misfit(name, "it has other categories there")]
    elif column.kind == "category":
        return [_misfit(name, "it is a category there, a number on the card")]
    return [_misfit(name, why) for why in _outside(outlet, z[~np.isnan(z)])]


def _outside(outlet: Any, z: Floats) -> list[str]:
    """Return what about some released values the outlet cannot have let out."""
    found = []
    low, high = (
        (-np.inf if outlet.low is None else outlet.low),
        (np.inf if outlet.high is None else outlet.high),
    )
    if np.any((z < low) | (z > high)):
        found.append("values lie beyond the limits on the card")
    if outlet.unit is not None:
        inner = z[(z > low) & (z < high)]
        steps = inner * (outlet.unit.denominator / outlet.unit.numerator)
        slack = ON_UNIT + 4 * np.finfo(float).eps * np.abs(steps)
        if np.any(np.abs(steps - np.rint(steps)) > slack):
            found.append(f"values do not lie on the unit {float(outlet.unit):g} of the card")
    if outlet.log_shift is not None and np.any(z + outlet.log_shift < 0):
        found.append("values lie where the logarithm on the card is undefined")
    return found


def check_spread(law: Any, name: str) -> None:
    """Refuse noise that is exactly zero on a whole range of a number: such a law has no density there."""
    spread = law.spreads[law.columns.index(name)] if isinstance(law, Additive) and law.spreads else None
    if isinstance(spread, Step) and min(spread.ratios) == 0:
        raise NoLaw(
            f"column {name!r} has no noise at all in a range of its values and some in another, which cannot be "
            "fitted; leave the column out of the model"
        )
