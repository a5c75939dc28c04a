"""Changes to a plan name what failed findings name themselves."""

from __future__ import annotations

from dataclasses import replace

import maskwell as mw
from maskwell.checks.findings import FAIL, Audit, Finding, Limits
from maskwell.pipeline.candidates import Candidate, bases, told_whatever_the_noise

MASKS = (mw.CorrelatedNoise(("AGE", "SIZE", "COUNT", "COST"), sd_ratio=0.75),)
NARROW = Finding(
    "narrow classes",
    0.4,
    FAIL,
    Limits(0.01, 0.15),
    "AGE by CHILD",
    by_column={"AGE": 0.4, "SIZE": 0.0},
    without=("CHILD",),
)
LAST = Finding(
    "last record",
    0.11,
    FAIL,
    Limits(1.0, 0.2, below=True),
    "SIZE",
    by_column={"SIZE": 0.11, "COUNT": 0.12, "COST": 0.5},
)


def test_either_what_is_told_goes_or_what_tells_it() -> None:
    first, instead = bases(Candidate((), MASKS), ("GROUP",), Audit((NARROW, LAST)))
    assert first.dropped == ("GROUP", "AGE", "SIZE", "COUNT")
    assert instead is not None
    assert instead.dropped == ("GROUP", "CHILD", "SIZE")
    assert instead.masks[0].columns == ("AGE", "COUNT", "COST")


def test_labels_of_figures_are_no_columns() -> None:
    """The largest losses of a column are labelled `SIZE, below 0`: SIZE goes, though its gains tell nothing."""
    told = Finding(
        "top values",
        0.9,
        FAIL,
        Limits(0.2, 0.5),
        "SIZE",
        figures={"SIZE": 0.0, "SIZE, below 0": 0.9, "COST, below 0": 0.1},
        by_column={"SIZE": 0.9, "COST": 0.1},
    )
    assert told.failing_columns == ("SIZE",)
    assert told_whatever_the_noise(Audit((told,)), ("top values",)) == ("SIZE",)
    assert told_whatever_the_noise(Audit((replace(told, check="averaging"),))) == ("SIZE",)


def test_nothing_goes_where_nothing_is_told() -> None:
    first, instead = bases(Candidate((), MASKS), (), Audit(()))
    assert (first, instead) == (Candidate((), MASKS), None)
