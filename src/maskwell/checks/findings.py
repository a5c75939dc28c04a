"""What an audit says: a finding for each known way in which a noise-masked file leaks, and all of them together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isnan
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from ..errors import BadPlan
from ..notes import Note
from ..tolerances import is_real

if TYPE_CHECKING:
    import pyarrow as pa

PASS, WARN, FAIL, NOT_CHECKED = "pass", "warn", "fail", "not checked"
VERDICTS = (FAIL, WARN, NOT_CHECKED, PASS)  # worst first


@dataclass(frozen=True, slots=True)
class Limits:
    """From which figure on a check warns and fails; where `below`, figures under the limits are the bad ones.

    A limit that is nothing is never reached. `reason` says where the default comes from.
    """

    warn: float | None = None
    fail: float | None = None
    below: bool = False
    reason: str = ""

    def __post_init__(self) -> None:
        for name in ("warn", "fail"):
            value = getattr(self, name)
            if value is not None and not is_real(value):
                raise BadPlan(f"the limit {name} is a number, not {value!r}")
        if self.warn is not None and self.fail is not None:
            first, last = (self.fail, self.warn) if self.below else (self.warn, self.fail)
            if first > last:
                raise BadPlan("a check warns before it fails: give limits in that order")

    def verdict(self, figure: float) -> str:
        """Return what a figure comes to; one that is undefined was not checked."""
        if isnan(figure):
            return NOT_CHECKED
        for verdict, limit in ((FAIL, self.fail), (WARN, self.warn)):
            if limit is not None and (figure < limit if self.below else figure > limit):
                return verdict
        return PASS

    def changed(self, given: Mapping[str, Any]) -> Limits:
        """Return limits with some of them as a plan gives them."""
        unknown = [name for name in given if name not in ("warn", "fail")]
        if unknown:
            raise BadPlan(f"the limits of a check are warn and fail, not {unknown[0]!r}")
        return replace(self, **given, reason="as the plan says")

    def is_laxer(self, other: Limits) -> bool:
        """Whether some figure warns or fails by other limits and does so later, or never, by these."""
        sign = -1 if self.below else 1
        pairs = ((self.warn, other.warn), (self.fail, other.fail))
        return any(
            theirs is not None and (ours is None or sign * ours > sign * theirs) for ours, theirs in pairs
        )

    def __str__(self) -> str:
        side = "below" if self.below else "above"
        said = [
            f"{word} {side} {limit:.4g}"
            for word, limit in (("warns", self.warn), ("fails", self.fail))
            if limit is not None
        ]
        return ", ".join(said) or "for information"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check: its figure, what it comes to, where the worst of it lies, what it means and what helps.

    `figures` has the figure of each column (or pair of columns, or group) that was looked at, `sampled` how many
    records were, where not all. A check that could not be made says why in `said`. Where a plan has laxer limits than
    the audit's own, these are the `usual` ones, and `usually` is what it comes to by them. `without` names the columns
    in clear without which it would not fail, as far as it has measured that. Labels of `figures` are for the eye:
    `by_column` has the worst figure of each column of the file, where a check judges columns one by one.
    """

    check: str
    figure: float
    verdict: str
    limits: Limits
    where: str = ""
    said: str = ""
    remedy: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    sampled: int | None = None
    usual: Limits | None = None
    usually: str = ""
    without: tuple[str, ...] = ()
    by_column: Mapping[str, float] = field(default_factory=dict)

    @property
    def failing_columns(self) -> tuple[str, ...]:
        """The columns whose own figures fail the check."""
        return tuple(name for name, one in self.by_column.items() if self.limits.verdict(one) == FAIL)

    @property
    def laxer(self) -> str:
        """By which limits a plan judges it more leniently than the audit does, in words; nothing where it does not."""
        if self.usual is None:
            return ""
        other = f", by which it {self.usually}s" if self.usually in (WARN, FAIL) else ""
        return f"{self.check} ({self.limits}; by the audit's own limits {self.usual}{other})"

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        out = asdict(self)
        out["figure"] = None if isnan(self.figure) else self.figure
        for key, figures in (("figures", self.figures), ("by_column", self.by_column)):
            out[key] = {name: None if isnan(value) else value for name, value in figures.items()}
        return out


@dataclass(frozen=True, eq=False)
class Audit(Mapping[str, Finding]):
    """All checks of a release: a mapping from their names to what each found. It stays inside."""

    findings: tuple[Finding, ...]
    notes: tuple[Note, ...] = ()

    def __getitem__(self, check: str) -> Finding:
        for finding in self.findings:
            if finding.check == check:
                return finding
        raise KeyError(check)

    def __iter__(self) -> Iterator[str]:
        return iter([finding.check for finding in self.findings])

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def passed(self) -> bool:
        """Whether no check fails; warnings do not hinder a release."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The checks that fail."""
        return self.having(FAIL)

    @property
    def laxer(self) -> tuple[Finding, ...]:
        """The checks that a plan judges by laxer limits than the audit's own; first those that fail by its own."""
        changed = [finding for finding in self.findings if finding.usual is not None]
        return tuple(sorted(changed, key=lambda finding: VERDICTS.index(finding.usually)))

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The checks that warn."""
        return self.having(WARN)

    def having(self, verdict: str) -> tuple[Finding, ...]:
        """Return the findings of a verdict."""
        return tuple(finding for finding in self.findings if finding.verdict == verdict)

    @property
    def table(self) -> pa.Table:
        """One row for each check, the worst first."""
        import pyarrow as pa

        rows = [finding.to_dict() for finding in self._ordered()]
        names = ("check", "verdict", "figure", "where", "said", "remedy")
        return pa.table({name: [row[name] for row in rows] for name in names})

    def to_dict(self) -> dict[str, Any]:
        """Return figures only: no record."""
        return {
            "passed": self.passed,
            "findings": [finding.to_dict() for finding in self.findings],
            "notes": [note.to_dict() for note in self.notes],
        }

    def _ordered(self) -> list[Finding]:
        return sorted(self.findings, key=lambda finding: VERDICTS.index(finding.verdict))

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return what fits on one screen: every check with its figure, the bad ones with what to do."""
        counts = ", ".join(
            f"{len(self.having(verdict))} {words}"
            for verdict, words in (
                (PASS, "pass"),
                (WARN, "warn"),
                (FAIL, "fail"),
                (NOT_CHECKED, "not checked"),
            )
            if self.having(verdict)
        )
        lines = [f"Audit: {'passed' if self.passed else 'FAILED'} ({counts})"]
        width = max((len(finding.check) for finding in self.findings), default=0)
        for finding in self._ordered():
            lines += _lines_of(finding, width)
        lines += [
            line
            for note in self.notes
            for line in wrap(str(note), 100, initial_indent="- ", subsequent_indent="  ")
        ]
        return lines + [
            line
            for finding in self.laxer
            for line in wrap(
                f"laxer by the plan: {finding.laxer}", 100, initial_indent="- ", subsequent_indent="  "
            )
        ]


def _lines_of(finding: Finding, width: int) -> list[str]:
    figure = "-" if isnan(finding.figure) else f"{finding.figure:.4g}"
    where = f"  {finding.where}" if finding.where else ""
    verdict = finding.verdict.upper() if finding.verdict == FAIL else finding.verdict
    head = f"  {verdict:<11}  {finding.check:<{width}}  {figure:>8}"
    if finding.verdict == PASS:
        return [f"{head}{where}"]
    if finding.verdict == NOT_CHECKED:
        return [head, *wrap(finding.said, 100, initial_indent=" " * 15, subsequent_indent=" " * 15)]
    told = f"{finding.said} ({finding.limits}). {finding.remedy}" if finding.remedy else finding.said
    return [f"{head}{where}", *wrap(told, 100, initial_indent=" " * 15, subsequent_indent=" " * 15)]
