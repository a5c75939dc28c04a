"""Every law with true values to draw from, and one check for all: draws follow the law's own density, which sums to 1.

A law's released values lie on a grid, so the whole law of a record can be listed: at each grid value the density times
the unit, at a limit the probability itself. The list must sum to 1, and 10^5 keyed draws must fall on it as it says
(chi-square over bins of about equal probability, refused below 1e-6). Keys are fixed: a test passes or fails for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from maskwell.keys import Key, Stream, ids_from_numbers
from maskwell.laws import (
    Additive,
    Classes,
    JointMixture,
    Laplace,
    Mixture,
    Multiplicative,
    Normal,
    Outlet,
    Power,
    RotatedMixture,
    SkewedBias,
    Step,
    Transition,
)
from maskwell.laws.chain import ChainedLaw, combined_of, follow

NAN = float("nan")
DRAWS = 100_000
LEAST_P = 1e-6
FINE = 1e-4  # what a law may be wrong by where it takes a fine unit for exact (see laws/outlet.py)


def stream_of(count: int, seed: int = 1, stage: str = "0") -> Stream:
    return Stream(Key.from_seed(seed), "tests", stage, ids_from_numbers(count))


def axes_of(law: Any, truth: tuple[float, ...], spans: Any) -> list[np.ndarray]:
    """Return the values each open column can be released as."""
    seen, axes = combined_of(law), []
    for j, x in enumerate(truth):
        if np.isnan(x):
            continue
        if not seen.outlets:
            axes.append(np.arange(float(spans[j])))
            continue
        outlet, (low, high) = seen.outlets[j], spans[j]
        first, last = Fraction(str(low)) // outlet.unit, Fraction(str(high)) // outlet.unit
        steps = np.arange(int(first), int(last) + 2).astype(float)
        values = steps * outlet.unit.numerator / outlet.unit.denominator
        values = values[(values > (-np.inf if outlet.low is None else outlet.low))]
        values = values[(values < (np.inf if outlet.high is None else outlet.high))]
        ends = [end for end in (outlet.low, outlet.high) if end is not None]
        axes.append(np.sort(np.concatenate([values, ends])))
    return axes


def listed(law: Any, truth: tuple[float, ...], spans: Any) -> tuple[list[np.ndarray], np.ndarray, float]:
    """Return the grid of released values, the probability of each, and the stated error of all together."""
    axes, is_open = axes_of(law, truth, spans), ~np.isnan(truth)
    mesh = np.meshgrid(*axes, indexing="ij")
    z = np.full((mesh[0].size, len(truth)), np.nan)
    z[:, is_open] = np.column_stack([m.ravel() for m in mesh])
    logs, error = law.logpdf_with_error(z, np.tile(truth, (len(z), 1)))
    seen, measure = combined_of(law), np.ones(len(z))
    for j in np.flatnonzero(is_open):
        if seen.outlets:
            outlet = seen.outlets[j]
            at_limit = np.isin(z[:, j], [end for end in (outlet.low, outlet.high) if end is not None])
            measure *= np.where(at_limit, 1.0, float(outlet.unit))
    return axes, (np.exp(logs) * measure).reshape([len(a) for a in axes]), float((error * measure).sum())


def drawn(law: Any, truth: tuple[float, ...], count: int = DRAWS, seed: int = 1) -> np.ndarray:
    """Return keyed draws for many records that have the same true values."""
    return law.draw(
        np.tile(truth, (count, 1)).astype(float),
        stream_of(count, seed, "" if isinstance(law, ChainedLaw) else "0"),
    )


def p_value(axes: list[np.ndarray], probabilities: np.ndarray, z: np.ndarray) -> float:
    """Return the chi-square p-value of draws against listed probabilities."""
    places = []
    for j, axis in enumerate(axes):
        at = np.clip(np.searchsorted(axis, z[:, j]), 1, len(axis) - 1)
        at -= np.abs(axis[at - 1] - z[:, j]) < np.abs(axis[at] - z[:, j])
        assert np.array_equal(axis[at], z[:, j]), "a draw is not on the grid"
        places.append(at)
    assert np.all(probabilities[tuple(places)] > 0), "an impossible value was drawn"
    bins, observed = np.zeros(probabilities.shape, np.int64), np.zeros(len(z), np.int64)
    each = {1: 60, 2: 10, 3: 5}[len(axes)]
    for j in range(len(axes)):
        share = probabilities.sum(axis=tuple(i for i in range(len(axes)) if i != j))
        group = np.minimum(((np.cumsum(share) - share / 2) * each).astype(np.int64), each - 1)
        bins = bins * each + group.reshape([-1 if i == j else 1 for i in range(len(axes))])
        observed = observed * each + group[places[j]]
    expected = np.bincount(bins.ravel(), probabilities.ravel(), minlength=each ** len(axes)) * len(z)
    counts = np.bincount(observed, minlength=each ** len(axes))
    rare = expected < 10
    expected = np.append(expected[~rare], expected[rare].sum())
    counts = np.append(counts[~rare], counts[rare].sum())
    kept = expected > 0
    statistic = ((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    return float(chi2.sf(statistic, max(np.count_nonzero(kept) - 1, 1)))


@dataclass(frozen=True)
class Example:
    """A law, true records to draw from, where their released values can lie, and how exactly they sum to 1."""

    law: Any
    truths: tuple[tuple[float, ...], ...]
    spans: tuple[Any, ...]
    tolerance: float = 1e-9


def whole(unit: str | int = 1, **rest: Any) -> Outlet:
    return Outlet(Fraction(str(unit)), **rest)


CORRELATIONS = ((1.0, 0.7, -0.4), (0.7, 1.0, 0.1), (-0.4, 0.1, 1.0))
PAIR = ((1.0, 0.8), (0.8, 1.0))
HAWALA = ((-1.2, 0.1, 1.5), (0.4, 0.4, 0.4))
UNIT_MEANS = ((-1.0, -1.0), (1.0, -1.0), (-1.0, 1.0), (1.0, 1.0))


def _additive(noise: Any, *outlets: Outlet, **rest: Any) -> Additive:
    return Additive(tuple("abc"[: len(outlets)]), noise, outlets, **rest)


def _examples() -> dict[str, Example]:
    normal = _additive(Normal((2.0,)), whole("0.05"))
    mixture = _additive(Mixture((0.2, 0.5, 0.3), (HAWALA[0],), (HAWALA[1],)), whole("0.01"))
    coded = whole(1, high=12.5, high_coded=True, low=0.0)
    return {
        "normal, fine unit": Example(normal, ((3.0,),), ((-15, 21),)),
        "normal, coarse unit": Example(_additive(Normal((0.7,)), whole(1)), ((3.3,),), ((-5, 12),)),
        "normal, clamped": Example(
            _additive(Normal((2.0,)), whole("0.05", low=0.0, high=5.0)), ((3.0,), (-1.0,)), ((0, 5),), FINE
        ),
        "normal, two columns, one closed": Example(
            _additive(Normal((1.0, 3.0)), whole("0.25", low=-1.0), whole("0.1")),
            ((0.0, 5.0), (NAN, 5.0), (0.0, NAN)),
            ((-1, 9), (-25, 35)),
        ),
        "laplace": Example(
            _additive(Laplace((1.5, 1.0)), whole("0.05", high=4.0), whole("0.5")),
            ((3.0, NAN),),
            ((-40, 4), (-20, 25)),
        ),
        "laplace, coarse unit": Example(_additive(Laplace((1.5,)), whole("0.5")), ((3.2,),), ((-40, 45),)),
        "mixture": Example(mixture, ((2.0,),), ((-4, 8),)),
        "mixture, coarse unit, clamped": Example(
            _additive(Mixture((0.2, 0.5, 0.3), (HAWALA[0],), (HAWALA[1],)), whole(1, low=1.0)),
            ((2.0,),),
            ((1, 9),),
        ),
        "correlated": Example(
            _additive(Normal((1.0, 20.0), PAIR), whole("0.03"), whole("0.6")),
            ((0.0, 100.0), (0.0, NAN)),
            ((-7, 7), (-40, 240)),
        ),
        "correlated, coarse, clamped": Example(
            _additive(Normal((1.0, 20.0), PAIR), whole("0.5", low=-1.0), whole(10, high=110.0)),
            ((0.0, 100.0), (NAN, 100.0)),
            ((-1, 8), (-60, 110)),
        ),
        "correlated, fine, clamped": Example(
            _additive(Normal((1.0, 20.0), PAIR), whole("0.03", low=-1.02), whole("0.6", high=110.4)),
            ((0.0, 100.0),),
            ((-1, 7), (-40, 110)),
            FINE,
        ),
        "correlated, three columns": Example(
            _additive(
                Normal((1.0, 2.0, 3.0), CORRELATIONS), whole(1, low=-1.0), whole(4, high=4.0), whole(6)
            ),
            ((0.0, 1.0, 2.0), (0.0, NAN, 2.0)),
            ((-1, 4), (-8, 4), (-12, 12)),
            tolerance=1e-6,
        ),
        "correlated, singular": Example(
            _additive(Normal((1.0, 2.0), ((1.0, 1.0), (1.0, 1.0))), whole("0.5"), whole("0.5")),
            ((0.0, 1.0),),
            ((-7, 7), (-15, 17)),
        ),
        "correlated, singular, clamped": Example(
            _additive(
                Normal((1.0, 2.0), ((1.0, -1.0), (-1.0, 1.0))), whole("0.5", low=-1.0), whole("0.5", low=0.0)
            ),
            ((0.0, 1.0), (0.2, 1.3)),
            ((-1, 7), (0, 17)),
        ),
        "moments kept": Example(
            _additive(Normal((1.0, 20.0), PAIR), whole("0.3"), whole(6), slope=0.8, offsets=(0.4, -3.0)),
            ((2.0, 100.0),),
            ((-6, 10), (-80, 240)),
        ),
        "joint mixture": Example(
            _additive(
                JointMixture((0.25,) * 4, UNIT_MEANS, 0.2, (1.0, 20.0), PAIR),
                whole("0.2"),
                whole(4, low=88.0),
            ),
            ((0.0, 100.0), (0.0, NAN)),
            ((-6, 6), (88, 220)),
        ),
        "rotated mixture": Example(
            _additive(
                RotatedMixture(
                    (0.5, 0.5), (-0.714, 0.714), (0.7, 0.7), (1.0, 20.0), ((1.0, 0.5), (0.5, 1.0))
                ),
                whole("0.03"),
                whole("0.6"),
            ),
            ((0.0, 100.0),),
            ((-7, 7), (-40, 240)),
        ),
        "rotated mixture, clamped": Example(
            _additive(
                RotatedMixture((0.3, 0.7), (-1.2, 0.5), (0.5, 0.4), (1.0, 20.0), PAIR),
                whole("0.2", high=0.4),
                whole(5),
            ),
            ((0.0, 100.0), (NAN, 100.0)),
            ((-8, 0.4), (-80, 280)),
        ),
        "log, means kept": Example(
            _additive(Normal((0.4,)), whole("0.02", log_shift=1.0), mean_corrected=True),
            ((3.0,),),
            ((-1, 60),),
            FINE,
        ),
        "log, coarse unit, clamped": Example(
            _additive(Normal((0.6,)), whole(1, log_shift=0.7, low=0.0, high=9.0), mean_corrected=True),
            ((3.0,), (0.1,)),
            ((0, 9),),
        ),
        "log, rounded below the shift": Example(
            _additive(Normal((0.9,)), whole(1, log_shift=0.7)), ((0.1,), (2.0,)), ((-1, 900),), FINE
        ),
        "step": Example(
            _additive(Normal((1.0,)), whole("0.05"), spreads=(Step((2.0,), (0.5, 3.0)),)),
            ((1.9,), (2.0,)),
            ((-25, 30),),
        ),
        "power, correlated": Example(
            _additive(
                Normal((0.2, 0.3), PAIR), whole("0.25"), whole("0.5"), spreads=(Power(1.0), Power(0.5, 4.0))
            ),
            ((5.0, 9.0), (-5.0, 0.0)),
            ((-16, 16), (-12, 20)),
        ),
        "no noise at zero": Example(
            _additive(Normal((0.2, 0.3), PAIR), whole("0.25"), whole("0.5"), spreads=(Power(1.0), None)),
            ((0.0, 9.0),),
            ((-1, 1), (6, 12)),
        ),
        "bias": Example(
            _additive(Normal((1.0,)), whole("0.02"), spreads=(Multiplicative(0.3, 0.5),)),
            ((4.0,), (0.0,)),
            ((-12, 20),),
        ),
        "lognormal bias": Example(
            SkewedBias(("a",), 0.4, (0.5,), (whole("0.05", high=9.0),)), ((4.0,), (-3.0,)), ((-30, 9),), FINE
        ),
        "lognormal bias, coarse unit": Example(
            SkewedBias(("a",), 0.4, (0.5,), (whole(1, low=1.0),)),
            ((4.0,), (0.0,)),
            ((1, 60),),
            tolerance=1e-7,
        ),
        "codes": Example(
            _additive(Normal((0.7,)), whole("0.01", low=0.0, high=2.0), categories=(("x", "y", "z"),)),
            ((0.0,), (1.0,)),
            ((0, 2),),
            FINE,
        ),
        "codes, a variance for each": Example(
            _additive(
                Normal((0.9,)),
                whole(1, low=0.0, high=2.0),
                spreads=(Step((0.5, 1.5), (1.0, 0.0, 0.5)),),
                categories=(("x", "y", "z"),),
            ),
            ((0.0,), (1.0,), (2.0,)),
            ((0, 2),),
        ),
        "codes to step off": Example(
            _additive(Normal((2.0,)), whole(1, avoid=(9.0, 3.0, 4.0), low=0.0)),
            ((3.5,), (2.0,), (4.0,), (7.0,)),
            ((0, 22),),
        ),
        "code beside a clamp": Example(
            _additive(Normal((2.0,)), whole(1, avoid=(4.0,), high=5.0)), ((3.0,), (5.0,)), ((-12, 5),)
        ),
        "codes to step off, correlated": Example(
            _additive(Normal((1.0, 20.0), PAIR), whole("0.03", avoid=(-0.03, 1.2)), whole(5)),
            ((0.0, 100.0),),
            ((-7, 7), (-40, 240)),
            FINE,
        ),
        "coded above, clamped below": Example(_additive(Normal((3.0,)), coded), ((9.0,), (1.0,)), ((0, 13),)),
        "table of categories": Example(
            Transition(("a",), ("x", "y", "z"), ("u", "v"), ((0.9, 0.1), (0.25, 0.75), (0.0, 1.0))),
            ((0.0,), (1.0,), (2.0,)),
            (2,),
        ),
        "classes": Example(
            Classes(("a",), (0.0, 10.0), ("low", "middle", "high")), ((-1.0,), (0.0,), (12.0,)), (3,)
        ),
        "normal after normal": Example(
            follow(normal, _additive(Normal((1.5,)), whole("0.5", low=-2.0))), ((3.0,),), ((-2, 24),)
        ),
        "normal after mixture": Example(
            follow(mixture, _additive(Normal((0.3,)), whole("0.02"))), ((2.0,),), ((-5, 9),)
        ),
        "mixture after mixture": Example(
            follow(mixture, _additive(Mixture((0.5, 0.5), ((-1.0, 1.0),), ((0.2, 0.2),)), whole("0.01"))),
            ((2.0,),),
            ((-5, 9),),
        ),
        "correlated after independent, some columns": Example(
            follow(
                _additive(Normal((1.0, 20.0), PAIR), whole(3), whole(6, low=60.0)),
                Additive(("b", "c"), Normal((10.0, 2.0), PAIR), (whole(32, low=64.0), whole(4))),
            ),
            ((0.0, 100.0, 5.0), (0.0, 100.0, NAN)),
            ((-6, 3), (64, 192), (-4, 12)),
            tolerance=1e-6,
        ),
        "codes after noise": Example(
            follow(
                _additive(Normal((3.0,)), whole(1, low=0.0, avoid=(7.0,))), _additive(Normal((0.0,)), coded)
            ),
            ((9.0,), (1.0,)),
            ((0, 13),),
        ),
        "tables one after the other": Example(
            follow(
                Transition(("a",), ("x", "y"), ("x", "y"), ((0.8, 0.2), (0.4, 0.6))),
                Transition(("a",), ("x", "y"), ("x", "y"), ((0.7, 0.3), (0.0, 1.0))),
            ),
            ((0.0,), (1.0,)),
            (2,),
        ),
    }


EXAMPLES = _examples()


@pytest.fixture(params=EXAMPLES.values(), ids=EXAMPLES.keys())
def example(request: pytest.FixtureRequest) -> Example:
    return request.param
