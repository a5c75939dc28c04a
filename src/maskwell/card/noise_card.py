"""The noise card: the law of a release, in the data's units, and nothing that tells about a record."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BadBundle, BadPlan, raise_all
from ..notes import Note
from ..table import Floats, Table
from .validation import card_problems

if TYPE_CHECKING:
    from ..laws import Law

FORMAT, VERSION = "maskwell noise card", 1
INCREMENT = "nested"  # how the label of a stage begins that a nested release adds
SURE_DIGITS = 9  # of sizes and correlations: half of what they are computed to
MOST_BYTES = 2**24  # the correlations of a thousand columns have less than half of it


@dataclass(frozen=True, slots=True)
class SwapParameters:
    """Swapping after the noise: the share of records whose values in `columns` were exchanged within blocks.

    A block is the records that are the same in the columns `blocks` (all records without any). The share is over the
    whole file. Swaps are directed at records at risk, with partners like them, and which these are is not told: for a
    record picked at random the share is the chance that it was exchanged, while in small blocks it is larger.
    """

    share: float
    columns: tuple[str, ...]
    blocks: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        out: dict[str, Any] = {"share": self.share, "columns": list(self.columns)}
        return out | ({"blocks": list(self.blocks)} if self.blocks else {})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SwapParameters:
        """Build it from plain data."""
        return cls(data["share"], tuple(data["columns"]), tuple(data.get("blocks", ())))


@dataclass(frozen=True, slots=True)
class NoiseCard:
    """Everything an analyst or an informed intruder needs to know about the noise.

    `laws` speak of disjoint groups of columns; `recomputed` columns are sums of others and carry no law;
    `subsampled` is the share of records released; `numbered` says that records had no ids, so releases
    cannot be nested; `seeded` that the key came from a small number: not for release. `notes` are the
    steward's own and are never written.
    """

    laws: tuple[Law, ...] = ()
    recomputed: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()
    subsampled: float | None = None
    swapped: SwapParameters | None = None
    numbered: bool = False
    seeded: bool = False
    records: int | None = None
    data_sha256: str = ""
    notes: tuple[Note, ...] = field(default=(), compare=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that some law speaks of."""
        return tuple(name for law in self.laws for name in law.columns)

    @property
    def masked(self) -> tuple[str, ...]:
        """The columns that some law changes; one that only rounds to the unit leaves a column in clear."""
        from ..laws.chain import only_rounds

        return tuple(name for law in self.laws if not only_rounds(law) for name in law.columns)

    def law_of(self, column: str) -> Law | None:
        """Return the law of a column, if it has one."""
        return next((law for law in self.laws if column in law.columns), None)

    def logpdf(self, z: Table, x: Table, *, log_background: Floats | None = None) -> Floats:
        """Return log p(z | x) for each record of two tables in the same order.

        Values at a clamp or a code enter as probabilities, others as densities. Records whose statuses the
        masks cannot have produced get minus infinity. On a release with swapped records the law is
        (1 - share) p(z | x) + share f(z), times the laws of columns that were not swapped. f is the mean of p(z | x)
        over all records x of the block, so the tables must hold whole blocks; `log_background` is its log where
        the caller knows it better.
        """
        return self.logpdf_with_error(z, x, log_background=log_background)[0]

    def logpdf_with_error(
        self, z: Table, x: Table, *, log_background: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return log p(z | x) and the absolute error of the rectangle probabilities inside it."""
        from .release_density import RecordPair

        if len(z) != len(x):
            raise BadPlan(f"the two tables have {len(z):,} and {len(x):,} records; they must be paired")
        everybody = np.arange(len(z))
        kept, moved, error = np.zeros(len(z)), np.zeros(len(z)), np.zeros(len(z))
        for law in self.laws:
            logs, this = RecordPair.of(law, z, x).logpdf(everybody, everybody)
            into = moved if self._moves(law) else kept
            into += logs
            error = np.maximum(error, this)
        if self.swapped is None or self.swapped.share == 0:
            return kept + moved, error
        mixed, further = self._mixed(moved, z, x, log_background)
        return kept + mixed, np.maximum(error, further)

    def _moves(self, law: Law) -> bool:
        """Whether the columns of a law were swapped (they move together)."""
        return self.swapped is not None and not set(law.columns).isdisjoint(self.swapped.columns)

    def _mixed(self, logs: Floats, z: Table, x: Table, background: Floats | None) -> tuple[Floats, Floats]:
        """Mix the density of a record's own values with that of values from anywhere in its block."""
        from .release_density import log_background, own_masses

        assert self.swapped is not None
        share, error = self.swapped.share, np.zeros(len(z))
        spoken_of = {*self.columns, *(total for total, _ in self.recomputed)}
        clear = [name for name in self.swapped.columns if name not in spoken_of]
        if background is None:
            laws = [law for law in self.laws if self._moves(law)]
            background, error = log_background(laws, clear, z, x, self.swapped.blocks)
        with np.errstate(divide="ignore"):
            own = np.log1p(-share) + logs + own_masses(clear, z, x)
        return np.logaddexp(own, np.log(share) + background), error

    def to_dict(self) -> dict[str, Any]:
        """Return the card as plain data: what is written to card.json."""
        out: dict[str, Any] = {"format": FORMAT, "version": VERSION}
        out["laws"] = [law.to_dict() for law in self.laws]
        if self.recomputed:
            out["recomputed"] = {total: dict(parts) for total, parts in self.recomputed}
        if self.swapped is not None:
            out["swapped"] = self.swapped.to_dict()
        for name in ("subsampled", "records"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        for name in ("numbered", "seeded"):
            if getattr(self, name):
                out[name] = True
        if self.seeded:
            out["warning"] = "the noise comes from a small seed: not for release"
        if self.data_sha256:
            out["data_sha256"] = self.data_sha256
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> NoiseCard:
        """Build a card from plain data, refusing what this version cannot read."""
        if data.get("format") != FORMAT:
            raise BadBundle("this is not a maskwell noise card")
        version = data.get("version", 0)
        if not isinstance(version, int | float) or isinstance(version, bool):
            raise BadBundle("the card is damaged: its version is no number")
        if version > VERSION:
            raise BadBundle(f"the card was written by a newer maskwell (card version {version}); upgrade")
        raise_all((f"the card is damaged: {said}" for said in card_problems(data)), BadBundle)
        return cls._read(data)

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> NoiseCard:
        from ..laws import law_from_dict

        swapped = data.get("swapped")
        recomputed = tuple((name, tuple(parts.items())) for name, parts in data.get("recomputed", {}).items())
        return cls(
            laws=tuple(law_from_dict(law) for law in data["laws"]),
            recomputed=recomputed,
            subsampled=data.get("subsampled"),
            swapped=None if swapped is None else SwapParameters.from_dict(swapped),
            numbered=data.get("numbered", False),
            seeded=data.get("seeded", False),
            records=data.get("records"),
            data_sha256=data.get("data_sha256", ""),
        )

    def to_json(self) -> str:
        """Write the card as JSON with a digest of its own content."""
        return _digested_json(self.to_dict())

    def steady_text(self) -> str:
        """Return the card as text that is the same on every processor: what keyed draws are named by."""
        return _digested_json(_steady(self.to_dict()))

    @classmethod
    def from_json(cls, text: str) -> NoiseCard:
        """Read a card, refusing damaged, foreign and newer ones with the reason."""
        if len(text) > MOST_BYTES:
            raise BadBundle(f"the card has {len(text):,} characters: no noise card is so long")
        try:
            content = json.loads(text)
        except json.JSONDecodeError as error:
            raise BadBundle(f"the card is damaged: not JSON at line {error.lineno}") from None
        except (ValueError, RecursionError):
            raise BadBundle(
                "the card is damaged: it is nested too deeply, or has too long a number"
            ) from None
        if not isinstance(content, dict):
            raise BadBundle("this is not a maskwell noise card")
        digest = content.pop("digest", None)
        card = cls.from_dict(content)
        if digest != _digest(content):
            raise BadBundle("the card is damaged or was edited: its digest does not fit its content")
        return card

    @classmethod
    def read(cls, path: str | Path) -> NoiseCard:
        """Read a card from a file."""
        try:
            if (size := Path(path).stat().st_size) > MOST_BYTES:
                raise BadBundle(f"the card {str(path)!r} has {size:,} bytes: no noise card is so large")
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise BadBundle(f"the card {str(path)!r} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise BadBundle(f"the card {str(path)!r} is damaged: not UTF-8 text") from None

    def public(self) -> NoiseCard:
        """Return the card as it may leave: no notes, one law where several stages made it, no suppressed category."""
        return replace(self, laws=tuple(_public(law) for law in self.laws), notes=())


def _public(law: Any) -> Any:
    """Return a law as its readers need it; true categories that no record can leave with lose their names."""
    from ..laws import Transition
    from ..laws.chain import combined_of

    law = combined_of(law)
    if not isinstance(law, Transition):
        return law
    named = [name if name in law.released_as else f"category {i}" for i, name in enumerate(law.true, start=1)]
    return replace(law, true=tuple(named))


def sure_digits(value: Any) -> Any:
    """Return plain data with as many digits as every processor agrees on.

    What comes from eigenvectors differs in its last bits by processor. Draws that are named by it would be others
    elsewhere by the same key, and who holds both files averages two.
    """
    if isinstance(value, Mapping):
        return {name: sure_digits(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [sure_digits(one) for one in value]
    return float(f"{value:.{SURE_DIGITS}g}") if isinstance(value, float) else value


def _steady(value: Any) -> Any:
    """Return plain data with sure digits where eigenvectors give them: repaired correlations, and increments."""
    if isinstance(value, Mapping):
        if str(value.get("label", "")).startswith(INCREMENT):
            return sure_digits(value)
        return {
            name: sure_digits(one) if name == "correlations" else _steady(one) for name, one in value.items()
        }
    return [_steady(one) for one in value] if isinstance(value, list) else value


def _digested_json(content: dict[str, Any]) -> str:
    return _format_json({**content, "digest": _digest(content)}) + "\n"


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode("utf-8")).hexdigest()


def _format_json(value: Any, indent: str = "") -> str:
    """Write JSON for people: lists of plain values on one line, everything else one entry a line."""
    inner = indent + " "
    nested = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(v, dict | list) for v in value)
    )
    if not nested or not value:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        entries = [f"{json.dumps(k, ensure_ascii=False)}: {_format_json(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(inner + entry for entry in entries) + f"\n{indent}}}"
    return "[\n" + ",\n".join(inner + _format_json(entry, inner) for entry in value) + f"\n{indent}]"
