"""What the paper states in words, and what is misprinted or not reproduced, held against our figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import sqrt

import numpy as np

from ...table import Floats
from ..results import BETWEEN, expected
from .binary import exact
from .chances import Figures, errors, z_score, z_scores
from .farms import NOISES, QUANTILES
from .simulation import EUCLID, EXPECTED, INVERSE, OMEGA, POSTERIOR

MISPRINTED, MEANT = "pr(h = 0), N 1,000, noise 0.4 | covariance 0.3", 0.10
ENOUGH_H, SMALL_SHARE = 3.0, 0.1  # section 2: E(h) of about 3, or pr(h < 3) below 0.1
MATERIAL = 5.0  # points: what we call material, where it is clearly (two standard errors) more than this
SMALL = 0.15  # what we call a small effect on a probability


def notes(figures: Mapping[str, Figures]) -> list[str]:
    """Return the statements that can be checked with the tables that were run."""
    told = [
        text
        for name, checks in STATEMENTS.items()
        if name in figures
        for check in checks
        for text in check(figures[name])
    ]
    return list(dict.fromkeys([*told, *_of_both(figures)]))


def _verdict(statement: str, holds: bool, found: str) -> str:
    return f"the paper: {statement}. {'It holds' if holds else 'It does not hold'} here: {found}."


def _mean(figures: Figures, row: str, column: str) -> float:
    return float(np.mean(figures[f"{row}{BETWEEN}{column}"]))


def _column(figures: Figures, column: str) -> dict[str, Floats]:
    """Return the values of a column by row."""
    parts = {cell.partition(BETWEEN)[::2]: values for cell, values in figures.items()}
    return {row: values for (row, name), values in parts.items() if name == column}


def _list(values: Iterable[float], digits: int = 2) -> str:
    return ", ".join(f"{round(value, digits) + 0.0:.{digits}f}" for value in values)  # no -0.0


# Agreement by z.


def _agreement(name: str) -> Callable[[Figures], list[str]]:
    def told(figures: Figures) -> list[str]:
        scores = {cell: z for cell, z in z_scores(name, figures).items() if _varies(figures[cell])}
        if not scores:
            return []
        most = max(scores, key=lambda cell: abs(scores[cell]))
        near = [z * z for z in scores.values() if abs(z) <= errors().largest_z]
        return [
            f"table {name}: {len(near)} of {len(scores)} cells have |z| of at most {errors().largest_z:g}; the largest "
            f"is {scores[most]:+.1f} ({most.replace(BETWEEN, ', ')}); the root mean square of the {len(near)} is "
            f"{sqrt(sum(near) / max(len(near), 1)):.2f}, where chance gives about 1"
        ]

    return told


def _varies(values: Floats) -> bool:
    """Whether a figure is simulated at all: that of the last row of table 1 is 100 by definition."""
    return float(np.min(values)) < float(np.max(values))


def _not_found(figures: Figures) -> list[str]:
    wrong = [100 - float(np.mean(v)) for cell, v in figures.items() if cell.startswith(f"h 0{BETWEEN}")]
    return [
        _verdict(
            "in more than 40% of the cases the nearest record is not the true one",
            min(wrong) > 40,
            f"in {min(wrong):.0f} to {max(wrong):.0f}% by decile, so that as many as {100 - min(wrong):.0f}% are found",
        )
    ]


def _misprint(figures: Figures) -> list[str]:
    values = figures[MISPRINTED]
    printed = expected("goldstein")["2"].published(MISPRINTED)
    return [
        f"misprint in table 2: {printed:g} should be {MEANT:.2f} ({MISPRINTED.replace(BETWEEN, ', ')}): ours is "
        f"{np.mean(values):.3f}, z {z_score(MEANT, values):+.1f} instead of {z_score(printed or 0.0, values):+.1f}"
    ]


def _lone_cell(figures: Figures) -> list[str]:
    rows = {
        rho: figures[f"pr(h > 5), N 5,000, noise 0.1{BETWEEN}covariance {rho:g}"] for rho in (0.1, 0.2, 0.3)
    }
    table = expected("goldstein")["2"]
    printed = [table.published(f"pr(h > 5), N 5,000, noise 0.1{BETWEEN}covariance {rho:g}") for rho in rows]
    return [
        f"table 2, N 5,000, noise 0.1: at covariances {_list(rows, 1)} the paper prints "
        f"{_list(p or 0.0 for p in printed)}, we find {_list(float(np.mean(v)) for v in rows.values())}. The second "
        f"(z {z_score(printed[1] or 0.0, rows[0.2]):+.1f}) breaks its own row: not reproduced, or an unlucky draw"
    ]


# Distances and knowledge.


def _apart(figures: Figures, one: str, other: str, rows: str) -> tuple[float, float]:
    """Return the mean of one column less another over the rows that end so, and its paired standard error."""
    ours, theirs = _column(figures, one), _column(figures, other)
    gaps = np.mean([ours[row] - theirs[row] for row in ours if row.endswith(rows)], axis=0)
    return float(gaps.mean()), float(gaps.std(ddof=1) / sqrt(len(gaps))) if len(gaps) > 1 else 0.0


def _weights(figures: Figures) -> list[str]:
    gaps = {name: _apart(figures, name, EUCLID, "h 0") for name in (OMEGA, INVERSE)}
    told = "; ".join(
        f"{name} less Euclid is {gap:+.1f} points at h = 0 on average (standard error {error:.1f})"
        for name, (gap, error) in gaps.items()
    )
    (gap, error), _ = gaps.values()
    return [_verdict("W = Omega gives essentially similar results", abs(gap) - 2 * error <= MATERIAL, told)]


def _small_increase(figures: Figures) -> list[str]:
    found, error = _apart(figures, EXPECTED, EUCLID, "h 0")
    near, _ = _apart(figures, EXPECTED, EUCLID, "h 5")
    informed, _ = _apart(figures, POSTERIOR, EUCLID, "h 0")
    return [
        _verdict(
            "knowing the noise gives generally small increases",
            max(found, near) - 2 * error <= MATERIAL,
            f"E(y|z) less Euclid is {found:+.1f} points at h = 0 (standard error {error:.1f}), {near:+.1f} at h <= 5, "
            f"posterior less Euclid {informed:+.1f} at h = 0, for five weakly correlated identifiers",
        )
    ]


def _knowledge(figures: Figures) -> list[str]:
    plain, informed = _column(figures, EUCLID), _column(figures, POSTERIOR)
    gains = {row: float(np.mean(informed[row]) - np.mean(plain[row])) for row in plain}
    row = max(gains, key=gains.__getitem__)
    return [
        _verdict(
            "access to the noise parameters does not materially improve the probability of disclosure (section 9)",
            max(gains.values()) <= MATERIAL,
            f"with {row} the informed intruder finds {np.mean(informed[row]):.0f}% where Euclid finds "
            f"{np.mean(plain[row]):.0f}%; the gains are {_list(gains.values(), 1)} points in the order of the table",
        )
    ]


# The statements of section 4.


def _larger(figures: Figures) -> list[str]:
    rows = [f"N {count}, decile 10" for count in ("1,000", "5,000", "10,000")]
    found = [_mean(figures, row, "pr(h = 0)") for row in rows]
    return [
        _verdict(
            "protection increases with the size of the file",
            found == sorted(found, reverse=True),
            f"pr(h = 0) is {_list(found)} for 1,000, 5,000 and 10,000 records",
        )
    ]


def _identifiers(figures: Figures) -> list[str]:
    five, ten = (_column(figures, name) for name in dict.fromkeys(c.partition(BETWEEN)[2] for c in figures))
    gaps = {row: float(np.mean(ten[row]) - np.mean(five[row])) for row in five}
    told = _list(gaps.values(), 1)
    return [
        _verdict(
            "10 identifiers with noise 0.34 have about the distribution of h of 5 with noise 0.1",
            max(map(abs, gaps.values())) <= MATERIAL,
            f"ten less five are {told} points at {', '.join(gaps)}: alike near h = 0 only, and large h "
            "are more frequent with ten",
        )
    ]


def _covariance(figures: Figures) -> list[str]:
    found, far = (
        [float(np.mean(v)) for v in _column(figures, name).values()] for name in ("pr(h = 0)", "pr(h > 5)")
    )
    scores = z_scores("covariance", figures).values()
    word = "not reproduced" if max(map(abs, scores)) > errors().largest_z else "too few files to say"
    return [
        _verdict(
            "covariances from 0.1 to 0.5 have only a small effect, smaller ones with a slightly higher risk",
            0 < found[0] - found[-1] <= SMALL,
            f"pr(h = 0) is {_list(found)} at the 5th percentile, pr(h > 5) {_list(far)}",
        ),
        f"pr(h = 0) at the 5th percentile for covariances 0.1 and 0.5: the paper has {_list(_said())}, we find "
        f"{found[0]:.2f} and {found[-1]:.2f} (z {_list(scores, 1)}), {word}. Farther out more are found than at the "
        "lowest decile, where table 2 has 0.56 and 0.45",
    ]


def _said() -> list[float]:
    table = expected("goldstein")["covariance"]
    return [table.published(cell) or 0.0 for cell in table.cells]


def _expectation(figures: Figures) -> list[str]:
    mean, found, near = (_column(figures, name) for name in ("E(h)", "pr(h = 0)", "pr(h < 3)"))
    first = next((row for row in mean if np.mean(mean[row]) >= ENOUGH_H), None)
    small = next((row for row in near if np.mean(near[row]) < SMALL_SHARE), None)
    told = []
    if first is not None:
        told.append(
            f"section 2 suggests E(h) of 3 as enough: it holds from {first} on (E(h) = {np.mean(mean[first]):.1f}), "
            f"where {np.mean(found[first]):.0%} of the targets are found"
        )
    if small is not None:
        told.append(f"pr(h < 3) falls below 0.1 only from {small} on, of those tried")
    return told


# Section 5 and the farms.


def _binary(figures: Figures) -> list[str]:
    correct = list(exact().values())[-1]
    return [
        f"of those identified {correct:.4f} are correct, exactly (0.1/0.19)^3: the share that is really like the "
        "target of those who look like it. The person himself is one of them only where he is in the file"
    ]


def _of_both(figures: Mapping[str, Figures]) -> list[str]:
    """Compare correlated and independent noise on the farms."""
    if not {"7a", "7b"} <= figures.keys():
        return []
    told = []
    for noise in NOISES:
        gaps = [_gap(figures, f"quantile {share * 100:.0f}", f"{noise:.0%} noise") for share in QUANTILES]
        told.append((noise, [h for h, _ in gaps], [p for _, p in gaps]))
    h_larger = all(np.mean(h) > 0 for _, h, _ in told)
    similar = max(abs(p) for _, _, gaps in told for p in gaps) <= SMALL
    return [
        _verdict(
            "h tends to be greater for correlated noise",
            h_larger,
            "; ".join(
                f"correlated less independent at {n:.0%}: {_list(h, 1)} by quantile" for n, h, _ in told
            ),
        ),
        _verdict(
            "pr(h = 0) is quite similar for correlated and independent noise",
            similar,
            "; ".join(f"correlated less independent at {n:.0%}: {_list(p)} by quantile" for n, _, p in told),
        ),
    ]


def _gap(figures: Mapping[str, Figures], row: str, noise: str) -> tuple[float, float]:
    h, zero = (
        _mean(figures["7a"], row, f"{name}, {noise}") - _mean(figures["7b"], row, f"{name}, {noise}")
        for name in ("h", "pr(h = 0)")
    )
    return h, zero


def _tail(figures: Figures) -> list[str]:
    shares = [_mean(figures, f"quantile {share * 100:.0f}", "pr(h = 0), 17% noise") for share in QUANTILES]
    return [
        _verdict(
            "records are protected except in the far right tail",
            shares[-1] == max(shares),
            f"pr(h = 0) at 17% noise is {_list(shares)} at the five quantiles; the paper's tail is longer than ours",
        )
    ]


def _farms_informed(figures: Figures) -> list[str]:
    told = [
        f"{_list(float(np.mean(v)) for v in _column(figures, f'{name} {noise:.0%}').values())} ({name}, {noise:.0%})"
        for noise in NOISES
        for name in ("correlated", "independent")
    ]
    return [
        "an intruder who knows the noise finds, by quantile, "
        + "; ".join(told)
        + ": correlated noise, under which Euclidean h is larger, protects less from him"
    ]


STATEMENTS: dict[str, tuple[Callable[[Figures], list[str]], ...]] = {
    "1": (_agreement("1"), _not_found),
    "1-z": (_agreement("1"),),
    "weighted": (_weights,),
    "sizes": (_larger,),
    "2": (_agreement("2"), _misprint, _lone_cell),
    "2-z": (_agreement("2"), _misprint, _lone_cell),
    "3": (_agreement("3"),),
    "3-z": (_agreement("3"),),
    "informed": (_small_increase,),
    "knowledge": (_knowledge,),
    "identifiers": (_identifiers,),
    "covariance": (_covariance,),
    "expectation": (_expectation,),
    "binary": (_binary,),
    "7a": (_tail,),
    "7-informed": (_farms_informed,),
}
