"""Who is at risk: classes that sum to all targets, and no share of a few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from maskwell.pipeline import Outcome
from maskwell.report.at_risk import FEWEST, UNKNOWN, Share, _deciles, by_amount, by_block, by_outlyingness


def check_sums(shares: Sequence[Share], outcome: Outcome) -> None:
    risk = outcome.after["nearest record"]
    assert sum(share.targets for share in shares) == risk.targets
    assert sum(share.found for share in shares) == pytest.approx(risk.expected_correct)


def test_classes_hold_every_target_once(outcome: Outcome) -> None:
    risk = outcome.after["nearest record"]
    check_sums(by_block(risk), outcome)
    check_sums(by_outlyingness(risk, outcome.masking), outcome)
    amounts = by_amount(risk, outcome.masking)
    assert set(amounts) == {"INCOME", "HOME_VAL", "MORTGAGE", "MAINTAIN", "TAXES"}
    for shares in amounts.values():
        check_sums(shares, outcome)


def test_tenths_are_by_rank_and_equal_values_stay_together() -> None:
    values = np.array([*range(100), *[np.nan] * 7], float)
    found = np.array([*(np.arange(100) >= 90), *[False] * 7], float)
    shares = _deciles(values, found)
    assert [share.targets for share in shares] == [10] * 10 + [7]
    assert [share.rate for share in shares] == [0.0] * 9 + [1.0, 0.0]
    assert shares[-1].label == UNKNOWN
    tied = _deciles(np.array([0.0] * 50 + [1.0] * 50), np.zeros(100))
    assert sorted(share.targets for share in tied) == [0] * 8 + [50, 50]


def test_no_share_is_told_of_a_few_targets() -> None:
    assert Share("3", FEWEST - 1, 1.0).rate is None
    assert Share("3", FEWEST, 1.0).rate == pytest.approx(1 / FEWEST)
    assert _deciles(np.arange(10.0), np.zeros(10)) == []
