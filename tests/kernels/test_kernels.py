"""Compiling: said once, done by one command, for every kernel there is."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from maskwell import kernels
from maskwell.kernels import densities, exchange


def compiled(module: ModuleType) -> list[str]:
    return [
        name for name, item in vars(module).items() if hasattr(item, "py_func") and not name.startswith("_")
    ]


def test_one_command_compiles_every_driver():
    kernels.compile_all()
    drivers = [name for name in compiled(densities) if not name.startswith("log_")]
    assert len(drivers) == 8
    assert all(getattr(densities, name).signatures for name in drivers)
    assert exchange.exchange_within.signatures


@pytest.mark.parametrize("cached", [False, True])
def test_compiling_is_said_once(tmp_path, capsys, cached):
    module = tmp_path / "loops.py"
    (tmp_path / "__pycache__").mkdir()
    if cached:
        (tmp_path / "__pycache__" / "loops.work-3.py311.nbi").touch()
    kernels.announce(str(module))
    assert capsys.readouterr().err == ("" if cached else "maskwell: compiling loops once (some seconds)\n")


def test_importing_the_room_loads_no_compiler():
    code = "import sys, maskwell.kernels; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
