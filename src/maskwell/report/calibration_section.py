"""The sections on how the noise was chosen: the trace of the calibration, risk against loss, and all attempts."""

from __future__ import annotations

from math import isfinite
from typing import Any

from .charts import picture
from .elements import Html, data_table, html_list, paragraph, part, section
from .pictures import (
    COLUMNS,
    FRESH,
    NOISE_ALONE,
    RELEASED,
    SEARCH,
    TRIED,
    calibration_trace,
    risk_and_loss,
)
from .words import count_of, limit_rate, percent, sentence, worst_name


def calibration_section(outcome: Any) -> Html:
    """Return how the scale of the noise was found, what else was tried, and what it costs."""
    found = outcome.calibration
    if found is None:
        lead = paragraph("The noise was taken as the plan gives it; nothing was searched.", kind="lead")
        return section("noise", "How much noise", lead, _risk_and_loss(outcome), _attempts(outcome))
    return section(
        "noise",
        "How much noise",
        _lead(found),
        _trace(found),
        _interval_bounds_part(found),
        _risk_and_loss(outcome),
        _attempts(outcome),
    )


def _lead(found: Any) -> Html:
    from ..calibration.scale import scale_words

    if not found.met:
        near = f" The closest was {found.closest.said}." if found.closest is not None else ""
        return paragraph(
            f"No scale of {type(found.given).__name__} was confirmed to meet the tolerance.{near}",
            kind="lead",
        )
    last = found.confirmation
    said = f"The weakest noise that meets the tolerance: {type(found.given).__name__} with {scale_words(found.mask)}."
    said += f" Confirmed by {last.said} over {last.replicates} draws that had no part in finding it"
    return paragraph(f"{said} ({count_of(found.attempts, 'attempt')}).", kind="lead")


def _trace(found: Any) -> Html:
    measure = found.measure
    rows = []
    for trial in found.trace:
        mean, error = float(trial.figure.mean), float(trial.figure.se)
        if isfinite(mean) and trial.factor > 0:
            reach = error if isfinite(error) else 0.0
            at = {"at": float(trial.factor), "mean": mean, "low": mean - reach, "high": mean + reach}
            rows.append(
                {**at, "round": _round(trial.round), "is_share": measure.is_share, "draws": trial.replicates}
            )
    limit = float(measure.limit) if isfinite(measure.limit) else None
    table = data_table(
        "Every trial, in order",
        ("scale, times the given one", measure.name, "standard error", "draws", "round"),
        [
            (
                f"{row['at']:.4g}",
                measure.shown(row["mean"]),
                measure.shown_error(row["high"] - row["mean"]),
                str(row["draws"]),
                row["round"],
            )
            for row in rows
        ],
    )
    drawn = [{key: value for key, value in row.items() if key != "draws"} for row in rows]
    names = ("scale of the noise, times the one given", measure.name)
    said = (
        "The figure of the worst intruder along the scale of the noise, with standard errors; dashed: the tolerance. "
        "Only the fresh draws are fair: those of the search flatter the scale they chose."
    )
    chart = picture(
        "trace-chart",
        "The search for the noise",
        said,
        lambda w: calibration_trace(drawn, limit, names, w),
        table,
    )
    return Html(chart + html_list(sentence(str(note)) for note in found.notes))


def _round(name: str) -> str:
    return SEARCH if name == "search" else COLUMNS if name == "columns" else FRESH


def _interval_bounds_part(found: Any) -> Html:
    """Return the bounds on models beside what the calibrated noise does to them."""
    bounds = found.widening
    if not bounds:
        return Html("")
    rows = [
        (
            one.formula,
            one.coefficient,
            percent(one.largest),
            percent(one.at_most),
            "yes" if one.met else "no",
        )
        for one in bounds
    ]
    heads = ("model", "widest for", "wider by", "at most", "met")
    return part(
        "The models' intervals", data_table("Bounds on how much wider intervals may become", heads, rows)
    )


def _risk_and_loss(outcome: Any) -> Html:
    """Return what the worst intruder finds against the size of the noise, for all that was tried and the release."""
    name, limit = worst_name(outcome), limit_rate(outcome)
    rows = _trial_points(outcome, name)
    final = noise_size(outcome.masking.mask, outcome.masking.truth, outcome.masking.card)
    if final is not None:
        swapped = outcome.swapping is not None and outcome.swapping.swaps
        before = outcome.before.get(name)
        rows += [_point(final, before.rate, NOISE_ALONE, 110)] if swapped and before is not None else []
        rows.append(_point(final, outcome.after[name].rate, RELEASED, 170))
    if len(rows) < 2:
        return Html("")
    table = data_table(
        "Risk and noise",
        ("what", "noise, share of the sd", "found"),
        [(row["kind"], percent(row["loss"]), percent(row["rate"])) for row in rows],
    )
    across = "size of the noise: its sd as a share of the column's sd, mean over the columns"
    said = (
        f"What “{name}” finds against how much noise it takes; dashed: the tolerance. Lower left is better."
    )
    return picture(
        "frontier-chart",
        "Risk against noise",
        said,
        lambda width: risk_and_loss(rows, limit, across, width),
        table,
    )


def _trial_points(outcome: Any, name: str) -> list[dict[str, Any]]:
    found, rows = outcome.calibration, []
    for trial in () if found is None or limit_rate(outcome) is None else found.trace:
        size = noise_size(trial.mask, outcome.masking.truth)
        rate = trial.figures[name].mean if name in trial.names else trial.figure.mean
        if size is not None and isfinite(rate):
            rows.append(_point(size, float(rate), TRIED, 50))
    return rows


def _point(loss: float, rate: float, kind: str, size: int) -> dict[str, Any]:
    return {"loss": loss, "rate": rate, "kind": kind, "size": size}


def noise_size(mask: Any, truth: Any, card: Any = None) -> float | None:
    """Return the sd of the noise as a share of the column's, mean over the columns whose noise has one size."""
    import numpy as np

    from ..errors import MaskwellError
    from ..laws import Additive
    from ..laws.chain import combined_of

    try:
        laws = (mask.card(truth) if card is None else card).laws
    except MaskwellError:
        return None
    shares = []
    for law in map(combined_of, laws):
        if not isinstance(law, Additive) or law.categories or any(law.spreads):
            continue
        sds = np.sqrt(np.diag(law.noise.covariance)) / law.slope
        for name, sd, outlet in zip(law.columns, sds, law.outlets, strict=True):
            spread = float(np.nanstd(truth.floats(name)))
            if sd > 0 and spread > 0 and outlet.log_shift is None:
                shares.append(float(sd) / spread)
    return float(np.mean(shares)) if shares else None


def _attempts(outcome: Any) -> Html:
    """Return every attempt that counts: the noise is drawn once, and never again until a figure passes."""
    rows = [
        (
            str(number),
            one.how,
            f"{one.factor:.4g}",
            f"{one.swaps:,}",
            one.worst,
            percent(one.rate),
            "yes" if one.met else "no",
        )
        for number, one in enumerate(outcome.attempts, 1)
    ]
    if not rows:
        return Html("")
    heads = ("attempt", "how", "scale, times the first", "swaps", "worst intruder", "found", "tolerance met")
    said = (
        "The noise is drawn once under the key. A tolerance that fails is met by raising the scale or by exchanging "
        "records, never by drawing again until a figure passes."
    )
    return part("Attempts on record", paragraph(said), data_table("Every attempt, in order", heads, rows))
