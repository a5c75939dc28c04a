"""The intruder who knows the law: he weighs every candidate by how much likelier it makes what was released."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...card import NoiseCard
from ...errors import BadInput, BadPlan, NoLaw, raise_all
from ...masking import Release
from ...table import Table
from ..agreement import is_comparable
from ..contract import Guess, Known, OrderOf
from ..ranking import Blocks, answered, check_fields_named, option_problems, partners_of, search
from ..search import Search, check_fields
from .odds import Odds
from .pairing import swapped_columns

UPPER_BOUND = (
    "f(z) comes from the steward's own true records of the block: an upper bound on what an outsider can do"
)
TOO_SURE = (
    "records at risk were exchanged far more often than the card's share says: his probabilities are too sure"
)


@dataclass(frozen=True, kw_only=True)
class BayesIntruder(Search):
    """Link by the noise card: the released z that maximises log f(z|x) - log f(z) for a target x of its block.

    f(z|x) is the card's law over all fields together, statuses and categories included. f(z) is its average over the
    true records of the steward within the block. No outsider knows these: the rate is an upper bound on what he can
    do. Without f(z) the densities of open values and the probabilities of values at a limit could not be compared.

    `fields` are all columns that have a law, and the key columns that left as they were: these must be the same.
    `direction="to_original"` takes for a released z the x that maximises f(z|x), where f(z) plays no part.
    `assignment="best"` links every record to its best candidate, "one-to-one" lets each be linked once, by the
    largest sum of scores in each block: an intruder who knows that each record belongs to one unit.

    He stands by every link; "no candidate" is a record from which (or to which) no law leads. In the table `score` is
    log f(z|x) - log f(z), `probability` his posterior that the link is right: over the released records of the
    block and its units that were not released; to_original, over its true records. It is that of one link by itself,
    also where links are one-to-one.
    """

    fields: tuple[str, ...] | None = None
    assignment: str = "best"

    def __post_init__(self) -> None:
        raise_all(self.search_problems() + option_problems(self), BadPlan)

    def guess(self, known: Known, release: Release, order_of: OrderOf) -> Guess:
        """Link the intruder's records with the released ones, without any link."""
        fields, notes = self._fields(known, release)
        orders = order_of(known.targets, "known"), order_of(release.table, "released")
        blocks = Blocks(*self.blocks_of(known.targets, release.table), orders)
        columns = self.match_columns(release.table.schema)
        odds = Odds.of(known, release, fields, columns, orders, order_of(known.population))
        best, is_tied = search(odds, blocks, to_masked=self.to_masked, assignment=self.assignment)
        return answered(
            self,
            blocks,
            best,
            is_tied,
            partners_of(odds, blocks, best, to_masked=self.to_masked),
            scores=(best.score, best.second_score),
            columns={"probability": odds.probability(best, to_masked=self.to_masked)},
            fields=fields,
            notes=[UPPER_BOUND, *([TOO_SURE] if swapped_columns(release.card) else []), *notes],
        )

    def _fields(self, known: Known, release: Release) -> tuple[tuple[str, ...], list[str]]:
        """Return the fields, refusing what has no law or was made anew in the release."""
        card, targets, released = release.card, known.targets, release.table
        if not card.laws:
            raise NoLaw(
                "the release has no noise law, which this intruder works by: give its card, or take NearestRecord"
            )
        notes: list[str] = []
        fields = self.fields
        if fields is None:
            blocks = self.match_columns(released.schema)
            clear = [name for name in _in_clear(card, released) if name not in blocks]
            left = [n for n in clear if n in targets.schema and not _comparable(targets, released, n)]
            notes = [f"{name} was released as groups and is not compared" for name in left]
            fields = (*card.columns, *(name for name in clear if name not in left))
        check_fields_named(fields, "name columns with a law in fields")
        check_fields(fields, targets, released)
        raise_all(_problems(fields, known, release), BadInput)
        return fields, notes


def _in_clear(card: NoiseCard, released: Table) -> list[str]:
    """Return the key columns that left as they were."""
    made = {*card.columns, *(total for total, _ in card.recomputed)}
    keys = [column for column in released.schema.columns if "key" in column.roles]
    return [c.name for c in keys if c.name not in made and not c.roles & {"id", "group"}]


def _comparable(known: Table, released: Table, name: str) -> bool:
    return is_comparable(known.schema[name], released.schema[name])


def _problems(fields: Sequence[str], known: Known, release: Release) -> list[str]:
    """Say which fields cannot be compared by a law or by equality."""
    sums = {total for total, _ in release.card.recomputed}
    found = [f"column {n!r} is a sum of others in the release: name its parts" for n in fields if n in sums]
    for name in fields:
        ours, true = known.targets.schema[name], known.population.schema[name]
        if release.table.schema[name].roles & {"id", "group"}:
            found.append(f"column {name!r} is numbered anew in the release: leave it out of fields")
        shapes = [(c.kind, c.categories, c.missing, c.top, c.bottom) for c in (ours, true)]
        if shapes[0] != shapes[1]:
            found.append(
                f"the intruder's column {name!r} is described otherwise than the truth's: give his file its schema"
            )
    return found
