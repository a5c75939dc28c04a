"""The codebook that goes with a release: what each column is and what was done to it, in words."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ..card import SwapParameters
from ..laws import Additive, Classes, Multiplicative, Outlet, RankSwapped, SkewedBias, Transition
from ..laws.chain import combined_of
from ..schema import Column
from .results import Release

_LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


def codebook(release: Release) -> str:
    """Return the codebook as Markdown."""
    schema, card = release.table.schema, release.card
    lines = ["# Codebook", "", f"{len(release):,} records, {len(schema.columns)} columns."]
    if card.seeded:
        lines += ["", "**Made with a small seed for a study: not for release.**"]
    if card.subsampled is not None:
        lines += [
            "",
            f"The records are a random sample: each was released with probability {card.subsampled:g}.",
        ]
    if card.swapped is not None:
        lines += ["", cell(_swap_sentence(card.swapped))]
    lines += ["", "| column | what it is | codes | masking |", "|---|---|---|---|"]
    for column in schema.columns:
        cells = (column.name, what_it_is(column), codes_of(column), _masking_text(release, column))
        lines.append("| " + " | ".join(cell(text) for text in cells) + " |")
    for column in schema.columns:
        lines += label_lines(column) or category_lines(release, column)
    return "\n".join([*lines, *spreadsheet_lines(release), *_advice(release)]) + "\n"


def spreadsheet_lines(release: Release) -> list[str]:
    """Say which columns a spreadsheet would take for formulas, where there are any."""
    from ..io.spreadsheets import formula_warning

    said = formula_warning(release.table)
    return ["", "## In a spreadsheet", "", f"{cell(str(said))}."] if said else []


def _swap_sentence(swapped: SwapParameters) -> str:
    blocks = f"their block ({', '.join(swapped.blocks)})" if swapped.blocks else "them"
    said = ", ".join(swapped.columns)
    return f"{100 * swapped.share:.3g}% of the records had {said} exchanged with another of {blocks}."


def cell(text: str) -> str:
    """Return a text as it stands in a cell of a Markdown table: one line, no markup and no HTML of its own."""
    plain = " ".join(text.split()) if any(sign in text for sign in _LINE_ENDS) else text
    escaped = escape(plain, quote=False)
    return escaped.replace("\\", "\\\\").replace("|", "\\|").replace("[", "\\[").replace("`", "\\`")


def what_it_is(column: Column) -> str:
    """Say what a column holds: its description, kind and unit."""
    unit = "" if column.step is None else f" in steps of {float(column.step):g}"
    kind = {
        "continuous": f"number{unit}",
        "integer": f"whole number{unit}",
        "category": "category",
        "text": "text",
    }
    said = f"{column.description}: " if column.description else ""
    return said + kind[column.kind]


def codes_of(column: Column) -> str:
    """Say which codes a column has for ends and for what is missing."""
    said = []
    if column.top is not None:
        said.append(f"{column.top:.12g}: this much or more")
    if column.bottom is not None:
        said.append(f"{column.bottom:.12g}: this much or less")
    said += [f"{code}: missing" for code in column.missing]
    return "; ".join(said)


def label_lines(column: Column) -> list[str]:
    """List the labels of a column's codes."""
    if not column.labels:
        return []
    rows = [f"| {cell(code)} | {cell(label)} |" for code, label in column.labels]
    return ["", f"## {cell(column.name)}", "", "| code | label |", "|---|---|", *rows]


def category_lines(release: Release, column: Column) -> list[str]:
    """List categories: as they are, or by the codes 0, 1, ... to which noise was added."""
    law = combined_of(release.card.law_of(column.name))
    if isinstance(law, Additive) and law.categories and column.kind != "category":
        names = law.categories[law.columns.index(column.name)]
        rows = [f"| {i} | {cell(name)} |" for i, name in enumerate(names)]
        return ["", f"## {cell(column.name)}", "", "| code before the noise | category |", "|---|---|", *rows]
    if not column.categories or "group" in column.roles:
        return []
    return ["", f"## {cell(column.name)}", "", "Categories: " + ", ".join(map(cell, column.categories)) + "."]


def _masking_text(release: Release, column: Column) -> str:
    if "id" in column.roles:
        return "new random ids"
    if "group" in column.roles:
        return "groups numbered anew"
    swapped, said = release.card.swapped, _noise(release, column)
    if swapped is None or column.name not in swapped.columns:
        return said
    return f"{said}; {100 * swapped.share:.3g}% of the values exchanged"


def _noise(release: Release, column: Column) -> str:
    sums = dict(release.card.recomputed)
    if column.name in sums:
        parts = " + ".join(n if c == 1 else f"{c:g} {n}" for n, c in sums[column.name])
        return f"recomputed as {parts}"
    law = release.card.law_of(column.name)
    return "as collected" if law is None else describe(law, column.name)


def describe(law: Any, name: str) -> str:
    """Say in words what a law does to a column."""
    law = combined_of(law)
    if isinstance(law, Additive):
        return _additive(law, law.columns.index(name))
    if isinstance(law, SkewedBias):
        j = law.columns.index(name)
        said = f"multiplied by lognormal noise (mean 1, sd {law.bias_sd:g}), plus normal noise of sd {law.sds[j]:g}"
        return ", ".join([said, *_limits(law.outlets[j])])
    if isinstance(law, Transition):
        stay = float(np.mean(np.diag(law.matrix))) if law.true == law.released_as else None
        return (
            "grouped" if stay is None else f"changed at random (stays with probability {stay:.2f} on average)"
        )
    if isinstance(law, Classes):
        return "released as classes"
    if isinstance(law, RankSwapped):
        return f"exchanged with values at most {law.window_ratio:.1%} of ranks away"
    return f"masked by {law.form}"


def describe_columns(law: Any) -> str:
    """Say in words what noise does to all columns of a law, without its sizes; nothing where there is no noise."""
    law = combined_of(law)
    if isinstance(law, SkewedBias):
        return f"multiplied by lognormal noise (mean 1, sd {law.bias_sd:g}), plus normal noise"
    if not isinstance(law, Additive) or not np.all(np.diag(law.noise.covariance)):
        return ""
    spread = law.spreads[0] if law.spreads else None
    parts = [f"{_noise_phrase(law, spread)}"]
    parts += ["correlated like the data"] if _is_correlated(law) else []
    parts += ["on the log scale"] if law.outlets[0].log_shift is not None else []
    is_function = spread is not None and not isinstance(spread, Multiplicative)
    return ", ".join([*parts, *(["times a function of the value"] if is_function else [])])


def _noise_phrase(law: Additive, spread: Any) -> str:
    if isinstance(spread, Multiplicative):
        return f"multiplied by normal noise (mean 1, sd {spread.bias_sd:g}), plus normal noise"
    return f"{law.noise.form} noise"


def _is_correlated(law: Additive) -> bool:
    return law.noise.width > 1 and bool(law.noise.correlations)


def _additive(law: Additive, j: int) -> str:
    sd = float(np.sqrt(law.noise.covariance[j, j]))
    spread, outlet = (law.spreads[j] if law.spreads else None), law.outlets[j]
    said = "as collected" if sd == 0 else _noise_phrase(law, spread)
    if sd != 0 and isinstance(spread, Multiplicative):
        said += f" of sd {spread.sd:g}"
    elif sd != 0:
        said += f" of sd {sd:,.6g}" + ("" if spread is None else " times a function of the value")
    if _is_correlated(law):
        said += f", correlated over {', '.join(law.columns)}"
    if outlet.log_shift is not None:
        said += " on the log scale"
        said += f" (of {law.columns[j]} + {outlet.log_shift:.12g})" if outlet.log_shift else ""
    if law.slope != 1.0:
        said += f", after shrinking by {law.slope:.3g} towards the mean"
    return ", ".join([said, *_limits(outlet)])


def _limits(outlet: Outlet) -> list[str]:
    """Say where values are kept and from where on they are coded."""
    low, high = ("" if end is None else f"{end:,.12g}" for end in (outlet.low, outlet.high))
    kept = [
        *([f"at {low} or above"] if low and not outlet.low_coded else []),
        *([f"at {high} or below"] if high and not outlet.high_coded else []),
    ]
    return [
        *([f"kept {' and '.join(kept)}"] if kept else []),
        *([f"coded from {high} up"] if outlet.high_coded else []),
        *([f"coded from {low} down"] if outlet.low_coded else []),
    ]


def _advice(release: Release) -> list[str]:
    if not release.card.columns:
        return []
    return [
        "",
        "## How to analyse it",
        "",
        "The noise is described exactly in `card.json`. Ordinary estimates from noised columns are biased (slopes",
        "shrink, variances grow); fit measurement-error models with the card to get the answers of the original.",
    ]
