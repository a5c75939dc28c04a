"""Predict records from their true covariates, with what the posterior does not know.

For each kept draw of the parameters eta = x'b + offset + group effects; the expected response is eta, Phi(eta),
1 / (1 + exp(-eta)) or exp(eta) by family, and differences of Phi(cut - eta) of an ordered one. With kind="response" a
response is drawn given each, so that the draws are from the posterior predictive law (Gelman and others, Bayesian Data
Analysis, 2013, section 1.3). Groups that the fit has not seen have effects drawn from their normal law;
records of the fit have the true covariates of the same draw. Called by `Posterior.predict`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from ...arrow_buffers import from_numpy
from ...errors import BadPlan
from ...words.phrases import name_list
from .covariates import Covariates, Labels, read_covariates
from .draws import Draws, Floats
from .summary import ends

if TYPE_CHECKING:
    import pyarrow as pa

KINDS = ("mean", "response")
BLOCK = 2_000_000  # draws x records in one go
LARGEST = 1e18  # of a Poisson mean: numpy draws none beyond

Ints = npt.NDArray[np.int64]


class Predictor(Protocol):
    """What a model offers for prediction: its columns, made of new covariates.

    `family` is one of `system.FAMILIES`; `levels` has every column that the formula needs but the response, with the
    categories of those that have some; `groups` the columns that group records; `categories` those of an ordered
    response; `hidden` the columns needed whose true values are unknown in the records fitted, with what is added to
    a draw of them.
    """

    @property
    def family(self) -> str:
        """The family, by name."""

    @property
    def levels(self) -> Mapping[str, tuple[str, ...]]:
        """The columns needed, and their categories."""

    @property
    def groups(self) -> tuple[str, ...]:
        """The columns that group records."""

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of an ordered response."""

    @property
    def hidden(self) -> Mapping[str, float]:
        """The columns needed that are unknown in the records fitted, and what is added to their draws."""

    @property
    def unanswered(self) -> Ints:
        """The records fitted whose response is missing, where true values were kept."""

    def columns(self, values: Mapping[str, Floats]) -> Floats:
        """Return records x coefficients."""

    def offset(self, values: Mapping[str, Floats]) -> Floats | None:
        """Return what is added to the linear predictor, if anything."""

    def effects(
        self, values: Mapping[str, Floats], groups: Mapping[str, Labels]
    ) -> list[tuple[Ints, Floats]]:
        """Return, for each set of group effects, the group of each record (-1: not known) and records x columns.

        The values may be those of the same records many times over, as drawn; the columns then are as many.
        """

    def fitted(self) -> tuple[Mapping[str, Floats], Mapping[str, Labels]] | None:
        """Return the covariates of the records fitted, but for those hidden; None if not kept."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predictions, one entry for each record: mean, sd and interval over the posterior.

    Of kind `mean` it is the expected response (of a binary one its probability), and the interval is about that; of
    kind `response` a new response is predicted, noise of its own included. An ordered response has records x
    `categories` probabilities.
    """

    kind: str
    level: float
    mean: Floats = field(repr=False)
    sd: Floats = field(repr=False)
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    categories: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.mean)

    @property
    def table(self) -> pa.Table:
        """One row for each record; of an ordered response each category has its columns."""
        import pyarrow as pa

        figures = ("mean", "sd", "low", "high")
        if not self.categories:
            return pa.table({name: from_numpy(getattr(self, name)) for name in figures})
        named = {
            f"{category} {name}": from_numpy(getattr(self, name)[:, k])
            for k, category in enumerate(self.categories)
            for name in figures
        }
        return pa.table(named)

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as lists."""
        figures = {name: getattr(self, name).tolist() for name in ("mean", "sd", "low", "high")}
        categories = {"categories": list(self.categories)} if self.categories else {}
        return {"kind": self.kind, "level": self.level, **categories, **figures}

    def __repr__(self) -> str:
        what = "expected responses" if self.kind == "mean" else "new responses"
        return f"<Prediction of {len(self):,} {what}: mean, sd and {100 * self.level:g}% interval of each>"


def predict_records(
    draws: Draws, predictor: Predictor | None, new: Any, *, kind: str, level: float, seed: int | None
) -> Prediction:
    """Predict new records, or those that were fitted."""
    if kind not in KINDS:
        raise BadPlan(f"kind is 'mean' or 'response', not {kind!r}")
    if predictor is None:
        raise BadPlan("this fit keeps no columns to predict from: fit the model again with fit(...)")
    if predictor.family == "ordered" and kind == "response":
        raise BadPlan("an ordered response is predicted by its probabilities: take kind='mean'")
    covariates = _fitted_covariates(predictor, draws) if new is None else _new(predictor, new)
    draws = draws.with_truths_only() if covariates.drawn else draws
    sampler = _Sampler(draws, predictor, kind, np.random.default_rng(seed))
    width = max(len(predictor.categories), 1) if predictor.family == "ordered" else 1
    out = np.empty((4, len(covariates), width))
    columns = 1 + len(draws.names) // 8 if covariates.drawn else 1  # each draw then has columns of its own
    step = max(BLOCK // (len(sampler.flat) * width * columns), 1)
    for start in range(0, len(covariates), step):
        series = sampler.draw(covariates.part(start, start + step))
        here = slice(start, start + step)
        out[0, here], out[1, here] = series.mean(axis=0), series.std(axis=0)
        out[2:, here] = np.quantile(series, ends(level), axis=0)
    ordered = predictor.family == "ordered"
    mean, sd, low, high = out if ordered else out[:, :, 0]
    return Prediction(kind, level, mean, sd, low, high, tuple(predictor.categories) if ordered else ())


def _new(predictor: Predictor, new: Any) -> Covariates:
    return read_covariates(new, predictor.levels, predictor.groups)


def _fitted_covariates(predictor: Predictor, draws: Draws) -> Covariates:
    """Return the covariates of the records fitted, unknown ones as drawn."""
    lacking = [name for name in predictor.hidden if name not in draws.truth_names]
    if lacking:
        remedy = "give the records to predict, predict(new)"
        if "resamples" not in draws.info:  # a weighted fit keeps none
            remedy = f"fit with keep_truths=True, or {remedy}"
        raise BadPlan(
            f"the true values of {name_list(lacking)} in the fitted records are not known and were not kept: {remedy}"
        )
    fitted = predictor.fitted()
    if fitted is None:
        raise BadPlan("name the records to predict: predict(new) with their true covariates")
    drawn: dict[str, npt.NDArray[Any]] = {}
    for name, more in predictor.hidden.items():
        if draws.truths is not None:
            own = draws.truths[..., draws.truth_names.index(name)]
            drawn[name] = own + np.float32(more) if more else own
    return Covariates(*fitted, drawn)


@dataclass(frozen=True, slots=True)
class _Sampler:
    """Draws of the response of records: draws x records x categories (one, but for ordered responses)."""

    draws: Draws
    predictor: Predictor
    kind: str
    rng: np.random.Generator

    @property
    def flat(self) -> Floats:
        return self.draws.values.reshape(-1, len(self.draws.names))

    def draw(self, covariates: Covariates) -> Floats:
        """Return the expected or new response for every draw."""
        eta = self._linear(covariates)
        if self.predictor.family == "ordered":
            return _category_probabilities(eta, self._cuts(), len(self.predictor.categories))
        mean = _mean(self.predictor.family, eta)
        return (mean if self.kind == "mean" else self._response(mean))[:, :, None]

    def _linear(self, covariates: Covariates) -> Floats:
        """Return draws x records; where covariates are drawn each draw has its own columns."""
        draws, values = len(self.flat), covariates.by_draw(len(self.flat))
        design = np.asarray(self.predictor.columns(values), np.float64)
        size = design.shape[1]
        eta: Floats
        if covariates.drawn:
            eta = np.einsum("sp,srp->sr", self.flat[:, :size], design.reshape(draws, -1, size))
        else:
            eta = self.flat[:, :size] @ design.T
        offset = self.predictor.offset(values)
        if offset is not None:
            eta = eta + (offset.reshape(draws, -1) if covariates.drawn else offset)
        first = 0
        for k, (codes, columns) in enumerate(self.predictor.effects(values, covariates.groups)):
            eta = eta + self._effect(k, codes, columns, first)
            first += columns.shape[1]
        return eta

    def _effect(self, k: int, codes: Ints, columns: Floats, first: int) -> Floats:
        """Return what the groups add: effects of known groups as drawn, of others from their law."""
        out, width = np.zeros((len(self.flat), len(codes))), columns.shape[1]
        own = columns.reshape(-1, len(codes), width)  # of all draws, or of each
        known = np.flatnonzero(codes >= 0)
        if len(known):
            if k >= len(self.draws.effects):
                raise BadPlan("the effects of the groups were not kept: predict records of groups not known")
            effects = self.draws.effects[k].reshape(len(self.flat), -1, width)
            for j in range(width):
                out[:, known] += effects[:, codes[known], j] * own[:, known, j]
        others = np.flatnonzero(codes < 0)
        if len(others):
            root = roots(self.draws, first, width)
            drawn = self.rng.standard_normal((len(root), len(others), width))
            out[:, others] = (np.einsum("sij,srj->sri", root, drawn) * own[:, others]).sum(axis=2)
        return out

    def _cuts(self) -> Floats:
        """Return draws x cut points; one that has no draws is fixed at zero."""
        count = len(self.predictor.categories) - 1
        held = {name: self.flat[:, k] for k, name in enumerate(self.draws.names)}
        zero = np.zeros(len(self.flat))
        return np.stack([held.get(f"cut[{k}]", zero) for k in range(1, count + 1)], axis=1)

    def _response(self, mean: Floats) -> Floats:
        family, held = self.predictor.family, dict(zip(self.draws.names, self.flat.T, strict=True))
        if family == "gaussian":
            return np.asarray(mean + held["sigma"][:, None] * self.rng.standard_normal(mean.shape))
        if family in ("probit", "logit"):
            return (self.rng.random(mean.shape) < mean).astype(np.float64)
        if family == "negative binomial":  # a Poisson whose mean is gamma: variance mean + mean^2 / shape
            shape = held["shape"][:, None]
            mean = self.rng.gamma(np.broadcast_to(shape, mean.shape), mean / shape)
        return self.rng.poisson(np.minimum(mean, LARGEST)).astype(np.float64)


def roots(draws: Draws, first: int, count: int) -> Floats:
    """Return, for each draw, a root of the covariance of one set of group effects, by their sds and correlations.

    The set has the `count` spreads from the `first` on, in the order of the names.
    """
    flat = draws.values.reshape(-1, len(draws.names))
    place = {name: k for k, name in enumerate(draws.names)}
    spreads = [name for name in draws.names if name.startswith("sd(")][first : first + count]
    if len(spreads) < count:
        raise BadPlan("the spread of the groups was not kept: predict records of groups that the model knows")
    correlation = np.tile(np.eye(count), (len(flat), 1, 1))
    for i, j, name in _pairs(spreads):
        if name in place:
            correlation[:, i, j] = correlation[:, j, i] = flat[:, place[name]]
    if count > 1:  # correlations of one leave a root that rounding may spoil
        correlation = np.asarray(np.linalg.cholesky(correlation + 1e-10 * np.eye(count)), np.float64)
    sds = flat[:, [place[name] for name in spreads]]
    return np.asarray(sds[:, :, None] * correlation)


def _pairs(spreads: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return the names of the correlations of effects: of sd(a|g) and sd(b|g) it is cor(a,b|g)."""
    parts = [name[3:-1].rpartition("|") for name in spreads]
    return [
        (i, j, f"cor({parts[i][0]},{parts[j][0]}|{parts[i][2]})")
        for i in range(len(parts))
        for j in range(i + 1, len(parts))
    ]


def _mean(family: str, eta: Floats) -> Floats:
    """Return the expected response at a linear predictor."""
    from scipy.special import expit, ndtr

    if family == "gaussian":
        return eta
    if family == "probit":
        return np.asarray(ndtr(eta))
    if family == "logit":
        return np.asarray(expit(eta))
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(eta))


def _category_probabilities(eta: Floats, cuts: Floats, count: int) -> Floats:
    """Return the probabilities of an ordered probit: differences of Phi(cut - eta)."""
    from scipy.special import ndtr

    below = np.zeros((*eta.shape, count + 1))
    below[:, :, 1:-1] = ndtr(cuts[:, None, :] - eta[:, :, None])
    below[:, :, -1] = 1.0
    return np.diff(below, axis=2)
