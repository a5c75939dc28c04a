"""Spikes at a limit, zeros that stay zero, signs that stay: planted, and absent."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from maskwell.card import NoiseCard
from maskwell.checks.boundaries import recall_times_precision
from maskwell.checks.evidence import Evidence
from maskwell.checks.file_checks import CHECKS
from maskwell.checks.findings import Finding
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.masks import BiasNoise, IndependentNoise
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY = Key(np.random.default_rng(11).bytes(32))
RECORDS = 2_000


def made(name: str, masking: Masking) -> Finding:
    check = next(check for check in CHECKS if check.name == name)
    return check.made(Evidence(masking))


def one(values: np.ndarray, **described: object) -> Table:
    """Make a table of one amount beside a second one that is always sound."""
    rng = np.random.default_rng(0)
    amount = Column("AMOUNT", "continuous", frozenset({"key"}), unit=1, **described)  # type: ignore[arg-type]
    other = Column("OTHER", "continuous", frozenset({"key"}), unit=1)
    beside = np.rint(500 + 100 * rng.standard_normal(len(values)))
    return Table.from_frame(pa.table({"AMOUNT": values, "OTHER": beside}), Schema((amount, other)))


def foreign(truth: Table, values: np.ndarray, card: NoiseCard | None = None) -> Masking:
    """Tie a release made elsewhere to its truth."""
    rng = np.random.default_rng(9)
    other = np.rint(truth.floats("OTHER") + 100 * rng.standard_normal(len(truth)))
    released = Table.from_frame(pa.table({"AMOUNT": values, "OTHER": other}), truth.schema)
    places = [str(i + 1) for i in range(len(truth))]
    return Masking.from_files(
        truth, released, pa.table({"truth_id": places, "released_id": places}), card=card
    )


def incomes() -> np.ndarray:
    return np.rint(1_000 + 300 * np.random.default_rng(1).standard_normal(RECORDS))


def test_a_clamp_that_the_card_does_not_tell_is_a_spike() -> None:
    truth = one(incomes())
    rng = np.random.default_rng(2)
    noised = np.rint(truth.floats("AMOUNT") + 150 * rng.standard_normal(RECORDS))
    assert made("spikes", foreign(truth, noised)).verdict == "pass"
    clamped = made("spikes", foreign(truth, np.minimum(noised, 1_600)))
    assert clamped.verdict == "fail"
    assert clamped.where == "AMOUNT"
    share = float((noised >= 1_600).mean())
    assert clamped.figure == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("escaped", [1, 3])
def test_a_clamp_that_a_few_records_escaped_is_a_spike(side: int, escaped: int) -> None:
    truth = one(incomes())
    rng = np.random.default_rng(2)
    noised = np.rint(truth.floats("AMOUNT") + 150 * rng.standard_normal(RECORDS))
    limit = 1_000 + side * 600
    clamped = np.where(side * (noised - limit) > 0, limit, noised)
    share = float((clamped == limit).mean())
    clamped[:escaped] = limit + side * np.arange(50, 50 + escaped)
    found = made("spikes", foreign(truth, clamped))
    assert (found.verdict, found.where) == ("fail", "AMOUNT")
    assert found.figure == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("sd", [3, 30, 300])
@pytest.mark.parametrize("step", [1, 50])
def test_values_that_are_frequent_by_chance_or_in_the_truth_are_no_spikes(sd: int, step: int) -> None:
    rng = np.random.default_rng(sd)
    for values in (
        rng.normal(1_000, sd, RECORDS),
        rng.lognormal(4, 1, RECORDS),
        rng.poisson(2, RECORDS) * 1.0,
    ):
        heaped = np.where(rng.random(RECORDS) < 0.3, 100 * np.rint(values / 100), values)
        truth = one(np.rint(heaped))
        released = step * np.rint((truth.floats("AMOUNT") + rng.normal(0, sd / 2, RECORDS)) / step)
        assert made("spikes", foreign(truth, released)).verdict == "pass"


def test_a_card_with_another_law_does_not_explain_a_spike() -> None:
    truth = one(incomes())
    masking = apply(IndependentNoise(("AMOUNT", "OTHER"), variance_ratio=0.25), truth, key=KEY)
    assert made("spikes", masking).verdict == "pass"
    clamped = np.minimum(masking.masked.floats("AMOUNT"), 1_600)
    assert made("spikes", foreign(truth, clamped, masking.card)).verdict == "fail"


def test_a_clamp_on_the_card_is_told_but_no_news() -> None:
    mask = IndependentNoise(("AMOUNT", "OTHER"), variance_ratio=0.25, limits=(("AMOUNT", None, 1_600.0),))
    found = made("spikes", apply(mask, one(incomes()), key=KEY))
    assert found.verdict == "pass"
    assert "AMOUNT" in found.said


def test_a_spike_that_the_truth_has_too_is_none() -> None:
    truth = one(np.minimum(incomes(), 1_400))
    noised = truth.floats("AMOUNT") + 100 * np.random.default_rng(3).standard_normal(RECORDS)
    assert made("spikes", foreign(truth, np.rint(np.minimum(noised, 1_400)))).figure < 0.2
    assert made("spikes", foreign(truth, truth.floats("AMOUNT"))).figure == 0


def with_zeros() -> np.ndarray:
    values = incomes()
    values[::4] = 0
    return values


def losses() -> np.ndarray:
    rng = np.random.default_rng(4)
    return np.rint(200 + 400 * rng.standard_normal(RECORDS))


def test_multiplicative_noise_keeps_zeros_and_signs() -> None:
    factor = np.exp(0.4 * np.random.default_rng(5).standard_normal(RECORDS))
    zeros, signs = one(with_zeros()), one(losses())
    for masking in (
        foreign(zeros, np.rint(zeros.floats("AMOUNT") * factor)),
        apply(BiasNoise(("AMOUNT", "OTHER"), bias_sd=0.3, sd=0.0), zeros, key=KEY),
    ):
        found = made("zeros kept", masking)
        assert found.verdict == "fail"
        assert found.figure > 0.9
        assert found.where == "AMOUNT"
    for masking in (
        foreign(signs, np.rint(signs.floats("AMOUNT") * factor)),
        apply(BiasNoise(("AMOUNT", "OTHER"), bias_sd=0.3, sd=0.0, shape="lognormal"), signs, key=KEY),
    ):
        assert made("signs kept", masking).verdict in ("warn", "fail")


def test_additive_noise_keeps_no_more_than_it_should() -> None:
    for values in (with_zeros(), losses()):
        masking = apply(IndependentNoise(("AMOUNT", "OTHER"), variance_ratio=0.2), one(values), key=KEY)
        for name in ("zeros kept", "signs kept"):
            assert made(name, masking).verdict in ("pass", "not checked")


def test_zeros_under_a_clamp_on_the_card_are_as_the_law_leaves_them() -> None:
    mask = IndependentNoise(("AMOUNT", "OTHER"), variance_ratio=0.2, limits=(("AMOUNT", 0.0, None),))
    masking = apply(mask, one(with_zeros()), key=KEY)
    zeros = with_zeros() == 0
    assert (masking.masked.floats("AMOUNT")[zeros] == 0).mean() > 0.4  # half of them, by design
    assert made("zeros kept", masking).figure == 0


def test_zeros_that_were_left_out_of_the_noise_are_found_despite_a_card() -> None:
    truth = one(with_zeros())
    masking = apply(IndependentNoise(("AMOUNT", "OTHER"), variance_ratio=0.2), truth, key=KEY)
    left = np.where(truth.floats("AMOUNT") == 0, 0.0, masking.masked.floats("AMOUNT"))
    assert made("zeros kept", foreign(truth, left, masking.card)).verdict == "fail"


def test_what_is_recognised_needs_both_that_it_stays_and_that_it_can_be_told() -> None:
    mine = np.array([True, True, False, False])
    assert recall_times_precision(mine, mine) == 1
    assert recall_times_precision(mine, np.ones(4, bool)) == 0.5
    assert recall_times_precision(mine, np.array([True, False, False, False])) == 0.5
    assert recall_times_precision(mine, ~mine) == 0


def test_columns_without_zeros_or_a_second_sign_are_not_checked() -> None:
    masking = apply(
        IndependentNoise(("AMOUNT", "OTHER"), variance_ratio=0.2), one(incomes() + 5_000), key=KEY
    )
    assert made("zeros kept", masking).verdict == "not checked"
    assert made("signs kept", masking).verdict == "not checked"
