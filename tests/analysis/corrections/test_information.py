"""The information of simulated released records, against closed forms and integrals."""

from __future__ import annotations

import numpy as np

from maskwell.analysis.corrections.calibration import slopes
from maskwell.analysis.corrections.covariate_model import fit_logits
from maskwell.analysis.corrections.glm import FAMILIES, Data, fit_ordinary
from maskwell.analysis.corrections.information import Channel, SimulatedModel, chances, simulated_ratios
from maskwell.analysis.corrections.interval_forecast import forecast
from maskwell.masks import Pram

from .corrections_cases import make_table


def one_predictor(family: str, beta: np.ndarray, noise: float) -> tuple[SimulatedModel, Channel]:
    """A standard normal predictor with normal noise."""
    count = 5_000
    bases, loadings = np.zeros((1, count, 2)), np.zeros((1, count, 2, 1))
    bases[..., 0] = loadings[:, :, 1] = 1.0
    clean, nothing = np.ones((count, 1)), np.zeros((0, 1))
    known = np.zeros((1, 1)), np.eye(1)
    model = SimulatedModel(
        FAMILIES[family], beta, 1.0, np.zeros(count), clean, bases, loadings, nothing, *known
    )
    channel = Channel(
        lambda kinds, x: (
            x + np.sqrt(noise) * np.random.default_rng(3).standard_normal(x.shape),
            np.zeros((len(x), 1)),
        ),
        lambda z: z,
        lambda z, x: -((z - x)[:, 0] ** 2) / (2 * noise),
        np.array([[noise]]),
    )
    return model, channel


def test_simulated_information_has_the_closed_form_of_linear_models():
    """Fuller's variance again: of the slope as above, of the intercept (1 + s) and nothing else."""
    noise = 0.4
    model, channel = one_predictor("gaussian", np.array([0.5, 1.0]), noise)
    ratios, errors = simulated_ratios(model, channel, seed=1)
    expected = np.sqrt([1 + noise, (1 + noise) ** 2 + noise**2])
    assert (np.abs(ratios - expected) < 4 * errors + 0.02).all()
    assert (errors < 0.03).all()


def test_simulated_information_of_a_changed_category_is_that_of_a_mixture():
    """A binary predictor that stays with probability .8: the response is a mixture, integrated on a grid."""
    beta, stay, share = np.array([0.2, 1.5]), 0.8, 0.4
    y, step = np.linspace(-7, 9, 4001, retstep=True)

    def seen(theta: np.ndarray) -> np.ndarray:
        """Return the density of response and released category, for each category."""
        at, size, one = theta[:2], np.sqrt(theta[2]), 1 / (1 + np.exp(-theta[3]))
        normal = [
            np.exp(-(((y - centre) / size) ** 2) / 2) / size / np.sqrt(2 * np.pi)
            for centre in (at[0], at.sum())
        ]
        pairs = [(stay, 1 - stay), (1 - stay, stay)]
        return np.array([(1 - one) * a * normal[0] + one * b * normal[1] for a, b in pairs])

    theta = np.array([*beta, 1.0, np.log(share / (1 - share))])
    density = seen(theta)
    scores = slopes(lambda values: seen(values).ravel(), theta, np.full(4, 0.01)).reshape(2, len(y), 4)
    scores = scores / density[:, :, None]
    told = np.einsum("kya,kyb,ky->ab", scores, scores, density) * step
    whole = np.array([[1, share], [share, share]])
    expected = np.sqrt(np.diag(np.linalg.inv(told))[:2] / np.diag(np.linalg.inv(whole)))
    assert expected[1] > 1.3
    rng = np.random.default_rng(1)
    sex = rng.random(4_000) < share
    table = make_table(4_000, sex=np.where(sex, "m", "f"), y=0.2 + 1.5 * sex + rng.standard_normal(4_000))
    found = forecast("y ~ sex", table, Pram("sex", stay=stay))
    ratios = 1 + np.array([found.widening[name] for name in ("Intercept", "sex[m]")])
    # The table's own share, slope and variance differ from these by their sampling errors: 3% of the ratios.
    np.testing.assert_allclose(ratios, expected, atol=4 * found.errors["sex[m]"] + 0.04)


def test_simulated_information_has_the_closed_form_of_probit_models():
    """y given z is probit again: its information, and that on the law of z, carried to the slope by derivatives."""
    beta, noise = np.array([0.3, 1.0]), 0.5

    def true_slopes(seen: np.ndarray) -> np.ndarray:
        a, b, centre, total = seen
        kept = 1 - noise / total
        slope = b / np.sqrt(kept**2 - b**2 * kept * noise)
        return np.array([a * np.sqrt(1 + slope**2 * kept * noise) - slope * (1 - kept) * centre, slope])

    total = 1 + noise
    kept = 1 / total
    size = np.sqrt(1 + beta[1] ** 2 * kept * noise)
    seen = np.array([beta[0] / size, beta[1] * kept / size, 0.0, total])
    np.testing.assert_allclose(true_slopes(seen), beta)
    points, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()

    def information(sd: float, a: float, b: float) -> np.ndarray:
        design = np.column_stack([np.ones(80), sd * points])
        return design.T @ (design * (weights * FAMILIES["probit"].expected(design @ [a, b]))[:, None])

    spread = np.zeros((4, 4))
    spread[:2, :2] = np.linalg.inv(information(np.sqrt(total), *seen[:2]))
    spread[2, 2], spread[3, 3] = total, 2 * total**2
    turn = slopes(true_slopes, seen, np.full(4, 0.01))
    expected = np.sqrt(np.diag(turn @ spread @ turn.T) / np.diag(np.linalg.inv(information(1.0, *beta))))
    model, channel = one_predictor("probit", beta, noise)
    ratios, errors = simulated_ratios(model, channel, seed=1)
    assert expected[1] > 1.3
    assert (np.abs(ratios - expected) < 4 * errors + 0.02).all()


def test_two_kinds_have_the_logits_of_a_logit_model():
    rng = np.random.default_rng(4)
    clean = np.column_stack([np.ones(600), rng.standard_normal(600)])
    member = (rng.random(600) < chances(clean, np.array([[0.3, -0.8]]))[:, 1]).astype(np.int64)
    ours = fit_logits(clean, member, 2)
    ordinary = fit_ordinary(Data(member.astype(float), clean, np.ones(600)), FAMILIES["logit"])
    np.testing.assert_allclose(ours[0], ordinary.coefficients, rtol=1e-4)
    assert fit_logits(clean, np.zeros(600, np.int64), 1).shape == (0, 2)


def test_many_kinds_have_the_shares_of_the_file():
    member = np.repeat(np.arange(4), [10, 20, 30, 40])
    logits = fit_logits(np.ones((100, 1)), member, 4)
    np.testing.assert_allclose(chances(np.ones((1, 1)), logits)[0], [0.1, 0.2, 0.3, 0.4], rtol=1e-4)
