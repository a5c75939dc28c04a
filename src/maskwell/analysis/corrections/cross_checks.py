"""Three cheap cross-checks of a fit: moment correction, regression calibration and SIMEX."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...errors import BadPlan
from ...masking import Release
from ..system import Floats
from .calibration import solve_calibrated
from .design_arrays import CorrectionRequest, ReleasedProblem, read_problem
from .extrapolation import EXTRAPOLANTS, SimexRuns, follow_back
from .fuller_moments import solve_moments
from .glm import FAMILIES, check_linear, family_of, fit_ordinary
from .noise_moments import NoiseOfColumns
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
    notes = ["standard errors by the sandwich of the corrected normal equations"]
    if noised.depends_on_value:
        notes.append("noise that grows with the value is estimated for each record from its released value")
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
    notes = ["standard errors by the sandwich of calibration and model together"]
    if not asked.family.has_scale:
        notes.append(f"an approximation for {asked.family.name} models: check it against fit(...)")
    elif (problem.loadings != problem.loadings[:1]).any():
        notes.append("an approximation where noised columns interact with others: moment_correction is none")
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
    degree = {name: f"{name} curve" for name in EXTRAPOLANTS}[extrapolant]
    notes = [
        f"{replicates} replicates at each of {len(plan.lambdas)} amounts of added noise, {degree} back to none",
        "an approximation that corrects too little where the noise is large: check it against fit(...)",
        "standard errors by the simulation jackknife of Stefanski and Cook",
    ]
    if not (np.diag(followed.joint)[: len(problem.names)] > 0).all():
        notes.append(
            "a variance came out below 0 at no noise: its standard error cannot be told; use more replicates"
        )
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
    notes: Sequence[str],
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
