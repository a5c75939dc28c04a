"""Files masked elsewhere, tied to their truth by links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

from maskwell.card import NoiseCard
from maskwell.errors import BadInput, BadPlan
from maskwell.io import write
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.masking.column_figures import column_figures
from maskwell.masks import Chain, CorrelatedNoise, Subsample
from maskwell.schema import MISSING, Schema
from maskwell.table import Table

PLAN = CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3)


def without(table: Table, *names: str) -> Table:
    return table.select([name for name in table.names if name not in names])


@pytest.fixture
def own(people: Table, study_key: Key) -> Masking:
    """A masking of our own, to be taken apart and put together again."""
    return apply(Chain((PLAN, Subsample(0.6))), without(people, "SECRET"), key=study_key)


def test_a_masking_is_put_together_from_its_tables(own: Masking):
    again = Masking.from_files(own.truth, own.release.table, own.links, card=own.release.card)
    assert np.array_equal(again.order, own.order)
    assert np.array_equal(again.kept, own.kept)
    assert again.links.equals(own.links)
    assert again.release == own.release
    assert again.key is None
    ids: Any = again.truth.ids
    for name in ("INCOME", "TAX"):
        expected = own.masked.values([name])[own.kept]
        assert np.array_equal(again.masked.values([name])[own.kept], expected, equal_nan=True)
    assert len(again.masked) == len(again.truth) == len(ids)


def test_records_that_were_not_released_have_only_missing_values(own: Masking):
    again = Masking.from_files(own.truth, own.release.table, own.links)
    absent = np.setdiff1d(np.arange(len(own.truth)), own.kept)
    for name in again.masked.names:
        assert set(again.masked.status(name)[absent].tolist()) == {MISSING}
        assert again.masked.array(name).take(pa.array(absent)).null_count == len(absent)


def test_figures_of_a_part_are_about_that_part(own: Masking):
    again = Masking.from_files(own.truth, own.release.table, own.links, card=own.release.card)
    assert column_figures(again) == column_figures(own)


def test_files_are_read_by_the_schema_and_links_in_any_order(own: Masking, tmp_path: Path):
    schema = own.truth.schema
    write(own.truth, tmp_path / "truth.csv")
    write(own.release.table, tmp_path / "masked.parquet")
    shuffled = own.links.take(np.random.default_rng(3).permutation(len(own.links)))
    csv.write_csv(shuffled.append_column("more", pa.nulls(len(shuffled), pa.int8())), tmp_path / "links.csv")
    paths = (tmp_path / "truth.csv", tmp_path / "masked.parquet", tmp_path / "links.csv")
    again = Masking.from_files(*paths, schema=schema)
    assert np.array_equal(again.order, own.order)
    assert again.release.card == NoiseCard(records=len(own.release))


def test_records_without_ids_are_linked_by_number(make_amounts: Callable[..., Table]):
    table = make_amounts(5).select(["A"])
    masked = table.take(np.array([3, 0, 4, 1, 2]))
    links = pa.table({"truth_id": [4, 1, 5, 2, 3], "released_id": [1, 2, 3, 4, 5]})
    masking = Masking.from_files(table, masked, links)
    assert masking.order.tolist() == [3, 0, 4, 1, 2]
    assert masking.kept is None
    assert masking.masked == table


def links(truth: list[str], released: list[str]) -> pa.Table:
    return pa.table({"truth_id": truth, "released_id": released})


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        (pa.table({"truth": ["1"]}), ["the links have no column 'truth_id'", "the links have no column 'released_id'"]),
        (links(["1", "9"], ["1", "2"]), ["truth_id: 1 ids are not in the file (first at line 2 of the links)"]),
        (links(["1", "2"], ["x", "y"]), ["released_id: 2 ids are not in the file (first at line 1 of the links)"]),
        (links(["1", "1", "2"], ["1", "2", "3"]), ["the links name a truth_id twice"]),
        (links(["1", "2", "3"], ["1", "2", "2"]), ["the links name a released_id twice"]),
        (links(["1", "2"], ["1", "2"]), ["the links name 2 of 3 released records; every one needs its truth"]),
    ],
)  # fmt: skip
def test_links_that_do_not_fit_are_refused(
    make_amounts: Callable[..., Table], given: Any, problems: list[str]
):
    table = make_amounts(3).select(["A"])
    with pytest.raises(BadInput) as refusal:
        Masking.from_files(table, table, given)
    assert list(refusal.value.problems) == problems


def test_nothing_is_written_or_nested_without_a_key(own: Masking, tmp_path: Path):
    again = Masking.from_files(own.truth, own.release.table, own.links)
    with pytest.raises(BadPlan, match="only its Release can be written"):
        again.write(release=tmp_path / "r", private=tmp_path / "p")
    with pytest.raises(BadPlan, match="has no key"):
        apply(PLAN, own.truth, earlier=again)
    assert Schema.from_toml(own.truth.schema.to_toml()) == own.truth.schema
