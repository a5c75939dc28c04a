"""What an audit says: limits and verdicts, findings in words and as figures, limits that a plan changes."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from maskwell.checks import Audit, Finding, Limits, audit, whole_audit
from maskwell.checks.evidence import Evidence
from maskwell.checks.findings import FAIL, NOT_CHECKED, PASS, WARN
from maskwell.checks.noise_checks import CHECKS
from maskwell.errors import BadPlan
from maskwell.schema import Column

from .noise_plants import released, true_file, with_noise


@pytest.fixture(autouse=True)
def _checks_of_noise(monkeypatch):
    """Audit by the quick checks of the noise alone."""
    monkeypatch.setattr(whole_audit, "checks", lambda: CHECKS[1:])


@pytest.fixture(scope="module")
def masking():
    return released(true_file(), with_noise(true_file()))


def test_limits_judge_from_above_and_from_below():
    above, below = Limits(0.1, 0.2), Limits(0.2, 0.1, below=True)
    assert [above.verdict(x) for x in (0.1, 0.15, 0.3, math.nan)] == [PASS, WARN, FAIL, NOT_CHECKED]
    assert [below.verdict(x) for x in (0.2, 0.15, 0.05)] == [PASS, WARN, FAIL]
    assert [Limits().verdict(x) for x in (-1e9, 1e9)] == [PASS, PASS]
    assert str(below) == "warns below 0.2, fails below 0.1"


@pytest.mark.parametrize("wrong", [(0.2, 0.1, False), (0.1, 0.2, True), ("much", None, False)])
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(BadPlan):
        Limits(*wrong)


def test_every_check_has_limits_a_reason_and_a_remedy():
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names) == 12
    for check in CHECKS:
        assert check.limits.reason
        assert check.remedy.endswith(".")
        assert (check.limits.warn, check.limits.fail) != (None, None)


def test_a_plan_changes_limits(masking):
    strict = audit(masking, limits={"affine noise": {"warn": 0.9, "fail": 0.8}})
    assert strict["affine noise"].verdict == FAIL
    assert strict["affine noise"].limits.reason == "as the plan says"
    assert not strict.passed
    assert audit(masking).passed


def test_every_problem_of_the_limits_is_told_with_its_check(masking):
    wrong = {
        "afine noise": {"warn": 0.1},
        "group sums": 0.2,
        "identities": {"worn": 1},
        "best estimate": {"fail": 0.5},
    }
    with pytest.raises(BadPlan) as refusal:
        audit(masking, limits=wrong)
    told = refusal.value.problems
    assert len(told) == 4
    assert "affine noise" in told[0]
    assert all(name in text for name, text in zip(list(wrong)[1:], told[1:], strict=True))


def test_only_a_masking_can_be_audited(masking):
    with pytest.raises(BadPlan, match="only the steward"):
        audit(masking.release)


def test_an_audit_is_figures_only_and_fits_the_screen(masking):
    found = audit(masking, largest=500)
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [one["check"] for one in told["findings"]] == list(found)
    assert max(map(len, repr(found).splitlines())) <= 100
    assert found["best estimate"].sampled == 500
    assert "500 of 1,500 released records" in repr(found)
    assert found.table.num_rows == len(found)


def test_the_worst_stands_first():
    limits = Limits(0.1, 0.2)
    findings = [
        Finding(name, x, limits.verdict(x), limits, said=name)
        for name, x in (("a", 0.0), ("b", 0.15), ("c", 1))
    ]
    lines = Audit(tuple(findings)).lines()
    assert lines[0] == "Audit: FAILED (1 pass, 1 warn, 1 fail)"
    assert lines[1].split()[:2] == ["FAIL", "c"]


def test_a_column_of_another_type_with_the_same_values_is_not_masked():
    truth = true_file(100)
    columns = {"wealth": Column("wealth", "continuous", frozenset({"key"}))}
    values = {"wealth": truth.floats("wealth"), "income": with_noise(truth)["income"]}
    evidence = Evidence(released(truth, values, columns=columns))
    assert evidence.masked_columns == ("income",)
    assert "wealth" in evidence.clear
    np.testing.assert_array_equal(evidence.places, evidence.masking.order)
