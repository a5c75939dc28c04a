"""The built-in survey has the published figures, exactly where it says so, and the same law at any size."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, ndtr

import maskwell as mw
from maskwell.datasets import homes, housing, housing_arrays
from maskwell.datasets.homes import (
    CLASSES,
    ODD_HOME_ODDS,
    POOR_OWNER,
    POOR_RENTER,
    cell_counts,
    household_kinds,
)
from maskwell.datasets.laws import WholeLognormal, amount_laws, latent_correlations, pattern_counts
from maskwell.datasets.published_figures import AMOUNTS, PAIR_CORRELATIONS, PAIR_COUNTS, PAIRS, SIZE
from maskwell.errors import BadPlan
from maskwell.schema import BOTTOM_CODED, MISSING, OPEN, TOP_CODED, Schema

SEEDS = (1993, 7, 2**40)
PAGE = (Path(__file__).parents[1] / "docs" / "survey.md").read_text(encoding="utf-8")
PAIR_NAMES = [f"{AMOUNTS[i].name}, {AMOUNTS[j].name}" for i, j in PAIRS]
NAMES = ["IDNUM", *CLASSES, *(amount.name for amount in AMOUNTS)]


@cache
def survey(n=SIZE, seed=1993):
    return housing_arrays(n, seed)


def amounts_of(arrays):
    values = np.array([arrays[amount.name] for amount in AMOUNTS])
    tops = np.array([amount.top for amount in AMOUNTS])[:, None]
    return values, (values > 0) & (values < tops)


def cell_of(arrays):
    codes = [np.searchsorted(classes, arrays[name]) for name, classes in CLASSES.items()]
    return np.ravel_multi_index(codes, tuple(map(len, CLASSES.values())))


def within(found, truth, standard_error, allowed=4):
    return np.all(np.abs(np.asarray(found) - truth) <= allowed * np.asarray(standard_error))


def closely(share, truth, count):
    return within(share, truth, np.sqrt(truth * (1 - truth) / count))


# The published figures, at the published size.


@pytest.mark.parametrize("seed", SEEDS)
def test_counts_of_open_values_and_pairs_are_the_published_ones(seed):
    _, is_open = amounts_of(survey(seed=seed))
    assert is_open.sum(axis=1).tolist() == [amount.open_count for amount in AMOUNTS]
    assert [int((is_open[i] & is_open[j]).sum()) for i, j in PAIRS] == list(PAIR_COUNTS)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("field", range(5), ids=[amount.name for amount in AMOUNTS])
def test_means_and_sds_are_the_published_ones_as_printed(seed, field):
    values, is_open = amounts_of(survey(seed=seed))
    amount, opened = AMOUNTS[field], values[field, is_open[field]]
    digits = 2 if amount.name == "TAXES" else 0
    assert round(opened.mean(), digits) == amount.mean
    assert round(opened.std(ddof=1), digits) == amount.sd


@pytest.mark.parametrize("seed", SEEDS)
def test_correlations_are_within_half_a_unit_of_the_third_decimal(seed):
    values, is_open = amounts_of(survey(seed=seed))
    for (i, j), published in zip(PAIRS, PAIR_CORRELATIONS, strict=True):
        both = is_open[i] & is_open[j]
        assert np.corrcoef(values[i, both], values[j, both])[0, 1] == pytest.approx(published, abs=5e-4)


@pytest.mark.parametrize("seed", SEEDS)
def test_771_records_are_in_cells_of_at_most_7(seed):
    cell = cell_of(survey(seed=seed))
    sizes = np.bincount(cell)[cell]
    assert np.count_nonzero(sizes <= 7) == 771


def test_matching_blocks_hold_fewer_than_2000_records():
    blocks = cell_counts().sum(axis=0)
    assert blocks.sum() == SIZE
    assert blocks.max() == 1745
    assert 50 < np.median(blocks) < 500
    targets = (cell_counts() > 0) & (cell_counts() <= 7)
    assert np.broadcast_to(blocks, targets.shape)[targets].max() == 112


# The laws behind them.


def test_pattern_counts_are_the_maximum_entropy_law_made_whole():
    counts = pattern_counts()
    fields = np.indices(counts.shape).reshape(5, -1)
    features = np.vstack([fields, [fields[i] * fields[j] for i, j in PAIRS]])
    wanted = np.array([*(amount.open_count for amount in AMOUNTS), *PAIR_COUNTS]) / SIZE
    assert (features @ counts.ravel()).tolist() == np.rint(wanted * SIZE).tolist()

    def dual(weights):
        logs = weights @ features
        total = logsumexp(logs)
        return total - weights @ wanted, features @ np.exp(logs - total) - wanted

    logs = minimize(dual, np.zeros(15), jac=True, method="BFGS", options={"gtol": 1e-9}).x @ features
    rounding = 0.5 * 16  # of the 16 sets of three to five fields, each rounded once
    np.testing.assert_allclose(counts.ravel(), SIZE * np.exp(logs - logsumexp(logs)), atol=rounding)
    assert counts.min() >= 0


def test_laws_have_the_published_moments():
    for law, amount in zip(amount_laws(), AMOUNTS, strict=True):
        mean, sd = law.moments()
        assert mean == pytest.approx(amount.mean, rel=1e-8)
        assert sd * np.sqrt(amount.open_count / (amount.open_count - 1)) == pytest.approx(amount.sd, rel=1e-8)


def test_law_moments_are_those_of_its_quantiles():
    law = WholeLognormal(log_mean=2.0, log_sd=0.8, top=40)
    values = law.values((np.arange(1_000_000) + 0.5) / 1_000_000)
    assert law.moments() == pytest.approx((values.mean(), values.std()), rel=1e-5)
    assert (values.min(), values.max()) == (1, 39)


def test_law_goes_on_beyond_the_top_code():
    law = WholeLognormal(log_mean=2.0, log_sd=0.8, top=40)
    larger = (np.arange(1_000_000) + 0.5) / 1_000_000
    values = law.values_beyond(larger)
    survival = ndtr((2.0 - np.log([39.5, 59.5, 99.5])) / 0.8)
    shares = [np.mean(values >= amount) for amount in (40, 60, 100)]
    np.testing.assert_allclose(shares, survival / survival[0], atol=1e-6)
    least, largest = law.values_beyond(np.array([1.0, 2**-53]))
    assert (least, np.isfinite(largest)) == (40, True)


def test_latent_correlations_give_the_published_ones_by_integration():
    normals = np.linspace(-7, 7, 501)
    weights = np.exp(-(normals**2) / 2)
    weights /= weights.sum()
    laws, latent = amount_laws(), latent_correlations()
    assert np.linalg.eigvalsh(latent).min() > 0.1
    for (i, j), published in zip(PAIRS, PAIR_CORRELATIONS, strict=True):
        r = latent[i, j]
        first = laws[i].values(ndtr(normals))
        second = laws[j].values(ndtr(r * normals[:, None] + np.sqrt(1 - r**2) * normals))
        (mean_i, sd_i), (mean_j, sd_j) = laws[i].moments(), laws[j].moments()
        covariance = (weights * (first - mean_i)) @ (second - mean_j) @ weights
        assert covariance / (sd_i * sd_j) == pytest.approx(published, abs=1e-4)


def test_what_is_cached_cannot_be_changed():
    for made in (pattern_counts(), cell_counts(), latent_correlations()):
        with pytest.raises(ValueError, match="read-only"):
            made[0] = 0


# What every survey looks like.


@pytest.mark.parametrize("n", [1, 10, 5000, SIZE, 200_000])
def test_every_size_has_the_same_columns_ids_classes_and_codes(n):
    arrays = survey(n)
    assert list(arrays) == NAMES
    assert {len(array) for array in arrays.values()} == {n}
    ids = arrays["IDNUM"].tolist()
    assert len(set(ids)) == n
    assert all(len(text) == 12 and text.isascii() and text.isdigit() for text in ids)
    assert all(np.isin(arrays[name], classes).all() for name, classes in CLASSES.items())
    for amount in AMOUNTS:
        values = arrays[amount.name][~np.isnan(arrays[amount.name])]
        assert np.all((values == np.rint(values)) & (values >= 0) & (values <= amount.top))


def test_some_ids_start_with_a_zero():
    share = np.mean([text.startswith("0") for text in survey()["IDNUM"]])
    assert closely(share, 0.1, SIZE)


@pytest.mark.parametrize("n", [10, 5000, SIZE])
def test_the_seed_decides_every_byte(n):
    again = housing_arrays(n)
    other = survey(n, seed=7)
    assert all(again[name].tobytes() == array.tobytes() for name, array in survey(n).items())
    assert all(other[name].tobytes() != array.tobytes() for name, array in survey(n).items() if n > 10)
    assert other["IDNUM"].tolist() != again["IDNUM"].tolist()


@pytest.mark.parametrize("n", [0, -5])
def test_a_survey_without_records_is_refused(n):
    with pytest.raises(BadPlan, match="n must be 1 or more"):
        housing_arrays(n)


# The same law at other sizes, within 4 standard errors.


@pytest.mark.parametrize("n", [5000, 200_000])
def test_open_shares_hold_at_other_sizes(n):
    _, is_open = amounts_of(survey(n))
    assert closely(is_open.mean(axis=1), np.array([amount.open_count for amount in AMOUNTS]) / SIZE, n)
    both = np.array([(is_open[i] & is_open[j]).mean() for i, j in PAIRS])
    assert closely(both, np.array(PAIR_COUNTS) / SIZE, n)


@pytest.mark.parametrize("n", [5000, 200_000])
def test_means_and_sds_hold_at_other_sizes(n):
    values, is_open = amounts_of(survey(n))
    for field, amount in enumerate(AMOUNTS):
        opened = values[field, is_open[field]]
        pull_on_sd = ((opened - opened.mean()) ** 2 - opened.var()) / (2 * opened.std())
        assert within(opened.mean(), amount.mean, opened.std() / np.sqrt(opened.size))
        assert within(opened.std(), amount.sd, pull_on_sd.std() / np.sqrt(opened.size))


@pytest.mark.parametrize("n", [5000, 200_000])
def test_correlations_hold_at_other_sizes(n):
    values, is_open = amounts_of(survey(n))
    for (i, j), published in zip(PAIRS, PAIR_CORRELATIONS, strict=True):
        x, y = values[[i, j]][:, is_open[i] & is_open[j]]
        x, y = (x - x.mean()) / x.std(), (y - y.mean()) / y.std()
        found = np.mean(x * y)
        pull = x * y - found * (x**2 + y**2) / 2
        assert within(found, published, pull.std() / np.sqrt(x.size))


@pytest.mark.parametrize("n", [5000, 200_000])
def test_cells_hold_at_other_sizes(n):
    counts = cell_counts().ravel()
    share = counts[counts > 0] / SIZE
    found = np.bincount(cell_of(survey(n)), minlength=counts.size)
    assert not found[counts == 0].any()
    chi_square = np.sum((found[counts > 0] - n * share) ** 2 / (n * share))
    k = share.size
    variance = 2 * (k - 1) + (np.sum(1 / share) - k**2 - 2 * k + 2) / n
    assert within(chi_square, k - 1, np.sqrt(variance))


# What is invented, as the page says it.


def test_renters_have_no_housing_amounts():
    values, is_open = amounts_of(survey())
    renters = is_open[0] & ~is_open[1:].any(axis=0)
    assert renters.sum() == pattern_counts()[1, 0, 0, 0, 0]
    assert np.isnan(values[1:, renters]).all()


def test_closed_values_of_owners_split_by_the_shares_of_the_page():
    values, is_open = amounts_of(survey())
    owners = is_open[1:].any(axis=0)
    for field, amount in enumerate(AMOUNTS):
        closed = values[field, owners & ~is_open[field]]
        assert closely(np.isnan(closed).mean(), amount.missing_share, closed.size)
        assert closely((closed == 0).mean(), amount.bottom_share, closed.size)
        top_share = 1 - amount.missing_share - amount.bottom_share
        row = f"| {amount.name} | {amount.missing_share:.2f} | {amount.bottom_share:.2f} | {top_share:.2f} |"
        assert row in PAGE


def test_refusals_go_together():
    values, is_open = amounts_of(survey())
    both = is_open[1:].any(axis=0) & ~is_open[0] & ~is_open[3]
    income, maintain = np.isnan(values[0, both]), np.isnan(values[3, both])
    assert np.corrcoef(income, maintain)[0, 1] > 4 / np.sqrt(both.sum())


def test_larger_and_newer_homes_are_worth_more():
    arrays = survey()
    values, is_open = amounts_of(arrays)
    worth = values[1, is_open[1]]
    for name in ("BEDROOMS", "BATHS", "YR_BLT"):
        assert np.corrcoef(worth, arrays[name][is_open[1]])[0, 1] > 4 / np.sqrt(worth.size)


# Odd homes, and what an intruder finds in them.


@pytest.mark.parametrize(("n", "seed"), [(SIZE, 1993), (SIZE, 7), (5000, 1993), (200_000, 1993)])
def test_odd_homes_go_to_four_kinds_of_households_the_poorest_first(n, seed):
    arrays = survey(n, seed)
    values, is_open = amounts_of(arrays)
    is_odd = (cell_counts() <= 7).ravel()[cell_of(arrays)]
    kind = household_kinds(is_open)
    wanted = is_odd.sum() * np.array(ODD_HOME_ODDS) / sum(ODD_HOME_ODDS)
    assert np.all(np.abs(np.bincount(kind[is_odd], minlength=4) - wanted) <= 1)
    for poor in (POOR_RENTER, POOR_OWNER):
        assert values[0, is_odd & (kind == poor)].max() <= values[0, ~is_odd & (kind == poor)].min()


def test_odd_homes_are_let_even_when_a_kind_of_household_runs_out():
    rng, is_silent = np.random.default_rng(1), np.arange(100) < 99
    is_open = np.zeros((5, 100), dtype=bool)
    is_open[0] = ~is_silent
    incomes = np.where(is_silent, np.nan, 500.0)
    dwellers = homes._odd_home_dwellers(rng, is_open, incomes, 60)
    assert len(set(dwellers.tolist())) == 60
    assert 99 in dwellers


@cache
def links(seed):
    """Sd ratios x (correct, incorrect, questionable, false): Moore's Table 4, for one survey and one draw of noise."""
    plan = mw.Linkage(largest_target_block=7, match_blocks=("BEDROOMS", "BATHS", "YR_BLT"))
    table, names = housing(seed=seed), tuple(amount.name for amount in AMOUNTS)
    return np.array([link_counts(plan, table, names, c, seed) for c in (0.0709, 0.1759, 3.0)])


def link_counts(plan, table, names, sd_ratio, seed):
    risk = mw.attack(plan, mw.apply(mw.CorrelatedNoise(names, sd_ratio=sd_ratio), table, seed=seed))
    classes = [risk.class_of(name).links for name in ("questionable", "false")]
    return [risk.expected_correct, risk.expected_incorrect, *classes]


# One survey's figures have sds of 0.03, 0.07, 0.011, 3.4 and 2.8, found from 16 others: each band below is at least 4
# standard errors of a mean of 4 wide on either side of the survey's own mean (0.34, 0.70, 0.67, 84 and 4).
@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
def test_links_have_the_shape_of_table_4():
    light, middle, heavy = np.array([links(seed) for seed in (1, 2, 3, 4)]).transpose(1, 2, 0)
    assert np.all(light.sum(axis=0) == 771)
    correct, incorrect, questionable, false = range(4)
    fall = light[correct] - heavy[correct]
    assert 0.25 < np.mean(fall / light[correct]) < 0.45  # published: 0.35
    assert 0.5 < np.mean((light[correct] - middle[correct]) / fall) < 0.9  # 0.61 before c = .1759
    assert 0.6 < np.mean(1 - heavy[questionable] / light[questionable]) < 0.7  # 0.63
    assert 60 < heavy[correct].mean() < 110  # 82
    assert abs(np.mean(light[incorrect] - heavy[incorrect])) < 10  # -2
    assert all(35 < counts[incorrect].mean() < 65 for counts in (light, middle, heavy))  # 52 to 55
    assert light[false].mean() < middle[false].mean() < heavy[false].mean()


# Without codes.


@pytest.mark.parametrize("n", [1, 5000, SIZE])
def test_without_codes_the_other_values_are_the_same(n):
    coded, uncoded = survey(n), housing_arrays(n, codes=False)
    assert list(uncoded) == NAMES
    for name in ("IDNUM", *CLASSES):
        assert np.array_equal(uncoded[name], coded[name])
    for amount in AMOUNTS:
        amounts = uncoded[amount.name]
        assert np.array_equal(np.minimum(amounts, amount.top), coded[amount.name], equal_nan=True)
        assert np.array_equal(amounts, np.rint(amounts), equal_nan=True)


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
def test_coding_the_survey_without_codes_gives_the_survey():
    uncoded = housing(5000, codes=False)
    names, tops = zip(*((amount.name, amount.top) for amount in AMOUNTS), strict=True)
    assert mw.apply(mw.Coding(names, top=tops, bottom=0), uncoded, seed=1).masked == housing(5000)
    for amount in AMOUNTS:
        column, status = uncoded.schema[amount.name], uncoded.status(amount.name)
        assert (column.bottom, column.top, column.step) == (None, None, 1)
        assert set(np.unique(status)) == {OPEN, MISSING}


def test_amounts_beyond_the_top_code_follow_the_tail_of_their_law():
    uncoded = housing_arrays(codes=False)
    for amount, law in zip(AMOUNTS, amount_laws(), strict=True):
        beyond = uncoded[amount.name][uncoded[amount.name] >= amount.top]
        median = law.values_beyond(np.array([0.5]))[0]
        survival = ndtr((law.log_mean - np.log(np.array([median, amount.top]) - 0.5)) / law.log_sd)
        assert closely(np.mean(beyond >= median), survival[0] / survival[1], beyond.size)


# The table.


def test_table_holds_the_arrays():
    arrays, table = survey(5000), housing(5000)
    assert list(table.names) == NAMES
    assert table.ids.to_pylist() == arrays["IDNUM"].tolist()
    for name, classes in CLASSES.items():
        assert np.array_equal(np.array(classes)[table.values([name])[:, 0].astype(int)], arrays[name])
    for amount in AMOUNTS:
        values, status = arrays[amount.name], table.status(amount.name)
        assert np.array_equal(status == MISSING, np.isnan(values))
        assert np.array_equal(status == TOP_CODED, values == amount.top)
        assert np.array_equal(status == BOTTOM_CODED, values == 0)
        opened = status == OPEN
        assert np.array_equal(
            table.values([amount.name])[:, 0], np.where(opened, values, np.nan), equal_nan=True
        )


def test_table_says_what_each_column_is():
    schema = housing(1).schema
    assert schema.id_column == "IDNUM"
    assert schema.with_role("block") == ("REGION", "BEDROOMS", "BATHS", "YR_BLT")
    assert schema.with_role("key") == tuple(amount.name for amount in AMOUNTS)
    for amount in AMOUNTS:
        column = schema[amount.name]
        assert (column.kind, column.bottom, column.top, column.step) == ("integer", 0, amount.top, 1)
    assert Schema.from_toml(schema.to_toml()) == schema


# The page.


def test_page_prints_the_figures_of_the_survey():
    values, is_open = amounts_of(survey())
    for field, amount in enumerate(AMOUNTS):
        opened = values[field, is_open[field]]
        figures = [amount.mean, opened.mean(), amount.sd, opened.std(ddof=1)]
        shown = [f"{figures[0]:,}", f"{figures[1]:,.3f}", f"{figures[2]:,}", f"{figures[3]:,.3f}"]
        assert f"| {amount.name} | {opened.size:,} | {' | '.join(shown)} |" in PAGE
    for (i, j), name, published in zip(PAIRS, PAIR_NAMES, PAIR_CORRELATIONS, strict=True):
        both = is_open[i] & is_open[j]
        found = np.corrcoef(values[i, both], values[j, both])[0, 1]
        assert f"| {name} | {both.sum():,} | {published:.4f} | {found:.4f} |" in PAGE
