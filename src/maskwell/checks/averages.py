"""Noise that a group's mean takes away: a value that all members share, noised for each of them.

Where x is the same for the m members of a group and each gets noise of its own, the mean of the released values has
an error of sd / sqrt(m); where the noises inside a group have correlation rho it is sd sqrt(rho + (1 - rho) / m). The
figure is the root of the mean of that square over the members of groups of two and more, in the noise's sd; members
of groups in which x is not constant keep their whole noise. (A noise sd of .566 in groups of 50 leaves .080.)

Members are put together by any columns that leave in clear, not by the group's id alone: a household without its id
is known by region, roof, walls and weight. The search begins with all clear columns and leaves out one after the
other, each time the one without which most averages out (backward elimination).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..table import Floats
from .catalogue import Measured
from .evidence import Evidence
from .residuals import FEWEST, NOTHING, SURE
from .scales import noised, noised_columns

Integers = npt.NDArray[np.int64]

SYSTEMATIC = (
    0.1  # of the groups, beyond chance: fewer constant ones are coincidences, which nobody can know of
)
FEWEST_MEMBERS = 0.05  # of the records: fewer that share a group are doubles by accident
FEWEST_GROUPS = 5  # groups of two and more from which on a column is said to be constant inside them
SHUFFLE = 12  # a purpose of its own for the random order that gives what chance leaves constant


@dataclass(frozen=True, slots=True)
class Averaged:
    """What is left of the noise by averaging over a grouping: the figure and the groups' typical size."""

    left: float
    size: float
    columns: tuple[str, ...]


def averages(evidence: Evidence) -> Measured:
    """Measure the error left of a group's mean, in the noise's sd, for values that members of a group share."""
    names = [name for name in noised_columns(evidence) if not _is_constant(evidence.true(name))]
    clear = _clear_codes(evidence)
    if not names or not clear:
        return Measured(
            NOTHING, "no number is noised, or nothing leaves in clear that would put records together"
        )
    found = {name: _least_left(evidence, name, clear) for name in names}
    left = {name: 1.0 if one is None else one.left for name, one in found.items()}
    worst = min(left, key=left.__getitem__)
    one = found[worst]
    if one is None:
        return Measured(
            1.0, "no noised number is the same for all members of a group that leaves together", "", left
        )
    together = ", ".join(one.columns)
    said = (
        f"{worst} is the same for records that have the same {together}, and each of them has noise of its own: the "
        f"mean of a group (of {one.size:.0f} records, typically) is off by {left[worst]:.2f} sds of the noise"
    )
    return Measured(left[worst], said, f"{worst} by {together}", left)


def _is_constant(values: Floats) -> bool:
    known = values[~np.isnan(values)]
    return not len(known) or bool(known.min() == known.max())


def _clear_codes(evidence: Evidence) -> dict[str, Integers]:
    """Number the values of every column that leaves in clear, missing ones as a value of their own.

    Who has no group is in none: there each missing value is a value of its own.
    """
    found, schema = {}, evidence.masking.masked.schema
    for name in evidence.clear:
        array = evidence.masking.masked.array(name).dictionary_encode()
        codes = np.asarray(array.indices.fill_null(-1))[evidence.rows].astype(np.int64)
        if "group" in schema[name].roles:
            alone = np.flatnonzero(codes < 0)
            codes[alone] = codes.max(initial=0) + 1 + np.arange(len(alone))
        if codes.max(initial=0) > codes.min(initial=0):
            found[name] = codes
    return found


def _least_left(evidence: Evidence, name: str, clear: dict[str, Integers]) -> Averaged | None:
    """Return the grouping by clear columns that averages most of a column's noise away; nothing where none does."""
    x, error = evidence.true(name), noised(evidence, name).error
    known = np.flatnonzero(~(np.isnan(x) | np.isnan(error)))
    if len(known) < FEWEST:
        return None
    values = np.unique(x[known], return_inverse=True)[1].astype(np.int64).ravel()
    mixed = np.random.default_rng([evidence.seed, SHUFFLE]).permutation(values)
    inside = {column: codes[known] for column, codes in clear.items()}
    ways = [(column,) for column in inside]
    if len(known) <= evidence.largest:
        ways += _elimination(values, inside)
    tried = [
        _averaged(values, mixed, error[known], _together(inside, way), way) for way in dict.fromkeys(ways)
    ]
    found = [one for one in tried if one is not None]
    return min(found, key=lambda one: one.left, default=None)


def _elimination(values: Integers, clear: dict[str, Integers]) -> list[tuple[str, ...]]:
    """Return sets of columns: all, then without one after the other, so that most records share value and group."""
    chosen = tuple(clear)
    ways = [chosen]
    while len(chosen) > 2:
        fewer = [tuple(name for name in chosen if name != left_out) for left_out in chosen]
        scores = [_shared(values, _together(clear, way)) for way in fewer]
        chosen = fewer[int(np.argmin(scores))]
        ways.append(chosen)
    return ways


def _together(clear: dict[str, Integers], columns: tuple[str, ...]) -> Integers:
    """Number the combinations of values of some columns."""
    member = np.zeros(len(next(iter(clear.values()))), np.int64)
    for name in columns:
        codes = clear[name] - clear[name].min()
        member = np.unique(member * (int(codes.max()) + 1) + codes, return_inverse=True)[1].ravel()
    return member


def _constant(values: Integers, member: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """Return the size of each group, and in which of them all values are the same."""
    sizes = np.bincount(member)
    least = np.full(len(sizes), np.iinfo(np.int64).max)
    most = np.full(len(sizes), -1)
    np.minimum.at(least, member, values)
    np.maximum.at(most, member, values)
    return sizes, least == most


def _shared(values: Integers, member: Integers) -> float:
    """Return the mean square of the error left by averaging independent noise, members alone included."""
    sizes, constant = _constant(values, member)
    return float(np.where(constant, 1.0, sizes).sum() / len(values))


def _averaged(
    values: Integers, mixed: Integers, error: Floats, member: Integers, columns: tuple[str, ...]
) -> Averaged | None:
    """Return what averaging over a grouping leaves; nothing where values are not constant inside it, but by chance."""
    sizes, constant = _constant(values, member)
    several = sizes > 1
    groups = int(several.sum())
    if groups < FEWEST_GROUPS or sizes[several].sum() < FEWEST_MEMBERS * len(values):
        return None
    share = float(constant[several].mean())
    chance = float(_constant(mixed, member)[1][several].mean())
    excess = (share - chance) / max(1 - chance, 1 / groups)
    if excess < SYSTEMATIC or share - chance < SURE * np.sqrt(
        max(chance * (1 - chance), 1 / groups) / groups
    ):
        return None
    inside = (several & constant)[member]
    alike = _intraclass(error[inside], member[inside])
    m = sizes[member][several[member]]
    squares = np.where(constant[member][several[member]], alike + (1 - alike) / m, 1.0)
    return Averaged(float(np.sqrt(squares.mean())), float(np.median(sizes[several & constant])), columns)


def _intraclass(error: Floats, member: Integers) -> float:
    """Return the correlation of the noises inside groups (0 within the sampling error): noise drawn once has 1."""
    _, group = np.unique(member, return_inverse=True)
    group, counts = group.ravel(), np.bincount(group.ravel())
    sums, squares = np.bincount(group, error), np.bincount(group, error**2)
    pairs = float((counts * (counts - 1)).sum())
    total = float(squares.sum())
    if pairs == 0 or total == 0:
        return 0.0
    rho = float((sums**2 - squares).sum()) / pairs / (total / len(error))
    return float(np.clip(rho, 0.0, 1.0)) if rho > SURE / np.sqrt(pairs / 2) else 0.0
