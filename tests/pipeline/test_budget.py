"""How much is computed follows from counts: samples, draws, and who is not tried."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks import BayesIntruder, Fingerprint, Linkage, NearestRecord, Prior, Sample
from maskwell.attacks.linkage.em import EM
from maskwell.errors import BadPlan
from maskwell.notes import has_code
from maskwell.pipeline import release
from maskwell.pipeline.attack_counts import _chance_at_ends, at_several_limits, costs_alike, counts_of
from maskwell.pipeline.budget import (
    LEAST_SAMPLE,
    _knows_as_much,
    allot_budget,
    sample_within,
)
from maskwell.pipeline.coded_columns import CodedTable
from maskwell.pipeline.costs import BOUNDED, RECTANGLE, AttackCounts, attack_seconds
from maskwell.pipeline.intruders import default_intruders, intruders_of
from maskwell.pipeline.search_part import search_part
from maskwell.plan import ReleasePlan

from .homes import INTRUDERS, KEY, NOISE, folder, homes, plan_in, short_audit

__all__ = ["folder", "short_audit"]

pytestmark = pytest.mark.usefixtures("short_audit")

ALL = (
    Linkage(),
    NearestRecord(),
    BayesIntruder(prior=Prior(), kernel="forward"),
    BayesIntruder(),
    BayesIntruder(assignment="one-to-one"),
    BayesIntruder(helpers="all"),
    Fingerprint(),
)


def blocks(*sizes: int, fields: int = 5) -> AttackCounts:
    return AttackCounts(np.array(sizes), np.array(sizes), fields)


def table_of(plan: ReleasePlan) -> mw.Table:
    return mw.read(plan.input.file, plan.input.schema)


@pytest.mark.parametrize("plan", ALL, ids=lambda plan: str(plan)[:60])
def test_costs_grow_with_targets_records_and_fields(plan: object) -> None:
    some, whole = (attack_seconds(plan, blocks(1_000, 1_000), sample) for sample in (300, None))
    assert 0 < some <= whole
    assert whole <= attack_seconds(plan, blocks(2_000), None)
    assert attack_seconds(plan, blocks(1_000, fields=3), None) <= attack_seconds(
        plan, blocks(1_000, fields=9), None
    )


def test_where_records_compete_a_sample_is_dear_by_the_blocks_it_meets() -> None:
    together, apart = blocks(5_000), blocks(*[50] * 1_000)
    plan = BayesIntruder(assignment="one-to-one")
    assert attack_seconds(plan, together, 100) > 0.9 * attack_seconds(plan, together, None)
    assert attack_seconds(plan, apart, 10) < 0.3 * attack_seconds(plan, apart, None)


def test_the_ceiling_of_a_block_too_large_to_be_matched_costs_what_its_bound_does() -> None:
    plan = BayesIntruder(helpers="all")
    few, many = (attack_seconds(plan, blocks(*sizes), None) for sizes in ((1_400, 1_400), (20_000, 20_000)))
    assert few > BOUNDED  # chains of matchings, before there are too many pairs for them
    assert many - 2 * (attack_seconds(plan, blocks(20_000), None) - BOUNDED) == pytest.approx(
        BOUNDED, abs=0.1
    )


def test_the_largest_sample_that_costs_no_more_is_taken() -> None:
    plan, counts = NearestRecord(), blocks(50_000)
    taken = sample_within(plan, counts, 5.0, 50_000)
    assert LEAST_SAMPLE < taken < 50_000
    assert attack_seconds(plan, counts, taken) <= 5.0 < attack_seconds(plan, counts, int(1.3 * taken))
    assert sample_within(plan, counts, 1e9, 50_000) == 50_000
    assert sample_within(plan, counts, 0.0, 50_000) < 1.1 * LEAST_SAMPLE


def test_where_a_sample_costs_as_much_as_all_are_looked_for() -> None:
    """All records of one block compete: to look for 200 of them takes the whole block anyway."""
    assert sample_within(BayesIntruder(helpers="all"), blocks(1_000), 0.0, 1_000) == 1_000
    assert sample_within(BayesIntruder(helpers="all"), blocks(*[50] * 200), 0.0, 10_000) < 250


def test_of_very_many_targets_a_sample_is_looked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwell.pipeline.budget.MOST_TARGETS", 300)
    outcome = release(plan_in(folder), key=KEY)
    assert outcome.after["nearest"].targets == 300
    assert outcome.after["nearest"].interval is not None
    assert any("looks for 300 of 400 targets, drawn by the key" in str(note) for note in outcome.notes)


def test_the_blocks_and_fields_of_an_intruder_are_counted(folder: Path) -> None:
    table = homes()
    card = mw.CorrelatedNoise(("X", "Y"), r0=0.5).card(table)
    counts = counts_of(NearestRecord(), table, card)
    assert counts.fields == 2
    assert len(counts.records) == 8
    assert counts.total == counts.records.sum() == 400
    assert counts_of(NearestRecord(match_blocks=()), table, card).records.tolist() == [400]


def test_a_small_budget_samples_targets_and_a_large_one_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maskwell.pipeline.costs.START", 0.0)

    def parts(minutes: float) -> dict[str, tuple[int, int]]:
        plan = plan_in(folder, intruders=[], budget={"minutes": minutes}, calibrate={})
        table = table_of(plan)
        mask = plan.mask(table.schema)
        own = intruders_of(plan, table, mask.card(table))
        run, budget = allot_budget(plan, own, CodedTable.of(table, mask), mask.card(table), plan.held(own))
        for part in budget.parts:
            chosen = run[part.name].targets
            assert (chosen is None) == (part.sample == part.targets)
            assert chosen is None or chosen == Sample(part.sample)
        return {part.name: (part.sample, part.targets) for part in budget.parts}

    assert all(sample == targets == 400 for sample, targets in parts(5.0).values())
    small = parts(1e-5)
    assert 200 <= small["nearest record"][0] < 220
    assert small["the ceiling"] == (400, 400)  # he needs the whole blocks anyway, and is not tried at all
    assert small["fingerprint alone"] == (400, 400)


def test_sizes_follow_from_counts_and_stand_in_the_outcome(folder: Path) -> None:
    plan = plan_in(folder, budget={"minutes": 3.0})
    first = release(plan, key=KEY)
    told = first.to_dict()["budget"]
    assert told["minutes"] == 3.0
    assert told["intruders"]["nearest"]["sample"] == told["intruders"]["nearest"]["targets"] == 400
    again = release(plan, key=KEY)
    assert again.to_dict()["budget"] == told


def test_steps_of_em_are_bounded_by_counts() -> None:
    """Twelve noisy fields had EM run for 38 seconds of a search that asks for hundreds of attacks."""
    from maskwell.pipeline.budget import _limit_em_steps

    counts = blocks(1_000, fields=12)
    weights = _limit_em_steps(Linkage(), counts, 300.0, 8).weights
    assert isinstance(weights, EM)
    assert 100 <= weights.iterations < EM().iterations
    assert _limit_em_steps(Linkage(), blocks(1_000, fields=2), 300.0, 8) == Linkage()
    given = Linkage(weights=EM(iterations=50))
    assert _limit_em_steps(given, counts, 300.0, 8) == given


def test_who_costs_far_too_much_is_not_tried_and_the_verdict_says_so(folder: Path) -> None:
    """A hundredth of a second for all: the ceiling alone would take longer, and he is held to the tolerance."""
    intruders = [
        *INTRUDERS,
        {"name": "all others", "attack": "BayesIntruder", "helpers": "all", "match_blocks": []},
    ]
    held = {"max_rate": 0.15, "intruders": ["nearest", "all others"]}
    outcome = release(
        plan_in(folder, intruders=intruders, tolerance=held, budget={"minutes": 0.001}), key=KEY
    )
    assert outcome.verdict == "not judged"
    assert not outcome.passed
    assert outcome.release is None
    assert "by the table of costs" in outcome.not_judged[0]
    assert "NOT JUDGED" in repr(outcome)


def test_the_default_intruders_have_the_targets_of_the_plan() -> None:
    assert all(plan.targets is None for plan in default_intruders({}).values())
    with pytest.raises(BadPlan, match="minutes is a number above 0"):
        plan_in(Path(), NOISE, budget={"minutes": 0})


def large_table(records: int, blocks: int) -> mw.Table:
    """Return amounts in blocks."""
    rng = np.random.default_rng(1)
    data = {"BLOCK": [f"b{i % blocks:04d}" for i in range(records)], "X": rng.normal(50, 9, records)}
    columns = (
        mw.Column("BLOCK", "category", frozenset({"block"})),
        mw.Column("X", "continuous", frozenset({"key"})),
    )
    return mw.Table.from_frame(pa.table(data), mw.Schema(columns))


def test_noise_is_searched_on_whole_blocks_of_a_large_file() -> None:
    table = large_table(200_000, 1_000)
    card = mw.CorrelatedNoise("X", r0=0.5).card(table)
    part = search_part(table, {"nearest": NearestRecord(), "law": BayesIntruder()}, card)
    assert part is not None
    found = np.unique(part.floats("BLOCK"), return_counts=True)[1]
    assert found.tolist() == [200] * 200  # whole, and as few as have 40,000 records
    assert search_part(table, {"nearest": NearestRecord(match_blocks=())}, card) is None
    assert search_part(large_table(60_000, 1_000), {"nearest": NearestRecord()}, card) is None
    assert search_part(large_table(200_000, 10), {"nearest": NearestRecord()}, card) is None


def test_who_finds_most_takes_part_in_the_search_first(folder: Path) -> None:
    plan = plan_in(folder, intruders=[], budget={"minutes": 0.02}, calibrate={})
    table = table_of(plan)
    mask = plan.mask(table.schema)
    own = intruders_of(plan, table, mask.card(table))
    _, budget = allot_budget(plan, own, CodedTable.of(table, mask), mask.card(table), plan.held(own))
    assert budget.part("knows the law").searched is not None
    assert budget.part("Winkler's matcher").searched is None


def test_a_bound_on_the_ceiling_stands_for_who_takes_too_long(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One-to-one links too dear, and blocks above what the ceiling matches: he is judged by its upper end."""
    monkeypatch.setattr("maskwell.pipeline.costs.ASSIGNED_PAIR", 1e3)
    monkeypatch.setattr("maskwell.attacks.bayes.matching_posterior.posterior.MATCHED_CELLS", 0)
    for room in ("budget", "costs"):
        monkeypatch.setattr(f"maskwell.pipeline.{room}.MATCHED_CELLS", 0)
    outcome = release(plan_in(folder, intruders=[]), key=KEY, advise=False)
    assert outcome.budget is not None
    assert outcome.budget.bounds == {"knows the law, one-to-one": "the ceiling"}
    his, ceiling = (outcome.after[name] for name in ("knows the law, one-to-one", "the ceiling"))
    assert his.ceiling is not None
    assert his.interval == ceiling.interval
    assert his.notes[0].code == "attacks.bounded_by_other"
    assert has_code(outcome.notes, "pipeline.bounded_intruder")
    assert not any("one-to-one is held to the tolerance and" in one for one in outcome.not_judged)


def test_a_swap_leaves_nobody_to_the_bound(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maskwell.pipeline.costs.ASSIGNED_PAIR", 1e3)
    for room in ("budget", "costs"):
        monkeypatch.setattr(f"maskwell.pipeline.{room}.MATCHED_CELLS", 0)
    plan = plan_in(folder, intruders=[], swap={})
    table = table_of(plan)
    mask = plan.mask(table.schema)
    own = intruders_of(plan, table, mask.card(table))
    _, budget = allot_budget(plan, own, CodedTable.of(table, mask), mask.card(table), plan.held(own))
    assert not budget.bounds
    assert budget.part("knows the law, one-to-one").why


def test_records_at_several_limits_of_correlated_noise_cost_integrals() -> None:
    table, names = homes(), ("X", "Y")
    noise = mw.CorrelatedNoise(names, r0=0.5)
    assert counts_of(BayesIntruder(), table, noise.card(table)).at_limits is None  # by trees
    values = [np.sort(table.floats(name)) for name in names]
    coded = mw.Chain((noise, mw.Coding(names, top=tuple(float(one[-40]) for one in values)))).card(table)
    few = counts_of(BayesIntruder(), table, coded)
    assert few.at_limits is not None
    assert few.at_limits.sum() == 0  # two columns are no integral
    one = AttackCounts(np.array([500]), np.array([500]), 4, at_limits=np.array([20]))
    free = AttackCounts(np.array([500]), np.array([500]), 4)
    apart = attack_seconds(BayesIntruder(), one, None) - attack_seconds(BayesIntruder(), free, None)
    assert apart == pytest.approx(20 * 500 * RECTANGLE)


def test_the_budget_is_shared_out_anew_where_the_noise_found_costs_another_search() -> None:
    table = homes()
    strong, weak = (mw.CorrelatedNoise(("X", "Y"), r0=r0).card(table) for r0 in (0.5, 0.99))
    assert costs_alike(table, strong, strong)
    assert costs_alike(table, strong, weak) == (
        counts_of(BayesIntruder(), table, strong).by_trees == counts_of(BayesIntruder(), table, weak).by_trees
    )


def test_who_is_without_the_card_is_dear_where_log_noise_may_reach_the_units() -> None:
    names = ("X", "Y", "Z")
    rng = np.random.default_rng(6)
    columns = tuple(mw.Column(name, "continuous", frozenset({"key"}), unit=1) for name in names)
    values = {name: rng.lognormal(5, 1, 200).round() + 1 for name in names}
    table, plan = mw.Table.from_frame(pa.table(values), mw.Schema(columns)), ALL[2]
    plain, log = (
        counts_of(plan, table, mw.CorrelatedNoise(names, sd_ratio=0.5, transform=transform).card(table))
        for transform in (None, "log")
    )
    assert (plain.near_units, log.near_units) == (False, True)
    assert attack_seconds(plan, log, None) > attack_seconds(plan, plain, None)


def test_values_that_leave_at_limits_or_as_no_unit_are_counted_by_their_chance() -> None:
    rng, names = np.random.default_rng(7), ("X", "Y", "Z")
    columns = tuple(mw.Column(name, "continuous", frozenset({"key"}), unit=1) for name in names)
    values = {name: rng.lognormal(2, 1, 20_000).round() + 1 for name in names}
    table = mw.Table.from_frame(pa.table(values), mw.Schema(columns))
    strong = mw.CorrelatedNoise(names, sd_ratio=2, transform="log")
    masking = mw.apply(strong, table, seed=1)
    (law,) = masking.card.laws
    for j, name in enumerate(names):
        chances = _chance_at_ends(table, law, j)
        found, expected = (masking.release.table.floats(name) == 0).sum(), chances.sum()
        assert expected > 500
        assert abs(found - expected) < 4.5 * np.sqrt((chances * (1 - chances)).sum())
    weak = mw.CorrelatedNoise(names, sd_ratio=0.1, transform="log").card(table)
    assert at_several_limits(table, weak.laws).mean() < 0.002 < at_several_limits(table, [law]).mean()
    assert not costs_alike(table, masking.card, weak)


def test_a_ceiling_stands_only_for_who_knows_no_more_than_it_does() -> None:
    own = BayesIntruder(assignment="one-to-one")
    assert _knows_as_much(BayesIntruder(helpers="all"), own)
    for other in (
        {"fields": ("X",)},
        {"match_blocks": ("REGION",)},
        {"largest_target_block": 3},
        {"targets": Sample(10)},
        {"response_knowledge": False},
    ):
        assert not _knows_as_much(BayesIntruder(helpers="all", **other), own)
    assert not _knows_as_much(BayesIntruder(helpers="all"), NearestRecord())


def test_coarse_units_cost_what_their_cells_do_at_the_scale_that_is_tried() -> None:
    from maskwell.pipeline.attack_counts import counts_of
    from maskwell.pipeline.costs import attack_seconds

    rng, names = np.random.default_rng(3), ("A", "B", "C", "D")
    common = rng.normal(size=2_000)
    values = {n: np.round(2 * (0.6 * common + 0.8 * rng.normal(size=2_000))) for n in names}
    schema = mw.Schema(tuple(mw.Column(n, "integer", frozenset({"key"})) for n in names))
    table = mw.Table.from_frame(pa.table(values), schema)
    plain = {n: mw.CorrelatedNoise(names, sd_ratio=n).card(table) for n in (0.8, 0.22)}
    limits = tuple((n, -9.0, None) for n in names)
    limited = {n: mw.CorrelatedNoise(names, sd_ratio=n, limits=limits).card(table) for n in (0.8, 0.22)}
    parts = {n: counts_of(mw.BayesIntruder(), table, card).parts for n, card in plain.items()}
    assert parts == {0.8: 0, 0.22: 16}, "two parts in each of four columns"
    counts = {n: counts_of(mw.BayesIntruder(), table, card) for n, card in limited.items()}
    assert counts[0.8].parts == counts[0.22].parts == 0
    assert counts[0.22].nodes > 3 * counts[0.8].nodes > 0
    seconds = [attack_seconds(mw.BayesIntruder(), counts[n], 200) for n in (0.8, 0.22)]
    assert seconds[1] > 3 * seconds[0]
