"""Three cheap cross-checks of a fit: moment correction, regression calibration and SIMEX.

Moments: Fuller (1987), section 2.2 (`fuller_moments`). Calibration: E(x | z) in place of z, Carroll, Ruppert, Stefanski
and Crainiceanu (2006), chapter 4 (`calibration`). SIMEX: estimates at noise (1 + lambda) times that released, their
polynomial in lambda taken to -1, with the simulation jackknife (Cook and Stefanski 1994; Stefanski and Cook 1995).
All refuse columns that were clamped, coded or coarsely rounded. Called by the analyst and by `fit --check`, never in
place of `fit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from ...errors import BadPlan, nearest, raise_all
from ...masking import Release
from ...notes import Note
from ..system import Floats
from .calibration import solve_calibrated
from .design_arrays import CorrectionRequest, ReleasedProblem, read_problem
from .fuller_moments import solve_moments
from .glm import FAMILIES, Data, Family, OrdinaryFit, check_linear, family_of, fit_ordinary
from .noise_moments import NoiseOfColumns
from .problem import CorrectionProblem
from .result import Corrected, negative_variance, reported_estimates

LINEAR = FAMILIES["gaussian"]


def moment_correction(
    formula: str,
    release: Release,
    *,
    family: str = "gaussian",
    measurement_error: Mapping[str, float] | None = None,
    weights: str | None = None,
) -> Corrected:
    """Correct a linear model by taking the covariance of the noise out of the moments (Fuller 1987).

    Right for any law of the true values, as long as the noise has mean 0 and a known covariance: columns that were
    clamped, coded, coarsely rounded or noised on the log scale are refused, as are categories with noise and powers
    of noised columns; `fit(...)` takes these. Standard errors by the sandwich. `measurement_error` gives the variances
    of errors that the original values had, `weights` names a column of survey weights. `family` is
    gaussian: others are refused.
    """
    check_linear(family, "moment_correction", "take regression_calibration(...), simex(...) or fit(...)")
    asked = CorrectionRequest(formula, LINEAR, measurement_error, weights)
    read = read_problem(asked, release)
    problem, noised = read.problem, read.noised
    solved = solve_moments(problem)
    notes = [Note("analysis.moment_errors")]
    if noised.depends_on_value:
        notes.append(Note("analysis.noise_by_value"))
    return _result(asked, read, "moment correction", (solved.estimates, solved.joint), notes)


def regression_calibration(
    formula: str,
    release: Release,
    *,
    family: str = "gaussian",
    measurement_error: Mapping[str, float] | None = None,
    weights: str | None = None,
) -> Corrected:
    """Correct a model by putting expected true values in place of the released ones.

    For linear models without interactions of noised columns it is the moment correction; for logit, probit and poisson
    models it is an approximation, good where noise moves the linear predictor little. Standard errors by the sandwich
    of calibration and model stacked. Refused are columns that `moment_correction` refuses, and noise that depends on
    the value.
    """
    asked = CorrectionRequest(formula, family_of(family), measurement_error, weights)
    read = read_problem(asked, release)
    problem, noised = read.problem, read.noised
    _check_constant(noised)
    solved = solve_calibrated(problem, asked.family)
    notes = [Note("analysis.calibration_errors")]
    if not asked.family.has_scale:
        notes.append(Note("analysis.approximate_family", {"family": asked.family.name}))
    elif (problem.loadings != problem.loadings[:1]).any():
        notes.append(Note("analysis.approximate_interactions"))
    return _result(asked, read, "regression calibration", (solved.estimates, solved.joint), notes)


def simex(
    formula: str,
    release: Release,
    *,
    family: str = "gaussian",
    lambdas: Sequence[float] = (0.5, 1.0, 1.5, 2.0),
    replicates: int = 100,
    extrapolant: str = "quadratic",
    seed: int = 0,
    measurement_error: Mapping[str, float] | None = None,
    weights: str | None = None,
) -> Corrected:
    """Correct a model by adding more of the noise and following the estimates back to none (Cook and Stefanski 1994).

    `lambdas` are the variances of the added noise, in units of that released. An approximation: the quadratic curve
    corrects too little where the noise is large. Standard errors by the simulation jackknife. Columns are refused as by
    `moment_correction`, and noise that depends on the value.
    """
    plan = SimexRuns(tuple(map(float, lambdas)), replicates, extrapolant)
    if not isinstance(seed, int) or seed < 0:
        raise BadPlan("the seed is a whole number from 0 on")
    asked = CorrectionRequest(formula, family_of(family), measurement_error, weights, seed)
    read = read_problem(asked, release)
    problem, noised = read.problem, read.noised
    _check_constant(noised)
    followed = follow_back(problem, asked.family, plan)
    runs = {"replicates": replicates, "amounts": len(plan.lambdas), "curve": extrapolant}
    notes = [
        Note("analysis.simulation", runs),
        Note("analysis.simulation_bias"),
        Note("analysis.simulation_errors"),
    ]
    if not (np.diag(followed.joint)[: len(problem.names)] > 0).all():
        notes.append(Note("analysis.simulation_variance"))
    return _result(asked, read, "simex", (followed.estimates, followed.joint), notes)


def _check_constant(noised: NoiseOfColumns) -> None:
    if noised.depends_on_value:
        raise BadPlan(
            f"the noise of {', '.join(repr(name) for name in noised.columns)} depends on the true value, which only "
            "the moment correction of a linear model can undo: use moment_correction(...) or fit(...)"
        )


def _result(
    asked: CorrectionRequest,
    read: ReleasedProblem,
    method: str,
    found: tuple[Floats, Floats],
    notes: Sequence[Note],
) -> Corrected:
    """Put a correction beside the ordinary fit to the released values."""
    family, problem = asked.family, read.problem
    names, estimates, covariance = reported_estimates(problem.names, *found, family)
    naive = fit_ordinary(read.released, family)
    _, beside, spread = reported_estimates(problem.names, naive.estimates, naive.joint, family)
    return Corrected(
        names=names,
        estimates=estimates,
        covariance=covariance,
        method=method,
        family=family.name,
        unadjusted=beside,
        unadjusted_errors=tuple(map(float, np.sqrt(np.diag(spread)))),
        records=len(problem),
        notes=(*problem.notes, *notes, *negative_variance(found[0], family)),
    )


# SIMEX: add more of the noise, see where the estimates go, and follow them back to no noise at all.
#
# Cook and Stefanski (1994); the variance by the simulation jackknife of Stefanski and Cook (1995): the mean of
# the estimated variances less the variance over replicates, both followed back to no noise. The added noise is
# drawn from the law itself, so that shape and correlations, also with the noise of the response, are its own.


EXTRAPOLANTS: Mapping[str, int] = MappingProxyType({"linear": 1, "quadratic": 2, "cubic": 3})


@dataclass(frozen=True, slots=True)
class SimexRuns:
    """How much noise is added (times the variance of that released), how often, and the curve back."""

    lambdas: tuple[float, ...] = (0.5, 1.0, 1.5, 2.0)
    replicates: int = 100
    extrapolant: str = "quadratic"

    def __post_init__(self) -> None:
        problems = []
        if self.extrapolant not in EXTRAPOLANTS:
            hint = nearest(str(self.extrapolant), EXTRAPOLANTS)
            problems.append(f"the extrapolant is one of {', '.join(EXTRAPOLANTS)}{hint}")
        elif len(set(self.lambdas)) < EXTRAPOLANTS[self.extrapolant]:
            problems.append(f"a {self.extrapolant} extrapolant needs more lambdas")
        if any(not 0 < value < np.inf for value in self.lambdas):
            problems.append("lambdas are amounts of added noise: give finite numbers above 0")
        if not isinstance(self.replicates, int) or self.replicates < 2:
            problems.append("SIMEX needs at least 2 replicates")
        raise_all(problems, BadPlan)


@dataclass(frozen=True, slots=True)
class ExtrapolatedEstimates:
    """Estimates (coefficients, residual variance) followed back to no noise, and their covariance.

    `path` has the mean estimates at no added noise and at each lambda: what the curve was laid through.
    """

    estimates: Floats
    joint: Floats = field(repr=False)
    path: Floats = field(repr=False)


def follow_back(problem: CorrectionProblem, family: Family, plan: SimexRuns) -> ExtrapolatedEstimates:
    """Simulate at each lambda and extrapolate estimates and covariances to -1: no noise."""
    naive = fit_ordinary(problem.data, family)
    means, spreads = [naive.estimates], [naive.joint]
    starts = [naive.coefficients] * plan.replicates
    for amount in sorted(plan.lambdas):
        fits = [_fit_noisier(problem, family, amount, b, starts[b]) for b in range(plan.replicates)]
        starts = [fitted.coefficients for fitted in fits]
        estimates = np.array([fitted.estimates for fitted in fits])
        means.append(estimates.mean(axis=0))
        between = np.cov(estimates, rowvar=False)
        spreads.append(np.mean([fitted.joint for fitted in fits], axis=0) - between)
    amounts = np.array([0.0, *sorted(plan.lambdas)])
    degree, path = EXTRAPOLANTS[plan.extrapolant], np.array(means)
    joint = back_to_none(amounts, np.array(spreads).reshape(len(amounts), -1), degree)
    width = path.shape[1]
    return ExtrapolatedEstimates(back_to_none(amounts, path, degree), joint.reshape(width, width), path)


def _fit_noisier(
    problem: CorrectionProblem, family: Family, amount: float, replicate: int, start: Floats
) -> OrdinaryFit:
    return fit_ordinary(_noisier(problem, amount, replicate), family, start)


def _noisier(problem: CorrectionProblem, amount: float, replicate: int) -> Data:
    """Add noise to all records; the same draws serve every lambda, so that the path is smooth."""
    assert problem.draw is not None
    data = problem.data
    noise = float(np.sqrt(amount)) * problem.draw(replicate)
    moved = np.einsum("nkq,nq->nk", problem.loadings, noise)
    return replace(data, y=data.y + moved[:, 0], design=data.design + moved[:, 1:])


def back_to_none(amounts: Floats, path: Floats, degree: int) -> Floats:
    """Return polynomials through the path, by least squares, at -1."""
    powers = np.vander(amounts, degree + 1, increasing=True)
    coefficients = np.linalg.lstsq(powers, path, rcond=None)[0]
    return np.asarray(np.power(-1.0, np.arange(degree + 1)) @ coefficients)
