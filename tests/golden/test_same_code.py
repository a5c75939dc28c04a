"""The proof that a commit only moves and renames things."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "tools" / "same_code.py"
OLD = '''
"""A module."""
from .far import away

LIMIT = 3  # a reason

class Box:
    """A class."""
    def sum(self, values):
        """Add."""
        total = 0
        for one in values:
            total += away(one, LIMIT)
        return total
'''


@pytest.fixture(scope="module")
def tool():
    found = importlib.util.spec_from_file_location("same_code", TOOL)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def lines(tool, new: str, path: str = "moved.py") -> list[str]:
    return tool.differences(tool.code([("old.py", OLD)]), tool.code([(path, new)]))


def test_renamed_and_moved_code_is_the_same(tool):
    renamed = (
        OLD.replace("total", "result").replace("away", "near").replace("LIMIT", "MOST").replace("Box", "Cell")
    )
    assert lines(tool, renamed.replace("A module", "Another").replace("Add", "Sum")) == []
    assert lines(tool, renamed.replace("from .far import near", "from .elsewhere.close import near")) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("= 3", "= 4"),
        ("+=", "-="),
        ("one, LIMIT", "LIMIT, one"),
        ("total = 0", "total = 0\n        total = 1"),
    ],
)
def test_code_that_does_something_else_is_not(tool, old, new):
    assert lines(tool, OLD.replace(old, new)) != []


def test_names_that_change_places_are_seen(tool):
    changed = OLD.replace("away(one, LIMIT)", "away(total, LIMIT)")
    assert sorted(line[0] for line in lines(tool, changed)) == ["+", "-"]


WITH_ELSE = """    if a:
        return 1
    else:
        from .far import best

        return best('maskwell.far')
"""


def test_where_code_is_imported_from_is_not_looked_at(tool):
    old = f"def pick(a):\n{WITH_ELSE}"
    new = old.replace(".far", ".near.by").replace("best", "nearest")
    assert tool.differences(tool.code([("a.py", old)]), tool.code([("a.py", new)])) == []
    other = old.replace("'maskwell.far'", "'far'")
    assert tool.differences(tool.code([("a.py", old)]), tool.code([("a.py", other)])) != []
