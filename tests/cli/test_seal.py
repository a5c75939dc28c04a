"""`maskwell seal`, `maskwell unseal`, and `maskwell fit` on a release whose card is sealed or kept."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import Any

import pyrage
import pytest

import maskwell as mw
from maskwell import cli
from maskwell.cli import seal_command as sealing
from maskwell.sealing import read_card, seal

FORMULA = "TAX ~ INCOME"
WORDS = "four words of a passphrase"
SCRYPT = b"age-encryption.org/v1\n-> scrypt salt 18\n"


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    """The two commands, where the command line does not have them yet."""
    known = {command.callback.__name__ for command in cli.app.registered_commands if command.callback}
    for command in (sealing.seal, sealing.unseal):
        if command.__name__ not in known:
            cli.app.command()(command)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, people: Any) -> Path:
    """A folder with an identity (key.txt, key.pub) and releases of the same data: open, sealed, kept."""
    where = tmp_path_factory.mktemp("written")
    identity = pyrage.x25519.Identity.generate()
    (where / "key.txt").write_text(f"{identity}\n")
    (where / "key.txt").chmod(0o600)
    (where / "key.pub").write_text(str(identity.to_public()))
    to = [str(identity.to_public())]
    masking = mw.apply(mw.IndependentNoise(("INCOME",), variance_ratio=0.2), people, seed=5)
    for card in ("open", "sealed", "kept"):
        options = {"sealing": lambda content: seal(content, to=to)} if card == "sealed" else {}
        masking.write(release=where / card, private=where / "inside", format="csv", card=card, **options)
    (where / "card.json").write_bytes((where / "open" / "card.json").read_bytes())
    return where


@pytest.fixture
def folder(written: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, in which the command runs."""
    here = Path(copytree(written, tmp_path / "here"))
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def to(folder: Path) -> str:
    return (folder / "key.pub").read_text()


@pytest.fixture
def weak(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passphrases without their cost, which takes seconds: the content follows the passphrase in clear."""

    def opened(content: bytes, passphrase: str) -> bytes:
        if not content.startswith(SCRYPT + passphrase.encode() + b"\n"):
            raise pyrage.DecryptError("Decryption failed")
        return content.split(b"\n", 3)[3]

    both = SimpleNamespace(
        encrypt=lambda content, words: SCRYPT + words.encode() + b"\n" + content, decrypt=opened
    )
    monkeypatch.setattr(pyrage, "passphrase", both)


def private_file(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# --- seal and unseal


def test_what_was_sealed_is_unsealed_for_its_reader_alone(run: Any, folder: Path, to: str) -> None:
    before = (folder / "card.json").read_bytes()
    ran = run("seal", "card.json", "--to", to, "--to", to)
    assert (ran.code, ran.out, ran.err) == (0, "sealed for 2 readers: card.json.age\n", "")
    (folder / "card.json").unlink()
    ran = run("unseal", "card.json.age", "--identity", "key.txt")
    assert (ran.code, ran.err) == (0, "")
    assert (folder / "card.json").read_bytes() == before
    assert stat.S_IMODE((folder / "card.json").stat().st_mode) == 0o600
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((folder / "card.json.age").stat().st_mode) == 0o666 & ~umask


def test_nothing_is_replaced_without_force(run: Any, folder: Path, to: str) -> None:
    (folder / "card.json.age").write_text("mine")
    ran = run("seal", "card.json", "--to", to)
    assert ran.code == 2
    assert "already there" in ran.err
    assert (folder / "card.json.age").read_text() == "mine"
    assert run("seal", "card.json", "--to", to, "--force").code == 0
    assert run("unseal", "card.json.age", "--identity", "key.txt").code == 2
    (folder / "card.json").chmod(0o644)
    assert run("unseal", "card.json.age", "--identity", "key.txt", "--force").code == 0
    assert stat.S_IMODE((folder / "card.json").stat().st_mode) == 0o600


def test_a_bundle_is_not_damaged(run: Any, folder: Path, to: str) -> None:
    for words in (
        ("seal", "open/card.json", "--to", to),
        ("unseal", "sealed/card.json.age", "--identity", "key.txt"),
    ):
        ran = run(*words)
        assert ran.code == 2
        assert "is a bundle, which a further file would damage" in ran.err
    assert run("unseal", "sealed/card.json.age", "--identity", "key.txt", "-o", "mine.json").code == 0
    assert (folder / "mine.json").read_bytes() == (folder / "open" / "card.json").read_bytes()


def test_a_passphrase_from_a_file(run: Any, folder: Path, weak: None) -> None:
    private_file(folder / "words", f"{WORDS}\n")
    ran = run("seal", "card.json", "--passphrase-file", "words")
    assert (ran.code, ran.out) == (0, "sealed by a passphrase: card.json.age\n")
    assert run("unseal", "card.json.age", "--passphrase-file", "words", "-o", "mine.json").code == 0
    assert (folder / "mine.json").read_bytes() == (folder / "card.json").read_bytes()
    private_file(folder / "words", "something else altogether\n")
    ran = run("unseal", "card.json.age", "--passphrase-file", "words", "--force")
    assert ran.code == 2
    assert "the passphrase does not open the card" in ran.err
    ran = run("unseal", "card.json.age", "--identity", "key.txt", "--force")
    assert "give the passphrase" in ran.err


def test_a_passphrase_is_asked_for(
    run: Any, folder: Path, weak: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[dict[str, Any]] = []

    def prompt(text: str, **options: Any) -> str:
        asked.append(options)
        return WORDS

    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("typer.prompt", prompt)
    assert run("seal", "card.json", "--passphrase").code == 0
    assert run("unseal", "card.json.age", "-o", "mine.json").code == 0
    assert [(one["hide_input"], one["confirmation_prompt"]) for one in asked] == [(True, True), (True, False)]
    assert read_card(folder / "mine.json") == read_card(folder / "card.json")
    assert run("unseal", "sealed/card.json.age", "--identity", "key.txt", "-o", "other.json").code == 0
    assert len(asked) == 2  # not where the card has recipients


def test_ctrl_c_at_the_prompt_leaves_nothing(folder: Path) -> None:
    """At a real terminal: the prompt shows, Ctrl-C ends it as anywhere else."""
    before, (ours, its) = names(folder), pty.openpty()
    program = (
        "import typer, maskwell.cli as cli; from maskwell.cli import seal_command as sealing\n"
        "if not any(c.callback.__name__ == 'seal' for c in cli.app.registered_commands):\n"
        "    cli.app.command()(sealing.seal)\n"
        "cli.main()"
    )
    words = [sys.executable, "-c", program, "seal", "card.json", "--passphrase"]
    with subprocess.Popen(words, stdin=its, stdout=its, stderr=its, start_new_session=True) as process:
        os.close(its)
        said = b""
        while b"passphrase of the card" not in said:
            said += os.read(ours, 1000)
        process.send_signal(2)
        code = process.wait(30)
    os.close(ours)
    assert code == 130
    assert names(folder) == before


@pytest.mark.parametrize("place", ["os.link", "pathlib.Path.write_bytes", "maskwell.sealing.unseal"])
def test_ctrl_c_leaves_nothing(run: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    before = names(folder)
    monkeypatch.setattr(place, stop)
    assert run("unseal", "sealed/card.json.age", "--identity", "key.txt", "-o", "mine.json").code == 130
    assert names(folder) == before


def test_without_links_files_are_put_in_place_all_the_same(
    run: Any, folder: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_here(*_: Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", none_here)
    assert run("seal", "card.json", "--to", to).code == 0
    assert read_card(folder / "card.json.age", identity=folder / "key.txt") == read_card(folder / "card.json")
    assert not [name for name in names(folder) if name.startswith(".")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("seal card.json", "say who may read the card"),
        ("seal card.json --to age1x --passphrase", "say who may read the card"),
        ("seal card.json --to age1x", "recipient 1 is no age or SSH public key"),
        ("seal card.json --passphrase", "nobody is here to be asked"),
        ("seal card.json --passphrase-file short", "less than 12 characters"),
        ("seal card.json --passphrase-file loose", "run chmod 600 loose"),
        ("seal none.json --passphrase-file words", "cannot be read"),
        ("seal key.pub --passphrase-file words", "the card is damaged"),
        ("unseal none.age --identity key.txt", "cannot be read"),
        ("unseal card.json", "does not end in .age"),
        ("unseal sealed/card.json.age -o x.json", "give the file of an identity"),
        ("unseal sealed/card.json.age -o x.json --identity loose", "run chmod 600 loose"),
        ("unseal sealed/card.json.age -o nowhere/x.json --identity key.txt", "does not exist"),
        ("unseal sealed/card.json.age -o sealed --identity key.txt", "is a folder"),
    ],
)
def test_what_is_refused(run: Any, folder: Path, words: str, said: str) -> None:
    private_file(folder / "short", "pass\n")
    private_file(folder / "words", f"{WORDS}\n")
    (folder / "loose").write_text(f"{WORDS}\n")
    (folder / "loose").chmod(0o644)
    before = names(folder)
    ran = run(*words.split())
    assert ran.code == 2
    assert said in ran.err
    assert names(folder) == before


def test_a_secret_key_given_by_mistake_is_not_repeated(run: Any, folder: Path) -> None:
    secret = (folder / "key.txt").read_text().strip()
    for words in (("seal", "card.json", "--to", secret), ("unseal", "sealed/card.json.age", "-o", "x.json")):
        ran = run(*words, *(("--identity", secret) if words[0] == "unseal" else ()))
        assert ran.code == 2
        assert "secret key" in ran.err
        assert secret[:20] not in ran.err + ran.out


# --- fit


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The releases that fit is asked to fit; what they need of their card is asked for, nothing is drawn."""
    seen: list[Any] = []

    def stand_in(formula: str, release: Any, **options: Any) -> Any:
        release.card.law_of("INCOME")
        seen.append(release)
        found = SimpleNamespace(notes=(), warning="", converged=True)
        found.lines = lambda *_: ["fitted"]
        return found

    monkeypatch.setattr("maskwell.analysis.fit", stand_in, raising=False)
    return seen


@pytest.mark.parametrize(
    "words",
    [
        "open",
        "sealed --identity key.txt",
        "kept --card card.json",
        "kept --card sealed/card.json.age --identity key.txt",
        "sealed/data.csv --card sealed/card.json.age --identity key.txt",
    ],
)
def test_fit_reads_the_card_from_where_it_is(run: Any, folder: Path, fitted: list[Any], words: str) -> None:
    release, *options = words.split()
    ran = run("fit", release, FORMULA, *options)
    assert (ran.code, ran.out, ran.err) == (0, "fitted\n", "")
    assert fitted[0].card == mw.read_release("open").card


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("sealed", "--identity key.txt"),
        ("kept", "steward kept the noise card"),
        ("sealed --identity stranger.txt", "sealed for others"),
        ("kept --card sealed/card.json.age", "give the file of an identity"),
        ("sealed/data.csv --card sealed/card.json.age", "give the file of an identity"),
    ],
)
def test_fit_says_what_it_needs(run: Any, folder: Path, fitted: list[Any], words: str, said: str) -> None:
    private_file(folder / "stranger.txt", f"{pyrage.x25519.Identity.generate()}\n")
    release, *options = words.split()
    ran = run("fit", release, FORMULA, *options)
    assert ran.code == 2
    assert said in ran.err
    assert fitted == []


def test_fit_takes_a_passphrase_from_a_file(run: Any, folder: Path, fitted: list[Any], weak: None) -> None:
    private_file(folder / "words", f"{WORDS}\n")
    (folder / "came.age").write_bytes(seal("card.json", passphrase=WORDS))
    assert run("fit", "kept", FORMULA, "--card", "came.age", "--passphrase-file", "words").code == 0
    assert fitted[0].card == mw.read_release("open").card
