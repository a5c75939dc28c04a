"""log p(z | y) in closed form: a normal law of true amounts, normal errors of the intruder, normal noise.

Given y = x + error and x ~ N(m, S), x is normal with mean m + S (S + E)^-1 (y - m) and covariance S - S (S + E)^-1 S
(Anderson 2003, section 2.5). The mean takes the place of y, and the covariance adds to that of the noise. Chosen by
`density_prior` where law, errors and noise are all normal and plain; else nodes on a lattice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....laws import Additive, Normal
from ....laws.unknowns import of_columns
from ....table import Floats, Table
from ...pair_density import LawTerm, law_terms, summed_logs
from ...protocol import Ints
from ..marginal.true_value_law import TrueValueLaw
from .error_law import OwnError


@dataclass(frozen=True, slots=True)
class Shrunk:
    """Factors of p(z | y) for groups of known records that are alike in which amounts are open."""

    group: Ints
    place: Ints
    terms: tuple[list[LawTerm], ...]
    more: tuple[LawTerm, ...] = ()

    def with_terms(self, terms: Sequence[LawTerm]) -> Shrunk:
        """Return the same with further factors."""
        return replace(self, more=(*self.more, *terms))

    def logs(self, z: Ints, x: Ints, log_moved: Floats) -> Floats:
        """Return log p(z | y) of listed pairs."""
        out = summed_logs(self.more, z, x)
        for number, terms in enumerate(self.terms):
            here = np.flatnonzero(self.group[x] == number)
            out[here] += summed_logs(terms, z[here], self.place[x[here]])
        return out


def shrunk(laws: Sequence[Any], z: Table, x: Table, error: OwnError, fitted: TrueValueLaw) -> Shrunk | None:
    """Prepare the factors, or nothing where noise or errors are of another kind."""
    parts = _parts(laws, error)
    if error.wrong_of.keys() & {name for law in laws for name in law.columns} or parts is None:
        return None
    joined, rest = parts
    if not {name for law in joined for name in law.columns} <= set(fitted.names):
        return None
    entered = fitted.entered(x)
    group, place, terms = np.zeros(len(x), np.int64), np.zeros(len(x), np.int64), []
    for number, (records, chosen) in enumerate(fitted.patterns(entered)):
        some = x.take(records)
        centre, left = _conditional_moments(
            fitted, entered[records], chosen, _own_variances(fitted, some, error)
        )
        law, moved = _joint(joined, some, fitted, centre, left)
        group[records], place[records] = number, np.arange(len(records))
        terms.append([*law_terms(rest, z, some), *law_terms([law], z, moved)])
    return Shrunk(group, place, tuple(terms))


def _parts(laws: Sequence[Any], error: OwnError) -> tuple[list[Additive], list[Any]] | None:
    """Cut laws into those that have a column of the error in them, and the rest."""
    joined, rest = [], []
    for law in laws:
        named = [j for j, name in enumerate(law.columns) if name in error.columns]
        others = [j for j in range(len(law.columns)) if j not in named]
        normal = isinstance(law, Additive) and isinstance(law.noise, Normal)
        if named and others and normal and not law.noise.correlations:
            joined.append(of_columns(law, named))
            rest.append(of_columns(law, others))
        else:
            (joined if named else rest).append(law)
    return (joined, rest) if all(map(_is_plain, joined)) else None


def _is_plain(law: Any) -> bool:
    """Whether true values are added to normal noise of one size as they are."""
    if not isinstance(law, Additive) or not isinstance(law.noise, Normal) or any(law.spreads):
        return False
    codes = any(law.categories) or any(outlet.log_shift is not None for outlet in law.outlets)
    return not codes and bool((np.diag(law.noise.covariance) > 0).all())


def _own_variances(fitted: TrueValueLaw, x: Table, error: OwnError) -> Floats:
    """Return the variance of the intruder's error of each amount; whole numbers are rounded too."""
    sds = np.array([error.sd_of.get(name, 0.0) for name in fitted.names])
    whole = np.array([x.schema[name].kind == "integer" for name in fitted.names], bool)
    return np.where(sds > 0, sds**2 + whole / 12.0, 0.0)


def _conditional_moments(
    fitted: TrueValueLaw, y: Floats, chosen: Ints, variances: Floats
) -> tuple[Floats, Floats]:
    """Return the mean of true amounts given what is known of the open ones, and their covariance."""
    centre, left = y.copy(), np.zeros((len(fitted.names),) * 2)
    loose = chosen[variances[chosen] > 0]
    if len(loose):
        prior = fitted.covariance[np.ix_(chosen, chosen)]
        gain = np.linalg.solve(prior + np.diag(variances[chosen]), prior).T
        mean = fitted.mean[chosen]
        centre[:, chosen] = mean + (y[:, chosen] - mean) @ gain.T
        left[np.ix_(loose, loose)] = (prior - gain @ prior)[
            np.ix_(variances[chosen] > 0, variances[chosen] > 0)
        ]
        sure = chosen[variances[chosen] == 0]
        centre[:, sure] = y[:, sure]
    return centre, left


def _joint(
    laws: Sequence[Additive], x: Table, fitted: TrueValueLaw, centre: Floats, left: Floats
) -> tuple[Additive, Table]:
    """Return one law of all columns whose true values are uncertain, and known records that are its centres."""
    names = [name for law in laws for name in law.columns]
    at = [fitted.names.index(name) for name in names]
    slopes = np.array([law.slope for law in laws for _ in law.columns])
    covariance = left[np.ix_(at, at)] * np.outer(slopes, slopes)
    changed, begin = {}, 0
    for law in laws:
        end = begin + len(law.columns)
        covariance[begin:end, begin:end] += law.noise.covariance
        placed = law.place(centre[:, at[begin:end]], np.zeros((len(x), end - begin), order="F"))
        for j, name in enumerate(law.columns):
            column = replace(x.schema[name], kind="continuous", unit=None)
            changed[name] = (column, np.ascontiguousarray(placed[:, j]), x.status(name))
        begin = end
    sds = np.sqrt(np.diag(covariance))
    correlations = covariance / np.outer(sds, sds)
    np.fill_diagonal(correlations, 1.0)
    noise = Normal(tuple(sds.tolist()), tuple(map(tuple, correlations.tolist())) if len(sds) > 1 else ())
    outlets = tuple(outlet for law in laws for outlet in law.outlets)
    return Additive(tuple(names), noise, outlets), x.with_columns(changed)
