"""The stages of a release: what is told on the way, and how long each took."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from .outcome import Advice

Progress = Callable[[str, int, int], None]
Refusal = Callable[[tuple[str, ...]], None]  # takes the reasons
Tried = Callable[["Advice"], None]  # takes a change to the plan as soon as it is known what it came to
STAGES = (
    "read",
    "check",
    "fingerprint floor",
    "calibrate",
    "mask",
    "attack",
    "swap",
    "attack again",
    "compare",
    "audit",
    "advise",
    "write",
)


class StageStep(Protocol):
    """Tells how many steps of a stage are done, of how many."""

    def __call__(self, done: int, of: int = 0, /) -> None:
        """Take note of a step."""


@runtime_checkable
class TellsCosts(Protocol):
    """A progress that also hears what the steps of a stage cost by the table of costs, in seconds of one core."""

    def costs(self, stage: str, seconds: Sequence[float], /) -> None:
        """Take note of the costs, before the stage begins."""


@dataclass(frozen=True)
class Stages:
    """Tells every stage by `progress(name, done, total)` and keeps its seconds.

    A stage begins with `done` 0 and ends with `done` equal to `total`; a total of 0 is one that nobody knows. Of
    a stage that is entered again the seconds add up. `refusal` hears why nothing is released before the search for what
    would pass, which takes longer, begins; `tried` what each change came to, and how far the last was when the search
    was stopped.
    """

    progress: Progress | None = None
    refusal: Refusal | None = None
    tried: Tried | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str, total: int = 0, costs: Sequence[float] = ()) -> Iterator[StageStep]:
        """Run a stage; its steps are told by calling what this gives with how many are done, of how many."""
        started = perf_counter()
        if isinstance(self.progress, TellsCosts):
            self.progress.costs(name, costs)

        def step(done: int, of: int = 0, /) -> None:
            if self.progress is not None:
                self.progress(name, done, of or total)

        step(0)
        yield step
        if self.progress is not None:
            self.progress(name, max(total, 1), max(total, 1))
        self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - started

    def tell_tried(self, advice: Advice) -> None:
        """Tell what a change came to."""
        if self.tried is not None:
            self.tried(advice)
