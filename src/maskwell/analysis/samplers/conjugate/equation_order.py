"""How the equations of a linear system hang together with its reduced form.

A recursive system y_k = B_k (w, y_1 .. y_(k-1)) + e_k with independent normal errors is one multivariate normal
regression of all y on w, if each equation has all earlier responses and its clean columns span the same space; sds and
coefficients follow from the Cholesky root of the covariance. Own derivation by that factorisation, as for path models
(Anderson 2003, section 2.5). Asked by `sampler` whether it holds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...expressions import ONE, Node
from ...system import Floats, System
from .affine import Affine, affine, columns_of
from .reduced_form import ReducedDraws, regressions

SINGULAR = 1e-11  # what is left of a column below this share is rounding


@dataclass(frozen=True, slots=True)
class Form:
    """The columns of the reduced form, and the map of each equation's coefficients to it.

    The clean columns are `bases`; the others are the responses of the equations in their order, that of interest last.
    `maps[k]` times the coefficients of equation k are those of the earlier responses and of the bases.
    """

    bases: tuple[Node, ...]
    responses: tuple[int, ...]
    names: tuple[str, ...]
    maps: tuple[Floats, ...] = field(repr=False)

    def coefficients(self, k: int, found: ReducedDraws) -> Floats:
        """Return draws of the coefficients of equation k."""
        before = regressions(found.roots, k)
        rest = found.coefficients[:, :, k] - np.einsum("irk,ik->ir", found.coefficients[:, :, :k], before)
        return np.asarray(np.linalg.solve(self.maps[k], np.hstack([before, rest]).T).T)


def form_of(system: System) -> Form:
    """Take the equations of a linear system apart."""
    responses = tuple(equation.response for equation in system.equations)
    names = tuple(system.variables[j].name for j in responses)
    parts = [
        [affine(node, names[:-1]) for node in columns_of(system, equation)] for equation in system.equations
    ]
    bases = tuple(dict.fromkeys(p.clean.base for own in parts for p in own if p.clean.factor != 0.0))
    maps = tuple(_map(own, names[:k], bases) for k, own in enumerate(parts))
    return Form(bases, responses, names, maps)


def _map(parts: list[Affine], before: tuple[str, ...], bases: tuple[Node, ...]) -> Floats:
    found = np.zeros((len(before) + len(bases), len(parts)))
    for k, part in enumerate(parts):
        for name, term in part.slopes.items():
            found[before.index(name), k] = term.factor
        if part.clean.factor != 0.0:
            found[len(before) + bases.index(part.clean.base), k] = part.clean.factor
    return found


def why_no_form(system: System) -> str | None:
    """Say why the equations are not one unrestricted regression of all unknown numbers and the response."""
    names = [system.variables[equation.response].name for equation in system.equations]
    for k, equation in enumerate(system.equations):
        for node in columns_of(system, equation):
            slopes = affine(node, names[:-1]).slopes
            if any(term.base != ONE for term in slopes.values()):
                return "there are products of unknown numbers and clean columns"
            if not set(slopes) <= set(names[:k]):
                return "the covariate model is not in order"
    for own in form_of(system).maps:
        if own.shape[0] != own.shape[1]:
            return "the equations do not all have the same clean columns and all unknown numbers before them"
        scaled = own / np.maximum(np.abs(own).max(axis=0), 1e-300)
        scaled /= np.maximum(np.abs(scaled).max(axis=1, keepdims=True), 1e-300)
        if np.linalg.svd(scaled, compute_uv=False)[-1] < SINGULAR:
            return "columns of an equation depend on each other"
    return None
