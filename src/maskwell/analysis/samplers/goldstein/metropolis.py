"""The paper's own sampler: true values proposed record by record, parameters drawn from their conjugate laws.

Goldstein and Shlomo, A probabilistic procedure for anonymisation, appendix (A1)-(A3): a one-level linear model with
noised numbers and noised categories among its predictors. Where we differ from the print:

- (A3) is an independence proposal, so the ratio of proposals belongs into the acceptance (`hastings`). Without it a
  slope is 7% and the residual variance 8% off in the paper's own simulation.
- (A2) has x_1i in its middle term where X_1i is meant (`as_printed`).
- (A3) is written for centred values; we add the mean of the released ones.
- The categories' multivariate probit is written as a recursion: a category given the clean columns and the earlier
  categories by probit steps; then a number given those and the earlier numbers.

It is slower than exact Gibbs and stays for comparison; the faults stay to show that tests catch them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ....errors import BadInput

if TYPE_CHECKING:
    from ....kernels.metropolis_proposals import CategoryTarget, NumberTarget

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NoisedData:
    """A linear model's data: response, clean design (records x columns, intercept included), what was released.

    `numbers` are released numbers (records x numbers), `noise_sds` the sd of each one's noise. `tables` has for each
    noised category the log density of what was released, given each level (records x levels). `shares` are the
    proposal's, by default those of the levels nearest to what was released.
    """

    response: Floats = field(repr=False)
    clean: Floats = field(repr=False)
    numbers: Floats = field(repr=False)
    noise_sds: Floats = field(repr=False)
    tables: tuple[Floats, ...] = field(default=(), repr=False)
    shares: tuple[Floats, ...] = ()
    by_level: Floats = field(init=False, repr=False)
    log_shares: Floats = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not np.all(self.noise_sds > 0.0):
            raise BadInput("The paper's sampler needs noise on every record of a noised number; use another.")
        object.__setattr__(self, "by_level", np.hstack([*self.tables, np.empty((len(self.response), 0))]))
        shares = np.concatenate([*_shares(self.tables, self.shares), np.empty(0)])
        object.__setattr__(self, "log_shares", np.log(shares))

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of levels of each category."""
        return tuple(table.shape[1] for table in self.tables)


@dataclass(frozen=True, slots=True)
class PaperOptions:
    """The two faults of the print, a third one (the noise variance times a factor), and the priors.

    Coefficients are normal(0, coefficient_sd), flat by default; those of the probit steps normal(0, probit_sd);
    variances inverse gamma(variance_shape, variance_scale).
    """

    hastings: bool = True
    as_printed: bool = False
    noise_variance_factor: float = 1.0
    coefficient_sd: float = math.inf
    probit_sd: float = 10.0
    variance_shape: float = 1e-3
    variance_scale: float = 1e-3


@dataclass(frozen=True, slots=True)
class PaperState:
    """True values and parameters: the model of interest's, the numbers' equations', the probit steps'.

    `beta` multiplies the clean columns, the numbers, the levels of each category but its first; `alphas[j]` the clean
    columns, the levels, the numbers before j; each of `sticks` the clean columns and the levels of earlier categories.
    `accepted` is the share of accepted proposals in the last step, by number, then by category.
    """

    numbers: Floats = field(repr=False)
    codes: Ints = field(repr=False)
    beta: Floats
    variance: float
    alphas: tuple[Floats, ...]
    variances: Floats
    sticks: tuple[Floats, ...]
    accepted: Floats


class PaperDraws(NamedTuple):
    """Draws of beta and sigma (chains x draws x parameters), of the covariate model, and the shares accepted.

    The covariate model's are each number's alpha and sigma, then the coefficients of the probit steps.
    """

    values: Floats
    nuisance: Floats
    accepted: Floats


def paper_draws(
    data: NoisedData,
    *,
    chains: int = 4,
    warmup: int = 500,
    draws: int = 500,
    seed: int | np.random.SeedSequence = 0,
    options: PaperOptions | None = None,
) -> PaperDraws:
    """Run the paper's sampler, each chain from true values of its own."""
    options = options or PaperOptions()
    seeds = seed if isinstance(seed, np.random.SeedSequence) else np.random.SeedSequence(seed)
    runs = [
        _chain(np.random.default_rng(child), data, warmup, draws, options) for child in seeds.spawn(chains)
    ]
    return PaperDraws(*(np.array(part) for part in zip(*runs, strict=True)))


def _chain(
    rng: np.random.Generator, data: NoisedData, warmup: int, draws: int, options: PaperOptions
) -> tuple[Floats, Floats, Floats]:
    state = start(rng, data, options)
    values, nuisance, accepted = [], [], []
    for sweep in range(warmup + draws):
        state = step(rng, state, data, options)
        if sweep >= warmup:
            values.append(np.append(state.beta, math.sqrt(state.variance)))
            nuisance.append(_flat_nuisance(state))
            accepted.append(state.accepted)
    return np.array(values), np.array(nuisance), np.mean(accepted, axis=0)


def _flat_nuisance(state: PaperState) -> Floats:
    pairs = zip(state.alphas, state.variances, strict=True)
    parts = [np.append(alpha, math.sqrt(variance)) for alpha, variance in pairs]
    return np.concatenate([*parts, *state.sticks, np.empty(0)])


def start(rng: np.random.Generator, data: NoisedData, options: PaperOptions) -> PaperState:
    """Return a state with true numbers from their proposal and codes as likely as what was released makes them."""
    centres, spreads = _proposal(data, options)
    numbers = centres + np.sqrt(spreads) * rng.standard_normal(centres.shape)
    logs = data.by_level + data.log_shares + rng.gumbel(size=data.by_level.shape)
    ends = np.cumsum([0, *data.levels])
    codes = [logs[:, a:b].argmax(axis=1) for a, b in itertools.pairwise(ends)]
    size = data.clean.shape[1]
    steps = [size + earlier for earlier in _earlier(data.levels)]
    empty = PaperState(
        numbers=numbers,
        codes=np.column_stack([*codes, np.empty((len(numbers), 0), np.int64)]),
        beta=np.zeros(0),
        variance=float(np.var(data.response)),
        alphas=tuple(np.zeros(0) for _ in range(numbers.shape[1])),
        variances=np.var(numbers, axis=0),
        sticks=tuple(np.zeros(width) for width in steps),
        accepted=np.zeros(numbers.shape[1] + len(data.tables)),
    )
    return _draw_parameters(rng, empty, data, options)


def _earlier(levels: tuple[int, ...]) -> Iterable[int]:
    """Return for each probit step, category after category, how many dummies the earlier categories have."""
    before = 0
    for count in levels:
        yield from [before] * (count - 1)
        before += count - 1


def step(rng: np.random.Generator, state: PaperState, data: NoisedData, options: PaperOptions) -> PaperState:
    """Return the next state: true numbers, true codes, then all parameters."""
    from ....kernels import metropolis_proposals

    numbers, codes = state.numbers.copy(), state.codes.copy()
    target = _number_target(state, data, options)
    moved = metropolis_proposals.move_numbers(rng, numbers, target, options.hastings, options.as_printed)
    state = replace(state, numbers=numbers)
    changed = metropolis_proposals.move_codes(rng, codes, _category_target(state, data), options.hastings)
    accepted = np.concatenate([moved, changed]) / len(numbers)
    return _draw_parameters(rng, replace(state, codes=codes, accepted=accepted), data, options)


# --- true values -------------------------------------------------------------------------------------------


def _proposal(data: NoisedData, options: PaperOptions) -> tuple[Floats, Floats]:
    """Return mean and variance of (A3) by record: R x + (1 - R) mean and R (1 - R) var(x), R the reliability."""
    noise = options.noise_variance_factor * data.noise_sds**2
    centre, total = data.numbers.mean(axis=0), data.numbers.var(axis=0)
    true = np.maximum(total - noise.mean(axis=0), 0.01 * total)
    reliability = true / (true + noise)
    return centre + reliability * (data.numbers - centre), reliability * noise


def _number_target(state: PaperState, data: NoisedData, options: PaperOptions) -> NumberTarget:
    from ....kernels.metropolis_proposals import NumberTarget

    clean, count = data.clean, state.numbers.shape[1]
    dummies = _dummies(state.codes, data.levels)
    known, size = np.hstack([clean, dummies]), clean.shape[1]
    among = np.zeros((count, count))
    for j, alpha in enumerate(state.alphas):
        among[j, :j] = alpha[known.shape[1] :]
    base = [known @ alpha[: known.shape[1]] for alpha in state.alphas]
    centres, spreads = _proposal(data, options)
    return NumberTarget(
        rest=data.response - clean @ state.beta[:size] - dummies @ state.beta[size + count :],
        slopes=state.beta[size : size + count],
        variance=state.variance,
        base=np.column_stack([*base, np.empty((len(clean), 0))]),
        among=among,
        variances=state.variances,
        released=data.numbers,
        noise_variances=options.noise_variance_factor * data.noise_sds**2,
        centres=centres,
        spreads=spreads,
    )


def _category_target(state: PaperState, data: NoisedData) -> CategoryTarget:
    from ....kernels.metropolis_proposals import CategoryTarget

    clean, count, levels = data.clean, state.numbers.shape[1], data.levels
    size, extra = clean.shape[1], sum(levels) - len(levels)
    own = [
        state.numbers[:, j] - clean @ alpha[:size] - state.numbers[:, :j] @ alpha[size + extra :]
        for j, alpha in enumerate(state.alphas)
    ]
    nothing = np.empty((len(clean), 0))
    return CategoryTarget(
        tables=data.by_level,
        log_shares=data.log_shares,
        starts=_starts(levels),
        rest=data.response - clean @ state.beta[:size] - state.numbers @ state.beta[size : size + count],
        effects=_by_level(state.beta[size + count :], levels),
        variance=state.variance,
        residuals=np.column_stack([*own, nothing]),
        number_effects=_rows([_by_level(a[size : size + extra], levels) for a in state.alphas], levels),
        variances=state.variances,
        sticks=np.column_stack([*(clean @ stick[:size] for stick in state.sticks), nothing]),
        stick_effects=_rows([_by_level(stick[size:], levels) for stick in state.sticks], levels),
        stick_starts=_starts([level - 1 for level in levels]),
    )


def _shares(tables: tuple[Floats, ...], given: tuple[Floats, ...]) -> list[Floats]:
    """Return the proposal's shares: as given, or of the levels nearest to what was released, none of them 0."""
    counts = given or [np.bincount(table.argmax(axis=1), minlength=table.shape[1]) + 0.5 for table in tables]
    return [np.asarray(count) / np.sum(count) for count in counts]


def _starts(sizes: Iterable[int]) -> Ints:
    return np.cumsum([0, *sizes])


def _by_level(coefficients: Floats, levels: tuple[int, ...]) -> Floats:
    """Return effects by level, 0 for the first level of each category; categories without coefficients have 0."""
    out, where, place = np.zeros(sum(levels)), 0, 0
    for count in levels:
        if where < len(coefficients):
            out[place + 1 : place + count] = coefficients[where : where + count - 1]
        where, place = where + count - 1, place + count
    return out


def _rows(rows: list[Floats], levels: tuple[int, ...]) -> Floats:
    return np.array(rows).reshape(len(rows), sum(levels))


def _dummies(codes: Ints, levels: tuple[int, ...]) -> Floats:
    """Return one column for each level of each category but its first."""
    columns = [codes[:, k] == level for k, count in enumerate(levels) for level in range(1, count)]
    return np.column_stack([*columns, np.empty((len(codes), 0))]).astype(np.float64)


# --- parameters --------------------------------------------------------------------------------------------


def _draw_parameters(
    rng: np.random.Generator, state: PaperState, data: NoisedData, options: PaperOptions
) -> PaperState:
    """Return the state with parameters drawn given the true values."""
    dummies, numbers = _dummies(state.codes, data.levels), state.numbers
    design = np.hstack([data.clean, numbers, dummies])
    beta, variance = _draw_regression(rng, design, data.response, state.variance, options)
    drawn = []
    for j, old in enumerate(state.variances):
        design = np.hstack([data.clean, dummies, numbers[:, :j]])
        drawn.append(_draw_regression(rng, design, numbers[:, j], old, options))
    return replace(
        state,
        beta=beta,
        variance=variance,
        alphas=tuple(alpha for alpha, _ in drawn),
        variances=np.array([new for _, new in drawn]),
        sticks=_draw_sticks(rng, state, data, dummies, options),
    )


def _draw_regression(
    rng: np.random.Generator, design: Floats, response: Floats, variance: float, options: PaperOptions
) -> tuple[Floats, float]:
    """Return coefficients given the variance, then the variance given them."""
    from ....kernels.metropolis_proposals import draw_coefficients

    try:
        coefficients = draw_coefficients(rng, design, response, variance, options.coefficient_sd**-2)
    except ValueError:
        raise BadInput(
            "Columns of the model depend on each other, or a noised category has a level without records: "
            "leave a column out or join levels."
        ) from None
    residual = response - design @ coefficients
    shape = options.variance_shape + 0.5 * len(response)
    scale = options.variance_scale + 0.5 * float(residual @ residual)
    return coefficients, scale / rng.standard_gamma(shape)


def _draw_sticks(
    rng: np.random.Generator, state: PaperState, data: NoisedData, dummies: Floats, options: PaperOptions
) -> tuple[Floats, ...]:
    """Return the coefficients of each probit step, by way of utilities (Albert and Chib)."""
    from ....kernels.metropolis_proposals import draw_coefficients, draw_utilities

    at, drawn = 0, []
    extras = list(_earlier(data.levels))
    for k, count in enumerate(data.levels):
        for level in range(count - 1):
            reached = state.codes[:, k] >= level
            design = np.hstack([data.clean, dummies[:, : extras[at]]])[reached]
            predictor = design @ state.sticks[at]
            utilities = draw_utilities(rng, predictor, state.codes[reached, k] == level)
            drawn.append(draw_coefficients(rng, design, utilities, 1.0, options.probit_sd**-2))
            at += 1
    return tuple(drawn)
