"""Ordinary fits against statsmodels, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.analysis.corrections.glm import FAMILIES, Data, family_of, fit_ordinary, log_density
from maskwell.errors import BadPlan

RECORDS = 400


def made(family: str, seed: int = 1) -> Data:
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(RECORDS), rng.standard_normal((RECORDS, 2))])
    eta = design @ np.array([0.3, 0.8, -0.5])
    y = {
        "gaussian": lambda: eta + rng.standard_normal(RECORDS) * (1 + np.abs(design[:, 1])),
        "logit": lambda: (rng.random(RECORDS) < 1 / (1 + np.exp(-eta))).astype(float),
        "probit": lambda: (rng.standard_normal(RECORDS) < eta).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
    }[family]()
    return Data(y, design, rng.uniform(0.5, 2.0, RECORDS))


def theirs(data: Data, family: str, weights: np.ndarray):
    import statsmodels.api as sm

    links = {
        "gaussian": sm.families.Gaussian(),
        "logit": sm.families.Binomial(),
        "probit": sm.families.Binomial(sm.families.links.Probit()),
        "poisson": sm.families.Poisson(),
    }
    return sm.GLM(
        data.y, data.design, links[family], freq_weights=weights, offset=np.broadcast_to(data.offset, RECORDS)
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_coefficients_and_standard_errors_are_those_of_statsmodels(family):
    given = made(family)
    data = Data(given.y, given.design, np.ones(RECORDS), 0.1 * given.design[:, 1])
    ours = fit_ordinary(data, FAMILIES[family])
    model = theirs(data, family, np.ones(RECORDS)).fit(tol=1e-12)
    information = -model.model.hessian(model.params, scale=model.scale)
    np.testing.assert_allclose(ours.coefficients, model.params, rtol=1e-6)
    np.testing.assert_allclose(ours.covariance, np.linalg.inv(information), rtol=1e-5, atol=1e-9)
    robust = theirs(data, family, np.ones(RECORDS)).fit(tol=1e-12, cov_type="HC0").cov_params()
    factor = RECORDS / (RECORDS - 3)
    rtol = 1e-5 if family != "probit" else 0.05  # theirs has the expected information inside
    np.testing.assert_allclose(np.diag(ours.sandwich), factor * np.diag(robust), rtol=rtol)


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_those_of_statsmodels(family):
    data = made(family)
    ours = fit_ordinary(data, FAMILIES[family])
    np.testing.assert_allclose(
        ours.coefficients, theirs(data, family, data.weights).fit(tol=1e-12).params, rtol=1e-6
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_and_information_are_derivatives_of_the_log_density(family):
    kind, eta, step = FAMILIES[family], np.linspace(-2, 2, 9), 1e-5
    for y in (np.zeros(9), np.ones(9)):
        up, down = log_density(kind, y, eta + step), log_density(kind, y, eta - step)
        np.testing.assert_allclose(kind.score(y, eta), (up - down) / (2 * step), rtol=1e-6, atol=1e-8)
        bent = (kind.score(y, eta + step) - kind.score(y, eta - step)) / (2 * step)
        np.testing.assert_allclose(kind.observed(y, eta), -bent, rtol=1e-5, atol=1e-8)


def test_separated_responses_are_refused():
    data = made("logit")
    apart = Data((data.design[:, 1] > 0.2).astype(float), data.design, np.ones(RECORDS))
    for family in ("logit", "probit"):
        with pytest.raises(BadPlan, match="separate"):
            fit_ordinary(apart, FAMILIES[family])


def test_collinear_columns_are_refused():
    data = made("gaussian")
    twice = Data(data.y, np.column_stack([data.design, data.design[:, 1] * 2]), np.ones(RECORDS))
    with pytest.raises(BadPlan, match="leave it out"):
        fit_ordinary(twice, FAMILIES["gaussian"])


def test_unknown_families_are_refused_with_the_near_one():
    with pytest.raises(BadPlan, match="did you mean 'poisson'"):
        family_of("poison")
    assert family_of("binary").name == "logit"
