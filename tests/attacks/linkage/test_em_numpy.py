"""EM in numpy takes the steps of the compiled loop, to the bit, and hands over to it."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.attacks.linkage import em as em_numpy
from maskwell.kernels import em

LIMITS = (1e-9, 1e-12)


def start(fields: int, seed: int):
    """Counts of some patterns of two classes, and a start."""
    rng = np.random.default_rng(seed)
    patterns = np.flatnonzero(rng.random(1 << fields) < 0.8)
    pairs = rng.integers(1, 10 ** rng.integers(1, 7), len(patterns)).astype(float)
    return (
        patterns,
        pairs,
        rng.uniform(0.3, 0.99, fields),
        rng.uniform(0.01, 0.4, fields),
        rng.uniform(0.01, 0.4),
    )


@pytest.mark.parametrize("first_steps", [0, 3, 10_000])
@pytest.mark.parametrize("seed", range(6))
def test_a_climb_is_the_compiled_one(seed, first_steps, monkeypatch):
    monkeypatch.setattr(em_numpy, "FIRST_STEPS", first_steps)
    fields = 2 + seed
    for most_steps in (1, 3, 5, 2000):
        patterns, pairs, m, u, p = start(fields, seed)
        ours, theirs = (m.copy(), u.copy()), (m.copy(), u.copy())
        found = em_numpy.climb(patterns, pairs, *ours, p, most_steps, *LIMITS)
        assert found == em.climb(patterns, pairs, *theirs, p, most_steps, *LIMITS)
        assert [one.tolist() for one in ours] == [one.tolist() for one in theirs]


def test_a_class_that_dies_out():
    """Chances stay a little away from 0 and 1, and a class without pairs agrees by halves."""
    patterns, pairs = np.array([0, 3]), np.array([5.0, 0.0])
    ours, theirs = [(np.array([1e-12, 1e-12]), np.array([0.5, 0.5])) for _ in range(2)]
    found = em_numpy.climb(patterns, pairs, *ours, 1 - 1e-12, 50, *LIMITS)
    assert found == em.climb(patterns, pairs, *theirs, 1 - 1e-12, 50, *LIMITS)
    assert [one.tolist() for one in ours] == [one.tolist() for one in theirs]


def test_many_patterns_are_left_to_the_compiled_loop(monkeypatch):
    monkeypatch.setattr(em_numpy, "MOST_CELLS", 10)
    monkeypatch.setattr(em, "climb", lambda *_: (0.25, 7, True))
    patterns, pairs, m, u, p = start(3, 1)
    assert em_numpy.climb(patterns, pairs, m, u, p, 100, *LIMITS) == (0.25, 7, True)
