"""`attack`: the intruder answers without links, and is marked afterwards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from ..errors import BadPlan, NoLaw
from ..masking.results import Masking, Release
from ..notes import Note
from ..table import Table
from .answers import AttackResult, answer_of
from .protocol import Attack, Attacks, Ints, check_attack
from .response_knowledge import WITHIN, released_part

if TYPE_CHECKING:
    from .risk import Risk, Risks

LONGEST_OPTION = 30  # letters of an option that are said in the name of a plan


@overload
def attack(plan: Attack, masking: Masking | Table, *, targets: Table | None = None) -> Risk: ...


@overload
def attack(
    plan: Sequence[Attack] | Mapping[str, Attack], masking: Masking | Table, *, targets: Table | None = None
) -> Risks: ...


def attack(plan: Attacks, masking: Masking | Table, *, targets: Table | None = None) -> Risk | Risks:
    """Attack a release as the plan's intruder would, and return his `Risk`; of several plans their `Risks`.

    `masking` may be a plain `Table` for plans that look at what no noise protects (`Fingerprint`).
    `targets` is a file the intruder holds; without it he holds true records, those that the plan calls targets. Its
    ids tell which of them are in the truth, and are read only to mark his answer.
    """
    if targets is not None and not isinstance(targets, Table):
        raise BadPlan(
            f"targets is a Table, not a {type(targets).__name__}: make one with read(...) or Table.from_frame(...)"
        )
    if isinstance(plan, Sequence | Mapping):
        return _side_by_side(plan, masking, targets)
    return _with_unrelied(attack_by(plan, masking, targets)[0], masking)


def _with_unrelied(risk: Risk, masking: Masking | Table) -> Risk:
    """Say which columns in clear an intruder did not use, though somebody outside may know them."""
    from .known_columns import unrelied_columns

    names = unrelied_columns(risk, masking) if isinstance(masking, Masking) else ()
    if not names:
        return risk
    return replace(risk, notes=(*risk.notes, Note("attacks.not_used", {"columns": names})))


def attack_by(
    plan: Attack,
    attacked: Masking | Table,
    targets: Table | None = None,
    shared: dict[Any, Any] | None = None,
) -> AttackResult:
    """Return what an intruder achieves, with his answer, its marks, and the numbers of his records in the truth.

    `shared` is what intruders of one attack have computed already. Where records exchanged values, he is after the
    target's record and after the target's values, and the worse counts. Where not all records were released he knows
    whose were (see `response_knowledge`), unless he holds a file of his own or his plan says that he does not.
    """
    masking, shared = _attacked_masking(plan, attacked), {} if shared is None else shared
    knows = targets is None and plan.response_knowledge
    part = released_part(masking, shared) if knows else None
    if part is None:
        return _attack_result(plan, masking, targets, shared)
    own, among, share = part.targets(plan)
    found = _attack_result(own, part.masking, None, shared.setdefault(WITHIN, {}), among)
    return found._replace(risk=part.in_whole(found.risk, plan, share), numbers=part.records[found.numbers])


def _attack_result(
    plan: Attack, masking: Masking, targets: Table | None, shared: dict[Any, Any], among: Ints | None = None
) -> AttackResult:
    """Let an intruder answer and mark him; where records exchanged values, for his record and for his values."""
    if masking.exchange is None:
        return answer_of(plan, masking, targets, shared, among).found()
    from .donors import attack_exchanged

    return attack_exchanged(plan, masking, targets, shared, among)


def _bare(table: Table) -> Masking:
    """Return a masking without any noise."""
    from ..card import NoiseCard

    card = NoiseCard(records=len(table))
    return Masking(table, table, card, given=(Release(table, card), np.arange(len(table))))


def _attacked_masking(plan: Attack, attacked: Any) -> Masking:
    check_attack(plan)
    if isinstance(attacked, Table) and plan.on_tables:
        return _bare(attacked)
    if not isinstance(attacked, Masking):
        if plan.on_tables:
            raise BadPlan(
                f"attack needs a Masking or a maskwell Table here, not a {type(attacked).__name__}: make one with "
                "read(...) or Table.from_frame(...)"
            )
        raise BadPlan(
            f"attack needs a Masking, not a {type(attacked).__name__}: only the steward can mark an answer"
        )
    return attacked


def _side_by_side(
    plans: Sequence[Attack] | Mapping[str, Attack], masking: Masking | Table, targets: Table | None
) -> Risks:
    from .risk import Risks

    named = plans if isinstance(plans, Mapping) else dict(zip(_names(plans), plans, strict=True))
    if not named:
        raise BadPlan("there is no plan in the list")
    found: dict[str, Risk] = {}
    refused: dict[str, str] = {}
    shared: dict[Any, Any] = {}
    for name, plan in named.items():
        try:
            found[name] = _with_unrelied(attack_by(plan, masking, targets, shared)[0], masking)
        except NoLaw as error:
            refused[name] = str(error)
    if not found:
        raise NoLaw(list(refused.values()))
    return Risks(found, refused)


def _names(plans: Sequence[Attack]) -> list[str]:
    """Name plans by their kind, by what tells those of one kind apart, and by a number where nothing does."""
    kinds = [type(plan).__name__ for plan in plans]
    options = [dict(plan.to_dict()) for plan in plans]
    names = []
    for kind, own in zip(kinds, options, strict=True):
        alike = [other for other, name in zip(options, kinds, strict=True) if name == kind]
        differing = [key for key in own if any(other.get(key) != own[key] for other in alike)]
        names.append(" ".join([kind, *(_option_text(key, own[key]) for key in differing)]))
    return [
        name if names.count(name) == 1 else f"{name} {names[: i + 1].count(name)}"
        for i, name in enumerate(names)
    ]


def _option_text(key: str, value: Any) -> str:
    """Say an option in a word or two; what is long by its name alone."""
    if isinstance(value, dict):
        return str(value.get(key, key))
    if isinstance(value, list):
        value = ",".join(map(str, value)) or "none"
    if isinstance(value, str) and key in ("assignment", "direction"):
        return value
    said = f"{key}={value}"
    return said if len(said) <= LONGEST_OPTION else key
