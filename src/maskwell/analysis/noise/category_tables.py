"""How likely each true category is to be released as it was: a table of records x categories for each column.

log p(z_i | x_i = k) by the law of the card; where records were swapped, with the share s on the card,

    log [(1 - s) p(z_i | k) + s f(z_i)],

f the frequencies of what was released in the record's block (of the whole file in a small block): the classical
likelihood under misclassification (Gustafson 2004). Filled once before sampling, for every sampler that
draws categories or sums over them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...card import NoiseCard
from ...card.release_density import block_numbers
from ...laws import Transition
from ...laws.unknowns import of_columns
from ...schema import OPEN
from ...table import Table
from ..system import Bools, Floats, Variable
from .card_columns import check_fit, law_of
from .swaps import LEAST


def tables(card: NoiseCard, table: Table, variables: Sequence[Variable]) -> dict[int, Floats]:
    """Return, for each category with a law, log p(released | category), records x categories; 0 where it is closed.

    Where records were swapped a category may have come from another record of the block, in proportion to what was
    released there; a category that was exchanged without noise is uncertain for that reason alone.
    """
    wanted = [v for v, variable in enumerate(variables) if variable.is_category]
    check_fit(card, table, [variables[v].name for v in wanted])
    found = {}
    for v in wanted:
        law, share = law_of(card, variables[v].name), _share(card, variables[v].name)
        if isinstance(law, Transition) and law.is_sure:
            law = None  # groups are what the model is about
        if law is not None or share > 0:
            found[v] = _table(law, table, variables[v])
        if share > 0:
            found[v] = _swap_mixture(card, table, variables[v].name, found[v], share)
    return found


def _table(law: Any, table: Table, variable: Variable) -> Floats:
    """Return the log density of each record under each category, each released value computed once."""
    count, name = len(variable.levels), variable.name
    out = np.zeros((len(table), count))
    here = table.status(name) == OPEN
    z, at = np.unique(table.floats(name)[here], return_inverse=True)
    codes = np.arange(count) + (0.0 if variable.base is None else variable.base)
    if law is not None and len(law.columns) > 1:
        law = of_columns(law, [law.columns.index(name)])
    with np.errstate(divide="ignore"):
        if law is None:
            logs = np.log((z[:, None] == codes).astype(np.float64))
        else:
            logs = np.column_stack([law.logpdf(z[:, None], np.full((len(z), 1), float(k))) for k in codes])
    out[here] = logs[at.ravel()]
    return out


def _share(card: NoiseCard, name: str) -> float:
    """Return the chance that a record has a category of another one."""
    swapped = card.swapped
    if swapped is None:
        return 0.0
    law = card.law_of(name)
    columns = (name,) if law is None else law.columns
    return 0.0 if set(columns).isdisjoint(swapped.columns) else float(swapped.share)


def _swap_mixture(card: NoiseCard, table: Table, name: str, logs: Floats, share: float) -> Floats:
    """Mix the law of a record's own category with how often the released value occurs in its block."""
    assert card.swapped is not None
    here, out = table.status(name) == OPEN, logs.copy()
    blocks = block_numbers(table, card.swapped.blocks)
    blocks = np.where(np.bincount(blocks, here)[blocks] >= LEAST, blocks, -1)
    background = _frequencies(table.floats(name), here, blocks)
    with np.errstate(divide="ignore"):
        far = np.log(share) + np.log(background[here])
    out[here] = np.logaddexp(np.log1p(-share) + logs[here], far[:, None])
    return out


def _frequencies(values: Floats, here: Bools, blocks: Any) -> Floats:
    """Return how large a share of the open values of its block (of the file for -1) each record's own has."""
    known, out = np.flatnonzero(here), np.ones(len(values))
    codes = np.unique(values[known], return_inverse=True)[1].ravel()
    width = int(codes.max(initial=0)) + 1
    numbers = blocks[known] + 1
    counts = np.bincount(numbers * width + codes, minlength=(int(numbers.max(initial=0)) + 1) * width)
    counts = counts.reshape(-1, width).astype(np.float64)
    counts[0] = np.bincount(codes, minlength=width)
    out[known] = (counts / np.maximum(counts.sum(axis=1), 1.0)[:, None])[numbers, codes]
    return out
