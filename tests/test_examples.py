"""The examples of README.md and docs/ run and print what they show, and every command is documented.

The blocks of one page run in order, in one temporary folder. In `python` blocks, `>>>` examples run by doctest
in one namespace a page; blocks without prompts must be valid Python. In `console` blocks every `$ command` runs in
a shell: its output must be what is shown (`...` stands for any text), or where nothing is shown it must succeed.
A command that is meant to fail is followed by `$ echo $?`. Where pages have more than a few commands of maskwell, those
without pipes and the like run in this process, which is spared loading everything for each.
"""

from __future__ import annotations

import ast
import doctest
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [path for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md") if path.exists()]
PAGES += sorted((ROOT / "docs").rglob("[!_]*.md"))

FEW = 2  # commands of maskwell on a page that has a shell and a process for each
RUN = {"maskwell", "python", "cat", "cp", "head", "ls", "mkdir", "tail", "wc"}
NOT_RUN = {"make", "pip", "git"}  # these set up the machine or the checkout
STAYS = {"maskwell studio"}  # and these wait for people
TIMEOUT_SECONDS = 600
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


# Finding the examples.


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced code block; `line` is the line of its first line of text in the file, from 1."""

    language: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """One command of a console block, and the output shown below it."""

    line: int
    command: str
    output: str


OPENING = re.compile(r"(?P<indent> *)(?P<fence>`{3,}|~{3,})\s*(?P<info>[^`]*)$")


def blocks(text: str) -> Iterator[Block]:
    """The fenced code blocks of a Markdown text."""
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        opening = OPENING.match(line)
        if opening:
            fence, indent = opening["fence"], len(opening["indent"])
            closing = re.compile(rf" *{re.escape(fence[0])}{{{len(fence)},}}\s*$")
            body = []
            for _, inner in lines:
                if closing.match(inner):
                    break
                body.append(inner[min(indent, len(inner) - len(inner.lstrip())) :])
            else:
                raise ValueError(f"the code block opened on line {number} is never closed")
            yield Block((opening["info"].split() or [""])[0], number + 1, "\n".join(body) + "\n")


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block; a command goes on after a backslash."""
    shown: list[str] = []
    lines = block.text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("$ ")]
    if any(line.strip() for line in lines[: starts[0] if starts else None]):
        raise ValueError(f"line {block.line}: a console block starts with a `$ command`")
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        last = start
        while lines[last].endswith("\\") and last + 1 < end:
            last += 1
        command = "\n".join(
            [lines[start][2:], *(line.removeprefix("> ") for line in lines[start + 1 : last + 1])]
        )
        shown = lines[last + 1 : end]
        yield Command(block.line + start, command, tidy("\n".join(shown)))


def tidy(output: str) -> str:
    """Output without trailing blanks and trailing empty lines, closed by a newline unless empty."""
    text = "\n".join(line.rstrip() for line in output.splitlines()).rstrip("\n")
    return text + "\n" if text else ""


# Running them.


@dataclass
class Session:
    """What the blocks of one page share: a folder, a namespace, and the status of the last command."""

    folder: Path
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "__main__"})
    status: int = 0
    in_process: bool = False

    def run(self, block: Block) -> list[str]:
        """The failures of a block, one text each."""
        if block.language in {"python", "pycon", "py"}:
            return self.run_python(block)
        if block.language == "console":
            return self.run_console(block)
        return [unmarked_example(block)] if is_unmarked_example(block) else []

    def run_python(self, block: Block) -> list[str]:
        if ">>> " not in block.text:
            return not_python(block)
        test = doctest.DocTestParser().get_doctest(
            block.text, {}, f"the block of line {block.line}", None, block.line - 1
        )
        test.globs = self.names
        report: list[str] = []
        doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(
            test, out=report.append, clear_globs=False
        )
        return ["".join(report)] if report else []

    def run_console(self, block: Block) -> list[str]:
        failures = []
        steps = list(commands(block))
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            status_is_shown = following is not None and following.command == "echo $?"
            failures += self.run_command(step, may_fail=status_is_shown)
        return failures

    def run_command(self, step: Command, *, may_fail: bool) -> list[str]:
        if step.command == "echo $?":
            return differences(step, f"{self.status}\n")
        if is_not_run(step.command):
            return []
        words = shlex.split(step.command)
        if words[0] not in RUN:
            return [f"line {step.line}: examples do not run `{words[0]}`, only {', '.join(sorted(RUN))}"]
        run = in_this_process if self.in_process and is_plain(step.command) else self.shell
        self.status, output = run(step.command)
        if self.status and not may_fail:
            return [f"line {step.line}: `{step.command}` exited with {self.status}:\n{output}"]
        return differences(step, output) if step.output else []

    def shell(self, command: str) -> tuple[int, str]:
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.folder,
            env=environment(programs(self.folder)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=TIMEOUT_SECONDS,
        )
        return done.returncode, done.stdout


def is_plain(command: str) -> bool:
    """Whether a command is one of maskwell that needs no shell."""
    return shlex.split(command)[0] == "maskwell" and not re.search(r"[|<>;&$`*]", command)


def in_this_process(command: str) -> tuple[int, str]:
    """Run a command of maskwell here, and return its status and what it printed."""
    from maskwell import cli

    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cli, "_stop_cleanly", lambda: None)  # the signals belong to pytest
        patched.setattr(sys, "argv", shlex.split(command))
        patched.setattr(sys, "stdout", printed)
        patched.setattr(sys, "stderr", printed)
        with pytest.raises(SystemExit) as ending:
            cli.main()
    code = ending.value.code
    return code if isinstance(code, int) else int(code is not None), printed.buffer.getvalue().decode()


def is_not_run(command: str) -> bool:
    words = shlex.split(command)
    return words[0] in NOT_RUN or " ".join(words[:2]) in STAYS


def not_python(block: Block) -> list[str]:
    try:
        ast.parse(block.text)
    except SyntaxError as error:
        return [f"line {block.line + (error.lineno or 1) - 1}: not valid Python: {error.msg}"]
    return []


def is_unmarked_example(block: Block) -> bool:
    """Whether a block looks like an example but would not be run, for want of the right language."""
    return bool(re.search(r"^(>>> |\$ maskwell\b)", block.text, re.MULTILINE))


def unmarked_example(block: Block) -> str:
    return f"line {block.line}: an example in a `{block.language}` block; mark it `python` or `console`"


def differences(step: Command, output: str) -> list[str]:
    """One text if the output is not what the page shows."""
    checker, got = doctest.OutputChecker(), tidy(output)
    if checker.check_output(step.output, got, doctest.ELLIPSIS):
        return []
    example = doctest.Example(step.command, step.output)
    return [
        f"line {step.line}: $ {step.command}\n{checker.output_difference(example, got, doctest.ELLIPSIS)}"
    ]


def programs(folder: Path) -> Path:
    """A folder beside the page's own in which `maskwell` and `python` are those under test."""
    place = folder.parent / f"{folder.name}-programs"
    if not place.exists():
        place.mkdir()
        for name, arguments in {"python": "", "maskwell": "-m maskwell"}.items():
            program = place / name
            program.write_text(
                f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {arguments} "$@"\n', encoding="utf-8"
            )
            program.chmod(0o755)
    return place


def environment(place: Path | None = None) -> dict[str, str]:
    """The environment of the examples: 100 columns, no colours, UTF-8."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS"}
    }
    path = os.pathsep.join([*([str(place)] if place else []), os.environ.get("PATH", os.defpath)])
    return kept | {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1", "PATH": path}


@pytest.fixture
def session(tmp_path, monkeypatch) -> Session:
    folder = tmp_path / "page"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in set(os.environ) - set(environment()):
        monkeypatch.delenv(name)
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    return Session(folder)


# What a steward should know is said as a warning; a reader of the page sees it on standard error.
@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_examples_print_what_they_show(page, session):
    text = page.read_text(encoding="utf-8")
    session.in_process = len(re.findall(r"^ *\$ maskwell\b", text, re.MULTILINE)) > FEW
    failures = [failure for block in blocks(text) for failure in session.run(block)]
    assert not failures, f"{page.relative_to(ROOT)}\n" + "\n".join(failures)


# Every command is documented.


def command_names(command, prefix: str = "maskwell") -> Iterator[str]:
    """The full names of the commands below a click group that are not hidden."""
    for name, child in getattr(command, "commands", {}).items():
        if not child.hidden:
            full = f"{prefix} {name}"
            yield from command_names(child, full) if getattr(child, "commands", None) else [full]


def undocumented(names: Iterator[str], text: str) -> list[str]:
    return [name for name in names if not re.search(rf"\b{re.escape(name)}(?![\w-])", text)]


def test_every_command_is_documented():
    if importlib.util.find_spec("maskwell.cli") is None:
        assert not (ROOT / "docs" / "commands.md").exists(), (
            "docs/commands.md describes commands that do not exist"
        )
        return
    from typer.main import get_command

    from maskwell.cli import app

    pages = [path for path in (ROOT / "docs" / "commands.md", ROOT / "README.md") if path.exists()]
    text = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    names = list(command_names(get_command(app)))
    assert names
    assert undocumented(iter(names), text) == []


# The machinery itself.

DOCUMENT = """\
# A page

```python
>>> seven = 7
>>> seven + 1
8
```

Some `inline code`, and a longer fence:

````md
```python
>>> not an example of this page
```
````

1. In a list:

   ```console
   $ cat \\
   >   a.txt
   one

   three\x20\x20
   $ ls
   ```

~~~text
plain
~~~
"""


def test_blocks_are_found_with_language_line_and_text():
    found = list(blocks(DOCUMENT))
    assert [(block.language, block.line) for block in found] == [
        ("python", 4),
        ("md", 12),
        ("console", 20),
        ("text", 29),
    ]
    assert found[0].text == ">>> seven = 7\n>>> seven + 1\n8\n"
    assert found[2].text.startswith("$ cat \\\n>   a.txt\none\n\nthree")


def test_a_block_that_is_never_closed_is_an_error():
    with pytest.raises(ValueError, match="line 3 is never closed"):
        list(blocks("a\n\n```python\n>>> 1\n"))


def test_commands_go_on_after_a_backslash_and_end_at_the_next():
    found = list(commands(list(blocks(DOCUMENT))[2]))
    assert found == [Command(20, "cat \\\n  a.txt", "one\n\nthree\n"), Command(25, "ls", "")]


def test_a_console_block_without_a_command_is_an_error():
    with pytest.raises(ValueError, match="line 5"):
        list(commands(Block("console", 5, "maskwell demo\n")))


def python(text: str) -> Block:
    return Block("python", 10, text)


def console(text: str) -> Block:
    return Block("console", 10, text)


def test_python_and_console_blocks_share_a_folder_and_python_blocks_a_namespace(session):
    write = ">>> from pathlib import Path\n>>> size = Path('a.txt').write_text('one\\ntwo\\n')\n"
    assert session.run(python(write)) == []
    assert session.run(console("$ cat a.txt\none\ntwo\n$ cp a.txt b.txt\n")) == []
    assert session.run(python(">>> size, Path('b.txt').exists()\n(8, True)\n")) == []
    assert session.folder.joinpath("b.txt").exists()


@pytest.mark.parametrize(
    "block",
    [
        python(">>> 1 + 1\n3\n"),
        python(">>> 1 / 0\n"),
        python("def broken(:\n"),
        Block("pycon", 10, ">>> 1 + 1\n3\n"),
        Block("text", 10, ">>> 1 + 1\n3\n"),
        Block("bash", 10, "$ maskwell demo\n"),
        console("$ python -c 'print(1)'\n2\n"),
        console("$ python -c 'print(1); print(2)'\n1\n"),
        console("$ python -c 'raise SystemExit(2)'\n"),
        console("$ python -c 'raise SystemExit(2)'\n$ echo $?\n1\n"),
        console("$ rm a.txt\n"),
    ],
    ids=lambda block: block.text,
)
def test_a_wrong_example_fails_once_and_names_its_line(block, session):
    failures = session.run(block)
    assert len(failures) == 1
    assert re.search(r"line 1\d", failures[0])


@pytest.mark.parametrize(
    "block",
    [
        python(">>> list(range(100))\n[0, 1, ..., 99]\n"),
        python(">>> 1 / 0\nTraceback (most recent call last):\nZeroDivisionError: division by zero\n"),
        python("table = read('survey.csv')  # no prompt: read, not run\n"),
        Block("text", 10, "nothing to run\n"),
        console("$ python -c 'print(1); print(2); print(3)'\n1\n...\n3\n"),
        console("$ python -c 'print(1, end=\"  \")'\n1\n"),
        console("$ python -c 'print(1)'\n"),
        console("$ python -c 'print(1); print(2)' | tail -n 1\n2\n"),
        console("$ python -c 'raise SystemExit(2)'\n$ echo $?\n2\n"),
        console('$ python -c \'import os; print(os.environ["COLUMNS"], os.environ["NO_COLOR"])\'\n100 1\n'),
        console("$ make demo\nwhatever it prints\n$ git status\n$ pip install maskwell\n$ maskwell studio\n"),
    ],
    ids=lambda block: block.text,
)
def test_a_right_example_passes(block, session):
    assert session.run(block) == []


NO_FILE = "$ maskwell inspect no.csv\nerror: the file 'no.csv' cannot be read: No such file or directory\n"


@pytest.mark.parametrize("in_process", [False, True])
def test_a_command_prints_and_ends_alike_in_this_process_and_in_its_own(session, in_process):
    session.in_process = in_process
    assert session.run(console(NO_FILE + "$ echo $?\n2\n")) == []
    for wrong in (
        NO_FILE,
        "$ maskwell --version\nmaskwell\n",
        NO_FILE + "$ echo $?\n1\n",
        "$ maskwell inspect no.csv\nerror\n$ echo $?\n2\n",
    ):
        assert len(session.run(console(wrong))) == 1


def test_the_commands_of_the_examples_are_those_under_test(session):
    status, output = session.shell("python -c 'import sys; print(sys.prefix)'; command -v maskwell")
    assert status == 0
    assert output.splitlines() == [sys.prefix, str(programs(session.folder) / "maskwell")]


def test_commands_are_found_in_groups_and_hidden_ones_left_out():
    import typer
    from typer.main import get_command

    app, keys = typer.Typer(), typer.Typer()
    for group, name, hidden in [
        (app, "attack", False),
        (app, "inner", True),
        (keys, "new", False),
        (keys, "split", False),
    ]:
        group.command(name, hidden=hidden)(lambda: None)
    app.add_typer(keys, name="key")
    names = list(command_names(get_command(app)))
    assert names == ["maskwell attack", "maskwell key new", "maskwell key split"]
    assert undocumented(iter(names), "`maskwell attacks` and `maskwell key new`") == [
        "maskwell attack",
        "maskwell key split",
    ]
