"""Who knows when a record entered a growing file, against brute force."""

from __future__ import annotations

import numpy as np
import pytest

import maskwell as mw
from maskwell.errors import NoLaw
from maskwell.pipeline.entry_times import entry_risk

from .test_joined_releases import INTRUDER, N, found_by_brute_force, log_density, masked, people


@pytest.fixture(scope="module")
def growing():
    """Three releases: a quarter of the people, a half, and all."""
    table = people("ab", "")
    releases = list[mw.Masking]()
    for count in (N // 4, N // 2, N):
        part = table.take(np.arange(count))
        releases.append(masked(part, "ab", releases[-1] if releases else None))
    return table, releases


def test_the_rows_of_earlier_releases_are_looked_for_apart_as_by_brute_force(growing):
    table, (first, second, third) = growing
    logs = log_density(table, third, "a") + log_density(table, third, "b")
    entered = np.searchsorted([N // 4, N // 2], np.arange(N), side="right")
    for past, classes in (([second], entered == 2), ([second, first], entered)):
        own = found_by_brute_force(np.where(classes[:, None] == classes, logs, -np.inf), table, "")
        found = entry_risk(INTRUDER, third, past)
        assert found is not None
        assert found.rate == pytest.approx(own)
        assert found.rate > mw.attack(INTRUDER, third).rate


def test_noise_that_was_added_tells_the_rows_apart_too(growing):
    table, (first, *_) = growing
    louder = masked(table, "ab", first, sd=2.0)
    found = entry_risk(INTRUDER, louder, [first])
    assert found is not None
    assert found.rate > mw.attack(INTRUDER, louder).rate


def test_where_nobody_entered_or_no_amount_is_in_both_nothing_is_told(growing):
    table, _ = growing
    whole = masked(table, "ab")
    assert entry_risk(INTRUDER, masked(table, "ab", whole), [whole]) is None
    few = masked(people("c", "").take(np.arange(100)), "c")
    assert entry_risk(INTRUDER, masked(table, "ab", few), [few]) is None


def two_waves(tmp_path):
    """Release 540 records, and then 600, of whom the new ones are few; return both outcomes."""
    from maskwell.plan import ReleasePlan

    rng = np.random.default_rng(8)
    rows = [f"p{i},{a:.2f},{b:.2f}" for i, (a, b) in enumerate(rng.normal(0, 10, (600, 2)))]
    schema = '[columns.id]\nkind = "text"\nroles = ["id"]\n'
    schema += "".join(
        f'[columns.{name}]\nkind = "continuous"\nunit = 0.01\nroles = ["key"]\n' for name in "ab"
    )
    (tmp_path / "s.toml").write_text(schema)
    plan = """[input]\nfile = "{number}.csv"\nschema = "s.toml"
[[masks]]\nmask = "IndependentNoise"\ncolumns = ["a", "b"]\nvariance = 9.0
[[intruders]]\nname = "knows the law"\nattack = "BayesIntruder"
[tolerance]\nmax_rate = {rate}
[audit.limits]
"outer links" = {{ warn = 1.0, fail = 1.0 }}
"informed links" = {{ warn = 1.0, fail = 1.0 }}
"top values" = {{ warn = 1.0, fail = 1.0 }}
[output]\nrelease = "out{number}"\nprivate = "inside"\n{earlier}"""
    said = []
    for number, count, rate in ((1, 540, 0.9), (2, 600, 0.1)):
        (tmp_path / f"{number}.csv").write_text("\n".join(["id,a,b", *rows[:count]]) + "\n")
        earlier = 'earlier = "out1"\n' if number == 2 else ""
        text = plan.format(number=number, rate=rate, earlier=earlier)
        (tmp_path / "plan.toml").write_text(text)
        outcome = mw.release(ReleasePlan.read(tmp_path / "plan.toml"), seed=3, study=True, advise=False)
        said.append(outcome)
    return said


def test_a_growing_file_is_refused_where_new_rows_are_found(tmp_path):
    first, second = two_waves(tmp_path)
    assert first.passed
    assert second.after["knows the law"].rate < 0.1
    assert len([one for one in second.reasons if "when each record entered" in one]) == 1


def test_where_he_cannot_be_tried_the_release_is_not_judged(tmp_path, monkeypatch):
    def refuse(*_):
        raise NoLaw("a law has no density")

    monkeypatch.setattr("maskwell.pipeline.verdict.entry_risk", refuse)
    _, second = two_waves(tmp_path)
    assert second.reasons == ()
    (said,) = second.not_judged
    assert said.startswith(
        "not tried: knows the law, and by the earlier releases when each record entered (a law"
    )
