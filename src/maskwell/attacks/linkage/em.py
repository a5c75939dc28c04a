"""The weights of agreement: by EM on the pattern counts, or given.

A pair is a match with probability p. Given that it is, field f agrees with probability m_f, given that it is not, u_f,
independently over fields; its weight is log2(m_f / u_f) or log2((1 - m_f) / (1 - u_f)) (Fellegi and Sunter 1969). EM
finds the m, u and p that fit the counts of the 2^k patterns best (Dempster, Laird and Rubin 1977; Winkler 1988), from
several starts. It finds a latent class; whether that class is "matches" is another question, and `risk_figures` asks it
with the links in hand. The first steps are numpy's, later ones `kernels.em`. Chosen by `Linkage(weights=EM())`, the
default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...errors import BadPlan, raise_all
from ...masking.protocol import WrittenPlan
from ...table import Floats
from ..agreement import is_number
from ..protocol import Bools, Ints

SMALLEST = 1e-12  # keeps weights finite where a field always or never agrees
SAME_OPTIMUM, ROUNDING = 1e-3, 1e-12  # log-likelihoods this near, absolutely and in parts, are of one optimum
IDENTIFYING_FIELDS = 3  # with fewer fields many m, u and p fit equally well


@dataclass(frozen=True, slots=True)
class EMFit:
    """m, u and p of a two-class model of agreement patterns, and how they were found."""

    m: Floats
    u: Floats
    p: float
    how: str
    log_likelihood: float | None = None
    iterations: int = 0
    converged: bool = True
    starts: int = 0
    optima: int = 0
    identified: bool = True

    @property
    def weights(self) -> tuple[Floats, Floats]:
        """The log weights (base 2) of agreement and of disagreement of each field."""
        m, u = np.clip(self.m, SMALLEST, 1 - SMALLEST), np.clip(self.u, SMALLEST, 1 - SMALLEST)
        return np.log2(m / u), np.log2((1 - m) / (1 - u))

    def scores(self) -> Floats:
        """Return the score of each pattern: the sum of its fields' weights."""
        agree, disagree = self.weights
        bits = pattern_bits(len(self.m))
        return np.asarray((bits * agree + ~bits * disagree).sum(axis=1))

    def posterior(self) -> Floats:
        """Return the probability that a pair of each pattern is of the first class."""
        return np.asarray(np.exp(-np.logaddexp(0.0, -(self.scores() * np.log(2.0) + _logit(self.p)))))

    def expected(self, pairs: int) -> Floats:
        """Return how many pairs of each pattern the model expects."""
        first, second = (np.exp(_log_chance(x, pattern_bits(len(self.m)))) for x in (self.m, self.u))
        return np.asarray(pairs * (self.p * first + (1 - self.p) * second))


@dataclass(frozen=True, slots=True)
class EM(WrittenPlan):
    """Estimate m, u and p from the pattern counts by EM.

    Starts from `m`, `u` and `p` (the share of pairs that would be matches if every searcher had one), and from
    `starts` - 1 others around them; the best fit is taken. It has converged when no parameter moves by more than
    `tolerance` in a step, and not otherwise.
    """

    word: ClassVar[str] = "weights"

    m: float = 0.8
    u: float = 0.05
    p: float | None = None
    starts: int = 5
    iterations: int = 100_000
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        problems = [
            f"{name} must lie strictly between 0 and 1, not {value!r}"
            for name, value in (("m", self.m), ("u", self.u), ("p", 0.5 if self.p is None else self.p))
            if not is_number(value) or not 0 < value < 1
        ]
        problems += [
            f"{name} must be at least 1" for name in ("starts", "iterations") if getattr(self, name) < 1
        ]
        raise_all(problems, BadPlan)

    def fit(self, counts: Ints, matches: int) -> EMFit:
        """Fit the model to pattern counts; `matches` is how many pairs could be matches at most."""
        used = np.flatnonzero(counts)
        width = int(np.log2(len(counts)))
        bits, n = pattern_bits(width)[used], counts[used].astype(np.float64)
        p = self.p if self.p is not None else min(max(matches / n.sum(), SMALLEST), 0.5)
        fits = [self._climb(used, n, m, u, p0) for m, u, p0 in self._starts(bits, n, p)]
        best = max(fits, key=lambda fit: fit.log_likelihood or -np.inf)
        top = best.log_likelihood or 0.0
        allowed = SAME_OPTIMUM + ROUNDING * abs(top)
        near = [abs((fit.log_likelihood or 0.0) - top) <= allowed for fit in fits]
        optima = 1 + sum(not one for one in near)
        identified = int((bits.any(axis=0) & ~bits.all(axis=0)).sum()) >= IDENTIFYING_FIELDS
        found = (best.m, best.u, best.p, "EM", top, best.iterations, best.converged)
        return EMFit(*found, len(fits), optima, identified)

    def _starts(self, bits: Any, n: Floats, p: float) -> list[tuple[Floats, Floats, float]]:
        """Return the given start and others: u from the file itself, other m, other p."""
        width = bits.shape[1]
        flat = [np.full(width, value) for value in (self.m, self.u)]
        overall = np.clip((n @ bits) / n.sum(), 1e-6, 1 - 1e-6)
        others = [
            (np.maximum(0.9, 0.5 + overall / 2), overall, p),
            (0.5 * (1 + overall), overall, min(10 * p, 0.3)),
            (np.full(width, 0.95), np.minimum(overall, 0.5), p / 10),
            (np.clip(1.5 * overall, 0.05, 0.95), np.clip(0.5 * overall, 1e-6, 0.5), 0.2),
        ]
        if len(others) < self.starts - 1:
            drawn = np.random.default_rng(0)  # where EM starts, with no value of the data or the key in it
        while len(others) < self.starts - 1:
            others.append((drawn.uniform(0.3, 0.99, width), overall * drawn.uniform(0.2, 1, width), p))
        return [(flat[0], flat[1], p), *others[: self.starts - 1]]

    def _climb(self, used: Ints, pairs: Floats, m: Floats, u: Floats, p: float) -> EMFit:
        m, u = (np.clip(x, SMALLEST, 1 - SMALLEST) for x in (m, u))
        p, steps, converged = climb(used, pairs, m, u, p, self.iterations, self.tolerance, SMALLEST)
        m, u, p = (m, u, p) if m.sum() >= u.sum() else (u, m, 1 - p)
        bits = pattern_bits(len(m))[used]
        chances = np.log(p) + _log_chance(m, bits), np.log1p(-p) + _log_chance(u, bits)
        return EMFit(m, u, p, "EM", float(pairs @ np.logaddexp(*chances)), steps, converged)


@dataclass(frozen=True, slots=True)
class Fixed(WrittenPlan):
    """Weights given by m and u: one figure for all fields, or one for each."""

    word: ClassVar[str] = "weights"

    m: float | tuple[float, ...] = 0.8
    u: float | tuple[float, ...] = 0.05
    p: float | None = None

    def __post_init__(self) -> None:
        problems = []
        for name in ("m", "u"):
            given = getattr(self, name)
            several = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str)
            if not all(is_number(value) and 0 <= value <= 1 for value in (given if several else [given])):
                problems.append(f"{name} holds probabilities, from 0 to 1: one, or one for each field")
            elif several:
                object.__setattr__(self, name, tuple(map(float, given)))
        raise_all(problems, BadPlan)

    def fit(self, counts: Ints, matches: int) -> EMFit:
        """Return the given m and u; p is given too, or as if every searcher had a match."""
        width = int(np.log2(len(counts)))
        given = [
            np.broadcast_to(np.asarray(x, dtype=np.float64), width).copy()
            for x in (self._of("m", width), self._of("u", width))
        ]
        p = self.p if self.p is not None else min(matches / max(int(counts.sum()), 1), 1.0)
        return EMFit(given[0], given[1], p, "given")

    def _of(self, name: str, width: int) -> float | tuple[float, ...]:
        given: float | tuple[float, ...] = getattr(self, name)
        if isinstance(given, tuple) and len(given) != width:
            raise BadPlan(f"weights give {len(given)} figures of {name} for {width} fields")
        return given


Weights = EM | Fixed
WEIGHTS: dict[str, Any] = {"EM": EM, "Fixed": Fixed}


def pattern_bits(width: int) -> Any:
    """Return patterns x fields: whether the field agrees in the pattern."""
    return (np.arange(1 << width)[:, None] >> np.arange(width)) & 1 == 1


def _logit(p: float) -> float:
    return float(np.log(np.clip(p, SMALLEST, 1)) - np.log(np.clip(1 - p, SMALLEST, 1)))


def _log_chance(agree: Floats, bits: Any) -> Floats:
    """Return the log probability of each pattern when fields agree independently."""
    agree = np.clip(agree, SMALLEST, 1 - SMALLEST)
    return np.asarray(bits @ np.log(agree) + ~bits @ np.log1p(-agree))


# EM in numpy: most climbs are at rest before a compiler would be loaded.


FIRST_STEPS = 300  # of some 50 microseconds: the compiler takes longer to load
MOST_CELLS = 2_000  # patterns x fields: a step on more of them takes longer


def climb(
    patterns: Ints,
    pairs: Floats,
    m: Floats,
    u: Floats,
    p: float,
    most_steps: int,
    tolerance: float,
    smallest: float,
) -> tuple[float, int, bool]:
    """Run EM in place on m and u from a start; return p, the steps taken, and whether it came to rest.

    The same as `kernels.em.climb`, to the bit, which does what is left after the first steps.
    """
    first_steps = min(FIRST_STEPS, most_steps) if len(patterns) * len(m) <= MOST_CELLS else 0
    agrees = _agrees(patterns, len(m))
    classes = np.array([[p, *m], [1.0 - p, *u]])
    done, moved = 0, np.inf
    while done < first_steps and moved > tolerance:
        moved, done = _step(agrees, pairs, classes, smallest), done + 1
    p, m[:], u[:] = float(classes[0, 0]), classes[0, 1:], classes[1, 1:]
    if moved <= tolerance or done == most_steps:
        return p, done, moved <= tolerance
    from ...kernels import em

    p, steps, rests = em.climb(patterns, pairs, m, u, p, most_steps - done, tolerance, smallest)
    return p, done + steps, rests


def _agrees(patterns: Ints, fields: int) -> Bools:
    """Return (1 + fields) x patterns: whether the field agrees; the first row is that a pair is a pair."""
    ones = np.ones((1, len(patterns)), bool)
    return np.concatenate([ones, patterns >> np.arange(fields)[:, None] & 1 == 1])


def _step(agrees: Bools, pairs: Floats, classes: Floats, smallest: float) -> float:
    """Move the two classes (share and chances of agreement of each) by one step, and return the largest move.

    Products and sums go from the first to the last, as in a loop.
    """
    chance = np.where(agrees, classes[:, :, None], 1.0 - classes[:, :, None])
    first, second = np.multiply.reduce(chance, axis=1)
    mine = pairs * (first / (first + second))
    sums = np.add.accumulate(agrees * np.array([mine, pairs - mine])[:, None], axis=2)[:, :, -1]
    total = pairs.sum()
    sizes = np.array([[sums[0, 0]], [total - sums[0, 0]]])
    new = np.divide(sums, sizes, out=np.full(sums.shape, 0.5), where=sizes > 0.0)
    new[0, 0] = sums[0, 0] / total
    new = np.clip(new, smallest, 1.0 - smallest)
    new[1, 0] = 1.0 - new[0, 0]
    moves = np.abs(new - classes)
    moves[1, 0] = 0.0
    classes[:] = new
    return float(moves.max())
