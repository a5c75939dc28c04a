"""The search by itself, on risks that are known functions of the scale."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import log
from typing import Any

import numpy as np
import pytest

from maskwell.calibration.measures import rate_measure
from maskwell.calibration.search import FARTHEST, Scales, find_weakest
from maskwell.calibration.trials import Bench, Trial
from maskwell.errors import BadPlan
from maskwell.masks import CorrelatedNoise
from maskwell.notes import has_code

LIMIT = 0.15
DRAWS = 10


@dataclass
class KnownRisk:
    """Stands for a bench: the rate is a function of the scale, with an error of each draw that all scales share."""

    rate: Callable[[float], float]
    error: float = 0.0
    least: float = 0.0
    most: float = np.inf
    ran: list[float] = field(default_factory=list)

    def resolved(self, mask: Any) -> None:
        if not self.least <= mask.sd_ratio <= self.most:
            raise BadPlan("lost in its unit")

    def run(self, mask: Any, factor: float, round: str, replicates: int, *, keys_of: str) -> Trial:
        self.ran.append(factor)
        errors = self.error * np.random.default_rng(1).standard_normal(replicates)
        rates = (self.rate(mask.sd_ratio) + errors)[:, None]
        ones, nothing, many = np.ones_like(rates), np.full_like(rates, np.nan), np.full_like(rates, 1e6)
        return Trial(mask, factor, round, rate_measure(LIMIT), ("known",), rates, ones, nothing, many)


def scales_of(bench: Any, start: float = 1.0, **options: Any) -> Scales:
    given: Bench = bench
    return Scales(
        given,
        lambda factor: CorrelatedNoise(("A",), sd_ratio=start * factor),
        DRAWS,
        lambda trial: float(trial.excess.mean()) <= 0,
        **options,
    )


@pytest.mark.parametrize("start", [0.01, 0.3, 1.0, 7.0, 90.0])
@pytest.mark.parametrize("precision", [0.1, 0.02, 0.001])
def test_a_falling_risk_is_bisected_to_the_precision(start, precision):
    bench = KnownRisk(lambda c: 1 / (1 + c))
    found = find_weakest(scales_of(bench, start), precision)
    true = 1 / LIMIT - 1
    assert found.is_monotone
    assert found.notes == ()
    assert true <= found.trial.mask.sd_ratio <= true * (1 + precision) + 1e-12
    strides = abs(log(true / start)) / log(2)
    assert len(bench.ran) <= strides + np.log2(log(2) / precision) + 6
    assert max(bench.ran) * start >= 2 * true  # it was looked beyond


def test_no_scale_is_tried_twice():
    bench = KnownRisk(lambda c: 1 / (1 + c))
    find_weakest(scales_of(bench), 0.02)
    assert len(bench.ran) == len(set(bench.ran))


def test_draws_that_scatter_do_not_look_like_a_rise():
    """All scales share their draws, so that an error many times the fall leaves the paired differences clear."""
    bench = KnownRisk(lambda c: 1 / (1 + c), error=0.3)
    scales = scales_of(bench)
    found = find_weakest(scales, 0.02)
    assert found.is_monotone
    near = [trial for trial in scales.trials if 0.9 < trial.factor / found.trial.factor < 1.1]
    differences = near[0].excess - near[-1].excess
    assert differences.std() < 1e-6 * near[0].excess.std()


def test_a_risk_that_rises_again_is_searched_by_a_grid():
    """It meets the limit at 2, exceeds it around 8, and meets it for good from 12 on."""

    def rate(c: float) -> float:
        return 0.3 / (1 + c) + 0.2 * float(np.exp(-8 * (log(c) - log(8.0)) ** 2))

    found = find_weakest(scales_of(KnownRisk(rate)), 0.02)
    assert not found.is_monotone
    assert found.notes[0].code == "calibration.rising_risk"
    truth = [c for c in np.geomspace(8, 30, 20_000) if rate(c) <= LIMIT]
    assert truth[0] - 0.01 <= found.trial.mask.sd_ratio <= truth[0] * 1.02 + 0.01


def test_a_risk_that_rises_without_end_meets_nothing():
    found = find_weakest(scales_of(KnownRisk(lambda c: c / 10), start=2.0), 0.02)
    assert not found.is_monotone
    assert found.trial is None


def test_the_search_ends_where_nothing_helps():
    bench = KnownRisk(lambda c: 0.2 + 0.1 / (1 + c))
    scales = scales_of(bench)
    found = find_weakest(scales, 0.02)
    assert found.trial is None
    assert found.is_monotone
    assert max(bench.ran) == FARTHEST
    assert not scales_of(KnownRisk(lambda c: 0.2)).still_falls()


def test_it_is_said_whether_more_would_help():
    falling = scales_of(KnownRisk(lambda c: 1 / (1 + c)), largest=2.0)
    assert find_weakest(falling, 0.02).trial is None
    assert falling.still_falls()
    flat = scales_of(KnownRisk(lambda c: 0.2), largest=2.0)
    assert find_weakest(flat, 0.02).trial is None
    assert not flat.still_falls()


def test_a_tolerance_that_is_met_without_noise_is_said():
    found = find_weakest(scales_of(KnownRisk(lambda c: 0.1)), 0.02)
    assert found.trial.factor == pytest.approx(1 / FARTHEST)
    assert found.notes[0].code == "calibration.least_tried"


def test_scales_that_the_plan_refuses_are_not_tried():
    found = find_weakest(scales_of(KnownRisk(lambda c: 0.1, least=0.3)), 0.02)
    assert 0.3 <= found.trial.mask.sd_ratio <= 0.3 * 1.02
    assert found.notes[0].code == "calibration.least_allowed"
    scales = scales_of(KnownRisk(lambda c: 1 / (1 + c), most=5.0))
    assert find_weakest(scales, 0.02).trial is None
    assert 4.5 <= scales.trials[-1].mask.sd_ratio <= 5.0  # it went as far as the plan allows


def test_scales_whose_draws_are_above_the_budget_are_not_tried_and_that_is_said() -> None:
    known = KnownRisk(lambda sd_ratio: 0.02 / sd_ratio)
    scales = scales_of(known, allows=lambda mask: mask.sd_ratio >= 0.4)
    found = find_weakest(scales, 0.02)
    assert found.trial is not None
    assert found.trial.factor == pytest.approx(0.4, rel=0.03)
    assert min(known.ran) >= 0.4
    assert has_code(found.notes, "calibration.least_in_budget")
