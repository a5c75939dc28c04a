"""What studies share: jobs on files, differences of means, and several outcomes together."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
import pytest

from maskwell.studies.conclusions import FAILS, HOLDS, UNDECIDED, apart, judge_margin, together
from maskwell.studies.pictures import draw_all
from maskwell.studies.plans import file_count_note, simulate_files
from maskwell.studies.results import Study, StudyTable


@dataclass(frozen=True)
class Job:
    place: str
    name: str


A, B, C = Job("one", "a"), Job("one", "b"), Job("two", "c")


def test_every_job_gets_its_answers_in_the_order_of_the_files():
    ticks, files = [], []

    def measure(place, jobs, replicate):
        files.append((place, replicate))
        assert {job.place for job in jobs} == {place}
        return [(job.name, replicate) for job in jobs]

    found = simulate_files({A: 2, B: 1, C: 3}, measure, lambda: ticks.append(1))
    assert found == {A: [("a", 0), ("a", 1)], B: [("b", 0)], C: [("c", 0), ("c", 1), ("c", 2)]}
    assert sorted(files) == [("one", 0), ("one", 1), ("two", 0), ("two", 1), ("two", 2)]
    assert len(ticks) == 6


def test_what_goes_wrong_in_a_file_is_not_lost():
    def measure(place, jobs, replicate):
        raise ValueError(place)

    with pytest.raises(ValueError, match="one"):
        simulate_files({A: 1}, measure, lambda: None)


@pytest.mark.parametrize(
    ("files", "more", "said"),
    [(1, "", "[1 file of 9 records]"), (2, "; more", "[2 files of 9 records; more]")],
)
def test_files_are_counted_in_words(files, more, said):
    assert file_count_note(files, 9, more) == said


def test_means_of_different_files_differ_with_the_errors_of_both():
    rng = np.random.default_rng(1)
    one, other = rng.normal(5, 1, 40), rng.normal(3, 2, 10)
    found = apart(one, other)
    assert found.mean == pytest.approx(one.mean() - other.mean())
    assert found.error == pytest.approx(sqrt(one.var(ddof=1) / 40 + other.var(ddof=1) / 10))
    assert found.files == 10
    assert judge_margin([found], low=0) == HOLDS
    assert judge_margin([apart(one, other[:3])], low=0) == UNDECIDED


@pytest.mark.parametrize(
    ("outcomes", "outcome"),
    [
        ((HOLDS, HOLDS), HOLDS),
        ((HOLDS, UNDECIDED), UNDECIDED),
        ((UNDECIDED, FAILS), FAILS),
        ((FAILS, HOLDS), FAILS),
    ],
)
def test_several_outcomes_are_as_good_as_the_worst(outcomes, outcome):
    assert together(outcomes) == outcome


def test_a_picture_is_drawn_where_all_its_tables_are_there(tmp_path):
    study = Study("any", (StudyTable("1", ()), StudyTable("2", ())))
    pictures = {
        name: (needs, lambda _, path: path)
        for name, needs in {"a.png": ("1", "2"), "b.png": ("1", "3"), "c.png": ()}.items()
    }
    assert [path.name for path in draw_all(pictures, study, tmp_path)] == ["a.png", "c.png"]
