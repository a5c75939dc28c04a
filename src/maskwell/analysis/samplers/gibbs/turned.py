"""Coefficients of models that are not gaussian: an elliptical slice around the normal that lies closest.

Given everything else, the log posterior of coefficients and group effects is concave. Newton's method finds its
mode and curvature, the normal with these is the slice's prior, and the slice follows what is left: exact and
without tuning. From far out in a tail it would not find in, so chains begin near the mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...system import NEGATIVE_BINOMIAL
from .laid_out import EffectsPlace, Part
from .slices import slice_draw

if TYPE_CHECKING:
    from .sweeps import Chain

Floats = npt.NDArray[np.float64]

MOST_NEWTON, AT_REST = 25, 1e-6
FULL_TURN = 2 * np.pi


def draw_turned(chain: Chain, part: Part) -> None:
    """Draw coefficients with the effects of each factor in turn, then the shape of a negative binomial."""
    for k, place in enumerate(part.effects):
        _turn(
            chain, part, place, np.asarray(np.linalg.inv(chain.covariances[part.number][k]), dtype=np.float64)
        )
    if not part.effects:
        _turn(chain, part, EffectsPlace(-1, 0, 0, 0), np.empty((0, 0)))
    if part.equation.family == NEGATIVE_BINOMIAL:
        _shape(chain, part)


def start_turned(chain: Chain, part: Part) -> None:
    """Begin at a draw of the normal around the mode: an ellipse cannot climb from far out in a tail."""
    for k, place in enumerate(part.effects or (EffectsPlace(-1, 0, 0, 0),)):
        inverse = np.linalg.inv(chain.covariances[part.number][k]) if part.effects else np.empty((0, 0))
        precision = np.asarray(inverse, dtype=np.float64)
        here, pseudo = _Point(chain, part, place), (np.empty(len(chain.state)), np.empty(len(chain.state)))
        _mode(chain, here, pseudo, precision)
        here.solve(pseudo, precision, noisy=True)


def _turn(chain: Chain, part: Part, place: EffectsPlace, group_precision: Floats) -> None:
    """Draw coefficients and the effects of one factor on an ellipse around their mode."""
    from ....kernels.working import excess

    layout, values, state = chain.plan.laid_out.layout, chain.values, chain.state
    here = _Point(chain, part, place)
    now, eta_now = here.get(), here.etas()
    pseudo = np.empty(len(state)), np.empty(len(state))
    mode, eta_mode = _mode(chain, here, pseudo, group_precision)
    here.solve(pseudo, group_precision, noisy=True)
    step, eta_step = here.get() - mode, here.etas() - eta_mode
    ellipse = eta_mode, eta_now - eta_mode, eta_step
    height = excess(layout, values, state, ellipse, 0.0, pseudo) - chain.rng.standard_exponential()
    angle = FULL_TURN * chain.rng.random()
    low, high = angle - FULL_TURN, angle
    while high - low > 1e-12:
        if excess(layout, values, state, ellipse, angle, pseudo) > height:
            here.put(mode + (now - mode) * np.cos(angle) + step * np.sin(angle))
            return
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = low + (high - low) * chain.rng.random()
    here.put(now)


def _mode(
    chain: Chain, here: _Point, pseudo: tuple[Floats, Floats], group_precision: Floats
) -> tuple[Floats, Floats]:
    """Climb to the mode; leave the working targets and weights there in `pseudo`."""
    from ....kernels.working import working

    layout, values, state = chain.plan.laid_out.layout, chain.values, chain.state
    etas = here.etas()
    for _ in range(MOST_NEWTON):
        working(layout, values, state, etas, pseudo)
        here.solve(pseudo, group_precision, noisy=False)
        moved = here.etas()
        change = float(np.abs(moved - etas).max(initial=0.0))
        etas = moved if change < 2.0 else etas + (moved - etas) * (2.0 / change)
        if change < AT_REST:
            break
    working(layout, values, state, etas, pseudo)
    here.solve(pseudo, group_precision, noisy=False)
    return here.get(), here.etas()


class _Point:
    """Coefficients and the effects of one factor, as one vector."""

    def __init__(self, chain: Chain, part: Part, place: EffectsPlace) -> None:
        self.chain, self.part, self.place = chain, part, place

    def get(self) -> Floats:
        values, part, place = self.chain.values, self.part, self.place
        return np.concatenate(
            [values.coefficients[part.begin : part.stop], values.effects[place.begin : place.stop]]
        )

    def put(self, vector: Floats) -> None:
        values, part, place = self.chain.values, self.part, self.place
        size = part.stop - part.begin
        values.coefficients[part.begin : part.stop] = vector[:size]
        values.effects[place.begin : place.stop] = vector[size:]

    def etas(self) -> Floats:
        from ....kernels.equations import predictors

        out = np.empty(len(self.chain.state))
        layout: Any = self.chain.plan.laid_out.layout
        predictors(layout, self.chain.values, self.part.number, self.chain.state, out)
        return out

    def solve(self, pseudo: tuple[Floats, Floats], group_precision: Floats, *, noisy: bool) -> None:
        """Put the mode of the working model, or a draw from it, in place."""
        from .sweeps import solve_working

        solve_working(self.chain, self.part, self.place, pseudo, group_precision, noisy=noisy)


def _shape(chain: Chain, part: Part) -> None:
    """Draw the shape of a negative binomial, its log normal."""
    from ....kernels.working import interest_log

    layout, values, state = chain.plan.laid_out.layout, chain.values, chain.state
    etas = _Point(chain, part, EffectsPlace(-1, 0, 0, 0)).etas()
    sd = chain.plan.priors[part.number].shape_log_sd

    def log_density(log_shape: float) -> float:
        kept = values.shape[0]
        values.shape[0] = np.exp(log_shape)
        found = interest_log(layout, values, state, etas)
        values.shape[0] = kept
        return float(found) - 0.5 * (log_shape / sd) ** 2

    log_shape = slice_draw(chain.rng, log_density, float(np.log(values.shape[0])), 0.5, (-20.0, 20.0))
    values.shape[0] = np.exp(log_shape)
