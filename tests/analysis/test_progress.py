"""How far a fit has come: told on standard error, to a function, or not at all."""

from __future__ import annotations

import io
import sys

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.progress import Bar, Lines, progress_reporter

RNG = np.random.default_rng(1)
TABLE = mw.Table.from_frame(pa.table({"x": RNG.standard_normal(80), "y": RNG.standard_normal(80)}))
RELEASE = mw.apply(mw.IndependentNoise(("x",), variance_ratio=0.2), TABLE, seed=2).release


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fitted(**options: object) -> mw.Posterior:
    with pytest.warns(mw.MaskwellWarning, match=r"chains (have not converged|are too short)"):
        return mw.fit("y ~ x", RELEASE, draws=40, warmup=8, seed=1, **options)


@pytest.mark.parametrize("progress", [None, False])
def test_nothing_is_told_where_there_is_no_terminal(progress, capsys):
    fitted(progress=progress)
    assert capsys.readouterr().err == ""


def test_true_tells_in_lines_where_there_is_no_terminal(capsys):
    fitted(progress=True, sampler="gibbs", chains=1, naive=False)
    told = [f"maskwell: gibbs, 1 chain of 40 draws: {share}%" for share in (25, 50, 75, 100)]
    assert capsys.readouterr().err.splitlines() == told
    fitted(progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "maskwell: closed, 4 chains of 40 draws: 100%"
    assert lines[-1] == "maskwell: the unadjusted fit beside: 100%"


def test_a_function_is_called_with_steps_done_and_in_all():
    told: list[tuple[int, int]] = []
    fitted(progress=lambda *at: told.append(at), sampler="gibbs")
    assert told[-1] == (4 * 48, 4 * 48)


def test_a_terminal_has_a_bar_that_says_what_runs(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_reporter(None) as show:
        assert isinstance(show, Bar)
        show.say("gibbs, 4 chains")
        show(3, 4)
        (task,) = show.bar.tasks
        assert (task.description, task.completed, task.total) == ("gibbs, 4 chains", 3, 4)
        show.say("the unadjusted fit beside")
        assert task.completed == 0
    with progress_reporter(False) as show:
        assert show is None


def test_lines_begin_anew_with_other_work(capsys):
    lines = Lines()
    lines(4, 4)
    lines.say("more")
    lines(2, 4)
    lines(2, 4)
    assert capsys.readouterr().err == "maskwell: drawing: 100%\nmaskwell: more: 50%\n"
