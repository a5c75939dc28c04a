"""What a steward sees on the screen: one page of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .masking import Masking
from .masking.codebook import describe
from .masking.figures import ColumnFigures, column_figures


def masking_summary(masking: Masking, release: Path, private: Path) -> str:
    """Return the one-screen summary of a masking that was written to two folders."""
    released, records = len(masking.order), len(masking.truth)
    lines = [
        f"{released:,} of {records:,} records released"
        if released != records
        else f"{records:,} records masked"
    ]
    lines += ["", *_masks(masking), "", *_figures(column_figures(masking))]
    lines += ["", *(f"- {note}" for note in masking.notes)] if masking.notes else []
    if masking.card.seeded:
        lines += ["", "The noise comes from a small seed: for studies, not for release."]
    lines += ["", f"may leave:     {release}{'/'} (data, card, schema, codebook, manifest)"]
    lines += [f"stays inside:  {private}{'/'} (key, links, truth; readable by you alone)"]
    return "\n".join(lines)


def _masks(masking: Masking) -> list[str]:
    lines = ["what was done"]
    for law in masking.card.laws:
        same = {describe(law, name) for name in law.columns}
        if len(law.columns) > 1 and len(same) == len(law.columns):
            lines.append(f"  {', '.join(law.columns)}: {_shortened(describe(law, law.columns[0]))}")
        else:
            lines += [f"  {name}: {describe(law, name)}" for name in law.columns]
    for total, parts in masking.card.recomputed:
        lines.append(f"  {total}: recomputed from {', '.join(name for name, _ in parts)}")
    return lines


def _shortened(text: str) -> str:
    """Say what is common to a group of columns; sizes stand in the table of figures."""
    kind, _, rest = text.partition(" noise of sd ")
    correlated = "correlated like the data" if "correlated over" in rest else ""
    return ", ".join(part for part in (f"{kind} noise", correlated) if part)


def _figures(figures: Sequence[ColumnFigures]) -> list[str]:
    if not figures:
        return []
    rows: list[tuple[str, ...]] = [("", "open values", "mean", "after", "sd", "after", "sd of noise")]
    for item in figures:
        numbers = [item.mean, item.mean_after, item.sd, item.sd_after]
        noise = "" if item.noise_sd is None else short(item.noise_sd)
        rows.append((item.column, f"{item.open:,}", *map(short, numbers), noise))
    return text_table(rows)


def short(value: float) -> str:
    """Write a figure with four significant digits and thousands separators."""
    if value != 0 and not 1e-4 <= abs(value) < 1e15:
        return f"{value:.3e}"
    digits = max(0, 3 - len(str(int(abs(value)))) + 1) if value else 0
    return f"{value:,.{digits}f}"


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
