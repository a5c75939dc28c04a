"""An outsider's f(z): against scipy and by hand, and everything that can be released has probability one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

import maskwell as mw
from maskwell.attacks.bayes.marginal.censored_normal import ABOVE, BELOW, SEEN, Partly
from maskwell.attacks.bayes.marginal.released_density import log_gaussian, log_given
from maskwell.card import NoiseCard
from maskwell.errors import BadInput, BadPlan
from maskwell.laws import Additive, Multiplicative, Normal, Outlet, SkewedBias, Transition
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .test_frequencies import COVARIANCE, clustered, in_bins, many, release_of

PLAIN = Outlet()


def table(columns: dict, **described) -> Table:
    """A table of amounts; `described` has what else is said about columns."""
    made = [Column(name, **{"kind": "continuous", **described.get(name, {})}) for name in columns]
    return Table.from_frame(pa.table(columns), Schema(tuple(made)))


def one_column(outlet: Outlet, sd: float = 1.0) -> NoiseCard:
    return NoiseCard((Additive(("A",), Normal((sd,)), (outlet,)),))


def spread_out(grid, centre, sd):
    """Every value of a grid at least once, those in the middle more often: a release that has all that can be."""
    counts = 1 + np.rint(300 * np.exp(-0.5 * ((grid - centre) / sd) ** 2)).astype(int)
    return np.repeat(grid, counts)


def per_value(release: Table, names, logs):
    """The density of each different record, once."""
    keys = np.column_stack([np.where(np.isnan(v), -1e9, v) for v in release.values([*names]).T])
    _, first, back = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    np.testing.assert_allclose(logs, logs[first][back.ravel()], rtol=1e-12)
    return release.values([*names])[first], np.exp(logs[first])


# --- densities and what they sum to ------------------------------------------------------------------------


def test_plain_amounts_have_the_normal_density_of_the_release(make_amounts):
    release = make_amounts(300, "ABC")
    card = NoiseCard((Additive(tuple("ABC"), Normal((0.2, 0.3, 0.1)), (PLAIN,) * 3),))
    values = release.values([*"ABC"])
    expected = multivariate_normal(values.mean(axis=0), np.cov(values.T)).logpdf(values)
    np.testing.assert_allclose(log_gaussian(release, "ABC", card), expected, rtol=1e-10)
    some = multivariate_normal(values[:, 1:].mean(axis=0), np.cov(values[:, 1:].T))
    np.testing.assert_allclose(log_gaussian(release, "BC", card), some.logpdf(values[:, 1:]), rtol=1e-10)


OUTLETS = {
    "fine": (Outlet(Fraction(1)), -45, 145),
    "clamped": (Outlet(Fraction(1), low=40.0, high=70.0), 40, 70),
    "clamped in the middle": (Outlet(Fraction(1), low=50.0), 50, 140),
    "beside codes": (Outlet(Fraction(1), low=30.0, avoid=(48.0, 49.0, 61.0)), 30, 140),
    "beside a code at the limit": (Outlet(Fraction(1), low=40.0, avoid=(41.0,)), 40, 140),
    "coarse": (Outlet(Fraction(40)), -320, 400),
    "coarse and clamped": (Outlet(Fraction(20), low=20.0, high=80.0), 20, 80),
}


@pytest.mark.parametrize("name", OUTLETS)
def test_released_values_on_a_unit_have_probability_one(name):
    outlet, low, high = OUTLETS[name]
    unit = float(outlet.unit)
    grid = np.arange(low, high + unit / 2, unit)
    grid = grid[~np.isin(grid, outlet.avoid)]
    release = table({"A": spread_out(grid, 52.0, 12.0)})
    z, density = per_value(release, ["A"], log_gaussian(release, ["A"], one_column(outlet)))
    at_limit = np.isin(z[:, 0], [end for end in (outlet.low, outlet.high) if end is not None])
    # between limits values on a fine unit are points, whose sum is off at the ends: see FINE_HERE
    close = 3e-3 if outlet.low is not None else 1e-6
    assert (density * np.where(at_limit, 1.0, unit)).sum() == pytest.approx(1.0, abs=close)
    share = np.mean(release.floats("A") == low) if outlet.low is not None else density[0] * unit
    assert density[0] * (1.0 if at_limit[0] else unit) == pytest.approx(share)


def test_amounts_on_a_log_scale_have_probability_one():
    grid = np.exp(np.linspace(-4, 10, 4001)) - 2.0
    release = table({"A": np.repeat(grid, 1 + np.rint(300 * norm.pdf(np.log(grid + 2), 3, 0.8)).astype(int))})
    z, density = per_value(
        release, ["A"], log_gaussian(release, ["A"], one_column(Outlet(log_shift=2.0), 0.1))
    )
    assert np.trapezoid(density, z[:, 0]) == pytest.approx(1.0, abs=1e-5)


def test_two_amounts_with_limits_and_closed_values_have_probability_one():
    """Every pair of values on a grid, each column also missing and one top-coded by the mask: 3 x 3 kinds of cells."""
    outlets = (Outlet(Fraction(1), low=0.0), Outlet(Fraction(2), high=16.0, high_coded=True))
    first, second = [*range(31), -9.0], [*range(-14, 17, 2), -99.0]
    a, b = (side.ravel() for side in np.meshgrid(first, second))
    often = 1 + np.rint(60 * np.exp(-0.5 * ((a - 8) / 4) ** 2 - 0.5 * ((b - a / 2) / 3) ** 2)).astype(int)
    pairs = {"A": np.repeat(a, often), "B": np.repeat(b, often)}
    release = table(pairs, A={"missing": (-9,)}, B={"missing": (-99,), "top": 16})
    noise = Normal((1.0, 1.0), ((1.0, 0.5), (0.5, 1.0)))
    logs = log_gaussian(release, "AB", NoiseCard((Additive(("A", "B"), noise, outlets),)))
    written = np.column_stack([pairs["A"], pairs["B"]])
    _, once = np.unique(written, axis=0, return_index=True)
    units = np.where(np.isin(pairs["B"], (16, -99)), 1.0, 2.0)
    assert (np.exp(logs[once]) * units[once]).sum() == pytest.approx(1.0, abs=4e-3)
    both = (pairs["A"] == 0) & (pairs["B"] == 16)
    np.testing.assert_allclose(np.exp(logs[both]), both.mean(), rtol=1e-12)
    missing = (pairs["A"] == -9) & (pairs["B"] < 16) & (pairs["B"] != -99)
    inside = np.unique(pairs["B"][missing], return_index=True)[1]
    assert np.exp(logs[missing][inside]).sum() * 2 == pytest.approx(missing.mean(), rel=4e-3)


# --- cells -------------------------------------------------------------------------------------------------


def test_categories_values_in_clear_and_rounded_ones_count_by_their_share():
    release = table(
        {
            "A": [1.0, 2.0, 4.0, 5.0],
            "E": ["x", "x", "y", "y"],
            "C": [7.0, 7.0, 7.0, 8.0],
            "R": [10.0, 10.0, 20.0, 20.0],
        },
        E={"kind": "category", "categories": ("x", "y")},
    )
    laws = (
        Additive(("A",), Normal((0.5,)), (PLAIN,)),
        Additive(("R",), Normal((0.0,)), (Outlet(Fraction(10)),)),
        Transition(("E",), ("x", "y"), ("x", "y"), ((0.9, 0.1), (0.1, 0.9))),
    )
    density = norm.logpdf([1.0, 2.0, 4.0, 5.0], 3.0, np.sqrt(10 / 3))
    assert log_gaussian(release, ("A", "E"), NoiseCard(laws)) == pytest.approx(density + np.log(0.5))
    cells = np.log([0.5, 0.5, 0.25, 0.25])
    assert log_gaussian(release, ("A", "E", "C"), NoiseCard(laws)) == pytest.approx(density + cells)
    assert log_gaussian(release, ("R",), NoiseCard(laws)) == pytest.approx(np.full(4, np.log(0.5 / 10)))
    within = log_gaussian(release, ("A", "E", "C"), NoiseCard(laws), blocks=np.array([3, 5, 5, 5]))
    assert within == pytest.approx(density + np.log([1.0, 1 / 3, 1 / 3, 1 / 3]))


def test_a_change_of_unit_changes_the_density_by_its_jacobian(make_people):
    people = make_people(200)
    mask = mw.CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.5)
    release = mw.apply(mask, people, seed=5).release
    logs = log_gaussian(release.table, ("INCOME", "TAX", "SEX"), release.card)
    law = release.card.laws[0]
    wide = replace(law, noise=Normal((law.noise.sds[0], law.noise.sds[1] * 50), law.noise.correlations))
    column, status = release.table.schema["TAX"], release.table.status("TAX")
    stretched = release.table.with_columns({"TAX": (column, release.table.floats("TAX") * 50, status)})
    again = log_gaussian(stretched, ("INCOME", "TAX", "SEX"), NoiseCard((wide,)))
    np.testing.assert_allclose(logs - again, np.where(status == 0, np.log(50), 0.0), atol=1e-9)


def test_releases_of_every_kind_of_column_get_finite_densities(make_people):
    people = make_people(150)
    mask = mw.Chain(
        (
            mw.BiasNoise(("INCOME",), bias_sd=0.2, sd=200.0, shape="lognormal"),
            mw.IndependentNoise(("TAX",), variance_ratio=0.3, shape="laplace"),
            mw.IndependentNoise(("AGE",), variance_ratio=0.3),
            mw.Pram(("EDU",), stay=0.8),
        )
    )
    release = mw.apply(mask, people, seed=5).release
    fields = (*release.card.columns, "SEX")
    logs = log_gaussian(release.table, fields, release.card)
    assert np.isfinite(logs).all()
    order = np.random.default_rng(1).permutation(150)
    np.testing.assert_allclose(
        log_gaussian(release.table.take(order), fields, release.card), logs[order], rtol=1e-9
    )


# --- releases that do not vary -----------------------------------------------------------------------------


def test_the_release_is_never_narrower_than_its_noise():
    release = table({"A": [5.0], "B": [7.0]})
    card = NoiseCard((Additive(("A", "B"), Normal((2.0, 3.0)), (PLAIN, PLAIN)),))
    expected = -np.log(2 * np.pi) - np.log(6.0)
    assert log_gaussian(release, "AB", card) == pytest.approx([expected])
    same = table({"A": [5.0, 5.0, 5.0], "B": [1.0, 7.0, 40.0]})
    spread = np.std([1.0, 7.0, 40.0], ddof=1)
    along = norm.logpdf([1.0, 7.0, 40.0], 16.0, spread) + norm.logpdf(0, 0, 2.0)
    assert log_gaussian(same, "AB", card) == pytest.approx(along)


@pytest.mark.parametrize("law", ["bias", "skewed"])
def test_noise_that_grows_with_the_value_is_averaged(law):
    release = table({"A": [30.0, 30.0]})
    laws = {
        "bias": Additive(("A",), Normal((1.0,)), (PLAIN,), spreads=(Multiplicative(0.1, 4.0),)),
        "skewed": SkewedBias(("A",), 0.1, (4.0,), (PLAIN,)),
    }
    assert log_gaussian(release, "A", NoiseCard((laws[law],))) == pytest.approx([norm.logpdf(0, 0, 5.0)] * 2)


def test_columns_that_determine_each_other_have_the_density_on_their_support():
    """B = 2 A, with noise that keeps it so: f(z) is what the law gives on average over true values of that kind."""
    a = np.random.default_rng(2).normal(3, 1, 50)
    release = table({"A": a, "B": 2 * a + 1e-7 * np.sin(a)})
    law = Additive(("A", "B"), Normal((0.5, 1.0), ((1.0, 1.0), (1.0, 1.0))), (PLAIN, PLAIN))
    logs = log_gaussian(release, "AB", NoiseCard((law,)))
    true, step = np.linspace(-6, 12, 3001, retstep=True)
    weights = norm.pdf(true, a.mean(), np.sqrt(a.var(ddof=1) - 0.25)) * step
    for i in range(0, 50, 7):
        z = np.tile([a[i], 2 * a[i]], (len(true), 1))
        expected = np.exp(law.logpdf(z, np.column_stack([true, 2 * true]))) @ weights
        assert np.exp(logs[i]) == pytest.approx(expected, rel=1e-4)


def test_closed_values_leave_a_covariance_that_is_one():
    """Covariances from the pairs that are open may contradict each other; what they give must still be a law."""
    rng = np.random.default_rng(3)
    shared = rng.normal(0, 10, 60)
    values = np.column_stack([shared, shared, -shared]) + rng.normal(0, 0.1, (60, 3))
    for j in range(3):
        values[20 * j : 20 * j + 20, j] = -999
    values[40:, 0] *= -1  # A and C agree where they are seen together
    release = table(
        {n: values[:, j] for j, n in enumerate("ABC")}, **{n: {"missing": (-999,)} for n in "ABC"}
    )
    card = NoiseCard((Additive(tuple("ABC"), Normal((0.1,) * 3), (PLAIN,) * 3),))
    assert np.isfinite(log_gaussian(release, "ABC", card)).all()


def test_no_amount_within_limits_is_no_amount():
    release = table({"A": [0.0, 9.0, 9.0]})
    logs = log_gaussian(release, "A", one_column(Outlet(low=0.0, high=9.0)))
    assert logs == pytest.approx(np.log([1 / 3, 2 / 3, 2 / 3]))


def test_too_many_coarse_columns_are_refused():
    names = [f"C{i}" for i in range(26)]
    rng = np.random.default_rng(5)
    release = table({n: rng.integers(0, 3, 40).astype(float) for n in names})
    law = Additive(tuple(names), Normal((0.3,) * 26), (Outlet(Fraction(3)),) * 26)
    with pytest.raises(BadPlan, match="name fewer fields"):
        log_gaussian(release, names, NoiseCard((law,)))


def test_a_field_that_was_not_released_is_refused(make_amounts):
    with pytest.raises(BadInput, match="no column 'X'"):
        log_gaussian(make_amounts(5), ("A", "X"), one_column(PLAIN))


# --- limits ------------------------------------------------------------------------------------------------


def clamped(values, edges):
    """Amounts of which those beyond two limits are seen only to be there."""
    side = np.where(values < edges[0], BELOW, np.where(values > edges[1], ABOVE, SEEN))
    return Partly(values, side, edges)


EDGES = np.array([[-0.4, -np.inf], [1.0, 0.5]])
LIMITED = {"both": EDGES, "one": np.array([[-np.inf, -np.inf], [np.inf, 0.3]])}


@pytest.mark.parametrize("name", LIMITED)
def test_a_law_with_limits_has_the_largest_likelihood(name):
    """Against scipy: means and sds of each column by itself, then the correlation given these."""
    values = np.random.default_rng(7).multivariate_normal([0.2, 0.4], [[1.0, -0.7], [-0.7, 1.5]], 150)
    partly = clamped(values, LIMITED[name])
    mean, covariance = partly.moments()
    for j in range(2):

        def minus_log(at, j=j):
            centre, sd = at[0], np.exp(at[1])
            seen = norm.logpdf(values[:, j], centre, sd)
            low, high = partly.edges[:, j]
            logs = (seen, norm.logcdf(low, centre, sd), norm.logsf(high, centre, sd))
            return -np.select([partly.side[:, j] == s for s in (SEEN, BELOW, ABOVE)], logs).sum()

        best = minimize(minus_log, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-10})
        assert (mean[j], np.log(covariance[j, j]) / 2) == pytest.approx(best.x, abs=1e-5)
    sds = np.sqrt(np.diag(covariance))
    tried = np.linspace(-0.95, 0.95, 191)
    logs = [pair_log_likelihood(partly, mean, sds, correlation) for correlation in tried]
    found = covariance[0, 1] / sds.prod()
    assert abs(found - tried[np.argmax(logs)]) < 0.011
    assert pair_log_likelihood(partly, mean, sds, found) >= max(logs)


def pair_log_likelihood(partly, mean, sds, correlation):
    """The log likelihood of a correlation, record by record, by scipy's normal law of two."""
    matrix = np.array([[1.0, correlation], [correlation, 1.0]])
    rest, total = np.sqrt(1 - correlation**2), 0.0
    z, edges = (partly.values - mean) / sds, (partly.edges - mean) / sds
    law = multivariate_normal([0, 0], matrix)
    total += law.logpdf(z[(partly.side == SEEN).all(axis=1)]).sum()
    for j in (0, 1):
        for side, sign in ((BELOW, 1), (ABOVE, -1)):
            here = (partly.side[:, j] == side) & (partly.side[:, 1 - j] == SEEN)
            edge, other = edges[0 if sign > 0 else 1, j], z[here, 1 - j]
            total += (norm.logpdf(other) + norm.logcdf(sign * (edge - correlation * other) / rest)).sum()
    for one, sign in ((BELOW, 1), (ABOVE, -1)):
        for two, turn in ((BELOW, 1), (ABOVE, -1)):
            count = ((partly.side[:, 0] == one) & (partly.side[:, 1] == two)).sum()
            if count:
                at = [sign * edges[0 if sign > 0 else 1, 0], turn * edges[0 if turn > 0 else 1, 1]]
                turned = matrix * np.array([[1, sign * turn], [sign * turn, 1]])
                total += count * multivariate_normal([0, 0], turned).logcdf(at)
    return total


def test_without_values_beyond_a_limit_moments_are_those_of_the_values():
    values = np.random.default_rng(8).normal(size=(50, 3))
    mean, covariance = Partly(values, np.zeros((50, 3), int), np.tile([[-9.0], [9.0]], 3)).moments()
    np.testing.assert_allclose(mean, values.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(covariance, np.cov(values.T, ddof=0), rtol=1e-12)


def test_limits_far_on_one_side_leave_a_law():
    """All that was seen is the same value, and most lies beyond a limit: a mean and an sd exist all the same."""
    values = np.array([[1.0]] * 3 + [[9.0]] * 30)
    mean, covariance = Partly(
        values, np.repeat([SEEN, ABOVE], [3, 30])[:, None], np.array([[-np.inf], [2.0]])
    ).moments()
    assert mean[0] > 2
    assert covariance[0, 0] > 0


@pytest.mark.parametrize("coded", [False, True])
def test_amounts_within_limits_know_which_others_lie_beyond(coded):
    """f(z) is the share of which lie beyond, times the law of the rest given that: by hand for two columns."""
    rng = np.random.default_rng(9)
    values = rng.multivariate_normal([0, 0], [[1.0, 0.8], [0.8, 1.0]], 500)
    outlets = (PLAIN, Outlet(high=0.5, high_coded=coded))
    release = table({"A": values[:, 0], "B": np.minimum(values[:, 1], 0.5)}, B={"top": 0.5} if coded else {})
    noise = Normal((0.1, 0.1))
    logs = log_gaussian(release, "AB", NoiseCard((Additive(("A", "B"), noise, outlets),)))
    mean, covariance = clamped(values, np.array([[-np.inf, -np.inf], [np.inf, 0.5]])).moments()
    covariance *= 500 / 499  # without bias, as the distances have it
    high = values[:, 1] > 0.5
    slope, rest = (
        covariance[0, 1] / covariance[0, 0],
        covariance[1, 1] - covariance[0, 1] ** 2 / covariance[0, 0],
    )
    centre = mean[1] + slope * (values[:, 0] - mean[0])
    beyond = norm.logpdf(values[:, 0], mean[0], np.sqrt(covariance[0, 0])) + norm.logsf(
        0.5, centre, np.sqrt(rest)
    )
    beyond += np.log(high.mean()) - norm.logsf(0.5, mean[1], np.sqrt(covariance[1, 1]))
    both = multivariate_normal(mean, covariance).logpdf(values)
    both += np.log((~high).mean()) - norm.logcdf(0.5, mean[1], np.sqrt(covariance[1, 1]))
    np.testing.assert_allclose(logs, np.where(high, beyond, both), rtol=1e-5)


@pytest.mark.parametrize("limits", [(-0.5, 0.5), (-1.0, None), (-2.0, 0.3)])
def test_probabilities_with_limits_come_true(limits):
    """Who fits a normal law to clamped amounts is as sure as he should be, in blocks of 24 as in large ones."""
    values = np.random.default_rng(11).multivariate_normal([0, 0], COVARIANCE, 200 * 24)
    noise = mw.IndependentNoise(("A", "B"), variance=0.2, limits=tuple((name, *limits) for name in "AB"))
    masking = mw.apply(noise, many(values, 24), seed=13, exact=True)
    belief = mw.attack(mw.BayesIntruder(marginal="gaussian"), masking).belief
    gaps = in_bins(belief.probability, belief.share, release_of(masking))
    assert len(gaps) >= 3
    assert max(map(abs, gaps)) < 4
    assert abs(clustered(belief.share - belief.probability, release_of(masking))) < 4


# --- the user's own ----------------------------------------------------------------------------------------


def test_a_function_of_the_users_own_is_asked_once(make_amounts):
    release, seen = make_amounts(7), []

    def own(z):
        seen.append(z)
        return norm.logpdf(z.floats("A"))

    np.testing.assert_array_equal(log_given(own, release), norm.logpdf(release.floats("A")))
    assert seen == [release]
    assert log_given(lambda z: [0] * 7, release).dtype == np.float64


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (np.zeros((7, 1)), "one log density for each of the 7"),
        (0.0, "one log density for each of the 7"),
        (["a"] * 7, "one log density for each of the 7"),
        (np.log([1, 1, 0.5, 1e-300, 1, 1, 0.1]) * np.array([1, 1, np.inf, 1, 1, 1, 1]), "number"),
        (np.array([0, 0, 0, np.nan, 0, np.nan, 0]), r"2 released records \(the first is number 4\)"),
    ],
)
def test_a_function_that_gives_no_density_is_refused(make_amounts, answer, said):
    with np.errstate(invalid="ignore"), pytest.raises(BadPlan, match=said):
        log_given(lambda z: answer, make_amounts(7))


def test_the_covariance_is_that_of_the_distances():
    """An unbiased one (n - 1), as the posterior distance takes it from the same release."""
    rng = np.random.default_rng(14)
    z = rng.normal(size=(12, 2)) @ np.array([[1.0, 0.4], [0.0, 0.8]])
    card = NoiseCard((Additive(("A", "B"), Normal((0.1, 0.1)), (PLAIN, PLAIN)),))
    logs = log_gaussian(table({"A": z[:, 0], "B": z[:, 1]}), ("A", "B"), card)
    expected = multivariate_normal(z.mean(axis=0), np.cov(z.T)).logpdf(z)
    np.testing.assert_allclose(logs, expected, rtol=1e-9)
