"""Without noise a fit is the ordinary one: estimates and standard errors of statsmodels, to sampling error."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from maskwell.analysis import fit
from maskwell.card import NoiseCard
from maskwell.masking import Release, apply
from maskwell.masks import IndependentNoise
from maskwell.schema import Column, Schema
from maskwell.table import Table

smf = pytest.importorskip("statsmodels.formula.api")
sm = pytest.importorskip("statsmodels.api")

RECORDS, GROUPS = 600, 30
DRAWS = {"chains": 2, "draws": 1200, "warmup": 150, "seed": 3, "naive": False}
SLACK = 0.12  # of a standard error: posterior means are not modes, by a share of about 1 / sqrt(records)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    x1, group = rng.normal(size=RECORDS), np.arange(RECORDS) % GROUPS
    x2, sex = 0.5 * x1 + rng.normal(size=RECORDS), rng.integers(0, 2, RECORDS)
    eta = 0.3 + 0.6 * x1 - 0.4 * x2 + 0.5 * sex
    found = {"x1": x1, "x2": x2, "sex": np.array(["f", "m"])[sex], "school": [f"s{g:02d}" for g in group]}
    found["y"] = eta + 0.7 * rng.normal(size=GROUPS)[group] + rng.normal(size=RECORDS)
    found["b"] = (rng.random(RECORDS) < 1 / (1 + np.exp(-eta))).astype(int)
    found["c"] = rng.poisson(np.exp(0.5 * eta))
    found["d"] = rng.poisson(np.exp(0.5 * eta) * rng.gamma(1.5, 1 / 1.5, RECORDS))
    found["o"] = np.digitize(eta + rng.normal(size=RECORDS), [-0.5, 0.5, 1.5])
    return pd.DataFrame(found)


@pytest.fixture(scope="module")
def table(frame: pd.DataFrame) -> Table:
    kinds = {"x1": "continuous", "x2": "continuous", "school": "text", "y": "continuous"}
    kinds |= {"b": "integer", "c": "integer", "d": "integer", "o": "integer"}
    columns = [Column(name, kind) for name, kind in kinds.items()]
    columns.append(Column("sex", "category", categories=("f", "m")))
    return Table.from_frame(pa.Table.from_pandas(frame, preserve_index=False), Schema(tuple(columns)))


@pytest.fixture(scope="module")
def release(table: Table) -> Release:
    return Release(table, NoiseCard())


def moments(posterior: Any, names: list[str], change: Any = None) -> tuple[Any, Any, Any]:
    """Means and sds of some parameters, and the Monte Carlo error of the means in sds."""
    from arviz_stats.base import array_stats

    values = posterior.draws.values[:, :, [posterior.names.index(name) for name in names]]
    values = values if change is None else change(values)
    sizes = np.array([array_stats.ess(values[:, :, k], chain_axis=0, draw_axis=1) for k in range(len(names))])
    return values.mean(axis=(0, 1)), values.std(axis=(0, 1)), 1 / np.sqrt(sizes)


def assert_agree(ours: tuple[Any, Any, Any], estimates: Any, errors: Any, slack: float = SLACK) -> None:
    mean, sd, error = ours
    assert np.all(np.abs(mean - np.asarray(estimates)) / np.asarray(errors) < 4 * error + slack)
    assert np.all(np.abs(np.log(sd / np.asarray(errors))) < 4 * error + slack)


SAME = {"Intercept": "Intercept", "x1": "x1", "x2": "x2", "sex[m]": "sex[T.m]"}


def by_ours(found: Any, names: list[str]) -> tuple[Any, Any]:
    theirs = [SAME[name] for name in names]
    return found.params[theirs].to_numpy(), found.bse[theirs].to_numpy()


@pytest.mark.parametrize("sampler", ["auto", "gibbs"])
def test_gaussian_is_ordinary_least_squares(sampler: str, frame: pd.DataFrame, release: Release):
    ours = fit("y ~ x1 + x2 + sex", release, sampler=sampler, **DRAWS)
    theirs = smf.ols("y ~ x1 + x2 + sex", frame).fit()
    assert_agree(moments(ours, list(SAME)), *by_ours(theirs, list(SAME)))
    sigma = theirs.mse_resid**0.5
    assert_agree(moments(ours, ["sigma"]), [sigma], [sigma / np.sqrt(2 * theirs.df_resid)])


@pytest.mark.parametrize(("family", "model"), [("logit", "logit"), ("probit", "probit")])
def test_binary_families_are_generalised_linear_models(
    family: str, model: str, frame: pd.DataFrame, release: Release
):
    ours = fit("b ~ x1 + x2 + sex", release, family=family, **DRAWS)
    theirs = getattr(smf, model)("b ~ x1 + x2 + sex", frame).fit(disp=0)
    assert_agree(moments(ours, list(SAME)), *by_ours(theirs, list(SAME)))


def test_counts_are_a_generalised_linear_model(frame: pd.DataFrame, release: Release):
    ours = fit("c ~ x1 + x2 + sex", release, family="poisson", **DRAWS)
    theirs = smf.glm("c ~ x1 + x2 + sex", frame, family=sm.families.Poisson()).fit()
    assert_agree(moments(ours, list(SAME)), *by_ours(theirs, list(SAME)))


def test_negative_binomial_counts(frame: pd.DataFrame, release: Release):
    ours = fit("d ~ x1 + x2 + sex", release, family="negative binomial", **DRAWS)
    theirs = smf.negativebinomial("d ~ x1 + x2 + sex", frame).fit(disp=0)
    assert_agree(moments(ours, list(SAME)), *by_ours(theirs, list(SAME)))
    shape = moments(ours, ["shape"], lambda values: 1 / values)
    assert_agree(shape, [theirs.params["alpha"]], [theirs.bse["alpha"]], slack=0.3)


def test_ordered_codes_are_an_ordered_probit_model(frame: pd.DataFrame, release: Release):
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    ours = fit("o ~ x1 + x2 + sex", release, family="ordered", **DRAWS)
    design = np.column_stack([frame.x1, frame.x2, frame.sex == "m"]).astype(float)
    model = OrderedModel(frame.o.to_numpy(), design, distr="probit")
    theirs = model.fit(method="bfgs", disp=0)
    names = ["x1", "x2", "sex[m]"]
    assert_agree(moments(ours, names), theirs.params[:3], theirs.bse[:3])
    cuts = model.transform_threshold_params(theirs.params[3:])[1:-1]
    mean, sd, error = moments(ours, ["cut[1]", "cut[2]", "cut[3]"])
    assert np.all(np.abs(mean - cuts) / sd < 4 * error + SLACK)


@pytest.mark.parametrize("sampler", ["auto", "gibbs"])
def test_group_effects_are_a_mixed_model(sampler: str, frame: pd.DataFrame, release: Release):
    ours = fit("y ~ x1 + x2 + sex + (1|school)", release, sampler=sampler, **DRAWS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = smf.mixedlm("y ~ x1 + x2 + sex", frame, groups=frame.school).fit(reml=True)
    slopes = ["x1", "x2", "sex[m]"]
    assert_agree(moments(ours, slopes), *by_ours(theirs, slopes))
    mean, sd, error = moments(ours, ["Intercept", "sigma", "sd(Intercept|school)"])
    estimates = [theirs.params["Intercept"], theirs.scale**0.5, float(theirs.cov_re.iloc[0, 0]) ** 0.5]
    # the posterior of a spread of 30 groups is skewed: its mean lies above the mode by a share of its sd
    assert np.all(np.abs(mean - estimates) / sd < 4 * error + np.array([SLACK, SLACK, 0.5]))


def test_noise_that_vanishes_leaves_the_ordinary_fit(frame: pd.DataFrame, table: Table):
    tiny = apply(IndependentNoise(("x1", "x2"), variance=1e-8), table, seed=4).release
    ours = fit("y ~ x1 + x2 + sex", tiny, sampler="gibbs", **DRAWS)
    theirs = smf.ols("y ~ x1 + x2 + sex", frame).fit()
    assert_agree(moments(ours, list(SAME)), *by_ours(theirs, list(SAME)))
