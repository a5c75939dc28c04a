"""The plan of a whole release: what `maskwell release` reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import MaskwellError, nearest
from .mask_plan import OF_RELEASES, MaskPlan
from .parser import (
    build_dataclass,
    numbered_items,
    section_data,
    section_of,
    type_words,
    typed_value,
    unknown,
)
from .sections import (
    DEFAULT_INTRUDERS,
    TOLERATED,
    WITH_H,
    AuditPlan,
    BudgetPlan,
    CalibratePlan,
    CardPlan,
    ModelPlan,
    ReportPlan,
    SwapPlan,
    TargetsPlan,
    TolerancePlan,
    UtilityPlan,
)

if TYPE_CHECKING:
    from ..attacks.protocol import Attack

ONCE: dict[str, Any] = {
    "targets": TargetsPlan,
    "budget": BudgetPlan,
    "utility": UtilityPlan,
    "audit": AuditPlan,
    "card": CardPlan,
    "report": ReportPlan,
}  # sections that stand with their defaults where a plan leaves them out
STEPS: dict[str, Any] = {"calibrate": CalibratePlan, "swap": SwapPlan}  # left out: not done


@dataclass(frozen=True, slots=True)
class ReleasePlan(MaskPlan):
    """A whole plan for `maskwell release`: also what is tolerated by whom, and what is compared, checked and told.

    `intruders` are pairs of a name and an attack; with none, the default ones attack the `targets`. Without
    `calibrate` the noise is taken as the masks give it, without `swap` no records are exchanged.
    """

    sections: ClassVar[tuple[str, ...]] = ("input", "output", "masks", *OF_RELEASES)

    tolerance: TolerancePlan = field(default_factory=TolerancePlan)
    calibrate: CalibratePlan | None = None
    swap: SwapPlan | None = None
    intruders: tuple[tuple[str, Attack], ...] = ()
    targets: TargetsPlan = field(default_factory=TargetsPlan)
    budget: BudgetPlan = field(default_factory=BudgetPlan)
    models: tuple[ModelPlan, ...] = ()
    utility: UtilityPlan = field(default_factory=UtilityPlan)
    audit: AuditPlan = field(default_factory=AuditPlan)
    card: CardPlan = field(default_factory=CardPlan)
    report: ReportPlan = field(default_factory=ReportPlan)

    def held(self, intruders: Mapping[str, Attack]) -> tuple[str, ...]:
        """Return the names of the intruders, of these, by whom the tolerance is to hold."""
        return self.tolerance.held(intruders)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain data, which `from_dict` reads back; keys that are not set are left out."""
        out: dict[str, Any] = {"input": section_data(self.input)}
        out["masks"] = [mask.to_dict() for mask in self.masks]
        out["tolerance"] = self.tolerance.to_dict()
        for name in STEPS:
            if getattr(self, name) is not None:
                out[name] = section_data(getattr(self, name))
        if self.intruders:
            out["intruders"] = [{"name": name} | attack.to_dict() for name, attack in self.intruders]
        if self.models:
            out["models"] = [section_data(model) for model in self.models]
        for name in ONCE:
            if data := section_data(getattr(self, name)):
                out[name] = data
        return out | {"output": section_data(self.output)}

    @classmethod
    def _parts(cls, data: Mapping[str, Any], folder: Path, problems: list[str]) -> dict[str, Any]:
        return MaskPlan._parts(data, folder, problems) | release_sections(data, folder, problems)


def release_sections(data: Mapping[str, Any], folder: Path, problems: list[str]) -> dict[str, Any]:
    """Build the sections of a plan beyond reading, masking and writing; those that are left out have defaults."""
    parts = {
        name: section_of(kind, data[name], f"[{name}]", folder, problems)
        for name, kind in (ONCE | STEPS).items()
        if name in data
    }
    parts["tolerance"] = _tolerance(data.get("tolerance", {}), problems)
    parts["intruders"] = _intruders(data.get("intruders"), parts.get("targets"), problems)
    parts["models"] = tuple(
        _model(item, f"model {number}", problems)
        for number, item in numbered_items(data.get("models"), "models", problems)
    )
    problems += _contradictions(parts)
    return parts


def _tolerance(given: Any, problems: list[str]) -> Any:
    """Build the tolerance: one of its kinds, and whom it is about."""
    where = "[tolerance]"
    if not isinstance(given, Mapping):
        problems.append(f"{where} must be a section: write {where} on a line of its own, its keys below")
        return None
    found = unknown(given, (*TOLERATED, "intruders", "over", "not_held"), where)
    kinds = [name for name in TOLERATED if name in given]
    if len(kinds) > 1:
        found.append(f"{where}: give one of {', '.join(kinds)}, not several")
    about: dict[str, Any] = {}
    if kinds:
        about["tolerance"] = _parse_tolerance(kinds[0], given[kinds[0]], where, found)
    if "intruders" in given:
        about["intruders"] = _of_type(tuple[str, ...], _tuple(given["intruders"]))
        if about["intruders"] is None:
            found.append(f"{where}: intruders must be a list of the names of intruders")
    if "over" in given:
        about["over"] = _of_type(str, given["over"])
        if about["over"] is None:
            found.append(f"{where}: over must be {type_words(str)}")
    if "not_held" in given:
        about["not_held"] = _of_type(dict[str, str], given["not_held"])
        if about["not_held"] is None:
            found.append(
                f'{where}: not_held must be a table of reasons, such as {{ "knows the law" = "why" }}'
            )
    problems += found
    return build_dataclass(TolerancePlan, {k: v for k, v in about.items() if v is not None}, where, problems)


def _of_type(hint: Any, value: Any) -> Any:
    fitting = typed_value(hint, value)
    return None if fitting is MISSING else fitting


def _tuple(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


def _parse_tolerance(name: str, value: Any, where: str, problems: list[str]) -> Any:
    from ..tolerances import TOLERANCES

    kind = TOLERANCES[name]
    if name == "prob_h":
        if isinstance(value, Mapping):
            return build_dataclass(kind, value, f"{where}: prob_h", problems)
        problems.append(f"{where}: prob_h must be a table such as {{ below = 3, at_most = 0.1 }}")
        return None
    number = _of_type(float, value)
    if number is None:
        problems.append(f"{where}: {name} must be a number")
        return None
    return build_dataclass(kind, {fields(kind)[0].name: number}, where, problems)


def _intruders(given: Any, targets: Any, problems: list[str]) -> tuple[tuple[str, Any], ...]:
    found = [
        _intruder(item, f"intruder {number}", targets, problems)
        for number, item in numbered_items(given, "intruders", problems)
    ]
    names = [name for name, _ in found if name]
    problems += [f"two intruders are named {name!r}: give each a name of its own" for name in _twice(names)]
    return tuple(found)


def _intruder(item: Any, where: str, targets: Any, problems: list[str]) -> tuple[str, Any]:
    """Build an attack; what it leaves open of its targets is as [targets] says."""
    from ..attacks import ATTACKS

    kind = item.get("attack") if isinstance(item, Mapping) else None
    if not isinstance(kind, str) or kind not in ATTACKS:
        hint = nearest(kind, ATTACKS) if isinstance(kind, str) else ""
        problems.append(f"{where} needs attack = one of {', '.join(ATTACKS)}{hint}")
        return "", None
    name, where = item.get("name", kind), f"{where} ({kind})"
    if not isinstance(name, str) or not name.strip():
        problems.append(f"{where}: name must be text")
        return "", None
    options = [option.name for option in fields(ATTACKS[kind])]
    problems += unknown(item, ["name", "attack", *options], where)
    given = {key: value for key, value in item.items() if key in ("attack", *options)}
    return name, _attack(given, options, where, targets, problems)


def _attack(given: dict[str, Any], options: list[str], where: str, targets: Any, problems: list[str]) -> Any:
    from ..attacks import attack_from_dict

    shared = {} if targets is None else {k: v for k, v in targets.shared.items() if k in options}
    try:
        return attack_from_dict(shared | given)
    except MaskwellError as refusal:
        problems += [f"{where}: {problem}" for problem in refusal.problems]
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
        # An attack looks at its options as Python gives them; of a plan file they may be anything.
        problems.append(f"{where}: an option has a value of the wrong kind ({type(error).__name__})")
    return None


def _model(item: Any, where: str, problems: list[str]) -> Any:
    given = {"formula": item} if isinstance(item, str) else item
    if not isinstance(given, Mapping):
        problems.append(f"{where} must be a section: write [[models]] on a line of its own, its keys below")
        return None
    return build_dataclass(ModelPlan, given, where, problems)


def _contradictions(parts: Mapping[str, Any]) -> list[str]:
    """Say what one section asks and another does not have."""
    tolerance, swap, own = parts["tolerance"], parts.get("swap"), parts["intruders"]
    names = [name for name, _ in own if name] if own else list(DEFAULT_INTRUDERS)
    found = _unaware(own, parts.get("targets"))
    if tolerance is not None:
        found += [f"[tolerance]: {said}" for said in _strangers(tolerance.intruders, names)]
        also = [*names, *(one for one in DEFAULT_INTRUDERS if one not in names)]
        found += [f"[tolerance.not_held]: {said}" for said in _strangers(tolerance.not_held, also)]
        without = (
            [n for n in tolerance.intruders if n in names and not _has_h(n, own)] if tolerance.on_h else []
        )
        found += [
            f"[tolerance]: intruder {name!r} has no h: take a NearestRecord, or max_rate" for name in without
        ]
    if swap is None:
        return found
    found += [f"[swap]: {said}" for said in _strangers([swap.intruder] if swap.intruder else [], names)]
    if tolerance is not None and tolerance.on_h:
        found.append(
            "[swap]: records are exchanged until max_rate or max_ratio holds: give one in [tolerance]"
        )
    return found


def _unaware(intruders: Iterable[tuple[str, Attack | None]], targets: Any) -> list[str]:
    """Say who is taken not to know that his target is in a sample, where no reason for it goes on record."""
    if targets is not None and targets.presence_not_known is not None:
        return []
    return [
        f"intruder {name!r}: response_knowledge = false needs a reason on record: say under [targets], in "
        "presence_not_known, why nobody outside knows who is in the release"
        for name, attack in intruders
        if attack is not None and not attack.response_knowledge  # nothing: one that could not be read
    ]


def _strangers(asked: Iterable[str], names: list[str]) -> list[str]:
    return [
        f"there is no intruder {name!r}{nearest(name, names) or '; there are ' + ', '.join(map(repr, names))}"
        for name in asked
        if name not in names
    ]


def _has_h(name: str, own: tuple[tuple[str, Any], ...]) -> bool:
    if not own:
        return name in WITH_H
    return all(type(attack).__name__ == "NearestRecord" for known, attack in own if known == name)


def _twice(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
