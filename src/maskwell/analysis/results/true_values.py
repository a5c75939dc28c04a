"""What is known of the true value of each record, from draws that were kept.

Of a number the mean, the sd and quantiles of the draws of x given all that was released, of a category the share of the
draws in which it is k: Monte Carlo sums over p(x, theta | release), in which the parameters are integrated out. Called
by the posterior of `fit(..., keep_truths=True)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...arrow_buffers import from_numpy
from ...errors import BadPlan, nearest
from .draws import Draws, Floats
from .summary import LEVEL, check_level, ends

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 4_000_000  # draws looked at in one go


@dataclass(frozen=True, slots=True)
class Truths:
    """The posterior of a column's true values, one entry for each record in the order of the release.

    Of a number `mean`, `sd` and the interval from `low` to `high`; of a category the `probability` of each of its
    `categories` (records x categories). NaN where nothing was drawn: a response that is missing.
    """

    column: str
    level: float
    categories: tuple[str, ...] = ()
    mean: Floats | None = field(default=None, repr=False)
    sd: Floats | None = field(default=None, repr=False)
    low: Floats | None = field(default=None, repr=False)
    high: Floats | None = field(default=None, repr=False)
    probability: Floats | None = field(default=None, repr=False)

    @classmethod
    def of(cls, draws: Draws, column: str, categories: tuple[str, ...] = (), level: float = LEVEL) -> Truths:
        """Summarise the draws of a column's true values."""
        check_level(level)
        kept = _kept_draws(draws, column)
        if categories:
            return cls(column, level, categories, probability=_shares(kept, len(categories)))
        mean, sd, low, high = _moments(kept, level)
        return cls(column, level, (), mean, sd, low, high)

    def __len__(self) -> int:
        held = self.mean if self.probability is None else self.probability
        return 0 if held is None else len(held)

    def without(self, records: npt.NDArray[np.int64]) -> Truths:
        """Return it with nothing said of some records."""
        held = {name: getattr(self, name) for name in ("mean", "sd", "low", "high", "probability")}
        blank = {name: figures.copy() for name, figures in held.items() if figures is not None}
        for figures in blank.values():
            figures[records] = np.nan
        return replace(self, **blank)

    @property
    def likeliest(self) -> list[str | None]:
        """The likeliest category of each record; None where nothing was drawn."""
        if self.probability is None:
            raise BadPlan(f"column {self.column!r} is a number: take mean, low and high")
        known = ~np.isnan(self.probability[:, 0])
        best = self.probability.argmax(axis=1)
        return [self.categories[k] if is_known else None for k, is_known in zip(best, known, strict=True)]

    @property
    def table(self) -> pa.Table:
        """One row for each record; of a category its probabilities, one column each."""
        import pyarrow as pa

        if self.probability is not None:
            shares = zip(self.categories, self.probability.T, strict=True)
            return pa.table({f"{self.column}[{name}]": from_numpy(share) for name, share in shares})
        figures = ("mean", "sd", "low", "high")
        return pa.table({f"{self.column} {name}": from_numpy(getattr(self, name)) for name in figures})

    def __repr__(self) -> str:
        what = f"one of {len(self.categories)} categories" if self.categories else "mean, sd, interval"
        return f"<Truths of {self.column}: {what}, for {len(self):,} records>"


def _kept_draws(draws: Draws, column: str) -> npt.NDArray[Any]:
    """Return the kept draws of a column: draws x records."""
    if draws.truths is None:
        raise BadPlan("the true values were not kept: fit with keep_truths=True")
    if column not in draws.truth_names:
        hint = nearest(column, draws.truth_names)
        raise BadPlan(f"column {column!r} is not one whose true values were drawn{hint}")
    held = draws.truths[:, :, :, draws.truth_names.index(column)]
    return held.reshape(-1, held.shape[2])


def _moments(kept: npt.NDArray[Any], level: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean, sd and interval of each record, in blocks of records."""
    out = np.empty((4, kept.shape[1]))
    step = max(BLOCK // max(len(kept), 1), 1)
    for start in range(0, kept.shape[1], step):
        block = kept[:, start : start + step].astype(np.float64)
        here = slice(start, start + step)
        out[0, here], out[2:, here] = block.mean(axis=0), np.quantile(block, ends(level), axis=0)
        out[1, here] = block.std(axis=0, ddof=1) if len(block) > 1 else np.nan
    return out[0], out[1], out[2], out[3]


def _shares(kept: npt.NDArray[Any], count: int) -> Floats:
    """Return in which share of the draws each record has each code."""
    shares = [(kept == code).mean(axis=0, dtype=np.float64) for code in range(count)]
    return np.ascontiguousarray(np.stack(shares, axis=1))
