"""Values that the noise of their column spares: found by plain counting, under every law that spares some."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks import floor_of
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

ID, KEY, BLOCK = frozenset({"id"}), frozenset({"key"}), frozenset({"block"})
NAMES = tuple("ABCDEFGH")
RECORDS = 200


def table_of(values, blocks=None, **options):
    names = NAMES[: values.shape[1]]
    data = {"ID": [f"p{i}" for i in range(len(values))]} | {n: values[:, j] for j, n in enumerate(names)}
    columns = [Column("ID", "text", ID), *(Column(n, "continuous", KEY, **options) for n in names)]
    if blocks is not None:
        data["BLOCK"] = blocks
        columns.append(Column("BLOCK", "integer", BLOCK))
    return Table.from_frame(pa.table(data), Schema(tuple(columns)))


def with_zeros(seed=0):
    rng = np.random.default_rng(seed)
    values = np.exp(rng.normal(size=(RECORDS, 8))) * 100
    values[rng.random(values.shape) < 0.4] = 0.0
    return values


def masked(mask, table, seed=5):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=seed)


def found_by_hand(masking, ours, theirs):
    """How many are alone with what they show on both sides, and rightly so."""
    known, released = Counter(ours), Counter(theirs)
    return sum(
        known[row] == released[row] == 1 and ours[own] == row
        for row, own in zip(theirs, masking.order, strict=True)
    )


def zeros(values):
    return [tuple(row) for row in (values == 0).tolist()]


@pytest.mark.parametrize("shape", ["normal", "lognormal"])
@pytest.mark.parametrize("bias_sd", [1.0, 5.0])
def test_multiplicative_noise_leaves_zeros_to_be_found(shape, bias_sd):
    values = with_zeros()
    table, mask = table_of(values), mw.BiasNoise(NAMES, bias_sd=bias_sd, sd=0.0, shape=shape)
    rates = []
    for seed in range(10):
        masking = masked(mask, table, seed)
        risk = mw.attack(mw.Fingerprint(), masking)
        wanted = found_by_hand(masking, zeros(values), zeros(masking.release.table.values(NAMES)))
        assert risk.expected_correct == wanted > 0.1 * RECORDS
        assert risk.floor.spared == NAMES
        assert has_code(risk.notes, "attacks.spared_values")
        rates.append(risk.rate)
    floor = floor_of(mask, table)
    error = np.std(rates, ddof=1) * np.sqrt(1 / 10 + 1 / 5)
    assert abs(floor.rate - np.mean(rates)) <= 4 * error + 1e-12
    assert floor.floor.spared == NAMES


@pytest.mark.parametrize("shape", ["normal", "lognormal"])
def test_additive_noise_beside_the_factor_hides_zeros(shape):
    mask = mw.BiasNoise(NAMES, bias_sd=1.0, sd=20.0, shape=shape)
    assert floor_of(mask, table_of(with_zeros())).floor.spared == ()


def test_noise_that_grows_with_the_value_spares_zeros_unless_it_has_a_floor():
    table = table_of(with_zeros())
    bare, floored = (
        mw.IndependentNoise(NAMES, variance_ratio=0.5, spread=mw.laws.Power(1.0, floor))
        for floor in (0.0, 50.0)
    )
    assert floor_of(bare, table).rate > 0.3
    assert floor_of(floored, table).rate == 0


def test_a_range_without_noise_leaves_its_values_to_be_found():
    values = np.random.default_rng(0).integers(0, 2000, (300, 2)).astype(float)
    mask = mw.IndependentNoise(("A", "B"), variance_ratio=50.0, spread=mw.laws.Step((1000.0,), (0.0, 1.0)))
    table = table_of(values, unit=1)
    for seed in range(3):
        masking = masked(mask, table, seed)
        released = masking.release.table.values(("A", "B"))
        sides = []
        for side in (values, released):
            shown = [
                np.where((side[:, j] < 1000) & np.isin(side[:, j], values[:, j]), side[:, j], np.inf)
                for j in range(2)
            ]
            sides.append(list(zip(*map(np.ndarray.tolist, shown), strict=True)))
        risk = mw.attack(mw.Fingerprint(), masking)
        assert risk.expected_correct == found_by_hand(masking, *sides) > 150
        assert floor_of(mask, table).rate == pytest.approx(risk.rate, abs=0.05)
    part = {(one["column"], one["part"]) for one in risk.floor.without.to_pylist()}
    assert part == {(n, p) for n in "AB" for p in ("spared values", "values, pattern left")}
    assert "unique by the values without noise in A, B" in repr(risk)


def test_a_limit_that_gathers_the_others_does_not_count():
    """Half of the normal factors are negative and clamped to 0, beside which zeros say nothing: some do not count."""
    table = table_of(with_zeros(), bottom=-1)
    mask = mw.BiasNoise(NAMES, bias_sd=200.0, sd=0.0)
    low = mask.card(table).laws[0].outlets[0].low
    masking = masked(mask, table)
    gathered = (masking.release.table.floats("A") == low).mean()
    assert gathered > 0.5
    risk = mw.attack(mw.Fingerprint(), masking)
    assert risk.rate <= 0.05


def test_who_is_alone_by_what_is_sure_stays_so_whatever_strays():
    """Everybody has a block of his own; many values of his become 0 by rounding."""
    table = table_of(with_zeros(), blocks=np.arange(RECORDS))
    mask = mw.BiasNoise(NAMES, bias_sd=5.0, sd=0.0, shape="lognormal")
    risk = mw.attack(mw.Fingerprint(), masked(mask, table))
    assert risk.rate == floor_of(mask, table).rate == 1.0


def test_codes_after_the_noise_and_missing_values_are_no_obstacle():
    values = with_zeros()
    values[::7, 0] = np.nan
    mask = mw.Chain([mw.BiasNoise(NAMES, bias_sd=0.5, sd=0.0), mw.Coding(("A",), top=300)])
    risk = mw.attack(mw.Fingerprint(), masked(mask, table_of(values)))
    assert risk.rate > 0.3
    assert risk.floor.spared == NAMES


def test_values_that_rounding_leaves_unchanged_are_told():
    values = np.random.default_rng(1).integers(0, 2000, (300, 2)).astype(float)
    coarse, fine = (mw.IndependentNoise(("A", "B"), variance=v) for v in (0.2, 400.0))
    said = mw.attack(mw.Fingerprint(), masked(coarse, table_of(values, unit=1))).notes
    masking = masked(coarse, table_of(values, unit=1))
    same = (masking.release.table.values(("A",)) == values[masking.order][:, :1]).mean()
    assert any(note.figures["columns"]["A"] == pytest.approx(same) for note in said)
    notes = mw.attack(mw.Fingerprint(), masked(fine, table_of(values, unit=1))).notes
    assert not has_code(notes, "attacks.unchanged_values", "attacks.spared_values")
