"""What the commands say beside their output."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from ..errors import MaskwellWarning


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
