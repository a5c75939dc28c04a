"""fit() from end to end: what users type, what is refused, and where the general sampler could go wrong."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.errors import BadInput, BadPlan, MaskwellWarning, NoLaw
from maskwell.notes import Note, has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

RECORDS = 400


def table(records: int = RECORDS, seed: int = 5) -> Table:
    rng = np.random.default_rng(seed)
    x, edu = rng.standard_normal(records), rng.integers(0, 3, records)
    few, school = rng.integers(0, 3, records), rng.integers(0, 10, records)
    y = 1 + x + 0.5 * few + 0.4 * (edu == 1) + 0.5 * rng.standard_normal(records)
    columns: dict[str, Any] = {"x": x, "w": 50 + rng.standard_normal(records), "y": y, "few": few}
    columns |= {
        "count": rng.poisson(np.exp(x)),
        "yes": (rng.random(records) < 1 / (1 + np.exp(-4 * x))).astype(int),
    }
    columns |= {"edu": np.array(["low", "middle", "high"])[edu], "school": [f"a:{k}" for k in school]}
    columns["rank"] = np.digitize(x + 0.5 * rng.standard_normal(records), [-0.5, 0.5])
    schema = Schema(
        (
            *(Column(name, "continuous") for name in ("x", "w", "y")),
            *(Column(name, "integer") for name in ("few", "count", "yes", "rank")),
            Column("edu", "category", categories=("low", "middle", "high", "never")),
            Column("school", "text"),
        )
    )
    return Table.from_frame(pa.table(columns), schema=schema)


def clean(given: Table) -> mw.Release:
    return mw.Release(given, mw.NoiseCard())


def quiet(formula: str, release: Any, **options: Any) -> mw.Posterior:
    """Fit without the warning about short chains."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        return mw.fit(
            formula, release, **({"seed": 1, "naive": False, "draws": 300, "warmup": 150} | options)
        )


def off(fitted: mw.Posterior, name: str, truth: float) -> float:
    """How far a coefficient is from a value, in posterior sds."""
    draws = fitted[name]
    return float(abs(draws.mean() - truth) / draws.std())


def test_components_of_a_mixture_that_lie_apart_are_left():
    """Drawn one after the other, neither component nor true value would move: the slope was half of what it is."""
    given = table()
    noise = mw.MixtureNoise(("x",), variance_ratio=0.5, within_variance_ratio=0.01, components=2)
    fitted = quiet("y ~ x + few", mw.apply(noise, given, seed=3), draws=700)
    assert fitted.converged
    original = quiet("y ~ x + few", clean(given))
    assert off(fitted, "x", float(original["x"].mean())) < 4


@pytest.mark.parametrize(
    ("formula", "family", "slope"), [("count ~ x", "poisson", 1.0), ("yes ~ x", "logit", 4.0)]
)
def test_steep_slopes_are_found_from_the_start(formula, family, slope):
    fitted = quiet(formula, clean(table()), family=family)
    assert fitted.diagnostics.r_hat.max() < 1.05
    assert off(fitted, "x", slope) < 4


def test_an_ordered_model_does_not_depend_on_where_a_column_has_its_zero():
    given = clean(table())
    near, far = (quiet(f"rank ~ {column}", given, family="ordered") for column in ("x", "I(x + 1000)"))
    name = "I(x + 1000)"
    assert abs(near["x"].mean() - far[name].mean()) < 0.3 * near["x"].std()
    shift = 1000 * far[name]
    cut = far["cut[1]"] - shift
    assert abs(cut.mean() - near["cut[1]"].mean()) < 0.3 * near["cut[1]"].std()


def test_whole_numbers_of_few_values_are_whole():
    given = table(1000)
    masked = mw.apply(mw.IndependentNoise(("few",), variance_ratio=0.5), given, seed=2)
    fitted = quiet("y ~ few + x", masked, chains=2)
    assert "few" in fitted.noised
    assert off(fitted, "few", 0.5) < 4
    released = masked.release.table.floats("few")
    assert (
        np.polyfit(released, given.floats("y") - given.floats("x"), 1)[0] < 0.4
    )  # what the noise would make of it


def test_numbers_that_share_noise_in_different_blocks():
    """x*w under correlated noise: each block must know the noise of the other."""
    rng = np.random.default_rng(8)
    x1, x2 = rng.standard_normal((2, 1500))
    x2 = 0.6 * x1 + 0.8 * x2
    y = x1 + x2 + 0.5 * x1 * x2 + 0.5 * rng.standard_normal(1500)
    given = Table.from_frame(
        pa.table({"x1": x1, "x2": x2, "y": y}),
        schema=Schema(tuple(Column(name, "continuous") for name in ("x1", "x2", "y"))),
    )
    release = mw.apply(mw.CorrelatedNoise(("x1", "x2"), sd_ratio=0.5), given, seed=4)
    fitted = quiet("y ~ x1*x2", release, draws=400)
    original = quiet("y ~ x1*x2", clean(given))
    for name in ("x1", "x2", "x1:x2"):
        assert off(fitted, name, float(original[name].mean())) < 4.5


def test_a_masking_and_a_folder_are_taken_for_their_release(tmp_path):
    masking = mw.apply(mw.IndependentNoise(("x",), variance_ratio=0.3), table(), seed=1)
    masking.write(release=tmp_path / "out", private=tmp_path / "in")
    from_masking, from_folder = (quiet("y ~ x", given) for given in (masking, str(tmp_path / "out")))
    np.testing.assert_allclose(from_masking.draws.values, from_folder.draws.values)


def test_levels_that_no_record_has_are_left_out():
    fitted = quiet("y ~ edu", clean(table()))
    assert fitted.names == ("Intercept", "edu[middle]", "edu[high]", "sigma")


def test_grouped_categories_are_what_the_model_is_about():
    grouped = mw.Grouping(("edu",), groups=(("other", ("low", "high", "never")), ("middle", ("middle",))))
    fitted = quiet("y ~ edu", mw.apply(grouped, table(), seed=1))
    assert fitted.names[1] == "edu[middle]"
    assert off(fitted, "edu[middle]", 0.4) < 4


def test_groups_may_have_any_label():
    fitted = quiet("y ~ x + (1|school)", clean(table()), keep_truths=True)
    known = fitted.predict({"x": [0.0], "school": ["a:3"]})
    assert len(fitted.predict()) == RECORDS
    assert np.isfinite(known.mean).all()


def test_the_unadjusted_fit_leaves_missing_values_out():
    rng = np.random.default_rng(1)
    x = rng.standard_normal(300)
    y = 2 * x + 0.1 * rng.standard_normal(300)
    holes = pa.array(x, mask=np.arange(300) % 3 == 0)
    given = Table.from_frame(
        pa.table({"x": holes, "y": y}), schema=Schema((Column("x", "continuous"), Column("y", "continuous")))
    )
    fitted = quiet("y ~ x", clean(given), naive=True)
    assert fitted.naive is not None
    naive = fitted.naive.values[..., fitted.naive.names.index("x")]
    assert abs(naive.mean() - 2) < 5 * naive.std()


@pytest.mark.parametrize(
    ("formula", "options", "words"),
    [
        ("y ~ z", {}, "no column 'z'"),
        ("y ~ xx", {}, "did you mean 'x'"),
        ("y ~ x + I(2*x)", {}, "collinear"),
        ("y ~ school", {}, "is text"),
        ("y ~ x", {"family": "gausian"}, "did you mean 'gaussian'"),
        ("y ~ x", {"family": "poisson"}, "whole numbers"),
        ("edu ~ x", {}, "family='ordered'"),
        ("y ~ x", {"seed": -1}, "seed must be"),
        ("y ~ x", {"draws": 10.0}, "draws must be"),
        ("y ~ x", {"sampler": "nuts"}, "not one of"),
        ("y ~ x", {"wieghts": "w"}, "did you mean 'weights'"),
        ("y ~ x", {"measurement_error": {"w": 1.0}}, "not in the model"),
        ("y ~ y", {}, "is the response"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(formula, options, words):
    with pytest.raises(BadPlan, match=words.replace("(", r"\(")):
        mw.fit(formula, clean(table()), **({"draws": 10} | options))


def test_a_constant_response_and_too_few_records_are_refused():
    given = table(12)
    with pytest.raises(BadPlan, match="same in every record"):
        mw.fit("y ~ x", clean(_with(given, "y", np.ones(12))))
    with pytest.raises(BadInput, match="more records"):
        mw.fit("y ~ x*w*few + edu*x*w", clean(given))


def _with(given: Table, name: str, values: Any) -> Table:
    frame = given.data.set_column(given.names.index(name), name, pa.array(values))
    return Table.from_frame(frame, schema=given.schema)


def test_what_has_no_law_is_refused():
    swapped = mw.apply(mw.RankSwap(("x",), window_ratio=0.1), table(), seed=1)
    with pytest.raises(NoLaw, match="rank swapped"):
        mw.fit("y ~ x", swapped)


def test_what_is_weakly_identified_is_said():
    loud = mw.apply(mw.IndependentNoise(("x",), variance_ratio=3.0), table(), seed=1)
    assert has_code(quiet("y ~ x", loud).notes, "analysis.weak_signal")
    soft = mw.apply(mw.IndependentNoise(("x",), variance_ratio=0.3), table(), seed=1)
    assert not has_code(quiet("y ~ x", soft).notes, "analysis.weak_signal")


def test_values_that_pile_up_at_a_limit_are_said():
    rng = np.random.default_rng(2)
    x = rng.exponential(size=300)
    amounts = Table.from_frame(pa.table({"y": x + rng.normal(size=300), "x": x}))

    def said(**limited: Any) -> list[Note]:
        masking = mw.apply(mw.IndependentNoise(("x",), variance=0.5, **limited), amounts, seed=1)
        return [note for note in quiet("y ~ x", masking).notes if note.code == "analysis.values_at_limits"]

    (note,) = said(limits=(("x", 0.0, None),))
    assert "of the values of 'x' were held at the limits of their noise" in str(note)
    assert said() == []


def test_separation_and_single_groups_are_said():
    given = table(60)
    split = _with(given, "yes", (given.floats("x") > 0).astype(np.int64))
    found = quiet("yes ~ x", clean(split), family="logit", draws=50)
    assert has_code(found.notes, "analysis.separation")
    single = _with(given, "school", [f"s{min(k, 50)}" for k in range(60)])
    found = quiet("y ~ x + (1|school)", clean(single), draws=50)
    assert has_code(found.notes, "analysis.single_groups")
    alone = _with(given, "school", [f"s{k}" for k in range(60)])
    with pytest.raises(BadPlan, match="every group"):
        mw.fit("y ~ x + (1|school)", clean(alone))


def test_short_chains_warn_and_the_same_seed_gives_the_same_draws():
    release = mw.apply(mw.IndependentNoise(("x",), variance_ratio=0.3, clamp=True), table(), seed=1).release
    with pytest.warns(MaskwellWarning, match="not converged"):
        first = mw.fit("y ~ I(x**2)", release, draws=20, warmup=5, chains=2, seed=4, naive=False)
    again = quiet("y ~ I(x**2)", release, draws=20, warmup=5, chains=2, seed=4)
    np.testing.assert_array_equal(first.draws.values, again.draws.values)


def test_known_measurement_error_is_undone():
    """An error of variance .5 on a clean column halves nothing but what a naive fit sees."""
    rng = np.random.default_rng(3)
    true = rng.standard_normal(3000)
    y, measured = true + 0.5 * rng.standard_normal(3000), true + np.sqrt(0.5) * rng.standard_normal(3000)
    schema = Schema((Column("x", "continuous"), Column("y", "continuous")))
    given = clean(Table.from_frame(pa.table({"x": measured, "y": y}), schema=schema))
    fitted = quiet("y ~ x", given, measurement_error={"x": 0.5})
    assert off(fitted, "x", 1.0) < 4
    assert np.polyfit(measured, y, 1)[0] < 0.75
