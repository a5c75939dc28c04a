"""Cells that are coarse beside the noise, in parts: the answers of cells as boxes, for a fraction of the time."""

from __future__ import annotations

import warnings

import numpy as np
import pyarrow as pa
import pytest

import maskwell as mw
from maskwell.attacks.attack_run import attack_by
from maskwell.attacks.bayes.pruned_sums import cell_mixture
from maskwell.attacks.bayes.pruned_sums.cell_mixture import CellMixture, part_counts, parts_of
from maskwell.attacks.pair_density import law_terms
from maskwell.notes import has_code
from maskwell.schema import Column, Schema
from maskwell.table import Table

NAMES, KEY = ("A", "B", "C", "D"), frozenset({"key"})
IN_PARTS = "attacks.units_as_noise_in_parts"


def counts_of(count: int, gaps: float = 0.05, seed: int = 1) -> Table:
    """Return three columns of small whole numbers and an amount, in two blocks."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=count)[:, None]
    values = np.round(np.array([1.2, 1.5, 2.0, 1.0]) * (0.6 * common + 0.8 * rng.normal(size=(count, 4))))
    values[:, 3] = rng.normal(size=count)
    values[rng.random(values.shape) < gaps] = np.nan
    columns = {name: pa.array(column, from_pandas=True) for name, column in zip(NAMES, values.T, strict=True)}
    units = (1, 1, 1, None)
    described = [Column(name, "continuous", KEY, unit=unit) for name, unit in zip(NAMES, units, strict=True)]
    group = Column("G", "category", frozenset({"block"}), categories=("0", "1"))
    codes = pa.array(rng.integers(0, 2, count).astype(str))
    return Table.from_frame(pa.table(columns | {"G": codes}), Schema((*described, group)))


def masked(table: Table, sd_ratio: float = 0.35) -> mw.Masking:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mw.MaskwellWarning)
        return mw.apply(mw.CorrelatedNoise(NAMES, sd_ratio=sd_ratio), table, seed=5)


def test_a_cell_in_parts_has_the_density_of_the_box() -> None:
    masking = masked(counts_of(60))
    law = masking.card.laws[0]
    assert max(part_counts(law).values()) > 1, "some unit is too coarse for trees"
    z, x = (side.ravel() for side in np.meshgrid(np.arange(60), np.arange(60)))
    (boxes,) = law_terms([law], masking.masked, masking.truth)
    mixture = CellMixture.of([law], masking.masked, masking.truth)
    exact = boxes.logs(z, x)
    possible = np.isfinite(exact)  # else other columns are open
    near = possible & (exact > exact[possible].max() - 8)
    assert near.sum() > 200
    ratios = np.exp(mixture.logs(z[near], x[near]) - exact[near])
    assert np.quantile(np.abs(ratios - 1), 0.9) < 0.06
    assert np.median(np.abs(ratios - 1)) < 0.02
    rows, places = np.arange(5), np.flatnonzero(mixture.kind == mixture.kind[0])
    listed = mixture.logs(np.tile(places, 5), np.repeat(rows, len(places)))
    np.testing.assert_allclose(mixture.matrix(places, rows).ravel(), listed, rtol=1e-12)


@pytest.mark.parametrize("assignment", ["best", "one-to-one"])
def test_cells_in_parts_link_as_boxes_do(assignment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the same noise: what few records differ by lies far within what draws of 400 scatter by (2.4 points)."""
    masking, plan = masked(counts_of(400)), mw.BayesIntruder(assignment=assignment)
    exact, whole, _, _ = attack_by(plan, masking)
    monkeypatch.setattr(cell_mixture, "LEAST_CELLS", 0)
    near, guess, _, _ = attack_by(plan, masking)
    assert has_code(near.notes, IN_PARTS)
    assert not has_code(exact.notes, IN_PARTS)
    assert abs(near.rate - exact.rate) <= 0.01
    assert (guess.found == whole.found).mean() > 0.95
    if assignment == "best":
        own = np.abs(guess.columns["probability"] - whole.columns["probability"])
        assert np.quantile(own, 0.95) < 0.01


def test_f_is_the_sum_that_trees_make(monkeypatch: pytest.MonkeyPatch) -> None:
    masking = masked(counts_of(120))
    mixture = CellMixture.of(masking.card.laws, masking.masked, masking.truth)
    codes = mixture.kind, mixture.kind
    sums, lacking = mixture.log_sums((_kinds(masking.truth), codes[1]), np.arange(120), 1e-6)
    assert lacking < 1e-6
    for record in (0, 40, 119):
        alike = np.flatnonzero(_kinds(masking.truth) == mixture.kind[record])
        logs = mixture.logs(np.full(len(alike), record), alike)
        assert sums[record] == pytest.approx(np.logaddexp.reduce(logs), abs=1e-5)


def _kinds(truth: Table) -> np.ndarray:
    """Number records by what is open, as the mixture does where masks open and close nothing."""
    patterns = np.column_stack([truth.status(name) == 0 for name in NAMES])
    return np.unique(patterns, axis=0, return_inverse=True)[1].ravel()


def test_cells_are_not_split_where_limits_or_too_many_parts_stand_against_it() -> None:
    table = counts_of(60)
    assert parts_of(masked(table).card.laws) > 1
    limited = mw.CorrelatedNoise(NAMES, sd_ratio=0.5, limits=(("A", -9.0, None),))
    assert parts_of(limited.card(table).laws) == 0
    assert parts_of(()) == 0
