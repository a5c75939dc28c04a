"""`maskwell study`: lists, refuses, prints, draws."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from maskwell import studies
from maskwell.studies import STUDIES


def test_without_a_name_the_studies_are_listed(run):
    ran = run("study")
    assert ran.code == 0
    assert all(name in ran.out for name in STUDIES)
    assert "tables: 1, 2, 3" in ran.out


def test_an_unknown_study_is_refused_with_what_there_is(run):
    ran = run("study", "hawalla")
    assert ran.code == 2
    assert ran.err.startswith("error: there is no study 'hawalla' (did you mean 'hawala'?); there are ")
    assert all(name in ran.err for name in STUDIES)


def test_an_unknown_table_is_refused_before_any_work(run, tmp_path):
    ran = run("study", "hawala", "--table", "intruder", "--pictures", tmp_path / "drawn")
    assert ran.code == 2
    assert ran.err == (
        "error: the study 'hawala' has no table 'intruder' (did you mean 'intruders'?); "
        "it has 1, 2, 3, recipes, intruders, c, informed\n"
    )
    assert not (tmp_path / "drawn").exists()


def test_no_replicates_are_refused(run):
    assert run("study", "hawala", "--replicates", "0").code == 2
    with pytest.raises(studies.BadPlan, match="at least one replicate"):
        studies.run_study("hawala", replicates=0)


@pytest.mark.parametrize("name", STUDIES)
def test_a_negative_seed_is_refused(run, name):
    ran = run("study", name, "--table", "3", "--replicates", "1", "--seed", "-4")
    assert ran.code == 2
    assert "fault of maskwell" not in ran.err
    assert "--seed" in ran.err
    for seed in (-4, 1.5, "a"):
        with pytest.raises(studies.BadPlan, match="whole number from 0 on, not"):
            studies.run_study(name, seed=seed)


def test_a_table_without_a_picture_says_so(run, tmp_path):
    words = ("study", "moore", "--table", "1", "--pictures", tmp_path / "drawn")
    ran, as_json = run(*words), run(*words, "--json")
    assert (ran.code, as_json.code) == (0, 0)
    assert ran.out.splitlines()[-1] == "table 1 has no picture"
    assert as_json.err == "table 1 has no picture\n"
    assert json.loads(as_json.out)["study"] == "moore"


def test_one_table_is_printed(run):
    ran = run("study", "hawala", "--table", "3", "--replicates", "1")
    assert (ran.code, ran.err) == (0, "")
    assert "table 3: " in ran.out
    assert "table 1: " not in ran.out
    assert "from seed 2003" in ran.out


def test_json_is_json_and_the_same_seed_gives_the_same(run):
    words = ("study", "hawala", "--table", "3", "--replicates", "1", "--seed", "5", "--json")
    first, again, other = run(*words), run(*words), run(*words[:-2], "6", "--json")
    data = json.loads(first.out)
    assert list(data) == ["study", "tables", "notes"]
    assert [table["name"] for table in data["tables"]] == ["3"]
    assert first.out == again.out != other.out


def test_pictures_are_drawn_where_asked(run, tmp_path):
    folder = tmp_path / "new" / "drawn"
    ran = run("study", "hawala", "--table", "3", "--replicates", "1", "--json", "--pictures", folder)
    assert ran.code == 0
    assert json.loads(ran.out)["study"] == "hawala"
    drawn = sorted(folder.iterdir())
    assert drawn
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
    assert ran.err == "".join(f"drawn: {path}\n" for path in drawn)


def test_without_matplotlib_pictures_are_refused_by_the_name_of_the_extra(run, tmp_path, monkeypatch):
    monkeypatch.setattr(studies, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    ran = run("study", "hawala", "--pictures", tmp_path / "drawn")
    assert ran.code == 2
    assert "pip install 'maskwell[plot]'" in ran.err
    assert not (tmp_path / "drawn").exists()


def test_a_folder_that_cannot_be_made_is_refused_before_any_work(run, tmp_path):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    ran = run("study", "hawala", "--pictures", tmp_path / "file" / "drawn")
    assert ran.code == 2
    assert "cannot be made" in ran.err
