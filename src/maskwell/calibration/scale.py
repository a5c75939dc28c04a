"""Which masks have a free scale, and how it is set: one factor on the size of what they do to values.

Noise has the sd of the plan times the factor, an exchange of ranks its window, a table of categories its chances of
change: c -> f c, R0 -> 1 / (1 + (1 / R0 - 1) f^2) (R0 = 1 / (1 + c^2): Moore 1996, section V), M -> I + f (M - I) up to
where its mutual information is least. What comes out is a plan of the same kind that can be written down, rounded
towards more noise. Read by `search` and by every plan that calibrates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from math import inf
from typing import Any

import numpy as np

from ..errors import BadPlan
from ..masking.protocol import Mask, is_mask
from ..masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    CorrelatedNoise,
    IndependentNoise,
    MixtureNoise,
    Pram,
    RankSwap,
)
from ..masks.resolve import NoiseOptions
from ..table import Floats, Table
from ..tolerances import is_real

MOST_NAMED = 3  # columns
DIGITS = 3  # of a figure in a plan that is to be written down


@dataclass(frozen=True, slots=True)
class ScaleKind:
    """What a figure of a plan means: how a factor on the size changes it, and how it is rounded towards more noise."""

    times: Callable[[Any, float], Any]
    up: Callable[[Any], Any]


def _each(change: Callable[[float], float]) -> Callable[[Any], Any]:
    """Let a change of one figure work on a tuple of them too."""

    def changed(value: Any) -> Any:
        return tuple(map(change, value)) if isinstance(value, Sequence) else change(value)

    return changed


def round_digits(value: float, way: str = ROUND_CEILING) -> float:
    """Return a positive figure with a few significant digits, not below it (or, `way` down, not above it)."""
    exact = Decimal(f"{value:.12g}")
    if not exact:
        return 0.0
    step = Decimal(1).scaleb(exact.adjusted() - DIGITS + 1)
    return float(exact.quantize(step, rounding=way))


def _power(exponent: int) -> Callable[[Any, float], Any]:
    def times(value: Any, factor: float) -> Any:
        return _each(lambda one: float(one * factor**exponent))(value)

    return times


def _r0_times(r0: float, factor: float) -> float:
    return 1 / (1 + (1 / r0 - 1) * factor**2)


def _less(share: float) -> float:
    """Round a share that falls as the noise grows: by the digits of what it leaves, or by its own if it is small."""
    return (
        round_digits(share, ROUND_FLOOR) if share < 0.5 else float(1 - Decimal(str(round_digits(1 - share))))
    )


def _stay_times(stay: float, factor: float) -> float:
    return max(1 - (1 - stay) * factor, 0.0)


def _matrix_times(matrix: Any, factor: float) -> Any:
    moved = np.array(matrix) * factor
    np.fill_diagonal(moved, 0.0)
    np.fill_diagonal(moved, np.clip(1 - moved.sum(axis=1), 0.0, 1.0))
    return tuple(map(tuple, (moved / moved.sum(axis=1, keepdims=True)).tolist()))


def _matrix_up(matrix: Any) -> Any:
    """Round the chances of change up, and let what is left be the chance to stay."""
    rows = []
    for i, row in enumerate(matrix):
        chances = [
            Decimal(0) if j == i else Decimal(str(round_digits(chance))) for j, chance in enumerate(row)
        ]
        if sum(chances) > 1:
            return matrix  # no chance to stay is left: as exact as it came
        chances[i] = 1 - sum(chances, Decimal(0))
        rows.append(tuple(map(float, chances)))
    return tuple(rows)


SD = ScaleKind(_power(1), _each(round_digits))
VARIANCE = ScaleKind(_power(2), _each(round_digits))
WINDOW = ScaleKind(
    lambda ratio, factor: min(ratio * factor, 1.0), lambda ratio: min(round_digits(ratio), 1.0)
)
R0 = ScaleKind(_r0_times, _less)
STAY = ScaleKind(_stay_times, _less)
MATRIX = ScaleKind(_matrix_times, _matrix_up)

SCALES: dict[type, dict[str, ScaleKind]] = {
    CorrelatedNoise: {"sd_ratio": SD, "r0": R0},
    IndependentNoise: {"variance_ratio": VARIANCE, "variance": VARIANCE},
    MixtureNoise: {"variance_ratio": VARIANCE, "within_variance_ratio": VARIANCE},
    BiasNoise: {"bias_sd": SD, "sd_ratio": SD, "sd": SD},
    CodeNoise: {"variance": VARIANCE},
    RankSwap: {"window_ratio": WINDOW},
    Pram: {"stay": STAY, "matrix": MATRIX},
}
BY_COLUMN = (
    IndependentNoise,
    MixtureNoise,
    BiasNoise,
    CodeNoise,
    RankSwap,
    Pram,
)  # a column's noise is its own
PER_COLUMN_FIGURES = {IndependentNoise: ("variance",), BiasNoise: ("sd_ratio", "sd")}


def has_scale(mask: Any) -> bool:
    """Return whether a mask has a free scale: a chain has if one of its stages has."""
    if isinstance(mask, Chain):
        return any(map(has_scale, mask.masks))
    return type(mask) in SCALES


def check_scale(mask: Any) -> None:
    """Refuse what is no mask, and masks without a free scale."""
    if not is_mask(mask):
        what = mask.__name__ if isinstance(mask, type) else f"a {type(mask).__name__}"
        raise BadPlan(f"{what} is no mask: give a plan such as CorrelatedNoise(columns, sd_ratio=0.3)")
    if not has_scale(mask):
        kinds = ", ".join(kind.__name__ for kind in SCALES)
        raise BadPlan(
            f"{type(mask).__name__} has no free scale, so there is nothing to calibrate: give {kinds}, or a Chain with "
            "one of them"
        )


def scale_mask(mask: Mask, factor: float, table: Table | None = None) -> Mask:
    """Return the mask with its scale times a factor: the sd of its noise, its window, its chances of change.

    With a table, categories are changed no more than hides most: what has come so far stays while the rest grows.
    """
    check_scale(mask)
    if not (is_real(factor) and 0 < factor < inf):
        raise BadPlan(f"a factor on the scale is a positive number, not {factor!r}")
    scaled: Mask = _multiply_scales(mask, factor, table)
    return scaled


def _multiply_scales(mask: Any, factor: float, table: Table | None) -> Any:
    if isinstance(mask, Chain):
        return replace(mask, masks=tuple(_multiply_scales(one, factor, table) for one in mask.masks))
    most = inf if table is None else largest_factor(mask, table)
    return _map_scales(mask, lambda kind, value: kind.times(value, min(factor, most)))


def writable(mask: Any) -> Any:
    """Return the mask with the figures of its scale rounded to a few digits, towards more noise."""
    return _map_scales(mask, lambda kind, value: kind.up(value))


def _map_scales(mask: Any, change: Callable[[ScaleKind, Any], Any]) -> Any:
    if isinstance(mask, Chain):
        return replace(mask, masks=tuple(_map_scales(one, change) for one in mask.masks))
    return replace(mask, **{name: change(SCALES[type(mask)][name], value) for name, value in _own(mask)})


def _own(mask: Any) -> list[tuple[str, Any]]:
    """Return the figures that say a mask's scale, in its own names."""
    given = [(name, getattr(mask, name)) for name in SCALES.get(type(mask), ())]
    return [(name, value) for name, value in given if value is not None]


def scale_of(mask: Mask) -> dict[str, Any]:
    """Return the figures of a mask's scale by their own names; those of a chain's stages by their masks."""
    if not isinstance(mask, Chain):
        return dict(_own(mask))
    named: dict[str, Any] = {}
    for stage in _stages(mask):
        named |= {f"{type(stage).__name__}({', '.join(stage.columns)}) {n}": v for n, v in _own(stage)}
    return named


def _stages(mask: Any) -> list[Any]:
    return [one for stage in mask.masks for one in _stages(stage)] if isinstance(mask, Chain) else [mask]


def scale_words(mask: Any) -> str:
    """Say the scale in the mask's own names: sd_ratio=0.31; of several stages with the columns that have it."""
    stages = [one for one in _stages(mask) if has_scale(one)]
    if len(stages) < 2:
        return ", ".join(f"{name}={_figure(value)}" for one in stages for name, value in _own(one))
    several = len({type(one) for one in stages}) > 1
    named: dict[str, dict[str, tuple[str, ...]]] = {}
    for stage in stages:
        for name, value in _own(stage):
            alike = named.setdefault(f"{type(stage).__name__} {name}" if several else name, {})
            alike[_figure(value)] = (*alike.get(_figure(value), ()), *stage.columns)
    listed = {
        name: [f"{said} ({_column_list(on)})" for said, on in alike.items()] for name, alike in named.items()
    }
    return "; ".join(f"{name} {', '.join(figures)}" for name, figures in listed.items())


def _column_list(columns: tuple[str, ...]) -> str:
    if len(columns) <= MOST_NAMED:
        return ", ".join(columns)
    return f"{columns[0]} and {len(columns) - 1} more"


def _figure(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_figure, value))})"
    return f"{value:.4g}"


def one_figure(mask: Any) -> tuple[str, float] | None:
    """Return the name and value of a scale that is one figure which grows with the noise, else nothing."""
    own = [(SCALES[type(one)][name], name, value) for one in _stages(mask) for name, value in _own(one)]
    if len(own) != 1 or own[0][0] not in (SD, VARIANCE, WINDOW) or not is_real(own[0][2]):
        return None
    return own[0][1:]


def largest_factor(mask: Any, table: Table) -> float:
    """Return by how much a scale can grow: up to a window of all ranks, up to the changes that hide most.

    In a chain what cannot grow stays as it is while the others grow.
    """
    if isinstance(mask, Chain):
        return max((largest_factor(one, table) for one in _stages(mask) if has_scale(one)), default=1.0)
    if isinstance(mask, RankSwap):
        return 1 / mask.window_ratio
    if isinstance(mask, Pram):
        return _largest_change(mask, table)
    return inf


def _largest_change(mask: Pram, table: Table) -> float:
    """Return where changes hide most: beyond that, what is nearly always changed tells again.

    With `stay` that is where a category is as likely to leave as any other.
    """
    if mask.matrix is not None:
        return _least_telling(np.asarray(mask.matrix))
    assert mask.stay is not None
    fewest = min((len(table.schema[n].categories) for n in mask.columns if n in table.schema), default=2)
    return max((1 - 1 / max(fewest, 2)) / (1 - mask.stay), 1.0)


def _least_telling(matrix: Floats) -> float:
    """Return the factor f, of 1 and more, at which I + f (M - I) tells least of the true category.

    What it tells is the mutual information of true and released category where all are as frequent: convex in the
    table (Cover and Thomas 2006, theorem 2.7.4), so that there is one least value.
    """
    from scipy.optimize import minimize_scalar

    end = 1 / max(1 - row[i] for i, row in enumerate(matrix))  # there a category is certain to be changed
    if end <= 1:
        return 1.0
    apart = matrix - np.eye(len(matrix))

    def told(factor: float) -> float:
        chances = np.maximum(np.eye(len(matrix)) + factor * apart, 0.0)
        mean = np.broadcast_to(chances.mean(axis=0), chances.shape)
        some = chances > 0
        return float((chances[some] * np.log(chances[some] / mean[some])).sum())

    return float(minimize_scalar(told, bounds=(1.0, end), method="bounded", options={"xatol": 1e-6}).x)


def columns_apart(mask: Any, table: Table) -> tuple[Any, ...]:
    """Return masks with one scale each that together do what the mask does, chained in this order.

    Noise that is drawn for each column by itself comes apart by columns. Correlated noise does not: a scale of its own
    for a column would be another law. A stage without a scale stays where it stands.
    """
    if isinstance(mask, Chain):
        return tuple(piece for stage in mask.masks for piece in columns_apart(stage, table))
    joint = not isinstance(mask, BY_COLUMN) or (isinstance(mask, MixtureNoise) and mask.correlated)
    if joint or len(mask.columns) == 1:
        return (mask,)
    return tuple(_of_column(mask, name) for name in mask.columns if not _left_out(mask, table, name))


def groups_apart(mask: Any, table: Table, group_of: Callable[[str], Any]) -> tuple[Any, ...]:
    """Return masks with one scale each as `columns_apart` does, correlated noise by the groups of its columns.

    Noise stays correlated within a group; between groups it is then independent. Noise that keeps all moments needs
    all its columns, and stays whole.
    """
    return tuple(
        piece for whole in columns_apart(mask, table) for piece in _by_groups(whole, table, group_of)
    )


def _by_groups(mask: Any, table: Table, group_of: Callable[[str], Any]) -> tuple[Any, ...]:
    if not isinstance(mask, CorrelatedNoise) or mask.keep != "means":
        return (mask,)
    groups: dict[Any, list[str]] = {}
    for name in mask.columns:
        if not _left_out(mask, table, name):
            groups.setdefault(group_of(name), []).append(name)
    if len(groups) < 2:
        return (mask,)
    return tuple(
        replace(mask, columns=tuple(names), limits=tuple(one for one in mask.limits if one[0] in names))
        for names in groups.values()
    )


def _left_out(mask: Any, table: Table, name: str) -> bool:
    """Whether the mask passes over a column because it is constant."""
    if not isinstance(mask, NoiseOptions) or not mask.skip_constant:
        return False
    values = table.floats(name)
    known = values[~np.isnan(values)]
    return len(known) > 1 and bool((known == known[0]).all())


def _of_column(mask: Any, name: str) -> Any:
    place = mask.columns.index(name)
    own: dict[str, Any] = {"columns": (name,)}
    for option in PER_COLUMN_FIGURES.get(type(mask), ()):
        value = getattr(mask, option)
        if isinstance(value, tuple):
            own[option] = value[place]
    if isinstance(mask, NoiseOptions) and mask.limits:
        own["limits"] = tuple(limit for limit in mask.limits if limit[0] == name)
    return replace(mask, **own)


def join_masks(pieces: Sequence[Any]) -> Any:
    """Return masks as one plan."""
    return pieces[0] if len(pieces) == 1 else Chain(tuple(pieces))
