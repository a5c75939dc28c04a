"""The true values behind those of an intruder whose own are off: p(z | y), by the law of true values that is held.

The intruder sees y, off by an error of density g(y | x). With p(x) the law of true values, x given y has the density
g(y | x) p(x) / p(y), and p(z | y) is the law averaged over it. f(z) is the law averaged over p(x) itself: both must be
of one p(x), or the intruder's probabilities do not come true (own derivation: Bayes' theorem with y for x; compare
Carroll and others 2006, chapter 8). Chosen by `posterior` with an `OwnError`: the steward's records for
marginal="truth", `density_prior` for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ....errors import BadPlan
from ....kernels.log_sums import log_sum
from ....masking import Release
from ....notes import Note
from ....table import Floats, Table
from ...joint_codes import block_codes, joint_codes
from ...pair_density import LawTerm, Same, summed_logs
from ...protocol import Bools, IntruderKnowledge, Ints
from ..candidates import CandidateBlocks, clear_fields
from ..law_kernels import LawReading
from ..likelihood import PairLikelihood
from ..posterior_odds import Odds, log_absent, log_f, swapped_log_density
from .error_law import OwnError, own_terms

KEPT_PAIRS = 32_000_000  # pairs of a known and a true record, of one block or of small ones, that are kept
PAIRS_AT_ONCE = 2_000_000  # places of a product of matrices that are held in one go
VANISHED = 1e-290  # sums of products below this are bounded from below instead
FEW = 1.5  # true records in question: with fewer the error plays hardly any part
ALONE = 1.01  # true records in question: with fewer it plays none


def erring_odds(
    plan: Any,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    reading: LawReading,
) -> Odds:
    """Prepare the scores of an intruder whose own values are off."""
    error: OwnError = plan.error
    if error.population is not None and not callable(plan.marginal):
        raise BadPlan(
            "population goes with an f(z) of your own: give marginal a function too, or leave it out"
        )
    if plan.kernel == "coherent" and plan.marginal == "truth":
        return _by_truth(error, known, release, fields, ground, reading)

    logs = log_f(plan, release, fields, ground.matching), log_absent(known, release, fields, ground, reading)
    moved = swapped_log_density(release, fields, reading)
    odds = Odds.by_given(ground, known, release, fields, reading.exact, (*logs, moved))
    targets: Any
    if plan.kernel == "coherent" and (plan.marginal == "gaussian" or error.population is not None):
        from .density_prior import density_likelihood

        targets = density_likelihood(error, known, release, fields)
    else:
        targets = _flat(known, release, fields, reading)
    return replace(odds, targets=targets)


def error_notes(plan: Any, odds: Any) -> list[Note]:
    """Say what the intruder takes for the law of the true values behind his own."""
    targets = getattr(odds, "targets", None)
    if plan.error is None:
        return []
    if isinstance(targets, Among):
        return targets.notes()
    rough = [Note("attacks.too_few_nodes")] if getattr(targets, "is_rough", False) else []
    if plan.kernel == "coherent" and plan.marginal == "gaussian":
        flat = tuple(getattr(targets, "flat", ()))
        unfitted = [Note("attacks.no_normal_law", {"columns": flat})] if flat else []
        return [Note("attacks.true_values_normal"), *unfitted, *rough]
    if plan.kernel == "coherent" and plan.error.population is not None:
        return [Note("attacks.true_values_given"), *rough]
    return [Note("attacks.true_values_flat")]


def _flat(
    known: IntruderKnowledge, release: Release, fields: Sequence[str], reading: LawReading
) -> PairLikelihood:
    """Return factors for which any true value is as likely as any other."""
    pairing = PairLikelihood.of(release.card, fields, release.table, known.targets, reading.erring)
    return pairing.with_terms(reading.in_clear(clear_fields(release, fields), release.table, known.targets))


def _by_truth(
    error: OwnError,
    known: IntruderKnowledge,
    release: Release,
    fields: Sequence[str],
    ground: CandidateBlocks,
    reading: LawReading,
) -> Odds:
    """Weigh the steward's true records: p(x) is their law, in p(z | y) as in f(z), the target's own among them.

    To leave it out of f(z) would find him by elimination; to leave it out of p(x) would forget him. As for values that
    are known exactly, who asks whether z is his or another's then takes p(z | y) out of f(z) (see `against_others`).
    """
    odds = Odds.by_truth(ground, known, release, fields, (reading.exact, reading.exact))
    assert odds.truth is not None
    loose = [name for name in clear_fields(release, fields) if name in error.columns]
    truth, shared = odds.truth, odds.shared
    if loose:
        truth, shared = truth.with_terms([Same.of(loose, release.table, known.population)]), {}

    def flat() -> PairLikelihood:
        share: list[LawTerm] = [CellShare.of(loose, release.table, ground.matching)] if loose else []
        return _flat(known, release, fields, reading).with_terms(share)

    own, members = own_terms(error, fields, known.targets, known.population), ground.true_members()
    _check_sizes(ground, members)
    targets: Any = Among(truth, own, ground.blocks.known, members, flat)
    return replace(odds, truth=truth, shared=shared, numbers=None, targets=targets)


def _check_sizes(ground: CandidateBlocks, members: dict[int, Ints]) -> None:
    """Refuse blocks in which there are too many pairs of a target and a true record."""
    blocks, counts = np.unique(ground.blocks.known, return_counts=True)
    for block, count in zip(blocks.tolist(), counts.tolist(), strict=True):
        if count * len(members.get(block, ())) > KEPT_PAIRS:
            raise BadPlan(
                f"{count:,} targets whose values are off, in a block of {len(members[block]):,} true records, are too "
                "many to weigh against these: attack a sample of targets, or take marginal 'gaussian'"
            )


@dataclass(frozen=True, slots=True)
class CellShare:
    """How common the values of a released record are in its block."""

    log_share: Floats

    @classmethod
    def of(cls, columns: Sequence[str], released: Table, blocks: Ints) -> CellShare:
        """Count the values of some columns within blocks."""
        codes = block_codes(released, released, columns)[0]
        both = joint_codes([(part, int(part.max(initial=0)) + 1) for part in (blocks, codes)], len(released))
        return cls(np.log(np.bincount(both)[both] / np.bincount(blocks)[blocks]))

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the share."""
        return np.asarray(self.log_share[z])


@dataclass(frozen=True, slots=True)
class Shares:
    """Known x true records: the probability that one is behind the other; `likeliest` is the first of each row.

    Rows whose known record fits no true one are `lost`.
    """

    chance: Floats
    likeliest: Ints
    lost: Bools

    @classmethod
    def of(cls, logs: Floats) -> Shares:
        """Make probabilities of logs of densities."""
        total = log_sum(logs, axis=1)
        lost = np.isneginf(total)
        with np.errstate(under="ignore"):
            chance = np.exp(logs - np.where(lost, 0.0, total)[:, None])
        return cls(chance, logs.argmax(axis=1) if logs.shape[1] else np.zeros(len(logs), np.int64), lost)

    def count(self) -> Floats:
        """Return how many equally likely true records each row is worth, 0 where it has none."""
        return np.where(self.lost, 0.0, 1.0 / np.maximum((self.chance**2).sum(axis=1), 1e-300))

    def averaged(self, forward: Floats, row: Ints, column: Ints) -> Floats:
        """Return the log of chance @ exp(forward) at listed places; where it vanishes, a lower bound of it."""
        top = forward.max(axis=0, initial=-np.inf)
        shift = np.where(np.isfinite(top), top, 0.0)
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            scaled = np.exp(forward - shift)
            if len(row) * 4 >= len(self.chance) * forward.shape[1]:
                product = (self.chance @ scaled)[row, column]
            else:
                product = _at_places(self.chance, scaled, row, column)
            out = np.log(product) + shift[column]
            low = np.flatnonzero(product < VANISHED)
            near, best = self.likeliest[row[low]], forward.argmax(axis=0)[column[low]]
            bounds = [np.log(self.chance[row[low], at]) + forward[at, column[low]] for at in (near, best)]
        out[low] = np.maximum(*bounds)
        return np.asarray(np.where(self.lost[row], np.nan, out))


def _at_places(left: Floats, right: Floats, row: Ints, column: Ints) -> Floats:
    """Return some places of a product of matrices."""
    out = np.empty(len(row))
    for run in np.array_split(np.arange(len(row)), -(-len(row) * left.shape[1] // PAIRS_AT_ONCE)):
        out[run] = np.einsum("ij,ji->i", left[row[run]], right[:, column[run]])
    return out


@dataclass(frozen=True, slots=True)
class Among:
    """log p(z | y) where x is one of the true records of the block, the likelier the better y fits it.

    `own` are the factors of g(y | x). Records that fit no true one are asked by `flat`.
    """

    truth: PairLikelihood
    own: list[LawTerm]
    blocks: Ints
    true: dict[int, Ints]
    flat: Callable[[], PairLikelihood]
    kept: dict[bytes, Shares] = field(default_factory=dict)
    counts: dict[int, float] = field(default_factory=dict)
    flats: list[PairLikelihood] = field(default_factory=list)

    def logs(self, z: Ints, x: Ints, log_moved: Floats) -> Floats:
        """Return log p(z | y) of listed pairs; `log_moved` has the block's density f(moved) of each z."""
        out = np.full(len(z), np.nan)
        for pairs, true in self._by_block(x):
            if len(true):
                out[pairs] = self._of_block(z[pairs], x[pairs], true, log_moved)
        lost = np.flatnonzero(np.isnan(out))
        if len(lost):
            if not self.flats:
                self.flats.append(self.flat())
            out[lost] = self.flats[0].logs(z[lost], x[lost], log_moved)
        return out

    def _by_block(self, x: Ints) -> Iterator[tuple[Ints, Ints]]:
        """Yield the places of the pairs of each block, with its true records."""
        codes = self.blocks[x]
        order = np.argsort(codes, kind="stable")
        for pairs in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            if len(pairs):
                yield pairs, self.true.get(int(codes[pairs[0]]), np.empty(0, np.int64))

    def _of_block(self, z: Ints, x: Ints, true: Ints, log_moved: Floats) -> Floats:
        """Sum over the true records, for pairs of one block; NaN where a known record fits none of them."""
        (known, row), (released, column) = (np.unique(side, return_inverse=True) for side in (x, z))
        out, length = np.empty(len(z)), max(1, PAIRS_AT_ONCE // len(true))
        for left in range(0, len(released), length):
            run = released[left : left + length]
            pairs = np.tile(run, len(true)), np.repeat(true, len(run))
            forward = self.truth.logs(*pairs, log_moved).reshape(len(true), len(run))
            within = (column >= left) & (column < left + length)
            for top in range(0, len(known), length):
                here = np.flatnonzero(within & (row >= top) & (row < top + length))
                if len(here):
                    shares = self._shares(known[top : top + length], true)
                    out[here] = shares.averaged(forward, row[here] - top, column[here] - left)
        return out

    def _shares(self, known: Ints, true: Ints) -> Shares:
        key = known.tobytes() + b"|" + true.tobytes()
        if key not in self.kept:
            y, x = np.repeat(known, len(true)), np.tile(true, len(known))
            shares = Shares.of(summed_logs(self.own, y, x).reshape(len(known), len(true)))
            self.counts.update(zip(known.tolist(), shares.count().tolist(), strict=True))
            if sum(one.chance.size for one in self.kept.values()) + shares.chance.size > KEPT_PAIRS:
                self.kept.clear()
            self.kept[key] = shares
        return self.kept[key]

    def _alone(self, count: float) -> Note:
        """Say that hardly more than one true record fits what the intruder knows, and by what."""
        exact = any(isinstance(term, Same) for term in self.own)
        return Note("attacks.error_plays_no_part", {"hardly": count >= ALONE, "exact_columns": exact})

    def notes(self) -> list[Note]:
        """Say how many true records the intruder's values leave, and what that means."""
        found = np.array(list(self.counts.values()))
        lost, count = (
            int((found == 0).sum()),
            float(np.median(found[found > 0])) if (found > 0).any() else 0.0,
        )
        said = [Note("attacks.unknown_to_truth", {"count": lost})] if lost else []
        if count:
            weighed = Note("attacks.weighed_by_truth", {"records": count})
            said.insert(0, self._alone(count) if count < FEW else weighed)
        return said
