"""Record linkage against a table worked out by hand, and against plain loops over all pairs."""

from __future__ import annotations

from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.attacks import EM, Absolute, Exact, Fixed, Linkage, Relative
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.linkage import sorted_pairs
from maskwell.masking import Masking
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY, BLOCK = frozenset({"key"}), frozenset({"block"})


def masking_of(truth: pa.Table, masked: pa.Table, schema: Schema, order: list[int]) -> Masking:
    """Tie two tables: `order` has for each released record the number of its truth."""
    tables = [Table.from_frame(frame, schema) for frame in (truth, masked)]
    names = [frame["ID"].to_pylist() for frame in (truth, masked)]
    links = pa.table({"truth_id": [names[0][i] for i in order], "released_id": names[1]})
    return Masking.from_files(*tables, links)


# Four records, worked out by hand.
#
#        truth A    B              released A    B
#   t1       100   50         r1        111   21
#   t2       200    -         r2        190    -      - is missing
#   t3       300   90         r3        300   90      90 is the top code of B
#   t4         0   20         r4          1   21
#
# r1 belongs to t1, and so on. Values agree within 10% of the searching record's. From truth to release:
#
#       r1                                 r2                        r3                      r4
#   t1  A 11 > 10 no;  B 29 > 5 no  00     A 90 no;  B 50/- no  00   A no;  B 50/90 no  00   A no;        B 29 no  00
#   t2  A 89 > 20 no;  B -/21 no    00     A 10 <= 20;  -/-     11   A no;  B -/90 no   00   A no;        B no     00
#   t3  A 189 > 30 no; B 90/21 no   00     A no;  B 90/- no     00   A 0;   B 90/90     11   A no;        B no     00
#   t4  A 111 > 0 no;  B 1 <= 2     01     A no;  B 20/- no     00   A no;  B no        00   A 1 > 0 no;  B 1 <= 2 01
#
# so 12 pairs agree on nothing, none on A alone, 2 on B alone, 2 on both. From release to truth only r1 with t1 differs:
# A 11 <= 11.1 agrees, and its pattern is 10: 11, 1, 2, 2 pairs.
#
# Weights: A has m = 8/9, u = 1/9: agreement log2(8) = 3, disagreement log2((1/9)/(8/9)) = -3; B has m = 2/3, u = 1/3:
# 1 and -1. Scores: on nothing -4, A alone 2, B alone -2, both 4.

FOUR = Schema(
    (
        Column("ID", "text", frozenset({"id"})),
        Column("A", "integer", KEY),
        Column("B", "integer", KEY, top=90),
    )
)
BY_HAND = Fixed(m=(8 / 9, 2 / 3), u=(1 / 9, 1 / 3))


@pytest.fixture(scope="module")
def four() -> Masking:
    truth = pa.table({"ID": ["t1", "t2", "t3", "t4"], "A": [100, 200, 300, 0], "B": [50, None, 90, 20]})
    masked = pa.table({"ID": ["r1", "r2", "r3", "r4"], "A": [111, 190, 300, 1], "B": [21, None, 90, 21]})
    return masking_of(truth, masked, FOUR, [0, 1, 2, 3])


def test_four_records_by_hand_from_truth_to_release(four):
    risk, guess, _, _ = attack_by(Linkage(weights=BY_HAND), four)
    assert guess.figures["counts"].tolist() == [12, 0, 2, 2]
    assert guess.score == pytest.approx([-4, 4, 4, -2])
    assert guess.ties.tolist() == [4, 1, 1, 2]  # t1 is as unlike all four; t4 as like r1 as r4
    assert guess.candidates.tolist() == [4, 4, 4, 4]
    assert guess.found[1:3].tolist() == [1, 2]
    assert guess.found[3] in (0, 3)
    assert guess.second_score == pytest.approx([-4, -4, -4, -2])
    assert {one.name: one.links for one in risk.classes} == {
        "re-identification": 2,
        "questionable": 1,
        "false": 1,
        "no candidate": 0,
    }
    assert (risk.claims, risk.correct, risk.expected_correct, risk.rate) == (2, 2, 2.0, 0.5)
    assert risk.best_correct == pytest.approx(1 / 4 + 1 + 1 + 1 / 2)
    assert risk.baseline == pytest.approx(1 / 4)


def test_four_records_by_hand_from_release_to_truth(four):
    plan = Linkage(weights=BY_HAND, direction="to_original", claims="all links")
    risk, guess, _, _ = attack_by(plan, four)
    assert guess.figures["counts"].tolist() == [11, 1, 2, 2]
    assert guess.found.tolist() == [0, 1, 2, 3]
    assert guess.score == pytest.approx([2, 4, 4, -2])
    assert guess.second_score == pytest.approx([-2, -4, -4, -4])  # r1 agrees with t4 on B
    assert (risk.claims, risk.correct, risk.expected_correct) == (4, 4, 4.0)


def test_four_records_by_hand_one_to_one(four):
    # t2-r2 and t3-r3 have 4 each; of t1 and t4 one takes r1 and the other r4. t4 has -2 with either, t1 -4: in all 2.
    _, guess, _, _ = attack_by(Linkage(weights=BY_HAND, assignment="one-to-one"), four)
    assert guess.found[1:3].tolist() == [1, 2]
    assert sorted(guess.found[[0, 3]].tolist()) == [0, 3]
    assert guess.score == pytest.approx([-4, 4, 4, -2])


def test_a_step_of_em_by_hand():
    # 11, 1, 2, 2 pairs; m = 3/4, u = 1/4 for both fields, p = 1/10. The probability of a match is for
    #   both     .1 x 9/16 / (.1 x 9/16 + .9 x 1/16) = 1/2
    #   one      .1 x 3/16 / (.1 x 3/16 + .9 x 3/16) = 1/10
    #   none     .1 x 1/16 / (.1 x 1/16 + .9 x 9/16) = 1/82
    # so matches weigh 2/2 + (1 + 2)/10 + 11/82 = 1.3 + 11/82 of 16 pairs; of them 1 + .1 agree on A and 1 + .2 on B. Of
    # the rest 3 - 1.1 agree on A and 4 - 1.2 on B.
    fit = EM(0.75, 0.25, 0.1, starts=1, iterations=1).fit(np.array([11, 1, 2, 2]), 4)
    matches = 1.3 + 11 / 82
    assert fit.p == pytest.approx(matches / 16)
    assert fit.m == pytest.approx([1.1 / matches, 1.2 / matches])
    assert fit.u == pytest.approx([1.9 / (16 - matches), 2.8 / (16 - matches)])
    assert not fit.converged


# Plain loops over all pairs of small tables: blocks, every status, every rule, both directions.

SMALL = Schema(
    (
        Column("ID", "text", frozenset({"id"})),
        Column("HOME", "category", BLOCK, categories=("p", "q", "r")),
        Column("X", "continuous", KEY, top=50, bottom=-50, missing=(-99, 99)),
        Column("Y", "integer", KEY, missing=(-9,)),
        Column("C", "category", KEY, categories=("a", "b"), missing=("?",)),
    )
)
FIELDS = ("X", "Y", "C")
CLOSED = {"X": {50, -50, -99, 99, None}, "Y": {-9, None}, "C": {"?", None}}
RULES = (Relative(0.1), Relative(0.1, base="larger"), Relative(0.5, base="larger"), Absolute(1.0), Exact())
FEW = 6
EQUAL = Fixed((0.8,) * 3, (0.2,) * 3)  # patterns with as many agreements have the same score
DOUBLED = Fixed((0.8, 2 / 3, 2 / 3), (0.2, 1 / 3, 1 / 3))  # agreeing on X weighs as much as on Y and C
UNEQUAL = Fixed((0.9, 0.8, 0.7), (0.1, 0.3, 0.4))


class Row(NamedTuple):
    """A record as it is written."""

    HOME: str
    X: float | None
    Y: int | None
    C: str | None


rows = st.builds(
    Row,
    st.sampled_from("pqr"),
    st.sampled_from(
        [-20.0, -18.0, -1.0, -0.0, 0.0, 0.5, 9.0, 9.9, 10.0, 11.0, 50.0, -50.0, -99.0, 99.0, None]
    ),
    st.sampled_from([-11, -10, 0, 1, 2, -9, None]),
    st.sampled_from(["a", "b", "?", None]),
)


class Case(NamedTuple):
    """The intruder's records, the released ones, where each target stands in the truth (-1: not in it), and rules."""

    known: list[Row]
    released: list[Row]
    numbers: list[int]
    rules: dict[str, Any]
    weights: Fixed


@st.composite
def cases(draw: st.DrawFn) -> Case:
    released = draw(st.lists(rows, min_size=1, max_size=FEW))
    home = draw(st.sampled_from(released)).HOME  # one target at least has a candidate
    first = draw(rows)._replace(HOME=home)
    known = [first, *draw(st.lists(rows, max_size=FEW - 1))]
    places = draw(st.permutations(range(len(released)))) + [-1] * len(known)
    numbers = draw(st.permutations(places[: len(known)]))
    rules = {"X": draw(st.sampled_from(RULES)), "Y": draw(st.sampled_from(RULES)), "C": Exact()}
    return Case(known, released, list(numbers), rules, draw(st.sampled_from([EQUAL, DOUBLED, UNEQUAL])))


def frame(records: list[Row], names: list[str]) -> pa.Table:
    types = {"HOME": pa.string(), "X": pa.float64(), "Y": pa.int64(), "C": pa.string()}
    columns = {name: pa.array([getattr(r, name) for r in records], kind) for name, kind in types.items()}
    return pa.table({"ID": names, **columns})


def attacked(case: Case, **options: Any) -> tuple[Any, Any, Any]:
    """Attack through the public path; the truth is a copy of the release, whose values no intruder sees."""
    count = len(case.released)
    truth = frame(case.released, [f"t{i}" for i in range(count)])
    masked = frame(case.released, [f"r{i}" for i in range(count)])
    names = [f"t{i}" if i >= 0 else f"stranger {j}" for j, i in enumerate(case.numbers)]
    targets = Table.from_frame(frame(case.known, names), SMALL)
    plan = Linkage(rules=case.rules, weights=case.weights, **options)
    return attack_by(plan, masking_of(truth, masked, SMALL, list(range(count))), targets)[:3]


def agrees(name: str, rule: Any, searching: Any, found: Any) -> bool:
    """Whether two values as they are written agree."""
    if searching in CLOSED[name] or found in CLOSED[name]:
        return bool(searching == found)
    if isinstance(rule, Exact):
        return bool(searching == found)
    if isinstance(rule, Absolute):
        return bool(abs(searching - found) <= rule.amount)
    base = abs(searching) if rule.base == "target" else max(abs(searching), abs(found))
    return bool(abs(searching - found) <= rule.ratio * base)


def all_pairs(case: Case, direction: str) -> list[dict[int, int]]:
    """Return for each searcher its candidates and the pattern of each."""
    near, far = (case.known, case.released) if direction == "to_masked" else (case.released, case.known)
    out = []
    for one in near:
        patterns = {}
        for j, other in enumerate(far):
            if one.HOME == other.HOME:
                bits = (agrees(n, case.rules[n], getattr(one, n), getattr(other, n)) for n in FIELDS)
                patterns[j] = sum(bit << f for f, bit in enumerate(bits))
        out.append(patterns)
    return out


def scores(case: Case) -> list[float]:
    """Return the score of each pattern, to nine decimals: rounding must not break ties."""
    out = []
    for pattern in range(1 << len(FIELDS)):
        score = 0.0
        for f, (m, u) in enumerate(zip(case.weights.m, case.weights.u, strict=True)):
            score += np.log2(m / u) if pattern >> f & 1 else np.log2((1 - m) / (1 - u))
        out.append(round(score, 9))
    return out


directions = st.sampled_from(["to_masked", "to_original"])
examples = settings(max_examples=60)
# So few records are easily of another typical size than those of the truth, which is asked about.
pytestmark = pytest.mark.filterwarnings("ignore:the typical:maskwell.errors.MaskwellWarning")


@examples
@given(cases(), directions)
def test_counts_and_links_are_those_of_a_loop_over_all_pairs(case, direction):
    _, guess, _ = attacked(case, direction=direction)
    score, pairs = scores(case), all_pairs(case, direction)
    met = [pattern for patterns in pairs for pattern in patterns.values()]
    assert guess.figures["counts"].tolist() == np.bincount(met, minlength=8).tolist()
    for i, patterns in enumerate(pairs):
        assert guess.candidates[i] == len(patterns)
        if not patterns:
            assert (guess.found[i], guess.second[i], guess.ties[i]) == (-1, -1, 0)
            assert np.isnan(guess.score[i])
            assert guess.kinds[guess.kind[i]] == "no candidate"
            continue
        mine = {j: score[pattern] for j, pattern in patterns.items()}
        best = {j for j in mine if mine[j] == max(mine.values())}
        assert guess.found[i] in best
        assert guess.ties[i] == len(best)
        assert guess.score[i] == pytest.approx(max(mine.values()), abs=1e-8)
        tied = guess.is_tied(np.full(len(mine), i), np.array([*mine]))
        assert {j for j, one in zip(mine, tied, strict=True) if one} == best
        others = {j: value for j, value in mine.items() if j != guess.found[i]}
        if others:
            assert guess.second_score[i] == pytest.approx(max(others.values()), abs=1e-8)
            assert others[guess.second[i]] == max(others.values())
        else:
            assert guess.second[i] == -1
        agreeing = patterns[guess.found[i]].bit_count()
        assert guess.kind[i] == min(len(FIELDS) - agreeing, 2)


@examples
@given(cases(), directions)
def test_figures_are_those_of_a_loop_over_all_pairs(case, direction):
    risk, guess, _ = attacked(case, direction=direction, claims="all links")
    score, expected, correct, baseline = scores(case), 0.0, 0, 0.0
    place = {number: j for j, number in enumerate(case.numbers) if number >= 0}
    for i, patterns in enumerate(all_pairs(case, direction)):
        true = case.numbers[i] if direction == "to_masked" else place.get(i, -1)
        best = [j for j in patterns if score[patterns[j]] == max(score[p] for p in patterns.values())]
        expected += (true in best) / max(len(best), 1)
        correct += true >= 0 and guess.found[i] == true
        baseline += 1 / len(patterns) if true in patterns else 0.0
    assert risk.targets == len(case.known)
    assert risk.expected_correct == pytest.approx(expected)
    assert risk.correct == correct
    # Who guesses among the candidates of a searcher is right once in so many, where the right one is among them.
    assert risk.baseline == pytest.approx(baseline / len(case.known))


@examples
@given(cases().filter(lambda case: case.weights is not DOUBLED), directions)
def test_one_pass_says_the_same_of_re_identifications(case, direction):
    check_one_pass(case, direction)


def test_one_pass_says_the_same_where_classes_share_a_score():
    # Agreeing on X alone (false) has the score of agreeing on Y and C (questionable).
    one, other = Row("p", 10.0, 1, "a"), Row("p", 10.0, 2, "b")
    check_one_pass(Case([other], [one], [0], {"C": Exact()}, DOUBLED), "to_masked")


def check_one_pass(case: Case, direction: str) -> None:
    whole, thrifty = (attacked(case, direction=direction, links=links) for links in ("all", "re-identified"))
    again = thrifty[1].kind == 0
    assert thrifty[1].figures["counts"].tolist() == whole[1].figures["counts"].tolist()
    assert thrifty[1].kind.tolist() == whole[1].kind.tolist()
    assert thrifty[1].score == pytest.approx(whole[1].score, nan_ok=True)
    for name in ("found", "ties", "second", "second_score"):
        ours, theirs = getattr(thrifty[1], name)[again], getattr(whole[1], name)[again]
        assert ours.tolist() == pytest.approx(theirs.tolist(), nan_ok=True)
    assert thrifty[0].rate == whole[0].rate


@examples
@given(cases(), directions)
def test_one_to_one_links_have_the_largest_total_score(case, direction):
    _, guess, _ = attacked(case, direction=direction, assignment="one-to-one")
    score, pairs = scores(case), all_pairs(case, direction)
    linked = {i: int(j) for i, j in enumerate(guess.found) if j >= 0}
    assert len(set(linked.values())) == len(linked)
    near, far = (case.known, case.released) if direction == "to_masked" else (case.released, case.known)
    for home in "pqr":
        here = [i for i, one in enumerate(near) if one[0] == home]
        there = [j for j, one in enumerate(far) if one[0] == home]
        mine = {i: linked[i] for i in here if i in linked}
        assert len(mine) == min(len(here), len(there))
        total = sum(score[pairs[i][j]] for i, j in mine.items())
        assert total == pytest.approx(largest_total(here, there, score, pairs), abs=1e-7)


def largest_total(
    here: list[int], there: list[int], score: list[float], pairs: list[dict[int, int]]
) -> float:
    """Try every way to give each record of the smaller side its own record of the larger."""
    if len(here) <= len(there):
        tries = (zip(here, chosen, strict=True) for chosen in permutations(there, len(here)))
    else:
        tries = (zip(chosen, there, strict=True) for chosen in permutations(here, len(there)))
    return max(sum(score[pairs[i][j]] for i, j in one) for one in tries)


# All pairs at once in numpy: blocks beyond a tile of the kernel, more patterns than bits in a word, several threads.


@pytest.mark.parametrize("few", [0, sorted_pairs.FEW_COMPARISONS], ids=["compiled", "in tiles"])
@pytest.mark.parametrize("width", [1, 6, 8, 11])
def test_passes_over_the_pairs_are_those_of_numpy(width, few, monkeypatch):
    monkeypatch.setattr(sorted_pairs, "PAIRS_AT_ONCE", 100_000)  # else so few pairs are one run
    monkeypatch.setattr(sorted_pairs, "FEW_COMPARISONS", few)
    rng = np.random.default_rng(width)
    sizes, blocks = (300, 1500), (3, 4)  # the last block has candidates and no searcher
    values = [rng.integers(0, 4, (width, size)).astype(float) for size in sizes]
    homes = [rng.integers(0, count, size) for count, size in zip(blocks, sizes, strict=True)]
    bounds = (values[0].T - 1, values[0].T)  # a found value agrees when it is the same or one less
    orders = (rng.permutation(sizes[0]), rng.permutation(sizes[1]))
    arranged = sorted_pairs.arrange(bounds, values[1], (homes[0], homes[1]), orders)
    assert len(arranged.chunks()) > 1

    near, far = values[0][:, :, None], values[1][:, None, :]
    agree = (far == near) | (far == near - 1)
    pattern = np.einsum("fij,f->ij", agree, 1 << np.arange(width))
    together = homes[0][:, None] == homes[1]
    counts, seen = sorted_pairs.count_pairs(arranged, marked=True)
    assert counts.tolist() == np.bincount(pattern[together], minlength=1 << width).tolist()
    assert sorted_pairs.count_pairs(arranged, marked=False)[0].tolist() == counts.tolist()

    rank = rng.integers(0, 1 << (width - 1), 1 << width)  # every rank is shared by two patterns or so
    best = sorted_pairs.best_of(arranged, rank)
    ranked = np.where(together, rank[pattern], -1)[arranged.searchers][:, arranged.places]
    assert best.rank.tolist() == ranked.max(axis=1).tolist()
    assert best.ties.tolist() == (ranked == ranked.max(axis=1)[:, None]).sum(axis=1).tolist()
    assert best.place.tolist() == ranked.argmax(axis=1).tolist()  # the first in the keyed order
    if seen.shape[1]:
        assert sorted_pairs.best_seen(seen, rank).tolist() == best.rank.tolist()
    ranked[np.arange(sizes[0]), best.place] = -1
    assert best.next_rank.tolist() == ranked.max(axis=1).tolist()
    assert best.next_place.tolist() == ranked.argmax(axis=1).tolist()
    here = arranged.patterns(np.arange(sizes[0]), best.place)
    assert here.tolist() == pattern[arranged.searchers, arranged.places[best.place]].tolist()
