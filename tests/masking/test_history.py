"""Records that change, leave, come and return between releases: who keeps noise, who gets fresh noise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.engines.random_parts import ChoppedEngine
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.masking.history import drawn_together
from maskwell.masks import Chain, CorrelatedNoise, Grouping, IndependentNoise, MixtureNoise, Pram, RankSwap
from maskwell.notes import texts
from maskwell.schema import MISSING, Schema
from maskwell.table import Table

MakeAmounts = Callable[..., Table]
SEPARATE = IndependentNoise(("A", "B"), variance=(0.25, 0.25))
TOGETHER = CorrelatedNoise(("A", "B"), sd_ratio=0.5)
UNIT = 0.002  # more than the sum of two roundings


@pytest.fixture
def table(make_amounts: MakeAmounts) -> Table:
    return make_amounts(100)


def changed(table: Table, name: str, records: Any, values: Any) -> Table:
    """Give some records another value, or (None) no value."""
    amounts, status = table.values([name])[:, 0], table.status(name).copy()
    amounts[records] = 0.0 if values is None else values
    status[records] = MISSING if values is None else 0
    return table.with_columns({name: (table.schema[name], amounts, status)})


def noise(masking: Masking, name: str) -> Mapping[str, float]:
    """Return the noise of a column by record id (NaN where the value is closed)."""
    drawn = (masking.masked.values([name]) - masking.truth.values([name]))[:, 0]
    ids: Any = masking.truth.ids
    return dict(zip(ids.to_pylist(), drawn.tolist(), strict=True))


def same_noise(one: Masking, other: Masking, name: str, ids: list[str]) -> list[bool]:
    a, b = noise(one, name), noise(other, name)
    return [abs(a[i] - b[i]) < UNIT for i in ids]


def revised(masking: Masking, name: str) -> list[int]:
    """Return the records whose noise in a column is drawn from a tag."""
    return [int(i) for i in np.flatnonzero(masking.revisions[name].any(axis=1))]


# --- changed values


def test_a_changed_value_gets_fresh_noise_and_unchanged_cells_keep_theirs(table: Table, study_key: Key):
    first = apply(SEPARATE, table, key=study_key)
    second = apply(SEPARATE, changed(table, "A", [3, 7], 9.0), earlier=first)
    everyone = [f"r{i}" for i in range(100)]
    assert [i for i, same in enumerate(same_noise(first, second, "A", everyone)) if not same] == [3, 7]
    assert all(same_noise(first, second, "B", everyone))
    assert list(second.revisions) == ["A"]
    assert revised(second, "A") == [3, 7]
    assert "release 2 of the series: 98 records keep their earlier noise" in texts(second.notes)
    assert any(
        note.startswith("2 records have changed values and get fresh noise") for note in texts(second.notes)
    )


def test_noise_drawn_together_is_drawn_anew_together(table: Table, study_key: Key):
    first = apply(TOGETHER, table, key=study_key)
    second = apply(TOGETHER, changed(table, "A", [3], 9.0), earlier=first)
    assert same_noise(first, second, "A", ["r3", "r4"]) == [False, True]
    assert same_noise(first, second, "B", ["r3", "r4"]) == [False, True]


@pytest.mark.parametrize(
    ("plan", "together"),
    [
        (SEPARATE, False),
        (TOGETHER, True),
        (Chain((SEPARATE, TOGETHER)), True),
        (MixtureNoise(("A", "B"), 0.5, 0.1), False),
        (MixtureNoise(("A", "B"), 0.5, 0.1, correlated=True, components=3), True),
        (MixtureNoise(("A", "B"), 0.5, 0.1, correlated=True, construction="rotation"), True),
    ],
)
def test_which_noises_are_drawn_together(table: Table, plan: Any, together: bool):
    assert drawn_together(plan.card(table).laws[0]) == together


def test_fresh_noise_has_the_law_and_is_independent_of_the_earlier(make_amounts: MakeAmounts, study_key: Key):
    table = make_amounts(8000)
    first = apply(TOGETHER, table, key=study_key)
    moved = changed(table, "A", slice(None), table.values(["A"])[:, 0] + 5.0)
    second = apply(TOGETHER, moved, earlier=first)
    before, after = (np.array([[*noise(m, n).values()] for n in "AB"]) for m in (first, second))
    assert np.abs(np.corrcoef(before, after)[:2, 2:]).max() < 4 / np.sqrt(8000)
    assert np.cov(after)[0, 1] == pytest.approx(np.cov(before)[0, 1], abs=4 * 2 * 0.25 / np.sqrt(8000))
    assert np.var(after, axis=1) == pytest.approx(np.var(before, axis=1), rel=8 * np.sqrt(2 / 8000))


def test_a_record_changed_twice_gets_fresh_noise_twice_and_then_keeps_it(table: Table, study_key: Key):
    first = apply(SEPARATE, table, key=study_key)
    second = apply(SEPARATE, changed(table, "A", [3], 9.0), earlier=first)
    third = apply(SEPARATE, changed(table, "A", [3], 7.0), earlier=second)
    fourth = apply(SEPARATE, changed(table, "A", [3], 7.0), earlier=third)
    drawn = [noise(masking, "A")["r3"] for masking in (first, second, third)]
    assert len(np.unique(np.round(drawn, 2))) == 3
    assert same_noise(third, fourth, "A", ["r3"]) == [True]
    assert revised(fourth, "A") == [3]


def test_changes_and_increments_together(table: Table, study_key: Key):
    """A changed record gets all its noise anew, of the full size; others the earlier noise plus the increment."""
    first = apply(SEPARATE, table, key=study_key)
    more = IndependentNoise(("A", "B"), variance=(0.5, 0.5))
    plain = apply(more, table, earlier=first)
    second = apply(more, changed(table, "A", [3], 9.0), earlier=first)
    assert same_noise(plain, second, "A", ["r2", "r3"]) == [True, False]
    assert same_noise(plain, second, "B", ["r2", "r3"]) == [True, True]


def test_revisions_do_not_depend_on_the_engine(table: Table, study_key: Key):
    first = apply(TOGETHER, table, key=study_key)
    moved = changed(table, "B", [1, 50, 99], 4.0)
    assert (
        apply(TOGETHER, moved, earlier=first, engine=ChoppedEngine(9)).masked
        == apply(TOGETHER, moved, earlier=first).masked
    )


# --- two corrections of one value, and values that return


@pytest.mark.parametrize("plan", [SEPARATE, TOGETHER])
def test_two_corrections_nested_in_one_release_share_no_noise(
    make_amounts: MakeAmounts, study_key: Key, plan: Any
):
    """With the same noise they would differ as the corrections do; the same correction is the same release."""
    table = make_amounts(8000)
    first, a = apply(plan, table, key=study_key), table.values(["A"])[:, 0]
    one, two, same = (
        apply(plan, changed(table, "A", slice(None), a + shift), earlier=first) for shift in (7.0, 19.0, 7.0)
    )
    drawn = np.array([[*noise(masking, "A").values()] for masking in (first, one, two)])
    assert np.abs(np.corrcoef(drawn)[np.triu_indices(3, 1)]).max() < 4 / np.sqrt(8000)
    assert np.var(drawn, axis=1) == pytest.approx(0.25, rel=0.05 + 4 * np.sqrt(2 / 8000))
    assert same.masked == one.masked


def test_new_records_with_other_values_share_no_noise_between_two_releases(table: Table, study_key: Key):
    first = apply(SEPARATE, table.take(np.arange(50)), key=study_key)
    one, two = (apply(SEPARATE, t, earlier=first) for t in (table, changed(table, "A", [60], 9.0)))
    assert same_noise(one, two, "A", ["r3", "r59", "r60"]) == [True, True, False]
    assert same_noise(one, two, "B", ["r60"]) == [True]


@pytest.mark.parametrize("plan", [SEPARATE, TOGETHER])
def test_a_value_that_returns_gets_the_noise_it_had(table: Table, study_key: Key, plan: Any):
    """Else a value that goes to and fro would be seen with a fresh draw each time."""
    values = (None, 9.0, None, 7.0, 9.0, 7.0, None)
    tables = [table if value is None else changed(table, "A", [3], value) for value in values]
    releases = [apply(plan, tables[0], key=study_key)]
    for other in tables[1:]:
        releases.append(apply(plan, other, earlier=releases[-1]))
    for i, value in enumerate(values):
        for j in range(i):
            assert (releases[i].masked == releases[j].masked) == (value == values[j]), (i, j)


def test_a_value_that_returns_beside_another_correction_is_not_drawn_from_the_first_noise(
    table: Table, study_key: Key
):
    """Columns drawn together get their first noise back only when all their values are back."""
    both = changed(changed(table, "A", [3], 9.0), "B", [3], 8.0)
    first = apply(TOGETHER, table, key=study_key)
    second = apply(TOGETHER, both, earlier=first)
    third = apply(TOGETHER, changed(both, "A", [3], table.values(["A"])[3]), earlier=second)
    assert same_noise(first, third, "A", ["r2", "r3"]) == [True, False]
    assert same_noise(first, third, "B", ["r2", "r3"]) == [True, False]
    assert apply(TOGETHER, table, earlier=third).masked == first.masked


def test_a_new_record_that_changes_never_draws_from_its_id_alone(table: Table, study_key: Key):
    first = apply(SEPARATE, table.take(np.arange(50)), key=study_key)
    second = apply(SEPARATE, table, earlier=first)
    third = apply(SEPARATE, changed(table, "A", [60], 9.0), earlier=second)
    assert revised(third, "A") == list(range(50, 100))
    assert same_noise(second, third, "A", ["r59", "r60"]) == [True, False]
    assert apply(SEPARATE, table, earlier=third).masked == second.masked


def test_a_value_that_leaves_changes_and_returns_gets_its_first_noise(table: Table, study_key: Key):
    release = first = apply(SEPARATE, table, key=study_key)
    moved = changed(table, "A", [95], 9.0)
    for other in (moved, moved.take(np.arange(90)), table):
        release = apply(SEPARATE, other, earlier=release)
    assert release.masked == first.masked


def test_revised_noise_of_a_group_stays_when_a_value_goes_missing(table: Table, study_key: Key):
    first = apply(TOGETHER, table, key=study_key)
    second = apply(TOGETHER, changed(table, "A", [3], 9.0), earlier=first)
    third = apply(TOGETHER, changed(table, "A", [3], None), earlier=second)
    assert same_noise(second, third, "B", ["r3"]) == [True]
    assert apply(TOGETHER, changed(table, "A", [3], 9.0), earlier=third).masked == second.masked


# --- new, withdrawn and returned records


def test_new_and_withdrawn_records_are_counted_and_others_keep_their_noise(
    make_amounts: MakeAmounts, study_key: Key
):
    first = apply(SEPARATE, make_amounts(100), key=study_key)
    whole = make_amounts(130)
    # the first hundred of 130 records have other values than in a table of 100, so take them from there
    joined = pa.concat_tables([make_amounts(100).data.slice(20), whole.data.slice(100)])
    second = apply(SEPARATE, Table(whole.schema, joined), earlier=first)
    assert "release 2 of the series: 80 records keep their earlier noise" in texts(second.notes)
    assert "30 records are new" in texts(second.notes)
    assert "20 records were withdrawn; they remain in copies of the earlier release" in texts(second.notes)
    assert all(same_noise(first, second, "A", [f"r{i}" for i in range(20, 100)]))
    assert revised(second, "A") == revised(second, "B") == list(range(80, 110))


def test_a_record_that_returns_unchanged_gets_its_noise_back(table: Table, study_key: Key):
    first = apply(TOGETHER, table, key=study_key)
    second = apply(TOGETHER, table.take(np.arange(90)), earlier=first)
    third = apply(TOGETHER, table, earlier=second)
    assert third.masked == first.masked
    assert "10 records return after they were withdrawn" in texts(third.notes)
    assert not any("are new" in note for note in texts(third.notes))


def test_a_record_that_returns_changed_gets_fresh_noise(table: Table, study_key: Key):
    """The same noise would show the change exactly to whoever kept the first release."""
    first = apply(SEPARATE, table, key=study_key)
    second = apply(SEPARATE, table.take(np.arange(90)), earlier=first)
    third = apply(SEPARATE, changed(table, "A", [95], 9.0), earlier=second)
    assert same_noise(first, third, "A", ["r94", "r95"]) == [True, False]
    assert same_noise(first, third, "B", ["r94", "r95"]) == [True, True]


def test_a_revised_record_that_leaves_and_returns_keeps_its_revision(table: Table, study_key: Key):
    first = apply(SEPARATE, table, key=study_key)
    moved = changed(table, "A", [95], 9.0)
    second = apply(SEPARATE, moved, earlier=first)
    third = apply(SEPARATE, moved.take(np.arange(90)), earlier=second)
    fourth = apply(SEPARATE, moved, earlier=third)
    assert fourth.masked == second.masked
    assert revised(fourth, "A") == revised(second, "A") == [95]


def test_a_value_that_was_missing_for_a_while_is_remembered(table: Table, study_key: Key):
    first = apply(TOGETHER, table, key=study_key)
    second = apply(TOGETHER, changed(table, "A", [3, 4], None), earlier=first)
    assert same_noise(first, second, "B", ["r3", "r4"]) == [True, True]
    back = changed(table, "A", [4], 9.0)
    third = apply(TOGETHER, back, earlier=second)
    assert same_noise(first, third, "A", ["r3", "r4"]) == [True, False]


def test_a_value_that_becomes_known_joins_the_noise_of_its_record(table: Table, study_key: Key):
    """Nothing was released of it, so nothing else need be drawn anew."""
    gap = changed(table, "A", [3], None)
    first = apply(TOGETHER, gap, key=study_key)
    second = apply(TOGETHER, table, earlier=first)
    assert same_noise(first, second, "B", ["r3"]) == [True]
    assert not second.revisions
    assert not any("changed" in note for note in texts(second.notes))


def test_a_column_left_out_for_a_while_is_remembered(table: Table, study_key: Key):
    plan = Chain((IndependentNoise("A", variance=0.25), IndependentNoise("B", variance=0.25)))
    first = apply(plan, table, key=study_key)
    second = apply(IndependentNoise("A", variance=0.25), table.select(["ID", "A"]), earlier=first)
    third = apply(plan, changed(table, "B", [3], 9.0), earlier=second)
    assert same_noise(first, third, "B", ["r2", "r3"]) == [True, False]


def test_what_is_remembered_holds_no_id_and_no_value(table: Table, study_key: Key):
    first = apply(SEPARATE, table, key=study_key)
    second = apply(SEPARATE, table.take(np.arange(1, 100)), earlier=first)
    assert {name: len(cells) for name, cells in second.past.cells.items()} == {"A": 1, "B": 1}
    cells = [cell for known in second.past.cells.values() for cell in known.items()]
    held = b"".join(record + value for record, (value, _) in cells)
    assert b"r0" not in held
    assert table.values(["A"])[0, 0].tobytes() not in held


# --- laws that are not noise


def test_classes_and_categories_follow_changed_values(people: Table, study_key: Key):
    plan = Chain((Grouping("AGE", breaks=(40,)), Pram("SEX", stay=0.7)))
    first = apply(plan, people, key=study_key)
    sex = people.values(["SEX"])[:, 0]
    sex[5] = 1 - sex[5]
    moved = people.with_columns({"SEX": (people.schema["SEX"], sex, people.status("SEX"))})
    second = apply(plan, moved, earlier=first)
    others = np.arange(len(people)) != 5
    assert np.array_equal(second.masked.values(["SEX"])[others], first.masked.values(["SEX"])[others])
    assert np.array_equal(second.masked.values(["AGE"]), first.masked.values(["AGE"]), equal_nan=True)


def test_rank_swaps_are_released_again_only_for_the_same_records_and_values(table: Table, study_key: Key):
    """One changed record alone would be exchanged with itself: released in clear."""
    plan = Chain((RankSwap("A", 0.2), IndependentNoise("B", variance=0.25)))
    first = apply(plan, table, key=study_key)
    second = apply(plan, changed(table, "B", [3], 9.0), earlier=first)
    assert np.array_equal(second.masked.values(["A"]), first.masked.values(["A"]))
    for other in (changed(table, "A", [3], 9.0), table.take(np.arange(99))):
        with pytest.raises(BadPlan, match="rank swap of A depends on the whole file"):
            apply(plan, other, earlier=first)


def test_a_new_column_starts_without_a_past(make_amounts: MakeAmounts, study_key: Key):
    wide = make_amounts(100, names="ABC")
    narrow = Table(Schema(wide.schema.columns[:3]), wide.data.select(["ID", "A", "B"]))
    first = apply(SEPARATE, narrow, key=study_key)
    second = apply(Chain((SEPARATE, IndependentNoise("C", variance=0.25))), wide, earlier=first)
    assert np.array_equal(second.masked.values(["A", "B"]), first.masked.values(["A", "B"]))
    assert list(second.revisions) == ["C"]
