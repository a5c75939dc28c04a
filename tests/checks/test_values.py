"""What is read without a link: largest values, means of groups, figures on the card."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from maskwell.checks import audit
from maskwell.checks.evidence import Evidence
from maskwell.checks.findings import Finding
from maskwell.checks.group_means import averages, averages_ahead
from maskwell.checks.last_record import last_record
from maskwell.checks.top_values import _top, close_probability, interval_probability
from maskwell.checks.value_checks import CHECKS
from maskwell.keys import Key, Stream, ids_from_numbers
from maskwell.laws import Power
from maskwell.laws.chain import combined_of
from maskwell.masking import Masking, apply
from maskwell.masks import BiasNoise, Chain, Coding, CorrelatedNoise, IndependentNoise, MixtureNoise, Pram
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .noise_plants import released

KEY = Key(np.random.default_rng(41).bytes(32))
DRAWS = 20_000


def made(check: str, masking: Masking) -> Finding:
    """Make one check."""
    return next(one for one in CHECKS if one.name == check).made(Evidence(masking))


def amounts(values: np.ndarray, unit: float | None = 1, **described: object) -> Table:
    """A table of one amount."""
    column = Column("SALES", "continuous", frozenset({"key"}), unit=unit, **described)  # type: ignore[arg-type]
    return Table.from_frame(pa.table({"SALES": np.asarray(values, float)}), Schema((column,)))


def long_tail(n: int = 2_000) -> np.ndarray:
    return np.rint(np.exp(6 + 1.2 * np.random.default_rng(17).standard_normal(n)))


# the law's own probabilities


LAWS = {
    "plain": IndependentNoise("SALES", variance_ratio=0.3),
    "laplace": IndependentNoise("SALES", variance_ratio=0.3, shape="laplace"),
    "log": IndependentNoise("SALES", variance_ratio=0.03, transform="log", shift=5.0),
    "clamped": IndependentNoise("SALES", variance_ratio=0.3, limits=(("SALES", 0.0, 12_000.0),)),
    "coded": Chain([IndependentNoise("SALES", variance_ratio=0.3), Coding("SALES", top=9_000)]),
    "mixture": MixtureNoise("SALES", variance_ratio=0.4, within_variance_ratio=0.1),
    "power": IndependentNoise("SALES", variance_ratio=0.3, spread=Power(0.5)),
    "bias": BiasNoise("SALES", bias_sd=0.2, sd_ratio=0.1),
    "skewed bias": BiasNoise("SALES", bias_sd=0.2, sd_ratio=0.1, shape="lognormal"),
}


@pytest.mark.parametrize("unit", [None, 1, 100])
@pytest.mark.parametrize("name", LAWS)
def test_the_probability_is_that_of_the_laws_own_draws(name, unit):
    values = long_tail() if unit is None else np.rint(long_tail() / unit) * unit + unit
    law = Evidence(apply(LAWS[name], amounts(values, unit), key=KEY)).masking.card.law_of("SALES")
    law, x = combined_of(law), np.sort(values)[::-1][:5]
    drawn = law.draw(
        np.repeat(x, DRAWS)[:, None].copy(order="F"), Stream(KEY, "test", "0", ids_from_numbers(5 * DRAWS))
    )
    z = drawn[:, 0].reshape(5, DRAWS)
    top = law.outlets[0].codes[1]
    is_open = z < (np.inf if top is None else top)
    share = ((np.abs(z - x[:, None]) <= 0.1 * x[:, None] * (1 + 1e-12)) & is_open).mean(axis=1)
    found = close_probability(law, x)
    error = np.sqrt(np.maximum(found * (1 - found), 1 / DRAWS) / DRAWS)
    assert (np.abs(share - found) < 4.5 * error).all()


def test_everything_that_is_open_has_probability_one():
    law = apply(LAWS["log"], amounts(long_tail()), key=KEY).card.laws[0]
    x = np.array([1.0, 500.0, 40_000.0])
    assert interval_probability(law, x, np.full(3, -np.inf), np.full(3, np.inf)) == pytest.approx(1)


def test_noise_in_proportion_to_the_sd_gives_the_largest_away_and_noise_on_the_log_scale_does_not():
    truth = amounts(long_tail())
    plain = made("top values", apply(IndependentNoise("SALES", variance_ratio=0.25), truth, key=KEY))
    assert plain.verdict == "fail"
    assert plain.where == "SALES"
    assert "of the 11 largest" in plain.said
    log = made(
        "top values", apply(IndependentNoise("SALES", variance=0.35**2, transform="log"), truth, key=KEY)
    )
    assert log.verdict == "pass"
    assert log.figure == pytest.approx(0.22, abs=0.02)  # 0.2 of a normal law around its centre over 0.35
    assert f"{np.sort(long_tail())[-1]:.0f}" not in plain.said


def test_a_top_code_takes_the_largest_values_away():
    values = long_tail()
    code = float(np.quantile(values, 0.97))
    coded = Chain([IndependentNoise("SALES", variance_ratio=0.25), Coding("SALES", top=code)])
    assert made("top values", apply(coded, amounts(values), key=KEY)).figure < 0.25


def test_one_giant_among_many_alike_is_seen():
    rng = np.random.default_rng(5)
    values = np.rint(1_000 + 100 * rng.standard_normal(2_000))
    alike = apply(IndependentNoise("SALES", variance=60.0**2), amounts(values), key=KEY)
    assert made("top values", alike).figure == 0
    values[7] = 9_000
    giant = apply(IndependentNoise("SALES", variance=60.0**2), amounts(values), key=KEY)
    assert made("top values", giant).verdict == "fail"


@pytest.mark.parametrize(
    "values",
    [
        np.rint(170 + 10 * np.random.default_rng(1).standard_normal(2_000)),  # heights
        np.random.default_rng(2).integers(0, 95, 4_000),  # ages
        np.random.default_rng(3).uniform(1, 1e8, 4_000).round(),
    ],
)
def test_columns_without_a_tail_are_not_judged(values):
    masking = apply(IndependentNoise("SALES", variance_ratio=0.25), amounts(values), key=KEY)
    assert made("top values", masking).verdict == "pass"


def test_a_file_masked_elsewhere_is_judged_by_what_left():
    truth = amounts(long_tail())
    noise = np.random.default_rng(8).standard_normal(len(truth))
    left = released(truth, {"SALES": np.rint(truth.floats("SALES") + 300 * noise)})
    found = made("top values", left)
    assert found.verdict == "fail"
    assert "no law" in found.said


def test_the_overlap_is_that_of_the_files():
    masking = apply(IndependentNoise("SALES", variance_ratio=0.25), amounts(long_tail()), key=KEY)
    x, z = masking.truth.floats("SALES"), masking.masked.floats("SALES")
    both = set(np.argsort(-x)[:11]) & set(np.argsort(-z)[:11])
    top = _top(Evidence(masking), "SALES")
    assert top is not None
    assert top.overlap == len(both)


# means of groups


def pupils(schools: int = 40, each: int = 50, own: float = 0.0, *, role: str = "group") -> Table:
    """Pupils in schools: the school's budget is the same for all its pupils (but for `own`), a grade is not."""
    rng = np.random.default_rng(23)
    member = np.repeat(np.arange(schools), each)
    budget = rng.standard_normal(schools)[member] + own * rng.standard_normal(len(member))
    columns = (
        Column("school", "integer", frozenset({role})),
        Column("sex", "category", frozenset({"block"}), categories=("f", "m")),
        Column("budget", "continuous", frozenset({"key"}), unit=0.001),
        Column("grade", "continuous", frozenset({"key"}), unit=0.01),
    )
    data = {
        "school": member + 1,
        "sex": rng.choice(["f", "m"], len(member)),
        "budget": budget.round(3),
        "grade": rng.standard_normal(len(member)).round(2),
    }
    return Table.from_frame(pa.table(data), Schema(columns))


NOISE = IndependentNoise(("budget", "grade"), variance=0.566**2)


def test_the_largest_losses_are_looked_at_as_the_largest_gains_are():
    values = np.random.default_rng(6).normal(0, 300, 2_000)
    values[:3] = (-90_000, -70_000, -50_000)
    found = made(
        "top values",
        apply(IndependentNoise(("SALES",), variance_ratio=0.09), amounts(values.round()), key=KEY),
    )
    assert found.verdict == "fail"
    assert found.figures["SALES, below 0"] == found.figure > found.figures["SALES"]
    assert "most negative values of SALES" in found.said
    assert found.by_column == {"SALES": found.figure}


def test_every_column_that_a_finding_names_is_one_of_the_file():
    """Labels of figures may be pairs, directions or ends; what advice drops is taken from `by_column` alone."""
    rng = np.random.default_rng(8)
    values = rng.normal(0, 300, 2_000).round()
    values[:3] = (-90_000, 70_000, 50_000)
    masking = apply(IndependentNoise(("SALES",), variance_ratio=0.09), amounts(values), key=KEY)
    found = audit(masking)
    assert found["top values"].by_column
    for one in found.findings:
        assert {*one.by_column} <= {*masking.truth.schema.names}, one.check
        assert {*one.failing_columns} <= {*one.by_column}


def test_losses_are_judged_as_gains_of_the_same_size():
    gains = long_tail()
    noise = IndependentNoise(("SALES",), variance_ratio=0.09)
    up, down = (made("top values", apply(noise, amounts(side * gains), key=KEY)) for side in (1, -1))
    assert down.figures["SALES, below 0"] == pytest.approx(up.figures["SALES"], abs=0.02)


def test_what_the_search_for_groups_leaves_out_is_said(monkeypatch):
    from maskwell.checks import group_means as module

    plain, rng = pupils(), np.random.default_rng(4)
    more = plain.to_arrow().append_column("town", pa.array(rng.integers(0, 9, len(plain))))
    table = Table.from_frame(more, Schema((*plain.schema.columns, Column("town", "integer"))))
    masking = apply(NOISE, table, key=KEY)
    assert "not by some of them" not in made("averaging", masking).said
    monkeypatch.setattr(module, "MOST_SORTED", 100)
    assert "groups by each of the" in made("averaging", masking).said


def test_a_value_that_a_group_shares_is_averaged():
    found = made("averaging", apply(NOISE, pupils(), key=KEY))
    assert found.verdict == "fail"
    assert found.where == "budget by school"
    assert found.figure == pytest.approx(1 / np.sqrt(50))
    assert found.figure * 0.566 == pytest.approx(0.080, abs=0.001)
    assert found.figures["grade"] == 1


@pytest.mark.parametrize("groups", [2, 3, 4])
def test_a_value_that_few_large_groups_share_is_averaged(groups):
    """A tax of two to four regions: the mean over a region has it."""
    found = made("averaging", apply(NOISE, pupils(groups, 500), key=KEY))
    assert found.verdict == "fail"
    assert found.where == "budget by school"
    assert found.figure == pytest.approx(1 / np.sqrt(500))
    assert made("averaging", apply(NOISE, pupils(groups, 500, own=0.3), key=KEY)).figure == 1


def test_few_groups_without_a_rare_value_are_an_accident():
    """One in a hundred has another value: two groups of thirty without any are nothing to wonder at."""
    rng = np.random.default_rng(6)
    groups, code = np.repeat([0, 1], 30), np.zeros(60)
    data = {"part": np.r_[groups, 2 + np.arange(600)], "code": np.r_[code, rng.random(600) < 0.01].round()}
    columns = (Column("part", "integer"), Column("code", "continuous", frozenset({"key"}), unit=0.01))
    truth = Table.from_frame(pa.table(data), Schema(columns))
    masking = apply(IndependentNoise("code", variance=1.0), truth, key=KEY)
    assert averages(Evidence(masking)).figure == 1


def test_what_varies_inside_groups_is_not():
    assert made("averaging", apply(NOISE, pupils(own=0.3), key=KEY)).figure == 1


def test_noise_drawn_once_for_a_group_does_not_average():
    truth = pupils()
    school = np.asarray(truth.array("school")) - 1
    shared = 0.566 * np.random.default_rng(3).standard_normal(40)[school]
    budget = (truth.floats("budget") + shared).round(3)
    found = made("averaging", released(truth, {"budget": budget}))
    assert found.figure == pytest.approx(1, abs=0.02)
    assert found.verdict == "pass"


def test_pairs_are_enough_to_fail():
    found = made("averaging", apply(NOISE, pupils(400, 2), key=KEY))
    assert found.figure == pytest.approx(np.sqrt(0.5))
    assert found.verdict == "fail"


def test_groups_without_an_id_are_put_together_by_what_they_share():
    """Schools known by three columns together, none of which alone tells them, among others of the pupils' own."""
    plain, rng = pupils(), np.random.default_rng(4)
    school = np.asarray(plain.array("school")) - 1
    lockers = rng.permutation(len(plain))  # each pupil's own
    traits = {
        "town": school % 5,
        "size": school // 5 % 4,
        "kind": school // 20,
        "shoes": rng.integers(0, 3, len(plain)),
    }
    labels = {name: [f"{name} {i}" for i in codes] for name, codes in traits.items()}
    columns = [
        Column(name, "category", frozenset({"block"}), categories=tuple(sorted(set(values))))
        for name, values in labels.items()
    ]
    data = {"locker": lockers, **labels, **{name: plain.array(name) for name in ("budget", "grade")}}
    schema = Schema((Column("locker", "integer"), *columns, plain.schema["budget"], plain.schema["grade"]))
    found = made("averaging", apply(NOISE, Table.from_frame(pa.table(data), schema), key=KEY))
    assert found.where == "budget by town, size, kind"
    assert found.figure == pytest.approx(1 / np.sqrt(50))


def test_a_dropped_group_puts_nobody_together():
    truth = pupils()
    columns = tuple(replace(one, drop=one.name == "school") for one in truth.schema.columns)
    dropped = Table.from_frame(truth.to_frame(), Schema(columns))
    assert made("averaging", apply(NOISE, dropped, key=KEY)).figure == 1


def test_coincidences_of_a_code_are_no_group():
    """A binary column is constant in half of the pairs by chance."""
    rng = np.random.default_rng(6)
    n = 2_000
    data = {"pair": np.arange(n) // 2, "code": rng.integers(0, 2, n).astype(float)}
    columns = (
        Column("pair", "integer", frozenset({"group"})),
        Column("code", "continuous", frozenset({"key"}), unit=0.01),
    )
    truth = Table.from_frame(pa.table(data), Schema(columns))
    masking = apply(IndependentNoise("code", variance=1.0), truth, key=KEY)
    assert averages(Evidence(masking)).figure == 1


def test_a_category_that_a_group_shares_is_voted_on():
    truth, rng = pupils(100, 9), np.random.default_rng(31)
    faith = np.array(["a", "b", "c"])[rng.integers(0, 3, 100)][np.asarray(truth.array("school")) - 1]
    column = Column("faith", "category", frozenset({"key"}), categories=("a", "b", "c"))
    data = truth.to_frame().append_column("faith", pa.array(faith))
    whole = Table.from_frame(data, Schema((*truth.schema.columns, column)))
    found = made("averaging", apply(Pram("faith", stay=0.6), whole, key=KEY))
    assert found.where == "faith by school"
    assert found.verdict == "fail"
    assert found.figure < 0.4  # 9 votes, 0.6 of them right
    own = whole.with_columns(
        {"faith": (column, rng.permutation(whole.floats("faith")), whole.status("faith"))}
    )
    assert made("averaging", apply(Pram("faith", stay=0.6), own, key=KEY)).figure == 1


# figures on the card


def gaussian(n: int, width: int = 1, seed: int = 2) -> Table:
    """Columns of a normal law, correlated, of an sd that falls on no figure of a card."""
    rng = np.random.default_rng([seed, n])
    values = 3.7 * (rng.standard_normal((n, width)) + rng.standard_normal((n, 1)))
    return Table.from_frame(pa.table({name: values[:, j] for j, name in enumerate("ABCD"[:width])}))


def two_digit_error(x: np.ndarray, ratio: float, last: int) -> float:
    """The error that two digits of an sd leave of one record, by brute force over what it might have been."""
    shown = float(f"{ratio * x.std(ddof=1):.1e}")
    others = np.delete(x, last)
    tried = others.mean() + np.linspace(0, 60 * x.std(), 60_001)
    sds = np.sqrt(
        (others.var() * len(others) + len(others) / len(x) * (tried - others.mean()) ** 2) / len(others)
    )
    fits = tried[np.abs(ratio * sds - shown) <= shown_step(shown) / 2]
    return float(np.ptp(fits)) / np.sqrt(12) / shown


def shown_step(shown: float) -> float:
    return float(10.0 ** (np.floor(np.log10(shown)) - 1))


def test_two_digits_tell_the_last_record_as_was_measured():
    """0.4 sds of the noise at 20 records, 1.4 at 200 and 3 at 1,000: medians over files."""
    for n, published in ((20, 0.4), (200, 1.4), (1_000, 3.0)):
        errors = []
        for seed in range(150):
            x = gaussian(n, seed=seed).floats("A") * 10 ** (seed / 150)
            errors.append(two_digit_error(x, 0.5, 0))
        spread = 1.25 * np.std(errors) / np.sqrt(len(errors))  # standard error of a median, of a normal law
        assert abs(np.median(errors) - published) < 4 * spread + 0.05


@pytest.mark.parametrize("n", [20, 200, 1_000])
def test_the_check_inverts_the_rounding_as_brute_force_does(n):
    from maskwell.checks.last_record import NoiseSizes, _last_record_error

    truth = gaussian(n)
    x = truth.floats("A")
    exact = apply(IndependentNoise("A", variance_ratio=0.25), truth, key=KEY, exact=True).card.laws[0]
    shown = float(f"{exact.noise.sds[0]:.2e}")  # three digits: no size of this program's own
    told = _last_record_error(NoiseSizes(exact, 0, (shown,), exact.noise.sds), truth)
    assert told is not None
    low, high = shown - shown_step(shown) / 20, shown + shown_step(shown) / 20
    for last in (0, 1, int(np.argmax(np.abs(x)))):
        others = np.delete(x, last)
        tried = np.linspace(0, 10 * x.std(), 400_001)
        squares = others.var() * len(others) + len(others) / n * tried**2
        fits = tried[(0.5 * np.sqrt(squares / (n - 1)) >= low) & (0.5 * np.sqrt(squares / (n - 1)) <= high)]
        sides = 2 if fits.min() == 0 else 1  # of the mean: near it nobody knows on which the record lies
        assert told.error[last] == pytest.approx(
            sides * np.ptp(fits) / np.sqrt(12) / exact.noise.sds[0], rel=0.01, abs=1e-3
        )


def test_the_cards_of_small_files_pass_and_full_precision_fails():
    for n in (20, 60, 300):
        truth = gaussian(n)
        mask = IndependentNoise("A", variance_ratio=0.25)
        assert made("last record", apply(mask, truth, key=KEY)).figure > 1
        exact = made("last record", apply(mask, truth, key=KEY, exact=True))
        assert exact.verdict == "fail"
        assert exact.figure < 1e-6


def test_two_digits_of_a_small_file_fail():
    truth = gaussian(20)
    masking = apply(IndependentNoise("A", variance_ratio=0.25), truth, key=KEY)
    (law,) = masking.card.laws
    sd = float(f"{0.5 * truth.floats('A').std(ddof=1):.1e}")
    two = replace(masking.card, laws=(replace(law, noise=replace(law.noise, sds=(sd,))),))
    found = made("last record", replace(masking, card=two))
    assert found.verdict in ("warn", "fail")
    assert found.figure < 0.5
    assert found.said.startswith(
        f"who knows all other records can compute the last one's A from the size of the noise on the card, to "
        f"± {found.figure:.2g} sds of the noise at worst, "
    )
    assert found.said.endswith(" typically (its released value alone: ± 1)")


def test_correlations_tell_too():
    truth = gaussian(60, 3)
    mask = CorrelatedNoise(("A", "B", "C"), sd_ratio=0.5)
    masking = apply(mask, truth, key=KEY)
    assert made("last record", masking).verdict == "pass"
    (law,) = masking.card.laws
    fine = np.corrcoef(truth.values(("A", "B", "C")).T).round(2)
    noise = replace(law.noise, correlations=tuple(map(tuple, fine.tolist())))
    told = made(
        "last record", replace(masking, card=replace(masking.card, laws=(replace(law, noise=noise),)))
    )
    assert told.figure < 0.25


def test_long_tails_of_a_thousand_records_pass_at_full_noise():
    for n in (1_000, 1_500, 5_000):
        normals = np.random.default_rng(n).normal(size=(n, 2))
        values = np.exp(1.5 * normals @ np.array([[1.0, 0.5], [0.0, 0.9]]))
        truth = Table.from_frame(pa.table({"A": values[:, 0], "B": values[:, 1]}))
        masking = apply(CorrelatedNoise(("A", "B"), sd_ratio=1.0), truth, key=KEY)
        assert made("last record", masking).verdict != "fail"
        (law,) = masking.card.laws
        sds = tuple(float(f"{sd:.2e}") for sd in values.std(axis=0, ddof=1))  # a third digit tells
        fine = replace(law, noise=replace(law.noise, sds=sds))
        told = made("last record", replace(masking, card=replace(masking.card, laws=(fine,))))
        assert told.verdict == "fail"


def test_a_size_that_the_plan_gives_tells_nothing():
    found = last_record(Evidence(apply(IndependentNoise("A", variance=4.0), gaussian(20), key=KEY)))
    assert np.isnan(found.figure)
    assert "no size on the card" in found.said


def test_what_is_left_between_two_releases_tells_nothing_new():
    truth = gaussian(300)
    ids = Column("id", "integer", frozenset({"id"}))
    data = pa.table({"id": np.arange(300), "A": truth.floats("A")})
    named = Table.from_frame(data, Schema((ids, truth.schema["A"])))
    first = apply(IndependentNoise("A", variance_ratio=0.1), named, key=KEY)
    nested = apply(IndependentNoise("A", variance_ratio=0.5), named, key=KEY, earlier=first)
    assert made("last record", nested).figure > 0.5
    twice = Chain([IndependentNoise("A", variance_ratio=0.1), IndependentNoise("A", variance_ratio=0.2)])
    assert made("last record", apply(twice, named, key=KEY)).figure > 0.5


def test_where_another_column_is_missing_puts_records_together_too():
    """Who does not work has 0 hours and no wage: the wage's gaps leave in clear, and tell the hours."""
    rng = np.random.default_rng(8)
    works = rng.random(2000) < 0.6
    hours = np.where(works, rng.normal(35, 8, 2000).round(3), 0.0)
    wage = pa.array(rng.normal(900, 200, 2000).round(2), mask=~works)
    key = frozenset({"key"})
    schema = Schema(
        (Column("wage", "continuous", key, unit=0.01), Column("hours", "continuous", key, unit=0.001))
    )
    table = Table.from_frame(pa.table({"wage": wage, "hours": hours}), schema)
    masking = apply(IndependentNoise(("wage", "hours"), variance_ratio=1.0), table, key=KEY)
    found = made("averaging", masking)
    assert found.verdict == "fail"
    assert "whether wage is missing" in found.said


def test_a_value_shared_in_some_groups_alone_is_said_of_these():
    """Who does not work has 0 hours, in each of ten towns; the others have hours of their own."""
    rng = np.random.default_rng(6)
    town, works = rng.integers(0, 10, 4000), rng.random(4000) < 0.6
    hours = np.where(works, rng.normal(35, 8, 4000).round(3), 0.0)
    towns = tuple(f"t{i}" for i in range(10))
    schema = Schema(
        (
            Column("town", "category", frozenset({"block"}), categories=towns),
            Column("works", "category", frozenset({"block"}), categories=("no", "yes")),
            Column("hours", "continuous", frozenset({"key"}), unit=0.001),
        )
    )
    data = {"town": [towns[i] for i in town], "works": np.where(works, "yes", "no").tolist(), "hours": hours}
    noise = IndependentNoise(("hours",), variance_ratio=1.0)
    found = made("averaging", apply(noise, Table.from_frame(pa.table(data), schema), key=KEY))
    assert found.figure == pytest.approx(np.sqrt(works.mean()), abs=0.01)
    assert f"for {1 - works.mean():.0%} of those who are not alone hours is the same" in found.said


def bookings(common: float, *, told: bool) -> Table:
    """Cancellations of bookings: mostly 0, and where `told` another number that all bookings of a class share."""
    rng = np.random.default_rng(7)
    classes = np.repeat(np.arange(400), 5)
    own = rng.random(400 if told else 2000) > common
    number = np.where(own, rng.integers(1, 9, len(own)), 0)
    values = (number[classes] if told else number).astype(float)
    names = tuple(f"c{i:03d}" for i in range(400))
    schema = Schema(
        (
            Column("class", "category", frozenset({"block"}), categories=names),
            Column("cancelled", "continuous", frozenset({"key"}), unit=1),
        )
    )
    data = {"class": [names[i] for i in classes], "cancelled": values}
    return Table.from_frame(pa.table(data), schema)


def test_classes_that_agree_on_what_most_records_have_do_not_count():
    """Of classes of five 66% have nothing but 0 where 92% of the records have 0: that tells nobody who has more."""
    noise = IndependentNoise(("cancelled",), variance_ratio=1.0)
    by_chance = made("averaging", apply(noise, bookings(0.92, told=False), key=KEY))
    assert by_chance.verdict == "pass"
    told = made("averaging", apply(noise, bookings(0.92, told=True), key=KEY))
    assert told.figure == pytest.approx(1 / np.sqrt(5), abs=0.02)
    assert told.verdict == "fail"


def test_one_large_class_of_the_commonest_value_is_no_average():
    """Of 2,000 bookings 1,600 are of new guests, who have never cancelled; of the others each has its own number."""
    values = np.r_[np.zeros(1600), np.random.default_rng(2).integers(0, 60, 400)]
    schema = Schema(
        (
            Column("guest", "category", frozenset({"block"}), categories=("new", "known")),
            Column("cancelled", "continuous", frozenset({"key"}), unit=1),
        )
    )
    data = {"guest": ["new"] * 1600 + ["known"] * 400, "cancelled": values}
    table = Table.from_frame(pa.table(data), schema)
    noise = IndependentNoise(("cancelled",), variance_ratio=1.0)
    assert made("averaging", apply(noise, table, key=KEY)).verdict == "pass"
    ahead = averages_ahead({"cancelled": values}, {"guest": (values > 0).astype(np.int64)})
    assert "cancelled" not in ahead or ahead["cancelled"].left > 0.95
