"""The intruder by distance against plain numpy, and by hand."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linear_sum_assignment

import maskwell as mw
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.nearest import assignment, search
from maskwell.attacks.nearest import plan as nearest
from maskwell.errors import BadInput, BadPlan
from maskwell.masking import Masking
from maskwell.schema import Column, Schema
from maskwell.table import Table

AMOUNTS = ("INCOME", "TAX", "AGE")
KEY, ID = frozenset({"key"}), frozenset({"id"})


@pytest.fixture(scope="module")
def masking(people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), people, seed=5)


def by_hand(true, released, **columns):
    """A masking of two small files: record i of one is record i of the other."""
    described = [Column("ID", "text", ID), *(Column(n, "continuous", KEY, **c) for n, c in columns.items())]
    schema, sides = Schema(tuple(described)), []
    for letter, rows in (("t", true), ("r", released)):
        ids = [f"{letter}{i}" for i in range(len(rows))]
        values = zip(*rows, strict=True)
        named = {n: pa.array(v, pa.float64()) for n, v in zip(columns, values, strict=True)}
        sides.append(Table.from_frame(pa.table({"ID": ids, **named}), schema))
    links = pa.table({"truth_id": sides[0].ids, "released_id": sides[1].ids})
    return Masking.from_files(*sides, links)


def reference(masking, fields, blocks=("REGION",)):
    """Known x released: how many statuses differ and the squared distance, and which pairs share a block."""
    truth, released = masking.truth, masking.release.table
    differing = np.zeros((len(truth), len(released)))
    squared = np.zeros_like(differing)
    for name in fields:
        x, z = truth.floats(name), released.floats(name)
        sx, sz = truth.status(name), released.status(name)
        differing += sx[:, None] != sz
        both = (sx[:, None] == 0) & (sz == 0)
        gap = np.where(both, np.nan_to_num(x)[:, None] - np.nan_to_num(z), 0.0)
        squared += (gap / np.nanstd(z, ddof=1)) ** 2
    same = np.ones_like(differing, bool)
    for name in blocks:
        same &= np.asarray(truth.array(name))[:, None] == np.asarray(released.array(name))
    return differing, squared, same


def ranked(differing, squared, same):
    return np.where(same, -(differing * 1e6 + squared), -np.inf)


@pytest.mark.parametrize("direction", ["to_masked", "to_original"])
def test_the_nearest_is_that_of_plain_numpy(direction, masking):
    plan = mw.NearestRecord(fields=AMOUNTS, direction=direction)
    risk, guess, _, _ = attack_by(plan, masking)
    differing, squared, same = reference(masking, AMOUNTS)
    scores = ranked(differing, squared, same)
    assert differing.max() == 3
    if direction == "to_original":
        scores, differing, squared, same = scores.T, differing.T, squared.T, same.T
    rows = np.arange(len(scores))
    np.testing.assert_array_equal(guess.found, scores.argmax(axis=1))
    np.testing.assert_allclose(guess.score, -np.sqrt(squared[rows, guess.found]), rtol=1e-9)
    np.testing.assert_array_equal(risk.table["mismatches"], differing[rows, guess.found])
    np.testing.assert_array_equal(guess.candidates, same.sum(axis=1))
    scores[rows, guess.found] = -np.inf
    np.testing.assert_array_equal(guess.second, scores.argmax(axis=1))


def test_the_way_of_searching_changes_nothing(masking, monkeypatch):
    plans = [mw.NearestRecord(), mw.NearestRecord(direction="to_original", distance="posterior")]
    whole = [mw.attack(plan, masking).table for plan in plans]
    for name in ("nearest", "closer"):
        plain = partial(getattr(search, name), how="brute")
        monkeypatch.setattr(f"maskwell.attacks.nearest.status_search.{name}", plain)
    assert [mw.attack(plan, masking).table for plan in plans] == whole


def test_one_to_one_is_the_assignment_of_smallest_sum(masking):
    risk, guess, _, _ = attack_by(mw.NearestRecord(assignment="one-to-one"), masking)
    differing, squared, same = reference(masking, AMOUNTS)
    cost = np.where(same, differing * 1e4 + squared, 1e8)
    rows, columns = linear_sum_assignment(cost)
    found = guess.found[rows]
    assert cost[rows, found].sum() == pytest.approx(cost[rows, columns].sum(), rel=1e-9)
    assert len(np.unique(guess.found)) == len(guess.found)
    assert risk.rate > mw.attack(mw.NearestRecord(), masking).rate


ONE = {"assignment": "one-to-one"}


@pytest.mark.parametrize(
    "options", [{}, {"direction": "to_original"}, {"distance": "gower"}, {"distance": "noise"}]
)
@pytest.mark.parametrize(("thinned", "held"), [(False, False), (True, False), (True, True)])
def test_large_blocks_are_assigned_as_well(masking, monkeypatch, options, thinned, held):
    """Kind by kind where statuses allow it, else by all pairs, held or not: the sum is that of scipy's matrix."""
    if thinned:
        mask = mw.Chain([mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), mw.Subsample(0.6)])
        masking = mw.apply(mask, masking.truth, seed=4)
    plan = mw.NearestRecord(**ONE, **options)
    risk, guess, _, _ = attack_by(plan, masking)
    monkeypatch.setattr(nearest, "DENSE_CELLS", 1)
    monkeypatch.setattr(assignment, "DENSE_CELLS", 50)
    monkeypatch.setattr(assignment, "MOST_CELLS", 10**9 if held else 1)
    large, again, _, _ = attack_by(plan, masking)
    for column in ("mismatches", "score"):
        ours, theirs = (
            np.nan_to_num(np.asarray(one.table[column].to_numpy(), float)) for one in (large, risk)
        )
        power = 2 if column == "score" else 1
        assert (np.abs(ours) ** power).sum() == pytest.approx((np.abs(theirs) ** power).sum(), rel=1e-9)
    linked = again.found[again.found >= 0]
    assert len(linked) == len(np.unique(linked)) == (guess.found >= 0).sum()
    assert 0 <= large.gap < 1e-6
    assert large.expected_correct == pytest.approx(risk.expected_correct, abs=2)  # other ties, other links


def test_statuses_count_before_amounts():
    true = [(0.0, None), (10.0, 1.0)]
    released = [(9.0, None), (0.0, 1.0)]
    risk = mw.attack(mw.NearestRecord(), by_hand(true, released, A={}, B={}))
    assert risk.correct == 2
    sd = np.std([9.0, 0.0], ddof=1)
    np.testing.assert_allclose(risk.table["score"], [-9 / sd, -10 / sd])
    alone = mw.attack(mw.NearestRecord(fields="A"), by_hand(true, released, A={}, B={}))
    assert alone.correct == 0


def test_a_code_is_another_status_than_missing():
    codes = {"missing": (-9, -8)}
    true = [(-9.0, 3.0), (-8.0, 0.0)]
    released = [(-9.0, 0.0), (-8.0, 3.0)]
    assert mw.attack(mw.NearestRecord(), by_hand(true, released, A=codes, B={})).correct == 2


def test_distances_are_in_sds_of_the_release():
    """A differs by 0.4 sd and B by 0.1 for the right pairs, although A's numbers are the larger by far."""
    true = [(0.0, 0.0), (1000.0, 0.0), (0.0, 1.0), (1000.0, 1.0)]
    released = [(400.0, 0.0), (600.0, 0.0), (400.0, 1.0), (600.0, 1.0)]
    assert mw.attack(mw.NearestRecord(), by_hand(true, released, A={}, B={})).correct == 4


def test_ties_are_shared_and_decided_by_the_key():
    masking = by_hand([(0.0,), (5.0,)], [(1.0,), (-1.0,)], A={})
    risk, guess, _, _ = attack_by(mw.NearestRecord(), masking)
    np.testing.assert_array_equal(guess.ties, [2, 1])
    assert risk.expected_correct == 0.5
    both = mw.attack(mw.NearestRecord(), by_hand([(0.0,)] * 3, [(1.0,)] * 3, A={}))
    assert both.expected_correct == pytest.approx(1.0)
    pairs = by_hand([(0.0,)] * 3, [(1.0,)] * 3, A={})
    one = mw.attack(mw.NearestRecord(assignment="one-to-one"), pairs)
    assert one.expected_correct == pytest.approx(1.0)
    assert one.table["ties"].to_pylist() == [3, 3, 3]


def test_ties_are_found_across_statuses():
    """Both candidates differ in the status of B and lie 1 from the target in A, on different codes."""
    codes = {"missing": (-9, -8)}
    masking = by_hand([(0.0, 5.0), (7.0, 5.0)], [(1.0, -9.0), (-1.0, -8.0)], A={}, B=codes)
    _, guess, _, _ = attack_by(mw.NearestRecord(), masking)
    np.testing.assert_array_equal(guess.ties, [2, 1])
    assert guess.found[1] == 0
    assert guess.second[1] == 1
    assert {guess.found[0], guess.second[0]} == {0, 1}
    assert guess.score[0] == guess.second_score[0]


def test_the_next_best_may_differ_in_more_statuses():
    """Only the first candidate is open in both fields: of the others the one with fewer gaps comes next."""
    released = [(9.0, 9.0), (None, 0.0), (None, None)]
    _, guess, _, _ = attack_by(mw.NearestRecord(), by_hand([(0.0, 0.0)] * 3, released, A={}, B={}))
    np.testing.assert_array_equal(guess.found, 0)
    np.testing.assert_array_equal(guess.second, 1)
    np.testing.assert_array_equal(guess.second_score, 0.0)


def test_a_column_without_spread_does_not_count():
    true, released = [(0.0, 7.0), (1.0, -7.0)], [(0.1, 1.0), (0.9, 1.0)]
    risk = mw.attack(mw.NearestRecord(direction="to_original"), by_hand(true, released, A={}, B={}))
    assert risk.correct == 2


def test_partners_are_the_other_records_of_the_block_nearest_first(masking):
    differing, squared, same = reference(masking, AMOUNTS)
    scores = ranked(differing, squared, same)
    _, guess, _, _ = attack_by(mw.NearestRecord(), masking)
    for known in (0, 11, 100):
        partners = guess.partners(known)
        assert set(partners) == set(np.flatnonzero(same[known])) - {scores[known].argmax()}
        assert (np.diff(scores[known, partners]) <= 1e-9).all()


def test_partners_of_the_other_direction_are_records_that_do_not_claim_it(masking):
    _, guess, _, _ = attack_by(mw.NearestRecord(direction="to_original"), masking)
    _, _, same = reference(masking, AMOUNTS)
    for known in (0, 11, 100):
        claiming = np.flatnonzero(guess.found == known)
        inside = np.flatnonzero(same[known])
        assert set(guess.partners(known)) == set(inside) - set(claiming)


def test_nobody_is_found_where_the_block_has_no_released_record(masking, people):
    north = np.flatnonzero(np.asarray(people.array("REGION")) == "north")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        part = mw.apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), people.take(north), seed=5)
    risk = mw.attack(mw.NearestRecord(), part, targets=people)
    assert risk.class_of("no candidate").links == len(people) - len(north)
    assert risk.claims == len(north)


def test_categories_are_no_amounts(masking):
    with pytest.raises(BadPlan, match="column 'SEX' holds names, not amounts: make it a matching block"):
        mw.attack(mw.NearestRecord(fields=("INCOME", "SEX")), masking)
    said = mw.attack(mw.NearestRecord(), masking).notes[0]
    assert (said.code, said.figures["columns"][0]) == ("attacks.no_distance_on_names", "SEX")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"assignment": "greedy"}, "assignment must be 'best' or 'one-to-one', not 'greedy'"),
        ({"fields": ()}, "name at least one field"),
        ({"fields": ("A", "A")}, "field 'A' is named twice"),
        ({"direction": "up"}, "direction must be"),
    ],
)
def test_bad_plans_are_refused(options, said):
    with pytest.raises(BadPlan, match=said):
        mw.NearestRecord(**options)


def test_fields_that_are_not_there_are_refused(masking):
    with pytest.raises(BadInput, match="did you mean 'INCOME'"):
        mw.attack(mw.NearestRecord(fields=("INCOM",)), masking)


def test_a_release_without_number_keys_is_refused(masking):
    released = masking.release.table
    keys = {n: replace(released.schema[n], roles=frozenset()) for n in AMOUNTS}
    bare = replace(masking.release, table=replace(released, schema=released.schema.changed(keys)))
    with pytest.raises(BadPlan, match="name amounts in fields"):
        mw.attack(mw.NearestRecord(), replace(masking, given=(bare, masking.order)))
