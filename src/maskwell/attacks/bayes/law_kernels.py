"""How the intruder reads the laws: by which kernel, with which parameters told, with what error of his own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...kernels.log_sums import log_sum
from ...table import Floats, Table
from ..pair_density import LawTerm

if TYPE_CHECKING:
    from .own_error.error_law import OwnError
    from .unknown_noise.integral import Rule
    from .unknown_noise.priors import Prior

KERNELS = ("coherent", "forward", "paper", "fms")
BACKWARD = ("paper", "fms")  # kernels f(x|z): the intruder's value given the released one


@dataclass(frozen=True, slots=True)
class LawReading:
    """One reading of the laws.

    With a `tolerance` unknown parameters have as many nodes as it asks for (`placed` keeps them), else `count` each.
    """

    kernel: str
    prior: Prior | None
    error: OwnError | None
    released: Table
    count: int = 0
    tolerance: float = 0.0
    placed: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def exact(self, laws: Sequence[Any], z: Table, x: Table) -> list[LawTerm]:
        """Make factors for records that are known without error."""
        if self.kernel in BACKWARD:
            return [term for law in laws for term in self._backward(law, z, x)]
        if self.prior is None:
            from .unknown_noise.normal_bias_factor import told_terms

            return told_terms(laws, z, x)
        from .unknown_noise.integral import integrated_terms

        return integrated_terms(laws, z, x, self.prior, self.released, self._rule(z, x))

    @property
    def most_nodes(self) -> int:
        """The largest number of nodes that an unknown has had by this tolerance, 0 where nothing is unknown."""
        from .unknown_noise.quadrature_nodes import AdaptiveNodeRule

        return AdaptiveNodeRule(self.tolerance, self.released, self.released, self.placed).most()

    def _rule(self, z: Table, x: Table) -> Rule:
        """Return how many nodes unknowns have."""
        from .unknown_noise.quadrature_nodes import AdaptiveNodeRule

        return AdaptiveNodeRule(self.tolerance, z, x, self.placed) if self.tolerance else self.count

    def _backward(self, law: Any, z: Table, x: Table) -> list[LawTerm]:
        from .bias_likelihood.kernels import biased_terms

        if self.prior is None:
            return biased_terms([law], z, x, self.kernel, None)
        from .unknown_noise.integral import over_shared

        return over_shared(
            law,
            self.prior,
            self.released,
            self._rule(z, x),
            lambda at, nodes_of: biased_terms([at], z, x, self.kernel, nodes_of),
        )

    def log_unreleased(self, laws: Sequence[Any], x: Table) -> Floats:
        """Return the log density of known records that were not released, under the kernels f(x|z)."""
        total = np.zeros(len(x))
        for law in laws:
            total += self._law_unreleased(law, x)
        return total

    def _law_unreleased(self, law: Any, x: Table) -> Floats:
        from .bias_likelihood.absent_records import log_unreleased

        if self.prior is None:
            return log_unreleased([law], self.released, x, self.kernel, None)
        from .unknown_noise.integral import shared_nodes

        nodes = shared_nodes(law, self.prior, self.released, self._rule(self.released, x))
        logs = [
            weight + log_unreleased([at], self.released, x, self.kernel, nodes_of)
            for weight, at, nodes_of in nodes
        ]
        return log_sum(np.array(logs), axis=0)

    def erring(self, laws: Sequence[Any], z: Table, x: Table) -> list[LawTerm]:
        """Make factors for the intruder's own records, which are off by an error."""
        from .own_error.error_law import erring_terms

        assert self.error is not None
        return erring_terms(laws, z, x, self.error)

    def in_clear(self, names: Sequence[str], z: Table, x: Table) -> list[LawTerm]:
        """Make factors for columns that left as they were but that the intruder knows with error."""
        if self.error is None:
            return []
        from .own_error.error_law import erring_terms

        return erring_terms([], z, x, self.error, clear=names)
