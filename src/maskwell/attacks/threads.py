"""Work that several threads share: loops that let others run, a turn at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

Turn = TypeVar("Turn")
Found = TypeVar("Found")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_on_threads(work: Callable[[Turn], Found], turns: list[Turn]) -> list[Found]:
    """Do the turns on all cores and return what they find, in order."""
    threads = min(cores(), len(turns))
    if threads <= 1:
        return in_turn(work, turns)
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, turns))


def in_turn(work: Callable[[Turn], Found], turns: list[Turn]) -> list[Found]:
    """Do the turns one after the other."""
    return [work(turn) for turn in turns]
