"""Weights that a steward learns from the links: the best that Fellegi-Sunter weights (1969) can be.

m_f = (agreements in true pairs + 1/2) / (true pairs + 1), u_f the same in all other pairs. Called by stewards only
(`mw.attacks.supervised_weights`); no intruder and no release uses it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import BadInput, BadPlan
from ...masking import Masking
from ...table import Table
from ..attack_run import attack_by
from .em import Fixed, pattern_bits
from .plan import Linkage

HALF = 0.5  # added to every count, so that a field which always agrees keeps a finite weight


def supervised_weights(plan: Linkage, masking: Masking, *, targets: Table | None = None) -> Fixed:
    """Return m and u as the links say: how often each field agrees in true pairs, and in all others.

    The only function that reads links before an answer. Give the result to a plan as `weights`, to see how much EM
    misses; no outsider has it.
    """
    if not isinstance(plan, Linkage):
        raise BadPlan(f"only Linkage has weights, not {type(plan).__name__}")
    blind = replace(plan, weights=Fixed(), assignment="best")
    _, guess, marks, _ = attack_by(blind, masking, targets)
    rows = np.flatnonzero(marks.counterpart >= 0)
    pattern, comparable = guess.figures["patterns_of"](rows, marks.counterpart[rows])
    if not comparable.any():
        raise BadInput(
            "no target shares a block with its own released record: there is nothing to learn from"
        )
    bits = pattern_bits(len(guess.figures["fields"]))
    counts, true = guess.figures["counts"], np.bincount(pattern[comparable], minlength=len(bits))
    m, u = (_agreement(count, bits) for count in (true, counts - true))
    return Fixed(tuple(m), tuple(u), float(true.sum() / counts.sum()))


def _agreement(counts: Any, bits: Any) -> list[float]:
    shares = (counts @ bits + HALF) / (counts.sum() + 2 * HALF)
    return [float(share) for share in shares]
