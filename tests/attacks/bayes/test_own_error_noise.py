"""Noise with a normal error added: tails, boxes, covariances (test_bayes_error has its density against quadrature)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from maskwell.attacks.bayes.own_error.convolved_noise import LaplaceAndNormal, noise_plus_error
from maskwell.laws import JointMixture, Laplace, Normal, RotatedMixture

from ...laws.conftest import PAIR, UNIT_MEANS

JOINT = {
    "normal": Normal((2.0, 1.0), PAIR),
    "joint mixture": JointMixture((0.25,) * 4, UNIT_MEANS, 0.4, (2.0, 1.0), PAIR),
    "rotated mixture": RotatedMixture((0.5, 0.5), (-0.9, 0.9), (0.44, 0.44), (2.0, 1.0), PAIR),
}


def test_laplace_and_normal_noise_keeps_its_digits_far_out():
    noise = LaplaceAndNormal((2**0.5 * 3.0, 0.0, 2.0), (0.5, 1.5, 0.0))
    at = np.array([[200.0, 1.0, 1.0], [-200.0, 1.0, 1.0]])
    points, _ = noise.log_box(at, at, (True,) * 3)
    rest = norm.logpdf(1.0, 0, 1.5) + Laplace((2.0,)).log_box(at[:, 2:], at[:, 2:], (True,))[0]
    tail = -200 / 3 - np.log(6) + 0.5 * (0.5 / 3) ** 2  # the last is what a normal error adds to the tail
    np.testing.assert_allclose(points, tail + rest, rtol=1e-13)
    boxes, _ = noise.only([0]).log_box(at[:, :1] - 1, at[:, :1] + 1, (False,))
    np.testing.assert_allclose(boxes, tail + np.log(6 * np.sinh(1 / 3)), rtol=1e-13)
    whole, _ = noise.only([0]).log_box(np.array([[-np.inf]]), np.array([[np.inf]]), (False,))
    assert whole == pytest.approx(0.0, abs=1e-15)
    edges = np.linspace(-40, 40, 81)[:, None]
    parts, _ = noise.only([0]).log_box(edges[:-1], edges[1:], (False,))
    assert np.exp(parts).sum() == pytest.approx(1 - 2 * np.exp(-40 / 3 + 0.5 / 36) / 2, rel=1e-12)


def test_a_blurred_mixture_has_the_covariances_of_both():
    for noise in JOINT.values():
        both = noise_plus_error(noise, np.array([1.5, 0.5]))
        np.testing.assert_allclose(both.covariance, noise.covariance + np.diag([2.25, 0.25]), rtol=1e-12)
        np.testing.assert_allclose(both.only([1]).covariance, both.covariance[1:, 1:], rtol=1e-12)
        assert (both.resolution > noise.resolution).all()
