"""Whether a release fits its card, and a target its best record: asked with the links in hand, by the steward alone.

The gap is the mean of log p(z | x) over true pairs less that over fresh draws from p(. | x): 0 but for chance where the
card is right. It is refused beyond FAR standard errors and WIDE in the log (own derivation: by the law of large numbers
its expectation is minus the Kullback-Leibler divergence of the true noise from the card, plus a difference of
entropies). Called by `BayesIntruder.assessed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...card import NoiseCard, RecordPair
from ...errors import BadInput
from ...keys import Key, Stream
from ...laws.additive import logpdf_nearly
from ...laws.chain import combined_of
from ...masking.results import record_blocks
from ...notes import Note
from ...schema import OPEN
from ...table import Floats, Table
from ..pair_density import law_terms, laws_on, summed_logs
from ..protocol import Bools, MarkedGuess
from .compared_fields import recode_as_truth
from .likelihood import swapped_columns

if TYPE_CHECKING:
    from ...masking import Masking

MOST = 20_000  # records by which a card is judged
LEAST = 20  # with fewer nothing is said
IMPOSSIBLE = -1e3  # stands for the log density of what the law excludes
FAR = 5.0  # standard errors beyond which the noise is not that of the card
WIDE = 0.25  # the gap of mean log densities from which on it is refused: an sd that is off by a fifth
BELOW = 10.0  # how much less, in the log, than any true pair has
ANOTHER = "is it the card of another release?"


def check_card(masking: Masking, fields: Sequence[str]) -> list[Note]:
    """Refuse a card whose noise is not that of the release, and say where true pairs contradict it.

    The log densities of true pairs, nearly, are held against those of fresh draws from the same laws. Where linked
    records are no nearer than any others the links are at fault, else the card is. Exchanged columns are left out:
    their records carry the values of others.
    """
    card = masking.release.card
    known = [name for name in fields if name not in swapped_columns(card)]
    rows = np.arange(len(masking.order))[:MOST]
    tables = masking.release.table.take(rows), masking.truth.take(masking.order[rows])
    said = [
        _on_law(pairs)
        for law in map(combined_of, card.laws)
        if (names := [name for name in law.columns if name in known])
        for pairs in _parts(law, card, names, tables)
    ]
    return [note for note in said if note is not None][:1]


def _parts(law: Any, card: NoiseCard, names: Sequence[str], tables: tuple[Table, Table]) -> list[_Pairs]:
    """Return a law on all its compared columns and on each of them, with fresh draws from the whole of it."""
    stream = Stream(Key.from_seed(0), "", "card", record_blocks(tables[1]))
    fresh = law.draw(np.asfortranarray(RecordPair.of(law, *tables).true), stream)
    wanted = [names, *([name] for name in names if len(names) > 1)]
    return [
        _Pairs(
            RecordPair.of(laws_on(card, some)[0], *tables),
            np.asfortranarray(fresh[:, [law.columns.index(name) for name in some]]),
        )
        for some in wanted
    ]


def _on_law(pairs: _Pairs) -> Note | None:
    """Hold one law against the released records whose true values it speaks of."""
    gap, columns = pairs.gap(), tuple(pairs.sides.law.columns)
    if not _is_far(gap):
        return None
    if gap.mean() > 0 or pairs.are_linked():
        how = "nearer to" if gap.mean() > 0 else "further from"
        names = ", ".join(columns)
        raise BadInput(f"released values of {names} are {how} their true ones than this card says: {ANOTHER}")
    return Note("attacks.wrong_links", {"columns": columns})


@dataclass(frozen=True, slots=True)
class _Pairs:
    """One law on released records and on the true ones they are linked with, and fresh draws in their place."""

    sides: RecordPair
    fresh: Floats

    def gap(self) -> Floats:
        """Return by how much the log densities of pairs exceed those of fresh draws from the same true records."""
        here = np.flatnonzero((self.sides.status_x == OPEN).all(axis=1))
        found = np.maximum(self.sides.logpdf_nearly(here, here), IMPOSSIBLE)
        drawn = logpdf_nearly(self.sides.law, self.fresh[here], self.sides.true[here])
        return np.asarray((found - np.maximum(drawn, IMPOSSIBLE))[np.isfinite(drawn)])

    def are_linked(self) -> bool:
        """Whether linked records are nearer than those that are paired anew, or all are impossible alike."""
        rows = np.arange(len(self.sides.true))
        shuffled = np.random.default_rng(0).permutation(len(rows))  # pairs for a comparison: nothing secret
        one, other = (self.sides.logpdf_nearly(rows, pair) for pair in (rows, shuffled))
        nearer, further = int((one > other).sum()), int((one < other).sum())
        return bool(nearer - further > FAR * np.sqrt(nearer + further) or not nearer + further)


def _is_far(gap: Floats) -> bool:
    """Whether a mean gap of log densities is larger than chance explains, and large."""
    if len(gap) < LEAST:
        return False
    return bool(abs(gap.mean()) > max(FAR * np.std(gap, ddof=1) / np.sqrt(len(gap)), WIDE))


def far_targets(marked: MarkedGuess, fields: Sequence[str]) -> int:
    """Count the targets whose likeliest record is further off than any released record is from its own true one."""
    guess, masking = marked.guess, marked.masking
    card = masking.release.card
    laws = [law for law in laws_on(card, fields) if swapped_columns(card).isdisjoint(law.columns)]
    rows = np.flatnonzero(_mark_likely_links(marked))
    if not laws or not len(rows):
        return 0
    released = masking.release.table
    sides = guess.searcher[rows], guess.found[rows]
    known, found = sides if guess.to_masked else sides[::-1]
    own = summed_logs(law_terms(laws, released, masking.truth), np.arange(len(released)), masking.order)
    held = recode_as_truth(marked.known, masking.truth, fields)
    best = summed_logs(law_terms(laws, released, held), found, known)
    usual = own[np.isfinite(own)]
    return int((best < usual.min() - BELOW).sum()) if len(usual) else 0


def _mark_likely_links(marked: MarkedGuess) -> Bools:
    """Mark the targets that have a best record which is likelier than not having been released."""
    guess = marked.guess
    absent = guess.columns.get("not_released", np.zeros(len(guess)))
    return np.asarray((guess.found >= 0) & (np.nan_to_num(guess.columns["probability"]) > absent))
