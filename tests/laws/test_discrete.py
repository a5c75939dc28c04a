from __future__ import annotations

import numpy as np
import pytest

from maskwell.keys import Key, Stream
from maskwell.laws import Classes, RankSwapped, Transition
from maskwell.schema import Column

from .conftest import NAN, stream_of

TABLE = Transition(("a",), ("x", "y", "z"), ("u", "v"), ((0.9, 0.1), (0.25, 0.75), (0.0, 1.0)))


def test_shares_of_released_categories_are_those_of_the_table():
    x = np.repeat([0.0, 1.0, 2.0], 30_000)[:, None]
    z = TABLE.draw(x, stream_of(len(x)))
    for code, row in enumerate(TABLE.matrix):
        share = np.mean(z[x[:, 0] == code] == 1)
        assert abs(share - row[1]) <= 4 * np.sqrt(row[1] * row[0] / 30_000)


def test_probabilities_are_those_of_the_table():
    x, z = np.array([[0.0], [1.0], [2.0], [NAN]]), np.array([[1.0], [0.0], [0.0], [NAN]])
    assert TABLE.logpdf(z, x).tolist() == [np.log(0.1), np.log(0.25), -np.inf, 0]


def test_tables_multiply():
    later = Transition(("a",), ("u", "v"), ("u", "v"), ((0.5, 0.5), (0.1, 0.9)))
    both = TABLE.then(later)
    assert np.allclose(both.matrix, np.array(TABLE.matrix) @ np.array(later.matrix))
    assert (both.true, both.released_as) == (("x", "y", "z"), ("u", "v"))
    assert later.then(TABLE) is None


def test_labels_of_categories_that_cannot_occur_do_not_leave():
    column = Column("a", "category", categories=("x", "y", "z"), labels=(("x", "one"), ("v", "two")))
    released = TABLE.released(column)
    assert released.categories == ("u", "v")
    assert released.labels == (("v", "two"),)


def test_a_value_on_a_break_belongs_to_the_class_above():
    law = Classes(("a",), (0.0, 10.0), ("below 0", "0 to below 10", "10 and over"))
    x = np.array([[-0.1], [0.0], [9.99], [10.0], [NAN]])
    z = law.draw(x, stream_of(5))
    assert np.array_equal(z[:, 0], [0, 1, 1, 2, np.nan], equal_nan=True)
    assert law.logpdf(z, x).tolist() == [0] * 5
    assert law.logpdf((z + 1) % 3, x).tolist() == [-np.inf] * 4 + [0]
    column = Column("a", "integer", unit=5, top=99, bottom=-5, missing=(-9,), labels=(("3", "three"),))
    released = law.released(column)
    assert (released.kind, released.categories, released.missing) == ("category", law.labels, ("-9",))
    assert (released.unit, released.top, released.bottom, released.labels) == (None, None, None, ())


@pytest.fixture
def swapped():
    x = np.random.default_rng(3).normal(size=(2000, 2))
    x[:, 0] = x[:, 0].round(1)
    x[::7, 0] = np.nan
    law = RankSwapped(("a", "b"), 0.05)
    return law, x, law.draw(x, stream_of(len(x)))


def test_an_exchange_keeps_every_marginal_and_every_closed_value(swapped):
    law, x, z = swapped
    assert np.array_equal(np.isnan(z), np.isnan(x))
    for j in range(2):
        assert np.array_equal(np.sort(z[:, j]), np.sort(x[:, j]), equal_nan=True)
    assert np.count_nonzero(z[:, 1] == x[:, 1]) <= law.window_ratio * len(
        x
    )  # only the last may find no partner


def test_an_exchange_stays_within_the_window(swapped):
    law, x, z = swapped
    for j in range(2):
        here = ~np.isnan(x[:, j])
        ranks = np.sort(x[here, j])
        window = int(law.window_ratio * here.sum())
        low = np.searchsorted(ranks, z[here, j], side="left")
        high = np.searchsorted(ranks, z[here, j], side="right") - 1
        mine_low = np.searchsorted(ranks, x[here, j], side="left")
        mine_high = np.searchsorted(ranks, x[here, j], side="right") - 1
        assert np.maximum(low - mine_high, mine_low - high).max() <= window


def test_an_exchange_does_not_depend_on_the_order_of_records(swapped):
    law, x, z = swapped
    order = np.random.default_rng(4).permutation(len(x))
    again = law.draw(x[order], stream_of(len(x)).at(order))
    assert np.array_equal(again, z[order], equal_nan=True)
    other = law.draw(x, Stream(Key.from_seed(99), "tests", "0", stream_of(len(x)).blocks))
    assert not np.array_equal(other, z, equal_nan=True)


def test_an_exchange_has_no_density_and_says_so(swapped):
    law, _, _ = swapped
    assert not law.has_density
    assert law.whole_file
    assert RankSwapped.from_dict(law.to_dict()) == law
    column = Column("a", "integer")
    assert law.released(column) == column
