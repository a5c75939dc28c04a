"""The machine code of the loops, kept on disk: when it is out of date, and one line when it is made anew.

numba keeps the code of a function with a stamp of the file that defines it. A loop has the functions that it calls
compiled into it, also those of other files, and would stay as it was when one of them changes. The code of every loop
is therefore kept with a hash of all kernels.
"""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from pathlib import Path
from typing import Any

ROOM = Path(__file__).parent
_silent = False


def announce(module: str) -> None:
    """Have the loops of a module kept by the hash of all kernels, and say on standard error when they are compiled."""
    _register()
    _modules.add(module)


def silence() -> None:
    """Say nothing of compiling in this process: set-up says it by itself."""
    global _silent
    _silent = True


@cache
def kernels_hash() -> bytes:
    """Return a hash of the text of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(ROOM.glob("*.py")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.digest()


_modules: set[str] = set()


@cache
def _register() -> None:
    """Tell numba once where code is kept and that we listen when it compiles."""
    from numba.core import event
    from numba.core.caching import CacheImpl

    register: Any = event.register
    register("numba:compile", _listener(event.Listener)())
    CacheImpl._locator_classes = [
        *map(_by_all_kernels, CacheImpl._locator_classes),
        *CacheImpl._locator_classes,
    ]


def _by_all_kernels(place: Any) -> Any:
    """Return a place of numba's for machine code that takes loops of ours only, with the hash of all kernels."""

    class KernelCode(place):  # type: ignore[misc]
        @classmethod
        def from_function(cls, py_func: Any, py_file: str) -> Any:
            return super().from_function(py_func, py_file) if py_file in _modules else None

        def get_source_stamp(self) -> Any:
            return super().get_source_stamp(), kernels_hash()

    return KernelCode


def _listener(base: Any) -> Any:
    """Return what numba tells that it compiles, which it does after it has looked for the code on disk."""

    class Listener(base):  # type: ignore[misc]
        said = False

        def on_start(self, event: Any) -> None:
            ours = event.data["dispatcher"].py_func.__code__.co_filename in _modules
            if ours and not (self.said or _silent):
                self.said = True
                print("maskwell: compiling loops, once on this machine (up to a minute)", file=sys.stderr)

        def on_end(self, event: Any) -> None:
            pass

    return Listener
