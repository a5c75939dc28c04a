"""A card on which recomputed totals have a law of their own: the noise of a sum is the sum of the noises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..card import NoiseCard
from ..laws import Additive, Normal, Outlet
from ..laws.chain import combined_of
from ..laws.noise import sds_and_correlations


def with_totals(card: NoiseCard, wanted: Sequence[str]) -> NoiseCard:
    """Return a card whose laws speak of the wanted totals too, where all their noised parts share one normal law."""
    laws, kept = [combined_of(law) for law in card.laws], list(card.recomputed)
    for total, parts in card.recomputed:
        if total not in wanted:
            continue
        noised = {name for law in laws for name in law.columns} & dict(parts).keys()
        at = [i for i, law in enumerate(laws) if noised and noised <= set(law.columns)]
        if at and (summed := _law_with_total(laws[at[0]], total, dict(parts))) is not None:
            laws[at[0]] = summed
            kept.remove((total, parts))
    return replace(card, laws=tuple(laws), recomputed=tuple(kept))


def _law_with_total(law: object, total: str, parts: Mapping[str, float]) -> Additive | None:
    """Return a law with one column more; nothing where limits, logs or a slope would make the sum another."""
    if not isinstance(law, Additive) or not isinstance(law.noise, Normal) or any(law.spreads):
        return None
    if law.slope != 1.0 or law.categories or any(outlet.log_shift is not None for outlet in law.outlets):
        return None
    turn = np.vstack([np.eye(len(law.columns)), [parts.get(name, 0.0) for name in law.columns]])
    sds, correlations = sds_and_correlations(turn @ law.noise.covariance @ turn.T)
    offsets = turn @ np.array(law.offsets or (0.0,) * len(law.columns))
    return replace(
        law,
        columns=(*law.columns, total),
        noise=Normal(tuple(map(float, sds)), tuple(tuple(map(float, row)) for row in correlations)),
        outlets=(*law.outlets, Outlet()),
        offsets=tuple(map(float, offsets)) if law.offsets else (),
        spreads=(),
    )
