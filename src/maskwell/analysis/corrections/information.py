"""What a release will tell about a model, where no closed form does: the information of simulated released records.

Records are simulated from the model fitted to the true ones: noised categories by a multinomial logit model given the
clean columns, noised numbers normal given both, the response from its family, the released values from the law itself,
limits and units included. The information of what is released is that of whole records, which has a closed form, less
the variance of their score given what is released (Louis 1982), here by importance sampling of the true values. The
parameters of the covariate model are unknown too, so that it is about the information of a one-level `fit(...)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..system import Floats, Ints
from .glm import Family, log_density

# Simulated; true values drawn for each from either proposal; of the jackknife
RECORDS, DRAWS, BATCHES = 5_000, 60, 20
Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class Channel:
    """How true values leave.

    `release(kinds, x)` draws released values: numbers, and for each record the log density of its released categories
    given each kind. `log_density(z, x)` is that of released numbers given true ones; `undone` takes slopes and means of
    the noise off, and `covariance` is what is left of it.
    """

    release: Callable[[Ints, Floats], tuple[Floats, Floats]] = field(repr=False)
    undone: Callable[[Floats], Floats] = field(repr=False)
    log_density: Callable[[Floats, Floats], Floats] = field(repr=False)
    covariance: Floats = field(repr=False)


@dataclass(frozen=True, slots=True)
class SimulatedModel:
    """A model at its true parameters on some records, with that of its noised predictors given the clean columns.

    A kind is a combination of the noised categories (one where there are none). `bases` (kinds x records x columns) has
    the design of each kind with noised numbers at 0, `loadings` (and x numbers) how it moves with them. `logits`
    (kinds - 1 x clean columns) are those of the kinds against the first; `coefficients` and `spread` are of the numbers
    given the clean columns and indicators of the kinds but the first.
    """

    family: Family
    beta: Floats
    variance: float
    offset: Floats = field(repr=False)
    clean: Floats = field(repr=False)
    bases: Floats = field(repr=False)
    loadings: Floats = field(repr=False)
    logits: Floats = field(repr=False)
    coefficients: Floats = field(repr=False)
    spread: Floats = field(repr=False)

    def __len__(self) -> int:
        return len(self.clean)

    def at(self, part: Ints) -> SimulatedModel:
        """Return the model on some of its records."""
        held = self.family, self.beta, self.variance, self.offset[part], self.clean[part]
        return SimulatedModel(
            *held, self.bases[:, part], self.loadings[:, part], self.logits, self.coefficients, self.spread
        )

    def chances(self) -> Floats:
        """Return the probability of each kind for each record."""
        return chances(self.clean, self.logits)

    def designs(self, kinds: Ints, x: Floats) -> Floats:
        """Return the design of each draw of kinds (records x draws) and numbers (and x numbers)."""
        records = np.arange(len(self))[:, None]
        moved = np.einsum("nkpq,nkq->nkp", self.loadings[kinds, records], x)
        return np.asarray(self.bases[kinds, records] + moved)

    def predictor(self, design: Floats) -> Floats:
        """Return the linear predictor of each draw."""
        return np.asarray(design @ self.beta + self.offset[:, None])

    def regressors(self, kinds: Ints) -> Floats:
        """Return what the numbers of each draw are regressed on."""
        indicators = kinds[:, :, None] == np.arange(1, len(self.bases))
        clean = np.broadcast_to(self.clean[:, None], (*kinds.shape, self.clean.shape[1]))
        return np.concatenate([clean, indicators], axis=2)


@dataclass(frozen=True, slots=True)
class _Told:
    """What is released of simulated records: response, numbers, and what their categories say of each kind."""

    y: Floats
    z: Floats
    tables: Floats

    def at(self, part: Ints) -> _Told:
        """Return some of the records."""
        return _Told(self.y[part], self.z[part], self.tables[part])


def chances(clean: Floats, logits: Floats) -> Floats:
    """Return the probabilities of kinds by a multinomial logit model."""
    eta = np.column_stack([np.zeros(len(clean)), clean @ logits.T])
    raised = np.exp(eta - eta.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def simulated_ratios(model: SimulatedModel, channel: Channel, seed: int) -> tuple[Floats, Floats]:
    """Return how many times wider the interval of each coefficient becomes, and the Monte Carlo error of that."""
    rng = np.random.default_rng(seed)
    kinds = _drawn_kinds(model.chances(), 1, rng)
    centre = model.regressors(kinds) @ model.coefficients
    x = centre + rng.standard_normal(centre.shape) @ np.linalg.cholesky(model.spread).T
    design = model.designs(kinds, x)
    told = _Told(
        _responses(model, model.predictor(design)[:, 0], rng), *channel.release(kinds[:, 0], x[:, 0])
    )
    parts = np.array_split(np.arange(len(model)), BATCHES)
    missing = np.array([_missing_information(model.at(part), channel, told.at(part), rng) for part in parts])
    known, total = _information(model, kinds, design), missing.sum(axis=0)
    ratios = _ratios(known, total, model)
    left_out = np.array([_ratios(known, (total - one) * BATCHES / (BATCHES - 1), model) for one in missing])
    error = np.sqrt((BATCHES - 1) / BATCHES * ((left_out - left_out.mean(axis=0)) ** 2).sum(axis=0))
    return ratios, error


def _ratios(known: Floats, missing: Floats, model: SimulatedModel) -> Floats:
    """Return the ratios of standard errors; not a number where the release tells nothing."""
    width = len(model.beta)
    with np.errstate(invalid="ignore"):
        variances = np.diag(np.linalg.inv(known - missing))[:width] / np.diag(np.linalg.inv(known))[:width]
        return np.asarray(np.sqrt(variances))


def _information(model: SimulatedModel, kinds: Ints, design: Floats) -> Floats:
    """Return the information of whole records: expected, so that only what the noise takes is left to simulation."""
    expected = model.family.expected(model.predictor(design)[:, 0]) / model.variance
    design = design[:, 0]
    precision, count = np.linalg.inv(model.spread), len(design)
    rows, columns = np.triu_indices(len(precision))
    regressors, shares = model.regressors(kinds)[:, 0], model.chances()[:, 1:]
    blocks = [design.T @ (design * expected[:, None])]
    if model.family.has_scale:
        blocks.append(np.array([[count / (2 * model.variance**2)]]))
    blocks.append(np.kron(regressors.T @ regressors, precision))
    pairs = precision[np.ix_(rows, rows)] * precision[np.ix_(columns, columns)]
    pairs = pairs + precision[np.ix_(rows, columns)] * precision[np.ix_(columns, rows)]
    blocks.append(count * pairs)
    spread = np.einsum("nj,jk->njk", shares, np.eye(shares.shape[1])) - shares[:, :, None] * shares[:, None]
    logits = np.einsum("njk,na,nb->jakb", spread, model.clean, model.clean, optimize=True)
    size = model.logits.size
    blocks.append(logits.reshape(size, size))
    return _block_diagonal(blocks)


def _block_diagonal(blocks: list[Floats]) -> Floats:
    size = sum(map(len, blocks))
    out, at = np.zeros((size, size)), 0
    for block in blocks:
        out[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    return out


def _drawn_kinds(shares: Floats, count: int, rng: Generator) -> Ints:
    edges = np.cumsum(shares, axis=1)[:, :-1]
    uniform = rng.random((len(shares), count))
    return np.asarray((uniform[:, :, None] > edges[:, None]).sum(axis=2))


def _responses(model: SimulatedModel, eta: Floats, rng: Generator) -> Floats:
    mean = model.family.mean(eta)
    if model.family.name == "gaussian":
        return np.asarray(mean + np.sqrt(model.variance) * rng.standard_normal(len(eta)))
    if model.family.name == "poisson":
        return rng.poisson(mean).astype(np.float64)
    return (rng.random(len(eta)) < mean).astype(np.float64)


def _missing_information(model: SimulatedModel, channel: Channel, told: _Told, rng: Generator) -> Floats:
    """Return the variance of the scores given what is released, summed over records."""
    likely = model.chances() * np.exp(told.tables - told.tables.max(axis=1, keepdims=True))
    kinds = _drawn_kinds(likely / likely.sum(axis=1, keepdims=True), 2 * DRAWS, rng)
    x, logs = _draw_proposals(model, channel, told, kinds, rng)
    design = model.designs(kinds, x)
    logs = logs + log_density(model.family, told.y[:, None], model.predictor(design), model.variance)
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    scores = _scores(model, told.y, kinds, x, design)
    scores -= np.einsum("nk,nkp->np", weights, scores)[:, None]
    once = weights / np.maximum(
        1 - (weights**2).sum(axis=1, keepdims=True), 1e-3
    )  # as n - 1 for equal weights
    flat = scores.reshape(-1, scores.shape[2])
    return np.asarray(flat.T @ (flat * once.reshape(-1, 1)))


def _draw_proposals(
    model: SimulatedModel, channel: Channel, told: _Told, kinds: Ints, rng: Generator
) -> tuple[Floats, Floats]:
    """Draw numbers from their covariate model and from its normal posterior in turn, with their log weights."""
    prior, centre = model.spread, model.regressors(kinds) @ model.coefficients
    if not len(prior):
        return centre, np.zeros(kinds.shape)
    gain = np.linalg.solve(prior + channel.covariance, prior).T
    after = centre + (channel.undone(told.z)[:, None] - centre) @ gain.T
    left = 1.2 * (prior - gain @ prior)
    noise = rng.standard_normal(centre.shape)
    first = np.arange(kinds.shape[1]) % 2 == 0
    draws = np.where(
        first[None, :, None],
        centre + noise @ np.linalg.cholesky(prior).T,
        after + noise @ np.linalg.cholesky(left).T,
    )
    logs = np.stack([_log_normal(draws - centre, prior), _log_normal(draws - after, left)])
    released = np.repeat(told.z, draws.shape[1], axis=0)
    dense = channel.log_density(released, draws.reshape(-1, draws.shape[2])).reshape(kinds.shape)
    return draws, logs[0] - np.logaddexp(logs[0], logs[1]) + dense


def _log_normal(values: Floats, covariance: Floats) -> Floats:
    turned = np.linalg.solve(np.linalg.cholesky(covariance), values.reshape(-1, len(covariance)).T)
    logs = -0.5 * (turned**2).sum(axis=0) - 0.5 * np.linalg.slogdet(covariance)[1]
    return np.asarray(logs.reshape(values.shape[:2]))


def _scores(model: SimulatedModel, y: Floats, kinds: Ints, x: Floats, design: Floats) -> Floats:
    """Return the score of all parameters at each draw: those of the model first, then those of the covariates."""
    eta = model.predictor(design)
    pull = model.family.score(y[:, None], eta) / model.variance
    parts = [design * pull[:, :, None]]
    if model.family.has_scale:
        parts.append((((y[:, None] - eta) ** 2) / model.variance - 1)[:, :, None] / (2 * model.variance))
    regressors, precision = model.regressors(kinds), np.linalg.inv(model.spread)
    turned = (x - regressors @ model.coefficients) @ precision
    parts.append((regressors[:, :, :, None] * turned[:, :, None, :]).reshape(*kinds.shape, -1))
    rows, columns = np.triu_indices(x.shape[2])
    parts.append(turned[:, :, rows] * turned[:, :, columns] - precision[rows, columns])
    surprise = (kinds[:, :, None] == np.arange(1, len(model.bases))) - model.chances()[:, None, 1:]
    parts.append((surprise[:, :, :, None] * model.clean[:, None, None, :]).reshape(*kinds.shape, -1))
    return np.concatenate(parts, axis=2)
