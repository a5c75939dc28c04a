"""What a comparison gives: figures of the truth, of the release, and as an analyst corrects them by the card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..analysis.corrections import Forecast
from ..errors import BadPlan, nearest
from ..notes import Note
from ..table import Floats
from .figures import PROBABILITIES, REACH, flat, overlap
from .models import ModelUtility
from .verdicts import Judgement

NONE = float("nan")


@dataclass(frozen=True, slots=True)
class ColumnUtility:
    """One column before and after. Figures that a column has none of are not a number.

    `kind` is that of the release. `mean_corrected` and `sd_corrected` are what an analyst computes from the release
    and its card, `corrected_by` how, and `why_not` why they cannot. `quantiles` stand at `probabilities`. Categories
    have `shares` (of the open records), `total_variation` and, where the card undoes the changes, `shares_corrected`.
    `records` are the open ones of the release; `changed` is the share of the records, open on both sides, whose value
    is another. `overlap` is that of the 95% intervals of the mean, the released values taken at their word.
    `hellinger` has what chance makes taken off; one sd of chance alone makes a distance of `hellinger_chance`.
    """

    name: str
    kind: str
    masked: bool
    open_share: float
    open_share_after: float
    records: int = 0
    changed: float = 0.0
    mean: float = NONE
    mean_after: float = NONE
    mean_corrected: float = NONE
    mean_error: float = NONE
    mean_error_after: float = NONE
    overlap: float = NONE
    sd: float = NONE
    sd_after: float = NONE
    sd_corrected: float = NONE
    quantiles: tuple[float, ...] = ()
    quantiles_after: tuple[float, ...] = ()
    ks: float = NONE
    hellinger: float = NONE
    hellinger_chance: float = NONE
    total_variation: float = NONE
    shares: Mapping[str, float] = field(default_factory=dict)
    shares_after: Mapping[str, float] = field(default_factory=dict)
    shares_corrected: Mapping[str, float] = field(default_factory=dict)
    corrected_by: str = ""
    why_not: str = ""
    notes: tuple[Note, ...] = ()

    @property
    def probabilities(self) -> tuple[float, ...]:
        """Where the quantiles stand."""
        return PROBABILITIES

    @property
    def is_number(self) -> bool:
        """Whether the column leaves as a number."""
        return self.kind != "category"

    @property
    def variance(self) -> float:
        """The variance of the truth."""
        return self.sd**2

    @property
    def variance_after(self) -> float:
        """The variance of the release."""
        return self.sd_after**2

    @property
    def variance_corrected(self) -> float:
        """The variance as the card corrects it."""
        return self.sd_corrected**2

    @property
    def shift(self) -> float:
        """By how many of its sds the mean moved."""
        return (self.mean_after - self.mean) / self.sd if self.sd > 0 else NONE

    @property
    def overlap_corrected(self) -> float:
        """How far the 95% interval about the corrected mean overlaps the true one."""
        return overlap((self.mean, self.mean_error), (self.mean_corrected, self.mean_error_after))

    @property
    def sd_ratio(self) -> float:
        """How many times as large the sd became."""
        return self.sd_after / self.sd if self.sd > 0 else NONE

    @property
    def sd_ratio_corrected(self) -> float:
        """How many times as large the sd is once corrected: 1 where the correction is perfect."""
        return self.sd_corrected / self.sd if self.sd > 0 else NONE

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        derived: tuple[str, ...] = (
            "variance",
            "variance_after",
            "variance_corrected",
            "shift",
            "sd_ratio",
            "sd_ratio_corrected",
        )
        derived += ("overlap_corrected", "probabilities", "notes")
        out = asdict(self) | {name: getattr(self, name) for name in derived}
        return flat(out)


@dataclass(frozen=True, slots=True)
class CorrelationUtility:
    """Correlations of the numbers, each pair over the records where both are open.

    `corrected` has the noise's own covariance taken out, and is not a number for pairs where the card does not allow
    that. Differences are absolute, over the pairs of different columns; `fewest` are the records of the pair that has
    fewest.
    """

    names: tuple[str, ...]
    before: Floats = field(repr=False)
    after: Floats = field(repr=False)
    corrected: Floats = field(repr=False)
    fewest: int = 1
    notes: tuple[Note, ...] = ()

    @property
    def largest(self) -> float:
        """The largest difference of a released correlation from the true one."""
        return self._worst(self.after)[0]

    @property
    def largest_pair(self) -> tuple[str, ...]:
        """The columns of the largest difference."""
        return self._worst(self.after)[1]

    @property
    def mean(self) -> float:
        """The mean difference of the released correlations."""
        return self._mean(self.after)

    @property
    def largest_corrected(self) -> float:
        """The largest difference of a corrected correlation from the true one."""
        return self._worst(self.corrected)[0]

    @property
    def mean_corrected(self) -> float:
        """The mean difference of the corrected correlations."""
        return self._mean(self.corrected)

    def _apart(self, other: Floats) -> Floats:
        return np.asarray(np.abs(other - self.before)[np.triu_indices(len(self.names), 1)])

    def _mean(self, other: Floats) -> float:
        apart = self._apart(other)
        apart = apart[np.isfinite(apart)]
        return float(apart.mean()) if len(apart) else NONE

    def _worst(self, other: Floats) -> tuple[float, tuple[str, ...]]:
        apart = self._apart(other)
        if not np.isfinite(apart).any():
            return NONE, ()
        rows, columns = np.triu_indices(len(self.names), 1)
        at = int(np.nanargmax(apart))
        return float(apart[at]), (self.names[rows[at]], self.names[columns[at]])

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        matrices = {name: getattr(self, name).tolist() for name in ("before", "after", "corrected")}
        figures = (
            "fewest",
            "largest",
            "largest_pair",
            "mean",
            "largest_corrected",
            "mean_corrected",
            "notes",
        )
        return flat({"names": self.names, **matrices, **{name: getattr(self, name) for name in figures}})


@dataclass(frozen=True, slots=True)
class GroupUtility:
    """The mean of a column in one sub-domain (a level of a grouping column) before and after."""

    group: str
    level: str
    column: str
    records: int
    mean: float
    mean_after: float
    error: float
    error_after: float
    overlap: float

    @property
    def interval(self) -> tuple[float, float]:
        """The 95% interval of the true mean."""
        return self.mean - REACH * self.error, self.mean + REACH * self.error

    @property
    def interval_after(self) -> tuple[float, float]:
        """The 95% interval of the released mean, the released values taken at their word."""
        return self.mean_after - REACH * self.error_after, self.mean_after + REACH * self.error_after

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return flat(asdict(self))


@dataclass(frozen=True, slots=True)
class AssociationUtility:
    """A number by a category, one of the two masked: the level of the category whose mean moved most beyond chance.

    `records` are the fewer of the level's open records before and after, `sd` that of the number in the truth.
    `explained` and `explained_after` are the shares of the number's variance that lie between the levels (eta squared).
    """

    category: str
    column: str
    level: str
    records: int
    mean: float
    mean_after: float
    sd: float
    explained: float
    explained_after: float

    @property
    def shift(self) -> float:
        """By how many sds of the number the mean of the level moved."""
        return (self.mean_after - self.mean) / self.sd if self.sd > 0 else NONE

    @property
    def chance(self) -> float:
        """A standard error of such a mean, in sds of the number."""
        return float(max(self.records, 1) ** -0.5)

    @property
    def beyond_chance(self) -> float:
        """By how much more than a standard error the mean moved, in sds."""
        return abs(self.shift) - self.chance

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        return flat({**asdict(self), "shift": self.shift})


@dataclass(frozen=True, slots=True)
class Propensity:
    """Whether a logistic model can tell released records from true ones.

    `pmse` is the mean squared difference of the estimated chance that a record is a released one from the share of
    those, `expected` and `sd` what records drawn from a law fitted to the true ones would give (Snoke, Raab, Nowok,
    Dibben and Slavkovic 2018), `ratio` = pmse / expected, `standardised` = (pmse - expected) / sd, `two_samples` the
    ratio that two independent samples of one law have on average. `parameters` are those of the model, `sampled` how
    many records of each file it saw where not all.
    """

    pmse: float
    expected: float
    sd: float
    parameters: int
    records: int
    sampled: int | None = None
    notes: tuple[Note, ...] = ()
    two_samples: float = 2.0

    @property
    def ratio(self) -> float:
        """The pMSE over that of records drawn from a law fitted to the true ones; 0 for the true records themselves."""
        return self.pmse / self.expected if self.expected > 0 else NONE

    @property
    def standardised(self) -> float:
        """The pMSE less that of records drawn from a law fitted to the true ones, in sds."""
        return (self.pmse - self.expected) / self.sd if self.sd > 0 else NONE

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as plain data."""
        derived = {"ratio": self.ratio, "standardised": self.standardised, "notes": self.notes}
        return flat({**asdict(self), **derived})


@dataclass(frozen=True, slots=True)
class Utility:
    """What a release still tells, beside the truth. It stays with the steward; `to_dict` holds figures only.

    `groups` has at most `domains.LISTED` sub-domains, those with the least overlap first where there are more;
    `group_count`, `group_overlap` (the mean) and `group_poor` (the share below 0.5) are over all. `associations` are of
    numbers with categories. `judgements` say what each figure comes to, `verdicts` the same in sentences.
    """

    records: int
    released: int
    weighted: bool
    columns: tuple[ColumnUtility, ...]
    correlations: CorrelationUtility
    groups: tuple[GroupUtility, ...]
    group_count: int
    group_overlap: float
    group_poor: float
    il1s: float
    propensity: Propensity
    models: tuple[ModelUtility, ...]
    forecasts: tuple[Forecast, ...]
    judgements: tuple[Judgement, ...]
    notes: tuple[Note, ...] = ()
    associations: tuple[AssociationUtility, ...] = ()

    @property
    def verdicts(self) -> tuple[str, ...]:
        """What each figure comes to, a sentence or two each, with what would be good and why."""
        return tuple(judgement.sentence for judgement in self.judgements)

    def having(self, verdict: str) -> tuple[Judgement, ...]:
        """Return the judgements of a verdict: good, fair, poor, unknown or told."""
        return tuple(judgement for judgement in self.judgements if judgement.verdict == verdict)

    def __getitem__(self, name: str) -> ColumnUtility:
        """Return the figures of a column."""
        for column in self.columns:
            if column.name == name:
                return column
        raise BadPlan(f"there are no figures of {name!r}{nearest(name, [c.name for c in self.columns])}")

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as plain data."""
        names = ("records", "released", "weighted", "group_count", "group_overlap", "group_poor", "il1s")
        out: dict[str, Any] = {name: getattr(self, name) for name in names}
        for name in ("columns", "associations", "groups", "models", "forecasts", "judgements"):
            out[name] = [part.to_dict() for part in getattr(self, name)]
        out["correlations"] = self.correlations.to_dict()
        out["propensity"] = self.propensity.to_dict()
        out["verdicts"] = list(self.verdicts)
        out["notes"] = self.notes
        return flat(out)

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        from .text import lines_of

        return lines_of(self)

    def __repr__(self) -> str:
        return "\n".join(self.lines())
