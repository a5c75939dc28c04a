from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from maskwell.card import FORMAT, VERSION, NoiseCard, SwapParameters
from maskwell.errors import BadBundle, BadPlan, NoLaw
from maskwell.keys import Key, Stream, ids_from_numbers
from maskwell.laws import Additive, Normal, Outlet, Power, Step
from maskwell.masking import Setting, apply
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
)
from maskwell.schema import Column, Schema
from maskwell.table import Table

CATEGORIES = ("low", "middle", "high")


def make_table(count: int = 800) -> Table:
    """Make correlated amounts with codes and closed cells, a category, and no exact identity."""
    rng = np.random.default_rng(21)
    income = np.exp(rng.normal(10, 0.7, count)).round(0)
    rent = (income * 0.02 + rng.normal(300, 120, count)).round(2)
    age = np.clip(rng.integers(16, 99, count), 18, 90)
    answers = np.array(CATEGORIES, object)[rng.choice(3, count, p=[0.5, 0.3, 0.2])]
    answers[::17] = None
    data = {
        "INCOME": pa.array(income),
        "RENT": pa.array(np.where(rng.random(count) < 0.1, np.nan, rent), from_pandas=True),
        "AGE": pa.array(np.where(rng.random(count) < 0.05, -9, age)),
        "SAT": pa.array(answers.tolist()),
    }
    schema = Schema(
        (
            Column("INCOME", "continuous", unit=1),
            Column("RENT", "continuous"),
            Column("AGE", "integer", top=90, bottom=18, missing=(-9,)),
            Column("SAT", "category", categories=CATEGORIES),
        )
    )
    return Table.from_frame(pa.table(data), schema)


AMOUNTS = ("INCOME", "RENT", "AGE")
PLANS = {
    "independent": IndependentNoise(AMOUNTS, variance_ratio=0.2),
    "laplace": IndependentNoise(AMOUNTS, variance_ratio=0.2, shape="laplace"),
    "kim": CorrelatedNoise(AMOUNTS, sd_ratio=0.4),
    "shlomo": CorrelatedNoise(AMOUNTS, r0=0.8, keep="moments"),
    "log": CorrelatedNoise(("INCOME", "AGE"), sd_ratio=0.3, transform="log", shift=1.0),
    "power": IndependentNoise("INCOME", variance_ratio=0.1, spread=Power(0.5)),
    "step": IndependentNoise("INCOME", variance_ratio=0.1, spread=Step((20_000.0,), (1.0, 3.0))),
    "limits": IndependentNoise("INCOME", variance_ratio=0.5, limits=(("INCOME", 0, 50_000),)),
    "mixture": MixtureNoise(AMOUNTS, 0.3, 0.05, components=3),
    "components": MixtureNoise(AMOUNTS, 0.3, 0.05, components=4, correlated=True),
    "rotation": MixtureNoise(AMOUNTS, 0.3, 0.05, correlated=True),
    "bias": BiasNoise(AMOUNTS, bias_sd=0.1, sd_ratio=0.1),
    "skewed bias": BiasNoise(("INCOME", "AGE"), bias_sd=0.1, sd_ratio=0.1, shape="lognormal"),
    "codes": CodeNoise("SAT", variance=(0.3, 0.5, 0.0)),
    "codes rounded": CodeNoise("SAT", variance=0.5, rounded=True),
    "pram": Pram("SAT", stay=0.7, invariant=True),
    "groups": Grouping("SAT", groups={"no": ["low"], "yes": ["middle", "high"]}),
    "classes": Grouping("AGE", breaks=(30, 50, 70)),
    "coding": Coding("AGE", top=75, bottom=25),
    "coded noise": Chain([CorrelatedNoise(("INCOME", "AGE"), sd_ratio=0.4), Coding("AGE", top=80)]),
    "chain": Chain(
        [
            CorrelatedNoise(("INCOME", "RENT"), sd_ratio=0.4),
            IndependentNoise(("RENT", "AGE"), variance_ratio=0.1),
        ]
    ),
    "sample": Chain([Pram("SAT", stay=0.7), Subsample(0.5)]),
}


@pytest.fixture(scope="module")
def table() -> Table:
    return make_table()


@pytest.fixture(scope="module", params=PLANS.values(), ids=PLANS.keys())
def masking(request, table):
    return apply(request.param, table, seed=5)


def test_every_mask_with_a_law_is_among_the_plans():
    named = {
        part.get("mask")
        for plan in PLANS.values()
        for part in [plan.to_dict(), *plan.to_dict().get("masks", ())]
    }
    assert named == set(MASKS) - {RankSwap.__name__, Recompute.__name__}


def test_a_release_is_possible_under_its_own_card(masking):
    logs, error = masking.card.logpdf_with_error(masking.masked, masking.truth)
    assert np.isfinite(logs).all()
    assert np.all((error >= 0) & (error < 1e-3))


def test_a_card_comes_back_from_its_json(masking):
    text = masking.card.to_json()
    read = NoiseCard.from_json(text)
    assert read == masking.card
    assert read.to_json() == text
    before, after = (card.logpdf(masking.masked, masking.truth) for card in (masking.card, read))
    assert np.array_equal(before, after)
    content = json.loads(text)
    assert (content["format"], content["version"]) == (FORMAT, VERSION)


def test_closed_cells_add_nothing_and_must_stay_closed(table):
    masking = apply(PLANS["independent"], table, seed=5)
    logs = masking.card.logpdf(masking.masked, table)
    closed = np.flatnonzero(table.status("RENT") == 1)
    one = apply(IndependentNoise(("INCOME", "AGE"), variance_ratio=0.2), table, seed=5)
    assert np.allclose(logs[closed], one.card.logpdf(one.masked, table)[closed])
    status = masking.masked.status("RENT").copy()
    status[closed[0]] = 0
    opened = masking.masked.with_columns(
        {
            "RENT": (
                masking.masked.schema["RENT"],
                np.nan_to_num(masking.masked.values(["RENT"])[:, 0]),
                status,
            )
        }
    )
    changed = masking.card.logpdf(opened, table)
    assert changed[closed[0]] == -np.inf
    assert np.array_equal(np.delete(changed, closed[0]), np.delete(logs, closed[0]))


def test_codes_must_be_the_same_codes(table):
    masking = apply(PLANS["kim"], table, seed=5)
    status = masking.masked.status("AGE").copy()
    top = np.flatnonzero(status == 2)
    assert len(top)
    status[top] = 3
    swapped = masking.masked.with_columns(
        {"AGE": (masking.masked.schema["AGE"], np.nan_to_num(masking.masked.values(["AGE"])[:, 0]), status)}
    )
    assert np.all(masking.card.logpdf(swapped, table)[top] == -np.inf)


def test_laws_of_disjoint_columns_multiply(table):
    first, second = PLANS["kim"], PLANS["pram"]
    both = apply(Chain([first, second]), table, seed=5)
    alone = [apply(mask, table, seed=5) for mask in (first, second)]
    expected = sum(one.card.logpdf(one.masked, table) for one in alone)
    assert np.allclose(both.card.logpdf(both.masked, table), expected, rtol=1e-12)


def test_the_tables_must_be_paired(table):
    card = PLANS["kim"].card(table)
    with pytest.raises(BadPlan, match="800 and 799 records"):
        card.logpdf(table, table.take(np.arange(799)))


def test_rank_swapping_has_no_law_even_beside_others(table):
    masking = apply(Chain([RankSwap("AGE", 0.1), Pram("SAT", stay=0.8)]), table, seed=5)
    with pytest.raises(NoLaw, match="rank swap of 'AGE' has no law"):
        masking.card.logpdf(masking.masked, table)
    assert NoiseCard.from_json(masking.card.to_json()) == masking.card


def test_swapped_records_mix_the_law_with_the_block(table):
    masking = apply(PLANS["kim"], table, seed=5)
    plain = masking.card.logpdf(masking.masked, table)
    card = replace(masking.card, swapped=SwapParameters(0.1, ("INCOME", "RENT")))
    background = np.linspace(-30, -5, len(table))
    mixed = card.logpdf(masking.masked, table, log_background=background)
    assert np.allclose(np.exp(mixed), 0.9 * np.exp(plain) + 0.1 * np.exp(background), rtol=1e-12)
    small = table.take(np.arange(60))
    z = masking.masked.take(np.arange(60))
    pairs = [masking.card.logpdf(z, small.take(np.full(60, m))) for m in range(60)]
    alone = masking.card.logpdf(z, small)
    expected = 0.9 * np.exp(alone) + 0.1 * np.exp(pairs).mean(axis=0)
    assert np.allclose(np.exp(card.logpdf(z, small)), expected, rtol=1e-12)
    none = replace(card, swapped=SwapParameters(0.0, ("INCOME",)))
    assert np.array_equal(none.logpdf(masking.masked, table), plain)
    for swapped in (card.swapped, SwapParameters(0.01, ("AGE",), ("SAT",))):
        assert NoiseCard.from_json(replace(card, swapped=swapped).to_json()).swapped == swapped
    assert SwapParameters.from_dict({"share": 0.1, "columns": ["AGE"]}) == SwapParameters(0.1, ("AGE",))


def test_recomputed_columns_carry_no_law():
    rng = np.random.default_rng(3)
    parts = rng.normal(100, 20, size=(60, 2)).round(1)
    data = pa.table({"A": parts[:, 0], "B": parts[:, 1], "T": parts.sum(axis=1)})
    table = Table.from_frame(data, Schema(tuple(Column(name, "continuous", unit=0.1) for name in "ABT")))
    plan = Chain([IndependentNoise(("A", "B"), variance_ratio=0.1), Recompute("T", ["A", "B"])])
    masking = apply(plan, table, seed=5)
    assert masking.card.columns == ("A", "B")
    assert masking.card.law_of("T") is None
    assert NoiseCard.from_json(masking.card.to_json()).recomputed == (("T", (("A", 1.0), ("B", 1.0))),)
    assert np.isfinite(masking.card.logpdf(masking.masked, table)).all()


def refit(card: NoiseCard, count: int = 1_000_000) -> np.ndarray:
    """Return noise drawn from a card's law, as it leaves."""
    (law,) = card.laws
    stream = Stream(Key.from_seed(7), "tests", "0", ids_from_numbers(count))
    return law.draw(np.zeros((count, len(law.columns))), stream)


@pytest.mark.parametrize(
    "mask",
    [
        CorrelatedNoise(("A", "B"), sd_ratio=0.5),
        IndependentNoise(("A", "B"), variance_ratio=0.25, shape="laplace"),
        MixtureNoise(("A", "B"), 0.25, 0.03, components=3, correlated=True),
    ],
    ids=["kim", "laplace", "components"],
)
def test_the_card_says_exactly_what_is_drawn(mask):
    """The noise is drawn from the rounded law: a million draws fit the card, and not the unrounded figures."""
    values = np.random.default_rng(4).multivariate_normal([0, 0], [[8.4, 3.0], [3.0, 2.2]], size=1000)
    table = Table.from_frame(pa.table({"A": values[:, 0], "B": values[:, 1]}))
    card = mask.card(table)
    noise = refit(NoiseCard.from_json(card.to_json()))
    products = np.einsum("ni,nj->nij", noise, noise)
    errors = products.std(axis=0) / 1000
    found, units = products.mean(axis=0), np.array([float(outlet.unit) for outlet in card.laws[0].outlets])
    written = card.laws[0].noise.covariance + np.diag(units**2 / 12)
    unrounded = mask.card(table, Setting(exact=True)).laws[0].noise.covariance
    assert np.all(np.abs(found - written) <= 4 * errors)
    assert np.abs((found - unrounded) / errors).max() > 10


def test_a_card_holds_no_notes_and_no_key(table):
    masking = apply(CorrelatedNoise(AMOUNTS, sd_ratio=0.4), table, seed=5)
    card = replace(masking.card, notes=("only for the steward",))
    assert "steward" not in card.to_json()
    assert card.public().notes == ()
    assert card.public() == card
    assert masking.key.secret.hex() not in card.to_json()
    assert "steward" not in repr(card)


def test_a_card_from_a_small_seed_says_so(table):
    seeded, real = (
        apply(PLANS["pram"], table, **given).card for given in ({"seed": 1}, {"key": Key.from_os()})
    )
    assert seeded.to_dict()["warning"] == "the noise comes from a small seed: not for release"
    assert "warning" not in real.to_dict()
    assert seeded.numbered


CARD = NoiseCard((Additive(("A",), Normal((1.0,)), (Outlet(),)),), records=10, data_sha256="ab")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON at line 1"),
        ("[1]", "not a maskwell noise card"),
        ("{}", "not a maskwell noise card"),
        (
            CARD.to_json().replace('"version": 1', '"version": 2'),
            "written by a newer maskwell (card version 2); upgrade",
        ),
        *(
            (CARD.to_json().replace('"version": 1', f'"version": {odd}'), "damaged: its version is no number")
            for odd in ('"1"', "null", "true", "[1]")
        ),
        (CARD.to_json().replace("1.0", "1.1"), "its digest does not fit its content"),
        (CARD.to_json().replace('"records": 10', '"records": 11'), "its digest does not fit its content"),
        (CARD.to_json().replace('"laws"', '"lows"'), "unknown key 'lows' (did you mean 'laws'?)"),
        (
            CARD.to_json().replace('"form": "normal"', '"form": "cauchy"'),
            "law 1, noise has no form that is known",
        ),
        (CARD.to_json().replace('"sds": [1.0]', '"sd": [1.0]'), "law 1, noise lacks sds"),
    ],
)
def test_damaged_foreign_and_newer_cards_are_refused(text, said):
    with pytest.raises(BadBundle) as refusal:
        NoiseCard.from_json(text)
    assert said in str(refusal.value)


def test_a_card_is_read_from_a_file(tmp_path):
    path = tmp_path / "card.json"
    path.write_text(CARD.to_json(), encoding="utf-8")
    assert NoiseCard.read(path) == CARD
    with pytest.raises(BadBundle, match="cannot be read"):
        NoiseCard.read(tmp_path / "none.json")
    path.write_bytes(b"\xff\xfe{")
    with pytest.raises(BadBundle, match="not UTF-8"):
        NoiseCard.read(path)
