"""A formula becomes the columns that formulae makes of it, as expressions."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.analysis.expressions import ONE, Binary, Level, Node, Number, Ref, Unary
from maskwell.analysis.formulas import formula as parsing
from maskwell.analysis.formulas.expression_trees import degree, evaluate
from maskwell.analysis.formulas.formula import GroupTerm, ParsedFormula
from maskwell.errors import BadPlan

LEVELS: dict[str, tuple[str, ...]] = {
    "sex": ("m", "f"),
    "region": ("south", "north", "west", "nowhere"),  # not in the order of letters; no record has the last
    "school": tuple(f"s{code}" for code in range(20)),
}


def people(records: int = 120) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    numbers = {name: rng.normal(3.0, 1.0, records) for name in ("y", "x", "x1", "x2", "odd name", "a.b")}
    return {
        **numbers,
        "income": np.exp(rng.normal(3.0, 1.0, records)),
        "age": rng.integers(18, 80, records),
        "n": rng.integers(1, 6, records),
        "sex": rng.integers(0, 2, records),
        "region": rng.integers(0, 3, records),
        "school": rng.integers(0, 20, records),
        "class": rng.integers(1, 4, records),
        "note": np.array(["a"] * records),
    }


DATA = people()
VARIABLES = {name: LEVELS.get(name, ()) for name in DATA if name != "note"}


def parse(formula: str, **options: object) -> ParsedFormula:
    return parsing.parse(formula, DATA, VARIABLES, **options)  # type: ignore[arg-type]


def values(node: Node) -> np.ndarray:
    return evaluate(node, {name: DATA[name] for name in VARIABLES})


def of_formulae(formula: str) -> tuple[list[str], np.ndarray]:
    """Return the labels and the design that formulae makes by itself."""
    import pandas as pd
    from formulae import design_matrices

    frame = pd.DataFrame(
        {
            name: pd.Categorical.from_codes(DATA[name], list(LEVELS[name]), ordered=True)
            if name in LEVELS
            else DATA[name]
            for name in VARIABLES
        }
    )
    common = design_matrices(formula, frame, extra_namespace={"log": np.log, "exp": np.exp}).common
    found = common.as_dataframe()
    return list(found.columns), found.to_numpy(np.float64)


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ x1*x2 + sex + (1|school)",
        "log(income) ~ poly(age, 2) + region:sex",
        "y ~ scale(x)*sex",
        "y ~ 0 + sex",
        "y ~ x - 1",
        "y ~ I(x**2) + I(x1/1000)",
        "y ~ {x/1000}",
        "`odd name` ~ x + `a.b`",
        "y ~ a.b",
        "y ~ 1",
        "y ~ poly(x, 3, raw=True):sex",
        "y ~ poly(log(income), degree=5)*center(x)",
        "y ~ region*sex - region",
        "y ~ region:sex - 1",
        "y ~ x1 + x1:region:sex",
        "y ~ (x1 + x2 + sex)**2",
        "y ~ x1/sex",
        "y ~ I(sex == 'f')*x2 + I(x > 3)",
        "y ~ T(sex, 'f') + S(sex):x",
        "y ~ 0 + S(sex)",
        "y ~ binary(n, 3) + binary(region, 'west')",
        "y ~ standardize(exp(-x/10))",
    ],
)
def test_columns_are_those_of_formulae(formula: str):
    parsed = parse(formula)
    labels, design = of_formulae(formula)
    assert list(parsed.names) == labels
    found = np.column_stack([values(node) for node in parsed.columns])
    assert np.allclose(found, design, rtol=1e-8, atol=1e-9)


def test_the_simplest_columns_are_the_simplest_expressions():
    parsed = parse("y ~ x1*sex + I(x) + log(income)")
    assert parsed.response == Ref("y")
    assert parsed.columns == (
        ONE,
        Ref("x1"),
        Level("sex", 1),
        Binary("mul", Ref("x1"), Level("sex", 1)),
        Ref("x"),
        Unary("log", Ref("income")),
    )
    assert parsed.variables == {"y", "x1", "sex", "x", "income"}


def test_the_reference_is_the_first_level_of_the_schema_and_levels_may_be_without_records():
    assert parse("y ~ region").names == ("Intercept", "region[north]", "region[west]", "region[nowhere]")
    assert parse("y ~ C(region)").names[1:] == tuple(f"C(region)[{level}]" for level in LEVELS["region"][1:])
    assert parse("y ~ S(region)").names[1:] == tuple(f"S(region)[{level}]" for level in LEVELS["region"][:3])
    assert parse("y ~ binary(region, 'nowhere')").columns[1] == Level("region", 3)


def test_terms_that_share_a_category_keep_their_own_codings():
    """formulae's own labels of region/x are wrong: the terms share the category, which is coded twice."""
    assert parse("y ~ sex/x").names == ("Intercept", "sex[f]", "sex[m]:x", "sex[f]:x")
    assert parse("y ~ sex/x").columns[1:3] == (Level("sex", 1), Binary("mul", Level("sex", 0), Ref("x")))


def test_labels_keep_their_parentheses():
    names = parse("y ~ I((x - 3)**2) + {x - 3**2} + I(-(x1**2)) + {x**-1} + {x - (x1 - x2)}").names
    expected = (
        "I((x - 3) ** 2)",
        "I(x - 3 ** 2)",
        "I(-x1 ** 2)",
        "I(x ** -1)",
        "I(x - (x1 - x2))",
    )
    assert names[1:] == expected


@pytest.mark.parametrize(
    ("formula", "response", "name"),
    [
        ("y ~ x", Ref("y"), "y"),
        ("sex ~ x", Ref("sex"), "sex"),
        ("sex['f'] ~ x", Level("sex", 1), "sex[f]"),
        ("sex[f] ~ x", Level("sex", 1), "sex[f]"),
        ("binary(sex, 'm') ~ x", Level("sex", 0), "binary(sex, 'm')"),
        ("binary(n, 3) ~ x", Binary("eq", Ref("n"), Number(3.0)), "binary(n, 3)"),
        ("log(income) ~ x", Unary("log", Ref("income")), "log(income)"),
        ("{y - 1} ~ x", Binary("sub", Ref("y"), Number(1.0)), "I(y - 1)"),
        ("(y) ~ x", Ref("y"), "y"),
    ],
)
def test_responses(formula: str, response: Node, name: str):
    parsed = parse(formula)
    assert (parsed.response, parsed.response_name) == (response, name)


def test_a_scaled_response_is_frozen_at_the_released_values():
    response = parse("scale(y) ~ x").response
    assert np.allclose(values(response), (DATA["y"] - DATA["y"].mean()) / DATA["y"].std())
    moved = {"y": DATA["y"] + 1.0}
    assert np.allclose(evaluate(response, moved) - values(response), 1.0 / DATA["y"].std())


ONES = ("Intercept",), (ONE,)
SLOPE = ("x",), (Ref("x"),)


@pytest.mark.parametrize(
    ("formula", "effects"),
    [
        ("y ~ x + (1|school)", [GroupTerm(("school",), *ONES)]),
        ("y ~ (x|school)", [GroupTerm(("school",), ("Intercept", "x"), (ONE, Ref("x")))]),
        ("y ~ (1 + x|school)", [GroupTerm(("school",), ("Intercept", "x"), (ONE, Ref("x")))]),
        ("y ~ (0 + x|school)", [GroupTerm(("school",), *SLOPE)]),
        (
            "y ~ (1|school) + (0 + x|school)",
            [GroupTerm(("school",), *ONES), GroupTerm(("school",), *SLOPE)],
        ),
        (
            "y ~ (1|school/class)",
            [GroupTerm(("school",), *ONES), GroupTerm(("school", "class"), *ONES)],
        ),
        ("y ~ (1|school:class)", [GroupTerm(("school", "class"), *ONES)]),
        ("y ~ (1|school + class)", [GroupTerm(("school",), *ONES), GroupTerm(("class",), *ONES)]),
        ("y ~ (sex|school)", [GroupTerm(("school",), ("Intercept", "sex[f]"), (ONE, Level("sex", 1)))]),
        (
            "y ~ (0 + sex|school)",
            [GroupTerm(("school",), ("sex[m]", "sex[f]"), (Level("sex", 0), Level("sex", 1)))],
        ),
        ("y ~ x + (1|school) - (1|school)", []),
    ],
)
def test_group_effects_of_one_parenthesis_and_factor_belong_together(formula: str, effects: list[GroupTerm]):
    assert list(parse(formula).effects) == effects


def test_offsets_are_no_coefficients():
    parsed = parse("y ~ offset(log(n)) + x + offset(2)")
    assert parsed.names == ("Intercept", "x")
    assert parsed.offset is not None
    assert np.allclose(values(parsed.offset), np.log(DATA["n"]) + 2.0)
    assert parse("y ~ x").offset is None


def test_bases_are_frozen_at_the_released_values():
    linear, square = parse("y ~ poly(age, 2)").columns[1:]
    assert degree(linear, {"age"}) == 1
    assert degree(square, {"age"}) == 2
    assert abs(values(linear) @ values(square)) < 1e-9
    # The same polynomial elsewhere: its second difference is constant.
    ages = {"age": np.arange(10.0)}
    assert np.ptp(np.diff(evaluate(square, ages), 2)) < 1e-9 * np.ptp(evaluate(square, ages))


def test_missing_values_are_filled_for_the_reading_alone():
    data = {name: DATA[name].astype(float) for name in ("y", "x", "sex", "region")}
    for name in data:
        data[name][:7] = np.nan
    data["region"][7] = -1.0
    parsed = parsing.parse("y ~ scale(x)*sex + region", data, VARIABLES)
    assert parsed.names[:3] == ("Intercept", "scale(x)", "sex[f]")
    filled = np.where(np.isnan(data["x"]), np.nanmedian(data["x"]), data["x"])
    assert np.allclose(evaluate(parsed.columns[1], {"x": filled}), (filled - filled.mean()) / filled.std())
    assert np.isnan(data["x"][:7]).all()


def test_transforms_learn_from_all_records_of_a_large_file():
    data = people(3 * parsing.MOST_RECORDS)
    parsed = parsing.parse("y ~ scale(x) + poly(x1, 2) + C(n) + T(n, 2):x", data, VARIABLES)
    assert np.allclose(evaluate(parsed.columns[1], data), (data["x"] - data["x"].mean()) / data["x"].std())
    assert abs(evaluate(parsed.columns[3], data).sum()) < 1e-6
    assert "C(n)[5]" in parsed.names


def test_undefined_values_of_some_records_are_left_undefined():
    column = parse("y ~ log(x - 3)").columns[1]
    assert np.array_equal(np.isnan(values(column)), DATA["x"] < 3.0)


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("y ~ incom", "did you mean 'income'"),
        ("y ~ log(incom)", "did you mean 'income'"),
        ("y ~ (1|scool)", "did you mean 'school'"),
        ("yy ~ x", "no column 'yy'"),
        ("y ~ note", "is a text"),
        ("y ~ DATA", "no column"),
        ("y ~ I(x*DATA)", "no column"),
        ("y ~ y", "cannot be on the right"),
        ("log(y) ~ I(y**2)", "cannot be on the right"),
        ("y ~ (1|y)", "cannot be on the right"),
        ("I(y + x) ~ x1", "made of one column"),
        ("y ~ 0", "no coefficient"),
        ("y ~ log(sex)", "is a category"),
        ("y ~ I(sex)", "is a category"),
        ("y ~ I(sex == 1)", "is a category"),
        ("y ~ I(sex == 'x')", "has no level 'x'"),
        ("y ~ I(x == 'f')", "x is a number"),
        ("sex['w'] ~ x", "has no level 'w'"),
        ("y['w'] ~ x", "y is a number"),
        ("y ~ T(region, 'nort')", "did you mean 'north'"),
        ("y ~ T(region, ref='nort')", "did you mean 'north'"),
        ("y ~ T(n, 99)", "No record has the value"),
        ("y ~ T(n, 'a')", "without quotes"),
        ("binary(sex, 1) ~ x", "has no level 1"),
        ("y ~ C(x)", "more than 50 values"),
        ("y ~ (x + x1) + x:x1 + x1:x", "are the same"),
        ("y ~ x*x1 - x1:x", "write it the same way"),
        ("y ~ x + I(x)", "are the same column"),
        ("y ~ (x|school) + (1|school)", "twice"),
        ("y ~ region:sex + sex", "before their interactions"),
        ("y ~ 1 - x", "has no meaning"),
        ("y ~ x:offset(x1)", "not multiplied"),
        ("y ~ I(x/0)", "defined for no record"),
        ("y ~ I(x*(1/0))", "cannot be computed"),
        ("y ~ I(x + (9**9)**(9**9))", "cannot be computed"),
        ("y ~ scale(I(0*x))", "constant or undefined"),
        ("y ~ poly(log(x - 3), 2)", "too few or undefined"),
        ("y ~ poly(n, 5)", "too few or undefined"),
        ("y ~ school:region:class:sex + school:region:C(class)", "more than 2000 coefficients"),
    ],
)
def test_what_the_file_does_not_allow_is_refused_in_a_sentence(formula: str, words: str):
    with pytest.raises(BadPlan, match=words):
        parse(formula)


def test_noised_numbers_are_no_categories():
    assert "C(n)[2]" in parse("y ~ C(n)", noised=["x"]).names
    with pytest.raises(BadPlan, match="n has noise"):
        parse("y ~ C(n)", noised=["n"])


def test_a_misread_column_is_noticed(monkeypatch: pytest.MonkeyPatch):
    """If an expression were read wrongly off formulae the comparison with its design would say so."""
    monkeypatch.setattr(parsing, "columns_of", lambda term, levels: [("x", Binary("add", Ref("x"), ONE))])
    with pytest.raises(RuntimeError, match="otherwise than formulae"):
        parse("y ~ 0 + x")


def test_nothing_of_the_calling_program_is_seen():
    secret = np.zeros(120)
    with pytest.raises(BadPlan, match="no column 'secret'"):
        parse("y ~ x + secret")
    assert not secret.any()
