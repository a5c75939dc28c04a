"""Directed swapping: who moves, how many, what is kept, and what is said."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell import datasets
from maskwell.attacks.attack_run import attack_by
from maskwell.errors import BadPlan, MaskwellWarning
from maskwell.keys import Key
from maskwell.masking.swap_record import exchange
from maskwell.notes import Note, has_code
from maskwell.protect.directed_swaps import fewest

swap = partial(mw.swap, exempt_values="the intruder holds these values; what he is after stays in the row")

TOLERANCES = [mw.MaxRate(0.15), mw.MaxRate(0.4), mw.Ratio(2.0), mw.tolerances.SwapShare(0.25)]


def rows(table, names, records=slice(None)) -> list[tuple]:
    """Return values and statuses of some columns, record by record."""
    cells = [[*table.array(name).to_pylist()] for name in names]
    statuses = [table.status(name).tolist() for name in names]
    return list(zip(*cells, *statuses, strict=True))[records]


@pytest.fixture(scope="module", params=TOLERANCES, ids=str)
def swapped(request, masking, linkage) -> mw.Masking:
    return swap(masking, linkage, request.param)


def test_the_tolerance_holds_after_the_swaps(swapped, linkage):
    swapping, risk = swapped.swapping, mw.attack(linkage, swapped)
    assert swapping.met
    assert swapping.swaps > 0
    assert risk.expected_correct == swapping.after.expected_correct < swapping.before.expected_correct
    assert (risk.correct, risk.claims) == (swapping.after.correct, swapping.after.claims)
    if not isinstance(swapping.tolerance, mw.tolerances.SwapShare):
        assert swapping.tolerance.met(risk.expected_correct, risk.expected_incorrect, risk.targets)


def test_one_swap_less_would_not_do(swapped, masking, linkage):
    swapping = swapped.swapping
    if isinstance(swapping.tolerance, mw.tolerances.SwapShare):
        assert swapping.swaps == int(np.ceil(0.25 * swapping.at_risk)) == swapping.needed
        return
    fewer = exchange(masking.masked, swapping.columns, swapping.pairs[:-1])
    risk = mw.attack(linkage, replace(masking, masked=fewer))
    assert not swapping.tolerance.met(risk.expected_correct, risk.expected_incorrect, risk.targets)
    tried = {one.swaps: one.met for one in swapping.trace}
    assert (tried[0], tried[swapping.swaps - 1], tried[swapping.swaps]) == (False, False, True)


def test_every_record_moves_at_most_once_and_within_its_block(swapped, masking):
    pairs = swapped.swapping.pairs
    assert len(np.unique(pairs)) == pairs.size
    for name in ("REGION", "SEX"):
        values = np.array(masking.truth.array(name).to_pylist())
        assert np.array_equal(values[pairs[:, 0]], values[pairs[:, 1]])


def test_no_partner_agrees_fully_with_the_record_it_replaces(swapped, masking, linkage):
    """By the intruder's own rule: none of the partners would be a re-identification of the record."""
    pairs = swapped.swapping.pairs
    _, guess, _, numbers = attack_by(linkage, masking)
    place = np.empty(len(masking.order), np.int64)
    place[masking.order] = np.arange(len(place))
    assert np.array_equal(numbers, np.arange(len(numbers)))
    patterns, comparable = guess.figures["patterns_of"](pairs[:, 0], place[pairs[:, 1]])
    assert comparable.all()
    assert np.all(patterns < 7)


def test_values_and_statuses_move_together(swapped, masking):
    columns, pairs = swapped.swapping.columns, swapped.swapping.pairs
    before, after = rows(masking.masked, columns), rows(swapped.masked, columns)
    for one, other in pairs:
        assert (after[one], after[other]) == (before[other], before[one])
    still = np.setdiff1d(np.arange(len(before)), pairs)
    assert [after[i] for i in still] == [before[i] for i in still]
    assert sorted(map(repr, after)) == sorted(map(repr, before))
    statuses = [masking.masked.status(name)[pairs] for name in columns]
    assert any(np.any(status[:, 0] != status[:, 1]) for status in statuses)
    others = [name for name in masking.masked.names if name not in columns]
    assert rows(swapped.masked, others) == rows(masking.masked, others)
    assert swapped.unswapped == masking.masked


def test_truth_and_links_stay_with_the_record(swapped, masking):
    assert swapped.truth is masking.truth
    links = dict(zip(*(swapped.links[name].to_pylist() for name in ("truth_id", "released_id")), strict=True))
    released = dict(
        zip(swapped.release.table.ids.to_pylist(), rows(swapped.release.table, ("SEX", "AGE")), strict=True)
    )
    inside = dict(zip(swapped.truth.ids.to_pylist(), rows(swapped.masked, ("SEX", "AGE")), strict=True))
    assert {truth: released[links[truth]] for truth in links} == inside


def test_means_and_covariances_among_swapped_columns_are_identities(swapped):
    table = swapped.swapping.covariances.to_pylist()
    inside = [row for row in table if row["both_swapped"]]
    sds = {row["column"]: np.sqrt(row["before"]) for row in inside if row["column"] == row["other"]}
    assert len(inside) == 6
    for row in inside:
        assert abs(row["after"] - row["before"]) <= 1e-12 * sds[row["column"]] * sds[row["other"]]
    changed = [row for row in table if not row["both_swapped"] and row["after"] != row["before"]]
    assert {row["other"] for row in changed} == {"WAGE", "OTHER", "TOTAL"}


def test_the_card_tells_the_share_the_columns_and_the_blocks(swapped):
    swapping, told = swapped.swapping, swapped.release.card.swapped
    assert told.columns == ("INCOME", "TAX", "AGE")
    assert told.blocks == ("REGION", "SEX")
    assert told.share == float(f"{2 * swapping.swaps / 240:.2g}")
    assert mw.NoiseCard.from_json(swapped.card.to_json()).swapped == told
    assert np.isfinite(swapped.card.logpdf(swapped.masked, swapped.truth)).all()


def test_what_was_done_is_said_without_values(swapped):
    swapping = swapped.swapping
    said = f"{swapping.records} records ({100 * swapping.share:.2g}%) exchanged within blocks of REGION, SEX"
    assert any(str(note).startswith(said) for note in swapped.notes)
    assert said in repr(swapping).replace("\n     ", "")
    assert len(repr(swapping).splitlines()) < 25
    figures = swapped.to_dict()["swapping"]
    assert figures["swaps"] == swapping.swaps
    assert "pairs" not in figures
    assert figures["after"]["rate"] == swapping.after.expected_correct / 240


def test_the_same_swaps_whatever_the_order_of_the_file(masked, masking, linkage):
    order = np.random.default_rng(3).permutation(240)
    one, other = (swap(each, linkage, mw.MaxRate(0.3)) for each in (masking, masked(order=order)))
    assert np.array_equal(one.swapping.pairs, order[other.swapping.pairs])
    assert one.release.table == other.release.table
    assert one.release.card == other.release.card
    assert one.swapping.domains.equals(other.swapping.domains)


def test_the_same_inputs_give_the_same_bytes(masking, linkage, tmp_path):
    for name in ("one", "two"):
        swap(masking, linkage, mw.Ratio(2.0)).release.write(tmp_path / name)
    files = [
        sorted(p for p in (tmp_path / name).iterdir() if p.name != "manifest.json") for name in ("one", "two")
    ]
    assert [p.read_bytes() for p in files[0]] == [p.read_bytes() for p in files[1]]


def test_a_swapped_masking_is_shuffled_anew(masking, linkage):
    swapped = swap(masking, linkage, mw.tolerances.SwapShare(0.1))
    assert not np.array_equal(swapped.order, masking.order)
    assert set(swapped.release.table.ids.to_pylist()).isdisjoint(masking.release.table.ids.to_pylist())


def test_no_swap_where_the_tolerance_holds(masking, linkage):
    same = swap(masking, linkage, mw.MaxRate(1.0))
    assert same.card.swapped is None
    assert same.release.table == masking.release.table
    assert same.notes == masking.notes
    assert (same.swapping.swaps, same.swapping.met, len(same.swapping.trace)) == (0, True, 1)
    assert "no record was exchanged" in repr(same.swapping)
    again = swap(same, linkage, mw.MaxRate(0.3))
    assert again.swapping.swaps > 0


def test_what_cannot_be_reached_is_done_as_far_as_possible_and_said(small):
    masking = small("aabbbc", [100.0, 200.0, 1.0, 2.0, 3.0, 50.0], [10.0, 20.0, 1.0, 2.0, 3.0, 5.0])
    said = "at most 0 of the targets linked correctly is not reached: after all 2 possible swaps 2.0 of 6 targets"
    with pytest.warns(MaskwellWarning, match=said):
        swapped = swap(masking, mw.Linkage(weights=mw.attacks.Fixed()), mw.MaxRate(0.0))
    swapping = swapped.swapping
    assert (swapping.met, swapping.swaps, swapping.trace[-1].swaps) == (False, 2, 2)
    assert len(swapping.stuck) == sum(swapping.reasons.values()) == 2
    assert "NOT MET" in repr(swapping)


def test_a_share_of_one_need_not_protect_everybody(small):
    """Three records whose links are all correct: two exchange, the third has nobody left."""
    masking = small("aaa", [100.0, 200.0, 300.0], [10.0, 20.0, 30.0])
    plan = mw.Linkage(weights=mw.attacks.Fixed())
    with pytest.warns(MaskwellWarning, match="1 record at risk has no partner"):
        swapped = swap(masking, plan, mw.tolerances.SwapShare(1.0))
    assert (swapped.swapping.at_risk, swapped.swapping.swaps, swapped.swapping.met) == (3, 1, False)
    assert swapped.swapping.after.expected_correct == 1
    assert has_code(swapped.notes, "masking.not_exchanged")


def test_mutual_seconds_do_not_swap_back(small):
    masking = small("aabb", [100.0, 200.0, 1.0, 2.0], [10.0, 20.0, 1.0, 2.0])
    swapped = swap(masking, mw.Linkage(weights=mw.attacks.Fixed()), mw.tolerances.SwapShare(1.0))
    assert (swapped.swapping.at_risk, swapped.swapping.swaps, swapped.swapping.met) == (4, 2, True)
    assert swapped.swapping.after.expected_correct == 0


def test_only_released_records_are_swapped(masked, linkage):
    masking = masked(
        mw.Chain([mw.CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.1), mw.Subsample(0.6)])
    )
    swapped = swap(masking, linkage, mw.MaxRate(0.1))
    swapping = swapped.swapping
    assert np.isin(swapping.pairs, masking.kept).all()
    assert swapping.released == len(masking.kept) < 240
    assert swapping.share == swapping.records / len(masking.kept)
    assert sum(
        row["records"]
        for row in swap(masking, linkage, mw.MaxRate(0.1), domains="EDU").swapping.domains.to_pylist()
        if row["column"] == "AGE"
    ) == len(masking.kept)


@pytest.mark.parametrize(
    "options",
    [
        {"direction": "to_original"},
        {"direction": "to_original", "claims": "all links"},
        {"claims": "all links"},
        {"assignment": "one-to-one"},
        {"weights": mw.attacks.EM()},
        {"match_blocks": ()},
    ],
    ids=str,
)
def test_every_way_of_linking_can_be_swapped_against(masking, linkage, options):
    plan = replace(linkage, **options)
    before = mw.attack(plan, masking)
    swapped = swap(masking, plan, mw.MaxRate(0.8 * before.rate))
    assert swapped.swapping.met
    assert mw.attack(plan, swapped).expected_correct == swapped.swapping.after.expected_correct
    assert swapped.card.swapped.blocks == (plan.match_blocks or ())


@pytest.mark.parametrize(
    "name", [name for name in ("NearestRecord", "BayesIntruder") if name in mw.attacks.ATTACKS]
)
def test_other_intruders_can_be_swapped_against(masking, name):
    plan = mw.attacks.ATTACKS[name](fields=("INCOME", "TAX", "AGE"), match_blocks=("REGION", "SEX"))
    swapped = swap(masking, plan, mw.MaxRate(0.7 * mw.attack(plan, masking).rate))
    assert swapped.swapping.met
    assert mw.attack(plan, swapped).expected_correct == swapped.swapping.after.expected_correct


def test_any_plan_that_ranks_partners_will_do(masking, closest):
    before = mw.attack(closest, masking).rate
    swapped = mw.swap(masking, closest, mw.tolerances.SwapShare(0.5))
    assert swapped.swapping.met
    assert swapped.swapping.his_record.rate < 0.6 * before
    assert swapped.swapping.his_values.rate == pytest.approx(before)
    assert swapped.swapping.fields == ("TAX",)
    assert swapped.swapping.columns == ("INCOME", "TAX", "AGE")
    assert swapped.swapping.widened == ("INCOME", "AGE")
    assert swapped.card.swapped.blocks == ()
    assert Note("masking.exchanged_beside", {"columns": ("INCOME", "AGE")}) in swapped.notes


def test_a_masking_made_elsewhere_needs_a_key(masking, linkage):
    there = mw.Masking.from_files(
        masking.truth, masking.release.table, masking.links, card=masking.release.card
    )
    with pytest.raises(BadPlan, match=r"give key=Key\.from_os\(\)"):
        swap(there, linkage, mw.MaxRate(0.15))
    swapped = swap(there, linkage, mw.MaxRate(0.15), key=Key.from_os())
    assert swapped.swapping.met
    assert mw.attack(linkage, swapped).expected_correct == swapped.swapping.after.expected_correct
    assert swapped.release.table.ids.equals(there.release.table.ids)
    assert swapped.release.card.swapped == swapped.card.swapped
    assert swapped.links.equals(there.links)
    place = np.argsort(there.order)
    columns, pairs = swapped.swapping.columns, swapped.swapping.pairs
    assert rows(swapped.release.table, columns) != rows(there.release.table, columns)
    assert exchange(swapped.release.table, columns, place[pairs]) == there.release.table


def test_a_masking_read_back_can_be_swapped(masking, linkage, tmp_path):
    masking.write(release=tmp_path / "release", private=tmp_path / "private")
    back = mw.Masking.read(release=tmp_path / "release", private=tmp_path / "private")
    one, other = (swap(each, linkage, mw.MaxRate(0.2)) for each in (masking, back))
    assert np.array_equal(one.swapping.pairs, other.swapping.pairs)
    assert one.release.table == other.release.table


@pytest.mark.parametrize(
    ("work", "said"),
    [
        (lambda m, a: swap(m.release, a, mw.MaxRate(0.1)), "swap needs a Masking, not a Release"),
        (lambda m, a: swap(m, a, 0.15), "a float is no tolerance"),
        (lambda m, a: swap(m, "Linkage", mw.MaxRate(0.1)), "a str is no attack"),
        (lambda m, a: swap(m, a, mw.MaxRate(0.1), key=Key.from_seed(1)), "leave key out"),
        (lambda m, a: swap(swap(m, a, mw.MaxRate(0.3)), a, mw.MaxRate(0.1)), "exchanged already"),
        (lambda m, a: swap(m, a, mw.MaxRate(0.1), domains=("REGIN",)), "did you mean 'REGION'"),
        (lambda m, a: swap(m, a, mw.MaxRate(0.1), domains=("AGE",)), "'AGE' is swapped"),
        (
            lambda m, a: mw.apply(m.mask, m.truth, earlier=swap(m, a, mw.MaxRate(0.3))),
            "were swapped between",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(masking, linkage, work, said):
    with pytest.raises(BadPlan) as refusal:
        work(masking, linkage)
    assert said in str(refusal.value)


# --- the search


@pytest.mark.parametrize("most", [1, 2, 7, 100])
@pytest.mark.parametrize("hint", [0, 1, 3, 50, 1000])
def test_the_fewest_swaps_are_found_from_any_hint(most, hint):
    class Trial:
        def __init__(self, swaps: int, limit: int) -> None:
            self.swaps, self.met = swaps, swaps >= limit

    for limit in {1, 2, most // 2 + 1, most}:
        tried, left = list[int](), list[int]()
        found = fewest(
            lambda k, limit=limit, tried=tried: tried.append(k) or Trial(k, limit), most, hint, left.append
        )
        assert (found.swaps, found.met) == (min(limit, most), limit <= most)
        assert len(set(tried)) == len(tried)
        assert all(1 <= k <= most for k in tried)
        assert all(len(tried) - made <= said for made, said in enumerate(left))
    assert fewest(lambda k: Trial(k, most + 1), most, hint).swaps == most


# --- Moore's file


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
def test_the_survey_is_brought_to_fifteen_percent():
    survey = datasets.housing()
    keys = survey.schema.with_role("key")
    plan = mw.Linkage(largest_target_block=7, match_blocks=("BEDROOMS", "BATHS", "YR_BLT"))
    masking = mw.apply(mw.CorrelatedNoise(keys, sd_ratio=0.0709), survey, seed=1)
    swapped = swap(masking, plan, mw.MaxRate(0.15))
    swapping = swapped.swapping
    assert swapping.met
    assert swapping.after.rate <= 0.15
    assert (swapping.swaps > 0) == (swapping.before.rate > 0.15)
    assert mw.attack(plan, swapped).rate == swapping.after.rate
    assert swapping.swaps <= swapping.at_risk
    assert len(swapping.trace) <= 12
    assert set(swapping.domains["domain"].to_pylist()) == {"REGION"}
    inside = swapping.covariances.filter(swapping.covariances["both_swapped"])
    assert inside["before"].equals(inside["after"])
    assert isinstance(inside, pa.Table)


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
def test_a_sample_of_targets_is_not_swapped_against():
    masking = mw.apply(
        mw.IndependentNoise(("INCOME",), variance_ratio=0.1), mw.datasets.housing(1000), seed=1
    )
    with pytest.raises(BadPlan, match="protects these alone"):
        swap(masking, mw.NearestRecord(targets=mw.attacks.Sample(100)), mw.MaxRate(0.1))
