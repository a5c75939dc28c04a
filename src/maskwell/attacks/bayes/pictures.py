"""The picture of what an intruder believes: what he claims at each threshold, and whether his probabilities hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

import numpy as np

from ...figure_style import BLUE, GREY, INK, ORANGE, check_picture, label, panels, save, spread_out, title
from ...words.phrases import count_phrase

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .belief import Belief

POINTS = 201  # thresholds along the curve
WIDTH = 52  # letters in a line of a title
SMALL, LARGE = 2.5, 9.0  # marker sizes: a bin of few links, and of most


def draw_belief(belief: Belief, path: str | Path) -> Path:
    """Draw links claimed and correct at each threshold, and what he says against what comes true."""
    check_picture(path)
    return save(belief_picture(belief), path)


def belief_picture(belief: Belief) -> Figure:
    """Return the two panels."""
    figure, (left, right) = panels(2, width=4.6, height=3.8, share_y=False)
    _draw_curve(left, belief)
    _draw_bins(right, belief)
    return figure


def _draw_curve(axes: Axes, belief: Belief) -> None:
    """Draw how many links he claims above each threshold, and how many of them are correct."""
    reach = _reach([*belief.probability[~np.isnan(belief.probability)], belief.threshold])
    curve = belief.curve(np.linspace(0.0, reach, POINTS).tolist())
    at, links, correct = (np.asarray(curve[name]) for name in ("threshold", "links", "correct"))
    axes.fill_between(at, correct, links, step="post", color=BLUE, alpha=0.08, lw=0)
    axes.step(at, links, where="post", color=BLUE, lw=1.5)
    axes.step(at, correct, where="post", color=ORANGE, lw=1.5)
    top = max(float(links.max(initial=0)), 1.0)
    axes.set_ylim(0, 1.08 * top)
    axes.yaxis.set_major_formatter("{x:,.0f}" if top >= 10 else "{x:g}")
    axes.set_xlim(0, reach)
    _name_lines(axes, (float(correct[-2]), float(links[-2])), (reach, top))
    if belief.threshold > 0:
        axes.axvline(belief.threshold, color=GREY, lw=1, ls="--")
        label(axes, (belief.threshold, 0.55 * top), "his threshold", GREY)
    axes.set_xlabel("claims a link above this probability", fontsize=9, color=INK)
    axes.set_ylabel("links", fontsize=9, color=INK)
    title(axes, f"{count_phrase(belief.targets, 'target')}, {belief.links:,} with a best link")


def _reach(shares: Sequence[float]) -> float:
    """Return how far an axis of probabilities must reach."""
    return min(1.0, 1.1 * max(shares, default=0.0) or 1.0)


def _name_lines(axes: Axes, ends: tuple[float, float], corner: tuple[float, float]) -> None:
    """Write what the two lines are at the right, near the heights at which they end."""
    heights = spread_out(ends, 0.07 * corner[1])
    for height, words, color in zip(heights, ("correct", "claimed"), (ORANGE, BLUE), strict=True):
        label(axes, (corner[0], height), words, color)


def _draw_bins(axes: Axes, belief: Belief) -> None:
    """Draw in what share he is right where he says what he says; on the diagonal he is as sure as he should be."""
    bins = belief.calibration.bins
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls="--", zorder=1)
    most = max((one.links for one in bins), default=1)
    for one in bins:
        size = SMALL + (LARGE - SMALL) * np.sqrt(one.links / most)
        axes.plot([one.said, one.said], one.interval, color=BLUE, lw=1, alpha=0.7, zorder=2)
        axes.plot([one.said], [one.right], "o", color=BLUE, ms=size, alpha=0.85, zorder=3, clip_on=False)
    reach = _reach([share for one in bins for share in (one.said, one.interval[1])])
    axes.set(xlim=(0, reach), ylim=(0, reach))
    axes.set_aspect("equal")
    axes.set_xlabel("probability he gives his best link", fontsize=9, color=INK)
    axes.set_ylabel("share of these that are right", fontsize=9, color=INK)
    title(axes, fill(belief.calibration.sentence, WIDTH))
