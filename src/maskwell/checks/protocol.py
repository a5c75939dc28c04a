"""What a check of the audit is: a name, limits with a reason, a remedy, and a function from evidence to a figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .evidence import Evidence
from .findings import FAIL, WARN, Finding, Limits


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its name, its default limits, the remedy, and the function that makes it.

    `measure` gets the evidence and returns the figure with what goes with it; `CheckFigure` says how.
    """

    name: str
    limits: Limits
    remedy: str
    measure: Callable[[Evidence], CheckFigure]

    def made(self, evidence: Evidence, limits: Limits | None = None) -> Finding:
        """Make the check and judge its figure."""
        own = self.limits if limits is None else limits
        found = self.measure(evidence)
        is_laxer = own.is_laxer(self.limits)
        return Finding(
            self.name,
            found.figure,
            found.verdict_by(own),
            own,
            found.where,
            found.said,
            self.remedy,
            found.figures,
            found.sampled,
            self.limits if is_laxer else None,
            found.verdict_by(self.limits) if is_laxer else "",
            found.without,
            found.by_column,
        )


@dataclass(frozen=True, slots=True)
class CheckFigure:
    """A figure (the worst of `figures`; not a number where there is nothing to check) and what it means here.

    `said` is one sentence with the figure in words. `verdict` overrules the limits, for two-sided figures.
    Where a part was looked at, `judged` is what is held against the limits: the upper end of its interval. `surely`
    is what a p-value is among tests with an effect: it fails where that does, and else warns at most. `without` names
    columns in clear without which the figure would be below the limits, `by_column` has the worst figure of each column
    where columns are judged one by one (labels of `figures` need not be names of columns).
    """

    figure: float
    said: str
    where: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    sampled: int | None = None
    verdict: str | None = None
    surely: float | None = None
    judged: float | None = None
    without: tuple[str, ...] = ()
    by_column: Mapping[str, float] = field(default_factory=dict)

    def verdict_by(self, limits: Limits) -> str:
        """Return what the figure comes to by some limits."""
        judged = self.figure if self.judged is None else self.judged
        verdict = limits.verdict(judged) if self.verdict is None else self.verdict
        if self.surely is not None and verdict == FAIL and limits.verdict(self.surely) != FAIL:
            return WARN
        return verdict
