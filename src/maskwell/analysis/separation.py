"""Whether columns together tell responses apart without overlap, so that the likelihood has no largest value.

A direction in which no record's likelihood falls and some record's grows is looked for by a linear programme (Konis
2007, for binary responses; Correia, Guimaraes and Zylkin 2019, for counts).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..notes import Note, has_code
from .system import GAUSSIAN, NEGATIVE_BINOMIAL, ORDERED, POISSON, Floats, System

FIRST, MORE, ROUNDS = 5_000, 2_000, 20  # records in the programme at first, added each time, and how often
# Columns beyond which those that separate are not named one by one; nothing is looked for
NAMED, WIDE = 30, 200
SMALL, SLIGHT = 1e-5, 1e-6  # gains on average, losses of a record, that rounding may explain


def separated_together(system: System, notes: Sequence[Note] = ()) -> tuple[Note, ...]:
    """Say where a combination of columns separates the responses, unless the notes say that one alone does."""
    from .design_checks import columns_at_release

    interest = system.interest
    if interest.family == GAUSSIAN or has_code(notes, "analysis.separation"):
        return ()
    counted = slice(None) if system.counted is None else system.counted
    design, y = columns_at_release(system)[counted], system.state[counted, interest.response]
    if not 0 < design.shape[1] <= WIDE or not separates(interest.family, design, y):
        return ()
    varying = [k for k in range(design.shape[1]) if np.ptp(design[:, k]) > 0]
    involved = _separating_columns(interest.family, design, y, varying) if len(varying) <= NAMED else []
    names = tuple(interest.names[k] for k in involved)
    counts = interest.family in (POISSON, NEGATIVE_BINOMIAL)
    return (Note("analysis.joint_separation", {"names": names, "counts": counts}),)


def separates(family: int, design: Floats, y: Floats) -> bool:
    """Whether some combination of the columns separates the responses of a family, wholly or but for ties."""
    basis = np.linalg.qr(design)[0] * np.sqrt(len(design))  # one size, whatever the origins of the columns
    if family in (POISSON, NEGATIVE_BINOMIAL):
        rows = _count_rows(basis, y)
    elif family == ORDERED:
        rows = _ordered_rows(basis, y)
    else:
        rows = np.where(y > 0, 1.0, -1.0)[:, None] * basis
    return rows is not None and _has_direction(rows)


def _count_rows(basis: Floats, y: Floats) -> Floats | None:
    """A linear predictor that stays where counts are above 0 and falls where they are 0; None where none can stay."""
    some = basis[y > 0]
    _, sizes, right = np.linalg.svd(np.linalg.qr(some, mode="r"))
    free = np.ones(basis.shape[1], bool)
    free[: len(sizes)] = sizes <= 1e-9 * np.sqrt(len(basis))
    return -(basis[y <= 0] @ right[free].T) if free.any() and (y <= 0).any() else None


def _ordered_rows(basis: Floats, y: Floats) -> Floats:
    """Cuts and slopes: the linear predictor lies below the cut above a record's category, and above that below."""
    places = np.unique(y, return_inverse=True)[1]
    last, eye = int(places.max()), np.eye(int(places.max()))
    under, over = places < last, places > 0
    below = np.hstack([eye[places[under]], -basis[under]])
    above = np.hstack([-eye[places[over] - 1], basis[over]])
    return np.vstack([below, above])


def _has_direction(rows: Floats) -> bool:
    """Whether rows @ b >= 0 for all rows and > 0 for some, for a b within the unit box.

    The programme has few of the rows at first and those that its solution violates after.
    """
    from scipy.optimize import linprog

    total = rows.mean(axis=0)
    held = np.unique(np.linspace(0, len(rows) - 1, min(len(rows), FIRST)).astype(np.int64))
    for _ in range(ROUNDS):
        found = linprog(-total, A_ub=-rows[held], b_ub=np.zeros(len(held)), bounds=(-1, 1), method="highs")
        if found.status != 0:
            return False
        direction = np.asarray(found.x, np.float64)
        if total @ direction < SMALL:
            return False
        values = rows @ direction
        beyond = np.flatnonzero(values < -SLIGHT)
        if not len(beyond):
            return True
        worst = beyond[np.argsort(values[beyond], kind="stable")[:MORE]]
        held = np.union1d(held, worst)
    return False


def _separating_columns(family: int, design: Floats, y: Floats, varying: Sequence[int]) -> list[int]:
    """Return columns none of which can be left out: the others do not separate without it."""
    kept, constant = list(varying), [k for k in range(design.shape[1]) if k not in varying]
    for k in varying:
        rest = [j for j in kept if j != k]
        if separates(family, design[:, [*constant, *rest]], y):
            kept = rest
    return kept
