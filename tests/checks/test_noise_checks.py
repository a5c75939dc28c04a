"""Every leak of the noise, planted in an otherwise clean release, is found; clean releases of three kinds pass."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.checks.findings import FAIL, NOT_CHECKED, PASS, WARN
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .noise_plants import AMOUNTS, finding, found, noise, released, true_file, with_noise

HOUSING = ("INCOME", "HOME_VAL", "MORTGAGE", "MAINTAIN", "TAXES")
SLOW = ("predictable noise",)

pytestmark = pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")

CLEAN = {
    "correlated": mw.CorrelatedNoise(HOUSING, sd_ratio=0.5),
    "mixture and categories": mw.Chain(
        [
            mw.MixtureNoise(HOUSING, variance_ratio=0.4, within_variance_ratio=0.2),
            mw.Pram(("BATHS",), stay=0.8),
        ]
    ),
    "on the log scale": mw.IndependentNoise(HOUSING, variance_ratio=0.3, transform="log", shift=100.0),
}


@pytest.mark.parametrize("kind", CLEAN)
def test_clean_releases_do_not_fail(kind):
    masking = apply(CLEAN[kind], mw.datasets.housing(6000), key=Key(bytes(range(32))))
    verdicts = {name: one.verdict for name, one in found(masking).items()}
    assert verdicts.pop("earlier release") == NOT_CHECKED
    assert set(verdicts.values()) == {PASS}


def test_a_key_made_of_a_seed_warns():
    truth = true_file(300)
    one = finding(
        apply(mw.IndependentNoise(AMOUNTS, variance_ratio=0.25), truth, seed=1), "predictable noise"
    )
    assert one.verdict == WARN
    assert "not for release" in one.said


def test_a_clean_file_masked_elsewhere_does_not_fail():
    truth = true_file()
    verdicts = [one.verdict for one in found(released(truth, with_noise(truth)), without=SLOW).values()]
    assert FAIL not in verdicts
    assert verdicts.count(PASS) >= 9


def test_every_finding_says_something_and_has_a_reason():
    for one in found(released(true_file(), with_noise(true_file()))).values():
        assert one.said
        assert one.remedy
        assert one.limits.reason
        assert len(one.said) < 250


# Cells left true


def test_noise_on_outliers_alone_leaves_cells_true():
    truth = true_file()
    x, values = truth.floats("income"), with_noise(truth)
    values["income"] = np.where(x > np.quantile(x, 0.99), values["income"], x)
    one = finding(released(truth, values), "cells left true")
    assert (one.verdict, one.where) == (FAIL, "income")
    assert one.figure == pytest.approx(0.99, abs=0.01)


def test_a_few_cells_left_true_beyond_the_law_fail():
    masking = apply(mw.IndependentNoise(AMOUNTS, variance_ratio=0.25), true_file(), seed=1)
    assert finding(masking, "cells left true").figure == 0
    z, status = masking.masked.floats("wealth").copy(), masking.masked.status("wealth")
    z[:45] = masking.truth.floats("wealth")[:45]
    column = masking.masked.schema["wealth"]
    one = finding(
        replace(masking, masked=masking.masked.with_columns({"wealth": (column, z, status)})),
        "cells left true",
    )
    assert one.verdict == FAIL
    assert one.figure == pytest.approx(45 / 1500, abs=0.002)


def test_a_law_that_leaves_cells_true_is_no_leak_but_noise_for_some_values_alone_is():
    rng = np.random.default_rng(3)
    table = Table.from_frame(
        pa.table({"sex": rng.choice(["1", "2"], 800), "pay": rng.integers(0, 100, 800)}),
        Schema((Column("sex", "category", categories=("1", "2")), Column("pay", "integer"))),
    )
    half = apply(mw.CodeNoise(("sex",), variance=0.5), table, seed=1)
    one = finding(half, "cells left true")
    assert one.verdict == PASS
    assert "50" in one.said or "49" in one.said or "51" in one.said or "48" in one.said or "52" in one.said
    spread = mw.laws.Step(breaks=(90.0,), ratios=(0.0, 1.0))
    outliers = apply(mw.IndependentNoise(("pay",), variance=30.0, spread=spread), table, seed=1)
    assert finding(outliers, "cells left true").verdict == FAIL


# Values off the unit, affine noise


def test_values_off_the_unit_fail():
    truth = true_file()
    column = Column("income", "continuous", frozenset({"key"}), unit=100)
    values = {name: 100 * np.rint(z / 100) for name, z in with_noise(truth).items()}
    columns = {name: replace(column, name=name) for name in AMOUNTS}
    assert finding(released(truth, values, columns=columns), "values off the unit").verdict == PASS
    values["wealth"][7] += 0.25
    one = finding(released(truth, values, columns=columns), "values off the unit")
    assert (one.verdict, one.figure, one.where) == (FAIL, 1.0, "wealth")


def test_noise_that_leaves_all_its_digits_fails_where_the_truth_had_few():
    truth = true_file()
    columns = {"income": Column("income", "continuous", frozenset({"key"}))}
    values = {"income": truth.floats("income") + 6_000 * noise(len(truth), 1)[:, 0]}
    one = finding(released(truth, values, columns=columns), "values off the unit")
    assert (one.verdict, one.figure) == (FAIL, len(truth))


def test_noise_that_only_shifts_and_stretches_fails():
    truth = true_file()
    values = with_noise(truth) | {"income": np.rint(1.1 * truth.floats("income") + 500)}
    one = finding(released(truth, values), "affine noise")
    assert (one.verdict, one.where) == (FAIL, "income")


def test_turned_columns_fail_and_little_noise_warns():
    truth = true_file()
    x = np.column_stack([truth.floats(name) for name in AMOUNTS])
    turn = np.linalg.qr(noise(3, 3))[0]
    turned = dict(zip(AMOUNTS, np.rint(x @ turn).T, strict=True))
    assert finding(released(truth, turned), "affine noise").verdict == FAIL
    assert finding(released(truth, with_noise(truth, sd=1_200.0)), "affine noise").verdict == WARN


# Order


@pytest.mark.parametrize("order", ["as it was", "turned round", "begun elsewhere"])
def test_the_original_order_fails(order):
    truth = true_file()
    rows = np.arange(len(truth))
    orders = {"as it was": rows, "turned round": rows[::-1], "begun elsewhere": np.roll(rows, 375)}
    one = finding(released(truth, with_noise(truth), orders[order]), "order against the original")
    assert one.verdict == FAIL
    assert one.figure > 0.9


@pytest.mark.parametrize("by", ["income", "region"])
def test_a_sorted_file_fails(by):
    truth = true_file()
    order = np.lexsort((noise(len(truth), 1)[:, 0], truth.floats(by)))
    masking = released(truth, with_noise(truth), order)
    assert finding(masking, "order against the original").verdict == PASS
    one = finding(masking, "order against columns")
    assert one.verdict == FAIL
    assert by in one.where


def test_few_records_in_random_order_pass_by_their_sampling_error():
    truth = true_file(120)
    for check in ("order against the original", "order against columns"):
        orders = [np.random.default_rng([seed, 2**40]).permutation(120) for seed in range(8)]
        judged = [finding(released(truth, with_noise(truth), order), check) for order in orders]
        assert {one.verdict for one in judged} == {PASS}
        assert max(one.figure for one in judged) > 0.1  # which would fail in a large file
        assert all("chance allows" in one.said for one in judged)


# Group sums, earlier releases


def test_noise_that_sums_to_zero_in_households_fails():
    truth = true_file()
    e = 6_000 * noise(len(truth), 1)[:, 0]
    e[1::2] = -e[::2]
    values = with_noise(truth) | {"income": np.rint(truth.floats("income") + e)}
    one = finding(released(truth, values), "group sums")
    assert one.verdict == FAIL
    assert one.where.startswith("income by")
    assert one.figures["income by household"] < 0.01
    assert one.figures["wealth by household"] > 0.8


def test_sums_that_are_zero_by_chance_are_no_leak():
    """Of 240 values on whole units a sum is exactly zero now and then, and one of many lies far out."""
    truth = true_file(240)
    coarse = {
        name: (truth.schema[name], np.rint(truth.floats(name) / 4_000), truth.status(name))
        for name in AMOUNTS
    }
    truth = truth.with_columns(coarse)
    plan = mw.MixtureNoise(
        AMOUNTS, variance_ratio=0.3, within_variance_ratio=0.1, components=4, correlated=True
    )
    judged = [finding(apply(plan, truth, seed=seed), "group sums") for seed in range(60)]
    assert {one.verdict for one in judged} == {PASS}
    assert any(one.figures[f"{name} by the whole file"] == 0 for one in judged for name in AMOUNTS)


def test_uncorrected_noise_on_the_log_scale_shifts_totals():
    truth, plan = true_file(3000), {"variance": 0.25, "transform": "log"}
    kept = finding(apply(mw.IndependentNoise(("income",), **plan), truth, seed=1), "group sums")
    assert kept.verdict == PASS
    shifted = apply(mw.IndependentNoise(("income",), mean_corrected=False, **plan), truth, seed=1)
    one = finding(shifted, "group sums")
    assert one.verdict == FAIL
    assert one.figures["income by the whole file"] > 10


@pytest.mark.parametrize("sd", [2.0, 3.0, 5.0])
def test_skewed_noise_that_keeps_means_is_no_shift(sd):
    """With an sd of 3 on the log scale nearly all values fall, and the sums of any file with them, as the law says."""
    truth, plan = true_file(1500), mw.IndependentNoise(("income",), variance=sd**2, transform="log")
    clean = [apply(plan, truth, seed=seed) for seed in range(12)]
    assert {finding(one, "group sums").verdict for one in clean} == {PASS}


def test_skewed_noise_that_is_off_its_centre_or_sums_to_zero_fails():
    truth = true_file(1500)
    masking = apply(mw.IndependentNoise(("income",), variance=9.0, transform="log"), truth, seed=1)
    x, z = truth.floats("income"), masking.masked.floats("income")
    column, status = masking.masked.schema["income"], masking.masked.status("income")
    last = z.copy()
    last[1::2] = (x - z)[::2] + x[1::2]
    for values in (z * 4, last):  # the second of each household is what the first has left of the sum
        changed = masking.masked.with_columns({"income": (column, np.rint(values), status)})
        assert finding(replace(masking, masked=changed), "group sums").verdict == FAIL


def _with_ids(n: int = 1500) -> Table:
    table = true_file(n)
    data = table.data.append_column("id", pa.array([f"r{i}" for i in range(n)]))
    columns = (*table.schema.columns, Column("id", "text", frozenset({"id"})))
    return Table.from_frame(data, Schema(columns))


def _masked(table: Table, seed: int, ratio: float = 0.25, earlier: Masking | None = None) -> Masking:
    plan = mw.IndependentNoise(AMOUNTS, variance_ratio=ratio)
    return apply(plan, table, earlier=earlier) if earlier is not None else apply(plan, table, seed=seed)


def test_fresh_noise_in_a_second_release_averages_out():
    table = _with_ids()
    one = finding(_masked(table, 2), "earlier release", [_masked(table, 1)])
    assert one.verdict == FAIL
    assert one.figure == pytest.approx(2**-0.5, abs=0.03)
    three = [_masked(table, seed) for seed in (1, 2, 3)]
    assert finding(_masked(table, 4), "earlier release", three).figure == pytest.approx(0.5, abs=0.03)


def test_the_same_noise_at_two_scales_is_exact_and_nested_noise_gains_nothing():
    table = _with_ids()
    first = _masked(table, 1)
    doubled = finding(_masked(table, 1, 1.0), "earlier release", [first])
    assert doubled.verdict == FAIL
    assert doubled.figure < 0.01
    nested = finding(_masked(table, 1, 0.5, first), "earlier release", [first])
    assert nested.verdict == PASS
    assert nested.figure > 0.98


def test_a_column_once_in_clear_has_no_error_left():
    table = _with_ids()
    first = apply(mw.IndependentNoise(("income",), variance_ratio=0.25), table, seed=1)
    one = finding(_masked(table, 2), "earlier release", [first])
    assert one.verdict == FAIL
    assert one.figures["wealth"] == 0.0


def test_swapped_and_subsampled_releases_are_judged_by_their_noise():
    masking = apply(
        mw.Chain([mw.IndependentNoise(AMOUNTS, variance_ratio=0.25), mw.Subsample(0.5)]),
        true_file(3000),
        seed=1,
    )
    verdicts = {one.verdict for one in found(masking, without=SLOW).values()}
    assert verdicts <= {PASS, NOT_CHECKED}


def test_swapped_records_are_judged_by_the_noise_before_the_exchange():
    masking = apply(
        mw.IndependentNoise(AMOUNTS, variance_ratio=0.09), true_file(600), key=Key(bytes(range(32)))
    )
    swapped = mw.swap(masking, mw.NearestRecord(fields=AMOUNTS), mw.tolerances.SwapShare(0.5))
    assert swapped.swapping.swaps > 20
    for check in ("affine noise", "best estimate", "cells left true"):
        assert finding(swapped, check).figure == finding(masking, check).figure


def test_a_rank_swap_keeps_totals_by_design():
    truth = true_file()
    masking = apply(mw.RankSwap(("income",), window_ratio=0.2), truth, key=Key(bytes(range(32))))
    assert finding(masking, "group sums").verdict == NOT_CHECKED
    assert finding(masking, "cells left true").verdict == PASS


def test_noise_carried_to_a_code_does_not_shift_what_is_left():
    truth = true_file(4000)
    plan = mw.Chain(
        [mw.IndependentNoise(("income",), variance_ratio=0.5), mw.Coding(("income",), top=52_000)]
    )
    assert finding(apply(plan, truth, key=Key(bytes(range(32)))), "group sums").verdict == PASS


@pytest.mark.parametrize("count", [1, 2, 12])
def test_hardly_any_record_is_no_error(count):
    truth = true_file(count)
    assert {one.verdict for one in found(released(truth, with_noise(truth))).values()} <= {PASS, NOT_CHECKED}


def test_constant_closed_and_unmasked_columns_are_no_error():
    truth = true_file(300)
    closed = {"income": (truth.schema["income"], truth.floats("income"), np.ones(300, np.uint8))}
    constant = {"wealth": (truth.schema["wealth"], np.full(300, 5.0), np.zeros(300, np.uint8))}
    table = truth.with_columns({**closed, **constant})
    for values in (with_noise(table), {"wealth": np.full(300, 6.0)}, {}):
        checked = found(released(table, values), without=SLOW)
        assert all(one.said for one in checked.values())
        assert checked["best estimate"].verdict in (PASS, NOT_CHECKED)
