"""Log densities that depend on one distance alone, tabulated once and looked up for all pairs.

The square of a distance says by its leading bits in which panel it lies, four in each doubling, and by the others
where: a polynomial of degree DEGREE through Chebyshev's points gives the log there (Trefethen 2013, chapter 8, for why
that converges fast). Panels that it does not fit to FIT are left to the function itself. Chosen by `prior_average` and
`normal_bias_factor` from WORTH pairs on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.polynomial import chebyshev

from ....table import Floats
from ...protocol import Ints

DEGREE = 10  # of the polynomial of a panel; where it misses FIT the function itself is asked
FEW_NODES = 24  # a sum over so few needs no table
WORTH = 20_000  # pairs from which on a table is made
FIT = 1e-11  # to which a polynomial must give the log, relative to it where it is above 1
FAR = 2.0**24  # times the largest variance: squares beyond are left to the function
NEAR = 0.25  # times the smallest: squares below are one panel

LogOf = Callable[[Floats], Floats]  # distances to logs


@dataclass(frozen=True, slots=True)
class EvenFunctionTable:
    """An even function of a distance: coefficients of panels of its square, highest power first, NaN where none fit."""

    log_of: LogOf
    first: float
    coefficients: Floats

    @classmethod
    def of(cls, log_of: LogOf, least_sd: float, largest_sd: float) -> EvenFunctionTable:
        """Tabulate a function that changes on scales between two sds."""
        from ....kernels.bias_density import panel_edges

        first, edges = panel_edges(NEAR * least_sd**2, FAR * largest_sd**2)
        return cls(log_of, first, panel_polynomials(lambda squares: log_of(np.sqrt(squares)), edges))

    def logs(self, distances: Floats) -> Floats:
        """Return the logs at distances."""
        from ....kernels.bias_density import even_logs

        out = even_logs(distances, self.first, self.coefficients)
        rest = np.flatnonzero(np.isnan(out))
        if len(rest):
            out[rest] = self.log_of(distances[rest])
        return out


Nodes = tuple[Floats, Floats, Floats]  # bias_sds, sds and the logs of their weights


@dataclass(frozen=True, slots=True)
class DensitySurface:
    """The normal density of z around x with variance sd^2 + bias_sd^2 x^2, averaged over nodes of both, tabulated.

    Panels of the true value's square are made for those that there are.
    """

    nodes: Nodes
    firsts: tuple[float, float]
    where: Ints
    table: Floats

    @classmethod
    def of(cls, nodes: Nodes, x: Floats, pairs: int) -> DensitySurface | None:
        """Tabulate for true values, if so many pairs are worth it."""
        from ....kernels.bias_density import panel_edges, panel_of

        (biases, sds, _), most = nodes, float(np.abs(x).max(initial=0.0))
        if not (sds.min() > 0 and biases.max() > 0 and len(sds) >= FEW_NODES and 0 < most < np.inf):
            return None
        first, places = panel_edges(NEAR**2 * float(sds.min() / biases.max()) ** 2, most**2)
        used = sorted({panel_of(square, first)[0] for square in np.unique(x * x).tolist()})
        near, edges = panel_edges(
            NEAR * float(sds.min()) ** 2, FAR * float(np.hypot(sds.max(), biases.max() * most)) ** 2
        )
        if pairs < len(used) * len(edges) * (DEGREE + 1) ** 2:
            return None
        where = np.full(len(places) - 1, -1)
        where[used] = np.arange(len(used))
        table = [_panel(nodes, places[row], places[row + 1], edges) for row in used]
        return cls(nodes, (first, near), where, np.array(table))

    def logs(self, z: Floats, x: Floats) -> Floats:
        """Return the log densities of pairs."""
        from ....kernels.bias_density import FORWARD, bias_log_mean, surface_logs

        out = surface_logs(z, x, self.firsts, self.where, self.table)
        rest = np.flatnonzero(np.isnan(out))
        if len(rest):
            out[rest] = bias_log_mean(z[rest], x[rest], *self.nodes, FORWARD)
        return out


def _panel(nodes: Nodes, start: float, end: float, edges: Floats) -> Floats:
    """Fit polynomials in the distance at some squares of x in a panel, and to their coefficients polynomials in it."""
    from ....kernels.bias_density import FORWARD, bias_log_mean

    def at(square: float) -> Floats:
        sds, none = np.sqrt(nodes[1] ** 2 + nodes[0] ** 2 * square), np.zeros(len(nodes[0]))
        return panel_polynomials(
            lambda y: bias_log_mean(np.sqrt(y), np.zeros(len(y)), none, sds, nodes[2], FORWARD), edges
        )

    squares = start + 0.5 * (end - start) * (1.0 + _knots())
    rows = np.array([at(square) for square in squares.tolist()])
    spectra = np.tensordot(np.linalg.inv(chebyshev.chebvander(_knots(), DEGREE)), rows, 1)
    made = np.tensordot(_powers().T, spectra, 1)[::-1]
    check = at(start + 0.5 * (end - start) * 1.37)
    u = 0.37 ** np.arange(DEGREE, -1, -1)
    missed = np.abs(np.tensordot(u, made, 1) - check).sum(axis=1)
    fits = missed <= FIT * np.maximum(np.abs(check).sum(axis=1), 1.0)
    return np.ascontiguousarray(np.where(fits[:, None], made, np.nan))


def _knots() -> Floats:
    """Return the points of Chebyshev's polynomial that follows the last used."""
    return np.asarray(np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1)))


def panel_polynomials(log_of: LogOf, edges: Floats) -> Floats:
    """Fit polynomials between edges; what they miss at other points decides whether they are kept."""
    start, width = edges[:-1, None], np.diff(edges)[:, None]
    knots = _knots()
    checks = np.array([-0.999, -0.55, 0.05, 0.62, 0.998])
    places = start + 0.5 * width * (1.0 + np.concatenate([knots, checks]))
    logs = log_of(places.ravel()).reshape(places.shape)
    inverse = np.linalg.inv(chebyshev.chebvander(knots, DEGREE))
    spectra = logs[:, : DEGREE + 1] @ inverse.T
    missed = np.abs(spectra @ chebyshev.chebvander(checks, DEGREE).T - logs[:, DEGREE + 1 :])
    fits = np.all(missed <= FIT * np.maximum(np.abs(logs[:, DEGREE + 1 :]), 1.0), axis=1, keepdims=True)
    return np.ascontiguousarray(np.where(fits, spectra @ _powers(), np.nan)[:, ::-1])


@cache
def _powers() -> Floats:
    """Return the coefficients of Chebyshev's polynomials, one in each row, lowest power first."""
    out = np.zeros((DEGREE + 1, DEGREE + 1))
    for k, row in enumerate(np.eye(DEGREE + 1)):
        out[k, : k + 1] = chebyshev.cheb2poly(row[: k + 1])
    return out
