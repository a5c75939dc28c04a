"""Named models: the original, the release taken at its word, and the adjusted fit that gives the original back."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.corrections import Forecast
from maskwell.attacks import NearestRecord
from maskwell.errors import BadPlan
from maskwell.masking import apply
from maskwell.masks import Chain, Grouping, IndependentNoise, RankSwap, Subsample
from maskwell.notes import Note, has_code
from maskwell.protect import swap
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.tolerances import SwapShare
from maskwell.utility import Model, ModelUtility, compare, verdicts
from maskwell.utility import regressions as room

KEY = frozenset({"key"})


def table_of(count=3_000, limits=None, seed=0):
    """Make y = 2 + x + noise, and a binary that depends on x; with limits both amounts have codes beyond them."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(count)
    y = 2 + x + rng.standard_normal(count)
    b = (rng.random(count) < 1 / (1 + np.exp(-x))).astype(np.int64)
    ends = {} if limits is None else {"bottom": -limits, "top": limits}
    if limits is not None:
        x = np.clip(x, 0.01 - limits, limits - 0.01)
    columns = (
        Column("x", "continuous", KEY, unit=0.001, **ends),
        Column("y", "continuous", KEY),
        Column("b", "integer"),
    )
    return Table.from_frame(pa.table({"x": np.round(x, 3), "y": y, "b": b}), Schema(columns))


def test_noise_attenuates_the_naive_slope_and_the_adjusted_one_is_right():
    masking = apply(IndependentNoise(("x", "y"), variance_ratio=0.5), table_of(), seed=1)
    found = compare(masking, models=["y ~ x"])
    model, forecast = found.models[0], found.forecasts[0]
    at = model.names.index("x")
    assert model.naive[at] == pytest.approx(model.original[at] / 1.5, abs=4 * model.naive_errors[at])
    assert max(map(abs, model.off_adjusted)) < 4 < max(map(abs, model.off_naive))
    assert model.overlap[at] > model.overlap_naive[at] == 0
    assert model.adjusted_by == "moment correction"
    assert model.widening[at] == pytest.approx(forecast.widening["x"], abs=0.25)
    verdicts = {judgement.figure: judgement.verdict for judgement in found.judgements}
    assert verdicts["y ~ x, as released"] == "poor"
    assert verdicts["y ~ x, adjusted"] != "poor"


def test_after_a_swap_within_blocks_the_adjusted_fit_still_has_them():
    table = table_of(600)
    blocks = table.with_columns(
        {"b": (replace(table.schema["b"], roles=frozenset({"block"})), *cells(table, "b"))}
    )
    noisy = apply(IndependentNoise(("x", "y"), variance_ratio=0.2), blocks, seed=1)
    swapped = swap(noisy, NearestRecord(), SwapShare(0.1), columns="x")
    assert swapped.card.swapped.blocks == ("b",)
    model = compare(swapped, models=["y ~ x"]).models[0]
    assert not model.refused
    assert max(map(abs, model.off_adjusted)) < 4


def cells(table, name):
    return table.floats(name), table.status(name)


def test_a_limit_on_widening_is_judged_by_the_forecast():
    masking = apply(IndependentNoise(("x", "y"), variance_ratio=0.5), table_of(), seed=1)
    found = compare(masking, models=[Model("y ~ x", at_most_wider=0.05), Model("y ~ x", at_most_wider=5)])
    judged = [judgement for judgement in found.judgements if "widening" in judgement.figure]
    assert [judgement.verdict for judgement in judged] == ["poor", "good"]
    assert judged[0].value == pytest.approx(found.forecasts[0].widening["x"], abs=1e-9)


@pytest.mark.parametrize(("limit", "verdict"), [(0.319, "good"), (0.3, "poor"), (None, "told")])
def test_intercept_and_sigma_do_not_count_as_widening(limit, verdict):
    """As in bounds: else a release that calibration made for a bound is judged poor."""
    wider = {"Intercept": 0.324, "x": 0.308, "sigma": 0.5}
    model = ModelUtility("y ~ x", "gaussian", names=tuple(wider), at_most_wider=limit)
    (judged,) = verdicts._of_widening(model, Forecast("y ~ x", "gaussian", widening=wider))
    assert (judged.where, judged.value, judged.verdict) == ("x", 0.308, verdict)


def test_the_intercept_counts_where_a_model_has_nothing_else():
    masking = apply(IndependentNoise(("y",), variance_ratio=0.5), table_of(500), seed=1)
    found = compare(masking, models=["y ~ 1"])
    assert [one.where for one in found.judgements if "widening" in one.figure] == ["Intercept"]


def test_limits_that_cut_little_of_the_noise_off_are_ignored_and_that_is_said():
    masking = apply(IndependentNoise(("x",), variance_ratio=0.05), table_of(limits=2.0), seed=1)
    model = compare(masking, models=["y ~ x"]).models[0]
    assert model.adjusted_by == "moment correction, limits ignored"
    assert has_code(model.notes, "utility.limits_ignored")
    assert max(map(abs, model.off_adjusted)) < 4


def test_models_that_moments_cannot_correct_are_drawn_on_the_same_sample(monkeypatch):
    monkeypatch.setattr(room, "FITTED", 200)
    masking = apply(IndependentNoise(("x",), variance_ratio=0.3), table_of(400), seed=1)
    model = compare(masking, models=[Model("b ~ x", family="logit")]).models[0]
    assert model.adjusted_by == "fit"
    assert model.records == model.adjusted_records == 200
    assert Note("utility.sampled_fit", {"count": 200, "records": 400}) in model.notes
    assert max(map(abs, model.off_adjusted)) < 4


def test_what_has_no_law_has_no_adjusted_fit_and_the_reason():
    model = compare(apply(RankSwap(("x",), window_ratio=0.1), table_of(), seed=1), models=["y ~ x"]).models[0]
    assert "swapped by rank" in model.refused
    assert model.original
    assert not model.adjusted
    assert model.overlap == ()


def test_a_model_that_the_truth_cannot_have_is_told():
    found = compare(
        apply(IndependentNoise(("x",), variance_ratio=0.1), table_of(), seed=1), models=["y ~ x + I(2*x)"]
    )
    assert "the truth itself cannot be fitted" in found.models[0].refused
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_subsample_is_compared_with_the_fit_to_all():
    model = compare(apply(Subsample(fraction=0.25), table_of(), seed=1), models=["y ~ x"]).models[0]
    assert model.records == 3_000
    assert 600 < model.adjusted_records < 900
    assert model.widening == pytest.approx((0.0,) * 3, abs=0.2)  # for as many records nothing is wider


def test_a_column_released_in_classes_has_no_counterpart_as_it_is(monkeypatch):
    monkeypatch.setattr(room, "FITTED", 200)
    masking = apply(Grouping(("x",), breaks=(-1, 0, 1)), table_of(400), seed=1)
    model = compare(masking, models=["y ~ x"]).models[0]
    assert np.isnan(model.naive[model.names.index("x")])
    assert np.isfinite(model.adjusted[model.names.index("x")])


def test_categories_that_leave_as_groups_are_grouped_in_the_original_too():
    """Each coefficient of the original has its counterpart, rare categories that no fit could tell apart included."""
    rng = np.random.default_rng(3)
    base, school = table_of(3_000), rng.choice(6, 3_000, p=[0.001, 0.009, 0.29, 0.3, 0.2, 0.2])
    column = Column("b", "category", frozenset({"block"}), categories=tuple("012345"))
    table = base.with_columns({"b": (column, school.astype(float), np.zeros(3_000, np.uint8))})
    groups = {"low": tuple("012"), "3": ("3",), "high": tuple("45")}
    grouped = Chain((Grouping(("b",), groups=groups), IndependentNoise(("x", "y"), variance_ratio=0.3)))
    found = compare(apply(grouped, table, seed=1), models=["y ~ x + b"])
    model = found.models[0]
    assert model.names == ("Intercept", "x", "b[3]", "b[high]", "sigma")
    assert not model.refused
    assert max(map(abs, model.off_adjusted)) < 4
    assert found.forecasts[0].widening["x"] > 0


def test_models_come_as_texts_mappings_and_plans():
    assert Model.of("y ~ x") == Model("y ~ x")
    assert Model.of({"formula": "y ~ x", "family": "logit"}) == Model("y ~ x", "logit")
    assert Model.of(replace(Model("y ~ x"), at_most_wider=0.3)).to_dict()["at_most_wider"] == 0.3
    with pytest.raises(BadPlan, match="formula, family and at_most_wider"):
        Model.of({"formla": "y ~ x"})
    with pytest.raises(BadPlan, match="from 0 on"):
        Model("y ~ x", at_most_wider=-1)


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
def test_a_gap_that_another_record_brought_is_left_out() -> None:
    """Swaps move statuses: a record that carries another's code has no value on the log scale."""
    survey = mw.datasets.housing(1500)
    noise = mw.IndependentNoise(("INCOME", "HOME_VAL", "MORTGAGE"), variance_ratio=0.3, transform="log")
    masking = mw.swap(
        mw.apply(noise, survey, seed=1),
        mw.NearestRecord(match_blocks=("REGION",)),
        mw.tolerances.SwapShare(0.1),
    )
    model = "log(HOME_VAL) ~ log(INCOME) + log(MORTGAGE)"
    (found,) = mw.compare(masking, models=[model]).models
    columns = ("HOME_VAL", "INCOME", "MORTGAGE")
    both = [table.is_open(columns).all(axis=1) for table in (masking.truth, masking.masked)]
    assert (both[0] & ~both[1]).any()
    assert not found.refused
    assert found.adjusted_records <= int((both[0] & both[1]).sum())
    sigma = found.adjusted[found.names.index("sigma")]
    assert 0.3 < sigma < 0.9


def test_intervals_of_draws_are_compared_with_those_that_trust_the_model_too():
    rng = np.random.default_rng(3)
    x = rng.lognormal(0, 0.7, 400)
    y = np.exp(np.log(x) * (1 + 0.5 * rng.standard_normal(400)))  # the farther out, the more scatter
    columns = (Column("x", "continuous", KEY, unit=0.001), Column("y", "continuous", KEY, unit=0.001))
    table = Table.from_frame(
        pa.table({"x": np.round(x + 0.01, 3), "y": np.round(y + 0.01, 3)}), Schema(columns)
    )
    mask = IndependentNoise(("x",), variance_ratio=0.2, transform="log")
    model = compare(apply(mask, table, seed=1), models=[Model("log(y) ~ log(x)")]).models[0]
    assert model.adjusted_by == "fit"
    (note,) = [note for note in model.notes if note.code == "utility.unequal_scatter"]
    assert note.figures["name"] == "log(x)"
    assert dict(zip(model.names, model.widening, strict=True))["log(x)"] > 0  # by robust errors it was below


def test_chains_that_do_not_agree_are_drawn_again_and_then_refused(monkeypatch):
    drawn = []
    lost = room._is_lost
    monkeypatch.setattr(
        room, "_is_lost", lambda found: bool(drawn.append(found.draws) or lost(found) or True)
    )
    masking = apply(IndependentNoise(("x",), variance_ratio=0.3), table_of(300), seed=1)
    with pytest.raises(BadPlan, match="the chains of the adjusted fit did not agree after 3,000 draws"):
        room._fit_by_draws(Model("b ~ x", family="logit"), masking.release, 0)
    assert len(drawn) == 2
