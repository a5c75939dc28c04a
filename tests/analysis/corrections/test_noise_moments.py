"""Why the noise of a column cannot be undone by moments."""

from __future__ import annotations

import pickle

import pytest

from maskwell.analysis.corrections.noise_moments import noised_columns
from maskwell.errors import BadPlan, NoMoments
from maskwell.masks import IndependentNoise

from .corrections_cases import make_table, released


def test_a_refusal_has_its_reason_apart_from_the_remedy() -> None:
    release = released(
        IndependentNoise(("x1",), variance_ratio=0.3, transform="log", shift=50.0), make_table(200)
    )
    with pytest.raises(NoMoments) as caught:
        noised_columns(release.card, release.table, ["x1"], None)
    (refusal,) = caught.value.refusals
    assert refusal.reason == "column 'x1' has noise on the log scale"
    assert caught.value.problems == (
        "column 'x1' has noise on the log scale, which moments cannot undo: use fit alone, which models it",
    )
    assert isinstance(caught.value, BadPlan)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.refusals, again.problems) == (caught.value.refusals, caught.value.problems)
