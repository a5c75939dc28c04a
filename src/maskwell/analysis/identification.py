"""What numbers cannot tell: columns that are nearly one, and errors larger than what they are part of.

A known error variance v is refused where the released column's sum of squares is below v times the chi-squared quantile
IMPOSSIBLE: own derivation, since the sum of squares of x + e is at least v chi-squared in law whatever x. Called by
`model_fit` before and after sampling.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ..errors import BadPlan, raise_all
from ..notes import Note
from ..words.phrases import name_list
from .expressions import Binary, Node, Unary
from .formulas.expression_trees import refs
from .priors import Priors
from .results.draws import Draws
from .system import System

# Notes that name coefficients which rest on their priors, or the columns that these are of
ON_PRIORS = ("analysis.separation", "analysis.joint_separation", "analysis.weak_signal")
# Of the largest singular value: below it normal equations lose the digits that tell columns apart
NEARLY = 5e-7
NEARLY_PRIOR = 0.5  # of the sd of a prior: draws that spread as widely have learned little
# The probability of a column with so little variance, had it been measured with such an error
IMPOSSIBLE = 1e-9


def check_apart(system: System) -> None:
    """Refuse columns so nearly collinear that draws of their coefficients would be rounding errors."""
    from .design_checks import columns_at_release

    interest = system.interest
    counted = slice(None) if system.counted is None else system.counted
    design = columns_at_release(system)[counted]
    if interest.centres:
        design = design - np.array(interest.centres)
    if design.shape[1] < 2:
        return
    scaled = design / np.maximum(np.sqrt((design**2).sum(axis=0)), 1e-300)
    _, sizes, right = np.linalg.svd(np.linalg.qr(scaled, mode="r"))
    if sizes[-1] > NEARLY * sizes[0]:
        return
    involved = [
        repr(name) for name, part in zip(interest.names, np.abs(right[-1]), strict=True) if part > 0.01
    ]
    raise BadPlan(
        f"the columns {name_list(involved)} are so nearly collinear that arithmetic cannot tell them apart; take "
        "columns that are far from 0 about their means, as in center(x), and poly(x, 2) for powers"
    )


def _is_plain(system: System, j: int) -> bool:
    """Whether a variable has values in the data's units, none of them only known to lie beyond a limit."""
    limits = [limit[:, j] for limit in (system.lower, system.upper) if limit is not None]
    return system.variables[j].log_shift is None and not any(np.isfinite(limit).any() for limit in limits)


def check_equalities(system: System) -> None:
    """Refuse C(n) and I(n == 3) of a number some of whose values are drawn: a continuous draw equals no value."""
    drawn = {
        variable.name
        for j, variable in enumerate(system.variables)
        if not variable.is_category and system.unknown[:, j].any()
    }
    interest = system.interest
    blocks = [
        (interest.names, interest.columns),
        *((block.names, block.columns) for block in interest.effects),
    ]
    found = {
        name: part
        for names, nodes in blocks
        for label, node in zip(names, nodes, strict=True)
        for name, part in _equalities(node, label)
        if name in drawn
    }
    raise_all(
        [
            f"{label} compares {name!r} with single values, but some of its own are unknown and drawn as a continuous "
            "number, which equals none; make it a category in the schema, or compare by < and >"
            for name, label in found.items()
        ],
        BadPlan,
    )


def _equalities(node: Node, label: str) -> Iterator[tuple[str, str]]:
    """Yield the numbers that an expression compares by == or !=."""
    match node:
        case Unary(_, of):
            yield from _equalities(of, label)
        case Binary("eq" | "ne"):
            yield from ((name, label) for name in sorted(refs(node)))
        case Binary(_, left, right):
            yield from _equalities(left, label)
            yield from _equalities(right, label)


def check_errors(system: System, errors: Mapping[str, float]) -> None:
    """Refuse a measurement error that the released column cannot have: its variance is too small by far.

    Whatever the true values, the sum of squares of a column with normal errors is at least a chi-square times the
    variance of the errors, in law. What chance may explain is for the notes.
    """
    from scipy.special import chdtr

    for name, variance in errors.items():
        j = system.number_of(name)
        seen = system.state[:, j] if system.missing is None else system.state[~system.missing[:, j], j]
        if len(seen) < 2 or variance <= 0 or not _is_plain(system, j):
            continue
        own = float(seen.var(ddof=1))
        if chdtr(len(seen) - 1, (len(seen) - 1) * own / variance) < IMPOSSIBLE:
            raise BadPlan(
                f"measurement_error of {name!r} is {variance / max(own, 1e-300):,.3g} times the variance of the "
                "released column, which cannot be: give the variance of the error, not its sd, in the column's units"
            )


def resting_on_priors(
    system: System, priors: Priors, draws: Draws, notes: Sequence[Note]
) -> tuple[Note, ...]:
    """Say which coefficients the file hardly informs: their draws spread nearly as widely as their priors.

    A level that nobody behind the noise has, or a column that noise has drowned. Coefficients whose priors the user
    gave are as he wants them, and what other notes say is not said again.
    """
    from .samplers.gibbs.sweeps import plan_of

    names = system.interest.names
    sds = draws.values[:, :, : len(names)].std(axis=(0, 1))
    own = plan_of(system, priors).priors[-1].sd
    named = {name for note in notes if note.code in ON_PRIORS for name in _names_of(note)}
    found = tuple(
        name
        for name, sd, prior in zip(names, sds, own, strict=True)
        if sd > NEARLY_PRIOR * prior and name not in priors.coefficients and name not in named
    )
    return (Note("analysis.prior", {"names": found}),) if found else ()


def _names_of(note: Note) -> tuple[str, ...]:
    """Return the coefficients or columns that a note names."""
    return (note.figures["name"],) if "name" in note.figures else note.figures["names"]
