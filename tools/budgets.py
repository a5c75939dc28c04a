"""The size of each room: `python tools/budgets.py` prints it beside its budget, `--write` makes it the budget.

A line of code is one with a token on it that is neither a comment nor of a docstring: what is written to explain does
not count, and nothing is won by leaving it out. `tests/test_budgets.py` fails where a room has more lines or modules
than its budget. A commit that raises a budget says why in the changelog.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE, BUDGETS = ROOT / "src" / "maskwell", ROOT / "tests" / "budgets.toml"
TOP = "top"  # modules in no folder
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
Size = dict[str, int]


def code_lines(text: str) -> int:
    """Return how many lines of a module are code."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(ast.parse(text)))


def docstring_lines(tree: ast.Module) -> set[int]:
    """Return the lines of the docstrings of a module, its classes and its functions."""
    found: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        first = body[0] if isinstance(body, list) and body else None
        text = first.value if isinstance(first, ast.Expr) else None
        if isinstance(text, ast.Constant) and isinstance(text.value, str):
            found |= set(range(text.lineno, (text.end_lineno or text.lineno) + 1))
    return found


def sizes(package: Path = PACKAGE) -> dict[str, Size]:
    """Return lines of code and modules of every room."""
    rooms: dict[str, Size] = defaultdict(lambda: {"lines": 0, "modules": 0})
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package).parts
        room = rooms[parts[0] if len(parts) > 1 else TOP]
        room["lines"] += code_lines(path.read_text(encoding="utf-8"))
        room["modules"] += path.name != "__init__.py"
    return dict(rooms)


def budgets() -> dict[str, Size]:
    """Return what is committed."""
    return tomllib.loads(BUDGETS.read_text(encoding="utf-8")) if BUDGETS.exists() else {}


def as_toml(rooms: dict[str, Size]) -> str:
    """Write budgets, a line a room."""
    head = "# Lines of code and modules of each room: see tools/budgets.py\n"
    lines = (
        f"{room} = {{ lines = {size['lines']}, modules = {size['modules']} }}\n"
        for room, size in sorted(rooms.items())
    )
    return head + "".join(lines)


def main() -> None:
    """Print sizes beside budgets, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="make today's sizes the budgets")
    now, committed = sizes(), budgets()
    if parser.parse_args().write:
        BUDGETS.write_text(as_toml(now), encoding="utf-8")
        return
    for room in sorted({*now, *committed}):
        have, may = now.get(room, {}), committed.get(room, {})
        print(
            *(f"{room:12}", *(f"{have.get(k, 0):6} of {may.get(k, 0):6} {k}" for k in ("lines", "modules")))
        )
    print(f"all: {sum(one['lines'] for one in now.values())} lines")


if __name__ == "__main__":
    main()
