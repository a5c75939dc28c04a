"""What every intruder must do. The attacks are those of `ATTACKS`; a new one needs one line in EXAMPLES."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest

import maskwell as mw
from maskwell.attacks import ATTACKS, attack, attack_from_dict
from maskwell.attacks.running import attack_by

AMOUNTS = ("INCOME", "TAX", "AGE")
EXAMPLES = {
    "Linkage": [
        mw.Linkage(fields=AMOUNTS, match_blocks=("REGION",)),
        mw.Linkage(fields=AMOUNTS, match_blocks=("REGION",), direction="to_original", claims="all links"),
        mw.Linkage(
            fields=(*AMOUNTS, "EDU"),
            match_blocks=("REGION",),
            rules={"AGE": mw.Absolute(2), "TAX": mw.Relative(0.2, base="larger")},
            weights=mw.Fixed((0.9, 0.8, 0.7, 0.6), 0.1),
            assignment="one-to-one",
        ),
        mw.Linkage(fields=AMOUNTS, match_blocks=(), cut_offs=(3.0, 0.0), weights=mw.EM(starts=2)),
    ],
    "NearestRecord": [
        mw.NearestRecord(match_blocks=("REGION",)),
        mw.NearestRecord(fields=AMOUNTS, match_blocks=(), direction="to_original", assignment="one-to-one"),
    ],
    "BayesIntruder": [
        mw.BayesIntruder(match_blocks=("REGION",)),
        mw.BayesIntruder(fields=AMOUNTS, match_blocks=(), direction="to_original", assignment="one-to-one"),
    ],
}


def every_example():
    return [
        pytest.param(plan, id=f"{name}-{i}")
        for name in ATTACKS
        for i, plan in enumerate(EXAMPLES.get(name, [None]))
    ]


def test_every_attack_has_an_example():
    missing = [name for name in ATTACKS if not EXAMPLES.get(name)]
    assert missing == [], "add a plan for the table `people` to EXAMPLES in tests/attacks/test_contract.py"


@pytest.fixture(scope="module")
def masking(people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), people, seed=5)


@pytest.mark.parametrize("plan", every_example())
def test_a_plan_is_frozen_and_holds_no_data(plan):
    with pytest.raises(FrozenInstanceError):
        setattr(plan, fields(plan)[0].name, None)
    assert hash(plan) == hash(replace(plan))


@pytest.mark.parametrize("plan", every_example())
def test_a_plan_can_be_written_and_read(plan):
    assert attack_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize("plan", every_example())
def test_permuted_links_change_what_is_correct_and_nothing_else(plan, masking):
    _, guess, _, _ = attack_by(plan, masking)
    order = np.random.default_rng(1).permutation(masking.order)
    other = replace(masking, given=(masking.release, order))
    _, again, _, _ = attack_by(plan, other)
    for name in ("searcher", "found", "ties", "candidates", "claimed", "kind"):
        np.testing.assert_array_equal(getattr(guess, name), getattr(again, name), err_msg=name)
    np.testing.assert_array_equal(guess.score, again.score)
    assert attack(plan, masking).correct != attack(plan, other).correct


@pytest.mark.parametrize("plan", every_example())
def test_the_order_of_the_file_changes_nothing(plan, people, masking):
    order = np.random.default_rng(2).permutation(len(people))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        other = mw.apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), people.take(order), seed=5)
    one, two = attack(plan, masking), attack(plan, other)
    assert one.to_dict() == two.to_dict()
    assert _linked(one) == _linked(two)


def _linked(risk):
    return dict(zip(*(risk.table[name].to_pylist() for name in ("target_id", "linked_id")), strict=True))


@pytest.mark.parametrize("plan", every_example())
def test_figures_hang_together(plan, masking):
    risk = attack(plan, masking)
    assert 0 <= risk.correct <= risk.claims <= len(risk.table)
    assert sum(one.links for one in risk.classes) == len(risk.table)
    assert risk.rate == risk.expected_correct / risk.targets
    assert risk.best_correct == pytest.approx(sum(one.expected_correct for one in risk.classes))
    shares = np.asarray(risk.table["expected_correct"])
    assert shares[np.asarray(risk.table["claimed"])].sum() == pytest.approx(risk.expected_correct)
    assert "target_id" not in str(risk.to_dict())


@pytest.mark.parametrize("plan", every_example())
def test_guessing_on_pure_noise_is_at_the_baseline(plan, people):
    """Where the release says nothing of its records, ties shared, an intruder does as well as by guessing."""
    drawn = [_released_at_random(people, seed) for seed in range(30)]
    risks = [
        attack(replace(plan, claims="all links") if hasattr(plan, "claims") else plan, one) for one in drawn
    ]
    rates = np.array([risk.rate for risk in risks])
    expected = np.mean([risk.baseline for risk in risks])
    assert abs(rates.mean() - expected) <= 4 * rates.std(ddof=1) / np.sqrt(len(rates))


def _released_at_random(people, seed):
    """A release whose links were dealt anew within blocks: it tells nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), people, seed=5)
    order, rng = masking.order.copy(), np.random.default_rng(seed)
    region = np.asarray(people.array("REGION"))[order]
    for name in np.unique(region):
        here = np.flatnonzero(region == name)
        order[here] = order[rng.permutation(here)]
    return replace(masking, given=(masking.release, order))
