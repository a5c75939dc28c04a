"""Whole numbers of few values under noise: drawn by enumeration, since a continuous truth would not fit them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..card import NoiseCard
from ..laws import Additive, Mixture
from ..laws.unknowns import is_independent
from ..table import Table
from .columns import SeenColumn
from .system import Variable

FINE = 0.5  # of the sd of the noise: a unit below it is no different from a continuous truth
MOST_VALUES = 12


def as_whole(card: NoiseCard, table: Table, seen: SeenColumn) -> SeenColumn:
    """Return a column of noised whole numbers as one with levels, where its unit is coarse and its values are few.

    The values are those between the least and the largest released one; others under correlated noise, on a log
    scale or with codes stay continuous.
    """
    from .noise.card_columns import law_of

    name, law = seen.variable.name, law_of(card, seen.variable.name)
    if name not in table.schema or table.schema[name].kind != "integer" or not isinstance(law, Additive):
        return seen
    j = law.columns.index(name)
    plain = seen.variable.log_shift is None and not law.categories and law.slope == 1.0
    apart = is_independent(law.noise) or isinstance(law.noise, Mixture)
    if not plain or not apart or seen.coded.any() or not seen.noised.any() or seen.variable.is_category:
        return seen
    step = float(table.schema[name].step or 1)
    sd = float(np.sqrt(law.noise.covariance[j, j]))
    values = np.rint(seen.guess[~seen.missing])
    count = int(np.ptp(values)) + 1 if len(values) else 0
    if step != 1.0 or step < FINE * sd or not 2 <= count <= MOST_VALUES:
        return seen
    base = float(values.min())
    levels = tuple(f"{base + k:g}" for k in range(count))
    codes = np.clip(np.rint(seen.guess) - base, 0, count - 1)
    return replace(seen, variable=Variable(name, levels, base=base), guess=codes)
