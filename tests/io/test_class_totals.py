"""Numbers that add up to one total in classes are weights or shares: dropped and asked about, whatever their name."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from maskwell.io.inspect import SchemaProposal, propose


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(12)


def proposed(**columns) -> SchemaProposal:
    return propose(pa.table({name: pa.array(values).cast(pa.string()) for name, values in columns.items()}))


def cells(rng: np.random.Generator, years: int = 12, sizes: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """The year and size of cells of a budget survey, each with up to 18 classes of income."""
    cell = np.repeat(np.arange(years * sizes), rng.integers(8, 19, years * sizes))
    return cell // sizes + 1973, cell % sizes + 1


def test_the_weights_of_cells_that_add_up_to_100_are_dropped_and_asked(rng):
    year, size = cells(rng)
    cell = year * 10 + size
    x = rng.gamma(1, 1, len(cell)) + 0.05
    share = (100 * x / np.bincount(cell, x)[cell]).round(1)
    share[::150] += 3  # corrected values
    proposal = proposed(year=year, size=size, spend=rng.lognormal(3, 1, len(cell)).round(2), part=share)
    assert proposal.schema["part"].drop
    assert proposal.schema["spend"].roles == {"key"}
    found = next(one for one in proposal.of("part") if one.kind == "weight")
    sums = np.bincount(cell, share)[np.bincount(cell) > 1]
    right = int(np.count_nonzero(np.abs(sums - 100) <= 1))
    assert right < len(sums)
    classes = f"{right} of the {len(sums)} classes of several records alike in year and size"
    said = f"adds up to 100, to within 1%, in {classes}"
    assert found.text == f"{said}: dropped, as no weight gets noise"
    assert 'roles = ["weight"]' in found.otherwise
    assert 'roles = ["key"]' in found.otherwise


def test_weights_that_are_scaled_by_region_are_found(rng):
    region = np.r_[np.arange(24), rng.integers(0, 24, 676)]
    x = rng.gamma(4, 1, 700)
    scaled = (x / (np.bincount(region, x) / np.bincount(region))[region]).round(
        2
    )  # too coarse for a mean of 1
    proposal = proposed(region=np.char.add("r", region.astype(str)), v9=scaled)
    assert proposal.schema["v9"].drop
    assert "has a mean of 1, to within 1%, in 24 of the 24 classes" in proposal.of("v9")[-1].text


@pytest.mark.parametrize("seed", range(20))
def test_amounts_of_such_a_mean_and_the_doses_of_an_experiment_are_no_weights(seed):
    rng = np.random.default_rng(seed)
    year, size = cells(rng)
    n = len(year)
    mean_of_one = rng.gamma(4, 0.25, n).round(3)
    dose = np.tile([0.5, 1.0, 1.5], n // 3 + 1)[:n]
    per_cell = (
        100 / np.mean(np.bincount(year * 10 + size)[year * 10 + size]) * rng.gamma(9, 1 / 9, n)
    ).round(2)
    nearly_all = np.where(rng.random(n) < 0.95, 1, rng.uniform(0, 1, n)).round(
        3
    )  # the share of a year observed
    proposal = proposed(year=year, size=size, amount=mean_of_one, dose=dose, other=per_cell, seen=nearly_all)
    assert not any(" classes of several records alike in " in one.text for one in proposal.findings)
