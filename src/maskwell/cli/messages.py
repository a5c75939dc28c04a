"""What the commands say beside their output."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ..errors import MaskwellWarning


def said_at_terminal(text: str) -> None:
    """Say on standard error, at a terminal, what comes next, so that long work is seen to go on."""
    if sys.stderr.isatty():
        echo_message(text)


def echo_message(text: str) -> None:
    """Say on standard error, in a pipe too, what comes next: of work that takes minutes."""
    typer.echo(text, err=True)


@contextmanager
def warnings_told() -> Iterator[list[str]]:
    """Say warnings on standard error, but for those that are told anyway (put them into the list)."""
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", MaskwellWarning)
        try:
            yield told
        finally:
            found = [str(one.message) for one in caught if issubclass(one.category, MaskwellWarning)]
            for text in dict.fromkeys(found):
                if text not in told:
                    typer.echo(f"warning: {text}", err=True)
