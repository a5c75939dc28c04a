"""The table of a fit: what the draws say of each parameter, beside the fit that takes noise for truth.

Means, sds and equal-tailed intervals of the draws; rank-normalised split R-hat, and effective draws of the bulk and of
the tails (Vehtari, Gelman, Simpson, Carpenter and Buerkner 2021, by arviz), which must be below 1.01 and above 400.
`bias` = naive - adjusted estimate, `widening` = sd / naive sd. `model_fit` lengthens chains by these figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan, nearest
from ...words.phrases import text_table
from .draws import MAX_R_HAT, MIN_ESS, Draws, Floats
from .words import decimals_for, figure, percent

if TYPE_CHECKING:
    import pyarrow as pa

LEVEL = 0.95
TAILS = (0.05, 0.95)  # of the effective draws in the tails
SHOWN = 30  # parameters on one screen


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """R-hat (rank-normalised, split chains) and effective draws in the bulk and the tails, of each parameter."""

    r_hat: Floats
    ess: Floats
    ess_tail: Floats
    fixed: tuple[bool, ...]

    @classmethod
    def of(cls, draws: Draws) -> Diagnostics:
        """Judge the chains of a model of interest; what the sampler says it holds fixed is not judged.

        A parameter that no chain moved, or each only where it was, has an infinite R-hat and no effective draw.
        """
        from arviz_stats.base import array_stats  # type: ignore[attr-defined]

        stats: Any = array_stats
        series: dict[str, Any] = {"chain_axis": 0, "draw_axis": 1}
        values = _two_at_least(draws.values)
        with np.errstate(all="ignore"):
            r_hat = np.asarray(stats.rhat(values, **series), np.float64)
            ess = np.asarray(stats.ess(values, **series), np.float64)
            tail = np.asarray(stats.ess(values, method="tail", prob=TAILS, **series), np.float64)
        stays = (np.ptp(draws.values, axis=1) == 0).all(axis=0) | ~np.isfinite(r_hat + ess + tail)
        independent = bool(draws.info.get("independent", False))  # resamples, not chains: nothing to judge
        fixed = tuple(independent or name in draws.info.get("fixed", ()) for name in draws.names)
        r_hat, ess, tail = np.where(stays, inf, r_hat), np.where(stays, 0.0, ess), np.where(stays, 0.0, tail)
        for figures in (r_hat, ess, tail):
            figures[list(fixed)] = nan
        return cls(r_hat, ess, tail, fixed)

    @property
    def failing(self) -> tuple[int, ...]:
        """The parameters whose chains do not agree or have too few effective draws, the worst first."""
        least = np.minimum(self.ess, self.ess_tail)
        bad = (self.r_hat >= MAX_R_HAT) | (least <= MIN_ESS)
        order = np.lexsort((least, -self.r_hat))  # NaN, the fixed ones, never fail
        apart = [int(k) for k in order if self.r_hat[k] >= MAX_R_HAT]
        few = [int(k) for k in np.argsort(least) if bad[k] and not self.r_hat[k] >= MAX_R_HAT]
        return (*apart, *few)

    @property
    def short(self) -> bool:
        """Whether some parameter has too few effective draws."""
        return bool((np.minimum(self.ess, self.ess_tail) <= MIN_ESS).any())


def _two_at_least(values: Floats) -> Floats:
    """Return chains x draws x parameters with one chain halved: R-hat compares chains."""
    half = values.shape[1] // 2
    return values if len(values) > 1 or half < 4 else np.concatenate([values[:, :half], values[:, -half:]])


@dataclass(frozen=True, slots=True)
class SummaryRow:
    """One parameter: posterior mean, sd and equal-tailed interval, how well the chains know it, and the naive fit.

    `bias` is what the noise does to the naive estimate (naive less adjusted), `bias_sds` the same in posterior sds;
    `widening` is how many times as wide the honest sd is as the naive one. NaN where there is no naive fit.
    """

    name: str
    estimate: float
    sd: float
    low: float
    high: float
    r_hat: float
    ess: float
    ess_tail: float
    naive: float = nan
    naive_sd: float = nan
    naive_low: float = nan
    naive_high: float = nan

    @property
    def bias(self) -> float:
        """The naive estimate less the adjusted one."""
        return self.naive - self.estimate

    @property
    def bias_sds(self) -> float:
        """The bias in posterior sds."""
        return self.bias / self.sd if self.sd > 0 else nan

    @property
    def widening(self) -> float:
        """The posterior sd over that of the naive fit."""
        return self.sd / self.naive_sd if self.naive_sd > 0 else nan

    def to_dict(self) -> dict[str, Any]:
        """Return the figures; None stands for what is not known or infinite."""
        out = asdict(self) | {"bias": self.bias, "bias_sds": self.bias_sds, "widening": self.widening}
        return {name: plain(value) for name, value in out.items()}


@dataclass(frozen=True, slots=True)
class Summary:
    """The parameters of a model of interest, one row each; iterate, index by name, or take `table`."""

    level: float
    rows: tuple[SummaryRow, ...] = field(repr=False)

    @classmethod
    def of(cls, draws: Draws, naive: Draws | None, found: Diagnostics, level: float = LEVEL) -> Summary:
        """Summarise draws, beside those of the naive fit where it has the same parameter."""
        check_level(level)
        adjusted = _moments(draws, level)
        beside = {} if naive is None else dict(zip(naive.names, _moments(naive, level), strict=True))
        none = (nan, nan, nan, nan)
        rows = [
            SummaryRow(name, *adjusted[k], *_parameter_diagnostics(found, k), *beside.get(name, none))
            for k, name in enumerate(draws.names)
        ]
        return cls(level, tuple(rows))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[SummaryRow]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> SummaryRow:
        return self.rows[index_of(name, [row.name for row in self.rows])]

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table."""
        import pyarrow as pa

        return pa.Table.from_pylist([row.to_dict() for row in self.rows], schema=_arrow_schema())

    def to_dict(self) -> dict[str, Any]:
        """Return the level and, by parameter, the figures."""
        rows = {row.name: {k: v for k, v in row.to_dict().items() if k != "name"} for row in self.rows}
        return {"level": self.level, "parameters": rows}

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, most: int | None = None) -> list[str]:
        """Return the table as text, with no more than so many parameters."""
        beside = any(not isnan(row.naive) for row in self.rows)
        judged = any(not isnan(row.r_hat) for row in self.rows)  # resamples are not
        head = ["", "estimate", "sd", f"{100 * self.level:g}% interval"]
        head += ["R-hat", "ESS"] if judged else []
        head += ["unadjusted", "bias/sd", "wider"] if beside else []
        shown = self.rows[:most]
        lines = text_table([head, *(_cells(row, judged, beside) for row in shown)])
        if len(shown) < len(self.rows):
            lines.append(f"  and {len(self.rows) - len(shown):,} more parameters: see .summary()")
        return lines


def check_level(level: float) -> None:
    """Refuse what is no level of an interval."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise BadPlan(f"the level of an interval lies between 0 and 1, such as 0.95, and is not {level!r}")


def index_of(name: str, names: Sequence[str]) -> int:
    """Return where a parameter is, or refuse with the nearest name."""
    if name not in names:
        raise BadPlan(f"there is no parameter {name!r}{nearest(str(name), names)}: see .names")
    return list(names).index(name)


def ends(level: float) -> tuple[float, float]:
    """Return the two quantiles of an equal-tailed interval."""
    return (1 - level) / 2, (1 + level) / 2


def plain(value: Any) -> Any:
    """Return a figure for JSON: None for NaN and infinity."""
    return None if isinstance(value, float) and not isfinite(value) else value


def _moments(draws: Draws, level: float) -> list[tuple[float, float, float, float]]:
    """Return mean, sd and interval of each parameter over all chains."""
    flat = draws.values.reshape(-1, len(draws.names))
    sd = flat.std(axis=0, ddof=1) if len(flat) > 1 else np.full(flat.shape[1], nan)
    low, high = np.quantile(flat, ends(level), axis=0)
    columns = (flat.mean(axis=0), sd, low, high)
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d in zip(*columns, strict=True)]


def _parameter_diagnostics(found: Diagnostics, k: int) -> tuple[float, float, float]:
    return float(found.r_hat[k]), float(found.ess[k]), float(found.ess_tail[k])


def _cells(row: SummaryRow, judged: bool, beside: bool) -> list[str]:
    digits = decimals_for(row.sd)
    estimate, sd, low, high = (figure(value, digits) for value in (row.estimate, row.sd, row.low, row.high))
    cells = [row.name, estimate, sd, f"{low} to {high}"]
    if judged:
        cells += [figure(row.r_hat, 3), figure(min(row.ess, row.ess_tail), 0)]
    if beside:
        cells += [figure(row.naive, digits), figure(row.bias_sds, 1), percent(row.widening - 1)]
    return cells


def _arrow_schema() -> pa.Schema:
    import pyarrow as pa

    blank = SummaryRow("", nan, nan, nan, nan, nan, nan, nan).to_dict()
    return pa.schema([(name, pa.string() if name == "name" else pa.float64()) for name in blank])
