"""The release: shuffled, with new ids and groups, without anything that is not released."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import kstest, spearmanr

from maskwell.errors import BadInput
from maskwell.io.stat_files import Ranges
from maskwell.keys import Key, Stream
from maskwell.laws import Transition
from maskwell.masking import Release, apply
from maskwell.masks import Chain, CorrelatedNoise, Grouping, IndependentNoise, Pram, Subsample
from maskwell.notes import Note
from maskwell.schema import Column, Schema
from maskwell.table import Source, Table

PLAN = CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3)
MakeAmounts = Callable[..., Table]


def role(name: str) -> frozenset[str]:
    return frozenset({name})


def released(table: Table, key: Key, plan: Any = None) -> Release:
    return apply(plan or IndependentNoise("A", variance=1.0), table, key=key).release


def small(column: Column, values: Any, kind: Any = None) -> Table:
    """Make a table of ids, an amount and one more column."""
    count = len(values)
    schema = Schema((Column("ID", "text", role("id")), Column("A", "continuous"), column))
    columns = {
        "ID": [f"id{i}" for i in range(count)],
        "A": np.arange(count, dtype=float),
        column.name: pa.array(values, kind),
    }
    return Table.from_frame(pa.table(columns), schema)


# --- order


def test_the_order_tells_nothing_of_the_original_or_of_a_column(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(5000)
    table = table.take(np.argsort(table.values(["A"])[:, 0]))  # a sorted file
    masking = apply(IndependentNoise("A", variance=0.01), table, key=study_key)
    place = np.arange(5000)
    assert abs(spearmanr(masking.order, place).statistic) < 4 / np.sqrt(5000)
    assert abs(spearmanr(masking.release.table.values(["A"])[:, 0], place).statistic) < 4 / np.sqrt(5000)
    assert sorted(masking.order.tolist()) == place.tolist()
    assert kstest(np.diff(masking.order), np.diff(np.random.default_rng(1).permutation(5000))).pvalue > 1e-4


def test_the_order_of_the_input_does_not_matter(people: Table, study_key: Key):
    shuffled = people.take(np.random.default_rng(4).permutation(len(people)))
    one, other = (apply(PLAN, table, key=study_key) for table in (people, shuffled))
    assert one.release == other.release
    assert one.links.equals(other.links)


def test_links_lead_from_each_released_record_to_its_truth(people: Table, study_key: Key):
    masking = apply(Chain((PLAN, Subsample(0.5))), people, key=study_key)
    truth = dict(zip(people.array("ID").to_pylist(), people.array("WEIGHT").to_pylist(), strict=True))
    given = masking.release.table
    weight = dict(zip(given.array("ID").to_pylist(), given.array("WEIGHT").to_pylist(), strict=True))
    links = masking.links.to_pylist()
    assert len(links) == len(masking.release)
    assert all(truth[link["truth_id"]] == weight[link["released_id"]] for link in links)


# --- ids


@pytest.mark.parametrize(
    ("kind", "digits", "written"),
    [
        (pa.string(), 16, pa.string()),
        (pa.large_string(), 16, pa.large_string()),
        (pa.int64(), 15, pa.int64()),
        (pa.uint64(), 15, pa.uint64()),
        (pa.int32(), 9, pa.int32()),
        (pa.int16(), 15, pa.int64()),
    ],
)
def test_new_ids_are_random_and_distinct_in_the_type_of_the_old(
    study_key: Key, kind: Any, digits: int, written: Any
):
    schema = Schema((Column("ID", "text", role("id")), Column("A", "continuous")))
    frame = pa.table({"ID": pa.array(range(300)).cast(kind), "A": np.arange(300.0)})
    release = released(Table.from_frame(frame, schema), study_key)
    ids = release.table.array("ID").to_pylist()
    assert {len(text) for text in ids} == {digits}
    assert len(set(ids)) == 300
    assert release.table.written("ID").type == written
    assert ids != sorted(ids)


def test_ids_that_clash_are_drawn_again(
    study_key: Key, monkeypatch: pytest.MonkeyPatch, make_amounts: MakeAmounts
):
    """With words of 6 bits at first, most of 40 ids clash; the next attempts have all their bits."""
    masking = apply(IndependentNoise("A", variance=1.0), make_amounts(40), key=study_key)
    genuine = Stream.words

    def few_bits(self: Stream, column: str, purpose: str = "noise") -> Any:
        drawn = genuine(self, column, purpose)
        return drawn & np.uint64(63) if (column, purpose) == ("ID", "ids") else drawn

    monkeypatch.setattr(Stream, "words", few_bits)
    ids = masking.release.table.array("ID").to_pylist()
    assert len(set(ids)) == 40
    assert any(int(text, 16) < 64 for text in ids)
    assert any(int(text, 16) > 2**32 for text in ids)


def test_two_records_with_one_id_do_not_leave(make_amounts: MakeAmounts, study_key: Key):
    """A file with such ids cannot be read; a table made by hand is refused here."""
    table = make_amounts(3)
    twice = replace(table, data=table.data.set_column(0, "ID", pa.array(["x", "y", "x"])))
    masking = apply(IndependentNoise("A", variance=1.0), twice, key=study_key)
    with pytest.raises(BadInput, match="two records have the same id"):
        _ = masking.release


# --- groups


def groups_of(labels: Any) -> set[frozenset[int]]:
    """The partition of the records that group labels stand for."""
    values = np.array(labels, dtype=object)
    return {frozenset(np.flatnonzero(values == label).tolist()) for label in values if label is not None}


@pytest.mark.parametrize(
    ("column", "values", "kind"),
    [
        (Column("G", "integer", role("group"), missing=(2, -9)), [7, 7, 5, 2, -9, 5, 8, 9], pa.int8()),
        (Column("G", "integer", role("group"), top=9, bottom=1), [7, 7, 5, 1, 9, 5, 8, 9], None),
        (Column("G", "continuous", role("group")), [7.5, 7.5, 5.0, None, 1.0, 5.0, 8.0, 2.0], None),
        (Column("G", "text", role("group"), missing=("2",)), ["b", "b", "a", "2", None, "a", "c", "d"], None),
        (Column("G", "category", role("group"), categories=("a", "b", "c", "d"), labels=(("a", "Smith"),)),
         ["b", "b", "a", None, "d", "a", "c", "c"], None),
    ],
)  # fmt: skip
def test_groups_get_new_numbers_that_are_no_codes(study_key: Key, column: Column, values: Any, kind: Any):
    table = small(column, values, kind)
    masking = apply(IndependentNoise("A", variance=1.0), table, key=study_key)
    given = masking.release.table
    back = np.argsort(masking.order)
    before, after = (
        table.array("G").to_pylist(),
        np.array(given.array("G").to_pylist(), dtype=object)[back].tolist(),
    )
    assert groups_of(before) == groups_of(after)
    open_numbers = {int(label) for label in after if label is not None}
    free = [n for n in range(1, 9) if str(n) not in {str(code) for code in column.missing}]
    assert open_numbers == set(free[: len(open_numbers)])
    assert given.schema["G"].labels == ()
    again = Table.from_frame(given.to_arrow(), given.schema)
    assert again.array("G").equals(given.array("G"))


def test_groups_are_numbered_anew_in_every_release(people: Table, study_key: Key):
    first = apply(PLAN, people, key=study_key)
    second = apply(PLAN, people, earlier=first)
    by_record = [m.release.table.values(["HH"])[np.argsort(m.order), 0] for m in (first, second)]
    assert groups_of(by_record[0]) == groups_of(by_record[1])
    assert np.mean(by_record[0] == by_record[1]) < 0.2
    assert np.mean(by_record[0] == people.values(["HH"])[:, 0]) < 0.2


# --- what leaves as it was


def test_weights_leave_untouched(people: Table, study_key: Key):
    masking = apply(PLAN, people, key=study_key)
    assert masking.release.table.array("WEIGHT").equals(people.array("WEIGHT").take(pa.array(masking.order)))


def test_dropped_columns_and_notes_do_not_leave(people: Table, study_key: Key):
    noted = replace(people, notes=(Note("masking.series_new", {"count": 17}),))
    release = released(noted, study_key, PLAN)
    assert "SECRET" not in release.table.names
    assert release.table.notes == ()
    assert release.card.notes == ()
    assert b"SECRET" not in pickle.dumps(release)


@pytest.mark.parametrize(
    "dialect", [{"GONE": "numpy", "A": "numpy"}, Ranges({"GONE": ((1.0, 2.0),), "A": ((3.0, 4.0),)})]
)
def test_what_a_reader_noted_of_dropped_columns_does_not_leave(study_key: Key, dialect: Any):
    table = small(Column("GONE", "text", drop=True), ["x", "y", "z"])
    table = replace(table, source=Source("pandas", {**table.source.types, "GONE": pa.string()}, dialect))
    release = released(table, study_key)
    assert b"GONE" not in pickle.dumps(release)
    assert pickle.dumps(release).count(b"ID") > 0


# --- labels and categories


def test_categories_that_no_released_record_has_are_gone(people: Table, study_key: Key):
    release = released(people, study_key, PLAN)
    assert release.table.schema["REGION"].categories == ("north", "south")
    assert b"nowhere" not in pickle.dumps(release)


def test_categories_stay_where_the_law_speaks_of_them(people: Table, study_key: Key):
    release = released(people, study_key, Pram("REGION", stay=0.999))
    assert release.table.schema["REGION"].categories == ("north", "south", "nowhere")


def test_grouped_categories_lose_their_names_on_the_public_card_alone(people: Table, study_key: Key):
    plan = Chain(
        (Grouping("EDU", groups=(("low", ("low",)), ("more", ("middle", "high")))), Pram("EDU", stay=0.9))
    )
    masking = apply(plan, people, key=study_key)
    private, public = masking.card.laws[0], masking.release.card.laws[0]
    assert isinstance(public, Transition)
    assert public.true == ("low", "category 2", "category 3")
    assert private.combined.true == ("low", "middle", "high")
    assert public.matrix == private.combined.matrix
    own = masking.card.logpdf(masking.masked, people)
    assert np.array_equal(masking.release.card.logpdf(masking.masked, people), own)
    assert b"middle" not in pickle.dumps(masking.release)


def test_labels_stay_for_numbers_and_codes_that_occur():
    labels = (
        ("0", "none"),
        ("1", "unused"),
        ("10", "ten or more"),
        ("-9", "refused"),
        ("-8", "unused too"),
        ("x", "odd"),
    )
    column = Column("N", "integer", top=10, missing=(-9, -8), labels=labels)
    release = released(small(column, [0, 5, 10, -9]), Key.from_seed(1))
    assert [code for code, _ in release.table.schema["N"].labels] == ["0", "10", "-9"]


def test_labels_of_large_numbers_are_recognised():
    column = Column("N", "integer", labels=(("1234567", "a lot"), ("7654321", "unused")))
    release = released(small(column, [1234567, 3, 4]), Key.from_seed(1))
    assert release.table.schema["N"].labels == (("1234567", "a lot"),)


def test_the_release_counts_its_records(people: Table, study_key: Key):
    release = released(people, study_key, Chain((PLAN, Subsample(0.3))))
    assert release.card.records == len(release) == len(release.table)
    assert repr(release) == f"<Release of {len(release)} records x 12 columns; masked: INCOME, TAX>"


def test_frames_come_back_as_they_came(people: Table, study_key: Key):
    frame = released(people, study_key, PLAN).to_frame()
    assert isinstance(frame, pa.Table)
    assert frame.column_names == [name for name in people.names if name != "SECRET"]
