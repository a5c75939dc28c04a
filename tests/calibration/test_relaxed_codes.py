"""Codes relaxed: coding is that of the mask, the answer is as safe as the present code, and refusals are plain."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maskwell.attacks import Exact, Linkage
from maskwell.calibration import relaxed_code, with_codes
from maskwell.calibration.closed_form import closed_form
from maskwell.calibration.relaxed_codes import _consistent
from maskwell.errors import BadInput, BadPlan
from maskwell.masking import apply
from maskwell.masks import Coding


@pytest.fixture(scope="module")
def uncoded(amounts):
    """Return amounts of which A has no top code, B and C have both."""
    return with_codes(
        amounts(300, top=None, bottom=None), {"A": (100, None), "B": (100, 900), "C": (100, 900)}
    )


@pytest.fixture(scope="module")
def relaxed(uncoded):
    return relaxed_code(uncoded, "A", 0.2, code=700)


def test_codes_are_those_of_the_mask(amounts):
    table = amounts(top=None, bottom=None)
    coded = with_codes(table, {"A": (300, 700)})
    masked = apply(Coding(("A",), top=700, bottom=300), table, seed=1).masked
    np.testing.assert_array_equal(coded.status("A"), masked.status("A"))
    np.testing.assert_array_equal(coded.floats("A"), masked.floats("A"))
    assert coded.schema["A"] == masked.schema["A"]


def test_the_answer_is_as_safe_as_the_present_code(relaxed):
    figures = {one.code: one for one in relaxed.figures}
    present, answer = figures[700], figures[relaxed.relaxed]
    assert answer.correct <= present.correct + present.correct_error + answer.correct_error
    beyond = [
        one
        for one in relaxed.figures
        if relaxed.is_needed and (one.code is None or one.code > relaxed.relaxed)
    ]
    assert all(one.correct > present.correct for one in beyond)


def test_a_code_without_values_beyond_codes_fewer_and_fewer(relaxed):
    coded = [one.coded for one in relaxed.figures]
    assert coded == sorted(coded, reverse=True)
    assert coded[-1] == 0
    assert relaxed.figures[-1].code is None
    assert relaxed.figures[0].moore_sd_ratio == pytest.approx(closed_form(0.1, 600, relaxed.figures[0].sd))


def test_a_bottom_code_mirrors_a_top_code(amounts):
    table = amounts(250, top=None, bottom=None)
    column, values = table.schema["A"], table.floats("A")
    mirrored = table.with_columns({"A": (column, 1000 - values, table.status("A"))})
    rule = {"A": Exact()}  # as safe on both sides: a relative rule is not
    plan = Linkage(fields=("A",), rules=rule)
    above = relaxed_code(with_codes(table, {"A": (200, None)}), "A", 0.2, code=600, attack=plan)
    below = relaxed_code(
        with_codes(mirrored, {"A": (None, 800)}), "A", 0.2, code=400, side="bottom", attack=plan
    )
    assert [one.coded for one in above.figures] == [one.coded for one in below.figures]
    np.testing.assert_allclose([one.correct for one in above.figures], [one.correct for one in below.figures])
    assert above.relaxed == (None if below.relaxed is None else 1000 - below.relaxed)


def test_moore_turned_round_is_his_formula(relaxed):
    sd = relaxed.figures[0].sd
    assert closed_form(0.1, relaxed.moore - 100, sd) == pytest.approx(0.2)


def test_the_consistent_code_has_the_sd_that_it_leaves():
    values = np.sort(np.random.default_rng(2).lognormal(4, 0.7, 500))
    assert np.isnan(_consistent(values, 0.0, 0.1))
    for reach in (4.5, 6.0, 9.0):
        code = _consistent(values, 0.0, reach)
        sd = values[values < code].std(ddof=1)
        later = [c for c in values[values > code] if c <= reach * values[values < c].std(ddof=1)]
        assert code <= reach * sd * (1 + 1e-9)
        assert later == []


def test_it_is_written_and_shown(relaxed):
    json.dumps(relaxed.to_dict(), allow_nan=False)
    shown = repr(relaxed)
    assert "top code 700 of A" in shown
    assert "Moore's formula turned round" in shown
    assert len(shown.splitlines()) < 25


def test_unknown_amounts_are_refused(amounts):
    with pytest.raises(BadInput, match="'A' has top-coded values whose amounts are not in the table"):
        relaxed_code(amounts(top=700), "A", 0.2, code=700)


@pytest.mark.parametrize(
    ("column", "options", "words"),
    [
        ("A", {"code": 700, "side": "left"}, "'top' or 'bottom'"),
        ("a", {"code": 700}, "did you mean 'A'"),
        ("BLOCK", {"code": 700}, "only numbers have codes"),
        ("A", {"code": 10_000}, "nothing to relax"),
        ("A", {"code": 700, "attack": Linkage(fields=("B",))}, "does not compare column 'A'"),
    ],
)
def test_what_has_no_code_to_relax_is_refused(uncoded, column, options, words):
    with pytest.raises((BadInput, BadPlan), match=words):
        relaxed_code(uncoded, column, 0.2, **options)


def test_codes_are_for_numbers(amounts):
    with pytest.raises(BadPlan, match="codes are for numbers"):
        with_codes(amounts(), {"BLOCK": (1, 2)})
    with pytest.raises(BadPlan, match="nope"):
        with_codes(amounts(), {"nope": (1, 2)})
