"""The density of a true record that was not released, under the kernels f(x|z): an average over what else could be.

    f(x0 | not released) = integral of f(x0|z) t(z) dz        (Fienberg, Makov and Sanil 1997, (4))

with t the predictive law of one more released value: a Student t, that of normal values with the usual vague prior.
Columns are independent of each other, as the kernels have it, but for those whose noise is correlated: they have a
multivariate t, and the integral is over log w of the chi-squared mixture, by the trapezoid rule (Trefethen and Weideman
2014). Values that are not open have the share of their status. Chosen by `law_kernels` for kernels paper and fms;
under coherent an absent record weighs 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....errors import BadInput
from ....schema import OPEN
from ....table import Floats, Table
from ...protocol import Bools, Ints
from .kernels import UNLIKELY, JointKernel, KernelColumn, NodesOf, factors
from .quadrature import LogOf, WholeLine, log_integrals

AT_ONCE = 4_000  # records integrated together
MOST_STEPS = 2**14  # of the trapezoid rule
LOG_2_PI = math.log(2.0 * math.pi)


def log_unreleased(
    laws: Sequence[Any], z: Table, x: Table, kind_name: str, nodes_of: NodesOf | None = None
) -> Floats:
    """Return for each record of x the log of f(x0 | not released), in the measure of `biased_terms`.

    `z` are the released records; what they do not show (a status, a value without noise) counts as one of n + 1.
    """
    return log_unreleased_with_error(laws, z, x, kind_name, nodes_of)[0]


def log_unreleased_with_error(
    laws: Sequence[Any], z: Table, x: Table, kind_name: str, nodes_of: NodesOf | None = None
) -> tuple[Floats, float]:
    """Return `log_unreleased` and a bound on the relative error of the quadrature."""
    total, error = np.zeros(len(x)), 0.0
    for law in laws:
        for factor in factors([law], z, x, kind_name, nodes_of):
            logs, this = (
                _of_column(factor, law) if isinstance(factor, KernelColumn) else _of_joint(factor, law)
            )
            total, error = total + logs, error + this
    return total, error


# --- one column --------------------------------------------------------------------------------------------


def _of_column(column: KernelColumn, law: Any) -> tuple[Floats, float]:
    """Return log share of the status, times the average of the kernel where it is open."""
    counts = np.bincount(column.status_z, minlength=256)[column.status_x]
    out, error = _log_share(counts, len(column.status_z)), 0.0
    known = np.flatnonzero(column.status_x == OPEN)
    released = column.z[column.status_z == OPEN]
    silent = _is_silent(column, column.x[known])
    same = _count_same(released, column.x[known[silent]])
    out[known[silent]] = _log_share(same, len(column.status_z))
    noisy = known[~silent]
    if len(noisy):
        different, place = np.unique(column.x[noisy], return_inverse=True)
        logs, error = _log_mean_kernel(column, different, Student.of(released, law.columns))
        out[noisy] += logs[place]
    return out, error


def _is_silent(column: KernelColumn, x: Floats) -> Bools:
    """Which values have no noise: all, or 0 where there is nothing but bias."""
    if column.is_silent:
        return np.ones(len(x), bool)
    return np.asarray((x == 0) & (not column.nodes[1].any()))


def _count_same(released: Floats, x: Floats) -> Ints:
    ordered = np.sort(released)
    return np.searchsorted(ordered, x, "right") - np.searchsorted(ordered, x, "left")


def _log_share(counts: Ints, total: int) -> Floats:
    """Return the log of counts over a total; what was never seen counts as one of one more."""
    return np.where(counts > 0, np.log(np.maximum(counts, 1) / max(total, 1)), -math.log(total + 1.0))


@dataclass(frozen=True, slots=True)
class Student:
    """The predictive law of one more value: Student's t; of scale 0, its one value."""

    centre: float
    scale: float
    freedom: float

    @classmethod
    def of(cls, values: Floats, columns: Sequence[str]) -> Student:
        """Take the mean and the sd of released values."""
        _check_enough(len(values), 2, columns)
        scale = float(np.std(values, ddof=1)) * math.sqrt(1.0 + 1.0 / len(values))
        return cls(float(values.mean()), scale if np.ptp(values) > 0 else 0.0, len(values) - 1.0)

    def logpdf(self, values: Floats) -> Floats:
        """Return the log density."""
        more = 0.5 * (self.freedom + 1.0)
        constant = math.lgamma(more) - math.lgamma(0.5 * self.freedom)
        constant -= 0.5 * math.log(math.pi * self.freedom) + math.log(self.scale)
        distance = (values - self.centre) / self.scale
        return np.asarray(constant - more * np.log1p(distance * distance / self.freedom))


def _check_enough(count: int, least: int, columns: Sequence[str]) -> None:
    if count < least:
        listed = ", ".join(map(repr, columns))
        raise BadInput(
            f"of {listed} too few values were released ({count}) to say what one more would be: "
            "kernel 'coherent' needs none"
        )


def _log_mean_kernel(column: KernelColumn, x: Floats, law: Student) -> tuple[Floats, float]:
    """Return the log of the integral of the kernel over a predictive law for each x, and the largest relative error."""
    if law.scale == 0.0:
        return column.kernel(np.full(len(x), law.centre), x), 0.0
    out, error = np.empty(len(x)), 0.0
    for begin in range(0, len(x), AT_ONCE):
        some = x[begin : begin + AT_ONCE]
        logs, this = log_integrals(_integrand(column, some, law), _line(column, some, law))
        out[begin : begin + AT_ONCE], error = logs, max(error, this)
    return out, error


def _integrand(column: KernelColumn, x: Floats, law: Student) -> LogOf:
    return lambda z, owner: np.asarray(column.kernel(z, x[owner]) + law.logpdf(z))


def _line(column: KernelColumn, x: Floats, law: Student) -> WholeLine:
    """Cut the line of each x where the integrand has its peaks, edges and kinks."""
    likely = column.nodes[2] > UNLIKELY
    bias_sds, sds = column.nodes[0][likely], column.nodes[1][likely]
    wide = np.hypot(sds.max(), bias_sds.max() * x)
    narrow = np.hypot(sds.min(), bias_sds.min() * x)
    weight = 1.0 / (1.0 + (wide / law.scale) ** 2)
    middle, width = law.centre + weight * (x - law.centre), wide * np.sqrt(weight)
    places = [0.0 * x, x, middle, *(law.centre + law.scale * step + 0.0 * x for step in (-6, -1, 1, 6))]
    for step in (-9.0, -3.0, 3.0, 9.0):
        places += [x + step * wide, x + step * narrow, middle + step * width]
    if bias_sds.any():
        turn = float(sds.max() / bias_sds.max())  # where bias and noise are the same size
        kink = -turn * turn / np.where(x == 0, 1.0, x)  # where the mean of theta is 0
        places += [turn + 0.0 * x, 0.0 * x - turn, np.clip(kink, x - 1e3 * wide, x + 1e3 * wide)]
    return WholeLine(np.sort(np.column_stack(places), axis=1), np.maximum(wide, law.scale))


# --- columns whose noise is correlated ---------------------------------------------------------------------


def _of_joint(joint: JointKernel, law: Any) -> tuple[Floats, float]:
    """Return log share of each record's statuses, times the average of the kernel over its open columns."""
    kinds, member = np.unique(joint.status_x, axis=0, return_inverse=True)
    out, error = np.empty(len(joint.x)), 0.0
    for number, kind in enumerate(kinds):
        records = np.flatnonzero(member.ravel() == number)
        same = np.array([(joint.status_z == kind).all(axis=1).sum()])
        out[records] = _log_share(same, len(joint.z))[0]
        chosen = np.flatnonzero(kind == OPEN)
        if len(chosen):
            logs, this = _averaged_jointly(joint, records, chosen, law)
            out[records], error = out[records] + logs, max(error, this)
    return out, error


def _averaged_jointly(joint: JointKernel, records: Ints, chosen: Ints, law: Any) -> tuple[Floats, float]:
    """Return the log density of normal noise around a multivariate t of the released values, and its error."""
    released = joint.z[(joint.status_z[:, chosen] == OPEN).all(axis=1)][:, chosen]
    (count, width), columns = released.shape, [law.columns[j] for j in chosen]
    _check_enough(count, width + 1, columns)
    freedom = float(count - width)
    spread = np.atleast_2d(np.cov(released, rowvar=False)) * (1.0 + 1.0 / count) * (count - 1.0) / freedom
    away = joint.x[np.ix_(records, chosen)] - released.mean(axis=0)
    try:
        return student_plus_normal(away, spread, joint.covariance[np.ix_(chosen, chosen)], freedom)
    except np.linalg.LinAlgError:
        listed = ", ".join(map(repr, columns))
        raise BadInput(f"one of {listed} follows from the others: leave it out of fields") from None


def student_plus_normal(away: Floats, spread: Floats, noise: Floats, freedom: float) -> tuple[Floats, float]:
    """Return the log density of t(0, spread, freedom) + N(0, noise), and the relative error of its quadrature.

    Given w ~ chi^2 / freedom it is N(0, spread / w + noise). In coordinates where both are diagonal and sum to 1 it is
    an integral over log w, for which the trapezoid rule converges fast; its step is halved until nothing changes.
    """
    factor = np.asarray(np.linalg.cholesky(spread + noise), np.float64)
    half = np.linalg.solve(factor, spread)
    shares, turned = np.linalg.eigh(np.asarray(np.linalg.solve(factor, half.T), np.float64))
    squares = np.asarray((np.linalg.solve(factor, away.T).T @ turned) ** 2)
    logs, error, count = np.zeros(len(away)), np.inf, 64
    while error > 1e-10 and count < MOST_STEPS:
        before, count = logs, 2 * count
        logs = _over_w(squares, np.clip(shares, 1e-16, 1.0), freedom, count)
        error = float(np.abs(logs - before).max(initial=0.0))
    return np.asarray(logs - np.log(np.diag(factor)).sum()), error


def _over_w(squares: Floats, shares: Floats, freedom: float, count: int) -> Floats:
    """Return the log of the trapezoid sum over log w, between where the integrand is nothing on both sides."""
    low, high = _ends(squares, shares, freedom)
    step = (high - low) / count
    top, total = np.full(len(squares), -np.inf), np.zeros(len(squares))
    for k in range(count + 1):
        log_w = low + k * step
        logs = 0.5 * freedom * (log_w - np.expm1(log_w)) + _log_normals(squares, shares, log_w)
        higher = np.maximum(top, logs)
        total = total * np.exp(top - higher) + np.exp(logs - higher)
        top = higher
    constant = 0.5 * freedom * (math.log(0.5 * freedom) - 1.0) - math.lgamma(0.5 * freedom)
    return np.asarray(top + np.log(total * step) + constant)


def _ends(squares: Floats, shares: Floats, freedom: float) -> tuple[Floats, float]:
    """Return between which log w the integrand is more than exp(-45) of its peak.

    The density of log w falls as exp(-freedom c / 2), c at least log(w)^2 / 3 near w = 1 and -1 - log w far below it.
    """
    c = (squares.sum(axis=1) + 90.0) / freedom
    low = -np.where(3.0 * c <= 1.0, np.sqrt(3.0 * c), 1.0 + c)
    peak = -np.log1p((squares / shares).sum(axis=1) / freedom)
    most = 90.0 + 10.0 * len(shares)
    beside = math.sqrt(3.0 * most / freedom) if 3.0 * most <= freedom else 1.0 + most / freedom
    high = min(math.sqrt(2.0 * most / freedom), 1.0 + math.log1p(2.0 * most / freedom))
    return np.maximum(low, peak - beside), high


def _log_normals(squares: Floats, shares: Floats, log_w: Floats) -> Floats:
    variance = shares * np.exp(-log_w)[:, None] + (1.0 - shares)
    return np.asarray(-0.5 * (squares / variance + np.log(variance) + LOG_2_PI).sum(axis=1))
