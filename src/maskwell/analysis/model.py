"""From a formula and a release to a system of equations: the covariate model and the model of interest.

(A1a)-(A1c) of Goldstein and Shlomo's appendix: p(z | x) by the card, p(x | clean columns) with the grouping of the
model of interest, p(y | x). Several unknown columns make a recursion: categories first, as sequential probits, then
numbers given those before. Made by `model_fit` for every sampler (`analysis.system` says what is in it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..errors import BadPlan, raise_all
from ..laws import Additive, Mixture
from ..laws.unknowns import is_independent
from ..masking import Release
from ..table import Table
from .columns import SeenColumn, group_codes, see
from .expressions import ONE, Binary, Level, Node, Number, Ref
from .system import (
    GAUSSIAN,
    LOGIT,
    NEGATIVE_BINOMIAL,
    ORDERED,
    POISSON,
    PROBIT,
    Bools,
    Effects,
    Equation,
    Factor,
    Floats,
    System,
    Variable,
)

FAMILY = {
    "gaussian": GAUSSIAN,
    "probit": PROBIT,
    "logit": LOGIT,
    "ordered": ORDERED,
    "poisson": POISSON,
    "negative binomial": NEGATIVE_BINOMIAL,
}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What the user asked for, checked: the formula read, the family, and options that shape the model."""

    parsed: Any
    family: int
    covariate_groups: bool = True
    measurement_error: Mapping[str, float] = field(default_factory=dict)


def read_formula(formula: str, release: Release) -> tuple[Any, dict[str, SeenColumn]]:
    """Parse a formula against a release; return it with the columns it names."""
    from .formulas.column_uses import names_in
    from .formulas.formula import parse
    from .formulas.whitelist import check
    from .noise.card_columns import check_fit, recomputed_totals

    table, card = release.table, release.card
    named = [name for name in names_in(check(formula, table.names)) if name in table.schema]
    if "Intercept" in named:
        raise BadPlan("a column named 'Intercept' cannot be told from the model's own: give it another name")
    totals = recomputed_totals(card)
    used = list(dict.fromkeys(part for name in named for part in _parts(name, totals)))
    check_fit(card, table, used)
    seen = {name: see(card, table, name) for name in used if table.schema[name].kind != "text"}
    data = {name: one.released for name, one in seen.items()}
    levels = dict.fromkeys(table.names, ()) | {name: one.variable.levels for name, one in seen.items()}
    for name in named:
        if name in totals:
            data[name] = sum((k * data[part] for part, k in totals[name]), np.zeros(len(table)))
        elif name not in data:
            codes, levels[name] = group_codes(table, (name,), card)
            data[name] = codes.astype(np.float64)
    noised = [name for name, one in seen.items() if one.noised.any()]
    parsed = parse(formula, data, levels, noised)
    texts = sorted(name for name in parsed.variables if table.schema[name].kind == "text")
    raise_all(
        [
            f"column {name!r} is text: it can group records, (1|{name}), but not enter a model"
            for name in texts
        ],
        BadPlan,
    )
    return _written_out(parsed, totals), seen


def _parts(name: str, totals: Mapping[str, tuple[tuple[str, float], ...]]) -> list[str]:
    return [part for part, _ in totals[name]] if name in totals else [name]


def _written_out(parsed: Any, totals: Mapping[str, tuple[tuple[str, float], ...]]) -> Any:
    """Replace totals that were recomputed from their parts by the sum of the true parts."""
    from .formulas.expression_trees import refs, substitute

    if not totals:
        return parsed
    by: dict[str, Node] = {}
    for total, parts in totals.items():
        node: Node = Number(0.0)
        for part, factor in parts:
            node = Binary("add", node, Binary("mul", Number(factor), Ref(part)))
        by[total] = node
    if refs(parsed.response) & set(by):
        raise BadPlan(
            f"the response {', '.join(sorted(refs(parsed.response) & set(by)))} was released as a sum of masked parts; "
            "model one of its parts"
        )
    groups = tuple(
        replace(term, columns=tuple(substitute(node, by) for node in term.columns)) for term in parsed.effects
    )
    columns = tuple(substitute(node, by) for node in parsed.columns)
    return replace(parsed, columns=columns, effects=groups)


def build(asked: ModelRequest, release: Release, seen: dict[str, SeenColumn]) -> System:
    """Return the system: equations of unknown categories, of unknown numbers, and the model of interest."""
    from .formulas.expression_trees import refs
    from .noise import bounds, noise_arrays, tables

    parsed = asked.parsed
    nodes = [*parsed.columns, *(node for term in parsed.effects for node in term.columns)]
    if parsed.offset is not None:
        nodes.append(parsed.offset)
    names = set().union(*(refs(node) for node in nodes)) if nodes else set()
    answer = next(iter(refs(parsed.response)))
    if answer in names:
        raise BadPlan(f"{answer!r} is on both sides of the formula")
    sides = _reread({name: seen[name] for name in seen if name in names or name == answer}, asked, release)
    order = [name for name in sides if name != answer] + [answer]
    response, counted = _response(asked, sides[answer])
    sides = {name: as_whole(release.card, release.table, one) for name, one in sides.items()} | {
        answer: response
    }
    variables = tuple(sides[name].variable for name in order)
    state = np.ascontiguousarray(np.stack([sides[name].guess for name in order], axis=1))
    unknown = np.stack([sides[name].unknown for name in order], axis=1)
    unknown[:, -1] &= counted
    factors, groups = _factors(parsed, release)
    interest = _interest(asked, variables, groups)
    if asked.family == ORDERED:
        interest = _centred_equation(interest, variables, state)
    covariates = _covariates(variables, unknown, groups if asked.covariate_groups else [], factors)
    limits = bounds(release.card, release.table, variables, erring=asked.measurement_error)
    lower, upper = (None, None) if limits is None else limits
    if upper is not None:
        _check_logarithms(upper, variables)
    numbers = [j for j, v in enumerate(variables) if not v.is_category and unknown[:, j].any()]
    noise = counts = None
    if asked.family in (POISSON, NEGATIVE_BINOMIAL) and unknown[:, -1].any():
        from .count_response import limits_of_counts, noised_counts

        counts = noised_counts(asked, release, variables, numbers)
        lower, upper = limits_of_counts(release.table, answer, state.shape, limits, counts)
        numbers = numbers if counts is None else numbers[:-1]
    if numbers:
        error = asked.measurement_error or None
        noise = noise_arrays(release.card, release.table, variables, numbers, measurement_error=error)
    return System(
        variables,
        state,
        unknown,
        (*covariates, interest),
        factors,
        noise,
        {j: t for j, t in tables(release.card, release.table, variables).items() if unknown[:, j].any()},
        lower,
        upper,
        counts,
        counted=None if counted.all() else counted,
        missing=np.stack([sides[name].missing for name in order], axis=1),
    )


def _check_logarithms(upper: Floats, variables: Sequence[Variable]) -> None:
    """Refuse values that are known to lie where they have no logarithm, on whose scale the column is."""
    for variable, ends in zip(variables, upper.T, strict=True):
        if (count := int(np.isneginf(ends).sum())) > 0:
            raise BadPlan(
                f"{count:,} values of {variable.name!r} are coded at the bottom, at or below what has a logarithm, and "
                "its noise is on the log scale: leave these records out (missing='drop')"
            )


def _reread(sides: dict[str, SeenColumn], asked: ModelRequest, release: Release) -> dict[str, SeenColumn]:
    """Read columns again that were measured with a known error."""
    from ..errors import nearest

    for name in asked.measurement_error:
        if name not in sides:
            hint = nearest(name, sides)
            raise BadPlan(f"measurement_error names {name!r}, which is not in the model{hint}")
        if sides[name].variable.is_category:
            raise BadPlan(f"measurement_error is for numbers; {name!r} is a category")
    erring = set(asked.measurement_error)
    again = {name: see(release.card, release.table, name, erring) for name in sides if name in erring}
    return {**sides, **again}


def _response(asked: ModelRequest, seen: SeenColumn) -> tuple[SeenColumn, Bools]:
    """Check the response against its family; return it as the sampler needs it, and where it is there."""
    from .responses import as_response

    return as_response(asked.family, asked.parsed.response, seen)


def _factors(parsed: Any, release: Release) -> tuple[tuple[Factor, ...], list[tuple[int, Any]]]:
    """Return the groupings of the records and each group term with its factor."""
    factors: list[Factor] = []
    groups: list[tuple[int, Any]] = []
    for term in parsed.effects:
        name = ":".join(term.factor)
        found = next((k for k, factor in enumerate(factors) if factor.name == name), None)
        if found is None:
            codes, labels = group_codes(release.table, term.factor, release.card)
            if len(labels) < 2:
                raise BadPlan(f"all records are in one group of {name!r}; leave the term out")
            factors.append(Factor(name, codes, labels, term.factor))
            found = len(factors) - 1
        groups.append((found, term))
    return tuple(factors), groups


def _interest(
    asked: ModelRequest, variables: tuple[Variable, ...], groups: list[tuple[int, Any]]
) -> Equation:
    parsed = asked.parsed
    chosen = list(zip(parsed.names, parsed.columns, strict=True))
    if asked.family == ORDERED:  # the cuts are its intercepts
        chosen = [(name, node) for name, node in chosen if node != ONE]
    effects = tuple(Effects(factor, term.names, term.columns) for factor, term in groups)
    names, columns = tuple(name for name, _ in chosen), tuple(node for _, node in chosen)
    return Equation(len(variables) - 1, asked.family, names, columns, effects, offset=parsed.offset)


def _centred_equation(equation: Equation, variables: tuple[Variable, ...], state: Floats) -> Equation:
    """Give an equation the means of its columns at the released values as centres."""
    from .formulas.expression_trees import evaluate, on_state

    values = {variable.name: state[:, j] for j, variable in enumerate(variables)}
    columns = [evaluate(on_state(node, variables), values) for node in equation.columns]
    finite = [column[np.isfinite(column)] for column in columns]
    return replace(equation, centres=tuple(float(seen.mean()) if len(seen) else 0.0 for seen in finite))


def _covariates(
    variables: tuple[Variable, ...],
    unknown: Bools,
    groups: Sequence[tuple[int, Any]],
    factors: tuple[Factor, ...],
) -> list[Equation]:
    """Return the covariate model: sticks of unknown categories, then unknown numbers, each given what comes before."""
    predictors = range(len(variables) - 1)
    clean = [j for j in predictors if not unknown[:, j].any()]
    categories = [j for j in predictors if unknown[:, j].any() and variables[j].is_category]
    numbers = [j for j in predictors if unknown[:, j].any() and not variables[j].is_category]
    intercepts = tuple(
        Effects(factor, ("Intercept",), (ONE,)) for factor in dict.fromkeys(factor for factor, _ in groups)
    )
    found, before = [], list(clean)
    for j in categories:
        names, columns = _main_effects(variables, before)
        sticks = range(len(variables[j].levels) - 1)
        found += [Equation(j, PROBIT, names, columns, intercepts, stick=stick) for stick in sticks]
        before.append(j)
    for j in numbers:
        names, columns = _main_effects(variables, before)
        found.append(Equation(j, GAUSSIAN, names, columns, intercepts))
        before.append(j)
    return found


def _main_effects(
    variables: tuple[Variable, ...], before: Sequence[int]
) -> tuple[tuple[str, ...], tuple[Node, ...]]:
    """Return an intercept and the main effects of some variables, numbers on the scale of their state."""
    names, columns = ["Intercept"], [ONE]
    nodes: list[Node] = []
    for j in before:
        variable = variables[j]
        if variable.is_category and variable.base is None:
            names += [f"{variable.name}[{level}]" for level in variable.levels[1:]]
            nodes += [Level(variable.name, k) for k in range(1, len(variable.levels))]
        else:
            names.append(variable.name)
            nodes.append(_own_scale(variable))
    return tuple(names), (*columns, *nodes)


def _own_scale(variable: Variable) -> Node:
    """Return a variable on the scale of its state, written in the data's units."""
    from .expressions import Unary

    if variable.log_shift is None:
        return Ref(variable.name)
    return Unary("log", Binary("add", Ref(variable.name), Number(variable.log_shift)))


def complete_records(system: System) -> Bools:
    """Return which records have a response and no missing value."""
    keep = np.ones(len(system), bool) if system.counted is None else system.counted.copy()
    return keep if system.missing is None else keep & ~system.missing.any(axis=1)


def as_if_true(system: System) -> System | None:
    """Return the unadjusted model: released values taken for true, records with missing values left out.

    Nothing where too few records are left.
    """
    keep = complete_records(system)
    if keep.sum() <= len(system.interest.columns):
        return None
    return select_records(
        replace(
            system,
            equations=system.equations[-1:],
            noise=None,
            tables={},
            lower=None,
            upper=None,
            counts=None,
        ),
        keep,
    )


def select_records(system: System, keep: Bools) -> System:
    """Return a system without noise on some of its records, nothing unknown."""
    factors = tuple(replace(factor, codes=factor.codes[keep]) for factor in system.factors)
    state = np.ascontiguousarray(system.state[keep])
    nothing = np.zeros(state.shape, bool)
    return replace(system, state=state, unknown=nothing, factors=factors, counted=None, missing=None)


# Whole numbers of few values under noise: drawn by enumeration, since a continuous truth would not fit them.


FINE = 0.5  # of the sd of the noise: a unit below it is no different from a continuous truth
MOST_VALUES = 12  # whole numbers that become levels; with more the column stays continuous


def as_whole(card: NoiseCard, table: Table, seen: SeenColumn) -> SeenColumn:
    """Return a column of noised whole numbers as one with levels, where its unit is coarse and its values are few.

    The values are those between the least and the largest released one; others under correlated noise, on a log
    scale or with codes stay continuous.
    """
    from .noise.card_columns import law_of

    name, law = seen.variable.name, law_of(card, seen.variable.name)
    if name not in table.schema or table.schema[name].kind != "integer" or not isinstance(law, Additive):
        return seen
    j = law.columns.index(name)
    plain = seen.variable.log_shift is None and not law.categories and law.slope == 1.0
    apart = is_independent(law.noise) or isinstance(law.noise, Mixture)
    if not plain or not apart or seen.coded.any() or not seen.noised.any() or seen.variable.is_category:
        return seen
    step = float(table.schema[name].step or 1)
    sd = float(np.sqrt(law.noise.covariance[j, j]))
    values = np.rint(seen.guess[~seen.missing])
    count = int(np.ptp(values)) + 1 if len(values) else 0
    if step != 1.0 or step < FINE * sd or not 2 <= count <= MOST_VALUES:
        return seen
    base = float(values.min())
    levels = tuple(f"{base + k:g}" for k in range(count))
    codes = np.clip(np.rint(seen.guess) - base, 0, count - 1)
    return replace(seen, variable=Variable(name, levels, base=base), guess=codes)
