"""How maskwell refuses: every error lists all problems found, one sentence each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

MOST_SHOWN = 20  # problems in a message, more than anybody mends at once; `problems` has all of them
LONGEST = 600  # letters of one problem: what a file says may be of any length
LONGEST_NAME, MOST_NAMES = 200, 2_000  # that are compared letter by letter: the time grows with both


class MaskwellError(Exception):
    """Something maskwell refuses to do; `problems` holds one sentence for each reason."""

    exit_code = 2

    def __init__(self, problems: str | Iterable[str]) -> None:
        given = (problems,) if isinstance(problems, str) else tuple(problems)
        self.problems: tuple[str, ...] = tuple(dict.fromkeys(map(_shortened_problem, given)))
        super().__init__(self._text())

    def _text(self) -> str:
        if len(self.problems) == 1:
            return self.problems[0]
        shown, more = self.problems[:MOST_SHOWN], len(self.problems) - MOST_SHOWN
        lines = [f"{len(self.problems)} problems:", *(f"  - {problem}" for problem in shown)]
        return "\n".join([*lines, *([f"  - and {more:,} more"] if more > 0 else [])])

    def __reduce__(self) -> tuple[type[MaskwellError], tuple[Any, ...]]:
        return type(self), (self.problems,)


class BadInput(MaskwellError):
    """The file or frame cannot be read as the schema says."""


class OtherEncoding(BadInput):
    """The text of a file is in another encoding than it was read in: `fault` says so, `encoding` would read it."""

    def __init__(self, fault: str, encoding: str) -> None:
        self.fault, self.encoding = fault, encoding
        super().__init__(f'{fault}: read it with the option encoding="{encoding}"')

    def __reduce__(self) -> tuple[type[MaskwellError], tuple[Any, ...]]:
        return type(self), (self.fault, self.encoding)


class BadPlan(MaskwellError):
    """The plan (mask, schema or plan file) contradicts itself or the data."""


class HopelessSwap(BadPlan):
    """No exchange of these columns can meet the tolerance."""


class NoLaw(MaskwellError):
    """The release has no noise law, so nothing can be computed from one."""


class BadBundle(MaskwellError):
    """A release, card or private file on disk is damaged, foreign, newer, or readable by others."""


class CannotWrite(MaskwellError):
    """The output cannot be written where it was asked for."""


class NoRelease(MaskwellError):
    """What was asked for would pass for a release and is none; the answer is no."""

    exit_code = 1


class MaskwellWarning(UserWarning):
    """Something a steward should know; the work goes on."""


def _shortened_problem(problem: str) -> str:
    """Return a sentence without the middle of what a file made too long in it."""
    return problem if len(problem) <= LONGEST else f"{problem[: LONGEST // 2]} ... {problem[-LONGEST // 2 :]}"


def raise_all(problems: Iterable[str], error: type[MaskwellError]) -> None:
    """Raise one error that lists every problem; do nothing when there is none."""
    found = tuple(problems)
    if found:
        raise error(found)


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint such as ` (did you mean 'INCOME'?)`, or nothing when no name is close."""
    from difflib import get_close_matches

    if len(name) > LONGEST_NAME:
        return ""
    candidates = [candidate for candidate in names if len(candidate) <= LONGEST_NAME][:MOST_NAMES]
    folded = {candidate.casefold(): candidate for candidate in candidates}
    close = get_close_matches(name.casefold(), list(folded), n=1, cutoff=0.6)
    return f" (did you mean {folded[close[0]]!r}?)" if close else ""


class MomentRefusal(NamedTuple):
    """Why the noise of a column cannot be undone by moments, and what to do instead."""

    reason: str
    remedy: str


class NoMoments(BadPlan):
    """The noise of columns cannot be undone by moments; each of `refusals` says why, and what to do instead."""

    def __init__(self, refusals: tuple[MomentRefusal, ...]) -> None:
        self.refusals = refusals
        super().__init__([one.reason + one.remedy for one in refusals])

    def __reduce__(self) -> tuple[type[MaskwellError], tuple[Any, ...]]:
        return type(self), (self.refusals,)
