"""What a masking says: what leaves unmasked, how it is nested in an earlier release, what was exchanged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..notes import Wording
from .phrases import comma_list, plural


def _clear_columns(*, columns: Iterable[str]) -> str:
    return f"released unmasked: {comma_list(columns)}"


def _unit_columns(*, columns: Iterable[str]) -> str:
    return f"rounded to their units: {comma_list(columns)}"


def _alone_in_block(*, count: int, blocks: Iterable[str]) -> str:
    who = plural(count, "1 record is alone in its", f"{count:,} records are alone in their")
    return f"{who} block ({comma_list(blocks)}): no noise hides {plural(count, 'it', 'them')}"


def _shown_before(*, columns: Iterable[str]) -> str:
    return (
        f"an earlier release showed {comma_list(columns)} in clear: noise hides nothing of its records there"
    )


def _exchange(
    *, records: int, share: float, blocks: Iterable[str], columns: Iterable[str], swaps: int
) -> str:
    within = f"blocks of {comma_list(blocks)}" if blocks else "the whole file"
    return (
        f"{records:,} records ({100 * share:.2g}%) exchanged within {within}: "
        f"{comma_list(columns)} of {swaps:,} pair{'s' if swaps > 1 else ''}"
    )


def two_rates_phrase(rest: Iterable[str], exempt: str | None) -> str:
    """Say what the two rates after an exchange mean, and which of them the tolerance was held against."""
    said = (
        f"his record: the row in which {comma_list(rest)} is the target's; "
        "his values: the row that carries the exchanged ones"
    )
    return f"{said}; the larger counts" if exempt is None else f"{said}, which does not count: {exempt}"


def _links_by_exchange(*, attack: str, tolerance: str, before: float, after: float) -> str:
    links = f"{before:,.1f} correct links before, {after:,.1f} after, ties shared"
    return f"swapped against {attack} ({tolerance}): {links}"


def _rates_after_exchange(*, record: float, values: float, rest: Iterable[str], exempt: str | None) -> str:
    return (
        f"after it {record:.1%} have their record found and {values:.1%} their exchanged values; "
        f"{two_rates_phrase(rest, exempt)}"
    )


def _exchanged_beside(*, columns: Iterable[str]) -> str:
    return (
        "exchanged beside the compared fields, because masked together, adding up or computed from one another: "
        f"{comma_list(columns)}"
    )


def _not_exchanged(*, reasons: Mapping[str, Any]) -> str:
    why = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items())
    return f"could not be exchanged, though linked correctly: {why}"


def _perhaps_computed(*, columns: Iterable[str], sources: Iterable[str]) -> str:
    return (
        f"stayed in the row: {comma_list(columns)}; whether computed from {comma_list(sources)}, whose values "
        "hardly repeat, was tried for smooth functions, classes, sums and ratios alone: drop a column that is computed "
        "otherwise"
    )


def _tolerable_noise(*, sd_ratio: float, r0: float, useful: float | None) -> str:
    more = "" if useful is None else f"; up to c = {useful:g} more would help"
    return f"noise of c = {sd_ratio:.4g}: as much as is tolerable (R0 = {r0:g}){more}"


WORDS: dict[str, Wording] = {
    "masking.unmasked": Wording(_clear_columns, "caution", "columns that leave as they are"),
    "masking.rounded": Wording(
        _unit_columns, "info", "columns without noise that were put on their declared unit"
    ),
    "masking.several_stages": Wording(
        "some columns carry noise of several stages; the card shows the law of their sum",
        "info",
        "noise of a chain or of nested releases",
    ),
    "masking.no_id": Wording(
        "no column identifies the records, so later releases cannot be nested in this one",
        "caution",
        "a file without a column of role id",
    ),
    "masking.alone_in_block": Wording(
        _alone_in_block, "caution", "records that nobody else shares all columns of role block with"
    ),
    "masking.same_plan": Wording(
        "the plan is that of the earlier release, so its noise law is kept",
        "info",
        "a nested release by one plan",
    ),
    "masking.shown_before": Wording(
        _shown_before, "caution", "columns that are masked now and left in clear in an earlier release"
    ),
    "masking.series_kept": Wording(
        "release {number} of the series: {count:,} records keep their earlier noise",
        "info",
        "a nested release",
    ),
    "masking.series_changed": Wording(
        "{count:,} records have changed values and get fresh noise there, and in columns whose noise "
        "is drawn together with it (the same noise would show the change exactly; a value released before gets "
        "the noise it had then); whoever holds both releases sees what did not change in those columns twice",
        "caution",
        "a nested release of records whose values have changed",
    ),
    "masking.series_returned": Wording(
        "{count:,} records return after they were withdrawn",
        "info",
        "records that are back in a nested release",
    ),
    "masking.series_new": Wording("{count:,} records are new", "info", "records that no earlier release had"),
    "masking.series_withdrawn": Wording(
        "{count:,} records were withdrawn; they remain in copies of the earlier release",
        "caution",
        "records that the earlier release had and this one has not",
    ),
    "masking.no_exchange": Wording("no record was exchanged", "info", "a swap that had nothing to do"),
    "masking.exchange": Wording(
        _exchange, "info", "a swap: how many records were exchanged, of which columns"
    ),
    "masking.exchange_links": Wording(
        _links_by_exchange, "info", "correct links of the attack that was swapped against, before and after"
    ),
    "masking.exchange_rates": Wording(
        _rates_after_exchange, "info", "after a swap, the share whose record and whose values are found"
    ),
    "masking.both_tell": Wording(
        "the release as it was before the swaps must not leave as well: the two together show who was exchanged",
        "caution",
        "any swap",
    ),
    "masking.exchanged_beside": Wording(
        _exchanged_beside, "info", "columns that a swap moved with those compared"
    ),
    "masking.not_exchanged": Wording(
        _not_exchanged, "caution", "records at risk for which a swap found no partner, by reason"
    ),
    "masking.perhaps_computed": Wording(
        _perhaps_computed,
        "caution",
        "columns that a swap left in the row and that may be computed from those moved",
    ),
    "masking.tolerable_noise": Wording(
        _tolerable_noise, "info", "the strategy of Kim and Winkler: noise limited by the lowest tolerable R0"
    ),
    "masking.useful_noise": Wording(
        "noise of c = {sd_ratio:g}: more would save at most {epsilon:.1%} of the targets",
        "info",
        "the strategy of Kim and Winkler: noise limited by what more of it would save",
    ),
}
