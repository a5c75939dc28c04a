"""Who expects unknown columns by what he knows: against brute force, and in the verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logsumexp, ndtri
from scipy.stats import rankdata

import maskwell as mw
from maskwell.notes import texts
from maskwell.pipeline.predicted_columns import predicting_risk, unknown_columns, variates
from maskwell.plan import ReleasePlan
from maskwell.schema import Column, Schema
from maskwell.table import Table

KNOWN, UNKNOWN, RECORDS = ("X", "Y"), ("A", "B", "C", "D"), 1_500


def people(follows: float, seed: int = 5) -> Table:
    """Two amounts that are known, and answers to four questions that follow them more or less."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((RECORDS, 2))
    lines = x @ rng.standard_normal((2, 4)) * follows + rng.standard_normal((RECORDS, 4)) * 0.5
    data = {"X": x[:, 0], "Y": x[:, 1], **{name: lines[:, k] for k, name in enumerate(UNKNOWN)}}
    columns = [Column(name, "continuous", frozenset({"key"})) for name in KNOWN]
    for name in UNKNOWN:
        data[name] = np.where(data[name] > 0, "yes", "no")
        columns.append(Column(name, "category", frozenset({"sensitive"}), categories=("no", "yes")))
    return Table.from_frame(pa.table(data), Schema(tuple(columns)))


def masked(follows: float, ratio: float = 1.0) -> mw.Masking:
    return mw.apply(mw.IndependentNoise(KNOWN, variance_ratio=ratio), people(follows), seed=2)


def by_brute_force(masking: mw.Masking, *, expects: bool) -> float:
    """Weigh every pair by f(z | x) f(u | x) / f(z, u), with a law of u by least squares on X, Y and their squares."""
    truth, released, order = masking.truth, masking.release.table, masking.order
    x, z = truth.values(list(KNOWN)), released.values(list(KNOWN))
    sd = x.std(axis=0, ddof=1)
    logs = -0.5 * (((x[:, None] - z[None]) / sd) ** 2).sum(axis=2)
    if expects:
        u = truth.values(list(UNKNOWN))
        design = np.column_stack([np.ones(len(x)), x, x**2])
        hat = design @ np.linalg.pinv(design)
        residuals = (u - hat @ u) / (1 - np.diag(hat))[:, None]
        far = (u - residuals)[:, None] - u[order][None]
        logs -= 0.5 * np.einsum("ijk,kl,ijl->ij", far, np.linalg.inv(np.cov(residuals.T)), far)
    logs -= logsumexp(logs, axis=0)
    return float((order[logs.argmax(axis=1)] == np.arange(len(x))).mean())


def test_he_finds_what_brute_force_finds():
    masking, plan = masked(2.0), mw.BayesIntruder(fields=KNOWN)
    law, expects = mw.attack(plan, masking), predicting_risk(plan, masking, KNOWN, KNOWN)
    few = 4 * (0.03 / RECORDS) ** 0.5  # ranks make other scores than values: pairs at the edge fall otherwise
    assert law.rate == pytest.approx(by_brute_force(masking, expects=False), abs=1e-9)
    assert expects.rate == pytest.approx(by_brute_force(masking, expects=True), abs=few)
    assert expects.rate > 1.3 * law.rate


def test_texts_count_as_categories_of_their_values():
    masking = masked(2.0)
    words = {name: Column(name, "text", frozenset({"sensitive"})) for name in UNKNOWN}
    table = masking.truth
    texts = Table(table.schema.changed(words), table.data)
    own = mw.apply(mw.IndependentNoise(KNOWN, variance_ratio=1.0), texts, seed=2)
    assert unknown_columns(own, KNOWN) == list(UNKNOWN)
    plan = mw.BayesIntruder(fields=KNOWN)
    found, expected = (predicting_risk(plan, one, KNOWN, KNOWN) for one in (own, masking))
    assert found is not None
    assert expected is not None
    assert found.rate == pytest.approx(expected.rate)


def test_columns_that_follow_nothing_known_tell_nothing():
    masking = masked(0.0)
    assert variates(masking, list(UNKNOWN), list(KNOWN)).names == ()
    assert predicting_risk(mw.BayesIntruder(fields=KNOWN), masking, KNOWN, KNOWN) is None


def test_a_record_does_not_tell_its_own_values():
    """What is expected of a record is what a law expects that was fitted to all others."""
    masking = mw.apply(
        mw.IndependentNoise(KNOWN, variance_ratio=1.0), people(2.0).take(np.arange(40)), seed=2
    )
    found = variates(masking, ["A"], list(KNOWN))
    scores = ndtri(rankdata(masking.truth.values(list(KNOWN)), axis=0) / 41)
    design = np.column_stack([np.ones(40), scores, scores**2])
    levels, answer = np.unique(found.values[:, 0], return_inverse=True)
    assert len(levels) == 2
    for i in (0, 7, 23):
        others = np.arange(40) != i
        law = np.linalg.lstsq(design[others], answer[others], rcond=None)[0]
        expected = levels[0] + design[i] @ law * np.ptp(levels)
        assert found.expected[i, 0] == pytest.approx(expected, abs=1e-3)


def test_ids_groups_and_columns_with_shared_noise_are_no_unknown_ones():
    schema = Schema(
        (
            Column("ID", "text", frozenset({"id"})),
            Column("HOME", "integer", frozenset({"group"})),
            *people(1.0).schema.columns,
        )
    )
    table = people(1.0)
    data = {name: table.data.column(name) for name in table.names}
    added = {"ID": [f"p{i}" for i in range(RECORDS)], "HOME": np.arange(RECORDS) // 2}
    whole = Table.from_frame(pa.table({**added, **data}), schema)
    masking = mw.apply(mw.CorrelatedNoise(KNOWN, sd_ratio=0.5), whole, seed=1)
    assert unknown_columns(masking, KNOWN) == list(UNKNOWN)
    assert unknown_columns(masking, ("X",)) == list(UNKNOWN)  # Y has its noise together with X


PLAN = """
[input]
file = "people.parquet"
schema = "people.toml"

[[masks]]
mask = "IndependentNoise"
columns = "role: key"
variance_ratio = 1.0

[[intruders]]
name = "knows the law"
attack = "BayesIntruder"

[tolerance]
max_rate = {tolerated}

[output]
release = "out"
private = "inside"
"""


@pytest.mark.parametrize(("tolerated", "passes"), [(0.012, False), (0.2, True)])
def test_a_release_is_refused_by_what_he_finds_or_says_it(tmp_path: Path, tolerated: float, passes: bool):
    table = people(0.8)
    mw.write(table, tmp_path / "people.parquet")
    (tmp_path / "people.toml").write_text(table.schema.to_toml())
    (tmp_path / "plan.toml").write_text(PLAN.format(tolerated=tolerated))
    outcome = mw.release(ReleasePlan.read(tmp_path / "plan.toml"), seed=3, study=True, advise=False)
    said = [one for one in (*outcome.reasons, *texts(outcome.notes)) if "go with what he knows" in one]
    assert len(said) == 1
    assert any(said[0] == one for one in outcome.reasons) is not passes


WEAKER = """
[input]
file = "people.parquet"
schema = "people.toml"

{masks}
[[intruders]]
name = "nearest record"
attack = "NearestRecord"

[tolerance]
max_rate = {tolerated}

[output]
release = "out"
private = "inside"
"""
NOISE = '[[masks]]\nmask = "IndependentNoise"\ncolumns = "role: key"\nvariance_ratio = 1.0\n'
SWAPS = "".join(
    f'[[masks]]\nmask = "RankSwap"\ncolumns = ["{name}"]\nwindow_ratio = 0.25\n' for name in KNOWN
)


def verdict_of(folder: Path, plan: str) -> mw.pipeline.Outcome:
    table = people(0.8)
    mw.write(table, folder / "people.parquet")
    (folder / "people.toml").write_text(table.schema.to_toml())
    (folder / "plan.toml").write_text(plan)
    return mw.release(ReleasePlan.read(folder / "plan.toml"), seed=3, study=True, advise=False)


@pytest.mark.parametrize("masks", [NOISE, SWAPS], ids=["noise", "rank swaps"])
@pytest.mark.parametrize("tolerated", [0.012, 0.2])
def test_where_only_weaker_intruders_are_held_he_is_tried_all_the_same(
    tmp_path: Path, tolerated: float, masks: str
):
    outcome = verdict_of(tmp_path, WEAKER.format(tolerated=tolerated, masks=masks))
    refused = [one for one in outcome.not_judged if "go with what he knows" in one]
    noted = [one for one in outcome.notes if one.code == "pipeline.predicted_columns_unheld"]
    assert (len(refused), len(noted)) == ((1, 0) if tolerated < 0.1 else (0, 1))
    assert not any("go with what he knows" in one for one in outcome.reasons)


def test_where_he_takes_long_it_is_said_that_he_is_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("maskwell.checks.links.MANY_PAIRS", 0)
    outcome = verdict_of(tmp_path, WEAKER.format(tolerated=0.2, masks=NOISE))
    (note,) = (one for one in outcome.notes if one.code == "pipeline.predicted_columns_untried")
    assert str(note).startswith("not tried: knows the law, and how A, B, D go with what he knows (")
