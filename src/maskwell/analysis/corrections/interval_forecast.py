"""A forecast for the steward, before anything is released: how much wider noise will make the intervals of a model.

widening of a coefficient = sd of its estimate with noise / sd without - 1. Linear models: `interval_inflation`, in
closed form. Others, and limits, units, categories: `information`, by simulation. Called by `forecast` and by the
release job for the models of its plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...card import NoiseCard
from ...errors import BadPlan, MaskwellError, NoLaw
from ...masking.protocol import is_mask
from ...masking.results import Masking, Release
from ...notes import Note, texts
from ...table import Table
from ...words.phrases import text_table
from ..system import Floats
from .covariate_model import covariate_model
from .design_arrays import CorrectionRequest, FormulaColumns, arrays, read_formula
from .glm import FORECASTS, OrdinaryFit, family_of, fit_ordinary
from .information import simulated_ratios
from .interval_inflation import widened_by_draws, widened_by_normal
from .law_passage import channel_of, limits_bind, passing_columns
from .noise_moments import NoiseOfColumns, noised_columns
from .problem import CorrectionProblem
from .result import figure

if TYPE_CHECKING:
    from ...masking import Mask

SMALL = 0.005  # widening below this is none


@dataclass(frozen=True, slots=True)
class Forecast:
    """How much wider the interval of each coefficient will be than one from the true values.

    `widening` is 0.38 where it will be 38% wider; empty, with the reason in `notes`, where nothing can be said.
    `errors` are the Monte Carlo errors of these figures (0 for a closed form). `method` says how they were found.
    """

    formula: str
    family: str
    names: tuple[str, ...] = ()
    widening: Mapping[str, float] = field(default_factory=dict)
    errors: Mapping[str, float] = field(default_factory=dict)
    ordinary_errors: tuple[float, ...] = ()
    method: Note | None = None
    notes: tuple[Note, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """The forecast in words, a sentence for each coefficient but the intercept."""
        if not self.widening:
            return (
                f"what this noise does to {self.formula} cannot be forecast: {'; '.join(texts(self.notes))}",
            )
        return tuple(_sentence(name, self.widening[name]) for name in self.names if name != "Intercept")

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast as plain data."""
        return {
            "formula": self.formula,
            "family": self.family,
            "names": list(self.names),
            "widening": dict(self.widening),
            "errors": dict(self.errors),
            "ordinary_errors": list(self.ordinary_errors),
            "method": None if self.method is None else self.method.to_dict(),
            "notes": [note.to_dict() for note in self.notes],
            "sentences": list(self.sentences),
        }

    def __repr__(self) -> str:
        head = f"forecast of {self.formula}, {self.family}"
        if not self.widening:
            return "\n".join([head, *wrap(self.sentences[0], 100)])
        rows = [("", "se without noise", "se with noise", "wider by")]
        for name, before in zip(self.names, self.ordinary_errors, strict=True):
            wider = self.widening[name]
            rows.append((name, figure(before), figure(before * (1 + wider)), f"{wider:.0%}"))
        notes = self.notes if self.method is None else (self.method, *self.notes)
        said = [line for note in notes for line in wrap(str(note), 100, subsequent_indent="  ")]
        return "\n".join([head, *text_table(rows), *said])


def _sentence(name: str, wider: float) -> str:
    if not np.isfinite(wider):
        return f"this noise will leave nothing to tell {name} by"
    if wider < SMALL:
        return f"this noise will hardly widen the interval of {name}"
    if wider >= 2:
        return f"this noise will make the interval of {name} {1 + wider:.1f} times as wide"
    return f"this noise will widen the interval of {name} by {wider:.0%}"


def forecast(
    formula: str,
    table: Table,
    planned: Mask | NoiseCard | Masking | Release,
    *,
    family: str = "gaussian",
    seed: int = 0,
) -> Forecast:
    """Forecast, from the true table and a mask (or the card of one), how much noise will widen a model's intervals.

    Linear models with noise that moments can undo: the asymptotic covariance of the corrected estimate, in closed form
    for normal noise. Other families, and limits, coarse units, noise that depends on the value, categories with noise:
    the information of simulated released records. Noise on the log scale, powers of noised columns and a response that
    moments cannot correct have no forecast, and the result says so. `family` is gaussian, binary (or logit), probit or
    poisson; ordered and negative binomial models are refused.
    """
    asked = CorrectionRequest(formula, family_of(family, FORECASTS), seed=seed)
    card = _card(planned, table)
    named = read_formula(formula, table, "leave them out to forecast the rest")
    try:
        noised = noised_columns(card, table, named.columns, None, released=False)
        linear = asked.family.has_scale and not limits_bind(noised, named.values, seed)
    except (BadPlan, NoLaw):
        linear = False
    try:
        found = _linear(named, asked, noised) if linear else _simulated_forecast(named, asked, card)
    except (BadPlan, NoLaw) as refusal:
        return no_forecast(formula, asked.family.name, refusal)
    return _subsample_forecast(found, card)


def no_forecast(formula: str, family: str, refusal: MaskwellError) -> Forecast:
    """Return a forecast that says why there is none."""
    notes = tuple(Note("analysis.no_forecast", {"reason": reason}) for reason in refusal.problems)
    return Forecast(formula, family, notes=notes)


def _card(planned: Any, table: Table) -> NoiseCard:
    """Resolve a mask to its card; take a card, or a masking's, as it is."""
    if isinstance(planned, NoiseCard):
        return planned
    if isinstance(planned, Masking | Release):
        return planned.card
    if not is_mask(planned):
        raise BadPlan(f"a forecast needs a mask or a noise card, not a {type(planned).__name__}")
    return planned.card(table)


def _linear(named: FormulaColumns, asked: CorrectionRequest, noised: NoiseOfColumns) -> Forecast:
    """Forecast by the asymptotic covariance of the moment-corrected estimate."""
    truth, fitted = _truth(named, asked, noised.columns)
    beta, variance = fitted.coefficients, fitted.variance
    if not noised.depends_on_value and all(part.is_normal for part in noised.parts):
        truth = replace(truth, covariance=noised.covariance(truth.values))
        ratios = widened_by_normal(truth, beta, variance).ratios
        code = "analysis.forecast_asymptotic"
    else:
        noisy = _noisy(truth, noised, asked.seed)
        ratios = widened_by_draws(truth, beta, variance, noisy, asked.seed).ratios
        code = "analysis.forecast_by_noise_draws"
    is_normal = all(part.is_normal for part in noised.parts)
    method = Note(
        code, {"fit_uses_more": not is_normal or bool((truth.loadings != truth.loadings[:1]).any())}
    )
    return _build_forecast(asked, truth, fitted, (ratios, np.zeros(len(ratios))), method)


def _noisy(truth: CorrectionProblem, noised: NoiseOfColumns, seed: int) -> Any:
    def released(number: int) -> CorrectionProblem:
        noise, data = noised.drawn(truth.values, seed, number), truth.data
        moved = np.einsum("nkq,nq->nk", truth.loadings, noise)
        values = truth.values + noise
        data = replace(data, y=data.y + moved[:, 0], design=data.design + moved[:, 1:])
        return replace(truth, data=data, values=values, covariance=noised.covariance(values))

    return released


def _simulated_forecast(named: FormulaColumns, asked: CorrectionRequest, card: NoiseCard) -> Forecast:
    """Forecast by the information of simulated released records."""
    from ..formulas.expression_trees import refs

    numbers, categories = passing_columns(card, named.columns)
    noised = numbers.columns, categories.columns
    truth, fitted = _truth(named, asked, numbers.columns)
    if refs(named.parsed.response) & {*numbers.columns, *categories.columns}:
        raise BadPlan(f"the response {named.parsed.response_name} is noised in a way that has no forecast")
    if not any(noised):
        ratios = np.ones(len(truth.names)), np.zeros(len(truth.names))
        return _build_forecast(asked, truth, fitted, ratios, Note("analysis.forecast_without_noise"))
    model, kinds = covariate_model(named, noised, fitted, asked.family, asked.seed)
    channel = channel_of(numbers, categories, kinds.codes, truth.values, asked.seed)
    ratios = simulated_ratios(model, channel, asked.seed)
    method = Note("analysis.forecast_by_simulation", {"error": max(2 * float(np.nanmax(ratios[1])), 0.01)})
    return _build_forecast(asked, truth, fitted, ratios, method)


def _truth(
    named: FormulaColumns, asked: CorrectionRequest, variables: tuple[str, ...]
) -> tuple[CorrectionProblem, OrdinaryFit]:
    count = len(next(iter(named.values.values())))
    truth = arrays(named, asked, np.ones(count), variables)
    return truth, fit_ordinary(truth.data, asked.family)


def _build_forecast(
    asked: CorrectionRequest,
    truth: CorrectionProblem,
    fitted: OrdinaryFit,
    ratios: tuple[Floats, Floats],
    method: Note,
) -> Forecast:
    return Forecast(
        formula=asked.formula,
        family=asked.family.name,
        names=truth.names,
        widening=dict(zip(truth.names, (float(ratio) - 1 for ratio in ratios[0]), strict=True)),
        errors=dict(zip(truth.names, map(float, ratios[1]), strict=True)),
        ordinary_errors=tuple(map(float, np.sqrt(np.diag(fitted.covariance)))),
        method=method,
        notes=truth.notes,
    )


def _subsample_forecast(found: Forecast, card: NoiseCard) -> Forecast:
    """Add what a subsample does: fewer records widen every interval."""
    share = card.subsampled
    if share is None or share >= 1:
        return found
    factor = share**-0.5
    widening = {name: (1 + wider) * factor - 1 for name, wider in found.widening.items()}
    note = Note("analysis.subsample_widening", {"share": share})
    return replace(found, widening=widening, notes=(*found.notes, note))
