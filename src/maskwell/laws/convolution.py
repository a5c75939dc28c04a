"""Which noises there are, how they are read back, and the noise of two added.

Normal + normal: covariances add. Mixture + normal, or + mixture: all pairs of components, weights multiplied, means and
variances added. Others (Laplace with anything) have no closed form and give nothing. Asked by `chain` and by nesting.
Sums of independent normals: Anderson (2003), section 2.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .mixture import JointMixture, Mixture, RotatedMixture
from .noise import Floats, Laplace, Noise, Normal

NOISES: dict[str, Any] = {
    kind.form: kind for kind in (Normal, Laplace, Mixture, JointMixture, RotatedMixture)
}


def noise_from_dict(data: Mapping[str, Any]) -> Noise:
    """Build a noise from plain data."""
    kind = NOISES[data["form"]]
    noise: Noise = kind(**{name: _freeze_lists(value) for name, value in data.items() if name != "form"})
    return noise


def _freeze_lists(value: Any) -> Any:
    """Return lists as tuples and whole numbers as floats, whose squares do not overflow."""
    if isinstance(value, list):
        return tuple(_freeze_lists(item) for item in value)
    return float(value) if isinstance(value, int) else value


def convolve(first: Noise, second: Noise) -> Noise | None:
    """Return the noise of two independent ones added, or nothing where it has no closed form."""
    if isinstance(first, Normal) and isinstance(second, Normal):
        return normal_from_covariance(first.covariance + second.covariance)
    if isinstance(first, Normal):
        first, second = second, first
    if isinstance(first, Mixture) and isinstance(second, Normal) and not second.correlations:
        widened = (np.array(first.sds) ** 2 + np.square(second.sds)[:, None]) ** 0.5
        return Mixture(first.weights, first.means, tuple(map(tuple, widened.tolist())))
    if isinstance(first, Mixture) and isinstance(second, Mixture):
        return _mixture_sum(first, second)
    return None


def _mixture_sum(first: Mixture, second: Mixture) -> Mixture:
    weights = np.outer(first.weights, second.weights).ravel()
    means = [np.add.outer(a, b).ravel() for a, b in zip(first.means, second.means, strict=True)]
    squares = [
        np.add.outer(np.square(a), np.square(b)).ravel() for a, b in zip(first.sds, second.sds, strict=True)
    ]
    rows = [tuple(np.sqrt(square).tolist()) for square in squares]
    return Mixture(tuple(weights.tolist()), tuple(tuple(m.tolist()) for m in means), tuple(rows))


def extend_noise(noise: Noise, count: int) -> Noise | None:
    """Return the noise with further columns that have none, or nothing where its columns belong together."""
    silent = (0.0,) * count
    if isinstance(noise, Normal):
        padding = tuple((0.0,) * (noise.width + j) + (1.0,) + (0.0,) * (count - j - 1) for j in range(count))
        padded = tuple((*row, *silent) for row in noise.correlations)
        return Normal((*noise.sds, *silent), (*padded, *padding) if noise.correlations else ())
    if isinstance(noise, Laplace):
        return Laplace((*noise.sds, *silent))
    if isinstance(noise, Mixture):
        nothing = ((0.0,) * len(noise.weights),) * count
        return Mixture(noise.weights, (*noise.means, *nothing), (*noise.sds, *nothing))
    return None


def normal_from_covariance(covariance: Floats) -> Normal:
    """Return normal noise with a given covariance."""
    sds = np.sqrt(np.diag(covariance))
    scale = np.where(sds > 0, sds, 1.0)
    correlations = covariance / np.outer(scale, scale)
    np.fill_diagonal(correlations, 1.0)
    if not (correlations - np.eye(len(sds))).any():
        return Normal(tuple(sds.tolist()))
    return Normal(tuple(sds.tolist()), tuple(tuple(row) for row in correlations.tolist()))
