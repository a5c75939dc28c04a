"""The three shapes of work: right, and the same to the last bit however the records are cut or ordered."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from maskwell.engines import Engine, Moments
from maskwell.engines.local import Local
from maskwell.engines.random_parts import ChoppedEngine
from maskwell.errors import BadPlan

ENGINES: list[Engine] = [
    Local(),
    Local(chunk=1),
    Local(chunk=7),
    ChoppedEngine(),
    ChoppedEngine(pieces=1),
    ChoppedEngine(1000, seed=9),
]


def same_bits(one: Moments, other: Moments) -> bool:
    fields = ("counts", "means", "variances", "correlations", "low", "high")
    equal = all(getattr(one, name).tobytes() == getattr(other, name).tobytes() for name in fields)
    return equal and one.closed_pairs == other.closed_pairs


@pytest.fixture(scope="module")
def values() -> Any:
    """Columns on scales from 1e-8 to 1e8, correlated, with means far from zero."""
    rng = np.random.default_rng(11)
    shared = rng.standard_normal((200, 1))
    return (1e3 + shared + rng.standard_normal((200, 4))) * np.array([1e-8, 1.0, -30.0, 1e8])


@pytest.fixture(scope="module")
def gaps(values: Any) -> Any:
    """The same with closed values here and there."""
    out = values.copy()
    out[np.random.default_rng(12).random(out.shape) < 0.2] = np.nan
    return out


# --- moments


def test_moments_of_complete_data_are_those_of_numpy(values: Any):
    found = Local().moments(values)
    assert np.array_equal(found.counts, [200] * 4)
    assert np.allclose(found.means, values.mean(axis=0), rtol=1e-14)
    assert np.allclose(found.variances, values.var(axis=0, ddof=1), rtol=1e-10)
    assert np.allclose(found.sds, values.std(axis=0, ddof=1), rtol=1e-10)
    assert np.allclose(found.correlations, np.corrcoef(values.T), atol=1e-10)
    assert np.array_equal(found.low, values.min(axis=0))
    assert np.array_equal(found.high, values.max(axis=0))
    assert not found.closed_pairs


def test_moments_with_gaps_are_those_of_open_values_and_open_pairs(gaps: Any):
    found = Local().moments(gaps)
    assert np.array_equal(found.counts, (~np.isnan(gaps)).sum(axis=0))
    assert np.allclose(found.means, np.nanmean(gaps, axis=0), rtol=1e-14)
    assert np.allclose(found.variances, np.nanvar(gaps, axis=0, ddof=1), rtol=1e-10)
    for i in range(4):
        for j in range(i):
            both = ~np.isnan(gaps[:, [i, j]]).any(axis=1)
            expected = np.corrcoef(gaps[both][:, [i, j]].T)[0, 1]
            assert found.correlations[i, j] == found.correlations[j, i] == pytest.approx(expected, abs=1e-10)
    assert found.closed_pairs


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
def test_moments_are_the_same_bits_on_every_engine_and_in_every_order(engine: Engine, values: Any, gaps: Any):
    shuffled = np.random.default_rng(13).permutation(len(values))
    for data in (values, gaps):
        expected = Local().moments(data)
        assert same_bits(engine.moments(data), expected)
        assert same_bits(engine.moments(data[shuffled]), expected)
        assert same_bits(engine.moments(np.asfortranarray(data)), expected)


@given(
    arrays(np.float64, st.tuples(st.integers(1, 12), st.integers(1, 3)), elements=st.floats(-1e6, 1e6)),
    st.integers(0, 10**6),
)
def test_means_are_right_and_no_bit_depends_on_the_order(values: Any, seed: int):
    found = Local().moments(values)
    exact = [sum(map(Fraction, column)) / len(values) for column in values.T.tolist()]
    size = max(1e-300, float(np.abs(values).max()))
    assert np.abs(found.means - np.array([float(mean) for mean in exact])).max() <= 1e-15 * size
    shuffled = np.random.default_rng(seed).permutation(len(values))
    assert same_bits(ChoppedEngine(3, seed=seed).moments(values[shuffled]), found)


def test_moments_of_next_to_nothing_are_defined_or_nan():
    one = Local().moments(np.array([[2.0, 3.0]]))
    assert np.array_equal(one.means, [2.0, 3.0])
    assert np.array_equal(one.variances, [0.0, 0.0])
    assert np.isnan(one.correlations[0, 1])
    closed = Local().moments(np.array([[np.nan, 1.0], [np.nan, 2.0]]))
    assert np.array_equal(closed.counts, [0, 2])
    assert np.array_equal(closed.variances, [0.0, 0.5])
    assert np.isnan(closed.correlations[0, 1])
    assert np.array_equal(np.diag(closed.correlations), [1.0, 1.0])


def test_a_constant_column_has_no_variance_at_all():
    """A mean that is off by a rounding error must not make a variance."""
    values = np.full((1001, 2), 0.1)
    values[:, 1] = np.arange(1001)
    found = Local().moments(values)
    assert found.variances[0] == pytest.approx(0.0, abs=1e-30)
    assert found.low[0] == found.high[0] == 0.1


@pytest.mark.parametrize("closed", [1.0, np.nan])
@pytest.mark.parametrize("large", [1e152, 1e160, 1e300])
def test_numbers_whose_squares_overflow_are_refused(large: float, closed: float):
    with pytest.raises(BadPlan, match="rescale it"):
        Local().moments(np.array([[large, 1.0], [1.0, closed], [2.0, 3.0]]))


# --- per record


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
@pytest.mark.parametrize("count", [0, 1, 100])
def test_per_record_puts_every_answer_in_its_place_once(engine: Engine, count: int):
    seen: list[int] = []
    records = np.arange(count)

    def work(part: Any) -> Any:
        seen.extend(records[part].tolist())
        return np.column_stack([records[part], -records[part]]).astype(float)

    out = engine.per_record(work, count, 2)
    assert out.shape == (count, 2)
    assert np.array_equal(out, np.column_stack([records, -records]))
    assert sorted(seen) == records.tolist()


def test_local_chunks_have_at_most_65536_records():
    sizes: list[int] = []

    def work(part: Any) -> Any:
        sizes.append(part.stop - part.start)
        return np.zeros((sizes[-1], 1))

    Local().per_record(work, 150_000, 1)
    assert sizes == [65_536, 65_536, 18_928]


def test_chopped_pieces_are_scattered_and_the_same_for_a_seed():
    def pieces(seed: int) -> list[list[int]]:
        found: list[list[int]] = []

        def work(part: Any) -> Any:
            found.append(part.tolist())
            return np.zeros((len(part), 1))

        ChoppedEngine(3, seed=seed).per_record(work, 20, 1)
        return found

    assert pieces(1) == pieces(1)
    assert pieces(1) != pieces(2)
    assert [len(piece) for piece in pieces(1)] == [7, 7, 6]
    assert all(piece != sorted(piece) for piece in pieces(1))


# --- per block


@pytest.mark.parametrize("engine", ENGINES, ids=repr)
@given(blocks=st.lists(st.integers(-3, 3), max_size=30))
def test_per_block_gives_each_block_its_records_once(engine: Engine, blocks: list[int]):
    labels = np.array(blocks, np.int64)

    def work(records: Any) -> Any:
        assert len({*labels[records].tolist()}) == 1
        assert records.tolist() == sorted(records)
        return np.full((len(records), 1), float(len(records)))

    out = engine.per_block(work, labels, 1)
    assert out[:, 0].tolist() == [float(blocks.count(block)) for block in blocks]


def test_every_engine_offers_the_three_shapes():
    for engine in ENGINES:
        assert {"moments", "per_record", "per_block"} <= set(dir(engine))
