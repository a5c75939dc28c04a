"""Compiling: said once, done by one command, for every kernel there is."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

from maskwell import kernels
from maskwell.kernels import densities, rank_exchange


def compiled(module: ModuleType) -> list[str]:
    return [
        name for name, item in vars(module).items() if hasattr(item, "py_func") and not name.startswith("_")
    ]


def test_one_command_compiles_every_driver():
    kernels.compile_all()
    drivers = [name for name in compiled(densities) if not name.startswith("log_")]
    assert len(drivers) == 8
    assert all(getattr(densities, name).signatures for name in drivers)
    assert rank_exchange.exchange_within.signatures


LOOPS = """from numba import njit
from maskwell.kernels import announce
announce(__file__)
@njit(cache=True)
def one(x):
    return x + 1
@njit(cache=True)
def other(x):
    return x - 1
"""


def test_compiling_is_said_when_it_happens_and_then_no_more(tmp_path):
    """A module whose loops are not called, or are on disk, says nothing."""
    (tmp_path / "loops.py").write_text(LOOPS)

    def said(call: str) -> str:
        command = [sys.executable, "-c", f"import loops; {call}"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr

    assert said("pass") == ""
    assert said("loops.one(1); loops.other(1)") == "maskwell: compiling loops, once on this machine\n"
    assert said("loops.one(1)") == ""


def test_importing_the_room_loads_no_compiler():
    code = "import sys, maskwell.kernels; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
