"""`swap`: Winkler's directed swapping. Correctly linked records exchange values with others like them.

Moore (1996), section IX and appendix B: a linked record exchanges the compared values with the most similar record of
its block, for r records. Where we differ from this description: a record moves at most once (his software swaps mutual
second-bests back), a partner that the intruder would claim as well is passed over (such a swap changes nothing), coded
and missing values move as they are, and the number of swaps is found by attacking again instead of being trusted. He
counts who finds the record, which is what was not exchanged; we count also who finds the row that now carries a
target's values, unless the steward says why that does not matter (`exempt_values`). Called by the release job where a
plan swaps, and by `strategy`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks.attack_run import attack_by
from ..attacks.donors import EXCHANGED, REST, found_by_part
from ..attacks.protocol import Attack, check_attack
from ..attacks.risk import Risk
from ..card import SwapParameters
from ..errors import BadPlan, HopelessSwap, MaskwellWarning, raise_all
from ..keys import Key
from ..laws.unknowns import of_columns
from ..masking import Masking, Release, Swapping
from ..masking.results import Integers
from ..masking.swap_record import BOTH_TELL, Exchange, SwapAttempt, SwapStanding, exchange
from ..notes import Note
from ..tolerances import SWAPPED_TO, SwapShare
from .reach import Reach, reach_of
from .swap_effects import Domain, asked_domains, covariances, domain_means
from .swap_walk import SwapWalk, walk_along

if TYPE_CHECKING:
    from ..tolerances import SwapAim


def swap(
    masking: Masking,
    attack: Attack,
    tolerance: SwapAim,
    *,
    columns: Sequence[str] | str | None = None,
    exempt_values: str | None = None,
    domains: Sequence[Domain] | str | None = None,
    key: Key | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Masking:
    """Exchange records that an intruder links correctly until he links no more than tolerated.

    In an order that the key decides, each correctly linked record exchanges the columns that the intruder compares (or
    `columns`, some of them), values and statuses together, with the most similar record of its block that he would not
    claim for it (where some columns are exchanged: with any such record); no record moves twice.

    A row then carries the exchanged values of one record and the rest of another. The tolerance is held against the
    larger of two rates: of targets whose record he finds (the row with the rest of their values), and of targets whose
    exchanged values he finds, each by his best guess. What he finds by the exchanged columns alone no swap changes:
    where that is too much already, `HopelessSwap` says so. `exempt_values` is a reason, which goes on record, not to
    count it: allowed where the intruder knows every exchanged column anyway, none is sensitive, and the rest has a
    column that he does not know. Where nothing is left in the row, a swap would only rename rows and is refused.

    The result has the fewest swaps along that order that meet the tolerance (one less does not, by
    attacks made again on the exchanged file, ties shared), or with a `SwapShare` so many. Where even all of them do not
    meet it, the result has all, and a warning says so. Its `swapping` tells what was done; it stays inside.

    Columns whose noise is correlated, totals with their parts, and columns computed from others that move (classes,
    any function of columns whose values repeat, simple ones of others), move together. Means and covariances among the
    columns that move are exactly kept. Covariances with others and means of sub-domains are not: `swapping` has both,
    the latter for `domains` (columns, or tuples of columns to be crossed; the schema's block columns that are not
    matched on). A masking made elsewhere has no key: give one to order the swaps. `progress` hears after each attack
    how many are done, and how many there will be at most.
    """
    _check(masking, tolerance)
    if check_attack(attack).targets is not None:
        raise BadPlan(
            "swapping against a sample of the targets protects these alone, and the same sample would then find "
            "nothing: leave targets out of the attack that is swapped against"
        )
    order_key = _key(masking, key)
    risk, guess, marks, _ = attack_by(attack, masking)
    reach = reach_of(masking, attack, risk.fields, columns)
    _check_exempt(exempt_values, masking, reach)
    wanted = asked_domains(domains, masking.masked, reach)
    some = not set(reach.fields) <= set(reach.columns)
    walk = walk_along(masking, guess, marks, reach.blocks, order_key, rest=reach.rest, at_random=some)
    job = _Job(masking, attack, tolerance, risk, reach, walk, order_key, exempt_values)
    _check_hope(job)
    trial, trace = _final_trial(job, progress)
    swapping = _swapping_record(job, trial, trace, wanted)
    if not swapping.met:
        warnings.warn(_unmet(swapping), MaskwellWarning, stacklevel=2)
    notes = (*masking.notes, *_notes(swapping), *(_on_undecided(reach) if swapping.swaps else ()))
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


def _check_exempt(reason: str | None, masking: Masking, reach: Reach) -> None:
    """Refuse to leave the exchanged values out of account where finding them would tell the intruder something."""
    if reason is None:
        return
    problems = [] if str(reason).strip() else ["exempt_values needs a reason: it goes on record"]
    unknown = [name for name in reach.columns if name not in reach.fields]
    problems += [
        f"exempt_values: column {name!r} is exchanged and the intruder does not know it, so that it would tell him "
        "something: count both rates"
        for name in unknown
    ]
    sensitive = [name for name in reach.columns if "sensitive" in masking.truth.schema[name].roles]
    problems += [
        f"exempt_values: column {name!r} is sensitive and exchanged: leave it in the row, or count both rates"
        for name in sensitive
    ]
    if not set(reach.rest) - set(reach.fields):
        problems.append(
            "exempt_values: the intruder knows all that stays in the row, so that the exchanged values are what he "
            "is after: count both rates"
        )
    raise_all(problems, BadPlan)


def _check_hope(job: _Job) -> None:
    """Refuse what no exchange can reach: too many found by the columns that move alone, or by the rest alone."""
    if isinstance(job.tolerance, SwapShare) or job.judged(0, job.masking, job.risk).met:
        return
    moved, rest = ", ".join(job.reach.columns), ", ".join(job.reach.rest)
    sides = {} if job.exempt else {EXCHANGED: (moved, "exchange fewer columns, so that these tell less")}
    sides[REST] = rest, "exchange some of these columns as well"
    for by, (names, remedy) in sides.items():
        part = found_by_part(job.attack, job.masking, job.reach.columns, by)
        if part is None or job.tolerance.met(part.expected_correct, part.expected_incorrect, part.targets):
            continue
        raise HopelessSwap(
            f"by {names} alone {part.rate:.1%} of {part.targets:,} targets are found, which no exchange of {moved} "
            f"changes, and tolerated is {job.tolerance}: {remedy}, or give more noise"
            + (_on_exemption(job) if by == EXCHANGED else "")
        )


def _on_exemption(job: _Job) -> str:
    """Say that the exchanged values could be exempted, where they could."""
    try:
        _check_exempt("asked", job.masking, job.reach)
    except BadPlan:
        return ""
    return (
        "; or say in exempt_values why it does not matter that the values are found, which the intruder knows, where "
        f"{', '.join(sorted(set(job.reach.rest) - set(job.reach.fields)))} is another's"
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
    standing: SwapStanding
    met: bool
    his_record: SwapStanding
    his_values: SwapStanding


@dataclass(frozen=True, slots=True)
class _Job:
    """What is to be swapped against whom; `risk` is his before any swap."""

    masking: Masking
    attack: Attack
    tolerance: Any
    risk: Risk
    reach: Reach
    walk: SwapWalk
    key: Key
    exempt: str | None = None

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
            met = all(
                self.tolerance.met(one.expected_correct, one.expected_incorrect, one.targets)
                for one in risk.counted
            )
        sides = (_swap_standing(one or risk) for one in (risk.his_record, risk.his_values))
        return _Trial(swaps, masking, _swap_standing(risk), met, *sides)

    def _exchanged(self, pairs: Integers) -> Masking:
        """Return the masking as it leaves with these pairs exchanged."""
        held, columns = self.masking, self.reach.columns
        share = float(f"{2 * len(pairs) / len(held.order):.2g}")
        seeded = held.card.seeded or self.key.seeded
        swapped = SwapParameters(share, columns, self.reach.blocks)
        laws = tuple(part for law in held.card.laws for part in _split_law(law, columns))
        card = replace(held.card, laws=laws, swapped=swapped, seeded=seeded, data_sha256="")
        masked = exchange(held.masked, columns, pairs)
        moved = self.walk.moved(len(pairs)) / max(self.walk.at_risk, 1)
        held = replace(held, exchange=Exchange(columns, self.reach.blocks, pairs, self.exempt, moved))
        if held.given is None:
            return replace(held, masked=masked, card=card)
        release, order = held.given
        if held.key is not None:  # read back from disk: it leaves anew, in the format in which it left
            return replace(held, masked=replace(masked, source=release.table.source), card=card, given=None)
        place = np.full(len(held.truth), -1, np.int64)
        place[order] = np.arange(len(order))
        table = exchange(release.table, columns, place[pairs])
        return replace(held, masked=masked, card=card, given=(Release(table, card), order))


def _split_law(law: Any, columns: tuple[str, ...]) -> list[Any]:
    """Return a law as one of the columns that move and one of those that stay, where it speaks of both."""
    sides = [
        [j for j, name in enumerate(law.columns) if (name in columns) == moved] for moved in (True, False)
    ]
    return [of_columns(law, side) for side in sides] if all(sides) else [law]


def _swap_standing(risk: Risk) -> SwapStanding:
    return SwapStanding(risk.targets, risk.claims, risk.correct, risk.expected_correct)


def _final_trial(
    job: _Job, progress: Callable[[int, int], None] | None = None
) -> tuple[_Trial, tuple[SwapAttempt, ...]]:
    """Return the trial to end with, and the trace of all that were made."""
    most, trace = len(job.walk.pairs), list[SwapAttempt]()

    def told(left: int) -> None:
        if progress is not None:
            progress(len(trace), len(trace) + left)

    def noted(trial: _Trial) -> _Trial:
        now = trial.standing
        trace.append(SwapAttempt(trial.swaps, now.expected_correct, now.expected_incorrect, trial.met))
        return trial

    trial = noted(job.judged(0, job.masking, job.risk))
    if not trial.met and most:
        if isinstance(job.tolerance, SwapShare):
            trial = noted(job.tried(min(job.needed, most)))
        else:
            trial = fewest(lambda swaps: noted(job.tried(swaps)), most, job.likely, told)
    return trial, tuple(trace)


def fewest(
    tried: Callable[[int], Any], most: int, hint: int, told: Callable[[int], None] = lambda left: None
) -> Any:
    """Return a trial that is met where one swap less is not; the trial of `most` swaps where none is.

    No swap at all is known not to be enough. From the hint on, the search goes in steps that double, then by halves.
    Before each trial `told` hears how many are left at most, that one included.
    """
    low, high, step = 0, min(max(hint, 1), most), 1
    told(_steps(most - high) + _steps(max(high, most - high)))
    best = tried(high)
    while not best.met and high < most:
        low, high, step = high, min(high + step, most), 2 * step
        told(_steps((most - high) // step) + _steps(max(high - low, most - high)))
        best = tried(high)
    step = 1
    while best.met and high - low > 1:
        told(_steps(high - low))
        middle = max((low + high) // 2, high - step)
        trial, step = tried(middle), 2 * step
        if trial.met:
            high, best = middle, trial
        else:
            low = middle
    return best


def _steps(width: int) -> int:
    """Return how many trials search such a width at most: by doubling and by halves, after one at its end."""
    return 1 + 2 * width.bit_length()


def _swapping_record(
    job: _Job, trial: _Trial, trace: tuple[SwapAttempt, ...], domains: Sequence[tuple[str, ...]]
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
        before=_swap_standing(job.risk),
        after=trial.standing,
        his_record=trial.his_record,
        his_values=trial.his_values,
        rest=reach.rest,
        exempt=job.exempt,
        pairs=walk.pairs[: trial.swaps],
        stuck=tuple(one for one in walk.stuck if everybody or one.after < trial.swaps),
        trace=trace,
        covariances=covariances(*tables, reach.columns),
        domains=domain_means(*tables, reach.columns, domains),
        at_risk_moved=walk.moved(trial.swaps),
    )


def _unmet(swapping: Swapping) -> str:
    after, stuck = swapping.after, len(swapping.stuck)
    who = "1 record at risk has" if stuck == 1 else f"{stuck:,} records at risk have"
    return (
        f"{swapping.tolerance} is not reached: after all {swapping.swaps:,} possible swaps "
        f"{after.expected_correct:,.1f} of {after.targets:,} targets are linked correctly, and {who} no partner; "
        "mask with more noise first"
    )


def _on_undecided(reach: Reach) -> list[Note]:
    """Say of which columns in the rest it cannot be told that they are not computed from what was exchanged."""
    if not reach.undecided:
        return []
    figures = {"columns": tuple(reach.undecided), "sources": tuple(reach.unrepeated)}
    return [Note("masking.perhaps_computed", figures)]


def _notes(swapping: Swapping) -> list[Note]:
    """Say what a steward should know about an exchange."""
    if not swapping.swaps:
        return []
    notes = [swapping.note(), _links_note(swapping), _rates_note(swapping), BOTH_TELL]
    if swapping.widened:
        notes.append(Note("masking.exchanged_beside", {"columns": tuple(swapping.widened)}))
    if swapping.stuck:
        notes.append(Note("masking.not_exchanged", {"reasons": dict(swapping.reasons)}))
    return notes


def _links_note(swapping: Swapping) -> Note:
    figures = {
        "attack": swapping.attack.get("attack", "an attack"),
        "tolerance": str(swapping.tolerance),
        "before": swapping.before.expected_correct,
        "after": swapping.after.expected_correct,
    }
    return Note("masking.exchange_links", figures)


def _rates_note(swapping: Swapping) -> Note:
    found = {"record": swapping.his_record.rate, "values": swapping.his_values.rate}
    return Note("masking.exchange_rates", {**found, "rest": swapping.rest, "exempt": swapping.exempt})
