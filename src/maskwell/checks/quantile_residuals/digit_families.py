"""Tests that look at released values themselves: cells left nearly true, digits against digits, steps.

Left true: |z - x| below half a unit, 5 1/2 and 50 1/2 units, from a ten-thousandth to a fiftieth of the noise's sd,
against the mass that the law has there (Poisson). Digits: the residue of a true column by the bins of a digit score,
chi^2; from modulus 100 on residues are groups. Steps: S_f = sum of exp(2 pi i f K) over K = z, z + x, z - x in units;
|S_f|^2 / n is Exp(1) at every frequency f at which the noise has no characteristic function left (f >= 1 / s with
normal noise of s units). Own derivation; the law of left-true counts is bounded by the Poisson's (Anderson and Samuels
1967). Called by `battery`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from ...laws.transform import on_unit
from ...table import Floats
from .cells import Bools, Integers, ScoredCells
from .families import TEN, Score, residue_groups
from .ledger import Effect, Ledger
from .truths import FEWEST, Short, TrueColumn

TRUE_SHARE = Effect("share of cells beyond what the law explains", 0.02, 0.01)
DIGITS = Effect("misfit of the digits", 0.1, 0.04)
STEPS = Effect("share of the records in step", 0.1, 0.05)
WINDOWS = (0.5, 5.5, 50.5)  # units around the true value
SHARES = (
    1e-4,
    1e-3,
    1e-2,
    2e-2,
)  # of the local sd around the true value: windows where units are fine beside the noise
NEAR = 0.05  # of the local sd: what is called nearly true
TIMES = 1.5  # as many as expected, from which on a count fails
REACH = 10.0  # local sds: what lies farther from the true value has no chance, and its tails tell of it
FEW_RESIDUES = 10  # up to which residues make a table; more are groups
DECIMAL = 10  # the modulus for which digits of several true columns are looked at together
# Tables of the digits of two and of three columns: all of 16, and of 10
MOST_IN_TWOS, MOST_IN_THREES = 120, 120
LEAST_EXPECTED = 10  # records of a residue, so that chi^2 holds
CIRCLE = 100_000  # units after which steps are folded: all decimal digits up to the fifth divide it
LEAST_STEPS = 5  # units in an sd: below, steps cannot be told from the unit
SURELY_INSIDE = 1e-5  # chance of a limit above which a cell does not count for steps
NO_UNIT = 1e-3  # of the sd: what stands for a unit where there is none


def left_true(ledger: Ledger, cells: ScoredCells) -> None:
    """Count cells within some units of their true value."""
    own = _on_unit(cells, cells.x)
    for window in WINDOWS:
        half = window * _unit(cells)
        usable = _inside(cells, own, half) & ((window == WINDOWS[0]) | (half <= NEAR * cells.local_sd))
        how = "left as they were" if window == WINDOWS[0] else f"left within {window:g} units of it"
        _near(ledger, cells, own, half, usable, how)
    for share in SHARES:
        units = np.floor(share * cells.local_sd / _unit(cells))
        wide = (units + 0.5) * _unit(cells)
        usable = _inside(cells, own, wide) & (units > 0)
        _near(ledger, cells, own, wide, usable, f"left within {share:g} of the noise's sd")


def near_targets(ledger: Ledger, cells: ScoredCells, targets: Floats, how: str) -> None:
    """Count cells that leave as targets made of true values, other than their own."""
    own, half = _on_unit(cells, targets), WINDOWS[0] * _unit(cells)
    with np.errstate(invalid="ignore"):
        within_reach = np.abs(own - cells.x) <= REACH * cells.local_sd
    other = within_reach & (own != _on_unit(cells, cells.x))
    _near(ledger, cells, own, half, other & _inside(cells, own, half), how)


def _unit(cells: ScoredCells) -> float:
    return cells.unit or NO_UNIT * float(np.median(cells.local_sd))


def _on_unit(cells: ScoredCells, values: Floats) -> Floats:
    return on_unit(values, cells.outlet.unit) if cells.outlet.unit is not None else values


def _near(
    ledger: Ledger, cells: ScoredCells, own: Floats, half: Floats | float, usable: Bools, how: str
) -> None:
    """Compare the count of cells within half a width of something with the mass that their law has there."""
    if np.count_nonzero(usable) < FEWEST:
        return
    some, centre = cells.only(usable), own[usable]
    half = np.broadcast_to(half, usable.shape)[usable]
    (low, high), (low_end, high_end) = (
        some.tails(some.entered(edge)) for edge in (centre - half, centre + half)
    )
    mass = np.maximum(np.where(low_end < 0.5, low_end - low, high - high_end), 0.0)
    _enter_left_true(ledger, some, np.abs(some.z - centre) < half, mass, how)


def _enter_left_true(ledger: Ledger, cells: ScoredCells, near: Bools, mass: Floats, how: str) -> None:
    from scipy.special import ndtr, pdtrc

    seen, mean, count = int(near.sum()), float(mass.sum()), len(near)
    if mean > count / 4:
        p = float(ndtr(-(seen - mean) / max(float((mass * (1 - mass)).sum()), 1e-12) ** 0.5))
    else:
        p = float(pdtrc(seen - 1, mean)) if seen else 1.0
    share = (seen - mean) / count
    many = (seen >= TIMES * mean and seen - mean >= TEN) or share >= TRUE_SHARE.fail
    where = f"{seen:,} of {count:,} cells {how}, {mean:.3g} expected"
    ledger.add("left true", cells.name, TRUE_SHARE, p, share, count, where, is_large=many)


def _inside(cells: ScoredCells, own: Floats, half: Floats | float) -> Bools:
    """Whether a window around the true value has neither a limit nor a code in it."""
    inside = np.ones(len(own), bool)
    outlet, unit = cells.outlet, cells.unit
    if outlet.low is not None:
        inside &= own - half > outlet.low
    if outlet.high is not None:
        inside &= own + half < outlet.high
    if outlet.log_shift is not None:
        inside &= own - half + outlet.log_shift > 0
    for code in outlet.avoid:
        inside &= np.abs(own - code) > half + 1.5 * unit
    return inside


def digits(ledger: Ledger, score: Score, modulus: int, by: TrueColumn) -> None:
    """Test digit scores by the residue of a true column for the same modulus."""
    residues = by.residues(modulus)
    if residues is None:
        return
    label = f"by {by.name} modulo {modulus}"
    if modulus > FEW_RESIDUES:
        residue_groups(ledger, score, label, residues)
    else:
        _residue_table(ledger, score, modulus, residues, label)


def digits_by_place(ledger: Ledger, score: Score, by: TrueColumn) -> None:
    """Test last digits by the tens, hundreds, thousands and the first digit of a true column."""
    for place, found in by.digit_places():
        _residue_table(ledger, score, DECIMAL, found, f"by the {place} of {by.name}")


def digit_characters(ledger: Ledger, score: Score, columns: Sequence[TrueColumn]) -> None:
    """Test last digits against those of two and of three true columns together, combined in any way.

    With d the last digit by its score and d_j those of true columns, S = sum of exp(2 pi i (a d + b_1 d_1 + ..) / 10)
    for all whole a, b: |S|^2 / n is Exp(1), and for a = 5, where d has but a sign, at most chi^2_1 (Szekely and
    Bakirov 2003). A check digit 3 B + 7 C is one of them, and a product of digits is a sum of them.
    """
    able = [(one.name, found) for one in columns if (found := one.residues(DECIMAL)) is not None]
    own = score.of(np.arange(len(score.values)))
    last = np.minimum((score.uniforms * DECIMAL).astype(np.int64), DECIMAL - 1)
    digits = [(name, found[own].astype(np.int64)) for name, found in able]
    twos = [*combinations(digits, 2)][:MOST_IN_TWOS]
    threes = [*combinations(digits, 3)][:MOST_IN_THREES]
    for chosen in (*twos, *threes):
        _characters(ledger, score, last, chosen)


def _characters(
    ledger: Ledger, score: Score, last: Integers, chosen: tuple[tuple[str, Integers], ...]
) -> None:
    from scipy.fft import fftn
    from scipy.special import erfc

    known = np.all([found >= 0 for _, found in chosen], axis=0)
    count = int(known.sum())
    if count < FEWEST:
        return
    place = last
    for _, found in chosen:
        place = place * DECIMAL + found
    shape = (DECIMAL,) * (1 + len(chosen))
    table = np.bincount(place[known], minlength=DECIMAL ** len(shape)).astype(np.float32).reshape(shape)
    power = np.abs(fftn(table)) ** 2 / count
    names = ", ".join(name for name, _ in chosen)
    for part, is_sign in ((power[1:5], False), (power[5:6], True)):
        top = float(part.max())
        p = float(erfc((top / 2) ** 0.5)) if is_sign else float(np.exp(-top))
        where = f"by the last digits of {names} together"
        share = (top / count) ** 0.5
        ledger.add("digits", score.label, STEPS, min(1.0, part.size * p), share, count, where, True)


def _residue_table(ledger: Ledger, score: Score, modulus: int, residues: Short, label: str) -> None:
    """Cross residues with as many bins of the score."""
    from scipy.special import chdtrc

    own = score.of(residues)
    place = np.minimum((score.uniforms * modulus).astype(np.int64), modulus - 1)
    inside = own >= 0
    if not inside.all():
        own, place = own[inside], place[inside]
    seen = np.bincount(own * modulus + place, minlength=modulus**2).reshape(modulus, modulus)
    mean = seen.sum(axis=1, keepdims=True) / modulus
    kept = mean[:, 0] >= LEAST_EXPECTED
    if not kept.any():
        return
    misfit = float((((seen - mean) ** 2)[kept] / mean[kept]).sum())
    df, count = int(kept.sum()) * (modulus - 1), int(seen[kept].sum())
    effect = max(misfit - df, 0.0) / count
    ledger.add("digits", score.label, DIGITS, float(chdtrc(df, misfit)), effect**0.5, count, label, True)


def steps(ledger: Ledger, cells: ScoredCells) -> None:
    """Look for steps of any length in released values, and in their sums and differences with their true ones."""
    if cells.unit == 0.0:
        return
    sizes = cells.local_sd / cells.unit
    least = float(np.quantile(sizes, 0.05))
    usable = (sizes >= least) & free_of_limits(cells)
    from_frequency = cells.roughness / least if least > 0 else np.inf
    if least < LEAST_STEPS or from_frequency >= 0.5 or np.count_nonzero(usable) < FEWEST:
        return
    z = np.rint(cells.z[usable] / cells.unit)
    if np.abs(z).max() >= 2.0**52:
        return
    z = z.astype(np.int64) % CIRCLE
    _enter_steps(ledger, cells.name, z, from_frequency, "in the released values")
    x = np.rint(cells.x[usable] / cells.unit)
    if np.abs(x).max() < 2.0**52:
        x = x.astype(np.int64) % CIRCLE
        _enter_steps(ledger, cells.name, z - x, from_frequency, "between it and its true value")
        _enter_steps(ledger, cells.name, z + x, from_frequency, "in its sum with its true value")


def free_of_limits(cells: ScoredCells) -> Bools:
    """Whether a cell's noise hardly ever reaches a limit."""
    free, outlet = np.ones(len(cells.at), bool), cells.outlet
    if outlet.low is not None:
        below, _ = cells.tails(cells.entered(np.full(len(cells.at), outlet.low + cells.unit / 2)))
        free &= below < SURELY_INSIDE
    if outlet.high is not None:
        _, above = cells.tails(cells.entered(np.full(len(cells.at), outlet.high - cells.unit / 2)))
        free &= above < SURELY_INSIDE
    return free


def _enter_steps(ledger: Ledger, name: str, places: Integers, from_frequency: float, where: str) -> None:
    """Fold whole numbers on a circle and test all frequencies from one on; the last, of parity, has one dimension."""
    from scipy.fft import rfft
    from scipy.special import erfc

    count = len(places)
    power = np.abs(rfft(np.bincount(places % CIRCLE, minlength=CIRCLE).astype(np.float32))).astype(np.float64)
    power = power**2 / count
    first = int(np.ceil(from_frequency * CIRCLE))
    for part, one_sided in ((power[first:-1], True), (power[-1:], False)):
        if not len(part):
            continue
        top = float(part.max())
        p = min(1.0, len(part) * float(np.exp(-top))) if one_sided else float(erfc((top / 2) ** 0.5))
        size = f"1/{CIRCLE / (first + int(part.argmax())):.4g}" if one_sided else "1/2"
        said = f"{where}, frequency {size} a unit"
        ledger.add("steps", name, STEPS, p, (top / count) ** 0.5, count, said, True)
