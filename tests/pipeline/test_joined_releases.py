"""Who holds an earlier release too: rows joined over both, against brute force, and the verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import maskwell as mw
from maskwell.pipeline.joined_releases import joined_releases, joined_risk

from .homes import folder, plan_in, short_audit

__all__ = ["folder", "short_audit"]  # fixtures

N, SD = 400, 1.0
LIFTED = {"informed links": 1.0, "outer links": 1.0, "top values": 1.0, "best estimate": 0.0}
NAMES = ("a", "b", "c", "d")
INTRUDER = mw.BayesIntruder()


def people(keys: str, flags: str, shift: float = 0.0, seed: int = 3) -> mw.Table:
    """Return people with an id, four amounts and two flags; those named leave, amounts as keys and flags in clear."""
    rng = np.random.default_rng(seed)
    data = {"id": [f"p{i:04d}" for i in range(N)]}
    data |= {name: np.round(rng.normal(0, 2, N), 6) + shift for name in NAMES}
    data |= {name: rng.choice(["no", "yes"], N) for name in ("f", "g")}
    columns = {"id": {"kind": "text", "roles": ["id"]}}
    columns |= {
        name: {"kind": "continuous", "unit": 1e-6, "roles": ["key"], "drop": name not in keys}
        for name in NAMES
    }
    columns |= {
        name: {"kind": "category", "roles": ["block"], "categories": ["no", "yes"], "drop": name not in flags}
        for name in ("f", "g")
    }
    schema = mw.Schema.from_dict({"series": "people", "columns": columns})
    return mw.Table.from_frame(pa.table(data), schema)


def masked(table: mw.Table, keys: str, earlier=None, sd: float = SD):
    noises = [mw.IndependentNoise((name,), variance=sd**2) for name in keys]
    return mw.apply(mw.Chain(noises), table, seed=7, earlier=earlier)


def log_density(table: mw.Table, masking, name: str, sd: float = SD) -> np.ndarray:
    """Return log p(z | x) of all records (rows) and all released ones in the order of the truth (columns)."""
    return norm.logpdf(masking.masked.floats(name)[None, :], table.floats(name)[:, None], sd)


def found_by_brute_force(logs: np.ndarray, tables, flags: str) -> float:
    for name in flags:
        codes = tables.floats(name)
        logs = np.where(codes[:, None] == codes[None, :], logs, -np.inf)
    weights = logs - logsumexp(logs, axis=0)
    return float((weights.argmax(axis=1) == np.arange(N)).mean())


@pytest.fixture(scope="module")
def two():
    first, second = people("ab", "f"), people("bcd", "g")
    before = masked(first, "ab")
    return before, masked(second, "bcd", before), second


def test_joined_rows_are_found_as_by_brute_force(two):
    before, now, table = two
    joined = joined_releases(now, before)
    assert joined.added() == ("a", "f")
    assert np.all(joined.paired == 1)  # b leaves twice with one noise, and no two values are alike
    base = mw.attack(INTRUDER, now)
    logs = sum(log_density(table, now, name) for name in "bcd") + log_density(table, before, "a")
    own = found_by_brute_force(logs, table, "fg")
    assert joined_risk(INTRUDER, joined, base).rate == pytest.approx(own)
    assert own > 1.5 * base.rate


def test_the_same_columns_again_tell_nothing_more():
    table = people("ab", "f")
    before = masked(table, "ab")
    assert joined_releases(masked(table, "ab", before), before).added() == ()


def test_a_release_that_only_adds_noise_tells_nothing_beside_the_earlier_one():
    table = people("ab", "f")
    before = masked(table, "ab")
    assert joined_releases(masked(table, "ab", before, sd=2 * SD), before).added() == ()


def test_more_noise_on_the_same_value_counts_by_the_earlier_cell():
    before, table = masked(people("ab", "f"), "ab"), people("abc", "f")
    now = masked(table, "abc", before, sd=2 * SD)
    joined = joined_releases(now, before)
    assert joined.added() == ("a", "b")
    logs = sum(log_density(table, before, name) for name in "ab")
    logs = logs + log_density(table, now, "c", sd=2 * SD)
    own = found_by_brute_force(logs, table, "f")
    assert joined_risk(INTRUDER, joined, mw.attack(INTRUDER, now)).rate == pytest.approx(own)


def test_values_that_changed_pair_no_rows():
    before = masked(people("ab", "f"), "ab")
    now = masked(people("ab", "f", shift=0.001), "ab", before)
    joined = joined_releases(now, before)
    assert joined.added() == ("a", "b")
    assert joined.paired.max() < 2 / (N / 2)  # one of all who share the flag
    base = mw.attack(INTRUDER, now)
    assert joined_risk(INTRUDER, joined, base).rate == pytest.approx(base.rate, abs=0.02)


def test_a_column_that_the_earlier_release_left_out_is_drawn_again():
    first = masked(people("ab", "f"), "ab")
    second = masked(people("bc", "f"), "bc", first)
    third_table = people("bcd", "f")
    joined = joined_releases(masked(third_table, "bcd", second), second)
    assert set(joined.added()) == {"a"}
    shown = joined.masking.release.table.floats("a (earlier)")
    assert np.array_equal(shown, first.masked.floats("a"))


def test_what_was_in_clear_before_counts_as_such():
    before = masked(people("ab", "f"), "a")  # b leaves as it is
    now = masked(people("ac", "f"), "ac", before)
    joined = joined_releases(now, before)
    assert joined.clear == ("b (earlier)",)
    assert joined_risk(INTRUDER, joined, mw.attack(INTRUDER, now)).rate > 0.99


def test_sensitive_columns_and_those_nobody_knows_are_left_out(two):
    before, now, _ = two
    assert joined_releases(now, before, not_known=("a",)).added() == ("f",)


@pytest.mark.usefixtures("short_audit")
def test_a_release_that_the_earlier_one_opens_is_refused(folder):
    """X leaves in blocks of KIND, then with Y in blocks of REGION: who has both files knows all four."""
    columns = mw.read(folder / "homes.csv", folder / "homes.toml").schema
    for name, left_out in (("first", ("REGION", "Y")), ("second", ("KIND",))):
        changed = {one: replace(columns[one], drop=True) for one in left_out}
        (folder / f"{name}.toml").write_text(columns.changed(changed).to_toml())
    noise = [{"mask": "IndependentNoise", "columns": name, "variance_ratio": 0.04} for name in "XY"]
    law = {"intruders": [{"name": "law", "attack": "BayesIntruder"}], "tolerance": {"max_rate": 0.3}}

    def released(schema: str, masks: list, out: str, **earlier: str):
        files = {"input": {"file": "homes.csv", "schema": f"{schema}.toml"}}
        target = {"output": {"release": out, "private": "inside", **earlier}}
        limits = {"audit": {"limits": {name: {"warn": at, "fail": at} for name, at in LIFTED.items()}}}
        plan = plan_in(folder, *masks, **files, **target, **law, **limits)
        return mw.release(plan, seed=11, study=True, advise=False, despite="a test" if out == "out" else None)

    released("first", noise[:1], "out")
    found = released("second", noise, "later", earlier="out")
    assert not found.passed
    assert "has the earlier release with KIND" in found.reasons[0]
    assert found.after["law"].rate < 0.3
