"""What a fit found: draws of the model's parameters, one table, one screen, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan, nearest
from ...notes import Note
from ...words.analysis import FAILURES
from ...words.phrases import count_phrase, name_list
from .draws import Draws, Floats
from .prediction import Prediction, Predictor, predict_records
from .summary import LEVEL, SHOWN, Diagnostics, Summary, check_level, ends, index_of
from .true_values import Truths
from .words import trouble, wrapped_note

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ESS = "ESS: effective draws, the fewer of bulk and tails; "
BESIDE = (
    "unadjusted: released values taken for true{counts}; bias/sd: what the noise adds to that, in sds; wider: the sd "
    "against that of the unadjusted"
)
COUNTS = " (those of a noised count rounded, and below 0 as 0)"


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the original would have said of a model, as far as the release tells: draws given release and card.

    `draws` are of the model with the noise taken into account, `naive` of the same model fitted to the released
    values as if they were true. `noised` names the columns of the model whose true values are unknown, `levels` the
    categories of those columns that have some. `notes` says what was decided. `predictor` turns new
    covariates into columns of the model. It holds nothing of a record but the truths asked for.
    """

    draws: Draws = field(repr=False)
    naive: Draws | None = field(default=None, repr=False)
    formula: str = ""
    family: str = ""
    records: int = 0
    noised: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    predictor: Predictor | None = field(default=None, repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters of the model: coefficients first, then spreads and cut points."""
        return self.draws.names

    @property
    def chains(self) -> int:
        """How many chains were run."""
        return int(self.draws.values.shape[0])

    @cached_property
    def diagnostics(self) -> Diagnostics:
        """R-hat and effective draws of each parameter."""
        return Diagnostics.of(self.draws)

    @property
    def converged(self) -> bool:
        """Whether every parameter has an R-hat below 1.01 and more than 400 effective draws, bulk and tails."""
        return not self.diagnostics.failing

    @property
    def warning(self) -> Note | None:
        """What is wrong with the chains and what helps; nothing where they have converged."""
        return trouble(self.draws, self.diagnostics)

    def summary(self, level: float = LEVEL) -> Summary:
        """Return estimate, sd, interval, R-hat and effective draws of each parameter, beside the naive fit.

        Where no value is unknown the naive fit is the same but for the chance of its draws, and is left out.
        """
        return Summary.of(self.draws, self._beside, self.diagnostics, level)

    def draws_of(self, name: str) -> Floats:
        """Return the draws of a parameter, of the model of interest or the covariate model: chains x draws."""
        if name in self.draws.nuisance_names and self.draws.nuisance is not None:
            return self.draws.nuisance[:, :, self.draws.nuisance_names.index(name)]
        return self.draws.values[:, :, index_of(name, self.names)]

    def __getitem__(self, name: str) -> Floats:
        return self.draws_of(name)

    def __contains__(self, name: object) -> bool:
        return name in self.names or name in self.draws.nuisance_names

    def interval(self, name: str, level: float = LEVEL) -> tuple[float, float]:
        """Return the equal-tailed interval of a parameter."""
        check_level(level)
        low, high = np.quantile(self.draws_of(name), ends(level))
        return float(low), float(high)

    def truths(self, column: str, level: float = LEVEL) -> Truths:
        """Return what is known of each record's true value of a noised column; `fit` must have kept the draws.

        A missing response is not drawn: NaN. `predict(kind="response")` predicts it.
        """
        if column not in self.noised and column not in self.draws.truth_names:
            raise BadPlan(self._not_hidden(column))
        found = Truths.of(self.draws, column, self.levels.get(column, ()), level)
        if self.predictor is None or column != self._response:
            return found
        return found.without(self.predictor.unanswered)

    def _not_hidden(self, column: str) -> str:
        """Say why there are no true values of a column to draw, and what can be had instead."""
        if column == self._response:
            return (
                f"the true values of the response {column!r} were not drawn: it was released as it is, and a record "
                "without it says nothing of it; predict(kind='response') predicts the responses of the fitted records"
            )
        if self.predictor is not None and column in self.predictor.levels:
            return f"column {column!r} carries no noise and misses no value: the release has its true ones"
        hint = nearest(column, self.noised)
        unknown = (
            f"; those of {name_list(self.noised)} were"
            if self.noised
            else ": no value in the model is unknown"
        )
        return f"column {column!r} is not one whose true values were drawn{hint}{unknown}"

    @property
    def _response(self) -> str:
        """The column of the response: of y['level'] it is y."""
        return self.formula.partition("~")[0].partition("[")[0].strip(" `")

    @property
    def _beside(self) -> Draws | None:
        """The naive fit, where it is another than the adjusted one."""
        return self.naive if self.noised else None

    def predict(
        self, new: Any = None, *, kind: str = "mean", level: float = LEVEL, seed: int | None = None
    ) -> Prediction:
        """Predict records from their true covariates: the expected response, or (kind="response") a new one.

        `new` is a Table, a dataframe or a mapping of columns. Without it the fitted records are predicted, over the
        draws of their true values (`fit` must have kept them, with `keep_truths`) and the parameters of the same
        draws: the interval says how far the noise hides what is predicted. A group that the model knows has its own
        effects; those of another are drawn from their law, so that the interval says how much groups differ.
        """
        check_level(level)
        return predict_records(self.draws, self.predictor, new, kind=kind, level=level, seed=seed)

    def to_arviz(self) -> Any:
        """Return the draws as an arviz DataTree: groups `posterior`, and `sample_stats` where the sampler has any."""
        from .arviz_data import to_arviz

        return to_arviz(self)

    def plot_trace(self, names: Sequence[str] | None = None) -> Figure:
        """Draw the chains of each parameter side by side with their densities."""
        from .plots import trace

        return trace(self, names)

    def plot_density(self, names: Sequence[str] | None = None) -> Figure:
        """Draw the density of each parameter, adjusted and naive."""
        from .plots import density

        return density(self, names)

    def plot_forest(self, names: Sequence[str] | None = None, level: float = LEVEL) -> Figure:
        """Draw the interval of each parameter, adjusted and naive."""
        from .plots import forest

        return forest(self, names, level)

    def to_dict(self, level: float = LEVEL) -> dict[str, Any]:
        """Return figures only: no draw and no record."""
        said = {"formula": self.formula, "family": self.family, "records": self.records}
        ran: dict[str, Any] = {
            "sampler": self.draws.sampler,
            "chains": self.chains,
            "draws": int(self.draws.values.shape[1]),
        }
        if self._resamples:
            ran["resamples"] = self._resamples
        judged = {
            "converged": self.converged,
            "warning": None if self.warning is None else self.warning.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
        }
        return {**said, "noised": list(self.noised), **ran, **self.summary(level).to_dict(), **judged}

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self, level: float = LEVEL, most: int | None = SHOWN) -> list[str]:
        """Return what fits on one screen: no more than so many parameters."""
        model = f"{self.formula} ({self.family})" if self.family else self.formula
        lines = [f"Posterior of {model}: {count_phrase(self.records, 'record')}", *self._how()]
        if self.warning is not None:
            lines += ["", *wrapped_note(_failure(self.warning), "NOT CONVERGED: ")]
        summary = self.summary(level)
        lines += ["", *summary.lines(most)]
        lines += self._legend()
        notes = [line for note in self.notes for line in wrapped_note(str(note))]
        return [*lines, "", *notes] if notes else lines

    def _how(self) -> list[str]:
        """Say which columns carry noise and how the draws were made."""
        unknown = (
            f"true values unknown: {name_list(self.noised)}" if self.noised else "no column carries noise"
        )
        drawn = (
            f"{count_phrase(self.chains, 'chain')} of {count_phrase(int(self.draws.values.shape[1]), 'draw')}"
        )
        if self._resamples:
            resamples = count_phrase(self._resamples, "resample")
            drawn = "resamples are independent: there are no chains to judge"
            drawn = drawn if resamples in self.draws.sampler else f"{resamples}; {drawn}"
        said = "; ".join([unknown, *([self.draws.sampler] if self.draws.sampler else []), drawn])
        return wrapped_note(said, "")

    @property
    def _resamples(self) -> int:
        """How many resamples a weighted fit has, which has no chains."""
        return int(self.draws.info.get("resamples", 0))

    def _legend(self) -> list[str]:
        """Say what the columns beside the estimates mean, where they stand."""
        if self._beside is None:
            return []
        is_count = self.family in ("poisson", "negative binomial") and self._response in self.noised
        beside = BESIDE.format(counts=COUNTS if is_count else "")
        return wrapped_note(beside if self._resamples else ESS + beside, "")


def _failure(warning: Note) -> str:
    """Return a warning as it stands below a mark that says that chains have not converged."""
    words = FAILURES.get(warning.code)
    return str(warning) if words is None else words(**warning.figures)
