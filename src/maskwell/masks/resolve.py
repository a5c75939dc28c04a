"""Where a plan meets the data: checks, moments, nearest correlations (Higham 2002), rounding, how columns leave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from typing import Any

import numpy as np

from ..engines import Moments
from ..errors import BadPlan, raise_all
from ..laws import Additive, Outlet, Power, Spread, Step
from ..laws.noise import Matrix, Row
from ..laws.transform import beyond, inside, on_unit
from ..masking import Setting, WrittenPlan
from ..notes import Note
from ..schema import Column
from ..table import Floats, Table
from ..tolerances import is_real
from .size_grid import FINEST_STEP, correlation_step, sizes_on_grid, step_from

Limit = tuple[str, float | None, float | None]

LARGEST = 1e150  # beyond it the variance overflows
# Of noise to data: beyond them floating point has one and not the other
MOST_RATIO, LEAST_RATIO = 1e30, 1e-30
LOST = 4  # a unit of this many sds leaves 95% of the values as they are
HIDDEN = 10  # sds of the noise: what the offset on a card leaves open about the last record
MOVED = 0.01  # sds of the noise: from here on a note says that a mean may move
REPAIR = 0.1  # the most a correlation may move when a matrix is made positive semi-definite


@dataclass(frozen=True, kw_only=True)
class NoiseOptions(WrittenPlan):
    """What every noise mask can be told.

    `transform="log"` adds the noise to log(x + shift); `mean_corrected` then keeps the means. `clamp` keeps
    values one unit inside the top and bottom codes; `limits` are further limits, {column: (low, high)} or
    (column, low, high) each, or (low, high) of a mask's only column; nothing is no limit.
    `spread` makes the noise depend on the value. `skip_constant` passes over columns with one value.
    """

    transform: str | None = None
    shift: float = 0.0
    mean_corrected: bool = True
    clamp: bool = True
    limits: tuple[Limit, ...] = ()
    spread: Step | Power | None = None
    skip_constant: bool = False

    def option_problems(self, columns: tuple[str, ...]) -> list[str]:
        """Return what is wrong with the options of a mask of some columns."""
        listed, found = _listed_limits(self.limits, columns)
        object.__setattr__(self, "limits", listed)
        if self.transform not in (None, "log"):
            found.append(f"transform must be 'log' or left out, not {self.transform!r}")
        if self.transform is None and self.shift:
            found.append("a shift is for transform='log' only")
        for name, low, high in self.limits:
            if name not in columns:
                found.append(f"limits name column {name!r}, which this mask does not touch")
            if low is not None and high is not None and low >= high:
                found.append(f"the limits of {name!r} must rise")
        return found


LIMITS = "limits are {'column': (low, high)}, such as {'INCOME': (0, None)}"


def _listed_limits(given: Any, columns: tuple[str, ...]) -> tuple[tuple[Limit, ...], list[str]]:
    """Return limits as (column, low, high), however they were given, and what is wrong with them."""
    if isinstance(given, Mapping):
        listed = [(name, *(ends if _is_row(ends) else (ends,))) for name, ends in given.items()]
    elif not _is_row(given):
        return (), [f"{LIMITS}, not a {type(given).__name__}"]
    elif len(given) == 2 and not any(map(_is_row, given)):
        if len(columns) > 1:
            return (), [f"limits of several columns need their names: {LIMITS}"]
        listed = [(columns[0], *given)] if columns else []
    else:
        listed = [given] if len(given) == 3 and isinstance(given[0], str) else list(given)
    kept, found = list[Limit](), list[str]()
    for one in listed:
        if not (_is_row(one) and len(one) == 3 and all(end is None or _is_end(end) for end in one[1:])):
            found.append(f"{LIMITS}; a limit is a number or nothing (None)")
        else:
            kept.append((one[0], one[1], one[2]))
    return tuple(kept), list(dict.fromkeys(found))


def _is_end(given: object) -> bool:
    """Whether a limit is a number that values can lie beside; of no limit nothing is said, not infinity."""
    return is_real(given) and isfinite(given)


def _is_row(given: object) -> bool:
    return isinstance(given, Sequence) and not isinstance(given, str)


def names(columns: Sequence[str] | str) -> tuple[str, ...]:
    """Return column names as a tuple; one name may be given bare."""
    return (columns,) if isinstance(columns, str) else tuple(columns)


def check_names(columns: tuple[str, ...]) -> list[str]:
    """Return what is wrong with a list of columns."""
    if not columns:
        return ["a mask needs at least one column"]
    return [
        f"column {name!r} is named twice" for name in sorted({n for n in columns if columns.count(n) > 1})
    ]


def exactly_one(what: str, **given: object) -> list[str]:
    """Check that exactly one of several options is given."""
    present = [name for name, value in given.items() if value is not None]
    if len(present) == 1:
        return []
    return [f"{what}: give exactly one of {' and '.join(given)}"]


def in_range(name: str, value: float | None, low: float, high: float = np.inf) -> list[str]:
    """Check that an option lies above `low` and not above `high`."""
    if value is None or (low < value <= min(high, MOST_RATIO) and abs(value) >= LEAST_RATIO):
        return []
    if np.isfinite(value) and low < value <= high:
        return [
            f"{name} must lie between {LEAST_RATIO:g} and {MOST_RATIO:g}: other noise is none, or all there is"
        ]
    upper = f" and at most {high:g}" if np.isfinite(high) else ""
    return [f"{name} must lie above {low:g}{upper}"]


def figures(
    name: str, given: float | tuple[float, ...], columns: tuple[str, ...], *, zero: bool = False
) -> list[str]:
    """Check one figure for all columns, or one for each: finite, and positive unless zero is allowed."""
    values = np.atleast_1d(np.asarray(given, dtype=np.float64))
    found = []
    if np.any(
        np.isfinite(values) & ((np.abs(values) > LARGEST) | ((values != 0) & (np.abs(values) < 1 / LARGEST)))
    ):
        found.append(f"{name} must lie between {1 / LARGEST:g} and {LARGEST:g}, or arithmetic loses it")
    if np.ndim(given) and len(values) != len(columns):
        found.append(f"{name} has {len(values)} figures for {len(columns)} columns")
    if not np.all(np.isfinite(values) & ((values >= 0) if zero else (values > 0))):
        found.append(f"{name} must not be negative" if zero else f"{name} must be positive")
    return found


def figure_or_tuple(given: object) -> object:
    """Return a list of figures as a tuple, one figure as it is."""
    return tuple(given) if isinstance(given, list) else given


def require_columns(table: Table, columns: Sequence[str], kinds: tuple[str, ...]) -> None:
    """Refuse columns that are not there, of another kind, or that no mask may touch."""
    problems = table.schema.missing_columns(columns)
    for name in columns:
        if name in table.schema:
            problems += _kind_problems(table.schema[name], kinds)
    raise_all(problems, BadPlan)


def _kind_problems(column: Column, kinds: tuple[str, ...]) -> list[str]:
    found = []
    if column.kind not in kinds:
        found.append(
            f"column {column.name!r} is of kind {column.kind!r}; this mask is for {' or '.join(kinds)}"
        )
    if taboo := sorted(column.roles & {"id", "weight", "group"}):
        found.append(f"column {column.name!r} has the role {taboo[0]!r}, which is never masked by noise")
    if column.drop:
        found.append(f"column {column.name!r} is dropped, so it cannot be masked")
    return found


@dataclass(frozen=True)
class PreparedColumns:
    """The columns a noise mask will touch, their values on the scale of the noise, and their moments."""

    columns: tuple[str, ...]
    values: Floats
    moments: Moments
    notes: tuple[Note, ...] = ()


def prepare(
    table: Table,
    columns: tuple[str, ...],
    options: NoiseOptions,
    setting: Setting,
    *,
    relative: bool = True,
    joint: bool = False,
) -> PreparedColumns:
    """Check the columns and compute the moments their noise needs (`relative`: sds; `joint`: correlations)."""
    require_columns(table, columns, ("continuous", "integer"))
    values = table.values(columns)
    notes: tuple[Note, ...] = ()
    constant = [name for j, name in enumerate(columns) if _is_constant(values[:, j])]
    if constant and options.skip_constant:
        if len(constant) == len(columns):
            raise BadPlan("every column to be masked is constant")
        notes = (Note("masks.constant", {"columns": tuple(constant)}),)
        values = values[:, [name not in constant for name in columns]]
        columns = tuple(name for name in columns if name not in constant)
        constant = []
    least = len(columns) + 2 if joint else 2 if relative else 1
    problems = [p for j, n in enumerate(columns) for p in _value_problems(n, values[:, j], options, least)]
    raise_all(problems + [_constant(name) for name in constant if relative], BadPlan)
    if options.transform == "log":
        values = np.log(values + options.shift)
    moments = setting.engine.moments(values)
    tiny = [n for n, variance in zip(columns, moments.variances, strict=True) if relative and variance == 0]
    raise_all([f"column {n!r}: the variance underflows; rescale the column" for n in tiny], BadPlan)
    return PreparedColumns(columns, values, moments, notes)


def _is_constant(values: Floats) -> bool:
    return bool(np.count_nonzero(~np.isnan(values)) > 1 and np.fmin.reduce(values) == np.fmax.reduce(values))


def _constant(name: str) -> str:
    return f"column {name!r} is constant, so noise in proportion to its sd is undefined; skip_constant leaves it out"


def _value_problems(name: str, values: Floats, options: NoiseOptions, least: int) -> list[str]:
    count = int(np.count_nonzero(~np.isnan(values)))
    if not count:
        return [f"column {name!r} has no open value to mask; drop it from the plan"]
    if count == 1 < least:
        return [f"column {name!r} has one open value, so its variance is undefined; drop it from the plan"]
    too_large = np.flatnonzero(np.abs(values) > LARGEST)
    if len(too_large):
        return [
            f"column {name!r}: the variance overflows (first at record {too_large[0] + 1}); rescale the column"
        ]
    found = _too_few(name, count, least) if count < least else []
    return found + (_log_problems(name, values, options.shift) if options.transform == "log" else [])


def _too_few(name: str, count: int, least: int) -> list[str]:
    return [
        f"column {name!r} has {count} open values; the covariance of {least - 2} columns is undefined "
        f"below {least}: mask fewer columns together or use independent noise"
    ]


def _log_problems(name: str, values: Floats, shift: float) -> list[str]:
    below = np.flatnonzero(values + shift <= 0)
    if not len(below):
        return []
    return [
        f"column {name!r} has {len(below):,} values at or below {0 - shift:g} (first at record {below[0] + 1}), "
        "where the logarithm is undefined; give a larger shift"
    ]


def card_sizes(values: Floats, prepared: PreparedColumns, setting: Setting) -> Row:
    """Round data-derived sizes to those that a card of so few records may show, unless the study wants them exact."""
    if setting.exact:
        return tuple(map(float, values))
    return sizes_on_grid(values, prepared.moments.counts)


def offsets(
    prepared: PreparedColumns, slope: float, sds: Row, setting: Setting
) -> tuple[Row, tuple[Note, ...]]:
    """Return (1 - slope) x mean, rounded so that it gives no record away, and what that does to the means.

    Who knows all records but one solves offset / (1 - slope) = mean for the last one, with an error spread
    evenly over n step / (1 - slope). That is to be ten sds of the noise or more (an rms error of 2.9 sds), so
    that the card tells less about a record than the record's own release. Two decimal places below
    the noise's first digit are the finest step; in small files the step is coarser, and means move.
    """
    exact = (1 - slope) * prepared.moments.means
    if setting.exact:
        return tuple(map(float, exact)), ()
    rounded, notes = [], []
    for name, value, sd, count in zip(prepared.columns, exact, sds, prepared.moments.counts, strict=True):
        step = max(default_unit(sd), step_from(HIDDEN * sd * (1 - slope) / float(count)))
        rounded.append(float(on_unit(np.array([value]), step)[0]))
        if float(step) / 2 > MOVED * sd:
            notes.append(Note("masks.mean_moves", {"column": name, "sds": float(step) / 2 / sd}))
    return tuple(rounded), tuple(notes)


def correlations(prepared: PreparedColumns, setting: Setting) -> tuple[Matrix, tuple[Note, ...]]:
    """Return the correlations the noise will have, and what had to be done to them."""
    matrix, notes = _filled_correlations(prepared)
    matrix, said = _repaired_correlations(matrix, prepared)
    if setting.exact:
        return tuple(map(tuple, matrix.tolist())), (*notes, *said)
    step = correlation_step(int(prepared.moments.counts.min()))
    rounded, shrunk = _on_steps(matrix, step)
    if shrunk:
        said = (*said, Note("masks.correlations_shrunk", {"share": shrunk, "step": float(step)}))
    return tuple(map(tuple, rounded.tolist())), (*notes, *said)


def _filled_correlations(prepared: PreparedColumns) -> tuple[Floats, tuple[Note, ...]]:
    matrix = prepared.moments.correlations.copy()
    undefined = np.argwhere(np.isnan(np.triu(matrix, 1)))
    matrix[np.isnan(matrix)] = 0.0
    return matrix, tuple(
        Note("masks.seldom_open_together", {"first": prepared.columns[i], "second": prepared.columns[j]})
        for i, j in undefined
    )


def _repaired_correlations(matrix: Floats, prepared: PreparedColumns) -> tuple[Floats, tuple[Note, ...]]:
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest >= -1e-10:
        return matrix, ()
    repaired = nearest_correlation(matrix)
    moved = float(np.abs(repaired - matrix).max())
    if moved > REPAIR:
        i, j = np.unravel_index(np.abs(repaired - matrix).argmax(), matrix.shape)
        raise BadPlan(
            f"the correlations of pairwise-open records contradict each other (smallest eigenvalue {smallest:.3g}); "
            f"making them consistent would move that of {prepared.columns[i]!r} and {prepared.columns[j]!r} by "
            f"{moved:.2f}, more than {REPAIR}: mask these columns in separate groups"
        )
    return repaired, (Note("masks.correlations_repaired", {"eigenvalue": smallest, "moved": moved}),)


def nearest_correlation(matrix: Floats, *, iterations: int = 500, tolerance: float = 1e-12) -> Floats:
    """Return the nearest correlation matrix (Higham's alternating projections with Dykstra's correction)."""
    current, correction = matrix.copy(), np.zeros_like(matrix)
    for _ in range(iterations):
        shifted = current - correction
        eigenvalues, vectors = np.linalg.eigh(shifted)
        positive = (vectors * np.clip(eigenvalues, 0.0, None)) @ vectors.T
        correction = positive - shifted
        following = (positive + positive.T) / 2
        np.fill_diagonal(following, 1.0)
        done = float(np.abs(following - current).max()) < tolerance
        current = following
        if done:
            break
    return _clip_eigenvalues(current)


def _clip_eigenvalues(matrix: Floats) -> Floats:
    """Clip what is left of negative eigenvalues and restore the unit diagonal."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    positive = (vectors * np.clip(eigenvalues, 0.0, None)) @ vectors.T
    sds = np.sqrt(np.diag(positive))
    lifted = positive / np.outer(sds, sds)
    np.fill_diagonal(lifted, 1.0)
    return np.asarray((lifted + lifted.T) / 2)


def _on_steps(matrix: Floats, step: float) -> tuple[Floats, float]:
    """Round to steps (of two decimals), then shrink all correlations by as few percent as keep the matrix consistent.

    Consistent means that no direction loses more than half of its noise by the rounding: 0.997 rounded to 1
    would leave the difference of two columns in clear.
    """
    for percent in range(101):
        shrunk = (1 - percent / 100) * matrix
        rounded = np.round(shrunk if step == FINEST_STEP else np.round(shrunk / step) * step, 2) + 0.0
        np.fill_diagonal(rounded, 1.0)
        if np.linalg.eigvalsh(rounded - matrix / 2)[0] >= -1e-12:
            return rounded, percent / 100
    return np.eye(len(matrix)), 1.0


def spreads(
    prepared: PreparedColumns, table: Table, options: NoiseOptions, setting: Setting
) -> tuple[tuple[Spread | None, ...], Floats]:
    """Return the spread of each column and the divisor that keeps the planned average variance."""
    count = len(prepared.columns)
    if options.spread is None:
        return (), np.ones(count)
    if isinstance(options.spread, Step):
        return (options.spread,) * count, np.ones(count)
    with np.errstate(over="ignore"):
        squares = options.spread.factor(table.values(prepared.columns)) ** 2
    raise_all(
        [p for j, n in enumerate(prepared.columns) for p in _spread_problems(n, squares[:, j])], BadPlan
    )
    return (options.spread,) * count, np.sqrt(setting.engine.moments(squares).means)


def _spread_problems(name: str, squares: Floats) -> list[str]:
    too_large = np.flatnonzero(squares > LARGEST)
    if len(too_large):
        return [
            f"column {name!r}: the power of its values overflows (first at record {too_large[0] + 1}); "
            "rescale the column or take a smaller exponent"
        ]
    if not np.any(squares > 0):
        return [
            f"column {name!r} is zero throughout, so a power of it gives no noise; give the spread a floor"
        ]
    return []


def outlets(
    table: Table, prepared: PreparedColumns, options: NoiseOptions, sds: Floats
) -> tuple[Outlet, ...]:
    """Return how each column leaves; `sds` is the size of the noise on the scale where it is added."""
    log_shift = options.shift if options.transform == "log" else None
    problems, out = [], []
    for j, name in enumerate(prepared.columns):
        column = table.schema[name]
        typical = sds[j] * (np.exp(prepared.moments.means[j]) if log_shift is not None else 1.0)
        unit = column.step or _own_unit(column, typical, options)
        if unit > LOST * typical:
            problems.append(
                f"column {name!r}: noise of sd {typical:.2g} is lost in its unit {float(unit):g}, almost every "
                "value would leave as it is; more noise, or a finer unit in the schema"
            )
        if not options.clamp and (column.top is not None or column.bottom is not None):
            problems.append(
                f"column {name!r} has top or bottom codes: with clamp=False noise could cross them and be "
                "taken for a code; clamp, or declare the codes as missing codes"
            )
        avoid = numeric_codes(column, unit)
        low, high = _limits(column, unit, avoid, options)
        if low is not None and high is not None and low >= high:
            problems.append(f"column {name!r}: its limits and codes leave no room for two values of its unit")
        out.append(Outlet(unit, low, high, log_shift=log_shift, avoid=avoid))
    raise_all(problems, BadPlan)
    return tuple(out)


def _own_unit(column: Column, typical: float, options: NoiseOptions) -> Fraction:
    """Return the unit of a column that declares none: that of its noise, or of the room its limits leave if finer."""
    lows = [low for name, low, _ in options.limits if name == column.name and low is not None]
    highs = [high for name, _, high in options.limits if name == column.name and high is not None]
    if options.clamp:
        lows += [] if column.bottom is None else [column.bottom]
        highs += [] if column.top is None else [column.top]
    room = min(highs) - max(lows) if lows and highs else 0.0
    return default_unit(min(typical, room) if room > 0 else typical)


def _limits(
    column: Column, unit: Fraction, avoid: tuple[float, ...], options: NoiseOptions
) -> tuple[float | None, float | None]:
    """Return the tightest limits, on the grid of the unit and on no code."""
    lows = [inside(a, 1, unit, avoid) for n, a, _ in options.limits if n == column.name and a is not None]
    highs = [inside(b, -1, unit, avoid) for n, _, b in options.limits if n == column.name and b is not None]
    if options.clamp and column.bottom is not None:
        lows.append(beyond(column.bottom, 1, unit, avoid))
    if options.clamp and column.top is not None:
        highs.append(beyond(column.top, -1, unit, avoid))
    return max(lows, default=None), min(highs, default=None)


def numeric_codes(column: Column, unit: Fraction | None = None) -> tuple[float, ...]:
    """Return the declared missing codes that are numbers, on the grid of a unit if one is given."""
    codes = []
    for code in column.missing:
        with suppress(ValueError, OverflowError):
            if unit is None or (Fraction(str(code)) / unit).denominator == 1:
                codes.append(float(code))
    return tuple(codes)


def check_means(law: Additive, table: Table) -> None:
    """Refuse noise on the log scale that has no mean to correct (Laplace noise of an sd from sqrt 2 on)."""
    values = table.values(law.columns)
    problems = []
    for j, name in enumerate(law.columns):
        scale = law.spreads[j].factor(values[:, j]) if any(law.spreads) else np.ones(1)  # type: ignore[union-attr]
        if np.any(np.isinf(law.noise.log_mean_exp(j, np.fmax.reduce(scale, keepdims=True)))):
            problems.append(
                f"column {name!r}: this much {law.noise.form} noise on the log scale has no mean to correct; "
                "use less noise, shape='normal' or mean_corrected=False"
            )
    raise_all(problems, BadPlan)


def default_unit(sd: float) -> Fraction:
    """Return the released unit of a column that has none: two decimal places below the noise's first digit."""
    return Fraction(10) ** (int(np.floor(np.log10(sd))) - 2)


def per_column(given: float | Sequence[float], columns: tuple[str, ...], kept: tuple[str, ...]) -> Floats:
    """Return one figure for each column that is kept, from one for all or one for each that was named."""
    values = np.broadcast_to(np.asarray(given, dtype=np.float64), (len(columns),))
    return np.asarray(values[[columns.index(name) for name in kept]])
