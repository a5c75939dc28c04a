"""What is said beside the figures of `card_value`: its advice, what it takes for granted, and what did not settle."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

from ...laws.unknowns import NAMES, Unknown
from ...notes import Note

if TYPE_CHECKING:
    from .assumptions import AttackAssumptions
    from .plan import BayesIntruder

MARGIN = 0.1  # a difference that may be this large is not called nothing
SURE = 2.0  # standard errors beyond which a difference is more than the luck of these targets
OF_THREE = 3.0  # what was seen in none of n targets may hold for 3 of n (95%)
PROTECTED = 0.01  # a share of the targets below which noise protects nobody to speak of

FAILED = ("attacks.matchings_not_converged", "attacks.chains_not_converged", "attacks.not_settled")
DOUBTFUL = ("attacks.given_release", "attacks.undecided_links", *FAILED)
USUAL = ("attacks.kernel", "attacks.no_helpers", "attacks.claims_every_link")  # what goes without saying


@dataclass(frozen=True, slots=True)
class CardVerdict:
    """What the difference of two rates advises: how much less is found without the parameters, over so many targets.

    `unsettled` says that what it rests on did not come to an end.
    """

    difference: float
    standard_error: float
    targets: int
    unsettled: bool = False

    @property
    def within(self) -> float:
        """How far off the difference may be: few targets that are all alike tell little."""
        error = 0.0 if isnan(self.standard_error) else self.standard_error
        return max(SURE * error, OF_THREE / max(self.targets, 1))

    @property
    def advice(self) -> Note:
        """Trottini's section 6, for this file."""
        low, high = self.difference - self.within, self.difference + self.within
        error = 100 * self.standard_error if self.standard_error > 0 else None  # of 0 none is said
        figures = {"points": 100 * self.difference, "error": error, "unsettled": self.unsettled}
        if low > 0 and self.targets > 1:
            return Note("attacks.keep_parameters", figures)
        if high > MARGIN or self.targets < 2:
            return Note("attacks.too_few_targets", {"targets": self.targets} | figures)
        little = not (low < -MARGIN or high < 0 or self._is_none)
        return Note("attacks.tell_parameters", figures | {"little": little})

    @property
    def _is_none(self) -> bool:
        return f"{abs(self.difference) * 100:.1f}" == "0.0"


def pointless(assumed: AttackAssumptions | None, unknowns: Sequence[Unknown] | None) -> Note | None:
    """Say why there is nothing to tell on a release, where that is so."""
    if assumed is None:
        return None
    if not assumed.by_law:
        return Note("attacks.no_noise_compared")
    if unknowns is not None and not unknowns:
        return Note("attacks.nothing_to_tell", {"columns": assumed.by_law})
    if assumed.targets and assumed.targets - assumed.alone <= PROTECTED * assumed.targets:
        where = (*assumed.blocks, *assumed.in_clear)
        figures = {"columns": where, "alone": assumed.alone, "targets": assumed.targets}
        return Note("attacks.singled_out_in_clear", figures)
    return None


def assumptions_without_card(
    assumed: AttackAssumptions, plan: BayesIntruder, unknowns: Sequence[Unknown] | None
) -> list[Note]:
    """Say what those who were not told hold, and what is not known to them."""
    said = [note for note in assumed.knows if note.code not in USUAL]
    if plan.kernel == "coherent" and plan.marginal == "truth" and plan.to_masked:
        said.insert(1, Note("attacks.marginal_truth"))
    return [*said[:1], *_unknown(unknowns or ()), *said[1:]]


def _unknown(unknowns: Sequence[Unknown]) -> list[Note]:
    columns = {
        name: tuple(dict.fromkeys(column for one in unknowns if one.name == name for column in one.columns))
        for name in NAMES
    }
    found = {name: names for name, names in columns.items() if names}
    return [Note("attacks.unknown_parameters", found)] if found else []


def doubtful_notes(notes: Iterable[tuple[str, Sequence[Note]]]) -> dict[Note, list[str]]:
    """Return what attacks say of themselves that makes their figures doubtful, each once with their names."""
    found: dict[Note, list[str]] = {}
    for name, said in notes:
        for note in said:
            if note.code in DOUBTFUL and name not in found.setdefault(note, []):
                found[note].append(name)
    return found


def once_each(refused: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return why attacks were refused, each reason once with all whom it is about."""
    found: dict[str, list[str]] = {}
    for name, reason in refused.items():
        found.setdefault(reason, []).append(name)
    return [(", ".join(names), reason) for reason, names in found.items()]
