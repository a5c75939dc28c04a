"""h by hand, by brute force, and against the published figures of Goldstein and Shlomo."""

from __future__ import annotations

import itertools
import json
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binomtest

import maskwell as mw
from maskwell.attacks import Quantiles, Sample
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.nearest.h_index import Outermost
from maskwell.errors import BadPlan
from maskwell.masking import Masking
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY, ID = frozenset({"key"}), frozenset({"id"})
AMOUNTS = ("INCOME", "TAX", "AGE")


def by_hand(true, released, order=None, **columns):
    """A masking of two small files: released record i is record order[i] of the truth."""
    order = np.arange(len(released)) if order is None else np.asarray(order)
    described = [Column("ID", "text", ID), *(Column(n, "continuous", KEY, **c) for n, c in columns.items())]
    schema, sides = Schema(tuple(described)), []
    for letter, rows in (("t", true), ("r", released)):
        ids = [f"{letter}{i}" for i in range(len(rows))]
        values = zip(*rows, strict=True)
        named = {n: pa.array(v, pa.float64()) for n, v in zip(columns, values, strict=True)}
        sides.append(Table.from_frame(pa.table({"ID": ids, **named}), schema))
    links = pa.table({"truth_id": sides[0].ids.take(pa.array(order)), "released_id": sides[1].ids})
    return Masking.from_files(*sides, links)


def normals(records, seed, columns="ABCDE", covariance=0.25):
    """Normal amounts of variance 1, all of them keys."""
    rng = np.random.default_rng(seed)
    shared = np.sqrt(covariance) * rng.standard_normal((records, 1))
    values = shared + np.sqrt(1 - covariance) * rng.standard_normal((records, len(columns)))
    described = (Column("ID", "text", ID), *(Column(n, "continuous", KEY) for n in columns))
    ids = [f"p{i}" for i in range(records)]
    named = {n: values[:, j] for j, n in enumerate(columns)}
    return Table.from_frame(pa.table({"ID": ids, **named}), Schema(described))


LINE = [(0.0,), (1.0,), (3.0,), (10.0,)]
MOVED = [(3.2,), (1.1,), (0.1,), (9.0,)]


def test_h_counts_the_true_records_that_lie_closer_than_the_one_behind_the_link():
    """The record at 0 is linked to 0.1, which is really 3: closer to 0 are 0 itself and 1."""
    risk = mw.attack(mw.NearestRecord(), by_hand(LINE, MOVED, A={}))
    assert risk.table["linked_id"].to_pylist() == ["r2", "r1", "r0", "r3"]
    assert risk.table["h"].to_pylist() == [2, 0, 2, 0]
    assert risk.table["true_rank"].to_pylist() == [3, 1, 3, 1]
    assert (risk.h.at_zero, risk.h.below(2), risk.h.below(3), risk.h.expected) == (0.5, 0.5, 1.0, 1.0)
    assert risk.h.cumulative == (0.5, 0.5, *(1.0,) * 19)


def test_the_other_way_round_the_searchers_own_true_record_is_the_reference():
    """3.2 is really 0 and takes 3 for its owner: closer to 0 than 3 are 0 and 1. 9 finds 10."""
    risk = mw.attack(mw.NearestRecord(direction="to_original"), by_hand(LINE, MOVED, A={}))
    assert risk.table["linked_id"].to_pylist() == ["t2", "t1", "t0", "t3"]
    assert risk.table["h"].to_pylist() == [2, 0, 2, 0]
    assert risk.table["true_rank"].to_pylist() == [3, 1, 3, 1]


def test_a_record_that_cannot_be_told_from_the_target_is_as_good_as_it():
    """The first two are twins: whichever of their released records is taken, h is 0, though half are wrong."""
    masking = by_hand([(0.0,), (0.0,), (5.0,)], [(0.1,), (0.2,), (5.0,)], A={})
    risk = mw.attack(mw.NearestRecord(), masking)
    assert risk.table["h"].to_pylist() == [0, 0, 0]
    assert (risk.rate, risk.h.at_zero) == (pytest.approx(2 / 3), 1.0)
    assert risk.table["true_rank"].to_pylist() == [1, 2, 1]


def test_records_as_far_as_the_linked_one_do_not_count():
    """0 is linked to what is really 1; -1 lies as far, and only 0 itself lies closer."""
    masking = by_hand([(0.0,), (1.0,), (-1.0,)], [(7.0,), (0.2,), (-6.0,)], A={})
    risk = mw.attack(mw.NearestRecord(), masking)
    assert risk.table["linked_id"].to_pylist() == ["r1", "r1", "r1"]
    assert risk.table["h"].to_pylist() == [1, 0, 2]


def test_tied_candidates_do_not_move_the_right_one_down():
    masking = by_hand([(0.0,), (5.0,), (6.0,)], [(1.0,), (-1.0,), (6.0,)], A={})
    risk = mw.attack(mw.NearestRecord(), masking)
    assert risk.table["ties"].to_pylist()[0] == 2
    assert risk.table["true_rank"].to_pylist() == [1, 3, 1]


def test_a_target_that_is_not_in_the_release_has_no_h():
    masking = by_hand(LINE, MOVED[:3], order=[0, 1, 2], A={})
    risk = mw.attack(mw.NearestRecord(response_knowledge=False), masking)
    assert risk.table["h"].to_pylist() == [2, 0, 2, None]
    assert risk.table["true_rank"].to_pylist() == [3, 1, 3, None]
    assert len(risk.h.known) == 3


def test_statuses_rank_true_records_before_amounts():
    """The first has B missing and is linked to the third, which is really (9, missing): the second is nearer in A
    but differs in a status, so that it does not count; the first itself does."""
    true = [(0.0, None), (0.5, 2.0), (9.0, None)]
    released = [(8.0, None), (0.5, 2.0), (1.0, None)]
    risk = mw.attack(mw.NearestRecord(), by_hand(true, released, A={}, B={}))
    assert risk.table["linked_id"].to_pylist() == ["r2", "r1", "r0"]
    assert risk.table["h"].to_pylist() == [1, 0, 1]


@pytest.fixture(scope="module")
def masking(people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.8), people, seed=5)


def ranked(near, far, sds, blocks):
    """All pairs of two lists of (values, statuses): differing statuses, then squared distances, as one number."""
    (x, sx), (y, sy) = near, far
    differing = (sx[:, None] != sy).sum(axis=2)
    both = (sx[:, None] == 0) & (sy == 0)
    squared = np.where(both, (np.nan_to_num(x)[:, None] - np.nan_to_num(y)) / sds, 0.0) ** 2
    whole = differing * 1e6 + squared.sum(axis=2)
    return np.where(blocks[0][:, None] == blocks[1], whole, np.inf)


def described(table):
    return table.values(AMOUNTS), np.column_stack([table.status(name) for name in AMOUNTS])


@pytest.mark.parametrize("blocks", [("REGION",), ()])
@pytest.mark.parametrize("direction", ["to_masked", "to_original"])
def test_h_and_ranks_are_those_of_brute_force(direction, blocks, masking):
    plan = mw.NearestRecord(fields=AMOUNTS, direction=direction, match_blocks=blocks)
    risk, guess, _, _ = attack_by(plan, masking)
    truth, released, order = masking.truth, masking.release.table, masking.order
    behind = truth.take(order)
    sds = np.nanstd(released.values(AMOUNTS), axis=0, ddof=1)
    region = [np.asarray(t.array("REGION")) if blocks else np.zeros(len(t)) for t in (truth, behind)]
    targets, at = (truth, region[0]) if direction == "to_masked" else (behind, region[1])
    among_true = ranked(described(targets), described(behind), sds, (at, region[1]))
    linked = described(behind) if direction == "to_masked" else described(truth)
    reach = ranked(described(targets), linked, sds, (np.zeros(len(at)), np.zeros(len(linked[0]))))
    rows = np.arange(len(guess))
    reach = reach[rows, guess.found] * (1 - 1e-12)
    np.testing.assert_array_equal(risk.table["h"], (among_true < reach[:, None]).sum(axis=1))
    assert len(np.unique(risk.h.values)) > 10
    scores = ranked(described(truth), described(released), sds, region)
    counterpart = np.argsort(order)
    if direction == "to_original":
        scores, counterpart = scores.T, order
    right = scores[rows, counterpart][:, None] * (1 - 1e-12)
    np.testing.assert_array_equal(risk.table["true_rank"], 1 + (scores < right).sum(axis=1))


def test_ranked_by_the_same_metric_true_records_are_whitened_too():
    """Kim's noise on nearly collinear columns: the noise is small across the line, so across it is far."""
    table = normals(300, seed=3, columns="AB", covariance=0.95)
    masking = mw.apply(mw.CorrelatedNoise(("A", "B"), sd_ratio=0.7), table, seed=1, exact=True)
    plan = mw.NearestRecord(distance="noise", ranked_by="same")
    risk, guess, _, _ = attack_by(plan, masking)
    covariance = masking.card.laws[0].noise.covariance
    x = table.values(("A", "B"))
    gap = x[:, None] - x
    squared = np.einsum("nmi,ij,nmj->nm", gap, np.linalg.inv(covariance), gap)
    linked = masking.order[guess.found]
    reach = squared[np.arange(len(x)), linked]
    np.testing.assert_array_equal(risk.h.values, (squared < reach[:, None] * (1 - 1e-9)).sum(axis=1))
    assert risk.h.ranked_by == "distance whitened by the noise on the card"
    other = mw.attack(mw.NearestRecord(distance="noise"), masking).h
    assert other.ranked_by == "Euclidean distance in sds of the release"
    assert (other.values != risk.h.values).any()
    np.testing.assert_array_equal(other.values == 0, risk.h.values == 0)


def test_outlyingness_is_the_distance_that_quantiles_go_by():
    table = normals(200, seed=8)
    masking = mw.apply(mw.IndependentNoise(tuple("ABCDE"), variance_ratio=0.1), table, seed=1)
    risk = mw.attack(mw.NearestRecord(), masking)
    np.testing.assert_allclose(risk.table["outlyingness"], Quantiles((0.5,)).measured(table), rtol=1e-12)


def test_deciles_are_of_outlyingness_the_outermost_first():
    table = normals(205, seed=9)
    masking = mw.apply(mw.IndependentNoise(tuple("ABCDE"), variance_ratio=0.3), table, seed=1)
    risk = mw.attack(mw.NearestRecord(), masking)
    order = np.argsort(-np.asarray(risk.table["outlyingness"]))
    h, correct, ranks = (np.asarray(risk.table[n])[order] for n in ("h", "expected_correct", "true_rank"))
    rows = risk.h.deciles.to_pylist()
    assert [row["decile"] for row in rows] == list(range(10, 0, -1))
    for row, tenth in zip(rows, np.array_split(np.arange(205), 10), strict=True):
        assert row["targets"] == len(tenth)
        assert row["at_zero"] == pytest.approx((h[tenth] == 0).mean())
        assert row["rate"] == pytest.approx(correct[tenth].mean())
        assert row["expected_h"] == pytest.approx(h[tenth].mean())
        assert row["median_true_rank"] in ranks[tenth]
    assert risk.h.outer_rate == pytest.approx(correct[:11].mean())
    shares = [row["targets"] * row["at_zero"] for row in rows]
    assert sum(shares) / 205 == pytest.approx(risk.h.at_zero)


def corners(order):
    """The 256 corners of a cube in 8 dimensions, equally far from its centre, some with noise that loses them."""
    values = np.array(list(itertools.product([-1.0, 1.0], repeat=8)))[order]
    described = (Column("ID", "text", ID), *(Column(n, "continuous", KEY) for n in "ABCDEFGH"))
    named = {n: values[:, j] for j, n in enumerate("ABCDEFGH")}
    return Table.from_frame(pa.table({"ID": [f"c{i:03}" for i in order], **named}), Schema(described))


def test_equally_outlying_targets_share_their_places_whatever_their_order():
    rows = []
    for order in (np.arange(256), np.random.default_rng(3).permutation(256)):
        masking = mw.apply(mw.IndependentNoise(tuple("ABCDEFGH"), variance=0.5), corners(order), seed=1)
        risk = mw.attack(mw.NearestRecord(), masking)
        assert 0.2 < risk.rate < 0.8
        assert risk.h.outer_rate == pytest.approx(risk.rate)
        rows.append(risk.h.deciles.to_pylist())
        for row in rows[-1]:
            assert row["rate"] == pytest.approx(risk.rate)
            assert row["at_zero"] == pytest.approx(risk.h.at_zero)
            assert row["expected_h"] == pytest.approx(risk.h.expected)
            assert row["median_true_rank"] == np.median(risk.h.ranks)
    for one, other in zip(*rows, strict=True):
        assert one == pytest.approx(other)


def test_ties_that_straddle_an_edge_count_in_part_on_either_side():
    """Places 0, then 1 to 3 shared by three, then 4; one without a place."""
    placed = Outermost.of(np.array([2.0, 5.0, 2.0 + 1e-12, np.nan, 1.0, 2.0]))
    assert len(placed) == 5
    np.testing.assert_allclose(placed.weights(0, 2), [1 / 3, 1, 1 / 3, 0, 0, 1 / 3])
    np.testing.assert_allclose(placed.weights(2, 5), [2 / 3, 0, 2 / 3, 0, 1, 2 / 3])
    assert len(Outermost.of(np.full(3, np.nan))) == 0


def test_targets_without_a_place_and_twins_are_told():
    """Of ten records two have nothing open, and are twins as well; so are two others."""
    true = [(float(i),) for i in (0, 0, 3, 5, 7, 9, 11, 13)] + [(None,), (None,)]
    risk = mw.attack(mw.NearestRecord(), by_hand(true, true, A={}))
    wrong = np.asarray(risk.table["h"]) == 0
    wrong &= ~np.asarray(risk.table["correct"])
    assert wrong.sum() == 2
    assert (risk.h.unplaced, risk.h.twins, risk.h.at_zero) == (2, 0.2, 1.0)
    assert "2 more targets have no place in these tenths" in repr(risk)
    assert "Pr(h=0) has 20.0% in it that are linked to another record just like them" in repr(risk)
    assert sum(row["targets"] for row in risk.h.deciles.to_pylist()) == 8
    plain = repr(mw.attack(mw.NearestRecord(), by_hand(LINE, MOVED, A={})))
    assert "no place" not in plain
    assert "just like" not in plain


def test_a_risk_shows_h_and_writes_figures_only(masking):
    risk = mw.attack(mw.NearestRecord(fields=AMOUNTS), masking)
    text = repr(risk)
    assert f"Pr(h=0) {risk.h.at_zero:.1%}, Pr(h<3) {risk.h.below(3):.1%}, E(h)" in text
    assert "h by Euclidean distance in sds of the release" in text
    assert len(text.splitlines()) <= 40
    for line in text.splitlines():
        assert "E(h)" not in line or "Pr(h=0)" in line
    written = risk.to_dict()["h"]
    assert written["at_zero"] == risk.h.at_zero
    assert len(written["cumulative"]) == 21
    assert written["deciles"][0]["decile"] == 10
    assert json.loads(json.dumps(written, allow_nan=False)) == written


def test_a_stranger_has_no_h():
    """The intruder's second record is nobody of the truth: whatever it is linked to, it has no h."""
    masking = by_hand(LINE, MOVED, A={})
    held = Table.from_frame(pa.table({"ID": ["t0", "x"], "A": [0.0, 2.0]}), masking.truth.schema)
    risk = mw.attack(mw.NearestRecord(), masking, targets=held)
    assert risk.table["h"].to_pylist() == [2, None]
    alone = mw.attack(mw.NearestRecord(), masking, targets=held.take(np.array([0])))
    assert alone.h.deciles.num_rows == 1


def test_the_interval_is_wilsons_and_only_of_samples(people, masking):
    whole = mw.attack(mw.NearestRecord(fields=AMOUNTS), masking)
    assert whole.interval is None
    assert "interval" not in whole.to_dict()
    risk = mw.attack(mw.NearestRecord(fields=AMOUNTS, targets=Sample(60)), masking)
    count = round(risk.expected_correct)
    assert count == pytest.approx(risk.expected_correct)
    wanted = binomtest(count, 60).proportion_ci(method="wilson")
    np.testing.assert_allclose(risk.interval, wanted, rtol=1e-6)
    assert risk.to_dict()["interval"] == list(risk.interval)
    assert "Wilson" in repr(risk)
    for size in (len(people), len(people) + 1):
        everybody = mw.NearestRecord(fields=AMOUNTS, targets=Sample(size))
        assert mw.attack(everybody, masking).interval is None


ORACLE = (53.5, 46.3, 42.8, 41.5, 41.2, 40.6, 42.4, 45.9, 53.7)


def test_table_1_of_the_paper():
    """Pr(h=0) at the deciles of the signed row sum; N = 1000, five variables, covariances 0.25, noise 0.1.

    The records within 1% of a decile stand for it, so that 20 of each file count.
    """
    replicates, near = 100, 10
    hits = np.zeros(9)
    for seed in range(replicates):
        table = normals(1000, seed)
        mask = mw.IndependentNoise(tuple("ABCDE"), variance=0.1)
        risk = mw.attack(mw.NearestRecord(), mw.apply(mask, table, seed=seed, exact=True))
        order = np.argsort(table.values(tuple("ABCDE")).sum(axis=1))
        for decile in range(1, 10):
            at = order[100 * decile - near : 100 * decile + near]
            hits[decile - 1] += (risk.h.values[at] == 0).mean()
    share, oracle = hits / replicates, np.array(ORACLE) / 100
    error = np.sqrt(oracle * (1 - oracle) / (2 * near * replicates))
    assert (np.abs(share - oracle) <= 3.5 * error).all()


def test_h_is_counted_up_to_a_number(people):
    """What lies below the number is the same; what does not is cut, and no mean is told."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.8), people, seed=5)
        plan = mw.NearestRecord(match_blocks=())
        whole, cut = (mw.attack(each, masking) for each in (plan, replace(plan, largest_h=4)))
    np.testing.assert_array_equal(cut.h.values, np.minimum(whole.h.values, 4))
    np.testing.assert_array_equal(cut.h.true_ranks, np.minimum(whole.h.true_ranks, 5))
    assert (cut.rate, cut.h.below(4), cut.h.at_zero) == (whole.rate, whole.h.below(4), whole.h.at_zero)
    assert whole.h.values.max() > 4
    assert np.isnan(cut.h.expected)
    assert np.isnan(cut.h.below(5))
    assert "E(h) not counted" in repr(cut)
    assert cut.to_dict()["h"]["expected"] is None


@pytest.mark.parametrize("most", [0, -1, 2.5, True, "3"])
def test_a_largest_h_is_a_whole_number(most):
    with pytest.raises(BadPlan, match="largest_h must be a whole number"):
        mw.NearestRecord(largest_h=most)
