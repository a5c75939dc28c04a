"""Compiling: said once, done by one command, for every kernel there is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from maskwell.kernels import code_cache, compilation, densities, normal_box_conditional, rank_exchange


def compiled(module: ModuleType) -> list[str]:
    return [
        name for name, item in vars(module).items() if hasattr(item, "py_func") and not name.startswith("_")
    ]


def test_one_command_compiles_every_driver():
    compilation.compile_all()
    drivers = [name for name in compiled(densities) if not name.startswith("log_")]
    assert len(drivers) == 8
    assert all(getattr(densities, name).signatures for name in drivers)
    assert rank_exchange.exchange_within.signatures
    assert normal_box_conditional.conditioned_logs.signatures


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
    once = "maskwell: compiling loops, once on this machine (up to a minute)\n"
    assert said("loops.one(1); loops.other(1)") == once
    assert said("loops.one(1)") == ""
    assert said("from maskwell.kernels.code_cache import silence; silence(); loops.other(1.5)") == ""


CALLER = """from numba import njit
from . import announce
from .callee import number
announce(__file__)
@njit(cache=True)
def asked():
    return number()
"""
CALLEE = """from numba import njit
from . import announce
announce(__file__)
@njit(cache=True)
def number():
    return {}
"""


def test_a_loop_is_compiled_anew_when_a_function_of_another_file_changes(tmp_path):
    """With numba's own key, the file of the caller, the second answer would still be 1."""
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").write_text("from .code_cache import announce\n")
    (room / "code_cache.py").write_text(Path(code_cache.__file__).read_text())
    (room / "caller.py").write_text(CALLER)

    def answer(number: int) -> str:
        (room / "callee.py").write_text(CALLEE.format(number))
        command = [sys.executable, "-c", "from room.caller import asked; print(asked())"]
        # Bytecode is kept by the second in which a file was written, and all three are written in one.
        fresh = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
        ran = subprocess.run(command, cwd=tmp_path, env=fresh, capture_output=True, text=True, check=True)
        return ran.stdout

    assert [answer(1), answer(2), answer(1)] == ["1\n", "2\n", "1\n"]


def test_every_loop_is_kept_by_the_hash_of_all_kernels():
    for path in code_cache.ROOM.glob("*.py"):
        text = path.read_text()
        assert "from numba import" not in text or "\nannounce(__file__)\n" in text, path.name


def test_importing_the_room_loads_no_compiler():
    code = "import sys, maskwell.kernels; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
