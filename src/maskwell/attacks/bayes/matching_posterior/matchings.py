"""Who has which record, all known units at once, when the law is told: exact where few are matched, else sampled.

P(unit a has record i) is proportional to the sum over matchings with that pair of prod f(z|x) / f(z): a ratio of
permanents (Jerrum, Sinclair and Vigoda 2004). Pieces that are small are counted (`components`), others drawn
(`mcmc`) until R-hat and ESS are as `Sampling` asks (Vehtari and others 2021); draws are smoothed by
`kernels.rao_blackwell` and shrunk by `belief_propagation`. Used by `posterior` for every block of an intruder with
helpers who holds the card, and by `parameter_nodes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import inf
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from ....errors import BadInput, BadPlan, nearest, raise_all
from ....table import Floats
from ....tolerances import is_real
from ...protocol import Bools
from .belief_propagation import (
    FLAT,
    PairWeights,
    an_exchange_away,
    choices_of,
    message_chances,
    shrinkage_estimate,
)
from .components import Piece, pieces_of
from .mcmc import ChainDiagnostics, MatchingChains, log_factors, rhat_and_ess

__all__ = ["Marginals", "Sampling", "marginals", "rhat_and_ess", "sampling_from_dict"]

MOST_CELLS = 10_000_000  # pairs of one block that can be matched at all
MATCHED_CELLS = 4_000_000  # pairs of all blocks beyond which the ceiling is bounded: chains take a minute
# Draws beyond what seems to be needed, and at most so many times as before
ENOUGH_MORE, MUCH_MORE = 1.3, 16.0


@dataclass(frozen=True, slots=True)
class Sampling:
    """How matchings are sampled where there are too many to be counted.

    So many `chains` make `draws` draws each, then twice as many or as many as seem to be needed, and so on to `most`,
    until R-hat is at most `rhat` and the effective sample size at least `ess` for all that is watched. What then still
    does not hold is said.
    """

    chains: int = 4
    draws: int = 1000
    most: int = 64_000
    rhat: float = 1.01
    ess: float = 400.0

    def __post_init__(self) -> None:
        least = {"chains": 2, "draws": 100, "most": 100}
        wrong = [
            f"{name} of Sampling must be a whole number of at least {number}, not {getattr(self, name)!r}"
            for name, number in least.items()
            if not _is_whole(getattr(self, name)) or getattr(self, name) < number
        ]
        if not wrong and self.most < self.draws:
            wrong.append("most of Sampling must be at least its draws")
        if not (is_real(self.rhat) and self.rhat > 1):
            wrong.append(f"rhat of Sampling must be a number above 1, not {self.rhat!r}")
        if not (is_real(self.ess) and 0 < self.ess < inf):
            wrong.append(f"ess of Sampling must be a number above 0, not {self.ess!r}")
        raise_all(wrong, BadPlan)

    def more(self, draws: int, ess: float) -> int:
        """Return how many draws to try next, after so many had so small an effective sample size."""
        times = min(max(ENOUGH_MORE * self.ess / max(ess, 1.0), 2.0), MUCH_MORE)
        return min(int(draws * times), self.most)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, defaults left out."""
        return {
            item.name: value for item in fields(self) if (value := getattr(self, item.name)) != item.default
        }


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def sampling_from_dict(data: Mapping[str, Any]) -> Sampling:
    """Return the plan that was written as plain data."""
    names = [item.name for item in fields(Sampling)]
    raise_all([f"Sampling has no option {n!r}{nearest(n, names)}" for n in data if n not in names], BadPlan)
    return Sampling(**data)


@dataclass(frozen=True, slots=True)
class Marginals:
    """The probability of each pair of a known unit with a released record, and of each unit's not being released.

    `exact`: nothing was sampled. Else `rhat` is the largest and `ess` the smallest of all that was watched (log weight,
    number of pairs, whether each unit has the record that it has most often), `error` the largest standard error of
    those most frequent records' probabilities, `draws` how many each chain made in the last round, and `converged`
    whether all was as asked; `decided` tells of each unit whether its first record is ahead of the second by more than
    the luck of draws (nothing: none was drawn). `visits` has the chances as chains visited records (none last), without
    any approximation, where some were drawn.
    """

    probability: Floats
    unreleased: Floats
    exact: bool = True
    rhat: float = 1.0
    ess: float = inf
    error: float = 0.0
    draws: int = 0
    converged: bool = True
    decided: Bools | None = None
    visits: Floats | None = None

    @property
    def drawn(self) -> Floats:
        """The chances of records, none last: as drawn, or exact."""
        return np.column_stack([self.probability, self.unreleased]) if self.visits is None else self.visits


def marginals(logs: Floats, units: int, rng: np.random.Generator, sampling: Sampling) -> Marginals:
    """Return what one who knows K units of a block believes of its released records: each has one unit, each unit one.

    `logs` are log f(z|x) - log f(z), K x n; `units` is N, how many the block has, known or not, released or not. Every
    one-to-one assignment of the records to units is as likely as any other before the records are seen.
    """
    logs = np.ascontiguousarray(logs, dtype=np.float64)
    _check(logs, units)
    out = np.zeros((logs.shape[0], logs.shape[1] + 1))
    out[:, -1] = 1.0
    decided, visits = np.ones(len(logs), bool), out.copy()
    found = []
    for piece in pieces_of(logs, units):
        one = Marginals(*piece.chances()) if piece.is_small else _sampled_marginals(piece, rng, sampling)
        out[np.ix_(piece.known, piece.released)], out[piece.known, -1] = one.probability, one.unreleased
        visits[np.ix_(piece.known, piece.released)] = one.drawn[:, :-1]
        visits[piece.known, -1] = one.drawn[:, -1]
        if one.decided is not None:
            decided[piece.known] = one.decided
        found.append(one)
    return _block_marginals(out, found, decided, visits)


def _block_marginals(out: Floats, found: Sequence[Marginals], decided: Bools, visits: Floats) -> Marginals:
    """Return the probabilities of a whole block, with the worst that is said of its pieces."""
    return Marginals(
        np.ascontiguousarray(out[:, :-1]),
        out[:, -1].copy(),
        all(one.exact for one in found),
        max((one.rhat for one in found), default=1.0),
        min((one.ess for one in found), default=inf),
        max((one.error for one in found), default=0.0),
        max((one.draws for one in found), default=0),
        all(one.converged for one in found),
        decided,
        None if all(one.exact for one in found) else visits,
    )


def _sampled_marginals(piece: Piece, rng: np.random.Generator, sampling: Sampling) -> Marginals:
    """Draw matchings, ever more of them, until the chains agree; each round forgets those before it."""
    factors = log_factors(piece.logs, piece.units)
    chains, draws = MatchingChains.of(piece.logs, piece.units, factors, rng, sampling.chains), sampling.draws
    chains.run(max(draws // 2, 1))
    while True:
        counts, kept = chains.run(draws)
        judged = ChainDiagnostics.of(piece, counts, kept, chains.starts)
        converged = judged.meets(sampling.rhat, sampling.ess)
        if converged or 2 * draws > sampling.most:
            break
        draws = sampling.more(draws, judged.ess)
    guessed, _ = message_chances(piece.logs, piece.units, factors)
    found = rao_blackwell_weights(piece.logs, piece.units, kept, guessed)
    share, said = found.chances, (judged.rhat, judged.ess, judged.error, draws, converged)
    visits = counts / counts.sum(axis=1, keepdims=True)
    return Marginals(share[:, :-1], share[:, -1], False, *said, found.decided, visits)


def _check(logs: Floats, units: int) -> None:
    """Refuse what cannot be matched."""
    known, released = logs.shape
    if np.isnan(logs).any() or np.isposinf(logs).any():
        raise BadInput("densities of pairs must be finite or zero: are noise and values on a sensible scale?")
    if units < max(known, released):
        raise BadInput(
            f"a block of {units:,} units has {known:,} known ones and {released:,} released records: "
            "are the known records and the release of the same population?"
        )
    if logs.size > MOST_CELLS:
        raise BadPlan(
            f"{known:,} known units with {released:,} released records in one block are too many to match at once "
            f"({logs.size:,} pairs, where {MOST_CELLS:,} can be): add a matching block, or give fewer helpers"
        )


# Probabilities from draws of matchings: what units would take next, or what they had, whichever varies less.


MOST_DRAWS = 250  # of each chain that are smoothed: where that helps at all, few do
MOST_STEPS = 100_000_000  # records looked at
LEAST = 0.003  # a record this much less likely than the likeliest is no choice of a unit's next step,
RARE = 1e-6  # but where few records come into question all that were visited are, and all that are an exchange away


def rao_blackwell_weights(
    logs: Floats, units: int, kept: npt.NDArray[np.int32], guessed: Floats
) -> PairWeights:
    """Return the probabilities of each unit's record, none last, from matchings kept (chains x draws x units).

    Where a posterior is flat the most frequent record is that of luck, and the chances of the next step, averaged, tell
    near ties apart; where it is sharp steps hardly move and counts are better. The chains decide. What they cannot tell
    apart even so is left to an approximation (`guessed`).
    """
    from ....kernels.rao_blackwell import smooth

    chains, draws, known = kept.shape
    visits = _visits(kept, logs.shape[1])
    mean = visits.mean(axis=0)
    near = np.any([an_exchange_away(logs, chain[-1].astype(np.int64), RARE) for chain in kept], axis=0)
    near |= mean[:, :-1] > 0
    near &= ((mean**2).sum(axis=1) > 1.0 / FLAT)[:, None]
    choices = choices_of(np.maximum(guessed, mean), near, LEAST)
    most = min(max(MOST_STEPS // (chains * max(len(choices[0]), 1)), 1), MOST_DRAWS)
    thin = np.ascontiguousarray(kept[:, :: -(-draws // most)])
    steps = np.zeros((chains, known, logs.shape[1] + 1))
    for chain, into in zip(thin, steps, strict=True):
        smooth(logs, chain, units - known - logs.shape[1], choices, into)
    steps /= thin.shape[1]
    stays = _spread(visits) == 0.0  # no chain ever moved: what its next step might be says more
    better = stays | (_spread(steps) < _spread(visits))
    np.copyto(visits, steps, where=better[:, None])
    return shrinkage_estimate(visits, guessed)


def _visits(kept: npt.NDArray[np.int32], released: int) -> Floats:
    """Return for each chain in what share of its draws each unit had each record."""
    _, draws, known = kept.shape
    cells = np.arange(known) * (released + 1) + np.where(kept < 0, released, kept)
    counts = [np.bincount(chain.ravel(), minlength=known * (released + 1)) for chain in cells]
    return np.asarray(np.reshape(counts, (-1, known, released + 1)) / draws)


def _spread(shares: Floats) -> Floats:
    """Return how much chains differ, for each unit."""
    return np.asarray(shares.var(axis=0).sum(axis=1))
