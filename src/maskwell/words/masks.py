"""What a mask says of the noise that it resolved: what was left out, rounded or repaired."""

from __future__ import annotations

from collections.abc import Iterable

from ..notes import Wording
from .phrases import comma_list


def _constant(*, columns: Iterable[str]) -> str:
    return f"left as they are because they are constant: {comma_list(columns)}"


def _mean_moves(*, column: str, sds: float) -> str:
    return (
        f"column {column!r}: its mean is kept up to {sds:.1g} sds of the noise, because "
        "in a file this small a finer offset would give records away"
    )


def _shares_move(*, column: str, share: float) -> str:
    return (
        f"column {column!r}: the shares of its categories are invariant up to {100 * share:.1g}% of the records, "
        "because those in the card are rounded to steps of ten records or more"
    )


WORDS: dict[str, Wording] = {
    "masks.constant": Wording(_constant, "caution", "columns that skip_constant left without noise"),
    "masks.mean_moves": Wording(
        _mean_moves, "caution", "noise that keeps all moments, of which the offset had to be rounded coarsely"
    ),
    "masks.shares_move": Wording(
        _shares_move, "caution", "invariant PRAM by shares that had to be rounded coarsely"
    ),
    "masks.correlations_shrunk": Wording(
        "correlations of the noise shrunk by {share:.0%} to stay consistent with steps of {step:g}",
        "info",
        "correlations on the card that were rounded",
    ),
    "masks.seldom_open_together": Wording(
        "columns {first!r} and {second!r} are too seldom open together: their noise is uncorrelated",
        "caution",
        "two columns without enough records that have both values",
    ),
    "masks.correlations_repaired": Wording(
        "correlations from pairwise-open records were not positive semi-definite (smallest eigenvalue "
        "{eigenvalue:.3g}); repaired to the nearest correlation matrix, moving none by more than {moved:.3f}",
        "caution",
        "correlations of columns with missing values that contradict each other",
    ),
}
