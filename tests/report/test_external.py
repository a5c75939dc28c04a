"""The external report: what the release tells and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.pipeline import Outcome
from maskwell.report import external_report
from maskwell.report.external import example
from maskwell.report.words import figure, percent

Build = Callable[..., Outcome]
RECIPIENT = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
AMOUNTS = ("INCOME", "HOME_VAL", "MORTGAGE", "MAINTAIN", "TAXES")


def text(page: str) -> str:
    return re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>|<svg.*?</svg>", " ", page, flags=re.DOTALL))


def test_the_page_is_whole_and_needs_nothing_beside_it(external: str) -> None:
    assert external.startswith("<!DOCTYPE html>\n")
    assert not re.search(r"https?://|<script|<link|<img|@import|url\((?!#)", external)
    for title in (
        "What was done to the data",
        "The noise card",
        "How to analyse it",
        "What not to conclude",
        "Columns",
    ):
        assert f">{title}</h2>" in external
    assert "data@office.example" in external


def test_nothing_private_is_told(external: str, outcome: Outcome) -> None:
    told = text(external)
    for name in AMOUNTS:
        column = outcome.utility[name]
        assert figure(column.mean_after) in told
        for true in (column.mean, column.sd):
            assert figure(true) not in told.split()
    for risk in outcome.after.values():
        assert percent(risk.rate) not in told
    for word in ("intruder", "tolerat", "linked", "audit", "attempt"):
        assert word not in told.lower()
    ids = outcome.masking.truth.ids
    assert ids is not None
    assert not [one for one in ids.to_pylist() if one in external]


def test_the_figures_follow_from_the_release_alone(external: str, outcome: Outcome) -> None:
    """What a reader computes from the released file is what the page says."""
    frame = outcome.masking.release.table
    for name in AMOUNTS:
        values = frame.floats(name)
        assert figure(float(np.nanmean(values))) in text(external)
        assert figure(float(np.nanstd(values, ddof=1))) in text(external)


def test_the_open_card_is_there_as_it_is_written(external: str, outcome: Outcome) -> None:
    (law,) = json.loads(outcome.masking.release.card.to_json())["laws"]
    for sd in law["noise"]["sds"]:
        assert figure(sd) in text(external)


@pytest.mark.parametrize("leaves", ["sealed", "kept"])
def test_a_card_that_does_not_leave_is_not_told(build: Build, leaves: str) -> None:
    outcome = build(card={"leaves": leaves})
    page = external_report(outcome)
    words = text(page).split()
    (law,) = outcome.masking.release.card.to_dict()["laws"]
    for sd in law["noise"]["sds"]:
        assert figure(sd) not in words
        assert f"{sd:g}" not in words
    for name in AMOUNTS:
        assert figure(outcome.utility[name].sd_corrected) not in words
    assert outcome.masking.card.swapped is not None
    assert f"{100 * outcome.masking.card.swapped.share:.3g}%" not in page
    assert "ask data@office.example." in page
    assert "<svg" not in page
    assert ("card.json.age" in page) is (leaves == "sealed")
    assert ("mw.fit" in page) is (leaves == "sealed")


def test_the_example_has_five_lines_and_runs_on_the_release(outcome: Outcome, tmp_path: Any) -> None:
    lines = example(outcome).splitlines()
    assert len(lines) == 5
    assert lines[1] == "release = mw.read_release('release')"
    assert lines[3] == "posterior = mw.fit('HOME_VAL ~ INCOME + TAXES', release, missing='drop')"
    compile("\n".join(lines), "example", "exec")


def test_the_example_names_odd_columns_as_formulas_do(build: Build, outcome: Outcome) -> None:
    without = build(models=[])
    assert "mw.fit('INCOME ~ HOME_VAL + MORTGAGE', release, missing='drop')" in example(without)


def test_the_example_opens_a_sealed_card_as_its_recipients_can(build: Build) -> None:
    to = build(card={"leaves": "sealed", "recipients": [RECIPIENT]})
    assert "mw.read_release('release', identity=\"my-identity.txt\")" in example(to)
    assert "Whoever holds an identity" in external_report(to)
    by_passphrase = build(card={"leaves": "sealed"})
    lines = example(by_passphrase).splitlines()
    assert lines[0] == "from getpass import getpass"
    assert (
        lines[2] == "release = mw.read_release('release', passphrase=getpass(\"Passphrase of the card: \"))"
    )
    compile("\n".join(lines), "example", "exec")
    page = external_report(by_passphrase)
    assert "identity" not in page
    assert "Whoever holds its passphrase can open it" in page


def test_a_column_without_a_description_is_told_by_its_kind(external: str, outcome: Outcome) -> None:
    schema = outcome.masking.release.table.schema
    said = (
        schema["INCOME"].description
        or {"integer": "whole number", "continuous": "amount"}[schema["INCOME"].kind]
    )
    assert f'<th scope="row">INCOME</th><td>{said}</td>' in external
    assert "<td></td>" not in external[external.index('id="done"') : external.index('id="card"')]


@pytest.mark.parametrize("leaves", ["open", "sealed", "kept"])
def test_a_seed_is_told_however_the_card_leaves(build: Build, seeded: Outcome, leaves: str) -> None:
    page = external_report(build(card={"leaves": leaves}, masking=seeded.masking))
    assert "this release is for studies, not for use." in page


def test_what_stays_inside_is_not_named(build: Build) -> None:
    """Neither the steward's own file nor a column that was dropped."""
    import pyarrow as pa

    from maskwell.schema import Column, Schema
    from maskwell.table import Table
    from maskwell.utility import compare

    rng = np.random.default_rng(2)
    columns = Column("a", "continuous", frozenset({"key"})), Column("HIV", "continuous", drop=True)
    frame = pa.table({"a": rng.normal(50, 9, 80), "HIV": rng.normal(0, 1, 80)})
    masking = mw.apply(
        mw.IndependentNoise("a", variance_ratio=0.2), Table.from_frame(frame, Schema(columns)), seed=3
    )
    given = build(report={}, models=[{"formula": "a ~ HIV"}])
    page = external_report(replace(given, masking=masking, utility=compare(masking)))
    assert "HIV" not in page
    assert "housing" not in page
    assert "mw.fit(&#x27;a ~ 1&#x27;, release)" in page


def test_a_column_with_a_hostile_name_stays_text(build: Build) -> None:
    import pyarrow as pa

    from maskwell.schema import Column, Schema
    from maskwell.table import Table
    from maskwell.utility import compare

    name = "</pre><script>alert(1)</script> \"é'" + "x" * 200
    rng = np.random.default_rng(1)
    schema = Schema((Column(name, "continuous", frozenset({"key"})), Column("b", "continuous")))
    table = Table.from_frame(pa.table({name: rng.normal(50, 9, 80), "b": rng.normal(0, 1, 80)}), schema)
    masking = mw.apply(mw.IndependentNoise((name,), variance_ratio=0.2), table, seed=3)
    page = external_report(replace(build(models=[]), masking=masking, utility=compare(masking)))
    assert "<script" not in page
    assert page.count("</pre>") == 1
    assert "alert(1)" in page


def test_the_same_outcome_gives_the_same_bytes(external: str, outcome: Outcome) -> None:
    assert external_report(outcome) == external


def test_groups_numbered_anew_and_rounded_columns_are_not_said_to_be_as_collected() -> None:
    from maskwell.report.external import _unmasked_column_notes

    columns = (
        mw.Column("household", "integer", frozenset({"group"})),
        mw.Column("income", "continuous", frozenset({"key"})),
        mw.Column("rooms", "continuous", frozenset({"key"}), unit=1),
    )
    data = {"household": [1, 1, 2, 2], "income": [1.5, 2.5, 4.0, 9.0], "rooms": [1.2, 2.0, 3.0, 4.0]}
    truth = mw.Table.from_frame(pa.table(data), mw.Schema(columns))
    masking = mw.apply(mw.IndependentNoise("income", variance=1.0), truth, seed=1)
    said = ["Groups are numbered anew: household.", "Rounded to a unit: rooms."]
    assert _unmasked_column_notes(masking.release, ("income",)) == said
    assert _unmasked_column_notes(masking.release, ()) == [
        *said,
        "All other columns are as they were collected.",
    ]
