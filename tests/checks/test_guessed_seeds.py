"""Noise of guessed seeds is found whichever program, filling and order made it, and keyed noise is not."""

from __future__ import annotations

import hashlib
import random
import zlib

import numpy as np
import pytest
from scipy.special import ndtri

from maskwell.checks import guessed_seeds, seeds
from maskwell.checks.findings import FAIL, NOT_CHECKED, PASS

from .noise_plants import AMOUNTS, finding, noise, released, true_file, with_noise

CHECK = "predictable noise"
N = 1500
SHUFFLED = np.random.default_rng([99, 2**40]).permutation(N)  # the order in which `released` releases


def _by_record(rng):
    return rng.normal(size=(N, 3))


def _by_column(rng):
    return np.column_stack([rng.normal(size=N) for _ in AMOUNTS])


def _gauss():
    random.seed(20240229)
    return np.array([random.gauss(0, 1) for _ in range(3 * N)]).reshape(3, N).T


def _gauss_by_record(draw=random.gauss):
    random.seed(42)
    return np.array([[draw(0, 1) for _ in AMOUNTS] for _ in range(N)])


PLANTS = {
    "default_rng by record": lambda: _by_record(np.random.default_rng(42)),
    "default_rng by column": lambda: _by_column(np.random.default_rng(1999)),
    "default_rng uniform": lambda: np.random.default_rng(7).uniform(-1.7, 1.7, (N, 3)),
    "default_rng correlated": lambda: np.random.default_rng(3).multivariate_normal(
        np.zeros(3), [[1, 0.5, 0.2], [0.5, 1, 0.1], [0.2, 0.1, 1]], N
    ),
    "legacy by record": lambda: _by_record(np.random.RandomState(12345)),
    "legacy by column": lambda: _by_column(np.random.RandomState(0)),
    "Python": _gauss,
    "Python by record": _gauss_by_record,
    "Python uniform by record": lambda: _gauss_by_record(lambda low, high: random.uniform(-1.7, 1.7)),
    "R by column": lambda: seeds.r_normals(np.array([123]), 3 * N).reshape(3, N).T,
    "R uniform": lambda: seeds.r_uniforms(np.array([20250101]), 3 * N).reshape(3, N).T * 3.4,
    "in the released order": lambda: _by_record(np.random.default_rng(2024))[np.argsort(SHUFFLED)],
}


SOME = np.array([*range(200), 1999, 2024, 12345, 20240229, 20250101])


@pytest.fixture
def some_seeds(monkeypatch):
    """Try fewer seeds, all of them common, so that the tests are quick."""
    assert set(SOME.tolist()) <= set(seeds.common_seeds().tolist())
    monkeypatch.setattr(guessed_seeds, "common_seeds", lambda: SOME)


@pytest.mark.usefixtures("some_seeds")
@pytest.mark.parametrize("plant", PLANTS)
def test_seeds_are_found(plant):
    truth = true_file(N)
    drawn = PLANTS[plant]()
    values = {name: np.rint(truth.floats(name) + 6_000 * drawn[:, j]) for j, name in enumerate(AMOUNTS)}
    found = finding(released(truth, values), CHECK)
    assert found.verdict == FAIL
    assert found.figure > 0.99


@pytest.mark.usefixtures("some_seeds")
def test_one_column_is_enough():
    truth = true_file(N)
    values = with_noise(truth)
    values["spending"] = truth.floats("spending") + 6_000 * np.random.default_rng(99).standard_normal(N)
    found = finding(released(truth, values), CHECK)
    assert found.verdict == FAIL
    assert "seed 99" in found.said


@pytest.mark.usefixtures("some_seeds")
def test_multiplied_noise_is_found():
    truth = true_file(N)
    factor = 1 + 0.2 * np.random.default_rng(1).standard_normal(N)
    found = finding(released(truth, {"income": np.rint(truth.floats("income") * factor)}), CHECK)
    assert found.verdict == FAIL


@pytest.mark.usefixtures("some_seeds")
def test_noise_of_open_values_alone_is_found():
    truth = true_file(N)
    status = (noise(N, 1, 3)[:, 0] > 0.5).astype(np.uint8)
    truth = truth.with_columns({"income": (truth.schema["income"], truth.floats("income"), status)})
    drawn = np.zeros(N)
    drawn[status == 0] = np.random.RandomState(42).standard_normal(int((status == 0).sum()))
    found = finding(released(truth, {"income": np.rint(truth.floats("income") + 6_000 * drawn)}), CHECK)
    assert found.verdict == FAIL


def test_keyed_noise_is_not_found_and_stays_below_what_chance_gives():
    found = finding(released(true_file(N), with_noise(true_file(N))), CHECK)
    assert found.verdict == PASS
    assert found.figure < found.figures["largest by chance"] < 0.3


def test_few_records_are_not_checked():
    truth = true_file(50)
    assert finding(released(truth, with_noise(truth)), CHECK).verdict == NOT_CHECKED


def test_the_generators_are_the_programs_own():
    tried = np.array([0, 1, 42, 2024, 20240101, 2**32 - 1])
    for row, seed in zip(seeds.numpy_normals(tried, 700), tried.tolist(), strict=True):
        np.testing.assert_array_equal(row, np.random.default_rng(seed).standard_normal(700))
    for row, seed in zip(seeds.legacy_uniforms(tried, 700), tried.tolist(), strict=True):
        np.testing.assert_array_equal(row, np.random.RandomState(seed).random_sample(700) - 0.5)
    uniforms, normals = seeds.python_uniforms(tried, 700), seeds.python_normals(tried, 701)
    for i, seed in enumerate(tried.tolist()):
        random.seed(seed)
        np.testing.assert_array_equal(uniforms[i], np.array([random.random() for _ in range(700)]) - 0.5)
        random.seed(seed)
        np.testing.assert_allclose(
            normals[i], [random.gauss(0, 1) for _ in range(701)], rtol=1e-12, atol=1e-14
        )


def test_r_draws_as_r_does():
    # R 4: set.seed(42); rnorm(4); set.seed(123); rnorm(3); set.seed(42); runif(3)
    np.testing.assert_allclose(
        seeds.r_normals(np.array([42]), 4)[0], [1.37095845, -0.56469817, 0.36312841, 0.63286260], atol=5e-9
    )
    np.testing.assert_allclose(
        seeds.r_normals(np.array([123]), 3)[0], [-0.56047565, -0.23017749, 1.55870831], atol=5e-9
    )
    np.testing.assert_allclose(
        seeds.r_uniforms(np.array([42]), 3)[0] + 0.5, [0.9148060, 0.9370754, 0.2861395], atol=5e-8
    )


@pytest.mark.parametrize("by", ["its number", "income"])
def test_a_seed_for_each_record_is_found(by):
    truth = true_file(N)
    own = truth.floats("income").astype(int) if by == "income" else np.arange(N)
    drawn = np.array([np.random.default_rng(int(seed)).standard_normal() for seed in own])
    values = with_noise(truth)
    values["wealth"] = np.rint(truth.floats("wealth") + 6_000 * drawn)
    found = finding(released(truth, values), CHECK)
    assert found.verdict == FAIL
    assert found.where == "wealth"
    assert f"seeded for each record by {by}" in found.said


def _by_hash(text, of=lambda digest: digest[:4]):
    return int.from_bytes(of(hashlib.md5(text.encode()).digest()), "big") / 2**32


HASHED = {
    "md5 of income": lambda i, x: ndtri(_by_hash(str(x))),
    "md5 of its number": lambda i, x: ndtri(_by_hash(f"{i}_wealth", lambda digest: digest[-4:])),
    "sha256 of income": lambda i, x: ndtri(
        (int(hashlib.sha256(str(x).encode()).hexdigest(), 16) % 10**6 + 0.5) / 10**6
    ),
    "crc32 of income": lambda i, x: np.random.RandomState(zlib.crc32(str(x).encode())).standard_normal(),
}


@pytest.mark.parametrize("how", HASHED)
def test_noise_that_is_a_hash_of_the_record_is_found(how):
    truth = true_file(N)
    drawn = np.array([HASHED[how](i, x) for i, x in enumerate(truth.floats("income").astype(int).tolist())])
    values = with_noise(truth)
    values["wealth"] = np.rint(truth.floats("wealth") + 6_000 * drawn)
    found = finding(released(truth, values), CHECK)
    assert found.verdict == FAIL
    assert found.where == "wealth"
    assert how in found.said
