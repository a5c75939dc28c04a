"""How much of a file a plan gives up: columns that do not leave, and what noise hides of those that do.

A column that is dropped is lost whole. Noise of r sds of the column's own (on the scale that it is drawn on) leaves
its reliability at 1 / (1 + r^2), so that r^2 / (1 + r^2) of it is lost (Fuller 1987, section 1.1). The loss of a plan
is the sum over columns: one for each that is dropped, and a share of each that is noised. Of a category that is changed
at random by the table M what is true goes through to the released one as a correlation does, by the mean eigenvalue
beside the first

    l = (trace M - 1) / (K - 1)  (stay s: (s K - 1)/(K - 1)),

so that 1 - l^2 of it is lost. Above r = 1 there is more noise in a released value than signal. Chosen to order changes
to a plan that may all pass: the one that loses least is tried first; and to say where what leaves is mostly noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from ..laws import Transition
from ..masks import Chain, CorrelatedNoise, IndependentNoise, Pram
from ..plan.mask_plan import KEYS

if TYPE_CHECKING:
    from ..table import Table

DROWNED = 1.0  # sds of a column: from there on its released values are more noise than signal


def noise_ratios(masks: Sequence[Any], table: Table) -> dict[str, float]:
    """Return the noise's sd in sds of each column that leaves with noise, on the scale of its mask."""
    found = dict[str, float]()
    for mask in masks:
        if isinstance(mask, Chain):
            found |= noise_ratios(mask.masks, table)
        elif isinstance(mask, CorrelatedNoise | IndependentNoise):
            for name in _columns(mask, table):
                found[name] = _ratio(mask, name, table)
    return found


def _columns(mask: Any, table: Table) -> tuple[str, ...]:
    named = [c.name for c in table.schema.columns if "key" in c.roles and c.is_number and not c.drop]
    own = tuple(named) if mask.columns == (KEYS,) else tuple(mask.columns)
    return tuple(name for name in own if name in table.schema and not table.schema[name].drop)


def _ratio(mask: CorrelatedNoise | IndependentNoise, name: str, table: Table) -> float:
    if isinstance(mask, CorrelatedNoise):
        if mask.sd_ratio is not None:
            return float(mask.sd_ratio)
        return sqrt(1 / mask.r0 - 1) if mask.r0 else 0.0
    if mask.variance_ratio is not None:
        return sqrt(mask.variance_ratio)
    given: Any = mask.variance
    variance = given[mask.columns.index(name)] if isinstance(given, Sequence) else given
    values = table.floats(name)
    spread = float(np.nanstd(values)) if not np.isnan(values).all() else 0.0
    return sqrt(variance) / spread if spread and variance else 0.0


def change_losses(masks: Sequence[Any], table: Table) -> dict[str, float]:
    """Return what changes at random lose of each category that leaves, as shares of it."""
    found = dict[str, float]()
    for mask in masks:
        if isinstance(mask, Chain):
            found |= change_losses(mask.masks, table)
        elif isinstance(mask, Pram):
            laws = [
                law for law in mask.card(table).laws if isinstance(law, Transition) and len(law.matrix) > 1
            ]
            for law in laws:
                kept = (np.trace(np.array(law.matrix)) - 1) / (len(law.matrix) - 1)
                found[law.columns[0]] = float(1 - kept**2)
    return found


def loss(ratios: Mapping[str, float], dropped: int, changed: Mapping[str, float] | None = None) -> float:
    """Return how many columns' worth a plan gives up; `changed` are shares of categories that changes lose."""
    return dropped + sum(r * r / (1 + r * r) for r in ratios.values()) + sum((changed or {}).values())


def noise_dominated_columns(ratios: Mapping[str, float]) -> tuple[str, ...]:
    """Return the columns whose released values are more noise than signal."""
    return tuple(name for name, ratio in ratios.items() if ratio > DROWNED)


def drowned_words(ratios: Mapping[str, float]) -> str:
    """Say which released values are more noise than signal; nothing where none are."""
    names = noise_dominated_columns(ratios)
    if not names:
        return ""
    least, most = (f(ratios[name] for name in names) for f in (min, max))
    size = f"{most:.2g}" if most - least < 0.05 else f"{least:.2g} to {most:.2g}"
    return (
        f"more noise than signal in {', '.join(names)} ({size} sds of their own), so that single values tell next to "
        "nothing"
    )
