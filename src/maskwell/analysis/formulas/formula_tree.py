"""Read a formula into formulae's own expression tree, without evaluating anything.

formulae drops what it does not expect: a second bar, everything after a bar outside parentheses, words that follow
a complete formula. What it would drop is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from ...errors import BadPlan

CODINGS = ("C", "T", "S")

MOST_CHARACTERS = 10_000
MOST_SIGNS = 300  # operators: each is a level of the tree, of which Python visits a thousand
_SIGNS = frozenset({"PLUS", "MINUS", "STAR", "STAR_STAR", "SLASH", "SLASH_SLASH", "COLON", "PIPE"})
_REMEDIES = {
    "^": "'^' is not an operator of formulas: write I(x**2) for a power, (a + b)**2 for interactions",
    "_": "a name that begins with '_' goes between backquotes, as in `_x`",
    ".": "'.' means neither all columns nor a part of one: name the columns",
    "%": "'%' is not an operator of formulas: write (1|school/class) for nested groups",
    "<": "a comparison goes inside I() or {}, as in I(x < 3)",
    ">": "a comparison goes inside I() or {}, as in I(x > 3)",
    "=": "a comparison goes inside I() or {}, as in I(x == 3)",
    "!": "a comparison goes inside I() or {}, as in I(x != 3)",
    "[": "brackets only pick the level of a response, as in y['yes']",
    "]": "brackets only pick the level of a response, as in y['yes']",
    "$": "columns are named without the file: income, not data$income",
}


def tree_of(formula: str) -> Any:
    """Return formulae's expression tree of a formula; what cannot be read whole is refused in a sentence."""
    if not isinstance(formula, str) or not formula.strip():
        raise BadPlan("The formula is empty; write for example 'y ~ x1 + x2 + (1|school)'.")
    if len(formula) > MOST_CHARACTERS:
        raise BadPlan(
            f"The formula has more than {MOST_CHARACTERS} characters; add what it computes as columns."
        )
    tokens = _tokens(formula)
    signs = sum(token.kind in _SIGNS for token in tokens)
    if signs > MOST_SIGNS:
        raise BadPlan(
            f"The formula has {signs:,} operators, and at most {MOST_SIGNS} are read: name fewer terms, or add what "
            "they compute as columns."
        )
    _check_tildes(tokens)
    _check_strings(tokens)
    return _parse_tokens(formula, tokens)


def _tokens(formula: str) -> list[Any]:
    from formulae.scanner import ScanError, Scanner  # type: ignore[import-untyped]

    if formula.count("`") % 2:
        raise BadPlan("The formula has a backquote without its partner; write odd names as `odd name`.")
    try:
        tokens: list[Any] = Scanner(formula).scan()
    except ScanError as problem:
        if "~" in str(problem):
            raise BadPlan("The formula has more than one '~'; it has one response, on the left.") from None
        raise BadPlan(f"The formula cannot be read: {_why(str(problem)[-1:])}.") from None
    except (ValueError, IndexError):  # digits that are no number, such as ²
        raise BadPlan("The formula has a number that cannot be read; write plain digits.") from None
    return tokens


def _why(character: str) -> str:
    """Say what is wrong with a character that formulas do not have."""
    if character == ".":  # the scanner's "Unterminated string."
        return "a string has no closing quote"
    return _REMEDIES.get(character, f"{character!r} is not part of formulas; odd names go between backquotes")


def _check_tildes(tokens: list[Any]) -> None:
    kinds = [token.kind for token in tokens]
    if "TILDE" not in kinds:
        raise BadPlan("The formula has no '~'; write the response first, as in 'y ~ x1 + x2'.")
    tilde = kinds.index("TILDE")
    if tilde == 0:
        raise BadPlan("The formula has no response; write it before the '~', as in 'y ~ x1 + x2'.")
    if kinds[tilde + 3] == "EOF":  # the scanner has put '1 +' after the tilde
        raise BadPlan("The formula has nothing after the '~'; write 'y ~ 1' for an intercept alone.")
    if any(pair == ("PIPE", "PIPE") for pair in pairwise(kinds)):
        raise BadPlan(
            "'||' is not supported; write the independent effects one by one, "
            "as in (1|school) + (0 + x1|school)."
        )


def _check_strings(tokens: list[Any]) -> None:
    for token in tokens:
        if token.kind == "STRING" and token.lexeme[0] != token.lexeme[-1]:
            raise BadPlan(
                "A string of the formula begins and ends with different quotes; use 'yes' or \"yes\"."
            )
        if token.kind == "STRING" and not token.literal.isprintable():
            raise BadPlan(
                "A string of the formula has characters that cannot be printed; name a level as it is."
            )


def _parse_tokens(formula: str, tokens: list[Any]) -> Any:
    from formulae.parser import ParseError, Parser  # type: ignore[import-untyped]

    parser = Parser(tokens)
    try:
        tree = parser.parse()
    except RecursionError:
        raise BadPlan("The formula is nested too deeply; add what it computes as columns.") from None
    except (ParseError, IndexError, TypeError, AttributeError):
        raise BadPlan(f"The formula cannot be read{_where(parser)}.") from None
    if not parser.at_end():
        if parser.peek().kind == "PIPE":
            raise BadPlan("Group effects go in parentheses, as in (1|school) or (x1|school).")
        raise BadPlan(f"The formula cannot be read{_where(parser)}.")
    return tree


def _where(parser: Any) -> str:
    if parser.at_end():
        return ": it ends too early, or a parenthesis is not closed"
    word = parser.peek().lexeme
    reason = _REMEDIES.get(word[:1])
    if word[:1] in ("e", "E") and word[1:].isdigit():
        reason = "numbers are written out, 100000 and not 1e5"
    return f" at {word!r}" + (f": {reason}" if reason else "")


def parts_of(tree: Any) -> tuple[Any, ...]:
    """Return the expressions that one is made of; none for names and literals."""
    match type(tree).__name__:
        case "Grouping":
            return (tree.expression,)
        case "Binary":
            return tree.left, tree.right
        case "Unary":
            return (tree.right,)
        case "Call":
            return tuple(tree.args)
        case "Assign":
            return (tree.value,)
        case _:
            return ()


def walk(tree: Any) -> Iterator[Any]:
    """Yield an expression and all it is made of."""
    yield tree
    for part in parts_of(tree):
        yield from walk(part)


def bare(tree: Any) -> Any:
    """Return an expression without the parentheses around it."""
    while type(tree).__name__ == "Grouping":
        tree = tree.expression
    return tree


def name_of(tree: Any) -> str | None:
    """Return the name of a column that an expression is, None for anything else."""
    match type(tree).__name__:
        case "Variable":
            return str(tree.name.lexeme)
        case "QuotedName":
            return str(tree.expression.lexeme[1:-1])
        case _:
            return None


def is_operator(tree: Any, *kinds: str) -> bool:
    """Return whether an expression is one of these operators of two sides."""
    return type(tree).__name__ == "Binary" and tree.operator.kind in kinds


def is_number(tree: Any) -> bool:
    """Return whether an expression is a number as written."""
    return (
        type(tree).__name__ == "Literal"
        and isinstance(tree.value, int | float)
        and not isinstance(tree.value, bool)
    )
