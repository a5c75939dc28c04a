"""The kernels paper and fms as factors of pairs, and the density of who was not released."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import cauchy, multivariate_normal, multivariate_t, norm
from scipy.stats import t as student

import maskwell as mw
from maskwell.attacks.bayes.bias_likelihood.absent_records import (
    Student,
    log_unreleased,
    log_unreleased_with_error,
    student_plus_normal,
)
from maskwell.attacks.bayes.bias_likelihood.kernels import KINDS, biased_terms, card_node
from maskwell.attacks.bayes.bias_likelihood.quadrature import WholeLine, log_integrals
from maskwell.attacks.bayes.unknown_noise.integral import over_shared, shared_nodes
from maskwell.attacks.bayes.unknown_noise.priors import Prior
from maskwell.attacks.pair_density import law_terms, laws_on, summed_logs
from maskwell.errors import BadInput, BadPlan, NoLaw
from maskwell.kernels import bias_density
from maskwell.kernels.bias_density import bias_log, log_bias
from maskwell.laws import Additive, Laplace, Multiplicative, Normal, Outlet, Power
from maskwell.laws.unknowns import with_values

NAMES = ("paper", "fms")
POINT = Outlet()


def table(**columns):
    """Make a table of amounts; NaN is a missing value."""
    arrays = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
    return mw.Table.from_frame(pa.table(arrays))


def biased(columns, bias_sd, sds, outlets=None):
    spreads = tuple(Multiplicative(bias_sd, sd) for sd in sds)
    return Additive(columns, Normal((1.0,) * len(sds)), outlets or (POINT,) * len(sds), spreads=spreads)


def plain(columns, *sds, correlations=(), outlets=None, **rest):
    return Additive(columns, Normal(sds, correlations), outlets or (POINT,) * len(sds), **rest)


def all_pairs(laws, z, x, name, nodes_of=None):
    """True x released: the log kernel of all pairs."""
    numbers = np.indices((len(x), len(z))).reshape(2, -1)
    terms = biased_terms(laws, z, x, name, nodes_of)
    return summed_logs(terms, numbers[1], numbers[0]).reshape(len(x), len(z))


@pytest.fixture(scope="module")
def sides():
    """Released and true amounts of two columns, with missing ones."""
    rng = np.random.default_rng(4)
    x = rng.normal(50, 20, (30, 2))
    z = x * rng.normal(1, 0.3, (30, 2)) + rng.normal(0, 8, (30, 2))
    x[:5, 0], z[3:9, 0] = np.nan, np.nan
    return table(A=z[:, 0], B=z[:, 1]), table(A=x[:, 0], B=x[:, 1])


def by_hand(sides, bias_sd, sds, name):
    """True x released: the kernel of each column where both values are open, 0 where both are missing."""
    total = 0.0
    for column, sd in zip("AB", sds, strict=True):
        z, x = sides[0].floats(column), sides[1].floats(column)
        far, near = (part.ravel() for part in np.meshgrid(x, z, indexing="ij"))
        logs = bias_log(near, far, bias_sd, sd, KINDS[name])
        logs = np.where(np.isnan(near) & np.isnan(far), 0.0, np.where(np.isnan(near - far), -np.inf, logs))
        total = total + logs.reshape(len(x), len(z))
    return total


# --- factors of pairs --------------------------------------------------------------------------------------


def test_kinds_are_numbered_as_in_the_kernels():
    assert KINDS == {"paper": bias_density.PAPER, "fms": bias_density.FMS}


@pytest.mark.parametrize("name", NAMES)
def test_pairs_have_the_kernel_of_each_column_and_the_same_statuses(sides, name):
    got = all_pairs([biased(("A", "B"), 0.3, (8.0, 2.0))], *sides, name)
    expected = by_hand(sides, 0.3, (8.0, 2.0), name)
    np.testing.assert_allclose(got, expected, rtol=1e-13)
    assert np.isneginf(got).sum() == 5 * 24 + 25 * 6


@pytest.mark.parametrize("name", NAMES)
def test_noise_that_is_the_same_for_all_values_is_forward(sides, name):
    turned = ((1.0, 0.7), (0.7, 1.0))
    numbers = np.indices((30, 30)).reshape(2, -1)
    for law in (
        plain(("A", "B"), 8.0, 2.0),
        plain(("A", "B"), 8.0, 2.0, correlations=turned),
        plain(("A", "B"), 8.0, 2.0, correlations=turned, slope=0.8, offsets=(1.0, -3.0)),
    ):
        forward = summed_logs(law_terms([law], *sides), numbers[1], numbers[0]).reshape(30, 30)
        np.testing.assert_allclose(all_pairs([law], *sides, name), forward, rtol=1e-12)


def test_correlated_noise_is_the_normal_density_of_the_difference():
    rng = np.random.default_rng(1)
    z, x = (rng.normal(0, 3, (6, 2)) for _ in range(2))
    law = plain(("A", "B"), 2.0, 0.5, correlations=((1.0, -0.6), (-0.6, 1.0)))
    got = all_pairs([law], table(A=z[:, 0], B=z[:, 1]), table(A=x[:, 0], B=x[:, 1]), "paper")
    expected = multivariate_normal([0, 0], law.noise.covariance).logpdf(z[None] - x[:, None])
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_on_the_log_scale_the_kernel_is_that_of_the_logs():
    z, x = table(A=[1.0, 5.0, 900.0]), table(A=[2.0, 700.0])
    for law in (
        plain(("A",), 0.4, outlets=(Outlet(log_shift=3.0),)),
        plain(("A",), 0.4, correlations=((1.0,),), outlets=(Outlet(log_shift=3.0),)),
    ):
        expected = norm.logpdf(np.log([4.0, 8.0, 903.0]), np.log([[5.0], [703.0]]), 0.4)
        np.testing.assert_allclose(all_pairs([law], z, x, "paper"), expected, rtol=1e-12)


def test_correlated_columns_on_the_log_scale_have_no_jacobian():
    both = ((1.0, 0.5), (0.5, 1.0))
    law = plain(("A", "B"), 0.4, 0.3, correlations=both, outlets=(Outlet(log_shift=0.0), POINT))
    got = all_pairs([law], table(A=[2.0, 9.0], B=[1.0, 2.0]), table(A=[3.0], B=[1.5]), "fms")
    away = np.column_stack([np.log([2 / 3, 3.0]), [-0.5, 0.5]])
    expected = multivariate_normal([0, 0], law.noise.covariance).logpdf(away)
    np.testing.assert_allclose(got[0], expected, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_without_noise_values_are_the_same_or_impossible(name):
    z, x = table(A=[1.0, 2.0, np.nan], B=[5.0, 6.0, 6.0]), table(A=[1.2, 2.0, np.nan], B=[5.0, 5.0, 6.0])
    on_unit = Outlet(unit=Fraction(1))
    laws = [biased(("A", "B"), 0.0, (0.0, 1.0), (on_unit, POINT))]
    inf = np.inf
    expected = norm.logpdf([[0.0, 1.0, 1.0], [0.0, 1.0, 1.0], [-1.0, 0.0, 0.0]])
    same = np.array([[0.0, -inf, -inf], [-inf, 0.0, -inf], [-inf, -inf, 0.0]])
    np.testing.assert_allclose(all_pairs(laws, z, x, name), expected + same)


@pytest.mark.parametrize("name", NAMES)
def test_a_correlated_law_may_have_columns_without_noise(name):
    three = ((1.0, 0.0, 0.5), (0.0, 1.0, 0.0), (0.5, 0.0, 1.0))
    law = plain(("A", "B", "C"), 1.0, 0.0, 2.0, correlations=three)
    z, x = table(A=[1.0, 1.0], B=[7.0, 8.0], C=[0.0, 0.0]), table(A=[0.0], B=[7.0], C=[1.0])
    expected = multivariate_normal([0, 0], [[1.0, 1.0], [1.0, 4.0]]).logpdf([1.0, -1.0])
    np.testing.assert_allclose(all_pairs([law], z, x, name), [[expected, -np.inf]], rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_what_was_not_told_is_averaged_column_by_column(sides, name):
    law = biased(("A", "B"), 0.3, (8.0, 2.0))
    nodes = np.array([0.2, 0.3, 0.5]), np.array([6.0, 9.0, 2.0]), np.log([0.2, 0.5, 0.3])
    got = all_pairs([law], *sides, name, lambda law, j: nodes)
    total = 0.0
    for column in "AB":
        each = [
            w + all_pairs([biased((column,), phi, (sd,))], *sides, name)
            for phi, sd, w in zip(*nodes, strict=True)
        ]
        total = total + logsumexp(each, axis=0)
    np.testing.assert_allclose(got, total, rtol=1e-12)


def test_a_shared_unknown_is_averaged_over_all_its_columns(sides):
    law = plain(("A", "B"), 8.0, 2.0, correlations=((1.0, 0.7), (0.7, 1.0)))
    prior, numbers = Prior(mean_over_sd=5.0), np.indices((30, 30)).reshape(2, -1)
    terms = over_shared(
        law, prior, sides[0], 9, lambda at, nodes_of: biased_terms([at], *sides, "paper", nodes_of)
    )
    nodes = shared_nodes(law, prior, sides[0], 9)
    each = [w + summed_logs(law_terms([at], *sides), numbers[1], numbers[0]) for w, at, _ in nodes]
    assert len(nodes) == 9
    np.testing.assert_allclose(
        summed_logs(terms, numbers[1], numbers[0]), logsumexp(each, axis=0), rtol=1e-12
    )


def test_the_card_is_one_node():
    law = with_values(biased(("A", "B"), 0.1, (5.0, 2.0)), [0.1, 5.0, 0.2, 3.0])
    assert [float(part[0]) for part in card_node(law, 1)] == [0.2, 3.0, 0.0]
    doubled = replace(law, noise=Normal((2.0, 2.0)))
    assert [float(part[0]) for part in card_node(doubled, 0)] == [0.2, 10.0, 0.0]
    assert [float(part[0]) for part in card_node(plain(("A",), 4.0), 0)] == [0.0, 4.0, 0.0]


# --- what the kernels cannot do ----------------------------------------------------------------------------

REFUSED = {
    "another form": Additive(("A",), Laplace((1.0,)), (POINT,)),
    "grows otherwise": plain(("A",), 1.0, spreads=(Power(0.5),)),
    "clamped at a limit": biased(("A",), 0.1, (1.0,), (Outlet(low=0.0),)),
    "coded at a limit": biased(("A",), 0.1, (1.0,), (Outlet(high=9.0, high_coded=True),)),
    "coarse beside its noise": biased(("A",), 0.1, (1.0,), (Outlet(unit=Fraction(1)),)),
    "on the log scale": biased(("A",), 0.1, (1.0,), (Outlet(log_shift=1.0),)),
    "codes of its categories": plain(("A",), 1.0, categories=(("a", "b"),)),
}


@pytest.mark.parametrize("why", REFUSED)
def test_other_laws_are_refused_in_one_sentence(why):
    one = table(A=[1.0, 2.0])
    with pytest.raises(NoLaw, match=why) as refused:
        biased_terms([REFUSED[why]], one, one, "paper")
    assert "'A'" in str(refused.value)
    assert "kernel 'coherent' works" in str(refused.value)
    assert len(refused.value.problems) == 1


def test_coarse_units_are_judged_where_values_are_and_fine_ones_pass():
    z, x = table(A=[90.0, 110.0]), table(A=[100.0, np.nan])
    fine = biased(("A",), 0.3, (0.0,), (Outlet(unit=Fraction(1)),))
    np.testing.assert_allclose(
        all_pairs([fine], z, x, "fms")[0], norm.logpdf(100.0, [90.0, 110.0], [27.0, 33.0]), rtol=1e-13
    )
    with pytest.raises(NoLaw, match="coarse"):
        biased_terms([fine], z, table(A=[100.0, 2.0]), "fms")
    logs = plain(("A",), 0.3, outlets=(Outlet(unit=Fraction(1), log_shift=0.0),))
    biased_terms([logs], z, x, "paper")
    with pytest.raises(NoLaw, match="coarse"):
        biased_terms([logs], table(A=[1.0, 110.0]), x, "paper")


def test_other_misuses_are_refused():
    one = table(A=[1.0, 2.0], B=[1.0, 3.0])
    with pytest.raises(BadPlan, match="no kernel 'coherent'"):
        biased_terms([plain(("A",), 1.0)], one, one, "coherent")
    law = plain(("A", "B"), 1.0, 1.0, correlations=((1.0, 0.5), (0.5, 1.0)))
    with pytest.raises(BadPlan, match="share the scale"):
        biased_terms([law], one, one, "paper", card_node)
    grows = replace(law, spreads=(Multiplicative(0.1, 1.0),) * 2)
    with pytest.raises(NoLaw, match="correlated noise that grows"):
        biased_terms([grows], one, one, "paper")


def test_categories_are_refused(make_people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.Pram(("EDU",), stay=0.8), make_people(40), seed=1)
    laws = laws_on(masking.release.card, ["EDU"])
    with pytest.raises(NoLaw, match=r"'EDU'.*kernel 'coherent' works"):
        biased_terms(laws, masking.release.table, masking.truth, "paper")


# --- who was not released ----------------------------------------------------------------------------------


def log_student(z, freedom, centre, scale):
    """Student's t in plain arithmetic: scipy's own is slow for single numbers."""
    more = (freedom + 1) / 2
    constant = (
        math.lgamma(more) - math.lgamma(freedom / 2) - math.log(math.pi * freedom) / 2 - math.log(scale)
    )
    return constant - more * math.log1p(((z - centre) / scale) ** 2 / freedom)


def averaged(kind, x0, phi, sd, released):
    """Integrate the kernel over the predictive law of the released values by scipy."""
    count, centre, sample_sd = len(released), released.mean(), released.std(ddof=1)
    law = count - 1, centre, sample_sd * math.sqrt(1 + 1 / count)
    width = math.hypot(sd, phi * x0)
    cuts = [0.0, *(x0 + width * step for step in range(-9, 10, 3)), centre - sample_sd, centre + sample_sd]
    return by_scipy(lambda z: math.exp(log_bias(z, x0, phi, sd, kind) + log_student(z, *law)), cuts)


def by_scipy(density, cuts):
    ends = itertools.pairwise([-np.inf, *np.unique(cuts), np.inf])
    return math.fsum(quad(density, a, b, epsabs=1e-14, epsrel=1e-10, limit=200)[0] for a, b in ends)


def test_the_predictive_law_is_a_t():
    values = np.array([3.0, 4.0, 8.0, 1.0, 2.5])
    law, at = Student.of(values, ["A"]), np.array([-100.0, 0.0, 3.3, 1e6])
    expected = student(4, values.mean(), values.std(ddof=1) * math.sqrt(1.2)).logpdf(at)
    np.testing.assert_allclose(law.logpdf(at), expected, rtol=1e-12)
    np.testing.assert_allclose([log_student(z, 4, law.centre, law.scale) for z in at], expected, rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("phi", "sd"), [(0.08, 1.0), (0.4, 5.0), (0.0, 3.0), (0.2, 0.0), (1.5, 2.0), (0.01, 0.02)]
)
def test_the_density_of_who_was_not_released_equals_quadrature(name, phi, sd):
    for count in (3, 60):
        released = np.random.default_rng(2).normal(10, 4, count)
        x = np.array([11.0, 3.0, -2.0, 25.0])
        law = biased(("A",), phi, (sd,))
        got, error = log_unreleased_with_error([law], table(A=released), table(A=x), name)
        expected = [math.log(averaged(KINDS[name], x0, phi, sd, released)) for x0 in x]
        assert error <= 1e-8
        np.testing.assert_allclose(got, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_the_density_of_who_was_not_released_is_a_law_of_x(name):
    released = table(A=np.random.default_rng(2).normal(100, 20, 40))
    x = np.linspace(-500, 900, 5001)
    logs = log_unreleased([biased(("A",), 0.1, (5.0,))], released, table(A=x), name)
    assert np.trapezoid(np.exp(logs), x) == pytest.approx(1.0, abs=1e-6)


def test_what_was_not_told_is_averaged_there_too():
    released, x = table(A=np.random.default_rng(2).normal(10, 4, 25)), table(A=[9.0, 30.0])
    nodes = np.array([0.2, 0.0]), np.array([1.0, 3.0]), np.log([0.25, 0.75])
    got = log_unreleased([biased(("A",), 0.1, (1.0,))], released, x, "paper", lambda law, j: nodes)
    each = [
        w + log_unreleased([biased(("A",), phi, (sd,))], released, x, "paper")
        for phi, sd, w in zip(*nodes, strict=True)
    ]
    np.testing.assert_allclose(got, logsumexp(each, axis=0), atol=1e-8)


def test_far_from_all_released_values_it_neither_breaks_nor_vanishes():
    released = table(A=np.random.default_rng(2).normal(10, 4, 2000))
    logs, error = log_unreleased_with_error(
        [biased(("A",), 0.1, (1.0,))], released, table(A=[1e3, -1e5, 1e9]), "paper"
    )
    assert np.isfinite(logs).all()
    assert error <= 1e-8
    assert (np.diff(logs) < 0).all()


def test_statuses_have_their_share_and_unseen_ones_count_as_one_more():
    law = plain(("A", "B"), 1.0, 1.0)
    released = table(A=[1.0, 2.0, np.nan, 4.0], B=[1.0, 2.0, 3.0, 4.0])
    known = table(A=[np.nan, 2.0, 2.0], B=[2.0, 2.0, np.nan])
    got = log_unreleased([law], released, known, "paper")
    a = math.log(averaged(bias_density.PAPER, 2.0, 0.0, 1.0, np.array([1.0, 2.0, 4.0])))
    b = math.log(averaged(bias_density.PAPER, 2.0, 0.0, 1.0, np.array([1.0, 2.0, 3.0, 4.0])))
    expected = [math.log(1 / 4) + b, math.log(3 / 4) + a + b, math.log(3 / 4) + a + math.log(1 / 5)]
    np.testing.assert_allclose(got, expected, atol=1e-8)


def test_values_without_noise_have_their_share():
    released = table(A=[0.0, 0.0, 2.0, 3.0])
    known = table(A=[0.0, 2.0, 7.0])
    shares = np.log([1 / 2, 1 / 4, 1 / 5])
    np.testing.assert_allclose(
        log_unreleased([biased(("A",), 0.0, (0.0,))], released, known, "paper"), shares
    )
    for name in NAMES:  # nothing but bias leaves 0 as it is
        got = log_unreleased([biased(("A",), 0.2, (0.0,))], released, known, name)
        assert got[0] == pytest.approx(shares[0])
        expected = averaged(KINDS[name], 2.0, 0.2, 0.0, np.array([0.0, 0.0, 2.0, 3.0]))
        assert got[1] == pytest.approx(math.log(expected), abs=1e-8)


def test_of_a_constant_column_it_is_the_kernel_at_the_constant():
    got = log_unreleased([plain(("A",), 2.0)], table(A=[5.0, 5.0, 5.0]), table(A=[4.0]), "fms")
    np.testing.assert_allclose(got, norm.logpdf(4.0, 5.0, 2.0))


def test_too_few_released_values_are_refused():
    with pytest.raises(BadInput, match="'A' too few values were released"):
        log_unreleased([plain(("A",), 2.0)], table(A=[5.0]), table(A=[4.0]), "fms")


# --- correlated noise around a multivariate t --------------------------------------------------------------

SPREAD, NOISE = np.array([[4.0, 1.0], [1.0, 9.0]]), np.array([[1.0, 0.9], [0.9, 2.0]])


def test_student_plus_normal_has_its_limits():
    away = np.array([[0.0, 0.0], [3.0, -2.0], [40.0, 5.0], [-300.0, 900.0]])
    alone, error = student_plus_normal(away, SPREAD, 1e-14 * NOISE, 5.0)
    assert error <= 1e-8
    np.testing.assert_allclose(alone, multivariate_t([0, 0], SPREAD, 5.0).logpdf(away), atol=1e-8)
    noise, _ = student_plus_normal(away[:3], 1e-14 * SPREAD, NOISE, 5.0)
    near = np.array([0, 1])
    np.testing.assert_allclose(noise[near], multivariate_normal([0, 0], NOISE).logpdf(away[near]), atol=1e-8)
    many, _ = student_plus_normal(away[:2], SPREAD, NOISE, 1e9)
    np.testing.assert_allclose(many, multivariate_normal([0, 0], SPREAD + NOISE).logpdf(away[:2]), atol=1e-7)


@pytest.mark.parametrize("freedom", [1.0, 2.0, 30.0, 1000.0])
def test_student_plus_normal_in_one_dimension_equals_quadrature(freedom):
    away, spread, noise = np.array([0.0, 1.0, 6.0, 25.0]), 2.0, 0.5
    got, error = student_plus_normal(away[:, None], np.array([[spread]]), np.array([[noise]]), freedom)
    for x0, log in zip(away, got, strict=True):

        def ratio(z, x0=x0, log=log):
            normal = -0.5 * (x0 - z) ** 2 / noise - 0.5 * math.log(2 * math.pi * noise)
            return math.exp(log_student(z, freedom, 0.0, math.sqrt(spread)) + normal - log)

        cuts = [-4.0, 0.0, 0.3 * x0, 0.6 * x0, 0.8 * x0, 0.9 * x0, x0 - 5, x0, x0 + 5]
        assert by_scipy(ratio, cuts) == pytest.approx(1.0, abs=1e-8)
    assert error <= 1e-8


def test_student_plus_normal_in_two_dimensions_equals_a_sum_over_a_grid():
    steps = np.linspace(-8.0, 8.0, 161) * 1.5
    z = np.stack(np.meshgrid(3.0 + steps, -2.0 + steps, indexing="ij"), axis=-1)
    law, around = multivariate_t([0, 0], SPREAD, 4.0), multivariate_normal([3.0, -2.0], NOISE)
    expected = (law.pdf(z) * around.pdf(z)).sum() * (steps[1] - steps[0]) ** 2
    got, _ = student_plus_normal(np.array([[3.0, -2.0]]), SPREAD, NOISE, 4.0)
    assert math.exp(got[0]) == pytest.approx(expected, rel=1e-8)


def test_correlated_columns_have_one_predictive_law():
    rng = np.random.default_rng(7)
    z = rng.multivariate_normal([10, 20], [[9, 4], [4, 16]], 50)
    z[:3, 1] = np.nan
    law = plain(("A", "B"), 1.0, 2.0, correlations=((1.0, 0.8), (0.8, 1.0)))
    released, known = table(A=z[:, 0], B=z[:, 1]), table(A=[12.0, 12.0], B=[17.0, np.nan])
    got = log_unreleased([law], released, known, "paper")
    whole, freedom = z[3:], 45.0
    spread = np.cov(whole, rowvar=False) * (1 + 1 / 47) * 46 / freedom
    both, _ = student_plus_normal(
        np.array([[12.0, 17.0]]) - whole.mean(axis=0), spread, law.noise.covariance, freedom
    )
    first = math.log(averaged(bias_density.PAPER, 12.0, 0.0, 1.0, z[:, 0]))
    np.testing.assert_allclose(got, [both[0] + math.log(47 / 50), first + math.log(3 / 50)], atol=1e-8)


def test_columns_that_follow_from_each_other_are_refused():
    a = np.arange(9.0)
    law = plain(("A", "B"), 1.0, 2.0, correlations=((1.0, 1.0), (1.0, 1.0)))
    with pytest.raises(BadInput, match="follows from the others"):
        log_unreleased([law], table(A=a, B=2 * a), table(A=[1.0], B=[2.0]), "paper")


# --- quadrature --------------------------------------------------------------------------------------------


def test_quadrature_finds_heavy_tails_far_peaks_and_nothing():
    laws = [cauchy(3.0, 2.0), norm(-50.0, 1e-3), norm(1e6, 5.0)]
    line = WholeLine(
        np.array([[1.0, 3.0, 5.0], [-50.01, -50.0, -49.99], [0.0, 1e6, 2e6]]), np.array([2.0, 1e-3, 5.0])
    )

    def log_of(z, owner):
        return np.select([owner == i for i in range(3)], [law.logpdf(z) for law in laws])

    logs, error = log_integrals(log_of, line)
    np.testing.assert_allclose(logs, 0.0, atol=1e-9)
    assert error <= 1e-8
    nothing, error = log_integrals(lambda z, owner: np.full(len(z), -np.inf), line)
    assert np.isneginf(nothing).all()
    assert error == 0.0


# --- the whole intruder ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fraction", [None, 0.5])
def test_the_posterior_of_the_intruder_is_that_of_plain_sums(name, fraction):
    truth = table(A=np.random.default_rng(3).normal(90, 12, 60))
    mask = mw.BiasNoise(("A",), bias_sd=0.05, sd=4.0)
    chain = mask if fraction is None else mw.Chain((mask, mw.Subsample(fraction)))
    masking = mw.apply(chain, truth, seed=2, exact=True)
    released, law = masking.release.table, biased(("A",), 0.05, (4.0,))
    logs = all_pairs([law], released, truth, name)
    absent = np.full((60, 1), -np.inf)
    if fraction is not None:
        absent[:, 0] = math.log(60 - len(released)) + log_unreleased([law], released, truth, name)
    posterior = np.exp(logs.max(axis=1) - logsumexp(np.hstack([logs, absent]), axis=1))
    risk = mw.attack(mw.BayesIntruder(kernel=name, response_knowledge=False), masking)
    np.testing.assert_allclose(risk.table["probability"], posterior, rtol=1e-9)
