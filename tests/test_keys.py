"""Keyed draws: known answers computed by other means, and independence of order, chunks, subsets and use."""

from __future__ import annotations

import hashlib
import hmac
import pickle
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import kstest

from maskwell.engines.local import Local
from maskwell.engines.random_parts import ChoppedEngine
from maskwell.errors import BadInput, BadPlan
from maskwell.keys import (
    PURPOSES,
    Key,
    Stream,
    ids_from_numbers,
    ids_from_texts,
    in_sixteens,
    normals,
    uniforms,
    words,
)

SECRET = bytes(range(32))


# --- known answers


def by_hand_subkey(secret: bytes, *parts: str) -> bytes:
    """HKDF-SHA256 (RFC 5869) without salt: extract with a key of zeros, then one block of expansion."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    info = b"".join(
        len(part.encode()).to_bytes(4, "big") + part.encode() for part in ("maskwell", "1", *parts)
    )
    return hmac.digest(extracted, info + b"\x01", "sha256")


def by_hand_words(subkey: bytes, block: bytes) -> tuple[int, int]:
    """AES-256 of one block, read as two little-endian words."""
    encryptor = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()
    cipher = encryptor.update(block) + encryptor.finalize()
    return int.from_bytes(cipher[:8], "little"), int.from_bytes(cipher[8:], "little")


def stream_of(*ids: str, stage: str = "0", series: str = "s", secret: bytes = SECRET) -> Stream:
    return Stream(Key(secret), series, stage, ids_from_texts(pa.array(ids, pa.string())))


def test_hkdf_by_hand_is_that_of_the_rfc():
    """RFC 5869, test case 3 (no salt, no info), first 32 of its 42 bytes."""
    extracted = hmac.digest(bytes(32), b"\x0b" * 22, "sha256")
    expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
    assert hmac.digest(extracted, b"\x01", "sha256").hex() == expected


@pytest.mark.parametrize("purpose", PURPOSES)
def test_subkeys_are_hkdf_of_every_field(purpose: str):
    found = Key(SECRET).subkey(series="süd", purpose=purpose, stage="0", column="INCOME")
    assert found == by_hand_subkey(SECRET, "süd", purpose, "0", "INCOME")


def test_pinned_subkey_words_and_normal():
    subkey = Key(SECRET).subkey(series="s", purpose="noise", stage="0", column="INCOME")
    drawn = stream_of("p1").words("INCOME")[0]
    assert subkey.hex() == "62cb80feabf6abfb8a677cf375b8def50cced246ef96ff331a415df310a014f6"
    assert [f"{int(word):016x}" for word in drawn] == ["de382c6a6053fd9f", "9d2ecb33bf5fbad7"]
    assert stream_of("p1").normals("INCOME")[0].hex() == "0x1.1e008722a7c7cp+0"


@pytest.mark.parametrize("text", ["", "p1", "exactly 15 byte", "é" * 7])
def test_words_are_aes_of_the_padded_id(text: str):
    block = text.encode().ljust(15, b"\0") + bytes([len(text.encode())])
    expected = by_hand_words(by_hand_subkey(SECRET, "s", "noise", "0", "INCOME"), block)
    assert tuple(map(int, stream_of(text).words("INCOME")[0])) == expected


def test_words_of_long_ids_are_aes_of_their_hash():
    text = "an id of more than fifteen bytes"
    block = hashlib.blake2b(text.encode(), digest_size=15, person=b"maskwell id").digest() + b"\xff"
    expected = by_hand_words(by_hand_subkey(SECRET, "s", "noise", "0", "INCOME"), block)
    assert tuple(map(int, stream_of(text).words("INCOME")[0])) == expected


def test_numbered_records_are_little_endian_numbers_with_a_mark():
    assert bytes(ids_from_numbers(3, start=1000)[2]) == (1002).to_bytes(15, "little") + b"\xfe"


@pytest.mark.parametrize(
    ("word", "uniform"),
    [(0, 2.0**-53), (2**64 - 1, 1 - 2.0**-53), (2**63, 0.5 + 2.0**-53), (2**63 - 1, 0.5 - 2.0**-53)],
)
def test_uniforms_are_middles_of_steps_and_never_0_or_1(word: int, uniform: float):
    drawn = np.array([word], np.uint64)
    assert uniforms(drawn)[0] == uniform
    assert normals(drawn)[0] == ndtri(uniform)
    assert np.isfinite(normals(drawn)).all()


@given(st.integers(0, 2**64 - 1))
def test_normals_are_as_far_up_as_down(word: int):
    mirrored = np.array([word, 2**64 - 1 - word], np.uint64)
    assert uniforms(mirrored).sum() == 1.0
    assert np.all((uniforms(mirrored) > 0) & (uniforms(mirrored) < 1))


def test_normals_and_uniforms_follow_their_laws():
    stream = Stream(Key(SECRET), "s", "0", ids_from_numbers(100_000))
    assert kstest(stream.uniforms("A"), "uniform").pvalue > 1e-4
    assert kstest(stream.normals("A"), "norm").pvalue > 1e-4
    both = np.corrcoef([stream.normals("A"), stream.normals("B"), normals(stream.words("A")[:, 1])])
    assert np.abs(both[np.triu_indices(3, 1)]).max() < 4 / np.sqrt(100_000)


# --- order, chunks, subsets


@pytest.fixture(scope="module")
def stream() -> Stream:
    return stream_of(
        *(f"record {i}" for i in range(700)), *(f"a much longer name of record {i}" for i in range(300))
    )


@pytest.mark.parametrize(
    "engine", [Local(1000), Local(143), Local(1), ChoppedEngine(7, seed=1), ChoppedEngine(1000, seed=2)]
)
def test_noise_is_the_same_in_1_7_and_1000_chunks(stream: Stream, engine: Any):
    whole = np.column_stack([stream.normals("A"), stream.uniforms("B", "component")])

    def work(part: Any) -> Any:
        chunk = stream.at(part)
        return np.column_stack([chunk.normals("A"), chunk.uniforms("B", "component")])

    assert engine.per_record(work, len(stream), 2).tobytes() == whole.tobytes()


def test_noise_of_a_record_is_the_same_in_any_order_and_subset(stream: Stream):
    rng = np.random.default_rng(5)
    for chosen in (rng.permutation(1000), np.flatnonzero(rng.random(1000) < 0.1), np.array([17])):
        assert stream.at(chosen).normals("A").tobytes() == stream.normals("A")[chosen].tobytes()


def test_order_follows_the_records_and_not_their_places(stream: Stream):
    shuffled = np.random.default_rng(6).permutation(len(stream))
    again = stream.at(shuffled)
    assert np.array_equal(shuffled[again.order("", "shuffle")], stream.order("", "shuffle"))
    assert not np.array_equal(stream.order("", "shuffle"), stream.order("", "ids"))


def test_order_breaks_ties_by_the_second_word(monkeypatch: pytest.MonkeyPatch):
    """Records whose first words agree (2^-64) still have one order."""
    tied = np.array([[1, 3], [0, 9], [1, 2], [1, 4]], np.uint64)
    monkeypatch.setattr(Stream, "words", lambda self, *_: tied)
    assert stream_of("a", "b", "c", "d").order("", "shuffle").tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("high_bits", [4, 20, 40])
def test_order_is_that_of_the_words(high_bits: int, monkeypatch: pytest.MonkeyPatch):
    """However many records agree in the bits that are sorted first, their words decide."""
    drawn = np.random.default_rng(high_bits).integers(0, 2**63, (3000, 2)).astype(np.uint64)
    drawn[:, 0] <<= np.uint64(1)
    drawn[:, 0] &= np.uint64(2**64 - 2 ** (64 - high_bits) + 1023)  # few high bits, and the lowest ten
    drawn[::2, 0] |= np.uint64(1)
    monkeypatch.setattr(Stream, "words", lambda self, *_: drawn)
    found = stream_of(*map(str, range(3000))).order("", "shuffle")
    assert found.tolist() == np.lexsort((drawn[:, 1], drawn[:, 0])).tolist()


def test_two_records_with_one_id_are_refused():
    with pytest.raises(BadInput, match="two records have the same id"):
        stream_of("a", "b", "a").order("", "shuffle")


# --- no two uses share words


def test_no_two_uses_share_words():
    """Every combination of secret, series, purpose, stage and column has words of its own for the same record."""
    secrets, names = (SECRET, bytes(32)), ("", "0", "1", "A", "0A")
    seen = {
        stream_of("p1", stage=stage, series=series, secret=secret).words(column, purpose).tobytes()
        for secret, purpose, series, stage, column in product(secrets, PURPOSES, names, names, names)
    }
    assert len(seen) == len(secrets) * len(PURPOSES) * len(names) ** 3


def test_fields_cannot_run_into_each_other():
    key = Key(SECRET)
    one = key.subkey(series="ab", purpose="noise", stage="c", column="d")
    other = key.subkey(series="a", purpose="noise", stage="bc", column="d")
    assert one != other


def test_ids_of_one_length_have_the_blocks_they_have_among_others():
    alike = pa.array(
        [f"{number:05d}\0{number % 3}" if number % 2 else f"{number:05d}x\0" for number in range(50)]
    )
    mixed = pa.concat_arrays([alike, pa.array(["x", "much longer than fifteen bytes"])])
    assert np.array_equal(ids_from_texts(alike), ids_from_texts(mixed)[:50])
    assert np.array_equal(ids_from_texts(alike.slice(10, 20)), ids_from_texts(alike)[10:30])


def test_different_ids_have_different_blocks():
    texts = [
        "",
        "a",
        "a\0",
        "\0",
        "1",
        "01",
        "1 ",
        "\u00e4",
        "a\u0308",
        "x" * 15,
        "x" * 16,
        "x" * 17,
        "x" * 15 + "\x0f",
    ]
    blocks = [bytes(block) for block in ids_from_texts(pa.array(texts, pa.string()))]
    blocks += [bytes(block) for block in ids_from_numbers(3)]
    assert all(a != b for a, b in combinations(blocks, 2))


@given(st.lists(st.text(max_size=40), unique=True, max_size=20))
def test_blocks_are_distinct_and_do_not_depend_on_the_array(texts: list[str]):
    whole = pa.array(["before", *texts, "after"], pa.string())
    blocks = ids_from_texts(whole.slice(1, len(texts)))
    assert blocks.shape == (len(texts), 16)
    assert len({bytes(block) for block in blocks}) == len(texts)
    assert np.array_equal(blocks, ids_from_texts(whole.cast(pa.large_string()))[1:-1])


def test_a_record_without_an_id_is_refused():
    with pytest.raises(BadInput, match="no id"):
        ids_from_texts(pa.array(["a", None]))


def test_tags_tell_records_and_values_apart():
    two = stream_of("a", "b")
    values, gap = np.array([1.5, 1.5]), np.array([np.nan, 1.5])
    assert np.array_equal(two.tags("A"), stream_of("b", "a").tags("A")[::-1])
    assert np.array_equal(two.tags("A", values), stream_of("a", "b").tags("A", np.array([1.5, 1.5])))
    assert np.array_equal(two.tags("A", np.array([0.0, 1.5])), two.tags("A", np.array([-0.0, 1.5])))
    assert np.array_equal(two.tags("A", gap), two.tags("A", -gap * [1, -1]))
    pairs = [np.column_stack(pair) for pair in ((values, gap), (gap, values), (values, values))]
    drawn = [
        two.tags("A"),
        two.tags("B"),
        *(two.tags("A", given) for given in (values, values + 1, gap - 3)),
        two.tags("B", values),
        *(two.tags("AB", given) for given in (pairs[0], pairs[1] + 1, pairs[2] + 2)),
    ]
    tags = in_sixteens(np.concatenate(drawn))
    assert len(set(tags)) == 18
    assert {len(tag) for tag in tags} == {16}


def test_a_column_may_draw_from_blocks_of_its_own():
    stream = stream_of("a", "b", "c")
    other = replace(stream, own={"A": stream_of("x", "b", "z").blocks})
    assert (other.normals("A") == stream.normals("A")).tolist() == [False, True, False]
    assert np.array_equal(other.normals("B"), stream.normals("B"))
    assert np.array_equal(other.at(np.array([2, 0])).normals("A"), other.normals("A")[[2, 0]])
    assert np.array_equal(other.staged("1").normals("A")[1:2], stream.staged("1").normals("A")[1:2])


# --- keys


def test_keys_have_256_bits_and_keep_them_to_themselves():
    key = Key.from_os()
    assert len(key.secret) == 32
    assert key != Key.from_os()
    assert not key.seeded
    for shown in (repr(key), str(key), key.fingerprint(), repr(Stream(key, "s", "0", ids_from_numbers(2)))):
        assert key.secret.hex()[:8] not in shown
        assert repr(key.secret)[2:-1] not in shown
    assert pickle.loads(pickle.dumps(key)) == key
    with pytest.raises(BadPlan, match="256 bits"):
        Key(b"too short")


def test_seeded_keys_are_the_same_for_everyone_and_say_so():
    assert Key.from_seed(1) == Key.from_seed(1)
    assert Key.from_seed(1).seeded
    assert Key.from_seed(1).secret == hashlib.sha256(b"maskwell study seed1").digest()
    assert Key.from_seed(1) != Key.from_seed(2)


def test_fingerprints_tell_keys_apart():
    assert Key(SECRET).fingerprint() == hmac.digest(SECRET, b"maskwell key fingerprint", "sha256").hex()[:16]
    assert Key(SECRET).fingerprint() != Key(bytes(32)).fingerprint()


def test_an_unknown_purpose_is_a_mistake():
    with pytest.raises(ValueError, match="no such purpose"):
        Key(SECRET).subkey(series="", purpose="fun", stage="", column="")


def test_no_records_no_words():
    assert words(SECRET, ids_from_numbers(0)).shape == (0, 2)
    assert stream_of().order("", "shuffle").tolist() == []


def test_inverse_and_distribution_agree():
    drawn = Stream(Key(SECRET), "s", "0", ids_from_numbers(1000))
    assert np.allclose(ndtr(drawn.normals("A")), drawn.uniforms("A"), rtol=1e-12, atol=0)
