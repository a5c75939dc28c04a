"""Sizes that a card may show: fewer of them for fewer records, and the intervals they stand for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maskwell.masks import CorrelatedNoise, IndependentNoise, MixtureNoise
from maskwell.masks.size_grid import (
    SERIES,
    TWO_DIGITS_FROM,
    correlation_step,
    size_interval,
    size_on_grid,
)

from .conftest import EXACT, plain

COUNTS = (1, 20, 49, 50, 199, 200, 999, 1_000, 4_999, 5_000, 10**6)
RATIO = {1_000: 1.05, 200: 1.12, 50: 1.30, 0: 1.59}  # half a step, by ratio: the most that rounding changes


@given(st.floats(1e-12, 1e12), st.sampled_from(COUNTS))
def test_a_size_lies_in_the_interval_that_its_rounding_stands_for(size, records):
    rounded = size_on_grid(size, records)
    low, high = size_interval(rounded, records)
    assert low * (1 - 1e-9) <= size <= high * (1 + 1e-9)
    most = next(ratio for least, ratio in RATIO.items() if records >= least)
    assert 1 / most <= rounded / size <= most
    assert size_on_grid(rounded, records) == rounded
    assert rounded == float(f"{rounded:.1e}")  # never more than two digits


@given(st.floats(1e-9, 1e9))
def test_many_records_keep_two_digits(size):
    assert size_on_grid(size, TWO_DIGITS_FROM) == float(f"{size:.1e}")


def test_fewer_records_show_fewer_sizes():
    sizes = np.geomspace(1, 9.999, 4_000)
    shown = [len({size_on_grid(float(size), n) for size in sizes}) for n in (20, 100, 500, 2_000, 5_000)]
    assert shown == [4, 7, 13, 36, 91]  # the next power of ten among them
    assert [least for least, _ in SERIES] == sorted((least for least, _ in SERIES), reverse=True)


def test_an_interval_of_other_digits_is_narrower():
    assert size_interval(0.4321, 20, 4) == pytest.approx((0.43205, 0.43215))
    assert size_interval(1.0, 5_000) == pytest.approx((0.995, 1.05))


def test_steps_of_correlations_grow_as_records_get_fewer():
    assert [correlation_step(n) for n in (5, 20, 40, 100, 200, 400, 1_000, 2_000, 5_000, 10**6)] == [
        1.0,
        1.0,
        0.5,
        0.2,
        0.1,
        0.05,
        0.05,
        0.02,
        0.01,
        0.01,
    ]


@pytest.mark.parametrize(
    "mask",
    [
        IndependentNoise(("A", "B"), variance_ratio=0.3),
        CorrelatedNoise(("A", "B"), sd_ratio=0.7),
        MixtureNoise(("A", "B"), variance_ratio=0.5, within_variance_ratio=0.1),
    ],
)
def test_the_card_of_a_small_file_has_few_sizes_and_is_the_law_drawn_from(mask):
    values = np.random.default_rng(3).normal(size=(30, 2))
    law, exact = mask.card(plain(values)).laws[0], mask.card(plain(values), EXACT).laws[0]
    assert law != exact
    sizes = np.ravel(law.noise.sds)
    assert all(size_on_grid(float(size), 30) == size for size in sizes)
    correlations = np.array(getattr(law.noise, "correlations", ((0.0,),)))
    assert np.isin(correlations, (-1.0, -0.5, 0.0, 0.5, 1.0)).all()


def test_a_size_that_the_plan_gives_stays_as_it_is():
    values = np.random.default_rng(3).normal(size=(30, 1))
    (law,) = IndependentNoise("A", variance=0.1234).card(plain(values)).laws
    assert law.noise.sds == (0.1234**0.5,)
