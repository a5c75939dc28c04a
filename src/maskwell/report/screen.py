"""What a steward sees on the screen after masking or an attack: one page of plain text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

from ..masking import Masking
from ..masking.codebook import describe, describe_columns
from ..masking.column_figures import ColumnFigures, column_figures


def masking_summary(masking: Masking, release: Path, private: Path) -> str:
    """Return the one-screen summary of a masking that was written to two folders."""
    released, records = len(masking.order), len(masking.truth)
    lines = [
        f"{released:,} of {records:,} records released"
        if released != records
        else f"{records:,} records masked"
    ]
    figures = _figures(masking, column_figures(masking))
    lines += ["", *_masks(masking), *(["", *figures] if figures else [])]
    lines += ["", *(f"- {note}" for note in masking.notes)] if masking.notes else []
    if masking.card.seeded:
        lines += ["", "The noise comes from a small seed: for studies, not for release."]
    lines += ["", f"may leave:     {release}/ (data, card, schema, codebook, manifest)"]
    lines += [f"stays inside:  {private}/ (key, links, truth; readable by you alone)"]
    return "\n".join(lines)


def _masks(masking: Masking) -> list[str]:
    lines = ["what was done"]
    for law in masking.card.laws:
        common = describe_columns(law) if len(law.columns) > 1 else ""
        if common:
            lines += _wrap_entry(", ".join(law.columns), common)
        else:
            lines += [line for name in law.columns for line in _wrap_entry(name, describe(law, name))]
    for total, parts in masking.card.recomputed:
        lines += _wrap_entry(total, f"recomputed from {', '.join(name for name, _ in parts)}")
    if masking.card.subsampled is not None:
        lines.append(f"  each record released with probability {masking.card.subsampled:g}")
    return lines


def _wrap_entry(names: str, text: str) -> list[str]:
    return wrap(f"{names}: {text}", 100, initial_indent="  ", subsequent_indent="      ")


def _figures(masking: Masking, figures: Sequence[ColumnFigures]) -> list[str]:
    if not figures:
        return []
    rows: list[tuple[str, ...]] = [
        ("", "open values", "mean", "after", "sd", "after", "sd of noise", "clamped", "unchanged")
    ]
    for item in figures:
        numbers = [item.mean, item.mean_after, item.sd, item.sd_after]
        shares = [f"{count / max(item.open, 1):.1%}" for count in (item.clamped, item.unchanged)]
        rows.append(
            (
                " ".join(item.column.split()),
                f"{item.open:,}",
                *map(short, numbers),
                _noise(masking, item),
                *shares,
            )
        )
    clamps = "  clamped: carried by noise to a limit or a code, which moves means and keeps sds down"
    same = "  unchanged: left as they were, because the noise is small against the unit or the ranks"
    said = [clamps] if any(item.clamped for item in figures) else []
    said += [same] if any(item.unchanged > 0.05 * item.open for item in figures) else []
    below = [item.column for item in figures if item.negative]
    if below:
        negative = (
            f"now below zero in places where nothing was: {', '.join(below)}; limits in the plan prevent it"
        )
        said += wrap(negative, 100, initial_indent="  ", subsequent_indent="      ")
    return text_table(rows) + said


def _noise(masking: Masking, item: ColumnFigures) -> str:
    """Say the size of the noise: a figure, that it varies with the value, or that there is none."""
    if item.noise_sd is not None:
        return f"{item.noise_sd:,.6g}" if item.noise_sd else "none"
    law = masking.card.law_of(item.column)
    if law is None:
        return "of parts"
    return "varies" if law.has_density else "none"


def short(value: float) -> str:
    """Write a figure with at least four significant digits and thousands separators; a dash where it is undefined."""
    if math.isnan(value):
        return "-"
    if value == 0:
        return "0"
    if not 1e-4 <= abs(value) < 1e15:
        return f"{value:.3e}"
    return f"{value:,.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"


def text_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align a table: the first column left, the others right."""
    widths = [max(len(row[j]) for row in rows) for j in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            row[0].ljust(widths[0]),
            *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return lines
