"""Notes: their codes, the tables of words, the page that documents them, and no branch by a text in the package."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from maskwell.notes import Note, has_code, texts

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "maskwell"
SEVERITIES = {"info", "caution", "failure"}


def load_tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notes_page", ROOT / "tools" / "notes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


tool = load_tool()
WORDS = {code: wording for table in tool.tables().values() for code, wording in table.items()}
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
OTHERS = {path: tree for path, tree in TREES.items() if "words" not in path.relative_to(PACKAGE).parts[:1]}


# Notes.


def test_a_note_survives_json_with_tuples_and_notes_among_its_figures():
    asked = (Note("io.asks_zeros"), Note("io.dropped", {"kind": "date"}))
    note = Note("io.column_undecided", {"column": "x", "questions": asked})
    assert Note.from_dict(note.to_dict()) == note
    assert str(note) == "column 'x' is undecided: real zeros? dropped until a schema decides (dates or times)"
    assert has_code([note], "io.column_undecided")
    assert texts(asked)[0] == "real zeros?"


# Codes and the page.


def literal_codes() -> Iterator[tuple[Path, str]]:
    """Return the codes that are written where notes are made or asked for."""
    for path, tree in OTHERS.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                given = {"Note": node.args[:1], "has_code": node.args[1:]}.get(node.func.id, [])
                for one in given:
                    yield from (
                        (path, part.value)
                        for part in ast.walk(one)
                        if isinstance(part, ast.Constant) and isinstance(part.value, str)
                    )


def test_every_code_of_a_note_is_in_a_table():
    unknown = [(path.name, code) for path, code in literal_codes() if code not in WORDS and "." in code]
    assert unknown == []


def test_every_code_of_a_table_is_used():
    constants = {
        node.value
        for tree in OTHERS.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert sorted(WORDS.keys() - constants) == []


@pytest.mark.parametrize("room", sorted(tool.tables()))
def test_codes_begin_with_their_room_and_have_a_severity_and_a_meaning(room):
    for code, wording in tool.tables()[room].items():
        assert re.fullmatch(rf"{room}\.[a-z0-9_]+", code), code
        assert wording.severity in SEVERITIES, code
        assert wording.meaning, code


def test_the_page_of_notes_is_up_to_date():
    """Where it is not: `python tools/notes.py --write`."""
    assert tool.PAGE.read_text(encoding="utf-8") == tool.page()


# No branch by text.

# What holds sentences, by its name: a loop over notes calls one of them a note, a remark, a text, what is said.
SENTENCES = {
    "line",
    "message",
    "note",
    "notes",
    "question",
    "questions",
    "reason",
    "reasons",
    "remark",
    "remarks",
    "said",
    "sentence",
    "sentences",
    "text",
    "texts",
    "told",
    "warning",
    "why",
    "words",
    "asked",
    "suggestion",
    "not_judged",
}
ATTRIBUTES = SENTENCES - {"line", "words"}
ONE_NOTE = {"note", "reason", "remark", "sentence", "warning"}  # nothing is ever looked for in one of these
ONE_TEXT = {"said", "sentence", "text"}  # attributes that are looked for in others
MANY = {"notes", "questions", "reasons", "remarks", "sentences", "texts"}
BY_TEXT = {
    "startswith",
    "endswith",
    "removeprefix",
    "removesuffix",
    "split",
    "partition",
    "rpartition",
    "replace",
    "find",
    "index",
    "count",
}
OF_PATTERNS = {"match", "fullmatch", "search", "sub", "split", "findall", "finditer"}
LETTERS = re.compile(r"[A-Za-z]{2}.*[ A-Za-z]")


def is_sentence(node: ast.expr) -> bool:
    """Whether an expression is called what sentences are called."""
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id == "str" and node.args:
            return is_sentence(node.args[0])
        return isinstance(node.func, ast.Attribute) and is_sentence(node.func.value)
    if isinstance(node, ast.Subscript):
        return is_sentence(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr in ATTRIBUTES
    return isinstance(node, ast.Name) and node.id in SENTENCES


def has_words(node: ast.expr) -> bool:
    """Whether an expression may be words to look for: a text of letters, or a constant by its name."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and LETTERS.search(node.value) is not None
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(has_words(one) for one in node.elts)
    if isinstance(node, ast.JoinedStr):
        return any(has_words(one) for one in node.values)
    if isinstance(node, ast.Attribute):
        return node.attr in ATTRIBUTES
    return isinstance(node, ast.Name) and node.id.isupper()


def branches_by_text(tree: ast.AST) -> Iterator[ast.expr]:
    """Return the expressions that look for words in a sentence."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            if is_looked_for(node.left, node.comparators[0]):
                yield node
        elif isinstance(node, ast.Call) and is_taken_apart(node):
            yield node


def is_taken_apart(call: ast.Call) -> bool:
    """Whether a call asks how a sentence begins or ends, parts it at words, or holds it against a pattern."""
    if not isinstance(call.func, ast.Attribute) or not call.args:
        return False
    of, method = call.func.value, call.func.attr
    if method in BY_TEXT and is_sentence(of) and has_words(call.args[0]):
        return True
    return method in OF_PATTERNS and is_sentence(call.args[-1]) and may_be_pattern(of, call.args[0])


def is_looked_for(words: ast.expr, where: ast.expr) -> bool:
    """Whether words are looked for in a sentence, or a sentence in another."""
    if isinstance(where, ast.Name) and where.id in MANY:
        return has_words(words) and not isinstance(words, ast.Name)
    if isinstance(words, ast.Attribute) and words.attr in ONE_TEXT:
        return isinstance(where, ast.Name | ast.Attribute)
    if isinstance(where, ast.Name) and where.id in ONE_NOTE:
        return True
    return is_sentence(where) and has_words(words)


def may_be_pattern(of: ast.expr, first: ast.expr) -> bool:
    """Whether a call is one of `re` with words in its pattern."""
    return (
        isinstance(of, ast.Name)
        and of.id == "re"
        and (has_words(first) or not isinstance(first, ast.Constant))
    )


@pytest.mark.parametrize(
    "line",
    [
        'converged = not any("NOT CONVERGED" in note for note in risk.notes)',
        'if "a code for no value" in one.text: pass',
        'if "an identifier?" in asked.get(name, ()): pass',
        'if one.suggestion.startswith("top"): pass',
        'how = next(note for note in raw.notes if note.startswith("read as "))',
        "notes = [note for note in raw.notes if note.startswith(READING)]",
        "said = sorted(notes, key=lambda note: not note.startswith(LOUD))",
        "failed = any(word in note for word in FAILED)",
        'why = finding.text.split(", apart")[0].removeprefix("of the values ")',
        'shares = re.findall(r"(?:in|gives) ([0-9.]+%)", one.text)',
        "text = re.sub(pattern, words, text)",
        'problems = [text.replace("use fit(...)", "leave --check out") for text in error.problems]',
        "is_told = any(found.said in one for one in self.not_judged)",
        'has = "prior" in str(note)',
    ],
)
def test_a_branch_by_text_would_be_found(line):
    assert [*branches_by_text(ast.parse(line))] != []


@pytest.mark.parametrize(
    "line",
    [
        'end = "" if text.endswith(("?", ".")) else "."',
        'has = has_code(notes, "io.dialect")',
        'is_open = "key" in column.roles',
        'data = path.name.startswith("data.")',
        'lines = text.split("\\n")',
        'rest = name.removeprefix("data.")',
        "known = note in notes",
    ],
)
def test_other_texts_may_be_looked_at(line):
    assert [*branches_by_text(ast.parse(line))] == []


OF_OTHERS = {  # texts that are not ours, which say what they say in no other way
    "io/column_names.py": "names and labels of columns, by which roles are proposed",
    "io/memory.py": "what the kernel tells of the memory",
    "sealing.py": "keys as a user gives them, and messages of age",
}


def found_branches() -> dict[str, list[str]]:
    found = {
        path.relative_to(PACKAGE).as_posix(): [
            f"line {node.lineno}: {ast.unparse(node)}" for node in branches_by_text(tree)
        ]
        for path, tree in TREES.items()
    }
    return {name: lines for name, lines in found.items() if lines}


def test_no_branch_by_text():
    """Where there is one: give what is said a code or a figure, and ask for that."""
    found = found_branches()
    assert {name: lines for name, lines in found.items() if name not in OF_OTHERS} == {}
    assert sorted(OF_OTHERS.keys() - found.keys()) == [], "take it out of the list"
