"""A scale for each column: the objective falls where one column is the reason for the risk."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.attacks import Fixed, Linkage
from maskwell.calibration import calibrate
from maskwell.calibration.columns import Pieces
from maskwell.errors import BadPlan
from maskwell.masking import Masking
from maskwell.masks import Chain, CodeNoise, CorrelatedNoise, IndependentNoise, Subsample, mask_from_dict
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.tolerances import MaxRate

from .conftest import terms

# Full precision, so that the rates are those of the formula: on a card, sds have two digits.
QUICK: dict[str, Any] = {"seed": 1, "replicates": 2, "confirmations": 2, "floor": "report", "exact": True}
ALIKE = IndependentNoise(("A", "B"), variance_ratio=0.3)


@pytest.fixture(scope="module")
def table() -> Table:
    """Two columns of variance 1, so that a variance of the noise is its ratio to that of the data."""
    rng = np.random.default_rng(2)
    values = rng.standard_normal((60, 2))
    columns = dict(zip("AB", ((values - values.mean(axis=0)) / values.std(axis=0, ddof=1)).T, strict=True))
    described = (Column(name, "continuous", frozenset({"key"})) for name in columns)
    schema = Schema((Column("ID", "text", frozenset({"id"})), *described))
    return Table.from_frame(pa.table({"ID": [f"r{i}" for i in range(60)], **columns}), schema)


@dataclass(frozen=True, kw_only=True)
class Told(Linkage):
    """An intruder whose rate is 0.15 / (sd of A's noise x (sd of B's) ^ `power`)."""

    power: float = 1.0

    def assessed(self, risk, marked):
        """Put the known rate in the place of the one that was found."""
        a, b = (float(marked.masking.card.law_of(name).noise.covariance.max()) ** 0.5 for name in "AB")
        many = 10**9  # so that the rate is as good as known
        return replace(risk, targets=many, expected_correct=many * min(0.15 / (a * b**self.power), 1.0))


def planned_variance(masking: Masking) -> float:
    """Return the variances of the noise as planned, which no draw changes: of both columns, whose variance is 1."""
    return sum(float(masking.card.law_of(name).noise.covariance.max()) for name in "AB")


def told(power: float) -> Told:
    return Told(fields=("A",), weights=Fixed(m=(0.9,), u=(0.1,)), power=power)


def test_the_objective_falls_to_nearly_its_least(table):
    """Noise on B protects a quarter as much as on A, and costs the same.

    One scale for all costs 2 (both variances 1). Least is vA + vB with vA vB^(1/4) = 1: vA = 4 vB, in all 1.65.
    """
    plan = told(0.25)
    found = calibrate(
        ALIKE, table, plan, MaxRate(0.15), **terms(per_column=True, objective=planned_variance, **QUICK)
    )
    one = found.columns
    assert found.met
    assert one.objective == "planned_variance"
    assert 2.0 <= one.before <= 2.0 * 1.05  # variances have twice the precision of the scale, 2%
    assert 1.649 <= one.after <= 1.649 * 1.06
    assert one.moves_kept >= 1
    scales = {piece.columns: piece.variance_ratio for piece in found.mask.masks}
    assert 2 < scales["A",] / scales["B",] < 8
    assert mask_from_dict(found.mask.to_dict()) == found.mask
    assert found.confirmation.bound(found.confirmed_level) <= 0
    assert {trial.round for trial in found.trace} >= {"search", "columns", "confirmation 1"}
    assert "with one for each" in repr(found)
    json.dumps(found.to_dict(), allow_nan=False)
    found.figure()


def test_columns_that_are_alike_keep_one_scale(table):
    """Nothing is to be gained beyond the precision of the scale."""
    found = calibrate(ALIKE, table, told(1.0), MaxRate(0.15), **terms(per_column=True, **QUICK))
    assert found.met
    assert isinstance(found.mask, IndependentNoise)
    assert found.columns.objective == "total variance ratio"
    assert has_code(found.notes, "calibration.little_gain")


def test_a_chain_has_a_scale_for_each_of_its_groups(people):
    chain = Chain(
        [CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3), CodeNoise(("EDU",), variance=0.5), Subsample(0.9)]
    )
    pieces = Pieces.of(chain, people)
    assert pieces.free == [0, 1]
    moved = pieces.moved(1, 2.0).at(1.0)
    assert (moved.masks[0].sd_ratio, moved.masks[1].variance) == (0.3, 2.0)
    assert moved.masks[2] == chain.masks[2]


@pytest.mark.parametrize(
    "mask",
    [CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3), IndependentNoise(("AGE",), variance_ratio=0.1)],
    ids=["correlated", "one column"],
)
def test_a_mask_with_one_scale_is_refused(people, mask):
    with pytest.raises(BadPlan, match="per_column needs columns with scales of their own"):
        Pieces.of(mask, people)
