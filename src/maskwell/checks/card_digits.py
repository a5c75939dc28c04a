"""How many digits the card tells of figures that come from the data: cards of two releases differ by a record.

The fewest digits with |rounded - figure| <= SAME |figure|, of figures that differ between the card of all records and
that of half of them (own derivation: the others are the plan's). Called by `file_checks`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..card import NoiseCard
from ..errors import MaskwellError
from ..laws import Additive, Multiplicative, SkewedBias
from ..laws.chain import combined_of, stages_of
from ..masking import Setting
from ..masks import mask_from_dict
from ..masks.resolve import default_unit
from .evidence import Evidence
from .protocol import CheckFigure

MOST = 17  # digits of a double
SAME = 1e-11  # relative: what sums of squares leave of equal figures


def card_digits(evidence: Evidence) -> CheckFigure:
    """Measure the significant digits of the figures on the card that depend on the records."""
    card = evidence.masking.card
    figures = dict(_figures(card))
    if not figures:
        return CheckFigure(float("nan"), "no figure on the card is a size of noise")
    fixed = _of_the_plan(evidence, figures)
    digits = {name: float(significant(value)) for name, value in figures.items() if name not in fixed}
    if not digits:
        return CheckFigure(0.0, "every size on the card is the plan's own: nothing of the data is in them")
    worst = max(digits, key=digits.__getitem__)
    said = (
        f"figures on the card that were computed from the records have up to {digits[worst]:.0f} significant digits "
        f"({worst}); the cards of two releases, before and after one withdrawal, would tell that record with them"
        if digits[worst] > 2
        else f"figures on the card that come from the records have at most {digits[worst]:.0f} significant digits"
    )
    return CheckFigure(digits[worst], said, worst if digits[worst] > 2 else "", digits)


def significant(value: float) -> int:
    """Return the fewest significant digits that write a figure (nearly: equal up to rounding of its computation)."""
    if value == 0 or not np.isfinite(value):
        return 0
    return next(
        (d for d in range(1, MOST) if abs(float(f"{value:.{d - 1}e}") - value) <= SAME * abs(value)), MOST
    )


def _figures(card: NoiseCard) -> Iterator[tuple[str, float]]:
    """Return the sizes, correlations and offsets on a card.

    Noise of several stages is told by its sum, or by its stages where these have fewer digits: the sum of two
    rounded variances, or what is left between two releases, has digits of its own that tell nothing new.
    """
    for law in card.laws:
        stages = stages_of(law)
        ways = [list(_of_law(combined_of(law)))]
        if len(stages) > 1:
            ways.append(
                [
                    (f"{name}, stage {i}", value)
                    for i, (_, one) in enumerate(stages, 1)
                    for name, value in _of_law(one)
                ]
            )
        yield from min(ways, key=lambda figures: max((significant(value) for _, value in figures), default=0))


def _of_law(law: Any) -> Iterator[tuple[str, float]]:
    if isinstance(law, SkewedBias):
        yield from ((f"sd of {name}", sd) for name, sd in zip(law.columns, law.sds, strict=True))
    elif isinstance(law, Additive):
        yield from _of_noise(law)


def _of_noise(law: Additive) -> Iterator[tuple[str, float]]:
    noise: Any = law.noise
    names = law.columns
    if noise.form == "mixture":
        weights = np.array(noise.weights)
        for name, means, sds in zip(names, noise.means, noise.sds, strict=True):
            centred = np.array(means) - weights @ np.array(means)
            yield f"sd between components of {name}", float(np.sqrt(weights @ centred**2))
            yield f"sd of {name}", float(sds[0])
    else:
        yield from ((f"sd of {n}", float(sd)) for n, sd in zip(names, noise.sds, strict=False))
    for name, spread in zip(names, law.spreads, strict=False):
        if isinstance(spread, Multiplicative):
            yield f"additive sd of {name}", float(spread.sd)
    yield from _correlations(noise.correlations, names)
    yield from _offsets(law)


def _correlations(matrix: Sequence[Sequence[float]], names: Sequence[str]) -> Iterator[tuple[str, float]]:
    for i, row in enumerate(matrix):
        for j in range(i):
            yield f"correlation of {names[i]} and {names[j]}", float(row[j])


def _offsets(law: Additive) -> Iterator[tuple[str, float]]:
    """Return offsets that are finer than the noise's own unit; on that grid they were rounded so as to hide records."""
    sds = np.sqrt(np.diag(law.noise.covariance))
    for name, offset, sd in zip(law.columns, law.offsets, sds, strict=False):
        steps = offset / float(default_unit(sd)) if sd > 0 else offset
        if abs(steps - round(steps)) > 1e-6:
            yield f"offset of {name}", float(offset)


def _of_the_plan(evidence: Evidence, figures: dict[str, float]) -> set[str]:
    """Return the figures that are, in full, the same for half of the records: nothing of the data is in them."""
    whole, half = (None if card is None else dict(_figures(card)) for card in exact_cards(evidence))
    if whole is None or half is None:
        return set()
    return {name for name in figures if name in whole and whole[name] == half.get(name)}


def exact_cards(evidence: Evidence) -> tuple[NoiseCard | None, NoiseCard | None]:
    """Return the card in full precision, of all records and of half of them; nothing where no plan makes one.

    Rounded figures of the two are often the same by accident, full ones only where nothing of the data is in them.
    """
    return evidence.once("exact cards", lambda: (_exact(evidence, False), _exact(evidence, True)))


def _exact(evidence: Evidence, is_half: bool) -> NoiseCard | None:
    masking = evidence.masking
    mask = (
        mask_from_dict(masking.mask) if isinstance(masking.mask, Mapping) else masking.mask
    )  # read from disk
    if mask is None:
        return None
    table = masking.truth
    if is_half:
        half = np.sort(np.random.default_rng([evidence.seed, 5]).permutation(len(table))[::2])
        table = table.take(half if len(half) <= evidence.largest else half[: evidence.largest])
    try:
        card: NoiseCard = mask.card(table, Setting(exact=True))
    except MaskwellError:
        return None
    return card
