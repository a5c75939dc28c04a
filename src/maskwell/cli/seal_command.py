"""`maskwell seal` and `maskwell unseal`: noise cards for those who may read them, in the age format."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from ..errors import BadPlan, CannotWrite

SHORTEST = 12  # characters of a new passphrase: a file that has left can be guessed at for years
NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})

IdentityOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Your secret key, for a sealed card: an age identity file or SSH key."),
]
PassphraseFileOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Its first line is the passphrase of the card.", show_default="asked for"
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="The file to write.", show_default="beside"),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace a file that is there.")]


def seal(
    card: Annotated[Path, typer.Argument(metavar="CARD", help="The card of a release: card.json.")],
    to: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Who may read it: age1..., 'ssh-ed25519 ...'; again for others."),
    ] = None,
    passphrase: Annotated[
        bool, typer.Option("--passphrase", help="Seal by a passphrase, asked for.")
    ] = False,
    passphrase_file: PassphraseFileOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Seal a noise card so that only those who may can read it: with their keys, or by a passphrase.

    Writes CARD.age in the age format; `maskwell unseal` and `maskwell fit --identity` open it, and so does age. The
    open card stays where it is.

    Examples:

    - `maskwell seal card.json --to age1... --to age1...`

    - `maskwell seal card.json --passphrase`
    """
    from ..sealing import SUFFIX
    from ..sealing import seal as sealed

    target = output or card.with_name(card.name + SUFFIX)
    by_passphrase = passphrase or passphrase_file is not None
    if by_passphrase == bool(to):
        raise BadPlan("say who may read the card: --to age1... (again for others), or --passphrase")
    _check_target(target, force)
    secret = _new_passphrase(passphrase_file) if by_passphrase else None
    _write(target, sealed(card, to=to or (), passphrase=secret), private=False, force=force)
    readers = "by a passphrase" if secret else f"for {len(to or ())} reader{'s' * (len(to or ()) != 1)}"
    typer.echo(f"sealed {readers}: {target}")


def unseal(
    sealed: Annotated[Path, typer.Argument(metavar="SEALED", help="A sealed card: card.json.age.")],
    identity: IdentityOption = None,
    passphrase_file: PassphraseFileOption = None,
    output: OutputOption = None,
    force: ForceOption = False,
) -> None:
    """Open a sealed noise card with your identity file or its passphrase, into a file that only you can read.

    Examples:

    - `maskwell unseal card.json.age --identity key.txt`

    - `maskwell unseal release/card.json.age --identity key.txt --output card.json`
    """
    from ..card import NoiseCard
    from ..sealing import unseal as opened

    target = output or _without_suffix(sealed)
    _check_target(target, force)
    passphrase = passphrase_for(sealed, passphrase_file)
    content = opened(sealed, identity=identity, passphrase=passphrase)
    NoiseCard.from_json(
        content.decode("utf-8", errors="replace")
    )  # refuses what is no card, damaged or newer
    _write(target, content, private=True, force=force)
    typer.echo(f"unsealed, for you alone: {target}")


def passphrase_for(card: Path | None, file: Path | None) -> str | None:
    """Return the passphrase of a card: from a file, or asked for where it is needed and someone can answer."""
    from ..sealing import is_sealed, passphrase_of, sealed_by_passphrase

    if file is not None:
        return passphrase_of(file)
    if card is None or not card.is_file() or not sys.stdin.isatty():
        return None
    try:
        content = card.read_bytes()
    except OSError:  # who reads the card says so
        return None
    if not is_sealed(content) or not sealed_by_passphrase(content):
        return None
    return _prompt_passphrase(f"passphrase of {card}", twice=False)


def _new_passphrase(file: Path | None) -> str:
    from ..sealing import passphrase_of

    if file is None and not sys.stdin.isatty():
        raise BadPlan("nobody is here to be asked for the passphrase: give --passphrase-file FILE")
    secret = _prompt_passphrase("passphrase of the card", twice=True) if file is None else passphrase_of(file)
    if len(secret) < SHORTEST:
        raise BadPlan(
            f"the passphrase has less than {SHORTEST} characters: take several words, since a sealed card that has "
            "left can be guessed at for years"
        )
    return secret


def _prompt_passphrase(what: str, *, twice: bool) -> str:
    try:
        return str(typer.prompt(what, hide_input=True, confirmation_prompt=twice, err=True))
    except typer.Abort:  # Ctrl-C at the prompt stops as anywhere else
        raise KeyboardInterrupt from None


def _without_suffix(sealed: Path) -> Path:
    from ..sealing import SUFFIX

    if sealed.suffix.lower() != SUFFIX:
        raise BadPlan(
            f"{str(sealed)!r} does not end in {SUFFIX}: name the file to write (--output card.json)"
        )
    return sealed.with_suffix("")


def _check_target(path: Path, force: bool) -> None:
    """Refuse, before any work, a file that is there already, or that would damage a bundle."""
    from ..io.bundle import MANIFEST

    if os.path.lexists(path.parent / MANIFEST):
        raise CannotWrite(
            f"{str(path.parent)!r} is a bundle, which a further file would damage: name a file elsewhere (--output)"
        )
    if path.is_dir():
        raise CannotWrite(f"{str(path)!r} is a folder; name a file (--output)")
    if os.path.lexists(path) and not force:
        raise CannotWrite(f"{str(path)!r} is already there; name another (--output) or replace it (--force)")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise CannotWrite(f"the folder {str(path.parent)!r} does not exist or is not writable")


def _write(path: Path, content: bytes, *, private: bool, force: bool) -> None:
    """Write a file whole or not at all, a private one closed to others from its first byte on."""
    try:
        with _beside(path, 0o600 if private else 0o666) as part:
            part.write_bytes(content)
            if force:
                part.replace(path)
            else:
                _place_new_file(part, path)
    except FileExistsError:
        raise CannotWrite(f"{str(path)!r} is already there; name another (--output) or replace it") from None
    except OSError as error:
        raise CannotWrite(f"{str(path)!r} cannot be written: {error.strerror}") from None


@contextmanager
def _beside(path: Path, mode: int) -> Iterator[Path]:
    """Yield a new, empty file beside the target; it is gone at the end, also after Ctrl-C."""
    part = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield part
    finally:
        with suppress(FileNotFoundError):
            part.unlink()


def _place_new_file(part: Path, path: Path) -> None:
    """Give a file its name if nothing has it: by a link, which never replaces, where the file system has links."""
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if os.path.lexists(path):
            raise FileExistsError from None
        part.replace(path)
