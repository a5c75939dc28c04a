"""fit(): from a formula and a release to the posterior of the model that the original data would have had."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from ..errors import BadPlan, MaskwellError, MaskwellWarning, nearest
from ..masking import Masking, Release
from ..notes import Note
from ..table import Table
from .expressions import ONE, Binary, Number
from .model import FAMILY, ModelRequest, as_if_true, build, read_formula
from .priors import Priors
from .progress import Bar, Lines, check_progress, progress_reporter
from .results.draws import FASTER, Draws
from .results.summary import Diagnostics
from .samplers.chains import ChainSettings
from .system import ORDERED, Effects, Floats, System

if TYPE_CHECKING:
    from collections.abc import Callable

    from .results.posterior import Posterior

SYNONYMS = {
    "binomial": "binary",
    "bernoulli": "binary",
    "normal": "gaussian",
    "ols": "gaussian",
    "negbin": "negative binomial",
    "nbinom": "negative binomial",
    "nb": "negative binomial",
    "ordinal": "ordered",
    "ordered probit": "ordered",
    "oprobit": "ordered",
    "cumulative": "ordered",
    "linear": "gaussian",
    "count": "poisson",
    "logistic": "logit",
}
NO_FAMILY = {
    "multinomial": "of categories without order model one against the others, y['level'] ~ x with family 'binary'",
    "ordered logit": "ordered models have the probit link, family 'ordered'",
    "ologit": "ordered models have the probit link, family 'ordered'",
}
LINKS = {
    "gaussian": "identity",
    "binary": "logit",
    "ordered": "probit",
    "poisson": "log",
    "negative binomial": "log",
}
NAMED = ("gaussian", "binary", "logit", "probit", "ordered", "poisson", "negative binomial")
SAMPLERS = ("auto", "gibbs", "closed", "marginal", "enumerated", "paper")
DRAWS, MOST_DRAWS, WARMUP = 1000, 16_000, 500  # of each chain: at first, at most, and before they count
DRAW, DROP = "draw", "drop"  # what becomes of records with missing or coded values
NAIVE = ChainSettings(chains=2, draws=1000, warmup=200, keep_effects=False)


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How a model is fitted: chains, draws of each (None: until they agree), warm-up, sampler, priors, seed.

    `missing` says what becomes of records in which a column of the model is missing or coded: "draw" draws what is not
    known with the rest, "drop" leaves these records out, as ordinary fits do.
    `progress` is True (a bar on standard error, or lines where that is no terminal), False, a function that is called
    with the steps done and the steps in all, or None: a bar at a terminal and nothing elsewhere.
    """

    chains: int = 4
    draws: int | None = None
    warmup: int = WARMUP
    sampler: str = "auto"
    priors: Priors = field(default_factory=Priors)
    seed: int | None = None
    cores: int | None = None
    keep_truths: bool = False
    missing: str = DRAW
    progress: bool | Callable[[int, int], None] | None = None

    def __post_init__(self) -> None:
        for name, least in (("chains", 1), ("draws", 4), ("warmup", 0), ("seed", 0), ("cores", 1)):
            value, optional = getattr(self, name), name in ("draws", "seed", "cores")
            if optional and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise BadPlan(f"{name} must be a whole number of at least {least}")
        check_progress(self.progress)
        if self.missing not in (DRAW, DROP):
            raise BadPlan(f"missing is {DRAW!r} or {DROP!r}, not {self.missing!r}")
        if not isinstance(self.priors, Priors):
            raise BadPlan("priors must be a Priors, such as Priors(coefficients={'x': (0, 1)})")
        if self.sampler not in SAMPLERS:
            hint = nearest(str(self.sampler), SAMPLERS)
            raise BadPlan(f"sampler {self.sampler!r} is not one of {', '.join(SAMPLERS)}{hint}")


class FitArguments(TypedDict, total=False):
    """The fields of `FitOptions` by their names, as `fit` takes them."""

    chains: int
    draws: int | None
    warmup: int
    sampler: str
    priors: Priors
    seed: int | None
    cores: int | None
    keep_truths: bool
    missing: str
    progress: bool | Callable[[int, int], None] | None


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
    **given: Unpack[FitArguments],
) -> Posterior:
    """Fit a model to a release as if to the original: true values of noised columns are drawn with the parameters.

    `formula` is read by formulae (`y ~ x1*x2 + sex + (1|school)`); `family` is gaussian, binary (with `link` logit
    or probit, which are also families), ordered, poisson or negative binomial. `measurement_error` gives the variances
    of known errors of the original columns, `weights` names a column of survey weights. The covariate model of unknown
    columns has the grouping of the model of interest unless `covariate_groups` is False. With `naive` the unadjusted
    fit stands beside. Further arguments (`chains`, `draws`, `warmup`, `seed`, `priors`, `sampler`, `cores`,
    `keep_truths`, `missing`, `progress`) are those of `FitOptions`; `missing="drop"` leaves records with missing values
    out, `progress` is True for a bar, False for none, or a function.
    """
    chosen = _options(options, given)
    kind = family_of(family, link)
    errors = _check_arguments(formula, weights, measurement_error)
    release = as_release(release)
    ready = _ready(formula, release, (kind, covariate_groups, errors), chosen.missing)
    asked, system, release, notes = ready.asked, ready.system, ready.release, ready.notes
    with progress_reporter(chosen.progress) as show:
        draws, beside = _posterior_draws(system, release, weights, replace(chosen, progress=show), naive)
    if weights is None:
        from .identification import resting_on_priors

        notes = (*notes, *resting_on_priors(system, chosen.priors, draws, notes))
    if beside is not None and Diagnostics.of(beside).failing:
        notes = (*notes, Note("analysis.unadjusted_unconverged"))
    return _posterior(asked, system, draws, beside, (*ready.left_out, *notes))


@dataclass(frozen=True, slots=True)
class _Ready:
    """A model and its records before anything is drawn, and what there is to say of them."""

    asked: ModelRequest
    system: System
    release: Release
    left_out: tuple[Note, ...]
    notes: tuple[Note, ...]


def _ready(formula: str, release: Release, about: tuple[int, bool, dict[str, float]], missing: str) -> _Ready:
    """Read a formula on a release and make the model; refuse whatever cannot be fitted."""
    parsed, seen = read_formula(formula, release)
    left_out: tuple[Note, ...] = ()
    if missing == DROP:
        from .complete_records import complete

        release, left_out = complete(release, [*seen])
        parsed, seen = read_formula(formula, release)
    asked = ModelRequest(parsed, *about)
    system = build(asked, release, seen)
    return _Ready(asked, system, release, left_out, check_design(system, release, asked.measurement_error))


def fit_refusal(formula: str, release: Release, *, family: str = "gaussian", missing: str = DRAW) -> str:
    """Say why `fit` refuses a model of a release before it draws anything; nothing where it does not."""
    try:
        _ready(formula, release, (family_of(family, None), True, {}), missing)
    except MaskwellError as refusal:
        return "; ".join(refusal.problems)
    return ""


def _posterior_draws(
    system: System, release: Release, weights: str | None, options: FitOptions, naive: bool
) -> tuple[Draws, Draws | None]:
    """Draw from the posterior, and where asked from the unadjusted one; slopes of groups about the means of columns."""

    moved, turns = about_means(system)
    first, second = np.random.SeedSequence(options.seed).spawn(2)
    beside: Draws | None = None
    if weights is None:
        draws = sample(moved, options, first)
        beside = sample_naive(moved, options, second) if naive else None
    else:
        from .survey_weights.bootstrap import fit_weighted, naive_weighted

        draws = fit_weighted(moved, release, weights, options, first)
        beside = naive_weighted(moved, release, weights, options, second) if naive else None
    back = None if beside is None else on_own_scale(beside, system, turns)
    return on_own_scale(draws, system, turns), back


def _check_arguments(formula: Any, weights: Any, errors: Any) -> dict[str, float]:
    """Refuse arguments that are no formula, no column, no variances; return the variances of measurement errors."""
    if not isinstance(formula, str):
        raise BadPlan("the formula comes first, as a text: fit('y ~ x', release)")
    if weights is not None and not isinstance(weights, str):
        raise BadPlan("weights names a column of the release; the weights themselves go into the file")
    if errors is not None and not isinstance(errors, Mapping):
        raise BadPlan("measurement_error has the variance of the error of each column, such as {'x1': 0.2}")
    found: dict[str, Any] = dict(errors or {})
    for name, variance in found.items():
        is_number = isinstance(variance, int | float | np.number) and not isinstance(variance, bool)
        if not is_number or not 0 < variance < np.inf:
            raise BadPlan(f"the measurement error of {name!r} must be a variance, a finite number above 0")
    return found


def as_release(given: Any) -> Release:
    """Take a release, the release of a masking, or the folder of a written one."""
    if isinstance(given, Release):
        return given
    if isinstance(given, Masking):
        return given.release
    if isinstance(given, str | Path):
        from ..masking import read_release

        return read_release(given)
    of = "table" if isinstance(given, Table) else "mw.Table.from_frame(frame)"
    raise BadPlan(
        f"fit needs a release, not a {type(given).__name__}: mw.read_release(folder), masking.release, or "
        f"mw.Release({of}, card) with card = mw.NoiseCard.read('card.json'), or mw.NoiseCard() where nothing carries "
        "noise"
    )


def _options(options: FitOptions | None, given: Mapping[str, Any]) -> FitOptions:
    known = FitOptions.__dataclass_fields__
    if options is not None and not isinstance(options, FitOptions):
        raise BadPlan("options must be a FitOptions, such as FitOptions(chains=2, draws=2000)")
    for name in given:
        if name not in known:
            near = nearest(name, (*known, "family", "link", "weights", "measurement_error"))
            raise BadPlan(f"fit has no option {name!r}{near}; those of its draws are {', '.join(known)}")
    return replace(options or FitOptions(), **given)


def family_of(family: str, link: str | None) -> int:
    """Return a family by its name and link."""
    if not isinstance(family, str):
        raise BadPlan(f"family must be one of {', '.join(NAMED)}")
    family = " ".join(family.casefold().replace("_", " ").replace("-", " ").split())
    name = SYNONYMS.get(family, family)
    if name in ("probit", "logit"):
        name, link = "binary", link or name
    if name not in LINKS:
        near = nearest(family, (*NAMED, *SYNONYMS))
        hint = f"; {NO_FAMILY[family]}" if family in NO_FAMILY else near
        raise BadPlan(f"family {family!r} is not one of {', '.join(NAMED)}{hint}")
    if name == "binary":
        if (link or "logit") not in ("logit", "probit"):
            raise BadPlan(f"link {link!r} of a binary family is not 'logit' or 'probit'")
        return FAMILY[link or "logit"]
    if link is not None and link != LINKS[name]:
        raise BadPlan(f"family {name!r} has the link {LINKS[name]!r} only")
    return FAMILY[name]


def sample(system: System, options: FitOptions, seed: np.random.SeedSequence) -> Draws:
    """Draw from the posterior of a system, by the fastest way that holds."""
    from .samplers.choice import chosen_sampler

    run = chosen_sampler(system, options.sampler)
    if options.draws is None:
        found = _until_converged(run, system, options, seed)
    else:
        _tell(system, options, options.draws)
        show = None if isinstance(options.progress, bool) else options.progress
        found = run(system, options.priors, _chain_settings(options, options.draws), seed, show)
    return _with_faster_sampler(found, system, options.sampler)


def _with_faster_sampler(draws: Draws, system: System, sampler: str) -> Draws:
    """Note with draws of the Gibbs sampler that do not do which other sampler holds: more draws help less."""
    if (
        sampler != "gibbs"
        or not Diagnostics.of(draws).failing
        or (name := _fastest_sampler(system)) == "gibbs"
    ):
        return draws
    return replace(draws, info={**draws.info, FASTER: name})


def _fastest_sampler(system: System) -> str:
    """Return the fastest sampler that holds."""
    from .samplers.choice import chosen_sampler

    for name in ("closed", "marginal", "enumerated"):
        with suppress(BadPlan):
            chosen_sampler(system, name)
            return name
    return "gibbs"


def _tell(system: System, options: FitOptions, draws: int) -> None:
    """Say what runs, where there is a bar to say it on."""
    if isinstance(options.progress, Bar | Lines):
        name = _fastest_sampler(system) if options.sampler == "auto" else options.sampler
        chains = "1 chain" if options.chains == 1 else f"{options.chains} chains"
        again = ", for shorter ones do not agree" if options.draws is None and draws > DRAWS else ""
        options.progress.say(f"{name}, {chains} of {draws:,} draws{again}")


def _chain_settings(options: FitOptions, draws: int) -> ChainSettings:
    return ChainSettings(options.chains, draws, options.warmup, options.cores, options.keep_truths)


def _until_converged(run: Any, system: System, options: FitOptions, seed: np.random.SeedSequence) -> Draws:
    """Run chains twice as long, from the start, until they agree or a limit is reached."""
    draws, warmup = DRAWS, options.warmup
    while True:
        children = seed.spawn(1)[0]
        running = replace(_chain_settings(options, draws), warmup=warmup)
        _tell(system, options, draws)
        found: Draws = run(system, options.priors, running, children, options.progress)
        if draws >= MOST_DRAWS or not Diagnostics.of(found).failing:
            return found
        draws, warmup = 2 * draws, 2 * warmup


def sample_naive(system: System, options: FitOptions, seed: np.random.SeedSequence) -> Draws | None:
    """Fit the same model to the released values as if they were true; nothing where too few have no missing value."""
    from .samplers.chains import run_gibbs

    seen = as_if_true(system)
    running = replace(NAIVE, cores=options.cores)
    if seen is None:
        return None
    told = options.progress if isinstance(options.progress, Bar | Lines) else None
    if told is not None:
        told.say("the unadjusted fit beside")
    return run_gibbs(seen, options.priors, running, seed, told)


def check_design(system: System, release: Release, errors: Mapping[str, float]) -> tuple[Note, ...]:
    """Refuse designs that cannot be fitted; return notes about what a reader should know."""
    from .design_checks import check_design_columns
    from .identification import check_apart, check_equalities, check_errors
    from .separation import separated_together

    notes = check_design_columns(system, release)
    check_apart(system)
    check_equalities(system)
    check_errors(system, errors)
    return (*_response_coding_notes(system), *separated_together(system, notes), *notes)


def _response_coding_notes(system: System) -> tuple[Note, ...]:
    """Say how a category that is the response is read: which level counts as 1, or in which order they are."""
    response = system.variables[system.interest.response]
    if not response.levels or response.base is not None:
        return ()
    if system.interest.family == ORDERED:
        return (Note("analysis.response_order", {"name": response.name, "levels": response.levels}),)
    levels = {"one": response.levels[-1], "zero": response.levels[0]}
    return (Note("analysis.response_levels", {"name": response.name, **levels}),)


def _posterior(
    asked: ModelRequest, system: System, draws: Draws, beside: Draws | None, notes: tuple[Note, ...]
) -> Posterior:
    from .prediction_columns import SystemPredictor
    from .results.posterior import Posterior
    from .samplers.gibbs.layout import unknown_variables
    from .system import FAMILIES

    unknown = [system.variables[j] for j in unknown_variables(system)]
    found = Posterior(
        draws=draws,
        naive=beside,
        formula=asked.parsed.formula,
        family=FAMILIES[system.interest.family],
        records=len(system),
        noised=tuple(variable.name for variable in unknown),
        notes=notes,
        levels={variable.name: variable.levels for variable in unknown if variable.is_category},
        predictor=SystemPredictor.of(system, draws, asked.parsed.coded),
    )
    if found.warning is not None:
        warnings.warn(str(found.warning), MaskwellWarning, stacklevel=3)
    return found


# Slopes of groups on columns far from zero, such as years: drawn about the columns' means, told on their own
# scale.
#
# With x about its mean m the effects of a group are (b0, b1), on the scale of the data (b0 - m b1, b1): b = T c,
# and their covariance is T C T'. The model is the same; what the priors of spreads and correlations are about is
# not. About zero they would say that groups differ at the mean by next to nothing, or in their slopes by nothing
# at all.


FAR = 2.0  # sds that the mean of a column lies from zero


def about_means(system: System) -> tuple[System, tuple[Floats, ...]]:
    """Return the system with slopes of groups about the released means of their columns, and the way back of each set.

    Only numbers far from zero are moved, and only where their groups have an intercept too.
    """
    found = [_centred_effects(system, block) for block in system.interest.effects]
    turns = tuple(turn for _, turn in found)
    if all(_stays(turn) for turn in turns):
        return system, turns
    interest = replace(system.interest, effects=tuple(block for block, _ in found))
    return replace(system, equations=(*system.equations[:-1], interest)), turns


def _centred_effects(system: System, block: Effects) -> tuple[Effects, Floats]:
    from .formulas.expression_trees import evaluate, on_state, simplify_node

    turn, columns = np.eye(len(block.columns)), list(block.columns)
    if ONE not in columns:
        return block, turn
    values = {variable.name: system.state[:, j] for j, variable in enumerate(system.variables)}
    for k, node in enumerate(block.columns):
        column = evaluate(on_state(node, system.variables), values)
        column = column[np.isfinite(column)]
        distinct = len(np.unique(column)) if node != ONE else 1
        if distinct > 2 and abs(column.mean()) > FAR * column.std():
            centre = float(column.mean())
            columns[k] = simplify_node(Binary("sub", node, Number(centre)))
            turn[columns.index(ONE), k] = -centre
    return replace(block, columns=tuple(columns)), turn


def _stays(turn: Floats) -> bool:
    return bool((turn == np.eye(len(turn))).all())


def on_own_scale(draws: Draws, system: System, turns: Sequence[Floats]) -> Draws:
    """Bring the effects of groups, their sds and correlations to the scale of the data."""
    values, effects = draws.values.copy(), list(draws.effects)
    for k, (block, turn) in enumerate(zip(system.interest.effects, turns, strict=True)):
        if _stays(turn):
            continue
        group = system.factors[block.factor].name
        sds = [draws.names.index(f"sd({name}|{group})") for name in block.names]
        pairs = {
            (a, b): draws.names.index(f"cor({block.names[a]},{block.names[b]}|{group})")
            for b in range(len(sds))
            for a in range(b)
        }
        _turn(values, sds, pairs, turn)
        if effects:  # in double precision: an intercept far outside the data takes up what a slope adds
            effects[k] = np.asarray(effects[k], np.float64) @ turn.T
    return replace(draws, values=values, effects=tuple(effects))


def _turn(values: Floats, sds: Sequence[int], pairs: dict[tuple[int, int], int], turn: Floats) -> None:
    """Turn the covariances that sds and correlations stand for, in place."""
    covariance = values[..., sds, None] * values[..., None, sds]
    for (a, b), place in pairs.items():
        covariance[..., a, b] *= values[..., place]
        covariance[..., b, a] = covariance[..., a, b]
    turned = turn @ covariance @ turn.T
    sizes = np.sqrt(np.diagonal(turned, axis1=-2, axis2=-1))
    values[..., sds] = sizes
    for (a, b), place in pairs.items():
        with np.errstate(invalid="ignore"):
            correlation = turned[..., a, b] / (sizes[..., a] * sizes[..., b])
        values[..., place] = np.clip(np.nan_to_num(correlation), -1.0, 1.0)
