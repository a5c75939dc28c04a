from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.errors import NoLaw
from maskwell.laws import JointMixture, Mixture, Normal, RotatedMixture

from .conftest import CORRELATIONS, PAIR, UNIT_MEANS, stream_of

SIGMA = Normal((1.0, 20.0), PAIR).covariance
JOINT = JointMixture((0.25,) * 4, UNIT_MEANS, 0.2, (1.0, 20.0), PAIR)
ROTATED = RotatedMixture((0.3, 0.7), (-1.2, 0.5142857142857142), (0.6, 0.6), (1.0, 20.0), PAIR)


def test_components_make_up_the_covariance_exactly():
    weights, means = np.array(JOINT.weights), JOINT.means
    between = (weights * means.T) @ means
    scale = np.outer((1.0, 20.0), (1.0, 20.0))
    assert np.abs(weights @ means).max() < 1e-12 * 20
    assert np.abs((between + JOINT.within_covariance - SIGMA) / scale).max() < 1e-12
    assert np.abs((JOINT.covariance - SIGMA) / scale).max() < 1e-12


def test_turned_unit_mixtures_have_the_covariance_of_sigma():
    unit = Mixture(ROTATED.weights, (ROTATED.unit_means,), (ROTATED.unit_sds,)).covariance[0, 0]
    scale = np.outer((1.0, 20.0), (1.0, 20.0))
    assert np.abs((ROTATED.covariance - unit * SIGMA) / scale).max() < 1e-12


@pytest.mark.parametrize("noise", [JOINT, ROTATED], ids=["joint", "rotated"])
def test_draws_have_the_covariance_of_the_law(noise):
    drawn = noise.draw(stream_of(100_000), "ab")
    products = np.einsum("ni,nj->nij", drawn, drawn)
    errors = products.std(axis=0) / np.sqrt(len(drawn))
    assert np.all(np.abs(products.mean(axis=0) - noise.covariance) < 4 * errors)
    assert np.all(np.abs(drawn.mean(axis=0)) < 4 * np.sqrt(np.diag(noise.covariance) / len(drawn)))


def test_cells_draw_their_components_apart_and_records_together():
    means = ((-1.0, 1.0), (-1.0, 1.0))
    cells = Mixture((0.5, 0.5), means, ((0.01, 0.01),) * 2).draw(stream_of(10_000), "ab") > 0
    records = JointMixture((0.5, 0.5), ((-1.0,), (1.0,)), 0.001, (1.0,), ((1.0,),))
    assert abs(np.mean(cells[:, 0] == cells[:, 1]) - 0.5) < 4 * 0.5 / 100
    assert records.draw(stream_of(100), "a").shape == (100, 1)
    corners = np.unique(np.round(JOINT.draw(stream_of(100), "ab") / (1.0, 20.0)), axis=0)
    assert len(corners) > 4


@pytest.mark.parametrize("noise", [JOINT, ROTATED], ids=["joint", "rotated"])
@pytest.mark.parametrize("kept", [0, 1])
def test_one_column_has_the_marginal_density(noise, kept):
    other, sds = 1 - kept, (1.0, 20.0)
    inner = np.linspace(-9, 9, 4001) * sds[other]
    for value in (-1.3, 0.2):
        z = np.empty((len(inner), 2))
        z[:, kept], z[:, other] = value * sds[kept], inner
        joint = np.trapezoid(np.exp(noise.log_box(z, z, (True, True))[0]), inner)
        alone = z[:1, [kept]]
        log, _ = noise.only([kept]).log_box(alone, alone, (True,))
        assert log[0] == pytest.approx(np.log(joint), abs=1e-9)


@settings(max_examples=20)
@given(st.lists(st.floats(-3, 3), min_size=2, max_size=2))
def test_turning_back_and_listing_components_agree(point):
    z = np.array([point]) * (1.0, 20.0)
    turned, _ = ROTATED.log_box(z, z, (True, True))
    components, _ = ROTATED._listed_box(z, z, (True, True))
    assert turned[0] == pytest.approx(components[0], abs=1e-9)


def test_columns_may_be_taken_in_another_order():
    z = np.array([[0.4, -11.0]])
    for noise in (JOINT, ROTATED):
        plain, _ = noise.log_box(z, z, (True, True))
        turned, _ = noise.only([1, 0]).log_box(z[:, ::-1], z[:, ::-1], (True, True))
        assert turned[0] == pytest.approx(plain[0], abs=1e-10)


def test_the_law_of_a_stretched_column_is_stretched():
    z, stretch = np.array([[0.4, -11.0]]), np.array([1.0, 1024.0])
    for noise in (JOINT, ROTATED):
        wide = replace(noise, sds=(1.0, 20.0 * 1024))
        assert np.array_equal(wide.draw(stream_of(50), "ab"), noise.draw(stream_of(50), "ab") * stretch)
        plain, _ = noise.log_box(z, z, (True, True))
        wider, _ = wide.log_box(z * stretch, z * stretch, (True, True))
        assert wider[0] == pytest.approx(plain[0] - np.log(1024), abs=1e-9)


@pytest.mark.parametrize("noise", [Mixture((0.3, 0.7), ((-1.0, 0.5),), ((0.3, 0.2),)), JOINT, ROTATED])
def test_the_log_mean_is_the_integral_over_the_density(noise):
    alone, sd = noise.only([0]), 1.0
    values = np.linspace(-10, 10, 20_001)[:, None] * sd
    density = np.exp(alone.log_box(values, values, (True,))[0])
    integral = np.trapezoid(density * np.exp(0.5 * values[:, 0]), values[:, 0])
    assert noise.log_mean_exp(0, np.array([0.5]))[0] == pytest.approx(np.log(integral), abs=1e-8)


def test_too_many_components_are_refused_with_a_remedy():
    width = 15
    noise = RotatedMixture(
        (0.5, 0.5), (-0.9, 0.9), (0.4, 0.4), (1.0,) * width, tuple(map(tuple, np.eye(width)))
    )
    zeros = np.zeros((1, width - 1))
    with pytest.raises(NoLaw, match="construction 'components'"):
        noise.only(range(width - 1)).log_box(zeros, zeros, (True,) * (width - 1))
    points = np.zeros((1, width))
    assert np.isfinite(noise.log_box(points, points, (True,) * width)[0]).all()


def test_a_component_that_never_occurs_has_no_density():
    never = JointMixture((1.0, 0.0, 0.0), ((0.0,), (1.0,), (2.0,)), 0.5, (1.0,), ((1.0,),))
    z = np.array([[0.3]])
    expected, _ = Normal((0.5**0.5,)).log_box(z, z, (True,))
    assert never.log_box(z, z, (True,))[0] == pytest.approx(expected, abs=1e-12)


def test_the_resolution_is_that_of_the_tightest_component():
    assert Mixture((0.5, 0.5), ((-1.0, 1.0),), ((0.3, 0.1),)).resolution == pytest.approx([0.1])
    assert JOINT.resolution == pytest.approx(np.sqrt(0.2) * 0.6 * np.array([1.0, 20.0]))
    wide = JointMixture((0.25,) * 4, ((-1.0, -1.0, 0.0),) * 4, 0.5, (1.0, 2.0, 3.0), CORRELATIONS)
    assert np.all(wide.resolution < np.sqrt(0.5) * np.array([1.0, 2.0, 3.0]))
