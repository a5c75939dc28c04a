"""Who is unique by what no noise changes: against counting by hand, under every mask, and what would remove it."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks import floor_of
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.protocol import IntruderKnowledge
from maskwell.attacks.uniqueness import HIDDEN
from maskwell.errors import BadInput, BadPlan
from maskwell.masking import Masking
from maskwell.notes import Note, has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

AMOUNTS = ("INCOME", "TAX", "AGE")
VALUES = ("REGION", "SEX", "EDU")
ID, KEY, BLOCK = frozenset({"id"}), frozenset({"key"}), frozenset({"block"})
NOISE = mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3)


def masked(mask, table, seed=5):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=seed)


@pytest.fixture(scope="module")
def masking(people):
    return masked(NOISE, people)


def cells(table, values, patterns):
    """Records as plain tuples, one cell a column: what is open and its value, or its status."""
    columns = [
        [value if status == 0 else ("closed", int(status)) for value, status in zip(*both, strict=True)]
        for both in ((table.array(name).to_pylist(), table.status(name)) for name in values)
    ]
    columns += [[int(status) for status in table.status(name)] for name in patterns]
    return list(zip(*columns, strict=True))


def alone(rows):
    counts = Counter(rows)
    return {i for i, row in enumerate(rows) if counts[row] == 1}


def without(rows, gone):
    return [tuple(cell for j, cell in enumerate(row) if j not in gone) for row in rows]


def table_of(*columns, **data):
    """A table of described columns, and ids."""
    ids = [f"t{i}" for i in range(len(next(iter(data.values()))))]
    return Table.from_frame(pa.table({"ID": ids, **data}), Schema((Column("ID", "text", ID), *columns)))


# Against plain counting.


@pytest.mark.parametrize("direction", ["to_masked", "to_original"])
def test_links_are_those_of_plain_counting(direction, people, masking):
    plan = mw.Fingerprint(columns=(*VALUES, *AMOUNTS), direction=direction)
    risk, guess, _, _ = attack_by(plan, masking)
    sides = [cells(table, VALUES, AMOUNTS) for table in (people, masking.release.table)]
    near, far = sides if direction == "to_masked" else sides[::-1]
    among = Counter(far)
    np.testing.assert_array_equal(guess.ties, [among[row] for row in near])
    assert all(far[found] == near[i] for i, found in enumerate(guess.found))
    unique = alone(sides[0])
    assert 5 < len(unique) < 100
    assert risk.correct == risk.claims == len(unique)
    assert risk.rate == len(unique) / len(people)
    sizes = [among[row] for row in near]
    counts = {"unique": 1, "pair": 2, "3 to 5 alike": (3, 4, 5), "none alike": 0}
    for name, size in counts.items():
        assert risk.class_of(name).links == int(np.isin(sizes, size).sum())
    assert risk.class_of("more alike").links == sum(size > 5 for size in sizes)
    assert risk.best_correct == pytest.approx(len(set(near)))
    region = Counter(people.array("REGION").to_pylist())
    assert risk.baseline == pytest.approx(len(region) / len(people))


def test_what_would_remove_them_is_counted_again_without_each(people, masking):
    risk = mw.attack(mw.Fingerprint(columns=(*VALUES, *AMOUNTS)), masking)
    rows, names = cells(people, VALUES, AMOUNTS), (*VALUES, *AMOUNTS)
    found = {(one["column"], one["part"]): one["remaining"] for one in risk.floor.without.to_pylist()}
    for j, name in enumerate(names):
        part = "values" if name in VALUES else "pattern"
        assert found.pop((name, part)) == len(alone(without(rows, {j})))
    hidden = cells(people, ("REGION", "SEX"), ("EDU", *AMOUNTS))
    assert found == {("EDU", "values, pattern left"): len(alone(hidden))}
    assert risk.floor.without["remaining"].to_pylist() == sorted(risk.floor.without["remaining"].to_pylist())


def test_the_sequence_takes_the_best_column_each_time_until_nobody_is_left(people, masking):
    floor = mw.attack(mw.Fingerprint(columns=(*VALUES, *AMOUNTS)), masking).floor
    rows, names, gone = cells(people, VALUES, AMOUNTS), (*VALUES, *AMOUNTS), set()
    for step in floor.steps.to_pylist():
        left = {j: len(alone(without(rows, {*gone, j}))) for j in range(len(names)) if j not in gone}
        assert step["remaining"] == min(left.values()) == left[names.index(step["column"])]
        gone.add(names.index(step["column"]))
    assert floor.steps["remaining"].to_pylist()[-1] == 0
    assert 0 not in floor.steps["remaining"].to_pylist()[:-1]


def test_blocks_hold_those_who_are_alone(make_people):
    people = make_people(400)
    plan = mw.Fingerprint(masked=AMOUNTS, columns=(*VALUES, *AMOUNTS), match_blocks=("EDU", "SEX"))
    floor = mw.attack(plan, people).floor
    unique = alone(cells(people, VALUES, AMOUNTS))
    blocks = list(zip(*(people.written(name).to_pylist() for name in ("EDU", "SEX")), strict=True))
    expected = Counter(blocks[i] for i in unique)
    found = {(one["EDU"], one["SEX"]): (one["unique"], one["records"]) for one in floor.blocks.to_pylist()}
    assert found == {block: (count, blocks.count(block)) for block, count in expected.items()}
    assert floor.block_count == len(expected)
    assert floor.blocks["unique"].to_pylist() == sorted(expected.values(), reverse=True)


def test_at_most_twenty_blocks_are_listed():
    table = table_of(Column("B", "integer", BLOCK), B=np.arange(50))
    floor = mw.attack(mw.Fingerprint(), table).floor
    assert (len(floor.blocks), floor.block_count) == (20, 50)


@pytest.mark.parametrize("seed", range(8))
def test_random_tables_are_counted_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 60))
    known = pa.array(rng.integers(0, 4, n).astype(float), mask=rng.random(n) < 0.3)
    noisy = pa.array(rng.standard_normal(n), mask=rng.random(n) < 0.4)
    data = {"A": known, "B": rng.choice(["x", "y"], n), "C": noisy}
    columns = (
        Column("A", "continuous"),
        Column("B", "category", BLOCK, categories=("x", "y")),
        Column("C", "continuous"),
    )
    table = table_of(*columns, **data)
    risk = mw.attack(mw.Fingerprint(masked="C"), table)
    rows = cells(table, ("A", "B"), ("C",))
    assert risk.claims == risk.correct == len(alone(rows)) == risk.floor.unique
    left = {
        one["column"]: one["remaining"]
        for one in risk.floor.without.to_pylist()
        if one["part"] != "values, pattern left"
    }
    for name, count in left.items():
        assert count == len(alone(without(rows, {"ABC".index(name)})))


# What is sure under every mask.

CODED = mw.Coding(("INCOME",), top=40_000)
MASKS = {
    "noise": NOISE,
    "coding alone": mw.Coding(("INCOME", "TAX"), top=(40_000, 7_000), bottom=(20_000, 3_000)),
    "noise, then codes": mw.Chain([NOISE, CODED]),
    "classes": mw.Grouping(("INCOME", "AGE"), breaks=(20, 40, 60, 80)),
    "groups": mw.Grouping(("EDU",), groups={"some": ["low", "middle"], "much": ["high"]}),
    "random change": mw.Pram(("EDU",), stay=0.6),
    "random change within groups": mw.Pram(
        ("EDU",), matrix=((0.6, 0.4, 0.0), (0.3, 0.7, 0.0), (0.0, 0.0, 1.0))
    ),
    "two categories always swapped": mw.Pram(("SEX",), matrix=((0.0, 1.0), (1.0, 0.0))),
    "groups, then random change": mw.Chain(
        [
            mw.Grouping(("EDU",), groups={"some": ["low", "middle"], "much": ["high"]}),
            mw.Pram(("EDU",), stay=0.5),
        ]
    ),
    "noisy codes": mw.CodeNoise(("EDU", "SEX"), variance=0.5),
    "rounded noisy codes": mw.CodeNoise(("EDU",), variance=0.5, rounded=True),
    "rank swap": mw.RankSwap(("INCOME", "WAGE"), window_ratio=0.2),
    "noise on parts": mw.Chain(
        [mw.IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.2), mw.Recompute("TOTAL", ("WAGE", "OTHER"))]
    ),
    "sum of clear parts": mw.Recompute("TOTAL", ("WAGE", "OTHER")),
    "coded parts": mw.Chain(
        [
            mw.IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.2),
            mw.Coding(("WAGE",), top=3_000),
            mw.Recompute("TOTAL", ("WAGE", "OTHER")),
        ]
    ),
    "log noise": mw.IndependentNoise(("TAX",), variance_ratio=0.1, transform="log", shift=9_000.0),
    "two stages": mw.Chain([NOISE, mw.IndependentNoise(("INCOME", "TAX"), variance_ratio=0.05)]),
}
SOME = ("REGION", "INCOME", "TAX", "AGE", "SEX", "EDU", "TOTAL")


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("columns", [None, SOME], ids=["all", "some"])
def test_what_counts_is_sure_and_the_floor_is_known_before_the_noise(name, columns, people):
    """Whatever the noise, everybody keeps his fingerprint, all claims are right, and the same records are alone."""
    before = floor_of(MASKS[name], people, columns=columns)
    for seed in range(3):
        risk, guess, marks, _ = attack_by(mw.Fingerprint(columns=columns), masked(MASKS[name], people, seed))
        assert guess.is_tied(guess.searcher, marks.counterpart).all()
        assert risk.correct == risk.claims == before.claims
        assert risk.floor.to_dict() == before.floor.to_dict()
    assert before.correct == before.claims


def counted(mask, people):
    floor = floor_of(mask, people).floor
    return set(floor.values), set(floor.patterns)


def test_which_columns_count_under_which_mask(people):
    clear = {"REGION", "SEX", "EDU", "WAGE", "OTHER", "TOTAL", "WEIGHT"}
    assert counted(NOISE, people) == (clear, set(AMOUNTS))
    everything = clear | set(AMOUNTS)
    assert counted(MASKS["coding alone"], people) == (everything, set())
    assert counted(MASKS["classes"], people) == (everything, set())
    assert counted(MASKS["groups"], people) == (everything, set())
    assert counted(MASKS["random change"], people) == (everything - {"EDU"}, {"EDU"})
    assert counted(MASKS["random change within groups"], people) == (everything, set())
    assert counted(MASKS["noise on parts"], people)[0] == everything - {"WAGE", "OTHER", "TOTAL"}
    assert counted(MASKS["sum of clear parts"], people)[0] == everything
    assert counted(MASKS["rank swap"], people) == (everything - {"INCOME", "WAGE"}, {"INCOME"})


def test_codes_that_the_mask_gives_do_not_count_but_missing_values_do():
    """Records 0, 1 and 2 of A are missing, top-coded in the truth, and open: only the first is sure to be told."""
    income = pa.array([np.nan, 90.0, 50.0, 55.0, 60.0, 65.0], from_pandas=True)
    table = table_of(Column("A", "continuous", KEY, top=90), A=income)
    noise = mw.IndependentNoise(("A",), variance=400)
    plain, coded = floor_of(noise, table), floor_of(mw.Chain([noise, mw.Coding(("A",), top=70)]), table)
    assert plain.table["class"].to_pylist() == ["unique", "unique", *["3 to 5 alike"] * 4]
    assert coded.table["class"].to_pylist() == ["unique", *["3 to 5 alike"] * 5]
    assert has_code(coded.notes, "attacks.coded_by_noise")
    released = [masked(mw.Chain([noise, mw.Coding(("A",), top=70)]), table, seed) for seed in range(20)]
    assert len({int((one.release.table.status("A") == 2).sum()) for one in released}) > 1


def test_a_code_without_noise_hides_the_values_beyond_it():
    table = table_of(Column("A", "continuous", KEY), A=[1.0, 2.0, 70.0, 80.0])
    assert floor_of(mw.Coding(("A",), top=50), table).table["claimed"].to_pylist() == [
        True,
        True,
        False,
        False,
    ]
    assert floor_of(mw.Grouping(("A",), breaks=(1.5, 50)), table).claims == 2


def test_groups_between_which_no_change_leads_are_known():
    table = table_of(Column("A", "category", categories=("a", "b", "c", "d")), A=list("abccd"))
    matrix = ((0.5, 0.5, 0, 0), (0.5, 0.5, 0, 0), (0, 0, 0.5, 0.5), (0, 0, 0, 1.0))
    assert floor_of(mw.Pram(("A",), matrix=matrix), table).table["class"].to_pylist() == [
        *["pair"] * 2,
        *["3 to 5 alike"] * 3,
    ]


def test_numbers_compare_as_they_leave_on_their_unit():
    """A leaves rounded to tens: two of the three are the same there. A weight is never rounded."""
    columns = Column("A", "continuous", unit=10), Column("W", "continuous", frozenset({"weight"}), unit=10)
    table = table_of(
        *columns, Column("X", "continuous", KEY), A=[1.0, 2.0, 14.0], W=[5.0] * 3, X=[1.0, 2.0, 3.0]
    )
    expected = ["pair", "pair", "unique"]
    assert mw.attack(mw.Fingerprint(), table).table["class"].to_pylist() == expected
    noise = mw.IndependentNoise(("X",), variance=1.0)
    assert floor_of(noise, table).table["class"].to_pylist() == expected
    assert mw.attack(mw.Fingerprint(), masked(noise, table)).table["class"].to_pylist() == expected
    weighted = table.with_columns({"W": (columns[1], np.array([1.0, 2.0, 2.0]), table.status("W"))})
    assert (
        floor_of(noise, weighted).claims == mw.attack(mw.Fingerprint(), masked(noise, weighted)).claims == 3
    )


def test_whole_numbers_of_any_length_are_told_apart():
    large = 2**60
    table = table_of(Column("A", "integer"), A=[large, large + 1, large + 1])
    assert mw.attack(mw.Fingerprint(), table).claims == 1


def test_ids_groups_and_dropped_columns_are_no_fingerprint(people):
    floor = mw.attack(mw.Fingerprint(), people).floor
    assert not {"ID", "HH", "SECRET"} & {*floor.values, *floor.patterns}
    assert "WEIGHT" in floor.values
    lone = replace(people, closed={**people.closed, "HH": (np.arange(len(people)) == 3).astype(np.uint8)})
    assert "HH" in mw.attack(mw.Fingerprint(), lone).floor.patterns
    notes = mw.attack(mw.Fingerprint(), people).notes
    assert Note("attacks.shared_groups", {"columns": ("HH",)}) in notes


def test_every_other_kind_of_number_key_is_taken_as_masked_on_a_table(people):
    risk = mw.attack(mw.Fingerprint(), people)
    assert risk.floor.patterns == AMOUNTS
    assert Note("attacks.masked_as_planned", {"columns": ("INCOME", "TAX", "AGE")}) in risk.notes
    assert mw.attack(mw.Fingerprint(masked=()), people).floor.patterns == ()


# Samples, swaps, files from elsewhere.


def test_who_is_alone_in_a_sample_is_found_by_who_knows_that_he_is_in_it(people):
    """Half of the records leave, and with them fewer who are alike."""
    mask, columns = mw.Chain([NOISE, mw.Subsample(0.5)]), (*VALUES, *AMOUNTS)
    expected, rates = floor_of(mask, people, columns=columns), []
    for seed in range(25):
        sampled = masked(mask, people, seed)
        risk = mw.attack(mw.Fingerprint(columns=columns), sampled)
        unique = alone(cells(people.take(np.sort(sampled.order)), VALUES, AMOUNTS))
        assert risk.correct == risk.claims == len(unique) == risk.floor.unique
        assert risk.targets == len(sampled.order)
        rates.append((risk.rate, risk.baseline))
    errors = np.std(rates, axis=0, ddof=1) / np.sqrt(len(rates))
    assert np.all(np.abs(np.mean(rates, axis=0) - (expected.rate, expected.baseline)) <= 4 * errors)
    assert expected.rate > floor_of(NOISE, people, columns=columns).rate


def test_a_subsample_protects_as_many_as_it_leaves_out(people):
    """Whoever is alone in the truth is found where he leaves, nobody else is by who does not know that he left."""
    mask, columns = mw.Chain([NOISE, mw.Subsample(0.5)]), (*VALUES, *AMOUNTS)
    unaware = mw.Fingerprint(columns=columns, response_knowledge=False)
    expected = floor_of(mask, people, unaware, columns=columns)
    rates = []
    for seed in range(25):
        sampled = masked(mask, people, seed)
        risk = mw.attack(unaware, sampled)
        unique = alone(cells(people, VALUES, AMOUNTS))
        assert risk.correct == risk.claims == len(unique & set(sampled.order.tolist())) == risk.floor.unique
        rates.append(risk.rate)
    assert abs(np.mean(rates) - expected.rate) <= 4 * np.std(rates, ddof=1) / np.sqrt(len(rates))
    assert expected.rate == pytest.approx(0.5 * floor_of(NOISE, people, columns=columns).rate)


def test_a_few_targets_may_be_alone_in_a_sample_by_chance():
    """Of the three of a group a single target is found where it leaves and both others stay."""
    group, noisy = np.repeat(np.arange(12), 3), np.random.default_rng(2).standard_normal(36)
    table = table_of(Column("G", "integer"), Column("X", "continuous", KEY), G=group, X=noisy)
    mask = mw.Chain([mw.IndependentNoise(("X",), variance=1.0), mw.Subsample(0.3)])
    plan = mw.Fingerprint(targets=mw.attacks.Quantiles((0.5,), of="X"), response_knowledge=False)
    expected = floor_of(mask, table, plan).rate
    assert expected == pytest.approx(0.3 * 0.7**2)
    assert floor_of(mask, table, replace(plan, response_knowledge=True)).rate == pytest.approx(0.7**2)
    found = [mw.attack(plan, masked(mask, table, seed)).rate for seed in range(120)]
    assert abs(np.mean(found) - expected) <= 4 * np.sqrt(expected * (1 - expected) / len(found))


@pytest.mark.parametrize("is_known", [True, False])
def test_every_figure_of_a_sampled_floor_is_of_those_who_are_expected_in_it(people, is_known):
    """Unique, targets, what each remedy leaves: by counting the records of each combination of values."""
    share, columns = 0.2, VALUES
    plan = mw.Fingerprint(columns=columns, response_knowledge=is_known)
    risk = floor_of(mw.Chain([NOISE, mw.Subsample(share)]), people, plan, columns=columns)
    found = risk.floor

    def expected(names, patterns=()):
        counts = np.asarray(list(Counter(cells(people, names, patterns)).values()), float)
        return share * float(((counts if is_known else counts == 1) * (1 - share) ** (counts - 1)).sum())

    whom = share * len(people) if is_known else len(people)
    assert found.targets == pytest.approx(whom)
    assert risk.targets == round(whom)
    assert found.unique == pytest.approx(expected(columns))
    assert risk.rate == found.rate == pytest.approx(expected(columns) / whom)
    for one in found.without.to_pylist():
        shown = (one["column"],) if one["part"] == HIDDEN else ()
        others = [name for name in columns if name != one["column"]]
        assert one["remaining"] == pytest.approx(expected(others, shown))
    left = list(columns)
    for one in found.steps.to_pylist():
        left.remove(one["column"])
        assert one["remaining"] == pytest.approx(expected(left))
    assert "as expected where 0.2 are released" in repr(found)


def test_exchanged_columns_count_and_the_marks_say_who_is_safe(people, masking):
    columns = (*VALUES, *AMOUNTS)
    swapped = mw.swap(
        masking, mw.Linkage(fields=AMOUNTS, match_blocks=("REGION",)), mw.tolerances.SwapShare(0.5)
    )
    assert 0 < swapped.card.swapped.share < 1
    before = mw.attack(mw.Fingerprint(columns=columns), masking)
    after = mw.attack(mw.Fingerprint(columns=columns), swapped)
    assert 0 < after.correct < before.correct
    assert after.correct < after.claims
    assert has_code(after.notes, "attacks.relies_on_exchanged")
    strict = mw.attack(mw.Fingerprint(columns=columns, swapped=False), swapped)
    assert strict.correct == strict.claims == len(alone(cells(people, VALUES, ())))
    assert not set(strict.floor.patterns)


def test_fingerprints_can_be_swapped_away(masking):
    plan = mw.Fingerprint(columns=(*VALUES, *AMOUNTS), match_blocks=("REGION",))
    before = mw.attack(plan, masking)
    assert before.fields == ("SEX", "EDU", *AMOUNTS)
    after = mw.attack(plan, mw.swap(masking, plan, mw.tolerances.SwapShare(0.5)))
    assert after.his_record.expected_correct <= before.expected_correct / 2
    assert after.expected_correct == after.his_values.expected_correct == before.expected_correct


def test_partners_have_another_fingerprint_the_likest_first(people, masking):
    plan = mw.Fingerprint(columns=(*VALUES, *AMOUNTS))
    _, guess, _, _ = attack_by(plan, masking)
    near, far = (cells(table, VALUES, AMOUNTS) for table in (people, masking.release.table))
    for known in (0, 11, 100):
        partners = guess.partners(known)
        assert set(partners) == {
            i for i, row in enumerate(far) if row[0] == near[known][0] and row != near[known]
        }
        shared = [sum(a == b for a, b in zip(far[i], near[known], strict=True)) for i in partners]
        assert shared == sorted(shared, reverse=True)


def from_elsewhere(truth, released, order, card=None):
    links = pa.table({"truth_id": truth.ids.take(pa.array(order)), "released_id": released.ids})
    return Masking.from_files(truth, released, links, card=card)


def foreign(people, **changes):
    """A file masked elsewhere: other ids, another order, some columns changed."""
    order = np.random.default_rng(4).permutation(len(people))
    table = people.take(order)
    data = table.data.set_column(0, "ID", pa.array([f"z{i}" for i in range(len(order))]))
    for name, values in changes.items():
        data = data.set_column(data.schema.get_field_index(name), name, values(table.array(name)))
    return from_elsewhere(people, replace(table, data=data), order)


def test_without_a_card_the_steward_tells_what_the_links_show(people):
    rng = np.random.default_rng(1)
    shuffled = foreign(people, WEIGHT=lambda array: array.take(pa.array(rng.permutation(len(array)))))
    plan = mw.Fingerprint().told(shuffled)
    assert plan.masked == ("WEIGHT",)
    risk = mw.attack(plan, shuffled)
    assert "WEIGHT" not in risk.floor.values
    assert risk.correct == risk.claims > 0
    assert plan.told(shuffled) == plan
    assert Note("attacks.masked_without_card", {"columns": ("WEIGHT",)}) in risk.notes
    named = mw.attack(mw.Fingerprint(masked="WEIGHT"), shuffled)
    assert named.claims == risk.claims
    with pytest.raises(BadPlan, match=r"no card.*masked="):
        mw.Fingerprint().guess(IntruderKnowledge(people, people), shuffled.release, None)


def test_a_pattern_that_was_changed_elsewhere_does_not_count(people):
    filled = foreign(people, TAX=lambda array: array.fill_null(1.0))
    filled = from_elsewhere(people, replace(filled.release.table, closed={}), filled.order)
    plan = mw.Fingerprint().told(filled)
    assert not {"TAX", "INCOME", "AGE", "EDU"} & set(plan.columns)
    assert plan.masked == ()


def test_a_masking_with_a_card_needs_no_telling(masking):
    assert mw.Fingerprint().told(masking) == mw.Fingerprint()


def test_a_file_of_the_intruders_own(people, masking):
    """He lacks columns, writes codes otherwise, and holds somebody who was never in the file."""
    held = people.take(np.arange(30)).select(["ID", "REGION", "SEX", "EDU", "AGE"])
    risk = mw.attack(mw.Fingerprint(), masking, targets=held)
    assert set(risk.floor.values) | set(risk.floor.patterns) <= {"REGION", "SEX", "EDU", "AGE"}
    near, far = (cells(t, ("REGION", "SEX", "EDU"), ("AGE",)) for t in (held, masking.release.table))
    inside, outside = Counter(near), Counter(far)
    assert risk.claims == sum(inside[row] == outside[row] == 1 for row in near) == risk.correct
    other = held.schema.changed({"AGE": replace(held.schema["AGE"], missing=(-8, -9))})
    swapped_codes = {"AGE": np.array([0, 1, 2, 3, 5, 4], np.uint8)[held.status("AGE")]}
    again = replace(held, schema=other, closed={**held.closed, **swapped_codes})
    assert mw.attack(mw.Fingerprint(), masking, targets=again).table["ties"] == risk.table["ties"]
    assert (held.status("AGE") > 3).any()


def test_targets_in_small_blocks_are_alone_among_all(make_people):
    people = make_people(400)
    plan = mw.Fingerprint(
        masked=AMOUNTS, columns=(*VALUES, *AMOUNTS), largest_target_block=60, target_blocks=("EDU", "SEX")
    )
    risk = mw.attack(plan, people)
    blocks = list(zip(*(people.written(name).to_pylist() for name in ("EDU", "SEX")), strict=True))
    small = {i for i, block in enumerate(blocks) if blocks.count(block) <= 60}
    assert 0 < risk.targets == len(small) < 400
    assert risk.claims == len(small & alone(cells(people, VALUES, AMOUNTS)))
    whole = floor_of(NOISE, people, replace(plan, columns=None, masked=None), columns=plan.columns)
    assert (whole.claims, whole.targets) == (risk.claims, risk.targets)


def test_the_floor_of_a_sample_of_targets_is_that_of_all(people):
    plan = mw.NearestRecord(targets=mw.attacks.Sample(20))
    assert floor_of(NOISE, people, plan).targets == len(people)


# Extremes and refusals.


def test_one_record_is_alone_whatever_is_hidden():
    table = table_of(Column("A", "continuous", KEY), A=[1.0])
    risk = mw.attack(mw.Fingerprint(), table)
    assert (risk.rate, risk.floor.unique) == (1.0, 1)
    assert "nothing removes them" in repr(risk)


def test_where_everything_is_masked_nobody_is_alone(people):
    hidden = table_of(Column("A", "continuous", KEY), A=[1.0, 2.0, 3.0])
    risk = mw.attack(mw.Fingerprint(), hidden)
    assert (risk.rate, risk.class_of("3 to 5 alike").links) == (0.0, 3)
    assert "nothing that leaves tells records apart" in repr(risk)
    assert len(risk.floor.steps) == len(risk.floor.without) == len(risk.floor.blocks) == 0


@pytest.mark.parametrize(("values", "rate"), [([7.0] * 9, 0.0), (list(range(9)), 1.0)])
def test_all_duplicates_and_all_unique(values, rate):
    table = table_of(Column("A", "continuous"), Column("B", "continuous"), A=values, B=values)
    risk = mw.attack(mw.Fingerprint(), table)
    assert risk.rate == rate
    assert risk.floor.steps["remaining"].to_pylist() == ([9, 0] if rate else [])


def test_a_table_of_ids_has_no_fingerprint():
    table = Table.from_frame(pa.table({"ID": ["a", "b"]}), Schema((Column("ID", "text", ID),)))
    with pytest.raises(BadInput, match="share no column"):
        mw.attack(mw.Fingerprint(), table)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"columns": ()}, "at least one column"),
        ({"columns": ("A", "A")}, "named twice"),
        ({"columns": 3}, "names of columns"),
        ({"masked": [3]}, "names of columns"),
        ({"swapped": "no"}, "true or false"),
        ({"direction": "up"}, "direction"),
        ({"targets": 5}, "Sample or Quantiles"),
    ],
)
def test_options_that_make_no_sense(options, text):
    with pytest.raises(BadPlan, match=text):
        mw.Fingerprint(**options)


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"columns": "REGOIN"}, BadInput, "did you mean 'REGION'"),
        ({"columns": "ID"}, BadPlan, "made anew"),
        ({"masked": "TAX"}, BadPlan, "card says what is masked"),
        ({"match_blocks": "INCOME"}, BadPlan, "leave unmasked"),
        ({"match_blocks": "REGION", "columns": "SEX"}, BadPlan, "leave unmasked"),
        ({"largest_target_block": 1}, BadPlan, "nobody is a target"),
    ],
)
def test_plans_that_do_not_fit_the_release(options, error, text, masking):
    with pytest.raises(error, match=text):
        mw.attack(mw.Fingerprint(**options), masking)


def test_a_column_to_be_masked_must_be_there(people):
    with pytest.raises(BadPlan, match="did you mean 'INCOME'"):
        mw.attack(mw.Fingerprint(masked="INCOM"), people)
    with pytest.raises(BadPlan, match="needs a Masking"):
        mw.attack(mw.NearestRecord(), people)


def test_figures_and_words_hold_no_value_of_a_record(people, masking):
    sentinel = table_of(
        Column("B", "text", BLOCK), Column("C", "text"), B=["sentinel0", "sentinel1"], C=["sentinel2"] * 2
    )
    risk = mw.attack(mw.Fingerprint(), sentinel)
    assert risk.floor.blocks["B"].to_pylist() == ["sentinel0", "sentinel1"]
    assert "sentinel" not in f"{risk!r} {risk.to_dict()} {risk.floor!r}"
    assert "leave out B: 0 of 2 remain" in repr(risk)


def test_the_built_in_survey_and_the_mask_of_the_demo():
    """What the demo's noise cannot protect, counted by hand: blocks and what is missing or coded in the amounts."""
    intruder = mw.Linkage(largest_target_block=7, match_blocks=("BEDROOMS", "BATHS", "YR_BLT"))
    survey = mw.datasets.housing(4_000)
    blocks, amounts = survey.schema.with_role("block"), survey.schema.with_role("key")
    mask = mw.CorrelatedNoise(amounts, r0=0.995)
    everybody, targets = floor_of(mask, survey), floor_of(mask, survey, intruder)
    unique = alone(cells(survey, blocks, amounts))
    assert everybody.correct == len(unique)
    small = set(intruder.target_records(survey).tolist())
    assert (targets.targets, targets.correct) == (len(small), len(small & unique))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        heavy = mw.apply(mw.CorrelatedNoise(amounts, r0=0.01), survey, seed=1)
    assert mw.attack(mw.Fingerprint(), heavy).correct == len(unique)
