"""What an audit says beside its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..notes import Note, Wording
from .phrases import count_phrase, text_of_names


def sample_size(checks: int, looked_at: int, records: int) -> str:
    """Say how many checks looked at a part of the records."""
    return f"{count_phrase(checks, 'check')} looked at {looked_at:,} of {records:,} released records"


def power(tests: int, records: int | None, seen: Sequence[Mapping[str, Any]]) -> str:
    """Say how many tests were made, and what would have been seen in classes of some sizes."""
    looked_at = "" if records is None else f" in {records:,} of the records"
    said = f"residuals: {tests:,} tests against the card{looked_at}, figures are p-values (1 is no sign)"
    shown = (
        f"in a class of {one['records']:,} records noise of {one['sd_ratio']:.2f} times its sd, or off centre by "
        f"{one['mean_over_sd']:.2g} of them"
        for one in seen
    )
    return f"{said}; what would have been seen: {'; '.join(shown)}" if seen else said


def few_records(seen: Sequence[Mapping[str, Any]]) -> str:
    """Say how many records with hardly any noise would have been seen."""
    shown = " or ".join(f"{one['records']:,} records with {one['share']:.1%} of their noise" for one in seen)
    return (
        f"in one column alone, where its unit is fine beside the noise, {shown} would have been seen in about half of "
        "all cases, whoever they are; of fewer this cannot tell"
    )


def columns_left_out(columns: Mapping[str, Note]) -> str:
    """Name the columns whose residuals were not tested, and why."""
    return f"residuals not tested: {'; '.join(f'{name} ({why})' for name, why in columns.items())}"


def coarse_units(columns: Sequence[str]) -> str:
    """Name the columns whose units are too coarse for residuals given the columns before."""
    return f"the unit of {' and of '.join(columns)} is coarse beside the noise that other columns leave"


# Why the residuals of a column were not tested; they stand in other notes.
REASONS = {
    "checks.is_total": Wording(
        "a total: it must be the sum of its released parts", "info", "a column is computed anew from others"
    ),
    "checks.no_law": Wording("the card has no law for it", "info", "a column has no law on the card"),
    "checks.no_density": Wording("a {form} has no density", "info", "a law has no density"),
    "checks.no_distribution": Wording(
        "no distribution function is known of its law", "info", "a law has no distribution function"
    ),
    "checks.no_noise": Wording("none of its cells carries noise", "info", "a law gives noise to no cell"),
    "checks.other_categories": Wording(
        "its categories are not those of the card", "caution", "a table on the card is of other categories"
    ),
    "checks.other_categories_before": Wording(
        "its categories are others than in the earlier release",
        "caution",
        "a nested release has other categories than the earlier one",
    ),
    "checks.table_without_chance": Wording(
        "nothing in its table is random", "info", "a table changes categories without chance"
    ),
    "checks.classes_without_chance": Wording("classes are not random", "info", "amounts leave as classes"),
    "checks.other_noise_added": Wording(
        "what was added to its earlier noise is no normal noise of one size",
        "info",
        "a nested release has noise that is not normal",
    ),
    "checks.coarse_units": Wording(coarse_units, "info", "units are coarse beside noise given other columns"),
    "checks.no_full_rank": Wording(
        "its noise has no full rank, or too many components to be listed",
        "info",
        "correlated noise cannot be whitened",
    ),
}

WORDS: dict[str, Wording] = REASONS | {
    "checks.sampled": Wording(sample_size, "info", "heavy checks looked at a part of the records"),
    "checks.power": Wording(power, "info", "residuals were tested: what their tests could have seen"),
    "checks.few_records": Wording(
        few_records, "info", "residuals were tested: how many unprotected records they could have seen"
    ),
    "checks.residues": Wording(
        "residues modulo {moduli:,} numbers were looked at in {records:,} records: one kept in {share:.0%} of them "
        "would have been seen",
        "info",
        "last digits were tested for residues that are kept",
    ),
    "checks.residue_functions": Wording(
        "whatever the residues of one true column (modulo up to {one:,}), of two ({two:,}) or of three ({three:,}) "
        "tell of a released one was looked for in up to {records:,} records, drawn at random",
        "info",
        "last digits were tested for functions of true values",
    ),
    "checks.not_seen": Wording(
        "residuals cannot show noise whose sign or size follows a secret key, nor little noise in one column of a few "
        "records that nothing else singles out",
        "info",
        "residuals were tested: what no test of them can see",
    ),
    "checks.untested": Wording(
        columns_left_out, "caution", "masked columns have no residuals that could be tested"
    ),
    "checks.tested_one_by_one": Wording(
        text_of_names("residuals of {columns} tested column by column, not together: {why}"),
        "caution",
        "residuals of correlated noise could not be made independent",
    ),
    "checks.cells_drawn": Wording(
        "residuals of {column}: {drawn:,} of {cells:,} cells looked at, drawn at random (each takes an integral)",
        "info",
        "residuals are integrals, and some of them were drawn",
    ),
    "checks.not_continued": Wording(
        "residuals of {column} not tested given the earlier release: {why}",
        "caution",
        "a nested release could not be held against the earlier one",
    ),
}
