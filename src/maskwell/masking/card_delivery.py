"""How the card of a release leaves (open, sealed, kept), and what a reader brings to open it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..card import NoiseCard
from ..errors import BadPlan, nearest, raise_all
from ..io.bundle import MANIFEST
from ..sealing import SUFFIX, read_card

CARD, SCHEMA, CODEBOOK = "card.json", "schema.toml", "codebook.md"
SEALED_CARD = CARD + SUFFIX
CARDS = ("open", "sealed", "kept")

Writer = Callable[[Path], None]


@dataclass(frozen=True, slots=True)
class CardDelivery:
    """How the card of a release leaves, and which further files go into the two halves of the bundle."""

    card: str = "open"
    sealing: Callable[[bytes], bytes] | None = None
    public: Mapping[str, Writer] = field(default_factory=dict)
    inside: Mapping[str, Writer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        raise_all(self._problems(), BadPlan)

    def _problems(self) -> Iterator[str]:
        if self.card not in CARDS:
            yield f"the card leaves {', '.join(CARDS)}, and not {self.card!r}{nearest(str(self.card), CARDS)}"
        elif self.card == "sealed" and self.sealing is None:
            yield "a sealed card needs its recipients or a passphrase: sealing=lambda card: seal(card, to=['age1...'])"
        elif self.card != "sealed" and self.sealing is not None:
            yield f"a card that is {self.card} is not sealed: leave sealing out, or say card='sealed'"
        for name in (*self.public, *self.inside):
            if Path(name).name != name or name.startswith(".") or name == MANIFEST:
                yield f"the further file {name!r} must have a plain file name, such as report.html"
        for name in self.public:
            if name in (CARD, SEALED_CARD, SCHEMA, CODEBOOK) or name.startswith("data."):
                yield f"the further file {name!r} has the name of a file of the release: choose another"

    @property
    def is_open(self) -> bool:
        """Whether the card is there for everybody."""
        return self.card == "open"


OPEN = CardDelivery()


@dataclass(frozen=True, slots=True)
class CardAccess:
    """The card that a reader brings, and what opens a sealed one."""

    card: NoiseCard | str | Path | None = None
    identity: str | Path | None = None
    passphrase: str | None = None

    @property
    def opens(self) -> bool:
        """Whether the reader has something that may open a seal."""
        return self.identity is not None or self.passphrase is not None

    def read(self, path: NoiseCard | str | Path) -> NoiseCard:
        """Read a card, open or sealed."""
        if isinstance(path, NoiseCard):
            return path
        return read_card(path, identity=self.identity, passphrase=self.passphrase)
