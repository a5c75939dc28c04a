"""The models of interest: fitted to the original file, to the released one as it is, and with the noise in mind."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np

from ...errors import BadPlan, MaskwellWarning
from ...masking import Masking, Release
from ...table import Floats, Table

CHAINS, DRAWS = 2, 500  # the paper has 500 after 500
ONE = 1  # chain by the paper's proposal, which is slow
ORIGINAL, NAIVE, ADJUSTED, FLAT = "original", "not adjusted", "adjusted", "adjusted, flat"
HASTINGS, PRINTED = "(A3) with Hastings", "(A3) as printed"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A row of a table: which draws it is made of (a variance: of the sd), and by how much it is multiplied."""

    row: str
    draws: str
    power: int = 1
    times: float = 1.0

    def of(self, names: tuple[str, ...], values: Floats) -> Floats:
        """Return its draws; a category's coefficient is named with its level, sex[F]."""
        found = [i for i, name in enumerate(names) if name == self.draws or name.startswith(f"{self.draws}[")]
        if len(found) != 1:
            raise BadPlan(f"the fit has no parameter {self.draws!r}; it has {', '.join(names)}")
        return np.asarray(values[..., found[0]] ** self.power)


@dataclass(frozen=True, slots=True)
class GoldsteinModel:
    """A model of interest. Parameters come in the order of the ordinary fit: coefficients, then variances."""

    formula: str
    response: str
    predictors: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    family: str = "gaussian"
    group: str | None = None

    @property
    def rows(self) -> tuple[str, ...]:
        """The parameters' names."""
        return tuple(one.row for one in self.parameters)

    def ordinary(self, table: Table) -> Floats:
        """Fit the values of a table for what they are: parameters x (estimate, error)."""
        y = table.values([self.response])[:, 0]
        x = np.column_stack([np.ones(len(y)), table.values(self.predictors)])
        if self.group is not None:
            return self._scaled(random_intercepts(x, y, table.values([self.group])[:, 0]))
        return self._scaled(logistic(x, y) if self.family == "logit" else least_squares(x, y))

    def read(self, draws: Any) -> Floats:
        """Return what draws say: parameters x (mean, sd)."""
        columns = [one.of(draws.names, draws.values) for one in self.parameters]
        return self._scaled(np.array([[column.mean(), column.std()] for column in columns]))

    def _scaled(self, found: Floats) -> Floats:
        return np.asarray(found * np.array([one.times for one in self.parameters])[:, None])


def seed_of(release: Release, columns: tuple[str, ...]) -> int:
    """Return a seed for the chains that comes of the released values, so that every file has its own."""
    return crc32(np.ascontiguousarray(release.table.values(columns)).tobytes())


def _adjusted_estimates(model: GoldsteinModel, masking: Masking, **options: Any) -> Floats:
    from ...analysis import fit

    seed = seed_of(masking.release, model.predictors)
    with warnings.catch_warnings():
        # What a single fit has to say of its chains is for its analyst; here many files are averaged.
        warnings.simplefilter("ignore", MaskwellWarning)
        posterior = fit(
            model.formula,
            masking.release,
            family=model.family,
            chains=CHAINS,
            draws=DRAWS,
            warmup=DRAWS,
            naive=False,
            seed=seed,
            **options,
        )
    return model.read(posterior.draws)


def _proposal_estimates(model: GoldsteinModel, masking: Masking, *, hastings: bool) -> Floats:
    """Fit by the paper's proposal (A3): a number with noise and a category whose code has noise."""
    from ...analysis.samplers.goldstein.metropolis import NoisedData, PaperOptions, paper_draws

    release, (number, category) = masking.release, model.predictors
    released = release.table.values([model.response, number, category])
    ones = np.ones((len(released), 1))
    levels = range(len(masking.truth.schema[category].categories))
    law = _law(release, category)
    logs = np.column_stack([law.logpdf(released[:, 2:], level * ones) for level in levels])
    sd = float(_law(release, number).noise.sds[0])
    data = NoisedData(released[:, 0], ones, released[:, 1:2], sd * ones, (logs,))
    draws = paper_draws(
        data,
        chains=ONE,
        warmup=DRAWS,
        draws=DRAWS,
        seed=seed_of(release, model.predictors),
        options=PaperOptions(hastings=hastings),
    )
    return model.read(_Read(("Intercept", number, category, "sigma"), draws.values))


def _law(release: Release, column: str) -> Any:
    return release.card.law_of(column)


@dataclass(frozen=True, slots=True)
class _Read:
    """Draws by name."""

    names: tuple[str, ...]
    values: Floats


Way = Callable[[GoldsteinModel, Masking], Floats]
WAYS: Mapping[str, Way] = {
    ORIGINAL: lambda model, masking: model.ordinary(masking.truth),
    NAIVE: lambda model, masking: model.ordinary(masking.release.table),
    ADJUSTED: lambda model, masking: _adjusted_estimates(model, masking),
    FLAT: lambda model, masking: _adjusted_estimates(model, masking, covariate_groups=False),
    HASTINGS: lambda model, masking: _proposal_estimates(model, masking, hastings=True),
    PRINTED: lambda model, masking: _proposal_estimates(model, masking, hastings=False),
}


@dataclass(frozen=True, slots=True)
class Analysis:
    """A file, its mask, and the ways in which the model of interest is fitted to it."""

    data: Any
    mask: Any
    ways: tuple[str, ...]

    def found(self, masking: Masking) -> Floats:
        """Return ways x parameters x (estimate, error)."""
        return np.array([WAYS[way](self.data.model, masking) for way in self.ways])

    def of(self, found: Floats, way: str, row: str) -> tuple[Floats, Floats]:
        """Return a parameter's estimates and errors, one for each file."""
        place = found[:, self.ways.index(way), self.data.model.rows.index(row)]
        return place[:, 0], place[:, 1]


# Ordinary fits, which take values for what they are: a row for each parameter, estimate and error.
#
# They are made of the original file and, unadjusted, of the released one.


MOST = 1e4  # the largest ratio of the variance between groups to that within them that is looked for
STEPS, NEAR = 50, 1e-10  # of Newton's method


def least_squares(x: Floats, y: Floats) -> Floats:
    """Fit a linear model; the last row is the residual variance."""
    coefficients, variance, errors = _weighted_fit(x.T @ x, x.T @ y, float(y @ y), len(y))
    own = variance * np.sqrt(2 / (len(y) - x.shape[1]))
    return np.column_stack([np.append(coefficients, variance), np.append(errors, own)])


def _weighted_fit(xx: Floats, xy: Floats, yy: float, records: int) -> tuple[Floats, float, Floats]:
    """Return coefficients, residual variance and errors, given weighted sums of squares and products."""
    inverse = np.linalg.inv(xx)
    coefficients = inverse @ xy
    variance = (yy - float(xy @ coefficients)) / (records - len(xx))
    return coefficients, variance, np.sqrt(variance * np.diag(inverse))


def random_intercepts(x: Floats, y: Floats, groups: Floats) -> Floats:
    """Fit a linear model with an intercept for every group (REML); the last rows are the variances u and e.

    The variances have no errors here (nan): those of a likelihood are not what the paper's chains give.
    """
    from scipy.optimize import minimize_scalar

    sums = _Sums(x, y, groups)
    best = minimize_scalar(
        lambda log_ratio: sums.deviance(float(np.exp(log_ratio))),
        bounds=(-12.0, float(np.log(MOST))),
        method="bounded",
        options={"xatol": 1e-8},
    )
    ratio = float(np.exp(best.x))
    coefficients, variance, errors = sums.fitted(ratio)
    values = [*coefficients, ratio * variance, variance]
    return np.column_stack([values, [*errors, np.nan, np.nan]])


class _Sums:
    """What the likelihood needs of the records: sums of squares and products, of all and of the sums of the groups."""

    def __init__(self, x: Floats, y: Floats, groups: Floats) -> None:
        _, codes = np.unique(groups, return_inverse=True)
        both = np.column_stack([x, y])
        self.products, self.records = both.T @ both, len(y)
        self.sizes = np.bincount(codes).astype(np.float64)
        self.totals = np.column_stack([np.bincount(codes, weights=column) for column in both.T])

    def _weighted_products(self, ratio: float) -> Floats:
        """Return the products weighted by the inverse covariance: I - ratio / (1 + ratio n) 1 1' in each group."""
        weights = ratio / (1 + ratio * self.sizes)
        return np.asarray(self.products - (self.totals * weights[:, None]).T @ self.totals)

    def fitted(self, ratio: float) -> tuple[Floats, float, Floats]:
        """Return coefficients, residual variance and errors where the ratio of the variances is known."""
        products = self._weighted_products(ratio)
        return _weighted_fit(products[:-1, :-1], products[:-1, -1], float(products[-1, -1]), self.records)

    def deviance(self, ratio: float) -> float:
        """Return -2 log restricted likelihood, without what does not depend on the ratio."""
        products = self._weighted_products(ratio)
        _, variance, _ = self.fitted(ratio)
        free = self.records - len(products) + 1
        spread = float(np.log1p(ratio * self.sizes).sum()) + float(np.linalg.slogdet(products[:-1, :-1])[1])
        return free * float(np.log(variance)) + spread


def logistic(x: Floats, y: Floats) -> Floats:
    """Fit a logistic model by its score equations, X'(y - p) = 0; they have a solution for responses with noise too."""
    coefficients = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ coefficients, -30, 30)))
        information = (x * (p * (1 - p))[:, None]).T @ x
        step = np.linalg.solve(information, x.T @ (y - p))
        coefficients = coefficients + step
        if float(np.abs(step).max()) < NEAR:
            break
    return np.column_stack([coefficients, np.sqrt(np.diag(np.linalg.inv(information)))])
