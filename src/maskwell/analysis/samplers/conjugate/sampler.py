"""Draws in closed form: linear models under plain normal noise on predictors, response or both.

The model of interest and the covariate model together are one multivariate normal regression of the unknown numbers
and the response on the clean columns (`reduced_form`); coefficients, residual sds and the covariate model follow from
each draw of its coefficients and its covariance. Under a `Conjugate` prior draws are independent as they are. Under
`Priors`, which are not conjugate, they are proposals of an independence chain whose Hastings ratio is that of the two
priors (Tierney 1994): with weak priors and more than some hundred records nearly all are accepted. Where the noise
leaves little of the residual sd the ratio is large at sds near 0 and chains would stand still there: the sd is then
proposed by a law near to its conditional posterior (`redrawn`). Chosen first by `choice` where `applies` has nothing
against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ...formulas.expression_trees import evaluate
from ...priors import Priors
from ...results.draws import Draws
from ...system import GAUSSIAN, Floats, Ints, System
from ..chains import ChainSettings, Progress
from ..joint_draws import draw_at_once
from .affine import released_numbers, why_not_linear
from .equation_order import Form, form_of, why_no_form
from .reduced_form import Conjugate, ReducedData, ReducedDraws, draw_reduced, reduce, triangle

CHUNK = 1 << 15  # records at a time
SINGULAR = 1e-10  # of a column is left after those before it
LEAST_ACCEPTANCE = 0.3  # of the ratio of priors
ENOUGH = 0.6  # effective share of the draws, below which the residual sd is proposed anew
# What is kept of a run, by name
RATIO, REDRAWN, WEAK = "acceptance of the priors' ratio", "residual sd redrawn", "weak signal"
CLOSED = "draws in closed form"
CHAINED = f"independence chains of {CLOSED}"


def applies(system: System) -> str | None:
    """Say why this sampler does not apply to a system; None if it does."""
    if system.interest.family != GAUSSIAN:
        return "the family is not gaussian"
    reason = why_not_linear(system) or why_no_form(system)
    if reason is not None:
        return reason
    kinds = released_numbers(system)[1]
    numbers = np.diag(kinds[0].covariance) > 0
    if len(kinds) > 1 or not numbers.all():
        return "not every unknown number was released with noise for every record"
    form = form_of(system)
    if len(system) <= len(form.bases) + 2 * len(form.names):
        return "there are too few records"
    return None


def draw(
    system: System,
    priors: Priors,
    running: ChainSettings,
    seed: np.random.SeedSequence,
    progress: Progress | None = None,
) -> Draws | None:
    """Draw from the posterior of a system that `applies`, as many chains and draws as asked; None as for `sample`."""

    def whole(rng: np.random.Generator) -> Draws | None:
        return sample(system, priors, running.chains, running.draws, rng)

    return draw_at_once(whole, system, running, seed, progress)


def sample(
    system: System, priors: Priors | Conjugate, chains: int, draws: int, rng: np.random.Generator
) -> Draws | None:
    """Draw from the posterior of a system that `applies`.

    None where the noise leaves so little signal that fewer than 1% of the draws of the total covariance exceed it,
    where columns depend on each other, or where the priors are too strong for proposals without them.
    """
    form, noise = form_of(system), released_numbers(system)[1][0].covariance
    whole = triangle(_blocks(system, form))
    r = len(form.bases)
    left = np.abs(np.diag(whole)) / np.maximum(np.linalg.norm(whole, axis=0), 1e-300)
    if left.min() <= SINGULAR:
        return None
    prior = priors if isinstance(priors, Conjugate) else Conjugate()
    reduced = reduce(whole[:, :r], whole[:, r:], len(system), prior)
    order = _order(system, form)
    proposing = _ProposalSource(system, form, reduced, order @ noise @ order.T, (chains, draws))
    if isinstance(priors, Conjugate):
        found = proposing.proposals(rng)
        info: dict[str, object] = {}
    else:
        found, info = proposing.chained(priors, rng)
    if found is None:
        return None
    info["acceptance"] = found.acceptance
    if found.acceptance < 0.5:
        info[WEAK] = True  # the noise is about as large as the signal
    return _named_draws(system, form, found, (chains, draws), info)


class _ProposalSource(NamedTuple):
    """Where proposals come from, and how many chains and draws are asked for."""

    system: System
    form: Form
    reduced: ReducedData
    noise: Floats
    shape: tuple[int, int]

    def proposals(self, rng: np.random.Generator) -> ReducedDraws | None:
        return draw_reduced(self.reduced, self.noise, self.shape[0] * self.shape[1], rng)

    def chained(
        self, priors: Priors, rng: np.random.Generator
    ) -> tuple[ReducedDraws | None, dict[str, object]]:
        """Run independence chains over proposals, None where too few are accepted."""
        found = self.proposals(rng)
        if found is None:
            return None, {}
        logs = log_weights(self.system, self.form, priors, found)
        kept = pick(logs, self.shape[0], rng)
        info: dict[str, object] = {RATIO: kept.acceptance}
        if kept.acceptance < LEAST_ACCEPTANCE:
            return None, info
        if effective_share(kept.chosen, self.shape[0]) >= ENOUGH:
            return found.at(kept.chosen), info
        moved, more = redrawn(self.reduced, self.noise, found, rng)
        again = pick(log_weights(self.system, self.form, priors, moved) + more, self.shape[0], rng)
        if effective_share(again.chosen, self.shape[0]) > effective_share(kept.chosen, self.shape[0]):
            found, kept = moved, again
            info = {RATIO: kept.acceptance, REDRAWN: True}
        return found.at(kept.chosen), info


def _order(system: System, form: Form) -> Floats:
    """Return which of the noise's columns (if any) each column of the reduced form is: the response comes last."""
    columns = list(system.noise.columns)
    order = np.zeros((len(form.responses), len(columns)))
    for k, j in enumerate(form.responses):
        if j in columns:
            order[k, columns.index(j)] = 1.0
    return order


def _blocks(system: System, form: Form) -> Iterator[Floats]:
    """Return clean columns, unknown numbers as released, and the response: a block of records at a time."""
    values = released_numbers(system)[0].values
    columns, interest = list(system.noise.columns), system.interest
    for start in range(0, len(system), CHUNK):
        here = slice(start, start + CHUNK)
        state = {variable.name: system.state[here, j] for j, variable in enumerate(system.variables)}
        parts = [evaluate(base, state) for base in form.bases]
        for j in form.responses:
            if j in columns:
                parts.append(values[here, columns.index(j)])
            else:
                parts.append(system.state[here, j])
        if interest.offset is not None:
            parts[-1] = parts[-1] - evaluate(interest.offset, state)
        yield np.stack(parts, axis=1)


def _named_draws(
    system: System, form: Form, found: ReducedDraws, shape: tuple[int, int], info: dict[str, object]
) -> Draws:
    """Turn the reduced form into the equations' own coefficients, and give them their names."""
    tables, names = [], []
    for k, equation in enumerate(system.equations):
        own = np.column_stack([form.coefficients(k, found), found.roots[:, k, k]])
        tables.append(own.reshape(*shape, -1))
        label = "" if equation is system.interest else system.variables[equation.response].name + " ~ "
        names.append(tuple(label + name for name in (*equation.names, "sigma")))
    how = CHAINED if RATIO in info else f"independent {CLOSED}"
    how += ", sigma by its conditional law" if REDRAWN in info else ""
    nuisance = np.concatenate(tables[:-1], axis=2) if tables[:-1] else np.empty((*shape, 0))
    return Draws(
        names=names[-1],
        values=tables[-1],
        nuisance_names=tuple(name for own in names[:-1] for name in own),
        nuisance=nuisance,
        sampler=f"{how}, unknown numbers integrated out",
        info=info,
    )


# From draws under a conjugate prior to draws under another: an independence chain.


class PickedDraws(NamedTuple):
    """Which draw each step of the chains is at, chain after chain, and the share of proposals accepted."""

    chosen: Ints
    acceptance: float


def log_weights(system: System, form: Form, priors: Priors, found: ReducedDraws) -> Floats:
    """Return the log of the ratio of the priors' density to that of `Conjugate()`, 1 / det T.

    Both as densities of the reduced form: with residual sds s_1..s_d of its columns given those before, the volume of
    its covariance is the product of 2 s_j^(2 (d - j) + 1) times that of sds and coefficients.
    """
    from ..marginal.design import resolved_priors  # which builds on this room
    from ..marginal.problem import half_t

    d = found.roots.shape[1]
    total = found.log_det.copy()
    for k, prior in enumerate(resolved_priors(system, priors)):
        away = (form.coefficients(k, found) - prior.mean) / prior.sd
        logs = np.log(found.roots[:, k, k])
        total -= 0.5 * (away**2).sum(axis=1) + 2.0 * (d - k) * logs
        total += half_t(logs, np.full(1, prior.residual_scale))[0]
    return total


def pick(logs: Floats, chains: int, rng: np.random.Generator) -> PickedDraws:
    """Run chains over independent proposals: accept by the ratio of weights, else stay."""
    steps = logs.reshape(chains, -1)
    levels = np.log(1.0 - rng.random(steps.shape))
    chosen, taken = np.empty(steps.shape, np.int64), 0
    chances = np.exp(logs - logs.max())
    starts = rng.choice(len(logs), chains, p=chances / chances.sum())
    for c in range(chains):
        now = int(starts[c])
        for k in range(steps.shape[1]):
            if levels[c, k] < steps[c, k] - logs[now]:
                now, taken = c * steps.shape[1] + k, taken + 1
            chosen[c, k] = now
    return PickedDraws(chosen.ravel(), taken / len(logs))


def effective_share(chosen: Ints, chains: int) -> float:
    """Return which share of the steps counts, by how long chains stand still: (sum of stays)^2 / sum of squares."""
    steps = chosen.reshape(chains, -1)
    begins = np.ones(steps.shape, bool)
    begins[:, 1:] = steps[:, 1:] != steps[:, :-1]
    stays = np.diff(np.append(np.flatnonzero(begins.ravel()), steps.size)).astype(np.float64)
    return float(steps.size / (stays**2).sum())


# The residual sd of the model of interest drawn anew, given all else: where noise leaves little of it.
#
# The total residual variance t^2 of the last column of the reduced form is s^2, that of the truth, and what the
# noise adds. The closed form has a density that falls with s near 0, priors of sds have not, so that their ratio
# has no bound and chains stand still at small sds. Given all else t^2 is inverse gamma, and s can be drawn by a
# law near to its own conditional posterior; the ratio then hardly varies.


CELLS = 48  # of a histogram of the sd
REACH = 7.0  # sds of log t^2 that it covers


@dataclass(frozen=True, slots=True)
class Rest:
    """All but the residual sd of some draws: the inverse gamma law of t^2, and what the noise adds to s^2."""

    shape: float
    rate: Floats = field(repr=False)
    added: Floats = field(repr=False)
    total: Floats = field(repr=False)

    def log_density(self, total: Floats) -> Floats:
        """Return the log density of t^2 above what the noise adds."""
        from scipy.special import gammainc, gammaln

        with np.errstate(divide="ignore"):
            above = np.log(gammainc(self.shape, self.rate / self.added))
        logs = self.shape * np.log(self.rate) - gammaln(self.shape) - (self.shape + 1.0) * np.log(total)
        return np.asarray(logs - self.rate / total - above)


def rest_of(reduced: ReducedData, noise: Floats, found: ReducedDraws) -> Rest:
    """Take the residual sd out of draws."""
    r, d = reduced.coefficients.shape
    totals = found.roots @ found.roots.transpose(0, 2, 1) + noise
    slopes = np.linalg.solve(totals[:, :-1, :-1], totals[:, :-1, -1:])[:, :, 0] if d > 1 else totals[:, 0, :0]
    total = totals[:, -1, -1] - np.einsum("ij,ij->i", slopes, totals[:, :-1, -1])
    own = found.coefficients[:, :, -1] - np.einsum("irk,ik->ir", found.coefficients[:, :, :-1], slopes)
    triangle = np.block(
        [[reduced.clean, reduced.clean @ reduced.coefficients], [np.zeros((d, r)), reduced.residual]]
    )
    left = triangle @ np.hstack([-own, -slopes, np.ones((len(own), 1))]).T
    added = np.maximum(total - found.roots[:, -1, -1] ** 2, 0.0)
    return Rest(0.5 * (reduced.df + r + d - 1.0), 0.5 * (left**2).sum(axis=0), added, total)


def redrawn(
    reduced: ReducedData, noise: Floats, found: ReducedDraws, rng: np.random.Generator
) -> tuple[ReducedDraws, Floats]:
    """Return draws with the residual sd drawn from a histogram, and what that adds to their log weights."""
    rest = rest_of(reduced, noise, found)
    wide = REACH / np.sqrt(rest.shape)
    low = np.sqrt(np.maximum(rest.rate / rest.shape * np.exp(-wide) - rest.added, 0.0))
    high = np.sqrt(np.maximum(rest.rate / rest.shape * np.exp(wide) - rest.added, 0.0))
    high = np.maximum(high, found.roots[:, -1, -1])  # of few records: as far as the draw itself
    width = (high - low) / CELLS
    middles = low[:, None] + width[:, None] * (np.arange(CELLS) + 0.5)
    total = middles**2 + rest.added[:, None]
    logs = -rest.shape * np.log(total) - rest.rate[:, None] / total
    shares = np.exp(logs - logs.max(axis=1, keepdims=True)) + 1e-6
    shares /= shares.sum(axis=1, keepdims=True)
    cell = (shares.cumsum(axis=1) < rng.random((len(shares), 1))).sum(axis=1).clip(max=CELLS - 1)
    sd = low + width * (cell + rng.random(len(cell)))
    roots = found.roots.copy()
    roots[:, -1, -1] = sd
    total = sd**2 + rest.added
    change = np.log(total) - np.log(rest.total)
    histogram = np.log(shares[np.arange(len(cell)), cell] / width) - np.log(2.0 * sd)  # as a density of t^2
    return found._replace(roots=roots, log_det=found.log_det + change), rest.log_density(total) - histogram
