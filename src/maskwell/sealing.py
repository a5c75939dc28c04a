"""Noise cards sealed for those who may read them: files in the age format (age-encryption.org/v1), by pyrage.

A seal says who can read a card, not who wrote it: anybody can seal to a public recipient. What ties a card to its
data is the hash of the data file that it carries.
"""

from __future__ import annotations

import base64
import binascii
import os
import shlex
import stat
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from .card import NoiseCard
from .errors import BadBundle, BadPlan, raise_all

SUFFIX: Final = ".age"
_HEADER: Final = b"age-encryption.org/"
_ARMOUR: Final = b"-----BEGIN AGE ENCRYPTED FILE-----"
_SECRET: Final = "AGE-SECRET-KEY-"
_SSH: Final = ("ssh-ed25519 ", "ssh-rsa ")
_MOST_BYTES: Final = 100_000_000  # of a card, an identity or a passphrase: no such file is larger
_MOST_HEADER: Final = 1_000_000
_OURS: Final = 0o077  # the bits that open a file to others


def seal(
    card: bytes | str | Path | NoiseCard, *, to: Sequence[str] = (), passphrase: str | None = None
) -> bytes:
    """Seal a card for recipients (age1..., ssh-ed25519 ..., ssh-rsa ...) or by a passphrase; return an age file.

    `card` is that of a written release: its bytes, its file, or a `NoiseCard` read from it, which names its data.
    """
    content = _content(card)
    _check_card(content)
    if isinstance(to, str):
        raise BadPlan("the recipients are a list, such as to=['age1...']")
    if bool(to) == (passphrase is not None):
        raise BadPlan(
            "a card is sealed either for recipients (age1...) or by one passphrase: give one of the two"
        )
    rage = _rage()
    if passphrase is not None:
        if not passphrase:
            raise BadPlan("the passphrase is empty: choose one of several words")
        return bytes(rage.passphrase.encrypt(content, passphrase))
    return bytes(rage.encrypt(content, _recipients(rage, to)))


def check_recipients(to: Sequence[str]) -> None:
    """Refuse, before any work, recipients that no card can be sealed for."""
    _recipients(_rage(), to)


def unseal(
    sealed: bytes | str | Path, *, identity: str | Path | None = None, passphrase: str | None = None
) -> bytes:
    """Return the content of a sealed card, opened by an identity file (age or SSH) or by its passphrase."""
    content = _sealed_content(sealed)
    by_passphrase = sealed_by_passphrase(content)
    rage = _rage()
    if by_passphrase and passphrase is None:
        raise BadBundle("the card is sealed by a passphrase, which no identity opens: give the passphrase")
    if not by_passphrase and identity is None:
        raise BadBundle(
            "the card is sealed: give the file of an identity that it was sealed for, such as key.txt"
        )
    try:
        if by_passphrase:
            return bytes(rage.passphrase.decrypt(content, passphrase))
        assert identity is not None
        return bytes(rage.decrypt(content, _identities(rage, Path(identity))))
    except rage.DecryptError as error:
        raise BadBundle(_why_not(str(error), by_passphrase)) from None


def read_card(
    path: str | Path, *, identity: str | Path | None = None, passphrase: str | None = None
) -> NoiseCard:
    """Read a card from a file, open or sealed; refuse damaged, foreign and newer ones with the reason."""
    content = _read_file(Path(path), "card")
    if not is_sealed(content):
        return NoiseCard.read(path)
    return _card(unseal(content, identity=identity, passphrase=passphrase))


def is_sealed(content: bytes) -> bool:
    """Whether some bytes are an age file, plain or armoured."""
    return content.startswith(_HEADER) or content.lstrip().startswith(_ARMOUR)


def sealed_by_passphrase(sealed: bytes | str | Path) -> bool:
    """Whether an age file was sealed by a passphrase, not for recipients; refuse what is no age file."""
    content = _sealed_content(sealed)
    if not is_sealed(content):
        raise BadBundle("this is no sealed card: it is not an age file")
    header = content[:_MOST_HEADER] if content.startswith(_HEADER) else _without_armour(content)
    first, _, rest = header.partition(b"\n")
    if first != _HEADER + b"v1":
        raise BadBundle("the card is sealed in another version of the age format than v1; upgrade maskwell")
    return rest.startswith(b"-> scrypt ")


def passphrase_of(path: str | Path) -> str:
    """Return the passphrase in a file's first line; the file must be closed to others."""
    content = _read_file(Path(path), "passphrase file", private=True)
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise BadBundle(f"the passphrase file {str(path)!r} is not UTF-8 text") from None
    if not lines or not lines[0]:
        raise BadBundle(f"the passphrase file {str(path)!r} is empty: its first line is the passphrase")
    return lines[0]


def _rage() -> Any:
    try:
        return import_module("pyrage")
    except ImportError:
        raise BadPlan("sealed cards need pyrage: pip install 'maskwell[seal]'") from None


def _content(card: bytes | str | Path | NoiseCard) -> bytes:
    if isinstance(card, NoiseCard):
        return card.to_json().encode("utf-8")
    return card if isinstance(card, bytes) else _read_file(Path(card), "card")


def _sealed_content(sealed: bytes | str | Path) -> bytes:
    return sealed if isinstance(sealed, bytes) else _read_file(Path(sealed), "card")


def _check_card(content: bytes) -> None:
    """Refuse to seal what no reader would accept: no card, or one that is not a release's own."""
    if is_sealed(content):
        raise BadPlan("the card is sealed already: unseal it first")
    if not _card(content).data_sha256:
        raise BadPlan(
            "the card does not say which data it belongs to: seal the card of a written release (card.json of the "
            "release, or release.card.json of its private half)"
        )


def _card(content: bytes) -> NoiseCard:
    try:
        return NoiseCard.from_json(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise BadBundle("the card is damaged: not UTF-8 text") from None


def _recipients(rage: Any, to: Sequence[str]) -> list[Any]:
    """Read recipients; they are told by their number, since a secret key may stand where a public one should."""
    found, problems = [], []
    for number, text in enumerate((text.strip() for text in to), start=1):
        if text.upper().startswith(_SECRET):
            problems.append(f"recipient {number} is a secret key: give the public one of it, age1...")
            continue
        kind = rage.ssh if text.startswith(_SSH) else rage.x25519
        try:
            found.append(kind.Recipient.from_str(text))
        except rage.RecipientError:
            problems.append(
                f"recipient {number} is no age or SSH public key (age1..., ssh-ed25519 ..., ssh-rsa ...)"
            )
    raise_all(problems, BadPlan)
    return found


def _identities(rage: Any, path: Path) -> list[Any]:
    """Read an identity file: lines of age's secret keys, or an SSH private key."""
    content = _read_file(path, "identity file", private=True)
    if is_sealed(content):
        raise BadBundle(f"the identity file {str(path)!r} is itself sealed: open it first (age -d)")
    try:
        if content.lstrip().startswith(b"-----BEGIN "):
            return [rage.ssh.Identity.from_buffer(content)]
        lines = [line.strip() for line in content.decode("utf-8").splitlines()]
        found = [rage.x25519.Identity.from_str(line) for line in lines if line and not line.startswith("#")]
    except (rage.IdentityError, UnicodeDecodeError):
        raise BadBundle(
            f"{str(path)!r} is no identity file: lines AGE-SECRET-KEY-1..., or an SSH key without a passphrase"
        ) from None
    if not found:
        raise BadBundle(f"the identity file {str(path)!r} has no key in it")
    return found


def _read_file(path: Path, what: str, *, private: bool = False) -> bytes:
    """Read a file; a private one only if it is closed to others (asked of the open file, so of what is read)."""
    if path.name.upper().startswith(_SECRET):
        raise BadPlan("an identity is given as a file, never as the secret key itself; take a new key")
    try:
        with path.open("rb") as file:
            if private:
                _check_closed(path, os.fstat(file.fileno()).st_mode, what)
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise BadBundle(f"the {what} {str(path)!r} cannot be read: {error.strerror}") from None
    if len(content) > _MOST_BYTES:
        raise BadBundle(f"{str(path)!r} is too large to be a {what}")
    return content


def _check_closed(path: Path, mode: int, what: str) -> None:
    """Refuse a private file that others can open; Windows has no such bits."""
    if os.name == "posix" and stat.S_ISREG(mode) and mode & _OURS:
        raise BadBundle(f"the {what} {str(path)!r} is open to others; run chmod 600 {shlex.quote(str(path))}")


def _without_armour(content: bytes) -> bytes:
    lines = content.strip()[:_MOST_HEADER].splitlines()[1:-1]
    try:
        text = b"".join(line.strip() for line in lines)
        return base64.b64decode(text[: len(text) // 4 * 4])
    except binascii.Error:
        return b""


def _why_not(said: str, by_passphrase: bool) -> str:
    """Say why a card was not opened, by what pyrage says: who may not, or what is not whole."""
    if "No matching keys" in said:
        return (
            "the card was sealed for others (or was changed): none of the keys in the identity file opens it"
        )
    if by_passphrase and said == "Decryption failed":
        return "the passphrase does not open the card (or the card was changed)"
    if "xcessive work" in said:
        return "the card was sealed at a cost beyond reason and is not opened; ask for it to be sealed again"
    return "the sealed card is damaged or was changed; ask for it again"
