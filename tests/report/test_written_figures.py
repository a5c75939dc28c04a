"""Every figure on the recipients' page follows from the files beside it, and its example is one that runs."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.errors import BadPlan
from maskwell.keys import Key
from maskwell.pipeline.verdict import unfit_reason
from maskwell.plan import ModelPlan, ReleasePlan
from maskwell.report.external import external_report
from maskwell.report.words import figure
from maskwell.schema import Column, Schema
from maskwell.table import Table

KEY = Key(bytes(range(32)))
NOISE = {"mask": "CorrelatedNoise", "columns": ["PAY", "RENT"], "sd_ratio": 1.0}


def workers(records: int = 300) -> Table:
    """Amounts that depend on the weight, so that a weighted mean is another than the plain one; with zeros."""
    rng = np.random.default_rng(8)
    weight = rng.choice([1.0, 9.0], records)
    pay = (300 + 40 * weight + rng.normal(0, 60, records)).round()
    rent = (0.3 * pay + rng.normal(0, 30, records)).round()
    gifts = np.where(rng.random(records) < 0.2, 0, rng.lognormal(4, 0.6, records)).round()
    data = {"PAY": pay, "RENT": rent, "GIFTS": gifts, "W": weight}
    columns = (
        Column("PAY", "continuous", frozenset({"key"}), unit=1),
        Column("RENT", "continuous", frozenset({"key"}), unit=1),
        Column("GIFTS", "continuous", unit=1),
        Column("W", "continuous", frozenset({"weight"}), drop=True),
    )
    return Table.from_frame(pa.table(data), Schema(columns))


def released(place: Path, table: Table, *masks: dict[str, Any], **sections: Any) -> tuple[Any, str]:
    """Run the whole job on a table; return its outcome and the page of the recipients."""
    mw.write(table, place / "in.csv")
    (place / "in.toml").write_text(table.schema.to_toml())
    whole = {
        "input": {"file": "in.csv", "schema": "in.toml"},
        "output": {"release": "out", "private": "inside"},
        "masks": list(masks) or [NOISE],
        "intruders": [{"name": "nearest", "attack": "NearestRecord", "fields": ["PAY", "RENT"]}],
        "tolerance": {"max_rate": 0.9},
    }
    outcome = mw.release(
        ReleasePlan.from_dict(whole | sections, place), key=KEY, despite="to look at the page"
    )
    return outcome, (place / "out" / "report.html").read_text(encoding="utf-8")


def rows_of(page: str, caption: str) -> dict[str, list[str]]:
    """Return the cells of the table with a caption, by the name of their row."""
    table = re.search(rf"<caption>{re.escape(caption)}.*?</table>", page, re.DOTALL)
    assert table is not None
    found = {}
    for row in re.findall(r"<tr>(.*?)</tr>", table[0], re.DOTALL)[1:]:
        name, *cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        found[html.unescape(name)] = [html.unescape(cell) for cell in cells]
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A release whose weights were dropped, written once, with its page."""
    place = tmp_path_factory.mktemp("made")
    return place, released(place, workers(), models=[{"formula": "RENT ~ PAY"}])[1]


def test_every_figure_is_that_of_the_written_files(made: tuple[Path, str]) -> None:
    """Recomputed in numpy from data.csv and card.json alone."""
    place, page = made
    data = np.genfromtxt(place / "out" / "data.csv", delimiter=",", names=True)
    (law,) = json.loads((place / "out" / "card.json").read_text())["laws"]
    noise = dict(zip(law["columns"], law["noise"]["sds"], strict=True))
    shown = rows_of(page, "Numbers in this release")
    assert list(shown) == list(data.dtype.names)
    for name, (masked, *figures) in shown.items():
        mean, sd = data[name].mean(), data[name].std(ddof=1)
        true_sd = np.sqrt(sd**2 - noise.get(name, 0.0) ** 2)
        assert masked == ("yes" if name in noise else "no")
        assert figures == [figure(mean), figure(sd), figure(mean), figure(true_sd)]
    for name, (signal, own) in rows_of(page, "Signal and noise").items():
        share = 1 - (noise[name] / data[name].std(ddof=1)) ** 2
        assert (signal, own) == (f"{share:.1%}", f"{1 - share:.1%}")
    for name, (sd, *correlations) in rows_of(page, "Noise: normal").items():
        assert sd == figure(noise[name])
        assert correlations == [f"{r:.2f}" for r in law["noise"]["correlations"][law["columns"].index(name)]]


def test_nothing_is_weighted_by_a_column_that_was_dropped(made: tuple[Path, str]) -> None:
    place, page = made
    weights, pay = workers().floats("W"), workers().floats("PAY")
    released_mean = mw.read_release(place / "out").table.floats("PAY").mean()
    assert figure(float(np.average(pay, weights=weights))) != figure(released_mean)
    assert rows_of(page, "Numbers in this release")["PAY"][1] == figure(released_mean)
    assert "weighted" not in page


def test_released_weights_weigh_and_are_said_to(tmp_path: Path) -> None:
    table = workers()
    kept = table.schema.changed({"W": Column("W", "continuous", frozenset({"weight"}))})
    _, page = released(tmp_path, Table.from_frame(table.to_frame(), kept))
    data = np.genfromtxt(tmp_path / "out" / "data.csv", delimiter=",", names=True)
    assert "Means and sds are weighted by the weights in the file." in page
    assert rows_of(page, "Numbers in this release")["PAY"][1] == figure(
        np.average(data["PAY"], weights=data["W"])
    )


def test_the_example_runs_as_it_is_printed(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    place, page = made
    code = html.unescape(re.search(r"<pre><code>(.*?)</code></pre>", page, re.DOTALL)[1])  # type: ignore[index]
    assert "mw.fit('RENT ~ PAY', release)" in code
    monkeypatch.chdir(place)
    exec(compile(code, "example", "exec"), {})


def test_a_model_that_cannot_be_fitted_is_a_reason(tmp_path: Path) -> None:
    """By the truth it can: the weights are there; recipients have none. It is refused before any noise is drawn."""
    with pytest.raises(BadPlan, match=r"PAY ~ W: column 'W' is dropped by the schema and does not leave"):
        released(tmp_path, workers(), models=[{"formula": "PAY ~ W"}, {"formula": "RENT ~ PAY"}])
    masking = mw.apply(mw.IndependentNoise(("PAY",), variance_ratio=0.3), workers(), seed=1)
    assert "cannot be fitted to the release" in unfit_reason(ModelPlan(formula="PAY ~ W"), masking)
    assert unfit_reason(ModelPlan(formula="RENT ~ PAY"), masking) == ""


def test_a_model_whose_chains_do_not_agree_is_a_reason() -> None:
    from maskwell.utility import ModelUtility

    masking = mw.apply(mw.IndependentNoise(("PAY",), variance_ratio=0.3), workers(), seed=1)
    model = ModelPlan(formula="RENT ~ PAY")
    found = ModelUtility("RENT ~ PAY", "gaussian", refused="no adjusted fit: the chains did not agree")
    assert (
        unfit_reason(model, masking)
        == unfit_reason(model, masking, [ModelUtility("PAY ~ 1", "gaussian")])
        == ""
    )
    assert unfit_reason(model, masking, [found]).endswith(
        "to the release: no adjusted fit: the chains did not agree"
    )


def test_a_logarithm_is_that_of_the_noise(tmp_path: Path) -> None:
    log = {
        "mask": "IndependentNoise",
        "columns": ["GIFTS"],
        "variance_ratio": 0.3,
        "transform": "log",
        "shift": 1.0,
    }
    outcome, page = released(tmp_path, workers(), NOISE, log, models=[{"formula": "PAY ~ log(GIFTS)"}])
    (reason,) = [one for one in outcome.reasons if one.startswith("PAY ~ log(GIFTS)")]
    assert "write log(GIFTS + 1)" in reason
    assert "mw.fit(&#x27;PAY ~ log(GIFTS + 1)&#x27;, release)" in page
    assert "The noise of GIFTS was added to log(GIFTS + 1)" in page
    assert rows_of(page, "Noise: normal").keys() == {"PAY", "RENT"}
    assert "GIFTS, as log(GIFTS + 1)" in page


def test_a_page_without_its_files_writes_and_reads_them(made: tuple[Path, str]) -> None:
    place, page = made
    masking = mw.Masking.read(release=place / "out", private=place / "inside")

    class Told:
        plan = ReleasePlan.from_dict(
            {
                "input": {"file": "in.csv"},
                "masks": [NOISE],
                "output": {"release": str(place / "out"), "private": "inside"},
                "models": [{"formula": "RENT ~ PAY"}],
            },
            place,
        )

    Told.masking = masking  # type: ignore[attr-defined]
    assert external_report(Told) == page


def test_codes_are_told_apart_from_limits_and_count_in_no_mean(tmp_path: Path) -> None:
    coding = {"mask": "Coding", "columns": ["PAY"], "top": 700.0}
    _, page = released(tmp_path, workers(), NOISE, coding, report={"title": "Masked microdata"})
    data = mw.read_release(tmp_path / "out").table
    closed = int(np.isnan(data.floats("PAY")).sum())
    assert closed > 0
    assert f"Missing and coded values count in no mean or sd: {closed} of PAY." in page
    assert "the code was given after the noise (PAY)" in page
    assert "noise was cut off there" not in page
    assert "Nothing from values that cannot occur" in page
    assert "Means of PAY as released are too low: the largest values were coded." in page
    assert "divides, by the card. The card does not tell it of PAY." in page
    assert np.nanmean(data.floats("PAY")) < workers().floats("PAY").mean()
    assert "release, missing=&#x27;draw&#x27;)" in page
    assert "to leave such records out would select by noise and bias the answer" in page
    assert f"Cite the data as: Masked microdata, {len(data)} records." in page


def test_codes_beside_limits_or_on_the_log_scale_are_not_said_to_move_a_mean_one_way(tmp_path: Path) -> None:
    log = {"mask": "IndependentNoise", "columns": ["PAY"], "variance_ratio": 0.5, "transform": "log"}
    coding = {"mask": "Coding", "columns": ["PAY"], "top": 700.0}
    _, page = released(tmp_path, workers(), log, coding)
    assert "Means of PAY as released are without a part of the data: the largest values were coded." in page
