"""Importing maskwell, or asking it for help, loads nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = ("numba", "pyarrow", "duckdb", "scipy", "pandas", "polars", "pyreadstat", "matplotlib")
LOADED = "import json, sys; print(); print(json.dumps([name for name in {heavy!r} if name in sys.modules]))"
HELP = """
import sys
from maskwell.cli import main
sys.argv = ["maskwell", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""


def loaded_by(code: str) -> list[str]:
    """Return the heavy packages in memory after some code has run in a new interpreter."""
    command = [sys.executable, "-c", code + "\n" + LOADED.format(heavy=HEAVY)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    "code",
    [
        "import maskwell",
        "import maskwell; maskwell.Schema, maskwell.Key, maskwell.masks.MASKS, maskwell.apply, maskwell.Masking",
        "import maskwell; maskwell.Key.from_os(); maskwell.CorrelatedNoise(('A', 'B'), r0=0.9).to_dict()",
    ],
)
def test_importing_loads_nothing_heavy(code: str):
    assert loaded_by(code) == []


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["mask", "--help"], ["study"]])
def test_help_loads_nothing_heavy(arguments: list[str]):
    assert loaded_by(HELP.format(arguments=arguments)) == []


def test_what_is_heavy_would_be_found():
    assert loaded_by("import pyarrow") == ["pyarrow"]
