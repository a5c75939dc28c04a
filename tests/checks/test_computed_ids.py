"""Released ids that are computed from true ones or from places, and random ones that are not."""

from __future__ import annotations

import base64
import hashlib
import uuid
import zlib

import numpy as np
import pyarrow as pa
import pytest

from maskwell.checks.computed_ids import computed_from
from maskwell.checks.evidence import Evidence
from maskwell.checks.file_checks import CHECKS
from maskwell.checks.findings import Finding
from maskwell.masking import Masking
from maskwell.schema import Column, Schema
from maskwell.table import Table

RECORDS = 400
IDS = [str(48_213_007 + 37 * i + (i * 7_919) % 29) for i in range(RECORDS)]
NUMBERS = [int(one) for one in IDS]
SECRET = [f"{v:016x}" for v in np.random.default_rng([8, 2**40]).integers(0, 2**63, RECORDS)]
SOURCES = {"number in the file": [str(i) for i in range(RECORDS)], "id": IDS}


def hashed(name: str) -> list[str]:
    return [hashlib.new(name, one.encode(), usedforsecurity=False).hexdigest() for one in IDS]


PLANTS = {
    "the id plus a constant": [str(one + 7_777_777) for one in NUMBERS],
    "the id itself": [f"R-{one}-x" for one in IDS],
    "the id read backwards": [one[::-1] for one in IDS],
    "base64 of the id": [base64.b64encode(one.encode()).decode() for one in IDS],
    "the id, exclusive or a constant": [f"{one ^ 0x5A5A5A5A:08x}" for one in NUMBERS],
    "the id times a constant": [str(7 * one) for one in NUMBERS],
    "a constant minus the id": [str(10**9 - one) for one in NUMBERS],
    "md5 of the id": [one[:16] for one in hashed("md5")],
    "sha256 of the id": [f"p{one[:12]}" for one in hashed("sha256")],
    "sha1 of the id": [str(int(one[:16], 16))[-9:] for one in hashed("sha1")],
    "sha512 of the id": [
        one if i % 20 == 0 else other
        for i, (one, other) in enumerate(zip(hashed("sha512"), SECRET, strict=True))
    ],
    "crc32 of the id": [f"{zlib.crc32(one.encode()):08x}" for one in IDS],
    "a uuid of the id": [str(uuid.uuid5(uuid.NAMESPACE_DNS, one)) for one in IDS],
    "one step from each record to the next": [str(100_000 + (i * 109) % RECORDS) for i in range(RECORDS)],
    "in the order of the number in the file": [
        str(1_000 * i + int(SECRET[i][-4:], 16)) for i in range(RECORDS)
    ],
}


@pytest.mark.parametrize("how", PLANTS)
def test_ids_that_are_computed_are_seen(how: str) -> None:
    found = computed_from(PLANTS[how], SOURCES, PLANTS[how])
    assert found is not None
    assert found.how.startswith(how)
    assert found.share >= 0.05


def test_random_ids_are_never_taken_for_computed_ones() -> None:
    """Random hexadecimal ids, numbers of a shuffled file in four spellings, and the true ids dealt out anew."""
    rng = np.random.default_rng([5, 48_213, 7_919])  # 5 alone is a seed that is tried
    for records in (20, 60, 150):
        sources = {name: texts[:records] for name, texts in SOURCES.items()}
        for _ in range(2):
            place = rng.permutation(records)
            clean = (
                [f"{v:016x}" for v in rng.integers(0, 2**63, records)],
                [str(i + 1) for i in place],
                [f"R{i:06d}" for i in place],
                [str(10 * i) for i in place],
                [str(i) for i in rng.choice(10**6, records, replace=False)],
                [IDS[i] for i in place],
            )
            for codes in clean:
                assert computed_from(codes, sources, codes) is None


def with_ids(ids: list[str], order: np.ndarray | None = None) -> Finding:
    """Release a file masked elsewhere under some ids."""
    rng = np.random.default_rng(3)
    columns = (
        Column("ID", "text", frozenset({"id"})),
        Column("X", "continuous", frozenset({"key"}), unit=0.001),
    )
    values = np.round(rng.standard_normal(RECORDS), 3)
    truth = Table.from_frame(pa.table({"ID": IDS, "X": values}), Schema(columns))
    noised = np.round(values + rng.standard_normal(RECORDS), 3)
    order = rng.permutation(RECORDS) if order is None else order
    masked = Table.from_frame(pa.table({"ID": ids, "X": noised}).take(order), Schema(columns))
    links = pa.table({"truth_id": [IDS[i] for i in order], "released_id": [ids[i] for i in order]})
    (check,) = (one for one in CHECKS if one.name == "id-like columns")
    return check.made(Evidence(Masking.from_files(truth, masked, links)))


def test_computed_ids_fail_a_release_and_no_value_is_told() -> None:
    found = with_ids(PLANTS["md5 of the id"])
    assert (found.verdict, found.where) == ("fail", "ID")
    assert found.said == "ID is computed: md5 of the id (100.0%), so that who has the true file has the links"
    assert with_ids(SECRET).verdict == "pass"
