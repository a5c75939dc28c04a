"""Families of relations from true ids and places to released ids: each planted one is seen, random ids never are."""

from __future__ import annotations

import base64
import hashlib
import random
import uuid
from collections.abc import Callable

import numpy as np
import pytest

from maskwell.checks.computed_ids import computed_from
from maskwell.checks.id_arithmetic import affine_map, maps_of_numbers, steps_with_modulus
from maskwell.checks.id_draws import codes_of_own_seeds, seeded_codes
from maskwell.checks.id_readings import ranks
from maskwell.checks.id_texts import is_part

RECORDS = 300
NUMBERS = np.random.default_rng(77).choice(np.arange(100_000, 999_999), RECORDS, replace=False).tolist()
IDS = [str(one) for one in NUMBERS]
ROWS = [str(i) for i in range(RECORDS)]
SOURCES = {"number in the file": ROWS, "id": IDS}
BASE_62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def hashed(label: str, form: Callable[[str], str] = str) -> list[str]:
    return [hashlib.new(label, form(one).encode(), usedforsecurity=False).hexdigest() for one in IDS]


def base_62(number: int) -> str:
    signs = ""
    while number:
        number, rest = divmod(number, 62)
        signs = BASE_62[rest] + signs
    return signs


def fnv1a(text: str) -> int:
    value = 2_166_136_261
    for byte in text.encode():
        value = (value ^ byte) * 16_777_619 % 2**32
    return value


def numbered(keys: list[str]) -> list[str]:
    return [str(rank + 1) for rank in ranks(keys)]


def by_id(values: np.ndarray) -> list[str]:
    return [str(values[rank]) for rank in ranks(NUMBERS)]


def shuffled(seed: int) -> list[str]:
    places = list(range(RECORDS))
    random.Random(seed).shuffle(places)
    return [str(place) for place in places]


def characters(seed: int) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(BASE_62, k=7)) for _ in range(RECORDS)]


def words(seed: int) -> list[str]:
    rng = random.Random(seed)
    return [str(uuid.UUID(int=rng.getrandbits(128))) for _ in range(RECORDS)]


def integers(seed: int) -> list[str]:
    rng = random.Random(seed)
    return [str(rng.randint(10**8, 10**9 - 1)) for _ in range(RECORDS)]


def bytes_of(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [rng.bytes(8).hex() for _ in range(RECORDS)]


def congruential() -> list[int]:
    states = [12_345]
    for _ in range(RECORDS - 1):
        states.append((1_103_515_245 * states[-1] + 12_345) % 2**31)
    return states


PLANTS = {
    "numpy's default_rng, permutation from the seed 42": [
        str(v + 1) for v in np.random.default_rng(42).permutation(RECORDS)
    ],
    "by the id": by_id(np.random.default_rng(7).permutation(RECORDS)),
    "numpy's RandomState or pandas' sample from the seed 0": [
        str(v) for v in np.random.RandomState(0).permutation(RECORDS)
    ],
    "Python's random.shuffle from the seed 1": shuffled(1),
    "the rank of md5 of the id": numbered(hashed("md5")),
    "the rank of sha256 of the id with zeros to 8 signs": numbered(
        hashed("sha256", lambda one: one.zfill(8))
    ),
    "numpy's default_rng, numbers in a range, from the seed 42": [
        str(v) for v in np.random.default_rng(42).integers(0, 10**9, RECORDS)
    ],
    "numpy's default_rng, word": by_id(np.random.default_rng(42).random(RECORDS)),
    "numpy's default_rng, bytes of every 8": bytes_of(2024),
    "numpy's RandomState, numbers in a range, from the seed 7": [
        str(v) for v in np.random.RandomState(7).randint(100_000, 999_999, RECORDS)
    ],
    "Python's random, numbers in a range, from the seed 5": integers(5),
    "Python's random, word 4 of every 4, from the seed 9": words(9),
    "Python's random, word 1 of every 14, from the seed 3": characters(3),
    "times a constant, modulo 1000003": [str((7_919 * one + 12_345) % 1_000_003) for one in NUMBERS],
    "times a constant, modulo 1000000": [str(387_420_489 * one % 10**6) for one in NUMBERS],
    "times a constant, modulo 4294967296": [str(2_654_435_761 * one % 2**32) for one in NUMBERS],
    "the id times a constant plus another": [str(3 * one + 7) for one in NUMBERS],
    "the code of the record before, times a constant, modulo 2147483648": [
        str(one) for one in congruential()
    ],
    "a linear map of the bits of the id": [str(int(f"{one:020b}"[::-1], 2)) for one in NUMBERS],
    "a linear map of the bits of the id (": [f"{one ^ one >> 3 ^ 0x5A5A5:x}g"[:-1] for one in NUMBERS],
    "signs of the id in another order": ["".join(one[k] for k in (3, 1, 5, 0, 2, 4)) for one in IDS],
    "the id times a constant, modulo 999999": [one[3:] + one[:3] for one in IDS],
    "under a substitution": [one.translate(str.maketrans("0123456789", "QWERTYUIOP")) for one in IDS],
    "md5 of the id with zeros to 10 signs": hashed("md5", lambda one: one.zfill(10)),
    "sha256 of the id as 'ID{}'": [one[:12] for one in hashed("sha256", lambda one: f"ID{one}")],
    "md5 of md5 of the id": [hashlib.md5(one.encode()).hexdigest() for one in hashed("md5")],
    "sha1 of the id, modulo 10000019": [str(int(one, 16) % 10_000_019) for one in hashed("sha1")],
    "the rank of sha1 of the id": [base_62(int(one, 16))[:12] for one in hashed("sha1")],
    "sha256 of the id": [base64.b32encode(bytes.fromhex(one)).decode()[:16] for one in hashed("sha256")],
    "fnv1a (32 bits) of the id": [str(fnv1a(one)) for one in IDS],
    "a uuid (X500) of the id": [str(uuid.uuid5(uuid.NAMESPACE_X500, one)) for one in IDS],
    "a uuid (md5 (OID)) of the id": [str(uuid.uuid3(uuid.NAMESPACE_OID, one)) for one in IDS],
    "Python's random, seeded anew by the id": [str(random.Random(one).randrange(10**9)) for one in NUMBERS],
    "Python's random, seeded anew by the id of": [
        f"{random.Random(one).getrandbits(64):016x}" for one in IDS
    ],
    "numpy's default_rng, seeded anew by the id": [
        str(np.random.default_rng(one).integers(10**9)) for one in NUMBERS
    ],
    "numpy's RandomState, seeded anew by the id": [
        str(np.random.RandomState(one).randint(10**9)) for one in NUMBERS
    ],
}


@pytest.mark.parametrize("how", PLANTS)
def test_a_planted_relation_is_seen(how: str) -> None:
    found = computed_from(PLANTS[how], SOURCES, PLANTS[how])
    assert found is not None
    assert how in found.how
    assert found.share > 0.5


def random_ids(rng: np.random.Generator, records: int) -> dict[str, list[str]]:
    place = rng.permutation(records)
    return {
        "numbers of a shuffled file": [str(i + 1) for i in place],
        "the same with zeros": [f"R{i:06d}" for i in place],
        "six digits": [str(v) for v in rng.choice(10**6, records, replace=False)],
        "nine digits": [str(v) for v in rng.integers(10**8, 10**9, records)],
        "hexadecimal": [f"{v:016x}" for v in rng.integers(0, 2**63, records)],
        "uuids": [str(uuid.UUID(bytes=rng.bytes(16), version=4)) for _ in range(records)],
        "base 64": [base64.urlsafe_b64encode(rng.bytes(9)).decode() for _ in range(records)],
        "letters": ["".join(rng.choice(list(BASE_62), 8)) for _ in range(records)],
        "the true ids dealt out anew": [IDS[i] for i in place],
    }


@pytest.mark.parametrize("records", [20])
def test_random_ids_pass(records: int) -> None:
    sources = {name: texts[:records] for name, texts in SOURCES.items()}
    for kind, codes in random_ids(np.random.default_rng([records, 2**40]), records).items():
        assert computed_from(codes, sources, codes) is None, kind


def test_families_of_one_kind_are_quiet_on_many_random_files() -> None:
    """Generators seeded by the id: 40 files."""
    for seed in range(40):
        rng = np.random.default_rng([seed, 2**41])
        codes = [str(v) for v in rng.choice(10**6, 60, replace=False)]
        assert codes_of_own_seeds(codes, {"id": IDS[:60]}) is None


def test_draws_by_place_are_seen_among_records_that_are_missing() -> None:
    codes = [str(v) if i % 5 else "" for i, v in enumerate(np.random.default_rng(11).random(RECORDS))]
    found = seeded_codes({"the number in the whole file": codes})
    assert found is not None
    assert "from the seed 11" in found.how


def test_the_modulus_comes_from_differences() -> None:
    pairs = [(x, 48_271 * x % 2**31) for x in (3, 10, 77, 1_000, 4_242, 90_001)]
    divisor, factor, modulus = affine_map(pairs, 10**6) or (0, 0, 0)
    assert modulus % 2**31 == 0
    assert all((divisor * y - factor * x) % modulus == 0 for x, y in pairs)
    assert affine_map([(x, x**3 + 5 * x**2 + 1) for x in (3, 10, 77, 1_000)], 10**9) is None


@pytest.mark.parametrize("records", [25, 33, 70])
def test_ids_in_steps_have_no_modulus_of_their_own(records: int) -> None:
    """Of ids 37 apart all differences are multiples of 37, which is no relation."""
    ids = [str(48_213_007 + 37 * i) for i in range(records)]
    for seed in range(20):
        place = np.random.default_rng([seed, 2**42]).permutation(records)
        for codes in ([str(i + 1) for i in place], [str(10 * i) for i in place], [ids[i] for i in place]):
            assert list(maps_of_numbers(codes, ids)) == []
            assert list(steps_with_modulus(codes)) == []


def test_five_signs_are_no_part_of_a_digest() -> None:
    digest = hashlib.sha256(b"x").digest()
    assert is_part(digest.hex()[5:11], digest, (lambda one: (one.hex(),),))
    assert not is_part(digest.hex()[5:10], digest, (lambda one: (one.hex(),),))
