"""Sealed cards: round trips in the age format, what is refused, and bundles whose card is open, sealed or kept."""

from __future__ import annotations

import base64
import json
import os
import pickle
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyrage
import pytest
from cryptography.hazmat.primitives import hashes, hmac, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from maskwell.analysis import fit
from maskwell.card import NoiseCard, SwapParameters
from maskwell.card.noise_card import _digest
from maskwell.errors import BadBundle, BadPlan, NoLaw
from maskwell.io.bundle import verify_bundle
from maskwell.masking import Masking, Release, apply, read_release
from maskwell.masking.codebook import codebook
from maskwell.masking.hidden_cards import closed_codebook, is_withheld
from maskwell.masks import BiasNoise, CorrelatedNoise, IndependentNoise, Pram, RankSwap
from maskwell.sealing import check_recipients, is_sealed, passphrase_of, read_card, seal, unseal
from maskwell.table import Table

PLAN = CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3)
WORDS = "four words of a passphrase"


def new_identity(path: Path) -> str:
    """Write an identity file and return its recipient."""
    identity = pyrage.x25519.Identity.generate()
    path.write_text(f"# made by a test\n{identity}\n")
    path.chmod(0o600)
    return str(identity.to_public())


@pytest.fixture(scope="module")
def masking(people: Table) -> Masking:
    return apply(PLAN, people, seed=3)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """An identity file; its recipient is in `key.pub` beside."""
    path = tmp_path / "key.txt"
    (tmp_path / "key.pub").write_text(new_identity(path))
    return path


@pytest.fixture
def to(key: Path) -> list[str]:
    return [key.with_suffix(".pub").read_text()]


@pytest.fixture
def write(masking: Masking, tmp_path: Path, to: list[str]) -> Callable[..., Path]:
    """Return a function that writes a bundle with its card as said."""

    def write(card: str, masking: Masking = masking, name: str | None = None, **options: Any) -> Path:
        if card == "sealed":
            options.setdefault("sealing", lambda content: seal(content, to=to))
        folder = tmp_path / (name or card)
        masking.write(release=folder, private=tmp_path / "private", card=card, **options)
        return folder

    return write


@pytest.fixture(scope="module")
def card(masking: Masking, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The card of the same release, written in the open."""
    where = tmp_path_factory.mktemp("open")
    masking.write(release=where / "out", private=where / "private")
    return where / "out" / "card.json"


def resealed(card: Path, to: list[str], **changes: Any) -> bytes:
    """Seal a card with other content under a digest that fits, as a forger could."""
    content = json.loads(card.read_text()) | changes
    content.pop("digest")
    return bytes(
        pyrage.encrypt(
            json.dumps({**content, "digest": _digest(content)}).encode(),
            [pyrage.x25519.Recipient.from_str(one) for one in to],
        )
    )


# --- round trips


def test_every_recipient_opens_what_was_sealed_for_several(card: Path, tmp_path: Path, to: list[str]):
    other = tmp_path / "other.txt"
    sealed = seal(card, to=[*to, new_identity(other)])
    assert is_sealed(sealed)
    assert b"laws" not in sealed
    for identity in (tmp_path / "key.txt", str(other)):
        assert unseal(sealed, identity=identity) == card.read_bytes()


def test_bytes_files_and_cards_are_sealed_alike(card: Path, key: Path, to: list[str]):
    for given in (card, str(card), card.read_bytes(), NoiseCard.read(card)):
        assert unseal(seal(given, to=to), identity=key) == card.read_bytes()


def derived(secret: bytes, salt: bytes, purpose: bytes) -> bytes:
    return HKDF(hashes.SHA256(), 32, salt, purpose).derive(secret)


def by_the_specification(content: bytes, passphrase: str, cost: int = 4) -> bytes:
    """Seal by a passphrase as age-encryption.org/v1 says, at a low cost: the tests' own writer of the format."""
    in_text = lambda data: base64.b64encode(data).rstrip(b"=")  # noqa: E731
    secret, salt, nonce = os.urandom(16), os.urandom(16), os.urandom(16)
    stretched = Scrypt(b"age-encryption.org/v1/scrypt" + salt, 32, 2**cost, 8, 1).derive(passphrase.encode())
    body = ChaCha20Poly1305(stretched).encrypt(bytes(12), secret, None)
    header = b"age-encryption.org/v1\n-> scrypt %s %d\n%s\n---" % (in_text(salt), cost, in_text(body))
    tag = hmac.HMAC(derived(secret, b"", b"header"), hashes.SHA256())
    tag.update(header)
    payload = ChaCha20Poly1305(derived(secret, nonce, b"payload")).encrypt(bytes(11) + b"\1", content, None)
    return header + b" " + in_text(tag.finalize()) + b"\n" + nonce + payload


def test_a_file_written_by_the_specification_is_opened(card: Path, key: Path, tmp_path: Path):
    path = tmp_path / "card.json.age"
    path.write_bytes(by_the_specification(card.read_bytes(), WORDS))
    assert read_card(path, passphrase=WORDS) == NoiseCard.read(card)
    with pytest.raises(BadBundle, match="the passphrase does not open the card"):
        unseal(path, passphrase="others")
    with pytest.raises(BadBundle, match="sealed by a passphrase, which no identity opens"):
        unseal(path, identity=key)
    path.write_bytes(by_the_specification(card.read_bytes()[:-1] + b" ", WORDS)[:-1])
    with pytest.raises(BadBundle, match="damaged or was changed"):
        unseal(path, passphrase=WORDS)


def test_a_passphrase_seals_and_opens(card: Path):
    sealed = seal(card, passphrase=WORDS)
    assert sealed.startswith(b"age-encryption.org/v1\n-> scrypt ")
    assert unseal(sealed, passphrase=WORDS) == card.read_bytes()


def test_a_bundle_sealed_by_a_passphrase_is_read_with_it(write: Callable[..., Path]):
    folder = write("sealed", sealing=lambda content: by_the_specification(content, WORDS))
    assert read_release(folder, passphrase=WORDS) == read_release(write("open"))
    with pytest.raises(NoLaw, match="--passphrase-file"):
        list(read_release(folder).card.laws)


def test_a_cost_beyond_reason_is_refused_at_once(card: Path):
    sealed = by_the_specification(card.read_bytes(), WORDS)
    with pytest.raises(BadBundle, match="beyond reason"):
        unseal(sealed.replace(b" 4\n", b" 40\n", 1), passphrase=WORDS)


def test_an_ssh_key_seals_and_opens(card: Path, tmp_path: Path):
    key = Ed25519PrivateKey.generate()
    kinds = serialization
    public = key.public_key().public_bytes(kinds.Encoding.OpenSSH, kinds.PublicFormat.OpenSSH).decode()
    path = tmp_path / "id_ed25519"
    path.write_bytes(key.private_bytes(kinds.Encoding.PEM, kinds.PrivateFormat.OpenSSH, kinds.NoEncryption()))
    path.chmod(0o600)
    assert unseal(seal(card, to=[f"{public} somebody@somewhere"]), identity=path) == card.read_bytes()


def test_armoured_files_are_read(card: Path, key: Path, to: list[str], tmp_path: Path):
    recipient = pyrage.x25519.Recipient.from_str(to[0])
    (tmp_path / "card.asc").write_bytes(pyrage.encrypt(card.read_bytes(), [recipient], armored=True))
    assert read_card(tmp_path / "card.asc", identity=key) == NoiseCard.read(card)


@pytest.mark.skipif(shutil.which("age") is None, reason="the age command is not installed")
def test_the_age_command_opens_ours_and_we_open_its(card: Path, key: Path, to: list[str], tmp_path: Path):
    ours, its = tmp_path / "ours.age", tmp_path / "its.age"
    ours.write_bytes(seal(card, to=to))
    opened = subprocess.run(["age", "-d", "-i", key, ours], capture_output=True, check=True, timeout=60)
    assert opened.stdout == card.read_bytes()
    subprocess.run(["age", "-r", to[0], "-o", its, card], check=True, timeout=60)
    assert read_card(its, identity=key) == NoiseCard.read(card)


def test_an_open_card_needs_no_identity(card: Path):
    assert read_card(card) == NoiseCard.read(card)


# --- what is refused


def test_another_identity_does_not_open_it(card: Path, to: list[str], tmp_path: Path):
    new_identity(tmp_path / "stranger.txt")
    with pytest.raises(BadBundle, match="sealed for others"):
        unseal(seal(card, to=to), identity=tmp_path / "stranger.txt")
    with pytest.raises(BadBundle, match="give the file of an identity"):
        unseal(seal(card, to=to))


def test_every_changed_or_cut_byte_is_refused(card: Path, key: Path, to: list[str]):
    sealed = seal(card, to=to)
    for place in (*range(0, 120, 7), *range(120, len(sealed), len(sealed) // 40), len(sealed) - 1):
        changed = bytearray(sealed)
        changed[place] ^= 1
        with pytest.raises(BadBundle, match=r"changed|not an age file|another version"):
            unseal(bytes(changed), identity=key)
    for length in (30, 100, 200, len(sealed) - 1):
        with pytest.raises(BadBundle, match="changed"):
            unseal(sealed[:length], identity=key)


def test_newer_formats_are_refused(card: Path, key: Path, to: list[str], tmp_path: Path):
    path = tmp_path / "newer.age"
    path.write_bytes(resealed(card, to, version=2))
    with pytest.raises(BadBundle, match=r"newer maskwell \(card version 2\)"):
        read_card(path, identity=key)
    with pytest.raises(BadBundle, match="another version of the age format"):
        unseal(seal(card, to=to).replace(b"org/v1", b"org/v2", 1), identity=key)


def test_what_is_no_card_is_neither_sealed_nor_read(card: Path, key: Path, to: list[str], tmp_path: Path):
    with pytest.raises(BadBundle, match="not a maskwell noise card"):
        seal(b'{"some": "thing"}', to=to)
    with pytest.raises(BadBundle, match="edited"):
        seal(card.read_bytes().replace(b'"records": 240', b'"records": 241'), to=to)
    with pytest.raises(BadPlan, match="sealed already"):
        seal(seal(card, to=to), to=to)
    with pytest.raises(BadBundle, match="not an age file"):
        unseal(card, identity=key)
    path = tmp_path / "other.age"
    path.write_bytes(pyrage.encrypt(b"\xff", [pyrage.x25519.Recipient.from_str(to[0])]))
    with pytest.raises(BadBundle, match="damaged"):
        read_card(path, identity=key)


def test_a_card_that_names_no_data_is_not_sealed(masking: Masking, to: list[str]):
    with pytest.raises(BadPlan, match="does not say which data"):
        seal(masking.card, to=to)


def test_recipients_are_checked_all_at_once_and_never_quoted(card: Path, key: Path, to: list[str]):
    secret = key.read_text().splitlines()[1]
    with pytest.raises(BadPlan) as caught:
        seal(card, to=[*to, secret, "age1xyz", "ssh-ed25519 AAAA"])
    assert len(caught.value.problems) == 3
    assert "recipient 2 is a secret key" in str(caught.value)
    assert secret not in str(caught.value)
    check_recipients(to)
    with pytest.raises(BadPlan, match="recipient 1 is no age or SSH public key"):
        check_recipients(["nobody"])


@pytest.mark.parametrize(
    "options", [{}, {"to": ["age1"], "passphrase": WORDS}, {"to": "age1"}, {"passphrase": ""}]
)
def test_recipients_or_one_passphrase(card: Path, options: dict[str, Any]):
    with pytest.raises(BadPlan):
        seal(card, **options)


def test_without_pyrage_the_extra_is_named(card: Path, to: list[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyrage", None)
    with pytest.raises(BadPlan, match=r"maskwell\[seal\]"):
        seal(card, to=to)


def test_seal_loads_pyrage_only_when_it_is_used():
    code = "import sys, maskwell.sealing, maskwell.masking.release_files; sys.exit('pyrage' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


# --- private files


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_private_files_open_to_others_are_refused(card: Path, key: Path, to: list[str], mode: int):
    sealed = seal(card, to=to)
    key.chmod(mode)
    with pytest.raises(BadBundle, match=f"open to others; run chmod 600 {key}"):
        unseal(sealed, identity=key)
    with pytest.raises(BadBundle, match="open to others; run chmod 600"):
        passphrase_of(key)
    key.chmod(0o600)
    assert unseal(sealed, identity=key) == card.read_bytes()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no key"),
        (b"# age1abc\n", "has no key"),
        (b"AGE-SECRET-KEY-1NOTHING\n", "is no identity file"),
        (b"\xff\xfe", "is no identity file"),
        (
            b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
            "no identity file",
        ),
        (b"age-encryption.org/v1\n-> scrypt a 18\n", "is itself sealed"),
    ],
)
def test_what_is_no_identity_file(card: Path, to: list[str], tmp_path: Path, content: bytes, words: str):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(BadBundle, match=words) as caught:
        unseal(seal(card, to=to), identity=path)
    assert "NOTHING" not in str(caught.value)


def test_a_secret_key_in_the_place_of_a_file_is_not_quoted(card: Path, key: Path, to: list[str]):
    secret = key.read_text().splitlines()[1]
    with pytest.raises(BadPlan, match="given as a file") as caught:
        unseal(seal(card, to=to), identity=secret)
    assert secret not in str(caught.value)
    with pytest.raises(BadBundle, match="cannot be read"):
        unseal(seal(card, to=to), identity="nowhere.txt")


def test_the_passphrase_is_the_first_line(tmp_path: Path):
    path = tmp_path / "words"
    path.write_text(f"{WORDS}\r\nand no more\n")
    path.chmod(0o600)
    assert passphrase_of(path) == WORDS
    path.write_text("\n")
    with pytest.raises(BadBundle, match="is empty"):
        passphrase_of(path)


# --- bundles


@pytest.mark.parametrize(
    ("card", "name"), [("open", "card.json"), ("sealed", "card.json.age"), ("kept", None)]
)
def test_a_bundle_has_its_card_as_said(write: Callable[..., Path], card: str, name: str | None):
    folder = write(card)
    cards = {path.name for path in folder.iterdir() if path.name.startswith("card")}
    assert cards == ({name} if name else set())
    assert set(verify_bundle(folder).files) == {"data.parquet", "schema.toml", "codebook.md"} | cards


def test_a_sealed_bundle_is_read_with_an_identity(write: Callable[..., Path], card: Path, key: Path):
    assert read_release(write("sealed"), identity=key) == read_release(card.parent)
    assert read_release(card.parent, identity=key) == read_release(card.parent)


@pytest.mark.parametrize(
    ("card", "words"), [("sealed", "identity='key.txt'"), ("kept", "steward kept the noise card")]
)
def test_without_its_card_a_release_can_be_read_but_not_fitted(
    write: Callable[..., Path], masking: Masking, card: str, words: str
):
    release = read_release(write(card))
    assert release.table == masking.release.table
    assert is_withheld(release.card)
    assert "unknown" in repr(release)
    assert pickle.loads(pickle.dumps(release)) == release
    assert release.card != NoiseCard(data_sha256=release.card.data_sha256)
    for asked in ("TAX ~ INCOME", "AGE ~ SEX", "SEX ~ REGION"):
        with pytest.raises(NoLaw, match=words):
            fit(asked, release, family="gaussian" if asked[0] != "S" else "binary")
    with pytest.raises(NoLaw, match=words):
        release.write(write("open").parent / "again")


def test_a_card_that_came_by_another_way(
    write: Callable[..., Path], key: Path, to: list[str], tmp_path: Path
):
    kept, here = write("kept"), tmp_path / "came.age"
    (inside,) = (tmp_path / "private").iterdir()
    here.write_bytes(seal(inside / "release.card.json", to=to))
    expected = read_release(write("open"))
    assert read_release(kept, card=here, identity=key) == expected
    assert read_release(kept, card=inside / "release.card.json") == expected
    assert read_release(write("sealed"), card=write("open") / "card.json") == expected
    with pytest.raises(BadBundle, match="give the file of an identity"):
        read_release(kept, card=here)
    with pytest.raises(BadBundle, match="does not say which data"):
        read_release(kept, card=inside / "card.json")


def test_foreign_cards_are_refused(
    write: Callable[..., Path], people: Table, key: Path, to: list[str], tmp_path: Path
):
    foreign = write("open", apply(PLAN, people, seed=4), "foreign") / "card.json"
    (tmp_path / "foreign.age").write_bytes(seal(foreign, to=to))
    for given in (foreign, tmp_path / "foreign.age"):
        with pytest.raises(BadBundle, match="the card belongs to another release"):
            read_release(write("kept"), card=given, identity=key)
    placed = write("sealed", sealing=lambda _: seal(foreign, to=to), name="placed")
    with pytest.raises(BadBundle, match="the card belongs to another release"):
        read_release(placed, identity=key)


def test_a_sealed_card_exchanged_in_a_bundle_is_noticed(write: Callable[..., Path], key: Path, to: list[str]):
    sealed, card = write("sealed"), write("open") / "card.json"
    (sealed / "card.json.age").write_bytes(seal(card, to=to))
    with pytest.raises(BadBundle, match=r"card\.json\.age is damaged or was changed"):
        read_release(sealed, identity=key)


@pytest.mark.parametrize("card", ["open", "sealed", "kept"])
def test_a_masking_opens_again_whatever_became_of_its_card(
    write: Callable[..., Path], masking: Masking, people: Table, tmp_path: Path, card: str
):
    folder = write(card)
    again = Masking.read(release=folder, private=tmp_path / "private")
    assert again.release == read_release(write("open"))
    assert again.card == masking.card
    more = CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.5)
    nested = apply(more, people, earlier=again)
    assert nested.release.table == apply(more, people, earlier=masking).release.table
    written = write(card, nested, f"nested {card}")
    assert Masking.read(release=written, private=tmp_path / "private").number == 2


@pytest.mark.parametrize("card", ["sealed", "kept"])
def test_the_private_half_has_the_card_that_may_be_handed_on(
    write: Callable[..., Path], tmp_path: Path, card: str
):
    write(card)
    (inside,) = (tmp_path / "private").iterdir()
    path = inside / "release.card.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes() == (write("open") / "card.json").read_bytes()


def test_what_is_kept_is_the_same_bytes_every_time(write: Callable[..., Path], tmp_path: Path):
    one, two = write("kept"), write("kept", name="again")
    assert verify_bundle(one).bundle == verify_bundle(two).bundle


def test_further_files_go_into_the_halves_and_their_manifests(write: Callable[..., Path], tmp_path: Path):
    folder = write(
        "kept",
        public={"report.html": lambda path: path.write_text("for all")},
        inside={"board.html": lambda path: path.write_text("for few")},
    )
    (inside,) = (tmp_path / "private").iterdir()
    assert "report.html" in verify_bundle(folder).files
    assert "board.html" in verify_bundle(inside).files
    assert stat.S_IMODE((inside / "board.html").stat().st_mode) == 0o600
    assert len(read_release(folder)) == 240
    Masking.read(release=folder, private=tmp_path / "private")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"card": "seald"}, "did you mean 'sealed'"),
        ({"card": "sealed", "sealing": None}, "needs its recipients or a passphrase"),
        ({"card": "kept", "sealing": bytes}, "leave sealing out"),
        ({"card": "sealed", "sealing": bytes}, "must return an age file"),
        ({"card": "open", "public": {"data.html": None}}, "name of a file of the release"),
        ({"card": "kept", "public": {"card.json": None}}, "name of a file of the release"),
        ({"card": "kept", "inside": {"key.hex": None}}, "name of a private file"),
        ({"card": "open", "inside": {"a/b.html": None}}, "plain file name"),
        ({"card": "open", "public": {"manifest.json": None}}, "plain file name"),
        ({"card": "kept", "inside": {"release.card.json": None}}, "name of a private file"),
    ],
)
def test_choices_that_contradict_themselves(
    masking: Masking, tmp_path: Path, options: dict[str, Any], words: str
):
    with pytest.raises(BadPlan, match=words):
        masking.write(release=tmp_path / "out", private=tmp_path / "private", **options)
    assert list(tmp_path.iterdir()) == []


# --- nothing of the laws elsewhere


def of(kind: type[Any], *columns: str, **figures: Any) -> Any:
    return kind(columns, **figures)


PAIRS = [
    (of(CorrelatedNoise, "INCOME", "AGE", sd_ratio=0.3), of(CorrelatedNoise, "INCOME", "AGE", sd_ratio=0.7)),
    (of(IndependentNoise, "INCOME", variance_ratio=0.2), of(IndependentNoise, "INCOME", variance_ratio=0.9)),
    (of(BiasNoise, "AGE", bias_sd=0.1, sd_ratio=0.2), of(BiasNoise, "AGE", bias_sd=0.3, sd_ratio=0.2)),
    (of(Pram, "SEX", stay=0.8), of(Pram, "SEX", stay=0.7)),
    (of(RankSwap, "WAGE", window_ratio=0.05), of(RankSwap, "WAGE", window_ratio=0.2)),
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: type(pair[0]).__name__)
def test_what_leaves_beside_the_data_does_not_depend_on_the_figures_of_the_noise(
    write: Callable[..., Path], people: Table, pair: Any
):
    masked = [apply(mask, people, seed=1) for mask in pair]
    folders = [write("kept", one, f"kept {number}") for number, one in enumerate(masked)]
    for name in ("codebook.md", "schema.toml"):
        first, second = ((folder / name).read_text() for folder in folders)
        assert first == second
    assert codebook(masked[0].release) != codebook(masked[1].release)


def test_the_closed_codebook_tells_no_share(masking: Masking):
    told = []
    for share in (0.0123, 0.3):
        swapped = SwapParameters(share, ("INCOME", "TAX"), ("REGION",))
        card = replace(masking.release.card, swapped=swapped, subsampled=1 - share)
        told.append(closed_codebook(Release(masking.release.table, card), sealed=True))
    assert told[0] == told[1]
    assert "exchanged for some records" in told[0]
    assert "random sample" in told[0]
