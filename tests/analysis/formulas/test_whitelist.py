"""Formulas say columns, operators and listed functions; anything else is refused in a sentence, and nothing runs."""

from __future__ import annotations

import pytest

from maskwell.analysis.formulas.whitelist import FUNCTIONS, check
from maskwell.errors import BadPlan

ALLOWED = [
    "y ~ x1*x2 + sex + (1|school)",
    "log(income) ~ poly(age, 2) + region:sex",
    "y ~ scale(x)*sex",
    "y ~ 0 + sex",
    "y ~ x - 1",
    "y ~ -1 + x",
    "y ~ I((x - 3)**2)",
    "y ~ {x/1000}",
    "y ~ x1 + (x1|school)",
    "y ~ offset(log(n)) + x",
    "`odd name` ~ x",
    "y ~ (a + b)**2",
    "y ~ ((a + b))**3",
    "y ~ (a*b)**2",
    "y ~ (1|school/class) + (0 + x|school:class)",
    "y ~ (1|school) + (0 + x|school)",
    "y ~ T(sex, 'f') + S(region) + C(n)",
    "y ~ T(sex, ref='f') + poly(x, degree=3, raw=True)",
    "y ~ I(sex == 'f') + I('f' != sex) + I((x > 1)*(x < 3))",
    "binary(y, 'yes') ~ x",
    "y['yes'] ~ x",
    "y[yes] ~ x",
    "y ~ I(-(x**2)) + I((-x)**2) + {x**-1}",
]

REFUSED = [
    ("", "is empty"),
    ("   ", "is empty"),
    ("x", "no '~'"),
    ("y = x", "no '~'"),
    ("(y ~ x)", "stands in parentheses"),
    ("y ~ x ~ z", "more than one '~'"),
    ("y ~ (y ~ x)", "more than one '~'"),
    ("~ x", "no response"),
    ("y ~", "nothing after"),
    ("y ~ np.log(x)", r"Write log\(...\) instead of np.log"),
    ("y ~ os.system('ls')", "attribute"),
    ("y ~ x.__class__", "attribute"),
    ("y ~ I(x.real)", "attribute"),
    ("y ~ I(x).real", r"at '\.'"),
    ("y ~ __import__('os')", "begins with '_'"),
    ("y ~ eval('1')", "not a function of formulas"),
    ("y ~ I(eval('1'))", "not a function of formulas"),
    ("y ~ poly(open('x'), 2)", "not a function of formulas"),
    ("eval(y) ~ x", "not a function of formulas"),
    ("y ~ (eval(x)|g)", "not a function of formulas"),
    ("y ~ f(x)(y)", "Only the functions of formulas"),
    ("y ~ `log`(x)", "Only the functions of formulas"),
    ("y ~ lambda x: x", "cannot be read at 'x'"),
    ("y ~ [x for x in y]", r"at '\['"),
    ("y ~ {x; x}", "';' is not part of formulas"),
    ("y ~ x @ z", "'@' is not part of formulas"),
    ("y ~ loog(x)", "did you mean 'log'"),
    ("y ~ ln(x)", r"write log\(x\)"),
    ("y ~ factor(x)", r"write C\(x\)"),
    ("y ~ x1||school", r"\(0 \+ x1\|school\)"),
    ("y ~ (x1||school)", r"\(0 \+ x1\|school\)"),
    ("y ~ (x1 | | school)", r"\(0 \+ x1\|school\)"),
    ("y ~ x1|school", "in parentheses"),
    ("y ~ x**2", r"I\(x\*\*2\)"),
    ("y ~ (x)**2", r"I\(x\*\*2\)"),
    ("y ~ (x + x)**2", r"I\(x\*\*2\)"),
    ("y ~ log(x)**2", r"I\(x\*\*2\)"),
    ("y ~ (x:z)**2", r"I\(x\*\*2\)"),
    ("y ~ (a + b)**x", "whole number"),
    ("y ~ (a + b)**2.5", "whole number"),
    ("y ~ (a + b)**99", "whole number"),
    ("y ~ x^2", r"I\(x\*\*2\)"),
    ("y ~ bs(x, df=4)", "Splines"),
    ("y ~ cr(x, 4)", "Splines"),
    ("p(y, n) ~ x", "one record for each trial"),
    ("y ~ x z", "cannot be read at 'z'"),
    ("y ~ .", "name the columns"),
    ("y ~ x %in% z", "nested groups"),
    ("y ~ data$x", "without the file"),
    ("y ~ x > 3", "inside I"),
    ("y ~ (x > 3)", "inside I"),
    ("y ~ 2*x", "Numbers in a formula"),
    ("y ~ x/1000", "Numbers in a formula"),
    ("y ~ {1e5*x}", "written out"),
    ("y ~ x²*².5", "cannot be read"),
    ("y ~ (0 + x)", "outside parentheses"),
    ("y ~ (x + z - 1)", "outside parentheses"),
    ("y ~ -x", r"I\(-x\)"),
    ("y ~ x - 0", "'- 1'"),
    ("y ~ I((x > 1)/(z > 1))", "multiplied by 1"),
    ("y ~ 'a'", "not a column"),
    ("y ~ True", "not a column"),
    ("y ~ I(-x**2)", r"-\(x\*\*2\)"),
    ("y ~ I(x**2**3)", "Powers of powers"),
    ("y ~ I(1 < x < 3)", "chained"),
    ("y ~ I((x > 1) + (z > 1))", "multiplied by 1"),
    ("y ~ I(-(x > 1))", "no negative"),
    ("y ~ log(x > 1)", "no log"),
    ("y ~ poly(x > 1, 2)", "no polynomials"),
    ("y ~ I(x:z)", "':' has no meaning"),
    ("y ~ I(x|z)", "has no meaning"),
    ("y ~ I(sex < 'f')", "by == or !="),
    ("y ~ I('a' == 'b')", "by == or !="),
    ("y ~ I('a')", "cannot be computed with"),
    ("y ~ I(None*x)", "cannot be computed with"),
    ("y ~ I(3)", "no column"),
    ("y ~ log()", "needs a column"),
    ("y ~ log(x, 2)", "one argument"),
    ("y ~ log(x=3)", "one argument"),
    ("y ~ log(poly(x, 2))", "by itself"),
    ("y ~ poly(x, z)", "poly is written"),
    ("y ~ poly(x, 0)", "poly is written"),
    ("y ~ poly(x, 99)", "poly is written"),
    ("y ~ poly(x, 2, raw=1)", "poly is written"),
    ("y ~ poly(x, 2, degree=3)", "poly is written"),
    ("y ~ C(x, Sum)", "C is written"),
    ("y ~ T(sex, x)", "T is written"),
    ("y ~ T(log(x), 'f')", "T is written"),
    ("binary(y) ~ x", "which value counts"),
    ("y ~ x['f']", "response only"),
    ("y ~ x[0]", "level of a response"),
    ("y + z ~ x", "one column"),
    ("y*2 ~ x", "one column"),
    ("0 ~ x", "one column"),
    ("poly(y, 2) ~ x", "cannot be poly"),
    ("offset(y) ~ x", "cannot be offset"),
    ("y ~ (x - 1|school)", r"\(0 \+ x\|school\)"),
    ("y ~ (x + 0|school)", r"\(0 \+ x\|school\)"),
    ("y ~ (0|school)", "no effects"),
    ("y ~ (1|school)*x", "only be added"),
    ("y ~ x:(1|school)", "only be added"),
    ("y ~ (1|school|class)", "only be added"),
    ("y ~ (1|C(school))", "named by their columns"),
    ("y ~ (1|1)", "named by their columns"),
    ("y ~ (offset(x)|school)", "outside the group effects"),
    ("y ~ `x", "backquote"),
    ("y ~ I(x == 'f)", "closing quote"),
    ("y ~ I(x == 'f\")", "different quotes"),
    ("y ~ I(x == 'f\n')", "cannot be printed"),
    ("y ~ (x", "ends too early"),
    ("y ~ x +", "ends too early"),
    ("y ~ " + "(" * 3000 + "x" + ")" * 3000, "nested too deeply"),
    ("y ~ x" + " + x" * 5000, "more than 10000 characters"),
    ("y ~ " + "9" * 5000, "cannot be read"),
]


@pytest.mark.parametrize("formula", ALLOWED)
def test_what_users_write_is_allowed(formula: str):
    assert check(formula) is not None


@pytest.mark.parametrize(("formula", "words"), REFUSED)
def test_what_formulas_cannot_say_is_refused_in_a_sentence(formula: str, words: str):
    with pytest.raises(BadPlan, match=words) as refusal:
        check(formula)
    assert all(problem.endswith(".") and len(problem) < 300 for problem in refusal.value.problems)


def test_all_problems_are_reported_at_once():
    with pytest.raises(BadPlan) as refusal:
        check("y ~ x**2 + bs(z, 3) + np.log(x)")
    assert len(refusal.value.problems) == 3


def test_a_name_with_a_dot_is_a_column_where_the_file_has_it():
    assert check("y ~ a.b", columns=["a.b"]) is not None
    assert check("y ~ `a.b`") is not None
    with pytest.raises(BadPlan, match="attribute"):
        check("y ~ a.b")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_listed_function_can_be_written(function: str):
    argument = {"poly": "x, 2", "binary": "x, 1", "B": "x, 1"}.get(function, "x")
    assert check(f"y ~ {function}({argument})") is not None


def test_a_formula_must_be_a_text():
    with pytest.raises(BadPlan, match="empty"):
        check(None)  # type: ignore[arg-type]
