"""The whole audit: three clean releases of different kinds pass, and what it says can be read and stored."""

from __future__ import annotations

import json
from functools import cache
from math import isnan
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from maskwell.attacks import BayesIntruder, attack
from maskwell.attacks.risk import Risks
from maskwell.checks import Audit, Limits, audit
from maskwell.checks.catalogue import CHECKS, checks
from maskwell.checks.evidence import Evidence
from maskwell.checks.protocol import Check, CheckFigure
from maskwell.checks.quantile_residuals.findings import CHECKS as LAW_CHECKS
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.masks import Chain, CorrelatedNoise, IndependentNoise, MixtureNoise, Pram
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY = Key(np.random.default_rng(11).bytes(32))
RECORDS = 2_000


def key_role(*names: str) -> frozenset[str]:
    return frozenset({"key", *names})


def continuous() -> Masking:
    """Correlated noise, heavy enough, on a continuous file."""
    rng = np.random.default_rng(1)
    shared = rng.standard_normal((RECORDS, 1))
    values = np.round(100 + 10 * (shared + rng.standard_normal((RECORDS, 4))), 1)
    names = ("A", "B", "C", "D")
    columns = tuple(Column(name, "continuous", key_role(), unit=0.1) for name in names)
    ids = Column("ID", "text", frozenset({"id"}))
    frame = pa.table(
        {
            "ID": [f"unit-{i:08d}" for i in rng.permutation(RECORDS)],
            **{name: values[:, j] for j, name in enumerate(names)},
        }
    )
    return apply(
        CorrelatedNoise(names, sd_ratio=0.9), Table.from_frame(frame, Schema((ids, *columns))), key=KEY
    )


def mixed() -> Masking:
    """Mixture noise on amounts, PRAM on a category."""
    rng = np.random.default_rng(2)
    frame = pa.table(
        {
            "REGION": rng.choice(["north", "south", "east", "west"], RECORDS),
            "JOB": rng.choice(["farmer", "miner", "clerk"], RECORDS, p=[0.2, 0.3, 0.5]),
            "HOURS": np.rint(38 + 8 * rng.standard_normal(RECORDS)),
            "WAGE": np.rint(2_500 + 500 * rng.standard_normal(RECORDS)),
        }
    )
    schema = Schema(
        (
            Column("REGION", "category", frozenset({"block"}), categories=("north", "south", "east", "west")),
            Column("JOB", "category", key_role(), categories=("farmer", "miner", "clerk")),
            Column("HOURS", "continuous", key_role(), unit=1),
            Column("WAGE", "continuous", key_role(), unit=1),
        )
    )
    mixture = MixtureNoise(("HOURS", "WAGE"), variance_ratio=1.0, within_variance_ratio=0.3)
    return apply(Chain((mixture, Pram(("JOB",), stay=0.7))), Table.from_frame(frame, schema), key=KEY)


def skewed() -> Masking:
    """Noise on the log scale of skewed amounts."""
    rng = np.random.default_rng(3)
    logs = 9 + 0.5 * rng.standard_normal((RECORDS, 1)) + 0.7 * rng.standard_normal((RECORDS, 3))
    names = ("SALES", "COSTS", "STOCK")
    columns = tuple(Column(name, "integer", key_role()) for name in names)
    frame = pa.table({name: np.rint(np.exp(logs[:, j])).astype(int) for j, name in enumerate(names)})
    mask = CorrelatedNoise(names, sd_ratio=1.0, transform="log")
    return apply(mask, Table.from_frame(frame, Schema(columns)), key=KEY)


CLEAN = {"continuous": continuous, "mixed": mixed, "skewed": skewed}
OF_LAWS = tuple(check.name for check in LAW_CHECKS)  # the long ones, for tests of other checks


@cache
def audited(kind: str) -> Audit:
    """The whole audit of a clean release, made once."""
    return audit(CLEAN[kind]())


@cache
def audited_again() -> tuple[Audit, list[tuple[int, int]]]:
    """The audit of a release made a second time, and what it told on the way."""
    told = list[tuple[int, int]]()
    return audit(mixed(), progress=lambda done, of: told.append((done, of))), told


@pytest.mark.parametrize("kind", CLEAN)
def test_a_clean_release_has_no_fail(kind: str) -> None:
    found = audited(kind)
    assert found.passed, found
    assert len(found) == len(checks())
    for finding in found.findings:
        assert finding.said, finding
        assert finding.remedy
        assert finding.limits.reason


def test_each_finding_is_one_sentence_and_plain_data() -> None:
    found = audited("skewed")
    for finding in found.findings:
        assert "\n" not in finding.said
        assert not finding.said.endswith("."), finding.said  # limits and remedy follow it
    said = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(said)["passed"] is True


def test_too_little_noise_is_refused_by_several_checks() -> None:
    rng = np.random.default_rng(4)
    frame = pa.table({name: np.round(rng.standard_normal(600), 3) for name in "ABC"})
    table = Table.from_frame(
        frame, Schema(tuple(Column(n, "continuous", key_role(), unit=0.001) for n in "ABC"))
    )
    found = audit(apply(IndependentNoise(("A", "B", "C"), variance_ratio=0.0004), table, key=KEY))
    assert not found.passed
    assert {"informed links", "outer links"} <= {finding.check for finding in found.failures}
    assert repr(found).startswith("Audit: FAILED")


def test_limits_of_the_plan_overrule_the_defaults() -> None:
    masking = continuous()
    strict = audit(masking, limits={"informed links": {"warn": 0.0, "fail": 0.0}}, left_out=OF_LAWS)
    assert [finding.check for finding in strict.failures] == ["informed links"]
    assert strict.laxer == ()
    loose = audit(masking, limits={"informed links": Limits()}, left_out=OF_LAWS)
    assert loose["informed links"].verdict == "pass"
    (lifted,) = loose.laxer
    assert lifted.usually == audit(masking, left_out=OF_LAWS)["informed links"].verdict
    assert "laxer by the plan: informed links (for information; by the audit's own limits" in repr(loose)
    assert loose.to_dict()["findings"][list(loose).index("informed links")]["usual"]["fail"] == 0.15
    with pytest.raises(BadPlan, match="informed links"):
        audit(masking, limits={"informed link": {"warn": 0.1}})


def test_attacks_made_already_are_not_made_again() -> None:
    masking = continuous()
    risk = attack(BayesIntruder(), masking)
    found = audit(masking, risks=Risks({"his name": risk}), left_out=OF_LAWS)
    assert found["informed links"].figure == risk.rate
    assert found["informed links"].where == "his name"


def test_an_audit_is_the_same_when_made_again() -> None:
    assert _figures(audited("mixed")) == _figures(audited_again()[0])


def _figures(found: Audit) -> dict[str, str]:
    return {f.check: "-" if isnan(f.figure) else f"{f.figure:.12g}" for f in found.findings}


def test_large_files_are_sampled_and_it_is_said() -> None:
    found = audit(continuous(), largest=300)
    assert found.passed, found
    assert found["informed links"].sampled == 1_000


def test_a_file_masked_elsewhere_can_be_audited(tmp_path: Path) -> None:
    """A known tool's way: one factor for each record, sorted, and the ids of old beside it."""
    rng = np.random.default_rng(5)
    values = np.exp(8 + 0.8 * rng.standard_normal((500, 3)))
    factors = np.exp(0.3 * rng.standard_normal((500, 1)))
    ids = [f"K{i:09d}" for i in rng.permutation(10**6)[:500]]
    for name, part in (("truth", values), ("masked", values * factors)):
        rows = [f"{one},{','.join(f'{v:.4f}' for v in row)}" for one, row in zip(ids, part, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["ID,A,B,C", *rows]))
    schema = Schema(
        (Column("ID", "text", frozenset({"id"})), *(Column(n, "continuous", key_role()) for n in "ABC"))
    )
    links = pa.table({"truth_id": ids, "released_id": ids})
    masking = Masking.from_files(tmp_path / "truth.csv", tmp_path / "masked.csv", links, schema=schema)
    failed = {finding.check for finding in audit(masking).failures}
    assert {"ratios", "id-like columns", "known strings", "order against the original"} <= failed


def test_an_audit_tells_how_far_it_is() -> None:
    made, told = audited_again()
    of = len(made)
    assert told == [(done, of) for done in range(1, of + 1)]


def test_only_a_masking_can_be_audited() -> None:
    with pytest.raises(BadPlan, match="Masking"):
        audit(continuous().release)  # type: ignore[arg-type]


def test_a_new_check_is_made_by_its_line_in_the_catalogue_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def share_of_zeros(evidence: Evidence) -> CheckFigure:
        """Measure the share of released zeros, all numbers together."""
        values = np.concatenate([evidence.released(name) for name in evidence.numbers])
        figure = float(np.mean(values == 0))
        return CheckFigure(figure, f"{figure:.1%} of the released numbers are zero")

    limits = Limits(warn=0.5, reason="a toy of the tests")
    monkeypatch.setitem(CHECKS, "zeros", Check("zeros", limits, "mask less", share_of_zeros))
    assert checks()[-1].name == "zeros"
    others = [name for name in CHECKS if name != "zeros"]
    found = audit(continuous(), left_out=others)
    assert (len(found), found["zeros"].verdict, found["zeros"].limits) == (1, "pass", limits)
    strict = audit(continuous(), left_out=others, limits={"zeros": {"fail": -1.0, "warn": -1.0}})
    assert not strict.passed
