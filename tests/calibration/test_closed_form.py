"""Moore's conjectures, as he states them."""

from __future__ import annotations

import json
from dataclasses import replace
from math import isnan

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

from maskwell.attacks import Absolute, Relative
from maskwell.calibration.closed_form import closed_form, moore_noise, uniform_agreement

FIELDS = ("INCOME", "HOME_VAL", "MORTGAGE", "MAINTAIN", "TAXES")
TABLE_5 = (0.2064, 0.1504, 0.1447, 0.3165, 0.1395)


def moore_of(table, disagreeing=0, rule=None):
    return moore_noise(table, FIELDS, (rule or Relative(0.10),) * 5, disagreeing=disagreeing)


def test_table_5_is_reproduced_to_its_four_decimals(survey):
    assert tuple(round(one.sd_ratio, 4) for one in moore_of(survey).fields) == TABLE_5


def test_his_suggestions(survey):
    moore = moore_of(survey)
    assert round(moore.smallest, 4) == 0.1395
    assert round(moore.most_open, 4) == round(moore.substantial, 4) == 0.2064
    assert round(moore.largest, 4) == 0.3165
    assert [round(moore_of(survey, k).ignoring, 4) for k in range(5)] == [
        0.2064,
        0.1447,
        0.1504,
        0.2064,
        0.3165,
    ]


def test_all_is_labelled_as_his(survey):
    data = moore_of(survey).to_dict()
    assert data["label"].startswith("Moore's conjectures")
    assert data["uniform_agreement"] == uniform_agreement()
    assert "agrees with probability 0.7697" in "\n".join(moore_of(survey).lines())
    json.dumps(data, allow_nan=False)


def test_at_his_noise_a_uniform_field_still_agrees():
    assert uniform_agreement() == pytest.approx(quad(lambda t: erf(np.sqrt(6) * t), 0, 1)[0], abs=1e-12)
    assert round(uniform_agreement(), 4) == 0.7697


@pytest.mark.parametrize("q", [0.02, 0.3])
def test_that_share_is_a_simulation_of_his_formula(q):
    rng = np.random.default_rng(3)
    x = 700 * rng.random(200_000)
    noise = closed_form(q, 700, x.std()) * x.std() * rng.standard_normal(len(x))
    agree = np.abs(noise) <= q * x
    assert abs(agree.mean() - uniform_agreement()) < 4 * agree.std() / len(x) ** 0.5


def test_without_tolerance_his_answer_is_no_noise(survey):
    assert moore_of(survey, rule=Relative(0)).largest == 0


def test_where_it_says_nothing_it_says_why(survey, amounts):
    assert all("relative" in one.why for one in moore_of(survey, rule=Absolute(5)).fields)
    uncoded = amounts(top=None, bottom=None)
    moore = moore_noise(uncoded, ("BLOCK", "A", "B"), (Relative(0.1),) * 3)
    assert [one.column for one in moore.fields] == ["A", "B"]
    assert all("top and a bottom code" in one.why and isnan(one.sd_ratio) for one in moore.fields)
    assert all(isnan(value) for value in moore.answers().values())


def test_a_constant_field_has_no_answer(amounts):
    table = amounts()
    column = table.schema["A"]
    values, status = np.full(len(table), 300.0), np.zeros(len(table), np.uint8)
    constant = table.with_columns({"A": (replace(column), values, status)})
    moore = moore_noise(constant, ("A", "B"), (Relative(0.1),) * 2)
    assert moore.fields[0].why.endswith("no variance")
    assert moore.smallest == moore.fields[1].sd_ratio
