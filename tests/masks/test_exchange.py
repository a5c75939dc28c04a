from __future__ import annotations

import numpy as np
import pytest

from maskwell.errors import NoLaw
from maskwell.masking import apply
from maskwell.masks import RankSwap, Subsample

from .conftest import numbers, plain


def test_exchanged_columns_keep_their_marginals_and_closed_values(holes):
    z, x = apply(RankSwap(("A", "B"), 0.05), holes, seed=1).masked.values([*"AB"]), holes.values([*"AB"])
    assert np.array_equal(np.isnan(z), np.isnan(x))
    assert np.array_equal(np.sort(z, axis=0), np.sort(x, axis=0), equal_nan=True)
    assert np.array_equal(
        apply(RankSwap("A", 0.05), holes, seed=1).masked.values([*"BC"]),
        holes.values([*"BC"]),
        equal_nan=True,
    )


def test_exchange_has_no_law_and_says_so(holes):
    masking = apply(RankSwap(("A", "B"), 0.05), holes, seed=1)
    with pytest.raises(NoLaw, match="rank swap of 'A', 'B' has no law"):
        masking.card.logpdf(masking.masked, holes)


def test_a_sample_has_its_fraction_and_is_nested_in_larger_ones(table):
    kept = {f: set(apply(Subsample(f), table, seed=1).kept.tolist()) for f in (0.3, 0.6)}
    for fraction, records in kept.items():
        error = np.sqrt(fraction * (1 - fraction) * len(table))
        assert abs(len(records) - fraction * len(table)) < 4 * error
    assert kept[0.3] < kept[0.6]
    masking = apply(Subsample(0.3), table, seed=1)
    assert masking.card.subsampled == 0.3
    assert len(masking.release) == len(kept[0.3])


def test_what_is_wrong_is_said(messages):
    assert messages(lambda: RankSwap((), 0.0)) == (
        "a mask needs at least one column",
        "window_ratio must lie above 0 and at most 1",
    )
    assert messages(lambda: Subsample(1.0)) == ("fraction = 1 releases every record: leave Subsample out",)
    assert messages(lambda: Subsample(float("nan"))) == ("fraction must lie above 0 and at most 1",)
    values = numbers(5)
    values[1:, 0] = np.nan
    values[:, 1] = np.nan
    assert messages(lambda: RankSwap(("A", "B", "C"), 0.1).card(plain(values))) == (
        "column 'A' has fewer than two open values to exchange",
        "column 'B' has fewer than two open values to exchange",
    )
