"""What a formula may say: columns, operators of formulas, and a list of functions. It must not execute code.

formulae would look up any other name in the program that calls it (np.log, or worse), and reads some formulas
otherwise than they look: x**2 as x, (x - 1|school) with the intercept. These are refused with what to write instead.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import comb
from typing import Any

from ...errors import BadPlan, nearest, raise_all
from .formula_tree import CODINGS, bare, is_number, is_operator, name_of, tree_of, walk

MATHS = ("log", "log1p", "log2", "log10", "sqrt", "exp", "expm1", "abs", "sin", "cos", "tanh")
FROZEN = (
    "center",
    "scale",
    "standardize",
)  # what they subtract and divide by is fixed at the released values
FUNCTIONS = (*MATHS, *FROZEN, *CODINGS, "I", "poly", "offset", "binary", "B")
SPLINES = ("bs", "cr", "cc", "tp", "hsgp", "ns", "te", "s")
MOST_POWER, MOST_DEGREE = 5, 8
# Terms: to spell them out takes the square of their number, a third of a second for so many
MOST_SPELLED = 500
MOST_TERMS = 2_000  # of a formula once it is spelled out; as many coefficients are fitted
COMPARISONS = ("EQUAL_EQUAL", "BANG_EQUAL", "LESS_EQUAL", "LESS", "GREATER_EQUAL", "GREATER")
_SYNONYMS = {"ln": "log(x)", "factor": "C(x)", "as_factor": "C(x)", "pow": "I(x**2)", "square": "I(x**2)"}
_SIMPLE = (*MATHS, *FROZEN, "I")


def check(formula: str, columns: Collection[str] = ()) -> Any:
    """Refuse a formula that says anything but the listed; return formulae's expression tree of it.

    A name with a dot is taken for an attribute unless it is one of the `columns`.
    """
    tree = tree_of(formula)
    if not is_operator(tree, "TILDE"):
        raise BadPlan("The formula as a whole stands in parentheses; write 'y ~ x1 + x2'.")
    _check_spelled(terms_at_most(tree.right))
    found = [*_response(tree.left), *_terms(tree.right, True, True), *_names(tree, columns)]
    raise_all(dict.fromkeys(found), BadPlan)
    return tree


def _check_spelled(count: int) -> None:
    """Refuse a formula, before any of it is spelled out, of too many terms."""
    check_terms(count)
    if count > MOST_SPELLED:
        raise BadPlan(
            f"The formula would spell out {count:,} terms, and at most {MOST_SPELLED} are fitted: cross fewer columns."
        )


def check_terms(count: int) -> None:
    """Refuse a formula, before any of it is spelled out, that would make too many columns."""
    if count > MOST_TERMS:
        raise BadPlan(
            f"The formula would make {count:,} columns or more, and at most {MOST_TERMS:,} are fitted: cross fewer "
            "terms, as in (a + b + c)**2 for the interactions of two."
        )


def terms_at_most(tree: Any, widths: Mapping[str, int] | None = None) -> int:
    """Return how many terms a formula spells out, counted on its tree: crossing n of them makes 2^n - 1.

    With the `widths` of categories (levels but the first) these are the columns, if there is an intercept.
    """
    match type(tree).__name__:
        case "Grouping":
            return terms_at_most(tree.expression, widths)
        case "Binary":
            kind = tree.operator.kind
            if kind == "STAR_STAR":
                power, count = getattr(bare(tree.right), "value", 1), terms_at_most(tree.left)
                most = power if isinstance(power, int) and 0 < power <= MOST_POWER else 1
                return sum(comb(count, k) for k in range(1, most + 1))
            left, right = terms_at_most(tree.left, widths), terms_at_most(tree.right, widths)
            crossed = {
                "PLUS": left + right,
                "SLASH": left + right,
                "MINUS": left,
                "STAR": left + right + left * right,
            }
            return crossed.get(kind, left * right)
    return max(1, (widths or {}).get(name_of(tree) or "", 1))


def _names(tree: Any, columns: Collection[str]) -> Iterator[str]:
    """Find attributes of things among the names, and brackets where they mean nothing."""
    for part in walk(tree):
        name = name_of(part)
        if name is None or type(part).__name__ == "QuotedName":
            continue
        if "." in name and name not in columns:
            yield f"{name} asks for an attribute, which formulas cannot; write a column with a dot as `{name}`."
        if part.level is not None and part is not bare(tree.left):
            yield f"Brackets pick the level of a response only; write I({name} == 'level') for {name}."


def _response(tree: Any) -> Iterator[str]:
    tree = bare(tree)
    if type(tree).__name__ == "Call":
        function = name_of(tree.callee)
        if function in (*CODINGS, "poly", "offset"):
            yield f"The response cannot be {function}(...); write the column itself, or log(y) or binary(y, 'yes')."
        else:
            yield from _call(tree)
    elif name_of(tree) is None:
        yield "The response must be one column or a transform of one, such as log(y) or I(y/1000)."


def _terms(tree: Any, counts: bool, groups: bool) -> Iterator[str]:
    """Find what is wrong with the terms of a model; whether 0 and 1, and (x|school), may stand at this place."""
    match type(tree).__name__:
        case "Grouping":
            yield from _terms(tree.expression, False, groups)
        case "Call":
            yield from _call(tree)
        case "Unary":
            inner = bare(tree.right)
            if is_number(inner) and inner.value in (0, 1) and counts:
                return
            if tree.operator.kind == "MINUS":
                yield "A minus takes a term out of the formula; write I(-x) for the negative of a column."
            else:
                yield from _terms(tree.right, counts, groups)
        case "Literal":
            yield from _literal(tree, counts)
        case "Binary":
            yield from _operator(tree, counts, groups)
        case "Assign":
            yield "'=' is not an operator of formulas; compare inside I(), as in I(x == 3)."


def _literal(tree: Any, counts: bool) -> Iterator[str]:
    if not is_number(tree):
        yield f"{tree.value!r} is not a column; compare inside I(), as in I(sex == 'f')."
    elif tree.value not in (0, 1):
        yield "Numbers in a formula go inside I() or {}, as in {x/1000}; alone only 0 and 1 mean something."
    elif not counts:
        yield "Write 0 or 1 (without, with intercept) outside parentheses, as in 'y ~ 0 + x' or (0 + x|school)."


def _operator(tree: Any, counts: bool, groups: bool) -> Iterator[str]:
    kind = tree.operator.kind
    if kind in ("PLUS", "MINUS"):
        if kind == "MINUS" and is_number(bare(tree.right)) and bare(tree.right).value == 0:
            yield "'- 0' takes nothing out; write '- 1' to leave out the intercept."
        yield from _terms(tree.left, counts, groups)
        yield from _terms(tree.right, counts, groups)
    elif kind in ("STAR", "SLASH", "COLON"):
        yield from _terms(tree.left, False, False)
        yield from _terms(tree.right, False, False)
    elif kind == "STAR_STAR":
        yield from _power(tree)
    elif kind == "PIPE" and groups:
        yield from _group(tree)
    elif kind == "PIPE":
        yield "Group effects such as (1|school) can only be added to a formula, not multiplied or nested."
    else:
        yield "A comparison goes inside I() or {}, as in I(x > 3)."


def _power(tree: Any) -> Iterator[str]:
    """Find powers of one column, which formulae reads as the column itself."""
    power = bare(tree.right)
    problems = list(_terms(tree.left, False, False))
    yield from problems
    if not problems and not _is_sum(tree.left):
        yield "A power of a column goes inside I() or {}, as in I(x**2); (a + b)**2 is for interactions."
    elif not (is_number(power) and isinstance(power.value, int) and 1 <= power.value <= MOST_POWER):
        yield f"The power of a sum of terms must be a whole number from 1 to {MOST_POWER}, as in (a + b)**2."


def _is_sum(tree: Any) -> bool:
    """Return whether formulae takes an expression for several terms; 1 alone is one."""
    from formulae.terms import Model  # type: ignore[import-untyped]

    from .lazy_calls import resolve_terms

    try:
        return isinstance(resolve_terms(tree), Model)
    except (TypeError, ValueError, AttributeError):
        return False


def _group(tree: Any) -> Iterator[str]:
    """Find what is wrong with (terms|group)."""
    summands, rest = [], tree.left
    while is_operator(rest, "PLUS"):
        summands.append(rest.right)
        rest = rest.left
    first = bare(rest)
    if not (is_number(first) and first.value in (0, 1)):
        summands.append(rest)
    elif first.value == 0 and not summands:
        yield "(0|school) has no effects; write (1|school) or (0 + x|school)."
    for summand in summands:
        inside = bare(summand)
        if is_number(inside) or is_operator(inside, "MINUS") or type(inside).__name__ == "Unary":
            yield "Write 0 or 1 first in group effects and take nothing out, as in (0 + x|school)."
        elif any(type(part).__name__ == "Call" and name_of(part.callee) == "offset" for part in walk(inside)):
            yield "offset(...) goes outside the group effects."
        else:
            yield from _terms(summand, False, False)
    for part in walk(tree.right):
        joined = type(part).__name__ == "Grouping" or is_operator(part, "PLUS", "COLON", "SLASH", "STAR")
        if not joined and name_of(part) is None:
            yield "Groups are named by their columns, as in (1|school) or (1|school/class)."


def _call(tree: Any) -> Iterator[str]:
    """Find what is wrong with a call that is a term, or part of an interaction."""
    function = name_of(tree.callee)
    if function is None or type(tree.callee).__name__ != "Variable" or tree.callee.level is not None:
        yield f"Only the functions of formulas can be called: {', '.join(FUNCTIONS)}."
    elif function not in FUNCTIONS:
        yield _unknown(function)
    elif not tree.args:
        yield f"{function}() needs a column."
    elif function == "poly":
        yield from _poly(tree)
    elif function in (*CODINGS, "binary", "B"):
        yield from _category_call_problems(tree, function)
    else:
        yield from _simple(tree, function)
        if function != "offset" and not any(name_of(part) for part in _inside(tree)):
            yield f"{function}(...) has no column in it."


def _inside(tree: Any) -> Iterator[Any]:
    """Yield the parts of a call's arguments; names of functions are none of them."""
    for argument in tree.args:
        yield from walk(argument)


def _unknown(function: str) -> str:
    last = function.rsplit(".", 1)[-1]
    if "." in function and last in FUNCTIONS:
        return f"Write {last}(...) instead of {function}(...): formulas have their own functions."
    if "." in function:
        return (
            f"{function}(...) asks for an attribute, which formulas cannot; they have {', '.join(FUNCTIONS)}."
        )
    if function in SPLINES:
        return f"Splines such as {function}(...) are not supported; poly(x, 3) is a cubic."
    if function in ("p", "prop", "proportion"):
        return f"{function}(...) is not supported; give one record for each trial."
    if function in _SYNONYMS:
        return f"{function}(...) is not a function of formulas; write {_SYNONYMS[function]}."
    hint = nearest(function, FUNCTIONS)
    return f"{function}(...) is not a function of formulas{hint}; they have {', '.join(FUNCTIONS)}."


def _simple(tree: Any, function: str) -> Iterator[str]:
    """Find what is wrong with a function of one number."""
    if len(tree.args) != 1 or type(tree.args[0]).__name__ == "Assign":
        yield f"{function}(...) takes one argument, as in {function}(x)."
        return
    if function != "I" and _is_comparison(tree.args[0]):
        yield f"A comparison has no {function}; write I(x > 3)."
    yield from _arithmetic(tree.args[0])


def _arithmetic(tree: Any) -> Iterator[str]:
    """Find what is wrong with arithmetic on columns."""
    match type(tree).__name__:
        case "Grouping":
            yield from _arithmetic(tree.expression)
        case "Unary":
            if tree.operator.kind == "MINUS" and _is_comparison(tree.right):
                yield "A comparison has no negative; write 1*(x > 3)."
            yield from _arithmetic(tree.right)
        case "Literal":
            if not is_number(tree):
                yield f"{tree.value!r} cannot be computed with; a category is compared as in I(sex == 'f')."
        case "Binary":
            yield from _operator_problems(tree)
        case "Call":
            function = name_of(tree.callee)
            if function in FUNCTIONS and function not in _SIMPLE:
                yield f"{function}(...) must be a term by itself, not part of a computation."
            else:
                yield from _call(tree)
        case "Assign":
            yield "'=' is not an operator of formulas; write == to compare."


def _operator_problems(tree: Any) -> Iterator[str]:
    """Find operators that mean something else inside I(), or that formulae reads in another order than Python."""
    kind = tree.operator.kind
    both = (tree.left, tree.right)
    if kind in COMPARISONS:
        texts = [
            type(bare(side)).__name__ == "Literal" and isinstance(bare(side).value, str) for side in both
        ]
        if any(texts):
            if (
                sum(texts) == 2
                or kind not in COMPARISONS[:2]
                or name_of(bare(both[texts.index(False)])) is None
            ):
                yield "A text is compared with a category by == or !=, as in I(sex == 'f')."
            return
        if any(map(_is_comparison, both)):
            yield "Comparisons cannot be chained; write (x > 1)*(x < 3)."
    elif kind not in ("PLUS", "MINUS", "STAR", "SLASH", "STAR_STAR"):
        yield f"{tree.operator.lexeme!r} has no meaning inside a computation such as I(x*z)."
        return
    elif kind != "STAR" and all(map(_is_comparison, both)):
        yield "Comparisons are multiplied by 1 before they are computed with, as in 1*(x > 3) + 1*(z > 3)."
    elif kind == "STAR_STAR" and type(tree.left).__name__ == "Unary":
        yield "-x**2 would be read as (-x)**2; write -(x**2) or (-x)**2."
    elif kind == "STAR_STAR" and is_operator(tree.left, "STAR_STAR"):
        yield "Powers of powers need parentheses, as in (x**2)**3."
    for side in both:
        yield from _arithmetic(side)


def _is_comparison(tree: Any) -> bool:
    """Return whether the values are true and false, with which numpy computes otherwise than with numbers."""
    tree = bare(tree)
    if type(tree).__name__ == "Call":
        return name_of(tree.callee) in ("I", "abs") and any(map(_is_comparison, tree.args))
    if is_operator(tree, "STAR"):
        return _is_comparison(tree.left) and _is_comparison(tree.right)
    return is_operator(tree, *COMPARISONS)


def _poly(tree: Any) -> Iterator[str]:
    """Find what is wrong with poly(x, degree, raw=False)."""
    given = dict(zip(("x", "degree", "raw"), tree.args, strict=False))
    for argument in tree.args[1:]:
        if type(argument).__name__ == "Assign":
            given = {name: value for name, value in given.items() if value is not argument}
            given[name_of(argument.name) or ""] = argument.value
    degree, raw = given.get("degree"), given.get("raw")
    whole = degree is None or (
        is_number(degree) and isinstance(degree.value, int) and 1 <= degree.value <= MOST_DEGREE
    )
    flag = raw is None or (type(raw).__name__ == "Literal" and isinstance(raw.value, bool))
    if len(given) != len(tree.args) or not set(given) <= {"x", "degree", "raw"} or not whole or not flag:
        yield f"poly is written poly(x, 2) or poly(x, 2, raw=True), with a degree from 1 to {MOST_DEGREE}."
    elif _is_comparison(tree.args[0]):
        yield "A comparison has no polynomials; write I(x > 3)."
    else:
        yield from _arithmetic(tree.args[0])
        if not any(name_of(part) for part in walk(tree.args[0])):
            yield "poly(...) has no column in it."


def _category_call_problems(tree: Any, function: str) -> Iterator[str]:
    """Find what is wrong with C(x), T(x, 'reference'), S(x, 'omitted') or binary(y, 'yes')."""
    names = {"T": "ref", "S": "omit", "binary": "success", "B": "success"}
    column, *others = tree.args
    values = [other.value if type(other).__name__ == "Assign" else other for other in others]
    kept = all(
        type(other).__name__ != "Assign" or name_of(other.name) == names.get(function) for other in others
    )
    plain = all(
        type(value).__name__ == "Literal" and isinstance(value.value, str | int | float) for value in values
    )
    if name_of(column) is None or not plain or not kept or len(others) > (function in names):
        example = {"C": "C(x)", "T": "T(sex, 'f')", "S": "S(sex, 'f')"}.get(function, "binary(y, 'yes')")
        yield f"{function} is written {example}, with a column and, where one is named, a level of it."
    elif function in ("binary", "B") and not others:
        yield "binary(y) does not say which value counts as 1; write binary(y, 'yes')."
