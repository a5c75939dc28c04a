"""`maskwell demo` from end to end, with plans that take seconds: refused, passed, and what a recipient fits."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from maskwell.cli import app
from maskwell.pipeline import demo

QUICK = """
[tolerance]
max_rate = {rate}

[[intruders]]
name = "nearest record"
attack = "NearestRecord"
targets = {{ sample = 100 }}

[audit]
largest = 300

[audit.limits]
{limits}
"""
LOOSE = "\n".join(
    f'"{name}" = {{ warn = 1, fail = 1 }}' for name in ("informed links", "outer links", "fingerprint floor")
)


def quick(plan: str, rate: float, limits: str = "") -> str:
    """Return a plan of the demo with one intruder, another tolerance and other limits."""
    sections = re.split(r"^(?=\[)", plan, flags=re.MULTILINE)
    left_out = ("[tolerance]", "[targets]", "[swap]", "[[models]]")
    plan = "".join(section for section in sections if not section.startswith(left_out))
    return plan + QUICK.format(rate=rate, limits=limits)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[int, str, Path, BaseException | None]:
    monkeypatch.setattr(demo, "REFUSED_PLAN", quick(demo.REFUSED_PLAN, 0.001))
    monkeypatch.setattr(demo, "PASSING_PLAN", quick(demo.PASSING_PLAN, 1.0, LOOSE))
    monkeypatch.setattr(demo, "DRAWS", 100)
    folder = tmp_path / "demo"
    few = ["--records", "1000", "--seed", "1", "--study"]
    ran = CliRunner().invoke(app, ["demo", "--folder", str(folder), *few])
    return ran.exit_code, ran.stdout, folder, ran.exception


def test_one_plan_is_refused_one_passes_and_a_model_is_fitted(
    shown: tuple[int, str, Path, BaseException | None],
) -> None:
    code, said, folder, error = shown
    assert code == 0, said + repr(error)
    first, second = said.index("MAY NOT BE RELEASED"), said.index("WOULD PASS, BUT IS FOR STUDIES ONLY")
    assert (
        first
        < said.index("no change was found that would pass")
        < second
        < said.index("3. What a recipient gets")
    )
    assert sorted(path.name for path in (folder / "release-study").iterdir()) == [
        "card.json",
        "codebook.md",
        "data.csv",
        "manifest.json",
        "report.html",
        "schema.toml",
    ]
    assert not (folder / "refused-study").exists()
    assert len(list((folder / "private-study").glob("*/report.html"))) == 1
    rows = re.findall(
        r"^ +log\((INCOME|MORTGAGE)\) +(\S+) +(\S+) +(\S+) +(\S+) to (\S+)$", said, re.MULTILINE
    )
    assert [row[0] for row in rows] == ["INCOME", "MORTGAGE"]
    for _, original, naive, adjusted, low, high in rows:
        figures = [float(text.replace(",", "")) for text in (original, naive, adjusted, low, high)]
        assert figures[3] < figures[2] < figures[4]
        assert figures[1] != figures[2]
