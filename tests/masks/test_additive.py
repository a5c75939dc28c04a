from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.errors import BadPlan
from maskwell.laws import Laplace, Normal, Power, Step
from maskwell.masking import apply
from maskwell.masks import CorrelatedNoise, IndependentNoise
from maskwell.notes import texts
from maskwell.schema import Column
from maskwell.table import Table

from .conftest import EXACT, growth, numbers, plain, table_of, within_four

COLUMNS = ("A", "B", "C")


def masked(mask, table: Table, columns=COLUMNS, **rest) -> tuple[np.ndarray, np.ndarray]:
    masking = apply(mask, table, seed=1, **rest)
    return masking.masked.values(columns), table.values(columns)


def test_kims_noise_has_the_covariance_of_the_data_scaled(table):
    c = 0.5
    z, x = masked(CorrelatedNoise(COLUMNS, sd_ratio=c), table, exact=True)
    assert within_four(z - x)
    assert within_four(growth(z, x), c**2 * np.cov(x.T))


def test_shlomos_noise_keeps_means_and_covariances(table):
    z, x = masked(CorrelatedNoise(COLUMNS, r0=0.8, keep="moments"), table, exact=True)
    assert within_four(z - x)
    assert within_four(growth(z, x))
    law = CorrelatedNoise(COLUMNS, r0=0.8, keep="moments").card(table, EXACT).laws[0]
    assert law.slope == pytest.approx(np.sqrt(0.8), rel=1e-15)
    assert np.allclose(law.noise.covariance, 0.2 * np.cov(x.T), rtol=1e-12)
    assert np.allclose(law.offsets, (1 - law.slope) * x.mean(axis=0), rtol=1e-12)


def test_rounded_moments_noise_moves_no_mean_by_a_hundredth_of_its_noise(table):
    law = CorrelatedNoise(COLUMNS, r0=0.8, keep="moments").card(table).laws[0]
    means = table.values(COLUMNS).mean(axis=0)
    moved = law.slope * means + law.offsets - means
    assert np.all(np.abs(moved) < 0.01 * np.array(law.noise.sds))


@pytest.mark.parametrize("count", [10, 20, 50, 200, 1000])
@pytest.mark.parametrize("ratio", [0.1, 0.5, 3.0])
def test_the_offset_does_not_give_the_last_record_away(count, ratio):
    """Who knows the other records solves offset / (1 - slope) = mean: the error must be well above the noise."""
    mask, rng, errors = CorrelatedNoise("A", sd_ratio=ratio, keep="moments"), np.random.default_rng(3), []
    for _ in range(60):
        x = rng.normal(1985, 20, size=count)
        law = mask.card(plain(x[:, None])).laws[0]
        last = count * law.offsets[0] / (1 - law.slope) - x[:-1].sum()
        errors.append((last - x[-1]) / law.noise.sds[0])
    least = 10 / np.sqrt(12)  # the rms of an even spread over ten sds
    squares = np.square(errors)
    assert squares.mean() >= least**2 - 4 * squares.std() / np.sqrt(60)


def test_a_small_file_says_how_nearly_its_means_are_kept(table):
    mask = CorrelatedNoise(("A", "B"), r0=0.8, keep="moments")
    few = plain(numbers(30)[:, :2])
    card, means = mask.card(few), few.values([*"AB"]).mean(axis=0)
    law = card.laws[0]
    moved = np.abs(law.slope * means + law.offsets - means) / law.noise.sds
    kept = [note.figures["sds"] for note in card.notes]
    assert len(kept) == 2
    assert np.all(moved <= 1.05 * np.array(kept))
    assert max(kept) <= 2.5 * 10 * (1 - law.slope) / 30 / 2 * 1.05
    assert mask.card(table).notes == mask.card(few, EXACT).notes == ()


def test_r0_says_the_same_as_sd_ratio():
    """Moore's Table 4: c = 0.4830 belongs to R0 = 0.811 (his row prints 0.590)."""
    c = CorrelatedNoise("A", sd_ratio=0.4830).noise_sd_ratio
    assert round(1 / (1 + c**2), 3) == 0.811
    assert CorrelatedNoise("A", r0=1 / (1 + c**2)).noise_sd_ratio == pytest.approx(c, rel=1e-12)


def test_independent_noise_is_independent_with_the_planned_variance(table):
    z, x = masked(IndependentNoise(COLUMNS, variance_ratio=0.2), table, exact=True)
    noise = z - x
    assert within_four(np.einsum("ni,nj->nij", noise, noise), np.diag(0.2 * x.var(axis=0, ddof=1)))
    laplace, _ = masked(IndependentNoise(COLUMNS, variance_ratio=0.2, shape="laplace"), table, exact=True)
    assert within_four((laplace - x) ** 2, 0.2 * x.var(axis=0, ddof=1))
    assert np.mean(np.abs(laplace - x), axis=0) == pytest.approx(np.sqrt(0.1 * x.var(axis=0)), rel=0.03)


def test_the_card_is_rounded(table):
    law = CorrelatedNoise(COLUMNS, sd_ratio=0.5).card(table).laws[0]
    x = table.values(COLUMNS)
    assert law.noise.sds == tuple(float(f"{sd:.1e}") for sd in 0.5 * x.std(axis=0, ddof=1))
    assert np.array_equal(law.noise.correlations, np.round(np.corrcoef(x.T), 2))


def test_sds_of_open_values_and_correlations_of_pairs(holes):
    law = CorrelatedNoise(COLUMNS, sd_ratio=1.0).card(holes, EXACT).laws[0]
    x = holes.values(COLUMNS)
    assert np.allclose(law.noise.sds, np.nanstd(x, axis=0, ddof=1), rtol=1e-12)
    for i, j in ((0, 1), (0, 2), (1, 2)):
        both = ~np.isnan(x[:, [i, j]]).any(axis=1)
        expected = np.corrcoef(x[both][:, [i, j]].T)[0, 1]
        assert law.noise.correlations[i][j] == pytest.approx(expected, abs=1e-12)


def test_closed_values_are_set_aside_and_restored(holes):
    z, x = masked(CorrelatedNoise(COLUMNS, sd_ratio=0.5), holes)
    assert np.array_equal(np.isnan(z), np.isnan(x))
    assert np.all((z != x) | np.isnan(x))


def test_exactly_singular_columns_keep_their_identity():
    parts = numbers(500)[:, :2].round(2)
    table = plain(np.column_stack([parts, parts.sum(axis=1)]), unit=0.01)
    z, _ = masked(CorrelatedNoise(COLUMNS, sd_ratio=0.5), table, exact=True)
    assert np.abs(z[:, 0] + z[:, 1] - z[:, 2]).max() < 0.0151  # three roundings to 0.01
    masking = apply(CorrelatedNoise(COLUMNS, sd_ratio=0.5), table, seed=1, exact=True)
    assert np.isfinite(masking.card.logpdf(masking.masked, masking.truth)).all()
    with pytest.raises(BadPlan, match="Recompute"):
        apply(CorrelatedNoise(COLUMNS, sd_ratio=0.5), table, seed=1)


def test_noise_on_logs_keeps_means_and_relative_size():
    values = np.exp(numbers(20_000)[:, :2] / 6)
    z, x = masked(
        CorrelatedNoise(("A", "B"), sd_ratio=0.4, transform="log"), plain(values), ("A", "B"), exact=True
    )
    assert within_four(z - x)
    logs = np.log(z) - np.log(x)
    covariance = 0.16 * np.cov(np.log(x).T)
    assert within_four(logs, -np.diag(covariance) / 2)
    centred = logs + np.diag(covariance) / 2
    assert within_four(np.einsum("ni,nj->nij", centred, centred), covariance)


def test_values_are_clamped_one_unit_inside_the_codes():
    values = np.clip(np.round(np.random.default_rng(5).exponential(30, 4000)), 0, 100)
    table = table_of(Column("A", "integer", top=100, bottom=0), A=values.astype(int))
    masking = apply(IndependentNoise("A", variance_ratio=0.5), table, seed=1)
    z, status = masking.masked.values(["A"])[:, 0], masking.masked.status("A")
    assert np.array_equal(status, table.status("A"))
    assert (np.nanmin(z), np.nanmax(z)) == (1, 99)
    outlet = masking.card.laws[0].outlets[0]
    assert (outlet.unit, outlet.low, outlet.high) == (1, 1.0, 99.0)
    assert np.isfinite(masking.card.logpdf(masking.masked, table)).all()


def test_limits_of_the_plan_come_to_the_grid_and_off_codes():
    table = table_of(Column("A", "integer", missing=(1, 2, 9)), A=list(range(3, 9)) * 5)
    limits = (("A", 0.5, 9.5),)
    outlet = IndependentNoise("A", variance_ratio=0.5, limits=limits).card(table).laws[0].outlets[0]
    assert (outlet.low, outlet.high, outlet.avoid) == (3.0, 8.0, (1.0, 2.0, 9.0))
    tight = IndependentNoise("A", variance_ratio=0.5, limits=(("A", 3.0, 3.4),))
    with pytest.raises(BadPlan, match="no room"):
        tight.card(table)


def test_released_values_never_equal_a_missing_code():
    rng = np.random.default_rng(6)
    table = table_of(Column("A", "integer", missing=(7, 8, -1)), A=rng.choice([3, 4, 5, 6, 9, 10, 11], 5000))
    masking = apply(IndependentNoise("A", variance_ratio=0.5), table, seed=1)
    z = masking.masked.values(["A"])[:, 0]
    assert not np.isin(z, [7, 8, -1]).any()
    assert np.isfinite(masking.card.logpdf(masking.masked, table)).all()
    again = Table.from_frame(masking.masked.to_frame(), masking.masked.schema)
    assert np.array_equal(again.status("A"), table.status("A"))


def test_missing_codes_written_as_text_are_avoided_too():
    table = table_of(
        Column("A", "continuous", unit=0.5, missing=("-9", "n/a")), A=["1.5", "2.5", "n/a", "-9", "4"] * 4
    )
    assert IndependentNoise("A", variance_ratio=1.0).card(table).laws[0].outlets[0].avoid == (-9.0,)


def test_a_column_without_unit_leaves_two_places_below_its_noise(table):
    law = IndependentNoise("A", variance=9.0).card(table).laws[0]
    assert law.outlets[0].unit == Fraction(1, 100)
    assert apply(IndependentNoise("A", variance=9.0), table, seed=1).masked.schema["A"].unit == 0.01


def test_a_power_keeps_the_average_variance(table):
    z, x = masked(IndependentNoise("C", variance_ratio=0.3, spread=Power(1.0)), table, ("C",), exact=True)
    assert within_four((z - x) ** 2, 0.3 * x.var(ddof=1))
    sizes = ((z - x) / x) ** 2
    assert within_four(sizes - sizes.mean())
    law = IndependentNoise("C", variance=2.0, spread=Power(1.0)).card(table).laws[0]
    assert law.noise.sds[0] == float(f"{law.noise.sds[0]:.1e}")


def test_a_step_multiplies_the_planned_sd(table):
    spread = Step((10.0,), (0.5, 2.0))
    z, x = masked(IndependentNoise("A", variance=4.0, spread=spread), table, ("A",))
    below, noise = x[:, 0] < 10, (z - x)[:, 0]
    assert within_four(noise[below] ** 2, 1.0 + 1e-4 / 12)
    assert within_four(noise[~below] ** 2, 16.0 + 1e-4 / 12)


def test_a_variance_given_in_units_is_kept_as_given(table):
    law = IndependentNoise(("A", "B"), variance=(2.0, 3.0)).card(table).laws[0]
    assert law.noise == Normal((np.sqrt(2.0), np.sqrt(3.0)))
    assert IndependentNoise("A", variance=2.0, shape="laplace").card(table).laws[0].noise == Laplace(
        (np.sqrt(2.0),)
    )


def test_a_constant_column_takes_noise_of_a_given_size():
    table = plain(np.column_stack([np.full(50, 3.0), numbers(50)[:, 0]]))
    assert IndependentNoise(("A", "B"), variance=4.0).card(table).laws[0].noise.sds == (2.0, 2.0)
    skipped = IndependentNoise(("A", "B"), variance=(4.0, 9.0), skip_constant=True).card(table)
    assert skipped.laws[0].columns == ("B",)
    assert skipped.laws[0].noise.sds == (3.0,)
    assert texts(skipped.notes) == ("left as they are because they are constant: A",)


def test_what_the_data_do_not_allow_is_said_all_at_once(messages):
    values = numbers(40)
    values[:, 0] = 77.25
    values[:, 1] = np.nan
    values[3, 2] = 1e200
    problems = messages(
        lambda: IndependentNoise(COLUMNS, variance_ratio=0.1).card(plain(values)), "77.25", "1e+200"
    )
    assert problems == (
        "column 'B' has no open value to mask; drop it from the plan",
        "column 'C': the variance overflows (first at record 4); rescale the column",
        "column 'A' is constant, so noise in proportion to its sd is undefined; skip_constant leaves it out",
    )


def test_columns_no_mask_may_touch_are_refused_all_at_once(messages):
    table = table_of(
        Column("ID", "text", frozenset({"id"})),
        Column("W", "continuous", frozenset({"weight"})),
        Column("SEX", "category", categories=("m", "f")),
        Column("OLD", "continuous", drop=True),
        ID=["1", "2"],
        W=[1.0, 2.0],
        SEX=["m", "f"],
        OLD=[1.0, 2.0],
    )
    mask = IndependentNoise(("W", "SEX", "OLD", "AGE"), variance_ratio=0.1)
    assert messages(lambda: mask.card(table)) == (
        "there is no column 'AGE'",
        "column 'W' has the role 'weight', which is never masked by noise",
        "column 'SEX' is of kind 'category'; this mask is for continuous or integer",
        "column 'OLD' is dropped, so it cannot be masked",
    )


def test_too_few_records_for_a_covariance(messages):
    problems = messages(lambda: CorrelatedNoise(COLUMNS, sd_ratio=0.5).card(plain(numbers(4))))
    assert len(problems) == 3
    assert problems[0] == (
        "column 'A' has 4 open values; the covariance of 3 columns is undefined below 5: "
        "mask fewer columns together or use independent noise"
    )
    assert CorrelatedNoise(COLUMNS, sd_ratio=0.5).card(plain(numbers(5))).columns == COLUMNS
    one = np.array([[1.0], [np.nan]])
    assert (
        "has one open value"
        in messages(lambda: IndependentNoise("A", variance_ratio=1.0).card(plain(one)))[0]
    )


def test_logs_of_zeros_are_refused_with_the_record(messages):
    values = np.abs(numbers(30)[:, :1]) + 1
    values[[6, 9]] = 0.0
    mask = IndependentNoise("A", variance_ratio=0.1, transform="log")
    (problem,) = messages(lambda: mask.card(plain(values)))
    assert problem == (
        "column 'A' has 2 values at or below 0 (first at record 7), "
        "where the logarithm is undefined; give a larger shift"
    )
    assert replace(mask, shift=1.0).card(plain(values)).laws[0].outlets[0].log_shift == 1.0


def test_laplace_noise_without_a_mean_on_logs_is_refused(messages):
    values = np.exp(3 * numbers(200)[:, :1])
    mask = IndependentNoise("A", variance_ratio=0.5, transform="log", shape="laplace")
    assert "has no mean to correct" in messages(lambda: mask.card(plain(values)))[0]
    uncorrected = replace(mask, mean_corrected=False).card(plain(values)).laws[0]
    assert not uncorrected.mean_corrected
    small = replace(mask, variance_ratio=0.01).card(plain(values)).laws[0]
    assert small.mean_corrected


def test_powers_that_overflow_or_vanish_are_refused(messages):
    values = numbers(30)[:, :1] * 1e40
    wide = IndependentNoise("A", variance_ratio=0.1, spread=Power(4.0))
    assert (
        "the power of its values overflows (first at record 1)"
        in messages(lambda: wide.card(plain(values)))[0]
    )
    zeros = plain(np.zeros((30, 1)))
    gone = IndependentNoise("A", variance=1.0, spread=Power(1.0))
    assert "give the spread a floor" in messages(lambda: gone.card(zeros))[0]


def test_a_variance_that_underflows_is_refused(messages):
    tiny = plain(numbers(30)[:, :1] * 1e-300)
    assert messages(lambda: IndependentNoise("A", variance_ratio=0.1).card(tiny)) == (
        "column 'A': the variance underflows; rescale the column",
    )


def test_codes_without_clamp_are_refused(messages):
    table = table_of(Column("A", "integer", top=9), A=[1, 2, 3, 9, 5])
    mask = IndependentNoise("A", variance_ratio=0.1, clamp=False)
    assert "with clamp=False noise could cross them" in messages(lambda: mask.card(table))[0]


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (
            lambda: IndependentNoise((), transform="sqrt", shift=1.0, limits=(("X", 2, 1),), shape="cauchy"),
            (
                "a mask needs at least one column",
                "transform must be 'log' or left out, not 'sqrt'",
                "limits name column 'X', which this mask does not touch",
                "the limits of 'X' must rise",
                "IndependentNoise: give exactly one of variance_ratio and variance",
                "shape must be 'normal' or 'laplace', not 'cauchy'",
            ),
        ),
        (
            lambda: IndependentNoise(("A", "A"), variance=(1.0, float("nan"), 2.0), shift=2.0),
            (
                "column 'A' is named twice",
                "a shift is for transform='log' only",
                "variance has 3 figures for 2 columns",
                "variance must be positive",
            ),
        ),
        (
            lambda: CorrelatedNoise("A", sd_ratio=float("inf"), r0=1.0, keep="all"),
            (
                "CorrelatedNoise: give exactly one of sd_ratio and r0",
                "sd_ratio must lie above 0",
                "r0 = 1 means no noise at all",
                "keep must be 'means' or 'moments', not 'all'",
            ),
        ),
        (
            lambda: CorrelatedNoise("A", r0=0.5, keep="moments", transform="log"),
            ("keep='moments' holds for plain noise only: leave spread and transform out",),
        ),
    ],
)
def test_a_plan_says_everything_that_is_wrong_with_it(mask, expected, messages):
    assert messages(mask) == expected


@settings(max_examples=20)
@given(
    stretch=st.floats(0.01, 1000),
    shift=st.floats(-100, 100),
    keep=st.sampled_from(["means", "moments"]),
)
def test_a_stretched_column_stretches_its_card(stretch, shift, keep):
    values, factors = numbers(200), np.array([1.0, stretch, 1.0])
    wide = values * factors + [0, shift, 0]
    mask = CorrelatedNoise(COLUMNS, sd_ratio=0.5, keep=keep)
    before, after = (mask.card(plain(v), EXACT).laws[0] for v in (values, wide))
    assert np.allclose(
        after.noise.covariance, before.noise.covariance * np.outer(factors, factors), rtol=1e-9
    )
    if keep == "moments":
        expected = np.array(before.offsets) * factors + (1 - before.slope) * np.array([0, shift, 0])
        assert np.allclose(after.offsets, expected, rtol=1e-9, atol=1e-9 * stretch)


@settings(max_examples=10)
@given(power=st.integers(-6, 6))
def test_a_column_in_other_units_has_the_same_rounded_card_and_the_same_noise(power):
    """By a power of ten, so that the two digits of the card are the same digits."""
    factor = 10.0**power
    table, wide = plain(numbers(100)), plain(numbers(100) * [1.0, factor, 1.0])
    mask = CorrelatedNoise(COLUMNS, sd_ratio=0.5)
    before, after = mask.card(table).laws[0], mask.card(wide).laws[0]
    assert after.noise.correlations == before.noise.correlations
    assert np.allclose(after.noise.sds, np.array(before.noise.sds) * [1, factor, 1], rtol=1e-12)
    z, wider = masked(mask, table)[0], masked(mask, wide)[0]
    unit = float(before.outlets[1].unit)
    assert np.abs(wider[:, 1] / factor - z[:, 1]).max() <= unit * (1 + 1e-6)
    assert np.array_equal(wider[:, [0, 2]], z[:, [0, 2]])
