"""A comparison on one screen."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from textwrap import wrap
from typing import TYPE_CHECKING

from ..analysis.corrections.result import figure
from ..words.phrases import text_table

if TYPE_CHECKING:
    from .models import ModelUtility
    from .results import ColumnUtility, Utility

WIDE = 100
MOST_COLUMNS, MOST_COEFFICIENTS = 12, 8


def lines_of(found: Utility) -> list[str]:
    """Return the comparison on one screen: columns, what the figures come to, models."""
    weighted = ", weighted" if found.weighted else ""
    lines = [f"Utility of {found.released:,} released records beside {found.records:,} true ones{weighted}"]
    lines += _numbers([column for column in found.columns if column.is_number])
    lines += _categories([column for column in found.columns if not column.is_number and column.masked])
    lines.append("")
    width = max((len(judgement.verdict) for judgement in found.judgements), default=0)
    for judgement in found.judgements:
        told = f"{judgement.figure}: {judgement.said}" if judgement.said else judgement.figure
        lines += wrap(
            told,
            WIDE,
            initial_indent=f"  {judgement.verdict:<{width}}  ",
            subsequent_indent=" " * (width + 6),
        )
    for model in found.models:
        lines += ["", *_model(model)]
    notes = [f"- {note}" for note in found.notes]
    return [*lines, *(line for note in notes for line in wrap(note, WIDE, subsequent_indent="  "))]


def _numbers(columns: Sequence[ColumnUtility]) -> list[str]:
    """Return a table of the masked numbers; those released as they are only in a count."""
    shown = [column for column in columns if column.masked][:MOST_COLUMNS]
    left = len([column for column in columns if column.masked]) - len(shown)
    lines = []
    if shown:
        head = ("", "open", "mean", "released", "corrected", "sd", "released", "corrected", "KS", "Hellinger")
        rows = [head, *(_row(column) for column in shown)]
        lines += text_table(rows)
        lines += ["  (corrected: the noise taken off, as an analyst who has the card would)"]
    if left:
        lines.append(f"  and {left} more: see .columns")
    same = len(columns) - len(shown) - left
    if same:
        lines.append("  1 number leaves as it is" if same == 1 else f"  {same} numbers leave as they are")
    return lines


def _row(column: ColumnUtility) -> tuple[str, ...]:
    shares = f"{column.open_share:.0%}"
    if abs(column.open_share_after - column.open_share) >= 0.005:
        shares = f"{column.open_share:.0%}>{column.open_share_after:.0%}"
    means = column.mean, column.mean_after, column.mean_corrected
    sds = column.sd, column.sd_after, column.sd_corrected
    name = column.name if len(column.name) <= 16 else f"{column.name[:15]}…"
    distances = _distance(column.ks), _distance(column.hellinger)
    return (name, shares, *map(figure, (*means, *sds)), *distances)


def _distance(value: float) -> str:
    return "-" if isnan(value) else f"{value:.3f}"


def _categories(columns: Sequence[ColumnUtility]) -> list[str]:
    """Return a table of the masked categories."""
    if not columns:
        return []
    rows = [("", "open", "changed", "total variation", "Hellinger")]
    for column in columns[:MOST_COLUMNS]:
        shares = f"{column.open_share_after:.0%}", f"{column.changed:.1%}", f"{column.total_variation:.1%}"
        rows.append((column.name, *shares, _distance(column.hellinger)))
    return text_table(rows)


def _model(model: ModelUtility) -> list[str]:
    """Return a model's coefficients, original, naive and adjusted side by side."""
    head = f"{model.formula} ({model.family}, {model.records:,} records)"
    if not model.names:
        return [head, *wrap(model.refused, WIDE, initial_indent="  ", subsequent_indent="  ")]
    by = f"adjusted by {model.adjusted_by}" if model.adjusted_by else "not adjusted"
    rows: list[tuple[str, ...]] = [("", "original", "se", "as released", "se", "adjusted", "se", "overlap")]
    nothing = (float("nan"),) * len(model.names)
    columns = (
        model.original, model.original_errors, model.naive or nothing, model.naive_errors or nothing,
        model.adjusted or nothing, model.adjusted_errors or nothing,
    )  # fmt: skip
    overlap = model.overlap or nothing
    for i, name in enumerate(model.names[:MOST_COEFFICIENTS]):
        share = "-" if isnan(overlap[i]) else f"{overlap[i]:.2f}"
        rows.append((name[:24], *(figure(values[i]) for values in columns), share))
    lines = [f"{head}, {by}", *text_table(rows)]
    if len(model.names) > MOST_COEFFICIENTS:
        lines.append(f"  and {len(model.names) - MOST_COEFFICIENTS} more: see .models")
    return [
        *lines,
        *(line for note in model.notes for line in wrap(f"- {note}", WIDE, subsequent_indent="  ")),
    ]
