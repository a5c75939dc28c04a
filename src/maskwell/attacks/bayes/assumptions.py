"""What an attack compared and took for granted, in words: nobody should have to guess what a rate is about."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...notes import Note
from ...words.phrases import count_phrase
from ..joint_codes import block_codes
from ..protocol import MarkedGuess

if TYPE_CHECKING:
    from .plan import BayesIntruder
    from .unknown_noise.priors import Prior


@dataclass(frozen=True, slots=True)
class AttackAssumptions:
    """What was compared and how: `by_law` are fields by their noise, `in_clear` those that left as they were.

    `alone` counts the targets that blocks and fields in clear single out by themselves, of so many `targets`.
    """

    by_law: tuple[str, ...]
    in_clear: tuple[str, ...]
    blocks: tuple[str, ...]
    knows: tuple[Note, ...]
    alone: int = 0
    targets: int = 0

    @classmethod
    def of(cls, plan: BayesIntruder, fields: tuple[str, ...], marked: MarkedGuess) -> AttackAssumptions:
        """Gather what a plan and its release say."""
        released = marked.masking.release
        card, blocks = released.card, plan.match_columns(released.table.schema)
        hidden = {*card.masked, *(() if card.swapped is None else card.swapped.columns)}
        clear = tuple(name for name in fields if name not in hidden)
        sure = [name for name in clear if plan.error is None or name not in plan.error.columns]
        ours, theirs = block_codes(marked.known, released.table, (*blocks, *sure))
        count = np.bincount(theirs, minlength=int(max(ours.max(initial=0), theirs.max(initial=0))) + 1)
        searching = np.unique(marked.guess.searcher) if plan.to_masked else np.arange(len(ours))
        return cls(
            tuple(name for name in fields if name in hidden),
            clear,
            blocks,
            _knowledge(plan, _holds_all(plan, marked)),
            int((count[ours[searching]] == 1).sum()),
            len(searching),
        )

    def lines(self) -> list[str]:
        """Return what a `Risk` prints of it."""
        return [*self.compared(), *_indented_lines("; ".join(map(str, self.knows)))]

    def compared(self) -> list[str]:
        """Say which columns were compared, and how."""
        where = (
            f"within blocks of {', '.join(self.blocks)}" if self.blocks else "among all records, no blocks"
        )
        what = f"compares {', '.join(self.by_law) or 'nothing'} by the noise, {where}"
        return [line for text in (what, *self._on_clear()) for line in _indented_lines(text)]

    def _on_clear(self) -> list[str]:
        if not self.in_clear:
            return []
        count = (
            f"they and the blocks alone single out {self.alone:,} of {count_phrase(self.targets, 'target')}"
        )
        remedy = "if the intruder does not know them, name fields without them"
        return [f"LEFT IN CLEAR and compared exactly: {', '.join(self.in_clear)}; {count}; {remedy}"]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        names = ("by_law", "in_clear", "blocks")
        out: dict[str, Any] = {name: list(getattr(self, name)) for name in names}
        out["knows"] = [note.to_dict() for note in self.knows]
        return out | {"singled_out_in_clear": self.alone}


def _indented_lines(text: str) -> list[str]:
    return wrap(text, 100, initial_indent="  ", subsequent_indent="    ")


def _holds_all(plan: BayesIntruder, marked: MarkedGuess) -> bool:
    """Whether the intruder's file has every unit that can help to find those in it."""
    held = np.unique(marked.numbers[marked.numbers >= 0])
    return len(plan.company(marked.masking.truth, held)) == len(held)


def _knowledge(plan: BayesIntruder, holds_all: bool) -> tuple[Note, ...]:
    """Say what the intruder holds and how he weighs it; that f(z) is by the true records is a note of its own."""
    said = [Note("attacks.holds_card") if plan.prior is None else _prior(plan.prior)]
    said.append(Note("attacks.kernel", {"kernel": plan.kernel}))
    if plan.kernel == "coherent" and plan.to_masked and plan.helpers != "all" and plan.marginal != "truth":
        is_gaussian = plan.marginal == "gaussian"
        said.append(Note("attacks.marginal_gaussian") if is_gaussian else Note("attacks.marginal_own"))
    if plan.error is not None:
        said.append(Note("attacks.own_values_off", {"columns": tuple(plan.error.columns)}))
    said.append(_company(plan, holds_all))
    if plan.assignment != "best":
        said.append(Note("attacks.one_to_one_links"))
    said += [] if plan.to_masked else [Note("attacks.searches_truth")]
    above = {"threshold": plan.threshold}
    said.append(Note("attacks.claims_above", above) if plan.threshold else Note("attacks.claims_every_link"))
    return tuple(said)


def _company(plan: BayesIntruder, holds_all: bool) -> Note:
    """Say who helps."""
    if not plan.helpers:
        return Note("attacks.no_helpers")
    if plan.helpers != "all":
        return Note("attacks.helpers", {"helpers": int(plan.helpers)})
    return Note("attacks.knows_all_others") if holds_all else Note("attacks.knows_all_in_file")


def _prior(prior: Prior) -> Note:
    """Say by which prior the parameters are guessed."""
    figures = {
        "family": prior.family,
        "mean_over_sd": prior.mean_over_sd,
        "own": tuple(dict(prior.given)),
        "shared": tuple(prior.shared),
    }
    return Note("attacks.holds_prior", figures)
