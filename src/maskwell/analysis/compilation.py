"""Compile the samplers' loops, by tiny fits that use each of them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..errors import MaskwellWarning
from ..laws import Additive, Normal, Outlet, Transition
from ..masking import Release
from ..schema import Column, Schema
from ..table import Table

RECORDS = 24  # of the toy files by which loops are compiled
MODELS = (
    ("y ~ x + k + (1|g)", "gaussian"),  # in one loop
    ("y ~ x*v + k + (1|g)", "gaussian"),
    ("n ~ x + k + (1|g)", "poisson"),
    ("o ~ x", "ordered"),
    ("b ~ x + k", "logit"),
    ("d ~ x", "poisson"),  # a noised count
)


def compile_samplers() -> None:
    """Compile every loop of the samplers now, so that no first fit has to wait."""
    from .model_fit import fit

    release = _release()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MaskwellWarning)
        for formula, family in MODELS:
            fit(
                formula,
                release,
                family=family,
                chains=1,
                draws=4,
                warmup=1,
                sampler="gibbs",
                naive=False,
                seed=0,
            )
    _compile_enumerated()


def _compile_enumerated() -> None:
    """Compile the likelihoods with unknown categories summed over."""
    from ..kernels import enumerated_gradient, enumerated_likelihood

    one, where, none = np.ones((1, 1)), np.zeros(1, np.int64), np.zeros(0, np.int64)
    records = enumerated_likelihood.CategoryRecords(one, np.ones((2, 1)), np.ones((2, 1)), np.empty(0))
    ends = np.array([0, 1, 2])
    zeros = np.zeros(3, np.int64)
    shape = enumerated_likelihood.EnumerationShape(
        where + 2, ends, zeros[:2], zeros[:2] + 2, zeros, none, zeros[:2], 0
    )
    room, out, given = enumerated_likelihood.room_for(shape), np.ones(1), (np.ones(2), np.ones(1))
    enumerated_likelihood.totals(records, shape, np.ones((1, 2)), one, room, out)
    enumerated_gradient.slopes(records, shape, *given, room, (np.ones(2), np.ones(1)))
    enumerated_gradient.draw_combinations(records, shape, given, room, np.ones(1), out)


def _release() -> Release:
    """Make a few records with noise on two numbers, a count and a category."""
    import pyarrow as pa

    rng = np.random.default_rng(0)
    values: dict[str, Any] = {name: rng.standard_normal(RECORDS) for name in ("x", "v", "y")}
    counts = np.arange(RECORDS) % 3
    texts = {"k": (np.arange(RECORDS) % 2).astype(str), "g": (np.arange(RECORDS) // 8).astype(str)}
    columns: dict[str, Any] = {**values, "n": counts, "o": counts, "b": counts % 2, "d": counts, **texts}
    schema = Schema(
        (
            *(Column(name, "continuous") for name in values),
            *(Column(name, "integer") for name in ("n", "o", "b", "d")),
            Column("k", "category", categories=("0", "1")),
            Column("g", "category", categories=("0", "1", "2")),
        )
    )
    laws = (
        Additive(("x",), Normal((0.5,)), (Outlet(),)),
        Additive(("v",), Normal((0.5,)), (Outlet(low=-1.0),)),
        Additive(("d",), Normal((1.0,)), (Outlet(),)),
        Transition(("k",), ("0", "1"), ("0", "1"), ((0.9, 0.1), (0.1, 0.9))),
    )
    clamped = pa.table({**columns, "v": np.maximum(values["v"], -1.0)})
    return Release(Table.from_frame(clamped, schema=schema), NoiseCard(laws))
