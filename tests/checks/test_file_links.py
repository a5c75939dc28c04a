"""Links by intruders who know the law, and links on ratios: planted, and absent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from maskwell.attacks import BayesIntruder, Fingerprint, Linkage, NearestRecord, Quantiles, Sample, attack
from maskwell.attacks.risk import Risks
from maskwell.card import NoiseCard
from maskwell.checks.evidence import Evidence
from maskwell.checks.file_checks import CHECKS
from maskwell.checks.findings import Finding
from maskwell.checks.links import distances_from_centre, is_informed
from maskwell.checks.rank_windows import with_windows
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.masks import Chain, CorrelatedNoise, IndependentNoise, Pram, RankSwap
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY = Key(np.random.default_rng(11).bytes(32))
RECORDS = 1_500
AMOUNTS = ("A", "B", "C", "D")


def made(name: str, masking: Masking, risks: Risks | None = None) -> Finding:
    check = next(check for check in CHECKS if check.name == name)
    return check.made(Evidence(masking, risks))


def amounts(values: np.ndarray, unit: float = 0.001) -> Table:
    columns = tuple(
        Column(name, "continuous", frozenset({"key"}), unit=unit) for name in AMOUNTS[: values.shape[1]]
    )
    frame = pa.table({column.name: values[:, j] for j, column in enumerate(columns)})
    return Table.from_frame(frame, Schema(columns))


def normal(records: int = RECORDS, seed: int = 1) -> Table:
    rng = np.random.default_rng(seed)
    shared = rng.standard_normal((records, 1))
    return amounts(np.round(10 + shared + rng.standard_normal((records, 4)), 3))


def foreign(truth: Table, released: Table, card: NoiseCard | None = None) -> Masking:
    """Tie a release made elsewhere to its truth, in another order."""
    order = np.random.default_rng([7, 2**40]).permutation(len(truth))
    places = [str(place + 1) for place in order]
    links = pa.table({"truth_id": places, "released_id": [str(i + 1) for i in range(len(truth))]})
    return Masking.from_files(truth, released.take(order), links, card=card)


def test_little_noise_fails_and_much_noise_passes_the_informed_intruder() -> None:
    truth = normal()
    little = apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.1), truth, key=KEY)
    much = apply(CorrelatedNoise(AMOUNTS, sd_ratio=1.5), truth, key=KEY)
    assert made("informed links", little).verdict == "fail"
    assert made("outer links", little).verdict == "fail"
    found = made("informed links", much)
    assert found.verdict == "pass"
    assert made("outer links", much).verdict == "pass"
    assert found.figure == max(found.figures.values())


def test_the_informed_intruder_sees_what_the_euclidean_does_not() -> None:
    """Noise along the first principal direction alone: Euclid is lost, whoever whitens by the noise is not."""
    rng = np.random.default_rng(3)
    values = np.round(rng.standard_normal((RECORDS, 4)), 3)
    stretched = amounts(np.column_stack([values[:, 0] * 20, values[:, 1:] * 0.5]))
    masking = apply(IndependentNoise(AMOUNTS, variance=(400.0, 4e-4, 4e-4, 4e-4)), stretched, key=KEY)
    euclid = attack(NearestRecord(weights={"B": 0.01, "C": 0.01, "D": 0.01}), masking)
    found = made("informed links", masking)
    assert euclid.rate < 0.15 < 0.9 < found.figure


def test_attacks_already_made_are_taken_as_they_are() -> None:
    masking = apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.5), normal(), key=KEY)
    given = {
        "Winkler": attack(Linkage(), masking),
        "posterior": attack(NearestRecord(distance="posterior"), masking),
        "law": attack(BayesIntruder(), masking),
    }
    found = made("informed links", masking, Risks(given))
    best = max(("posterior", "law"), key=lambda name: given[name].rate)
    assert (found.figure, found.where) == (given[best].rate, best)
    assert found.sampled is None


def test_beside_distances_alone_who_knows_the_law_is_tried() -> None:
    masking = apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.5), normal(), key=KEY)
    given = {"posterior": attack(NearestRecord(distance="posterior"), masking)}
    found = made("informed links", masking, Risks(given))
    assert "knows the law, all records" in found.figures
    assert found.figure == max(found.figures.values()) >= given["posterior"].rate


def test_without_an_informed_one_among_the_given_attacks_one_is_made() -> None:
    masking = apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.5), normal(), key=KEY)
    found = made("informed links", masking, Risks({"Winkler": attack(Linkage(), masking)}))
    assert found.where == "knows the law"
    assert found.figure > found.figures["nearest by posterior"] > 0
    assert found.sampled == 1_000


@pytest.mark.parametrize(
    ("plan", "informed"),
    [
        (BayesIntruder(), True),
        (BayesIntruder(assignment="one-to-one"), True),
        (BayesIntruder(helpers="all"), False),
        (NearestRecord(distance="noise"), True),
        (NearestRecord(), False),
        (NearestRecord(shrink="matrix"), True),
        (Fingerprint(), False),
    ],
)
def test_who_is_informed(plan: object, informed: bool) -> None:
    assert is_informed(plan) is informed


def test_a_release_without_a_card_is_attacked_by_distance() -> None:
    truth = normal()
    values = truth.values(AMOUNTS)
    released = amounts(np.round(values + 0.05 * np.random.default_rng(5).standard_normal(values.shape), 3))
    found = made("informed links", foreign(truth, released))
    assert found.verdict == "fail"
    assert "no law" in found.said


def test_outer_records_are_found_more_often_than_others() -> None:
    rng = np.random.default_rng(8)
    values = np.round(rng.standard_t(3, (RECORDS, 4)), 3)
    masking = apply(IndependentNoise(AMOUNTS, variance_ratio=0.15), amounts(values), key=KEY)
    outer, all_of_them = made("outer links", masking), made("informed links", masking)
    assert outer.figure > all_of_them.figure + 0.2
    assert outer.verdict in ("warn", "fail")


def test_nothing_masked_that_is_a_number_is_said_not_failed() -> None:
    truth = normal(200)
    found = made("informed links", foreign(truth, truth))
    assert found.verdict == "not checked"
    assert found.said


def skewed(records: int = RECORDS, seed: int = 2) -> Table:
    rng = np.random.default_rng(seed)
    logs = 8 + 0.6 * rng.standard_normal((records, 1)) + 0.6 * rng.standard_normal((records, 4))
    return amounts(np.round(np.exp(logs), 2), unit=0.01)


def test_one_factor_for_a_record_leaves_its_ratios() -> None:
    truth = skewed()
    factor = np.exp(0.5 * np.random.default_rng(4).standard_normal((RECORDS, 1)))
    released = amounts(np.round(truth.values(AMOUNTS) * factor, 2), unit=0.01)
    found = made("ratios", foreign(truth, released))
    assert found.verdict == "fail"
    assert found.figure > 0.9


def test_a_factor_shared_by_two_columns_alone_is_found() -> None:
    truth = skewed()
    factors = np.exp(0.5 * np.random.default_rng(4).standard_normal((RECORDS, 4)))
    factors[:, 1] = factors[:, 0]
    released = amounts(np.round(truth.values(AMOUNTS) * factors, 2), unit=0.01)
    found = made("ratios", foreign(truth, released))
    assert found.verdict == "fail"
    assert found.where == "A / B"


def test_a_factor_for_each_cell_leaves_no_ratio() -> None:
    truth = skewed()
    factors = np.exp(0.5 * np.random.default_rng(4).standard_normal((RECORDS, 4)))
    found = made("ratios", foreign(truth, amounts(np.round(truth.values(AMOUNTS) * factors, 2), unit=0.01)))
    assert found.verdict == "pass"
    assert made("ratios", apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.5), truth, key=KEY)).verdict == "pass"


def test_a_fingerprint_is_a_floor_that_noise_does_not_lower() -> None:
    truth = normal()
    rng = np.random.default_rng(6)
    place = rng.permutation(np.repeat(np.arange(20), RECORDS // 20))
    place[:40] = 20 + np.arange(40)  # villages of one household
    names = tuple(f"place {i}" for i in range(60))
    column = Column("PLACE", "category", frozenset({"block"}), categories=names)
    data = truth.data.append_column("PLACE", pa.array([names[i] for i in place]))
    table = replace(truth, schema=Schema((*truth.schema.columns, column)), data=data)
    with pytest.warns(UserWarning, match="alone in their block"):
        masking = apply(CorrelatedNoise(AMOUNTS, sd_ratio=5.0), table, key=KEY)
    found = made("fingerprint floor", masking)
    assert found.verdict == "fail"
    assert found.figure == pytest.approx(40 / RECORDS)
    assert "PLACE" in found.said
    clean = apply(CorrelatedNoise(AMOUNTS, sd_ratio=5.0), truth, key=KEY)
    assert made("fingerprint floor", clean).figure == 0


def test_a_mask_without_a_law_is_attacked_by_distance_too() -> None:
    masking = apply(RankSwap(AMOUNTS, window_ratio=0.02), normal(), key=KEY)
    found = made("informed links", masking)
    assert found.verdict == "fail"
    assert found.figure >= found.figures["nearest"] > 0.15


def window_intruder(
    masking: Masking, noised: str, swapped: tuple[str, ...], sd: float, window: float
) -> float:
    """Link by the normal density of one column and uniform windows on the ranks of others, f(z) over the truth."""
    truth, released = masking.truth, masking.release.table
    logs = -(((released.floats(noised)[None, :] - truth.floats(noised)[:, None]) / sd) ** 2) / 2
    for name in swapped:
        ranks = (np.argsort(np.argsort(table.floats(name))) for table in (truth, released))
        ours, theirs = ranks
        far = np.abs(ours[:, None] - theirs[None, :]) > window * len(truth) + 1
        logs = np.where(far, -1e3, logs)
    best = (logs - np.logaddexp.reduce(logs, axis=0)).argmax(axis=1)
    return float((masking.order[best] == np.arange(len(truth))).mean())


def test_rank_swaps_are_windows_to_who_knows_the_law() -> None:
    """He is at least as strong as one who takes exchanges for uniform; the noise of one column alone tells little."""
    masks = Chain((IndependentNoise("A", variance=0.2), RankSwap(AMOUNTS[1:], window_ratio=0.1)))
    masking = apply(masks, normal(500), key=KEY)
    found, outer = made("informed links", masking), made("outer links", masking)
    uniform = window_intruder(masking, "A", AMOUNTS[1:], 0.2**0.5, 0.1)
    alone = attack(BayesIntruder(fields=("A",)), masking)
    assert found.where == "knows the law"
    assert found.figure >= uniform > 5 * alone.rate
    assert found.verdict == "fail"
    assert outer.figure > found.figure


def test_wide_windows_tell_little_and_pass() -> None:
    masks = Chain((IndependentNoise("A", variance=2.0), RankSwap(AMOUNTS[1:], window_ratio=0.6)))
    assert made("informed links", apply(masks, normal(500), key=KEY)).verdict == "pass"


def test_classes_of_rank_follow_the_exchanges_of_a_file_with_ties() -> None:
    """The law of classes gives the shares of moves between classes that exchanges really make."""
    rng = np.random.default_rng(6)
    truth = amounts(np.round(rng.standard_exponential((4_000, 1)) * 3))
    law = with_windows(apply(RankSwap("A", window_ratio=0.1), truth, key=KEY)).card.laws[0]
    expected = np.array(law.matrix)
    counts = np.zeros_like(expected)
    for seed in range(20):
        twin = with_windows(apply(RankSwap("A", window_ratio=0.1), truth, seed=seed))
        np.add.at(counts, (twin.truth.floats("A").astype(int), twin.masked.floats("A").astype(int)), 1)
    each = counts.sum(axis=1, keepdims=True)
    error = np.sqrt(expected * (1 - expected) / each) + 1 / each
    inner = slice(3, 8)  # away from the ends, where an exchange has fewer partners
    assert (np.abs(counts / each - expected)[inner] < 8 * error[inner] + 0.02).all()


def test_records_far_out_on_the_scale_of_the_noise_are_looked_for() -> None:
    """Amounts that go together as logs: who is unlike others in a ratio is far out by logs alone."""
    rng = np.random.default_rng(21)
    common = 1.5 * rng.standard_normal((RECORDS, 1))
    values = np.exp(9 + common + 0.3 * rng.standard_normal((RECORDS, 4)))
    masking = apply(IndependentNoise(AMOUNTS, variance=0.05, transform="log"), amounts(values), key=KEY)
    found = made("outer links", masking)
    others = [figure for name, figure in found.figures.items() if "on the scale" not in name]
    (logs,) = (figure for name, figure in found.figures.items() if name.endswith("on the scale of the noise"))
    assert len(others) == 3
    assert found.figure == logs > max(others) + 0.05


def test_keys_that_left_in_clear_are_relied_on() -> None:
    rng = np.random.default_rng(12)
    truth = normal()
    names = tuple(f"job {i}" for i in range(200))
    column = Column("JOB", "category", frozenset({"key"}), categories=names)
    data = truth.data.append_column("JOB", pa.array(rng.choice(names, RECORDS)))
    beside = replace(truth, schema=Schema((*truth.schema.columns, column)), data=data)
    mask = CorrelatedNoise(AMOUNTS, sd_ratio=1.0)
    alone, with_job = (made("informed links", apply(mask, table, key=KEY)) for table in (truth, beside))
    assert with_job.figure > alone.figure + 0.2


def test_the_bayes_intruder_is_asked_where_he_is_quick_and_missed_where_he_is_not() -> None:
    mask = CorrelatedNoise(AMOUNTS, sd_ratio=1.0)
    small, large = (made("informed links", apply(mask, normal(n), key=KEY)) for n in (400, RECORDS))
    assert "knows the law" in small.figures
    assert "not tried" not in small.said
    assert "knows the law" not in large.figures
    assert "not tried" in large.said


def test_outer_links_are_counted_among_the_targets_of_an_attack_already_made() -> None:
    """The whole file was attacked: its outer records are in the table, and give what an attack on them alone gives."""
    masking = apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.5), normal(2_400), key=KEY)
    plan = BayesIntruder()
    found = made("outer links", masking, Risks({"law": attack(plan, masking)}))
    outer = tuple((1 - 0.05 * (np.arange(120) + 0.5) / 120).tolist())
    anew = attack(replace(plan, targets=Quantiles(outer, columns=AMOUNTS)), masking)
    assert found.figures["law, by columns"] == pytest.approx(anew.rate, abs=0.02)
    assert found.figure == max(found.figures.values())
    assert found.sampled is None


def in_places(truth: Table) -> Table:
    """Add a block of ten places, which leaves in clear."""
    names = tuple(f"place {i}" for i in range(10))
    column = Column("PLACE", "category", frozenset({"block"}), categories=names)
    chosen = np.random.default_rng(14).choice(names, len(truth))
    data = truth.data.append_column("PLACE", pa.array(chosen))
    return replace(truth, schema=Schema((*truth.schema.columns, column)), data=data)


WEAK = {
    "one field of four": NearestRecord(distance="posterior", fields=("A",)),
    "one field, by the law": BayesIntruder(fields=("A",)),
    "the record at the centre": NearestRecord(distance="posterior", targets=Quantiles((0.01,))),
    "ten targets": NearestRecord(distance="posterior", targets=Sample(10)),
    "no blocks": NearestRecord(distance="posterior", match_blocks=()),
    "a threshold": BayesIntruder(threshold=0.99),
    "weights": NearestRecord(shrink="matrix", weights={"B": 0.0, "C": 0.0, "D": 0.0}),
}


@pytest.mark.parametrize("weak", WEAK)
def test_an_intruder_whom_the_plan_holds_back_does_not_blind_the_audit(weak: str) -> None:
    masking = apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.35), in_places(normal(900)), key=KEY)
    given = Risks({weak: attack(WEAK[weak], masking)})
    for check in ("informed links", "outer links"):
        anew, found = made(check, masking), made(check, masking, given)
        assert found.figure == anew.figure, check
        assert found.where == anew.where != weak


SOUND = {
    "all fields named": BayesIntruder(fields=AMOUNTS),
    "many targets": BayesIntruder(targets=Sample(500)),
    "its block named": BayesIntruder(match_blocks=("PLACE",)),
}


def test_who_looks_for_small_blocks_alone_has_another_beside_him() -> None:
    masking = apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.35), in_places(normal(800)), key=KEY)
    risk = attack(BayesIntruder(largest_target_block=75), masking)
    found = made("informed links", masking, Risks({"small blocks": risk}))
    assert found.figures["knows the law, all records"] == attack(BayesIntruder(), masking).rate
    assert found.figures["small blocks"] == risk.rate
    assert found.figure == max(found.figures.values())


@pytest.mark.parametrize("sound", SOUND)
def test_an_intruder_whom_nothing_holds_back_is_taken_over(sound: str) -> None:
    masking = apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.35), in_places(normal(800)), key=KEY)
    risk = attack(SOUND[sound], masking)
    found = made(
        "informed links", masking, Risks({sound: risk, "weak": attack(WEAK["ten targets"], masking)})
    )
    assert (found.figure, found.where, set(found.figures)) == (risk.rate, sound, {sound})


def test_a_handful_of_outer_records_is_judged_by_its_exact_rate() -> None:
    """Of this release the rate is known: three of three found are all that there are."""
    mask = CorrelatedNoise(AMOUNTS, sd_ratio=0.05)  # nearly everybody is found
    few = made("outer links", apply(mask, normal(60), key=KEY))
    assert few.verdict == "fail"
    assert few.sampled is None
    assert "of 3 records among the 5% farthest" in few.said
    assert "interval" not in few.said


def test_outer_links_of_a_part_are_judged_by_the_upper_end_of_their_interval() -> None:
    """250 of 300 outer records are looked for: the limit lies inside the interval of what they give."""
    masking = apply(IndependentNoise(AMOUNTS, variance_ratio=0.3), normal(6_000), key=KEY)
    check = next(check for check in CHECKS if check.name == "outer links")
    found = check.made(Evidence(masking))
    assert found.sampled == 250
    assert "whose upper end counts" in found.said
    own = replace(check.limits, warn=None, fail=found.figure + 0.01)
    assert check.made(Evidence(masking), own).verdict == "fail"


def test_records_with_gaps_are_looked_for_by_the_columns_that_they_have() -> None:
    """Those who stand out have a gap each; who has no open number at all is counted."""
    x = np.random.default_rng(12).standard_normal((1_000, 4))
    far = np.arange(0, 1_000, 20)
    x[far] *= 8
    x[far, np.arange(50) % 4] = np.nan
    x[7] = np.nan
    masking = apply(IndependentNoise(AMOUNTS, variance_ratio=0.05), amounts(x), key=KEY)
    distances = distances_from_centre(Evidence(masking))
    for distance in ("by columns", "by the data's covariance"):
        found = np.argsort(-np.nan_to_num(distances[distance]))[:50]
        assert len(set(found.tolist()) & set(far.tolist())) > 35
    said = made("outer links", masking).said
    assert "1 records without an open masked number have no place among them" in said


def test_in_blocks_too_large_for_the_best_intruder_categories_are_not_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One number under strong noise and categories that change seldom: the law finds many."""
    monkeypatch.setattr("maskwell.checks.links.MANY_PAIRS", 0)
    rng, labels = np.random.default_rng(9), tuple("abcdefghijkl")
    names = ("K", "L", "M")
    frame = {"A": rng.normal(50, 9, RECORDS).round(2)} | {name: rng.choice(labels, RECORDS) for name in names}
    columns = [Column("A", "continuous", frozenset({"key"}), unit=0.01)]
    columns += [Column(name, "category", frozenset({"key"}), categories=labels) for name in names]
    truth = Table.from_frame(pa.table(frame), Schema(tuple(columns)))
    masks = IndependentNoise("A", variance_ratio=0.5), Pram(names, stay=0.9)
    masking = apply(Chain(masks), truth, key=KEY)
    weak = attack(NearestRecord(distance="posterior"), masking)
    found = made("informed links", masking, Risks({"nearest, informed": weak}))
    assert weak.rate < 0.05
    assert found.figure > 0.3
    assert found.verdict == "fail"


def in_classes(values: np.ndarray, roles: frozenset[str] = frozenset()) -> Table:
    """Two amounts beside three categories that leave in clear."""
    rng = np.random.default_rng(5)
    names, levels = ("grade", "job", "proof"), tuple("abcd")
    columns = (
        *(Column(name, "category", roles, categories=levels) for name in names),
        *(Column(name, "continuous", frozenset({"key"}), unit=0.001) for name in AMOUNTS[:2]),
    )
    codes = {name: np.array(levels)[rng.integers(0, 4, len(values))] for name in names}
    frame = pa.table({**codes, **{name: values[:, j] for j, name in enumerate(AMOUNTS[:2])}})
    return Table.from_frame(frame, Schema(columns))


@pytest.mark.parametrize(
    "mask",
    [
        IndependentNoise(AMOUNTS[:2], variance_ratio=0.5),
        Chain((RankSwap(("A",), window_ratio=0.3), RankSwap(("B",), window_ratio=0.3))),
    ],
)
def test_own_intruders_rely_on_all_that_leaves_in_clear_whatever_its_roles(
    mask: IndependentNoise | Chain,
) -> None:
    """A plan that names a weak intruder changes nothing for the strong one: he matches within what may be known."""
    values = np.round(np.random.default_rng(6).standard_normal((1_200, 2)), 3)
    figures = {}
    for roles in (frozenset[str](), frozenset({"block"})):
        masking = apply(mask, in_classes(values, roles), key=KEY)
        given = Risks({"nearest": attack(NearestRecord(), masking)})
        figures[roles] = [
            made(name, masking, risks).figure
            for name in ("informed links", "outer links")
            for risks in (None, given)
        ]
        assert min(figures[roles][:2]) > 0.3
    assert figures[frozenset()] == pytest.approx(figures[frozenset({"block"})])


def test_own_intruders_do_not_rely_on_what_a_plan_calls_known_to_nobody() -> None:
    masking = apply(
        IndependentNoise(AMOUNTS[:2], variance_ratio=0.5),
        in_classes(np.round(np.random.default_rng(6).standard_normal((1_200, 2)), 3)),
        key=KEY,
    )
    check = next(check for check in CHECKS if check.name == "informed links")
    risks = Risks({"nearest": attack(NearestRecord(), masking)})
    unknown = {"grade": "kept in house", "job": "kept in house", "proof": "kept in house"}
    every, nobody = (check.made(Evidence(masking, risks, not_known=one)).figure for one in ({}, unknown))
    assert nobody < 0.2 * every
