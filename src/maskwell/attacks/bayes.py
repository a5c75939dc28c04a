"""The intruder who knows the law: he weighs every candidate by how much likelier it makes what was released."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..card import NoiseCard
from ..errors import BadInput, BadPlan, NoLaw, raise_all
from ..masking import Release
from ..table import Floats, Table
from .agreement import is_comparable
from .contract import Bools, Guess, Ints, Known, OrderOf
from .pairwise import Same, Term, law_terms, laws_on, summed_logs
from .ranking import (
    PAIRS_AT_ONCE,
    Batch,
    Best,
    Blocks,
    answered,
    check_fields_named,
    in_runs,
    log_sum,
    members,
    option_problems,
    partners_of,
    search,
)
from .search import Search, block_codes, check_fields

SURE = 1e-12  # a record from which alone a released one can have come is not weighed higher than this allows
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
            notes=[UPPER_BOUND, *([TOO_SURE] if _swapped(release.card) else []), *notes],
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


@dataclass(frozen=True, slots=True)
class Pairing:
    """log p(z | x) of pairs within blocks of what left in clear.

    A share of the records carries the values of another of its block in the swapped columns: `moved` are the factors
    that speak of these, `kept` the others, and p(z|x) = kept [(1 - share) moved + share f(moved)].
    """

    kept: list[Term]
    moved: list[Term]
    share: float

    @classmethod
    def of(cls, card: NoiseCard, fields: Sequence[str], z: Table, x: Table) -> Pairing:
        """Prepare a card for pairs of records of two tables."""
        swapped = _swapped(card)
        clear = [name for name in fields if name in swapped and card.law_of(name) is None]
        same: list[Term] = [Same.of(clear, z, x)] if clear else []
        laws = laws_on(card, fields)
        kept = [law for law in laws if swapped.isdisjoint(law.columns)]
        moved = [law for law in laws if not swapped.isdisjoint(law.columns)]
        share = card.swapped.share if card.swapped is not None and (same or moved) else 0.0
        return cls(law_terms(kept, z, x), same + law_terms(moved, z, x), share)

    def logs(self, z: Ints, x: Ints, log_moved: Floats) -> Floats:
        """Return log p(z | x) of listed pairs; `log_moved` has the block's density f(moved) of each z."""
        logs, moved = summed_logs(self.kept, z, x), summed_logs(self.moved, z, x)
        if not self.share:
            return np.asarray(logs + moved)
        with np.errstate(divide="ignore"):
            own, other = np.log1p(-self.share) + moved, np.log(self.share) + log_moved[z]
        return np.asarray(logs + np.logaddexp(own, other))


def _swapped(card: NoiseCard) -> set[str]:
    return set(card.swapped.columns) if card.swapped is not None and card.swapped.share > 0 else set()


@dataclass(frozen=True, slots=True)
class Unit:
    """Some released records of a block with all its true ones and the intruder's."""

    true: Ints
    known: Ints
    released: Ints


@dataclass(frozen=True, slots=True)
class Odds:
    """Scores log f(z|x) - log f(z); `log_f` is filled in as blocks are scored.

    Values that left in clear split the blocks further: no possible candidate is lost by it. `true` has the true
    records of each block; `total` and `unreleased` count, for each released record, the true records of its matching
    block and those of them that were not released.
    """

    truth: Pairing
    targets: Pairing
    blocks: Blocks
    true: dict[int, Ints]
    total: Ints
    unreleased: Ints
    log_f: Floats
    log_moved: Floats

    @classmethod
    def of(
        cls,
        known: Known,
        release: Release,
        fields: Sequence[str],
        columns: Sequence[str],
        orders: tuple[Ints, Ints],
        true_order: Ints,
    ) -> Odds:
        """Prepare the laws and the blocks of both sides and of the steward's true records."""
        card, released, population = release.card, release.table, known.population
        truth = Pairing.of(card, fields, released, population)
        same = known.targets is population
        targets = truth if same else Pairing.of(card, fields, released, known.targets)
        clear = [name for name in fields if card.law_of(name) is None and name not in _swapped(card)]
        fine, true = _refined(known, released, (*columns, *clear), orders)
        ours, theirs = block_codes(population, released, columns)
        total, nothing = _counted(ours, theirs), np.full(len(released), -np.inf)
        wanted = np.isin(fine.released, fine.known)
        moved = _log_moved(truth, card, released, population, true_order, wanted) if truth.share else nothing
        unreleased = np.maximum(total - _counted(theirs, theirs), 0)
        return cls(truth, targets, fine, members(true, true_order), total, unreleased, nothing.copy(), moved)

    def batches(self) -> Iterator[Batch]:
        """Score all pairs within blocks."""
        some: list[Unit] = []
        for unit in self._units():
            some.append(unit)
            if sum(len(one.true) * len(one.released) for one in some) >= PAIRS_AT_ONCE:
                yield from self._scored(some)
                some = []
        yield from self._scored(some)

    def _units(self) -> Iterator[Unit]:
        for block, known, released in self.blocks:
            true = known if self.targets is self.truth else self.true.get(block, np.empty(0, np.int64))
            for run in in_runs(released, len(true)):
                yield Unit(true, known, run)

    def _scored(self, units: list[Unit]) -> Iterator[Batch]:
        """Score the pairs of several blocks at once: the laws are asked once for all of them."""
        logs = self._logs(self.truth, [(unit.true, unit.released) for unit in units])
        for unit, block in zip(units, logs, strict=True):
            self.log_f[unit.released] = _log_mean(block, self.total[unit.released])
        if self.targets is not self.truth:
            logs = self._logs(self.targets, [(unit.known, unit.released) for unit in units])
        for unit, block in zip(units, logs, strict=True):
            scores = _against(block, self.log_f[unit.released])
            yield Batch(unit.known, unit.released, scores, _against_others(scores, self.total[unit.released]))

    def _logs(self, pairing: Pairing, sides: list[tuple[Ints, Ints]]) -> list[Floats]:
        """Return for each pair of sides the matrix of log p(z | x): true records x released ones."""
        z, x = _listed(sides)
        parts = np.split(pairing.logs(z, x, self.log_moved), np.cumsum([len(a) * len(b) for a, b in sides]))
        return [part.reshape(len(a), len(b)) for part, (a, b) in zip(parts, sides, strict=False)]

    def pairs(self, known: Ints, released: Ints) -> Floats:
        """Score listed pairs."""
        same = self.blocks.known[known] == self.blocks.released[released]
        out = np.full(len(known), -np.inf)
        logs = self.targets.logs(released[same], known[same], self.log_moved)
        out[same] = _against(logs, self.log_f[released[same]])
        return out

    def probability(self, best: Best, *, to_masked: bool) -> Floats:
        """Return the posterior of each link, NaN where there is none."""
        linked = np.flatnonzero(best.place >= 0)
        out, total, own = np.full(len(best.place), np.nan), best.log_total[linked], best.score[linked]
        if to_masked:
            own = _against_others(own, self.total[best.place[linked]])
            with np.errstate(divide="ignore"):
                total = np.logaddexp(total, np.log(self.unreleased[best.place[linked]]))
        else:
            total = np.maximum(total, np.log(self.total[linked]))
        out[linked] = np.exp(own - total)
        return out


def _log_moved(
    pairing: Pairing, card: NoiseCard, released: Table, population: Table, order: Ints, wanted: Bools
) -> Floats:
    """Return for each wanted released record the log density of its swapped columns over its block's true records."""
    assert card.swapped is not None
    true, theirs = block_codes(population, released, card.swapped.blocks)
    total, out = _counted(true, theirs), np.full(len(released), -np.inf)
    for _, records, block in Blocks(true, theirs, (order, np.arange(len(theirs)))):
        for run in in_runs(block[wanted[block]], len(records)):
            logs = summed_logs(pairing.moved, *_listed([(records, run)]))
            out[run] = _log_mean(logs.reshape(len(records), len(run)), total[run])
    return out


def _listed(sides: list[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """List the pairs of all true with all released records of each block: released and true record numbers."""
    nothing = np.empty(0, np.int64)
    z = [np.tile(released, len(true)) for true, released in sides]
    x = [np.repeat(true, len(released)) for true, released in sides]
    return np.concatenate([nothing, *z]), np.concatenate([nothing, *x])


def _log_mean(logs: Floats, count: Ints) -> Floats:
    return np.asarray(log_sum(logs, axis=0) - np.log(np.maximum(count, 1)))


def _counted(blocks: Ints, of: Ints) -> Ints:
    """Return how many records lie in the block of each of some others."""
    counts = np.bincount(blocks, minlength=int(max(blocks.max(initial=0), of.max(initial=0))) + 1)
    return np.asarray(counts[of])


def _refined(
    known: Known, released: Table, columns: Sequence[str], orders: tuple[Ints, Ints]
) -> tuple[Blocks, Ints]:
    """Return blocks by more columns, and those of the true records, numbered alike."""
    ours, theirs = block_codes(known.targets, released, columns)
    true, again = block_codes(known.population, released, columns)
    number = np.full(int(max(true.max(initial=0), again.max(initial=0))) + 1, -1, np.int64)
    number[again] = theirs
    return Blocks(ours, theirs, orders), number[true]


def _against_others(scores: Floats, count: Ints) -> Floats:
    """Return log f(z|x) - log f'(z), f' the mean over the other true records of the block: x itself is left out.

    With r = f(z|x) / f(z) and N records this is r (N - 1) / (N - r). It grows with r, so the best link is the same, but
    only these weights make a posterior: who asks whether z is x's or another's must not find x among the others.
    """
    records = count.astype(np.float64)
    share = np.minimum(np.exp(scores - np.log(records)), 1.0)
    rest = np.maximum(1.0 - share, SURE)
    return np.asarray(scores + np.log(np.maximum(records - 1.0, SURE) / records) - np.log(rest))


def _against(logs: Floats, log_f: Floats) -> Floats:
    """Return log f(z|x) - log f(z), minus infinity where either is: what no true record leads to is nobody's."""
    return np.where(np.isneginf(log_f), -np.inf, logs - np.where(np.isneginf(log_f), 0.0, log_f))
