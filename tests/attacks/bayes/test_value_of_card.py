"""What telling the parameters gives away."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import maskwell as mw
from maskwell.attacks.bayes.value_of_card import CardValue, found_by
from maskwell.attacks.bayes.value_of_card_notes import CardVerdict, doubtful_notes, once_each
from maskwell.errors import BadPlan, NoLaw
from maskwell.notes import Note

AMOUNTS = ("INCOME", "TAX")
PLAN = mw.BayesIntruder(fields=AMOUNTS, match_blocks=("REGION",))


def masked(mask, table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mask, table, seed=5)


@pytest.fixture(scope="module")
def masking(make_people):
    return masked(mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.4), make_people(120))


@pytest.fixture(scope="module")
def told(masking):
    return mw.attacks.card_value(masking, plan=PLAN, helpers=(119,))


def test_every_figure_is_that_of_its_attack(masking, told):
    prior = mw.attacks.Prior()
    for name in ("coherent", "forward"):
        plan = mw.BayesIntruder(fields=AMOUNTS, match_blocks=("REGION",), kernel=name)
        assert told.told[name].to_dict() == mw.attack(plan, masking).to_dict()
        plan = mw.BayesIntruder(fields=AMOUNTS, match_blocks=("REGION",), kernel=name, prior=prior)
        assert told.untold[name].to_dict() == mw.attack(plan, masking).to_dict()
    ceiling = mw.BayesIntruder(fields=AMOUNTS, match_blocks=("REGION",), helpers="all")
    assert told.ceiling is not None
    assert told.ceiling.to_dict() == mw.attack(ceiling, masking).to_dict()
    assert list(told.told) == ["coherent", "forward"]  # the others are the forward kernel here
    assert told.refused == {}


def test_the_difference_is_between_those_who_find_most(told):
    rates = [risk.rate for risk in (*told.untold.values(), *told.helped.values())]
    most = max(risk.rate for risk in (*told.told.values(), told.ceiling))
    assert told.difference == pytest.approx(most - max(rates))
    one, two = (np.asarray(risk.table["expected_correct"]) for risk in (told.with_card, told.without))
    assert told.standard_error == pytest.approx(np.std(one - two, ddof=1) / np.sqrt(120))


def test_the_advice_depends_on_the_difference(told):
    said = str(CardValue(told.told, told.told).advice)
    assert said.startswith("tell the parameters: keeping them leaves the rate as it is, and without them")
    little = type("Little", (CardValue,), {"difference": 0.02, "standard_error": 0.02})
    assert "by 2.0 points (s.e. 2.0), nothing to speak of" in str(little(told.told, told.untold).advice)
    worse = mw.attacks.Risks({"coherent": min(told.untold.values(), key=lambda risk: risk.rate)})
    kept = CardValue(told.told, worse)
    assert kept.difference > 2 * kept.standard_error
    assert str(kept.advice).startswith("keeping the parameters lowers the rate")


TELL, KEEP, FEW = "tell the parameters", "keeping the parameters lowers", "targets are too few to say"


@pytest.mark.parametrize(
    ("difference", "error", "targets", "said"),
    [
        (0.0, 0.063, 50, FEW),
        (0.017, 0.069, 50, FEW),
        (-0.017, 0.069, 50, FEW),
        (0.0, 0.0, 3, FEW),  # all alike, and yet too few
        (1.0, 0.0, 3, FEW),
        (0.0, float("nan"), 1, "1 target is too few to say"),
        (1.0, float("nan"), 1, "1 target is too few to say"),
        (0.0, 0.0, 500, TELL),
        (0.0, 0.02, 500, TELL),
        (0.02, 0.02, 500, TELL),
        (-0.02, 0.02, 500, TELL),
        (-0.2, 0.02, 500, TELL),
        (0.06, 0.02, 500, KEEP),
        (0.8, 0.13, 10, KEEP),
    ],
)
def test_the_interval_of_the_difference_decides(difference, error, targets, said):
    advice = str(CardVerdict(difference, error, targets).advice)
    assert said in advice
    assert " 0.0 points" not in advice
    assert "nan" not in advice
    assert ("raises the rate" in advice) == (difference < 0)


def test_nothing_is_called_little_that_is_much():
    assert CardVerdict(-0.02, 0.02, 500).advice.figures["little"]
    for difference, error in ((-0.2, 0.02), (-0.1, 0.08)):
        assert not CardVerdict(difference, error, 500).advice.figures["little"]


def test_it_prints_and_writes_figures_without_a_record(told):
    lines = repr(told).splitlines()
    assert [line.split("  ")[0] for line in lines[2:6]] == [
        "coherent",
        "forward",
        "coherent, 119 helpers",
        "knows all others (the ceiling)",
    ]
    assert max(map(len, lines)) <= 100
    assert "person" not in json.dumps(told.to_dict(), allow_nan=False)


def test_bad_plans_are_refused(masking, people):
    with pytest.raises(BadPlan, match="give a BayesIntruder, not a Linkage"):
        mw.attacks.card_value(masking, plan=mw.Linkage())
    with pytest.raises(BadPlan, match="sets prior and helpers itself"):
        mw.attacks.card_value(masking, plan=mw.BayesIntruder(helpers=3))
    with pytest.raises(NoLaw, match="no law"):
        mw.attacks.card_value(masked(mw.RankSwap(AMOUNTS, window_ratio=0.1), people))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"helpers": "some"}, "helpers are whole numbers from 0 on or 'all', not 'some'"),
        ({"helpers": (1, 2.5)}, "not 2.5"),
        ({"helpers": {3: 4}}, "such as helpers=\\(10, 100\\)"),
        ({"helpers": (True,)}, "not True"),
        ({"prior": 20}, "prior is a Prior, not a int"),
        ({"plan": mw.BayesIntruder(kernel="paper")}, "compares the kernels itself"),
        ({"plan": mw.BayesIntruder(error=mw.attacks.OwnError(sds={"TAX": 1.0}))}, "leave error out"),
    ],
)
def test_bad_options_end_in_a_sentence(masking, options, said):
    with pytest.raises(BadPlan, match=said):
        mw.attacks.card_value(masking, **options)


def test_what_is_no_masking_is_refused():
    with pytest.raises(BadPlan, match="card_value needs a Masking, not a int"):
        mw.attacks.card_value(3)


def test_one_number_none_and_too_many_helpers(make_people):
    """None at all is the first row already; who does not exist cannot help, which is said before any work."""
    small, heard = masked(mw.IndependentNoise(AMOUNTS, variance_ratio=0.2), make_people(12)), []
    with pytest.raises(
        BadPlan, match=r"^12 helpers are more than there are others: give at most 11, or all$"
    ):
        mw.attacks.card_value(small, plan=PLAN, helpers=(0, 2, 12), progress=heard.append)
    assert heard == []
    said = mw.attacks.card_value(small, plan=PLAN, helpers=(0, 2, 2), ceiling=False, progress=heard.append)
    assert list(said.helped) == [2]
    assert heard[-2:] == ["forward, not told", "2 helpers, not told"]
    assert list(mw.attacks.card_value(small, plan=PLAN, helpers=2, ceiling=False).helped) == [2]
    held = make_people(12).take(np.arange(5))
    with pytest.raises(BadPlan, match="give at most 4,"):
        mw.attacks.card_value(small, plan=PLAN, helpers=5, targets=held)


def test_a_target_file_that_is_none_is_refused_as_by_attack(masking):
    for run in (
        mw.attack,
        lambda plan, masking, targets: mw.attacks.card_value(masking, plan=plan, targets=targets),
    ):
        with pytest.raises(BadPlan, match="targets is a Table, not a int"):
            run(PLAN, masking, targets=3)


def test_bad_plans_of_every_intruder_are_bad_plans(masking):
    with pytest.raises(BadPlan, match="sd:AGE"):
        mw.attacks.card_value(masking, plan=PLAN, prior=mw.attacks.Prior(given={"sd:AGE": stats.gamma(4)}))


def test_problems_are_listed_once(people):
    with pytest.raises(NoLaw) as caught:
        mw.attacks.card_value(masked(mw.RankSwap(AMOUNTS, window_ratio=0.1), people))
    assert str(caught.value).count("has no law") == 1


def test_who_has_helpers_may_draw_his_links(told):
    """Luck among near ties lowers his rate, not what he gives to the truth: the larger of the two counts."""
    alone, helped = told.untold["coherent"], told.helped[119]
    given = np.nan_to_num(helped.belief.standing.probability).mean()
    assert found_by(alone) == alone.rate
    assert found_by(helped) == pytest.approx(max(helped.rate, given))
    unlucky = replace(helped, expected_correct=0.0)
    assert found_by(unlucky) == pytest.approx(given)
    drawn = CardValue(
        told.told, mw.attacks.Risks({"coherent": told.untold["coherent"]}), {119: unlucky}, told.ceiling
    )
    best = max(given, told.untold["coherent"].rate)
    assert drawn.difference == pytest.approx(found_by(drawn.with_card) - best)
    assert f"{given:.1%}" in repr(told)


def test_who_holds_a_file_of_his_own_is_not_the_ceiling(masking, make_people):
    held = make_people(120).take(np.arange(30))
    said = mw.attacks.card_value(masking, plan=PLAN, targets=held)
    assert said.told["coherent"].targets == 30
    assert "knows all in his file" in repr(said)
    assert "ceiling" not in repr(said)


def test_like_is_compared_with_like(told):
    """The ceiling counts only beside who knows everybody else without the card; 10 helpers are nobody's like."""
    ceiling, helped = told.ceiling, told.helped[119]
    alone = CardValue(told.told, told.untold, {10: helped}, ceiling)
    assert alone.difference == pytest.approx(
        max(risk.rate for risk in told.told.values()) - max(risk.rate for risk in told.untold.values())
    )
    assert "basis: who knows nobody else" in repr(alone)
    assert CardValue(told.told, told.untold, {119: helped}).difference == alone.difference
    for count in (119, "all"):
        both = CardValue(told.told, told.untold, {count: helped}, ceiling)
        assert both.difference == told.difference
        assert "basis: who knows everybody else" in repr(both)


def test_who_knows_everybody_may_do_without_them(told):
    helped = replace(told.helped[119], expected_correct=0.0, belief=blind(told.helped[119]))
    said = CardValue(told.told, told.untold, {119: helped}, told.ceiling)
    assert said.without is max(told.untold.values(), key=found_by)
    assert "his helpers left aside" in " ".join(repr(said).split())


def blind(risk):
    """The belief of one who gives nothing to the truth."""
    standing = risk.belief.standing
    return replace(risk.belief, standing=replace(standing, probability=0.0 * standing.probability))


def test_a_ceiling_below_another_is_explained(told):
    low = CardValue(told.told, told.untold, {}, replace(told.ceiling, expected_correct=1.0))
    high = CardValue(told.told, told.untold, {}, replace(told.ceiling, expected_correct=119.0))
    assert ("in expectation only" in repr(low), "in expectation only" in repr(high)) == (True, False)


def test_it_says_what_it_takes_for_granted(masking, make_people):
    plan = replace(PLAN, threshold=0.5)
    said = " ".join(
        repr(
            mw.attacks.card_value(masking, plan=plan, prior=mw.attacks.Prior("gamma", 4), ceiling=False)
        ).split()
    )
    assert "prior gamma, mean over sd 4; unknown: one factor (scale) on the sds of INCOME, TAX" in said
    assert "correlations and sd ratios, is taken from the card" in said
    assert "f(z) by the true records (no outsider has these: an upper bound)" in said
    assert "claims links above 0.5" in said
    apart = masked(mw.IndependentNoise(AMOUNTS, variance_ratio=0.2), make_people(30))
    said = " ".join(
        repr(mw.attacks.card_value(apart, plan=replace(PLAN, marginal="gaussian"), ceiling=False)).split()
    )
    assert "unknown: the sd of the noise of INCOME, TAX;" in said
    assert "a normal law fitted to the release" in said
    assert "upper bound" not in said
    assert "scale" not in said


def test_what_did_not_settle_is_said_once_each(told):
    failed = Note("attacks.chains_not_converged", {"failed": 1, "groups": 1, "rhat": 1.3})
    undecided = Note("attacks.undecided_links", {"undecided": 7, "links": 120})
    unsettled = Note("attacks.not_settled", {"nodes": 9, "change": 0.1})
    fine = Note("attacks.matchings_counted")
    helped = replace(told.helped[119], notes=(fine, failed, undecided))
    rough = mw.attacks.Risks({name: replace(risk, notes=(unsettled,)) for name, risk in told.untold.items()})
    lines = repr(CardValue(told.told, rough, {119: helped}, told.ceiling)).splitlines()
    assert f"coherent, forward: {unsettled}" in lines
    assert f"coherent, 119 helpers: {failed}" in lines
    assert "coherent, 119 helpers: 7 of 120 links are not decided by these draws" in lines
    assert not any(str(fine) in line for line in lines)
    resting = CardValue(told.told, rough).advice
    assert str(resting).endswith("what did not settle (above) may change this")
    assert not CardValue(told.told, told.untold).advice.figures["unsettled"]


def test_the_notes_of_real_draws_are_found(told, masking):
    few = mw.BayesIntruder(
        fields=AMOUNTS, helpers="all", sampling=mw.attacks.Sampling(draws=100, most=100, ess=1e5)
    )
    notes = doubtful_notes([("he", mw.attack(few, masking).notes)])
    assert {note.code for note in notes} == {"attacks.matchings_not_converged", "attacks.undecided_links"}


def test_where_nothing_is_compared_by_noise_there_is_nothing_to_tell(make_people):
    swapped = masked(mw.RankSwap(AMOUNTS, window_ratio=0.1), make_people(60))
    said = mw.attacks.card_value(swapped, plan=mw.BayesIntruder(fields=("AGE",), match_blocks=("REGION",)))
    assert repr(said).startswith("the noise protects nobody here, and there is nothing to tell")
    assert "tell the parameters" not in repr(said)
    assert said.to_dict()["nothing_to_tell"]


def test_where_all_are_singled_out_in_clear_there_is_nothing_to_tell(make_people, told):
    noisy = masked(mw.IndependentNoise(AMOUNTS, variance_ratio=0.2), make_people(60))
    plan = mw.BayesIntruder(fields=(*AMOUNTS, "WEIGHT"), match_blocks=("REGION",))
    said = mw.attacks.card_value(noisy, plan=plan, ceiling=False)
    assert said.told["coherent"].assumed.alone == 60
    assert repr(said).startswith(
        "the noise protects nobody here: REGION, WEIGHT, left in clear, alone single"
    )
    assert "tell the parameters" not in repr(said)
    assert not told.to_dict()["nothing_to_tell"]


def test_where_laws_leave_nothing_unknown_there_is_nothing_to_tell(told):
    said = replace(told, unknowns=())
    assert repr(said).startswith("there is nothing to tell: the laws of INCOME, TAX leave nothing unknown")
    assert "tell the parameters" not in repr(said)


def test_a_sample_says_the_truth_as_an_attack_does(make_people):
    """Over those who have a record; the forward kernel has no weight for the others, which stands below its row."""
    sample = masked(mw.Chain((mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3), mw.Subsample(0.5))), make_people(80))
    plan = replace(PLAN, response_knowledge=False)
    said = mw.attacks.card_value(sample, plan=plan, ceiling=False)
    given = mw.attack(plan, sample).belief.truth_probability
    assert given.count < 80
    assert f"{given.mean:.1%}" in repr(said).splitlines()[2].split()
    text = " ".join(repr(said).split())
    assert f"forward: {Note('attacks.given_release')}" in text
    assert f"the mean over the {given.count:.0f} of 80 targets" in text


def test_reasons_are_said_once():
    refused = {"paper": "both are out", "fms": "both are out", "3 helpers": "other"}
    assert once_each(refused) == [("paper, fms", "both are out"), ("3 helpers", "other")]


def test_refused_kernels_and_long_lines_fit_the_screen(make_people):
    biased = masked(mw.BiasNoise(AMOUNTS, bias_sd=0.1, sd_ratio=0.2), make_people(60))
    said = repr(mw.attacks.card_value(biased, plan=replace(PLAN, direction="to_original"), helpers=(3, 4)))
    assert max(map(len, said.splitlines())) <= 100
    assert said.count("helpers look for masked records") == 1
    assert said.count("are for normal bias and noise") == 1
