"""Helpers in a whole attack: who is known, what is said of it, and how large it may be."""

from __future__ import annotations

import numpy as np
import pytest

import maskwell as mw
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.bayes.matching_posterior import posterior
from maskwell.attacks.protocol import IntruderKnowledge
from maskwell.errors import BadPlan
from maskwell.notes import Note, has_code

from .test_plan import NAMES, masked, table_of

UNSURE = mw.attacks.Prior(mean_over_sd=2.0)
BRIEF = mw.attacks.Sampling(chains=2, draws=200, most=200, ess=10.0, rhat=2.0)


@pytest.fixture(scope="module")
def masking():
    table = table_of(np.random.default_rng(3).normal(50, 10, (40, 2)))
    return masked(mw.IndependentNoise(NAMES, variance_ratio=0.2), table)


def told(masking, helpers, **rest):
    return mw.attack(mw.BayesIntruder(helpers=helpers, sampling=BRIEF, **rest), masking)


# Who is known.


def test_all_others_are_the_ceiling_however_it_is_said(masking):
    every, number = (told(masking, helpers) for helpers in ("all", 39))
    for risk in (every, number):
        assert has_code(risk.notes, "attacks.ceiling")
        assert not has_code(risk.notes, "attacks.upper_bound")
        assert risk.rate == every.rate
    assert not has_code(told(masking, 38).notes, "attacks.ceiling")
    assert has_code(told(masking, 38).notes, "attacks.upper_bound")


def test_more_helpers_than_the_blocks_of_his_targets_have_is_said(masking):
    """With the card only units of the targets' blocks can help: these may be fewer than he was given."""
    plan = mw.BayesIntruder(helpers=30)
    here, all_here = IntruderKnowledge(masking.truth.take(np.arange(12)), masking.truth), [np.arange(12)]
    assert posterior._on_groups(plan, here, all_here) == [Note("attacks.all_others", {"others": 11})]
    assert not posterior._on_groups(plan, IntruderKnowledge(*2 * (masking.truth,)), [])


def test_without_the_card_all_others_are_no_ceiling_and_need_no_f(masking):
    risk = told(masking, 39, prior=UNSURE)
    assert not has_code(risk.notes, "attacks.ceiling")
    assert not has_code(risk.notes, "attacks.upper_bound")


@pytest.mark.parametrize("prior", [None, UNSURE])
def test_a_few_targets_are_the_same_among_few_and_all(masking, prior, monkeypatch):
    """Only targets and helpers take part; who does not changes nothing."""
    few = mw.BayesIntruder(helpers=2, targets=mw.attacks.Sample(6), prior=prior)
    some, guess = attack_by(few, masking)[:2]
    chances = guess.columns["probability"][guess.found >= 0]
    monkeypatch.setattr(posterior, "_taking_part", lambda groups: np.arange(40))
    again = attack_by(few, masking)[1]
    assert some.targets == 6
    assert len(chances) == 6
    np.testing.assert_array_equal(guess.found, again.found)
    np.testing.assert_allclose(chances, again.columns["probability"][again.found >= 0], rtol=1e-9)


def test_only_known_times_released_is_limited(masking, monkeypatch):
    monkeypatch.setattr(posterior, "MOST_PAIRS", 30 * 40)
    plan = mw.BayesIntruder(helpers=2, targets=mw.attacks.Sample(9))
    assert mw.attack(plan, masking).targets == 9
    said = "40 targets and helpers and 40 released records, 1,600 pairs where 1,200 can be held"
    with pytest.raises(BadPlan, match=said):
        mw.attack(mw.BayesIntruder(helpers=2), masking)


# How it is said.


def test_few_helpers_are_counted_and_the_lattice_is_said(masking):
    risk = told(masking, 1, prior=UNSURE)
    assert [note.code for note in risk.notes].count("attacks.matchings_counted_at") == 1
    assert Note("attacks.target_groups", {"count": 20}) in risk.notes
    assert not has_code(risk.notes, "attacks.undecided_links")


def test_what_draws_leave_open_is_counted(masking):
    flat = masked(mw.IndependentNoise(NAMES, variance_ratio=25.0), masking.truth)
    for options in ({}, {"prior": UNSURE}):
        notes = told(flat, "all", **options).notes
        (said,) = [note for note in notes if note.code == "attacks.undecided_links"]
        assert (20 <= said.figures["undecided"] <= 40, said.figures["links"]) == (True, 40)
        assert any(note.figures.get("draws") == 200 for note in notes)


def test_more_helpers_do_not_make_the_truth_less_likely(masking):
    """Counted or drawn, the mean probability of the truth grows with what he knows, up to its error."""
    truth = [
        mw.attack(mw.BayesIntruder(helpers=count, prior=UNSURE), masking).belief.truth_probability
        for count in (1, 9, "all")
    ]
    means = [one.mean for one in truth]
    assert means[0] < means[1] + 0.02
    assert means[1] < means[2] + 0.02
    assert means[2] > means[0]
