"""Figures of the calibration: worst Geweke scores, p-values of ranks, coverage of intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def draw_all(kept: dict[str, Any], folder: Path) -> None:
    """Draw geweke.png, ranks.png and coverage.png into a folder."""
    import matplotlib as mpl

    mpl.use("Agg")
    if kept["geweke"]:
        shown = {name: found["worst"] for name, found in kept["geweke"].items()}
        bound = kept["verdict"]["geweke"]["limit"]
        title = f"Geweke's test: the largest score of each product (limit {bound:.2f} over all)"
        _table(shown, title, folder / "geweke.png", (0.0, 1.2 * bound), "{:.1f}")
    if kept["ranks"]:
        tests = kept["verdict"]["ranks"]["tests"]
        shown = {name: min(1.0, min(found["p"]) * len(found["p"])) for name, found in kept["ranks"].items()}
        title = f"Ranks of true parameters: least chi-square p x parameters of each product ({tests} tests in all)"
        _table(shown, title, folder / "ranks.png", (0.0, 1.0), "{:.2f}")
        _coverage(kept, folder / "coverage.png")


def _table(values: dict[str, float], title: str, path: Path, ends: tuple[float, float], form: str) -> None:
    """Draw a table of products, each cell in the colour of its value."""
    import matplotlib.pyplot as plt

    rows = list(dict.fromkeys(name.split(" x ")[0] for name in values))
    columns = list(dict.fromkeys(name.split(" x ")[1] for name in values))
    cells = np.array([[values.get(f"{row} x {column}", np.nan) for column in columns] for row in rows])
    figure, axes = plt.subplots(figsize=(2 + 0.55 * len(columns), 2 + 0.35 * len(rows)))
    colours = "Reds" if ends[1] > 1 else "Reds_r"
    axes.imshow(cells, cmap=colours, vmin=ends[0], vmax=ends[1], aspect="auto")
    for (row, column), value in np.ndenumerate(cells):
        if np.isfinite(value):
            axes.text(column, row, form.format(value), ha="center", va="center", fontsize=7)
    axes.set_xticks(range(len(columns)), columns, rotation=60, ha="right", fontsize=8)
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.set_title(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)


def _coverage(kept: dict[str, Any], path: Path) -> None:
    """Draw the share of intervals that hold the truth: a point for each parameter of each product, with limits."""
    import matplotlib.pyplot as plt
    from ranks import INTERVALS, binomial_limits

    figure, axes = plt.subplots(1, len(INTERVALS), figsize=(11, 3.4), sharey=False)
    tests = kept["verdict"]["ranks"]["tests"] * len(INTERVALS)
    for panel, level in zip(axes, INTERVALS, strict=True):
        shares, limits = [], (0.0, 1.0)
        for found in kept["ranks"].values():
            files = found["files"]
            shares += [held / files for held in found["held"][str(level)]]
            low, high = binomial_limits(level, files, tests)
            limits = low / files, high / files
        jitter = np.random.default_rng(1).uniform(-0.3, 0.3, len(shares)) * 0.5 / max(files, 1)
        panel.plot(np.arange(len(shares)), np.array(shares) + jitter, ".", markersize=3, color="tab:blue")
        panel.axhline(level, color="black", linewidth=1)
        for end in limits:
            panel.axhline(end, color="tab:red", linewidth=1, linestyle="--")
        panel.set_title(f"{level:.0%} intervals: {np.mean(shares):.1%} hold the truth", fontsize=9)
        panel.set_xlabel("parameters of all products", fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
