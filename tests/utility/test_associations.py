"""Means of numbers by category: what is lost where a category is changed, whatever its shares do."""

import json

import numpy as np
import pyarrow as pa
import pytest

from maskwell.masking import apply
from maskwell.masks import Chain, Grouping, IndependentNoise, Pram, Subsample
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.utility import compare
from maskwell.utility.associations import associations
from maskwell.utility.pairs import TruthAndRelease

KEY = frozenset({"key"})
LEVELS = ("one", "two", "three")
MEANS = {"one": 64.6, "two": 50.0, "three": 50.1}


def table_of(count=6_000, seed=0, gaps=0.0, weighted=False):
    rng = np.random.default_rng(seed)
    level = rng.choice(LEVELS, count, p=[0.4, 0.3, 0.3])
    amount = np.array([MEANS[name] for name in level]) + rng.normal(0, 10, count)
    amount = np.where(rng.random(count) < gaps, -9.0, amount)
    frame = {"level": level, "amount": amount, "other": rng.normal(0, 1, count)}
    columns = (
        Column("level", "category", KEY, categories=LEVELS),
        Column("amount", "continuous", KEY, missing=(-9.0,)),
        Column("other", "continuous", KEY),
    )
    if weighted:
        frame["weight"] = rng.uniform(1, 5, count)
        columns = (*columns, Column("weight", "continuous", frozenset({"weight"})))
    return Table.from_frame(pa.table(frame), Schema(columns))


def judged(found):
    return [one for one in found.judgements if one.figure == "means by category as released"]


def test_a_category_that_became_pure_noise_is_poor():
    masking = apply(Pram(("level",), stay=0.34, invariant=True), table_of(), seed=1)
    found = compare(masking)
    (one,) = judged(found)
    assert one.verdict == "poor"
    assert one.where == "amount where level is one"
    assert found["level"].total_variation < 0.05  # its own figures are as they were
    amount = next(one for one in found.associations if one.column == "amount")
    assert amount.explained > 0.3 > 0.01 > amount.explained_after
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [one["column"] for one in told["associations"]] == ["amount", "other"]


def test_a_category_that_hardly_changes_is_good():
    (one,) = judged(compare(apply(Pram(("level",), stay=0.97), table_of(), seed=1)))
    assert one.verdict == "good"


def test_noise_of_a_number_leaves_its_means_by_category_alone():
    """Only pairs with the masked number are looked at; means move by chance alone."""
    found = compare(apply(IndependentNoise(("amount",), variance_ratio=0.5), table_of(), seed=1))
    assert [one.column for one in found.associations] == ["amount"]
    assert abs(found.associations[0].shift) < 4 * np.sqrt(0.5) * found.associations[0].chance
    assert judged(found)[0].verdict == "good"


@pytest.mark.parametrize("weighted", [False, True])
def test_figures_are_means_and_shares_of_variance(weighted):
    table = table_of(gaps=0.1, weighted=weighted)
    masking = apply(Pram(("level",), stay=0.5), table, seed=1)
    one = next(one for one in associations(TruthAndRelease(masking)) if one.column == "amount")
    weights = table.floats("weight") if weighted else np.ones(len(table))
    x, code = table.floats("amount"), LEVELS.index(one.level)
    for side, mean, explained in (
        (masking.truth, one.mean, one.explained),
        (masking.masked, one.mean_after, one.explained_after),
    ):
        at, known = side.floats("level"), ~np.isnan(x)
        here = known & (at == code)
        assert mean == pytest.approx(np.average(x[here], weights=weights[here]))
        fitted = np.zeros(len(x))
        for level in range(3):
            there = known & (at == level)
            fitted[there] = np.average(x[there], weights=weights[there])
        middle = np.average(x[known], weights=weights[known])
        parts = [np.average((v[known] - middle) ** 2, weights=weights[known]) for v in (fitted, x)]
        assert explained == pytest.approx(parts[0] / parts[1])


def test_grouped_categories_are_compared_in_their_groups():
    groups = (("high", ("one",)), ("low", ("two", "three")))
    found = compare(apply(Grouping(("level",), groups=groups), table_of(), seed=1))
    assert {one.level for one in found.associations} <= {"high", "low"}
    assert all(one.shift == pytest.approx(0, abs=1e-9) for one in found.associations)


def test_a_subsample_moves_means_by_chance_alone():
    mask = Chain([Pram(("level",), stay=0.99), Subsample(fraction=0.5)])
    assert judged(compare(apply(mask, table_of(), seed=1)))[0].verdict == "good"
