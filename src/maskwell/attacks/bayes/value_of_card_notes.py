"""What is said beside the figures of `card_value`: its advice, what it takes for granted, and what did not settle."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from ...laws.unknowns import BIAS_SD, SCALE, SD, Unknown
from .law_kernels import KERNELS
from .posterior import IF_RELEASED

if TYPE_CHECKING:
    from .plan import BayesIntruder

NEEDED = "without them nobody can analyse the release correctly"
MARGIN = 0.1  # a difference that may be this large is not called nothing
SURE = 2.0  # standard errors beyond which a difference is more than the luck of these targets
OF_THREE = 3.0  # what was seen in none of n targets may hold for 3 of n (95%)
PROTECTED = 0.01  # a share of the targets below which noise protects nobody to speak of

FAILED = ("NOT CONVERGED", "NOT SETTLED")
UNDECIDED = "links are not decided by these draws"
WORDS = {
    SD: "the sd of the noise of",
    BIAS_SD: "the sd of the bias of",
    SCALE: "one factor (scale) on the sds of",
}
FROM_CARD = "(all else, correlations and sd ratios, is taken from the card)"
OUTSIDE = "no outsider has these: an upper bound"


@dataclass(frozen=True, slots=True)
class CardVerdict:
    """What the difference of two rates advises: how much less is found without the parameters, over so many targets."""

    difference: float
    standard_error: float
    targets: int

    @property
    def within(self) -> float:
        """How far off the difference may be: few targets that are all alike tell little."""
        error = 0.0 if isnan(self.standard_error) else self.standard_error
        return max(SURE * error, OF_THREE / max(self.targets, 1))

    @property
    def advice(self) -> str:
        """Trottini's section 6, for this file."""
        low, high = self.difference - self.within, self.difference + self.within
        if low > 0 and self.targets > 1:
            return (
                f"keeping the parameters {self._change()}, against intruders with this prior, which nobody can check; "
                "more noise, told, protects against every intruder and leaves the release open to analysis"
            )
        if high > MARGIN or self.targets < 2:
            few = "1 target is" if self.targets == 1 else f"{self.targets:,} targets are"
            return f"{few} too few to say: keeping the parameters {self._change()}; {NEEDED}"
        nothing = "" if low < -MARGIN or high < 0 or self._is_none else ", nothing to speak of"
        return f"tell the parameters: keeping them {self._change()}{nothing}, and {NEEDED}"

    @property
    def _is_none(self) -> bool:
        return f"{abs(self.difference) * 100:.1f}" == "0.0"

    def _change(self) -> str:
        """Say what keeping the parameters does to the rate; a standard error of 0 is none."""
        error = f"{self.standard_error * 100:.1f}" if self.standard_error > 0 else ""
        if self._is_none:
            return "leaves the rate as it is" + (f" (s.e. {error} points)" if error else "")
        verb = "lowers" if self.difference > 0 else "raises"
        said = f"{verb} the rate by {abs(self.difference) * 100:.1f} points"
        return said + (f" (s.e. {error})" if error else "")


def pointless(assumed: Any, unknowns: Sequence[Unknown] | None) -> str | None:
    """Say why there is nothing to tell on a release, where that is so."""
    if assumed is None:
        return None
    if not assumed.by_law:
        return (
            "the noise protects nobody here, and there is nothing to tell: no column that is compared has any"
        )
    if unknowns is not None and not unknowns:
        names = ", ".join(assumed.by_law)
        return f"there is nothing to tell: the laws of {names} leave nothing unknown, told and not told are the same"
    if assumed.targets and assumed.targets - assumed.alone <= PROTECTED * assumed.targets:
        where = ", ".join((*assumed.blocks, *assumed.in_clear))
        count = f"{assumed.alone:,} of {assumed.targets:,}"
        return f"the noise protects nobody here: {where}, left in clear, alone single out {count} targets"
    return None


def describe_assumptions(assumed: Any, plan: BayesIntruder, unknowns: Sequence[Unknown] | None) -> str:
    """Say what those who were not told hold, and what is not known to them."""
    left_out = (f"kernel {plan.kernel}", "no helpers", "claims every best link")
    said = [one for one in assumed.knows if one not in left_out]
    if plan.kernel == "coherent" and plan.marginal == "truth" and plan.to_masked:
        said.insert(1, f"f(z) by the true records ({OUTSIDE})")
    return "; ".join([*said[:1], *_unknown(unknowns or ()), *said[1:]])


def _unknown(unknowns: Sequence[Unknown]) -> list[str]:
    parts = []
    for name, words in WORDS.items():
        columns = dict.fromkeys(column for one in unknowns if one.name == name for column in one.columns)
        parts += [f"{words} {', '.join(columns)}"] if columns else []
    said = f"unknown: {' and '.join(parts)}" if parts else ""
    return [f"{said} {FROM_CARD}" if any(one.name == SCALE for one in unknowns) else said] if said else []


def doubtful_notes(notes: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Return what attacks say of themselves that makes their figures doubtful, shortened, each once with its names."""
    found: dict[str, list[str]] = {}
    for name, said in notes:
        for note in said:
            if note == IF_RELEASED or UNDECIDED in note or has_failed(note):
                found.setdefault(note.partition(" (first and second")[0], []).append(name)
    return [f"{', '.join(dict.fromkeys(names))}: {note}" for note, names in found.items()]


def has_failed(note: str) -> bool:
    """Whether a note says that an attack did not come to an end."""
    return any(word in note for word in FAILED)


def once_each(refused: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return why attacks were refused, each reason once with all whom it is about; kernels are named alike."""
    found: dict[str, tuple[list[str], str]] = {}
    for name, reason in refused.items():
        alike = re.sub(rf"\b({'|'.join(KERNELS)})\b", "", reason)
        found.setdefault(alike, ([], reason))[0].append(name)
    return [(", ".join(names), reason) for names, reason in found.values()]
