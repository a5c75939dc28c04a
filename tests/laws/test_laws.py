"""What every law promises, whatever it is."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from maskwell.keystream import Stream
from maskwell.laws import LAWS, Additive, Normal, RankSwapped, law_from_dict
from maskwell.laws.chained import Chained

from .conftest import EXAMPLES, LEAST_P, NAN, drawn, listed, p_value, stream_of, whole


def test_draws_follow_the_density_and_it_sums_to_one(example):
    for number, truth in enumerate(example.truths):
        axes, probabilities, error = listed(example.law, truth, example.spans)
        assert abs(probabilities.sum() - 1) <= example.tolerance + error
        z = drawn(example.law, truth, seed=number)[:, ~np.isnan(truth)]
        assert p_value(axes, probabilities, z) > LEAST_P


@pytest.mark.parametrize(
    "wrong",
    [
        Additive(("a",), Normal((2.06,)), (whole("0.05", low=0.0, high=5.0),)),
        Additive(("a",), Normal((2.0,)), (whole("0.05", low=0.0, high=5.0),), offsets=(0.06,)),
        Additive(("a",), Normal((2.0,)), (whole("0.05", low=0.0, high=4.95),)),
    ],
    ids=["sd 3% too large", "mean 3% of an sd too high", "clamp one unit further in"],
)
def test_the_check_finds_small_faults(wrong):
    example = EXAMPLES["normal, clamped"]
    axes, probabilities, _ = listed(example.law, (3.0,), example.spans)
    assert p_value(axes, probabilities, drawn(wrong, (3.0,))) < LEAST_P


def test_plain_data_gives_the_same_law(example):
    read = law_from_dict(json.loads(json.dumps(example.law.to_dict())))
    truth = example.truths[0]
    z = drawn(example.law, truth, 50)
    x = np.tile(truth, (50, 1))
    assert read == example.law
    assert np.array_equal(drawn(read, truth, 50), z, equal_nan=True)
    assert np.array_equal(read.logpdf(z, x), example.law.logpdf(z, x))


def test_every_form_has_an_example():
    forms = {example.law.form for example in EXAMPLES.values()} | {RankSwapped.form}
    assert forms == set(LAWS)


def test_draws_depend_on_the_record_alone(example):
    count, truth = 200, example.truths[0]
    x = np.tile(truth, (count, 1)).astype(float)
    stream = stream_of(count, stage="" if isinstance(example.law, Chained) else "0")
    whole_file = example.law.draw(x, stream)
    order = np.argsort(np.sin(np.arange(count)))
    pieces = np.array_split(order, 7)
    assert len({len(piece) for piece in pieces}) == 2
    for piece in pieces:
        part: Stream = stream.at(piece)
        assert np.array_equal(example.law.draw(x[piece], part), whole_file[piece], equal_nan=True)


def test_closed_values_stay_closed_and_change_no_other_draw(example):
    for j in range(len(example.truths[0])):
        closed = tuple(NAN if i == j else x for i, x in enumerate(example.truths[0]))
        before, after = drawn(example.law, example.truths[0], 100), drawn(example.law, closed, 100)
        others = [i for i in range(len(closed)) if i != j]
        assert np.isnan(after[:, j]).all()
        assert np.array_equal(before[:, others], after[:, others], equal_nan=True)


def test_records_with_nothing_open_have_density_one(example):
    nothing = np.full((3, len(example.truths[0])), np.nan)
    assert np.array_equal(example.law.logpdf(nothing, nothing), np.zeros(3))


def test_laws_are_frozen(example):
    for field in fields(example.law):
        with pytest.raises(FrozenInstanceError):
            setattr(example.law, field.name, None)
