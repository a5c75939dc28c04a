"""Masks one after the other, and columns computed anew from masked parts.

On one column the law of a chain is the convolution p(z | x) = integral of p2(z | y) p1(y | x) dy, where it has a closed
form: covariances of normal noises add, codes after noise become codes of the outlet, tables of categories are
multiplied (`laws.chain`, `laws.convolution`); anything else is refused. Recompute: total = sum of coefficient x masked
part (own derivation: a sum that is noised by its parts alone). Named in plans as Chain and Recompute.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import Classes, RankSwapped, Transition
from ..laws.chain import combined_of, follow
from ..masking import Setting, WrittenPlan
from ..schema import Column
from ..table import Table
from .category import Pram
from .resolve import require_columns

if TYPE_CHECKING:
    from ..masking import Mask


@dataclass(frozen=True)
class Recompute(WrittenPlan):
    """Compute a column anew as a sum of masked parts: total = sum of coefficient x part. It carries no law.

    For exact identities such as total = earnings + other income: three noises would contradict each other, and
    a total left in clear beside noised parts would take much of their noise away. Where a part is not open,
    the total is released as missing.
    """

    columns: ClassVar[tuple[str, ...]] = ()

    column: str
    parts: tuple[tuple[str, float], ...]

    def __post_init__(self) -> None:
        given: Any = self.parts
        pairs = (
            given.items()
            if isinstance(given, Mapping)
            else [(p, 1.0) if isinstance(p, str) else p for p in given]
        )
        object.__setattr__(
            self, "parts", tuple((str(name), float(coefficient)) for name, coefficient in pairs)
        )
        parts = [name for name, _ in self.parts]
        problems = [
            f"part {name!r} is named twice" for name in sorted({p for p in parts if parts.count(p) > 1})
        ]
        if not parts or self.column in parts:
            problems.append(
                f"{self.column!r} must be recomputed from at least one other column, not from itself"
            )
        raise_all(problems, BadPlan)

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Put the sum on the card."""
        require_columns(table, (self.column, *dict(self.parts)), ("continuous", "integer"))
        return NoiseCard(recomputed=((self.column, self.parts),))


@dataclass(frozen=True)
class Chain(WrittenPlan):
    """Apply masks in order: over disjoint columns, or on one column where the sum of noises has a law."""

    columns: ClassVar[tuple[str, ...]] = ()

    masks: tuple[Mask, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "masks", tuple(self.masks))
        if not self.masks:
            raise BadPlan("a chain needs at least one mask")

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve every mask and join their laws."""
        setting, joined, problems = setting or Setting(), NoiseCard(), list[str]()
        for mask in self.masks:
            try:
                _check_again(joined, mask)
                joined = _join(joined, mask.card(_table_for_next_mask(table, joined), setting))
            except BadPlan as refusal:
                problems += refusal.problems
        raise_all(problems + _sum_problems(joined), BadPlan)
        return joined


def _check_again(card: NoiseCard, mask: Mask) -> None:
    """Refuse a further mask of columns that no law can follow, before it looks at values that are no longer there."""
    laws = [card.law_of(name) for name in mask.columns]
    ended = [law for law in laws if isinstance(law, Classes | RankSwapped)]
    raise_all([_refusal(mask.columns, law) for law in ended[:1]], BadPlan)
    if isinstance(mask, Pram) and mask.invariant:
        changed = [law for law in map(combined_of, laws) if isinstance(law, Transition) and not law.is_sure]
        raise_all([_not_invariant(law.columns[0]) for law in changed], BadPlan)


def _not_invariant(name: str) -> str:
    return (
        f"column {name!r}: after a random change the shares are not known to the plan, so the next change cannot be "
        "invariant to them; make the first one invariant, or leave invariant out"
    )


def _sum_problems(card: NoiseCard) -> list[str]:
    """Return what is wrong with the totals: masked too, summed twice or too early, or of parts that are no numbers."""
    found, done = [], set[str]()
    later = [total for total, _ in card.recomputed]
    for total, parts in card.recomputed:
        if total in card.columns:
            found.append(f"column {total!r} is recomputed and masked too: it must do one of the two")
        if total in done:
            found.append(f"column {total!r} is recomputed twice")
        later.remove(total)
        done.add(total)
        for name, _ in parts:
            if isinstance(card.law_of(name), Classes):
                found.append(
                    f"column {total!r} cannot be recomputed: its part {name!r} is released as classes"
                )
            if name in later:
                found.append(f"column {total!r} is recomputed before its part {name!r}: change their order")
    return found


def _table_for_next_mask(table: Table, card: NoiseCard) -> Table:
    """Return the table as the next mask will find it: a grouped column has other categories, and groups as values.

    What a random table of probabilities does to the values is not known yet: there only the description changes.
    """
    changes: dict[str, Column] = {}
    for law in map(combined_of, card.laws):
        if not isinstance(law, Transition):
            continue
        name = law.columns[0]
        column = law.released(table.schema[name])
        if law.is_sure:
            table = table.with_columns(
                {name: (column, law.likeliest(table.values([name])[:, 0]), table.status(name))}
            )
        else:
            changes[name] = column
    return replace(table, schema=table.schema.changed(changes)) if changes else table


def _join(first: NoiseCard, later: NoiseCard) -> NoiseCard:
    if first.subsampled is not None and later.subsampled is not None:
        raise BadPlan("a chain may subsample only once")
    laws = list(first.laws)
    for law in later.laws:
        touched = [earlier for earlier in laws if set(earlier.columns) & set(law.columns)]
        joined: Any = law
        for earlier in touched:
            joined = follow(earlier, law) if len(touched) == 1 else None
            if joined is None:
                raise BadPlan(_refusal(law.columns, earlier))
        laws = [other for other in laws if other not in touched] + [joined]
    return replace(
        first,
        laws=tuple(laws),
        recomputed=(*first.recomputed, *later.recomputed),
        subsampled=later.subsampled if first.subsampled is None else first.subsampled,
        notes=(*first.notes, *later.notes),
    )


def _refusal(columns: tuple[str, ...], earlier: Any) -> str:
    shared = [name for name in columns if name in earlier.columns]
    return (
        f"column {shared[0]!r} is masked twice and the law of both together has no closed form (normal with normal, "
        "a mixture with normal, codes after noise, and tables of categories do): mask it once"
    )
