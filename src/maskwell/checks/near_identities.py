"""Sums that nearly all records obey: a total with some errors in it, a mean that was rounded.

Least squares on many small random sets of records, some of which have none of the errors: where a column is left with
less than its rounding there, its coefficients are taken to the nearest simple fractions and tried on all records.
Random small sets as in RANSAC (Fischler and Bolles 1981); fractions by continued fractions. Called by `relations`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ..io.identities import Identity, decimal_unit
from ..table import Floats

LEAST_SHARE = 0.9  # of the records: a sum that fewer obey is no rule
# Sets of records, each of so many more than there are columns: a fifth is clean at worst
TRIES, MORE = 60, 12
FEWEST = 100  # records in which all columns are open
MOST_COLUMNS = 24  # that are looked at together
WIDE = 20.0  # units of sd: narrower columns agree within a unit by accident
LARGEST_DENOMINATOR = 12  # of a coefficient

Terms = tuple[tuple[int, Fraction], ...]


@dataclass(frozen=True, slots=True)
class NearSum:
    """An identity, the share of the records in which it holds, and the sd of the rounding that is left in these."""

    identity: Identity
    share: float = 1.0
    slack: float = 0.0

    def __str__(self) -> str:
        if self.share == 1 and not self.slack:
            return str(self.identity)
        rounded = " up to rounding" if self.slack else ""
        return f"{self.identity} (in {self.share:.1%} of the records{rounded})"


def near_identities(values: Floats, names: Sequence[str], exact: Sequence[Identity]) -> tuple[NearSum, ...]:
    """Return the exact identities, and further ones that hold in nearly all records up to one unit."""
    found = [NearSum(one) for one in exact]
    inside = values[~np.isnan(values).any(axis=1)]
    if len(inside) < FEWEST or not 2 <= len(names) <= MOST_COLUMNS:
        return tuple(found)
    units = np.array([_unit(column) for column in inside.T])
    terms = sorted(set(_candidates(inside, units)), key=_cost)
    held = [(*_holding_share(inside, total, parts, units[total]), total, parts) for total, parts in terms]
    rules = [_rule(one, names) for one in exact]
    for share, slack, total, parts in sorted(held, key=lambda one: -one[0]):
        rule = _row(total, parts, len(names))
        if share >= LEAST_SHARE and not _is_copy(parts, share) and _is_new(rule, rules):
            rules.append(rule)
            coefficients = tuple((names[j], float(c)) for j, c in parts)
            found.append(NearSum(Identity(names[total], coefficients), share, slack))
    return tuple(found)


def _unit(values: Floats) -> float:
    unit = decimal_unit(values)
    return 1e-6 * float(values.std() or 1.0) if unit is None else unit


def _candidates(x: Floats, units: Floats) -> Iterator[tuple[int, Terms]]:
    """Return the sums that a set of few records obeys."""
    rng, width = np.random.default_rng(4), x.shape[1]
    wide = x.std(axis=0) >= WIDE * units
    for _ in range(TRIES):
        some = x[rng.choice(len(x), width + MORE, replace=False)]
        left = _residual_rms(some, 1e-3 * units.min())
        for total in np.flatnonzero(wide & (left <= units)).tolist():
            parts = _parts(some, total, units[total])
            if parts:
                yield total, parts


def _residual_rms(some: Floats, least: float) -> Floats:
    """Return the root mean square that each column has left once all others explain it."""
    _, singular, directions = np.linalg.svd(some, full_matrices=False)
    inverse = directions / np.maximum(singular, least)[:, None]
    return np.asarray(1 / np.sqrt((inverse**2).sum(axis=0) * len(some)))


def _parts(some: Floats, total: int, unit: float) -> Terms:
    """Return the simplest fractions near the coefficients of a column by the others; directions of rounding aside."""
    others = [j for j in range(some.shape[1]) if j != total]
    left, singular, right = np.linalg.svd(some[:, others], full_matrices=False)
    kept = singular > 2 * unit * np.sqrt(len(some))
    solved = right[kept].T @ ((left[:, kept].T @ some[:, total]) / singular[kept])
    near = [Fraction(c).limit_denominator(LARGEST_DENOMINATOR) for c in solved.tolist()]
    return tuple((j, c) for j, c in zip(others, near, strict=True) if c)


def _cost(one: tuple[int, Terms]) -> tuple[int, Fraction, int, Terms]:
    """Fewer parts come first, then smaller coefficients; the rest makes the order definite."""
    return len(one[1]), sum((abs(c) for _, c in one[1]), Fraction(0)), *one


def _holding_share(x: Floats, total: int, parts: Terms, unit: float) -> tuple[float, float]:
    """Return in which share of the records a sum holds, and the sd of what rounding leaves in these.

    Records where each member has its most frequent value, zero as a rule, do not count: they obey many sums.
    """
    rest = x[:, total] - sum(float(c) * x[:, j] for j, c in parts)
    tells = np.zeros(len(x), bool)
    for j in (total, *(j for j, _ in parts)):
        tells |= x[:, j] != _mode(x[:, j])
    if tells.sum() < FEWEST:
        return 0.0, 0.0
    holds = np.abs(rest[tells]) < unit * (1 + 1e-6)
    slack = float(np.sqrt(np.mean(rest[tells][holds] ** 2))) if holds.any() else 0.0
    return float(holds.mean()), 0.0 if slack < 1e-6 * unit else slack


def _mode(values: Floats) -> float:
    support, counts = np.unique(values, return_counts=True)
    return float(support[counts.argmax()])


def _is_copy(parts: Terms, share: float) -> bool:
    """Whether a column is another one: near-duplicate columns have a check of their own."""
    return share == 1 and len(parts) == 1 and abs(parts[0][1]) == 1


def _row(total: int, parts: Terms, width: int) -> Floats:
    row = np.zeros(width)
    row[total] = -1.0
    for j, coefficient in parts:
        row[j] = float(coefficient)
    return row


def _rule(one: Identity, names: Sequence[str]) -> Floats:
    row = np.zeros(len(names))
    row[list(names).index(one.total)] = -1.0
    for name, coefficient in one.parts:
        row[list(names).index(name)] = coefficient
    return row


def _is_new(rule: Floats, rules: Sequence[Floats]) -> bool:
    """Whether a sum does not follow from others."""
    return int(np.linalg.matrix_rank(np.array([*rules, rule]), tol=1e-6)) == len(rules) + 1
