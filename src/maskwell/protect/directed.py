"""`swap`: Winkler's directed swapping. Correctly linked records exchange values with others like them.

Where we differ from Moore's description: a record moves at most once (his software swaps mutual second-bests back), a
partner that the intruder would claim as well is passed over (such a swap changes nothing), coded and missing values
move as they are, and the number of swaps is found by attacking again instead of being trusted.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..attacks.risk import Risk
from ..attacks.running import attack_by
from ..card import Swapped
from ..errors import BadPlan, MaskwellWarning
from ..keystream import Key
from ..masking import Masking, Release, Swapping
from ..masking.results import Integers
from ..masking.swapping import BOTH_TELL, Standing, Tried, exchange
from ..tolerances import SWAPPED_TO, SwapShare
from .effects import Domain, asked_domains, covariances, domain_means
from .reach import Reach, reach_of
from .walk import Walk, walk_along


def swap(
    masking: Masking,
    attack: Any,
    tolerance: Any,
    *,
    domains: Sequence[Domain] | str | None = None,
    key: Key | None = None,
) -> Masking:
    """Exchange records that an intruder links correctly until he links no more than tolerated.

    In an order that the key decides, each correctly linked record exchanges the columns that the intruder compares,
    values and statuses together, with the most similar record of its block that he would not claim for it; no record
    moves twice. The result has the fewest swaps along that order that meet the tolerance (one less does not, by
    attacks made again on the exchanged file, ties shared), or with a `SwapShare` so many. Where even all of them do not
    meet it, the result has all, and a warning says so. Its `swapping` tells what was done; it stays inside.

    Columns masked together, and totals with their parts, move together. Means and covariances among the columns
    that move are exactly kept. Covariances with others and means of sub-domains are not: `swapping` has both, the
    latter for `domains` (columns, or tuples of columns to be crossed; the schema's block columns that are not matched
    on). A masking made elsewhere has no key: give one to order the swaps.
    """
    _check(masking, tolerance)
    if getattr(attack, "targets", None) is not None:
        raise BadPlan(
            "swapping against a sample of the targets protects these alone, and the same sample would then find "
            "nothing: leave targets out of the attack that is swapped against"
        )
    order_key = _key(masking, key)
    risk, guess, marks, _ = attack_by(attack, masking)
    reach = reach_of(masking, attack, risk.fields)
    wanted = asked_domains(domains, masking.masked, reach)
    walk = walk_along(masking, guess, marks, reach.blocks, order_key)
    job = _Job(masking, attack, tolerance, risk, reach, walk, order_key)
    trial, trace = _found(job)
    swapping = _recorded(job, trial, trace, wanted)
    if not swapping.met:
        warnings.warn(_unmet(swapping), MaskwellWarning, stacklevel=2)
    notes = (*masking.notes, *_notes(swapping))
    return replace(trial.masking, swapping=swapping, notes=notes)


def _check(masking: Any, tolerance: Any) -> None:
    if not isinstance(masking, Masking):
        raise BadPlan(
            f"swap needs a Masking, not a {type(masking).__name__}: only the steward knows the links"
        )
    if not isinstance(tolerance, SWAPPED_TO):
        raise BadPlan(
            f"a {type(tolerance).__name__} is no tolerance: take MaxRate(0.15), Ratio(2.0) or SwapShare(0.1)"
        )
    if masking.card.swapped is not None:
        raise BadPlan(
            "records of this masking were exchanged already: swap the masking as it was before that"
        )


def _key(masking: Masking, key: Key | None) -> Key:
    if masking.key is not None:
        if key is not None and key != masking.key:
            raise BadPlan("this masking has a key of its own, which orders its swaps: leave key out")
        return masking.key
    if key is None:
        raise BadPlan(
            "this masking was made elsewhere and has no key to order the swaps: give key=Key.from_os(), "
            "or Key.from_seed(1) for a study"
        )
    return key


@dataclass(frozen=True, slots=True)
class _Trial:
    """A masking with so many swaps, and how the intruder fares on it."""

    swaps: int
    masking: Masking
    standing: Standing
    met: bool


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be swapped against whom; `risk` is his before any swap."""

    masking: Masking
    attack: Any
    tolerance: Any
    risk: Risk
    reach: Reach
    walk: Walk
    key: Key

    @property
    def needed(self) -> int:
        """How many swaps it takes if each turns one link."""
        if isinstance(self.tolerance, SwapShare):
            return self.tolerance.swaps(self.walk.at_risk)
        risk = self.risk
        return int(self.tolerance.needed(risk.expected_correct, risk.expected_incorrect, risk.targets))

    @property
    def likely(self) -> int:
        """How many swaps it takes if each takes the links of both its records and the intruder finds nothing new."""
        claims, targets = self.risk.claims, self.risk.targets
        for swaps, less in enumerate(np.cumsum(self.walk.relief), start=1):
            correct = max(self.risk.expected_correct - less, 0.0)
            if self.tolerance.met(correct, claims - correct, targets):
                return swaps
        return len(self.walk.pairs)

    def tried(self, swaps: int) -> _Trial:
        """Make so many swaps along the walk, and attack again."""
        masking = self._exchanged(self.walk.pairs[:swaps])
        return self.judged(swaps, masking, attack_by(self.attack, masking)[0])

    def judged(self, swaps: int, masking: Masking, risk: Risk) -> _Trial:
        """Hold what the intruder achieves against the tolerance."""
        if isinstance(self.tolerance, SwapShare):
            met = swaps >= self.needed or (swaps == len(self.walk.pairs) and not self.walk.stuck)
        else:
            met = self.tolerance.met(risk.expected_correct, risk.expected_incorrect, risk.targets)
        return _Trial(swaps, masking, _standing(risk), met)

    def _exchanged(self, pairs: Integers) -> Masking:
        """Return the masking as it leaves with these pairs exchanged."""
        held, columns = self.masking, self.reach.columns
        share = float(f"{2 * len(pairs) / len(held.order):.2g}")
        seeded = held.card.seeded or self.key.seeded
        swapped = Swapped(share, columns, self.reach.blocks)
        card = replace(held.card, swapped=swapped, seeded=seeded, data_sha256="")
        masked = exchange(held.masked, columns, pairs)
        if held.given is None:
            return replace(held, masked=masked, card=card)
        release, order = held.given
        if held.key is not None:  # read back from disk: it leaves anew, in the format in which it left
            return replace(held, masked=replace(masked, source=release.table.source), card=card, given=None)
        place = np.full(len(held.truth), -1, np.int64)
        place[order] = np.arange(len(order))
        table = exchange(release.table, columns, place[pairs])
        return replace(held, masked=masked, card=card, given=(Release(table, card), order))


def _standing(risk: Risk) -> Standing:
    return Standing(risk.targets, risk.claims, risk.correct, risk.expected_correct)


def _found(job: _Job) -> tuple[_Trial, tuple[Tried, ...]]:
    """Return the trial to end with, and the trace of all that were made."""
    most, trace = len(job.walk.pairs), list[Tried]()

    def noted(trial: _Trial) -> _Trial:
        now = trial.standing
        trace.append(Tried(trial.swaps, now.expected_correct, now.expected_incorrect, trial.met))
        return trial

    trial = noted(job.judged(0, job.masking, job.risk))
    if not trial.met and most:
        if isinstance(job.tolerance, SwapShare):
            trial = noted(job.tried(min(job.needed, most)))
        else:
            trial = fewest(lambda swaps: noted(job.tried(swaps)), most, job.likely)
    return trial, tuple(trace)


def fewest(tried: Callable[[int], Any], most: int, hint: int) -> Any:
    """Return a trial that is met where one swap less is not; the trial of `most` swaps where none is.

    No swap at all is known not to be enough. From the hint on, the search goes in steps that double, then by halves.
    """
    low, high, step = 0, min(max(hint, 1), most), 1
    best = tried(high)
    while not best.met and high < most:
        low, high, step = high, min(high + step, most), 2 * step
        best = tried(high)
    step = 1
    while best.met and high - low > 1:
        middle = max((low + high) // 2, high - step)
        trial, step = tried(middle), 2 * step
        if trial.met:
            high, best = middle, trial
        else:
            low = middle
    return best


def _recorded(
    job: _Job, trial: _Trial, trace: tuple[Tried, ...], domains: Sequence[tuple[str, ...]]
) -> Swapping:
    """Write down what was done, who was passed over on the way, and what it cost."""
    masking, reach, walk = job.masking, job.reach, job.walk
    tables = (masking.masked, trial.masking.masked, masking.kept)
    everybody = trial.swaps == len(walk.pairs)
    return Swapping(
        attack=job.attack.to_dict(),
        tolerance=job.tolerance,
        columns=reach.columns,
        fields=reach.fields,
        blocks=reach.blocks,
        released=len(masking.order),
        at_risk=walk.at_risk,
        needed=job.needed,
        met=trial.met,
        before=_standing(job.risk),
        after=trial.standing,
        pairs=walk.pairs[: trial.swaps],
        stuck=tuple(one for one in walk.stuck if everybody or one.after < trial.swaps),
        trace=trace,
        covariances=covariances(*tables, reach.columns),
        domains=domain_means(*tables, reach.columns, domains),
    )


def _unmet(swapping: Swapping) -> str:
    after, stuck = swapping.after, len(swapping.stuck)
    who = "1 record at risk has" if stuck == 1 else f"{stuck:,} records at risk have"
    return (
        f"{swapping.tolerance} is not reached: after all {swapping.swaps:,} possible swaps "
        f"{after.expected_correct:,.1f} of {after.targets:,} targets are linked correctly, and {who} no partner; "
        "mask with more noise first"
    )


def _notes(swapping: Swapping) -> list[str]:
    """Say what a steward should know about an exchange."""
    if not swapping.swaps:
        return []
    before, after = swapping.before, swapping.after
    notes = [
        swapping.said(),
        f"swapped against {swapping.attack.get('attack', 'an attack')} ({swapping.tolerance}): "
        f"{before.expected_correct:,.1f} correct links before, {after.expected_correct:,.1f} after, ties shared",
        BOTH_TELL,
    ]
    if swapping.widened:
        notes.append(
            f"exchanged beside the compared fields, because masked together or adding up: {', '.join(swapping.widened)}"
        )
    if swapping.stuck:
        why = ", ".join(f"{count:,} {reason}" for reason, count in swapping.reasons.items())
        notes.append(f"could not be exchanged, though linked correctly: {why}")
    return notes
