"""Who attacks a release: the intruders of its plan, or those who attack where it names nobody."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..attacks import BayesIntruder, Fingerprint, Linkage, NearestRecord, Prior, Risk, Risks
from ..attacks.attack_run import attack_by
from ..attacks.protocol import Attack
from ..errors import BadPlan, NoLaw
from .known_columns import on_known_columns
from .progress import StageStep

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..masking import Masking
    from ..table import Table
    from .known_columns import IntrudersPlan

BY_THE_CARD = ("noise", "posterior")  # distances of the nearest-record intruder that need the card


def named_intruders(plan: IntrudersPlan) -> dict[str, Any]:
    """Return the intruders by name: those of the plan, or the default ones."""
    return dict(plan.intruders) if plan.intruders else default_intruders(plan.targets.shared)


def intruders_of(
    plan: IntrudersPlan, table: Table, card: NoiseCard, own: Collection[str] | None = None
) -> dict[str, Any]:
    """Return the intruders by name, each with the columns in clear on which he relies (see `known_columns`).

    Where the plan names nobody and no column has the role key, they compare what is masked. Who holds a file relies on
    its `own` columns only.
    """
    named = named_intruders(plan)
    if (
        not plan.intruders
        and "fields" not in plan.targets.shared
        and not _undropped_names(table, table.schema.with_role("key"))
    ):
        named = _on_masked(named, _undropped_names(table, card.masked), table)
    return on_known_columns(named, plan, table, card, own)


def _undropped_names(table: Table, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in names if not table.schema[name].drop)


def _on_masked(named: Mapping[str, Any], masked: tuple[str, ...], table: Table) -> dict[str, Any]:
    """Let intruders compare what is masked; who measures distances compares numbers, and is left out without any."""
    numbers = tuple(name for name in masked if table.schema[name].is_number)
    out: dict[str, Any] = {}
    for name, plan in named.items():
        fields = numbers if isinstance(plan, NearestRecord) else masked
        if isinstance(plan, Fingerprint) or not masked:
            out[name] = plan
        elif fields:
            out[name] = replace(plan, fields=fields)
    return out


def default_intruders(shared: Mapping[str, Any]) -> dict[str, Any]:
    """Return those who attack where a plan names nobody: the same targets, blocks and fields for all.

    Who is without the card has a prior on the noise in its place and takes the likeliest record: of the kernels the one
    that a prior far from the truth misleads least.
    """
    printed = {name: value for name, value in shared.items() if name != "fields"}
    return {
        "Winkler's matcher": Linkage(**shared),
        "nearest record": NearestRecord(**shared),
        "nearest, informed": NearestRecord(**shared, distance="posterior"),
        "without the card": BayesIntruder(**shared, prior=Prior(), kernel="forward"),
        "knows the law": BayesIntruder(**shared),
        "knows the law, one-to-one": BayesIntruder(**shared, assignment="one-to-one"),
        "the ceiling": BayesIntruder(**shared, helpers="all"),
        "fingerprint alone": Fingerprint(**printed),
    }


def holds_card(attack: Attack) -> bool:
    """Whether an intruder needs the noise card for what he does."""
    if isinstance(attack, NearestRecord):
        return attack.distance in BY_THE_CARD
    return isinstance(attack, BayesIntruder) and attack.prior is None


def card_risk(risks: Risks) -> dict[str, float | None]:
    """Return the largest rate of all intruders, for a card in the open, and of those who need none, for others.

    Nothing where nobody who needs none was tried; who looks at the fingerprint alone does not try.
    """
    every = {name: risk.rate for name, risk in risks.items()}
    plans = {name: risks[name].attack for name in every}
    tried = [name for name, plan in plans.items() if not holds_card(plan)]
    able = [name for name in tried if not isinstance(plans[name], Fingerprint)]
    hidden = max((every[name] for name in tried), default=None) if able else None
    return {"open": max(every.values()), "sealed": hidden, "kept": hidden}


def risks_by_intruder(
    plans: Mapping[str, Attack],
    masking: Masking,
    step: StageStep | None = None,
    untried: Mapping[str, str] | None = None,
) -> Risks:
    """Attack a masking by all intruders, each of whom is told of in turn; `untried` says of some why they do not."""
    shared = dict[Any, Any]()
    found: dict[str, Risk] = {}
    refused: dict[str, str] = {}
    for number, (name, plan) in enumerate(plans.items(), start=1):
        if why := (untried or {}).get(name):
            refused[name] = why
        else:
            try:
                found[name] = replace(attack_by(plan, masking, None, shared)[0], attack=plan)
            except (NoLaw, BadPlan) as error:  # what is wrong with a plan was said before any noise was drawn
                refused[name] = str(error)
        if step is not None:
            step(number, len(plans))
    if not found:
        raise NoLaw(list(refused.values()))
    return Risks(found, refused)
