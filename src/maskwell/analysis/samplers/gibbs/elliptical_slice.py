"""Coefficients of models that are not gaussian: an elliptical slice around the normal that lies closest.

Given everything else, the log posterior of coefficients and group effects is concave. Newton's method finds its
mode and curvature, the normal with these is the slice's prior, and the slice follows what is left: exact and
without tuning (Murray, Adams and MacKay 2010; Nishihara, Murray and Adams 2014 for a prior that is fitted). From far
out in a tail it would not find in, so chains begin near the mode. Chosen by `sweeps` for logit, probit, Poisson and
negative binomial models of interest.

The true counts behind noised ones are integrated out, and drawn afterwards. The log posterior may then have several
modes, so that the climb always begins at the same place, that of the chain's beginning, and not at where it is now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ...system import NEGATIVE_BINOMIAL
from .layout import EffectsPlace, LayoutPart
from .slice_sampler import slice_draw

if TYPE_CHECKING:
    from .sweeps import GibbsChain

Floats = npt.NDArray[np.float64]

MOST_NEWTON, AT_REST = 25, 1e-6  # steps of a climb, and the change that ends it
FULL_TURN = 2 * np.pi


def draw_turned(chain: GibbsChain, part: LayoutPart) -> None:
    """Draw coefficients with the effects of each factor in turn, then the shape of a negative binomial."""
    for k, place in enumerate(part.effects):
        _turn(
            chain, part, place, np.asarray(np.linalg.inv(chain.covariances[part.number][k]), dtype=np.float64)
        )
    if not part.effects:
        _turn(chain, part, EffectsPlace(-1, 0, 0, 0), np.empty((0, 0)))
    if part.equation.family == NEGATIVE_BINOMIAL:
        _shape(chain, part)


def start_turned(chain: GibbsChain, part: LayoutPart) -> None:
    """Begin at a draw of the normal around the mode: an ellipse cannot climb from far out in a tail."""
    for k, place in enumerate(part.effects or (EffectsPlace(-1, 0, 0, 0),)):
        inverse = np.linalg.inv(chain.covariances[part.number][k]) if part.effects else np.empty((0, 0))
        precision = np.asarray(inverse, dtype=np.float64)
        here, pseudo = _Point(chain, part, place), (np.empty(len(chain.state)), np.empty(len(chain.state)))
        chain.starts[place.begin] = _mode(chain, here, pseudo, precision)[0]
        here.solve(pseudo, precision, noisy=True)


def _turn(chain: GibbsChain, part: LayoutPart, place: EffectsPlace, group_precision: Floats) -> None:
    """Draw coefficients and the effects of one factor on an ellipse around their mode."""
    here, fit = _Point(chain, part, place), NormalFit(chain)
    now, eta_now = here.get(), here.etas()
    pseudo = np.empty(len(chain.state)), np.empty(len(chain.state))
    if fit.hidden:
        here.put(chain.starts[place.begin])
    mode, eta_mode = _mode(chain, here, pseudo, group_precision)
    here.solve(pseudo, group_precision, noisy=True)
    step, eta_step = here.get() - mode, here.etas() - eta_mode
    ellipse = eta_mode, eta_now - eta_mode, eta_step
    height = fit.excess(ellipse, 0.0, pseudo) - chain.rng.standard_exponential()
    angle = FULL_TURN * chain.rng.random()
    low, high = angle - FULL_TURN, angle
    while high - low > 1e-12:
        if fit.excess(ellipse, angle, pseudo) > height:
            here.put(mode + (now - mode) * np.cos(angle) + step * np.sin(angle))
            return
        low, high = (angle, high) if angle < 0 else (low, angle)
        angle = low + (high - low) * chain.rng.random()
    here.put(now)


def _mode(
    chain: GibbsChain, here: _Point, pseudo: tuple[Floats, Floats], group_precision: Floats
) -> tuple[Floats, Floats]:
    """Climb to the mode; leave the working targets and weights there in `pseudo`."""
    fit, etas = NormalFit(chain), here.etas()
    for _ in range(MOST_NEWTON):
        fit.working(etas, pseudo)
        here.solve(pseudo, group_precision, noisy=False)
        moved = here.etas()
        change = float(np.abs(moved - etas).max(initial=0.0))
        etas = moved if change < 2.0 else etas + (moved - etas) * (2.0 / change)
        if change < AT_REST:
            break
    fit.working(etas, pseudo)
    here.solve(pseudo, group_precision, noisy=False)
    return here.get(), here.etas()


class NormalFit:
    """The likelihood of the model of interest by linear predictor, noised counts integrated out of it."""

    def __init__(self, chain: GibbsChain) -> None:
        self.chain, self.hidden = chain, chain.plan.laid_out.counts is not None

    def _given(self) -> tuple[Any, ...]:
        chain, laid_out = self.chain, self.chain.plan.laid_out
        if not self.hidden:
            return laid_out.layout, chain.values, chain.state
        model = laid_out.parts[-1].equation.family, float(chain.values.shape[0])
        return model, chain.state, laid_out.layout.counted, laid_out.hidden

    def working(self, etas: Floats, pseudo: tuple[Floats, Floats]) -> None:
        """Fill the targets and weights whose least squares is one Newton step."""
        from ....kernels.count_likelihood import hidden_working
        from ....kernels.working_response import fill_working_response

        kernel: Any = hidden_working if self.hidden else fill_working_response
        kernel(*self._given(), etas, pseudo)

    def excess(
        self, ellipse: tuple[Floats, Floats, Floats], angle: float, pseudo: tuple[Floats, Floats]
    ) -> float:
        """Return the log likelihood less its normal approximation at a point of an ellipse."""
        from ....kernels.count_likelihood import hidden_log
        from ....kernels.working_response import excess

        kernel: Any = hidden_log if self.hidden else excess
        return float(kernel(*self._given(), ellipse, angle, pseudo))

    def log(self, etas: Floats) -> float:
        """Return the log likelihood."""
        from ....kernels.count_likelihood import hidden_log
        from ....kernels.working_response import interest_log

        kernel: Any = hidden_log if self.hidden else interest_log
        if not self.hidden:
            return float(kernel(*self._given(), etas))
        still, nothing = np.zeros(len(etas)), np.empty(0)
        return float(kernel(*self._given(), (etas, still, still), 0.0, (nothing, nothing)))


class _Point:
    """Coefficients and the effects of one factor, as one vector."""

    def __init__(self, chain: GibbsChain, part: LayoutPart, place: EffectsPlace) -> None:
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

        solve_working(self.chain, self.part, self.place, pseudo, group_precision, noisy=noisy)


def _shape(chain: GibbsChain, part: LayoutPart) -> None:
    """Draw the shape of a negative binomial, its log normal."""
    values, fit = chain.values, NormalFit(chain)
    etas = _Point(chain, part, EffectsPlace(-1, 0, 0, 0)).etas()
    sd = chain.plan.priors[part.number].shape_log_sd

    def log_density(log_shape: float) -> float:
        kept = values.shape[0]
        values.shape[0] = np.exp(log_shape)
        found = fit.log(etas)
        values.shape[0] = kept
        return float(found) - 0.5 * (log_shape / sd) ** 2

    log_shape = slice_draw(chain.rng, log_density, float(np.log(values.shape[0])), 0.5, (-20.0, 20.0))
    values.shape[0] = np.exp(log_shape)


def solve_working(
    chain: GibbsChain,
    part: LayoutPart,
    place: EffectsPlace,
    pseudo: tuple[Floats, Floats],
    group_precision: Floats,
    *,
    noisy: bool,
) -> None:
    """Draw coefficients and the effects of one factor from a gaussian working model, or put its mean in place."""
    from ....kernels.equations import EquationMoments, accumulate
    from ....kernels.gibbs_coefficients import draw_coefficients

    size, e, prior = part.stop - part.begin, part.number, chain.plan.priors[part.number]
    groups, width = place.groups, place.width
    moments = EquationMoments(
        np.zeros((size, size)),
        np.zeros(size),
        np.zeros((groups, size, width)),
        np.zeros((groups, width, width)),
        np.zeros((groups, width)),
        np.empty((2, sum(block.width for block in part.effects) + size)),
    )
    accumulate(chain.plan.laid_out.layout, chain.values, (e, place.factor), chain.state, pseudo, moments)
    before = 1.0 / prior.sd**2
    coefficients = chain.values.coefficients[part.begin : part.stop]
    effects = chain.values.effects[place.begin : place.stop].reshape(groups, width)
    given = before, before * prior.mean, 1.0 if noisy else 0.0
    draw_coefficients(moments, given, group_precision, coefficients, effects, chain.rng)
