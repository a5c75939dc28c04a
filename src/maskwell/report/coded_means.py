"""What codes do to the means of a release, by the release and its card alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..schema import BOTTOM_CODED, TOP_CODED
from .words import and_list

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..masking import Release


def is_cut(outlet: Any) -> bool:
    """Whether noise is cut off at a limit, where the value stays as the limit and is no code."""
    at_low = outlet.low is not None and not outlet.low_coded
    return bool(at_low or (outlet.high is not None and not outlet.high_coded))


def coded_mean_words(release: Release, names: list[str], is_open: bool) -> list[str]:
    """Say of which columns codes leave the largest or smallest values out of the means, and which way these are off.

    That is known where the noise has mean 0 on the scale of the data and no limit cuts it off: by an open card.
    """
    which = {(False, True): "largest", (True, False): "smallest", (True, True): "smallest and largest"}
    off = {"largest": "too low", "smallest": "too high"}
    found: dict[tuple[str, str], list[str]] = {}
    for name in names:
        status = release.table.closed.get(name)
        if status is None or not (ends := which.get(_coded_ends(status), "")):
            continue
        way = off.get(ends, "") if is_open and _moves_no_mean(release.card, name) else ""
        found.setdefault((ends, way), []).append(name)
    said = []
    for (ends, way), columns in found.items():
        means = f"Means of {and_list(columns)} as released"
        coded = f"the {ends} values were coded"
        said.append(
            f"{means} are {way}: {coded}." if way else f"{means} are without a part of the data: {coded}."
        )
    return said


def _coded_ends(status: Any) -> tuple[bool, bool]:
    """Whether some values are coded as smallest, and as largest."""
    return bool((status == BOTTOM_CODED).any()), bool((status == TOP_CODED).any())


def _moves_no_mean(card: NoiseCard, name: str) -> bool:
    """Whether the noise of a column has mean 0 on the scale of the data: no logarithm, no limit that cuts it off."""
    from ..analysis.noise.card_columns import law_of

    law = law_of(card, name)
    if law is None:
        return name not in card.masked
    if not law.outlets:
        return False
    outlet = law.outlets[law.columns.index(name)]
    return outlet.log_shift is None and not is_cut(outlet)
