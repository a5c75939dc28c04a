"""The section on utility: columns, correlations, groups, models as the original, naively and with the card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from .charts import BLUE, INK, VERMILLION, picture
from .elements import Html, badge, data_table, html_list, join_children, paragraph, part, section
from .pictures import ADJUSTED, NAIVE, ORIGINAL, dots, forest
from .words import figure, figure_text, percent, sentence

NOT_SLOPES = ("Intercept", "sigma")
MOST_PAIRS, MOST_GROUPS, MOST_COEFFICIENTS = 12, 15, 12
VERDICTS = {
    "good": ("good", "good"),
    "fair": ("fair", "fair"),
    "poor": ("poor", "bad"),
    "unknown": ("unknown", "none"),
    "told": ("told", "none"),
}
REACH = 1.959964  # half a 95% interval, in standard errors
KINDS = (("original", INK), ("release", VERMILLION), ("release, with the card", BLUE))


def utility_section(outcome: Any) -> Html:
    """Return what the release still tells, beside the original."""
    utility = outcome.utility
    models = [_model(model, number) for number, model in enumerate(utility.models, 1)]
    return section(
        "utility",
        "What can be learned",
        *models,
        _forecasts(utility.forecasts),
        _judgements(utility.judgements),
        _columns(utility.columns),
        _correlations(utility.correlations),
        _groups(utility.groups),
        _whole(utility),
    )


def _judgements(judgements: Sequence[Any]) -> Html:
    """Return what each figure comes to, with what would be good and why."""
    rows = [
        (
            one.figure,
            badge(*VERDICTS[one.verdict]),
            sentence(one.said),
            sentence(f"{one.good}: {one.reason}") if one.good else "",
        )
        for one in judgements
    ]
    heads = ("figure", "verdict", "what was found", "what good is, and why")
    table = data_table("Figures of the release beside those of the original", heads, rows, kind="judged")
    return part("What each figure comes to", table) if rows else Html("")


def coefficients(model: Any) -> list[dict[str, Any]]:
    """Return one row for each coefficient and way of estimating it, with its 95% interval."""
    rows = []
    fits = (
        (ORIGINAL, model.original, model.original_errors),
        (NAIVE, model.naive, model.naive_errors),
        (ADJUSTED, model.adjusted, model.adjusted_errors),
    )
    for kind, estimates, errors in fits:
        for name, estimate, error in zip(model.names, estimates, errors, strict=False):
            if name not in NOT_SLOPES and isfinite(estimate) and isfinite(error):
                low, high = estimate - REACH * error, estimate + REACH * error
                rows.append(
                    {
                        "name": name,
                        "kind": kind,
                        "estimate": float(estimate),
                        "low": float(low),
                        "high": float(high),
                    }
                )
    names = list(dict.fromkeys(row["name"] for row in rows))[:MOST_COEFFICIENTS]
    return [row for row in rows if row["name"] in names]


def _model(model: Any, number: int) -> Html:
    rows = coefficients(model)
    title = f"{model.formula} ({model.family})"
    by = f"adjusted by: {model.adjusted_by}" if model.adjusted_by else ""
    notes = html_list(
        dict.fromkeys(sentence(str(note)) for note in (by, model.refused, *model.notes) if note)
    )
    if not rows:
        return part(title, notes)
    table = data_table(
        f"Coefficients of {model.formula}",
        ("coefficient", "estimated from", "estimate", "95% from", "to"),
        [
            (row["name"], row["kind"], *(figure(row[key]) for key in ("estimate", "low", "high")))
            for row in sorted(rows, key=lambda row: row["name"])
        ],
    )
    said = (
        "Each coefficient in its own units. The band is what the original says; an analyst who takes the release at "
        "its word gets the second interval, one who fits it with the card the third."
    )
    chart = picture(f"model-{number}-chart", title, said, lambda width: forest(rows, width), table)
    return join_children(chart, notes)


def _forecasts(forecasts: Sequence[Any]) -> Html:
    said = [sentence(text) for one in forecasts for text in one.sentences]
    return part("What the noise does to the intervals", html_list(said)) if said else Html("")


def _columns(columns: Sequence[Any]) -> Html:
    numbers = [column for column in columns if column.is_number and column.masked]
    heads = (
        "column",
        "mean",
        "released",
        "corrected",
        "sd",
        "released",
        "corrected",
        "KS",
        "Hellinger",
    )
    rows = [
        (
            one.name,
            *map(
                figure, (one.mean, one.mean_after, one.mean_corrected, one.sd, one.sd_after, one.sd_corrected)
            ),
            *(_distance(value) for value in (one.ks, one.hellinger)),
        )
        for one in numbers
    ]
    said = paragraph(
        "Corrected: what an analyst computes from the release and the card alone. KS (Kolmogorov-Smirnov) and "
        "Hellinger are distances of the two distributions, 0 when they are the same and 1 when they have nothing in "
        "common; what chance alone makes is taken off Hellinger's.",
        kind="note",
    )
    table = data_table("Masked numbers: original, release, and release corrected by the card", heads, rows)
    names = [one for one in columns if not one.is_number and one.masked]
    other = [(one.name, percent(one.changed), _distance(one.total_variation)) for one in names]
    changed = data_table(
        "Masked categories",
        ("column", "records changed", "difference of the shares (total variation)"),
        other,
    )
    return part("Columns", table if rows else None, said if rows else None, changed if other else None)


def _distance(value: float) -> str:
    return f"{value:.3f}" if isfinite(value) else "–"


def pairs(correlations: Any) -> list[dict[str, Any]]:
    """Return the correlations that changed most, one row for each pair."""
    names = correlations.names
    rows: list[dict[str, Any]] = [
        {
            "pair": f"{names[i]} and {names[j]}",
            "original": float(correlations.before[i, j]),
            "release": float(correlations.after[i, j]),
            "release, with the card": float(correlations.corrected[i, j]),
        }
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]
    known = [row for row in rows if isfinite(row["original"]) and isfinite(row["release"])]
    known.sort(key=lambda row: -abs(row["release"] - row["original"]))
    return known[:MOST_PAIRS]


def _correlations(correlations: Any) -> Html:
    rows = pairs(correlations)
    if not rows:
        return Html("")
    drawn = [
        {"name": row["pair"], "kind": kind, "value": row[kind]}
        for row in rows
        for kind, _ in KINDS
        if isfinite(row[kind])
    ]
    table = data_table(
        "The correlations that changed most",
        ("columns", *(kind for kind, _ in KINDS)),
        [(row["pair"], *(figure(row[kind]) for kind, _ in KINDS)) for row in rows],
    )
    said = (
        f"The pairs that changed most. On average a correlation moved by {figure_text(correlations.mean)}, at most by "
        f"{figure_text(correlations.largest)}; corrected by the card by {figure_text(correlations.mean_corrected)} and "
        f"{figure_text(correlations.largest_corrected)}."
    )
    return picture(
        "correlations-chart",
        "Correlations",
        said,
        lambda width: dots(drawn, KINDS, "correlation", width),
        table,
    )


def _groups(groups: Sequence[Any]) -> Html:
    if not groups:
        return Html("")
    worst = sorted(groups, key=lambda one: one.overlap if isfinite(one.overlap) else 2.0)[:MOST_GROUPS]
    rows = [
        (
            f"{one.group} = {one.level}: {one.column}",
            *map(figure, (one.mean, one.mean_after)),
            percent(one.overlap, 0),
        )
        for one in worst
    ]
    heads = ("group and column", "mean", "released", "overlap of the 95% intervals")
    said = paragraph(
        "The sub-domains whose means agree least. Overlap is 100% where two intervals are the same, 0% where they are "
        "apart.",
        kind="note",
    )
    return part("Groups", data_table("Means in sub-domains, those that agree least first", heads, rows), said)


def _whole(utility: Any) -> Html:
    propensity = utility.propensity
    figures: Mapping[str, str] = {
        "IL1s: mean change of a masked value, in sds times √2": figure_text(utility.il1s),
        "pMSE: how well a model tells released records from original ones": figure_text(propensity.pmse),
        "pMSE expected of records drawn from a law fitted to the true ones": figure_text(propensity.expected),
        "pMSE over the expected one": figure_text(propensity.ratio),
    }
    return part(
        "The file as a whole", data_table("Figures of the whole file", ("figure", "value"), figures.items())
    )
