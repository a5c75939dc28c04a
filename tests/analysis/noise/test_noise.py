"""From releases made by every mask to the noise a sampler is given."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba import typeof

from maskwell.analysis.noise import (
    bounds,
    levels_of,
    noise_arrays,
    recomputed_totals,
    state_scale,
    tables,
    unknown_cells,
)
from maskwell.analysis.noise.arrays import smallest
from maskwell.analysis.system import Variable
from maskwell.card import NoiseCard, SwapParameters
from maskwell.errors import BadPlan, NoLaw
from maskwell.kernels.gibbs_noise import noise_log, reference
from maskwell.keys import Key
from maskwell.laws import Additive, Laplace, Normal, Outlet, RotatedMixture, SkewedBias, Step
from maskwell.masking import apply
from maskwell.masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
    Pram,
    RankSwap,
    Recompute,
)
from maskwell.notes import Note
from maskwell.schema import Column, Schema
from maskwell.table import Table

RECORDS = 300
SCHEMA = Schema(
    (
        Column("a", "continuous"),
        Column("b", "continuous", missing=(-9,)),
        Column("c", "continuous", unit=1, top=25, bottom=2),
        Column("k", "category", categories=("low", "middle", "high"), missing=("?",)),
        Column("m", "category", categories=("x", "y")),
    )
)


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(3)
    a = rng.normal(10, 2, RECORDS)
    b = a + rng.normal(0, 1.5, RECORDS)
    c = np.clip(np.rint(a + rng.normal(0, 4, RECORDS)), 2, 25)
    b[::7] = -9
    c[5::20] = 25
    k = rng.choice(["low", "middle", "high"], RECORDS)
    k[::11] = "?"
    m = rng.choice(["x", "y"], RECORDS)
    return Table.from_frame(pa.table({"a": a, "b": b, "c": c, "k": k, "m": m}), SCHEMA)


def released(mask: Any, table: Table) -> Any:
    return apply(mask, table, key=Key.from_seed(4)).release


def variables_of(card: NoiseCard, table: Table, names: tuple[str, ...]) -> tuple[Variable, ...]:
    return tuple(
        Variable(name, levels_of(card, table.schema, name), state_scale(card, name)) for name in names
    )


DIRECT: dict[str, Any] = {  # nothing is drawn for them: their density must be the law's own
    "independent": (IndependentNoise(("a", "b"), variance_ratio=0.3), ("a", "b")),
    "kim": (CorrelatedNoise(("a", "b"), sd_ratio=0.5), ("a", "b")),
    "kim, one column in the model": (CorrelatedNoise(("a", "b"), sd_ratio=0.5), ("b",)),
    "kim, other order": (CorrelatedNoise(("b", "a"), sd_ratio=0.5), ("a", "b")),
    "shlomo": (CorrelatedNoise(("a", "b"), r0=0.8, keep="moments"), ("a", "b")),
    "log": (CorrelatedNoise(("a", "b"), sd_ratio=0.5, transform="log", shift=1.0), ("a", "b")),
    "step": (IndependentNoise(("a",), variance=1.0, spread=Step((9.0,), (0.5, 1.5))), ("a",)),
    "bias": (BiasNoise(("a", "b"), 0.1, sd=1.0), ("a", "b")),
    "lognormal, integrated": (BiasNoise(("a",), 0.3, sd=0.1, shape="lognormal"), ("a",)),
    "chain": (
        Chain((IndependentNoise(("a",), variance=1.0), CorrelatedNoise(("a", "b"), sd_ratio=0.4))),
        ("a", "b"),
    ),
}


@pytest.mark.parametrize("name", DIRECT)
def test_differences_of_the_density_are_those_of_the_law(name: str, table: Table) -> None:
    mask, names = DIRECT[name]
    release = released(mask, table)
    variables = variables_of(release.card, release.table, names)
    low = noise_arrays(release.card, release.table, variables, range(len(names)))
    arrays = low.start(np.random.default_rng(1))
    assert not arrays.interval.any()
    rng = np.random.default_rng(2)
    first, second = (
        _states(variables, release.table.values(names) + rng.normal(0, 0.5, (RECORDS, len(names))))
        for _ in range(2)
    )
    law = release.card.laws[0]
    seen = _law_log(law, release.table, variables, first) - _law_log(law, release.table, variables, second)
    at = low.columns
    ours = [noise_log(arrays, at, i, first[i]) - noise_log(arrays, at, i, second[i]) for i in range(RECORDS)]
    np.testing.assert_allclose(ours, seen, atol=1e-8)
    if low.gaussian.all():
        precision, linear = np.zeros((len(names),) * 2), np.zeros(len(names))
        for i in range(0, RECORDS, 37):
            reference(arrays, i, precision, linear)
            logs = [linear @ t[i] - 0.5 * t[i] @ precision @ t[i] for t in (first, second)]
            assert logs[0] - logs[1] == pytest.approx(ours[i], abs=1e-8)


def _states(variables: tuple[Variable, ...], x: np.ndarray) -> np.ndarray:
    """Return states near released values; closed cells are anywhere."""
    x = np.where(np.isnan(x), 11.0, np.maximum(x, 0.5))
    shifts = [variable.log_shift for variable in variables]
    return np.column_stack([c if s is None else np.log(c + s) for c, s in zip(x.T, shifts, strict=True)])


def _law_log(law: Any, table: Table, variables: tuple[Variable, ...], states: np.ndarray) -> np.ndarray:
    """Return the law's log density on the scale of the state, columns that are not in the model closed."""
    x = np.full((RECORDS, len(law.columns)), np.nan)
    for variable, t in zip(variables, states.T, strict=True):
        opened = t if variable.log_shift is None else np.exp(t) - variable.log_shift
        x[:, law.columns.index(variable.name)] = opened
    z = table.values(law.columns)
    x[np.isnan(z)] = np.nan
    return np.asarray(law.logpdf(z, x))


def test_plain_noise_needs_no_redraw(table: Table) -> None:
    release = released(CorrelatedNoise(("a", "b"), sd_ratio=0.5), table)
    variables = variables_of(release.card, release.table, ("a", "b"))
    low = noise_arrays(release.card, release.table, variables, (0, 1))
    assert low.plain
    assert low.gaussian.all()
    assert low.start(np.random.default_rng(1)) is low.arrays
    law = release.card.laws[0]
    whole = low.arrays.is_open.all(axis=1)
    turn = low.arrays.turn[whole][0]
    np.testing.assert_allclose(turn.T @ turn, np.linalg.inv(law.noise.covariance), rtol=1e-10)
    closed = low.arrays.turn[~whole][0]
    assert closed[0, 0] == pytest.approx(1 / law.noise.sds[0])
    assert not closed[1].any()


def test_clamped_values_are_intervals(table: Table) -> None:
    release = released(IndependentNoise(("c",), variance=9.0), table)
    variables = variables_of(release.card, release.table, ("c",))
    low = noise_arrays(release.card, release.table, variables, (0,))
    z, outlet = release.table.values(("c",))[:, 0], release.card.laws[0].outlets[0]
    inside = (z > outlet.low) & (z < outlet.high)
    arrays = low.arrays
    assert (z == outlet.low).any()
    assert np.isneginf(arrays.cell_lower[z == outlet.low, 0]).all()
    np.testing.assert_allclose(arrays.cell_upper[inside, 0] - arrays.cell_lower[inside, 0], 1.0)
    started = low.start(np.random.default_rng(1))
    held = arrays.interval[:, 0]
    assert np.all(started.u[held, 0] >= arrays.cell_lower[held, 0])
    assert np.all(started.u[held, 0] <= arrays.cell_upper[held, 0])
    limits = bounds(release.card, release.table, variables)
    assert limits is not None
    coded = release.table.status("c") == 2
    assert coded.any()
    assert np.all(limits[0][coded, 0] == 25)
    opened, column = release.table.status("c") == 0, release.table.schema["c"]
    assert np.all(limits[1][opened, 0] == 25)  # what was not coded lies inside the codes
    assert np.all(limits[0][opened, 0] == (-np.inf if column.bottom is None else column.bottom))
    assert not arrays.is_open[arrays.pattern[coded], 0].any()


def test_values_that_the_mask_codes_are_tails(table: Table) -> None:
    release = released(Chain((IndependentNoise(("a",), variance=1.0), Coding(("a",), top=12.0))), table)
    variables = variables_of(release.card, release.table, ("a",))
    low = noise_arrays(release.card, release.table, variables, (0,))
    coded = release.table.status("a") == 2
    assert coded.any()
    assert low.arrays.interval[coded].all()
    assert np.all(low.arrays.cell_lower[coded, 0] < 12.0)
    assert np.all(low.arrays.cell_lower[coded, 0] > 11.9)
    assert bounds(release.card, release.table, variables) is None


def test_codes_and_classes_without_noise_are_limits(table: Table) -> None:
    release = released(Coding(("a",), top=12.0), table)
    variables = variables_of(release.card, release.table, ("a",))
    limits = bounds(release.card, release.table, variables)
    assert limits is not None
    coded = release.table.status("a") == 2
    assert np.all(limits[0][coded, 0] == 12.0)
    assert np.all(np.isinf(limits[0][~coded]))
    np.testing.assert_array_equal(unknown_cells(release.card, release.table, variables)[:, 0], coded)
    low = noise_arrays(release.card, release.table, variables, (0,))
    assert not low.arrays.is_open.any()
    assert not low.arrays.turn.any()

    masking = apply(Grouping(("a",), breaks=(8.0, 10.0, 12.0)), table, key=Key.from_seed(4))
    release = masking.release
    assert levels_of(release.card, release.table.schema, "a") == ()
    variables = variables_of(release.card, release.table, ("a",))
    limits = bounds(release.card, release.table, variables)
    assert limits is not None
    codes = release.table.values(("a",))[:, 0].astype(int)
    np.testing.assert_array_equal(limits[0][:, 0], np.array([-np.inf, 8, 10, 12])[codes])
    np.testing.assert_array_equal(limits[1][:, 0], np.array([8, 10, 12, np.inf])[codes])
    assert unknown_cells(release.card, release.table, variables).all()


def test_rounding_alone_leaves_doubt_where_it_is_coarse(table: Table) -> None:
    for unit, is_unknown in ((Fraction(1, 100), False), (Fraction(2), True)):
        law = Additive(("a",), Normal((0.0,)), (Outlet(unit),))
        rounded = np.rint(table.floats("a") / float(unit)) * float(unit)
        columns = Schema((Column("a", "continuous", unit=float(unit)),))
        coarse = Table.from_frame(pa.table({"a": rounded}), columns)
        limits = bounds(NoiseCard((law,)), coarse, (Variable("a"),))
        assert (limits is not None) == is_unknown
        if limits is not None:
            assert np.all((table.floats("a") >= limits[0][:, 0]) & (table.floats("a") <= limits[1][:, 0]))


def test_rounding_alone_leaves_what_was_coded_beyond_its_code(table: Table) -> None:
    top = 10.0
    for unit, is_doubtful in ((Fraction(1, 100), False), (Fraction(2), True)):
        law = Additive(("a",), Normal((0.0,)), (Outlet(unit),))
        rounded = np.minimum(np.rint(table.floats("a") / float(unit)) * float(unit), top)
        columns = Schema((Column("a", "continuous", unit=float(unit), top=top),))
        coded_table = Table.from_frame(pa.table({"a": rounded}), columns)
        coded = coded_table.status("a") != 0
        limits = bounds(NoiseCard((law,)), coded_table, (Variable("a"),))
        assert limits is not None
        assert coded.any()
        np.testing.assert_array_equal(limits[0][coded, 0], top)
        assert np.isinf(limits[1][coded, 0]).all()
        assert (limits[1][~coded, 0] <= top).all() == is_doubtful


CATEGORIES: dict[str, Any] = {
    "code noise": (CodeNoise(("k",), 0.5), "k"),
    "code noise, rounded": (CodeNoise(("k",), (0.5, 0.2, 0.9), rounded=True), "k"),
    "pram": (Pram(("k",), stay=0.7), "k"),
    "two tables": (Chain((Pram(("m",), stay=0.7), Pram(("m",), stay=0.8))), "m"),
}


@pytest.mark.parametrize("name", CATEGORIES)
def test_tables_have_the_law_of_each_category(name: str, table: Table) -> None:
    mask, column = CATEGORIES[name]
    release = released(mask, table)
    variables = variables_of(release.card, release.table, ("a", column))
    assert variables[1].levels == SCHEMA[column].categories
    found = tables(release.card, release.table, variables)
    assert list(found) == [1]
    law, z = release.card.laws[0], release.table.values((column,))
    for k in range(len(variables[1].levels)):
        expected = law.logpdf(z, np.where(np.isnan(z), np.nan, float(k)))
        np.testing.assert_allclose(found[1][:, k], expected)
    closed = np.isnan(z[:, 0])
    assert not found[1][closed].any()
    assert unknown_cells(release.card, release.table, variables)[:, 1].all()


def test_groups_of_categories_are_the_categories_of_the_model(table: Table) -> None:
    mask = Grouping(("k",), groups={"low": ("low",), "more": ("middle", "high")})
    release = released(mask, table)
    variables = variables_of(release.card, release.table, ("k",))
    assert variables[0].levels == ("low", "more")
    assert not tables(release.card, release.table, variables)
    closed = release.table.status("k") != 0
    np.testing.assert_array_equal(unknown_cells(release.card, release.table, variables)[:, 0], closed)


def test_swaps_mix_the_tables_and_the_noise(table: Table) -> None:
    release = released(Chain((IndependentNoise(("a",), variance=1.0), Pram(("k",), stay=0.9))), table)
    card = replace(release.card, swapped=SwapParameters(0.1, ("a", "k", "m")))
    variables = variables_of(card, release.table, ("a", "k", "m", "c"))
    clean, mixed = (tables(c, release.table, variables) for c in (release.card, card))
    assert list(clean) == [1]
    assert list(mixed) == [1, 2]
    z = release.table.values(("k",))[:, 0]
    here = z == 1
    share = here.sum() / np.sum(~np.isnan(z))
    expected = np.log(0.9 * np.exp(clean[1][here]) + 0.1 * share)
    np.testing.assert_allclose(mixed[1][here], expected)
    assert not mixed[1][np.isnan(z)].any()
    low = noise_arrays(card, release.table, variables, (0,))
    assert low.arrays.far.moved.all()
    assert not low.plain
    assert low.notes == (Note("analysis.swapped_values", {"least": 30}),)
    assert noise_arrays(
        replace(card, swapped=SwapParameters(0.1, ("m",))), release.table, variables, (0,)
    ).plain


def test_measurement_error_adds_its_variance(table: Table) -> None:
    release = released(CorrelatedNoise(("a", "b"), r0=0.8, keep="moments"), table)
    variables = variables_of(release.card, release.table, ("a", "b", "c"))
    error = {"a": 2.0, "c": 1.5}
    low = noise_arrays(release.card, release.table, variables, (0, 1, 2), measurement_error=error)
    law = release.card.laws[0]
    whole = low.arrays.turn[low.arrays.is_open.all(axis=1)][0]
    expected = np.diag([law.slope**2 * 2.0, 0.0, 1.5])
    expected[:2, :2] += law.noise.covariance
    np.testing.assert_allclose(np.linalg.inv(whole.T @ whole), expected, rtol=1e-9)
    coded = release.table.status("c") == 2
    assert low.arrays.interval[coded, 2].all()
    assert np.isinf(low.arrays.cell_upper[coded, 2]).all()
    limits = bounds(release.card, release.table, variables, erring=error)
    assert limits is None


def test_measurement_error_widens_the_components(table: Table) -> None:
    for correlated in (False, True):
        mask = MixtureNoise(("a", "b"), 0.5, 0.2, components=3, correlated=correlated)
        release = released(mask, table)
        variables = variables_of(release.card, release.table, ("a", "b"))
        plain, erring = (
            noise_arrays(release.card, release.table, variables, (0, 1), measurement_error=error)
            for error in (None, {"a": 2.0})
        )
        here = plain.arrays.is_open.all(axis=1)
        if correlated:
            gained = [
                np.linalg.inv(one.arrays.turn[here][0].T @ one.arrays.turn[here][0])
                for one in (plain, erring)
            ]
            np.testing.assert_allclose(gained[1] - gained[0], np.diag([2.0, 0.0]), atol=1e-9)
        else:
            np.testing.assert_allclose(
                1 / erring.arrays.units.precisions[0] - 1 / plain.arrays.units.precisions[0], 2.0
            )


REFUSED: dict[str, Any] = {
    "laplace": IndependentNoise(("a",), variance=1.0, shape="laplace"),
    "log": IndependentNoise(("a",), variance_ratio=0.3, transform="log"),
    "step": IndependentNoise(("a",), variance=1.0, spread=Step((9.0,), (0.5, 1.5))),
    "bias": BiasNoise(("a",), 0.1, sd=1.0),
    "lognormal": BiasNoise(("a",), 0.1, sd=1.0, shape="lognormal"),
    "classes": Grouping(("a",), breaks=(8.0, 10.0)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_measurement_error_is_refused_where_nothing_can_be_added(name: str, table: Table) -> None:
    release = released(REFUSED[name], table)
    variables = variables_of(release.card, release.table, ("a",))
    with pytest.raises(BadPlan, match="column 'a': a measurement error cannot be added because"):
        noise_arrays(release.card, release.table, variables, (0,), measurement_error={"a": 1.0})
    with pytest.raises(BadPlan, match="positive variance"):
        noise_arrays(NoiseCard(), table, (Variable("a"),), (0,), measurement_error={"a": -1.0})


def test_what_has_no_law_is_refused(table: Table) -> None:
    release = released(RankSwap(("a",), 0.1), table)
    with pytest.raises(NoLaw, match="column 'a' was rank swapped"):
        noise_arrays(release.card, release.table, (Variable("a"), Variable("b")), (0,))
    assert noise_arrays(release.card, release.table, (Variable("a"), Variable("b")), (1,)).plain
    silent = Additive(("a",), Normal((1.0,)), (Outlet(),), spreads=(Step((9.0,), (0.0, 1.0)),))
    with pytest.raises(NoLaw, match="no noise at all in a range"):
        noise_arrays(NoiseCard((silent,)), table, (Variable("a"),), (0,))
    same = Additive(("a", "b"), Normal((1.0, 2.0), ((1.0, 1.0), (1.0, 1.0))), (Outlet(), Outlet()))
    with pytest.raises(NoLaw, match="exactly dependent"):
        noise_arrays(NoiseCard((same,)), table, (Variable("a"), Variable("b")), (0, 1))
    turned = RotatedMixture((0.5, 0.5), (-0.8, 0.8), (0.5, 0.7), (1.0, 1.0), ((1.0, 0.5), (0.5, 1.0)))
    law = Additive(("a", "b"), turned, (Outlet(), Outlet()))
    with pytest.raises(NoLaw, match="take 'b' into the model too"):
        noise_arrays(NoiseCard((law,)), table, (Variable("a"),), (0,))


MISFITS: dict[str, Any] = {
    "the table has no such column": Additive(("z",), Normal((1.0,)), (Outlet(),)),
    "values lie beyond the limits": Additive(("a",), Normal((1.0,)), (Outlet(None, None, 11.0),)),
    "do not lie on the unit 0.5": Additive(("a",), Normal((1.0,)), (Outlet(Fraction(1, 2)),)),
    "the logarithm on the card is undefined": Additive(("a",), Normal((1.0,)), (Outlet(log_shift=-9.0),)),
    "it is a category there": Additive(("k",), Normal((1.0,)), (Outlet(),)),
}


@pytest.mark.parametrize("why", MISFITS)
def test_a_card_that_does_not_fit_is_refused(why: str, table: Table) -> None:
    law = MISFITS[why]
    with pytest.raises(
        BadPlan, match=f"column '{law.columns[0]}' of the card does not fit the table: .*{why}"
    ):
        noise_arrays(NoiseCard((law,)), table, (Variable(law.columns[0]),), (0,))


def test_categories_that_do_not_fit_are_refused(table: Table) -> None:
    release = released(Pram(("k",), stay=0.7), table)
    other = replace(release.card.laws[0], released_as=("low", "middle", "top"))
    with pytest.raises(
        BadPlan, match="column 'k' of the card does not fit the table: it has other categories"
    ):
        tables(NoiseCard((other,)), release.table, (Variable("k", ("low", "middle", "high")),))


def test_totals_of_totals_are_written_out(table: Table) -> None:
    card = NoiseCard(recomputed=(("t", (("a", 1.0), ("b", -2.0))), ("s", (("t", 3.0), ("a", 1.0)))))
    assert recomputed_totals(card) == {"t": (("a", 1.0), ("b", -2.0)), "s": (("a", 4.0), ("b", -6.0))}
    release = released(Chain((IndependentNoise(("a", "b"), variance=1.0), Recompute("c", ("a", "b")))), table)
    assert recomputed_totals(release.card) == {"c": (("a", 1.0), ("b", 1.0))}


def test_zeros_that_noise_in_proportion_leaves_are_known() -> None:
    values = np.array([0.0, 0.0, 3.0, 5.0, -2.0])
    data = Table.from_frame(pa.table({"a": values}), Schema((Column("a", "continuous", unit=0.01),)))
    law = SkewedBias(("a",), 0.2, (0.0,), (Outlet(Fraction(1, 100)),))
    low = noise_arrays(NoiseCard((law,)), data, (Variable("a"),), (0,))
    np.testing.assert_array_equal(low.arrays.is_open[low.arrays.pattern, 0], values != 0)
    limits = bounds(NoiseCard((law,)), data, (Variable("a"),))
    assert limits is not None
    assert np.all(limits[1][:2, 0] == 0.005)
    assert np.isinf(limits[1][2:]).all()


def test_laplace_noise_needs_a_weight_for_each_record(table: Table) -> None:
    release = released(IndependentNoise(("a",), variance=1.0, shape="laplace"), table)
    low = noise_arrays(release.card, release.table, (Variable("a"),), (0,))
    assert isinstance(release.card.laws[0].noise, Laplace)
    assert low.gaussian.all()
    assert not low.plain
    assert low.start(np.random.default_rng(1)).weight is not low.arrays.weight


LOOPS = {
    "missing cells": CorrelatedNoise(("a", "b"), sd_ratio=0.5),
    "mixture": MixtureNoise(("a", "b"), 0.5, 0.2, components=3),
    "joint mixture": MixtureNoise(("a", "b"), 0.5, 0.2, components=3, correlated=True),
    "rotated mixture": MixtureNoise(("a", "b"), 0.5, 0.2, components=2, correlated=True),
    "log": IndependentNoise(("a", "b"), variance_ratio=0.3, transform="log", spread=Step((9.0,), (0.5, 1.5))),
    "clamped": IndependentNoise(("c",), variance=9.0),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_compiled_once_for_all_laws(name: str, table: Table) -> None:
    release = released(LOOPS[name], table)
    card = replace(release.card, swapped=SwapParameters(0.1, ("a",)))
    names = LOOPS[name].columns
    low = noise_arrays(card, release.table, variables_of(card, release.table, names), range(len(names)))
    assert typeof(low.start(np.random.default_rng(1))) == typeof(smallest())
