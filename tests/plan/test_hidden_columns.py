"""What a draft offers to hide is enough, by its own count and by another's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maskwell.pipeline import inspect_file
from maskwell.plan import InputPlan
from maskwell.plan.draft import gap_questions
from maskwell.plan.draft_decisions import DecidedSchema, decide
from maskwell.plan.draft_masks import floor_limit, guessing_limit, pram_offer, to_drop
from maskwell.plan.hidden_columns import found_by_likelihood, is_enough

N = 600


def decided(folder: Path, **columns: Any) -> DecidedSchema:
    from maskwell.io import load

    rows = zip(*(map(str, values) for values in columns.values()), strict=True)
    text = "\n".join([",".join(columns), *(",".join(row) for row in rows)]).replace("nan", "")
    (folder / "my.csv").write_text(f"{text}\n", encoding="utf-8")
    source = InputPlan(file=folder / "my.csv")
    return decide(load(source.file), inspect_file(source)[0])


def test_gaps_are_dropped_with_their_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    amounts = {f"X{i}": rng.lognormal(8, 1, N).round(1) for i in range(4)}
    for i in (1, 2):
        amounts[f"X{i}"][rng.random(N) < 0.5] = np.nan
    region = rng.integers(0, 12, N)
    found = decided(tmp_path, REGION=region, SECTOR=rng.integers(0, 12, N), **amounts)
    columns = to_drop(found)
    assert columns
    assert is_enough(found.clear, columns, floor_limit(), guessing_limit())
    assert not is_enough(found.clear, columns[:-1], floor_limit(), guessing_limit())


def test_random_changes_are_offered_only_where_they_are_enough(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    few = decided(
        tmp_path, A=rng.integers(0, 9, N), B=rng.integers(0, 9, N), X=rng.lognormal(8, 1, N).round(1)
    )
    offer = pram_offer(few)
    assert offer is not None
    assert set(offer.columns) == set(to_drop(few))
    assert found_by_likelihood(few.clear, offer.columns, offer.stay) <= guessing_limit()
    (tmp_path / "many").mkdir()
    traits = {f"T{i}": rng.integers(0, 5, N) for i in range(7)}
    assert pram_offer(decided(tmp_path / "many", **traits, X=rng.lognormal(8, 1, N).round(1))) is None


def test_the_share_found_by_likelihood_is_that_of_brute_force(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    kinds, stay = rng.choice(30, N, p=np.arange(1, 31) / 465) % 15, 0.6
    found = decided(tmp_path, KIND=kinds, X=rng.lognormal(8, 1, N).round(1))
    draws = []
    for _ in range(300):  # of the records that kept the target's kind or came to it one is right
        moved = (kinds + rng.integers(1, 15, N)) % 15
        released = np.where(rng.random(N) < stay, kinds, moved)
        draws.append(float(np.mean((released == kinds) / np.bincount(released, minlength=15)[released])))
    error = np.hypot(np.std(draws) / 2, np.std(draws) / 300**0.5) + 0.002  # 4 draws of 500 of the 600 targets
    assert found_by_likelihood(found.clear, ("KIND",), stay) == pytest.approx(np.mean(draws), abs=4 * error)


def test_a_class_that_shares_amounts_is_dropped_and_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    works, region, kids = rng.random(N) < 0.55, rng.integers(0, 4, N), rng.integers(0, 3, N)
    hours = np.where(works, rng.lognormal(1, 1, N).round(1) + 0.1, 0.0)
    found = decided(tmp_path, WORKS=works.astype(int), REGION=region, KIDS=kids, HOURS=hours)
    assert found.schema["WORKS"].drop
    assert not found.schema["HOURS"].drop
    said = next(one for one in found.questions if one.column == "WORKS")
    assert said.taken.startswith("records alike in it ")
    assert said.taken.endswith(" have the same HOURS. Their mean would show it, so WORKS is dropped")
    assert said.otherwise == "Wanted in the release? Then drop HOURS in its place"


def test_all_clear_columns_may_have_to_go(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    found = decided(tmp_path, A=rng.integers(0, 25, 300), X=rng.lognormal(8, 1, 300).round(1))
    assert is_enough(found.clear, ("A",), floor_limit(), guessing_limit())
    assert to_drop(found) in ([], ["A"])


def test_guessing_counts_which_values_are_missing(tmp_path: Path) -> None:
    """By brute force: one of each combination of clear values and gaps is found."""
    rng = np.random.default_rng(7)
    x, y = rng.lognormal(8, 1, N).round(1), rng.lognormal(8, 1, N).round(1)
    x[rng.random(N) < 0.3] = np.nan
    y[rng.random(N) < 0.1] = np.nan
    kind = rng.integers(0, 4, N)
    found = decided(tmp_path, KIND=kind, X=x, Y=y)
    combinations = set(zip(kind.tolist(), np.isnan(x).tolist(), np.isnan(y).tolist(), strict=True))
    assert found.clear.guessing() == len(combinations) / N
    assert found.clear.guessing(("X", "Y")) == 4 / N


def test_columns_with_the_same_gaps_go_together_and_are_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    gone = rng.random(N) < 0.02
    amounts = {f"X{i}": np.where(gone, np.nan, rng.lognormal(8, 1, N).round(1)) for i in range(3)}
    kinds = {f"K{i}": rng.integers(0, 4, N) for i in range(2)}
    found = decided(tmp_path, **kinds, **amounts, Y=rng.lognormal(8, 1, N).round(1))
    assert found.clear.with_gaps()["X1"] == ("X0", "X1", "X2")
    (said,) = gap_questions(found)
    assert f"X0, X1, X2: no value, or a code, in the same {gone.sum()} records" in said.taken
    assert "for without one of them the others still tell" in said.otherwise
    assert found.clear.guessing(("X0",)) == found.clear.guessing()  # one alone changes nothing
    assert set(to_drop(found)) in ({"X0", "X1", "X2"}, {"K0"}, {"K1"})


def test_gaps_of_categories_that_change_at_random_count_and_are_asked_about(tmp_path: Path) -> None:
    """A change at random leaves a missing value missing: by brute force, and never below the share that is alone."""
    rng = np.random.default_rng(9)
    answers = {name: rng.integers(0, 4, N).astype(str) for name in ("A", "B", "C")}
    for place, values in enumerate(answers.values()):
        values[rng.random(N) < 0.1 * (place + 1)] = "nan"
    found = decided(tmp_path, **answers, WHOLE=rng.integers(0, 3, N))
    assert found.changed == ("A", "B", "C", "WHOLE")
    patterns = list(zip(*((values == "nan").tolist() for values in answers.values()), strict=True))
    assert found.clear.guessing() == len(set(patterns)) / N
    assert found.floor is not None
    assert found.floor.rate <= found.clear.guessing()
    assert found.clear.guessing(("A", "B", "C")) == 1 / N
    (said,) = gap_questions(found)
    counts = ", ".join(f"{name} ({(values == 'nan').sum()})" for name, values in answers.items())
    assert said.taken.startswith(f"{counts}: records without a value, or with a code")


def test_what_is_missing_stays_so_where_changes_are_offered(tmp_path: Path) -> None:
    """However seldom a category stays: with every second missing, one of each half at least is found."""
    rng = np.random.default_rng(10)
    kinds = np.where(np.arange(N) % 2 == 0, "nan", rng.integers(0, 5, N).astype(str))
    found = decided(tmp_path, KIND=kinds, X=rng.lognormal(8, 1, N).round(1))
    blind = found_by_likelihood(found.clear, ("KIND",), 1 / 5)  # as likely to stay as to become any other
    assert blind == pytest.approx(2 / N, abs=1e-9)
