"""Densities of pairs and of blocks: proper, equal to the law's own, and those of noise followed by swaps."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chisquare

from maskwell.card import NoiseCard, SwapParameters, release_density
from maskwell.card.release_density import block_numbers, joint_codes, log_background, pair_logpdf
from maskwell.errors import NoLaw
from maskwell.keys import Key, Stream, ids_from_numbers
from maskwell.laws import Additive, Normal, Outlet, RankSwapped, Transition
from maskwell.masking import apply
from maskwell.masking.swap_record import exchange
from maskwell.masks import Chain, CodeNoise, Coding, CorrelatedNoise, IndependentNoise, Pram
from maskwell.schema import Column, Schema
from maskwell.table import Table

LEVELS = ("no", "yes")
SCHEMA = Schema(
    (
        Column("BLOCK", "category", categories=("a", "b")),
        Column("A", "integer", missing=(-9,)),
        Column("C", "category", categories=LEVELS),
        Column("D", "category", categories=LEVELS),
        Column("E", "category", categories=LEVELS),
    )
)
CARD = NoiseCard(
    (
        Additive(("A",), Normal((1.2,)), (Outlet(Fraction(1), 0, 6),)),
        Transition(("C",), LEVELS, LEVELS, ((0.8, 0.2), (0.3, 0.7))),
        Transition(("D",), LEVELS, LEVELS, ((0.6, 0.4), (0.1, 0.9))),
    ),
    swapped=SwapParameters(0.3, ("A", "C", "E"), ("BLOCK",)),
)


def small(blocks: str, a: list[int], c: str, d: str, e: str) -> Table:
    """Make a table; n and y stand for no and yes."""
    codes = {"n": "no", "y": "yes"}
    columns = {name: [codes[x] for x in text] for name, text in (("C", c), ("D", d), ("E", e))}
    return Table.from_frame(pa.table({"BLOCK": list(blocks), "A": a, **columns}), SCHEMA)


TRUTH = small("aaabb", [1, 4, 6, 2, -9], "nynyy", "nnyyn", "nynyy")


def outcomes(truth: Table) -> list[Table]:
    """Return every released record there can be, each once for all records."""
    n, blocks = len(truth), "".join(truth.array("BLOCK").to_pylist())
    cells = product([*range(7), -9], "ny", "ny", "ny")
    return [small(blocks, [a] * n, c * n, d * n, e * n) for a, c, d, e in cells]


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("blocks", [("BLOCK",), ()])
def test_the_law_of_swapped_records_sums_to_one(share, blocks):
    card = replace(CARD, swapped=SwapParameters(share, ("A", "C", "E"), blocks))
    logs = np.array([card.logpdf(z, TRUTH) for z in outcomes(TRUTH)])
    total = np.exp(logs).sum(axis=0)
    assert np.allclose(
        total, 2.0 if share == 0 else 1.0, rtol=0, atol=1e-12
    )  # E is not spoken of unless swapped


def test_swapped_columns_without_noise_are_the_records_own_or_anothers():
    own, other = (
        TRUTH,
        TRUTH.with_columns(
            {"E": (SCHEMA["E"], 1 - TRUTH.values(["E"])[:, 0], np.zeros(len(TRUTH), np.uint8))}
        ),
    )
    assert np.isfinite(CARD.logpdf(own, TRUTH)).all()
    never = replace(CARD, swapped=SwapParameters(0.3, ("A", "C", "E"), ("BLOCK", "E")))
    assert not np.isfinite(never.logpdf(other, TRUTH)).any()


def test_noise_followed_by_swaps_follows_the_law():
    """Draw the noise of all, exchange with a random record of the block: a chi-square test of one record's cells."""
    rng, draws, share = np.random.default_rng(8), 40_000, 0.3
    values = {law.columns[0]: TRUTH.values(law.columns)[:3] for law in CARD.laws}  # block a
    stream = Stream(Key.from_seed(3), "tests", "0", ids_from_numbers(3 * draws))
    drawn = {
        law.columns[0]: law.draw(np.tile(values[law.columns[0]], (draws, 1)), stream) for law in CARD.laws
    }
    drawn["E"] = np.tile(TRUTH.values(["E"])[:3], (draws, 1))
    for record in range(3):
        source = np.where(rng.random(draws) < share, rng.integers(0, 3, draws), record)
        from_whom = {name: source if name != "D" else np.full(draws, record) for name in drawn}
        z = {name: drawn[name].reshape(draws, 3)[np.arange(draws), who] for name, who in from_whom.items()}
        cells = list(product(range(7), range(2), range(2), range(2)))
        number = ((z["A"] * 2 + z["C"]) * 2 + z["D"]) * 2 + z["E"]
        found = np.bincount(number.astype(int), minlength=len(cells))
        chance = np.exp([CARD.logpdf(table, TRUTH)[record] for table in outcomes(TRUTH)[: len(cells)]])
        assert not found[chance == 0].any()
        order = np.argsort(-chance)
        kept = int((draws * chance > 5).sum())
        pooled = [
            np.append(counts[order][: kept - 1], counts[order][kept - 1 :].sum())
            for counts in (found, draws * chance)
        ]
        assert chisquare(*pooled).pvalue > 1e-6


def test_the_share_swapped_fits_a_file_that_was_swapped(make_amounts):
    """Exchange random pairs within blocks: the derivative of the log likelihood by the share is zero on average.

    A swapped record has the values of another; the law also counts its own, so its share is larger by size/(size - 1).
    """
    size, blocks, pairs, rng = 20, 100, 2, np.random.default_rng(5)
    plain = make_amounts(size * blocks)
    group = np.repeat(np.arange(blocks), size)
    schema = replace(plain.schema, columns=(*plain.schema.columns, Column("BLOCK", "integer")))
    table = Table.from_frame(plain.data.append_column("BLOCK", pa.array(group)), schema)
    masking = apply(CorrelatedNoise(("A", "B"), sd_ratio=0.3), table, seed=4)
    chosen = np.array([rng.permutation(size)[: 2 * pairs] + size * block for block in range(blocks)])
    z = exchange(masking.masked, ("A", "B"), chosen.reshape(-1, 2))
    share = 2 * pairs / size * size / (size - 1)
    card = replace(masking.card, swapped=SwapParameters(share, ("A", "B"), ("BLOCK",)))
    own = np.exp(masking.card.logpdf(z, table))
    anyone = np.exp(log_background(card.laws, (), z, table, ("BLOCK",))[0])
    mixed = np.exp(card.logpdf(z, table))
    assert np.allclose(mixed, (1 - share) * own + share * anyone, rtol=1e-12)
    score = ((anyone - own) / mixed).reshape(blocks, size).mean(axis=1)
    assert abs(score.mean()) <= 4 * score.std() / np.sqrt(blocks)
    wrong = ((anyone - own) / (own * (1 - 2 * share) + 2 * share * anyone)).reshape(blocks, size).mean(axis=1)
    assert abs(wrong.mean()) > 4 * wrong.std() / np.sqrt(blocks)


def test_laws_of_columns_that_stay_multiply_outside():
    z = outcomes(TRUTH)[5]
    stays = NoiseCard(CARD.laws[2:])
    moves = replace(CARD, laws=CARD.laws[:2])
    assert np.allclose(CARD.logpdf(z, TRUTH), moves.logpdf(z, TRUTH) + stays.logpdf(z, TRUTH), rtol=1e-12)


# --- pairs

MASKS = {
    "kim": CorrelatedNoise(("INCOME", "TAX", "AGE"), sd_ratio=0.3),
    "chain": Chain(
        [CorrelatedNoise(("INCOME", "AGE"), sd_ratio=0.3), Coding("AGE", top=80), Pram("EDU", stay=0.7)]
    ),
    "codes": CodeNoise("EDU", variance=0.5),
    "laplace": IndependentNoise(("INCOME", "TAX"), variance_ratio=0.1, shape="laplace"),
}


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_pairs_have_the_density_of_tables_of_pairs(mask, people):
    masking = apply(mask, people, seed=5)
    rng = np.random.default_rng(1)
    of_z, of_x = rng.integers(0, len(people), (2, 3000))
    of_z[:240] = of_x[:240] = np.arange(240)
    pairs = pair_logpdf(masking.card.laws, masking.masked, people, of_z, of_x)
    tables = masking.card.logpdf(masking.masked.take(of_z), people.take(of_x))
    assert np.array_equal(pairs, tables)
    assert np.isfinite(pairs[:240]).all()
    assert np.isneginf(pairs).any()


@pytest.mark.filterwarnings("ignore::maskwell.errors.MaskwellWarning")
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
def test_the_background_is_the_mean_over_the_block(mask, people, monkeypatch):
    masking = apply(mask, people, seed=5)
    blocks = block_numbers(people, ("REGION",))
    of_z, of_x = (side.ravel() for side in np.indices((len(people), len(people))))
    density = np.exp(pair_logpdf(masking.card.laws, masking.masked, people, of_z, of_x))
    inside = np.where(blocks[of_z] == blocks[of_x], density, 0.0).reshape(len(people), -1)
    expected = np.log(inside.sum(axis=1) / np.bincount(blocks)[blocks])
    for at_once in (250_000, 100):
        monkeypatch.setattr(release_density, "PAIRS_AT_ONCE", at_once)
        found, error = log_background(masking.card.laws, (), masking.masked, people, ("REGION",))
        assert np.allclose(found, expected, rtol=0, atol=1e-10)
        assert np.all(error < 1e-3)


def test_a_record_far_from_all_others_still_has_a_density(make_amounts):
    table = make_amounts(50)
    law = Additive(("A", "B"), Normal((0.01, 0.01)), (Outlet(), Outlet()))
    z = table.with_columns({"A": (table.schema["A"], table.floats("A") + 3.0, np.zeros(50, np.uint8))})
    found, _ = log_background((law,), (), z, table, ())
    of_z, of_x = (side.ravel() for side in np.indices((50, 50)))
    logs = pair_logpdf((law,), z, table, of_z, of_x).reshape(50, 50)
    assert np.allclose(found, np.logaddexp.reduce(logs, axis=1) - np.log(50), rtol=1e-12)
    assert found.min() < -1000


def test_exchanges_without_a_law_have_no_density(make_amounts):
    table = make_amounts(10)
    with pytest.raises(NoLaw, match="rank swap of 'A' has no law"):
        log_background((RankSwapped(("A",), 0.1),), (), table, table, ())


def test_values_are_numbered_alike_and_closed_ones_are_values():
    numbers = np.array(joint_codes("A", TRUTH, TRUTH))
    assert np.array_equal(numbers[0], numbers[1])
    assert len(set(numbers[0].tolist())) == 5
    assert block_numbers(TRUTH, ()).tolist() == [0] * 5
    assert len(np.unique(block_numbers(TRUTH, ("BLOCK", "E")))) == 3
    assert len(np.unique(block_numbers(TRUTH, ("A",)))) == 5
