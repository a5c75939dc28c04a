"""Pictures of a fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwell import figure_style
from maskwell.analysis.results.plots import draw_fit
from maskwell.errors import BadPlan, CannotWrite
from maskwell.figure_style import save


def titles(figure: Any) -> list[str]:
    return [axes.get_title(loc="left") for axes in figure.axes if axes.get_visible()]


def test_trace_has_two_panels_for_each_parameter(make_posterior: Any) -> None:
    posterior = make_posterior()
    figure = posterior.plot_trace()
    assert titles(figure)[::2] == list(posterior.names)
    assert titles(figure)[3].startswith("R-hat 1.00")
    assert [len(axes.lines) for axes in figure.axes] == [4] * 10


def test_trace_of_long_chains_is_thinned(make_posterior: Any) -> None:
    figure = make_posterior(lambda values: np.tile(values, (1, 3, 1))).plot_trace(["x1"])
    assert len(figure.axes[1].lines[0].get_xdata()) == 1000


def test_density_has_the_naive_fit_beside(make_posterior: Any) -> None:
    figure = make_posterior().plot_density(["x1", "sigma"])
    assert titles(figure) == ["x1", "sigma"]
    naive, adjusted = (line.get_xdata()[line.get_ydata().argmax()] for line in figure.axes[0].lines)
    assert abs(adjusted - 1.0) < 0.05
    assert abs(naive - 0.8) < 0.05


def test_density_alone_where_there_is_no_naive_fit(make_posterior: Any) -> None:
    figure = make_posterior(naive=None).plot_density()
    assert [len(axes.lines) for axes in figure.axes if axes.get_visible()] == [1] * 5
    assert len(figure.texts) == 1


def test_forest_has_both_intervals(make_posterior: Any) -> None:
    posterior = make_posterior()
    figure = posterior.plot_forest(["x1"], level=0.8)
    row, lines = posterior.summary(0.8)["x1"], figure.axes[0].lines
    assert list(lines[0].get_xdata()) == [row.low, row.high]
    assert list(lines[2].get_xdata()) == [row.naive_low, row.naive_high]
    assert "80% intervals" in figure.texts[0].get_text()


def test_zero_is_marked_where_it_is_near(make_posterior: Any) -> None:
    figure = make_posterior(naive=None).plot_forest(["sex[m]", "Intercept"])
    assert [len(axes.lines) for axes in figure.axes] == [3, 2]


def test_the_covariate_model_can_be_drawn(make_posterior: Any) -> None:
    held = {"nuisance_names": ("x1 ~ sigma",), "nuisance": np.random.default_rng(1).random((4, 1000, 1))}
    posterior = make_posterior(**held)
    assert titles(posterior.plot_trace("x1 ~ sigma"))[0] == "x1 ~ sigma"
    with pytest.raises(BadPlan, match="no parameter 'x1 ~ sigma'"):
        posterior.plot_forest(["x1 ~ sigma"])


def test_draws_that_stand_still_and_dollars_are_drawn(make_posterior: Any, tmp_path: Path) -> None:
    from maskwell.analysis.results.draws import Draws
    from maskwell.analysis.results.posterior import Posterior

    posterior = Posterior(Draws(("$a", "b$_"), np.ones((2, 50, 2))), records=1)
    for figure in (posterior.plot_trace(), posterior.plot_density(), posterior.plot_forest()):
        path = tmp_path / "still.png"
        save(figure, path)
        assert path.stat().st_size > 0
        path.unlink()


@pytest.mark.parametrize("names", [[], ["x7"]])
def test_names_must_be_some(make_posterior: Any, names: list[str]) -> None:
    with pytest.raises(BadPlan, match=r"name at least one|no parameter 'x7'"):
        make_posterior().plot_density(names)


@pytest.mark.parametrize("kind", ["trace", "density", "forest"])
def test_pictures_are_written_alike(make_posterior: Any, tmp_path: Path, kind: str) -> None:
    posterior = make_posterior()
    for name in ("one.png", "two.png"):
        save(getattr(posterior, f"plot_{kind}")(["x1", "sigma"]), tmp_path / name)
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_a_picture_of_the_fit_is_written(make_posterior: Any, tmp_path: Path) -> None:
    assert draw_fit(make_posterior(), tmp_path / "fit.png").stat().st_size > 10_000
    with pytest.raises(CannotWrite, match="no such folder"):
        draw_fit(make_posterior(), tmp_path / "none" / "fit.png")


def test_what_is_not_installed_is_said(make_posterior: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure_style, "find_spec", lambda name: None)
    with pytest.raises(BadPlan, match=r"pip install 'maskwell\[plot\]'"):
        make_posterior().plot_forest()
