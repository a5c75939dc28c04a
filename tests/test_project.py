"""The frame: files name no registry or machine, all is pinned, pages load nothing, imports point down."""

from __future__ import annotations

import ast
import inspect
import os
import re
import stat
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from html.parser import HTMLParser
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "maskwell"
FOR_DEVELOPERS = {"test", "check", "docs", "bench"}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# Files name no registry and no machine.

# Written in pieces, so that this file does not name them either.
HOSTS = [
    ("pypi", ".org"),
    ("python", "hosted.org"),
    ("registry", ".npmjs"),
    ("deb", ".debian"),
    ("cdn", "."),
    ("js", "delivr"),
    ("un", "pkg"),
]
HOST = re.compile("|".join(re.escape("".join(pieces)) for pieces in HOSTS), re.IGNORECASE)
MACHINE = re.compile(r"(?<![\w.])/(work|farm|root|home/\w+)/")
NOT_OURS = {
    ".git",
    ".venv",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".hypothesis",
    "_build",
}
FOREIGN = [
    *("https://" + "".join(pieces) for pieces in HOSTS),
    *("/" + path for path in ("work/x", "root/x", "home/someone/x", "farm/x")),
]


def project_files() -> list[Path]:
    """Every file that is or could be committed; without git, every file outside the caches."""
    command = ["git", "-C", str(ROOT), "ls-files", "-coz", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        found = [ROOT / name for name in listed.split("\0") if name]
    except (FileNotFoundError, subprocess.CalledProcessError):
        found = [path for path in ROOT.rglob("*") if not NOT_OURS & set(path.relative_to(ROOT).parts)]
    return sorted(path for path in found if path.is_file())


def foreign_lines(text: str) -> list[int]:
    return [i for i, line in enumerate(text.splitlines(), 1) if HOST.search(line) or MACHINE.search(line)]


def test_no_file_names_a_registry_or_a_machine():
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in project_files()
        for line in foreign_lines(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert found == []


@pytest.mark.parametrize("line", FOREIGN)
def test_a_registry_or_a_machine_path_would_be_found(line):
    assert foreign_lines(f"fine\nsee {line} there\nfine") == [2]


def test_project_files_are_found():
    names = {path.relative_to(ROOT).as_posix() for path in project_files()}
    assert {"pyproject.toml", "Makefile", "tests/test_project.py", ".ci/run"} <= names
    assert not any(name.startswith((".venv/", ".git/")) for name in names)


# Versions.


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): version for name, version in pairs}


def declared() -> list[Requirement]:
    """What pyproject.toml asks for: to run, to build, and in every extra."""
    project = PYPROJECT["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    lines = [*project["dependencies"], *extras, *PYPROJECT["build-system"]["requires"], "editables"]
    return [requirement for line in lines if (requirement := Requirement(line)).name != "maskwell"]


def requirements_of(requirement: Requirement) -> list[Requirement]:
    """What an installed package asks for in turn, with the extras named; nothing if it is not installed."""
    try:
        lines = distribution(requirement.name).requires or []
    except PackageNotFoundError:
        return []
    extras = requirement.extras or {""}
    asked = [Requirement(line) for line in lines]
    return [one for one in asked if not one.marker or any(one.marker.evaluate({"extra": e}) for e in extras)]


def closure(requirements: list[Requirement]) -> set[str]:
    names: set[str] = set()
    seen: set[str] = set()
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        if str(requirement) not in seen:
            seen.add(str(requirement))
            names.add(canonicalize_name(requirement.name))
            waiting += requirements_of(requirement)
    return names


def test_constraints_are_pins_alone():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pin = re.compile(r"#.*|[A-Za-z0-9._-]+==[A-Za-z0-9.]+")
    assert [line for line in lines if not pin.fullmatch(line)] == []


def test_every_declared_dependency_is_pinned_within_its_bounds():
    pinned = pins()
    unpinned = [str(one) for one in declared() if canonicalize_name(one.name) not in pinned]
    outside = [
        str(one)
        for one in declared()
        if (name := canonicalize_name(one.name)) in pinned
        and not one.specifier.contains(pinned[name], prereleases=True)
    ]
    assert (unpinned, outside) == ([], [])


def test_every_pin_is_for_the_oldest_python_there_may_be():
    """A pin that asks for a later 3.11 leaves a fresh machine with 3.11.2 without its tools."""
    oldest = PYPROJECT["project"]["requires-python"].removeprefix(">=") + ".0"
    asked = {name: distribution(name).metadata["Requires-Python"] for name in pins() if is_installed(name)}
    assert len(asked) > len(declared()) / 2
    assert [name for name, bounds in asked.items() if bounds and oldest not in SpecifierSet(bounds)] == []


def is_installed(name: str) -> bool:
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False


def test_everything_an_installation_brings_is_pinned():
    assert sorted(closure(declared()) - set(pins())) == []


def declared_for_users() -> set[str]:
    extras = PYPROJECT["project"]["optional-dependencies"]
    lines = [line for name, lines in extras.items() if name not in FOR_DEVELOPERS for line in lines]
    return {
        canonicalize_name(Requirement(line).name) for line in [*PYPROJECT["project"]["dependencies"], *lines]
    }


def test_every_import_of_the_package_is_declared():
    providers, asked = packages_distributions(), declared_for_users() | {"maskwell"}
    undeclared = [
        f"{where} imports {name}"
        for where, name in top_level_imports()
        if name not in sys.stdlib_module_names
        and not asked & {canonicalize_name(provider) for provider in providers.get(name, [name])}
    ]
    assert undeclared == []


@dataclass(frozen=True)
class Outline:
    """What tests ask of the syntax of a module: all its imports, and the names that it defines."""

    imports: tuple[ast.Import | ast.ImportFrom, ...]
    functions: tuple[str, ...]
    classes: tuple[str, ...]


@cache
def outlines() -> dict[Path, Outline]:
    """Every module of the package, parsed once."""
    return {path: outline(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}


def outline(source: str) -> Outline:
    tree = ast.parse(source)
    imports = tuple(node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
    functions = tuple(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return Outline(imports, functions, tuple(n.name for n in tree.body if isinstance(n, ast.ClassDef)))


def top_level_imports() -> Iterator[tuple[str, str]]:
    for path, own in outlines().items():
        for node in own.imports:
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [] if node.level else [node.module or ""]
            for name in names:
                yield str(path.relative_to(ROOT)), name.split(".")[0]


def test_the_package_says_the_version_of_pyproject():
    import maskwell

    assert maskwell.__version__ == PYPROJECT["project"]["version"]


# Continuous integration.


def test_ci_is_executable_and_ends_with_the_tests():
    script = ROOT / ".ci" / "run"
    lines = [line for line in script.read_text(encoding="utf-8").splitlines() if line.strip()]
    assert script.stat().st_mode & stat.S_IXUSR
    assert lines[0] == "#!/usr/bin/env bash"
    assert re.match(r"make\b.* check\b", lines[-2])
    assert re.match(r"make\b.* test\b", lines[-1])


# The built documentation loads nothing from elsewhere.


class Loads(HTMLParser):
    """Collects the addresses that a browser fetches by itself when it shows a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        fetched = [named.get(name) for name in ("src", "srcset", "poster", "data")]
        if tag == "link" and named.get("rel") not in {"canonical", "author", "license"}:
            fetched.append(named.get("href"))
        self.found += [address for address in fetched if address]
        self.found += styled(named.get("style") or "")


def styled(css: str) -> list[str]:
    """The addresses that a style sheet fetches."""
    return re.findall(r"""(?:url\(|@import)\s*['"]?([^'")\s;]+)""", css)


def outside(addresses: list[str]) -> list[str]:
    return [address for address in addresses if re.match(r"([a-z][a-z+.-]*:)?//", address, re.IGNORECASE)]


def page_loads(html: str) -> list[str]:
    parser = Loads()
    parser.feed(html)
    inline = re.findall(r"<style[^>]*>(.*?)</style>", html, re.DOTALL | re.IGNORECASE)
    return outside(parser.found + [address for css in inline for address in styled(css)])


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    places = ["-d", str(out / "doctrees"), str(ROOT / "docs"), str(out / "html")]
    # A dead proxy stands in for a machine without a net.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    done = subprocess.run([*command, *places], capture_output=True, text=True, env=os.environ | nowhere)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "html"


def test_documentation_loads_nothing_from_elsewhere(site):
    pages = {path: page_loads(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    sheets = {path: outside(styled(path.read_text(encoding="utf-8"))) for path in site.rglob("*.css")}
    assert (site / "index.html") in pages
    assert {str(path.relative_to(site)): found for path, found in (pages | sheets).items() if found} == {}


def test_every_page_is_in_the_contents(site):
    contents = (site / "index.html").read_text(encoding="utf-8")
    pages = [path.stem for path in (ROOT / "docs").glob("*.md") if path.stem != "index"]
    assert [name for name in pages if f'href="{name}.html"' not in contents] == []


@pytest.mark.parametrize(
    "html",
    [
        '<script src="https://example.org/x.js"></script>',
        '<link rel="stylesheet" href="//example.org/x.css">',
        '<link rel="preconnect" href="https://example.org">',
        '<img src="http://example.org/x.png">',
        '<p style="background: url(https://example.org/x.png)">',
        "<style>@import 'https://example.org/x.css';</style>",
    ],
)
def test_an_outside_load_would_be_found(html):
    assert len(page_loads(html)) == 1


@pytest.mark.parametrize(
    "html",
    [
        '<a href="https://example.org">a link is not a load</a>',
        '<script src="_static/x.js"></script>',
        '<link rel="canonical" href="https://example.org">',
        '<img src="data:image/png;base64,AAAA">',
    ],
)
def test_links_and_own_files_are_no_outside_loads(html):
    assert page_loads(html) == []


# Imports point down.

FLOORS = [  # from the ground up; a room may import rooms of its own floor and of those below
    {"schema", "errors", "tolerances", "toml_files", "notes", "words"},
    {"kernels", "keys", "arrow_buffers", "figure_style"},
    {"laws", "table", "io", "datasets", "engines"},
    {"card"},
    {"masking", "sealing"},
    {"masks", "attacks", "analysis"},
    {"calibration", "protect", "checks", "utility"},
    {"plan", "pipeline"},
    {"report"},
    {"release_job"},
    {"cli", "studio", "studies"},
]
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
STRANGERS = {"masks", "attacks", "analysis"}  # these know each other by the card alone
DOORS = {"__init__", "__main__"}  # the ways in, above all floors


def module_name(path: Path) -> tuple[str, ...]:
    """The dotted name of a file below the package, as a tuple; a package is named with its `__init__`."""
    return path.relative_to(PACKAGE).with_suffix("").parts


def imported(own: Outline, module: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The modules of the package that a module imports; `()` is the package's public face."""
    for node in own.imports:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top, *rest = alias.name.split(".")
                if top == "maskwell":
                    yield tuple(rest)
        else:
            base = origin(node, module)
            if base is not None:
                yield from (
                    [base] if base else [(name.name,) if name.name in FLOOR else () for name in node.names]
                )


def origin(node: ast.ImportFrom, module: tuple[str, ...]) -> tuple[str, ...] | None:
    """The module of the package that a `from` statement names, or None if it is another package's."""
    tail = tuple((node.module or "").split(".")) if node.module else ()
    if node.level:
        return module[: len(module) - node.level] + tail
    return tail[1:] if tail[:1] == ("maskwell",) else None


def misplaced(own: Outline, module: tuple[str, ...]) -> list[str]:
    """What is wrong with the imports of a module of the package, in words."""
    room = module[0]
    if room in DOORS:
        return []
    if room not in FLOOR:
        return [f"the room {room} is on no floor"]
    problems = []
    for target in imported(own, module):
        if not target:
            if room not in FLOORS[-1]:
                problems.append(f"{room} imports the public face")
        elif target[0] not in FLOOR:
            problems.append(f"{room} imports {target[0]}, which is on no floor")
        elif FLOOR[target[0]] > FLOOR[room]:
            problems.append(f"{room} imports {target[0]} from a floor above")
        elif target[0] != room and {target[0], room} <= STRANGERS:
            problems.append(f"{room} imports {target[0]}, which it must not know")
    return problems


def test_imports_point_down():
    problems = [
        f"{path.relative_to(ROOT)}: {problem}"
        for path, own in outlines().items()
        for problem in misplaced(own, module_name(path))
    ]
    assert problems == []


@pytest.mark.parametrize(
    ("module", "line", "problem"),
    [
        ("laws", "from maskwell.card import NoiseCard", "laws imports card from a floor above"),
        ("laws", "from .card import NoiseCard", "laws imports card from a floor above"),
        ("laws", "from . import card", "laws imports card from a floor above"),
        ("laws", "from maskwell import card", "laws imports card from a floor above"),
        ("laws", "import maskwell.card", "laws imports card from a floor above"),
        ("laws", "import maskwell", "laws imports the public face"),
        ("laws", "from maskwell import apply", "laws imports the public face"),
        ("laws", "from maskwell.helpers import x", "laws imports helpers, which is on no floor"),
        ("helpers", "import numpy", "the room helpers is on no floor"),
        (
            "attacks.bayes",
            "from maskwell.masks.additive import x",
            "attacks imports masks, which it must not know",
        ),
        ("attacks.bayes", "from ..masks import x", "attacks imports masks, which it must not know"),
        (
            "attacks.bayes",
            "def f():\n    from maskwell.cli import x",
            "attacks imports cli from a floor above",
        ),
    ],
)
def test_a_misplaced_import_would_be_found(module, line, problem):
    assert misplaced(outline(line), tuple(module.split("."))) == [problem]


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("laws", "from maskwell.kernels import densities"),
        ("laws", "from maskwell.table import Table"),
        ("laws", "import numpy as np\nfrom scipy.stats import norm"),
        ("attacks.bayes", "from .nearest import h\nfrom . import linkage\nfrom ..card import NoiseCard"),
        (
            "attacks.__init__",
            "from .bayes import BayesIntruder\nfrom maskwell.attacks.linkage import Linkage",
        ),
        ("cli", "from maskwell import masking"),
        ("studies.kim.study", "import maskwell as mw\nfrom maskwell import apply"),
        ("__main__", "from maskwell.cli import main"),
    ],
)
def test_a_well_placed_import_passes(module, line):
    assert misplaced(outline(line), tuple(module.split("."))) == []


def test_contributing_lists_the_floors_as_they_are():
    lines = re.findall(
        r"^\| (\d+) \| (.*?) \|", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {int(floor): set(re.findall(r"`(\w+)`", rooms)) for floor, rooms in lines} == dict(
        enumerate(FLOORS)
    )


# No cycles: whoever reads a module need not have read one that reads it.

# Methods of `Table` and `Masking` that hand on to a module which makes such objects; DESIGN names these methods.
HANDED_ON = {
    ("table", "io.frames"),
    ("masking.results", "masking.from_files"),
    ("masking.results", "masking.hidden_cards"),
    ("masking.results", "masking.release_files"),
    ("masking.results", "masking.shuffle"),
}


def is_for_types(node: ast.AST) -> bool:
    """Whether it is a block that type checkers alone read."""
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def run_imports(tree: ast.AST) -> Iterator[ast.ImportFrom]:
    """The `from` statements that run some time, those in functions too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ImportFrom):
            yield node
        elif not is_for_types(node):
            yield from run_imports(node)


def import_graph(sources: dict[tuple[str, ...], str]) -> dict[str, set[str]]:
    """Which modules import which others, by dotted names; packages themselves, the doors, are left out."""
    graph: dict[str, set[str]] = {".".join(module): set() for module in sources if module[-1] not in DOORS}
    for module, source in sources.items():
        for node in run_imports(ast.parse(source)):
            base = origin(node, module)
            if base is not None:
                names = {".".join(base), *(".".join((*base, alias.name)) for alias in node.names)}
                graph.get(".".join(module), set()).update(names & set(graph) - {".".join(module)})
    return graph


def cycle(sources: dict[tuple[str, ...], str], handed_on: set[tuple[str, str]]) -> list[str]:
    """A cycle of imports, if there is one."""
    graph = {
        module: {other for other in others if (module, other) not in handed_on}
        for module, others in import_graph(sources).items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def package_sources() -> dict[tuple[str, ...], str]:
    return {module_name(path): path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}


def test_no_module_imports_one_that_imports_it():
    sources = package_sources()
    assert cycle(sources, HANDED_ON) == []
    graph = import_graph(sources)
    assert all(other in graph[module] for module, other in HANDED_ON)


@pytest.mark.parametrize(
    "line", ["from .b import f", "def f():\n    from . import b", "from maskwell.b import f"]
)
def test_a_cycle_would_be_found(line):
    assert cycle({("a",): line, ("b",): "from .a import g"}, set()) != []
    assert cycle({("a",): line, ("b",): "import numpy"}, set()) == []


def test_types_may_point_back():
    sources = {("a",): "from .b import f", ("b",): "if TYPE_CHECKING:\n    from .a import g"}
    assert cycle(sources, set()) == []


# Protocols: nobody asks whether a plan has an attribute.

# What is left: the values of formulae's trees, pyarrow's types, the user's own functions and distributions, the
# operating system, and figures of a report that several kinds of results have or have not.
MOST_ASKED = 32
PLANS = {"plan", "mask", "law", "attack", "check", "noise", "spread", "engine", "sampler"}


def asked_attributes(source: str) -> Iterator[str]:
    """The `getattr` and `hasattr` with a literal name of a module, as code."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            literal = len(node.args) > 1 and isinstance(node.args[1], ast.Constant)
            if literal and node.func.id in ("getattr", "hasattr"):
                yield ast.unparse(node)


def asks_a_plan(code: str) -> bool:
    """Whether it is a plan, a mask, a law or the like that is asked."""
    return bool(PLANS & set(re.findall(r"\w+", code.split(",")[0])))


def test_few_ask_whether_something_has_an_attribute_and_nobody_asks_a_plan():
    found = [
        (str(path.relative_to(PACKAGE)), code)
        for path in sorted(PACKAGE.rglob("*.py"))
        for code in asked_attributes(path.read_text(encoding="utf-8"))
    ]
    assert len(found) <= MOST_ASKED
    assert [one for one in found if asks_a_plan(one[1])] == []


@pytest.mark.parametrize("name", ["plan", "risk.attack", "self.mask", "law.noise", "mask"])
def test_a_plan_that_is_asked_would_be_found(name):
    code = f"if getattr({name}, 'targets', None) or hasattr({name}, 'error'):\n    pass"
    assert [asks_a_plan(one) for one in asked_attributes(code)] == [True, True]
    assert list(asked_attributes(f"getattr({name}, option)\n{name}.targets")) == []


# Types: nothing public takes or gives `Any`, but at the border to dataframes, Arrow and arviz.

BORDERS = {
    "Posterior.predict.new",
    "Posterior.to_arviz.return",
    "Release.to_frame.return",
    "Table.array.return",
    "Table.from_frame.frame",
    "Table.ids.return",
    "Table.to_frame.return",
    "Table.written.return",
    "attacks.Belief.labels",
    "datasets.housing_arrays.return",
    "utility.Model.of.given",
}


def public_names() -> Iterator[tuple[str, object]]:
    """The names at the top and those of its rooms, each thing once, by its first name."""
    import maskwell

    seen: set[int] = set()
    rooms = [name for name in maskwell.__all__ if inspect.ismodule(getattr(maskwell, name))]
    places = [("", maskwell), *((f"{name}.", getattr(maskwell, name)) for name in rooms)]
    for prefix, room in places:
        for name in getattr(room, "__all__", ()):
            thing = getattr(room, name)
            if not inspect.ismodule(thing) and id(thing) not in seen:
                seen.add(id(thing))
                yield prefix + name, thing


def annotations(name: str, thing: object) -> Iterator[tuple[str, str]]:
    """The annotations of a function, or of the public fields and methods of a class."""
    if inspect.isfunction(thing):
        yield from ((f"{name}.{key}", said) for key, said in thing.__annotations__.items())
    elif inspect.isclass(thing):
        own = inspect.get_annotations(thing)
        yield from ((f"{name}.{key}", said) for key, said in own.items() if not key.startswith("_"))
        for key, member in vars(thing).items():
            if not key.startswith("_"):
                inner = getattr(member, "fget", None) or getattr(member, "__func__", member)
                yield from annotations(f"{name}.{key}", inner if inspect.isfunction(inner) else None)


def says_any(annotation: object) -> bool:
    """Whether an annotation leaves open what is taken or given; plain data (JSON) may hold anything."""
    said = re.sub(r"\b(dict|Mapping)\[str, Any\]", "", str(annotation))
    return re.search(r"\bAny\b", said) is not None


def test_nothing_public_takes_or_gives_anything_but_at_a_border():
    found = {
        place for name, thing in public_names() for place, said in annotations(name, thing) if says_any(said)
    }
    assert found == BORDERS


def test_an_open_annotation_would_be_found():
    def verb(plan: "Any", data: "dict[str, Any]") -> "list[Any]":  # noqa: F821, UP037
        return []

    assert [place for place, said in annotations("verb", verb) if says_any(said)] == [
        "verb.plan",
        "verb.return",
    ]


# Names: a module is called by a noun of the field, and a class by a name of its own.

NOUNS = {
    "masking",
    "nesting",
    "matching",
    "sealing",
    "seed",
    "housing",
    "listing",
}  # though they end so
PAST = {"told", "laid", "found", "drawn", "left", "kept", "held", "sent", "shown", "taken", "given", "known"}


def is_participle(name: str) -> bool:
    return name not in NOUNS and "_" not in name and (name.endswith(("ed", "ing")) or name in PAST)


def public_classes() -> Iterator[tuple[str, str]]:
    for path, own in outlines().items():
        for name in own.classes:
            if not name.startswith("_"):
                yield name, str(path.relative_to(PACKAGE))


def test_modules_are_not_named_by_participles():
    names = {path.stem for path in PACKAGE.rglob("*.py")} | {
        path.name for path in PACKAGE.rglob("*") if path.is_dir()
    }
    assert [name for name in sorted(names) if is_participle(name)] == []
    assert is_participle("smeared")
    assert is_participle("told")


def test_functions_are_not_named_by_participles_alone():
    found = [
        f"{path.relative_to(PACKAGE)}:{name}"
        for path, own in outlines().items()
        for name in own.functions
        if is_participle(name.strip("_"))
    ]
    assert found == []


def test_no_two_classes_that_others_see_have_one_name():
    places: dict[str, list[str]] = {}
    for name, place in public_classes():
        places.setdefault(name, []).append(place)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_glossary_names_modules_that_are_there():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    named = [
        name
        for line in text.splitlines()
        if line.startswith("|") and line.count("|") >= 4
        for name in re.findall(r"`([\w/]+)`", line.split("|")[-2])
    ]
    missing = [name for name in named if not any((PACKAGE / f"{name}{end}").exists() for end in ("", ".py"))]
    assert len(named) > 50
    assert missing == []
