"""The ledger of tests: every p-value counted, the small ones kept, and adjusted for how many were made.

Adjusted p = p x tests of the family x families (Bonferroni; Dunn 1961). A test fails below 1e-5 and warns below 1e-3,
each only with the effect that its family asks for: in two million records everything is significant. Bonferroni's
inequality holds whatever tests have in common. Written by every family, read by `findings`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ...table import Floats

FAMILIES = {
    "whole": "size and centre of the noise of whole columns",
    "bins": "its shape",
    "tails": "its tails",
    "repeats": "the same noise twice",
    "left true": "values left nearly true",
    "own values": "noise by the column's own true values",
    "classes": "noise by class of a true or clear column",
    "residues": "noise by residues, digit sums and every so many records",
    "trends": "noise along a true or clear column",
    "trends in classes": "noise along a column inside a class of another",
    "lags": "noise along true values of records before and after",
    "signs": "signs of noise by two and three bits of the truth",
    "noise matches": "noises that agree where true classes do",
    "fine digits": "fine digits of noise along ranks and bits of the truth",
    "turns": "noise that runs through its range many times along others and the truth",
    "products": "noise along products of columns",
    "coincidences": "noise that is a value of the file",
    "neighbours": "noise of neighbouring records",
    "groups": "noise of records of one group",
    "between": "noise of two columns",
    "spectra": "noises of several columns or records together",
    "digits": "last digits against digits of true columns",
    "congruences": "residues of released values modulo any number",
    "matches": "residues of released values that agree where those of true ones do",
    "steps": "steps of released values and of what lies between them and true ones",
}
KEPT = 1e-3  # p-values above it can neither fail nor warn


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One test that may matter: where it looked, at how many records, its p-value, its effect, the figure to tell."""

    family: str
    column: str
    where: str
    measure: str
    records: int
    p: float
    effect: float
    shown: float
    fails: bool
    is_digit: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    """What an effect is called and from where on it fails and warns."""

    measure: str
    fail: float
    warn: float


@dataclass
class Ledger:
    """All tests of a release; `chapter` is the family that tests are entered under whatever their own is."""

    counts: Counter[str] = field(default_factory=Counter)
    lines: list[LedgerLine] = field(default_factory=list)
    chapter: str | None = None

    def within(self, family: str) -> Ledger:
        """Return the same ledger, opened at one family."""
        return Ledger(self.counts, self.lines, family)

    def add(
        self,
        family: str,
        column: str,
        effect: Effect,
        p: Floats | float,
        size: Floats | float,
        records: Floats | float,
        where: Callable[[int], str] | str = "",
        is_digit: bool = False,
        is_large: bool | None = None,
        shown: Floats | float | None = None,
    ) -> None:
        """Enter tests: p-values with the effects (in the family's measure) that go with them.

        `is_large` says which effects fail where that is no matter of one limit, `shown` the figure to be told.
        """
        chance = np.atleast_1d(np.asarray(p, dtype=np.float64))
        family = self.chapter or family
        self.counts[family] += len(chance)
        if not chance.min(initial=1.0) < KEPT:
            return
        hits = np.flatnonzero(chance < KEPT)
        figures = (size, records, size if shown is None else shown)
        sizes, seen, told = (
            np.broadcast_to(np.asarray(one, np.float64), chance.shape)[hits].tolist() for one in figures
        )
        for i, one, count, figure in zip(hits.tolist(), sizes, seen, told, strict=True):
            fails = one >= effect.fail if is_large is None else is_large
            if not fails and one < effect.warn:
                continue
            said = where if isinstance(where, str) else where(i)
            shape = (effect.measure, int(count), float(chance[i]), one, figure, fails, is_digit)
            self.lines.append(LedgerLine(family, column, said, *shape))

    def adjusted(self, line: LedgerLine) -> float:
        """Return the p-value of a test among all that were made."""
        return min(1.0, line.p * self.counts[line.family] * len(FAMILIES))

    @property
    def tests(self) -> int:
        """How many tests were made."""
        return sum(self.counts.values())

    def of(self, families: tuple[str, ...], digits: bool | None = None) -> Iterator[LedgerLine]:
        """Return the tests of some families, of digit scores or not, the surest and largest first."""
        chosen = [
            line
            for line in self.lines
            if line.family in families and (digits is None or line.is_digit == digits)
        ]
        yield from sorted(chosen, key=lambda line: (not line.fails, self.adjusted(line), -line.effect))
