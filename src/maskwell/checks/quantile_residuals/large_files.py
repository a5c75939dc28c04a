"""Files too large to be tested whole: stretches of neighbouring records, drawn at random.

Scores are independent whichever records are looked at, as long as released values do not choose them. Stretches keep
neighbours and runs together. What needs no more than one pass over a column is asked of all records before: what a law
cannot give, size, shape and tails of its noise, values left true, and the ends of its own true values. A cluster sample
of stretches (Cochran 1977, chapter 9). Chosen by `battery` beyond MOST_CELLS cells.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..evidence import Evidence
from .cells import Integers, unswapped_table
from .truths import ORIGINAL, PLACES, released_places

# Records x columns of the truth: about half a minute. Of ten columns a class of 1% has 600 records: an sd ratio of .8.
MOST_CELLS = 600_000
STRETCH = 1_000  # neighbouring records that are drawn together


def within_bounds(evidence: Evidence) -> Evidence:
    """Return the evidence, or that of some stretches of a file with too many cells."""
    truth = evidence.masking.truth
    most = MOST_CELLS // max(len(truth.names), 1)
    if len(truth) <= most:
        return evidence
    chosen = _stretches(len(truth), most, evidence.seed)
    masking, rows = evidence.masking, evidence.rows
    part = replace(
        masking,
        truth=truth.take(chosen),
        masked=unswapped_table(evidence).take(chosen),
        kept=None if masking.kept is None else np.flatnonzero(np.isin(chosen, rows)),
        revisions={name: tags[chosen] for name, tags in masking.revisions.items()},
        swapping=None,
        exchange=None,
    )
    reduced = replace(evidence, masking=part, _kept={}, _columns={})
    places = released_places(evidence)[chosen]  # known from the whole file alone
    reduced.once(f"{PLACES} ", lambda: places)
    reduced.once(ORIGINAL, lambda: chosen.astype(np.float64))
    return reduced


def _stretches(records: int, most: int, seed: int) -> Integers:
    """Draw as many whole stretches as there is room for."""
    count = -(-records // STRETCH)
    drawn = np.sort(np.random.default_rng([seed, 17]).permutation(count)[: most // STRETCH])
    chosen = (drawn[:, None] * STRETCH + np.arange(STRETCH)).ravel()
    return np.asarray(chosen[chosen < records], dtype=np.int64)
