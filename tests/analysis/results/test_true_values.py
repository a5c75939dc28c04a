"""What is known of each true value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maskwell.analysis.results import true_values as module
from maskwell.analysis.results.draws import Draws
from maskwell.analysis.results.true_values import Truths
from maskwell.errors import BadPlan

RECORDS = 7
KEPT = np.random.default_rng(4).standard_normal((2, 200, RECORDS, 2)).astype(np.float32)
KEPT[..., 0] = KEPT[..., 0] * 2 + np.arange(RECORDS)
KEPT[..., 1] = KEPT[..., 1] > np.linspace(-1, 1, RECORDS)
DRAWS = Draws(("x",), np.zeros((2, 200, 1)), truths=KEPT, truth_names=("income", "sex"))


def test_a_number_has_mean_sd_and_interval() -> None:
    found = Truths.of(DRAWS, "income", level=0.8)
    flat = KEPT[..., 0].reshape(-1, RECORDS).astype(np.float64)
    np.testing.assert_allclose(found.mean, flat.mean(axis=0))
    np.testing.assert_allclose(found.sd, flat.std(axis=0, ddof=1))
    np.testing.assert_allclose([found.low, found.high], np.quantile(flat, (0.1, 0.9), axis=0))
    assert len(found) == found.table.num_rows == RECORDS
    assert found.table.column_names == ["income mean", "income sd", "income low", "income high"]


def test_blocks_of_records_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Truths.of(DRAWS, "income")
    monkeypatch.setattr(module, "BLOCK", 801)  # two records at a time
    parts = Truths.of(DRAWS, "income")
    for name in ("mean", "sd", "low", "high"):
        np.testing.assert_allclose(getattr(parts, name), getattr(whole, name), rtol=1e-12)


def test_a_category_has_probabilities() -> None:
    found = Truths.of(DRAWS, "sex", ("f", "m"))
    np.testing.assert_allclose(found.probability.sum(axis=1), 1)
    np.testing.assert_allclose(found.probability[:, 1], KEPT[..., 1].mean(axis=(0, 1)))
    assert (found.likeliest[0], found.likeliest[-1]) == ("m", "f")
    assert found.table.column_names == ["sex[f]", "sex[m]"]
    assert len(found) == RECORDS


def test_nothing_is_said_of_records_of_which_nothing_was_drawn() -> None:
    at = np.array([1, 4])
    number = Truths.of(DRAWS, "income").without(at)
    assert (
        np.flatnonzero(np.isnan(number.mean)).tolist()
        == np.flatnonzero(np.isnan(number.low)).tolist()
        == [1, 4]
    )
    likeliest = Truths.of(DRAWS, "sex", ("f", "m")).without(at).likeliest
    assert [k for k, label in enumerate(likeliest) if label is None] == [1, 4]


def test_a_number_has_no_likeliest() -> None:
    with pytest.raises(BadPlan, match="'income' is a number"):
        _ = Truths.of(DRAWS, "income").likeliest


def test_what_was_not_kept_is_refused(make_posterior: Any) -> None:
    with pytest.raises(BadPlan, match="were not kept: fit with keep_truths=True"):
        make_posterior().truths("x1")
    with pytest.raises(BadPlan, match=r"'incom' is not one.*did you mean 'income'"):
        Truths.of(DRAWS, "incom")


def test_what_nothing_hides_is_told_what_can_be_had(make_posterior: Any) -> None:
    posterior = make_posterior(truths=KEPT, truth_names=("x1", "sex"))
    with pytest.raises(BadPlan, match=r"response 'y' were not drawn.*predict\(kind='response'\)"):
        posterior.truths("y")
    with pytest.raises(BadPlan, match=r"'x11' is not one.*did you mean 'x1'.*; those of x1 were"):
        posterior.truths("x11")
    with pytest.raises(BadPlan, match="no value in the model is unknown"):
        make_posterior(noised=()).truths("x1")


def test_the_posterior_knows_categories(make_posterior: Any) -> None:
    held = {"truths": KEPT, "truth_names": ("income", "sex")}
    posterior = make_posterior(levels={"sex": ("f", "m")}, **held)
    assert posterior.truths("sex").categories == ("f", "m")
    assert posterior.truths("income").categories == ()
