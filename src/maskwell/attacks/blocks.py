"""What all intruders who search for records share: their targets, the blocks they search in, and the direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..errors import BadInput, BadPlan, nearest, raise_all
from ..masking.protocol import WrittenPlan
from ..schema import Schema
from ..table import Table
from .joint_codes import block_codes
from .protocol import NOBODY, Attack, Ints

if TYPE_CHECKING:
    from .targets import Choice


@dataclass(frozen=True, kw_only=True)
class RecordSearch(WrittenPlan, Attack):
    """Targets, blocks and direction of an intruder who searches.

    `largest_target_block`: the targets are the records in blocks of at most so many, by `target_blocks` (the schema's
    block columns); without it all records are targets. `match_blocks` are the columns on which the intruder relies
    without doubt: he compares records within them only (the schema's block columns; `()`: no blocks). One that leaves
    as groups, classes or with end codes is such a column too: he codes his own records in the same way.
    `direction="to_masked"`: his record looks for its masked one; "to_original": the masked for its original.
    `targets` takes some of them only: a keyed `Sample`, or the records at given `Quantiles`.
    `response_knowledge`: where a sample of the records is released he knows that his target is in it, and targets are
    the records that were released; without it they are all, and who was not released cannot be found.
    """

    word: ClassVar[str] = "attack"

    largest_target_block: int | None = None
    target_blocks: tuple[str, ...] | None = None
    match_blocks: tuple[str, ...] | None = None
    direction: str = "to_masked"
    targets: Choice | None = None
    response_knowledge: bool = True

    def search_problems(self) -> list[str]:
        """List what is wrong with these options, and freeze the lists among them."""
        problems = []
        for name in ("target_blocks", "match_blocks", "fields"):
            problems += frozen_names(self, name)
        if self.direction not in ("to_masked", "to_original"):
            problems.append(f"direction must be 'to_masked' or 'to_original', not {self.direction!r}")
        small = self.largest_target_block
        if small is not None and (not isinstance(small, Integral) or isinstance(small, bool) or small < 1):
            problems.append(f"largest_target_block must be a whole number of at least 1, not {small!r}")
        problems += [] if self.targets is None else _target_problems(self.targets)
        if not isinstance(self.response_knowledge, bool):
            problems.append(f"response_knowledge must be true or false, not {self.response_knowledge!r}")
        if self.target_blocks is not None and self.largest_target_block is None:
            problems.append("target_blocks needs largest_target_block: how small is small?")
        return problems

    @property
    def to_masked(self) -> bool:
        """Whether the intruder's records search among the masked ones."""
        return self.direction == "to_masked"

    def target_records(
        self, truth: Table, order: Callable[[Table], Ints] | None = None, among: Ints | None = None
    ) -> Ints:
        """Return the numbers of the records that are targets; a sample goes by a keyed order (else by that given).

        They are chosen `among` some records, where these are given.
        """
        targets = self.eligible_records(truth) if among is None else among
        if self.targets is None:
            return targets
        keyed = np.arange(len(truth)) if order is None else order(truth)
        if len(targets) == len(truth):
            return self.targets.records(truth, keyed)
        place = np.full(len(truth), NOBODY, np.int64)
        place[targets] = np.arange(len(targets))
        among = place[keyed]
        return np.asarray(targets[self.targets.records(truth.take(targets), among[among >= 0])])

    def eligible_records(self, truth: Table) -> Ints:
        """Return the numbers of the records among which targets are chosen: all, or those in small blocks."""
        if self.largest_target_block is None:
            return np.arange(len(truth))
        columns = self.target_blocks if self.target_blocks is not None else truth.schema.with_role("block")
        raise_all(truth.schema.missing_columns(columns), BadPlan)
        if not columns:
            raise BadPlan("no column has the role block, so no block is small: name target_blocks")
        codes, _ = block_codes(truth, truth, columns)
        sizes = np.bincount(codes)
        targets = np.flatnonzero(sizes[codes] <= self.largest_target_block)
        if not len(targets):
            raise BadPlan(
                f"no block of {', '.join(columns)} has at most {self.largest_target_block} records: nobody is a target"
            )
        return targets

    def blocks_of(self, known: Table, released: Table) -> tuple[Ints, Ints]:
        """Return the block of each of the intruder's and of each released record, numbered alike."""
        columns = self.match_columns(released.schema)
        problems = [f"{p} among the intruder's records" for p in known.schema.missing_columns(columns)]
        problems += [f"{p} in the release" for p in released.schema.missing_columns(columns)]
        raise_all(problems, BadInput)
        ours, theirs = block_codes(known, released, columns)
        if not np.isin(ours, theirs).any():
            raise BadInput(
                f"no target shares a block ({', '.join(columns)}) with a released record: are the columns coded alike?"
            )
        return ours, theirs

    def match_columns(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns that define matching blocks."""
        return self.match_blocks if self.match_blocks is not None else tuple(schema.with_role("block"))


def _target_problems(targets: Any) -> list[str]:
    from .targets import Choice

    if isinstance(targets, Choice):
        return []
    return [f"targets is a Sample or Quantiles, not a {type(targets).__name__}"]


def frozen_names(plan: Any, name: str) -> list[str]:
    """Make an option that lists columns a tuple of names; return what is wrong with it."""
    given = getattr(plan, name, None)
    if given is None:
        return []
    listed = (given,) if isinstance(given, str) else given
    if not isinstance(listed, Sequence) or not all(isinstance(one, str) for one in listed):
        return [f"{name} must be names of columns, not {type(given).__name__}"]
    object.__setattr__(plan, name, tuple(listed))
    return []


def check_fields(names: Sequence[str], known: Table, released: Table) -> None:
    """Refuse fields that one side does not have, all of them at once."""
    problems = []
    for name in names:
        if name not in known.schema:
            hint = nearest(name, known.schema.names)
            problems.append(f"the intruder's records have no column {name!r}{hint}")
        if name not in released.schema:
            problems.append(f"the release has no column {name!r}{nearest(name, released.schema.names)}")
    raise_all(problems, BadInput)
