"""The plan of a whole release: every section from TOML, there and back, and every problem at once."""

from __future__ import annotations

import json
import tomllib
from dataclasses import FrozenInstanceError, fields, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwell as mw
from maskwell.attacks import BayesIntruder, Fingerprint, Linkage, NearestRecord, Relative, Sample
from maskwell.errors import BadPlan
from maskwell.plan import DEFAULT_INTRUDERS, MaskPlan, ModelPlan, ReleasePlan, type_words
from maskwell.plan.mask_plan import OF_RELEASES
from maskwell.plan.release_plan import ONCE, STEPS
from maskwell.tolerances import ExpectedH, MaxRate, ProbH, Ratio

LEAST = """
[input]
file = "survey.csv"
[[masks]]
mask = "CorrelatedNoise"
columns = "role: key"
r0 = 0.97
[output]
release = "out"
private = "inside"
"""

WHOLE = (
    LEAST
    + """
earlier = "first"
[tolerance]
prob_h = { below = 3, at_most = 0.1 }
intruders = ["near", "informed"]
over = "outlying"
[calibrate]
replicates = 5
per_column = true
precision = 0.05
[[intruders]]
name = "near"
attack = "NearestRecord"
[[intruders]]
name = "informed"
attack = "NearestRecord"
distance = "posterior"
match_blocks = []
[[intruders]]
name = "matcher"
attack = "Linkage"
rule = { rule = "Relative", ratio = 0.2 }
[[intruders]]
attack = "Fingerprint"
[[intruders]]
name = "unsure"
attack = "BayesIntruder"
prior = { mean_over_sd = 5.0 }
targets = { sample = 7 }
[targets]
match_blocks = "REGION"
fields = ["INCOME", "TAXES"]
sample = 100
[[models]]
formula = "INCOME ~ TAXES"
at_most_wider = 0.3
[[models]]
formula = "OWNER ~ TAXES"
family = "binary"
[utility]
groups = "REGION"
[audit]
largest = 5000
[card]
leaves = "sealed"
recipients = ["age1abc"]
[report]
title = "Survey"
organisation = "Office"
contact = "steward"
"""
)


def plan_of(text: str, folder: Path = Path()) -> ReleasePlan:
    return ReleasePlan.from_dict(tomllib.loads(text), folder)


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(BadPlan) as refusal:
        plan_of(text)
    return refusal.value.problems


def test_a_short_plan_has_all_sections() -> None:
    plan = plan_of(LEAST)
    assert (plan.tolerance.tolerance, plan.tolerance.intruders, plan.tolerance.over) == (
        MaxRate(0.15),
        (),
        "all",
    )
    assert (plan.calibrate, plan.swap, plan.intruders, plan.models) == (None, None, (), ())
    assert (plan.targets.shared, plan.card.leaves, plan.audit.limits) == ({}, "open", {})
    assert isinstance(plan, MaskPlan)


def test_the_role_key_means_numbers_that_leave() -> None:
    key = frozenset({"key"})
    columns = (
        mw.Column("INCOME", "integer", key),
        mw.Column("PHONE", "integer", key, drop=True),
        mw.Column("SEX", "category", key, categories=("f", "m")),
    )
    plan, schema = plan_of(LEAST), mw.Schema(columns)
    assert plan.mask(schema).columns == ("INCOME",)
    assert plan.masked(schema) == {"INCOME"}
    with pytest.raises(BadPlan, match="no number has the role key"):
        plan.mask(mw.Schema(columns[1:]))


def test_every_section_is_read() -> None:
    plan = plan_of(WHOLE, Path("/survey"))
    assert plan.tolerance.tolerance == ProbH(3, 0.1)
    assert (plan.tolerance.intruders, plan.tolerance.over) == (("near", "informed"), "outlying")
    assert plan.calibrate is not None
    assert (plan.calibrate.replicates, plan.calibrate.confirmations, plan.calibrate.per_column) == (
        5,
        40,
        True,
    )
    assert plan.targets.shared["targets"] == Sample(100)
    assert plan.models == (
        ModelPlan(formula="INCOME ~ TAXES", at_most_wider=0.3),
        ModelPlan(formula="OWNER ~ TAXES", family="binary"),
    )
    assert plan.utility.groups == ("REGION",)
    assert (plan.card.leaves, plan.card.recipients) == ("sealed", ("age1abc",))
    assert (plan.output.release, plan.output.earlier) == (Path("/survey/out"), Path("/survey/first"))


def test_intruders_take_from_targets_what_they_leave_open() -> None:
    found = dict(plan_of(WHOLE).intruders)
    shared: dict[str, Any] = {"fields": ("INCOME", "TAXES"), "targets": Sample(100)}
    assert found["near"] == NearestRecord(match_blocks=("REGION",), **shared)
    assert found["informed"] == NearestRecord(match_blocks=(), distance="posterior", **shared)
    assert found["matcher"] == Linkage(match_blocks=("REGION",), rule=Relative(0.2), **shared)
    assert found["Fingerprint"] == Fingerprint(match_blocks=("REGION",), targets=Sample(100))
    assert isinstance(found["unsure"], BayesIntruder)
    assert found["unsure"].targets == Sample(7)


@pytest.mark.parametrize("text", [LEAST, WHOLE, LEAST + "[swap]\n", LEAST + "[calibrate]\n"])
def test_a_plan_is_read_back_from_its_plain_data(text: str) -> None:
    plan = plan_of(text, Path("folder"))
    data = plan.to_dict()
    assert ReleasePlan.from_dict(json.loads(json.dumps(data, allow_nan=False))) == plan
    assert ("swap" in data, "calibrate" in data) == (plan.swap is not None, plan.calibrate is not None)


@pytest.mark.parametrize(
    ("line", "tolerance"),
    [
        ("max_rate = 0", MaxRate(0.0)),
        ("max_ratio = 2", Ratio(2.0)),
        ("expected_h = 3", ExpectedH(3.0)),
        ("prob_h = { below = 2, at_most = 0.05 }", ProbH(2, 0.05)),
    ],
)
def test_tolerances(line: str, tolerance: Any) -> None:
    assert plan_of(f"{LEAST}[tolerance]\n{line}\n").tolerance.tolerance == tolerance


def test_who_is_held_to_the_tolerance() -> None:
    everybody = {
        "near": NearestRecord(),
        "matcher": Linkage(),
        "all help": BayesIntruder(helpers="all"),
        "law": BayesIntruder(),
    }
    assert plan_of(LEAST).held(everybody) == ("near", "matcher", "law")
    assert plan_of(f"{LEAST}[tolerance]\nexpected_h = 3\n").held(everybody) == ("near",)
    named = plan_of(f'{LEAST}[tolerance]\nintruders = "the ceiling"\n')
    assert named.held(everybody) == ("the ceiling",)


def test_plans_are_frozen_and_relative_to_their_file(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(LEAST, encoding="utf-8")
    plan = ReleasePlan.read(tmp_path / "plan.toml")
    assert plan.input.file == tmp_path / "survey.csv"
    with pytest.raises(FrozenInstanceError):
        plan.models = ()  # type: ignore[misc]


WRONG = [
    ("[tolerence]", "unknown section [tolerence] (did you mean 'tolerance'?)"),
    ("[tolerance]\nmax_rate = 1.5", "[tolerance]: max_rate takes a share between 0 and 1, not 1.5"),
    ("[tolerance]\nmax_rate = 'x'", "[tolerance]: max_rate must be a number"),
    (
        "[tolerance]\nmax_rate = 0.1\nmax_ratio = 2",
        "[tolerance]: give one of max_rate, max_ratio, not several",
    ),
    ("[tolerance]\nprob_h = 3", "[tolerance]: prob_h must be a table such as { below = 3, at_most = 0.1 }"),
    ("[tolerance]\nprob_h = { below = 3 }", "[tolerance]: prob_h: at_most is needed"),
    ("[tolerance]\nmax_rat = 0.1", "[tolerance]: unknown key 'max_rat' (did you mean 'max_rate'?)"),
    ("[tolerance]\nover = 'some'", "[tolerance]: over is one of 'all', 'outlying', not 'some'"),
    ("[tolerance]\nover = 3", "[tolerance]: over must be text"),
    ("[tolerance]\nintruders = [3]", "[tolerance]: intruders must be a list of the names of intruders"),
    (
        "[tolerance]\nintruders = ['nearest, informd']",
        "[tolerance]: there is no intruder 'nearest, informd' (did you mean 'nearest, informed'?)",
    ),
    (
        "[tolerance]\nexpected_h = 3\nintruders = ['knows the law']",
        "[tolerance]: intruder 'knows the law' has no h: take a NearestRecord, or max_rate",
    ),
    (
        "[[tolerance]]",
        "[tolerance] must be a section: write [tolerance] on a line of its own, its keys below",
    ),
    (
        "[calibrate]\nreplicates = 1",
        "[calibrate]: replicates is a whole number of at least 2 (one draw has no standard error), not 1",
    ),
    ("[calibrate]\nper_colum = true", "[calibrate]: unknown key 'per_colum' (did you mean 'per_column'?)"),
    ("[calibrate]\nlevel = 0.5", "[calibrate]: level is a number between 0 and 0.5, not 0.5"),
    ("[calibrate]\nreplicates = 2.5", "[calibrate]: replicates must be a whole number"),
    (
        "[swap]\nintruder = 'the celing'",
        "[swap]: there is no intruder 'the celing' (did you mean 'the ceiling'?)",
    ),
    (
        "[swap]\ndomains = 3",
        "[swap]: domains must be a list of column names, or of lists of those to be crossed",
    ),
    (
        "[swap]\n[tolerance]\nexpected_h = 3",
        "[swap]: records are exchanged until max_rate or max_ratio holds: give one in [tolerance]",
    ),
    ("[intruders]", "intruders are a list: write [[intruders]], in double brackets, above each"),
    (
        "[[intruders]]\nname = 'x'",
        "intruder 1 needs attack = one of Linkage, NearestRecord, BayesIntruder, Fingerprint",
    ),
    (
        "[[intruders]]\nattack = 'Linkge'",
        "intruder 1 needs attack = one of Linkage, NearestRecord, BayesIntruder, Fingerprint (did you mean 'Linkage'?)",
    ),
    (
        "[[intruders]]\nattack = 'Linkage'\nfeilds = 'A'",
        "intruder 1 (Linkage): unknown key 'feilds' (did you mean 'fields'?)",
    ),
    ("[[intruders]]\nattack = 'Linkage'\nname = 3", "intruder 1 (Linkage): name must be text"),
    (
        "[[intruders]]\nattack = 'Linkage'\nassignment = 'bst'",
        "intruder 1 (Linkage): assignment must be 'best' or 'one-to-one', not 'bst'",
    ),
    (
        "[[intruders]]\nattack = 'Linkage'\nrule = { rule = 'Relative', rati = 1 }",
        "intruder 1 (Linkage): an option has a value of the wrong kind (TypeError)",
    ),
    (
        "[[intruders]]\nattack = 'Linkage'\n[[intruders]]\nattack = 'Linkage'",
        "two intruders are named 'Linkage': give each a name of its own",
    ),
    ("[targets]\nsample = 0", "[targets]: Sample takes a whole number of at least 1, not 0"),
    (
        "[targets]\ntarget_blocks = 'A'",
        "[targets]: target_blocks needs largest_target_block: how small is small?",
    ),
    ("[[models]]\nfamily = 'binary'", "model 1: formula is needed"),
    (
        "[[models]]\nformula = 'INCOME'",
        "model 1: a formula has a response and terms, such as 'INCOME ~ AGE + SEX'",
    ),
    (
        "[[models]]\nformula = 'A ~ B'\nat_most_wider = 0",
        "model 1: at_most_wider is a share above 0, such as 0.30 for intervals 30% wider",
    ),
    ("[audit]\nlargest = 3", "[audit]: largest is a whole number of at least 100"),
    (
        "[audit]\nlimits = 3",
        '[audit]: limits must be a table such as { "informed links" = { warn = 0.1, fail = 0.15 } }',
    ),
    (
        "[card]\nleaves = 'seald'",
        "[card]: leaves is one of 'open', 'sealed', 'kept', not 'seald' (did you mean 'sealed'?)",
    ),
    (
        "[card]\nrecipients = ['age1x']",
        "[card]: recipients are those of a sealed card, not of one that is open",
    ),
    (
        "[card]\nleaves = 'sealed'\nrecipients = ['me']",
        "[card]: a recipient is the public key of an age identity, which begins with age1",
    ),
    ("[card]\npassphrase = 'x'", "[card]: unknown key 'passphrase'"),
    ("[report]\ntitel = 'x'", "[report]: unknown key 'titel' (did you mean 'title'?)"),
]


@pytest.mark.parametrize(("text", "problem"), WRONG, ids=[text for text, _ in WRONG])
def test_what_is_wrong_is_named_with_its_section(text: str, problem: str) -> None:
    assert problems_of(f"{LEAST}{text}\n") == (problem,)


def test_limits_of_the_audit_are_those_of_its_checks() -> None:
    limits = '[audit.limits."informed links"]\nwarn = 0.05\nfail = 0.1\n'
    assert plan_of(LEAST + limits).audit.limits == {"informed links": {"warn": 0.05, "fail": 0.1}}
    assert problems_of(LEAST + limits.replace("links", "link")) == (
        "[audit]: the audit has no check 'informed link' (did you mean 'informed links'?)",
    )
    (found,) = problems_of(LEAST + limits.replace("0.05", "0.5"))
    assert found.startswith("[audit]: limits of 'informed links': a check warns before it fails")


def test_families_are_those_of_fit() -> None:
    (found,) = problems_of(f"{LEAST}[[models]]\nformula = 'A ~ B'\nfamily = 'gausian'\n")
    assert found.startswith("model 1: family 'gausian' is not one of gaussian,")
    assert found.endswith("(did you mean 'gaussian'?)")


def test_every_problem_is_listed_at_once() -> None:
    text = """
    [input]
    fil = "a.csv"
    [[masks]]
    mask = "CorrelatedNois"
    [tolerance]
    max_rate = 2
    overr = 3
    intruders = ["nobody"]
    [calibrate]
    replicates = 1
    precison = 0.1
    [[models]]
    formula = "y"
    [card]
    leaves = "seald"
    """
    found = "\n".join(problems_of(text))
    for part in (
        "fil'",
        "file is needed",
        "no section [output]",
        "CorrelatedNois'",
        "max_rate",
        "overr",
        "nobody",
    ):
        assert part in found
    for part in ("replicates", "precison", "a formula has", "seald"):
        assert part in found


def test_a_plan_for_masking_alone_refuses_what_only_a_release_does() -> None:
    with pytest.raises(BadPlan, match=r"section \[tolerance\] is for maskwell release: run that"):
        MaskPlan.from_dict(tomllib.loads(f"{LEAST}[tolerance]\nmax_rate = 0.1\n"))


def test_the_sections_are_the_fields_of_the_plan() -> None:
    names = {item.name for item in fields(ReleasePlan)}
    assert names == set(ReleasePlan.sections) == {"input", "masks", "output", *OF_RELEASES}


@pytest.mark.parametrize("kind", [*ONCE.values(), *STEPS.values(), ModelPlan])
def test_there_are_words_for_the_type_of_every_key(kind: Any) -> None:
    assert is_dataclass(kind)
    assert "something else" not in {type_words(get_type_hints(kind)[item.name]) for item in fields(kind)}


def test_calibration_and_plan_have_the_same_defaults() -> None:
    from maskwell.calibration import Search
    from maskwell.plan import CalibratePlan

    plan, search = CalibratePlan(), Search()
    default = {item.name: getattr(search, item.name) for item in fields(plan)} | {
        "replicates": search.draws()
    }
    assert {item.name: getattr(plan, item.name) for item in fields(plan)} == default


ANYTHING = st.recursive(
    st.one_of(
        st.booleans(), st.integers(-3, 3), st.floats(), st.sampled_from(["", "A", "all", "best", "Relative"])
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["rule", "sample", "at", "weights", "A"]), inner, max_size=3),
    ),
    max_leaves=5,
)


@pytest.mark.parametrize("name", list(mw.attacks.ATTACKS))
@settings(max_examples=25)
@given(data=st.data())
def test_whatever_an_intruder_is_told_is_built_or_refused(name: str, data: st.DataObject) -> None:
    """No other exception comes out, whatever stands at the keys of an intruder."""
    options = [item.name for item in fields(mw.attacks.ATTACKS[name])]
    chosen = data.draw(st.sets(st.sampled_from(options), min_size=1, max_size=4))
    section = {"attack": name} | {option: data.draw(ANYTHING) for option in sorted(chosen)}
    try:
        built = ReleasePlan.from_dict(tomllib.loads(LEAST) | {"intruders": [section]}).intruders
    except BadPlan:
        built = ()
    assert all(isinstance(attack, mw.attacks.ATTACKS[name]) for _, attack in built)


@settings(max_examples=50)
@given(section=st.sampled_from(ReleasePlan.sections), value=ANYTHING)
def test_whatever_stands_in_a_section_is_built_or_refused(section: str, value: Any) -> None:
    try:
        plan = ReleasePlan.from_dict(tomllib.loads(LEAST) | {section: value})
    except BadPlan:
        return
    assert isinstance(plan, ReleasePlan)


def test_the_default_intruders_are_named_once() -> None:
    assert len(set(DEFAULT_INTRUDERS)) == len(DEFAULT_INTRUDERS) == 8
