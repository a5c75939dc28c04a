from __future__ import annotations

import json

import numpy as np
import pytest

from maskwell.laws import JointMixture, Laplace, Mixture, Normal, RotatedMixture
from maskwell.laws.convolution import NOISES, convolve, extend_noise, noise_from_dict, normal_from_covariance

from .conftest import CORRELATIONS, PAIR, UNIT_MEANS

MIXTURE = Mixture((0.2, 0.5, 0.3), ((-1.2, 0.1, 1.5),), ((0.4, 0.2, 0.3),))
OTHER = Mixture((0.5, 0.5), ((-0.6, 0.8),), ((0.2, 0.5),))
NOISES_TO_READ = [
    Normal((1.0, 2.0)),
    Normal((1.0, 2.0), PAIR),
    Laplace((1.0, 2.0)),
    MIXTURE,
    JointMixture((0.25,) * 4, UNIT_MEANS, 0.2, (1.0, 20.0), PAIR),
    RotatedMixture((0.3, 0.7), (-1.2, 0.5), (0.5, 0.4), (1.0, 20.0), PAIR),
]


@pytest.mark.parametrize("noise", NOISES_TO_READ, ids=lambda noise: noise.form)
def test_plain_data_gives_the_same_noise(noise):
    assert noise_from_dict(json.loads(json.dumps(noise.to_dict()))) == noise


def test_every_form_is_read():
    assert {noise.form for noise in NOISES_TO_READ} == set(NOISES)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Normal((0.6,)), Normal((0.8,))),
        (MIXTURE, Normal((0.3,))),
        (Normal((0.3,)), MIXTURE),
        (MIXTURE, OTHER),
    ],
    ids=["normal + normal", "mixture + normal", "normal + mixture", "mixture + mixture"],
)
def test_the_sum_has_the_convolution_of_the_densities(first, second):
    steps = np.linspace(-12, 12, 6001)
    both = convolve(first, second)
    for z in (-2.1, 0.0, 0.37, 3.0):
        parts = [
            np.exp(noise.log_box(v[:, None], v[:, None], (True,))[0])
            for noise, v in ((first, steps), (second, z - steps))
        ]
        integral = np.trapezoid(parts[0] * parts[1], steps)
        at = np.array([[z]])
        assert np.exp(both.log_box(at, at, (True,))[0][0]) == pytest.approx(integral, abs=1e-10)


def test_covariances_of_normals_add():
    first, second = Normal((1.0, 2.0, 3.0), CORRELATIONS), Normal((0.5, 0.5, 0.5))
    both = convolve(first, second)
    assert np.allclose(both.covariance, first.covariance + second.covariance, atol=1e-14)
    assert convolve(Normal((3.0,)), Normal((4.0,))) == Normal((5.0,))


def test_sums_without_closed_form_are_not_made_up():
    two = Mixture((0.5, 0.5), ((-1.0, 1.0),) * 2, ((0.2, 0.2),) * 2)
    assert convolve(Laplace((1.0,)), Normal((1.0,))) is None
    assert convolve(Normal((1.0,)), Laplace((1.0,))) is None
    assert convolve(two, Normal((1.0, 1.0), PAIR)) is None
    assert convolve(NOISES_TO_READ[4], NOISES_TO_READ[5]) is None


def test_further_columns_have_no_noise():
    assert extend_noise(Normal((1.0,)), 2) == Normal((1.0, 0.0, 0.0))
    correlated = extend_noise(Normal((1.0, 2.0), PAIR), 1)
    assert np.allclose(correlated.covariance, [[1, 1.6, 0], [1.6, 4, 0], [0, 0, 0]])
    assert np.allclose(np.diag(correlated.correlations), 1)
    assert np.allclose(np.diag(extend_noise(MIXTURE, 1).covariance), [MIXTURE.covariance[0, 0], 0])
    assert extend_noise(Laplace((1.0,)), 1) == Laplace((1.0, 0.0))
    assert extend_noise(NOISES_TO_READ[4], 1) is None


def test_a_covariance_gives_its_normal():
    covariance = Normal((1.0, 2.0, 3.0), CORRELATIONS).covariance
    assert np.allclose(normal_from_covariance(covariance).covariance, covariance, rtol=1e-14)
    assert normal_from_covariance(np.diag([4.0, 0.0])) == Normal((2.0, 0.0))
