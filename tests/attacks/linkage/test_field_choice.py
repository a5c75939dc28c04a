"""Of more than twenty fields a matcher compares those that tell most."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks import Linkage
from maskwell.attacks.linkage.em import EM, Fixed
from maskwell.attacks.linkage.field_choice import MOST_FIELDS, information
from maskwell.errors import BadPlan
from maskwell.keys import Key


@pytest.fixture(scope="module")
def masking() -> mw.Masking:
    """Ten amounts with hardly any noise, and fourteen that are drowned in it."""
    rng = np.random.default_rng(2)
    names = [f"{'GOOD' if j % 2 and j < 20 else 'BAD'}{j:02d}" for j in range(24)]
    data = pa.table({name: np.exp(rng.normal(3, 1, 500)).round(2) for name in names})
    schema = mw.Schema(tuple(mw.Column(name, "continuous", frozenset({"key"}), unit=0.01) for name in names))
    good = tuple(name for name in names if name.startswith("GOOD"))
    bad = tuple(name for name in names if name.startswith("BAD"))
    noise = mw.Chain(
        [
            mw.IndependentNoise(good, variance_ratio=1e-6),
            mw.IndependentNoise(bad, variance_ratio=9.0),
        ]
    )
    return mw.apply(noise, mw.Table.from_frame(data, schema), key=Key.from_seed(1))


def test_fields_with_little_noise_tell_more(masking: mw.Masking) -> None:
    plan = Linkage(weights=EM(iterations=200))
    known, released = masking.truth, masking.release.table
    from maskwell.attacks.agreement import compare_tables

    names = [column.name for column in known.schema.columns]
    compared = compare_tables(known, released, dict.fromkeys(names), plan.rule)
    bits = dict(zip(names, information(plan, compared, known, released), strict=True))
    good = [value for name, value in bits.items() if name.startswith("GOOD")]
    bad = [value for name, value in bits.items() if name.startswith("BAD")]
    assert len(good) == 10
    assert min(good) > 3 * max(bad)


def test_the_twenty_that_tell_most_are_compared_and_the_others_named(masking: mw.Masking) -> None:
    risk = mw.attack(Linkage(weights=EM(iterations=20, starts=1)), masking)
    assert len(risk.fields) == MOST_FIELDS
    assert sum(name.startswith("GOOD") for name in risk.fields) == 10
    (said,) = [note for note in risk.notes if note.code == "attacks.most_telling"]
    assert str(said).startswith("of 24 fields the 20 that tell most are compared, not BAD")


def test_weights_for_each_of_too_many_fields_are_refused(masking: mw.Masking) -> None:
    with pytest.raises(BadPlan, match="24 fields make 2\\^24 agreement patterns"):
        mw.attack(Linkage(weights=Fixed(m=(0.9,) * 24, u=(0.1,) * 24)), masking)
