"""The search for the weakest noise that meets the tolerance, within the budget; what it tried is kept for later."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..attacks import Fingerprint
from ..keys import Key
from ..notes import Note
from .attack_counts import counts_of
from .budget import MOST_OVER, SCALES, on_targets, share_of_draw
from .costs import attack_seconds
from .release_key import keep_key

if TYPE_CHECKING:
    from ..calibration import Bound, Calibration
    from ..calibration.trial_store import KeptTrials
    from ..calibration.trials import Trial
    from ..card import NoiseCard
    from ..plan import ModelPlan
    from .meet_tolerance import MaskingSetting
    from .progress import StageStep


def searched_noise(case: MaskingSetting) -> tuple[Calibration, list[Note]]:
    """Search the weakest noise, and say how much of that was known."""
    from ..calibration import Search
    from ..calibration.calibrate import TrialDraws, weakest_noise

    own = case.plan.calibrate
    assert own is not None
    key = case.key if case.earlier is None else case.earlier.key
    if case.keeps_key and key is not None:
        keep_key(case.plan.output.private, key)
    kept = kept_trials(case)
    with case.stages.stage("calibrate") as step:
        found = weakest_noise(
            case.coded.mask,
            case.coded.table if case.part is None else case.part,
            searchers(case),
            case.aimed.tolerance,
            Search(
                over=case.judge.over,
                replicates=own.replicates if case.budget is None else case.budget.replicates,
                confirmations=own.confirmations if case.budget is None else case.budget.confirmations,
                precision=own.precision,
                level=own.level,
                per_column=own.per_column,
                bounds=bounds_of(case.plan.models),
                floor="report",
            ),
            TrialDraws(key or Key.from_os(), _trial_counter(step), kept, within_budget(case)),
        )
    found = replace(found, sampled=found.sampled or case.part is not None)  # a part of the file: some targets
    return found, [] if kept is None or not kept.used else [
        Note("pipeline.trials_kept", {"count": kept.used})
    ]


def _trial_counter(step: StageStep) -> Callable[[Trial], None]:
    """Tell trials: there are some 15 of them, and where there are more at least one is left."""
    done = 0

    def told(_: Trial) -> None:
        nonlocal done
        done += 1
        step(done, max(SCALES + 1, done + 1))

    return told


def searchers(case: MaskingSetting) -> dict[str, Any]:
    """Return the intruders by whom the noise is searched, on as many targets as the budget says."""
    held = {
        name: plan
        for name, plan in case.coded.attacks(case.intruders).items()
        if name in case.judge.held and not isinstance(plan, Fingerprint)
    }
    if case.budget is None:
        return held
    found: dict[str, Any] = {}
    for name, plan in held.items():
        part = case.budget.part(name)
        if part.searched is not None:
            found[name] = plan if part.searched >= part.sample else on_targets(plan, part.searched, part)
    return found


def within_budget(case: MaskingSetting) -> Callable[[NoiseCard], bool] | None:
    """Return what tells whether a law is one whose draws are within the budget: weaker noise may cost far more.

    What the plan's own noise costs a draw, at the sizes that were decided by it, is allowed some times over.
    """
    if case.budget is None:
        return None
    plans, table = searchers(case), case.coded.table if case.part is None else case.part
    samples = {name: case.budget.part(name).searched for name in plans}

    def seconds(card: NoiseCard) -> float:
        own = [attack_seconds(one, counts_of(one, table, card), samples[name]) for name, one in plans.items()]
        return sum(own)

    most = MOST_OVER * max(seconds(case.coded.mask.card(table)), share_of_draw(case.budget))
    return lambda card: seconds(card) <= most


def bounds_of(models: Iterable[ModelPlan]) -> list[Bound]:
    """Return the bounds on utility that the [[models]] of a plan give."""
    from ..calibration import Bound

    bounded = [(one, one.at_most_wider) for one in models if one.at_most_wider is not None]
    return [Bound(one.formula, one.family, most) for one, most in bounded]


def kept_trials(case: MaskingSetting) -> KeptTrials | None:
    """Return the trials of this plan, data and key that an earlier run has kept; of studies none are."""
    from ..calibration.trial_store import KeptTrials

    key = case.key if case.earlier is None else case.earlier.key
    if key is None or key.seeded:
        return None
    source = case.plan.input
    parts = [json.dumps(case.plan.to_dict(), sort_keys=True), version("maskwell")]
    parts += [_digest(path) for path in (source.file, source.schema) if path is not None]
    parts.append(hashlib.sha256(b"kept trials" + key.secret).hexdigest())
    return KeptTrials.read(case.plan.output.private, hashlib.sha256("\n".join(parts).encode()).hexdigest())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
