"""Plan files: every mask from TOML, words for every wrong type, all problems at once."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwell as mw
from maskwell.errors import BadPlan
from maskwell.io.dialect import Dialect
from maskwell.plan import KEYS, InputPlan, MaskPlan, OutputPlan, type_words

HEAD = '[input]\nfile = "survey.csv"\n[output]\nrelease = "out"\nprivate = "inside"\n'

MASKS = [
    (
        'mask = "IndependentNoise"\ncolumns = ["A", "B"]\nvariance = [4, 2.5]\nshape = "laplace"',
        mw.IndependentNoise(("A", "B"), variance=(4.0, 2.5), shape="laplace"),
    ),
    (
        'mask = "IndependentNoise"\ncolumns = "A"\nvariance_ratio = 1\ntransform = "log"\nshift = 5\nclamp = false',
        mw.IndependentNoise("A", variance_ratio=1.0, transform="log", shift=5.0, clamp=False),
    ),
    (
        'mask = "IndependentNoise"\ncolumns = "A"\nvariance_ratio = 0.1\nspread = { form = "power", exponent = 1.0 }',
        mw.IndependentNoise("A", variance_ratio=0.1, spread=mw.laws.Power(1.0)),
    ),
    (
        'mask = "CorrelatedNoise"\ncolumns = ["A", "B"]\nsd_ratio = 0.2\n'
        'spread = { form = "step", breaks = [0, 10], ratios = [1, 2.5, 0] }\n'
        "limits = { A = { low = 0, high = 9 }, B = { high = 5.5 } }",
        mw.CorrelatedNoise(
            ("A", "B"),
            sd_ratio=0.2,
            spread=mw.laws.Step((0.0, 10.0), (1.0, 2.5, 0.0)),
            limits=(("A", 0.0, 9.0), ("B", None, 5.5)),
        ),
    ),
    (
        'mask = "CorrelatedNoise"\ncolumns = ["A", "B"]\nr0 = 0.97\nkeep = "moments"\nskip_constant = true',
        mw.CorrelatedNoise(("A", "B"), r0=0.97, keep="moments", skip_constant=True),
    ),
    (
        'mask = "MixtureNoise"\ncolumns = ["A"]\nvariance_ratio = 0.2\nwithin_variance_ratio = 0.05\ncomponents = 3\n'
        "symmetric = false\nweights = [0.25, 0.5, 0.25]",
        mw.MixtureNoise(
            ("A",),
            variance_ratio=0.2,
            within_variance_ratio=0.05,
            components=3,
            symmetric=False,
            weights=(0.25, 0.5, 0.25),
        ),
    ),
    (
        'mask = "BiasNoise"\ncolumns = "A"\nbias_sd = 0.1\nsd = 3\nshape = "lognormal"',
        mw.BiasNoise("A", bias_sd=0.1, sd=3.0, shape="lognormal"),
    ),
    (
        'mask = "CodeNoise"\ncolumns = "S"\nvariance = [0.1, 0.2]\nrounded = true',
        mw.CodeNoise("S", variance=(0.1, 0.2), rounded=True),
    ),
    (
        'mask = "Pram"\ncolumns = "S"\nmatrix = [[0.9, 0.1], [0, 1]]',
        mw.Pram("S", matrix=((0.9, 0.1), (0.0, 1.0))),
    ),
    ('mask = "Pram"\ncolumns = "S"\nstay = 0.9\ninvariant = true', mw.Pram("S", stay=0.9, invariant=True)),
    ('mask = "Grouping"\ncolumns = "A"\nbreaks = [10, 20]', mw.Grouping("A", breaks=(10.0, 20.0))),
    (
        'mask = "Grouping"\ncolumns = "S"\ngroups = { young = ["1", "2"], old = ["3"] }',
        mw.Grouping("S", groups=(("young", ("1", "2")), ("old", ("3",)))),
    ),
    (
        'mask = "Coding"\ncolumns = ["A", "B"]\ntop = [9, 8]\nbottom = 1',
        mw.Coding(("A", "B"), top=(9.0, 8.0), bottom=1.0),
    ),
    ('mask = "RankSwap"\ncolumns = "A"\nwindow_ratio = 0.05', mw.RankSwap("A", window_ratio=0.05)),
    ('mask = "Subsample"\nfraction = 0.5', mw.Subsample(0.5)),
    ('mask = "Recompute"\ncolumn = "T"\nparts = ["A", "B"]', mw.Recompute("T", (("A", 1.0), ("B", 1.0)))),
    ('mask = "Recompute"\ncolumn = "T"\nparts = { A = 1, B = -2.5 }', mw.Recompute("T", (("A", 1.0), ("B", -2.5)))),
]  # fmt: skip


def plan_of(*masks: str) -> MaskPlan:
    return MaskPlan.from_dict(tomllib.loads(HEAD + "".join(f"[[masks]]\n{mask}\n" for mask in masks)))


def problems_of(text: str) -> tuple[str, ...]:
    with pytest.raises(BadPlan) as refusal:
        MaskPlan.from_dict(tomllib.loads(text))
    return refusal.value.problems


@pytest.mark.parametrize(("text", "mask"), MASKS, ids=[type(mask).__name__ for _, mask in MASKS])
def test_masks_are_read_from_toml(text: str, mask: Any) -> None:
    assert plan_of(text).masks == (mask,)


@pytest.mark.parametrize("mask", [mask for _, mask in MASKS], ids=lambda mask: type(mask).__name__)
def test_what_a_mask_says_of_itself_is_a_section_of_a_plan(mask: Any) -> None:
    assert MaskPlan.from_dict(tomllib.loads(HEAD) | {"masks": [mask.to_dict()]}).masks == (mask,)


def test_every_mask_is_tried() -> None:
    assert {type(mask) for _, mask in MASKS} | {mw.Chain} == set(mw.masks.MASKS.values())


def test_several_masks_are_a_chain() -> None:
    texts, masks = zip(*MASKS[5:7], strict=True)
    schema = mw.Schema((mw.Column("A", "continuous"),))
    assert plan_of(*texts).mask(schema) == mw.Chain(masks)
    assert plan_of(texts[0]).mask(schema) == masks[0]


@pytest.mark.parametrize(
    "kind", [*mw.masks.MASKS.values(), mw.laws.Step, mw.laws.Power, InputPlan, OutputPlan]
)
def test_there_are_words_for_the_type_of_every_parameter(kind: Any) -> None:
    if kind is not mw.Chain:  # a plan's masks are a chain
        assert "something else" not in {type_words(get_type_hints(kind)[item.name]) for item in fields(kind)}


def test_paths_are_relative_to_the_plan(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(
        '\ufeff[input]\nfile = "../data/survey.csv"\nschema = "/etc/schema.toml"\n'
        '[output]\nrelease = "out"\nprivate = "inside"\nearlier = "first"\n'
        '[[masks]]\nmask = "Subsample"\nfraction = 0.5\n',
        encoding="utf-8",
    )
    plan = MaskPlan.read(tmp_path / "plan.toml")
    assert plan.input == InputPlan(file=tmp_path / "../data/survey.csv", schema=Path("/etc/schema.toml"))
    assert (plan.output.release, plan.output.earlier) == (tmp_path / "out", tmp_path / "first")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"[input\n", "is not valid TOML: .* line 1"),
        (b'a = "\xff"', "is not UTF-8 text; save it as UTF-8"),
    ],
)
def test_plans_that_cannot_be_read_are_refused(tmp_path: Path, content: bytes | None, words: str) -> None:
    path = tmp_path / "plan.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BadPlan, match=words):
        MaskPlan.read(path)


def test_an_empty_plan_is_told_what_it_lacks() -> None:
    assert problems_of("") == (
        "the plan has no section [input]",
        "the plan has no section [output]",
        "the plan has no masks: write one [[masks]] section for each, with mask = its name",
    )


def test_sections_of_the_wrong_shape_are_told_how_to_write_them() -> None:
    found = problems_of(
        'input = "survey.csv"\n[output]\nrelease = ""\nprivate = "p"\n[masks]\nmask = "Pram"\n'
    )
    assert found == (
        "[input] must be a section: write [input] on a line of its own, its keys below",
        "[output]: release must be a path",
        "masks are a list: write [[masks]], in double brackets, above each",
    )


WRONG = [
    ("columns = 5", "columns must be a list of column names"),
    ('columns = ["A", 5]', "columns must be a list of column names"),
    ('r0 = "0.9"', "r0 must be a number"),
    ("r0 = true", "r0 must be a number"),
    ("r0 = nan", "r0 must be a number"),
    ("r0 = 1979-05-27", "r0 must be a number"),
    ("r0 = 1.5", "r0 must lie above 0 and at most 1"),
    ("keep = 1", "keep must be text"),
    ('keep = "all"', "keep must be 'means' or 'moments', not 'all'"),
    ("clamp = 1", "clamp must be true or false"),
    ("limits = 4", "limits must be a table such as { INCOME = { low = 0, high = 90000 } }"),
    ("limits = { A = 4 }", "limits of 'A' must be a table such as { low = 0, high = 90 }"),
    ("limits = { A = { lo = 4 } }", "limits of 'A': unknown key 'lo' (did you mean 'low'?)"),
    ('limits = { A = { low = "x" } }', "limits must be a table such as { INCOME = { low = 0, high = 90000 } }"),
    ("limits = { Z = { low = 4 } }", "limits name column 'Z', which this mask does not touch"),
    ("spread = 4", 'spread must be a table such as { form = "power", exponent = 1.0 }'),
    ('spread = { form = "powr" }', "spread needs form = one of 'step', 'power' (did you mean 'power'?)"),
    ("spread = { form = [1] }", "spread needs form = one of 'step', 'power'"),
    ('spread = { form = "power" }', "spread: exponent is needed"),
    (
        'spread = { form = "power", exponent = 9 }',
        "spread: the exponent of a power spread lies above 0 and at most at 4",
    ),
    ('spread = { form = "step", breaks = 1, ratios = [1, 2] }', "spread: breaks must be a list of numbers"),
    ('spred = { form = "step" }', "unknown key 'spred' (did you mean 'spread'?)"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "problem"), WRONG, ids=[line for line, _ in WRONG])
def test_wrong_parameters_are_named(line: str, problem: str) -> None:
    mask = {"columns": 'columns = ["A", "B"]', "r0": "r0 = 0.9", line.split(" ")[0]: line}
    found = problems_of(f'{HEAD}[[masks]]\nmask = "CorrelatedNoise"\n' + "\n".join(mask.values()))
    assert found == (f"mask 1 (CorrelatedNoise): {problem}",)


@pytest.mark.parametrize(
    ("mask", "problem"),
    [
        ("columns = 'A'", "mask 1 does not say which it is: write mask = one of IndependentNoise, CorrelatedNoise,"),
        ("mask = ['Pram']", "mask 1 does not say which it is"),
        ("mask = 'Pramm'", "mask 1: there is no mask 'Pramm' (did you mean 'Pram'?)"),
        ("mask = 'Zzz'", "mask 1: there is no mask 'Zzz'; one of IndependentNoise, CorrelatedNoise,"),
        ("mask = 'Chain'", "mask 1: there is no mask 'Chain'; one of"),
        ("mask = 'RankSwap'", "mask 1 (RankSwap): columns is needed"),
        ("mask = 'Recompute'\ncolumn = 'A'\nparts = { B = 'x' }", "mask 1 (Recompute): parts must be a list of column"),
        ("mask = 'Grouping'\ncolumns = 'A'\ngroups = { a = 5 }", "mask 1 (Grouping): groups must be a table such as"),
        ("mask = 'MixtureNoise'\ncomponents = 2.5", "mask 1 (MixtureNoise): components must be a whole number"),
        ("mask = 'Pram'\ncolumns = 'A'\nmatrix = [1, 2]", "mask 1 (Pram): matrix must be a list of lists of numbers"),
        ("mask = 'Coding'\ncolumns = 'A'\ntop = ['x']", "mask 1 (Coding): top must be a number or a list of numbers"),
    ],
)  # fmt: skip
def test_wrong_masks_are_named(mask: str, problem: str) -> None:
    assert any(found.startswith(problem) for found in problems_of(f"{HEAD}[[masks]]\n{mask}\n"))


@pytest.mark.parametrize(
    ("section", "line", "problem"),
    [
        ("[input]", 'format = "cvs"', "[input]: the format 'cvs' is not one of csv,"),
        ("[input]", 'decimal = ","', "[input]: a decimal sign needs a delimiter too"),
        ("[input]", 'delimiter = ";;"', "[input]: the dialect's delimiter must be one ASCII character"),
        ("[input]", 'delimiter = ","\ndecimal = ","', "[input]: the dialect's delimiter, decimal sign and quote must"),
        ("[input]", "encoding = 8", "[input]: encoding must be text"),
        ("[output]", 'format = "sas7bdat"', "[output]: the format 'sas7bdat' is not one of csv,"),
        ("[output]", 'earlier_private = "p"', "[output]: earlier_private needs earlier too"),
    ],
)  # fmt: skip
def test_wrong_sections_are_named(section: str, line: str, problem: str) -> None:
    text = HEAD.replace(f"{section}\n", f"{section}\n{line}\n") + f"[[masks]]\n{MASKS[14][0]}\n"
    (found,) = problems_of(text)
    assert found.startswith(problem)


def test_the_dialect_is_that_of_the_plan() -> None:
    assert InputPlan(file=Path("x")).dialect is None
    assert InputPlan(file=Path("x"), delimiter=";").dialect == Dialect(";")
    assert InputPlan(file=Path("x"), delimiter=";", decimal=",").dialect == Dialect(";", ",")


def test_all_key_columns_stand_for_the_numbers_of_that_role() -> None:
    key = frozenset({"key"})
    schema = mw.Schema(
        (mw.Column("A", "continuous", key), mw.Column("S", "category", key), mw.Column("B", "integer", key))
    )
    plan = plan_of(f'mask = "CorrelatedNoise"\ncolumns = "{KEYS}"\nr0 = 0.9')
    assert plan.columns == ()
    assert plan.mask(schema) == mw.CorrelatedNoise(("A", "B"), r0=0.9)
    with pytest.raises(BadPlan, match="no number has the role key"):
        plan.mask(mw.Schema((mw.Column("S", "category", key),)))


WORDS = st.sampled_from(["", "A", "B", "log", "normal", "laplace", "lognormal", "moments", "rotation"])
ANYTHING = st.recursive(
    st.one_of(st.booleans(), st.integers(-3, 3), st.floats(), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=6,
)


def fitting(hint: Any) -> st.SearchStrategy[Any]:
    """Values of the right type, or of any other."""
    if hint in (str, str | None):
        return st.one_of(WORDS, ANYTHING)
    right = st.from_type(hint)
    return st.one_of(right, right, right, ANYTHING)


@pytest.mark.parametrize("name", [name for name in mw.masks.MASKS if name != "Chain"])
@settings(max_examples=40)  # 1,500 were tried once for each mask
@given(data=st.data())
def test_whatever_a_plan_says_is_built_or_refused(name: str, data: st.DataObject) -> None:
    """No other exception comes out, whatever stands at the keys of a mask."""
    kind = mw.masks.MASKS[name]
    hints = {item.name: get_type_hints(kind)[item.name] for item in fields(kind) if item.name != "spread"}
    given_keys = data.draw(st.sets(st.sampled_from(sorted(hints)), max_size=6))
    section = {key: data.draw(fitting(hints[key])) for key in sorted(given_keys)}
    if "columns" in hints:
        section["columns"] = data.draw(st.sampled_from([["A"], ["A", "B"]]))
    try:
        built = MaskPlan.from_dict(tomllib.loads(HEAD) | {"masks": [{"mask": name} | section]}).masks
    except BadPlan:
        built = ()
    assert all(isinstance(mask, kind) for mask in built)
