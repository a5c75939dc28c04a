"""What swapped records were released with: values that came from anywhere in their block.

p(z | x) = (1 - share) p_own(z | x) + share N(z; mean, C of the block), the second fitted to what was released: own
derivation, a mixture with an indicator for each record that Gibbs draws (`kernels.gibbs_noise`). Read by `card_arrays`
where the card speaks of swaps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...card import NoiseCard
from ...card.release_density import block_numbers
from ...laws import SkewedBias
from ...notes import Note
from ...table import Table
from ..system import Bools, Floats, Ints, Variable
from .arrays import Far
from .law_parts import LawPart

LEAST = 30  # records: blocks below it take the law of the whole file
LOG_ROOT_2_PI = 0.5 * np.log(2.0 * np.pi)

Filled = tuple[Floats, Bools, Ints, Bools, Floats]  # u, has, pattern, is_open, turn


def background(card: NoiseCard, table: Table, parts: Sequence[LawPart], filled: Filled) -> Far:
    """Return the law of swapped values; nothing has moved where the card speaks of no swaps."""
    u, has, pattern, is_open, turn = filled
    q, moved = u.shape[1], np.zeros(u.shape[1], bool)
    swapped = card.swapped
    if swapped is not None and swapped.share > 0:
        for part in parts:
            if not set(part.law.columns).isdisjoint(swapped.columns):
                moved[list(part.positions)] = True
    if swapped is None or not moved.any():
        nobody = np.zeros(len(u), np.int64)
        return Far(
            0.0, moved, np.zeros(len(turn)), nobody, np.zeros((1, q)), np.zeros((1, q, q)), np.zeros(1)
        )
    blocks = _large(block_numbers(table, swapped.blocks)) if swapped.blocks else np.full(len(u), -1)
    both, group = np.unique(np.column_stack([blocks, pattern]), axis=0, return_inverse=True)
    laws = [_fit_normal(u, has, (blocks == b) | (b < 0), moved & is_open[p]) for b, p in both]
    direct = np.array([isinstance(part.law, SkewedBias) for part in parts for _ in part.positions])
    places = np.array([place for part in parts for place in part.positions])
    integrated = np.zeros(q, bool)
    integrated[places[direct]] = np.diagonal(turn, axis1=1, axis2=2).max(axis=0)[places[direct]] == 0
    constants = [LOG_ROOT_2_PI * np.sum(integrated & moved & is_open[p]) for _, p in both]
    return Far(
        float(swapped.share),
        moved,
        np.array([_log_det(m, moved & open_ & ~integrated) for m, open_ in zip(turn, is_open, strict=True)]),
        group.ravel().astype(np.int64),
        np.stack([mean for mean, _, _ in laws]),
        np.stack([precision for _, precision, _ in laws]),
        np.array([log for _, _, log in laws]) - np.array(constants),
    )


def swap_notes(card: NoiseCard, variables: Sequence[Variable], far: Far) -> tuple[Note, ...]:
    """Return what is assumed about numbers that were exchanged between records."""
    if card.swapped is None or not card.swapped.share:
        return ()
    fitted = (Note("analysis.swapped_values", {"least": LEAST}),) if far.moved.any() else ()
    moved = set(card.swapped.columns) - set(card.columns) - {total for total, _ in card.recomputed}
    names = tuple(v.name for v in variables if v.name in moved and not v.is_category)
    clear = Note("analysis.clear_swaps", {"columns": names, "share": card.swapped.share})
    return (*fitted, clear) if names else fitted


def _large(blocks: Ints) -> Ints:
    """Give the number -1, that of the whole file, to blocks with too few records."""
    return np.where(np.bincount(blocks)[blocks] >= LEAST, blocks, -1)


def _fit_normal(u: Floats, has: Bools, here: Bools, wanted: Bools) -> tuple[Floats, Floats, float]:
    """Return mean, precision and half its log determinant of some columns in some records (all, if those are few)."""
    q, columns = u.shape[1], np.flatnonzero(wanted)
    mean, precision = np.zeros(q), np.zeros((q, q))
    if not len(columns):
        return mean, precision, 0.0
    complete = np.asarray(has[:, columns].all(axis=1))
    whole = here & complete if (here & complete).sum() >= LEAST else complete
    values = u[np.ix_(whole, columns)]
    mean[columns] = values.mean(axis=0)
    covariance = np.atleast_2d(np.cov(values, rowvar=False)) if len(values) > 1 else np.eye(len(columns))
    covariance = covariance + np.diag(1e-9 * np.diag(covariance) + 1e-300)
    precision[np.ix_(columns, columns)] = np.linalg.inv(covariance)
    return mean, precision, -0.5 * float(np.linalg.slogdet(covariance)[1])


def _log_det(turn: Floats, wanted: Bools) -> float:
    columns = np.flatnonzero(wanted)
    return float(np.linalg.slogdet(turn[np.ix_(columns, columns)])[1]) if len(columns) else 0.0
