"""Other views of the same scores: their size, their fine structure, and several of them added on a circle.

If u is uniform and independent of the truth, so are

    |2u - 1|            the size of the noise without its sign,
    m u mod 1           where u lies in its part of 1 / m, for m = 10, 100: a code hidden below what a mean shows,
    (u + u') mod 1      of two columns, and (u - u') mod 1: two noises that only together tell something.

Each is a normal score again, so that all sums over classes, trends and bins have their exact laws. Own derivation.
Called by `battery`.
"""

from __future__ import annotations

import numpy as np

from ...table import Floats
from .families import Score

PARTS = (10, 100)  # into which the range of a uniform is cut: beyond, the unit of most columns blurs them
SMALLEST = 1e-16  # what a uniform is at least


def size_view(score: Score) -> Score:
    """Return the normal score of the size of the noise, which does not know its sign."""
    from scipy.special import ndtr, ndtri

    size = -ndtri(np.minimum(2 * ndtr(-np.abs(score.values)), 1 - SMALLEST))
    return Score(f"the size of {score.label}", np.asarray(size), score.column, is_placed=score.is_placed)


def fine_view(score: Score, parts: int) -> Score:
    """Return the normal score of where a uniform lies in its part of the range."""
    label = f"{score.label} in parts of 1/{parts}"
    return _on_circle(label, parts * _uniforms(score), score)


def circle_views(one: Score, other: Score) -> tuple[Score, Score]:
    """Return the scores of the sum and of the difference of two columns' uniforms modulo 1."""
    first, second = _uniforms(one), _uniforms(other)
    label = f"{one.label} {{}} {other.label} modulo 1"
    return _on_circle(label.format("plus"), first + second), _on_circle(label.format("minus"), first - second)


def _uniforms(score: Score) -> Floats:
    from scipy.special import ndtr

    return np.asarray(ndtr(score.values))


def _on_circle(label: str, turns: Floats, of: Score | None = None) -> Score:
    from scipy.special import ndtri

    values = np.asarray(ndtri(np.clip(turns % 1.0, SMALLEST, 1 - SMALLEST)))
    return Score(label, values) if of is None else Score(label, values, of.column, is_placed=of.is_placed)
