"""Nested releases: what the second adds, what it refuses, and that both together tell no more than the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from maskwell.errors import BadPlan
from maskwell.keys import Key, Stream
from maskwell.laws.chain import ChainedLaw, stages_of
from maskwell.masking import Masking, apply
from maskwell.masks import (
    Chain,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
    Pram,
)
from maskwell.notes import Note, has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

MakeAmounts = Callable[..., Table]
AB = ("A", "B")


def independent(*variances: float, **options: Any) -> IndependentNoise:
    return IndependentNoise(AB[: len(variances)], variance=variances, **options)


def noise(masking: Masking, names: tuple[str, ...] = AB) -> Any:
    return masking.masked.values(names) - masking.truth.values(names)


def error_left(x: Any, alone: list[Any], joined: list[Any]) -> float:
    """The mean squared error of the best linear estimate of x from all releases, over that from some of them."""

    def error(*regressors: Any) -> float:
        design = np.column_stack([np.ones(len(x)), *regressors])
        residual = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
        return float(residual @ residual / (len(x) - design.shape[1]))

    return error(*alone, *joined) / error(*alone)


# --- what joining two releases tells


@pytest.fixture(scope="module")
def many(make_amounts: MakeAmounts) -> Table:
    return make_amounts(20_000)


def monte_carlo_slack(records: int, regressors: int) -> float:
    """Four standard errors of the ratio when the further regressors tell nothing: R^2 is a chi-square over n."""
    return (regressors + 4 * np.sqrt(2 * regressors)) / records


def test_a_nested_release_tells_nothing_more_and_fresh_noise_would(many: Table, study_key: Key):
    first = apply(independent(0.5, 0.5), many, key=study_key)
    nested = apply(independent(1.0, 1.0), many, earlier=first)
    fresh = apply(independent(1.0, 1.0), many, key=Key.from_seed(2))
    (x, _), (z1, _), (z2, _), (other, _) = (
        table.values(AB).T for table in (many, first.masked, nested.masked, fresh.masked)
    )
    assert abs(error_left(x, [z1], [z2]) - 1) < monte_carlo_slack(len(many), 1)
    # precision 1 + 1/0.5 alone, + 1/1 with fresh noise
    expected = (1 + 2) / (1 + 2 + 1)
    assert error_left(x, [z1], [other]) == pytest.approx(expected, abs=4 * 2 * np.sqrt(2 / len(many)))


def test_a_chain_of_five_correlated_releases_tells_no_more_than_the_first(many: Table, study_key: Key):
    """Every column, estimated from all columns of all releases; fresh noise would leave a third of the error."""
    releases = [apply(CorrelatedNoise(AB, sd_ratio=0.7), many, key=study_key)]
    for ratio in (0.9, 1.1, 1.3, 1.5):
        releases.append(apply(CorrelatedNoise(AB, sd_ratio=ratio), many, earlier=releases[-1]))
    first, *later = ([*masking.masked.values(AB).T] for masking in releases)
    fresh = [
        [*apply(CorrelatedNoise(AB, sd_ratio=1.0), many, key=Key.from_seed(i)).masked.values(AB).T]
        for i in range(4)
    ]
    for x in many.values(AB).T:
        assert abs(error_left(x, first, [*chain(*later)]) - 1) < monte_carlo_slack(len(many), 8)
        assert error_left(x, first, [*chain(*fresh)]) < 0.5


def test_the_same_key_without_earlier_gives_everything_away(many: Table, study_key: Key):
    """Why `apply` says never to use a key twice: the same noise at two scales cancels."""
    one, two = (apply(independent(v), many, key=study_key).masked.values(["A"])[:, 0] for v in (0.25, 1.0))
    assert error_left(many.values(["A"])[:, 0], [one], [two]) < 1e-4


@pytest.mark.parametrize(("unit", "bound"), [(0.5, 0.92), (0.05, 0.9991)])
def test_rounding_gives_back_no_more_than_the_bound(many: Table, study_key: Key, unit: float, bound: float):
    """Noise of sd 0.5 on a unit of the same size, and of a tenth: the bound is v / (v + u^2 / 12)."""
    assert bound == pytest.approx(0.25 / (0.25 + unit**2 / 12), abs=4e-3)
    columns = [replace(column, unit=unit if column.is_number else None) for column in many.schema.columns]
    table = replace(many, schema=Schema(tuple(columns)))
    first = apply(independent(0.25), table, key=study_key)
    second = apply(independent(0.5), table, earlier=first)
    x, z1, z2 = (part.values(["A"])[:, 0] for part in (table, first.masked, second.masked))
    assert (
        bound - monte_carlo_slack(len(many), 1)
        < error_left(x, [z1], [z2])
        < 1 + monte_carlo_slack(len(many), 1)
    )


# --- what the second release adds


def test_the_increment_is_independent_of_truth_and_first_noise_and_has_the_planned_size(
    many: Table, study_key: Key
):
    first = apply(independent(0.5, 0.5), many, key=study_key)
    second = apply(independent(1.0, 2.0), many, earlier=first)
    extra = second.masked.values(AB) - first.masked.values(AB)
    assert np.var(extra, axis=0) == pytest.approx([0.5, 1.5], rel=4 * np.sqrt(2 / len(many)))
    together = np.corrcoef(np.column_stack([extra, noise(first), many.values(AB)]).T)
    assert np.abs(together[:2, 2:]).max() < 4 / np.sqrt(len(many))
    assert abs(together[0, 1]) < 4 / np.sqrt(len(many))
    assert np.cov(noise(second).T).diagonal() == pytest.approx([1.0, 2.0], rel=4 * np.sqrt(2 / len(many)))


def test_the_public_card_shows_one_law_and_the_private_one_its_stages(many: Table, study_key: Key):
    second = apply(independent(1.0, 1.0), many, earlier=apply(independent(0.5, 0.5), many, key=study_key))
    assert [label.split()[0] for label, _ in stages_of(second.card.laws[0])] == ["0", "nested"]
    assert not isinstance(second.release.card.laws[0], ChainedLaw)
    assert second.release.card.laws[0].noise.covariance.diagonal() == pytest.approx([1.0, 1.0])
    assert second.number == 2


def test_the_same_plan_keeps_the_law_and_every_bit_of_the_noise(many: Table, study_key: Key):
    plan = CorrelatedNoise(AB, sd_ratio=0.5)
    first = apply(plan, many, key=study_key)
    fewer = many.take(np.arange(0, len(many), 2))
    again = apply(plan, fewer, earlier=first)
    assert again.card.laws == first.card.laws
    assert again.masked == first.masked.take(np.arange(0, len(many), 2))
    assert has_code(again.notes, "masking.same_plan")


def test_another_processor_draws_the_same_increment(
    make_amounts: MakeAmounts, study_key: Key, monkeypatch: pytest.MonkeyPatch
):
    """Two increments of one record by one key would average out; eigenvectors differ in their last bits by machine."""
    table = make_amounts(500)
    first = apply(CorrelatedNoise(AB, sd_ratio=0.7), table, key=study_key)

    def next_year() -> Masking:
        return apply(CorrelatedNoise(AB, sd_ratio=1.0), table, earlier=first)

    here, eigh = next_year(), np.linalg.eigh

    def elsewhere(matrix: Any) -> Any:
        values, vectors = eigh(matrix)
        return values, np.nextafter(vectors, 2)

    monkeypatch.setattr(np.linalg, "eigh", elsewhere)
    there = next_year()
    assert there.card.to_json() != here.card.to_json()  # the private card has these last bits
    assert np.abs(noise(there) - noise(here)).max() <= 1e-9 * np.abs(noise(here)).max()
    assert np.array_equal(there.order, here.order)
    assert there.release.table.schema == here.release.table.schema


def test_stages_share_no_words(many: Table, study_key: Key):
    """Three stages of the same size on one column: variances add up, where shared words would give nine times one."""
    stage = independent(1.0)
    chained = apply(Chain((stage, stage, stage)), many, key=study_key)
    nested = apply(independent(4.0), many, earlier=chained)
    assert np.var(noise(chained, ("A",))) == pytest.approx(3.0, rel=4 * np.sqrt(2 / len(many)))
    assert np.var(noise(nested, ("A",))) == pytest.approx(4.0, rel=4 * np.sqrt(2 / len(many)))
    labels = [label for label, _ in stages_of(nested.card.laws[0])]
    stream = Stream(study_key, "default", "", nested.blocks)
    drawn = [stream.staged(label).normals("A") for label in labels]
    assert len(labels) == 4
    assert np.abs(np.corrcoef(drawn)[np.triu_indices(4, 1)]).max() < 4 / np.sqrt(len(many))


def test_noise_that_comes_too_late_is_said(many: Table, study_key: Key):
    first = apply(independent(0.5), many, key=study_key)
    second = apply(Chain((independent(0.5), IndependentNoise("B", variance=1.0))), many, earlier=first)
    assert Note("masking.shown_before", {"columns": ("B",)}) in second.notes


def test_rounding_alone_is_no_masking(make_amounts: MakeAmounts, study_key: Key):
    """A column that was only put on its unit may leave as it is when its values are on the unit by themselves."""
    table = make_amounts(300)
    rough = replace(table, schema=table.schema.changed({"B": replace(table.schema["B"], unit=0.5)}))
    first = apply(independent(0.5), rough, key=study_key)
    assert first.card.columns == ("A", "B")
    second = apply(independent(0.5), table, earlier=first)
    assert second.card.columns == ("A",)
    assert second.past.cells == {}
    assert second.past.card.laws == ()


def test_order_and_ids_are_others_in_every_release(many: Table, study_key: Key):
    plan = independent(0.5)
    first = apply(plan, many, key=study_key)
    second = apply(plan, many, earlier=first)
    assert not np.array_equal(first.order, second.order)
    ids = [set(masking.release.table.array("ID").to_pylist()) for masking in (first, second)]
    assert not ids[0] & ids[1]


def test_two_releases_nested_in_one_share_no_words(many: Table, study_key: Key):
    """Else their difference would give their increments away, and with them the release they are nested in."""
    hidden = apply(independent(0.25), many, key=study_key)
    one, two = (apply(independent(v), many, earlier=hidden) for v in (0.5, 1.0))
    increments = [(m.masked.values(["A"]) - hidden.masked.values(["A"]))[:, 0] for m in (one, two)]
    assert abs(np.corrcoef(increments)[0, 1]) < 4 / np.sqrt(len(many))


def test_columns_first_masked_in_two_releases_share_no_words(many: Table, study_key: Key):
    """Two laws of a column that the release they are nested in did not have: one scale must not cancel the other."""
    first = apply(independent(1.0), many.select(["ID", "A"]), key=study_key)
    one, two = (
        apply(Chain((independent(1.0), IndependentNoise("B", variance=v))), many, earlier=first)
        for v in (1.0, 0.25)
    )
    drawn = [noise(masking, ("B",))[:, 0] for masking in (one, two)]
    assert abs(np.corrcoef(drawn)[0, 1]) < 4 / np.sqrt(len(many))
    assert np.var(drawn, axis=1) == pytest.approx([1.0, 0.25], rel=4 * np.sqrt(2 / len(many)))
    assert not has_code(one.notes, "masking.several_stages")


def test_a_column_that_skips_a_release_is_nested_in_its_last_law(many: Table, study_key: Key):
    """All three releases together tell of it what the first alone did."""
    both = [Chain((independent(v), IndependentNoise("B", variance=v))) for v in (0.5, 1.0)]
    first = apply(both[0], many, key=study_key)
    second = apply(independent(0.5), many.select(["ID", "A"]), earlier=first)
    third = apply(both[1], many, earlier=apply(independent(0.7), many.select(["ID", "A"]), earlier=second))
    assert [law.columns for law in second.past.card.laws] == [("B",)]
    assert third.past.card.laws == ()
    x, z1, z3 = (part.values(["B"])[:, 0] for part in (many, first.masked, third.masked))
    assert np.var(z3 - z1) == pytest.approx(0.5, rel=4 * np.sqrt(2 / len(many)))
    assert abs(error_left(x, [z1], [z3]) - 1) < monte_carlo_slack(len(many), 1)


def test_a_column_once_shown_in_clear_is_said_whenever_it_returns(many: Table, study_key: Key):
    first = apply(independent(0.5), many, key=study_key)
    second = apply(independent(0.5), many.select(["ID", "A"]), earlier=first)
    third = apply(Chain((independent(0.5), IndependentNoise("B", variance=1.0))), many, earlier=second)
    assert Note("masking.shown_before", {"columns": ("B",)}) in third.notes


def test_a_column_may_join_the_noise_and_the_order_of_columns_is_free(
    make_amounts: MakeAmounts, study_key: Key
):
    table = make_amounts(300, names="CAB")
    first = apply(CorrelatedNoise(("C", "A"), sd_ratio=0.3), table, key=study_key)
    second = apply(CorrelatedNoise(("A", "B", "C"), sd_ratio=0.6), table, earlier=first)
    assert second.card.columns == ("A", "B", "C")
    stage = dict(stages_of(second.card.laws[0]))["0"]
    old = first.card.laws[0].noise.covariance
    assert stage.noise.covariance[np.ix_([2, 0], [2, 0])] == pytest.approx(old)
    assert not stage.noise.covariance[1].any()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (MixtureNoise(AB, 0.5, 0.1), MixtureNoise(AB, 0.75, 0.35)),
        (Chain((independent(0.2, 0.2), independent(0.3, 0.3))), independent(0.9, 0.9)),
        (independent(0.2, 0.2), Chain((independent(0.2, 0.2), independent(0.3, 0.3)))),
        (
            IndependentNoise("A", variance=0.2, transform="log", shift=9),
            IndependentNoise("A", variance=0.4, transform="log", shift=9),
        ),
    ],
)
def test_other_laws_that_can_be_nested(many: Table, study_key: Key, before: Any, after: Any):
    first = apply(before, many, key=study_key, exact=True)
    second = apply(after, many, earlier=first, exact=True)
    x, z1, z2 = (part.values(["A"])[:, 0] for part in (many, first.masked, second.masked))
    assert np.var(z2 - x) > np.var(z1 - x)
    assert abs(error_left(x, [z1, z1**2, z1**3], [z2]) - 1) < 2 * monte_carlo_slack(len(many), 1)


# --- categories and classes


@pytest.fixture
def categories(study_key: Key) -> Table:
    schema = Schema(
        (Column("ID", "text", frozenset({"id"})), Column("C", "category", categories=tuple("abcd")))
    )
    drawn = np.random.default_rng(8).choice(list("abcd"), 6000, p=[0.4, 0.3, 0.2, 0.1])
    return Table.from_frame(pa.table({"ID": [f"{i}" for i in range(6000)], "C": drawn}), schema)


def test_categories_change_further_from_what_was_released(categories: Table, study_key: Key):
    """Given the first release, the second does not depend on the truth: one table for each released category."""
    first = apply(Pram("C", stay=0.8), categories, key=study_key)
    second = apply(Pram("C", stay=0.6), categories, earlier=first)
    x, z1, z2 = (part.values(["C"])[:, 0] for part in (categories, first.masked, second.masked))
    stays = np.mean(z2 == x)
    assert stays == pytest.approx(0.6, abs=4 * np.sqrt(0.24 / 6000))
    for released in range(4):
        true = z1 == released
        rates = [
            np.mean(z2[true & (x == released)] == released),
            np.mean(z2[true & (x != released)] == released),
        ]
        sizes = [np.count_nonzero(true & (x == released)), np.count_nonzero(true & (x != released))]
        assert abs(rates[0] - rates[1]) < 4 * np.sqrt(0.25 * (1 / sizes[0] + 1 / sizes[1]))


def test_coarser_groups_may_follow_finer_ones_and_not_the_reverse(categories: Table, study_key: Key):
    fine = Grouping("C", groups=(("ab", ("a", "b")), ("c", ("c",)), ("d", ("d",))))
    coarse = Grouping("C", groups=(("ab", ("a", "b")), ("cd", ("c", "d"))))
    crossed = Grouping("C", groups=(("ac", ("a", "c")), ("b", ("b",)), ("d", ("d",))))
    first = apply(fine, categories, key=study_key)
    second = apply(coarse, categories, earlier=first)
    assert set(second.masked.array("C").to_pylist()) == {"ab", "cd"}
    for other, earlier in ((fine, second), (crossed, first)):
        with pytest.raises(BadPlan, match="change of 'C' is not the earlier one"):
            apply(other, categories, earlier=earlier)


def test_coarser_classes_may_follow_finer_ones_and_not_the_reverse(many: Table, study_key: Key):
    fine, coarse, other = (Grouping("A", breaks=breaks) for breaks in ((-1, 0, 1), (0,), (0, 0.5)))
    first = apply(fine, many, key=study_key)
    assert set(apply(coarse, many, earlier=first).masked.array("A").to_pylist()) == {"below 0", "0 and over"}
    with pytest.raises(BadPlan, match="of another kind"):
        apply(other, many, earlier=first)
