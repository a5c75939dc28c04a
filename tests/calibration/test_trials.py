"""Trials: the same draws at every scale, keys that no release shares, and what a tolerance looks at."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.stats import binom

from maskwell.attacks import Linkage, NearestRecord, attack
from maskwell.calibration import Trial
from maskwell.calibration.estimates import Estimate, share_above, share_below
from maskwell.calibration.losses import il1s, loss_of, total_variance_ratio
from maskwell.calibration.measures import ALL, OUTLYING, count_links, measure_of
from maskwell.calibration.outlier_share import outlyingness_of, worst_tenth
from maskwell.calibration.trials import Bench, check_plans, trace_table
from maskwell.datasets import housing
from maskwell.errors import BadPlan, MaskwellWarning
from maskwell.keys import Key
from maskwell.masking import apply
from maskwell.masks import CodeNoise, CorrelatedNoise, Grouping, IndependentNoise, Pram
from maskwell.tolerances import ExpectedH, MaxRate, ProbH, Ratio, SwapShare

COLUMNS = ("A", "B", "C")
FIFTEEN_PERCENT, NEAREST = MaxRate(0.15), (NearestRecord(),)


@pytest.fixture(scope="module")
def table(amounts):
    return amounts(120)


def bench_of(table, tolerance=FIFTEEN_PERCENT, plans=NEAREST, **options):
    return Bench(table, list(plans), Key.from_seed(5), measure_of(tolerance), **options)


def noise(sd_ratio: float) -> CorrelatedNoise:
    return CorrelatedNoise(COLUMNS, sd_ratio=sd_ratio)


def noise_of(masking, name="A"):
    return masking.masked.floats(name) - masking.truth.floats(name)


def test_all_scales_see_the_same_draws(make_amounts):
    """Without clamps and but for the unit, twice the scale is twice the noise, draw by draw."""
    bench = bench_of(make_amounts(50))
    pairs = zip(
        *(bench.masked(CorrelatedNoise(("A", "B"), sd_ratio=c), "search", 3) for c in (0.5, 1.0)), strict=True
    )
    for one, two in pairs:
        ratio = np.linalg.norm(noise_of(two)) / np.linalg.norm(noise_of(one))
        assert np.corrcoef(noise_of(one), noise_of(two))[0, 1] > 0.999
        assert ratio == pytest.approx(2, rel=0.06)  # sds on the card have two digits


def test_common_draws_make_differences_of_scales_clear(table):
    """The variance of a paired difference is a small part of that of independent draws."""
    bench = bench_of(table)
    near, far = (bench.run(noise(c), 1.0, "search", 12) for c in (0.30, 0.33))
    apart = bench.run(noise(0.33), 1.0, "confirmation 1", 12)
    paired, unpaired = (far.excess - near.excess).var(), (apart.excess - near.excess).var()
    assert paired < 0.5 * unpaired


def test_draws_of_a_round_differ_and_no_release_shares_them(make_amounts):
    """Release noise under the same key has no word in common with any draw of calibration."""
    table, key = make_amounts(60), Key.from_seed(5)
    bench, mask = bench_of(table), CorrelatedNoise(("A", "B"), sd_ratio=0.5)
    released = apply(mask, table, key=key, exact=True)
    drawn = [
        m for round in ("search", "confirmation 1", "confirmation 2") for m in bench.masked(mask, round, 4)
    ]
    keys = {masking.key.secret for masking in drawn} | {key.secret}
    assert len(keys) == 13
    for masking in drawn:
        assert not np.any(noise_of(masking) == noise_of(released))
        assert abs(np.corrcoef(noise_of(masking), noise_of(released))[0, 1]) < 4 / np.sqrt(len(table))
        assert not np.array_equal(masking.order, released.order)


def test_trials_are_the_same_for_the_same_key(table):
    one, two = (bench_of(table).run(noise(0.3), 1.0, "search", 3) for _ in range(2))
    np.testing.assert_array_equal(one.numerators, two.numerators)
    other = Bench(table, [NearestRecord()], Key.from_seed(6), measure_of(MaxRate(0.15)))
    assert not np.array_equal(other.run(noise(0.3), 1.0, "search", 3).numerators, one.numerators)


def test_warnings_of_the_mask_are_not_repeated():
    """Blocks of one record are said where a mask is applied, not at every draw."""
    homes, mask = housing(1000), IndependentNoise(("INCOME",), variance=100.0)
    with pytest.warns(MaskwellWarning, match="alone in"):
        apply(mask, homes, seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(bench_of(homes).masked(mask, "search", 2))) == 2


@pytest.mark.parametrize(
    ("tolerance", "figure"),
    [
        (MaxRate(0.15), lambda r: r.rate),
        (Ratio(0.5), lambda r: r.expected_correct / r.expected_incorrect),
        (ExpectedH(3), lambda r: r.h.expected),
        (ProbH(2, 0.1), lambda r: r.h.below(2)),
    ],
    ids=["rate", "ratio", "mean h", "share of small h"],
)
def test_a_tolerance_looks_at_its_figure(table, tolerance, figure):
    bench, measure = bench_of(table, tolerance), measure_of(tolerance)
    trial = bench.run(noise(0.3), 1.0, "search", 3)
    risks = [risks["NearestRecord"] for _, risks in bench.drawn(noise(0.3), "search", 3)]
    for i, risk in enumerate(risks):
        assert trial.numerators[i, 0] / trial.denominators[i, 0] == pytest.approx(figure(risk))
        side = figure(risk) > measure.limit
        assert (trial.excess[i] > 0) == (not side if isinstance(tolerance, ExpectedH) else side)


def test_the_ratio_is_that_of_sums(table):
    trial = bench_of(table, Ratio(0.5)).run(noise(0.3), 1.0, "search", 4)
    assert trial.figure.mean == pytest.approx(trial.numerators.sum() / trial.denominators.sum())
    linear = (trial.numerators - 0.5 * trial.denominators)[:, 0]
    np.testing.assert_allclose(trial.excess, linear)


def test_of_several_intruders_the_worst_of_each_draw_counts(table):
    plans = [NearestRecord(), NearestRecord(distance="posterior")]
    trial = bench_of(table, plans=plans).run(noise(0.5), 1.0, "search", 6)
    np.testing.assert_allclose(trial.excess, trial.numerators.max(axis=1) - 0.15)
    assert trial.figure.mean >= max(one.mean for one in trial.figures.values()) - 1e-12


@pytest.mark.parametrize("plan", [NearestRecord(), Linkage(claims="all links")], ids=["nearest", "linkage"])
def test_the_worst_decile_is_the_outer_tenth(table, plan):
    risk = attack(plan, apply(noise(0.4), table, seed=1))
    outlying = outlyingness_of(risk, table)
    marked = worst_tenth(risk, table)
    known = ~np.isnan(outlying)
    assert marked.sum() >= np.ceil(known.sum() / 10)
    assert outlying[marked].min() >= np.nanmax(np.where(marked, np.nan, outlying))
    counts = count_links(risk, table, OUTLYING)
    rows = risk.table.to_pandas()
    assert counts.targets == marked.sum()
    assert counts.correct == pytest.approx(rows.expected_correct[marked & rows.claimed].sum())
    assert counts.correct + counts.incorrect == (marked & rows.claimed).sum()
    assert (counts.h is None) == (risk.h is None)


def test_both_kinds_of_outlyingness_agree(make_people, amounts):
    """What Linkage's targets get from the truth is what NearestRecord measures."""
    table = amounts(150)
    masking = apply(noise(0.4), table, seed=1)
    ours, theirs = (outlyingness_of(attack(p, masking), table) for p in (Linkage(), NearestRecord()))
    np.testing.assert_allclose(ours, theirs)


def test_the_worst_decile_follows_the_first_row_of_the_deciles(make_amounts):
    """In a table without ties it is the tenth that the h-index calls outermost."""
    table = make_amounts(200)
    plan = NearestRecord(fields=("A", "B"))
    risk = attack(plan, apply(CorrelatedNoise(("A", "B"), sd_ratio=0.3), table, seed=2))
    first = risk.h.deciles.to_pylist()[0]
    counts = count_links(risk, table, OUTLYING)
    assert counts.targets == first["targets"]
    assert counts.at_zero == pytest.approx(first["at_zero"])
    assert counts.correct / counts.targets == pytest.approx(first["rate"])
    assert counts.h.mean() == pytest.approx(first["expected_h"])


def test_outlyingness_that_is_not_known_is_refused(table, make_amounts):
    masking = apply(noise(0.4), table, seed=1)
    with pytest.raises(BadPlan, match="searches from the release"):
        count_links(attack(Linkage(direction="to_original"), masking), table, OUTLYING)
    plain = make_amounts(40)
    risk = attack(Linkage(fields=("A",)), apply(IndependentNoise(("A",), variance_ratio=0.1), plain, seed=1))
    with pytest.raises(BadPlan, match="no key column is a number"):
        count_links(risk, plain, OUTLYING)


def test_an_attack_without_h_is_refused_for_a_tolerance_on_it(table):
    with pytest.raises(BadPlan, match="Linkage measures no h"):
        bench_of(table, ProbH(3, 0.1), plans=[Linkage()]).run(noise(0.3), 1.0, "search", 2)


@pytest.mark.parametrize("tolerance", [0.15, None, "low", SwapShare(0.5), MaxRate])
def test_what_is_no_tolerance_is_refused(tolerance):
    with pytest.raises(BadPlan, match=r"a tolerance is MaxRate\(0.15\)"):
        measure_of(tolerance)


def test_estimates_are_means_with_standard_errors():
    values = np.array([0.1, 0.2, 0.4, 0.3])
    one = Estimate.of(values)
    assert one.mean == pytest.approx(0.25)
    assert one.se == pytest.approx(values.std(ddof=1) / 2)
    assert one.high - one.mean == pytest.approx(
        3.182446 * one.se, rel=1e-5
    )  # Student's t, 3 degrees of freedom
    nothing = Estimate.of(np.array([1.0, 1.0]), np.zeros(2))
    assert nothing.to_dict() == {"mean": None, "se": None, "low": 0.0, "high": None}
    assert Estimate.of(np.zeros(2), np.zeros(2)).mean == 0


def trial_of(tolerance, tops, bottoms=1.0, *, targets):
    """A trial with known figures of one intruder."""
    tops = np.asarray(tops, dtype=float)[:, None]
    bottoms, judged = np.full_like(tops, bottoms), np.full_like(tops, targets)
    return Trial(noise(1), 1.0, "search", measure_of(tolerance), ("a",), tops, bottoms, tops, judged)


def test_the_bound_lies_t_errors_above_the_mean():
    trial = trial_of(MaxRate(0.15), [0.1, 0.12, 0.14], targets=10_000)
    assert trial.bound(0.05) == pytest.approx(-0.03 + 2.919986 * 0.02 / np.sqrt(3), rel=1e-5)
    assert trial.bound(0.05, 30) < trial.bound(0.05)
    assert trial.figure_bound(0.05) == pytest.approx(trial.bound(0.05) + 0.15)


@pytest.mark.parametrize(("count", "judged"), [(0, 7), (3, 40), (39, 40), (40, 40)])
def test_bounds_on_shares_are_exact(count, judged):
    """At the bound, a count as far off as the one seen has a chance of just the level."""
    high, low = share_above(count, judged, 0.03), share_below(count, judged, 0.03)
    assert high == 1 if count == judged else binom.cdf(count, judged, high) == pytest.approx(0.03)
    assert low == 0 if count == 0 else binom.sf(count - 1, judged, low) == pytest.approx(0.03)


@pytest.mark.parametrize(
    ("targets", "draws", "limit"), [(1, 10, 0.1), (1, 40, 0.3), (4, 10, 0.15), (10, 10, 0.02), (10, 40, 0.02)]
)
@pytest.mark.parametrize("kind", ["rate", "share of small h", "ratio"])
def test_few_targets_are_confirmed_no_more_often_than_the_level_says(targets, draws, limit, kind):
    """A rate just above what is tolerated, found by so few targets that their draws are often alike."""
    tolerances = {
        "rate": MaxRate(limit),
        "share of small h": ProbH(3, limit),
        "ratio": Ratio(limit / (1 - limit)),
    }
    level, repeats, rng = 0.05, 1500, np.random.default_rng(5)
    found = rng.binomial(targets, 1.01 * limit, (repeats, draws)) / targets
    confirmed = []
    for rates in found:
        wrong = (1 - rates)[:, None] if kind == "ratio" else 1.0
        confirmed.append(trial_of(tolerances[kind], rates, wrong, targets=targets).bound(level) <= 0)
    assert np.mean(confirmed) <= level + 3 * np.sqrt(level * (1 - level) / repeats)


def test_many_targets_are_not_judged_more_strictly_than_need_be():
    """With a rate a few errors below the limit nearly all are confirmed, and the bound is hardly above Student's."""
    rng, draws, targets = np.random.default_rng(6), 20, 1000
    sd = np.sqrt(0.15 * 0.85 / (draws * targets))
    trials = [
        trial_of(MaxRate(0.15), rng.binomial(targets, 0.15 - 5 * sd, draws) / targets, targets=targets)
        for _ in range(300)
    ]
    assert np.mean([trial.bound(0.05) <= 0 for trial in trials]) > 0.98
    plain = [trial.figure.mean + 1.729133 * trial.figure.se for trial in trials]  # Student's t, 19 degrees
    assert np.mean([trial.figure_bound(0.05) for trial in trials]) < np.mean(plain) + 0.25 * sd


@pytest.mark.parametrize(("share", "targets"), [(0.7, 1), (0.95, 4)])
def test_a_mean_h_that_all_draws_share_is_no_proof(share, targets):
    """h is 10 but for some targets, who are found: the true mean lies just below what is asked for."""
    level, repeats, rng = 0.05, 1500, np.random.default_rng(7)
    h = 10 * rng.binomial(targets, share, (repeats, 8)) / targets
    wanted = ExpectedH(10 * share * 1.01)
    confirmed = [trial_of(wanted, means, targets=targets).bound(level) <= 0 for means in h]
    assert np.mean(confirmed) <= level + 3 * np.sqrt(level * (1 - level) / repeats)
    alike = trial_of(wanted, np.full(8, 10.0), targets=targets)
    assert alike.figure_bound(level) == pytest.approx(10 * level ** (1 / (8 * targets)))
    assert alike.figure.low < 10 < alike.figure.high


def test_draws_that_are_all_alike_are_said_to_be():
    nothing = trial_of(MaxRate(0.1), np.zeros(10), targets=2)
    assert nothing.bound(0.05) > 0  # 0 of 20 is not yet below a tenth
    assert nothing.bound(0.05, 30) < 0
    assert nothing.figure_bound(0.05) == pytest.approx(1 - 0.05 ** (1 / 20))
    assert nothing.said == "0.00% in every draw"
    assert (nothing.figure.low, nothing.figure.high) == (0, pytest.approx(1 - 0.025 ** (1 / 20)))
    everybody = trial_of(MaxRate(0.1), np.ones(10), targets=2).figure
    assert (everybody.low, everybody.high) == (pytest.approx(0.025 ** (1 / 20)), 1)


def test_who_claims_nothing_has_no_ratio():
    nobody = trial_of(Ratio(2), np.zeros(5), 0.0, targets=9)
    assert nobody.bound(0.05) == nobody.figure_bound(0.05) == nobody.figure.mean == 0
    wrong = trial_of(Ratio(2), np.zeros(5), 1 / 9, targets=9)  # five claims, all wrong
    share = 1 - 0.05 ** (1 / 5)
    assert wrong.figure_bound(0.05) == pytest.approx(share / (1 - share))
    assert wrong.bound(0.05) <= 0


def test_losses_are_what_they_say(people, study_key):
    masking = apply(IndependentNoise(("INCOME", "TAX"), variance_ratio=0.25), people, key=study_key)
    changes = [
        (masking.masked.floats(n) - people.floats(n)) / np.nanstd(people.floats(n), ddof=1)
        for n in ("INCOME", "TAX")
    ]
    assert il1s(masking) == pytest.approx(np.mean([np.nanmean(np.abs(c)) for c in changes]) / np.sqrt(2))
    assert total_variance_ratio(masking) == pytest.approx(sum(np.nanmean(c**2) for c in changes))


def test_changed_categories_count_by_their_share(people, study_key):
    masking = apply(Pram(("EDU",), stay=0.7), people, key=study_key)
    before, after = people.floats("EDU"), masking.masked.floats("EDU")
    share = (before != after)[~np.isnan(before)].mean()
    assert il1s(masking) == pytest.approx(share)
    codes = apply(CodeNoise(("EDU",), variance=0.5), people, key=study_key)
    assert il1s(codes) > 0


def test_a_loss_that_is_not_defined_is_refused(people, study_key):
    masking = apply(Grouping(("AGE",), breaks=(30, 60)), people, key=study_key)
    with pytest.raises(BadPlan, match="the loss is not defined"):
        il1s(masking)
    with pytest.raises(BadPlan, match="finite number"):
        loss_of(lambda masking: float("nan"))(masking)
    with pytest.raises(BadPlan, match="did you mean 'IL1s'"):
        loss_of("il1")
    with pytest.raises(BadPlan, match="a loss is"):
        loss_of(3)


def test_a_trace_is_a_table(table):
    bench = bench_of(table, loss=loss_of("IL1s"))
    trials = tuple(bench.run(noise(c), c, "search", 2) for c in (0.2, 0.4))
    rows = trace_table(trials).to_pylist()
    assert [row["sd_ratio"] for row in rows] == [0.2, 0.4]
    assert rows[0]["figure"] == rows[0]["NearestRecord"] == pytest.approx(trials[0].figure.mean)
    assert rows[0]["loss"] < rows[1]["loss"]
    assert "sd_ratio=0.2" in trials[0].line()


def test_without_an_attack_the_nearest_record_is_asked_plain_and_informed():
    assert check_plans(None) == [NearestRecord(), NearestRecord(distance="posterior")]
    assert check_plans(NearestRecord()) == [NearestRecord()]
    assert check_plans((NearestRecord(), Linkage())) == [NearestRecord(), Linkage()]


def test_all_is_all(table):
    risk = attack(NearestRecord(), apply(noise(0.4), table, seed=1))
    counts = count_links(risk, table, ALL)
    assert (counts.targets, counts.correct) == (risk.targets, risk.expected_correct)
