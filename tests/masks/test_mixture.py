from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.laws import JointMixture, Mixture, RotatedMixture
from maskwell.masking import apply
from maskwell.masks import MixtureNoise

from .conftest import EXACT, growth, numbers, plain, within_four

COLUMNS = ("A", "B", "C")
WEIGHTS = (0.1, 0.2, 0.3, 0.4)


def noise_of(mask: MixtureNoise, table, setting=EXACT):
    return mask.card(table, setting).laws[0].noise


def check_constraints(noise: Mixture, variances: np.ndarray, d: float, c: float) -> None:
    """Hawala's constraints: sum w theta = 0 and sum w (theta^2 + c sigma^2) = d sigma^2, to 1e-12."""
    weights, means, sds = np.array(noise.weights), np.array(noise.means), np.array(noise.sds)
    sigma = np.sqrt(variances)
    assert np.abs(means @ weights / sigma).max() < 1e-12
    assert np.abs(((means**2 + sds**2) @ weights) / variances - d).max() < 1e-12
    assert np.abs(sds**2 / variances[:, None] - c).max() < 1e-12


@settings(max_examples=25)
@given(
    components=st.integers(2, 9),
    symmetric=st.booleans(),
    c=st.floats(0.01, 0.4),
    between=st.floats(0.01, 1.0),
)
def test_the_constraints_hold_for_any_number_of_components(components, symmetric, c, between):
    table = plain(numbers(50))
    mask = MixtureNoise(COLUMNS, c + between, c, components=components, symmetric=symmetric)
    check_constraints(noise_of(mask, table), np.var(table.values(COLUMNS), axis=0, ddof=1), c + between, c)


@settings(max_examples=25)
@given(st.lists(st.floats(0.05, 1.0), min_size=2, max_size=6), st.booleans())
def test_the_constraints_hold_for_free_weights(weights, symmetric):
    table = plain(numbers(50))
    shares = tuple(np.array(weights) / sum(weights))
    mask = MixtureNoise(COLUMNS, 0.3, 0.1, components=len(shares), symmetric=symmetric, weights=shares)
    check_constraints(noise_of(mask, table), np.var(table.values(COLUMNS), axis=0, ddof=1), 0.3, 0.1)


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8])
def test_symmetric_means_are_hawalas(k):
    """Even k as printed; odd k with the index from 1 (printed from 2)."""
    d, c, h = 0.2445, 0.025, k // 2
    spacing = np.sqrt(12 * (d - c) / ((k - 1) * (k + 1) if k % 2 else (k + 2) * (k + 1)))
    steps = spacing * np.arange(1, h + 1)
    expected = np.array([*-steps[::-1], *([0.0] if k % 2 else []), *steps])
    weights, unit = MixtureNoise("A", d, c, components=k).unit_means()
    assert np.allclose(unit * np.sqrt(d - c), expected, rtol=1e-12)
    assert weights == (1 / k,) * k


@pytest.mark.parametrize("k", [2, 3, 6])
def test_asymmetric_means_are_hawalas_with_the_signs_mended(k):
    d, c = 0.2445, 0.025
    _, unit = MixtureNoise("A", d, c, components=k, symmetric=False).unit_means()
    expected = [-np.sqrt((d - c) / (k - 1))] * (k - 1) + [np.sqrt((k - 1) * (d - c))]
    assert np.allclose(unit * np.sqrt(d - c), expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        ({"components": 4}, JointMixture),
        ({"components": 6, "weights": (0.1, 0.2, 0.3, 0.2, 0.1, 0.1)}, JointMixture),
        ({"components": 4, "weights": WEIGHTS, "construction": "components"}, JointMixture),
        ({"components": 2}, RotatedMixture),
        ({"components": 5, "construction": "rotation"}, RotatedMixture),
        ({"components": 4, "weights": WEIGHTS, "symmetric": False}, RotatedMixture),
    ],
)
def test_roques_covariance_is_proportional_to_that_of_the_data(table, rest, kind):
    noise = noise_of(MixtureNoise(COLUMNS, 0.3, 0.06, correlated=True, **rest), table)
    sigma = np.cov(table.values(COLUMNS).T)
    scale = np.sqrt(np.outer(np.diag(sigma), np.diag(sigma)))
    assert isinstance(noise, kind)
    assert np.abs((noise.covariance - 0.3 * sigma) / scale).max() < 1e-12
    if isinstance(noise, JointMixture):
        assert np.abs((noise.within_covariance - 0.06 * sigma) / scale).max() < 1e-12
        assert np.abs(np.array(noise.weights) @ noise.means / np.sqrt(np.diag(sigma))).max() < 1e-12
        q = np.sqrt(np.array(noise.weights))[:, None] * np.array(noise.unit_means)
        assert np.abs(q.T @ q - np.eye(3)).max() < 1e-12


@pytest.mark.parametrize("components", [2, 4])
def test_released_moments_are_the_promised_ones(table, components):
    mask = MixtureNoise(COLUMNS, 0.3, 0.06, components=components, correlated=True)
    z, x = apply(mask, table, seed=1, exact=True).masked.values(COLUMNS), table.values(COLUMNS)
    assert within_four(z - x)
    assert within_four(growth(z, x), 0.3 * np.cov(x.T))
    plainly = MixtureNoise(COLUMNS, 0.3, 0.06, components=components)
    z = apply(plainly, table, seed=1, exact=True).masked.values(COLUMNS)
    assert within_four(np.einsum("ni,nj->nij", z - x, z - x), np.diag(0.3 * x.var(axis=0, ddof=1)))


def test_the_card_is_rounded(table):
    noise = MixtureNoise(COLUMNS, 0.3, 0.06).card(table).laws[0].noise
    sizes = [row[1] for row in noise.means] + [row[0] for row in noise.sds]
    assert all(size == pytest.approx(float(f"{size:.1e}"), rel=1e-14) for size in sizes)
    joint = MixtureNoise(COLUMNS, 0.3, 0.06, components=4, correlated=True).card(table).laws[0].noise
    assert all(sd == float(f"{sd:.1e}") for sd in joint.sds)
    assert joint.within == 0.06 / 0.3


def test_one_correlated_column_is_a_plain_mixture(table):
    assert isinstance(noise_of(MixtureNoise("A", 0.3, 0.06, correlated=True), table), Mixture)


@settings(max_examples=15)
@given(stretch=st.floats(0.01, 1000), components=st.sampled_from([2, 4]), correlated=st.booleans())
def test_a_stretched_column_stretches_its_card_and_its_law(stretch, components, correlated):
    factors = np.array([1.0, stretch, 1.0])
    values = numbers(60)
    mask = MixtureNoise(COLUMNS, 0.3, 0.06, components=components, correlated=correlated)
    before, after = noise_of(mask, plain(values)), noise_of(mask, plain(values * factors))
    assert np.allclose(after.covariance, before.covariance * np.outer(factors, factors), rtol=1e-9, atol=0)
    z = np.array([[1.0, 2.0, 0.5]])
    points = (True,) * 3
    density, wide = before.log_box(z, z, points)[0], after.log_box(z * factors, z * factors, points)[0]
    assert wide == pytest.approx(density - np.log(stretch), abs=1e-6)


def test_a_plan_says_everything_that_is_wrong_with_it(messages):
    wrong = {"components": 3, "weights": (0.5, 0.6), "construction": "both"}
    assert messages(lambda: MixtureNoise((), 0.1, 0.2, **wrong)) == (
        "a mask needs at least one column",
        "there are 2 weights for 3 components",
        "within_variance_ratio must lie below variance_ratio",
        "construction must be 'components' or 'rotation', not 'both'",
        "a construction is for correlated=True only",
    )
    few = {"components": 3, "symmetric": False, "correlated": True, "construction": "components"}
    assert messages(lambda: MixtureNoise(COLUMNS, 0.3, 0.1, **few)) == (
        "symmetric=False places means along a line: it needs construction 'rotation'",
        "construction 'components' needs more components (3) than columns (3); raise components or use 'rotation'",
    )
    assert messages(lambda: MixtureNoise("A", 0.3, 0.1, components=1)) == (
        "a mixture needs at least two components",
    )
    assert messages(lambda: MixtureNoise("A", 0.3, 0.1, weights=(0.5, 0.4))) == (
        "weights must be positive and sum to 1",
    )
    assert "variance_ratio must lie above 0" in messages(lambda: MixtureNoise("A", float("nan"), 0.1))
