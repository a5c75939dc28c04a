"""How Sphinx builds the documentation: offline, with pages that load nothing from elsewhere."""

import tomllib
from pathlib import Path

_PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]

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

html_theme = "furo"
html_title = f"maskwell {release}"
