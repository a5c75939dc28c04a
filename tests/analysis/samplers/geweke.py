"""Geweke's joint-distribution test (2004) of samplers, in tours that are independent of each other.

A tour begins with a draw from the joint distribution: parameters from the prior, true values from the covariate
models, the response from the model of interest, released values by the law's own `draw` (Geweke's
marginal-conditional simulator). Then the sampler moves and the data are drawn anew, in turn (the
successive-conditional simulator). If the sampler leaves the posterior alone, functions of parameters, true values and
data have the same mean after as before. Tours are independent, so the standard errors of the differences hold
whatever the autocorrelation within them, and slow parameters do not drown a fault in their own spread.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import special, stats

from maskwell.analysis.formulas.expression_trees import evaluate
from maskwell.analysis.model import FAMILY, ModelRequest, build, read_formula
from maskwell.analysis.noise import bounds, noise_arrays, tables
from maskwell.analysis.priors import ResolvedPriors
from maskwell.analysis.samplers.gibbs import ordered_probit
from maskwell.analysis.samplers.gibbs import sweeps as gibbs
from maskwell.analysis.samplers.gibbs.layout import lay_out, unknown_variables
from maskwell.analysis.system import GAUSSIAN, LOGIT, NEGATIVE_BINOMIAL, ORDERED, POISSON
from maskwell.card import NoiseCard
from maskwell.keys import Key, normals, uniforms
from maskwell.laws import Additive, SkewedBias
from maskwell.masking import Release, apply
from maskwell.masking.totals import coded_statuses
from maskwell.schema import OPEN, TOP_CODED, Column, Schema
from maskwell.table import Table

Floats = NDArray[np.float64]

REFRESHES = 12  # draws of what a law leaves open (components, values in cells), given a new release
SCALE, COEFFICIENT_MEAN, COEFFICIENT_SD = 0.5, 0.2, 0.4


class Joint(Protocol):
    """A joint distribution and the sampler of its posterior, with their present state inside."""

    def fresh(self) -> None:
        """Draw everything from the joint distribution."""

    def step(self) -> None:
        """Move parameters and true values by the sampler."""

    def renew(self) -> None:
        """Draw data anew, given parameters and true values."""

    def statistics(self) -> Floats:
        """Return functions of parameters, true values and data."""


def differences(joint: Joint, tours: int, *, legs: int = 2, steps: int = 3) -> Floats:
    """Return how much the statistics moved in each tour: their mean after each leg, less the first.

    A leg is some steps of the sampler; then the data are drawn anew.
    """
    found = []
    for _ in range(tours):
        joint.fresh()
        begin, total = joint.statistics(), 0.0
        for leg in range(legs):
            if leg:
                joint.renew()
            for _ in range(steps):
                joint.step()
            total = total + joint.statistics()
        found.append(total / legs - begin)
    return np.array(found)


def scores(moved: Floats) -> Floats:
    """Return the mean movement of each statistic in standard errors; 0 where nothing moved at all."""
    error = moved.std(axis=0, ddof=1) / np.sqrt(len(moved))
    return np.where(error > 0, moved.mean(axis=0) / np.where(error > 0, error, 1.0), 0.0)


def limit(statistics: int, tours: int, level: float = 0.01) -> float:
    """Return what no score exceeds, but for a chance of `level` over so many of them (Bonferroni)."""
    return float(stats.t.isf(level / 2 / statistics, tours - 1))


# --- the world ---------------------------------------------------------------------------------------------

LEVELS = {"k": ("no", "yes"), "m": ("low", "middle", "high"), "r": ("no", "yes")}
KINDS = {"w": "continuous", "x1": "continuous", "x2": "continuous", "y": "continuous", "b": "integer"}
KINDS |= {"c": "integer", "o": "integer", "school": "text", "room": "text"}


@dataclass(frozen=True)
class Setting:
    """A model and a mask: columns w (clean), x1, x2 (numbers), k, m (categories), school, room (groups).

    Responses are y, b (0 or 1), r (a category of two), c (counts), o (0 to 2); every fourth value of `missing` columns
    is missing. `unit` and `top` are those of x1 in the schema: values above the top are coded before any noise.
    `assumed` is a factor on the noise variance that the sampler takes for true.
    """

    formula: str
    family: str = "gaussian"
    mask: Any = None
    records: int = 12
    missing: tuple[str, ...] = ()
    unit: float | None = None
    top: float | None = None
    assumed: float = 1.0


def first_table(setting: Setting) -> Table:
    """Return a table that a mask resolves its figures on: nothing of it but the clean columns stays."""
    records = setting.records
    rng, at = np.random.default_rng(5), np.arange(records)
    x1 = np.linspace(0.2, 2.2, records)[rng.permutation(records)]
    values: dict[str, Any] = {"w": np.linspace(-1, 1, records), "x1": x1}
    values |= {"x2": 0.5 * x1 + rng.uniform(0.2, 1.2, records), "y": x1 + rng.normal(0, 0.5, records)}
    values |= {"b": at % 2, "c": at % 4, "o": at % 3}
    values |= {name: np.array(levels)[at % len(levels)] for name, levels in LEVELS.items()}
    values |= {"school": [f"s{k % 4}" for k in at], "room": [f"r{k % 8}" for k in at]}
    if setting.unit is not None:
        values["x1"] = np.round(x1 / setting.unit) * setting.unit
    if setting.top is not None:
        values["x1"] = np.minimum(x1, setting.top)
    for first, name in enumerate(setting.missing):
        whole = enumerate(np.asarray(values[name]).tolist())
        values[name] = [None if k % 4 == first % 4 else value for k, value in whole]
    columns = [Column(name, kind) for name, kind in KINDS.items() if name != "x1"]
    columns.append(Column("x1", "continuous", unit=setting.unit, top=setting.top))
    columns += [Column(name, "category", categories=levels) for name, levels in LEVELS.items()]
    return Table.from_frame(pa.table(values), Schema(tuple(columns)))


@dataclass(frozen=True)
class Seen:
    """A release as the noise's readers need it: schema, values, statuses."""

    schema: Schema
    values: dict[str, Floats]
    statuses: dict[str, Any]

    def __len__(self) -> int:
        return len(next(iter(self.values.values())))

    def floats(self, name: str) -> Floats:
        return np.where(self.statuses[name] == OPEN, self.values[name], np.nan)

    def status(self, name: str) -> Any:
        return self.statuses[name]


class Words:
    """A keyed stream without a key: words from a generator."""

    def __init__(self, rng: np.random.Generator, records: int) -> None:
        self.rng, self.records = rng, records

    def __len__(self) -> int:
        return self.records

    def words(self, column: str, purpose: str = "noise") -> NDArray[np.uint64]:
        return self.rng.integers(0, 2**64, (self.records, 2), dtype=np.uint64)

    def normals(self, column: str) -> Floats:
        return normals(self.words(column)[:, 0])

    def uniforms(self, column: str, purpose: str = "noise") -> Floats:
        return uniforms(self.words(column)[:, 0])


class World:
    """The system of a setting with tight priors, and a chain of Gibbs sampling on it: a `Joint`."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.rng = np.random.Generator(np.random.SFC64(seed))
        table = first_table(setting)
        release = Release(table, NoiseCard())
        if setting.mask is not None:
            release = apply(setting.mask, table, key=Key.from_seed(seed), exact=True).release
        self.card, self.schema = release.card, release.table.schema
        self.assumed = replace(
            self.card, laws=tuple(_changed(law, setting.assumed) for law in self.card.laws)
        )
        parsed, seen = read_formula(setting.formula, release)
        self.system = build(ModelRequest(parsed, FAMILY[setting.family]), release, seen)
        self.variables, self.names = self.system.variables, [v.name for v in self.system.variables]
        self.statuses = {
            name: np.where(seen[name].missing, release.table.status(name), OPEN) for name in self.names
        }
        self.always = np.stack([seen[name].noised | seen[name].missing for name in self.names], axis=1)
        self.always[:, -1] &= seen[self.names[-1]].noised
        laid_out = lay_out(self.system)
        self.plan = gibbs.SweepPlan(laid_out, tuple(tight(part) for part in laid_out.parts))
        self.chain = gibbs.start(self.plan, self.rng)
        self.unknown = unknown_variables(self.system)
        self.z: dict[str, Floats] = {}
        self.top = setting.top

    def fresh(self) -> None:
        """Draw parameters, true values, data."""
        alive: dict[int, Any] = {}
        self.draw_parameters()
        for part in self.plan.laid_out.parts:
            self._respond(part, alive)
        self._release()

    def draw_parameters(self) -> None:
        """Draw the parameters of every equation from their prior."""
        values, rng = self.chain.values, self.rng
        for part, prior in zip(self.plan.laid_out.parts, self.plan.priors, strict=True):
            drawn = prior.mean + prior.sd * rng.standard_normal(part.stop - part.begin)
            values.coefficients[part.begin : part.stop] = drawn
            values.precision[part.number] = (prior.residual_scale * abs(rng.standard_t(2))) ** -2
            for k, place in enumerate(part.effects):
                covariance = half_t_covariance(rng, prior.effect_scales[k])
                self.chain.covariances[part.number][k] = covariance
                effects = rng.standard_normal((place.groups, place.width)) @ np.linalg.cholesky(covariance).T
                values.effects[place.begin : place.stop] = effects.ravel()
            values.cuts[:] = np.sort(ordered_probit.CUT_SD * rng.standard_normal(len(values.cuts)))
            values.shape[0] = np.exp(prior.shape_log_sd * rng.standard_normal())

    def begin(self) -> None:
        """Begin a chain as `fit` does: near the released values, parameters dispersed around a first fit.

        A draw of the prior would be a poor beginning. Now and then it has a residual sd of nearly 0, which holds the
        unknown numbers to their line, and they hold it there, for hundreds of sweeps.
        """
        noise = self.chain.noise
        for k, j in enumerate(self.plan.laid_out.numbers):
            own = noise.is_open[noise.pattern, k] & self.plan.laid_out.limits.unknown[:, j]
            self.chain.state[own, j] = noise.u[own, k]
        gibbs.draw_codes(self.plan, self.chain.state, self.rng)
        gibbs.first_fit(self.chain)

    def renew(self) -> None:
        """Draw the response, where it is known, and the release anew."""
        if not self.system.unknown[:, -1].any():
            self._respond(self.plan.laid_out.parts[-1], {})
        self._release()

    def step(self) -> None:
        """Move the chain."""
        gibbs.step(self.chain)

    def true_values(self) -> dict[str, Floats]:
        """Return the columns in the data's units."""
        found = {}
        for j, variable in enumerate(self.variables):
            t = self.chain.state[:, j]
            found[variable.name] = t if variable.log_shift is None else np.exp(t) - variable.log_shift
        return found

    def predictor(self, part: Any) -> Floats:
        """Return an equation's linear predictor, from its formula alone."""
        equation, values, columns = part.equation, self.chain.values, self.true_values()
        eta = np.zeros(len(self.system))
        coefficients = values.coefficients[part.begin : part.stop]
        centres = equation.centres or (0.0,) * len(coefficients)
        for node, coefficient, centre in zip(equation.columns, coefficients, centres, strict=True):
            eta += coefficient * (evaluate(node, columns) - centre)
        for block, place in zip(equation.effects, part.effects, strict=True):
            effects = values.effects[place.begin : place.stop].reshape(place.groups, place.width)
            for c, node in enumerate(block.columns):
                eta += effects[self.system.factors[block.factor].codes, c] * evaluate(node, columns)
        return eta

    def _respond(self, part: Any, alive: dict[int, Any]) -> None:
        """Draw the response of an equation for all records."""
        equation, values, rng = part.equation, self.chain.values, self.rng
        eta, family, j = self.predictor(part), equation.family, equation.response
        utility = eta + rng.standard_normal(len(eta))
        if equation.stick is not None:
            reached = alive.setdefault(j, np.ones(len(eta), bool))
            self.chain.state[reached, j] = np.where(utility > 0, equation.stick, equation.stick + 1)[reached]
            alive[j] = reached & ~(utility > 0)
            return
        drawn: Any = utility > 0  # probit
        if family == GAUSSIAN:
            drawn = eta + (utility - eta) * values.precision[part.number] ** -0.5
        elif family == LOGIT:
            drawn = rng.random(len(eta)) < special.expit(eta)
        elif family == ORDERED:
            drawn = np.searchsorted(values.cuts, utility)
        elif family in (POISSON, NEGATIVE_BINOMIAL):
            rate, shape = np.exp(np.minimum(eta, 40.0)), values.shape[0]
            drawn = rng.poisson(
                rate if family == POISSON else rng.standard_gamma(shape, len(eta)) * rate / shape
            )
        self.chain.state[:, j] = drawn

    def _release(self) -> None:
        """Draw what is released, and give the chain the noise, limits and tables that follow from it."""
        x, words = self.true_values(), Words(self.rng, len(self.system))
        statuses = dict(self.statuses)
        if self.top is not None:
            before = statuses["x1"]
            statuses["x1"] = np.where((before == OPEN) & (x["x1"] >= self.top), TOP_CODED, before)
        self.z = {name: np.where(statuses[name] == OPEN, x[name], np.nan) for name in self.names}
        for law in self.card.laws:
            here = [name for name in law.columns if name in x]
            given = [self.z.get(name, np.zeros(len(words))) for name in law.columns]
            z = law.draw(np.stack(given, axis=1), words)
            for name in here:
                self.z[name] = z[:, law.columns.index(name)]
                if isinstance(law, Additive | SkewedBias):
                    codes = law.outlets[law.columns.index(name)].codes
                    statuses[name] = coded_statuses(self.z[name], statuses[name], *codes)
        self._enter(Seen(self.schema, self.z, statuses))

    def _enter(self, seen: Any) -> None:
        laid_out, chain, limits = self.plan.laid_out, self.chain, self.plan.laid_out.limits
        found = bounds(self.assumed, seen, self.variables)
        limits.unknown[:] = self.always
        if found is not None:
            limits.lower[:], limits.upper[:] = found
            limits.unknown[:] |= np.isfinite(found[0]) | np.isfinite(found[1])
        elif limits.lower.size:
            limits.lower[:], limits.upper[:] = -np.inf, np.inf
        if len(laid_out.numbers):
            low = noise_arrays(self.assumed, seen, self.variables, laid_out.numbers)
            chain.noise = low.start(self.rng)
            chain.plain = gibbs.plain_part(replace(self.system, noise=low), chain.noise)
            self._settle(low)
        for j, table in tables(self.assumed, seen, self.variables).items():
            for number, own, _ in laid_out.categories:
                if number == j:
                    own[:] = table

    def _settle(self, low: Any) -> None:
        """Draw what the law leaves open given the truth: components, scales, noised values in their cells."""
        from maskwell.kernels.gibbs_noise import refresh

        for _ in range(0 if low.plain else REFRESHES):
            refresh(self.chain.noise, self.chain.state, self.plan.laid_out.numbers, self.rng)

    def statistics(self) -> Floats:
        """Return first and second moments of parameters, true values and noise, bounded where tails are heavy."""
        found: list[float] = []
        for part in self.plan.laid_out.parts:
            found += self._of_parameters(part)
        state, y = self.chain.state, np.tanh(self.chain.state[:, -1])
        found += [y.mean(), (y * y).mean()]
        slope, size = self.chain.values.coefficients[-1], np.tanh(np.log(self.chain.values.precision[0]))
        found += [slope * size, slope * y.mean()]
        for j in self.unknown:
            variable, z = self.variables[j], self.z[self.variables[j].name]
            own = np.isfinite(z)
            if variable.is_category:
                found += _of_codes(state[:, j], np.where(own, z, 0.0), len(variable.levels), y)
            else:
                with np.errstate(divide="ignore", invalid="ignore"):
                    entered = z if variable.log_shift is None else np.log(z + variable.log_shift)
                noise = np.where(own, np.clip((entered - state[:, j]) / NOISE_SIZE, -3, 3), 0.0)
                found += _of_numbers(np.tanh(state[:, j]), np.nan_to_num(noise), y)
        return np.array(found)

    def _of_parameters(self, part: Any) -> list[float]:
        values, e = self.chain.values, part.number
        own = values.coefficients[part.begin : part.stop]
        found = [*own, *(own * own), float(own.prod())]
        logs = [-0.5 * np.log(values.precision[e])] if part.equation.family == GAUSSIAN else []
        for k, place in enumerate(part.effects):
            covariance = self.chain.covariances[e][k]
            sds = np.sqrt(np.diag(covariance))
            logs += list(np.log(sds))
            correlations = [covariance[a, b] / (sds[a] * sds[b]) for b in range(len(sds)) for a in range(b)]
            found += [*correlations, *(value * value for value in correlations)]
            first = np.tanh(values.effects[place.begin : place.begin + place.width])
            found += [*first, *(first * first), float(first.sum() * own[0])]
        if part.equation.family == NEGATIVE_BINOMIAL:
            logs.append(np.log(values.shape[0]))
        if part.equation.family == ORDERED:
            found += [
                *np.tanh(values.cuts),
                *np.tanh(values.cuts) ** 2,
                np.tanh(values.cuts[-1] - values.cuts[0]),
            ]
        return [*found, *(np.tanh(log) for log in logs), *(np.tanh(log) ** 2 for log in logs)]


NOISE_SIZE = 0.7


def _of_codes(codes: Floats, z: Floats, levels: int, y: Floats) -> list[float]:
    shares = [(codes == k).mean() for k in range(1, levels)]
    return [*shares, (z * codes).mean(), ((z - codes) ** 2).mean(), (codes * y).mean(), codes[0]]


def _of_numbers(x: Floats, noise: Floats, y: Floats) -> list[float]:
    first = [x.mean(), (x * x).mean(), noise.mean(), (noise * noise).mean()]
    return [*first, (noise * x).mean(), (x * y).mean(), (noise * y).mean(), x[0]]


def tight(part: Any) -> ResolvedPriors:
    """Return a prior of a size at which a few records say about as much."""
    size = len(part.equation.columns)
    mean, sd = np.full(size, COEFFICIENT_MEAN), np.full(size, COEFFICIENT_SD)
    scales = tuple(np.full(place.width, SCALE) for place in part.effects)
    return ResolvedPriors(mean, sd, SCALE, scales, 0.5)


def half_t_covariance(rng: np.random.Generator, scales: Floats) -> Floats:
    """Draw a covariance whose sds are half-t with 2 degrees of freedom: Huang and Wand (2013), their (2)."""
    width = len(scales)
    if width == 1:
        return np.array([[(scales[0] * rng.standard_t(2)) ** 2]])
    inverse = scales**2 * rng.standard_gamma(0.5, width)  # 1 / a, a inverse gamma(1/2, 1 / scale^2)
    return np.asarray(stats.invwishart.rvs(2 + width - 1, 4 * np.diag(inverse), random_state=rng))


def _changed(law: Any, factor: float) -> Any:
    """Return a law whose noise variance is a factor of what it was."""
    if factor == 1.0:
        return law
    sds = tuple(sd * factor**0.5 for sd in law.noise.sds)
    return replace(law, noise=replace(law.noise, sds=sds))
