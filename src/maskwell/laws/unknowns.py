"""What a law leaves to doubt when its figures are not told: its unknowns, and the law at other values of them.

psi = the sds of independent noise, the sd of a bias, or one factor on all sds where noise is correlated: what priors
are put on for an intruder without the card (Trottini, Fienberg, Makov and Meyer 2003, A3). Read by
`attacks.bayes.unknown_noise` and `matching_posterior`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..errors import BadPlan
from .additive import Additive, SkewedBias
from .chain import combined_of
from .mixture import Mixture
from .noise import Laplace, Noise, Normal, Row
from .spread import Multiplicative, Spread

SD, BIAS_SD, SCALE = "sd", "bias_sd", "scale"
NAMES = (SD, BIAS_SD, SCALE)


@dataclass(frozen=True, slots=True)
class Unknown:
    """One figure of a law: its name, the columns whose noise it sets, and what the card says.

    "sd" is the sd of a column's noise (under a power or a step the noise's own, before its factor), "bias_sd" that of
    its multiplicative bias, "scale" a factor on the sds of all columns together, 1 on the card.
    """

    name: str
    columns: tuple[str, ...]
    value: float


def unknowns_of(law: Any) -> tuple[Unknown, ...]:
    """Return what an intruder does not know who is told the form of a law but not its figures.

    Tables of categories and classes have no unknowns, nor have columns without noise: that is seen, not told.
    """
    law = combined_of(law)
    if isinstance(law, SkewedBias):
        sds = (Unknown(SD, (name,), sd) for name, sd in zip(law.columns, law.sds, strict=True))
        return (Unknown(BIAS_SD, law.columns, law.bias_sd), *sds)
    if not isinstance(law, Additive) or not np.diag(law.noise.covariance).any():
        return ()
    if not is_independent(law.noise):
        return (Unknown(SCALE, law.columns, 1.0),)
    return tuple(unknown for j in range(len(law.columns)) for unknown in _of_column(law, j))


def _of_column(law: Additive, j: int) -> Iterator[Unknown]:
    """List the unknowns of a column whose noise is independent of the others'."""
    sd, spread, columns = _sds(law.noise)[j], spread_of(law, j), (law.columns[j],)
    if isinstance(spread, Multiplicative):
        yield Unknown(BIAS_SD, columns, sd * spread.bias_sd)
        yield Unknown(SD, columns, sd * spread.sd)
    elif sd > 0:
        yield Unknown(SD, columns, sd)


def with_values(law: Any, values: Sequence[float]) -> Any:
    """Return the law with other values of its unknowns, in the order of `unknowns_of`; 0 is no noise."""
    law, unknowns = combined_of(law), unknowns_of(law)
    if len(values) != len(unknowns):
        raise BadPlan(f"the law has {len(unknowns)} unknowns, not {len(values)}: give a value for each")
    given = [float(value) for value in values]
    if not all(0 <= value < np.inf for value in given):
        raise BadPlan("the unknowns of a law are sds and scales: give finite values of at least 0")
    if not unknowns:
        return law
    if isinstance(law, SkewedBias):
        return replace(law, bias_sd=given[0], sds=tuple(given[1:]))
    if unknowns[0].name == SCALE:
        return replace(law, noise=scaled_noise(law.noise, given[0]))
    return _with_columns(law, {(u.name, u.columns[0]): v for u, v in zip(unknowns, given, strict=True)})


def _with_columns(law: Additive, values: dict[tuple[str, str], float]) -> Additive:
    """Give independent columns their figures; noise under a bias has sd 1, its spread says the rest."""
    sds, spreads = [], []
    for j, (name, own) in enumerate(zip(law.columns, _sds(law.noise), strict=True)):
        spread, sd = spread_of(law, j), values.get((SD, name), own)
        if isinstance(spread, Multiplicative):
            spread, sd = Multiplicative(values[BIAS_SD, name], sd), 1.0
        elif sd == 0:
            spread = None
        sds.append(sd)
        spreads.append(spread)
    noise: Any = replace(law.noise, sds=tuple(sds))  # type: ignore[type-var]
    return replace(law, noise=noise, spreads=tuple(spreads) if law.spreads else ())


def by_column(law: Any) -> tuple[Any, ...]:
    """Return the laws of single columns, where the columns are independent given the unknowns; else the law itself."""
    law = combined_of(law)
    apart = isinstance(law, SkewedBias) or (
        isinstance(law, Additive) and (is_independent(law.noise) or isinstance(law.noise, Mixture))
    )
    count = len(law.columns)
    return tuple(of_columns(law, [j]) for j in range(count)) if apart and count > 1 else (law,)


def of_columns(law: Any, chosen: Sequence[int]) -> Any:
    """Return the law of some of its columns alone."""
    if len(chosen) == len(law.columns):
        return law
    picked = {"columns": law.columns, "outlets": law.outlets}
    if isinstance(law, SkewedBias):
        picked |= {"sds": law.sds}
    else:
        picked |= {"offsets": law.offsets, "spreads": law.spreads, "categories": law.categories}
    parts: dict[str, Any] = {
        name: tuple(given[j] for j in chosen) if given else () for name, given in picked.items()
    }
    return replace(law, **parts) if "sds" in parts else replace(law, noise=law.noise.only(chosen), **parts)


def is_independent(noise: Noise) -> bool:
    """Whether each column has an sd of its own: normal without correlations, Laplace, or a single column of either."""
    if isinstance(noise, Normal):
        return noise.width == 1 or not noise.correlations
    return isinstance(noise, Laplace)


def spread_of(law: Additive, j: int) -> Spread | None:
    """Return how the size of a column's noise depends on the true value, if it does."""
    return law.spreads[j] if law.spreads else None


def scaled_noise(noise: Any, factor: float) -> Any:
    """Return noise that is so many times larger."""
    if isinstance(noise, Mixture):
        means, sds = (_times(rows, factor) for rows in (noise.means, noise.sds))
        return replace(noise, means=means, sds=sds)
    return replace(noise, sds=_times([noise.sds], factor)[0])


def _times(rows: Sequence[Row], factor: float) -> tuple[Row, ...]:
    return tuple(tuple(factor * value for value in row) for row in rows)


def _sds(noise: Any) -> Row:
    sds: Row = noise.sds
    return sds
