"""What every intruder must do. The attacks are those of `ATTACKS`; a new one needs one line in EXAMPLES."""

from __future__ import annotations

import warnings
from dataclasses import FrozenInstanceError, dataclass, fields, replace

import numpy as np
import pytest

import maskwell as mw
from maskwell.attacks import ATTACKS, attack, attack_from_dict
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.blocks import RecordSearch
from maskwell.attacks.protocol import Attack, Guess, check_attack, mark
from maskwell.errors import BadPlan

AMOUNTS = ("INCOME", "TAX", "AGE")
EXAMPLES = {
    "Linkage": [
        mw.Linkage(fields=AMOUNTS, match_blocks=("REGION",)),
        mw.Linkage(fields=AMOUNTS, match_blocks=("REGION",), direction="to_original", claims="all links"),
        mw.Linkage(
            fields=(*AMOUNTS, "EDU"),
            match_blocks=("REGION",),
            rules={"AGE": mw.attacks.Absolute(2), "TAX": mw.attacks.Relative(0.2, base="larger")},
            weights=mw.attacks.Fixed((0.9, 0.8, 0.7, 0.6), 0.1),
            assignment="one-to-one",
        ),
        mw.Linkage(fields=AMOUNTS, match_blocks=(), cut_offs=(3.0, 0.0), weights=mw.attacks.EM(starts=2)),
    ],
    "NearestRecord": [
        mw.NearestRecord(match_blocks=("REGION",)),
        mw.NearestRecord(fields=AMOUNTS, match_blocks=(), direction="to_original", assignment="one-to-one"),
        mw.NearestRecord(distance="noise", match_blocks=("REGION",), ranked_by="same"),
        mw.NearestRecord(distance="release", match_blocks=("REGION",), direction="to_original"),
        mw.NearestRecord(distance="posterior", match_blocks=("REGION",), targets=mw.attacks.Sample(90)),
        mw.NearestRecord(distance="posterior", shrink="per_variable", match_blocks=()),
        mw.NearestRecord(shrink="matrix", match_blocks=("REGION",), assignment="one-to-one"),
        mw.NearestRecord(shrink="per_variable", weights={"INCOME": 2.0, "AGE": 0.5}, match_blocks=()),
        mw.NearestRecord(
            fields=AMOUNTS,
            weights=((2.0, 0.5, 0.0), (0.5, 1.0, 0.0), (0.0, 0.0, 1.0)),
            match_blocks=("REGION",),
        ),
        mw.NearestRecord(
            distance="gower", fields=(*AMOUNTS, "EDU"), weights={"EDU": 3.0}, match_blocks=("REGION",)
        ),
        mw.NearestRecord(
            match_blocks=("REGION",),
            targets=mw.attacks.Quantiles(
                tuple(np.arange(1, 41) / 40), of="row sum", columns=("INCOME", "TAX")
            ),
        ),
    ],
    "BayesIntruder": [
        mw.BayesIntruder(match_blocks=("REGION",)),
        mw.BayesIntruder(fields=AMOUNTS, match_blocks=(), direction="to_original", assignment="one-to-one"),
        mw.BayesIntruder(fields=AMOUNTS, match_blocks=("REGION",), kernel="forward", threshold=0.2),
        mw.BayesIntruder(match_blocks=("REGION",), marginal="gaussian", targets=mw.attacks.Sample(90)),
        mw.BayesIntruder(
            fields=AMOUNTS, match_blocks=("REGION",), prior=mw.attacks.Prior(family="lognormal")
        ),
        mw.BayesIntruder(
            fields=AMOUNTS, match_blocks=("REGION",), error=mw.attacks.OwnError(sds={"AGE": 1.0})
        ),
        mw.BayesIntruder(match_blocks=("REGION",), helpers=7, sampling=mw.attacks.Sampling(draws=200)),
        mw.BayesIntruder(
            fields=AMOUNTS, match_blocks=("REGION",), helpers="all", targets=mw.attacks.Sample(30)
        ),
    ],
    "Fingerprint": [
        mw.Fingerprint(),
        mw.Fingerprint(
            columns=("REGION", "SEX", "EDU", *AMOUNTS),
            match_blocks=("REGION",),
            direction="to_original",
            swapped=False,
        ),
        mw.Fingerprint(columns=("SEX", "EDU", *AMOUNTS), match_blocks=(), targets=mw.attacks.Sample(120)),
    ],
}


def every_example():
    return [
        pytest.param(plan, id=f"{name}-{i}")
        for name in ATTACKS
        for i, plan in enumerate(EXAMPLES.get(name, [None]))
    ]


def test_every_attack_has_an_example():
    missing = [name for name in ATTACKS if not EXAMPLES.get(name)]
    assert missing == [], "add a plan for the table `people` to EXAMPLES in tests/attacks/test_protocol.py"


@pytest.fixture(scope="module")
def masking(people):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), people, seed=5)


@pytest.mark.parametrize("plan", every_example())
def test_a_plan_states_all_that_is_asked_of_it(plan):
    """Every member of the protocol is there, and where a plan does not say otherwise it is the default."""
    assert isinstance(plan, Attack)
    assert check_attack(plan) is plan
    for name, member in vars(Attack).items():
        if isinstance(member, property):
            assert member.__doc__
            assert not isinstance(getattr(plan, name), property)


@pytest.mark.parametrize("plan", every_example())
def test_a_plan_is_frozen_and_holds_no_data(plan):
    with pytest.raises(FrozenInstanceError):
        setattr(plan, fields(plan)[0].name, None)
    assert hash(plan) == hash(replace(plan))


@pytest.mark.parametrize("plan", every_example())
def test_a_plan_can_be_written_and_read(plan):
    assert attack_from_dict(plan.to_dict()) == plan


@pytest.mark.parametrize("plan", every_example())
def test_permuted_links_change_what_is_correct_and_nothing_else(plan, masking):
    _, guess, _, _ = attack_by(plan, masking)
    order = np.random.default_rng(1).permutation(masking.order)
    other = replace(masking, given=(masking.release, order))
    _, again, _, _ = attack_by(plan, other)
    for name in ("searcher", "found", "ties", "candidates", "claimed", "kind"):
        np.testing.assert_array_equal(getattr(guess, name), getattr(again, name), err_msg=name)
    np.testing.assert_array_equal(guess.score, again.score)
    assert attack(plan, masking).correct != attack(plan, other).correct


@pytest.mark.parametrize("plan", every_example())
def test_the_order_of_the_file_changes_nothing(plan, people, masking):
    order = np.random.default_rng(2).permutation(len(people))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        other = mw.apply(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), people.take(order), seed=5)
    one, two = attack(plan, masking), attack(plan, other)
    assert one.to_dict() == two.to_dict()
    assert _linked(one) == _linked(two)


def _linked(risk):
    return dict(zip(*(risk.table[name].to_pylist() for name in ("target_id", "linked_id")), strict=True))


@pytest.mark.parametrize("plan", every_example())
def test_figures_hang_together(plan, masking):
    risk = attack(plan, masking)
    assert 0 <= risk.correct <= risk.claims <= len(risk.table)
    assert sum(one.links for one in risk.classes) == len(risk.table)
    assert risk.rate == risk.expected_correct / risk.targets
    assert risk.best_correct == pytest.approx(sum(one.expected_correct for one in risk.classes))
    shares = np.asarray(risk.table["expected_correct"])
    assert shares[np.asarray(risk.table["claimed"])].sum() == pytest.approx(risk.expected_correct)
    assert "target_id" not in str(risk.to_dict())


@pytest.mark.parametrize("plan", every_example())
def test_guessing_on_pure_noise_is_at_the_baseline(plan, people, masking):
    """Where the release says nothing of its records, the best links, ties shared, are right as often as guesses.

    Links dealt anew within the intruder's blocks make such a release; the answer does not depend on them.
    """
    risk, guess, marks, numbers = attack_by(plan, masking)
    assert marks.share.sum() == pytest.approx(risk.best_correct)
    north = np.asarray(people.array("REGION")) == "north"
    blocks = north[masking.order] if plan.match_columns(people.schema) else np.zeros(len(people), bool)
    dealt = [mark(guess, numbers, _dealt(masking.order, blocks, seed)) for seed in range(100)]
    rates = np.array([one.share.sum() for one in dealt]) / risk.targets
    expected = np.mean([(1.0 / guess.candidates[one.findable]).sum() for one in dealt]) / risk.targets
    assert abs(rates.mean() - expected) <= 4 * rates.std(ddof=1) / np.sqrt(len(rates))


def _dealt(order, blocks, seed):
    """Links dealt anew within two blocks."""
    order, rng = order.copy(), np.random.default_rng(seed)
    for here in (np.flatnonzero(blocks), np.flatnonzero(~blocks)):
        order[here] = order[rng.permutation(here)]
    return order


@pytest.mark.parametrize("plan", [mw.Linkage, mw.NearestRecord, mw.BayesIntruder])
def test_the_fields_may_come_first(plan):
    assert plan(("A", "B")) == plan(fields=("A", "B"))
    assert plan("A") == plan(fields=("A",))
    with pytest.raises(TypeError):
        plan(("A",), "best")


@dataclass(frozen=True, kw_only=True)
class Closest(RecordSearch):
    """Link to the released record of the block that is closest in one column: all that a new intruder needs."""

    column: str = "TAX"

    def guess(self, known, release, order_of):
        """Answer who is who, ties shared."""
        ours, theirs = self.blocks_of(known.targets, release.table)
        x, z = (
            np.nan_to_num(table.floats(self.column), nan=-1e9) for table in (known.targets, release.table)
        )
        order = order_of(release.table, "released")
        shares = ours[:, None] == theirs[None, :]
        far = np.where(shares, np.abs(x[:, None] - z[None, :]), np.inf)
        best = far.min(axis=1)

        def partners(record):
            ranked = order[np.argsort(far[record][order], kind="stable")]
            return ranked[(far[record][ranked] > best[record]) & shares[record][ranked]]

        return Guess(
            searcher=np.arange(len(x)),
            found=order[np.argmin(far[:, order], axis=1)],
            score=-best,
            ties=(far == best[:, None]).sum(axis=1),
            candidates=shares.sum(axis=1),
            claimed=best < 1e8,
            kind=np.zeros(len(x), np.int64),
            kinds=("closest",),
            is_tied=lambda rows, found: far[rows, found] == best[rows],
            in_block=lambda rows, found: shares[rows, found],
            partners=partners,
            figures={"fields": (self.column,)},
        )


def test_a_new_intruder_keeps_the_contract_and_attacks_by_its_line_alone(people, masking, monkeypatch):
    monkeypatch.setitem(ATTACKS, "Closest", Closest)
    with pytest.raises(AssertionError, match="EXAMPLES"):
        test_every_attack_has_an_example()
    plan = Closest(match_blocks=("REGION",))
    monkeypatch.setitem(EXAMPLES, "Closest", [plan])
    test_every_attack_has_an_example()
    assert every_example()[-1].values == (plan,)
    test_a_plan_states_all_that_is_asked_of_it(plan)
    test_a_plan_is_frozen_and_holds_no_data(plan)
    test_a_plan_can_be_written_and_read(plan)
    test_permuted_links_change_what_is_correct_and_nothing_else(plan, masking)
    test_the_order_of_the_file_changes_nothing(plan, people, masking)
    test_figures_hang_together(plan, masking)
    test_guessing_on_pure_noise_is_at_the_baseline(plan, people, masking)
    risks = attack({"closest": plan, "nearest": mw.NearestRecord(match_blocks=("REGION",))}, masking)
    assert risks["closest"].rate > risks["closest"].baseline
    few = attack(replace(plan, targets=mw.attacks.Sample(50)), masking)
    assert (few.targets, few.interval is None) == (50, False)
    assert mw.swap(masking, plan, mw.tolerances.SwapShare(0.5)).swapping.swaps > 0


def test_of_several_intruders_the_risks_come_by_name_and_of_one_the_risk(masking):
    plan = mw.Linkage(fields=AMOUNTS, match_blocks=("REGION",))
    assert isinstance(attack(plan, masking), mw.Risk)
    assert list(attack([plan], masking)) == ["Linkage"]
    assert list(attack({"matcher": plan}, masking)) == ["matcher"]
    for wrong in (mw.Linkage, "Linkage", None, object()):
        with pytest.raises(BadPlan, match="is no attack"):
            check_attack(wrong)
