"""The record of a swap: on disk and back, in codebooks and on the steward's page."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import maskwell as mw
from maskwell.masking.codebook import codebook
from maskwell.masking.column_figures import column_figures
from maskwell.masking.swap_record import COVARIANCES, DOMAINS, Swapping, exchange, figures_table
from maskwell.notes import texts
from maskwell.report import masking_summary

PLAN = mw.Linkage(fields=("INCOME", "TAX", "AGE"), match_blocks=("REGION", "SEX"), weights=mw.attacks.Fixed())


@pytest.fixture(scope="module")
def masking(people):
    return mw.apply(mw.CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.1), people, seed=5)


@pytest.fixture(scope="module")
def swapped(masking):
    return mw.swap(masking, PLAN, mw.tolerances.SwapShare(0.7), domains="EDU")


def test_a_swapped_masking_comes_back_from_disk(swapped, tmp_path):
    swapped.write(release=tmp_path / "release", private=tmp_path / "private")
    back = mw.Masking.read(release=tmp_path / "release", private=tmp_path / "private")
    assert back.masked == swapped.masked
    assert back.unswapped == swapped.unswapped
    assert np.array_equal(back.order, swapped.order)
    assert back.release.card.swapped == swapped.card.swapped
    for name in swapped.release.table.names:
        assert back.release.table.array(name).equals(swapped.release.table.array(name)), name
    assert back.swapping == swapped.swapping
    assert back.swapping.to_json() == swapped.swapping.to_json()
    assert np.array_equal(back.swapping.pairs, swapped.swapping.pairs)
    assert back.swapping.domains.equals(swapped.swapping.domains)
    assert repr(back.swapping) == repr(swapped.swapping)
    assert mw.attack(PLAN, back).rate == swapped.swapping.after.rate


def test_figures_that_there_are_not_come_back_from_strict_json(swapped):
    """A domain without open values has no mean, and so no shift; a column without spread no correlation."""
    domains, covariances = (
        table.to_pydict() for table in (swapped.swapping.domains, swapped.swapping.covariances)
    )
    for name in ("mean_before", "mean_after", "shift_in_sds"):
        domains[name][0] = math.nan
    covariances["correlation_before"][1] = math.nan
    plan = {"attack": "Linkage", "cut_offs": [math.inf, -math.inf]}
    held = replace(
        swapped.swapping,
        attack=plan,
        domains=figures_table(DOMAINS, domains),
        covariances=figures_table(COVARIANCES, covariances),
    )
    text = held.to_json()
    strict = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert strict["domains"]["mean_before"][0] is None
    back = Swapping.from_json(text)
    assert back == held
    assert back.attack == plan
    assert back.to_json() == text
    np.testing.assert_equal(back.domains.to_pydict(), domains)
    np.testing.assert_equal(back.covariances.to_pydict(), covariances)
    assert back.domains.schema == held.domains.schema
    assert back.domains["mean_before"].null_count == 0
    assert back.largest_domain_shift == held.largest_domain_shift


def test_records_written_before_are_still_read(swapped):
    """Files once had a bare NaN."""
    old = swapped.swapping.to_json().replace('"shift_in_sds": [\n', '"shift_in_sds": [\n   NaN,\n', 1)
    data = json.loads(old)
    data["domains"]["shift_in_sds"].pop()
    assert math.isnan(Swapping.from_json(json.dumps(data)).domains["shift_in_sds"][0].as_py())


def test_the_steward_is_told_to_keep_the_release_without_swaps(swapped, masking):
    sentence = "the release as it was before the swaps must not leave as well: the two together show who was exchanged"
    assert sentence in texts(swapped.notes)
    assert sentence in " ".join(repr(swapped.swapping).split())
    unmoved = mw.swap(masking, PLAN, mw.MaxRate(1.0))
    assert sentence not in texts(unmoved.notes)
    assert sentence not in " ".join(repr(unmoved.swapping).split())


def test_an_empty_record_comes_back_too(masking):
    swapping = mw.swap(masking, PLAN, mw.MaxRate(1.0)).swapping
    back = Swapping.from_json(swapping.to_json())
    assert back == swapping
    assert back.pairs.shape == (0, 2)


def test_pairs_and_partners_stay_inside(swapped, tmp_path):
    swapped.write(release=tmp_path / "release", private=tmp_path / "private")
    assert {path.name for path in (tmp_path / "release").iterdir()} == {
        "card.json", "codebook.md", "data.parquet", "manifest.json", "schema.toml",
    }  # fmt: skip
    (private,) = (tmp_path / "private").iterdir()
    assert (private / "swapping.json").stat().st_mode & 0o077 == 0


def test_the_codebook_tells_analysts_of_the_swap(swapped):
    text, share = codebook(swapped.release), f"{100 * swapped.card.swapped.share:.3g}%"
    assert (
        f"{share} of the records had INCOME, TAX, AGE exchanged with another of their block (REGION, SEX)."
        in text
    )
    assert text.count(f"; {share} of the values exchanged |") == 3


def test_the_page_says_how_many_were_exchanged(swapped, masking):
    page, before = (masking_summary(each, Path("out"), Path("in")) for each in (swapped, masking))
    assert (
        f"- {swapped.swapping.records} records ({100 * swapped.swapping.share:.2g}%) exchanged within blocks"
        in page
    )
    assert [line for line in page.splitlines() if line in before.splitlines()] == before.splitlines()


def test_figures_of_the_noise_are_as_before(swapped, masking):
    assert column_figures(swapped) == column_figures(masking)


def test_exchanging_twice_changes_nothing(people):
    pairs = np.array([[0, 7], [11, 3]])
    moved = exchange(people, ("INCOME", "EDU", "ELSEWHERE"), pairs)
    assert moved != people
    assert moved.array("INCOME")[0] == people.array("INCOME")[7]
    assert moved.status("INCOME")[3] == people.status("INCOME")[11] != 0
    assert exchange(moved, ("INCOME", "EDU"), pairs) == people
    assert exchange(people, ("INCOME",), np.empty((0, 2), np.int64)) == people
