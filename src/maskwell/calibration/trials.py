"""Trials: a mask is drawn under keys of calibration alone, attacked, and judged.

The key of a draw depends on the round and its number, not on the scale: all scales of a search see the same words
(common random numbers, Kahn and Marshall 1953), so that differences between scales are told apart with few draws. No
release shares a word with them. Run by every search, `expected_risk` and `frontier`.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import NearestRecord, Risk, Risks, attack
from ..attacks.protocol import Attack
from ..card import NoiseCard
from ..errors import BadPlan, MaskwellWarning
from ..keys import Key
from ..masking import Masking, Setting, apply
from ..table import Floats, Table
from ..words.calibration import EstimateFigures, estimate_phrase
from .estimates import Estimate, Pair, figure_of, quantile
from .losses import Loss
from .measures import ALL, OVER, Measure, MeasureCounts, check_has_h, count_links
from .scale import one_figure, scale_of, scale_words

if TYPE_CHECKING:
    import pyarrow as pa

    from ..masking import Mask
    from .trial_store import KeptTrials

Progress = Callable[["Trial"], None]
Allows = Callable[[NoiseCard], bool]  # tells by counts whether draws of a law may be attacked
Plans = list[Any] | dict[str, Any]


@dataclass(frozen=True, eq=False)
class Trial:
    """What the intruders found at one scale, over some draws of the noise.

    `factor` is the scale relative to the plan that was given. `numerators` and `denominators` (draws x intruders) make
    the judged figure (see `measures`); in every draw the intruder who exceeds the tolerance most counts. `zeros` has
    Pr(h = 0) of each draw and intruder (NaN where he measures no h), `judged` how many targets the figure is about,
    `losses` the utility loss of each draw where one was asked for; `refused` says of intruders who cannot work on such
    a release why not.
    """

    mask: Mask
    factor: float
    round: str
    measure: Measure = field(repr=False)
    names: tuple[str, ...]
    numerators: Floats = field(repr=False)
    denominators: Floats = field(repr=False)
    zeros: Floats = field(repr=False)
    judged: Floats = field(repr=False)
    losses: Floats | None = field(default=None, repr=False)
    refused: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def replicates(self) -> int:
        """How many draws there were."""
        return len(self.numerators)

    @cached_property
    def _worst(self) -> Any:
        excess = self.measure.excess(self.numerators, self.denominators)
        return np.arange(len(excess)), excess.argmax(axis=1)

    @cached_property
    def excess(self) -> Floats:
        """By how much the worst intruder exceeds the tolerance in each draw (negative: it is met)."""
        return np.asarray(self.measure.excess(self.numerators[self._worst], self.denominators[self._worst]))

    @cached_property
    def figure(self) -> Estimate:
        """The judged figure of the worst intruder in each draw, over the draws."""
        parts = self.numerators[self._worst], self.denominators[self._worst]
        return self.measure.estimate(*parts, self.judged[self._worst])

    @property
    def figures(self) -> dict[str, Estimate]:
        """The judged figure of each intruder."""
        parts = zip(self.names, self.numerators.T, self.denominators.T, self.judged.T, strict=True)
        return {name: self.measure.estimate(*figures) for name, *figures in parts}

    def is_far_within(self, share: float) -> bool:
        """Whether the figure is no more than a share of its limit (or the limit no more than that share of it)."""
        figure, limit = self.figure.mean, self.measure.limit
        return limit <= share * figure if self.measure.at_least else figure <= share * limit

    @property
    def loss(self) -> float | None:
        """The mean utility loss."""
        return None if self.losses is None else float(self.losses.mean())

    @property
    def at_zero(self) -> float | None:
        """The mean of Pr(h = 0), of the intruder for whom it is largest; nothing where no h is measured."""
        known = ~np.isnan(self.zeros).any(axis=0)
        return float(self.zeros[:, known].max(axis=1).mean()) if known.any() else None

    def bound(self, level: float, replicates: int | None = None) -> float:
        """Return what the mean excess lies below, but for a chance of `level`.

        It is the mean and t standard errors, or what the pooled count of all targets in all draws allows where that is
        more: draws that are all alike are no proof (see `estimates`). `replicates` asks what another number of draws
        would have given.
        """
        count = replicates or self.replicates
        se = float(self.excess.std(ddof=1)) / sqrt(count)
        by_scatter = float(self.excess.mean()) + quantile(1 - level, count) * se
        top, bottom = self._pooled_end(level, count)
        return max(by_scatter, float(self.measure.excess(np.asarray(top), np.asarray(bottom))))

    def figure_bound(self, level: float) -> float:
        """Return the bound in terms of the figure: at most so much (or at least, where more is safer)."""
        reach = quantile(1 - level, self.replicates) * self.figure.se
        pooled = figure_of(*self._pooled_end(level, self.replicates))
        if self.measure.at_least:
            return max(min(self.figure.mean - reach, pooled), 0.0)
        return max(self.figure.mean + reach, pooled)

    def _pooled_end(self, level: float, replicates: int) -> Pair:
        """Return the parts of the figure as far on the unsafe side as the count of all targets lets it lie."""
        top, bottom = (float(part[self._worst].mean()) for part in (self.numerators, self.denominators))
        judged = float(self.judged[self._worst].mean()) * replicates
        return self.measure.unsafe_end(top, bottom, judged, level)

    def to_dict(self) -> dict[str, Any]:
        """Return figures only."""
        return {
            "round": self.round,
            "factor": self.factor,
            "scale": scale_of(self.mask),
            "replicates": self.replicates,
            "figure": self.figure.to_dict(),
            "intruders": {name: one.to_dict() for name, one in self.figures.items()},
            "at_zero": self.at_zero,
            "loss": self.loss,
        }

    def line(self) -> str:
        """Return the trial as a line of text."""
        return f"{self.round:<15} {scale_words(self.mask):<24} {self.measure.name} {self.said}"

    @property
    def said(self) -> str:
        """The judged figure and its standard error as text; a mean h never without Pr(h = 0)."""
        return estimate_phrase(self.estimate_figures)

    @property
    def estimate_figures(self) -> EstimateFigures:
        """The judged figure and its standard error, as notes have them."""
        return {
            "measure": self.measure.name,
            "mean": self.figure.mean,
            "se": self.figure.se,
            "is_share": self.measure.is_share,
            "at_zero": self.at_zero if self.measure.at_least else None,
        }


def trace_table(trials: tuple[Trial, ...]) -> pa.Table:
    """Return trials as a table, one row for each."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {
        "round": [t.round for t in trials],
        "factor": [t.factor for t in trials],
        "scale": [scale_words(t.mask) for t in trials],
        "figure": [t.figure.mean for t in trials],
        "se": [t.figure.se for t in trials],
        "excess": [float(t.excess.mean()) for t in trials],
        "replicates": [t.replicates for t in trials],
        "at_zero": [t.at_zero for t in trials],
        "loss": [t.loss for t in trials],
    }
    if trials and all(one_figure(trial.mask) for trial in trials):
        named = [one for trial in trials if (one := one_figure(trial.mask))]
        columns[named[0][0]] = [value for _, value in named]
    names = dict.fromkeys(name for trial in trials for name in trial.names)
    for name in names:
        columns[name] = [t.figures[name].mean if name in t.names else None for t in trials]
    return pa.table(columns)


@dataclass(frozen=True, slots=True)
class ResolvedTrial:
    """A mask whose law is computed once for all draws."""

    resolved: NoiseCard

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the law."""
        return self.resolved.columns

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Return the law as it was computed."""
        return self.resolved

    def to_dict(self) -> dict[str, Any]:
        """Return nothing: what is drawn here is never written."""
        return {}


@dataclass(frozen=True)
class Bench:
    """Everything about trials that does not depend on the scale."""

    table: Table
    plans: Plans
    key: Key = field(repr=False)
    measure: Measure
    over: str = ALL
    loss: Loss | None = None
    exact: bool = False
    progress: Progress | None = None
    kept: KeptTrials | None = field(default=None, repr=False)
    allows: Allows | None = field(default=None, repr=False)

    def is_allowed(self, mask: Any) -> bool:
        """Whether draws of a mask are within what may be computed."""
        return self.allows is None or self.allows(self.resolved(mask).resolved)

    def run(
        self, mask: Any, factor: float, round: str, replicates: int, *, keys_of: str | None = None
    ) -> Trial:
        """Draw, attack and judge a mask so many times; `keys_of` names another round, whose draws are used."""
        if self.kept is None:
            figures = self._figures(mask, keys_of or round, replicates)
        else:
            name = json.dumps([mask.to_dict(), factor, round, keys_of, replicates])
            known = self.kept.get(name)
            figures = self._figures(mask, keys_of or round, replicates) if known is None else known
            if known is None:
                self.kept.put(name, figures)
        names = tuple(figures.pop("names"))
        trial = Trial(mask=mask, factor=factor, round=round, measure=self.measure, names=names, **figures)
        if self.progress is not None:
            self.progress(trial)
        return trial

    def _figures(self, mask: Any, round: str, replicates: int) -> dict[str, Any]:
        """Return the figures of a trial, by the names that `Trial` gives them."""
        parts, zeros, judged, losses = [], [], [], []
        names, refused = tuple[str, ...](), dict[str, str]()
        for masking, risks in self.drawn(mask, round, replicates):
            names, refused = tuple(risks), risks.refused
            found = [self._counted(name, risk) for name, risk in risks.items()]
            parts.append([self.measure.parts(one) for one in found])
            zeros.append([one.at_zero for one in found])
            judged.append([self.measure.judged(one) for one in found])
            if self.loss is not None:
                losses.append(self.loss(masking))
        figures = np.array(parts)
        return {
            "names": names,
            "numerators": figures[:, :, 0],
            "denominators": figures[:, :, 1],
            "zeros": np.array(zeros),
            "judged": np.array(judged, dtype=np.float64),
            "losses": np.array(losses) if losses else None,
            "refused": dict(refused),
        }

    def _counted(self, name: str, risk: Risk) -> MeasureCounts:
        check_has_h(name, risk, self.measure)
        return count_links(risk, self.table, self.over)

    def drawn(self, mask: Any, round: str, replicates: int) -> Iterator[tuple[Masking, Risks]]:
        """Draw a mask under the keys of a round, and attack each draw by all plans."""
        for masking in self.masked(mask, round, replicates):
            yield masking, attack(self.plans, masking)

    def masked(self, mask: Any, round: str, replicates: int) -> Iterator[Masking]:
        """Draw a mask under the keys of a round."""
        plan = self.resolved(mask)
        for i in range(replicates):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MaskwellWarning)  # of the mask, not of this draw
                masking = apply(plan, self.table, key=self.key_of(round, i), exact=self.exact)
            yield masking

    def resolved(self, mask: Any) -> ResolvedTrial:
        """Resolve a mask once for all draws, refusing what its plan refuses."""
        return ResolvedTrial(mask.card(self.table, Setting(exact=self.exact)))

    def key_of(self, round: str, i: int) -> Key:
        """Return the key of one draw: it serves all scales of a round, and no release."""
        series = self.table.schema.series
        subkey = self.key.subkey(series=series, purpose="calibration", stage=f"{round} {i}", column="")
        return Key(subkey, seeded=self.key.seeded)


def replicate_problems(name: str, count: Any) -> list[str]:
    """Return what is wrong with a number of draws: one gives no standard error."""
    if isinstance(count, Integral) and not isinstance(count, bool) and int(count) >= 2:
        return []
    return [f"{name} is a whole number of at least 2 (one draw has no standard error), not {count!r}"]


def over_problems(over: Any) -> list[str]:
    """Return what is wrong with the name of a group of records that is judged."""
    return [] if over in OVER else [f"over is 'all' or 'outlying', not {over!r}"]


def check_key(key: Any, seed: Any) -> Key:
    """Return the key that was given, that of a seed, or one from the operating system."""
    if key is not None and seed is not None:
        raise BadPlan("give a key or a seed, not both")
    if not isinstance(key, Key | None) or not isinstance(seed, int | None) or isinstance(seed, bool):
        raise BadPlan("a key is a Key (Key.from_os()), a seed a whole number")
    return Key.from_seed(seed) if seed is not None else key or Key.from_os()


def check_table(table: Any, verb: str) -> Table:
    """Refuse what is no table, and tables without records."""
    if not isinstance(table, Table):
        raise BadPlan(
            f"{verb} needs a Table, not a {type(table).__name__}: make one with read(...) or Table.from_frame(...)"
        )
    if not len(table):
        raise BadPlan("the table has no records, so that nobody is a target")
    return table


def check_plans(plans: Any) -> Plans:
    """Return one plan or several as several; nothing given is the nearest-record intruder, plain and informed."""
    if plans is None:
        plans = [NearestRecord(), NearestRecord(distance="posterior")]
    found: Plans = (
        dict(plans) if isinstance(plans, Mapping) else plans if isinstance(plans, list) else [plans]
    )
    if isinstance(plans, tuple):
        found = list(plans)
    listed = list(found.values()) if isinstance(found, dict) else found
    wrong = [plan for plan in listed if isinstance(plan, type) or not isinstance(plan, Attack)]
    if wrong or not listed:
        what = f"{wrong[0]!r} is no attack" if wrong else "there is no attack in the list"
        raise BadPlan(f"{what}: take plans of maskwell.attacks, such as NearestRecord()")
    if any(plan.largest_h is not None for plan in listed):
        raise BadPlan("largest_h is for one attack on a large file: leave it out here, where h is averaged")
    return found
