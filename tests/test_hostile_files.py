"""Cards, plans, schemas, manifests and data files from anybody: read, or refused in a sentence, at once and cheaply."""

from __future__ import annotations

import copy
import hashlib
import json
import re
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import maskwell as mw
from maskwell.analysis.model_fit import fit_refusal
from maskwell.card import NoiseCard, SwapParameters
from maskwell.card.mismatches import misfits
from maskwell.card.noise_card import _digest
from maskwell.errors import BadBundle, BadPlan, MaskwellError, raise_all
from maskwell.io.bundle import _bundle_id
from maskwell.laws import Power, Step
from maskwell.masking.codebook import codebook
from maskwell.masking.protocol import plan_data
from maskwell.masks import (
    BiasNoise,
    Chain,
    CodeNoise,
    Coding,
    CorrelatedNoise,
    Grouping,
    IndependentNoise,
    MixtureNoise,
    Pram,
    RankSwap,
    Recompute,
    Subsample,
)
from maskwell.plan import ReleasePlan
from maskwell.schema import Schema
from maskwell.table import Table

SECONDS, MEGABYTES = 1.0, 300  # of one file, compiled code aside
AMOUNTS = ("INCOME", "TAX", "AGE")
MASKS = (
    IndependentNoise(AMOUNTS, variance_ratio=0.2, shape="laplace"),
    IndependentNoise("INCOME", variance_ratio=0.1, spread=Power(0.5)),
    IndependentNoise("TAX", variance_ratio=0.1, spread=Step((4_000.0,), (1.0, 3.0))),
    IndependentNoise("TAX", variance_ratio=0.5, limits=(("TAX", 0, 50_000),)),
    CorrelatedNoise(AMOUNTS, sd_ratio=0.4),
    CorrelatedNoise(AMOUNTS, r0=0.8, keep="moments"),
    CorrelatedNoise(("TAX", "AGE"), sd_ratio=0.3, transform="log", shift=1.0),
    MixtureNoise(AMOUNTS, 0.3, 0.05, components=3),
    MixtureNoise(AMOUNTS, 0.3, 0.05, components=4, correlated=True),
    MixtureNoise(AMOUNTS, 0.3, 0.05, correlated=True),
    BiasNoise(AMOUNTS, bias_sd=0.1, sd_ratio=0.1),
    BiasNoise(("INCOME", "AGE"), bias_sd=0.1, sd_ratio=0.1, shape="lognormal"),
    CodeNoise("SEX", variance=0.5),
    Pram("EDU", stay=0.7),
    Grouping("EDU", groups={"no": ["low"], "yes": ["middle", "high"]}),
    Grouping("AGE", breaks=(30, 50, 70)),
    Coding("AGE", top=75, bottom=25),
    RankSwap("AGE", 0.1),
    Chain([IndependentNoise(("WAGE", "OTHER"), variance_ratio=0.2), Recompute("TOTAL", ("WAGE", "OTHER"))]),
    Chain([CorrelatedNoise(("INCOME", "TAX"), sd_ratio=0.4), Subsample(0.5)]),
)
ODD: list[Any] = [
    *(None, True, 0, 1, -1, 0.5, 1e308, -1e308, 5e-324, float("nan"), float("inf"), 10**30, 10**400, 2**63),
    *(
        "",
        "1",
        "1e-100000000",
        "1/0",
        "1/3",
        "nan",
        "x" * 100_000,
        "\0",
        "\ud800",
        "e\u0301",
        "=cmd()",
        "INCOME",
    ),
    *("normal", "mixture", "additive", "transition", "chained", "power"),
    *(
        [],
        [[]],
        [0],
        [1.0] * 3,
        [[1, 2], [2, 1]],
        ["INCOME", "INCOME"],
        {},
        {"form": "normal"},
        [0.0] * 5_000,
    ),
]
SCALES = (1e10, -1.0, 1e-10, 0.0, 1e100, 2.5)

Case = tuple[Any, dict[str, Any]]


def places(data: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where something stands in plain data."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inner:
        yield (*at, key)
        yield from places(value, (*at, key))


@st.composite
def mutations(draw: Callable[..., Any], data: Any) -> Any:
    """Change one or two things in plain data: another value, another size, twice, gone, deep or new."""
    changed = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, 2))):
        all_places = list(places(changed))
        if not all_places:
            break
        *way, last = draw(st.sampled_from(all_places))
        parent = changed
        for key in way:
            parent = parent[key]
        value = parent[last]
        match draw(st.sampled_from(("odd", "scale", "scale", "gone", "twice", "deep", "new"))):
            case "scale" if type(value) is float or (type(value) is int and abs(value) < 2**64):
                parent[last] = value * draw(st.sampled_from(SCALES))
            case "gone":
                del parent[last]
            case "twice" if isinstance(parent, list):
                parent.insert(0, copy.deepcopy(value))
            case "deep":
                for _ in range(draw(st.sampled_from((3, 60, 150)))):
                    parent[last] = [parent[last]]
            case "new" if isinstance(parent, dict):
                parent[draw(st.sampled_from(("form", "unit", "x", "é", "\0")))] = value
            case _:
                parent[last] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return changed


def broken(text: str) -> st.SearchStrategy[str]:
    """Return a text of which something is gone or too much."""
    inserts = st.sampled_from(
        ("\0", '"', "{", "[[", "]", "\\", "'''", "é", "1" * 5_000, "[" * 50_000, "e999999999")
    )
    cuts = st.tuples(st.integers(0, len(text)), st.integers(0, 30), inserts)
    return cuts.map(lambda cut: text[: cut[0]] + cut[2] + text[cut[0] + cut[1] :])


def peak() -> float:
    """Return the most memory that this process ever had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def read_or_refused(action: Callable[[], Any]) -> bool:
    """Do something with a file: whether it was done; it may only refuse in sentences, soon and without much memory."""
    before, started = peak(), time.process_time()
    refusal: MaskwellError | None = None
    try:
        action()
    except MaskwellError as said:
        refusal = said
    assert time.process_time() - started < SECONDS
    assert peak() - before < MEGABYTES
    assert refusal is None or all(said.strip() and len(said) < 3_000 for said in refusal.problems)
    return refusal is None


@pytest.fixture(scope="module")
def cards(make_people: Any) -> list[Case]:
    """A release of every mask, and its card as plain data; what its readers use is compiled."""
    people = make_people(120)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for mask in MASKS:
            release = mw.apply(mask, people, seed=5).release
            if "keep" in plan_data(mask):
                release = replace(
                    release, card=replace(release.card, swapped=SwapParameters(0.1, ("INCOME",), ("SEX",)))
                )
            with_law = release.card.law_of("AGE") is None or release.card.laws[0].has_density
            if with_law:
                use(release.card, release.table)
            found.append((release, release.card.to_dict()))
    return found


def use(card: NoiseCard, table: Table) -> None:
    """Do with a card what its readers do."""
    raise_all(misfits(card, table.schema), BadBundle)
    release = mw.Release(table, card)
    assert repr(release)
    assert codebook(release)
    assert NoiseCard.from_json(card.to_json()).to_json()
    fit_refusal("TAX ~ INCOME + AGE", release)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        card.logpdf(table, table)


def read_card(content: Any, table: Table) -> None:
    text = json.dumps({**content, "digest": _digest(content)})
    use(NoiseCard.from_json(text), table)


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_card_is_read_or_refused(cards: list[Case], data: st.DataObject) -> None:
    release, content = data.draw(st.sampled_from(cards))
    changed = data.draw(mutations(content))
    try:
        json.dumps({**changed, "digest": _digest(changed)})
    except (UnicodeEncodeError, TypeError):  # JSON text cannot say this
        return
    read_or_refused(lambda: read_card(changed, release.table))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_broken_card_is_refused(cards: list[Case], data: st.DataObject) -> None:
    text = data.draw(st.sampled_from(cards))[0].card.to_json()
    changed = data.draw(broken(text))
    assert not read_or_refused(lambda: NoiseCard.from_json(changed)) or json.loads(changed) == json.loads(
        text
    )


PLAN: dict[str, Any] = {
    "input": {"file": "a.csv", "schema": "s.toml", "delimiter": ";", "decimal": ","},
    "output": {"release": "o/r", "private": "o/p", "format": "csv"},
    "tolerance": {"max_rate": 0.15, "over": "outlying", "intruders": ["m"]},
    "calibrate": {"replicates": 20, "precision": 0.05},
    "intruders": [
        {"name": "m", "attack": "Linkage", "fields": ["INCOME"]},
        {"attack": "NearestRecord"},
        {"attack": "BayesIntruder"},
    ],
    "targets": {"fields": ["INCOME", "AGE"], "sample": 100},
    "models": [{"formula": "TAX ~ INCOME", "family": "gaussian", "at_most_wider": 0.3}, "INCOME ~ AGE"],
    "audit": {"largest": 1000, "limits": {"informed links": {"warn": 0.1, "fail": 0.2}}},
    "card": {"leaves": "open"},
    "report": {"title": "t", "contact": "c"},
}


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_plan_is_read_or_refused(make_people: Any, data: st.DataObject) -> None:
    masks = [plan_data(mask) for mask in MASKS[:-2]]
    chosen = {**PLAN, "masks": [data.draw(st.sampled_from(masks))]}
    if isinstance(limits := chosen["masks"][0].get("limits"), list):
        chosen["masks"][0]["limits"] = {name: {"low": low, "high": high} for name, low, high in limits}
    changed = data.draw(mutations(chosen))

    def whole() -> None:
        plan = ReleasePlan.from_dict(changed)
        assert repr(plan)
        plan.mask(make_people(120).schema).card(make_people(120))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        read_or_refused(whole)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_schema_is_read_or_refused(make_people: Any, data: st.DataObject) -> None:
    changed = data.draw(mutations(make_people(10).schema.to_dict()))

    def whole() -> None:
        schema = Schema.from_dict(changed)
        assert [column.step for column in schema.columns]
        assert schema.to_toml()

    read_or_refused(whole)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_broken_plan_or_schema_is_refused(make_people: Any, tmp_path: Path, data: st.DataObject) -> None:
    text = data.draw(broken(make_people(10).schema.to_toml()))
    (tmp_path / "a.toml").write_text(text, encoding="utf-8")
    read_or_refused(lambda: Schema.read(tmp_path / "a.toml"))
    assert not read_or_refused(lambda: ReleasePlan.read(tmp_path / "a.toml"))


def sealed(folder: Path, **further: Any) -> None:
    """Write the manifest of a folder as whoever wants to deceive its readers would: everything fits."""
    files = {
        path.name: {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "bytes": path.stat().st_size}
        for path in sorted(folder.iterdir())
        if path.name != "manifest.json"
    }
    whole = {
        "format": "maskwell bundle",
        "version": 1,
        "bundle": _bundle_id(files),
        "files": files,
        "half": "public",
    }
    (folder / "manifest.json").write_text(json.dumps(whole | further))


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_manifest_is_read_or_refused(cards: list[Case], tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "release"
    if not folder.exists():
        cards[4][0].write(folder, format="csv")
        (tmp_path / "manifest.json").write_bytes((folder / "manifest.json").read_bytes())
    changed = data.draw(mutations(json.loads((tmp_path / "manifest.json").read_text())))
    (folder / "manifest.json").write_text(json.dumps(changed))
    read_or_refused(lambda: repr(mw.read_release(folder)))


CARD = NoiseCard.from_dict(
    {
        "format": "maskwell noise card",
        "version": 1,
        "laws": [
            {
                "form": "additive",
                "columns": ["A", "B"],
                "noise": {"form": "normal", "sds": [1.0, 2.0], "correlations": [[1.0, 0.5], [0.5, 1.0]]},
                "outlets": [{"unit": "1/100"}, {"unit": "1", "low": 0.0}],
            }
        ],
    }
).to_json()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"1/100"', '"1e-100000000"', "unit must be a number or a fraction as text"),
        ("[1.0, 2.0]", "[NaN, 2.0]", "sds must be a list of sds"),
        ("[1.0, 2.0]", "[-1.0, 2.0]", "sds must be a list of sds"),
        ("[1.0, 2.0]", "[1e308, 2.0]", "sds must be a list of sds"),
        ("[1.0, 2.0]", "[1.0]", "1 sds for 2 columns"),
        ("[1.0, 2.0]", f"[{'9' * 400}, 2.0]", "sds must be a list of sds"),
        ("[1.0, 2.0]", f"[{'9' * 5000}, 2.0]", "too long a number"),
        ("0.5", "1.5", "must be symmetric, lie between -1 and 1"),
        ("[1.0, 2.0]", '[1.0, 2.0], "form": "joint mixture"', "lacks weights"),
        ('"A", "B"', '"A", "A"', "different names of columns"),
        ('"low": 0.0', '"low": 1e100', "units of 0"),
        ('"low": 0.0', '"avoid": [9.0, 9.0]', "avoid must be a list of at most 500 different numbers"),
        (
            '"low": 0.0',
            f'"avoid": {list(range(501))}',
            "avoid must be a list of at most 500 different numbers",
        ),
        ('"low": 0.0', '"low": 5.0, "high": 1.0', "low must lie below high"),
        ('"columns"', '"laws": [], "colums"', "unknown key 'colums' (did you mean 'columns'?)"),
        ('"laws"', '"lows": ' + "[" * 50_000 + "]" * 50_000 + ', "laws"', "nested too deeply"),
    ],
)
def test_what_was_read_and_fitted_is_refused(old: str, new: str, said: str) -> None:
    text = CARD.replace(old, new)
    with pytest.raises(BadBundle, match=re.escape(said)):
        NoiseCard.from_json(text)
    assert not read_or_refused(lambda: NoiseCard.from_json(text))


def test_all_that_is_wrong_with_a_card_is_said_at_once() -> None:
    text = (
        CARD.replace('"1/100"', '"0"')
        .replace("[1.0, 2.0]", "[1.0]")
        .replace('"low": 0.0', '"low_coded": true')
    )
    with pytest.raises(BadBundle) as refusal:
        NoiseCard.from_json(text.replace('"version": 1', '"version": 1, "subsampled": 7'))
    assert len(refusal.value.problems) == 4
    assert all(problem.startswith("the card is damaged: ") for problem in refusal.value.problems)


def test_a_correlation_matrix_of_no_noise_is_refused() -> None:
    data = json.loads(CARD)
    del data["digest"]
    law = data["laws"][0]
    law["columns"], law["outlets"] = ["A", "B", "C"], [{}, {}, {}]
    law["noise"] |= {"sds": [1.0] * 3, "correlations": [[1, 0.9, -0.9], [0.9, 1, 0.9], [-0.9, 0.9, 1]]}
    with pytest.raises(BadBundle, match="negative eigenvalue"):
        NoiseCard.from_dict(data)


def test_a_card_of_columns_that_are_not_there_is_not_that_of_the_release(
    cards: list[Case], tmp_path: Path
) -> None:
    release, content = cards[4]
    release.write(tmp_path / "a", format="csv")
    for name, said in (("NOBODY", "column 'NOBODY', which the file does not have"), ("EDU", "as a number")):
        changed = json.loads(json.dumps(content).replace('"AGE"', json.dumps(name)))
        card = replace(NoiseCard.from_dict(changed), data_sha256="")
        (tmp_path / "a" / "card.json").write_text(card.to_json())
        sealed(tmp_path / "a", dialect=None)
        with pytest.raises(BadBundle, match=said):
            mw.read_release(tmp_path / "a")


@pytest.mark.parametrize("format", ["parquet", "arrow"])
@pytest.mark.parametrize("what", ["records", "texts"])
def test_a_file_that_expands_is_refused_before_it_does(
    cards: list[Case], tmp_path: Path, format: str, what: str
) -> None:
    release, folder = cards[4][0], tmp_path / "release"
    release.write(folder, format=format)
    path = folder / f"data.{format}"
    data = pq.read_table(path) if format == "parquet" else ipc.open_file(path).read_all()
    if what == "records":
        data = pa.table({name: pa.nulls(5_000_000, pa.int8()) for name in data.column_names})
    else:
        long = pa.DictionaryArray.from_arrays(pa.array([0] * len(data), pa.int32()), ["x" * 3_000_000])
        data = data.set_column(data.column_names.index("EDU"), "EDU", long)
    if format == "parquet":
        pq.write_table(data, path)
    else:
        with ipc.new_file(path, data.schema, options=ipc.IpcWriteOptions(compression="zstd")) as out:
            out.write_table(data.unify_dictionaries())
    card = replace(release.card, data_sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    (folder / "card.json").write_text(card.to_json())
    del data
    sealed(folder)
    assert not read_or_refused(lambda: mw.read_release(folder))
    with pytest.raises(BadBundle, match="speaks of 120 records" if what == "records" else "would take"):
        mw.read_release(folder)


@pytest.mark.parametrize("records", [120, "many", -1])
def test_a_file_whose_card_is_withheld_is_counted_by_its_manifest(
    cards: list[Case], tmp_path: Path, records: Any
) -> None:
    release, folder = cards[4][0], tmp_path / "release"
    release.write(folder, format="parquet")
    path = folder / "data.parquet"
    names = pq.read_table(path).column_names
    pq.write_table(pa.table({name: pa.nulls(5_000_000, pa.int8()) for name in names}), path)
    (folder / "card.json").unlink()
    sealed(folder, records=records)
    assert not read_or_refused(lambda: mw.read_release(folder))
    said = "the manifest speaks of 120 records and the data file has 5,000,000"
    with pytest.raises(BadBundle, match=said if records == 120 else "the number of records is none"):
        mw.read_release(folder)


def test_forty_eight_crossed_factors_are_counted_and_refused(cards: list[Case]) -> None:
    names = [f"f{i}" for i in range(48)]
    table = Table.from_frame(pa.table({"y": np.arange(9.0), **{name: ["a", "b", "c"] * 3 for name in names}}))
    release = mw.Release(table, NoiseCard())
    for formula in (
        "*".join(names),
        f"({'+'.join(names)})**5",
        f"({'*'.join(names)})**2",
        f"(1|{'*'.join(names)})",
    ):
        started = time.process_time()
        said = fit_refusal(f"y ~ {formula}", release)
        assert re.match(r"The formula would make [\d,]+ columns or more, and at most 2,000 are fitted", said)
        assert time.process_time() - started < SECONDS
    assert "281,474,976,710,656 columns" in fit_refusal(f"y ~ {'*'.join(names)}", release)


def test_a_formula_of_a_thousand_terms_is_refused_before_it_is_spelled_out() -> None:
    names = [f"f{i}" for i in range(45)]
    table = Table.from_frame(pa.table({"y": np.arange(9.0), **{name: np.arange(9.0) for name in names}}))
    release = mw.Release(table, NoiseCard())
    for formula, said in (
        (f"({'+'.join(names)})**2", "would spell out 1,036 terms, and at most 500 are fitted"),
        ("+".join(["f0"] * 1_500), "has 1,500 operators, and at most 300 are read"),
        (f"I({'-' * 2_000}f0)", "has 2,001 operators, and at most 300 are read"),
    ):
        assert read_or_refused(lambda formula=formula, said=said: _assert_said(formula, release, said))


def _assert_said(formula: str, release: Any, said: str) -> None:
    assert said in fit_refusal(f"y ~ {formula}", release)


def test_a_plan_as_long_as_a_data_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text("a = [" + "0.0, " * 1_000_000 + "]")
    with pytest.raises(BadPlan, match="more than the 4,194,304 that are read"):
        ReleasePlan.read(tmp_path / "plan.toml")


def test_a_message_of_many_problems_stays_short() -> None:
    """`problems` has every one; what is printed has the first of them, each once, and says how many more there are."""
    error = BadPlan([f"column c{i}: {'x' * 5_000}" for i in range(1_000)] + ["column c0: " + "x" * 5_000])
    assert len(error.problems) == 1_000
    assert "and 980 more" in str(error)
    assert len(str(error)) < 15_000
