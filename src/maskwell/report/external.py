"""The external report, for recipients: what was done to the data, the card, how to analyse it, what not to conclude.

It is made of the release as it is written, read back, and of the plan's own words. Figures of the truth, of risk and of
the audit have no way into it; where the card does not leave in the open, no figure that tells its content has either.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..laws import Transition
from .categories import changes_of, shares_of
from .charts import picture
from .coded_means import coded_mean_words, is_cut
from .elements import Child, Html, data_table, document, html_list, paragraph, section, tag
from .example import DRAW, DROP, example_of
from .pictures import signal_and_noise
from .words import and_list, by_passphrase_of, count_of, figure, sentence

if TYPE_CHECKING:
    from ..card import NoiseCard
    from ..masking import Release
    from ..pipeline import Outcome
    from ..plan import ReleasePlan

OPEN, SEALED, KEPT = "open", "sealed", "kept"
LAW_NAMES = {
    "classes": "Numbers released as classes",
    "rank swap": "Values exchanged between records",
    "lognormal bias": "Noise by which values are multiplied",
    "chained": "Several laws, one after the other",
}
KINDS = {"integer": "whole number", "continuous": "amount", "category": "category", "text": "text"}
SMALLEST_SHARE = 1e-9
CLOSED_WORDS = {
    DROP: "With missing='drop' records are left out in which a value of the model is missing or coded, as ordinary "
    "fits do; without it what is not known is drawn with the rest, which takes longer.",
    DRAW: "With missing='draw' values that are missing or coded are drawn with the rest, which takes longer. The codes "
    "were given after the noise: to leave such records out would select by noise and bias the answer.",
}


@dataclass(frozen=True)
class _Page:
    """All that the report is made of: the release as its recipients read it, with the card, and the plan."""

    release: Release
    plan: ReleasePlan

    @property
    def leaves(self) -> str:
        """How the card leaves: open, sealed or kept."""
        return str(self.plan.card.leaves)

    @property
    def title(self) -> str:
        """The title of the plan; the name of the steward's own file is not for recipients."""
        return self.plan.report.title or "Masked microdata"

    @cached_property
    def touched(self) -> tuple[str, ...]:
        """The columns that are not as they were collected, in the order of the file."""
        card = self.release.card
        moved = card.swapped.columns if card.swapped is not None else ()
        touched = {*card.masked, *(total for total, _ in card.recomputed), *moved}
        return tuple(name for name in self.release.table.names if name in touched)


def external_report(outcome: Outcome, folder: Path | None = None) -> str:
    """Return the report for recipients: a whole HTML page that may leave with the release.

    Its figures are computed from the data file, the schema and the card in `folder`, where these were written; without
    one they are written to a folder for the purpose and read back. The same outcome gives the same bytes.
    """
    page = _Page(_as_read(outcome, folder), outcome.plan)
    release, report = page.release, page.plan.report
    whose = f"{report.organisation} · " if report.organisation else ""
    about = f"{whose}{count_of(len(release), 'record')}, {count_of(len(release.table.names), 'column')}"
    head = tag("header", tag("h1", page.title), paragraph(about, kind="subtitle"))
    whole = document(
        f"{page.title}: about this release",
        "About this release, for those who analyse it",
        head,
        _summary(page),
        _done(page),
        _card(page),
        _analysis(page),
        _warnings(page),
        _columns(page),
        _source(page),
        tag("footer", _made_by()),
    )
    return str(whole)


def example(outcome: Any) -> str:
    """Return a few lines of Python that fit one model to this release; nothing where none of them runs."""
    return example_of(_as_read(outcome, None), outcome.plan)


def _as_read(outcome: Any, folder: Path | None) -> Release:
    """Return the release as its recipients read it; a card that does not leave in the open is the steward's own."""
    from tempfile import TemporaryDirectory

    from ..masking.release_files import read_files, write_release

    own = outcome.masking.release
    if folder is not None:
        return read_files(folder, own)
    with TemporaryDirectory(prefix="maskwell-") as place:
        write_release(own, Path(place, "release"), outcome.plan.output.format)
        return read_files(Path(place, "release"), own)


def _summary(page: _Page) -> Html:
    touched = page.touched
    first = (
        "The values in this file are not the true ones." if touched else "No column of this file was masked."
    )
    why = (
        f"To protect those it is about, {len(touched)} of {len(page.release.table.names)} columns "
        "were changed before the file left. "
        if touched
        else ""
    )
    how = {
        OPEN: "How large the changes are is written on the noise card, so that analyses can allow for them.",
        SEALED: "How large the changes are is written on a sealed card, which accredited analysts can open.",
        KEPT: "How large the changes are is not published.",
    }[page.leaves]
    line = paragraph(first, kind="answer")
    return tag("div", line, paragraph(why + (how if touched else "")), class_="verdict")


def _done(page: _Page) -> Html:
    """Say in words what was done to each column, as far as the card leaves."""
    from ..masking.codebook import describe

    card, schema = page.release.card, page.release.table.schema
    sums = dict(card.recomputed)
    moved = card.swapped.columns if card.swapped is not None and card.swapped.share > 0 else ()
    rows = []
    for name in page.touched:
        law = card.law_of(name)
        if name in sums:
            said = f"Computed anew from {', '.join(part for part, _ in sums[name])}."
        elif page.leaves == OPEN and law is not None:
            said = sentence(describe(law, name))
        elif law is not None:
            told = "told on the card" if page.leaves == SEALED else "not published"
            said = f"Changed at random; by how much is {told}."
        else:
            said = ""
        if name in moved:
            said = f"{said} Of some records the value was exchanged with that of another record.".strip()
        rows.append((name, schema[name].description or KINDS[schema[name].kind], said))
    heads = ("column", "what it is", "what was done")
    table = data_table("What was done to each column", heads, rows) if rows else None
    return section("done", "What was done to the data", table, html_list(_whole_file(page)))


def _whole_file(page: _Page) -> list[Child]:
    """Say what was done to the file as a whole."""
    card, is_open = page.release.card, page.leaves == OPEN
    said: list[Child] = ["The records stand in random order, and their ids, where they have any, are new."]
    if card.subsampled is not None:
        some = f"each with probability {card.subsampled:g}" if is_open else "at random"
        said.append(f"Not all records were released: they were chosen {some}.")
    if card.swapped is not None and card.swapped.share > 0:
        within = f" that have the same {', '.join(card.swapped.blocks)}" if card.swapped.blocks else ""
        some = f"{100 * card.swapped.share:.3g}% of the" if is_open else "Some"
        said.append(f"{some} records exchanged {', '.join(card.swapped.columns)} with others{within}.")
    return [*said, *_unmasked_column_notes(page.release, page.touched)]


def _unmasked_column_notes(release: Release, touched: tuple[str, ...]) -> list[Child]:
    """Say which columns have other values without being masked, and that the rest, if any, is as it was collected."""
    from ..laws.chain import only_rounds

    table, said = release.table, list[Child]()
    groups = table.schema.with_role("group")
    if groups:
        said.append(f"Groups are numbered anew: {', '.join(groups)}.")
    rounded = [name for law in release.card.laws if only_rounds(law) for name in law.columns]
    if rounded:
        said.append(f"Rounded to a unit: {', '.join(rounded)}.")
    if not set(table.names) <= {*touched, *groups, *rounded, *table.schema.with_role("id")}:
        said.append("All other columns are as they were collected.")
    return said


def _card(page: _Page) -> Html:
    """Return the public card as a table, or how to ask for it."""
    card, contact = page.release.card, page.plan.report.contact
    ask = f"ask {contact}." if contact else "ask whoever gave you the data."
    seeded = (
        paragraph(
            tag("strong", "The noise comes from a small seed: this release is for studies, not for use.")
        )
        if card.seeded
        else None
    )
    if page.leaves == SEALED:
        said = (
            "The noise card is in the release as card.json.age, sealed in the age format. Whoever holds "
            f"{'its passphrase' if by_passphrase_of(page.plan) else 'an identity that it was sealed for'} can open it; "
            "maskwell reads it where it lies."
        )
        access = paragraph(f"To be given access, {ask}")
        return section("card", "The noise card", seeded, paragraph(said), access)
    if page.leaves == KEPT:
        said = "The noise card is not part of this release: the size of the noise cannot be told from these files."
        access = paragraph(f"To analyse the data with it, {ask}")
        return section("card", "The noise card", seeded, paragraph(said), access)
    said = (
        "The card gives the law of the noise exactly, in the units of the data unless a logarithm is named. It is "
        "card.json in the release."
    )
    changed = [law for law in card.laws if isinstance(law, Transition)]
    parts = [_law(law) for law in card.laws if not isinstance(law, Transition)]
    return section("card", "The noise card", seeded, paragraph(said), *parts, *changes_of(changed))


def _law(law: Any) -> Html:
    """Return one law of the card: for noise of one size its sds and correlations, else in words."""
    from ..laws import Additive
    from ..masking.codebook import describe

    if not isinstance(law, Additive):
        words = [(name, sentence(describe(law, name))) for name in law.columns]
        return data_table(LAW_NAMES.get(law.form, f"Law: {law.form}"), ("column", "what the law does"), words)
    covariance = law.noise.covariance
    sds = np.sqrt(np.diag(covariance))
    scale = np.where(sds > 0, sds, 1.0)
    correlations = covariance / np.outer(scale, scale)
    has_any = len(sds) > 1 and bool(
        np.abs(correlations - np.diag(np.diag(correlations))).max() > SMALLEST_SHARE
    )
    heads = ("column", "sd of the noise", *(law.columns if has_any else ()))
    rows: list[tuple[str, ...]] = [
        (f"{name}{_scale(name, outlet)}", figure(float(sd)), *([f"{r:.2f}" for r in row] if has_any else []))
        for name, outlet, sd, row in zip(law.columns, law.outlets, sds, correlations, strict=True)
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


def _scale(name: str, outlet: Any) -> str:
    """Say on which scale noise was added, where it is not that of the data."""
    from ..analysis.log_scale import written_log

    return "" if outlet.log_shift is None else f", as {written_log(name, outlet.log_shift)}"


def _analysis(page: _Page) -> Html:
    """Return how to analyse the release, with an example of its own columns."""
    if page.leaves == KEPT:
        said = (
            "Without the card, estimates from the masked columns cannot be corrected. Columns that are as collected "
            "can be analysed as they are."
        )
        return section("analysis", "How to analyse it", paragraph(said))
    said = (
        "Fit models with the card: maskwell treats the true values as unknown, and what it gives is what the original "
        "would have said, with intervals that are as wide as they must be."
    )
    code = example_of(page.release, page.plan)
    if "mw.fit(" not in code:
        said = "Fit models with the card: it says how true values became released ones, and models must allow for that."
    more = [paragraph(said) for sign, said in CLOSED_WORDS.items() if sign in code]
    more += [paragraph(said) for said in _logarithms(page)]
    return section("analysis", "How to analyse it", paragraph(said), tag("pre", tag("code", code)), *more)


def _logarithms(page: _Page) -> list[str]:
    """Say which logarithm to model of a column whose noise is on the scale of log(x + shift)."""
    from ..analysis.log_scale import written_log
    from ..analysis.noise.card_columns import state_scale

    shifts = {name: state_scale(page.release.card, name) for name in page.release.card.masked}
    return [
        f"The noise of {name} was added to {written_log(name, shift)}: that is the logarithm of it to write in a "
        f"formula. log({name}) is no number where a true value is 0."
        for name, shift in shifts.items()
        if shift and page.leaves == OPEN
    ]


def _warnings(page: _Page) -> Html:
    card = page.release.card
    said = [
        "Nothing about a single record: no value of it need be true, and a record that looks like somebody is most "
        "likely not that person. Do not try to find anyone, and tell us if you believe that you could.",
        "Nothing from plain estimates of the masked columns: noise makes slopes too flat, correlations too small and "
        "spreads too wide. Intervals that do not allow for it are too narrow.",
        "Nothing from the largest and smallest values, from ranks, from counts above a threshold or from exact sums: "
        "these are the noise's as much as the data's.",
    ]
    if page.leaves != OPEN:
        said.append("Nothing from values that cannot occur, nor from how many values stand at a limit.")
    else:
        said += _at_limits(card)
    if card.swapped is not None and card.swapped.share > 0:
        said.append(
            "Nothing about small groups from columns that were exchanged between records: their relations to other "
            "columns are weaker than in the original there."
        )
    if card.subsampled is not None:
        said.append("No totals from counts of records: not all records were released.")
    return section("warnings", "What not to conclude", html_list(said))


def _at_limits(card: NoiseCard) -> list[str]:
    """Say what values at a limit, coded ones, and values that cannot occur stand for, of the columns that have them."""
    outlets = {
        name: outlet for law in card.laws for name, outlet in zip(law.columns, law.outlets, strict=False)
    }
    cut = [name for name, one in outlets.items() if is_cut(one)]
    coded = [name for name, one in outlets.items() if one.low_coded or one.high_coded]
    said = []
    if cut:
        said.append(
            f"Nothing from how many values stand at a limit: noise was cut off there ({', '.join(cut)})."
        )
    if coded:
        said.append(
            f"Nothing from how many values are coded: the code was given after the noise ({', '.join(coded)})."
        )
    if len(cut) < len(outlets):
        said.append(
            "Nothing from values that cannot occur, such as amounts below zero: they are left in, as to cut them off "
            "would move the means."
        )
    return said


def _columns(page: _Page) -> Html:
    """Return the moments of each number in the release, and corrected by the card where it is open."""
    is_open = page.leaves == OPEN
    from ..utility.columns import release_columns

    found, is_weighted = release_columns(page.release)
    numbers = [column for column in found if column.is_number]
    masked = set(page.release.card.masked)
    rows, drawn = [], []
    for one in numbers:
        figures = [one.mean_after, one.sd_after]
        figures += [one.mean_corrected, one.sd_corrected] if is_open else []
        rows.append((one.name, "yes" if one.name in page.touched else "no", *map(figure, figures)))
        if is_open and one.name in masked and isfinite(one.sd_corrected) and one.sd_after > 0:
            share = min(1.0, (one.sd_corrected / one.sd_after) ** 2)
            drawn.append(
                {"name": one.name, "kind": "spread of the original values", "share": share, "order": 0}
            )
            drawn.append({"name": one.name, "kind": "added noise", "share": 1 - share, "order": 1})
    heads = ("column", "masked", "mean as released", "sd as released")
    heads += ("mean corrected", "sd corrected") if is_open else ()  # type: ignore[assignment]
    table = data_table("Numbers in this release", heads, rows) if rows else None
    said = ["Means and sds are weighted by the weights in the file."] if is_weighted else []
    shares = shares_of(found, masked, is_open)
    if table is None and shares is None:
        return Html("")
    said += _closed_words(page.release, [one.name for one in numbers])
    said += coded_mean_words(page.release, [one.name for one in numbers], is_open)
    if is_open:
        said.append(
            "Corrected figures are estimates of the original's, computed from this release and the card alone, as any "
            "reader can; a dash stands where the card does not allow it."
        )
    left = [
        name for name in masked & {one.name for one in numbers} if name not in {row["name"] for row in drawn}
    ]
    chart = _chart(drawn, sorted(left, key=page.touched.index)) if drawn else None
    return section(
        "columns", "Columns", table, shares, paragraph(" ".join(said), kind="note") if said else None, chart
    )


def _closed_words(release: Release, names: list[str]) -> list[str]:
    """Say how many records count in no mean or sd of a column: what is missing there, or a code."""
    counts = {name: int(np.isnan(release.table.values([name])).sum()) for name in names}
    found = [f"{count:,} of {name}" for name, count in counts.items() if count]
    return [f"Missing and coded values count in no mean or sd: {', '.join(found)}."] if found else []


def _chart(drawn: list[dict[str, Any]], left: list[str]) -> Html:
    names = [row["name"] for row in drawn if row["order"] == 0]
    shares = [row["share"] for row in drawn if row["order"] == 0]
    table = data_table(
        "Signal and noise",
        ("column", "original values", "noise"),
        [(name, f"{share:.1%}", f"{1 - share:.1%}") for name, share in zip(names, shares, strict=True)],
    )
    but = f" The card does not tell it of {and_list(left)}." if left else ""
    said = f"How the variance of each masked column in this release divides, by the card.{but}"
    return picture(
        "noise-chart", "Signal and noise", said, lambda width: signal_and_noise(drawn, width), table
    )


def _source(page: _Page) -> Html:
    report = page.plan.report
    whose = f"{report.organisation}. " if report.organisation else ""
    says_so = "masked microdata" in page.title.casefold()
    named = page.title if says_so else f"{page.title}. Masked microdata"
    cited = f"{whose}{named}, {count_of(len(page.release), 'record')}."
    said: list[Child] = [
        f"Cite the data as: {cited} Name the checksum in manifest.json, and say that the values are masked.",
        f"Questions, and access to what is not here: {report.contact}." if report.contact else None,
    ]
    return section("source", "How to cite, and whom to ask", *(paragraph(one) for one in said if one))


def _made_by() -> str:
    from importlib.metadata import version

    return f"Made by maskwell {version('maskwell')}."
