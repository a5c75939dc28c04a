"""The plan in a report: as a file has it, and folders by their names alone."""

from __future__ import annotations

from pathlib import Path

from maskwell.report.plan_section import _value


def test_folders_are_told_by_their_names_one_or_several():
    assert _value("far/away/in/2025", "earlier_private") == '"2025"'
    assert _value(["far/away/in/2025", "in/2024"], "earlier_private") == '["2025", "2024"]'
    assert _value(Path("in/2025")) == '"2025"'
    assert _value({"a": [1, 2]}) == "{ a = [1, 2] }"
