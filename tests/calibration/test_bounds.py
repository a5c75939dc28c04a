"""Bounds: what is refused before any search, the widening they judge, and where noise ends for them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from math import inf

import numpy as np
import pyarrow as pa
import pytest

from maskwell.analysis import forecast
from maskwell.attacks import NearestRecord
from maskwell.calibration import Bound, IntervalWidening, Search, calibrate
from maskwell.calibration.bounded_noise import largest_within
from maskwell.calibration.bounds import Bounds
from maskwell.calibration.measures import measure_of
from maskwell.calibration.scale import groups_apart, scale_words
from maskwell.calibration.trials import Bench
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.masks import Chain, CorrelatedNoise, IndependentNoise
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.tolerances import MaxRate

NAMES = ("Y", "A", "B")


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 120)) + 10
    values = {"Y": a + b + rng.standard_normal(120), "A": a, "B": b}
    columns = tuple(Column(name, "continuous", frozenset({"key"})) for name in NAMES)
    return Table.from_frame(pa.table(values), Schema(columns))


def bench_of(table: Table) -> Bench:
    return Bench(table, [NearestRecord()], Key.from_seed(1), measure_of(MaxRate(0.15)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"formula": "Y"}, "the formula of a bound"),
        ({"formula": 3}, "the formula of a bound"),
        ({"formula": "Y ~ A", "at_most": 0}, "at_most is a positive share"),
        ({"formula": "Y ~ A", "at_most": inf}, "at_most is a positive share"),
        ({"formula": "Y ~ A", "at_most": True}, "at_most is a positive share"),
        ({"formula": "Y ~ A", "family": None}, "the family of a bound"),
    ],
)
def test_a_bound_says_what_is_wrong_with_it(options, said):
    with pytest.raises(BadPlan, match=said):
        Bound(**options)


def test_a_bound_is_plain_and_frozen():
    bound = Bound("Y ~ A + B")
    assert bound.to_dict() == {"formula": "Y ~ A + B", "family": "gaussian", "at_most": 0.30}
    assert str(bound) == "no interval of Y ~ A + B wider by more than 30%"
    with pytest.raises(FrozenInstanceError):
        bound.at_most = 0.5


@pytest.mark.parametrize(
    ("mask", "bound", "said"),
    [
        (IndependentNoise(("A",), variance_ratio=0.1, transform="log"), Bound("Y ~ A"), "cannot be kept"),
        (IndependentNoise(("A",), variance_ratio=0.1), Bound("Y ~ A", family="ordered"), "cannot be kept"),
        (IndependentNoise(("A",), variance_ratio=0.1), Bound("Y ~ C"), "C"),
        (IndependentNoise(("A",), variance_ratio=0.1), Bound("Y ~ A**2"), "Y ~ A\\*\\*2"),
        (IndependentNoise(("A",), variance_ratio=0.1), "Y ~ A", "bounds is a list"),
        (IndependentNoise(("A",), variance_ratio=0.1), ["Y ~ A"], "bounds is a list"),
    ],
    ids=["log", "ordered", "no such column", "power", "text", "list of text"],
)
def test_what_has_no_forecast_is_refused_before_the_search(table, mask, bound, said):
    """All at once and with the reason: no trial is run."""
    trials = []
    given = [bound] if isinstance(bound, Bound) else bound
    with pytest.raises(BadPlan, match=said):
        calibrate(mask, table, seed=1, progress=trials.append, search=Search(bounds=given, floor="report"))
    assert trials == []


@pytest.mark.parametrize(
    "mask",
    [
        IndependentNoise(NAMES, variance_ratio=0.2),
        CorrelatedNoise(NAMES, sd_ratio=0.5),
    ],
    ids=["independent", "correlated"],
)
def test_widening_is_that_of_the_forecast(table, mask):
    """The coefficient that is widened most counts, and the intercept does not."""
    bounds = Bounds.of([Bound("Y ~ A + B", at_most=0.01)], bench_of(table), mask)
    (one,) = bounds.widening(mask)
    told = forecast("Y ~ A + B", table, mask).widening
    assert one.largest == pytest.approx(max(told["A"], told["B"]))
    assert told[one.coefficient] == pytest.approx(one.largest)
    assert not bounds.hold(mask)
    assert bounds.share(mask) == pytest.approx(100 * one.largest)
    assert bounds.columns == (frozenset(NAMES),)
    assert bounds.is_closed_form


def test_a_model_of_an_intercept_counts_it(table):
    mask = IndependentNoise(("Y",), variance_ratio=1.0)
    (one,) = Bounds.of([Bound("Y ~ 1")], bench_of(table), mask).widening(mask)
    assert one.coefficient == "Intercept"
    noise = mask.card(table).laws[0].noise.sds[0] / table.floats("Y").std(ddof=1)  # on the card's few sizes
    assert one.largest == pytest.approx((1 + noise**2) ** 0.5 - 1, rel=0.02)
    assert noise == pytest.approx(1.0, rel=0.22)


def test_a_widening_without_end_is_nothing_in_figures():
    lost = IntervalWidening("Y ~ A", "gaussian", 0.3, inf, "A")
    assert not lost.met
    assert lost.to_dict()["largest"] is None
    assert lost.words == "A is lost"
    assert IntervalWidening("Y ~ A", "gaussian", 0.3, 0.3, "A").met


@pytest.mark.parametrize("power", [1.0, 2.0, 4.0])
@pytest.mark.parametrize("start", [0.01, 1.0, 300.0])
def test_where_bounds_end_is_found_in_few_forecasts(power, start):
    """The share is 1 at a factor of 3; it need not grow as the square to be found."""
    asked = []

    def share_at(factor: float) -> float:
        asked.append(factor)
        return (factor / 3) ** power

    found = largest_within(share_at, start, inf, 0.01)
    assert 3 / 1.0101 <= found <= 3
    assert len(asked) <= 14


def test_where_bounds_end_may_be_nowhere_or_everywhere():
    assert largest_within(lambda _: inf, 1.0, 8.0, 0.01) is None
    assert largest_within(lambda _: 2.0, 1.0, 8.0, 0.01) is None
    assert largest_within(lambda _: 0.0, 1.0, 8.0, 0.01) == 8.0


def test_a_step_is_found_as_well():
    """Sds of two digits make the widening a staircase."""
    found = largest_within(lambda factor: 0.5 if factor < 2 else 5.0, 1.0, inf, 0.01)
    assert 2 / 1.0101 <= found < 2


def test_correlated_noise_comes_apart_by_groups(table):
    mask = Chain((CorrelatedNoise(("Y", "A", "B"), sd_ratio=0.3, limits=(("B", 0, 20),)),))
    first, second = groups_apart(mask, table, lambda name: name == "B")
    assert (first.columns, first.limits) == (("Y", "A"), ())
    assert (second.columns, second.limits) == (("B",), (("B", 0, 20),))
    assert groups_apart(mask, table, lambda _: 0) == mask.masks
    kept = CorrelatedNoise(("A", "B"), sd_ratio=0.3, keep="moments")
    assert groups_apart(kept, table, str) == (kept,)


def test_columns_with_the_same_figure_are_said_together():
    pieces = [IndependentNoise((name,), variance_ratio=0.1 if name != "B" else 0.2) for name in "ABCDE"]
    assert scale_words(Chain(tuple(pieces))) == "variance_ratio 0.1 (A and 3 more), 0.2 (B)"
