"""fit(): from a formula and a release to the posterior of the model that the original data would have had."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import BadPlan, MaskwellWarning, nearest
from ..masking import Masking, Release
from .building import FAMILY, Asked, as_if_true, build, read_formula
from .priors import Priors
from .results.draws import Draws
from .results.summary import Diagnostics
from .samplers.chains import Running
from .system import System

Progress = Callable[[int, int], None]
SAMPLERS = ("auto", "gibbs", "closed", "marginal", "paper")
DRAWS, MOST_DRAWS, WARMUP = 1000, 16_000, 500
NAIVE = Running(chains=2, draws=1000, warmup=200, keep_effects=False)


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How a model is fitted: chains, draws of each (None: until they agree), warm-up, sampler, priors, seed."""

    chains: int = 4
    draws: int | None = None
    warmup: int = WARMUP
    sampler: str = "auto"
    priors: Priors = field(default_factory=Priors)
    seed: int | None = None
    cores: int | None = None
    keep_truths: bool = False
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name, least in (("chains", 1), ("draws", 4), ("warmup", 0), ("seed", 0), ("cores", 1)):
            value, optional = getattr(self, name), name in ("draws", "seed", "cores")
            if optional and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise BadPlan(f"{name} must be a whole number of at least {least}")
        if not isinstance(self.priors, Priors):
            raise BadPlan("priors must be a Priors, such as Priors(coefficients={'x': (0, 1)})")
        if self.sampler not in SAMPLERS:
            hint = nearest(self.sampler, SAMPLERS)
            raise BadPlan(f"sampler {self.sampler!r} is not one of {', '.join(SAMPLERS)}{hint}")


def fit(
    formula: str,
    release: Release,
    *,
    family: str = "gaussian",
    link: str | None = None,
    weights: str | None = None,
    measurement_error: Mapping[str, float] | None = None,
    covariate_groups: bool = True,
    naive: bool = True,
    options: FitOptions | None = None,
    **given: Any,
) -> Any:
    """Fit a model to a release as if to the original: true values of noised columns are drawn with the parameters.

    `formula` is read by formulae (`y ~ x1*x2 + sex + (1|school)`); `family` is gaussian, binary (with `link` logit
    or probit), ordered, poisson or negative binomial. `measurement_error` gives the variances of known errors of the
    original columns, `weights` names a column of survey weights. The covariate model of unknown columns has the
    grouping of the model of interest unless `covariate_groups` is False. With `naive` the unadjusted fit stands
    beside. Further arguments (`chains`, `draws`, `warmup`, `seed`, `priors`, `sampler`, `cores`, `keep_truths`,
    `progress`) are those of `FitOptions`.
    """
    chosen = _options(options, given)
    kind = family_of(family, link)
    release = as_release(release)
    parsed, seen = read_formula(formula, release)
    asked = Asked(parsed, kind, covariate_groups, dict(measurement_error or {}))
    system = build(asked, release, seen)
    notes = check_design(system, release)
    seed = np.random.SeedSequence(chosen.seed)
    first, second = seed.spawn(2)
    if weights is None:
        draws = sample(system, chosen, first)
        beside = sample_naive(system, chosen, second) if naive else None
    else:
        from .weighting.bootstrap import fit_weighted, naive_weighted

        draws = fit_weighted(system, release, weights, chosen, first)
        beside = naive_weighted(system, release, weights, chosen, second) if naive else None
    if beside is not None and Diagnostics.of(beside).failing:
        notes = (*notes, "the unadjusted fit beside has not converged: compare with care")
    return _posterior(formula, release, system, draws, beside, notes)


def as_release(given: Any) -> Release:
    """Take a release, the release of a masking, or the folder of a written one."""
    if isinstance(given, Release):
        return given
    if isinstance(given, Masking):
        return given.release
    if isinstance(given, str | Path):
        from ..masking import read_release

        return read_release(given)
    raise BadPlan(
        f"fit needs a release (mw.read_release(folder), or masking.release), not a {type(given).__name__}; for a table "
        "without noise: Release(table, NoiseCard())"
    )


def _options(options: FitOptions | None, given: Mapping[str, Any]) -> FitOptions:
    known = FitOptions.__dataclass_fields__
    for name in given:
        if name not in known:
            raise BadPlan(f"fit has no option {name!r}{nearest(name, (*known, 'family', 'link', 'weights'))}")
    return replace(options or FitOptions(), **given)


def family_of(family: str, link: str | None) -> int:
    """Return a family by its name and link."""
    links = {
        "gaussian": "identity",
        "binary": "logit",
        "ordered": "probit",
        "poisson": "log",
        "negative binomial": "log",
    }
    if not isinstance(family, str):
        raise BadPlan(f"family must be one of {', '.join(links)}")
    family = family.casefold()
    name = {
        "binomial": "binary",
        "bernoulli": "binary",
        "normal": "gaussian",
        "negbin": "negative binomial",
        "nb": "negative binomial",
        "ordinal": "ordered",
        "linear": "gaussian",
        "count": "poisson",
        "logistic": "logit",
    }.get(family, family)
    name = name.replace("_", " ")
    if name in ("probit", "logit"):
        name, link = "binary", link or name
    if name not in links:
        raise BadPlan(f"family {family!r} is not one of {', '.join(links)}{nearest(family, links)}")
    if name == "binary":
        if (link or "logit") not in ("logit", "probit"):
            raise BadPlan(f"link {link!r} of a binary family is not 'logit' or 'probit'")
        return FAMILY[link or "logit"]
    if link is not None and link != links[name]:
        raise BadPlan(f"family {name!r} has the link {links[name]!r} only")
    return FAMILY[name]


def sample(system: System, options: FitOptions, seed: np.random.SeedSequence) -> Draws:
    """Draw from the posterior of a system, by the fastest way that holds."""
    from .samplers.choosing import chosen_sampler

    run = chosen_sampler(system, options.sampler)
    if options.draws is not None:
        return run(system, options.priors, _running(options, options.draws), seed, options.progress)
    return _until_converged(run, system, options, seed)


def _running(options: FitOptions, draws: int) -> Running:
    return Running(options.chains, draws, options.warmup, options.cores, options.keep_truths)


def _until_converged(run: Any, system: System, options: FitOptions, seed: np.random.SeedSequence) -> Draws:
    """Run chains twice as long, from the start, until they agree or a limit is reached."""
    draws, warmup = DRAWS, options.warmup
    while True:
        children = seed.spawn(1)[0]
        running = replace(_running(options, draws), warmup=warmup)
        found: Draws = run(system, options.priors, running, children, options.progress)
        if draws >= MOST_DRAWS or not Diagnostics.of(found).failing:
            return found
        draws, warmup = 2 * draws, 2 * warmup


def sample_naive(system: System, options: FitOptions, seed: np.random.SeedSequence) -> Draws | None:
    """Fit the same model to the released values as if they were true; nothing where too few have no missing value."""
    from .samplers.chains import run_gibbs

    seen = as_if_true(system)
    running = replace(NAIVE, cores=options.cores)
    return None if seen is None else run_gibbs(seen, options.priors, running, seed)


def check_design(system: System, release: Release) -> tuple[str, ...]:
    """Refuse designs that cannot be fitted; return notes about what a reader should know."""
    from .checking import checked

    return checked(system, release)


def _posterior(
    formula: str, release: Release, system: System, draws: Draws, beside: Draws | None, notes: tuple[str, ...]
) -> Any:
    from .predicting import SystemPredictor
    from .results.posterior import Posterior
    from .samplers.gibbs.laid_out import unknown_variables
    from .system import FAMILIES

    unknown = [system.variables[j] for j in unknown_variables(system)]
    found = Posterior(
        draws=draws,
        naive=beside,
        formula=formula,
        family=FAMILIES[system.interest.family],
        records=len(system),
        noised=tuple(variable.name for variable in unknown),
        notes=notes,
        levels={variable.name: variable.levels for variable in unknown if variable.is_category},
        predictor=SystemPredictor.of(system, draws),
    )
    if found.warning is not None:
        warnings.warn(found.warning, MaskwellWarning, stacklevel=3)
    return found
