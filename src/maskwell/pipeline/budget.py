"""How much a release computes: decided before the first long step from counts and a table of costs, by no clock.

Each intruder gets a share of the plan's budget for one attack on the release; who needs less leaves it to the others.
Who needs more looks for a sample of his targets, drawn by the key (where a block is looked at as a whole, whole
blocks), and his rate has an interval. Calibration attacks some hundred draws: the dearest intruders take no
part in its search, and are tried on the release itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks import BayesIntruder, Fingerprint, Linkage, NearestRecord, Sample
from ..attacks.bayes.matching_posterior.matchings import MATCHED_CELLS
from ..attacks.cluster_sample import FEWEST, ClusterSample
from ..attacks.joint_codes import block_codes
from ..attacks.linkage.em import EM
from ..attacks.protocol import Attack
from ..attacks.targets import Quantiles
from ..checks.evidence import LARGEST
from ..checks.links import is_informed
from ..notes import Note
from ..tolerances import MaxRate
from .attack_counts import counts_of
from .costs import AttackCounts, attack_seconds, audit_seconds, em_seconds, mask_seconds, step_seconds
from .intruders import BY_THE_CARD

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..plan import CalibratePlan, ReleasePlan
    from ..table import Table
    from .coded_columns import CodedTable

ONE_ATTACK, CALIBRATION, SWAPS, ADVICE = 0.15, 0.35, 0.2, 0.25  # of the budget
# Of one attack's share, for that of a rehearsal: thirty of them are within the share of advice
ONE_DRAW = 1 / 18
# Two plans whole, the search for their noise, and some that are given up after two draws
WANTED_REHEARSALS = 60
LEAST_REHEARSALS = 30  # twenty draws and a search for their noise: fewer could tell nothing
SIDES = 2  # after a swap each intruder is after the record and after the values
LEAST_SAMPLE = 200  # targets: a rate of 10% then has an interval of 6.6% to 14.9%
LEAST_BLOCKS = 20  # drawn: the interval is then 7% wider than with the variance known
LARGE_BLOCKS, IN_LARGE_BLOCKS = 3.0, 0.02  # times the mean size; the share of the targets they may have
HARDLY_MORE = 1.05  # times the cost of the least sample
MOST_TARGETS = 100_000  # more would tell a rate of 15% no nearer than to 0.22%, and take memory
# Times the share of one attack: who needs more even for the least sample is not tried, nor noise whose draws do
MOST_OVER = 3.0
SEARCH_SAMPLE = 2_000  # targets in each draw of the search: draws scatter more than targets beyond that
# How many scales a search tries, and how often one is put to confirmation, on average
SCALES, CONFIRMED = 14, 1.5
LEAST_REPLICATES, LEAST_CONFIRMATIONS = 3, 5
SWAP_ATTACKS = 12  # that a swap makes on its way, on average
EM_SHARE = 0.5  # of an intruder's share, for the steps of EM
LEAST_STEPS = 100  # of EM


@dataclass(frozen=True, slots=True)
class BudgetPart:
    """What one intruder does: how many of his targets he looks for, on the release and in each draw of a search.

    Nothing for `searched` is no part in the search; `why` says why he is not tried at all. Where blocks are looked at
    as a whole, all targets of some of the `blocks` are drawn. Who takes too long in large blocks is `bounded_by`
    another, who knows more.
    """

    name: str
    targets: int
    sample: int
    searched: int | None
    seconds: float
    fields: int
    why: str = ""
    blocks: tuple[str, ...] = ()
    bounded_by: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    """What is computed, and what that costs by the table of costs, in seconds of one core.

    `rehearsals` says how often a changed plan may be masked, attacked and audited, for advice on what would pass;
    `search_records` counts the part of a large file on which the noise is searched.
    """

    minutes: float
    parts: tuple[BudgetPart, ...]
    replicates: int = 0
    confirmations: int = 0
    swaps: bool = True
    rehearsals: int = 0
    search_records: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the sizes as plain data."""
        return {
            "minutes": self.minutes,
            "intruders": {part.name: _figures(part) for part in self.parts},
            "replicates": self.replicates,
            "confirmations": self.confirmations,
            "swaps": self.swaps,
            "rehearsals": self.rehearsals,
            "search_records": self.search_records,
        }

    def part(self, name: str) -> BudgetPart:
        """Return the part of an intruder."""
        return next(part for part in self.parts if part.name == name)

    def after_search(self, before: Budget) -> Budget:
        """Return this budget of attacks with the search for noise that was made by another."""
        parts = tuple(replace(part, searched=before.part(part.name).searched) for part in self.parts)
        return replace(
            self,
            parts=parts,
            replicates=before.replicates,
            confirmations=before.confirmations,
            search_records=before.search_records,
        )

    @property
    def bounds(self) -> dict[str, str]:
        """By whom those are bounded who are not tried themselves."""
        return {part.name: part.bounded_by for part in self.parts if part.bounded_by}

    def notes(self) -> list[Note]:
        """Say who looks for a sample, and who takes no part in a search."""
        tried = [part for part in self.parts if not part.why and not part.bounded_by]
        said = [self._sample_note(part) for part in tried if part.sample < part.targets]
        said += [
            Note("pipeline.bounded_intruder", {"intruder": name, "by": by})
            for name, by in self.bounds.items()
        ]
        if self.replicates and self.search_records is not None:
            said.append(Note("pipeline.searched_on_part", {"records": self.search_records}))
        left = tuple(part.name for part in tried if part.searched is None)
        if self.replicates and left:
            said.append(Note("pipeline.not_in_search", {"intruders": left}))
        return said

    def _sample_note(self, part: BudgetPart) -> Note:
        figures = {"intruder": part.name, "sample": part.sample, "targets": part.targets}
        more = {"in_blocks": bool(part.blocks), "minutes": self.minutes}
        return Note("pipeline.sampled_targets", figures | more)


def _figures(part: BudgetPart) -> dict[str, Any]:
    out = asdict(part)
    del out["name"]
    return out | {"seconds": round(part.seconds, 3)}


def drawn_blocks(plan: ReleasePlan, attack: Attack, table: Table, card: NoiseCard) -> tuple[str, ...]:
    """Return the columns by whose blocks targets are drawn: where a block is looked at as a whole, all in it are.

    Of few blocks, and for tolerances about other figures than the rate of all, targets are drawn one by one: nothing.
    So they are where rare large blocks have a share of the targets: draws without them would look surer than they are.
    """
    if not _judges_all(plan) or not isinstance(attack, BayesIntruder) or attack.targets is not None:
        return ()
    if attack.prior is not None or attack.error is not None or not attack.to_masked:
        return ()
    schema, masked = table.schema, set(card.masked)
    columns = [name for name in attack.match_columns(schema) if name in schema and not schema[name].drop]
    columns = [name for name in columns if name not in masked]
    if not columns:
        return ()
    sizes = np.bincount(block_codes(table, table, columns)[0])
    sizes = sizes[sizes > 0]
    in_large = float(sizes[sizes > LARGE_BLOCKS * sizes.mean()].sum()) / len(table)
    return tuple(columns) if len(sizes) >= FEWEST and in_large <= IN_LARGE_BLOCKS else ()


def _judges_all(plan: ReleasePlan) -> bool:
    """Whether the tolerance is about the rate of all targets."""
    return isinstance(plan.tolerance.tolerance, MaxRate) and plan.tolerance.over == "all"


def sample_within(plan: Any, counts: AttackCounts, seconds: float, most: int) -> int:
    """Return the largest sample of the targets that costs no more than this, or than the least one.

    Where all records of one block compete a sample costs as much as all of them: then all are looked for.
    """
    tried = np.unique(np.geomspace(min(_least(counts), most), most, 40).round().astype(np.int64))
    sizes: list[int] = tried.tolist()
    allowed = max(seconds, HARDLY_MORE * attack_seconds(plan, counts, sizes[0]))
    return max(size for size in sizes if attack_seconds(plan, counts, size) <= allowed)


def _least(counts: AttackCounts) -> int:
    """Return the least sample: as many as some blocks give, for the variance among these to be known."""
    if not counts.whole_blocks:
        return LEAST_SAMPLE
    return max(LEAST_SAMPLE, LEAST_BLOCKS * counts.total // max(int(np.count_nonzero(counts.targets)), 1))


def allot_budget(
    plan: ReleasePlan,
    intruders: Mapping[str, Attack],
    coded: CodedTable,
    card: NoiseCard,
    held: tuple[str, ...],
    part: Table | None = None,
) -> tuple[dict[str, Any], Budget]:
    """Return the intruders as they are run, and what that comes to; the noise is searched on all records or a part."""
    total = 60.0 * plan.budget.minutes
    counts = {name: counts_of(one, coded.table, card) for name, one in coded.attacks(intruders).items()}
    blocks = {name: drawn_blocks(plan, one, coded.table, card) for name, one in intruders.items()}
    counts = {name: replace(one, whole_blocks=bool(blocks[name])) for name, one in counts.items()}
    limited = {
        name: _limit_em_steps(one, counts[name], total, len(intruders)) for name, one in intruders.items()
    }
    once = ONE_ATTACK * total / (SIDES if plan.swap is not None else 1)
    parts = _parts_under_ceilings(plan, limited, counts, _shared_out(limited, counts, once))
    parts = {name: replace(one, blocks=blocks[name]) for name, one in parts.items()}
    run = {name: _on(attack, parts[name]) for name, attack in limited.items()}
    mask = mask_seconds(len(coded.table), len(card.masked))
    few = rehearsal_intruders(intruders, held)  # with as few steps of EM as they are given there
    few = {name: _limit_em_steps(one, counts[name], ONE_DRAW * total, len(few)) for name, one in few.items()}
    rehearsed = _shared_out(few, counts, ONE_DRAW * once)
    attacks = sum(part.seconds for part in rehearsed.values() if not part.why)
    audit = audit_seconds(min(len(coded.table), LARGEST), len(card.masked))
    budget = Budget(
        plan.budget.minutes,
        tuple(parts[name] for name in intruders),
        rehearsals=_rehearsals(total, mask + attacks + audit),
    )
    if plan.calibrate is not None:
        if part is not None:
            counts = {name: counts_of(one, part, card) for name, one in coded.attacks(intruders).items()}
            counts = {name: replace(one, whole_blocks=bool(blocks[name])) for name, one in counts.items()}
            mask = mask_seconds(len(part), len(card.masked))
        budget = _search_budget(budget, plan.calibrate, run, held, counts, mask, CALIBRATION * total)
        budget = replace(budget, search_records=None if part is None else len(part))
    return run, replace(budget, swaps=_may_swap(plan, limited, held, counts, SWAPS * total))


def _parts_under_ceilings(
    plan: ReleasePlan,
    intruders: Mapping[str, Attack],
    counts: Mapping[str, AttackCounts],
    parts: dict[str, BudgetPart],
) -> dict[str, BudgetPart]:
    """Have who knows the law and takes too long to match blocks bounded by a ceiling that is itself a bound.

    In expectation nobody finds more than who takes the likeliest record of each target with all that can be known. The
    bound is about the rate of all targets, and not about records that were exchanged.
    """
    if not _judges_all(plan) or plan.swap is not None:
        return parts
    ceilings = {
        name: one
        for name, one in intruders.items()
        if isinstance(one, BayesIntruder)
        and one.helpers == "all"
        and not parts[name].why
        and counts[name].whole_squares(parts[name].sample) > MATCHED_CELLS
    }
    for name, part in parts.items():
        by = next(
            (one for one in ceilings if part.why and _knows_as_much(ceilings[one], intruders[name])), None
        )
        if by is not None:
            parts[name] = replace(part, why="", seconds=0.0, bounded_by=by)
    return parts


def _knows_as_much(ceiling: BayesIntruder, other: Any) -> bool:
    """Whether a ceiling is one of an intruder: the same but for the help that he has, and for how links are chosen."""
    if not isinstance(other, BayesIntruder) or other.helpers:
        return False
    return replace(ceiling, helpers=other.helpers, assignment=other.assignment) == other


def rehearsal_intruders(intruders: Mapping[str, Attack], held: tuple[str, ...]) -> dict[str, Any]:
    """Return who attacks the draws of a rehearsal: who is held to the tolerance, or looked at by the audit."""
    return {name: one for name, one in intruders.items() if name in held or is_informed(one)}


def _rehearsals(total: float, seconds: float) -> int:
    """Return how many draws advice may make: by its share of the budget, but enough for one plan or none at all.

    Where the share is too small for two plans it may take what the whole budget has; the table of costs rounds up.
    """
    within, most = int(ADVICE * total / seconds), int(total / seconds)
    if within >= WANTED_REHEARSALS:
        return within
    return min(most, WANTED_REHEARSALS) if most >= LEAST_REHEARSALS else 0


def _limit_em_steps(attack: Attack, counts: AttackCounts, total: float, intruders: int) -> Any:
    """Bound the steps of EM, which are else as many as it takes to come to rest."""
    if not isinstance(attack, Linkage) or not isinstance(attack.weights, EM):
        return attack
    allowed = EM_SHARE * ONE_ATTACK * total / intruders
    if em_seconds(attack, counts, None) <= allowed:
        return attack
    steps = max(int(allowed / step_seconds(attack.weights, counts, None)), LEAST_STEPS)
    return replace(attack, weights=replace(attack.weights, iterations=min(steps, attack.weights.iterations)))


def _shared_out(
    intruders: Mapping[str, Attack], counts: Mapping[str, AttackCounts], total: float
) -> dict[str, BudgetPart]:
    """Share the seconds of one attack out, to the cheapest first: what he leaves is for the others."""
    whole = {
        name: attack_seconds(attack, counts[name], _planned_sample(attack) or MOST_TARGETS)
        for name, attack in intruders.items()
    }
    parts, left = dict[str, BudgetPart](), total
    for place, name in enumerate(sorted(intruders, key=lambda name: whole[name])):
        share = max(left, 0.0) / (len(intruders) - place)
        parts[name] = _part(name, intruders[name], counts[name], share, MOST_OVER * total)
        left -= 0.0 if parts[name].why else parts[name].seconds
    return parts


def _planned_sample(attack: Attack) -> int | None:
    """Return the sample of targets that a plan asks for itself."""
    chosen = attack.targets
    return chosen.sample if isinstance(chosen, Sample) else None


def _part(name: str, attack: Attack, counts: AttackCounts, share: float, most_seconds: float) -> BudgetPart:
    asked = _planned_sample(attack)
    usual = counts.total if isinstance(attack, Fingerprint) else MOST_TARGETS
    most = min(counts.total, usual if asked is None else asked)
    if isinstance(attack.targets, Quantiles):
        few = len(attack.targets.at)
        return BudgetPart(name, few, few, None, attack_seconds(attack, counts, few), counts.fields)
    sample = sample_within(attack, counts, share, most)
    seconds = attack_seconds(attack, counts, sample)
    if seconds > most_seconds:
        why = (
            f"not tried: to look for {sample:,} targets would take {_minutes(seconds)} by the table of costs, of a "
            "budget too small for that; give finer match_blocks, fewer fields, or more minutes in [budget]"
        )
        return BudgetPart(name, counts.total, sample, None, seconds, counts.fields, why)
    return BudgetPart(name, counts.total, sample, None, seconds, counts.fields)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:,.0f} minutes" if seconds >= 90 else f"{seconds:.0f} seconds"


def _on(attack: Attack, part: BudgetPart) -> Any:
    """Return the attack on as many targets as his part says."""
    if part.sample >= part.targets or isinstance(attack.targets, Quantiles):
        return attack
    return on_targets(attack, part.sample, part)


def on_targets(attack: Attack, sample: int, part: BudgetPart) -> Any:
    """Return the attack on a sample of its targets, in some blocks or one by one."""
    chosen = ClusterSample(sample, part.blocks) if part.blocks else Sample(sample)
    return replace(attack, targets=chosen)


def _search_budget(
    budget: Budget,
    own: CalibratePlan,
    intruders: Mapping[str, Attack],
    held: tuple[str, ...],
    counts: Mapping[str, AttackCounts],
    mask: float,
    seconds: float,
) -> Budget:
    """Say who takes part in the search for the noise, on how many targets, and on how many draws."""
    able = [
        part
        for part in budget.parts
        if part.name in held
        and not part.why
        and not part.bounded_by
        and not isinstance(intruders[part.name], Fingerprint)
    ]
    able.sort(key=lambda part: (_strength(intruders[part.name]), part.seconds))
    replicates, confirmations = _draws(own, able[:1], intruders, counts, mask, seconds)
    draws = SCALES * replicates + CONFIRMED * confirmations
    searched, left = dict[str, int](), max(seconds - mask * draws, 0.25 * seconds)
    for place, part in enumerate(able):
        attack, count, each = intruders[part.name], counts[part.name], left / (len(able) - place) / draws
        sample = sample_within(attack, count, each, min(part.sample, SEARCH_SAMPLE))
        cost = attack_seconds(attack, count, sample)
        if cost <= each or not searched:
            searched[part.name] = sample
            left -= cost * draws
    parts = tuple(replace(part, searched=searched.get(part.name)) for part in budget.parts)
    return replace(budget, parts=parts, replicates=replicates, confirmations=confirmations)


def share_of_draw(budget: Budget) -> float:
    """Return the seconds that a draw of the search has."""
    draws = SCALES * budget.replicates + CONFIRMED * budget.confirmations
    return CALIBRATION * 60.0 * budget.minutes / max(draws, 1.0)


def _draws(
    own: CalibratePlan,
    strongest: list[BudgetPart],
    intruders: Mapping[str, Attack],
    counts: Mapping[str, AttackCounts],
    mask: float,
    seconds: float,
) -> tuple[int, int]:
    """Return on how many draws scales are judged and confirmed: as asked, or as many as half of the time has."""
    each = mask
    for part in strongest:
        attack, count = intruders[part.name], counts[part.name]
        each += attack_seconds(
            attack, count, sample_within(attack, count, 0.0, min(part.sample, SEARCH_SAMPLE))
        )
    asked = SCALES * own.replicates + CONFIRMED * own.confirmations
    part_of = min(0.5 * seconds / max(each * asked, 1e-9), 1.0)
    replicates = max(int(own.replicates * part_of), min(LEAST_REPLICATES, own.replicates))
    return replicates, max(int(own.confirmations * part_of), min(LEAST_CONFIRMATIONS, own.confirmations))


def _strength(attack: Attack) -> int:
    """Order intruders by what they find: noise searched without those who find most would not hold against them."""
    if isinstance(attack, BayesIntruder) and attack.prior is None:
        return 0 if not attack.helpers else 3  # the ceiling is dear, and hardly above who knows the law
    return 1 if isinstance(attack, NearestRecord) and attack.distance in BY_THE_CARD else 2


def _may_swap(
    plan: ReleasePlan,
    intruders: Mapping[str, Attack],
    held: tuple[str, ...],
    counts: Mapping[str, AttackCounts],
    allowed: float,
) -> bool:
    """Whether the attacks that a swap makes, each on all targets, fit into the budget."""
    if plan.swap is None:
        return True
    names = [plan.swap.intruder] if plan.swap.intruder is not None else list(held)
    able = [name for name in names if not isinstance(intruders[name], Fingerprint)]
    quick = [name for name in able if not isinstance(intruders[name], BayesIntruder)] or able
    seconds = [attack_seconds(intruders[name], counts[name], None) for name in quick]
    return not seconds or SWAP_ATTACKS * min(seconds) <= allowed
