"""What every law promises, whatever it is."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.keys import Stream
from maskwell.laws import (
    LAWS,
    Additive,
    JointMixture,
    Laplace,
    Mixture,
    Normal,
    Power,
    RankSwapped,
    RotatedMixture,
    Step,
    law_from_dict,
)
from maskwell.laws.chain import ChainedLaw
from maskwell.laws.transform import inside

from .conftest import EXAMPLES, FINE, LEAST_P, NAN, drawn, listed, p_value, stream_of, whole


def test_draws_follow_the_density_and_it_sums_to_one(example):
    for number, truth in enumerate(example.truths):
        axes, probabilities, error = listed(example.law, truth, example.spans)
        assert abs(probabilities.sum() - 1) <= example.tolerance + error
        z = drawn(example.law, truth, seed=number)[:, ~np.isnan(truth)]
        assert p_value(axes, probabilities, z) > LEAST_P


@st.composite
def ways_out(draw):
    """A law of one column that may leave on logs, between clamps and codes, past missing codes; and a true value."""
    shift = draw(st.none() | st.sampled_from([0.0, 0.7, 12.0]))
    avoid = draw(st.lists(st.integers(-5, 15), unique=True, max_size=5))
    ends = {}
    for name, low, high in (("low", -8, -3), ("high", 13, 20)):
        kind = draw(st.sampled_from(["open", "clamp", "code"]))
        if kind != "open":
            end = float(draw(st.integers(low, high))) + (
                0.5 if kind == "code" and draw(st.booleans()) else 0.0
            )
            step = 1 if name == "low" else -1
            free = inside(end, step, Fraction(1), tuple(map(float, avoid)))
            ends[name] = end if kind == "code" and end not in avoid else free
            ends[f"{name}_coded"] = kind == "code"
    outlet = whole(1, log_shift=shift, avoid=tuple(map(float, avoid)), **ends)
    sd = draw(st.floats(0.1, 0.4)) if shift is not None else draw(st.floats(0.2, 30))
    noise = draw(
        st.sampled_from(
            [Normal((sd,)), Laplace((sd,)), Mixture((0.3, 0.7), ((-sd, 0.4 * sd),), ((sd / 5, sd),))]
        )
    )
    spread = (
        draw(st.sampled_from([(), (Step((4.0,), (0.0, 1.0)),), (Power(0.5, 1.0),)])) if shift is None else ()
    )
    x = draw(st.integers(1, 15).map(float) | st.floats(0.1, 15.9))
    return Additive(("a",), noise, (outlet,), spreads=spread, mean_corrected=shift is not None), x


@settings(max_examples=150)
@given(ways_out())
def test_any_way_out_and_its_density_agree(law_and_value):
    law, x = law_and_value
    on_logs = law.outlets[0].log_shift is not None
    span = (-13, 400) if on_logs else (-2500, 2500)
    axes, probabilities, _ = listed(law, (x,), (span,))
    assert abs(probabilities.sum() - 1) <= FINE
    assert p_value(axes, probabilities, drawn(law, (x,), 3000)) > LEAST_P


@st.composite
def pairs_out(draw):
    """A law of two correlated columns, singular at times, each with limits and codes of its own; and true values."""
    r = draw(st.sampled_from([-1.0, -0.6, 0.0, 0.3, 0.97, 1.0]))
    sds = tuple(draw(st.floats(0.3, 2.5)) for _ in range(2))
    outlets = tuple(
        whole(
            1, avoid=avoid, low=draw(st.sampled_from([None, -2.0])), high=draw(st.sampled_from([None, 4.0]))
        )
        for avoid in (draw(st.sampled_from([(), (1.0,), (2.0, 3.0)])) for _ in range(2))
    )
    matrix = ((1.0, r), (r, 1.0))
    normal = Normal(sds, matrix)
    joint = JointMixture((0.2, 0.3, 0.5), ((-1.0, 1.0), (1.5, 0.0), (-0.5, -0.4)), 0.3, sds, matrix)
    turned = RotatedMixture((0.4, 0.6), (-0.9, 0.6), (0.5, 0.7), sds, matrix)
    return Additive(("a", "b"), draw(st.sampled_from([normal, joint, turned])), outlets)


@settings(max_examples=25)
@given(pairs_out(), st.floats(-2, 4), st.floats(-2, 4))
def test_any_pair_and_its_density_agree(law, a, b):
    axes, probabilities, error = listed(law, (a, b), ((-20, 22), (-20, 22)))
    assert abs(probabilities.sum() - 1) <= 1e-9 + error
    assert p_value(axes, probabilities, drawn(law, (a, b), 3000)) > LEAST_P


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
    stream = stream_of(count, stage="" if isinstance(example.law, ChainedLaw) else "0")
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
