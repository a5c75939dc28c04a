"""Pairs of consecutive records of a class: counted in one pass, against a plain count."""

from __future__ import annotations

import numpy as np
import pytest

from maskwell.kernels.class_pairs import CLOSED, LARGEST_NUMBER, NONE, agreements


def plain(keys, columns, z):
    """Pairs of consecutive records with the same open keys, and how many of them agree in each column."""
    last, pairs, same = {}, 0, np.zeros(z.shape[1], np.int64)
    for i in range(keys.shape[1]):
        own = tuple(keys[[c for c in columns if c != NONE], i].tolist())
        if CLOSED in own:
            continue
        if own in last:
            pairs += 1
            same += z[i] == z[last[own]]
        last[own] = i
    return pairs, same


@pytest.mark.parametrize("modulus", [2, 7, 31])
def test_pairs_and_agreements_are_those_of_a_plain_count(modulus):
    rng = np.random.default_rng([modulus, 31])
    keys = rng.integers(0, modulus, (3, 400)).astype(np.uint16)
    keys[1, ::9] = CLOSED
    z = rng.integers(0, modulus, (400, 2)).astype(np.uint16)
    classes = np.array([[0, NONE, NONE], [1, NONE, NONE], [0, 1, NONE], [0, 1, 2]], np.int64)
    last, used = np.full(modulus**3, NONE, np.int32), np.zeros(1, np.int64)
    for start in (
        None,
        None,
        LARGEST_NUMBER - 600,
    ):  # the table serves the next call, and is cleared when it is full
        if start is not None:
            used[0] = start
        pairs, same = np.zeros(4, np.int64), np.zeros((4, 2), np.int64)
        agreements(keys, classes, modulus, z, last, used, pairs, same)
        for c, columns in enumerate(classes):
            expected = plain(keys, columns, z)
            assert pairs[c] == expected[0]
            assert same[c].tolist() == expected[1].tolist()
    assert used[0] < LARGEST_NUMBER - 600
