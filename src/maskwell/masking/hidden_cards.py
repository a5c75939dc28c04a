"""Releases whose card is not in the open: laws that nobody takes for none, and a codebook without their figures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from ..card import NoiseCard
from ..errors import NoLaw
from ..laws import Additive, Classes, RankSwapped, Transition
from ..laws.chain import combined_of
from ..schema import Column
from .codebook import category_lines, cell, codes_of, label_lines, spreadsheet_lines, what_it_is
from .results import Release

SEALED_FOR_RECIPIENTS = (
    "the noise card of this release is sealed and was not opened: give the identity file of someone it was sealed "
    "for (read_release(folder, identity='key.txt'); maskwell fit --identity key.txt)"
)
SEALED_BY_PASSPHRASE = (
    "the noise card of this release is sealed and was not opened: give its passphrase (read_release(folder, "
    "passphrase=...); maskwell fit --passphrase-file FILE)"
)
KEPT = (
    "the steward kept the noise card of this release: ask for the card and give it (read_release(folder, "
    "card='card.json'); maskwell fit --card card.json)"
)


class UnknownLaws(tuple[Any, ...]):
    """The laws of a card that is not there: no law to read, and whoever asks for them is told why.

    Were they merely empty, every analysis would take noised values for true ones.
    """

    said: str

    def __new__(cls, said: str = KEPT) -> UnknownLaws:
        """Make the unknown laws, with the sentence that says how to have them."""
        laws = super().__new__(cls)
        laws.said = said
        return laws

    def _refuse(self) -> NoReturn:
        raise NoLaw(self.said)

    def __iter__(self) -> Iterator[Any]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()

    def __getitem__(self, index: Any) -> Any:
        self._refuse()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownLaws) and self.said == other.said

    def __hash__(self) -> int:
        return hash(self.said)

    def __repr__(self) -> str:
        return "<laws unknown: the card is not in the open>"

    def __reduce__(self) -> tuple[type[UnknownLaws], tuple[str]]:
        return UnknownLaws, (self.said,)


def withheld_card(said: str, *, records: int | None = None, data_sha256: str = "") -> NoiseCard:
    """Return the card of a release whose card is sealed or kept: it refuses to speak of the noise."""
    return NoiseCard(laws=UnknownLaws(said), records=records, data_sha256=data_sha256)


def is_withheld(card: NoiseCard) -> bool:
    """Whether a card is only the place of one that is sealed or kept."""
    return isinstance(card.laws, UnknownLaws)


def closed_codebook(release: Release, *, sealed: bool) -> str:
    """Return the codebook of a release whose card is not in the open: what was done in words, without figures."""
    schema, card = release.table.schema, release.card
    lines = ["# Codebook", "", f"{len(release):,} records, {len(schema.columns)} columns."]
    if card.seeded:
        lines += ["", "**Made with a small seed for a study: not for release.**"]
    if card.subsampled is not None:
        lines += ["", "The records are a random sample."]
    if card.swapped is not None:
        moved = cell(", ".join(card.swapped.columns))
        lines += ["", f"Some records had {moved} exchanged with another."]
    lines += ["", "| column | what it is | codes | masking |", "|---|---|---|---|"]
    for column in schema.columns:
        cells = (column.name, what_it_is(column), codes_of(column), _masking_kind_text(card, column))
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    for column in schema.columns:
        lines += label_lines(column) or category_lines(release, column)
    lines += spreadsheet_lines(release)
    return "\n".join([*lines, *(_advice(sealed) if card.columns else ())]) + "\n"


def _masking_kind_text(card: NoiseCard, column: Column) -> str:
    if "id" in column.roles:
        return "new random ids"
    if "group" in column.roles:
        return "groups numbered anew"
    exchanged = card.swapped is not None and column.name in card.swapped.columns
    return _change(card, column) + ("; exchanged for some records" if exchanged else "")


def _change(card: NoiseCard, column: Column) -> str:
    """Say what a law does to a column, and not how much."""
    sums, law = dict(card.recomputed), card.law_of(column.name)
    if column.name in sums:
        parts = " + ".join(n if c == 1 else f"{c:g} {n}" for n, c in sums[column.name])
        return f"recomputed as {parts}"
    whole = combined_of(law)
    if whole is None:
        return "as collected"
    if (
        isinstance(whole, Additive)
        and whole.noise.covariance[(j := whole.columns.index(column.name)), j] == 0
    ):
        outlet = whole.outlets[j]
        return "coded at the ends" if outlet.low_coded or outlet.high_coded else "as collected"
    if isinstance(whole, Transition):
        return "changed at random" if whole.true == whole.released_as else "grouped"
    if isinstance(whole, Classes):
        return "released as classes"
    return "exchanged among records" if isinstance(whole, RankSwapped) else "changed by noise"


def _advice(sealed: bool) -> list[str]:
    where = (
        "The noise is described exactly in a card that is sealed for those who may read it (`card.json.age`)."
        if sealed
        else "The noise is described exactly in a card that the steward keeps: ask for it."
    )
    return [
        "",
        "## How to analyse it",
        "",
        where,
        "Without it, estimates from changed columns are biased (slopes shrink, variances grow) by an unknown amount;",
        "with it, fit measurement-error models to get the answers of the original.",
    ]
