"""How Sphinx builds the documentation: offline, with pages that load nothing from elsewhere."""

import runpy
import tomllib
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_TABLES = runpy.run_path(str(_ROOT / "benchmarks" / "_tables.py"))

project = "maskwell"
author = "The maskwell authors"
copyright = author
version = release = _PROJECT["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]

default_role = "code"  # in docstrings, `name` is code
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
myst_heading_anchors = 3
myst_enable_extensions = ["substitution"]
_MEASURED = ("linkage", "nearest", "bayes", "assignment", "fit")
myst_substitutions = {f"{name}_results": _TABLES[name]() for name in _MEASURED}

html_theme = "furo"
html_title = f"maskwell {release}"
