"""Leaks by arithmetic: residues modulo any number, exclusive or, and true values of other records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.checks.evidence import Evidence
from maskwell.checks.quantile_residuals.battery import battery
from maskwell.checks.quantile_residuals.congruences import MODULI, tail
from maskwell.checks.quantile_residuals.findings import residual_notes
from maskwell.keys import Key
from maskwell.masking import Masking, apply
from maskwell.notes import texts
from maskwell.schema import Column, Schema
from maskwell.table import Floats, Table

from ..law_families import some_findings

RECORDS = 2_500
AMOUNTS = ("income", "wealth", "debt")
CLASS, DIGITS, TRUE, SHARED = "noise by class", "digits", "nearly true values", "noise shared"
Whole = npt.NDArray[np.int64]


def true_file(seed: int = 1) -> Table:
    """Three amounts of millions of units, one of them in tenths, and a clear number."""
    rng = np.random.default_rng([seed, 271])
    data: dict[str, Any] = {
        name: np.rint(np.exp(17 + 0.6 * rng.standard_normal(RECORDS))).astype(np.int64) for name in AMOUNTS
    }
    data |= {"debt": np.round(data["debt"] / 10, 1), "age": rng.integers(18, 90, RECORDS)}
    frame = pa.table(data)
    key = frozenset({"key"})
    amounts = (Column("income", "integer", key), Column("wealth", "integer", key))
    columns = (*amounts, Column("debt", "continuous", key, unit=0.1), Column("age", "integer", key))
    return Table.from_frame(frame, Schema(columns))


class Planted:
    """A clean release whose values and noises can be replaced, in units."""

    def __init__(self, masking: Masking) -> None:
        self.masking = masking
        self.rng = np.random.default_rng(272)
        law: Any = masking.card.laws[0]
        self.sds = dict(zip(law.columns, law.noise.sds, strict=True))

    def unit(self, name: str) -> float:
        return 0.1 if name == "debt" else 1.0

    def x(self, name: str) -> Whole:
        return np.rint(self.masking.truth.floats(name) / self.unit(name)).astype(np.int64)

    def z(self, name: str) -> Whole:
        return np.rint(self.masking.masked.floats(name) / self.unit(name)).astype(np.int64)

    def e(self, name: str) -> Floats:
        return np.asarray((self.z(name) - self.x(name)) * self.unit(name) / self.sds[name])

    def released(self, name: str, z: Floats | Whole) -> Masking:
        masked = self.masking.masked
        values = np.rint(z) if name != "debt" else np.round(np.rint(z) / 10, 1)
        change = (masked.schema[name], values.astype(np.float64), masked.status(name))
        return replace(self.masking, masked=masked.with_columns({name: change}))

    def with_noise(self, e: Floats) -> Masking:
        return self.released("income", self.x("income") + self.sds["income"] * e)

    def with_sign(self, is_positive: npt.NDArray[Any]) -> Masking:
        return self.with_noise(np.abs(self.e("income")) * np.where(is_positive, 1, -1))

    def in_order(self, order: Whole) -> Masking:
        """Release the records in another order."""
        ids = pa.array([str(i + 1) for i in range(RECORDS)])
        links = pa.table({"truth_id": ids.take(pa.array(order)), "released_id": ids})
        masked = self.masking.masked.take(order)
        return Masking.from_files(self.masking.truth, masked, links, card=self.masking.card)

    def with_residue(self, target: Whole, modulus: int, share: float = 1.0) -> Masking:
        """Move income to the nearest value with the residue of a target, in a share of the records."""
        z = self.z("income")
        move = (target - z + modulus // 2) % modulus - modulus // 2
        return self.released("income", z + np.where(self.rng.random(RECORDS) < share, move, 0))


def above(x: Whole) -> npt.NDArray[np.bool_]:
    return np.asarray(x > np.median(x))


def normal_rank(x: Floats | Whole) -> Floats:
    from scipy.special import ndtri

    return np.asarray(ndtri((np.argsort(np.argsort(x, kind="stable")) + 0.5) / len(x)))


def _of_three(p: Planted) -> Masking:
    noises = [p.z(name) - p.x(name) for name in ("wealth", "debt")]
    return p.with_residue(p.x("income") - noises[0] - noises[1], 97)


def _common_unit(p: Planted) -> Masking:
    """Ten times income and debt, both in tenths, have a sum that is kept modulo 89."""
    rest = -(p.z("debt") - p.x("debt"))
    return p.with_residue(p.x("income") + rest * pow(10, -1, 89), 89)


def _rank_inside(p: Planted) -> Floats:
    """Noise that has a true rank inside every 1/997 of its distribution, which is as the card says."""
    from scipy.special import ndtr, ndtri

    place = (np.argsort(np.argsort(p.x("income"))) + 0.5) / RECORDS
    return np.asarray(ndtri((np.floor(997 * ndtr(p.e("income"))) + place) / 997))


def _rank_and_noise(p: Planted) -> Floats:
    from scipy.special import ndtr, ndtri

    place = (np.argsort(np.argsort(p.x("income"))) + 0.5) / RECORDS
    return np.asarray(ndtri(np.clip((place + 7 * ndtr(p.e("wealth"))) % 1, 1e-6, 1 - 1e-6)))


def _many_turns(p: Planted) -> Floats:
    from scipy.special import ndtr, ndtri

    turns = 19 * ndtr(p.e("wealth")) + 23 * ndtr(p.e("debt"))
    return np.asarray(ndtri(np.clip(turns % 1, 1e-7, 1 - 1e-7)))


def fortieth(x: Whole) -> Whole:
    return np.asarray(np.argsort(np.argsort(x)) * 40 // RECORDS)


def _by_parity(x: Whole) -> Whole:
    """Shuffle records so that even places have even values, as long as there are any."""
    order = np.random.default_rng(276).permutation(RECORDS)
    even, odd = order[x[order] % 2 == 0], order[x[order] % 2 == 1]
    both = min(len(even), len(odd))
    mixed = np.column_stack([even[:both], odd[:both]]).ravel()
    return np.concatenate([mixed, even[both:], odd[both:]])


def _table(modulus: int) -> Whole:
    """Numbers drawn once, as a masker's look-up table has them."""
    return np.random.default_rng(275).integers(0, modulus, modulus)


def _little(count: int, share: float) -> Callable[[Planted], Masking]:
    def planted(p: Planted) -> Masking:
        small = np.ones(RECORDS)
        small[p.rng.choice(RECORDS, count, replace=False)] = share
        return p.with_noise(p.e("income") * small)

    return planted


def _lagged(places: int, name: str) -> Callable[[Planted], Masking]:
    return lambda p: p.with_noise(0.3 * np.roll(normal_rank(p.x(name)), places) + 0.91**0.5 * p.e("income"))


def _serial(p: Planted) -> Masking:
    noise = p.e("income")
    for i in range(1, RECORDS):
        noise[i] = 0.3 * noise[i - 1] + 0.91**0.5 * noise[i]
    return p.with_noise(noise)


PLANTS: dict[str, tuple[Callable[[Planted], Masking], str]] = {
    "kept modulo 97": (lambda p: p.with_residue(p.x("income"), 97), DIGITS),
    "kept modulo 3": (lambda p: p.with_residue(p.x("income"), 3), DIGITS),
    "kept modulo 1,999": (lambda p: p.with_residue(p.x("income"), 1_999), DIGITS),
    "kept modulo 97 in a quarter": (lambda p: p.with_residue(p.x("income"), 97, 0.25), DIGITS),
    "another column's modulo 251": (lambda p: p.with_residue(p.x("wealth"), 251), DIGITS),
    "any function modulo 31": (lambda p: p.with_residue((p.x("income") % 31) ** 2, 31), DIGITS),
    "seven times it modulo 103": (lambda p: p.with_residue(7 * p.x("income"), 103), DIGITS),
    "seven times it modulo 1,009 in a quarter": (
        lambda p: p.with_residue(7 * p.x("income"), 1_009, 0.25),
        DIGITS,
    ),
    "its square modulo 1,009": (lambda p: p.with_residue((p.x("income") % 1_009) ** 2, 1_009), DIGITS),
    "a product modulo 97": (lambda p: p.with_residue(p.x("income") % 97 * (p.x("wealth") % 97), 97), DIGITS),
    "a product modulo 503": (
        lambda p: p.with_residue(p.x("income") % 503 * (p.x("wealth") % 503), 503),
        DIGITS,
    ),
    "a product of three modulo 31": (
        lambda p: p.with_residue(p.x("income") % 31 * (p.x("wealth") % 31) * (p.x("debt") % 31), 31),
        DIGITS,
    ),
    "a table of 360": (lambda p: p.with_residue(_table(360)[p.x("wealth") % 360], 360), DIGITS),
    "a table of ages modulo 211": (lambda p: p.with_residue(_table(211)[p.x("age")], 211), DIGITS),
    "the thousands modulo 97": (lambda p: p.with_residue(p.x("income") // 1_000, 97), DIGITS),
    "a check digit modulo 11": (lambda p: p.with_residue(p.x("income") % 11 % 10, 10), DIGITS),
    "a combination with another released one": (
        lambda p: p.with_residue((p.x("income") - 5 * p.z("wealth")) * pow(3, -1, 97), 97),
        DIGITS,
    ),
    "the record before, modulo 97": (lambda p: p.with_residue(np.roll(p.x("income"), 1), 97), DIGITS),
    "the rank in the third digit of the noise": (lambda p: p.with_noise(_rank_inside(p)), CLASS),
    "a rank and seven times another noise": (lambda p: p.with_noise(_rank_and_noise(p)), CLASS),
    "sign by a table of residues": (
        lambda p: p.with_sign(_table(211)[p.x("income") % 211] % 2 == 1),
        CLASS,
    ),
    "sign by a table of the residue of a sum": (
        lambda p: p.with_sign(_table(211)[(p.x("income") + p.x("wealth")) % 211] % 2 == 1),
        CLASS,
    ),
    "sign by a table of two fortieths": (
        lambda p: p.with_sign(_table(1_600)[40 * fortieth(p.x("income")) + fortieth(p.x("wealth"))] % 2 == 1),
        CLASS,
    ),
    "parity by place": (lambda p: p.in_order(_by_parity(p.x("wealth"))), DIGITS),
    "the ninth bit": (lambda p: p.with_residue(p.z("income") % 256 + (p.x("income") & 256), 512), DIGITS),
    "sum of two modulo 97": (
        lambda p: p.with_residue(p.x("income") + p.x("wealth") - p.z("wealth"), 97),
        DIGITS,
    ),
    "difference of two modulo 31": (
        lambda p: p.with_residue(p.x("income") - p.x("wealth") + p.z("wealth"), 31),
        DIGITS,
    ),
    "sum of three modulo 97": (_of_three, DIGITS),
    "sum in a common unit": (_common_unit, DIGITS),
    "two released for one true": (lambda p: p.with_residue(p.x("income") - p.z("wealth"), 97), DIGITS),
    "sign by three parities": (
        lambda p: p.with_sign((p.x("income") + p.x("wealth") + p.x("debt")) % 2 == 1),
        CLASS,
    ),
    "sign by three medians": (
        lambda p: p.with_sign(above(p.x("income")) ^ above(p.x("wealth")) ^ above(p.x("debt"))),
        CLASS,
    ),
    "sign by parity, median and age": (
        lambda p: p.with_sign((p.x("income") % 2 == 1) ^ above(p.x("wealth")) ^ (p.x("age") % 2 == 1)),
        CLASS,
    ),
    "sign by two other noises": (lambda p: p.with_sign(p.e("wealth") * p.e("debt") > 0), SHARED),
    "signs of three noises by a parity": (
        lambda p: p.with_sign((p.e("wealth") * p.e("debt") > 0) ^ (p.x("income") % 2 == 1)),
        CLASS,
    ),
    "many turns of two other noises": (lambda p: p.with_noise(_many_turns(p)), CLASS),
    "truth of the record before": (_lagged(1, "income"), CLASS),
    "truth of a record 700 before": (_lagged(700, "wealth"), CLASS),
    "noise of the record before": (_serial, SHARED),
    "30 records with a thousandth": (_little(30, 0.001), TRUE),
    "80 records with a fiftieth": (_little(80, 0.02), TRUE),
}


@pytest.fixture(scope="module")
def release() -> Masking:
    return apply(mw.IndependentNoise(AMOUNTS, variance_ratio=0.3), true_file(), key=Key(bytes(range(32))))


@pytest.mark.parametrize("plant", PLANTS)
def test_a_leak_by_arithmetic_is_found(plant: str, release: Masking) -> None:
    planted, check = PLANTS[plant]
    found = some_findings(planted(Planted(release)), {check})[check]
    assert found.verdict == "fail", found.said
    assert found.figure < 1e-5


def test_the_clean_release_has_no_sign_of_them(release: Masking) -> None:
    made = battery(Evidence(release)).ledger
    for family in (
        "congruences",
        "matches",
        "noise matches",
        "fine digits",
        "turns",
        "signs",
        "lags",
        "left true",
    ):
        assert made.counts[family]
        assert min((made.adjusted(line) for line in made.lines if line.family == family), default=1.0) > 1e-3


@pytest.mark.parametrize(
    "mask",
    [
        mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.001),
        mw.CorrelatedNoise(AMOUNTS, sd_ratio=0.000_02),
        mw.IndependentNoise(AMOUNTS, variance_ratio=1e-8, shape="laplace"),
        mw.MixtureNoise(AMOUNTS, 1e-7, 1e-8),
        mw.IndependentNoise(("income",), variance_ratio=0.5, transform="log"),
    ],
    ids=["correlated", "tight", "Laplace", "mixture", "log"],
)
def test_moduli_that_the_noise_does_not_hide_are_left_out(mask: Any) -> None:
    """Clean noise of some hundred units and less: residues of z follow x, and nothing may be said of it."""
    for seed in range(2):
        key = Key(np.random.default_rng([seed, 273]).bytes(32))
        made = battery(Evidence(apply(mask, true_file(seed), key=key))).ledger
        assert not [line for line in made.lines if made.adjusted(line) < 1e-3]


def test_primes_and_powers_stand_for_all_moduli() -> None:
    """A residue kept modulo m is kept modulo a number of the list, whatever m up to 2,000 is."""
    assert all(any(m % modulus == 0 for modulus in MODULI) for m in range(2, 2_001))
    assert all(2**k in MODULI and 10 ** (k // 4 + 1) in MODULI for k in range(1, 25))


def test_how_many_records_and_which_share_would_have_been_seen_is_said(release: Masking) -> None:
    evidence = Evidence(release)
    said, drawn = " ".join(texts(residual_notes(evidence))), battery(evidence).residues
    assert drawn is not None
    assert 300 < drawn.moduli < len(MODULI)  # the noise is smaller than the largest powers
    assert f"residues modulo {drawn.moduli:,} numbers were looked at in 1,500 records" in said
    assert "looked for in up to 2,500 records, drawn at random" in said
    assert "records with 0.1% of their noise" in said
    assert "of fewer this cannot tell" in said


def test_the_chance_of_a_sum_modulo_3_is_bounded() -> None:
    """Cube roots of 1 have a third moment: the p-value is an upper bound of how often clean residues do so."""
    rng = np.random.default_rng(274)
    counts, count = rng.multinomial(200, [1 / 3] * 3, size=400_000), 200
    power = np.abs(counts @ np.exp(2j * np.pi / 3 * np.arange(3))) ** 2 / count
    for top in (4.0, 6.0, 8.0):
        p = tail(top, count, 3)
        assert np.exp(-top) < p < 3 * np.exp(-top)
        assert (power >= top).mean() <= p * (1 + 4 / (400_000 * p) ** 0.5)
