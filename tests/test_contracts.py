"""What every mask must do, on every engine and in every format.

The masks are those of `MASKS`: a new one is found here by itself. It needs one line in `EXAMPLES`, a plan of it for
the table `people` of conftest.py; without one, `test_every_mask_has_an_example` says so.
"""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwell.masks as masks
from maskwell.attacks import BayesIntruder, Fingerprint, NearestRecord, attack
from maskwell.calibration import Search, expected_risk
from maskwell.card import NoiseCard
from maskwell.checks import audit
from maskwell.checks.catalogue import checks
from maskwell.engines.local import Local
from maskwell.engines.random_parts import ChoppedEngine
from maskwell.keys import Key, Stream
from maskwell.laws import Additive, Normal, Outlet, Power, Step
from maskwell.masking import Mask, Masking, Release, Setting, WrittenPlan, apply, read_release
from maskwell.masking.results import record_blocks
from maskwell.masks import (
    MASKS,
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
    Pram,
    RankSwap,
    Recompute,
    Subsample,
    mask_from_dict,
)
from maskwell.schema import OPEN
from maskwell.table import Table

AMOUNTS = ("INCOME", "TAX")
CODES = Coding("TAX", top=6_000)
PARTS = IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.1)

EXAMPLES: dict[str, list[Any]] = {
    "IndependentNoise": [
        IndependentNoise(AMOUNTS, variance_ratio=0.1),
        IndependentNoise(AMOUNTS, variance=(1e6, 4e4), shape="laplace"),
        IndependentNoise("AGE", variance=9.0, spread=Step((40.0,), (1.0, 0.5)), limits=(("AGE", 18.0, None),)),
        IndependentNoise("TAX", variance_ratio=0.1, transform="log", shift=20_000.0),
        IndependentNoise("TAX", variance_ratio=0.1, spread=Power(0.5, 100.0), clamp=False),
    ],
    "CorrelatedNoise": [
        CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.3),
        CorrelatedNoise(AMOUNTS, r0=0.9, keep="moments"),
    ],
    "MixtureNoise": [
        MixtureNoise(AMOUNTS, 0.5, 0.1),
        MixtureNoise(AMOUNTS, 0.5, 0.1, components=4, correlated=True),
        MixtureNoise(AMOUNTS, 0.5, 0.1, symmetric=False, correlated=True, construction="rotation"),
    ],
    "BiasNoise": [
        BiasNoise(AMOUNTS, bias_sd=0.1, sd_ratio=0.1),
        BiasNoise(AMOUNTS, bias_sd=0.1, sd=(100.0, 10.0), shape="lognormal"),
    ],
    "CodeNoise": [CodeNoise("SEX", variance=0.5), CodeNoise("EDU", variance=(0.5, 1.0, 0.5), rounded=True)],
    "Pram": [Pram(("SEX", "EDU"), stay=0.8), Pram("EDU", stay=0.7, invariant=True)],
    "Grouping": [
        Grouping("AGE", breaks=(30, 60)),
        Grouping("EDU", groups=(("low", ("low",)), ("more", ("middle", "high")))),
    ],
    "Coding": [Coding(AMOUNTS, top=(50_000, 6_000), bottom=(10_000, 1_000))],
    "RankSwap": [RankSwap(AMOUNTS, 0.1)],
    "Subsample": [Subsample(0.6)],
    "Recompute": [Recompute("TOTAL", {"WAGE": 1.0, "OTHER": 1.0})],
    "Chain": [
        Chain((PARTS, Recompute("TOTAL", ("WAGE", "OTHER")), Pram("EDU", stay=0.8), Subsample(0.8))),
        Chain((IndependentNoise(AMOUNTS, variance_ratio=0.1), CorrelatedNoise(AMOUNTS, sd_ratio=0.3), CODES)),
    ],
}  # fmt: skip
FORMATS = ("csv", "parquet", "arrow", "sav", "dta", "xpt")
ENGINES = (Local(chunk=37), ChoppedEngine(pieces=7, seed=5))


def examples() -> list[Any]:
    """A parameter for each example of each mask, and one for each mask that has none."""
    found = [(name, i, plan) for name in MASKS for i, plan in enumerate(EXAMPLES.get(name, [None]))]
    return [pytest.param(name, plan, id=f"{name}-{i}") for name, i, plan in found]


def without_example() -> list[str]:
    return [
        f"{name} is in MASKS and has no example: add one, a plan of {name} for the table `people`, to EXAMPLES in "
        "tests/test_contracts.py"
        for name, kind in MASKS.items()
        if not any(isinstance(plan, kind) for plan in EXAMPLES.get(name, ()))
    ]


@pytest.fixture
def plan(request: pytest.FixtureRequest) -> Any:
    """The plan of an example; a mask without one fails with what to add."""
    name, found = request.param
    if found is None:
        pytest.fail("\n".join(line for line in without_example() if line.startswith(f"{name} ")))
    return found


every_mask = pytest.mark.parametrize(
    "plan", [pytest.param(p.values, id=str(p.id)) for p in examples()], indirect=True
)


def written(release: Release, folder: Path, format: str) -> dict[str, bytes]:
    release.write(folder, format=format)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# --- masks are found


def test_every_mask_has_an_example():
    assert without_example() == []
    assert set(EXAMPLES) == set(MASKS)


def test_every_mask_is_public():
    import maskwell

    assert set(MASKS) <= set(maskwell.__all__)
    assert set(MASKS) <= set(masks.__all__)
    assert all(MASKS[name].__name__ == name for name in MASKS)


@dataclass(frozen=True)
class Blur(WrittenPlan):
    """Add normal noise of one sd: all that a new mask needs beside its line in MASKS."""

    columns: tuple[str, ...]
    sd: float = 100.0

    def card(self, table: Table, setting: Setting | None = None) -> NoiseCard:
        """Resolve the plan to the law of the noise."""
        outlets = tuple(Outlet(table.schema[name].step) for name in self.columns)
        return NoiseCard((Additive(self.columns, Normal((self.sd,) * len(self.columns)), outlets),))


def test_a_new_mask_is_found_and_asks_for_its_example(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(MASKS, "Blur", Blur)
    assert without_example() == [
        "Blur is in MASKS and has no example: add one, a plan of Blur for the table `people`, to EXAMPLES in "
        "tests/test_contracts.py"
    ]
    assert [case.id for case in examples()][-1] == "Blur-0"
    monkeypatch.setitem(EXAMPLES, "Blur", [Blur(("TAX",))])
    assert without_example() == []
    assert examples()[-1].values == ("Blur", Blur(("TAX",)))


def test_a_new_mask_keeps_the_contract_and_is_attacked_audited_and_calibrated_by_its_line_alone(
    people: Table, study_key: Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(MASKS, "Blur", Blur)
    plan = Blur(("TAX",))
    assert isinstance(plan, Mask)
    test_plans_are_frozen(plan)
    test_plans_are_plain_data_and_back(plan)
    test_plans_hold_no_data(plan, people, study_key)
    test_cards_survive_json(plan, people, study_key)
    test_what_was_drawn_is_possible_under_the_card(plan, people, study_key)
    for engine in ENGINES:
        test_engines_give_the_same_bits(plan, engine, people, study_key)
    test_a_record_has_the_same_noise_in_any_subset(plan, people, study_key)
    test_same_key_same_bytes_in_any_order_and_format(plan, "parquet", people, study_key, tmp_path)
    test_another_key_gives_another_order_other_ids_and_other_noise(plan, people, study_key)
    test_closed_cells_stay_closed_and_other_columns_stay_as_they_are(plan, people, study_key)
    test_no_id_key_or_dropped_text_is_in_the_release(plan, people, study_key)
    masking = apply(plan, people, key=study_key)
    risks = attack({"by the law": BayesIntruder(match_blocks=("REGION",)), "alone": Fingerprint()}, masking)
    assert risks["by the law"].fields[0] == "TAX"
    assert risks["by the law"].rate > risks["by the law"].baseline
    others = [check.name for check in checks() if check.name != "informed links"]
    assert audit(masking, risks=risks, left_out=others)["informed links"].figure > 0
    assert (
        expected_risk(plan, people, NearestRecord(), search=Search(replicates=2), seed=1).largest.rate.mean
        > 0
    )


# --- plans


@every_mask
def test_plans_are_frozen(plan: Any):
    for field in fields(plan):
        with pytest.raises(FrozenInstanceError):
            setattr(plan, field.name, None)


@every_mask
def test_plans_are_plain_data_and_back(plan: Any):
    data = plan.to_dict()
    assert mask_from_dict(data) == plan
    assert mask_from_dict(json.loads(json.dumps(data))) == plan
    assert hash(mask_from_dict(data)) == hash(plan)
    assert data["mask"] == type(plan).__name__


@every_mask
def test_plans_hold_no_data(plan: Any, people: Table, study_key: Key):
    before = pickle.dumps(plan)
    _ = apply(plan, people, key=study_key).release
    assert pickle.dumps(plan) == before


# --- cards


@every_mask
def test_cards_survive_json(plan: Any, people: Table, study_key: Key):
    masking = apply(plan, people, key=study_key)
    for card in (masking.card, masking.release.card):
        assert NoiseCard.from_json(card.to_json()) == card
    assert masking.release.card.public() == masking.release.card


@every_mask
def test_what_was_drawn_is_possible_under_the_card(plan: Any, people: Table, study_key: Key):
    """The public card gives every released record a density that is not zero."""
    masking = apply(plan, people, key=study_key)
    if all(law.has_density for law in masking.card.laws):
        logs = masking.release.card.logpdf(masking.masked, people)
        assert np.isfinite(logs).all()


# --- noise depends on key, record, column and stage alone


@every_mask
@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_engines_give_the_same_bits(plan: Any, engine: Any, people: Table, study_key: Key):
    expected = apply(plan, people, key=study_key)
    found = apply(plan, people, key=study_key, engine=engine)
    assert found.card == expected.card
    assert found.masked == expected.masked
    assert np.array_equal(found.order, expected.order)


@every_mask
def test_a_record_has_the_same_noise_in_any_subset(plan: Any, people: Table, study_key: Key):
    chosen = np.flatnonzero(np.random.default_rng(9).random(len(people)) < 0.3)[::-1]
    stream = Stream(study_key, people.schema.series, "0", record_blocks(people))
    for law in apply(plan, people, key=study_key).card.laws:
        if not law.whole_file:
            x = people.values(law.columns)
            drawn = law.draw(x.copy(), stream)[chosen]
            assert law.draw(x[chosen], stream.at(chosen)).tobytes("C") == drawn.tobytes("C")


@every_mask
@pytest.mark.parametrize("format", FORMATS)
def test_same_key_same_bytes_in_any_order_and_format(
    plan: Any, format: str, people: Table, study_key: Key, tmp_path: Path
):
    shuffled = people.take(np.random.default_rng(3).permutation(len(people)))
    first = written(apply(plan, people, key=study_key).release, tmp_path / "first", format)
    again = written(
        apply(plan, shuffled, key=study_key, engine=ENGINES[1]).release, tmp_path / "again", format
    )
    assert first == again
    assert read_release(tmp_path / "first").card.records == read_release(tmp_path / "again").card.records


@every_mask
def test_another_key_gives_another_order_other_ids_and_other_noise(plan: Any, people: Table, study_key: Key):
    one, other = (apply(plan, people, key=key) for key in (study_key, Key.from_seed(1)))
    assert not np.array_equal(one.order[:50], other.order[:50])
    ids = [set(masking.release.table.array("ID").to_pylist()) for masking in (one, other)]
    assert not ids[0] & ids[1]


# --- what masks leave alone


@every_mask
def test_closed_cells_stay_closed_and_other_columns_stay_as_they_are(
    plan: Any, people: Table, study_key: Key
):
    masking = apply(plan, people, key=study_key)
    touched = {*masking.card.columns, *dict(masking.card.recomputed)}
    for name in people.names:
        before, after = people.status(name), masking.masked.status(name)
        law = masking.card.law_of(name)
        coded = (
            (before == 2) | (before == 3)
            if law is not None and law.opens_codes
            else np.zeros(len(people), bool)
        )
        assert np.array_equal(after[(before != OPEN) & ~coded], before[(before != OPEN) & ~coded])
        if name not in touched:
            assert masking.masked.array(name).equals(people.array(name))
    assert {"ID", "HH", "WEIGHT", "SECRET"}.isdisjoint(touched)


# --- nothing secret in the release


@every_mask
def test_no_id_key_or_dropped_text_is_in_the_release(plan: Any, people: Table, study_key: Key):
    masking: Masking = apply(plan, people, key=study_key)
    pickled = pickle.dumps(masking.release)
    assert b"person 0" not in pickled
    assert b"secret " not in pickled
    assert study_key.secret not in pickled
    assert study_key.secret.hex().encode() not in pickled
    assert b"person 0" in pickle.dumps(masking)  # what must not leave would be found
