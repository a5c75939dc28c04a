"""The response of a model: what each family needs it to be, and how it is brought there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import BadPlan
from .columns import SeenColumn
from .expressions import Binary, Level, Node, Ref, Unary
from .system import (
    FAMILIES,
    GAUSSIAN,
    LOGIT,
    NEGATIVE_BINOMIAL,
    ORDERED,
    POISSON,
    PROBIT,
    Bools,
    Variable,
)

MOST_CODES = 20  # of an ordered response given as a number


def as_response(family: int, node: Node, seen: SeenColumn) -> tuple[SeenColumn, Bools]:
    """Return the response as the sampler needs it, and which records have one; refuse what a family cannot take."""
    counted = ~seen.missing
    if not counted.any():
        raise BadPlan(f"the response {seen.variable.name!r} is missing in every record")
    if family == GAUSSIAN:
        found = _gaussian(node, seen)
    elif family in (PROBIT, LOGIT):
        found = _binary(node, seen)
    elif family == ORDERED:
        found = _ordered_response(node, seen)
    else:
        found = _count(family, node, seen)
    _varies(found, counted)
    return found, counted


def _varies(seen: SeenColumn, counted: Bools) -> None:
    values = seen.guess[counted]
    if (values == values[0]).all():
        raise BadPlan(
            f"the response {seen.variable.name!r} is the same in every record: there is nothing to explain"
        )


def _gaussian(node: Node, seen: SeenColumn) -> SeenColumn:
    name = seen.variable.name
    if seen.variable.is_category:
        count = len(seen.variable.levels)
        remedy = (
            "family='logit' or 'probit'"
            if count == 2
            else "family='ordered' (if its categories are in order)"
        )
        raise BadPlan(f"the response {name!r} is a category of {count} levels; use {remedy}")
    return _transformed_response(node, seen)


def _transformed_response(node: Node, seen: SeenColumn) -> SeenColumn:
    """Bring the response to the scale of the formula: as it is, or a transform of a known column."""
    from .formulas.expression_trees import evaluate, on_state
    from .log_scale import log_remedy

    variable = seen.variable
    state = on_state(node, [variable])
    if state == Ref(variable.name):
        if variable.log_shift is not None:  # the formula says log(y + shift): the state is the response
            variable = replace(variable, log_shift=None)
        return replace(seen, variable=variable)
    if seen.noised.any() or seen.coded.any():
        if isinstance(node, Unary) and (remedy := log_remedy([variable])):
            raise BadPlan(f"the response {variable.name!r} is on another scale than its noise: {remedy}")
        hint = "model it as it is" if isinstance(node, Unary) else "model the column itself"
        raise BadPlan(
            f"the response {variable.name!r} carries noise or codes on another scale than the formula's; {hint}, "
            "or ask the steward for noise on that scale (transform='log')"
        )
    values = evaluate(state, {variable.name: seen.guess})
    if not np.isfinite(values[~seen.missing]).all():
        raise BadPlan(
            f"the response is not a finite number in every record: {variable.name!r} has values outside its transform"
        )
    return replace(seen, variable=Variable(variable.name), guess=np.where(seen.missing, 0.0, values))


def _plain(node: Node, seen: SeenColumn, family: str) -> None:
    if node != Ref(seen.variable.name):
        raise BadPlan(
            f"family {family!r} takes the response as it is: write {seen.variable.name!r} alone on the left"
        )


def _binary(node: Node, seen: SeenColumn) -> SeenColumn:
    name = seen.variable.name
    if isinstance(node, Level | Binary):
        return _success(node, seen)
    _plain(node, seen, "logit")
    if seen.variable.is_category:
        if len(seen.variable.levels) != 2:
            raise BadPlan(
                f"the response {name!r} has {len(seen.variable.levels)} levels; a binary family takes two "
                "(family='ordered' takes more)"
            )
        return seen
    if seen.noised.any():
        raise BadPlan(
            f"the response {name!r} is a number with noise; a binary response must be a category in the schema, "
            "so that the card can say how its codes were changed"
        )
    distinct = np.unique(seen.guess[~seen.missing])
    if not np.isin(distinct, (0.0, 1.0)).all():
        raise BadPlan(f"the response {name!r} must be 0 or 1, or a category of two levels")
    return seen


def _success(node: Level | Binary, seen: SeenColumn) -> SeenColumn:
    """Take one level, or one value, of a column for success: y['yes'], binary(n, 3)."""
    from .formulas.expression_trees import evaluate

    if isinstance(node, Level) and node.code == 1 and len(seen.variable.levels) == 2:
        return seen
    if seen.noised.any():
        raise BadPlan(
            f"the response {seen.variable.name!r} carries noise: it must have two levels, the second of them success; "
            "order its categories so in the schema"
        )
    values = evaluate(node, {seen.variable.name: seen.guess})
    return replace(seen, variable=Variable(seen.variable.name), guess=values)


def _ordered_response(node: Node, seen: SeenColumn) -> SeenColumn:
    name = seen.variable.name
    _plain(node, seen, "ordered")
    if seen.variable.is_category:
        if len(seen.variable.levels) < 3:
            raise BadPlan(
                f"the response {name!r} has {len(seen.variable.levels)} levels; use family='probit' or 'logit'"
            )
        return seen
    if seen.noised.any():
        raise BadPlan(f"the response {name!r} is a number with noise; an ordered response must be a category")
    distinct = np.unique(seen.guess[~seen.missing])
    if not 3 <= len(distinct) <= MOST_CODES:
        raise BadPlan(
            f"the response {name!r} has {len(distinct)} different values; family='ordered' takes 3 to {MOST_CODES}"
        )
    codes = np.searchsorted(distinct, np.where(seen.missing, distinct[0], seen.guess)).astype(np.float64)
    levels = tuple(f"{value:g}" for value in distinct)
    return replace(seen, variable=Variable(name, levels), guess=codes)


def _count(family: int, node: Node, seen: SeenColumn) -> SeenColumn:
    name = seen.variable.name
    _plain(node, seen, FAMILIES[family])
    assert family in (POISSON, NEGATIVE_BINOMIAL)
    if seen.variable.is_category:
        seen = _as_numbers(seen, FAMILIES[family])
    drawn = seen.noised | seen.coded
    values = seen.guess[~seen.missing & ~drawn]
    if (values < 0).any() or (values != np.rint(values)).any():
        raise BadPlan(
            f"the response {name!r} must be whole numbers from 0 on for family {FAMILIES[family]!r}"
        )
    if not drawn.any():
        return seen
    guess = np.where(drawn, np.maximum(np.rint(seen.released), 0.0), seen.released)
    return replace(seen, variable=Variable(name), guess=guess)


def _as_numbers(seen: SeenColumn, family: str) -> SeenColumn:
    """Read the levels of a category as the counts they are: small whole numbers are often taken for categories."""
    name, levels = seen.variable.name, seen.variable.levels
    if not all(level.isascii() and level.isdigit() for level in levels):
        raise BadPlan(f"the response {name!r} is a category; family {family!r} takes counts")
    counts = np.array([float(level) for level in levels])
    return replace(seen, variable=Variable(name), guess=counts[seen.guess.astype(np.int64)])
