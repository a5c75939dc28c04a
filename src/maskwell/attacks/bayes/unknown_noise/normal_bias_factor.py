"""Columns with normal bias and noise as factors of pairs: quick where both values are open and away from limits.

f(z|x) = N(z; x, sd^2 + bias_sd^2 x^2) (Trottini, Fienberg, Makov and Meyer 2003, A2.1), summed over nodes of both sds
where they are unknown. A unit that is not quite fine is averaged over by three Gauss-Legendre points. Chosen by
`law_kernels` and `integral`; other laws and values at limits are asked as they are (`attacks.pair_density`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....card import RecordPair
from ....laws import Additive, Multiplicative, Normal
from ....laws.transform import FINE
from ....laws.unknowns import by_column, spread_of
from ....schema import OPEN
from ....table import Floats, Table
from ...pair_density import LawTerm, law_terms
from ...protocol import Bools, Ints
from ..bias_likelihood.kernels import card_node
from .density_tables import DensitySurface, Nodes
from .normal_boxes import SMALL
from .prior_average import UNLIKELY

THIRD = 0.5 * (3.0 / 5.0) ** 0.5  # of a unit: where three points stand for it, with weights 5, 8 and 5 of 18


def told_terms(laws: Sequence[Any], z: Table, x: Table) -> list[LawTerm]:
    """Prepare laws whose figures are told for pairs of records of two tables."""
    others = [law for law in laws if not _is_apart(law)]
    ones = [one for law in laws if _is_apart(law) for one in by_column(law)]
    return law_terms(others, z, x) + [
        NormalBiasFactor.of(one, card_node(one, 0), z, x, law_terms([one], z, x)[0]) for one in ones
    ]


def _is_apart(law: Any) -> bool:
    """Whether all columns of a law have normal bias and noise, independent of each other."""
    return isinstance(law, Additive) and any(law.spreads) and all(map(is_bias_and_noise, by_column(law)))


def is_bias_and_noise(law: Any) -> bool:
    """Whether a column is normal around x with variance sd^2 + bias_sd^2 x^2, and gets no codes on its way out."""
    if not isinstance(law, Additive) or not isinstance(law.noise, Normal) or len(law.columns) > 1:
        return False
    outlet, uncoded = law.outlets[0], (None, None)
    plain = outlet.log_shift is None and outlet.codes == uncoded and law.slope == 1.0 and not law.offsets
    return plain and isinstance(spread_of(law, 0), Multiplicative)


@dataclass(frozen=True, slots=True)
class NormalBiasFactor:
    """The factor of one column, by nodes of its figures; `rest` speaks of all pairs that are not `ordinary`.

    A true value is ordinary where its noise is large beside the unit: released values are then points (kind 2), or
    three of them (kind 1); a released one where it is open and away from limits and codes.
    """

    z: Floats
    x: Floats
    ordinary_z: Bools
    kind_x: Ints
    unit: float
    nodes: Nodes
    surface: DensitySurface | None
    rest: LawTerm

    @classmethod
    def of(cls, law: Any, nodes: Nodes, z: Table, x: Table, rest: LawTerm) -> LawTerm:
        """Find the ordinary values of two tables."""
        sides, unit = RecordPair.of(law, z, x), float(law.outlets[0].unit or 0.0)
        released, true = sides.released[:, 0], sides.true[:, 0]
        likely = nodes[2] > UNLIKELY
        with np.errstate(invalid="ignore"):
            least = np.hypot(nodes[1][likely].min(), nodes[0][likely].min() * true)
            spanned = (unit <= SMALL * least) & (len(likely) > 1)
            kinds = np.where(unit <= FINE * least, 2, np.where(spanned, 1, 0))
        kinds[(sides.status_x[:, 0] != OPEN) | (least == 0)] = 0
        huge = np.full(len(released), 1e300)
        ordinary = law.outlets[0].cell(released, np.zeros(len(released)), huge).is_point
        ordinary &= sides.status_z[:, 0] == OPEN
        if not (ordinary.any() and kinds.any()):
            return rest
        surface = DensitySurface.of(nodes, true[kinds > 0], int(ordinary.sum()) * int((kinds > 0).sum()))
        return cls(released, true, ordinary, kinds, unit, nodes, surface, rest)

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the factor for pairs."""
        kinds = np.where(self.ordinary_z[z], self.kind_x[x], 0)
        if kinds.min(initial=2) == 2:
            return self._kernel(self.z[z], self.x[x])
        out = np.empty(len(z))
        for kind, values in enumerate((self.rest.logs, self._spanned, self._points)):
            here = np.flatnonzero(kinds == kind)
            if len(here):
                out[here] = values(z[here], x[here])
        return out

    def _points(self, z: Ints, x: Ints) -> Floats:
        return self._kernel(self.z[z], self.x[x])

    def _spanned(self, z: Ints, x: Ints) -> Floats:
        """Return the log of the mean density over the unit of each released value."""
        at, true = self.z[z], self.x[x]
        low, middle, high = (self._kernel(at + step * self.unit, true) for step in (-THIRD, 0.0, THIRD))
        sides = np.logaddexp(low, high) + np.log(5.0 / 18.0)
        return np.asarray(np.logaddexp(sides, middle + np.log(8.0 / 18.0)))

    def _kernel(self, z: Floats, x: Floats) -> Floats:
        """Return the log density of pairs, over all nodes."""
        from ....kernels.bias_density import FORWARD, bias_log, bias_log_mean

        bias_sds, sds, log_weights = self.nodes
        if self.surface is not None:
            return self.surface.logs(z, x)
        if len(sds) > 1:
            return bias_log_mean(z, x, bias_sds, sds, log_weights, FORWARD)
        return np.asarray(log_weights[0] + bias_log(z, x, bias_sds[0], sds[0], FORWARD))
