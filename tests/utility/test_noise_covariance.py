"""Correlations corrected for noise that columns share: on logs, with a spread, cut off, mixed, chained."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from maskwell.card import NoiseCard
from maskwell.keys import Key, Stream, ids_from_numbers
from maskwell.laws import Additive, Normal, Outlet, Power, Step
from maskwell.laws.mixture import JointMixture, RotatedMixture
from maskwell.masking import apply
from maskwell.masks import Chain, CorrelatedNoise, IndependentNoise, MixtureNoise, Recompute
from maskwell.notes import Note
from maskwell.schema import Column, Schema
from maskwell.table import Table
from maskwell.utility import compare
from maskwell.utility import noise_covariance as room
from maskwell.utility.moments import pairwise_moments

NAMES = ("a", "b", "c")
KEY = frozenset({"key"})
OPTIONS = {"variance_ratio": 0.5, "within_variance_ratio": 0.1, "correlated": True, "transform": "log"}
UNCORRECTED = {"transform": "log", "mean_corrected": False}
MASKS = {
    "log": CorrelatedNoise(NAMES, sd_ratio=0.7, transform="log"),
    "log with a shift": CorrelatedNoise(NAMES, sd_ratio=0.7, transform="log", shift=10.0),
    "log with biased means": CorrelatedNoise(NAMES, sd_ratio=0.7, **UNCORRECTED),
    "independent on logs": IndependentNoise(NAMES, variance_ratio=0.5, **UNCORRECTED),
    "joint mixture on logs": MixtureNoise(NAMES, components=4, **OPTIONS),
    "rotated mixture on logs": MixtureNoise(NAMES, **OPTIONS),
    "chain on logs": Chain(
        [
            CorrelatedNoise(("a", "b"), sd_ratio=0.5, **UNCORRECTED),
            CorrelatedNoise(("b", "c"), sd_ratio=0.5, **UNCORRECTED),
        ]
    ),
    "logs beside plain": Chain(
        [
            CorrelatedNoise(("a", "b"), sd_ratio=0.7, transform="log"),
            IndependentNoise(("c",), variance_ratio=0.5),
        ]
    ),
    "power": CorrelatedNoise(NAMES, sd_ratio=0.7, spread=Power(1.0)),
    "step": CorrelatedNoise(NAMES, sd_ratio=0.7, spread=Step((20.0,), (0.7, 1.4))),
}


def table_of(count=20_000, seed=0, ends=None, total=False):
    rng = np.random.default_rng(seed)
    root = np.linalg.cholesky(np.array([[1, 0.6, 0.3], [0.6, 1, 0.4], [0.3, 0.4, 1]]))
    values = np.exp(3 + 0.5 * rng.standard_normal((count, 3)) @ root.T)
    if ends:
        values = np.clip(values, ends["bottom"] + 1, ends["top"] - 1)
    frame = dict(zip(NAMES, values.T, strict=True))
    frame |= {"total": values[:, 0] + values[:, 1]} if total else {}
    columns = tuple(Column(name, "continuous", KEY, **(ends or {})) for name in frame)
    return Table.from_frame(pa.table(frame), Schema(columns))


def off(found):
    return np.abs(found.corrected - found.before)[np.triu_indices(len(found.names), 1)]


@pytest.mark.parametrize("name", MASKS)
def test_corrected_correlations_are_those_of_the_truth(name):
    """4 standard errors of a correlation; heavy tails and the noise make one half as large again as among normals."""
    found = compare(apply(MASKS[name], table_of(), seed=1)).correlations
    assert off(found).max() < 4 * 1.5 / np.sqrt(20_000)
    assert not found.notes


@pytest.mark.parametrize("transform", [None, "log"])
def test_limits_cut_the_shared_noise_too(transform):
    mask = CorrelatedNoise(NAMES, sd_ratio=0.7, transform=transform)
    found = compare(apply(mask, table_of(ends={"bottom": 5, "top": 40}), seed=1)).correlations
    assert off(found).max() < 4 * 1.5 / np.sqrt(20_000)


def test_totals_share_the_noise_of_their_parts():
    mask = Chain([CorrelatedNoise(("a", "b"), r0=0.7), Recompute("total", {"a": 1, "b": 1})])
    found = compare(apply(mask, table_of(total=True), seed=1)).correlations
    assert np.isfinite(off(found)).all()
    assert off(found).max() < 4 * 1.5 / np.sqrt(20_000)


@pytest.mark.parametrize(
    ("mask", "why"),
    [
        (CorrelatedNoise(NAMES, sd_ratio=0.7, spread=Power(2.0)), "utility.unsettled_noise"),
        (CorrelatedNoise(NAMES, sd_ratio=0.7, transform="log", spread=Power(0.5)), "utility.noise_on_logs"),
    ],
)
def test_what_cannot_be_corrected_is_no_figure_and_has_its_reason(mask, why):
    found = compare(apply(mask, table_of(5_000), seed=1)).correlations
    assert np.isnan(off(found)).all()
    pairs = (("a", "b"), ("a", "c"), ("b", "c"))
    assert set(found.notes) == {Note(why, {"first": first, "second": second}) for first, second in pairs}


SDS, MATRIX = (0.5, 0.4), ((1.0, 0.7), (0.7, 1.0))
NOISES = {
    "normal": Normal(SDS, MATRIX),
    "joint": MixtureNoise(("a", "b"), 0.5, 0.1, components=3, correlated=True),
    "rotated": MixtureNoise(("a", "b"), 0.5, 0.1, correlated=True),
}


def noise_of(name):
    if name == "normal":
        return NOISES[name]
    noise = NOISES[name].card(table_of(500)).laws[0].noise
    assert isinstance(noise, JointMixture | RotatedMixture)
    return type(noise)(**{**{k: getattr(noise, k) for k in noise.__slots__ if k != "form"}, "sds": SDS})


@pytest.mark.parametrize("name", NOISES)
@pytest.mark.parametrize("shifts", [(None, None), (1.0, None), (None, 1.0), (0.0, 2.0)])
def test_the_closed_forms_are_what_draws_give(name, shifts):
    """cov(z1, z2) less its closed form is that of E(z | x): here x is the same for all, so nothing is left."""
    law = Additive(("a", "b"), noise_of(name), tuple(Outlet(log_shift=shift) for shift in shifts))
    count = 200_000
    z = law.draw(np.full((count, 2), 3.0), Stream(Key.from_seed(1), "test", "0", ids_from_numbers(count)))
    moments = pairwise_moments("ab", lambda n: z[:, "ab".index(n)].copy(), None, np.zeros(2))
    product = (z[:, 0] - z[:, 0].mean()) * (z[:, 1] - z[:, 1].mean())
    error = product.std() / np.sqrt(count)
    found = room.closed_form(law, (0, 1), moments, (0, 1))
    assert abs(found) > 20 * error
    assert abs(found - moments.covariances[0, 1]) < 4 * error


def test_one_column_on_logs_and_one_plain_in_one_law():
    """No mask makes such a law, a card may have it."""
    masking = apply(CorrelatedNoise(NAMES, sd_ratio=0.7, transform="log"), table_of(), seed=1)
    law = masking.card.laws[0]
    sds = (0.4, 10.0, 0.4)
    noise = Normal(sds, ((1.0, -0.8, 0.5), (-0.8, 1.0, -0.5), (0.5, -0.5, 1.0)))
    outlets = Outlet(log_shift=0.0), Outlet(), Outlet(log_shift=0.0)
    mixed = Additive(law.columns, noise, outlets, mean_corrected=True)
    truth = masking.truth
    x = np.column_stack([truth.floats(name) for name in NAMES])
    z = mixed.draw(x, Stream(Key.from_seed(2), "test", "0", ids_from_numbers(len(x))))
    status = np.zeros(len(x), np.uint8)
    cells = {name: (truth.schema[name], z[:, j], status) for j, name in enumerate(NAMES)}
    found = compare(replace(masking, masked=truth.with_columns(cells), card=NoiseCard((mixed,)))).correlations
    assert np.abs(found.after - found.before).max() > 0.1
    assert off(found).max() < 4 * 1.5 / np.sqrt(20_000)
