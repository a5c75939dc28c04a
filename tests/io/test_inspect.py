from __future__ import annotations

import datetime as dt
import tomllib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwell.errors import BadInput
from maskwell.io.conform import conform
from maskwell.io.inspect import ColumnFinding, SchemaProposal, propose
from maskwell.notes import Note
from maskwell.notes import texts as note_texts
from maskwell.schema import Column, Schema
from maskwell.table import Source

RECORDS = 400


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


def texts(values) -> pa.Array:
    return pa.array([None if value is None else str(value) for value in values], pa.string())


def proposed(decimal: str = ".", **columns) -> SchemaProposal:
    arrays = {name: v if isinstance(v, pa.Array) else texts(v) for name, v in columns.items()}
    return propose(pa.table(arrays), decimal=decimal)


def column(values, name: str = "x", decimal: str = ".") -> Column:
    return proposed(decimal, **{name: values}).schema[name]


def kinds(proposal: SchemaProposal, name: str | None = "x") -> list[str]:
    return [finding.kind for finding in proposal.of(name)]


def finding(proposal: SchemaProposal, kind: str) -> ColumnFinding:
    (found,) = [found for found in proposal.findings if found.kind == kind]
    return found


def spread(rng: np.random.Generator, low: int, high: int, records: int = RECORDS) -> np.ndarray:
    return rng.integers(low, high, records)


def planted(values: np.ndarray, code: float, every: int = 20) -> np.ndarray:
    values = values.copy()
    values[::every] = code
    return values


# Kinds and units.


def test_whole_numbers(rng):
    assert column(spread(rng, 0, 9000)) == Column("x", "integer", frozenset({"key"}))


@pytest.mark.parametrize(("decimals", "unit"), [(1, 0.1), (2, 0.01), (6, 1e-6)])
def test_the_unit_is_the_power_of_ten_that_divides_all(rng, decimals, unit):
    values = [f"{value:.{decimals}f}" for value in rng.normal(100, 20, RECORDS)]
    proposal = proposed(x=values)
    assert proposal.schema["x"] == Column("x", "continuous", frozenset({"key"}), unit=unit)
    assert kinds(proposal) == ["unit"]


def test_no_unit_beyond_six_decimals(rng):
    proposal = proposed(x=rng.normal(size=RECORDS))
    assert proposal.schema["x"].unit is None
    assert "no unit is proposed" in finding(proposal, "unit").text


def test_whole_numbers_with_a_point_are_continuous(rng):
    assert column([f"{value}.0" for value in spread(rng, 0, 900)]).kind == "continuous"


def test_a_coarse_unit_is_offered_and_not_applied(rng):
    proposal = proposed(x=1000 * spread(rng, 5, 200))
    assert proposal.schema["x"].unit is None
    assert finding(proposal, "unit").suggestion == "unit = 1000"


def test_decimal_comma(rng):
    values = [f"{value:.1f}".replace(".", ",") for value in rng.normal(100, 20, RECORDS)]
    assert column(values, decimal=",").unit == 0.1
    assert column(values, decimal=".").kind == "text"


def test_blanks_around_numbers_are_no_part_of_them(rng):
    values = [f" {value} " for value in spread(rng, 0, 9000)]
    values[3] = "  "
    assert column(values).kind == "integer"


@pytest.mark.parametrize("values", [range(1, 5), range(20)])
def test_few_whole_numbers_are_a_category(values):
    proposal = proposed(x=[*values] * (RECORDS // len(values)))
    assert proposal.schema["x"].categories == tuple(map(str, values))
    assert "kind integer" in finding(proposal, "category").text


@pytest.mark.parametrize(("values", "records"), [(21, 2100), (4, 60)])
def test_more_of_them_or_few_records_make_no_category(values, records):
    assert column([i % values for i in range(records)]).kind == "integer"


def test_a_few_fractions_are_asked_about(rng):
    """0, 0.5 and 1 may stand for none, some and much, as in the column edema of the PBC trial."""
    few = proposed(x=rng.choice([0, 0.5, 1], RECORDS))
    assert few.schema["x"].kind == "continuous"
    assert 'kind = "category"' in finding(few, "few-values").otherwise
    for other in (rng.choice([0.0, 1.0], RECORDS), rng.choice(np.arange(6) / 2, RECORDS)):
        assert "few-values" not in kinds(proposed(x=other))


def test_category_labels_are_spelled_as_in_the_file():
    assert column([" 2", " 1", " 3", " 1"] * 100).categories == (" 1", " 2", " 3")
    assert column(["02", "01", "10", "01"] * 100).categories == ("01", "02", "10")


def test_text_that_repeats_is_a_category(rng):
    assert column(rng.choice(["west", "east", "north"], RECORDS)).categories == ("east", "north", "west")


def test_text_that_mostly_differs_is_dropped():
    proposal = proposed(x=[f"said {i % 300}" for i in range(RECORDS)])
    assert proposal.schema["x"] == Column("x", "text", drop=True)
    assert kinds(proposal) == ["text"]


def test_too_many_categories_for_a_block():
    proposal = proposed(x=[f"v{i % 61}" for i in range(RECORDS)])
    assert proposal.schema["x"].roles == frozenset()
    assert kinds(proposal) == ["category"]


@pytest.mark.parametrize("make", ["{:05d}", "{:017d}", "9{:016d}", "+49{}"])
def test_digits_that_are_names_stay_text(make):
    values = [make.format(i % 300) for i in range(RECORDS)]
    assert column(values).kind == "text"


def test_one_long_number_makes_the_column_text():
    assert column([*range(1000, 1000 + RECORDS), 10**16]).kind == "text"


@pytest.mark.parametrize("pair", [("true", "false"), ("Yes", "No"), ("0", "1"), ("t", "f"), ("Y", "N")])
def test_booleans_are_categories(pair):
    proposal = proposed(x=[*pair] * 10)
    assert set(proposal.schema["x"].categories) == set(pair)
    assert kinds(proposal) == ["boolean"]


@pytest.mark.parametrize(
    "words", [("yes", "no", "0", "1"), ("0", "1", "yes"), ("yes", "Yes", "no"), ("true", "0")]
)
def test_mixed_booleans_are_asked_about(words):
    proposal = proposed(x=[*words] * 100)
    assert proposal.schema["x"].drop
    assert "several ways" in finding(proposal, "boolean").text


@pytest.mark.parametrize("words", [("F", "N"), ("T", "N"), ("y", "f")])
def test_letters_without_their_pair_are_no_booleans(words):
    proposal = proposed(x=[*words, ""] * 100)
    assert set(proposal.schema["x"].categories) == set(words)
    assert not proposal.schema["x"].drop


@pytest.mark.parametrize(
    "form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%y", "%Y-%m-%d %H:%M:%S", "%d%b%Y", "%Y/%m", "%Y%m%d", "%H:%M"]
)
def test_dates_are_asked_about(form):
    start = dt.datetime(1960, 1, 1, 12)
    values = [(start + dt.timedelta(days=37 * i, minutes=11 * i)).strftime(form) for i in range(RECORDS)]
    proposal = proposed(x=values)
    assert proposal.schema["x"] == Column("x", "text", drop=True)
    assert kinds(proposal) == ["date"]


def test_constant_columns_get_no_role():
    proposal = proposed(x=["7"] * RECORDS, y=["a"] * RECORDS)
    assert [(c.kind, c.roles) for c in proposal.schema.columns] == [
        ("integer", frozenset()),
        ("category", frozenset()),
    ]
    assert kinds(proposal) == kinds(proposal, "y") == ["constant"]


def test_columns_without_a_value_are_dropped():
    proposal = proposed(x=[None] * 5, y=pa.nulls(5))
    assert [c.drop for c in proposal.schema.columns] == [True, True]
    assert kinds(proposal) == kinds(proposal, "y") == ["all-missing"]


# Texts among numbers.


def test_words_among_numbers_are_missing_codes_to_confirm(rng):
    values = spread(rng, 0, 9000).astype(object)
    values[::50] = "NA"
    values[1::100] = "refused"
    proposal = proposed(x=values)
    assert proposal.schema["x"].kind == "integer"
    assert set(proposal.schema["x"].missing) == {"NA", "refused"}
    assert finding(proposal, "code").text.startswith("3.0% of the values")


def test_namibia_stays_a_category_until_someone_says_otherwise(rng):
    proposal = proposed(x=rng.choice(["NA", "DE", "FR"], RECORDS))
    assert proposal.schema["x"].categories == ("DE", "FR", "NA")
    assert proposal.schema["x"].missing == ()
    assert finding(proposal, "code").suggestion == 'missing = ["NA"]'


@pytest.mark.parametrize("stray", ["12,500", "inf", "1e999", "3 or 4"])
def test_strays_among_numbers_are_told_by_record_never_by_value(rng, stray):
    values = spread(rng, 0, 9000).astype(object)
    values[[41, 77]] = stray
    proposal = proposed(x=values)
    assert proposal.schema["x"] == Column("x", "text", drop=True)
    said = f"2 of {RECORDS} records hold no number (records 42, 78), all others do: dropped"
    assert finding(proposal, "stray").text == said
    assert "Then correct these in the file" in finding(proposal, "stray").otherwise
    assert stray not in proposal.to_toml()


def test_a_few_strays_make_no_category_of_an_amount(rng):
    ages = rng.integers(18, 60, RECORDS).astype(object)
    ages[[7, 9]] = "4O"
    proposal = proposed(x=ages)
    assert proposal.schema["x"] == Column("x", "text", drop=True)
    assert "(records 8, 10)" in finding(proposal, "stray").text
    ages[:20] = "4O"  # a class of its own
    assert "stray" not in kinds(proposed(x=ages))
    codes = rng.integers(1, 9, RECORDS).astype(object)
    codes[7] = "3a"
    assert proposed(x=codes).schema["x"].kind == "category"


def test_a_word_among_numbers_is_told_with_its_first_record(rng):
    values = spread(rng, 0, 9000).astype(object)
    values[11], values[[4, 17]] = "Summe", "k. A."
    said = [found.text.split(", a word")[0] for found in proposed(x=values).of("x") if found.kind == "word"]
    assert sorted(said) == ['"Summe" (record 12)', '"k. A." (2 records, first 5)']


def grouped(value: float, separator: str, decimal: str) -> str:
    return f"{value:,.2f}".replace(",", "_").replace(".", decimal).replace("_", separator)


@pytest.mark.parametrize(("separator", "sign"), [(",", "."), (".", ","), (" ", ","), ("\u2019", ".")])
@pytest.mark.parametrize("decimal", [".", ","])
def test_thousands_separators_are_named_with_the_remedy(rng, separator, sign, decimal):
    values = [grouped(value, separator, sign) for value in rng.lognormal(7.5, 1, RECORDS)]
    values[7], values[9] = None, "?"
    proposal = proposed(decimal, amount_id=values)
    assert proposal.schema["amount_id"] == Column("amount_id", "text", drop=True)
    said = finding(proposal, "thousands").said
    assert "Then remove the separators in the file (or export it without), and draft the schema anew" in said


def test_whole_numbers_with_separators_that_repeat_are_no_category():
    proposal = proposed(x=["1,000", "12,500", "900"] * 100)
    assert kinds(proposal) == ["thousands"]


# Spikes and pile-ups.


@pytest.mark.parametrize("code", [-9, -99, -1, -97, 999, 9999, 99999])
def test_conventional_codes(rng, code):
    proposal = proposed(x=planted(spread(rng, 0, 120), code))
    assert proposal.schema["x"].missing == ()
    assert finding(proposal, "spike").suggestion == f"missing = [{code}]"
    assert f"5.0% are {code}" in finding(proposal, "spike").text


def test_a_code_close_to_the_values(rng):
    assert finding(proposed(x=planted(spread(rng, 18, 90), 99)), "spike").suggestion == "missing = [99]"


def test_several_codes_at_both_ends(rng):
    values = planted(planted(planted(spread(rng, 0, 500), -9), 8888, 31), 9999, 37)
    assert finding(proposed(x=values), "spike").suggestion == "missing = [-9, 8888, 9999]"


def test_a_frequent_value_far_from_the_rest(rng):
    assert (
        finding(proposed(x=planted(spread(rng, 100, 500), 12345)), "spike").suggestion == "missing = [12345]"
    )
    assert (
        finding(proposed(x=planted(spread(rng, 100, 500), -12345)), "spike").suggestion
        == "missing = [-12345]"
    )


def test_frequent_nines_among_the_values(rng):
    values = planted(spread(rng, 0, 250_000, 2000), 99999)
    assert finding(proposed(x=values), "spike").suggestion == "missing = [99999]"


HOURS = {63: 1, 65: 1, 68: 1, 70: 21, 72: 6, 75: 3, 78: 2, 80: 36, 84: 6, 90: 6, 96: 3}  # the tail of labsup


def hours(more: dict[int, int]) -> np.ndarray:
    tail = HOURS | more
    low = np.repeat(np.arange(1, 61), np.arange(1, 61) % 7 * 50 + 100)
    return np.random.default_rng(9).permutation(np.r_[low, np.repeat([*tail], [*tail.values()])])


def test_nines_that_others_lead_up_to_are_a_top_code():
    proposal = proposed(x=hours({98: 1, 99: 60}))
    assert "spike" not in kinds(proposal)
    assert proposal.schema["x"].roles == {"key"}
    found = finding(proposal, "pile-up")
    assert found.suggestion == "top = 99"
    assert "a code for no value? Then add missing = [99]" in found.text


def test_nines_farther_out_than_the_values_from_one_another_are_codes(rng):
    proposal = proposed(x=hours({999: 60}))
    assert finding(proposal, "spike").suggestion == "missing = [999]"
    ages = np.r_[spread(rng, 18, 96, 1500), [98] * 90, [99] * 80]
    assert finding(proposed(x=ages), "spike").suggestion == "missing = [98, 99]"


def test_a_largest_value_of_all_nines_in_a_dense_range_is_a_top_code(rng):
    values = np.r_[np.arange(99_000, 99_999), [99_999] * 60, spread(rng, 60_000, 99_999, 2000)]
    assert kinds(proposed(x=values)) == ["pile-up"]


def test_codes_of_categories(rng):
    proposal = proposed(x=planted(spread(rng, 1, 5), 9))
    assert proposal.schema["x"].categories == ("1", "2", "3", "4", "9")
    assert finding(proposal, "spike").suggestion == 'missing = ["9"]'


@pytest.mark.parametrize("values", [range(1, 4), range(7, 10), range(10)])
def test_neighbours_are_no_codes(values):
    assert "spike" not in kinds(proposed(x=[*values] * 100))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.sampled_from(["normal", "lognormal", "uniform", "poisson", "pareto"]))
def test_plain_distributions_have_neither_spikes_nor_pile_ups(seed, law):
    rng = np.random.default_rng(seed)
    draws = {
        "normal": lambda: rng.normal(0, 300, 1000),
        "lognormal": lambda: rng.lognormal(9, 1, 1000),
        "uniform": lambda: rng.uniform(0, 80, 1000),
        "poisson": lambda: rng.poisson(30, 1000),
        "pareto": lambda: 1000 * rng.pareto(2, 1000),
    }
    proposal = proposed(x=np.rint(draws[law]()).astype(int))
    assert not {"spike", "pile-up"} & set(kinds(proposal))


def test_a_pile_up_at_the_top_is_offered_and_not_applied(rng):
    values = np.minimum(rng.lognormal(10, 1, RECORDS).astype(int), 50_000)
    proposal = proposed(x=values)
    share = np.mean(values == 50_000)
    assert proposal.schema["x"].top is None
    assert finding(proposal, "pile-up").suggestion == "top = 50000"
    assert finding(proposal, "pile-up").text.startswith(f"{share:.1%} of the values")


def test_zeros_are_asked_about_as_zeros(rng):
    proposal = proposed(x=planted(spread(rng, 100, 9000), 0, 3))
    assert "real zeros?" in finding(proposal, "zeros").text
    assert proposal.questions()["x"] == (Note("io.asks_zeros"),)


def test_values_below_0_that_follow_on_are_no_codes(rng):
    """Age less schooling less 6: some have experience of -1 and -2 years, as few as have 0."""
    years = rng.integers(-2, 40, 1500)
    assert "spike" not in {one.kind for one in proposed(x=years).findings}
    codes = np.concatenate([rng.integers(0, 40, 1500), np.full(150, -1)])
    assert finding(proposed(x=codes), "spike").suggestion == "missing = [-1]"


def test_zeros_inside_the_range_are_asked_about_too(rng):
    changes = np.where(rng.random(400) < 0.5, 0.0, rng.normal(0, 50, 400).round(2))
    proposal = proposed(x=changes)
    assert "real zeros?" in finding(proposal, "zeros").text


def test_a_pile_up_at_another_end_is_a_bottom_code(rng):
    proposal = proposed(x=planted(spread(rng, 1000, 9000), 1000, 4))
    assert finding(proposal, "pile-up").suggestion == "bottom = 1000"


def test_a_pile_up_is_seen_beside_a_code(rng):
    values = planted(np.minimum(rng.lognormal(10, 1, RECORDS).astype(int), 50_000), -9)
    proposal = proposed(x=values)
    assert finding(proposal, "spike").suggestion == "missing = [-9]"
    assert finding(proposal, "pile-up").suggestion == "top = 50000"


# Roles.


def test_the_best_id_is_proposed_and_other_unique_columns_dropped(rng):
    proposal = proposed(
        name=[f"person {i}" for i in range(RECORDS)],
        PERSONID=rng.permutation(RECORDS) + 1000,
        line=range(RECORDS),
        x=spread(rng, 0, 90),
    )
    assert proposal.schema.id_column == "PERSONID"
    assert proposal.schema["PERSONID"].kind == "text"
    assert [c.name for c in proposal.schema.columns if c.drop] == ["name", "line"]
    assert kinds(proposal, "name") == kinds(proposal, "line") == kinds(proposal, "PERSONID") == ["id"]


@pytest.mark.parametrize(
    "name", ["id", "IDNUM", "case_id", "PersonId", "pnr", "patient-no", "recnum", "uuid"]
)
def test_names_of_ids(name, rng):
    proposal = proposed(**{name: rng.permutation(7 * RECORDS)[:RECORDS] + 50})
    assert proposal.schema.id_column == name


@pytest.mark.parametrize("name", ["income", "paid", "AGI", "no_of_days", "residence"])
def test_amounts_that_all_differ_are_no_ids(name, rng):
    amounts = np.unique(np.rint(rng.lognormal(12, 1, 2 * RECORDS)).astype(int))
    proposal = proposed(**{name: rng.permutation(amounts)[:RECORDS]})
    assert proposal.schema[name].roles == {"key"}
    assert kinds(proposal, None) == ["id"]


def test_an_id_that_repeats_is_told(rng):
    values = np.arange(RECORDS) * 3
    values[5] = values[6]
    proposal = proposed(case_id=values)
    assert proposal.schema.id_column is None
    assert proposal.schema["case_id"].drop
    found = proposal.of("case_id")[0]
    assert f"but 1 of {RECORDS} records repeats a value (record 7): dropped" in found.text
    assert 'Then correct these in the file first, and give it roles = ["id"]' in found.otherwise


def test_labels_that_repeat_are_no_id_as_they_are():
    values = np.arange(RECORDS) + 1
    values[[5, 6, 99]] = 5, 5, 1
    found = proposed(mrn=values).of("mrn")[0]
    said = f"nearly every record has its own value, as an identifier has, but 3 of {RECORDS} records repeat a value"
    assert found.text.startswith(f"{said} (records 6, 7, 100): is it one?")
    assert "role id, once these are corrected in the file" in found.text
    beside = proposed(id=[f"r{i}" for i in range(RECORDS)], mrn=values).of("mrn")[0]
    assert beside.text == f"{said} (records 6, 7, 100): dropped, as proposed?"
    assert "correct these in the file first" in beside.otherwise


def test_an_id_with_decimals_is_told_without_repeats_that_it_has_not():
    proposal = proposed(id=[f"{i}.0" for i in range(19, 19 + 3 * RECORDS, 3)])
    assert proposal.schema["id"].drop
    said = "named like an id, and every record has its own value: dropped, as proposed?"
    assert proposal.of("id")[0].text == said


def labels(rng: np.random.Generator, low: int, high: int) -> np.ndarray:
    return low + rng.permutation(high - low)[:RECORDS]


LABELS = {
    "eight digits": lambda rng: rng.integers(10**7, 10**8, RECORDS),
    "six digits": lambda rng: labels(rng, 100_000, 1_000_000),
    "thirteen digits": lambda rng: 1234567890123 + rng.integers(0, 10**8, RECORDS),
    "a sequence with gaps": lambda rng: np.sort(rng.permutation(RECORDS * 5 // 4)[:RECORDS]) + 3,
    "steps of ten": lambda rng: 10 * np.arange(1, RECORDS + 1),
    "floats": lambda rng: pa.array(rng.integers(10**7, 10**8, RECORDS).astype(float)),
    "floats as text": lambda rng: rng.integers(10**7, 10**8, RECORDS).astype(float),
    "some missing": lambda rng: pa.array(
        rng.integers(10**7, 10**8, RECORDS).astype(float), mask=np.arange(RECORDS) % 3 == 0
    ),
    "some codes": lambda rng: planted(rng.integers(10**7, 10**8, RECORDS), -9),
}


@pytest.mark.parametrize("make", LABELS.values(), ids=list(LABELS))
def test_numbers_that_look_like_identifiers_are_asked_about(make, rng):
    proposal = proposed(mrn=make(rng), x=spread(rng, 0, 90))
    assert proposal.schema["mrn"].is_number
    assert proposal.schema["mrn"].roles == frozenset()
    (found,) = [found for found in proposal.of("mrn") if found.kind == "id"]
    assert "every record has its own value, as an identifier has" in found.text
    assert "is it one?" in found.text
    assert found.suggestion == "drop = true"
    assert Note("io.asks_identifier") in proposal.questions()["mrn"]
    beside = proposed(id=[f"r{i}" for i in range(RECORDS)], mrn=make(rng))
    assert beside.schema["mrn"] == Column("mrn", "text", drop=True)
    assert kinds(beside, "mrn") == ["id"]


AMOUNTS = {
    "lognormal": lambda rng: rng.lognormal(10, 0.8, RECORDS),
    "six digits": lambda rng: np.clip(rng.lognormal(12.7, 0.35, RECORDS), 100_000, 999_999),
    "normal": lambda rng: rng.normal(500_000, 90_000, RECORDS),
    "five digits": lambda rng: labels(rng, 10_000, 100_000),
    "that repeat": lambda rng: rng.integers(100_000, 110_000, RECORDS),
    "of both signs": lambda rng: rng.integers(10**7, 10**8, RECORDS) * rng.choice([-1, 1], RECORDS),
}


@pytest.mark.parametrize("make", AMOUNTS.values(), ids=list(AMOUNTS))
def test_amounts_do_not_look_like_identifiers(make, rng):
    proposal = proposed(x=np.rint(make(rng)).astype(int))
    assert proposal.schema["x"].roles == {"key"}
    assert "id" not in kinds(proposal)


@pytest.mark.parametrize("name", ["HHID", "household", "school_nr", "schoolId", "cluster"])
def test_groups_are_dropped_and_asked_about(name, rng):
    proposal = proposed(**{name: spread(rng, 1000, 1100)})
    assert proposal.schema[name] == Column(name, "text", frozenset({"group"}), drop=True)
    assert kinds(proposal, name) == ["group"]
    assert note_texts(proposal.questions()[name]) == ("dropped until a schema decides (the id of a group?)",)


def test_a_group_is_asked_about_with_three_answers(rng):
    otherwise = finding(proposed(hid=spread(rng, 1000, 1100)), "group").otherwise
    answers = ('roles = ["id"]', 'roles = ["group"] with drop = true', 'roles = ["key"]')
    assert all(answer in otherwise for answer in answers)


def runs(rng: np.random.Generator, names: np.ndarray) -> np.ndarray:
    """Each name in one run of one to five records, as the members of a household stand in a file."""
    return np.repeat(names, rng.integers(1, 6, len(names)))


RUNS = {
    "in order": lambda rng: np.arange(90),
    "in order, with gaps": lambda rng: np.cumsum(rng.integers(1, 40, 90)),
    "in any order": lambda rng: rng.permutation(9000)[:90],
    "of text": lambda rng: np.array([f"h{i}" for i in rng.permutation(90)]),
}


@pytest.mark.parametrize("make", RUNS.values(), ids=list(RUNS))
def test_values_that_repeat_in_runs_are_taken_for_groups(make, rng):
    values = runs(rng, make(rng))
    proposal = proposed(x=values, y=spread(rng, 0, 9000, len(values)))
    assert (proposal.schema["x"].roles, proposal.schema["x"].drop) == ({"group"}, True)
    assert "equal values stand in runs" in finding(proposal, "group").text


@pytest.mark.parametrize("name", ["age", "wage", "year", "INCOME_1999"])
def test_amounts_in_a_sorted_file_are_no_groups(name, rng):
    assert proposed(**{name: runs(rng, np.arange(1900, 1990))}).schema[name].roles == {"key"}


def test_persons_in_waves_are_taken_for_groups(rng):
    proposal = proposed(x=np.tile(rng.permutation(9000)[:120], 4), y=spread(rng, 0, 9000, 480))
    assert (proposal.schema["x"].roles, proposal.schema["x"].drop) == ({"group"}, True)
    assert "each value as often as any other" in finding(proposal, "group").text


def test_values_that_come_again_are_no_groups(rng):
    values = runs(rng, np.arange(90))
    assert proposed(x=rng.permutation(values)).schema["x"].roles == {"key"}


def test_long_numbers_that_repeat_are_taken_for_groups(rng):
    proposal = proposed(x=rng.choice(rng.integers(10**7, 10**8, 90), RECORDS))
    assert (proposal.schema["x"].roles, proposal.schema["x"].drop) == ({"group"}, True)


def test_an_id_of_few_values_stays_a_category_and_is_asked(rng):
    proposal = proposed(store_id=spread(rng, 1, 6))
    assert proposal.schema["store_id"].roles == {"block"}
    assert note_texts(proposal.questions()["store_id"]) == ("an id, a group or a category?",)


def test_names_of_persons_are_dropped(rng):
    names = rng.choice([f"name {chr(97 + i % 26)}{i}" for i in range(80)], RECORDS)
    assert proposed(last_name=names).schema["last_name"].drop
    assert proposed(sort=names).schema["sort"].kind == "category"


def test_labels_say_what_names_do_not(rng):
    raw = pa.table(
        {
            "v1": texts(spread(rng, 1, 150)),
            "v2": texts(spread(rng, 100, 9000)),
            "v3": texts(spread(rng, 1, 90)),
        }
    )
    labels = {"v1": "Household number", "v2": "Final person weight", "v3": "Occupation code (ISCO)"}
    schema = propose(raw, labels=labels).schema
    assert (schema["v1"].roles, schema["v1"].drop) == ({"group"}, True)
    assert schema["v2"].roles == {"weight"}
    assert schema["v3"].kind == "category"


@pytest.mark.parametrize("name", ["occupation", "occ1990", "ISCO", "industry_code", "countyfips", "district"])
def test_numbers_named_like_codes_are_categories(name, rng):
    values = rng.choice(rng.permutation(900)[:50], RECORDS)
    assert proposed(**{name: values}).schema[name].kind == "category"


@pytest.mark.parametrize("name", ["occupation_prestige", "county_income", "state_pop", "regional_rate"])
def test_amounts_of_places_and_occupations_are_amounts(name, rng):
    values = rng.choice(rng.permutation(900)[:50], RECORDS)
    assert proposed(**{name: values}).schema[name].roles == {"key"}


@pytest.mark.parametrize("name", ["HHINCOME", "household_size", "school_years"])
def test_amounts_of_groups_are_no_groups(name, rng):
    assert proposed(**{name: spread(rng, 1000, 1100)}).schema[name].roles == {"key"}


@pytest.mark.parametrize("name", ["weight", "FNLWGT", "AFNLWGT", "pond", "ponderation", "person_wt"])
def test_weights(name, rng):
    proposal = proposed(**{name: spread(rng, 100, 9000), "other_weight": spread(rng, 100, 9000)})
    assert proposal.schema.with_role("weight") == (name,)
    assert proposal.schema["other_weight"] == Column("other_weight", "integer", drop=True)


def test_a_weight_of_few_values_is_still_a_number():
    proposal = proposed(weight=[100, 250, 900, 1200] * 100)
    assert (proposal.schema["weight"].kind, proposal.schema["weight"].roles) == ("integer", {"weight"})


@pytest.mark.parametrize("bad", [0, -5, None])
def test_a_weight_must_be_positive(rng, bad):
    values = spread(rng, 100, 9000).astype(object)
    values[9] = bad
    proposal = proposed(weight=values)
    assert proposal.schema["weight"] == Column("weight", "integer", drop=True)
    assert "weight" in kinds(proposal, "weight")


def test_a_mean_of_one_makes_a_weight(rng):
    values = rng.lognormal(0, 0.5, RECORDS)
    assert proposed(x=values / values.mean()).schema["x"].roles == {"weight"}
    assert proposed(x=values / values.mean() * 1.001).schema["x"].roles == {"key"}


def test_the_weight_of_bodies_is_an_amount(rng):
    height = rng.normal(170, 10, RECORDS).round()
    weight = (height - 100 + rng.normal(0, 8, RECORDS)).round()
    assert proposed(height=height, weight=weight).schema["weight"].roles == {"key"}
    assert proposed(height=height, weight=rng.permutation(weight)).schema["weight"].roles == {"weight"}


def test_the_weight_at_birth_beside_heights_is_an_amount_and_asked(rng):
    ht = rng.normal(64, 2.5, 1200).round()
    wt = (120 + 1.5 * (ht - 64) + rng.normal(0, 18, 1200)).round()  # a correlation of 0.2
    proposal = proposed(wt=wt, ht=ht)
    assert proposal.schema["wt"].roles == {"key"}
    assert finding(proposal, "body").otherwise == 'A survey weight? Then roles = ["weight"]'
    assert proposed(pspwght=wt, ht=ht).schema["pspwght"].roles == {"weight"}


def test_a_share_of_a_budget_is_no_weight(rng):
    shares = rng.dirichlet([3, 2, 2, 2], 800).round(4).T
    named = dict(zip(("wfood", "wfuel", "wtrans", "wother"), shares, strict=True))
    assert proposed(**named, age=spread(rng, 18, 90, 800)).schema["wtrans"].roles == {"key"}
    alone = proposed(wfood=shares[0], wtrans=shares[2], wage=spread(rng, 9, 900, 800))
    assert alone.schema["wtrans"].roles == {"weight"}


def test_a_respondent_is_no_weight(rng):
    assert proposed(respondents=spread(rng, 100, 9000)).schema["respondents"].roles == {"key"}


# Columns together.


def test_identities_are_asked_about_at_the_total(rng):
    a, b = spread(rng, 0, 9000), spread(rng, 0, 900)
    proposal = proposed(a=a, b=b, t=a + b)
    assert finding(proposal, "identity").column == "t"
    assert finding(proposal, "identity").text.startswith("'t' = 'a' + 'b', exactly")


def test_codes_and_missing_values_do_not_hide_an_identity(rng):
    a, b = spread(rng, 0, 9000), spread(rng, 0, 900)
    total = planted(a + b, -9, 50).astype(object)
    total[3::40] = None
    assert finding(proposed(a=a, b=b, t=total), "identity").column == "t"


def test_near_duplicates(rng):
    a = spread(rng, 0, 90_000)
    proposal = proposed(a=a, b=a + spread(rng, 0, 9), c=a, m=12 * a)
    said = {found.column: found.text for found in proposal.findings if found.kind == "near-duplicate"}
    assert set(said) == {"b", "c", "m"}
    assert "is equal to 'a'" in said["c"] + proposal.of("c")[0].text
    assert finding(proposal, "identity").text.startswith("'m' = 12 x 'a'")


def test_columns_that_are_mostly_equal(rng):
    a = spread(rng, 100, 90_000)
    b = np.where(rng.random(RECORDS) < 0.7, a, spread(rng, 100, 90_000))
    found = finding(proposed(a=a, b=b), "near-duplicate")
    assert found.column == "b"
    assert found.text.startswith(f"is equal to 'a' in {np.mean(a == b):.0%} of the records")


def test_open_questions_are_short_and_hold_no_value(rng):
    values = planted(np.minimum(rng.lognormal(10, 1, RECORDS).astype(int), 50_000), -9)
    proposal = proposed(
        x=values,
        mrn=labels(rng, 10**7, 10**8),
        c=rng.choice(["NA", "DE"], RECORDS),
        born=["2020-01-31"] * RECORDS,
        plain=spread(rng, 0, 9000),
    )
    assert {name: note_texts(asked) for name, asked in proposal.questions().items()} == {
        "x": ("codes for no value among its values?", "a top code?"),
        "mrn": ("an identifier?",),
        "c": ("words for no value among its categories?",),
        "born": ("dropped until a schema decides (dates or times)",),
    }


def test_blocks_of_one_record():
    x, y, z = ["a"] * 30 + ["b"] * 30, ["u"] * 60, ["1", "2"] * 30
    y[28] = y[29] = y[59] = "v"
    z[0] = None
    alone = finding(proposed(x=x, y=y, z=z), "small-blocks")
    assert alone.column is None
    assert alone.text.startswith("records alone in their block (of x, y, z): 4;")


def test_many_blocks_do_not_overflow(rng):
    values = {f"b{i}": rng.choice([f"v{k}" for k in range(50)], RECORDS) for i in range(14)}
    assert f": {RECORDS};" in finding(proposed(**values), "small-blocks").text


# Typed sources.


def test_types_of_other_sources(rng):
    floats = np.round(rng.normal(100, 20, RECORDS), 1)
    gaps = spread(rng, 0, 9000).astype(float)
    gaps[4] = np.nan
    start = dt.date(1970, 1, 1)
    proposal = proposed(
        i=pa.array(spread(rng, 0, 9000), pa.int32()),
        f=pa.array(floats),
        single=pa.array(floats[::-1].astype(np.float32)),
        gaps=pa.array(gaps),
        d=pa.array([Decimal(f"{v:.2f}") for v in rng.normal(100, 20, RECORDS)]),
        b=pa.array(rng.random(RECORDS) < 0.5),
        c=pa.array(rng.choice(["u", "v"], RECORDS)).dictionary_encode(),
        codes=pa.array(rng.integers(1, 4, RECORDS).astype(float)),
        day=pa.array([start + dt.timedelta(days=i) for i in range(RECORDS)]),
        long=pa.array(np.arange(RECORDS) % 99 + 10**17),
        nested=pa.array([[1, 2]] * RECORDS),
    )
    described = {c.name: (c.kind, c.unit, c.categories, c.drop) for c in proposal.schema.columns}
    assert described == {
        "i": ("integer", None, (), False),
        "f": ("continuous", 0.1, (), False),
        "single": ("continuous", 0.1, (), False),
        "gaps": ("integer", None, (), False),
        "d": ("continuous", 0.01, (), False),
        "b": ("category", None, ("false", "true"), False),
        "c": ("category", None, ("u", "v"), False),
        "codes": ("category", None, ("1", "2", "3"), False),
        "day": ("text", None, (), True),
        "long": ("category", None, tuple(str(10**17 + i) for i in range(99)), False),
        "nested": ("text", None, (), True),
    }


def test_decimal_numbers_are_never_the_id():
    assert proposed(id=pa.array(np.arange(RECORDS) * 1.0)).schema.id_column is None


def test_an_infinite_value_is_told_by_its_record(rng):
    values = rng.normal(size=RECORDS)
    values[10] = np.inf
    proposal = proposed(x=pa.array(values))
    assert "record 11 is not finite" in finding(proposal, "infinite").text


@pytest.mark.parametrize("table", [pa.table({}), pa.table({"x": pa.array([], pa.string())})])
def test_nothing_to_look_at(table):
    with pytest.raises(BadInput, match="the file has no"):
        propose(table)


def test_chunks_change_nothing(rng):
    whole = pa.table({"x": texts(spread(rng, 0, 9000)), "y": texts(rng.choice(["u", "v"], RECORDS))})
    pieces = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 200), whole.slice(207)])
    assert propose(pieces) == propose(whole)


# What is shown and written.


@pytest.fixture
def survey(rng) -> pa.Table:
    a, b = spread(rng, 0, 9000), planted(spread(rng, 100, 900), 0, 4)
    income = planted(a, -9, 50).astype(object)
    income[::60] = "refused"
    return pa.table(
        {
            "ID": texts(f"{i:04d}" for i in range(RECORDS)),
            "hh": texts(spread(rng, 100, 250)),
            'wei"rd\nname\x7f': texts(rng.choice(["a\nb", 'q"', "ü"], RECORDS)),
            "a": texts(a),
            "b": texts(b),
            "t": texts(a + b),
            "income": texts(income),
            "rate": texts(f"{value:.2f}" for value in rng.random(RECORDS)),
            "born": texts(dt.date(1960, 1, 1) + dt.timedelta(days=int(k)) for k in spread(rng, 0, 9000)),
            "mixed": texts(rng.choice(["yes", "no", "1"], RECORDS)),
            "empty": texts([None] * RECORDS),
            "weight": texts(rng.random(RECORDS) + 0.5),
            "class": texts(planted(spread(rng, 1, 5), 9)),
        }
    )


def test_the_proposal_is_a_schema_file(survey):
    proposal = propose(survey)
    assert Schema.from_toml(proposal.to_toml()) == proposal.schema


def test_the_proposal_reads_the_file_it_was_made_from(survey):
    table = conform(survey, propose(survey).schema, Source())
    assert len(table) == RECORDS
    assert np.count_nonzero(table.status("income")) == len(range(0, RECORDS, 60))


def test_every_suggestion_can_be_switched_on_where_it_stands(survey):
    proposal = propose(survey)
    lines = [
        line.removeprefix("# ")
        if line.startswith(("# missing = ", "# top = ", "# bottom = ", "# unit = "))
        else line
        for line in proposal.to_toml().splitlines()
        if line != 'missing = ["refused"]'
    ]
    columns = tomllib.loads("\n".join(lines))["columns"]
    assert columns["income"]["missing"] == [-9]
    assert columns["class"]["missing"] == ["9"]
    assert Schema.from_toml("\n".join(lines)).names == proposal.schema.names


def test_findings_stand_above_their_columns(survey):
    text = propose(survey).to_toml()
    blocks = {block.split("[columns.")[1].split("]")[0]: block for block in text.split("\n\n")[1:]}
    assert blocks["t"].startswith("# identity: 't' = 'a' + 'b'")
    assert blocks["born"].startswith("# date: ")
    assert text.startswith("# A proposal")
    assert "# small-blocks: " in text.split("\n\n")[0] or "small-blocks" not in text


def test_the_summary_fits_a_screen(survey, rng):
    wide = pa.table({f"column {i}": texts(f"{v:.2f}" for v in rng.random(RECORDS)) for i in range(60)})
    for table in (survey, wide):
        shown = repr(propose(table)).splitlines()
        assert len(shown) <= 40
        assert max(map(len, shown)) <= 100
    assert shown[-1].endswith("more: see the proposed schema")


def test_the_summary_names_roles_and_findings(survey):
    shown = propose(survey).summary()
    assert shown.startswith("400 records x 13 columns")
    assert "  id       ID\n" in shown
    assert "  weight   weight\n" in shown
    assert "  dropped  hh (group) born mixed empty\n" in shown
    assert "refused" in shown


def test_the_summary_names_every_column(rng):
    wide = pa.table({f"a long name of column {i}": texts(spread(rng, 0, 9000)) for i in range(200)})
    shown = " ".join(propose(wide).summary().split())
    assert all(name in shown for name in wide.column_names)


def test_no_value_is_shown_but_codes():
    secret = [271_828 + 3 * i for i in range(RECORDS)]
    proposal = proposed(x=secret, y=[f"secret {value}" for value in secret], z=["314159"] * RECORDS)
    shown = proposal.to_toml() + repr(proposal)
    assert not any(str(value) in shown for value in [*secret, "314159"])


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(
        st.lists(
            st.one_of(st.none(), st.text(min_size=1, max_size=6), st.integers().map(str)),
            min_size=5,
            max_size=5,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_any_text_gives_a_usable_proposal(columns):
    raw = pa.table({f"c{i}": pa.array(values, pa.string()) for i, values in enumerate(columns)})
    proposal = propose(raw)
    assert Schema.from_toml(proposal.to_toml()) == proposal.schema
    assert len(conform(raw, proposal.schema, Source())) == 5


def test_numbers_that_a_time_gives_are_no_group(rng):
    trend = np.sort(rng.integers(0, 30, RECORDS))
    listed = rng.permutation(np.arange(40, 400))[:30][trend]
    proposal = proposed(trend=trend, listed=listed)
    assert (proposal.schema["listed"].roles, proposal.schema["listed"].drop) == (frozenset(), True)
    assert "the same for all records with one trend" in finding(proposal, "group").text
