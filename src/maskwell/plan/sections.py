"""The sections of a plan for a whole release beyond reading, masking and writing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Annotated, Any

from ..errors import BadPlan, nearest, raise_all
from ..tolerances import TOLERANCES, ExpectedH, MaxRate, ProbH

if TYPE_CHECKING:
    from ..attacks.protocol import Attack

CEILING = "the ceiling"
DEFAULT_INTRUDERS = (
    "Winkler's matcher",
    "nearest record",
    "nearest, informed",
    "without the card",
    "knows the law",
    "knows the law, one-to-one",
    CEILING,
    "fingerprint alone",
)  # who attacks where a plan names nobody
WITH_H = ("nearest record", "nearest, informed")
FIFTEEN_PERCENT = MaxRate(0.15)  # Moore's conjecture 5
TOLERATED = tuple(name for name in TOLERANCES if name != "swap_share")
OVER = ("all", "outlying")
CARDS = ("open", "sealed", "kept")
LARGEST_AUDITED = 20_000


@dataclass(frozen=True, slots=True)
class TolerancePlan:
    """What is tolerated, by which intruders (none named: by all but the ceiling), over which of their targets.

    `not_held` names intruders whom the tolerance is not held against, each with a reason, which goes on record.
    """

    tolerance: Any = FIFTEEN_PERCENT
    intruders: tuple[str, ...] = ()
    over: str = "all"
    not_held: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.tolerance, tuple(TOLERANCES[name] for name in TOLERATED)):
            raise BadPlan(f"say what is tolerated by one of {', '.join(TOLERATED)}")
        problems = _choice("over", self.over, OVER)
        for name, reason in self.not_held.items():
            if not reason.strip():
                problems.append(f"not_held: {name!r} needs a reason, which goes on record")
            if name in self.intruders:
                problems.append(f"{name!r} is among the intruders and under not_held: take him out of one")
        raise_all(problems, BadPlan)

    @property
    def on_h(self) -> bool:
        """Whether the tolerance is on the h-index, which only the nearest-record intruder has."""
        return isinstance(self.tolerance, ExpectedH | ProbH)

    def held(self, intruders: Mapping[str, Attack]) -> tuple[str, ...]:
        """Return the names of the intruders, of these, by whom the tolerance is to hold.

        They are those named here. Where nobody is they are all but the ceiling, which nobody reaches who does not know
        everybody else, and those under `not_held`; for a tolerance on h those who have one.
        """
        if self.intruders:
            return self.intruders
        left = {name: attack for name, attack in intruders.items() if name not in self.not_held}
        if self.on_h:
            return tuple(name for name, attack in left.items() if type(attack).__name__ == "NearestRecord")
        return tuple(name for name, attack in left.items() if attack.helpers != "all")

    def to_dict(self) -> dict[str, Any]:
        """Return the section as plain data."""
        out: dict[str, Any] = dict(self.tolerance.to_dict())
        if self.intruders:
            out["intruders"] = list(self.intruders)
        if self.not_held:
            out["not_held"] = dict(self.not_held)
        return out | {"over": self.over}


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratePlan:
    """How the weakest noise that meets the tolerance is searched, from the scale that the masks give."""

    replicates: int = 20
    confirmations: int = 40
    per_column: bool = False
    precision: float = 0.02
    level: float = 0.05

    def __post_init__(self) -> None:
        problems = [
            f"{name} is a whole number of at least 2 (one draw has no standard error), not {getattr(self, name)!r}"
            for name in ("replicates", "confirmations")
            if getattr(self, name) < 2
        ]
        for name, most in (("precision", 1.0), ("level", 0.5)):
            if not 0 < getattr(self, name) < most:
                problems.append(f"{name} is a number between 0 and {most:g}, not {getattr(self, name)!r}")
        raise_all(problems, BadPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetPlan:
    """How much is computed, in minutes of two cores by the table of costs: a count, and no clock, decides."""

    minutes: float = 5.0

    def __post_init__(self) -> None:
        problems = [] if self.minutes > 0 else ["minutes is a number above 0, such as 5"]
        raise_all(problems, BadPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapPlan:
    """Against whom records are exchanged (the one of the tolerance who finds most), in which columns (all he compares).

    `exempt_values` is the reason, which goes on record, why it does not count that he finds the exchanged values again;
    `domains` are compared afterwards.
    """

    intruder: str | None = None
    columns: tuple[str, ...] | None = None
    exempt_values: str | None = None
    domains: tuple[str | tuple[str, ...], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetsPlan:
    """Whom the intruders are after, and the columns on which they rely and by which they compare.

    Without `match_blocks` they rely on every column that leaves in clear, but for sensitive ones and those under
    `not_known`, each with a reason why nobody outside knows it, which goes on record. Where a sample of the records
    leaves, they know that their target is in it, unless `presence_not_known` has the reason why nobody outside does.
    """

    largest_target_block: int | None = None
    target_blocks: tuple[str, ...] | None = None
    match_blocks: tuple[str, ...] | None = None
    fields: tuple[str, ...] | None = None
    sample: int | None = None
    not_known: Mapping[str, str] = field(default_factory=dict)
    presence_not_known: str | None = None

    def __post_init__(self) -> None:
        from ..attacks import Linkage

        Linkage(**self.shared)
        problems = [
            f"not_known: {name!r} needs a reason, which goes on record"
            for name, reason in self.not_known.items()
            if not reason.strip()
        ]
        if self.presence_not_known is not None and not self.presence_not_known.strip():
            problems.append("presence_not_known needs a reason, which goes on record")
        both = [name for name in self.match_blocks or () if name in self.not_known]
        problems += [
            f"{name!r} is among match_blocks and under not_known: take it out of one" for name in both
        ]
        raise_all(problems, BadPlan)

    @property
    def shared(self) -> dict[str, Any]:
        """The options as those of an attack; what is not set is left out."""
        from ..attacks import Sample

        out = {item.name: getattr(self, item.name) for item in fields(self)}
        sample, _, unaware = (out.pop(name) for name in ("sample", "not_known", "presence_not_known"))
        out["targets"] = None if sample is None else Sample(sample)
        out["response_knowledge"] = None if unaware is None else False
        return {name: value for name, value in out.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelPlan:
    """A model that analysts will fit, and by which share its intervals may widen (nothing: as much as it takes)."""

    formula: str
    family: str = "gaussian"
    at_most_wider: float | None = None

    def __post_init__(self) -> None:
        from ..analysis.model_fit import family_of

        problems = []
        if self.formula.count("~") != 1 or not all(side.strip() for side in self.formula.split("~")):
            problems.append("a formula has a response and terms, such as 'INCOME ~ AGE + SEX'")
        try:
            family_of(self.family, None)
        except BadPlan as refusal:
            problems += refusal.problems
        if self.at_most_wider is not None and not self.at_most_wider > 0:
            problems.append("at_most_wider is a share above 0, such as 0.30 for intervals 30% wider")
        raise_all(problems, BadPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class UtilityPlan:
    """The columns in whose groups means are compared (the schema's block columns)."""

    groups: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPlan:
    """How many records heavy checks look at, and limits other than the default ones, by the names of the checks."""

    largest: int = LARGEST_AUDITED
    limits: dict[str, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        problems = [] if self.largest >= 100 else ["largest is a whole number of at least 100"]
        raise_all([*problems, *(_limit_problems(self.limits) if self.limits else ())], BadPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardPlan:
    """How the card leaves: open, sealed for recipients (or by a passphrase, asked for), or not at all."""

    leaves: str = "open"
    recipients: Annotated[tuple[str, ...], "a list of age public keys"] = ()

    def __post_init__(self) -> None:
        problems = _choice("leaves", self.leaves, CARDS)
        if self.recipients and self.leaves in CARDS and self.leaves != "sealed":
            problems.append(f"recipients are those of a sealed card, not of one that is {self.leaves}")
        wrong = sum(not one.startswith("age1") for one in self.recipients)
        if wrong:
            problems.append("a recipient is the public key of an age identity, which begins with age1")
        raise_all(problems, BadPlan)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPlan:
    """What stands at the head of the reports."""

    title: str = ""
    organisation: str = ""
    contact: str = ""


def _choice(name: str, given: str, known: tuple[str, ...]) -> list[str]:
    if given in known:
        return []
    return [f"{name} is one of {', '.join(map(repr, known))}, not {given!r}{nearest(given, known)}"]


def _limit_problems(given: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Name checks that the audit does not have, and limits that are none."""
    from ..checks.catalogue import checks

    known = {check.name: check.limits for check in checks()}
    found = [f"the audit has no check {name!r}{nearest(name, known)}" for name in given if name not in known]
    for name, limits in given.items():
        if name in known:
            try:
                known[name].changed(limits)
            except BadPlan as refusal:
                found += [f"limits of {name!r}: {problem}" for problem in refusal.problems]
    return found
