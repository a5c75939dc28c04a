"""What every law promises, whatever it is."""

from __future__ import annotations

import json

import numpy as np

from maskwell.laws import law_from_dict
from maskwell.laws.chained import Chained

from .conftest import LEAST_P, drawn, listed, p_value, stream_of


def test_draws_follow_the_density_and_it_sums_to_one(example):
    for number, truth in enumerate(example.truths):
        axes, probabilities, error = listed(example.law, truth, example.spans)
        assert abs(probabilities.sum() - 1) <= example.tolerance + error
        z = drawn(example.law, truth, seed=number)[:, ~np.isnan(truth)]
        assert p_value(axes, probabilities, z) > LEAST_P
