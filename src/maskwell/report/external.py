"""The external report, for recipients: what was done to the data, the card, how to analyse it, what not to conclude.

It is made of the release, the card as it leaves and the plan's own words alone. Figures of the truth, of risk and of
the audit have no way into it; where the card does not leave in the open, no figure that tells its content has either.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from .charts import picture
from .elements import Child, Html, data_table, document, listed, paragraph, section, tag
from .pictures import signal_and_noise
from .wording import by_passphrase, counted, figure, sentence

OPEN, SEALED, KEPT = "open", "sealed", "kept"
DROP = ", missing='drop'"
KINDS = {"integer": "whole number", "continuous": "amount", "category": "category", "text": "text"}
SMALLEST_SHARE = 1e-9
_PLAIN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*$")


def external_report(outcome: Any) -> str:
    """Return the report for recipients: a whole HTML page that may leave with the release.

    It tells what the release tells and nothing else. The same outcome gives the same bytes.
    """
    release, report = outcome.masking.release, outcome.plan.report
    whose = f"{report.organisation} · " if report.organisation else ""
    about = f"{whose}{counted(len(release), 'record')}, {counted(len(release.table.names), 'column')}"
    head = tag("header", tag("h1", _title(outcome)), paragraph(about, kind="subtitle"))
    page = document(
        f"{_title(outcome)}: about this release",
        "About this release, for those who analyse it",
        head,
        _summary(outcome),
        _done(outcome),
        _card(outcome),
        _analysis(outcome),
        _warnings(outcome),
        _columns(outcome),
        _source(outcome),
        tag("footer", _made_by()),
    )
    return str(page)


def _title(outcome: Any) -> str:
    """Return the title of the plan; the name of the steward's own file is not for recipients."""
    return outcome.plan.report.title or "Masked microdata"


def _leaves(outcome: Any) -> str:
    return str(outcome.plan.card.leaves)


def _touched(outcome: Any) -> tuple[str, ...]:
    """Return the columns that are not as they were collected, in the order of the file."""
    card = outcome.masking.release.card
    moved = card.swapped.columns if card.swapped is not None else ()
    touched = {*card.masked, *(total for total, _ in card.recomputed), *moved}
    return tuple(name for name in outcome.masking.release.table.names if name in touched)


def _summary(outcome: Any) -> Html:
    touched = _touched(outcome)
    first = (
        "The values in this file are not the true ones." if touched else "No column of this file was masked."
    )
    why = (
        f"To protect those it is about, {len(touched)} of {len(outcome.masking.release.table.names)} columns "
        "were changed before the file left. "
        if touched
        else ""
    )
    how = {
        OPEN: "How large the changes are is written on the noise card, so that analyses can allow for them.",
        SEALED: "How large the changes are is written on a sealed card, which accredited analysts can open.",
        KEPT: "How large the changes are is not published.",
    }[_leaves(outcome)]
    line = paragraph(first, kind="answer")
    return tag("div", line, paragraph(why + (how if touched else "")), class_="verdict")


def _done(outcome: Any) -> Html:
    """Say in words what was done to each column, as far as the card leaves."""
    from ..masking.codebook import describe

    card, schema = outcome.masking.release.card, outcome.masking.release.table.schema
    sums = dict(card.recomputed)
    moved = card.swapped.columns if card.swapped is not None and card.swapped.share > 0 else ()
    rows = []
    for name in _touched(outcome):
        law = card.law_of(name)
        if name in sums:
            said = f"Computed anew from {', '.join(part for part, _ in sums[name])}."
        elif _leaves(outcome) == OPEN and law is not None:
            said = sentence(describe(law, name))
        elif law is not None:
            told = "told on the card" if _leaves(outcome) == SEALED else "not published"
            said = f"Changed at random; by how much is {told}."
        else:
            said = ""
        if name in moved:
            said = f"{said} Of some records the value was exchanged with that of another record.".strip()
        rows.append((name, schema[name].description or KINDS[schema[name].kind], said))
    heads = ("column", "what it is", "what was done")
    table = data_table("What was done to each column", heads, rows) if rows else None
    return section("done", "What was done to the data", table, listed(_whole_file(outcome)))


def _whole_file(outcome: Any) -> list[Child]:
    """Say what was done to the file as a whole."""
    card, is_open = outcome.masking.release.card, _leaves(outcome) == OPEN
    said: list[Child] = ["The records stand in random order, and their ids, where they have any, are new."]
    if card.subsampled is not None:
        some = f"each with probability {card.subsampled:g}" if is_open else "at random"
        said.append(f"Not all records were released: they were chosen {some}.")
    if card.swapped is not None and card.swapped.share > 0:
        within = f" that have the same {', '.join(card.swapped.blocks)}" if card.swapped.blocks else ""
        some = f"{100 * card.swapped.share:.3g}% of the" if is_open else "Some"
        said.append(f"{some} records exchanged {', '.join(card.swapped.columns)} with others{within}.")
    return [*said, *_untouched(outcome.masking.release)]


def _untouched(release: Any) -> list[Child]:
    """Say which columns have other values without being masked, and that the rest is as it was collected."""
    from ..laws.chained import only_rounds

    schema, said = release.table.schema, list[Child]()
    if groups := [name for name in schema.with_role("group") if not schema[name].drop]:
        said.append(f"Groups are numbered anew: {', '.join(groups)}.")
    if rounded := [name for law in release.card.laws if only_rounds(law) for name in law.columns]:
        said.append(f"Rounded to a unit: {', '.join(rounded)}.")
    return [*said, "All other columns are as they were collected."]


def _card(outcome: Any) -> Html:
    """Return the public card as a table, or how to ask for it."""
    card, contact = outcome.masking.release.card, outcome.plan.report.contact
    ask = f"ask {contact}." if contact else "ask whoever gave you the data."
    seeded = (
        paragraph(
            tag("strong", "The noise comes from a small seed: this release is for studies, not for use.")
        )
        if card.seeded
        else None
    )
    if _leaves(outcome) == SEALED:
        said = (
            "The noise card is in the release as card.json.age, sealed in the age format. Whoever holds "
            f"{'its passphrase' if by_passphrase(outcome) else 'an identity that it was sealed for'} can open it; "
            "maskwell reads it where it lies."
        )
        access = paragraph(f"To be given access, {ask}")
        return section("card", "The noise card", seeded, paragraph(said), access)
    if _leaves(outcome) == KEPT:
        said = "The noise card is not part of this release: the size of the noise cannot be told from these files."
        access = paragraph(f"To analyse the data with it, {ask}")
        return section("card", "The noise card", seeded, paragraph(said), access)
    said = "The card gives the law of the noise exactly, in the units of the data. It is card.json in the release."
    parts = [_law(law) for law in card.laws]
    return section("card", "The noise card", seeded, paragraph(said), *parts)


def _law(law: Any) -> Html:
    """Return one law of the card: for noise of one size its sds and correlations, else in words."""
    from ..laws import Additive
    from ..masking.codebook import describe

    if not isinstance(law, Additive):
        words = [(name, sentence(describe(law, name))) for name in law.columns]
        return data_table(f"Law: {law.form}", ("column", "what the law does"), words)
    import numpy as np

    covariance = law.noise.covariance
    sds = np.sqrt(np.diag(covariance))
    scale = np.where(sds > 0, sds, 1.0)
    correlations = covariance / np.outer(scale, scale)
    has_any = len(sds) > 1 and bool(
        np.abs(correlations - np.diag(np.diag(correlations))).max() > SMALLEST_SHARE
    )
    heads = ("column", "sd of the noise", *(law.columns if has_any else ()))
    rows: list[tuple[str, ...]] = [
        (name, figure(float(sd)), *([f"{r:.2f}" for r in row] if has_any else []))
        for name, sd, row in zip(law.columns, sds, correlations, strict=True)
    ]
    caption = f"Noise: {law.noise.form}" + ("; correlations of the noise on the right" if has_any else "")
    slope = (
        paragraph(
            f"Before the noise the values were shrunk by {law.slope:.4g} towards the mean.", kind="note"
        )
        if law.slope != 1.0
        else None
    )
    return tag("div", data_table(caption, heads, rows), slope)


def _analysis(outcome: Any) -> Html:
    """Return how to analyse the release, with an example of its own columns."""
    if _leaves(outcome) == KEPT:
        said = (
            "Without the card, estimates from the masked columns cannot be corrected. Columns that are as collected "
            "can be analysed as they are."
        )
        return section("analysis", "How to analyse it", paragraph(said))
    said = (
        "Fit models with the card: maskwell treats the true values as unknown, and what it gives is what the original "
        "would have said, with intervals that are as wide as they must be."
    )
    dropped = (
        "With missing='drop' records are left out in which a value of the model is missing or coded, as ordinary fits "
        "do; without it what is not known is drawn with the rest, which takes longer."
    )
    code = example(outcome)
    more = [paragraph(dropped)] if DROP in code else []
    return section("analysis", "How to analyse it", paragraph(said), tag("pre", tag("code", code)), *more)


def example(outcome: Any) -> str:
    """Return a few lines of Python that fit one model to this release."""
    formula, family = _model(outcome)
    asks = by_passphrase(outcome)
    opening = ', passphrase=getpass("Passphrase of the card: ")' if asks else ', identity="my-identity.txt"'
    opening = opening if _leaves(outcome) == SEALED else ""
    kind = "" if family == "gaussian" else f", family={family!r}"
    kind += DROP if any(name in formula for name in outcome.masking.release.table.closed) else ""
    folder = outcome.plan.output.release.name or "release"
    return "\n".join(
        [
            *(["from getpass import getpass"] if asks else []),
            "import maskwell as mw",
            f"release = mw.read_release({folder!r}{opening})",
            "print(release)",
            f"posterior = mw.fit({formula!r}, release{kind})",
            "print(posterior)",
        ]
    )


def _model(outcome: Any) -> tuple[str, str]:
    """Return a model of the plan that names no column that stays inside, else one of the masked numbers."""
    schema = outcome.masking.release.table.schema
    inside = [name for name in outcome.masking.truth.schema.names if name not in schema]
    for model in outcome.plan.models:
        if not any(name in model.formula for name in inside):
            return str(model.formula), str(model.family)
    numbers = [name for name in _touched(outcome) if schema[name].is_number]
    numbers += [
        column.name
        for column in schema.columns
        if column.is_number and column.name not in numbers and not column.roles & {"id", "weight", "group"}
    ]
    named = [_quoted(name) for name in numbers[:3]]
    return (
        f"{named[0]} ~ {' + '.join(named[1:])}" if len(named) > 1 else f"{(named or ['y'])[0]} ~ 1"
    ), "gaussian"


def _quoted(name: str) -> str:
    return name if _PLAIN_NAME.match(name) else f"`{name}`"


def _warnings(outcome: Any) -> Html:
    card = outcome.masking.release.card
    said = [
        "Nothing about a single record: no value of it need be true, and a record that looks like somebody is most "
        "likely not that person. Do not try to find anyone, and tell us if you believe that you could.",
        "Nothing from plain estimates of the masked columns: noise makes slopes too flat, correlations too small and "
        "spreads too wide. Intervals that do not allow for it are too narrow.",
        "Nothing from the largest and smallest values, from ranks, from counts above a threshold or from exact sums: "
        "these are the noise's as much as the data's.",
    ]
    if _leaves(outcome) != OPEN:
        said.append("Nothing from values that cannot occur, nor from how many values stand at a limit.")
    elif _is_clamped(card):
        said.append("Nothing from how many values stand at a limit: noise was cut off there.")
    else:
        said.append(
            "Nothing from values that cannot occur, such as amounts below zero: they are left in to keep means right."
        )
    if card.swapped is not None and card.swapped.share > 0:
        said.append(
            "Nothing about small groups from columns that were exchanged between records: their relations to other "
            "columns are weaker than in the original there."
        )
    if card.subsampled is not None:
        said.append("No totals from counts of records: not all records were released.")
    return section("warnings", "What not to conclude", listed(said))


def _is_clamped(card: Any) -> bool:
    """Whether the noise of some column is cut off at a limit."""
    outlets = [outlet for law in card.laws for outlet in getattr(law, "outlets", ())]
    return any(outlet.low is not None or outlet.high is not None for outlet in outlets)


def _columns(outcome: Any) -> Html:
    """Return the moments of each number in the release, and corrected by the card where it is open."""
    is_open = _leaves(outcome) == OPEN
    numbers = [column for column in outcome.utility.columns if column.is_number]
    rows, drawn = [], []
    for one in numbers:
        figures = [one.mean_after, one.sd_after]
        figures += [one.mean_corrected, one.sd_corrected] if is_open else []
        rows.append((one.name, "yes" if one.name in _touched(outcome) else "no", *map(figure, figures)))
        if is_open and one.masked and isfinite(one.sd_corrected) and one.sd_after > 0:
            share = min(1.0, (one.sd_corrected / one.sd_after) ** 2)
            drawn.append(
                {"name": one.name, "kind": "spread of the original values", "share": share, "order": 0}
            )
            drawn.append({"name": one.name, "kind": "added noise", "share": 1 - share, "order": 1})
    heads = ("column", "masked", "mean as released", "sd as released")
    heads += ("mean corrected", "sd corrected") if is_open else ()  # type: ignore[assignment]
    table = data_table("Numbers in this release", heads, rows) if rows else None
    said = (
        "Corrected figures are estimates of the original's, computed from this release and the card alone, as any "
        "reader can; a dash stands where the card does not allow it."
    )
    if outcome.utility.weighted:
        said = f"Means and sds are weighted by the weights in the file. {said}"
    chart = _chart(drawn) if drawn else None
    return section("columns", "Columns", table, paragraph(said, kind="note") if is_open else None, chart)


def _chart(drawn: list[dict[str, Any]]) -> Html:
    names = [row["name"] for row in drawn if row["order"] == 0]
    shares = [row["share"] for row in drawn if row["order"] == 0]
    table = data_table(
        "Signal and noise",
        ("column", "original values", "noise"),
        [(name, f"{share:.1%}", f"{1 - share:.1%}") for name, share in zip(names, shares, strict=True)],
    )
    said = "How the variance of each masked column in this release divides, by the card."
    return picture(
        "noise-chart", "Signal and noise", said, lambda width: signal_and_noise(drawn, width), table
    )


def _source(outcome: Any) -> Html:
    report = outcome.plan.report
    whose = f"{report.organisation}. " if report.organisation else ""
    cited = f"{whose}{_title(outcome)}. Masked microdata, {counted(len(outcome.masking.release), 'record')}."
    said: list[Child] = [
        f"Cite the data as: {cited} Name the checksum in manifest.json, and say that the values are masked.",
        f"Questions, and access to what is not here: {report.contact}." if report.contact else None,
    ]
    return section("source", "How to cite, and whom to ask", *(paragraph(one) for one in said if one))


def _made_by() -> str:
    from importlib.metadata import version

    return f"Made by maskwell {version('maskwell')}."
