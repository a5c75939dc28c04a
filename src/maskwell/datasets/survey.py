"""The records, drawn as numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BadPlan
from .arrays import Flags, Floats
from .homes import drawn_counts, home_classes
from .laws import amount_laws, latent_correlations, pattern_counts
from .published_figures import AMOUNTS, HOME_VAL, INCOME, PAIR_CORRELATIONS, PAIRS, SIZE

Uniforms = Callable[[Floats], Floats]

# Invented. Of the records without an open value: homes without an interview, and owners; the others are renters.
_NO_INTERVIEW_SHARE, _SILENT_OWNER_SHARE = 0.5, 0.1
_SAME_ANSWER_SHARE = 0.5
_OWNER_LIFT = 1.5
_CALIBRATION_STEPS = 8


def housing_arrays(n: int = SIZE, seed: int = 1993, *, codes: bool = True) -> dict[str, NDArray[Any]]:
    """Draw the survey as numpy arrays: ids as text, classes as integers, amounts as floats.

    Amounts are NaN where missing and equal to a code where coded; without `codes` amounts at the top code are drawn
    from there on, and those at the bottom code are zeros. At 64,998 records the published counts hold exactly for every
    seed; at any other size records are drawn with the same probabilities.
    """
    if n < 1:
        raise BadPlan("the survey needs at least one record: n must be 1 or more")
    rng = np.random.default_rng(seed)
    is_open = _open_fields(rng, n)
    latent, uniforms_of = _latent_normals(rng, is_open)
    owner, may_hold_code = _household_kinds(rng, is_open)
    amounts = _closed_values(rng, may_hold_code)
    _fill_open(amounts, is_open, latent, uniforms_of)
    classes = home_classes(rng, is_open, amounts[INCOME], latent[HOME_VAL] + _OWNER_LIFT * owner)
    identifiers = _identifiers(rng, n)
    if not codes:
        _draw_beyond_top(rng, amounts)
    values = {amount.name: amounts[field] for field, amount in enumerate(AMOUNTS)}
    return {"IDNUM": identifiers, **classes, **values}


def _draw_beyond_top(rng: np.random.Generator, amounts: Floats) -> None:
    for field, law in enumerate(amount_laws()):
        is_top = amounts[field] == law.top
        amounts[field, is_top] = law.values_beyond(1 - rng.random(np.count_nonzero(is_top)))


def _open_fields(rng: np.random.Generator, n: int) -> Flags:
    """Return fields x records: whether the value is open."""
    counts = pattern_counts()
    patterns = np.repeat(np.arange(counts.size, dtype=np.uint8), drawn_counts(rng, n, counts))
    rng.shuffle(patterns)
    of_pattern = np.array(np.unravel_index(np.arange(counts.size), counts.shape), dtype=bool)
    return of_pattern[:, patterns]


def _latent_normals(rng: np.random.Generator, is_open: Flags) -> tuple[Floats, Uniforms]:
    """Return correlated normals, fields x records, and what makes them uniform.

    At the published size ranks do: the open values of a field are then the quantiles of its law, whatever the
    seed, and have its mean and sd; and the correlations are set for this very sample.
    """
    from scipy.special import ndtr

    normals = rng.standard_normal(is_open.shape)
    if is_open.shape[1] != SIZE:
        return np.linalg.cholesky(latent_correlations()) @ normals, ndtr
    return np.linalg.cholesky(_calibrated_correlations(normals, is_open)) @ normals, _even_ranks


def _fill_open(amounts: Floats, is_open: Flags, latent: Floats, uniforms_of: Uniforms) -> None:
    for field, law in enumerate(amount_laws()):
        amounts[field, is_open[field]] = law.values(uniforms_of(latent[field, is_open[field]]))


def _even_ranks(numbers: Floats) -> Floats:
    ranks = np.empty(len(numbers))
    ranks[np.argsort(numbers, kind="stable")] = np.arange(len(numbers)) + 0.5
    return ranks / len(numbers)


def _calibrated_correlations(normals: Floats, is_open: Flags) -> Floats:
    """Return latent correlations with which these normals give the published correlations of the amounts."""
    latent = latent_correlations().copy()
    rows, columns = np.transpose(PAIRS)
    wanted = np.array(PAIR_CORRELATIONS)
    slopes = latent[rows, columns] / wanted
    for _ in range(_CALIBRATION_STEPS):
        found = _pair_correlations(np.linalg.cholesky(latent) @ normals, is_open)
        latent[rows, columns] += slopes * (wanted - found)
        latent[columns, rows] = latent[rows, columns]
    return latent


def _pair_correlations(latent: Floats, is_open: Flags) -> Floats:
    amounts = np.full(latent.shape, np.nan)
    _fill_open(amounts, is_open, latent, _even_ranks)
    both = [is_open[i] & is_open[j] for i, j in PAIRS]
    return np.array(
        [np.corrcoef(amounts[i, k], amounts[j, k])[0, 1] for (i, j), k in zip(PAIRS, both, strict=True)]
    )


def _household_kinds(rng: np.random.Generator, is_open: Flags) -> tuple[Flags, Flags]:
    """Return which records are owners, and fields x records: where a code can stand.

    A record with an open housing amount is an owner; one with an open income alone a renter, whose housing
    amounts are missing. The silent ones are homes without an interview (all missing), renters and owners.
    """
    silent = ~is_open.any(axis=0)
    kind = rng.random(is_open.shape[1])
    owner = np.logical_or(is_open[1:].any(axis=0), silent & (kind >= 1 - _SILENT_OWNER_SHARE))
    interviewed = ~(silent & (kind < _NO_INTERVIEW_SHARE))
    return owner, np.stack([interviewed, *[owner] * len(AMOUNTS[1:])])


def _closed_values(rng: np.random.Generator, may_hold_code: Flags) -> Floats:
    """Return fields x records: NaN, 0 or the top code, to be overwritten where open.

    One answer in two is common to the record, so that who refuses one question tends to refuse others.
    """
    out = np.full(may_hold_code.shape, np.nan)
    n = may_hold_code.shape[1]
    of_record = rng.random(n)
    for field, amount in enumerate(AMOUNTS):
        answer = np.where(rng.random(n) < _SAME_ANSWER_SHARE, of_record, rng.random(n))
        coded = may_hold_code[field] & (answer >= amount.missing_share)
        is_bottom = answer < amount.missing_share + amount.bottom_share
        out[field, coded] = np.where(is_bottom[coded], 0, amount.top)
    return out


def _identifiers(rng: np.random.Generator, n: int) -> NDArray[np.str_]:
    """Return unique 12-digit numbers as text, in random order."""
    step = 10**12 // n
    left = np.arange(n) * step + rng.integers(0, step, n)
    rng.shuffle(left)
    digits = np.empty((n, 12), dtype=np.uint32)
    for place in reversed(range(12)):
        left, digits[:, place] = np.divmod(left, 10)
    return (digits + np.uint32(ord("0"))).view("U12").ravel()
