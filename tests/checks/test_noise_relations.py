"""What the relations between columns give away: identities, clear columns, best estimates, columns said twice."""

from __future__ import annotations

import hashlib
import random
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.checks import shuffles
from maskwell.checks.findings import FAIL, NOT_CHECKED, PASS, WARN
from maskwell.masking import apply
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .noise_plants import AMOUNTS, finding, noise, released, true_file, with_noise


def _numbers(columns, categories=()):
    schema = [Column(name, "integer", frozenset({"key"})) for name in columns if name not in categories]
    schema += [Column(name, "category", categories=tuple(sorted(set(columns[name])))) for name in categories]
    data = {column.name: np.asarray(columns[column.name]) for column in schema}
    return Table.from_frame(pa.table(data), Schema(tuple(schema)))


def _parts(count, n=2000):
    rng = np.random.default_rng([count, 5])
    parts = {f"part {k}": rng.integers(0, 10_000, n) for k in range(count)}
    return _numbers({"total": sum(parts.values()), **parts})


@pytest.mark.parametrize("count", [2, 4, 8])
def test_a_total_noised_beside_its_parts_loses_half_of_its_noise(count):
    truth = _parts(count)
    e = noise(len(truth), count + 1)
    sds = [1_000 * count**0.5, *[1_000.0] * count]  # in proportion to the sds of the data
    values = {
        name: np.rint(truth.floats(name) + sd * e[:, j])
        for j, (name, sd) in enumerate(zip(truth.names, sds, strict=True))
    }
    one = finding(released(truth, values), "identities")
    assert (one.verdict, one.where) == (FAIL, "total")
    assert one.figure == pytest.approx(0.5, abs=0.05)  # k / (k + k)
    assert one.figures["part 0"] == pytest.approx(1 - 1 / (2 * count), abs=0.05)


def test_a_total_in_clear_takes_noise_away_and_one_computed_anew_does_not():
    truth = _parts(2)
    e = 1_000 * noise(len(truth), 2)
    values = {f"part {k}": np.rint(truth.floats(f"part {k}") + e[:, k]) for k in range(2)}
    clear = finding(released(truth, values), "identities")
    assert clear.figure == pytest.approx(0.5, abs=0.05)
    parts = ("part 0", "part 1")
    again = mw.Chain(
        [mw.IndependentNoise(parts, variance_ratio=0.2), mw.Recompute("total", dict.fromkeys(parts, 1))]
    )
    one = finding(apply(again, truth, seed=1), "identities")
    assert (one.verdict, one.figure) == (PASS, pytest.approx(1.0))


def _with_each(truth, ratio=0.5):
    """Noise of its own for every number."""
    e = noise(len(truth), len(truth.names))
    return {
        name: np.rint(truth.floats(name) + ratio * truth.floats(name).std() * e[:, j])
        for j, name in enumerate(truth.names)
    }


@pytest.mark.parametrize(("wrong", "verdict"), [(0.03, FAIL), (0.08, FAIL), (0.5, PASS)])
def test_a_total_that_a_few_records_break_takes_noise_away(wrong, verdict):
    truth = _parts(3)
    rng = np.random.default_rng(17)
    total = truth.floats("total") + np.where(
        rng.random(len(truth)) < wrong, rng.integers(50, 9_000, len(truth)), 0
    )
    columns = {name: truth.floats(name).astype(int) for name in truth.names} | {"total": total.astype(int)}
    one = finding(released(_numbers(columns), _with_each(_numbers(columns))), "identities")
    assert one.verdict == verdict
    if verdict == FAIL:
        assert one.figures["total"] == pytest.approx(0.5, abs=0.06)
        assert f"in {1 - wrong:.0%}"[:5] in one.said
        assert "of the records" in one.said


def test_a_rounded_mean_takes_noise_away():
    rng = np.random.default_rng(19)
    first, second, third = rng.integers(0, 10_000, (3, 2_000))
    mean = np.rint((first + second) / 2).astype(int)
    truth = _numbers({"first": first, "second": second, "third": third, "mean": mean})
    one = finding(released(truth, _with_each(truth)), "identities")
    assert (one.verdict, one.where) == (FAIL, "mean")
    assert "third" not in one.figures
    assert "mean = 0.5 x first + 0.5 x second" in one.said or "2 x mean" in one.said
    assert "up to rounding" in one.said


def test_units_may_differ():
    """A sum of amounts in cents, written in whole units."""
    rng = np.random.default_rng(29)
    first, second = np.round(rng.random((2, 2_000)) * 900, 2)
    values = {"first": first, "second": second, "sum": np.rint(first + second)}
    units = {"first": 0.01, "second": 0.01, "sum": 1}
    columns = tuple(Column(name, "continuous", frozenset({"key"}), unit=unit) for name, unit in units.items())
    truth = Table.from_frame(pa.table(values), Schema(columns))
    one = finding(released(truth, _with_each(truth)), "identities")
    assert one.verdict == FAIL
    assert "sum = first + second (in 100.0% of the records up to rounding)" in one.said


def test_small_counts_and_many_zeros_are_no_identities():
    rng = np.random.default_rng(23)
    n = 2_000
    counts = {f"count {k}": rng.integers(0, 4, n) for k in range(3)}
    rare = {f"rare {k}": np.where(rng.random(n) < 0.04, rng.integers(100, 9_999, n), 0) for k in range(3)}
    usual = {
        f"usual {k}": np.where(rng.random(n) < 0.04, rng.integers(100, 9_999, n), 500 * (k + 1))
        for k in range(2)
    }
    truth = _numbers({**counts, **rare, **usual})
    assert finding(released(truth, _with_each(truth)), "identities").figure == 1.0


def test_a_file_without_identities_passes():
    truth = true_file()
    assert finding(released(truth, with_noise(truth)), "identities").figure == 1.0


def test_a_tax_left_in_clear_gives_income_away():
    truth = true_file()
    tax = np.rint(0.3 * truth.floats("income") + 200 * noise(len(truth), 1, 4)[:, 0])
    table = _numbers({"income": truth.floats("income").astype(int), "tax": tax.astype(int)})
    values = {"income": np.rint(table.floats("income") + 6_000 * noise(len(table), 1)[:, 0])}
    one = finding(released(table, values), "predictable from unmasked")
    assert (one.verdict, one.where) == (FAIL, "income")
    assert one.figure > 0.99
    half = _numbers(
        {
            "income": truth.floats("income").astype(int),
            "tax": np.rint(tax + 2_000 * noise(len(tax), 1, 6)[:, 0]).astype(int),
        }
    )
    assert finding(released(half, values), "predictable from unmasked").verdict == WARN


def test_bent_and_categorical_predictors_count():
    truth = true_file()
    x = truth.floats("income")
    squared = np.rint((np.abs(x - 50_000) ** 0.5) * np.sign(x - 50_000))
    classes = np.array([f"{int(value // 4_000):03d}" for value in x])
    for columns, categories in (({"root": squared.astype(int)}, ()), ({"class": classes}, ("class",))):
        table = _numbers({"income": x.astype(int), **columns}, categories)
        values = {"income": np.rint(x + 6_000 * noise(len(x), 1)[:, 0])}
        assert finding(released(table, values), "predictable from unmasked").verdict == FAIL


def test_many_categories_do_not_explain_by_being_many():
    rng = np.random.default_rng(4)
    columns = {f"c{k}": rng.choice([f"{i:02d}" for i in range(40)], 500) for k in range(4)}
    table = _numbers({"pay": rng.integers(0, 9_999, 500), **columns}, tuple(columns))
    values = {"pay": np.rint(table.floats("pay") + 3_000 * noise(500, 1)[:, 0])}
    one = finding(released(table, values), "predictable from unmasked")
    assert one.verdict == PASS
    assert one.figure < 0.1


def _paid(n=6_000, third=False):
    """Pay by a table of occupation and grade (and shift) that no sum of two effects gives."""
    rng = np.random.default_rng(31)
    codes = {
        "occupation": rng.integers(0, 10, n),
        "grade": rng.integers(0, 6, n),
        "sex": rng.integers(0, 2, n),
    }
    table = rng.integers(20_000, 90_000, (10, 6, 2))
    pay = table[codes["occupation"], codes["grade"], codes["sex"] if third else 0] + rng.integers(
        -500, 501, n
    )
    labels = {name: np.array([f"{name} {code}" for code in values]) for name, values in codes.items()}
    return _numbers({"pay": pay, **labels}, tuple(labels))


@pytest.mark.parametrize("third", [False, True])
def test_the_cells_of_several_categories_predict_what_each_alone_does_not(third):
    truth = _paid(third=third)
    values = {"pay": np.rint(truth.floats("pay") + 20_000 * noise(len(truth), 1)[:, 0])}
    one = finding(released(truth, values), "predictable from unmasked")
    assert (one.verdict, one.where) == (FAIL, "pay")
    assert one.figure > 0.99
    assert "occupation x grade" in one.said


def test_a_cell_for_nearly_every_record_explains_nothing():
    rng = np.random.default_rng(6)
    columns = {f"c{k}": rng.choice([f"{i:02d}" for i in range(25)], 600) for k in range(5)}
    table = _numbers({"pay": rng.integers(0, 9_999, 600), **columns}, tuple(columns))
    values = {"pay": np.rint(table.floats("pay") + 3_000 * noise(600, 1)[:, 0])}
    assert finding(released(table, values), "predictable from unmasked").figure < 0.05


def _correlated(width, correlation, n=4000):
    rng = np.random.default_rng([width, 9])
    shared = np.sqrt(correlation) * rng.standard_normal((n, 1))
    x = shared + np.sqrt(1 - correlation) * rng.standard_normal((n, width))
    return _numbers({f"x{j}": np.rint(10_000 * x[:, j]).astype(int) for j in range(width)})


def test_independent_noise_on_correlated_columns_is_filtered_as_the_formula_says():
    width, correlation, ratio = 12, 0.8, 0.1
    truth = _correlated(width, correlation)
    e = noise(len(truth), width)
    sd = 10_000 * ratio**0.5
    values = {name: np.rint(truth.floats(name) + sd * e[:, j]) for j, name in enumerate(truth.names)}
    one = finding(released(truth, values), "best estimate")
    s = np.full((width, width), correlation) + (1 - correlation) * np.eye(width)
    error = s - s @ np.linalg.solve(s + ratio * np.eye(width), s)
    assert one.figures["x0"] == pytest.approx(np.sqrt(error[0, 0]), rel=0.05)
    largest = 1 + (width - 1) * correlation
    assert one.figures["best direction"] == pytest.approx(np.sqrt(ratio / (ratio + largest)), rel=0.07)
    assert one.verdict == FAIL


def test_correlated_noise_leaves_the_same_in_every_direction():
    masking = apply(
        mw.CorrelatedNoise(tuple(_correlated(6, 0.8).names), sd_ratio=0.5), _correlated(6, 0.8), seed=1
    )
    one = finding(masking, "best estimate")
    assert one.verdict == PASS
    assert one.figure == pytest.approx(0.2**0.5, rel=0.07)


def test_a_direction_without_noise_fails():
    truth = _correlated(3, 0.2)
    e = 5_000 * noise(len(truth), 3)
    e[:, 2] = -e[:, 0] - e[:, 1]  # sums of the three are exact
    values = {name: np.rint(truth.floats(name) + e[:, j]) for j, name in enumerate(truth.names)}
    one = finding(released(truth, values), "best estimate")
    assert one.verdict == FAIL
    assert one.figures["x0"] > 0.3


def _twice(n=2000, apart=20.0):
    rng = np.random.default_rng(12)
    x = 10_000 * rng.standard_normal(n)
    return _numbers(
        {"pay": np.rint(x).astype(int), "wage": np.rint(x + apart * rng.standard_normal(n)).astype(int)}
    )


@pytest.mark.parametrize(("apart", "verdict"), [(20.0, FAIL), (1_000.0, WARN), (5_000.0, PASS)])
def test_one_quantity_in_two_columns_is_seen(apart, verdict):
    truth = _twice(apart=apart)
    e = 4_000 * noise(len(truth), 2)
    values = {name: np.rint(truth.floats(name) + e[:, j]) for j, name in enumerate(truth.names)}
    assert finding(released(truth, values), "near-duplicate columns").verdict == verdict


def test_one_noise_for_both_columns_is_no_leak():
    truth = _twice()
    e = 4_000 * noise(len(truth), 1)[:, 0]
    values = {name: np.rint(truth.floats(name) + e) for name in truth.names}
    assert finding(released(truth, values), "near-duplicate columns").verdict == PASS


ORDERS = {
    "numpy's default_rng, permutation from the seed 42": lambda n: np.random.default_rng(42).permutation(n),
    "numpy's RandomState or pandas' sample from the seed 7": lambda n: np.argsort(
        np.random.RandomState(7).permutation(n)
    ),
    "Python's random.shuffle from the seed 2024": lambda n: random.Random(2024).sample(range(n), n),
    "every 307th record of the original": lambda n: np.arange(n) * 307 % n,
}


@pytest.mark.parametrize("how", ORDERS)
def test_an_order_by_a_common_seed_is_seen(how):
    truth = true_file(1_000)
    one = finding(
        released(truth, with_noise(truth), np.asarray(ORDERS[how](1_000))), "order against the original"
    )
    assert one.verdict == FAIL
    assert how in one.said


def test_first_places_of_a_shuffle_are_those_of_the_programs():
    """R's own: set.seed(123); sample(10) is 3 10 2 8 6 9 1 7 5 4, and 42 gives 1 5 10 8 2 4 6 9 7 3."""
    for seed, own in ((123, (3, 10, 2, 8, 6, 9, 1, 7, 5, 4)), (42, (1, 5, 10, 8, 2, 4, 6, 9, 7, 3))):
        draw = shuffles.SHUFFLES["R's sample"]
        assert tuple(shuffles.whole_order(draw, seed, 10)[::-1] + 1) == own
    seeds = np.array([0, 42, 20260101, 2**32 - 1])
    for count, (how, draw) in product((20, 257, 3_001, 70_000), shuffles.SHUFFLES.items()):
        last = shuffles.last_places(draw(seeds, count), count)
        for seed, some in zip(seeds.tolist(), last, strict=True):
            order = shuffles.whole_order(draw, seed, count)
            assert (order[::-1][: shuffles.LAST] == some).all(), (how, count, seed)


def test_orders_that_no_common_seed_gives_pass():
    rng = np.random.default_rng([11, 2**50])
    assert shuffles.seeded_order(rng.permutation(2_000_000)) is None
    for count in (20, 25, 60, 300):
        assert shuffles.seeded_order(rng.permutation(count)) is None


def test_a_file_sorted_by_a_hash_of_its_ids_is_seen():
    """The order of the digests of ids, and that of the ids read backwards."""
    ids = [str(90_001 + 17 * i) for i in range(600)]
    columns = Column("rec", "text", frozenset({"id"})), Column("x", "continuous", frozenset({"key"}), unit=1)
    values = np.random.default_rng(3).normal(0, 100, 600).round()
    truth = Table.from_frame(pa.table({"rec": ids, "x": values}), Schema(columns))
    keys = [hashlib.sha256(one.encode()).hexdigest() for one in ids], [one[::-1] for one in ids]
    for key, how in zip(keys, ("a sort by sha256 of the id", "a sort by the id read backwards"), strict=True):
        order = np.argsort(np.array(key))
        fresh = [f"n{i}" for i in range(600)]
        data = pa.table({"rec": fresh, "x": (values + noise(600, 1)[:, 0] * 100).round()[order]})
        links = pa.table({"truth_id": [ids[i] for i in order], "released_id": fresh})
        masking = mw.Masking.from_files(truth, Table.from_frame(data, Schema(columns)), links)
        one = finding(masking, "order against the original")
        assert one.verdict == FAIL
        assert how in one.said


def test_noises_that_go_together_nearly_as_the_columns_do_leave_nothing_to_average():
    """A correlation of 0.9 leaves 97.5% of the noise in the mean; at 0.5, 87% are left, and that is said."""
    truth = _twice()
    for shared, verdict in ((0.9, PASS), (0.5, FAIL)):
        e = noise(len(truth), 3)
        e = 4_000 * (np.sqrt(shared) * e[:, [2]] + np.sqrt(1 - shared) * e[:, :2])
        values = {name: np.rint(truth.floats(name) + e[:, j]) for j, name in enumerate(truth.names)}
        one = finding(released(truth, values), "near-duplicate columns")
        assert one.verdict == verdict
    assert "both together leave 87% of the noise" in one.said


def test_of_two_noises_on_one_quantity_the_smaller_counts():
    """Noises that go together entirely, one of them half as large: the difference tells what the noise was."""
    truth = _twice()
    e = 4_000 * noise(len(truth), 1)[:, 0]
    values = {"pay": np.rint(truth.floats("pay") + e), "wage": np.rint(truth.floats("wage") + e / 2)}
    assert finding(released(truth, values), "near-duplicate columns").verdict == FAIL


def test_what_cannot_be_checked_says_so():
    truth = true_file()
    values = {"income": with_noise(truth)["income"]}
    assert finding(released(truth, values), "near-duplicate columns").verdict == NOT_CHECKED
    few = true_file(12)
    for check in ("affine noise", "order against the original", "best estimate", "predictable from unmasked"):
        one = finding(released(few, with_noise(few)), check)
        assert one.verdict == NOT_CHECKED
        assert one.said
    assert set(AMOUNTS) <= set(few.names)


def test_ids_that_are_whole_numbers_are_no_amounts():
    """An id leaves as a new one: neither audit nor fingerprint takes it for a number."""
    x = np.random.default_rng(3).normal(0, 10, 100).round()
    data = pa.table({"rec": np.arange(100) + 5, "x": x})
    schema = Schema(
        (Column("rec", "integer", frozenset({"id"})), Column("x", "continuous", frozenset({"key"}), unit=1))
    )
    masking = mw.apply(mw.IndependentNoise("x", variance_ratio=0.5), Table.from_frame(data, schema), seed=1)
    assert mw.attack(mw.Fingerprint(), masking).rate == 0
    assert "rec" not in {one.column for one in mw.audit(masking).failures}
