"""Many known units and noise that was not told: matchings are drawn at a few values of the parameters.

With hundreds of units matching and parameters hang together so closely that chains over both crawl. But then the
posterior of the parameters is near normal, and its slope at any value is an average over the matchings there (Fisher's
identity; Louis 1982),

    d log posterior = d log prior + sum over pairs of P(pair) d log kernel + the same of records that are nobody's.

Where it has its mass is found with approximate chances (`belief_propagation`); matchings are drawn at Gauss-Hermite
nodes along its axes, slopes are added up to its log density, and what is believed of every record is averaged over the
nodes of each axis. Own derivation: effects of the axes are added, which leaves out their interaction.
Chosen by `unknown_noise` from LEAST_UNITS known units in one block on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from ....table import Floats
from .belief_propagation import message_chances
from .bethe import ratios_at
from .chain_state import MatchingProblem
from .matchings import Marginals, Sampling, marginals
from .mcmc import log_factors
from .proposals import reach_of

LEAST_UNITS = 40  # known in one block: fewer are left to chains
MOST_UNKNOWNS = 6  # parameters, each with nodes along an axis of its own
DIFFERENCE = 1e-4  # of log psi, for slopes of kernels
BEND = 0.02  # of log psi, for slopes of slopes
FIRM = 30  # steps towards the top
CLOSE = 0.02  # of an sd: near enough to the top
LONGEST = 1.0  # step in log psi
SMALLER = 0.3  # share of a slope that may be left after a step
APART = 0.5  # sds between tops found from several starts, beyond which there is more than one
STARTS = (0.0, -1.5, 1.5)  # of the search, in sds of the prior
NODES = {1: 5}  # of an axis, where there is but one
FEW = 3  # nodes of an axis, where there are several
TRIES = 3  # of centring nodes
LEAST_ESS = 100.0  # of each node
BESIDE = 0.4  # sds that the centre may seem to be beside the top before nodes are drawn around it
OFF = 0.75  # sds that the mean may be off the centre, and
NARROW, WIDE = 0.5, 2.0  # times the variance expected that an axis may have


@dataclass(frozen=True, slots=True)
class NodePosterior:
    """Probabilities of each block, mean and sd of each parameter, and how many values of them were looked at.

    `settled`: the nodes lie where the posterior is.
    """

    found: tuple[Marginals, ...]
    mean: Floats
    sd: Floats
    nodes: int
    settled: bool


@dataclass(frozen=True, slots=True)
class Node:
    """Matchings at one value of the parameters: marginals of each block, and the slope of the log posterior."""

    found: tuple[Marginals, ...]
    slope: Floats


def node_posterior(problem: MatchingProblem, sampling: Sampling, seed: int) -> NodePosterior | None:
    """Return what is believed where many units are known; nothing where they are few or the top is not found."""
    few = problem.known.side.sizes.max(initial=0) < LEAST_UNITS
    if few or len(problem.beliefs) > MOST_UNKNOWNS or problem.unreleased.any():
        return None
    shape = _shape(problem)
    return None if shape is None else _over_axes(problem, shape, sampling, seed)


# Slopes.


def slope_at(problem: MatchingProblem, logs: Floats, chances: Sequence[Floats]) -> Floats:
    """Return the slope of the log posterior, from the chances of pairs in each block (none last)."""
    out = np.empty(len(logs))
    for d, belief in enumerate(problem.beliefs):
        ends = [logs.copy() for _ in range(2)]
        for end, side in zip(ends, (1, -1), strict=True):
            end[d] += side * DIFFERENCE
        low, high = (belief.log_density(end[d : d + 1])[0] for end in ends[::-1])
        out[d] = high - low + _kernel_difference(problem, ends[0], ends[1], chances)
    return out / (2 * DIFFERENCE)


def _kernel_difference(
    problem: MatchingProblem, high: Floats, low: Floats, chances: Sequence[Floats]
) -> float:
    """Return by how much log weights differ between two values of the parameters, averaged over matchings."""
    with np.errstate(invalid="ignore"):
        flat = problem.model.pair_logs(high) - problem.model.pair_logs(low)
        free, ends = problem.free(high) - problem.free(low), problem.known.released.ends
    total = 0.0
    for b, (pairs, chance) in enumerate(zip(problem.known.matrices(flat), chances, strict=True)):
        each = chance[:, :-1]
        total += float((each * np.where(each > 0, pairs, 0.0)).sum())
        total += float(((1.0 - each.sum(axis=0)) * free[ends[b] : ends[b + 1]]).sum())
    return total


# Where the posterior is, by messages.


@dataclass(frozen=True, slots=True)
class PosteriorShape:
    """A normal law that is near the posterior: its centre, and axes of length one sd as columns."""

    centre: Floats
    axes: Floats

    def moved(self, mean: Floats, variance: Floats) -> PosteriorShape:
        """Return the law with other means and variances along its axes."""
        return PosteriorShape(self.centre + self.axes @ mean, self.axes * np.sqrt(variance))


class _Messages:
    """Slopes by messages, each from where those of the last value ended."""

    def __init__(self, problem: MatchingProblem) -> None:
        self.problem = problem
        self.factors: list[Floats] = []
        self.starts: list[Floats | None] = [None] * len(problem.units)

    def __call__(self, logs: Floats) -> Floats:
        chances, ratios = [], ratios_at(self.problem, logs)
        units = self.problem.units.tolist()
        if not self.factors:
            self.factors = [log_factors(ratio, count) for ratio, count in zip(ratios, units, strict=True)]
        for b, ratio in enumerate(ratios):
            found, self.starts[b] = message_chances(ratio, units[b], self.factors[b], self.starts[b])
            chances.append(found)
        return slope_at(self.problem, logs, chances)


def _shape(problem: MatchingProblem) -> PosteriorShape | None:
    """Find the top from several starts, and how the posterior bends there; nothing where tops differ."""
    centre, spread = (np.array([getattr(b, of) for b in problem.beliefs]) for of in ("centre", "spread"))
    tops = [_newton_mode(problem, centre + step * spread) for step in STARTS]
    if any(top is None for top in tops):
        return None
    shapes = [top for top in tops if top is not None]
    inverse = np.linalg.inv(shapes[0].axes)
    if any(np.abs(inverse @ (one.centre - shapes[0].centre)).max() > APART for one in shapes[1:]):
        return None
    return shapes[0]


def _newton_mode(problem: MatchingProblem, logs: Floats) -> PosteriorShape | None:
    """Climb by Newton's steps; where slopes do not fall yet, by a whole step uphill.

    How slopes bend is measured anew where a step did not make them much smaller.
    """
    slopes, reach = _Messages(problem), np.array([reach_of(b) for b in problem.beliefs])
    centre = np.array([b.centre for b in problem.beliefs])
    bend, before = np.empty(0), np.inf
    for _ in range(FIRM):
        here = slopes(logs)
        fresh = not (bend.size and np.abs(here).max() < SMALLER * before)
        before = float(np.abs(here).max())
        if fresh:
            bend = np.column_stack([(slopes(logs + step) - here) / BEND for step in BEND * np.eye(len(logs))])
        values, vectors = np.linalg.eigh((bend + bend.T) / 2)
        along = vectors.T @ here
        with np.errstate(divide="ignore", invalid="ignore"):
            steps = np.where(values < 0, along / -values, np.sign(along) * LONGEST)
        step = vectors @ steps
        logs = logs + step * min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-300))
        if not (np.isfinite(logs).all() and (np.abs(logs - centre) < reach).all()):
            return None
        if (values < 0).all() and (np.abs(steps) * np.sqrt(-values) < CLOSE).all():
            return PosteriorShape(logs, vectors / np.sqrt(-values))
    return None


# Nodes along the axes, with matchings drawn.


def _over_axes(
    problem: MatchingProblem, shape: PosteriorShape, sampling: Sampling, seed: int
) -> NodePosterior:
    """Draw at nodes until they lie where the posterior is, and average."""
    count = len(shape.centre)
    at, weights = hermegauss(NODES.get(count, FEW))
    each = replace(sampling, ess=max(LEAST_ESS, 2 * sampling.ess / (1 + count * (len(at) - 1))))
    asked = 0

    def node(logs: Floats) -> Node:
        nonlocal asked
        asked += 1
        return _node(problem, logs, each, [seed, asked])

    for _ in range(TRIES):
        shape, middle = _recentre_on_mode(shape, node)
        axes = [_Axis(at, weights, [], []) for _ in range(count)]
        for direction, axis in zip(shape.axes.T, axes, strict=True):
            for t in at:
                one = middle if abs(t) < 1e-9 else node(shape.centre + t * direction)
                axis.nodes.append(one)
                axis.slopes.append(float(direction @ one.slope))
        mean, variance = np.array([axis.moments() for axis in axes]).T
        settled = bool((np.abs(mean) < OFF).all() and (variance > NARROW).all() and (variance < WIDE).all())
        answer = _answer(shape.moved(mean, variance), middle, axes, asked, settled)
        if settled:
            return answer
        shape = shape.moved(np.clip(mean, -WIDE, WIDE), np.clip(variance, 0.25, 4.0))
    return answer


def _recentre_on_mode(shape: PosteriorShape, node: Callable[[Floats], Node]) -> tuple[PosteriorShape, Node]:
    """Move the centre to the top by drawn slopes, which messages miss a little."""
    middle = node(shape.centre)
    for _ in range(TRIES):
        off = shape.axes.T @ middle.slope
        if np.abs(off).max() < BESIDE:
            break
        shape = shape.moved(np.clip(off, -LONGEST, LONGEST), np.ones(len(off)))
        middle = node(shape.centre)
    return shape, middle


def _node(problem: MatchingProblem, logs: Floats, sampling: Sampling, seed: list[int]) -> Node:
    found = tuple(
        marginals(ratio, int(problem.units[b]), np.random.default_rng([*seed, b]), sampling)
        for b, ratio in enumerate(ratios_at(problem, logs))
    )
    return Node(found, slope_at(problem, logs, [one.drawn for one in found]))


@dataclass(frozen=True, slots=True)
class _Axis:
    """Nodes along one axis, in sds, Gauss and Hermite's weights of these, and slopes there."""

    at: Floats
    gauss: Floats
    nodes: list[Node]
    slopes: list[float]

    def log_density(self, t: Floats) -> Floats:
        """Return the log density along the axis: the integral of a polynomial through the slopes."""
        slope = np.polynomial.Polynomial.fit(self.at, self.slopes, len(self.at) - 1)
        return np.asarray(slope.integ(lbnd=0.0)(t))

    def weights(self) -> Floats:
        """Return what each node stands for."""
        logs = self.log_density(self.at) + 0.5 * self.at**2
        weights = self.gauss * np.exp(logs - logs.max())
        return np.asarray(weights / weights.sum())

    def moments(self) -> tuple[float, float]:
        """Return mean and variance along the axis."""
        weights = self.weights()
        mean = float(weights @ self.at)
        return mean, max(float(weights @ (self.at - mean) ** 2), 1e-6)


def _answer(
    shape: PosteriorShape, middle: Node, axes: Sequence[_Axis], asked: int, settled: bool
) -> NodePosterior:
    """Average over the nodes of each axis: what an axis changes is added to what is believed at the centre."""
    found = []
    for b, centre in enumerate(middle.found):
        chances, nodes = _whole(centre), [centre]
        for axis in axes:
            for weight, node in zip(axis.weights(), axis.nodes, strict=True):
                if node is not middle:
                    chances = chances + weight * (_whole(node.found[b]) - _whole(centre))
                    nodes.append(node.found[b])
        chances = np.maximum(chances, 0.0)
        found.append(_pooled_marginals(chances / chances.sum(axis=1, keepdims=True), nodes, settled))
    covariance = shape.axes @ shape.axes.T
    variance = np.diag(covariance)
    mean = np.exp(shape.centre + variance / 2)
    return NodePosterior(tuple(found), mean, mean * np.sqrt(np.expm1(variance)), asked, settled)


def _whole(one: Marginals) -> Floats:
    return np.column_stack([one.probability, one.unreleased])


def _pooled_marginals(chances: Floats, nodes: Sequence[Marginals], settled: bool) -> Marginals:
    """Return the probabilities of a block with the worst that is said of its nodes."""
    decided = np.all([one.decided for one in nodes if one.decided is not None], axis=0)
    return replace(
        nodes[0],
        probability=np.ascontiguousarray(chances[:, :-1]),
        unreleased=chances[:, -1].copy(),
        exact=False,
        rhat=max(one.rhat for one in nodes),
        ess=float(np.sum([min(one.ess, 1e9) for one in nodes])),
        error=max(one.error for one in nodes) / np.sqrt(len(nodes)),
        draws=max(one.draws for one in nodes),
        converged=settled and all(one.converged for one in nodes),
        decided=np.broadcast_to(decided, len(chances)).copy(),
    )
