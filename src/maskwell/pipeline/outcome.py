"""What a release came to: whether it may leave, why not, what was tried, and what would change it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ..calibration.measures import ALL
from ..notes import Note, texts
from ..tolerances import MaxRate
from .information_loss import drowned_words, noise_ratios

if TYPE_CHECKING:
    from ..attacks import Risk, Risks
    from ..calibration import Calibration
    from ..checks import Audit
    from ..masking import Masking, Swapping
    from ..plan import ReleasePlan
    from ..utility import Utility
    from .budget import Budget

PASSED, NOT_JUDGED, REFUSED = "passed", "not judged", "refused"
INFORMED_LINKS = "informed links"  # the check of the audit
MOST_ITEMS = 8  # of a list; reasons are shown all
WIDTH = 100


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to meet the tolerance with the noise of this key: nothing is ever drawn anew.

    `factor` is the scale relative to the noise that was begun with, `how` "given", "calibrated", "raised" or "swapped";
    `worst` is the intruder who exceeds the tolerance most, `figure` his figure, `rate` the share of his targets that he
    links correctly; `swaps` counts the pairs exchanged.
    """

    factor: float
    how: str
    worst: str
    figure: float
    rate: float
    met: bool
    swaps: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return the attempt as plain data."""
        out = asdict(self)
        out["figure"] = self.figure if isfinite(self.figure) else None
        return out


@dataclass(frozen=True, slots=True)
class Advice:
    """A change to the plan, with figures and what it came to where it was tried.

    `passes` says whether the changed plan passed in 19 of 20 draws by keys of calibration (None: not tried, or not as
    the plan would be run). `draws` were made until that was known, `passed` of them passed; `why` says how far it came
    where it did not. `plan` and `schema` are the sections as they are typed, in place of those that the plan has;
    the sections of `without` are taken out of it. `drops` names columns that a fact about the file speaks of dropping.
    """

    change: str
    figures: Mapping[str, float | int | str | None] = field(default_factory=dict)
    passes: bool | None = None
    draws: int = 0
    passed: int = 0
    why: str = ""
    plan: str = ""
    schema: str = ""
    without: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()

    @property
    def comes_to(self) -> str:
        """What it came to, in words."""
        drawn = f"passed in {self.passed} of {self.draws} draws"
        if self.passes:
            return f"would pass: {drawn}"
        if self.draws:
            return f"{self.why} ({drawn})"
        if self.passes is None:
            return f"not tried: {self.why}" if self.why else "not tried"
        return "not enough by itself"

    def to_dict(self) -> dict[str, Any]:
        """Return the advice as plain data."""
        return asdict(self) | {
            "figures": dict(self.figures),
            "without": list(self.without),
            "drops": list(self.drops),
        }

    def __str__(self) -> str:
        return f"{self.change}: {self.comes_to}"


@dataclass(frozen=True, eq=False)
class Outcome:
    """All that `release` found and did. It stays inside, but for what `release` names: the folder that may leave.

    `reasons` say why it did not pass; where it left all the same, `despite` has the reason that was given. `floor` is
    what no noise protects, `before` what the intruders find under the noise alone, `after` what they find in the file
    that would leave. `not_judged` says which intruders are held to the tolerance and were not tried, or what else keeps
    the verdict open: then it is "not judged". Where it is refused before any noise is drawn there is no masking,
    utility or audit. `budget` has how many targets each intruder looks for, by the table of costs. `card_risk` is the
    largest rate where the card is open, sealed or kept. `tells_stronger` says that `not_judged` tells what the audit's
    own intruder finds. `mind` is said of other releases in the private folder,
    `seconds` are those of the stages: both are for the eye alone, no file has them.
    `release` and `private` are nothing where nothing was written.
    """

    plan: ReleasePlan
    passed: bool
    reasons: tuple[str, ...]
    despite: str | None
    floor: Risk
    calibration: Calibration | None
    masking: Masking | None = field(repr=False)
    before: Risks
    after: Risks
    swapping: Swapping | None
    utility: Utility | None
    audit: Audit | None
    attempts: tuple[Attempt, ...]
    card_risk: Mapping[str, float | None]
    not_judged: tuple[str, ...] = ()
    budget: Budget | None = None
    advice: tuple[Advice, ...] = ()
    held: tuple[str, ...] = ()
    tells_stronger: bool = False
    notes: tuple[Note, ...] = ()
    mind: tuple[Note, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    release: Path | None = None
    private: Path | None = None

    @property
    def leaves(self) -> bool:
        """Whether the file may leave: it passed, or somebody said why it does in spite of that."""
        return self.passed or self.despite is not None

    @property
    def verdict(self) -> str:
        """The answer in a word or two: passed, not judged (nothing but that stands against it), or refused."""
        if self.passed:
            return PASSED
        return NOT_JUDGED if self.not_judged and not self.reasons else REFUSED

    @property
    def too_loud(self) -> str:
        """Which released values are more noise than signal, in words; nothing where none are."""
        if self.masking is None:
            return ""
        return drowned_words(noise_ratios((self.masking.mask,), self.masking.truth))

    @property
    def laxer_limits(self) -> tuple[str, ...]:
        """The checks that the plan judges by laxer limits than the audit's own, in words."""
        return () if self.audit is None else tuple(finding.laxer for finding in self.audit.laxer)

    @property
    def beyond_tolerance(self) -> str:
        """That the audit's own intruder finds more than is tolerated, in words; nothing where he does not."""
        tolerance = self.plan.tolerance
        most = tolerance.tolerance.max_rate if isinstance(tolerance.tolerance, MaxRate) else None
        if self.audit is None or most is None or tolerance.over != ALL or INFORMED_LINKS not in self.audit:
            return ""
        found = self.audit[INFORMED_LINKS]
        if self.tells_stronger or not found.figure > most:  # not a number where nobody could compare anything
            return ""
        return f"by the audit {found.said}: more than the {100 * most:.4g}% tolerated, which is not held against him"

    @property
    def seeded(self) -> bool:
        """Whether the noise comes from a small seed: then this is for studies, whatever its figures."""
        return self.masking is not None and self.masking.card.seeded

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record; the same plan and key give the same ones."""
        return {
            "passed": self.passed,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "not_judged": list(self.not_judged),
            "despite": self.despite,
            "plan": self.plan.to_dict(),
            "held": list(self.held),
            "not_held": dict(self.plan.tolerance.not_held),
            "laxer_limits": list(self.laxer_limits),
            "beyond_tolerance": self.beyond_tolerance or None,
            "not_known": dict(self.plan.targets.not_known),
            "presence_not_known": self.plan.targets.presence_not_known,
            "budget": None if self.budget is None else self.budget.to_dict(),
            "floor": self.floor.to_dict(),
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "masking": None if self.masking is None else self.masking.to_dict(),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "swapping": None if self.swapping is None else self.swapping.to_dict(),
            "utility": None if self.utility is None else self.utility.to_dict(),
            "audit": None if self.audit is None else self.audit.to_dict(),
            "attempts": [one.to_dict() for one in self.attempts],
            "card_risk": dict(self.card_risk),
            "advice": [one.to_dict() for one in self.advice],
            "notes": [note.to_dict() for note in self.notes],
        }

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return what fits on one screen."""
        lines = [f"{self._head()}", f"  tolerance   {self.plan.tolerance.tolerance}"]
        lines += _wrapped_lines(f"by {', '.join(self.held)}", "              ")
        for name, reason in self.plan.tolerance.not_held.items():
            lines += _wrapped_lines(f"not held: {name} ({reason})", "              ")
        for name, reason in self.plan.targets.not_known.items():
            lines += _wrapped_lines(f"taken as not known: {name} ({reason})", "              ")
        for said in self.laxer_limits:
            lines += _wrapped_lines(f"laxer limits: {said}", "              ")
        if self.beyond_tolerance:
            lines += _wrapped_lines(f"but {self.beyond_tolerance}", "              ")
        if (unaware := self.plan.targets.presence_not_known) is not None:
            said = f"rates over all records, released or not: who was released is not known ({unaware})"
            lines += _wrapped_lines(said, "              ")
        lines += [
            f"  floor       {self.floor.rate:.1%} of {self.floor.targets:,} targets have a fingerprint of their own"
        ]
        if self.reasons:
            lines += ["", "why not", *_items(self.reasons, None)]
        if self.not_judged:
            lines += ["", "not judged", *_items(self.not_judged, None)]
        lines += ["", *self._risk_lines(), *(["", *self._trace_lines()] if self.attempts else [])]
        lines += self._audit_lines()
        if self.advice:
            lines += ["", "what would change it", *_items([str(one) for one in self.advice])]
        lines += ["", "mind", *_items(texts(self.mind))] if self.mind else []
        if self.release is not None:
            leaves = "for studies:" if self.seeded else "may leave:"
            lines += ["", f"{leaves:<15}{self.release}", f"stays inside:  {self.private}"]
        return lines

    def _head(self) -> str:
        if self.passed:
            return "Release: passed" + (", for studies only (--seed)" if self.seeded else "")
        if self.despite is not None:
            return f"Release: NOT passed, released despite that ({self.despite})"
        if self.verdict == NOT_JUDGED:
            return "Release: NOT JUDGED, nothing is released"
        return "Release: REFUSED, nothing is released"

    def _risk_lines(self) -> list[str]:
        width = max(len(name) for name in self.after)
        rows = [
            f"  {'':<{width}}  {'targets':>8}  {'noise alone':>11}  {'as it leaves':>12}  {'guessing':>8}"
        ]
        for name, risk in self.after.items():
            before = f"{self.before[name].rate:.1%}" if name in self.before else "-"
            rows.append(
                f"  {name:<{width}}  {risk.targets:>8,}  {before:>11}  {risk.rate:>12.1%}  {risk.guessing:>8.1%}"
            )
        refused = [f"{name}: {why}" for name, why in self.after.refused.items()]
        shown = [
            "not tried" if rate is None else f"{rate:.1%}"
            for rate in map(self.card_risk.get, ("open", "kept"))
        ]
        card = f"largest rate with the card in the open {shown[0]}, sealed or kept {shown[1]}"
        shares = [f"  {line}" for line in self.after.on_released()]  # wrapped already
        shares += [
            line for said in self.after.on_ceiling() for line in _wrapped_lines(str(said), "  ", "    ")
        ]
        return ["found by", *rows, *shares, *_items(refused), f"  {card}"]

    def _audit_lines(self) -> list[str]:
        if self.audit is None:
            return []
        failed = [f"{one.check}: {one.said}" for one in self.audit.failures]
        counts = f"{len(self.audit.failures)} fail, {len(self.audit.warnings)} warn"
        return ["", f"audit: {counts}, of {len(self.audit)} checks", *_items(failed)]

    def _trace_lines(self) -> list[str]:
        return [
            "tried",
            *(
                f"  {one.how:<11} scale x {one.factor:<6.4g} swaps {one.swaps:>6,}  worst: {one.worst} {one.rate:.1%}"
                f"{'' if one.met else ', too much'}"
                for one in self.attempts
            ),
        ]


def _items(texts: Any, most: int | None = MOST_ITEMS) -> list[str]:
    shown = list(texts)
    more = [f"  and {len(shown) - most} more"] if most is not None and len(shown) > most else []
    return [line for text in shown[:most] for line in _wrapped_lines(text, "  - ", "    ")] + more


def _wrapped_lines(text: str, first: str, following: str | None = None) -> list[str]:
    return wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=first if following is None else following
    )
