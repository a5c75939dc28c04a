"""Who exchanges with whom, and who is stuck."""

from __future__ import annotations

from functools import partial

import pytest

import maskwell as mw
from maskwell.attacks.attack_run import attack_by
from maskwell.errors import MaskwellWarning
from maskwell.keys import Key
from maskwell.protect.swap_walk import ALONE, LIKE_ALL, NONE_LEFT, walk_along

swap = partial(mw.swap, exempt_values="the intruder holds these values; what he is after stays in the row")

PLAN = mw.Linkage(weights=mw.attacks.Fixed())


def walk(masking, plan=PLAN, seed=1):
    _, guess, marks, _ = attack_by(plan, masking)
    return walk_along(masking, guess, marks, ("BLOCK",), Key.from_seed(seed))


@pytest.mark.parametrize("direction", ["to_masked", "to_original"])
def test_stuck_records_are_listed_with_the_reason(small, direction):
    """Block a has one record, block b two of the same, block c three of which two exchange."""
    masking = small("abbccc", [5.0, 7.0, 7.0, 100.0, 200.0, 300.0], [1.0, 1.0, 1.0, 10.0, 20.0, 30.0])
    found = walk(masking, mw.Linkage(weights=mw.attacks.Fixed(), direction=direction))
    assert found.at_risk == 6
    assert len(found.pairs) == 1
    assert set(found.pairs[0]) < {3, 4, 5}
    reasons = {one.record: one.reason for one in found.stuck}
    (left,) = {3, 4, 5} - set(found.pairs[0].tolist())
    assert reasons == {0: ALONE, 1: LIKE_ALL, 2: LIKE_ALL, left: NONE_LEFT}
    assert found.relief.tolist() == [2.0]


def test_the_partner_is_the_most_similar_of_the_block(small):
    """The second field tells apart: each record's partner agrees in it where one does."""
    masking = small("aaaa", [100.0, 200.0, 300.0, 400.0], [10.0, 50.0, 10.0, 50.0])
    found = walk(masking)
    assert {frozenset(pair) for pair in found.pairs.tolist()} == {frozenset((0, 2)), frozenset((1, 3))}


def test_the_key_decides_the_order(masking, linkage):
    _, guess, marks, _ = attack_by(linkage, masking)
    walks = [walk_along(masking, guess, marks, ("REGION", "SEX"), Key.from_seed(seed)) for seed in (1, 1, 2)]
    assert (walks[0].pairs == walks[1].pairs).all()
    assert walks[0].pairs[:5].tolist() != walks[2].pairs[:5].tolist()


def test_nobody_at_risk_is_nobody_moved(small):
    masking = small("aabb", [1.0, 1.0, 2.0, 2.0], [1.0, 1.0, 2.0, 2.0])
    with pytest.warns(MaskwellWarning, match="after all 0 possible swaps"):
        swapped = swap(masking, PLAN, mw.MaxRate(0.1))
    assert swapped.swapping.swaps == 0
    assert swapped.card.swapped is None
    assert swapped.swapping.reasons == {LIKE_ALL: 4}
