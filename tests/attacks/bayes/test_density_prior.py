"""p(z | y) for a law of true values with a density: nodes, the closed form, and the noise taken out of a release."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logsumexp
from scipy.stats import gamma, multivariate_normal, norm

import maskwell as mw
from maskwell.attacks.bayes.marginal.true_value_law import TrueValueLaw
from maskwell.attacks.bayes.own_error.closed_form import shrunk
from maskwell.attacks.bayes.own_error.density_prior import LatticeLikelihood
from maskwell.attacks.bayes.own_error.error_law import OwnError
from maskwell.attacks.bayes.own_error.nodes import Lattices
from maskwell.attacks.pair_density import laws_on
from maskwell.card import NoiseCard
from maskwell.laws import Additive, Normal, Outlet
from maskwell.masking import Release
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .test_own_error import LAWS, LETTERS, amounts, letters

# --- a law of true values that has a density -------------------------------------------------------------------


def gamma_population(table):
    """True values around 50, skewed: log p(x)."""
    with np.errstate(divide="ignore"):
        return gamma.logpdf(table.floats("A"), 12.0, scale=4.0)


def by_population(law, z, y, sd):
    """p(z | y) on a fine grid of true values."""
    x = np.linspace(max(y - 10 * sd, 1e-6), y + 10 * sd, 8001)
    weights = norm.logpdf(y, x, sd) + gamma.logpdf(x, 12.0, scale=4.0)
    logs = law.logpdf(np.full((len(x), 1), z), x[:, None]) + weights
    return logsumexp(logs) - logsumexp(weights)


def behind(law, z, x, error, density):
    """Known x released: log p(z | y) by nodes."""
    lattices = Lattices(x, error, error.columns, density, [law])
    found = LatticeLikelihood(lattices, Release(z, NoiseCard((law,))), law.columns, None, ())
    known, released = np.divmod(np.arange(len(z) * len(x)), len(z))
    return found.logs(released, known, np.zeros(len(z))).reshape(len(x), len(z)), found


@pytest.mark.parametrize("sd", [2.0, 15.0])
@pytest.mark.parametrize(
    "name", ["normal", "rounded and clamped", "laplace", "mixture", "bias", "steps", "log", "skewed bias"]
)
def test_nodes_give_the_integral_over_true_values(name, sd):
    law, y, released = LAWS[name], np.array([30.0, 48.0, 90.0]), np.array([30.0, 45.0, 50.0, 60.0])
    found, nodes = behind(law, amounts(A=released), amounts(A=y), OwnError({"A": sd}), gamma_population)
    expected = np.array([[by_population(law, z, one, sd) for z in released] for one in y])
    likely = expected > -8
    assert likely.sum() >= 3
    close = {"laplace": 5e-3, "steps": 0.03, "log": 5e-3, "skewed bias": 5e-3}.get(name, 1e-4)
    np.testing.assert_allclose(found[likely], expected[likely], rtol=0, atol=close)
    assert nodes.is_rough == (name == "steps")


def test_noise_too_fine_for_the_nodes_is_said_to_be():
    law = Additive(("A",), Normal((0.01,)), (Outlet(),))
    _, nodes = behind(law, amounts(A=[50.0]), amounts(A=[50.0]), OwnError({"A": 9.0}), gamma_population)
    assert nodes.is_rough


def test_a_narrow_population_is_found_within_a_wide_error():
    """True values have an sd of 0.05 around 50, his of 20: the nodes must find them."""
    law = Additive(("A",), Normal((0.1,)), (Outlet(),))
    z, y = np.array([49.9, 50.0, 50.3]), np.array([13.0, 50.0, 90.0])
    found, _ = behind(
        law, amounts(A=z), amounts(A=y), OwnError({"A": 20.0}), lambda t: norm.logpdf(t.floats("A"), 50, 0.05)
    )
    expected = norm.logpdf(z, 50 + (y[:, None] - 50) * 0.05**2 / 400, np.hypot(0.1, 0.05))
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_whole_numbers_and_categories_are_summed_over():
    """A known to within 0.6, C wrong in a fifth of the cases: the sum over all whole A and all C by hand."""
    schema = Schema((Column("A", "integer"), Column("C", "category", categories=LETTERS)))
    y = Table.from_frame(pa.table({"A": [4], "C": ["b"]}), schema)
    shares = np.array([[0.1, 0.2, 0.0], [0.3, 0.1, 0.3]])  # of A odd and even, and C

    def population(table):
        with np.errstate(divide="ignore"):
            return np.log(shares[1 - (table.floats("A") % 2).astype(int), table.floats("C").astype(int)])

    laws = (
        Additive(("A",), Normal((1.5,)), (Outlet(),)),
        Additive(("C",), Normal((0.7,)), (Outlet(),), categories=(LETTERS,)),
    )
    error = OwnError({"A": 0.6}, {"C": 0.2})
    lattices = Lattices(y, error, error.columns, population, laws)
    owner, nodes, log_weight, _ = lattices.of(np.array([0]))
    a, c = np.meshgrid(np.arange(-3, 12), range(3), indexing="ij")
    weights = (norm.cdf((4.5 - a) / 0.6) - norm.cdf((3.5 - a) / 0.6)) * np.where(c == 1, 0.8, 0.1)
    weights *= shares[1 - a % 2, c]
    values = nodes.values(("A", "C"))
    for i, (one, two) in enumerate(values):
        here = (a == one) & (c == two)
        assert np.exp(log_weight[i]) == pytest.approx(weights[here][0] / weights.sum(), rel=1e-3, abs=1e-6)
    assert np.exp(log_weight).sum() == pytest.approx(1.0, rel=1e-9)
    assert (owner == 0).all()


# --- a normal law with the noise taken out ---------------------------------------------------------------------

CORRELATED = Additive(
    ("A", "B"), Normal((0.6, 0.9), ((1.0, -0.3), (-0.3, 1.0))), (Outlet(low=-1.0), Outlet()), slope=0.9
)


def test_the_closed_form_is_the_integral():
    """Correlated noise, a clamped column, a missing value, errors of both or one: nodes give the same."""
    rng = np.random.default_rng(5)
    values = rng.multivariate_normal([1.0, 2.0], [[1.0, 0.6], [0.6, 2.0]], 400)
    z = amounts(
        A=np.maximum(0.9 * values[:, 0] + rng.normal(0, 0.6, 400), -1),
        B=0.9 * values[:, 1] + rng.normal(0, 0.9, 400),
    )
    schema = Schema((Column("A", "continuous"), Column("B", "continuous", missing=(-99,))))
    x = Table.from_frame(pa.table({"A": [0.5, 2.0, -1.0], "B": [1.0, 6.0, -99.0]}), schema)
    card = NoiseCard((CORRELATED,))
    fitted = TrueValueLaw.of(z, ("A", "B"), card, ())
    some = z.take(np.arange(12))
    for sds in ({"A": 0.7, "B": 0.4}, {"A": 0.7}, {"B": 1.5}):
        error = OwnError(sds)
        closed = shrunk(laws_on(card, ("A", "B")), some, x, error, fitted)
        lattices = Lattices(x, error, error.columns, fitted, laws_on(card, ("A", "B")))
        nodes = LatticeLikelihood(lattices, Release(some, card), ("A", "B"), None, ())
        known, released = np.divmod(np.arange(24), 12)
        one, two = (way.logs(released, known, np.zeros(12)) for way in (closed, nodes))
        likely = one > -10
        assert likely.sum() > 12
        np.testing.assert_allclose(one[likely], two[likely], atol=1e-4)
        assert len(closed.terms) == 2


def test_the_noise_is_taken_out_of_the_release():
    rng = np.random.default_rng(6)
    count = 40_000
    true = rng.multivariate_normal([1.0, 2.0], [[1.0, 0.6], [0.6, 2.0]], count)
    noise = rng.multivariate_normal([0, 0], CORRELATED.noise.covariance, count)
    released = amounts(A=np.maximum(0.9 * true[:, 0] + noise[:, 0], -1.0), B=0.9 * true[:, 1] + noise[:, 1])
    fitted = TrueValueLaw.of(released, ("A", "B"), NoiseCard((CORRELATED,)), ())
    # the variance of an estimated variance is 2 v^2 / n, of z and with the slope undone
    close = 4 * np.sqrt(2 / count) * 2.5 / 0.81
    np.testing.assert_allclose(fitted.covariance, [[1.0, 0.6], [0.6, 2.0]], atol=close)
    np.testing.assert_allclose(fitted.mean, [1.0, 2.0], atol=4 * np.sqrt(2.5 / count) / 0.9)
    density = multivariate_normal(fitted.mean, fitted.covariance).logpdf([[0.3, 0.4]])
    assert fitted(amounts(A=[0.3], B=[0.4])) == pytest.approx(density)


def test_shares_of_categories_have_the_noise_taken_out():
    table = letters(["a"] * 50 + ["b"] * 30 + ["c"] * 20)
    masking = mw.apply(mw.Pram(("A",), stay=0.7), table, seed=4)
    (law,) = masking.card.laws
    fitted = TrueValueLaw.of(masking.release.table, ("A",), masking.card, ("A",))
    seen = np.bincount(masking.release.table.floats("A").astype(int), minlength=3) / 100
    shares = np.exp(fitted.log_shares["A"])
    solved = np.linalg.solve(np.array(law.matrix).T, seen)
    assert (solved > 0).all()
    np.testing.assert_allclose(shares, solved, atol=1e-6)
    np.testing.assert_allclose(fitted(letters(LETTERS)), np.log(solved), atol=1e-5)
