"""The page on threats lists every check with its limits."""

from __future__ import annotations

import re
from pathlib import Path

from maskwell.checks.catalogue import checks

PAGE = Path(__file__).parents[2] / "docs" / "threats.md"


def test_every_check_is_on_the_page_with_its_limits():
    rows = {
        cells[0].strip(): (cells[2].strip(), cells[3].strip())
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("|") and len(cells := re.split(r"(?<!\\)\|", line.strip("|"))) == 4
    }
    for check in checks():
        sign = "<" if check.limits.below else ">"
        shown = tuple(
            "" if limit is None else f"{sign} {limit:g}" for limit in (check.limits.warn, check.limits.fail)
        )
        assert rows.get(check.name) == shown, check.name
