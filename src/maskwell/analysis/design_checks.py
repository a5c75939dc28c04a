"""What is wrong with a design, or worth knowing, before any draw is made.

Collinear: a singular value below COLLINEAR of the largest, columns brought to one size (Belsley, Kuh and Welsch 1980).
Weak: reliability 1 - var(noise) / var(z) below WEAK (Fuller 1987, section 1.1). Called by `model_fit` before sampling.
"""

from __future__ import annotations

import numpy as np

from ..errors import BadInput, BadPlan
from ..masking import Release
from ..notes import Note
from ..schema import BOTTOM_CODED, TOP_CODED
from .count_response import count_notes
from .system import LOGIT, ORDERED, PROBIT, Bools, Floats, System

COLLINEAR = 1e-9  # of the largest singular value of columns brought to one size
WEAK = 0.5  # reliability below which the noise is larger than the signal
PILED_UP = 0.05  # share of the values of a column at the limits of its noise from which on it is said


def check_design_columns(system: System, release: Release) -> tuple[Note, ...]:
    """Refuse a design that cannot be fitted; return notes."""
    design = columns_at_release(system)
    counted = np.ones(len(system), bool) if system.counted is None else system.counted
    count = int(counted.sum())
    names = system.interest.names
    if count <= len(names):
        raise BadInput(
            f"there are {count:,} records with a response for {len(names)} coefficients; a model needs more records "
            "than coefficients"
        )
    if not np.isfinite(design[counted]).all():
        bad = [
            name
            for name, column in zip(names, design[counted].T, strict=True)
            if not np.isfinite(column).all()
        ]
        raise BadPlan(
            f"{', '.join(map(repr, bad))} is not a finite number in every record{_remedy(system, bad)}"
        )
    _collinear(design[counted], names)
    notes = [
        *_groups(system),
        *_missing_notes(system, release),
        *_separation_notes(system, design, counted),
        *_weak(system),
        *_piled_up(system),
    ]
    notes += count_notes(system)
    if system.noise is not None:
        notes += list(system.noise.notes)
    if release.card.seeded:
        notes.append(Note("analysis.small_seed"))
    return tuple(notes)


def _remedy(system: System, bad: list[str]) -> str:
    """Say what to write in place of terms that are no numbers: a logarithm on the scale of the noise, where that is."""
    from .formulas.expression_trees import refs
    from .log_scale import log_remedy

    terms = zip(system.interest.names, system.interest.columns, strict=True)
    used = frozenset().union(*(refs(node) for name, node in terms if name in bad))
    if remedy := log_remedy(variable for variable in system.variables if variable.name in used):
        return f": {remedy}"
    return (
        " (a logarithm or root of a value that noise carried below 0, or that its unit rounded to 0?); take log(x + c) "
        "with c so large that no plausible true value lies below -c, or the column itself, or ask the steward for "
        "noise on the log scale or a finer unit"
    )


def columns_at_release(system: System) -> Floats:
    """Return the columns of the model of interest at the released values."""
    from .formulas.expression_trees import evaluate, on_state

    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    out = np.empty((len(system), len(system.interest.columns)))
    for k, node in enumerate(system.interest.columns):
        out[:, k] = evaluate(on_state(node, system.variables), values)
    return out


def _piled_up(system: System) -> list[Note]:
    """Say where many noised values were held at a limit: what lies behind is taken from a normal tail."""
    if system.noise is None:
        return []
    arrays, said = system.noise.arrays, list[Note]()
    tails = arrays.interval & (np.isinf(arrays.cell_lower) | np.isinf(arrays.cell_upper))
    for name, share in zip(system.noise.names, tails.mean(axis=0), strict=True):
        if share > PILED_UP:
            said.append(Note("analysis.values_at_limits", {"name": name, "share": float(share)}))
    return said


def _collinear(design: Floats, names: tuple[str, ...]) -> None:
    """Refuse columns that are an exact combination of others, and name them."""
    sizes = np.sqrt((design**2).sum(axis=0))
    empty = [name for name, size in zip(names, sizes, strict=True) if size == 0]
    if empty:
        raise BadPlan(f"the columns {', '.join(map(repr, empty))} are 0 in every record; leave them out")
    scaled = design / sizes
    _, singular, right = np.linalg.svd(np.linalg.qr(scaled, mode="r"))
    if singular[-1] > COLLINEAR * singular[0]:
        return
    involved = [name for name, part in zip(names, np.abs(right[-1]), strict=True) if part > 1e-6]
    raise BadPlan(
        f"the columns {', '.join(map(repr, involved))} are collinear, exactly or as far as "
        "arithmetic can tell: one is a combination of the others; "
        "leave one out, or take columns far from 0 about their means, as in center(x)"
    )


def _groups(system: System) -> list[Note]:
    found = list[Note]()
    for factor in system.factors:
        sizes = np.bincount(factor.codes, minlength=len(factor.labels))
        single = int((sizes == 1).sum())
        if single == len(sizes):
            raise BadPlan(
                f"every group of {factor.name!r} has one record: its effects cannot be told from the residual; "
                "leave the term out"
            )
        if single:
            figures = {"factor": factor.name, "single": single, "groups": len(sizes)}
            found.append(Note("analysis.single_groups", figures))
        if len(sizes) < 5:
            found.append(Note("analysis.few_groups", {"factor": factor.name, "groups": len(sizes)}))
    return found


def _missing_notes(system: System, release: Release) -> list[Note]:
    """Say of every column, noised or not, how many of its values were not released and are drawn."""
    found = list[Note]()
    if system.counted is not None:
        found.append(Note("analysis.unanswered_records", {"count": int((~system.counted).sum())}))
    for j, variable in enumerate(system.variables):
        unknown, name = system.unknown[:, j], variable.name
        missing = unknown & system.missing[:, j] if system.missing is not None else np.zeros_like(unknown)
        coded = unknown & ~missing
        if name in release.table.schema:  # what noise, classes and coarse units hide is said elsewhere
            coded &= np.isin(release.table.status(name), (TOP_CODED, BOTTOM_CODED))
        if (missing | coded).any():
            counts = {"missing": int(missing.sum()), "coded": int(coded.sum()), "records": len(unknown)}
            found.append(Note("analysis.unknown_values", {"name": name, **counts}))
    return found


def _separation_notes(system: System, design: Floats, counted: Bools) -> list[Note]:
    """Say where a column of a binary model splits the responses without overlap."""
    if system.interest.family not in (PROBIT, LOGIT, ORDERED):
        return []
    y = system.state[counted, system.interest.response]
    split = [
        name
        for name, column in zip(system.interest.names, design[counted].T, strict=True)
        if np.ptp(column) > 0 and _splits(column, y)
    ]
    return [Note("analysis.separation", {"name": name}) for name in split]


def _splits(column: Floats, y: Floats) -> bool:
    low, high = column[y <= y.min()], column[y >= y.max()]
    if len(np.unique(column)) == 2:  # a dummy: all responses alike at one of its values
        return any(len(np.unique(y[column == value])) == 1 for value in np.unique(column))
    return bool(low.max() < high.min() or high.max() < low.min())


def _weak(system: System) -> list[Note]:
    """Say where the noise is larger than the signal."""
    if system.noise is None:
        return []
    found = list[Note]()
    count = (
        system.interest.response if system.is_count_unknown else -1
    )  # its law is known: it is no predictor
    for k, j in enumerate(system.noise.columns.tolist()):
        noise, arrays = float(system.noise.sds[k]), system.noise.arrays
        tails = np.isinf(arrays.cell_lower[:, k]) != np.isinf(arrays.cell_upper[:, k])
        seen = arrays.is_open[arrays.pattern, k] & ~tails
        total = float(np.std(system.state[seen, j])) if seen.any() else 0.0
        if noise <= 0 or total <= 0 or j == count:
            continue
        reliability = 1 - (noise / total) ** 2
        if reliability < WEAK:
            figures = {"name": system.variables[j].name, "reliability": max(reliability, 0.0)}
            found.append(Note("analysis.weak_signal", figures))
    return found
