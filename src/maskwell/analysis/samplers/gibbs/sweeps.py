"""Gibbs sampling of a system of regressions with noise on its variables.

One step: unknown categories by enumeration (utilities integrated out), numbers in which an equation is curved by
elliptical slices, utilities and Polya-Gamma weights, the other numbers from their normal conditional, what the noise
leaves open; then every equation's coefficients: gaussian ones with the effects of a factor integrated out, those of
other models of interest by elliptical slices around their mode (utilities integrated out), and the variances. It does
the steps 1) to 4) of Goldstein and Shlomo, section 6, with exact conditionals (Gelfand and Smith 1990) in place of
their Metropolis step wherever there are any. Chosen by `chains` where `linear_gaussian` does not apply.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ...priors import Priors, ResolvedPriors, resolve
from ...system import GAUSSIAN, ORDERED, System
from .elliptical_slice import draw_turned, solve_working, start_turned
from .layout import EffectsPlace, LaidOut, LayoutPart, lay_out
from .scale_moves import HALF_T_DF, rescale_effects, rescale_utilities

Floats = npt.NDArray[np.float64]
MOST_LISTED = 2000  # counts of a record, where noise is shared with other columns


@dataclass(slots=True)
class GibbsChain:
    """The state of one chain; `step` changes it in place.

    `starts` has where the climb to the mode of some effects begins, by the place of the first of them.
    """

    plan: SweepPlan
    rng: np.random.Generator
    state: Floats
    noise: Any
    values: Any
    covariances: list[list[Floats]]
    pseudo: list[tuple[Floats, Floats]]
    plain: Any = None
    rooms: dict[int, Any] = field(default_factory=dict)
    slices: int = 0
    starts: dict[int, Floats] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SweepPlan:
    """A system laid out, with its priors: what all chains share."""

    laid_out: LaidOut
    priors: tuple[ResolvedPriors, ...]

    @property
    def system(self) -> System:
        """The system of equations."""
        return self.laid_out.system


def plan_of(system: System, priors: Priors) -> SweepPlan:
    """Lay a system out and bring its priors to scale."""
    laid_out = lay_out(system)
    resolved = tuple(_equation_priors(laid_out, part, priors) for part in laid_out.parts)
    return SweepPlan(laid_out, resolved)


def _equation_priors(laid_out: LaidOut, part: LayoutPart, priors: Priors) -> ResolvedPriors:
    from ...formulas.expression_trees import evaluate

    system, equation = laid_out.system, part.equation
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    with np.errstate(all="ignore"):
        columns = [
            np.broadcast_to(np.asarray(evaluate(node, values), dtype=np.float64), len(system))
            for node in laid_out.columns[part.number]
        ]
    whole = np.nan_to_num(np.stack(columns, axis=1)) if columns else np.empty((len(system), 0))
    fixed, at = whole[:, : len(equation.columns)], len(equation.columns)
    effects = []
    for block in equation.effects:
        effects.append(whole[:, at : at + len(block.columns)])
        at += len(block.columns)
    last = part.number == len(laid_out.parts) - 1
    response = system.state[:, equation.response]
    if last and system.counted is not None:
        response = response[system.counted]
    return resolve(priors, equation, fixed, response, tuple(effects), named=last)


def start(plan: SweepPlan, rng: np.random.Generator) -> GibbsChain:
    """Begin a chain near the released values, its parameters dispersed around a first fit."""
    from ....kernels.equations import Values

    laid_out, system = plan.laid_out, plan.system
    levels = len(system.variables[system.interest.response].levels)
    cuts = np.linspace(-1.0, 1.0, levels - 1) if system.interest.family == ORDERED else np.empty(0)
    values = Values(
        coefficients=np.zeros(laid_out.parts[-1].stop),
        effects=np.zeros(laid_out.effects_size),
        precision=np.ones(len(laid_out.parts)),
        cuts=cuts,
        shape=np.ones(1),
    )
    covariances = [[np.eye(place.width) for place in part.effects] for part in laid_out.parts]
    empty = np.empty(0)
    pseudo = [
        (np.zeros(len(system)), np.zeros(len(system))) if part.augmented else (empty, empty)
        for part in laid_out.parts
    ]
    noise = None if system.noise is None else system.noise.start(rng)
    chain = GibbsChain(
        plan, rng, _first_state(plan, rng), noise, values, covariances, pseudo, plain_part(system, noise)
    )
    first_fit(chain)
    return chain


def _first_state(plan: SweepPlan, rng: np.random.Generator) -> Floats:
    """Return the released values, unknown categories drawn by what was released of each alone."""
    state = plan.system.state.copy()
    draw_codes(plan, state, rng)
    return state


def draw_codes(plan: SweepPlan, state: Floats, rng: np.random.Generator) -> None:
    """Draw unknown categories by what was released of each alone.

    Where noise hardly leaves a category, its levels may change places without the model fitting worse. Chains that all
    began at the released codes would agree on one way and call it the answer.
    """
    for j, table, _ in plan.laid_out.categories:
        rows = np.flatnonzero(plan.system.unknown[:, j])
        state[rows, j] = np.argmax(table[rows] + rng.gumbel(size=(len(rows), table.shape[1])), axis=1)


def plain_part(system: System, noise: Any) -> Any:
    """Return the noise's part of every record's conditional where it never changes, else an empty one."""
    from ....kernels.gibbs_noise import reference
    from ....kernels.gibbs_records import PlainNumbers

    nothing = PlainNumbers(np.empty((0, 0, 0)), np.empty(0, np.int64), np.empty((0, 0)))
    if system.noise is None or not system.noise.plain:
        return nothing
    size = len(system.noise.columns)
    linear, own = np.empty((len(system), size)), np.empty((size, size))
    precision = np.zeros((int(noise.pattern.max(initial=0)) + 1, size, size))
    for i in range(len(system)):
        reference(noise, i, own, linear[i])
        precision[noise.pattern[i]] = own
    return PlainNumbers(precision, noise.pattern, linear)


def first_fit(chain: GibbsChain) -> None:
    """Give parameters a size to start from, each chain its own by chance."""
    for part, prior in zip(chain.plan.laid_out.parts, chain.plan.priors, strict=True):
        family = part.equation.family
        spread = np.exp(0.5 * chain.rng.standard_normal())
        if family == GAUSSIAN:
            response = chain.state[:, part.equation.response]
            chain.values.precision[part.number] = spread / max(float(np.nanvar(response)), 1e-300)
        for k, place in enumerate(part.effects):
            sds = 0.2 * spread * prior.effect_scales[k]
            chain.covariances[part.number][k] = np.diag(sds**2)
            assert place.width == len(sds)
    for part in chain.plan.laid_out.parts:
        if part.augmented:
            _augment(chain, part)
        if part.equation.family != GAUSSIAN and part.equation.stick is None:
            start_turned(chain, part)
        _coefficients(chain, part)


def step(chain: GibbsChain) -> None:
    """Move a chain by one sweep."""
    from ....kernels.gibbs_noise import refresh
    from ....kernels.gibbs_records import draw_categories

    laid_out, unknown = chain.plan.laid_out, chain.plan.laid_out.limits.unknown
    for what in laid_out.categories:
        room = np.empty(what[1].shape[1])
        draw_categories(laid_out.layout, chain.values, chain.state, unknown, (*what, room), chain.rng)
    if laid_out.shares_count:
        _counts(chain)
    if len(laid_out.numbers) and len(chain.noise.units.row) and not laid_out.shares_count:
        _components(chain)
    for block in laid_out.early:
        _numbers(chain, block)
    for part in laid_out.parts:
        if part.equation.family == ORDERED:
            _cuts(chain, part)
        if part.augmented:
            _augment(chain, part)
    for block in laid_out.late:
        _numbers(chain, block)
    if len(laid_out.numbers):
        refresh(chain.noise, chain.state, laid_out.numbers, chain.rng)
    for part in laid_out.parts:
        _coefficients(chain, part)
        _variances(chain, part)
        if part.equation.stick is not None:
            rescale_utilities(chain, part)


def _components(chain: GibbsChain) -> None:
    """Move components of mixtures with the true values they imply."""
    from ....kernels.gibbs_mixture import flip_components

    laid_out, units = chain.plan.laid_out, chain.noise.units
    room = np.empty(len(laid_out.numbers)), np.empty(units.logs.shape[1])
    inputs = laid_out.layout, chain.values, chain.state, laid_out.limits, laid_out.numbers, chain.noise
    flip_components(*inputs, room, chain.rng)


def _counts(chain: GibbsChain) -> None:
    """Draw the true counts behind a noised response."""
    from ....kernels.equations import predictors
    from ....kernels.gibbs_counts import draw_counts, draw_counts_given_noise

    laid_out, etas = chain.plan.laid_out, np.empty(len(chain.state))
    last = laid_out.parts[-1]
    predictors(laid_out.layout, chain.values, last.number, chain.state, etas)
    inputs = last.equation.family, float(chain.values.shape[0]), etas, chain.state
    if laid_out.counts is not None:
        draw_counts(*inputs, laid_out.hidden, chain.rng)
        return
    size = len(laid_out.numbers)
    room = np.empty((size, size)), np.empty(size), np.empty(MOST_LISTED)
    draw_counts_given_noise(*inputs, laid_out.limits, chain.noise, laid_out.numbers, room, chain.rng)


def _numbers(chain: GibbsChain, block: Any) -> None:
    from ....kernels.gibbs_records import draw_numbers, room_for

    laid_out = chain.plan.laid_out
    room = chain.rooms.setdefault(id(block), room_for(block, chain.state.shape[1]))
    inputs = laid_out.layout, chain.values, chain.state, laid_out.limits, block, chain.noise, chain.plain
    chain.slices += draw_numbers(*inputs, chain.pseudo[-1], room, chain.rng)


def _augment(chain: GibbsChain, part: LayoutPart) -> None:
    from ....kernels.gibbs_records import augment

    e = part.number
    augment(chain.plan.laid_out.layout, chain.values, e, chain.state, chain.pseudo[e], chain.rng)


def _coefficients(chain: GibbsChain, part: LayoutPart) -> None:
    """Draw an equation's coefficients, with the effects of each of its factors in turn."""
    if part.equation.family != GAUSSIAN and part.equation.stick is None:
        draw_turned(chain, part)
        if chain.plan.laid_out.counts is not None:  # they were integrated out
            _counts(chain)
        return
    for k, place in enumerate(part.effects):
        _with_effects(
            chain, part, place, np.asarray(np.linalg.inv(chain.covariances[part.number][k]), dtype=np.float64)
        )
    if not part.effects:
        _with_effects(chain, part, EffectsPlace(-1, 0, 0, 0), np.empty((0, 0)))


def _with_effects(chain: GibbsChain, part: LayoutPart, place: EffectsPlace, group_precision: Floats) -> None:
    solve_working(chain, part, place, chain.pseudo[part.number], group_precision, noisy=True)


def _variances(chain: GibbsChain, part: LayoutPart) -> None:
    """Draw the residual variance of a gaussian equation and the covariance of its group effects."""
    from ....kernels.equations import squares

    prior, e = chain.plan.priors[part.number], part.number
    if part.equation.family == GAUSSIAN:
        total, count = squares(chain.plan.laid_out.layout, chain.values, e, chain.state)
        sd = 1.0 / np.sqrt(chain.values.precision[e])
        chain.values.precision[e] = 1.0 / half_t_variance(chain.rng, total, count, sd, prior.residual_scale)
    for k, place in enumerate(part.effects):
        effects = chain.values.effects[place.begin : place.stop].reshape(place.groups, place.width)
        now = chain.covariances[e][k]
        chain.covariances[e][k] = half_t_covariance(chain.rng, effects, now, prior.effect_scales[k])
        rescale_effects(chain, part, k)


def half_t_variance(rng: np.random.Generator, total: float, count: int, sd: float, scale: float) -> float:
    """Draw a variance given a sum of squares, its sd half-t: by the auxiliary of Huang and Wand (2013)."""
    auxiliary = rng.standard_gamma((HALF_T_DF + 1) / 2) / (HALF_T_DF / sd**2 + 1 / scale**2)
    rate = total / 2 + HALF_T_DF * auxiliary
    return float(rate / rng.standard_gamma((HALF_T_DF + count) / 2))


def half_t_covariance(rng: np.random.Generator, effects: Floats, now: Floats, scales: Floats) -> Floats:
    """Draw the covariance of group effects, each sd half-t and correlations uniform (Huang and Wand 2013)."""
    width = len(scales)
    precision = np.diag(np.linalg.inv(now))
    rates = HALF_T_DF * precision + 1 / scales**2
    auxiliary = rng.standard_gamma((HALF_T_DF + width) / 2, size=width) / rates
    scatter = effects.T @ effects + 2 * HALF_T_DF * np.diag(auxiliary)
    return _inverse_wishart(rng, HALF_T_DF + width - 1 + len(effects), scatter)


def _inverse_wishart(rng: np.random.Generator, df: float, scatter: Floats) -> Floats:
    """Draw by Bartlett's decomposition."""
    width = len(scatter)
    lower = np.tril(rng.standard_normal((width, width)), -1)
    lower[np.diag_indices(width)] = np.sqrt(2 * rng.standard_gamma((df - np.arange(width)) / 2))
    root = np.linalg.solve(lower, np.linalg.cholesky(scatter).T)
    return np.asarray(root.T @ root)


def _cuts(chain: GibbsChain, part: LayoutPart) -> None:
    """Move the cuts of an ordered model with the utilities integrated out."""
    from .ordered_probit import draw_cuts

    draw_cuts(chain, part)
