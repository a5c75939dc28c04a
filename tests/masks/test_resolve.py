from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.engines.random_parts import ChoppedEngine
from maskwell.errors import BadPlan
from maskwell.masking import Setting
from maskwell.masks import CorrelatedNoise, IndependentNoise
from maskwell.masks.resolve import _on_steps, default_unit, nearest_correlation
from maskwell.notes import texts
from maskwell.schema import Column, Schema
from maskwell.table import Table

from .conftest import EXACT, numbers, plain

NAN = np.nan


def test_the_nearest_correlation_matrix_is_highams():
    """Higham (2002), section 4: the 3 x 3 example, to the digits he prints."""
    found = nearest_correlation(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]]))
    expected = [[1.0, 0.7607, 0.1573], [0.7607, 1.0, 0.7607], [0.1573, 0.7607, 1.0]]
    assert np.abs(found - expected).max() < 5e-5
    assert np.linalg.eigvalsh(found)[0] > -1e-14


def test_a_correlation_matrix_is_its_own_nearest():
    matrix = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, -0.3], [0.2, -0.3, 1.0]])
    assert np.abs(nearest_correlation(matrix) - matrix).max() < 1e-12


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(3, 7))
def test_the_nearest_is_a_correlation_matrix_and_nearer_than_shrinking(seed, width):
    given_matrix = np.random.default_rng(seed).uniform(-1, 1, size=(width, width))
    matrix = (given_matrix + given_matrix.T) / 2
    np.fill_diagonal(matrix, 1.0)
    found = nearest_correlation(matrix)
    assert np.array_equal(np.diag(found), np.ones(width))
    assert np.array_equal(found, found.T)
    smallest = np.linalg.eigvalsh(matrix)[0]
    assert np.linalg.eigvalsh(found)[0] > -1e-8
    if smallest < 0:
        share = 1 / (1 - smallest)  # shrinking by this much makes the smallest eigenvalue zero
        shrunk = share * matrix + (1 - share) * np.eye(width)
        assert np.linalg.norm(found - matrix) <= np.linalg.norm(shrunk - matrix) * (1 + 1e-6)


def contradictory(strength: float, count: int = 300) -> np.ndarray:
    """Return three columns, two open at a time, whose pairwise correlations cannot hold together."""
    rng = np.random.default_rng(11)
    values = np.full((3 * count, 3), NAN)
    for part, (i, j, sign) in enumerate(((0, 1, 1), (1, 2, 1), (0, 2, -1))):
        here = slice(part * count, (part + 1) * count)
        common, noise = rng.normal(size=count), rng.normal(size=(count, 2))
        values[here, i] = strength * common + np.sqrt(1 - strength**2) * noise[:, 0]
        values[here, j] = sign * strength * common + np.sqrt(1 - strength**2) * noise[:, 1]
    return values


def test_contradictory_correlations_are_repaired_and_it_is_said():
    table = plain(contradictory(0.76))
    card = CorrelatedNoise(("A", "B", "C"), sd_ratio=0.5).card(table, EXACT)
    note = str(card.notes[0])
    eigenvalue = np.linalg.eigvalsh(Setting().engine.moments(table.values([*"ABC"])).correlations)[0]
    assert eigenvalue < -1e-3
    assert f"(smallest eigenvalue {eigenvalue:.3g}); repaired to the nearest correlation matrix" in note
    repaired = np.array(card.laws[0].noise.correlations)
    assert np.linalg.eigvalsh(repaired)[0] > -1e-12
    moved = np.abs(repaired - Setting().engine.moments(table.values([*"ABC"])).correlations).max()
    assert note.endswith(f"moving none by more than {moved:.3f}")
    assert moved <= 0.1
    assert np.allclose(card.laws[0].noise.sds, 0.5 * np.nanstd(table.values([*"ABC"]), axis=0, ddof=1))


def test_a_repair_that_moves_too_much_is_refused(messages):
    (problem,) = messages(
        lambda: CorrelatedNoise(("A", "B", "C"), sd_ratio=0.5).card(plain(contradictory(0.95)))
    )
    assert problem.startswith(
        "the correlations of pairwise-open records contradict each other (smallest eigenvalue -0"
    )
    assert problem.endswith("more than 0.1: mask these columns in separate groups")


def test_columns_never_open_together_have_uncorrelated_noise():
    values = numbers(60)
    values[:30, 0] = NAN
    values[30:, 1] = NAN
    card = CorrelatedNoise(("A", "B", "C"), sd_ratio=0.5).card(plain(values))
    assert card.laws[0].noise.correlations[0][1] == 0
    assert "columns 'A' and 'B' are too seldom open together: their noise is uncorrelated" in texts(
        card.notes
    )


def test_rounding_leaves_no_direction_without_its_noise():
    """0.997 rounded to 1 would release the difference of two columns without noise."""
    matrix = np.array([[1.0, 0.997], [0.997, 1.0]])
    rounded, shrunk = _on_steps(matrix, 0.01)
    assert rounded[0, 1] == 0.99
    assert shrunk == 0.01
    assert _on_steps(np.array([[1.0, 0.123], [0.123, 1.0]]), 0.01)[1] == 0


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(2, 8), st.floats(0.01, 1.0))
def test_rounded_correlations_keep_half_of_the_noise_in_every_direction(seed, width, own):
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(width, 2))
    covariance = factors @ factors.T + own * np.diag(rng.random(width))
    sds = np.sqrt(np.diag(covariance))
    matrix = covariance / np.outer(sds, sds)
    rounded, _ = _on_steps(matrix, 0.01)
    assert np.array_equal(rounded, np.round(rounded, 2))
    assert np.linalg.eigvalsh(rounded - matrix / 2)[0] >= -1e-12


def test_a_shrinking_is_said():
    common = np.random.default_rng(12).normal(size=6000)
    values = common[:, None] + 0.05 * np.random.default_rng(13).normal(size=(6000, 2))
    card = CorrelatedNoise(("A", "B"), sd_ratio=0.5).card(plain(values))
    assert card.laws[0].noise.correlations[0][1] == 0.99
    assert texts(card.notes) == (
        "correlations of the noise shrunk by 1% to stay consistent with steps of 0.01",
    )


def test_few_records_have_correlations_in_coarse_steps():
    common = np.random.default_rng(12).normal(size=400)
    values = common[:, None] + 0.05 * np.random.default_rng(13).normal(size=(400, 2))
    card = CorrelatedNoise(("A", "B"), sd_ratio=0.5).card(plain(values))
    assert card.laws[0].noise.correlations[0][1] == 0.95
    assert texts(card.notes) == (
        "correlations of the noise shrunk by 3% to stay consistent with steps of 0.05",
    )


def test_the_default_unit_lies_two_places_below_the_noise():
    assert default_unit(0.5) == Fraction(1, 1000)
    assert default_unit(23.0) == Fraction(1, 10)
    assert default_unit(99_999.0) == 100


def test_no_bit_of_a_card_depends_on_how_the_file_is_cut(holes):
    mask = CorrelatedNoise(("A", "B", "C"), sd_ratio=0.5, keep="moments")
    whole = mask.card(holes, EXACT)
    for seed in range(3):
        assert mask.card(holes, Setting(ChoppedEngine(pieces=5, seed=seed), exact=True)) == whole
    order = np.random.default_rng(1).permutation(len(holes))
    assert mask.card(holes.take(order), EXACT) == whole


@pytest.mark.parametrize("given", [{"A": (0, None)}, (0, None), [0, None], ("A", 0, None), (("A", 0, None),)])
def test_limits_of_one_column_may_be_given_in_any_natural_way(given):
    assert IndependentNoise("A", variance_ratio=0.1, limits=given).limits == (("A", 0, None),)


def test_limits_of_several_columns_are_given_by_name():
    mask = IndependentNoise(("A", "B"), variance_ratio=0.1, limits={"A": (0, None), "B": (None, 9.5)})
    assert mask.limits == (("A", 0, None), ("B", None, 9.5))
    with pytest.raises(BadPlan, match="several columns need their names"):
        IndependentNoise(("A", "B"), variance_ratio=0.1, limits=(0, None))


@pytest.mark.parametrize(
    "given",
    [
        {"A": 0},
        3,
        "A",
        {"A": ("low", "high")},
        {"A": (1, 2, 3)},
        (("A", 0),),
        {"A": (float("nan"), None)},
        {"A": (0, float("inf"))},
    ],
)
def test_limits_that_are_none_are_refused_in_one_sentence(given):
    with pytest.raises(BadPlan, match=r"limits are \{'column': \(low, high\)\}") as refusal:
        IndependentNoise("A", variance_ratio=0.1, limits=given)
    assert len(refusal.value.problems) == 1


def test_codes_on_both_sides_bound_the_unit_of_a_column_without_one():
    """Noise far larger than the room between two codes leaves values, and a unit that is fine against the room."""
    values = np.clip(np.random.default_rng(2).normal(size=300), -1.5, 1.5)
    column = Column("A", "continuous", frozenset({"key"}), top=1.5, bottom=-1.5)
    table = Table.from_frame(pa.table({"A": values}), Schema((column,)))
    (law,) = IndependentNoise("A", variance=1e8).card(table).laws
    assert law.outlets[0].unit == Fraction(1, 100)
    (law,) = IndependentNoise("A", variance=0.04).card(table).laws
    assert law.outlets[0].unit == Fraction(1, 1000)
