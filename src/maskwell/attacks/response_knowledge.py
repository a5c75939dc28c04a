"""Response knowledge: an intruder who attacks a sample of the records knows that the target is in it.

Where a release has m of n records, an intruder who finds k of them finds k / n of all persons of the file and k / m of
those in the release. Who was asked in a survey often tells, and whoever was harmed has no use for the first figure: so
a tolerance is held against k / m, by an intruder who knows whose records were released (Duncan and Lambert, 1989,
section 2; Hundepool and others, Statistical Disclosure Control, 2012, section 3.3). No other unit can then be a
candidate: the population whose distribution is known, the helpers who compete for records and the fingerprints among
which one is unique are those of the release. That is the attack on a masking of the released records alone.

Chosen unless a plan says `response_knowledge=False`, or the intruder holds a file of its own, in which anybody may be:
then the rate is over all targets. Both rates stand in the `Risk`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import BadPlan
from ..masking.results import Masking, labels_of
from ..notes import Note
from .protocol import NOBODY, Attack, Ints
from .targets import RecordSet

if TYPE_CHECKING:
    from ..table import Table
    from .risk import Risk

# Of what intruders share: the masking of the released records, and what those share who attack that.
SHARED, WITHIN = "released records", "among the released records"


class Targets(NamedTuple):
    """An attack on the released records; `among` are those of them that may be targets (nothing: all, or as it says).

    `share` is that of its targets in the whole truth that were released.
    """

    attack: Attack
    among: Ints | None
    share: float


@dataclass(frozen=True, slots=True)
class ReleasedPart:
    """A masking of the records that were released, as one knows it who knows whose they are.

    `records` are their numbers in the whole truth, `place` tells where each of its records stands here (-1: nowhere).
    """

    masking: Masking
    records: Ints
    place: Ints
    whole: Table

    def targets(self, attack: Attack) -> Targets:
        """Return the attack on this part, the records among which its targets are chosen, and the share of its own.

        Small blocks are those of the whole truth.
        """
        if isinstance(attack.targets, RecordSet):
            asked = np.asarray(attack.targets.numbers, np.int64)
            here = self._here(asked)
            return Targets(
                replace(attack, targets=RecordSet(tuple(here.tolist()))), None, len(here) / len(asked)
            )
        if attack.largest_target_block is None:
            return Targets(attack, None, len(self.records) / len(self.whole))
        asked = attack.eligible_records(self.whole)
        here = self._here(asked)
        return Targets(attack, here, len(here) / len(asked))

    def _here(self, asked: Ints) -> Ints:
        here = self.place[asked]
        here = here[here != NOBODY]
        if not len(here):
            raise BadPlan("none of the targets is in the release, so that nobody could be found: take others")
        return np.asarray(here)

    def in_whole(self, risk: Risk, attack: Attack, share: float) -> Risk:
        """Return what was found with records named as in the whole truth, and the rate over all targets beside it."""
        belief = risk.belief
        if self.whole.ids is None:
            side = "target_id" if attack.to_masked else "linked_id"
            names = self._names(risk.table[side])
            risk = replace(
                risk, table=risk.table.set_column(risk.table.column_names.index(side), side, names)
            )
            if belief is not None and attack.to_masked:
                belief = replace(belief, labels=self._names(belief.labels))
        note = Note("attacks.among_released", {"share": share, "rate_of_all": share * risk.rate})
        return replace(
            risk,
            attack=attack,
            belief=belief,
            released_share=share,
            among_released=True,
            notes=(note, *risk.notes),
        )

    def _names(self, numbers: Any) -> Any:
        """Return the numbers of records in the whole truth, from 1 on, as text; records without ids are called so."""
        import pyarrow.compute as pc

        places = pc.index_in(numbers, value_set=labels_of(self.masking.truth))
        return labels_of(self.whole, self.records).take(places)


def released_part(masking: Masking, shared: dict[Any, Any]) -> ReleasedPart | None:
    """Return the masking of the released records, once for all intruders of an attack; nothing where all were."""
    known: ReleasedPart | None = shared.get(SHARED)
    if known is not None and known.whole is masking.truth and known.masking.release is masking.release:
        return known
    order = masking.order
    records = np.unique(order[order >= 0])
    if not len(records) or len(records) == len(masking.truth):
        return None
    place = np.full(len(masking.truth) + 1, NOBODY, np.int64)  # nobody, -1, is the last one
    place[records] = np.arange(len(records))
    exchange = masking.exchange
    if exchange is not None:
        exchange = replace(exchange, pairs=place[exchange.pairs])
    part = replace(
        masking,
        truth=masking.truth.take(records),
        masked=masking.masked.take(records) if len(masking.masked) == len(masking.truth) else masking.masked,
        kept=None,
        given=(masking.release, place[order]),
        exchange=exchange,
    )
    shared.pop(WITHIN, None)
    shared[SHARED] = found = ReleasedPart(part, records, place[:-1], masking.truth)
    return found
