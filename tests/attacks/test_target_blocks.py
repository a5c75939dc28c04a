"""Who looks for a sample reads the blocks of his targets alone, and answers as he does with the whole file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks import Sample, answers
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.bayes import likelihood
from maskwell.attacks.bayes.likelihood import PairLikelihood


def masking_of(records: int, blocks: int, *, ids: bool) -> mw.Masking:
    """Mask two amounts in blocks."""
    rng = np.random.default_rng(3)
    data = {
        "BLOCK": [f"b{i % blocks:03d}" for i in range(records)],
        "A": np.round(rng.lognormal(3, 1, records), 1).tolist(),
        "B": np.round(rng.normal(50, 9, records), 1).tolist(),
    }
    columns = [
        mw.Column("BLOCK", "category", frozenset({"block"})),
        mw.Column("A", "continuous", frozenset({"key"}), unit=0.1),
        mw.Column("B", "continuous", frozenset({"key"}), unit=0.1),
    ]
    if ids:
        data = {"ID": [f"p{i:05d}" for i in range(records)], **data}
        columns = [mw.Column("ID", "text", frozenset({"id"})), *columns]
    table = mw.Table.from_frame(pa.table(data), mw.Schema(tuple(columns)))
    return mw.apply(mw.CorrelatedNoise(("A", "B"), sd_ratio=0.5), table, key=mw.Key.from_seed(4))


PLANS = {
    "best": mw.BayesIntruder(),
    "one-to-one": mw.BayesIntruder(assignment="one-to-one"),
    "with helpers": mw.BayesIntruder(helpers="all"),
}


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("name", PLANS)
def test_a_part_of_the_file_gives_the_answer_of_the_whole(name, ids, monkeypatch):
    masking = masking_of(
        800, 200 if PLANS[name].helpers else 40, ids=ids
    )  # few to a block: all matchings are counted
    plan = replace(PLANS[name], targets=Sample(9))
    sizes = []

    def seen(*arguments):
        part = target_blocks(*arguments)
        sizes.append(None if part is None else len(part.rows))
        return part

    target_blocks = answers.target_blocks
    monkeypatch.setattr(answers, "target_blocks", seen)
    some = attack_by(plan, masking)
    assert sizes[0] is not None
    assert 9 <= sizes[0] < 400
    monkeypatch.setattr(answers, "target_blocks", lambda *_: None)
    whole = attack_by(plan, masking)
    assert np.array_equal(some.guess.found, whole.guess.found)
    assert np.array_equal(some.guess.searcher, whole.guess.searcher)
    assert np.array_equal(some.marks.counterpart, whole.marks.counterpart)
    assert np.array_equal(some.numbers, whole.numbers)
    assert np.allclose(some.guess.columns["probability"], whole.guess.columns["probability"], rtol=1e-12)
    for column in ("target_id", "linked_id", "correct", "candidates"):
        assert some.risk.table[column].equals(whole.risk.table[column])
    assert some.risk.rate == whole.risk.rate
    assert some.risk.baseline == whole.risk.baseline
    assert some.risk.records == whole.risk.records == 800
    assert some.risk.interval == whole.risk.interval


def test_who_is_without_the_card_makes_densities_in_the_blocks_of_his_targets_alone(monkeypatch):
    masking = masking_of(800, 40, ids=True)
    plan = mw.BayesIntruder(prior=mw.attacks.Prior(), marginal="gaussian", targets=Sample(9))
    sizes, of = [], PairLikelihood.of.__func__

    def seen(cls, card, fields, z, x, read):
        sizes.append(len(z))
        return of(cls, card, fields, z, x, read)

    monkeypatch.setattr(PairLikelihood, "of", classmethod(seen))
    some = attack_by(plan, masking).risk
    assert max(sizes) <= 9 * 20
    monkeypatch.setattr(likelihood, "FEW", 0.0)
    sizes.clear()
    whole = attack_by(plan, masking).risk
    assert max(sizes) == 800
    mine, all_read = (one.table["probability"].to_numpy(zero_copy_only=False) for one in (some, whole))
    assert some.table["linked_id"].to_pylist() == whole.table["linked_id"].to_pylist()
    assert mine == pytest.approx(all_read, abs=2e-3)  # nodes are placed by the records that are read
