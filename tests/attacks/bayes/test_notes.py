"""What the report of a Bayesian intruder says of what he knew: once, in plain words, and nothing that is not so."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import maskwell as mw
from maskwell.attacks.risk import tenths
from maskwell.notes import has_code


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    income = np.exp(rng.normal(10, 0.5, 120))
    frame = {
        "ID": [f"p{i}" for i in range(120)],
        "INC": income,
        "TAX": 0.2 * income + rng.normal(0, 900, 120),
    }
    return mw.Table.from_frame(pd.DataFrame(frame))


@pytest.fixture(scope="module")
def masking(table):
    return mw.apply(mw.IndependentNoise(("INC", "TAX"), variance_ratio=0.2), table, seed=2)


def test_an_error_that_plays_no_part_is_said_first_and_loud(masking):
    """TAX is known exactly, and only one true record has it: the figures are those without any error."""
    off, sure = (
        mw.attack(mw.BayesIntruder(error=e), masking) for e in (mw.attacks.OwnError({"INC": 3000.0}), None)
    )
    assert off.rate == sure.rate
    assert str(off.notes[0]).startswith(
        "THE ERROR PLAYS NO PART: his other columns single out the record in the"
    )
    assert "take marginal 'gaussian'" in str(off.notes[0])
    alone = mw.attack(mw.BayesIntruder(fields=("INC",), error=mw.attacks.OwnError({"INC": 3000.0})), masking)
    assert not has_code(alone.notes, "attacks.error_plays_no_part")
    outside = mw.BayesIntruder(error=mw.attacks.OwnError({"INC": 3000.0}), marginal="gaussian")
    assert not has_code(mw.attack(outside, masking).notes, "attacks.error_plays_no_part")
    tiny = mw.attack(mw.BayesIntruder(fields=("INC",), error=mw.attacks.OwnError({"INC": 1e-6})), masking)
    assert "values so nearly right single out" in str(tiny.notes[0])


def test_where_f_comes_from_is_said_once(masking):
    for marginal, said in (("truth", "f(z) comes from"), ("gaussian", "f(z) a normal law")):
        shown = repr(mw.attack(mw.BayesIntruder(marginal=marginal), masking))
        assert shown.count("f(z)") == shown.count(said) == 1


def test_who_knows_all_of_a_file_knows_no_others(masking, table):
    few = mw.attack(mw.BayesIntruder(helpers="all"), masking, targets=table.take(np.arange(3)))
    assert "knows all in his file" in repr(few)
    assert "knows all others" not in repr(few)
    one = mw.attack(mw.BayesIntruder(helpers=1), masking, targets=table.take(np.arange(2)))
    assert "1 helper;" in repr(one)
    single = mw.attack(mw.BayesIntruder(), masking, targets=table.take(np.arange(1)))
    assert repr(single).startswith("BayesIntruder: 1 target, 1 link claimed")


def test_what_leaves_nothing_unknown_is_said_once(make_people):
    people = make_people(60)
    mask = mw.Chain((mw.IndependentNoise(("INCOME",), variance_ratio=0.3), mw.Pram(("SEX",), stay=0.8)))
    masking = mw.apply(mask, people, seed=3)
    for helpers in (0, 2):
        risk = mw.attack(
            mw.BayesIntruder(prior=mw.attacks.Prior(), helpers=helpers, match_blocks=()), masking
        )
        (told,) = [
            note for note in risk.notes if note.code in ("attacks.nothing_to_learn", "attacks.taken_as_told")
        ]
        assert told.figures["columns"] == ("SEX",)


def test_intruders_side_by_side_say_what_they_compared_and_what_bounds_them(masking):
    beside = mw.attack({"law": mw.BayesIntruder(), "matcher": mw.Linkage()}, masking)
    shown = " ".join(repr(beside).split())
    assert "fields compared: INC, TAX" in shown
    assert re.search(r"law: f\(z\) comes from .* upper bound on what an outsider can do", shown)
    other = mw.attack({"law": mw.BayesIntruder(), "matcher": mw.Linkage(fields=("INC",))}, masking)
    assert "fields compared by matcher: INC\n" in repr(other)


def test_sums_of_the_same_links_in_another_order_are_written_alike():
    assert tenths(1630.45) == tenths(1630.45 - 3e-10) == tenths(1630.45 + 3e-10)
    assert tenths(1630.0) == "1,630.0"


def test_noise_below_the_precision_of_numbers_is_no_reason_to_warn(table):
    """Warnings are errors here."""
    masking = mw.apply(mw.IndependentNoise(("INC", "TAX"), variance=1e-140), table, seed=1)
    assert mw.attack(mw.BayesIntruder(), masking).rate == 1.0
