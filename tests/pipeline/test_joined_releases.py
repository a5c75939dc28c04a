"""Who holds an earlier release too: rows joined over both, against brute force, and the verdict."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import maskwell as mw
from maskwell.pipeline.joined_audit import joined_failures
from maskwell.pipeline.joined_releases import joined_releases, joined_risk

from .homes import folder, plan_in, short_audit

__all__ = ["folder", "short_audit"]  # fixtures

N, SD = 400, 1.0
LIFTED = {"informed links": 1.0, "outer links": 1.0, "top values": 1.0, "best estimate": 0.0}
LIFTED_LIMITS = {name: {"warn": at, "fail": at} for name, at in LIFTED.items()}
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


def test_texts_join_as_categories_of_their_values_do(two):
    """A text of the earlier release alone is known beside, and the same text again tells nothing more."""
    before, now, _ = two

    def in_words(one: mw.Table) -> mw.Table:
        plain = {name: replace(one.schema[name], kind="text", categories=()) for name in ("f", "g")}
        return replace(one, schema=one.schema.changed(plain))

    first = masked(in_words(people("ab", "f")), "ab")
    second = masked(in_words(people("bcd", "g")), "bcd", first)
    joined = joined_releases(second, first)
    assert joined.added() == ("a", "f")
    as_categories = joined_risk(INTRUDER, joined_releases(now, before), mw.attack(INTRUDER, now))
    as_texts = joined_risk(INTRUDER, joined, mw.attack(INTRUDER, second))
    assert as_texts.rate == pytest.approx(as_categories.rate)
    again = masked(in_words(people("ab", "f")), "ab", first)
    assert joined_releases(again, first).added() == ()


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


def test_columns_in_clear_that_nobody_knows_are_left_out_and_noised_ones_are_not(two):
    before, now, _ = two
    assert joined_releases(now, before, not_known=("a", "f")).added() == ("a",)


def test_a_group_with_a_sensitive_column_is_attacked_as_in_one_release():
    first = people("ab", "f")
    secret = replace(first.schema["b"], roles=frozenset({"sensitive"}))
    first = replace(first, schema=first.schema.changed({"b": secret}))
    before = mw.apply(mw.CorrelatedNoise(("a", "b"), sd_ratio=0.5), first, seed=7)
    now = masked(people("cd", "f"), "cd", before)
    joined = joined_releases(now, before)
    assert (joined.added(), joined.untried) == (("a", "b"), ())


# Rows that look alike.


def coarse(keys: str, unit: float) -> mw.Table:
    """Return the people with amounts b in such steps that many leave with one value."""
    table = people(keys, "")
    step = replace(table.schema["b"], unit=unit)
    return table.with_columns({"b": (step, np.round(table.floats("b") / unit) * unit, table.status("b"))})


def best_rows_by_brute_force(table: mw.Table, before, now, unit: float) -> tuple[float, float]:
    """Weigh all pairs of rows with one value of b, the pairing of each class balanced, by plain loops and numpy."""
    x, z = table.floats("b"), now.masked.floats("b")
    ends = [norm.cdf((z[None, :] + half - x[:, None]) / SD) for half in (unit / 2, -unit / 2)]
    f1 = np.exp(log_density(table, before, "a"))
    f2 = np.exp(log_density(table, now, "c")) * (ends[0] - ends[1])
    earlier, later = np.zeros((N, N)), np.zeros((N, N))
    for value in np.unique(z):
        rows = np.flatnonzero(z == value)
        mean = f1[:, rows].T @ f2[:, rows]
        pairing = mean.copy()
        for _ in range(500):
            pairing /= pairing.sum(axis=1, keepdims=True)
            pairing /= pairing.sum(axis=0, keepdims=True)
        for i, row in enumerate(rows):
            for j, other in enumerate(rows):
                weight = pairing[i, j] * f1[:, row] * f2[:, other] / mean[i, j]
                earlier[:, row] += weight
                later[:, other] += weight
    return tuple(float((one.argmax(axis=1) == np.arange(N)).mean()) for one in (later, earlier))


@pytest.mark.parametrize("unit", [0.25, 1.0])
def test_all_pairs_of_alike_rows_are_weighed_as_by_brute_force(unit):
    before = masked(coarse("ab", unit), "ab")
    now = masked(coarse("bc", unit), "bc", before)
    joined = joined_releases(now, before)
    base = mw.attack(INTRUDER, now)
    found = joined_risk(INTRUDER, joined, base).rate
    rates = best_rows_by_brute_force(coarse("abc", unit), before, now, unit)
    assert joined.paired.mean() < 0.6
    assert found == pytest.approx(max(rates), abs=1.5 / N)  # a tie of two weights falls either way
    blindly = joined.paired.mean() * pair_rate(joined, base) + (1 - joined.paired.mean()) * base.rate
    assert found < pair_rate(joined, base)
    assert blindly < pair_rate(joined, base)


def pair_rate(joined, base) -> float:
    """Return what who has all rows paired finds."""
    alone = replace(joined, alike=np.arange(N), patterns=np.full(N, -1))
    return joined_risk(INTRUDER, alone, base).rate


def test_of_many_rows_some_are_targets_and_the_rest_count_as_these_at_most(monkeypatch):
    before = masked(coarse("ab", 1.0), "ab")
    now = masked(coarse("bc", 1.0), "bc", before)
    joined, base = joined_releases(now, before), mw.attack(INTRUDER, now)
    every = joined_risk(INTRUDER, joined, base).rate
    monkeypatch.setattr("maskwell.pipeline.row_pairs.MOST_PAIRS", 150 * N)
    some = joined_risk(INTRUDER, joined, base).rate
    assert (
        every - 2 * (every * (1 - every) / 150) ** 0.5 < some < every + 6 * (every * (1 - every) / 150) ** 0.5
    )


# What joined rows give away without a link.


def sums(keys: str) -> mw.Table:
    """Return people of whom d is a + b + c, and e is b, each with a noise of its own."""
    table = people(keys, "")
    total = sum(table.floats(name) for name in "abc")
    return table.with_columns({"d": (table.schema["d"], np.round(total, 6), table.status("d"))})


def test_a_sum_whose_parts_left_before_is_found_in_the_joined_rows():
    before = masked(sums("abc"), "abc", sd=2.0)
    now = masked(sums("ad"), "ad", before, sd=2.0)
    joined = joined_releases(now, before)
    risk = joined_risk(INTRUDER, joined, mw.attack(INTRUDER, now))
    assert "identities" in [one.check for one in joined_failures(joined, before, risk, LIFTED_LIMITS)]
    assert mw.audit(now, limits=LIFTED_LIMITS)["identities"].verdict != "fail"


def changed(table: mw.Table, name: str, by: float, every: int = 10) -> mw.Table:
    """Return a table in which every tenth value of a column (or so) is another one."""
    values = table.floats(name) + np.where(np.arange(N) % every == 0, by, 0.0)
    return table.with_columns({name: (table.schema[name], np.round(values, 6), table.status(name))})


@pytest.mark.parametrize(("sd", "added"), [(2.0, ("a", "b")), (1.0, ("a",))])
def test_a_value_that_left_with_less_noise_is_no_news(sd, added):
    """Nine values in ten are as before and get more noise: the release adds nothing to the earlier one there."""
    before = masked(people("ab", ""), "ab")
    now = masked(changed(people("ab", ""), "a", 1.0), "ab", before, sd=sd)
    joined = joined_releases(now, before)
    assert joined.added() == added
    risk = joined_risk(INTRUDER, joined, mw.attack(INTRUDER, now))
    found = joined_failures(joined, before, risk, LIFTED_LIMITS)
    assert "identities" not in [one.check for one in found]


def test_values_that_hardly_changed_average_their_noises():
    before = masked(people("ab", ""), "ab")
    now = masked(changed(people("ab", ""), "a", 1e-6, every=1), "ab", before)
    joined = joined_releases(now, before)
    risk = joined_risk(INTRUDER, joined, mw.attack(INTRUDER, now))
    found = joined_failures(joined, before, risk, LIFTED_LIMITS)
    assert "near-duplicate columns" in [one.check for one in found]


# Three releases in a row, and texts.


def three(by: float = 1.0):
    """Return three releases of a, which changes each time for everybody, and b, which stays."""
    tables = [people("ab", "")]
    for _ in range(2):
        tables.append(changed(tables[-1], "a", by, every=1))
    releases = [masked(tables[0], "ab")]
    for table in tables[1:]:
        releases.append(masked(table, "ab", releases[-1]))
    return tables, releases


def test_three_draws_of_revised_values_count_as_by_brute_force():
    tables, (first, second, third) = three()
    joined = joined_releases(third, second, before=[first])
    assert joined.added() == ("a",)
    assert joined.fields == ("a (release 1)", "a (earlier)")
    logs = [log_density(t, r, "a") for t, r in zip(tables, (first, second, third), strict=True)]
    b = log_density(tables[2], third, "b")
    base = mw.attack(INTRUDER, third)
    rate = joined_risk(INTRUDER, joined, base).rate
    assert rate == pytest.approx(found_by_brute_force(sum(logs) + b, tables[2], ""))
    two = joined_risk(INTRUDER, joined_releases(third, second), base).rate
    assert two == pytest.approx(found_by_brute_force(logs[1] + logs[2] + b, tables[2], ""))
    assert rate > 1.2 * two


def test_values_of_a_release_that_is_not_at_hand_are_said_not_to_be_tried():
    _, (first, second, third) = three()
    (said,) = joined_releases(third, second).untried
    assert said.startswith(f"a: {N:,} values were others in a release before the earlier one")
    assert joined_releases(third, second, before=[first]).untried == ()


def test_a_cell_that_left_twice_before_counts_once():
    table = people("ab", "")
    first = masked(table, "ab")
    second = masked(table, "ab", first)
    third = masked(changed(table, "a", 1.0, every=1), "ab", second)
    joined = joined_releases(third, second, before=[first])
    assert joined.fields == ("a (release 1)",)


def test_releases_before_are_found_by_their_private_halves(tmp_path):
    from maskwell.masking.release_files import read_masking, series_before

    _, releases = three()
    for number, one in enumerate(releases, 1):
        one.write(release=tmp_path / f"out{number}", private=tmp_path / ("old" if number == 1 else "inside"))
    folders = [tmp_path / "inside", tmp_path / "old"]
    second = read_masking(tmp_path / "out2", folders)
    (first,) = series_before(second, folders)
    assert (first.number, first.release.table.data) == (1, releases[0].release.table.data)
    assert series_before(second, folders[:1]) == ()
    assert series_before(first, folders) == ()
    other = masked(people("ab", ""), "ab")
    mw.apply(mw.IndependentNoise(("a",), variance=1.0), other.truth, seed=8).write(
        release=tmp_path / "other", private=tmp_path / "old"
    )
    assert len(series_before(second, folders)) == 1


def test_a_text_in_clear_pairs_rows_as_a_category_does():
    """Forty places in clear, and one amount that leaves with the same noise in steps: some rows look alike."""
    places = np.random.default_rng(5).choice([f"place {i}" for i in range(40)], N)

    def rate(kind: str) -> float:
        def placed(keys: str) -> mw.Table:
            table = people(keys, "")
            schema = table.schema.to_dict()
            labels = {"categories": sorted(set(places))} if kind == "category" else {}
            schema["columns"]["place"] = {"kind": kind, **labels}
            data = table.to_arrow().append_column("place", pa.array(places))
            return mw.Table.from_frame(data, mw.Schema.from_dict(schema))

        before = masked(placed("ab"), "ab")
        now = masked(placed("bc"), "bc", before)
        intruder = mw.BayesIntruder(match_blocks=("place",))
        base = mw.attack(intruder, now)
        joined = joined_releases(now, before)
        assert "a" in joined.added()
        return joined_risk(intruder, joined, base).rate

    assert rate("text") == pytest.approx(rate("category"))


def test_who_stands_out_is_looked_for_in_the_joined_rows(two):
    before, now, _ = two
    joined = joined_releases(now, before)
    risk = joined_risk(INTRUDER, joined, mw.attack(INTRUDER, now))
    outer = mw.audit(before, limits=LIFTED_LIMITS)["outer links"].figure
    for limit, failing in ((outer + 0.01, ["outer links"]), (outer / 2, []), (1.0, [])):
        limits = {"outer links": {"warn": limit / 2, "fail": limit}}
        assert [one.check for one in joined_failures(joined, before, risk, limits)] == failing


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
