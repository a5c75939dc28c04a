"""`calibrate`: the scale it finds against closed forms and simulation, its confirmation, floor and refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm, t

from maskwell.attacks import Absolute, Fixed, Linkage, NearestRecord, Sample
from maskwell.calibration import Calibration, Search, Trial, calibrate, scale_of
from maskwell.calibration.calibrate import RAISED
from maskwell.calibration.result import level_of
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.masking import apply
from maskwell.masks import (
    MASKS,
    Chain,
    CorrelatedNoise,
    IndependentNoise,
    RankSwap,
    Subsample,
    mask_from_dict,
)
from maskwell.notes import Note, has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.tolerances import ExpectedH, MaxRate, ProbH, Ratio

from .conftest import terms

QUICK: dict[str, Any] = {"seed": 1, "replicates": 4, "confirmations": 5, "precision": 0.15}
KEY, COLUMNS = frozenset({"key"}), ("A", "B")
WITHIN_ONE = Linkage(fields=("A",), rule=Absolute(1.0), weights=Fixed(m=(0.9,), u=(0.1,)))


def table_of(values: dict[str, Any], **options: Any) -> Table:
    """Make a table of ids and number keys; columns given in `options` are described as told."""
    count = len(next(iter(values.values())))
    columns = tuple(options.get(name, Column(name, "continuous", KEY)) for name in values)
    schema = Schema((Column("ID", "text", frozenset({"id"})), *columns), series="calibration")
    return Table.from_frame(pa.table({"ID": [f"r{i}" for i in range(count)], **values}), schema)


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(8)
    shared = rng.standard_normal(60)
    return table_of({name: shared + rng.standard_normal(60) for name in COLUMNS})


@pytest.fixture(scope="module")
def pairs() -> Table:
    """Blocks of two records that lie 2000 apart: within a block, only the right one can agree to within 1."""
    blocks = 120
    names = tuple(f"b{i}" for i in range(blocks))
    column = Column("BLOCK", "category", frozenset({"block"}), categories=names)
    return table_of({"BLOCK": np.repeat(names, 2), "A": np.tile([-1000.0, 1000.0], blocks)}, BLOCK=column)


def noise(**scale: float) -> CorrelatedNoise:
    return CorrelatedNoise(COLUMNS, **scale)


@pytest.fixture(scope="module")
def told_trials() -> list[Trial]:
    return []


@pytest.fixture(scope="module")
def found(table: Table, told_trials: list[Trial]) -> Calibration:
    """An ordinary calibration, for tests that only look at it."""
    plan, told = NearestRecord(), told_trials.append
    return calibrate(noise(sd_ratio=0.5), table, plan, MaxRate(0.2), progress=told, **terms(**QUICK))


@pytest.fixture(scope="module")
def by_mean(table: Table) -> Calibration:
    return calibrate(noise(r0=0.8), table, NearestRecord(), ExpectedH(3), **terms(**QUICK))


@pytest.fixture(scope="module")
def not_met(table: Table) -> Calibration:
    return calibrate(RankSwap(COLUMNS, 0.3), table, NearestRecord(), MaxRate(0.0), **terms(**QUICK))


def raised(attempts: int) -> float:
    """Return by how much a scale is raised until it has had so many attempts."""
    return float(np.prod([1 + RAISED * k for k in range(1, attempts)]))


# The scale that is found.


def test_the_scale_of_a_closed_form(pairs):
    """A record is linked where the noise is within 1: with chance 2 Phi(1 / sd) - 1.

    A scale that exceeds the limit is confirmed with a chance of at most 0.001. On the other side, the bound of
    the confirmation, four errors of the search and the steps of 5% are allowed for.
    """
    few = {"replicates": 16, "confirmations": 24, "level": 0.001}
    found = calibrate(
        IndependentNoise(("A",), variance=4.0), pairs, WITHIN_ONE, MaxRate(0.15), seed=3, search=Search(**few)
    )
    rate = 2 * norm.cdf(1 / found.mask.variance**0.5) - 1
    sd = np.sqrt(0.15 * 0.85 / len(pairs))
    allowed = t.ppf(1 - 0.0005, 23) * sd / np.sqrt(24) + 4 * sd / np.sqrt(16)
    assert found.met
    assert rate <= 0.15
    assert rate >= (0.15 - allowed) / raised(found.attempts)
    confirmed = found.confirmation.figure
    assert abs(confirmed.mean - rate) < 4 * sd / np.sqrt(24)


def test_the_scale_of_a_simulation(table):
    """Nearest neighbours on one normal column, simulated by plain numpy at the scale that was found."""
    plan, one = NearestRecord(fields=("A",)), table.select(("ID", "A"))
    mask = IndependentNoise(("A",), variance_ratio=1.0)
    found = calibrate(
        mask, one, plan, MaxRate(0.1), seed=3, search=Search(replicates=12, confirmations=12, level=0.002)
    )
    x, sd = one.floats("A"), np.sqrt(found.mask.variance_ratio) * one.floats("A").std(ddof=1)
    rng = np.random.default_rng(0)
    rates = []
    for _ in range(300):
        z = x + sd * rng.standard_normal(len(x))
        rates.append((np.abs(x[:, None] - z).argmin(axis=1) == np.arange(len(x))).mean())
    simulated, error = np.mean(rates), np.std(rates) / np.sqrt(300)
    assert simulated <= 0.1 + 4 * error
    reach = t.ppf(0.999, 11) * np.std(rates) / np.sqrt(12) + 4 * np.std(rates) / np.sqrt(12)
    assert simulated >= (0.1 - reach) / raised(found.attempts)


@pytest.mark.parametrize(
    ("tolerance", "over"),
    [
        (Ratio(0.3), "all"),
        (ProbH(3, 0.3), "all"),
        (MaxRate(0.3), "outlying"),
        (ExpectedH(8), "outlying"),
    ],
    ids=lambda one: one if isinstance(one, str) else type(one).__name__,
)
def test_every_tolerance_is_met_by_fresh_draws(table, tolerance, over):
    found = calibrate(noise(sd_ratio=0.5), table, NearestRecord(), tolerance, **terms(over=over, **QUICK))
    assert found.met
    assert found.over == over
    last = found.confirmation
    assert last.round == f"confirmation {found.attempts}"
    assert last.bound(found.confirmed_level) <= 0
    assert last.mask == found.mask
    searched = [trial for trial in found.trace if trial.round == "search"]
    weaker = [trial for trial in searched if trial.factor < found.searched.factor]
    assert weaker
    assert all(trial.bound(0.025, QUICK["confirmations"]) > 0 for trial in weaker)


def test_larger_tolerances_need_less_noise(table):
    ratios = [
        calibrate(noise(sd_ratio=0.5), table, NearestRecord(), MaxRate(rate), **terms(**QUICK)).mask.sd_ratio
        for rate in (0.5, 0.15)
    ]
    assert ratios[0] < ratios[1]


def test_the_worst_decile_needs_more_noise_than_all(table):
    everybody, outer = (
        calibrate(
            noise(sd_ratio=0.5), table, NearestRecord(), MaxRate(0.3), **terms(over=over, **QUICK)
        ).mask.sd_ratio
        for over in ("all", "outlying")
    )
    assert outer > everybody


def test_of_several_intruders_the_worst_decides(table):
    plans = {"plain": NearestRecord(), "informed": NearestRecord(distance="posterior")}
    found = calibrate(noise(sd_ratio=0.7), table, plans, MaxRate(0.2), **terms(**QUICK))
    assert found.confirmation.names == ("plain", "informed")
    assert found.met
    assert all(one.mean <= 0.2 for one in found.confirmation.figures.values())
    assert "of the worst of 2 intruders in each draw" in repr(found)


def test_an_intruder_who_needs_a_law_takes_no_part_where_there_is_none(table):
    """Without an attack it is the nearest-record intruder, plain and informed; here there is nothing to know."""
    swapped = calibrate(RankSwap(COLUMNS, 0.2), table, tolerance=MaxRate(0.3), **terms(**QUICK))
    assert swapped.confirmation.names == ("NearestRecord",)
    assert swapped.notes[0].code == "calibration.idle_intruder"


@pytest.mark.parametrize(
    "mask",
    [
        CorrelatedNoise(COLUMNS, r0=0.7, keep="moments"),
        MASKS["MixtureNoise"](COLUMNS, 0.4, 0.2),
        MASKS["BiasNoise"](COLUMNS, bias_sd=0.3, sd_ratio=0.3),
        RankSwap(COLUMNS, 0.1),
        Chain([CorrelatedNoise(("A",), sd_ratio=0.3), IndependentNoise(("B",), variance_ratio=0.3)]),
        Chain([CorrelatedNoise(COLUMNS, sd_ratio=0.3), Subsample(0.8)]),
    ],
    ids=lambda mask: type(mask).__name__,
)
def test_every_kind_of_scale_is_found(table, mask):
    found = calibrate(mask, table, NearestRecord(), MaxRate(0.25), **terms(**QUICK))
    assert found.met
    assert mask_from_dict(found.mask.to_dict()) == found.mask  # the plan can be written down
    assert found.scale == scale_of(found.mask)


# Keys, determinism, and what leaves.


def test_the_same_key_gives_the_same_answer(table, found):
    key, plan = Key.from_seed(QUICK["seed"]), NearestRecord()
    again = calibrate(
        noise(sd_ratio=0.5), table, plan, MaxRate(0.2), key=key, **terms(**{**QUICK, "seed": None})
    )
    assert again.to_dict() == found.to_dict()
    other = calibrate(noise(sd_ratio=0.5), table, plan, MaxRate(0.2), **terms(**{**QUICK, "seed": 2}))
    assert other.to_dict()["trace"] != found.to_dict()["trace"]


def test_the_release_is_not_touched_by_its_calibration(table):
    key = Key.from_seed(9)
    before = apply(noise(sd_ratio=0.5), table, key=key)
    calibrate(
        noise(sd_ratio=0.5), table, NearestRecord(), MaxRate(0.2), key=key, **terms(**{**QUICK, "seed": None})
    )
    assert apply(noise(sd_ratio=0.5), table, key=key).release.table == before.release.table


def test_figures_are_plain_and_name_no_record(table, found):
    data = json.dumps(found.to_dict(), allow_nan=False)
    assert not any(f'"{name}"' in data for name in table.ids.to_pylist())
    assert found.to_dict()["mask"] == found.mask.to_dict()
    assert found.table.num_rows == len(found.trace) == len(found.to_dict()["trace"])


# Confirmation.


@pytest.mark.parametrize(
    ("over", "asked", "said"),
    [
        ("all", 25, "over a sample of the targets (25 in a draw)"),
        ("all", 60, "over all targets"),
        ("outlying", 30, "over the most outlying tenth of a sample of the targets (3 in a draw)"),
    ],
)
def test_a_figure_over_a_sample_of_the_targets_says_so(table, over, asked, said):
    found = calibrate(
        IndependentNoise(COLUMNS, variance_ratio=0.5),
        table,
        NearestRecord(targets=Sample(asked)),
        MaxRate(0.9),
        **terms(over=over, **QUICK),
    )
    assert said in repr(found)
    assert found.sampled == (asked < 60) == found.to_dict()["sampled"]


def test_what_the_search_found_is_shown_beside_what_fresh_draws_say(found):
    shown = repr(found)
    assert "fresh draws" in shown
    assert "worst of" not in shown  # there is one intruder
    assert "chosen because that came out well" in shown
    assert f"{found.confirmation.figure.mean:.2%}" in shown
    assert f"{found.searched.figure.mean:.2%}" in shown
    assert max(map(len, shown.splitlines())) <= 110
    assert len(shown.splitlines()) <= 30


@dataclass(frozen=True, kw_only=True)
class Told(Linkage):
    """An intruder whose rate is a function of the sd of the noise and of the key of the draw."""

    rate: Callable[[float, Key], float] = lambda sd, key: 0.0

    def assessed(self, risk, marked):
        """Put the known rate in the place of the one that was found."""
        sd = float(np.sqrt(marked.masking.card.laws[0].noise.covariance[0, 0]))
        many = 10**9  # so that the rate is as good as known
        return replace(risk, targets=many, expected_correct=many * self.rate(sd, marked.masking.key))


def told(rate: Callable[[float, Key], float]) -> Told:
    return Told(fields=("A",), weights=Fixed(m=(0.9,), u=(0.1,)), rate=rate)


ALONE = QUICK | {"precision": 0.02, "floor": "report"}  # B leaves unmasked, which is not the point here


def keys_of_search(seed: int, draws: int) -> set[bytes]:
    key = Key.from_seed(seed)
    stages = [f"search {i}" for i in range(draws)]
    return {
        key.subkey(series="calibration", purpose="calibration", stage=stage, column="") for stage in stages
    }


def test_a_search_that_flatters_is_put_right_by_fresh_draws(table):
    """On the draws of the search the risk looks a fifth lower than it is: the scale is raised until it holds."""
    lucky = keys_of_search(QUICK["seed"], QUICK["replicates"])

    def rate(sd: float, key: Key) -> float:
        return min(0.3 / sd, 1.0) * (0.8 if key.secret in lucky else 1.0)

    found = calibrate(
        IndependentNoise(("A",), variance=1.0), table, told(rate), MaxRate(0.15), **terms(**ALONE)
    )
    sd = found.mask.variance**0.5
    assert found.met
    assert 1.6 <= found.searched.mask.variance**0.5 <= 1.6 * 1.03
    assert 2.0 <= sd <= 2.0 * (1 + 3 * RAISED)
    assert found.attempts == 4  # raised by 5%, 10% and 15%: together a quarter and more
    assert found.searched.figure.mean < 0.15 < found.trace[-2].figure.mean
    assert found.notes[-1] == Note("calibration.raised_scale", {"times": 3, "share": RAISED})
    assert "raised 3 times, by 5% first" in str(found.notes[-1])
    levels = [level_of(k, found.level) for k in range(1, 13)]
    assert sum(levels) < found.level
    assert found.confirmed_level == levels[3]


def test_a_scale_that_is_never_confirmed_is_not_given(table):
    """Every attempt is on draws of its own."""
    lucky, seen = keys_of_search(QUICK["seed"], QUICK["replicates"]), []

    def rate(sd: float, key: Key) -> float:
        seen.append(key.secret)
        return 0.1 if key.secret in lucky else 0.2

    plan = told(rate)
    found = calibrate(IndependentNoise(("A",), variance=1.0), table, plan, MaxRate(0.15), **terms(**ALONE))
    assert not found.met
    assert found.mask is None
    assert found.attempts == 12
    fresh = [secret for secret in seen if secret not in lucky]
    assert len(fresh) == len(set(fresh)) == 12 * QUICK["confirmations"]
    assert found.notes[-1].code == "calibration.no_confirmation"
    assert "NOT met" in repr(found)


def test_a_risk_that_rises_again_is_seen(table):
    """It is 0.1 at the start, 0.3 from an sd of 3 to 6, and lower again beyond."""

    def rate(sd: float, key: Key) -> float:
        return 0.3 if 3 <= sd <= 6 else 0.1 if sd >= 0.5 else 0.9

    found = calibrate(
        IndependentNoise(("A",), variance=1.0), table, told(rate), MaxRate(0.15), **terms(**ALONE)
    )
    assert not found.is_monotone
    assert 6 < found.mask.variance**0.5 <= 6 * 1.03
    assert has_code(found.notes, "calibration.rising_risk")


# What is said.


def test_a_tolerance_that_cannot_be_met_is_an_answer_not_an_error(not_met):
    assert not not_met.met
    assert not_met.mask is None
    assert not_met.scale == {}
    assert not_met.confirmation is None
    assert not_met.closest.excess.mean() == min(trial.excess.mean() for trial in not_met.trace)
    assert max(trial.mask.window_ratio for trial in not_met.trace) == 1.0
    assert not_met.notes[0].code == "calibration.largest_scale"
    shown = repr(not_met)
    assert "NOT met by RankSwap" in shown
    assert "closest" in shown
    json.dumps(not_met.to_dict(), allow_nan=False)


def test_a_mean_h_is_never_shown_alone(by_mean):
    shown = repr(by_mean)
    assert shown.count("Pr(h = 0)") >= 3
    assert by_mean.confirmation.at_zero > 0.1
    assert by_mean.notes[-1].code == "calibration.mean_h"
    assert by_mean.to_dict()["confirmation"]["at_zero"] == by_mean.confirmation.at_zero


# Progress and picture.


def test_progress_is_told_after_every_trial(found, told_trials):
    assert tuple(told_trials) == found.trace
    assert {trial.round for trial in told_trials} >= {"search", "confirmation 1"}


@pytest.mark.parametrize("name", ["found", "by_mean", "not_met"])
def test_the_trace_is_a_picture(name, request):
    one = request.getfixturevalue(name)
    panels = one.figure().axes
    assert len(panels) == 2
    assert all(axes.get_xscale() == "log" for axes in panels)
    assert any(set(line.get_ydata()) == {one.measure.limit} for line in panels[0].lines)
    words = [text.get_text() for text in panels[0].get_legend().get_texts()]
    assert any("fresh draws" in text for text in words) == one.met


@pytest.mark.parametrize(("floor", "drawn"), [(0.3, True), (30.0, False)])
def test_a_floor_far_above_all_figures_is_only_said(found, floor, drawn):
    plain = replace(found, floor=0.0).figure().axes
    panels = replace(found, floor=floor).figure().axes
    lines = [[line for line in axes.lines if set(line.get_ydata()) == {floor}] for axes in panels]
    assert [len(one) for one in lines] == [int(drawn), 0]
    assert any(f"{floor:.3g}" in text.get_text() for text in panels[0].get_legend().get_texts())
    assert panels[1].get_ylim() == plain[1].get_ylim()
    assert drawn or panels[0].get_ylim() == plain[0].get_ylim()


def test_the_picture_is_written_alike_every_time(found, tmp_path):
    first, again = (found.plot(tmp_path / name).read_bytes() for name in ("one.png", "two.png"))
    assert first == again
    assert first.startswith(b"\x89PNG")
    with pytest.raises(BadPlan, match=r"ends in \.png, \.svg or \.pdf"):
        found.plot(tmp_path / "trace.docx")
