"""How far a fit has come: a bar at a terminal, lines elsewhere, or a function of the caller's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..errors import BadPlan

Progress = Callable[[int, int], None]
QUARTERS = 4


class Bar:
    """A bar on standard error that says what runs."""

    def __init__(self, bar: Any) -> None:
        self.bar, self.task = bar, bar.add_task("drawing", total=None)

    def __call__(self, done: int, total: int) -> None:
        """Tell of steps done."""
        self.bar.update(self.task, completed=done, total=total)

    def say(self, what: str) -> None:
        """Begin anew with other work."""
        self.bar.reset(self.task, description=what, total=None)


class Lines:
    """Lines on standard error, one for each quarter of the work: where there is no terminal to draw a bar on."""

    def __init__(self) -> None:
        self.what, self.told = "drawing", 0

    def __call__(self, done: int, total: int) -> None:
        """Tell of steps done."""
        quarter = QUARTERS * done // max(total, 1)
        if quarter > self.told:
            self.told = quarter
            print(f"maskwell: {self.what}: {quarter / QUARTERS:.0%}", file=sys.stderr)

    def say(self, what: str) -> None:
        """Begin anew with other work."""
        self.what, self.told = what, 0


@contextmanager
def progress_reporter(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Return what to tell of steps done and steps in all: a bar, lines, the caller's function, or nothing.

    None shows a bar at a terminal and nothing elsewhere; True shows lines where there is no terminal.
    """
    at_terminal = sys.stderr is not None and sys.stderr.isatty()
    if callable(progress):
        yield progress
    elif at_terminal and progress is not False:
        from rich.console import Console
        from rich.progress import Progress as Drawn

        with Drawn(console=Console(stderr=True), transient=True) as bar:
            yield Bar(bar)
    else:
        yield Lines() if progress else None


def check_progress(progress: Any) -> None:
    """Refuse what is neither a function nor True, False or None."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise BadPlan(
            "progress must be True (a bar), False, or a function of the steps done and the steps in all"
        )
