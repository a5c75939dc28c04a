"""The kernels f(x|z) of bias and noise as factors of pairs: what a released value says about a true one.

paper is (4) of Trottini, Fienberg, Makov and Meyer (2003), fms the normal N(z, sd^2 + bias_sd^2 z^2) of Fienberg, Makov
and Sanil (1997); both are closed forms for values that left as points (`kernels.bias_density`). Where noise is the same
for every value both are the normal density of the difference. They are taken on the scale where noise is added, short
of the Jacobian of the true value, which is the same for every candidate of a target. Chosen by
`BayesIntruder(kernel="paper")` and `"fms"`, to see published results again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....card import RecordPair
from ....errors import BadPlan, NoLaw, raise_all
from ....laws import Additive, Multiplicative, Normal
from ....laws.transform import FINE
from ....laws.unknowns import is_independent, of_columns, spread_of
from ....schema import OPEN
from ....table import Floats, Statuses, Table
from ...pair_density import LawTerm, LoweredLaw
from ...protocol import Ints

KINDS, FORWARD = {"paper": 1, "fms": 2}, 0  # as `kernels.bias_density` numbers them
UNLIKELY = -25.0  # nodes with a smaller log weight do not decide whether a unit is fine

Nodes = tuple[Floats, Floats, Floats]  # bias_sds, sds and the logs of their weights
NodesOf = Callable[[Any, int], Nodes]


@dataclass(frozen=True, slots=True)
class KernelColumn:
    """A factor of one column: the kernel where values are open, else 1 where statuses are the same.

    `z` and `x` are on the scale where noise is added, x where the law centres its noise.
    """

    z: Floats
    x: Floats
    status_z: Statuses
    status_x: Statuses
    nodes: Nodes
    kind: int

    @property
    def is_silent(self) -> bool:
        """Whether there is no noise at all: values are the same or impossible."""
        return not (self.nodes[0].any() or self.nodes[1].any())

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log kernel of pairs."""
        near, far = self.status_z[z], self.status_x[x]
        out = np.where(near == far, 0.0, -np.inf)
        here = (near == OPEN) & (far == OPEN)
        if here.all():
            return self.kernel(self.z[z], self.x[x])
        out[here] = self.kernel(self.z[z[here]], self.x[x[here]])
        return out

    def kernel(self, z: Floats, x: Floats) -> Floats:
        """Return the log kernel of open values, over all nodes."""
        from ....kernels.bias_density import bias_log, bias_log_mean

        bias_sds, sds, log_weights = self.nodes
        if len(sds) > 1:
            return bias_log_mean(z, x, bias_sds, sds, log_weights, self.kind)
        return np.asarray(log_weights[0] + bias_log(z, x, bias_sds[0], sds[0], self.kind))


@dataclass(frozen=True, slots=True)
class JointKernel:
    """A factor of columns with correlated noise that is the same for every value."""

    z: Floats
    x: Floats
    status_z: Statuses
    status_x: Statuses
    covariance: Floats
    term: LoweredLaw

    def logs(self, z: Ints, x: Ints) -> Floats:
        """Return the log kernel of pairs."""
        return self.term.logs(z, x)


def biased_terms(
    laws: Sequence[Any], z: Table, x: Table, kind_name: str, nodes_of: NodesOf | None = None
) -> list[LawTerm]:
    """Prepare the kernel "paper" or "fms" for pairs of records of two tables.

    `nodes_of(law, j)` gives the nodes of column j where parameters were not told. Unknowns that columns share must be
    averaged outside, as `unknown_noise.integral.over_shared` does.
    """
    return list(factors(laws, z, x, kind_name, nodes_of))


def factors(
    laws: Sequence[Any], z: Table, x: Table, kind_name: str, nodes_of: NodesOf | None
) -> list[KernelColumn | JointKernel]:
    """Return the factors of `biased_terms`."""
    if kind_name not in KINDS:
        raise BadPlan(f"there is no kernel {kind_name!r} of bias and noise; there are 'paper' and 'fms'")
    raise_all([problem for law in laws for problem in _law_problems(law)], NoLaw)
    made = [factor for law in laws for factor in _of_law(law, z, x, KINDS[kind_name], nodes_of)]
    raise_all([p for law, factor in made for p in _unit_problems(law, factor)], NoLaw)
    return [factor for _, factor in made]


def _of_law(
    law: Additive, z: Table, x: Table, kind: int, nodes_of: NodesOf | None
) -> Iterator[tuple[Additive, KernelColumn | JointKernel]]:
    """Make the factors of a law, each with the law of its columns."""
    together = [] if is_independent(law.noise) else np.flatnonzero(np.diag(law.noise.covariance)).tolist()
    if together and nodes_of is not None:
        listed = ", ".join(map(repr, law.columns))
        raise BadPlan(f"columns {listed} share the scale of their noise: integrate over it by over_shared")
    if together:
        part = of_columns(law, together)
        yield part, _joint(part, z, x)
    for j in sorted(set(range(len(law.columns))) - set(together)):
        nodes = card_node(law, j) if nodes_of is None else nodes_of(law, j)
        part = of_columns(law, [j])
        yield part, _column(part, z, x, nodes, kind)


def card_node(law: Additive, j: int) -> Nodes:
    """Return what the card says of a column, as a single node."""
    spread, sd = spread_of(law, j), float(np.sqrt(law.noise.covariance[j, j]))
    if isinstance(spread, Multiplicative):
        return np.array([sd * spread.bias_sd]), np.array([sd * spread.sd]), np.zeros(1)
    return np.zeros(1), np.array([sd]), np.zeros(1)


def _column(law: Additive, z: Table, x: Table, nodes: Nodes, kind: int) -> KernelColumn:
    """Make the factor of a law of one column; without noise, values are compared as they leave."""
    sides = RecordPair.of(law, z, x)
    centre = law.place(sides.true, np.zeros(sides.true.shape, order="F"))
    status = sides.status_z[:, 0], sides.status_x[:, 0]
    arrays = tuple(np.ascontiguousarray(part, np.float64) for part in nodes)
    kind = kind if nodes[0].any() else FORWARD
    made = KernelColumn(sides.released[:, 0], centre[:, 0], *status, (arrays[0], arrays[1], arrays[2]), kind)
    if made.is_silent:
        return replace(made, x=law.leave(centre, sides.true)[:, 0])
    return replace(made, z=_noise_scale_values(law, sides)[:, 0])


def _joint(law: Additive, z: Table, x: Table) -> JointKernel:
    """Make the factor of correlated columns: the density of the law at points, without its Jacobian."""
    law = replace(law, outlets=tuple(replace(outlet, avoid=()) for outlet in law.outlets))
    sides, term = RecordPair.of(law, z, x), LoweredLaw.of(law, z, x)
    term = replace(term, factor=np.zeros_like(term.factor))
    statuses = sides.status_z, sides.status_x
    return JointKernel(_noise_scale_values(law, sides), term.centre, *statuses, law.noise.covariance, term)


def _noise_scale_values(law: Additive, sides: RecordPair) -> Floats:
    """Return released values on the scale where noise is added: minus infinity where nothing leads to one."""
    out = np.empty_like(sides.released)
    for j, outlet in enumerate(law.outlets):
        with np.errstate(divide="ignore", invalid="ignore"):
            out[:, j] = outlet.enter(sides.released[:, j])
    out[np.isnan(out) & (sides.status_z == OPEN)] = -np.inf
    return out


# --- what the kernels cannot do ----------------------------------------------------------------------------


def _law_problems(law: Any) -> list[str]:
    """Say which columns have another law than normal bias and noise, or leave otherwise than as points."""
    if not isinstance(law, Additive) or not isinstance(law.noise, Normal):
        listed = ", ".join(map(repr, law.columns))
        form = law.noise.form if isinstance(law, Additive) else law.form
        return [_refusal_message(f"columns {listed} have a law of another form ({form})")]
    problems = [_refusal_message(why) for j in range(len(law.columns)) for why in _column_problems(law, j)]
    if any(law.spreads) and not is_independent(law.noise):
        listed = ", ".join(map(repr, law.columns))
        problems.append(_refusal_message(f"columns {listed} have correlated noise that grows with them"))
    return problems


def _column_problems(law: Additive, j: int) -> Iterator[str]:
    name, spread, outlet = f"column {law.columns[j]!r}", spread_of(law, j), law.outlets[j]
    if law.categories and law.categories[j]:
        yield f"{name} has noise on the codes of its categories"
    if spread is not None and not isinstance(spread, Multiplicative):
        yield f"{name} has noise that grows otherwise than by a bias"
    shifted = law.slope != 1.0 or bool(law.offsets) or outlet.log_shift is not None
    if spread is not None and shifted:
        yield f"{name} has a bias and is also shifted or on the log scale"
    if outlet.low is not None or outlet.high is not None:
        yield f"{name} is {'coded' if outlet.low_coded or outlet.high_coded else 'clamped'} at a limit by the mask"


def _refusal_message(why: str) -> str:
    return (
        f"kernels 'paper' and 'fms' are for normal bias and noise that leave as points: {why}; kernel 'coherent' "
        "works"
    )


def _unit_problems(law: Additive, factor: KernelColumn | JointKernel) -> list[str]:
    """Say which columns leave on a unit that is coarse beside their noise."""
    coarse = [name for j, name in enumerate(law.columns) if _is_coarse(law, factor, j)]
    return [
        _refusal_message(f"column {name!r} is rounded to a unit that is coarse beside its noise")
        for name in coarse
    ]


def _is_coarse(law: Additive, factor: KernelColumn | JointKernel, j: int) -> bool:
    """Whether the unit of a column matters beside the smallest noise that an open value of it has."""
    outlet = law.outlets[j]
    if outlet.unit is None or (isinstance(factor, KernelColumn) and factor.is_silent):
        return False
    joint = isinstance(factor, JointKernel)
    least = float(law.noise.resolution[j]) if isinstance(factor, JointKernel) else _least_sd(factor)
    if outlet.log_shift is not None:
        least *= float(np.exp(np.fmin.reduce(factor.z[:, j] if joint else factor.z, initial=np.inf)))
    return float(outlet.unit) > FINE * least


def _least_sd(column: KernelColumn) -> float:
    """Return the smallest sd of the noise at an open true value, by the likely nodes."""
    likely = column.nodes[2] > UNLIKELY
    bias_sd, sd = column.nodes[0][likely].min(), column.nodes[1][likely].min()
    nearest = np.abs(column.x[column.status_x == OPEN]).min(initial=np.inf)
    return float(np.hypot(sd, bias_sd * nearest)) if nearest < np.inf else np.inf
