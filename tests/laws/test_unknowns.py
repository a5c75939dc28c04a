"""What laws leave to doubt: the same law at the card's own values, another at others, and columns apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from maskwell.errors import BadPlan
from maskwell.laws import (
    Additive,
    Classes,
    JointMixture,
    Laplace,
    Mixture,
    Multiplicative,
    Normal,
    Outlet,
    Power,
    RotatedMixture,
    SkewedBias,
    Transition,
)
from maskwell.laws.chain import combined_of, follow
from maskwell.laws.unknowns import Unknown, by_column, unknowns_of, with_values

PAIR = ((1.0, 0.8), (0.8, 1.0))
NONE = Outlet()
UNIT_MEANS = ((-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0))


def additive(noise, columns="ab", **rest):
    return Additive(tuple(columns), noise, (NONE,) * len(columns), **rest)


BOTH = Unknown("scale", ("a", "b"), 1.0)
SD_A, SD_B = Unknown("sd", ("a",), 2.0), Unknown("sd", ("b",), 3.0)
BIAS = additive(Normal((1.0, 3.0)), spreads=(Multiplicative(0.1, 2.0), None))
CASES = {
    "normal": (additive(Normal((2.0, 3.0))), (SD_A, SD_B)),
    "laplace": (additive(Laplace((2.0, 3.0))), (SD_A, SD_B)),
    "a column without noise": (additive(Normal((0.0, 3.0))), (SD_B,)),
    "power": (additive(Normal((2.0, 3.0)), spreads=(Power(0.5), None)), (SD_A, SD_B)),
    "bias beside noise": (BIAS, (Unknown("bias_sd", ("a",), 0.1), SD_A, SD_B)),
    "bias, the noise larger": (
        additive(Normal((2.0,)), "a", spreads=(Multiplicative(0.1, 1.0),)),
        (Unknown("bias_sd", ("a",), 0.2), SD_A),
    ),
    "neither bias nor noise": (
        additive(Normal((1.0,)), "a", spreads=(Multiplicative(0.0, 0.0),)),
        (Unknown("bias_sd", ("a",), 0.0), Unknown("sd", ("a",), 0.0)),
    ),
    "lognormal bias": (
        SkewedBias(("a", "b"), 0.1, (2.0, 3.0), (NONE, NONE)),
        (Unknown("bias_sd", ("a", "b"), 0.1), SD_A, SD_B),
    ),
    "correlated": (additive(Normal((2.0, 3.0), PAIR)), (BOTH,)),
    "one column of correlated": (additive(Normal((2.0,), ((1.0,),)), "a"), (SD_A,)),
    "mixture": (additive(Mixture((0.5, 0.5), ((-1.0, 1.0),) * 2, ((0.3, 0.3),) * 2)), (BOTH,)),
    "joint mixture": (additive(JointMixture((0.25,) * 4, UNIT_MEANS, 0.2, (1.0, 20.0), PAIR)), (BOTH,)),
    "turned mixture": (additive(RotatedMixture((0.5, 0.5), (-1, 1), (0.3, 0.3), (1.0, 2.0), PAIR)), (BOTH,)),
    "no noise at all": (additive(Normal((0.0, 0.0))), ()),
    "table": (Transition(("a",), ("x", "y"), ("x", "y"), ((0.8, 0.2), (0.4, 0.6))), ()),
    "classes": (Classes(("a",), (0.0,), ("low", "high")), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_every_law_declares_its_unknowns(name):
    law, expected = CASES[name]
    assert unknowns_of(law) == expected


def test_a_chain_has_the_unknowns_of_its_sum():
    chain = follow(additive(Normal((1.5, 4.0))), additive(Normal((2.0, 3.0))))
    assert [unknown.value for unknown in unknowns_of(chain)] == [2.5, 5.0]
    assert isinstance(with_values(chain, [1.0, 1.0]), Additive)


def drawn(law, truths):
    x = np.repeat(np.array(truths), 5, axis=0)
    shift = np.linspace(-1.5, 1.5, len(x))[:, None] * np.ones(x.shape[1])
    return np.where(np.isnan(x), np.nan, x + shift), x


def densities(law, z, x):
    outlets = getattr(law, "outlets", ())
    for j, outlet in enumerate(outlets):
        z[:, j] = outlet.leave(z[:, j].copy(), x[:, j])
    return law.logpdf(z, x)


def test_the_card_s_values_give_the_card_s_law(example):
    law = combined_of(example.law)
    if isinstance(law, Transition | Classes):
        assert with_values(law, []) is law
        return
    z, x = drawn(law, example.truths)
    again = with_values(law, [unknown.value for unknown in unknowns_of(law)])
    np.testing.assert_allclose(densities(again, z.copy(), x), densities(law, z.copy(), x), rtol=1e-12)


def test_other_values_stretch_the_noise(example):
    law = combined_of(example.law)
    if not isinstance(law, Additive):
        return
    doubled = with_values(law, [2 * unknown.value for unknown in unknowns_of(law)])
    x = np.array(example.truths)
    for one, two, j in ((law, doubled, j) for j in range(len(law.columns))):
        spreads = [
            1.0 if not one.spreads or s.spreads[j] is None else s.spreads[j].factor(x[:, j])
            for s in (one, two)
        ]
        sds = [
            np.sqrt(s.noise.covariance[j, j]) * spread for s, spread in zip((one, two), spreads, strict=True)
        ]
        np.testing.assert_allclose(sds[1], 2 * sds[0], rtol=1e-12)


def test_lognormal_bias_takes_its_values_in_order():
    law = SkewedBias(("a", "b"), 0.1, (2.0, 3.0), (NONE, NONE))
    assert with_values(law, [0.4, 5.0, 6.0]) == replace(law, bias_sd=0.4, sds=(5.0, 6.0))


@pytest.mark.parametrize("name", ["normal", "laplace", "power", "bias beside noise", "correlated", "mixture"])
def test_zero_is_no_noise(name):
    law, unknowns = CASES[name]
    silent = with_values(law, [0.0] * len(unknowns))
    x, z = np.array([[3.0, 4.0], [3.0, 4.0]]), np.array([[3.0, 4.0], [3.5, 4.0]])
    np.testing.assert_array_equal(silent.logpdf(z, x), [0.0, -np.inf])


def test_no_bias_leaves_the_noise():
    law = with_values(BIAS, [0.0, 2.0, 3.0])
    z, x = np.array([[3.0, 4.0], [7.0, -1.0]]), np.array([[100.0, 4.0], [5.0, 2.0]])
    np.testing.assert_allclose(law.logpdf(z, x), additive(Normal((2.0, 3.0))).logpdf(z, x), rtol=1e-13)


@pytest.mark.parametrize(
    "name", ["normal", "laplace", "power", "bias beside noise", "lognormal bias", "mixture"]
)
def test_independent_columns_are_split_and_multiply_to_the_law(name):
    law, _ = CASES[name]
    z, x = drawn(law, ((3.0, 9.0), (-2.0, np.nan)))
    apart = by_column(law)
    assert [one.columns for one in apart] == [("a",), ("b",)]
    parts = [one.logpdf(z[:, [j]], x[:, [j]]) for j, one in enumerate(apart)]
    np.testing.assert_allclose(np.sum(parts, axis=0), law.logpdf(z, x), rtol=1e-12)


@pytest.mark.parametrize("name", ["correlated", "joint mixture", "turned mixture", "table", "classes"])
def test_what_belongs_together_is_not_split(name):
    law, _ = CASES[name]
    assert by_column(law) == (law,)


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0, 3.0], [1.0, -1.0], [1.0, np.nan], [np.inf, 1.0]])
def test_values_that_no_unknown_has_are_refused(values):
    with pytest.raises(BadPlan, match="unknowns"):
        with_values(additive(Normal((2.0, 3.0))), values)
