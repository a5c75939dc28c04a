"""Links on ratios of columns: where one factor multiplies a whole record, its ratios leave without noise.

Residuals see that columns share a factor which the card does not name; where it does, or there is no card, links on
ratios are what counts. log |z_j / z_k| = log |x_j / x_k| + log theta_j - log theta_k, which has no noise where theta is
the same for the record (own derivation). Called by `file_checks`.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from ..card import block_numbers
from ..table import Floats
from .evidence import Evidence
from .protocol import CheckFigure

Bools = npt.NDArray[np.bool_]

LOOKED_AT = 4_000  # records that show whether a ratio has less noise than its columns
TARGETS = 500  # records that are looked for by ratios
MOST_COLUMNS, MOST_RATIOS = 30, 6  # looked at in pairs; ratios that links go by
LESS = 0.5  # of the relative noise of either column: a ratio with less than that tells more than the two
LEAST = 50  # records with both values
EXACT = 1e-6  # of a ratio's own spread: differences below it are rounding

Pair = tuple[str, str]


def ratio_links(evidence: Evidence) -> CheckFigure:
    """Measure the share of records that are found by ratios which have much less noise than their columns."""
    columns = list(evidence.numbers)[:MOST_COLUMNS]
    if len(columns) < 2:
        return CheckFigure(
            float("nan"), "fewer than two masked columns are numbers, so that there is no ratio"
        )
    true, released = ({n: _logs(side(n)) for n in columns} for side in (evidence.true, evidence.released))
    quiet = _quiet_pairs(evidence, columns, true, released)
    if not quiet:
        return CheckFigure(
            0.0,
            "no ratio of two masked columns has much less noise than the columns: none is worth a search",
        )
    chosen = _forest(quiet)
    rate, count = _ratio_link_share(evidence, chosen, quiet, true, released)
    listed = ", ".join(f"{a} / {b}" for a, b in chosen)
    said = (
        f"ratios that have less than half of the noise of their columns ({listed}) alone link {rate:.1%} of "
        f"{count:,} records correctly: a factor that a record's columns share cancels"
    )
    figures = {f"{a} / {b}": noise for (a, b), (noise, _) in quiet.items()}
    where = listed if rate > 0 else ""
    return CheckFigure(rate, said, where, figures, count if count < evidence.records else None)


def _logs(values: Floats) -> Floats:
    """Return logs of absolute values; zeros have none."""
    size = np.abs(values)
    return np.asarray(np.log(size, out=np.full(len(size), np.nan), where=size > 0))


def _quiet_pairs(
    evidence: Evidence, columns: list[str], true: dict[str, Floats], released: dict[str, Floats]
) -> dict[Pair, tuple[float, float]]:
    """Return pairs whose ratio has much less noise for its spread than either column: that noise, and its size."""
    rng = np.random.default_rng([evidence.seed, 3])
    count = evidence.records
    few = np.arange(count) if count <= LOOKED_AT else np.sort(rng.choice(count, LOOKED_AT, replace=False))
    x = {name: true[name][few] for name in columns}
    e = {name: released[name][few] - x[name] for name in columns}
    own = {name: _relative(e[name], x[name])[0] for name in columns}
    found = {}
    for a, b in combinations(columns, 2):
        noise, size = _relative(e[a] - e[b], x[a] - x[b])
        if noise < LESS * min(own[a], own[b]):
            found[a, b] = (noise, size)
    return found


def _relative(errors: Floats, values: Floats) -> tuple[float, float]:
    """Return the spread of errors over that of values, by their quartiles, and the errors' own (not below rounding)."""
    both = ~np.isnan(errors) & ~np.isnan(values)
    if both.sum() < LEAST:
        return float("nan"), float("nan")
    of_errors, of_values = (np.subtract(*np.quantile(part[both], (0.75, 0.25))) for part in (errors, values))
    if of_values <= 0:
        return float("nan"), float("nan")
    return float(of_errors / of_values), float(max(of_errors, EXACT * of_values))


def _forest(quiet: dict[Pair, Any]) -> list[Pair]:
    """Return the quietest pairs that say different things: none follows from the others."""
    tree: dict[str, str] = {}

    def root(name: str) -> str:
        while tree.get(name, name) != name:
            name = tree[name]
        return name

    chosen: list[Pair] = []
    for a, b in sorted(quiet, key=lambda pair: quiet[pair][0]):
        if root(a) != root(b) and len(chosen) < MOST_RATIOS:
            tree[root(a)] = root(b)
            chosen.append((a, b))
    return chosen


def _ratio_link_share(
    evidence: Evidence,
    pairs: list[Pair],
    quiet: dict[Pair, tuple[float, float]],
    true: dict[str, Floats],
    released: dict[str, Floats],
) -> tuple[float, int]:
    """Return the share of some records whose nearest released one, by ratios within blocks, is their own."""
    from scipy.spatial import cKDTree

    known, shown = (
        np.column_stack([(side[a] - side[b]) / quiet[a, b][1] for a, b in pairs]) for side in (true, released)
    )
    apart = _blocks(evidence) * (1e3 + 10 * max(_extent(known), _extent(shown)))
    known, shown = np.column_stack([known, apart]), np.column_stack([shown, apart])
    rng = np.random.default_rng([evidence.seed, 4])
    count = evidence.records
    targets = np.arange(count) if count <= TARGETS else np.sort(rng.choice(count, TARGETS, replace=False))
    sought = targets[~np.isnan(known[targets]).any(axis=1)]
    here = np.flatnonzero(~np.isnan(shown).any(axis=1))
    if not len(sought) or not len(here):
        return 0.0, len(targets)
    nearest = cKDTree(shown[here]).query(known[sought])[1]
    return float((here[nearest] == sought).sum() / len(targets)), len(targets)


def _extent(points: Floats) -> float:
    return float(np.nanmax(np.abs(points), initial=0.0))


def _blocks(evidence: Evidence) -> Floats:
    """Number the blocks by columns that leave unmasked and may be known."""
    names = [name for name in evidence.known_blocks if name in evidence.clear]
    return block_numbers(evidence.masking.masked, names)[evidence.rows].astype(np.float64)
