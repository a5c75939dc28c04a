from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from maskwell.laws import Classes, Transition
from maskwell.masking import Setting, apply
from maskwell.masks import CodeNoise, Grouping, Pram
from maskwell.schema import Column

from .conftest import EXACT, table_of

CATEGORIES = ("none", "some", "many")
SHARES = (0.6, 0.399, 0.001)


def answers(count: int = 30_000, shares=SHARES, **described):
    codes = np.random.default_rng(8).choice(len(shares), size=count, p=shares)
    names = np.array([*CATEGORIES, "x", "y"], object)[codes]
    names[::50] = None
    return table_of(
        Column("Q", "category", categories=CATEGORIES[: len(shares)], **described), Q=names.tolist()
    )


def test_codes_are_noised_and_clamped_to_the_end_codes():
    table = answers()
    masking = apply(CodeNoise("Q", variance=0.49), table, seed=1)
    z, x = masking.masked.values(["Q"])[:, 0], table.values(["Q"])[:, 0]
    assert np.array_equal(np.isnan(z), np.isnan(x))
    assert (np.nanmin(z), np.nanmax(z)) == (0, 2)
    column = masking.masked.schema["Q"]
    assert (column.kind, column.unit) == ("continuous", 0.01)
    low = z[x == 0] == 0
    assert abs(low.mean() - norm.cdf(0.005 / 0.7)) < 4 * low.std() / np.sqrt(low.size)
    middle = z[(x == 1) & (z > 0) & (z < 2)]
    assert abs(middle.mean() - 1) < 4 * middle.std() / np.sqrt(middle.size)
    assert np.isfinite(masking.card.logpdf(masking.masked, table)).all()


def test_codes_rounded_to_categories_have_the_probabilities_of_their_intervals():
    table = answers()
    masking = apply(CodeNoise("Q", variance=0.49, rounded=True), table, seed=1)
    assert masking.masked.schema["Q"] == table.schema["Q"]
    z, x = masking.masked.values(["Q"])[:, 0], table.values(["Q"])[:, 0]
    edges = [-np.inf, 0.5, 1.5, np.inf]
    for true in (0, 1):
        for code in range(3):
            p = norm.cdf((edges[code + 1] - true) / 0.7) - norm.cdf((edges[code] - true) / 0.7)
            share = np.mean(z[x == true] == code)
            assert abs(share - p) <= 4 * np.sqrt(p * (1 - p) / np.count_nonzero(x == true))
            law = masking.card.laws[0]
            assert law.logpdf(np.array([[float(code)]]), np.array([[float(true)]]))[0] == pytest.approx(
                np.log(p)
            )


def test_a_variance_for_each_category_which_may_be_zero():
    table = answers(shares=(0.3, 0.3, 0.4))
    masking = apply(CodeNoise("Q", variance=[0.25, 0.0, 1.0]), table, seed=1)
    z, x = masking.masked.values(["Q"])[:, 0], table.values(["Q"])[:, 0]
    assert np.all(z[x == 1] == 1)
    for true, sd in ((0, 0.5), (2, 1.0)):
        end = np.mean(z[x == true] == true)
        p = norm.cdf(0.005 / sd)
        assert abs(end - p) < 4 * np.sqrt(p * (1 - p) / np.count_nonzero(x == true))
    log = masking.card.logpdf(masking.masked, table)
    assert np.isfinite(log).all()
    law = masking.card.laws[0]
    assert law.logpdf(np.array([[0.5]]), np.array([[1.0]]))[0] == -np.inf
    assert law.logpdf(np.array([[1.0]]), np.array([[1.0]]))[0] == pytest.approx(-np.log(0.01))


def test_codes_step_off_missing_codes_that_are_numbers():
    table = table_of(
        Column("Q", "category", categories=("a", "b", "c"), missing=("0", "1.5", "?")),
        Q=["a", "b", "c", "0", "?"] * 200,
    )
    masking = apply(CodeNoise("Q", variance=1.0), table, seed=1)
    outlet = masking.card.laws[0].outlets[0]
    assert (outlet.low, outlet.high, outlet.avoid) == (0.01, 2.0, (0.0, 1.5))
    z = masking.masked.values(["Q"])[:, 0]
    assert not np.isin(z, [0, 1.5]).any()
    assert np.array_equal(masking.masked.status("Q"), table.status("Q"))
    assert np.isfinite(masking.card.logpdf(masking.masked, table)).all()


@pytest.mark.parametrize("setting", [Setting(), EXACT], ids=["rounded", "exact"])
@pytest.mark.parametrize("stay", [0.0, 0.5, 0.9])
def test_invariant_change_keeps_the_shares(setting, stay):
    """Rare categories too: a table rounded to three decimals would lose a part of them."""
    table = answers(200_000)
    law = Pram("Q", stay=stay, invariant=True).card(table, setting).laws[0]
    x = table.values(["Q"])[:, 0]
    counts = np.bincount(x[~np.isnan(x)].astype(int), minlength=3)
    matrix = np.array(law.matrix)
    assert np.allclose(matrix.sum(axis=1), 1, atol=1e-15)
    errors = np.sqrt(counts @ (matrix * (1 - matrix)))
    moved = counts @ matrix - counts
    if setting.exact:
        assert np.abs(moved).max() < 1e-9 * counts.sum()
    assert np.all(np.abs(moved) <= np.maximum(errors, 10))
    z = apply(Pram("Q", stay=stay, invariant=True), table, seed=1, exact=setting.exact).masked.values(["Q"])[
        :, 0
    ]
    after = np.bincount(z[~np.isnan(z)].astype(int), minlength=3)
    assert np.all(np.abs(after - counts - moved) <= 4 * errors)


COUNTS = st.lists(st.integers(0, 60) | st.integers(0, 10**6), min_size=2, max_size=6).filter(any)


def tables_with_zeros_and_ones(seed: int, width: int, stay: float) -> np.ndarray:
    """Return a random table some rows of which are sure, and some cells of which are impossible."""
    rng = np.random.default_rng(seed)
    base = rng.dirichlet(np.ones(width), size=width) * (rng.random((width, width)) < 0.6)
    base = base * (1 - stay) + (stay + 1e-3) * np.eye(width)
    sure = rng.random(width) < 0.3
    base[sure] = np.eye(width)[rng.integers(width, size=width)][sure]
    return base / base.sum(axis=1, keepdims=True)


@settings(max_examples=150)
@given(counts=COUNTS, stay=st.floats(0, 0.99), seed=st.integers(0, 10**6))
def test_invariant_tables_keep_the_true_shares_within_the_steps(counts, stay, seed):
    from maskwell.masks.category import _invariant, _rounded_shares, _steps

    true, width = np.array(counts, float), len(counts)
    base = tables_with_zeros_and_ones(seed, width, stay)
    exact, rounded = _invariant(base, true / true.sum()), _invariant(base, _rounded_shares(base, true))
    for matrix in (exact, rounded):
        assert matrix.min() >= 0
        assert np.allclose(matrix.sum(axis=1), 1, atol=1e-12)
    assert np.allclose(true @ exact, true, atol=1e-9 * true.sum())
    steps = _steps(base, true)
    assert steps.min() >= 10
    assert np.all(steps >= (1 - 1e-9) * np.sqrt(true @ np.clip(exact * (1 - exact), 0, None)))
    assert np.all(_rounded_shares(base, true) > 0)
    assert np.abs(true @ rounded - true).max() <= steps.sum()


def test_a_category_that_never_changes_keeps_its_share():
    """A sure column has no noise of its own; its share must not be rounded away for that."""
    table = answers(shares=(0.4, 0.4, 0.2))
    matrix = ((0.9, 0.1, 0.0), (0.1, 0.9, 0.0), (0.0, 0.0, 1.0))
    masking = apply(Pram("Q", matrix=matrix, invariant=True), table, seed=1)
    assert np.allclose(masking.card.laws[0].matrix, ((0.82, 0.18, 0), (0.18, 0.82, 0), (0, 0, 1)), atol=0.01)
    z, x = masking.masked.values(["Q"])[:, 0], table.values(["Q"])[:, 0]
    assert np.array_equal(z == 2, x == 2)
    error = np.sqrt(0.18 * 0.82 * np.count_nonzero(x < 2))
    assert abs(np.count_nonzero(z == 0) - np.count_nonzero(x == 0)) <= 4 * error + 30


def test_a_table_that_changes_nothing_is_refused(messages):
    nothing = "it would change nothing, so every value would leave as it is; give smaller chances to stay"
    for invariant in (False, True):
        assert messages(lambda i=invariant: Pram("Q", matrix=np.eye(3), invariant=i)) == (
            f"the matrix of Pram: {nothing}",
        )
    swapped = ((0, 1, 0), (1, 0, 0), (0, 0, 1))
    assert messages(lambda: Pram("Q", matrix=swapped, invariant=True)) == (f"the matrix of Pram: {nothing}",)
    assert Pram("Q", matrix=swapped).card(answers()).laws[0].matrix[0] == (0, 1, 0)
    others = ((1, 0, 0), (0, 1, 0), (0.5, 0.5, 0))
    table = answers(shares=(0.5, 0.5, 0.0))
    assert messages(lambda: Pram("Q", matrix=others).card(table)) == (f"column 'Q': {nothing}",)
    pair = table_of(Column("P", "category", categories=("a", "b")), P=["a", "b"] * 50)
    assert messages(lambda: Pram("P", stay=0.0, invariant=True).card(pair)) == (f"column 'P': {nothing}",)


def test_a_category_that_nobody_has_or_reaches_keeps_a_whole_row():
    table = answers(shares=(0.5, 0.5, 0.0))
    matrix = ((0.6, 0.4, 0.0), (0.4, 0.6, 0.0), (0.0, 0.0, 1.0))
    law = Pram("Q", matrix=matrix, invariant=True).card(table).laws[0]
    assert np.allclose(np.sum(law.matrix, axis=1), 1, atol=1e-15)
    assert np.array_equal(np.array(law.matrix)[:, 2], [0, 0, 1])


@pytest.mark.parametrize("count", [20, 100, 300, 1700, 5000])
def test_the_card_seldom_fixes_the_category_of_the_last_record(count):
    """Who knows all other records computes the card for each category of the last one, and compares.

    A count lies at the edge of a step of ten or more in at most one file of ten for each of four categories, so two
    given categories of the last record give the same card in at least eight files of ten.
    """
    mask, rng = Pram("Q", stay=0.6, invariant=True), np.random.default_rng(5)
    column, files = Column("Q", "category", categories=tuple("abcd")), 100
    same = np.zeros(files)
    for file in range(files):
        others = rng.choice(list("abcd"), size=count - 1, p=[0.4, 0.3, 0.2, 0.1]).tolist()
        cards = [mask.card(table_of(column, Q=[*others, last])).laws[0] for last in "abcd"]
        true = rng.choice(4, p=[0.4, 0.3, 0.2, 0.1])
        same[file] = np.mean([cards[true] == cards[i] for i in range(4) if i != true])
    assert same.mean() >= 0.8 - 4 * np.sqrt(0.8 * 0.2 / files)
    assert np.median(same) == 1.0


def test_a_category_of_one_record_does_not_show_on_the_card():
    column = Column("Q", "category", categories=("a", "b", "c"))
    with_one, without = ([*("ab" * 41), last] for last in "ca")
    laws = [
        Pram("Q", stay=0.8, invariant=True).card(table_of(column, Q=q)).laws[0] for q in (with_one, without)
    ]
    assert laws[0] == laws[1]
    assert min(map(min, laws[0].matrix)) > 0


def test_a_note_says_how_nearly_the_shares_of_a_small_file_are_kept():
    small = Pram("Q", stay=0.5, invariant=True).card(answers(60))
    note = str(small.notes[0])
    assert "column 'Q': the shares of its categories are invariant up to " in note
    assert note.endswith("because those in the card are rounded to steps of ten records or more")
    true = answers(60).values(["Q"])[:, 0]
    counts = np.bincount(true[~np.isnan(true)].astype(int), minlength=3)
    moved = np.abs(counts @ np.array(small.laws[0].matrix) - counts).max() / counts.sum()
    assert f"{100 * moved:.1g}%" in note
    assert Pram("Q", stay=0.5, invariant=True).card(answers(60), EXACT).notes == ()
    assert Pram("Q", stay=0.5, invariant=True).card(answers(200_000)).notes == ()


def test_one_more_record_leaves_the_rounded_table_as_it_is():
    table = answers(20_000)
    fewer = table.take(np.delete(np.arange(20_000), 1))
    laws = [Pram("Q", stay=0.8, invariant=True).card(t).laws[0] for t in (table, fewer)]
    assert laws[0] == laws[1]
    exact = [Pram("Q", stay=0.8, invariant=True).card(t, EXACT).laws[0] for t in (table, fewer)]
    assert exact[0] != exact[1]


def test_stay_and_matrix_are_taken_as_given():
    table = answers()
    law = Pram("Q", stay=0.8).card(table).laws[0]
    assert np.allclose(law.matrix, np.full((3, 3), 0.1) + 0.7 * np.eye(3))
    matrix = [[0.5, 0.5, 0], [0, 1, 0], [0.2, 0.2, 0.6]]
    assert Pram("Q", matrix=matrix).card(table).laws[0].matrix == tuple(
        tuple(map(float, row)) for row in matrix
    )
    z = apply(Pram("Q", matrix=matrix), table, seed=1).masked.values(["Q"])[:, 0]
    x = table.values(["Q"])[:, 0]
    assert np.all(z[x == 1] == 1)
    assert abs(np.mean(z[x == 0] == 1) - 0.5) < 4 * 0.5 / np.sqrt(np.count_nonzero(x == 0))


def test_groups_of_categories_join_their_members():
    table = answers(missing=("?",))
    mask = Grouping("Q", groups={"none": ["none"], "any": ["some", "many"]})
    masking = apply(mask, table, seed=1)
    law = masking.card.laws[0]
    assert isinstance(law, Transition)
    assert masking.masked.schema["Q"].categories == ("none", "any")
    z, x = masking.masked.values(["Q"])[:, 0], table.values(["Q"])[:, 0]
    assert np.array_equal(z, np.minimum(x, 1), equal_nan=True)
    assert np.array_equal(masking.card.logpdf(masking.masked, table), np.zeros(len(table)))


def test_coded_values_fall_into_the_end_classes():
    table = table_of(
        Column("A", "integer", top=100, bottom=0, missing=(-9,)), A=[0, 5, 20, 49, 50, 100, -9, None]
    )
    masking = apply(Grouping("A", breaks=[10, 50]), table, seed=1)
    assert isinstance(masking.card.laws[0], Classes)
    column = masking.masked.schema["A"]
    assert column.categories == ("below 10", "10 to below 50", "50 and over")
    assert np.array_equal(
        masking.masked.values(["A"])[:, 0], [0, 0, 1, 1, 2, 2, np.nan, np.nan], equal_nan=True
    )
    assert masking.masked.status("A").tolist() == [0, 0, 0, 0, 0, 0, 4, 1]
    assert np.array_equal(masking.card.logpdf(masking.masked, table), np.zeros(8))


def test_class_labels_tell_near_breaks_apart():
    table = table_of(Column("A", "continuous"), A=[1.0, 2.0])
    labels = Grouping("A", breaks=[1_000_000, 1_000_001, 1_000_001.5]).card(table).laws[0].labels
    assert labels == (
        "below 1000000",
        "1000000 to below 1000001",
        "1000001 to below 1000001.5",
        "1000001.5 and over",
    )


@pytest.mark.parametrize(
    ("mask", "expected"),
    [
        (
            lambda: CodeNoise((), variance=(0.0, 0.0), unit=0.3),
            (
                "a mask needs at least one column",
                "variance must be positive (one category may have 0, not all)",
                "unit must be 1 or a part of it, such as 0.5 or 0.01, so that codes lie on it",
            ),
        ),
        (
            lambda: CodeNoise("Q", variance=float("nan")),
            ("variance must be positive (one category may have 0, not all)",),
        ),
        (lambda: Pram("Q"), ("Pram: give exactly one of stay and matrix",)),
        (
            lambda: Pram("Q", stay=1.0, matrix=((0.5, 0.5),)),
            (
                "Pram: give exactly one of stay and matrix",
                "stay must lie from 0 to below 1",
                "the matrix of Pram must be square",
            ),
        ),
        (
            lambda: Pram("Q", matrix=((0.5, 0.4), (float("nan"), 1.0))),
            ("every row of the matrix must hold probabilities that sum to 1",),
        ),
        (
            lambda: Grouping("Q", breaks=(2, 1), groups={"a": ["b"]}),
            ("Grouping: give exactly one of breaks and groups", "breaks must be a rising list of numbers"),
        ),
        (lambda: Grouping("Q", groups=[("a", ["b"]), ("a", ["c"])]), ("group 'a' is named twice",)),
    ],
)
def test_a_plan_says_everything_that_is_wrong_with_it(mask, expected, messages):
    assert messages(mask) == expected


def test_what_the_data_do_not_allow_is_said(messages):
    table = table_of(
        Column("Q", "category", categories=CATEGORIES, missing=("any",)),
        Column("ONE", "category", categories=("a",)),
        Column("GONE", "category", categories=("a", "b")),
        Column("A", "integer", top=20, bottom=15),
        Q=["none", "some"],
        ONE=["a", "a"],
        GONE=[None, None],
        A=[16, 17],
    )
    empty = table_of(
        Column("GONE", "category", categories=("a", "b")), GONE=np.array([None, None], "O").tolist()
    )
    assert messages(lambda: CodeNoise(("Q", "ONE", "GONE"), variance=(1.0, 2.0)).card(table)) == (
        "column 'Q' has 3 categories, the plan 2 variances",
        "column 'ONE' has fewer than two categories: there is nothing to mask",
        "column 'GONE' has no open value to mask; drop it from the plan",
    )
    assert messages(lambda: Pram(("Q", "ONE"), matrix=((0.5, 0.5), (0.5, 0.5))).card(table)) == (
        "column 'Q' has 3 categories, the matrix 2 rows",
        "column 'ONE' has fewer than two categories: there is nothing to mask",
    )
    assert messages(lambda: Pram("GONE", stay=0.5, invariant=True).card(empty)) == (
        "column 'GONE' has no open value to mask; drop it from the plan",
    )
    groups = {"any": ["some", "some", "lots"], "none": ["none"]}
    assert messages(lambda: Grouping("Q", groups=groups).card(table)) == (
        "column 'Q': category 'some' is in two groups",
        "column 'Q' has no category 'lots'",
        "column 'Q': 1 categories are in no group",
        "column 'Q': group 'any' is a missing code",
    )
    assert messages(lambda: Grouping("A", breaks=(10, 30)).card(table)) == (
        "column 'A': the top code lies below the last break, so its class is unknown",
        "column 'A': the bottom code lies above the first break, so its class is unknown",
    )
