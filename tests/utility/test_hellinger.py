"""The Hellinger distance on small and large files: what chance makes, and what symmetric noise makes."""

from math import sqrt

import numpy as np
import pytest

from maskwell.utility.figures import EmpiricalDistribution, between_shares
from maskwell.utility.hellinger import _edges, _Sample, _variances, hellinger
from maskwell.utility.results import ColumnUtility
from maskwell.utility.verdicts import NONE, POOR, RULES, _of_distances


def distances(records, released, seed, times=200):
    """Return the distances of so many draws, and the mean of one sd of chance."""
    rng = np.random.default_rng(seed)
    found = [hellinger(*released(rng, records)) for _ in range(times)]
    return np.array([one.value for one in found]), float(np.mean([one.chance for one in found]))


def noised(sd):
    def draw(rng, records):
        x = np.exp(0.8 * rng.normal(size=records))
        return x, x + rng.normal(0, sd * x.std(), records)

    return draw


def test_strong_symmetric_noise_is_seen_in_a_small_file_as_in_a_large_one():
    large = hellinger(*noised(2.4)(np.random.default_rng(1), 200_000)).value
    assert large == pytest.approx(0.555, abs=0.01)
    for records in (209, 1_000):
        found, _ = distances(records, noised(2.4), 2)
        assert found.min() > 2 * RULES["Hellinger"].fair
        assert found.mean() == pytest.approx(large, abs=0.06)  # ten classes see less than fifty


@pytest.mark.parametrize("records", [209, 1_000, 20_000])
def test_what_chance_alone_makes_is_taken_off(records):
    def independent(rng, n):
        x = np.append(rng.normal(size=n), np.full(n, np.nan))
        return x, np.append(np.full(n, np.nan), rng.normal(size=n))

    found, chance = distances(records, independent, 3)
    assert sqrt((found**2).mean()) < chance  # before: sqrt((K - 1) / 4n), 0.10 in 209 records
    assert (found <= RULES["Hellinger"].good).mean() > 0.9
    classes = min(max(records // 100, 10), 50)
    assert chance == pytest.approx((sqrt(2 * (classes - 1)) / 8 * 2 / records) ** 0.5, rel=0.02)


@pytest.mark.parametrize("shared", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_what_chance_makes_is_as_large_as_the_records_that_changed_class_say(shared, is_weighted):
    rng, squares, expected = np.random.default_rng(4), [], []
    for _ in range(1_000):
        common = rng.normal(0, sqrt(shared), 400)
        x, z = (common + rng.normal(0, sqrt(1 - shared), 400) for _ in range(2))
        weights = rng.uniform(0.2, 3, 400) if is_weighted else None
        first, second = (EmpiricalDistribution.of(one, weights) for one in (x, z))
        edges = _edges(first, second)
        sides = [_Sample.of(one, weights, edges) for one in (x, z)]
        p, q = (one.sums(one.weights, len(edges) + 1) for one in sides)
        squares.append(between_shares(p, q) ** 2)
        expected.append((_variances(*sides, p, q, slice(None)) / (p + q)).sum() / 4)
    error = np.std(squares) / sqrt(len(squares))
    assert np.mean(squares) == pytest.approx(np.mean(expected), abs=4 * error + 0.02 * np.mean(expected))


def test_a_subsample_is_held_against_all_records():
    rng, found = np.random.default_rng(5), []
    for _ in range(300):
        x = rng.normal(size=1_000)
        rows = np.sort(rng.choice(1_000, 300, replace=False))
        found.append(hellinger(x, x[rows], rows=rows))
    assert sqrt(np.mean([one.value**2 for one in found])) < np.mean([one.chance for one in found])
    assert np.mean([one.chance**2 for one in found]) == pytest.approx(
        sqrt(18) / 8 * (1 / 300 - 1 / 1_000), rel=0.1
    )


def test_a_spike_that_noise_spreads_is_seen():
    rng = np.random.default_rng(4)
    x = np.where(rng.random(20_000) < 0.4, 0.0, rng.gamma(2, 10, 20_000))
    assert hellinger(x, x).value == 0
    assert hellinger(x, x + rng.normal(0, 0.5, 20_000)).value > 0.25


def test_values_that_are_missing_or_all_alike_have_a_distance_or_none():
    nothing, one = np.full(20, np.nan), np.ones(20)
    assert np.isnan(hellinger(nothing, one).value)
    assert hellinger(one, one).value == 0
    assert hellinger(one, 2 * one).value == pytest.approx(1)


def of_records(records, value, chance):
    return ColumnUtility(
        f"x{records}", "continuous", True, 1.0, 1.0, hellinger=value, hellinger_chance=chance
    )


def test_what_chance_hides_is_not_judged_unless_it_is_clearly_poor():
    few, clear, many = of_records(40, 0.05, 0.16), of_records(41, 0.5, 0.16), of_records(500, 0.05, 0.05)
    (judged,) = _of_distances([few])
    assert (judged.verdict, judged.said) == (
        NONE,
        "Not judged of x40: chance alone makes 0.16 or more in so few records",
    )
    assert [one.verdict for one in _of_distances([clear])] == [POOR]
    assert [one.verdict for one in _of_distances([few, many])] == ["good", NONE]
