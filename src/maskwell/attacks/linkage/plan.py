"""Winkler's intruder: he compares records field by field and links each to its best-scoring candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan, nearest, raise_all
from ...notes import Note
from ...table import Table
from ..agreement import Absolute, ComparedField, Exact, Relative, Rule, compare_tables, is_comparable
from ..blocks import RecordSearch, check_fields
from ..protocol import Guess, IntruderKnowledge, OrderOf
from .em import EM, Fixed, Weights
from .field_choice import MOST_FIELDS, most_telling
from .matcher import match

if TYPE_CHECKING:
    from ...masking import Release

TEN_PERCENT, BY_EM = Relative(0.10), EM()


@dataclass(frozen=True, kw_only=True)
class Linkage(RecordSearch):
    """Fellegi-Sunter record linkage, as Winkler's software does it.

    `fields` (the schema's key columns; of more than 20 those that tell most) are compared by `rule`, or by their own in
    `rules`; categories and text must be the same. The scores come from `weights`: EM on the pattern counts, or given
    ones (see `supervised_weights`).
    `assignment="best"` links every record to its best candidate, "one-to-one" lets each candidate be linked once, by
    the assignment of largest total score in each block.

    The class of a link is by the number of agreeing fields: all (re-identification), all but one (questionable), fewer
    (false); or by `cut_offs`, two scores (re-identification from the first on, questionable from the second).
    `claims`: the intruder stands by "re-identifications" only, by "all links", or by "clear links", those where no
    other candidate is as good. `links="re-identified"` looks up
    who is linked for re-identifications only (one pass over the pairs instead of two): classes and rate are the same,
    but the links of the other classes are not named or marked.
    """

    fields: tuple[str, ...] | None = field(default=None, kw_only=False)
    rule: Rule = TEN_PERCENT
    rules: Mapping[str, Rule] | tuple[tuple[str, Rule], ...] = ()
    weights: Weights = BY_EM
    assignment: str = "best"
    cut_offs: tuple[float, float] | None = None
    claims: str = "re-identifications"
    links: str = "all"

    def __post_init__(self) -> None:
        problems = self.search_problems()
        if isinstance(self.fields, tuple):
            problems += ["name at least one field"] if not self.fields else []
            problems += _twice(self.fields)
        problems += self._rule_problems()
        problems += _choice("assignment", self.assignment, ("best", "one-to-one"))
        problems += _choice("claims", self.claims, ("re-identifications", "all links", "clear links"))
        problems += _choice("links", self.links, ("all", "re-identified"))
        if self.links == "re-identified" and self.claims != "re-identifications":
            problems.append(f"claims={self.claims!r} needs every link: leave links='re-identified' out")
        problems += self._cut_off_problems()
        raise_all(problems, BadPlan)

    def _rule_problems(self) -> list[str]:
        problems = []
        if isinstance(self.rules, Mapping):
            object.__setattr__(self, "rules", tuple(self.rules.items()))
        own: Any = self.rules
        if not isinstance(own, tuple):
            problems.append("rules must give columns their own rules: {'INCOME': Relative(0.2)}")
            own = ()
        rules = [self.rule, *(rule for _, rule in own)]
        if not all(isinstance(rule, Relative | Absolute | Exact) for rule in rules):
            problems.append("a rule is Relative(0.10), Absolute(5) or Exact()")
        if not isinstance(self.weights, EM | Fixed):
            problems.append(f"weights must be EM() or Fixed(m, u), not {self.weights!r}")
        return problems

    def _cut_off_problems(self) -> list[str]:
        if self.cut_offs is None:
            return []
        if not isinstance(self.cut_offs, Sequence) or isinstance(self.cut_offs, str):
            return ["cut_offs are two scores"]
        object.__setattr__(self, "cut_offs", tuple(map(float, self.cut_offs)))
        if len(self.cut_offs) != 2 or not self.cut_offs[0] >= self.cut_offs[1]:
            return [
                "cut_offs are two scores, the larger first: from where a link is a re-identification, or questionable"
            ]
        return []

    def guess(self, known: IntruderKnowledge, release: Release, order_of: OrderOf) -> Guess:
        """Link the intruder's records with the released ones, without any link."""
        compared, notes = self.compared(known.targets, release.table)
        blocks = self.blocks_of(known.targets, release.table)
        if not self.match_columns(release.table.schema):
            pairs = len(known.targets) * len(release)
            notes.append(Note("attacks.no_blocks", {"pairs": pairs}))
        orders = order_of(known.targets, "known"), order_of(release.table, "released")
        return match(self, compared, blocks, orders, notes)

    def compared(self, known: Table, released: Table) -> tuple[ComparedField, list[Note]]:
        """Put the fields of both sides on one scale, and say what a steward should know about them."""
        names, notes = self._fields(known, released)
        own = dict(self.rules)
        strangers = [f"rules name {n!r}{nearest(n, names)}, which is no field" for n in own if n not in names]
        raise_all(strangers, BadPlan)
        compared = compare_tables(known, released, {name: own.get(name) for name in names}, self.rule)
        if len(names) <= MOST_FIELDS:
            return compared, notes
        chosen = most_telling(self, compared, known, released)
        left = tuple(name for name in names if name not in chosen)
        counts = {"fields": len(names), "compared": MOST_FIELDS, "left_out": left}
        said = Note("attacks.most_telling", counts)
        return compared.only(np.flatnonzero(np.isin(names, chosen))), [*notes, said]

    def _fields(self, known: Table, released: Table) -> tuple[tuple[str, ...], list[Note]]:
        blocks, notes = self.match_columns(released.schema), list[Note]()
        if self.fields is not None:
            names = self.fields
        else:
            keys = [c.name for c in released.schema.columns if "key" in c.roles and c.name not in blocks]
            there = [
                n for n in keys if n not in known.schema or is_comparable(known.schema[n], released.schema[n])
            ]
            notes = [Note("attacks.released_as_groups", {"column": n}) for n in keys if n not in there]
            names = tuple(there)
        if not names:
            raise BadPlan("no released column has the role key: name the fields that the intruder compares")
        if len(names) > MOST_FIELDS and isinstance(self.weights, Fixed) and isinstance(self.weights.m, tuple):
            raise BadPlan(
                f"{len(names)} fields make 2^{len(names)} agreement patterns: give weights of at most {MOST_FIELDS}"
            )
        overlap = [
            f"{n!r} is both a field and a matching block: within blocks it always agrees"
            for n in names
            if n in blocks
        ]
        raise_all(overlap, BadPlan)
        check_fields(names, known, released)
        return names, notes


def _twice(names: Sequence[str]) -> list[str]:
    return [f"field {name!r} is named twice" for name in sorted({n for n in names if names.count(n) > 1})]


def _choice(name: str, value: str, allowed: tuple[str, ...]) -> list[str]:
    return [] if value in allowed else [f"{name} must be {' or '.join(map(repr, allowed))}, not {value!r}"]
