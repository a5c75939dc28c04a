"""Figures on what masking did to each column, for the steward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.keys import Key
from maskwell.laws import Power
from maskwell.masking import apply
from maskwell.masking.column_figures import column_figures
from maskwell.masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    Grouping,
    IndependentNoise,
    Pram,
    Recompute,
    Subsample,
)
from maskwell.schema import Column, Schema
from maskwell.table import Table


def test_figures_are_those_of_open_released_values(people: Table, study_key: Key):
    masking = apply(
        Chain((IndependentNoise(("INCOME",), variance=2500.0), Subsample(0.5))), people, key=study_key
    )
    (figures,) = column_figures(masking)
    x, z = (table.values(["INCOME"])[masking.kept, 0] for table in (people, masking.masked))
    assert figures.column == "INCOME"
    assert figures.open == np.count_nonzero(~np.isnan(x))
    assert (figures.mean, figures.mean_after) == pytest.approx((np.nanmean(x), np.nanmean(z)))
    assert (figures.sd, figures.sd_after) == pytest.approx((np.nanstd(x, ddof=1), np.nanstd(z, ddof=1)))
    assert figures.noise_sd == 50.0
    assert (figures.clamped, figures.negative) == (0, 0)


@pytest.mark.parametrize(
    ("plan", "columns", "sds"),
    [
        (IndependentNoise("TAX", variance=4.0, transform="log", shift=1e5), ["TAX"], [None]),
        (IndependentNoise("TAX", variance=4.0, spread=Power(1.0, 1.0)), ["TAX"], [None]),
        (Chain((IndependentNoise("TAX", variance=9.0), IndependentNoise("TAX", variance=16.0))), ["TAX"], [5.0]),
        (CodeNoise("SEX", variance=0.25), ["SEX"], [0.5]),
        (Chain((IndependentNoise(("WAGE", "OTHER"), variance=4.0), Recompute("TOTAL", ("WAGE", "OTHER")))),
         ["WAGE", "OTHER", "TOTAL"], [2.0, 2.0, None]),
        (Grouping("AGE", breaks=(40,)), [], []),
        (Pram("EDU", stay=0.9), [], []),
    ],
)  # fmt: skip
def test_which_columns_have_figures_and_which_an_sd_of_noise(
    people: Table, study_key: Key, plan: Any, columns: list[str], sds: list[Any]
):
    found = column_figures(apply(plan, people, key=study_key))
    assert [figures.column for figures in found] == columns
    assert [figures.noise_sd for figures in found] == pytest.approx(sds)


def test_values_at_limits_and_below_zero_are_counted(study_key: Key):
    schema = Schema((Column("ID", "text", frozenset({"id"})), Column("A", "continuous", unit=0.1, top=100)))
    frame = pa.table({"ID": [str(i) for i in range(500)], "A": np.linspace(0, 99, 500).round(1)})
    table = Table.from_frame(frame, schema)
    masking = apply(IndependentNoise("A", variance=100.0), table, key=study_key)
    (figures,) = column_figures(masking)
    z = masking.masked.values(["A"])[:, 0]
    assert figures.clamped == np.count_nonzero(z == 99.9) > 10
    assert figures.negative == np.count_nonzero(z < 0) > 10


def test_values_that_became_codes_are_counted(make_amounts: Callable[..., Table], study_key: Key):
    masking = apply(
        Chain((IndependentNoise("A", variance=1.0), Coding("A", top=1.0))), make_amounts(400), key=study_key
    )
    (figures,) = column_figures(masking)
    assert figures.clamped == np.count_nonzero(masking.masked.status("A")) > 40


@pytest.mark.parametrize("shape", ["normal", "lognormal"])
def test_biased_values_at_limits_are_counted_too(study_key: Key, shape: str):
    schema = Schema((Column("A", "integer", bottom=0),))
    table = Table.from_frame(pa.table({"A": np.arange(1, 501) % 20 + 1}), schema)
    masking = apply(BiasNoise("A", bias_sd=0.1, sd=3.0, shape=shape), table, key=study_key)
    (figures,) = column_figures(masking)
    x, z = (each.values(["A"])[:, 0] for each in (table, masking.masked))
    assert figures.clamped == np.count_nonzero((z == 1) & (x != 1)) > 10
    assert figures.unchanged == np.count_nonzero(z == x) > 10
