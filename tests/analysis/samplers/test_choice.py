"""Which sampler a fit gets, and that those which hold agree."""

from __future__ import annotations

import warnings
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.analysis.results.draws import FASTER
from maskwell.errors import BadPlan
from maskwell.schema import Column, Schema
from maskwell.table import Table


@cache
def release() -> mw.Release:
    rng = np.random.default_rng(4)
    x, edu, w = rng.standard_normal(300), rng.integers(0, 2, 300), rng.standard_normal(300)
    y = 1 + x + 0.5 * edu - 0.5 * w + 0.7 * rng.standard_normal(300)
    schema = Schema(
        (*(Column(name, "continuous") for name in "xwy"), Column("edu", "category", categories=("0", "1")))
    )
    table = Table.from_frame(pa.table({"x": x, "w": w, "y": y, "edu": edu.astype(str)}), schema=schema)
    noise = mw.Chain((mw.IndependentNoise(("x",), variance=0.3), mw.CodeNoise(("edu",), variance=0.2)))
    return mw.apply(noise, table, seed=2).release


def fitted(formula: str, **options: object) -> mw.Posterior:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.fit(
            formula, release(), **({"seed": 1, "naive": False, "draws": 1500, "warmup": 200} | options)
        )


def test_the_fastest_that_holds_is_taken():
    assert "closed form" in fitted("y ~ x + w").draws.sampler
    assert "Gibbs" in fitted("y ~ x + edu", draws=20).draws.sampler
    assert "slices" in fitted("y ~ I(x**2)", draws=20).draws.sampler


@pytest.mark.parametrize("sampler", ["closed", "marginal", "paper"])
def test_samplers_agree_with_gibbs(sampler):
    """Posterior means of all parameters, within four standard errors; the paper's flat priors make no difference."""
    from arviz_stats.base import array_stats

    one, other = (fitted("y ~ x + w", sampler=name).draws for name in (sampler, "gibbs"))
    assert one.names == other.names
    errors = [array_stats.mcse(draws.values, chain_axis=0, draw_axis=1) for draws in (one, other)]
    off = one.values.mean(axis=(0, 1)) - other.values.mean(axis=(0, 1))
    assert np.abs(off / np.hypot(*errors)).max() < 4


def test_the_paper_s_sampler_takes_categories():
    names = fitted("y ~ edu + x + w", sampler="paper", draws=20).names
    assert names == ("Intercept", "edu[1]", "x", "w", "sigma")


@pytest.mark.parametrize(
    ("formula", "sampler"), [("y ~ I(x**2)", "closed"), ("y ~ I(x**2)", "paper"), ("y ~ edu", "marginal")]
)
def test_a_sampler_that_does_not_hold_is_refused_with_the_reason(formula, sampler):
    with pytest.raises(BadPlan, match="does not hold here"):
        fitted(formula, sampler=sampler)


def test_short_chains_of_gibbs_name_the_sampler_that_holds():
    found = fitted("y ~ x + w", sampler="gibbs", draws=60, warmup=10)
    assert found.draws.info[FASTER] == "closed"
    assert "take sampler='auto' ('closed' holds here), or take " in str(found.warning)
    assert FASTER not in fitted("y ~ x + w + edu", sampler="gibbs", draws=60, warmup=10).draws.info
    assert FASTER not in fitted("y ~ x + w", draws=60).draws.info
