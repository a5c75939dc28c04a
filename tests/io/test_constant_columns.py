"""Columns that nearly all groups share, and whole numbers of which several columns are functions."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from maskwell.io.constant_columns import GroupedRecords, is_monotone
from maskwell.io.inspect import SchemaProposal, propose

CLASSES = 120


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(23)


def proposed(**columns) -> SchemaProposal:
    return propose(pa.table({name: pa.array(values).cast(pa.string()) for name, values in columns.items()}))


def pupils(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Pupils in random order, with the number of their class and what all of it have in common."""
    of = rng.permutation(np.repeat(np.arange(CLASSES), rng.integers(4, 20, CLASSES)))
    return {
        "tch": rng.permutation(CLASSES)[of] * 7 + 11,  # no label of as many digits, no row number
        "exp": rng.integers(0, 30, CLASSES)[of],
        "size": rng.integers(1, 4, CLASSES)[of],
        "read": rng.normal(440, 30, len(of)).round(0).astype(int),
        "math": rng.normal(490, 40, len(of)).round(0).astype(int),
    }


def test_all_groups_of_several_records_are_counted_and_chance_is_that_of_their_sizes():
    groups = np.repeat(np.arange(40), [2] * 30 + [5] * 10)
    values = groups % 4
    found = GroupedRecords.of(groups).constancy(values)
    assert found is not None
    assert (found.constant, found.groups) == (40, 40)
    shares = np.bincount(values) / len(values)
    assert found.chance == pytest.approx((30 * (shares**2).sum() + 10 * (shares**5).sum()) / 40)
    assert found.is_nearly_all


def test_a_tenth_of_the_groups_may_differ_and_a_fifth_may_not(rng):
    groups = np.repeat(np.arange(200), 4)
    for differ, expected in ((18, True), (40, False)):
        values = rng.integers(0, 30, 200)[groups]
        values[: 4 * differ : 4] = 40
        found = GroupedRecords.of(groups).constancy(values)
        assert found is not None
        assert found.constant == 200 - differ
        assert found.is_nearly_all == expected


def test_a_value_that_most_records_have_is_no_reason_and_gaps_are_left_out(rng):
    groups = np.repeat(np.arange(300), 3)
    rare = (rng.random(900) < 0.02).astype(np.int64)  # 94% of the groups are 0 throughout
    found = GroupedRecords.of(groups).constancy(rare)
    assert found is None or not found.is_nearly_all
    shared = rng.integers(0, 9, 300)[groups]
    shared[rng.random(900) < 0.3] = -1
    found = GroupedRecords.of(groups).constancy(shared)
    assert found is not None
    assert found.share == 1
    assert found.is_nearly_all


@pytest.mark.parametrize("values", [2, 3, 20])
def test_chance_seldom_passes(values):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = GroupedRecords.of(rng.integers(0, 60, 150)).constancy(rng.integers(0, values, 150))
        assert found is None or not found.is_nearly_all


def test_the_number_of_a_class_is_a_group_and_asked_with_three_answers(rng):
    data = pupils(rng)
    proposal = proposed(**data)
    assert (proposal.schema["tch"].roles, proposal.schema["tch"].drop) == ({"group"}, True)
    assert proposal.schema["read"].roles == proposal.schema["math"].roles == {"key"}
    found = next(one for one in proposal.of("tch") if one.kind == "group")
    assert found.text.startswith("records with one value have one exp, size too, as with the id of a group")
    assert all(answer in found.otherwise for answer in ('["group"]', '["id"]', '["key"]'))


def test_faults_in_a_few_classes_do_not_hide_a_group(rng):
    data = pupils(rng)
    data["exp"][:4] += 1
    assert proposed(**data).schema["tch"].roles == {"group"}


def test_amounts_with_classes_logarithms_or_one_function_are_no_groups(rng):
    n = 1500
    hours = rng.integers(1, 90, n)
    classes = {
        "part": np.digitize(hours, [20, 40, 60]),
        "square": hours**2,
        "loghours": np.log(hours).round(4),
    }
    assert proposed(hours=hours, **classes).schema["hours"].roles == {"key"}
    data = pupils(rng)
    del data["size"]
    assert proposed(**data).schema["tch"].roles == {"key"}  # one alone may be a price list
    data = pupils(rng)
    assert proposed(year=data.pop("tch"), **data).schema["year"].roles == {"key"}  # rates of years


def test_classes_rise_with_their_amount():
    x = np.array([0, 1, 2, 3, -1, 2])
    assert is_monotone(x, np.array([0, 0, 1, 2, 0, 1]))
    assert is_monotone(x, np.array([5, 4, 1, 0, 2, 1]))
    assert not is_monotone(x, np.array([0, 3, 1, 2, 0, 1]))


def test_few_numbers_named_like_an_id_are_a_category_also_with_decimals(rng):
    proposal = proposed(
        pid=[f"{one}.0" for one in rng.integers(1, 4, 400)], income=rng.lognormal(9, 1, 400).round(2)
    )
    assert proposal.schema["pid"].kind == "category"
    assert [one.kind for one in proposal.of("pid")] == ["named-id"]


def test_addresses_with_several_records_are_a_group_and_first_names_are_none(rng):
    of = np.repeat(np.arange(60), 5)
    words = np.array([f"place {i}" for i in range(60)])[of]
    for name, roles in (("address", {"group"}), ("surname", {"group"}), ("firstname", set())):
        column = proposed(**{name: words, "income": rng.lognormal(9, 1, 300).round(2)}).schema[name]
        assert (column.roles, column.drop) == (roles, True)
    own = np.array([f"place {i}" for i in range(280)] + [f"place {i}" for i in range(20)])
    column = proposed(address=own, income=rng.lognormal(9, 1, 300).round(2)).schema["address"]
    assert (column.roles, column.drop) == (set(), True)
