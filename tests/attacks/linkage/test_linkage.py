"""Winkler's intruder: plans, classes, targets, weights, and what he says of bad input."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks import supervised_weights
from maskwell.attacks.linkage.em import EM, Fixed, pattern_bits
from maskwell.errors import BadInput, BadPlan
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEYS = ("A", "B", "C")
SCHEMA = Schema(
    (
        Column("ID", "text", frozenset({"id"})),
        Column("TOWN", "category", frozenset({"block"}), categories=("x", "y", "z", "solo")),
        Column("ROOMS", "integer", frozenset({"block"})),
        *(Column(name, "continuous", frozenset({"key"}), top=1e6, missing=(-9,)) for name in KEYS),
        Column("KIND", "category", categories=("p", "q")),
    )
)


def make(records=300, seed=0, **changed):
    rng = np.random.default_rng(seed)
    columns = {
        "ID": [f"id{i:05d}" for i in range(records)],
        "TOWN": rng.choice(["x", "y", "z"], records).astype(object),
        "ROOMS": rng.integers(1, 4, records),
        **{name: np.exp(rng.normal(5, 1, records)) for name in KEYS},
        "KIND": rng.choice(["p", "q"], records),
    }
    columns["A"][rng.random(records) < 0.1] = -9
    columns["B"][rng.random(records) < 0.1] = 1e6
    columns |= changed
    return Table.from_frame(pa.table({name: pa.array(values) for name, values in columns.items()}), SCHEMA)


def masked(table, ratio=0.1, seed=1, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mw.CorrelatedNoise(KEYS, sd_ratio=ratio), table, seed=seed, **options)


@pytest.fixture(scope="module")
def masking():
    return masked(make())


def test_the_targets_are_the_records_of_small_blocks():
    table = make()
    sizes: dict[tuple[str, int], int] = {}
    cells = list(zip(table.array("TOWN").to_pylist(), table.array("ROOMS").to_pylist(), strict=True))
    for cell in cells:
        sizes[cell] = sizes.get(cell, 0) + 1
    most = sorted(sizes.values())[2]
    risk = mw.attack(mw.Linkage(largest_target_block=most), masked(table))
    small = {i for i, cell in zip(table.ids.to_pylist(), cells, strict=True) if sizes[cell] <= most}
    assert set(risk.table["target_id"].to_pylist()) == small
    assert risk.targets == len(small)


def test_matching_blocks_may_drop_columns_that_define_the_targets(masking):
    narrow = mw.attack(mw.Linkage(largest_target_block=40), masking)
    wide = mw.attack(mw.Linkage(largest_target_block=40, match_blocks=("ROOMS",)), masking)
    assert narrow.table["target_id"].to_pylist() == wide.table["target_id"].to_pylist()
    assert np.all(np.asarray(wide.table["candidates"]) > np.asarray(narrow.table["candidates"]))


def test_without_noise_everybody_is_found_by_a_strict_rule():
    masking = masked(make(), ratio=1e-9)
    risk = mw.attack(mw.Linkage(rule=mw.attacks.Relative(0.001)), masking)
    assert risk.correct == risk.targets == 300
    assert risk.class_of("re-identification").correct == 300


def test_classes_go_by_the_number_of_agreeing_fields(masking):
    risk = mw.attack(mw.Linkage(match_blocks=("TOWN",)), masking)
    kinds, agreeing = risk.table["class"].to_pylist(), risk.table["agreeing"].to_pylist()
    named = {3: "re-identification", 2: "questionable", 1: "false", 0: "false"}
    assert kinds == [named[count] for count in agreeing]


def test_cut_offs_make_the_classes_by_score(masking):
    plain = mw.attack(mw.Linkage(match_blocks=("TOWN",)), masking)
    scores = np.asarray(plain.table["score"])
    high, low = np.quantile(scores, [0.7, 0.2])
    risk = mw.attack(mw.Linkage(match_blocks=("TOWN",), cut_offs=(high, low)), masking)
    assert risk.class_of("re-identification").links == np.sum(scores >= high)
    assert risk.class_of("questionable").links == np.sum((scores >= low) & (scores < high))
    assert risk.class_of("false").links == np.sum(scores < low)


def test_clear_links_are_those_without_ties(masking):
    every = mw.attack(mw.Linkage(match_blocks=("TOWN",), claims="all links"), masking)
    clear = mw.attack(mw.Linkage(match_blocks=("TOWN",), claims="clear links"), masking)
    alone = np.asarray(every.table["ties"]) == 1
    assert clear.claims == alone.sum() < every.claims
    assert clear.expected_correct == clear.correct == np.asarray(every.table["correct"])[alone].sum()


def test_looking_up_re_identifications_alone_gives_the_same_classes_and_rate(masking):
    plan = mw.Linkage(match_blocks=("TOWN",))
    whole, thrifty = (mw.attack(p, masking) for p in (plan, replace(plan, links="re-identified")))
    assert thrifty.expected_correct == whole.expected_correct
    assert thrifty.correct == whole.correct
    assert [one.links for one in thrifty.classes] == [one.links for one in whole.classes]
    assert [one.correct for one in thrifty.classes[1:]] == [None] * 3
    assert np.isnan(thrifty.best_correct)
    assert thrifty.to_dict()["best_correct"] is None
    assert "questionable" in repr(thrifty)
    named = [i is not None for i in thrifty.table["linked_id"].to_pylist()]
    assert named == [kind == "re-identification" for kind in whole.table["class"].to_pylist()]


def test_more_fields_than_a_mask_of_patterns_holds_are_counted_alike():
    rng = np.random.default_rng(4)
    names = [f"F{i}" for i in range(12)]
    schema = Schema(
        (
            Column("ID", "text", frozenset({"id"})),
            *(Column(n, "continuous", frozenset({"key"})) for n in names),
        )
    )
    frame = pa.table({"ID": [f"i{i}" for i in range(60)], **{n: rng.normal(size=60) for n in names}})
    masking = mw.apply(
        mw.IndependentNoise(tuple(names), variance_ratio=0.3), Table.from_frame(frame, schema), seed=1
    )
    plan = mw.Linkage(rule=mw.attacks.Absolute(0.5), links="re-identified")
    risk = mw.attack(plan, masking)
    assert sum(risk.patterns["pairs"].to_pylist()) == 60 * 60
    assert risk.to_dict()["classes"] == mw.attack(replace(plan, links="all"), masking).to_dict()["classes"]


def test_one_to_one_uses_each_released_record_once(masking):
    risk = mw.attack(mw.Linkage(match_blocks=("TOWN",), assignment="one-to-one"), masking)
    linked = [i for i in risk.table["linked_id"].to_pylist() if i is not None]
    assert len(linked) == len(set(linked)) == 300


def test_records_that_cannot_be_told_apart_share_what_is_correct():
    alike = {name: np.full(30, 100.0) for name in KEYS}
    alike["A"][0] = 5.0
    table = make(30, TOWN=np.array(["x"] * 30, object), ROOMS=np.ones(30, int), **alike)
    masking = mw.apply(mw.IndependentNoise(KEYS, variance=1e-6), table, seed=1)
    for assignment in ("best", "one-to-one"):
        risk = mw.attack(mw.Linkage(assignment=assignment), masking)
        assert risk.expected_correct == pytest.approx(1 + 29 * (1 / 29))
        assert risk.table["ties"].to_pylist() == [1] + [29] * 29


def test_ties_are_not_broken_by_the_order_of_the_file():
    """Two files in the same order, all records alike: who breaks ties by order finds everybody."""
    alike = {name: np.full(200, 100.0) for name in KEYS}
    table = make(200, TOWN=np.array(["x"] * 200, object), ROOMS=np.ones(200, int), **alike)
    links = pa.table({"truth_id": table.ids, "released_id": table.ids})
    masking = mw.Masking.from_files(table, table, links)
    for plan in (mw.Linkage(), mw.Linkage(assignment="one-to-one"), mw.Linkage(direction="to_original")):
        risk = mw.attack(plan, masking)
        assert risk.expected_correct == pytest.approx(1)
        assert risk.correct <= 7  # Poisson with mean 1: more has probability 1e-6


def test_a_target_file_may_hold_people_who_are_not_in_the_truth(masking):
    held = masking.truth.take(np.arange(50))
    strangers = make(20, seed=9, ID=[f"stranger{i}" for i in range(20)])
    both = Table.from_frame(pa.concat_tables([held.to_arrow(), strangers.to_arrow()]), SCHEMA)
    risk = mw.attack(mw.Linkage(claims="all links"), masking, targets=both)
    assert risk.targets == 70
    assert not any(risk.table["correct"].to_pylist()[50:])


def test_the_intruder_codes_his_values_as_the_release_does():
    table = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.Coding("C", top=200.0), table, seed=2)
    risk = mw.attack(mw.Linkage(fields=("C",), rule=mw.attacks.Exact()), masking)
    assert risk.true_m[0] == 1.0


def test_supervised_weights_are_the_true_shares(masking):
    plan = mw.Linkage(match_blocks=("TOWN",))
    weights = supervised_weights(plan, masking)
    risk = mw.attack(replace(plan, weights=weights), masking)
    assert np.asarray(weights.m) == pytest.approx(risk.true_m, abs=0.01)
    pairs = risk.patterns.to_pylist()
    agree = np.array([sum(row["pairs"] * (row["pattern"][f] == "1") for row in pairs) for f in range(3)])
    total = sum(row["pairs"] for row in pairs)
    assert np.asarray(weights.u) == pytest.approx((agree - 300 * risk.true_m) / (total - 300), abs=0.001)


def test_who_cannot_work_does_not_sink_the_table(make_people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.RankSwap(("INCOME", "TAX"), 0.1), make_people(), seed=1)
    risks = mw.attack([mw.Linkage(), mw.NearestRecord(), mw.BayesIntruder()], masking)
    assert list(risks) == ["Linkage", "NearestRecord"]
    assert list(risks.refused) == ["BayesIntruder"]
    assert "BayesIntruder: " in repr(risks)
    with pytest.raises(mw.errors.NoLaw):
        mw.attack([mw.BayesIntruder()], masking)


# EM.


def test_em_recovers_the_classes_that_made_the_counts():
    m, u, p = np.array([0.9, 0.8, 0.85, 0.7]), np.array([0.1, 0.05, 0.2, 0.15]), 0.02
    bits = pattern_bits(4)
    chance = [np.prod(np.where(bits, x, 1 - x), axis=1) for x in (m, u)]
    counts = np.rint(1e9 * (p * chance[0] + (1 - p) * chance[1])).astype(np.int64)
    fit = EM().fit(counts, int(p * 1e9))
    assert fit.converged
    assert (fit.m, fit.u, fit.p) == (
        pytest.approx(m, abs=1e-4),
        pytest.approx(u, abs=1e-4),
        pytest.approx(p, abs=1e-4),
    )
    assert fit.expected(int(counts.sum())) == pytest.approx(counts, rel=1e-4)


def test_em_that_stops_at_the_limit_does_not_say_it_converged(masking):
    with pytest.warns(mw.MaskwellWarning, match="not converged"):
        risk = mw.attack(mw.Linkage(weights=EM(iterations=2)), masking)
    assert not risk.fit.converged
    assert "NOT CONVERGED" in repr(risk)
    assert risk.to_dict()["converged"] is False


@pytest.mark.parametrize("fields", [("A",), ("A", "B"), ("A", "B", "CONSTANT")])
def test_two_fields_identify_no_class_and_it_is_said(masking, fields):
    if "CONSTANT" in fields:
        masking = masked(make(KIND=np.array(["p"] * 300, object)))
        fields = ("A", "B", "KIND")
    risk = mw.attack(mw.Linkage(fields=fields), masking)
    assert not risk.fit.identified
    assert any("not identified" in note for note in risk.notes)
    assert not any("look" in note for note in risk.notes)


def test_every_step_of_em_raises_the_likelihood(masking):
    counts = np.zeros(8, np.int64)
    for row in mw.attack(mw.Linkage(), masking).patterns.to_pylist():
        counts[int(row["pattern"][::-1], 2)] = row["pairs"]
    fits = [EM(starts=1, iterations=steps).fit(counts, 300) for steps in (1, 2, 5, 20, 100, 1000)]
    climbs = [fit.log_likelihood for fit in fits]
    assert climbs == sorted(climbs)


def test_a_class_that_is_not_matches_is_said_to_be_none():
    """A status shared by many dominates: EM finds 'both missing', not matches."""
    rng = np.random.default_rng(1)
    gone = rng.random(300) < 0.3
    changed = {name: np.where(gone, -9, np.exp(rng.normal(5, 2, 300))) for name in KEYS}
    risk = mw.attack(mw.Linkage(match_blocks=("TOWN",)), masked(make(**changed), ratio=0.5))
    assert any("does not look like matches" in note for note in risk.notes)


def test_a_class_of_matches_is_said_to_look_like_them(masking):
    risk = mw.attack(
        mw.Linkage(match_blocks=("TOWN",), rule=mw.attacks.Relative(0.3)), masked(make(), ratio=0.02)
    )
    assert any("looks like matches" in note for note in risk.notes)


# Bad input.


def test_no_block_columns_means_all_pairs_and_it_is_said():
    schema = replace(SCHEMA, columns=tuple(replace(c, roles=c.roles - {"block"}) for c in SCHEMA.columns))
    table = replace(make(), schema=schema)
    risk = mw.attack(mw.Linkage(), masked(table))
    assert any("90,000 pairs" in note for note in risk.notes)
    with pytest.raises(BadPlan, match="no column has the role block"):
        mw.attack(mw.Linkage(largest_target_block=5), masked(table))


def test_blocks_of_one_are_counted():
    towns = np.array(["x"] * 299 + ["solo"], object)
    risk = mw.attack(mw.Linkage(match_blocks=("TOWN",)), masked(make(TOWN=towns)))
    assert any("1 searching records have a single candidate" in note for note in risk.notes)


def test_no_common_block_is_an_error(masking):
    other = make(50, TOWN=np.array(["solo"] * 50, object))
    with pytest.raises(BadInput, match="no target shares a block"):
        mw.attack(mw.Linkage(), masking, targets=other)


def test_targets_without_candidates_have_their_class(masking):
    towns = np.array(["solo"] * 10 + ["x"] * 40, object)
    risk = mw.attack(mw.Linkage(match_blocks=("TOWN",)), masking, targets=make(50, TOWN=towns))
    assert risk.class_of("no candidate").links == 10
    assert risk.table["linked_id"].to_pylist()[:10] == [None] * 10


def test_a_constant_field_tells_nobody_apart():
    table = make(KIND=np.array(["p"] * 300, object))
    risk = mw.attack(mw.Linkage(fields=("A", "B", "KIND")), masked(table))
    assert any("KIND agrees in every pair" in note for note in risk.notes)
    assert np.isfinite(np.asarray(risk.table["score"])).all()


def test_a_field_without_open_values_is_named(masking):
    held = make(300, A=np.full(300, -9.0))
    risk = mw.attack(mw.Linkage(), masking, targets=held)
    assert any("A has no open value in the intruder's records" in note for note in risk.notes)


def test_a_target_file_with_columns_missing_lists_them_all(masking):
    held = make(50).select(["ID", "TOWN", "ROOMS", "B"])
    with pytest.raises(BadInput) as refused:
        mw.attack(mw.Linkage(), masking, targets=held)
    assert [problem for problem in refused.value.problems if "'A'" in problem or "'C'" in problem]
    assert len(refused.value.problems) == 2
    with pytest.raises(BadInput, match="TOWN"):
        mw.attack(mw.Linkage(), masking, targets=make(50).select(["ID", "ROOMS", *KEYS]))


def test_a_target_file_in_other_units_is_asked_about(masking):
    held = make(300)
    thousands = make(300, C=held.floats("C") / 1000)
    with pytest.warns(mw.MaskwellWarning, match="other units"):
        risk = mw.attack(mw.Linkage(), masking, targets=thousands)
    assert any("C of the target file is 1/" in note for note in risk.notes)


def test_a_target_file_of_strangers_is_refused(masking):
    with pytest.raises(BadInput, match="no id of the target file is in the truth"):
        mw.attack(mw.Linkage(), masking, targets=make(20, ID=[f"stranger{i}" for i in range(20)]))


def test_who_is_not_in_the_release_is_counted_and_cannot_be_guessed():
    table = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(
            mw.Chain((mw.CorrelatedNoise(KEYS, sd_ratio=0.1), mw.Subsample(0.3))), table, seed=1
        )
    plan = mw.Linkage(match_blocks=("TOWN",), response_knowledge=False)
    risk = mw.attack(plan, masking)
    released = len(masking.order)
    assert any(f"{released} of 300 targets are in the release (300 in the truth)" in n for n in risk.notes)
    towns = np.asarray(table.array("TOWN"))
    held = [np.sum(towns[masking.order] == town) for town in towns[masking.order]]
    assert risk.baseline == pytest.approx(np.sum(1 / np.array(held)) / 300)
    assert risk.rate == risk.rate_of_all == pytest.approx(risk.rate_of_released * released / 300)
    aware = mw.attack(mw.Linkage(match_blocks=("TOWN",)), masking)
    assert (aware.targets, aware.baseline) == (released, pytest.approx(np.mean(1 / np.array(held))))
    assert aware.rate == aware.rate_of_released
    assert aware.rate_of_all == pytest.approx(aware.rate * released / 300)


def test_a_target_file_without_ids_or_records_is_refused(masking):
    with pytest.raises(BadInput, match="id column"):
        mw.attack(mw.Linkage(), masking, targets=make(20).select(["TOWN", "ROOMS", *KEYS]))
    with pytest.raises(BadInput, match="no records"):
        mw.attack(mw.Linkage(), masking, targets=make(20).take(np.arange(0)))
    with pytest.raises(BadPlan, match="not both"):
        mw.attack(mw.Linkage(largest_target_block=3), masking, targets=make(20))


def test_of_more_than_twenty_fields_twenty_are_compared():
    names = [f"F{i}" for i in range(21)]
    schema = Schema(
        (
            Column("ID", "text", frozenset({"id"})),
            *(Column(n, "continuous", frozenset({"key"})) for n in names),
        )
    )
    rng = np.random.default_rng(0)
    frame = pa.table({"ID": [f"i{i}" for i in range(30)], **{n: rng.normal(size=30) for n in names}})
    masking = mw.apply(
        mw.IndependentNoise(tuple(names), variance_ratio=0.1), Table.from_frame(frame, schema), seed=1
    )
    quick = EM(iterations=20, starts=1)
    risk = mw.attack(mw.Linkage(weights=quick), masking)
    assert len(risk.fields) == 20
    assert risk.targets == 30
    with pytest.warns(
        mw.MaskwellWarning, match="EM has not converged in 20 steps"
    ):  # 30 records for 40 parameters
        assert mw.attack(mw.Linkage(fields=tuple(names[:20]), weights=quick), masking).targets == 30


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"direction": "sideways"}, "direction must be"),
        ({"assignment": "greedy"}, "assignment must be"),
        ({"claims": "some"}, "claims must be"),
        ({"links": "none"}, "links must be"),
        ({"largest_target_block": 0}, "at least 1"),
        ({"largest_target_block": "7"}, "whole number"),
        ({"largest_target_block": True}, "whole number"),
        ({"match_blocks": 5}, "names of columns"),
        ({"fields": [3]}, "names of columns"),
        ({"rule": 0.1}, "a rule is Relative"),
        ({"rules": {"A": 0.1}}, "a rule is Relative"),
        ({"weights": "em"}, "weights must be"),
        ({"cut_offs": 3.0}, "two scores"),
        ({"claims": "all links", "links": "re-identified"}, "needs every link"),
        ({"target_blocks": ("TOWN",)}, "how small is small"),
        ({"fields": ()}, "at least one field"),
        ({"fields": ("A", "A")}, "named twice"),
        ({"cut_offs": (1.0, 2.0)}, "the larger first"),
    ],
)
def test_plans_that_contradict_themselves_are_refused(options, said):
    with pytest.raises(BadPlan, match=said):
        mw.Linkage(**options)


def test_fields_that_do_not_fit_are_refused(masking):
    with pytest.raises(BadInput, match="did you mean"):
        mw.attack(mw.Linkage(fields=("A", "KINDS")), masking)
    with pytest.raises(BadPlan, match="both a field and a matching block"):
        mw.attack(mw.Linkage(fields=("A", "TOWN")), masking)
    with pytest.raises(BadPlan, match="names, not numbers"):
        mw.attack(mw.Linkage(fields=("A", "KIND"), rules={"KIND": mw.attacks.Absolute(1)}), masking)
    with pytest.raises(BadPlan, match="which is no field"):
        mw.attack(mw.Linkage(fields=("A",), rules={"B": mw.attacks.Absolute(1)}), masking)
    with pytest.raises(BadPlan, match="figures of m for 3 fields"):
        mw.attack(mw.Linkage(weights=Fixed((0.9, 0.8), 0.1)), masking)


def test_what_is_not_an_attack_or_a_masking_is_refused(masking):
    with pytest.raises(BadPlan, match="only the steward"):
        mw.attack(mw.Linkage(), masking.release)
    with pytest.raises(BadPlan, match="is no attack"):
        mw.attack(mw.MaxRate(0.1), masking)
    with pytest.raises(BadPlan, match="no plan in the list"):
        mw.attack([], masking)


def test_grouped_columns_are_left_out_by_default_and_refused_by_name(make_people):
    people = make_people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.Grouping("AGE", breaks=(30, 60)), people, seed=1)
    risk = mw.attack(mw.Linkage(), masking)
    assert "AGE" not in risk.fields
    assert any("AGE was released as groups" in note for note in risk.notes)
    with pytest.raises(BadPlan, match="groups of its values"):
        mw.attack(mw.Linkage(fields=("AGE", "TAX")), masking)


def test_noised_category_codes_are_compared_as_codes(make_people):
    people = make_people()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        masking = mw.apply(mw.CodeNoise("EDU", variance=1e-6), people, seed=1)
    risk = mw.attack(mw.Linkage(fields=("EDU", "TAX")), masking)
    assert risk.true_m[0] == 1.0
