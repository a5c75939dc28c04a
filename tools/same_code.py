"""Prove that a commit only moves and renames things: `python tools/same_code.py [OLD] [NEW] [--folders src tests ...]`.

Every function of both commits (default: the last one and the working tree) is read as a syntax tree, without imports
and docstrings, its names numbered in the order in which they occur. Two functions are the same code where these trees
are equal: calls, constants, texts and the order of everything are; what things are called, and where they live, is not
looked at. Statements of modules and classes outside functions are compared in the same way, one by one. Printed is
what one side has and the other has not; the exit code is 1 where there is any.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Functions = ast.FunctionDef | ast.AsyncFunctionDef
Places = dict[str, list[str]]
FOLDERS = ("src", "tests")
MODULE = re.compile(r"maskwell(\.\w+)+\.?")
FIELDS = ("id", "attr", "arg", "name", "names", "rest", "kwd_attrs")  # of nodes, where they carry names


class Numbered(ast.NodeTransformer):
    """Gives every name the number of its first occurrence, and takes out imports and docstrings."""

    def __init__(self) -> None:
        self.numbers: dict[str, str] = {}

    def number(self, name: str) -> str:
        """Return what a name is called instead."""
        return self.numbers.setdefault(name, f"n{len(self.numbers)}")

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Number the names that a node carries itself, then those below it."""
        for field in FIELDS:
            value = getattr(node, field, None)
            if isinstance(value, str):
                setattr(node, field, self.number(value))
            elif isinstance(value, list) and all(isinstance(one, str) for one in value):
                setattr(node, field, [self.number(one) for one in value])
        for branch in ("body", "orelse", "finalbody"):
            statements = getattr(node, branch, None)
            if isinstance(statements, list):
                kept = without_docstring(statements) if branch == "body" else statements
                setattr(node, branch, [one for one in kept if not is_import(one)] or [ast.Pass()])
        return super().generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        """A text that names a module says where code lives, and is not looked at."""
        if isinstance(node.value, str) and MODULE.fullmatch(node.value):
            node.value = "a module"
        return node


def is_import(node: ast.AST) -> bool:
    """Whether a statement imports, or does so for the type checker alone."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return all(is_import(one) for one in node.body)
    return isinstance(node, ast.Import | ast.ImportFrom)


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """Return statements without a text that stands first."""
    first = body[0] if body else None
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if is_text and isinstance(first.value.value, str) else body


def pieces(tree: ast.Module, place: str) -> Iterator[tuple[str, ast.AST]]:
    """Return the functions of a module, methods too, and every other statement of modules and classes."""
    for node in without_docstring(tree.body):
        if isinstance(node, ast.ClassDef):
            yield from pieces(ast.Module(node.body, []), f"{place}:{node.name}")
            head = ast.ClassDef(node.name, node.bases, node.keywords, [ast.Pass()], node.decorator_list)
            yield f"{place}:{node.name}", head
        elif isinstance(node, Functions):
            yield f"{place}:{node.name}", node
        elif not is_import(node) and not _is_list_of_names(node):
            yield f"{place}:{node.lineno}", node


def _is_list_of_names(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def code(sources: Iterator[tuple[str, str]]) -> Places:
    """Return where each piece of code stands, by its numbered tree."""
    found: Places = defaultdict(list)
    for path, text in sources:
        for place, node in pieces(ast.parse(text), path):
            found[ast.dump(Numbered().visit(node))].append(place)
    return found


def of_commit(commit: str, folders: list[str]) -> Iterator[tuple[str, str]]:
    """Return the Python files of a commit."""
    listed = _git("ls-tree", "-r", "--name-only", commit, "--", *folders)
    for path in listed.splitlines():
        if path.endswith(".py"):
            yield path, _git("show", f"{commit}:{path}")


def of_working_tree(folders: list[str]) -> Iterator[tuple[str, str]]:
    """Return the Python files as they are."""
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.py")):
            yield path.as_posix(), path.read_text(encoding="utf-8")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def differences(old: Places, new: Places) -> list[str]:
    """Return what one side has more often than the other."""
    lines = []
    for sign, some, others in (("-", old, new), ("+", new, old)):
        for tree, places in some.items():
            there = others.get(tree, [])
            alone = sorted(places, key=there.__contains__)
            lines += [f"{sign} {place}" for place in alone[: max(len(places) - len(there), 0)]]
    return sorted(lines, key=lambda line: line[2:])


def main() -> int:
    """Compare and print."""
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("old", nargs="?", default="HEAD")
    asked.add_argument("new", nargs="?", help="a commit; else the working tree")
    asked.add_argument("--folders", nargs="+", default=list(FOLDERS))
    given = asked.parse_args()
    old = code(of_commit(given.old, given.folders))
    new = code(of_commit(given.new, given.folders) if given.new else of_working_tree(given.folders))
    lines = differences(old, new)
    print("\n".join(lines) or f"the same code: {sum(map(len, new.values())):,} pieces")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
