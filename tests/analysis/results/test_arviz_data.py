"""Draws as arviz has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from maskwell.analysis.results import arviz_data
from maskwell.errors import BadPlan


@pytest.fixture
def tree(make_posterior: Any) -> Any:
    rng = np.random.default_rng(3)
    return make_posterior(
        nuisance_names=("x1 ~ I(x2/3)",),
        nuisance=rng.standard_normal((4, 1000, 1)),
        effects=(rng.standard_normal((4, 1000, 6, 1)).astype(np.float32),),
        truths=rng.standard_normal((4, 1000, 3, 1)).astype(np.float32),
        truth_names=("x1",),
        info={"acceptance": rng.random((4, 1000)), "seconds": 1.5, "odd": object(), "words": "as it was"},
    ).to_arviz()


def test_each_parameter_is_a_variable(tree: Any, make_posterior: Any) -> None:
    posterior = make_posterior()
    assert set(posterior.names) <= set(tree.posterior.data_vars)
    assert tree.posterior["x1"].dims == ("chain", "draw")
    assert np.array_equal(tree.posterior["x1"].values, posterior["x1"])


def test_a_slash_in_a_name_is_no_path(tree: Any) -> None:
    assert "x1 ~ I(x2÷3)" in tree.posterior.data_vars


def test_effects_and_truths_have_their_own_dimensions(tree: Any) -> None:
    assert dict(tree.posterior["effects[1]"].sizes) == {
        "chain": 4,
        "draw": 1000,
        "group[1]": 6,
        "column[1]": 1,
    }
    assert tree.posterior["truths"].dims == ("chain", "draw", "record", "noised")
    assert tree.posterior["noised"].values.tolist() == ["x1"]


def test_what_the_sampler_says_is_kept(tree: Any) -> None:
    assert tree.sample_stats["acceptance"].shape == (4, 1000)
    about = tree.posterior.attrs
    assert (about["seconds"], about["words"], about["family"]) == (1.5, "as it was", "gaussian")
    assert "odd" not in about


def test_without_statistics_there_is_no_such_group(make_posterior: Any) -> None:
    assert list(make_posterior().to_arviz().children) == ["posterior"]


def test_truths_of_fewer_draws_are_left_out(make_posterior: Any) -> None:
    held = {"truths": np.zeros((4, 10, 3, 1), np.float32), "truth_names": ("x1",)}
    assert "truths" not in make_posterior(**held).to_arviz().posterior


def test_arviz_reads_it(tree: Any) -> None:
    from arviz_stats.base import array_stats

    found = float(array_stats.rhat(tree.posterior["x1"].values, chain_axis=0, draw_axis=1))
    assert 0.99 < found < 1.01


def test_what_is_not_installed_is_said(make_posterior: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arviz_data, "find_spec", lambda name: None)
    with pytest.raises(BadPlan, match="pip install arviz-base"):
        make_posterior().to_arviz()
