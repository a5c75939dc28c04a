"""`frontier`: risk against loss, what is dominated, the chosen point, and the picture."""

from __future__ import annotations

import json

import pytest

from maskwell.attacks import Linkage, NearestRecord
from maskwell.calibration import Search, frontier, il1s
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.masking import apply
from maskwell.masks import Coding, CorrelatedNoise, IndependentNoise, RankSwap
from maskwell.notes import has_code
from maskwell.tolerances import ExpectedH, MaxRate

from .conftest import terms

COLUMNS = ("A", "B")
PLANS = [NearestRecord(fields=COLUMNS), Linkage(fields=COLUMNS)]
MASKS = {
    "correlated": CorrelatedNoise(COLUMNS, sd_ratio=0.4),
    "independent": IndependentNoise(COLUMNS, variance_ratio=0.16),
    "swapped": RankSwap(COLUMNS, 0.4),
}
GRID = (0.5, 1, 2, 4)


@pytest.fixture(scope="module")
def table(make_amounts):
    return make_amounts(60)


@pytest.fixture(scope="module")
def found(table):
    return frontier(MASKS, table, PLANS, GRID, tolerance=MaxRate(0.3), seed=1, search=Search(replicates=4))


def test_every_mask_and_scale_is_a_point(found):
    rows = found.table.to_pylist()
    assert len(rows) == 4 + 4 + 3  # a window of all ranks cannot grow
    assert {row["mask"] for row in rows} == set(MASKS)
    for row in rows:
        assert row["risk"] >= max(row["NearestRecord"], row["Linkage"]) - 1e-12
    assert has_code(found.notes, "calibration.largest_growth")


def test_more_noise_costs_more_and_risks_less(found):
    for name in ("correlated", "independent"):
        points = [point for point in found.points if point.name == name]
        assert [p.loss.mean for p in points] == sorted(p.loss.mean for p in points)
        assert points[0].risk.mean > points[-1].risk.mean


def test_the_loss_is_il1s_of_the_same_draws(table, found):
    point, key = found.points[0], Key.from_seed(1)
    for i, loss in enumerate(point.trial.losses):
        subkey = key.subkey(
            series=table.schema.series, purpose="calibration", stage=f"frontier {i}", column=""
        )
        assert loss == pytest.approx(il1s(apply(point.trial.mask, table, key=Key(subkey))))
    assert point.loss.mean == pytest.approx(point.trial.losses.mean())


def test_points_that_another_undercuts_are_not_on_the_frontier(found):
    points = [(p.risk.mean, p.loss.mean) for p in found.points]
    for point, (risk, loss) in zip(found.points, points, strict=True):
        beaten = any(r <= risk and k <= loss and (r, k) != (risk, loss) for r, k in points)
        assert point.on_frontier != beaten
    assert any(p.on_frontier for p in found.points)
    assert not all(p.on_frontier for p in found.points)


def test_the_chosen_point_is_the_cheapest_that_meets_the_tolerance(found):
    able = [p for p in found.points if p.trial.bound(0.05) <= 0]
    assert found.chosen is min(able, key=lambda p: p.loss.mean)
    assert found.table["chosen"].to_pylist().count(True) == 1
    assert "confirm it by calibrate" in repr(found)
    assert "  >" in repr(found)
    assert "of the worst intruder in each draw" in repr(found)


def test_nothing_is_chosen_where_nothing_meets_the_tolerance(table):
    none = frontier(
        MASKS["correlated"], table, PLANS, [0.5], tolerance=MaxRate(0.0), seed=1, search=Search(replicates=2)
    )
    assert none.chosen is None
    assert "no point meets the tolerance" in repr(none)


def test_a_mean_h_is_read_the_other_way_round(table):
    found = frontier(
        MASKS["correlated"],
        table,
        PLANS[0],
        GRID,
        tolerance=ExpectedH(3),
        seed=1,
        search=Search(replicates=3),
    )
    assert all(point.on_frontier for point in found.points)  # more noise: a larger h and a larger loss
    assert found.chosen.risk.mean >= 3
    assert repr(found).count("Pr(h = 0)") == len(found.points)
    found.figure()


def test_a_mask_without_a_scale_is_one_point(table):
    found = frontier(
        [Coding(("A",), top=1.0), MASKS["correlated"]],
        table,
        PLANS,
        [1, 2],
        seed=1,
        search=Search(replicates=2),
    )
    assert [point.name for point in found.points] == ["Coding", "CorrelatedNoise", "CorrelatedNoise"]
    assert "no scale" in repr(found)
    assert found.chosen is None
    assert found.tolerance is None


def test_alike_masks_are_numbered_and_losses_may_be_ones_own(table):
    masks = [CorrelatedNoise(("A",), sd_ratio=0.5), CorrelatedNoise(("B",), sd_ratio=0.5)]
    found = frontier(
        masks, table, PLANS[0], [1], seed=1, search=Search(objective=lambda masking: 1.0, replicates=2)
    )
    assert [point.name for point in found.points] == ["CorrelatedNoise 1", "CorrelatedNoise 2"]
    assert all(point.loss.mean == 1 for point in found.points)


def test_scales_that_the_plan_refuses_are_said(people):
    mask = IndependentNoise(("AGE",), variance_ratio=0.1)
    found = frontier(
        mask, people, NearestRecord(fields=("AGE",)), [0.001, 1], seed=1, search=Search(replicates=2)
    )
    assert len(found.points) == 1
    assert "0.001 times its scale is refused" in str(found.notes[0])


def test_figures_are_plain(found):
    data = found.to_dict()
    json.dumps(data, allow_nan=False)
    assert data["loss"] == "IL1s"
    assert data["chosen"]["plan"]["mask"] in ("CorrelatedNoise", "IndependentNoise", "RankSwap")
    assert len(data["points"]) == len(found.points)


def test_it_is_a_picture_with_the_chosen_point(found, tmp_path):
    first, again = (found.plot(tmp_path / name).read_bytes() for name in ("one.png", "two.png"))
    assert first == again
    axes = found.figure().axes[0]
    said = [text.get_text() for text in axes.texts]
    assert any(text.startswith("chosen") for text in said)
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert set(MASKS) <= set(names)
    assert found.plot(tmp_path / "one.svg").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"masks": []}, "there is no mask in the list"),
        ({"masks": ["noise"]}, "is no mask"),
        ({"table": None}, "frontier needs a Table"),
        ({"attacks": "all"}, "is no attack"),
        ({"grid": []}, "grid is a list of positive factors"),
        ({"grid": [0, 1]}, "grid is a list of positive factors"),
        ({"grid": "1"}, "grid is a list of positive factors"),
        ({"tolerance": 0.1}, "a tolerance is"),
        ({"objective": "rmse"}, "a loss is"),
        ({"replicates": 1}, "at least 2"),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(table, change, words):
    with pytest.raises(BadPlan, match=words):
        frontier(**terms(**{"masks": MASKS, "table": table, "attacks": PLANS, "grid": GRID, **change}))
