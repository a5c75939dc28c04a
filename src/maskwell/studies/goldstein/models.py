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
from .ordinary import least_squares, logistic, random_intercepts

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
