"""Draws as arviz has them: a DataTree with the groups `posterior` and `sample_stats`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import BadPlan
from .draws import Draws

if TYPE_CHECKING:
    from .posterior import Posterior

DIVISION = "÷"  # a slash in a name would be a path of the tree


def to_arviz(posterior: Posterior) -> Any:
    """Return a DataTree: each parameter a variable of its own, the covariate model's and group effects after them."""
    if find_spec("arviz_base") is None:
        raise BadPlan("this needs arviz-base, which is not installed: pip install arviz-base")
    from arviz_base import from_dict

    draws = posterior.draws
    variables, dims, coords = _posterior(draws)
    statistics, said = _statistics(draws)
    groups: dict[str, Any] = {"posterior": variables}
    if statistics:
        groups["sample_stats"] = statistics
    about = {"formula": posterior.formula, "family": posterior.family, "records": posterior.records}
    attributes = {"posterior": about | {"sampler": draws.sampler} | said}
    return from_dict(groups, dims=dims, coords=coords, attrs=attributes)


def variable_name(name: str) -> str:
    """Return the name of a parameter's variable: its own, but for slashes."""
    return name.replace("/", DIVISION)


def _posterior(draws: Draws) -> tuple[dict[str, Any], dict[str, list[str]], dict[str, Any]]:
    """Return the variables, the dimensions of those that have some, and the coordinates of these."""
    variables: dict[str, Any] = {
        variable_name(name): draws.values[:, :, k] for k, name in enumerate(draws.names)
    }
    if draws.nuisance is not None:
        found = enumerate(draws.nuisance_names)
        variables |= {variable_name(name): draws.nuisance[:, :, k] for k, name in found}
    dims: dict[str, list[str]] = {}
    for k, effects in enumerate(draws.effects, 1):
        variables[f"effects[{k}]"] = effects
        dims[f"effects[{k}]"] = [f"group[{k}]", f"column[{k}]"]
    coords: dict[str, Any] = {}
    if draws.truths is not None and draws.truths.shape[1] == draws.values.shape[1]:
        variables["truths"], dims["truths"] = draws.truths, ["record", "noised"]
        coords["noised"] = list(draws.truth_names)
    return variables, dims, coords


def _statistics(draws: Draws) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the sampler says of every draw, and what it says of all in one figure."""
    shape, statistics, said = draws.values.shape[:2], {}, {}
    for name, value in draws.info.items():
        found = np.asarray(value)
        if found.shape[:2] == shape and found.dtype.kind in "bif":
            statistics[variable_name(name)] = found
        elif found.ndim == 0 and found.dtype.kind in "bifU":
            said[name] = found.item()
    return statistics, said
