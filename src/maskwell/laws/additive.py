"""Laws of released amounts given true ones: draw and density side by side.

    z = out(slope x + offset + s(x) e),   log p(z | x) = log density of e at points + log P(e in the other cells)

out is back-transform, limits, unit (`transform`). Kim (1986): e ~ N(0, c^2 Sigma). Slope below 1: moments kept (Shlomo,
in Goldstein and Shlomo, section 1). `SkewedBias` is z = theta x + e with a lognormal theta. Made by `masks`, read by
every attack and every fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..keys import Stream
from ..schema import Column
from .convolution import convolve, noise_from_dict
from .noise import Floats, Noise, Normal, Row, box_nearly, sds_and_correlations
from .spread import Spread, spread_from_dict
from .transform import Outlet, ReleasedCell

Bools = npt.NDArray[np.bool_]

THIN = 1e-9  # an eigenvalue of correlations: noise that is thinner is taken as it stands


def logpdf_nearly(law: Any, z: Floats, x: Floats) -> Floats:
    """Return the log density of each record under any law, rectangles of correlated noise to a hundredth or so."""
    return law.logpdf_nearly(z, x) if isinstance(law, Additive) else np.asarray(law.logpdf(z, x))


@dataclass(frozen=True, slots=True)
class _Cells:
    """Between which noises each value lies, whether that is a point, and what the log density has beside the noise's.

    Closed values and those without noise are not open; `total` is minus infinity for records that cannot be.
    """

    lower: Floats
    upper: Floats
    is_point: Bools
    is_open: Bools
    total: Floats


@dataclass(frozen=True, slots=True)
class Additive:
    """z = slope x + offset + spread(x) noise, on the transformed scale, then out through the outlets.

    `mean_corrected` takes the bias of noise on the log scale away, so that E(z | x) = x before limits.
    `categories` names the codes 0..K-1 where the noise is on category codes.
    """

    form: ClassVar[str] = "additive"
    has_density: ClassVar[bool] = True
    whole_file: ClassVar[bool] = False
    opens_codes: ClassVar[bool] = False
    columns: tuple[str, ...]
    noise: Noise
    outlets: tuple[Outlet, ...]
    slope: float = 1.0
    offsets: Row = ()
    spreads: tuple[Spread | None, ...] = ()
    mean_corrected: bool = False
    categories: tuple[tuple[str, ...], ...] = ()

    def draw(self, x: Floats, stream: Stream) -> Floats:
        """Draw released values for true ones (NaN stays NaN)."""
        return self.leave(self.place(x, self.scaled_noise(x, stream)), x)

    def scaled_noise(self, x: Floats, stream: Stream) -> Floats:
        """Draw the noise of each true value on the scale where it is added."""
        noise = self.noise.draw(stream, self.columns)
        if any(self.spreads):
            for j, spread in enumerate(self.spreads):
                if spread is not None:
                    noise[:, j] *= spread.factor(x[:, j])
        return noise

    def place(self, x: Floats, noise: Floats) -> Floats:
        """Add noise, in place, to where it is centred; what nested releases add to."""
        for j in range(len(self.columns)):
            noise[:, j] += self.centre(x[:, j], j)
        return noise

    def leave(self, noised: Floats, x: Floats) -> Floats:
        """Send noised values out, in place: back-transform, limits, unit."""
        for j, outlet in enumerate(self.outlets):
            noised[:, j] = outlet.leave(noised[:, j], x[:, j])
        return noised

    def logpdf(self, z: Floats, x: Floats) -> Floats:
        """Return the log density of each record over its open columns (probabilities where z is at a limit)."""
        return self.logpdf_with_error(z, x)[0]

    def logpdf_with_error(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density and the absolute error of the rectangle probability inside it."""
        cells = self._cells(z, x)
        total, error = cells.total, np.zeros(len(z))
        for records, chosen, points in _patterns(cells.is_open, cells.is_point, total > -np.inf):
            picked = np.ix_(records, np.array(chosen))
            log, this = self.noise.only(chosen).log_box(cells.lower[picked], cells.upper[picked], points)
            total[records] += log
            error[records] = this
        return total, error

    def logpdf_nearly(self, z: Floats, x: Floats) -> Floats:
        """Return the log density of each record, rectangles of correlated noise to a hundredth or so.

        Of use where records are held against each other by the same function, and an integral for each is too much.
        """
        if not isinstance(self.noise, Normal) or not self.noise.correlations:
            return self.logpdf(z, x)
        if np.linalg.eigvalsh(sds_and_correlations(self.noise.covariance)[1])[0] < THIN:
            return self.logpdf(z, x)
        cells = self._cells(z, x)
        logs = box_nearly(self.noise, cells.lower, cells.upper, cells.is_point, cells.is_open)
        return np.where(cells.total > -np.inf, cells.total + logs, -np.inf)

    def _cells(self, z: Floats, x: Floats) -> _Cells:
        """Return the noise that leads from true values to released ones."""
        lower, upper = np.empty(z.shape, order="F"), np.empty(z.shape, order="F")
        is_point, is_open = np.zeros(z.shape, bool), ~np.isnan(x)
        total, possible = np.zeros(len(z)), np.ones(len(z), bool)
        resolution, sds = self.noise.resolution, np.sqrt(np.diag(self.noise.covariance))
        for j, outlet in enumerate(self.outlets):
            centre, scale, here = self.centre(x[:, j], j), self._scale(x[:, j], j), is_open[:, j].copy()
            cell = outlet.cell(z[:, j], x[:, j], resolution[j] * scale)
            silent = here & (scale * sds[j] == 0)
            units = np.where(silent, 0.0, scale)
            lower[:, j], upper[:, j], is_point[:, j], factor = _standardised_cell(cell, centre, units)
            total += np.where(here, factor, 0.0)
            possible &= ~(here & (lower[:, j] == np.inf))
            if silent.any():  # z must be what x becomes without noise
                possible[silent] &= outlet.leave(centre[silent], x[silent, j]) == z[silent, j]
                is_open[silent, j] = False
        total[~possible] = -np.inf
        return _Cells(lower, upper, is_point, is_open, total)

    def centre(self, x: Floats, j: int) -> Floats:
        """Return where the noise of a column is centred, on the scale on which it is added."""
        centre = self.outlets[j].enter(x)
        if self.slope != 1.0:
            centre = self.slope * centre
        if self.offsets:
            centre = centre + self.offsets[j]
        if self.mean_corrected and self.outlets[j].log_shift is not None:
            centre = centre - self.noise.log_mean_exp(j, self._scale(x, j))
        return centre

    def _scale(self, x: Floats, j: int) -> Floats:
        spread = self.spreads[j] if self.spreads else None
        return np.ones(len(x)) if spread is None else spread.factor(x)

    def released(self, column: Column) -> Column:
        """Describe the released column: codes with noise become numbers, unless they are rounded to codes."""
        outlet = self.outlets[self.columns.index(column.name)]
        if column.kind != "category":
            return _released_number(column, outlet)
        if outlet.unit == 1:
            return column
        unit = None if outlet.unit is None else _number(outlet.unit)
        return replace(column, kind="continuous", unit=unit, categories=(), labels=())

    def then(self, later: Additive) -> Additive | None:
        """Return the law of this noise followed by another on the same columns, where it has a closed form."""
        if any(self.spreads) or any(later.spreads) or self.mean_corrected or later.mean_corrected:
            return None
        coded = any(code is not None for outlet in self.outlets for code in outlet.codes)
        if self.slope != 1.0 or later.slope != 1.0 or self.categories or coded:
            return None
        noise = convolve(self.noise, later.noise)
        if noise is None:
            return None
        offsets = tuple(a + b for a, b in zip(self._shift(), later._shift(), strict=True))
        return Additive(self.columns, noise, later.outlets, offsets=offsets if any(offsets) else ())

    def _shift(self) -> Row:
        return self.offsets or (0.0,) * len(self.columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain data."""
        out: dict[str, Any] = {
            "form": self.form,
            "columns": list(self.columns),
            "noise": self.noise.to_dict(),
        }
        out["outlets"] = [outlet.to_dict() for outlet in self.outlets]
        if self.slope != 1.0:
            out["slope"] = self.slope
        if self.offsets:
            out["offsets"] = list(self.offsets)
        if any(self.spreads):
            out["spreads"] = [None if spread is None else spread.to_dict() for spread in self.spreads]
        if self.mean_corrected:
            out["mean_corrected"] = True
        if self.categories:
            out["categories"] = [list(names) for names in self.categories]
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Additive:
        """Build the law from plain data."""
        return cls(
            columns=tuple(data["columns"]),
            noise=noise_from_dict(data["noise"]),
            outlets=tuple(Outlet.from_dict(outlet) for outlet in data["outlets"]),
            slope=data.get("slope", 1.0),
            offsets=tuple(map(float, data.get("offsets", ()))),
            spreads=tuple(None if s is None else spread_from_dict(s) for s in data.get("spreads", ())),
            mean_corrected=data.get("mean_corrected", False),
            categories=tuple(tuple(names) for names in data.get("categories", ())),
        )


@dataclass(frozen=True, slots=True)
class SkewedBias:
    """z = theta x + e: theta lognormal with mean 1 and sd `bias_sd`, e normal, both drawn for each cell."""

    form: ClassVar[str] = "lognormal bias"
    has_density: ClassVar[bool] = True
    whole_file: ClassVar[bool] = False
    opens_codes: ClassVar[bool] = False
    columns: tuple[str, ...]
    bias_sd: float
    sds: Row
    outlets: tuple[Outlet, ...]

    def draw(self, x: Floats, stream: Stream) -> Floats:
        """Draw released values for true ones (NaN stays NaN)."""
        from ..keys import normals

        log_sd = np.sqrt(np.log1p(self.bias_sd**2))
        out = np.empty(x.shape, order="F")
        for j, (name, outlet) in enumerate(zip(self.columns, self.outlets, strict=True)):
            words = stream.words(name)
            theta = np.exp(log_sd * normals(words[:, 1]) - log_sd**2 / 2)
            out[:, j] = outlet.leave(theta * x[:, j] + self.sds[j] * normals(words[:, 0]), x[:, j])
        return out

    def logpdf(self, z: Floats, x: Floats) -> Floats:
        """Return the log density of each record over its open columns."""
        return self.logpdf_with_error(z, x)[0]

    def logpdf_with_error(self, z: Floats, x: Floats) -> tuple[Floats, Floats]:
        """Return the log density; the columns are independent, so no rectangle is needed."""
        total = np.zeros(len(z))
        for j, outlet in enumerate(self.outlets):
            is_open = ~np.isnan(x[:, j])
            total[is_open] += self._column(z[is_open, j], x[is_open, j], self.sds[j], outlet)
        return total, np.zeros(len(z))

    def _column(self, z: Floats, x: Floats, sd: float, outlet: Outlet) -> Floats:
        from ..kernels.densities import bias_lognormal_log_interval, bias_lognormal_logpdf

        cell = outlet.cell(z, x, np.hypot(sd, self.bias_sd * x) / 4)
        sds, point, box = np.full(len(z), sd), cell.is_point, ~cell.is_point
        out = np.empty(len(z))
        out[point] = bias_lognormal_logpdf(cell.lower[point], x[point], self.bias_sd, sds[point])
        ends = cell.lower[box], cell.upper[box]
        out[box] = bias_lognormal_log_interval(*ends, x[box], self.bias_sd, sds[box])
        return np.where(cell.lower == np.inf, -np.inf, out + cell.log_factor)

    def released(self, column: Column) -> Column:
        """Describe the released column."""
        return _released_number(column, self.outlets[self.columns.index(column.name)])

    def to_dict(self) -> dict[str, Any]:
        """Return the law as plain data."""
        return {
            "form": self.form,
            "columns": list(self.columns),
            "bias_sd": self.bias_sd,
            "sds": list(self.sds),
            "outlets": [outlet.to_dict() for outlet in self.outlets],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SkewedBias:
        """Build the law from plain data."""
        outlets = tuple(Outlet.from_dict(outlet) for outlet in data["outlets"])
        sds = tuple(map(float, data["sds"]))
        return cls(tuple(data["columns"]), float(data["bias_sd"]), sds, outlets)


def _released_number(column: Column, outlet: Outlet) -> Column:
    """Describe a number as it leaves: on its unit, with the codes the mask gives it."""
    same = outlet.unit is None or outlet.unit == column.step
    bottom, top = outlet.codes
    return replace(
        column,
        unit=column.unit if same or outlet.unit is None else _number(outlet.unit),
        top=column.top if top is None else top,
        bottom=column.bottom if bottom is None else bottom,
    )


def _number(unit: Fraction) -> float:
    return int(unit) if unit.denominator == 1 else float(unit)


def _standardised_cell(
    cell: ReleasedCell, centre: Floats, scale: Floats
) -> tuple[Floats, Floats, Bools, Floats]:
    """Return a cell in units of the noise (left as it is where there is none)."""
    safe = np.where(scale == 0, 1.0, scale)
    lower, upper = (cell.lower - centre) / safe, (cell.upper - centre) / safe
    factor = cell.log_factor - np.where(cell.is_point, np.log(safe), 0.0)
    return lower, upper, cell.is_point, factor


def _patterns(
    is_open: Bools, is_point: Bools, wanted: Bools
) -> Iterator[tuple[npt.NDArray[np.int64], list[int], tuple[bool, ...]]]:
    """Group records that have the same open columns and the same points; records with none are passed over."""
    records = np.flatnonzero(wanted & is_open.any(axis=1))
    both = np.packbits(np.concatenate([is_open[records], (is_point & is_open)[records]], axis=1), axis=1)
    alike = len(both) > 0 and bool((both == both[0]).all())
    member = np.zeros(len(both), int) if alike else np.unique(both, axis=0, return_inverse=True)[1]
    order = np.argsort(member.ravel(), kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(member.ravel()[order])) + 1):
        if len(group):
            first = records[group[0]]
            chosen = np.flatnonzero(is_open[first]).tolist()
            yield records[group], chosen, tuple(bool(is_point[first, j]) for j in chosen)
