"""A count response with noise: its true values are whole numbers from 0 on, drawn with the parameters.

P(y | eta, z) is proportional to p(y | eta) p(z | y), y = 0, 1, 2, ..: by a table of p(z | y) (`noise.counts`) where the
noise of the count is its own and few counts are possible, else draw by draw with the noise of the other numbers
(`kernels.gibbs_counts`). Own derivation. Called by `model` where the family is poisson or negative binomial and the
response is noised.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..card import NoiseCard
from ..errors import NoLaw
from ..masking import Release
from ..notes import Note
from ..schema import BOTTOM_CODED, OPEN, TOP_CODED
from ..table import Table
from .system import Floats, System, Variable

if TYPE_CHECKING:
    from .model import ModelRequest

INSTEAD = "model it as family='gaussian'"


def noised_counts(
    asked: ModelRequest, release: Release, variables: Sequence[Variable], numbers: Sequence[int]
) -> Any:
    """Return how likely true counts make what was released; None where their noise must be computed draw by draw.

    That is where the noise of other unknown numbers tells of theirs, or where too many counts are possible.
    """
    from .noise import count_chances, is_shared

    card, name = release.card, variables[-1].name
    _refuse_swaps(card, name)
    others = {variables[j].name for j in numbers}
    error = asked.measurement_error.get(name)
    found = None
    if not is_shared(card, name, others):
        found = count_chances(card, release.table, name, error)
    if found is None:
        _refuse_curves(card, release.table, name)
    return found


def _refuse_swaps(card: NoiseCard, name: str) -> None:
    swapped, law = card.swapped, card.law_of(name)
    columns = set() if law is None else set(law.columns)
    if swapped is not None and swapped.share > 0 and (columns | {name}) & set(swapped.columns):
        raise NoLaw(
            f"the response {name!r} is a noised count that was also exchanged between records, for which there is no "
            f"sampler; {INSTEAD}"
        )


def _refuse_curves(card: NoiseCard, table: Table, name: str) -> None:
    """Refuse counts with noise on another scale, or with codes as levels, where it is computed draw by draw."""
    from .noise.card_columns import levels_of, state_scale

    if state_scale(card, name) is not None or levels_of(card, table.schema, name):
        raise NoLaw(
            f"the response {name!r} is a count whose noise on the log scale depends on that of a predictor, or whose "
            f"counts are too many; {INSTEAD}, as log({name} + 1), or leave that predictor out"
        )


def limits_of_counts(
    table: Table, name: str, shape: tuple[int, int], limits: tuple[Floats, Floats] | None, counts: Any
) -> tuple[Floats, Floats]:
    """Return limits of all states, those of the count included: it is at least 0, and beyond its codes or not."""
    lower, upper = (np.full(shape, -np.inf), np.full(shape, np.inf)) if limits is None else limits
    lower[:, -1] = np.maximum(lower[:, -1], 0.0)
    if counts is not None:  # they say all
        lower[:, -1], upper[:, -1] = 0.0, np.inf
        return lower, upper
    column, status = table.schema[name], table.status(name)
    for ends, code, limit, step in (
        (upper, TOP_CODED, column.top, -1.0),
        (lower, BOTTOM_CODED, column.bottom, 1.0),
    ):
        if limit is not None:  # a value that was not coded lies before its code
            at = (status == OPEN) & (ends[:, -1] == limit) & (status != code)
            ends[at, -1] += step
    return lower, upper


def count_notes(system: System) -> list[Note]:
    """Say what is done with a noised count."""
    if not system.is_count_unknown:
        return []
    name = system.variables[system.interest.response].name
    return [Note("analysis.true_counts", {"name": name})]
