"""Who is compared with whom: what is masked, what is not, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.attacks import Linkage, Relative
from maskwell.calibration.comparison_setting import make_situation
from maskwell.errors import BadPlan
from maskwell.masking import apply
from maskwell.masks import BiasNoise, Chain, Coding, CorrelatedNoise, IndependentNoise
from maskwell.notes import has_code

SEEDS = 30


def agreements(situation, mask, seeds=SEEDS, disagreeing=0):
    """Count, for each seed, the targets whose own masked record agrees: by the rule itself, on what apply draws."""
    counts = []
    for seed in range(seeds):
        masked = apply(mask, situation.table, exact=True, seed=seed).masked
        wrong = np.zeros(len(situation.targets))
        for f, name in enumerate(situation.fields):
            true, z = situation.table.floats(name)[situation.targets], masked.floats(name)[situation.targets]
            wrong += ~(np.isnan(true) | situation.rules[f].agrees(true, z))
        counts.append(np.count_nonzero(wrong <= disagreeing))
    return np.array(counts)


def agrees_with(counts, expected):
    return abs(counts.mean() - expected.value) < 4 * counts.std(ddof=1) / len(counts) ** 0.5 + expected.error


@pytest.mark.parametrize("disagreeing", [0, 1])
@pytest.mark.parametrize("sd_ratio", [0.15, 0.8])
def test_the_expected_number_of_agreements_is_that_of_masked_tables(amounts, sd_ratio, disagreeing):
    situation = make_situation(amounts(), Linkage())
    mask = CorrelatedNoise(("A", "B", "C"), sd_ratio=sd_ratio)
    found = situation.agreeing(sd_ratio, disagreeing)
    assert agrees_with(agreements(situation, mask, disagreeing=disagreeing), found)


def test_kim_with_all_moments_kept_is_shrunk_first(amounts):
    mask = CorrelatedNoise(("A", "B", "C"), sd_ratio=0.5, keep="moments")
    situation = make_situation(amounts(), Linkage(), mask)
    assert agrees_with(agreements(situation, mask), situation.agreeing(0.5))


@pytest.mark.parametrize("shape", ["normal", "laplace"])
def test_independent_noise_is_scaled_by_its_variance(amounts, shape):
    mask = IndependentNoise(("A", "B", "C"), variance_ratio=0.04, shape=shape)
    situation = make_situation(amounts(), Linkage(), mask)
    assert agrees_with(agreements(situation, mask), situation.agreeing(0.2))


def test_noise_on_the_log_scale(amounts):
    mask = IndependentNoise(("A", "B"), variance_ratio=0.09, transform="log")
    situation = make_situation(amounts(), Linkage(fields=("A", "B")), mask)
    assert agrees_with(agreements(situation, mask), situation.agreeing(0.3))


def test_a_field_that_is_not_masked_always_agrees(amounts):
    one = make_situation(amounts(), Linkage(), CorrelatedNoise(("A",), sd_ratio=1.0))
    alone = make_situation(amounts(), Linkage(fields=("A",)), CorrelatedNoise(("A",), sd_ratio=1.0))
    assert one.agreeing(0.3).value == alone.agreeing(0.3).value


def test_a_closed_field_is_left_out_of_the_usual_mask(amounts):
    table = amounts()
    nothing = np.full(len(table), np.nan), np.ones(len(table), np.uint8)
    situation = make_situation(table.with_columns({"C": (table.schema["C"], *nothing)}), Linkage())
    assert situation.masked == ("A", "B")
    (note,) = [note for note in situation.notes if note.code == "calibration.unmasked_fields"]
    assert "C" in note.figures["columns"]


def test_without_tolerance_only_what_rounds_back_agrees(amounts):
    situation = make_situation(
        amounts(), Linkage(fields=("A",), rule=Relative(0)), CorrelatedNoise(("A",), sd_ratio=1)
    )
    found = situation.agreeing(0.5).value - np.count_nonzero(~situation.is_open)
    assert 0 < found < 0.02 * len(situation.targets)


@pytest.mark.parametrize(
    ("mask", "words"),
    [
        (BiasNoise(("A",), bias_sd=0.1, sd_ratio=0.1), "whose size can be set"),
        (IndependentNoise(("A",), variance=4.0), "whose size can be set"),
        (Coding(("A",), top=800), "whose size can be set"),
        (Chain((CorrelatedNoise(("A", "B"), sd_ratio=0.1),)), "whose size can be set"),
        (CorrelatedNoise(("A", "B", "nope"), sd_ratio=0.1), "nope"),
    ],
)
def test_masks_without_a_size_are_refused(amounts, mask, words):
    with pytest.raises(BadPlan, match=words):
        make_situation(amounts(), Linkage(), mask)


@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ("guess", "give a Linkage, not a str"),
        (Linkage(direction="to_original"), "direction 'to_masked'"),
        (Linkage(largest_target_block=1), "nobody is a target"),
        (
            Linkage(fields=("BLOCK",), match_blocks=()),
            "no field that the intruder compares holds an open number",
        ),
        (Linkage(fields=("A",), match_blocks=("B",)), None),
    ],
)
def test_attacks_it_is_not_about_are_refused(amounts, attack, words):
    if words is None:
        with pytest.raises(BadPlan, match="'B' is a matching block and masked"):
            make_situation(amounts(), attack, CorrelatedNoise(("A", "B"), sd_ratio=1.0))
    else:
        with pytest.raises(BadPlan, match=words):
            make_situation(amounts(), attack)


def test_a_mask_of_other_columns_is_refused(amounts):
    with pytest.raises(BadPlan, match="touches no field"):
        make_situation(amounts(), Linkage(fields=("A",)), CorrelatedNoise(("B", "C"), sd_ratio=1.0))


def test_a_constant_column_is_refused_by_name(amounts):
    table = amounts()
    constant = np.full(len(table), 300.0), np.zeros(len(table), np.uint8)
    with pytest.raises(BadPlan, match="'A' is constant"):
        make_situation(table.with_columns({"A": (table.schema["A"], *constant)}), Linkage())


def test_it_says_where_the_attack_claims_more(amounts):
    assert make_situation(amounts(), Linkage()).notes == ()
    notes = make_situation(amounts(), Linkage(claims="all links")).notes
    assert has_code(notes, "calibration.predicted_links")


def test_a_table_is_needed():
    with pytest.raises(BadPlan, match="not a dict"):
        make_situation({}, Linkage())
