"""A text whose values repeat tells what a category of the same values tells: everywhere, by the same figures."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pytest

from maskwell.checks.catalogue import checks
from maskwell.checks.evidence import Evidence
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.masks import IndependentNoise
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY = Key(np.random.default_rng(31).bytes(32))
N = 1_500
BANDS = tuple(f"use {10 * k} to {10 * k + 9}" for k in range(10))
CHECKS = MappingProxyType({check.name: check for check in checks()})


def banded(kind: str, told: float = 1.0) -> Table:
    """Percentages beside their tenths, of which a share is right, as a category or as text."""
    rng = np.random.default_rng(8)
    use = rng.uniform(0, 100, N).round(1).clip(0, 99.9)
    tenth = np.where(rng.random(N) < told, use // 10, rng.integers(0, 10, N)).astype(int)
    column = Column("band", kind, categories=BANDS if kind == "category" else ())
    number = Column("use", "continuous", frozenset({"key"}), unit=0.1)
    return Table.from_frame(pa.table({"band": np.array(BANDS)[tenth], "use": use}), Schema((column, number)))


def masked(table: Table) -> Masking:
    return apply(IndependentNoise(("use",), variance_ratio=0.5), table, key=KEY)


@pytest.mark.parametrize(
    ("name", "verdict"), [("predictable from unmasked", "fail"), ("narrow classes", "fail")]
)
def test_a_text_that_tells_an_amount_fails_as_a_category_does(name: str, verdict: str) -> None:
    found = [CHECKS[name].made(Evidence(masked(banded(kind)))) for kind in ("category", "text")]
    assert found[0].figure == found[1].figure > 0.9
    assert [one.verdict for one in found] == [verdict, verdict]
    chance = [CHECKS[name].made(Evidence(masked(banded(kind, told=0.0)))) for kind in ("category", "text")]
    assert chance[0].figure == chance[1].figure < 0.05
    assert chance[1].verdict == "pass"


def test_an_order_by_a_text_is_found() -> None:
    """Released records that stand by the alphabet of a text: neighbours are alike."""
    masking = masked(banded("text"))
    order = np.argsort(masking.release.table.array("band").to_pylist(), kind="stable")
    released = masking.release.table.take(order)
    places = [str(place + 1) for place in masking.order[order]]
    links = pa.table({"truth_id": places, "released_id": [str(i + 1) for i in range(N)]})
    given = Masking.from_files(masking.truth, released, links, card=masking.card)
    sound, sorted_by = (CHECKS["order against columns"].made(Evidence(one)) for one in (masking, given))
    assert (sound.verdict, sorted_by.verdict, sorted_by.where) == ("pass", "fail", "band")


def test_a_text_that_was_changed_elsewhere_is_not_taken_for_one_in_clear() -> None:
    masking = masked(banded("text"))
    band = np.array(masking.masked.array("band").to_pylist())
    other = np.where(np.arange(N) % 2, band, np.roll(band, 1))
    frame = pa.table({"band": other, "use": masking.masked.floats("use")})
    places = [str(i + 1) for i in range(N)]
    links = pa.table({"truth_id": places, "released_id": places})
    changed = Table.from_frame(frame, masking.masked.schema)
    evidence = Evidence(Masking.from_files(masking.truth, changed, links, card=masking.card))
    assert evidence.masked_columns == ("band", "use")
    assert evidence.known_blocks == ()


def test_names_of_records_are_no_classes() -> None:
    table = banded("text")
    named = Column("name", "text")
    frame = pa.table(
        {"name": [f"n{i}" for i in range(N)], **{one: table.data.column(one) for one in table.names}}
    )
    whole = Table.from_frame(frame, Schema((named, *table.schema.columns)))
    assert [whole.has_classes(one) for one in whole.names] == [False, True, False]
    group = replace(whole.schema["band"], roles=frozenset({"group"}))
    assert not replace(whole, schema=whole.schema.changed({"band": group})).has_classes("band")
    codes = whole.class_codes("band")
    assert np.array_equal(codes, banded("category").floats("band"))
