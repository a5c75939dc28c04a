"""What telling the parameters gives away."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest

import maskwell as mw
from maskwell.attacks.bayes.advice import Telling, found_by
from maskwell.errors import BadPlan, NoLaw

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
    return mw.telling(masking, plan=PLAN, helpers=(119,))


def test_every_figure_is_that_of_its_attack(masking, told):
    prior = mw.Prior()
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
    said = Telling(told.told, told.told).advice
    assert said.startswith(
        "tell the parameters: keeping them does not lower the rate (0.0 points (s.e. 0.0) higher)"
    )
    little = type("Little", (Telling,), {"difference": 0.02, "standard_error": 0.02})
    assert "by 2.0 points (s.e. 2.0), nothing to speak of" in little(told.told, told.untold).advice
    worse = mw.attacks.Risks({"coherent": min(told.untold.values(), key=lambda risk: risk.rate)})
    kept = Telling(told.told, worse)
    assert kept.difference > 2 * kept.standard_error
    assert kept.advice.startswith("keeping the parameters lowers the rate")


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
        mw.telling(masking, plan=mw.Linkage())
    with pytest.raises(BadPlan, match="sets prior and helpers itself"):
        mw.telling(masking, plan=mw.BayesIntruder(helpers=3))
    with pytest.raises(NoLaw, match="no law"):
        mw.telling(masked(mw.RankSwap(AMOUNTS, window_ratio=0.1), people))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"helpers": "some"}, "helpers are whole numbers from 0 on or 'all', not 'some'"),
        ({"helpers": (1, 2.5)}, "not 2.5"),
        ({"helpers": {3: 4}}, "such as helpers=\\(10, 100\\)"),
        ({"helpers": (True,)}, "not True"),
        ({"prior": 20}, "prior is a Prior, not a int"),
        ({"plan": mw.BayesIntruder(kernel="paper")}, "compares the kernels itself"),
        ({"plan": mw.BayesIntruder(error=mw.OwnError(sds={"TAX": 1.0}))}, "leave error out"),
    ],
)
def test_bad_options_end_in_a_sentence(masking, options, said):
    with pytest.raises(BadPlan, match=said):
        mw.telling(masking, **options)


def test_what_is_no_masking_is_refused():
    with pytest.raises(BadPlan, match="telling needs a Masking, not a int"):
        mw.telling(3)


def test_one_number_none_and_too_many_helpers(make_people):
    """None at all is the first row already; who does not exist cannot help."""
    small, heard = masked(mw.IndependentNoise(AMOUNTS, variance_ratio=0.2), make_people(12)), []
    said = mw.telling(small, plan=PLAN, helpers=(0, 2, 2, 12), ceiling=False, progress=heard.append)
    assert list(said.helped) == [2]
    assert said.refused == {"12 helpers": said.refused["12 helpers"]}
    assert "give at most 11" in said.refused["12 helpers"]
    assert heard[-2:] == ["2 helpers, not told", "12 helpers, not told"]
    assert list(mw.telling(small, plan=PLAN, helpers=2, ceiling=False).helped) == [2]


def test_problems_are_listed_once(people):
    with pytest.raises(NoLaw) as caught:
        mw.telling(masked(mw.RankSwap(AMOUNTS, window_ratio=0.1), people))
    assert str(caught.value).count("has no law") == 1


def test_who_has_helpers_may_draw_his_links(told):
    """Luck among near ties lowers his rate, not what he gives to the truth: the larger of the two counts."""
    alone, helped = told.untold["coherent"], told.helped[119]
    given = np.nan_to_num(helped.belief.standing.probability).mean()
    assert found_by(alone) == alone.rate
    assert found_by(helped) == pytest.approx(max(helped.rate, given))
    unlucky = replace(helped, expected_correct=0.0)
    assert found_by(unlucky) == pytest.approx(given)
    drawn = Telling(
        told.told, mw.attacks.Risks({"coherent": told.untold["coherent"]}), {119: unlucky}, told.ceiling
    )
    best = max(given, told.untold["coherent"].rate)
    assert drawn.difference == pytest.approx(found_by(drawn.with_card) - best)
    assert f"{given:.1%}" in repr(told)


def test_who_holds_a_file_of_his_own_is_not_the_ceiling(masking, make_people):
    held = make_people(120).take(np.arange(30))
    said = mw.telling(masking, plan=PLAN, targets=held)
    assert said.told["coherent"].targets == 30
    assert "knows all in his file" in repr(said)
    assert "ceiling" not in repr(said)
