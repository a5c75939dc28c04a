"""The codebook: what each column is and what was done to it, in words, for the recipient."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from maskwell.card import NoiseCard, SwapParameters
from maskwell.keys import Key
from maskwell.laws import Power
from maskwell.masking import Release, apply
from maskwell.masking.codebook import codebook, describe
from maskwell.masks import (
    MASKS,
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
    Pram,
    RankSwap,
    Recompute,
    Subsample,
)
from maskwell.schema import Column, Schema
from maskwell.table import Table


@pytest.fixture
def release(people: Table, study_key: Key) -> Release:
    parts = IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.1)
    plan = Chain((
        CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.3),
        parts,
        Recompute("TOTAL", ("WAGE", "OTHER")),
        CodeNoise("SEX", variance=0.5),
        Subsample(0.5),
    ))  # fmt: skip
    return apply(plan, people, key=study_key).release


def test_every_column_has_its_line(release: Release):
    text = codebook(release)
    for name in release.table.names:
        assert sum(line.startswith(f"| {name} |") for line in text.splitlines()) == 1
    assert f"{len(release):,} records, 12 columns." in text
    assert "SECRET" not in text


def test_roles_and_masks_are_said_in_words(release: Release):
    lines = {line.split(" | ")[0].removeprefix("| "): line for line in codebook(release).splitlines()}
    assert "new random ids" in lines["ID"]
    assert "groups numbered anew" in lines["HH"]
    assert "recomputed as WAGE + OTHER" in lines["TOTAL"]
    assert "correlated over INCOME, TAX" in lines["INCOME"]
    assert "90000: this much or more; -9: missing" in lines["INCOME"]
    assert "as collected" in lines["WEIGHT"]
    assert "whole number in steps of 1" in lines["AGE"]


def test_the_recipient_is_told_of_samples_seeds_and_swaps(release: Release):
    text = codebook(release)
    assert "each was released with probability 0.5" in text
    assert "not for release" in text
    swapped = replace(
        release, card=replace(release.card, swapped=SwapParameters(0.125, ("AGE",)), seeded=False)
    )
    assert "12.5% of the records had AGE exchanged with another of them." in codebook(swapped)
    blocks = replace(swapped.card, swapped=SwapParameters(0.00012, ("AGE",), ("REGION", "SEX")))
    said = "0.012% of the records had AGE exchanged with another of their block (REGION, SEX)."
    assert said in codebook(replace(swapped, card=blocks))
    assert "not for release" not in codebook(swapped)


def test_codes_with_noise_are_explained(release: Release):
    """A recipient of 0.37 must know what 0 and 1 were."""
    text = codebook(release)
    assert "## SEX\n\n| code before the noise | category |\n|---|---|\n| 0 | 1 |\n| 1 | 2 |" in text
    assert "## EDU\n\nCategories: low, middle, high." in text
    assert "## HH" not in text


def test_labels_are_listed_and_cannot_break_the_table(people: Table):
    column = Column("A", "category", categories=("1",), labels=(("1", "a | b\nc"),), description="x | y")
    empty = replace(people.select(["EDU"]), schema=Schema((replace(column, name="EDU"),)))
    text = codebook(Release(empty, NoiseCard()))
    assert "| 1 | a \\| b c |" in text
    assert "x \\| y: category" in text
    assert "How to analyse it" not in text


@pytest.mark.parametrize(
    ("mask", "name", "expected"),
    [
        (IndependentNoise("TAX", variance=4.0), "TAX", "normal noise of sd 2"),
        (IndependentNoise("TAX", variance=4.0, shape="laplace"), "TAX", "laplace noise of sd 2"),
        (IndependentNoise("TAX", variance=0.04, transform="log", shift=1e4), "TAX", "on the log scale"),
        (IndependentNoise("TAX", variance=4.0, spread=Power(1.0, 1.0)), "TAX", "times a function of the value"),
        (IndependentNoise("INCOME", variance=4.0), "INCOME", "kept at 89,999.99 or below"),
        (CorrelatedNoise(("INCOME", "TAX"), r0=0.9, keep="moments"), "TAX", "after shrinking by 0.949"),
        (MixtureNoise("TAX", 0.5, 0.1), "TAX", "mixture noise of sd"),
        (BiasNoise("TAX", bias_sd=0.1, sd=5.0), "TAX", "normal noise (mean 1, sd 0.1), plus normal noise of sd 5"),
        (BiasNoise("TAX", bias_sd=0.1, sd=5.0, shape="lognormal"), "TAX", "by lognormal noise (mean 1, sd 0.1)"),
        (IndependentNoise("AGE", variance=4.0), "AGE", "kept at 16 or above and at 89 or below"),
        (Coding("TAX", top=6000), "TAX", "as collected, coded from 6,000 up"),
        (Pram("EDU", stay=0.8), "EDU", "stays with probability 0.80 on average"),
        (Grouping("EDU", groups=(("all", ("low", "middle", "high")),)), "EDU", "grouped"),
        (Grouping("AGE", breaks=(30, 60)), "AGE", "released as classes"),
        (RankSwap("WAGE", 0.05), "WAGE", "exchanged with values at most 5.0% of ranks away"),
    ],
)  # fmt: skip
def test_every_law_has_its_words(people: Table, mask: Any, name: str, expected: str):
    law = mask.card(people).law_of(name)
    assert expected in describe(law, name)


def test_a_law_without_words_is_named_by_its_form():
    class Unheard:
        form = "unheard of"

    assert describe(Unheard(), "A") == "masked by unheard of"
    assert len(MASKS) >= 12
