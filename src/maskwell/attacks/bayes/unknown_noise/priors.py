"""What an intruder believes about the figures of a law that were not told: one prior, resolved for each unknown.

Assumption A3 of Trottini, Fienberg, Makov and Meyer (2003), read as priors of the sds: sd ~ IG(402, 401 range/6), bias
sd ~ IG(402, 401/12) for theta from 0.75 to 1.25, so mean over sd is 20. Gamma priors on the variance are those of
Fienberg, Makov and Sanil (1997), section 4.2. Chosen by `BayesIntruder(prior=Prior(...))`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ....errors import BadInput, BadPlan, nearest, raise_all
from ....laws import Additive, Multiplicative
from ....laws.chain import combined_of
from ....laws.unknowns import (
    BIAS_SD,
    NAMES,
    SCALE,
    SD,
    Unknown,
    is_independent,
    spread_of,
    unknowns_of,
    with_values,
)
from ....table import Floats, Table
from ....tolerances import is_real
from .prior_families import Distribution, GammaPower, LogNormal, Own, ResolvedPrior

FAMILIES = ("inverse gamma", "gamma", "lognormal")
WIDEST, TIGHTEST = 1.0, 1e6  # of mean_over_sd
SIXTH = 6.0  # a range is taken for six sds


@dataclass(frozen=True)
class Prior:
    """How an intruder guesses what the card would tell: each sd about a sixth of the range it must explain.

    The range is that of the released values, on the scale where noise is added, and `theta_range` for a multiplicative
    bias. `family` "inverse gamma" is on the sd with that mean: IG(402, 401 range/6) by default, as Trottini and others
    mean it (their IG(402, 33) of the bias is 401/12 rounded). "gamma" is on the variance with the square of it as mean
    (Fienberg and others), "lognormal" on the sd with that median. `mean_over_sd` says how sure he is: the mean
    over the sd of his prior (of the log-normal, 1 over the sd of the log).

    `given` are priors of your own by the name of the unknown, for all columns ("sd") or one ("sd:INCOME"): anything
    with `logpdf` and `ppf`, such as a frozen scipy distribution, on the sd (the "scale": on the factor on the card's
    sds). `shared` names unknowns ("bias_sd") that he takes to be the same for all columns of a law.
    """

    family: str = "inverse gamma"
    mean_over_sd: float = 20.0
    theta_range: tuple[float, float] = (0.75, 1.25)
    given: Mapping[str, Distribution] | tuple[tuple[str, Distribution], ...] = ()
    shared: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        found = (
            *self._family_problems(),
            *self._theta_problems(),
            *self._given_problems(),
            *self._shared_problems(),
        )
        raise_all(list(dict.fromkeys(found)), BadPlan)

    def _family_problems(self) -> list[str]:
        problems = []
        if self.family not in FAMILIES:
            listed = ", ".join(map(repr, FAMILIES))
            problems.append(f"there is no family of priors {self.family!r}; there are {listed}")
        if not (is_real(self.mean_over_sd) and WIDEST <= self.mean_over_sd <= TIGHTEST):
            problems.append(
                "the mean over sd of a prior is a number from 1 (very unsure) to 1,000,000 (sure)"
            )
        return problems

    def _theta_problems(self) -> list[str]:
        ends: Any = self.theta_range
        pair = isinstance(ends, Sequence) and not isinstance(ends, str) and len(ends) == 2
        if not (pair and all(map(is_real, ends)) and 0 <= ends[0] < ends[1] < np.inf):
            return ["theta_range has two numbers, the smallest bias and a larger one, such as (0.75, 1.25)"]
        object.__setattr__(self, "theta_range", (float(ends[0]), float(ends[1])))
        return []

    def _given_problems(self) -> list[str]:
        given: Any = self.given
        pairs = tuple(
            given.items() if isinstance(given, Mapping) else given if _is_listed(given) else (given,)
        )
        if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs):
            return ["given has priors by the name of their unknown, such as {'sd:INCOME': distribution}"]
        object.__setattr__(self, "given", pairs)
        return [problem for name, own in pairs for problem in _own_problems(name, own)]

    def _shared_problems(self) -> list[str]:
        listed: Any = tuple(self.shared) if _is_listed(self.shared) else (self.shared,)
        object.__setattr__(self, "shared", listed)
        if not all(isinstance(name, str) for name in listed):
            return ["shared has the names of unknowns, such as ('bias_sd',)"]
        return [
            f"only 'bias_sd' or 'sd' can be shared, not {name!r}"
            for name in listed
            if name not in (SD, BIAS_SD)
        ]

    def own(self, unknown: Unknown) -> Distribution | None:
        """Return the user's own prior of an unknown, that of a column before that of all."""
        given = dict(self.given)
        names = (*(f"{unknown.name}:{column}" for column in unknown.columns), unknown.name)
        return next((given[name] for name in names if name in given), None)

    def around(self, centre: float) -> ResolvedPrior:
        """Return the prior of an unknown of which he expects so much."""
        certainty = float(self.mean_over_sd) ** 2
        if self.family == "inverse gamma":
            shape = certainty + 2.0
            return GammaPower(shape, centre * (shape - 1.0) / shape, -1.0)
        if self.family == "gamma":
            return GammaPower(certainty, centre, 0.5)
        return LogNormal(float(np.log(centre)), 1.0 / float(self.mean_over_sd))

    def to_dict(self) -> dict[str, Any]:
        """Return the prior as plain data; of a distribution of the user's own only its name."""
        out: dict[str, Any] = {"family": self.family}
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if value != item.default:
                out[item.name] = list(value) if isinstance(value, tuple) else value
        if self.given:
            out["given"] = {name: _name(own) for name, own in dict(self.given).items()}
        return out


def prior_from_dict(data: Mapping[str, Any]) -> Prior:
    """Build a prior from plain data; distributions of the user's own cannot be read back."""
    known = [item.name for item in fields(Prior)]
    problems = [f"Prior has no option {name!r}{nearest(name, known)}" for name in data if name not in known]
    if data.get("given"):
        problems.append("priors of your own are objects of Python: give them there, not in a file")
    raise_all(problems, BadPlan)
    return Prior(**data)


def _is_listed(value: Any) -> bool:
    """Whether a value is a list of others, not a text."""
    return isinstance(value, Iterable) and not isinstance(value, str)


def _own_problems(name: str, own: Any) -> list[str]:
    """Say why a distribution cannot be the prior of an sd."""
    if name.partition(":")[0] not in NAMES or name.endswith(":"):
        return [
            f"given: there is no unknown {name!r}; there are sd, bias_sd and scale, as 'sd' or 'sd:COLUMN'"
        ]
    wanted = f"given: the prior of {name!r} must be a distribution with logpdf and ppf, such as scipy.stats.gamma(4)"
    if not isinstance(own, Distribution):
        return [wanted]
    try:
        ends = [float(own.ppf(share)) for share in (0.0, 1e-6, 0.5, 1 - 1e-6)]
        log_density = float(own.logpdf(ends[2]))
    except (TypeError, ValueError):
        return [wanted]
    if not (ends[0] >= 0 and 0 < ends[1] <= ends[2] <= ends[3] < np.inf and np.isfinite(log_density)):
        return [f"given: the prior of {name!r} must lie above 0, as sds do: try a gamma or a log-normal"]
    return []


def _name(own: Any) -> str:
    """Return what a distribution calls itself."""
    return str(getattr(getattr(own, "dist", own), "name", type(own).__name__))


@dataclass(frozen=True, slots=True)
class Doubt:
    """What an intruder doubts about one law, and his priors.

    `places` has for each of the law's own unknowns (`unknowns_of`) its number among `unknowns`: several have the same
    where he takes them to be one.
    """

    law: Any
    unknowns: tuple[Unknown, ...]
    beliefs: tuple[ResolvedPrior, ...]
    places: tuple[int, ...]

    @classmethod
    def of(cls, prior: Prior, law: Any, released: Table) -> Doubt:
        """Resolve a prior for the unknowns of a law, by what was released."""
        law = combined_of(law)
        unknowns, places = merge_unknowns(unknowns_of(law), prior.shared)
        return cls(law, unknowns, resolve_priors(prior, unknowns, law, released), places)

    def law_at(self, values: Sequence[float]) -> Any:
        """Return the law at values of the unknowns."""
        return with_values(self.law, [values[place] for place in self.places])

    def log_prior(self, log_values: Sequence[float]) -> float:
        """Return the log density of the unknowns' logs."""
        pairs = zip(self.beliefs, log_values, strict=True)
        return float(sum(belief.log_density(np.array([value]))[0] for belief, value in pairs))


def merge_unknowns(
    unknowns: Sequence[Unknown], shared: Sequence[str]
) -> tuple[tuple[Unknown, ...], tuple[int, ...]]:
    """Make the unknowns of a shared name one; return them and the number of the one that each became."""
    names = [u.name if u.name in shared else (u.name, u.columns) for u in unknowns]
    kept = list(dict.fromkeys(names))
    groups = [[u for u, name in zip(unknowns, names, strict=True) if name == one] for one in kept]
    return tuple(map(_shared_unknown, groups)), tuple(kept.index(name) for name in names)


def _shared_unknown(group: list[Unknown]) -> Unknown:
    columns = tuple(dict.fromkeys(name for unknown in group for name in unknown.columns))
    return Unknown(group[0].name, columns, float(np.mean([unknown.value for unknown in group])))


def resolve_priors(
    prior: Prior, unknowns: Sequence[Unknown], law: Any, released: Table
) -> tuple[ResolvedPrior, ...]:
    """Return the prior of each unknown of a law, by the user's own or by the ranges of the released values."""
    return tuple(_resolve_prior(prior, unknown, combined_of(law), released) for unknown in unknowns)


def _resolve_prior(prior: Prior, unknown: Unknown, law: Any, released: Table) -> ResolvedPrior:
    own = prior.own(unknown)
    if own is not None:
        return Own(own)
    if unknown.name == BIAS_SD:
        return prior.around((prior.theta_range[1] - prior.theta_range[0]) / SIXTH)
    sizes = {
        name: _size(law, law.columns.index(name), released) for name in unknown.columns if _noisy(law, name)
    }
    if unknown.name == SCALE:
        sds = dict(zip(law.columns, np.sqrt(np.diag(law.noise.covariance)), strict=True))
        sizes = {name: size / sds[name] for name, size in sizes.items()}
    return prior.around(float(np.exp(np.mean(np.log(list(sizes.values()))))))


def _noisy(law: Any, name: str) -> bool:
    """Whether a column of a law has noise."""
    if not isinstance(law, Additive):
        return True
    j = law.columns.index(name)
    return bool(law.noise.covariance[j, j] > 0)


def _size(law: Any, j: int, released: Table) -> float:
    """Return a sixth of the range of a released column, where noise is added, over the usual factor on its noise.

    Under a power or a step the sd of a cell is the noise's own times a factor: its root mean square at the released
    values. So a column in another unit has the same prior in that unit.
    """
    name = law.columns[j]
    values = released.floats(name)
    with np.errstate(divide="ignore", invalid="ignore"):
        entered = law.outlets[j].enter(values)
    usable = np.isfinite(entered)
    span = float(np.ptp(entered[usable])) if usable.any() else 0.0
    factor = _usual_factor(law, j, values[usable])
    if not (span > 0 and factor > 0):
        raise BadInput(
            f"column {name!r} has no two different released values to elicit a prior from: "
            f"give one of its own for 'sd:{name}', or leave the column out of fields"
        )
    return span / SIXTH / factor


def _usual_factor(law: Any, j: int, values: Floats) -> float:
    """Return the root mean square of the factor on a column's noise; under a bias of its own the sd has none."""
    spread = spread_of(law, j) if isinstance(law, Additive) else None
    if spread is None or not len(values):
        return 1.0
    if isinstance(spread, Multiplicative) and is_independent(law.noise):
        return 1.0
    return float(np.sqrt(np.mean(spread.factor(values) ** 2)))


def prior_problems(prior: Prior, laws: Sequence[Any]) -> list[str]:
    """Say which priors of the user's own, or shared unknowns, no law has."""
    unknowns = [unknown for law in laws for unknown in unknowns_of(law)]
    named = {f"{u.name}:{column}" for u in unknowns for column in u.columns} | {u.name for u in unknowns}
    problems = [
        f"the prior of {name!r} is for no unknown of these laws{nearest(name, named)}"
        for name in dict(prior.given)
        if name not in named
    ]
    problems += [f"no law has an unknown {name!r} to share" for name in prior.shared if name not in named]
    return list(dict.fromkeys(problems))
