"""Pairs of records that show what integrals over the unknown figures of a law have to resolve.

The likelihood of psi from one pair is narrow where the pair nearly agrees and lies in the prior's tail where it does
not: likely pairs, pairs DEPTHS below the best of their record in the log, and released values with true ones that
hardly differ are taken as extremes (own derivation). They are looked at without the units of columns: where a unit
begins to matter as noise gets smaller densities jump a little, which is no matter for nodes. Used by
`quadrature_nodes`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....card import RecordPair
from ....laws import Additive, Multiplicative, Normal
from ....laws.unknowns import is_independent, spread_of
from ....table import Floats, Table
from ...protocol import Ints

LOOKED_AT = 10  # records whose candidates are looked through, of each table
CANDIDATES = 1_000  # of each of these records
DEPTHS = (0.0, 3.0, 20.0, 60.0)  # how far below the best of a record's candidates, in logs, pairs are taken
WITHIN_UNIT = 0.3  # of its unit a released value is taken to be from itself


@dataclass(frozen=True, slots=True)
class Probes:
    """Pairs of two tables, and released values with true ones that hardly differ."""

    sides: RecordPair
    z: Ints
    x: Ints
    same: tuple[Floats, Floats]
    is_plain: bool = False

    @classmethod
    def of(cls, law: Any, z: Table, x: Table) -> Probes:
        """Look for the likely pairs of some records, the outermost among them."""
        some_z, some_x = _spread(law, z, LOOKED_AT), _spread(law, x, LOOKED_AT)
        sides = RecordPair.of(without_units(law), z, x)
        pairs = {
            *_likely(sides, _spread(law, z, CANDIDATES), some_x),
            *_likely(sides, some_z, _spread(law, x, CANDIDATES), of_true=False),
        }
        first, second = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
        units = np.array([float(outlet.unit or 0) for outlet in law.outlets])
        values = z.values(law.columns)[some_z]
        values = values[~np.isnan(values).any(axis=1)]
        same = values + WITHIN_UNIT * units, values
        return cls(
            sides, first, second, same, _is_plain(sides.law, sides.released[first], sides.true[second])
        )

    def logs(self, law: Any) -> Floats:
        """Return the log densities of the pairs under the law with other figures."""
        if self.is_plain:
            return _plain_logs(law, *self._values())
        law = without_units(law)
        logs = replace(self.sides, law=law).logpdf(self.z, self.x)[0]
        return np.concatenate([logs, law.logpdf_with_error(*self.same)[0]])

    def column_logs(self, bias_sd: float, sd: float) -> Floats:
        """Return the same for one column of plain normal bias and noise."""
        from ....kernels.bias_density import FORWARD, bias_log

        z, x = self._values()
        return bias_log(z[:, 0], x[:, 0], bias_sd, sd, FORWARD)

    def _values(self) -> tuple[Floats, Floats]:
        """Return released and true values of all pairs."""
        z = np.concatenate([self.sides.released[self.z], self.same[0]])
        return z, np.concatenate([self.sides.true[self.x], self.same[1]])


def _is_plain(law: Any, z: Floats, x: Floats) -> bool:
    """Whether values are open and of columns with plain normal noise, or one with bias too, away from limits."""
    if not (isinstance(law, Additive) and isinstance(law.noise, Normal)):
        return False
    shifted = any(outlet.log_shift is not None for outlet in law.outlets)
    moved = bool(law.slope != 1.0 or law.offsets or law.categories or shifted)
    one = len(law.columns) == 1 and isinstance(spread_of(law, 0), Multiplicative)
    silent = any(law.spreads) or np.linalg.eigvalsh(law.noise.covariance).min() <= 0
    ends = [end for outlet in law.outlets for end in (outlet.low, outlet.high) if end is not None]
    return not (moved or (silent and not one) or np.isnan(z + x).any() or np.isin(z, ends).any())


def _plain_logs(law: Any, z: Floats, x: Floats) -> Floats:
    """Return the log densities of normal noise on several columns."""
    scale = np.array(law.noise.sds)
    root = np.linalg.cholesky(law.noise.covariance / np.outer(scale, scale))
    white = np.linalg.solve(root, ((z - x) / scale).T)
    log_volume = np.log(scale * np.diag(root)).sum() + 0.5 * len(scale) * np.log(2 * np.pi)
    return np.asarray(-0.5 * (white**2).sum(axis=0) - log_volume)


def without_units(law: Any) -> Any:
    """Return a law that leaves values as they are; correlated noise at limits without its correlations."""
    if not law.outlets:
        return law
    law = replace(law, outlets=tuple(replace(outlet, unit=None) for outlet in law.outlets))
    limited = any(outlet.low is not None or outlet.high is not None for outlet in law.outlets)
    if (
        isinstance(law, Additive)
        and isinstance(law.noise, Normal)
        and not is_independent(law.noise)
        and limited
    ):
        return replace(law, noise=Normal(law.noise.sds))
    return law


def _spread(law: Any, table: Table, count: int) -> Ints:
    """Return some records, evenly spread over the table, and those of the smallest and largest values."""
    even = np.linspace(0, len(table) - 1, min(count, len(table))).astype(np.int64)
    values = np.nan_to_num(table.values(law.columns))
    return np.unique(np.concatenate([even, values.argmin(axis=0), values.argmax(axis=0)]))


def _likely(
    sides: RecordPair, released: Ints, true: Ints, *, of_true: bool = True
) -> Iterator[tuple[int, int]]:
    """Return for each record of one side likely and less likely partners, released record first."""
    pairs = np.tile(released, len(true)), np.repeat(true, len(released))
    logs = sides.logpdf(*pairs)[0].reshape(len(true), len(released))
    rows, own, other = (logs, true, released) if of_true else (logs.T, released, true)
    for number, row in zip(own.tolist(), rows, strict=True):
        possible = np.flatnonzero(np.isfinite(row))
        for depth in DEPTHS if len(possible) else ():
            away = np.abs(row[possible] - row[possible].max() + depth)
            partner = int(other[possible[np.argmin(away)]])
            yield (partner, number) if of_true else (number, partner)
