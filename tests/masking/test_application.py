"""`apply`: what it gives, what it leaves alone, what it says and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.engines.local import Local
from maskwell.engines.random_parts import ChoppedEngine
from maskwell.errors import BadPlan, MaskwellWarning
from maskwell.keys import Key, Stream
from maskwell.masking import apply
from maskwell.masking.results import record_blocks
from maskwell.masks import (
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    RankSwap,
    Recompute,
    Subsample,
)
from maskwell.notes import Note, has_code, texts
from maskwell.schema import MISSING, TOP_CODED, Column, Schema
from maskwell.table import Table

INCOME_TAX = CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3)
MakeAmounts = Callable[..., Table]


def role(name: str) -> frozenset[str]:
    return frozenset({name})


def frame(schema: Schema, **columns: Any) -> Table:
    return Table.from_frame(pa.table(columns), schema)


# --- keys and seeds


def test_the_key_comes_from_the_system_unless_given(people: Table):
    one, other = (apply(INCOME_TAX, people) for _ in range(2))
    assert one.key is not None
    assert other.key is not None
    assert one.key.secret != other.key.secret
    assert not one.card.seeded
    assert one.masked != other.masked


def test_a_seed_marks_the_card_and_gives_the_same_release(people: Table):
    one, other = (apply(INCOME_TAX, people, seed=7) for _ in range(2))
    assert one.release == other.release
    assert one.card.seeded
    assert one.release.card.seeded
    assert one.release.card.to_dict()["warning"] == "the noise comes from a small seed: not for release"


def test_key_and_seed_exclude_each_other(people: Table):
    with pytest.raises(BadPlan, match="a key or a seed"):
        apply(INCOME_TAX, people, seed=7, key=Key.from_os())


# --- what noise depends on


@pytest.mark.parametrize("engine", [Local(1), Local(35), ChoppedEngine(7, seed=4), ChoppedEngine(1000)])
def test_no_bit_depends_on_the_engine(people: Table, study_key: Key, engine: Any):
    expected = apply(INCOME_TAX, people, key=study_key)
    found = apply(INCOME_TAX, people, key=study_key, engine=engine)
    assert found.card == expected.card
    assert found.masked == expected.masked
    assert found.release == expected.release


def test_noise_follows_the_record_into_any_order_and_subset(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(500)
    mask = IndependentNoise(("A", "B"), variance=(0.25, 4.0))
    whole = apply(mask, table, key=study_key).masked
    for chosen in (np.random.default_rng(1).permutation(500), np.arange(17, 400, 9)):
        assert apply(mask, table.take(chosen), key=study_key).masked == whole.take(chosen)


def test_the_noise_is_that_of_the_keystream(make_amounts: MakeAmounts, study_key: Key):
    """z is x plus the sd times the keyed normal of (series, stage 0, column, id), rounded to the released unit."""
    table = make_amounts(300)
    masked = apply(IndependentNoise(("A",), variance=0.25), table, key=study_key).masked
    stream = Stream(study_key, "default", "0", record_blocks(table))
    expected = table.values(["A"])[:, 0] + 0.5 * stream.normals("A")
    assert np.abs(masked.values(["A"])[:, 0] - expected).max() <= 0.0005 + 1e-12


def test_records_without_ids_are_known_by_their_numbers(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(50).select(["A", "B"])
    masking = apply(IndependentNoise(("A",), variance=1.0), table, key=study_key)
    assert masking.card.numbered
    assert masking.release.card.to_dict()["numbered"] is True
    assert has_code(masking.notes, "masking.no_id")
    assert masking.links.column("truth_id").to_pylist() == [str(i + 1) for i in masking.order]


# --- what is left alone


def test_only_open_values_of_masked_columns_change(people: Table, study_key: Key):
    masking = apply(INCOME_TAX, people, key=study_key)
    for name in people.names:
        same = masking.masked.array(name).equals(people.array(name))
        assert same == (name not in ("INCOME", "TAX"))
        assert np.array_equal(masking.masked.status(name), people.status(name))
    is_open = people.is_open(["INCOME"])[:, 0]
    assert np.all((masking.masked.values(["INCOME"]) != people.values(["INCOME"]))[is_open])


def test_the_input_is_not_touched(make_people: Callable[..., Table], study_key: Key):
    table, untouched = make_people(), make_people()
    _ = apply(Chain((INCOME_TAX, RankSwap("WAGE", 0.1))), table, key=study_key).release
    assert table == untouched


def test_values_leave_on_their_unit(people: Table, study_key: Key):
    """Each released value is the double nearest to a multiple of the unit: no digit beyond it tells of the noise."""
    masked = apply(INCOME_TAX, people, key=study_key).masked
    for name, unit in (("INCOME", Fraction(1, 100)), ("TAX", Fraction(1))):
        assert masked.schema[name].step == unit
        values = masked.values([name])[people.is_open([name])[:, 0], 0].tolist()
        assert values == [float(round(Fraction(value) / unit) * unit) for value in values]


def test_unmasked_values_off_their_declared_unit_are_rounded_and_the_card_says_so(study_key: Key):
    column = Column("B", "continuous", unit=0.5, top=10, missing=(2,))
    schema = Schema((Column("ID", "text", role("id")), Column("A", "continuous"), column))
    table = frame(schema, ID=["a", "b", "c", "d"], A=[1.0, 2.0, 3.0, 4.0], B=[0.6, 9.9, 2.1, 1.5])
    masking = apply(IndependentNoise("A", variance=1.0), table, key=study_key)
    assert masking.masked.values(["B"])[:, 0].tolist() == [0.5, 9.5, 2.5, 1.5]
    assert Note("masking.rounded", {"columns": ("B",)}) in masking.notes
    assert np.isfinite(masking.card.logpdf(masking.masked, table)).all()
    wrong = masking.masked.with_columns(
        {"B": (column, np.array([1.0, 9.5, 2.5, 1.5]), np.zeros(4, np.uint8))}
    )
    assert masking.card.logpdf(wrong, table)[0] == -np.inf


def test_exchanged_values_leave_on_their_unit_too(study_key: Key):
    schema = Schema((Column("ID", "text", role("id")), Column("A", "continuous", unit=1)))
    table = frame(schema, ID=[str(i) for i in range(40)], A=np.arange(40) + 0.3)
    masked = apply(RankSwap("A", 0.2), table, key=study_key).masked
    assert sorted(masked.values(["A"])[:, 0]) == list(range(40))


def test_values_on_their_unit_need_no_law(people: Table, study_key: Key):
    assert apply(INCOME_TAX, people, key=study_key).card.columns == ("INCOME", "TAX")


# --- statuses made by masks


def test_codes_given_by_a_mask_become_statuses(people: Table, study_key: Key):
    masking = apply(Chain((INCOME_TAX, Coding("TAX", top=6000))), people, key=study_key)
    status, values = masking.masked.status("TAX"), masking.masked.values(["TAX"])[:, 0]
    assert np.count_nonzero(status == TOP_CODED) > 10
    assert np.nanmax(values) < 6000
    assert np.array_equal(status == MISSING, people.status("TAX") == MISSING)
    assert masking.masked.schema["TAX"].top == 6000


def test_coded_values_fall_into_the_end_classes(people: Table, study_key: Key):
    masking = apply(Grouping("AGE", breaks=(30, 60)), people, key=study_key)
    labels = np.array(masking.masked.array("AGE").to_pylist(), dtype=object)
    assert set(labels[people.status("AGE") == TOP_CODED]) == {"60 and over"}
    assert set(labels[people.status("AGE") == 3]) == {"below 30"}
    assert np.array_equal(masking.masked.status("AGE") >= 4, people.status("AGE") >= 4)


# --- totals


def test_totals_are_sums_of_released_parts(people: Table, study_key: Key):
    plan = Chain(
        (IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.1), Recompute("TOTAL", ("WAGE", "OTHER")))
    )
    masking = apply(plan, people, key=study_key)
    wage, other, total = masking.masked.values(["WAGE", "OTHER", "TOTAL"]).T
    assert np.array_equal(total, wage + other)
    assert not np.array_equal(total, people.values(["TOTAL"])[:, 0])
    assert masking.to_dict()["recomputed"] == ["TOTAL"]


def test_a_noised_part_beside_a_total_in_clear_is_refused(people: Table):
    for columns in ("WAGE", ("WAGE", "OTHER"), ("WAGE", "OTHER", "TOTAL"), "TOTAL"):
        with pytest.raises(BadPlan, match=r"TOTAL = WAGE \+ OTHER exactly"):
            apply(IndependentNoise(columns, variance_ratio=0.1), people)


# --- subsamples


def test_subsamples_hold_the_same_records_in_every_release(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(2000)
    half, tenth = (apply(Subsample(fraction), table, key=study_key) for fraction in (0.5, 0.1))
    assert half.kept is not None
    assert tenth.kept is not None
    assert set(tenth.kept) < set(half.kept)
    assert abs(len(half.kept) - 1000) < 4 * np.sqrt(2000 * 0.25)
    assert len(half.release) == len(half.kept) == half.to_dict()["released"]
    shuffled = table.take(np.random.default_rng(2).permutation(2000))
    again = apply(Subsample(0.5), shuffled, key=study_key)
    assert again.release == half.release
    fewer = apply(Subsample(0.5), table.take(np.arange(1500)), key=study_key)
    assert fewer.kept is not None
    assert fewer.kept.tolist() == half.kept[half.kept < 1500].tolist()


def test_an_empty_subsample_is_refused(make_amounts: MakeAmounts, study_key: Key):
    with pytest.raises(BadPlan, match="no record"):
        apply(Subsample(1e-9), make_amounts(20), key=study_key)


# --- what is said


def test_what_leaves_unmasked_is_said(people: Table, study_key: Key):
    notes = texts(apply(INCOME_TAX, people, key=study_key).notes)
    assert "released unmasked: REGION, AGE, SEX, EDU, WAGE, OTHER, TOTAL, WEIGHT" in notes


def test_records_alone_in_their_block_are_counted_among_the_released(
    make_amounts: MakeAmounts, study_key: Key
):
    column = Column("R", "category", role("block"), categories=("a", "b", "c"))
    base = make_amounts(6)
    data = base.data.append_column("R", pa.array(["a", "a", "a", "b", "c", "c"]))
    table = replace(base, data=data, schema=Schema((*base.schema.columns, column)))
    with pytest.warns(MaskwellWarning, match="1 record is alone in its block"):
        masking = apply(IndependentNoise("A", variance=1.0), table, key=study_key)
    assert has_code(masking.notes, "masking.alone_in_block")


def test_progress_reaches_the_end(people: Table, study_key: Key):
    seen: list[tuple[int, int]] = []
    plan = Chain((INCOME_TAX, IndependentNoise("AGE", variance=4.0)))
    apply(plan, people, key=study_key, engine=Local(100), progress=lambda *told: seen.append(told))
    assert seen == [(done, 480) for done in (100, 200, 240, 340, 440, 480)]


# --- secrets


def test_no_value_or_key_shows(people: Table, study_key: Key):
    masking = apply(INCOME_TAX, people, key=study_key)
    shown = repr(masking) + repr(masking.release) + str(masking.to_dict()) + repr(masking.masked)
    assert study_key.secret.hex() not in shown
    assert "person 0" not in shown
    assert "stays inside" in repr(masking)


def test_an_id_that_is_no_number_does_not_show_when_ids_are_called_numbers(study_key: Key):
    """The search for identities must not read ids as amounts."""
    schema = Schema((Column("ID", "integer", role("id")), *(Column(n, "continuous") for n in "ABC")))
    rng = np.random.default_rng(1)
    table = frame(schema, ID=[f"x{i}" for i in range(30)], **{n: rng.normal(size=30) for n in "ABC"})
    masking = apply(IndependentNoise("A", variance=1.0), table, key=study_key)
    assert masking.masked.is_open(["A"]).all()


def test_noise_lost_in_the_unit_is_refused():
    table = frame(Schema((Column("A", "integer"),)), A=np.arange(40))
    with pytest.raises(
        BadPlan, match=r"column 'A': noise of sd 0\.2 is lost in its unit 1, almost every value"
    ):
        apply(IndependentNoise("A", variance=0.04), table, seed=1)


def test_a_column_that_is_only_rounded_is_said_to_leave_in_clear(study_key: Key):
    schema = Schema((Column("A", "continuous", unit=0.5), Column("B", "continuous", unit=0.1)))
    table = frame(schema, A=np.linspace(0, 9, 40) + 0.01, B=np.linspace(0, 9, 40).round(1))
    masking = apply(IndependentNoise("B", variance=1.0), table, key=study_key)
    assert Note("masking.unmasked", {"columns": ("A",)}) in masking.notes
    assert masking.card.masked == ("B",)
    assert repr(masking.release).endswith("masked: B>")


def test_masked_blocks_do_not_make_a_record_alone(study_key: Key):
    block = Column("SEX", "category", role("block"), categories=("f", "m"))
    schema = Schema((block, Column("A", "integer")))
    table = frame(schema, SEX=["f"] + ["m"] * 39, A=np.arange(40))
    with pytest.warns(MaskwellWarning, match=r"1 record is alone in its block \(SEX\)"):
        apply(IndependentNoise("A", variance=9.0), table, key=study_key)
    apply(CodeNoise("SEX", variance=0.5), table, key=study_key)


@pytest.mark.parametrize("given", [{"key": "secret"}, {"seed": 1.5}, {"seed": "1"}])
def test_keys_and_seeds_of_another_kind_are_refused(people: Table, given: Any):
    with pytest.raises(BadPlan, match=r"a key is a Key \(Key.from_os\(\)\), a seed a whole number"):
        apply(IndependentNoise("INCOME", variance=2500.0), people, **given)


def test_a_frame_is_not_a_table():
    with pytest.raises(BadPlan, match=r"apply masks a Table, not a dict: make one with Table.from_frame"):
        apply(IndependentNoise("INCOME", variance=2500.0), {"INCOME": [1, 2]}, seed=1)  # type: ignore[arg-type]
