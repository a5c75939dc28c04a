"""Counts with noise: Geweke's test of their draws, recovery of slopes, and agreement with listing all true counts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import special, stats

from maskwell import fit
from maskwell.analysis.model import FAMILY, ModelRequest, as_if_true, build, read_formula
from maskwell.analysis.noise import count_chances
from maskwell.analysis.noise import counts as counting
from maskwell.analysis.priors import Priors
from maskwell.analysis.samplers.gibbs import sweeps
from maskwell.analysis.samplers.gibbs.layout import lay_out
from maskwell.analysis.survey_weights.resamples import resampled_system
from maskwell.analysis.system import POISSON
from maskwell.card import NoiseCard, SwapParameters
from maskwell.errors import BadInput, NoLaw
from maskwell.keys import Key
from maskwell.laws import Additive, Laplace, Mixture, Normal, Outlet, Power, SkewedBias, Transition
from maskwell.laws.unknowns import of_columns
from maskwell.masking import Release, apply
from maskwell.masks import (
    Chain,
    Coding,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
)
from maskwell.schema import TOP_CODED, Column, Schema
from maskwell.table import Table

from .samplers.geweke import Setting, Words, World, differences, limit, scores, tight

Floats = NDArray[np.float64]
TOURS, STATISTICS = 60, 400  # at most so many in all: what the Bonferroni limit counts
OWN, X1 = IndependentNoise(("c",), variance=1.0), IndependentNoise(("x1",), variance=0.5)
SHARED = CorrelatedNoise(("c", "x1"), sd_ratio=0.9)
MIXED = {"variance_ratio": 1.2, "within_variance_ratio": 0.4}

GEWEKE = {
    "independent": Setting("c ~ x1 + w", "poisson", Chain((OWN, X1))),
    "negative binomial": Setting("c ~ w", "negative binomial", OWN),
    "groups": Setting("c ~ w + (1|school)", "poisson", OWN, records=16),
    "missing": Setting("c ~ x1 + w", "poisson", Chain((OWN, X1)), missing=("c", "x1")),
    "shared": Setting("c ~ x1 + w", "poisson", SHARED),
    "shared mixture": Setting(
        "c ~ x1", "negative binomial", MixtureNoise(("c", "x1"), **MIXED, components=3, correlated=True)
    ),
    "clamped": Setting("c ~ w", "poisson", IndependentNoise(("c",), variance=1.0, limits=(("c", 0.0, 3.0),))),
    "coded after noise": Setting("c ~ w", "negative binomial", Chain((OWN, Coding(("c",), top=2.0)))),
    "classes": Setting("c ~ w", "poisson", Grouping(("c",), breaks=(1.0, 3.0))),
}


class Counts(World):
    """A world whose response is a noised count."""

    def _enter(self, seen: Any) -> None:
        super()._enter(seen)
        if self.plan.laid_out.counts is not None:
            chances = count_chances(self.assumed, seen, self.names[-1])
            self.plan = replace(self.plan, laid_out=replace(self.plan.laid_out, counts=chances))
            self.chain.plan = self.plan

    def statistics(self) -> Floats:
        """Add functions that tell large counts apart."""
        count, z = np.log1p(self.chain.state[:, -1]), np.nan_to_num(self.z[self.names[-1]])
        slope = self.chain.values.coefficients[-1]
        more = [count.mean(), (count**2).mean(), count[0], (count * np.tanh(z)).mean(), slope * count.mean()]
        return np.array([*super().statistics(), *more])


@pytest.mark.parametrize("law", GEWEKE)
def test_every_law_leaves_the_joint_distribution_alone(law: str):
    check(Counts(GEWEKE[law], 31))


def test_whole_steps_leave_the_joint_distribution_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sweeps, "MOST_LISTED", 2)
    check(Counts(GEWEKE["shared"], 32))


def test_noise_computed_draw_by_draw_leaves_the_joint_distribution_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(counting, "MOST_CHANCES", 0)
    check(Counts(GEWEKE["clamped"], 33))


def check(world: Counts) -> None:
    moved = differences(world, TOURS)
    assert (moved.std(axis=0) > 0).sum() >= 10
    assert np.abs(scores(moved)).max() < limit(STATISTICS, TOURS)


def test_a_noise_variance_that_is_off_is_caught():
    setting = Setting("c ~ w", "poisson", IndependentNoise(("c",), variance=1.0), records=200, assumed=0.7)
    moved = differences(Counts(setting, 34), TOURS)
    assert np.abs(scores(moved)).max() > limit(moved.shape[1], TOURS)


# --- draws of counts, parameters given ---------------------------------------------------------------------

LEVELS = tuple(str(k) for k in range(1, 7))
WHOLE = Outlet(Fraction(1))
CODES = {"categories": (LEVELS,)}
STAYS = tuple(tuple(0.5 if a == b else 0.1 for b in range(6)) for a in range(6))
CONDITIONALS = {
    "rounded": Additive(("c",), Normal((1.0,)), (WHOLE,)),
    "as it fell": Additive(("c",), Normal((1.0,)), (Outlet(),)),
    "far from all counts": Additive(("c",), Normal((0.5,)), (WHOLE,), offsets=(-40.0,)),
    "wide": Additive(("c",), Normal((30.0,)), (WHOLE,)),
    "clamped": Additive(("c",), Normal((2.0,)), (Outlet(Fraction(1), 0.0, 4.0),)),
    "coded": Additive(("c",), Normal((2.0,)), (Outlet(Fraction(1), 0.0, 4.0, high_coded=True),)),
    "mixture": Additive(("c",), Mixture((0.5, 0.5), ((-4.0, 4.0),), ((0.5, 1.0),)), (WHOLE,)),
    "Laplace": Additive(("c",), Laplace((2.0,)), (WHOLE,)),
    "log scale": Additive(("c",), Normal((0.6,)), (Outlet(log_shift=1.0),)),
    "coarse unit": Additive(("c",), Normal((0.7,)), (Outlet(Fraction(4)),)),
    "coarse unit alone": Additive(("c",), Normal((0.0,)), (Outlet(Fraction(4)),)),
    "two columns": Additive(("c", "x"), Normal((1.0, 0.5)), (WHOLE, Outlet())),
    "power": Additive(("c",), Normal((0.8,)), (WHOLE,), spreads=(Power(0.5, 0.5),)),
    "bias": SkewedBias(("c",), 0.5, (0.3,), (WHOLE,)),
    "code noise": Additive(("k",), Normal((0.8,)), (Outlet(Fraction(1, 100), 0.0, 5.0),), **CODES),
    "PRAM": Transition(("k",), LEVELS, LEVELS, STAYS),
}


def released(law: Any, records: int, seed: int = 7) -> Release:
    """Release counts c, or the same from 1 to 6 as a category k, by a law."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(records)
    count = rng.poisson(np.exp(1.0 + 0.5 * x))
    code = np.clip(count, 1, 6) - 1.0
    columns = {"c": Column("c", "integer"), "x": Column("x", "continuous")}
    columns |= {"w": Column("w", "continuous"), "k": Column("k", "category", categories=LEVELS)}
    values: dict[str, Any] = {"c": count * 1.0, "x": x, "w": rng.uniform(1, 3, records), "k": code}
    drawn = law.draw(np.stack([values[name] for name in law.columns], axis=1), Words(rng, records))
    for j, name in enumerate(law.columns):
        values[name], columns[name] = drawn[:, j], law.released(columns[name])
    if columns["k"].kind == "category":
        values["k"] = np.array(LEVELS)[values["k"].astype(int)]
    if columns["c"].kind == "integer" and (values["c"] != np.rint(values["c"])).any():
        columns["c"] = Column("c", "continuous")
    table = Table.from_frame(pa.table(values), Schema(tuple(columns.values())))
    return Release(table, NoiseCard((law,)))


def chain_of(release: Release, formula: str, family: str) -> sweeps.GibbsChain:
    parsed, seen = read_formula(formula, release)
    laid_out = lay_out(build(ModelRequest(parsed, FAMILY[family]), release, seen))
    plan = sweeps.SweepPlan(laid_out, tuple(tight(part) for part in laid_out.parts))
    return sweeps.start(plan, np.random.Generator(np.random.SFC64(3)))


def conditional(release: Release, mean: Floats, size: float | None) -> Floats:
    """Return records x counts: the law itself times the probability of the count, all counts below 300."""
    law, values = release.card.laws[0], np.arange(300.0)
    if len(law.columns) > 1:
        law = of_columns(law, [0])
    codes = np.arange(6.0) if law.columns == ("k",) else values
    z = np.array(release.table.floats(law.columns[0]))
    z[release.table.status(law.columns[0]) == TOP_CODED] = 4.0
    values = values[1:7] if law.columns == ("k",) else values
    logs = np.stack([law.logpdf(z[:, None], np.full((len(z), 1), code)) for code in codes], axis=1)
    logs += (
        stats.poisson.logpmf(values, mean[:, None])
        if size is None
        else stats.nbinom.logpmf(values, size, size / (size + mean[:, None]))
    )
    found = np.zeros((len(z), 300))
    found[:, values.astype(int)] = special.softmax(logs, axis=1)
    return found


@pytest.mark.parametrize("family", ["poisson", "negative binomial"])
@pytest.mark.parametrize("law", CONDITIONALS)
def test_counts_follow_the_law_and_the_model(law: str, family: str):
    times = 2000
    release = released(CONDITIONALS[law], 12)
    chain = chain_of(release, f"{CONDITIONALS[law].columns[0]} ~ w", family)
    chain.values.coefficients[:] = [1.6, -0.2]
    chain.values.shape[0] = 0.6
    mean = np.exp(1.6 - 0.2 * release.table.floats("w"))
    exact = conditional(release, mean, None if family == "poisson" else 0.6)
    share = np.zeros(exact.shape)
    for _ in range(times):
        sweeps._counts(chain)
        share[np.arange(12), chain.state[:, -1].astype(int)] += 1 / times
    off = np.abs(share - exact) / np.sqrt(exact * (1 - exact) / times + 1e-6)
    assert off[exact > 1e-3].max() < 4.9  # some hundred cells
    assert share[exact < 1e-7].sum() < 1e-2


def test_counts_given_shared_noise_follow_the_law_and_the_model():
    """The noise of x is seen, as x is a predictor that the chain holds: the count's own is conditional on it."""
    noise, times = Normal((1.5, 0.6), ((1.0, 0.7), (0.7, 1.0))), 2000
    release = released(Additive(("c", "x"), noise, (Outlet(), Outlet())), 12)
    chain = chain_of(release, "c ~ x", "poisson")
    chain.values.coefficients[-2:] = [1.0, 0.4]
    x = chain.state[:, 0] = release.table.floats("x") - 0.3
    values = np.arange(100.0)
    middle = release.table.floats("c") - 0.7 * 1.5 / 0.6 * 0.3
    logs = stats.norm.logpdf(values, middle[:, None], 1.5 * np.sqrt(1 - 0.7**2))
    exact = special.softmax(logs + stats.poisson.logpmf(values, np.exp(1 + 0.4 * x)[:, None]), axis=1)
    share = np.zeros(exact.shape)
    for _ in range(times):
        sweeps._counts(chain)
        share[np.arange(12), chain.state[:, -1].astype(int)] += 1 / times
    off = np.abs(share - exact) / np.sqrt(exact * (1 - exact) / times + 1e-6)
    assert off[exact > 1e-3].max() < 4.5


# --- whole fits --------------------------------------------------------------------------------------------


def test_a_tiny_file_agrees_with_listing_all_true_counts():
    release, sd = released(Additive(("c",), Normal((1.5,)), (WHOLE,)), 8), 1.5
    chain = chain_of(release, "c ~ x", "poisson")
    z, x, steps = release.table.floats("c"), release.table.floats("x"), 3000
    prior = chain.plan.priors[-1]
    axes = [m + s * np.linspace(-6, 6, 121) for m, s in zip(prior.mean, prior.sd, strict=True)]
    first, second = np.meshgrid(*axes, indexing="ij")
    values = np.arange(60)
    told = stats.norm.cdf((z[:, None] + 0.5 - values) / sd) - stats.norm.cdf((z[:, None] - 0.5 - values) / sd)
    log = -0.5 * (
        ((first - prior.mean[0]) / prior.sd[0]) ** 2 + ((second - prior.mean[1]) / prior.sd[1]) ** 2
    )
    for own, at in zip(told, x, strict=True):
        log += np.log(stats.poisson.pmf(values, np.exp(first + second * at)[..., None]) @ own)
    weight = special.softmax(log)
    exact = [(weight * f).sum() for f in (first, second, first**2, second**2, first * second)]
    found = np.empty((steps, 5))
    for t in range(-200, steps):
        sweeps.step(chain)
        a, b = chain.values.coefficients
        found[max(t, 0)] = a, b, a * a, b * b, a * b
    batches = found.reshape(30, -1, 5).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    assert (np.abs(batches.mean(axis=0) - exact) < 4.5 * error).all()


@pytest.fixture(scope="module")
def noisy() -> Table:
    rng = np.random.default_rng(11)
    x, v = rng.standard_normal((2, 1500))
    count = rng.poisson(np.exp(1 + 0.5 * x - 0.2 * v))
    schema = Schema((Column("visits", "integer"), Column("x", "continuous"), Column("v", "continuous")))
    return Table.from_frame(pa.table({"visits": count, "x": x, "v": v}), schema)


RECOVERED = {
    "noise of sd 3": IndependentNoise(("visits",), variance=9.0),
    "coded": Coding(("visits",), top=4.0),
}


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")  # of short chains
@pytest.mark.parametrize("mask", RECOVERED)
def test_slopes_are_recovered_where_the_unadjusted_ones_are_off(mask: str, noisy: Table):
    release = apply(RECOVERED[mask], noisy, key=Key.from_seed(5)).release
    options = {"chains": 2, "draws": 200, "warmup": 50, "seed": 1, "naive": False}
    found = fit("visits ~ x + v", release, family="poisson", **options)
    for name, truth in (("Intercept", 1.0), ("x", 0.5), ("v", -0.2)):
        assert abs(found[name].mean() - truth) < 4 * found[name].std()
    assert unadjusted(release)[1] < 0.5 - 3 * found["x"].std()


def unadjusted(release: Release) -> Floats:
    """Return the coefficients of a fit that takes the unadjusted values, as `fit` does: by Newton's method."""
    parsed, seen = read_formula("visits ~ x + v", release)
    state = as_if_true(build(ModelRequest(parsed, POISSON), release, seen)).state
    assert (state[:, -1] == np.maximum(np.rint(state[:, -1]), 0)).all()
    design, beta = np.column_stack([np.ones(len(state)), state[:, :-1]]), np.array([1.0, 0.0, 0.0])
    for _ in range(20):
        mean = np.exp(design @ beta)
        beta = beta + np.linalg.solve(design.T * mean @ design, design.T @ (state[:, -1] - mean))
    return beta


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
def test_true_counts_come_out_whole(noisy: Table):
    release = apply(RECOVERED["noise of sd 3"], noisy, key=Key.from_seed(5)).release
    options = {"chains": 1, "draws": 60, "warmup": 20, "seed": 1, "keep_truths": True, "naive": False}
    found = fit("visits ~ x", release, family="negative binomial", **options)
    kept = found.draws.truths
    assert (kept == np.rint(kept)).all()
    assert kept.min() == 0
    truth = noisy.floats("visits")
    off = found.truths("visits").mean - truth
    assert (off**2).mean() < 0.5 * ((release.table.floats("visits") - truth) ** 2).mean()


def test_copies_of_records_keep_what_was_released_of_them():
    release = released(CONDITIONALS["as it fell"], 12)
    parsed, seen = read_formula("c ~ w", release)
    system, records = build(ModelRequest(parsed, POISSON), release, seen), np.array([3, 3, 0, 7])
    copied = resampled_system(system, records)
    assert (copied.counts.which == system.counts.which[records]).all()
    assert len(np.unique(system.counts.which)) == 12
    chain = sweeps.start(sweeps.plan_of(copied, Priors()), np.random.Generator(np.random.SFC64(3)))
    sweeps.step(chain)
    assert (np.abs(chain.state[:, -1] - release.table.floats("c")[records]) < 6).all()


# --- refusals ----------------------------------------------------------------------------------------------


def test_exchanged_counts_are_refused():
    release = released(CONDITIONALS["rounded"], 30)
    card = replace(release.card, swapped=SwapParameters(0.1, ("c",)))
    with pytest.raises(NoLaw, match=r"exchanged between records.*family='gaussian'"):
        fit("c ~ w", Release(release.table, card), family="poisson")


def test_shared_noise_on_the_log_scale_is_refused():
    noise = Normal((0.5, 0.5), ((1.0, 0.7), (0.7, 1.0)))
    release = released(Additive(("c", "w"), noise, (Outlet(log_shift=1.0), Outlet(log_shift=1.0))), 30)
    with pytest.raises(NoLaw, match=r"log\(c \+ 1\)"):
        fit("c ~ w", release, family="poisson")


def test_values_that_no_count_gives_are_refused():
    release = released(Additive(("c",), Normal((0.0,)), (Outlet(Fraction(4)),)), 30)
    values = {name: release.table.floats(name) for name in ("c", "w")}
    values["c"][:3] = -8.0
    schema = Schema((Column("c", "integer"), Column("w", "continuous")))
    release = Release(Table.from_frame(pa.table(values), schema), release.card)
    with pytest.raises(BadInput, match="no whole number from 0 on"):
        fit("c ~ w", release, family="poisson")
