"""What a run of a plan says on the way: what was sampled, searched, taken for granted, kept from earlier runs."""

from __future__ import annotations

from collections.abc import Iterable

from ..notes import Wording
from .phrases import comma_list, plural


def _sampled_targets(*, intruder: str, sample: int, targets: int, in_blocks: bool, minutes: float) -> str:
    return (
        f"{intruder} looks for {sample:,} of {targets:,} targets, drawn by the key"
        f"{' in whole blocks' if in_blocks else ''}: more is above the budget of {minutes:g} minutes ([budget])"
    )


def _not_in_search(*, intruders: Iterable[str]) -> str:
    return f"tried on the release alone, not in the search for its noise: {comma_list(intruders)}"


def _advice_failed(*, fault: str, message: str, file: str, line: int) -> str:
    where = f"{message + '; ' if message else ''}{file}, line {line}"
    return f"the search for what would pass broke off: {fault} ({where})"


def _whole_groups(*, column: str, forecast: float, rate: float, columns: Iterable[str]) -> str:
    return (
        f"who knows a whole {column} may find up to {forecast:.1%}, where one record at a time finds "
        f"{rate:.1%}, by {comma_list(columns)}, which no intruder compares"
    )


def _two_rates(whom: str, rate: float, intruder: str, base: float) -> str:
    return f"{whom}, finds {rate:.1%}, where {intruder} finds {base:.1%}"


def earlier_release_phrase(intruder: str, columns: Iterable[str], releases: int) -> str:
    """Name an intruder who has columns of the earlier release, or of several, too."""
    return f"{intruder}, and has the earlier {plural(releases, 'release', 'releases')} with {comma_list(columns)}"


def entry_phrase(intruder: str) -> str:
    """Name an intruder who knows when records entered a series of releases."""
    return f"{intruder}, and by the earlier releases when each record entered"


def _entry_time(*, intruder: str, rate: float) -> str:
    return f"{entry_phrase(intruder)}, finds {rate:.1%}"


def predicted_columns_phrase(intruder: str, columns: Iterable[str]) -> str:
    """Name an intruder who expects columns that he does not know."""
    return f"{intruder}, and how {comma_list(columns)} go with what he knows"


def _earlier_release(
    *, intruder: str, columns: Iterable[str], releases: int, rate: float, base: float
) -> str:
    return _two_rates(earlier_release_phrase(intruder, columns, releases), rate, intruder, base)


def _earlier_release_alone(
    *, intruder: str, columns: Iterable[str], releases: int, rate: float, base: float, alone: float
) -> str:
    said = _earlier_release(intruder=intruder, columns=columns, releases=releases, rate=rate, base=base)
    return f"{said}; the earlier release alone gives {alone:.1%}, and it has left"


def _predicted_columns(*, intruder: str, columns: Iterable[str], rate: float, base: float) -> str:
    return _two_rates(predicted_columns_phrase(intruder, columns), rate, intruder, base)


def _predicted_columns_unheld(*, intruder: str, columns: Iterable[str], rate: float) -> str:
    return f"{predicted_columns_phrase(intruder, columns)}, finds {rate:.1%}"


def _predicted_columns_untried(*, intruder: str, columns: Iterable[str], reason: str) -> str:
    return f"not tried: {predicted_columns_phrase(intruder, columns)} ({reason})"


def _sensitive(*, columns: Iterable[str]) -> str:
    return f"taken as known to no intruder, because sensitive: {comma_list(columns)}"


def _companion_search(*, column: str, records: int, most_pairs: int, most_sought: int) -> str:
    is_small = records <= most_pairs
    pairs = "by likeness, by values of one record in another's column, " if is_small else ""
    left = (
        ""
        if is_small
        else f"by likeness and by values of one record in another's column above {most_pairs:,}, "
    )
    sample = f" (for {most_sought:,} records, evenly spread)" if records > most_sought else ""
    return (
        f"whether the records of one {column} are put together again was looked at by equal released values, {pairs}by "
        f"shares that add up in groups of two to six, and by order, one at a time{sample}, and by likeness in columns "
        "that no intruder compares; likeness in those that they compare adds nothing to what the ceiling finds, as "
        f"noise is drawn for each record by itself; not looked at: {left}several of these at once, relations of "
        "another kind"
    )


def _noise_of_refused(*, runs: int) -> str:
    which = plural(runs, "1 run that was", f"{runs:,} runs that were")
    return f"the noise is that of {which} refused: it is not drawn again until it passes"


def _unrelated_releases(*, count: int) -> str:
    return (
        f"the private folder holds {count:,} earlier release{'s' if count > 1 else ''}: if of the same records, name "
        "the last as earlier, or whoever holds both averages part of the noise out"
    )


WORDS: dict[str, Wording] = {
    "pipeline.sampled_targets": Wording(
        _sampled_targets, "caution", "an intruder for whom the budget allows a sample of the targets"
    ),
    "pipeline.bounded_intruder": Wording(
        "{intruder} takes too long in blocks of this size: the bound on {by} stands for him, beyond "
        "which nobody who knows the law expects to find more",
        "caution",
        "an intruder who is not tried, and by whom he is bounded",
    ),
    "pipeline.searched_on_part": Wording(
        "the noise was searched on {records:,} records: whole blocks, drawn at random",
        "info",
        "a search for noise on a part of a large file",
    ),
    "pipeline.not_in_search": Wording(
        _not_in_search, "info", "intruders who attack the release and took no part in the search for noise"
    ),
    "pipeline.no_swap": Wording(
        "no records are exchanged: the attacks that this takes on all targets are above the budget ([budget])",
        "caution",
        "a swap that the budget does not allow",
    ),
    "pipeline.not_calibrated": Wording(
        "not calibrated: {rate:.1%} of the targets are found whatever the noise",
        "caution",
        "a tolerance that no noise meets, because of what leaves in clear",
    ),
    "pipeline.trials_kept": Wording(
        "{count} trials of the search were kept from an earlier run of this plan",
        "info",
        "a search for noise that an earlier run had begun",
    ),
    "pipeline.aim_for_groups": Wording(
        "the noise was searched so that one record at a time finds at most {rate:.1%}: with the noise where the search "
        "began who knows whole groups would find more than one record at a time does",
        "info",
        "a search for more noise than the tolerance asks for, because a group is dropped",
    ),
    "pipeline.advice_failed": Wording(
        _advice_failed, "caution", "a fault in the search for what would pass; the verdict stands"
    ),
    "pipeline.refused_before_noise": Wording(
        "refused before any noise was drawn: nothing that follows could change it",
        "info",
        "a plan that is refused because of what leaves in clear",
    ),
    "pipeline.whole_groups": Wording(
        _whole_groups, "caution", "what who knows a whole group, whose column is dropped, is expected to find"
    ),
    "pipeline.earlier_release": Wording(
        _earlier_release, "caution", "what an intruder finds who has the earlier release too"
    ),
    "pipeline.earlier_release_alone": Wording(
        _earlier_release_alone, "caution", "the same, where the earlier release alone tells as much"
    ),
    "pipeline.entry_time": Wording(
        _entry_time, "caution", "what an intruder finds who has the earlier releases of a growing file"
    ),
    "pipeline.predicted_columns": Wording(
        _predicted_columns,
        "caution",
        "what an intruder finds who expects unknown columns by those that he knows",
    ),
    "pipeline.predicted_columns_unheld": Wording(
        _predicted_columns_unheld,
        "info",
        "the same, where nobody who weighs records by the law is held to the tolerance",
    ),
    "pipeline.predicted_columns_untried": Wording(
        _predicted_columns_untried, "caution", "why that intruder was not tried"
    ),
    "pipeline.sensitive": Wording(_sensitive, "caution", "columns in clear that the schema calls sensitive"),
    "pipeline.told_column": Wording(
        "{column} is taken as known, because {by} tells it",
        "caution",
        "a column taken as not known that others determine",
    ),
    "pipeline.code_for_none": Wording(
        "one value of {column} holds {share:.1%} of the records: taken for a code for none, and not for a group",
        "caution",
        "a value of a group column that far too many records have",
    ),
    "pipeline.companion_search": Wording(
        _companion_search,
        "info",
        "how it was looked for records that belong together, where a group is dropped",
    ),
    "pipeline.released_before": Wording(
        "this plan released these records before ({bundle}): drawn by the same key, it is the same file",
        "info",
        "a plan that is run again on the same records",
    ),
    "pipeline.key_kept": Wording(
        "the key is that of a run that released nothing: what it tried is used",
        "info",
        "a run after one that was stopped",
    ),
    "pipeline.noise_of_refused": Wording(
        _noise_of_refused, "info", "a run after others of the same records that were refused"
    ),
    "pipeline.key_of_refused": Wording(
        "the key is kept in {folder}: the next run draws the same noise", "info", "a run that is refused"
    ),
    "pipeline.unrelated_releases": Wording(
        _unrelated_releases, "caution", "a private folder with earlier releases that the plan does not name"
    ),
}
