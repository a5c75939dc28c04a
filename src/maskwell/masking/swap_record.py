"""What directed swapping did to a masking: who was exchanged, why no more, and what it cost. It stays inside."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..notes import Note
from ..table import Table
from ..tolerances import SwapShare, tolerance_from_dict
from ..words.masking import two_rates_phrase

if TYPE_CHECKING:
    import pyarrow as pa

    from ..tolerances import SwapAim

Integers = npt.NDArray[np.int64]

BOTH_TELL = Note("masking.both_tell")
LISTS = ("columns", "fields", "blocks", "rest")
MOMENTS = ("before", "after", "his_record", "his_values")
INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}  # as text: JSON has no such numbers
COVARIANCES = {
    "column": "string",
    "other": "string",
    "both_swapped": "bool",
    "before": "double",
    "after": "double",
    "correlation_before": "double",
    "correlation_after": "double",
}
DOMAINS = {
    "domain": "string",
    "value": "string",
    "records": "int64",
    "column": "string",
    "open_before": "int64",
    "open_after": "int64",
    "mean_before": "double",
    "mean_after": "double",
    "shift_in_sds": "double",
}


@dataclass(frozen=True, slots=True)
class SwapStanding:
    """What the intruder achieves at one moment: `expected_correct` shares ties, `correct` is as drawn among them."""

    targets: int
    claims: int
    correct: int
    expected_correct: float

    @property
    def expected_incorrect(self) -> float:
        """How many of the links claimed are wrong, ties shared."""
        return self.claims - self.expected_correct

    @property
    def rate(self) -> float:
        """The share of the targets linked correctly, ties shared."""
        return self.expected_correct / self.targets


@dataclass(frozen=True, slots=True)
class Exchange:
    """Who carries whose values: `pairs` of record numbers of the truth whose values in `columns` were exchanged.

    Within blocks of `blocks`. `exempt` is the steward's reason not to count who finds the exchanged values again (the
    record is then what was not exchanged); nothing where both count. `at_risk_share` is the share of the records at
    risk that were exchanged, nothing where it is not known: swaps are directed at these.
    """

    columns: tuple[str, ...]
    blocks: tuple[str, ...]
    pairs: Integers = field(repr=False, compare=False)
    exempt: str | None = None
    at_risk_share: float | None = None

    def donors(self, records: Integers) -> Integers:
        """Return for each of some records of the truth the one whose values stand in the exchanged columns."""
        donor = np.arange(max(int(part.max(initial=-1)) for part in (records, self.pairs)) + 1)
        donor[self.pairs[:, 0]], donor[self.pairs[:, 1]] = self.pairs[:, 1], self.pairs[:, 0]
        return np.asarray(donor[records])


@dataclass(frozen=True, slots=True)
class SwapAttempt:
    """One attack on a masking with so many swaps, and whether the tolerance held."""

    swaps: int
    expected_correct: float
    expected_incorrect: float
    met: bool


@dataclass(frozen=True, slots=True)
class Stuck:
    """A record at risk that could not be exchanged: its number in the truth, from 0, and why.

    `after` counts the swaps that came before it in the keyed order.
    """

    record: int
    reason: str
    after: int


@dataclass(frozen=True)
class Swapping:
    """The record of directed swapping, for the steward: `pairs` are links.

    `pairs` has two record numbers of the truth, from 0, for each swap: the record at risk and its partner. `at_risk`
    counts the records that the intruder linked correctly, or had among the tied best, `at_risk_moved` those of them who
    were exchanged; `needed` is Moore's number, which supposes that each swap turns one link. `after` is the worse of
    `his_record` (he finds the row whose `rest`, what stayed in it, is his target's) and `his_values` (the row that
    carries the target's exchanged values), unless the steward exempted the latter: `exempt` is the reason. `trace` has
    every attack that was made, in order.

    `covariances` and `domains` compare the masked values before and after the exchange: pairwise covariances (sds over
    all open values times the correlation where both are open) of swapped columns, and means by sub-domain.
    """

    attack: Mapping[str, Any]
    tolerance: SwapAim
    columns: tuple[str, ...]
    fields: tuple[str, ...]
    blocks: tuple[str, ...]
    released: int
    at_risk: int
    needed: int
    met: bool
    before: SwapStanding
    after: SwapStanding
    his_record: SwapStanding
    his_values: SwapStanding
    rest: tuple[str, ...]
    pairs: Integers = field(repr=False, compare=False)
    exempt: str | None = None
    stuck: tuple[Stuck, ...] = field(default=(), repr=False)
    trace: tuple[SwapAttempt, ...] = field(default=(), repr=False)
    covariances: pa.Table | None = field(default=None, repr=False, compare=False)
    domains: pa.Table | None = field(default=None, repr=False, compare=False)
    at_risk_moved: int = 0

    @property
    def exchange(self) -> Exchange | None:
        """Who carries whose values; nothing where nobody was exchanged."""
        if not self.swaps:
            return None
        moved = self.at_risk_moved / self.at_risk if self.at_risk_moved else None
        return Exchange(self.columns, self.blocks, self.pairs, self.exempt, moved)

    @property
    def swaps(self) -> int:
        """How many pairs of records were exchanged."""
        return len(self.pairs)

    @property
    def records(self) -> int:
        """How many records carry the values of another."""
        return 2 * len(self.pairs)

    @property
    def share(self) -> float:
        """The share of the released records that carry the values of another."""
        return self.records / self.released

    @property
    def widened(self) -> tuple[str, ...]:
        """The columns that moved beside the fields that the intruder compares."""
        return tuple(name for name in self.columns if name not in self.fields)

    @property
    def reasons(self) -> dict[str, int]:
        """How many records were stuck, by reason."""
        return dict(Counter(one.reason for one in self.stuck).most_common())

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record, no pair."""
        out: dict[str, Any] = {"attack": dict(self.attack), "tolerance": self.tolerance.to_dict()}
        for name in LISTS:
            out[name] = list(getattr(self, name))
        for name in ("released", "at_risk", "needed", "swaps", "records", "share", "met"):
            out[name] = getattr(self, name)
        out["stuck"], out["exempt"] = self.reasons, self.exempt
        for name in MOMENTS:
            moment: SwapStanding = getattr(self, name)
            out[name] = asdict(moment) | {"rate": moment.rate}
        out["trace"] = [asdict(one) for one in self.trace]
        out["largest_domain_shift_in_sds"] = self.largest_domain_shift[0]
        out["largest_correlation_change"] = self.largest_correlation_change[0]
        return out

    @property
    def largest_domain_shift(self) -> tuple[float, str]:
        """The largest change of a sub-domain's mean, in sds of the column, and where."""
        return _largest(self.domains, lambda row: row["shift_in_sds"], ("domain", "column"))

    @property
    def largest_correlation_change(self) -> tuple[float, str]:
        """The largest change of a correlation with an unswapped column, and which."""
        change = ("correlation_after", "correlation_before")
        return _largest(self.covariances, lambda row: row[change[0]] - row[change[1]], ("column", "other"))

    def note(self) -> Note:
        """Say in one sentence what was exchanged."""
        if not self.swaps:
            return Note("masking.no_exchange")
        names = ("records", "share", "blocks", "columns", "swaps")
        return Note("masking.exchange", {name: getattr(self, name) for name in names})

    def two_rates(self) -> str:
        """Say what the two rates mean, and which of them the tolerance was held against."""
        return two_rates_phrase(self.rest, self.exempt)

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> list[str]:
        answer = "met" if self.met else "NOT MET"
        lines = [f"Swapping against {self.attack.get('attack', 'an attack')}, {self.tolerance}: {answer}"]
        lines += _indented_lines(str(self.note()))
        moments = (self.before, self.after)
        rows = [
            ("links claimed", *(f"{one.claims:,}" for one in moments)),
            ("correct, ties shared", *(f"{one.expected_correct:,.1f}" for one in moments)),
            ("rate", *(f"{one.rate:.1%}" for one in moments)),
            ("  his record", "", f"{self.his_record.rate:.1%}"),
            ("  his values", "", f"{self.his_values.rate:.1%}"),
        ]
        lines += ["", f"  {'':<22}{'before':>10}{'after':>10}"]
        lines += [f"  {name:<22}{before:>10}{after:>10}" for name, before, after in rows]
        lines += _indented_lines(self.two_rates())
        what = "asked for" if isinstance(self.tolerance, SwapShare) else "needed if each turns one link"
        lines += ["", *_indented_lines(f"at risk {self.at_risk:,}; swaps {what} {self.needed:,}")]
        if self.stuck:
            why = "; ".join(f"{count:,} {reason}" for reason, count in self.reasons.items())
            lines += _indented_lines(f"could not be exchanged: {why}")
        lines += _indented_lines(f"tried: {', '.join(f'{one.swaps:,}' for one in self.trace)} swaps")
        for what, (size, where) in (
            ("a domain's mean (in sds)", self.largest_domain_shift),
            ("a correlation with an unswapped column", self.largest_correlation_change),
        ):
            lines += _indented_lines(f"largest change of {what}: {size:.2g} ({where})") if where else []
        return lines + (_indented_lines(str(BOTH_TELL)) if self.swaps else [])

    def to_json(self) -> str:
        """Write everything, pairs too: for the private half. A figure that there is not (NaN) is null."""
        out = {
            name: getattr(self, name) for name in (*LISTS, "released", "at_risk", "at_risk_moved", "exempt")
        }
        out |= {"needed": self.needed, "met": self.met, "attack": dict(self.attack)}
        out |= {"tolerance": self.tolerance.to_dict(), "pairs": self.pairs.tolist()}
        out |= {name: asdict(getattr(self, name)) for name in MOMENTS}
        out |= {name: [asdict(one) for one in getattr(self, name)] for name in ("stuck", "trace")}
        for name in ("covariances", "domains"):
            table = getattr(self, name)
            out[name] = None if table is None else table.to_pydict()
        return json.dumps(_plain(out), indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Swapping:
        """Read what `to_json` wrote."""
        data: dict[str, Any] = json.loads(text)
        for name in LISTS:
            data[name] = tuple(data[name])
        data["attack"] = _as_given(data["attack"])
        data["tolerance"] = tolerance_from_dict(data["tolerance"])
        data["pairs"] = np.array(data["pairs"], np.int64).reshape(-1, 2)
        data |= {name: SwapStanding(**data[name]) for name in MOMENTS}
        data["stuck"] = tuple(Stuck(**one) for one in data["stuck"])
        data["trace"] = tuple(SwapAttempt(**one) for one in data["trace"])
        for name, kinds in (("covariances", COVARIANCES), ("domains", DOMAINS)):
            data[name] = None if data[name] is None else figures_table(kinds, data[name])
        return cls(**data)


def figures_table(kinds: Mapping[str, str], columns: Mapping[str, Sequence[Any]]) -> pa.Table:
    """Make an Arrow table of some columns in the types that `kinds` says; a figure that there is not is NaN."""
    import pyarrow as pa

    types: dict[str, Any] = {"string": pa.string(), "bool": pa.bool_(), "int64": pa.int64()}
    types["double"] = pa.float64()
    given = {
        name: [math.nan if one is None else one for one in columns[name]]
        if kind == "double"
        else columns[name]
        for name, kind in kinds.items()
    }
    return pa.table({name: pa.array(given[name], types[kind]) for name, kind in kinds.items()})


def _plain(data: Any) -> Any:
    """Return plain data that strict JSON can hold: NaN as nothing, the infinities by name."""
    if isinstance(data, Mapping):
        return {name: _plain(one) for name, one in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(one) for one in data]
    if isinstance(data, float) and not math.isfinite(data):
        return None if math.isnan(data) else "Infinity" if data > 0 else "-Infinity"
    return data


def _as_given(data: Any) -> Any:
    """Return the plain data of an attack with the infinities that `_plain` named."""
    if isinstance(data, Mapping):
        return {name: _as_given(one) for name, one in data.items()}
    if isinstance(data, list):
        return [_as_given(one) for one in data]
    return INFINITIES.get(data, data) if isinstance(data, str) else data


def exchange(table: Table, columns: Sequence[str], pairs: Integers) -> Table:
    """Return the table with values and statuses of some columns exchanged between pairs of records.

    Pairs share no record, so exchanging twice changes nothing.
    """
    names = [name for name in columns if name in table.schema]
    other = np.arange(len(table))
    other[pairs[:, 0]], other[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    moved = table.select(names).take(other)
    data = table.data
    for name in names:
        data = data.set_column(data.schema.get_field_index(name), name, moved.array(name))
    stay = {name: status for name, status in table.closed.items() if name not in names}
    return replace(table, data=data, closed={**stay, **moved.closed})


def rest_columns(table: Table, columns: Sequence[str], blocks: Sequence[str]) -> tuple[str, ...]:
    """Return what stays in a released row when some columns are exchanged inside blocks: all that leaves and differs.

    Blocks, the id and what is the same for all records of each block go with the block, so that exchanging the
    columns does not part them from it.
    """
    from ..card import block_numbers

    fixed = {*columns, *blocks}
    others = [c.name for c in table.schema.columns if c.name not in fixed and "id" not in c.roles]
    count = int(block_numbers(table, blocks).max(initial=-1)) + 1
    return tuple(n for n in others if int(block_numbers(table, [*blocks, n]).max(initial=-1)) + 1 > count)


def _largest(table: Any, change: Any, names: tuple[str, ...]) -> tuple[float, str]:
    """Return the largest figure of a table without its sign, and the names in its row."""
    best, where = 0.0, ""
    for row in table.to_pylist() if table is not None else ():
        size = abs(change(row)) if not row.get("both_swapped") else 0.0
        if size > best:
            best, where = size, " and ".join(row[name] for name in names)
    return best, where


def _indented_lines(text: str) -> list[str]:
    return wrap(text, 100, initial_indent="  ", subsequent_indent="      ")
