"""Residuals against the card: clean releases pass, and every planted leak is found with its effect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.checks.evidence import Evidence
from maskwell.checks.findings import Finding
from maskwell.checks.quantile_residuals.battery import battery
from maskwell.checks.quantile_residuals.findings import CHECKS, residual_notes
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.notes import texts
from maskwell.schema import Column, Schema
from maskwell.table import Floats, Table

from ..law_families import some_findings

RECORDS = 3_000
FEW = 300  # for what one cell shows
AMOUNTS = ("income", "wealth")
KEY = Key(np.random.default_rng(170).bytes(32))


def true_file(seed: int = 1, records: int = RECORDS) -> Table:
    """Two correlated amounts, a region, an age, households, ids, and a dropped column."""
    rng = np.random.default_rng([seed, 171])
    base = rng.standard_normal((records, 2)) @ np.linalg.cholesky([[1, 0.5], [0.5, 1]]).T
    data = {
        "id": [f"u{i:05d}" for i in range(records)],
        "region": rng.choice(list("abcdefghij"), records),
        "age": rng.integers(18, 90, records),
        "household": np.arange(records) // 3,
        "income": np.rint(np.exp(10.5 + 0.5 * base[:, 0])).astype(np.int64),
        "wealth": np.rint(150_000 + 30_000 * base[:, 1]).astype(np.int64),
        "tax": np.rint(9_000 + 2_000 * rng.standard_normal(records)).astype(np.int64),
    }
    key = frozenset({"key"})
    columns = (
        Column("id", "text", frozenset({"id"})),
        Column("region", "category", frozenset({"block"}), categories=tuple("abcdefghij")),
        Column("age", "integer", key),
        Column("household", "integer", frozenset({"group"}), drop=True),
        *(Column(name, "integer", key) for name in AMOUNTS),
        Column("tax", "integer", drop=True),
    )
    return Table.from_frame(pa.table(data), Schema(columns))


def sound(mask: Any = None, table: Table | None = None) -> Masking:
    """A clean release."""
    mask = mw.IndependentNoise(AMOUNTS, variance_ratio=0.3) if mask is None else mask
    return apply(mask, true_file() if table is None else table, key=KEY)


class Plant:
    """A clean release whose noise can be looked at and replaced."""

    def __init__(self, masking: Masking) -> None:
        self.masking = masking
        self.rng = np.random.default_rng(172)

    @property
    def sds(self) -> dict[str, float]:
        law: Any = self.masking.card.laws[0]
        return dict(zip(law.columns, law.noise.sds, strict=True))

    def x(self, name: str) -> Floats:
        return self.masking.truth.floats(name)

    def z(self, name: str) -> Floats:
        return self.masking.masked.floats(name)

    def e(self, name: str) -> Floats:
        return (self.z(name) - self.x(name)) / self.sds[name]

    def normal(self) -> Floats:
        return self.rng.standard_normal(RECORDS)

    def with_noise(self, name: str, e: Floats) -> Masking:
        return self.released(name, self.x(name) + self.sds[name] * e)

    def released(self, name: str, z: Floats) -> Masking:
        masked = self.masking.masked
        change = (masked.schema[name], np.rint(z), masked.status(name))
        return replace(self.masking, masked=masked.with_columns({name: change}))


def rank(values: Floats) -> Floats:
    """Ranks from 0 to 1."""
    return np.argsort(np.argsort(values, kind="stable")) / len(values)


def digits_kept(z: Floats, x: Floats, modulus: int) -> Floats:
    """Give a number the last digits of another."""
    return np.floor(z / modulus) * modulus + x % modulus


def _sign_of_deviation(p: Plant) -> Masking:
    x = p.x("income")
    return p.with_noise("income", np.abs(p.e("income")) * np.sign(x - np.median(x)))


def _noise_by_age(p: Plant) -> Masking:
    age = p.x("age").astype(int)
    return p.with_noise("income", p.rng.standard_normal(100)[age])


def _seeded_by_region(p: Plant) -> Masking:
    region = p.x("region").astype(int)
    return p.with_noise("income", p.rng.standard_normal(10)[region])


def _top_unmasked(p: Plant) -> Masking:
    x = p.x("income")
    return p.with_noise("income", np.where(rank(x) >= 0.99, 0.0, p.e("income")))


def _little_in_a_tenth(p: Plant) -> Masking:
    return p.with_noise("income", p.e("income") * np.where(p.x("region") == 3, 0.05, 1.0))


def _antithetic(p: Plant) -> Masking:
    e = p.e("income")
    e[1::2] = -e[::2]
    return p.with_noise("income", e)


def _household_noise(p: Plant) -> Masking:
    return p.with_noise("income", p.normal()[p.x("household").astype(int)])


def _truncated(p: Plant) -> Masking:
    e = p.e("income")
    far = np.abs(e) > 2
    e[far] = p.rng.uniform(-1, 1, int(far.sum()))
    return p.with_noise("income", e)


def _same_for_equal(p: Plant) -> Masking:
    rounded = (p.x("income") // 100).astype(int)
    coarse = p.masking.truth.with_columns(
        {"income": (p.masking.truth.schema["income"], rounded * 100.0, p.masking.truth.status("income"))}
    )
    plant = Plant(sound(table=coarse))
    return plant.with_noise("income", p.rng.standard_normal(rounded.max() + 1)[rounded])


def _with_dropped(p: Plant) -> Masking:
    tax = p.x("tax")
    e = 0.3 * (tax - tax.mean()) / tax.std() + np.sqrt(1 - 0.09) * p.e("income")
    return p.with_noise("income", e)


def _positive_in_region(p: Plant) -> Masking:
    e = p.e("income")
    return p.with_noise("income", np.where(p.x("region") == 2, np.abs(e), e))


def _every_fiftieth(p: Plant) -> Masking:
    e = p.e("income")
    e[::50] = 0
    return p.with_noise("income", e)


def _steps_of_seven(p: Plant) -> Masking:
    x, z = p.x("income"), p.z("income")
    return p.released("income", x + 7 * np.rint((z - x) / 7))


def _next_record(p: Plant) -> Masking:
    return p.with_noise("wealth", np.roll(p.e("income"), 1))


def _permuted_digits(p: Plant) -> Masking:
    code = p.rng.permutation(1_000)[(p.x("income") % 1_000).astype(int)]
    return p.released("wealth", digits_kept(p.z("wealth"), code.astype(float), 1_000))


def _hundredth_at_random(p: Plant) -> Masking:
    small = np.where(p.rng.random(RECORDS) < 0.01, 0.01, 1.0)
    return Plant(p.with_noise("income", p.e("income") * small)).with_noise("wealth", p.e("wealth") * small)


def _few_bits(p: Plant) -> Masking:
    from scipy.special import ndtri

    return p.with_noise("income", ndtri((p.rng.integers(0, 4096, RECORDS) + 0.5) / 4096))


def _sorted_by_noise(p: Plant) -> Masking:
    return p.with_noise("income", np.sort(p.e("income")))


def _digit_in_some(p: Plant) -> Masking:
    x, z = p.x("income"), p.z("income")
    some = p.rng.random(RECORDS) < 0.3
    return p.released("income", np.where(some, digits_kept(z, x, 10), z))


# --- leaks that the recipe does not name ---------------------------------------------------------------------


def _zero_sum_households(p: Plant) -> Masking:
    e = p.e("income").reshape(-1, 3)
    e = (e - e.mean(axis=1, keepdims=True)) * np.sqrt(3 / 2)
    return p.with_noise("income", e.ravel())


def _record_size(p: Plant) -> Masking:
    strong = np.where(p.x("region") == 4, 0.3, 1.0)
    masking = p.with_noise("income", p.e("income") * strong)
    q = Plant(masking)
    return q.with_noise("wealth", p.e("wealth") * strong)


def _far_lag(p: Plant) -> Masking:
    e = p.e("income")
    return p.with_noise("income", np.r_[e[:1500], e[:1500]])


def _opposite_columns(p: Plant) -> Masking:
    return p.with_noise("wealth", -p.e("income"))


def _hidden_number(p: Plant) -> Masking:
    z = np.floor(p.z("wealth") / 5) * 5 + np.arange(RECORDS) % 5
    return p.released("wealth", z)


def _noise_toward_centre(p: Plant) -> Masking:
    x = p.x("wealth")
    e = p.e("wealth") - 0.25 * (x - x.mean()) / x.std()
    return p.with_noise("wealth", e)


def _too_much_noise(p: Plant) -> Masking:
    return p.with_noise("income", 1.3 * p.e("income"))


def _heavier_tails(p: Plant) -> Masking:
    e = p.rng.standard_t(4, RECORDS) / np.sqrt(2)
    return p.with_noise("income", e)


def _parity_of_age(p: Plant) -> Masking:
    return p.released("wealth", digits_kept(p.z("wealth"), p.x("age"), 2))


def _mantissa_of_id(p: Plant) -> Masking:
    """The id is written into the fourth digit and above the unit: 100s of wealth."""
    z = p.z("wealth")
    return p.released("wealth", np.floor(z / 1_000) * 1_000 + (np.arange(RECORDS) % 10) * 100 + z % 100)


def _rounded_to_hundreds(p: Plant) -> Masking:
    return p.released("wealth", 100 * np.rint(p.z("wealth") / 100))


def _small_for_the_old_in_a_region(p: Plant) -> Masking:
    few = (p.x("region") == 5) & (p.x("age") > 60)
    return p.with_noise("income", np.where(few, 0.1, 1.0) * p.e("income"))


def _check_digit(p: Plant) -> Masking:
    return p.released("wealth", digits_kept(p.z("wealth"), p.x("income") + p.x("tax"), 10))


def _sign_of_product(p: Plant) -> Masking:
    sign = np.sign(p.e("income")) * np.where(p.x("region") % 2 == 0, 1, -1)
    return p.with_noise("wealth", np.abs(p.e("wealth")) * sign)


def _weak_generator(p: Plant) -> Masking:
    from scipy.special import ndtri

    drawn = np.empty(RECORDS)
    state = 12_345
    for i in range(RECORDS):
        state = (75 * state + 74) % 65_537
        drawn[i] = (state + 0.5) / 65_538
    return p.with_noise("income", ndtri(drawn))


# --- leaks that show in several columns, or in several records, only together ---------------------------------


def uniform(e: Floats) -> Floats:
    """Uniforms of normal noise."""
    from scipy.special import ndtr

    return np.asarray(ndtr(e))


def normal(u: Floats) -> Floats:
    """Normal noise of uniforms."""
    from scipy.special import ndtri

    return np.asarray(ndtri(np.clip(u, 1e-12, 1 - 1e-12)))


def normal_rank(x: Floats) -> Floats:
    """Normal scores of ranks."""
    return normal(rank(x) + 0.5 / len(x))


def _digit_of_any_function(p: Plant) -> Masking:
    table = p.rng.permutation(np.repeat(np.arange(10), 10)).reshape(10, 10)
    digit = table[(p.x("income") % 10).astype(int), (p.x("tax") % 10).astype(int)]
    return p.released("wealth", digits_kept(p.z("wealth"), digit.astype(float), 10))


def _rank_at_the_top(p: Plant) -> Masking:
    """The rank of tax stands in the noise of income, of the largest 5% by wealth alone."""
    e, top = p.e("income"), rank(p.x("wealth")) >= 0.95
    e[top] = normal_rank(p.x("tax")[top])
    return p.with_noise("income", e)


def _product_in_noise(p: Plant) -> Masking:
    both = normal_rank(p.x("tax")) * normal_rank(p.x("wealth"))
    return p.with_noise("income", 0.3 * both / both.std() + np.sqrt(0.91) * p.e("income"))


def _sign_of_three(p: Plant) -> Masking:
    sign = np.prod([np.sign(rank(p.x(name)) - 0.4999) for name in ("income", "wealth", "tax")], axis=0)
    return p.with_noise("income", np.abs(p.e("income")) * sign)


def _true_column_in_some(p: Plant) -> Masking:
    """The distance of tax from its mean stands in 3% of the noise of income."""
    e, some, tax = p.e("income"), p.rng.random(RECORDS) < 0.03, p.x("tax")
    e[some] = ((tax - tax.mean()) / tax.std())[some]
    return p.with_noise("income", e)


def _same_in_some(p: Plant) -> Masking:
    some = p.rng.random(RECORDS) < 0.05
    return p.with_noise("wealth", np.where(some, p.e("income"), p.e("wealth")))


def _another_true_value(p: Plant) -> Masking:
    some = p.rng.random(RECORDS) < 0.02
    return p.released("income", np.where(some, p.x("income") + p.x("tax"), p.z("income")))


def _class_on_the_circle(p: Plant) -> Masking:
    """Neither noise tells anything: their sum modulo 1 is the rank of tax."""
    return p.with_noise("wealth", normal((rank(p.x("tax")) - uniform(p.e("income"))) % 1))


def _congruential(p: Plant) -> Masking:
    state, drawn = 1, np.empty(RECORDS)
    for i in range(RECORDS):
        state = 65_539 * state % 2**31
        drawn[i] = (state + 0.5) / 2**31
    return p.with_noise("income", normal(drawn))


def _class_in_fine_parts(p: Plant) -> Masking:
    """Tenths of tax stand in the third decimal of the uniforms: no mean shows them."""
    tenth, u = np.floor(rank(p.x("tax")) * 10), uniform(p.e("wealth"))
    return p.with_noise("wealth", normal((np.floor(u * 100) + (tenth + p.rng.random(RECORDS)) / 10) / 100))


def _wave(p: Plant) -> Masking:
    wave = np.cos(60 * np.pi * rank(p.x("tax"))) * np.sqrt(2)
    return p.with_noise("income", 0.4 * wave + np.sqrt(1 - 0.16) * p.e("income"))


def _larger_at_both_ends(p: Plant) -> Masking:
    size = 0.6 + 1.6 * np.abs(rank(p.x("income")) - 0.5)
    return p.with_noise("income", size * p.e("income"))


def _sizes_of_households(p: Plant) -> Masking:
    sizes = p.rng.choice([0.5, 1.32], RECORDS)[p.x("household").astype(int)]
    return p.with_noise("income", sizes * p.e("income"))


def digit_sum(values: Floats) -> Floats:
    """The sum of the decimal digits of whole numbers."""
    return np.array([sum(map(int, str(int(value)))) for value in values])


def _sign_by(of: Callable[[Plant], Any]) -> Callable[[Plant], Masking]:
    """A plant whose noise is positive where a condition on the truth holds."""
    return lambda p: p.with_noise("income", np.abs(p.e("income")) * np.where(of(p), 1, -1))


def _size_by(of: Callable[[Plant], Any]) -> Callable[[Plant], Masking]:
    """A plant whose noise has other sizes by the truth."""
    return lambda p: p.with_noise("income", p.e("income") * of(p))


def _little_in(records: Callable[[Plant], Any], share: float = 0.02) -> Callable[[Plant], Masking]:
    """A plant that leaves some records with a part of their noise in every masked column."""

    def planted(p: Plant) -> Masking:
        small = np.ones(RECORDS)
        small[records(p)] = share
        return Plant(p.with_noise("income", p.e("income") * small)).with_noise(
            "wealth", p.e("wealth") * small
        )

    return planted


def _size_by_rank_at_the_top(p: Plant) -> Masking:
    x = rank(p.x("income"))
    return p.with_noise("income", p.e("income") * np.where(x >= 0.95, 1.6 - 30 * (x - 0.95), 1.0))


def _little_for_who_stands_alone(p: Plant) -> Masking:
    x = p.x("income")
    order = np.argsort(x)
    gap = np.zeros(RECORDS)
    gap[order[1:-1]] = x[order[2:]] - x[order[:-2]]
    return p.with_noise("income", p.e("income") * np.where(gap > np.quantile(gap, 0.85), 0.5, 1.06))


def _little_where_two_are_equal(p: Plant) -> Masking:
    _, place, times = np.unique(p.x("income"), return_inverse=True, return_counts=True)
    return p.with_noise("income", p.e("income") * np.where(times[place] > 1, 0.3, 1.0))


SHARED, CARD, CLASS, DIGITS = "noise shared", "noise against the card", "noise by class", "digits"
TRUE = "nearly true values"
PLANTS: dict[str, tuple[Callable[[Plant], Masking], set[str]]] = {
    "sign of own deviation": (_sign_of_deviation, {CLASS}),
    "noise by a clear number": (_noise_by_age, {SHARED}),
    "noise by a clear category": (_seeded_by_region, {SHARED}),
    "parity": (lambda p: p.released("income", digits_kept(p.z("income"), p.x("income"), 2)), {DIGITS}),
    "last three digits": (
        lambda p: p.released("income", digits_kept(p.z("income"), p.x("income"), 1_000)),
        {DIGITS},
    ),
    "digits of income in wealth": (
        lambda p: p.released("wealth", digits_kept(p.z("wealth"), p.x("income"), 1_000)),
        {DIGITS},
    ),
    "record number in digits": (
        lambda p: p.released("wealth", digits_kept(p.z("wealth"), np.arange(RECORDS), 1_000)),
        {DIGITS},
    ),
    "noise used again": (lambda p: p.with_noise("wealth", p.e("income")), {SHARED}),
    "values permuted": (lambda p: p.released("income", p.rng.permutation(p.x("income"))), {CARD}),
    "ranks kept": (
        lambda p: p.released("income", np.sort(p.z("income"))[np.argsort(np.argsort(p.x("income")))]),
        {CARD},
    ),
    "top 1% unmasked": (_top_unmasked, {CLASS, TRUE, SHARED}),
    "a twentieth in a tenth": (_little_in_a_tenth, {CLASS}),
    "antithetic": (_antithetic, {SHARED}),
    "fifty values": (
        lambda p: p.with_noise("income", p.normal()[:50][p.rng.integers(0, 50, RECORDS)]),
        {SHARED},
    ),
    "plus or minus an sd": (lambda p: p.with_noise("income", np.sign(p.e("income"))), {CARD}),
    "one noise a household": (_household_noise, {SHARED}),
    "truncated": (_truncated, {CARD}),
    "grows with rank": (
        lambda p: p.with_noise("income", p.e("income") * (1 + 0.2 * rank(p.x("income")))),
        {CARD},
    ),
    "leans with rank": (
        lambda p: p.with_noise("income", p.e("income") * (0.8 + 0.4 * rank(p.x("income")))),
        {CLASS},
    ),
    "same noise for equal values": (_same_for_equal, {SHARED}),
    "correlated with a dropped column": (_with_dropped, {CLASS}),
    "positive in one region": (_positive_in_region, {CLASS}),
    "every fiftieth unmasked": (_every_fiftieth, {TRUE, SHARED}),
    "steps of seven": (_steps_of_seven, {DIGITS}),
    "noise of the next record": (_next_record, {SHARED}),
    "permuted digits": (_permuted_digits, {DIGITS}),
    "a hundredth of the noise at random": (_hundredth_at_random, {CARD}),
    "uniforms of 12 bits": (_few_bits, {SHARED}),
    "sorted by noise": (_sorted_by_noise, {CLASS}),
    "last digit kept in some": (_digit_in_some, {DIGITS}),
    "sums of households": (_zero_sum_households, {SHARED}),
    "small in whole records": (_record_size, {CLASS}),
    "the same noise far away": (_far_lag, {SHARED}),
    "opposite noise": (_opposite_columns, {SHARED}),
    "number modulo five": (_hidden_number, {DIGITS}),
    "towards the centre": (_noise_toward_centre, {CLASS}),
    "more than the card says": (_too_much_noise, {CARD}),
    "heavier tails": (_heavier_tails, {CARD}),
    "parity of a clear column": (_parity_of_age, {DIGITS}),
    "number in the hundreds": (_mantissa_of_id, {DIGITS}),
    "coarser than the card": (_rounded_to_hundreds, {DIGITS}),
    "check digit of two columns": (_check_digit, {DIGITS}),
    "sign of the product of two noises": (_sign_of_product, {CLASS}),
    "weak congruential generator": (_weak_generator, {SHARED}),
    "small in a cell of two columns": (_small_for_the_old_in_a_region, {CLASS}),
    "digit of any two digits": (_digit_of_any_function, {DIGITS}),
    "tens of another column in digits": (
        lambda p: p.released("wealth", digits_kept(p.z("wealth"), p.x("tax") // 10, 10)),
        {DIGITS},
    ),
    "rank of a column at the top of another": (_rank_at_the_top, {CLASS}),
    "product of two columns": (_product_in_noise, {CLASS}),
    "sign of a product of three": (_sign_of_three, {CLASS}),
    "a true column in 3% of the noise": (_true_column_in_some, {CLASS}),
    "the same noise in 5% of two columns": (_same_in_some, {CLASS}),
    "another true value in 2% of the cells": (_another_true_value, {TRUE}),
    "noises that add up to a constant": (
        lambda p: p.with_noise("wealth", normal((0.2113 - uniform(p.e("income"))) % 1)),
        {SHARED},
    ),
    "noises that add up to a rank": (_class_on_the_circle, {CLASS}),
    "noise of another column, permuted": (
        lambda p: p.with_noise("wealth", p.rng.permutation(p.e("income"))),
        {SHARED},
    ),
    "congruential generator of the planes": (_congruential, {SHARED}),
    "class in the fine structure": (_class_in_fine_parts, {CLASS}),
    "wave along a column": (_wave, {CLASS}),
    "larger at both ends": (_larger_at_both_ends, {CLASS}),
    "one size a household": (_sizes_of_households, {SHARED}),
    "sign by the parity of the digit sum": (_sign_by(lambda p: digit_sum(p.x("income")) % 2), {CLASS}),
    "size by the parity of the digit sum": (
        _size_by(lambda p: np.where(digit_sum(p.x("income")) % 2, 0.5, 1.32)),
        {CLASS},
    ),
    "sign by the value modulo 13": (_sign_by(lambda p: p.x("income") % 13 < 6), {CLASS}),
    "size by the value modulo 13": (_size_by(lambda p: np.where(p.x("income") % 13 == 5, 0.05, 1)), {CLASS}),
    "size by the value modulo 3": (
        _size_by(lambda p: np.array([0.6, 1.0, 1.28])[p.x("income").astype(int) % 3]),
        {CLASS},
    ),
    "sign by a dropped column modulo 11": (_sign_by(lambda p: p.x("tax") % 11 < 5), {CLASS}),
    "sign by two parities": (_sign_by(lambda p: (p.x("income") + p.x("tax")) % 2), {CLASS}),
    "sign by the ones of the binary value": (
        _sign_by(lambda p: [bin(int(x)).count("1") % 2 for x in p.x("income")]),
        {CLASS},
    ),
    "30 random records nearly true": (_little_in(lambda p: p.rng.choice(RECORDS, 30, False)), {CARD}),
    "every 143rd record nearly true": (_little_in(lambda p: slice(5, None, 143)), {CLASS}),
    "size by rank among the largest 5%": (_size_by_rank_at_the_top, {CLASS}),
    "little noise for who stands alone": (_little_for_who_stands_alone, {CLASS}),
    "little noise where two are equal": (_little_where_two_are_equal, {CLASS}),
}


def findings(masking: Masking, **given: Any) -> dict[str, Finding]:
    """Make the checks of residuals."""
    evidence = Evidence(masking, **given)
    return {check.name: check.made(evidence) for check in CHECKS}


@pytest.fixture(scope="module")
def release() -> Masking:
    return sound()


@pytest.mark.parametrize("plant", PLANTS)
def test_a_planted_leak_is_found_with_its_effect(plant: str, release: Masking) -> None:
    planted, expected = PLANTS[plant]
    found = some_findings(planted(Plant(release)), expected)
    failing = {name for name, one in found.items() if one.verdict == "fail"}
    assert expected == failing, {name: one.said for name, one in found.items()}
    for name in expected:
        assert found[name].figure < 1e-5
        assert found[name].figures
        assert "by the card that has a chance" in found[name].said


CLEAN: dict[str, Any] = {
    "independent": mw.IndependentNoise(AMOUNTS, variance_ratio=0.3),
    "Laplace": mw.IndependentNoise(AMOUNTS, variance_ratio=0.3, shape="laplace"),
    "correlated, at limits": mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.8, limits=(("income", 20_000, 60_000),)),
    "moments kept": mw.CorrelatedNoise(AMOUNTS, r0=0.8, keep="moments"),
    "mixture": mw.MixtureNoise(AMOUNTS, variance_ratio=0.5, within_variance_ratio=0.1),
    "joint mixture": mw.MixtureNoise(AMOUNTS, 0.5, 0.1, components=3, correlated=True),
    "rotated mixture": mw.MixtureNoise(AMOUNTS, 0.5, 0.1, correlated=True, construction="rotation"),
    "bias": mw.BiasNoise(AMOUNTS, bias_sd=0.1, sd_ratio=0.1),
    "lognormal bias": mw.BiasNoise(("income",), bias_sd=0.3, sd_ratio=0.05, shape="lognormal"),
    "log": mw.IndependentNoise(("income",), variance_ratio=0.5, transform="log"),
    "log, down to its units": mw.IndependentNoise(("income",), variance_ratio=60.0, transform="log"),
    "coarse unit": mw.IndependentNoise(("age",), variance=1.0, limits=(("age", 18, 60),)),
    "coded after noise": mw.Chain(
        (mw.IndependentNoise(("income",), variance_ratio=0.3), mw.Coding(("income",), top=60_000))
    ),
    "code noise": mw.CodeNoise(("region",), variance=0.5),
    "random change": mw.Pram(("region",), stay=0.7),
    "subsample": mw.Chain((mw.IndependentNoise(AMOUNTS, variance_ratio=0.3), mw.Subsample(0.5))),
}


@pytest.mark.parametrize("kind", CLEAN)
def test_a_clean_release_neither_fails_nor_warns(kind: str) -> None:
    for seed in range(2):
        key = Key(np.random.default_rng([seed, 173]).bytes(32))
        masking = apply(CLEAN[kind], true_file(seed), key=key)
        found = findings(masking)
        bad = {name: one.said for name, one in found.items() if one.verdict in ("fail", "warn")}
        assert not bad


def test_scores_are_uniform_under_every_law() -> None:
    """Kolmogorov's distance of the pooled scores: 1.95 / sqrt n is passed once in a thousand."""
    from scipy.stats import kstest

    for kind, mask in CLEAN.items():
        made = scores(apply(mask, true_file(7), key=KEY))
        for label, score in made.items():
            known = score[~np.isnan(score)]
            assert kstest(known, "norm").statistic < 2.6 / np.sqrt(len(known)), (kind, label)


def scores(masking: Masking) -> dict[str, Floats]:
    from maskwell.checks.quantile_residuals.cells import score_column

    evidence = Evidence(masking)
    scored = {name: score_column(evidence, name).scores for name in evidence.masked_columns}
    return {name: score for name, score in scored.items() if score is not None}


def test_values_that_the_law_cannot_give_fail_outright() -> None:
    mask = mw.IndependentNoise(("income",), variance_ratio=0.3, limits=(("income", 0, 90_000),))
    plant = Plant(sound(mask, true_file(records=FEW)))
    z = plant.z("income")
    for planted, reason in (
        (np.r_[95_000.0, z[1:]], "probability of 0"),
        (np.r_[z[0] + 1e9, z[1:]], "probability"),
    ):
        found = findings(plant.released("income", planted))["impossible values"]
        assert (found.verdict, found.figure) == ("fail", 1.0)
        assert reason in found.said


def test_a_value_off_the_unit_and_one_closed_by_nobody_are_impossible() -> None:
    masking = sound(table=true_file(records=FEW))
    masked = masking.masked
    column, status = masked.schema["income"], masked.status("income").copy()
    z = masked.floats("income").copy()
    status[5] = 1
    closed = masked.with_columns({"income": (column, z, status)})
    found = findings(replace(masking, masked=closed))["impossible values"]
    assert found.figures == {"income: closed otherwise than in the truth": 1.0}
    wide = replace(column, kind="continuous", unit=0.5)
    z[7] += 0.5
    off = masked.with_columns({"income": (wide, z, masked.status("income"))})
    found = findings(replace(masking, masked=off))["impossible values"]
    assert found.figures == {"income: off the unit": 1.0}


def test_a_total_that_is_no_sum_of_its_released_parts_is_impossible() -> None:
    table = true_file(records=FEW)
    data = table.data.append_column(
        "both", pa.array((table.floats("income") + table.floats("tax")).astype(int))
    )
    schema = replace(
        table.schema,
        columns=(
            *(replace(c, drop=False) if c.name == "tax" else c for c in table.schema.columns),
            Column("both", "integer"),
        ),
    )
    table = replace(table, data=data, schema=schema)
    parts = {"income": 1.0, "tax": 1.0}
    mask = mw.Chain((mw.IndependentNoise(("income", "tax"), variance_ratio=0.3), mw.Recompute("both", parts)))
    masking = apply(mask, table, key=KEY)
    assert findings(masking)["impossible values"].verdict == "pass"
    z = masking.masked.floats("both").copy()
    z[3] += 1
    change = (masking.masked.schema["both"], z, masking.masked.status("both"))
    found = findings(replace(masking, masked=masking.masked.with_columns({"both": change})))
    assert found["impossible values"].figures == {"both: other than the sum of its released parts": 1.0}


def test_swapped_cells_are_judged_by_the_truth_of_their_donor(release: Masking) -> None:
    plan = mw.NearestRecord(fields=AMOUNTS, match_blocks=("region",))
    swapped = mw.swap(release, plan, mw.tolerances.SwapShare(0.2))
    assert swapped.swapping is not None
    assert swapped.swapping.swaps
    before, after, own = (
        scores(one) for one in (release, swapped, replace(swapped, swapping=None, exchange=None))
    )
    for name in AMOUNTS:
        np.testing.assert_array_equal(before[name], after[name])
    assert any(not np.array_equal(own[name], after[name]) for name in AMOUNTS)


def test_a_nested_release_is_judged_by_what_it_adds_to_the_earlier_one() -> None:
    mask = mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.3, limits=(("income", 20_000, 60_000),))
    first, wider = sound(mask), replace(mask, sd_ratio=0.6)
    second = apply(wider, first.truth, earlier=first)
    sound_one = findings(second, earlier=(first,))
    assert {one.verdict for one in sound_one.values()} == {"pass"}
    other = apply(wider, first.truth, key=Key(bytes(32)))  # of the right law, and not the earlier noise
    planted = Plant(second).released("wealth", other.masked.floats("wealth"))
    found = findings(planted, earlier=(first,))["noise against the card"]
    assert found.verdict == "fail"
    assert "given the earlier release" in found.where


MIXED = mw.MixtureNoise(AMOUNTS, variance_ratio=0.5, within_variance_ratio=0.1)
CONTINUED: dict[str, tuple[Any, Any]] = {
    "log": (
        mw.IndependentNoise(("income",), variance_ratio=0.2, transform="log"),
        mw.IndependentNoise(("income",), variance_ratio=0.5, transform="log"),
    ),
    "further columns": (
        mw.IndependentNoise(("income",), variance_ratio=0.1),
        mw.IndependentNoise(AMOUNTS, variance_ratio=0.3),
    ),
    "random change": (mw.Pram(("region",), stay=0.9), mw.Pram(("region",), stay=0.8)),
    "random change, the same": (mw.Pram(("region",), stay=0.8),) * 2,
    "mixture, the same": (MIXED, MIXED),
    "Laplace, the same": (mw.IndependentNoise(AMOUNTS, variance_ratio=0.3, shape="laplace"),) * 2,
    "lognormal bias, the same": (mw.BiasNoise(("income",), bias_sd=0.3, sd_ratio=0.05, shape="lognormal"),)
    * 2,
}


@pytest.mark.parametrize("kind", CONTINUED)
def test_fresh_noise_under_the_same_law_is_found_whatever_the_law(kind: str) -> None:
    """A second release that was not made from the first one's noise, though each alone is sound."""
    before, after = CONTINUED[kind]
    first = sound(before)
    second = apply(after, first.truth, earlier=first)
    fresh = apply(after, first.truth, key=Key(bytes(32)))
    assert not [one.said for one in findings(second, earlier=(first,)).values() if one.verdict == "fail"]
    found = findings(replace(second, masked=fresh.masked), earlier=(first,))
    assert "fail" in {found[name].verdict for name in (CARD, "impossible values")}


def test_a_turned_mixture_of_many_columns_has_the_law_of_its_draws() -> None:
    from maskwell.checks.quantile_residuals.marginals import marginal_of
    from maskwell.laws import RotatedMixture

    width, rng = 18, np.random.default_rng(174)
    correlations = tuple(map(tuple, (0.5 + 0.5 * np.eye(width)).tolist()))
    noise = RotatedMixture((0.3, 0.7), (1.4, -0.6), (0.4, 0.4), (1.0,) * width, correlations)
    marginal = marginal_of(noise, 3)
    assert marginal is not None
    part = rng.random((200_000, width)) < 0.3
    units = np.where(part, 1.4, -0.6) + 0.4 * rng.standard_normal(part.shape)
    drawn = units @ noise._root[3]
    at = np.linspace(-2.5, 2.5, 11)
    low, high = marginal.tails(at)
    seen = (drawn[:, None] <= at).mean(axis=0)
    assert np.all(np.abs(seen - low) < 5 * np.sqrt(low * high / len(drawn)) + 1e-6)
    np.testing.assert_allclose(low + high, 1.0)


def test_how_many_cells_of_an_integral_were_looked_at_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from maskwell.checks.quantile_residuals import cells

    monkeypatch.setattr(cells, "MOST_INTEGRALS", 200)
    masking = sound(mw.BiasNoise(("income",), bias_sd=0.3, sd_ratio=0.05, shape="lognormal"))
    assert "of 3,000 cells looked at, drawn at random" in " ".join(texts(residual_notes(Evidence(masking))))


def test_a_sample_that_depends_on_the_truth_is_found() -> None:
    masking = sound(mw.Chain((mw.IndependentNoise(AMOUNTS, variance_ratio=0.3), mw.Subsample(0.5))))
    x = masking.truth.floats("income")
    chance = np.where(x > np.median(x), 0.7, 0.3)
    kept = np.flatnonzero(np.random.default_rng(3).random(RECORDS) < chance)
    found = findings(replace(masking, kept=kept))["noise by class"]
    assert found.verdict == "fail"
    assert found.where == "inclusion in the sample"


def test_categories_that_do_not_change_in_a_part_of_the_file_are_found() -> None:
    masking = sound(mw.Pram(("region",), stay=0.7))
    masked = masking.masked
    old = masking.truth.floats("age") > 75
    z = np.where(old, masking.truth.floats("region"), masked.floats("region"))
    change = (masked.schema["region"], z, masked.status("region"))
    found = findings(replace(masking, masked=masked.with_columns({"region": change})))["noise by class"]
    assert found.verdict == "fail"


def test_noise_drawn_once_for_a_household_counts_once() -> None:
    table = true_file()
    home = table.floats("household").astype(int)
    shared = table.floats("income")[np.arange(0, RECORDS, 3)][home]
    truth = table.with_columns({"income": (table.schema["income"], shared, table.status("income"))})
    masking = sound(table=truth)
    z = masking.masked.floats("income")[np.arange(0, RECORDS, 3)][home]
    change = (masking.masked.schema["income"], z, masking.masked.status("income"))
    once = replace(masking, masked=masking.masked.with_columns({"income": change}))
    assert {one.verdict for one in findings(once).values()} == {"pass"}
    assert battery(Evidence(once)).scored["income"] == RECORDS // 3
    z = z.copy()
    z[4] += 500
    change = (masking.masked.schema["income"], z, masking.masked.status("income"))
    found = findings(replace(masking, masked=masking.masked.with_columns({"income": change})))
    assert found["impossible values"].figures == {
        "income: different within groups that share their noise": 1.0
    }


def test_what_could_have_been_seen_and_what_was_not_tested_is_said() -> None:
    mask = mw.Chain(
        (mw.IndependentNoise(("income",), variance_ratio=0.3), mw.RankSwap(("wealth",), window_ratio=0.1))
    )
    said = " ".join(texts(residual_notes(Evidence(sound(mask)))))
    assert "in a class of 30 records noise of 0.3" in said
    assert "cannot show noise whose sign or size follows a secret key" in said
    assert "residuals not tested: wealth (a rank swap has no density)" in said


def test_a_file_without_a_card_is_said_not_to_be_tested() -> None:
    masking = sound()
    found = findings(replace(masking, card=replace(masking.card, laws=())))
    assert {one.verdict for one in found.values()} == {"not checked"}


def test_what_is_said_has_the_p_value_that_is_shown() -> None:
    """A large effect that chance explains stands in the ledger beside a small one that warns."""
    plant = Plant(sound())
    made = findings(
        plant.with_noise("income", plant.e("income") * np.where(plant.x("income") % 3, 1.0, 0.85))
    )
    for one in made.values():
        if one.verdict in ("warn", "fail"):
            assert f"by the card that has a chance of {one.figure:.1g}" in one.said


def test_leaks_by_position_are_found_in_stretches_of_a_large_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Position modulo a number goes on over the stretches that were not drawn."""
    from maskwell.checks.quantile_residuals import large_files

    masking = sound()
    monkeypatch.setattr(large_files, "MOST_CELLS", 2_000 * len(masking.truth.names))
    planted = _little_in(lambda p: slice(5, None, 83))(Plant(masking))
    assert "by original position modulo 83: 5" in " ".join(findings(planted)[CLASS].figures)


def test_an_effect_too_small_to_matter_does_not_fail() -> None:
    plant = Plant(sound())
    found = findings(plant.with_noise("income", plant.e("income") * 1.02))
    assert all(one.verdict != "fail" for one in found.values())


def test_limits_of_the_plan_change_the_p_value_that_fails() -> None:
    plant = Plant(sound())
    planted = plant.with_noise("income", plant.e("income") * 1.13)
    evidence = Evidence(planted)
    check = next(one for one in CHECKS if one.name == "noise against the card")
    figure = check.made(evidence).figure
    assert figure < 1e-5
    strict = replace(check.limits, warn=figure / 2, fail=figure / 10)
    assert check.made(evidence, strict).verdict == "pass"


def test_of_a_file_with_too_many_cells_stretches_are_tested(
    release: Masking, monkeypatch: pytest.MonkeyPatch
) -> None:
    from maskwell.checks.quantile_residuals import large_files

    monkeypatch.setattr(large_files, "MOST_CELLS", 2_000 * len(release.truth.names))
    assert battery(Evidence(release)).scored["income"] == 2_000
    assert "in 2,000 of the records" in " ".join(texts(residual_notes(Evidence(release))))
    plant = Plant(release)
    found = findings(plant.with_noise("income", plant.e("income") * np.where(plant.x("age") > 60, 0.3, 1.0)))
    assert found["noise by class"].verdict == "fail"
    z = plant.z("income")
    z[:: RECORDS // 3] += 1e9
    assert findings(plant.released("income", z))["impossible values"].figure == 3
