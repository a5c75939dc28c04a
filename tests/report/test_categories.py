"""Masked categories on the recipients' page: by which table they changed, in words, and their shares corrected."""

from __future__ import annotations

import html
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.laws import Transition
from maskwell.plan import ReleasePlan
from maskwell.report.categories import BY_TABLE, PUT_TOGETHER, change_words, changes_of
from maskwell.report.external import external_report
from maskwell.schema import Column, Schema
from maskwell.table import Table

ABC = ("a", "b", "c")


def law(*rows: tuple[float, ...], released_as: tuple[str, ...] = ABC) -> Transition:
    return Transition(("x",), ABC[: len(rows)], released_as, rows)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            law((0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)),
            "Each category is kept with probability 0.8, else replaced by one of the other 2, all equally likely.",
        ),
        (
            law((0.66, 0.34), (0.34, 0.66), released_as=("a", "b")),
            "Each category is kept with probability 0.66, else replaced by the other.",
        ),
        (
            law((0.75, 0.2, 0.05), (0.25, 0.7, 0.05), (0.25, 0.2, 0.55)),
            "Each category is kept with probability 0.5, else replaced by one drawn from all (a 50.0%, b 40.0%, "
            "c 10.0%), which may be the same.",
        ),
        (law((0.8, 0.1, 0.1), (0.3, 0.6, 0.1), (0.1, 0.1, 0.8)), BY_TABLE),
        (law((1.0, 0.0), (0.0, 1.0), (0.0, 1.0), released_as=("a", "bc")), PUT_TOGETHER),
    ],
)
def test_a_table_of_changes_is_told_in_words_that_give_it_again(found: Transition, words: str) -> None:
    assert change_words(found) == words
    tables = changes_of([found])
    assert ("probability of each released category" in "".join(tables)) is (words in (BY_TABLE, PUT_TOGETHER))


def test_a_release_of_categories_has_its_law_its_shares_and_a_fit() -> None:
    rng = np.random.default_rng(3)
    data = {"sex": rng.choice(["f", "m"], 900, p=[0.7, 0.3]), "town": rng.choice(["a", "b", "c"], 900)}
    columns = (Column("sex", "category", categories=("f", "m")), Column("town", "category", categories=ABC))
    masking = mw.apply(
        mw.Pram(("sex", "town"), stay=0.7), Table.from_frame(pa.table(data), Schema(columns)), seed=1
    )
    sections = {
        "input": {"file": "in.csv"},
        "masks": [{"mask": "Pram", "columns": ["sex", "town"], "stay": 0.7}],
    }
    sections |= {"output": {"release": "out", "private": "inside"}}
    plan = ReleasePlan.from_dict(sections, Path())
    page = external_report(SimpleNamespace(plan=plan, masking=masking))
    assert "Law:" not in page
    assert "else replaced by one of the other 2, all equally likely." in page
    assert "posterior = mw.fit(&#x27;sex ~ town&#x27;, release, family=&#x27;logit&#x27;)" in page
    cells = re.search(r"sex: f</th><td[^>]*>(.*?)</td><td[^>]*>(.*?)</td>", html.unescape(page))
    assert cells is not None
    released, corrected = (float(cell.rstrip("%")) / 100 for cell in cells.groups())
    share = masking.release.table.array("sex").to_pylist().count("f") / 900
    assert released == pytest.approx(share, abs=0.0006)
    assert corrected == pytest.approx((share - 0.3) / 0.4, abs=0.0016)
    kept = external_report(
        SimpleNamespace(
            plan=ReleasePlan.from_dict(sections | {"card": {"leaves": "kept"}}, Path()), masking=masking
        )
    )
    assert "share corrected" not in kept
    assert "kept with probability" not in kept
