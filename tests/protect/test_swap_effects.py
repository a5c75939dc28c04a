"""Figures before and after an exchange."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import maskwell as mw
from maskwell.errors import BadPlan
from maskwell.protect.swap_effects import domain_means

swap = partial(mw.swap, exempt_values="the intruder holds these values; what he is after stays in the row")


@pytest.fixture(scope="module")
def swapped(masking, linkage):
    return swap(masking, linkage, mw.MaxRate(0.2), domains=("EDU", ("HH", "SEX")))


def test_means_of_sub_domains_are_those_of_numpy(swapped, masking):
    table = swapped.swapping.domains.to_pylist()
    sd = np.nanstd(masking.masked.floats("INCOME"), ddof=1)
    for row in (row for row in table if row["domain"] == "EDU" and row["column"] == "INCOME"):
        here = [text == row["value"] for text in masking.masked.written("EDU").to_pylist()]
        before, after = (each.masked.floats("INCOME")[here] for each in (masking, swapped))
        assert row["records"] == sum(here)
        assert (row["open_before"], row["open_after"]) == (
            np.isfinite(before).sum(),
            np.isfinite(after).sum(),
        )
        assert row["mean_before"] == pytest.approx(np.nanmean(before), rel=1e-12)
        assert row["mean_after"] == pytest.approx(np.nanmean(after), rel=1e-12)
        assert row["shift_in_sds"] == pytest.approx((np.nanmean(after) - np.nanmean(before)) / sd, abs=1e-12)
    assert [row["value"] for row in table if row["column"] == "AGE" and row["domain"] == "EDU"] == [
        "?", "high", "low", "middle",
    ]  # fmt: skip


def test_domains_can_be_crossed(swapped, masking):
    crossed = [row for row in swapped.swapping.domains.to_pylist() if row["domain"] == "HH x SEX"]
    there = set(zip(*(masking.masked.array(name).to_pylist() for name in ("HH", "SEX")), strict=True))
    assert {row["value"] for row in crossed} == {f"{hh} x {sex}" for hh, sex in there}
    assert sum(row["records"] for row in crossed if row["column"] == "TAX") == 240


def test_blocks_that_are_matched_on_keep_their_means(masking, linkage):
    by_block = swap(masking, linkage, mw.MaxRate(0.2), domains=("REGION", "SEX", ("REGION", "SEX")))
    for row in by_block.swapping.domains.to_pylist():
        assert row["mean_after"] == pytest.approx(row["mean_before"], rel=1e-12)
        assert row["open_after"] == row["open_before"]


def test_other_blocks_are_the_domains_unless_told(masking, linkage):
    free = mw.Linkage(fields=linkage.fields, match_blocks=("SEX",), weights=mw.attacks.Fixed())
    assert set(swap(masking, free, mw.MaxRate(0.3)).swapping.domains["domain"].to_pylist()) == {"REGION"}
    assert len(swap(masking, linkage, mw.MaxRate(0.3)).swapping.domains) == 0


def test_covariances_are_those_of_numpy(swapped, masking):
    for moment, each in (("before", masking), ("after", swapped)):
        x, y = (each.masked.floats(name) for name in ("TAX", "WAGE"))
        row = next(
            r
            for r in swapped.swapping.covariances.to_pylist()
            if (r["column"], r["other"]) == ("TAX", "WAGE")
        )
        both = np.isfinite(x)
        correlation = np.corrcoef(x[both], y[both])[0, 1]
        assert row[f"correlation_{moment}"] == pytest.approx(correlation, rel=1e-9)
        assert row[moment] == pytest.approx(correlation * x[both].std(ddof=1) * y.std(ddof=1), rel=1e-9)


def test_the_largest_changes_are_named_by_column(swapped):
    shift, where = swapped.swapping.largest_domain_shift
    shifts = swapped.swapping.domains["shift_in_sds"].to_numpy()
    assert shift == np.nanmax(np.abs(shifts))
    assert where.split(" and ")[0] in ("EDU", "HH x SEX")
    change, pair = swapped.swapping.largest_correlation_change
    assert 0 < change < 1
    assert pair.split(" and ")[1] in ("WAGE", "OTHER", "TOTAL")


@pytest.mark.parametrize("domains", [3, [3], [()], [("EDU", 3)], ["EDU", ()], [None], [[["EDU"]]]], ids=repr)
def test_domains_that_are_no_names_are_refused_in_one_sentence(masking, linkage, domains):
    with pytest.raises(BadPlan, match="domains are names of columns"):
        swap(masking, linkage, mw.MaxRate(0.2), domains=domains)


def test_a_constant_column_has_no_shift(masking):
    """The mean of equal values is not always that value, to the last digit: no reason for an infinite shift."""
    values, numbers = np.full(240, 0.1), np.arange(240) % 7
    table = masking.masked.with_columns(
        {"TAX": (masking.masked.schema["TAX"], values, np.zeros(240, np.uint8))}
    )
    shut = np.where(numbers == 0, 1, 0).astype(np.uint8)
    after = table.with_columns({"TAX": (table.schema["TAX"], np.where(shut, np.nan, values), shut)})
    shifts = domain_means(table, after, None, ("TAX",), [("EDU",)])["shift_in_sds"].to_numpy()
    assert np.isnan(shifts).all()
