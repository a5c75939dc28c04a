"""An intruder whose own values are wrong: how they are drawn, and p(z | x0) against quadrature and by hand."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import norm

from maskwell.attacks.bayes.own_error.error_law import (
    OwnError,
    draw_with_errors,
    erring_terms,
    error_from_dict,
    error_problems,
)
from maskwell.attacks.pair_density import law_terms, summed_logs
from maskwell.errors import BadPlan
from maskwell.keys import Key, Stream
from maskwell.laws import (
    Additive,
    Classes,
    Laplace,
    Mixture,
    Multiplicative,
    Normal,
    Outlet,
    Power,
    SkewedBias,
    Step,
    Transition,
)
from maskwell.masking.results import record_blocks
from maskwell.schema import Column, Schema
from maskwell.table import Table

from ...laws.conftest import PAIR
from .test_own_error_noise import JOINT

PLAIN = Outlet()
NODES, WEIGHTS = leggauss(24)
LETTERS = ("a", "b", "c")


def amounts(**columns) -> Table:
    described = tuple(Column(name, "continuous") for name in columns)
    return Table.from_frame(
        pa.table({n: np.asarray(v, float) for n, v in columns.items()}), Schema(described)
    )


def letters(values, categories=LETTERS, **rest) -> Table:
    column = Column("A", "category", categories=categories, **rest)
    return Table.from_frame(pa.table({"A": list(values)}), Schema((column,)))


def all_pairs(terms, z, x):
    """Known x released: the sum of the terms."""
    known, released = np.divmod(np.arange(len(z) * len(x)), len(z))
    return summed_logs(terms, released, known).reshape(len(x), len(z))


def keyed(table, seed=1) -> Stream:
    return Stream(Key.from_seed(seed), "s", "0", record_blocks(table))


# --- the plan ----------------------------------------------------------------------------------------------


def test_an_error_is_frozen_and_comes_back():
    error = OwnError(sds={"INCOME": 500, "AGE": 2.5}, wrong={"EDU": 0.1})
    assert error.columns == ("INCOME", "AGE", "EDU")
    assert error.to_dict() == {"sds": {"INCOME": 500.0, "AGE": 2.5}, "wrong": {"EDU": 0.1}}
    assert error_from_dict(error.to_dict()) == error
    assert len({error, OwnError(sds=(("INCOME", 500.0), ("AGE", 2.5)), wrong=(("EDU", 0.1),))}) == 1
    assert OwnError({"A": 1.0}).to_dict() == {"sds": {"A": 1.0}}
    own = OwnError({"A": 1.0}, population=len)
    assert own.to_dict() == {"sds": {"A": 1.0}, "population": "a function of the user's own"}
    with pytest.raises(BadPlan, match="population is a function"):
        error_from_dict(own.to_dict())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "at least one column"),
        ({"sds": {"A": 0.0}}, "an sd above 0"),
        ({"sds": {"A": -1.0}}, "an sd above 0"),
        ({"sds": {"A": np.inf}}, "finite number"),
        ({"sds": {"A": "big"}}, "finite number"),
        ({"sds": 3.0}, "a number for each column"),
        ({"wrong": {"A": 1.0}}, "above 0 and below 1"),
        ({"sds": {"A": 1.0}, "wrong": {"A": 0.5}}, "named twice"),
    ],
)
def test_an_error_that_makes_no_sense_is_refused(given, said):
    with pytest.raises(BadPlan, match=said):
        OwnError(**given)


def test_an_error_must_fit_the_fields(people):
    error = OwnError(sds={"INCOM": 5.0, "SEX": 1.0}, wrong={"AGE": 0.1})
    found = error_problems(error, ("INCOME", "SEX", "AGE"), people.schema)
    assert len(found) == 3
    assert "did you mean 'INCOME'" in found[0]
    assert "'SEX' holds no amounts" in found[1]
    assert "'AGE' holds no categories" in found[2]
    with pytest.raises(BadPlan, match="an error has no 'sd'"):
        error_from_dict({"sd": {"A": 1.0}})


# --- what he knows, drawn ----------------------------------------------------------------------------------


def test_only_open_values_of_the_named_columns_are_off(people):
    error = OwnError(sds={"INCOME": 500.0, "AGE": 2.0}, wrong={"EDU": 0.5})
    known = draw_with_errors(people, error, keyed(people))
    for name in people.names:
        np.testing.assert_array_equal(known.status(name), people.status(name))
        same = known.array(name).equals(people.array(name))
        assert same == (name not in error.columns)
    assert known.schema == people.schema
    assert (known.floats("INCOME") != people.floats("INCOME"))[people.is_open(["INCOME"])[:, 0]].all()


def test_what_he_knows_depends_on_the_key_and_the_record_alone(people):
    error = OwnError(sds={"INCOME": 500.0}, wrong={"EDU": 0.5})
    known, some = draw_with_errors(people, error, keyed(people)), np.array([7, 3, 100])
    assert draw_with_errors(people.take(some), error, keyed(people).at(some)) == known.take(some)
    assert draw_with_errors(people, error, keyed(people, 2)) != known
    assert not np.array_equal(keyed(people).words("INCOME", "error"), keyed(people).words("INCOME")), (
        "the masks draw from the same words"
    )


def test_errors_have_the_size_that_was_said(make_amounts):
    table = make_amounts(20_000)
    off = draw_with_errors(table, OwnError({"A": 3.0}), keyed(table)).floats("A") - table.floats("A")
    assert abs(off.mean()) < 4 * 3 / np.sqrt(20_000)
    assert abs(off.var() / 9 - 1) < 4 * np.sqrt(2 / 20_000)
    assert abs(np.mean(np.abs(off) < 3) - 0.6826895) < 4 * np.sqrt(0.6827 * 0.3173 / 20_000)


def test_wrong_categories_are_as_often_one_as_another():
    count = 30_000
    table = letters(["a", "b", "c"] * (count // 3))
    before, after = (
        table.floats("A"),
        draw_with_errors(table, OwnError(wrong={"A": 0.2}), keyed(table)).floats("A"),
    )
    step = (after - before) % 3
    for code, share in ((0, 0.8), (1, 0.1), (2, 0.1)):
        assert abs(np.mean(step == code) - share) < 4 * np.sqrt(share * (1 - share) / count)
    alone = letters(["a"] * 5, categories=("a",))
    assert draw_with_errors(alone, OwnError(wrong={"A": 0.9}), keyed(alone)) == alone


# --- p(z | x0) against quadrature --------------------------------------------------------------------------

SPREAD = {"noise": Normal((1.0,)), "outlets": (PLAIN,)}
LAWS = {
    "normal": Additive(("A",), Normal((2.0,)), (PLAIN,), slope=0.8, offsets=(10.0,)),
    "rounded and clamped": Additive(("A",), Normal((2.0,)), (Outlet(Fraction(5), low=0.0, high=60.0),)),
    "laplace": Additive(("A",), Laplace((2.0,)), (PLAIN,)),
    "laplace on a unit": Additive(("A",), Laplace((2.0,)), (Outlet(Fraction(5)),)),
    "mixture": Additive(("A",), Mixture((0.3, 0.7), ((-3.0, 1.0),), ((0.5, 1.0),)), (PLAIN,)),
    "only rounded": Additive(("A",), Normal((0.0,)), (Outlet(Fraction(5)),)),
    "bias": Additive(("A",), spreads=(Multiplicative(0.1, 1.5),), **SPREAD),
    "clamped bias": Additive(
        ("A",),
        Normal((1.0,)),
        (Outlet(Fraction(1), low=0.0, high=60.0),),
        spreads=(Multiplicative(0.1, 1.5),),
    ),
    "coarse bias": Additive(
        ("A",), Normal((1.0,)), (Outlet(Fraction(10)),), spreads=(Multiplicative(0.01, 0.3),)
    ),
    "power": Additive(("A",), spreads=(Power(0.5, 1.0),), **SPREAD),
    "steps": Additive(("A",), spreads=(Step((45.0, 55.0), (0.5, 2.0, 4.0)),), **SPREAD),
    "steps of laplace": Additive(
        ("A",), Laplace((1.0,)), (PLAIN,), spreads=(Step((45.0, 55.0), (0.5, 2.0, 4.0)),)
    ),
    "log": Additive(("A",), Normal((0.2,)), (Outlet(log_shift=1.0),), mean_corrected=True),
    "skewed bias": SkewedBias(("A",), 0.2, (1.5,), (PLAIN,)),
}
RELEASED, KNOWN = np.array([0.0, 20.0, 45.0, 50.0, 60.0]), np.array([2.0, 48.0, 52.0])


def by_quadrature(law, z, known, sd):
    """The integral of the law over true values around a known one, on many panels cut wherever anything bends."""
    shift = law.outlets[0].log_shift
    least = -np.inf if shift is None else -shift
    low, high = max(min(known - 12 * sd, z - 15), least), max(known + 12 * sd, z + 15)
    cuts = [-1, 0, 1, 42.5, 45, 47.5, 52.5, 55, z - 2.5, z - 0.5, z, z + 0.5, z + 2.5, known]
    cuts = np.unique(np.clip([*cuts, *np.linspace(low, high, 100)], low, high))
    half, middle = np.diff(cuts)[:, None] / 2, ((cuts[1:] + cuts[:-1]) / 2)[:, None]
    true, weights = (middle + half * NODES).ravel(), np.log((half * WEIGHTS).ravel())
    logs = law.logpdf(np.full((len(true), 1), z), true[:, None]) + norm.logpdf(true, known, sd) + weights
    return logsumexp(logs) - (0.0 if shift is None else norm.logsf(least, known, sd))


@pytest.mark.parametrize("sd", [0.4, 4.0, 15.0])
@pytest.mark.parametrize("name", LAWS)
def test_the_law_is_averaged_over_what_a_known_value_may_stand_for(name, sd):
    law = LAWS[name]
    z, x = amounts(A=RELEASED), amounts(A=KNOWN)
    found = all_pairs(erring_terms([law], z, x, OwnError({"A": sd})), z, x)
    expected = np.array([[by_quadrature(law, one, known, sd) for one in RELEASED] for known in KNOWN])
    likely = expected > -30
    assert likely.sum() >= 3
    np.testing.assert_allclose(found[likely], expected[likely], rtol=0, atol=2e-5 if name == "log" else 5e-6)
    assert (found[~likely] < -25).all()
    assert not np.isnan(found).any()


@pytest.mark.parametrize("outlet", [PLAIN, Outlet(Fraction(2), low=-4.0)])
@pytest.mark.parametrize("name", JOINT)
def test_an_error_adds_to_correlated_noise(name, outlet):
    law = Additive(("A", "B"), JOINT[name], (outlet, PLAIN))
    z, x = amounts(A=[-4.0, 0.0, 2.0, 6.0], B=[-1.0, 0.3, 0.5, 2.0]), amounts(A=[0.5], B=[0.2])
    found = all_pairs(erring_terms([law], z, x, OwnError({"A": 1.5})), z, x)[0]
    edges = np.linspace(0.5 - 12, 0.5 + 12, 301)
    true = ((edges[1:] + edges[:-1])[:, None] / 2 + 0.04 * NODES).ravel()
    weights = np.tile(np.log(0.04 * WEIGHTS), 300) + norm.logpdf(true, 0.5, 1.5)
    pairs = np.column_stack([true, np.full(len(true), 0.2)])
    for i, one in enumerate(z.values(["A", "B"])):
        expected = logsumexp(law.logpdf(np.tile(one, (len(true), 1)), pairs) + weights)
        assert found[i] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("name", ["rounded and clamped", "clamped bias", "laplace on a unit", "coarse bias"])
def test_all_that_may_be_released_has_probability_one(name):
    law = LAWS[name]
    unit = float(law.outlets[0].unit)
    low, high = (0.0, 60.0) if "clamped" in name else (-80.0, 160.0)
    grid = np.arange(low, high + unit, unit)
    z, x = amounts(A=grid), amounts(A=[3.0, 40.0])
    chance = np.exp(all_pairs(erring_terms([law], z, x, OwnError({"A": 4.0})), z, x))
    is_limit = np.isin(grid, (low, high)) & ("clamped" in name)
    # a fine unit is a density at the middle of its interval: see FINE in laws.transform
    close = 1e-3 if name == "clamped bias" else 1e-6
    np.testing.assert_allclose((chance * np.where(is_limit, 1.0, unit)).sum(axis=1), 1.0, atol=close)


def test_columns_without_an_error_keep_their_law(make_amounts):
    table = make_amounts(12)
    bias = Additive(
        ("A", "B"),
        Normal((1.0, 1.0)),
        (PLAIN, PLAIN),
        spreads=(Multiplicative(0.3, 0.5), Multiplicative(0.1, 0.2)),
    )
    both = all_pairs(erring_terms([bias], table, table, OwnError({"A": 0.7})), table, table)
    alone = [
        Additive((n,), Normal((1.0,)), (PLAIN,), spreads=(s,))
        for n, s in zip("AB", bias.spreads, strict=True)
    ]
    first = all_pairs(erring_terms(alone[:1], table, table, OwnError({"A": 0.7})), table, table)
    second = all_pairs(law_terms(alone[1:], table, table), table, table)
    np.testing.assert_allclose(both, first + second, rtol=1e-12)


@pytest.mark.parametrize("name", ["normal", "bias", "log", "skewed bias", "power", "coarse bias"])
def test_a_tiny_error_changes_nothing(name):
    z, x = amounts(A=RELEASED[1:]), amounts(A=KNOWN)
    found = all_pairs(erring_terms([LAWS[name]], z, x, OwnError({"A": 1e-7})), z, x)
    exact = all_pairs(law_terms([LAWS[name]], z, x), z, x)
    likely = exact > -50
    assert likely.sum() > 3
    np.testing.assert_allclose(found[likely], exact[likely], atol=1e-6)


# --- categories, classes, statuses -------------------------------------------------------------------------


def test_wrong_categories_mix_the_rows_of_a_transition():
    matrix = ((0.7, 0.2, 0.1), (0.0, 1.0, 0.0), (0.3, 0.3, 0.4))
    law = Transition(("A",), LETTERS, LETTERS, matrix)
    table = letters(["a", "b", "c", "?"], missing=("?",))
    found = np.exp(all_pairs(erring_terms([law], table, table, OwnError(wrong={"A": 0.2})), table, table))
    rows = np.array(matrix)
    by_hand = [0.8 * rows[i] + 0.1 * (rows.sum(axis=0) - rows[i]) for i in range(3)]
    np.testing.assert_allclose(found[:3, :3], by_hand, rtol=1e-12)
    np.testing.assert_array_equal(found[3], [0, 0, 0, 1])
    np.testing.assert_array_equal(found[:3, 3], 0)


def test_wrong_categories_mix_noise_on_codes():
    outlet = Outlet(Fraction(1), low=0.0, high=2.0)
    law = Additive(("A",), Normal((0.8,)), (outlet,), categories=(LETTERS,))
    table = letters(LETTERS)
    exact = np.exp(all_pairs(law_terms([law], table, table), table, table))
    found = np.exp(all_pairs(erring_terms([law], table, table, OwnError(wrong={"A": 0.3})), table, table))
    mixed = 0.7 * np.eye(3) + 0.15 * (1 - np.eye(3))
    np.testing.assert_allclose(found, mixed @ exact, rtol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)


def test_a_class_has_the_probability_that_the_true_value_lies_in_it():
    law = Classes(("A",), (40.0, 60.0), LETTERS)
    column = Column("A", "continuous", top=90)
    x = Table.from_frame(pa.table({"A": [30.0, 50.0, 90.0]}), Schema((column,)))
    found = all_pairs(erring_terms([law], letters(LETTERS), x, OwnError({"A": 10.0})), letters(LETTERS), x)
    np.testing.assert_allclose(
        found[0], [log_ndtr(1.0), np.log(ndtr(3) - ndtr(1)), log_ndtr(-3.0)], rtol=1e-12
    )
    np.testing.assert_array_equal(found[2], [-np.inf, -np.inf, 0.0])  # a top code is known, and lies above 60


@pytest.mark.parametrize("spread", [None, Multiplicative(0.1, 3.0)])
def test_statuses_are_known_without_error(spread):
    """A value that the mask itself coded can come from an open one, other closed values from their like alone."""
    noise, spreads = (Normal((5.0,)), ()) if spread is None else (Normal((1.0,)), (spread,))
    law = Additive(("A",), noise, (Outlet(high=90.0, high_coded=True),), spreads=spreads)
    schema = Schema((Column("A", "continuous", top=90, missing=(-9,)),))
    z = Table.from_frame(pa.table({"A": [80.0, 90.0, -9.0]}), schema)
    x = Table.from_frame(pa.table({"A": [85.0, 90.0, -9.0]}), schema)
    found = all_pairs(erring_terms([law], z, x, OwnError({"A": 2.0})), z, x)
    if spread is None:
        sd = np.hypot(5.0, 2.0)
        np.testing.assert_allclose(
            found[0, :2], [norm.logpdf(80, 85, sd), norm.logsf(90, 85, sd)], rtol=1e-12
        )
    assert np.isfinite(found[0, :2]).all()
    np.testing.assert_array_equal(found[1:], [[-np.inf, 0, -np.inf], [-np.inf, -np.inf, 0]])
    assert found[0, 2] == -np.inf


# --- columns in clear --------------------------------------------------------------------------------------


def test_a_column_in_clear_is_weighed_by_how_far_it_lies():
    z, x = amounts(A=[1.0, 2.0, 2.0, 7.0]), amounts(A=[1.8, 6.0])
    found = all_pairs(erring_terms([], z, x, OwnError({"A": 0.5}), clear=["A"]), z, x)
    density = norm.pdf(np.array([1.8, 6.0])[:, None], [1.0, 2.0, 2.0, 7.0], 0.5)
    np.testing.assert_allclose(np.exp(found), density / density.mean(axis=1, keepdims=True), rtol=1e-12)


def test_whole_numbers_in_clear_are_off_by_whole_numbers():
    schema = Schema((Column("A", "integer"),))
    table = Table.from_frame(pa.table({"A": [40, 41, 43]}), schema)
    found = np.exp(all_pairs(erring_terms([], table, table, OwnError({"A": 0.4}), clear=["A"]), table, table))
    gap = np.abs(np.subtract.outer([40, 41, 43], [40, 41, 43]))
    chance = ndtr((0.5 - gap) / 0.4) - ndtr((-0.5 - gap) / 0.4)
    np.testing.assert_allclose(found, chance / chance.mean(axis=1, keepdims=True), rtol=1e-9)


def test_categories_in_clear_are_right_but_for_the_wrong_ones():
    table = letters(["a", "a", "b", "c", "?"], missing=("?",))
    terms = erring_terms([], table, table, OwnError(wrong={"A": 0.2}), clear=["A", "B"])
    found = np.exp(all_pairs(terms, table, table))
    common = (2 * 0.8 + 0.1 + 0.1) / 5
    np.testing.assert_allclose(
        found[0], [0.8 / common, 0.8 / common, 0.1 / common, 0.1 / common, 0], rtol=1e-12
    )
    np.testing.assert_allclose(found[4], [0, 0, 0, 0, 5], rtol=1e-12)
    np.testing.assert_allclose(found.mean(axis=1), 1.0, rtol=1e-12)


def test_many_values_in_clear_are_taken_together():
    rng = np.random.default_rng(4)
    values = rng.normal(50, 10, 5000)
    z, x = amounts(A=values), amounts(A=[30.0, 50.0, 66.0])
    found = all_pairs(erring_terms([], z, x, OwnError({"A": 1.0}), clear=["A"]), z, x)
    np.testing.assert_allclose(np.exp(found).mean(axis=1), 1.0, rtol=0.01)


def test_clear_columns_with_errors_give_probabilities_that_come_true():
    """Ages in clear with many ties, known with an error: where he says p, he is right in p of the cases."""
    rng = np.random.default_rng(8)
    said, right = [], []
    for seed in range(40):
        ages = rng.binomial(60, 0.5, 60) + rng.integers(0, 2, 60) * 20
        schema = Schema((Column("A", "integer"),))
        truth = Table.from_frame(pa.table({"A": ages}), schema)
        known, error = draw_with_errors(truth, OwnError({"A": 1.0}), keyed(truth, seed)), OwnError({"A": 1.0})
        weights = np.exp(all_pairs(erring_terms([], truth, known, error, clear=["A"]), truth, known))
        posterior = weights / weights.sum(axis=1, keepdims=True)
        said.append(posterior.max(axis=1).sum())
        right.append((posterior.argmax(axis=1) == np.arange(60)).sum())
    gap = np.array(right) - np.array(said)
    # ties go to the first of the alike, which is the target's own as often as any other's
    assert abs(gap.mean()) < 4 * gap.std(ddof=1) / np.sqrt(len(gap))
    assert np.mean(said) > 2


# --- what cannot be done -----------------------------------------------------------------------------------


def test_what_cannot_be_averaged_over_is_refused():
    table = amounts(A=[1.0, 2.0], B=[1.0, 2.0])
    log = (Outlet(log_shift=0.0),) * 2
    correlated = Additive(("A", "B"), Normal((1.0, 1.0), PAIR), log)
    with pytest.raises(BadPlan, match="'A' does not add to correlated noise on a log scale"):
        erring_terms([correlated], table, table, OwnError({"A": 0.1}))
    unseen = Additive(("A",), Normal((1.0,)), (PLAIN,), spreads=(Step((1.5,), (0.0, 1.0)),))
    with pytest.raises(BadPlan, match="without noise and without a unit"):
        erring_terms([unseen], table, table, OwnError({"A": 0.1}))
    with pytest.raises(BadPlan, match="holds no categories"):
        erring_terms([correlated], table, table, OwnError(wrong={"A": 0.1}))
