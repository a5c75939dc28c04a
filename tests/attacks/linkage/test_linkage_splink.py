"""The same files through Splink, an independent program: pattern counts, m, u, p and the best links must be the same.

Splink gets the files as they are written, codes and all, and the rules of agreement in SQL; it knows nothing of
statuses or bounds.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import splink.comparison_level_library as levels
import splink.comparison_library as comparisons
from splink import DuckDBAPI, Linker, SettingsCreator, block_on

from maskwell.attacks import EM, Absolute, Exact, Fixed, Linkage
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.linkage.em import pattern_bits
from maskwell.datasets import housing
from maskwell.errors import MaskwellWarning
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.masks import CorrelatedNoise
from maskwell.schema import Column, Schema
from maskwell.table import Table

# Both programs stop when no parameter moves by more than this in a step. Near the end a step is 0.28 (survey) and 0.66
# (nasty file) of the last, so that either is within 1e-9 x 0.66 / 0.34 of its limit, far below the 1e-6 allowed.
TOLERANCE = 1e-9
SAME_WEIGHT = 1e-6


@dataclass(frozen=True)
class Setup:
    """A masking, how its intruder compares, and the same rules in SQL for values as they are written."""

    masking: Masking
    blocks: tuple[str, ...]
    rules: dict[str, Any]
    sql: dict[str, str]

    def plan(self, direction: str, weights: Any) -> Linkage:
        return Linkage(
            fields=tuple(self.sql),
            match_blocks=self.blocks,
            rules=self.rules,
            direction=direction,
            weights=weights,
        )


def agreement(name: str, codes: tuple[float, ...], close: str) -> str:
    """Write a rule: missing agrees with missing, a code with the same code, open values where they are close."""
    left, right, listed = f"{name}_l", f"{name}_r", ", ".join(map(str, codes))
    at_a_code = f"when {left} in ({listed}) or {right} in ({listed}) then {left} = {right} " if codes else ""
    missing = f"when {left} is null or {right} is null then {left} is null and {right} is null "
    return f"case {missing}{at_a_code}else {close} end"


def within(name: str, ratio: float) -> str:
    return f"abs({name}_l - {name}_r) <= {ratio}::double * abs({name}_l)"


# The masked survey: amounts with top and bottom codes and missing values.


def survey() -> Setup:
    amounts = ("INCOME", "HOME_VAL", "MORTGAGE", "MAINTAIN", "TAXES")
    table = housing(2500)
    with pytest.warns(MaskwellWarning, match="alone in their block"):
        masking = apply(CorrelatedNoise(amounts, r0=0.97), table, key=Key.from_seed(5))
    codes = {name: (table.schema[name].top, table.schema[name].bottom) for name in amounts}
    sql = {name: agreement(name, codes[name], within(name, 0.1)) for name in amounts}
    return Setup(masking, ("BEDROOMS", "BATHS", "YR_BLT"), {}, sql)


# A nasty file: negatives, zeros, missing values, declared missing codes, top and bottom codes, categories, text.

NASTY = Schema(
    (
        Column("ID", "text", frozenset({"id"})),
        Column("REGION", "category", frozenset({"block"}), categories=("n", "s", "w")),
        Column("WARD", "integer", frozenset({"block"})),
        Column("GAIN", "continuous", frozenset({"key"}), missing=(-9999, -8888)),
        Column("WAGE", "continuous", frozenset({"key"}), top=900, bottom=0),
        Column("AGE", "integer", frozenset({"key"}), top=90, bottom=15, missing=(-9, -8)),
        Column("EDU", "category", frozenset({"key"}), categories=("low", "middle", "high"), missing=("?",)),
        Column("TOWN", "text", frozenset({"key"})),
    )
)


def nasty() -> Setup:
    rng, n = np.random.default_rng(11), 1200
    truth = nasty_records(rng, n)
    order = rng.permutation(n)
    masked = {name: values[order] for name, values in disturbed(rng, truth).items()}
    masking = Masking.from_files(
        nasty_table("t", truth),
        nasty_table("r", masked),
        pa.table({"truth_id": [f"t{i}" for i in order], "released_id": [f"r{i}" for i in range(n)]}),
    )
    sql = {
        "GAIN": agreement("GAIN", (-9999, -8888), within("GAIN", 0.1)),
        "WAGE": agreement("WAGE", (900, 0), within("WAGE", 0.1)),
        "AGE": agreement("AGE", (90, 15, -9, -8), "abs(AGE_l - AGE_r) <= 2"),
        "EDU": agreement("EDU", (), "EDU_l = EDU_r"),  # '?' is equal to '?' alone
        "TOWN": agreement("TOWN", (), "TOWN_l = TOWN_r"),
    }
    return Setup(masking, ("REGION", "WARD"), {"AGE": Absolute(2), "TOWN": Exact()}, sql)


def nasty_records(rng: np.random.Generator, n: int) -> dict[str, Any]:
    gain = np.round(rng.normal(0, 50, n), 1)  # negative and positive, and 0.0 and -0.0 where it is small
    gain[rng.random(n) < 0.1] = rng.choice([0.0, -0.0])
    return {
        "REGION": rng.choice(np.array(["n", "s", "w"], dtype=object), n),
        "WARD": rng.integers(-2, 4, n),
        "GAIN": holed(rng, gain, (-9999, -8888, np.nan)),
        "WAGE": holed(rng, np.round(rng.uniform(1, 899, n)), (900, 0, np.nan)),
        "AGE": holed(rng, rng.integers(16, 90, n).astype(float), (90, 15, -9, -8, np.nan)),
        "EDU": holed(rng, rng.choice(np.array(["low", "middle", "high"], dtype=object), n), ("?", None)),
        "TOWN": holed(rng, np.array([f"town {i}" for i in rng.integers(0, 9, n)], dtype=object), (None,)),
    }


def holed(rng: np.random.Generator, values: Any, closed: tuple[Any, ...]) -> Any:
    """Close one value in twelve by each code."""
    out = values.copy()
    for code in closed:
        out[rng.random(len(out)) < 1 / 12] = code
    return out


def disturbed(rng: np.random.Generator, truth: dict[str, Any]) -> dict[str, Any]:
    """Add noise to open amounts, to the edge of agreement for some, and exchange one value in twenty of each field."""
    out = dict(truth)
    steps = rng.choice([0.0, 0.03, 0.1, -0.1, 0.2], len(truth["GAIN"]))  # 0.1 is just where agreement ends
    coded = np.isin(truth["GAIN"], (-9999, -8888))
    out["GAIN"] = np.where(coded, truth["GAIN"], truth["GAIN"] * (1 + steps))
    wage = truth["WAGE"]
    out["WAGE"] = np.where((wage > 0) & (wage < 900), np.clip(np.round(wage * (1 + steps)), 1, 899), wage)
    age = truth["AGE"]
    moved = np.clip(age + rng.integers(-3, 4, len(age)), 16, 89)
    out["AGE"] = np.where((age > 15) & (age < 90), moved, age)
    for name in ("GAIN", "WAGE", "AGE", "EDU", "TOWN"):
        changed = np.flatnonzero(rng.random(len(age)) < 0.05)
        out[name] = out[name].copy()
        out[name][changed] = out[name][rng.permutation(changed)]
    return out


def nasty_table(letter: str, values: dict[str, Any]) -> Table:
    columns = {name: pa.array(each, from_pandas=True) for name, each in values.items()}
    columns["AGE"] = columns["AGE"].cast(pa.int64())
    ids = [f"{letter}{i}" for i in range(len(columns["AGE"]))]
    return Table.from_frame(pa.table({"ID": ids, **columns}), NASTY)


# Splink's side.


@dataclass(frozen=True)
class Answer:
    """What Splink found: for each pair the record numbers, the pattern and the weight; and its parameters."""

    searcher: Any
    found: Any
    pattern: Any
    weight: Any
    m: Any
    u: Any
    p: float


def comparison(name: str, condition: str, m: float, u: float) -> Any:
    agree = levels.CustomLevel(f"coalesce({condition}, false)", "agrees")
    both = [
        agree.configure(m_probability=m, u_probability=u),
        levels.ElseLevel().configure(m_probability=1 - m, u_probability=1 - u),
    ]
    return comparisons.CustomComparison(output_column_name=name, comparison_levels=both)


def splink(setup: Setup, direction: str, m: Any, u: Any, p: float, *, train: bool) -> Answer:
    """Link the written files by Splink, from given parameters or from those it reaches from them by EM."""
    near, far = setup.masking.truth, setup.masking.release.table
    near, far = (near, far) if direction == "to_masked" else (far, near)
    database = DuckDBAPI(duckdb.connect())
    # The table whose name comes first in the alphabet is Splink's left side.
    sides = [
        database.register(written(table, setup), dataset_display_name=name)
        for name, table in (("a_searching", near), ("b_found", far))
    ]
    fields = zip(setup.sql.items(), m, u, strict=True)
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[comparison(name, sql, m, u) for (name, sql), m, u in fields],
        blocking_rules_to_generate_predictions=[block_on(*setup.blocks)],
        probability_two_random_records_match=p,
        em_convergence=TOLERANCE,
        max_iterations=400,
        retain_intermediate_calculation_columns=True,
    )
    linker = Linker(sides, settings, log_level=logging.CRITICAL)
    if train:
        linker.training.estimate_parameters_using_expectation_maximisation(
            block_on(*setup.blocks),
            estimate_without_term_frequencies=True,
            fix_u_probabilities=False,
            populate_probability_two_random_records_match_from_trained_values=True,
        )
    pairs = linker.inference.predict(warning_mode="never").as_duckdbpyrelation().to_arrow_table()
    return answer(setup, pairs, linker.misc.save_model_to_json())


def written(table: Table, setup: Setup) -> pa.Table:
    """Return a table as it is written, record numbers as ids, all numbers as doubles."""
    data = table.to_arrow().select([*setup.blocks, *setup.sql])
    arrays = {
        name: data[name].cast(pa.float64()) if table.schema[name].is_number else data[name]
        for name in data.column_names
    }
    return pa.table({"unique_id": np.arange(len(table)), **arrays})


def answer(setup: Setup, pairs: pa.Table, model: dict[str, Any]) -> Answer:
    bits = [pairs[f"gamma_{name}"].to_numpy().astype(np.int64) << f for f, name in enumerate(setup.sql)]
    agree = [one["comparison_levels"][0] for one in model["comparisons"]]
    return Answer(
        pairs["unique_id_l"].to_numpy(),
        pairs["unique_id_r"].to_numpy(),
        sum(bits),
        pairs["match_weight"].to_numpy(),
        np.array([level["m_probability"] for level in agree]),
        np.array([level["u_probability"] for level in agree]),
        model["probability_two_random_records_match"],
    )


# The comparisons.


def log_likelihood(counts: Any, m: Any, u: Any, p: float) -> float:
    """The log-likelihood of two classes of pairs with independent fields, written out."""
    bits, used = pattern_bits(len(m)), counts > 0
    first, second = (np.where(bits, x, 1 - x).prod(axis=1) for x in (np.asarray(m), np.asarray(u)))
    return float(counts[used] @ np.log(p * first + (1 - p) * second)[used])


def check_best_links(guess: Any, risk: Any, theirs: Answer) -> None:
    """Every pair is among the best of its searcher in both programs or in neither."""
    top = np.full(len(guess), -np.inf)
    np.maximum.at(top, theirs.searcher, theirs.weight)
    best = theirs.weight >= top[theirs.searcher] - SAME_WEIGHT
    assert np.array_equal(guess.is_tied(theirs.searcher, theirs.found), best)
    assert np.array_equal(np.bincount(theirs.searcher[best], minlength=len(guess)), guess.ties)
    assert np.array_equal(np.bincount(theirs.searcher, minlength=len(guess)), guess.candidates)
    ours = {
        *zip(guess.searcher[guess.found >= 0].tolist(), guess.found[guess.found >= 0].tolist(), strict=True)
    }
    assert ours <= {*zip(theirs.searcher[best].tolist(), theirs.found[best].tolist(), strict=True)}
    prior = np.log2(theirs.p / (1 - theirs.p))  # Splink's weight starts from it
    linked = guess.found >= 0
    assert guess.score[linked] == pytest.approx(top[linked] - prior, abs=1e-3)


SETUPS = {"survey": survey, "nasty": nasty}


@pytest.fixture(scope="module", params=list(SETUPS))
def setup(request: pytest.FixtureRequest) -> Setup:
    return SETUPS[request.param]()


def test_em_from_the_same_start_is_that_of_splink(setup):
    m, u, p = 0.8, 0.05, 0.05
    plan = setup.plan("to_masked", EM(m, u, p, starts=1, tolerance=TOLERANCE))
    risk, guess, _, _ = attack_by(plan, setup.masking)
    width = len(setup.sql)
    theirs = splink(setup, "to_masked", [m] * width, [u] * width, p, train=True)
    counts = guess.figures["counts"]
    assert np.array_equal(counts, np.bincount(theirs.pattern, minlength=1 << width))
    assert risk.fit.converged
    assert list(risk.m.values()) == pytest.approx(theirs.m, abs=1e-6)
    assert list(risk.u.values()) == pytest.approx(theirs.u, abs=1e-6)
    assert risk.p == pytest.approx(theirs.p, abs=1e-6)
    ours = log_likelihood(counts, risk.fit.m, risk.fit.u, risk.fit.p)
    assert ours == pytest.approx(risk.fit.log_likelihood, rel=1e-12)
    assert ours >= log_likelihood(counts, theirs.m, theirs.u, theirs.p) - 1e-9 * abs(ours)
    check_best_links(guess, risk, theirs)


@pytest.mark.parametrize("direction", ["to_masked", "to_original"])
def test_counts_and_best_links_at_given_weights_are_those_of_splink(setup, direction):
    width = len(setup.sql)
    # Binary fractions, so that both programs add weights of equal fields to equal sums.
    m, u = [0.75] * width, [0.25, 0.125, 0.0625, 0.25, 0.125][:width]
    risk, guess, _, _ = attack_by(setup.plan(direction, Fixed(tuple(m), tuple(u))), setup.masking)
    theirs = splink(setup, direction, m, u, 0.05, train=False)
    assert np.array_equal(guess.figures["counts"], np.bincount(theirs.pattern, minlength=1 << width))
    check_best_links(guess, risk, theirs)


def test_several_starts_fit_no_worse_than_splink(setup):
    width = len(setup.sql)
    risk, guess, _, _ = attack_by(setup.plan("to_masked", EM()), setup.masking)
    theirs = splink(setup, "to_masked", [0.8] * width, [0.05] * width, 0.02, train=True)
    counts = guess.figures["counts"]
    best = log_likelihood(counts, theirs.m, theirs.u, theirs.p)
    assert risk.fit.log_likelihood >= best - 1e-9 * abs(best)


def test_the_nasty_file_has_every_kind_of_pair():
    masking = nasty().masking
    for table in (masking.truth, masking.release.table):
        assert set(table.status("GAIN")) == {0, 1, 4, 5}
        assert set(table.status("WAGE")) == {0, 1, 2, 3}
        assert set(table.status("AGE")) == {0, 1, 2, 3, 4, 5}
        assert set(table.status("EDU")) == {0, 1, 4}
        assert set(table.status("TOWN")) == {0, 1}
    gain = masking.truth.floats("GAIN")
    assert {*np.sign(gain[~np.isnan(gain)])} == {-1.0, 0.0, 1.0}
